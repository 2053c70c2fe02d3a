"""Tables in files: CSV (any separator, compressed or not), spreadsheets, Parquet and Arrow.

What is wrong with one is said in a sentence.

The cells of a CSV file are read as text; `columns` says what they are.
"""

from __future__ import annotations

import codecs
import csv
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.commands.kinds import (
    ARROW,
    COMPRESSED,
    OPENERS,
    READABLE,
    WORKBOOKS,
    find_kind,
    refuse_no_table,
    refuse_unwritable,
)
from untwist.commands.names import find_unnamed, name_columns
from untwist.commands.rewriting import quote_cell, replace_cells
from untwist.commands.workbooks import read_workbook
from untwist.data.arrow_files import (
    UNNAMED_INDEX,
    describe_error,
    name_faults,
    read_feather,
    read_parquet,
    to_exact_frame,
    to_frame,
)
from untwist.data.memory import UnreadableFile, limit_memory
from untwist.files.whole_files import open_whole
from untwist.text import for_spreadsheet, for_terminal

#: A cell in quotes, with what comes before it.
QUOTED = re.compile(r'(^|[,;\t|\r\n]) *"(?:[^"]|"")*(?:"|$)')
#: How files of text begin that say their encoding; those of UTF-32 begin with the bytes of UTF-16.
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: How encodings are called that take several bytes for every character.
WIDE = ("utf-16", "utf-32")
#: What a decoder puts where there is no character.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
#: Control characters that text does not hold. A zero is left out, as cells of some tables hold one.
CONTROL = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]")
#: How a table in JSON begins: with an object, or with a list of objects or of lists.
JSON = re.compile(r'\s*(\{\s*"|\[\s*(\{|\[\s*["\d-]))')
#: The encodings that are tried, in this order, where a file does not say its own.
ENCODINGS = ("utf-8", "cp1252", "latin-1")
#: The line by which a file tells Excel its separator.
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?[,;\t|]*', re.IGNORECASE)
#: What pandas says of a row that has too many cells.
TOO_MANY_CELLS = re.compile(r"Expected (\d+) fields in line \d+, saw (\d+)")
#: What pandas says of a quote that is never closed, by either of its ways of reading.
UNCLOSED_QUOTE = ("EOF inside string", "unexpected end of data")
#: What a message says that asks for the packages that read tables.
NEEDED = 'needs pandas and pyarrow: pip install "untwist[cli]"'


