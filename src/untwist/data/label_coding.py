"""Columns of many categories as numbers that labels tell: each category is the mean label of its rows.

A column of a thousand names has so many splits that some of them look good by chance. With one number for each name it
is a column like any other. Of several classes, that number is the projection of a category's class shares on the
direction in which the shares of categories differ most (Coppersmith, Hong and Hosking, 1999), which for two classes is
the mean label.

- The mean label is drawn towards that of all rows, by as many rows as the column itself speaks for: the variance of
  labels within categories over that between them (empirical Bayes). A column that says nothing becomes a constant.
- What a row is trained with never comes from its own label. The contents of a category are dealt out to parts, and a
  row has the number of the other parts. Rows that do not train have the number of all that do, as new rows have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.data.sources import hash_rows
from untwist.data.tables import round_weights

__all__ = ["MANY_CATEGORIES", "LabelCoding"]

#: A column with more categories than this is coded by its labels.
MANY_CATEGORIES = 32

#: The contents of a category are dealt out to so many parts.
N_PARTS = 5


@dataclass(frozen=True, eq=False)
class LabelCoding:
    """The columns of many categories in a training table, and the numbers that its labels make of them.

    Parameters
    ----------
    table : array of shape (n_rows, n_features)
        The rows: categories as indices, NaN where missing.
    n_categories : mapping of int to int
        How many categories each column has that is to be coded.
    labels : array of uint32
        The index of each row's class.
    weight : array
        What each row weighs.
    n_classes : int
        The number of classes.

    Examples
    --------
    >>> labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 1], dtype=np.uint32)
    >>> table = np.column_stack([[0, 0, 0, 0, 1, 1, 1, 1, 2, 2], np.arange(10)])
    >>> coding = LabelCoding(table, {0: 3}, labels, np.ones(10), n_classes=2)
    >>> coding.number_categories(np.ones(10))[0].round(2)
    array([0.03, 0.97, 0.5 , 0.5 ], dtype=float32)
    """

    table: NDArray[Any]
    n_categories: Mapping[int, int]
    labels: NDArray[np.uint32]
    weight: Array
    n_classes: int

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of what each row holds, with its categories and not their numbers."""
        return hash_rows(self.table)

    def number_categories(self, weight: Array) -> dict[int, NDArray[np.float32]]:
        """Return the numbers that the labels of rows give to categories.

        Parameters
        ----------
        weight : array
            What each row weighs.

        Returns
        -------
        dict of int to array
            By column the number of each category, and last that of an unknown one.
        """
        tallies = {column.index: self._tally(column, weight) for column in self._columns}
        return {
            index: np.append(tally.number_categories(), tally.mean).astype(np.float32)
            for index, tally in tallies.items()
        }

    def number_rows(self, weight: Array) -> NDArray[np.float32]:
        """Return the numbers that a model sees which trains on rows of these weights.

        Parameters
        ----------
        weight : array
            What each row weighs in training, 0 where it does not train.

        Returns
        -------
        array of shape (n_rows, n_coded_columns)
            NaN where the category is missing.
        """
        numbers = np.full((len(self.labels), len(self._columns)), np.nan, dtype=np.float32)
        for place, column in enumerate(self._columns):
            tally = self._tally(column, weight)
            known = np.flatnonzero(column.codes >= 0)
            codes = column.codes[known]
            of_others = tally.number_categories_without_part()[codes, column.part[known]]
            numbers[known, place] = np.where(weight[known] > 0, of_others, tally.number_categories()[codes])
        return numbers

    def put(self, rows: NDArray[Any], numbers: NDArray[np.float32]) -> None:
        """Write numbers into the columns of rows that are coded.

        Parameters
        ----------
        rows : array
            Rows with all columns.
        numbers : array
            The same rows of what `number_rows` returns.
        """
        rows[:, list(self.n_categories)] = numbers

    @cached_property
    def _columns(self) -> list[_CodedColumn]:
        """The columns to be coded, with what each class counts as and the part that each row belongs to."""
        units = self._round(self.weight)
        hashes = self.hashes()
        columns = []
        for index, n_categories in self.n_categories.items():
            values = self.table[:, index]
            codes = np.where(np.isnan(values), -1.0, values).astype(np.intp)
            together = np.zeros_like(codes)
            by_class = _count(codes, together, self.labels, units, (n_categories, 1, self.n_classes))[:, 0]
            part = _deal_out(codes, hashes, self.labels, self.weight)
            columns.append(_CodedColumn(index, n_categories, codes, part, _find_direction(by_class)))
        return columns

    def _round(self, weight: Array) -> NDArray[np.int64]:
        """Return weights as whole numbers, whose sums do not depend on the order of rows."""
        return round_weights(weight, len(weight), float(self.weight.max(initial=0.0)))

    def _tally(self, column: _CodedColumn, weight: Array) -> _Tally:
        """Return how many rows there are by category, part and class."""
        units = self._round(weight)
        shape = (column.n_categories, N_PARTS, self.n_classes)
        # Whole weights are copies of a row; weights that are shares of a whole say nothing about the number of rows.
        n_rows = max(float(np.count_nonzero(weight)), float(np.sort(weight).sum()))
        rows_per_unit = n_rows / max(float(units.sum()), 1.0)
        counts = _count(column.codes, column.part, self.labels, units, shape)
        return _Tally(counts, rows_per_unit, column.class_numbers)


