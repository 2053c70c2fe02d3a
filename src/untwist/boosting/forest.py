"""Trees as flat arrays: what every engine that grows trees leaves behind, and how rows go down them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from untwist import _core
from untwist.arguments import Array
from untwist.display import abbreviate

#: Sparse tables are made dense in blocks of this many cells.
CELLS_PER_BLOCK = 1 << 23

#: More threads than this are never started.
MOST_THREADS = 256

#: The arrays with an entry for each tree, and for each node.
OF_TREES = ("edge", "leverage")
OF_NODES = ("feature", "left", "threshold", "missing_left", "value", "gain", "set")

#: A column that is split by sets has at most this many categories: a bit each in `WORDS_PER_SET` words of 64 bits.
MOST_CATEGORIES = 256
WORDS_PER_SET = MOST_CATEGORIES // 64


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees as flat arrays, node by node and tree by tree.

    Tree t has the nodes offset[t] to offset[t+1]; `left` counts from its first node, and the right child follows the
    left one. A row goes left where X[feature] <= threshold, a missing value where `missing_left`. Where `set` is not
    -1 the column holds categories, and those whose bit is set in codes[4*set : 4*set+4] go left. feature is -1 at a
    leaf, whose `value` is what the tree adds to the score. Where a row has a score for each of several outputs, `value`
    has a row of them per node, zeros at a split. `edge` and `leverage` have an entry per tree: the mean of
    weight * y * h(x) that it had, and its coefficient.
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

    __repr__ = abbreviate

    def __len__(self) -> int:
        return len(self.edge)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def prepared(self) -> _core.Forest:
        """The trees as the compiled core goes down them."""
        return _core.Forest(
            offset=self.offset,
            feature=self.feature,
            left=self.left,
            threshold=self.threshold,
            missing_left=self.missing_left,
            value=self.value,
            set=self.set,
            # An array without numbers may lie anywhere after unpickling, and the core wants all of them aligned.
            codes=self.codes if self.codes.size else np.empty(0, self.codes.dtype),
            features=self.n_features,
        )

    @cached_property
    def used_columns(self) -> NDArray[np.int64]:
        """The columns that splits ask for, in their order."""
        return np.unique(self.feature[self.feature >= 0]).astype(np.int64)

    @cached_property
    def narrow(self) -> Forest:
        """The same trees for a table that has no columns but those that they ask for."""
        feature = np.searchsorted(self.used_columns, self.feature)
        return replace(
            self,
            feature=np.where(self.feature >= 0, feature, -1).astype(np.int32),
            n_features=len(self.used_columns),
        )

    @property
    def n_outputs(self) -> int:
        """The number of scores that a row has."""
        return 1 if self.value.ndim == 1 else self.value.shape[1]

    @property
    def n_sets(self) -> int:
        """The number of sets of categories that splits ask for."""
        return len(self.codes) // WORDS_PER_SET

    def nodes_of(self, tree: int) -> slice:
        """Return where the nodes of a tree are."""
        return slice(int(self.offset[tree]), int(self.offset[tree + 1]))

    def categories_going_left(self, node: int) -> list[int]:
        """Return the categories that go left at a node that splits by a set."""
        first = WORDS_PER_SET * int(self.set[node])
        words = self.codes[first : first + WORDS_PER_SET]
        return np.flatnonzero(np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")).tolist()

    def trees(self) -> list[Tree]:
        """Return each tree as a weak hypothesis."""
        return [Tree(self, index) for index in range(len(self))]

    def keep_first(self, count: int) -> Forest:
        """Return the forest of the first `count` trees."""
        nodes = slice(0, int(self.offset[count]))
        arrays = {name: getattr(self, name)[nodes] for name in OF_NODES}
        arrays |= {name: getattr(self, name)[:count] for name in OF_TREES}
        return replace(self, offset=self.offset[: count + 1], **arrays)

    def take(self, trees: NDArray[np.intp]) -> Forest:
        """Return the forest of these trees, in this order."""
        n_nodes = np.diff(self.offset)[trees]
        offset = np.append(0, np.cumsum(n_nodes))
        nodes = np.repeat(self.offset[trees] - offset[:-1], n_nodes) + np.arange(offset[-1])
        arrays = {name: getattr(self, name)[nodes] for name in OF_NODES}
        arrays |= {name: getattr(self, name)[trees] for name in OF_TREES}
        return replace(self, offset=offset, **arrays)

    def output(self, index: int) -> Forest:
        """Return the forest whose score is one of the outputs, with one value per leaf."""
        if not 0 <= index < self.n_outputs:
            raise ValueError(f"index must be one of {self.n_outputs} outputs, got {index!r}")
        return replace(self, value=np.ascontiguousarray(self.value.reshape(len(self.value), -1)[:, index]))

    def scale(self, factor: float) -> Forest:
        """Return the forest whose scores are those of this one times a factor."""
        return replace(self, value=self.value * factor, leverage=self.leverage * factor)

    def shift(self, amount: float) -> Forest:
        """Return the forest whose scores are larger by an amount, which is part of its first tree."""
        value = self.value.copy()
        first = self.nodes_of(0)
        value[first] += np.where(self.feature[first] < 0, amount, 0.0)
        return replace(self, value=value)

    def append(self, other: Forest) -> Forest:
        """Return the trees of this forest, then those of the other."""
        return Forest.join([self, other])

    @staticmethod
    def join(forests: Sequence[Forest]) -> Forest:
        """Return the trees of all forests, one forest after the other."""
        names = (*OF_TREES, *OF_NODES, "codes")
        arrays: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in forests]) for name in names}
        n_nodes = np.concatenate([np.diff(forest.offset) for forest in forests])
        sets_before = np.cumsum([0, *(forest.n_sets for forest in forests[:-1])])
        shifts = np.repeat(sets_before, [len(forest.set) for forest in forests])
        arrays["set"] = np.where(arrays["set"] >= 0, arrays["set"] + shifts, -1).astype(np.int32)
        return replace(forests[0], offset=np.append(0, np.cumsum(n_nodes)), **arrays)

    @staticmethod
    def average(forests: Sequence[Forest]) -> Forest:
        """Return the forest whose scores are the mean: a tree of each in turn, its value divided by their number."""
        rounds = np.concatenate([np.arange(len(forest)) for forest in forests])
        in_turn = Forest.join(forests).take(np.argsort(rounds, kind="stable"))
        return replace(in_turn, value=in_turn.value / len(forests), leverage=in_turn.leverage / len(forests))

    def scores(
        self, X: Any, first: int = 0, last: int | None = None, n_jobs: int | None = None, start: float = 0.0
    ) -> Array:
        """Return the scores of rows of numbers: the start and trees [first, last), a column per output if several."""
        last = len(self) if last is None else last
        out = np.full((X.shape[0], *self.value.shape[1:]), start)
        forest, X = self._leave_out_columns(X)
        for rows, block in iterate_row_blocks(X):
            forest.prepared.add_scores(block, first, last, count_threads(n_jobs), out[rows])
        return out

    def leaves(self, X: Any, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Return the leaf of every row in every tree, as an index into the tree's nodes."""
        out = np.zeros((X.shape[0], len(self)), dtype=np.int32)
        forest, X = self._leave_out_columns(X)
        for rows, block in iterate_row_blocks(X):
            forest.prepared.leaves(block, 0, len(self), count_threads(n_jobs), out[rows])
        return out

    def _leave_out_columns(self, X: Any) -> tuple[Forest, Any]:
        """Return the forest and the rows without columns of a sparse table that no split asks for."""
        if not sparse.issparse(X) or len(self.used_columns) in (0, self.n_features):
            return self, X
        return self.narrow, X[:, self.used_columns]


