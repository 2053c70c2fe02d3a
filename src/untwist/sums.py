"""Sums over rows that are the same, to the last bit, for any order of the rows.

`add_up` computes the exact sum and rounds it once. `add_up_by_group` adds the terms of each group from the smallest to
the largest. Terms of 0, such as those of rows of weight 0, change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array

__all__ = ["add_up", "add_up_by_group", "average", "is_broadcast", "shorten_broadcast"]

# Up to this, whole numbers add up in float64 without rounding.
LARGEST_EXACT_SUM = 2.0**53

# Terms become Python floats in blocks of this size, as a list of all of them would take several times their memory.
BLOCK = 1 << 16


def add_up(terms: NDArray[Any]) -> float:
    """Return the sum of all terms.

    Parameters
    ----------
    terms : ndarray
        Finite numbers, in any shape.

    Returns
    -------
    float
        Infinite where it is too large for float64.

    Examples
    --------
    >>> float(np.array([0.1, 0.7, 0.2]).sum()) == float(np.array([0.7, 0.2, 0.1]).sum())
    False
    >>> add_up(np.array([0.1, 0.7, 0.2])) == add_up(np.array([0.7, 0.2, 0.1]))
    True
    """
    numbers = np.asarray(terms, dtype=np.float64)
    if _are_whole(numbers):
        return float(numbers.sum())
    flat = numbers.ravel()
    try:
        return math.fsum(_iterate_terms(flat))
    except OverflowError:  # A sum on the way is too large, even if the whole one may not be.
        return math.fsum(_iterate_terms(flat * 2.0**-64)) * 2.0**64


def add_up_by_group(terms: NDArray[Any], groups: NDArray[Any], n_groups: int) -> Array:
    """Return the sum of the terms of each group.

    Parameters
    ----------
    terms : ndarray of shape (n_terms,)
        Finite numbers.
    groups : ndarray of int of shape (n_terms,)
        The group of each, from 0 to n_groups - 1.
    n_groups : int
        How many groups there are; one without terms has the sum 0.

    Returns
    -------
    ndarray of shape (n_groups,)

    Examples
    --------
    >>> add_up_by_group(np.array([0.5, 1.0, 0.25]), np.array([1, 0, 1]), 3)
    array([1.  , 0.75, 0.  ])
    """
    flat = np.asarray(terms, dtype=np.float64)
    if _are_whole(flat):
        if is_broadcast(flat):
            return np.asarray(np.bincount(groups, minlength=n_groups) * flat[0])
        return np.bincount(groups, flat, n_groups).astype(np.float64)
    rising = np.argsort(flat)
    return np.bincount(groups[rising], flat[rising], n_groups).astype(np.float64)


def average(values: NDArray[Any], weight: Array) -> float:
    """Return the mean of values by their weights.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Finite numbers.
    weight : ndarray of shape (n_rows,)
        How much each counts, at least 0.

    Returns
    -------
    float
        0 where nothing counts.
    """
    total = add_up(weight)
    return add_up(values * weight) / total if total > 0 else 0.0


def is_broadcast(terms: NDArray[Any]) -> bool:
    """Tell whether an array repeats one number in memory, as `np.broadcast_to` makes it.

    Rows without weights of their own get such weights.

    Parameters
    ----------
    terms : ndarray
        Numbers.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_broadcast(np.broadcast_to(1.0, 3)), is_broadcast(np.ones(3))
    (True, False)
    """
    return terms.size > 1 and terms.strides == (0,)


def shorten_broadcast(terms: NDArray[Any]) -> NDArray[Any]:
    """Return one term of an array that repeats one number in memory, and any other array as it is.

    Parameters
    ----------
    terms : ndarray
        Numbers.

    Returns
    -------
    ndarray
        What holds for all numbers here holds for all terms.

    Examples
    --------
    >>> shorten_broadcast(np.broadcast_to(1.0, 3)), shorten_broadcast(np.array([1.0, 2.0]))
    (array([1.]), array([1., 2.]))
    """
    return terms[:1] if is_broadcast(terms) else terms


def _are_whole(terms: Array) -> bool:
    """Tell whether all terms are whole numbers, small enough for any partial sum of them to be exact."""
    if not terms.size:
        return True
    different = shorten_broadcast(terms)
    largest = float(np.abs(different).max())
    return terms.size * largest <= LARGEST_EXACT_SUM and bool((np.rint(different) == different).all())


def _iterate_terms(terms: Array) -> Iterable[float]:
    return chain.from_iterable(terms[start : start + BLOCK].tolist() for start in range(0, len(terms), BLOCK))
