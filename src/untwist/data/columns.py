"""Columns of any kind of table: what each one holds, and how to read it as numbers or as categories.

A column of an array, or of a data frame of pandas, polars or pyarrow, becomes a `Column`, whose
values are converted when they are asked for. No library of data frames is imported here: who passes a frame has
imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.data.cells import to_days

Category = int | float | str
# For each row the code of its value, which is its index among the values, or -1 where it is missing; and the values.
CodedValues = tuple[NDArray[np.intp], Iterable[Any]]

# The kinds of columns that are read as numbers.
NUMERIC = ("number", "truth", "duration", "date")
# What a message says of a value that is neither a number nor text.
_ADVICE = "make numbers of it, or text, or leave it out"
# A decimal number of Arrow has at most this many digits; of longer ones no whole number is made.
MOST_DIGITS = 76
# How many units of time a day has.
_PER_DAY = {"D": 1.0, "s": 86_400.0, "ms": 86_400e3, "us": 86_400e6, "ns": 86_400e9}


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : Any
        Its name, or its index in an array.
    kind : str
        "number", "truth" (Booleans), "duration", "date", "text" (or categories of any kind), or else the name of its
        type.
    read_numbers : callable
        Gives a column of numbers as float32 or float64, or durations as days, or dates as days since 1970; NaN where
        missing.
    read_coded_values : callable
        Gives a column of numbers or text as codes of its values, -1 where missing, and the values.
    is_categorical : bool
        Whether the type of the column says that its values are categories.
    is_wide : bool
        Whether the type of the column may hold whole numbers that float64 does not.
    """

    name: Any
    kind: str
    read_numbers: Callable[[], NDArray[Any]]
    read_coded_values: Callable[[], CodedValues]
    is_categorical: bool = False
    is_wide: bool = False


def describe_columns(X: Any) -> list[Column]:
    """Describe the columns of a table; raise a ValueError if one holds neither numbers nor dates nor text.

    Parameters
    ----------
    X : table
        An array of two dimensions, or a data frame of pandas, polars or pyarrow.

    Returns
    -------
    list of Column
        The columns in order, each of a kind of `NUMERIC`, or "text".
    """
    if isinstance(X, np.ndarray):
        columns = [describe_array(index, X[:, index]) for index in range(X.shape[1])]
    elif is_a(X, "pandas", "DataFrame"):
        columns = [_describe_pandas(name, series) for name, series in X.items()]
    elif is_a(X, "polars", "DataFrame"):
        columns = [_describe_polars(series) for series in X.get_columns()]
    else:
        columns = [_describe_arrow(name, values) for name, values in zip(X.column_names, X.columns, strict=True)]
    for column in columns:
        if column.kind.startswith("complex"):
            raise ValueError(f"Complex data not supported: column {column.name!r} is {column.kind}")
        if column.kind not in (*NUMERIC, "text"):
            raise ValueError(f"X must hold numbers or text, but column {column.name!r} is {column.kind}: {_ADVICE}")
    return columns


