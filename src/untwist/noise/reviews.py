"""What reviewed labels tell of the noise: whether each was wrong weighs all rates, or transition matrices, again.

Which rows are reviewed mostly depends on how suspect they are, so that wrong labels are far more frequent among them
than elsewhere. But what is suspect follows from features and labels, and under given rates these say how likely each
label was wrong. Given both, it does not matter why a row was chosen: the likelihood of rates is that of what the
reviewer found, row by row, and no share of wrong labels among the reviewed rows enters anywhere.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, logsumexp

from untwist.arguments import Array
from untwist.noise import rates, transitions
from untwist.noise.matrix import SAFE_MARGIN, MatrixUntwisting, untwist_by_matrix
from untwist.noise.untwisting import Untwisting

__all__ = ["find_worth", "learn_from_review"]

#: The probability of anything that a reviewer finds is at least this: reviewers err, and so do posteriors.
LEAST_PROBABILITY = 0.01

#: A known label weighs as much as so many noisy ones at most. Where it comes as a surprise it would weigh far more, and
#: a few rows would outvote all others.
MOST_WORTH = 5.0


def learn_from_review(
    noise: Untwisting | MatrixUntwisting,
    posterior: Array,
    given: NDArray[np.intp],
    truth: NDArray[np.intp],
) -> Untwisting | MatrixUntwisting:
    """Weigh all that may be the noise by what a review of some labels found.

    Parameters
    ----------
    noise : Untwisting or MatrixUntwisting
        What the labels alone tell of the noise; rates or matrices that were given stay as they are.
    posterior : array of shape (n_rows, n_classes)
        The twisted posterior of the reviewed rows, by models that have not seen them.
    given : array of int
        Their labels before the review.
    truth : array of int
        Their labels after it.

    Returns
    -------
    Untwisting or MatrixUntwisting
        The same rates, or matrices, with other weights, and the shares and intervals that follow.

    Examples
    --------
    >>> noise = rates.estimate_noise(np.repeat([0.2, 0.8], 100), np.tile([0, 0, 0, 0, 1, 1, 1, 1, 1, 0], 20))
    >>> surest = np.tile([0.2, 0.8], (50, 1))
    >>> learned = learn_from_review(noise, surest, np.zeros(50, int), np.ones(50, int))
    >>> bool(learned.rate_pos > noise.rate_pos)
    True
    """
    if noise.is_given or not len(given):
        return noise
    # In this order the sum does not depend on that of the rows.
    order = np.lexsort((truth, given, *posterior.T))
    found = _list_probabilities(noise, posterior[order], given[order], truth[order])
    likelihood = np.log(np.clip(found, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)).sum(axis=1)
    log_weights = np.log(np.maximum(noise.weights, np.finfo(float).tiny)) + likelihood
    weights = np.exp(log_weights - logsumexp(log_weights))
    if isinstance(noise, Untwisting):
        return _weigh_rates(noise, weights, likelihood)
    return _weigh_matrices(noise, weights, likelihood)


def _list_probabilities(
    noise: Untwisting | MatrixUntwisting, posterior: Array, given: NDArray[np.intp], truth: NDArray[np.intp]
) -> Array:
    """Return how likely each truth is, given the row and its label, under each pair of rates or each matrix."""
    rows = np.arange(len(given))
    if isinstance(noise, Untwisting):
        wrong = noise.list_wrong(logit(np.clip(posterior[:, 1], SAFE_MARGIN, 1.0 - SAFE_MARGIN)), given)
        return np.where(given == truth, 1.0 - wrong, wrong)
    found = np.empty((len(noise.weights), len(given)))
    for index, (matrix, slope, offset) in enumerate(zip(noise.matrices, noise.slopes, noise.offsets, strict=True)):
        joint = untwist_by_matrix(posterior, matrix, slope, offset, noise.least) * matrix[:, given].T
        found[index] = joint[rows, truth] / np.maximum(joint.sum(axis=1), SAFE_MARGIN)
    return found


def _weigh_rates(noise: Untwisting, weights: Array, likelihood: Array) -> Untwisting:
    """Return the rates with other weights; what the review explains is evidence like any other."""
    is_noise = (noise.rates_neg > 0) | (noise.rates_pos > 0)
    shortfalls = np.zeros(len(weights)) if noise.shortfalls is None else noise.shortfalls
    explained = likelihood - shortfalls
    evidence = noise.evidence
    if is_noise.any() and not is_noise.all():
        evidence += float(explained[is_noise].max() + shortfalls[is_noise].min() - likelihood[~is_noise][0])
    chance = float(weights[is_noise].sum())
    weighed = replace(
        noise,
        evidence=evidence,
        found=bool(evidence >= rates.ENOUGH_EVIDENCE and chance >= rates.LEAST_CHANCE),
        shortfalls=None if noise.shortfalls is None else explained.max() - explained,
    )
    return weighed.weigh_again(weights)


def _weigh_matrices(noise: MatrixUntwisting, weights: Array, likelihood: Array) -> MatrixUntwisting:
    """Return the matrices with other weights; shares move by as much as the matrices do, intervals with them."""
    rate = 1.0 - np.trace(noise.matrices, axis1=1, axis2=2) / noise.n_classes
    is_noise = rate > max(transitions.UNSEEN_RATES)
    evidence = noise.evidence
    if is_noise.any() and not is_noise.all():
        explained = [
            logsumexp(likelihood[those], b=noise.weights[those] / noise.weights[those].sum())
            for those in (is_noise, ~is_noise)
        ]
        evidence += float(explained[0] - explained[1])
    # Where too few rows kept noise from being found, a review of some of them does not change that.
    was_judged = noise.found or noise.evidence <= transitions.ENOUGH_EVIDENCE
    weighed = replace(
        noise, weights=weights, evidence=evidence, found=bool(was_judged and evidence > transitions.ENOUGH_EVIDENCE)
    )
    by_class = 1.0 - np.diag(weighed.matrix)
    factors = by_class / np.maximum(noise.class_shares, SAFE_MARGIN)
    overall = float(rate @ weights) / max(float(rate @ noise.weights), SAFE_MARGIN)
    low, high = (min(1.0, overall * end) for end in noise.interval)
    return replace(
        weighed,
        share=min(1.0, overall * noise.share),
        interval=(low, high),
        class_shares=by_class,
        class_intervals=np.clip(noise.class_intervals * factors[:, None], 0.0, 1.0),
        uneven_limit=max(noise.uneven_limit, high),
    )


def find_worth(noise: Untwisting | MatrixUntwisting, posterior: Array, labels: NDArray[np.intp]) -> Array:
    """Return how many noisy labels a label is worth that is known to be right.

    A noisy label that says k, in a row whose clean posterior is c, makes the probability of k rise from c[k] to
    c[k] T[k, k] / t[k], where t = c T is what labels follow. That is a share s of the way to 1, which a known label
    goes at once: it is worth 1 / s noisy ones. With this weight the known labels of rows that bear a noisy label l pull
    a posterior of t as much, on average, as these noisy labels do. Known and noisy labels together follow t, then, even
    if rows were chosen by their noisy labels: of two classes exactly, of more where wrong labels are evenly spread.

    Parameters
    ----------
    noise : Untwisting or MatrixUntwisting
        The noise.
    posterior : array of shape (n_rows, n_classes)
        The twisted posterior, by models that have not seen the rows.
    labels : array of int
        The labels that are right.

    Returns
    -------
    array of shape (n_rows,)
        From 1, where labels are never wrong, to `MOST_WORTH`.
    """
    rows = np.arange(len(labels))
    matrix = noise.matrix
    if isinstance(noise, Untwisting):
        of_positive = noise.clean(logit(np.clip(posterior[:, 1], SAFE_MARGIN, 1.0 - SAFE_MARGIN)))
        clean = np.column_stack([1.0 - of_positive, of_positive])
    else:
        clean = noise.clean(posterior)
    of_label = np.maximum(clean[rows, labels], SAFE_MARGIN)
    twisted = np.maximum((clean * matrix[:, labels].T).sum(axis=1), SAFE_MARGIN)
    others = np.maximum(1.0 - of_label, SAFE_MARGIN)
    # (T[k, k] c[k] / t[k] - c[k]) / (1 - c[k]), without the difference of two numbers that are nearly the same.
    mean_of_others = np.maximum(twisted - of_label * matrix[labels, labels], 0.0) / others
    share = of_label * (matrix[labels, labels] - mean_of_others) / twisted
    return np.asarray(1.0 / np.clip(share, 1.0 / MOST_WORTH, 1.0))
