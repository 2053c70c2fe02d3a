"""Who gave each label, and which rows are labels of one thing.

A source is an annotator, a branch, a month: whoever or whatever gave a label. It is no feature. An item is a thing that
several sources may have labelled, each in a row of its own that repeats its features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from untwist.arguments import Array, is_missing
from untwist.data.folds import mix_bits
from untwist.data.tables import bring_to_host
from untwist.data.whole_numbers import LARGEST_EXACT

#: The number of a source that nobody knows.
UNKNOWN = -1

# Without names, rows that look alike are taken for labels of one thing only where at least this share of them repeats:
# in a table of few values some rows are alike by chance.
REPEATED_BY_RULE = 0.5

# The rows that are looked at first, which rule out nearly every column that is not the source.
FIRST_ROWS = 1000


@dataclass(frozen=True, eq=False)
class LabelSources:
    """Who gave the label of each training row.

    Parameters
    ----------
    names : array
        The sources, sorted, all different.
    index : array of int
        The number of each row's source; `UNKNOWN` where it was not given.
    items : array of int
        The number of each row's item. Numbers follow from names or from what rows hold, not from their order.
    """

    names: NDArray[Any]
    index: NDArray[np.intp]
    items: NDArray[np.intp]

    @property
    def n_items(self) -> int:
        """The number of items."""
        return int(self.items.max(initial=-1)) + 1

    @property
    def has_repeated_items(self) -> bool:
        """Whether some item has several labels."""
        return self.n_items < len(self.items)


def read_names(what: str, values: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the different names in a column, and the number of each row's name.

    Parameters
    ----------
    what : str
        What errors call the column.
    values : array-like of shape (n_rows,)
        Text, numbers or categories; None and NaN stand for an unknown name. Anything else, such as dates, becomes text.
    n_rows : int
        How many there must be.

    Returns
    -------
    names : array
        The names, sorted: text, whole numbers, numbers or Booleans.
    index : array of int
        The number of each row's name, -1 where it is unknown.

    Examples
    --------
    >>> read_names("source", ["b", None, "a", "b"], 4)
    (array(['a', 'b'], dtype='<U1'), array([ 1, -1,  0,  1]))
    """
    if isinstance(values, (str, bytes)):
        raise ValueError(
            f"{what} must be the values, one per row, and not the name of a column: give {what}=X[{values!r}]"
        )
    column = _make_column(values)
    if column.ndim != 1:
        raise ValueError(f"{what} must be one name per row, got an array of shape {column.shape}")
    if len(column) != n_rows:
        raise ValueError(f"{what} must be one name per row of X, got {len(column)} for {n_rows} rows")
    known = ~_find_missing(column)
    index = np.full(n_rows, UNKNOWN, dtype=np.intp)
    try:
        different, numbers = _find_different(column[known])
        names, place = np.unique(_make_plain_names(what, different), return_inverse=True)
    except TypeError as error:
        raise ValueError(f"{what} must hold names of one kind, all text or all numbers ({error})") from error
    index[known] = place[numbers]
    return names, index


def _make_column(values: Any) -> NDArray[Any]:
    """Return names as an array."""
    if not isinstance(values, list):
        column = np.asarray(bring_to_host(values))
        if column.dtype.kind != "f" or not (np.abs(column) >= LARGEST_EXACT).any():
            return column
        # Whole numbers of which some are missing became float64, which does not tell all of them apart.
        list_values = getattr(values, "to_pylist", getattr(values, "to_list", getattr(values, "tolist", None)))
        return column if list_values is None else np.asarray(list_values(), dtype=object)
    if not values or not isinstance(values[0], tuple):
        # In an array of text all names would take the room of the longest.
        return np.asarray(values, dtype=object)
    column = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        column[row] = value  # One by one, as NumPy takes a list of tuples for a table.
    return column


def _find_missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype == object:
        return np.array([is_missing(value) for value in column], dtype=np.bool_)
    return np.asarray(column != column)  # NaN, and a date that is none, differ from themselves.


