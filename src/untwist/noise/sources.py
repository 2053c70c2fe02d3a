"""How noisy the labels of each source are, and what the truth is where several sources labelled one item.

A source is who or what gave a label: an annotator, a branch, a month. An item is of class k with the probability that
its features say, and the label that source s gives it then is l with probability T_s[k, l]. Matrices of sources are
drawn towards a common one (`hierarchy`), as far as their own labels do not say otherwise.

The posterior that a model learned from all labels follows the mean of the sources' matrices. Which noise that is, is
weighed by `Untwisting` or `MatrixUntwisting`: each of their components makes a clean posterior of it, under which the
matrices of sources are found by expectation and maximisation. Components under which the labels by source are likely
weigh more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv, logsumexp
from threadpoolctl import threadpool_limits

from untwist.arguments import Array, check_numbers
from untwist.noise.components import Component, Components, find_log_odds, take_components
from untwist.noise.hierarchy import LEAST_ENTRY, SourcePrior, keep_entries, learn_prior
from untwist.noise.matrix import MatrixUntwisting, invert_matrices
from untwist.noise.untwisting import Untwisting
from untwist.noise.votes import Votes, arrange_votes

__all__ = ["FALSE_DISCOVERY_RATE", "NoiseBySource", "estimate_by_source"]

#: Of the sources that are said to stand out, this share is expected not to.
FALSE_DISCOVERY_RATE = 0.05
# A source stands out that is wrong so many times as often as the others, and by this much more.
NOISIER = 1.5
MUCH_NOISIER = 0.05
# The tails of all intervals, which are of 95 %.
TAILS = (0.025, 0.975)
# A probability that is divided by, or whose logarithm is taken, is kept above this.
SAFE_MARGIN = 1e-12
# Components of the noise of all labels are joined where so many cells would be worked on: one for each vote, so many
# more for each source. There are no fewer components than the third number, and no more than the last.
MOST_CELLS = 1_000_000
CELLS_PER_SOURCE = 20
FEWEST_COMPONENTS = 4
MOST_COMPONENTS = 24
# Which noise of all labels is right more sources than this say no louder.
MOST_TELLING_SOURCES = 20
# The prior of sources is learned anew in so many rounds, each of so many steps at most.
ROUNDS = 6
STEPS_PER_ROUND = 12
# Steps end where none moves an entry by more than this.
LEAST_MOVE = 1e-4
# Rounds end where one of them moves no entry by more than this.
LEAST_CHANGE = 1e-3
# A step may be lengthened so many times.
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
# A component of less weight than this is left out.
LEAST_WEIGHT = 1e-6
# The variance of a label is taken to be this at least where sources are weighed for training: beyond that it is the
# number of rows, not the noise of labels, that limits what is learned.
LEAST_VARIANCE = 0.05
# However bad a source, one label of it weighs this much beside one of the best source.
LEAST_RELIABILITY = 0.02


@dataclass(frozen=True, eq=False)
class NoiseBySource:
    """How noisy the labels of each source are.

    Attributes
    ----------
    names : ndarray of shape (n_sources,)
        The sources, sorted.
    counts : ndarray of shape (n_sources,)
        How many labels each gave, by weight.
    matrices : ndarray of shape (n_sources, n_classes, n_classes)
        The transition matrix of each: a row per true class, a column per label.
    common : ndarray of shape (n_classes, n_classes)
        What sources are drawn towards.
    shares : ndarray of shape (n_sources,)
        The share of its labels that are wrong.
    intervals : ndarray of shape (n_sources, 2)
        The 95 % intervals of the shares.
    class_intervals : ndarray of shape (n_sources, n_classes, 2)
        The 95 % intervals of the share of each true class that bears another label.
    stands_out : ndarray of bool of shape (n_sources,)
        Whether it is noisier than the others, at a rate of false discoveries of `FALSE_DISCOVERY_RATE`.
    reliability : ndarray of shape (n_sources,)
        How much one label of it should weigh in training beside one of the best source, in (0, 1].
    evidence : float
        The log-likelihood, in nats, that different sources explain over one common matrix.
    untwisting : Untwisting or MatrixUntwisting
        Takes the posterior of all labels together to the clean one.
    """

    names: NDArray[Any]
    counts: Array
    matrices: Array
    common: Array
    shares: Array
    intervals: Array
    class_intervals: Array
    stands_out: NDArray[np.bool_]
    reliability: Array
    evidence: float
    untwisting: Untwisting | MatrixUntwisting

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.common)

    def find_truth(
        self, posterior: ArrayLike, labels: ArrayLike, sources: ArrayLike, items: ArrayLike | None = None
    ) -> Array:
        """Return the probability of each class to be the truth, by features and all votes.

        Parameters
        ----------
        posterior : array_like of shape (n_rows, n_classes)
            The twisted posterior, the same for all rows of an item.
        labels : array_like of int of shape (n_rows,)
            The label of each row.
        sources : array_like of int of shape (n_rows,)
            Its source, as an index of `names`; -1 for one that is not among them, which is taken for a common one.
        items : array_like of int of shape (n_rows,), optional
            Its item, from 0 to n_items - 1; without it every row is an item.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            Each row sums to 1.
        """
        twisted, given, by, of = _check_rows(posterior, labels, sources, items, len(self.names))
        matrices = np.concatenate([self.matrices, self.common[None]])
        log_votes = np.log(np.maximum(matrices[by, :, given], SAFE_MARGIN))
        if of is None:
            return _normalise_logs(np.log(np.maximum(self.clean(twisted), SAFE_MARGIN)) + log_votes)
        n_items = int(of.max()) + 1 if len(of) else 0
        representative = np.zeros(n_items, dtype=np.intp)
        representative[of] = np.arange(len(of))
        # The votes of an item are added in the order of their size, whatever that of the rows.
        votes = np.empty((n_items, self.n_classes))
        for each, column in enumerate(log_votes.T):
            order = np.lexsort((column, of))
            votes[:, each] = np.bincount(of[order], column[order], n_items)
        clean = self.clean(twisted)[representative]
        return _normalise_logs(np.log(np.maximum(clean, SAFE_MARGIN)) + votes)

    def clean(self, posterior: ArrayLike) -> Array:
        """Return the clean posterior of rows by their twisted one, without their votes.

        Parameters
        ----------
        posterior : array_like of shape (n_rows, n_classes)
            The twisted posterior.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Each row sums to 1.
        """
        twisted = np.asarray(posterior, dtype=np.float64)
        if isinstance(self.untwisting, MatrixUntwisting):
            return self.untwisting.clean(twisted)
        positive = self.untwisting.clean(find_log_odds(twisted))
        return np.column_stack([1.0 - positive, positive])

    def twist(self, clean: ArrayLike, sources: ArrayLike) -> Array:
        """Return what the labels of sources follow where the clean posterior is this.

        Parameters
        ----------
        clean : array_like of shape (n_rows, n_classes)
            The clean posterior.
        sources : array_like of int of shape (n_rows,)
            The source of each row, as an index of `names`; -1 for a common one.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Each row sums to 1.
        """
        truth = check_numbers("clean", clean)
        by = _check_indices("sources", sources, -1, len(self.names))
        if truth.shape != (len(by), self.n_classes):
            raise ValueError(f"clean must be of shape {(len(by), self.n_classes)}, got {truth.shape}")
        matrices = np.concatenate([self.matrices, self.common[None]])
        return np.asarray(np.einsum("nk,nkl->nl", truth, matrices[by]))

    def describe(self, most: int = 5) -> str:
        """Say in words which sources are noisier than the others.

        Parameters
        ----------
        most : int, default 5
            How many sources to name.

        Returns
        -------
        str
            The worst first, without a full stop.
        """
        n_sources = len(self.names)
        worst = [index for index in np.argsort(-self.shares, kind="stable").tolist() if self.stands_out[index]]
        typical = self._typical_share
        if not worst:
            return f"none of {n_sources} sources is noisier than the others (about {typical:.1%} of their labels wrong)"
        parts = [
            f"{self.names[index]} {self.shares[index]:.1%} ({low:.1%} to {high:.1%})"
            for index in worst[:most]
            for low, high in [self.intervals[index]]
        ]
        if len(worst) > most:
            parts.append(f"and {len(worst) - most} more")
        return f"noisier than the others (about {typical:.1%} wrong): {', '.join(parts)}"

    def __str__(self) -> str:
        return self.describe()

    @property
    def _typical_share(self) -> float:
        """The share of wrong labels of a common source, where classes are as frequent as here."""
        by_class = np.einsum("s,skl->k", self.counts, self.matrices) / max(float(self.counts.sum()), SAFE_MARGIN)
        return float(by_class @ (1.0 - np.diag(self.common)) / by_class.sum())


def estimate_by_source(
    posterior: ArrayLike,
    labels: ArrayLike,
    sources: ArrayLike,
    *,
    names: ArrayLike,
    noise: Untwisting | MatrixUntwisting,
    weight: ArrayLike | None = None,
    items: ArrayLike | None = None,
    pooled_weight: ArrayLike | None = None,
) -> NoiseBySource:
    """Estimate how noisy the labels of each source are, from posteriors of a model that has not seen them.

    Parameters
    ----------
    posterior : array_like of shape (n_rows, n_classes)
        The probability of each label in each row, out of fold, learned from the labels of all sources; the same for
        all rows of an item.
    labels : array_like of int of shape (n_rows,)
        The class that each label names.
    sources : array_like of int of shape (n_rows,)
        Who gave it, as an index of `names`; -1 where that is not known.
    names : array_like of shape (n_sources,)
        What sources are called.
    noise : Untwisting or MatrixUntwisting
        The noise of all labels together.
    weight : array_like of shape (n_rows,), optional
        How much each row counts.
    items : array_like of int of shape (n_rows,), optional
        What was labelled, where several sources labelled one thing; without it every row is an item.
    pooled_weight : array_like of shape (n_rows,), optional
        How much each row weighed where the posterior was learned, if not all the same.

    Returns
    -------
    NoiseBySource
        It does not depend on the order of the rows, nor on what sources and items are called.
    """
    all_names = np.asarray(names)
    twisted, given, by, of = _check_rows(posterior, labels, sources, items, len(all_names))
    n_classes = twisted.shape[1]
    if noise.n_classes != n_classes:
        raise ValueError(f"noise must be of {n_classes} classes, the columns of posterior, got {noise.n_classes}")
    row_weight = _check_weight("weight", weight, len(given))
    in_training = _check_weight("pooled_weight", pooled_weight, len(given))
    if not ((row_weight > 0) & (by >= 0)).any():
        raise ValueError("sources must be known for at least one row of positive weight")
    votes = arrange_votes(twisted, given, by, of, row_weight, in_training, len(all_names))
    components = take_components(noise, votes.posterior)
    most = FEWEST_COMPONENTS if votes.has_several else MOST_COMPONENTS
    cells = len(votes.label) + CELLS_PER_SOURCE * votes.n_sources
    most = int(np.clip(MOST_CELLS // cells, FEWEST_COMPONENTS, most))
    # The number of threads of a matrix product may change its last bit.
    with threadpool_limits(limits=1, user_api="blas"):
        fits = [_fit_sources(votes, components, each) for each in components.list_components(most)]
    before = np.array([fit.component.weight for fit in fits])
    # One source alone is all labels together, and says nothing new of them. What is left out for each of many sources
    # adds up, so that all of them together count for a few.
    present = len(np.unique(votes.source))
    trust = min(1.0, MOST_TELLING_SOURCES / present) if present > 1 else 0.0
    log_weights = np.log(before) + trust * np.array([fit.gain for fit in fits])
    weights = np.exp(log_weights - logsumexp(log_weights))
    evidence = float((weights * [fit.evidence for fit in fits]).sum())
    summary = _summarise(votes, fits, weights)
    back = np.argsort(votes.original, kind="stable")
    counted = by >= 0
    order = np.lexsort((row_weight[counted], by[counted]))
    counts = np.bincount(by[counted][order], row_weight[counted][order], len(all_names)).astype(np.float64)
    return NoiseBySource(
        names=all_names,
        counts=counts,
        matrices=summary.matrices[back],
        common=summary.common,
        shares=summary.shares[back],
        intervals=summary.intervals[back],
        class_intervals=summary.class_intervals[back],
        stands_out=summary.stands_out[back],
        reliability=summary.reliability[back],
        evidence=evidence,
        untwisting=components.combine([fit.component for fit in fits], weights),
    )


# ---- one candidate: the matrices of sources by expectation and maximisation ----


class _Fit(NamedTuple):
    """What the votes say of sources under one noise of all labels.

    `covariance` is that of the shares of each class that bear another label, `class_shares` how frequent true classes
    are among a source's items, `shares` the share of wrong labels of each source, `gain` what labels by source say for
    this noise, and `evidence` what they say for matrices that differ.
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


