"""The section of a report about the data beside the labels: equal rows, leaks, drift and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from untwist.audit.issues import DataIssue
from untwist.audit.issues.issue import KINDS
from untwist.report.markup import write_table
from untwist.text import for_page

__all__ = ["write_issues"]

#: Findings in the table, at most.
MOST_ISSUES = 40
#: Examples of a finding, at most, and the width of each.
MOST_EXAMPLES = 3
EXAMPLE_WIDTH = 120


def write_issues(issues: Sequence[DataIssue], names: Sequence[Any], row_name: str) -> str:
    """Write what else is wrong with the data, a line for each finding.

    Parameters
    ----------
    issues : sequence of DataIssue
        What was found.
    names : sequence
        What the rows are called.
    row_name : str
        The word for one of them.

    Returns
    -------
    str
        HTML; nothing where nothing was found.
    """
    if not issues:
        return ""
    lines = []
    for one in issues[:MOST_ISSUES]:
        examples = [for_page(each.describe(names, row_name), EXAMPLE_WIDTH) for each in one.examples[:MOST_EXAMPLES]]
        told = f"<div>{for_page(one.reason)}</div>" + "".join(f"<div><small>{each}</small></div>" for each in examples)
        lines.append([f"<b>{KINDS[one.kind].capitalize()}</b>{told}", f"{len(one.rows):,}" if len(one.rows) else ""])
    more = len(issues) - len(lines)
    words = (
        "<p>Found by tests that are silent on what chance gives. None of it is changed: look at it, and decide what it "
        "means for what the data are to tell.</p>"
    )
    table = write_table("What else to look at", ["finding", for_page(f"{row_name}s")], lines)
    return words + table + (f"<p class=aside>... and {more:,} more.</p>" if more else "")
