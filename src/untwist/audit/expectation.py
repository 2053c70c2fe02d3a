"""What labels are expected to be: clean posteriors and transition matrices, calibrated for some rows.

Slices and hidden sources are told from rows that are only of some class more often than the features say, or harder: an
offset to the log-odds of each class and a slope explain these, and wrong labels are what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array

__all__ = [
    "LEAST_POSTERIOR",
    "OFFSET_SPREAD",
    "SLOPE_SPREAD",
    "CalibratedExpectation",
    "Expectation",
    "calibrate",
    "find_prior",
]

#: The standard deviation of the offset that some rows may have to each class, in log-odds, without being noisy: classes
#: may be far more or less frequent there than the features say.
OFFSET_SPREAD = 3.0

#: The standard deviation of the slope that some rows may have, around 1, without being noisy: they may be a little
#: harder or easier. A larger one would take noise for hardness.
SLOPE_SPREAD = 0.2

#: No label is taken to be less likely than this.
LEAST_POSTERIOR = 1e-6

#: Steps of Fisher's scoring, and how often one is halved, at most.
MOST_STEPS = 20
MOST_HALVINGS = 12

#: Fisher's scoring ends where a step gains fewer nats than this.
LEAST_STEP = 1e-6


@dataclass(frozen=True, eq=False)
class Expectation:
    """What labels are expected to be: the clean posterior of each row, and what becomes of it.

    Parameters
    ----------
    clean : array of shape (n_rows, n_classes)
        The clean posterior.
    matrices : array of shape (n_matrices, n_classes, n_classes)
        Transition matrices: a row per true class, a column per label.
    matrix_of_row : array of int
        Which of them the label of each row follows.
    """

    clean: Array
    matrices: Array
    matrix_of_row: NDArray[np.intp]

    @classmethod
    def under_one_matrix(cls, clean: Array, matrix: Array) -> Expectation:
        """Return the expectation of labels that all follow the same matrix."""
        return cls(clean, matrix[None], np.zeros(len(clean), dtype=np.intp))

    def take(self, rows: NDArray[np.intp]) -> Expectation:
        """Return the same of some rows, in their order."""
        return replace(self, clean=self.clean[rows], matrix_of_row=self.matrix_of_row[rows])

    def twist(self, values: Array) -> Array:
        """Return what becomes of values for each true class: one for each label."""
        if len(self.matrices) == 1:
            return np.asarray(np.einsum("nj,jk->nk", values, self.matrices[0]))
        return np.asarray(np.einsum("nj,njk->nk", values, self.matrices[self.matrix_of_row]))

    @cached_property
    def posterior(self) -> Array:
        """How likely each label is, and none less than `LEAST_POSTERIOR`."""
        return np.maximum(self.twist(self.clean), LEAST_POSTERIOR)

    @cached_property
    def logs(self) -> Array:
        """The logarithms of the clean posterior."""
        return np.log(np.maximum(self.clean, LEAST_POSTERIOR))

    def change(self, parameters: Array) -> Expectation:
        """Return the expectation with the logarithms of the clean posterior times a slope, the last, plus offsets."""
        exponents = parameters[-1] * self.logs + parameters[:-1]
        powers = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        return replace(self, clean=powers / powers.sum(axis=1, keepdims=True))

    def list_directions(self, logs: Array) -> Iterator[Array]:
        """Yield the derivatives of the labels' log-likelihood by the offset of each class, then by the slope."""
        for index in range(self.clean.shape[1]):
            offset = (np.arange(self.clean.shape[1]) == index) - self.clean[:, [index]]
            yield self.twist(self.clean * offset) / self.posterior
        slope = logs - (self.clean * logs).sum(axis=1, keepdims=True)
        yield self.twist(self.clean * slope) / self.posterior

    def find_likelihood(self, labels: NDArray[np.intp], weight: Array) -> float:
        """Return the log-likelihood of labels."""
        return float(weight @ np.log(self.posterior[np.arange(len(labels)), labels]))


def find_prior(n_classes: int) -> tuple[Array, Array]:
    """Return the means of the offset of each class and of the slope, and the inverse of their variances."""
    precision = np.append(np.full(n_classes, OFFSET_SPREAD**-2.0), SLOPE_SPREAD**-2.0)
    return np.append(np.zeros(n_classes), 1.0), precision


def _solve(information: Array, gradient: Array) -> Array:
    """Return the step of Fisher's scoring."""
    try:
        return np.asarray(np.linalg.solve(information, gradient))
    except np.linalg.LinAlgError:
        # The prior is lost to rounding beside weights of 1e14, and any number may be added to all offsets: the shortest
        # step adds none.
        return np.asarray(np.linalg.lstsq(information, gradient, rcond=None)[0])


class CalibratedExpectation(NamedTuple):
    """An expectation that fits labels, their log-likelihood under it, and the offsets and the slope that made it fit.

    The log-density of offsets and slope is part of the likelihood, but for a constant.
    """

    expected: Expectation
    explained: float
    parameters: Array


def calibrate(
    expected: Expectation, labels: NDArray[np.intp], weight: Array, *, fits_slope: bool = True
) -> CalibratedExpectation:
    """Fit an offset for each class and a slope of the clean posterior to labels, by Fisher's scoring.

    Offsets and slope are normal variables of the spreads `OFFSET_SPREAD` and `SLOPE_SPREAD`.

    Parameters
    ----------
    expected : Expectation
        What labels are expected to be.
    labels : array of int
        The index of each row's label.
    weight : array
        How much each row counts.
    fits_slope : bool
        Whether the slope is fitted, or stays 1.

    Returns
    -------
    CalibratedExpectation
    """
    start, precision = find_prior(expected.clean.shape[1])
    # Sums of rows in this order do not depend on the order that they were given in.
    order = np.lexsort((weight, labels, *expected.posterior.T))
    order = order[weight[order] > 0]
    here, labels, weight = expected.take(order), labels[order], weight[order]
    at_label = np.arange(len(labels)), labels
    parameters, fitted = start, here
    explained = here.find_likelihood(labels, weight)
    for _ in range(MOST_STEPS):
        directions = np.stack(list(fitted.list_directions(here.logs)))
        gradient = (weight * directions[:, *at_label]).sum(axis=1) - precision * (parameters - start)
        information = np.einsum("ank,bnk,nk->ab", directions, directions, weight[:, None] * fitted.posterior)
        information += np.diag(precision)
        if not fits_slope:
            gradient[-1] = information[-1, :-1] = information[:-1, -1] = 0.0
        step = _solve(information, gradient)
        before = explained
        for _ in range(MOST_HALVINGS):
            moved = here.change(parameters + step)
            explained = moved.find_likelihood(labels, weight)
            explained -= 0.5 * float(precision @ (parameters + step - start) ** 2)
            if explained >= before:
                break
            step = step / 2.0
        else:
            return CalibratedExpectation(expected.change(parameters), before, parameters)
        parameters, fitted = parameters + step, moved
        if explained - before < LEAST_STEP:
            break
    return CalibratedExpectation(expected.change(parameters), explained, parameters)
