"""What every estimate of label noise answers: a share for each class, its interval, and whether noise shows at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from untwist.arguments import Array
from untwist.display import write_noise

__all__ = ["CLEAN_LIMIT", "CONFIDENCE", "NoiseEstimate", "RateWeights", "RatesEstimate", "describe_range"]

#: The confidence of all intervals of noise rates.
CONFIDENCE = 0.95
#: Labels count as clean where no rate at or above this one would fit.
CLEAN_LIMIT = 0.05


@dataclass(frozen=True, eq=False)
class RateWeights:
    """How likely each rate of each class is, if there is noise.

    Attributes
    ----------
    rates, weights : tuple of ndarray
        For each class the rates, rising, and their weights, which sum to 1.
    chance_of_noise : float
        The probability that there is noise.
    """

    rates: tuple[Array, ...]
    weights: tuple[Array, ...]
    chance_of_noise: float


@dataclass(frozen=True, eq=False, repr=False)
class NoiseEstimate(ABC):
    """How noisy labels are: the share of each true class that bears another label.

    Attributes
    ----------
    found : bool
        Whether there is evidence of noise.
    """

    found: bool

    @property
    def is_given(self) -> bool:
        """Whether the noise was given, not estimated."""
        return False

    @property
    @abstractmethod
    def matrix(self) -> Array:
        """The transition matrix: a row per true class, a column per label."""

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.matrix)

    @abstractmethod
    def list_class_shares(self) -> list[tuple[float, float, float]]:
        """Return the share of each true class that bears another label, with the ends of its 95 % interval."""

    @abstractmethod
    def drop_upper_limits(self) -> Self:
        """Return this estimate with intervals that end at 1, for labels that models may have remembered."""

    @abstractmethod
    def describe(self, classes: ArrayLike) -> str:
        """Say in words how noisy the labels are, without a full stop.

        Parameters
        ----------
        classes : array_like of shape (n_classes,)
            The names of the classes; of two the negative one comes first.

        Returns
        -------
        str
            The words.
        """

    def write_html(self, classes: ArrayLike) -> str:
        """Write how noisy the labels are as a fragment of HTML.

        Parameters
        ----------
        classes : array_like of shape (n_classes,)
            The names of the classes; of two the negative one comes first.

        Returns
        -------
        str
            HTML.
        """
        names = np.asarray(classes).tolist()
        return write_noise(self.describe(names), names, self.list_class_shares(), self.matrix)

    def weigh_rates(self) -> RateWeights | None:
        """Return how likely each rate of each class is; None where only intervals are known."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def __str__(self) -> str:
        return self.describe(self._name_classes())

    def _repr_html_(self) -> str:
        """Return `write_html` for notebooks."""
        return self.write_html(self._name_classes())

    def _name_classes(self) -> list[str]:
        return [f"class {number}" for number in range(self.n_classes)]


@dataclass(frozen=True, repr=False)
class RatesEstimate(NoiseEstimate):
    """The share of each of two true classes that bears the other label.

    Attributes
    ----------
    rate_neg, rate_pos : float
        The estimated share of the negatives and of the positives.
    interval_neg, interval_pos : tuple of float
        Intervals of these shares, with a confidence of 95 %.
    """

    rate_neg: float
    rate_pos: float
    interval_neg: tuple[float, float]
    interval_pos: tuple[float, float]

    def __str__(self) -> str:
        if not self.found:
            return self.describe(self._name_classes())
        rates = zip(("negatives", "positives"), self.list_class_shares(), strict=True)
        parts = [f"{rate:.1%} ({low:.1%} to {high:.1%}) of the {name}" for name, (rate, low, high) in rates]
        return f"wrong labels{self._source}: {', '.join(parts)}"

    @property
    def matrix(self) -> Array:
        """The transition matrix of the rates: a row per true class, a column per label."""
        return np.array([[1.0 - self.rate_neg, self.rate_neg], [self.rate_pos, 1.0 - self.rate_pos]])

    def list_class_shares(self) -> list[tuple[float, float, float]]:
        """Return the rates of the negatives and of the positives, with the ends of their 95 % intervals."""
        return [(self.rate_neg, *self.interval_neg), (self.rate_pos, *self.interval_pos)]

    def drop_upper_limits(self) -> Self:
        """Return this estimate with intervals that end at 1, for labels that models may have remembered."""
        return replace(self, interval_neg=(self.interval_neg[0], 1.0), interval_pos=(self.interval_pos[0], 1.0))

    def describe(self, classes: ArrayLike) -> str:
        """Say in words how noisy the labels are, or which rates would fit.

        Parameters
        ----------
        classes : array_like of shape (2,)
            The names of the classes, the negative one first.

        Returns
        -------
        str
            The words, without a full stop.
        """
        if self.found:
            rates = zip(np.asarray(classes).tolist(), self.list_class_shares(), strict=True)
            parts = [
                f"of what is truly {name} {rate:.1%} ({low:.1%} to {high:.1%})" for name, (rate, low, high) in rates
            ]
            return f"wrong labels{self._source}: {', '.join(parts)}"
        low = min(self.interval_neg[0], self.interval_pos[0])
        high = max(self.interval_neg[1], self.interval_pos[1])
        if high < CLEAN_LIMIT:
            return f"no sign of noise that is the same everywhere ({describe_range(low, high)} would fit)"
        return f"hard rows or wrong labels: {describe_range(low, high)} would fit"

    @property
    def _source(self) -> str:
        """Where the rates come from, in words, if not from the data."""
        return " (as given)" if self.is_given else ""

    def _name_classes(self) -> list[str]:
        return ["negatives", "positives"]


def describe_range(low: float, high: float) -> str:
    """Say which rates would fit where there is no evidence of noise.

    Parameters
    ----------
    low, high : float
        The ends of the interval.

    Returns
    -------
    str
        Words that never exclude every rate above 0: no table is large enough for that.
    """
    return f"rates from {low:.0%} to {high:.0%}" if high >= 0.005 else "rates below 1%"
