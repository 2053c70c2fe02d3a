"""How many labels of each class are wrong, from posteriors of rows that a model has not seen.

The posterior of the twisted labels lies between rate_neg and 1 - rate_pos, however clear the features: it has plateaus.
`estimate_rates` weighs all rates, and no noise at all, by what out-of-fold posteriors say of them: rows beyond a
plateau must not be more certain than the plateau is, and clean labels should follow from the features. Hard rows and
wrong labels often look alike, so that this is a decision: docs/hard-or-noisy.md has its prior, its likelihood and what
it costs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.special import expit, log_expit, logit, xlogy

from untwist.arguments import Array, check_fraction, check_numbers, check_probabilities
from untwist.noise.model import SAFE_MARGIN
from untwist.noise.two_classes import (
    ENOUGH_EVIDENCE,
    LEAST_CHANCE,
    POSTERIOR_FLOOR,
    TwoClassNoise,
    check_rates,
    split_at_half,
    untwist_log_odds,
)

__all__ = ["MOST_EFFECTIVE_ROWS", "estimate_rates", "has_few_groups"]

#: The prior probability that no label is wrong: what probabilities are not to lose on clean data.
PRIOR_OF_NO_NOISE = 0.5
# The prior probability, if there is noise, that both classes are equally noisy.
PRIOR_OF_EQUAL_RATES = 0.4
# The prior probability, if there is noise, that one class is noisy and the other is not: hard data look just like that.
PRIOR_OF_ONE_NOISY_CLASS = 0.2
# The prior mean of the share of the variance of clean labels that features leave unexplained.
UNEXPLAINED = 0.15
# That counts for less in proportion where there are fewer rows than this: a model of a few rows learns next to nothing,
# so that its posteriors do not show what features explain.
ROWS_TO_EXPLAIN = 30.0
# The highest rate that is considered: with more, the little that hopeless features tell would pass for certainty.
HIGHEST_RATE = 0.44
# The distance between the rates of the first search.
STEP = 0.04
# The distance between the rates of the second search, near the best of the first.
FINE_STEP = 0.01
# A pair of rates this many nats behind the best of the first search is not looked at again.
PLAUSIBLE_GAP = 8.0
# The number of bins of log-odds that the likelihood is summed over.
N_BINS = 64
# Rows of fewer different posteriors than this come in groups, of which each may be as hard as it is.
FEWEST_POSTERIORS = 32
# Hard rows may come in groups that are alike, and labels then follow steps: so many levels at most are tried.
MOST_LEVELS = 6
# Steps must explain so many nats more than rates do, which are odds of about 50 to 1.
STEPS_AHEAD = 4.0
# The prior standard deviation of the scale that calibrates log-odds, around 1.
SCALE_SPREAD = 0.2
# The prior standard deviation of the offset that calibrates log-odds, around 0.
OFFSET_SPREAD = 1.0
# The lowest scale that calibrates log-odds.
LEAST_SCALE = 0.05
# Rows of more weight than this in all would say nothing new.
MOST_TELLING_WEIGHT = 1e7
#: However many rows there are, they count for fewer than this: the shape of the curve is an assumption, and its error
#: does not fall with the number of rows.
MOST_EFFECTIVE_ROWS = 1e4
# The prior standard deviation of the logarithm of either slope, around 0, that of a calibrated posterior.
SLOPE_SPREAD = 0.5
# A clean posterior is not taken to be nearer to 0 or 1 than this, before the slope.
CLEAREST = 0.005
# Where a class is rare, a clean posterior may come as near to 0 or 1 as this part of the rarer class's share.
CLEAREST_OF_RARE = 0.05
# However rare a class, a clean posterior is not taken to be nearer to 0 or 1 than this, before the slope.
CLEAREST_OF_ALL = 1e-6
# Up to this sum whole weights add up exactly, in any order.
LARGEST_EXACT_SUM = 2.0**53
# Numbers that differ by less than this count as equal.
ROUNDING = 1e-9
# The calibration, and the search for slopes, take at most this many steps of Newton's method.
MOST_STEPS = 100
# A step is halved at most this often; after that it is below rounding.
MOST_HALVINGS = 60
# The calibration ends where a step moves its parameters by less than this.
LEAST_MOVE = 1e-13
# The search for slopes ends where a step moves their logarithms by less than this.
LEAST_MOVE_OF_SLOPES = 1e-4
# A pair of rates whose step is no longer than this has arrived, and waits for the others.
LEAST_MOVE_OF_A_PAIR = 1e-14


def estimate_rates(
    posterior: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    rates: tuple[float, float] | None = None,
    prior_of_no_noise: float = PRIOR_OF_NO_NOISE,
    rows_per_case: float = 1.0,
) -> TwoClassNoise:
    """Estimate the noise of labels, from posteriors of a model that has not seen them: out of fold.

    The twisted labels follow rate_neg + (1 - rate_neg - rate_pos) * clean, with `clean` as `TwoClassNoise` has it. No
    noise and all pairs of rates on a grid are weighed by their likelihood at the best slopes, and by a prior: the odds
    are even that there is no noise at all; noise is the same in both classes (0.4), in one class only (0.2), or
    anything (0.4); and features explain most of the clean labels (the unexplained share of their variance is
    exponential with mean 0.15), so that of a disagreement that would fit either, noise gets more than bad luck; that
    counts for less in proportion where there are fewer than 30 rows, of which no model learns much. The mean of the
    clean posteriors under these weights has the least expected log-loss: where the data cannot tell hard rows from
    wrong labels, probabilities are corrected only as far as that pays.

    Parameters
    ----------
    posterior : array_like of shape (n_rows,)
        The probability of label 1 in each row, in [0, 1].
    y : array_like of shape (n_rows,)
        The labels, 0 or 1.
    sample_weight : array_like of shape (n_rows,), optional
        How much each row counts.
    rates : tuple of float, optional
        (rate_neg, rate_pos) if they are known; only the slope and the calibration are then found.
    prior_of_no_noise : float, default 0.5
        The probability that no label is wrong, before the labels are looked at; above 0 and below 1.
    rows_per_case : float, default 1
        How many rows count as one: rows of a group may err together (`untwist.noise.dependence`).

    Returns
    -------
    TwoClassNoise
        The rates that fit, and what takes the twisted posterior to the clean one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> twisted = 0.1 + (1.0 - 0.1 - 0.3) * expit(8.0 * rng.normal(size=4000))
    >>> y = rng.random(4000) < twisted
    >>> print(estimate_rates(expit(logit(twisted) + rng.normal(scale=0.5, size=4000)), y))
    wrong labels: 9.4% (0.0% to 13.0%) of the negatives, 31.3% (26.5% to 35.0%) of the positives
    """
    p, labels, weight = _check_rows(posterior, y, sample_weight)
    prior_of_no_noise = check_fraction("prior_of_no_noise", prior_of_no_noise)
    if not 0.0 < prior_of_no_noise < 1.0:
        raise ValueError(f"prior_of_no_noise must lie between 0 and 1, got {prior_of_no_noise!r}")
    values, total, positives = _sum_by_log_odds(p, labels, weight)
    share = positives.sum() / total.sum()
    clearest = max(min(CLEAREST, CLEAREST_OF_RARE * share, CLEAREST_OF_RARE * (1.0 - share)), CLEAREST_OF_ALL)
    scale, offset = _calibrate(values, total, positives)
    bins = _sum_in_bins(scale * values + offset, total, positives)
    # Noise that is not the same everywhere may be all of the doubt that the posteriors leave, and look like hard rows.
    in_doubt = float(bins[1] @ expit(-np.abs(bins[0])) / bins[1].sum())
    bins[1:] /= rows_per_case
    rows_per_effective_row = 1.0 + float(bins[1].sum()) / MOST_EFFECTIVE_ROWS
    bins[1:] /= rows_per_effective_row
    common: dict[str, Any] = {"clearest": clearest, "scale": scale, "offset": offset, "uneven_limit": in_doubt}
    if rates is not None:
        pair = check_rates(rates)
        curves = _fit_curves(bins, pair, clearest)
        given = TwoClassNoise.from_grid(
            pair, np.ones(1), curves.slope, math.nan, found=True, bends=curves.bend, shortfalls=np.zeros(1), **common
        )
        return _add_share(given, p, labels, weight)
    grid, curves = _search_rates(bins, clearest)
    is_noise = grid.any(axis=0)
    best_of_noise = float(curves.likelihood[is_noise].max())
    steps = _rate_steps(bins)
    follows_steps = steps > best_of_noise + STEPS_AHEAD
    is_grouped = steps > -math.inf and has_few_groups(len(values), float(total.sum()) / rows_per_case)
    if follows_steps or is_grouped:
        # Groups of rows, each as hard as it is, explain the labels as well: rates have nothing to show for them.
        curves = curves._replace(likelihood=np.where(is_noise, curves.likelihood, curves.likelihood.max()))
    plausibility = curves.plausibility + _weigh_by_prior(grid, prior_of_no_noise)
    weights = np.exp(plausibility - plausibility.max())
    weights /= weights.sum()
    # The evidence is that of all rows; that they count for fewer makes the chance of noise more careful, not this.
    evidence = (best_of_noise - float(curves.likelihood[~is_noise][0])) * rows_per_effective_row
    noise = TwoClassNoise.from_grid(
        grid,
        weights,
        curves.slope,
        evidence,
        found=bool(evidence >= ENOUGH_EVIDENCE and weights[is_noise].sum() >= LEAST_CHANCE),
        bends=curves.bend,
        shortfalls=curves.likelihood.max() - curves.likelihood,
        **common,
    )
    return _add_share(noise, p, labels, weight)


def _add_share(noise: TwoClassNoise, p: Array, labels: NDArray[Any], weight: Array) -> TwoClassNoise:
    """Return the noise with the share of these labels that are wrong."""
    share, low, high = noise.share_wrong(np.column_stack([1.0 - p, p]), labels, weight / weight.max())
    return replace(noise, share=share, interval=(low, high))


def _check_rows(
    posterior: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Array, NDArray[Any], Array]:
    """Return the posteriors, labels and weights as arrays, one per row."""
    p = check_probabilities("posterior", posterior)
    labels = np.asarray(y)
    if p.ndim != 1 or labels.shape != p.shape or p.size == 0:
        raise ValueError(f"posterior and y must be one per row, got shapes {p.shape} and {labels.shape}")
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(f"y must be 0 or 1, got {labels[~np.isin(labels, (0, 1))][0]!r}")
    weight = np.ones(p.size) if sample_weight is None else check_numbers("sample_weight", sample_weight)
    if weight.shape != p.shape or not ((weight >= 0).all() and 0 < weight.sum() < np.inf):
        raise ValueError("sample_weight must be finite and non-negative, one per row, not all 0, with a finite sum")
    counts = weight > 0  # Rows of weight 0 are absent.
    return p[counts], labels[counts], weight[counts]


def _sum_by_log_odds(p: Array, labels: NDArray[Any], weight: Array) -> tuple[Array, Array, Array]:
    """Return the log-odds that there are, rising, and the weight of all rows and of the positives at each."""
    if (weight % 1.0 != 0).any() or weight.sum() > LARGEST_EXACT_SUM:
        # Only sums of whole numbers do not depend on the order of the rows.
        order = np.lexsort((weight, labels, p))
        p = p[order]
        labels = labels[order]
        weight = weight[order]
    weight = _limit_weight(weight)
    z = logit(np.clip(p, POSTERIOR_FLOOR, 1.0 - POSTERIOR_FLOOR))
    # The values are sorted, so that the order of the rows does not matter.
    values, value_index = np.unique(z, return_inverse=True)
    total = np.bincount(value_index, weight).astype(np.float64)
    return values, total, np.bincount(value_index, weight * labels).astype(np.float64)


def _limit_weight(weight: Array) -> Array:
    """Return the weights, scaled so that they count for as many rows as there are at least, and for not too many."""
    rows = np.count_nonzero(weight)
    if rows <= weight.sum() <= MOST_TELLING_WEIGHT:
        return weight
    return np.asarray(weight / weight.sum() * min(max(rows, weight.sum()), MOST_TELLING_WEIGHT))


def has_few_groups(n_posteriors: int, weight: float) -> bool:
    """Tell whether rows come in few groups of equal posteriors, which may each be hard for reasons of their own.

    Parameters
    ----------
    n_posteriors : int
        How many different posteriors there are.
    weight : float
        How many rows there are, by weight.

    Returns
    -------
    bool
        Whether there are fewer than `FEWEST_POSTERIORS`, each of more than two rows in the mean.
    """
    return n_posteriors < min(FEWEST_POSTERIORS, weight / 2.0)


def _rate_steps(bins: Array) -> float:
    """Return the log-likelihood of labels that follow a few steps over the bins, less what the borders cost.

    These are hard rows in groups that are alike, whatever the posterior makes of their differences. For each number of
    levels the best borders count, and the logarithm of the number of ways to lay them is their price; the levels take
    about as many numbers as a curve with its rates does. Where no more than two levels are best, the answer is minus
    infinity: that is what the same noise everywhere makes of a sharp problem.
    """
    n_bins = bins.shape[1]
    until, positives_until = (np.append(0.0, np.cumsum(one)) for one in bins[1:])
    mass = until[None, :] - until[:, None]
    positive = np.maximum(positives_until[None, :] - positives_until[:, None], 0.0)
    share = np.clip(positive / np.where(mass > 0, mass, 1.0), 0.0, 1.0)
    # The bins from the first index to before the second as one level.
    negative = np.maximum(mass - positive, 0.0)
    of_level = np.where(mass > 0, xlogy(positive, share) + xlogy(negative, 1.0 - share), -np.inf)
    best_until = of_level[0]
    rated = [float(best_until[-1])]
    for level in range(2, min(MOST_LEVELS, n_bins) + 1):
        best_until = (best_until[:, None] + of_level).max(axis=0)
        rated.append(float(best_until[-1]) - math.log(math.comb(n_bins - 1, level - 1)))
    return max(rated[2:], default=-math.inf) if np.argmax(rated) >= 2 else -math.inf


class _BestCurves(NamedTuple):
    """For each pair of rates the best curve: its log-likelihood, slope and bend, and the price of what it leaves."""

    likelihood: Array
    slope: Array
    bend: Array
    price: Array

    @property
    def plausibility(self) -> Array:
        """The log-likelihood, and how easy the clean problem would be."""
        return self.likelihood - self.price


def _search_rates(bins: Array, clearest: float) -> tuple[Array, _BestCurves]:
    """Return pairs of rates and their curves; where few fit, only those and no noise, on a finer grid."""
    coarse = _list_rates(STEP)
    fine = _list_rates(FINE_STEP)
    curves = _fit_curves(bins, coarse, clearest)
    plausible = coarse[:, curves.plausibility >= curves.plausibility.max() - PLAUSIBLE_GAP]
    distance = cdist(fine.T, plausible.T, "chebyshev").min(axis=1)
    near = fine[:, (distance <= STEP / 2 + ROUNDING) | ~fine.any(axis=0)]
    if near.shape[1] > 2 * coarse.shape[1]:
        return coarse, curves
    return near, _fit_curves(bins, near, clearest)


def _list_rates(step: float) -> Array:
    """Return pairs (rate_neg, rate_pos)."""
    each = np.arange(round(HIGHEST_RATE / step) + 1) * step
    return np.stack(np.meshgrid(each, each, indexing="ij")).reshape(2, -1)


def _weigh_by_prior(grid: Array, prior_of_no_noise: float) -> Array:
    """Return the logarithm of the prior weight of each pair of rates."""
    spacing = np.diff(np.unique(grid[1]))
    n_rates = HIGHEST_RATE / (spacing.min() if spacing.size else STEP)
    is_noise = grid.any(axis=0)
    share_of_any = 1.0 - PRIOR_OF_EQUAL_RATES - PRIOR_OF_ONE_NOISY_CLASS
    if_noise = np.select(
        [grid[0] == grid[1], (grid == 0).any(axis=0)],
        [PRIOR_OF_EQUAL_RATES / n_rates, PRIOR_OF_ONE_NOISY_CLASS / (2.0 * n_rates)],
        share_of_any / (n_rates * (n_rates - 1.0)),
    )
    return np.asarray(np.log(np.where(is_noise, (1.0 - prior_of_no_noise) * if_noise, prior_of_no_noise)))


def _sum_in_bins(z: Array, total: Array, positives: Array) -> Array:
    """Return the mean of z (rising), the weight and that of the positives, in bins of about equal weight."""
    middle = (np.cumsum(total) - 0.5 * total) / total.sum()
    bin_index = np.minimum((middle * N_BINS * (1 + ROUNDING)).astype(np.intp), N_BINS - 1)
    mass, positive, moment = (np.bincount(bin_index, each, N_BINS) for each in (total, positives, total * z))
    known = mass > 0
    return np.stack([moment[known] / mass[known], mass[known], positive[known]])


def _calibrate(z: Array, total: Array, positives: Array) -> tuple[float, float]:
    """Fit the scale and offset of log-odds to the labels, with a scale near 1: a model of few rounds is shy.

    Newton's steps, halved until they help; a scale at its lower bound stays there while the offset is fitted.
    """
    x = np.stack([z, np.ones_like(z)])
    prior_mean = np.array([1.0, 0.0])
    prior_spread = np.array([SCALE_SPREAD, OFFSET_SPREAD])

    def find_cost(parameters: Array) -> float:
        log_odds = parameters @ x
        likelihood = positives @ log_expit(log_odds) + (total - positives) @ log_expit(-log_odds)
        return float(0.5 * (((parameters - prior_mean) / prior_spread) ** 2).sum() - likelihood)

    parameters = prior_mean
    cost_before = find_cost(parameters)
    for _ in range(MOST_STEPS):
        p = expit(parameters @ x)
        gradient = x @ (positives - total * p) - (parameters - prior_mean) / prior_spread**2
        hessian = (x * (total * p * (1.0 - p))) @ x.T + np.diag(prior_spread**-2.0)
        step = np.linalg.solve(hessian, gradient)
        if parameters[0] <= LEAST_SCALE and step[0] < 0:
            step = np.array([0.0, gradient[1] / hessian[1, 1]])
        for _ in range(MOST_HALVINGS):
            moved_parameters = np.maximum(parameters + step, (LEAST_SCALE, -np.inf))
            cost_after = find_cost(moved_parameters)
            if cost_after <= cost_before:
                break
            step = step / 2.0
        else:
            break
        move = float(np.abs(moved_parameters - parameters).max())
        parameters = moved_parameters
        cost_before = cost_after
        if move < LEAST_MOVE:
            break
    return float(parameters[0]), float(parameters[1])


def _fit_curves(bins: Array, grid: Array, clearest: float) -> _BestCurves:
    """Find the best slopes for each pair of rates: one far below a clean posterior of one half, one far above it.

    Newton's steps by Fisher's information in the logarithms of the slopes, at once for all pairs that still move; those
    of a pair that would lose by its step are halved until it does not.
    """
    curves = moving = _Curves.begin(bins, grid, clearest)
    pairs = np.arange(grid.shape[1])
    for _ in range(MOST_STEPS):
        step = moving.find_step(bins)
        moved = moving.move(bins, step)
        for _ in range(MOST_HALVINGS):
            losing = np.flatnonzero(moved.likelihood < moving.likelihood - ROUNDING)
            if not len(losing):
                break
            step[losing] /= 2.0
            moved.put(losing, moving.take(losing).move(bins, step[losing]))
        else:
            step[losing] = 0.0
            moved.put(losing, moving.take(losing))
        moving = moved
        length = np.abs(step).max(axis=1)
        if length.max() < LEAST_MOVE_OF_SLOPES:
            break
        still = length > LEAST_MOVE_OF_A_PAIR
        if not still.all():
            curves.put(pairs, moving)
            pairs, moving = pairs[still], moving.take(still)
    curves.put(pairs, moving)
    share = bins[1] / bins[1].sum()
    mean = np.clip(curves.clean @ share, SAFE_MARGIN, 1.0 - SAFE_MARGIN)
    unexplained = (curves.clean * (1.0 - curves.clean)) @ share / (mean * (1.0 - mean))
    low, high = np.exp(curves.logarithms.T)
    price = unexplained / UNEXPLAINED * min(1.0, bins[1].sum() / ROWS_TO_EXPLAIN)
    return _BestCurves(curves.likelihood, (low + high) / 2.0, (high - low) / 2.0, price)


class _Curves(NamedTuple):
    """Curves on the way to the best ones, one for each of some pairs of rates, which come first in every array.

    In each bin the log-odds of `clean` are the sum of two `sides`, below one half and above it, times a slope each.
    """

    rate_neg: Array
    span: Array
    sides: Array
    logarithms: Array
    clean: Array
    twisted: Array
    likelihood: Array

    @classmethod
    def begin(cls, bins: Array, grid: Array, clearest: float) -> _Curves:
        """Return curves of slope 1."""
        sides = np.stack(split_at_half(untwist_log_odds(bins[0], grid, clearest)), axis=1)
        return cls._fit(bins, grid[0][:, None], (1.0 - grid.sum(axis=0))[:, None], sides, np.zeros(grid.T.shape))

    @classmethod
    def _fit(cls, bins: Array, rate_neg: Array, span: Array, sides: Array, logarithms: Array) -> _Curves:
        """Return the curves whose slopes have these logarithms."""
        _, total, positives = bins
        clean = expit((np.exp(logarithms)[:, None] @ sides)[:, 0])
        twisted = np.clip(rate_neg + span * clean, SAFE_MARGIN, 1.0 - SAFE_MARGIN)
        likelihood = np.log(twisted) @ positives + np.log1p(-twisted) @ (total - positives)
        likelihood -= 0.5 * ((logarithms / SLOPE_SPREAD) ** 2).sum(axis=1)
        return cls(rate_neg, span, sides, logarithms, clean, twisted, likelihood)

    def move(self, bins: Array, step: Array) -> _Curves:
        """Return the curves after a step of the logarithms of their slopes."""
        return self._fit(bins, self.rate_neg, self.span, self.sides, self.logarithms + step)

    def take(self, pairs: NDArray[Any]) -> _Curves:
        """Return the curves of some of the pairs."""
        return _Curves(*(one[pairs] for one in self))

    def put(self, pairs: NDArray[Any], others: _Curves) -> None:
        """Let others take the place of the curves of some of the pairs, whose rates and sides they share."""
        self.logarithms[pairs] = others.logarithms
        self.clean[pairs] = others.clean
        self.twisted[pairs] = others.twisted
        self.likelihood[pairs] = others.likelihood

    def find_step(self, bins: Array) -> Array:
        """Return Newton's step of the logarithms of the two slopes of each pair, of at most 1 each."""
        _, total, positives = bins
        rise = self.span * self.clean * (1.0 - self.clean)
        certainty = rise / (self.twisted * (1.0 - self.twisted))
        pull = (positives - total * self.twisted) * certainty
        information = total * rise * certainty
        slopes = np.exp(self.logarithms)[:, :, None]
        low, high = (slopes * (self.sides @ pull[:, :, None]))[:, :, 0].T - self.logarithms.T / SLOPE_SPREAD**2
        products = (self.sides * information[:, None]) @ self.sides.transpose(0, 2, 1)
        hessian = slopes * slopes.transpose(0, 2, 1) * products + np.eye(2) / SLOPE_SPREAD**2
        (low_low, low_high), (_, high_high) = hessian.T
        step = np.stack([high_high * low - low_high * high, low_low * high - low_high * low], axis=1)
        step /= (low_low * high_high - low_high**2)[:, None]
        return np.asarray(step / np.maximum(1.0, np.abs(step).max(axis=1, keepdims=True)))
