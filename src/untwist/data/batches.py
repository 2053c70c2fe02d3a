"""Tables too large for memory: Parquet files or an Arrow dataset, read in blocks of rows as often as need be.

What is learned from them is, bit for bit, what the same table in memory would teach.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.data import tables
from untwist.data.arrow_files import UNNAMED_INDEX, check_table, import_pyarrow, limit_texts, open_parquet, read_blocks
from untwist.data.memory import limit_memory

__all__ = ["Batches", "Encoded"]

# A block has about this many cells, which makes 32 MB of numbers.
CELLS = 1 << 22

# More cells than this, 2 GB of numbers, do not come to memory as a whole.
MOST_CELLS_IN_MEMORY = 1 << 28

Prepare = Callable[[Any], Any]
Check = Callable[[Any, int], Any]


class Batches:
    """A table in files, for `fit` and `predict` of a classifier in place of one in memory.

    Parameters
    ----------
    source : path, list of paths or pyarrow.dataset.Dataset
        A Parquet file, several, a folder of them (in the order of their names), or a dataset of any kind.
    columns : iterable of str, optional
        The names of those to read; by default all but an index of pandas without a name.
    rows : ndarray of bool, optional
        One per row of the files; rows where it is false are left out.
    prepare : callable, optional
        Makes another table, row by row, of each block, which is a pyarrow Table.

    Attributes
    ----------
    shape : tuple of int
        The number of rows and of columns.

    Examples
    --------
    >>> table = Batches("big.parquet")  # doctest: +SKIP
    >>> model.fit(table.drop("label"), table.column("label"))  # doctest: +SKIP
    """

    def __init__(
        self,
        source: Any,
        columns: Iterable[str] | None = None,
        *,
        rows: NDArray[np.bool_] | None = None,
        prepare: Prepare | None = None,
    ) -> None:
        self._source = _open_source(source)
        self._rows = rows
        self._prepare = prepare
        every = [name for name in self._source.schema.names if not UNNAMED_INDEX.fullmatch(name)]
        self._columns = every if columns is None else list(columns)
        self._require_columns(self._columns)
        if repeated := sorted(name for name, times in Counter(self._columns).items() if times > 1):
            raise ValueError(f"{self._source} has several columns {repeated[0]!r}: rename all but one")
        if rows is not None and rows.shape != (self._source.n_rows,):
            raise ValueError(f"rows must be {self._source.n_rows} Booleans, one per row, got shape {rows.shape}")
        n_rows = self._source.n_rows if rows is None else int(np.count_nonzero(rows))
        self.shape = (n_rows, len(self.column_names))

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Batches({str(self._source)!r}, {self.shape[0]} rows, {self.shape[1]} columns)"

    @cached_property
    def head(self) -> Any:
        """A table of no rows with the names and types of the columns."""
        empty = self._source.schema.empty_table().select(self._columns)
        return empty if self._prepare is None else self._prepare(empty)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        head = self.head
        # A table of Arrow has `column_names`, a frame of pandas `columns`.
        return list(head.column_names if hasattr(head, "column_names") else head.columns)

    def drop(self, *names: str | list[str] | tuple[str, ...]) -> Batches:
        """Leave columns out.

        Parameters
        ----------
        *names : str or list of str
            The columns to leave out.

        Returns
        -------
        Batches
            The table without them.
        """
        listed = [name for one in names for name in (one if isinstance(one, (list, tuple)) else [one])]
        self._require_columns(listed)
        left = [name for name in self._columns if name not in listed]
        return Batches(self, left, rows=self._rows, prepare=self._prepare)

    def column(self, name: str) -> NDArray[Any]:
        """Read a column, to serve as labels or weights.

        Parameters
        ----------
        name : str
            A column without missing values.

        Returns
        -------
        ndarray of shape (n_rows,)
            Its values.
        """
        self._require_columns([name])
        # The limit covers the conversion too, as NumPy gives every row as many letters as the longest text has.
        with limit_memory(*self._source.paths):
            return self._read_column(name)

    def _read_column(self, name: str) -> NDArray[Any]:
        import pyarrow

        tables = Batches(self, [name], rows=self._rows).blocks()
        blocks = [table.column(0) for table in limit_texts(tables, *self._source.paths)]
        chunks = [chunk for block in blocks for chunk in block.chunks]
        values = pyarrow.chunked_array(chunks, self._source.schema.field(name).type)
        if values.null_count:
            where = f"column {name!r} of {self._source}"
            first = int(np.flatnonzero(values.is_null().to_numpy())[0])
            raise ValueError(f"{where} must have no missing value, got {values.null_count}, the first in row {first}")
        coded = pyarrow.types.is_dictionary(values.type)
        if coded or str(values.type) in ("string", "large_string", "string_view"):
            # Each text is made once, not once per row.
            encoded = (values.unify_dictionaries() if coded else values.dictionary_encode()).combine_chunks()
            return np.asarray(np.array(encoded.dictionary.to_pylist())[encoded.indices.to_numpy()])
        return np.asarray(values.to_numpy())

    def blocks(self) -> Iterator[Any]:
        """Read the table in blocks of rows: one pass over the files.

        Yields
        ------
        pyarrow.Table
            A block of rows, or what `prepare` makes of it.
        """
        first = 0
        tables_of_source = self._source.read(self._columns)
        while True:
            with limit_memory(*self._source.paths):
                table = next(tables_of_source, None)
                if table is None:
                    return
                last = first + table.num_rows
                if self._rows is not None and not self._rows[first:last].all():
                    table = table.filter(self._rows[first:last])
                first = last
                block = table if self._prepare is None else self._prepare(table)
            yield block

    def learn(
        self,
        categorical_features: Any = "auto",
        sample_weight: ArrayLike | None = None,
        max_categories: int = tables.KNOWN_CATEGORIES,
    ) -> tables.Schema:
        """Find the categories, as `untwist.data.tables.learn` finds them in memory; one pass if there is text.

        Parameters
        ----------
        categorical_features, max_categories
            As for `untwist.data.tables.learn`.
        sample_weight : array_like of shape (n_rows,), optional
            How much each row counts.

        Returns
        -------
        Schema
            What makes numbers of the rows.
        """
        weight = tables.round_weights(sample_weight, len(self))

        def weigh_blocks() -> Iterator[tuple[Any, NDArray[np.int64]]]:
            first = 0
            for table in self.blocks():
                yield table, weight[first : first + table.shape[0]]
                first += table.shape[0]

        return tables.learn_blocks(self.head, weigh_blocks(), categorical_features, max_categories)

    def encode(
        self, schema: tables.Schema, check: Check = lambda _block, _row: None, *, is_new: bool = False
    ) -> Encoded:
        """Make numbers of the rows.

        Parameters
        ----------
        schema : Schema
            What makes numbers of a block.
        check : callable, optional
            Sees every block of numbers on the first pass, and the number of its first row.
        is_new : bool
            Whether the rows are to be learned from: then whole numbers of a block that float64 cannot tell apart are
            refused.

        Returns
        -------
        Encoded
            The rows as numbers, a block at a time.
        """

        def encode_block(block: Any) -> Any:
            if is_new:
                tables.refuse_merged_cells(block, schema.categories)
            return schema.encode(block)

        return Encoded(lambda: map(encode_block, self.blocks()), self.shape, check)

    def _require_columns(self, names: Iterable[str]) -> None:
        known = dict.fromkeys(self._source.schema.names)
        if strange := [name for name in names if name not in known]:
            shown = ", ".join(map(repr, list(known)[:12]))
            raise ValueError(f"{self._source} has no column {strange[0]!r}: its columns are {shown}")


class Encoded:
    """Rows of numbers that exist a block at a time, read anew whenever they are asked for.

    Parameters
    ----------
    read : callable
        Gives the blocks of one pass.
    shape : tuple of int
        The number of rows and of columns.
    check : callable, optional
        Sees every block on the first pass, and the number of its first row.
    """

    def __init__(
        self, read: Callable[[], Iterable[Any]], shape: tuple[int, int], check: Check = lambda _block, _row: None
    ) -> None:
        self._read = read
        self._check = check
        self._all_checked = False
        self.shape = shape

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Read the rows; the first pass that comes to its end has checked them all.

        Yields
        ------
        ndarray
            A block of rows.
        """
        first_row = 0
        for block in self._read():
            if len(block) and not self._all_checked:
                self._check(block, first_row)
            first_row += len(block)
            yield block
        self._all_checked = True

    def checksums(self) -> list[int]:
        """Compute a checksum for each column, that of the same array in memory.

        Returns
        -------
        list of int
            One checksum per column.
        """
        return reduce(lambda sums, block: tables.checksum_columns(block, sums), self.blocks(), [0] * self.shape[1])

    def to_array(self) -> NDArray[np.float64]:
        """Return all rows at once.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            In memory; where that would take more than 2 GB, in a nameless file in the folder for temporary files
            (TMPDIR), which goes away with the array.
        """
        if fit_memory(self):
            numbers = np.empty(self.shape)
        else:
            with tempfile.TemporaryFile() as file:
                # Columns are looked at as a whole, and of the rows a few.
                numbers = np.asarray(np.memmap(file, np.float64, "w+", shape=self.shape, order="F"))
        first = 0
        for block in self.blocks():
            numbers[first : first + len(block)] = block
            first += len(block)
        return numbers

    def take_rows(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return some rows, which come to memory in one pass.

        Parameters
        ----------
        rows : ndarray of int
            Their positions, all different.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            In the order of `rows`.
        """
        taken = np.empty((len(rows), self.shape[1]))
        order = np.argsort(rows)
        first = 0
        for block in self.blocks():
            start, end = np.searchsorted(rows, [first, first + len(block)], sorter=order)
            here = order[start:end]
            taken[here] = block[rows[here] - first]
            first += len(block)
        return taken

    def concatenate(self, other: Any) -> Encoded:
        """Put the rows of another table after these.

        Parameters
        ----------
        other : Encoded or ndarray
            Rows of the same columns.

        Returns
        -------
        Encoded
            Both.
        """

        def read() -> Iterator[Any]:
            yield from self.blocks()
            yield from other.blocks() if isinstance(other, Encoded) else [other]

        return Encoded(read, (self.shape[0] + other.shape[0], self.shape[1]))

    def replace_rows(self, change: Callable[[slice, NDArray[Any]], NDArray[Any]]) -> Encoded:
        """Put other numbers in place of these.

        Parameters
        ----------
        change : callable
            Takes the positions of a block's rows, and the block; returns another block.

        Returns
        -------
        Encoded
            The other rows.
        """

        def read() -> Iterator[Any]:
            first = 0
            for block in self.blocks():
                yield change(slice(first, first + len(block)), block)
                first += len(block)

        return Encoded(read, self.shape)

    def __getitem__(self, rows: Any) -> Any:
        raise ValueError("this needs the table in memory: the rows of Batches come in blocks, and not one by one")


def fit_memory(table: Batches | Encoded) -> bool:
    """Tell whether all rows of a table may come to memory as numbers.

    Parameters
    ----------
    table : Batches or Encoded
        Rows that come in blocks.

    Returns
    -------
    bool
        Whether these are 2 GB at most.
    """
    return table.shape[0] * table.shape[1] <= MOST_CELLS_IN_MEMORY


class _ParquetFiles:
    """Parquet files one after the other."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self.n_rows = 0
        self._stamps = []
        for path in paths:
            with limit_memory(path), open_parquet(path) as file:
                schema = file.schema_arrow
                self.n_rows += file.metadata.num_rows
            self._stamps.append(_read_stamp(path))
            if path is paths[0]:
                self.schema = schema
            elif (stray := _find_difference(self.schema, schema)) is not None:
                raise ValueError(f"{path} must have the columns of {paths[0]}, but {stray!r} is missing or differs")
        if not self.n_rows:
            raise ValueError(f"{self} has no rows")

    def __str__(self) -> str:
        return str(self.paths[0]) + (f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else "")

    def read(self, columns: list[str]) -> Iterator[Any]:
        for path, stamp in zip(self.paths, self._stamps, strict=True):
            if _read_stamp(path) != stamp:
                raise ValueError(f"{path} has changed since it was read first: begin again")
            yield from read_blocks(path, columns, _count_rows(columns))


def _find_difference(schema: Any, other: Any) -> str | None:
    """Return the first column that the other schema has not, or not with this type; None if there is none."""
    for field in schema:
        if field.name not in other.names or other.field(field.name).type != field.type:
            return str(field.name)
    return None


def _count_rows(columns: list[str]) -> int:
    """The rows of a block with these columns."""
    return max(1, CELLS // max(1, len(columns)))


class _ArrowDataset:
    """A dataset of Arrow's own."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.paths: list[Path] = []  # Where its rows are, and how much they may unpack to, is up to its owner.
        self.schema = dataset.schema
        self.n_rows = dataset.count_rows()
        if not self.n_rows:
            raise ValueError("the dataset has no rows")

    def __str__(self) -> str:
        return "the dataset"

    def read(self, columns: list[str]) -> Iterator[Any]:
        pyarrow, _ = import_pyarrow()
        n_rows = 0
        for batch in self.dataset.to_batches(
            columns=columns, batch_size=_count_rows(columns), batch_readahead=1, fragment_readahead=1
        ):
            yield check_table(pyarrow.Table.from_batches([batch]), n_rows)
            n_rows += batch.num_rows
        if n_rows != self.n_rows:
            raise ValueError(f"the dataset had {self.n_rows} rows when it was opened, and {n_rows} now: begin again")


def _open_source(source: Any) -> Any:
    """Return what knows the schema and the rows of a source, and reads them."""
    if isinstance(source, Batches):
        return source._source
    import_pyarrow()
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if path.is_dir() and not (paths := sorted(path.glob("*.parquet"))):
            raise ValueError(f"there is no file *.parquet in the folder {path}")
        return _ParquetFiles(paths if path.is_dir() else [path])
    if isinstance(source, (list, tuple)) and source:
        return _ParquetFiles([Path(one) for one in source])
    from pyarrow import dataset

    if isinstance(source, dataset.Dataset):
        return _ArrowDataset(source)
    raise ValueError(
        f"source must be a Parquet file, several, a folder of them, or a pyarrow Dataset, got {source!r:.80}"
    )


def _read_stamp(path: Path) -> tuple[int, int]:
    """Return what changes when a file does: its size, and when it was written."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns
