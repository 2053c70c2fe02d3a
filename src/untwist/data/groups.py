"""Which rows belong together, and which rows each fold trains on and judges where somebody else has made the folds.

A group is a thing that several rows are about: a patient, a customer, a machine. Where rows of a group train a model
that judges its other rows, whatever they have in common looks like knowledge, a wrong label too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.data.folds import mix_bits
from untwist.data.sources import UNKNOWN, read_names
from untwist.data.workers import Workers, solo

#: What a split of one's own must be made of.
PAIRS = "pairs (train, test) of positions of rows"


@dataclass(frozen=True, eq=False)
class RowGroups:
    """The group of each row.

    Parameters
    ----------
    names : array
        The groups, sorted, all different.
    index : array of int
        The number of each row's group; `UNKNOWN` for a row that is a group of its own.
    """

    names: NDArray[Any]
    index: NDArray[np.intp]

    @cached_property
    def name_hashes(self) -> NDArray[np.uint64]:
        """A hash of each name: workers that each see some of the rows have the same one for a group."""
        return np.array([_hash_name(name) for name in self.names.tolist()], dtype=np.uint64)

    def hash_rows(self, own: NDArray[np.uint64], rows: NDArray[np.intp] | None = None) -> NDArray[np.uint64]:
        """Return a hash of the group of each row, or of some rows.

        Parameters
        ----------
        own : ndarray of uint64
            What stays together where the group is unknown: equal for copies of a row, or for the labels of an item.
        rows : ndarray of int or None
            The positions of the rows; None for all of them.

        Returns
        -------
        ndarray of uint64 of shape (n_rows,)
        """
        index = self.index if rows is None else self.index[rows]
        hashes = np.append(self.name_hashes, np.uint64(0))  # The last one is for unknown groups, whose index is -1.
        return np.where(index == UNKNOWN, own, hashes[index])

    def name_rows(self) -> NDArray[Any]:
        """Return the name of each row's group, None where it is unknown."""
        names = np.array([*self.names.tolist(), None], dtype=object)
        return np.asarray(names[self.index])

    def number_rows(self) -> NDArray[np.intp]:
        """Return a number for each row's group, one of its own where it is unknown, as splitters take them."""
        return np.where(self.index == UNKNOWN, len(self.names) + np.arange(len(self.index)), self.index)

    def is_same_as(self, other: RowGroups) -> bool:
        """Tell whether the same rows belong together."""
        return len(self.index) == len(other.index) and bool(
            np.array_equal(self.index == UNKNOWN, other.index == UNKNOWN)
            and _count_pairs(self.index, other.index) == len(np.unique(self.index)) == len(np.unique(other.index))
        )


def _count_pairs(first: NDArray[np.intp], second: NDArray[np.intp]) -> int:
    return len(np.unique(np.stack([first, second]), axis=1).T)


