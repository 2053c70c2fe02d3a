"""From the twisted posterior to the clean one, by all pairs of noise rates that fit the labels.

The twisted posterior lies between rate_neg and 1 - rate_pos, however clear the features. Under one pair of rates the
clean posterior follows from it by a straight line; over several pairs, each with a weight, it is their mean. No noise
is one of the pairs, so that the mean goes only as far from the twisted posterior as the evidence does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, logit

from untwist.arguments import Array, check_fraction
from untwist.noise.components import LEAST_SIGNAL, Component, Components
from untwist.noise.estimate import CONFIDENCE, RatesEstimate, RateWeights
from untwist.noise.model import SAFE_MARGIN, NoiseFormula, NoiseModel
from untwist.sums import add_up, add_up_by_group

__all__ = [
    "DEVIATIONS",
    "ERROR_OF_CURVE",
    "REACH",
    "TABLE",
    "TwoClassNoise",
    "check_rates",
    "split_at_half",
    "untwist_log_odds",
]

#: The log-odds, on either side of 0, at which the tables end.
REACH = 20.0
# The number of log-odds in a table, which makes steps of about 0.01; one of them is 0.
TABLE_SIZE = 4097
#: The log-odds of the twisted posterior for which `TwoClassNoise` has tables.
TABLE = np.linspace(-REACH, REACH, TABLE_SIZE)
# Even beyond the plateau of its rates, where the clean posterior would be flat, log-odds go on to rise with this slope.
LEAKED_SLOPE = 1e-3
# A pair of rates with less weight than this, among those with noise, is left out.
LEAST_WEIGHT = 1e-6
# A posterior nearer to 0 or 1 than this counts as this near.
POSTERIOR_FLOOR = 1e-4
# Noise is found where it explains this many nats of log-likelihood, which is about the usual 5 %, ...
ENOUGH_EVIDENCE = 2.0
# ... and where it has at least this chance, by all rates that fit and the prior.
LEAST_CHANCE = 0.75
# Pairs of rates this close are one component where sources are told apart; twice as far, and so on, where there would
# be too many.
CLOSE_RATES = 0.01
# Where the chance of noise is below this, nobody is told that probabilities are corrected by it.
LEAST_CORRECTION = 0.05
# Where the rates are known, or 0, a clean posterior may come this close to 0 and 1.
CLEAREST_BY_KNOWN_RATES = 1e-9
# Rates that fall short of the best ones by so many nats of log-likelihood are within its interval of 95 %.
TOLERATED_SHORTFALL = 1.92
#: The ends of an interval are moved out by this: the curve is an assumption, and no number of rows mends its error.
ERROR_OF_CURVE = 0.01
#: A normal distribution has 95 % of its weight within so many standard deviations of its mean.
DEVIATIONS = 1.96
# The points of a normal distribution, in standard deviations, and their shares, that stand for it in an interval.
NORMAL_POINTS, NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)


@dataclass(frozen=True, eq=False, repr=False)
class TwoClassNoise(RatesEstimate, NoiseModel):
    """The noise of two classes: all pairs of rates that fit the twisted labels.

    Each pair has a weight, and the slope of its clean posterior.

    Under a pair of rates the clean posterior is expit(slope * u + bend * (sqrt(u^2 + 1) - 1)), u the log-odds of
    (twisted - rate_neg) / (1 - rate_neg - rate_pos): far below one half the slope is slope - bend, far above it
    slope + bend. A slope of 1 without a bend takes the twisted posterior at its word. Every method gives the mean over
    the pairs, of which (0, 0), no noise, is one. Where noise is found, the rates and all intervals are those of the
    other pairs; where it is not, the intervals begin at 0.

    Attributes
    ----------
    rates_neg, rates_pos : ndarray
        The pairs.
    slopes : ndarray
        The slope of the clean posterior of each pair.
    clearest : float
        How close to 0 and 1 a clean posterior may come, before the slope, where there is noise.
    scale, offset : float
        The calibration of log-odds: they are taken times `scale`, plus `offset`.
    bends : ndarray or None
        The bend of the clean posterior of each pair; None where there are none.
    shortfalls : ndarray or None
        By how many nats of log-likelihood each pair falls short of the best one; None where it is not known.

    The `uneven_limit` is what noise may reach without a trace, as it looks like hard rows: the mean of min(t, 1 - t)
    over the rows, t the calibrated twisted posterior.

    Examples
    --------
    >>> TwoClassNoise.from_rates((0.1, 0.3)).clean([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]).round(3)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """

    array_axes: ClassVar = dict.fromkeys(("weights", "rates_neg", "rates_pos", "slopes", "bends", "shortfalls"), "m")

    rates_neg: Array
    rates_pos: Array
    slopes: Array
    clearest: float
    scale: float = 1.0
    offset: float = 0.0
    bends: Array | None = None
    shortfalls: Array | None = None

    @classmethod
    def from_rates(cls, rates: tuple[float, float]) -> TwoClassNoise:
        """Return the untwisting by rates that are known, of a posterior that is taken at its word.

        Parameters
        ----------
        rates : tuple of float
            (rate_neg, rate_pos), with a sum below 1.

        Returns
        -------
        TwoClassNoise
            With one pair of rates.
        """
        one = np.ones(1)
        return cls.from_grid(check_rates(rates), one, one, math.nan, found=True, clearest=CLEAREST_BY_KNOWN_RATES)

    @classmethod
    def from_grid(
        cls,
        grid: Array,
        weights: Array,
        slopes: Array,
        evidence: float,
        found: bool,
        clearest: float,
        scale: float = 1.0,
        offset: float = 0.0,
        bends: Array | None = None,
        shortfalls: Array | None = None,
        uneven_limit: float = 0.0,
    ) -> TwoClassNoise:
        """Return the untwisting by many pairs of rates, the mean of which are its `rate_neg` and `rate_pos`.

        Parameters
        ----------
        grid : ndarray of shape (2, n_pairs)
            The pairs (rate_neg, rate_pos).
        weights, slopes : ndarray of shape (n_pairs,)
            How likely each pair is, and the slope of its clean posterior.
        evidence : float
            The log-likelihood that noise explains, in nats; NaN if the rates are given.
        found : bool
            Whether there is evidence of noise.
        clearest, scale, offset, bends, shortfalls, uneven_limit
            The attributes of these names.

        Returns
        -------
        TwoClassNoise
            Without the pairs of next to no weight.
        """
        is_noise = grid.any(axis=0)
        least = np.where(is_noise, LEAST_WEIGHT * weights[is_noise].sum(), LEAST_WEIGHT)
        kept = weights > least
        weights = weights[kept] / weights[kept].sum()
        grid = grid[:, kept]
        if_noise = _condition_on_noise(weights, grid)
        rate_neg, rate_pos = (float(rates @ (if_noise if found else weights)) for rates in grid)
        shortfalls = None if shortfalls is None else shortfalls[kept]
        rates_are_given = math.isnan(evidence)
        interval_neg, interval_pos = (
            (float(rates[0]), float(rates[0]))
            if rates_are_given
            else _reach_fitting(_find_interval(rates, if_noise, found), rates + _find_slack(rates), shortfalls)
            for rates in grid
        )
        interval_neg, interval_pos = _widen(interval_neg, rate_neg), _widen(interval_pos, rate_pos)
        return cls(
            rate_neg=rate_neg,
            rate_pos=rate_pos,
            interval_neg=interval_neg,
            interval_pos=interval_pos,
            found=found,
            weights=weights,
            rates_neg=grid[0],
            rates_pos=grid[1],
            slopes=slopes[kept],
            evidence=evidence,
            share=(rate_neg + rate_pos) / 2.0,
            interval=((interval_neg[0] + interval_pos[0]) / 2.0, (interval_neg[1] + interval_pos[1]) / 2.0),
            clearest=clearest,
            scale=scale,
            offset=offset,
            bends=None if bends is None else bends[kept],
            shortfalls=shortfalls,
            uneven_limit=uneven_limit,
        )

    def __getstate__(self) -> dict[str, Any]:
        # The tables follow from the fields and are left out.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def is_undone(self) -> bool:
        """True: no noise is one of the pairs, so that probabilities are corrected as far as the evidence goes."""
        return True

    @property
    def chance_of_noise(self) -> float:
        """The probability that there is noise that is the same everywhere: how far probabilities are corrected."""
        return float(self.weights @ ((self.rates_neg > 0) | (self.rates_pos > 0)))

    @property
    def found_pairs(self) -> NDArray[np.bool_]:
        """Between which true class, a row each, and which label noise was found: both ways, or neither."""
        return ~np.eye(2, dtype=np.bool_) & self.found

    @property
    def even_limit(self) -> float:
        """The highest rate of either class that would fit."""
        return max(self.interval_neg[1], self.interval_pos[1])

    def describe(self, classes: ArrayLike) -> str:
        """Say in words how noisy the labels are; where nothing was found, also what is not excluded.

        Parameters
        ----------
        classes : array_like of shape (2,)
            The names of the classes, the negative one first.

        Returns
        -------
        str
            The words, without a full stop.
        """
        words = super().describe(classes)
        if self.found:
            return words
        uneven = f"uneven noise of up to {self.uneven_limit:.1%} of the labels is not excluded"
        if self.chance_of_noise < LEAST_CORRECTION:
            return f"{words}; {uneven}"
        chance = f"{self.chance_of_noise:.0%}"
        decision = f"noise has a chance of {chance}, and probabilities are corrected {chance} of the way"
        return f"{words}; {decision}; {uneven}"

    def drop_upper_limits(self) -> Self:
        """Return this noise with intervals that end at 1, for labels that models may have remembered."""
        return replace(super().drop_upper_limits(), interval=(self.interval[0], 1.0))

    def weigh_rates(self) -> RateWeights:
        """Return how likely each rate of each class is, if there is noise."""
        is_noise = (self.rates_neg > 0) | (self.rates_pos > 0)
        weights = self.weights[is_noise] / max(self.weights[is_noise].sum(), np.finfo(float).tiny)
        values, masses = [], []
        for rates in (self.rates_neg, self.rates_pos):
            distinct, index = np.unique(rates[is_noise], return_inverse=True)
            values.append(distinct)
            masses.append(np.bincount(index, weights, len(distinct)).astype(np.float64))
        return RateWeights(tuple(values), tuple(masses), self.chance_of_noise)

    def clean(self, posterior: ArrayLike) -> Array:
        """Return the clean posterior of rows whose labels follow a twisted one: alpha*(x) point by point.

        Parameters
        ----------
        posterior : array_like of shape (n_rows, 2)
            The twisted posterior.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Each row sums to 1.
        """
        positive = expit(self.clean_log_odds(_find_log_odds(posterior)))
        return np.column_stack([1.0 - positive, positive])

    def clean_log_odds(self, log_odds: ArrayLike) -> Array:
        """Return the log-odds of `clean`, rising, from a table with a step of 0.01 that ends at +-20.

        Parameters
        ----------
        log_odds : array_like
            Log-odds of the twisted posterior.

        Returns
        -------
        ndarray
            Log-odds of the clean posterior; beyond the table with a slope of 1.
        """
        z = self._calibrate(log_odds)
        beyond = z - np.clip(z, -REACH, REACH)
        return np.asarray(np.interp(z, TABLE, self.clean_table) + beyond)

    def probability_wrong(self, posterior: ArrayLike, labels: ArrayLike) -> Array:
        """Return the probability that a label is wrong.

        Parameters
        ----------
        posterior : array_like of shape (n_rows, 2)
            The twisted posterior.
        labels : array_like of int of shape (n_rows,)
            The labels, 0 or 1.

        Returns
        -------
        ndarray of shape (n_rows,)
            One probability per label.
        """
        z = self._calibrate(_find_log_odds(posterior))
        negative, positive = (np.interp(z, TABLE, self.weights @ table) for table in self._wrong_tables)
        return np.where(np.asarray(labels) == 1, positive, negative)

    def iterate_truths(self, posterior: Array, labels: NDArray[np.intp]) -> Iterator[Array]:
        """Yield the probability of each class to be the truth, given a row and its label, under each pair of rates.

        Parameters
        ----------
        posterior : ndarray of shape (n_rows, 2)
            The twisted posterior.
        labels : ndarray of int of shape (n_rows,)
            The labels, 0 or 1.

        Yields
        ------
        ndarray of shape (n_rows, 2)
            Of two classes a wrong label says which class is the true one.
        """
        z, positive = self._calibrate(_find_log_odds(posterior)), labels == 1
        for if_negative, if_positive in zip(*self._wrong_tables, strict=True):
            wrong = np.where(positive, np.interp(z, TABLE, if_positive), np.interp(z, TABLE, if_negative))
            yield np.abs(np.eye(2)[labels] - wrong[:, None])

    def bound_entry(self, truth: int, label: int, entry: float) -> tuple[float, float]:  # noqa: ARG002
        """Return the 95 % interval of the rate of a true class, whichever its share by sources is."""
        return self.interval_pos if truth else self.interval_neg

    def share_wrong(
        self, posterior: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike
    ) -> tuple[float, float, float]:
        """Return the share of labels that are wrong.

        Parameters
        ----------
        posterior : array_like of shape (n_rows, 2)
            The twisted posterior.
        labels : array_like of int of shape (n_rows,)
            The labels, 0 or 1.
        sample_weight : array_like
            How much each row counts; one number, or one per row.

        Returns
        -------
        share, low, high : float
            The mean of `probability_wrong` over the rows, and its 95 % interval over the rates that fit and over
            chance: which labels are wrong is drawn row by row.
        """
        z = self._calibrate(_find_log_odds(posterior))
        positive = np.asarray(labels) == 1
        step = TABLE[1] - TABLE[0]
        nearest = np.clip(np.rint((z + REACH) / step), 0, len(TABLE) - 1).astype(np.intp)
        weight = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), z.shape)
        mass_by_label, squared_mass_by_label = (
            [add_up_by_group(mass[rows], nearest[rows], len(TABLE)) for rows in (~positive, positive)]
            for mass in (weight, weight**2)
        )
        total = max(add_up(weight), np.finfo(float).tiny)
        shares, variance = (
            np.asarray(sum(table @ mass for table, mass in zip(tables, masses, strict=True)))
            for tables, masses in (
                (self._wrong_tables, mass_by_label),
                ([table * (1.0 - table) for table in self._wrong_tables], squared_mass_by_label),
            )
        )
        shares = shares / total
        share = float(self.weights @ shares)
        if self.is_given:
            return share, share, share
        spread = np.sqrt(variance) / total
        drawn = np.clip(shares[:, None] + spread[:, None] * NORMAL_POINTS, 0.0, 1.0)
        if_noise = _condition_on_noise(self.weights, np.stack([self.rates_neg, self.rates_pos]))
        interval = _find_interval(drawn.ravel(), np.outer(if_noise, NORMAL_WEIGHTS).ravel(), self.found)
        # A share moves about as the rates do.
        slack = max(_find_slack(self.rates_neg), _find_slack(self.rates_pos))
        highest = np.minimum(shares + DEVIATIONS * spread + slack, 1.0)
        return share, *_widen(_reach_fitting(interval, highest, self.shortfalls), share)

    @cached_property
    def clean_table(self) -> Array:
        """The log-odds of the clean posterior over the calibrated log-odds in `TABLE`."""
        clean_log_odds = self._tabulate_log_odds()
        log_weight = np.log(self.weights)[:, None]
        log_positive = np.logaddexp.reduce(log_weight + log_expit(clean_log_odds), axis=0)
        log_negative = np.logaddexp.reduce(log_weight + log_expit(-clean_log_odds), axis=0)
        return np.asarray(log_positive - log_negative)

    @cached_property
    def _wrong_tables(self) -> tuple[Array, Array]:
        """The probability of a negative and of a positive label to be wrong, for each pair of rates."""
        rate_neg = self.rates_neg[:, None]
        rate_pos = self.rates_pos[:, None]
        clean = expit(self._tabulate_log_odds())
        twisted = np.clip(rate_neg + (1.0 - rate_neg - rate_pos) * clean, SAFE_MARGIN, 1.0 - SAFE_MARGIN)
        return rate_pos * clean / (1.0 - twisted), rate_neg * (1.0 - clean) / twisted

    def weigh_again(self, weights: ArrayLike) -> TwoClassNoise:
        """Return the same pairs of rates with other weights, and the rates and intervals that follow.

        Parameters
        ----------
        weights : array_like of shape (n_pairs,)
            How likely each pair is.

        Returns
        -------
        TwoClassNoise
            Without the pairs of next to no weight; noise is found where it was.
        """
        pairs = np.stack([self.rates_neg, self.rates_pos])
        weights = np.asarray(weights, dtype=np.float64)
        return self.replace_pairs(pairs, weights, self.slopes, bends=self.bends, shortfalls=self.shortfalls)

    def replace_pairs(
        self, pairs: Array, weights: Array, slopes: Array, *, bends: Array | None, shortfalls: Array | None
    ) -> TwoClassNoise:
        """Return the noise of other pairs of rates; the share of wrong labels moves by as much as the rates do.

        Parameters
        ----------
        pairs : ndarray of shape (2, n_pairs)
            The pairs (rate_neg, rate_pos).
        weights, slopes, bends, shortfalls
            As for `from_grid`.

        Returns
        -------
        TwoClassNoise
            Noise is found where it was.
        """
        moved = TwoClassNoise.from_grid(
            pairs,
            weights,
            slopes,
            self.evidence,
            found=self.found,
            clearest=self.clearest,
            scale=self.scale,
            offset=self.offset,
            bends=bends,
            shortfalls=shortfalls,
            uneven_limit=self.uneven_limit,
        )
        factor = (moved.rate_neg + moved.rate_pos) / max(self.rate_neg + self.rate_pos, SAFE_MARGIN)
        share, low, high = (min(1.0, factor * one) for one in (self.share, *self.interval))
        return replace(moved, share=share, interval=(low, high))

    def _weigh_by_review(self, weights: Array, likelihood: Array) -> TwoClassNoise:
        """Return the rates with other weights; what the review explains is evidence like any other."""
        is_noise = (self.rates_neg > 0) | (self.rates_pos > 0)
        shortfalls = np.zeros(len(weights)) if self.shortfalls is None else self.shortfalls
        explained = likelihood - shortfalls
        evidence = self.evidence
        if is_noise.any() and not is_noise.all():
            evidence += float(explained[is_noise].max() + shortfalls[is_noise].min() - likelihood[~is_noise][0])
        chance = float(weights[is_noise].sum())
        weighed = replace(
            self,
            evidence=evidence,
            found=bool(evidence >= ENOUGH_EVIDENCE and chance >= LEAST_CHANCE),
            shortfalls=None if self.shortfalls is None else explained.max() - explained,
        )
        return weighed.weigh_again(weights)

    def pool_sources(
        self,
        share: float,
        interval: tuple[float, float],
        class_shares: Array,
        class_intervals: Array,
        *,
        found: bool,
    ) -> TwoClassNoise:
        """Return the noise with the shares that sources have together, as `NoiseModel.pool_sources` has it."""
        (rate_neg, rate_pos), (interval_neg, interval_pos) = class_shares.tolist(), class_intervals.tolist()
        return replace(
            self,
            rate_neg=rate_neg,
            rate_pos=rate_pos,
            interval_neg=tuple(interval_neg),
            interval_pos=tuple(interval_pos),
            found=found,
            share=share,
            interval=interval,
        )

    def take_components(self, posterior: Array) -> Components:
        """Return the pairs one by one, at the posteriors of items."""
        return _Pairs(self, posterior)

    def count_as_estimated(self, posterior: Array) -> Array:
        """Return posteriors within `POSTERIOR_FLOOR` of 0 and 1."""
        return np.clip(posterior, POSTERIOR_FLOOR, 1.0 - POSTERIOR_FLOOR)

    def formula(self) -> NoiseFormula:
        """Return the table of `clean_log_odds`, and the calibration before it."""
        return NoiseFormula(table=self.clean_table, scale=self.scale, offset=self.offset)

    def _tabulate_log_odds(self) -> Array:
        """Return the clean log-odds over the table, for each pair of rates."""
        return self._untwist(TABLE, np.arange(len(self.weights)))

    def _untwist(self, calibrated: Array, pairs: NDArray[np.intp]) -> Array:
        """Return the clean log-odds under some pairs of rates."""
        grid = np.stack([self.rates_neg[pairs], self.rates_pos[pairs]])
        slopes = self.slopes[pairs][:, None]
        if self.bends is None:
            return slopes * untwist_log_odds(calibrated, grid, self.clearest)
        bends = self.bends[pairs][:, None]
        below, above = split_at_half(untwist_log_odds(calibrated, grid, self.clearest))
        return np.asarray((slopes - bends) * below + (slopes + bends) * above)

    def _calibrate(self, log_odds: ArrayLike) -> Array:
        return self.scale * np.asarray(log_odds, dtype=np.float64) + self.offset


def check_rates(rates: tuple[float, float]) -> Array:
    """Return known noise rates as a grid of one pair.

    Parameters
    ----------
    rates : tuple of float
        (rate_neg, rate_pos).

    Returns
    -------
    ndarray of shape (2, 1)
        The pair. A ValueError if these are not two shares with a sum below 1.
    """
    pair = np.array([[check_fraction("rates", rate)] for rate in rates])
    if pair.shape != (2, 1) or pair.sum() >= 1:
        raise ValueError(f"rates must be two numbers that sum to less than 1, got {rates!r}")
    return pair


def untwist_log_odds(log_odds: Array, grid: Array, clearest: float) -> Array:
    """Return the log-odds of the clean posterior under each pair of rates, before any slope.

    Parameters
    ----------
    log_odds : ndarray of shape (n_points,)
        Log-odds of the twisted posterior.
    grid : ndarray of shape (2, n_pairs)
        The pairs (rate_neg, rate_pos).
    clearest : float
        How close to 0 and 1 the clean posterior may come at a plateau; where a rate is 0 there is none.

    Returns
    -------
    ndarray of shape (n_pairs, n_points)
        Rising in the log-odds.
    """
    rate_neg = grid[0][:, None]
    span = (1.0 - grid.sum(axis=0))[:, None]
    least, most = np.where(grid > 0, clearest, CLEAREST_BY_KNOWN_RATES)[:, :, None]
    clean = np.clip((expit(log_odds) - rate_neg) / span, least, 1.0 - most)
    # At these log-odds of the twisted posterior the clean one is one half.
    middle = np.log1p(grid[0] - grid[1]) - np.log1p(grid[1] - grid[0])
    return np.asarray(logit(clean) + LEAKED_SLOPE * (log_odds - middle[:, None]))


def split_at_half(log_odds: Array) -> tuple[Array, Array]:
    """Split log-odds into two smooth parts: one that follows them far below 0, and one that does far above.

    Parameters
    ----------
    log_odds : ndarray
        Log-odds.

    Returns
    -------
    below, above : ndarray
        Their sum is `log_odds`; `below` is flat far above 0, `above` far below.
    """
    bend = np.sqrt(log_odds**2 + 1.0) - 1.0
    return (log_odds - bend) / 2.0, (log_odds + bend) / 2.0


def _condition_on_noise(weights: Array, grid: Array) -> Array:
    """Return the weights of pairs of rates, given that there is noise; as they are where no pair has any."""
    of_noise = weights * grid.any(axis=0)
    return np.asarray(of_noise / of_noise.sum() if of_noise.any() else weights)


def _reach_fitting(interval: tuple[float, float], values: Array, shortfalls: Array | None) -> tuple[float, float]:
    """Return the interval with an upper end that no pair of rates that fits about as well as the best lies beyond.

    Where labels are clear, the true rates are the highest that fit, and the middle of all weight ends before them.
    """
    if shortfalls is None:
        return interval
    return interval[0], max(interval[1], float(values[shortfalls <= TOLERATED_SHORTFALL].max(initial=0.0)))


def _find_slack(rates: Array) -> float:
    """Return by how much a rate may be off: half the distance between neighbours on the grid, or the curve's error."""
    distinct = np.unique(rates)
    return max(float(np.diff(distinct).min() / 2.0) if len(distinct) > 1 else 0.0, ERROR_OF_CURVE)


