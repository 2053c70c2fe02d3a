"""Fits a method to a twisted split of a table and judges it on the clean test rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from experiments.arena.methods import METHODS, Method, Model
from experiments.arena.rows import ArenaKey, ArenaRow, count_reliability
from experiments.datasets import Labels, Table, drop_rare_classes, load, load_several
from experiments.peers import compute_log_loss, spread_columns
from experiments.protocol import Split, applies, split
from experiments.runner import summarise_error, time_fit, work_alone
from untwist.arguments import Array

__all__ = ["LEAST_ROWS", "judge", "list_keys"]

#: Of tables of several classes, those with fewer rows than this are dropped: they cannot be split.
LEAST_ROWS = 8


@cache
def _load_once(data: str, folder: str | None = None, several: bool = False) -> Table:
    return drop_rare_classes(load_several(data, folder), LEAST_ROWS)[0] if several else load(data, folder)


@lru_cache(maxsize=1)
def _split_once(data: str, twist: str, seed: int, max_rows: int, folder: str | None, several: bool = False) -> Split:
    return split(_load_once(data, folder, several), twist, seed, max_rows)


@cache
def _warm_up(method: str) -> None:
    """A first tiny fit, so that no time of importing is counted."""
    X, y, *_ = split(_load_once("cancer"), "none", seed=0, max_rows=60)
    with work_alone():
        METHODS[method].fit(X, y, 0)


def judge(key: ArenaKey, folder: str | None = None, several: bool = False) -> ArenaRow:
    """Fit one method and judge it on the clean test rows. An error is a result too.

    Parameters
    ----------
    key : ArenaKey
        What to run.
    folder : str, optional
        The folder of the data sets.
    several : bool
        Whether the data set is one of several classes.

    Returns
    -------
    ArenaRow
    """
    n_classes = 2
    try:
        n_classes = len(_load_once(key.data, folder, several).classes)
        part = _split_once(*key[:4], folder, several)
        method = METHODS[key.method]
        _warm_up(key.method)
        with work_alone():
            if n_classes == 2:
                seconds, posterior, label = _fit_and_predict(method, part, part.y.copy(), key.seed)
            else:
                # A class may have lost all of its labels; those that are left are numbered without gaps.
                classes, labels = np.unique(part.y, return_inverse=True)
                seconds, posterior, label = _fit_and_predict(method, part, labels.astype(np.int64), key.seed)
                posterior, label = spread_columns(posterior, classes, n_classes), classes[label]
        if not np.all((posterior >= 0) & (posterior <= 1)):
            raise ValueError("predict_proba gave something that is no probability")
    except Exception as error:  # Whatever a method fails of belongs in its row.
        return _make_failed_row(key, n_classes, summarise_error(error))
    metrics = _measure_two if n_classes == 2 else _measure_several
    accuracy = float(np.mean(label == part.y_test))
    return metrics(ArenaRow(*key, accuracy, seconds=seconds, version=method.version), posterior, part.y_test)


def _fit_and_predict(method: Method, part: Split, y: Labels, seed: int) -> tuple[float, Array, Any]:
    """The seconds of a fit, and what it says of the test rows: posteriors and labels."""
    X_own = part.X.copy()  # A method that writes into its rows harms itself alone.
    model: Model
    model, seconds = time_fit(lambda: method.fit(X_own, y, seed))
    posterior = np.asarray(model.predict_proba(part.X_test), dtype=float)
    # A method with labels of its own may have moved the threshold.
    if hasattr(model, "predict"):
        # CatBoost gives labels of several classes as a column.
        return seconds, posterior, np.ravel(model.predict(part.X_test))
    return seconds, posterior, (posterior[:, 1] > 0.5) if posterior.shape[1] == 2 else posterior.argmax(axis=1)


def _measure_two(row: ArenaRow, posterior: Array, y: Labels) -> ArenaRow:
    p = posterior[:, 1]
    return replace(
        row,
        auc=float(roc_auc_score(y, p)),
        log_loss=float(log_loss(y, np.clip(p, 1e-6, 1 - 1e-6))),  # Certain and wrong costs 13.8, not infinity.
        brier=float(brier_score_loss(y, p)),
        reliability=count_reliability(p, y.astype(float)),
    )


def _measure_several(row: ArenaRow, posterior: Array, y: Labels) -> ArenaRow:
    """The same of several classes: each against the rest where a metric knows two only."""
    is_class = np.eye(posterior.shape[1])[y]
    seen = np.unique(y)
    return replace(
        row,
        auc=float(np.mean([roc_auc_score(is_class[:, one], posterior[:, one]) for one in seen])),
        log_loss=compute_log_loss(y, posterior),
        brier=float(np.sum((posterior - is_class) ** 2, axis=1).mean() / 2.0),
        reliability=count_reliability(posterior.ravel(), is_class.ravel()),
    )


def _make_failed_row(key: ArenaKey, n_classes: int, error: str) -> ArenaRow:
    """A method that fails is as good as whoever says that all classes are equally likely."""
    equal = 1.0 / n_classes
    return ArenaRow(*key, accuracy=equal, log_loss=-np.log(equal), brier=(1.0 - equal) / 2.0, error=error)


def list_keys(
    sets: Iterable[str],
    twists: Iterable[str],
    methods: Iterable[str],
    seeds: int,
    max_rows: int,
    folder: str | None,
    several: bool = False,
) -> list[ArenaKey]:
    """List all that is to be run, seed by seed, so that what is there early covers everything once."""
    twists = list(twists)
    methods = list(methods)
    pairs = [(data, twist) for data in sets for twist in twists if applies(twist, _load_once(data, folder, several))]
    return [
        ArenaKey(data, twist, seed, max_rows, method)
        for seed in range(seeds)
        for data, twist in pairs
        for method in methods
    ]
