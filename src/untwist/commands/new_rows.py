"""New rows made to fit a model, as its training rows were made ready."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from untwist.commands.blocks import SheetInBlocks
from untwist.commands.cells import (
    LOOKED_AT,
    NO_HINTS,
    Hints,
    attempt,
    count_infinite,
    describe_infinite,
    find_kind,
    find_lost,
    read_dates,
    read_numbers,
    settle_infinite,
    to_text,
)
from untwist.commands.names import find_names_in_file
from untwist.commands.sheets import Sheet, import_pandas
from untwist.data.cells import Reading, is_missing, list_some
from untwist.predicting import ModelPredictions
from untwist.text import clip

#: A column of numbers is refused where this many cells are not empty and none of them is a number.
LEAST_TEXTS = 20
#: What columns of each kind hold, in words.
TIMES = {"number": "numbers", "duration": "lengths of time", "date": "dates"}


@contextmanager
def ignore_strangers() -> Iterator[None]:
    """Keep quiet of columns without a known category, and of new Booleans: `NewRows.describe` tells of both."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "column .* holds no category that it held when fitted")
        warnings.filterwarnings("ignore", "columns? .* Booleans now, and held numbers when fitted")
        yield


def _is_missing_beside(known: Collection[Any], text: str) -> bool:
    """Tell whether a text stands for a missing cell where some words are categories."""
    return is_missing(text) and text not in known


class NewRows:
    """New rows made to fit a model, in one table or in blocks, with what had to be done.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        The fitted classifier.
    sheet : Sheet or SheetInBlocks
        The file that the rows are in.
    hints : Hints
        What becomes of infinite numbers.
    """

    def __init__(self, model: ModelPredictions, sheet: Sheet | SheetInBlocks, hints: Hints = NO_HINTS) -> None:
        self._names_in_model = [str(name) for name in model.model_.encoder.feature_labels]
        # A model that was fitted from Python may have no name either for a column that has none in the file.
        given = dict(zip(find_names_in_file(sheet.names), sheet.names, strict=True))
        self.names = [given.get(one, one) if one == "" else one for one in self._names_in_model]
        if missing := [name for name in self.names if name not in sheet.names]:
            raise ValueError(f"the model needs columns that the file has not: {list_some(missing)}")
        schema = model.model_.encoder.schema
        self._known = schema.categories
        self._coded = {self.names[index] for index in schema.numbers}
        self._readings = {
            name: schema.readings.get(index, Reading())
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
        kinds = import_pandas().api.types
        for name in self._readings:
            if name not in asked or name in self._dates:
                continue
            is_numeric = kinds.is_numeric_dtype(sheet.head[name])
            is_plain = is_numeric and not kinds.is_bool_dtype(sheet.head[name])
            now = "number" if is_plain else attempt(find_kind, sheet.column(name))
            self._refuse_other_times(name, now, sheet)
            if now == "truth" and schema.truths is not None and self.names.index(name) not in schema.truths:
                self._new_truths.append(name)
            if not is_numeric:
                self._require_numbers(name, sheet.column(name))
        self._hints = hints
        self._name_row = sheet.name_row
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
                text = attempt(partial(to_text, is_missing=partial(_is_missing_beside, known)), column)
                self._new.setdefault(name, set()).update(set(text.dropna()) - set(known))
                columns[name] = text.astype("category")
            else:
                columns[name] = column
        return import_pandas().DataFrame(columns).set_axis(self._names_in_model, axis=1)

    def _refuse_other_times(self, name: str, now: str, sheet: Sheet | SheetInBlocks) -> None:
        """Raise a ValueError where dates or lengths of time stand for numbers, or anything for lengths of time."""
        learned = TIMES["duration" if name in self._durations else "number"]
        holds = TIMES.get(now, TIMES["number"])
        if holds != learned and not sheet.column(name).isna().all():
            raise ValueError(
                f"column {name!r} is one of {learned} to the model, and holds {holds} now: correct the column, or "
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

    def _read(self, name: str, column: Any) -> Any:
        """A column as numbers, as dates, or as lengths of time."""
        kinds = import_pandas().api.types
        if name in self._durations and kinds.is_timedelta64_dtype(column):
            return column
        if name in self._dates:
            return column if kinds.is_numeric_dtype(column) else read_dates(column, self._readings[name])
        return read_numbers(column, self._readings[name])

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
