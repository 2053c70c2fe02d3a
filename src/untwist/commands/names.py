"""What columns are called that have no name in their file, such as an index that pandas wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence


def name_columns(names: Sequence[str]) -> list[str]:
    """Name columns without a name by their number, from 1.

    Parameters
    ----------
    names : sequence of str
        The names as a file has them; empty where there is none.

    Returns
    -------
    list of str
        The same, with a name for every column.

    Examples
    --------
    >>> name_columns(["", "age", ""])
    ['column 1', 'age', 'column 3']
    """
    named = []
    for number, name in enumerate(names, 1):
        if not name:
            name = f"column {number}"
            while name in names:
                name += "_"
        named.append(name)
    return named


def find_unnamed(names: Sequence[str]) -> tuple[str, ...]:
    """Find what columns without a name are called.

    Parameters
    ----------
    names : sequence of str
        The names as a file has them.

    Returns
    -------
    tuple of str
        The names that `name_columns` gives.
    """
    return tuple(given for given, name in zip(name_columns(names), names, strict=True) if not name)


def find_names_in_file(names: Sequence[str]) -> list[str]:
    """Find out how a file calls its columns: where `name_columns` named a single one, that has no name again.

    Parameters
    ----------
    names : sequence of str
        The names that `name_columns` returned.

    Returns
    -------
    list of str
        Names that are all different.

    Examples
    --------
    >>> find_names_in_file(["column 1", "age"])
    ['', 'age']
    """
    given = [re.fullmatch(rf"column {number}_*", str(name)) is not None for number, name in enumerate(names, 1)]
    return ["" if was_given and sum(given) == 1 else name for name, was_given in zip(names, given, strict=True)]
