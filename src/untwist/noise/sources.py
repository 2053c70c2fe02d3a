"""How noisy the labels of each source are, and what the truth is where several sources labelled one item.

A source is who or what gave a label: an annotator, a branch, a month. An item is of class k with the probability that
its features say, and the label that source s gives it then is l with probability T_s[k, l]. Matrices of sources are
drawn towards a common one (`hierarchy`), as far as their own labels do not say otherwise.

The posterior that a model learned from all labels follows the mean of the sources' matrices. Which noise that is, is
weighed by a `NoiseModel`: each of their components makes a clean posterior of it, under which the
matrices of sources are found (`source_fits`). Components under which the labels by source are likely weigh more, and
what is said of a source is the mean over all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv, logsumexp

from untwist.arguments import Array, check_numbers
from untwist.blas import use_one_blas_thread
from untwist.display import NAME_WIDTH, write_bar, write_fragment, write_percent, write_table
from untwist.noise.components import LEAST_WEIGHT, PROBABILITY_FLOOR
from untwist.noise.hierarchy import LEAST_ENTRY
from untwist.noise.model import NoiseModel
from untwist.noise.rates import MOST_EFFECTIVE_ROWS
from untwist.noise.source_fits import SourceFit, find_wrong_by_class, fit_sources
from untwist.noise.two_classes import DEVIATIONS, ERROR_OF_CURVE
from untwist.noise.votes import Votes, arrange_votes
from untwist.sums import add_up_by_group
from untwist.text import for_page

__all__ = ["FALSE_DISCOVERY_RATE", "NoiseBySource", "estimate_by_source"]

#: Of the sources that are said to stand out, this share at most is expected not to.
FALSE_DISCOVERY_RATE = 0.05
# A source stands out whose share of wrong labels is at least so many times that of the others, and above it by at least
# so much: a smaller difference is not worth anybody's time, however certain it is.
LEAST_TIMES_AS_NOISY = 1.5
LEAST_EXCESS = 0.05
# Sources that a notebook shows, at most.
MOST_SHOWN = 12
# The tails of all intervals, which are of 95 %.
TAILS = (0.025, 0.975)
# Every component of the noise of all labels is a fit of its own, over cells: one for each vote, and so many more for
# each source. Neighbours are joined where all fits together would have more cells than the first number; there are no
# fewer components than the third, and no more than the last.
MOST_CELLS = 1_000_000
CELLS_PER_SOURCE = 20
FEWEST_COMPONENTS = 4
MOST_COMPONENTS = 24
# Sources also tell which noise of all labels is right. More of them than this count for no more in that: what a fit
# leaves out of each adds up.
MOST_TELLING_SOURCES = 20
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
    noise : NoiseModel
        What is believed of all labels together; it takes their posterior to the clean one.
    tells_how_many : bool
        Whether shares can be told. Where they cannot, shares and matrices are lower limits at best, and words only say
        which sources stand out.
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
    noise: NoiseModel
    tells_how_many: bool = True

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
            Its source, as an index of `names`; -1 for one that nobody knows, which errs as all of them do together.
        items : array_like of int of shape (n_rows,), optional
            Its item, from 0 to n_items - 1; without it every row is an item.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            Each row sums to 1.
        """
        twisted, given, by, of = _check_rows(posterior, labels, sources, items, len(self.names))
        log_votes = np.log(np.maximum(self.matrices_by_index[by, :, given], PROBABILITY_FLOOR))
        if of is None:
            return _normalise_logs(np.log(np.maximum(self.clean(twisted), PROBABILITY_FLOOR)) + log_votes)
        n_items = int(of.max()) + 1 if len(of) else 0
        representative = np.zeros(n_items, dtype=np.intp)
        representative[of] = np.arange(len(of))
        votes = np.column_stack([add_up_by_group(column, of, n_items) for column in log_votes.T])
        clean = self.clean(twisted)[representative]
        return _normalise_logs(np.log(np.maximum(clean, PROBABILITY_FLOOR)) + votes)

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
        return self.noise.clean(self.noise.count_as_estimated(np.asarray(posterior, dtype=np.float64)))

    def noisy(self, clean: ArrayLike, sources: ArrayLike) -> Array:
        """Return what the labels of sources follow where the clean posterior is this.

        Parameters
        ----------
        clean : array_like of shape (n_rows, n_classes)
            The clean posterior.
        sources : array_like of int of shape (n_rows,)
            The source of each row, as an index of `names`; -1 for one that nobody knows, as in `find_truth`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Each row sums to 1.
        """
        truth = check_numbers("clean", clean)
        by = _check_indices("sources", sources, -1, len(self.names))
        if truth.shape != (len(by), self.n_classes):
            raise ValueError(f"clean must be of shape {(len(by), self.n_classes)}, got {truth.shape}")
        return np.asarray(np.einsum("nk,nkl->nl", truth, self.matrices_by_index[by]))

    def drop_upper_limits(self) -> NoiseBySource:
        """Return this estimate without upper limits or shares to tell, for labels that models may have remembered.

        Returns
        -------
        NoiseBySource
            Its intervals end at 1, and `tells_how_many` is False.
        """
        intervals, class_intervals = self.intervals.copy(), self.class_intervals.copy()
        intervals[..., 1] = class_intervals[..., 1] = 1.0
        return replace(self, intervals=intervals, class_intervals=class_intervals, tells_how_many=False)

    def describe(self, most: int = 5) -> str:
        """Say in words which sources are noisier than the others.

        Parameters
        ----------
        most : int, default 5
            How many sources to name.

        Returns
        -------
        str
            The worst first, without a full stop. Shares are told only where they can be, and where wrong labels were
            found.
        """
        worst = [index for index in np.argsort(-self.shares, kind="stable").tolist() if self.stands_out[index]]
        typical = f"about {self._typical_share:.1%}"
        if not worst:
            is_told = self.tells_how_many and self.noise.found
            share_of_all = f" ({typical} of their labels wrong)" if is_told else ""
            return f"no source stands out among {len(self.names):,}{share_of_all}"
        parts = [self._describe_source(index) for index in worst[:most]]
        if len(worst) > most:
            parts.append(f"and {len(worst) - most} more")
        how_others_err = f"{typical} wrong" if self.tells_how_many else "by how much cannot be told"
        return f"noisier than the others ({how_others_err}): {', '.join(parts)}"

    def _describe_source(self, index: int) -> str:
        """Return the name of a source, with its share where that can be told."""
        if not self.tells_how_many:
            return str(self.names[index])
        low, high = self.intervals[index]
        return f"{self.names[index]} {self.shares[index]:.1%} ({low:.1%} to {high:.1%})"

    def __repr__(self) -> str:
        return f"NoiseBySource({self})"

    def __str__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        """Return the worst sources as a table, for notebooks; only words where no shares can be told."""
        if not self.tells_how_many:
            return write_fragment("Sources of labels", str(self))
        worst = np.argsort(-self.shares, kind="stable")[:MOST_SHOWN].tolist()
        longest = float(self.intervals[worst, 1].max(initial=0.0))
        rows = []
        for index in worst:
            low, high = self.intervals[index].tolist()
            share = float(self.shares[index])
            name = for_page(self.names[index], NAME_WIDTH)
            name = f"<b>{name}</b>" if self.stands_out[index] else name
            bar = write_bar(share, low, high, longest)
            rows.append([name, f"{self.counts[index]:,.0f}", write_percent(share, low, high), bar])
        others = len(self.names) - len(worst)
        more = f"and {others:,} sources that are better" if others else ""
        return write_fragment(
            "Sources of labels", str(self), write_table(["source", "labels", "wrong", ""], rows), more
        )

    @property
    def overall(self) -> Array:
        """The mean matrix of all labels, which a label has whose source nobody knows: it may be of a bad one."""
        # The sums do not depend on what sources are called.
        summed = np.sort((self.counts + PROBABILITY_FLOOR)[:, None, None] * self.matrices, axis=0).sum(axis=0)
        return np.asarray(summed / summed.sum(axis=1, keepdims=True))

    @property
    def matrices_by_index(self) -> Array:
        """The matrices of sources, and at the end that of an unknown source: its index is -1."""
        return np.concatenate([self.matrices, self.overall[None]])

    @property
    def _typical_share(self) -> float:
        """The share of wrong labels of a common source, where classes are as frequent as here."""
        by_class = np.einsum("s,skl->k", self.counts, self.matrices) / max(float(self.counts.sum()), PROBABILITY_FLOOR)
        return float(by_class @ (1.0 - np.diag(self.common)) / by_class.sum())


