"""The compiled engine: PILBoost over histogram trees, all rounds in compiled code.

Columns are binned once into one-byte codes, weights are fixed-point numbers and all sums whole numbers, so that the
model is the same, bit for bit, for any number of threads and any order of the rows. The rounding of the weights (2^-17
for many rows, 2^-24 for few; relative to the largest sample weight) and single precision in computing them are all that
separates it from exact arithmetic over the same splits. A row with a sample weight smaller than that share of the
largest counts for nothing. Of more than 100,000 rows a sample places the thresholds of columns with many values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from untwist import _core
from untwist.arguments import Array
from untwist.boosting.engines.engine import COLUMN_SETTINGS, Engine, EngineOptions, Rows, Task
from untwist.boosting.ensemble import Ensemble
from untwist.boosting.forest import Forest, count_threads, iterate_column_blocks, iterate_row_blocks
from untwist.data.workers import Workers, solo
from untwist.sums import shorten_broadcast
from untwist.theory.links import find_link_name
from untwist.theory.losses import AlphaLoss

#: The core takes an empty array for weights that are all 1, and for rows that are not given.
NOTHING = np.zeros(0)

#: A sparse table stays one where at most one cell in this many is listed. Others take less time and memory when dense.
SPARSE_SHARE = 8

#: A booster holds the margin of each row, and two lists of rows with their weights; one of all classes together holds
#: scores and gradients of each class instead, of so few classes the gradients with the rows.
BYTES_PER_ROW = 24
BYTES_PER_SCORE = 8
BYTES_PER_GRADIENT = 4
FEW_CLASSES = 7

#: Whole sample weights up to here count copies of a row, exactly.
MOST_COPIES = 128


class CompiledEngine(Engine):
    """Histogram trees, all rounds in compiled code."""

    name: ClassVar[str] = "compiled"
    boosts_jointly: ClassVar[bool] = True
    boosts_any_loss: ClassVar[bool] = False
    known_settings: ClassVar[frozenset[str]] = frozenset(
        {"l2", "subsample", "max_features", "extra_trees", "max_bins", "min_samples_leaf"} | COLUMN_SETTINGS
    )

    def make_dataset(self, rows: Rows, settings: EngineOptions) -> CompiledDataset:
        """Bin the rows."""
        return CompiledDataset(rows, max_bins=settings.max_bins, n_jobs=settings.n_jobs)

    def count_bytes(self, n_rows: int, n_classes: int, *, jointly: bool) -> int:
        """Return how many bytes a booster of these rows holds at least."""
        if not jointly:
            return n_rows * BYTES_PER_ROW
        return n_rows * (BYTES_PER_ROW + n_classes * (BYTES_PER_SCORE + BYTES_PER_GRADIENT * (n_classes > FEW_CLASSES)))

    def make_booster(self, dataset: CompiledDataset, task: Task) -> CompiledBooster:
        """Return a booster of the core."""
        return CompiledBooster(dataset, task)

    def make_team(self, n_threads: int) -> CompiledTeam:
        """Return threads of the core."""
        return CompiledTeam(n_threads)

    def grow_randomised(
        self,
        dataset: CompiledDataset,
        task: Task,
        n_trees: int,
        min_samples_leaf: float,
        max_features: float,
        first_tree: int = 0,
    ) -> Forest:
        """Return extremely randomised trees, whose scores are the mean over them of ln P(class | leaf).

        Of two classes it is the mean of the log-odds ln P(1 | leaf) - ln P(0 | leaf), so that there is one output.
        A node draws a share `max_features` of the columns that vary, one split of each, and makes the best by Gini's
        impurity. A leaf has at least `min_samples_leaf` rows; one more row, of the shares of the classes in all rows,
        keeps every share above 0. The tree of a number is always the same, and `first_tree` is the first number.
        """
        weight, unit = NOTHING, 1.0
        if task.weight is not None and not (task.weight == 1).all():
            weight, unit = scale_weights(task.weight)
        trees = _core.grow_randomised(
            dataset.core,
            sample_weight=weight,
            trees=n_trees,
            first_tree=first_tree,
            min_samples_leaf=min_samples_leaf / unit,
            max_features=max_features,
            smoothing=1.0 / unit,
            seed=task.growth.seed,
            threads=dataset.n_threads,
        )
        return Forest(*trees, n_features=dataset.n_features)


class CompiledDataset:
    """Binned rows, for any number of boosters."""

    def __init__(self, rows: Rows, *, max_bins: int = 255, n_jobs: int | None = None) -> None:
        labels = np.ascontiguousarray(rows.labels, dtype=np.uint32)
        in_blocks = hasattr(rows.X, "blocks")
        is_sparse = sparse.issparse(rows.X) and SPARSE_SHARE * rows.X.nnz <= math.prod(rows.X.shape)
        self.n_features = rows.X.shape[1]
        self.n_threads = count_threads(n_jobs)
        # A review may have left the last classes without rows. The core has no more classes than rows.
        n_classes = max(int(labels.max(initial=0)) + 1, min(rows.n_classes, len(labels)))
        self.core = _core.Dataset(labels, n_classes, self.n_features, in_blocks, is_sparse)
        n_categories = np.zeros(self.n_features, dtype=np.int32)
        for column, count in rows.n_categories.items():
            n_categories[column] = count
        equal_weights = len(rows.weight) == 0 or bool((rows.weight == rows.weight[0]).all())
        weight = NOTHING if equal_weights else np.ascontiguousarray(rows.weight, dtype=np.float64)
        if is_sparse:
            self._bin_sparse(rows.X, weight, max_bins)
        elif in_blocks:
            self._bin_blocks(rows.X, weight, n_categories, max_bins)
        else:
            self._bin_columns(rows.X, weight, n_categories, max_bins)

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of each row's codes."""
        return self.core.hashes()

    def _bin_columns(self, X: Any, weight: Array, n_categories: NDArray[np.int32], max_bins: int) -> None:
        for _, block in iterate_column_blocks(X):
            self.core.observe(block, weight, self.n_threads)
        for first, block in iterate_column_blocks(X):
            block_categories = n_categories[first : first + block.shape[1]]
            self.core.add_columns(block, first, block_categories, weight, max_bins, self.n_threads)

    def _bin_sparse(self, X: Any, weight: Array, max_bins: int) -> None:
        """Bin the cells that a sparse table lists; all others are 0."""
        columns = sparse.csc_array(X, copy=not X.has_canonical_format)
        columns.sum_duplicates()  # This sorts the rows of a column, too.
        start, row = columns.indptr.astype(np.int64), columns.indices.astype(np.int32, copy=False)
        self.core.add_sparse_columns(start, row, columns.data, weight, max_bins, self.n_threads)

    def _bin_blocks(self, X: Any, weight: Array, n_categories: NDArray[np.int32], max_bins: int) -> None:
        """Bin rows that come in blocks; none of their numbers is kept."""
        sketch = _core.Sketch(n_categories, max_bins, float(weight.max(initial=0.0)))
        _show_rows(sketch, X, weight, self.n_threads, solo)
        self.core.set_bins(sketch, self.n_threads)
        for rows, block in iterate_row_blocks(X):
            self.core.add_rows(block, rows.start, weight[rows], self.n_threads)


