"""What models say of rows that they have not seen: all that noise, audits and reviews read, whoever the models are.

Four kinds of models make it: our own (`untwist.automatic`), clones of any scikit-learn estimator (`untwist.crossing`),
models that only their posteriors are known of (`pred_probs`), and those of several workers, each with its own rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.data.encoding import TableEncoder
from untwist.data.groups import OwnFolds, RowGroups
from untwist.data.reviews import ReviewedRows
from untwist.data.sources import LabelSources
from untwist.data.twins import Twins
from untwist.display import abbreviate

__all__ = ["CrossFit", "OutOfFold", "RowContext"]


@dataclass(frozen=True, eq=False)
class RowContext:
    """What is known of rows besides their labels and weights.

    Parameters
    ----------
    encoder : TableEncoder or None
        How the rows become numbers, where they are a table.
    fingerprint : int or None
        Tells the table and its labels from others; None where not every row has been judged, or rows are no table.
    groups : RowGroups or None
        Which rows belong together, where that is known.
    sources : LabelSources or None
        Who gave the label of each row, and which rows are of one item, where that is known.
    reviewed : ReviewedRows or None
        The rows that a person has reviewed, if there are such; the labels of an `OutOfFold` are those from before.
    own_folds : OwnFolds or None
        The rows that each fold trained on and judged, where folds of one's own were given.
    twins : Twins or None
        Rows that nearly repeat rows of other folds, if so many do that what is said of them may be memory.
    """

    encoder: TableEncoder | None = None
    fingerprint: int | None = None
    groups: RowGroups | None = None
    sources: LabelSources | None = None
    reviewed: ReviewedRows | None = None
    own_folds: OwnFolds | None = None
    twins: Twins | None = None

    __repr__ = abbreviate


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """The posterior of the given labels for every row, by models that have not seen it.

    Parameters
    ----------
    classes : array
        The classes, sorted.
    posterior : array of shape (n_rows, n_classes)
        The probability of each label in each row, without the weights of classes; NaN where nobody judges.
    labels : array of int
        The index of each row's label, as it was given.
    weight : array
        The sample weight of each row, judged or not.
    held_out : array of shape (n_folds, n_rows)
        The share of each row that each fold judges: 1 in all, or 0 for a row that nobody judges.
    context : RowContext
        What else is known of the rows.
    """

    classes: NDArray[Any]
    posterior: Array
    labels: NDArray[np.intp]
    weight: Array
    held_out: Array
    context: RowContext = field(default_factory=RowContext)

    __repr__ = abbreviate

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Whether each row is judged."""
        return np.asarray((self.held_out > 0).any(axis=0))

    @property
    def judged_weight(self) -> Array:
        """The weight of each row; 0 for one that is not judged, as if it were absent."""
        return np.where(self.judged, self.weight, 0.0)


class CrossFit(Protocol):
    """Models of all folds: what they say of rows that they have not seen, and of any other rows."""

    @property
    def out_of_fold(self) -> OutOfFold:
        """What each model says of the rows that its fold set aside."""

    def posterior(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the posterior of the given labels, without the weights of classes, for rows of any table."""

    def refit(self, labels: NDArray[np.intp], weight: Array) -> Self:
        """Fit anew in the same folds, with other labels and weights."""
