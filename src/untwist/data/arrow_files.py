"""Parquet and Arrow files, read whole or in blocks of rows: opened, checked and made a frame of in one way.

pyarrow follows offsets of foreign bytes wherever they lead, so that nothing is used before it is checked.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from untwist.data.memory import UnreadableFile, find_most_text, refuse_memory
from untwist.optional import import_optional

#: What pandas calls a column that was an index without a name.
UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
#: What pyarrow says of text that is not UTF-8, with its position in what was checked.
BAD_TEXT = re.compile(r"Invalid UTF8 sequence at string index (\d+)")
#: Texts have any length: a block of rows that hold some ends at this many bytes.
MOST_BLOCK_BYTES = 1 << 28
#: Rows that are read at a time, those with texts and those without.
ROWS_WITH_TEXT = 1 << 14
ROWS_WITHOUT_TEXT = 1 << 18


def import_pyarrow() -> tuple[Any, Any]:
    """Import pyarrow and pyarrow.parquet, or say in one line what to install.

    Returns
    -------
    tuple of modules
    """
    purpose = "reading Parquet"
    pyarrow = import_optional("pyarrow", purpose, extra="cli")
    return pyarrow, import_optional("pyarrow.parquet", purpose, extra="cli")


def describe_error(error: BaseException) -> str:
    """Shorten an error to its first line, or to the name of its kind where it has no words.

    Parameters
    ----------
    error : BaseException
        The error.

    Returns
    -------
    str
        The line, without a full stop.
    """
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__


@contextmanager
def name_faults(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into an `UnreadableFile`, once.

    Parameters
    ----------
    path : Path
        The file.

    Yields
    ------
    None
        A lack of memory or of a package stays the error that it is.
    """
    try:
        yield
    except (UnreadableFile, MemoryError, ImportError):
        raise
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise MemoryError(describe_error(error)) from error
        raise UnreadableFile(f"{path} cannot be read as a table: {describe_error(error)}") from error
    except Exception as error:  # Bytes can make pandas and pyarrow raise any error.
        raise UnreadableFile(f"{path} cannot be read as a table: {describe_error(error)}") from error


def open_parquet(path: Path) -> Any:
    """Open a Parquet file; raise an UnreadableFile where it is of another kind, or contradicts itself.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    pyarrow.parquet.ParquetFile
    """
    _, parquet = import_pyarrow()
    if not path.exists():
        raise UnreadableFile(f"{path} does not exist")
    with name_faults(path):
        file = parquet.ParquetFile(path)
        try:
            _check_group_sizes(file.metadata)
        except ValueError:
            file.close()
            raise
        return file


def read_parquet(path: Path, columns: list[str] | None = None) -> Any:
    """Read all rows of a Parquet file, checked, as blocks of rows are: pyarrow's other way takes other damaged files.

    Parameters
    ----------
    path : Path
        The file.
    columns : list of str or None
        The columns to read, by default all.

    Returns
    -------
    pyarrow.Table
    """
    pyarrow, _ = import_pyarrow()
    with open_parquet(path) as file:
        schema = file.schema_arrow
    blocks = [*limit_texts(read_blocks(path, columns, ROWS_WITHOUT_TEXT), path)]
    empty = schema.empty_table() if columns is None else schema.empty_table().select(columns)
    return pyarrow.concat_tables(blocks) if blocks else empty


def read_feather(path: Path) -> Any:
    """Read all rows of an Arrow file, checked.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    pyarrow.Table
    """
    import_pyarrow()
    from pyarrow import feather

    with name_faults(path):
        return check_table(feather.read_table(path, memory_map=False))


