"""The compiled engine: PILBoost over histogram trees, all rounds in compiled code.

Columns are binned once into one-byte codes, weights are fixed-point numbers and all sums whole numbers, so that the
model is the same, bit for bit, for any number of threads and any order of the rows. The rounding of the weights (2^-17
for many rows, 2^-24 for few; relative to the largest sample weight) and single precision in computing them are all that
separates it from exact arithmetic over the same splits. A row with a sample weight smaller than that share of the
largest counts for nothing. Of more than 100,000 rows a sample places the thresholds of columns with many values.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from untwist import _core
from untwist.arguments import Array
from untwist.data.workers import ALONE, Workers
from untwist.theory.links import CanonicalLink, Link
from untwist.theory.losses import AlphaLoss

__all__ = [
    "Forest",
    "Growth",
    "Tree",
    "booster",
    "dataset",
    "grown",
    "own_weights",
    "row_blocks",
    "shared_bins",
    "threads",
]

NONE = np.zeros(0)
MOST_COPIES = 128  # whole sample weights up to here count copies


@dataclass(frozen=True)
class Growth:
    """How trees grow. `l2` and `min_samples_leaf` count in rows."""

    max_depth: int = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: float = 1
    min_weight_fraction_leaf: float = 0.0
    l2: float = 0.0
    category_smoothing: float = 10.0  # rare categories must not lead the order in which categories are split
    subsample: float = 1.0
    max_features: float = 1.0
    seed: int = 0
    monotone: tuple[int, ...] = ()


@dataclass(frozen=True)
class Forest:
    """Trees as flat arrays, node by node and tree by tree.

    Tree t has the nodes offset[t] to offset[t+1]; `left` counts from its first node, and the right child follows the
    left one. A row goes left where X[feature] <= threshold, a missing value where `missing_left`. Where `set` is not
    -1 the column holds categories, and those whose bit is set in codes[4*set : 4*set+4] go left. feature is -1 at a
    leaf, whose `value` is what the tree adds to the score.
    """

    edge: Array
    leverage: Array
    offset: NDArray[np.int64]
    feature: NDArray[np.int32]
    left: NDArray[np.int32]
    threshold: Array
    missing_left: NDArray[np.uint8]
    value: Array
    gain: Array
    set: NDArray[np.int32]
    codes: NDArray[np.uint64]
    n_features: int

    def __len__(self) -> int:
        return len(self.edge)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def prepared(self) -> _core.Forest:
        """The trees as the compiled core walks them."""
        nodes = (self.offset, self.feature, self.left, self.threshold, self.missing_left, self.value)
        return _core.Forest(*nodes, self.set, self.codes, self.n_features)

    def trees(self) -> list[Tree]:
        """Each tree as a weak hypothesis."""
        return [Tree(self, index) for index in range(len(self))]

    def first(self, count: int) -> Forest:
        """The forest of the first `count` trees."""
        nodes = slice(0, int(self.offset[count]))
        names = ("feature", "left", "threshold", "missing_left", "value", "gain", "set")
        arrays = {name: getattr(self, name)[nodes] for name in names}
        arrays |= {name: getattr(self, name)[:count] for name in ("edge", "leverage")}
        return replace(self, offset=self.offset[: count + 1], **arrays)

    def followed_by(self, other: Forest) -> Forest:
        """The trees of this forest, then those of the other."""
        names = ("edge", "leverage", "feature", "left", "threshold", "missing_left", "value", "gain", "codes")
        arrays: dict[str, Any] = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in names}
        offset = np.concatenate([self.offset, other.offset[1:] + self.offset[-1]])
        moved = np.where(other.set >= 0, other.set + len(self.codes) // 4, -1).astype(np.int32)
        return replace(self, offset=offset, set=np.concatenate([self.set, moved]), **arrays)

    @staticmethod
    def mean(forests: Sequence[Forest]) -> Forest:
        """The forest whose scores are the mean: a tree of each in turn, its value divided by their number."""
        turns = [(t, f) for t in range(max(map(len, forests))) for f in forests if t < len(f)]
        nodes = [slice(int(f.offset[t]), int(f.offset[t + 1])) for t, f in turns]
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(f, name)[part] for (_, f), part in zip(turns, nodes, strict=True)])
            for name in ("feature", "left", "threshold", "missing_left", "value", "gain")
        }
        arrays |= {name: np.array([getattr(f, name)[t] for t, f in turns]) for name in ("edge", "leverage")}
        arrays["value"], arrays["leverage"] = arrays["value"] / len(forests), arrays["leverage"] / len(forests)
        before = dict(zip(map(id, forests), np.cumsum([0, *(len(f.codes) // 4 for f in forests)]), strict=False))
        sets = [
            np.where(f.set[part] >= 0, f.set[part] + before[id(f)], -1)
            for (_, f), part in zip(turns, nodes, strict=True)
        ]
        offset = np.cumsum([0, *(part.stop - part.start for part in nodes)])
        codes = np.concatenate([f.codes for f in forests])
        return replace(forests[0], offset=offset, set=np.concatenate(sets).astype(np.int32), codes=codes, **arrays)

    def scores(self, X: Any, first: int = 0, last: int | None = None, n_jobs: int | None = None) -> Array:
        """Scores of rows of numbers: the sum over trees [first, last)."""
        last = len(self) if last is None else last
        out = np.zeros(X.shape[0])
        for rows, block in row_blocks(X):
            self.prepared.add_scores(block, first, last, threads(n_jobs), out[rows])
        return out

    def leaves(self, X: Any, n_jobs: int | None = None) -> NDArray[np.int32]:
        """For every row and tree the leaf, as an index into the tree's nodes."""
        out = np.zeros((X.shape[0], len(self)), dtype=np.int32)
        for rows, block in row_blocks(X):
            self.prepared.leaves(block, 0, len(self), threads(n_jobs), out[rows])
        return out


