"""The columns of a table made ready for a model in training.

Numbers and dates are read as people write them, codes with leading zeros stay text, ids are left out. Each such
decision is told in a note. `cells` reads them, `labels` and `features` decide, `new_rows` does the same to new rows.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.audit.issues.columns import measure_leak
from untwist.commands.blocks import SheetInBlocks
from untwist.commands.cells import (
    NO_HINTS,
    Conversion,
    Hints,
    attempt,
    convert_to_finite,
    count_infinite,
    describe_infinite,
    settle_infinite,
)
from untwist.commands.features import ColumnDecision, decide_column
from untwist.commands.labels import read_labels, read_names
from untwist.commands.row_names import describe_place
from untwist.commands.sheets import Sheet, import_pandas
from untwist.data.cells import (
    Reading,
    list_some,
    to_days,
)
from untwist.predicting import ModelPredictions

#: What columns of numbers may hold that no other number takes the place of: lengths of time, and Booleans.
TOLD_APART = ("duration", "truth")
#: Columns that were left out, at most, which are named where none is left; thousands would hide the sentence.
MOST_TOLD = 4
#: Columns that tell the label by themselves are looked for in this many rows, at most.
MOST_LEAK_ROWS = 20_000


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for; all others may be features.

    Parameters
    ----------
    label : str or None
        The column to predict; None where a command does without.
    source, item, groups : str or None
        The columns that say who gave each label, what it is a label of, and which rows belong together.
    drop, keep : collections of str
        Columns to leave out, and columns to use though they look odd.
    """

    label: str | None
    source: str | None = None
    item: str | None = None
    groups: str | None = None
    drop: Collection[str] = ()
    keep: Collection[str] = ()

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> Roles:
        """Return what the options of `options.add_role_options` say."""
        return cls(options.label, options.source, options.item, options.groups, options.drop, options.keep)

    def check(self, names: Sequence[str]) -> dict[str, str]:
        """Raise a ValueError where columns cannot be what they are said to be.

        Parameters
        ----------
        names : sequence of str
            The columns that there are.

        Returns
        -------
        dict of str to str
            What a column is, by its name, for those that are no features.
        """
        given = {"label": self.label, "source": self.source, "item": self.item, "groups": self.groups}
        special = {name: word for word, name in given.items() if name is not None}
        for name in (*special, *self.drop, *self.keep):
            if name not in names:
                near = difflib.get_close_matches(name, names, 1)
                hint = f": did you mean {near[0]!r}?" if near else f": the columns are {list_some(names, 12)}"
                raise ValueError(f"there is no column {name!r}{hint}")
        if self.item is not None and self.source is None:
            raise ValueError("an item needs a source too: the column that says who gave each of its labels")
        if len(special) < sum(name is not None for name in given.values()):
            raise ValueError("label, source, item and groups must be different columns")
        if kept := [name for name in self.keep if name in special]:
            raise ValueError(f"column {kept[0]!r} is the {special[kept[0]]} and no feature: it cannot be kept")
        return special


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
    groups: NDArray[Any] | None = None
    readings: dict[str, Reading] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)