def _find_different(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the different values, and the number of each value among them."""
    if values.dtype != object:
        return np.unique(values, return_inverse=True)
    numbers: dict[Any, int] = {}
    index = [numbers.setdefault(value, len(numbers)) for value in values]
    different = np.empty(len(numbers), dtype=object)
    for number, value in enumerate(numbers):
        different[number] = value  # One by one, as NumPy takes a list of tuples for a table.
    return different, np.array(index, dtype=np.intp)


def _make_plain_names(what: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return names as an array of text, whole numbers, numbers or Booleans, such as a model file can hold."""
    if values.dtype == object:
        kinds = {str if isinstance(value, str) else type(value) for value in values}
        if str in kinds and len(kinds) > 1:
            raise ValueError(f"{what} must hold names of one kind, all text or all numbers, got both")
        if any(issubclass(kind, tuple) for kind in kinds):
            return np.array([str(value) for value in values], dtype=np.str_)
        values = np.array([*values]) if len(values) else values.astype(np.str_)
    if values.dtype.kind in "biufU":
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"{what} must hold finite numbers or text")
        values = values.astype(np.float64) if values.dtype.itemsize > 8 and values.dtype.kind == "f" else values
        return values.astype(values.dtype.newbyteorder("="), copy=False)
    return np.array([str(value) for value in values], dtype=np.str_)


def look_up_sources(values: Any, names: NDArray[Any], n_rows: int) -> NDArray[np.intp]:
    """Return the numbers of sources among known ones.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        Names of sources; None and NaN stand for an unknown one.
    names : array
        The known names, sorted.
    n_rows : int
        How many there must be.

    Returns
    -------
    array of int
        The number of each row's source; `UNKNOWN` where it was not given. A ValueError for a name that is not known.
    """
    given, index = read_names("source", values, n_rows)
    try:
        strange = np.setdiff1d(given, names)
    except TypeError as error:
        raise ValueError(f"source must hold names of the kind that fit was given ({error})") from error
    if strange.size:
        raise ValueError(f"source has names that fit has not seen: {strange[:5].tolist()}; give None for those")
    return np.where(index == UNKNOWN, UNKNOWN, np.append(np.searchsorted(names, given), UNKNOWN)[index])


def hash_rows(block: Any) -> NDArray[np.uint64]:
    """Return a hash of what each row of a table holds: equal rows have the same one, dense or sparse.

    Parameters
    ----------
    block : ndarray or sparse matrix of shape (n_rows, n_columns)
        Numbers; NaN equals NaN, and 0 equals -0.

    Returns
    -------
    ndarray of uint64 of shape (n_rows,)
        One hash per row, of 64 bits: of a million different rows two share one in a case of 30 million.
    """
    hashes = np.zeros(block.shape[0], dtype=np.uint64)
    if sparse.issparse(block):
        cells = block.tocsr(copy=True)
        cells.sum_duplicates()
        rows = np.repeat(np.arange(cells.shape[0]), np.diff(cells.indptr))
        np.add.at(hashes, rows, _hash_cells(cells.data, cells.indices.astype(np.uint64)))
        return mix_bits(hashes)
    for number, column in enumerate(block.T):
        hashes += _hash_cells(column, np.array([number], dtype=np.uint64))
    return mix_bits(hashes)


