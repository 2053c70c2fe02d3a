"""The few numerical methods the theory needs when there is no closed form: slope, root and integral, vectorised."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit

from untwist.arguments import Array

Function = Callable[[Array], Array]

_STEP = 0.01
_SHIFTS = _STEP * np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
_WEIGHTS = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / (60.0 * _STEP)


def slope(function: Function, u: Array) -> Array:
    """Derivative of `function` on [0, 1]: six points on the logit scale, where the interval has no ends.

    To about 1e-9 where function is smooth; towards u = 1 rounding of u takes over (1e-7 at 1 - 1e-8).
    """
    inside = np.clip(u, 1e-300, 1.0 - 1e-12)  # close to 1, float64 has no room for the six points
    with np.errstate(invalid="ignore", over="ignore"):
        along_logit = function(expit(logit(inside)[..., None] + _SHIFTS)) @ _WEIGHTS
        return np.asarray(along_logit / (inside * (1.0 - inside)))[()]


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
