"""Files of rows: a CSV line as soon as it is known, readable whatever interrupted the writing."""

from __future__ import annotations

import csv
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

__all__ = ["Result", "Writer", "list_columns", "read"]


class Result(Protocol):
    """A row of a results file: a flat dataclass of numbers and text."""

    @property
    def key(self) -> Hashable:
        """What was run: it is done when its key is in the file."""

    @property
    def error(self) -> str:
        """What went wrong, if anything did."""


R = TypeVar("R", bound=Result)

KINDS = {"int": int, "float": float, "str": str}


def list_columns(kind: type[Any]) -> list[str]:
    """List the columns of a file whose rows are of that dataclass.

    Parameters
    ----------
    kind : type
        A dataclass, see `Result`.

    Returns
    -------
    list of str
    """
    return [field.name for field in fields(kind)]


def read(path: Path, kind: type[R]) -> list[R]:
    """Read the rows of a file.

    Parameters
    ----------
    path : Path
        The file.
    kind : type
        What its rows are, see `Result`.

    Returns
    -------
    list
        None where there is no file; of rows with the same key the last one.
    """
    if not path.exists():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read()
        whole_lines = text.split("\n")[:-1]  # A torn last line is no row.
        lines = [next(csv.reader([line]), []) for line in whole_lines]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is no results file: choose another file") from error
    columns = list_columns(kind)
    if "\n" not in text and not ",".join(columns).startswith(text):  # It is not a header that was torn.
        raise ValueError(f"{path} is no results file: choose another file")
    if lines and lines[0] != columns:
        raise ValueError(f"{path} is no results file of this version: choose another file")
    # Result asks for a dataclass, which a protocol cannot say.
    converters = [KINDS[str(field.type)] for field in fields(kind)]  # type: ignore[arg-type]
    rows = {}
    for number, cells in enumerate(lines[1:], start=2):
        try:
            row = kind(*(convert(cell) for convert, cell in zip(converters, cells, strict=True)))
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is no row of results: {','.join(cells)[:60]!r}") from error
        rows[row.key] = row
    return list(rows.values())


class Writer:
    """Writes rows to a file, each at once; it goes on after the last whole row, or begins anew.

    Parameters
    ----------
    path : Path
        The file; its folder is made if need be.
    columns : sequence of str
        The header.
    resume : bool
        Whether rows that are there stay.
    comment : str
        A line above the header of a new file.
    """

    def __init__(self, path: Path, columns: Sequence[str], *, resume: bool = True, comment: str = "") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes() if resume and path.exists() else b""
        self._file = path.open("r+" if content else "w", encoding="utf-8", newline="", buffering=1)
        self._file.truncate(content.rfind(b"\n") + 1)  # A torn last line is dropped.
        self._file.seek(0, 2)
        self._csv = csv.writer(self._file, lineterminator="\n")
        if b"\n" not in content:
            if comment:
                self._file.write(f"# {comment}\n")
            self._csv.writerow(columns)

    def add(self, cells: Iterable[object]) -> None:
        """Write a row; it is in the file when this returns.

        Parameters
        ----------
        cells : iterable
            One for each column.
        """
        self._csv.writerow([_format(cell) for cell in cells])
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _format(cell: object) -> object:
    if isinstance(cell, str):
        return cell.replace("\r", " ").replace("\n", " ")
    return f"{cell:.6g}" if isinstance(cell, float) else cell
