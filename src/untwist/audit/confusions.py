"""Who is labelled as what: pairs of a true class and a label, with how often the one bears the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.audit.statements import write_count
from untwist.display import write_range, write_share
from untwist.noise.model import NoiseModel
from untwist.sums import add_up_by_group

__all__ = ["Confusion", "expect_labels", "find_confusions"]

#: A pair of which fewer rows than this are expected is left out.
LEAST_ROWS = 0.5

#: A pair whose share is smaller does not stand out.
LEAST_STANDING_OUT = 0.02


@dataclass(frozen=True)
class Confusion:
    """A class, some of whose rows bear the label of another.

    Parameters
    ----------
    truth, label : object
        The true class, and the label that it bears.
    share : float
        The share of the true class that bears the label.
    low, high : float
        The 95 % interval of the share.
    rows : float
        The number of rows to expect.
    stands_out : bool
        Whether the share is worth a word, and even `low` above what any class would bear of any other label if all
        wrong labels were spread evenly.
    """

    truth: Any
    label: Any
    share: float
    low: float
    high: float
    rows: float
    stands_out: bool

    def __str__(self) -> str:
        often = "often" if self.stands_out else "sometimes"
        share = f"{write_share(self.share)} of it ({write_range(self.low, self.high)})"
        return f"{self.truth} is {often} labelled {self.label}: {share}, about {write_count(self.rows)} rows"


def find_confusions(
    noise: NoiseModel,
    classes: NDArray[Any],
    matrix: Array,
    truth: Array,
    labels: NDArray[np.intp],
    counted: NDArray[np.bool_],
) -> list[Confusion]:
    """Return which class bears which other label, the pair with most rows first.

    Parameters
    ----------
    noise : NoiseModel
        The noise that fits.
    classes : array
        The labels that there are.
    matrix : array of shape (n_classes, n_classes)
        The transition matrix of all labels; that of the noise, unless sources are told apart.
    truth : array of shape (n_rows, n_classes)
        The probability of each class to be the truth, given a row and its label.
    labels : array of int
        The index of each row's label.
    counted : array of bool
        The rows that count.

    Returns
    -------
    list of Confusion
        The pairs of which at least half a row is expected.
    """
    n_classes = len(classes)
    off_diagonal = ~np.eye(n_classes, dtype=np.bool_)
    rows = np.where(off_diagonal, expect_labels(truth, labels, counted.astype(np.float64)), 0.0)
    # Of two classes each has one other label to bear, which says nothing.
    even_share = float(matrix[off_diagonal].mean()) if n_classes > 2 else 1.0
    names = classes.tolist()
    order = np.argsort(-rows, axis=None, kind="stable")
    found = []
    for true, label in zip(*(each.tolist() for each in np.unravel_index(order, rows.shape)), strict=True):
        if rows[true, label] < LEAST_ROWS:
            break
        low, high = noise.bound_entry(true, label, float(matrix[true, label]))
        found.append(
            Confusion(
                truth=names[true],
                label=names[label],
                share=float(matrix[true, label]),
                low=low,
                high=high,
                rows=float(rows[true, label]),
                stands_out=bool(low > even_share and matrix[true, label] >= LEAST_STANDING_OUT),
            )
        )
    return found


def expect_labels(truth: Array, labels: NDArray[np.intp], weight: Array) -> Array:
    """Return how much of each true class, one per row of the table, is expected to bear each label, one per column.

    Parameters
    ----------
    truth : array of shape (n_rows, n_classes)
        The probability of each class to be the truth, given a row and its label.
    labels : array of int
        The index of each row's label.
    weight : array
        How much each row counts.

    Returns
    -------
    array of shape (n_classes, n_classes)
    """
    n_classes = truth.shape[1]
    columns = [add_up_by_group(weight * of_class, labels, n_classes) for of_class in truth.T]
    return np.asarray(columns)
