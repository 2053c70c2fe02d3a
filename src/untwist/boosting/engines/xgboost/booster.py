"""The engine over XGBoost: `dataset` and `booster` as `untwist.boosting.forest` has them, rounds by XGBoost's tree learners.

PILBoost's tree is the regression tree of the labels with the boosting weights, and that is one step of a second-order
booster: gradient -w*y, Hessian w, no regularisation, learning rate 1. Each round is a booster of one tree: its
predictions on the training rows are XGBoost's own cache, h(x) itself, which we add up to margins in double precision.
The edge is in the tree's own statistics, so that workers who share a tree agree on it without another word.

Weights are whole multiples of a power of two, as in the compiled engine: their sums are exact, whatever the order, the
threads and the workers.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist import _core
from untwist.arguments import Array
from untwist.boosting import forest as trees
from untwist.boosting.engines.xgboost.trees import GrownTree, forest_arrays, grown_trees
from untwist.boosting.engines.xgboost.weights import Weigher, arrays_of
from untwist.data.folds import mixed
from untwist.data.workers import Workers
from untwist.theory.links import Link

__all__ = ["Booster", "Dataset"]

MISSING = 255  # the code of a missing value
OLDEST = 3  # version of xgboost, the major one
WHOLE_ROW = 2.0**17  # the heaviest watched row in fixed point,
LOSS_UNIT = 2.0**16  # and a loss of 1: the sums over 2^26 rows fit 64 bits


def xgboost() -> Any:
    """The package; an ImportError says what to install."""
    try:
        found = importlib.import_module("xgboost")
    except ImportError as error:
        raise ImportError('engine="xgboost" needs xgboost: pip install "untwist[xgboost]"') from error
    if int(found.__version__.split(".")[0]) < OLDEST:
        words = f'engine="xgboost" needs xgboost {OLDEST} or newer, got {found.__version__}'
        raise ImportError(f'{words}: pip install --upgrade "untwist[xgboost]"')
    return found


class Dataset:
    """Rows as XGBoost takes them, for any number of boosters; in a distributed fit this worker's rows.

    "hist" grows trees on codes of bins whose edges all workers share and which do not depend on who has which rows;
    "approx" and "exact" on the numbers themselves, in single precision.
    """

    def __init__(
        self,
        X: Any,
        labels: NDArray[np.uint32],
        weight: Array | None,
        *,
        categories: Mapping[int, int],
        max_bins: int,
        tree_method: str,
        device: str,
        n_jobs: int | None,
        workers: Workers,
    ) -> None:
        if tree_method == "exact" and (categories or device != "cpu"):
            raise ValueError('tree_method="exact" knows neither categories nor GPUs: choose "hist" or "approx"')
        self.labels, self.workers, self.tree_method, self.device = labels, workers, tree_method, device
        self.categories = np.zeros(X.shape[1], dtype=np.int32)
        self.categories[list(categories)] = list(categories.values())
        self.max_bins = MISSING + 1 if tree_method == "hist" else max_bins
        self.missing = float(MISSING) if tree_method == "hist" else math.nan
        self.thresholds: list[Array] | None = None
        n_threads = trees.threads(n_jobs)
        if tree_method == "hist":
            self.thresholds = trees.shared_bins(X, weight, self.categories, max_bins, n_jobs, workers)
            codes = np.empty(X.shape, dtype=np.uint8)
            for rows, block in trees.row_blocks(X):
                _core.encode(block, self.categories, self.thresholds, codes[rows], n_threads)
            X, lost = codes, codes.max(axis=0, initial=0) == MISSING
        else:
            X = X.toarray() if hasattr(X, "toarray") else X  # absent means 0 here, missing in XGBoost
            if max(np.nanmax(X, initial=0.0), -np.nanmin(X, initial=0.0)) > np.finfo(np.float32).max:
                raise ValueError(f'X must fit single precision with tree_method={tree_method!r}: choose "hist"')
            lost = np.isnan(X.sum(axis=0, dtype=np.float64))
        self.has_missing = workers.total(lost.astype(np.int64)) > 0
        xp = arrays_of(device)
        self.table = xp.asarray(X)
        options = {
            "missing": self.missing,
            "feature_types": ["c" if count else "q" for count in self.categories],
            "enable_categorical": True,
            "nthread": n_threads,
        }
        if tree_method == "hist":  # all codes there are, once: XGBoost need not look for quantiles of the rows
            reference = xgboost().QuantileDMatrix(xp.asarray(self._all_codes()), max_bin=self.max_bins, **options)
            self.matrix = xgboost().QuantileDMatrix(self.table, max_bin=self.max_bins, ref=reference, **options)
        else:
            self.matrix = xgboost().DMatrix(self.table, **options)

    def _all_codes(self) -> NDArray[np.uint8]:
        assert self.thresholds is not None
        highest = np.where(self.categories > 0, self.categories - 1, [len(known) for known in self.thresholds])
        return np.minimum(np.arange(MISSING)[:, None], highest).astype(np.uint8)

    def hashes(self) -> NDArray[np.uint64]:
        """A hash of each row's contents."""
        table = self.table if self.device == "cpu" else self.table.get()
        hashes = np.full(table.shape[0], 0x9E3779B97F4A7C15, dtype=np.uint64)
        for column in range(table.shape[1]):
            values = np.ascontiguousarray(table[:, column])
            bits = values if self.tree_method == "hist" else (values.astype(np.float64) + 0.0).view(np.uint64)
            hashes = mixed(np.bitwise_xor(hashes, bits.astype(np.uint64)))
        return hashes