class Tree:
    """One tree of a forest as a weak hypothesis h: `predict` gives values in [-1, 1]."""

    def __init__(self, forest: Forest, index: int) -> None:
        self.forest, self.index = forest, index

    def predict(self, X: Any) -> Array:
        """Return h(x): what the tree adds to the score, over its leverage."""
        leverage = self.forest.leverage[self.index]
        added = self.forest.scores(X, self.index, self.index + 1, n_jobs=1)
        return added / leverage if leverage else added

    @property
    def feature_importances_(self) -> Array:
        """Each feature's share of the tree's gain."""
        nodes = self.forest.nodes_of(self.index)
        feature = self.forest.feature[nodes]
        split = feature >= 0
        gain = np.bincount(feature[split], weights=self.forest.gain[nodes][split], minlength=self.forest.n_features)
        return np.asarray(gain / gain.sum() if gain.sum() else gain, dtype=np.float64)


def count_threads(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` asks for: all that this process may use for None and -1, all but one for -2."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be an integer other than 0, or None for all threads, got {n_jobs!r}")
    return max(1, available + 1 + int(n_jobs)) if n_jobs < 0 else min(int(n_jobs), MOST_THREADS)


def iterate_row_blocks(X: Any) -> Iterator[tuple[slice, Any]]:
    """Yield X as (rows, block of dense rows): one block unless it is sparse or comes in blocks."""
    first = 0
    for block in X.blocks() if hasattr(X, "blocks") else _iterate_dense_rows(X):
        yield slice(first, first + len(block)), _make_dense(block)
        first += len(block)
    if first != X.shape[0]:
        raise ValueError(f"the table had {X.shape[0]} rows when it was read first, and {first} now: begin again")


def iterate_column_blocks(X: Any) -> Iterator[tuple[int, Any]]:
    """Yield X as (first column, block of dense columns): one block unless it is sparse."""
    if not sparse.issparse(X):
        yield 0, _make_dense(X)
        return
    columns = X.tocsc()
    step = max(1, CELLS_PER_BLOCK // max(1, X.shape[0]))
    for first in range(0, X.shape[1], step):
        yield first, _make_dense(columns[:, first : first + step].toarray())


def _iterate_dense_rows(X: Any) -> Iterator[Any]:
    if not sparse.issparse(X):
        yield X
        return
    rows = X.tocsr()
    step = max(1, CELLS_PER_BLOCK // max(1, X.shape[1]))
    for first in range(0, X.shape[0], step):
        yield rows[first : first + step].toarray()


def _make_dense(X: Any) -> Any:
    """Return X as float32 or float64 numbers in a layout that the core reads."""
    X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    regular = X.flags.aligned and not any(stride % X.itemsize for stride in X.strides)
    return X if regular else np.array(X, order="C")
