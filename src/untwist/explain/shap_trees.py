"""Trees in the format of shap, for its TreeExplainer.

shap's trees know thresholds only. A split by categories becomes a chain of splits, one for every run of neighbours that
go the same way, and what is below it is copied for every run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from untwist.arguments import Array
from untwist.boosting.forest import MOST_CATEGORIES, Forest
from untwist.explain.shapley import find_background_shares
from untwist.export.scoring import BELOW_CATEGORIES, Scoring
from untwist.optional import import_optional
from untwist.predicting import find_model

#: Trees times the nodes of the largest one, at most: shap reserves memory for this many.
MOST_NODES = 1 << 23


def tree_explainer(model: Any, background: Any) -> Any:
    """Return a shap.TreeExplainer of the boosted score. Its values are those of `explain`; it knows interactions too.

    Parameters
    ----------
    model : UntwistClassifier, PILBoostClassifier or FittedModel
        A fitted model.
    background : table
        The rows to average over.

    Returns
    -------
    shap.TreeExplainer
        It takes rows of `untwist.export.numbers`.

    Raises
    ------
    ValueError
        If the trees without splits by categories are too large for shap.
    """
    shap = import_optional("shap", "tree_explainer", extra="shap")
    fitted = find_model(model)  # Another thread may fit the classifier meanwhile.
    scoring = Scoring.from_model(fitted)
    known = fitted.encoder.encode_dense(background, None if fitted is model else model)
    identity = scoring.sign * np.eye(scoring.n_scores)
    most_nodes = MOST_NODES // sum(map(len, scoring.forests))
    trees = []
    for index, forest in enumerate(scoring.forests):
        shares = find_background_shares(forest, known, getattr(model, "n_jobs", None))
        outputs = identity if scoring.has_vectors else identity[[index]]
        for root in forest.offset[:-1].tolist():
            tree = _ThresholdTree(forest, root, shares, most_nodes)
            tree.grow(root, 1.0)
            trees.append(tree.describe(outputs))
    model_of_shap = {
        "trees": trees,
        "internal_dtype": np.float64,
        "input_dtype": np.float64,
        "tree_output": "raw_value",
    }
    return shap.TreeExplainer(model_of_shap, feature_perturbation="tree_path_dependent")


@dataclass
class _Node:
    """A node of shap: its children, where a missing value goes, what it asks, its rows, and the leaf that it is."""

    rows: float
    left: int = -1
    right: int = -1
    default: int = -1
    feature: int = -1
    threshold: float = 0.0
    leaf: int = -1


@dataclass
class _ThresholdTree:
    """A tree of a forest that is being copied with thresholds only."""

    forest: Forest
    root: int
    shares: Array
    most_nodes: int
    nodes: list[_Node] = field(default_factory=list)

    def grow(self, node: int, rows: float) -> int:
        """Copy what is below a node that this many rows reach, and return the number of the copy."""
        index = len(self.nodes)
        if self.forest.feature[node] < 0:
            self._add(rows).leaf = node
            return index
        first_child = self.root + int(self.forest.left[node])
        runs = _list_runs(self.forest, node)
        # Copies of a child share its rows alike, as only their sum matters.
        rows_of_copy = [
            rows * self.shares[first_child + side] / max(1, sum(side == each for each, _ in runs)) for side in (0, 1)
        ]
        missing_side = 1 - int(self.forest.missing_left[node])
        last_side = runs[-1][0]
        for number, (side, end) in enumerate(runs[:-1]):
            split = self._add(rows)
            rows -= rows_of_copy[side]
            split.feature = int(self.forest.feature[node])
            split.threshold = end
            split.left = self.grow(first_child + side, rows_of_copy[side])
            is_last = number == len(runs) - 2
            split.right = self.grow(first_child + last_side, rows_of_copy[last_side]) if is_last else len(self.nodes)
            split.default = split.left if side == missing_side else split.right
        return index

    def describe(self, outputs: Array) -> dict[str, Any]:
        """Return the tree as shap takes it; `outputs` has a row per value of a leaf, a column per output of shap."""
        leaves = np.array([node.leaf for node in self.nodes])
        values = self.forest.value[leaves].reshape(len(leaves), -1) * (leaves >= 0)[:, None]

        def list_values(name: str) -> Array:
            return np.array([getattr(node, name) for node in self.nodes], dtype=np.float64)

        return {
            "children_left": list_values("left"),
            "children_right": list_values("right"),
            "children_default": list_values("default"),
            "features": list_values("feature"),
            "thresholds": list_values("threshold"),
            "node_sample_weight": list_values("rows"),
            "values": values @ outputs,
        }

    def _add(self, rows: float) -> _Node:
        if len(self.nodes) >= self.most_nodes:
            raise ValueError("the trees are too large for shap, which copies what is below categories: use explain")
        self.nodes.append(_Node(rows))
        return self.nodes[-1]


def _list_runs(forest: Forest, node: int) -> list[tuple[int, float]]:
    """Return a split as runs of values that go to one side: (0 for the left, the last value of the run), in order."""
    if forest.set[node] < 0:
        return [(0, float(forest.threshold[node])), (1, np.inf)]
    goes_left = np.zeros(MOST_CATEGORIES, dtype=np.bool_)
    goes_left[[*forest.categories_going_left(node)]] = True
    ends = np.flatnonzero(goes_left[1:] != goes_left[:-1]).tolist()
    if not ends:  # No category goes left.
        return [(0, BELOW_CATEGORIES), (1, np.inf)]
    sides = [1 - int(goes_left[end]) for end in [*ends, MOST_CATEGORIES - 1]]
    return list(zip(sides, [*map(float, ends), np.inf], strict=True))
