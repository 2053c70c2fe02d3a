"""Posteriors of any model, brought to what the labels say of them.

How noisy labels are is read off posteriors that mean what they say: of the rows with a posterior of 0.8 about 80 % bear
the label. Those of other models often claim too much (boosted trees that were not stopped) or too little (forests).
One slope for all classes and an offset for each put that right. They keep the order of rows, need few rows, and bend
no corner of the posteriors, which is what noise shows in; an isotonic fit does none of that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from untwist.arguments import Array
from untwist.noise.posterior import find_posterior_floor
from untwist.sums import add_up

__all__ = ["Calibration", "calibrate", "find_calibration"]

#: The prior standard deviation of the logarithm of the slope, around 0.
SLOPE_SPREAD = 0.7
#: The prior standard deviation of each class's offset, in nats, around 0.
OFFSET_SPREAD = 0.5
#: A probability below the floor counts as one of these powers of it, whichever makes the labels likeliest.
POWERS_OF_FLOOR = (1, 2, 4)
#: What is calibrated must explain so many nats more for each number that it takes; else posteriors stay as they are.
LEAST_GAIN = 1.0


@dataclass(frozen=True, eq=False)
class Calibration:
    """What takes the posteriors of a model to what the labels say of them.

    Parameters
    ----------
    floor : float
        No calibrated probability is nearer to 0 than this.
    least : float
        What a probability below it counts as.
    slope : float
        What logarithms are multiplied by: the inverse of a temperature.
    offsets : array or None
        What is added to the logarithm of each class; None where posteriors stay as they are.
    """

    floor: float
    least: float
    slope: float = 1.0
    offsets: Array | None = None

    def apply(self, posterior: Array) -> Array:
        """Return calibrated posteriors of some rows, those that were calibrated by or others.

        Parameters
        ----------
        posterior : array of shape (n_rows, n_classes)
            Posteriors of the same model.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Each row sums to 1.
        """
        best = _lift(posterior, self.least)
        if self.offsets is not None:
            best = np.exp(log_softmax(self.slope * np.log(best) + self.offsets, axis=1))
        return _lift(best, self.floor)


def find_calibration(
    posterior: Array, labels: NDArray[np.intp], weight: Array, *, are_counts: bool = False
) -> Calibration:
    """Find what brings posteriors to how often each label is borne.

    The logarithms are multiplied by one slope (the inverse of a temperature) and shifted by an offset for each class,
    whichever makes the labels likeliest, with a prior for those of a model that needs no calibration. Where that gains
    less than chance would, the posteriors stay as they are. A probability of 0 counts as what so many rows can tell, or
    as a power of that, where a model that boasts tells rows apart by how near to 0 they are.

    Parameters
    ----------
    posterior : array of shape (n_rows, n_classes)
        The probability of each label in each row, by a model that has not seen them.
    labels : array of int
        The class that each label names.
    weight : array
        How much each row counts.
    are_counts : bool
        Whether a weight of 2 stands for two rows. Otherwise weights of any scale count for as many rows as there are.

    Returns
    -------
    Calibration
        It does not depend on the order of the rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.01, 0.99, 5000)
    >>> labels = (rng.random(5000) < p).astype(np.intp)
    >>> honest = np.column_stack([1.0 - p, p])
    >>> bool(np.allclose(calibrate(honest, labels, np.ones(5000)), honest, rtol=1e-12))
    True
    >>> boasting = honest**3 / (honest**3).sum(axis=1, keepdims=True)
    >>> bool(np.abs(calibrate(boasting, labels, np.ones(5000)) - honest).max() < 0.05)
    True
    """
    n_classes = posterior.shape[1]
    # In this order sums do not depend on that of the rows.
    order = np.lexsort((weight, labels, *posterior.T))
    order = order[weight[order] > 0]
    total = add_up(weight)
    mass = weight[order] if are_counts else weight[order] * (len(order) / total)
    floor = find_posterior_floor(max(float(len(order)), total))
    plain = _lift(posterior, floor)
    best = Calibration(floor, floor)
    # Offsets that all rise by the same change nothing, so that as many numbers are chosen as there are classes.
    least_cost = (
        _find_cost(np.zeros(1 + n_classes), np.log(plain[order]), labels[order], mass)[0] - n_classes * LEAST_GAIN
    )
    for power in POWERS_OF_FLOOR:
        least = floor**power
        logs = np.log(_lift(posterior[order], least))
        found = minimize(_find_cost, np.zeros(1 + n_classes), (logs, labels[order], mass), jac=True, method="L-BFGS-B")
        if found.fun < least_cost:
            least_cost = found.fun
            best = Calibration(floor, least, float(np.exp(found.x[0])), found.x[1:])
    return best


def calibrate(posterior: Array, labels: NDArray[np.intp], weight: Array) -> Array:
    """Return posteriors that say how often each label is borne, by the calibration that these labels show.

    Parameters
    ----------
    posterior, labels, weight : arrays
        As for `find_calibration`.

    Returns
    -------
    array of shape (n_rows, n_classes)
    """
    return find_calibration(posterior, labels, weight).apply(posterior)


def _lift(posterior: Array, floor: float) -> Array:
    """Return posteriors that are no nearer to 0 than the floor, and sum to 1."""
    lifted = np.maximum(posterior, floor)
    return np.asarray(lifted / lifted.sum(axis=1, keepdims=True))


def _find_cost(parameters: Array, logs: Array, given: NDArray[np.intp], mass: Array) -> tuple[float, Array]:
    """Return what a slope, as its logarithm, and offsets cost in nats, prior included, and the gradient."""
    n_rows, n_classes = logs.shape
    rows = np.arange(n_rows)
    spread = np.append(SLOPE_SPREAD, np.full(n_classes, OFFSET_SPREAD))
    slope = np.exp(parameters[0])
    log_posterior = log_softmax(slope * logs + parameters[1:], axis=1)
    expected = mass[:, None] * np.exp(log_posterior)
    by_slope = slope * ((expected * logs).sum() - mass @ logs[rows, given])
    by_offset = expected.sum(axis=0) - np.bincount(given, mass, n_classes)
    cost = -(mass @ log_posterior[rows, given]) + 0.5 * ((parameters / spread) ** 2).sum()
    return float(cost), np.append(by_slope, by_offset) + parameters / spread**2
