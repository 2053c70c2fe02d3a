"""Rounds of boosting whose trees XGBoost grows.

PILBoost's tree is the regression tree of the labels with the boosting weights, and that is one step of a second-order
booster: gradient -w*y, Hessian w, lambda = l2, learning rate 1. On a CPU each round is a booster of one tree: its
predictions on the training rows are XGBoost's own cache, h(x) itself, which we add up to margins in double precision.
On a GPU one booster grows all trees.
The edge is in the tree's own statistics, so that workers who share a tree agree on it without another word.

Weights are whole multiples of a power of two, as in the compiled engine: their sums are exact, whatever the order, the
threads and the workers.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist import _core
from untwist.arguments import Array
from untwist.boosting.engines.compiled import scale_weights
from untwist.boosting.engines.engine import Task
from untwist.boosting.engines.xgboost.dataset import MISSING_CODE, XGBoostDataset, import_xgboost
from untwist.boosting.engines.xgboost.trees import GrownTree, assemble_forest, read_trees
from untwist.boosting.engines.xgboost.weights import Weigher, find_array_library, sum_weight_and_agreement
from untwist.boosting.ensemble import Ensemble, is_stale
from untwist.data.folds import mix_bits
from untwist.sums import shorten_broadcast

#: The weight of the heaviest validation row in fixed point.
WHOLE_ROW = 2.0**17

#: A loss of 1 in fixed point. With `WHOLE_ROW` the sums over 2^26 rows fit 64 bits.
LOSS_UNIT = 2.0**16

#: Sample weights are summed in fixed point with this many units to 1.
WEIGHT_UNIT = 2.0**32

#: Posteriors of validation rows are computed to this precision.
POSTERIOR_UNIT = 2.0**24

#: XGBoost counts levels up to this depth; where trees may be deeper it is told that there is no limit.
DEEPEST_COUNTED = 30


@dataclass(frozen=True)
class _Round:
    """The coefficient and the edge of a tree, and the sample weight of the rows that it was grown on."""

    leverage: float
    edge: float
    sample_weight: float


class XGBoostBooster:
    """One class against the rest."""

    def __init__(self, dataset: XGBoostDataset, task: Task) -> None:
        self._dataset = dataset
        self._task = task
        self._growth = task.growth
        arrays = find_array_library(dataset.device)
        self._sign = arrays.where(arrays.asarray(dataset.labels) == task.positive_class, 1.0, -1.0)
        self._negative_sign = (-self._sign).astype("float32")
        self._margins = arrays.zeros(len(self._sign))
        if task.start is not None:
            self._margins += self._sign * arrays.asarray(task.start)
        self._set_weights(np.ones(len(dataset.labels)) if task.weight is None else task.weight)
        self._set_validation(np.zeros(0) if task.validation_weight is None else task.validation_weight)
        settings_vary = bool(self._growth.monotone) or self._growth.min_weight_fraction_leaf > 0
        self._stays_on_device = dataset.device != "cpu" and not settings_vary
        self._grower: _OneTreeGrower | _DeviceGrower = (
            _DeviceGrower(dataset)
            if self._stays_on_device
            else _OneTreeGrower(dataset, self._l2, bool(self._growth.monotone))
        )
        self._next_weight_and_gradient: tuple[Any, Any] | None = None
        self._rounds: list[_Round] = []
        self._losses: list[float] = []
        self._errors: list[float] = []

    def _set_weights(self, weight: Array) -> None:
        """Take the sample weights, and choose the unit that boosting weights are whole multiples of."""
        workers = self._dataset.workers
        if workers.size == 1 and bool((shorten_broadcast(weight) == 1.0).all()):
            return self._set_scale(1.0, None, float(len(weight)), len(weight), counts_copies=True)
        scaled, unit_weight = scale_weights(weight, workers)
        counts_copies = all(workers.gather(bool((scaled == np.floor(scaled)).all())))
        sample_weight = None if (scaled == 1).all() else find_array_library(self._dataset.device).asarray(scaled)
        copies = scaled.sum() if counts_copies else np.count_nonzero(scaled)
        n_roundings = int(workers.sum(np.array([copies], dtype=np.int64))[0])
        total = self._sum_sample_weight(scaled)
        return self._set_scale(unit_weight, sample_weight, total, n_roundings, counts_copies=counts_copies)

    def _set_scale(
        self, unit_weight: float, sample_weight: Any, total: float, n_roundings: int, *, counts_copies: bool
    ) -> None:
        """Keep the sample weights, and make what weighs margins, in a unit chosen by how many weights are rounded."""
        self._l2 = self._growth.l2 / unit_weight
        self._sample_weight = sample_weight
        self._total_weight = total
        unit = 2.0 ** _core.weight_bits(total, n_roundings)
        self._weigh = Weigher(self._task.link, unit, self._dataset.device, whole_copies=counts_copies)
        self._find_posterior = Weigher(self._task.link, POSTERIOR_UNIT, self._dataset.device)

    def _set_validation(self, weight: Array) -> None:
        """Take the weights of the validation rows, in fixed point."""
        heaviest = max(self._dataset.workers.gather(float(weight.max(initial=0.0))))
        self._has_validation = heaviest > 0
        self._validation_rows = np.flatnonzero(weight)
        share = weight[self._validation_rows] / math.ldexp(1.0, math.frexp(heaviest)[1])
        self._validation_weight = np.rint(share * WHOLE_ROW).astype(np.int64)

    def boost(self, n_rounds: int, patience: int = 0) -> int:
        """Make up to `n_rounds` more rounds and return how many there are now."""
        for _ in range(n_rounds):
            if is_stale(self.losses(), patience):
                break
            is_simple = self._stays_on_device and self._growth.subsample >= 1.0
            if not (self._boost_on_device() if is_simple else self._boost_once()):
                break
        return len(self._rounds)

    def _boost_once(self) -> bool:
        """Grow one more tree; return False where no row has a weight."""
        weight, boosting_weight, sample_weight = self._find_weights()
        if boosting_weight == 0:
            return False
        h = self._grower.grow(self._list_parameters(boosting_weight), self._negative_sign * weight, weight)
        edge = self._grower.sum_agreement(h, weight, self._sign) / sample_weight
        leverage = self._task.step_size * edge if self._task.by_edge else self._task.step_size
        self._margins += self._sign * (leverage * h.astype(self._margins.dtype))
        self._rounds.append(_Round(leverage, edge, sample_weight))
        if self._has_validation:
            self._validate()
        return True

    def _boost_on_device(self) -> bool:  # pragma: no cover - This needs a GPU.
        """Do the same where all rows are on a GPU, in few passes over them and with one answer to wait for."""
        if self._next_weight_and_gradient is None:
            weight = self._weigh(self._margins, self._sample_weight)
            self._next_weight_and_gradient = weight, self._negative_sign * weight
        weight, gradient = self._next_weight_and_gradient
        h = self._grower.grow(self._list_parameters(0.0), gradient, weight)
        sums = sum_weight_and_agreement(weight, self._sign, h)
        boosting_weight, agreement = self._dataset.workers.sum(sums).tolist()
        if boosting_weight == 0:
            return False  # XGBoost keeps the tree, but only as many trees as there are rounds are read.
        edge = agreement / self._total_weight
        leverage = self._task.step_size * edge if self._task.by_edge else self._task.step_size
        self._next_weight_and_gradient = self._weigh.step(self._margins, self._sign, h, leverage, self._sample_weight)
        self._rounds.append(_Round(leverage, edge, self._total_weight))
        if self._has_validation:
            self._validate()
        return True

    def _find_weights(self) -> tuple[Any, float, float]:
        """Return boosting weights, their sum over all workers, and the sample weight of the rows drawn."""
        weight = self._weigh(self._margins, self._sample_weight, self._dataset.n_threads)
        if self._growth.subsample < 1.0:
            drawn = find_array_library(self._dataset.device).asarray(self._draw_rows())
            drawn_weight = weight * drawn.astype(weight.dtype)
            boosting_weight = self._sum_boosting_weight(drawn_weight)
            if boosting_weight > 0:  # A draw that leaves nothing is not made.
                sample_weight = drawn * (1.0 if self._sample_weight is None else self._sample_weight)
                return drawn_weight, boosting_weight, self._sum_sample_weight(sample_weight)
        return weight, self._sum_boosting_weight(weight), self._total_weight

    def _sum_boosting_weight(self, weight: Any) -> float:
        """Return the sum over all workers' rows."""
        return float(self._dataset.workers.sum(np.array([float(weight.sum(dtype="float64"))]))[0])

    def _sum_sample_weight(self, weight: Any) -> float:
        """Return the sum over all workers' rows, by whole numbers, so that their order does not matter."""
        whole = int((weight * WEIGHT_UNIT).round().astype("int64").sum())
        return float(self._dataset.workers.sum(np.array([whole]))[0]) / WEIGHT_UNIT

    def _draw_rows(self) -> NDArray[np.bool_]:
        """Draw rows for this round, by their contents."""
        number = np.array([self._task.first_round + len(self._rounds)], dtype=np.uint64)
        key = mix_bits(np.uint64(self._growth.seed) ^ mix_bits(number))
        return np.asarray(mix_bits(self._hashes ^ key) < np.uint64(math.ldexp(self._growth.subsample, 64)))

    @cached_property
    def _hashes(self) -> NDArray[np.uint64]:
        return self._dataset.hashes()

    def _list_parameters(self, boosting_weight: float) -> dict[str, Any]:
        """Say how this round's tree grows, in XGBoost's words."""
        growth, dataset = self._growth, self._dataset
        parameters = {
            "tree_method": dataset.tree_method,
            "device": dataset.device,
            # The Hessian of this objective varies, so that "approx" looks at each round's weights.
            "objective": "binary:logitraw",
            "base_score": 0.0,
            "learning_rate": 1.0,
            "reg_lambda": self._l2,
            "min_child_weight": growth.min_weight_fraction_leaf * boosting_weight,
            "max_depth": growth.depth if growth.depth <= DEEPEST_COUNTED else 0,
            "max_cat_threshold": MISSING_CODE,
            "colsample_bytree": self._find_share_of_columns(),
            "seed": (growth.seed + self._task.first_round + len(self._rounds)) % 2**31,
            "nthread": dataset.n_threads,
            "verbosity": 0,
        }
        if dataset.tree_method != "exact":
            parameters["max_bin"] = dataset.max_bins
        if growth.max_leaf_nodes is not None:
            parameters |= {"max_leaves": growth.max_leaf_nodes, "grow_policy": "lossguide"}
        if growth.monotone:
            parameters["monotone_constraints"] = growth.monotone
        if growth.interactions:
            parameters["interaction_constraints"] = json.dumps(growth.interactions)
        return parameters

    def _find_share_of_columns(self) -> float:
        """Return the share of the columns that are drawn; XGBoost would fill up a draw with those of weight 0."""
        share, weights = self._growth.max_features, np.array(self._growth.feature_weights)
        return min(share, float((weights > 0).mean())) if share < 1.0 and len(weights) else share

    def _validate(self) -> None:
        """Add loss and error of the validation rows of all workers, by whole numbers, so that no order matters."""
        floor = self._task.posterior_floor
        rows = self._validation_rows
        margin = _fetch(self._margins[rows])
        sign = _fetch(self._sign[rows])
        posterior = _fetch(self._find_posterior(-self._margins[rows])).astype(np.float64)
        loss = np.rint(-np.log(np.clip(posterior, floor, 1.0 - floor)) * LOSS_UNIT).astype(np.int64)
        wrong = (margin < 0) | ((margin == 0) & (sign > 0))  # A score of 0 is a guess at the negative class.
        weight = self._validation_weight
        sums = np.array([(loss * weight).sum(), weight[wrong].sum(), weight.sum()])
        loss_sum, wrong_sum, total = self._dataset.workers.sum(sums).tolist()
        self._losses.append(loss_sum / LOSS_UNIT / total)
        self._errors.append(wrong_sum / total)

    def last_edge(self) -> float:
        """Return the edge of the last round."""
        return self._rounds[-1].edge

    def losses(self) -> Array:
        """Return the log-loss of the validation rows after each round."""
        return np.array(self._losses)

    def errors(self) -> Array:
        """Return the error of the validation rows after each round."""
        return np.array(self._errors)

    def current_scores(self) -> Array:
        """Return the score of every row after the rounds so far."""
        return np.asarray(_fetch(self._sign * self._margins))

    def ensemble(self) -> Ensemble:
        """Return the trees so far."""
        dataset = self._dataset
        forest = assemble_forest(
            self._grower.list_trees(len(self._rounds)),
            leverages=np.array([one.leverage for one in self._rounds], dtype=np.float64),
            edges=np.array([one.edge for one in self._rounds], dtype=np.float64),
            sample_weights=np.array([one.sample_weight for one in self._rounds], dtype=np.float64),
            thresholds=dataset.thresholds,
            n_categories=dataset.n_categories,
            has_missing=dataset.has_missing,
        )
        return Ensemble.from_forest(forest, self.losses(), self.errors())


