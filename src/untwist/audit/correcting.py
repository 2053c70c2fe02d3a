"""Whether labels may be replaced by what the audit takes for right without anybody looking at them.

They are where noise was found, between a true class and a label that features tell apart. Of several classes it may
still make labels worse where a class has few rows: its own labels say too little of it, and right ones look wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array
from untwist.audit.confusions import expect_labels
from untwist.audit.context import find_positions
from untwist.audit.reviewed import claims_noise
from untwist.data.cells import list_some
from untwist.sums import add_up

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = [
    "LEAST_ROWS",
    "UNDECIDED",
    "count_expected",
    "doubt_correction",
    "find_likely_wrong",
    "find_line",
    "find_settled",
    "lie_along_order",
]

#: A class has this many rows, at least, where labels are replaced without a look.
LEAST_ROWS = 50
#: Why labels are not replaced where no noise was found between their classes.
UNDECIDED = "it is undecided whether labels are wrong or rows are hard"
#: Neighbours in an order get more than this part of the contradicted rows that they would not get by chance, where rows
#: are hard along that order. It is 0.22 and more where levels of a number are the classes, whatever the noise, and at
#: most 0.08 where classes have no order, or where labels move to the next class alone.
LEAST_ALONG_ORDER = 0.15
#: An order that nobody has told is found among no fewer classes: three lie along some line by chance.
FEWEST_TO_ORDER = 4
#: Every two neighbours in such an order exchange this part, at least, of the rows that neighbours do on average; pairs
#: of classes that are mixed up only within each pair make no line.
LEAST_LINK = 0.1


def lie_along_order(contradicted: Array, order: NDArray[np.intp]) -> bool:
    """Tell whether rows are hard to tell from neighbours in an order of the classes: there hard rows look mislabelled.

    Rows whose label the features contradict must be between neighbours clearly more often than by chance, and as often
    one way as the other: where 3 is labelled 4, and 4 never 3, labels are wrong rather than rows hard. And no class may
    be mixed up most with one that is no neighbour: two large classes alone make no order.

    Parameters
    ----------
    contradicted : array of shape (n_classes, n_classes)
        How many rows the features alone take for each class, one per row, and bear each label, one per column.
    order : array of int
        The place of each class.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> hard = np.array([[80, 20, 0], [20, 60, 20], [0, 20, 80]])
    >>> lie_along_order(hard, np.arange(3)), lie_along_order(np.triu(hard), np.arange(3))
    (True, False)
    """
    are_apart = ~np.eye(len(order), dtype=np.bool_)
    are_neighbours = np.abs(np.subtract.outer(order, order)) == 1
    rows = contradicted.sum(axis=0)
    pairs = np.outer(rows, rows)
    by_chance = float(pairs[are_neighbours].sum() / max(pairs[are_apart].sum(), 1.0))
    all_ways = float(contradicted[are_apart].sum())
    exchanged = np.where(are_apart, np.minimum(contradicted, contradicted.T), 0.0)
    nearest = np.where(are_neighbours, exchanged, 0.0).max(axis=1)
    if (nearest < exchanged.max(axis=1)).any():
        return False
    between = float(exchanged[are_neighbours].sum())
    return between - by_chance * all_ways > LEAST_ALONG_ORDER * (1.0 - by_chance) * all_ways


def find_likely_wrong(audit: LabelAudit, rows: ArrayLike) -> NDArray[np.intp]:
    """Return those of some rows whose label is more likely wrong than right, as indices.

    Parameters
    ----------
    audit : LabelAudit
        What was found.
    rows : array-like
        Indices or Booleans.

    Returns
    -------
    array of int
    """
    positions = find_positions(rows, len(audit.given))
    return positions[audit.wrong[positions] > 0.5]


def count_expected(wrong: Array) -> int:
    """Return how many labels are expected to be wrong: the sum of their probabilities, rounded.

    Parameters
    ----------
    wrong : array
        The probability of each label to be wrong.

    Returns
    -------
    int
    """
    return round(add_up(wrong))


def find_settled(audit: LabelAudit, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return those of some rows whose label may be replaced: nothing speaks against it, and noise was found there.

    Parameters
    ----------
    audit : LabelAudit
        What was found.
    rows : array of int
        Positions.

    Returns
    -------
    array of int
    """
    if audit.verdict.why_not_corrected:
        return rows[:0]
    truth = np.searchsorted(audit.classes, audit.predicted[rows])
    labels = audit.label_indices[rows]
    settled = audit.noise.found_pairs[truth, labels] | (truth == labels)
    return np.asarray(rows[settled], dtype=np.intp)


def doubt_correction(audit: LabelAudit) -> str:
    """Say why labels are not to be replaced that nobody has looked at; nothing where nothing speaks against it.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    str
    """
    if audit.context.chance:
        return "labels are outcomes of chance, none of which is wrong"
    if not claims_noise(audit):
        return UNDECIDED
    classes = audit.classes.tolist()
    if len(classes) == 2:
        return ""
    counted = audit.weight > 0
    rows = np.bincount(audit.label_indices[counted], minlength=len(classes))
    if small := [name for name, n in zip(classes, rows.tolist(), strict=True) if n < LEAST_ROWS]:
        few = f"{len(small):,} of the {len(classes):,} classes have" if len(small) > 1 else "a class has"
        return (
            f"{few} under {LEAST_ROWS} rows ({list_some(map(str, small), 4)}), and of several classes right labels of "
            "small ones may look wrong"
        )
    return ""


def find_line(audit: LabelAudit) -> list[str]:
    """Find an order of the classes that confusions lie along, told or not.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    list of str
        The classes in that order; none where confusions lie along none.
    """
    names = audit.classes.tolist()
    if len(names) < 3:
        return []
    contradicted = _count_contradicted(audit)
    order = audit.context.order
    if order is None:
        order = _sort_by_confusion(contradicted)
    if order is None or not lie_along_order(contradicted, order):
        return []
    return [str(names[place]) for place in np.argsort(order).tolist()]


def _sort_by_confusion(contradicted: Array) -> NDArray[np.intp] | None:
    """Return the places of classes on the line that they lie along by how often they are mixed up; None without one.

    The order is that of the second eigenvector of the graph's Laplacian (Fiedler's): spectral seriation.
    """
    if len(contradicted) < FEWEST_TO_ORDER:
        return None
    exchanged = np.minimum(contradicted, contradicted.T)
    np.fill_diagonal(exchanged, 0.0)
    laplacian = np.diag(exchanged.sum(axis=1)) - exchanged
    line = np.argsort(np.linalg.eigh(laplacian)[1][:, 1], kind="stable")
    line = line if line[0] < line[-1] else line[::-1]
    links = exchanged[line[:-1], line[1:]]
    return np.argsort(line) if links.min() > LEAST_LINK * links.mean() else None


def _count_contradicted(audit: LabelAudit) -> Array:
    """Return how many rows the features alone take for each class, one per row, and bear each label, one per column."""
    counted = audit.weight > 0
    is_open = (counted if audit.reviewed is None else counted & ~audit.reviewed).astype(np.float64)
    by_features = np.eye(len(audit.classes))[audit.posterior.argmax(axis=1)]
    return expect_labels(by_features, audit.label_indices, is_open)
