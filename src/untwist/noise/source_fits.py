"""The transition matrices of sources under one noise of all labels, and the prior that they share.

The noise of all labels makes a clean posterior of the twisted one. Under it an item is of class k with a known
probability, and a vote of source s for label l then has the probability T_s[k, l]. The matrices T_s are found by
expectation and maximisation (`_climb`), the prior that they share from what they count (`hierarchy`), in turns. Where
items have several votes, these tell the noise of all labels as well, and it is moved to where they have it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from untwist.arguments import Array
from untwist.noise.components import PROBABILITY_FLOOR, Component, Components
from untwist.noise.hierarchy import LEAST_ENTRY, SourcePrior, keep_entries, learn_prior
from untwist.noise.several_classes import invert_matrices
from untwist.noise.votes import Votes

__all__ = ["SourceFit", "find_wrong_by_class", "fit_sources"]

# The prior of sources is learned anew in so many rounds, each of so many steps at most.
ROUNDS = 6
STEPS_PER_ROUND = 12
# Steps end where none moves an entry by more than this.
LEAST_MOVE = 1e-4
# Rounds end where one of them moves no entry by more than this.
LEAST_CHANGE = 1e-3
# A step may be lengthened so many times: at first, and in the end.
FIRST_LONGEST_STEP = 4.0
LONGEST_STEP = 32.0
# The prior mean and standard deviation of the slope of a clean posterior that votes are to judge, and its limits.
USUAL_SLOPE = 1.0
SLOPE_SPREAD = 0.5
LEAST_SLOPE = 0.02
LARGEST_SLOPE = 5.0
# The prior standard deviation of its offsets.
OFFSET_SPREAD = 0.5
# Slope and offsets are found by so many of Newton's steps at most.
NEWTON_STEPS = 10


@dataclass(frozen=True, eq=False)
class SourceFit:
    """What the votes say of sources under one noise of all labels.

    Attributes
    ----------
    component : Component
        That noise, moved to where several votes of an item have it.
    matrices : ndarray of shape (n_sources, n_classes, n_classes)
        The likeliest transition matrix of each source.
    prior : SourcePrior
        What sources are like.
    covariance : ndarray of shape (n_sources, n_classes, n_classes)
        That of the shares of each class that bear another label.
    class_shares : ndarray of shape (n_sources, n_classes)
        How frequent true classes are among the items of each source.
    shares : ndarray of shape (n_sources,)
        The share of wrong labels of each source.
    clean : ndarray of shape (n_items, n_classes)
        The clean posterior of each item, by its features.
    gain : float
        The log-likelihood, in nats, by source less that of all labels together: what speaks for this noise.
    evidence : float
        The log-likelihood, in nats, that different sources explain over one common matrix.
    """

    component: Component
    matrices: Array
    prior: SourcePrior
    covariance: Array
    class_shares: Array
    shares: Array
    clean: Array
    gain: float
    evidence: float


def fit_sources(votes: Votes, components: Components, component: Component) -> SourceFit:
    """Find the matrices of sources under one noise of all labels, and the prior that they share.

    Parameters
    ----------
    votes : Votes
        Who gave which label to which item.
    components : Components
        The noise of all labels, which makes clean posteriors.
    component : Component
        The one of them to be taken for the noise of all labels.

    Returns
    -------
    SourceFit
    """
    log_clean = components.untwist(component)
    pooled = keep_entries(component.matrix)
    pooled_evidence = _rate_pooled(votes, np.exp(log_clean), pooled)
    matrices = np.repeat(pooled[None], votes.n_sources, axis=0)
    truth = _find_truth(votes, log_clean, matrices)[0]
    if votes.has_repeated_items:
        # The votes of an item, counted, are a better start than a noise that may be far off.
        truth = np.where(votes.has_several_votes[:, None], _share_votes(votes), truth)
        component = _move_component(votes, components, component, truth)
        log_clean = components.untwist(component)
        matrices = keep_entries(_count(votes, truth) + pooled)
        truth = _find_truth(votes, log_clean, matrices)[0]
    prior = learn_prior(_count_what_is_told(votes, truth, matrices), pooled)
    for _ in range(ROUNDS):
        before = matrices
        matrices = _climb(votes, log_clean, matrices, prior)
        truth = _find_truth(votes, log_clean, matrices)[0]
        if votes.has_repeated_items:
            component = _move_component(votes, components, component, truth)
            log_clean = components.untwist(component)
            truth = _find_truth(votes, log_clean, matrices)[0]
        prior = learn_prior(_count_what_is_told(votes, truth, matrices), pooled, prior)
        if float(np.abs(matrices - before).max()) < LEAST_CHANGE:
            break
    matrices = _climb(votes, log_clean, matrices, prior)
    return _conclude(votes, component, log_clean, matrices, prior, pooled, pooled_evidence)


def find_wrong_by_class(matrices: Array) -> Array:
    """Return the share of each class that bears another label, by source.

    Parameters
    ----------
    matrices : ndarray of shape (n_sources, n_classes, n_classes)
        Transition matrices.

    Returns
    -------
    ndarray of shape (n_sources, n_classes)
        Kept away from 0 and 1 by `LEAST_ENTRY`.
    """
    return np.asarray(np.clip(1.0 - np.einsum("skk->sk", matrices), LEAST_ENTRY, 1.0 - LEAST_ENTRY))


def _conclude(
    votes: Votes,
    component: Component,
    log_clean: Array,
    matrices: Array,
    prior: SourcePrior,
    pooled: Array,
    pooled_evidence: float,
) -> SourceFit:
    """Return what follows from the likeliest matrices: how uncertain they are, and how many labels are wrong."""
    truth, likelihood = _find_truth(votes, log_clean, matrices)
    counts = _count(votes, truth)
    wrong = find_wrong_by_class(matrices)
    information = _find_information(votes, truth, wrong)
    told = _discount(counts, matrices, information)
    by_source = likelihood - float((told * np.log(matrices)).sum()) + prior.evidence
    of_one_source = learn_prior(told.sum(axis=0, keepdims=True), pooled, prior).evidence
    scale = wrong * (1.0 - wrong)
    diagonal = np.arange(votes.n_classes)
    information[:, diagonal, diagonal] += prior.added_labels[:, None] * scale
    covariance = scale[:, :, None] * invert_matrices(information) * scale[:, None, :] + prior.find_spread(told)
    totals = counts.sum(axis=(1, 2))
    # Where truths are hardly known, neither are the posteriors and the other sources that were taken for known.
    missing = 1.0 - told.sum(axis=(1, 2)) / np.maximum(totals, PROBABILITY_FLOOR)
    covariance *= (1.0 + np.clip(missing, 0.0, 1.0))[:, None, None]
    right = votes.sum_by_source_and_label(votes.vote_weight * truth[votes.item, votes.label]).sum(axis=1)
    by_class = counts.sum(axis=2) / np.maximum(totals, PROBABILITY_FLOOR)[:, None]
    class_shares = np.where(totals[:, None] > 0, by_class, 1.0 / votes.n_classes)
    expected = (class_shares * wrong).sum(axis=1)
    return SourceFit(
        component=component,
        matrices=matrices,
        prior=prior,
        covariance=covariance,
        class_shares=class_shares,
        shares=np.where(totals > 0, 1.0 - right / np.maximum(totals, PROBABILITY_FLOOR), expected),
        clean=np.exp(log_clean),
        gain=by_source - pooled_evidence,
        evidence=prior.evidence - of_one_source,
    )


# ---- expectation and maximisation ----


def _climb(votes: Votes, log_clean: Array, matrices: Array, prior: SourcePrior) -> Array:
    """Return the likeliest matrices, by expectation and maximisation with steps that are lengthened.

    Two steps tell how fast each source moves and slows down, and where it is going (Varadhan and Roland's SQUAREM). A
    long step that makes the votes less likely is not taken.
    """

    def step(before: Array) -> tuple[Array, float]:
        truth, likelihood = _find_truth(votes, log_clean, before)
        return prior.find_matrices(_count(votes, truth)), likelihood + prior.rate_matrices(before)

    value_before = -np.inf
    longest = FIRST_LONGEST_STEP
    safe = matrices
    for _ in range(STEPS_PER_ROUND):
        first, value = step(matrices)
        if value < value_before:
            longest = max(longest / 4.0, 1.0)
            matrices = safe
            first, value = step(matrices)
        value_before = value
        second = step(first)[0]
        safe = second
        if float(np.abs(second - matrices).max()) < LEAST_MOVE:
            break
        move = np.log(first) - np.log(matrices)
        bend = np.log(second) - np.log(first) - move
        speed, slowing = (np.sqrt((each**2).sum(axis=(1, 2))) for each in (move, bend))
        length = np.clip(speed / np.maximum(slowing, PROBABILITY_FLOOR), 1.0, longest)[:, None, None]
        ahead = np.log(matrices) + 2.0 * length * move + length**2 * bend
        ahead = np.exp(np.clip(ahead, np.log(LEAST_ENTRY), 0.0))
        matrices = ahead / ahead.sum(axis=2, keepdims=True)
        longest = min(2.0 * longest, LONGEST_STEP)
    return safe


def _find_truth(votes: Votes, log_clean: Array, matrices: Array) -> tuple[Array, float]:
    """Return the probability of each class in each item, and the log-likelihood of all votes."""
    log_votes = np.log(matrices)[votes.source, :, votes.label]
    joint = log_clean + (np.add.reduceat(log_votes, votes.first, axis=0) if votes.has_repeated_items else log_votes)
    highest = joint.max(axis=1, keepdims=True)
    truth = np.exp(joint - highest)
    total = truth.sum(axis=1, keepdims=True)
    return truth / total, float((votes.weight * (np.log(total[:, 0]) + highest[:, 0])).sum())


def _count(votes: Votes, truth: Array) -> Array:
    """Return how many items of each class bear each label, by source."""
    weight = votes.vote_weight
    by_class = [votes.sum_by_source_and_label(weight * column[votes.item]) for column in truth.T]
    return np.stack(by_class, axis=1)


def _share_votes(votes: Votes) -> Array:
    """Return the share of each item's votes that each class has."""
    truth = np.zeros(votes.posterior.shape)
    np.add.at(truth, (votes.item, votes.label), 1.0)
    return np.asarray(truth / truth.sum(axis=1, keepdims=True))


def _rate_pooled(votes: Votes, clean: Array, matrix: Array) -> float:
    """Return the log-likelihood of all labels by one matrix, as they weighed where the posterior was learned."""
    likely = np.einsum("nk,nk->n", clean[votes.item], matrix.T[votes.label])
    return float((votes.vote_weight * votes.pooled_weight * np.log(np.maximum(likely, PROBABILITY_FLOOR))).sum())


# ---- how much the votes tell ----


def _count_what_is_told(votes: Votes, truth: Array, matrices: Array) -> Array:
    """Return the counts that the votes really tell."""
    information = _find_information(votes, truth, find_wrong_by_class(matrices))
    return _discount(_count(votes, truth), matrices, information)


def _find_information(votes: Votes, truth: Array, wrong: Array) -> Array:
    """Return the information on the log-odds of the share of wrong labels of each pair of classes, by source.

    The likelihood of an item is a straight line in the matrix of a source, so that the information is the sum of
    squared scores.
    """
    is_other = votes.label[:, None] != np.arange(votes.n_classes)
    scores = truth[votes.item] * (is_other - wrong[votes.source])
    weight = votes.vote_weight
    information = np.empty((votes.n_sources, votes.n_classes, votes.n_classes))
    for j in range(votes.n_classes):
        for k in range(j + 1):
            summed = np.bincount(votes.source, weight * scores[:, j] * scores[:, k], votes.n_sources)
            information[:, j, k] = information[:, k, j] = summed
    return information


def _discount(counts: Array, matrices: Array, information: Array) -> Array:
    """Return the counts that the votes really tell.

    What is missing to the information of known truths was counted as the matrix has it, and is taken off again.
    """
    wrong = find_wrong_by_class(matrices)
    # Rows that might be of either class tell less of both together than of each: what counts is the level of a source.
    by_class = np.einsum("skk->sk", information)
    part = information.sum(axis=(1, 2)) / np.maximum(by_class.sum(axis=1), PROBABILITY_FLOOR)
    told = by_class * np.clip(part, 0.0, 1.0)[:, None] / (wrong * (1.0 - wrong))
    right = np.einsum("skk->sk", counts)
    others = counts.sum(axis=2) - right
    missing = np.maximum(counts.sum(axis=2) - told, 0.0)
    told_wrong = others - missing * wrong
    told_right = right - missing * (1.0 - wrong)
    # Where less than no label would be wrong, none is, and more labels that are right say the same.
    told_right += np.maximum(-told_wrong, 0.0) / wrong
    told_wrong = np.maximum(told_wrong, 0.0)
    # The same where less than none would be right.
    told_wrong += np.maximum(-told_right, 0.0) / (1.0 - wrong)
    told_right = np.maximum(told_right, 0.0)
    told_counts = np.maximum(counts - missing[:, :, None] * matrices, 0.0)
    diagonal = np.arange(counts.shape[1])
    told_counts[:, diagonal, diagonal] = 0.0
    told_counts *= (told_wrong / np.maximum(told_counts.sum(axis=2), PROBABILITY_FLOOR))[:, :, None]
    told_counts[:, diagonal, diagonal] = told_right
    return np.asarray(told_counts)


# ---- the noise of all labels, where several votes of an item tell it ----


def _move_component(votes: Votes, components: Components, component: Component, truth: Array) -> Component:
    """Return the noise of all labels as the truths of items have it, with the slope and offsets that fit them best."""
    weight = votes.vote_weight * votes.pooled_weight
    summed = [np.bincount(votes.label, weight * column[votes.item], votes.n_classes) for column in truth.T]
    plain = replace(
        component,
        matrix=keep_entries(np.array(summed) + component.matrix),
        slopes=np.ones(votes.n_classes),
        offsets=np.zeros(votes.n_classes),
        members=np.zeros(0, dtype=np.intp),
    )
    slope, offsets = _calibrate(votes, components.untwist(plain), truth, components.has_offsets)
    return replace(plain, slopes=np.full(votes.n_classes, slope), offsets=offsets)


def _calibrate(votes: Votes, log_clean: Array, truth: Array, has_offsets: bool) -> tuple[float, Array]:
    """Return the slope and the offsets of a posterior that fit the truths best: of c they make c^slope e^offset."""
    n_classes = votes.n_classes
    prior_mean = np.concatenate([[USUAL_SLOPE], np.zeros(n_classes)])
    precision = np.concatenate([[SLOPE_SPREAD**-2.0], np.full(n_classes, OFFSET_SPREAD**-2.0)])
    centred = log_clean - log_clean.mean(axis=1, keepdims=True)
    weight = votes.weight[:, None]
    parameters = prior_mean
    n_free = 1 + n_classes if has_offsets else 1
    for _ in range(NEWTON_STEPS):
        logs = parameters[0] * centred + parameters[1:]
        expected = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        residual = weight * (truth - expected)
        gradient = np.concatenate([[(residual * centred).sum()], residual.sum(axis=0)])
        gradient -= precision * (parameters - prior_mean)
        away = centred - (expected * centred).sum(axis=1, keepdims=True)
        hessian = np.diag(precision)
        hessian[0, 0] += (weight * expected * away**2).sum()
        mixed = (weight * expected * away).sum(axis=0)
        hessian[0, 1:] += mixed
        hessian[1:, 0] += mixed
        hessian[1:, 1:] += np.diag((weight * expected).sum(axis=0)) - np.einsum(
            "nj,nk->jk", weight * expected, expected
        )
        move = np.zeros_like(parameters)
        move[:n_free] = np.linalg.solve(hessian[:n_free, :n_free], gradient[:n_free])
        parameters = parameters + np.clip(move, -1.0, 1.0)
        parameters[0] = np.clip(parameters[0], LEAST_SLOPE, LARGEST_SLOPE)
        if float(np.abs(move).max()) < LEAST_MOVE:
            break
    return float(parameters[0]), parameters[1:]