class Tree:
    """One tree of a forest as a weak hypothesis h: `predict` gives values in [-1, 1]."""

    def __init__(self, forest: Forest, index: int) -> None:
        self.forest, self.index = forest, index

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
            self.forest.feature[nodes][inner], weights=self.forest.gain[nodes][inner], minlength=self.forest.n_features
        )
        return np.asarray(gain / gain.sum() if gain.sum() else gain, dtype=np.float64)


def threads(n_jobs: int | None) -> int:
    """As many threads as `n_jobs` says: all that this process may use for None and -1, all but one for -2, ..."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be an integer other than 0, or None for all threads, got {n_jobs!r}")
    return max(1, available + 1 + int(n_jobs)) if n_jobs < 0 else min(int(n_jobs), 256)


BLOCK = 1 << 23  # cells of a sparse table made dense at a time


def row_blocks(X: Any) -> Iterator[tuple[slice, Any]]:
    """X in blocks of dense rows: (rows, block), one block unless it is sparse or comes in blocks."""
    first = 0
    for block in map(_dense, X.blocks() if hasattr(X, "blocks") else _dense_rows(X)):
        yield slice(first, first + len(block)), block
        first += len(block)
    if first != X.shape[0]:
        raise ValueError(f"the table had {X.shape[0]} rows when it was read first, and {first} now: begin again")


def _dense_rows(X: Any) -> Iterator[Any]:
    if not sparse.issparse(X):
        yield X
        return
    rows = X.tocsr()
    step = max(1, BLOCK // max(1, X.shape[1]))
    for first in range(0, X.shape[0], step):
        yield rows[first : first + step].toarray()


def _column_blocks(X: Any) -> Any:
    """The same by columns: (first column, block)."""
    if not sparse.issparse(X):
        yield 0, _dense(X)
        return
    columns = X.tocsc()
    step = max(1, BLOCK // max(1, X.shape[0]))
    for first in range(0, X.shape[1], step):
        yield first, _dense(columns[:, first : first + step].toarray())


def _dense(X: Any) -> Any:
    """X as float32 or float64 numbers in a layout that the core reads."""
    X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    regular = X.flags.aligned and not any(stride % X.itemsize for stride in X.strides)
    return X if regular else np.array(X, order="C")


def dataset(
    X: Any,
    labels: NDArray[Any],
    weight: Array | None = None,
    *,
    categories: Mapping[int, int] | None = None,
    max_bins: int = 255,
    n_jobs: int | None = None,
) -> _core.Dataset:
    """Binned rows for any number of boosters. Labels are 0 to K-1; rows of weight 0 have no say in the bins.

    `categories` tells how many categories a column has whose numbers are categories. X may come in blocks of rows, as
    `untwist.data.batches` reads them.
    """
    labels = np.ascontiguousarray(labels, dtype=np.uint32)
    data = _core.Dataset(labels, int(labels.max(initial=0)) + 1, X.shape[1], hasattr(X, "blocks"))
    counts = np.zeros(X.shape[1], dtype=np.int32)
    for column, count in (categories or {}).items():
        counts[column] = count
    own = NONE if weight is None or (weight == weight[0]).all() else np.ascontiguousarray(weight, dtype=np.float64)
    if hasattr(X, "blocks"):  # no number of them is kept
        data.set_bins(_seen(_core.Sketch(counts, max_bins, float(own.max(initial=0.0))), X, own, threads(n_jobs)))
        for rows, block in row_blocks(X):
            data.add_rows(block, rows.start, own[rows], threads(n_jobs))
        return data
    for _, block in _column_blocks(X):
        data.look(block, own, threads(n_jobs))
    for first, block in _column_blocks(X):
        data.add_columns(block, first, counts[first : first + block.shape[1]], own, max_bins, threads(n_jobs))
    return data


def shared_bins(
    X: Any, weight: Array | None, categories: NDArray[np.int32], max_bins: int, n_jobs: int | None, workers: Workers
) -> list[Array]:
    """The thresholds of every column that the rows of all workers make together."""
    own = np.ones(X.shape[0]) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
    ends = workers.all_of((float(own.min(initial=np.inf)), float(own.max(initial=0.0))))
    lightest, heaviest = min(low for low, _ in ends), max(high for _, high in ends)
    own = NONE if lightest == heaviest else own
    sketch = _core.Sketch(categories, max_bins, heaviest if len(own) else 0.0)
    return _seen(sketch, X, own, threads(n_jobs), workers).thresholds()


def _seen(sketch: _core.Sketch, X: Any, own: Array, n_threads: int, workers: Workers = ALONE) -> _core.Sketch:
    """The sketch when it has seen the rows of all workers.

    They are read twice where a column has been constant for more than the first 100,000 of them and then is not.
    """

    def meet() -> None:
        for rank, state in enumerate(workers.all_of(sketch.state()) if workers.size > 1 else ()):
            if rank != workers.rank:
                sketch.merge(state)

    for rows, block in row_blocks(X):
        sketch.look(block, own[rows], n_threads)
    meet()
    if sketch.needs_draw:
        for rows, block in row_blocks(X):
            sketch.draw(block, own[rows], n_threads)
        meet()
    return sketch


def booster(
    data: _core.Dataset,
    link: Link,
    step_size: float,
    growth: Growth,
    *,
    by_edge: bool = True,
    least: float = 1e-6,
    positive_class: int = 1,
    weight: Array | None = None,
    watch: Array | None = None,
    start: Array | None = None,
    first_round: int = 0,
) -> _core.Booster:
    """A booster of one class against the others, for the links of the alpha-loss; no round run yet.

    Rows of weight 0 do not train. The log-loss of the rows with a weight in `watch` is followed, posteriors
    kept within `least` of 0 and 1. `start` are scores to
    go on from, of the model that `first_round` rounds made. The coefficient of a tree is step_size * edge, as in the
    paper, or with `by_edge=False` step_size itself.
    """
    if not isinstance(link.loss, AlphaLoss):
        raise ValueError(f"the compiled engine boosts the alpha-loss only, got {link.loss!r}")
    own, unit = (NONE, 1.0) if weight is None or (weight == 1).all() else own_weights(weight)
    task = _core.BoostingTask(
        positive_class=positive_class,
        sample_weight=own,
        watch_weight=NONE if watch is None else watch,
        start_scores=NONE if start is None else start,
        alpha=abs(link.loss.alpha),
        exact_link=isinstance(link, CanonicalLink),
        step_size=step_size,
        step_by_edge=by_edge,
        posterior_floor=least,
        first_round=first_round,
    )
    tree_growth = _core.TreeGrowth(
        max_depth=growth.max_depth,
        max_leaf_nodes=growth.max_leaf_nodes or 0,
        min_samples_leaf=growth.min_samples_leaf / unit if growth.min_samples_leaf > 1 else 0.0,
        min_weight_fraction_leaf=growth.min_weight_fraction_leaf,
        l2=growth.l2 / unit,
        category_smoothing=growth.category_smoothing / unit,
        subsample=growth.subsample,
        max_features=growth.max_features,
        seed=growth.seed,
        monotone=np.array(growth.monotone, dtype=np.int8),
    )
    return _core.Booster(data, task, tree_growth)


def own_weights(weight: Array, workers: Workers = ALONE) -> tuple[Array, float]:
    """Sample weights as the core takes them, and the weight that is its 1; alike for all workers.

    Whole numbers count copies, exactly. Weights that are all the same (or 0) are ones. Any others are divided by a
    power of two, which keeps their ratios, so that none is above 1.
    """
    largest = max(workers.all_of(float(weight.max(initial=0.0))))
    if largest <= MOST_COPIES and all(workers.all_of(bool((weight == np.floor(weight)).all()))):
        return weight, 1.0
    if all(workers.all_of(bool(((weight == largest) | (weight == 0)).all()))):
        return (weight > 0).astype(np.float64), largest
    fraction, exponent = math.frexp(largest)
    unit = math.ldexp(1.0, min(exponent - (fraction == 0.5), 1023))
    return weight / unit, unit


def grown(engine: _core.Booster, n_features: int, first: int = 0) -> Forest:
    """The trees so far, from `first` on."""
    return Forest(*engine.trees(first), n_features=n_features)
