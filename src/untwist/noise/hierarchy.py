"""The prior of sources: most are about as noisy as each other, a few are unlike the rest; learned from all of them.

A source has a level, the share of its labels that are wrong. Levels of usual sources follow a bell curve in log-odds,
those of unusual ones are anything from 0 to 1. The share of each class that bears a wrong label follows a beta
distribution around what the level makes of the common one, and which wrong label it is a Dirichlet distribution around
the common split. Where the curve lies, how wide it is, how many sources are unusual and how closely classes follow is
not known: all combinations on a grid are weighed by how likely they make the labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, expit, gammaln, logit, logsumexp

from untwist.arguments import Array

__all__ = ["LEAST_ENTRY", "SourcePrior", "keep_entries", "learn_prior"]

# The levels that a source may have.
LEVELS = expit(np.linspace(logit(0.002), logit(0.95), 24))
# How many labels of a class it takes to outweigh what the level of a source says of that class.
CONCENTRATIONS = np.array([8.0, 32.0, 128.0, 512.0])
# How many wrong labels of a class it takes to outweigh the common split. It is not learned: counts that are expected
# have less variance than those of known truths, and with few wrong labels a class all sources would look alike.
SPLIT_CONCENTRATION = 4.0
# The middle of the levels of usual sources is one of the levels up to this one.
HIGHEST_USUAL_LEVEL = 0.5
# Before any label, the odds of a middle fall by e with every step of this size: most sources are careful.
USUAL_LEVEL = 0.05
# The standard deviation of the log-odds of the levels of usual sources is one of these.
SPREADS = (0.3, 0.6, 1.0, 1.6)
# The share of unusual sources is one of these.
UNUSUAL_SHARES = np.array([0.01, 0.05, 0.15])
# The common matrix is drawn towards that of all labels together by so many labels of each class.
POOLED_LABELS = 2.0
#: No entry of a source's matrix is below this.
LEAST_ENTRY = 1e-4
# No entry of the common matrix is below this.
LEAST_COMMON_ENTRY = 1e-3
# The log-odds of a class's wrong labels are no farther than this from those of all classes.
MOST_UNEVEN = 3.0
# The common matrix is learned in so many turns at most, until no entry moves by more than the second number.
TURNS = 10
LEAST_MOVE = 1e-4
# Of more sources than this, what they are like is learned from so many.
MOST_TELLING_SOURCES = 300
# A hypothesis of less weight than this is left out for all others.
LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, eq=False)
class SourcePrior:
    """What is known of each source's transition matrix before its own labels are counted.

    A source is of some kind: at one of the levels, and with one of the concentrations.

    Attributes
    ----------
    common : ndarray of shape (n_classes, n_classes)
        The mean matrix of usual sources.
    levels : ndarray of shape (n_kinds, n_classes)
        The share of wrong labels of each class that a source of each kind has in the mean.
    concentrations : ndarray of shape (n_kinds,)
        How many labels of a class that is worth.
    weights : ndarray of shape (n_sources, n_kinds)
        How likely each source is of each kind.
    split : ndarray of shape (n_classes, n_classes)
        How many wrong labels of each class the common split is worth, 0 on the diagonal.
    unusual : ndarray of shape (n_sources,)
        The probability of each source to be unlike the others.
    evidence : float
        The logarithm of the probability of all counts.
    """

    common: Array
    levels: Array
    concentrations: Array
    weights: Array
    split: Array
    unusual: Array
    evidence: float

    @property
    def added_wrong(self) -> Array:
        """The wrong labels that the prior adds to those of each source and class."""
        return np.asarray(np.einsum("sj,jk->sk", self.weights, self.concentrations[:, None] * self.levels))

    @property
    def added_labels(self) -> Array:
        """The labels, right and wrong, that the prior adds to those of each source, the same for every class."""
        return np.asarray(np.einsum("sj,j->s", self.weights, self.concentrations))

    def find_matrices(self, counts: Array) -> Array:
        """Return the mean matrix of each source, drawn towards the others as far as its counts are few.

        Parameters
        ----------
        counts : ndarray of shape (n_sources, n_classes, n_classes)
            How many items of a class (second index) bear each label (third).

        Returns
        -------
        ndarray of shape (n_sources, n_classes, n_classes)
            Rows sum to 1.
        """
        others = _leave_out_diagonal(counts)
        n_wrong = others.sum(axis=2)
        wrong = (n_wrong + self.added_wrong) / (counts.sum(axis=2) + self.added_labels[:, None])
        matrices = wrong[:, :, None] * (others + self.split) / (n_wrong + self.split.sum(axis=1))[:, :, None]
        diagonal = np.arange(counts.shape[1])
        matrices[:, diagonal, diagonal] = 1.0 - wrong
        return keep_entries(matrices)

    def rate_matrices(self, matrices: Array) -> float:
        """Return the logarithm of the density of matrices, in coordinates in which `find_matrices` gives its mode."""
        diagonal = np.arange(matrices.shape[1])
        right = matrices[:, diagonal, diagonal]
        logs = np.log(matrices)
        logs[:, diagonal, diagonal] = 0.0
        log_wrong = np.log1p(-right)
        of_levels = self.added_wrong * log_wrong + (self.added_labels[:, None] - self.added_wrong) * np.log(right)
        of_splits = (self.split * logs).sum(axis=2) - self.split.sum(axis=1) * log_wrong
        return float((of_levels + of_splits).sum())

    def find_spread(self, counts: Array) -> Array:
        """Return how uncertain the kind of a source leaves the share of wrong labels of each class.

        Parameters
        ----------
        counts : ndarray of shape (n_sources, n_classes, n_classes)
            How many items of a class (second index) bear each label (third).

        Returns
        -------
        ndarray of shape (n_sources, n_classes, n_classes)
            The covariance of the means over kinds.
        """
        n_wrong = _leave_out_diagonal(counts).sum(axis=2)
        added = self.concentrations[:, None] * self.levels
        totals = counts.sum(axis=2)[:, None] + self.concentrations[:, None]
        wrong = (n_wrong[:, None] + added) / totals
        away = wrong - np.einsum("sj,sjk->sk", self.weights, wrong)[:, None]
        return np.asarray(np.einsum("sj,sjk,sjl->skl", self.weights, away, away))


def learn_prior(counts: Array, pooled: Array, before: SourcePrior | None = None) -> SourcePrior:
    """Learn what sources are like from the counts of all of them.

    Parameters
    ----------
    counts : ndarray of shape (n_sources, n_classes, n_classes)
        How many items of a class bear each label, by source; as many as their labels really tell. Where there are many
        sources, the first ones stand for all.
    pooled : ndarray of shape (n_classes, n_classes)
        The transition matrix of all labels.
    before : SourcePrior, optional
        Where to start from.

    Returns
    -------
    SourcePrior
        The mean over all that may be, by how likely it makes the counts.
    """
    telling = counts[:MOST_TELLING_SOURCES]
    common = pooled if before is None else before.common
    allowed = CONCENTRATIONS[:, None, None] / (CONCENTRATIONS[:, None, None] + telling.sum(axis=2))
    for _ in range(TURNS):
        learned = _weigh_hypotheses(telling, _shape_levels(common))
        # A source counts for as many labels as its own differences from the common matrix allow.
        firmness = (1.0 - learned.unusual)[:, None] * np.einsum("csj,csk->sk", learned.weights, allowed)
        summed = np.einsum("sk,skl->kl", firmness, telling) + POOLED_LABELS * pooled
        moved = summed / summed.sum(axis=1, keepdims=True)
        change = float(np.abs(moved - common).max())
        common = moved
        if change < LEAST_MOVE:
            break
    levels = _shape_levels(common)
    learned = _weigh_hypotheses(telling, levels)
    at_level = np.einsum("chu,hj->j", learned.hypotheses, _list_bells())
    if len(counts) > len(telling):
        learned = _weigh_hypotheses(counts, levels, learned.hypotheses)
    split = SPLIT_CONCENTRATION * _find_split(common)
    wrong = np.einsum("j,jk->k", at_level, levels)
    return SourcePrior(
        common=np.diag(1.0 - wrong) + wrong[:, None] * _find_split(common),
        levels=np.tile(levels, (len(CONCENTRATIONS), 1)),
        concentrations=np.repeat(CONCENTRATIONS, len(LEVELS)),
        weights=learned.weights.transpose(1, 0, 2).reshape(len(counts), -1),
        split=split,
        unusual=learned.unusual,
        evidence=learned.evidence + _rate_splits(counts, split),
    )


def keep_entries(matrices: Array) -> Array:
    """Return matrices, or counts, with rows that sum to 1 and have no entry that is next to nothing.

    Parameters
    ----------
    matrices : ndarray of shape (..., n_classes, n_classes)
        Non-negative, with no row of zeros.

    Returns
    -------
    ndarray of the same shape
        Transition matrices.
    """
    kept = np.maximum(matrices / matrices.sum(axis=-1, keepdims=True), LEAST_ENTRY)
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))


class _Learned(NamedTuple):
    """What counts say: of hypotheses (concentration, curve, unusual share), and of sources (concentration, level)."""

    hypotheses: Array
    weights: Array
    unusual: Array
    evidence: float


def _weigh_hypotheses(counts: Array, levels: Array, given: Array | None = None) -> _Learned:
    """Weigh all hypotheses by the counts of sources, unless their weights are given, and then the levels of sources."""
    bells = _list_bells()
    tried = np.ones(len(CONCENTRATIONS), dtype=np.bool_)
    if given is not None:
        # Hypotheses of next to no weight are left out, as there are many sources.
        tried, some = given.max(axis=(1, 2)) > LEAST_WEIGHT, given.max(axis=(0, 2)) > LEAST_WEIGHT
        bells, given = bells[some], given[np.ix_(tried, some)]
        given = given / given.sum()
    log_likely = _rate_levels(counts, levels, CONCENTRATIONS[tried])
    # Each concentration has its own scale: one that is next to impossible for a source must not become 0 over 0.
    by_concentration = log_likely.max(axis=2)
    highest = by_concentration.max(axis=0)
    likely = np.exp(log_likely - by_concentration[:, :, None])
    log_scale = (by_concentration - highest)[:, :, None, None]
    flat = LEVELS * (1.0 - LEVELS) / (LEVELS * (1.0 - LEVELS)).sum()
    # The probability of each source, by concentration, under each curve and share of unusual ones.
    usual = np.einsum("csj,hj->csh", likely, bells)[:, :, :, None] * (1.0 - UNUSUAL_SHARES)
    other = np.einsum("csj,j->cs", likely, flat)[:, :, None, None] * UNUSUAL_SHARES
    both = usual + other
    if given is None:
        rated = (np.log(both) + log_scale).sum(axis=1) + _rate_bells()[:, None]
        log_total = _add_logarithms(rated)
        hypotheses = np.exp(rated - log_total)
        evidence = float(log_total - np.log(hypotheses.shape[0] * hypotheses.shape[2]))
    else:
        hypotheses = given
        evidence = float(np.log(np.einsum("chu,cshu->s", hypotheses, both * np.exp(log_scale))).sum())
    weighed = hypotheses[:, None] / both
    # Two sums after one another take a tenth of the time of one sum over both.
    by_bell = np.einsum("csh,hj->csj", np.einsum("cshu,u->csh", weighed, 1.0 - UNUSUAL_SHARES), bells)
    by_flat = np.einsum("cshu,u->cs", weighed, UNUSUAL_SHARES)[:, :, None] * flat
    weights = np.zeros((len(tried), *likely.shape[1:]))
    weights[tried] = likely * (by_bell + by_flat)
    unusual = np.einsum("csj,csj->s", likely, by_flat)
    return _Learned(hypotheses, weights, unusual, evidence + float(highest.sum()))


@cache
def _list_bells() -> Array:
    """Return the curves of levels of usual sources that are tried, a row each."""
    log_odds = logit(LEVELS)
    middles = log_odds[LEVELS <= HIGHEST_USUAL_LEVEL]
    bells = [np.exp(-(((log_odds - middle) / spread) ** 2) / 2.0) for middle, spread in product(middles, SPREADS)]
    return np.array([bell / bell.sum() for bell in bells])


@cache
def _rate_bells() -> Array:
    """Return the log-probability of each curve before any label."""
    middles = np.repeat(LEVELS[LEVELS <= HIGHEST_USUAL_LEVEL], len(SPREADS))
    rated = -middles / USUAL_LEVEL
    return np.asarray(rated - logsumexp(rated))


def _rate_levels(counts: Array, levels: Array, concentrations: Array) -> Array:
    """Return the log-probability of right and wrong labels by concentration, source and level: a beta-binomial one."""
    n_wrong = _leave_out_diagonal(counts).sum(axis=2)[:, None]
    n_right = np.einsum("skk->sk", counts)[:, None]
    wrong, right = (concentrations[:, None, None, None] * share for share in (levels, 1.0 - levels))
    return np.asarray((betaln(n_wrong + wrong, n_right + right) - betaln(wrong, right)).sum(axis=3))


def _add_logarithms(logarithms: Array) -> float:
    """Return `logsumexp` of finite logarithms: SciPy's spends most of its time on what else they could be."""
    highest = logarithms.max()
    is_highest = logarithms == highest
    n_highest = np.count_nonzero(is_highest)
    others = np.exp(np.where(is_highest, -np.inf, logarithms) - highest).sum()
    return float(np.log1p(others / n_highest) + np.log(n_highest) + highest)


