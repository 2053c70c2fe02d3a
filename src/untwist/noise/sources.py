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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, expit, logit, logsumexp

from untwist.arguments import Array, check_numbers
from untwist.noise.hierarchy import SourcePrior, learn_prior
from untwist.noise.matrix import MatrixUntwisting, invert_matrices
from untwist.noise.untwisting import Untwisting
from untwist.noise.votes import Votes, arrange_votes

__all__ = ["FALSE_DISCOVERY_RATE", "NoiseBySource", "estimate_by_source"]

#: Of the sources that are said to stand out, this share is expected not to.
FALSE_DISCOVERY_RATE = 0.05
# The tails of all intervals, which are of 95 %.
TAILS = (0.025, 0.975)
# A posterior nearer to 0 or 1 than this counts as this near.
POSTERIOR_FLOOR = 1e-4
# A probability that is divided by, or whose logarithm is taken, is kept above this.
SAFE_MARGIN = 1e-12
# A row of a source's matrix has no entry below this.
LEAST_ENTRY = 1e-4
# So many votes times components are worked on, at most; fewer components where there are many votes.
MOST_CELLS = 2_000_000
FEWEST_COMPONENTS = 6
MOST_COMPONENTS = 64
# The prior of sources is learned anew after each round of so many steps, in so many rounds.
ROUNDS = 8
STEPS_PER_ROUND = 15
# A step that moves no entry by more than this is the last one of its round.
LEAST_MOVE = 1e-5
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
        positive = self.untwisting.clean(_find_log_odds(twisted))
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
    candidates = _list_candidates(noise, votes)
    fits = [_fit_sources(votes, candidate) for candidate in candidates]
    gains = np.array([fit.evidence - fit.pooled_evidence for fit in fits])
    log_weights = np.log([candidate.weight for candidate in candidates]) + gains
    evidence = float(logsumexp(log_weights) - np.log(sum(candidate.weight for candidate in candidates)))
    weights = np.exp(log_weights - logsumexp(log_weights))
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
        untwisting=_weigh_again(noise, candidates, weights),
    )


# ---- candidates: the noise of all labels together ----


class _Candidate(NamedTuple):
    """One noise of all labels: its weight, its matrix, the clean posterior of each item, and the components it is."""

    weight: float
    matrix: Array
    clean: Array
    members: NDArray[np.intp]


