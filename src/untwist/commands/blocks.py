"""Parquet files too large for memory: commands read them in blocks of rows, and do with these what they do with all.

What becomes of a column is decided by the whole column, one at a time in memory.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.commands.cells import Conversion
from untwist.commands.kinds import find_kind
from untwist.commands.names import find_unnamed, name_columns
from untwist.commands.sheets import import_pandas, note_index
from untwist.data.arrow_files import name_faults, open_parquet, read_parquet, to_exact_frame, to_frame
from untwist.data.batches import Batches
from untwist.data.memory import limit_memory

#: A file whose numbers would take more bytes in memory is read in blocks.
MOST_BYTES = 2e9
#: A file whose numbers would take a greater share of the memory is read in blocks too.
MEMORY_SHARE = 0.25


def reads_in_blocks(options: argparse.Namespace) -> bool:
    """Find out whether the file is to be read in blocks.

    Parameters
    ----------
    options : argparse.Namespace
        Those of `options.add_table_options` and perhaps of `options.add_blocks_option`.

    Returns
    -------
    bool
    """
    if "blocks" not in options:  # The command needs the whole table.
        return False
    is_parquet = find_kind(options.table) == ".parquet"
    if options.blocks is not None or not (is_parquet and options.table.is_file()):
        return bool(options.blocks)
    import_pandas()
    n_rows, n_columns = Batches(options.table).shape
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 8.0 * n_rows * n_columns > min(MOST_BYTES, MEMORY_SHARE * memory)


class SheetInBlocks:
    """The table of a Parquet file of which a block of rows, or one column, is in memory at a time.

    It is to a `Sheet` what `Batches` are to a table: the same cells, checks and limits.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        import_pandas()
        self.path = path
        self.batches = Batches(path)
        self.in_file = dict(zip(name_columns(self.batches.column_names), self.batches.column_names, strict=True))
        self.names = list(self.in_file)
        self.unnamed = find_unnamed(self.batches.column_names)
        with open_parquet(path) as file:
            self.notes = note_index(path, file.schema_arrow.names)

    @cached_property
    def head(self) -> Any:
        """A frame of no rows with the names and types of the columns."""
        return self.make_frame(self.batches.head)

    def make_frame(self, table: Any, first_row: int = 0) -> Any:
        """Make a frame of pandas of a block of rows."""
        with name_faults(self.path):
            return to_frame(table, first_row).rename(columns=dict(zip([""], self.unnamed, strict=False)))

    def column(self, name: str) -> Any:
        """Read a column into memory."""
        with limit_memory(self.path):
            return self.make_frame(read_parquet(self.path, [self.in_file[name]]))[name]

    def frames(self, *, with_input: bool = False) -> Iterator[tuple[Any, Any]]:
        """Read all rows as a `Sheet` does, a block at a time; the index of each frame are the rows, from 0."""
        first_row = 0
        for table in self.batches.blocks():
            with limit_memory(self.path):
                frame = self.make_frame(table, first_row)
                with name_faults(self.path):
                    beside = to_exact_frame(table) if with_input else frame[[]]
            yield frame, beside
            first_row += len(frame)

    def convert(self, conversions: Mapping[str, Conversion], present: NDArray[np.bool_]) -> Batches:
        """Return columns that are converted, a block at a time, without the rows that are not present.

        Parameters
        ----------
        conversions : mapping of str to callable
            By the name of each column what makes a feature of it.
        present : array of bool
            Which rows are kept.

        Returns
        -------
        Batches
        """

        def prepare(table: Any) -> Any:
            frame = self.make_frame(table)
            return import_pandas().DataFrame({name: convert(frame[name]) for name, convert in conversions.items()})

        rows = None if present.all() else present
        return Batches(self.batches, [self.in_file[name] for name in conversions], rows=rows, prepare=prepare)

    @staticmethod
    def name_row(row: int) -> str:
        """Say which row one is, as a person counts them."""
        return f"row {row + 1}"
