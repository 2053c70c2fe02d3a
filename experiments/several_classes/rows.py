"""What is recorded: a tidy row for each method in each run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Key", "Row"]

NAN = math.nan


class Key(NamedTuple):
    """What was run."""

    data: str
    kind: str
    split: int
    max_rows: int
    method: str


@dataclass(frozen=True)
class Row:
    """One method in one run, or the error it ended with; NaN stands for what a method does not do.

    Attributes
    ----------
    data, kind, split, max_rows, method
        What was run: the data set, the kind of noise, the seed of the split, the most training rows, who.
    n_classes, n_rows : int
        Classes, and training rows.
    accuracy, log_loss : float
        On the clean test rows.
    seconds, noise_seconds : float
        Of the processor, for the fit with all that was searched, and of it for the estimate of the noise.
    average_precision, by_margin : float
        Of the ranking of training rows; cleanlab's by self-confidence and, beside it, by the normalised margin.
    precision, recall, f1, flagged : float
        Of the rows that are flagged as wrong, and their share of all rows.
    share_said, share_low, share_high, share_true : float
        The share of wrong labels: estimated, its 95 % interval, and as it is.
    found : float
        1 if noise was found, else 0.
    version, error : str
        The package, and what went wrong.
    """

    data: str
    kind: str
    split: int
    max_rows: int
    method: str
    n_classes: int = 0
    n_rows: int = 0
    accuracy: float = NAN
    log_loss: float = NAN
    seconds: float = NAN
    noise_seconds: float = NAN
    average_precision: float = NAN
    by_margin: float = NAN
    precision: float = NAN
    recall: float = NAN
    f1: float = NAN
    flagged: float = NAN
    share_said: float = NAN
    share_low: float = NAN
    share_high: float = NAN
    share_true: float = NAN
    found: float = NAN
    version: str = ""
    error: str = ""

    @property
    def key(self) -> Key:
        """What was run."""
        return Key(self.data, self.kind, self.split, self.max_rows, self.method)
