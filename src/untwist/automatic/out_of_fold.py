"""What the models of the folds say of the rows that they have not seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from untwist.arguments import Array
from untwist.boosting.engines.engine import Rows
from untwist.boosting.forest import Forest, iterate_row_blocks
from untwist.data.groups import OwnFolds
from untwist.model import OutOfFold

__all__ = ["score_held_out_rows"]


def score_held_out_rows(
    forests: list[list[Forest]],
    rows: Rows,
    held_out_weight: Array,
    n_training: int,
    n_jobs: int | None = None,
    show_to_fold: Callable[[int, NDArray[np.intp], NDArray[Any]], NDArray[Any]] | None = None,
    own_folds: OwnFolds | None = None,
) -> OutOfFold:
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
        The first so many rows are all to be scored. Those of them that no fold set aside, as they have no weight, come
        last, and the mean of all folds scores them. Rows that no fold of one's own judges are not scored.
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
    return OutOfFold(
        rows=all_rows,
        weight=np.concatenate([*weights, np.zeros(len(nowhere))]),
        scores=np.concatenate(scores),
        labels=rows.labels[all_rows],
    )
