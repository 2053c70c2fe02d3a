"""New rows made to fit a model, as its training rows were made ready."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from untwist.commands.cells import (
    LOOKED_AT,
    NO_HINTS,
    Hints,
    attempt,
    count_infinite,
    describe_infinite,
    find_kind,
    find_lost,
    parse_plain_numbers,
    read_dates,
    read_numbers,
    settle_infinite,
    to_text,
)
from untwist.commands.names import find_names_in_file
from untwist.commands.sheets import import_pandas
from untwist.data.cells import (
    Reading,
    decide,
    list_some,
    to_days,
)
from untwist.predicting import ModelPredictions
from untwist.text import clip

__all__ = ["NewRows", "conform", "ignore_strangers"]

#: A column of numbers is refused where so many cells are not empty and none of them is a number.
LEAST_TEXTS = 20


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
    """How the texts of a column are read by a model that remembers nothing of them: an older one may have had dates."""
    pandas = import_pandas()
    if pandas.api.types.is_numeric_dtype(head):
        return Reading()
    found: Reading = attempt(_guess_reading_of_cells, column_of(head.name))
    return found


def _guess_reading_of_cells(column: Any) -> Reading:
    pandas = import_pandas()
    if pandas.api.types.is_timedelta64_dtype(column):
        return Reading()
    if pandas.api.types.is_datetime64_any_dtype(column):
        return Reading("date")
    if parse_plain_numbers(column) is not None:
        return Reading()
    counts = to_text(column).value_counts()
    found = decide(counts.index.tolist(), counts.to_numpy()).reading
    return Reading("date", order=found.order) if found is not None and found.kind == "date" else Reading()


def _holds_plain_numbers(head: Any) -> bool:
    kinds = import_pandas().api.types
    return bool(kinds.is_numeric_dtype(head) and not kinds.is_bool_dtype(head))


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
        # Models of version 0.2 have no name either for a column that has none in the file.
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
            now = "number" if _holds_plain_numbers(head[name]) else attempt(find_kind, column_of(name))
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
                numbers = attempt(partial(self._read, name), column)
                self._infinite[name] = self._infinite.get(name, 0) + count_infinite(numbers)
                columns[name] = settle_infinite(numbers, self._hints, self._name_row)
                self._lost[name] = self._lost.get(name, 0) + len(find_lost(column, numbers))
            elif any(isinstance(one, str) for one in known):
                text = attempt(partial(to_text, known_words=known), column)
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
            numbers = attempt(partial(self._read, name), part)
            if numbers.notna().any():
                return
        lost = find_lost(column, numbers)
        if len(lost) >= LEAST_TEXTS:
            raise ValueError(
                f"column {name!r} is one of numbers to the model, and none of its {len(lost)} cells that are not empty "
                f"is a number (say {clip(lost[0], 30)!r}): correct the column, or empty its cells to do without it"
            )

    def _refuse_dates(self, name: str, column: Any) -> None:
        """Raise a ValueError where a column of numbers holds dates now; a few such texts are no numbers like others."""
        pandas = import_pandas()
        is_text = not pandas.api.types.is_datetime64_any_dtype(column) or column.isna().all()
        if is_text and len(find_lost(column, pandas.Series(np.nan, index=column.index))) < LEAST_TEXTS:
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
            return read_numbers(column, reading)
        if name in self._dates:
            return column if import_pandas().api.types.is_numeric_dtype(column) else read_dates(column, reading)
        dates = read_dates(column, reading)  # No tree asks for the column, which may hold any numbers.
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
