"""Is a loss family twist-proper? A search that shows it (Definition "def:TwistProper", Lemma "lemFocalLoss").

For a pair (eta_clean, eta_twisted) the explorer searches the hyperparameters of a family of losses for the one whose
Bayes tilted estimate of eta_twisted comes closest to eta_clean.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from untwist.arguments import check_fraction
from untwist.theory.losses import AlphaLoss, FocalLoss, LogLoss, Loss, SuperLoss

__all__ = ["ALPHA", "FOCAL", "SUPER", "Exploration", "LossFamily", "explore"]


@dataclass(frozen=True)
class LossFamily:
    """A loss with hyperparameters.

    Parameters
    ----------
    name : str
        What to call the family.
    build : callable
        Makes a loss of the hyperparameters, which it takes by name.
    values : mapping of str to tuple of float
        For each hyperparameter the values that the search starts from, in rising order.
    """

    name: str
    build: Callable[..., Loss]
    values: Mapping[str, tuple[float, ...]] = field(hash=False)


@dataclass(frozen=True)
class Exploration:
    """The closest a family comes to eta_clean from eta_twisted, and the hyperparameters that get there.

    Attributes
    ----------
    family : str
        The name of the family.
    eta_clean, eta_twisted : float
        The posteriors of the twist to undo.
    parameters : dict of str to float
        The hyperparameters found.
    estimate : float
        The minimiser of the conditional risk at eta_twisted that is nearest to eta_clean.
    tilted_set : tuple of float
        The ends of the interval that holds all minimisers.
    """

    family: str
    eta_clean: float
    eta_twisted: float
    parameters: dict[str, float] = field(hash=False)
    estimate: float
    tilted_set: tuple[float, float]

    @property
    def distance(self) -> float:
        """How far the closest reachable estimate stays from eta_clean."""
        return abs(self.estimate - self.eta_clean)

    @property
    def single(self) -> bool:
        """Whether the tilted set is a point, as strict twist-properness asks."""
        return self.tilted_set[1] - self.tilted_set[0] < 1e-6

    def reaches(self, tolerance: float = 1e-6) -> bool:
        """Tell whether the family undoes this twist.

        Parameters
        ----------
        tolerance : float, default 1e-6
            The largest distance that counts as none.

        Returns
        -------
        bool
            Whether the distance is within the tolerance.
        """
        return self.distance <= tolerance

    def __str__(self) -> str:
        settings = ", ".join(f"{name} = {value:.4g}" for name, value in self.parameters.items())
        outcome = "reaches" if self.reaches() else f"misses by {self.distance:.2g}, closest"
        among = "" if self.single else f" (one of several in [{self.tilted_set[0]:g}, {self.tilted_set[1]:g}])"
        twist = f"{self.eta_twisted:g} -> {self.eta_clean:g}"
        return f"{self.family}: {twist} {outcome} {self.estimate:.6g}{among} at {settings}"


def _spread_both_ways(smallest: float, largest: float, count: int) -> tuple[float, ...]:
    """Return sizes in geometric progression, with both signs, and 0 between them."""
    sizes = np.geomspace(smallest, largest, count).tolist()
    return (*(-size for size in reversed(sizes)), 0.0, *sizes)


ALPHA = LossFamily("alpha-loss", AlphaLoss, {"alpha": (-math.inf, *_spread_both_ways(1e-6, 1e9, 61), math.inf)})
"""The alpha-loss with alpha in [-inf, +inf]."""

FOCAL = LossFamily("focal loss", FocalLoss, {"gamma": (0.0, *np.geomspace(1e-3, 1e2, 25).tolist())})
"""The focal loss with gamma in [0, 100]: beyond that, u**gamma is 0 to rounding for many u."""

SUPER = LossFamily(
    "Super Loss",
    lambda tau, lam: SuperLoss(LogLoss(), tau, lam),
    {"tau": _spread_both_ways(1e-2, 1e2, 9), "lam": tuple(np.geomspace(1e-5, 1e3, 17).tolist())},
)
"""The Super Loss around the log-loss, with abs(tau) up to 100 and lam from 1e-5 to 1000."""


def explore(family: LossFamily, eta_clean: float, eta_twisted: float, *, refinements: int = 16) -> Exploration:
    """Find the closest that the Bayes tilted estimate of `eta_twisted` comes to `eta_clean` within `family`.

    A grid over the family's values, then `refinements` ever finer looks along each axis around the best point so far.
    A miss is a miss within the range searched. Only global minimisers of the conditional risk count. A loss whose
    estimate is a whole interval (alpha = 0, say) is the answer only where no loss with a single estimate gets there.

    Parameters
    ----------
    family : LossFamily
        Such as `ALPHA`, `FOCAL` or `SUPER`.
    eta_clean, eta_twisted : float
        The posteriors, in [0, 1], of the twist to undo.
    refinements : int, default 16
        How often the search looks more closely.

    Returns
    -------
    Exploration
        The hyperparameters found, and how close they come.

    Examples
    --------
    >>> print(explore(ALPHA, 0.1, 0.3))
    alpha-loss: 0.3 -> 0.1 reaches 0.1 at alpha = 2.593
    >>> print(explore(FOCAL, 0.1, 0.3))
    focal loss: 0.3 -> 0.1 misses by 0.2, closest 0.3 at gamma = 0
    """
    if not isinstance(family, LossFamily):
        raise ValueError(f"family must be a LossFamily, such as ALPHA, got {family!r}")
    clean = check_fraction("eta_clean", eta_clean)
    twisted = check_fraction("eta_twisted", eta_twisted)

    def attempt(values: Iterable[float]) -> Exploration:
        parameters = dict(zip(family.values, values, strict=True))
        loss = family.build(**parameters)
        low, high = (float(end) for end in loss.tilted_set(twisted))
        estimate = min(low, high, key=lambda end: abs(end - clean))
        if low < clean < high and loss.conditional_risk(clean, twisted) <= loss.bayes_risk(twisted) * (1 + 1e-12):
            # Between its ends the set may have gaps, and eta_clean counts only as a minimiser itself.
            estimate = clean
        return Exploration(family.name, clean, twisted, parameters, estimate, (low, high))

    grid = [attempt(values) for values in itertools.product(*family.values.values())]
    points = _refine([one for one in grid if one.single], family, attempt, refinements)
    if points is not None and points.reaches():
        return points
    sets = _refine([one for one in grid if not one.single], family, attempt, refinements)
    return min((one for one in (points, sets) if one is not None), key=lambda one: one.distance)


def _refine(
    found: list[Exploration], family: LossFamily, attempt: Callable[[Iterable[float]], Exploration], refinements: int
) -> Exploration | None:
    """Find the closest of `found`, all points or all sets, after ever finer looks along each axis around it."""
    if not found:
        return None
    best = min(found, key=lambda one: one.distance)
    axes = list(family.values.values())
    for _ in range(refinements):
        for position, value in enumerate(best.parameters.values()):
            if best.distance == 0:
                return best
            axes[position] = _zoom_in(value, axes[position])
            here = list(best.parameters.values())
            nearby = (attempt([*here[:position], other, *here[position + 1 :]]) for other in axes[position])
            best = min([best, *(one for one in nearby if one.single == best.single)], key=lambda one: one.distance)
    return best


def _zoom_in(value: float, axis: tuple[float, ...]) -> tuple[float, ...]:
    """Return seven values between the finite neighbours of `value` on `axis`, itself among them."""
    index = axis.index(value)
    low = axis[max(index - 1, 0)]
    high = axis[min(index + 1, len(axis) - 1)]
    if math.isinf(low) or math.isinf(high):
        return (value,)
    # Both halves leave `value` out, which is added as it is, to the bit.
    below = np.linspace(low, value, 4)[:-1]
    above = np.linspace(value, high, 4)[1:]
    return tuple(sorted({*below.tolist(), value, *above.tolist()}))