def read_blocks(path: Path, columns: list[str] | None, n_rows: int) -> Iterator[Any]:
    """Read a Parquet file in blocks of rows, each of them checked.

    Parameters
    ----------
    path : Path
        The file.
    columns : list of str or None
        The columns to read, by default all.
    n_rows : int
        The rows of a block, at most; fewer where their texts are long.

    Yields
    ------
    pyarrow.Table
    """
    pyarrow, _ = import_pyarrow()
    first = 0
    with open_parquet(path) as file, name_faults(path):
        schema = file.schema_arrow
        read = schema if columns is None else [schema.field(name) for name in columns]
        is_numeric = all(pyarrow.types.is_primitive(field.type) for field in read)
        rows_at_once = n_rows if is_numeric else min(n_rows, ROWS_WITH_TEXT)
        for groups in _group_rows(file.metadata, n_rows):
            batches = file.iter_batches(rows_at_once, row_groups=groups, columns=columns)
            for joined in _join_batches(batches, n_rows):
                table = pyarrow.Table.from_batches(joined)
                # pyarrow reads "a.b" too where "a" is asked for.
                table = table if columns is None else table.select(columns)
                yield check_table(_set_file_metadata(file, table), first)
                first += table.num_rows
        _check_row_count(file, first)


def limit_texts(tables: Iterable[Any], *paths: Path) -> Iterator[Any]:
    """Yield tables that are kept together, and refuse their files where texts grow too many.

    A few bytes of a file can be a text that all of its rows share. pyarrow may end the process where memory ends in one
    of its threads, so that it must not come to that.

    Parameters
    ----------
    tables : iterable of pyarrow.Table
        What is read of the files.
    *paths : Path
        The files; without any there is no limit.

    Yields
    ------
    pyarrow.Table
        The same.
    """
    pyarrow, _ = import_pyarrow()
    most = find_most_text(*paths)
    n_bytes = 0
    categories: dict[int, Any] = {}
    for table in tables:
        for index, kind in enumerate(table.schema.types):
            if pyarrow.types.is_dictionary(kind):
                table, more = _share_categories(table, index, categories)
                n_bytes += more
            elif not pyarrow.types.is_primitive(kind):
                n_bytes += table.column(index).nbytes
        if n_bytes > most:
            raise refuse_memory(*paths)
        yield table


def _share_categories(table: Any, index: int, known: dict[int, Any]) -> tuple[Any, int]:
    """Return a table with the categories that the block before had, if they are the same, and the bytes of new ones.

    pyarrow makes a copy of the categories for each block.
    """
    pyarrow, _ = import_pyarrow()
    n_bytes = 0
    chunks = []
    for chunk in table.column(index).chunks:
        if index not in known or not known[index].equals(chunk.dictionary):
            known[index] = chunk.dictionary
            n_bytes += chunk.dictionary.nbytes
        kind = chunk.type
        chunks.append(
            pyarrow.DictionaryArray.from_arrays(chunk.indices, known[index], ordered=kind.ordered, safe=False)
        )
    column = pyarrow.chunked_array(chunks, table.schema.field(index).type)
    return table.set_column(index, table.schema.field(index), column), n_bytes


def _set_file_metadata(file: Any, table: Any) -> Any:
    """Give a table the metadata of pandas that the schema of its file has, so that both ways of reading agree."""
    # A table without columns would forget how many rows it has.
    return table.replace_schema_metadata(file.schema_arrow.metadata) if table.num_columns else table


def _check_group_sizes(metadata: Any) -> None:
    """Raise a ValueError where groups of rows declare other numbers than the file: blocks are cut by what they say."""
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    if min(sizes, default=0) < 0 or sum(sizes) != metadata.num_rows:
        raise ValueError(f"it says that it has {metadata.num_rows} rows, and its groups of rows say {sum(sizes)}")


def _check_row_count(file: Any, n_rows: int) -> None:
    """Raise a ValueError where the file declares another number of rows: pyarrow stops silently where a column ends."""
    if n_rows != file.metadata.num_rows:
        raise ValueError(f"it says that it has {file.metadata.num_rows} rows, and has {n_rows}")


def _group_rows(metadata: Any, size: int) -> Iterator[list[int]]:
    """Yield row groups, as few at a time as make a block: pyarrow keeps in memory all that one call has read."""
    groups: list[int] = []
    n_rows = 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        n_rows += metadata.row_group(group).num_rows
        if n_rows >= size or group + 1 == metadata.num_row_groups:
            yield groups
            groups = []
            n_rows = 0


def _join_batches(batches: Iterable[Any], most_rows: int) -> Iterator[list[Any]]:
    """Yield as many batches together as make a block, in rows or in bytes."""
    joined: list[Any] = []
    for batch in batches:
        if joined and (
            sum(one.num_rows for one in joined) + batch.num_rows > most_rows
            or sum(one.nbytes for one in joined) + batch.nbytes > MOST_BLOCK_BYTES
        ):
            yield joined
            joined = []
        joined.append(batch)
    if joined:
        yield joined


