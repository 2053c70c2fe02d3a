"""The report as one HTML file that loads nothing and sends nothing."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from untwist.audit.comparison import Peer
from untwist.audit.findings import collect_findings
from untwist.audit.labels import LabelAudit
from untwist.report import sections
from untwist.report.markup import Section, write_page
from untwist.report.review import write_review
from untwist.text import for_page

__all__ = ["report"]

#: The heading of each section, and what the list of sections calls it.
HEADINGS = {
    "summary": ("In short", "In short"),
    "noise": ("How noisy the labels are", "Noise"),
    "review": ("Labels to review", "Review"),
    "training": ("What was trained", "Training"),
    "calibration": ("The labels and the truth", "Calibration"),
    "columns": ("What the predictions rest on", "Columns"),
    "peers": ("Beside other boosters", "Others"),
}


def report(
    audit: LabelAudit,
    *,
    title: str,
    rows: Sequence[Any] | None = None,
    row_name: str = "row",
    peers: Mapping[str, Peer] | None = None,
    suspects: ArrayLike | None = None,
) -> str:
    """Write an audit as an HTML page; the same audit gives the same page.

    Parameters
    ----------
    audit : LabelAudit
        What `untwist.audit.audit_labels` found.
    title : str
        What was audited, say the name of a file.
    rows : sequence, optional
        What the rows are called, say the lines of a file. By default they are positions.
    row_name : str
        The word for one of the rows.
    peers : mapping, optional
        What `untwist.report.compare` measured.
    suspects : array of int, optional
        The rows to list, by default `audit.suspects()`; the most doubtful come first.

    Returns
    -------
    str
        The page, which loads nothing and sends nothing.
    """
    names = range(len(audit.given)) if rows is None else [_plain(one) for one in rows]
    if len(names) != len(audit.given):
        raise ValueError(f"rows must be one for each of the {len(audit.given)} labels, got {len(names)}")
    findings = collect_findings(audit, suspects, peers)
    bodies = {
        "summary": sections.write_summary(findings, row_name),
        "noise": sections.write_noise(findings),
        "review": write_review(findings, names, row_name),
        "training": sections.write_training(findings),
        "calibration": sections.write_calibration(findings),
        "columns": sections.write_columns(findings),
        "peers": sections.write_peers(findings),
    }
    name = for_page(title, 120)
    return write_page(
        f"{name}: label audit",
        "Label audit",
        name,
        [Section(anchor, *HEADINGS[anchor], body) for anchor, body in bodies.items() if body],
        advice="It holds labels and\nsome values of the data, so share it as you would share the data.",
        script=importlib.resources.files("untwist.report").joinpath("script.js").read_text("utf-8"),
    )


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name
