"""Checks of arguments: each returns the value, ready for use, or raises a ValueError that names the argument."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Array",
    "check_count",
    "check_fraction",
    "check_non_negative",
    "check_numbers",
    "check_positive",
    "check_probabilities",
    "check_real",
    "check_share",
    "is_missing",
    "normalise_weights",
]

Array = NDArray[np.float64]

# A count is at most this, which is more than anybody waits for.
LARGEST_COUNT = 2**31 - 1


def check_numbers(name: str, value: ArrayLike) -> Array:
    """Return a real number or several, of any shape, as an array.

    Parameters
    ----------
    name : str
        What to call the argument in an error.
    value : array_like
        The value to check.

    Returns
    -------
    ndarray of float64
        In the shape of the value, without dimensions for a number.

    Examples
    --------
    >>> check_numbers("z", [1, 2])
    array([1., 2.])
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        raise ValueError(f"{name} must be numbers, none masked")
    try:
        if value is None or np.iscomplexobj(value):
            raise TypeError
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, got {value!r:.100}") from error


def check_probabilities(name: str, value: ArrayLike) -> Array:
    """Return a number or several, all in [0, 1], as an array.

    Parameters
    ----------
    name : str
        What to call the argument in an error.
    value : array_like
        The value to check.

    Returns
    -------
    ndarray of float64
        In the shape of the value, without dimensions for a number.
    """
    array = check_numbers(name, value)
    # Every comparison with NaN is false, so that NaN is outside too.
    outside = ~((array >= 0) & (array <= 1))
    if outside.any():
        raise ValueError(f"{name} must lie in [0, 1], got {array[outside].flat[0]}")
    return array


def normalise_weights(weights: ArrayLike | None, size: int) -> Array:
    """Return the weights of points, scaled to sum to one.

    Parameters
    ----------
    weights : array_like of shape (size,) or None
        Finite, non-negative and not all zero; None for points that all weigh the same.
    size : int
        The number of points.

    Returns
    -------
    ndarray of shape (size,)
        The scaled weights.

    Examples
    --------
    >>> normalise_weights([1.0, 3.0], 2)
    array([0.25, 0.75])
    """
    if size == 0:
        raise ValueError("a distribution must have at least one point")
    if weights is None:
        return np.full(size, 1.0 / size)
    array = check_numbers("weights", weights)
    if array.shape != (size,):
        raise ValueError(f"weights must be {size} numbers, one per point, got shape {array.shape}")
    if not (np.isfinite(array).all() and (array >= 0).all() and (array > 0).any()):
        raise ValueError(f"weights must be finite, non-negative and not all zero, got {array}")
    # Dividing by the largest first keeps the sum of huge weights from overflowing.
    array = array / array.max()
    return np.asarray(array / array.sum())


def check_real(name: str, value: Any, *, low: float = -math.inf, open_low: bool = False) -> float:
    """Return a number that may be infinite but not NaN.

    Parameters
    ----------
    name : str
        What to call the argument in an error.
    value
        The value to check.
    low : float, default -inf
        The lowest number allowed.
    open_low : bool, default False
        Whether `low` itself is not allowed.

    Returns
    -------
    float
        The number.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r:.100}")
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError(f"{name} must fit a float64, got {value!r:.20}...") from error
    if math.isnan(number) or number < low or (open_low and number == low):
        bound = "" if low == -math.inf else f" {'>' if open_low else '>='} {low:g}"
        raise ValueError(f"{name} must be a number{bound}, got {value!r}")
    return number


def check_positive(name: str, value: Any) -> float:
    """Return a finite number > 0.

    Parameters
    ----------
    name : str
        What to call the argument in an error.
    value
        The value to check.

    Returns
    -------
    float
        The number.
    """
    number = check_real(name, value, low=0.0, open_low=True)
    _refuse_infinite(name, value)
    return number


def check_non_negative(name: str, value: Any) -> float:
    """Return a finite number >= 0.

    Parameters
    ----------
    name : str
        What to call the argument in an error.
    value
        The value to check.

    Returns
    -------
    float
        The number.
    """
    number = check_real(name, value, low=0.0)
    _refuse_infinite(name, value)
    return number


def check_fraction(name: str, value: Any) -> float:
    """Return a number in [0, 1].

    Parameters
    ----------
    name : str
        What to call the argument in an error.
    value
        The value to check.

    Returns
    -------
    float
        The number.
    """
    number = check_real(name, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return number


def check_share(name: str, value: Any) -> float:
    """Return a number in (0, 1].

    Parameters
    ----------
    name : str
        What to call the argument in an error.
    value
        The value to check.

    Returns
    -------
    float
        The number.
    """
    number = check_real(name, value, low=0.0, open_low=True)
    if number > 1:
        raise ValueError(f"{name} must lie in (0, 1], got {value!r}")
    return number


def check_count(name: str, value: Any, low: int = 1, high: int | None = None) -> int:
    """Return a whole number of things.

    Parameters
    ----------
    name : str
        What to call the argument in an error.
    value
        The value to check.
    low : int, default 1
        The lowest number allowed.
    high : int, optional
        The highest number allowed.

    Returns
    -------
    int
        The number, or 2**31 - 1 if that is less.

    Examples
    --------
    >>> check_count("n_estimators", 2.5)
    Traceback (most recent call last):
    ...
    ValueError: n_estimators must be an integer >= 1, got 2.5
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or int(value) < low:
        raise ValueError(f"{name} must be an integer >= {low}, got {value!r:.100}")
    if high is not None and int(value) > high:
        raise ValueError(f"{name} must be at most {high}, got {value!r:.100}")
    return min(int(value), LARGEST_COUNT)


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for none: None, NaN, or the NA of pandas.

    Parameters
    ----------
    value
        A label, or the value of a cell.

    Returns
    -------
    bool
        Whether it is missing.

    Examples
    --------
    >>> is_missing(float("nan")), is_missing("")
    (True, False)
    """
    # NaN differs from itself; the NA of pandas is known by its type, as it refuses to be compared.
    return bool(value is None or type(value).__name__ == "NAType" or value != value)


def _refuse_infinite(name: str, value: Any) -> None:
    if math.isinf(value):
        raise ValueError(f"{name} must be finite, got {value!r}")
