"""Rows set aside by what they contain, not by where they stand: any order of the rows gives the same choice.

Copies of a row stay together, and a row of weight 2 is two copies: what was trained on must not come back to judge.
Only where a content is frequent and has several labels, as in a table of few values, its copies are a sample of their
own, and part of them is drawn.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from untwist.arguments import Array

__all__ = ["cross_folds", "drawn_folds", "drawn_share", "hold_out", "mixed"]

FREQUENT = 10  # copies from which on a content with several labels is a sample of its own
MANY = 1e9  # copies


def hold_out(hashes: NDArray[np.uint64], labels: NDArray[np.uint32], weight: Array, share: float, seed: int) -> Array:
    """How much of each row's weight is set aside, in [0, 1], for about `share` of the weight of every class.

    `hashes` tell which rows have the same contents.
    """
    contents = _Contents(hashes, labels, weight, seed)
    held = np.zeros_like(contents.mass)
    for k, mass in enumerate(contents.mass.T):
        copies = np.maximum(1, np.rint(mass))
        drawn = np.minimum(contents.drawn(contents.chance(k), copies, share), np.maximum(copies - 1, 0))  # some stay
        whole = np.where(contents.own_sample, 0.0, mass)
        heavy = whole > share * mass.sum() * (1 + 1e-9)  # more than may be set aside: shared out
        light = np.where(heavy, 0.0, whole)
        filled = np.cumsum(light)
        taken = (filled - 0.5 * light <= share * light.sum() * (1 + 1e-9)) & (filled < mass.sum() * (1 - 1e-9))
        held[:, k] = np.where(contents.own_sample, drawn / copies, np.where(heavy, share, taken & (light > 0)))
    if not (held * contents.mass).any():
        held[:] = share  # few copies, and none was drawn: each gives a part
    return contents.of_rows(held)


def cross_folds(
    hashes: NDArray[np.uint64], labels: NDArray[np.uint32], weight: Array, n_folds: int, seed: int
) -> NDArray[np.float64]:
    """For every fold, the weight of each row that it sets aside; over the folds that is all of it.

    There are fewer folds where there is not a row for each.
    """
    contents = _Contents(hashes, labels, weight, seed)
    ends = np.zeros((n_folds + 1, *contents.mass.shape))  # fold f has the copies between ends f and f + 1, as shares
    for k, mass in enumerate(contents.mass.T):
        whole = np.where(contents.own_sample, 0.0, mass)
        heavy = whole > mass.sum() / n_folds * (1 + 1e-9)
        light = np.where(heavy, 0.0, whole)
        middle = (np.cumsum(light) - 0.5 * light) / max(light.sum(), np.finfo(float).tiny)
        place = np.minimum((middle * n_folds * (1 + 1e-9)).astype(int), n_folds - 1)
        copies = np.maximum(1, np.rint(mass))
        drawn = np.zeros_like(copies)
        first = np.floor(contents.chance(k) * n_folds)  # the fold that begins to share out a heavy content
        for fold in range(n_folds):
            chance = contents.chance(1 + k * n_folds + fold)
            drawn = drawn + contents.drawn(chance, copies - drawn, 1.0 / (n_folds - fold))
            dealt = np.floor((copies * (fold + 1) + first) / n_folds)
            mixed = np.where(contents.own_sample, drawn / copies, np.minimum(dealt / copies, 1.0))
            ends[fold + 1, :, k] = np.where(contents.own_sample | heavy, mixed, place <= fold)
        ends[-1, :, k] = 1.0
    held = np.empty((n_folds, len(weight)))
    for fold, (low, high) in enumerate(pairwise(ends)):
        held[fold] = contents.weight_within(low, high)
    some = held.any(axis=1)
    return held if some.all() else np.asarray(held[some])  # no copy where rows are many


def drawn_share(hashes: NDArray[np.uint64], share: float, seed: int) -> Array:
    """1 for about `share` of the contents, else 0: row by row, for who sees a part of the rows only."""
    return (_chance(hashes, seed) < share).astype(np.float64)


def drawn_folds(hashes: NDArray[np.uint64], weight: Array, n_folds: int, seed: int) -> NDArray[np.float64]:
    """For every fold, the weight of each row that it sets aside; a row's contents alone tell which fold."""
    fold = np.floor(_chance(hashes, seed) * n_folds)
    return np.stack([np.where(fold == one, weight, 0.0) for one in range(n_folds)])


def _chance(hashes: NDArray[np.uint64], seed: int) -> Array:
    """A number in [0, 1) for each row."""
    drawn = mixed(hashes ^ mixed(np.array([seed], dtype=np.uint64)))
    return np.asarray((drawn >> np.uint64(11)) * 2.0**-53)


class _Contents:
    """Rows by what they contain: the weight of each content, in an order drawn by `seed`, and class.

    The copies of a content in a class lie side by side on [0, 1], each as long as its weight: a part of that line is a
    part of the copies, and which of them does not matter.
    """

    def __init__(self, hashes: NDArray[np.uint64], labels: NDArray[np.uint32], weight: Array, seed: int) -> None:
        drawn = mixed(hashes ^ mixed(np.array([seed], dtype=np.uint64)))
        self._keys, self._content = np.unique(drawn, return_inverse=True)
        classes, self._label = np.unique(labels, return_inverse=True)
        self._weight, self._counts = weight, bool((weight == np.floor(weight)).all())
        self.mass = np.zeros((len(self._keys), len(classes)))
        group = self._content * len(classes) + self._label
        order = np.lexsort((weight, group))  # copies by weight, so that the order of the rows does not matter
        np.add.at(self.mass, (self._content[order], self._label[order]), weight[order])
        self.own_sample = (self.mass.sum(axis=1) >= FREQUENT) & ((self.mass > 0).sum(axis=1) > 1)
        until = np.cumsum(weight[order])
        start_of_group = np.searchsorted(group[order], group[order], side="left")
        before = until[start_of_group] - weight[order][start_of_group]
        mass = np.maximum(self.mass[self._content, self._label][order], np.finfo(float).tiny)
        self._start, self._end = np.empty(len(weight)), np.empty(len(weight))
        self._start[order] = (until - weight[order] - before) / mass
        self._end[order] = (until - before) / mass

    def chance(self, salt: int) -> Array:
        """A number in [0, 1) for each content."""
        return np.asarray((mixed(self._keys ^ np.uint64(salt)) >> np.uint64(11)) * 2.0**-53)

    def drawn(self, chance: Array, copies: Array, share: float) -> Array:
        """How many of the copies are drawn, binomially; 0 where a content is no sample of its own."""
        count = np.zeros_like(copies)
        own = self.own_sample
        few = np.minimum(copies[own], MANY)  # as exact as it gets: of more there is no telling the mean from a draw
        count[own] = np.where(
            copies[own] > few, np.rint(copies[own] * share), binom.ppf(chance[own], few, share).clip(0)
        )
        return count

    def of_rows(self, table: Array) -> Array:
        """What a table by content and class says of each row."""
        return np.asarray(table[self._content, self._label])

    def weight_within(self, low: Array, high: Array) -> Array:
        """The weight of each row between the places `low` and `high` of its content and class."""
        low, high = self.of_rows(low), self.of_rows(high)
        length = np.maximum(self._end - self._start, np.finfo(float).tiny)
        share = (np.minimum(self._end, high) - np.maximum(self._start, low)) / length
        part = self._weight * share.clip(0.0, 1.0)
        return np.asarray(np.rint(part) if self._counts else part)  # whole copies stay whole


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of splitmix64: every bit of the result depends on every bit of x."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
