"""Which labels of a table are wrong? ``untwist audit data.csv --label churn -o report.html``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from untwist.audit import LabelAudit, audit_labels
from untwist.commands.common import as_json, chosen_table, different, fit, say, table_options
from untwist.commands.reading import Prepared, write
from untwist.report.page import report
from untwist.report.peers import compare

__all__ = ["main"]

SHOWN, EXPLAINED = 5, 500


def main(arguments: list[str] | None = None) -> int:
    """Judge every label, list the suspects, write what was asked for. The table itself is never touched."""
    parser = argparse.ArgumentParser(prog="untwist audit", description=__doc__.split("?")[0] + "?")
    table_options(parser, labelled=True)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="a report to open in a browser")
    parser.add_argument("--peers", action="store_true", help="XGBoost and LightGBM in the report too")
    parser.add_argument("--suspects", type=Path, metavar="FILE", help="the suspect rows, the worst first")
    parser.add_argument("--corrected", type=Path, metavar="FILE", help="a copy of the table, suspect labels replaced")
    parser.add_argument(
        "--budget", type=int, help="so many suspects (default: those that are likelier wrong than right)"
    )
    options = parser.parse_args(arguments)
    different(options.table, options.output, options.suspects, options.corrected)
    if options.budget is not None and options.budget < 1:
        parser.error("--budget must be at least 1")
    frame, table = chosen_table(options)
    model = fit(table, options)
    if getattr(model, "stopped_", False):
        raise KeyboardInterrupt  # not all rows have been judged by models that have not seen them
    audit = audit_labels(table.X, table.y, model)
    suspects = audit.suspects() if options.budget is None else audit.suspects(budget=min(options.budget, len(table.y)))
    listed = _listed(frame, table, audit, suspects)
    if options.suspects:
        write(listed, options.suspects)
        say(f"{len(suspects)} suspects in {options.suspects}")
    if options.corrected:
        write(_corrected(frame, table, audit, suspects, options.label), options.corrected)
        say(f"{len(suspects)} labels replaced in {options.corrected}")
    if options.output:
        peers = compare(audit) if options.peers else None
        lines = (table.rows + 2).tolist()  # the header is line 1
        chosen = None if options.budget is None else suspects
        page = report(audit, title=options.table.name, rows=lines, row_name="line", peers=peers, suspects=chosen)
        options.output.write_text(page, encoding="utf-8")
        say(f"report in {options.output}: open it in a browser")
    low_high = dict(zip(("share", "low", "high"), audit.noise_rate, strict=True))
    if options.json:
        found = {"rows": len(table.y), "noise_found": audit.noise.found, "wrong": low_high, "notes": table.notes}
        print(as_json(found | {"suspects": listed.iloc[:, :5].to_dict(orient="records")}))
        return 0
    print(audit)
    for row in suspects[:SHOWN].tolist():
        print(f"\nline {table.rows[row] + 2} of {options.table.name}, {audit.explain(row)}")
    if len(suspects) > SHOWN:
        print(
            f"\n... and {len(suspects) - SHOWN} more" + ("" if options.suspects else ": --suspects FILE lists them all")
        )
    return 0


def _listed(frame: Any, table: Prepared, audit: LabelAudit, suspects: Any) -> Any:
    """The suspects with their reasons, then the columns of the file."""
    reasons = ["; ".join(map(str, one.reasons)) for one in audit.explanations(suspects[:EXPLAINED])]
    if len(suspects) > EXPLAINED:
        say(f"reasons are given for the first {EXPLAINED} of {len(suspects)} suspects")
    reasons += [""] * (len(suspects) - len(reasons))
    found = frame.iloc[table.rows[suspects]].copy()
    names = ("line", "label", "looks_like", "probability_wrong", "reasons")
    values = (
        table.rows[suspects] + 2,  # the header is line 1
        audit.given[suspects],
        audit.predicted[suspects],
        np.round(audit.wrong[suspects], 4),
        reasons,
    )
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        while name in found.columns:
            name += "_"
        found.insert(place, name, value)
    return found


def _corrected(frame: Any, table: Prepared, audit: LabelAudit, suspects: Any, label: str) -> Any:
    copy = frame.copy()
    labels = copy[label].to_numpy().copy()
    labels[table.rows[suspects]] = audit.predicted[suspects]
    copy[label] = labels
    return copy