class _OneTreeGrower:
    """A booster of XGBoost for every tree: what it caches for the training rows is that tree's h(x)."""

    def __init__(self, dataset: XGBoostDataset, l2: float, bounded: bool) -> None:
        self._dataset = dataset
        self._l2 = l2
        self._bounded = bounded
        self._trees: list[GrownTree] = []

    def grow(self, parameters: dict[str, Any], gradient: Any, weight: Any) -> Any:
        """Grow another tree and return h of all rows."""
        matrix, on_cpu = self._dataset.matrix, self._dataset.device == "cpu"
        booster = import_xgboost().Booster(parameters, cache=[matrix])
        if on_cpu:
            booster.predict(matrix, output_margin=True, training=True)  # This makes the cache that boosting fills.
        booster.boost(matrix, iteration=0, grad=gradient, hess=weight)
        self._trees += read_trees(booster.save_raw("json"))
        if on_cpu:
            return booster.predict(matrix, output_margin=True)
        return booster.inplace_predict(self._dataset.table, predict_type="margin", missing=self._dataset.missing)

    def sum_agreement(self, h: Any, weight: Any, sign: Any) -> float:
        """Return the sum of weight * y * h(x) over all workers' rows.

        The tree knows it, unless the values of its leaves were bounded by those of their neighbours.
        """
        tree = self._trees[-1]
        if not self._bounded:
            return tree.sum_agreement(self._l2)
        values = np.unique(tree.leaf[tree.feature < 0])
        leaf = np.searchsorted(values, _fetch(h))
        gradients = np.bincount(leaf, weights=_fetch(sign * weight), minlength=len(values))
        return float(self._dataset.workers.sum(gradients) @ values)

    def list_trees(self, count: int) -> list[GrownTree]:
        """Return the first `count` trees."""
        return self._trees[:count]


