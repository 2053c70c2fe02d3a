"""The columns of a table made ready for a model, in training and for new rows alike.

Numbers with a few stray words are numbers, dates become days, codes with leading zeros stay text, ids are left out.
Each such decision is told in a note.
"""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.audit.issues.columns import measure_leak
from untwist.classifier import PILBoostClassifier
from untwist.commands.sheets import import_pandas

__all__ = [
    "Decisions",
    "NewRows",
    "PreparedTable",
    "conform",
    "decide_columns",
    "draw_sample",
    "find_leaks",
    "has_dates",
    "prepare",
]

#: Cells of a feature that stand for a missing value. Of a label only the empty cell does.
MISSING = {"", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>"}
#: The numbers that truth values become.
TRUTH = {"true": 1.0, "false": 0.0}
#: A column of text holds numbers, or dates, if at least this share of its values are such.
NUMERIC_SHARE = 0.95
#: A column of text names the rows if more than this share of its values are different.
DISTINCT_SHARE = 0.95
#: A column with fewer rows is not taken for one that names the rows.
LEAST_ROWS = 50
#: A label with more classes than this is refused.
MOST_CLASSES = 500
#: A column of text with more different values than this is told of.
MOST_DISTINCT_VALUES = 254
#: Names of columns that name the rows.
ID = re.compile(r"(.*_)?(id|uuid|guid|index|rowid|row_number)|unnamed: 0|", re.IGNORECASE)
#: A date, year first, perhaps with the time of day.
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ]\d\d?:\d\d.*)?")
#: 007 is a code and no number.
CODE = re.compile(r"[+-]?0\d+")
#: A number whose fraction is set off by a comma.
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
#: Dates that are not written year first.
OTHER_DATE = re.compile(r"\d{1,2}[./ -](\d{1,2}|[A-Za-z]{3,9})[./ -]\d{2,4}.*")
#: A whole number that fits into 64 bits.
WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """Features, labels, the rows of the file that they come from (from 0), and what was done, in words.

    `source` is who gave each label and `item` what it is a label of, None where no column says so; None in a cell where
    the file has none there.
    """

    X: Any
    y: NDArray[Any]
    rows: NDArray[np.intp]
    notes: list[str] = field(default_factory=list)
    source: NDArray[Any] | None = None
    item: NDArray[Any] | None = None


def prepare(
    frame: Any,
    label: str,
    *,
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    source: str | None = None,
    item: str | None = None,
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
    source, item : str or None
        The columns that say who gave each label, and what it is a label of.

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
        store=features.__setitem__,
    )
    X = import_pandas().DataFrame(features)
    sample = draw_sample(found.y)
    notes = found.notes + find_leaks(X.iloc[sample], found.y, sample)
    return PreparedTable(X, found.y, np.flatnonzero(found.present), notes, found.source, found.item)


#: Makes numbers or categories of a column.
Conversion = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Decisions:
    """Which rows have a label, their labels, how each feature becomes numbers or categories, and why, in words.

    `source` and `item` are as in a `PreparedTable`.
    """

    present: NDArray[np.bool_]
    y: NDArray[Any]
    features: dict[str, Conversion]
    notes: list[str]
    source: NDArray[Any] | None = None
    item: NDArray[Any] | None = None