def check_table(table: Any, first_row: int = 0) -> Any:
    """Raise a ValueError that names the column where a table does not hold what its types say, such as text in UTF-8.

    Parameters
    ----------
    table : pyarrow.Table
        The rows.
    first_row : int
        The number of the first of them, from 0.

    Returns
    -------
    pyarrow.Table
        The same.
    """
    pyarrow, _ = import_pyarrow()
    table.validate()
    for name, column in zip(table.column_names, table.columns, strict=True):
        row = first_row
        for chunk in column.chunks:
            try:
                chunk.validate(full=True)
            except pyarrow.ArrowInvalid as error:
                reason = describe_error(error)
                if (place := _find_bad_text(chunk, reason)) is not None:
                    raise ValueError(
                        f"column {name!r}, row {row + place + 1}: the text is not UTF-8: write the file again, "
                        "with text in UTF-8 or without this column"
                    ) from error
                raise ValueError(f"column {name!r}, from row {row + 1} on: {reason}") from error
            row += len(chunk)
    return table


def _find_bad_text(chunk: Any, reason: str) -> int | None:
    """Return the first row of a chunk whose text is not UTF-8, None where pyarrow has another reason to refuse it."""
    pyarrow, _ = import_pyarrow()
    found = BAD_TEXT.search(reason)
    if found is None:
        return None
    if pyarrow.types.is_dictionary(chunk.type):
        rows = np.flatnonzero(chunk.indices.to_numpy(zero_copy_only=False) == int(found[1]))
        return int(rows[0]) if len(rows) else None
    is_text = pyarrow.types.is_string(chunk.type) or pyarrow.types.is_large_string(chunk.type)
    return int(found[1]) if is_text else None


def to_frame(table: Any, first_row: int = 0) -> Any:
    """Make a frame of pandas, as `pandas.read_parquet` does, but that an index is a column like others.

    Parameters
    ----------
    table : pyarrow.Table
        The rows; an index without a name, of which only pandas knows, is left out.
    first_row : int
        The number of the first of them, which begin the new index.

    Returns
    -------
    pandas.DataFrame
        Its columns are called as the file calls them.
    """
    table = _leave_out_index(_keep_column_types(table))
    frame = table.to_pandas()
    frame.columns = table.column_names
    frame.index += first_row
    return frame


def _keep_column_types(table: Any) -> Any:
    """Keep of the metadata of pandas the types of columns; drop all of it where pyarrow cannot follow it."""
    plain = table.replace_schema_metadata(None)
    try:
        metadata = dict(json.loads((table.schema.metadata or {})[b"pandas"])) | {
            "index_columns": [],
            "column_indexes": [],
        }
        typed = table.replace_schema_metadata({b"pandas": json.dumps(metadata).encode()})
        typed.schema.empty_table().to_pandas()
    except Exception:  # Damaged metadata make pyarrow raise any error, and the file is a table without them.
        return plain
    return typed


def to_exact_frame(table: Any) -> Any:
    """Make a frame of pandas to be written: its cells and types are those of the table, as pandas has not all of them.

    Parameters
    ----------
    table : pyarrow.Table
        The rows; an index without a name is left out.

    Returns
    -------
    pandas.DataFrame
        Floating point is NumPy's, which prints short numbers as such, and what pandas alone knows is its own.
    """
    pyarrow, _ = import_pyarrow()
    pandas = import_optional("pandas", "reading Parquet", extra="cli")

    def keep_type(kind: Any) -> Any:
        if pyarrow.types.is_floating(kind) or isinstance(kind, pyarrow.BaseExtensionType):
            return None
        exact = pandas.ArrowDtype(kind)
        try:
            return exact if exact.type else None
        except NotImplementedError:  # pandas has views of text, say, as text.
            return None

    return _leave_out_index(table.replace_schema_metadata(None)).to_pandas(types_mapper=keep_type)


def _leave_out_index(table: Any) -> Any:
    return table.select([name for name in table.column_names if not UNNAMED_INDEX.fullmatch(name)])
