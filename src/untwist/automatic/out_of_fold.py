"""What the models of the folds say of the rows that they have not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from untwist.arguments import Array
from untwist.boosting.engines.engine import Rows
from untwist.boosting.forest import Forest, iterate_row_blocks
from untwist.class_order import place_classes
from untwist.crossing import find_held_out_shares
from untwist.data.groups import OwnFolds
from untwist.display import abbreviate
from untwist.model import FittedModel
from untwist.out_of_fold import JudgedParts, OutOfFold, RowContext
from untwist.training_data import TrainingData

__all__ = ["HeldOutScores", "find_posteriors", "score_held_out_rows"]


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Parts of rows with the scores of models that have not seen them.

    Parameters
    ----------
    rows : array of int
        Positions of rows; a row that several folds have set aside in parts comes several times, and one that no fold of
        one's own judges does not come.
    weight : array
        The sample weight that was set aside, without class weights.
    scores : array
        A column per booster: one for two classes, else one per class.
    labels : array of uint32
        The index of each row's class.
    """

    rows: NDArray[np.intp]
    weight: Array
    scores: Array
    labels: NDArray[np.uint32]

    __repr__ = abbreviate

    def average(self, n_rows: int) -> Array:
        """Return the scores of every row; the mean where several folds had a part of it, NaN where none had.

        Parameters
        ----------
        n_rows : int
            How many rows there are.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_columns)
        """
        part = np.where(self.weight > 0, self.weight, 1.0)
        total = np.bincount(self.rows, part, minlength=n_rows)
        scores = np.full((n_rows, self.scores.shape[1]), np.nan)
        for column, each in zip(scores.T, self.scores.T, strict=True):
            np.divide(np.bincount(self.rows, part * each, minlength=n_rows), total, out=column, where=total > 0)
        is_whole = np.bincount(self.rows, minlength=n_rows)[self.rows] == 1
        scores[self.rows[is_whole]] = self.scores[is_whole]  # To the last bit, whatever the row weighs.
        return scores[:, 0] if scores.shape[1] == 1 else scores


def score_held_out_rows(
    forests: list[list[Forest]],
    rows: Rows,
    held_out_weight: Array,
    n_training: int,
    n_jobs: int | None = None,
    show_to_fold: Callable[[int, NDArray[np.intp], NDArray[Any]], NDArray[Any]] | None = None,
    own_folds: OwnFolds | None = None,
) -> HeldOutScores:
    """Return the scores of the rows that each fold set aside, one fold after the other.

    Parameters
    ----------
    forests : lists of Forest
        By class, then by fold.
    rows : Rows
        All rows.
    held_out_weight : array
        The weight of each row that each fold set aside.
    n_training : int
        How many of the rows, from the first, are all to be scored. Those of them that no fold set aside, as they have
        no weight, come last, and the mean of all folds scores them. Rows that no fold of one's own judges are not
        scored.
    n_jobs : int or None
        Threads.
    show_to_fold : callable or None
        Takes a fold, positions of rows, and these rows; returns the rows as the model of the fold sees them.
    own_folds : OwnFolds or None
        The rows that each fold judges, where that was told.
    """
    n_folds = len(held_out_weight)
    set_aside = [np.flatnonzero(weight) for weight in held_out_weight]
    is_nowhere = held_out_weight.sum(axis=0)[:n_training] == 0
    nowhere = np.flatnonzero(is_nowhere if own_folds is None else is_nowhere & own_folds.judged)
    row_groups = [*set_aside, nowhere]
    scorers = [[[class_forests[fold]] for class_forests in forests] for fold in range(n_folds)] + [forests]
    n_outputs = sum(class_forests[0].n_outputs for class_forests in forests)
    scores = [np.empty((len(rows_here), n_outputs)) for rows_here in row_groups]
    blocks = [(slice(0, len(rows.labels)), rows.X.tocsr())] if sparse.issparse(rows.X) else iterate_row_blocks(rows.X)
    for part, block in blocks:
        for group, (rows_here, out, scorer) in enumerate(zip(row_groups, scores, scorers, strict=True)):
            inside = slice(*np.searchsorted(rows_here, (part.start, part.stop)))
            if inside.start == inside.stop:
                continue
            unseen = block[rows_here[inside] - part.start]
            if group < n_folds and show_to_fold is not None:
                unseen = show_to_fold(group, rows_here[inside], unseen)
            columns = [
                np.mean([forest.scores(unseen, n_jobs=n_jobs) for forest in class_forests], axis=0)
                for class_forests in scorer
            ]
            out[inside] = np.column_stack(columns)
    weights = [weight[rows_here] for weight, rows_here in zip(held_out_weight, set_aside, strict=True)]
    all_rows = np.concatenate(row_groups)
    return HeldOutScores(
        rows=all_rows,
        weight=np.concatenate([*weights, np.zeros(len(nowhere))]),
        scores=np.concatenate(scores),
        labels=rows.labels[all_rows],
    )


def find_posteriors(model: FittedModel, data: TrainingData, held: HeldOutScores, held_out_weight: Array) -> OutOfFold:
    """Return the posteriors of rows by models that have not seen them.

    Parameters
    ----------
    model : FittedModel
        What makes posteriors of scores.
    data : TrainingData
        The rows.
    held : HeldOutScores
        The scores of those that were set aside.
    held_out_weight : array of shape (n_folds, n_rows)
        The weight of each row that each fold set aside. Where a search ended early there are fewer folds than planned.

    Returns
    -------
    OutOfFold
    """
    weight = data.unweigh_classes()
    if data.own_folds is None:
        # A row without weight was seen by nobody, so that every fold judges it.
        shares = find_held_out_shares(held_out_weight, data.rows.weight)
        shares = np.where(weight > 0, shares, 1.0 / len(shares))
    else:  # They say who judges a row without weight, too.
        shares = data.own_folds.held_out[: len(held_out_weight)].astype(np.float64)
    is_complete = data.folds is not None and len(shares) == len(data.folds) and data.workers.size == 1
    return OutOfFold(
        classes=model.classes,
        posterior=model.unweigh(model.posterior.twisted(held.average(data.n_rows))),
        labels=data.rows.labels.astype(np.intp),
        weight=weight,
        held_out=shares,
        context=RowContext(
            fingerprint=data.fingerprint if is_complete else None,
            groups=data.groups,
            own_folds=data.own_folds,
            order=place_classes(data.settings.order, model.classes),
        ),
        by_fold=JudgedParts(held.rows, held.weight, model.find_posterior_of_labels(held.scores)),
    )
