"""Fits methods to a twisted split of a table and judges them on the clean test rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from experiments.arena.methods import METHODS, Model
from experiments.arena.rows import ArenaJob, ArenaKey, ArenaRow, count_reliability
from experiments.datasets import Labels, Table, drop_rare_classes, load, load_several
from experiments.peers import compute_log_loss, spread_columns
from experiments.protocol import Split, applies, split
from experiments.runner import summarise_error, time_fit, work_alone
from untwist.arguments import Array

__all__ = ["LEAST_ROWS", "Fits", "judge", "list_jobs", "predict"]

#: Of tables of several classes, those with fewer rows than this are dropped: they cannot be split.
LEAST_ROWS = 8


@cache
def _load_once(data: str, folder: str | None = None, several: bool = False) -> Table:
    return drop_rare_classes(load_several(data, folder), LEAST_ROWS)[0] if several else load(data, folder)


@lru_cache(maxsize=1)
def _split_once(data: str, twist: str, seed: int, max_rows: int, folder: str | None, several: bool = False) -> Split:
    return split(_load_once(data, folder, several), twist, seed, max_rows)


class Fits:
    """Fits to the same rows, each made once: a method may go on from the fit of another.

    Parameters
    ----------
    X, y : DataFrame and labels
        The training rows; labels are 0, 1, ... without gaps.
    seed : int
        Of what methods draw.
    """

    def __init__(self, X: Any, y: Labels, seed: int) -> None:
        self._rows = X, y
        self._seed = seed
        self._fits: dict[str, tuple[Model, float]] = {}

    def fit(self, name: str) -> tuple[Model, float]:
        """Fit a method, unless that is done.

        Parameters
        ----------
        name : str
            A name of `METHODS`.

        Returns
        -------
        Model
            The model.
        float
            Its seconds of processor time, with those of the fit that it goes on from.
        """
        if name not in self._fits:
            method = METHODS[name]
            before, seconds_before = self.fit(method.follows) if method.follows else (None, 0.0)
            given = [before] if method.follows else []
            X, y = (part.copy() for part in self._rows)  # A method that writes into its rows harms itself alone.
            _import(method.packages)
            model, seconds = time_fit(lambda: method.fit(X, y, self._seed, *given))
            self._fits[name] = model, seconds_before + seconds
        return self._fits[name]


def _import(packages: tuple[str, ...]) -> None:
    """Import what a method needs, so that no time of importing is counted."""
    if packages[-1] != "scikit-learn":  # It is there already, by another name.
        import_module(packages[-1])


def judge(job: ArenaJob, folder: str | None = None, several: bool = False) -> list[ArenaRow]:
    """Fit methods to the same split and judge them on its clean test rows. An error is a result too.

    Parameters
    ----------
    job : ArenaJob
        What to run.
    folder : str, optional
        The folder of the data sets.
    several : bool
        Whether the data set is one of several classes.

    Returns
    -------
    list of ArenaRow
        One for each method of the job.
    """
    n_classes = 2
    try:
        n_classes = len(_load_once(job.data, folder, several).classes)
        part = _split_once(*job[:4], folder, several)
    except Exception as error:  # What cannot be loaded or split is a row of every method.
        return [_make_failed_row(key, n_classes, error) for key in job.keys]
    # A class may have lost all of its labels; those that are left are numbered without gaps.
    classes, labels = np.unique(part.y, return_inverse=True)
    fits = Fits(part.X, labels.astype(np.int64), job.seed)
    rows = []
    for key in job.keys:
        try:
            with work_alone():
                model, seconds = fits.fit(key.method)
                posterior, label = predict(model, part.X_test)
            posterior = spread_columns(posterior, classes, n_classes)
            if not np.all((posterior >= 0) & (posterior <= 1)):
                raise ValueError("predict_proba gave something that is no probability")
            row = ArenaRow(*key, seconds=seconds, version=METHODS[key.method].version)
            rows.append(_measure(row, posterior, classes[label], part.y_test))
        except Exception as error:  # Whatever a method fails of belongs in its row.
            rows.append(_make_failed_row(key, n_classes, error))
    return rows


def predict(model: Model, X: Any) -> tuple[Array, Any]:
    """Predict posteriors and labels.

    Parameters
    ----------
    model : Model
        A fitted model.
    X : DataFrame
        Rows.

    Returns
    -------
    posterior, label : array
    """
    posterior = np.asarray(model.predict_proba(X), dtype=float)
    # A method with labels of its own may have moved the threshold.
    return posterior, model.predict(X) if hasattr(model, "predict") else posterior.argmax(axis=1)


def _measure(row: ArenaRow, posterior: Array, label: Any, y: Labels) -> ArenaRow:
    """The row with all metrics; where a metric knows two classes only, each of several is set against the rest."""
    is_class = np.eye(posterior.shape[1])[y]
    judged = slice(1 if posterior.shape[1] == 2 else 0, None)  # P(0) says nothing that P(1) does not.
    return replace(
        row,
        accuracy=float(np.mean(label == y)),
        auc=float(np.mean([roc_auc_score(is_class[:, one], posterior[:, one]) for one in np.unique(y)])),
        log_loss=compute_log_loss(y, posterior),
        brier=float(np.sum((posterior - is_class) ** 2, axis=1).mean() / 2.0),
        reliability=count_reliability(posterior[:, judged].ravel(), is_class[:, judged].ravel()),
    )


def _make_failed_row(key: ArenaKey, n_classes: int, error: Exception) -> ArenaRow:
    """A method that fails is as good as whoever says that all classes are equally likely."""
    equal = 1.0 / n_classes
    words = summarise_error(error)
    return ArenaRow(*key, accuracy=equal, log_loss=-np.log(equal), brier=(1.0 - equal) / 2.0, error=words)


def list_jobs(
    sets: Iterable[str],
    twists: Iterable[str],
    methods: Iterable[str],
    seeds: int,
    max_rows: int,
    folder: str | None,
    several: bool = False,
) -> list[ArenaJob]:
    """List all that is to be run, seed by seed, so that what is there early covers everything once."""
    twists = list(twists)
    groups: dict[str, list[str]] = {}
    for method in methods:
        groups.setdefault(METHODS[method].follows or method, []).append(method)
    pairs = [(data, twist) for data in sets for twist in twists if applies(twist, _load_once(data, folder, several))]
    return [
        ArenaJob(data, twist, seed, max_rows, tuple(group))
        for seed in range(seeds)
        for data, twist in pairs
        for group in groups.values()
    ]
