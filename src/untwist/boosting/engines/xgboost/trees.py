"""Trees of XGBoost as arrays, and back.

XGBoost sends a row left where x < c, with x and c in single precision, ours where x <= threshold in double: the
threshold is the last double that rounds to a single below c, so that no row changes sides.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array

__all__ = ["GrownTree", "forest_arrays", "grown_trees", "last_below"]


def grown_trees(raw: bytes | bytearray) -> list[GrownTree]:
    """The trees of a booster's JSON."""
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

    def agreement(self, l2: float) -> float:
        """The sum of weight * y * h(x) over all rows, from the leaves alone: their values are G / (W + l2)."""
        leaves = self.feature < 0
        return float(((self.weight[leaves] + l2) * self.leaf[leaves] ** 2).sum())

    def unseen_left(self) -> NDArray[np.bool_]:
        """Whether the left side of a split is at least as heavy: where values go that training never saw."""
        return np.asarray(2.0 * self.weight[self.left] >= self.weight)


def last_below(condition: NDArray[np.float32]) -> Array:
    """The largest double that, rounded to single precision, is below the condition."""
    with np.errstate(over="ignore", invalid="ignore"):
        below = np.nextafter(condition, np.float32(-np.inf))
        middle = 0.5 * (below.astype(np.float64) + condition.astype(np.float64))
        middle = np.where(np.isfinite(middle), middle, below.astype(np.float64))
        rounded = middle.astype(np.float32)  # half way goes to the even one of the two
        return np.where(rounded < condition, middle, np.nextafter(middle, -np.inf))


def forest_arrays(
    rounds: Sequence[tuple[GrownTree, tuple[float, float, float]]],
    thresholds: Sequence[Array] | None,
    categories: NDArray[np.int32],
    has_missing: NDArray[np.bool_],
) -> tuple[Any, ...]:
    """Trees with their leverages, edges and total sample weights as the arrays of `untwist.boosting.forest.Forest`.

    `thresholds` are those of each column where the trees split codes of bins, None where they split the numbers;
    `categories` counts those of each column. Where no value of a column was missing, one that is goes with the heavier
    side, as in the compiled engine.
    """
    nothing = np.zeros(0)
    parts: dict[str, list[NDArray[Any]]] = {
        "feature": [nothing.astype(np.int32)],
        "left": [nothing.astype(np.int32)],
        "threshold": [nothing],
        "missing_left": [nothing.astype(np.uint8)],
        "value": [nothing],
        "gain": [nothing],
        "set": [nothing.astype(np.int32)],
    }
    codes: list[NDArray[np.uint64]] = []
    for tree, (leverage, _, total) in rounds:
        inner = np.flatnonzero(tree.feature >= 0)
        threshold, sets = np.zeros(len(tree.feature)), np.full(len(tree.feature), -1, dtype=np.int32)
        missing_left = tree.missing_left.copy()
        unseen = tree.unseen_left()
        threshold[inner] = last_below(tree.condition[inner])
        for node in inner.tolist():
            column = tree.feature[node]
            if not has_missing[column]:
                missing_left[node] = unseen[node]
            if node in tree.right_categories:
                left = np.ones(256, dtype=np.uint8)
                left[tree.right_categories[node]] = 0
                left[categories[column] :] = missing_left[node]
                sets[node], threshold[node] = len(codes), 0.0
                codes.append(np.packbits(left, bitorder="little").view("<u8").astype(np.uint64))
            elif thresholds is not None:
                last = int(np.ceil(tree.condition[node])) - 1  # of the codes that go left
                known = thresholds[column]
                threshold[node] = -np.inf if last < 0 else known[last] if last < len(known) else np.inf
        parts["feature"].append(tree.feature)
        parts["left"].append(tree.left)
        parts["threshold"].append(threshold)
        parts["missing_left"].append(missing_left)
        parts["value"].append(leverage * tree.leaf)
        parts["gain"].append(tree.gain / total)
        parts["set"].append(sets)
    return (
        np.array([edge for _, (_, edge, _) in rounds], dtype=np.float64),
        np.array([leverage for _, (leverage, _, _) in rounds], dtype=np.float64),
        np.cumsum([0, *(len(tree.feature) for tree, *_ in rounds)], dtype=np.int64),
        *map(np.concatenate, parts.values()),
        np.concatenate([nothing.astype(np.uint64), *codes]),
    )
