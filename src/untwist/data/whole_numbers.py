"""Whole numbers that float64 cannot tell apart: beyond 2**53 some of them become the same number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from untwist.data.columns import Column, read_as_categories

#: Up to this, float64 holds every whole number.
LARGEST_EXACT = 2**53


def count_merged(values: Iterable[Any]) -> tuple[int, int]:
    """Count the different whole numbers among values that float64 may not hold.

    Parameters
    ----------
    values : iterable
        Any values; those that are no whole numbers beyond 2**53 do not count.

    Returns
    -------
    before, after : int
        How many different ones there are, and how many are left as float64.

    Examples
    --------
    >>> count_merged([2**53, 2**53 + 1, 2**53 + 2, 0.5])
    (3, 2)
    """
    large = {int(one) for one in values if isinstance(one, (int, np.integer)) and abs(int(one)) >= LARGEST_EXACT}
    return len(large), len({_round(one) for one in large})


def refuse_merged_numbers(columns: Iterable[Column]) -> None:
    """Raise a ValueError where different whole numbers of a column become the same number.

    Parameters
    ----------
    columns : iterable of Column
        Columns that are to be read as numbers.
    """
    for column in columns:
        if column.kind != "number" or not column.is_wide:
            continue
        numbers = column.read_numbers()
        # A comparison with NaN is false.
        if not (np.abs(numbers) >= LARGEST_EXACT).any():
            continue
        before, after = count_merged(set(read_as_categories(column)[1]))
        if after < before:
            raise ValueError(
                f"column {column.name!r} holds {before} different whole numbers beyond 2**53, of which numbers of 64 "
                f"bits tell only {after} apart: make text of them if they are names, subtract the smallest if they "
                "are amounts, or leave the column out"
            )


def _round(number: int) -> float:
    """Return the nearest number of float64; beyond all of them infinity."""
    try:
        return float(number)
    except OverflowError:
        return float("inf")
