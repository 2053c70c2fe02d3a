"""Which labels of a table are wrong? ``untwist audit data.csv --label churn -o report.html``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from untwist.audit import LabelAudit, audit_labels
from untwist.commands.columns import PreparedTable
from untwist.commands.sheets import ARROW, COMPRESS, Sheet, find_kind, refuse_unwritable, write
from untwist.commands.steps import add_table_options, encode_json, fit, print_result, read_table, refuse_same_files
from untwist.files import write_whole
from untwist.progress import print_status
from untwist.report import compare, report

__all__ = ["main"]

#: Suspects that are told with their reasons on standard output.
SHOWN = 5
#: Suspects whose reasons are in the list.
EXPLAINED = 500


def main(arguments: list[str] | None = None) -> int:
    """Judge every label, list the suspects, write what was asked for. The table itself is never touched."""
    parser = argparse.ArgumentParser(prog="untwist audit", description=__doc__.split("?")[0] + "?")
    add_table_options(parser, labelled=True)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="a report to open in a browser")
    parser.add_argument("--peers", action="store_true", help="XGBoost and LightGBM in the report too")
    parser.add_argument("--suspects", type=Path, metavar="FILE", help="the suspect rows, the worst first")
    parser.add_argument("--corrected", type=Path, metavar="FILE", help="a copy of the table, suspect labels replaced")
    parser.add_argument(
        "--budget", type=int, help="so many suspects (default: those that are likelier wrong than right)"
    )
    options = parser.parse_args(arguments)
    refuse_same_files([options.table], [options.output, options.suspects, options.corrected])
    if options.corrected and not _are_alike(options.table, options.corrected):
        parser.error(f"--corrected must be a file of the same kind as {options.table.name}")
    if options.budget is not None and options.budget < 1:
        parser.error("--budget must be at least 1")
    for path in (options.suspects, options.corrected):
        refuse_unwritable(path)
    sheet, table = read_table(options)
    done = fit(table, options)
    if done.was_stopped:
        raise KeyboardInterrupt  # Not all rows have been judged by models that have not seen them.
    audit = audit_labels(table.X, table.y, done.model)
    suspects = audit.suspects() if options.budget is None else audit.suspects(budget=min(options.budget, len(table.y)))
    listed = _list_suspects(sheet, table, audit, suspects)
    if options.suspects:
        write(_join(sheet.frame.iloc[table.rows[suspects]], listed), options.suspects, for_people=True)
        print_status(f"{len(suspects)} suspects in {options.suspects}")
    if options.corrected:
        changed = suspects[(audit.wrong[suspects] > 0.5) & (audit.predicted[suspects] != audit.given[suspects])]
        content = sheet.replace_labels(options.label, table.rows[changed], audit.predicted[changed].tolist())
        packed = options.corrected.suffix.lower()
        write_whole(options.corrected, COMPRESS[packed](content) if packed in COMPRESS else content)
        print_status(f"{len(changed)} labels replaced in {options.corrected}")
    if options.output:
        peers = compare(audit) if options.peers else None
        chosen = None if options.budget is None else suspects
        lines = sheet.lines[table.rows].tolist()
        page = report(audit, title=options.table.name, rows=lines, row_name=sheet.place, peers=peers, suspects=chosen)
        write_whole(options.output, page.encode())
        print_status(f"report in {options.output}: open it in a browser")
    if options.json:
        share = dict(zip(("share", "low", "high"), audit.noise_rate, strict=True))
        found = {"rows": len(table.y), "noise_found": audit.noise.found, "wrong": share, "notes": table.notes}
        print(encode_json(found | {"suspects": listed.to_dict(orient="records")}))
        return 0
    print_result(str(audit))
    for row in suspects[:SHOWN].tolist():
        explanation = str(audit.explain(row)).split(": ", 1)[1]
        print_result(f"\n{sheet.place} {sheet.lines[table.rows[row]]} of {options.table.name}: {explanation}")
    if len(suspects) > SHOWN:
        hint = "" if options.suspects else ": --suspects FILE lists them all"
        print(f"\n... and {len(suspects) - SHOWN} more{hint}")
    return 0


def _are_alike(one: Path, other: Path) -> bool:
    """Whether both are files of the same kind; all kinds of text are alike."""
    kinds = {find_kind(one), find_kind(other)}
    return len(kinds) == 1 or not kinds & {".parquet", *ARROW}


def _list_suspects(sheet: Sheet, table: PreparedTable, audit: LabelAudit, suspects: Any) -> Any:
    """The suspects with their reasons."""
    reasons = ["; ".join(map(str, one.reasons)) for one in audit.explanations(suspects[:EXPLAINED])]
    if len(suspects) > EXPLAINED:
        print_status(f"reasons are given for the first {EXPLAINED} of {len(suspects)} suspects")
    columns = {
        sheet.place: sheet.lines[table.rows[suspects]],
        "label": audit.given[suspects],
        "looks_like": audit.predicted[suspects],
        "probability_wrong": np.round(audit.wrong[suspects], 4),
        "reasons": reasons + [""] * (len(suspects) - len(reasons)),
    }
    return sheet.frame.iloc[table.rows[suspects]][[]].assign(**columns)


def _join(frame: Any, listed: Any) -> Any:
    """Put the columns of the list before those of the file; a name that the file has too gets an underscore."""
    joined = frame.copy()
    for place, name in enumerate(listed.columns):
        free_name = name
        while free_name in frame.columns:
            free_name += "_"
        joined.insert(place, free_name, listed[name])
    return joined
