"""Trees of XGBoost as arrays.

XGBoost sends a row left where x < c, with x and c in single precision, ours where x <= threshold in double: the
threshold is the last double that rounds to a single below c, so that no row changes sides. No x is below c = -inf:
from version 3.4 on it is how XGBoost says that missing values go left and all others right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.forest import MOST_CATEGORIES, Forest

#: Where the next single would be if there were one: numbers from half way there on round to infinity.
BEYOND_SINGLES = 2.0**128


def read_trees(raw: bytes | bytearray) -> list[GrownTree]:
    """Return the trees of a booster's JSON."""
    return [GrownTree(tree) for tree in json.loads(raw)["learner"]["gradient_booster"]["model"]["trees"]]


class GrownTree:
    """One tree as XGBoost's JSON tells it: nodes in breadth-first order, the right child after the left one."""

    def __init__(self, tree: dict[str, Any]) -> None:
        children = np.array([tree["left_children"], tree["right_children"]])
        order = [0]
        for node in order:
            if children[0, node] >= 0:
                order += children[:, node].tolist()
        place = np.zeros(children.shape[1], dtype=np.int32)
        place[order] = np.arange(len(order))
        inner = children[0, order] >= 0
        condition = np.array(tree["split_conditions"], dtype=np.float32)[order]
        self.left = np.where(inner, place[children[0, order]], -1).astype(np.int32)
        self.feature = np.where(inner, np.array(tree["split_indices"], dtype=np.int32)[order], -1).astype(np.int32)
        self.condition = condition
        self.leaf = np.where(inner, 0.0, condition.astype(np.float64))
        self.weight = np.array(tree["sum_hessian"], dtype=np.float64)[order]
        self.gain = np.where(inner, np.array(tree["loss_changes"], dtype=np.float64)[order], 0.0)
        self.missing_left = np.where(inner, np.array(tree["default_left"], dtype=np.uint8)[order], 0).astype(np.uint8)
        segments = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
        self.right_categories = {
            int(place[node]): tree["categories"][start : start + size] for node, start, size in segments
        }

    def sum_agreement(self, l2: float) -> float:
        """Return the sum of weight * y * h(x) over all rows, from the leaves alone: their values are G / (W + l2)."""
        leaves = self.feature < 0
        return float(((self.weight[leaves] + l2) * self.leaf[leaves] ** 2).sum())

    def find_heavier_left(self) -> NDArray[np.bool_]:
        """Tell for each split whether its left side is at least as heavy: values go there that training never saw."""
        return np.asarray(2.0 * self.weight[self.left] >= self.weight)


def find_last_below(condition: NDArray[np.float32]) -> Array:
    """Return the largest double that, rounded to single precision, is below the condition; -inf where none is."""
    with np.errstate(over="ignore"):
        below = np.nextafter(condition, np.float32(-np.inf))
        around = np.clip(np.array([below, condition], dtype=np.float64), -BEYOND_SINGLES, BEYOND_SINGLES)
        middle = 0.5 * around.sum(axis=0)
        rounded = middle.astype(np.float32)  # A number half way between two singles goes to the even one.
    last = np.where(rounded < condition, middle, np.nextafter(middle, -np.inf))
    return np.where(condition == -np.inf, -np.inf, last)


def assemble_forest(
    trees: Sequence[GrownTree],
    leverages: Array,
    edges: Array,
    sample_weights: Array,
    thresholds: Sequence[Array] | None,
    n_categories: NDArray[np.int32],
    has_missing: NDArray[np.bool_],
) -> Forest:
    """Return trees of XGBoost as a forest.

    Parameters
    ----------
    trees : sequence of GrownTree
        One per round.
    leverages, edges, sample_weights : arrays
        The coefficient and the edge of each tree, and the sample weight of the rows that it was grown on.
    thresholds : list of arrays or None
        Those of each column where the trees split codes of bins; None where they split the numbers.
    n_categories : array
        How many categories each column has, 0 for numbers.
    has_missing : array of bool
        Whether a column has missing values. Where it has none, one that comes later goes with the heavier side, as in
        the compiled engine.
    """
    sets: list[NDArray[np.uint64]] = []
    parts = [_Nodes(tree, thresholds, n_categories, has_missing, sets) for tree in trees]

    def join(arrays: Iterable[NDArray[Any]], dtype: Any) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, dtype), *arrays])

    values = [leverage * tree.leaf for tree, leverage in zip(trees, leverages, strict=True)]
    gains = [tree.gain / weight for tree, weight in zip(trees, sample_weights, strict=True)]
    return Forest(
        edge=edges,
        leverage=leverages,
        offset=np.cumsum([0, *(len(tree.feature) for tree in trees)], dtype=np.int64),
        feature=join((tree.feature for tree in trees), np.int32),
        left=join((tree.left for tree in trees), np.int32),
        threshold=join((nodes.threshold for nodes in parts), np.float64),
        missing_left=join((nodes.missing_left for nodes in parts), np.uint8),
        value=join(values, np.float64),
        gain=join(gains, np.float64),
        set=join((nodes.set for nodes in parts), np.int32),
        codes=join(sets, np.uint64),
        n_features=len(n_categories),
    )


class _Nodes:
    """The splits of a tree in the terms of a forest; sets of categories are added to `sets`."""

    def __init__(
        self,
        tree: GrownTree,
        thresholds: Sequence[Array] | None,
        n_categories: NDArray[np.int32],
        has_missing: NDArray[np.bool_],
        sets: list[NDArray[np.uint64]],
    ) -> None:
        inner = np.flatnonzero(tree.feature >= 0)
        self.threshold = np.zeros(len(tree.feature))
        self.threshold[inner] = find_last_below(tree.condition[inner])
        self.set = np.full(len(tree.feature), -1, dtype=np.int32)
        self.missing_left = tree.missing_left.copy()
        heavier_left = tree.find_heavier_left()
        for node in inner.tolist():
            column = tree.feature[node]
            if not has_missing[column]:
                self.missing_left[node] = heavier_left[node]
            if node in tree.right_categories:
                left = np.ones(MOST_CATEGORIES, dtype=np.uint8)
                left[tree.right_categories[node]] = 0
                left[n_categories[column] :] = self.missing_left[node]
                self.set[node] = len(sets)
                self.threshold[node] = 0.0
                sets.append(np.packbits(left, bitorder="little").view("<u8").astype(np.uint64))
            elif thresholds is not None:
                self.threshold[node] = _decode_threshold(thresholds[column], float(tree.condition[node]))


def _decode_threshold(known: Array, condition: float) -> float:
    """Return the threshold up to which all values have codes below the condition, which may be infinite."""
    if condition <= 0:
        return -np.inf
    return float(known[math.ceil(condition) - 1]) if condition <= len(known) else np.inf
