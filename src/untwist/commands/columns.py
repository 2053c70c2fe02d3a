"""The columns of a table made ready for a model, in training and for new rows alike.

Numbers and dates are read as people write them (`untwist.data.cells` has the rules), codes with leading zeros stay
text, ids are left out. Each such decision is told in a note.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.audit.issues.columns import measure_leak
from untwist.commands.names import find_names_in_file
from untwist.commands.row_names import describe_place, find_objection
from untwist.commands.sheets import import_pandas
from untwist.data.cells import (
    MISSING_AMONG_NUMBERS,
    TRUTH,
    Reading,
    decide,
    find_spellings,
    is_missing,
    list_some,
    looks_ambiguous,
    to_days,
)
from untwist.data.targets import doubt_classes
from untwist.predicting import ModelPredictions
from untwist.text import clip

__all__ = [
    "NO_HINTS",
    "ColumnDecision",
    "Hints",
    "NewRows",
    "PreparedTable",
    "TableDecisions",
    "check_names",
    "check_roles",
    "conform",
    "count_infinite",
    "decide_column",
    "decide_columns",
    "describe_infinite",
    "draw_sample",
    "find_leaks",
    "ignore_strangers",
    "prepare",
    "read_labels",
    "remember_readings",
]

#: A column of numbers is refused where so many cells are not empty and none of them is a number.
LEAST_TEXTS = 20
#: Of so many numbers one shows whether all may be thousands, such as 1.234.
LOOKED_AT = 1000
#: A column of text with more different values than this is told of.
MOST_DISTINCT_VALUES = 254
#: A whole number that fits into 64 bits.
WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
#: What columns of numbers may hold that no other number takes the place of: lengths of time, and Booleans.
TOLD_APART = ("duration", "truth")
#: Columns that were left out, at most, which are named where none is left; thousands would hide the sentence.
MOST_TOLD = 4


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """Features, labels, the rows of the file that they come from (from 0), and what was done, in words.

    `source` is who gave each label, `item` what it is a label of and `groups` which rows belong together, None where no
    column says so; None in a cell where the file has none there. `readings` is how texts of a column become numbers, by
    the name of the column, for those whose texts can be read in several ways; `kinds` says which columns of numbers
    were lengths of time ("duration") or Booleans ("truth").
    """

    X: Any
    y: NDArray[Any]
    rows: NDArray[np.intp]
    notes: list[str] = field(default_factory=list)
    source: NDArray[Any] | None = None
    item: NDArray[Any] | None = None
    readings: dict[str, Reading] = field(default_factory=dict)
    groups: NDArray[Any] | None = None
    kinds: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hints:
    """What somebody has said about how to read a table; None leaves it to each column.

    Parameters
    ----------
    decimal : str or None
        "." or ",".
    order : str or None
        "day" or "month", whichever comes first in dates.
    label_as_is : bool
        Whether labels that differ by case or blanks alone are different ones.
    takes_infinite : bool
        Whether an infinite number is taken as a missing one; else it is refused.
    """

    decimal: str | None = None
    order: str | None = None
    label_as_is: bool = False
    takes_infinite: bool = False


#: Leaks are looked for in this many rows, at most: enough to tell 99 % from less.
MOST_DRAWN = 20_000
#: Nobody has said anything.
NO_HINTS = Hints()
#: How texts are read that can be read in one way only.
PLAIN_NUMBERS = Reading()
PLAIN_DATES = Reading("date")


def prepare(
    frame: Any,
    label: str,
    *,
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    source: str | None = None,
    item: str | None = None,
    groups: str | None = None,
    hints: Hints = NO_HINTS,
    name_row: Callable[[int], str] = "row {}".format,
    unnamed: Collection[str] = (),
) -> PreparedTable:
    """Make the table of a file ready to fit; columns that are no features are left out, unless they are to be kept.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table as the file has it.
    label : str
        The column to predict.
    drop, keep : collections of str
        Columns to leave out, and columns to use though they look odd.
    source, item, groups : str or None
        The columns that say who gave each label, what it is a label of, and which rows belong together.
    hints : Hints
        What is known about how to read it.
    name_row : callable
        Says what the file calls a row, which is counted from 0.
    unnamed : collection of str
        What columns are called that have no name in the file.

    Returns
    -------
    PreparedTable
    """
    features: dict[str, Any] = {}
    found = decide_columns(
        list(frame.columns),
        lambda name: frame[name],
        label,
        drop=drop,
        keep=keep,
        source=source,
        item=item,
        groups=groups,
        hints=hints,
        name_row=name_row,
        unnamed=unnamed,
        store=features.__setitem__,
    )
    X = import_pandas().DataFrame(features)
    sample = draw_sample(found.y)
    notes = found.notes + find_leaks(X.iloc[sample], found.y, sample)
    rows = np.flatnonzero(found.present)
    return PreparedTable(X, found.y, rows, notes, found.source, found.item, found.readings, found.groups, found.kinds)


#: Makes numbers or categories of a column.
Conversion = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class TableDecisions:
    """Which rows have a label, their labels, how each feature becomes numbers or categories, and why, in words.

    `source`, `item`, `groups`, `readings` and `kinds` are as in a `PreparedTable`.
    """

    present: NDArray[np.bool_]
    y: NDArray[Any]
    features: dict[str, Conversion]
    notes: list[str]
    source: NDArray[Any] | None = None
    item: NDArray[Any] | None = None
    readings: dict[str, Reading] = field(default_factory=dict)
    groups: NDArray[Any] | None = None
    kinds: dict[str, str] = field(default_factory=dict)


def decide_columns(
    names: Sequence[str],
    column_of: Callable[[str], Any],
    label: str,
    *,
    drop: Collection[str],
    keep: Collection[str],
    source: str | None = None,
    item: str | None = None,
    groups: str | None = None,
    hints: Hints = NO_HINTS,
    name_row: Callable[[int], str] = "row {}".format,
    unnamed: Collection[str] = (),
    store: Callable[[str, Any], None] = lambda _name, _column: None,
) -> TableDecisions:
    """Decide what is to be done with each column, seen one at a time; what is done treats every row by itself.

    Parameters
    ----------
    names : sequence of str
        The columns.
    column_of : callable
        Takes a name and returns that column.
    label, drop, keep, source, item, groups, hints, name_row, unnamed
        As for `prepare`.
    store : callable
        Takes the name of each feature and the feature made ready.

    Returns
    -------
    TableDecisions
    """
    special = check_roles(names, {"label": label, "source": source, "item": item, "groups": groups}, drop, keep)
    present, y, merged = read_labels(column_of(label), hints, name_row)
    notes = [] if present.all() else [f"{(~present).sum()} rows have no label and are left out"]
    notes += [f"{label}: {words}" for words in merged]
    who, what, whole = (
        None if name is None else _attempt(_read_names, column_of(name)[present]) for name in (source, item, groups)
    )
    if who is not None:
        notes.append(f"{source}: who gave the label, one of {_count_names(who)}; no feature, left out")
    if what is not None:
        notes.append(f"{item}: what the label is of, one of {_count_names(what)}; no feature, left out")
    if whole is not None:
        notes.append(f"{groups}: which rows belong together, one of {_count_names(whole)}; no feature, left out")
    features: dict[str, Conversion] = {}
    readings: dict[str, Reading] = {}
    kinds: dict[str, str] = {}
    differs = False
    for name in names:
        if name in special or name in drop:
            continue
        column = column_of(name)
        place = describe_place(name, names, unnamed)
        one = decide_column(column if present.all() else column[present], hints, is_kept=name in keep, **place)
        if one.convert is None or one.left_out:
            # A name with other characters is shown in a way that nobody can type.
            hint = "" if one.convert is None else f" (--keep {repr(name) if name.isprintable() else 'COLUMN'} uses it)"
            notes.append(f"{name}: {one.left_out or one.note}; left out{hint}")
            continue
        ready = one.ready
        features[name] = one.convert
        if one.kind == "numbers" and (n_infinite := count_infinite(ready)):
            ready = _settle_infinite(ready, hints, name_row)
            features[name] = partial(_convert_to_finite, convert=one.convert)
            notes.append(f"{name}: {describe_infinite(n_infinite, hints)}")
        store(name, ready)
        differs = differs or ready.nunique(dropna=False) > 1
        if one.reading not in (None, Reading()):
            readings[name] = one.reading
        if one.kind == "numbers" and (kind := _find_kind(column)) != "number":
            kinds[name] = kind
        if one.note:
            notes.append(f"{name}: {one.note}")
    if not features:
        more = f"; and {len(notes) - MOST_TOLD:,} more" if len(notes) > MOST_TOLD else ""
        why = f" ({'; '.join(notes[:MOST_TOLD])}{more})" if notes else ""
        raise ValueError(f"no column is left to learn from{why}")
    if not differs:
        notes.append("every column is the same in all rows: nothing but the shares of the classes can be learned")
    return TableDecisions(present, y, features, notes, who, what, readings, whole, kinds)


def check_roles(
    names: Sequence[str], given: dict[str, str | None], drop: Collection[str], keep: Collection[str]
) -> dict[str, str]:
    """Raise a ValueError where columns cannot be what they are said to be.

    Parameters
    ----------
    names : sequence of str
        The columns that there are.
    given : dict of str to str or None
        The column of the label, the source, the item and the groups, where there is one.
    drop, keep
        As for `prepare`.

    Returns
    -------
    dict of str to str
        What a column is, by its name, for those that are no features.
    """
    special = {name: word for word, name in given.items() if name is not None}
    check_names(names, [*special, *drop, *keep])
    if given["item"] is not None and given["source"] is None:
        raise ValueError("an item needs a source too: the column that says who gave each of its labels")
    if len(special) < sum(name is not None for name in given.values()):
        raise ValueError("label, source, item and groups must be different columns")
    if kept := [name for name in keep if name in special]:
        raise ValueError(f"column {kept[0]!r} is the {special[kept[0]]} and no feature: it cannot be kept")
    return special


def _find_infinite(column: Any) -> NDArray[np.bool_]:
    """Which cells of a column of numbers are infinite."""
    if not import_pandas().api.types.is_float_dtype(column):
        return np.zeros(len(column), dtype=np.bool_)
    return np.asarray(np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan)))


def count_infinite(column: Any) -> int:
    """Count the infinite cells of a column.

    Parameters
    ----------
    column : pandas.Series
        Any column; only numbers can be infinite.

    Returns
    -------
    int
    """
    return int(np.count_nonzero(_find_infinite(column)))


def describe_infinite(count: int, hints: Hints) -> str:
    """Say what becomes of infinite cells.

    Parameters
    ----------
    count : int
        How many there are.
    hints : Hints
        Whether they are taken.

    Returns
    -------
    str
    """
    words = f"{count} infinite {'numbers' if count > 1 else 'number'}"
    return f"{words} taken as missing" if hints.takes_infinite else f"{words}, refused without --infinite-as missing"


def _find_infinite_labels(column: Any) -> NDArray[np.bool_]:
    """Which labels are infinite numbers; among words "inf" is a word."""
    if not _is_text(column):
        return _find_infinite(column)
    texts = column.dropna().unique()
    try:
        infinite = [one for one in texts if one.strip() and np.isinf(float(one))]
    except ValueError:
        infinite = []
    return np.asarray(column.isin(infinite))


def _settle_infinite(
    column: Any,
    hints: Hints,
    name_row: Callable[[int], str],
    find: Callable[[Any], NDArray[np.bool_]] = _find_infinite,
) -> Any:
    """A column without infinite cells, which are missing or refused."""
    infinite = find(column)
    if not infinite.any():
        return column
    if not hints.takes_infinite:
        first = int(np.flatnonzero(infinite)[0])
        others = f" and in {infinite.sum() - 1} other rows" if infinite.sum() > 1 else ""
        where = f"{name_row(int(column.index[first]))}{others}"
        raise ValueError(
            f"column {column.name!r} holds {float(column.iloc[first]):g} in {where}, and "
            "numbers must be finite: --infinite-as missing takes them as missing, or correct them in the file"
        )
    return column.mask(infinite)


def _convert_to_finite(column: Any, convert: Conversion) -> Any:
    converted = convert(column)
    return converted.mask(_find_infinite(converted))


def check_names(names: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise a ValueError that helps where a column is asked for that there is not.

    Parameters
    ----------
    names : sequence of str
        The columns that there are.
    wanted : sequence of str
        Those that are asked for.
    """
    for name in wanted:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f": did you mean {near[0]!r}?" if near else f": the columns are {list_some(names, 12)}"
            raise ValueError(f"there is no column {name!r}{hint}")