def _hash_cells(values: NDArray[Any], columns: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of each cell by its column and value; 0 for a value of 0, which sparse tables leave out."""
    numbers = np.array(values, dtype=np.float64)
    numbers[np.isnan(numbers)] = np.nan
    return np.where(numbers == 0, np.uint64(0), mix_bits(numbers.view(np.uint64) ^ mix_bits(columns)))


def find_source_columns(block: NDArray[Any], sources: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Tell which columns have one value for each source, and another one for every other source.

    Parameters
    ----------
    block : ndarray of shape (n_rows, n_columns)
        Numbers; NaN equals NaN.
    sources : ndarray of int of shape (n_rows,)
        The number of each row's source.

    Returns
    -------
    ndarray of bool of shape (n_columns,)
        Whether a column is the source, perhaps by other names.

    Examples
    --------
    >>> find_source_columns(np.array([[5.0, 1.0], [7.0, 2.0], [5.0, 3.0]]), np.array([0, 1, 0]))
    array([ True, False])
    """
    _, first, number = np.unique(sources, return_index=True, return_inverse=True)

    def is_source(column: NDArray[Any]) -> bool:
        values = column[first]
        for rows in (slice(FIRST_ROWS), slice(None)):
            expected = values[number[rows]]
            if not ((column[rows] == expected) | (np.isnan(column[rows]) & np.isnan(expected))).all():
                return False
        return len(np.unique(values)) == len(values)

    return np.array([is_source(column) for column in block.T], dtype=np.bool_)


def find_items(
    contents: NDArray[np.uint64],
    sources: NDArray[np.intp],
    labels: NDArray[np.uint32],
    weight: Array,
    named: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Return the number of each row's item.

    Rows of one name are one item. Without names, rows with equal features are one item where their sources all differ:
    a source that labels the same features twice has seen different things that look alike. They are items only where
    repeating is the rule, in at least half of the rows; where fewer repeat, that is chance, and every row is an item. A
    row without a name among those that have one is an item of its own, and so is a row of weight 0: it is absent,
    no fold sets it aside, and what models that have seen an item say of it must not judge the other rows of that item.

    Parameters
    ----------
    contents : ndarray of uint64 of shape (n_rows,)
        Equal for rows with equal features.
    sources : ndarray of int of shape (n_rows,)
        The number of each row's source.
    labels : ndarray of uint32 of shape (n_rows,)
        The class of each row's label.
    weight : ndarray of shape (n_rows,)
        How much each row counts.
    named : ndarray of int of shape (n_rows,), optional
        The number of each row's item among the names that were given, -1 where it has none.

    Returns
    -------
    ndarray of int of shape (n_rows,)
        Numbers from 0. Any order of the rows gives each the same number, up to rows that are alike in everything.

    Examples
    --------
    >>> contents = np.array([7, 7, 9, 9], dtype=np.uint64)
    >>> find_items(contents, np.array([0, 1, 2, 2]), np.zeros(4, dtype=np.uint32), np.ones(4))
    array([0, 0, 1, 2])
    >>> contents = np.array([7, 7, 8, 9, 10], dtype=np.uint64)
    >>> find_items(contents, np.array([0, 1, 0, 1, 2]), np.zeros(5, dtype=np.uint32), np.ones(5))
    array([0, 1, 2, 3, 4])
    """
    order = np.lexsort((weight, labels, sources, contents, weight == 0))
    if named is not None:
        order = np.lexsort((named, weight, labels, sources, contents, weight == 0))
        named = np.where(weight > 0, named, UNKNOWN)
        # Rows without a name come last, and each of them begins an item.
        order = order[np.argsort(np.where(named[order] < 0, np.iinfo(np.intp).max, named[order]), kind="stable")]
        starts = np.r_[True, (named[order][1:] != named[order][:-1])] | (named[order] < 0)
    else:
        starts = _start_items(contents[order], sources[order], weight[order] > 0)
    items = np.empty(len(order), dtype=np.intp)
    items[order] = np.cumsum(starts) - 1
    return items


def _start_items(
    contents: NDArray[np.uint64], sources: NDArray[np.intp], present: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell which rows begin an item, where rows are sorted by what they hold and then by source."""
    starts = ~present | np.r_[True, contents[1:] != contents[:-1]]
    group = np.cumsum(starts) - 1
    is_second_by_source = np.r_[False, (group[1:] == group[:-1]) & (sources[1:] == sources[:-1])]
    has_seconds = np.zeros(len(starts), dtype=np.bool_)
    has_seconds[group[is_second_by_source]] = True
    starts |= has_seconds[group]
    is_repeated = ~starts | np.r_[~starts[1:], False]
    if is_repeated.sum() < REPEATED_BY_RULE * present.sum():
        starts[:] = True
    return np.asarray(starts)
