"""The properties M, D, S, E of partial losses and properness (Section 3, Lemma "proptilt"), as checks that can fail.

Each check takes a loss, looks at a fine grid of u (or eta) and returns a `PropertyCheck`: true when the property holds
there, and otherwise with the point that breaks it. A grid cannot prove a property; it finds the counterexample if there
is one wider than a thousandth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from untwist.arguments import Array
from untwist.theory.losses import Loss

__all__ = [
    "PropertyCheck",
    "differentiable",
    "extremes",
    "monotone",
    "proper",
    "properties",
    "strictly_proper",
    "symmetric",
    "well_formed",
]

# Estimates to look at: evenly spaced, and denser toward 0 and 1.
_GRID = np.unique(np.concatenate([np.linspace(0.0, 1.0, 1001), expit(np.linspace(-20.0, 20.0, 401))]))
# Costs that differ by less, relatively or absolutely, are equal.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PropertyCheck:
    """Whether a property holds, and if not, where it breaks and how. True or false as it holds or not.

    Attributes
    ----------
    holds : bool
        Whether the property holds everywhere on the grid.
    witness : float or None
        A point that breaks it, if there is one.
    reason : str
        How it breaks there.

    Examples
    --------
    >>> from untwist.theory.losses import SuperLoss, LogLoss
    >>> extremes(SuperLoss(LogLoss(), tau=0.5, lam=1.0))
    PropertyCheck(holds=False, witness=1.0, reason='partial_pos(1) is not 0')
    """

    holds: bool
    witness: float | None = None
    reason: str = ""

    def __bool__(self) -> bool:
        return self.holds


def well_formed(loss: Loss) -> PropertyCheck:
    """Check that both partial losses give one cost, not NaN, for every u in [0, 1].

    Parameters
    ----------
    loss : Loss
        The loss to check.

    Returns
    -------
    PropertyCheck
        Without a witness where a partial loss takes no array at all.
    """
    for name, partial in (("partial_pos", loss.partial_pos), ("partial_neg", loss.partial_neg)):
        try:
            costs = partial(_GRID)
        except (TypeError, ValueError) as error:
            return PropertyCheck(False, None, f"{name} does not take an array: {error}")
        if np.shape(costs) != _GRID.shape:
            return PropertyCheck(False, None, f"{name} gives shape {np.shape(costs)} for {_GRID.shape} estimates")
        if np.isnan(costs).any():
            return _check_nowhere(np.isnan(costs), f"{name} is NaN")
    return PropertyCheck(True)


def monotone(loss: Loss) -> PropertyCheck:
    """Check (M): partial_pos is non-increasing and partial_neg non-decreasing.

    Parameters
    ----------
    loss : Loss
        The loss to check.

    Returns
    -------
    PropertyCheck
        The witness is where a partial loss moves the wrong way.
    """
    if not (formed := well_formed(loss)):
        return formed
    falls = _check_nowhere(_steps(loss.partial_pos(_GRID)) > 0, "partial_pos increases")
    return _check_nowhere(_steps(loss.partial_neg(_GRID)) < 0, "partial_neg decreases") if falls else falls


def differentiable(loss: Loss) -> PropertyCheck:
    """Check (D): both partial losses have a derivative inside (0, 1): no kink survives when looked at more closely.

    Parameters
    ----------
    loss : Loss
        The loss to check.

    Returns
    -------
    PropertyCheck
        The witness is a kink, or where a partial loss is not finite.
    """
    for name, partial in (("partial_pos", loss.partial_pos), ("partial_neg", loss.partial_neg)):
        centres = np.linspace(0.005, 0.995, 199)
        width = 0.0025
        # Each cell is followed down to its sharpest bend.
        while width > 1e-6:
            offsets = centres[:, None] + width * np.linspace(-1.0, 1.0, 9)
            values = partial(offsets)
            if not np.isfinite(values).all():
                where = float(offsets[~np.isfinite(values)][0])
                return PropertyCheck(False, where, f"{name} is not finite inside (0, 1)")
            bends = np.abs(np.diff(values, 2, axis=1))
            sharpest = bends.argmax(axis=1)
            centres = offsets[np.arange(centres.size), sharpest + 1]
            width /= 3.0
        left, middle, right = (partial(centres + shift * width) for shift in (-1.0, 0.0, 1.0))
        before, after = (middle - left) / width, (right - middle) / width
        kinked = np.abs(after - before) > 1e-3 * (np.abs(before) + np.abs(after)) + 1e-6
        if kinked.any():
            return PropertyCheck(False, float(centres[kinked][0]), f"{name} has a kink")
    return PropertyCheck(True)


def symmetric(loss: Loss) -> PropertyCheck:
    """Check (S): partial_pos(u) = partial_neg(1 - u).

    Parameters
    ----------
    loss : Loss
        The loss to check.

    Returns
    -------
    PropertyCheck
        The witness is where the two differ.
    """
    # The map from u to 1 - u takes this grid onto itself without rounding.
    u = np.linspace(0.0, 1.0, 1025)
    equal = np.isclose(loss.partial_pos(u), loss.partial_neg(1.0 - u), rtol=_ROUNDING, atol=_ROUNDING)
    return _check_nowhere(~equal, "partial_pos(u) != partial_neg(1 - u)", u)


def extremes(loss: Loss) -> PropertyCheck:
    """Check (E): partial_pos(1) = partial_neg(0) = 0 and both are non-negative.

    Parameters
    ----------
    loss : Loss
        The loss to check.

    Returns
    -------
    PropertyCheck
        The witness is an end with a cost, or where a partial loss is negative.
    """
    if loss.partial_pos(1.0) != 0:
        return PropertyCheck(False, 1.0, "partial_pos(1) is not 0")
    if loss.partial_neg(0.0) != 0:
        return PropertyCheck(False, 0.0, "partial_neg(0) is not 0")
    negative = (loss.partial_pos(_GRID) < 0) | (loss.partial_neg(_GRID) < 0)
    return _check_nowhere(negative, "a partial loss is negative")


def proper(loss: Loss) -> PropertyCheck:
    """Check that eta is a minimiser of the conditional risk, for every eta.

    Parameters
    ----------
    loss : Loss
        The loss to check.

    Returns
    -------
    PropertyCheck
        The witness is an eta that another estimate beats.
    """
    risk_of_eta = loss.conditional_risk(_GRID, _GRID)
    optimal = np.isclose(risk_of_eta, loss.bayes_risk(_GRID), rtol=_ROUNDING, atol=_ROUNDING)
    return _check_nowhere(~optimal, "the estimate eta is not optimal")


def strictly_proper(loss: Loss) -> PropertyCheck:
    """Check that eta is the only minimiser of the conditional risk, for every eta.

    Parameters
    ----------
    loss : Loss
        The loss to check.

    Returns
    -------
    PropertyCheck
        The witness is an eta with another minimiser.
    """
    low, high = loss.tilted_set(_GRID)
    other = (np.abs(low - _GRID) > 1e-7) | (np.abs(high - _GRID) > 1e-7)
    return _check_nowhere(other, "an estimate other than eta is optimal")


def properties(loss: Loss) -> dict[str, PropertyCheck]:
    """Return all checks by their letter or name.

    Parameters
    ----------
    loss : Loss
        The loss to check.

    Returns
    -------
    dict of str to PropertyCheck
        The keys are "M", "D", "S", "E", "proper" and "strictly proper".

    Examples
    --------
    >>> from untwist.theory.losses import AlphaLoss
    >>> [name for name, check in properties(AlphaLoss(2.0)).items() if check]
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
    """Return differences along the grid, those within rounding set to zero; inf - inf is no step."""
    with np.errstate(invalid="ignore"):
        steps = np.nan_to_num(np.diff(values), nan=0.0, posinf=1.0, neginf=-1.0)
    scale = np.minimum(np.abs(values[1:]), np.abs(values[:-1]))
    return np.where(np.abs(steps) <= 1e-14 * scale, 0.0, steps)


def _check_nowhere(broken: NDArray[np.bool_], reason: str, points: Array = _GRID) -> PropertyCheck:
    """Return a check that holds if `broken` is true nowhere; otherwise the first point that is broken witnesses it."""
    return PropertyCheck(False, float(points[broken.argmax()]), reason) if broken.any() else PropertyCheck(True)