def _check_classes(label: str, y: NDArray[Any]) -> None:
    """Raise a ValueError where labels are no classes."""
    classes = np.unique(y)
    if classes.size == 1:
        raise ValueError(f"column {label!r} holds only {classes.tolist()[0]!r}: two classes are needed")
    if objection := doubt_classes(classes, len(y)):
        raise ValueError(f"column {label!r} {objection}")


def _attempt(reading: Callable[[Any], Any], column: Any) -> Any:
    """What a reading makes of a column; what it cannot read, such as lists or years beyond 9999, is a ValueError."""
    try:
        return reading(column)
    except MemoryError:
        raise
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"column {column.name!r} cannot be read as numbers or text: {reason:.200}") from error


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
    present, y = _attempt(_read_labels, _settle_infinite(column, hints, name_row, _find_infinite_labels))
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
    if not _is_text(column):
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


def _read_names(column: Any) -> NDArray[Any]:
    """The names in a column as text without blanks around, None where a cell is empty. "NA" is a name."""

    def plain(one: Any) -> str | None:
        if isinstance(one, (float, np.floating)) and float(one).is_integer():
            one = int(one)
        return str(one).strip() or None

    known = {one: plain(one) for one in column.dropna().unique()}
    values, present = column.to_numpy(dtype=object), column.notna().to_numpy()
    names = np.full(len(values), None, dtype=object)
    names[present] = [known[one] for one in values[present]]
    return names


