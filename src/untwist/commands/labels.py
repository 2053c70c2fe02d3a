"""The column of the labels, and those that name sources, items and groups."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.commands.cells import (
    Hints,
    attempt,
    find_infinite,
    is_text,
    settle_infinite,
    to_text,
)
from untwist.data.cells import (
    find_spellings,
    list_some,
)
from untwist.data.targets import doubt_classes

#: A whole number that fits into 64 bits.
WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")


def read_labels(
    column: Any, hints: Hints, name_row: Callable[[int], str]
) -> tuple[NDArray[np.bool_], NDArray[Any], list[str]]:
    """Read the labels of a table; those that differ by case or blanks alone are one, called as most of them are.

    Parameters
    ----------
    column : pandas.Series
        The column as the file has it; what is no label of classes is a ValueError.
    hints : Hints
        Whether labels stay as they are, and what becomes of infinite ones.
    name_row : callable
        As for `prepare`.

    Returns
    -------
    present : array of bool
        Which rows have a label.
    labels : array
        Theirs.
    notes : list of str
        Which labels were made one, in words.
    """
    present, y = attempt(_read_labels, settle_infinite(column, hints, name_row, _find_infinite_labels))
    if not present.any():
        raise ValueError(f"no row has a label in column {column.name!r}")
    y, notes = (y, []) if hints.label_as_is or y.dtype.kind != "U" else _merge_spellings(y)
    _check_classes(column.name, y)
    return present, y, notes


def _merge_spellings(y: NDArray[Any]) -> tuple[NDArray[Any], list[str]]:
    """Make labels one that differ by case or blanks alone; which, in words."""
    spelled, counts = np.unique(y, return_counts=True)
    times = dict(zip(spelled.tolist(), counts.tolist(), strict=True))
    name_of: dict[str, str] = {}
    notes = []
    for several in find_spellings(times).values():
        name = max(several, key=lambda one: times[one])
        others = [one for one in several if one != name]
        name_of |= dict.fromkeys(others, name)
        rows = sum(times[one] for one in others)
        notes.append(f"{list_some(others)} read as {name!r} ({rows} rows; --label-as-is keeps them apart)")
    if name_of:
        y = np.array([name_of.get(one, one) for one in y.tolist()])
    return y, notes


def _read_labels(column: Any) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Which rows have a label, and theirs: whole numbers as such, anything else as text. "NA" is a label, "" none."""
    present = column.notna().to_numpy()
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu" and np.can_cast(column.dtype, np.int64):
        return present, column.to_numpy(dtype=np.int64)
    if not is_text(column):
        values = column.to_numpy(dtype=object)[present]
        kinds = {type(one) for one in values}
        whole = all(isinstance(one, (int, np.integer, bool, np.bool_)) for one in values)
        whole = whole or all(isinstance(one, (float, np.floating)) and float(one).is_integer() for one in values)
        if whole and not kinds & {bool, np.bool_}:
            return present, np.array([int(one) for one in values])
        return present, np.array([str(one) for one in values])
    text = column.where(column.notna(), "").astype(str).str.strip().to_numpy(dtype=object)
    present = present & (text != "")
    labels = text[present]
    if all(WHOLE.fullmatch(one) for one in set(labels)):
        return present, labels.astype(np.int64)
    return present, labels.astype(str)


def _find_infinite_labels(column: Any) -> NDArray[np.bool_]:
    """Which labels are infinite numbers; among words "inf" is a word."""
    if not is_text(column):
        return find_infinite(column)
    texts = column.dropna().unique()
    try:
        infinite = [one for one in texts if one.strip() and np.isinf(float(one))]
    except ValueError:
        infinite = []
    return np.asarray(column.isin(infinite))


def _check_classes(label: str, y: NDArray[Any]) -> None:
    """Raise a ValueError where labels are no classes."""
    classes = np.unique(y)
    if classes.size == 1:
        raise ValueError(f"column {label!r} holds only {classes.tolist()[0]!r}: two classes are needed")
    if objection := doubt_classes(classes, len(y)):
        raise ValueError(f"column {label!r} {objection}")


def read_names(column: Any) -> NDArray[Any]:
    """Read the names in a column as text without blanks around, None where a cell is empty. "NA" is a name.

    Parameters
    ----------
    column : pandas.Series
        The column as a file has it.

    Returns
    -------
    array
    """
    return np.asarray(to_text(column, is_missing=lambda text: not text), dtype=object)
