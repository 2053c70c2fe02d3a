"""Slopes, roots, integrals and minimisers of functions on [0, 1], vectorised: for what has no closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from untwist.arguments import Array

__all__ = [
    "LOGIT_OF_ONE",
    "LOGIT_OF_ZERO",
    "Risk",
    "bisect",
    "expectation",
    "integral_from_zero",
    "minimisers",
    "slope",
]

Function = Callable[[Array], Array]

# Closer to 0 or 1 than this, differences drown in rounding.
_NEAR = 1e-6
# Distance on the logit scale between the points whose values give a slope.
_STEP = 0.01
# The points of the central difference of sixth order, relative to the one in question.
_SHIFTS = _STEP * np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
# The weights of these points in the difference.
_WEIGHTS = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / (60.0 * _STEP)
# Bisections that bring an interval of logits down to the precision of float64.
_BISECTIONS = 64
# A finite stand-in for the logit of 0: expit of anything lower is 0 to rounding.
LOGIT_OF_ZERO = -740.0
# A finite stand-in for the logit of 1: expit of anything higher is 1.
LOGIT_OF_ONE = 37.0
# Posteriors whose risks are laid out over the grid at a time, which bounds the memory it takes.
_ROWS_AT_A_TIME = 2048


def slope(function: Function, u: Array) -> Array:
    """Derivative of `function` on [0, 1], to about 1e-7 where function is smooth inside.

    Six points on the logit scale, where the interval has no ends. Closer to an end than a millionth the differences
    drown in rounding, and the power law that holds there is continued, to about 1e-4: constant for a function that is
    smooth at the end, 1/u for a logarithm.

    Parameters
    ----------
    function : callable
        Takes an array with entries in [0, 1] and gives an array of the same shape.
    u : ndarray
        Where to find the slope, in [0, 1].

    Returns
    -------
    ndarray
        The slopes, in the shape of `u`.

    Examples
    --------
    >>> slope(np.log, np.array([0.25, 0.5])).round(6)
    array([4., 2.])
    """
    u = np.asarray(u)
    middle = _inner_slope(function, np.clip(u, _NEAR, 1.0 - _NEAR))
    two = np.array([_NEAR, 2.0 * _NEAR])
    toward_0 = _continue_power_law(_inner_slope(function, two), u / _NEAR, function(two))
    toward_1 = _continue_power_law(_inner_slope(function, 1.0 - two), (1.0 - u) / _NEAR, function(1.0 - two))
    return np.where(u < _NEAR, toward_0, np.where(u > 1.0 - _NEAR, toward_1, middle))[()]


def _inner_slope(function: Function, u: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(function(expit(logit(u)[..., None] + _SHIFTS)) @ _WEIGHTS / (u * (1.0 - u)))


def _continue_power_law(slopes: Array, x: Array, function_values: Array) -> Array:
    """The multiple of a power of x with these slopes at x = 1 and x = 2; a whole power where it is close to one.

    It is constant where the slopes are no more than the rounding of the function's own values at these two points.
    """
    at_1, at_2 = slopes.tolist()
    above_rounding = (np.abs(slopes) > 4e-14 * np.abs(function_values) / _NEAR).all() and at_1 * at_2 > 0
    power = math.log2(at_2 / at_1) if above_rounding and math.isfinite(at_2 / at_1) else 0.0
    if abs(power - round(power)) < 1e-3:
        power = round(power)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(at_1 * x**power)


def bisect(rising: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Find where a predicate turns from false to true, elementwise.

    Parameters
    ----------
    rising : callable
        Takes an array and gives a Boolean for each element; false up to some point and true from there on.
    low, high : ndarray
        The ends between which to look.

    Returns
    -------
    ndarray
        The points, in the shape of `low`.
    """
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        above = rising(middle)
        low = np.where(above, low, middle)
        high = np.where(above, middle, high)
    return 0.5 * (low + high)


def _make_double_exponential(step: float, reach: float) -> tuple[Array, Array]:
    """Return the nodes and weights of the double-exponential quadrature over [0, 1]."""
    t = np.arange(-reach, reach + step / 2, step)
    half = 0.5 * np.pi * np.sinh(t)
    nodes = expit(2.0 * half)
    return nodes, step * np.pi * np.cosh(t) * expit(2.0 * half) * expit(-2.0 * half)


_NODES, _NODE_WEIGHTS = _make_double_exponential(step=1.0 / 16.0, reach=3.6)


def integral_from_zero(function: Function, upper: Array) -> Array:
    """Integral of a function over [0, upper], by double-exponential quadrature.

    Parameters
    ----------
    function : callable
        Takes an array and gives an array of the same shape; it may be singular at the ends.
    upper : ndarray
        The upper ends.

    Returns
    -------
    ndarray
        One integral per upper end.
    """
    upper = np.asarray(upper)
    return np.asarray(upper * (function(upper[..., None] * _NODES) @ _NODE_WEIGHTS))[()]