class CompiledBooster:
    """One class against the rest, or all classes together, boosted by the core.

    All classes together share their trees, whose leaves have a row of values. The scores H that these add up to
    minimise the loss of `untwist.theory.several_classes`, so that the twisted posterior is softmax(H / alpha). Where
    the rounds begin, at the shares of the classes unless at 0, is part of the first tree.
    """

    def __init__(self, dataset: CompiledDataset, task: Task) -> None:
        link, growth = task.link, task.growth
        assert isinstance(link.loss, AlphaLoss)  # Engine.check_loss has seen to it.
        weight, unit = NOTHING, 1.0
        if task.weight is not None and not (task.weight == 1).all():
            weight, unit = scale_weights(task.weight)
        self._n_features = dataset.n_features
        self._n_threads = dataset.n_threads
        core_task = _core.BoostingTask(
            positive_class=task.positive_class,
            sample_weight=weight,
            validation_weight=NOTHING if task.validation_weight is None else task.validation_weight,
            start_scores=NOTHING if task.start is None else task.start,
            alpha=abs(link.loss.alpha),
            link=find_link_name(link),
            step_size=task.step_size,
            step_by_edge=task.by_edge,
            posterior_floor=task.posterior_floor,
            first_round=task.first_round,
            begins_at_shares=task.begins_at_shares,
        )
        core_growth = _core.TreeGrowth(
            max_depth=growth.depth,
            max_leaf_nodes=growth.max_leaf_nodes or 0,
            min_samples_leaf=growth.min_samples_leaf / unit if growth.min_samples_leaf > 1 else 0.0,
            min_weight_fraction_leaf=growth.min_weight_fraction_leaf,
            l2=growth.l2 / unit,
            category_smoothing=growth.category_smoothing / unit,
            subsample=growth.subsample,
            max_features=growth.max_features,
            extra=growth.extra,
            seed=growth.seed,
            monotone=np.array(growth.monotone, dtype=np.int8),
            grouped_columns=np.array([column for group in growth.interactions for column in group], dtype=np.uint32),
            group_starts=np.cumsum([0, *map(len, growth.interactions)] if growth.interactions else [], dtype=np.int64),
            feature_weights=np.array(growth.feature_weights, dtype=np.float64),
            features=dataset.n_features,
        )
        self.core = _core.Booster(dataset.core, core_task, core_growth)

    def boost(self, n_rounds: int, patience: int = 0) -> int:
        """Make up to `n_rounds` more rounds and return how many there are now."""
        return self.core.boost(n_rounds, patience, self._n_threads)

    def last_edge(self) -> float:
        """Return the edge of the last round."""
        return float(self.core.trees(len(self.core) - 1)[0][-1])

    def losses(self) -> Array:
        """Return the log-loss of the validation rows after each round."""
        return self.core.losses()

    def errors(self) -> Array:
        """Return the error of the validation rows after each round."""
        return self.core.errors()

    def current_scores(self) -> Array:
        """Return the score of every row after the rounds so far."""
        return self.core.scores()

    def ensemble(self) -> Ensemble:
        """Return the trees so far."""
        forest = Forest(*self.core.trees(0), n_features=self._n_features)
        return Ensemble.from_forest(forest, self.losses(), self.errors())


