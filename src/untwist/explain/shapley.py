"""Exact Shapley values of the trees.

What is explained is the boosted score before noise rates or a transition matrix untwist it, so that columns add up:
`decision_function`, or where noise was found or given what `decision_function` rises with. A positive value speaks for
classes_[1], or for the class in question beyond two. Of classes that were boosted together a score is the logarithm of
the twisted posterior, up to a constant that the classes of a row share: scores of one row are compared with each other.
A column that is left out is averaged over: at its splits both ways are taken, each with its share of the background
rows ("tree path dependent" in shap).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.forest import MOST_CATEGORIES, Forest
from untwist.data.encoding import TableEncoder
from untwist.display import abbreviate
from untwist.export.scoring import Scoring
from untwist.optional import import_optional
from untwist.predicting import find_model

#: A leaf without any background row counts as having this many, so that no share is zero divided by zero.
EMPTY_LEAF = 1e-6

#: A block of rows has at most this many pairs of a row and a step of a path.
CELLS_PER_BLOCK = 1 << 20

#: Background rows go down the trees in blocks of this many.
ROWS_PER_BLOCK = 10_000


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each column adds to the score of each row.

    Parameters
    ----------
    values : array
        values[row, column], with a further axis of classes where there are more than two.
    base_values : float or array
        The score where no column is known; one per class where there are more than two.
    data : array
        The rows as numbers, as the trees take them.
    shown : array
        The same with categories as the user knows them.
    feature_names : list of str
        The names of the columns.
    """

    values: Array
    base_values: Any
    data: Array
    shown: NDArray[Any]
    feature_names: list[str]

    __repr__ = abbreviate

    @property
    def scores(self) -> Array:
        """The boosted scores that the contributions add up to."""
        return np.asarray(self.base_values + self.values.sum(axis=1))

    def importances(self) -> Array:
        """Return how much each column moves the scores of these rows, as shares: the mean of the absolute values.

        Other than the importances of the trees, these do not count what a column gained by chance and what other trees
        then made up for: on rows that the model was not fitted to, a column that says nothing has next to none.

        Returns
        -------
        array of shape (n_columns,)
            Shares that sum to 1, or zeros where nothing moves the scores; of several classes, over all of them.
        """
        means = np.abs(self.values).mean(axis=0).reshape(len(self.feature_names), -1).sum(axis=1)
        return np.asarray(means / means.sum() if means.sum() else means)

    def to_shap(self) -> Any:
        """Return the contributions as the plots of shap take them.

        Returns
        -------
        shap.Explanation
            The values, base values, rows and names of columns.
        """
        shap = import_optional("shap", "to_shap", extra="shap")
        base = np.broadcast_to(self.base_values, self.scores.shape).copy()
        return shap.Explanation(self.values, base, self.data, display_data=self.shown, feature_names=self.feature_names)


def explain(model: Any, X: Any, background: Any = None) -> Contributions:
    """Return what every column contributes to the score of every row of X.

    The time grows with rows times leaves times depth.

    Parameters
    ----------
    model : UntwistClassifier, PILBoostClassifier or FittedModel
        A fitted model.
    X : table
        The rows to explain.
    background : table or None
        The rows to average over, by default X itself.

    Returns
    -------
    Contributions
        The contributions, and the score that they start from.
    """
    fitted = find_model(model)  # Another thread may fit the classifier meanwhile.
    scoring = Scoring.from_model(fitted)
    named = None if fitted is model else model
    rows = fitted.encoder.encode_dense(X, named)
    known = rows if background is None else fitted.encoder.encode_dense(background, named)
    n_jobs = getattr(model, "n_jobs", None)
    found = []
    for forest in scoring.forests:
        shares = find_background_shares(forest, known, n_jobs)
        found.append(_explain_forest(forest, shares, rows))
    values = np.concatenate([one for one, _ in found], axis=2)
    base = np.concatenate([one for _, one in found])
    if scoring.n_scores == 1:
        values = values[:, :, 0]
        base = base[0]
    encoder = fitted.encoder
    return Contributions(
        values=scoring.sign * values,
        base_values=scoring.sign * base,
        data=rows,
        shown=_show_categories(encoder, encoder.by_index.encode_dense(X) if encoder.schema.numbers else rows),
        feature_names=_name_columns(encoder),
    )