def _fit_sources(votes: Votes, components: Components, component: Component) -> _Fit:
    """Find the matrices of sources under one noise of all labels, and the prior that they share.

    Where items have several votes, these tell the noise of all labels as well, and it is moved to where they have it.
    """
    features = components.untwist(component)
    pooled = keep_entries(component.matrix)
    pooled_evidence = _rate_pooled(votes, np.exp(features), pooled)
    matrices = np.repeat(pooled[None], votes.n_sources, axis=0)
    truth = _find_truth(votes, features, matrices)[0]
    if votes.has_several:
        truth = np.where(votes.has_several_votes[:, None], _count_votes(votes), truth)
        component = _move(votes, components, component, truth)
        features = components.untwist(component)
        matrices = keep_entries(_count(votes, truth) + pooled)
        truth = _find_truth(votes, features, matrices)[0]
    counts = _count(votes, truth)
    prior = learn_prior(_discount(votes, truth, counts, matrices)[0], pooled)
    for _ in range(ROUNDS):
        before = matrices
        matrices = _climb(votes, features, matrices, prior)
        truth = _find_truth(votes, features, matrices)[0]
        if votes.has_several:
            component = _move(votes, components, component, truth)
            features = components.untwist(component)
            truth = _find_truth(votes, features, matrices)[0]
        counts = _count(votes, truth)
        prior = learn_prior(_discount(votes, truth, counts, matrices)[0], pooled, prior)
        if float(np.abs(matrices - before).max()) < LEAST_CHANGE:
            break
    matrices = _climb(votes, features, matrices, prior)
    truth, likelihood = _find_truth(votes, features, matrices)
    counts = _count(votes, truth)
    told, information = _discount(votes, truth, counts, matrices)
    wrong = _find_wrong(matrices)
    scale = wrong * (1.0 - wrong)
    diagonal = np.arange(votes.n_classes)
    information[:, diagonal, diagonal] += prior.all[:, None] * scale
    covariance = scale[:, :, None] * invert_matrices(information) * scale[:, None, :] + prior.find_spread(told)
    gain = likelihood - float((told * np.log(matrices)).sum()) + prior.evidence - pooled_evidence
    evidence = prior.evidence - learn_prior(told.sum(axis=0, keepdims=True), pooled, prior).evidence
    totals = counts.sum(axis=(1, 2))
    # Where truths are hardly known, neither are the posteriors and the other sources that were taken for known.
    missing = 1.0 - told.sum(axis=(1, 2)) / np.maximum(totals, SAFE_MARGIN)
    covariance *= (1.0 + np.clip(missing, 0.0, 1.0))[:, None, None]
    right = votes.sum_by_source_and_label(votes.vote_weight * truth[votes.item, votes.label]).sum(axis=1)
    by_class = counts.sum(axis=2) / np.maximum(totals, SAFE_MARGIN)[:, None]
    class_shares = np.where(totals[:, None] > 0, by_class, 1.0 / votes.n_classes)
    expected = (class_shares * wrong).sum(axis=1)
    shares = np.where(totals > 0, 1.0 - right / np.maximum(totals, SAFE_MARGIN), expected)
    return _Fit(component, matrices, prior, covariance, class_shares, shares, np.exp(features), gain, evidence)


