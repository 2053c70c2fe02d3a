"""Values of a header as they have to be: whatever else a file says is refused with a ValueError."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.files.layout import ARRAY_TYPES

#: The words for numbers that JSON does not have.
NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class ArrayReader:
    """The arrays of a file.

    Parameters
    ----------
    table : list
        What the header says of each: its type, its length and its offset.
    content : memoryview
        The bytes that follow the header.
    """

    def __init__(self, table: Any, content: memoryview) -> None:
        self.table = table
        self.content = content
        self.numbers_read: set[int] = set()
        self.bytes_left = len(content)

    def read(self, number: Any, dtype: type[np.generic] = np.float64) -> NDArray[Any]:
        """Return an array, writable and aligned.

        Each one is read once, and never more bytes than there are: a small file must not ask for much memory.

        Parameters
        ----------
        number : int
            The index of the array in the table.
        dtype : type, default numpy.float64
            The type that the array must have.

        Returns
        -------
        ndarray of shape (length,)
            A copy of the file's numbers.
        """
        is_new = type(number) is int and 0 <= number < len(self.table) and number not in self.numbers_read
        require(is_new, "an array is named once")
        self.numbers_read.add(number)
        kind, size, offset = self.table[number]
        if ARRAY_TYPES.get(kind) is not dtype:
            raise ValueError(f"array {number} is {kind!r}, not {np.dtype(dtype).str!r}")
        has_range = type(size) is type(offset) is int and size >= 0 and offset >= 0
        require(has_range, f"array {number} has a length and an offset")
        n_bytes = size * np.dtype(dtype).itemsize
        self.bytes_left -= n_bytes
        is_inside = offset + n_bytes <= len(self.content) and self.bytes_left >= 0
        require(is_inside, f"array {number} lies inside the file")
        return np.frombuffer(self.content, kind, size, offset).astype(dtype)


def require(condition: bool, what: str) -> None:
    """Raise a ValueError where something does not hold.

    Parameters
    ----------
    condition : bool
        Whether it holds.
    what : str
        What has to hold, as a statement: the error says that it is not so.
    """
    if not condition:
        raise ValueError(f"not so: {what}")


def read_value(plain: Any) -> Any:
    """Return a value of Python that was made plain for JSON.

    Parameters
    ----------
    plain
        What `untwist.files.writing.make_plain` made of a value, after JSON.

    Returns
    -------
    object
        The value; a list where it was an array or a set.

    Examples
    --------
    >>> read_value({"tuple": [1, {"number": "inf"}]})
    (1, inf)
    """
    if isinstance(plain, list):
        return [read_value(one) for one in plain]
    if not isinstance(plain, dict):
        return plain
    if "number" in plain:
        return read_number(plain)
    if "tuple" in plain:
        return tuple(read_value(plain["tuple"]))
    return {read_value(key): read_value(one) for key, one in plain["pairs"]}


def read_number(plain: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a number in [low, high]; it may be NaN where there are no such limits.

    Parameters
    ----------
    plain
        What JSON made of it.
    low, high : float
        The smallest and the largest number allowed; by default there is none.

    Returns
    -------
    float
        The number.
    """
    if isinstance(plain, dict):
        plain = NUMBERS[plain["number"]]
    if isinstance(plain, bool) or not isinstance(plain, (int, float)):
        raise ValueError(f"{plain!r:.50} is no number")
    has_limits = math.isfinite(low) or math.isfinite(high)
    is_inside = low <= plain <= high or (math.isnan(plain) and not has_limits)
    require(is_inside, f"{plain!r} lies in [{low}, {high}]")
    return float(plain)


def read_whole(plain: Any, low: int, high: int = 2**62) -> int:
    """Return a whole number from low to high.

    Parameters
    ----------
    plain
        What JSON made of it.
    low : int
        The smallest number allowed.
    high : int, default 2**62
        The largest number allowed.

    Returns
    -------
    int
        The number.
    """
    if type(plain) is not int or not low <= plain <= high:
        raise ValueError(f"{plain!r:.50} is no whole number from {low} to {high}")
    return plain


def read_texts(plain: Any) -> list[str]:
    """Return a list of text.

    Parameters
    ----------
    plain
        What JSON made of it.

    Returns
    -------
    list of str
        The same list.
    """
    if not isinstance(plain, list) or not all(isinstance(one, str) for one in plain):
        raise ValueError("names of columns are not a list of text")
    return plain


def read_one_of(value: Any, known: Iterable[str]) -> str:
    """Return one of the known words.

    Parameters
    ----------
    value
        What JSON made of it.
    known : iterable of str
        The words.

    Returns
    -------
    str
        The word.
    """
    words = tuple(known)
    if value not in words:
        raise ValueError(f"{value!r:.50} is none of {', '.join(words)}")
    return str(value)


def check_finite(values: Array, low: float = -math.inf) -> Array:
    """Return an array of finite numbers, none below `low`.

    Parameters
    ----------
    values : ndarray of float64
        The numbers; they must be a list, of one dimension.
    low : float
        The smallest number allowed; by default there is none.

    Returns
    -------
    ndarray
        The same array.
    """
    is_finite = values.ndim == 1 and bool(np.isfinite(values).all() and (values >= low).all())
    require(is_finite, "numbers are finite" if low == -math.inf else f"numbers are finite and at least {low:g}")
    return values
