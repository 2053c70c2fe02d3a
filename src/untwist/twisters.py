"""Twisters: agents that corrupt a sample. A twister turns (X, y) into twisted copies and says what it changed.

`ClassNoise`, `BernoulliNoise` and `ClassConditionalNoise` flip labels, two classes of any kind, and know the twisted
posterior. `FeatureNoise` and `Insider` change cells of an array or a pandas frame; what is missing stays missing. The
inputs are left alone; `rng` is a generator, a seed, or None.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.feature_selection import mutual_info_classif
from sklearn.impute import SimpleImputer

from untwist.arguments import Array, count, fraction, non_negative
from untwist.theory import twists

__all__ = ["BernoulliNoise", "ClassConditionalNoise", "ClassNoise", "FeatureNoise", "Insider"]

Indices = NDArray[np.intp]
Change = tuple[int, Indices, NDArray[Any]]  # the index of a column, the rows to change, the new values there


# ---- labels ----


class _LabelTwister(ABC):
    """Flips labels, each independently with the rates of its noise, unless a subclass draws them otherwise."""

    def __post_init__(self) -> None:
        self._noise()  # checks the rates

    @abstractmethod
    def _noise(self) -> twists.ClassConditionalTwist:
        """The same noise as a twist of posteriors."""

    def _flipped(self, labels: Indices, rng: np.random.Generator) -> Indices:
        """The rows to flip, in order; labels are 0 and 1."""
        rates = np.array([self._noise().rate_neg, self._noise().rate_pos])
        return np.flatnonzero(rng.random(labels.size) < rates[labels])

    def twist(self, X: Any, y: Any, rng: np.random.Generator | int | None) -> tuple[Any, Any, Indices]:
        """X as it is, a copy of y (two classes) with labels flipped, and the indices of the flipped rows, in order."""
        values = np.asarray(y)
        if values.ndim != 1:
            raise ValueError(f"y must be one label per row, got shape {values.shape}")
        _check_rows(X, values)
        labels, classes = _levels(values)
        present = classes[np.unique(labels[labels >= 0])]
        if present.size != 2 or (labels < 0).any():
            raise ValueError(f"y must have two classes to flip between and none missing, got {present[:5]}")
        flipped = self._flipped(labels, np.random.default_rng(rng))
        return X, _rewritten(y if hasattr(y, "iloc") else values, flipped, classes[1 - labels[flipped]]), flipped

    def posterior(self, eta_clean: ArrayLike) -> Array:
        """The twisted posterior, of the second class in sorted order."""
        return self._noise()(eta_clean)


@dataclass(frozen=True)
class ClassNoise(_LabelTwister):
    """Flips exactly ceil(rate * n) labels, drawn without replacement: the class noise of the paper's experiments.

    >>> twister = ClassNoise(0.3)
    >>> X, y, flipped = twister.twist(np.zeros((5, 1)), [0, 0, 1, 1, 1], np.random.default_rng(0))
    >>> y, flipped
    (array([0, 0, 1, 0, 0]), array([3, 4]))
    """

    rate: float

    def _noise(self) -> twists.SymmetricNoise:
        return twists.SymmetricNoise(self.rate)

    def _flipped(self, labels: Indices, rng: np.random.Generator) -> Indices:
        flips = math.ceil(round(self.rate * labels.size, 9))  # .3 * 10 is 3, not the 4 that rounding would make of it
        return np.sort(rng.choice(labels.size, size=flips, replace=False))


@dataclass(frozen=True)
class BernoulliNoise(_LabelTwister):
    """Flips each label independently with probability `rate`.

    >>> BernoulliNoise(0.3).twist(None, ["ham", "ham", "spam"], rng=1)[1:]
    (array(['ham', 'ham', 'ham'], dtype='<U4'), array([2]))
    """

    rate: float

    def _noise(self) -> twists.SymmetricNoise:
        return twists.SymmetricNoise(self.rate)


@dataclass(frozen=True, kw_only=True)
class ClassConditionalNoise(_LabelTwister):
    """Flips each label independently: of the first class (sorted) with `rate_neg`, of the second with `rate_pos`.

    One-sided noise is to give one rate only: here no ham is ever called spam.

    >>> ClassConditionalNoise(rate_pos=1.0).twist(None, ["ham", "spam", "ham"], rng=0)[1:]
    (array(['ham', 'ham', 'ham'], dtype='<U4'), array([1]))
    """

    rate_neg: float = 0.0
    rate_pos: float = 0.0

    def _noise(self) -> twists.ClassConditionalTwist:
        return twists.ClassConditionalTwist(rate_neg=self.rate_neg, rate_pos=self.rate_pos)


# ---- features ----


class _FeatureTwister(ABC):
    """Changes cells of a table, column by column."""

    @abstractmethod
    def _changes(self, table: Any, y: Any, rng: np.random.Generator) -> Iterator[Change]:
        """What to change, at most once for each column."""

    def twist(self, X: Any, y: Any, rng: np.random.Generator | int | None) -> tuple[Any, Any, NDArray[np.bool_]]:
        """A copy of X with cells changed, y as it is, and which cells differ from before: Booleans, rows by columns."""
        table = X if hasattr(X, "iloc") else np.asarray(X)
        if table.ndim != 2 or table.shape[1] == 0:
            raise ValueError(f"X must be a table of rows and columns, dense, got shape {np.shape(X)}")
        _check_rows(table, y)
        columns = [_column(table, index) for index in range(table.shape[1])]
        changed = np.zeros(table.shape, dtype=np.bool_)
        for index, rows, values in self._changes(table, y, np.random.default_rng(rng)):
            before = np.asarray(columns[index])[rows]
            columns[index] = _rewritten(columns[index], rows, values)
            changed[rows, index] = np.asarray(columns[index])[rows] != before
        if not hasattr(X, "iloc"):
            return np.column_stack(columns), y, changed  # of one type: floats if any column is now
        twisted = X.copy()
        for index in np.flatnonzero(changed.any(axis=0)).tolist():
            twisted.isetitem(index, columns[index])
        return twisted, y, changed


@dataclass(frozen=True)
class FeatureNoise(_FeatureTwister):
    """Takes each row with probability `row_rate`, then each of its cells with probability `cell_rate` (or the same).

    In a column of two values, or of Booleans, the cell gets the other one; else the value of a random other row.
    `columns`, names or indices, are those that may change, by default all. The paper's is ``FeatureNoise(p)``.

    >>> X, y, changed = FeatureNoise(1.0, columns=[0]).twist([[0, 7], [1, 8]], None, rng=0)
    >>> X.tolist(), changed.tolist()
    ([[1, 7], [0, 8]], [[True, False], [True, False]])
    """

    row_rate: float
    cell_rate: float | None = None
    columns: Iterable[str | int] | None = None

    def __post_init__(self) -> None:
        fraction("row_rate", self.row_rate)
        if self.cell_rate is not None:
            fraction("cell_rate", self.cell_rate)
        if self.columns is not None:
            object.__setattr__(self, "columns", _listed("columns", self.columns))

    def _changes(self, table: Any, y: Any, rng: np.random.Generator) -> Iterator[Change]:  # noqa: ARG002  # blind to y
        cell_rate = self.row_rate if self.cell_rate is None else self.cell_rate
        twisted_rows = rng.random(len(table)) < self.row_rate
        for index in range(table.shape[1]) if self.columns is None else _places("columns", self.columns, table):
            levels, alphabet = _levels(_column(table, index))
            rows = np.flatnonzero(twisted_rows & (rng.random(len(table)) < cell_rate) & (levels >= 0))
            new = 1 - levels[rows] if alphabet.size == 2 else levels[_other_rows(levels, rows, rng)]
            yield index, rows, alphabet[new]


@dataclass(frozen=True)
class Insider(_FeatureTwister):
    """Spoils the columns that matter, in all rows: numbers by Gaussian noise, categories by moving on to the next one.

    - `columns`: names or indices, or a number k for the k most informative about y (by mutual information);
    - `noise`: in standard deviations of each column; or, by column, in the column's own units, and then all other
      `columns` count as categories, even if they are numbers;
    - `shift`: the probability of a category to become the next one in sorted order, the first one after the last.

    The insider of the paper's online shoppers:

    >>> Insider(["PageValues", "Month", "VisitorType"], noise={"PageValues": 60.0})
    Insider(columns=('PageValues', 'Month', 'VisitorType'), noise={'PageValues': 60.0}, shift=0.5)
    >>> Insider([0], shift=1.0).twist([["Dec"], ["Feb"], ["Mar"]], None, rng=0)[0].tolist()
    [['Feb'], ['Mar'], ['Dec']]
    """

    columns: int | Iterable[str | int]
    noise: float | Mapping[str | int, float] = field(default=1.0, hash=False)  # a dict has no hash
    shift: float = 0.5

    def __post_init__(self) -> None:
        how_many = isinstance(self.columns, Integral)
        object.__setattr__(self, "columns", (count if how_many else _listed)("columns", self.columns))
        fraction("shift", self.shift)
        if not isinstance(self.noise, Mapping):
            non_negative("noise", self.noise)
        elif how_many:
            raise ValueError(f"noise must be one number where columns is one too, got {self.noise!r}: name the columns")
        else:
            scales = {name: non_negative(f"noise of {name!r}", scale) for name, scale in self.noise.items()}
            object.__setattr__(self, "noise", scales)

    def _changes(self, table: Any, y: Any, rng: np.random.Generator) -> Iterator[Change]:
        if isinstance(self.columns, int):
            places = _most_informative(self.columns, table, y, rng)
        else:
            places = _places("columns", self.columns, table)
        scales = self._scales(places, table)
        for index in places:
            column, scale = _column(table, index), scales.get(index)
            if scale is None:
                levels, alphabet = _levels(column)
                rows = np.flatnonzero((rng.random(levels.size) < self.shift) & (levels >= 0))
                yield index, rows, alphabet[(levels[rows] + 1) % max(alphabet.size, 1)]
            elif (numbers := _numbers(column)) is None:
                raise ValueError(f"noise must be for columns of numbers, not column {index}: leave it out to shift it")
            else:
                rows = np.flatnonzero(~np.isnan(numbers))
                yield index, rows, (numbers + scale * rng.standard_normal(numbers.size))[rows]

    def _scales(self, places: list[int], table: Any) -> dict[int, float]:
        """By the index of a column the standard deviation of its noise; a column without one counts as categories."""
        if not isinstance(self.noise, Mapping):
            numbers = {index: _numbers(_column(table, index)) for index in places}
            return {i: self.noise * _standard_deviation(values) for i, values in numbers.items() if values is not None}
        scales = {index: scale for name, scale in self.noise.items() for index in _places("noise", [name], table)}
        if stray := sorted(scales.keys() - set(places)):
            raise ValueError(f"noise must be for columns among {self.columns}, got one for column {stray[0]}")
        return scales


def _most_informative(how_many: int, table: Any, y: Any, rng: np.random.Generator) -> list[int]:
    """The columns of most mutual information with y."""
    if y is None:
        raise ValueError("y must be given to find the most informative columns: pass it, or name the columns")
    count("columns", how_many, high=table.shape[1])
    columns = [_column(table, index) for index in range(table.shape[1])]
    numbers = [_numbers(column) for column in columns]
    encoded = [_levels(c)[0] if values is None else values for c, values in zip(columns, numbers, strict=True)]
    complete = SimpleImputer(strategy="median", keep_empty_features=True).fit_transform(np.column_stack(encoded))
    categorical = np.array([values is None for values in numbers])
    seed = int(rng.integers(2**31))
    information = mutual_info_classif(complete, np.asarray(y), discrete_features=categorical, random_state=seed)
    return sorted(np.argsort(-information, kind="stable")[:how_many].tolist())


def _other_rows(levels: Indices, rows: Indices, rng: np.random.Generator) -> Indices:
    """For each of `rows` another one whose value is not missing; itself if there is none."""
    known = np.flatnonzero(levels >= 0)
    ahead = rng.integers(1, max(known.size, 2), size=rows.size)
    places: Indices = (np.searchsorted(known, rows) + ahead) % max(known.size, 1)
    return known[places]


# ---- columns: of arrays and of pandas frames ----


def _check_rows(X: Any, y: Any) -> None:
    if X is not None and y is not None and len(X) != len(y):
        raise ValueError(f"X and y must have as many rows, got {len(X)} and {len(y)}")


def _listed(name: str, columns: Any) -> tuple[str | int, ...]:
    """Names or indices of columns as a tuple."""
    listed = None if isinstance(columns, str) or not isinstance(columns, Iterable) else tuple(columns)
    if listed is None or any(isinstance(one, (bool, np.bool_, float)) for one in listed):
        raise ValueError(f"{name} must be a list of column names or indices, got {columns!r}")
    return listed


def _places(argument: str, columns: Iterable[str | int], table: Any) -> list[int]:
    """The indices of columns that are given by name or index; a whole number always counts as an index."""
    names = list(getattr(table, "columns", ()))
    places: dict[int, None] = {}
    for one in columns:
        known = range(table.shape[1]) if isinstance(one, Integral) else names
        found = [index for index, name in enumerate(known) if name == one]
        if not found:
            hint = f" or names such as {names[:5]}" if names else ""
            raise ValueError(f"{argument} must be indices from 0 to {table.shape[1] - 1}{hint}, got {one!r}")
        places |= dict.fromkeys(found)
    return list(places)


def _column(table: Any, index: int) -> Any:
    return table.iloc[:, index] if hasattr(table, "iloc") else table[:, index]


def _rewritten(column: Any, rows: Indices, values: NDArray[Any]) -> Any:
    """A copy of an array or a pandas series with these values in these rows, of the same type if it can hold them."""
    dtype = getattr(column.dtype, "numpy_dtype", column.dtype)  # of pandas' nullable numbers
    if values.dtype.kind == "f" and dtype.kind in "iuf":
        with np.errstate(invalid="ignore", over="ignore"):
            cast = values.astype(dtype)
        if dtype.kind == "f" or (cast == values).all():
            values = cast
        else:
            column = column.astype(np.float64)  # whole numbers no more
    twisted = column.copy()
    (twisted.iloc if hasattr(twisted, "iloc") else twisted)[rows] = values
    return twisted


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind != "O":
        return np.asarray(values != values)  # NaN differs from itself
    each = (one is None or type(one).__name__ == "NAType" or one != one for one in values)
    return np.fromiter(each, np.bool_, values.size)


def _levels(column: Any) -> tuple[Indices, NDArray[Any]]:
    """For each row the place of its value in the alphabet, -1 where missing; the alphabet: numbers before text, sorted.

    Booleans have both values in their alphabet, in sight or not.
    """
    values = np.asarray(column)
    present = ~_missing(values)
    known = values[present]
    if values.dtype.kind != "O":
        alphabet, places = np.unique(known, return_inverse=True)
    else:
        alphabet = np.array(sorted(set(known), key=lambda value: (isinstance(value, str), value)), dtype=object)
        place = {value: index for index, value in enumerate(alphabet)}
        places = np.array([place[value] for value in known], dtype=np.intp)
    if alphabet.size and all(isinstance(value, (bool, np.bool_)) for value in alphabet):
        alphabet, places = np.array([False, True]), known.astype(np.intp)
    levels = np.full(values.size, -1, dtype=np.intp)
    levels[present] = places
    return levels, alphabet


def _numbers(column: Any) -> Array | None:
    """A column of numbers as floats, NaN where missing; None if it holds categories, Booleans or text."""
    values = np.asarray(column)
    present = ~_missing(values)
    if values.dtype.kind == "O":
        numeric = all(isinstance(one, Real) and not isinstance(one, (bool, np.bool_)) for one in values[present])
    else:
        numeric = values.dtype.kind in "iuf"
    if not numeric or type(column.dtype).__name__ == "CategoricalDtype":
        return None
    numbers = np.full(values.size, np.nan)
    numbers[present] = values[present].astype(np.float64)
    return numbers


def _standard_deviation(numbers: Array) -> float:
    finite = numbers[np.isfinite(numbers)]
    return float(finite.std()) if finite.size else 0.0
