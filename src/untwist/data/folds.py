"""Rows set aside by what they contain, not by where they stand: any order of the rows gives the same choice.

Copies of a row stay together, and a row of weight 2 is two copies: what was trained on must not come back to judge.
Only where a content is frequent and has several labels, as in a table of few values, its copies are a sample of their
own, and part of them is drawn.

`hold_out_share` and `split_into_folds` see all rows and share every class out evenly. `split_items_into_folds` keeps
all labels of an item in one fold, `split_groups_into_folds` and `hold_out_groups` all rows of a group, as evenly as
groups allow. `draw_share` and `draw_folds` go row by row, for workers that each see a part of the rows only.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import binom

from untwist.arguments import Array
from untwist.sums import add_up, add_up_by_group

# A content with several labels and at least this many copies is a sample of its own.
FREQUENT = 10
# Of more copies than this a binomial draw cannot be told from its mean.
MOST_DRAWN = 1e9
# This many groups, the heaviest, are dealt out one by one; none of the others is a ten thousandth of all, and is drawn.
MOST_DEALT = 10_000
# Sums of weights that differ by less than this, relatively, are equal.
ROUNDING = 1e-9
# The increment of splitmix64: 2**64 divided by the golden ratio, which spreads consecutive numbers evenly.
GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
# The first multiplier of splitmix64, chosen by its author so that every bit of a number reaches the others.
FIRST_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
# The second multiplier of splitmix64, chosen in the same way.
SECOND_MULTIPLIER = np.uint64(0x94D049BB133111EB)


def hold_out_share(
    hashes: NDArray[np.uint64], labels: NDArray[np.uint32], weight: Array, share: float, seed: int
) -> Array:
    """Set aside about a share of the weight of every class.

    Parameters
    ----------
    hashes : ndarray of uint64 of shape (n_rows,)
        Equal for rows of the same contents.
    labels : ndarray of uint32 of shape (n_rows,)
        The class of each row.
    weight : ndarray of shape (n_rows,)
        How many copies each row stands for.
    share : float
        How much to set aside, in (0, 1).
    seed : int
        Another seed gives another choice.

    Returns
    -------
    ndarray of shape (n_rows,)
        How much of each row's weight is set aside, in [0, 1].

    Examples
    --------
    >>> hold_out_share(np.arange(10, dtype=np.uint64), np.zeros(10, np.uint32), np.ones(10), 0.2, seed=0)
    array([0., 1., 0., 0., 1., 0., 0., 0., 0., 0.])
    """
    contents = _Contents(hashes, labels, weight, seed)
    held_out = np.zeros_like(contents.mass)
    for k, mass in enumerate(contents.mass.T):
        copies = np.maximum(1, np.rint(mass))
        # At least one copy of a content stays.
        drawn = np.minimum(contents.draw(contents.draw_chances(k), copies, share), np.maximum(copies - 1, 0))
        whole = np.where(contents.by_copy, 0.0, mass)
        # A content that weighs more than may be set aside gives a part of each copy.
        heavy = whole > share * mass.sum() * (1 + ROUNDING)
        light = np.where(heavy, 0.0, whole)
        filled = np.cumsum(light)
        fits = filled - 0.5 * light <= share * light.sum() * (1 + ROUNDING)
        leaves_some = filled < mass.sum() * (1 - ROUNDING)
        taken = fits & leaves_some & (light > 0)
        held_out[:, k] = np.where(contents.by_copy, drawn / copies, np.where(heavy, share, taken))
    if not (held_out * contents.mass).any():
        # There are few copies and none was drawn, so that each gives a part.
        held_out[:] = share
    return contents.look_up(held_out)


def split_into_folds(
    hashes: NDArray[np.uint64], labels: NDArray[np.uint32], weight: Array, n_folds: int, seed: int
) -> NDArray[np.float64]:
    """Share the rows of every class out over folds.

    Parameters
    ----------
    hashes : ndarray of uint64 of shape (n_rows,)
        Equal for rows of the same contents.
    labels : ndarray of uint32 of shape (n_rows,)
        The class of each row.
    weight : ndarray of shape (n_rows,)
        How many copies each row stands for.
    n_folds : int
        How many folds to make.
    seed : int
        Another seed gives other folds.

    Returns
    -------
    ndarray of shape (n_folds, n_rows)
        The weight of each row that each fold sets aside; over the folds that is all of it. There are fewer folds where
        there is not a row for each.
    """
    contents = _Contents(hashes, labels, weight, seed)
    # As shares of the copies of a row's content and class, fold f has those between ends f and f + 1.
    ends = np.zeros((n_folds + 1, len(weight)))
    for k, mass in enumerate(contents.mass.T):
        whole = np.where(contents.by_copy, 0.0, mass)
        heavy = whole > mass.sum() / n_folds * (1 + ROUNDING)
        light = np.where(heavy, 0.0, whole)
        middle = (np.cumsum(light) - 0.5 * light) / max(light.sum(), np.finfo(float).tiny)
        fold_of_light = np.minimum((middle * n_folds * (1 + ROUNDING)).astype(int), n_folds - 1)
        copies = np.maximum(1, np.rint(mass))
        drawn = np.zeros_like(copies)
        # A heavy content is dealt out copy by copy, and this fold is the first to get one.
        first = np.floor(contents.draw_chances(k) * n_folds)
        for fold in range(n_folds):
            chance = contents.draw_chances(1 + k * n_folds + fold)
            drawn = drawn + contents.draw(chance, copies - drawn, 1.0 / (n_folds - fold))
            dealt = np.floor((copies * (fold + 1) + first) / n_folds)
            until = np.where(contents.by_copy, drawn / copies, np.minimum(dealt / copies, 1.0))
            contents.tell_rows(k, np.where(contents.by_copy | heavy, until, fold_of_light <= fold), ends[fold + 1])
    ends[-1] = 1.0
    held_out = np.empty((n_folds, len(weight)))
    for fold, (low, high) in enumerate(pairwise(ends)):
        held_out[fold] = contents.find_weight_within(low, high)
    filled = held_out.any(axis=1)
    # To leave out empty folds takes a copy, which is large where rows are many.
    return held_out if filled.all() else np.asarray(held_out[filled])


def split_items_into_folds(
    hashes: NDArray[np.uint64],
    items: NDArray[np.intp],
    labels: NDArray[np.uint32],
    weight: Array,
    n_folds: int,
    seed: int,
) -> NDArray[np.float64]:
    """Share items out over folds, each with all its rows, whatever their labels.

    Items of the same contents stay together too, unless these are a sample of their own: frequent with several labels,
    or heavier than a fold. What stays together is dealt out in the order of its most frequent label, of that label's
    share, and then by chance, so that every fold has about as many of each kind.

    Parameters
    ----------
    hashes : ndarray of uint64 of shape (n_rows,)
        Equal for rows of the same contents.
    items : ndarray of int of shape (n_rows,)
        The number of each row's item, which must not depend on the order of the rows.
    labels : ndarray of uint32 of shape (n_rows,)
        The class of each row.
    weight : ndarray of shape (n_rows,)
        How many copies each row stands for.
    n_folds : int
        How many folds to make.
    seed : int
        Another seed gives other folds.

    Returns
    -------
    ndarray of shape (n_folds, n_rows)
        The weight of each row that each fold sets aside. There are fewer folds where there is not an item for each, and
        a ValueError where there are not two.

    Examples
    --------
    >>> items, labels = np.array([0, 0, 1, 1, 1, 2]), np.array([0, 1, 1, 1, 0, 0], dtype=np.uint32)
    >>> split_items_into_folds(items.astype(np.uint64), items, labels, np.ones(6), 2, seed=0)
    array([[1., 1., 1., 1., 1., 0.],
           [0., 0., 0., 0., 0., 1.]])
    """
    present = np.flatnonzero(weight)
    unit = _join_copies(hashes[present], items[present], labels[present], weight[present], n_folds)
    n_units = int(unit.max(initial=-1)) + 1
    if n_units < 2:
        raise ValueError("rows must be of two different items at least: one is set aside to judge what others teach")
    units = _Units(unit, hashes[present], items[present], labels[present], weight[present], seed)
    share = units.mass.max(axis=1) / units.mass.sum(axis=1)
    fold_of_unit = np.empty(n_units, dtype=np.intp)
    order = np.lexsort((units.first, units.chance, share, units.mass.argmax(axis=1)))
    fold_of_unit[order] = np.arange(n_units) % n_folds
    held_out = np.zeros((min(n_folds, n_units), len(weight)))
    held_out[fold_of_unit[unit], present] = weight[present]
    return held_out


def split_groups_into_folds(
    hashes: NDArray[np.uint64],
    groups: NDArray[np.uint64],
    labels: NDArray[np.uint32],
    weight: Array,
    n_folds: int,
    seed: int,
) -> NDArray[np.float64]:
    """Share groups of rows out over folds, each with all its rows.

    The heaviest group comes first, and each goes to the fold that has least of its classes, so that every fold has
    about as much of each class as groups allow.

    Parameters
    ----------
    hashes : ndarray of uint64 of shape (n_rows,)
        Equal for rows of the same contents.
    groups : ndarray of uint64 of shape (n_rows,)
        Equal for rows of the same group.
    labels : ndarray of uint32 of shape (n_rows,)
        The class of each row.
    weight : ndarray of shape (n_rows,)
        How many copies each row stands for.
    n_folds : int
        How many folds to make.
    seed : int
        Another seed gives other folds.

    Returns
    -------
    ndarray of shape (n_folds, n_rows)
        The weight of each row that each fold sets aside. There are fewer folds where there is not a group for each, and
        a ValueError where there are not two.

    Examples
    --------
    >>> groups, labels = np.array([5, 5, 6, 6, 7, 8]), np.array([0, 0, 1, 1, 0, 1], dtype=np.uint32)
    >>> split_groups_into_folds(np.arange(6, dtype=np.uint64), groups.astype(np.uint64), labels, np.ones(6), 2, seed=0)
    array([[1., 1., 0., 0., 0., 1.],
           [0., 0., 1., 1., 1., 0.]])
    """
    present = np.flatnonzero(weight)
    units, unit = _gather_groups(hashes, groups, labels, weight, seed)
    n_folds = min(n_folds, len(units.mass))
    fold_of_unit = _deal_out(units, np.full(n_folds, 1.0 / n_folds))
    held_out = np.zeros((n_folds, len(weight)))
    held_out[fold_of_unit[unit], present] = weight[present]
    return np.asarray(held_out[held_out.any(axis=1)])


def hold_out_groups(
    hashes: NDArray[np.uint64],
    groups: NDArray[np.uint64],
    labels: NDArray[np.uint32],
    weight: Array,
    share: float,
    seed: int,
) -> Array:
    """Set aside whole groups with about a share of the weight of every class, as near to it as groups allow.

    Parameters
    ----------
    hashes, groups, labels, weight, seed
        As for `split_groups_into_folds`.
    share : float
        How much to set aside, in (0, 1).

    Returns
    -------
    ndarray of shape (n_rows,)
        1 for a row that is set aside, else 0. One group at least is set aside, and one is not.
    """
    units, unit = _gather_groups(hashes, groups, labels, weight, seed)
    is_aside = _deal_out(units, np.array([1.0 - share, share])) == 1
    if is_aside.all() or not is_aside.any():
        lightest = units.order_by_weight()[-1]
        is_aside[:] = is_aside.all()
        is_aside[lightest] = not is_aside[lightest]
    held_out = np.zeros(len(weight))
    held_out[np.flatnonzero(weight)] = is_aside[unit]
    return held_out


def _gather_groups(
    hashes: NDArray[np.uint64], groups: NDArray[np.uint64], labels: NDArray[np.uint32], weight: Array, seed: int
) -> tuple[_Units, NDArray[np.intp]]:
    """Return the groups of the rows with a weight, and the number of each such row's group; rows without are absent."""
    present = np.flatnonzero(weight)
    _, unit = np.unique(groups[present], return_inverse=True)
    if unit.max(initial=0) < 1:
        raise ValueError("groups must be two at least among the rows with a weight: one is set aside to judge others")
    return _Units(unit, hashes[present], unit, labels[present], weight[present], seed), unit


