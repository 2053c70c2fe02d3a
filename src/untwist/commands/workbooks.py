"""Spreadsheets as tables: .xlsx and .ods files, read by python-calamine within limits on what they unpack to."""

from __future__ import annotations

import re
import zipfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.data.cells import list_some
from untwist.data.memory import BYTES_PER_BYTE
from untwist.optional import import_optional

#: Bytes that a spreadsheet may unpack to in any case, beside `BYTES_PER_BYTE`, and at most.
LEAST_UNPACKED = 64 << 20
MOST_UNPACKED = 1 << 30
#: Cells that a spreadsheet may span, empty ones too, beside one for each byte that it unpacks to.
MOST_CELLS = 20_000_000
#: Bytes that are unpacked at a time.
CHUNK = 1 << 20
#: The place of a cell in an .xlsx file.
PLACE = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Z]{1,4})(\d{1,8})"')
#: A row of an .ods file, how often it is repeated, and its cells that are not empty, with how often they are.
ODS_ROW = re.compile(rb"<table:table-row\b(?P<head>[^>]*)>(?P<cells>.*?)</table:table-row>", re.DOTALL)
ODS_CELL = re.compile(rb"<table:table-cell\b[^>]*\boffice:value-type=[^>]*>")
ODS_ROWS = re.compile(rb'number-rows-repeated="(\d+)"')
ODS_COLUMNS = re.compile(rb'number-columns-repeated="(\d+)"')


def read_workbook(path: Path, sheet: str | None = None) -> tuple[list[str], Any, NDArray[np.intp], list[str]]:
    """Read one sheet of a spreadsheet, whose first row has the names of the columns.

    Parameters
    ----------
    path : Path
        An .xlsx or .ods file.
    sheet : str or None
        The name of the sheet, by default the first one.

    Returns
    -------
    names : list of str
        The names of the columns.
    frame : pandas.DataFrame
        The rows that are not empty.
    rows : array of int
        The number of each row in the sheet, from 1.
    notes : list of str
        What is to be told, in words.
    """
    import pandas

    calamine = import_optional("python_calamine", "reading spreadsheets", needs="python-calamine", extra="cli")
    _refuse_bombs(path)
    try:
        workbook = calamine.load_workbook(str(path))
        sheets = workbook.sheet_names
        if not sheets:
            raise ValueError("it has no sheet")
        if sheet is not None and sheet not in sheets:
            raise ValueError(f"it has no sheet {sheet!r}: there are {list_some(sheets, 12)}")
        found = workbook.get_sheet_by_name(sheets[0] if sheet is None else sheet)
        cells = found.to_python(skip_empty_area=True)
        first = 1 + (found.start[0] if found.start else 0)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError("it is damaged") from error  # What is written in Rust has given up.
    notes = [f"the first of {len(sheets)} sheets, {sheets[0]!r} (--sheet decides)"] if sheet is None else []
    header, body = (cells[0], cells[1:]) if cells else ([], [])
    kept = [index for index, row in enumerate(body) if any(cell != "" for cell in row)]
    columns = {
        position: [body[index][position] for index in kept]
        for position in range(len(header))
        if header[position] != "" or any(row[position] != "" for row in body)
    }
    names = [_to_word(header[position]).strip() for position in columns]
    frame = pandas.DataFrame({position: _to_column(values) for position, values in columns.items()})
    return names, frame, first + 1 + np.array(kept, dtype=np.intp), notes if len(sheets) > 1 else []


def _to_word(cell: Any) -> str:
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell)) if whole else str(cell)


def _to_column(values: list[Any]) -> Any:
    """The cells of a column as numbers, truth values, dates or lengths of time if all are, else as text."""
    present = [value for value in values if value != ""]
    kinds = {type(value) for value in present}
    if present and all(issubclass(kind, date) for kind in kinds):
        return np.array([None if value == "" else value for value in values], dtype="datetime64[us]")
    if kinds == {timedelta}:
        return np.array([None if value == "" else value for value in values], dtype="timedelta64[us]")
    if present and kinds <= {int, float}:
        return np.array([np.nan if value == "" else value for value in values], dtype=np.float64)
    if kinds == {bool} and len(present) == len(values):
        return np.array(values, dtype=np.bool_)
    return np.array([_to_word(value) for value in values], dtype=object)


def _refuse_bombs(path: Path) -> None:
    """Raise a ValueError for a file that unpacks to far more than its size, or whose cells are far apart."""
    limit = min(MOST_UNPACKED, LEAST_UNPACKED + BYTES_PER_BYTE * path.stat().st_size)
    unpacked = 0
    cells = 0
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            with archive.open(entry) as file:
                content = b""
                is_sheet = re.search(r"(worksheets/.*|content)\.xml$", entry.filename) is not None
                rows = columns = 0
                while chunk := file.read(CHUNK):
                    unpacked += len(chunk)
                    if unpacked > limit:
                        raise ValueError(f"it unpacks to more than {limit / 1e6:.0f} MB: save it as CSV")
                    if not is_sheet:
                        continue
                    content += chunk
                    for column, row in PLACE.findall(content):
                        rows, columns = max(rows, int(row)), max(columns, _number_column(column))
                    if entry.filename.endswith("content.xml"):
                        cells += sum(map(_count_cells, ODS_ROW.finditer(content)))
                    end = content.rfind(b"</table:table-row>" if entry.filename.endswith("content.xml") else b"<")
                    content = content[max(end, 0) :]
                cells = max(cells, rows * columns)
    if cells > MOST_CELLS + unpacked:
        raise ValueError(f"it spans {cells:,} cells, nearly all of them empty or the same: save it as CSV")


def _number_column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _count_cells(row: re.Match[bytes]) -> int:
    """How many cells a row of an .ods file stands for."""
    repeated = ODS_ROWS.search(row["head"])
    width = 0
    for cell in ODS_CELL.findall(row["cells"]):
        found = ODS_COLUMNS.search(cell)
        width += int(found[1]) if found else 1
    return width * (int(repeated[1]) if repeated else 1)