def _move(votes: Votes, components: Components, component: Component, truth: Array) -> Component:
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


def _climb(votes: Votes, features: Array, matrices: Array, prior: SourcePrior) -> Array:
    """Return the likeliest matrices, by expectation and maximisation with steps that are lengthened.

    Two steps tell how fast each source moves and slows down, and where it is going (Varadhan and Roland's SQUAREM). A
    long step that makes the votes less likely is not taken.
    """

    def step(before: Array) -> tuple[Array, float]:
        truth, likelihood = _find_truth(votes, features, before)
        return prior.draw(_count(votes, truth)), likelihood + prior.rate(before)

    value_before = -np.inf
    longest = 4.0
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
        length = np.clip(speed / np.maximum(slowing, SAFE_MARGIN), 1.0, longest)[:, None, None]
        ahead = np.log(matrices) + 2.0 * length * move + length**2 * bend
        ahead = np.exp(np.clip(ahead, np.log(LEAST_ENTRY), 0.0))
        matrices = ahead / ahead.sum(axis=2, keepdims=True)
        longest = min(2.0 * longest, LONGEST_STEP)
    return safe


def _find_wrong(matrices: Array) -> Array:
    """Return the share of each class that bears another label, by source."""
    return np.asarray(np.clip(1.0 - np.einsum("skk->sk", matrices), LEAST_ENTRY, 1.0 - LEAST_ENTRY))


