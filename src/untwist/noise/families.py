"""Families of transition matrices that a search can climb in: one that is known, those of one rate, and any.

A family says which matrix its parameters stand for, what that costs, and how a gradient by the matrix becomes one by
the parameters.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from untwist.arguments import Array

__all__ = ["Family", "FreeMatrices", "KnownMatrix", "TiedMatrices", "make_even_matrix"]

# ---- what a matrix of any shape costs ----

# An entry that differs from the common one by much more than this is an exception, and dear.
ENTRY_SPREAD = 0.01
# An entry d times that far from the common one costs so many times ln(1 + d^2).
ENTRY_PRICE = 0.4

# ---- how far parameters may go ----

# The highest rate of noise that is the same in every class.
HIGHEST_RATE = 0.7
# The log-odds of a rate divided by the highest one stay within these, which hardly exclude any rate.
RATE_LOG_ODDS = (-8.0, 6.0)
# The logarithm of an entry divided by its row's diagonal stays within these.
LEAST_LOG_ODDS = -12.0
LARGEST_LOG_ODDS = 1.0
# The logarithm of the common entry is at most this, and the search begins with a common entry of at least this.
LARGEST_LOG_COMMON = -1.0
LEAST_START_COMMON = 1e-5
# No entry of a matrix that the search begins with is below this.
LEAST_START_ENTRY = 3e-4


class Family(Protocol):
    """Matrices that a few parameters describe."""

    bounds: list[tuple[float, float]]

    def make(self, parameters: Array, /) -> Array:
        """Return the matrix of the parameters."""

    def price(self, parameters: Array, matrix: Array, /) -> tuple[float, Array, Array]:
        """Return what the matrix costs, in nats, and the gradients by the matrix and by the parameters alone."""

    def pull_back(self, parameters: Array, matrix: Array, by_matrix: Array, /) -> Array:
        """Return the gradient by the parameters that a gradient by the matrix amounts to."""

    def find_common(self, parameters: Array, /) -> float:
        """Return the entry that classes have in common."""


class KnownMatrix:
    """One matrix."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.bounds: list[tuple[float, float]] = []

    def make(self, _parameters: Array) -> Array:
        """Return the matrix of the parameters."""
        return self.matrix

    def price(self, parameters: Array, matrix: Array) -> tuple[float, Array, Array]:
        """Return what the matrix costs, and the gradients by the matrix and by the parameters alone."""
        return 0.0, np.zeros_like(matrix), parameters

    def pull_back(self, parameters: Array, _matrix: Array, _by_matrix: Array) -> Array:
        """Return the gradient by the parameters."""
        return parameters

    def find_common(self, _parameters: Array) -> float:
        """Return the entry that classes have in common."""
        return 0.0


class TiedMatrices:
    """Matrices with one rate, whose wrong labels go the ways of `directions`; a class that goes to itself has none."""

    def __init__(self, directions: Array) -> None:
        self.n_classes = len(directions)
        self.slope = directions - np.eye(self.n_classes)
        self.bounds = [RATE_LOG_ODDS]

    def make(self, parameters: Array) -> Array:
        """Return the matrix of the parameters."""
        return np.asarray(np.eye(self.n_classes) + HIGHEST_RATE * expit(parameters[0]) * self.slope)

    def price(self, _parameters: Array, matrix: Array) -> tuple[float, Array, Array]:
        """Return what the matrix costs, and the gradients by the matrix and by the parameters alone."""
        return 0.0, np.zeros_like(matrix), np.zeros(1)

    def pull_back(self, parameters: Array, _matrix: Array, by_matrix: Array) -> Array:
        """Return the gradient by the parameters."""
        part = expit(parameters[0])
        return np.array([(by_matrix * self.slope).sum() * HIGHEST_RATE * part * (1.0 - part)])

    def find_common(self, parameters: Array) -> float:
        """Return the entry that classes have in common."""
        return HIGHEST_RATE * float(expit(parameters[0])) / (self.n_classes - 1)


class FreeMatrices:
    """Any matrices whose entries off the diagonal are 0 but for some pairs of classes.

    Those are dear that have many entries unlike a common one. The parameters are ln (T[j, k] / T[j, j]) of these pairs
    and the logarithm of the common entry.
    """

    def __init__(self, pairs: NDArray[np.bool_]) -> None:
        self.pairs = pairs
        n_entries = int(np.count_nonzero(pairs))
        self.bounds = [(LEAST_LOG_ODDS, LARGEST_LOG_ODDS)] * n_entries + [(LEAST_LOG_ODDS, LARGEST_LOG_COMMON)]

    def start(self, matrix: Array, common: float) -> Array:
        """Return the parameters of about this matrix and this common entry."""
        odds = np.maximum(matrix, LEAST_START_ENTRY) / np.diag(matrix)[:, None]
        return np.append(np.log(odds[self.pairs]), np.log(max(common, LEAST_START_COMMON)))

    def make(self, parameters: Array) -> Array:
        """Return the matrix of the parameters."""
        odds = np.eye(len(self.pairs))
        odds[self.pairs] = np.exp(parameters[:-1])
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def price(self, parameters: Array, matrix: Array) -> tuple[float, Array, Array]:
        """Return what the matrix costs, and the gradients by the matrix and by the parameters alone."""
        common = np.exp(parameters[-1])
        distance = np.where(self.pairs, (matrix - common) / ENTRY_SPREAD, 0.0)
        by_matrix = 2.0 * ENTRY_PRICE * distance / (1.0 + distance**2) / ENTRY_SPREAD
        by_parameters = np.zeros_like(parameters)
        by_parameters[-1] = -by_matrix.sum() * common
        return float(ENTRY_PRICE * np.log1p(distance**2).sum()), by_matrix, by_parameters

    def pull_back(self, _parameters: Array, matrix: Array, by_matrix: Array) -> Array:
        """Return the gradient by the parameters."""
        by_log_odds = matrix * (by_matrix - (by_matrix * matrix).sum(axis=1, keepdims=True))
        return np.append(by_log_odds[self.pairs], 0.0)

    def find_common(self, parameters: Array) -> float:
        """Return the entry that classes have in common."""
        return float(np.exp(parameters[-1]))


def make_even_matrix(n_classes: int, rate: float) -> Array:
    """Return the matrix of a rate that is the same in every class, every other label as likely.

    Parameters
    ----------
    n_classes : int
        The number of classes.
    rate : float
        The share of each class that bears another label.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        A row per true class, a column per label.
    """
    matrix = np.full((n_classes, n_classes), rate / (n_classes - 1))
    np.fill_diagonal(matrix, 1.0 - rate)
    return matrix