def decide_columns(
    names: Sequence[str],
    column_of: Callable[[str], Any],
    label: str,
    *,
    drop: Collection[str],
    keep: Collection[str],
    source: str | None = None,
    item: str | None = None,
    store: Callable[[str, Any], None] = lambda _name, _column: None,
) -> Decisions:
    """Decide what is to be done with each column, seen one at a time; what is done treats every row by itself.

    Parameters
    ----------
    names : sequence of str
        The columns.
    column_of : callable
        Takes a name and returns that column.
    label, drop, keep, source, item
        As for `prepare`.
    store : callable
        Takes the name of each feature and the feature made ready.

    Returns
    -------
    Decisions
    """
    given = {"label": label, "source": source, "item": item}
    special = {name: word for word, name in given.items() if name is not None}
    _check_names(names, [*special, *drop, *keep])
    if item is not None and source is None:
        raise ValueError("an item needs a source too: the column that says who gave each of its labels")
    if len(special) < sum(name is not None for name in given.values()):
        raise ValueError("label, source and item must be different columns")
    if kept := [name for name in keep if name in special]:
        raise ValueError(f"column {kept[0]!r} is the {special[kept[0]]} and no feature: it cannot be kept")
    present, y = _attempt(_read_labels, column_of(label))
    notes = [] if present.all() else [f"{(~present).sum()} rows have no label and are left out"]
    if not present.any():
        raise ValueError(f"no row has a label in column {label!r}")
    _check_classes(label, y)
    who, what = (None if name is None else _attempt(_read_names, column_of(name)[present]) for name in (source, item))
    if who is not None:
        notes.append(f"{source}: who gave the label, one of {_count_names(who)}; no feature, left out")
    if what is not None:
        notes.append(f"{item}: what the label is of, one of {_count_names(what)}; no feature, left out")
    features: dict[str, Conversion] = {}
    for name in names:
        if name in special or name in drop:
            continue
        column = column_of(name)
        column = column if present.all() else column[present]
        convert, ready, note = _attempt(_decide_feature, column)
        left_out = None if name in keep else _find_objection(ready)
        if left_out or convert is None:
            hint = "" if convert is None else f" (--keep {name!r} uses it)"
            notes.append(f"{name or 'the column without a name'}: {left_out or note}; left out{hint}")
            continue
        features[name] = convert
        store(name, ready)
        if note:
            notes.append(f"{name}: {note}")
    if not features:
        raise ValueError("no column is left to learn from")
    return Decisions(present, y, features, notes, who, what)