class _Units:
    """What stays together when rows are set aside: the weight of each unit by class, and its place in a random order.

    `chance` follows from what rows hold, so that names play no part; `first` tells those apart that hold the same.
    """

    def __init__(
        self,
        unit: NDArray[np.intp],
        hashes: NDArray[np.uint64],
        names: NDArray[np.intp],
        labels: NDArray[np.uint32],
        weight: Array,
        seed: int,
    ) -> None:
        n_units = int(unit.max(initial=-1)) + 1
        classes, label = np.unique(labels, return_inverse=True)
        by_class = add_up_by_group(weight, unit * len(classes) + label, n_units * len(classes))
        self.mass = by_class.reshape(n_units, len(classes))
        self.chance = np.full(n_units, np.iinfo(np.uint64).max, dtype=np.uint64)
        np.minimum.at(self.chance, unit, _salt(hashes, seed))
        self.first = np.full(n_units, np.iinfo(np.intp).max)
        np.minimum.at(self.first, unit, names)

    def order_by_weight(self) -> NDArray[np.intp]:
        """Return the units, the heaviest first, and those of equal weight by chance."""
        return np.lexsort((self.first, self.chance, -self.mass.sum(axis=1)))


def _deal_out(units: _Units, targets: Array) -> NDArray[np.intp]:
    """Return the part of each unit, so that of each class every part has about its target share.

    A unit goes where it adds least to the sum, over parts and classes, of the squared share of a class over the target
    of the part, which is lowest where all shares are as they should be.
    """
    order = units.order_by_weight()
    share = units.mass / [max(add_up(one), np.finfo(float).tiny) for one in units.mass.T]
    part = np.searchsorted(np.cumsum(targets[:-1]), _scale_to_unit(mix_bits(units.chance)), side="right")
    filled = np.zeros((len(targets), share.shape[1]))
    for unit in order[:MOST_DEALT].tolist():
        added = (filled + 0.5 * share[unit]) @ share[unit] / targets
        # What is equal but for rounding goes to the part that has least of all classes.
        close = np.flatnonzero(added <= added.min() * (1 + ROUNDING))
        part[unit] = close[np.argmin(filled[close].sum(axis=1) / targets[close])]
        filled[part[unit]] += share[unit]
    return part


