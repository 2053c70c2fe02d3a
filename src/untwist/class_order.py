"""The order of classes, where they have one: as it was given, of an ordered categorical, or by their names."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["find_natural_order", "list_ordered_categories", "place_classes"]

#: A label that begins with a number.
NUMBERED = re.compile(r"\s*([-+]?\d+(?:\.\d+)?)")


def list_ordered_categories(y: Any) -> tuple[Any, ...] | None:
    """Return the categories of an ordered categorical of pandas, the lowest first; None for any other labels.

    Parameters
    ----------
    y : array-like
        The labels as they were given.

    Returns
    -------
    tuple or None
    """
    kind = getattr(y, "dtype", None)
    return tuple(kind.categories) if kind is not None and getattr(kind, "ordered", False) else None


def place_classes(order: tuple[Any, ...] | None, classes: NDArray[Any]) -> NDArray[np.intp] | None:
    """Return the place of each class in an order that was given, from 0.

    Parameters
    ----------
    order : tuple or None
        Labels, the lowest first; some may be of no class.
    classes : array
        The labels that there are.

    Returns
    -------
    array of int or None
        None where no order was given. A ValueError names a class that is missing from it, or is in it twice.

    Examples
    --------
    >>> import numpy as np
    >>> place_classes(("low", "fair", "high"), np.array(["fair", "high", "low"]))
    array([1, 2, 0])
    """
    if order is None:
        return None
    names = classes.tolist()
    for name in names:
        if order.count(name) != 1:
            found = "twice" if name in order else "not at all"
            raise ValueError(f"order must hold every class once, the lowest first: {name!r} is in it {found}")
    return np.argsort(np.argsort([order.index(name) for name in names]))


def find_natural_order(y: Any, classes: NDArray[Any]) -> NDArray[np.intp] | None:
    """Find the natural order of classes: numbers have one, labels that begin with numbers, and ordered categories.

    Parameters
    ----------
    y : array-like
        The labels as they were given; an ordered categorical of pandas says its order.
    classes : array
        The labels that there are.

    Returns
    -------
    array of int or None
        The place of each class, from 0; None where classes have no order that is known, and where there are two.

    Examples
    --------
    >>> import numpy as np
    >>> find_natural_order(None, np.array(["10 or more", "2 to 9", "none, or 1"]))
    >>> find_natural_order(None, np.array([1, 2, 5]))
    array([0, 1, 2])
    >>> find_natural_order(None, np.array(["10 or more", "2 to 9", "1"]))
    array([2, 1, 0])
    """
    names = classes.tolist()
    categories = list_ordered_categories(y)
    values: list[Any] = []
    if categories is not None:
        values = [categories.index(one) for one in names] if set(names) <= set(categories) else []
    elif classes.dtype.kind in "iuf":
        values = names
    elif all(found := [NUMBERED.match(str(one)) for one in names]):
        values = [float(one[1]) for one in found if one is not None]
    if len(names) < 3 or len(set(values)) < len(names):
        return None
    return np.argsort(np.argsort(values))
