"""Fingerprints of tables and labels: two short texts that tell whether decisions belong to the data at hand.

A fingerprint is ``FEATURES-LABELS``: the first half is that of all that is no label, the second that of the labels, so
that it can be told which of the two has changed. Values count as they are, whatever is made of them later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from untwist.arguments import is_missing
from untwist.data.batches import Batches
from untwist.data.columns import is_a, is_real
from untwist.data.tables import bring_to_host

#: What stands for a missing value, which no text in a file is.
_MISSING = "\0missing"


def fingerprint(X: Any, y: Any) -> str:
    """Compute the fingerprint of rows and their labels.

    Parameters
    ----------
    X : table or None
        The features, as `fingerprint_features` takes them.
    y : array-like
        The labels.

    Returns
    -------
    str
        Two times 16 hexadecimal digits, with a hyphen between.

    Examples
    --------
    >>> fingerprint(np.zeros((2, 1)), ["no", "yes"]) == fingerprint(np.zeros((2, 1)), ["no", "no"])
    False
    """
    return f"{fingerprint_features(X)}-{fingerprint_labels(y)}"


def fingerprint_features(X: Any) -> str:
    """Compute the first half of a fingerprint: names, values and the order of columns and rows.

    Parameters
    ----------
    X : table or None
        An array, a list of rows, a sparse matrix, a data frame of pandas, polars or pyarrow, or batches of rows; None
        where labels have no features.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    return fingerprint_columns(digest_columns(X))


def fingerprint_columns(digests: Iterable[tuple[str, str]]) -> str:
    """Compute the first half of a fingerprint from what is known of each column.

    Parameters
    ----------
    digests : iterable of (str, str)
        The name of each column, and 16 hexadecimal digits for its values.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    return _digest_text(part for column in digests for part in column)


def fingerprint_labels(y: Any) -> str:
    """Compute the second half of a fingerprint: labels count as the text that they are written as.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        The labels, of any kind.

    Returns
    -------
    str
        16 hexadecimal digits.

    Examples
    --------
    >>> fingerprint_labels(np.array([0, 1])) == fingerprint_labels(["0", "1"])
    True
    """
    return _digest_text(_write_cells(np.asarray(bring_to_host(y)).ravel()))


def digest_columns(X: Any) -> Iterator[tuple[str, str]]:
    """Yield what a fingerprint is made of: each column's name, and digits for its values.

    Parameters
    ----------
    X : table or None
        As for `fingerprint_features`.

    Yields
    ------
    (str, str)
        The name, and 16 hexadecimal digits.
    """
    X = bring_to_host(X)
    if X is None:
        return
    if sparse.issparse(X):
        table = X.tocsr(copy=True)
        table.sum_duplicates()
        for name, part in (("shape", np.array(table.shape)), ("indptr", table.indptr), ("indices", table.indices)):
            yield name, _digest_values(part)
        yield "data", _digest_values(table.data)
    elif isinstance(X, Batches):
        yield from _digest_blocks(X)
    else:
        for name, values in _iterate_columns(X):
            yield name, _digest_values(values)


def _iterate_columns(X: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the name and the values of each column of a table in memory."""
    if is_a(X, "pandas", "DataFrame"):
        for name, series in X.items():
            yield str(name), np.asarray(series)
    elif is_a(X, "polars", "DataFrame"):
        for series in X.get_columns():
            yield series.name, series.to_numpy()
    elif is_a(X, "pyarrow", "Table") or is_a(X, "pyarrow", "RecordBatch"):
        for name, column in zip(X.schema.names, X.columns, strict=True):
            yield name, column.to_numpy(zero_copy_only=False)
    else:
        array = np.asarray(X) if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
        # Texts, say, need no second dimension.
        table = array[:, None] if array.ndim == 1 else array.reshape(len(array), -1)
        for index in range(table.shape[1]):
            yield str(index), table[:, index]


def _digest_blocks(table: Batches) -> Iterator[tuple[str, str]]:
    """Yield what the table would in memory, in one pass over it; in three where columns hold text."""
    digests = {name: blake2b(digest_size=8) for name in table.column_names}
    # A column of numbers with gaps may be numbers in one block and not in another.
    texts = {name for block in table.blocks() for name in _add_numbers(block, digests)}
    digests |= {name: blake2b(digest_size=8) for name in texts}
    for write in (_write_lengths, _write_content) if texts else ():
        for block in table.blocks():
            for name, values in _iterate_columns(block):
                if name in texts:
                    digests[name].update(write(_write_cells(values)))
    for name, digest in digests.items():
        yield name, digest.hexdigest()


def _add_numbers(block: Any, digests: dict[str, Any]) -> Iterator[str]:
    """Add the numbers of a block to the digest of each column; yield the columns that hold something else."""
    for name, values in _iterate_columns(block):
        if is_real(values.dtype):
            digests[name].update(_write_numbers(values))
        else:
            yield name


def _digest_values(values: NDArray[Any]) -> str:
    """Numbers count by what they are, whatever type holds them, anything else as text."""
    if not is_real(values.dtype):
        return _digest_text(_write_cells(values))
    return blake2b(_write_numbers(values), digest_size=8).hexdigest()


def _write_numbers(values: NDArray[Any]) -> bytes:
    """Zero has one sign, and what is no number one form."""
    numbers = values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.tobytes()


def _digest_text(cells: Iterable[str]) -> str:
    """The lengths say where one cell ends and the next begins."""
    texts = list(cells)
    return blake2b(_write_lengths(texts) + _write_content(texts), digest_size=8).hexdigest()


def _write_lengths(texts: list[str]) -> bytes:
    return np.fromiter(map(len, texts), np.int64, len(texts)).tobytes()


def _write_content(texts: list[str]) -> bytes:
    return "".join(texts).encode("utf-8", "surrogatepass")


def _write_cells(values: NDArray[Any]) -> list[str]:
    plain = values.astype(str) if values.dtype.kind in "mM" else values
    return [one if type(one) is str else _write_cell(one) for one in plain.tolist()]


def _write_cell(value: Any) -> str:
    is_list = isinstance(value, (np.ndarray, list))
    return str(value) if is_list or not is_missing(value) else _MISSING
