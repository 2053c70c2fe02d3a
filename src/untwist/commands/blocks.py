"""Parquet files too large for memory: commands read them in blocks of rows, and do with these what they do with all.

What becomes of a column is decided by the whole column, one at a time in memory.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from untwist.classifier import PILBoostClassifier
from untwist.commands.columns import NO_HINTS, Hints, NewRows, PreparedTable, decide_columns, draw_sample, find_leaks
from untwist.commands.sheets import find_kind, import_pandas, open_writer
from untwist.data.batches import Batches, describe_error

__all__ = ["add_blocks_option", "add_predictions", "predict_in_blocks", "prepare_in_blocks", "reads_in_blocks"]

#: A file whose numbers would take more bytes in memory is read in blocks.
MOST_BYTES = 2e9
#: A file whose numbers would take a greater share of the memory is read in blocks too.
MEMORY_SHARE = 0.25


def add_blocks_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that says whether to read in blocks.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of a command.
    """
    parser.add_argument(
        "--blocks",
        action=argparse.BooleanOptionalAction,
        help="read a Parquet file in blocks of rows, with the same result in less memory (default: where its numbers "
        "would take more than 2 GB or a quarter of the memory)",
    )


def reads_in_blocks(options: argparse.Namespace) -> bool:
    """Find out whether the file is to be read in blocks.

    Parameters
    ----------
    options : argparse.Namespace
        Those of `add_table_options` and `add_blocks_option`.

    Returns
    -------
    bool
    """
    is_parquet = find_kind(options.table) == ".parquet"
    if options.blocks and not is_parquet:
        raise ValueError(f"{options.table} is no Parquet file, and only these are read in blocks")
    if options.blocks is not None or not (is_parquet and options.table.is_file()):
        return bool(options.blocks)
    table = _ParquetFile(options.table)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 8.0 * table.batches.shape[0] * table.batches.shape[1] > min(MOST_BYTES, MEMORY_SHARE * memory)


class _ParquetFile:
    """A Parquet file by columns and by blocks, both as pandas has them."""

    def __init__(self, path: Path) -> None:
        import_pandas()
        if not path.exists():
            raise ValueError(f"{path} does not exist")
        self.path = path
        self.batches = Batches(path)
        self.head = _to_frame(self.batches.head)
        self.names = list(self.head.columns)

    def column(self, name: str) -> Any:
        """A column in memory."""
        try:
            frame = import_pandas().read_parquet(self.path, columns=[name])
        except (ValueError, OSError) as error:  # pyarrow's own errors are of these kinds.
            raise ValueError(f"column {name!r} of {self.path} cannot be read: {describe_error(error)}") from error
        return frame.reset_index(drop=True).iloc[:, 0].rename(name)


def _to_frame(table: Any) -> Any:
    """A block as pandas.read_parquet would have it; what pandas wrote as an index is no column."""
    frame = table.to_pandas().reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    return frame


def prepare_in_blocks(
    path: Path,
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
    path : Path
        A Parquet file.
    label, drop, keep, source, item, groups, hints
        As for `columns.prepare`.

    Returns
    -------
    PreparedTable
        Its features are `Batches`.
    """
    file = _ParquetFile(path)
    found = decide_columns(
        file.names, file.column, label, drop=drop, keep=keep, source=source, item=item, groups=groups, hints=hints
    )

    def prepare(table: Any) -> Any:
        frame = _to_frame(table)
        return import_pandas().DataFrame({name: convert(frame[name]) for name, convert in found.features.items()})

    rows = None if found.present.all() else found.present
    X = Batches(file.batches, list(found.features), rows=rows, prepare=prepare)
    sample = draw_sample(found.y)
    notes = found.notes + find_leaks(_pick_rows(X, sample), found.y, sample)
    present = np.flatnonzero(found.present)
    return PreparedTable(X, found.y, present, notes, found.source, found.item, found.readings, found.groups)


def _pick_rows(X: Batches, rows: Any) -> Any:
    """These rows, in this order."""
    first = 0
    parts = []
    for part in X.blocks():
        inside = np.sort(rows[(rows >= first) & (rows < first + len(part))])
        parts.append(part.iloc[inside - first].set_axis(inside))
        first += len(part)
    found = import_pandas().concat([part.astype(object) for part in parts]).loc[rows]
    kinds = {"category": "category", "M": "datetime64[us]"}
    return found.astype(
        {name: kinds.get(str(kind), kinds.get(kind.kind, float)) for name, kind in X.head.dtypes.items()}
    )


def predict_in_blocks(
    model: PILBoostClassifier, path: Path, output: Path | None, with_input: bool
) -> tuple[int, list[str]]:
    """Write the predictions for a file.

    Parameters
    ----------
    model : PILBoostClassifier
        The fitted classifier.
    path : Path
        A Parquet file.
    output : Path or None
        The file to write; None stands for standard output.
    with_input : bool
        Whether to write the columns of the file too.

    Returns
    -------
    int
        The number of predictions.
    list of str
        What was done to the columns.
    """
    file = _ParquetFile(path)
    is_number = import_pandas().api.types.is_numeric_dtype
    new = NewRows(model, file.names, lambda name: file.head[name] if is_number(file.head[name]) else file.column(name))
    count = 0
    with ExitStack() as stack:
        write = open_writer(output, stack)
        for part in file.batches.blocks():
            frame = _to_frame(part)
            write(add_predictions(model, new.conform(frame), frame if with_input else frame[[]]))
            count += len(frame)
    return count, new.describe()


def add_predictions(model: PILBoostClassifier, X: Any, beside: Any) -> Any:
    """Add the predicted class and the probability of every class to other columns.

    Parameters
    ----------
    model : PILBoostClassifier
        The fitted classifier.
    X : pandas.DataFrame
        The rows, made ready.
    beside : pandas.DataFrame
        The other columns of the same rows.

    Returns
    -------
    pandas.DataFrame
    """
    proba = model.predict_proba(X)
    columns = {"prediction": model.predict(X)}
    columns |= {f"P({label})": proba[:, k] for k, label in enumerate(model.classes_)}
    table = beside.copy()
    for name, values in columns.items():
        while name in table:
            name += "_"  # A column of the file keeps its name.
        table[name] = values
    return table
