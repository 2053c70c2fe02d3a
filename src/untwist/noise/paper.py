"""The paper's three ways to alpha: Menon's estimate from twisted labels, and two formulas that need clean labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from scipy.stats import beta
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from untwist.arguments import Array, check_fraction, check_numbers
from untwist.noise.estimate import CONFIDENCE, RatesEstimate
from untwist.theory.twists import alpha_star

__all__ = ["MenonEstimate", "menon", "original_learned", "taylor"]

# Posteriors this close to one half take the limit of a formula that divides 0 by 0 there.
NEAR_HALF = 1e-9
# A leaf may fall short of its least share of the weight by this part, as a sum of weights does by rounding.
ROUNDING = 1e-9
# The authors add this to the alpha that follows from the rates.
ADDED_TO_ALPHA = 0.01


@dataclass(frozen=True)
class MenonEstimate(RatesEstimate):
    """The rates of `menon`, and the alpha that the paper makes of them.

    Attributes
    ----------
    rate : float
        The symmetric reading of both rates.
    eta_mean : float
        The mean share of positives over the leaves.
    alpha : float
        The paper's alpha_0.
    """

    rate: float
    eta_mean: float
    alpha: float

    @property
    def _source(self) -> str:
        """What all of it rests on, in words: hard data look the same."""
        return " (if the clearest rows are certain)"


def menon(X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None, random_state: Any = 0) -> MenonEstimate:
    """Estimate the noise as the paper does, by the extremes of the leaves of one entropy tree.

    The tree has at least ceil(sqrt(n)) rows per leaf and at most ceil(ln n) leaves; rate_neg is the lowest share of
    positives in a leaf, 1 - rate_pos the highest, `rate` = sqrt(rate_neg * rate_pos), and alpha the paper's alpha_0,
    which takes the mean over leaves for the twisted posterior. On hard but clean data it invents noise.

    Leaves are chosen for their extreme shares of positives, so that the rows that a tree was grown from exaggerate
    them, the more the more rows there are to choose from. The intervals are therefore those of a second tree, grown in
    the same way from one half of the rows and counted on the other. They hold for all of its leaves at once, and reach
    as far as the rates of the first tree; noise is found if one of them leaves out 0.

    Where the formula says nothing: a mean of one half has the limit 1 / (1 - 2 rate); leaves that are all alike tell
    nothing, and alpha is 1; a clean posterior beyond 0 or 1 counts as 1/(n+2) from it. A class that is alone counts as
    the negative one, and tells nothing either.

    Parameters
    ----------
    X : array_like of shape (n_rows, n_columns)
        Numbers.
    y : array_like of shape (n_rows,)
        Labels of at most two classes; the second in order is the positive one.
    sample_weight : array_like of shape (n_rows,), optional
        How much each row counts.
    random_state : default 0
        What the tree breaks ties by, as in scikit-learn.

    Returns
    -------
    MenonEstimate
        The rates and the alpha.

    Examples
    --------
    >>> x = np.linspace(-1.0, 1.0, 400)
    >>> y = (x > 0) ^ (np.arange(400) % 5 == 0)
    >>> print(menon(x[:, None], y))
    wrong labels (if the clearest rows are certain): 15.0% (0.0% to 36.2%) of the negatives, 16.7% (0.0% to 25.1%) of
    the positives
    """
    table = np.asarray(X)
    labels = np.asarray(y)
    if table.ndim != 2 or labels.ndim != 1 or len(table) != len(labels) or len(labels) == 0:
        raise ValueError(f"X must be a table with a row per label, got shapes {table.shape} and {labels.shape}")
    classes, class_index = np.unique(labels, return_inverse=True)
    if classes.size > 2:
        raise ValueError(f"y must have at most two classes, got {classes.size}")
    weight = np.ones(len(labels)) if sample_weight is None else check_numbers("sample_weight", sample_weight)
    if weight.shape != labels.shape or not ((weight >= 0).all() and 0 < weight.sum() < np.inf):
        raise ValueError("sample_weight must be finite and non-negative, one per row, not all 0")
    # In this order sums, those of the trees too, do not depend on that of the rows.
    order = np.lexsort((weight, class_index, *table.T))
    order = order[weight[order] > 0]
    table = table[order]
    class_index = class_index[order]
    weight = weight[order]
    rows, positives = _count_by_leaf(_grow_tree(table, class_index, weight, random_state), table, class_index, weight)
    share = positives / rows
    low, high = float(share.min()), float(share.max())
    rate = math.sqrt(low * (1.0 - high))
    eta_mean = float(share.mean())
    grown, counted = _halve_rows(len(weight), random_state)
    tree = _grow_tree(table[grown], class_index[grown], weight[grown], random_state)
    rows, positives = _count_by_leaf(tree, table[counted], class_index[counted], weight[counted])
    # The intervals of all leaves hold at once.
    tail = (1.0 - CONFIDENCE) / 2.0 / len(rows)
    lower = np.where(positives > 0, beta.ppf(tail, positives, rows - positives + 1.0), 0.0)
    upper = np.where(positives < rows, beta.ppf(1.0 - tail, positives + 1.0, rows - positives), 1.0)
    interval_neg = min(float(lower.min()), low), max(float(upper.min()), low)
    interval_pos = min(float(1.0 - upper.max()), 1.0 - high), max(float(1.0 - lower.max()), 1.0 - high)
    return MenonEstimate(
        rate_neg=low,
        rate_pos=1.0 - high,
        interval_neg=interval_neg,
        interval_pos=interval_pos,
        found=bool(len(rows) > 1 and max(interval_neg[0], interval_pos[0]) > 0),
        rate=rate,
        eta_mean=eta_mean,
        alpha=_menon_alpha(rate, eta_mean, _count_rows(weight)),
    )


def _count_rows(weight: Array) -> float:
    """Return how many rows there are, by their weight if that is more."""
    return max(len(weight), float(weight.sum()))


def _grow_tree(table: Array, labels: NDArray[np.intp], weight: Array, random_state: Any) -> DecisionTreeClassifier:
    """Grow the paper's entropy tree."""
    n = _count_rows(weight)
    least_share = math.ceil(math.sqrt(n)) / n
    return DecisionTreeClassifier(
        criterion="entropy",
        min_weight_fraction_leaf=min(least_share * (1.0 - ROUNDING), 0.5),
        # Two leaves of that share may not fit, and then no split is allowed.
        min_samples_split=2 if least_share <= 0.5 else len(labels) + 1,
        max_leaf_nodes=max(2, math.ceil(math.log(n))),
        random_state=random_state,
    ).fit(table, labels, sample_weight=weight)