def estimate_by_source(
    posterior: ArrayLike,
    labels: ArrayLike,
    sources: ArrayLike,
    *,
    names: ArrayLike,
    noise: NoiseModel,
    weight: ArrayLike | None = None,
    items: ArrayLike | None = None,
    pooled_weight: ArrayLike | None = None,
    rows_per_case: float = 1.0,
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
    noise : NoiseModel
        The noise of all labels together.
    weight : array_like of shape (n_rows,), optional
        How much each row counts.
    items : array_like of int of shape (n_rows,), optional
        What was labelled, where several sources labelled one thing; without it every row is an item.
    pooled_weight : array_like of shape (n_rows,), optional
        How much each row weighed where the posterior was learned, if not all the same.
    rows_per_case : float, default 1
        How many rows count as one, as those of a group err together.

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
    votes = votes._replace(weight=votes.weight / rows_per_case)
    components = noise.take_components(votes.posterior)
    listed = components.list_components(_limit_components(votes))
    # The number of threads of a matrix product may change its last bit.
    with use_one_blas_thread():
        fits = [fit_sources(votes, components, each) for each in listed]
    before = np.array([fit.component.weight for fit in fits])
    log_weights = np.log(before) + _find_trust(votes) * _temper_gains(votes, np.array([fit.gain for fit in fits]))
    weights = np.exp(log_weights - logsumexp(log_weights))
    kept = np.flatnonzero(weights > LEAST_WEIGHT)
    likely, likely_weights = [fits[index] for index in kept], weights[kept] / weights[kept].sum()
    shares, intervals = _find_shares(likely, likely_weights)
    class_intervals = _find_class_intervals(likely, likely_weights)
    stands_out = _find_noisier(votes, likely, likely_weights)
    if not (noise.found or votes.has_repeated_items):
        # Only the noise of a source which stands out is no matter of hard rows then, and the others may have all that
        # is not excluded of all labels.
        highest = np.array([high for _, _, high in noise.list_class_shares()])
        by_class = _average([fit.class_shares for fit in likely], likely_weights)
        for ends, high in ((intervals, by_class @ highest), (class_intervals, np.tile(highest, (len(by_class), 1)))):
            ends[~stands_out, ..., 0] = 0.0
            ends[~stands_out, ..., 1] = np.maximum(ends[..., 1], high)[~stands_out]
    # Votes have sources in an order of their own.
    back = np.argsort(votes.original, kind="stable")
    return NoiseBySource(
        names=all_names,
        counts=_sum_by_source(by, row_weight, len(all_names)),
        matrices=_average([fit.matrices for fit in likely], likely_weights)[back],
        common=_find_common(likely, likely_weights),
        shares=shares[back],
        intervals=intervals[back],
        class_intervals=class_intervals[back],
        stands_out=stands_out[back],
        reliability=_find_reliability(votes, likely, likely_weights)[back],
        evidence=float(_average([np.array(fit.evidence) for fit in likely], likely_weights)),
        noise=components.combine([fit.component for fit in fits], weights),
    )


def _find_trust(votes: Votes) -> float:
    """Return how much the labels by source count where the noise of all labels is weighed.

    One source alone is all labels together, and says nothing new of them. Of many, what is left out for each one adds
    up, so that all of them together count for a few.
    """
    present = len(np.unique(votes.source))
    return min(1.0, MOST_TELLING_SOURCES / present) if present > 1 else 0.0


def _temper_gains(votes: Votes, gains: Array) -> Array:
    """Return what labels by source say of each noise of all labels, in nats; none says less than nothing.

    Sources may also be all alike, and then they say nothing of it: that the matrix of every source has to be found is
    no evidence against noise. And rows count for as few as they do where the noise of all labels was estimated.
    """
    rows_per_effective_row = 1.0 + float(votes.vote_weight.sum()) / MOST_EFFECTIVE_ROWS
    return np.logaddexp(0.0, gains / rows_per_effective_row)


def _limit_components(votes: Votes) -> int:
    """Return how many components of the noise of all labels are fitted at most, so that it takes seconds."""
    # Where items have several votes, these move every component to where they have it, so that a few will do.
    most = FEWEST_COMPONENTS if votes.has_repeated_items else MOST_COMPONENTS
    cells = len(votes.label) + CELLS_PER_SOURCE * votes.n_sources
    return int(np.clip(MOST_CELLS // cells, FEWEST_COMPONENTS, most))


def _sum_by_source(sources: NDArray[np.intp], weight: Array, n_sources: int) -> Array:
    """Return the weight of each source's rows, the same for any order of the rows."""
    known = sources >= 0
    return add_up_by_group(weight[known], sources[known], n_sources)


# ---- the mean over all components ----


def _average(arrays: list[Array], weights: Array) -> Array:
    return np.asarray(sum(weight * each for weight, each in zip(weights, arrays, strict=True)))


def _find_common(fits: list[SourceFit], weights: Array) -> Array:
    """Return the matrix that sources are drawn towards."""
    common = _average([fit.prior.common for fit in fits], weights)
    return np.asarray(common / common.sum(axis=1, keepdims=True))


def _find_class_intervals(fits: list[SourceFit], weights: Array) -> Array:
    """Return the interval of the share of each class that bears another label, by source."""
    wrong = np.array([find_wrong_by_class(fit.matrices) for fit in fits])
    variance = np.array([np.einsum("skk->sk", fit.covariance) for fit in fits])
    return _find_intervals(weights, wrong, variance)


def _find_shares(fits: list[SourceFit], weights: Array) -> tuple[Array, Array]:
    """Return the share of wrong labels of each source, and its interval."""
    shares = np.array([fit.shares for fit in fits])
    rates, variances = (np.array(each) for each in zip(*(_find_rates(fit) for fit in fits), strict=True))
    # The interval holds both what the source is like and how many of its labels happen to be wrong.
    both = [_find_intervals(weights, each, variances) for each in (rates, shares)]
    low, high = np.minimum(*(each[:, 0] for each in both)), np.maximum(*(each[:, 1] for each in both))
    return np.einsum("m,ms->s", weights, shares), np.column_stack([low, high])


def _find_rates(fit: SourceFit) -> tuple[Array, Array]:
    """Return how often each source errs on items like its own, whatever labels it happened to give, with variances."""
    rates = (fit.class_shares * find_wrong_by_class(fit.matrices)).sum(axis=1)
    return rates, np.einsum("sj,sjk,sk->s", fit.class_shares, fit.covariance, fit.class_shares)


def _find_noisier(votes: Votes, fits: list[SourceFit], weights: Array) -> NDArray[np.bool_]:
    """Return which sources are noisier than the others, at `FALSE_DISCOVERY_RATE`."""
    totals = np.bincount(votes.source, votes.vote_weight, votes.n_sources).astype(np.float64)
    not_noisier = np.zeros(votes.n_sources)
    for weight, fit in zip(weights, fits, strict=True):
        rates, variances = _find_rates(fit)
        usual = _find_middle_of_others(rates, totals)
        least = np.minimum(np.maximum(LEAST_TIMES_AS_NOISY * usual, usual + LEAST_EXCESS), 1.0)
        not_noisier += weight * betainc(*_match_beta(rates, variances), least)
    return _select_noisier(not_noisier)


def _find_reliability(votes: Votes, fits: list[SourceFit], weights: Array) -> Array:
    """Return how much one label of each source should weigh beside one of the best."""
    reliability = np.zeros(votes.n_sources)
    for weight, fit in zip(weights, fits, strict=True):
        reliability += weight * _rate_reliability(votes, fit)
    best = float(reliability.max())
    return np.clip(reliability / best, LEAST_RELIABILITY, 1.0) if best > 0 else np.ones(votes.n_sources)


def _find_intervals(weights: Array, means: Array, variances: Array) -> Array:
    """Return the interval of each share over all fits, that of a beta distribution of the same mean and variance."""
    mean = np.einsum("m,m...->...", weights, means)
    variance = np.einsum("m,m...->...", weights, variances + (means - mean) ** 2)
    # The curve that makes clean posteriors is an assumption, and no number of labels mends its error.
    variance = variance + (ERROR_OF_CURVE / DEVIATIONS) ** 2
    right, wrong = _match_beta(mean, variance)
    low, high = (betaincinv(right, wrong, tail) for tail in TAILS)
    low = np.where(low > LEAST_ENTRY, np.minimum(low, mean), 0.0)
    return np.stack([low, np.where(high < 1.0 - LEAST_ENTRY, np.maximum(high, mean), 1.0)], axis=-1)


def _match_beta(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Return the two parameters of beta distributions with these means and variances."""
    kept = np.clip(mean, LEAST_ENTRY, 1.0 - LEAST_ENTRY)
    size = np.maximum(kept * (1.0 - kept) / np.maximum(variance, PROBABILITY_FLOOR) - 1.0, 1.0)
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


def _select_noisier(not_noisier: Array) -> NDArray[np.bool_]:
    """Return the largest set of sources of which no more than the stated share is expected not to stand out."""
    order = np.argsort(not_noisier, kind="stable")
    expected = np.cumsum(not_noisier[order]) / np.arange(1, len(order) + 1)
    chosen = np.zeros(len(order), dtype=np.bool_)
    chosen[order] = expected <= FALSE_DISCOVERY_RATE
    return chosen


def _rate_reliability(votes: Votes, fit: SourceFit) -> Array:
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
    typical = gini.sum() / max(float(total.sum()), PROBABILITY_FLOOR)
    variance = np.where(total > 0, gini / np.maximum(total, PROBABILITY_FLOOR), typical)
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
