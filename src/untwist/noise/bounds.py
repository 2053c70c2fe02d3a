"""Upper bounds of noise rates that take no model at its word: what the surest rows exclude.

Of rows that were chosen by their features alone no greater part can bear label j than class j keeps of its own rows,
whatever the rows truly are, where errors do not depend on features and no class bears label j more often than class j
does. So a lower bound of the part of the surest rows that bears j is one of what j keeps, be the posterior calibrated
or not. Nothing follows for errors that depend on features: a corner whose labels are all wrong looks like a corner of
the other class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linprog
from scipy.stats import beta

from untwist.arguments import Array
from untwist.noise.estimate import CONFIDENCE

__all__ = ["bound_rates", "bound_share"]

#: The numbers of surest rows that are tried fall by this factor, from all rows to one. With 1.3, 1.5, 2, 3 and 4 the
#: bounds of the tables that tests/noise/test_bounds.py draws were equally tight, to 0.01: more numbers fit better, and
#: each has to hold with more confidence.
DEPTH_FACTOR = 2.0


def bound_rates(
    posterior: Array, labels: NDArray[np.intp], *, groups: ArrayLike | None = None, confidence: float = CONFIDENCE
) -> Array:
    """Return an upper bound of the part of each true class that bears another label, by Clopper and Pearson.

    It holds with the confidence for each class, over all numbers of surest rows that are tried (Bonferroni), if errors
    do not depend on features and no class bears a label more often than the class that it names.

    Parameters
    ----------
    posterior : array of shape (n_rows, n_classes)
        The posterior of the labels by models that have not seen them; rows that do not count are left out before.
    labels : array of int of shape (n_rows,)
        The class that each label names; a negative number where that is not known, which counts as another class.
    groups : array_like of int of shape (n_rows,), optional
        The group of each row. Rows of a group may err together, so that each group has one row for each class: the
        surest.
    confidence : float, default 0.95
        The probability that each bound holds.

    Returns
    -------
    ndarray of shape (n_classes,)
        Each from 0 to 1, whatever the order of the rows; 1 where there are no rows.

    Examples
    --------
    >>> posterior = np.repeat([[0.9, 0.1], [0.2, 0.8]], 100, axis=0)
    >>> bound_rates(posterior, np.repeat([0, 1], 100)).round(3)
    array([0.049, 0.049])
    """
    n_classes = posterior.shape[1]
    numbers = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    return np.array(
        [
            _bound_rate(*_keep_surest(posterior[:, one], labels == one, numbers), confidence=confidence)
            for one in range(n_classes)
        ]
    )


def _keep_surest(
    sure: Array, bears: NDArray[np.bool_], numbers: NDArray[np.intp] | None
) -> tuple[Array, NDArray[np.bool_]]:
    """Return how sure the surest row of each group is, and whether it bears the label; of equals all must."""
    if numbers is None:
        return sure, bears
    n_groups = int(numbers.max(initial=-1)) + 1
    surest = np.full(n_groups, -np.inf)
    np.maximum.at(surest, numbers, sure)
    is_surest = sure == surest[numbers]
    all_bear = np.ones(n_groups, dtype=np.bool_)
    all_bear[numbers[is_surest & ~bears]] = False
    return surest, all_bear


def _bound_rate(sure: Array, bears: NDArray[np.bool_], *, confidence: float) -> float:
    """Return the upper bound of one class: the lowest over numbers of its surest rows."""
    if not len(sure):
        return 1.0
    order = np.argsort(-sure, kind="stable")
    # Rows that are equally sure are taken together: their order would be one by labels.
    ends = np.append(np.flatnonzero(np.diff(sure[order])), len(sure) - 1)
    n_depths = int(np.log(len(sure)) / np.log(DEPTH_FACTOR)) + 1
    wanted = np.ceil(len(sure) / DEPTH_FACTOR ** np.arange(n_depths)).astype(np.intp) - 1
    depths = np.unique(ends[np.searchsorted(ends, wanted)])
    others = np.cumsum(~bears[order])[depths]
    total = depths + 1
    # The quantile of a beta law whose second parameter is 0 is not defined: all rows may bear other labels then.
    by_depth = beta.ppf(1.0 - (1.0 - confidence) / n_depths, others + 1, np.maximum(total - others, 1))
    return float(np.where(others < total, by_depth, 1.0).min())


def bound_share(rates: Array, label_shares: Array) -> float:
    """Return the largest share of wrong labels that rates and the shares of given labels leave open.

    How frequent the true classes are is not known, only how frequent labels are. So of all ways in which labels may
    have moved between classes that with most moves is taken, by linear programming: what a class loses is at most its
    rate, what labels gain is at most what they are, and no label moves to the class that it comes from.

    Parameters
    ----------
    rates : array of shape (n_classes,)
        The highest part of each true class that bears another label.
    label_shares : array of shape (n_classes,)
        The share of all labels that each one is.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> round(bound_share(np.array([0.1, 0.4]), np.array([0.75, 0.25])), 3)
    0.19
    """
    n_classes = len(rates)
    # The unknowns are what each class loses, what each label gains, and the share in all; a class has what is its own
    # and what it loses.
    lost, gained = sparse.diags_array(1.0 - rates), sparse.diags_array(rates)
    one, column = sparse.eye_array(n_classes), np.ones((n_classes, 1))
    found = linprog(
        np.append(np.zeros(2 * n_classes), -1.0),
        A_ub=sparse.block_array([[lost, gained, None], [one, one, -column]], format="csr"),
        b_ub=np.append(rates * label_shares, np.zeros(n_classes)),
        A_eq=sparse.block_array([[column.T, None, [[-1.0]]], [None, column.T, [[-1.0]]]], format="csr"),
        b_eq=np.zeros(2),
        bounds=[*[(0.0, 1.0)] * n_classes, *zip(np.zeros(n_classes), label_shares, strict=True), (0.0, 1.0)],
    )
    if not found.success:
        raise ArithmeticError(f"the share of wrong labels cannot be bounded: {found.message}")
    return float(min(1.0, max(0.0, -found.fun)))
