"""Files of decisions about labels, and files that take changed labels back.

Both are CSV that a spreadsheet can open, change and save without harm.
"""

from __future__ import annotations

import csv
import io
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.data.decisions import RELABEL, Decisions
from untwist.files.whole_files import write_whole
from untwist.text import for_spreadsheet

__all__ = [
    "HEADER",
    "Undo",
    "format_decisions",
    "format_line",
    "parse_decisions",
    "read_decisions",
    "read_undo",
    "write_decisions",
    "write_text",
    "write_undo",
]

#: The columns of the file.
COLUMNS = ("row", "line", "given", "decision", "label", "note", "decided_at", "fingerprint")
#: The first line of the file.
HEADER = ",".join(COLUMNS) + "\r\n"
#: Columns that a file may lack.
OPTIONAL = {"line", "note", "decided_at"}
#: The columns of a file that takes labels back.
UNDO_COLUMNS = ("row", "line", "label", "before", "fingerprint")
#: What a fingerprint looks like.
FINGERPRINT = re.compile("[0-9a-f]{16}-[0-9a-f]{16}")


@dataclass(frozen=True, eq=False)
class Undo:
    """What takes changed labels of a file back.

    Parameters
    ----------
    rows : array of int
        The position of each row whose label was changed, from 0.
    lines : list of str
        Where each is in the file, for people.
    labels : list of str
        The label that each row has now.
    before : list of str
        The label that it had, as the file had it: the cell of a CSV file with its quotes.
    fingerprint : str
        That of the table in the file, with the labels that it has now.
    """

    rows: NDArray[np.intp]
    lines: list[str]
    labels: list[str]
    before: list[str]
    fingerprint: str