def describe_array(name: Any, values: NDArray[Any]) -> Column:
    """Describe one column of an array.

    Parameters
    ----------
    name : Any
        What messages call the column.
    values : ndarray of shape (n_rows,)
        Its values, of any type.

    Returns
    -------
    Column
        Of a kind of `NUMERIC`, "text", or else the name of a type that cannot be learned from.
    """
    if values.dtype.kind in "mM":
        return _describe_times(name, "date" if values.dtype.kind == "M" else "duration", lambda: to_days(values))
    if is_real(values.dtype):
        return Column(
            name,
            _name_real(values.dtype),
            lambda: convert_to_floats(values),
            lambda: np.unique(values, return_inverse=True)[::-1],
            is_wide=_is_wide(values.dtype),
        )
    is_wide = False
    kind = "text" if values.dtype.kind in "UT" else str(values.dtype)
    if values.dtype.kind == "O":
        types = {one.__name__: one for one in set(map(type, values.tolist()))}
        if found := _describe_time_objects(name, values, types):
            return found
        odd = [key for key, one in types.items() if _is_time(one) or issubclass(one, (complex, bytes))]
        kind = "text" if any(issubclass(one, str) for one in types.values()) else "number"
        if kind == "number" and odd:
            kind = min(odd) if min(odd).startswith("complex") else f"of type {min(odd)}"
        # A missing value is None, or a float that is NaN.
        known = types.keys() - {"NoneType", "NAType"}
        if kind == "number" and known & {"bool", "bool_"} and known <= {"bool", "bool_", "float"}:
            kind = "truth" if all(one != one for one in values.tolist() if type(one) is float) else kind
        is_wide = any(issubclass(one, (int, np.integer)) or key == "Decimal" for key, one in types.items())
        if "NAType" in types:
            # This is the missing value of pandas.
            values = np.array([None if type(one).__name__ == "NAType" else one for one in values], dtype=object)
        if "Decimal" in types:
            # A Decimal cannot be compared with an integer of NumPy.
            values = np.array([_to_number(one) if isinstance(one, Decimal) else one for one in values], dtype=object)

    def read_numbers() -> NDArray[Any]:
        try:
            return np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            # scikit-learn tells these two kinds of errors apart.
            which = TypeError if isinstance(error, TypeError) else ValueError
            raise which(f"X must hold numbers or text, but not in column {name!r}: {error}; {_ADVICE}") from error

    def read_coded_values() -> CodedValues:
        rows = values.tolist()
        codes = {value: code for code, value in enumerate(dict.fromkeys(rows))}
        return np.fromiter(map(codes.__getitem__, rows), np.intp, len(rows)), codes

    return Column(name, kind, read_numbers, read_coded_values, is_wide=is_wide)


def _to_number(value: Decimal) -> int | float:
    """Return a whole number as such, so that none becomes another one; all others as the nearest of float64."""
    is_whole = value.is_finite() and value.adjusted() < MOST_DIGITS and value == int(value)
    return int(value) if is_whole else float(value)


def _describe_times(name: Any, kind: str, read_days: Callable[[], NDArray[Any]]) -> Column:
    """Describe a column of dates, or of durations."""

    def refuse_categories() -> CodedValues:
        raise TypeError(f"it holds {name_kind(kind)}; {_ADVICE}")

    return Column(name, kind, read_days, refuse_categories)


def _is_time(one: type) -> bool:
    """Tell whether a type is one of dates, of times of day or of lengths of time."""
    names = {"datetime64", "timedelta64", "NaTType", "time"}
    return issubclass(one, (date, timedelta)) or one.__name__ in names


def _describe_time_objects(name: Any, values: NDArray[Any], types: dict[str, type]) -> Column | None:
    """Describe a column of dates, or of lengths of time, as objects; None if it holds anything else."""
    known = {key: one for key, one in types.items() if key not in ("NoneType", "NaTType", "NAType", "float")}
    is_whole = "float" not in types or all(one != one for one in values.tolist() if type(one) is float)
    for kind, family, label in (("date", date, "datetime64"), ("duration", timedelta, "timedelta64")):
        if known and is_whole and all(issubclass(one, family) or key == label for key, one in known.items()):

            def read_days(label: str = label) -> NDArray[Any]:
                moments = [_to_moment(one, label) for one in values.tolist()]
                return to_days(np.array(moments, dtype=f"{label}[us]"))

            return _describe_times(name, kind, read_days)
    return None


