"""What the arena records: a tidy row for each fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from untwist.arguments import Array

__all__ = ["BINS", "ArenaJob", "ArenaKey", "ArenaRow", "count_reliability"]

#: Bins of the predicted probabilities in which reliability is counted.
BINS = 10


class ArenaKey(NamedTuple):
    """What was run in the arena."""

    data: str
    twist: str
    seed: int
    max_rows: int
    method: str


class ArenaJob(NamedTuple):
    """What one process does at a time: methods that share fits, on one split."""

    data: str
    twist: str
    seed: int
    max_rows: int
    methods: tuple[str, ...]

    @property
    def keys(self) -> list[ArenaKey]:
        """The keys of the rows that it gives."""
        return [ArenaKey(*self[:4], method) for method in self.methods]


@dataclass(frozen=True)
class ArenaRow:
    """One fit of the arena, judged on clean test labels, or the error it ended with.

    A method that fails is as good as a coin. `max_rows` bounds the training rows; `seconds` are those of the processor
    for the fit; `reliability` has for each tenth of the predicted P(1), with a space between, rows/sum of P(1)/sum of
    labels; of several classes a row counts once for each, and `auc` is the mean of each against the rest.
    """

    data: str
    twist: str
    seed: int
    max_rows: int
    method: str
    accuracy: float = 0.5
    auc: float = 0.5
    log_loss: float = float(np.log(2))
    brier: float = 0.25
    seconds: float = 0.0
    reliability: str = ""
    version: str = ""
    error: str = ""

    def __post_init__(self) -> None:
        if self.bins.shape != (BINS, 3):
            raise ValueError(f"reliability must be {BINS} times three numbers, got {self.reliability!r}")

    @property
    def key(self) -> ArenaKey:
        """What was run."""
        return ArenaKey(self.data, self.twist, self.seed, self.max_rows, self.method)

    @property
    def bins(self) -> Array:
        """`reliability` as numbers, BINS x 3; zeros if there is none."""
        if not self.reliability:
            return np.zeros((BINS, 3))
        return np.array([[float(number) for number in one.split("/")] for one in self.reliability.split(" ")])


def count_reliability(p: Array, y: Array) -> str:
    """Count rows, predictions and clean labels in each tenth of the predictions.

    >>> count_reliability(np.array([0.02, 0.04, 1.0]), np.array([0, 1, 1])).split(" ")[0]
    '2/0.06/1'
    """
    tenth = np.minimum((p * BINS).astype(int), BINS - 1)
    sums = [np.bincount(tenth, weights, minlength=BINS) for weights in (np.ones_like(p), p, y)]
    return " ".join(f"{n:g}/{sum_p:.6g}/{sum_y:g}" for n, sum_p, sum_y in zip(*sums, strict=True))