def import_pandas() -> Any:
    """Import pandas, or say in one line what to install.

    Returns
    -------
    module
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"reading tables {NEEDED}") from error
    return pandas


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table as a file has it: text from CSV, typed from spreadsheets, Parquet and Arrow; with words about it."""

    path: Path
    frame: Any
    separator: str | None = None  # None says that the file is no CSV.
    encoding: str = "utf-8"
    lines_before: int = 0  # Those before the header of a CSV file.
    rows: NDArray[np.intp] | None = None  # The number of each row in a spreadsheet.
    notes: list[str] = field(default_factory=list)
    unnamed: tuple[str, ...] = ()  # What columns are called that have no name in the file.

    @cached_property
    def lines(self) -> NDArray[np.intp]:
        """The number by which a person finds each row: see `name_row`."""
        if not self.has_lines:
            return np.arange(1, len(self.frame) + 1) if self.rows is None else self.rows
        # A line of blanks alone is no row, unless there is one column only.
        starts = [
            line
            for line, _, text in _iterate_records(self.path, self.encoding, self.separator or ",")
            if len(self.frame.columns) == 1 or text.strip(" \t\r\n")
        ]
        first = 1 + self.lines_before
        return np.array(starts[first : len(self.frame) + first])

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.frame.columns)

    @property
    def head(self) -> Any:
        """A frame of no rows with the names and types of the columns."""
        return self.frame.iloc[:0]

    def column(self, name: str) -> Any:
        """Return a column; its index are the rows, from 0."""
        return self.frame[name]

    def frames(self, *, with_input: bool = False) -> Iterator[tuple[Any, Any]]:
        """Return all rows in one frame, and what is to be written of them: the cells as the file has them, or none."""
        if not with_input:
            yield self.frame, self.frame[[]]
        elif not _is_arrow(self.path):
            yield self.frame, self._call_as_file(self.frame)
        else:
            with limit_memory(self.path), name_faults(self.path):
                exact = to_exact_frame(_read_arrow(self.path))
            yield self.frame, exact

    def _call_as_file(self, frame: Any) -> Any:
        """The frame with columns called as the file calls them, unless several have no name there."""
        return frame.rename(columns=dict.fromkeys(self.unnamed, "")) if len(self.unnamed) == 1 else frame

    def _find_name_in_file(self, name: str) -> str:
        """What the file calls a column."""
        return "" if name in self.unnamed else name

    def name_row(self, row: int) -> str:
        """Say which row one is, from 0, as a person finds it in the file, and as all commands and pages call it.

        In a CSV file that is the line where it begins, as an editor counts them, the header being line 1; in a
        spreadsheet the row that the spreadsheet shows; in any other file the row, from 1.
        """
        return f"{self.row_word} {self.lines[row]}"

    @property
    def has_lines(self) -> bool:
        """Whether rows are told by lines: those of an archive are not counted."""
        return self.separator is not None and self.path.suffix.lower() not in COMPRESSED - OPENERS.keys()

    @property
    def row_word(self) -> str:
        """What a number of `lines` counts: "line" in a CSV file, else "row"."""
        return "line" if self.has_lines else "row"

    def replace_labels(
        self, label: str, rows: NDArray[np.intp], values: Iterable[Any], *, as_written: bool = False
    ) -> tuple[bytes, list[str]]:
        """Write the file again, with other labels in some rows and nothing else changed.

        Parameters
        ----------
        label : str
            The column of the labels.
        rows : array of int
            The rows to change, from 0.
        values : iterable
            The new label of each of them.
        as_written : bool, default False
            Whether labels are texts that this has returned, and become cells of a CSV file as they are.

        Returns
        -------
        content : bytes
            What the new file holds, without compression; a spreadsheet becomes CSV.
        before : list of str
            The labels that these rows had as the file, or of a spreadsheet its copy, has them: of CSV with quotes.
        """
        new = dict(zip(rows.tolist(), values, strict=True))
        if self.rows is not None:
            labels = self.frame[label].astype(object)
            before = [quote_cell(str(value), ",") for value in labels.iloc[list(new)]]
            labels.iloc[list(new)] = list(new.values())
            copy = self._call_as_file(self.frame.assign(**{label: labels}))
            return copy.to_csv(index=False).encode(), before
        if self.separator is None:
            return self._rewrite_arrow(label, new)
        return self._rewrite_csv(label, new, as_written)

    def _rewrite_csv(self, label: str, new: dict[int, Any], as_written: bool) -> tuple[bytes, list[str]]:
        with _open(self.path) as file:
            content = file.read()
        column = list(self.frame.columns).index(label)
        texts = {row: (str(self.frame.iat[row, column]), str(value)) for row, value in new.items()}
        self._check_lines(new)
        with _allow_any_length():
            lines = self.lines.tolist()
            separator = self.separator or ","
            return replace_cells(content, texts, lines, column, separator, self.encoding, as_written=as_written)

    def _check_lines(self, rows: Iterable[int]) -> None:
        """Raise a ValueError where rows that are to be changed are not on the lines that they are thought to be on."""
        row_on_line = {int(self.lines[row]): row for row in rows}
        for line, cells, _ in _iterate_records(self.path, self.encoding, self.separator or ","):
            if line not in row_on_line:
                continue
            row = row_on_line[line]
            there = [cell.strip() for cell in cells if cell.strip()]
            if there != [text for one in self.frame.iloc[row].tolist() if (text := str(one).strip())]:
                raise ValueError(f"{self.name_row(row)} holds other cells than were read: it cannot be rewritten")

    def _rewrite_arrow(self, label: str, new: dict[int, Any]) -> tuple[bytes, list[str]]:
        import pyarrow
        from pyarrow import feather, parquet

        as_parquet = find_kind(self.path) == ".parquet"
        table = _read_arrow(self.path)
        position = table.column_names.index(self._find_name_in_file(label))
        field = table.schema.field(position)
        values = table.column(position).to_pylist()
        before = [str(values[row]) for row in new]
        is_coded = pyarrow.types.is_dictionary(field.type)
        kind = field.type.value_type if is_coded else field.type
        try:
            for row, value in new.items():
                values[row] = pyarrow.scalar(value).cast(kind).as_py()
        except pyarrow.ArrowException as error:
            raise ValueError(f"column {label!r} holds {kind}, and no other label: {describe_error(error)}") from error
        column = pyarrow.array(values, type=kind)
        if is_coded:
            # Categories that no row bears, and their order, stay.
            known = table.unify_dictionaries().column(position).combine_chunks().dictionary.to_pylist()
            codes = {value: code for code, value in enumerate(dict.fromkeys([*known, *values])) if value is not None}
            column = pyarrow.DictionaryArray.from_arrays(
                pyarrow.array([codes.get(value) for value in values], type=field.type.index_type),
                pyarrow.array(list(codes), type=kind),
                ordered=field.type.ordered,
            )
        table = table.set_column(position, field, column)
        out = pyarrow.BufferOutputStream()
        (parquet.write_table if as_parquet else feather.write_feather)(table, out)
        return bytes(out.getvalue()), before


