"""From the twisted posterior to the clean one, by all pairs of noise rates that fit the labels.

The twisted posterior lies between rate_neg and 1 - rate_pos, however clear the features. Under one pair of rates the
clean posterior follows from it by a straight line; over several pairs, each with a weight, it is their mean. No noise
is one of the pairs, so that the mean goes only as far from the twisted posterior as the evidence does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, logit

from untwist.arguments import Array, check_fraction
from untwist.noise.estimate import CLEAN_LIMIT, CONFIDENCE, NoiseEstimate, describe_range
from untwist.sums import add_up, add_up_by_group

__all__ = [
    "DEVIATIONS",
    "ERROR_OF_CURVE",
    "REACH",
    "TABLE",
    "Untwisting",
    "check_rates",
    "split_at_half",
    "untwist_log_odds",
]

#: The log-odds, on either side of 0, at which the tables end.
REACH = 20.0
# The number of log-odds in a table, which makes steps of about 0.01; one of them is 0.
TABLE_SIZE = 4097
#: The log-odds of the twisted posterior for which `Untwisting` has tables.
TABLE = np.linspace(-REACH, REACH, TABLE_SIZE)
# Even beyond the plateau of its rates, where the clean posterior would be flat, log-odds go on to rise with this slope.
LEAKED_SLOPE = 1e-3
# A pair of rates with less weight than this, among those with noise, is left out.
LEAST_WEIGHT = 1e-6
# A posterior that is divided by, or whose logarithm is taken, is kept this far from 0 and 1.
SAFE_MARGIN = 1e-15
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


@dataclass(frozen=True, eq=False)
class Untwisting(NoiseEstimate):
    """An estimate of the noise, and the transform from the twisted posterior to the clean one that follows from it.

    The estimate is all pairs of rates that fit the twisted labels, each with its weight and the slope of its clean
    posterior. The transform is the methods. Both are one class since neither means anything without the other, and
    model files hold them together.

    Under a pair of rates the clean posterior is expit(slope * u + bend * (sqrt(u^2 + 1) - 1)), u the log-odds of
    (twisted - rate_neg) / (1 - rate_neg - rate_pos): far below one half the slope is slope - bend, far above it
    slope + bend. A slope of 1 without a bend takes the twisted posterior at its word. Every method gives the mean over
    the pairs, of which (0, 0), no noise, is one. Where noise is found, the rates and all intervals are those of the
    other pairs; where it is not, the intervals begin at 0.

    Attributes
    ----------
    weights : ndarray
        How likely each pair of rates is; the sum is 1.
    rates_neg, rates_pos : ndarray
        The pairs.
    slopes : ndarray
        The slope of the clean posterior of each pair.
    evidence : float
        The log-likelihood that noise explains, in nats, negative where no noise explains more; NaN if the rates were
        given.
    clearest : float
        How close to 0 and 1 a clean posterior may come, before the slope, where there is noise.
    scale, offset : float
        The calibration of log-odds: they are taken times `scale`, plus `offset`.
    n_classes : int
        The number of classes among which a wrong label is any other.
    bends : ndarray or None
        The bend of the clean posterior of each pair. None where there are none, as with rates that are known:
        `clearest` limits the clean posterior even where there is no noise then.
    shortfalls : ndarray or None
        By how many nats of log-likelihood each pair falls short of the best one; None where it is not known.
    uneven_limit : float
        The share of wrong labels that uneven noise may reach without a trace, as it looks like hard rows: the mean of
        min(t, 1 - t) over the rows, t the calibrated twisted posterior.

    Examples
    --------
    >>> Untwisting.from_rates((0.1, 0.3)).clean(logit([0.1, 0.4, 0.7])).round(3)
    array([0. , 0.5, 1. ])
    """

    weights: Array
    rates_neg: Array
    rates_pos: Array
    slopes: Array
    evidence: float
    clearest: float
    scale: float = 1.0
    offset: float = 0.0
    n_classes: int = 2
    bends: Array | None = None
    shortfalls: Array | None = None
    uneven_limit: float = 0.0

    @classmethod
    def from_rates(cls, rates: tuple[float, float]) -> Untwisting:
        """Return the untwisting by rates that are known, of a posterior that is taken at its word.

        Parameters
        ----------
        rates : tuple of float
            (rate_neg, rate_pos), with a sum below 1.

        Returns
        -------
        Untwisting
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
        n_classes: int = 2,
        bends: Array | None = None,
        shortfalls: Array | None = None,
        uneven_limit: float = 0.0,
    ) -> Untwisting:
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
        clearest, scale, offset, n_classes, bends, shortfalls, uneven_limit
            The attributes of these names.

        Returns
        -------
        Untwisting
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
        return cls(
            rate_neg=rate_neg,
            rate_pos=rate_pos,
            interval_neg=_widen(interval_neg, rate_neg),
            interval_pos=_widen(interval_pos, rate_pos),
            found=found,
            weights=weights,
            rates_neg=grid[0],
            rates_pos=grid[1],
            slopes=slopes[kept],
            evidence=evidence,
            clearest=clearest,
            scale=scale,
            offset=offset,
            n_classes=n_classes,
            bends=None if bends is None else bends[kept],
            shortfalls=shortfalls,
            uneven_limit=uneven_limit,
        )

    def __getstate__(self) -> dict[str, Any]:
        # The tables follow from the fields and are left out.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def is_given(self) -> bool:
        """Whether the rates were given, not estimated."""
        return math.isnan(self.evidence)

    @property
    def _source(self) -> str:
        return " (as given)" if self.is_given else ""

    @property
    def chance_of_noise(self) -> float:
        """The probability that there is noise that is the same everywhere: how far probabilities are corrected."""
        return float(self.weights @ ((self.rates_neg > 0) | (self.rates_pos > 0)))

    @property
    def even_limit(self) -> float:
        """The highest rate of either class that would fit."""
        return max(self.interval_neg[1], self.interval_pos[1])

    def __repr__(self) -> str:
        return f"Untwisting({self})"

    def __str__(self) -> str:
        low, high = self.interval_pos
        if self.found:
            if self.n_classes == 2:
                return super().__str__()
            return f"wrong labels: {self.rate_pos:.1%} ({low:.1%} to {high:.1%}) of every class"
        if self.n_classes > 2:
            what = "no sign of noise that is the same in every class"
            if high >= CLEAN_LIMIT:
                what = "noise that is the same in every class cannot be told from hard data here"
            return f"{what} ({describe_range(low, high)} would fit); noise of some classes only is not excluded"
        uneven = f"uneven noise of up to {self.uneven_limit:.1%} of the labels is not excluded"
        if self.chance_of_noise < LEAST_CORRECTION:
            return f"{super().__str__()}; {uneven}"
        chance = f"{self.chance_of_noise:.0%}"
        decision = f"noise has a chance of {chance}, and probabilities are corrected {chance} of the way"
        return f"{super().__str__()}; {decision}; {uneven}"

    @property
    def matrix(self) -> Array:
        """The transition matrix of the rates: a row per true class, a column per label."""
        if self.n_classes == 2:
            return super().matrix
        others = np.full((self.n_classes, self.n_classes), self.rate_pos / (self.n_classes - 1))
        np.fill_diagonal(others, 1.0 - self.rate_pos)
        return others

    def clean(self, log_odds: ArrayLike) -> Array:
        """Return the clean posterior where the twisted labels have these log-odds: alpha*(x) point by point.

        Parameters
        ----------
        log_odds : array_like
            Log-odds of the twisted posterior.

        Returns
        -------
        ndarray
            One posterior per log-odds.
        """
        return np.asarray(expit(self.clean_log_odds(log_odds)))

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

    def probability_wrong(self, log_odds: ArrayLike, y: ArrayLike) -> Array:
        """Return the probability that a label is wrong where the twisted labels have these log-odds.

        Parameters
        ----------
        log_odds : array_like
            Log-odds of the twisted posterior.
        y : array_like
            The labels, 0 or 1.

        Returns
        -------
        ndarray
            One probability per label.
        """
        z = self._calibrate(log_odds)
        negative, positive = (np.interp(z, TABLE, self.weights @ table) for table in self._wrong_tables)
        return np.where(np.asarray(y) == 1, positive, negative)

    def list_wrong(self, log_odds: ArrayLike, y: ArrayLike) -> Array:
        """Return the probability that a label is wrong under each pair of rates.

        Parameters
        ----------
        log_odds : array_like of shape (n_rows,)
            Log-odds of the twisted posterior.
        y : array_like of shape (n_rows,)
            The labels, 0 or 1.

        Returns
        -------
        ndarray of shape (n_pairs, n_rows)
            Their mean by `weights` is `probability_wrong`.
        """
        z, positive = self._calibrate(log_odds), np.asarray(y) == 1
        wrong = np.empty((len(self.weights), len(z)))
        for rows, tables in zip((~positive, positive), self._wrong_tables, strict=True):
            wrong[:, rows] = [np.interp(z[rows], TABLE, table) for table in tables]
        return wrong

    def share_wrong(self, log_odds: ArrayLike, y: ArrayLike, sample_weight: ArrayLike) -> tuple[float, float, float]:
        """Return the share of labels that are wrong.

        Parameters
        ----------
        log_odds : array_like
            Log-odds of the twisted posterior, one per row.
        y : array_like
            The labels, 0 or 1.
        sample_weight : array_like
            How much each row counts; one number, or one per row.

        Returns
        -------
        share, low, high : float
            The mean of `probability_wrong` over the rows, and its 95 % interval over the rates that fit and over
            chance: which labels are wrong is drawn row by row.
        """
        z = self._calibrate(log_odds)
        positive = np.asarray(y) == 1
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

    def list_clean_log_odds(self, log_odds: ArrayLike, pairs: ArrayLike) -> Array:
        """Return the clean log-odds under single pairs of rates.

        Parameters
        ----------
        log_odds : array_like of shape (n_points,)
            Log-odds of the twisted posterior.
        pairs : array_like of int of shape (n_pairs,)
            Which of the pairs, by their indices.

        Returns
        -------
        ndarray of shape (n_pairs, n_points)
            Rising in the log-odds.
        """
        return self._untwist(np.clip(self._calibrate(log_odds), -REACH, REACH), np.asarray(pairs, dtype=np.intp))

    def weigh_again(self, weights: ArrayLike) -> Untwisting:
        """Return the same pairs of rates with other weights, and the rates and intervals that follow.

        Parameters
        ----------
        weights : array_like of shape (n_pairs,)
            How likely each pair is.

        Returns
        -------
        Untwisting
            Without the pairs of next to no weight; noise is found where it was.
        """
        return Untwisting.from_grid(
            np.stack([self.rates_neg, self.rates_pos]),
            np.asarray(weights, dtype=np.float64),
            self.slopes,
            self.evidence,
            found=self.found,
            clearest=self.clearest,
            scale=self.scale,
            offset=self.offset,
            n_classes=self.n_classes,
            bends=self.bends,
            shortfalls=self.shortfalls,
            uneven_limit=self.uneven_limit,
        )

    def _tabulate_log_odds(self) -> Array:
        """Return the clean log-odds over the table, for each pair of rates."""
        return self._untwist(TABLE, np.arange(len(self.weights)))

    def _untwist(self, calibrated: Array, pairs: NDArray[np.intp]) -> Array:
        """Return the clean log-odds under some pairs of rates."""
        grid = np.stack([self.rates_neg[pairs], self.rates_pos[pairs]])
        slopes = self.slopes[pairs][:, None]
        if self.bends is None:
            return slopes * untwist_log_odds(calibrated, grid, self.clearest, has_limits_without_noise=True)
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


def untwist_log_odds(log_odds: Array, grid: Array, clearest: float, *, has_limits_without_noise: bool = False) -> Array:
    """Return the log-odds of the clean posterior under each pair of rates, before any slope.

    Parameters
    ----------
    log_odds : ndarray of shape (n_points,)
        Log-odds of the twisted posterior.
    grid : ndarray of shape (2, n_pairs)
        The pairs (rate_neg, rate_pos).
    clearest : float
        How close to 0 and 1 the clean posterior may come at a plateau; where a rate is 0 there is none.
    has_limits_without_noise : bool, default False
        Whether `clearest` holds even where a rate is 0, as it does where no pair has a bend.

    Returns
    -------
    ndarray of shape (n_pairs, n_points)
        Rising in the log-odds.
    """
    rate_neg = grid[0][:, None]
    span = (1.0 - grid.sum(axis=0))[:, None]
    is_limited = (grid > 0) | has_limits_without_noise
    least, most = np.where(is_limited, clearest, CLEAREST_BY_KNOWN_RATES)[:, :, None]
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
