"""Tables of any kind as numbers: arrays, lists, sparse matrices, data frames of pandas, polars and pyarrow.

`learn` finds the categories in a table's columns, `Schema.encode` makes numbers of this table or another. Numbers stay
as they are, a missing value is NaN, a category is its index among the known ones. Values are one category where == says
so, as in pandas: 1, 1.0 and True are the same, "1" is another. No library of data frames is imported here: who passes a
frame has imported it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Number
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from untwist.data.workers import ALONE, Workers

__all__ = ["Category", "Schema", "checksums", "fingerprint", "learn", "learn_parts", "on_host", "whole"]

Category = int | float | str
Levels = tuple[NDArray[np.intp], Iterable[Any]]  # for each row the index of its value, -1 where missing; the values

_DATES = {"datetime", "date", "time", "timedelta", "datetime64", "timedelta64", "Timestamp", "Timedelta", "NaTType"}
MOST_VALUES = 1 << 24  # of a column of categories: more of them are names of rows
_ADVICE = "make numbers of it (of a date, say, the days since another), or text, or leave it out"


@dataclass(frozen=True)
class Schema:
    """How the columns of a table become numbers.

    `categories` holds, by the index of a categorical column, its known categories: numbers before text, each in order.
    """

    categories: dict[int, tuple[Category, ...]]

    def encode(self, X: Any) -> Any:
        """`X` as numbers: a float32 or float64 array, CSR or CSC if sparse; no copy where it is that already.

        Categories become their index, NaN where missing or unknown. float32 only where that loses nothing. What is not
        two-dimensional comes back as an array, for scikit-learn to complain about.
        """
        X = _table(X)
        if sparse.issparse(X):
            if self.categories:
                raise ValueError("X must be dense, as it was when fitted: a sparse table cannot hold categories")
            return _floats(X if X.format in ("csr", "csc") else X.tocsr())
        if _is(X, "pandas", "DataFrame") and len(set(X.dtypes)) == 1 and _real(X.dtypes.iloc[0]):
            X = X.to_numpy()  # a view, if pandas keeps it in one block
        if isinstance(X, np.ndarray) and X.ndim != 2:
            return X
        if isinstance(X, np.ndarray) and _real(X.dtype):
            categories = {index: known for index, known in self.categories.items() if index < X.shape[1]}
            out = X.astype(_float(X.dtype)) if categories else _floats(X)
            for index, known in categories.items():
                out[:, index] = _places(_array_column(index, X[:, index]), known)
            return out
        columns = _columns(X)
        encoded = [
            _places(column, self.categories[index]) if index in self.categories else _numbers(column)
            for index, column in enumerate(columns)
        ]
        if text := [column.name for column, values in zip(columns, encoded, strict=True) if values is None]:
            raise ValueError(f"X must hold numbers where it did when fitted, but {_holds(text)} text")
        out = np.empty((X.shape[0], len(columns)), np.result_type(np.float32, *encoded), order="F")
        for index, values in enumerate(encoded):
            out[:, index] = values
        return out


def learn(
    X: Any,
    categorical_features: Any = "auto",
    sample_weight: ArrayLike | None = None,
    max_categories: int = 254,
    workers: Workers = ALONE,
) -> Schema:
    """The schema of the table `X`, whatever the order of its rows; that of all workers' rows where there are several.

    Categorical are, if "auto", the columns of text and of category types; if None, no column; or those given by their
    indices (a whole number always counts as one), their names, or a mask. Of more than `max_categories` in a column,
    the heaviest by `sample_weight` (not negative, one number per row) are known; among equals the first in order.
    """
    if not isinstance(max_categories, Integral) or not 1 <= max_categories <= 2**24:  # float32 holds these indices
        raise ValueError(f"max_categories must be an integer from 1 to {2**24}, got {max_categories!r}")
    given, X = X, _table(X)
    if sparse.issparse(X):
        if _chosen(categorical_features, getattr(given, "columns", range(X.shape[-1])), []):
            raise ValueError("categorical_features must be None or empty if X is sparse: make X dense, or encode it")
        return Schema({})
    if isinstance(X, np.ndarray) and X.ndim != 2:
        return Schema({})
    columns = _columns(X)
    if sample_weight is not None and np.shape(sample_weight) != (X.shape[0],):
        shape = np.shape(sample_weight)
        raise ValueError(f"sample_weight must be {X.shape[0]} numbers, one per row, got shape {shape}")
    heaviest = max(workers.all_of(0.0 if sample_weight is None else float(np.max(sample_weight, initial=0.0))))
    part = columns, whole(sample_weight, X.shape[0], heaviest)
    return _schema(columns, [part], categorical_features, int(max_categories), workers)


def learn_parts(
    head: Any,
    parts: Iterable[tuple[Any, NDArray[np.int64]]],
    categorical_features: Any = "auto",
    max_categories: int = 254,
) -> Schema:
    """The schema of a table that comes in parts, each with its `whole` weights: the one that `learn` gives all of it.

    `head` is any part, an empty one too: it has the names and types.
    """
    columns = ((_columns(_table(part)), weight) for part, weight in parts)
    return _schema(_columns(_table(head)), columns, categorical_features, max_categories)


def whole(weight: ArrayLike | None, n_rows: int, heaviest: float | None = None) -> NDArray[np.int64]:
    """Weights as whole numbers, whose sums depend on no order: in units of 2^-32 of the heaviest, or all 1."""
    if weight is None:
        return np.broadcast_to(np.int64(1), n_rows)
    weight = np.asarray(weight, dtype=np.float64)
    exponent = np.frexp(weight.max(initial=0.0) if heaviest is None else heaviest)[1]
    return np.asarray(np.maximum(np.rint(np.ldexp(weight, 32 - exponent)), weight > 0), dtype=np.int64)


def _schema(
    columns: list[_Column],
    parts: Iterable[tuple[list[_Column], NDArray[np.int64]]],
    categorical_features: Any,
    max_categories: int,
    workers: Workers = ALONE,
) -> Schema:
    """The schema of these columns, whose rows come in parts."""
    text = [index for index, column in enumerate(columns) if column.kind == "text"]
    chosen = _chosen(categorical_features, [column.name for column in columns], text)
    chosen = set().union(*workers.all_of(chosen))
    others = [index for index in text if index not in chosen]
    totals: dict[int, dict[Category, int]] = {index: {} for index in sorted(chosen)}
    for part, weight in parts if chosen or others else []:
        if stray := [part[i].name for i in others if _numbers(part[i]) is None]:
            raise ValueError(
                f"X must hold numbers outside categorical_features, but {_holds(stray)} text: add it there, or set "
                'categorical_features="auto", or encode it, say with OrdinalEncoder'
            )
        for index, total in totals.items():
            _add_up(part[index], weight, total)
    everywhere = [Counter[Category]() for _ in totals]
    for found in workers.all_of(list(totals.values())):
        for total, one in zip(everywhere, found, strict=True):
            total.update(one)
    return Schema({index: _heaviest(total, max_categories) for index, total in zip(totals, everywhere, strict=True)})


def fingerprint(numbers: Any, labels: NDArray[np.uint32]) -> int:
    """Tells an encoded table with its labels from another one."""
    if hasattr(numbers, "checksums"):  # of rows that come in blocks
        parts = numbers.checksums()
    elif sparse.issparse(numbers):
        table = numbers.tocsr(copy=True)
        table.sum_duplicates()
        arrays = [table.indptr.astype(np.int64), table.indices.astype(np.int64), table.data.astype(np.float64)]
        parts = [crc32(part.tobytes()) for part in arrays]
    else:
        parts = checksums(numbers)
    return crc32(np.array(parts, dtype=np.uint32).tobytes(), crc32(labels.tobytes()))


def checksums(numbers: NDArray[Any], before: list[int] | None = None) -> list[int]:
    """One for each column, going on from those of the rows before."""
    columns = [np.ascontiguousarray(column, dtype=np.float64) for column in numbers.T]
    return [crc32(column.tobytes(), start) for column, start in zip(columns, before or [0] * len(columns), strict=True)]


def _chosen(features: Any, names: Iterable[Any], text: list[int]) -> set[int]:
    """Indices of the columns that `categorical_features` means."""
    if features is None or (isinstance(features, str) and features == "auto"):
        return set() if features is None else set(text)
    wanted = 'categorical_features must be "auto", None, or a list of column indices, of column names, or of Booleans'
    if isinstance(features, (str, bytes)) or not isinstance(features, Iterable):
        raise ValueError(f"{wanted}, got {features!r}")
    features, names = list(features), list(names)
    kinds = {"mask" if isinstance(one, (bool, np.bool_)) else isinstance(one, Integral) for one in features}
    if len(kinds) > 1 or any(isinstance(one, (float, list, np.ndarray)) for one in features):
        raise ValueError(f"{wanted}, got {features!r}")
    if kinds == {"mask"}:
        if len(features) != len(names):
            raise ValueError(f"{wanted}, one for each of {len(names)} columns, got {len(features)} Booleans")
        return {index for index, one in enumerate(features) if one}
    known = range(len(names)) if kinds == {True} else names
    if unknown := [one for one in features if one not in known]:
        has = f"indices from 0 to {len(names) - 1}" if kinds == {True} else f"names of columns, such as {names[:5]}"
        raise ValueError(f"categorical_features must be {has}, got {unknown[:5]}")
    return {index for index, one in enumerate(known) if one in features}


def _add_up(column: _Column, weight: NDArray[np.int64], total: dict[Category, int]) -> None:
    """Adds to the total weight of each category that of its rows."""
    codes, values = _values(column)
    known = codes >= 0
    sums = np.zeros(len(values), dtype=np.int64)
    np.add.at(sums, codes[known], weight[known])
    for code in np.flatnonzero(sums):
        if (value := values[code]) is not None:
            total[value] = total.get(value, 0) + int(sums[code])
    if len(total) > MOST_VALUES:
        raise ValueError(f"column {column.name!r} holds more than {MOST_VALUES} different categories: leave it out")


def _heaviest(total: dict[Category, int], most: int) -> tuple[Category, ...]:
    """The categories in order; if they are more than `most`, the heaviest, and the first in order among equals."""
    known = sorted(total, key=lambda value: (isinstance(value, str), value))
    if len(known) > most:
        heaviest = sorted(range(len(known)), key=lambda place: -total[known[place]])[:most]
        known = [known[place] for place in sorted(heaviest)]
    return tuple(known)


def _places(column: _Column, known: tuple[Category, ...]) -> NDArray[np.float32]:
    """The index of each row's category; text must not come where all were numbers, nor numbers where all were text."""
    codes, values = _values(column)
    kinds, known_kinds = ({isinstance(value, str) for value in some if value is not None} for some in (values, known))
    if kinds and known_kinds and not kinds & known_kinds:
        before, now = ("text", "numbers") if True in known_kinds else ("numbers", "text")
        raise ValueError(f"column {column.name!r} held {before} as categories when fitted, and {now} now: convert it")
    return _lookup(codes, values, known)


