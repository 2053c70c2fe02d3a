"""The rows of a table as they are compared: by their contents, and by distances that know no units.

A number is measured from the median in units of its column's own spread, far ones by their logarithm; two random rows
are equally far apart in every column, whether of numbers or of categories. A number that many rows share was rounded,
and is somewhere within what it was rounded to: squared distances are expected over these places, so that rows which
agree in coarse numbers are not close for that alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.data.encoding import TableEncoder
from untwist.data.folds import mix_bits

#: The mean squared difference of two random numbers from 0 to 1. Every column is scaled so that two random rows differ
#: by this in a column of numbers, and so do two different categories.
SQUARED_MISMATCH = 1.0 / 6.0

#: A column with more categories than this has random directions for them in place of one axis each.
MOST_AXES = 16

#: The scale of a column is that of this many rows that are drawn, at most.
MOST_SCALED = 4_096

#: No coordinate is farther out, so that a column that is nearly constant does not decide alone: 7 standard deviations.
FARTHEST = 2.0

#: Infinity is taken for this.
LARGEST = 1e300

#: No two numbers are less apart.
SMALLEST = float(np.finfo(np.float64).smallest_subnormal)

#: Distances are computed in blocks of at most this many cells, so that they fit in memory.
BLOCK_CELLS = 2_000_000

#: Pairs of rows are measured in blocks of at most this many cells, which are faster while they fit in a cache.
CACHED_CELLS = 1 << 18


@dataclass(frozen=True, eq=False)
class ComparedRows:
    """Rows of numbers and categories, made comparable.

    Parameters
    ----------
    numbers : array of shape (n_rows, n_columns)
        A category is its index, NaN a missing value.
    encoder : TableEncoder
        What the columns are.
    columns : sequence of int
        The columns that rows are compared by.
    """

    numbers: Array
    encoder: TableEncoder
    columns: Sequence[int]

    def __len__(self) -> int:
        return len(self.numbers)

    def is_category(self, column: int) -> bool:
        """Tell whether a column holds categories."""
        return column in self.encoder.schema.categories

    def find_chance_of_agreement(self, column: int) -> float:
        """Return the chance that two random rows have the same value in a column, where missing is one value too."""
        _, times = np.unique(self.numbers[:, column], return_counts=True)
        return float(((times / len(self)) ** 2).sum())

    def take_columns(self, columns: Sequence[int]) -> ComparedRows:
        """Return the same rows in the same places, compared by some of the columns."""
        taken = ComparedRows(self.numbers, self.encoder, columns)
        # Coordinates found anew would be scaled by other rows, as these are drawn by the contents of all columns.
        kept = {column: self._coordinates[column] for column in columns if column in self._coordinates}
        taken.__dict__["_coordinates"] = kept
        return taken

    # ---- contents ----

    def hash_column(self, column: int) -> NDArray[np.uint64]:
        """Return a number for each cell of a column, the same for equal values and for all missing ones."""
        values = self.numbers[:, column].astype(np.float64) + 0.0  # There is one zero.
        values[np.isnan(values)] = np.nan  # There is one missing value.
        return mix_bits(values.view(np.uint64) ^ mix_bits(np.array([column], dtype=np.uint64)))

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """A number for each row, the same for equal rows: a sum over the columns, so that one can be left out."""
        total = np.zeros(len(self), dtype=np.uint64)
        for column in self.columns:
            total += self.hash_column(column)
        return total

    def draw(self, most: int, among: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """Draw rows by their contents, so that their order does not matter; all of them if they are few."""
        rows = np.arange(len(self)) if among is None else among
        if len(rows) <= most:
            return rows
        chances = mix_bits(self.hashes[rows])
        return rows[np.sort(np.argpartition(chances, most)[:most])]

    # ---- places ----

    @cached_property
    def places(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The place of each row, and what its squared distance to others gains as values are shared by many rows."""
        spread = np.zeros(len(self))
        for one in self._coordinates.values():
            spread += one.width**2 / 12.0
        empty = np.zeros((len(self), 0), dtype=np.float32)
        places = np.concatenate([empty, *(one.places for one in self._coordinates.values())], axis=1)
        return places, spread.astype(np.float32)

    @cached_property
    def _coordinates(self) -> dict[int, _Coordinates]:
        """The coordinates of each column that tells rows apart."""
        placed = ((column, self._place(column)) for column in self.columns)
        return {column: one for column, one in placed if one is not None}

    @cached_property
    def _scaling_rows(self) -> NDArray[np.intp]:
        """The rows that tell the scale of each column."""
        return self.draw(MOST_SCALED)

    def _place(self, column: int) -> _Coordinates | None:
        """Return the coordinates of rows in a column, None where nothing tells them apart there."""
        values = np.clip(np.asarray(self.numbers[:, column], dtype=np.float64), -LARGEST, LARGEST)
        missing = np.isnan(values)
        if self.is_category(column):
            codes = np.where(missing, -1, values).astype(np.intp) + 1
            times = np.bincount(codes)
            return _Coordinates(_place_categories(len(times))[codes], np.zeros(len(values)))
        drawn = values[self._scaling_rows]
        known, times = np.unique(drawn[np.isfinite(drawn)], return_counts=True)
        if len(known) < 2:
            return None
        scale = _find_scale(known, times)
        filled = np.where(missing, scale.middle, values)
        placed = scale.apply(filled)
        rounded = np.zeros(len(values))
        if len(known) < times.sum():
            # A value that several rows share was rounded, to as much as the values beside it are apart.
            width = np.gradient(scale.apply(known)) * (times > 1)
            place = np.minimum(np.searchsorted(known, filled), len(known) - 1)
            rounded = np.where(known[place] == values, width[place], 0.0)  # A missing value equals none.
        known_or_not = np.sqrt(SQUARED_MISMATCH) * missing
        coordinates = np.stack([placed, known_or_not] if missing.any() else [placed], axis=1)
        return _Coordinates(coordinates.astype(np.float32), rounded)

    def measure(self, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
        """Return the squared distances of pairs of rows."""
        places, spread = self.places
        squares = np.empty(len(first))
        size = max(1, CACHED_CELLS // max(1, places.shape[1]))
        for start in range(0, len(first), size):
            one, other = first[start : start + size], second[start : start + size]
            apart = places[one] - places[other]
            squares[start : start + size] = np.einsum("ij,ij->i", apart, apart) + spread[one] + spread[other]
        return squares

    def measure_by_column(self, first: NDArray[np.intp], second: NDArray[np.intp]) -> dict[int, Array]:
        """Return the squared distances of pairs of rows in each column that tells rows apart."""
        squares = {}
        for column, (places, width) in self._coordinates.items():
            apart = places[first] - places[second]
            squares[column] = (apart**2).sum(axis=1) + (width[first] ** 2 + width[second] ** 2) / 12.0
        return squares

    def find_nearest(
        self, rows: NDArray[np.intp], others: NDArray[np.intp], n_nearest: int
    ) -> tuple[Array, NDArray[np.intp]]:
        """Return squared distances to the nearest of other rows, in order, and their positions; no row is its own."""
        places, spread = self.places
        theirs = places[others]
        their_square = (theirs**2).sum(axis=1) + spread[others]
        n_nearest = min(n_nearest, len(others) - 1)
        chosen = np.empty((len(rows), n_nearest), dtype=np.intp)
        own = np.full(len(self), -1)
        own[others] = np.arange(len(others))
        size = max(1, BLOCK_CELLS // max(1, len(others)))
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            distances = places[block] @ theirs.T
            distances *= -2.0
            distances += their_square
            itself = np.flatnonzero(own[block] >= 0)
            distances[itself, own[block[itself]]] = np.inf
            if n_nearest == 1:
                chosen[start : start + size, 0] = np.argmin(distances, axis=1)
            else:
                chosen[start : start + size] = np.argpartition(distances, n_nearest - 1, axis=1)[:, :n_nearest]
        nearest = others[chosen]
        # The square of a sum loses digits where rows are close: these few pairs are measured by their differences.
        squares = self.measure(np.repeat(rows, n_nearest), nearest.ravel()).reshape(nearest.shape)
        order = np.argsort(squares, axis=1, kind="stable")
        return np.take_along_axis(squares, order, axis=1), np.take_along_axis(nearest, order, axis=1)


class _Coordinates(NamedTuple):
    """Where rows are in one column, and the width within which each may be anywhere."""

    places: NDArray[np.float32]
    width: Array


class _Scale(NamedTuple):
    """How a number becomes a coordinate: from the middle in units, far ones by their logarithm, times a factor."""

    middle: float
    unit: float
    factor: float

    def apply(self, values: Array) -> Array:
        """Return the coordinates of numbers."""
        return np.clip(self.factor * _shrink(values, self.middle, self.unit), -FARTHEST, FARTHEST)


def _shrink(values: Array, middle: float, unit: float) -> Array:
    """Return distances from the middle in units, far ones by their logarithm."""
    with np.errstate(over="ignore"):
        units = (values - middle) / unit
    return np.arcsinh(np.clip(units, -LARGEST, LARGEST))


def _find_scale(known: Array, times: NDArray[np.intp]) -> _Scale:
    """Find the scale of a column from its values, in order, and how often each occurs."""
    total = times.sum()
    low, middle, high = known[np.searchsorted(np.cumsum(times) / total, (0.25, 0.5, 0.75))].tolist()
    # Where half of the values are the same, the others tell the unit. Half of the smallest number would be 0.
    unit = (high - low) / 2.0 or float(np.median(np.abs(known - middle))) or SMALLEST
    scaled = _shrink(known, middle, unit)
    mean = (scaled * times).sum() / total
    variance = float(((scaled - mean) ** 2 * times).sum() / total)
    return _Scale(middle, unit, float(np.sqrt(SQUARED_MISMATCH / 2.0 / variance)))


def _place_categories(n_categories: int) -> NDArray[np.float32]:
    """Return a place for each category, all about equally far from each other."""
    if n_categories <= MOST_AXES:
        axes = np.eye(n_categories)
    else:
        axes = np.random.default_rng(n_categories).normal(size=(n_categories, MOST_AXES))
        axes /= np.sqrt((axes**2).sum(axis=1, keepdims=True))
    return np.asarray(axes * np.sqrt(SQUARED_MISMATCH / 2.0), dtype=np.float32)
