"""Tables of any kind as numbers: arrays, lists, sparse matrices, data frames of pandas, polars and pyarrow.

`learn` finds the categories in a table's columns, `Schema.encode` makes numbers of this table or another. Numbers stay
as they are, a missing value is NaN, a category is its index among the known ones. Values are one category where == says
so, as in pandas: 1, 1.0 and True are the same, "1" is another. Dates are days since 1970; a column of text that holds
nothing but numbers, or dates, is read as such. No library of data frames is imported here: who passes a
frame has imported it.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from os import PathLike
from typing import Any, NoReturn
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from untwist.data.cells import MISSING_AMONG_NUMBERS, TRUTH, Reading, decide, list_some
from untwist.data.column_names import list_names
from untwist.data.columns import (
    Category,
    Column,
    choose_float,
    convert_to_floats,
    describe_array,
    describe_columns,
    is_a,
    is_real,
    name_kind,
    read_as_categories,
    read_as_numbers,
)
from untwist.data.whole_numbers import LARGEST_EXACT, refuse_merged_numbers
from untwist.data.workers import Workers, solo

# At most this many categories of a column are known, unless said otherwise; of more, the heaviest.
KNOWN_CATEGORIES = 254
# float32, in which categories are encoded, holds whole numbers up to this.
LARGEST_CODE = 2**24
# A column with more different values than this names its rows rather than describing them, and is refused.
MOST_DISTINCT = 2**24
# A category that was never seen is nothing strange by itself: nobody is warned before this many rows hold only such.
FEWEST_STRANGERS = 10
# The heaviest of rounded weights has this many bits, which leaves 31 of an int64 for sums over rows.
WEIGHT_BITS = 32


@dataclass(frozen=True)
class Schema:
    """How the columns of a table become numbers.

    Attributes
    ----------
    categories : dict of int to tuple
        By the index of a categorical column, its known categories: numbers before text, each in order.
    numbers : dict of int to tuple
        By the index of a column that is coded by its labels, the number of each known category, and last that of an
        unknown one. Other categories are their indices.
    readings : dict of int to Reading
        By the index of a column how its texts become numbers; every column of dates has one.
    durations : frozenset of int
        The columns of lengths of time, which are encoded as days.
    truths : frozenset of int or None
        The columns of Booleans, which are encoded as 0 and 1; None where that is not known.

    Examples
    --------
    >>> schema = learn([["red", 1.5], ["blue", 2.0]])
    >>> schema
    Schema(categories={0: ('blue', 'red')})
    >>> schema.encode([["blue", 0.0], ["green", 1.0]])
    array([[ 0.,  0.],
           [nan,  1.]])
    """

    categories: dict[int, tuple[Category, ...]]
    numbers: dict[int, tuple[float, ...]] = field(default_factory=dict, repr=False)
    readings: dict[int, Reading] = field(default_factory=dict, repr=False)
    durations: frozenset[int] = field(default=frozenset(), repr=False)
    truths: frozenset[int] | None = field(default=None, repr=False, compare=False)

    def __hash__(self) -> int:
        return hash(frozenset(self.categories.items()))

    def encode(self, X: Any) -> Any:
        """Make numbers of a table.

        Parameters
        ----------
        X : table
            Any kind of table, with the columns of the one that was learned from.

        Returns
        -------
        ndarray or sparse matrix
            float32 where that loses nothing, else float64; CSR or CSC if sparse; no copy where X is that already.
            Categories are their index, NaN where missing or unknown, or the number that they are coded by, NaN where
            missing. What is not two-dimensional comes back as an array, for scikit-learn to complain about.
        """
        X = _convert_table(X)
        numbers = self._encode_cells(X)
        self._refuse_more_than_truths(X, numbers)
        return numbers

    def _encode_cells(self, X: Any) -> Any:
        """Make numbers of a table, all of them as they are."""
        if sparse.issparse(X):
            if self.categories or self.times:
                what = "categories" if self.categories else "dates" if self.dates else "lengths of time"
                raise ValueError(f"X must be dense, as it was when fitted: a sparse table cannot hold {what}")
            return convert_to_floats(X if X.format in ("csr", "csc") else X.tocsr())
        names = list_names(X)
        if is_a(X, "pandas", "DataFrame") and len(set(X.dtypes)) == 1 and is_real(X.dtypes.iloc[0]) and not self.times:
            # This is a view if pandas keeps the numbers in one block.
            X = X.to_numpy()
        if isinstance(X, np.ndarray) and X.ndim != 2:
            return X
        if isinstance(X, np.ndarray) and is_real(X.dtype) and not self.times:
            self._warn_of_truths(names or range(X.shape[1]), range(X.shape[1] if X.dtype.kind == "b" else 0))
            categories = [index for index in self.categories if index < X.shape[1]]
            out = X.astype(choose_float(X.dtype)) if categories else convert_to_floats(X)
            for index in categories:
                out[:, index] = self._encode_column(index, describe_array(index, X[:, index]))
            return out
        columns = describe_columns(X)
        self._warn_of_truths(
            [column.name for column in columns], [i for i, column in enumerate(columns) if column.kind == "truth"]
        )
        encoded = [
            self._encode_column(index, column) if index in self.categories else self._read_column(index, column)
            for index, column in enumerate(columns)
        ]
        if text := [column.name for column, values in zip(columns, encoded, strict=True) if values is None]:
            raise ValueError(f"X must hold numbers where it did when fitted, but {_say_who_holds(text)} text")
        out = np.empty((X.shape[0], len(columns)), np.result_type(np.float32, *encoded), order="F")
        for index, values in enumerate(encoded):
            out[:, index] = values
        return out

    @property
    def dates(self) -> frozenset[int]:
        """The columns of dates, which are encoded as days since 1970."""
        return frozenset(index for index, reading in self.readings.items() if reading.kind == "date")

    @property
    def times(self) -> frozenset[int]:
        """The columns of dates or of lengths of time."""
        return self.dates | self.durations

    @property
    def takes_any_number(self) -> bool:
        """Whether an array of numbers is encoded as it is, whatever these are."""
        return not (self.categories or self.times or self.truths)

    @property
    def n_sets(self) -> dict[int, int]:
        """By the index of a column that trees split by sets of categories, how many categories it has."""
        return {index: len(known) for index, known in self.categories.items() if index not in self.numbers}

    def put_numbers(self, indices: NDArray[Any]) -> NDArray[Any]:
        """Return rows in which categories are indices as they are encoded.

        Parameters
        ----------
        indices : ndarray of shape (n_rows, n_columns)
            Rows as a schema without `numbers` encodes them; a category that is NaN counts as missing.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The same array where no column is coded by its labels.
        """
        if not self.numbers:
            return indices
        rows = indices.copy()
        for index, numbers in self.numbers.items():
            codes = np.where(np.isnan(rows[:, index]), len(numbers), rows[:, index]).astype(np.intp)
            rows[:, index] = np.array([*numbers, np.nan])[codes]
        return rows

    def _read_column(self, index: int, column: Column) -> NDArray[Any] | None:
        """Return a column of numbers or dates as numbers; None if it holds text that was not learned to be read."""
        reading = self.readings.get(index)
        learned = "date" if index in self.dates else "duration" if index in self.durations else "number"
        is_time = column.kind in ("date", "duration")
        if is_time and column.kind != learned:
            days = column.read_numbers()  # A column that pandas has emptied is one of dates.
            if not np.isnan(days).all():
                _refuse_kind(column.name, name_kind(learned), name_kind(column.kind))
            return days
        if reading is None or is_time:
            numbers = read_as_numbers(column)
            if learned == "duration" and not is_time and numbers is not None and not np.isnan(numbers).all():
                _refuse_kind(column.name, name_kind(learned), name_kind(column.kind))
            return numbers
        if column.kind == "text":
            codes, values = read_as_categories(column)
            if any(isinstance(value, str) for value in values):
                return _read_texts(column.name, reading, values)[codes]
        numbers = read_as_numbers(column)
        if reading.kind == "date" and numbers is not None and not np.isnan(numbers).all():
            _refuse_kind(column.name, "dates", name_kind(column.kind))
        return numbers

    def _warn_of_truths(self, names: Sequence[Any], here: Iterable[int]) -> None:
        """Warn of columns that hold Booleans now, and held numbers: these need not have been 0 and 1 alone."""
        if self.truths is None:
            return
        others = self.truths | self.times | self.categories.keys()
        changed = [names[index] for index in here if index not in others]
        if changed:
            warnings.warn(
                f"{_say_who_holds(changed)} Booleans now, and held numbers when fitted: true is taken for 1 and false "
                "for 0; convert them, if these are what they were then",
                UserWarning,
                stacklevel=2,
            )

    def _refuse_more_than_truths(self, X: Any, numbers: Any) -> None:
        """Raise a ValueError where a column of Booleans holds other numbers now."""
        if not self.truths or numbers.ndim != 2 or numbers.shape[1] <= max(self.truths):
            return
        names = list_names(X) or range(numbers.shape[1])
        for index in sorted(self.truths):
            values = numbers[:, [index]].toarray() if sparse.issparse(numbers) else numbers[:, index]
            if not ((values == 0) | (values == 1) | np.isnan(values)).all():
                _refuse_kind(names[index], "Booleans", "numbers other than 0 and 1")

    def _encode_column(self, index: int, column: Column) -> NDArray[np.float32]:
        """Return what stands for each row's category.

        Text where all were numbers, and numbers where all were text, are refused.
        """
        codes, values = read_as_categories(column)
        known, known_are_text = self._known_values[index]
        are_text = {isinstance(value, str) for value in values if value is not None}
        if are_text and known_are_text and not are_text & known_are_text:
            before, now = ("text", "numbers") if True in known_are_text else ("numbers", "text")
            _refuse_kind(column.name, f"{before} as categories", now)
        _warn_of_strangers(column.name, codes, values, known)
        unknown = self.numbers[index][-1] if index in self.numbers else np.nan
        # The code -1 takes the last number, that of None, which no category is.
        number_by_code = [np.nan if value is None else known.get(value, unknown) for value in [*values, None]]
        return np.array(number_by_code, np.float32)[codes]

    @cached_property
    def _known_values(self) -> dict[int, tuple[dict[Category, float], set[bool]]]:
        """By the index of a categorical column what stands for each known category, and whether some are text."""
        found = {}
        for index, known in self.categories.items():
            numbers = self.numbers.get(index, range(len(known)))
            found[index] = dict(zip(known, numbers, strict=False)), {isinstance(value, str) for value in known}
        return found


def learn(
    X: Any,
    categorical_features: Any = "auto",
    sample_weight: ArrayLike | None = None,
    max_categories: int = KNOWN_CATEGORIES,
    workers: Workers = solo,
) -> Schema:
    """Find the categories of a table, whatever the order of its rows.

    Parameters
    ----------
    X : table
        An array, a list of rows, a sparse matrix, or a data frame of pandas, polars or pyarrow.
    categorical_features : "auto", None or iterable, default "auto"
        "auto": the columns of text and of category types; None: no column; or those given by their indices (a whole
        number always counts as one), their names, or a mask.
    sample_weight : array_like of shape (n_rows,), optional
        How much each row counts; not negative.
    max_categories : int, default 254
        Of more categories in a column the heaviest are known; among equals the first in order.
    workers : Workers, default solo
        Who shares the rows; the schema is that of all of them.

    Returns
    -------
    Schema
        What makes numbers of this table or another.
    """
    if not isinstance(max_categories, Integral) or not 1 <= max_categories <= LARGEST_CODE:
        raise ValueError(f"max_categories must be an integer from 1 to {LARGEST_CODE}, got {max_categories!r}")
    given = X
    X = _convert_table(given)
    if sparse.issparse(X):
        # A frame of pandas whose columns are all sparse has become a matrix, and only the frame has names.
        names = getattr(given, "columns", range(X.shape[-1]))
        if _choose_columns(categorical_features, names, []):
            raise ValueError("categorical_features must be None or empty if X is sparse: make X dense, or encode it")
        is_wide = X.ndim == 2 and X.dtype.kind in "iu" and X.dtype.itemsize == 8 and X.nnz > 0
        # Of counts, as of words, none is large, and there is no need to look at a million columns one by one.
        if is_wide and max(int(X.data.max()), -int(X.data.min())) >= LARGEST_EXACT:
            by_column = X.tocsc()
            starts = zip(names, by_column.indptr[:-1], by_column.indptr[1:], strict=True)
            refuse_merged_numbers(describe_array(name, by_column.data[start:end]) for name, start, end in starts)
        return Schema({})
    if isinstance(X, np.ndarray) and X.ndim != 2:
        return Schema({})
    columns = describe_columns(X)
    chosen = _choose_columns(categorical_features, [column.name for column in columns], [])
    refuse_merged_numbers(column for index, column in enumerate(columns) if index not in chosen)
    if sample_weight is not None and np.shape(sample_weight) != (X.shape[0],):
        shape = np.shape(sample_weight)
        raise ValueError(f"sample_weight must be {X.shape[0]} numbers, one per row, got shape {shape}")
    heaviest_here = 0.0 if sample_weight is None else float(np.max(sample_weight, initial=0.0))
    heaviest = max(workers.gather(heaviest_here))
    block = columns, round_weights(sample_weight, X.shape[0], heaviest)
    return _learn_columns(columns, [block], categorical_features, int(max_categories), workers)


def learn_blocks(
    head: Any,
    blocks: Iterable[tuple[Any, NDArray[np.int64]]],
    categorical_features: Any = "auto",
    max_categories: int = KNOWN_CATEGORIES,
) -> Schema:
    """Find the categories of a table that comes in blocks of rows: those that `learn` finds in all of it.

    Parameters
    ----------
    head : table
        Any block, an empty one too: it has the names and types.
    blocks : iterable of (table, ndarray of int64)
        The blocks, each with its weights as `round_weights` gives them.
    categorical_features, max_categories
        As for `learn`.

    Returns
    -------
    Schema
        What makes numbers of the blocks.
    """
    columns = ((describe_columns(_convert_table(block)), weight) for block, weight in blocks)
    return _learn_columns(describe_columns(_convert_table(head)), columns, categorical_features, max_categories)


def round_weights(weight: ArrayLike | None, n_rows: int, heaviest: float | None = None) -> NDArray[np.int64]:
    """Return weights as whole numbers, whose sums depend on no order.

    Parameters
    ----------
    weight : array_like of shape (n_rows,) or None
        Not negative; None for rows that all weigh the same.
    n_rows : int
        How many rows there are.
    heaviest : float, optional
        The weight of the heaviest row anywhere; by default that of these rows.

    Returns
    -------
    ndarray of int64 of shape (n_rows,)
        In units of about 2**-32 of the heaviest, at least 1 for a positive weight; all 1 if `weight` is None.
    """
    if weight is None:
        return np.broadcast_to(np.int64(1), n_rows)
    weight = np.asarray(weight, dtype=np.float64)
    exponent = np.frexp(weight.max(initial=0.0) if heaviest is None else heaviest)[1]
    return np.asarray(np.maximum(np.rint(np.ldexp(weight, WEIGHT_BITS - exponent)), weight > 0), dtype=np.int64)


def _learn_columns(
    columns: list[Column],
    blocks: Iterable[tuple[list[Column], NDArray[np.int64]]],
    categorical_features: Any,
    max_categories: int,
    workers: Workers = solo,
) -> Schema:
    """Learn the schema of these columns, whose rows come in blocks."""
    text = [index for index, column in enumerate(columns) if column.kind == "text"]
    dates, durations, truths = (
        [set(one) for one in workers.gather([index for index, column in enumerate(columns) if column.kind == kind])]
        for kind in ("date", "duration", "truth")
    )
    readings = dict.fromkeys(sorted(set().union(*dates)), Reading("date"))
    chosen_here = _choose_columns(categorical_features, [column.name for column in columns], text)
    chosen = set().union(*workers.gather(chosen_here))
    others = [index for index in text if index not in chosen]
    totals: dict[int, dict[Category, int]] = {index: {} for index in sorted(chosen)}
    blocks_to_read = blocks if chosen or others else []
    for block, weight in blocks_to_read:
        if stray := [block[i].name for i in others if read_as_numbers(block[i]) is None]:
            raise ValueError(
                f"X must hold numbers outside categorical_features, but {_say_who_holds(stray)} text: add it there, or "
                'set categorical_features="auto", or encode it, say with OrdinalEncoder'
            )
        for index, total in totals.items():
            _add_weights(block[index], weight, total)
    everywhere = [Counter[Category]() for _ in totals]
    for found in workers.gather(list(totals.values())):
        for total, one in zip(everywhere, found, strict=True):
            total.update(one)
    totals_everywhere = list(zip(totals, everywhere, strict=True))
    for index, total in totals_everywhere:
        if workers.size > 1 and len(total) > max_categories:
            warnings.warn(
                f"column {columns[index].name!r} holds {len(total)} categories, of which the {max_categories} most "
                "frequent are known to workers, and all others count as missing: to use all, fit on one machine",
                UserWarning,
                stacklevel=2,
            )
    if isinstance(categorical_features, str):  # Nobody has named these columns.
        texts = {index: total for index, total in totals_everywhere if not columns[index].is_categorical}
        readings |= _find_readings(columns, texts)
    known = {index: total for index, total in totals_everywhere if index not in readings}
    categories = {index: _keep_heaviest(total, max_categories) for index, total in known.items()}
    return Schema(
        categories,
        readings=readings,
        durations=frozenset().union(*durations),
        truths=frozenset(truths[0].intersection(*truths[1:]) - chosen),
    )


def _find_readings(columns: list[Column], totals: dict[int, Counter[Category]]) -> dict[int, Reading]:
    """Return how to read the columns of text that hold nothing but numbers, or dates, with a warning for each."""
    readings = {}
    for index, total in totals.items():
        texts = {value.strip(): weight for value, weight in total.items() if isinstance(value, str)}
        if len(texts) < len(total) or any(text.lower() in TRUTH for text in texts):
            continue
        decision = decide(list(texts), list(texts.values()), share=1.0)
        if decision.reading is None:
            continue
        readings[index] = decision.reading
        unsure = f" ({decision.note})" if decision.is_ambiguous else ""
        warnings.warn(
            f"column {columns[index].name!r} holds {decision.reading.kind}s as text, which are read as "
            f"{decision.reading.kind}s{unsure}: convert them before, or name the column in categorical_features to "
            "take its texts for categories",
            UserWarning,
            stacklevel=2,
        )
    return readings


def _read_texts(name: Any, reading: Reading, values: list[Category | None]) -> NDArray[np.float64]:
    """Return the values of a column of text as numbers, and last NaN, for a missing one."""
    texts = [value.strip() if isinstance(value, str) else "" for value in values]
    numbers = np.append(reading.read(texts), np.nan)
    for index, value in enumerate(values):
        if isinstance(value, str):
            is_lost = np.isnan(numbers[index]) and texts[index].lower() not in MISSING_AMONG_NUMBERS
            # A column that holds such words is not read as numbers when it is learned from.
            if is_lost or texts[index].lower() in TRUTH:
                _refuse_kind(name, f"{reading.kind}s", f"{value!r:.50}")
        elif value is not None:
            if reading.kind == "date":
                _refuse_kind(name, "dates", "numbers")
            numbers[index] = value
    return numbers


def _refuse_kind(name: Any, before: str, now: str) -> NoReturn:
    """Raise the ValueError for a column that holds something else now than when it was learned from."""
    raise ValueError(f"column {name!r} held {before} when fitted, and {now} now: convert it")


def _warn_of_strangers(
    name: Any, codes: NDArray[np.intp], values: list[Category | None], known: Container[Any]
) -> None:
    """Warn of a column of categories none of which is known, unless a handful of rows has any."""
    if not known or all(value in known for value in values):
        return
    # Categories of a frame need not occur in its rows.
    counts = np.bincount(codes[codes >= 0], minlength=len(values)).tolist()
    n_rows = {value: count for value, count in zip(values, counts, strict=True) if count and value is not None}
    strangers = list(n_rows)
    if sum(n_rows.values()) >= FEWEST_STRANGERS and not any(value in known for value in strangers):
        warnings.warn(
            f"column {name!r} holds no category that it held when fitted, but {list_some(strangers)}: all are taken "
            "for unknown ones; write them as they were then, if they are the same",
            UserWarning,
            stacklevel=2,
        )


def refuse_merged_cells(X: Any, categories: Container[int]) -> None:
    """Raise a ValueError where float64 cannot tell whole numbers of a column apart.

    Parameters
    ----------
    X : table
        The rows to learn from.
    categories : container of int
        The columns that are read as categories, which may hold any numbers.
    """
    columns = describe_columns(_convert_table(X))
    refuse_merged_numbers(column for index, column in enumerate(columns) if index not in categories)


def compute_fingerprint(numbers: Any, labels: NDArray[np.uint32]) -> int:
    """Compute a number that tells an encoded table with its labels from another one.

    Parameters
    ----------
    numbers : ndarray, sparse matrix or untwist.data.batches.Encoded
        The rows as numbers.
    labels : ndarray of uint32 of shape (n_rows,)
        The class of each row.

    Returns
    -------
    int
        Equal for equal tables; whether an array comes whole or in blocks of rows makes no difference.
    """
    if hasattr(numbers, "checksums"):
        # These rows come in blocks.
        parts = numbers.checksums()
    elif sparse.issparse(numbers):
        table = numbers.tocsr(copy=True)
        table.sum_duplicates()
        arrays = [table.indptr.astype(np.int64), table.indices.astype(np.int64), table.data.astype(np.float64)]
        parts = [crc32(part.tobytes()) for part in arrays]
    else:
        parts = checksum_columns(numbers)
    return crc32(np.array(parts, dtype=np.uint32).tobytes(), crc32(labels.tobytes()))


def checksum_columns(numbers: NDArray[Any], before: list[int] | None = None) -> list[int]:
    """Compute a checksum for each column.

    Parameters
    ----------
    numbers : ndarray of shape (n_rows, n_columns)
        The rows.
    before : list of int, optional
        The checksums of the rows before these, to go on from.

    Returns
    -------
    list of int
        One checksum per column.
    """
    columns = [np.ascontiguousarray(column, dtype=np.float64) for column in numbers.T]
    starts = before or [0] * len(columns)
    return [crc32(column.tobytes(), start) for column, start in zip(columns, starts, strict=True)]


def _choose_columns(features: Any, names: Iterable[Any], text: list[int]) -> set[int]:
    """Return the indices of the columns that `categorical_features` means."""
    if features is None or (isinstance(features, str) and features == "auto"):
        return set() if features is None else set(text)
    wanted = 'categorical_features must be "auto", None, or a list of column indices, of column names, or of Booleans'
    if isinstance(features, (str, bytes)) or not isinstance(features, Iterable):
        raise ValueError(f"{wanted}, got {features!r}")
    features = list(features)
    names = list(names)
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


def _add_weights(column: Column, weight: NDArray[np.int64], total: dict[Category, int]) -> None:
    """Add to the total weight of each category that of its rows."""
    codes, values = read_as_categories(column)
    known = codes >= 0
    sums = np.zeros(len(values), dtype=np.int64)
    np.add.at(sums, codes[known], weight[known])
    for code in np.flatnonzero(sums):
        if (value := values[code]) is not None:
            total[value] = total.get(value, 0) + int(sums[code])
    if len(total) > MOST_DISTINCT:
        raise ValueError(f"column {column.name!r} holds more than {MOST_DISTINCT} different categories: leave it out")


def _keep_heaviest(total: dict[Category, int], most: int) -> tuple[Category, ...]:
    """Return the categories in order; of more than `most` the heaviest, and the first in order among equals."""
    known = sorted(total, key=lambda value: (isinstance(value, str), value))
    if len(known) > most:
        heaviest = sorted(range(len(known)), key=lambda index: -total[known[index]])[:most]
        known = [known[index] for index in sorted(heaviest)]
    return tuple(known)


def bring_to_host(table: Any) -> Any:
    """Bring what lies on a GPU to the memory of the machine, and what lies under a mask to light as missing.

    Parameters
    ----------
    table
        Anything; arrays and frames of CuPy, cuDF and PyTorch are brought, and masked arrays of NumPy get None or NaN
        where they are masked.

    Returns
    -------
    table
        On the host; as given if it was there already.
    """
    if isinstance(table, np.ma.MaskedArray):
        return _unmask(table)
    if type(table).__module__.split(".")[0] == "cudf":
        return table.to_pandas()
    if hasattr(table, "__cuda_array_interface__"):
        return table.get() if hasattr(table, "get") else table.cpu().numpy()
    return table


def allow_taking_rows(X: Any) -> Any:
    """Return a table of which rows can be taken by their positions.

    Parameters
    ----------
    X : table or None
        Any table in memory.

    Returns
    -------
    table or None
        The same rows; those of a sparse matrix of another layout as CSR, those of a batch of Arrow as a table.
    """
    X = bring_to_host(X)
    if sparse.issparse(X):
        return X.tocsr()
    return sys.modules["pyarrow"].Table.from_batches([X]) if is_a(X, "pyarrow", "RecordBatch") else X


def _unmask(array: np.ma.MaskedArray[Any, Any]) -> NDArray[Any]:
    """Return an array with None, or NaN among numbers with a point, where a value is masked."""
    mask = np.ma.getmaskarray(array)
    if not mask.any():
        return np.asarray(array.data)
    values = np.array(array.data, dtype=None if array.dtype.kind == "f" else object)
    values[mask] = None
    return values


def refuse_other_objects(X: Any) -> None:
    """Raise a ValueError for what is no table, and what NumPy would take for a single value or for text.

    Parameters
    ----------
    X : object
        Whatever was given as a table.
    """
    kind = type(X).__name__
    if isinstance(X, Mapping) and not sparse.issparse(X):
        raise ValueError(f"X must be a table, got a {kind}: give pandas.DataFrame(X)")
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], Mapping):
        raise ValueError(f"X must be a table, got a {kind} of {type(X[0]).__name__}: give pandas.DataFrame(X)")
    if isinstance(X, (str, bytes, PathLike)):
        raise ValueError(f"X must be a table, got {X!r:.60}: read the file first, or give untwist.batches.Batches")
    if X is None or isinstance(X, (Set, Iterator)):
        raise ValueError(f"X must be a table of rows and columns, got {X!r:.60}")


def _convert_table(X: Any) -> Any:
    """Return `X` as a sparse matrix, an array, or a data frame of pandas, polars or pyarrow."""
    refuse_other_objects(X)
    X = bring_to_host(X)
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.names is not None:
        raise ValueError("X must be a table, got a structured array of NumPy: give pandas.DataFrame(X)")
    if type(X).__module__.split(".")[0] == "xgboost":
        raise ValueError("X must be a table, got a matrix of XGBoost, which keeps no rows: give what it was made of")
    if type(X) is np.ndarray or sparse.issparse(X) or is_a(X, "polars", "DataFrame") or is_a(X, "pyarrow", "Table"):
        return X
    if is_a(X, "polars", "LazyFrame"):
        raise ValueError("X must be a table, got a polars LazyFrame: call its collect() first")
    if is_a(X, "pyarrow", "RecordBatch"):
        return allow_taking_rows(X)
    if is_a(X, "pandas", "DataFrame"):
        all_sparse = all(type(dtype).__name__ == "SparseDtype" and dtype.fill_value == 0 for dtype in X.dtypes)
        return X.sparse.to_coo() if X.shape[1] and all_sparse else X
    array = np.asarray(X)
    # NumPy makes text of numbers that stand beside text in a list.
    may_hide_numbers = array.dtype.kind in "US" and isinstance(X, (list, tuple))
    return np.asarray(X, dtype=object) if may_hide_numbers else array


def _say_who_holds(names: list[Any]) -> str:
    shown = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"column {shown} holds" if len(names) == 1 else f"columns {shown} hold"