def prepare(sheet: Sheet | SheetInBlocks, roles: Roles, hints: Hints = NO_HINTS) -> PreparedTable:
    """Make the table of a file ready to fit; columns that are no features are left out, unless they are to be kept.

    What is to be done with a column is decided by all of it, one column at a time in memory, and done to every row by
    itself.

    Parameters
    ----------
    sheet : Sheet or SheetInBlocks
        The table as the file has it.
    roles : Roles
        What its columns are for.
    hints : Hints
        What is known about how to read it.

    Returns
    -------
    PreparedTable
        Of a table in blocks the features are `Batches`.
    """
    roles.check(sheet.names)
    assert roles.label is not None  # A command that fits asks for one.
    present, y, merged = read_labels(sheet.column(roles.label), hints, sheet.name_row)
    notes = [] if present.all() else [f"{(~present).sum()} rows have no label and are left out"]
    notes += [f"{roles.label}: {words}" for words in merged]
    told = {}
    for word, meaning in (
        ("source", "who gave the label"),
        ("item", "what the label is of"),
        ("groups", "which rows belong together"),
    ):
        name = getattr(roles, word)
        if name is not None:
            told[word] = attempt(read_names, sheet.column(name)[present])
            notes.append(f"{name}: {meaning}, one of {_count_names(told[word])}; no feature, left out")
    in_memory: dict[str, Any] = {}
    conversions: dict[str, Conversion] = {}
    readings: dict[str, Reading] = {}
    kinds: dict[str, str] = {}
    leaks = []
    differs = False
    find_leak = _LeakFinder(y)
    for name, one in decide_features(sheet, roles, hints, present):
        if one.convert is None or one.left_out:
            notes.append(f"{name}: {one.explain_absence(name)}")
            continue
        ready, conversions[name] = one.ready, one.convert
        if one.kind == "numbers" and (n_infinite := count_infinite(ready)):
            ready = settle_infinite(ready, hints, sheet.name_row)
            conversions[name] = partial(convert_to_finite, convert=one.convert)
            notes.append(f"{name}: {describe_infinite(n_infinite, hints)}")
        if isinstance(sheet, Sheet):
            in_memory[name] = ready
        differs = differs or ready.nunique(dropna=False) > 1
        leaks += find_leak(name, ready)
        if one.reading not in (None, Reading()):
            readings[name] = one.reading
        if one.holds in TOLD_APART:
            kinds[name] = one.holds
        if one.note:
            notes.append(f"{name}: {one.note}")
    if not conversions:
        more = f"; and {len(notes) - MOST_TOLD:,} more" if len(notes) > MOST_TOLD else ""
        why = f" ({'; '.join(notes[:MOST_TOLD])}{more})" if notes else ""
        raise ValueError(f"no column is left to learn from{why}")
    if not differs:
        notes.append("every column is the same in all rows: nothing but the shares of the classes can be learned")
    X = import_pandas().DataFrame(in_memory) if isinstance(sheet, Sheet) else sheet.convert(conversions, present)
    return PreparedTable(X, y, np.flatnonzero(present), notes + leaks, **told, readings=readings, kinds=kinds)


def decide_features(
    sheet: Sheet | SheetInBlocks, roles: Roles, hints: Hints, present: NDArray[np.bool_]
) -> Iterator[tuple[str, ColumnDecision]]:
    """Decide about every column that may be a feature.

    Parameters
    ----------
    sheet, roles, hints
        As for `prepare`.
    present : array of bool
        Which rows have a label.

    Yields
    ------
    (str, ColumnDecision)
        The name of a column, and what becomes of it.
    """
    special = roles.check(sheet.names)
    for name in sheet.names:
        if name not in special and name not in roles.drop:
            column = sheet.column(name)
            place = describe_place(name, sheet.names, sheet.unnamed)
            present_cells = column if present.all() else column[present]
            yield name, decide_column(present_cells, hints, is_kept=name in roles.keep, **place)


def _count_names(names: NDArray[Any]) -> str:
    unknown = sum(one is None for one in names)
    return f"{len(set(names) - {None}):,}" + (f" ({unknown:,} cells are empty)" if unknown else "")


class _LeakFinder:
    """Finds columns that tell the label all by themselves: they may not be known when a prediction is wanted."""

    def __init__(self, y: NDArray[Any]) -> None:
        self._rows = np.random.default_rng(0).permutation(len(y))[:MOST_LEAK_ROWS]
        self._labels = np.unique(y, return_inverse=True)[1][self._rows]

    def __call__(self, name: str, column: Any) -> list[str]:
        """Return a note where a column is such, and else none."""
        column = column.iloc[self._rows]
        values = (column.cat.codes if str(column.dtype) == "category" else column).to_numpy()
        values = to_days(values) if values.dtype.kind == "M" else values.astype(np.float64)
        accuracy = measure_leak(values, self._labels)
        if accuracy is None:
            return []
        return [f"{name}: tells the label in {accuracy:.1%} of the rows by itself; is it known in advance?"]


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
