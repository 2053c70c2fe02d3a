"""Columns of many categories as numbers that labels tell: each category is the mean label of its rows.

A column of a thousand names has thousands of splits, some of which look good by chance. With one number for each name
it is a column like any other. Of several classes, that number is the projection of a category's class shares on the
direction in which the shares of categories differ most (Coppersmith, Hong and Hosking, 1999), which for two classes is
the mean label.

- The mean label is drawn towards that of all rows, by as many rows as the column itself speaks for: the variance of
  labels within categories over that between them (empirical Bayes). A column that says nothing becomes a constant.
- What a row is trained with never comes from its own label. The contents of a category are dealt out to parts, and a
  row has the number of the other parts. Rows that do not train have the number of all that do, as new rows have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.data.sources import hash_rows
from untwist.data.tables import round_weights
from untwist.sums import add_up

#: A column with more categories than this is coded by its labels.
MANY_CATEGORIES = 12

#: The contents of a category are dealt out to this many parts.
N_PARTS = 5

#: Larger sums of weights are no numbers of rows, and their squares would not be finite.
MOST_ROWS = 1e15


@dataclass(frozen=True, eq=False)
class LabelCoding:
    """The columns of many categories in a training table, and the numbers that its labels make of them.

    Parameters
    ----------
    n_categories : mapping of int to int
        By column how many categories it has.
    codes : array of int of shape (n_coded_columns, n_rows)
        The category of each row, -1 where missing.
    contents : array of uint64
        A hash of what each row holds: copies of a row have the same one.
    labels : array of uint32
        The index of each row's class.
    weight : array
        What each row weighs.
    n_classes : int
        The number of classes.
    is_alone : bool
        Whether the table has no other column.

    Examples
    --------
    >>> table = np.column_stack([[0, 0, 0, 0, 1, 1, 1, 1, 2, 2], np.arange(10)])
    >>> labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 1], dtype=np.uint32)
    >>> coding = LabelCoding.read([table], {0: 3}, labels, np.ones(10), n_classes=2)
    >>> coding.number_categories(np.ones(10))[0].round(2)
    array([0.03, 0.97, 0.5 , 0.5 ], dtype=float32)
    """

    n_categories: Mapping[int, int]
    codes: NDArray[np.int32]
    contents: NDArray[np.uint64]
    labels: NDArray[np.uint32]
    weight: Array
    n_classes: int
    is_alone: bool

    @classmethod
    def read(
        cls,
        blocks: Iterable[NDArray[Any]],
        n_categories: Mapping[int, int],
        labels: NDArray[np.uint32],
        weight: Array,
        n_classes: int,
    ) -> LabelCoding:
        """Read the columns to be coded.

        Parameters
        ----------
        blocks : iterable of arrays
            The rows of the table, with categories as indices and NaN where missing.
        n_categories, labels, weight, n_classes
            As in `LabelCoding`.

        Returns
        -------
        LabelCoding
        """
        contents, codes = [], []
        is_alone = False
        for block in blocks:
            is_alone = block.shape[1] == 1
            values = block[:, list(n_categories)].T
            contents.append(hash_rows(block))
            codes.append(np.where(np.isnan(values), -1.0, values).astype(np.int32))
        return cls(
            n_categories, np.concatenate(codes, axis=1), np.concatenate(contents), labels, weight, n_classes, is_alone
        )

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of what each row holds: its categories and not their numbers, which depend on other rows."""
        return self.contents

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
        found = {}
        for place, column in enumerate(self.n_categories):
            tally = self._tally(place, weight)
            found[column] = np.append(tally.number_categories(), tally.mean).astype(np.float32)
        return found

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
        numbers = np.full(self.codes.T.shape, np.nan, dtype=np.float32)
        for place, (codes, parts) in enumerate(zip(self.codes, self._parts, strict=True)):
            tally = self._tally(place, weight)
            known = np.flatnonzero(codes >= 0)
            of_others = tally.number_categories_without_part()[codes[known], parts[known]]
            numbers[known, place] = np.where(weight[known] > 0, of_others, tally.number_categories()[codes[known]])
        return numbers

    def put(self, rows: NDArray[Any], numbers: NDArray[np.float32]) -> NDArray[Any]:
        """Return rows with numbers in the columns that are coded.

        Parameters
        ----------
        rows : array of shape (n_rows, n_columns)
            Rows with all columns.
        numbers : array
            What `number_rows` returns of the first of them; the others stay as they are.

        Returns
        -------
        array of shape (n_rows, n_columns)
        """
        changed = rows.copy()
        changed[: len(numbers), list(self.n_categories)] = numbers
        return changed

    def keep(self, columns: Collection[int]) -> LabelCoding:
        """Return the coding of some of the columns.

        Parameters
        ----------
        columns : collection of int
            The columns to keep.

        Returns
        -------
        LabelCoding
        """
        places = [place for place, column in enumerate(self.n_categories) if column in columns]
        n_categories = {column: count for column, count in self.n_categories.items() if column in columns}
        return replace(self, n_categories=n_categories, codes=self.codes[places])

    @cached_property
    def _parts(self) -> NDArray[np.int8]:
        """The part of each row, by column."""
        return np.stack(
            [_deal_out(codes, self.contents, self.labels, self.weight, self.is_alone) for codes in self.codes]
        )

    @cached_property
    def _class_numbers(self) -> list[Array]:
        """What each class counts as in a mean label, by column; the same for whichever rows train."""
        return [_find_direction(self._count(place, self.weight).sum(axis=1)) for place in range(len(self.codes))]

    def _tally(self, place: int, weight: Array) -> _Tally:
        # Whole weights are copies of a row; weights that are shares of a whole say nothing about the number of rows.
        n_rows = min(max(float(np.count_nonzero(weight)), add_up(weight)), MOST_ROWS)
        rows_per_unit = n_rows / max(float(self._round(weight).sum()), 1.0)
        return _Tally(self._count(place, weight), rows_per_unit, self._class_numbers[place])

    def _count(self, place: int, weight: Array) -> NDArray[np.int64]:
        """Return the weight by category, part and class; rows whose category is missing do not count."""
        known = np.flatnonzero(self.codes[place] >= 0)
        counts = np.zeros((list(self.n_categories.values())[place], N_PARTS, self.n_classes), dtype=np.int64)
        cells = self.codes[place, known], self._parts[place, known], self.labels[known]
        np.add.at(counts, cells, self._round(weight)[known])
        return counts

    def _round(self, weight: Array) -> NDArray[np.int64]:
        """Return weights as whole numbers, whose sums do not depend on the order of rows."""
        return round_weights(weight, len(weight), float(self.weight.max(initial=0.0)))


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


