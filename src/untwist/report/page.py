"""The report as one HTML file that loads nothing and sends nothing."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from untwist.audit.comparison import Peer
from untwist.audit.findings import Findings, collect_findings
from untwist.audit.issues import DataIssue
from untwist.audit.labels import LabelAudit
from untwist.report import sections
from untwist.report.issues import write_issues
from untwist.report.markup import Section, write_page
from untwist.report.review import write_review
from untwist.report.sources import write_sources
from untwist.text import for_page

__all__ = ["report", "write_report"]

#: The heading of each section, and what the list of sections calls it.
HEADINGS = {
    "summary": ("In short", "In short"),
    "noise": ("How noisy the labels are", "Noise"),
    "sources": ("By source", "Sources"),
    "review": ("Labels to review", "Review"),
    "issues": ("What else to look at", "Data"),
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
    issues: list[DataIssue] | None = None,
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
    issues : list of DataIssue, optional
        What else is wrong with the data, by default `audit.find_issues()`.

    Returns
    -------
    str
        The page, which loads nothing and sends nothing.
    """
    n_rows = len(audit.given)
    if rows is not None and len(rows) != n_rows:
        raise ValueError(f"rows must be one for each of the {n_rows} labels, got {len(rows)}")
    findings = collect_findings(audit, suspects, peers, issues)
    return write_report(findings, title=title, rows=rows, row_name=row_name)


def write_report(findings: Findings, *, title: str, rows: Sequence[Any] | None = None, row_name: str = "row") -> str:
    """Write finished findings as an HTML page; nothing is computed here but the page.

    Parameters
    ----------
    findings : Findings
        What `untwist.audit.findings.collect_findings` computed.
    title, rows, row_name
        As for `report`.

    Returns
    -------
    str
        The page.
    """
    names = range(len(findings.audit.given)) if rows is None else [_plain(one) for one in rows]
    bodies = {
        "summary": sections.write_summary(findings, row_name),
        "noise": sections.write_noise(findings),
        "sources": write_sources(findings),
        "review": write_review(findings, names, row_name),
        "issues": write_issues(findings.issues, names, row_name),
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
