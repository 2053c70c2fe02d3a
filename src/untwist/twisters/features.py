"""Twisters of features: they change cells of a table, column by column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import mutual_info_classif

from untwist.arguments import (
    Array,
    check_count,
    check_fraction,
    check_non_negative,
)
from untwist.twisters.columns import (
    Indices,
    check_column_list,
    check_rows,
    encode_table,
    encode_values,
    locate_columns,
    read_numbers,
    read_table,
    rewrite,
    take_column,
)

__all__ = ["FeatureNoise", "Insider"]

# The index of a column, the rows to change in it, and their new values.
Change = tuple[int, Indices, NDArray[Any]]


class _FeatureTwister(ABC):
    """Changes cells of a table, column by column."""

    @abstractmethod
    def _draw_changes(self, table: Any, y: Any, rng: np.random.Generator) -> Iterator[Change]:
        """Draw what to change, at most once for each column."""

    def twist(self, X: Any, y: Any, rng: np.random.Generator | int | None) -> tuple[Any, Any, NDArray[np.bool_]]:
        """Change cells in a copy of X.

        Parameters
        ----------
        X : array_like or pandas.DataFrame of shape (n_rows, n_columns)
            The table; what is missing in it stays missing.
        y : array_like or None
            The labels, left as they are.
        rng : numpy.random.Generator, int or None
            Where the changes are drawn from.

        Returns
        -------
        X_twisted
            A copy of X with cells changed.
        y
            As given.
        changed : ndarray of bool of shape (n_rows, n_columns)
            Which cells differ from before.
        """
        table = read_table("X", X)
        check_rows(table, y)
        columns = [take_column(table, index) for index in range(table.shape[1])]
        changed = np.zeros(table.shape, dtype=np.bool_)
        for index, rows, values in self._draw_changes(table, y, np.random.default_rng(rng)):
            before = np.asarray(columns[index])[rows]
            columns[index] = rewrite(columns[index], rows, values)
            changed[rows, index] = np.asarray(columns[index])[rows] != before
        if not hasattr(X, "iloc"):
            # An array has one type: floats if any of its columns has become that.
            return np.column_stack(columns), y, changed
        twisted = X.copy()
        for index in np.flatnonzero(changed.any(axis=0)).tolist():
            twisted.isetitem(index, columns[index])
        return twisted, y, changed


@dataclass(frozen=True)
class FeatureNoise(_FeatureTwister):
    """Takes rows at random, then cells in them, and gives these another value.

    In a column of two values, or of Booleans, the cell gets the other one; else the value of a random other row. The
    paper's is ``FeatureNoise(p)``.

    Parameters
    ----------
    row_rate : float
        The probability that a row is taken, in [0, 1].
    cell_rate : float, optional
        The probability that a cell of such a row is taken; by default `row_rate`.
    columns : iterable of str or int, optional
        Names or indices of the columns that may change; by default all.

    Examples
    --------
    >>> X, y, changed = FeatureNoise(1.0, columns=[0]).twist([[0, 7], [1, 8]], None, rng=0)
    >>> X.tolist(), changed.tolist()
    ([[1, 7], [0, 8]], [[True, False], [True, False]])
    """

    row_rate: float
    cell_rate: float | None = None
    columns: Iterable[str | int] | None = None

    def __post_init__(self) -> None:
        check_fraction("row_rate", self.row_rate)
        if self.cell_rate is not None:
            check_fraction("cell_rate", self.cell_rate)
        if self.columns is not None:
            object.__setattr__(self, "columns", check_column_list("columns", self.columns))

    def _draw_changes(self, table: Any, y: Any, rng: np.random.Generator) -> Iterator[Change]:  # noqa: ARG002
        cell_rate = self.row_rate if self.cell_rate is None else self.cell_rate
        twisted_rows = rng.random(len(table)) < self.row_rate
        every_column = list(range(table.shape[1]))
        for index in every_column if self.columns is None else locate_columns("columns", self.columns, table):
            codes, values = encode_values(take_column(table, index))
            rows = np.flatnonzero(twisted_rows & (rng.random(len(table)) < cell_rate) & (codes >= 0))
            new_codes = 1 - codes[rows] if values.size == 2 else codes[_draw_other_rows(codes, rows, rng)]
            yield index, rows, values[new_codes]


@dataclass(frozen=True)
class Insider(_FeatureTwister):
    """Spoils the columns that matter, in all rows: numbers by Gaussian noise, categories by moving on to the next one.

    Parameters
    ----------
    columns : int or iterable of str or int
        Names or indices, or a number k for the k most informative about y (by mutual information).
    noise : float or mapping, default 1.0
        In standard deviations of each column; or, by column, in the column's own units, and then all other `columns`
        count as categories, even if they are numbers.
    shift : float, default 0.5
        The probability that a category becomes the next one in sorted order, or the first one after the last.

    Examples
    --------
    The insider of the paper's online shoppers:

    >>> Insider(["PageValues", "Month", "VisitorType"], noise={"PageValues": 60.0})
    Insider(columns=('PageValues', 'Month', 'VisitorType'), noise={'PageValues': 60.0}, shift=0.5)
    >>> Insider([0], shift=1.0).twist([["Dec"], ["Feb"], ["Mar"]], None, rng=0)[0].tolist()
    [['Feb'], ['Mar'], ['Dec']]
    """

    columns: int | Iterable[str | int]
    noise: float | Mapping[str | int, float] = field(default=1.0, hash=False)
    shift: float = 0.5

    def __post_init__(self) -> None:
        how_many = isinstance(self.columns, Integral)
        columns = check_count("columns", self.columns) if how_many else check_column_list("columns", self.columns)
        object.__setattr__(self, "columns", columns)
        check_fraction("shift", self.shift)
        if not isinstance(self.noise, Mapping):
            check_non_negative("noise", self.noise)
        elif how_many:
            raise ValueError(f"noise must be one number where columns is one too, got {self.noise!r}: name the columns")
        else:
            scales = {name: check_non_negative(f"noise of {name!r}", scale) for name, scale in self.noise.items()}
            object.__setattr__(self, "noise", scales)

    def _draw_changes(self, table: Any, y: Any, rng: np.random.Generator) -> Iterator[Change]:
        if isinstance(self.columns, int):
            indices = _find_most_informative(self.columns, table, y, rng)
        else:
            indices = locate_columns("columns", self.columns, table)
        scales = self._choose_scales(indices, table)
        for index in indices:
            column = take_column(table, index)
            scale = scales.get(index)
            if scale is None:
                codes, values = encode_values(column)
                rows = np.flatnonzero((rng.random(codes.size) < self.shift) & (codes >= 0))
                yield index, rows, values[(codes[rows] + 1) % max(values.size, 1)]
            elif (numbers := read_numbers(column)) is None:
                raise ValueError(f"noise must be for columns of numbers, not column {index}: leave it out to shift it")
            else:
                rows = np.flatnonzero(~np.isnan(numbers))
                yield index, rows, (numbers + scale * rng.standard_normal(numbers.size))[rows]

    def _choose_scales(self, indices: list[int], table: Any) -> dict[int, float]:
        """Return by the index of a column how far its noise spreads; a column that has none counts as categories."""
        if not isinstance(self.noise, Mapping):
            numbers = {index: read_numbers(take_column(table, index)) for index in indices}
            return {
                index: self.noise * _find_standard_deviation(values)
                for index, values in numbers.items()
                if values is not None
            }
        scales = {
            index: scale for name, scale in self.noise.items() for index in locate_columns("noise", [name], table)
        }
        if stray := sorted(scales.keys() - set(indices)):
            raise ValueError(f"noise must be for columns among {self.columns}, got one for column {stray[0]}")
        return scales


def _find_most_informative(how_many: int, table: Any, y: Any, rng: np.random.Generator) -> list[int]:
    """Return the columns of most mutual information with y."""
    if y is None:
        raise ValueError("y must be given to find the most informative columns: pass it, or name the columns")
    check_count("columns", how_many, high=table.shape[1])
    columns = [take_column(table, index) for index in range(table.shape[1])]
    categorical = np.array([read_numbers(column) is None for column in columns])
    complete = encode_table(table)
    seed = int(rng.integers(2**31))
    information = mutual_info_classif(complete, np.asarray(y), discrete_features=categorical, random_state=seed)
    return sorted(np.argsort(-information, kind="stable")[:how_many].tolist())


def _draw_other_rows(codes: Indices, rows: Indices, rng: np.random.Generator) -> Indices:
    """Return for each of `rows` another one whose value is not missing; itself if there is none."""
    known = np.flatnonzero(codes >= 0)
    steps_ahead = rng.integers(1, max(known.size, 2), size=rows.size)
    index_among_known: Indices = (np.searchsorted(known, rows) + steps_ahead) % max(known.size, 1)
    return known[index_among_known]


def _find_standard_deviation(numbers: Array) -> float:
    finite = numbers[np.isfinite(numbers)]
    return float(finite.std()) if finite.size else 0.0
