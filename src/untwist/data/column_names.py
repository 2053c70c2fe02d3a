"""Names of columns that are no text: numbers, dates, tuples. scikit-learn knows text alone, and ignores all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from untwist.data.cells import list_some


def list_names(X: Any) -> list[Any]:
    """Return the names of the columns of a frame.

    Parameters
    ----------
    X : table
        A frame of pandas, polars or pyarrow, or any other table.

    Returns
    -------
    list
        Empty where columns have no names.
    """
    return list(getattr(X, "column_names", getattr(X, "columns", [])))


def read_other_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a frame as text where they are none.

    Parameters
    ----------
    X : table
        Any table.

    Returns
    -------
    tuple of str or None
        None where there are no names, where all are text, or where they only count the columns from 0.
    """
    names = list_names(X)
    if _are_text(names) or _count_columns(names):
        return None
    return tuple(map(str, names))


def check_other_names(X: Any, names: Sequence[str] | None, other_names: Sequence[str] | None) -> None:
    """Raise a ValueError where names that scikit-learn ignores say that columns are not those of the training table.

    Parameters
    ----------
    X : table
        Any table.
    names : sequence of str or None
        The names of the columns of the training table, where they were text.
    other_names : sequence of str or None
        What `read_other_names` said of the training table.
    """
    given = list_names(X)
    if _are_text(given):
        if names is not None:
            return  # scikit-learn compares text with text.
    elif _count_columns(given):
        return
    known = other_names if other_names is not None else names
    if known is None:
        known = list(map(str, range(len(given))))
    texts = list(map(str, given))
    if len(texts) != len(known) or texts == list(known):
        return
    # Where one has names of text and the other has none, scikit-learn warns.
    are_same = sorted(texts) == sorted(known)
    if not are_same and (other_names is None or _are_text(given)):
        return
    what = "in another order" if are_same else "other ones"
    raise ValueError(
        f"the columns of X must be those of the fit, in the same order, but they are {what}: {list_some(texts)} in "
        f"place of {list_some(known)}; select them by their names, or give an array to go by positions"
    )


def _are_text(names: Sequence[Any]) -> bool:
    """Tell whether all names are text, as of none they are."""
    return all(isinstance(name, str) for name in names)


def _count_columns(names: Sequence[Any]) -> bool:
    """Tell whether names are the numbers from 0, as a frame without names of its own has them."""
    are_whole = all(isinstance(name, int) and not isinstance(name, bool) for name in names)
    return are_whole and list(names) == list(range(len(names)))