def _count_names(names: NDArray[Any]) -> str:
    unknown = sum(one is None for one in names)
    return f"{len(set(names) - {None}):,}" + (f" ({unknown:,} cells are empty)" if unknown else "")


def _is_text(column: Any) -> bool:
    pandas = import_pandas()
    known = column.dtype == object or isinstance(column.dtype, (pandas.StringDtype, pandas.CategoricalDtype))
    return known and all(isinstance(one, str) for one in column.dropna().unique())


def _to_text(column: Any, known_words: Collection[Any] = ()) -> Any:
    """The cells as text without blanks around, None where missing; numbers without a fraction have no point."""

    def plain(one: Any) -> str | None:
        if isinstance(one, (float, np.floating)) and float(one).is_integer():
            one = int(one)
        text = str(one).strip()
        return None if is_missing(text) and text not in known_words else text

    values, present = column.to_numpy(dtype=object), column.notna().to_numpy()
    known = {one: plain(one) for one in column.dropna().unique()}
    text = np.full(len(values), None, dtype=object)
    text[present] = [known[one] for one in values[present]]
    return import_pandas().Series(text, index=column.index, name=column.name, dtype=object)


def _parse_plain_numbers(column: Any) -> Any:
    """A column of text all of whose cells are numbers or missing, as numbers; None if it is not one. It is fast."""
    pandas = import_pandas()
    if not isinstance(column.dtype, pandas.StringDtype) and column.dtype != object:
        return None
    try:
        numbers = pandas.to_numeric(column, errors="coerce")
    except TypeError:
        return None
    others = column[numbers.isna() & column.notna()].unique()
    if not all(isinstance(one, str) and one.strip().lower() in MISSING_AMONG_NUMBERS for one in others):
        return None
    known = column[numbers.notna()]
    if known.empty or looks_ambiguous(one.strip() for one in map(str, known.head(LOOKED_AT))):
        return None
    return None if known.astype(str).str.match(r"\s*[+-]?0\d").any() else numbers


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
    """

    kind: str
    convert: Conversion | None
    ready: Any
    note: str = ""
    reading: Reading | None = None
    is_ambiguous: bool = False
    left_out: str | None = None


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
    found: ColumnDecision = _attempt(partial(_decide_feature, hints=hints), column)
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
            return ColumnDecision("numbers", _read_numbers, _read_numbers(column))
        return ColumnDecision("numbers", _keep, column)
    if hints.decimal is None and (plain := _parse_plain_numbers(column)) is not None:
        return ColumnDecision("numbers", _read_numbers, plain)
    if isinstance(column.dtype, pandas.CategoricalDtype) and not _is_text(column):
        return ColumnDecision("categories", _keep, column)
    if column.isna().all():
        return ColumnDecision("nothing", None, column, "all values are missing")
    if kinds.is_datetime64_any_dtype(column):
        return ColumnDecision("dates", _read_dates, _read_dates(column), "dates")
    if kinds.is_timedelta64_dtype(column):
        return ColumnDecision("numbers", _read_numbers, _read_numbers(column), "lengths of time, in days")
    text = _to_text(column)
    counts = text.value_counts()
    if counts.empty:
        return ColumnDecision("nothing", None, column, "all values are missing")
    found = decide(counts.index.tolist(), counts.to_numpy(), decimal=hints.decimal, order=hints.order)
    if found.reading is not None:
        convert = partial(_read_dates if found.reading.kind == "date" else _read_numbers, reading=found.reading)
        return ColumnDecision(
            f"{found.reading.kind}s", convert, convert(column), found.note, found.reading, found.is_ambiguous
        )
    note = f"text with {len(counts)} values" if len(counts) > MOST_DISTINCT_VALUES else found.note
    return ColumnDecision("categories", _to_categories, text.astype("category"), note)


def _keep(column: Any) -> Any:
    return column


def _to_categories(column: Any) -> Any:
    return _to_text(column).astype("category")


def _read_texts(column: Any, reading: Reading) -> NDArray[np.float64]:
    """The numbers that the texts of a column are, or the days; each different text is read once."""
    codes, texts = import_pandas().factorize(_to_text(column))
    return np.asarray(np.append(reading.read(list(texts)), np.nan)[codes])


def _read_numbers(column: Any, reading: Reading = PLAIN_NUMBERS) -> Any:
    """A column as numbers: true and false as 1 and 0, lengths of time in days, what is none as missing."""
    pandas = import_pandas()
    if pandas.api.types.is_timedelta64_dtype(column):
        return column / pandas.Timedelta(days=1)
    if pandas.api.types.is_bool_dtype(column):
        return column.astype(np.float64)
    if pandas.api.types.is_numeric_dtype(column):
        return column
    if reading == Reading() and (plain := _parse_plain_numbers(column)) is not None:
        return plain
    return pandas.Series(_read_texts(column, reading), index=column.index, name=column.name)


def _read_dates(column: Any, reading: Reading = PLAIN_DATES) -> Any:
    """A column as dates of no time zone, those of a time zone in UTC; what is none as missing, a number too."""
    pandas = import_pandas()
    if pandas.api.types.is_datetime64_any_dtype(column):
        return column if column.dt.tz is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
    days = _read_texts(column, reading)
    exact = np.where(np.isnan(days), np.iinfo(np.int64).min, np.rint(np.nan_to_num(days) * 86_400e6))
    dates = exact.astype(np.int64).view("datetime64[us]")
    return pandas.Series(dates, index=column.index, name=column.name)


def remember_readings(model: ModelPredictions, readings: dict[str, Reading], kinds: dict[str, str]) -> None:
    """Store with a model how texts were read in training, and what numbers were, so that new rows are read alike.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A fitted classifier.
    readings : dict of str to Reading
        By the name of a column how its texts become numbers.
    kinds : dict of str to str
        As in a `PreparedTable`.
    """
    if not readings and not kinds:
        return
    encoder = model.model_.encoder
    names = [str(name) for name in encoder.feature_labels]
    by_index = {names.index(name): reading for name, reading in readings.items()}
    durations, truths = ({names.index(name) for name, one in kinds.items() if one == kind} for kind in TOLD_APART)
    schema = replace(
        encoder.schema,
        readings=encoder.schema.readings | by_index,
        durations=encoder.schema.durations | durations,
        truths=(encoder.schema.truths or frozenset()) | truths,
    )
    model.model_ = replace(model.model_, encoder=replace(encoder, schema=schema))


def draw_sample(y: NDArray[Any]) -> NDArray[np.intp]:
    """Draw some rows at random, the same ones every time.

    Parameters
    ----------
    y : array
        The labels of all rows.

    Returns
    -------
    array of int
        Their positions.
    """
    return np.random.default_rng(0).permutation(len(y))[:MOST_DRAWN]


def find_leaks(X: Any, y: NDArray[Any], rows: NDArray[np.intp]) -> list[str]:
    """Find columns that tell the label all by themselves: they may not be known yet when a prediction is wanted.

    Parameters
    ----------
    X : pandas.DataFrame
        A sample of the rows, made ready.
    y : array
        The labels of all rows.
    rows : array of int
        The positions of the sample among all rows.

    Returns
    -------
    list of str
        A note for each such column.
    """
    notes = []
    labels = np.unique(y, return_inverse=True)[1][rows]
    for name in X.columns:
        column = X[name]
        values = column.cat.codes if str(column.dtype) == "category" else column
        values = values.to_numpy()
        values = to_days(values) if values.dtype.kind == "M" else values.astype(np.float64)
        accuracy = measure_leak(values, labels)
        if accuracy is not None:
            notes.append(f"{name}: tells the label in {accuracy:.1%} of the rows by itself; is it known in advance?")
    return notes


def conform(
    frame: Any,
    model: ModelPredictions,
    hints: Hints = NO_HINTS,
    name_row: Callable[[int], str] = "row {}".format,
) -> tuple[Any, list[str]]:
    """Give new rows the columns that the model was fitted to; say what was done, in words.

    Parameters
    ----------
    frame : pandas.DataFrame
        The rows as a file has them.
    model : UntwistClassifier or PILBoostClassifier
        The fitted classifier.
    hints, name_row
        As for `prepare`; of the hints it matters what becomes of infinite numbers.

    Returns
    -------
    pandas.DataFrame
        The rows, made ready.
    list of str
        What was done to them.
    """
    new = NewRows(model, frame.iloc[:0], lambda name: frame[name], hints, name_row)
    return new.conform(frame), new.describe()


@contextmanager
def ignore_strangers() -> Iterator[None]:
    """Keep quiet of columns without a known category, and of new Booleans: `NewRows.describe` tells of both."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "column .* holds no category that it held when fitted")
        warnings.filterwarnings("ignore", "columns? .* Booleans now, and held numbers when fitted")
        yield


