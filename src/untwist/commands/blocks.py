"""Parquet files too large for memory: commands read them in blocks of rows, and do with these what they do with all.

What becomes of a column is decided by the whole column, one at a time in memory.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from untwist.classifier import PILBoostClassifier
from untwist.commands.columns import NewRows, Prepared, decided, leaks, sample_of
from untwist.commands.sheets import ARROW, OPENERS, first_line, kind, pandas_here, refuse_packing
from untwist.data.batches import Batches
from untwist.files import open_whole

__all__ = ["in_blocks", "option", "predict_in_blocks", "predictions", "prepared_in_blocks"]

MOST_BYTES, MEMORY_SHARE = 2e9, 0.25


def option(parser: argparse.ArgumentParser) -> None:
    """Whether to read in blocks."""
    parser.add_argument(
        "--blocks",
        action=argparse.BooleanOptionalAction,
        help="read a Parquet file in blocks of rows, with the same result in less memory (default: where its numbers "
        "would take more than 2 GB or a quarter of the memory)",
    )


def in_blocks(options: argparse.Namespace) -> bool:
    """Whether the file is to be read in blocks."""
    is_parquet = kind(options.table) == ".parquet"
    if options.blocks and not is_parquet:
        raise ValueError(f"{options.table} is no Parquet file, and only these are read in blocks")
    if options.blocks is not None or not (is_parquet and options.table.is_file()):
        return bool(options.blocks)
    table = _File(options.table)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 8.0 * table.batches.shape[0] * table.batches.shape[1] > min(MOST_BYTES, MEMORY_SHARE * memory)


class _File:
    """A Parquet file by columns and by blocks, both as pandas has them."""

    def __init__(self, path: Path) -> None:
        pandas_here()
        if not path.exists():
            raise ValueError(f"{path} does not exist")
        self.path, self.batches = path, Batches(path)
        self.head = _frame(self.batches.head)
        self.names = list(self.head.columns)

    def column(self, name: str) -> Any:
        """A column in memory."""
        try:
            frame = pandas_here().read_parquet(self.path, columns=[name])
        except (ValueError, OSError) as error:  # of pyarrow's own kinds
            raise ValueError(f"column {name!r} of {self.path} cannot be read: {first_line(error)}") from error
        return frame.reset_index(drop=True).iloc[:, 0].rename(name)


def _frame(table: Any) -> Any:
    """A block as pandas.read_parquet would have it; what pandas wrote as an index is no column."""
    frame = table.to_pandas().reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    return frame


def prepared_in_blocks(path: Path, label: str, *, drop: Collection[str] = (), keep: Collection[str] = ()) -> Prepared:
    """The table of a file, ready to fit, as `columns.prepared` makes it of one in memory."""
    file = _File(path)
    found = decided(file.names, file.column, label, drop=drop, keep=keep)

    def prepare(table: Any) -> Any:
        frame = _frame(table)
        return pandas_here().DataFrame({name: convert(frame[name]) for name, convert in found.features.items()})

    rows = None if found.present.all() else found.present
    X = Batches(file.batches, list(found.features), rows=rows, prepare=prepare)
    sample = sample_of(found.y)
    return Prepared(X, found.y, np.flatnonzero(found.present), found.notes + leaks(_rows(X, sample), found.y, sample))


def _rows(X: Batches, rows: Any) -> Any:
    """These rows, in this order."""
    first, parts = 0, []
    for part in X.parts():
        inside = np.sort(rows[(rows >= first) & (rows < first + len(part))])
        parts.append(part.iloc[inside - first].set_axis(inside))
        first += len(part)
    found = pandas_here().concat([part.astype(object) for part in parts]).loc[rows]
    return found.astype({name: "category" if kind == "category" else float for name, kind in X.head.dtypes.items()})


def predict_in_blocks(
    model: PILBoostClassifier, path: Path, output: Path | None, with_input: bool
) -> tuple[int, list[str]]:
    """Writes the predictions for a file; how many, and what was done to its columns, in words."""
    file = _File(path)
    is_number = pandas_here().api.types.is_numeric_dtype
    new = NewRows(model, file.names, lambda name: file.head[name] if is_number(file.head[name]) else file.column(name))
    count = 0
    with ExitStack() as stack:
        write = _writer(output, stack)
        for part in file.batches.parts():
            frame = _frame(part)
            write(predictions(model, new.conformed(frame), frame if with_input else frame[[]]))
            count += len(frame)
    return count, new.notes()


def predictions(model: PILBoostClassifier, X: Any, beside: Any) -> Any:
    """The predicted class and the probability of every class, beside other columns."""
    proba = model.predict_proba(X)
    columns = {"prediction": model.predict(X)}
    columns |= {f"P({label})": proba[:, k] for k, label in enumerate(model.classes_)}
    table = beside.copy()
    for name, values in columns.items():
        while name in table:
            name += "_"  # what was there stays
        table[name] = values
    return table


def _writer(path: Path | None, stack: ExitStack) -> Callable[[Any], None]:
    """What writes one frame after the other: to standard output as CSV, or to a file of the kind that its name says.

    The file takes the place of an older one when the stack ends without an error.
    """
    if path is None:
        return _csv_writer(lambda text: print(text, end=""))
    refuse_packing(path)
    file = stack.enter_context(open_whole(path))
    if kind(path) == ".parquet" or kind(path) in ARROW:
        return _arrow_writer(file, kind(path) == ".parquet", stack)
    packed = OPENERS.get(path.suffix.lower())
    stream = file if packed is None else stack.enter_context(packed(file, "wb"))
    return _csv_writer(lambda text: stream.write(text.encode()))


def _csv_writer(out: Callable[[str], Any]) -> Callable[[Any], None]:
    begun = False

    def write(frame: Any) -> None:
        nonlocal begun
        out(frame.to_csv(index=False, header=not begun))
        begun = True

    return write


def _arrow_writer(file: Any, as_parquet: bool, stack: ExitStack) -> Callable[[Any], None]:
    import pyarrow
    from pyarrow import parquet

    writer: Any = None
    schema: Any = None

    def write(frame: Any) -> None:
        nonlocal writer, schema
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
        if writer is None:
            made = parquet.ParquetWriter if as_parquet else pyarrow.ipc.new_file
            writer = stack.enter_context(made(file, table.schema))
            schema = table.schema
        writer.write_table(table.cast(schema))

    return write
