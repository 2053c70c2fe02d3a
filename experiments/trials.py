"""One trial of the reproduction: a split of a table, a twist of its training part, an algorithm, its test accuracy.

What is drawn depends on the data set, the twist and the seed alone: all algorithms meet the same split and twist.
"""

from __future__ import annotations

import datetime
import time
import warnings
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from experiments.algorithms import Algorithm, Lesson
from experiments.datasets import Table, load
from experiments.methods import installed
from experiments.protocol import Twister, stable
from untwist.arguments import Array

__all__ = ["Key", "Source", "Trial", "TrialRow", "judged", "long_servedio", "numeric", "table"]

PROFILED = "shoppers"  # the data set whose importances are drawn


class Source(NamedTuple):
    """Where tables come from."""

    folder: str | None = None
    download: bool = False


class Key(NamedTuple):
    """What was run: a data set, how it was split, twisted and learned; a repr says all that matters."""

    data: str
    split: str  # "random", or "grouped": rows that are equal stay together
    twist: str
    depth: int
    rounds: int
    algorithm: str
    seed: int


@dataclass(frozen=True)
class TrialRow:
    """What came out of a trial, or the error it ended with."""

    data: str
    split: str
    twist: str
    depth: int
    rounds: int
    algorithm: str
    seed: int
    digest: str = ""  # of the table
    accuracy: float = np.nan
    seconds: float = np.nan  # of processor time, for the fit, one thread
    alpha: float = np.nan
    kept: int = 0  # rounds
    importances: str = ""  # one number per column, with a space between
    version: str = ""
    date: str = ""
    error: str = ""

    @property
    def key(self) -> Key:
        """What was run."""
        return Key(self.data, self.split, self.twist, self.depth, self.rounds, self.algorithm, self.seed)


@dataclass(frozen=True)
class Trial:
    """What is to be run."""

    data: str
    twist: Twister | None
    depth: int
    rounds: int
    algorithm: Algorithm
    seed: int
    grouped: bool = False

    @property
    def key(self) -> Key:
        """Its key in the results file."""
        split = "grouped" if self.grouped else "random"
        twist = "untwisted" if self.twist is None else repr(self.twist)
        return Key(self.data, split, twist, self.depth, self.rounds, repr(self.algorithm), self.seed)


def long_servedio(rows: int = 2000, seed: int = 1) -> tuple[Array, NDArray[np.int64]]:
    """Long and Servedio's data, 21 features of -1 and 1, on which convex margin losses fail under label noise.

    A quarter large-margin rows (all features agree with the label), a quarter pullers (the first 11 agree, the others
    do not), half penalisers (5 of the first 11 and 6 of the last 10 agree). The sign of the sum is always right.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    agrees = np.ones((rows, 21), dtype=bool)
    kind = rng.choice(3, rows, p=[0.25, 0.25, 0.5])
    agrees[kind == 1, 11:] = False
    penalisers = np.flatnonzero(kind == 2)
    first = rng.permuted(np.tile(np.arange(11) < 5, (penalisers.size, 1)), axis=1)
    last = rng.permuted(np.tile(np.arange(10) < 6, (penalisers.size, 1)), axis=1)
    agrees[penalisers] = np.hstack([first, last])
    return np.where(agrees, 1.0, -1.0) * (2.0 * y - 1.0)[:, None], y.astype(np.int64)


@cache
def table(data: str, source: Source) -> tuple[Table, Array, str]:
    """A table, its features as numbers, and its digest."""
    if data == "long-servedio":
        made = Table(data, *long_servedio())
    else:
        made = load(data, source.folder, download=source.download)
    return made, numeric(made.X), made.digest


def numeric(X: Any) -> Array:
    """The features as numbers: categories by their place in the alphabet, as in the paper."""
    if not hasattr(X, "iloc"):
        return np.asarray(X, dtype=np.float64)
    coded = {name: X[name].cat.codes for name in X.select_dtypes("category")}
    return X.assign(**coded).to_numpy(dtype=np.float64)  # type: ignore[no-any-return]  # pandas is untyped here


@lru_cache(maxsize=2)
def _lesson(data: str, twist: str, twister: Any, seed: int, grouped: bool, source: Source) -> tuple[Lesson, Array, Any]:
    """The lesson of a run, without its depth and rounds, and the clean test rows."""
    made, X, _ = table(data, source)
    y = made.y
    assert y is not None, "the paper's tables have clean labels"
    draw = int(stable(data, seed, "grouped" if grouped else "").integers(2**31))
    if grouped:
        _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
        train_groups, _ = train_test_split(np.arange(first.size), test_size=0.3, stratify=y[first], random_state=draw)
        inside = np.isin(group.ravel(), train_groups)
        train, test = np.flatnonzero(inside), np.flatnonzero(~inside)
    else:
        train, test = train_test_split(np.arange(y.size), test_size=0.3, stratify=y, random_state=draw)
    X_twisted, y_twisted = X[train], y[train]
    if twister is not None:
        X_twisted, y_twisted, _ = twister.twist(X[train], y[train], stable(data, twist, seed, "twist"))
    return Lesson(X_twisted, y_twisted, X[train], y[train], 0, 0, seed), X[test], y[test]


@cache
def _warm_up(algorithm: Algorithm) -> None:
    """A first tiny fit, so that no time of importing is counted."""
    X = np.random.default_rng(0).random((60, 2))
    y = (X[:, 0] > 0.5).astype(np.int64)
    algorithm.fit(Lesson(X, y, X, y, 1, 2, 0))


def judged(trial: Trial, source: Source) -> TrialRow:
    """Fit and judge on the clean test rows. An error is a result too."""
    key = trial.key
    twister: Any = trial.twist  # Any, as a protocol cannot promise to be hashable
    algorithm: Any = trial.algorithm
    try:
        *_, digest = table(trial.data, source)
        lesson, X_test, y_test = _lesson(key.data, key.twist, twister, trial.seed, trial.grouped, source)
        lesson = lesson._replace(depth=trial.depth, rounds=trial.rounds)
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            _warm_up(algorithm)
            start = time.process_time()  # of this process, whatever else the machine does
            fitted = algorithm.fit(lesson)
            seconds = time.process_time() - start
            predicted = fitted.predict(X_test)
    except Exception as error:  # whatever an algorithm fails of belongs in its row
        return TrialRow(*key, error=" ".join(f"{type(error).__name__}: {error}".split())[:300])
    return TrialRow(
        *key,
        digest=digest,
        accuracy=float(np.mean(predicted == y_test)),
        seconds=seconds,
        alpha=float(fitted.alpha),
        kept=fitted.rounds,
        importances=" ".join(f"{one:.4g}" for one in fitted.importances) if trial.data == PROFILED else "",
        version=installed(trial.algorithm.packages),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )
