"""The results file: a tidy row per fit, written as soon as it is known, readable whatever interrupted the writing."""

from __future__ import annotations

import csv
from collections.abc import Hashable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from untwist.arguments import Array

__all__ = ["BINS", "Key", "Result", "Row", "Writer", "read", "reliability"]

BINS = 10


class Result(Protocol):
    """A row of a results file: a flat dataclass of numbers and text."""

    @property
    def key(self) -> Hashable:
        """What was run: it is done when its key is in the file."""

    @property
    def error(self) -> str:
        """What went wrong, if anything did."""


R = TypeVar("R", bound=Result)


class Key(NamedTuple):
    """What was run in the arena."""

    data: str
    twist: str
    seed: int
    max_rows: int
    method: str


@dataclass(frozen=True)
class Row:
    """One fit of the arena, judged on clean test labels, or the error it ended with."""

    data: str
    twist: str
    seed: int
    max_rows: int  # training rows, at most
    method: str
    accuracy: float = 0.5  # a method that fails is as good as a coin
    auc: float = 0.5
    log_loss: float = float(np.log(2))
    brier: float = 0.25
    seconds: float = 0.0  # of processor time, for the fit
    reliability: str = ""  # per tenth of predicted P(1), with a space between: rows/sum of P(1)/sum of labels
    version: str = ""
    error: str = ""

    def __post_init__(self) -> None:
        if self.bins.shape != (BINS, 3):
            raise ValueError(f"reliability must be {BINS} times three numbers, got {self.reliability!r}")

    @property
    def key(self) -> Key:
        """What was run."""
        return Key(self.data, self.twist, self.seed, self.max_rows, self.method)

    @property
    def bins(self) -> Array:
        """`reliability` as numbers, BINS x 3; zeros if there is none."""
        if not self.reliability:
            return np.zeros((BINS, 3))
        return np.array([[float(number) for number in one.split("/")] for one in self.reliability.split(" ")])


def reliability(p: Array, y: Array) -> str:
    """Rows, sum of predictions and sum of clean labels in each tenth of the predictions.

    >>> reliability(np.array([0.02, 0.04, 1.0]), np.array([0, 1, 1])).split(" ")[0]
    '2/0.06/1'
    """
    tenth = np.minimum((p * BINS).astype(int), BINS - 1)
    sums = [np.bincount(tenth, weights, minlength=BINS) for weights in (np.ones_like(p), p, y)]
    return " ".join(f"{n:g}/{sum_p:.6g}/{sum_y:g}" for n, sum_p, sum_y in zip(*sums, strict=True))


KINDS = {"int": int, "float": float, "str": str}


def _header(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind)]


def read(path: Path, kind: type[R]) -> list[R]:
    """The rows of a file, none if there is no file; of rows with the same key the last one counts."""
    if not path.exists():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read()
        lines = [next(csv.reader([line]), []) for line in text.split("\n")[:-1]]  # a torn last line is no row
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is no results file: choose another file") from error
    if "\n" not in text and not ",".join(_header(kind)).startswith(text):
        raise ValueError(f"{path} is no results file: choose another file")  # not a header that was torn
    if lines and lines[0] != _header(kind):
        raise ValueError(f"{path} is no results file of this version: choose another file")
    kinds = [KINDS[str(field.type)] for field in fields(kind)]  # type: ignore[arg-type]  # a dataclass, says Result
    rows = {}
    for number, cells in enumerate(lines[1:], start=2):
        try:
            row = kind(*(kind(cell) for kind, cell in zip(kinds, cells, strict=True)))
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is no row of results: {','.join(cells)[:60]!r}") from error
        rows[row.key] = row
    return list(rows.values())


class Writer(Generic[R]):
    """Appends rows, after the last whole one."""

    def __init__(self, path: Path, kind: type[R]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes() if path.exists() else b""
        self._file = path.open("r+" if content else "w", encoding="utf-8", newline="", buffering=1)
        self._file.truncate(content.rfind(b"\n") + 1)  # drops a torn last line
        self._file.seek(0, 2)
        self._csv = csv.writer(self._file, lineterminator="\n")
        if b"\n" not in content:
            self._csv.writerow(_header(kind))

    def add(self, row: R) -> None:
        """Write the row; it is in the file when this returns."""
        cells = astuple(row)  # type: ignore[call-overload]
        plain = [cell.replace("\r", " ").replace("\n", " ") if isinstance(cell, str) else cell for cell in cells]
        self._csv.writerow([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in plain])
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