def _guess_reading(head: Any, column_of: Callable[[str], Any]) -> Reading:
    """How the texts of a column are read that held plain numbers when the model was fitted: dates are told apart."""
    pandas = import_pandas()
    if pandas.api.types.is_numeric_dtype(head):
        return Reading()
    found: Reading = _attempt(_guess_reading_of_cells, column_of(head.name))
    return found


def _guess_reading_of_cells(column: Any) -> Reading:
    pandas = import_pandas()
    if pandas.api.types.is_timedelta64_dtype(column):
        return Reading()
    if pandas.api.types.is_datetime64_any_dtype(column):
        return Reading("date")
    if _parse_plain_numbers(column) is not None:
        return Reading()
    counts = _to_text(column).value_counts()
    found = decide(counts.index.tolist(), counts.to_numpy()).reading
    return Reading("date", order=found.order) if found is not None and found.kind == "date" else Reading()


def _holds_plain_numbers(head: Any) -> bool:
    kinds = import_pandas().api.types
    return bool(kinds.is_numeric_dtype(head) and not kinds.is_bool_dtype(head))


def _find_kind(column: Any) -> str:
    """What a column of numbers holds: "duration", "truth" (Booleans, as text too) or "number"."""
    kinds = import_pandas().api.types
    if kinds.is_timedelta64_dtype(column):
        return "duration"
    if kinds.is_bool_dtype(column):
        return "truth"
    if kinds.is_numeric_dtype(column):
        return "number"
    words = {str(one).strip().lower() for one in column.dropna().unique()} - MISSING_AMONG_NUMBERS
    return "truth" if words and words <= TRUTH.keys() else "number"


