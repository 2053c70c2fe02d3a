"""Boosted and randomised trees in one model: how much each of them counts.

Both give a score per class, the logarithm of a posterior up to a constant. Their weighted sum is again such a score, so
that the mixture is one forest like any other. The weights are those of the lowest log-loss on rows that neither has
seen, drawn towards equal ones: with few rows these are hard to beat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit, log_softmax

from untwist.arguments import Array
from untwist.sums import add_up

__all__ = ["find_log_loss", "find_mixture_weights"]

#: How many rows' worth of evidence speak for equal weights.
EQUAL_ROWS = 2.0

#: Where nothing helps, members count so much together: too little to matter, and enough to tell the likeliest class.
LEAST_WEIGHT = 0.01

#: Terms of a mean are summed up as whole multiples of this, so that no order of the rows shows in the last bit.
SMALLEST_TERM = 2.0**-50

#: The search for weights ends where nothing is left to gain, so that copies of a row count as its weight does.
PRECISE = {"ftol": 0.0, "gtol": 1e-12}


def find_mixture_weights(members: Sequence[Array], labels: NDArray[np.uint32], weight: Array) -> Array:
    """Return by how much the scores of each member count.

    Parameters
    ----------
    members : sequence of arrays of shape (n_rows, n_classes)
        The scores of each member, of rows that it has not seen; of two classes a single column, the log-odds.
    labels : array of int
        The class of each row.
    weight : array
        How much each row counts.

    Returns
    -------
    array
        A weight of at least 0 for each member, not all 0. They need not sum to 1: a mixture may be surer than its
        parts. They do not depend on the order of the rows.
    """
    share, total = _find_shares(weight)
    stacked = np.array(members)
    judge = _judge_two if stacked.shape[2] == 1 else _judge_several
    equal = np.full(len(members), 1.0 / len(members))
    # Weights that are shares of a whole say nothing about the number of rows.
    ridge = EQUAL_ROWS / max(total, float(np.count_nonzero(weight)))

    def find_loss(weights: Array) -> tuple[float, Array]:
        log_posterior, slopes = judge(weights, stacked, labels)
        gap = weights - equal
        loss = ridge * float(gap @ gap) - _add_up(share * log_posterior)
        return loss, 2.0 * ridge * gap - np.array([_add_up(share * slope) for slope in slopes])

    if len(members) == 1:
        found = np.array([_find_lowest(lambda one: float(find_loss(np.array([one]))[1][0]))])
    else:
        bounds = [(0.0, None)] * len(members)
        found = minimize(find_loss, equal, jac=True, method="L-BFGS-B", bounds=bounds, options=PRECISE).x
    return np.asarray(found if found.sum() >= LEAST_WEIGHT else LEAST_WEIGHT * equal)


def _find_lowest(find_slope: Callable[[float], float]) -> float:
    """Return where a loss that is convex from 0 on does not fall any more: that takes a few looks at its slope."""
    low, high = 0.0, 1.0
    while find_slope(high) < 0:
        low, high = high, 2.0 * high
    return float(brentq(find_slope, low, high)) if find_slope(low) < 0 else low


def find_log_loss(scores: Array, labels: NDArray[np.uint32], weight: Array) -> float:
    """Return the log-loss of the posteriors that scores stand for.

    Parameters
    ----------
    scores : array of shape (n_rows, n_classes)
        Logarithms of posteriors, up to a constant for each row; of two classes a single column, the log-odds.
    labels : array of int
        The class of each row.
    weight : array
        How much each row counts.

    Returns
    -------
    float
    """
    judge = _judge_two if scores.shape[1] == 1 else _judge_several
    log_posterior, _ = judge(np.ones(1), scores[None], labels)
    return -_add_up(_find_shares(weight)[0] * log_posterior)


def _judge_two(weights: Array, members: Array, labels: NDArray[np.uint32]) -> tuple[Array, Array]:
    """Return ln P(label) of every row by log-odds, and how it changes with the weight of each member."""
    towards_label = np.where(labels == 1, members[:, :, 0], -members[:, :, 0])
    mixed = np.einsum("m,mn->n", weights, towards_label)  # Here no order of the rows shows in the last bit.
    return log_expit(mixed), expit(-mixed) * towards_label


def _judge_several(weights: Array, members: Array, labels: NDArray[np.uint32]) -> tuple[Array, Array]:
    """Return ln P(label) of every row by a score per class, and how it changes with the weight of each member."""
    rows = np.arange(len(labels))
    log_posterior = log_softmax(np.einsum("m,mnk->nk", weights, members), axis=1)
    slopes = members[:, rows, labels] - np.einsum("nk,mnk->mn", np.exp(log_posterior), members)
    return log_posterior[rows, labels], slopes


def _find_shares(weight: Array) -> tuple[Array, float]:
    """Return each row's share of the weight, and the weight of all."""
    total = max(add_up(weight), np.finfo(float).tiny)
    return weight / total, total


def _add_up(terms: Array) -> float:
    """Return a sum of terms, each a share of a row times some number, in whole numbers."""
    return float(np.rint(terms / SMALLEST_TERM).astype(np.int64).sum()) * SMALLEST_TERM
