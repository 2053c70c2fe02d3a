"""Cells as text, numbers and dates, as people write them, and infinite numbers among them.

`untwist.data.cells` has the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.commands.sheets import import_pandas
from untwist.data.cells import (
    MISSING_AMONG_NUMBERS,
    TRUTH,
    Reading,
    is_missing,
    looks_ambiguous,
)

#: Makes numbers or categories of a column.
Conversion = Callable[[Any], Any]
#: Among this many numbers at least one shows whether all may be thousands, such as 1.234.
LOOKED_AT = 1000
#: How texts are read that can be read in one way only.
PLAIN_NUMBERS = Reading()
PLAIN_DATES = Reading("date")


@dataclass(frozen=True)
class Hints:
    """What somebody has said about how to read a table; None leaves it to each column.

    Parameters
    ----------
    decimal : str or None
        "." or ",".
    order : str or None
        "day" or "month", whichever comes first in dates.
    label_as_is : bool
        Whether labels that differ by case or blanks alone are different ones.
    takes_infinite : bool
        Whether an infinite number is taken as a missing one; else it is refused.
    """

    decimal: str | None = None
    order: str | None = None
    label_as_is: bool = False
    takes_infinite: bool = False


#: Nobody has said anything.
NO_HINTS = Hints()


def attempt(reading: Callable[[Any], Any], column: Any) -> Any:
    """Return what a reading makes of a column; what it cannot read, such as lists or the year 10000, is a ValueError.

    Parameters
    ----------
    reading : callable
        Takes the column.
    column : pandas.Series
        The column as a file has it.

    Returns
    -------
    object
        What the reading returns.
    """
    try:
        return reading(column)
    except MemoryError:
        raise
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"column {column.name!r} cannot be read as numbers or text: {reason:.200}") from error


def is_text(column: Any) -> bool:
    """Tell whether all cells of a column are text or missing.

    Parameters
    ----------
    column : pandas.Series
        The column as a file has it.

    Returns
    -------
    bool
    """
    pandas = import_pandas()
    known = column.dtype == object or isinstance(column.dtype, (pandas.StringDtype, pandas.CategoricalDtype))
    return known and all(isinstance(one, str) for one in column.dropna().unique())


def to_text(column: Any, is_missing: Callable[[str], bool] = is_missing) -> Any:
    """Return the cells as text without blanks around, None where missing; numbers without a fraction have no point.

    Parameters
    ----------
    column : pandas.Series
        The column as a file has it.
    is_missing : callable
        Tells whether a text stands for a missing cell.

    Returns
    -------
    pandas.Series
    """

    def plain(one: Any) -> str | None:
        if isinstance(one, (float, np.floating)) and float(one).is_integer():
            one = int(one)
        text = str(one).strip()
        return None if is_missing(text) else text

    values, present = column.to_numpy(dtype=object), column.notna().to_numpy()
    known = {one: plain(one) for one in column.dropna().unique()}
    text = np.full(len(values), None, dtype=object)
    text[present] = [known[one] for one in values[present]]
    return import_pandas().Series(text, index=column.index, name=column.name, dtype=object)


def parse_plain_numbers(column: Any) -> Any:
    """Return a column of text all of whose cells are numbers or missing, as numbers. It is fast.

    Parameters
    ----------
    column : pandas.Series
        The column as a file has it.

    Returns
    -------
    pandas.Series or None
        None if it is no such column.
    """
    pandas = import_pandas()
    if not isinstance(column.dtype, pandas.StringDtype) and column.dtype != object:
        return None
    try:
        numbers = pandas.to_numeric(column, errors="coerce")
    except TypeError:
        return None
    others = column[numbers.isna() & column.notna()].unique()
    if not all(isinstance(one, str) and one.strip().lower() in MISSING_AMONG_NUMBERS for one in others):
        return None
    known = column[numbers.notna()]
    if known.empty or looks_ambiguous(one.strip() for one in map(str, known.head(LOOKED_AT))):
        return None
    return None if known.astype(str).str.match(r"\s*[+-]?0\d").any() else numbers


def _read_texts(column: Any, reading: Reading) -> NDArray[np.float64]:
    """The numbers that the texts of a column are, or the days; each different text is read once."""
    codes, texts = import_pandas().factorize(to_text(column))
    return np.asarray(np.append(reading.read(list(texts)), np.nan)[codes])


def read_numbers(column: Any, reading: Reading = PLAIN_NUMBERS) -> Any:
    """Return a column as numbers: true and false as 1 and 0, lengths of time in days, what is none as missing.

    Parameters
    ----------
    column : pandas.Series
        The column as a file has it.
    reading : Reading
        How its texts are read.

    Returns
    -------
    pandas.Series
    """
    pandas = import_pandas()
    if pandas.api.types.is_timedelta64_dtype(column):
        return column / pandas.Timedelta(days=1)
    if pandas.api.types.is_bool_dtype(column):
        return column.astype(np.float64)
    if pandas.api.types.is_numeric_dtype(column):
        return column
    if reading == Reading() and (plain := parse_plain_numbers(column)) is not None:
        return plain
    return pandas.Series(_read_texts(column, reading), index=column.index, name=column.name)


def read_dates(column: Any, reading: Reading = PLAIN_DATES) -> Any:
    """Return a column as dates of no time zone, those of a time zone in UTC; what is none as missing, a number too.

    Parameters
    ----------
    column : pandas.Series
        The column as a file has it.
    reading : Reading
        How its texts are read.

    Returns
    -------
    pandas.Series
    """
    pandas = import_pandas()
    if pandas.api.types.is_datetime64_any_dtype(column):
        return column if column.dt.tz is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
    days = _read_texts(column, reading)
    exact = np.where(np.isnan(days), np.iinfo(np.int64).min, np.rint(np.nan_to_num(days) * 86_400e6))
    dates = exact.astype(np.int64).view("datetime64[us]")
    return pandas.Series(dates, index=column.index, name=column.name)


def find_kind(column: Any) -> str:
    """Find what a column of numbers holds.

    Parameters
    ----------
    column : pandas.Series
        The column as a file has it.

    Returns
    -------
    str
        "duration", "date", "truth" (Booleans, as text too) or "number".
    """
    kinds = import_pandas().api.types
    if kinds.is_datetime64_any_dtype(column):
        return "date"
    if kinds.is_timedelta64_dtype(column):
        return "duration"
    if kinds.is_bool_dtype(column):
        return "truth"
    if kinds.is_numeric_dtype(column):
        return "number"
    words = {str(one).strip().lower() for one in column.dropna().unique()} - MISSING_AMONG_NUMBERS
    return "truth" if words and words <= TRUTH.keys() else "number"


def find_lost(column: Any, numbers: Any) -> list[str]:
    """Find the texts of cells that are not empty and yet missing among the numbers that were read.

    Parameters
    ----------
    column : pandas.Series
        The column as a file has it.
    numbers : pandas.Series
        What was read.

    Returns
    -------
    list of str
    """
    texts = attempt(to_text, column[numbers.isna()]).dropna()
    return [one for one in texts if one.lower() not in MISSING_AMONG_NUMBERS]


def find_infinite(column: Any) -> NDArray[np.bool_]:
    """Find which cells of a column of numbers are infinite.

    Parameters
    ----------
    column : pandas.Series
        The column as a file has it.

    Returns
    -------
    array of bool
    """
    if not import_pandas().api.types.is_float_dtype(column):
        return np.zeros(len(column), dtype=np.bool_)
    return np.asarray(np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan)))


def count_infinite(column: Any) -> int:
    """Count the infinite cells of a column.

    Parameters
    ----------
    column : pandas.Series
        Any column; only numbers can be infinite.

    Returns
    -------
    int
    """
    return int(np.count_nonzero(find_infinite(column)))


def describe_infinite(count: int, hints: Hints) -> str:
    """Say what becomes of infinite cells.

    Parameters
    ----------
    count : int
        How many there are.
    hints : Hints
        Whether they are taken.

    Returns
    -------
    str
    """
    words = f"{count} infinite {'numbers' if count > 1 else 'number'}"
    return f"{words} taken as missing" if hints.takes_infinite else f"{words}, refused without --infinite-as missing"


def settle_infinite(
    column: Any,
    hints: Hints,
    name_row: Callable[[int], str],
    find: Callable[[Any], NDArray[np.bool_]] = find_infinite,
) -> Any:
    """Return a column without infinite cells, which are missing or refused.

    Parameters
    ----------
    column : pandas.Series
        The column as a file has it.
    hints : Hints
        Whether they are taken as missing.
    name_row : callable
        Says what the file calls a row, which is counted from 0.
    find : callable
        Finds them.

    Returns
    -------
    pandas.Series
    """
    infinite = find(column)
    if not infinite.any():
        return column
    if not hints.takes_infinite:
        first = int(np.flatnonzero(infinite)[0])
        others = f" and in {infinite.sum() - 1} other rows" if infinite.sum() > 1 else ""
        where = f"{name_row(int(column.index[first]))}{others}"
        raise ValueError(
            f"column {column.name!r} holds {float(column.iloc[first]):g} in {where}, and "
            "numbers must be finite: --infinite-as missing takes them as missing, or correct them in the file"
        )
    return column.mask(infinite)


def convert_to_finite(column: Any, convert: Conversion) -> Any:
    """Return what a conversion makes of a column, with what is infinite as missing.

    Parameters
    ----------
    column : pandas.Series
        The column as a file has it.
    convert : callable
        What makes numbers of it.

    Returns
    -------
    pandas.Series
    """
    converted = convert(column)
    return converted.mask(find_infinite(converted))
