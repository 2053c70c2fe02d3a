"""One trial of the reproduction: a split of a table, a twist of its training part, an algorithm, its test accuracy.

What is drawn depends on the data set, the twist and the seed alone: all algorithms meet the same split and twist.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from experiments.datasets import Table, load
from experiments.paper.algorithms import Algorithm, Lesson
from experiments.peers import find_version
from experiments.protocol import Twister, make_rng
from experiments.runner import summarise_error, time_fit, work_alone
from untwist.arguments import Array

__all__ = ["Source", "Trial", "TrialKey", "TrialRow", "judge", "load_table", "make_long_servedio", "to_numbers"]

#: The data set whose importances are drawn.
PROFILED = "shoppers"


class Source(NamedTuple):
    """Where tables come from."""

    folder: str | None = None
    download: bool = False


class TrialKey(NamedTuple):
    """What was run: a data set, how it was split, twisted and learned; a repr says all that matters.

    The split is "random" or "grouped"; in the latter, rows that are equal stay together.
    """

    data: str
    split: str
    twist: str
    depth: int
    rounds: int
    algorithm: str
    seed: int


@dataclass(frozen=True)
class TrialRow:
    """What came out of a trial, or the error it ended with.

    `digest` is that of the table; `seconds` are those of the processor for the fit, with one thread; `kept` are rounds;
    `importances` have one number per column, with a space between.
    """

    data: str
    split: str
    twist: str
    depth: int
    rounds: int
    algorithm: str
    seed: int
    digest: str = ""
    accuracy: float = np.nan
    seconds: float = np.nan
    alpha: float = np.nan
    kept: int = 0
    importances: str = ""
    version: str = ""
    date: str = ""
    error: str = ""

    @property
    def key(self) -> TrialKey:
        """What was run."""
        return TrialKey(self.data, self.split, self.twist, self.depth, self.rounds, self.algorithm, self.seed)


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
    def key(self) -> TrialKey:
        """Its key in the results file."""
        split = "grouped" if self.grouped else "random"
        twist = "untwisted" if self.twist is None else repr(self.twist)
        return TrialKey(self.data, split, twist, self.depth, self.rounds, repr(self.algorithm), self.seed)


def make_long_servedio(rows: int = 2000, seed: int = 1) -> tuple[Array, NDArray[np.int64]]:
    """Make Long and Servedio's data, 21 features of -1 and 1, on which convex margin losses fail under label noise.

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
def load_table(data: str, source: Source) -> tuple[Table, Array, str]:
    """Load a table; give its features as numbers and its digest too."""
    if data == "long-servedio":
        made = Table(data, *make_long_servedio())
    else:
        made = load(data, source.folder, download=source.download)
    return made, to_numbers(made.X), made.digest


def to_numbers(X: Any) -> Array:
    """Write the features as numbers: categories by their place in the alphabet, as in the paper."""
    if not hasattr(X, "iloc"):
        return np.asarray(X, dtype=np.float64)
    coded = {name: X[name].cat.codes for name in X.select_dtypes("category")}
    return X.assign(**coded).to_numpy(dtype=np.float64)  # type: ignore[no-any-return]  # pandas is untyped here


@lru_cache(maxsize=2)
def _make_lesson(
    data: str, twist: str, twister: Any, seed: int, grouped: bool, source: Source
) -> tuple[Lesson, Array, Any]:
    """The lesson of a run, without its depth and rounds, and the clean test rows."""
    made, X, _ = load_table(data, source)
    y = made.y
    assert y is not None, "the paper's tables have clean labels"
    draw = int(make_rng(data, seed, "grouped" if grouped else "").integers(2**31))
    if grouped:
        _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
        train_groups, _ = train_test_split(np.arange(first.size), test_size=0.3, stratify=y[first], random_state=draw)
        inside = np.isin(group.ravel(), train_groups)
        train, test = np.flatnonzero(inside), np.flatnonzero(~inside)
    else:
        train, test = train_test_split(np.arange(y.size), test_size=0.3, stratify=y, random_state=draw)
    X_twisted, y_twisted = X[train], y[train]
    if twister is not None:
        X_twisted, y_twisted, _ = twister.twist(X[train], y[train], make_rng(data, twist, seed, "twist"))
    return Lesson(X_twisted, y_twisted, X[train], y[train], 0, 0, seed), X[test], y[test]


@cache
def _warm_up(algorithm: Algorithm) -> None:
    """A first tiny fit, so that no time of importing is counted."""
    X = np.random.default_rng(0).random((60, 2))
    y = (X[:, 0] > 0.5).astype(np.int64)
    algorithm.fit(Lesson(X, y, X, y, 1, 2, 0))


def judge(trial: Trial, source: Source) -> list[TrialRow]:
    """Fit and judge on the clean test rows; give the one row of a trial. An error is a result too."""
    key = trial.key
    twister: Any = trial.twist  # A protocol cannot promise to be hashable.
    algorithm: Any = trial.algorithm
    try:
        *_, digest = load_table(trial.data, source)
        lesson, X_test, y_test = _make_lesson(key.data, key.twist, twister, trial.seed, trial.grouped, source)
        lesson = lesson._replace(depth=trial.depth, rounds=trial.rounds)
        with work_alone():
            _warm_up(algorithm)
            trained, seconds = time_fit(lambda: algorithm.fit(lesson))
            predicted = trained.predict(X_test)
    except Exception as error:  # Whatever an algorithm fails of belongs in its row.
        return [TrialRow(*key, error=summarise_error(error))]
    row = TrialRow(
        *key,
        digest=digest,
        accuracy=float(np.mean(predicted == y_test)),
        seconds=seconds,
        alpha=float(trained.alpha),
        kept=trained.rounds,
        importances=" ".join(f"{one:.4g}" for one in trained.importances) if trial.data == PROFILED else "",
        version=find_version(trial.algorithm.packages),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )
    return [row]