class Booster:
    """A run of boosting for one class against the others, with the methods of the compiled core's booster."""

    def __init__(
        self,
        data: Dataset,
        link: Link,
        step_size: float,
        growth: trees.Growth,
        *,
        by_edge: bool,
        least: float,
        positive_class: int,
        weight: Array,
        watch: Array | None = None,
        start: Array | None = None,
        first_round: int = 0,
    ) -> None:
        self._data, self._growth, self._step, self._by_edge = data, growth, step_size, by_edge
        self._first_round, self._least = first_round, least
        xp = arrays_of(data.device)
        sign = np.where(data.labels == positive_class, 1.0, -1.0)
        own, unit_weight = trees.own_weights(weight, data.workers)
        self._l2 = growth.l2 / unit_weight
        counts = all(data.workers.all_of(bool((own == np.floor(own)).all())))
        self._sign, self._downhill = xp.asarray(sign), xp.asarray(-sign, dtype="float32")
        self._own = None if (own == 1).all() else xp.asarray(own)
        self._own_total = self._sample_weight(own)
        copies = own.sum() if counts else np.count_nonzero(own)
        n_roundings = int(data.workers.total(np.array([copies], dtype=np.int64))[0])
        unit = 2.0 ** _core.weight_bits(self._own_total, n_roundings)
        self._weigher = Weigher(link, unit, data.device, whole_copies=counts)
        self._posterior = Weigher(link, 2.0**24, data.device)
        self._margins = xp.asarray(np.zeros(len(sign)) if start is None else sign * start)
        watch = np.zeros(0) if watch is None else watch
        heaviest = max(data.workers.all_of(float(watch.max(initial=0.0))))
        self._watching, self._watched = heaviest > 0, np.flatnonzero(watch)
        share = watch[self._watched] / math.ldexp(1.0, math.frexp(heaviest)[1])
        self._watch_weight = np.rint(share * WHOLE_ROW).astype(np.int64)
        self._grower: _TreeByTree | _OnDevice = _OnDevice(data)
        if data.device == "cpu" or growth.monotone or growth.min_weight_fraction_leaf > 0:
            self._grower = _TreeByTree(data, self._l2, bool(growth.monotone))  # settings that change from tree to tree
        self._rounds: list[tuple[float, float, float]] = []  # leverage, edge, sample weight
        self._losses: list[float] = []
        self._errors: list[float] = []

    def boost(self, rounds: int, patience: int = 0, threads: int = 1) -> int:
        """Up to `rounds` more rounds; how many there are now."""
        for _ in range(rounds):
            if patience and self._losses and len(self._losses) - int(np.argmin(self._losses)) > patience:
                break
            if not self._round(threads):
                break
        return len(self._rounds)

    def _round(self, threads: int) -> bool:
        """One more tree; False where no row has a weight."""
        weight, boosting_total, total = self._weights(threads)
        if boosting_total == 0:
            return False
        h = self._grower.grow(self._parameters(boosting_total, threads), self._downhill * weight, weight)
        edge = self._grower.agreement(h, weight, self._sign) / total
        leverage = self._step * edge if self._by_edge else self._step
        self._margins += self._sign * (leverage * h.astype(self._margins.dtype))
        self._rounds.append((leverage, edge, total))
        if self._watching:
            self._watch()
        return True

    def _weights(self, threads: int) -> tuple[Any, float, float]:
        """Boosting weights, their sum over all workers, and the sample weight of the rows drawn."""
        weight = self._weigher(self._margins, self._own, threads)
        if self._growth.subsample < 1.0:
            drawn = arrays_of(self._data.device).asarray(self._drawn())
            chosen = weight * drawn.astype(weight.dtype)
            if (mass := self._summed(chosen)) > 0:  # a draw that leaves nothing is not made
                return chosen, mass, self._sample_weight(drawn * (1.0 if self._own is None else self._own))
        return weight, self._summed(weight), self._own_total

    def _summed(self, weight: Any) -> float:
        return float(self._data.workers.total(np.array([float(weight.sum(dtype="float64"))]))[0])

    def _sample_weight(self, own: Any) -> float:
        """The total over all workers, in whole numbers."""
        whole = int((own * 2.0**32).round().astype("int64").sum())
        return float(self._data.workers.total(np.array([whole]))[0]) * 2.0**-32

    def _drawn(self) -> NDArray[np.bool_]:
        """The rows drawn for this round, by their contents."""
        number = np.array([self._first_round + len(self._rounds)], dtype=np.uint64)
        key = mixed(np.uint64(self._growth.seed) ^ mixed(number))
        return np.asarray(mixed(self._hashes ^ key) < np.uint64(math.ldexp(self._growth.subsample, 64)))

    @cached_property
    def _hashes(self) -> NDArray[np.uint64]:
        return self._data.hashes()

    def _parameters(self, boosting_total: float, threads: int) -> dict[str, Any]:
        """How this round's tree grows, in XGBoost's words."""
        growth, data = self._growth, self._data
        parameters = {
            "tree_method": data.tree_method,
            "device": data.device,
            "objective": "binary:logitraw",  # one whose Hessian varies, so that "approx" looks at each round's weights
            "base_score": 0.0,
            "learning_rate": 1.0,
            "reg_lambda": self._l2,
            "min_child_weight": growth.min_weight_fraction_leaf * boosting_total,
            "max_depth": growth.max_depth if growth.max_depth <= DEEPEST else 0,
            "max_cat_threshold": MISSING,
            "colsample_bytree": growth.max_features,
            "seed": (growth.seed + self._first_round + len(self._rounds)) % 2**31,
            "nthread": threads,
            "verbosity": 0,
        }
        if data.tree_method != "exact":
            parameters["max_bin"] = data.max_bins
        if growth.max_leaf_nodes is not None:
            parameters |= {"max_leaves": growth.max_leaf_nodes, "grow_policy": "lossguide"}
        if growth.monotone:
            parameters["monotone_constraints"] = growth.monotone
        return parameters

    def _watch(self) -> None:
        """Loss and error of the watched rows of all workers, in whole numbers: no order matters."""
        margin, sign = (_on_host(one[self._watched]) for one in (self._margins, self._sign))
        posterior = _on_host(self._posterior(-self._margins[self._watched])).astype(np.float64)
        loss = np.rint(-np.log(np.clip(posterior, self._least, 1.0 - self._least)) * LOSS_UNIT).astype(np.int64)
        wrong = (margin < 0) | ((margin == 0) & (sign > 0))  # a score of 0 is a guess at the negative
        own = self._watch_weight
        sums = np.array([(loss * own).sum(), own[wrong].sum(), own.sum()])
        loss_sum, wrong_sum, total = self._data.workers.total(sums).tolist()
        self._losses.append(loss_sum / LOSS_UNIT / total)
        self._errors.append(wrong_sum / total)

    def trees(self, first: int) -> tuple[Any, ...]:
        """The trees from `first` on, as the arrays of a forest."""
        data = self._data
        rounds = list(zip(self._grower.trees(first, len(self._rounds)), self._rounds[first:], strict=True))
        return forest_arrays(rounds, data.thresholds, data.categories, data.has_missing)

    def losses(self) -> Array:
        """Log-loss of the watched rows after each round."""
        return np.array(self._losses)

    def errors(self) -> Array:
        """Their share of wrong signs."""
        return np.array(self._errors)


