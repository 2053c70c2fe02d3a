"""The report as one HTML file that loads nothing and sends nothing."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from untwist.audit.comparison import Peer
from untwist.audit.findings import Findings, collect_findings
from untwist.audit.hidden_sources import HiddenSource, allow_for
from untwist.audit.issues import DataIssue
from untwist.audit.labels import LabelAudit
from untwist.report import model
from untwist.report.issues import write_issues
from untwist.report.markup import Section, write_page
from untwist.report.noise import write_noise
from untwist.report.review import write_review
from untwist.report.sources import write_sources
from untwist.report.summary import write_summary
from untwist.report.worksheet import RowNames
from untwist.text import for_page

__all__ = ["report", "write_report"]

#: The script of the review, in order: what rows say, what was decided, the place to decide.
SCRIPTS = ("worksheet.js", "decisions.js", "workplace.js")
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
    hidden_source: HiddenSource | None = None,
    table: Any = None,
    positions: ArrayLike | None = None,
    fingerprint: str | None = None,
    server: str | None = None,
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
    hidden_source : HiddenSource, optional
        The column that looks like a source: the first of `audit.hidden_sources()`.
    table : pandas.DataFrame, optional
        The values to show of each row, say the columns of a file as they are written, with those that the model does
        not see. By default the values that were audited.
    positions : array of int, optional
        Where the rows are in the whole table, from 0, which is what a file of decisions names them by. By default they
        are the whole table.
    fingerprint : str, optional
        What tells the data from others, by default `audit.fingerprint`: decisions of other data are refused.
    server : str, optional
        Where a page that a server shows sends its decisions, relative to its own address. By default they are kept in
        the browser, and saved as a file.

    Returns
    -------
    str
        The page, which loads nothing, and sends nothing unless there is a server.
    """
    if table is not None and not hasattr(table, "iloc"):
        raise ValueError(f"table must be a pandas DataFrame of what to show, got a {type(table).__name__}")
    for name, given in {"rows": rows, "table": table, "positions": positions}.items():
        if given is not None and len(given) != len(audit.given):
            raise ValueError(f"{name} must be one for each of the {len(audit.given)} labels, got {len(given)}")
    if hidden_source is not None:
        audit = allow_for(audit, hidden_source)
    return write_report(
        collect_findings(audit, suspects, peers, issues),
        title=title,
        rows=rows,
        row_name=row_name,
        table=table,
        positions=positions,
        fingerprint=fingerprint,
        server=server,
    )


def write_report(
    findings: Findings,
    *,
    title: str,
    rows: Sequence[Any] | None = None,
    row_name: str = "row",
    table: Any = None,
    positions: ArrayLike | None = None,
    fingerprint: str | None = None,
    server: str | None = None,
) -> str:
    """Write finished findings as an HTML page; nothing is computed here but the page.

    Parameters
    ----------
    findings : Findings
        What `untwist.audit.findings.collect_findings` computed.
    title, rows, row_name, table, positions, fingerprint, server
        As for `report`.

    Returns
    -------
    str
        The page.
    """
    n_rows = len(findings.audit.given)
    named = RowNames(
        names=range(n_rows) if rows is None else [_plain(one) for one in rows],
        word=row_name,
        positions=np.arange(n_rows) if positions is None else np.asarray(positions, dtype=np.intp),
    )
    config = {
        "fingerprint": findings.audit.fingerprint if fingerprint is None else fingerprint,
        "title": title,
        "server": server,
        "has_names": rows is not None,
    }
    bodies = {
        "summary": write_summary(findings, row_name),
        "noise": write_noise(findings),
        "sources": write_sources(findings),
        "review": write_review(findings, named, config, table),
        "issues": write_issues(findings.issues, named.names, row_name),
        "training": model.write_training(findings),
        "calibration": model.write_calibration(findings),
        "columns": model.write_columns(findings),
        "peers": model.write_peers(findings),
    }
    name = for_page(title, 120)
    return write_page(
        f"{name}: label audit",
        "Label audit",
        name,
        [Section(anchor, *HEADINGS[anchor], body) for anchor, body in bodies.items() if body],
        advice="It holds labels and\nsome values of the data, so share it as you would share the data.",
        script=_join_scripts(),
        sends=server is not None,
    )


def _join_scripts() -> str:
    """The files of the script as one, in a scope of their own."""
    folder = importlib.resources.files("untwist.report")
    parts = "\n".join(folder.joinpath(name).read_text("utf-8") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}\n}})();'


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name