class CompiledTeam:
    """Threads of the core that boost its boosters side by side."""

    def __init__(self, n_threads: int) -> None:
        self._core = _core.Team(n_threads)

    def boost(self, boosters: Sequence[CompiledBooster], n_rounds: int, patience: int = 0) -> list[int]:
        """Make up to `n_rounds` more rounds of every booster and return how many each has now."""
        self._core.boost([booster.core for booster in boosters], n_rounds, patience)
        return [len(booster.core) for booster in boosters]


def find_thresholds(rows: Rows, n_categories: NDArray[np.int32], max_bins: int, n_threads: int) -> list[Array]:
    """Return the thresholds of every column that the rows of all workers make together."""
    different = shorten_broadcast(rows.weight)
    ends = rows.workers.gather((float(different.min(initial=np.inf)), float(different.max(initial=0.0))))
    lightest = min(low for low, _ in ends)
    heaviest = max(high for _, high in ends)
    weight = NOTHING if lightest == heaviest else np.ascontiguousarray(rows.weight, dtype=np.float64)
    sketch = _core.Sketch(n_categories, max_bins, heaviest if len(weight) else 0.0)
    _show_rows(sketch, rows.X, weight, n_threads, rows.workers)
    return sketch.thresholds(n_threads)


def _show_rows(sketch: _core.Sketch, X: Any, weight: Array, n_threads: int, workers: Workers) -> None:
    """Show a sketch the rows of all workers.

    They are read twice where a column has been constant for more than the first 100,000 of them and then is not.
    """
    for rows, block in iterate_row_blocks(X):
        sketch.observe(block, weight[rows], n_threads)
    _merge_sketches(sketch, workers)
    if sketch.needs_draw:
        for rows, block in iterate_row_blocks(X):
            sketch.draw(block, weight[rows], n_threads)
        _merge_sketches(sketch, workers)


def _merge_sketches(sketch: _core.Sketch, workers: Workers) -> None:
    """Add what the sketches of the other workers have seen."""
    if workers.size == 1:
        return
    for rank, state in enumerate(workers.gather(sketch.state())):
        if rank != workers.rank:
            sketch.merge(state)


def scale_weights(weight: Array, workers: Workers = solo) -> tuple[Array, float]:
    """Return sample weights as the core takes them, and the weight that is its 1; alike for all workers.

    Whole numbers count copies, exactly. Weights that are all the same (or 0) become ones. Any others are divided by a
    power of two, which keeps their ratios, so that none is above 1.
    """
    different = shorten_broadcast(weight)
    largest = max(workers.gather(float(different.max(initial=0.0))))
    whole = bool((different == np.floor(different)).all())
    if largest <= MOST_COPIES and all(workers.gather(whole)):
        return weight, 1.0
    alike = bool(((weight == largest) | (weight == 0)).all())
    if all(workers.gather(alike)):
        return (weight > 0).astype(np.float64), largest
    fraction, exponent = math.frexp(largest)
    unit = math.ldexp(1.0, min(exponent - (fraction == 0.5), 1023))
    return weight / unit, unit