DEEPEST = 30  # what XGBoost can count; deeper means no limit


class _TreeByTree:
    """A booster of XGBoost for every tree: what it caches for the training rows is that tree's h(x)."""

    def __init__(self, data: Dataset, l2: float, bounded: bool) -> None:
        self._data, self._l2, self._bounded = data, l2, bounded
        self._trees: list[GrownTree] = []

    def grow(self, parameters: dict[str, Any], gradient: Any, weight: Any) -> Any:
        """Another tree, and h of all rows."""
        matrix, on_cpu = self._data.matrix, self._data.device == "cpu"
        booster = xgboost().Booster(parameters, cache=[matrix])
        if on_cpu:
            booster.predict(matrix, output_margin=True, training=True)  # makes the cache that boosting fills
        booster.boost(matrix, iteration=0, grad=gradient, hess=weight)
        self._trees += grown_trees(booster.save_raw("json"))
        if on_cpu:
            return booster.predict(matrix, output_margin=True)
        return booster.inplace_predict(self._data.table, predict_type="margin", missing=self._data.missing)

    def agreement(self, h: Any, weight: Any, sign: Any) -> float:
        """The sum of weight * y * h(x) over all workers' rows; from the tree, where no monotone column bounds it."""
        tree = self._trees[-1]
        if not self._bounded:
            return tree.agreement(self._l2)
        values = np.unique(tree.leaf[tree.feature < 0])
        leaf = np.searchsorted(values, _on_host(h))
        G = np.bincount(leaf, weights=_on_host(sign * weight), minlength=len(values))
        return float(self._data.workers.total(G) @ values)

    def trees(self, first: int, last: int) -> list[GrownTree]:
        """The trees of rounds [first, last)."""
        return self._trees[first:last]