def _hash_name(name: Any) -> int:
    """Return a hash of a name; numbers that are equal have the same one, whatever their types."""
    if isinstance(name, float) and name.is_integer():
        name = int(name)
    return int.from_bytes(blake2b(str(name).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def read_groups(values: Any, n_rows: int) -> RowGroups:
    """Read which rows belong together.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        Names of groups: text, numbers or categories; None and NaN for a row that is a group of its own.
    n_rows : int
        How many there must be.

    Returns
    -------
    RowGroups

    Examples
    --------
    >>> read_groups(["b", None, "a", "b"], 4).index
    array([ 1, -1,  0,  1])
    """
    return RowGroups(*read_names("groups", values, n_rows))


def keep_items_in_groups(
    contents: NDArray[np.uint64], named: NDArray[np.intp] | None, groups: RowGroups | None
) -> tuple[NDArray[np.uint64], NDArray[np.intp] | None]:
    """Return what items are found by, so that all rows of an item are in one group.

    Parameters
    ----------
    contents : ndarray of uint64 of shape (n_rows,)
        Equal for rows with equal features.
    named : ndarray of int of shape (n_rows,) or None
        The number of each row's item among the names that were given.
    groups : RowGroups or None
        Which rows belong together.

    Returns
    -------
    contents, named
        Contents differ where groups do. A ValueError where a name is in two groups.
    """
    if groups is None:
        return contents, named
    if named is not None:
        known = np.flatnonzero(named != UNKNOWN)
        first = np.zeros(int(named.max(initial=0)) + 1, dtype=np.intp)
        first[named[known][::-1]] = known[::-1]
        strange = known[groups.index[known] != groups.index[first[named[known]]]]
        if strange.size:
            raise ValueError(
                f"item must lie within a group, and rows {first[named[strange[0]]]} and {strange[0]} are of one item "
                "and of two groups"
            )
    return np.where(groups.index == UNKNOWN, contents, mix_bits(contents ^ groups.hash_rows(contents))), named


@dataclass(frozen=True, eq=False)
class OwnFolds:
    """Folds that somebody else has made: the rows that each trains on, and those that it judges.

    Parameters
    ----------
    trained, held_out : arrays of bool of shape (n_folds, n_rows)
        What each fold does with each row. No row is both, and no row is judged twice.
    """

    trained: NDArray[np.bool_]
    held_out: NDArray[np.bool_]

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Whether some fold judges each row."""
        return np.asarray(self.held_out.any(axis=0))

    @property
    def is_complete(self) -> bool:
        """Whether every row is judged, by a model that was trained on all that it does not judge."""
        return bool(self.judged.all() and (self.trained == ~self.held_out).all())

    def take(self, rows: NDArray[np.intp]) -> OwnFolds:
        """Return the folds of some of the rows."""
        return OwnFolds(self.trained[:, rows], self.held_out[:, rows])


def read_own_folds(cv: Any, X: Any, y: NDArray[Any], groups: NDArray[Any] | None) -> OwnFolds:
    """Read folds of one's own.

    Parameters
    ----------
    cv : splitter, iterable or OwnFolds
        An object of scikit-learn's kind with `split`, or pairs of positions: rows to train on and rows to judge.
    X, y, groups
        What the splitter is given.

    Returns
    -------
    OwnFolds
        A ValueError where the folds cannot be meant: positions that there are not, rows that are judged twice or by a
        model that has seen them, folds that judge or train on nothing.

    Examples
    --------
    >>> folds = read_own_folds([([0, 1], [2]), ([0, 1, 2], [3])], None, np.array([0, 1, 0, 1]), None)
    >>> folds.judged
    array([False, False,  True,  True])
    """
    if isinstance(cv, OwnFolds):
        if len(cv.judged) != len(y):
            raise ValueError(f"cv must be folds of {len(y)} rows, got some of {len(cv.judged)}")
        return cv
    pairs: Iterable[Any] = _ask_splitter(cv, X, y, groups) if hasattr(cv, "split") else cv
    trained, held_out = [], []
    for number, pair in enumerate(pairs):
        try:
            train, test = pair
        except (TypeError, ValueError) as error:
            raise ValueError(f"cv must be {PAIRS}, got {pair!r:.100}") from error
        trained.append(_mark_rows(f"cv, fold {number}, the rows to train on", train, len(y)))
        held_out.append(_mark_rows(f"cv, fold {number}, the rows to judge", test, len(y)))
        seen = np.flatnonzero(trained[-1] & held_out[-1])
        if seen.size:
            raise ValueError(f"cv, fold {number}, trains on row {seen[0]} and judges it: a fold has a row once")
    if not held_out:
        raise ValueError("cv must have one fold at least, got none: a generator can be read once, give list(...) of it")
    folds = OwnFolds(np.stack(trained), np.stack(held_out))
    twice = np.flatnonzero(folds.held_out.sum(axis=0) > 1)
    if twice.size:
        first, second = np.flatnonzero(folds.held_out[:, twice[0]])[:2]
        raise ValueError(
            f"cv must judge a row once at most, and folds {first} and {second} both judge row {twice[0]} ({len(twice)} "
            "rows are judged more than once): take a splitter whose test folds do not overlap"
        )
    return folds


def _ask_splitter(splitter: Any, X: Any, y: NDArray[Any], groups: NDArray[Any] | None) -> Iterator[Any]:
    """Yield the pairs of a splitter; a ValueError of its own is told with what it was not given."""
    try:
        yield from splitter.split(X, y, groups)
    except ValueError as error:
        reason = str(error).rstrip(".")
        asks_for_groups = groups is None and "group" in reason
        advice = "; if it asks for groups, give groups=... to fit or audit_labels" if asks_for_groups else ""
        raise ValueError(f"cv, {splitter!r:.100}, makes no folds of these rows: {reason}{advice}") from error


def _mark_rows(what: str, positions: Any, n_rows: int) -> NDArray[np.bool_]:
    """Return which rows are meant by positions, or by a Boolean for each row."""
    given = np.asarray(positions)
    if given.ndim != 1 or (given.dtype.kind not in "iub" and given.size):
        raise ValueError(f"{what} must be whole numbers or Booleans, got {positions!r:.100}")
    if given.dtype == np.bool_ and len(given) != n_rows:
        raise ValueError(f"{what} must be {n_rows} Booleans or positions, got {len(given)} Booleans")
    rows = np.flatnonzero(given) if given.dtype == np.bool_ else given.astype(np.intp)
    if not rows.size:
        raise ValueError(f"{what}: there are none")
    if rows.min() < 0 or rows.max() >= n_rows:
        raise ValueError(f"{what} must be positions from 0 to {n_rows - 1}, got {rows.min()} to {rows.max()}")
    marked = np.zeros(n_rows, dtype=np.bool_)
    marked[rows] = True
    return marked


def check_own_folds(
    folds: OwnFolds, groups: RowGroups | None, items: NDArray[np.intp] | None, needs_all: str | None
) -> None:
    """Raise a ValueError where folds of one's own do not go with what else was told of the rows.

    Parameters
    ----------
    folds : OwnFolds
        The folds.
    groups : RowGroups or None
        Which rows belong together.
    items : array of int or None
        The number of each row's item.
    needs_all : str or None
        The argument for which all rows must be judged, if there is one.
    """
    n_rows, n_judged = len(folds.judged), int(folds.judged.sum())
    if needs_all is not None and n_judged < n_rows:
        raise ValueError(
            f"{needs_all} must be None with a cv that does not judge every row, and {n_judged:,} of {n_rows:,} are: "
            "take a splitter whose test folds cover all rows"
        )
    if groups is not None and (row := _find_split(folds, groups.index)) is not None:
        name = groups.names.tolist()[groups.index[row]]
        raise ValueError(
            f"cv trains on some rows of group {name!r} and judges others in one fold: leave out groups or cv, or take "
            "a splitter that keeps groups together"
        )
    if items is not None and (row := _find_split(folds, items)) is not None:
        raise ValueError(f"cv trains on some labels of the item of row {row} and judges others: keep items together")


def _find_split(folds: OwnFolds, index: NDArray[np.intp]) -> int | None:
    """Return a row of a group, or an item, that some fold both trains on and judges; None where there is none."""
    known = np.flatnonzero(index != UNKNOWN)
    for trained, held_out in zip(folds.trained[:, known], folds.held_out[:, known], strict=True):
        split = np.flatnonzero(held_out & np.isin(index[known], index[known][trained]))
        if split.size:
            return int(known[split[0]])
    return None


def check_trained_classes(
    labels: NDArray[np.uint32],
    weight: Array,
    classes: NDArray[Any],
    trained: Iterable[Array],
    own_folds: OwnFolds | None,
    workers: Workers = solo,
) -> None:
    """Raise a ValueError where a fold trains on no row of some class: its model could only call that label wrong.

    Parameters
    ----------
    labels : array of int
        The class of each row.
    weight : array
        How much each row counts.
    classes : array
        What classes are called.
    trained : iterable of arrays
        The weight of each row that each fold trains on.
    own_folds : OwnFolds or None
        Folds of one's own, if these are some; otherwise groups have made them.
    workers : Workers
        Who else has rows.
    """
    total = workers.sum(np.bincount(labels, weight, minlength=len(classes)))
    for fold, weight_here in enumerate(trained):
        mass = workers.sum(np.bincount(labels, weight_here, minlength=len(classes)))
        missing = np.flatnonzero((total > 0) & (mass <= 0))
        if not missing.size:
            continue
        name = classes.tolist()[missing[0]]
        if own_folds is not None:
            raise ValueError(
                f"cv, fold {fold}, trains on no row of class {name!r}, which its model cannot know then: each fold "
                "must train on rows of all classes"
            )
        raise ValueError(
            f"class {name!r} lies in too few groups: where these are set aside, no row of it is left to train on; "
            "leave out the class, or give coarser labels"
        )
