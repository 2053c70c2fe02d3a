"""Who gave the labels: how good every source is, what several labels of an item say together, and who disagrees.

A source is whoever or whatever gave a label. An item is a thing that several sources may have labelled. What each
source gets wrong is estimated in `untwist.noise.sources`; here it becomes what a person asks for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from untwist.arguments import Array
from untwist.audit.discoveries import FALSE_DISCOVERY_RATE, select_discoveries
from untwist.audit.statements import write_count, write_shares
from untwist.display import write_range, write_share
from untwist.noise.sources import NoiseBySource
from untwist.sums import add_up_by_group

__all__ = ["Disagreement", "JudgedItem", "SourceQuality", "find_disagreements", "judge_items", "rate_sources"]

#: The matrices of so many pairs are compared together.
PAIRS_PER_BLOCK = 10_000

#: With fewer labels than this nobody is asked whether a source has mixed up its classes.
ENOUGH_LABELS = 10

#: Beyond this many times as often the number says no more, as it is divided by next to nothing.
MOST_TIMES = 20.0

#: Below this many times as often it is not worth a word.
LEAST_TIMES = 1.5


@dataclass(frozen=True)
class SourceQuality:
    """How good the labels of a source are.

    Parameters
    ----------
    name : object
        The source.
    labels : int
        How many labels it gave.
    share_wrong : float
        The share of them that is wrong.
    low, high : float
        The 95 % interval of that share.
    expected_wrong : float
        How many of them are expected to be wrong, by what is known of each.
    others : float
        The share of wrong labels among those of all other sources; NaN where there is no other.
    class_shares : tuple of tuples
        For each true class its name, the share of it that gets another label, and the 95 % interval of that share.
    stands_out : bool
        Whether it is noisier than the others, at the false discovery rate of `untwist.noise.sources`.
    tells_how_many : bool
        Whether shares can be told. Where they cannot, they are lower limits at best, and words leave them out.
    """

    name: Any
    labels: int
    share_wrong: float
    low: float
    high: float
    expected_wrong: float
    others: float
    class_shares: tuple[tuple[Any, float, float, float], ...]
    stands_out: bool
    tells_how_many: bool = True

    @property
    def times_as_often(self) -> float:
        """How many times as often as those of the other sources its labels are wrong; NaN where there is no other."""
        return self.share_wrong / self.others if self.others > 0 else math.inf if self.others == 0 else math.nan

    @property
    def worst_class(self) -> tuple[Any, float, float, float]:
        """The true class that it mislabels most often, with that share and its interval."""
        return max(self.class_shares, key=lambda one: one[1])

    @property
    def errs_in_one_class(self) -> bool:
        """Whether it is noisier than the others, and in one class clearly more than in all."""
        return self.stands_out and self.worst_class[2] > self.high

    @property
    def is_mostly_wrong(self) -> bool:
        """Whether more than a few labels show that most of them are wrong."""
        return self.labels >= ENOUGH_LABELS and self.low > 0.5

    def __str__(self) -> str:
        if not self.tells_how_many:
            if self.stands_out:
                return f"labels of {self.name} are wrong more often than those of the others"
            return f"how many labels of {self.name} are wrong cannot be told"
        limits = write_range(self.low, self.high)
        share = f"{write_share(self.share_wrong)} of the labels of {self.name} are wrong ({limits})"
        number = f"about {write_count(self.expected_wrong)} of {self.labels:,}"
        return f"{share}{self._compare()}: {number}{self._name_worst_class()}{self._advise()}"

    def _name_worst_class(self) -> str:
        if not self.errs_in_one_class:
            return ""
        name, *limits = self.worst_class
        return f", most of all what is truly {name}, {write_shares((limits[0], limits[1], limits[2]))} of it"

    def _compare(self) -> str:
        times = self.times_as_often
        if math.isnan(times) or times < LEAST_TIMES:
            return ""
        number = f"{times:.1f}".removesuffix(".0") if times <= MOST_TIMES else f"more than {MOST_TIMES:g}"
        return f", {number} times as often as those of the others"

    def _advise(self) -> str:
        if not self.stands_out:
            return ""
        if self.is_mostly_wrong:
            return "; most of what it says is wrong: were its classes mixed up?"
        return "; review them first, or leave them out"


@dataclass(frozen=True)
class Disagreement:
    """Two sources that labelled the same items.

    Parameters
    ----------
    first, second : object
        The sources.
    items : int
        How many items both have labelled.
    share : float
        The share of these on which they disagree.
    expected : float
        The share that the quality of both explains.
    stands_out : bool
        Whether they disagree on more than that, by more than chance.
    """

    first: Any
    second: Any
    items: int
    share: float
    expected: float
    stands_out: bool

    def __str__(self) -> str:
        shared = f"{self.items:,} items" if self.items > 1 else "1 item"
        words = f"{self.first} and {self.second} disagree on {write_share(self.share)} of {shared}"
        return f"{words}; their quality explains {write_share(self.expected)}"


@dataclass(frozen=True)
class JudgedItem:
    """An item with all of its labels.

    Parameters
    ----------
    item : object
        Its name, or the position of its first row where items have none.
    truth : object
        The class that it most likely is, by its features and its labels.
    probability : float
        The probability of that class.
    agreement : float
        The share of its labels that say so.
    votes : tuple of tuples
        Each source with its label; None where the source is not known.
    """

    item: Any
    truth: Any
    probability: float
    agreement: float
    votes: tuple[tuple[Any, Any], ...]

    def __str__(self) -> str:
        votes = ", ".join(f"{label} by {'an unknown source' if name is None else name}" for name, label in self.votes)
        return f"{self.item}: {self.truth} ({self.probability:.0%} sure), from {votes}"


def rate_sources(
    by_source: NoiseBySource, classes: NDArray[Any], sources: NDArray[np.intp], wrong: Array, weight: Array
) -> list[SourceQuality]:
    """Return how good every source is, those that stand out first, and of each kind the worst first.

    Parameters
    ----------
    by_source : NoiseBySource
        What each source gets wrong.
    classes : array
        The labels that there are.
    sources : array of int
        The index of each row's source; -1 where it is not known.
    wrong, weight : arrays
        The probability that each label is wrong, and what it weighs; labels of weight 0 do not count.

    Returns
    -------
    list of SourceQuality
    """
    n_sources = len(by_source.names)
    known = (sources >= 0) & (weight > 0)
    labels = np.bincount(sources[known], minlength=n_sources)
    expected = add_up_by_group(wrong[known], sources[known], n_sources)
    mass = by_source.counts
    n_others = mass.sum() - mass
    wrong_elsewhere = mass @ by_source.shares - mass * by_source.shares
    others = np.divide(wrong_elsewhere, n_others, out=np.full(n_sources, math.nan), where=n_others > 0).clip(0.0, 1.0)
    class_shares = 1.0 - np.diagonal(by_source.matrices, axis1=1, axis2=2)
    worst_first = np.lexsort((np.arange(n_sources), -by_source.shares, ~by_source.stands_out))
    names = by_source.names.tolist()
    return [
        SourceQuality(
            name=names[one],
            labels=int(labels[one]),
            share_wrong=float(by_source.shares[one]),
            low=float(by_source.intervals[one, 0]),
            high=float(by_source.intervals[one, 1]),
            expected_wrong=float(expected[one]),
            others=float(others[one]),
            class_shares=tuple(
                (name, share, low, high)
                for name, share, (low, high) in zip(
                    classes.tolist(), class_shares[one].tolist(), by_source.class_intervals[one].tolist(), strict=True
                )
            ),
            stands_out=bool(by_source.stands_out[one]),
            tells_how_many=by_source.tells_how_many,
        )
        for one in worst_first.tolist()
    ]


def find_disagreements(
    by_source: NoiseBySource,
    truth: Array,
    labels: NDArray[np.intp],
    sources: NDArray[np.intp],
    items: NDArray[np.intp],
) -> list[Disagreement]:
    """Return who disagrees with whom: pairs of sources that labelled the same items.

    If each errs by itself, two sources disagree on an item of class k with probability 1 - sum_l T[k, l] T'[k, l],
    where T and T' are their matrices. More than that, beyond chance, suggests that they do not mean the same by the
    classes, or do not see the same of an item. A pair stands out by a binomial test and the rule of Benjamini and
    Hochberg.

    Parameters
    ----------
    by_source : NoiseBySource
        What each source gets wrong.
    truth : array of shape (n_rows, n_classes)
        The probability of each class to be the truth, row by row.
    labels, sources, items : arrays of int
        The label, the source (-1 where it is not known) and the item of each row.

    Returns
    -------
    list of Disagreement
        Those that stand out first, and of each kind the one with most disagreements beyond what quality explains.
    """
    first, second = _pair_rows(sources, items)
    if not len(first):
        return []
    n_sources = len(by_source.names)
    key = sources[first] * n_sources + sources[second]
    pairs, pair = np.unique(key, return_inverse=True)
    one, other = np.divmod(pairs, n_sources)
    agree = np.empty((len(pairs), truth.shape[1]))
    for start in range(0, len(pairs), PAIRS_PER_BLOCK):
        here = slice(start, start + PAIRS_PER_BLOCK)
        agree[here] = np.einsum("pkl,pkl->pk", by_source.matrices[one[here]], by_source.matrices[other[here]])
    expected_here = 1.0 - (truth[first] * agree[pair]).sum(axis=1)
    n_items = np.bincount(pair)
    n_disagreeing = np.bincount(pair, labels[first] != labels[second])
    expected = (add_up_by_group(expected_here, pair, len(n_items)) / n_items).clip(0.0, 1.0)
    stands_out = select_discoveries(binom.sf(n_disagreeing - 1, n_items, expected), FALSE_DISCOVERY_RATE)
    excess = n_disagreeing - n_items * expected
    names = by_source.names.tolist()
    return [
        Disagreement(
            first=names[one[index]],
            second=names[other[index]],
            items=int(n_items[index]),
            share=float(n_disagreeing[index] / n_items[index]),
            expected=float(expected[index]),
            stands_out=bool(stands_out[index]),
        )
        for index in np.lexsort((np.arange(len(pairs)), -excess, ~stands_out)).tolist()
    ]


def _pair_rows(sources: NDArray[np.intp], items: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return all pairs of rows of one item by two known sources, the source with the lower index first."""
    known = np.flatnonzero(sources >= 0)
    rows = known[np.lexsort((sources[known], items[known]))]
    _, starts, sizes = np.unique(items[rows], return_index=True, return_counts=True)
    found = []
    for size in np.unique(sizes[sizes > 1]).tolist():
        upper = np.stack(np.triu_indices(size, k=1))
        places = starts[sizes == size][None, :, None] + upper[:, None, :]
        found.append(rows[places.reshape(2, -1)])
    if not found:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    first, second = np.concatenate(found, axis=1)
    differ = sources[first] != sources[second]
    return first[differ], second[differ]


