"""Change the labels that a person decided on: ``untwist apply data.decisions.csv data.csv -o cleaned.csv``.

``untwist apply --undo cleaned.csv.undo cleaned.csv -o data.csv`` takes that back.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.audit import Decisions, read_decisions
from untwist.commands.decided import describe_row_beyond, find_label, fingerprint_file
from untwist.commands.kinds import COMPRESS, name_undo
from untwist.commands.sheets import Sheet, read
from untwist.commands.steps import encode_json, print_result
from untwist.data.decisions import RELABEL, SKIP, match_labels, mean_the_same
from untwist.files.decisions import read_undo, write_undo
from untwist.files.whole_files import write_whole


def main(options: argparse.Namespace) -> int:
    """Write a copy of a table in which the labels decided on are changed, or taken back, and nothing else.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for, as `requests` reads it.

    Returns
    -------
    int
        The exit status.
    """
    decisions = (read_undo if options.undo else read_decisions)(options.decisions)
    if not len(decisions):
        raise ValueError(f"{options.decisions} has no decisions")
    sheet = read(options.table, options.separator, options.encoding, options.sheet)
    try:
        label = find_label(sheet.frame, decisions.fingerprint)
    except ValueError as error:
        is_about = "takes back, or has changed since it was written" if options.undo else "is about"
        raise ValueError(f"{options.table} is not the file that {options.decisions} {is_about}: {error}") from error
    changed, values = _choose_cells(sheet, label, decisions)
    rows = decisions.rows[changed]
    if options.undo:
        values = decisions.labels.tolist()
    try:
        content, before = sheet.replace_labels(label, rows, values, as_written=options.undo)
    except ValueError as error:
        raise ValueError(f"{options.table}: {error}") from error
    write_whole(options.output, COMPRESS.get(options.output.suffix.lower(), bytes)(content))
    undo = None if options.undo else keep_undo(sheet, label, rows, before, options.output)
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


def keep_undo(sheet: Sheet, label: str, rows: NDArray[np.intp], before: list[str], copy: Path) -> Path | None:
    """Write what takes the labels of a copy back, beside it, for ``untwist apply --undo``.

    Parameters
    ----------
    sheet : Sheet
        The file that the copy was made of.
    label : str
        The column of the labels.
    rows : array of int
        The rows whose labels were changed, from 0.
    before : list of str
        The labels that they had, as they were written.
    copy : Path
        The copy, which is there already.

    Returns
    -------
    Path or None
        The file that was written; None where no label was changed.
    """
    if not len(rows):
        return None
    separator = "," if sheet.rows is not None else sheet.separator  # The copy of a spreadsheet is CSV.
    written = read(copy, separator, None if sheet.separator is None else sheet.encoding)
    nothing = [""] * len(rows)
    changes = Decisions(
        rows=rows,
        given=np.array([str(one) for one in written.frame[label].iloc[rows]], dtype=object),
        decision=np.full(len(rows), RELABEL),
        labels=np.array(before, dtype=object),
        notes=np.array(nothing),
        fingerprint=fingerprint_file(written.frame, label),
        lines=np.array([str(one) for one in written.lines[rows].tolist()]),
    )
    path = name_undo(copy)
    write_undo(path, changes)
    return path


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
