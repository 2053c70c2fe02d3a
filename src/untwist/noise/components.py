"""The noise of all labels together, as components that can be weighed again and moved.

Of two classes these are pairs of rates with slopes, of several matrices with slopes and offsets: each makes a clean
posterior of the twisted one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array

if TYPE_CHECKING:
    from untwist.noise.model import NoiseModel

__all__ = ["LEAST_SIGNAL", "LEAST_WEIGHT", "PROBABILITY_FLOOR", "Component", "Components"]

#: A probability that is divided by, or whose logarithm is taken, is kept above this.
PROBABILITY_FLOOR = 1e-12
#: A component of less weight than this is left out.
LEAST_WEIGHT = 1e-6
#: A matrix keeps so much of what tells classes apart, and a pair of rates sums to no more than 1 less this.
LEAST_SIGNAL = 0.05


@dataclass(frozen=True, eq=False)
class Component:
    """One noise of all labels.

    Attributes
    ----------
    weight : float
        How likely it is.
    matrix : ndarray of shape (n_classes, n_classes)
        Its transition matrix.
    slopes, offsets : ndarray of shape (n_classes,)
        What is made of the logarithm of the posterior that the matrix alone makes. Of two classes, the slopes are those
        of the log-odds below and above 0.
    members : ndarray of int
        Which components of the estimate it stands for; none once it was moved.
    """

    weight: float
    matrix: Array
    slopes: Array
    offsets: Array
    members: NDArray[np.intp]


class Components(ABC):
    """The noise of all labels, and the twisted posteriors of items."""

    #: Whether components have offsets.
    has_offsets: bool

    @abstractmethod
    def list_components(self, most: int) -> list[Component]:
        """Return what the noise consists of; neighbours as one where there would be more than `most`."""

    @abstractmethod
    def untwist(self, component: Component) -> Array:
        """Return the logarithm of the clean posterior of each item."""

    @abstractmethod
    def combine(self, components: list[Component], weights: Array) -> NoiseModel:
        """Return the noise with these weights of components, which may have been moved."""