def write_decisions(path: str | os.PathLike[str], decisions: Decisions) -> None:
    """Write decisions as a CSV file that is there whole or not at all, and on disk when this returns.

    Parameters
    ----------
    path : str or path
        The file.
    decisions : Decisions
        What was decided.
    """
    write_text(path, format_decisions(decisions))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write the text of decisions as a file that is there whole or not at all.

    Parameters
    ----------
    path : str or path
        The file.
    text : str
        `HEADER`, and lines of `format_line`.
    """
    # Spreadsheets know by the mark at the beginning that this is UTF-8.
    write_whole(path, text.encode("utf-8-sig", "surrogatepass"))


def read_decisions(path: str | os.PathLike[str]) -> Decisions:
    """Read decisions; what a spreadsheet changes in passing (separator, quotes, line ends, marks) does not matter.

    Parameters
    ----------
    path : str or path
        A file of `write_decisions`, of the review page, or of a person: a line per row.

    Returns
    -------
    Decisions
        Rows and text; labels are text as well.
    """
    try:
        return parse_decisions(_read_text(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read_text(path: str | os.PathLike[str]) -> str:
    content = Path(path).read_bytes()
    try:
        return content.decode("utf-8-sig", "surrogatepass")
    except UnicodeDecodeError as error:
        raise ValueError("this is not UTF-8 text: save it as CSV UTF-8") from error


def format_decisions(decisions: Decisions) -> str:
    """Write decisions as the text of a CSV file.

    Parameters
    ----------
    decisions : Decisions
        What was decided.

    Returns
    -------
    str
        A line of names, and a line per decision.
    """
    arrays = (
        decisions.rows,
        decisions.lines,
        decisions.given,
        decisions.decision,
        decisions.labels,
        decisions.notes,
        decisions.decided_at,
    )
    lines = zip(*(np.asarray(one).tolist() for one in arrays), strict=True)
    return "".join([HEADER, *(format_line(*cells, decisions.fingerprint) for cells in lines)])


def format_line(*cells: Any) -> str:
    """Write the line of a decision in the file.

    Parameters
    ----------
    *cells : object
        One for each of the columns.

    Returns
    -------
    str
        The line with its end.
    """
    out = io.StringIO()
    # A cell with a line end in it is quoted only where lines end so.
    csv.writer(out, lineterminator="\r\n").writerow([_protect(str(cell)) for cell in cells])
    return out.getvalue()


def parse_decisions(text: str) -> Decisions:
    """Read decisions from the text of a CSV file.

    Parameters
    ----------
    text : str
        The text, with commas, semicolons or tabs between cells.

    Returns
    -------
    Decisions
    """
    names, lines = _split(text)
    if set(UNDO_COLUMNS) <= set(names):
        raise ValueError("it takes changed labels back, and holds no decisions: untwist apply --undo is for it")
    if missing := [name for name in COLUMNS if name not in names and name not in OPTIONAL]:
        raise ValueError(
            f"there is no column {missing[0]!r}: this is no file of decisions, or it has lost its first line"
        )
    cells: dict[str, list[str]] = {name: [] for name in COLUMNS}
    for number, line in lines:
        if len(line) > len(names):
            raise ValueError(f"line {number} has more cells than the first line has names")
        found = dict(zip(names, [*map(_unprotect, line), *[""] * (len(names) - len(line))], strict=True))
        if found["decision"].strip() != RELABEL and not found["label"]:
            found["label"] = found["given"]  # Whoever keeps a label need not repeat it.
        for name in COLUMNS:
            cells[name].append(found.get(name, ""))
    fingerprints = {one.strip() for one in cells["fingerprint"]}
    if len(fingerprints) > 1:
        raise ValueError(f"it has decisions about different data: {', '.join(sorted(fingerprints)[:3])}")
    return Decisions(
        rows=np.array([_read_row(one) for one in cells["row"]], dtype=np.intp),
        given=_as_text(cells["given"]),
        decision=_as_text([one.strip() for one in cells["decision"]]),
        labels=_as_text(cells["label"]),
        notes=_as_text(cells["note"]),
        fingerprint=min(fingerprints, default=""),
        lines=_as_text(cells["line"]),
        decided_at=_as_text(cells["decided_at"]),
    )


def write_undo(path: str | os.PathLike[str], undo: Undo) -> None:
    """Write a file that takes labels back; it is there whole or not at all.

    Parameters
    ----------
    path : str or path
        The file.
    undo : Undo
        What was changed.
    """
    cells = zip(undo.rows.tolist(), undo.lines, undo.labels, undo.before, strict=True)
    lines = [format_line(*one, undo.fingerprint) for one in cells]
    write_text(path, "".join([format_line(*UNDO_COLUMNS), *lines]))


def read_undo(path: str | os.PathLike[str]) -> Undo:
    """Read a file of `write_undo`.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Undo
    """
    try:
        names, lines = _split(_read_text(path))
        if any(name not in names for name in UNDO_COLUMNS):
            raise ValueError(
                "it takes no labels back: the file that does is beside the one with changed labels, and .undo follows "
                "its name"
            )
        cells: dict[str, list[str]] = {name: [] for name in UNDO_COLUMNS}
        for number, line in lines:
            if len(line) != len(names):
                raise ValueError(f"line {number} has {len(line)} cells, not {len(names)}")
            found = dict(zip(names, map(_unprotect, line), strict=True))
            for name in UNDO_COLUMNS:
                cells[name].append(found[name])
        marks = {one.strip() for one in cells["fingerprint"]}
        if len(marks) != 1 or not FINGERPRINT.fullmatch(min(marks)):
            raise ValueError("it must have rows, all with one fingerprint of two times 16 hexadecimal digits")
        rows = np.array([_read_row(one) for one in cells["row"]], dtype=np.intp)
        if len(np.unique(rows)) < len(rows):
            raise ValueError("a row is in it twice")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return Undo(rows, cells["line"], cells["label"], cells["before"], min(marks))


def _split(text: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the names of the columns, and the cells of each line that has any, with the number of that line."""
    first = re.split(r"[\r\n]", text, maxsplit=1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    try:
        lines = [(reader.line_num, line) for line in reader]
    except csv.Error as error:
        raise ValueError(f"this is no CSV: {error}, in line {reader.line_num}") from error
    names = [name.strip() for name in lines[0][1]] if lines else []
    if repeated := [name for name in COLUMNS if names.count(name) > 1]:
        raise ValueError(f"there are several columns {repeated[0]!r}")
    return names, [(number, line) for number, line in lines[1:] if any(cell.strip() for cell in line)]


def _read_row(text: str) -> int:
    if not re.fullmatch(r"\s*\d{1,15}\s*", text):
        raise ValueError(f"row must be a position, a whole number from 0, got {text!r:.40}")
    return int(text)


def _as_text(cells: list[str]) -> Any:
    """Return text as an array that keeps every character; NumPy's own kind would drop zeros at the end."""
    return np.array(cells, dtype=object)


def _protect(text: str) -> str:
    """Put a quote before a formula, and before what looks as if that had been done."""
    return f"'{text}" if _is_formula(text) else text


def _unprotect(text: str) -> str:
    return text[1:] if text.startswith("'") and _is_formula(text) else text


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet takes text for a formula, apart from quotes before it."""
    bare = text.lstrip("'")
    return bool(for_spreadsheet(bare) != bare)
