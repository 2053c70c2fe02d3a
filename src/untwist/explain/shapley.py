"""Which columns make a score: exact Shapley values of the trees.

    contributions = explain(model, X)         # values[row, column] add up to the score, beyond base_values
    contributions.to_shap()                   # a shap.Explanation, for the plots of shap

What is explained is the boosted score before noise rates untwist it, so that columns add up: `decision_function`, or
where noise was found or given what `decision_function` rises with. A positive value speaks for classes_[1], or for the
class in question beyond two. A column that is left out is averaged over: at its splits both ways are taken, each with
its share of the background rows ("tree path dependent" in shap).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.forest import Forest
from untwist.classifier import PILBoostClassifier
from untwist.export.scoring import Scoring, members, needed, numbers

__all__ = ["Contributions", "explain", "shap_values", "tree_explainer"]

EMPTY = 1e-6  # rows that a leaf without any counts as having, so that shares of nothing are something
BLOCK = 1 << 20  # paths times rows at a time
MOST_NODES = 1 << 23  # trees times the nodes of the largest, which is how much shap reserves


@dataclass(frozen=True)
class Contributions:
    """What each column adds to the score of each row, from base_values, the score of no column known.

    values[row, column], and base_values a number; with a further axis of classes where there are more than two. `data`
    are the rows as numbers, `shown` the same with categories as the user knows them.
    """

    values: Array
    base_values: Any
    data: Array
    shown: NDArray[Any]
    feature_names: list[str]

    @property
    def scores(self) -> Array:
        """The boosted scores that the contributions add up to."""
        return np.asarray(self.base_values + self.values.sum(axis=1))

    def to_shap(self) -> Any:
        """As a shap.Explanation, which the plots of shap take."""
        shap = needed("shap", "to_shap")
        base = np.broadcast_to(self.base_values, self.scores.shape).copy()
        return shap.Explanation(self.values, base, self.data, display_data=self.shown, feature_names=self.feature_names)


def explain(model: PILBoostClassifier, X: Any, background: Any = None) -> Contributions:
    """The contributions of every column to the score of every row of X.

    `background` are the rows to average over, by default X itself. The time grows with rows times leaves times depth.
    """
    scoring, rows = Scoring.of(model), numbers(model, X)
    known = rows if background is None else numbers(model, background)
    found = [_forest_values(forest, _shares(forest, known, model.n_jobs), rows) for forest in scoring.forests]
    values, base = np.stack([one[0] for one in found], axis=2), np.array([one[1] for one in found])
    if len(found) == 1:
        values, base = values[:, :, 0], base[0]
    names = getattr(model, "feature_names_in_", [f"column {index}" for index in range(rows.shape[1])])
    return Contributions(
        scoring.sign * values, scoring.sign * base, rows, _shown(model, rows), [str(name) for name in names]
    )


def shap_values(model: PILBoostClassifier, X: Any, background: Any = None) -> Array:
    """The values of `explain`: values[row, column], or values[row, column, class] beyond two classes."""
    return explain(model, X, background).values


def _shown(model: PILBoostClassifier, rows: Array) -> NDArray[Any]:
    shown = rows.astype(object)
    for column, known in model._schema.categories.items():
        missing = np.isnan(rows[:, column])
        codes = np.where(missing, len(known), rows[:, column]).astype(np.intp)
        shown[:, column] = np.array([*known, None], dtype=object)[codes]
    return shown


# ---- Shapley values of trees ----


def _shares(forest: Forest, background: Array, n_jobs: int | None) -> Array:
    """Of each node the share of the background rows in its parent that it has; 1 at a root."""
    counts = np.where(forest.feature < 0, EMPTY, 0.0)
    for start in range(0, len(background), 10_000):
        leaves = forest.leaves(background[start : start + 10_000], n_jobs) + forest.offset[:-1]
        counts += np.bincount(leaves.ravel(), minlength=len(counts))
    splits = np.flatnonzero(forest.feature >= 0)
    left = (forest.left + np.repeat(forest.offset[:-1], np.diff(forest.offset)))[splits]
    for split, child in zip(splits[::-1].tolist(), left[::-1].tolist(), strict=True):  # children come after parents
        counts[split] = counts[child] + counts[child + 1]
    shares = np.ones(len(counts))
    shares[left], shares[left + 1] = counts[left] / counts[splits], counts[left + 1] / counts[splits]
    return shares


def _forest_values(forest: Forest, shares: Array, rows: Array) -> tuple[Array, float]:
    """values[row, column], and the base value."""
    columns = np.ascontiguousarray(rows.T)
    values, base = np.zeros(columns.shape), 0.0
    for first, end in zip(forest.offset[:-1].tolist(), forest.offset[1:].tolist(), strict=True):
        if end - first == 1:  # a leaf
            base += float(forest.value[first])
            continue
        paths = _Paths.of(forest, first, shares)
        base += float(paths.value @ np.multiply.reduceat(paths.share, paths.leaf))
        step = max(1, BLOCK // len(paths.share))
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            paths.add_values(_goes_left(forest, first, end, columns[:, block]), values[:, block])
    return values.T, base


def _goes_left(forest: Forest, first: int, end: int, columns: Array) -> NDArray[np.bool_]:
    """For each node of a tree and each row whether the row would go left there."""
    left = np.zeros((end - first, columns.shape[1]), dtype=np.bool_)
    for node in (first + np.flatnonzero(forest.feature[first:end] >= 0)).tolist():
        x, missing_left = columns[forest.feature[node]], bool(forest.missing_left[node])
        if forest.set[node] < 0:
            left[node - first] = (x <= forest.threshold[node]) | (np.isnan(x) & missing_left)
        else:
            inside = np.zeros(257, dtype=np.bool_)
            inside[[*members(forest, node)]], inside[256] = True, missing_left
            left[node - first] = inside[np.where(np.isnan(x), 256.0, x).astype(np.intp)]
    return left


@dataclass(frozen=True)
class _Paths:
    """The ways to the leaves of a tree, each in steps, one for each column that is asked on it.

    A step is one or more splits (`node`, counted from the root, and whether the path goes `left` there), from split[i]
    on; its `share` of the background rows is what the path keeps of them there. The steps of a leaf begin at leaf[j].
    """

    node: NDArray[np.intp]
    left: NDArray[np.bool_]
    split: NDArray[np.intp]
    column: NDArray[np.intp]
    share: Array
    leaf: NDArray[np.intp]
    value: Array

    @classmethod
    def of(cls, forest: Forest, root: int, shares: Array) -> _Paths:
        """Those of the tree with this first node."""
        lists: list[list[Any]] = [[] for _ in range(7)]
        node, left, split, column, share, leaf, value = lists
        ways: list[tuple[int, list[tuple[int, int]]]] = [(root, [])]
        while ways:
            at, way = ways.pop()
            if forest.feature[at] >= 0:
                child = root + int(forest.left[at])
                ways += [(child + 1, [*way, (at, child + 1)]), (child, [*way, (at, child)])]
                continue
            leaf.append(len(split))
            value.append(forest.value[at])
            by_column: dict[int, list[tuple[int, int]]] = {}
            for step in way:
                by_column.setdefault(int(forest.feature[step[0]]), []).append(step)
            for each, steps in by_column.items():
                split.append(len(node))
                column.append(each)
                share.append(np.prod([shares[child] for _, child in steps]))
                node += [parent - root for parent, _ in steps]
                left += [child == root + forest.left[parent] for parent, child in steps]
        return cls(*map(np.array, lists))

    def add_values(self, goes_left: NDArray[np.bool_], values: Array) -> None:
        """Adds what columns contribute, values[column, row], to those given.

        On a path let o be 1 where the row takes the step and 0 elsewhere, and z the share. With only some columns known
        a path weighs the product of their o and the others' z, times the leaf. The Shapley value is a mean over all
        sets of known columns: (o - z) times the integral over t in [0, 1] of the product of t*o + (1-t)*z over the
        other columns. That is a polynomial in t, which Gauss' quadrature integrates exactly.
        """
        follows = np.logical_and.reduceat(goes_left[self.node] == self.left[:, None], self.split, axis=0)
        lengths = np.diff([*self.leaf, len(self.split)])
        share, total = self.share[:, None], np.zeros(follows.shape)
        points, weights = np.polynomial.legendre.leggauss((int(lengths.max()) + 1) // 2)
        for t, weight in zip(0.5 + 0.5 * points, 0.5 * weights, strict=True):
            factor = np.where(follows, t + (1.0 - t) * share, (1.0 - t) * share)
            product = np.multiply.reduceat(factor, self.leaf, axis=0)
            total += weight * np.repeat(product, lengths, axis=0) / factor
        total *= (follows - share) * np.repeat(self.value, lengths)[:, None]
        for column in np.unique(self.column):
            values[column] += total[self.column == column].sum(axis=0)


# ---- the tree format of shap ----


def tree_explainer(model: PILBoostClassifier, background: Any) -> Any:
    """A shap.TreeExplainer of the boosted score: it takes rows of `untwist.export.numbers`, and knows interactions too.

    Its values are those of `explain`. shap's trees know thresholds only: a split by categories becomes a chain of
    splits, and what is below it is copied for every run of neighbours that go the same way. A ValueError says if that
    is too much.
    """
    shap = needed("shap", "tree_explainer")
    scoring, known = Scoring.of(model), numbers(model, background)
    most = MOST_NODES // sum(map(len, scoring.forests))
    trees = []
    for index, forest in enumerate(scoring.forests):
        shares = _shares(forest, known, model.n_jobs)
        place = scoring.sign * (np.arange(len(scoring.forests)) == index)
        trees += [_thresholds_only(forest, root, shares, place, most) for root in forest.offset[:-1].tolist()]
    described = {"trees": trees, "internal_dtype": np.float64, "input_dtype": np.float64, "tree_output": "raw_value"}
    return shap.TreeExplainer(described, feature_perturbation="tree_path_dependent")


def _thresholds_only(forest: Forest, root: int, shares: Array, place: Array, most: int) -> dict[str, Any]:
    """A tree as a dictionary of shap; its leaf values come at `place` among the outputs."""
    nodes: list[list[float]] = []  # left, right, default, feature, threshold, rows, value

    def add(rows: float) -> list[float]:
        if len(nodes) >= most:
            raise ValueError("the trees are too large for shap, which copies what is below categories: use explain")
        nodes.append([-1, -1, -1, -1, 0.0, rows, 0.0])
        return nodes[-1]

    def grow(at: int, rows: float) -> int:
        """The tree below a node, where so many rows come."""
        index, column = len(nodes), int(forest.feature[at])
        if column < 0:
            add(rows)[6] = forest.value[at]
            return index
        children = [root + int(forest.left[at]), root + int(forest.left[at]) + 1]
        runs = _runs(forest, at)
        copies = [max(1, sum(side == each for each, _ in runs)) for side in (0, 1)]
        each = [
            rows * shares[child] / copies[side] for side, child in enumerate(children)
        ]  # shared alike: only sums matter
        missing = 1 - int(forest.missing_left[at])
        for number, (side, end) in enumerate(runs[:-1]):
            split = add(rows)
            rows -= each[side]
            split[3:5] = column, end
            split[0] = grow(children[side], each[side])
            split[1] = len(nodes) if number < len(runs) - 2 else grow(children[runs[-1][0]], each[runs[-1][0]])
            split[2] = split[0] if side == missing else split[1]
        return index

    grow(root, 1.0)
    left, right, default, feature, threshold, rows, value = np.array(nodes).T
    return {
        "children_left": left,
        "children_right": right,
        "children_default": default,
        "features": feature,
        "thresholds": threshold,
        "node_sample_weight": rows,
        "values": value[:, None] * place,
    }


def _runs(forest: Forest, node: int) -> list[tuple[int, float]]:
    """A split as runs of values that go to one side, 0 for the left: (side, the last value of the run), in order."""
    if forest.set[node] < 0:
        return [(0, float(forest.threshold[node])), (1, np.inf)]
    inside = np.zeros(256, dtype=np.bool_)
    inside[[*members(forest, node)]] = True
    last = np.flatnonzero(inside[1:] != inside[:-1]).tolist() or [-1]  # none inside: no category is at most -1
    sides = [1 - int(inside[0]) if last != [-1] else 0]
    sides += [1 - int(inside[end + 1]) for end in last]
    return list(zip(sides, [*map(float, last), np.inf], strict=True))
