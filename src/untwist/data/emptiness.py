"""Tables that say nothing: all cells missing, or the same in every row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.data.workers import Workers, solo


def describe_emptiness(blocks: Iterable[Any], workers: Workers = solo) -> str | None:
    """Say that a table teaches nothing, where every column is the same in all rows.

    Parameters
    ----------
    blocks : iterable of ndarray
        The rows as numbers; no more of them are read than it takes to see a difference.
    workers : Workers, default solo
        Who shares the rows.

    Returns
    -------
    str or None
        None where some column differs between rows.

    Examples
    --------
    >>> describe_emptiness([np.ones((3, 2))])
    'every column of X is the same in all rows, so that nothing but the shares of the classes can be learned'
    >>> describe_emptiness([np.eye(2)])
    """
    first = None
    differs = False
    for block in blocks:
        if len(block):
            first = block[0] if first is None else first
            differs = _differs(block, first)
        if differs:
            break
    gathered = workers.gather((differs, first))
    found = [one for _, one in gathered if one is not None]
    if any(one for one, _ in gathered) or not found or _differs(np.stack(found), found[0]):
        return None
    what = "all cells of X are missing" if np.isnan(found[0]).all() else "every column of X is the same in all rows"
    return f"{what}, so that nothing but the shares of the classes can be learned"


def _differs(rows: NDArray[Any], first: NDArray[Any]) -> bool:
    """Tell whether rows differ from the first one; columns are looked at until one does."""
    columns = zip(rows.T, first, strict=True)
    return any(
        not (np.isnan(column).all() if np.isnan(value) else (column == value).all()) for column, value in columns
    )
