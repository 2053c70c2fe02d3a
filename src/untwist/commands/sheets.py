"""Tables in files: CSV (any separator, compressed or not), Parquet and Arrow; what is wrong with one, in a sentence.

The cells of a CSV file are read as text; `columns` says what they are.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.files import write_whole
from untwist.text import printable, unlike_a_formula

__all__ = [
    "ARROW",
    "COMPRESS",
    "OPENERS",
    "Sheet",
    "first_line",
    "kind",
    "pandas_here",
    "read",
    "refuse_packing",
    "write",
]

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
COMPRESS: dict[str, Any] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
COMPRESSED = {*OPENERS, ".zip", ".zst"}
LEAST_MEMORY, MEMORY_PER_BYTE = 8 << 30, 200  # what reading a file may take
ARROW = {".arrow", ".feather", ".ipc"}
QUOTED = re.compile(r'(^|[,;\t|\r\n]) *"(?:[^"]|"")*(?:"|$)')
NEEDED = 'needs pandas and pyarrow: pip install "untwist[cli]"'


def pandas_here() -> Any:
    """The module pandas, or one line that says what to install."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"reading tables {NEEDED}") from error
    return pandas


@dataclass(frozen=True)
class Sheet:
    """A table as a file has it: text from CSV, typed from Parquet and Arrow."""

    path: Path
    frame: Any
    separator: str | None = None  # None: no CSV
    encoding: str = "utf-8"

    @cached_property
    def lines(self) -> NDArray[np.intp]:
        """Where each row begins: its line in a CSV file, the header being line 1; else its number, from 1."""
        if self.separator is None:
            return np.arange(1, len(self.frame) + 1)
        with _opened(self.path, self.encoding) as file, _any_length():
            starts, before = [], 0
            reader = csv.reader(file, delimiter=self.separator, skipinitialspace=True)
            for cells in reader:
                if cells or len(self.frame.columns) == 1:
                    starts.append(before + 1)
                before = reader.line_num
        return np.array(starts[1 : len(self.frame) + 1])

    @property
    def place(self) -> str:
        """What a row is called."""
        return "row" if self.separator is None else "line"

    def with_labels(self, label: str, rows: NDArray[np.intp], values: Iterable[Any]) -> bytes:
        """The file again, with other labels in these rows and nothing else changed."""
        new = dict(zip(rows.tolist(), values, strict=True))
        return self._csv_with(label, new) if self.separator is not None else self._arrow_with(label, new)

    def _csv_with(self, label: str, new: dict[int, Any]) -> bytes:
        with _opened(self.path, self.encoding) as file:
            lines = list(file)  # as `lines` counts them: a line ends with \r or \n and with no other sign
        at, place = self.lines, list(self.frame.columns).index(label)
        for row, value in new.items():
            first = int(at[row]) - 1
            end = int(at[row + 1]) - 1 if row + 1 < len(at) else len(lines)
            with _any_length():
                cells = next(csv.reader(lines[first:end], delimiter=self.separator or ",", skipinitialspace=True))
            if len(cells) <= place:
                raise ValueError(f"{self.path}, line {first + 1} has no cell for {label!r}: it cannot be rewritten")
            cells[place] = str(value)
            text = io.StringIO()  # cells with the line terminator in them are quoted: it has to be there
            csv.writer(text, delimiter=self.separator or ",", lineterminator="\r\n").writerow(cells)
            ending = lines[first:end][-1]
            written = text.getvalue().removesuffix("\r\n") + ending[len(ending.rstrip("\r\n")) :]
            lines[first:end] = [written, *[""] * (end - first - 1)]
        return "".join(lines).encode(self.encoding)

    def _arrow_with(self, label: str, new: dict[int, Any]) -> bytes:
        import pyarrow
        from pyarrow import feather, parquet

        as_parquet = kind(self.path) == ".parquet"
        table = _arrow_table(self.path)
        place = table.column_names.index(label)
        dtype, values = table.schema.field(place).type, table.column(place).to_pylist()
        for row, value in new.items():
            values[row] = value
        coded = pyarrow.types.is_dictionary(dtype)
        column = pyarrow.array(values, type=dtype.value_type if coded else dtype)
        table = table.set_column(
            place, table.schema.field(place), column.dictionary_encode().cast(dtype) if coded else column
        )
        out = pyarrow.BufferOutputStream()
        (parquet.write_table if as_parquet else feather.write_feather)(table, out)
        return bytes(out.getvalue())


