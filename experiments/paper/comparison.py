"""What the runs of a cell say: a mean and its interval, beside a published number, beside another cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t, ttest_ind

from experiments.paper.declarations import Published

__all__ = ["PUBLISHED_RUNS", "Comparison", "Summary", "compare_with_published", "summarise", "welch"]

#: The level of all intervals.
LEVEL = 0.95
#: Runs behind a published number.
PUBLISHED_RUNS = 10


class Summary(NamedTuple):
    """Mean, population sd (the paper's ±) and half the width of the 95 % t interval of the mean."""

    mean: float
    sd: float
    half: float
    runs: int


def summarise(values: ArrayLike) -> Summary:
    """Sum up the values of all runs; the interval of one run is unbounded.

    >>> summarise([0.9, 1.0, 0.95])
    Summary(mean=0.9..., sd=0.0408..., half=0.124..., runs=3)
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.size
    sd = float(values.std()) if n else math.nan
    half = float(t.ppf(0.5 + LEVEL / 2, n - 1)) * sd / math.sqrt(n - 1) if n > 1 else math.inf
    return Summary(float(values.mean()) if n else math.nan, sd, half, n)


def welch(one: ArrayLike, other: ArrayLike) -> float:
    """Two-sided p of Welch's t-test, which knows nothing of pairs: the paper's test."""
    one, other = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if np.ptp(one) == np.ptp(other) == 0:
        return float(one[0] == other[0])  # There is no spread to test against.
    return float(ttest_ind(one, other, equal_var=False).pvalue)


@dataclass(frozen=True)
class Comparison:
    """Our number beside the published one.

    `tolerance` is the sampling error of both, at 95 %, and the rounding of the published number; `words` are "agrees",
    "better" or "differs", or "one run", which says nothing.
    """

    difference: float
    tolerance: float
    words: str


def compare_with_published(ours: Summary, published: Published, runs: int = PUBLISHED_RUNS) -> Comparison:
    """Compare our runs with a published number.

    They agree if the difference is within the sampling error of both (Welch's t, 95 %) and the rounding in print.

    Of cells that truly agree, one in twenty is called otherwise.

    >>> compare_with_published(Summary(0.95, 0.02, 0.015, 10), Published(0.93, 0.02)).words
    'agrees'
    >>> compare_with_published(Summary(0.95, 0.01, 0.008, 10), Published(0.93, 0.01)).words
    'better'
    """
    difference = ours.mean - published.mean
    error, theirs = (s * s / max(n - 1, 1) for s, n in ((ours.sd, ours.runs), (published.sd, runs)))
    spread = error + theirs
    tolerance = 0.5 * 10.0**-published.digits
    if ours.runs < 2:
        return Comparison(difference, math.inf, "one run")
    if spread > 0:
        freedom = spread**2 / (error**2 / (ours.runs - 1) + theirs**2 / (runs - 1))
        tolerance += float(t.ppf(0.5 + LEVEL / 2, freedom)) * math.sqrt(spread)
    close = abs(difference) <= tolerance + 1e-12
    return Comparison(difference, tolerance, "agrees" if close else "better" if difference > 0 else "differs")
