"""What a better calibration of several classes explains without any noise: the rival that noise has to beat.

A transition matrix has a parameter for each pair of classes, and a posterior that is off gains by these parameters
alone. So does matrix scaling (Guo et al., ICML 2017), which knows no noise: a new posterior by a linear map of the
logarithms of the old one. Only what noise explains beyond it is evidence of noise: in its place, or after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from untwist.arguments import Array
from untwist.noise.plausibility import OFFSET_SPREAD, POSTERIOR_FLOOR, SLOPE_SPREAD, ChosenRows

__all__ = ["Scaling", "fit_scaling"]

# The prior standard deviation of how far the logarithm of one class moves that of another: that of the ridge penalty of
# 25 with which a scaling gained about as much on clean tables as a transition matrix did.
MIXING_SPREAD = 0.2
# The most steps of the search, which is convex.
MOST_STEPS = 100


class Scaling(NamedTuple):
    """The best matrix scaling: the log-likelihood of the labels in nats, less what its prior says, and the new rows."""

    value: float
    rows: ChosenRows


def fit_scaling(rows: ChosenRows, least: float = 0.0) -> Scaling:
    """Return the matrix scaling that explains the labels best.

    Parameters
    ----------
    rows : ChosenRows
        Rows with their twisted posteriors, labels and weights.
    least : float, default 0
        How close to 0 a posterior may come: as close as one of a transition matrix, or the rival would win by that.

    Returns
    -------
    Scaling
        Its value is at least that of the posteriors as they are, but for the floor.
    """
    n_rows, n_classes = rows.twisted.shape
    logs = np.log(np.maximum(rows.twisted, least))
    logs -= logs.mean(axis=1, keepdims=True)
    at_label = np.arange(n_rows), rows.labels
    identity = np.eye(n_classes)
    precision = np.where(identity == 1.0, SLOPE_SPREAD**-2.0, MIXING_SPREAD**-2.0)

    def scale(parameters: Array) -> tuple[Array, Array, Array]:
        matrix, offsets = parameters[:-n_classes].reshape(n_classes, n_classes), parameters[-n_classes:]
        log_posterior = logs @ matrix.T + offsets
        return matrix, offsets, log_posterior - logsumexp(log_posterior, axis=1, keepdims=True)

    def find_cost(parameters: Array) -> tuple[float, Array]:
        matrix, offsets, log_posterior = scale(parameters)
        pull = -np.exp(log_posterior) * rows.weight[:, None]
        pull[at_label] += rows.weight
        moved = matrix - identity
        penalty = 0.5 * float((precision * moved**2).sum()) + 0.5 * float(offsets @ offsets) / OFFSET_SPREAD**2
        by_matrix = precision * moved - pull.T @ logs
        by_offsets = offsets / OFFSET_SPREAD**2 - pull.sum(axis=0)
        cost = penalty - float(rows.weight @ log_posterior[at_label])
        return cost, np.concatenate([by_matrix.ravel(), by_offsets])

    start = np.concatenate([identity.ravel(), np.zeros(n_classes)])
    result = minimize(find_cost, start, jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS})
    scaled = np.clip(np.exp(scale(result.x)[2]), POSTERIOR_FLOOR, 1.0)
    return Scaling(-float(result.fun), rows._replace(twisted=scaled / scaled.sum(axis=1, keepdims=True)))