def _join_copies(
    hashes: NDArray[np.uint64], items: NDArray[np.intp], labels: NDArray[np.uint32], weight: Array, n_folds: int
) -> NDArray[np.intp]:
    """Return a number for each row that is the same for rows that stay together: of one item, or copies."""
    keys, content = np.unique(hashes, return_inverse=True)
    names, item = np.unique(items, return_inverse=True)
    mass = add_up_by_group(weight, content, len(keys))
    n_labels, n_items = (_count_different(content, other) for other in (labels, item))
    is_frequent = mass >= FREQUENT * (1 - ROUNDING)
    is_heavy = mass > add_up(weight) / n_folds * (1 + ROUNDING)
    is_sample = is_frequent & (n_labels > 1) | is_heavy
    joins = ~(is_sample & (n_items > 1))[content]
    edges = (np.ones(np.count_nonzero(joins)), (item[joins], len(names) + content[joins]))
    n_nodes = len(names) + len(keys)
    _, unit_of_node = connected_components(coo_array(edges, shape=(n_nodes, n_nodes)), directed=False)
    return np.asarray(np.unique(unit_of_node[item], return_inverse=True)[1], dtype=np.intp)


def _count_different(group: NDArray[np.intp], values: NDArray[Any]) -> NDArray[np.intp]:
    """Return how many different values each group has."""
    order = np.lexsort((values, group))
    is_new = np.append(True, (np.diff(group[order]) != 0) | (values[order][1:] != values[order][:-1]))
    return np.bincount(group[order][is_new])