def judge_items(
    classes: NDArray[Any],
    truth: Array,
    labels: NDArray[np.intp],
    sources: NDArray[Any],
    items: NDArray[np.intp],
    names: NDArray[Any],
) -> list[JudgedItem]:
    """Return every item with the class that it most likely is.

    Parameters
    ----------
    classes : array
        The labels that there are.
    truth : array of shape (n_rows, n_classes)
        The probability of each class to be the truth, row by row; the same in all rows of an item.
    labels : array of int
        The index of each row's label.
    sources : array
        The name of each row's source; None where it is not known.
    items : array of int
        The item of each row.
    names : array
        The name of each item.

    Returns
    -------
    list of JudgedItem
        In the order of their names.
    """
    rows = np.argsort(items, kind="stable")
    likeliest = truth.argmax(axis=1)
    item_names, class_names = names.tolist(), classes.tolist()
    found = []
    for of_item in np.split(rows, np.flatnonzero(np.diff(items[rows])) + 1):
        here = of_item[0]
        best = int(likeliest[here])
        found.append(
            JudgedItem(
                item=item_names[items[here]],
                truth=class_names[best],
                probability=float(truth[here, best]),
                agreement=float(np.mean(labels[of_item] == best)),
                votes=tuple(zip(sources[of_item].tolist(), classes[labels[of_item]].tolist(), strict=True)),
            )
        )
    return found
