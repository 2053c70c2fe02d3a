"""The numerical methods the theory falls back on: slope, root, integral and minimisers, vectorised."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from untwist.arguments import Array

Function = Callable[[Array], Array]

_NEAR = 1e-6
_STEP = 0.01
_SHIFTS = _STEP * np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
_WEIGHTS = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / (60.0 * _STEP)


def slope(function: Function, u: Array) -> Array:
    """Derivative of `function` on [0, 1], to about 1e-7 where function is smooth inside.

    Six points on the logit scale, where the interval has no ends. Closer to an end than a millionth the differences
    drown in rounding, and the power law that holds there is continued, to about 1e-4: constant for a function that is
    smooth at the end, 1/u for a logarithm.
    """
    u = np.asarray(u)
    middle = _inner_slope(function, np.clip(u, _NEAR, 1.0 - _NEAR))
    two = np.array([_NEAR, 2.0 * _NEAR])
    toward_0 = _power_law(_inner_slope(function, two), u / _NEAR, function(two))
    toward_1 = _power_law(_inner_slope(function, 1.0 - two), (1.0 - u) / _NEAR, function(1.0 - two))
    return np.where(u < _NEAR, toward_0, np.where(u > 1.0 - _NEAR, toward_1, middle))[()]


def _inner_slope(function: Function, u: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(function(expit(logit(u)[..., None] + _SHIFTS)) @ _WEIGHTS / (u * (1.0 - u)))


def _power_law(values: Array, x: Array, function: Array) -> Array:
    """The multiple of a power of x with these values at x = 1 and x = 2; a whole power where it is close to one.

    Constant where the values are no more than the rounding of the `function` whose slope they are.
    """
    at_1, at_2 = values.tolist()
    clear = (np.abs(values) > 4e-14 * np.abs(function) / _NEAR).all() and at_1 * at_2 > 0
    power = math.log2(at_2 / at_1) if clear and math.isfinite(at_2 / at_1) else 0.0
    if abs(power - round(power)) < 1e-3:
        power = round(power)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(at_1 * x**power)


def bisect(rising: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Where the predicate `rising` turns from false to true between `low` and `high`, elementwise."""
    for _ in range(64):  # enough for float64 on the logit scale
        middle = 0.5 * (low + high)
        above = rising(middle)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return 0.5 * (low + high)


def _double_exponential(step: float = 1.0 / 16.0, reach: float = 3.6) -> tuple[Array, Array]:
    t = np.arange(-reach, reach + step / 2, step)
    half = 0.5 * np.pi * np.sinh(t)
    nodes = expit(2.0 * half)
    return nodes, step * np.pi * np.cosh(t) * expit(2.0 * half) * expit(-2.0 * half)


_NODES, _NODE_WEIGHTS = _double_exponential()


def integral_from_zero(function: Function, upper: Array) -> Array:
    """Integral of `function` over [0, upper], which may be singular at the ends (double-exponential quadrature)."""
    upper = np.asarray(upper)
    return np.asarray(upper * (function(upper[..., None] * _NODES) @ _NODE_WEIGHTS))[()]


def expectation(eta: Array, value_pos: Array, value_neg: Array) -> Array:
    """eta * value_pos + (1 - eta) * value_neg with 0 * inf = 0."""
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
        """Its slope."""

    def partial_neg_derivative(self, u: ArrayLike) -> Array:
        """Its slope."""

    def conditional_risk(self, u: ArrayLike, eta: ArrayLike) -> Array:
        """The mean of both."""


def minimisers(loss: Risk, eta: Array) -> tuple[Array, Array]:
    """Leftmost and rightmost minimiser of L(., eta): a grid on the logit scale, then a root search beside it."""
    grid = np.concatenate([[0.0], expit(np.linspace(-36.0, 36.0, 2001)), [1.0]])  # u -> 1-u maps it onto itself
    ends = np.clip(logit(grid), -740.0, 37.0)  # finite stand-ins for the logits of 0 and 1
    cost_pos, cost_neg = loss.partial_pos(grid), loss.partial_neg(grid)
    final = grid.size - 1

    def isolated(index: NDArray[np.intp], eta: Array) -> Array:
        """The minimum near a grid point: where the slope of the risk changes sign."""

        def rising(x: Array) -> Array:
            with np.errstate(invalid="ignore", over="ignore"):
                pull_pos = eta * loss.partial_pos_derivative(expit(x))
                pull_neg = (1.0 - eta) * loss.partial_neg_derivative(expit(x))
            return np.asarray(pull_pos + pull_neg > 0)

        root = expit(bisect(rising, ends[np.maximum(index - 1, 0)], ends[np.minimum(index + 1, final)]))
        found, known = loss.conditional_risk(root, eta), loss.conditional_risk(grid[index], eta)
        inside = (index > 0) & (index < final)  # at an end or a jump the grid point itself may be the minimum
        return np.where((found < known) | ((found == known) & inside), root, grid[index])

    def rim(index: NDArray[np.intp], beyond: int, eta: Array, level: Array) -> Array:
        """The end of a flat piece, between a grid point on it and the next one, in direction `beyond`, off it."""

        def on(x: Array) -> Array:
            return np.asarray(loss.conditional_risk(expit(x), eta) <= level)

        next_off = ends[np.clip(index + beyond, 0, final)]
        root = expit(bisect(on, next_off, ends[index]))
        return np.where((index == 0) | (index == final), grid[index], root)

    low, high = np.empty_like(eta), np.empty_like(eta)
    for rows in np.array_split(np.arange(eta.size), max(1, eta.size // 2048)):  # bounds the memory of the grid
        some = eta[rows]
        risk = expectation(some[:, None], cost_pos, cost_neg)
        best = risk.min(axis=1)
        level = best + 1e-13 * np.abs(best)  # flat up to rounding
        optimal = risk <= level[:, None]
        first, last = optimal.argmax(axis=1), final - optimal[:, ::-1].argmax(axis=1)
        low[rows] = high[rows] = isolated(first, some)
        if (several := first < last).any():
            each = np.arange(len(rows))
            flat_low = optimal[each, np.minimum(first + 1, final)]
            flat_high = optimal[each, np.maximum(last - 1, 0)]
            lows = np.where(flat_low, rim(first, -1, some, level), low[rows])
            highs = np.where(flat_high, rim(last, 1, some, level), isolated(last, some))
            low[rows], high[rows] = np.where(several, lows, low[rows]), np.where(several, highs, high[rows])
    return low, high
