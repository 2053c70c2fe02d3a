"""Targets that look as if they were no classes: numbers with fractions, or too many different values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A target with more classes than this is refused.
MOST_CLASSES = 500
#: In so few rows any number of classes will do.
FEW_ROWS = 100
#: A class has at least this many rows in the mean.
ROWS_PER_CLASS = 3

_rows_are_known = ContextVar("rows_are_known", default=False)


@contextmanager
def know_rows() -> Iterator[None]:
    """Fit to rows that have been looked at: their target is not questioned again, nor what their table teaches.

    Yields
    ------
    None
        Fits to some of the rows, or without a column, are done meanwhile.
    """
    token = _rows_are_known.set(True)
    try:
        yield
    finally:
        _rows_are_known.reset(token)


def are_rows_known() -> bool:
    """Tell whether the rows have been looked at: whether this runs within `know_rows`.

    Returns
    -------
    bool
    """
    return _rows_are_known.get()


def doubt_classes(classes: NDArray[Any], n_rows: int) -> str | None:
    """Say why the different values of a target are hardly classes.

    Parameters
    ----------
    classes : ndarray
        The different values.
    n_rows : int
        How many rows have one.

    Returns
    -------
    str or None
        What a sentence about the target goes on with; None where the values may well be classes.

    Examples
    --------
    >>> doubt_classes(np.arange(214), 442)
    'holds 214 different values in 442 rows: is it the label?'
    >>> doubt_classes(np.arange(2), 442)
    """
    if len(classes) > MOST_CLASSES or (n_rows > FEW_ROWS and len(classes) > n_rows / ROWS_PER_CLASS):
        return f"holds {len(classes)} different values in {n_rows} rows: is it the label?"
    if _has_fractions(classes):
        return f"holds {len(classes)} different numbers, not classes: this is for classes"
    return None


def refuse_regression_target(y: Any, classes: NDArray[Any], n_rows: int) -> None:
    """Raise a ValueError for numbers that are hardly classes, unless their type says that they are.

    Parameters
    ----------
    y : array_like
        The labels as they were given.
    classes : ndarray
        Their classes, those of all workers.
    n_rows : int
        The number of rows of all workers.
    """
    # Whoever gives text or categories means classes.
    if classes.dtype.kind not in "iufmM" or _is_categorical(y):
        return
    objection = doubt_classes(classes, n_rows)
    if objection is not None:
        raise ValueError(
            f"y {objection} If these are classes, give them as text, such as numpy.asarray(y).astype(str), or as "
            "categories of pandas"
        )


def _is_categorical(y: Any) -> bool:
    """Tell whether labels are a column of categories of pandas, polars or pyarrow."""
    kind = getattr(y, "dtype", None) if hasattr(y, "dtype") else getattr(y, "type", None)
    return type(kind).__name__ in ("CategoricalDtype", "Categorical", "Enum", "DictionaryType")


def _has_fractions(classes: NDArray[Any]) -> bool:
    """Tell whether all values are numbers and some have a fraction. NaN and infinity have none."""
    try:
        numbers = classes.astype(float)
    except ValueError:
        return False
    finite = numbers[np.isfinite(numbers)]
    return bool(np.any(finite != np.round(finite)))
