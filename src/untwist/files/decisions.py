"""Files of decisions about labels, and files that take changed labels back.

Both are CSV that a spreadsheet can open, change and save without harm.
"""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from untwist.data.decisions import RELABEL, Decisions
from untwist.files.whole_files import write_whole
from untwist.text import for_spreadsheet

#: The columns of the file.
COLUMNS = ("row", "line", "given", "decision", "label", "note", "decided_at", "fingerprint")
#: The first line of the file.
HEADER = ",".join(COLUMNS) + "\r\n"
#: Columns that a file may lack.
OPTIONAL = {"line", "note", "decided_at"}
#: The columns of a file that takes labels back: those before are cells as they were written, with their quotes.
UNDO_COLUMNS = ("row", "line", "given", "before", "fingerprint")


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
    cells = _read_cells(
        text,
        COLUMNS,
        "this is no file of decisions, or it has lost its first line (one with a column 'before' takes changed labels "
        "back: untwist apply --undo)",
    )
    return _make_decisions(cells, cells["label"])


def write_undo(path: str | os.PathLike[str], changes: Decisions) -> None:
    """Write a file that takes changed labels back; it is there whole or not at all.

    Parameters
    ----------
    path : str or path
        The file.
    changes : Decisions
        By row the label that it has now, and as the one decided on the cell that it had.
    """
    arrays = (changes.rows, changes.lines, changes.given, changes.labels)
    cells = zip(*(np.asarray(one).tolist() for one in arrays), strict=True)
    write_text(path, "".join([format_line(*UNDO_COLUMNS), *(format_line(*one, changes.fingerprint) for one in cells)]))


def read_undo(path: str | os.PathLike[str]) -> Decisions:
    """Read a file of `write_undo`.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Decisions
        As `write_undo` was given them.
    """
    try:
        cells = _read_cells(
            _read_text(path),
            UNDO_COLUMNS,
            "it takes no labels back: the file that does is beside the one with changed labels, and .undo follows its "
            "name",
        )
        return _make_decisions(cells | {"decision": [RELABEL] * len(cells["row"])}, cells["before"])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read_cells(text: str, columns: tuple[str, ...], otherwise: str) -> dict[str, list[str]]:
    """Return the cells of a file by column; a ValueError says what the file is where it lacks one."""
    names, lines = _split(text)
    if missing := [name for name in columns if name not in names and name not in OPTIONAL]:
        raise ValueError(f"there is no column {missing[0]!r}: {otherwise}")
    cells: dict[str, list[str]] = {name: [] for name in columns}
    for number, line in lines:
        if len(line) > len(names):
            raise ValueError(f"line {number} has more cells than the first line has names")
        found = dict(zip(names, [*map(_unprotect, line), *[""] * (len(names) - len(line))], strict=True))
        for name in columns:
            cells[name].append(found.get(name, ""))
    return cells


def _make_decisions(cells: dict[str, list[str]], labels: list[str]) -> Decisions:
    fingerprints = {one.strip() for one in cells["fingerprint"]}
    if len(fingerprints) > 1:
        raise ValueError(f"it has decisions about different data: {', '.join(sorted(fingerprints)[:3])}")
    words = [one.strip() for one in cells["decision"]]
    # Whoever keeps a label need not repeat it.
    repeated = [
        given if word != RELABEL and not label else label
        for word, given, label in zip(words, cells["given"], labels, strict=True)
    ]
    nothing = [""] * len(words)
    return Decisions(
        rows=np.array([_read_row(one) for one in cells["row"]], dtype=np.intp),
        given=_as_text(cells["given"]),
        decision=_as_text(words),
        labels=_as_text(repeated),
        notes=_as_text(cells.get("note", nothing)),
        fingerprint=min(fingerprints, default=""),
        lines=_as_text(cells["line"]),
        decided_at=_as_text(cells.get("decided_at", nothing)),
    )


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