def read(path: Path, separator: str | None = None, encoding: str | None = None, sheet: str | None = None) -> Sheet:
    """Read the table in a file; what is wrong with it is a ValueError of one sentence.

    Parameters
    ----------
    path : Path
        A CSV file, a spreadsheet, a Parquet or an Arrow file.
    separator : str, optional
        What is between the cells of a CSV file, by default the likeliest.
    encoding : str, optional
        That of a CSV file, by default what the file says, or the first one that makes sense of it.
    sheet : str, optional
        That of a spreadsheet, by default the first one.

    Returns
    -------
    Sheet
    """
    refuse_no_table(path, separator, encoding, sheet)
    import_pandas()
    is_workbook = find_kind(path) in WORKBOOKS
    with limit_memory(path), name_faults(path), _name_text_faults(path):
        if is_workbook:
            names, frame, rows, notes = read_workbook(path, sheet)
            found = Sheet(path, frame, rows=rows, notes=[f"{path.name}: {note}" for note in notes])
        elif _is_arrow(path):
            table = _read_arrow(path)
            _refuse_repeated(path, table.column_names)
            frame = to_frame(table)
            names = list(frame.columns)
            found = Sheet(path, frame, notes=note_index(path, table.column_names))
        else:
            names, found = _read_csv(path, separator, encoding)
            frame = found.frame
    named = name_columns(names)
    _refuse_repeated(path, named)
    frame.columns = named
    if not frame.size:
        raise ValueError(f"{path} has no {'columns' if len(frame) else 'rows'}")
    return replace(found, unnamed=find_unnamed(names))


def _refuse_repeated(path: Path, names: Iterable[str]) -> None:
    if repeated := sorted(name for name, times in Counter(names).items() if times > 1):
        what = repr(repeated[0]) if repeated[0] else "without a name"
        raise UnreadableFile(f"{path} has several columns {what}: rename all but one")


def note_index(path: Path, names: Iterable[str]) -> list[str]:
    """Say that an index of pandas is left out, if it has no name; one with a name is a column like others.

    Parameters
    ----------
    path : Path
        The file.
    names : iterable of str
        Its columns.

    Returns
    -------
    list of str
        A note, or nothing.
    """
    has_one = any(UNNAMED_INDEX.fullmatch(name) for name in names)
    return [f"{path.name}: the index has no name and is left out"] if has_one else []


