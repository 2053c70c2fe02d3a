"""Rows that nearly repeat rows of other folds, so that models which were to judge unseen rows have all but seen them.

Where several rows are about one thing, a patient say, they lie close together, and far from those of other things.
Around a row the distances to its neighbours then make a jump where its own thing ends. Among independent rows the
number of neighbours within a distance grows as a power of it, the dimension that rows fill, and a jump by a factor t
after k neighbours comes with a chance of t ** (-dimension * k). Many jumps beyond that are noticed where they matter:
where the neighbours before the jump bear the same label much more often than those just after it.

A column that says nothing of the thing, such as the number of a row or the date of a visit, keeps its rows apart and
fills in the jump. It is also the column that the nearest neighbours agree in least: where nothing is found by all
columns, those are left out that keep neighbours apart most, some at a time and half of them at most. Before these go
the columns of a few values, as rows agree in several such columns by chance. Independent rows are independent in any of
the other columns, so that looking again finds nothing among them either.

Groups that were given are believed as far as they say something: a row whose group is named and has no other row is not
asked for its near-duplicates. Those of a row whose group has several rows count only where they are about as near as
rows of its own group, as in a table where some names are missing; what lies farther away is another thing nearby.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.data.closeness import ComparedRows
from untwist.data.folds import mix_bits
from untwist.data.sources import UNKNOWN

#: What is said of labels that the models may have remembered.
NOTHING_KNOWN = "how many are wrong cannot be told, as the models have all but seen the rows that they judge"

#: Why no share of wrong labels is told where noise was found among labels that the models may have remembered.
HOW_MANY_UNKNOWN = "how many cannot be told, as rows have near-duplicates in other folds"

#: What is said of such labels.
SOME_WRONG = f"at least some are wrong; {HOW_MANY_UNKNOWN}"

#: The neighbours of at most this many rows are looked at.
MOST_ASKED = 200

#: Neighbours are looked for among at most this many rows.
MOST_AMONG = 20_000

#: Where rows are many, neighbours are also looked for among this many only: of a thing with more rows than
#: `MOST_NEIGHBOURS`, few enough are left there for the jump behind them to be seen.
FEW_AMONG = 2_000

#: The table of the rows that are looked at has this many cells, at most.
MOST_CELLS = 2_000_000

#: At most so many neighbours of a row are looked at, so that groups of more rows are not noticed.
MOST_NEIGHBOURS = 256

#: Nor are more neighbours looked at than one for so many rows of the table.
ROWS_PER_NEIGHBOUR = 8

#: The labels of this many neighbours just after a jump are compared with those before it.
N_BEYOND = 5

#: From one neighbour to the next, distances jump if they grow at least by this factor.
LEAST_JUMP = 1.5

#: A jump counts only where its chance among independent rows is at most this.
RARE = 1e-4

#: A group of more than this share of the rows of a class is taken for the class itself, which may lie by itself.
MOST_SHARE_OF_CLASS = 1.0 / 3.0

#: Near-duplicates are reported only if at least this share of the rows has one in another fold.
LEAST_SHARE = 0.25

#: Near-duplicates are reported only if they spare the models errors on at least this share of all rows.
LEAST_HIDDEN = 0.04

#: Near-duplicates are reported only if their labels differ this many times as often as those of the rows beyond, at
#: most.
MOST_RELATIVE_DISAGREEMENT = 0.5

#: Rows whose groups have several rows have near-duplicates elsewhere only if, in the mean over these rows, such a one
#: is nearer than a row of the same group in at least this share of their pairs. It is a half where both are about the
#: same thing.
LEAST_NEARER = 0.25

#: A column may name the groups if at least this share of near-duplicates agrees in it.
LEAST_AGREEMENT = 0.98

#: A column may name the groups if less than this share of the rows beyond agrees in it.
MOST_AGREEMENT_BEYOND = 0.1

#: The nearest neighbours that tell which columns keep neighbours apart: as a rule fewer than a thing has rows, and more
#: than can be close by chance in a column that says nothing.
N_CLOSE = 6

#: A column is coarse if two random rows agree in it with at least this chance.
LEAST_CHANCE_OF_COARSE = 0.1

#: Columns are left out at most this many times, after those that are coarse.
MOST_REMOVALS = 5

#: Each time one column in this many is left out, and one at least.
COLUMNS_PER_LEFT_OUT = 8

#: Fewer columns than this are never left, nor fewer than half of those that are not coarse.
LEAST_COLUMNS = 2

#: Near-duplicates are looked for only among at least this many different rows.
LEAST_ROWS = 100


@dataclass(frozen=True, eq=False)
class NearDuplicates:
    """Rows of different folds that nearly repeat each other.

    Parameters
    ----------
    share : float
        The share of the rows that have near-duplicates in other folds.
    disagreement, disagreement_beyond : float
        How often near-duplicates bear another label than a row, and how often those do that are just beyond them.
    pairs, pairs_beyond : arrays of int of shape (n_pairs, 2)
        Some rows, each with a near-duplicate, and with a row beyond its near-duplicates.
    column : object or None
        The name, or number, of a column that looks like the name of what rows are about, if there is one.
    has_groups : bool
        Whether groups were given, which do not keep these rows together.
    """

    share: float
    disagreement: float
    disagreement_beyond: float
    pairs: NDArray[np.intp]
    pairs_beyond: NDArray[np.intp]
    column: Any = None
    has_groups: bool = False

    @staticmethod
    def find(
        table: ComparedRows,
        labels: NDArray[np.uint32],
        fold_of_row: NDArray[np.intp],
        trained: NDArray[np.bool_],
        group: NDArray[np.intp] | None = None,
    ) -> NearDuplicates | None:
        """Look for rows that nearly repeat rows of other folds.

        Parameters
        ----------
        table : ComparedRows
            Rows that were drawn by `draw_rows`, in its order.
        labels : ndarray of uint32 of shape (n_rows,)
            The class of each row.
        fold_of_row : ndarray of int of shape (n_rows,)
            The fold that judges each row, -1 for none.
        trained : ndarray of bool of shape (n_folds, n_rows)
            Whether each fold trains on each row, or on a copy of it.
        group : ndarray of int of shape (n_rows,) or None
            The number of each row's group, `UNKNOWN` where it has no name; None where no groups were given.

        Returns
        -------
        NearDuplicates or None
            None where there are few, or where they tell the label no better than other rows do.
        """
        if len(table) < LEAST_ROWS or not table.columns:
            return None
        sizes = [len(table)]
        if sizes[0] >= 2 * FEW_AMONG:
            sizes.append(FEW_AMONG)
        whole = _Sample(table, labels, fold_of_row, trained, group)
        samples = [whole.take_first(size) for size in sizes]
        found = [one.find() for one in samples]
        if not any(found):
            found = [_look_by_fewer_columns(one) for one in samples]
        # Of equal shares the one among more rows counts.
        return max((one for one in found if one is not None), key=lambda one: one.share, default=None)

    def describe(self, *, for_command: bool = False) -> str:
        """Say in words what was found, what it does, and what to do.

        Parameters
        ----------
        for_command : bool, default False
            Whether advice names options of the command line rather than Python.

        Returns
        -------
        str
        """
        labels = (
            f"which bear another label in {self.disagreement:.0%} of the cases, and the rows next to these in "
            f"{self.disagreement_beyond:.0%}"
        )
        name = "" if self.column is None else str(self.column)
        option = f"--groups {shlex.quote(name) if name and name.isprintable() else 'COLUMN'}"
        option = option if for_command else "groups=..."
        which = "" if self.column is None else f" ({self.column!r} looks like their name)"
        grouped = "the groups that were given do not keep them together: " if self.has_groups else ""
        return (
            f"{self.share:.0%} of the rows have near-duplicates in other folds, {labels}: models that have seen a "
            "near-duplicate know the label of a row, right or wrong, so that errors look fewer than they are and wrong "
            "labels look right; "
            f"{grouped}if these rows are about the same things, such as a patient, say which by {option}{which}"
        )

    def find_group_column(self, columns: Iterable[tuple[Any, NDArray[Any]]]) -> Any:
        """Return the name of the column that tells best which rows are about the same thing.

        Parameters
        ----------
        columns : iterable of (name, values)
            The columns, with a value for each row; missing values are equal to each other.

        Returns
        -------
        object or None
            None where near-duplicates differ in every column, or others agree too.
        """
        best, found = MOST_AGREEMENT_BEYOND, None
        for name, values in columns:
            near, beyond = (_measure_agreement(values, pairs) for pairs in (self.pairs, self.pairs_beyond))
            if near >= LEAST_AGREEMENT and beyond < best:
                best, found = beyond, name
        return found


def _measure_agreement(values: NDArray[Any], pairs: NDArray[np.intp]) -> float:
    """Return the share of pairs whose values are equal."""
    first, second = values[pairs[:, 0]], values[pairs[:, 1]]
    return float(np.mean((first == second) | ((first != first) & (second != second))))


def draw_rows(
    hashes: NDArray[np.uint64],
    weight: Array,
    n_columns: int,
    hash_exactly: Callable[[NDArray[np.intp]], NDArray[np.uint64]],
) -> NDArray[np.intp]:
    """Draw the rows that near-duplicates are looked for among, by their contents.

    Parameters
    ----------
    hashes : ndarray of uint64 of shape (n_rows,)
        Equal for rows that models cannot tell apart, of which one is drawn.
    weight : ndarray of shape (n_rows,)
        How much each row counts; those of weight 0 are absent.
    n_columns : int
        The columns of the table.
    hash_exactly : callable
        Given positions of rows, in order, it returns hashes of all that they hold, with their labels. Rows with equal
        `hashes` are sorted by these, and one of them is drawn with a chance in proportion to its weight: the order of
        the table does not matter.

    Returns
    -------
    ndarray of int
        In the order of their hashes they are as good as shuffled, whatever order the table has.
    """
    present = np.flatnonzero(weight)
    mixed = mix_bits(hashes[present])
    different, times = np.unique(mixed, return_counts=True)
    most = max(LEAST_ROWS, min(MOST_AMONG, MOST_CELLS // max(1, n_columns)))
    different, times = different[:most], times[:most]
    place = np.minimum(np.searchsorted(different, mixed), max(0, len(different) - 1))
    chosen = np.flatnonzero(different[place] == mixed) if len(different) else place
    rows, place = present[chosen], place[chosen]
    exact = np.zeros(len(rows), dtype=np.uint64)
    is_tied = times[place] > 1
    if is_tied.any():
        exact[is_tied] = hash_exactly(rows[is_tied])
    order = np.lexsort((weight[rows], exact, place))
    rows = rows[order]
    reached = np.append(0.0, np.cumsum(weight[rows]))
    last = np.cumsum(times)
    first = last - times
    chance = mix_bits(different) / 2.0**64
    target = reached[first] + chance * (reached[last] - reached[first])
    return np.asarray(rows[np.clip(np.searchsorted(reached, target, side="right") - 1, first, last - 1)])


def find_split_rows(hashes: NDArray[np.uint64], rows: NDArray[np.intp], held_out_weight: Array) -> NDArray[np.bool_]:
    """Tell which of some rows, whose hashes differ, have copies that several folds set aside.

    Parameters
    ----------
    hashes : ndarray of uint64 of shape (n_all,)
        Equal for copies.
    rows : ndarray of int of shape (n_rows,)
        Positions of the rows.
    held_out_weight : ndarray of shape (n_folds, n_all)
        The weight of each row in each fold that sets it aside, else 0.

    Returns
    -------
    ndarray of bool of shape (n_rows,)
    """
    order = np.argsort(hashes[rows])
    known = hashes[rows][order]
    place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    is_copy = known[place] == hashes
    n_folds = np.zeros(len(rows), dtype=np.intp)
    for weight in held_out_weight:
        n_folds[np.unique(place[is_copy & (weight > 0)])] += 1
    is_split = np.empty(len(rows), dtype=np.bool_)
    is_split[order] = n_folds > 1
    return is_split


@dataclass(frozen=True, eq=False)
class _Sample:
    """Different rows in a random order, as `find_near_duplicates` is given them."""

    table: ComparedRows
    labels: NDArray[np.uint32]
    fold_of_row: NDArray[np.intp]
    trained: NDArray[np.bool_]
    group: NDArray[np.intp] | None = None

    def take_first(self, n_rows: int) -> _Sample:
        """Return the first rows, which are as good as drawn at random."""
        numbers = np.asfortranarray(self.table.numbers[:n_rows])
        table = ComparedRows(numbers, self.table.encoder, self.table.columns)
        group = None if self.group is None else self.group[:n_rows]
        return _Sample(table, self.labels[:n_rows], self.fold_of_row[:n_rows], self.trained[:, :n_rows], group)

    def take_columns(self, columns: Sequence[int]) -> _Sample:
        """Return all rows, by some of the columns."""
        return replace(self, table=self.table.take_columns(columns))

    @cached_property
    def n_group_mates(self) -> NDArray[np.intp]:
        """The number of other rows in the group of each row, 0 where its name is not known."""
        if self.group is None:
            return np.zeros(len(self.table), dtype=np.intp)
        sizes = np.bincount(self.group[self.group != UNKNOWN], minlength=1)
        return np.where(self.group == UNKNOWN, 0, sizes[self.group] - 1)

    @cached_property
    def neighbours(self) -> _Neighbours | None:
        """The nearest neighbours of some rows; None where no row is judged, or nothing tells rows apart."""
        n_nearest = min(MOST_NEIGHBOURS, len(self.table) // ROWS_PER_NEIGHBOUR)
        may_leak = self.fold_of_row >= 0
        if self.group is not None:
            may_leak &= (self.n_group_mates > 0) | (self.group == UNKNOWN)
        asked = np.flatnonzero(may_leak)[:MOST_ASKED]
        if not len(asked) or not self.table.places[0].shape[1]:
            return None
        squares, near = self.table.find_nearest(asked, np.arange(len(self.table)), n_nearest)
        return _Neighbours(asked, near, np.sqrt(np.maximum(squares, np.finfo(np.float32).tiny)))

    def measure_columns(self) -> dict[int, float]:
        """Return how far nearest neighbours are apart in each column that tells rows apart, as mean squares.

        All columns have the same mean for two random rows.
        """
        if self.neighbours is None:
            return {}
        near = self.neighbours.near[:, :N_CLOSE]
        pairs = np.repeat(self.neighbours.asked, near.shape[1]), near.ravel()
        return {column: float(squares.mean()) for column, squares in self.table.measure_by_column(*pairs).items()}

    def find(self) -> NearDuplicates | None:
        """Look for near-duplicates."""
        if self.neighbours is None:
            return None
        asked, near, distance = self.neighbours
        n_nearest, labels = near.shape[1], self.labels
        # The last neighbours are left to tell how distances go on after a jump.
        jumps = distance[:, 1:-N_BEYOND] / distance[:, : -1 - N_BEYOND]
        jump_place = jumps.argmax(axis=1)
        jump = jumps[np.arange(len(asked)), jump_place]
        place = np.arange(n_nearest)
        is_before, is_after = place <= jump_place[:, None], place > jump_place[:, None]
        log_ratios = np.log(distance[:, -1:] / distance)
        mean_log_ratio = float(log_ratios[is_after & (place < n_nearest - 1)].mean())
        # Where all neighbours after a jump are equally far the mean is 0: the dimension is a million then.
        dimension = max(1.0, 1.0 / max(mean_log_ratio, 1e-6))
        is_rare = dimension * (jump_place + 1) * np.log(jump) >= -np.log(RARE)
        spans_class = jump_place + 2 > MOST_SHARE_OF_CLASS * np.bincount(labels)[labels[asked]]
        is_near = is_before & self.trained[self.fold_of_row[asked][:, None], near]
        has_near = (jump >= LEAST_JUMP) & is_rare & ~spans_class & is_near.any(axis=1)
        if not self._are_as_near_as_group_mates(is_near[has_near], asked[has_near], near[has_near]):
            has_near &= self.n_group_mates[asked] == 0
        share = float(has_near.mean())
        if share < LEAST_SHARE:
            return None
        rows = np.flatnonzero(has_near)
        differs = labels[near] != labels[asked][:, None]
        is_just_beyond = is_after & (place <= jump_place[:, None] + N_BEYOND)
        disagreement, disagreement_beyond = (
            float(np.mean([differs[row, chosen[row]].mean() for row in rows])) for chosen in (is_near, is_just_beyond)
        )
        hidden = share * (disagreement_beyond - disagreement)
        if hidden < LEAST_HIDDEN or disagreement > MOST_RELATIVE_DISAGREEMENT * disagreement_beyond:
            return None
        pairs = np.column_stack([asked[rows], near[rows, is_near[rows].argmax(axis=1)]])
        pairs_beyond = np.column_stack([asked[rows], near[rows, jump_place[rows] + 1]])
        return NearDuplicates(share, disagreement, disagreement_beyond, pairs, pairs_beyond)

    def _are_as_near_as_group_mates(
        self, is_near: NDArray[np.bool_], rows: NDArray[np.intp], near: NDArray[np.intp]
    ) -> bool:
        """Tell whether the near-duplicates of some rows are about as near as rows of their groups."""
        n_group_mates = self.n_group_mates[rows]
        if self.group is None or not n_group_mates.any():
            return True
        is_group_mate = (self.group[near] == self.group[rows][:, None]) & (n_group_mates > 0)[:, None]
        n_farther_mates = n_group_mates[:, None] - np.cumsum(is_group_mate, axis=1)
        n_nearer = (is_near * n_farther_mates).sum(axis=1)[n_group_mates > 0]
        return bool(np.mean(n_nearer / (is_near.sum(axis=1) * n_group_mates)[n_group_mates > 0]) >= LEAST_NEARER)


class _Neighbours(NamedTuple):
    """Some rows, their nearest neighbours in order, and the distances to these."""

    asked: NDArray[np.intp]
    near: NDArray[np.intp]
    distance: Array


def _look_by_fewer_columns(sample: _Sample) -> NearDuplicates | None:
    """Look for near-duplicates without the columns that keep neighbours apart most, more and more of them."""
    apart = sample.measure_columns()
    # Rows that agree in a few categories or small whole numbers do so by chance, and would look like near-duplicates
    # once other columns are left out: the first columns to be left out are all those of categories and of few values.
    columns = [column for column in apart if not _is_coarse(sample.table, column)]
    least = max(LEAST_COLUMNS, (len(columns) + 1) // 2)
    for _ in range(1 + MOST_REMOVALS):
        if len(columns) < least:
            return None
        if len(columns) < len(apart):
            sample = sample.take_columns(columns)
            found = sample.find()
            if found is not None:
                return found
            apart = sample.measure_columns()
        n_columns = len(apart) - max(1, len(apart) // COLUMNS_PER_LEFT_OUT)
        columns = sorted(sorted(apart, key=lambda column: apart[column])[: max(least, n_columns)])
        if len(columns) == len(apart):
            return None
    return None


def _is_coarse(table: ComparedRows, column: int) -> bool:
    """Tell whether rows agree in a column by chance."""
    return table.is_category(column) or table.find_chance_of_agreement(column) >= LEAST_CHANCE_OF_COARSE
