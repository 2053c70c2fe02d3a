"""From the twisted posterior to the clean one, by all pairs of noise rates that fit the labels.

The twisted posterior lies between rate_neg and 1 - rate_pos, however clear the features. Under one pair of rates the
clean posterior follows from it by a straight line; over several pairs, each with a weight, it is their mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit

from untwist.arguments import Array, check_fraction
from untwist.noise.estimate import CLEAN_LIMIT, CONFIDENCE, NoiseEstimate, describe_range

__all__ = ["REACH", "TABLE", "Untwisting", "check_rates", "untwist_log_odds"]

#: The log-odds, on either side of 0, at which the tables end.
REACH = 20.0
# The number of log-odds in a table, which makes steps of about 0.01; one of them is 0.
TABLE_SIZE = 4097
#: The log-odds of the twisted posterior for which `Untwisting` has tables.
TABLE = np.linspace(-REACH, REACH, TABLE_SIZE)
# Even beyond the plateau of its rates, where the clean posterior would be flat, log-odds go on to rise with this slope.
LEAKED_SLOPE = 1e-3
# A pair of rates with less weight than this is left out.
LEAST_WEIGHT = 1e-6
# A posterior that is divided by, or whose logarithm is taken, is kept this far from 0 and 1.
SAFE_MARGIN = 1e-15
# Where the rates are known, a clean posterior may come this close to 0 and 1.
CLEAREST_BY_KNOWN_RATES = 1e-9


@dataclass(frozen=True, eq=False)
class Untwisting(NoiseEstimate):
    """An estimate of the noise, and the transform from the twisted posterior to the clean one that follows from it.

    The estimate is all pairs of rates that fit the twisted labels, each with its weight and the slope of its clean
    posterior. The transform is the methods. Both are one class since neither means anything without the other, and
    model files hold them together.

    Under a pair of rates the clean posterior is expit(slope * u), u the log-odds of
    (twisted - rate_neg) / (1 - rate_neg - rate_pos); a slope of 1 takes the twisted posterior at its word. Every method
    gives the mean over the pairs.

    Attributes
    ----------
    weights : ndarray
        How likely each pair of rates is; the sum is 1.
    rates_neg, rates_pos : ndarray
        The pairs.
    slopes : ndarray
        The slope of the clean posterior of each pair.
    evidence : float
        The log-likelihood that noise explains, in nats; NaN if the rates were given.
    clearest : float
        How close to 0 and 1 a clean posterior may come, before the slope.
    scale, offset : float
        The calibration of log-odds: they are taken times `scale`, plus `offset`.
    n_classes : int
        The number of classes among which a wrong label is any other.

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
        return cls.from_grid(check_rates(rates), one, one, math.nan, True, clearest=CLEAREST_BY_KNOWN_RATES)

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
    ) -> Untwisting:
        """Return the untwisting by many pairs of rates, the likeliest of which are its `rate_neg` and `rate_pos`.

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
        clearest, scale, offset, n_classes
            The attributes of these names.

        Returns
        -------
        Untwisting
            Without the pairs of next to no weight.
        """
        kept = weights > LEAST_WEIGHT
        weights = weights[kept] / weights[kept].sum()
        grid = grid[:, kept]
        likeliest = int(np.argmax(weights))
        rate_neg = float(grid[0, likeliest])
        rate_pos = float(grid[1, likeliest])
        rates_are_given = math.isnan(evidence)
        return cls(
            rate_neg=rate_neg,
            rate_pos=rate_pos,
            interval_neg=_widen(_find_interval(grid[0], weights), rate_neg),
            interval_pos=_widen(_find_interval(grid[1], weights), rate_pos),
            found=found and (bool(grid[:, likeliest].any()) or rates_are_given),
            weights=weights,
            rates_neg=grid[0],
            rates_pos=grid[1],
            slopes=slopes[kept],
            evidence=evidence,
            clearest=clearest,
            scale=scale,
            offset=offset,
            n_classes=n_classes,
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

    def __str__(self) -> str:
        if self.n_classes == 2:
            return super().__str__()
        low, high = self.interval_pos
        if not self.found:
            what = "no sign of noise that is the same in every class"
            if high >= CLEAN_LIMIT:
                what = "noise that is the same in every class cannot be told from hard data here"
            return f"{what} ({describe_range(low, high)} would fit); noise of some classes only is not excluded"
        return f"wrong labels: {self.rate_pos:.1%} ({low:.1%} to {high:.1%}) of every class"

    @property
    def matrix(self) -> Array:
        """The transition matrix of the likeliest rates: a row per true class, a column per label."""
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
            The mean of `probability_wrong` over the rows, and its 95 % interval over the rates that fit.
        """
        z = self._calibrate(log_odds)
        positive = np.asarray(y) == 1
        step = TABLE[1] - TABLE[0]
        nearest = np.clip(np.rint((z + REACH) / step), 0, len(TABLE) - 1).astype(np.intp)
        weight = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), z.shape)
        mass_by_label = [np.bincount(nearest[rows], weight[rows], len(TABLE)) for rows in (~positive, positive)]
        wrong = sum(table @ mass for table, mass in zip(self._wrong_tables, mass_by_label, strict=True))
        shares = np.asarray(wrong / max(float(weight.sum()), np.finfo(float).tiny))
        return float(self.weights @ shares), *_find_interval(shares, self.weights)

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

    def _tabulate_log_odds(self) -> Array:
        """Return the clean log-odds over the table, for each pair of rates."""
        pairs = np.stack([self.rates_neg, self.rates_pos])
        return self.slopes[:, None] * untwist_log_odds(TABLE, pairs, self.clearest)

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
        How close to 0 and 1 the clean posterior may come.

    Returns
    -------
    ndarray of shape (n_pairs, n_points)
        Rising in the log-odds.
    """
    rate_neg = grid[0][:, None]
    span = (1.0 - grid.sum(axis=0))[:, None]
    clean = np.clip((expit(log_odds) - rate_neg) / span, clearest, 1.0 - clearest)
    # At these log-odds of the twisted posterior the clean one is one half.
    middle = np.log1p(grid[0] - grid[1]) - np.log1p(grid[1] - grid[0])
    return np.asarray(logit(clean) + LEAKED_SLOPE * (log_odds - middle[:, None]))


def _widen(interval: tuple[float, float], rate: float) -> tuple[float, float]:
    """Return the interval, as wide as it takes to hold the likeliest rate, which is one of a grid."""
    return min(rate, interval[0]), max(rate, interval[1])


def _find_interval(rates: Array, weights: Array) -> tuple[float, float]:
    """Find where the middle of the weight lies; that of a rate on the grid is spread halfway to its neighbours."""
    distinct, index = np.unique(rates, return_inverse=True)
    middles = (distinct[1:] + distinct[:-1]) / 2.0
    edges = np.concatenate([distinct[:1], middles, distinct[-1:]])
    if distinct[0] == 0 and len(distinct) > 1:
        # No noise is a case of its own, not a range of rates.
        edges[1] = 0.0
    weight_until = np.concatenate([[0.0], np.cumsum(np.bincount(index, weights))])
    shares = [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0]
    low, high = np.interp(shares, weight_until / weight_until[-1], edges)
    return float(low), float(high)