def _read_csv(path: Path, separator: str | None, encoding: str | None) -> tuple[list[str], Sheet]:
    """The names of the columns, and the table, in the encoding given or in the first one that makes sense of it."""
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise UnreadableFile(
            f"--separator must be one character and no quote or line end, got {separator!r}: leave it out, and the "
            "likeliest is taken (a tab is $'\\t' in most shells)"
        )
    start = _read_start(path)
    told = _tell_encoding(start)
    if encoding is not None:
        _check_encoding(path, encoding, told)
    elif JSON.match(start.decode(told or "latin-1", errors="replace")):
        raise UnreadableFile(f"{path} holds JSON: {READABLE}")
    said = encoding or told
    for one in (said,) if said else ENCODINGS:
        try:
            guess, lines_before = _guess_separator(path, one)
            with _name_csv_faults(path, separator or guess, one):
                names, frame = _read_csv_frame(path, separator or guess, one, lines_before)
        except UnicodeDecodeError as error:
            if said or one == ENCODINGS[-1] or b"\0" in error.object:
                raise
            continue
        notes = []
        if encoding is None and one not in ("utf-8", "utf-8-sig"):
            notes = [f"{path.name} is no UTF-8 and is read as {one} (--encoding decides)"]
        return names, Sheet(path, frame, separator or guess, one, lines_before, notes=notes)
    raise AssertionError("every file is latin-1")


def _read_start(path: Path) -> bytes:
    """The first bytes of a file, unpacked; none of an archive, which only pandas opens."""
    if path.suffix.lower() in COMPRESSED - OPENERS.keys():
        return b""
    with OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
        return bytes(file.read(4096))


def _tell_encoding(start: bytes) -> str | None:
    """The encoding that the first bytes of a file tell; None if they tell none."""
    for mark, encoding in MARKS.items():
        if start.startswith(mark):
            return encoding
    for encoding, zeros, others in (("utf-16-le", start[1::2], start[::2]), ("utf-16-be", start[::2], start[1::2])):
        # Every second byte of most text in UTF-16 is 0, and of a line end in any.
        text = codecs.getincrementaldecoder(encoding)("replace").decode(start)
        ends_lines = b"\0" in start and "\n" in text and not set(text) & {"\0", REPLACEMENT}
        # A zero beside a line end in a quoted cell of UTF-8 looks like a line end of UTF-16, but other line ends have
        # none beside them.
        is_utf8_with_zeros = b'"' in start and _is_plain_utf8(start) and 2 * text.count("\n") <= start.count(b"\n")
        if (ends_lines and not is_utf8_with_zeros) or (zeros.count(0) > 0.5 * len(zeros) and not others.count(0)):
            return encoding
    return None