def _to_moment(value: Any, label: str) -> Any:
    """Return a date, a length of time or a missing one as NumPy takes it; a date of a time zone as that of UTC."""
    if value is None or value != value or type(value).__name__ in ("NaTType", "NAType"):
        return np.datetime64("NaT", "us") if label == "datetime64" else np.timedelta64("NaT", "us")
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def _describe_pandas(name: Any, series: Any) -> Column:
    dtype = series.dtype
    kind = type(dtype).__name__
    if kind == "ArrowDtype":
        return _describe_arrow(name, series.array.__arrow_array__())
    if kind == "SparseDtype" or isinstance(dtype, np.dtype):
        return describe_array(name, np.asarray(series))
    if kind == "DatetimeTZDtype":
        return describe_array(name, series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    # Nullable numbers have a type of NumPy within theirs.
    plain = getattr(dtype, "numpy_dtype", None)

    def read_numbers() -> NDArray[Any]:
        return series.to_numpy(dtype=choose_float(plain), na_value=np.nan)  # type: ignore[no-any-return]

    if kind == "CategoricalDtype":
        return Column(name, "text", read_numbers, lambda: (series.cat.codes.to_numpy(), series.cat.categories), True)
    kind = "text" if kind == "StringDtype" else _name_real(plain) if is_real(plain) else str(dtype)
    return Column(name, kind, read_numbers, series.factorize, is_wide=is_real(plain) and _is_wide(plain))


def _describe_polars(series: Any) -> Column:
    polars = sys.modules["polars"]
    kind = series.dtype.base_type().__name__
    if kind == "Object":
        return describe_array(series.name, series.to_numpy())
    if kind in ("Date", "Datetime", "Duration"):
        # A date of a time zone is kept as that of UTC.
        unit = "D" if kind == "Date" else series.dtype.time_unit

        def read_days() -> NDArray[np.float64]:
            return np.asarray(series.to_physical().cast(polars.Float64).to_numpy() / _PER_DAY[unit])

        return _describe_times(series.name, "duration" if kind == "Duration" else "date", read_days)
    small = kind in ("Boolean", "Int8", "Int16", "UInt8", "UInt16", "Float16", "Float32")
    target = polars.Float32 if small else polars.Float64
    is_categorical = kind in ("Categorical", "Enum")
    is_wide = series.dtype.is_decimal() or (series.dtype.is_integer() and not small)
    if kind in ("String", "Categorical", "Enum"):
        kind = "text"
    elif kind == "Boolean":
        kind = "truth"
    else:
        kind = "number" if kind == "Null" or series.dtype.is_numeric() else str(series.dtype)

    def read_coded_values() -> CodedValues:
        # As float64 some decimals would be the same.
        is_decimal = series.dtype.is_decimal()
        values = series.cast(polars.String) if is_decimal else series
        distinct = values.drop_nulls().unique()
        indices = polars.int_range(len(distinct), eager=True)
        codes = values.replace_strict(distinct, indices, default=-1, return_dtype=polars.Int64)
        return codes.to_numpy(), map(Decimal, distinct) if is_decimal else distinct.to_list()

    return Column(series.name, kind, lambda: series.cast(target).to_numpy(), read_coded_values, is_categorical, is_wide)


def _describe_arrow(name: Any, values: Any) -> Column:
    types = sys.modules["pyarrow"].types
    kind = str(values.type)
    if types.is_date(values.type) or types.is_timestamp(values.type) or types.is_duration(values.type):
        unit = "D" if types.is_date32(values.type) else "ms" if types.is_date64(values.type) else values.type.unit
        whole = "int32" if unit == "D" else "int64"
        return _describe_times(
            name,
            "duration" if types.is_duration(values.type) else "date",
            lambda: values.cast(whole).cast("float64", safe=False).to_numpy() / _PER_DAY[unit],
        )
    target = "float32" if kind in ("bool", "int8", "int16", "uint8", "uint16", "halffloat", "float") else "float64"
    is_wide = types.is_decimal(values.type) or (types.is_integer(values.type) and target == "float64")
    tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    if types.is_dictionary(values.type) or kind in ("string", "large_string", "string_view"):
        kind = "text"
    elif types.is_boolean(values.type):
        kind = "truth"
    elif any(test(values.type) for test in tests):
        kind = "number"

    def read_coded_values() -> CodedValues:
        # pyarrow 17 cannot encode numbers of 16 bits.
        rows = values.cast(target) if types.is_float16(values.type) else values
        encoded = rows.dictionary_encode().combine_chunks()
        return encoded.indices.cast("int64").fill_null(-1).to_numpy(), encoded.dictionary.to_pylist()

    # A cast that is not safe may round.
    is_categorical = types.is_dictionary(values.type)
    return Column(
        name, kind, lambda: values.cast(target, safe=False).to_numpy(), read_coded_values, is_categorical, is_wide
    )


def _name_real(dtype: Any) -> str:
    """Return the kind of a column of real numbers or Booleans of NumPy."""
    return "truth" if dtype.kind == "b" else "number"


def _is_wide(dtype: Any) -> bool:
    """Tell whether a type of NumPy holds whole numbers that float64 does not."""
    return bool(dtype.kind in "iu" and dtype.itemsize == 8)


def name_kind(kind: str) -> str:
    """Return what columns of a kind hold, in words.

    Parameters
    ----------
    kind : str
        The kind of a column.

    Returns
    -------
    str
    """
    names = {"truth": "Booleans", "duration": "lengths of time"}
    return names.get(kind, kind if kind == "text" else f"{kind}s")


def read_as_numbers(column: Column) -> NDArray[Any] | None:
    """Read a column as numbers, which categories may be as well.

    Parameters
    ----------
    column : Column
        Of a kind of `NUMERIC`, or "text".

    Returns
    -------
    ndarray of shape (n_rows,) or None
        float32 or float64, NaN where missing; None if the column holds text.
    """
    if column.kind in NUMERIC:
        return column.read_numbers()
    codes, values = read_as_categories(column)
    if any(isinstance(values[code], str) for code in _find_distinct(codes[codes >= 0])):
        return None
    # The code -1 takes the last number, that of None.
    number_by_code = np.array([np.nan if isinstance(one, str | None) else one for one in [*values, None]], np.float64)
    return np.asarray(number_by_code[codes])


def read_as_categories(column: Column) -> tuple[NDArray[np.intp], list[Category | None]]:
    """Read a column as categories.

    Parameters
    ----------
    column : Column
        Of kind "number" or "text".

    Returns
    -------
    codes : ndarray of shape (n_rows,)
        For each row the index of its value among the values, -1 where missing.
    values : list
        Plain numbers and text, None for a value that means missing.
    """
    try:
        codes, values = column.read_coded_values()
        return codes, [_read_category(value) for value in values]
    except TypeError as error:
        raise ValueError(
            f"categories must be text or numbers, but not in column {column.name!r}: {error}; leave the column out, or "
            "make a column of each of its parts"
        ) from error


def _read_category(value: Any) -> Category | None:
    """Return `value` as plain text or number, the same one for equal values; None if it means missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        # A subclass of str may print otherwise than the text that it is.
        return str.__str__(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, Decimal):
        value = _to_number(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Number) and not isinstance(value, complex):
        number = float(value)  # type: ignore[arg-type]
        if np.isnan(number):
            return None
        return int(number) if number.is_integer() else number
    if type(value).__name__ == "Interval":
        # These are what pandas.cut makes.
        return str(value)
    raise TypeError(f"it holds a {type(value).__name__}, {value!r:.50}; {_ADVICE}")


def is_a(X: Any, library: str, name: str) -> bool:
    """Tell whether something is of a class of a library that may not be there.

    Parameters
    ----------
    X : Any
        Anything.
    library : str
        The name of the library, which is not imported.
    name : str
        The name of the class in it.

    Returns
    -------
    bool
        False where the library has not been imported.
    """
    return isinstance(X, getattr(sys.modules.get(library), name, ()))


def is_real(dtype: Any) -> bool:
    """Tell whether a type is one of NumPy's types of real numbers or Booleans.

    Parameters
    ----------
    dtype : Any
        A type of any library.

    Returns
    -------
    bool
        True for Booleans, integers and floats of NumPy.
    """
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def choose_float(dtype: Any) -> Any:
    """Choose the type of floats that loses nothing, as far as there is one.

    Parameters
    ----------
    dtype : numpy.dtype
        The type of the numbers.

    Returns
    -------
    type
        numpy.float32 or numpy.float64.
    """
    return np.float32 if np.can_cast(dtype, np.float32) else np.float64


def convert_to_floats(X: Any) -> Any:
    """Convert an array or sparse matrix to floats.

    Parameters
    ----------
    X : ndarray or sparse matrix
        Real numbers; complex ones raise a ValueError.

    Returns
    -------
    ndarray or sparse matrix
        float32 where that loses nothing, else float64; no copy where X is that already.
    """
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X is {X.dtype}")
    return X.astype(choose_float(X.dtype), copy=False)


def _find_distinct(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.flatnonzero(np.bincount(codes))
