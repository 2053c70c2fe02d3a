"""Whether labels may be replaced by what the audit takes for right without anybody looking at them.

Of several classes that may make labels worse in two cases. Where a class has few rows, its own labels say too little of
it, and right ones look wrong. Where classes have an order, rows between two neighbours are hard to tell apart in both
directions, which looks exactly like labels that are mixed up.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.audit.confusions import expect_labels
from untwist.data.cells import list_some

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = ["LEAST_ROWS", "doubt_correction", "find_order", "lie_along_order"]

#: A class has this many rows, at least, where labels are replaced without a look.
LEAST_ROWS = 50
#: Confusions lie along an order where neighbours exchange this part, at least, of what they would not have by chance.
MOST_ALONG_ORDER = 0.2
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


def lie_along_order(expected: Array, rows: NDArray[np.intp], order: NDArray[np.intp]) -> bool:
    """Tell whether neighbours in an order exchange clearly more labels than two other classes would.

    Labels that go one way only, such as all 3 that say 4, count as little as those that go far: hard rows between two
    neighbours go both ways.

    Parameters
    ----------
    expected : array of shape (n_classes, n_classes)
        How many rows of each true class, one per row, are expected to bear each label, one per column.
    rows : array of int
        The rows of each class.
    order : array of int
        The place of each class.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> lie_along_order(np.array([[80, 20, 0], [20, 60, 20], [0, 20, 80]]), np.full(3, 100), np.arange(3))
    True
    >>> lie_along_order(np.array([[80, 10, 10], [10, 80, 10], [10, 10, 80]]), np.full(3, 100), np.arange(3))
    False
    """
    are_apart = ~np.eye(len(order), dtype=np.bool_)
    are_neighbours = np.abs(np.subtract.outer(order, order)) == 1
    wrong = float(expected[are_apart].sum())
    pairs = np.outer(rows, rows).astype(np.float64)
    by_chance = float(pairs[are_neighbours].sum() / max(pairs[are_apart].sum(), 1.0))
    exchanged = float(np.minimum(expected, expected.T)[are_neighbours].sum())
    return wrong > 0 and exchanged - by_chance * wrong > MOST_ALONG_ORDER * (1.0 - by_chance) * wrong


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
    is_open = counted if audit.reviewed is None else counted & ~audit.reviewed
    expected = expect_labels(audit.truth, audit.label_indices, is_open.astype(np.float64))
    if audit.order is not None and audit.noise.found and lie_along_order(expected, rows, audit.order):
        return (
            "most labels that look wrong are those of a neighbouring class in the order of the labels, both ways, and "
            "hard rows between two neighbours look the same as wrong labels"
        )
    return ""
