"""Posteriors that come from elsewhere: what was given, read and checked, in the order of the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.crossing import MOST_MISSED
from untwist.data.columns import is_a
from untwist.data.tables import bring_to_host

__all__ = ["read_posteriors"]

#: What the column of a class may be called, in the order in which such names are looked for.
PATTERNS = ("{}", "proba_{}", "prob_{}", "probability_{}", "p_{}", "P({})")


def read_posteriors(
    pred_probs: Any,
    classes: NDArray[Any],
    n_rows: int,
    name: str = "pred_probs",
    *,
    name_row: Callable[[int], str] = "row {}".format,
) -> Array:
    """Return given posteriors with a column per class, after a check that they are probabilities.

    Parameters
    ----------
    pred_probs : array-like of shape (n_rows, n_classes), of shape (n_rows,), or DataFrame
        The probability of each class in each row. Columns without names are in the order of `classes`; those of a
        DataFrame (pandas, polars) that are named by the classes, perhaps after a word such as `proba_`, in any order
        and among others. Of two classes the probability of the second one will do.
    classes : array
        The classes, sorted.
    n_rows : int
        How many rows there must be.
    name : str
        What errors call the posteriors.
    name_row : callable
        Says what errors call a row, which is counted from 0.

    Returns
    -------
    array of shape (n_rows, n_classes)
        Every row sums to 1.

    Examples
    --------
    >>> read_posteriors([0.9, 0.2], np.array(["no", "yes"]), 2)
    array([[0.1, 0.9],
           [0.8, 0.2]])
    """
    given = bring_to_host(pred_probs)
    if is_a(given, "pandas", "DataFrame") or is_a(given, "polars", "DataFrame"):
        given = _order_columns(given, classes, name)
    try:
        if np.iscomplexobj(given):
            raise TypeError("they are complex")
        table = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, a row per label and a column per class ({error})") from error
    if table.ndim == 2 and table.shape[1] == 1:
        table = table[:, 0]
    is_of_second = table.ndim == 1 and len(classes) == 2
    wanted = f"one column for each of the {len(classes)} classes {_name_some(classes.tolist())}, in this order"
    if not is_of_second and (table.ndim != 2 or table.shape[1] != len(classes)):
        raise ValueError(f"{name} must have {wanted}, got shape {np.shape(given)}")
    if len(table) != n_rows:
        raise ValueError(f"{name} must have a row for each of the {n_rows} labels, got {len(table)}")
    _refuse(~np.isfinite(table), table, f"{name} must hold finite numbers", classes, name_row)
    _refuse(
        (table < 0) | (table > 1.0 + MOST_MISSED),
        table,
        f"{name} must hold probabilities, from 0 to 1",
        classes,
        name_row,
    )
    if is_of_second:
        table = np.column_stack([1.0 - np.minimum(table, 1.0), np.minimum(table, 1.0)])
    total = table.sum(axis=1)
    if (missed := np.flatnonzero(np.abs(total - 1.0) > MOST_MISSED)).size:
        raise ValueError(
            f"{name} must sum to 1 in each row, got {total[missed[0]]:.4g} in {name_row(int(missed[0]))} "
            f"({len(missed)} of {n_rows} rows do not)"
        )
    return np.asarray(table / total[:, None])


def _order_columns(frame: Any, classes: NDArray[Any], what: str) -> Any:
    """Return the columns of a frame in the order of the classes that they name, as an array."""
    names = list(frame.columns)
    first, *others = classes.tolist()
    if [str(name) for name in names] in [[pattern.format(first)] for pattern in PATTERNS]:
        raise ValueError(f"{what} must be of class {others[0]!r} where it is one column, got that of {first!r} only")
    if len(names) == 1 or names == list(range(len(classes))):  # These are no names, but numbers of columns.
        return frame.to_numpy()
    texts = [str(name) for name in names]
    for pattern in PATTERNS:
        wanted = [pattern.format(label) for label in classes.tolist()]
        if len(set(texts)) == len(texts) and set(texts) >= set(wanted):
            return frame.to_numpy()[:, [texts.index(name) for name in wanted]]
    forms = " or ".join(pattern.format(first) for pattern in PATTERNS[1:])
    raise ValueError(
        f"{what} must have a column for each class: {_name_some(classes.tolist())} (or all as in {forms}), got "
        f"{_name_some(names)}"
    )


def _name_some(names: list[Any]) -> str:
    return ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _refuse(
    bad: NDArray[np.bool_], table: Array, wanted: str, classes: NDArray[Any], name_row: Callable[[int], str]
) -> None:
    """Raise a ValueError that names the first value which is not as wanted, and says where it is."""
    if bad.any():
        place = tuple(np.argwhere(bad)[0].tolist())
        where = name_row(place[0]) + (f", class {classes.tolist()[place[1]]!r}" if len(place) == 2 else "")
        raise ValueError(f"{wanted}, got {table[place]} in {where}")
