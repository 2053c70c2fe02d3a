"""Rows that nearly repeat rows of other folds, so that models which were to judge unseen rows have all but seen them.

Where several rows are about one thing, a patient say, they lie close together, and far from those of other things.
Around a row the distances to its neighbours then make a jump where its own thing ends. Among independent rows the
number of neighbours within a distance grows as a power of it, the dimension that rows fill, and a jump by a factor t
after k neighbours comes with a chance of t ** (-dimension * k). Many jumps beyond that are noticed where they matter:
where the neighbours before the jump bear the same label much more often than those just after it.

A column that says nothing of the thing, such as the number of a row or the date of a visit, keeps its rows apart and
fills in the jump. It is also the column that the nearest neighbours agree in least: where nothing is found by all
columns, those are left out that keep neighbours apart most, some at a time and half of them at most. Independent rows
are independent in any of their columns, so that looking again finds nothing among them either.
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

__all__ = ["NOTHING_KNOWN", "Twins", "draw_rows", "find_twins"]

#: What is said of labels that the models may have remembered.
NOTHING_KNOWN = "how many are wrong cannot be told, as the models have all but seen the rows that they judge"

#: Rows whose neighbours are looked at, at most, and the rows that these are looked for among.
MOST_ASKED = 200
MOST_AMONG = 20_000

#: Of many rows these are looked at too: a thing of many rows has few neighbours among them.
FEW_AMONG = 2_000

#: The table of the rows that are looked at has this many cells, at most.
MOST_CELLS = 2_000_000

#: At most so many neighbours of a row are looked at, so that groups of more rows are not noticed.
MOST_NEIGHBOURS = 256

#: Nor are more neighbours looked at than one for so many rows of the table.
ROWS_PER_NEIGHBOUR = 8

#: The neighbours just after a jump by which labels are compared.
N_BEYOND = 5

#: From one neighbour to the next, distances jump if they grow at least by this factor.
LEAST_JUMP = 1.5

#: A jump counts only where its chance among independent rows is at most this.
RARE = 1e-4

#: A thing has less than this share of the rows of its class: a class that lies by itself is no repetition.
MOST_OF_CLASS = 1.0 / 3.0

#: Near twins are reported only if at least this share of the rows has one in another fold.
LEAST_SHARE = 0.25

#: Near twins are reported only if they spare the models errors on at least this share of all rows.
LEAST_HIDDEN = 0.04

#: Near twins are reported only if their labels differ at most this many times as often as those of the rows beyond.
MOST_OF_BEYOND = 0.5

#: A column may name the groups if at least this share of near twins agrees in it.
LEAST_AGREEMENT = 0.98

#: A column may name the groups if less than this share of the rows beyond agrees in it.
MOST_AGREEMENT = 0.1

#: The nearest neighbours that tell which columns keep neighbours apart: as a rule fewer than a thing has rows, and more
#: than can be close by chance in a column that says nothing.
N_CLOSE = 6

#: Columns are left out at most this many times, after those of categories.
MOST_REMOVALS = 5

#: Each time one column in this many is left out, and one at least.
COLUMNS_PER_LEFT_OUT = 8

#: Fewer columns than this are never left, nor fewer than half of those that tell rows apart.
LEAST_COLUMNS = 2

#: Fewer different rows tell nothing of what is usual.
LEAST_ROWS = 100


@dataclass(frozen=True, eq=False)
class Twins:
    """Rows of different folds that nearly repeat each other.

    Parameters
    ----------
    share : float
        The share of the rows that have near twins in other folds.
    disagreement, disagreement_beyond : float
        How often near twins bear another label than a row, and how often those do that are just beyond them.
    pairs, pairs_beyond : arrays of int of shape (n_pairs, 2)
        Some rows, each with a near twin, and with a row beyond its twins.
    column : object or None
        The name, or number, of a column that looks like the name of what rows are about, if there is one.
    """

    share: float
    disagreement: float
    disagreement_beyond: float
    pairs: NDArray[np.intp]
    pairs_beyond: NDArray[np.intp]
    column: Any = None

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
        return (
            f"{self.share:.0%} of the rows have near twins in other folds, {labels}: models that have seen a twin know "
            "the label of a row, right or wrong, so that errors look fewer than they are and wrong labels look right; "
            f"if these rows are about the same things, such as a patient, say which by {option}{which}"
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
            None where near twins differ in every column, or others agree too.
        """
        best, found = MOST_AGREEMENT, None
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
    """Draw the rows that near twins are looked for among, by their contents.

    Parameters
    ----------
    hashes : ndarray of uint64 of shape (n_rows,)
        Equal for rows that models cannot tell apart, of which one is drawn.
    weight : ndarray of shape (n_rows,)
        How much each row counts; those of weight 0 are absent.
    n_columns : int
        The columns of the table.
    hash_exactly : callable
        Given positions of rows, in order, it returns hashes of all that they hold, with their labels. Of rows with one
        hash it tells which is drawn, each as often as it weighs, so that their order does not.

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


def find_twins(
    table: ComparedRows, labels: NDArray[np.uint32], fold_of_row: NDArray[np.intp], trained: NDArray[np.bool_]
) -> Twins | None:
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
        Whether each fold trains on each row.

    Returns
    -------
    Twins or None
        None where there are few, or where they tell the label no better than other rows do.
    """
    if len(table) < LEAST_ROWS or not table.columns:
        return None
    sizes = [len(table)]
    if sizes[0] >= 2 * FEW_AMONG:
        sizes.append(FEW_AMONG)
    samples = [_Sample(table, labels, fold_of_row, trained).take(np.arange(size), table.columns) for size in sizes]
    looks = [one.look() for one in samples]
    if not any(looks):
        looks = [_look_by_fewer_columns(one) for one in samples]
    # Of equal shares the one among more rows counts.
    return max((one for one in looks if one is not None), key=lambda one: one.share, default=None)