def _count_by_leaf(
    tree: DecisionTreeClassifier, table: Array, labels: NDArray[np.intp], weight: Array
) -> tuple[Array, Array]:
    """Return the weight of all rows, and of the positives, in each leaf that has any."""
    if len(labels) == 0:
        return np.zeros(1), np.zeros(1)
    _, leaf = np.unique(tree.apply(table), return_inverse=True)
    rows, positives = (np.asarray(np.bincount(leaf, one), dtype=np.float64) for one in (weight, weight * labels))
    return rows, positives


def _halve_rows(n_rows: int, random_state: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw two halves of the rows; of one row the second has none."""
    drawn = check_random_state(random_state).permutation(n_rows)
    middle = (n_rows + 1) // 2
    return np.sort(drawn[:middle]), np.sort(drawn[middle:])


def _menon_alpha(rate: float, eta_mean: float, n: float) -> float:
    """Return the paper's alpha_0 of a symmetric rate and the mean posterior over the leaves."""
    if rate >= 0.5 or eta_mean in (0.0, 1.0):
        # All leaves are alike, and there is nothing to undo.
        return 1.0
    if math.isclose(eta_mean, 0.5, abs_tol=NEAR_HALF):
        return 1.0 / (1.0 - 2.0 * rate) + ADDED_TO_ALPHA
    clean = _keep_inside((eta_mean - rate) / (1.0 - 2.0 * rate), n)
    return max(1.0, float(alpha_star(clean, eta_mean))) + ADDED_TO_ALPHA


def original_learned(y_clean: ArrayLike, y_predicted: ArrayLike, *, by: str = "text") -> float:
    """Return alpha from the errors of a model trained on twisted labels, on rows whose labels are *clean*.

    Parameters
    ----------
    y_clean : array_like of shape (n_rows,)
        The clean labels, 0 or 1.
    y_predicted : array_like of shape (n_rows,)
        What the model predicts, 0 or 1.
    by : {"text", "script"}, default "text"
        "text": the error rate is the mean over predicted classes; "script", as the authors ran it, over true classes.

    Returns
    -------
    float
        The alpha.

    Examples
    --------
    >>> round(original_learned([0, 0, 0, 1, 1], [0, 0, 1, 1, 0]), 3)
    6.08
    """
    true_pos, false_pos, true_neg, false_neg = _count_outcomes(y_clean, y_predicted)
    if by == "text":
        rate = (_find_share(false_pos, true_pos) + _find_share(false_neg, true_neg)) / 2.0
    elif by == "script":
        rate = (_find_share(false_neg, true_pos) + _find_share(false_pos, true_neg)) / 2.0
    else:
        raise ValueError(f'by must be "text" or "script", got {by!r}')
    total = true_pos + false_pos + true_neg + false_neg
    clean = _keep_inside((false_neg + true_pos) / total, total)
    if math.isclose(clean, 0.5, abs_tol=NEAR_HALF) and rate < 0.5:
        return 1.0 / (1.0 - 2.0 * rate)
    return float(alpha_star(clean, clean * (1.0 - rate) + (1.0 - clean) * rate))


def taylor(y_clean: ArrayLike, y_predicted: ArrayLike, *, rate: float = 0.1) -> float:
    """Return the alpha of `original_learned` to first order in the noise rate, at the predicted positives.

    Parameters
    ----------
    y_clean : array_like of shape (n_rows,)
        The clean labels, 0 or 1.
    y_predicted : array_like of shape (n_rows,)
        What the model predicts, 0 or 1.
    rate : float, default 0.1
        The noise rate, in [0, 1]; the authors fix it at 0.1.

    Returns
    -------
    float
        The alpha.

    Examples
    --------
    >>> round(taylor([0, 0, 0, 1, 1], [0, 0, 1, 1, 0]), 3)
    1.206
    """
    rate = check_fraction("rate", rate)
    true_pos, false_pos, true_neg, false_neg = _count_outcomes(y_clean, y_predicted)
    total = true_pos + false_pos + true_neg + false_neg
    eta = _keep_inside((false_pos + true_pos) / total, total)
    if math.isclose(eta, 0.5, abs_tol=NEAR_HALF):
        return 1.0 + 2.0 * rate
    return float(1.0 + (1.0 - 2.0 * eta) * rate / ((eta - 1.0) * eta * logit(eta)))


def _count_outcomes(y_clean: ArrayLike, y_predicted: ArrayLike) -> tuple[float, float, float, float]:
    """Count true and false positives, true and false negatives."""
    clean, predicted = np.asarray(y_clean), np.asarray(y_predicted)
    if clean.ndim != 1 or clean.shape != predicted.shape or clean.size == 0:
        raise ValueError(f"y_clean and y_predicted must be one per row, got shapes {clean.shape}, {predicted.shape}")
    if not (np.isin(clean, (0, 1)).all() and np.isin(predicted, (0, 1)).all()):
        raise ValueError("y_clean and y_predicted must be 0 or 1")

    def count_rows(truth: int, prediction: int) -> float:
        return float(np.count_nonzero((clean == truth) & (predicted == prediction)))

    return count_rows(1, 1), count_rows(0, 1), count_rows(0, 0), count_rows(1, 0)


def _find_share(wrong: float, right: float) -> float:
    return wrong / (wrong + right) if wrong + right else 0.0


def _keep_inside(eta: float, n: float) -> float:
    """Return the nearest posterior that is at least 1/(n+2) from 0 and 1."""
    margin = 1.0 / (n + 2.0)
    return min(max(eta, margin), 1.0 - margin)
