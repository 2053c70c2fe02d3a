"""The protocol of an experiment: how a table is split, what a twist does to the training part. Test rows stay clean.

Whatever is drawn depends on data set, twist and seed alone, so that all methods meet the same split and the same twist.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from untwist.experiments.datasets import Labels, Table
from untwist.twisters import ClassNoise

__all__ = ["REAL", "TWISTS", "Split", "applies", "split", "twisted"]

REAL = "real"


class Split(NamedTuple):
    """Twisted training data, clean test data."""

    X: Any
    y: Labels
    X_test: Any
    y_test: Labels


def stable(*parts: object) -> np.random.Generator:
    """Random numbers that depend on the parts alone, today and tomorrow."""
    return np.random.default_rng(zlib.crc32("|".join(map(str, parts)).encode()))


def _class_noise(negative: float, positive: float, X: Any, y: Labels, rng: np.random.Generator) -> tuple[Any, Labels]:
    flips = rng.random(y.size) < np.where(y == 1, positive, negative)
    return X, np.where(flips, 1 - y, y)


def _feature_noise(p: float, X: Any, y: Labels, rng: np.random.Generator) -> tuple[Any, Labels]:
    """A row is hit with probability p, then each of its cells with probability p: a draw from its column."""
    hit = (rng.random(y.size) < p)[:, None] & (rng.random(X.shape) < p)
    X = X.copy()
    for j, column in enumerate(X):
        source = np.where(hit[:, j], rng.integers(y.size, size=y.size), np.arange(y.size))
        X[column] = X[column].iloc[source].set_axis(X.index)
    return X, y


def _insider(X: Any, y: Labels, rng: np.random.Generator) -> tuple[Any, Labels]:
    """The two most informative columns: noise of two standard deviations, or categories shifted in half of the rows."""
    X = X.copy()
    for column in sorted(X, key=lambda name: -information(X[name], y))[:2]:
        if X[column].dtype == "category":
            codes, kind = X[column].cat.codes.to_numpy(), X[column].dtype
            shifted = (codes + (rng.random(y.size) < 0.5)) % len(kind.categories)
            X[column] = type(X[column].array).from_codes(np.where(codes < 0, -1, shifted), dtype=kind)
        else:
            X[column] = X[column] + rng.normal(scale=2.0 * X[column].std(ddof=0), size=y.size)
    return X, y


def information(column: Any, y: Labels) -> float:
    """Mutual information of a column, in tenths if it holds numbers, with the labels."""
    if column.dtype == "category":
        codes = column.cat.codes.to_numpy() + 1  # 0 is missing
    else:
        known = column.dropna()
        edges = np.unique(known.quantile(np.linspace(0, 1, 11)[1:-1])) if len(known) else np.zeros(0)
        codes = np.where(column.isna(), 0, 1 + np.searchsorted(edges, column.fillna(0.0)))
    joint = np.histogram2d(codes, y, bins=(codes.max() + 1, 2))[0] / y.size
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    return float(np.sum(joint[there] * np.log(joint[there] / apart[there])))


def _symmetric(rate: float) -> Callable[[Any, Labels, np.random.Generator], tuple[Any, Labels]]:
    return lambda X, y, rng: ClassNoise(rate).twist(X, y, rng)[:2]


#: What is done to the training data; "real" stands for real noisy labels, which are there already.
TWISTS: dict[str, Callable[[Any, Labels, np.random.Generator], tuple[Any, Labels]]] = {
    "none": lambda X, y, _: (X, y),
    **{f"symmetric-{rate}": _symmetric(rate) for rate in (0.1, 0.2, 0.3, 0.4)},
    "class-0.1-0.4": lambda X, y, rng: _class_noise(0.1, 0.4, X, y, rng),  # of the negatives, of the positives
    "class-0.4-0.1": lambda X, y, rng: _class_noise(0.4, 0.1, X, y, rng),
    "features": lambda X, y, rng: _feature_noise(0.3, X, y, rng),
    "insider": _insider,
    REAL: lambda X, y, _: (X, y),
}


def twisted(twist: str, X: Any, y: Labels, rng: np.random.Generator) -> tuple[Any, Labels]:
    """Training data (a DataFrame and labels 0, 1) as the twist leaves it; the arguments stay as they are."""
    return TWISTS[twist](X, y, rng)


def applies(twist: str, table: Table) -> bool:
    """Real noise needs noisy labels, every other twist clean ones."""
    return (table.y_noisy if twist == REAL else table.y) is not None


def split(table: Table, twist: str, seed: int, max_rows: int) -> Split:
    """A 70/30 stratified split, or the fixed one, of at most `max_rows` rows each; the training part twisted."""
    import pandas as pd

    y = table.y_noisy if twist == REAL else table.y
    assert y is not None, "see applies"
    rng = stable(table.name, seed)  # the same split for all twists
    train, test, y_test = np.arange(y.size), None, table.y_test
    if y_test is None:
        assert table.y is not None, "noisy labels without a test part"
        train, test = train_test_split(train, test_size=0.3, stratify=table.y, random_state=int(rng.integers(2**31)))
        y_test = table.y
    else:
        test = np.arange(y_test.size)
    train, test = _at_most(max_rows, train, y, rng), _at_most(max_rows, test, y_test, rng)
    columns = [f"c{j}" for j in range(table.X.shape[1])]  # some peers refuse brackets in a name
    X = pd.DataFrame(table.X).set_axis(columns, axis=1)
    X_test = X if table.X_test is None else pd.DataFrame(table.X_test).set_axis(columns, axis=1)
    X_train, y_train = twisted(
        twist, X.iloc[train].reset_index(drop=True), y[train], stable(table.name, twist, seed, "twist")
    )
    return Split(X_train, y_train, X_test.iloc[test].reset_index(drop=True), y_test[test])


def _at_most(size: int, rows: Any, y: Labels, rng: np.random.Generator) -> Any:
    """A stratified draw of so many of the rows."""
    if rows.size <= size:
        return rows
    return train_test_split(rows, train_size=size, stratify=y[rows], random_state=int(rng.integers(2**31)))[0]
