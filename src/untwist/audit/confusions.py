"""Who is labelled as what: pairs of a true class and a label, with how often the one bears the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.audit.judging import move_interval
from untwist.noise.matrix import SAFE_MARGIN, MatrixUntwisting, find_interval, untwist_by_matrix
from untwist.noise.untwisting import Untwisting
from untwist.sums import add_up_by_group

__all__ = ["Confusion", "expect_labels", "find_confusions", "iterate_truths"]

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
        share = f"{self.share:.1%} of it ({self.low:.1%} to {self.high:.1%})"
        return f"{self.truth} is {often} labelled {self.label}: {share}, about {self.rows:,.0f} rows"


def iterate_truths(noise: MatrixUntwisting, posterior: Array, labels: NDArray[np.intp]) -> Iterator[Array]:
    """Yield the probability of each true class, given a row and its label, under each component of the noise.

    Parameters
    ----------
    noise : MatrixUntwisting
        The transition matrices that fit.
    posterior : array of shape (n_rows, n_classes)
        The twisted posterior, out of fold.
    labels : array of int
        The index of each row's label.

    Yields
    ------
    array of shape (n_rows, n_classes)
        Each row sums to 1; one minus the entry of its label is the probability that the label is wrong.
    """
    for matrix, slope, offset in zip(noise.matrices, noise.slopes, noise.offsets, strict=True):
        class_and_label = untwist_by_matrix(posterior, matrix, slope, offset, noise.least) * matrix[:, labels].T
        yield class_and_label / np.maximum(class_and_label.sum(axis=1, keepdims=True), SAFE_MARGIN)


def find_confusions(
    noise: Untwisting | MatrixUntwisting,
    classes: NDArray[Any],
    matrix: Array,
    truth: Array,
    labels: NDArray[np.intp],
    counted: NDArray[np.bool_],
) -> list[Confusion]:
    """Return which class bears which other label, the pair with most rows first.

    Parameters
    ----------
    noise : Untwisting or MatrixUntwisting
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
    if isinstance(noise, Untwisting):
        intervals = {(0, 1): noise.interval_neg, (1, 0): noise.interval_pos}
        even_share = 1.0
    else:
        intervals = {
            (true, label): _bound_entry(noise, matrix, true, label)
            for true, label in np.argwhere(rows >= LEAST_ROWS).tolist()
        }
        even_share = float(matrix[off_diagonal].mean())
    names = classes.tolist()
    order = np.argsort(-rows, axis=None, kind="stable")
    found = []
    for true, label in zip(*(each.tolist() for each in np.unravel_index(order, rows.shape)), strict=True):
        if rows[true, label] < LEAST_ROWS:
            break
        low, high = intervals[true, label]
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


def _bound_entry(noise: MatrixUntwisting, matrix: Array, truth: int, label: int) -> tuple[float, float]:
    """Return the interval of an entry of the matrix: what the components say of it, and the interval of its class."""
    entry = float(matrix[truth, label])
    low, high = find_interval(noise.matrices[:, truth, label], noise.weights)
    if matrix is not noise.matrix:
        low, high = move_interval(entry, (float(noise.matrix[truth, label]), low, high))
    scale = entry / max(float(noise.class_shares[truth]), SAFE_MARGIN)
    lowest, highest = (scale * noise.class_intervals[truth]).tolist()
    return max(0.0, min(low, lowest, entry)), min(1.0, max(high, highest, entry))
