"""Twisters: agents that corrupt a sample. A twister turns (X, y) into twisted copies and says what it changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array, fraction
from untwist.twists import SymmetricNoise

__all__ = ["ClassNoise"]


@dataclass(frozen=True)
class ClassNoise:
    """Flips exactly ceil(rate * n) labels, drawn without replacement: the class noise of the paper's experiments.

    >>> twister = ClassNoise(0.3)
    >>> X, y, flipped = twister.twist(np.zeros((5, 1)), [0, 0, 1, 1, 1], np.random.default_rng(0))
    >>> y, flipped
    (array([0, 0, 1, 0, 0]), array([3, 4]))
    """

    rate: float

    def __post_init__(self) -> None:
        fraction("rate", self.rate)

    def twist(self, X: Any, y: Any, rng: np.random.Generator | int | None) -> tuple[Any, Any, NDArray[np.intp]]:
        """X as it is, a copy of y (two classes) with labels flipped, and the indices of the flipped rows, in order."""
        labels = np.asarray(y)
        if X is not None and len(X) != labels.size:
            raise ValueError(f"X and y must have as many rows, got {len(X)} and {labels.size}")
        classes = np.unique(labels[labels == labels])  # NaN differs from itself
        if classes.size != 2 or (labels != labels).any():
            raise ValueError(f"y must have two classes to flip between and none missing, got {classes[:5]}")
        count = math.ceil(round(self.rate * labels.size, 9))  # .3 * 10 is 3, not the 4 that rounding would make of it
        flipped = np.sort(np.random.default_rng(rng).choice(labels.size, size=count, replace=False))
        twisted: Any = y.copy() if hasattr(y, "iloc") else labels.copy()  # a pandas Series stays one
        entries = twisted.iloc if hasattr(y, "iloc") else twisted
        entries[flipped] = np.where(labels[flipped] == classes[0], classes[1], classes[0])
        return X, twisted, flipped

    def posterior(self, eta_clean: ArrayLike) -> Array:
        """The twisted posterior: symmetric noise of this rate."""
        return SymmetricNoise(self.rate)(eta_clean)
