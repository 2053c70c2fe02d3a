"""The compiled engine: PILBoost over histogram trees, all rounds in compiled code.

Columns are binned once into one-byte codes, weights are fixed-point numbers and all sums whole numbers, so that the
model is the same, bit for bit, for any number of threads and any order of the rows. The rounding of the weights (2^-17
for many rows, 2^-24 for few; relative to the largest sample weight) and single precision in computing them are all that
separates it from exact arithmetic over the same splits. A row with a sample weight smaller than that share of the
largest counts for nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist import _core
from untwist.arguments import Array
from untwist.links import CanonicalLink, Link
from untwist.losses import AlphaLoss

__all__ = ["Forest", "Tree", "TreeRound", "booster", "grown", "rounds", "run", "threads"]


@dataclass(frozen=True)
class Forest:
    """Trees as flat arrays, node by node and tree by tree.

    Tree t has the nodes offset[t] to offset[t+1]; `left` counts from its first node, and the right child follows the
    left one. A row goes left where X[feature] <= threshold, a missing value where `missing_left`. feature is -1 at a
    leaf, whose `value` is what the tree adds to the score.
    """

    edge: Array
    offset: NDArray[np.int64]
    feature: NDArray[np.int32]
    left: NDArray[np.int32]
    threshold: Array
    missing_left: NDArray[np.uint8]
    value: Array
    gain: Array
    step_size: float

    def __len__(self) -> int:
        return len(self.edge)

    @property
    def leverage(self) -> Array:
        """The coefficient of each tree, step_size * edge."""
        return self.step_size * self.edge

    def trees(self, n_features: int) -> list[Tree]:
        """Each tree as a weak hypothesis."""
        return [Tree(self, index, n_features) for index in range(len(self))]

    def first(self, count: int) -> Forest:
        """The forest of the first `count` trees."""
        nodes = slice(0, int(self.offset[count]))
        names = ("feature", "left", "threshold", "missing_left", "value", "gain")
        arrays = {name: getattr(self, name)[nodes] for name in names}
        return Forest(edge=self.edge[:count], offset=self.offset[: count + 1], step_size=self.step_size, **arrays)

    def scores(self, X: Any, first: int = 0, last: int | None = None, n_jobs: int | None = None) -> Array:
        """Scores of rows of float32 or float64 numbers: the sum over trees [first, last)."""
        X = _table(X)
        out = np.zeros(len(X))
        nodes = (self.offset, self.feature, self.left, self.threshold, self.missing_left, self.value)
        _core.add_scores(X, *nodes, first, len(self) if last is None else last, threads(n_jobs), out)
        return out


class Tree:
    """One tree of a forest as a weak hypothesis h: `predict` gives values in [-1, 1]."""

    def __init__(self, forest: Forest, index: int, n_features: int) -> None:
        self.forest, self.index, self.n_features = forest, index, n_features

    def predict(self, X: Any) -> Array:
        """h(x): what the tree adds to the score, over its leverage."""
        leverage = self.forest.leverage[self.index]
        added = self.forest.scores(X, self.index, self.index + 1, n_jobs=1)
        return added / leverage if leverage else added

    @property
    def feature_importances_(self) -> Array:
        """Each feature's share of the tree's gain."""
        nodes = slice(*self.forest.offset[self.index : self.index + 2])
        inner = self.forest.feature[nodes] >= 0
        gain = np.bincount(
            self.forest.feature[nodes][inner], weights=self.forest.gain[nodes][inner], minlength=self.n_features
        )
        return np.asarray(gain / gain.sum() if gain.sum() else gain, dtype=np.float64)


@dataclass(frozen=True)
class TreeRound:
    """One round of the compiled engine, as the consumers of `untwist.boosting` take it."""

    index: int
    hypothesis: Tree
    edge: float
    leverage: float


def threads(n_jobs: int | None) -> int:
    """As many threads as `n_jobs` says: all that this process may use for None and -1, all but one for -2, ..."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be an integer other than 0, or None for all threads, got {n_jobs!r}")
    return max(1, available + 1 + int(n_jobs)) if n_jobs < 0 else min(int(n_jobs), 256)


def _table(X: Any) -> Any:
    """X as float32 or float64 numbers in a layout that the core reads."""
    X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return np.ascontiguousarray(X) if any(stride % X.itemsize for stride in X.strides) else X


def booster(
    X: Any,
    signs: Array,
    sample_weight: Array | None,
    link: Link,
    step_size: float,
    *,
    max_depth: int,
    max_bins: int,
    l2: float,
    n_jobs: int | None,
) -> _core.Booster:
    """A booster for the links of the alpha-loss, its rows binned, no round run yet."""
    if not isinstance(link.loss, AlphaLoss):
        raise ValueError(f"the compiled engine boosts the alpha-loss only, got {link.loss!r}")
    weight, largest = np.zeros(0), 1.0
    if sample_weight is not None:
        largest = float(sample_weight.max())
        weight = weight if (sample_weight == largest).all() else sample_weight
    exact, alpha = isinstance(link, CanonicalLink), abs(link.loss.alpha)
    labels = (signs > 0).astype(np.uint8)
    return _core.booster(
        _table(X), labels, weight, alpha, exact, step_size, max_depth, l2 / largest, max_bins, threads(n_jobs)
    )


def run(engine: _core.Booster, most: int) -> None:
    """All rounds without looking at them, a few at a time so that Ctrl-C is heard in between."""
    done = 0
    while done < most:
        before, done = done, engine.boost(min(16, most - done))
        if done == before:
            return


def grown(engine: _core.Booster, step_size: float) -> Forest:
    """All trees so far."""
    return Forest(*engine.trees(0), step_size=step_size)


def rounds(engine: _core.Booster, most: int, step_size: float, n_features: int) -> Iterator[TreeRound]:
    """One round at a time, for whoever wants to look at each."""
    for index in range(most):
        if engine.boost(1) == index:
            return
        forest = Forest(*engine.trees(index), step_size=step_size)
        yield TreeRound(index, Tree(forest, 0, n_features), float(forest.edge[0]), float(forest.leverage[0]))