def shap_values(model: Any, X: Any, background: Any = None) -> Array:
    """Return the values of `explain`.

    Parameters
    ----------
    model, X, background
        As for `explain`.

    Returns
    -------
    array
        values[row, column], or values[row, column, class] beyond two classes.
    """
    return explain(model, X, background).values


def _name_columns(encoder: TableEncoder) -> list[str]:
    return [f"column {label}" if isinstance(label, int) else str(label) for label in encoder.feature_labels]


def _show_categories(encoder: TableEncoder, rows: Array) -> NDArray[Any]:
    """Return rows, given with indices of categories, with categories and dates as the user knows them.

    A missing category or date is None.
    """
    shown = rows.astype(object)
    for column in encoder.schema.dates:
        shown[:, column] = [encoder.decode(column, number) for number in rows[:, column].tolist()]
    for column, known in encoder.schema.categories.items():
        missing = np.isnan(rows[:, column])
        codes = np.where(missing, len(known), rows[:, column]).astype(np.intp)
        shown[:, column] = np.array([*known, None], dtype=object)[codes]
    return shown


def find_background_shares(forest: Forest, background: Array, n_jobs: int | None) -> Array:
    """Return the share of its parent's background rows that each node has; 1 at a root.

    Parameters
    ----------
    forest : Forest
        The trees.
    background : array
        The rows to average over, as numbers.
    n_jobs : int or None
        Threads.

    Returns
    -------
    array
        A share for each node.
    """
    counts = np.where(forest.feature < 0, EMPTY_LEAF, 0.0)
    for start in range(0, len(background), ROWS_PER_BLOCK):
        leaves = forest.leaves(background[start : start + ROWS_PER_BLOCK], n_jobs) + forest.offset[:-1]
        counts += np.bincount(leaves.ravel(), minlength=len(counts))
    splits = np.flatnonzero(forest.feature >= 0)
    left = (forest.left + np.repeat(forest.offset[:-1], np.diff(forest.offset)))[splits]
    # Children come after their parents: from the last split on, both children of a split have been counted.
    for split, child in zip(splits[::-1].tolist(), left[::-1].tolist(), strict=True):
        counts[split] = counts[child] + counts[child + 1]
    shares = np.ones(len(counts))
    shares[left] = counts[left] / counts[splits]
    shares[left + 1] = counts[left + 1] / counts[splits]
    return shares