@dataclass(frozen=True, eq=False)
class _Sample:
    """Different rows in a random order, as `find_twins` is given them."""

    table: ComparedRows
    labels: NDArray[np.uint32]
    fold_of_row: NDArray[np.intp]
    trained: NDArray[np.bool_]

    def take(self, rows: NDArray[np.intp], columns: Sequence[int]) -> _Sample:
        """Return some of the rows, by some of the columns."""
        part = ComparedRows(np.asfortranarray(self.table.numbers[rows]), self.table.encoder, columns)
        return _Sample(part, self.labels[rows], self.fold_of_row[rows], self.trained[:, rows])

    def take_columns(self, columns: Sequence[int]) -> _Sample:
        """Return all rows, by some of the columns."""
        return replace(self, table=self.table.take_columns(columns))

    @cached_property
    def neighbours(self) -> _Neighbours | None:
        """The nearest neighbours of some rows; None where no row is judged, or nothing tells rows apart."""
        n_nearest = min(MOST_NEIGHBOURS, len(self.table) // ROWS_PER_NEIGHBOUR)
        asked = np.flatnonzero(self.fold_of_row >= 0)[:MOST_ASKED]
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

    def look(self) -> Twins | None:
        """Look for near twins."""
        if self.neighbours is None:
            return None
        asked, near, distance = self.neighbours
        n_nearest, labels = near.shape[1], self.labels
        # The last neighbours are left to tell how distances go on after a jump.
        jumps = distance[:, 1:-N_BEYOND] / distance[:, : -1 - N_BEYOND]
        last = jumps.argmax(axis=1)
        place = np.arange(n_nearest)
        is_before, is_after = place <= last[:, None], place > last[:, None]
        logs = np.log(distance[:, -1:] / distance)
        dimension = max(1.0, 1.0 / max(float(logs[is_after & (place < n_nearest - 1)].mean()), np.finfo(float).tiny))
        jump = jumps[np.arange(len(asked)), last]
        is_rare = dimension * (last + 1) * np.log(jump) >= -np.log(RARE)
        n_of_class = np.bincount(labels)
        is_class = last + 2 > MOST_OF_CLASS * n_of_class[labels[asked]]
        is_trained = self.trained[self.fold_of_row[asked][:, None], near]
        has_twin = (jump >= LEAST_JUMP) & is_rare & ~is_class & (is_before & is_trained).any(axis=1)
        share = float(has_twin.mean())
        if share < LEAST_SHARE:
            return None
        differs = labels[near] != labels[asked][:, None]
        beyond = is_after & (place <= last[:, None] + N_BEYOND)
        within, after = (
            float(np.mean([differs[i, chosen[i]].mean() for i in np.flatnonzero(has_twin)]))
            for chosen in (is_before & is_trained, beyond)
        )
        if share * (after - within) < LEAST_HIDDEN or within > MOST_OF_BEYOND * after:
            return None
        twins = np.flatnonzero(has_twin)
        pairs = np.column_stack([asked[twins], near[twins, (is_before & is_trained)[twins].argmax(axis=1)]])
        return Twins(share, within, after, pairs, np.column_stack([asked[twins], near[twins, last[twins] + 1]]))


class _Neighbours(NamedTuple):
    """Some rows, their nearest neighbours in order, and the distances to these."""

    asked: NDArray[np.intp]
    near: NDArray[np.intp]
    distance: Array


def _look_by_fewer_columns(sample: _Sample) -> Twins | None:
    """Look for near twins without the columns that keep neighbours apart most, more and more of them."""
    apart = sample.measure_columns()
    least = max(LEAST_COLUMNS, (len(apart) + 1) // 2)
    # Rows that agree in a few categories do so by chance, and would look like twins once other columns are left out:
    # the first columns to be left out are all those of categories.
    columns = [column for column in apart if not sample.table.is_category(column)]
    for _ in range(1 + MOST_REMOVALS):
        if len(columns) < least:
            return None
        if len(columns) < len(apart):
            sample = sample.take_columns(columns)
            found = sample.look()
            if found is not None:
                return found
            apart = sample.measure_columns()
        n_columns = len(apart) - max(1, len(apart) // COLUMNS_PER_LEFT_OUT)
        columns = sorted(sorted(apart, key=lambda column: apart[column])[: max(least, n_columns)])
        if len(columns) == len(apart):
            return None
    return None
