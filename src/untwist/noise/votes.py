"""Labels as votes: which source gave which label to which item, in an order that depends on what they contain alone.

An item is what several sources may have labelled. Sums over votes are taken in one order, whatever that of the rows and
whatever the names of sources and items, so that no bit of an estimate depends on these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.noise.plausibility import scramble_bits

__all__ = ["Votes", "arrange_votes"]

# Two classes with one vote an item are summed in so many bins of the posterior.
N_BINS = 64
# Weights that add up to more than this count for this much: so many labels leave no doubt that more would remove.
MOST_TELLING_WEIGHT = 1e7
# Numbers that differ by less than this count as equal.
ROUNDING = 1e-9


class Votes(NamedTuple):
    """Votes by item, and what is known of the items before any vote.

    Attributes
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        The twisted posterior of each item.
    weight : ndarray of shape (n_items,)
        How many items each one stands for.
    first : ndarray of int of shape (n_items,)
        The first vote of each item; its votes are consecutive.
    item, source, label : ndarray of int of shape (n_votes,)
        Whose vote it is, by whom, and for which class.
    pooled_weight : ndarray of shape (n_votes,)
        How much each vote weighed where the posterior was learned, 1 in the mean.
    n_sources : int
        How many sources there are.
    original : ndarray of int of shape (n_sources,)
        The index that the caller has for each source, as sources are sorted here by their votes.
    """

    posterior: Array
    weight: Array
    first: NDArray[np.intp]
    item: NDArray[np.intp]
    source: NDArray[np.intp]
    label: NDArray[np.intp]
    pooled_weight: Array
    n_sources: int
    original: NDArray[np.intp]

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.posterior.shape[1])

    @property
    def vote_weight(self) -> Array:
        """How many votes each one stands for."""
        return np.asarray(self.weight[self.item])

    @property
    def has_repeated_items(self) -> bool:
        """Whether some item has several votes."""
        return len(self.first) < len(self.item)

    @property
    def has_several_votes(self) -> NDArray[np.bool_]:
        """Of each item whether it has several votes."""
        return np.asarray(np.diff(np.append(self.first, len(self.item))) > 1)

    def sum_by_source_and_label(self, values: Array) -> Array:
        """Return sums over votes, of shape (n_sources, n_labels)."""
        cell = self.source * self.n_classes + self.label
        summed = np.bincount(cell, values, self.n_sources * self.n_classes).astype(np.float64)
        return summed.reshape(self.n_sources, self.n_classes)


def arrange_votes(
    posterior: Array,
    labels: NDArray[np.intp],
    sources: NDArray[np.intp],
    items: NDArray[np.intp] | None,
    weight: Array,
    pooled_weight: Array,
    n_sources: int,
) -> Votes:
    """Return the votes that count, in an order by what they contain.

    Parameters
    ----------
    posterior : ndarray of shape (n_rows, n_classes)
        The twisted posterior, the same for all rows of an item.
    labels, sources, items : ndarray of int of shape (n_rows,)
        The label of each row, its source, and its item; None where every row is an item of its own.
    weight, pooled_weight : ndarray of shape (n_rows,)
        How much each row counts, and how much it did where the posterior was learned.
    n_sources : int
        How many sources there are.

    Returns
    -------
    Votes
        Without rows of weight 0 and without those of an unknown source, -1.
    """
    counts = (weight > 0) & (sources >= 0)
    posterior, labels, sources = posterior[counts], labels[counts], sources[counts]
    weight, pooled_weight = weight[counts], pooled_weight[counts]
    items = np.arange(len(labels)) if items is None else np.unique(items[counts], return_inverse=True)[1]
    n_items = int(items.max()) + 1
    several = n_items < len(labels)
    source_code, item_code = _encode_contents(posterior, labels, sources, items, weight, n_sources, n_items)
    rank = np.empty(n_sources, dtype=np.intp)
    original = np.argsort(source_code, kind="stable")
    rank[original] = np.arange(n_sources)
    sources = rank[sources]
    keys = (pooled_weight, weight, labels, sources, items, item_code[items], *posterior.T)
    if not several:
        # Rows of equal keys are equal, and the number of an item is not one of them.
        keys = (pooled_weight, weight, labels, sources, *posterior.T)
    order = np.lexsort(keys)
    posterior, labels, sources, items = posterior[order], labels[order], sources[order], items[order]
    weight, pooled_weight = weight[order], pooled_weight[order]
    first = np.flatnonzero(np.concatenate([[True], items[1:] != items[:-1]]))
    sizes = np.diff(np.append(first, len(labels)))
    item_weight = np.add.reduceat(weight, first) / sizes
    votes = float((item_weight * sizes).sum())
    item_weight = item_weight * (min(max(votes, len(labels)), MOST_TELLING_WEIGHT) / votes)
    arranged = Votes(
        posterior=posterior[first],
        weight=item_weight,
        first=first,
        item=np.repeat(np.arange(len(first)), sizes),
        source=sources,
        label=labels,
        pooled_weight=pooled_weight * (len(pooled_weight) / pooled_weight.sum()),
        n_sources=n_sources,
        original=original,
    )
    return arranged if several or posterior.shape[1] > 2 else _merge_in_bins(arranged)


def _encode_contents(
    posterior: Array,
    labels: NDArray[np.intp],
    sources: NDArray[np.intp],
    items: NDArray[np.intp],
    weight: Array,
    n_sources: int,
    n_items: int,
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return a code of each source and of each item by which both can be sorted, whatever they are called.

    It depends on their votes, in any order, and on nothing else.
    """
    bits = scramble_bits(np.ascontiguousarray(posterior).view(np.uint64))
    places = scramble_bits(np.arange(posterior.shape[1], dtype=np.uint64))
    content = scramble_bits((bits * (places | np.uint64(1))).sum(axis=1, dtype=np.uint64))
    vote = scramble_bits(
        content + scramble_bits(labels.astype(np.uint64)) + np.ascontiguousarray(weight).view(np.uint64)
    )
    source_code = np.zeros(n_sources, dtype=np.uint64)
    np.add.at(source_code, sources, vote)
    item_code = np.zeros(n_items, dtype=np.uint64)
    np.add.at(item_code, items, scramble_bits(vote + source_code[sources]))
    return source_code, item_code