def _explain_forest(forest: Forest, shares: Array, rows: Array) -> tuple[Array, Array]:
    """Return values[row, column, output], and the base value of each output."""
    columns = np.ascontiguousarray(rows.T)
    values = np.zeros((forest.n_outputs, *columns.shape))
    base = np.zeros(forest.n_outputs)
    for tree in range(len(forest)):
        nodes = forest.nodes_of(tree)
        if nodes.stop - nodes.start == 1:  # The tree is a leaf.
            base += forest.value[nodes.start]
            continue
        paths = _Paths.from_tree(forest, nodes, shares)
        base += np.multiply.reduceat(paths.share, paths.leaf) @ paths.value
        step = max(1, CELLS_PER_BLOCK // len(paths.share))
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            paths.add_values(_find_rows_going_left(forest, nodes, columns[:, block]), values[:, :, block])
    return values.transpose(2, 1, 0), base


def _find_rows_going_left(forest: Forest, nodes: slice, columns: Array) -> NDArray[np.bool_]:
    """Return for each node of a tree and each row whether the row would go left there."""
    goes_left = np.zeros((nodes.stop - nodes.start, columns.shape[1]), dtype=np.bool_)
    for node in (nodes.start + np.flatnonzero(forest.feature[nodes] >= 0)).tolist():
        x = columns[forest.feature[node]]
        missing_left = bool(forest.missing_left[node])
        if forest.set[node] < 0:
            goes_left[node - nodes.start] = (x <= forest.threshold[node]) | (np.isnan(x) & missing_left)
            continue
        category_goes_left = np.zeros(MOST_CATEGORIES + 1, dtype=np.bool_)  # The last one stands for a missing value.
        category_goes_left[[*forest.categories_going_left(node)]] = True
        category_goes_left[MOST_CATEGORIES] = missing_left
        categories = np.where(np.isnan(x), float(MOST_CATEGORIES), x).astype(np.intp)
        goes_left[node - nodes.start] = category_goes_left[categories]
    return goes_left


@dataclass(frozen=True, eq=False)
class _Paths:
    """The ways to the leaves of a tree, each in steps, one for each column that is asked on it.

    A step is one or more splits (`node`, counted from the root, and whether the path goes `left` there), from split[i]
    on; its `share` of the background rows is what the path keeps of them there. The steps of a leaf begin at leaf[j],
    and its values, one for each output, are value[j].
    """

    node: NDArray[np.intp]
    left: NDArray[np.bool_]
    split: NDArray[np.intp]
    column: NDArray[np.intp]
    share: Array
    leaf: NDArray[np.intp]
    value: Array

    @classmethod
    def from_tree(cls, forest: Forest, nodes: slice, shares: Array) -> _Paths:
        """Return the paths of the tree with these nodes."""
        feature, first_child, share_of_node = (
            values[nodes].tolist() for values in (forest.feature, forest.left, shares)
        )
        node: list[int] = []
        left: list[bool] = []
        split: list[int] = []
        column: list[int] = []
        share: list[float] = []
        leaf: list[int] = []
        ends: list[int] = []
        # The steps to a node: for each column the splits by it, and the share of the background rows that is left.
        unfinished: list[tuple[int, dict[int, tuple[list[tuple[int, bool]], float]]]] = [(0, {})]
        while unfinished:
            end, steps = unfinished.pop()
            asked = feature[end]
            if asked >= 0:
                splits, share_before = steps.get(asked, ([], 1.0))
                for goes_left in (False, True):
                    child = first_child[end] + (not goes_left)
                    step = ([*splits, (end, goes_left)], share_before * share_of_node[child])
                    unfinished.append((child, {**steps, asked: step}))
                continue
            ends.append(end)
            leaf.append(len(split))
            for each, (splits, share_of_step) in steps.items():
                split.append(len(node))
                column.append(each)
                share.append(share_of_step)
                node += [parent for parent, _ in splits]
                left += [goes_left for _, goes_left in splits]
        return cls(
            node=np.array(node),
            left=np.array(left),
            split=np.array(split),
            column=np.array(column),
            share=np.array(share),
            leaf=np.array(leaf),
            value=forest.value[nodes][ends].reshape(len(ends), -1),
        )

    def add_values(self, goes_left: NDArray[np.bool_], values: Array) -> None:
        """Add what columns contribute, values[output, column, row], to those given.

        On a path let o be 1 where the row takes the step and 0 elsewhere, and z the share. With only some columns known
        a path weighs the product of their o and the others' z, times the leaf. The Shapley value is a mean over all
        sets of known columns: (o - z) times the integral over t in [0, 1] of the product of t*o + (1-t)*z over the
        other columns. That is a polynomial in t, which Gauss' quadrature integrates exactly. All outputs share it.
        """
        follows = np.logical_and.reduceat(goes_left[self.node] == self.left[:, None], self.split, axis=0)
        lengths = np.diff([*self.leaf, len(self.split)])
        share = self.share[:, None]
        total = np.zeros(follows.shape)
        points, weights = np.polynomial.legendre.leggauss((int(lengths.max()) + 1) // 2)
        for t, weight in zip(0.5 + 0.5 * points, 0.5 * weights, strict=True):
            factor = np.where(follows, t + (1.0 - t) * share, (1.0 - t) * share)
            product = np.multiply.reduceat(factor, self.leaf, axis=0)
            total += weight * np.repeat(product, lengths, axis=0) / factor
        total *= follows - share
        value = np.repeat(self.value, lengths, axis=0)
        for column in np.unique(self.column):
            steps = self.column == column
            values[:, column] += np.einsum("sr,so->or", total[steps], value[steps])