def _count_votes(votes: Votes) -> Array:
    """Return the share of each item's votes that each class has."""
    truth = np.zeros(votes.posterior.shape)
    np.add.at(truth, (votes.item, votes.label), 1.0)
    return np.asarray(truth / truth.sum(axis=1, keepdims=True))


def _find_truth(votes: Votes, log_clean: Array, matrices: Array) -> tuple[Array, float]:
    """Return the probability of each class in each item, and the log-likelihood of all votes."""
    log_votes = np.log(matrices)[votes.source, :, votes.label]
    joint = log_clean + (np.add.reduceat(log_votes, votes.first, axis=0) if votes.has_several else log_votes)
    highest = joint.max(axis=1, keepdims=True)
    truth = np.exp(joint - highest)
    total = truth.sum(axis=1, keepdims=True)
    return truth / total, float((votes.weight * (np.log(total[:, 0]) + highest[:, 0])).sum())


def _count(votes: Votes, truth: Array) -> Array:
    """Return how many items of each class bear each label, by source."""
    weight = votes.vote_weight
    by_class = [votes.sum_by_source_and_label(weight * column[votes.item]) for column in truth.T]
    return np.stack(by_class, axis=1)


def _discount(votes: Votes, truth: Array, counts: Array, matrices: Array) -> tuple[Array, Array]:
    """Return the counts that the votes really tell, and the information on the log-odds of each class's wrong labels.

    The likelihood of an item is a straight line in the matrix of a source, so that the information is the sum of
    squared scores. What is missing to that of known truths was counted as the matrix has it, and is taken off again.
    """
    wrong = _find_wrong(matrices)
    is_other = votes.label[:, None] != np.arange(votes.n_classes)
    scores = truth[votes.item] * (is_other - wrong[votes.source])
    weight = votes.vote_weight
    n_classes = votes.n_classes
    information = np.empty((votes.n_sources, n_classes, n_classes))
    for j in range(n_classes):
        for k in range(j + 1):
            summed = np.bincount(votes.source, weight * scores[:, j] * scores[:, k], votes.n_sources)
            information[:, j, k] = information[:, k, j] = summed
    # Rows that might be of either class tell less of both together than of each: what counts is the level of a source.
    by_class = np.einsum("skk->sk", information)
    part = information.sum(axis=(1, 2)) / np.maximum(by_class.sum(axis=1), SAFE_MARGIN)
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
    diagonal = np.arange(n_classes)
    told_counts[:, diagonal, diagonal] = 0.0
    told_counts *= (told_wrong / np.maximum(told_counts.sum(axis=2), SAFE_MARGIN))[:, :, None]
    told_counts[:, diagonal, diagonal] = told_right
    return told_counts, information