def _list_candidates(noise: Untwisting | MatrixUntwisting, votes: Votes) -> list[_Candidate]:
    """Return the components of the noise, or fewer in their place where there are many votes."""
    if isinstance(noise, MatrixUntwisting):
        parts = zip(noise.weights, noise.matrices, noise.slopes, noise.offsets, strict=True)
        return [
            _Candidate(
                float(weight), matrix, _untwist(votes.posterior, matrix, slope, offset, noise.least), np.array([index])
            )
            for index, (weight, matrix, slope, offset) in enumerate(parts)
        ]
    most = int(np.clip(MOST_CELLS // max(len(votes.label), 1), FEWEST_COMPONENTS, MOST_COMPONENTS))
    twisted = _find_log_odds(votes.posterior)
    candidates = []
    for members in _group_pairs(noise, most):
        heaviest = members[int(np.argmax(noise.weights[members]))]
        rate_neg, rate_pos = noise.rates_neg[heaviest], noise.rates_pos[heaviest]
        log_odds = noise.list_clean_log_odds(twisted, [heaviest])[0]
        candidates.append(
            _Candidate(
                float(noise.weights[members].sum()),
                np.array([[1.0 - rate_neg, rate_neg], [rate_pos, 1.0 - rate_pos]]),
                np.column_stack([expit(-log_odds), expit(log_odds)]),
                members,
            )
        )
    return candidates


def _untwist(twisted: Array, matrix: Array, slope: Array, offset: Array, least: float) -> Array:
    """Return the clean posterior under one component, without a library whose bits depend on threads."""
    one = MatrixUntwisting(
        weights=np.ones(1),
        matrices=matrix[None],
        slopes=slope[None],
        offsets=offset[None],
        least=least,
        evidence=0.0,
        found=True,
        share=0.0,
        interval=(0.0, 1.0),
        class_shares=np.zeros(len(matrix)),
        class_intervals=np.zeros((len(matrix), 2)),
        uneven_limit=1.0,
    )
    return one.clean(twisted)


def _group_pairs(noise: Untwisting, most: int) -> Iterator[NDArray[np.intp]]:
    """Yield pairs of rates in groups of neighbours, at most so many groups."""
    width = 0.01
    while True:
        cells = np.rint(np.stack([noise.rates_neg, noise.rates_pos]) / width).astype(np.intp)
        _, index = np.unique(cells, axis=1, return_inverse=True)
        index = np.asarray(index).ravel()
        if index.max() < most:
            break
        width *= 2.0
    for group in range(int(index.max()) + 1):
        yield np.flatnonzero(index == group)


def _weigh_again(
    noise: Untwisting | MatrixUntwisting, candidates: list[_Candidate], weights: Array
) -> Untwisting | MatrixUntwisting:
    """Return the noise of all labels, its components weighed by the labels of each source."""
    new = np.zeros(len(noise.weights))
    for candidate, weight in zip(candidates, weights.tolist(), strict=True):
        new[candidate.members] = weight * noise.weights[candidate.members] / candidate.weight
    if isinstance(noise, MatrixUntwisting):
        kept = new > LEAST_WEIGHT
        new = new[kept] / new[kept].sum()
        class_shares = 1.0 - np.einsum("m,mkk->k", new, noise.matrices[kept])
        return replace(
            noise,
            weights=new,
            matrices=noise.matrices[kept],
            slopes=noise.slopes[kept],
            offsets=noise.offsets[kept],
            class_shares=class_shares,
        )
    return noise.weigh_again(new)


# ---- one candidate: the matrices of sources by expectation and maximisation ----


class _Fit(NamedTuple):
    """What the votes say of sources under one noise of all labels.

    `spread` is the covariance of the log-odds of each class's share of wrong labels, `class_shares` how frequent true
    classes are among a source's items, `shares` the share of wrong labels of each source.
    """

    matrices: Array
    prior: SourcePrior
    spread: Array
    class_shares: Array
    shares: Array
    clean: Array
    evidence: float
    pooled_evidence: float


def _fit_sources(votes: Votes, candidate: _Candidate) -> _Fit:
    log_clean = np.log(np.maximum(candidate.clean, SAFE_MARGIN))
    pooled = np.maximum(candidate.matrix, LEAST_ENTRY)
    pooled = pooled / pooled.sum(axis=1, keepdims=True)
    matrices = np.repeat(pooled[None], votes.n_sources, axis=0)
    pooled_evidence = _rate_pooled(votes, candidate.clean, pooled)
    prior = None
    for _ in range(ROUNDS):
        truth, _ = _find_truth(votes, log_clean, matrices)
        counts = _count(votes, truth)
        told = _discount(votes, truth, counts, matrices)[0]
        before = prior
        prior = learn_prior(told, pooled, before)
        for _ in range(STEPS_PER_ROUND):
            moved = prior.draw(counts)[0]
            moved = np.maximum(moved, LEAST_ENTRY)
            moved /= moved.sum(axis=2, keepdims=True)
            change = float(np.abs(moved - matrices).max())
            matrices = moved
            truth, likelihood = _find_truth(votes, log_clean, matrices)
            counts = _count(votes, truth)
            if change < LEAST_MOVE:
                break
    assert prior is not None
    told, information = _discount(votes, truth, counts, matrices)
    prior_counts = prior.draw(counts)[1].sum(axis=2)
    wrong = np.clip(1.0 - np.einsum("skk->sk", matrices), LEAST_ENTRY, 1.0 - LEAST_ENTRY)
    diagonal = np.arange(votes.n_classes)
    information[:, diagonal, diagonal] += prior_counts * wrong * (1.0 - wrong)
    spread = invert_matrices(information)
    occam = prior.rate(told) - (told * np.log(matrices)).sum(axis=(1, 2))
    evidence = likelihood + float(np.sort(occam).sum())
    totals = counts.sum(axis=(1, 2))
    right = votes.sum_by_source_and_label(votes.vote_weight * truth[votes.item, votes.label]).sum(axis=1)
    by_class = counts.sum(axis=2) / np.maximum(totals, SAFE_MARGIN)[:, None]
    class_shares = np.where(totals[:, None] > 0, by_class, 1.0 / votes.n_classes)
    expected = (class_shares * wrong).sum(axis=1)
    shares = np.where(totals > 0, 1.0 - right / np.maximum(totals, SAFE_MARGIN), expected)
    return _Fit(matrices, prior, spread, class_shares, shares, candidate.clean, evidence, pooled_evidence)


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
    wrong = np.clip(1.0 - np.einsum("skk->sk", matrices), LEAST_ENTRY, 1.0 - LEAST_ENTRY)
    is_other = votes.label[:, None] != np.arange(votes.n_classes)
    scores = truth[votes.item] * (is_other - wrong[votes.source])
    weight = votes.vote_weight
    n_classes = votes.n_classes
    information = np.empty((votes.n_sources, n_classes, n_classes))
    for j in range(n_classes):
        for k in range(j + 1):
            summed = np.bincount(votes.source, weight * scores[:, j] * scores[:, k], votes.n_sources)
            information[:, j, k] = information[:, k, j] = summed
    diagonal = np.arange(n_classes)
    told = information[:, diagonal, diagonal] / (wrong * (1.0 - wrong))
    totals = counts.sum(axis=2)
    missing = np.maximum(totals - told, 0.0)
    return np.maximum(counts - missing[:, :, None] * matrices, 0.0), information


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
    wrong = np.array([1.0 - np.einsum("skk->sk", fit.matrices) for fit in chosen])
    variance = np.array(
        [(each * (1.0 - each)) ** 2 * np.einsum("skk->sk", fit.spread) for each, fit in zip(wrong, chosen, strict=True)]
    )
    class_intervals = _find_intervals(weights, wrong, variance)[1]
    shares = np.array([fit.shares for fit in chosen])
    share_variance = []
    for each, fit in zip(wrong, chosen, strict=True):
        slope = fit.class_shares * each * (1.0 - each)
        share_variance.append(np.einsum("sj,sjk,sk->s", slope, fit.spread, slope))
    mean_share, intervals = _find_intervals(weights, shares, np.array(share_variance))
    not_noisier = np.zeros(votes.n_sources)
    reliability = np.zeros(votes.n_sources)
    for w, fit in zip(weights, chosen, strict=True):
        typical = (fit.class_shares * (1.0 - np.diag(fit.prior.common))).sum(axis=1)
        not_noisier += w * np.where(fit.shares > typical, fit.prior.usual, 1.0)
        reliability += w * _rate_reliability(votes, fit)
    best = float(reliability.max())
    reliability = np.clip(reliability / best, LEAST_RELIABILITY, 1.0) if best > 0 else np.ones(votes.n_sources)
    return _Summary(
        np.asarray(matrices), common, mean_share, intervals, class_intervals, _choose(not_noisier), reliability
    )


def _find_intervals(weights: Array, means: Array, variances: Array) -> tuple[Array, Array]:
    """Return the mean share over all fits and its interval, that of a beta distribution of the same variance."""
    mean = np.clip(np.einsum("m,m...->...", weights, means), LEAST_ENTRY, 1.0 - LEAST_ENTRY)
    variance = np.einsum("m,m...->...", weights, variances + (means - mean) ** 2)
    size = np.maximum(mean * (1.0 - mean) / np.maximum(variance, SAFE_MARGIN) - 1.0, 1.0)
    low, high = (betaincinv(size * mean, size * (1.0 - mean), tail) for tail in TAILS)
    low = np.where(low > LEAST_ENTRY, np.minimum(low, mean), 0.0)
    return mean, np.stack([low, np.where(high < 1.0 - LEAST_ENTRY, np.maximum(high, mean), 1.0)], axis=-1)


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


def _find_log_odds(posterior: Array) -> Array:
    return np.asarray(logit(np.clip(posterior[:, 1], POSTERIOR_FLOOR, 1.0 - POSTERIOR_FLOOR)))


def _normalise_logs(logs: Array) -> Array:
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