class _DeviceGrower:  # pragma: no cover - This needs a GPU; experiments/benchmarks/devices.py tries it on one.
    """One booster for all trees, as setting one up takes a GPU longer than growing a tree; rows never leave it."""

    def __init__(self, dataset: XGBoostDataset) -> None:
        self._dataset = dataset
        self._count = 0
        self._booster: Any = None

    def grow(self, parameters: dict[str, Any], gradient: Any, weight: Any) -> Any:
        """Grow another tree and return h of all rows."""
        if self._booster is None:
            self._booster = import_xgboost().Booster(parameters, cache=[self._dataset.matrix])
        self._booster.boost(self._dataset.matrix, iteration=self._count, grad=gradient, hess=weight)
        self._count += 1
        latest = (self._count - 1, self._count)
        return self._booster.inplace_predict(
            self._dataset.table,
            iteration_range=latest,
            predict_type="margin",
            missing=self._dataset.missing,
            validate_features=False,
        )

    def sum_agreement(self, h: Any, weight: Any, sign: Any) -> float:
        """Return the sum of weight * y * h(x) over all workers' rows: cheaper here than to fetch the tree."""
        return float(self._dataset.workers.sum(np.array([float((weight * sign * h).sum())]))[0])

    def list_trees(self, count: int) -> list[GrownTree]:
        """Return the first `count` trees."""
        return read_trees(self._booster[:count].save_raw("json")) if count else []


def _fetch(values: Any) -> Any:
    """Return an array in the memory of the machine, wherever it was."""
    return values.get() if hasattr(values, "get") else values
