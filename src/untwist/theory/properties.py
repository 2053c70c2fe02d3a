"""The properties M, D, S, E of partial losses and properness (Section 3, Lemma "proptilt"), as checks that can fail.

Each check looks at a fine grid of u (or eta) and returns a `Verdict`: truthy when the property holds there, and
otherwise with the point that breaks it. A grid cannot prove a property; it finds the counterexample if there is one
wider than a thousandth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from untwist.arguments import Array
from untwist.theory.losses import Loss

__all__ = [
    "Verdict",
    "differentiable",
    "extremes",
    "monotone",
    "proper",
    "properties",
    "strictly_proper",
    "symmetric",
    "well_formed",
]

_GRID = np.unique(np.concatenate([np.linspace(0.0, 1.0, 1001), expit(np.linspace(-20.0, 20.0, 401))]))
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Verdict:
    """Whether a property holds, and if not, where it breaks and how."""

    holds: bool
    witness: float | None = None
    reason: str = ""

    def __bool__(self) -> bool:
        return self.holds


def well_formed(loss: Loss) -> Verdict:
    """Both partial losses give one cost, not NaN, for every u in [0, 1]."""
    for name, partial in (("partial_pos", loss.partial_pos), ("partial_neg", loss.partial_neg)):
        try:
            costs = partial(_GRID)
        except (TypeError, ValueError) as error:
            return Verdict(False, None, f"{name} does not take an array: {error}")
        if np.shape(costs) != _GRID.shape:
            return Verdict(False, None, f"{name} gives shape {np.shape(costs)} for {_GRID.shape} estimates")
        if np.isnan(costs).any():
            return _unless(np.isnan(costs), f"{name} is NaN")
    return Verdict(True)


def monotone(loss: Loss) -> Verdict:
    """(M): partial_pos is non-increasing and partial_neg non-decreasing."""
    if not (verdict := well_formed(loss)):
        return verdict
    falls = _unless(_steps(loss.partial_pos(_GRID)) > 0, "partial_pos increases")
    return _unless(_steps(loss.partial_neg(_GRID)) < 0, "partial_neg decreases") if falls else falls


def differentiable(loss: Loss) -> Verdict:
    """(D): both partial losses have a derivative inside (0, 1): no kink survives when looked at more closely."""
    for name, partial in (("partial_pos", loss.partial_pos), ("partial_neg", loss.partial_neg)):
        centres = np.linspace(0.005, 0.995, 199)
        width = 0.0025
        while width > 1e-6:  # follow the sharpest bend of every cell down
            offsets = centres[:, None] + width * np.linspace(-1.0, 1.0, 9)
            values = partial(offsets)
            if not np.isfinite(values).all():
                where = float(offsets[~np.isfinite(values)][0])
                return Verdict(False, where, f"{name} is not finite inside (0, 1)")
            bends = np.abs(np.diff(values, 2, axis=1))
            sharpest = bends.argmax(axis=1)
            centres = offsets[np.arange(centres.size), sharpest + 1]
            width /= 3.0
        left, middle, right = (partial(centres + shift * width) for shift in (-1.0, 0.0, 1.0))
        before, after = (middle - left) / width, (right - middle) / width
        kinked = np.abs(after - before) > 1e-3 * (np.abs(before) + np.abs(after)) + 1e-6
        if kinked.any():
            return Verdict(False, float(centres[kinked][0]), f"{name} has a kink")
    return Verdict(True)


def symmetric(loss: Loss) -> Verdict:
    """(S): partial_pos(u) = partial_neg(1 - u)."""
    u = np.linspace(0.0, 1.0, 1025)  # a grid that 1 - u maps onto itself without rounding
    one, other = loss.partial_pos(u), loss.partial_neg(1.0 - u)
    return _unless(~np.isclose(one, other, rtol=_ROUNDING, atol=_ROUNDING), "partial_pos(u) != partial_neg(1 - u)", u)


def extremes(loss: Loss) -> Verdict:
    """(E): partial_pos(1) = partial_neg(0) = 0 and both are non-negative."""
    if loss.partial_pos(1.0) != 0:
        return Verdict(False, 1.0, "partial_pos(1) is not 0")
    if loss.partial_neg(0.0) != 0:
        return Verdict(False, 0.0, "partial_neg(0) is not 0")
    negative = (loss.partial_pos(_GRID) < 0) | (loss.partial_neg(_GRID) < 0)
    return _unless(negative, "a partial loss is negative")


def proper(loss: Loss) -> Verdict:
    """eta is a minimiser of the conditional risk, for every eta."""
    own, best = loss.conditional_risk(_GRID, _GRID), loss.bayes_risk(_GRID)
    return _unless(~np.isclose(own, best, rtol=_ROUNDING, atol=_ROUNDING), "the estimate eta is not optimal")


def strictly_proper(loss: Loss) -> Verdict:
    """eta is the only minimiser of the conditional risk, for every eta."""
    low, high = loss.tilted_set(_GRID)
    other = (np.abs(low - _GRID) > 1e-7) | (np.abs(high - _GRID) > 1e-7)
    return _unless(other, "an estimate other than eta is optimal")


def properties(loss: Loss) -> dict[str, Verdict]:
    """All checks by their letter or name.

    >>> from untwist.theory.losses import AlphaLoss
    >>> [name for name, verdict in properties(AlphaLoss(2.0)).items() if verdict]
    ['M', 'D', 'S', 'E']
    """
    return {
        "M": monotone(loss),
        "D": differentiable(loss),
        "S": symmetric(loss),
        "E": extremes(loss),
        "proper": proper(loss),
        "strictly proper": strictly_proper(loss),
    }


def _steps(values: Array) -> Array:
    """Differences along the grid, those within rounding set to zero; inf - inf is no step."""
    with np.errstate(invalid="ignore"):
        steps = np.nan_to_num(np.diff(values), nan=0.0, posinf=1.0, neginf=-1.0)
    scale = np.minimum(np.abs(values[1:]), np.abs(values[:-1]))
    return np.where(np.abs(steps) <= 1e-14 * scale, 0.0, steps)


def _unless(broken: NDArray[np.bool_], reason: str, points: Array = _GRID) -> Verdict:
    return Verdict(False, float(points[broken.argmax()]), reason) if broken.any() else Verdict(True)
