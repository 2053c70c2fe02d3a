"""Change the labels that a person decided on: ``untwist apply data.decisions.csv data.csv -o cleaned.csv``.

``untwist apply --undo cleaned.csv.undo cleaned.csv -o data.csv`` takes that back.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from untwist.audit import Decisions, read_decisions
from untwist.commands.decided import find_label
from untwist.commands.parser import CommandParser
from untwist.commands.sheets import ARROW, COMPRESS, Sheet, find_kind, read, refuse_unwritable
from untwist.commands.steps import add_file_options, encode_json, print_result, refuse_same_files
from untwist.commands.undoing import keep_undo, name_undo, take_back
from untwist.commands.workbooks import WORKBOOKS
from untwist.data.decisions import SKIP, match_labels, mean_the_same
from untwist.files import write_whole
from untwist.files.decisions import read_undo

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Write a copy of a table in which the labels decided on are changed, and nothing else.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of this process.

    Returns
    -------
    int
        The exit status.
    """
    options = _parse(arguments)
    return _undo(options) if options.undo else _apply(options)


def _apply(options: argparse.Namespace) -> int:
    """Change the labels that were decided on, and keep what takes them back."""
    decisions = read_decisions(options.decisions)
    if not len(decisions):
        raise ValueError(f"{options.decisions} has no decisions")
    sheet = read(options.table, options.separator, options.encoding, options.sheet)
    try:
        label = find_label(sheet.frame, decisions.fingerprint)
    except ValueError as error:
        raise ValueError(f"{options.table} is not the file that {options.decisions} is about: {error}") from error
    changed, values = _choose_cells(sheet, label, decisions)
    try:
        content = sheet.replace_labels(label, decisions.rows[changed], values)
    except ValueError as error:
        raise ValueError(f"{options.table}: {error}") from error
    _write(content, options.output)
    undo = keep_undo(sheet, label, decisions.rows[changed], options.output)
    counts = {
        "changed": len(values),
        "kept": int(np.count_nonzero(~changed & (decisions.decision != SKIP))),
        "skipped": int(np.count_nonzero(decisions.decision == SKIP)),
    }
    if options.json:
        found = {"table": options.table, "output": options.output, "label_column": label, "undo": undo}
        print(encode_json(found | counts))
    else:
        words = ", ".join(f"{number:,} {word}" for word, number in counts.items())
        print_result(f"labels in column {label!r}: {words}; {options.output} has them, and all else as it was")
        if undo is not None:
            print_result(f"{undo} takes the change back: untwist apply --undo")
    return 0


def _undo(options: argparse.Namespace) -> int:
    """Take back what was changed in a file that this command, or an audit, wrote."""
    undo = read_undo(options.decisions)
    sheet = read(options.table, options.separator, options.encoding, options.sheet)
    label, content = take_back(sheet, undo, options.decisions)
    _write(content, options.output)
    number = len(undo.rows)
    if options.json:
        found = {"table": options.table, "output": options.output, "label_column": label, "taken_back": number}
        print(encode_json(found))
    else:
        labels = "1 label has" if number == 1 else f"{number:,} labels have"
        print_result(
            f"in column {label!r} of {options.output} {labels} the text from before, and all else is as it was"
        )
    return 0


def _write(content: bytes, path: Path) -> None:
    write_whole(path, COMPRESS.get(path.suffix.lower(), bytes)(content))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the options, and refuse what cannot be done before anything is read."""
    parser = CommandParser(prog="untwist apply", description=__doc__.split(":")[0] + ".")
    parser.add_argument(
        "decisions",
        type=Path,
        metavar="DECISIONS",
        help="the file that untwist review wrote; with --undo the one beside TABLE, with .undo after its name",
    )
    parser.add_argument(
        "table", type=Path, metavar="TABLE", help="the file that was reviewed, as it was then; with --undo its copy"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", required=True, help="the copy with other labels")
    parser.add_argument(
        "--undo",
        action="store_true",
        help="take back what this command, or audit --corrected, has changed in TABLE",
    )
    add_file_options(parser)
    parser.add_argument("--json", action="store_true", help="results as JSON on standard output")
    options = parser.parse_args(arguments)
    outputs = [options.output] if options.undo else [options.output, name_undo(options.output)]
    refuse_same_files([options.decisions, options.table], outputs)
    refuse_unwritable(options.output)
    binary = {".parquet", *ARROW}
    kinds = find_kind(options.table), find_kind(options.output)
    if kinds[0] in WORKBOOKS:
        if kinds[1] in binary:
            parser.error("the copy of a spreadsheet must be a CSV file: single cells of a workbook cannot be changed")
    elif kinds[0] != kinds[1] and set(kinds) & binary:
        parser.error(f"the copy must be a file of the same kind as {options.table.name}")
    return options


def _choose_cells(sheet: Sheet, label: str, decisions: Decisions) -> tuple[Any, list[Any]]:
    """Which of the decisions change a cell, and what to write there: a class as the column writes it."""
    cells = sheet.frame[label]
    if decisions.rows.max() >= len(cells):
        raise ValueError(f"row {decisions.rows.max()} is decided on, but {sheet.path} has {len(cells)} rows, from 0")
    for row, given in zip(decisions.rows.tolist(), decisions.given.tolist(), strict=True):
        if not mean_the_same(given, cells.iloc[row]):
            was = f"had the label {str(given)!r:.40} when it was decided on"
            raise ValueError(f"row {row} of {sheet.path} {was}, not {str(cells.iloc[row])!r:.40}")
    changed = decisions.relabelled
    spellings = cells.dropna().value_counts().index.tolist()
    return changed, match_labels(decisions.labels[changed].tolist(), spellings)