def read(path: Path, separator: str | None = None, encoding: str = "utf-8") -> Sheet:
    """The table in a file."""
    pandas = pandas_here()
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file")
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise ValueError(f"{encoding!r} is no encoding: try utf-8 or latin-1") from error
    ending = kind(path)
    try:
        with _bounded_memory(path):
            if ending == ".parquet" or ending in ARROW:
                separator = None
                frame = _arrow_table(path).to_pandas()
                names = [str(name) for name in frame.columns]
                frame = frame.reset_index(drop=True)
            else:
                separator = separator or _separator(path, encoding)
                options: dict[str, Any] = {"sep": separator, "encoding": encoding, "skipinitialspace": True}
                options |= {"dtype": str, "keep_default_na": False, "na_filter": False}
                first = pandas.read_csv(path, header=None, nrows=1, **options)
                names = [str(name).strip() for name in first.iloc[0]]
                one = len(names) == 1  # where an empty line is a row
                frame = pandas.read_csv(path, skip_blank_lines=not one, **options)
                if not isinstance(frame.index, pandas.RangeIndex):
                    raise ValueError("rows have more cells than the header has names")
                while one and len(frame) and frame.iloc[-1, 0] == "":
                    frame = frame.iloc[:-1]
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ValueError(f"{path} is not {encoding} text (byte {byte:#x}): try --encoding latin-1") from error
    except ImportError as error:
        raise ImportError(f"reading {path} {NEEDED}") from error
    except MemoryError as error:
        most = f"{_most_memory(path) / 1e9:.0f} GB of memory"
        raise ValueError(f"{path} needs more than {most}: unpack or split it if it is what it seems") from error
    except Exception as error:  # of pandas' and pyarrow's own kinds, and whatever else bytes can make them raise
        raise ValueError(f"{path} cannot be read as a table: {first_line(error)}") from error
    if repeated := sorted(name for name, times in Counter(names).items() if times > 1):
        raise ValueError(f"{path} has several columns {repeated[0]!r}: rename all but one")
    frame.columns = names
    if not frame.size:
        raise ValueError(f"{path} has no {'columns' if len(frame) else 'rows'}")
    return Sheet(path, frame, separator, encoding)


def _arrow_table(path: Path) -> Any:
    """The table of a Parquet or Arrow file, checked: pyarrow follows offsets of foreign bytes wherever they lead."""
    from pyarrow import feather, parquet

    table = parquet.read_table(path) if kind(path) == ".parquet" else feather.read_table(path, memory_map=False)
    table.validate(full=True)
    return table


def _most_memory(path: Path) -> int:
    return LEAST_MEMORY + MEMORY_PER_BYTE * path.stat().st_size


@contextmanager
def _bounded_memory(path: Path) -> Iterator[None]:
    """A MemoryError for a file that unpacks to far more than its size, before the machine comes to a halt."""
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        usual = resource.getrlimit(resource.RLIMIT_AS)
        limits = [one for one in (used + _most_memory(path), *usual) if one != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_AS, (min(limits), usual[1]))
    except (ImportError, OSError, ValueError):  # where there are no such limits
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, usual)


def first_line(error: BaseException) -> str:
    """What an error has to say, in short."""
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__


def kind(path: Path) -> str:
    """How a file's name ends, apart from compression."""
    suffixes = [one.lower() for one in path.suffixes]
    return next((one for one in reversed(suffixes) if one not in COMPRESSED), "")


@contextmanager
def _any_length() -> Iterator[None]:
    """Cells of any length while it lasts, as pandas reads them; what is still no CSV is a ValueError."""
    usual = csv.field_size_limit(sys.maxsize)
    try:
        yield
    except csv.Error as error:
        raise ValueError(f"this is no CSV: {error}") from error
    finally:
        csv.field_size_limit(usual)


def _opened(path: Path, encoding: str) -> Any:
    if path.suffix.lower() in COMPRESSED - OPENERS.keys():
        raise ValueError(f"{path.suffix} files can be read but not rewritten: unpack {path.name} first")
    return OPENERS.get(path.suffix.lower(), open)(path, "rt", encoding=encoding, newline="")


def _separator(path: Path, encoding: str) -> str:
    """The sign that the first line has most of, outside of quotes."""
    if path.suffix.lower() in COMPRESSED - OPENERS.keys():
        return ","
    with _opened(path, encoding) as file:
        text = QUOTED.sub(r"\1", file.read(1 << 20))
    return max(",;\t|", key=re.split(r"[\r\n]", text, maxsplit=1)[0].count)


def refuse_packing(path: Path) -> None:
    """Not every file that can be read can be written."""
    if path.suffix.lower() in COMPRESSED - COMPRESS.keys():
        raise ValueError(f"{path} cannot be written: choose .csv, .csv.gz, .parquet or .feather")


def _as_csv(frame: Any) -> str:
    text: str = frame.to_csv(index=False)
    return text if "\r" not in text else frame.to_csv(index=False, quoting=csv.QUOTE_ALL)  # pandas forgets to quote it


def write(frame: Any, path: Path | None, *, for_people: bool = False) -> None:
    """As CSV on standard output, or to a file of the kind that its name says; for people without formulas in CSV."""
    if path is None:
        text = _as_csv(frame)
        print(printable(text) if sys.stdout is not None and sys.stdout.isatty() else text, end="")
        return
    refuse_packing(path)
    ending, packed = kind(path), path.suffix.lower()
    if ending == ".parquet" or ending in ARROW:
        out = io.BytesIO()
        (frame.to_parquet if ending == ".parquet" else frame.reset_index(drop=True).to_feather)(out)
        content = out.getvalue()
    else:
        frame = frame.map(unlike_a_formula).rename(columns=unlike_a_formula) if for_people else frame
        content = _as_csv(frame).encode()
    write_whole(path, COMPRESS[packed](content) if packed in COMPRESS else content)
