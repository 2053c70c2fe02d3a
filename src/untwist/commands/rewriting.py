"""Single cells of a CSV file changed in place: every other byte stays as it is, quotes, blanks and line ends too."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Mapping, Sequence

#: How a file begins whose encoding leaves open in which order bytes come; the longest first.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
#: Encodings that take such a mark away and write one of their own.
_WITH_MARK = {"utf-8-sig", "utf-16", "utf-32"}


def replace_cells(
    content: bytes,
    new: Mapping[int, tuple[str, str]],
    lines: Sequence[int],
    column: int,
    separator: str,
    encoding: str,
    *,
    as_written: bool = False,
) -> tuple[bytes, list[str]]:
    """Write other text into a column of some rows of a CSV file.

    Parameters
    ----------
    content : bytes
        The file, not compressed.
    new : mapping
        By the row, from 0, the text of the cell before and after.
    lines : sequence of int
        The line, from 1, on which each row begins.
    column : int
        The column, from 0.
    separator : str
        What is between cells.
    encoding : str
        That of the file.
    as_written : bool, default False
        Whether the new text is written as it is, with the quotes that it has; by default it gets those that it needs.

    Returns
    -------
    content : bytes
        The new file. A ValueError where a row has no such cell, or another text in it, or where the new text cannot be
        written in that encoding.
    before : list of str
        The cells as they were written, with their quotes.
    """
    encoding = _name_exactly(content, encoding)
    pieces = _split(content, encoding)
    written = []
    for row, (before, after) in new.items():
        first, end = _find_record(row, lines, len(pieces))
        record = "".join(pieces[first:end])
        start, stop = _find_cell(record, column, separator)
        old = record[start:stop]
        if start < 0 or _read_cell(old, separator).strip() != before.strip():
            raise ValueError(f"line {first + 1} has no cell {before!r:.40} for the label: it cannot be rewritten")
        if as_written and _find_cell(after + separator, 0, separator) != (0, len(after)):
            raise ValueError(f"line {first + 1}: {after!r:.40} is no single cell between {separator!r}")
        cell = after if as_written else quote_cell(after, separator, was_quoted=old.startswith('"'))
        changed = record[:start] + cell + record[stop:]
        pieces[first:end] = [changed, *[""] * (end - first - 1)]
        written.append(old)
    try:
        return "".join(pieces).encode(encoding), written
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object[error.start : error.end]!r} cannot be written in {encoding}") from error


def _split(content: bytes, encoding: str) -> list[str]:
    """Return the lines of a file with their ends."""
    text = content.decode(encoding)
    if text.encode(encoding) != content:
        raise ValueError(f"in {encoding} it would not stay the same byte for byte: save the file as UTF-8 first")
    return list(io.StringIO(text, newline=""))  # A line ends with \r or \n and with no other character.


def _find_record(row: int, lines: Sequence[int], n_lines: int) -> tuple[int, int]:
    """Return the lines, from 0, on which a row begins and the next one does."""
    return int(lines[row]) - 1, int(lines[row + 1]) - 1 if row + 1 < len(lines) else n_lines


def _name_exactly(content: bytes, encoding: str) -> str:
    """Return the encoding that keeps the mark at the beginning of a file, or its absence, as it is."""
    if codecs.lookup(encoding).name not in _WITH_MARK:
        return encoding
    exact = next((name for mark, name in _MARKS.items() if content.startswith(mark)), None)
    return exact or ("utf-8" if "8" in encoding else encoding)


def _find_cell(record: str, column: int, separator: str) -> tuple[int, int]:
    """Return where a cell of a record begins and ends, with its quotes, without blanks around it; -1 for none."""
    outside = f"[^{re.escape(separator)}\r\n]"
    cell = re.compile(f'(?P<blanks> *)(?P<cell>"[^"]*(?:""[^"]*)*"{outside}*|{outside}*)')
    position = 0
    for number in range(column + 1):
        found = cell.match(record, position)
        assert found is not None  # An empty cell matches too.
        if number == column:
            return found.start("cell"), found.start("cell") + len(found["cell"].rstrip(" "))
        position = found.end()
        if record[position : position + 1] != separator:
            break
        position += 1
    return -1, -1


def _read_cell(text: str, separator: str) -> str:
    return "".join(next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), []))


def quote_cell(text: str, separator: str, *, was_quoted: bool = False) -> str:
    """Write text as a cell of a CSV file.

    Parameters
    ----------
    text : str
        The text.
    separator : str
        What is between cells.
    was_quoted : bool, default False
        Whether it gets quotes even where it needs none.

    Returns
    -------
    str

    Examples
    --------
    >>> quote_cell("yes", ";"), quote_cell("yes; no", ";")
    ('yes', '"yes; no"')
    """
    is_plain = not re.search(f'[{re.escape(separator)}"\r\n]', text) and text == text.strip()
    return text if is_plain and not was_quoted else '"' + text.replace('"', '""') + '"'