def _is_plain_utf8(start: bytes) -> bool:
    """Whether bytes, the last character perhaps cut off, are UTF-8 with no controls but line ends, tabs and zeros."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return not CONTROL.search(text)


def _check_encoding(path: Path, encoding: str, told: str | None) -> None:
    """Raise a ValueError for an encoding that there is not, or that a file in UTF-16 cannot have."""
    try:
        given = codecs.lookup(encoding).name
    except LookupError as error:
        raise UnreadableFile(f"{encoding!r} is no encoding: try utf-8 or latin-1") from error
    if told is not None and told.startswith(WIDE) and not given.startswith(WIDE):
        raise UnreadableFile(f"{path} is {told} text, not {encoding}: try --encoding {told}, or leave it out")


@contextmanager
def _name_text_faults(path: Path) -> Iterator[None]:
    """What goes wrong with text, and what is missing to read the file, each with advice."""
    try:
        yield
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        advice = _tell_encoding(error.object) or ("utf-16" if b"\0" in error.object else "latin-1")
        raise UnreadableFile(
            f"{path} is not {error.encoding} text (byte {byte:#x}): try --encoding {advice}"
        ) from error
    except ImportError as error:
        if "calamine" in str(error):
            raise
        raise ImportError(f"reading {path} {NEEDED}") from error


@contextmanager
def _name_csv_faults(path: Path, separator: str, encoding: str) -> Iterator[None]:
    """What pandas cannot read as CSV, each with advice."""
    pandas = import_pandas()
    try:
        yield
    except pandas.errors.EmptyDataError as error:
        raise UnreadableFile(f"{path} is empty: the first line of a table names its columns") from error
    except pandas.errors.ParserError as error:
        if found := TOO_MANY_CELLS.search(str(error)):
            expected, seen = int(found[1]), int(found[2])
            raise UnreadableFile(
                f"{path}: {_find_long_row(path, separator, encoding, expected)} has {seen} cells, not {expected}: put "
                f"quotes around a cell that holds {separator!r}, or say by --separator what is between cells"
            ) from error
        if any(words in str(error) for words in UNCLOSED_QUOTE):
            raise UnreadableFile(
                f"{path}: a quote that opens a cell is never closed: close it, or write quotes within cells twice"
            ) from error
        raise


def _find_long_row(path: Path, separator: str, encoding: str, most: int) -> str:
    """Say where the first row begins that has more cells than others."""
    if path.suffix.lower() in COMPRESSED - OPENERS.keys():
        return "a row"  # Lines of an archive are not counted.
    records = _iterate_records(path, encoding, separator)
    return next((f"line {line}" for line, cells, _ in records if len(cells) > most), "a row")


def _iterate_records(path: Path, encoding: str, separator: str) -> Iterator[tuple[int, list[str], str]]:
    """Yield the line on which each record of a CSV file begins, from 1, its cells and its text."""
    with _open(path, encoding) as file, _allow_any_length():
        read: list[str] = []

        def watch() -> Iterator[str]:
            for line in file:
                read.append(line)
                yield line

        reader = csv.reader(watch(), delimiter=separator, skipinitialspace=True)
        before = 0
        for cells in reader:
            yield before + 1, cells, "".join(read)
            before = reader.line_num
            read.clear()


def _is_arrow(path: Path) -> bool:
    """Whether pyarrow reads and writes the file."""
    return find_kind(path) in {".parquet", *ARROW}


def _read_arrow(path: Path) -> Any:
    """The table of a Parquet or an Arrow file, checked."""
    return read_parquet(path) if find_kind(path) == ".parquet" else read_feather(path)


def _read_csv_frame(path: Path, separator: str, encoding: str, lines_before: int) -> tuple[list[str], Any]:
    """The names of the columns as the file has them, and the cells as text."""
    pandas = import_pandas()
    options: dict[str, Any] = {
        "sep": separator,
        "engine": "c" if separator.isascii() else "python",  # Else pandas warns of its choice.
        "encoding": encoding,
        "skipinitialspace": True,
        "dtype": str,
        "keep_default_na": False,
        "na_filter": False,
        "skiprows": lines_before,
    }
    header = pandas.read_csv(path, header=None, nrows=1, **options)
    names = [str(name).strip() for name in header.iloc[0]]
    one_column = len(names) == 1  # An empty line is a row then.
    frame = pandas.read_csv(path, skip_blank_lines=not one_column, **options)
    if not isinstance(frame.index, pandas.RangeIndex):
        raise ValueError("rows have more cells than the header has names")
    while one_column and len(frame) and frame.iloc[-1, 0] == "":
        frame = frame.iloc[:-1]
    return names, frame


@contextmanager
def _allow_any_length() -> Iterator[None]:
    """Cells of any length while it lasts, as pandas reads them; what is still no CSV is a ValueError."""
    usual = csv.field_size_limit(sys.maxsize)
    try:
        yield
    except csv.Error as error:
        raise ValueError(f"this is no CSV: {error}") from error
    finally:
        csv.field_size_limit(usual)


def _open(path: Path, encoding: str | None = None) -> Any:
    """Open a file, unpacked; without an encoding as bytes."""
    if path.suffix.lower() in COMPRESSED - OPENERS.keys():
        raise ValueError(f"{path.suffix} files can be read but not rewritten: unpack {path.name} first")
    how = {"mode": "rb"} if encoding is None else {"mode": "rt", "encoding": encoding, "newline": ""}
    return OPENERS.get(path.suffix.lower(), open)(path, **how)


def _guess_separator(path: Path, encoding: str) -> tuple[str, int]:
    """The separator that the first line says, or has most of outside of quotes; and the lines before the header."""
    if path.suffix.lower() in COMPRESSED - OPENERS.keys():
        return ",", 0
    with _open(path, encoding) as file:
        text = file.read(1 << 20)
    first = re.split(r"[\r\n]", text, maxsplit=1)[0]
    if said := SEPARATOR_LINE.fullmatch(first):
        return said[1], 1
    return max(",;\t|", key=re.split(r"[\r\n]", QUOTED.sub(r"\1", text), maxsplit=1)[0].count), 0


def write(frame: Any, path: Path | None, *, for_people: bool = False) -> None:
    """Write a frame as CSV on standard output, or to a file of the kind that its name says.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    path : Path or None
        The file; None stands for standard output.
    for_people : bool
        Whether cells of a CSV file that a spreadsheet would take for a formula get a quote before them.
    """
    with ExitStack() as stack:
        open_writer(path, stack, for_people=for_people)(frame)


def open_writer(path: Path | None, stack: ExitStack, *, for_people: bool = False) -> Callable[[Any], None]:
    """Open what writes one frame after the other into one table.

    Parameters
    ----------
    path, for_people
        As for `write`.
    stack : contextlib.ExitStack
        The file takes the place of an older one when the stack ends without an error.

    Returns
    -------
    callable
        It takes a frame. All frames of an Arrow or a Parquet file have the types of the first one.
    """
    if path is None:
        return _open_csv_writer(_print, for_people=False)
    refuse_unwritable(path)
    file = stack.enter_context(open_whole(path))
    if _is_arrow(path):
        return _open_arrow_writer(file, path, stack)
    open_packed = OPENERS.get(path.suffix.lower())
    stream = file if open_packed is None else stack.enter_context(open_packed(file, "wb"))
    return _open_csv_writer(lambda text: stream.write(text.encode()), for_people)


def _print(text: str) -> None:
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    print(for_terminal(text) if on_terminal else text, end="")


def _open_csv_writer(out: Callable[[str], Any], for_people: bool) -> Callable[[Any], None]:
    begun = False

    def write_frame(frame: Any) -> None:
        nonlocal begun
        if for_people:
            frame = frame.map(for_spreadsheet).rename(columns=for_spreadsheet)
        text: str = frame.to_csv(index=False, header=not begun)
        if "\r" in text:  # pandas would write such a cell without quotes.
            text = frame.to_csv(index=False, header=not begun, quoting=csv.QUOTE_ALL)
        out(text)
        begun = True

    return write_frame


def _open_arrow_writer(file: Any, path: Path, stack: ExitStack) -> Callable[[Any], None]:
    import pyarrow
    from pyarrow import parquet

    writer: Any = None
    schema: Any = None

    def begin() -> Any:
        if find_kind(path) == ".parquet":
            return stack.enter_context(parquet.ParquetWriter(file, schema))
        options = pyarrow.ipc.IpcWriteOptions(compression="lz4")  # This is what pandas writes, too.
        return stack.enter_context(pyarrow.ipc.new_file(file, schema, options=options))

    def write_frame(frame: Any) -> None:
        nonlocal writer, schema
        try:
            table = pyarrow.Table.from_pandas(frame, preserve_index=False)
            if writer is None:
                schema = table.schema
                writer = begin()
            writer.write_table(table.cast(schema))
        except pyarrow.ArrowException as error:
            raise ValueError(f"{path} cannot be written: {describe_error(error)}; a .csv file can") from error

    return write_frame
