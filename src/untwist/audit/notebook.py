"""What an audit found, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from untwist.audit.statements import write_shares
from untwist.audit.verdict import MOST_TOLD
from untwist.display import NAME_WIDTH, format_probability, write_bar, write_curve, write_fragment, write_table
from untwist.text import for_page

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = ["write_html"]

#: Suspects that a notebook lists, at most, and points of the curve of what a review of them finds.
MOST_LISTED = 5
CURVE_POINTS = 40


def write_html(audit: LabelAudit) -> str:
    """Write how noisy the labels are, the first suspects and what a review finds, for notebooks.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    str
    """
    verdict = audit.verdict
    longest = max((one.high for one in verdict.by_label), default=0.0)
    noisiest = sorted(verdict.by_label, key=lambda one: -one.value)[:MOST_TOLD]
    labels = [
        [
            f"<b>{for_page(one.name, NAME_WIDTH)}</b>",
            write_shares(one),
            write_bar(one.value, one.low, one.high, longest=longest),
        ]
        for one in verdict.by_label
        if one in noisiest
    ]
    suspects = audit.suspects()
    listed = [
        [
            f"{row}",
            for_page(audit.given[row], NAME_WIDTH),
            for_page(audit.predicted[row], NAME_WIDTH),
            format_probability(float(audit.wrong[row])),
        ]
        for row in suspects[:MOST_LISTED].tolist()
    ]
    reviewed = audit.ranking[: 2 * len(suspects)]
    steps = np.unique(np.linspace(0, len(reviewed), CURVE_POINTS).astype(np.intp)).tolist()
    curve = [(float(n), audit.expect_wrong(reviewed[:n])) for n in steps]
    found = verdict.describe_yield(audit.expected_yield(reviewed))
    return write_fragment(
        "Label audit",
        verdict.describe(leaves_out=tuple(verdict.describe_label(one) for one in noisiest)),
        write_table(["of labels that say", "wrong", ""], labels),
        write_table(["row", "labelled", "looks like", "likely wrong"], listed) if not verdict.is_chance else "",
        write_curve(curve, f"first {len(reviewed):,} rows reviewed: {found}") if verdict.is_found else "",
    )
