"""Checks of arguments: a clear ValueError that names the argument and the value."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def numbers(name: str, value: ArrayLike) -> Array:
    """`value` as a float64 array (0-d for a scalar)."""
    try:
        if value is None:
            raise TypeError
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, got {value!r}") from error


def probabilities(name: str, value: ArrayLike) -> Array:
    """`value` as a float64 array with all entries in [0, 1]."""
    array = numbers(name, value)
    outside = ~((array >= 0) & (array <= 1))  # NaN is outside too
    if outside.any():
        raise ValueError(f"{name} must lie in [0, 1], got {array[outside].flat[0]}")
    return array


def distribution(weights: ArrayLike | None, size: int) -> Array:
    """Non-negative `weights` of `size` points, scaled to sum to one; uniform when None."""
    if size == 0:
        raise ValueError("a distribution must have at least one point")
    if weights is None:
        return np.full(size, 1.0 / size)
    array = numbers("weights", weights)
    if array.shape != (size,):
        raise ValueError(f"weights must be {size} numbers, one per point, got shape {array.shape}")
    if not (np.isfinite(array).all() and (array >= 0).all() and (array > 0).any()):
        raise ValueError(f"weights must be finite, non-negative and not all zero, got {array}")
    array = array / array.max()  # first, so that huge weights do not overflow in the sum
    return np.asarray(array / array.sum())


def real(name: str, value: Any, *, low: float = -math.inf, open_low: bool = False) -> float:
    """`value` as a float in [low, +inf] (or (low, +inf]); NaN is refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError(f"{name} must fit a float64, got {value!r:.20}...") from error
    if math.isnan(number) or number < low or (open_low and number == low):
        bound = "" if low == -math.inf else f" {'>' if open_low else '>='} {low:g}"
        raise ValueError(f"{name} must be a number{bound}, got {value!r}")
    return number


def positive(name: str, value: Any) -> float:
    """`value` as a finite float > 0."""
    number = real(name, value, low=0.0, open_low=True)
    if math.isinf(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return number


def fraction(name: str, value: Any) -> float:
    """`value` as a float in [0, 1]."""
    number = real(name, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return number


def non_negative(name: str, value: Any) -> float:
    """`value` as a finite float >= 0."""
    number = real(name, value, low=0.0)
    if math.isinf(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return number


def share(name: str, value: Any) -> float:
    """`value` as a float in (0, 1]."""
    number = real(name, value, low=0.0, open_low=True)
    if number > 1:
        raise ValueError(f"{name} must lie in (0, 1], got {value!r}")
    return number


def count(name: str, value: Any, low: int = 1, high: int | None = None) -> int:
    """`value` as an integer in [low, high]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or int(value) < low:
        raise ValueError(f"{name} must be an integer >= {low}, got {value!r}")
    if high is not None and int(value) > high:
        raise ValueError(f"{name} must be at most {high}, got {value!r}")
    return min(int(value), 2**31 - 1)  # more than anybody waits for
