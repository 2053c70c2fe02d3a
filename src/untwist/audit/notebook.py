"""What an audit found, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from untwist.audit.verdict import MOST_LABELS
from untwist.display import (
    NAME_WIDTH,
    describe_probability,
    write_bar,
    write_curve,
    write_fragment,
    write_percent,
    write_table,
)
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
    longest = max(high for *_, high in audit.rate_by_label.values())
    noisiest = sorted(audit.rate_by_label, key=lambda label: -audit.rate_by_label[label][0])[:MOST_LABELS]
    labels = [
        [f"<b>{for_page(label, NAME_WIDTH)}</b>", write_percent(*rate), write_bar(*rate, longest=longest)]
        for label, rate in audit.rate_by_label.items()
        if label in noisiest
    ]
    suspects = audit.suspects()
    listed = [
        [
            f"{row}",
            for_page(audit.given[row], NAME_WIDTH),
            for_page(audit.predicted[row], NAME_WIDTH),
            describe_probability(
                float(audit.wrong[row]), None if verdict.knows_share else float(audit.wrong_at_most[row])
            ),
        ]
        for row in suspects[:MOST_LISTED].tolist()
    ]
    reviewed = audit.ranking[: 2 * len(suspects)]
    found = np.concatenate([[0.0], np.cumsum(audit.wrong[reviewed])])
    steps = np.unique(np.linspace(0, len(reviewed), CURVE_POINTS).astype(np.intp))
    curve = list(zip(steps.astype(float).tolist(), found[steps].tolist(), strict=True))
    expected = f"wrong labels found, as rows are reviewed: about {found[-1]:,.0f} in {len(reviewed):,}"
    return write_fragment(
        "Label audit",
        verdict.describe(leaves_out=verdict.by_label),
        write_table(["label", "wrong", ""], labels) if verdict.knows_share else "",
        write_table(["row", "labelled", "looks like", "likely wrong"], listed),
        write_curve(curve, expected) if len(suspects) > 1 and verdict.knows_share else "",
    )