def _rate_splits(counts: Array, split: Array) -> float:
    """Return the log-probability of which wrong label each wrong label is: a Dirichlet-multinomial one."""
    others = _leave_out_diagonal(counts)
    off_diagonal = ~np.eye(len(split), dtype=np.bool_)
    added = split[off_diagonal]
    totals = split.sum(axis=1)
    rows = gammaln(totals) - gammaln(others.sum(axis=2) + totals)
    return float(rows.sum() + (gammaln(others[:, off_diagonal] + added) - gammaln(added)).sum())


def _shape_levels(common: Array) -> Array:
    """Return the share of wrong labels of each class at each level: the log-odds of all classes move alike."""
    wrong = 1.0 - np.diag(keep_entries(np.maximum(common, LEAST_COMMON_ENTRY)))
    uneven = np.clip(logit(wrong) - logit(wrong.mean()), -MOST_UNEVEN, MOST_UNEVEN)
    return np.asarray(expit(logit(LEVELS)[:, None] + uneven))


def _find_split(common: Array) -> Array:
    """Return the share of each other label among the wrong labels of each class."""
    others = _leave_out_diagonal(np.maximum(common, LEAST_COMMON_ENTRY)[None])[0]
    return np.asarray(others / others.sum(axis=1, keepdims=True))


def _leave_out_diagonal(counts: Array) -> Array:
    """Return counts with none on the diagonal."""
    return np.asarray(np.where(np.eye(counts.shape[1], dtype=np.bool_), 0.0, counts))
