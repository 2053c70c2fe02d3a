"""Columns of arrays and of pandas frames: found by name or index, read as numbers or as codes, and written anew."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer

from untwist.arguments import (
    Array,
    is_missing,
)

__all__ = [
    "Indices",
    "check_column_list",
    "check_rows",
    "encode_table",
    "encode_values",
    "locate_columns",
    "read_numbers",
    "read_table",
    "rewrite",
    "take_column",
]

Indices = NDArray[np.intp]


def check_rows(X: Any, y: Any) -> None:
    """Raise a ValueError where a table and its labels have another number of rows."""
    if X is not None and y is not None and len(X) != len(y):
        raise ValueError(f"X and y must have as many rows, got {len(X)} and {len(y)}")


def read_table(name: str, X: Any) -> Any:
    """Return X as a frame or an array, or raise a ValueError."""
    table = X if hasattr(X, "iloc") else np.asarray(X)
    if table.ndim != 2 or table.shape[1] == 0:
        reason = "" if name == "X" else f", to find the {name} in,"
        raise ValueError(f"X must be a table of rows and columns{reason} dense, got shape {np.shape(X)}")
    return table


def check_column_list(name: str, columns: Any) -> tuple[str | int, ...]:
    """Return names or indices of columns as a tuple, or raise a ValueError."""
    listed = None if isinstance(columns, str) or not isinstance(columns, Iterable) else tuple(columns)
    if listed is None or any(isinstance(one, (bool, np.bool_, float)) for one in listed):
        raise ValueError(f"{name} must be a list of column names or indices, got {columns!r}")
    return listed


def locate_columns(argument: str, columns: Iterable[str | int], table: Any) -> list[int]:
    """Return the indices of columns that are given by name or index; a whole number always counts as an index."""
    names = list(getattr(table, "columns", ()))
    indices: dict[int, None] = {}
    for one in columns:
        known = range(table.shape[1]) if isinstance(one, Integral) else names
        found = [index for index, name in enumerate(known) if name == one]
        if not found:
            hint = f" or names such as {names[:5]}" if names else ""
            raise ValueError(f"{argument} must be indices from 0 to {table.shape[1] - 1}{hint}, got {one!r}")
        indices |= dict.fromkeys(found)
    return list(indices)


def take_column(table: Any, index: int) -> Any:
    """Return a column of an array or of a frame."""
    return table.iloc[:, index] if hasattr(table, "iloc") else table[:, index]


def rewrite(column: Any, rows: Indices, values: NDArray[Any]) -> Any:
    """Return a copy of an array or a series with these values in these rows, of the same type if it can hold them."""
    # The nullable numbers of pandas have a type of NumPy within theirs.
    dtype = getattr(column.dtype, "numpy_dtype", column.dtype)
    if values.dtype.kind == "f" and dtype.kind in "iuf":
        with np.errstate(invalid="ignore", over="ignore"):
            cast = values.astype(dtype)
        if dtype.kind == "f" or (cast == values).all():
            values = cast
        else:
            # The column held whole numbers, and no longer does.
            column = column.astype(np.float64)
    twisted = column.copy()
    (twisted.iloc if hasattr(twisted, "iloc") else twisted)[rows] = values
    return twisted


def encode_table(table: Any) -> Array:
    """Return a table as numbers, with codes for categories and medians for what is missing."""
    columns = [take_column(table, index) for index in range(table.shape[1])]
    numbers = [read_numbers(column) for column in columns]
    encoded = [
        encode_values(one)[0] if values is None else values for one, values in zip(columns, numbers, strict=True)
    ]
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    return np.asarray(imputer.fit_transform(np.column_stack(encoded)), dtype=np.float64)


def _find_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind != "O":
        # NaN differs from itself.
        return np.asarray(values != values)
    return np.fromiter(map(is_missing, values), np.bool_, values.size)


def encode_values(column: Any) -> tuple[Indices, NDArray[Any]]:
    """Return for each row the code of its value, -1 where it is missing, and the values by their codes.

    The different values are sorted, numbers before text. Of Booleans there are always both.
    """
    cells = np.asarray(column)
    present = ~_find_missing(cells)
    known = cells[present]
    if cells.dtype.kind != "O":
        values, known_codes = np.unique(known, return_inverse=True)
    else:
        values = np.array(sorted(set(known), key=lambda value: (isinstance(value, str), value)), dtype=object)
        code_of = {value: code for code, value in enumerate(values)}
        known_codes = np.array([code_of[value] for value in known], dtype=np.intp)
    if values.size and all(isinstance(value, (bool, np.bool_)) for value in values):
        values = np.array([False, True])
        known_codes = known.astype(np.intp)
    codes = np.full(cells.size, -1, dtype=np.intp)
    codes[present] = known_codes
    return codes, values


def read_numbers(column: Any) -> Array | None:
    """Return a column of numbers as floats, NaN where missing; None if it holds categories, Booleans or text."""
    values = np.asarray(column)
    present = ~_find_missing(values)
    if values.dtype.kind == "O":
        numeric = all(isinstance(one, Real) and not isinstance(one, (bool, np.bool_)) for one in values[present])
    else:
        numeric = values.dtype.kind in "iuf"
    if not numeric or type(column.dtype).__name__ == "CategoricalDtype":
        return None
    numbers = np.full(values.size, np.nan)
    numbers[present] = values[present].astype(np.float64)
    return numbers