def draw_share(hashes: NDArray[np.uint64], share: float, seed: int) -> Array:
    """Set aside about a share of the contents; a row's contents alone decide.

    Parameters
    ----------
    hashes : ndarray of uint64 of shape (n_rows,)
        Equal for rows of the same contents.
    share : float
        How much to set aside, in [0, 1].
    seed : int
        Another seed gives another choice.

    Returns
    -------
    ndarray of shape (n_rows,)
        1 for a row that is set aside, else 0.
    """
    return (_draw_chances(hashes, seed) < share).astype(np.float64)


def draw_folds(hashes: NDArray[np.uint64], weight: Array, n_folds: int, seed: int) -> NDArray[np.float64]:
    """Share rows out over folds; a row's contents alone tell which fold.

    Parameters
    ----------
    hashes : ndarray of uint64 of shape (n_rows,)
        Equal for rows of the same contents.
    weight : ndarray of shape (n_rows,)
        The weight of each row.
    n_folds : int
        How many folds to make.
    seed : int
        Another seed gives other folds.

    Returns
    -------
    ndarray of shape (n_folds, n_rows)
        The weight of each row that each fold sets aside.
    """
    fold = np.floor(_draw_chances(hashes, seed) * n_folds)
    return np.stack([np.where(fold == one, weight, 0.0) for one in range(n_folds)])


def _draw_chances(hashes: NDArray[np.uint64], seed: int) -> Array:
    """Draw a number in [0, 1) for each row."""
    return _scale_to_unit(_salt(hashes, seed))


