"""What a review found, and what of it the data still hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from untwist.audit.judging import Interval

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = ["ReviewOutcome", "describe_review", "sum_up_review"]


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
        return f"{rows} about {share:,.0f} ({low:,.0f} to {high:,.0f}) have a wrong label"

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
    if audit.reviewed is None:
        return None
    rows = int(np.count_nonzero(audit.reviewed))
    found = None
    if audit.before_review is not None:
        found = int(np.count_nonzero(audit.reviewed & (audit.before_review != audit.predicted)))
    is_left = ~audit.reviewed if audit.judged is None else audit.judged & ~audit.reviewed
    rows_left = int(np.count_nonzero(is_left))
    left = None
    if audit.knows_share:
        known = audit.share_known_wrong
        expected, low, high = (min((one - known) * audit.n_judged, rows_left) for one in audit.noise_rate)
        left = expected, low, high
    return ReviewOutcome(
        rows=rows,
        right=None if found is None else rows - found,
        wrong=found,
        skipped=audit.n_skipped,
        still_wrong=int(np.count_nonzero(audit.is_known_wrong)),
        rows_left=rows_left,
        wrong_left=left,
    )


def describe_review(audit: LabelAudit, *, for_command: bool) -> list[str]:
    """Say in words what was reviewed, what was found, and what is wrong still.

    Parameters
    ----------
    audit : LabelAudit
        What was found.
    for_command : bool
        Whether advice names the command rather than Python.

    Returns
    -------
    list of str
        A line for each; none without a review.
    """
    review = audit.review
    if review is None:
        return []
    rows = "1 row is" if review.rows == 1 else f"{review.rows:,} rows are"
    change = "untwist apply" if for_command else "apply(decisions)"
    held = review.held
    if review.still_wrong:
        held += f": {change} changes {'it' if review.still_wrong == 1 else 'them'}"
    return [one for one in (f"{rows} reviewed: {review.decided}", held, review.left) if one]
