"""Fits a method to a twisted split of a table and judges it on the clean test rows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from experiments.arena.methods import METHODS
from experiments.arena.rows import ArenaKey, ArenaRow, count_reliability
from experiments.datasets import load
from experiments.protocol import Split, applies, split
from experiments.runner import summarise_error, time_fit, work_alone

__all__ = ["judge", "list_keys"]

_load_once = cache(load)


@lru_cache(maxsize=1)
def _split_once(data: str, twist: str, seed: int, max_rows: int, folder: str | None) -> Split:
    return split(_load_once(data, folder), twist, seed, max_rows)


@cache
def _warm_up(method: str) -> None:
    """A first tiny fit, so that no time of importing is counted."""
    X, y, *_ = split(_load_once("cancer"), "none", seed=0, max_rows=60)
    with work_alone():
        METHODS[method].fit(X, y, 0)


def judge(key: ArenaKey, folder: str | None = None) -> ArenaRow:
    """Fit one method and judge it on the clean test rows. An error is a result too."""
    try:
        X, y, X_test, y_test = _split_once(*key[:4], folder)
        method = METHODS[key.method]
        _warm_up(key.method)
        X_own, y_own = X.copy(), y.copy()  # A method that writes into them harms itself alone.
        with work_alone():
            model, seconds = time_fit(lambda: method.fit(X_own, y_own, key.seed))
            p = np.asarray(model.predict_proba(X_test), dtype=float)[:, 1]
            # A method with labels of its own may have moved the threshold.
            label = model.predict(X_test) if hasattr(model, "predict") else p > 0.5
        if not np.all((p >= 0) & (p <= 1)):
            raise ValueError("predict_proba gave something that is no probability")
    except Exception as error:  # Whatever a method fails of belongs in its row.
        return ArenaRow(*key, error=summarise_error(error))
    return ArenaRow(
        *key,
        accuracy=float(np.mean(label == y_test)),
        auc=float(roc_auc_score(y_test, p)),
        log_loss=float(log_loss(y_test, np.clip(p, 1e-6, 1 - 1e-6))),  # Certain and wrong costs 13.8, not infinity.
        brier=float(brier_score_loss(y_test, p)),
        seconds=seconds,
        reliability=count_reliability(p, y_test.astype(float)),
        version=method.version,
    )


def list_keys(
    sets: Iterable[str], twists: Iterable[str], methods: Iterable[str], seeds: int, max_rows: int, folder: str | None
) -> list[ArenaKey]:
    """List all that is to be run, seed by seed, so that what is there early covers everything once."""
    twists = list(twists)
    methods = list(methods)
    pairs = [(data, twist) for data in sets for twist in twists if applies(twist, _load_once(data, folder))]
    return [
        ArenaKey(data, twist, seed, max_rows, method)
        for seed in range(seeds)
        for data, twist in pairs
        for method in methods
    ]
