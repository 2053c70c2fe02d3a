"""The prior of sources: most are about as noisy as each other, a few are unlike the rest; learned from all of them.

A source has a level, the share of its labels that are wrong. Levels of usual sources follow a bell curve in log-odds,
those of unusual ones are anything from 0 to 1. Around what its level makes of the common matrix the rows of a source's
own matrix follow Dirichlet distributions. Where the curve lies, how wide it is, how many sources are unusual and how
much rows vary is not known: all combinations on a grid are weighed by how likely they make the labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaln, logit, logsumexp

from untwist.arguments import Array

__all__ = ["SourcePrior", "learn_prior"]

# The levels that a source may have.
LEVELS = expit(np.linspace(logit(0.002), logit(0.95), 24))
# How many labels of a class it takes to outweigh what the level of a source says of that class.
CONCENTRATIONS = np.array([8.0, 32.0, 128.0, 512.0])
# The middle of the levels of usual sources is one of the levels up to this one.
HIGHEST_USUAL_LEVEL = 0.5
# The standard deviation of the log-odds of the levels of usual sources is one of these.
SPREADS = (0.3, 0.6, 1.0, 1.6)
# The share of unusual sources is one of these.
UNUSUAL_SHARES = np.array([0.01, 0.05, 0.15])
# The common matrix is drawn towards that of all labels together by so many labels of each class.
POOLED_LABELS = 2.0
# No entry of the common matrix is below this.
LEAST_ENTRY = 1e-3
# The log-odds of a class's wrong labels are no farther than this from those of all classes.
MOST_UNEVEN = 3.0
# The common matrix is learned in so many turns at most, until no entry moves by more than the second number.
TURNS = 10
LEAST_MOVE = 1e-4
# Of more sources than this, what they are like is learned from so many.
MOST_TELLING_SOURCES = 300
# A hypothesis of less weight than this is left out for all others.
LEAST_WEIGHT = 1e-3
# So many entries of matrices are worked on at a time.
CELLS_PER_BLOCK = 1 << 18


@dataclass(frozen=True)
class SourcePrior:
    """What is known of each source's transition matrix before the labels of that source are looked at once more.

    Attributes
    ----------
    common : ndarray of shape (n_classes, n_classes)
        The mean matrix of usual sources.
    kinds : ndarray of shape (n_kinds, n_classes, n_classes)
        The Dirichlet distributions of rows: all levels, at each concentration.
    weights : ndarray of shape (n_sources, n_kinds)
        How likely each source is of each kind.
    unusual : ndarray of shape (n_sources,)
        The probability of each source to be unlike the others.
    evidence : float
        The logarithm of the probability of all counts.
    """

    common: Array
    kinds: Array
    weights: Array
    unusual: Array
    evidence: float

    @property
    def counts(self) -> Array:
        """The labels that the prior adds to those of each source, of shape (n_sources, n_classes, n_classes)."""
        return np.asarray(np.einsum("sj,jkl->skl", self.weights, self.kinds))

    def find_spread(self, counts: Array) -> Array:
        """Return how uncertain the kind of a source leaves the share of wrong labels of each class, as a variance.

        Parameters
        ----------
        counts : ndarray of shape (n_sources, n_classes, n_classes)
            How many items of a class (second index) bear each label (third).

        Returns
        -------
        ndarray of shape (n_sources, n_classes, n_classes)
            The covariance of the means over kinds.
        """
        diagonal = np.einsum("jkk->jk", self.kinds)
        totals = self.kinds.sum(axis=2)
        right = np.einsum("skk->sk", counts)[:, None] + diagonal
        wrong = 1.0 - right / (counts.sum(axis=2)[:, None] + totals)
        mean = np.einsum("sj,sjk->sk", self.weights, wrong)
        away = wrong - mean[:, None]
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
    for _ in range(TURNS):
        learned = _weigh_hypotheses(telling, _shape_levels(common))
        # A source counts for as many labels as its own differences from the common matrix allow.
        allowed = CONCENTRATIONS[:, None, None] / (CONCENTRATIONS[:, None, None] + telling.sum(axis=2))
        firmness = (1.0 - learned.unusual)[:, None] * np.einsum("csj,csk->sk", learned.weights, allowed)
        summed = np.einsum("sk,skl->kl", firmness, telling) + POOLED_LABELS * pooled
        moved = summed / summed.sum(axis=1, keepdims=True)
        change = float(np.abs(moved - common).max())
        common = moved
        if change < LEAST_MOVE:
            break
    shapes = _shape_levels(common)
    learned = _weigh_hypotheses(telling, shapes)
    level = np.einsum("chu,hj->j", learned.hypotheses, _list_bells())
    if len(counts) > len(telling):
        learned = _weigh_hypotheses(counts, shapes, learned.hypotheses)
    return SourcePrior(
        common=np.einsum("j,jkl->kl", level, shapes),
        kinds=(CONCENTRATIONS[:, None, None, None] * shapes).reshape(-1, *pooled.shape),
        weights=learned.weights.transpose(1, 0, 2).reshape(len(counts), -1),
        unusual=learned.unusual,
        evidence=learned.evidence,
    )


class _Learned(NamedTuple):
    """What counts say: of hypotheses (concentration, curve, unusual share), and of sources (concentration, level)."""

    hypotheses: Array
    weights: Array
    unusual: Array
    evidence: float


def _weigh_hypotheses(counts: Array, shapes: Array, given: Array | None = None) -> _Learned:
    """Weigh all hypotheses by the counts of sources, unless their weights are given, and then the levels of sources."""
    bells = _list_bells()
    tried = np.ones(len(CONCENTRATIONS), dtype=np.bool_)
    if given is not None:
        # Hypotheses of next to no weight are left out, as there are many sources.
        tried, some = given.max(axis=(1, 2)) > LEAST_WEIGHT, given.max(axis=(0, 2)) > LEAST_WEIGHT
        bells, given = bells[some], given[np.ix_(tried, some)]
        given = given / given.sum()
    log_likely = np.stack([_rate_counts(counts, each * shapes) for each in CONCENTRATIONS[tried]])
    highest = log_likely.max(axis=(0, 2))
    likely = np.exp(log_likely - highest[:, None])
    flat = LEVELS * (1.0 - LEVELS) / (LEVELS * (1.0 - LEVELS)).sum()
    # The probability of each source, by concentration, under each curve and share of unusual ones.
    usual = np.einsum("csj,hj->csh", likely, bells)[:, :, :, None] * (1.0 - UNUSUAL_SHARES)
    other = np.einsum("csj,j->cs", likely, flat)[:, :, None, None] * UNUSUAL_SHARES
    both = usual + other
    if given is None:
        rated = np.log(both).sum(axis=1)
        hypotheses = np.exp(rated - logsumexp(rated))
        evidence = float(logsumexp(rated) - np.log(rated.size))
    else:
        hypotheses = given
        evidence = float(np.log(np.einsum("chu,cshu->s", hypotheses, both)).sum())
    weighed = hypotheses[:, None] / both
    by_bell = np.einsum("cshu,u,hj->csj", weighed, 1.0 - UNUSUAL_SHARES, bells)
    by_flat = np.einsum("cshu,u->cs", weighed, UNUSUAL_SHARES)[:, :, None] * flat
    unusual = np.einsum("cs,csj->s", np.einsum("cshu,u->cs", weighed, UNUSUAL_SHARES), likely * flat)
    weights = np.zeros((len(tried), *likely.shape[1:]))
    weights[tried] = likely * (by_bell + by_flat)
    return _Learned(hypotheses, weights, unusual, evidence + float(highest.sum()))


@cache
def _list_bells() -> Array:
    """Return the curves of levels of usual sources that are tried, a row each."""
    log_odds = logit(LEVELS)
    middles = log_odds[LEVELS <= HIGHEST_USUAL_LEVEL]
    bells = [np.exp(-(((log_odds - middle) / spread) ** 2) / 2.0) for middle, spread in product(middles, SPREADS)]
    return np.array([bell / bell.sum() for bell in bells])


def _shape_levels(common: Array) -> Array:
    """Return what the common matrix is at each level: the log-odds of all classes' wrong labels move alike."""
    common = np.maximum(common, LEAST_ENTRY)
    common = common / common.sum(axis=1, keepdims=True)
    wrong = 1.0 - np.diag(common)
    split = common - np.diag(np.diag(common))
    split /= split.sum(axis=1, keepdims=True)
    uneven = np.clip(logit(wrong) - logit(wrong.mean()), -MOST_UNEVEN, MOST_UNEVEN)
    at_level = expit(logit(LEVELS)[:, None] + uneven)
    shapes = at_level[:, :, None] * np.maximum(split, LEAST_ENTRY)
    diagonal = np.arange(len(common))
    shapes[:, diagonal, diagonal] = 1.0 - at_level
    return np.asarray(shapes / shapes.sum(axis=2, keepdims=True))


def _rate_counts(counts: Array, priors: Array) -> Array:
    """Return the log-probability of each source's counts under each prior, of shape (n_sources, n_priors).

    That is the Dirichlet-multinomial one, of the labels one by one, summed over true classes.
    """
    rated = np.empty((len(counts), len(priors)))
    totals = counts.sum(axis=2)[:, None]
    whole = priors.sum(axis=2)
    step = max(1, CELLS_PER_BLOCK // counts.size)
    for first in range(0, len(priors), step):
        some = slice(first, first + step)
        entries = gammaln(counts[:, None] + priors[some]) - gammaln(priors[some])
        rows = gammaln(whole[some]) - gammaln(totals + whole[some])
        rated[:, some] = (rows + entries.sum(axis=3)).sum(axis=2)
    return rated
