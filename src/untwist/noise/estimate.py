"""What every estimate of label noise answers: a rate for each class, its interval, and whether noise shows at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from untwist.arguments import Array
from untwist.display import write_noise

__all__ = ["CLEAN_LIMIT", "CONFIDENCE", "NoiseEstimate", "describe_range"]

#: The confidence of all intervals of noise rates.
CONFIDENCE = 0.95
#: Labels count as clean where no rate at or above this one would fit.
CLEAN_LIMIT = 0.05


@dataclass(frozen=True)
class NoiseEstimate:
    """The share of each true class that bears the other label.

    Attributes
    ----------
    rate_neg, rate_pos : float
        The estimated share of the negatives and of the positives.
    interval_neg, interval_pos : tuple of float
        Intervals of these shares, with a confidence of 95 %.
    found : bool
        Whether there is evidence of noise.
    """

    rate_neg: float
    rate_pos: float
    interval_neg: tuple[float, float]
    interval_pos: tuple[float, float]
    found: bool

    def __str__(self) -> str:
        if self.found:
            return f"wrong labels{self._source}: {self._describe_classes()}"
        low = min(self.interval_neg[0], self.interval_pos[0])
        high = max(self.interval_neg[1], self.interval_pos[1])
        if high < CLEAN_LIMIT:
            return f"no sign of noise that is the same everywhere ({describe_range(low, high)} would fit)"
        return f"hard rows or wrong labels: {describe_range(low, high)} would fit"

    @property
    def matrix(self) -> Array:
        """The transition matrix of the rates: a row per true class, a column per label."""
        return np.array([[1.0 - self.rate_neg, self.rate_neg], [self.rate_pos, 1.0 - self.rate_pos]])

    def drop_upper_limits(self) -> Self:
        """Return this estimate without upper limits, for labels that models may have remembered.

        Returns
        -------
        NoiseEstimate
            Its intervals end at 1.
        """
        return replace(self, interval_neg=(self.interval_neg[0], 1.0), interval_pos=(self.interval_pos[0], 1.0))

    def describe(self, classes: ArrayLike) -> str:
        """Say in words how noisy the labels are, with the names of the classes.

        Parameters
        ----------
        classes : array_like
            The labels that there are, the negative one first.

        Returns
        -------
        str
            The words, without a full stop.
        """
        names = np.asarray(classes).tolist()
        if not self.found or len(names) != 2:
            return str(self)
        parts = [
            f"of what is truly {name} {rate:.1%} ({low:.1%} to {high:.1%})"
            for name, rate, (low, high) in (
                (names[0], self.rate_neg, self.interval_neg),
                (names[1], self.rate_pos, self.interval_pos),
            )
        ]
        return f"wrong labels{self._source}: {', '.join(parts)}"

    def write_html(self, classes: ArrayLike) -> str:
        """Write how noisy the labels are as a fragment of HTML, with the names of the classes.

        Parameters
        ----------
        classes : array_like
            The labels that there are, the negative one first.

        Returns
        -------
        str
            HTML.
        """
        names = np.asarray(classes).tolist()
        rates = [(self.rate_neg, *self.interval_neg), (self.rate_pos, *self.interval_pos)]
        if len(names) != 2:  # One rate for every class.
            rates = [rates[1]] * len(names)
        return write_noise(self.describe(names), names, rates, self.matrix)

    def _repr_html_(self) -> str:
        """Return `write_html` for notebooks."""
        names = ["negatives", "positives"]
        n_classes = len(self.matrix)
        return self.write_html(names if n_classes == 2 else [f"class {number}" for number in range(n_classes)])

    @property
    def _source(self) -> str:
        """Where the rates come from, in words, if not from the data."""
        return ""

    def _describe_classes(self) -> str:
        classes = (
            ("negatives", self.rate_neg, self.interval_neg),
            ("positives", self.rate_pos, self.interval_pos),
        )
        return ", ".join(f"{rate:.1%} ({low:.1%} to {high:.1%}) of the {name}" for name, rate, (low, high) in classes)


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