def _find_lost(column: Any, numbers: Any) -> list[str]:
    """The texts of cells that are not empty and yet missing among the numbers that were read."""
    texts = _attempt(_to_text, column[numbers.isna()]).dropna()
    return [one for one in texts if one.lower() not in MISSING_AMONG_NUMBERS]


class NewRows:
    """New rows made to fit a model, in one table or in blocks, with what had to be done.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        The fitted classifier.
    head : pandas.DataFrame
        Some of the rows, or none: it has the names and types of their columns.
    column_of : callable
        Takes a name and returns that column.
    hints, name_row
        As for `conform`.
    """

    def __init__(
        self,
        model: ModelPredictions,
        head: Any,
        column_of: Callable[[str], Any],
        hints: Hints = NO_HINTS,
        name_row: Callable[[int], str] = "row {}".format,
    ) -> None:
        self._names_in_model = [str(name) for name in model.model_.encoder.feature_labels]
        # A model that was fitted in Python may have a column without a name, as the file has.
        given = dict(zip(find_names_in_file(list(head.columns)), head.columns, strict=True))
        self.names = [given.get(one, one) if one == "" else one for one in self._names_in_model]
        if missing := [name for name in self.names if name not in head.columns]:
            raise ValueError(f"the model needs columns that the file has not: {list_some(missing)}")
        schema = model.model_.encoder.schema
        self._known = schema.categories
        self._coded = {self.names[index] for index in schema.numbers}
        self._readings = {
            name: schema.readings.get(index) or _guess_reading(head[name], column_of)
            for index, name in enumerate(self.names)
            if index not in self._known
        }
        self._dates = {self.names[index] for index in schema.dates}
        self._durations = {self.names[index] for index in schema.durations}
        self._new_truths: list[str] = []
        # A column that no tree asks for may hold anything.
        asked = {name for name, worth in zip(self.names, model.importances("splits"), strict=True) if worth > 0}
        told_apart = schema.durations | (schema.truths or frozenset())
        self._ignored = {self.names[index] for index in told_apart} - asked
        for name, reading in self._readings.items():
            if name not in asked or name in self._dates:
                continue
            now = "number" if _holds_plain_numbers(head[name]) else _attempt(_find_kind, column_of(name))
            self._compare_durations(name, now, column_of)
            if now == "truth" and schema.truths is not None and self.names.index(name) not in schema.truths:
                self._new_truths.append(name)
            if reading.kind == "date":
                self._refuse_dates(name, column_of(name))
            elif not import_pandas().api.types.is_numeric_dtype(head[name]):
                self._require_numbers(name, column_of(name))
        self._hints = hints
        self._name_row = name_row
        self._infinite: dict[str, int] = {}
        self._lost: dict[str, int] = {}
        self._new: dict[str, set[str]] = {}

    def conform(self, frame: Any) -> Any:
        """Give rows the columns that the model was fitted to.

        Parameters
        ----------
        frame : pandas.DataFrame
            The rows as a file has them.

        Returns
        -------
        pandas.DataFrame
            The rows, made ready.
        """
        columns = {}
        for index, name in enumerate(self.names):
            column = frame[name]
            known = self._known.get(index)
            if name in self._ignored:
                columns[name] = import_pandas().Series(np.nan, index=column.index)
            elif known is None:
                numbers = _attempt(partial(self._read, name), column)
                self._infinite[name] = self._infinite.get(name, 0) + count_infinite(numbers)
                columns[name] = _settle_infinite(numbers, self._hints, self._name_row)
                self._lost[name] = self._lost.get(name, 0) + len(_find_lost(column, numbers))
            elif any(isinstance(one, str) for one in known):
                text = _attempt(partial(_to_text, known_words=known), column)
                self._new.setdefault(name, set()).update(set(text.dropna()) - set(known))
                columns[name] = text.astype("category")
            else:
                columns[name] = column
        return import_pandas().DataFrame(columns).set_axis(self._names_in_model, axis=1)

    def _compare_durations(self, name: str, now: str, column_of: Callable[[str], Any]) -> None:
        """Raise a ValueError where lengths of time stand for numbers, or anything else for lengths of time."""
        if (now == "duration") == (name in self._durations) or column_of(name).isna().all():
            return
        words = ("numbers", "lengths of time")[:: -1 if name in self._durations else 1]
        raise ValueError(
            f"column {name!r} is one of {words[0]} to the model, and holds {words[1]} now: correct the column, or "
            "empty its cells to do without it"
        )

    def _require_numbers(self, name: str, column: Any) -> None:
        """Raise a ValueError where many cells of a column of numbers hold something, and none of them a number."""
        # In nearly every table the first cells show that there are numbers.
        for part in (column.iloc[:LOOKED_AT], column):
            numbers = _attempt(partial(self._read, name), part)
            if numbers.notna().any():
                return
        lost = _find_lost(column, numbers)
        if len(lost) >= LEAST_TEXTS:
            raise ValueError(
                f"column {name!r} is one of numbers to the model, and none of its {len(lost)} cells that are not empty "
                f"is a number (say {clip(lost[0], 30)!r}): correct the column, or empty its cells to do without it"
            )

    def _refuse_dates(self, name: str, column: Any) -> None:
        """Raise a ValueError where a column of numbers holds dates now; a few such texts are no numbers like others."""
        pandas = import_pandas()
        is_text = not pandas.api.types.is_datetime64_any_dtype(column) or column.isna().all()
        if is_text and len(_find_lost(column, pandas.Series(np.nan, index=column.index))) < LEAST_TEXTS:
            self._readings[name] = Reading()
            return
        raise ValueError(
            f"column {name!r} is one of numbers to the model, and holds dates now: correct the column, or empty its "
            "cells to do without it"
        )

    def _read(self, name: str, column: Any) -> Any:
        """A column as numbers, as dates, or as lengths of time."""
        if name in self._durations and import_pandas().api.types.is_timedelta64_dtype(column):
            return column
        reading = self._readings[name]
        if reading.kind == "number":
            return _read_numbers(column, reading)
        if name in self._dates:
            return column if import_pandas().api.types.is_numeric_dtype(column) else _read_dates(column, reading)
        dates = _read_dates(column, reading)  # No tree asks for the column, which may hold any numbers.
        return import_pandas().Series(to_days(dates.to_numpy()), index=column.index)

    def _name_unknown(self, name: str) -> str:
        return "the mean of all" if name in self._coded else "missing"

    def describe(self) -> list[str]:
        """Say what was done so far, in words."""
        notes = {
            name: [describe_infinite(count, self._hints)] if count else [] for name, count in self._infinite.items()
        }
        for name, lost in self._lost.items():
            notes[name] += [f"{lost} values are no {self._readings[name].kind}s: taken as missing"] if lost else []
        for name in self._new_truths:
            notes.setdefault(name, []).append("holds Booleans, and held numbers in training: true is 1 and false is 0")
        for name, new in self._new.items():
            shown = list_some(sorted(new), 3)
            notes[name] = [f"{shown} did not occur in training: taken as {self._name_unknown(name)}"] if new else []
        return [f"{name}: {words}" for name in self.names for words in notes.get(name, [])]