def _widen(interval: tuple[float, float], rate: float) -> tuple[float, float]:
    """Return the interval, as wide as it takes to hold the rate."""
    return min(rate, interval[0]), max(rate, interval[1])


def _find_interval(rates: Array, weights: Array, found: bool) -> tuple[float, float]:
    """Find where the middle of the weight lies; that of a rate on the grid is spread halfway to its neighbours.

    Where no noise is found, the interval begins at 0.
    """
    distinct, index = np.unique(rates, return_inverse=True)
    middles = (distinct[1:] + distinct[:-1]) / 2.0
    edges = np.concatenate([distinct[:1], middles, distinct[-1:]])
    if len(distinct) > 1:
        edges[-1] += distinct[-1] - middles[-1]
        if distinct[0] == 0:
            # No noise is a case of its own, not a range of rates.
            edges[1] = 0.0
    weight_until = np.concatenate([[0.0], np.cumsum(np.bincount(index, weights))])
    shares = [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0]
    low, high = np.interp(shares, weight_until / weight_until[-1], edges)
    return max(0.0, float(low) - ERROR_OF_CURVE) if found else 0.0, min(1.0, float(high))


class _Pairs(Components):
    """Pairs of rates of two classes."""

    has_offsets = False

    def __init__(self, noise: TwoClassNoise, posterior: Array) -> None:
        self.noise = noise
        self.log_odds = noise._calibrate(_find_log_odds(noise.count_as_estimated(posterior)))

    def list_components(self, most: int) -> list[Component]:
        noise = self.noise
        components = []
        for members in self._group_neighbours(most):
            heaviest = members[int(np.argmax(noise.weights[members]))]
            rate_neg, rate_pos = noise.rates_neg[heaviest], noise.rates_pos[heaviest]
            bend = 0.0 if noise.bends is None else noise.bends[heaviest]
            components.append(
                Component(
                    weight=float(noise.weights[members].sum()),
                    matrix=np.array([[1.0 - rate_neg, rate_neg], [rate_pos, 1.0 - rate_pos]]),
                    slopes=noise.slopes[heaviest] + np.array([-bend, bend]),
                    offsets=np.zeros(2),
                    members=members,
                )
            )
        return components

    def _group_neighbours(self, most: int) -> Iterator[NDArray[np.intp]]:
        """Yield pairs of rates in groups of neighbours, at most so many groups."""
        width = CLOSE_RATES
        while True:
            cells = np.rint(np.stack([self.noise.rates_neg, self.noise.rates_pos]) / width).astype(np.intp)
            index = np.unique(cells, axis=1, return_inverse=True)[1].ravel()
            if index.max() < most:
                break
            width *= 2.0
        for group in range(int(index.max()) + 1):
            yield np.flatnonzero(index == group)

    def untwist(self, component: Component) -> Array:
        rates = _list_rates([component])
        below, above = split_at_half(untwist_log_odds(self.log_odds, rates, self.noise.clearest)[0])
        log_odds = component.slopes[0] * below + component.slopes[1] * above
        return np.column_stack([log_expit(-log_odds), log_expit(log_odds)])

    def combine(self, components: list[Component], weights: Array) -> TwoClassNoise:
        noise = self.noise
        if not any(len(each.members) for each in components):
            # Components that several votes of an item have moved are no longer those of the estimate.
            low, high = np.array([each.slopes for each in components]).T
            slopes, bends = (low + high) / 2.0, (high - low) / 2.0
            return noise.replace_pairs(_list_rates(components), weights, slopes, bends=bends, shortfalls=None)
        return noise.weigh_again(_share_out(components, weights, noise.weights))


def _list_rates(components: list[Component]) -> Array:
    """Return the pair of rates of each component, a column each, made smaller where labels would tell nothing."""
    grid = np.array([[each.matrix[0, 1], each.matrix[1, 0]] for each in components]).T
    return np.asarray(grid * np.minimum(1.0, (1.0 - LEAST_SIGNAL) / np.maximum(grid.sum(axis=0), LEAST_SIGNAL)))


def _share_out(components: list[Component], weights: Array, before: Array) -> Array:
    """Return weights of all that components stand for, each in proportion to what it was."""
    shared = np.zeros(len(before))
    for component, weight in zip(components, weights.tolist(), strict=True):
        shared[component.members] = weight * before[component.members] / component.weight
    return shared


def _find_log_odds(posterior: ArrayLike) -> Array:
    """Return the log-odds of the second of two classes."""
    twisted = np.asarray(posterior, dtype=np.float64)
    if twisted.ndim != 2 or twisted.shape[1] != 2:
        raise ValueError(f"posterior must have a column per class, 2 in all, got shape {twisted.shape}")
    return np.asarray(logit(twisted[:, 1]))
