"""Change the labels that a person decided on: ``untwist apply data.decisions.csv data.csv -o cleaned.csv``.

``untwist apply --undo cleaned.csv.undo cleaned.csv -o data.csv`` takes that back.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from untwist.audit import Decisions, read_decisions
from untwist.commands.decided import describe_row_beyond, find_label
from untwist.commands.kinds import COMPRESS
from untwist.commands.sheets import Sheet, read
from untwist.commands.steps import encode_json, print_result
from untwist.commands.undoing import keep_undo, take_back
from untwist.data.decisions import SKIP, match_labels, mean_the_same
from untwist.files.decisions import read_undo
from untwist.files.whole_files import write_whole

__all__ = ["main"]


def main(options: argparse.Namespace) -> int:
    """Write a copy of a table in which the labels decided on are changed, and nothing else.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for, as `requests` reads it.

    Returns
    -------
    int
        The exit status.
    """
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


def _choose_cells(sheet: Sheet, label: str, decisions: Decisions) -> tuple[Any, list[Any]]:
    """Which of the decisions change a cell, and what to write there: a class as the column writes it."""
    cells = sheet.frame[label]
    if decisions.rows.max() >= len(cells):
        raise ValueError(describe_row_beyond(decisions, sheet.path, len(cells)))
    for row, given in zip(decisions.rows.tolist(), decisions.given.tolist(), strict=True):
        if not mean_the_same(given, cells.iloc[row]):
            was = f"had the label {str(given)!r:.40} when it was decided on"
            raise ValueError(f"{sheet.name_row(row)} of {sheet.path} {was}, not {str(cells.iloc[row])!r:.40}")
    changed = decisions.relabelled
    spellings = cells.dropna().value_counts().index.tolist()
    return changed, match_labels(decisions.labels[changed].tolist(), spellings)
