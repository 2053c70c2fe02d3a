"""The protocol of an experiment: how a table is split, what a twist does to the training part. Test rows stay clean.

Whatever is drawn depends on data set, twist and seed alone, so that all methods meet the same split and the same twist.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.model_selection import train_test_split

from experiments.datasets import Labels, Table
from untwist.twisters import (
    ClassConditionalNoise,
    ClassNoise,
    FeatureNoise,
    Insider,
    InstanceNoise,
    OneBadClass,
    PairFlips,
    RandomTransitions,
    SourceNoise,
)

__all__ = [
    "REAL",
    "SEVERAL_TWISTS",
    "SOURCE",
    "TWISTS",
    "AnyBadClass",
    "AnyBadSource",
    "AnyTransitions",
    "RisingOverTime",
    "Split",
    "Twister",
    "applies",
    "apply_twist",
    "make_rng",
    "split",
]

#: The twist of tables that come with noisy labels.
REAL = "real"
#: Columns that some twists add to a table: who gave the label, and when. The true label depends on neither.
SOURCE = "source"
TIME = "time"
#: How many sources there are, of which one is bad.
SOURCES = 8


class Twister(Protocol):
    """What is in `untwist.twisters`."""

    def twist(self, X: Any, y: Any, rng: np.random.Generator | int | None) -> tuple[Any, Any, Any]:
        """Return twisted X and y, and what was changed."""


class Split(NamedTuple):
    """Twisted training data, clean test data."""

    X: Any
    y: Labels
    X_test: Any
    y_test: Labels


def make_rng(*parts: object) -> np.random.Generator:
    """Make random numbers that depend on the parts alone, today and tomorrow."""
    return np.random.default_rng(zlib.crc32("|".join(map(str, parts)).encode()))


@dataclass(frozen=True)
class AnyBadClass:
    """One bad class that is drawn with the flips: that of a random row, which is taken for any other class.

    Rare classes are drawn rarely, as a bad class of three rows would show nothing.
    """

    rate: float

    def twist(self, X: Any, y: Any, rng: np.random.Generator | int | None) -> tuple[Any, Any, Any]:
        """Return X, y with labels of one class changed, and the rows that were changed."""
        rng = np.random.default_rng(rng)
        label = y[rng.integers(len(y))]
        others = np.unique(y[y != label])
        return OneBadClass(self.rate, label, rng.choice(others)).twist(X, y, rng)


@dataclass(frozen=True)
class AnyTransitions:
    """A transition matrix that is drawn with the flips, with rates up to the one that is given."""

    rate: float

    def twist(self, X: Any, y: Any, rng: np.random.Generator | int | None) -> tuple[Any, Any, Any]:
        """Return X, y with labels drawn from the matrix, and the rows that were changed."""
        rng = np.random.default_rng(rng)
        return RandomTransitions(self.rate, int(rng.integers(2**31))).twist(X, y, rng)


@dataclass(frozen=True)
class AnyBadSource:
    """Rows of eight sources, which are a column of the table; one that is drawn is bad, the others are not perfect."""

    rate: float
    others: float

    def twist(self, X: Any, y: Any, rng: np.random.Generator | int | None) -> tuple[Any, Any, Any]:
        """Return X with the sources, y with labels changed, and the rows that were changed."""
        import pandas as pd

        rng = np.random.default_rng(rng)
        names = [f"branch {number}" for number in range(SOURCES)]
        X = X.assign(**{SOURCE: pd.Categorical(rng.choice(names, size=len(y)), categories=names)})
        return SourceNoise(SOURCE, {rng.choice(names): self.rate}, self.others).twist(X, y, rng)


@dataclass(frozen=True)
class RisingOverTime:
    """Rows of some time, which is a column of the table; later ones are wrong more often."""

    rate: float

    def twist(self, X: Any, y: Any, rng: np.random.Generator | int | None) -> tuple[Any, Any, Any]:
        """Return X with the time, from 0 to 1, y with labels changed, and the rows that were changed."""
        rng = np.random.default_rng(rng)
        return InstanceNoise(self.rate, TIME).twist(X.assign(**{TIME: rng.random(len(y))}), y, rng)


#: What is done to the training data; "real" stands for real noisy labels, which are there already.
TWISTS: dict[str, Twister | None] = {
    "none": None,
    **{f"symmetric-{rate}": ClassNoise(rate) for rate in (0.1, 0.2, 0.3, 0.4)},
    "class-0.1-0.4": ClassConditionalNoise(rate_neg=0.1, rate_pos=0.4),
    "class-0.4-0.1": ClassConditionalNoise(rate_neg=0.4, rate_pos=0.1),
    "features": FeatureNoise(0.3),
    "insider": Insider(2, noise=2.0),
    REAL: None,
    "pair-0.1": PairFlips(0.1),
    "pair-0.3": PairFlips(0.3),
    "one-class-0.4": AnyBadClass(0.4),
    "random-matrix": AnyTransitions(0.5),
    "source-0.45": AnyBadSource(0.45, 0.05),
    "boundary-0.2": InstanceNoise(0.2),
    "time-0.2": RisingOverTime(0.2),
}
#: Twists that are for two classes, and those that with two classes are others by another name.
TWO_CLASS_TWISTS = ("class-0.1-0.4", "class-0.4-0.1")
SEVERAL_TWISTS = ("pair-0.1", "pair-0.3", "one-class-0.4", "random-matrix")


def apply_twist(twist: str, X: Any, y: Labels, rng: np.random.Generator) -> tuple[Any, Labels]:
    """Twist training data; the arguments stay as they are.

    Parameters
    ----------
    twist : str
        A name of `TWISTS`.
    X, y : DataFrame and array
        Rows and their labels, from 0 up.
    rng : numpy.random.Generator
        What draws.

    Returns
    -------
    X, y : DataFrame and array
    """
    twister = TWISTS[twist]
    return (X, y) if twister is None else twister.twist(X, y, rng)[:2]


def applies(twist: str, table: Table) -> bool:
    """Find out whether a table can be twisted so: real noise needs noisy labels, every other twist clean ones.

    Some twists are for two classes and some for more.

    Parameters
    ----------
    twist : str
        A name of `TWISTS`.
    table : Table
        The table.

    Returns
    -------
    bool
    """
    if twist in (SEVERAL_TWISTS if len(table.classes) == 2 else TWO_CLASS_TWISTS):
        return False
    return (table.y_noisy if twist == REAL else table.y) is not None


def split(table: Table, twist: str, seed: int, max_rows: int) -> Split:
    """Split 70/30 and stratified, or as the table is split, and twist the first part.

    Parameters
    ----------
    table : Table
        The table.
    twist : str
        A name of `TWISTS`.
    seed : int
        Of the split.
    max_rows : int
        Rows of each part, at most.

    Returns
    -------
    Split
    """
    import pandas as pd

    y = table.y_noisy if twist == REAL else table.y
    assert y is not None, "see applies"
    rng = make_rng(table.name, seed)  # The split is the same for all twists.
    train = np.arange(y.size)
    y_test = table.y_test
    if y_test is None:
        assert table.y is not None, "noisy labels without a test part"
        train, test = train_test_split(train, test_size=0.3, stratify=table.y, random_state=int(rng.integers(2**31)))
        y_test = table.y
    else:
        test = np.arange(y_test.size)
    train = _draw_at_most(max_rows, train, y, rng)
    test = _draw_at_most(max_rows, test, y_test, rng)
    columns = [f"c{j}" for j in range(table.X.shape[1])]  # Some peers refuse brackets in a name.
    X = pd.DataFrame(table.X).set_axis(columns, axis=1)
    X_test = X if table.X_test is None else pd.DataFrame(table.X_test).set_axis(columns, axis=1)
    X_train, y_train = apply_twist(
        twist, X.iloc[train].reset_index(drop=True), y[train], make_rng(table.name, twist, seed, "twist")
    )
    X_test = X_test.iloc[test].reset_index(drop=True)
    for added in X_train.columns.difference(X_test.columns):
        # Whoever gave a label, and when, has nothing to do with the row.
        drawn = make_rng(table.name, twist, seed, added).integers(len(X_train), size=len(X_test))
        X_test = X_test.assign(**{added: X_train[added].take(drawn).array})
    return Split(X_train, y_train, X_test, y_test[test])


def _draw_at_most(size: int, rows: Any, y: Labels, rng: np.random.Generator) -> Any:
    """Draw `size` of the rows, stratified."""
    if rows.size <= size:
        return rows
    return train_test_split(rows, train_size=size, stratify=y[rows], random_state=int(rng.integers(2**31)))[0]