def _lookup(codes: NDArray[np.intp], values: list[Any], known: Iterable[Category]) -> NDArray[np.float32]:
    """The index of each row's category among the known ones, NaN where it is missing or none of them."""
    places = {value: place for place, value in enumerate(known)}
    return np.array([places.get(value, np.nan) for value in [*values, None]], np.float32)[codes]  # -1 takes the last


def _numbers(column: _Column) -> NDArray[Any] | None:
    """A column as float32 or float64, None if it holds text; categories may well be numbers."""
    if column.kind == "number":
        return column.numbers()
    codes, values = _values(column)
    if any(isinstance(values[code], str) for code in _distinct(codes[codes >= 0])):
        return None
    return np.array([np.nan if isinstance(one, str | None) else one for one in [*values, None]], np.float64)[codes]


def _values(column: _Column) -> tuple[NDArray[np.intp], list[Category | None]]:
    """For each row the code of its value, -1 where missing; the values, None for one that means missing."""
    try:
        codes, levels = column.levels()
        return codes, [_category(level) for level in levels]
    except TypeError as error:
        raise ValueError(f"categories must be text or numbers, but not in column {column.name!r}: {error}") from error


def _category(value: Any) -> Category | None:
    """`value` as plain text or number, the same one for equal values; None if it means missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)  # the text itself, also of a subclass that prints otherwise
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Number) and not isinstance(value, complex):
        number = float(value)  # type: ignore[arg-type]  # real by now
        return int(number) if number.is_integer() else None if np.isnan(number) else number
    if type(value).__name__ == "Interval":  # what pandas.cut makes
        return str(value)
    raise TypeError(f"it holds a {type(value).__name__}, {value!r:.50}; {_ADVICE}")


def on_host(table: Any) -> Any:
    """What lies on a GPU (of CuPy, cuDF or PyTorch) in the memory of the machine; anything else as it is."""
    if type(table).__module__.split(".")[0] == "cudf":
        return table.to_pandas()
    if hasattr(table, "__cuda_array_interface__"):
        return table.get() if hasattr(table, "get") else table.cpu().numpy()
    return table


def _table(X: Any) -> Any:
    """`X` as a sparse matrix, an array, or a data frame of pandas, polars or pyarrow."""
    X = on_host(X)
    if type(X).__module__.split(".")[0] == "xgboost":
        raise ValueError("X must be a table, got a matrix of XGBoost, which keeps no rows: give what it was made of")
    if type(X) is np.ndarray or sparse.issparse(X) or _is(X, "polars", "DataFrame") or _is(X, "pyarrow", "Table"):
        return X
    if _is(X, "polars", "LazyFrame"):
        raise ValueError("X must be a table, got a polars LazyFrame: call its collect() first")
    if _is(X, "pyarrow", "RecordBatch"):
        return sys.modules["pyarrow"].Table.from_batches([X])
    if _is(X, "pandas", "DataFrame"):
        wholly = X.shape[1] and all(type(t).__name__ == "SparseDtype" and t.fill_value == 0 for t in X.dtypes)
        return X.sparse.to_coo() if wholly else X
    if isinstance(X, np.ma.MaskedArray):
        values = X.data.astype(object)
        values[np.ma.getmaskarray(X)] = None  # masked means missing
        return values
    array = np.asarray(X)
    mixed = array.dtype.kind in "US" and isinstance(X, (list, tuple))  # NumPy made text of any numbers in it
    return np.asarray(X, dtype=object) if mixed else array


@dataclass(frozen=True)
class _Column:
    """One column of a table."""

    name: Any
    kind: str  # "number", "text" (or categories of any kind), or else the type that it has instead
    numbers: Callable[[], NDArray[Any]]  # if of this kind: as float32 or float64, NaN where missing
    levels: Callable[[], Levels]


def _columns(X: Any) -> list[_Column]:
    """The columns of an array or a data frame; a ValueError if one holds neither numbers nor text."""
    if isinstance(X, np.ndarray):
        columns = [_array_column(index, X[:, index]) for index in range(X.shape[1])]
    elif _is(X, "pandas", "DataFrame"):
        columns = [_pandas_column(name, series) for name, series in X.items()]
    elif _is(X, "polars", "DataFrame"):
        columns = [_polars_column(series) for series in X.get_columns()]
    else:
        columns = [_arrow_column(name, values) for name, values in zip(X.column_names, X.columns, strict=True)]
    for column in columns:
        if column.kind.startswith("complex"):
            raise ValueError(f"Complex data not supported: column {column.name!r} is {column.kind}")
        if column.kind not in ("number", "text"):
            raise ValueError(f"X must hold numbers or text, but column {column.name!r} is {column.kind}: {_ADVICE}")
    return columns


def _array_column(name: Any, values: NDArray[Any]) -> _Column:
    if _real(values.dtype):
        return _Column(name, "number", lambda: _floats(values), lambda: np.unique(values, return_inverse=True)[::-1])
    kind = "text" if values.dtype.kind in "UT" else str(values.dtype)
    if values.dtype.kind == "O":
        types = {one.__name__: one for one in set(map(type, values.tolist()))}
        odd = [key for key, one in types.items() if key in _DATES or issubclass(one, (complex, bytes))]
        kind = "text" if any(issubclass(one, str) for one in types.values()) else min(odd) if odd else "number"
        if "NAType" in types:  # of pandas
            values = np.array([None if type(one).__name__ == "NAType" else one for one in values], dtype=object)
        if "Decimal" in types:  # == with an integer of NumPy is an error
            values = np.array([float(one) if type(one).__name__ == "Decimal" else one for one in values], dtype=object)

    def numbers() -> NDArray[Any]:
        try:
            return np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            which = TypeError if isinstance(error, TypeError) else ValueError  # scikit-learn tells these two apart
            raise which(f"X must hold numbers or text, but not in column {name!r}: {error}; {_ADVICE}") from error

    def levels() -> Levels:
        rows = values.tolist()
        codes = {value: code for code, value in enumerate(dict.fromkeys(rows))}
        return np.fromiter(map(codes.__getitem__, rows), np.intp, len(rows)), codes

    return _Column(name, kind, numbers, levels)


def _pandas_column(name: Any, series: Any) -> _Column:
    dtype, kind = series.dtype, type(series.dtype).__name__
    if kind == "ArrowDtype":
        return _arrow_column(name, series.array.__arrow_array__())
    if kind == "SparseDtype" or isinstance(dtype, np.dtype):
        return _array_column(name, np.asarray(series))
    plain = getattr(dtype, "numpy_dtype", None)  # of nullable numbers

    def numbers() -> NDArray[Any]:
        return series.to_numpy(dtype=_float(plain), na_value=np.nan)  # type: ignore[no-any-return]

    if kind == "CategoricalDtype":
        return _Column(name, "text", numbers, lambda: (series.cat.codes.to_numpy(), series.cat.categories))
    kind = "text" if kind == "StringDtype" else "number" if _real(plain) else str(dtype)
    return _Column(name, kind, numbers, series.factorize)


def _polars_column(series: Any) -> _Column:
    polars, kind = sys.modules["polars"], series.dtype.base_type().__name__
    if kind == "Object":
        return _array_column(series.name, series.to_numpy())
    small = kind in ("Boolean", "Int8", "Int16", "UInt8", "UInt16", "Float16", "Float32")
    target = polars.Float32 if small else polars.Float64
    number = kind in ("Boolean", "Null") or series.dtype.is_numeric()
    kind = "number" if number else "text" if kind in ("String", "Categorical", "Enum") else str(series.dtype)

    def levels() -> Levels:
        values = series.cast(target) if series.dtype.is_decimal() else series
        distinct = values.drop_nulls().unique()
        places = polars.int_range(len(distinct), eager=True)
        codes = values.replace_strict(distinct, places, default=-1, return_dtype=polars.Int64)
        return codes.to_numpy(), distinct.to_list()

    return _Column(series.name, kind, lambda: series.cast(target).to_numpy(), levels)


def _arrow_column(name: Any, values: Any) -> _Column:
    types, kind = sys.modules["pyarrow"].types, str(values.type)
    target = "float32" if kind in ("bool", "int8", "int16", "uint8", "uint16", "halffloat", "float") else "float64"
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    text = types.is_dictionary(values.type) or kind in ("string", "large_string", "string_view")
    kind = "text" if text else "number" if any(test(values.type) for test in tests) else kind

    def levels() -> Levels:
        rows = values.cast(target) if types.is_float16(values.type) else values  # what pyarrow 17 cannot encode
        encoded = rows.dictionary_encode().combine_chunks()
        return encoded.indices.cast("int64").fill_null(-1).to_numpy(), encoded.dictionary.to_pylist()

    return _Column(name, kind, lambda: values.cast(target, safe=False).to_numpy(), levels)  # not safe: may round


def _is(X: Any, library: str, name: str) -> bool:
    """Whether `X` is of this class of a library that may not be there."""
    return isinstance(X, getattr(sys.modules.get(library), name, ()))


def _real(dtype: Any) -> bool:
    """Whether this is a NumPy type of real numbers or Booleans."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _float(dtype: Any) -> Any:
    """The float type that loses nothing, as far as there is one."""
    return np.float32 if np.can_cast(dtype, np.float32) else np.float64


def _floats(X: Any) -> Any:
    """An array or sparse matrix as float32 or float64."""
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X is {X.dtype}")
    return X.astype(_float(X.dtype), copy=False)


def _distinct(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.flatnonzero(np.bincount(codes))


def _holds(names: list[Any]) -> str:
    shown = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"column {shown} holds" if len(names) == 1 else f"columns {shown} hold"