@dataclass(frozen=True, eq=False)
class _CodedColumn:
    """A column of many categories.

    Parameters
    ----------
    index, n_categories : int
        Which column it is, and how many categories it has.
    codes : array of int
        The category of each row, -1 where missing.
    part : array of int
        The part that each row belongs to.
    class_numbers : array
        What each class counts as in a mean label.
    """

    index: int
    n_categories: int
    codes: NDArray[np.intp]
    part: NDArray[np.intp]
    class_numbers: Array


@dataclass(frozen=True, eq=False)
class _Tally:
    """The weight of rows by category, part and class.

    Parameters
    ----------
    units : array of int of shape (n_categories, n_parts, n_classes)
        Weights as whole numbers.
    rows_per_unit : float
        How many rows one unit of weight stands for.
    class_numbers : array
        What each class counts as in a mean label.
    """

    units: NDArray[np.int64]
    rows_per_unit: float
    class_numbers: Array

    @cached_property
    def by_category(self) -> NDArray[np.int64]:
        """The weight by category and class."""
        return np.asarray(self.units.sum(axis=1))

    @cached_property
    def mean(self) -> float:
        """The mean label of all rows."""
        by_class = self.by_category.sum(axis=0)
        return float(by_class @ self.class_numbers / max(by_class.sum(), 1))

    @cached_property
    def prior_rows(self) -> float:
        """How many rows the mean label of all counts for: the variance within categories over that between them."""
        present = self.by_category[self.by_category.any(axis=1)]
        rows = self.rows_per_unit * present.sum(axis=1)
        labels = self.rows_per_unit * (present @ self.class_numbers)
        squares = self.rows_per_unit * (present @ self.class_numbers**2).sum()
        n_rows, n_categories = rows.sum(), len(rows)
        if n_rows - n_categories < 1.0:
            return np.inf  # Where no category comes twice, none says anything about other rows.
        explained = (labels**2 / rows).sum()
        within = max(squares - explained, 0.0) / (n_rows - n_categories)
        between = explained - labels.sum() ** 2 / n_rows - (n_categories - 1) * within
        if between <= 0.0:
            return np.inf
        return float(within * (n_rows - (rows**2).sum() / n_rows) / between)

    def number_categories(self) -> Array:
        """Return the number of each category."""
        return self._shrink(self.by_category)

    def number_categories_without_part(self) -> Array:
        """Return the number of each category by the rows outside of each part."""
        return self._shrink(self.by_category[:, None] - self.units)

    def _shrink(self, units: NDArray[np.int64]) -> Array:
        """Return mean labels, drawn towards the mean of all; the last axis of `units` are classes."""
        total = units.sum(axis=-1)
        everywhere = np.full(total.shape, self.mean)
        own = np.divide(units @ self.class_numbers, total, out=everywhere.copy(), where=total > 0)
        rows = self.rows_per_unit * total
        trust = np.divide(rows, rows + self.prior_rows, out=np.zeros_like(rows), where=total > 0)
        return np.asarray(everywhere + trust * (own - everywhere))


def _count(
    codes: NDArray[np.intp],
    part: NDArray[np.intp],
    labels: NDArray[np.uint32],
    units: NDArray[np.int64],
    shape: tuple[int, int, int],
) -> NDArray[np.int64]:
    """Return the weight by category, part and class; rows whose category is missing do not count."""
    counts = np.zeros(shape, dtype=np.int64)
    known = codes >= 0
    np.add.at(counts, (codes[known], part[known], labels[known]), units[known])
    return counts


def _find_direction(by_class: NDArray[np.int64]) -> Array:
    """Return what each class counts as, so that the means of categories differ most; of two classes 0 and 1."""
    n_classes = by_class.shape[1]
    if n_classes == 2:
        return np.array([0.0, 1.0])
    mass = by_class.sum(axis=1)
    present = by_class[mass > 0] / mass[mass > 0, None]
    share = mass[mass > 0] / max(mass.sum(), 1)
    apart = present - share @ present
    leading = np.linalg.eigh((share * apart.T) @ apart)[1][:, -1]
    # The sign of an eigenvector is arbitrary, and all rows must have the same.
    return np.asarray(leading * np.sign(leading[np.abs(leading).argmax()]))


def _deal_out(
    codes: NDArray[np.intp], hashes: NDArray[np.uint64], labels: NDArray[np.uint32], weight: Array
) -> NDArray[np.intp]:
    """Return the part of each row: the contents of a category are dealt out in turn, and copies stay together.

    Where a category has one content only, its copies are all that there is to learn from, and are dealt out themselves.
    """
    order = np.lexsort((weight, labels, hashes, codes))
    category, content = codes[order], hashes[order]
    is_new_category = np.append(True, category[1:] != category[:-1])
    is_new_content = is_new_category | np.append(True, content[1:] != content[:-1])
    start = np.flatnonzero(is_new_category)
    number = np.cumsum(is_new_category) - 1  # The number of each row's category, among those that there are.
    has_one_content = np.bincount(number, is_new_content) == 1
    turn = np.cumsum(is_new_content | has_one_content[number])
    part = np.empty(len(codes), dtype=np.intp)
    part[order] = (turn - turn[start][number]) % N_PARTS
    return part
