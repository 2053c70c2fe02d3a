"""Whether labels may be replaced by what the audit takes for right without anybody looking at them.

Of several classes that may make labels worse in two cases. Where a class has few rows, its own labels say too little of
it, and right ones look wrong. Where classes have an order, rows between two neighbours are hard to tell from either,
which looks exactly like labels that are mixed up.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array
from untwist.audit.confusions import expect_labels
from untwist.audit.context import find_positions
from untwist.data.cells import list_some

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = ["LEAST_ROWS", "doubt_correction", "find_likely_wrong", "find_line", "find_order", "lie_along_order"]

#: A class has this many rows, at least, where labels are replaced without a look.
LEAST_ROWS = 50
#: Neighbours in an order get more than this part of the contradicted rows that they would not get by chance, where rows
#: are hard along that order. It is 0.22 and more where levels of a number are the classes, whatever the noise, and at
#: most 0.08 where classes have no order, or where labels move to the next class alone.
LEAST_ALONG_ORDER = 0.15
#: An order that nobody has told is found among no fewer classes: three lie along some line by chance.
FEWEST_TO_ORDER = 4
#: Every two neighbours in such an order exchange this part, at least, of the rows that neighbours do on average; pairs
#: of classes that are mixed up only within each pair make no line.
LEAST_LINK = 0.1
#: A label that begins with a number.
NUMBERED = re.compile(r"\s*([-+]?\d+(?:\.\d+)?)")


def find_order(y: Any, classes: NDArray[Any]) -> NDArray[np.intp] | None:
    """Find the natural order of classes: numbers have one, labels that begin with numbers, and ordered categories.

    Parameters
    ----------
    y : array-like
        The labels as they were given; an ordered categorical of pandas says its order.
    classes : array
        The labels that there are.

    Returns
    -------
    array of int or None
        The place of each class, from 0; None where classes have no order that is known, and where there are two.

    Examples
    --------
    >>> import numpy as np
    >>> find_order(None, np.array(["10 or more", "2 to 9", "none, or 1"])), find_order(None, np.array([1, 2, 5]))
    (None, array([0, 1, 2]))
    >>> find_order(None, np.array(["10 or more", "2 to 9", "1"]))
    array([2, 1, 0])
    """
    names = classes.tolist()
    kind = getattr(y, "dtype", None)
    values: list[Any] = []
    if getattr(kind, "ordered", False):
        known = list(getattr(kind, "categories", []))
        values = [known.index(one) for one in names] if set(names) <= set(known) else []
    elif classes.dtype.kind in "iuf":
        values = names
    elif all(found := [NUMBERED.match(str(one)) for one in names]):
        values = [float(one[1]) for one in found if one is not None]
    if len(names) < 3 or len(set(values)) < len(names):
        return None
    return np.argsort(np.argsort(values))


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
    if audit.context.order is None or not audit.noise.found:
        return ""
    if lie_along_order(_count_contradicted(audit), audit.context.order):
        return (
            "most confusions are between neighbours in the order of the classes, and rows that are hard to tell from a "
            "neighbour look the same as wrong labels"
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
