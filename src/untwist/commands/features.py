"""What becomes of a column that is no label: numbers, dates or categories, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from untwist.commands.cells import (
    Conversion,
    Hints,
    attempt,
    find_kind,
    is_text,
    parse_plain_numbers,
    read_dates,
    read_numbers,
    to_text,
)
from untwist.commands.row_names import find_objection
from untwist.commands.sheets import import_pandas
from untwist.data.cells import (
    Reading,
    decide,
)

#: A column of text with more different values than this is told of.
MOST_DISTINCT_VALUES = 254


@dataclass(frozen=True, eq=False)
class ColumnDecision:
    """What becomes of a column.

    Parameters
    ----------
    kind : str
        "numbers", "dates", "categories" or "nothing".
    convert : callable or None
        What makes numbers, dates or categories of it; None if it is of no use.
    ready : pandas.Series
        What it makes of this one.
    note : str
        What is to be told of it, in words.
    reading : Reading or None
        How its texts were read, if it holds text that is numbers or dates.
    is_ambiguous : bool
        Whether nothing in the column decided how to read it.
    left_out : str or None
        Why it is left out, if it is.
    holds : str
        Of a column of numbers what these are, as `cells.find_kind` says.
    """

    kind: str
    convert: Conversion | None
    ready: Any
    note: str = ""
    reading: Reading | None = None
    is_ambiguous: bool = False
    left_out: str | None = None
    holds: str = ""

    def explain_absence(self, name: str) -> str:
        """Say why a column is left out, and by which option it is used."""
        # A name with other characters is shown in a way that nobody can type.
        hint = "" if self.convert is None else f" (--keep {repr(name) if name.isprintable() else 'COLUMN'} uses it)"
        return f"{self.left_out or self.note}; left out{hint}"


def decide_column(
    column: Any, hints: Hints, *, is_kept: bool = False, is_unnamed: bool = False, is_index_by_name: bool = False
) -> ColumnDecision:
    """Decide what becomes of a column that is no label.

    Parameters
    ----------
    column : pandas.Series
        The column as the file has it; its index are the rows of the file.
    hints : Hints
        What is known about how to read it.
    is_kept : bool
        Whether it is to be used though it looks odd.
    is_unnamed : bool
        Whether it has no name in the file.
    is_index_by_name : bool
        Whether it is called like an index that was written with the table, or is the first one and not called anything.

    Returns
    -------
    ColumnDecision
    """
    found: ColumnDecision = attempt(partial(_decide_feature, hints=hints), column)
    if found.kind == "numbers":
        found = replace(found, holds=find_kind(column))
    if is_kept or found.convert is None:
        return found
    place = {"is_unnamed": is_unnamed, "is_index_by_name": is_index_by_name}
    return replace(found, left_out=find_objection(found.ready, found.kind, **place))


def _decide_feature(column: Any, hints: Hints) -> ColumnDecision:
    """What becomes of a column, whether or not it names the rows."""
    pandas = import_pandas()
    kinds = pandas.api.types
    if kinds.is_numeric_dtype(column) and not column.isna().all():
        if kinds.is_bool_dtype(column) and column.hasnans:
            return ColumnDecision("numbers", read_numbers, read_numbers(column))
        return ColumnDecision("numbers", _keep, column)
    if hints.decimal is None and (plain := parse_plain_numbers(column)) is not None:
        return ColumnDecision("numbers", read_numbers, plain)
    if isinstance(column.dtype, pandas.CategoricalDtype) and not is_text(column):
        return ColumnDecision("categories", _keep, column)
    if column.isna().all():
        return ColumnDecision("nothing", None, column, "all values are missing")
    if kinds.is_datetime64_any_dtype(column):
        return ColumnDecision("dates", read_dates, read_dates(column), "dates")
    if kinds.is_timedelta64_dtype(column):
        return ColumnDecision("numbers", read_numbers, read_numbers(column), "lengths of time, in days")
    text = to_text(column)
    counts = text.value_counts()
    if counts.empty:
        return ColumnDecision("nothing", None, column, "all values are missing")
    found = decide(counts.index.tolist(), counts.to_numpy(), decimal=hints.decimal, order=hints.order)
    if found.reading is not None:
        convert = partial(read_dates if found.reading.kind == "date" else read_numbers, reading=found.reading)
        return ColumnDecision(
            f"{found.reading.kind}s", convert, convert(column), found.note, found.reading, found.is_ambiguous
        )
    note = f"text with {len(counts)} values" if len(counts) > MOST_DISTINCT_VALUES else found.note
    return ColumnDecision("categories", _to_categories, text.astype("category"), note)


def _keep(column: Any) -> Any:
    return column


def _to_categories(column: Any) -> Any:
    return to_text(column).astype("category")
