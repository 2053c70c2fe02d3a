"""The columns of a table made ready for a model in training.

Numbers and dates are read as people write them, codes with leading zeros stay text, ids are left out. Each such
decision is told in a note. `cells` reads them, `labels` and `features` decide, `new_rows` does the same to new rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.audit.issues.columns import measure_leak
from untwist.commands.cells import (
    NO_HINTS,
    Conversion,
    Hints,
    attempt,
    convert_to_finite,
    count_infinite,
    describe_infinite,
    find_kind,
    settle_infinite,
)
from untwist.commands.features import decide_column
from untwist.commands.labels import read_labels, read_names
from untwist.commands.row_names import describe_place
from untwist.commands.sheets import import_pandas
from untwist.data.cells import (
    Reading,
    list_some,
    to_days,
)
from untwist.predicting import ModelPredictions

__all__ = [
    "PreparedTable",
    "TableDecisions",
    "check_names",
    "check_roles",
    "decide_columns",
    "draw_sample",
    "find_leaks",
    "prepare",
    "remember_readings",
]

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
        None if name is None else attempt(read_names, column_of(name)[present]) for name in (source, item, groups)
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
            ready = settle_infinite(ready, hints, name_row)
            features[name] = partial(convert_to_finite, convert=one.convert)
            notes.append(f"{name}: {describe_infinite(n_infinite, hints)}")
        store(name, ready)
        differs = differs or ready.nunique(dropna=False) > 1
        if one.reading not in (None, Reading()):
            readings[name] = one.reading
        if one.kind == "numbers" and (kind := find_kind(column)) != "number":
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


def _count_names(names: NDArray[Any]) -> str:
    unknown = sum(one is None for one in names)
    return f"{len(set(names) - {None}):,}" + (f" ({unknown:,} cells are empty)" if unknown else "")


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
        values = values.to_numpy()
        values = to_days(values) if values.dtype.kind == "M" else values.astype(np.float64)
        accuracy = measure_leak(values, labels)
        if accuracy is not None:
            notes.append(f"{name}: tells the label in {accuracy:.1%} of the rows by itself; is it known in advance?")
    return notes