def expectation(eta: Array, value_pos: Array, value_neg: Array) -> Array:
    """eta * value_pos + (1 - eta) * value_neg with 0 * inf = 0.

    Parameters
    ----------
    eta : ndarray
        Posteriors in [0, 1].
    value_pos, value_neg : ndarray
        What a positive and a negative label are worth, possibly infinite.

    Returns
    -------
    ndarray
        The expected values.
    """
    with np.errstate(invalid="ignore"):
        positive_part = np.where(eta == 0, 0.0, eta * value_pos)
        negative_part = np.where(eta == 1, 0.0, (1.0 - eta) * value_neg)
    return np.asarray(positive_part + negative_part)[()]


class Risk(Protocol):
    """What `minimisers` asks of a loss."""

    def partial_pos(self, u: ArrayLike) -> Array:
        """Cost when the label is +1."""

    def partial_neg(self, u: ArrayLike) -> Array:
        """Cost when the label is -1."""

    def partial_pos_derivative(self, u: ArrayLike) -> Array:
        """Slope of ``partial_pos``."""

    def partial_neg_derivative(self, u: ArrayLike) -> Array:
        """Slope of ``partial_neg``."""

    def conditional_risk(self, u: ArrayLike, eta: ArrayLike) -> Array:
        """Expected cost of the estimate u where the label is +1 with probability eta."""


def minimisers(loss: Risk, eta: Array) -> tuple[Array, Array]:
    """Find the leftmost and rightmost minimiser of L(., eta): a grid on the logit scale, then a root search beside it.

    Parameters
    ----------
    loss : Risk
        The loss whose risk is minimised.
    eta : ndarray
        Posteriors in [0, 1], one-dimensional.

    Returns
    -------
    low, high : ndarray
        The minimisers at each posterior, equal where there is only one.
    """
    # The map from u to 1 - u takes this grid onto itself.
    grid = np.concatenate([[0.0], expit(np.linspace(-36.0, 36.0, 2001)), [1.0]])
    ends = np.clip(logit(grid), LOGIT_OF_ZERO, LOGIT_OF_ONE)
    cost_pos, cost_neg = loss.partial_pos(grid), loss.partial_neg(grid)
    final = grid.size - 1

    def find_isolated(index: NDArray[np.intp], eta: Array) -> Array:
        """Find the minimum near a grid point: where the slope of the risk changes sign."""

        def rising(x: Array) -> Array:
            with np.errstate(invalid="ignore", over="ignore"):
                pull_pos = eta * loss.partial_pos_derivative(expit(x))
                pull_neg = (1.0 - eta) * loss.partial_neg_derivative(expit(x))
            return np.asarray(pull_pos + pull_neg > 0)

        root = expit(bisect(rising, ends[np.maximum(index - 1, 0)], ends[np.minimum(index + 1, final)]))
        found, known = loss.conditional_risk(root, eta), loss.conditional_risk(grid[index], eta)
        # At an end or a jump the grid point itself may be the minimum.
        inside = (index > 0) & (index < final)
        return np.where((found < known) | ((found == known) & inside), root, grid[index])

    def find_rim(index: NDArray[np.intp], direction: int, eta: Array, level: Array) -> Array:
        """Find the end of a flat piece, between a grid point on it and the next one in this direction, off it."""

        def is_flat(x: Array) -> Array:
            return np.asarray(loss.conditional_risk(expit(x), eta) <= level)

        next_off = ends[np.clip(index + direction, 0, final)]
        root = expit(bisect(is_flat, next_off, ends[index]))
        return np.where((index == 0) | (index == final), grid[index], root)

    low, high = np.empty_like(eta), np.empty_like(eta)
    for rows in np.array_split(np.arange(eta.size), max(1, eta.size // _ROWS_AT_A_TIME)):
        some = eta[rows]
        risk = expectation(some[:, None], cost_pos, cost_neg)
        best = risk.min(axis=1)
        # A risk that differs from the best by rounding only is as good.
        level = best + 1e-13 * np.abs(best)
        optimal = risk <= level[:, None]
        first = optimal.argmax(axis=1)
        last = final - optimal[:, ::-1].argmax(axis=1)
        low[rows] = high[rows] = find_isolated(first, some)
        if (several := first < last).any():
            each = np.arange(len(rows))
            flat_low = optimal[each, np.minimum(first + 1, final)]
            flat_high = optimal[each, np.maximum(last - 1, 0)]
            lows = np.where(flat_low, find_rim(first, -1, some, level), low[rows])
            highs = np.where(flat_high, find_rim(last, 1, some, level), find_isolated(last, some))
            low[rows] = np.where(several, lows, low[rows])
            high[rows] = np.where(several, highs, high[rows])
    return low, high