def _rate_pooled(votes: Votes, clean: Array, matrix: Array) -> float:
    """Return the log-likelihood of all labels by one matrix, as they weighed where the posterior was learned."""
    likely = np.einsum("nk,nk->n", clean[votes.item], matrix.T[votes.label])
    return float((votes.vote_weight * votes.pooled_weight * np.log(np.maximum(likely, SAFE_MARGIN))).sum())


# ---- all candidates together ----


class _Summary(NamedTuple):
    matrices: Array
    common: Array
    shares: Array
    intervals: Array
    class_intervals: Array
    stands_out: NDArray[np.bool_]
    reliability: Array


def _summarise(votes: Votes, fits: list[_Fit], weights: Array) -> _Summary:
    kept = np.flatnonzero(weights > LEAST_WEIGHT)
    weights = weights[kept] / weights[kept].sum()
    chosen = [fits[index] for index in kept]
    matrices = sum(w * fit.matrices for w, fit in zip(weights, chosen, strict=True))
    common = np.asarray(sum(w * fit.prior.common for w, fit in zip(weights, chosen, strict=True)))
    common = common / common.sum(axis=1, keepdims=True)
    wrong = np.array([_find_wrong(fit.matrices) for fit in chosen])
    variance = np.array([np.einsum("skk->sk", fit.covariance) for fit in chosen])
    class_intervals = _find_intervals(weights, wrong, variance)
    shares = np.array([fit.shares for fit in chosen])
    share_variance = np.array(
        [np.einsum("sj,sjk,sk->s", fit.class_shares, fit.covariance, fit.class_shares) for fit in chosen]
    )
    rates = np.array([(fit.class_shares * each).sum(axis=1) for fit, each in zip(chosen, wrong, strict=True)])
    # The interval holds both what the source is like and how many of its labels happen to be wrong.
    both = [_find_intervals(weights, each, share_variance) for each in (rates, shares)]
    intervals = np.column_stack(
        [np.minimum(*(each[:, 0] for each in both)), np.maximum(*(each[:, 1] for each in both))]
    )
    totals = np.bincount(votes.source, votes.vote_weight, votes.n_sources).astype(np.float64)
    not_noisier = np.zeros(votes.n_sources)
    reliability = np.zeros(votes.n_sources)
    for w, fit, *each in zip(weights, chosen, rates, share_variance, strict=True):
        usual = _find_middle_of_others(each[0], totals)
        least = np.minimum(np.maximum(NOISIER * usual, usual + MUCH_NOISIER), 1.0)
        not_noisier += w * betainc(*_match_beta(*each), least)
        reliability += w * _rate_reliability(votes, fit)
    best = float(reliability.max())
    reliability = np.clip(reliability / best, LEAST_RELIABILITY, 1.0) if best > 0 else np.ones(votes.n_sources)
    return _Summary(
        np.asarray(matrices),
        common,
        np.einsum("m,ms->s", weights, shares),
        intervals,
        class_intervals,
        _choose(not_noisier),
        reliability,
    )


