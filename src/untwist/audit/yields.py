"""How many of some labels are wrong: what a review of them finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from untwist.audit.judging import Interval
from untwist.audit.reviewed import find_known_wrong, measure_known_wrong
from untwist.audit.statements import Statement
from untwist.noise.estimate import CONFIDENCE
from untwist.noise.model import SAFE_MARGIN, move_interval
from untwist.sums import add_up, average

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = ["count_wrong"]


def count_wrong(
    audit: LabelAudit,
    rows: NDArray[np.intp],
    *,
    is_found: bool,
    most_wrong: int | None,
    rests_on: tuple[str, ...],
) -> Statement:
    """Count how many of some labels are wrong, with a 95 % interval.

    Where noise was found two errors add up: how noisy all labels are is known but for an interval, and each label
    is wrong by chance. The lower end moves the log-odds of all labels alike; the upper end is the number of all
    labels that may be wrong, as far as that many are asked for. Where none was found the interval begins at 0, and
    goes up to all rows, or to what may be wrong of all labels if errors do not depend on features: that it rests on
    only where that is less.

    Parameters
    ----------
    audit : LabelAudit
        What was found.
    rows : array of int
        The rows. Those that no fold judges do not count.
    is_found : bool
        Whether noise was found.
    most_wrong : int or None
        How many of all labels may be wrong at most, where that is known.
    rests_on : tuple of str
        What the numbers rest on.

    Returns
    -------
    Statement
        A number of rows.
    """
    judged = audit.context.take_judged(rows)
    of = f"these {len(rows):,} rows"
    wrong = audit.wrong[judged]
    expected = add_up(wrong)
    if audit.context.chance:  # No outcome is wrong.
        return Statement(0.0, 0.0, 0.0, of=of, rests_on=rests_on)
    known = find_known_wrong(audit)
    certain = np.count_nonzero(known[judged])
    if not is_found:
        high = float(len(judged))
        if audit.reviewed is not None:
            high -= np.count_nonzero(audit.reviewed[judged]) - certain
        most = high if most_wrong is None else float(most_wrong - (np.count_nonzero(known) - certain))
        assumed = rests_on if max(expected, most) < high else ()
        return Statement(expected, float(certain), max(expected, min(high, most)), of=of, rests_on=assumed)
    is_open = judged if audit.reviewed is None else judged[~audit.reviewed[judged]]
    n_open, found = len(is_open), add_up(audit.wrong[is_open])
    if not n_open:
        return Statement(expected, expected, expected, of=of, rests_on=rests_on)
    left = _find_share_left(audit)
    low = move_interval(found / n_open, left)[0]
    # `wrong` is a mean over all that may be, and too low for the surest rows. No more of them are wrong than of all.
    n_all = len(audit.context.take_open(audit.context.take_judged(np.arange(len(audit.given)))))
    variance = add_up(audit.wrong[is_open] * (1.0 - audit.wrong[is_open])) * audit.context.rows_per_case
    by_chance = float(ndtri(0.5 + CONFIDENCE / 2.0) * np.sqrt(variance))
    return Statement(
        expected,
        certain + max(0.0, n_open * low - by_chance),
        certain + min(float(n_open), max(n_all * left[2], found) + by_chance),
        of=of,
        rests_on=rests_on,
    )


def _find_share_left(audit: LabelAudit) -> Interval:
    """Return the share of wrong labels, with its interval, among the rows that nobody has reviewed."""
    if audit.reviewed is None:
        return audit.noise_rate
    known, left = measure_known_wrong(audit), average((~audit.reviewed).astype(np.float64), audit.weight)
    share, low, high = (min(1.0, max(0.0, one - known) / max(left, SAFE_MARGIN)) for one in audit.noise_rate)
    return share, low, high