def _check_names(names: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise a ValueError that helps where a column is asked for that there is not."""
    for name in wanted:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f": did you mean {near[0]!r}?" if near else f": the columns are {_list_names(names)}"
            raise ValueError(f"there is no column {name!r}{hint}")


def _check_classes(label: str, y: NDArray[Any]) -> None:
    """Raise a ValueError where labels are no classes."""
    classes = np.unique(y)
    if classes.size == 1:
        raise ValueError(f"column {label!r} holds only {classes.tolist()[0]!r}: two classes are needed")
    if classes.size > MOST_CLASSES or (len(y) > 2 * LEAST_ROWS and classes.size > len(y) / 3):
        raise ValueError(f"column {label!r} holds {classes.size} different values in {len(y)} rows: is it the label?")
    if _is_continuous(classes):
        raise ValueError(f"column {label!r} holds {classes.size} different numbers, not classes: this is for classes")


def _attempt(reading: Callable[[Any], Any], column: Any) -> Any:
    """What a reading makes of a column; what it cannot read, such as lists or years beyond 9999, is a ValueError."""
    try:
        return reading(column)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"column {column.name!r} cannot be read as numbers or text: {reason:.200}") from error


def _list_names(names: Iterable[Any], most: int = 12) -> str:
    listed = [repr(str(name)) for name in names]
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


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


def _is_continuous(classes: NDArray[Any]) -> bool:
    """Whether all are numbers and some have a fraction: a target of regression. NaN and infinity have none."""
    try:
        numbers = classes.astype(float)
    except ValueError:
        return False
    finite = numbers[np.isfinite(numbers)]
    return bool(np.any(finite != np.round(finite)))


def _is_text(column: Any) -> bool:
    pandas = import_pandas()
    known = column.dtype == object or isinstance(column.dtype, (pandas.StringDtype, pandas.CategoricalDtype))
    return known and all(isinstance(one, str) for one in column.dropna().unique())


def _to_text(column: Any) -> Any:
    """The cells as text without blanks around, None where missing; numbers without a fraction have no point."""

    def plain(one: Any) -> str | None:
        if isinstance(one, (float, np.floating)) and float(one).is_integer():
            one = int(one)
        text = str(one).strip()
        return None if text in MISSING else text

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
    if not all(isinstance(one, str) and one.strip() in MISSING for one in others):
        return None
    known = column[numbers.notna()]
    return None if known.empty or known.astype(str).str.match(r"\s*[+-]?0\d").any() else numbers


def _decide_feature(column: Any) -> tuple[Conversion | None, Any, str]:
    """What makes numbers or categories of a column, None if it is of no use; what it makes of it; and that in words."""
    pandas = import_pandas()
    if pandas.api.types.is_numeric_dtype(column) and not column.isna().all():
        return _keep, column, ""
    if (plain := _parse_plain_numbers(column)) is not None:
        return partial(_to_numbers, dates=False), plain, ""
    if isinstance(column.dtype, pandas.CategoricalDtype) and not _is_text(column):
        return _keep, column, ""
    text = _to_text(column)
    known = text.dropna()
    if known.empty:
        return None, column, "all values are missing"
    distinct = known.unique()
    if not any(CODE.fullmatch(one) for one in distinct):
        dates = has_dates(column)
        numbers = _to_numbers(column, dates)
        share = numbers[known.index].notna().mean()
        if share >= NUMERIC_SHARE:
            stray = known[numbers[known.index].isna()].unique()
            words = ["dates, as days since 1970"] if dates else ["numbers"] if len(stray) else []
            words += [f"{_list_names(stray, 3)} taken as missing"] if len(stray) else []
            return partial(_to_numbers, dates=dates), numbers, "; ".join(words)
        note = f"text, though {share:.0%} of its values are numbers" if share > 0.5 else ""
    else:
        note = "text: it has numbers with leading zeros" if all(one.lstrip("+-").isdigit() for one in distinct) else ""
    if len(distinct) > MOST_DISTINCT_VALUES:
        dates = sum(OTHER_DATE.fullmatch(one) is not None for one in distinct) > len(distinct) / 2
        hint = "; if these are dates, write them as 2020-12-31" if dates else ""
        note = f"text with {len(distinct)} values{hint}"
    return _to_categories, text.astype("category"), note


def _keep(column: Any) -> Any:
    return column


def _to_categories(column: Any) -> Any:
    return _to_text(column).astype("category")


def has_dates(column: Any) -> bool:
    """Find out whether a column holds dates, perhaps among other things.

    Parameters
    ----------
    column : pandas.Series
        The column as the file has it.

    Returns
    -------
    bool
    """
    pandas = import_pandas()
    kinds = pandas.api.types
    if kinds.is_datetime64_any_dtype(column):
        return True
    values = column.dropna()
    if values.dtype == object and any(isinstance(one, datetime.date) for one in values.head(1000)):
        return True
    return _is_text(column) and any(DATE.fullmatch(one.strip()) for one in values.unique())


def _to_numbers(column: Any, dates: bool) -> Any:
    """A column as numbers: true and false as 1 and 0, what is none as missing; or dates as days and nothing else."""
    pandas = import_pandas()
    if pandas.api.types.is_timedelta64_dtype(column):
        return column / pandas.Timedelta(days=1)
    if pandas.api.types.is_datetime64_any_dtype(column):
        return _count_days(column)
    if pandas.api.types.is_numeric_dtype(column):
        return column
    if not dates and (plain := _parse_plain_numbers(column)) is not None:
        return plain
    text = _to_text(column)
    if dates:  # Nothing but dates counts then, not even a number.
        known = np.array([one is not None and DATE.fullmatch(one) is not None for one in text], dtype=bool)
        numbers = pandas.Series(np.nan, index=column.index)
        if known.any():
            numbers[known] = _count_days(pandas.to_datetime(text[known], errors="coerce", format="mixed", utc=True))
        return numbers
    number = {one: _parse_number(one) for one in text.dropna().unique()}
    values = np.array([None if one is None else number[one] for one in text], dtype=object)
    return pandas.to_numeric(pandas.Series(values, index=column.index, dtype=object), errors="coerce")


def _parse_number(text: str) -> Any:
    """What a word stands for as a number: true and false, 12,5 and 45 % too."""
    if DECIMAL_COMMA.fullmatch(text):
        return text.replace(",", ".")
    return TRUTH.get(text.lower(), text.removesuffix("%").rstrip() if text[:-1].strip() else text)


def _count_days(column: Any) -> Any:
    pandas = import_pandas()
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    return (column - pandas.Timestamp(0)) / pandas.Timedelta(days=1)


def _find_objection(column: Any) -> str | None:
    """Why a column says nothing of new rows, if it does not."""
    text = str(column.dtype) == "category"
    if not (text or ID.fullmatch(str(column.name))):
        return None
    known = column.dropna()
    distinct = known.nunique()
    if text and len(known) >= LEAST_ROWS and distinct > DISTINCT_SHARE * len(known):
        return f"{distinct} different words in {len(known)} rows"
    if distinct == len(known) >= LEAST_ROWS and ID.fullmatch(str(column.name)):
        return "looks like an id"
    return None


def draw_sample(y: NDArray[Any], most: int = 20_000) -> NDArray[np.intp]:
    """Draw some rows at random, the same ones every time.

    Parameters
    ----------
    y : array
        The labels of all rows.
    most : int
        Rows to draw, at most.

    Returns
    -------
    array of int
        Their positions.
    """
    return np.random.default_rng(0).permutation(len(y))[:most]


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
        accuracy = measure_leak(values.to_numpy(dtype=np.float64), labels)
        if accuracy is not None:
            notes.append(f"{name}: tells the label in {accuracy:.1%} of the rows by itself; is it known in advance?")
    return notes


def conform(frame: Any, model: PILBoostClassifier) -> tuple[Any, list[str]]:
    """Give new rows the columns that the model was fitted to; say what was done, in words.

    Parameters
    ----------
    frame : pandas.DataFrame
        The rows as a file has them.
    model : PILBoostClassifier
        The fitted classifier.

    Returns
    -------
    pandas.DataFrame
        The rows, made ready.
    list of str
        What was done to them.
    """
    new = NewRows(model, list(frame.columns), lambda name: frame[name])
    return new.conform(frame), new.describe()


class NewRows:
    """New rows made to fit a model, in one table or in blocks, with what had to be done.

    Parameters
    ----------
    model : PILBoostClassifier
        The fitted classifier.
    names : collection of str
        The columns that the rows have.
    column_of : callable
        Takes a name and returns that column.
    """

    def __init__(self, model: PILBoostClassifier, names: Collection[str], column_of: Callable[[str], Any]) -> None:
        self.names = [str(name) for name in getattr(model, "feature_names_in_", range(model.n_features_in_))]
        if missing := [name for name in self.names if name not in names]:
            raise ValueError(f"the model needs columns that the file has not: {_list_names(missing)}")
        schema = model.model_.encoder.schema
        self._known = schema.categories
        self._coded = {self.names[index] for index in schema.numbers}
        self._dates = {
            name: has_dates(column_of(name)) for index, name in enumerate(self.names) if index not in self._known
        }
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
            if known is None:
                columns[name] = _attempt(partial(_to_numbers, dates=self._dates[name]), column)
                lost = int(_to_text(column[columns[name].isna()]).notna().sum())
                self._lost[name] = self._lost.get(name, 0) + lost
            elif any(isinstance(one, str) for one in known):
                text = _attempt(_to_text, column)
                self._new.setdefault(name, set()).update(set(text.dropna()) - set(known))
                columns[name] = text.astype("category")
            else:
                columns[name] = column
        return import_pandas().DataFrame(columns)

    def _name_unknown(self, name: str) -> str:
        return "the mean of all" if name in self._coded else "missing"

    def describe(self) -> list[str]:
        """Say what was done so far, in words."""
        words = {name: f"{lost} values are no numbers: taken as missing" for name, lost in self._lost.items() if lost}
        words |= {
            name: f"{_list_names(sorted(new), 3)} did not occur in training: taken as {self._name_unknown(name)}"
            for name, new in self._new.items()
            if new
        }
        return [f"{name}: {words[name]}" for name in self.names if name in words]
