"""The prior of sources: most are alike, a few are like nothing else; both learned from all of them together.

The rows of a source's transition matrix follow Dirichlet distributions. Of a usual source they lie around the common
matrix, the closer the higher the `concentration`; of an unusual one, anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from untwist.arguments import Array

__all__ = ["SourcePrior", "learn_prior"]

# The prior probability that a source is unlike the others.
UNUSUAL = 0.1
# The concentrations that are tried: usual sources differ from the common matrix as samples of so many labels would.
CONCENTRATIONS = np.geomspace(4.0, 1024.0, 17)
# The prior of the logarithm of the concentration is normal, with this mean and standard deviation.
USUAL_CONCENTRATION = np.log(60.0)
CONCENTRATION_SPREAD = 1.2
# The common matrix is drawn towards what the pooled labels say by so many labels of each class.
POOLED_LABELS = 2.0
# No entry of the common matrix is below this.
LEAST_ENTRY = 1e-3
# The common matrix and the probabilities of being usual are learned in turns, so often.
TURNS = 20


@dataclass(frozen=True)
class SourcePrior:
    """What is known of a source's transition matrix before its own labels.

    Attributes
    ----------
    common : ndarray of shape (n_classes, n_classes)
        What usual sources are drawn towards.
    concentration : float
        How much they are.
    usual : ndarray of shape (n_sources,)
        The probability of each source to be a usual one.
    evidence : float
        The logarithm of the probability of all counts.
    """

    common: Array
    concentration: float
    usual: Array
    evidence: float

    def draw(self, counts: Array) -> tuple[Array, Array]:
        """Return the mean transition matrix of each source that has these counts, and how firm it is.

        Parameters
        ----------
        counts : ndarray of shape (n_sources, n_classes, n_classes)
            How many items of a class (second index) bear each label (third).

        Returns
        -------
        matrices : ndarray of shape (n_sources, n_classes, n_classes)
            The mean over both kinds of source.
        pseudo_counts : ndarray of shape (n_sources, n_classes, n_classes)
            The counts that the prior adds, a mean over both kinds.
        """
        usual = self.usual[:, None, None]
        near, broad = self.concentration * self.common, _make_broad(len(self.common))
        by_kind = [(counts + each) / (counts + each).sum(axis=2, keepdims=True) for each in (near, broad)]
        return usual * by_kind[0] + (1.0 - usual) * by_kind[1], usual * near + (1.0 - usual) * broad

    def rate(self, counts: Array) -> Array:
        """Return the logarithm of the probability of each source's counts, over both kinds of source.

        Parameters
        ----------
        counts : ndarray of shape (n_sources, n_classes, n_classes)
            How many items of a class (second index) bear each label (third).

        Returns
        -------
        ndarray of shape (n_sources,)
            Of the labels one by one, not of their numbers.
        """
        kinds = np.stack([self.concentration * self.common, _make_broad(len(self.common))])
        near, broad = _rate_counts(counts, kinds)
        return np.asarray(np.logaddexp(np.log1p(-UNUSUAL) + near, np.log(UNUSUAL) + broad))


def _make_broad(n_classes: int) -> Array:
    """Return the prior counts of an unusual source: any share of wrong labels is as likely, among all other labels."""
    broad = np.full((n_classes, n_classes), 1.0 / (n_classes - 1))
    np.fill_diagonal(broad, 1.0)
    return broad


def learn_prior(counts: Array, pooled: Array, before: SourcePrior | None = None) -> SourcePrior:
    """Learn what sources are like from the counts of all of them.

    Parameters
    ----------
    counts : ndarray of shape (n_sources, n_classes, n_classes)
        How many items of a class bear each label, by source; as many as their labels really tell.
    pooled : ndarray of shape (n_classes, n_classes)
        The transition matrix of all labels.
    before : SourcePrior, optional
        Where to start from.

    Returns
    -------
    SourcePrior
        The likeliest.
    """
    n_sources = len(counts)
    totals = counts.sum(axis=2)
    of_broad = _rate_counts(counts, _make_broad(len(pooled))[None])[0]
    common = before.common if before is not None else _find_central(counts, pooled)
    usual = before.usual if before is not None else np.full(n_sources, 1.0 - UNUSUAL)
    best = 0
    for _ in range(TURNS):
        near = CONCENTRATIONS[:, None, None] * common
        of_near = _rate_counts(counts, near)
        together = np.logaddexp(np.log1p(-UNUSUAL) + of_near, np.log(UNUSUAL) + of_broad)
        away = (np.log(CONCENTRATIONS) - USUAL_CONCENTRATION) / CONCENTRATION_SPREAD
        rated = np.sort(together, axis=1).sum(axis=1) - away**2 / 2.0
        best = int(np.argmax(rated))
        usual = expit(np.log1p(-UNUSUAL) - np.log(UNUSUAL) + of_near[best] - of_broad)
        concentration = CONCENTRATIONS[best]
        # A source counts for as many labels as its own differences from the common matrix allow.
        firmness = usual[:, None] * concentration / (concentration + totals)
        summed = np.sort(firmness[:, :, None] * counts, axis=0).sum(axis=0) + POOLED_LABELS * pooled
        moved = np.maximum(summed / summed.sum(axis=1, keepdims=True), LEAST_ENTRY)
        moved /= moved.sum(axis=1, keepdims=True)
        change = float(np.abs(moved - common).max())
        common = moved
        if change < 1e-5:
            break
    return SourcePrior(common, float(CONCENTRATIONS[best]), usual, float(logsumexp(rated) - np.log(len(rated))))


def _rate_counts(counts: Array, prior_counts: Array) -> Array:
    """Return the log-probability of each source's counts under each prior, of shape (n_priors, n_sources).

    That is the Dirichlet-multinomial one, summed over true classes.
    """
    rated = np.zeros((len(prior_counts), len(counts)))
    for index, prior in enumerate(prior_counts):
        rows = gammaln(prior.sum(axis=1)) - gammaln(counts.sum(axis=2) + prior.sum(axis=1))
        rated[index] = (rows + (gammaln(counts + prior) - gammaln(prior)).sum(axis=2)).sum(axis=1)
    return rated


def _find_central(counts: Array, pooled: Array) -> Array:
    """Return a matrix in the middle of those of the sources, which a few bad ones do not move."""
    shares = (counts + pooled) / (counts + pooled).sum(axis=2, keepdims=True)
    totals = counts.sum(axis=(1, 2))
    order = np.argsort(np.einsum("skk->s", shares), kind="stable")
    until = np.cumsum(totals[order])
    middle = order[min(int(np.searchsorted(until, until[-1] / 2.0)), len(order) - 1)]
    central = np.maximum(shares[middle], LEAST_ENTRY)
    return np.asarray(central / central.sum(axis=1, keepdims=True))