def _merge_in_bins(votes: Votes) -> Votes:
    """Return votes of two classes, one an item, with those of a source and a label in one bin of the posterior as one.

    The likelihood of a vote is a smooth function of the posterior, and bins of equal weight lose next to nothing of it.
    """
    n_rows = len(votes.label)
    if n_rows <= votes.n_sources * 2 * N_BINS:
        return votes
    # The rows are sorted by the posterior of the second class, and equal ones belong to one bin.
    index = np.unique(votes.posterior[:, 1], return_inverse=True)[1]
    mass = np.bincount(index, votes.weight)
    place = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    in_bin = np.minimum((place * N_BINS * (1.0 + ROUNDING)).astype(np.intp), N_BINS - 1)[index]
    cell = (in_bin * votes.n_sources + votes.source) * 2 + votes.label
    cells, index = np.unique(cell, return_inverse=True)
    weight = np.bincount(index, votes.weight).astype(np.float64)
    in_bins = np.bincount(in_bin, votes.weight, N_BINS)
    moment = np.bincount(in_bin, votes.weight * votes.posterior[:, 1], N_BINS)
    mean = (moment / np.where(in_bins > 0, in_bins, 1.0))[cells // (2 * votes.n_sources)]
    everything = np.arange(len(cells))
    return votes._replace(
        posterior=np.column_stack([1.0 - mean, mean]),
        weight=weight,
        first=everything,
        item=everything,
        source=cells // 2 % votes.n_sources,
        label=cells % 2,
        pooled_weight=np.bincount(index, votes.weight * votes.pooled_weight) / weight,
    )