def _find_intervals(weights: Array, means: Array, variances: Array) -> Array:
    """Return the interval of each share over all fits, that of a beta distribution of the same mean and variance."""
    mean = np.einsum("m,m...->...", weights, means)
    variance = np.einsum("m,m...->...", weights, variances + (means - mean) ** 2)
    right, wrong = _match_beta(mean, variance)
    low, high = (betaincinv(right, wrong, tail) for tail in TAILS)
    low = np.where(low > LEAST_ENTRY, np.minimum(low, mean), 0.0)
    return np.stack([low, np.where(high < 1.0 - LEAST_ENTRY, np.maximum(high, mean), 1.0)], axis=-1)


def _match_beta(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Return the two parameters of beta distributions with these means and variances."""
    kept = np.clip(mean, LEAST_ENTRY, 1.0 - LEAST_ENTRY)
    size = np.maximum(kept * (1.0 - kept) / np.maximum(variance, SAFE_MARGIN) - 1.0, 1.0)
    return size * kept, size * (1.0 - kept)


def _find_middle_of_others(rates: Array, totals: Array) -> Array:
    """Return for each source the rate of the others: half of their labels come from sources with no higher one.

    Where there are no others it is 1, which no source exceeds.
    """
    order = np.argsort(rates, kind="stable")
    rising = rates[order]
    until = np.cumsum(totals[order])
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    half = (until[-1] - totals) / 2.0
    # Up to its own place a source does not count; from there on its labels are taken off.
    below = np.searchsorted(until, half)
    above = np.maximum(np.searchsorted(until, half + totals), place + 1)
    middle = np.where(below < place, below, above)
    has_others = (half > 0) & (middle < len(order))
    return np.where(has_others, rising[np.minimum(middle, len(order) - 1)], 1.0)


def _choose(not_noisier: Array) -> NDArray[np.bool_]:
    """Return the largest set of sources of which no more than the stated share is expected not to stand out."""
    order = np.argsort(not_noisier, kind="stable")
    expected = np.cumsum(not_noisier[order]) / np.arange(1, len(order) + 1)
    chosen = np.zeros(len(order), dtype=np.bool_)
    chosen[order] = expected <= FALSE_DISCOVERY_RATE
    return chosen


def _rate_reliability(votes: Votes, fit: _Fit) -> Array:
    """Return signal over variance of one label of each source.

    Where labels of several sources are averaged with weights w, the signal is the sum of w J, with J the slope from the
    truth to what labels follow, and the variance that of w^2 v; the best weights are J / v. With two classes J is
    1 - rate_neg - rate_pos; with more, (trace - 1) / (n_classes - 1), which is the same for two and 0 where labels say
    nothing. v is half the Gini index of what the source's labels follow, t (1 - t) for two classes.
    """
    n_classes = votes.n_classes
    signal = (np.einsum("skk->s", fit.matrices) - 1.0) / (n_classes - 1)
    followed = np.einsum("nk,nkl->nl", fit.clean[votes.item], fit.matrices[votes.source])
    weight = votes.vote_weight
    gini = np.bincount(votes.source, weight * (followed * (1.0 - followed)).sum(axis=1) / 2.0, votes.n_sources)
    total = np.bincount(votes.source, weight, votes.n_sources)
    typical = gini.sum() / max(float(total.sum()), SAFE_MARGIN)
    variance = np.where(total > 0, gini / np.maximum(total, SAFE_MARGIN), typical)
    return np.asarray(np.maximum(signal, 0.0) / np.maximum(variance, LEAST_VARIANCE))


# ---- checks ----


def _check_rows(
    posterior: ArrayLike, labels: ArrayLike, sources: ArrayLike, items: ArrayLike | None, n_sources: int
) -> tuple[Array, NDArray[np.intp], NDArray[np.intp], NDArray[np.intp] | None]:
    """Return posteriors that sum to 1, labels, sources and items as indices."""
    twisted = check_numbers("posterior", posterior)
    given = np.asarray(labels)
    if twisted.ndim != 2 or twisted.shape[1] < 2 or given.shape != twisted.shape[:1]:
        raise ValueError(
            f"posterior must have a row per label and a column per class, got shapes {twisted.shape} and {given.shape}"
        )
    if not ((twisted >= 0).all() and (twisted <= 1 + 1e-6).all() and (twisted.sum(axis=1) > 0).all()):
        raise ValueError("posterior must hold probabilities, with a positive sum in each row")
    twisted = twisted / twisted.sum(axis=1, keepdims=True)
    given = _check_indices("labels", labels, 0, twisted.shape[1])
    by = _check_indices("sources", sources, -1, n_sources)
    of = None if items is None else _check_indices("items", items, 0, len(given))
    if by.shape != given.shape or (of is not None and of.shape != given.shape):
        raise ValueError("sources and items must be one per row")
    return twisted, given, by, of


def _check_indices(name: str, values: ArrayLike, low: int, n_values: int) -> NDArray[np.intp]:
    indices = np.asarray(values)
    if indices.ndim != 1 or not (indices.dtype.kind in "iub" or indices.size == 0):
        raise ValueError(f"{name} must be whole numbers, one per row, got {values!r:.60}")
    if indices.size and not (indices.min() >= low and indices.max() < n_values):
        raise ValueError(f"{name} must lie from {low} to {n_values - 1}, got {indices.min()} to {indices.max()}")
    return indices.astype(np.intp)


def _check_weight(name: str, values: ArrayLike | None, n_rows: int) -> Array:
    weight = np.ones(n_rows) if values is None else check_numbers(name, values)
    if weight.shape != (n_rows,) or not ((weight >= 0).all() and np.isfinite(weight.sum())):
        raise ValueError(f"{name} must be finite and non-negative, one per row, with a finite sum")
    return weight


def _normalise_logs(logs: Array) -> Array:
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
