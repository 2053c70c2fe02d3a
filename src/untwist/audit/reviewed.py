"""What a review found, and what of it the data still hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from untwist.audit.judging import Interval
from untwist.audit.statements import Statement, write_counts
from untwist.sums import average

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = [
    "ReviewOutcome",
    "change_reviewed",
    "claims_noise",
    "find_known_wrong",
    "measure_known_wrong",
    "sum_up_review",
]


@dataclass(frozen=True)
class ReviewOutcome:
    """What a person decided about some labels, and how many of those found wrong the data still hold.

    Parameters
    ----------
    rows : int
        Rows whose label is known: they were reviewed and not skipped.
    right, wrong : int or None
        How many of their labels were right, and how many wrong; None where nobody knows what they were before.
    skipped : int
        Rows that were looked at and could not be decided on.
    still_wrong : int
        Labels found wrong that the data still hold, as nobody has changed them.
    rows_left : int
        Rows that nobody has decided on.
    wrong_left : Interval or None
        How many of their labels are expected to be wrong, with the limits of the 95 % interval; None where that cannot
        be told.
    """

    rows: int
    right: int | None
    wrong: int | None
    skipped: int
    still_wrong: int
    rows_left: int
    wrong_left: Interval | None

    @property
    def decided(self) -> str:
        """How the rows were decided on, in words."""
        whose, verb = ("its label", "is") if self.rows == 1 else ("their labels", "are")
        parts = []
        if self.wrong is not None and self.rows == 1:
            parts = [f"{whose} was {'wrong' if self.wrong else 'right'}"]
        elif self.wrong is not None:
            parts = [f"{self.wrong:,} of {whose} were wrong, {self.right:,} right"]
        if self.skipped:
            parts.append(f"{self.skipped:,} more {'was' if self.skipped == 1 else 'were'} skipped")
        return "; ".join(parts) or f"{whose} {verb} right"

    @property
    def held(self) -> str:
        """What of the labels found wrong the data still hold, in words; nothing where none was found."""
        if not self.wrong:
            return ""
        if not self.still_wrong:
            return "the data hold none of the labels found wrong any more"
        number = "the label" if self.wrong == 1 else f"all {self.wrong:,} labels"
        if self.still_wrong < self.wrong:
            number = f"{self.still_wrong:,} of the {self.wrong:,} labels"
        return f"the data still hold {number} found wrong"

    @property
    def left(self) -> str:
        """How many labels are wrong among the rows that nobody has decided on, in words; nothing without such rows."""
        if not self.rows_left:
            return ""
        rows = f"of the {self.rows_left:,} rows not reviewed"
        if self.wrong_left is None:
            return f"how many {rows} have a wrong label cannot be told"
        share, low, high = self.wrong_left
        return f"{rows} about {write_counts(Statement(share, low, high))} have a wrong label"

    def to_dict(self) -> dict[str, Any]:
        """Return the same for machines."""
        left = None if self.wrong_left is None else dict(zip(("rows", "low", "high"), self.wrong_left, strict=True))
        return {
            "rows": self.rows,
            "right": self.right,
            "wrong": self.wrong,
            "skipped": self.skipped,
            "still_wrong": self.still_wrong,
            "rows_left": self.rows_left,
            "wrong_left": left,
        }


def sum_up_review(audit: LabelAudit) -> ReviewOutcome | None:
    """Return what the review that an audit was told of found; None where there was none.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    ReviewOutcome or None
    """
    context = audit.context
    if context.reviewed is None:
        return None
    rows = int(np.count_nonzero(context.reviewed))
    found = None
    if context.before_review is not None:
        found = int(np.count_nonzero(context.reviewed & (context.before_review != audit.predicted)))
    is_judged = context.take_judged(np.arange(len(audit.given)))
    rows_left = len(context.take_open(is_judged))
    left = None
    if claims_noise(audit):
        known = measure_known_wrong(audit)
        expected, low, high = (min((one - known) * len(is_judged), rows_left) for one in audit.noise_rate)
        left = expected, low, high
    return ReviewOutcome(
        rows=rows,
        right=None if found is None else rows - found,
        wrong=found,
        skipped=context.n_skipped,
        still_wrong=int(np.count_nonzero(find_known_wrong(audit))),
        rows_left=rows_left,
        wrong_left=left,
    )


def change_reviewed(audit: LabelAudit) -> NDArray[Any]:
    """Return the labels with those decided on in place of what `y` has; `given` where nothing was reviewed.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    array
    """
    return audit.given if audit.reviewed is None else np.where(audit.reviewed, audit.predicted, audit.given)


def find_known_wrong(audit: LabelAudit) -> NDArray[np.bool_]:
    """Find which labels a review found wrong that are still in `given`.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    array of bool
    """
    return np.asarray(change_reviewed(audit) != audit.given)


def measure_known_wrong(audit: LabelAudit) -> float:
    """Measure the share of the labels that a review found wrong, and that are still in `given`.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    float
    """
    return 0.0 if audit.reviewed is None else average(find_known_wrong(audit).astype(np.float64), audit.weight)


def claims_noise(audit: LabelAudit) -> bool:
    """Tell whether noise was found, and how many labels are wrong is known.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    bool
        True where the noise was given. Else not where its share may be 0 by its interval, where models may have seen
        the labels that they judge, nor where labels are outcomes of chance.
    """
    context, noise = audit.context, audit.noise
    if context.chance or noise.is_given:
        return noise.is_given and not context.chance
    may_be_none = audit.noise_rate[1] <= measure_known_wrong(audit)
    return bool(noise.found) and not may_be_none and context.twins is None and not audit.judge.looks_in_sample
