"""What models say of rows that they have not seen: all that noise, audits and reviews read, whoever the models are.

Four kinds of models make it: our own (`untwist.automatic`), clones of any scikit-learn estimator (`untwist.crossing`),
models that only their posteriors are known of (`pred_probs`), and those of several workers, each with its own rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.data.folds import mix_bits
from untwist.data.groups import OwnFolds, RowGroups
from untwist.data.near_duplicates import NearDuplicates
from untwist.data.reviews import ReviewedRows
from untwist.data.sources import LabelSources
from untwist.display import abbreviate

__all__ = ["CrossFit", "JudgedParts", "OutOfFold", "RowContext"]


@dataclass(frozen=True, eq=False)
class RowContext:
    """What is known of rows besides their labels and weights.

    Parameters
    ----------
    fingerprint : int or None
        Tells the table and its labels from others; None where not every row has been judged.
    groups : RowGroups or None
        Which rows belong together, where that is known.
    sources : LabelSources or None
        Who gave the label of each row, and which rows are of one item, where that is known.
    reviewed : ReviewedRows or None
        The rows that a person has reviewed, if there are such; the labels of an `OutOfFold` are those from before.
    own_folds : OwnFolds or None
        The rows that each fold trained on and judged, where folds of one's own were given.
    order : array of int or None
        The place of each class, from 0, where classes have an order.
    twins : NearDuplicates or None
        Rows that nearly repeat rows of other folds, if enough do for what is said of them to be memory.
    """

    fingerprint: int | None = None
    groups: RowGroups | None = None
    sources: LabelSources | None = None
    reviewed: ReviewedRows | None = None
    own_folds: OwnFolds | None = None
    order: NDArray[np.intp] | None = None
    twins: NearDuplicates | None = None

    __repr__ = abbreviate


@dataclass(frozen=True, eq=False)
class JudgedParts:
    """What each fold says of its part of each row: weights are frequencies, and several folds may judge a heavy row.

    Parameters
    ----------
    rows : array of int
        Positions of rows; one that several folds judge comes several times.
    weight : array
        The sample weight of each part.
    posterior : array of shape (n_parts, n_classes)
        As in `OutOfFold`, by the model of the fold alone.
    """

    rows: NDArray[np.intp]
    weight: Array
    posterior: Array

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
    by_fold : JudgedParts or None
        What each fold says of its part of each row, where that was kept; `posterior` is what all say together.
    """

    classes: NDArray[Any]
    posterior: Array
    labels: NDArray[np.intp]
    weight: Array
    held_out: Array
    context: RowContext = field(default_factory=RowContext)
    by_fold: JudgedParts | None = None

    __repr__ = abbreviate

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Whether each row is judged."""
        return np.asarray((self.held_out > 0).any(axis=0))

    @property
    def judged_weight(self) -> Array:
        """The weight of each row; 0 for one that is not judged, as if it were absent."""
        return np.where(self.judged, self.weight, 0.0)

    @property
    def parts(self) -> JudgedParts:
        """What each fold says of its part of each row; rows as a whole where that was not kept."""
        if self.by_fold is not None:
            return self.by_fold
        rows = np.flatnonzero(self.judged)
        return JudgedParts(rows, self.weight[rows], self.posterior[rows])

    def hash_groups(self, rows: NDArray[np.intp], rank: int) -> NDArray[np.uint64] | None:
        """Return a hash of the group of each of some rows, which is a row's own where it has none.

        Parameters
        ----------
        rows : array of int
            Their positions.
        rank : int
            The number of the worker whose rows these are.

        Returns
        -------
        array of uint64 or None
            None where nothing is known of groups.
        """
        if self.context.groups is None:
            return None
        alone = mix_bits(rows.astype(np.uint64) + np.uint64(rank << 48))
        return self.context.groups.hash_rows(alone, rows)

    def add_context(self, **known: Any) -> Self:
        """Return the same with more of its context known.

        Parameters
        ----------
        **known
            Fields of `RowContext`.

        Returns
        -------
        OutOfFold
        """
        return replace(self, context=replace(self.context, **known))

    def judge_anew(self, other: OutOfFold) -> Self:
        """Return the same rows, with their labels and weights, as models of the same folds judge them in another fit.

        Parameters
        ----------
        other : OutOfFold
            What those models say of the rows.

        Returns
        -------
        OutOfFold
        """
        by_fold = None
        if self.by_fold is not None and other.by_fold is not None:
            by_fold = replace(self.by_fold, posterior=other.by_fold.posterior)
        return replace(self, posterior=other.posterior, by_fold=by_fold)

    def average_by_item(self) -> Self:
        """Return the same with one posterior for all rows of an item, the mean over them, where sources are known."""
        sources = self.context.sources
        if sources is None or not sources.has_repeated_items:
            return self
        return replace(self, posterior=_average_by_item(self.posterior, sources.items), by_fold=None)


class CrossFit(Protocol):
    """Models of all folds: what they say of rows that they have not seen, and of any other rows."""

    @property
    def out_of_fold(self) -> OutOfFold:
        """What each model says of the rows that its fold set aside."""

    def posterior(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the posterior of the given labels, without the weights of classes, for rows of any table."""

    def refit(self, labels: NDArray[np.intp], weight: Array) -> Self:
        """Fit anew in the same folds, with other labels and weights."""


def _average_by_item(posterior: Array, items: NDArray[np.intp]) -> Array:
    """Return the mean posterior of each row's item; the same for any order of the rows."""
    order = np.lexsort((*posterior.T, items))
    starts = np.flatnonzero(np.append(True, np.diff(items[order]) != 0))
    counts = np.diff(np.append(starts, len(order)))
    means = np.add.reduceat(posterior[order], starts, axis=0) / counts[:, None]
    averaged = np.empty_like(posterior)
    averaged[order] = np.repeat(means, counts, axis=0)
    return averaged