def _find_direction(by_class: NDArray[np.int64]) -> Array:
    """Return what each class counts as, so that the means of categories differ most; of two classes 0 and 1."""
    n_classes = by_class.shape[1]
    if n_classes == 2:
        return np.array([0.0, 1.0])
    present = by_class[by_class.any(axis=1)]
    mass = present.sum(axis=1)
    apart = present / mass[:, None] - present.sum(axis=0) / max(mass.sum(), 1)
    # A product of matrices would depend on the number of threads in its last bits.
    spread = np.einsum("c,ci,cj->ij", mass / max(mass.sum(), 1), apart, apart)
    leading = np.linalg.eigh(spread)[1][:, -1]
    # The sign of an eigenvector is arbitrary, and all rows must have the same.
    return np.asarray(leading * np.sign(leading[np.abs(leading).argmax()]))


def _deal_out(
    codes: NDArray[np.int32], contents: NDArray[np.uint64], labels: NDArray[np.uint32], weight: Array, is_alone: bool
) -> NDArray[np.int8]:
    """Return the part of each row: the contents of a category are dealt out in turn, and copies stay together.

    Where the table has no other column, copies are all that there is to learn from, and are dealt out themselves. Rows
    without a weight take no turn.
    """
    order = np.lexsort((weight, labels, contents, codes))
    order = order[weight[order] > 0]
    part = np.zeros(len(codes), dtype=np.int8)
    if not len(order):
        return part
    category, content = codes[order], contents[order]
    is_new_category = np.append(True, category[1:] != category[:-1])
    is_new_content = is_new_category | np.append(True, content[1:] != content[:-1])
    start = np.flatnonzero(is_new_category)
    number = np.cumsum(is_new_category) - 1  # The number of each row's category, among those that there are.
    turn = np.cumsum(is_new_content | is_alone)
    part[order] = (turn - turn[start][number]) % N_PARTS
    return part