class _OnDevice:  # pragma: no cover - needs a GPU: benchmarks/devices.py tries it on one
    """One booster for all trees, as setting one up takes a GPU longer than growing a tree; rows never leave it."""

    def __init__(self, data: Dataset) -> None:
        self._data, self._count = data, 0
        self._booster: Any = None

    def grow(self, parameters: dict[str, Any], gradient: Any, weight: Any) -> Any:
        """Another tree, and h of all rows."""
        if self._booster is None:
            self._booster = xgboost().Booster(parameters, cache=[self._data.matrix])
        self._booster.boost(self._data.matrix, iteration=self._count, grad=gradient, hess=weight)
        self._count += 1
        latest = (self._count - 1, self._count)
        return self._booster.inplace_predict(
            self._data.table, iteration_range=latest, predict_type="margin", missing=self._data.missing
        )

    def agreement(self, h: Any, weight: Any, sign: Any) -> float:
        """The sum of weight * y * h(x) over all workers' rows, from the rows: cheaper here than to fetch the tree."""
        return float(self._data.workers.total(np.array([float((weight * sign * h).sum())]))[0])

    def trees(self, first: int, last: int) -> list[GrownTree]:
        """The trees of rounds [first, last)."""
        return grown_trees(self._booster[first:last].save_raw("json")) if last > first else []


def _on_host(values: Any) -> Any:
    return values.get() if hasattr(values, "get") else values
