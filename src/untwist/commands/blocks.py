"""Parquet files too large for memory: commands read them in blocks of rows, and do with these what they do with all.

What becomes of a column is decided by the whole column, one at a time in memory.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from untwist.commands.cells import NO_HINTS, Hints
from untwist.commands.columns import PreparedTable, decide_columns, draw_sample, find_leaks
from untwist.commands.kinds import find_kind
from untwist.commands.names import find_unnamed, name_columns
from untwist.commands.sheets import import_pandas, note_index
from untwist.data.arrow_files import name_faults, open_parquet, read_parquet, to_exact_frame, to_frame
from untwist.data.batches import Batches
from untwist.data.memory import limit_memory

__all__ = ["SheetInBlocks", "prepare_in_blocks", "reads_in_blocks"]

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

    @staticmethod
    def name_row(row: int) -> str:
        """Say which row one is, as a person counts them."""
        return f"row {row + 1}"


def prepare_in_blocks(
    sheet: SheetInBlocks,
    label: str,
    *,
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    source: str | None = None,
    item: str | None = None,
    groups: str | None = None,
    hints: Hints = NO_HINTS,
) -> PreparedTable:
    """Make the table of a file ready to fit, as `columns.prepare` does with one in memory.

    Parameters
    ----------
    sheet : SheetInBlocks
        The table.
    label, drop, keep, source, item, groups, hints
        As for `columns.prepare`.

    Returns
    -------
    PreparedTable
        Its features are `Batches`.
    """
    found = decide_columns(
        sheet.names,
        sheet.column,
        label,
        drop=drop,
        keep=keep,
        source=source,
        item=item,
        groups=groups,
        hints=hints,
        name_row=sheet.name_row,
        unnamed=sheet.unnamed,
    )

    def prepare(table: Any) -> Any:
        frame = sheet.make_frame(table)
        return import_pandas().DataFrame({name: convert(frame[name]) for name, convert in found.features.items()})

    rows = None if found.present.all() else found.present
    X = Batches(sheet.batches, [sheet.in_file[name] for name in found.features], rows=rows, prepare=prepare)
    sample = draw_sample(found.y)
    notes = found.notes + find_leaks(_pick_rows(X, sample), found.y, sample)
    present = np.flatnonzero(found.present)
    return PreparedTable(
        X, found.y, present, notes, found.source, found.item, found.readings, found.groups, found.kinds
    )


def _pick_rows(X: Batches, rows: Any) -> Any:
    """These rows, in this order."""
    first = 0
    parts = []
    for part in X.blocks():
        inside = np.sort(rows[(rows >= first) & (rows < first + len(part))])
        parts.append(part.iloc[inside - first].set_axis(inside))
        first += len(part)
    found = import_pandas().concat([part.astype(object) for part in parts]).loc[rows]
    return found.astype({name: _choose_type(kind) for name, kind in X.head.dtypes.items()})


def _choose_type(kind: Any) -> Any:
    """Return the type for rows that were picked of a column of this type."""
    if str(kind) == "category":
        return "category"
    # Dates keep their unit, as microseconds cannot hold those that are very far away.
    return kind if kind.kind == "M" else float
