"""Kinds of files, told by their names, and what is refused before anything is read: the standard library is enough."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path
from typing import Any

#: How files are opened that are compressed, by the end of their name.
OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
#: What compresses bytes, by the end of a file's name.
COMPRESS: dict[str, Any] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
#: Ends of the names of compressed files that can be read; not all of them can be written.
COMPRESSED = {*OPENERS, ".zip", ".zst"}
#: Ends of the names of Arrow files.
ARROW = {".arrow", ".feather", ".ipc"}
#: Ends of the names of spreadsheets.
WORKBOOKS = {".xlsx", ".xlsm", ".ods"}
#: Ends of the names of files that are no tables of ours, though they may hold some.
OTHER_KINDS = {
    *(".json", ".jsonl", ".ndjson", ".geojson", ".xml", ".html", ".htm", ".yaml", ".yml", ".pdf", ".docx"),
    *(".xls", ".xlsb", ".orc", ".avro", ".h5", ".hdf5", ".npy", ".npz", ".mat", ".pkl", ".pickle", ".joblib"),
    *(".sqlite", ".db", ".dta", ".sav", ".sas7bdat", ".rds", ".rdata", ".untwist"),
}
#: What a message says of a file of another kind.
READABLE = (
    "tables are read from CSV files (any separator, may be compressed), .xlsx, .ods, Parquet and Arrow files; "
    "pandas can write one of these from most others"
)


def find_kind(path: Path) -> str:
    """Find how a file's name ends, apart from compression.

    Parameters
    ----------
    path : Path
        The file, which need not exist.

    Returns
    -------
    str
        The ending in lower case, say ".csv"; empty if there is none.
    """
    suffixes = [one.lower() for one in path.suffixes]
    return next((one for one in reversed(suffixes) if one not in COMPRESSED), "")


def refuse_absent(path: Path | None) -> None:
    """Raise a ValueError for a file to read that is not there.

    Parameters
    ----------
    path : Path or None
        The file; None where none was named.
    """
    if path is None:
        return
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file")


def refuse_no_table(
    path: Path, separator: str | None = None, encoding: str | None = None, sheet: str | None = None
) -> None:
    """Raise a ValueError for a file that is not there or no table by its name, and for options of other kinds.

    Parameters
    ----------
    path, separator, encoding, sheet
        As for `sheets.read`.
    """
    refuse_absent(path)
    kind = find_kind(path)
    if kind in OTHER_KINDS:
        raise ValueError(f"{path} is a {kind} file: {READABLE}")
    is_workbook = find_kind(path) in WORKBOOKS
    if sheet is not None and not is_workbook:
        raise ValueError(f"{path} is no spreadsheet, and has no sheet {sheet!r}")
    for option, value in (("--separator", separator), ("--encoding", encoding)):
        if value is not None and (is_workbook or find_kind(path) in {".parquet", *ARROW}):
            raise ValueError(f"{path} is no CSV file: leave out {option}")


def refuse_unwritable(path: Path | None) -> None:
    """Raise a ValueError for a file that cannot be written, as not every kind that can be read can.

    Parameters
    ----------
    path : Path or None
        The file; None stands for standard output, which can be written.
    """
    if path is None:
        return
    if path.suffix.lower() in (COMPRESSED - COMPRESS.keys()) | WORKBOOKS:
        raise ValueError(f"{path} cannot be written: choose .csv, .csv.gz, .parquet or .feather")


def name_undo(copy: Path) -> Path:
    """Name the file that takes the labels of a copy back.

    Parameters
    ----------
    copy : Path
        The file with changed labels.

    Returns
    -------
    Path
    """
    return copy.with_name(f"{copy.name}.undo")