def _salt(hashes: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Make the hashes depend on the seed."""
    return mix_bits(hashes ^ mix_bits(np.array([seed], dtype=np.uint64)))


def _scale_to_unit(bits: NDArray[np.uint64]) -> Array:
    """Return the upper 53 bits as a number in [0, 1)."""
    return np.asarray((bits >> np.uint64(11)) * 2.0**-53)


class _Contents:
    """Rows by what they contain: the weight of each content, in an order drawn by a seed, and class.

    The copies of a content in a class lie side by side on [0, 1], each as long as its weight: a part of that line is a
    part of the copies, and which of them does not matter. `mass` is the weight by content and class, `by_copy` tells
    the contents whose copies are a sample of their own.
    """

    def __init__(self, hashes: NDArray[np.uint64], labels: NDArray[np.uint32], weight: Array, seed: int) -> None:
        self._keys, self._content = np.unique(_salt(hashes, seed), return_inverse=True)
        classes, self._label = np.unique(labels, return_inverse=True)
        by_class = np.argsort(self._label, kind="stable")
        self._rows_of_class = np.split(by_class, np.cumsum(np.bincount(self._label))[:-1])
        self._weight = weight
        self._weights_are_whole = bool((weight == np.floor(weight)).all())
        self.mass = np.zeros((len(self._keys), len(classes)))
        group = self._content * len(classes) + self._label
        # Copies are ordered by weight, so that the order of the rows does not matter.
        order = np.lexsort((weight, group))
        np.add.at(self.mass, (self._content[order], self._label[order]), weight[order])
        self.by_copy = (self.mass.sum(axis=1) >= FREQUENT) & ((self.mass > 0).sum(axis=1) > 1)
        until = np.cumsum(weight[order])
        start_of_group = np.searchsorted(group[order], group[order], side="left")
        before = until[start_of_group] - weight[order][start_of_group]
        mass = np.maximum(self.mass[self._content, self._label][order], np.finfo(float).tiny)
        self._start = np.empty(len(weight))
        self._end = np.empty(len(weight))
        self._start[order] = (until - weight[order] - before) / mass
        self._end[order] = (until - before) / mass

    def draw_chances(self, salt: int) -> Array:
        """Draw a number in [0, 1) for each content."""
        return _scale_to_unit(mix_bits(self._keys ^ np.uint64(salt)))

    def draw(self, chance: Array, copies: Array, share: float) -> Array:
        """Draw a number of copies, binomially; 0 where a content is no sample of its own."""
        drawn = np.zeros_like(copies)
        if not self.by_copy.any():
            return drawn
        sampled = copies[self.by_copy]
        limited = np.minimum(sampled, MOST_DRAWN)
        binomial = binom.ppf(chance[self.by_copy], limited, share).clip(0)
        drawn[self.by_copy] = np.where(sampled > limited, np.rint(sampled * share), binomial)
        return drawn

    def look_up(self, table: Array) -> Array:
        """Return what a table by content and class says of each row."""
        return np.asarray(table[self._content, self._label])

    def tell_rows(self, k: int, said: Array, out: Array) -> None:
        """Write what is said of each content to the rows of a class."""
        rows = self._rows_of_class[k]
        out[rows] = said[self._content[rows]]

    def find_weight_within(self, low: Array, high: Array) -> Array:
        """Return the weight of each row between its positions `low` and `high` among those of its content and class."""
        length = np.maximum(self._end - self._start, np.finfo(float).tiny)
        end = np.minimum(self._end, high)
        start = np.maximum(self._start, low)
        share = ((end - start) / length).clip(0.0, 1.0)
        # A copy that lies within one part is there as a whole: what rounding leaves elsewhere is no weight to train on.
        share = np.where(np.abs(share - np.rint(share)) < ROUNDING, np.rint(share), share)
        part = self._weight * share
        # Whole copies stay whole.
        return np.asarray(np.rint(part) if self._weights_are_whole else part)


def mix_bits(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Take one step of splitmix64: every bit of the result depends on every bit of x.

    Parameters
    ----------
    x : ndarray of uint64
        Any numbers.

    Returns
    -------
    ndarray of uint64
        As many numbers that look random.
    """
    with np.errstate(over="ignore"):
        x = x + GOLDEN_RATIO
        x = (x ^ (x >> np.uint64(30))) * FIRST_MULTIPLIER
        x = (x ^ (x >> np.uint64(27))) * SECOND_MULTIPLIER
        return x ^ (x >> np.uint64(31))
