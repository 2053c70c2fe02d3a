"""Columns that name the rows, such as an id or an index, and say nothing of new rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

#: A column of text names the rows if more than this share of its values are different.
DISTINCT_SHARE = 0.95
#: A column with fewer rows is not taken for one that names the rows.
LEAST_ROWS = 50
#: A column called like one that names the rows is one in a table of at least this many rows, if it counts them.
LEAST_COUNTED = 5
#: Words at the end of names of columns that name the rows.
ID_WORDS = "id|ids|uuid|guid|index|idx|rowid|row_number|nr|no|num|number|nummer|key|code|serial|lfd"
#: Names of columns that name the rows.
ID = re.compile(rf"(?i:(.*[\W_])?({ID_WORDS})\.?)|.*[a-z](Id|ID|Nr|No|Num|Number|Nummer|Key|Code|Uuid|UUID)")
#: How pandas calls an index without a name that was written to a file and read again, perhaps more than once.
INDEX_IN_PANDAS = re.compile(r"Unnamed: 0(\.\d+)*")
#: Texts that name something, by what they are.
NAMING = {
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+"),
    "UUIDs": re.compile(r"\{?[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\}?", re.IGNORECASE),
    "hashes": re.compile(r"(?=.*[a-f])(?=.*\d)([0-9a-f]{16}|[0-9a-f]{24,128})", re.IGNORECASE),
}
#: Such texts name the rows where there are fewer rows than this for each.
ROWS_PER_NAME = 5


def describe_place(name: str, names: Sequence[str], unnamed: Collection[str]) -> dict[str, bool]:
    """Say what the file tells of a column beside its cells, as `find_objection` takes it.

    Parameters
    ----------
    name : str
        The column.
    names : sequence of str
        All columns.
    unnamed : collection of str
        Those that have no name in the file.

    Returns
    -------
    dict of str to bool
    """
    is_unnamed = name in unnamed
    is_index_by_name = INDEX_IN_PANDAS.fullmatch(name) is not None
    return {"is_unnamed": is_unnamed, "is_index_by_name": is_index_by_name or (is_unnamed and name == names[0])}


def find_objection(column: Any, kind: str, *, is_unnamed: bool = False, is_index_by_name: bool = False) -> str | None:
    """Find out why a column says nothing of new rows, if it does not.

    Parameters
    ----------
    column : pandas.Series
        The column made ready; its index are the rows of the file.
    kind : str
        "numbers", "dates" or "categories".
    is_unnamed, is_index_by_name : bool
        What `describe_place` says of it.

    Returns
    -------
    str or None
        The reason in words.
    """
    if is_index_by_name and _looks_like_index(column, kind):
        return f"{'has no name, and ' if is_unnamed else ''}names the rows as an index does"
    named = is_unnamed or ID.fullmatch(str(column.name)) is not None
    if named and kind == "numbers" and len(column) >= LEAST_COUNTED and _counts_rows(column):
        return "looks like an id"
    if kind == "dates" or len(column) < LEAST_ROWS:
        return None
    if kind == "numbers":
        if _counts_rows(column):
            return "counts the rows"
        if named and not column.isna().any() and column.is_unique and _are_whole(column):
            return "looks like an id"
        return None
    known = column.dropna()
    distinct = known.nunique()
    if len(known) < LEAST_ROWS:
        return None
    if distinct == len(known) and named:
        return "looks like an id"
    if distinct * ROWS_PER_NAME > len(known):
        for what, pattern in NAMING.items():
            if all(isinstance(value, str) and pattern.fullmatch(value) for value in known.unique()):
                return f"{what}, {distinct} different ones in {len(known)} rows"
    return f"{distinct} different words in {len(known)} rows" if distinct > DISTINCT_SHARE * len(known) else None


def _looks_like_index(column: Any, kind: str) -> bool:
    """Whether cells are all different and whole numbers or words, or else numbers such as those of joined tables."""
    if kind not in ("numbers", "categories") or len(column) < 2 or column.isna().any():
        return False
    if kind == "categories":
        return bool(column.is_unique)
    if not _are_whole(column):
        return False
    values = column.to_numpy(dtype=np.float64)
    most_rise = np.mean(np.diff(values) == 1.0) >= 0.5  # Of tables that were joined each counts its own rows.
    most_differ = column.nunique() >= 0.5 * len(column)  # Of rows that were drawn some came twice.
    return bool(column.is_unique or (values.min() >= 0 and (most_rise or most_differ)))


def _are_whole(column: Any) -> bool:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return bool(np.all(values == np.floor(values)) and np.isfinite(values).all())


def _counts_rows(column: Any) -> bool:
    """Whether whole numbers rise, or fall, by the same step from each row of the file to the next."""
    ends = column.iloc[[0, 1, -1]].to_numpy(dtype=np.float64, na_value=np.nan)
    rows = column.index[[0, 1, -1]].to_numpy()
    step = (ends[1] - ends[0]) / (rows[1] - rows[0])
    # Most columns are told apart by their first two and their last number.
    if not np.isfinite(step) or step == 0 or ends[2] - ends[0] != step * (rows[2] - rows[0]) or not _are_whole(column):
        return False
    values = column.to_numpy(dtype=np.float64)
    return bool(np.array_equal(values - values[0], step * (column.index.to_numpy() - rows[0])))
