"""What `fit` may be told of rows beside labels: validation rows, who gave labels, groups, scores to begin at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array, check_numbers
from untwist.data.groups import (
    OwnFolds,
    RowGroups,
    check_own_folds,
    keep_items_in_groups,
    read_groups,
    read_own_folds,
)
from untwist.data.sources import UNKNOWN, LabelSources, find_items, read_names
from untwist.data.workers import Workers
from untwist.settings import Settings

__all__ = [
    "NO_INIT_SCORE_FOR_WORKERS",
    "NO_OWN_FOLDS_FOR_WORKERS",
    "NO_REVIEW_FOR_WORKERS",
    "NO_SOURCES_FOR_WORKERS",
    "InitScores",
    "SourceColumns",
    "ValidationTable",
    "read_folds",
]

#: What workers of a distributed fit are told that were given sources.
NO_SOURCES_FOR_WORKERS = (
    "source and item must be None in a distributed fit, as sources are judged by all rows at once: fit on one machine"
)

#: What workers of a distributed fit are told that were given reviewed rows.
NO_REVIEW_FOR_WORKERS = (
    "reviewed must be None in a distributed fit, as reviewed rows are judged by all rows at once: "
    "fit on one machine, or give y with the labels that were decided on"
)

#: What workers of a distributed fit are told that were given scores to begin at.
NO_INIT_SCORE_FOR_WORKERS = "init_score must be None in a distributed fit: fit on one machine"

#: What workers of a distributed fit are told that were given folds of one's own.
NO_OWN_FOLDS_FOR_WORKERS = (
    "cv must be None or a number of folds in a distributed fit, as each worker knows the positions of its own rows "
    "only: give groups, whose names all workers know"
)


@dataclass(frozen=True, eq=False)
class ValidationTable:
    """The validation rows that were given to `fit`, all None where there are none."""

    X: Any = None
    y: Any = None
    sample_weight: ArrayLike | None = None

    def check_complete(self) -> None:
        """Raise an error where only a part was given."""
        if (self.X is None) != (self.y is None):
            raise ValueError("X_val and y_val must be given together")
        if self.X is None and self.sample_weight is not None:
            raise ValueError("sample_weight_val must come with X_val and y_val")


@dataclass(frozen=True, eq=False)
class SourceColumns:
    """Who gave each label, which item it is of and which group its row is in, as `fit` was told; None where not."""

    source: Any = None
    item: Any = None
    groups: Any = None

    def __post_init__(self) -> None:
        if self.item is not None and self.source is None:
            raise ValueError("item must come with source: who gave each of the labels of an item")

    def check_allowed(self, settings: Settings, workers: Workers) -> None:
        """Raise an error where sources are given that nothing can be told of."""
        if any(workers.gather(self.source is not None)) and workers.size > 1:
            raise ValueError(NO_SOURCES_FOR_WORKERS)
        if len(set(workers.gather(self.groups is not None))) > 1:
            raise ValueError("groups must be given to all workers of a distributed fit, or to none")
        if workers.size > 1 and not isinstance(settings.cv, int):
            raise ValueError(NO_OWN_FOLDS_FOR_WORKERS)
        if self.source is None:
            return
        if not settings.estimates_noise:
            raise ValueError(
                "source must be None where no noise is estimated, as sources are judged by how their labels disagree "
                'with models that have not seen them: leave noise="auto"'
            )

    def read_groups(self, n_rows: int) -> RowGroups | None:
        """Return which rows belong together, if that was told."""
        return None if self.groups is None else read_groups(self.groups, n_rows)

    def read_sources(
        self,
        list_contents: Callable[[], NDArray[np.uint64]],
        labels: NDArray[np.uint32],
        weight: Array,
        groups: RowGroups | None,
    ) -> LabelSources | None:
        """Return who gave each label and which rows are of one item, if that was told.

        Parameters
        ----------
        list_contents : callable
            Returns a hash of what each row holds.
        labels : array of uint32
            The index of each row's label.
        weight : array
            The weight of each row.
        groups : RowGroups or None
            Which rows belong together; an item must lie within a group.

        Returns
        -------
        LabelSources or None
        """
        if self.source is None:
            return None
        names, index = read_names("source", self.source, len(labels))
        if not (weight[index != UNKNOWN] > 0).any():
            raise ValueError("source must be known for some of the rows with a weight, got none but unknown ones")
        named = None if self.item is None else read_names("item", self.item, len(labels))[1]
        contents, named = keep_items_in_groups(list_contents(), named, groups)
        return LabelSources(names, index, find_items(contents, index, labels, weight, named))


def read_folds(
    cv: Any,
    X: Any,
    y: NDArray[Any],
    groups: RowGroups | None,
    sources: LabelSources | None,
    has_review: bool,
) -> OwnFolds | None:
    """Return folds of one's own, which must keep groups and items together.

    Parameters
    ----------
    cv : int, splitter or iterable
        As both estimators take it.
    X, y
        What a splitter is given.
    groups : RowGroups or None
        Which rows belong together.
    sources : LabelSources or None
        Who gave each label, which takes folds that judge all rows.
    has_review : bool
        Whether some rows have been reviewed, which takes such folds too.

    Returns
    -------
    OwnFolds or None
        None for a number of folds, which are drawn.
    """
    if isinstance(cv, int):
        return None
    folds = read_own_folds(cv, X, y, None if groups is None else groups.number_rows())
    needs_all = "reviewed" if has_review else "source" if sources is not None else None
    check_own_folds(folds, groups, None if sources is None else sources.items, needs_all)
    return folds


@dataclass(frozen=True, eq=False)
class InitScores:
    """The scores that boosting is to begin at, of training and of validation rows; None where `fit` was given none."""

    training: Any = None
    validation: Any = None

    def read(self, n_rows: int, n_validation: int, n_boosters: int, workers: Workers) -> Array | None:
        """Return a row for each training and validation row and a column for each booster, if there are scores."""
        if any(workers.gather(self.training is not None)) and workers.size > 1:
            raise ValueError(NO_INIT_SCORE_FOR_WORKERS)
        if self.training is None:
            if self.validation is not None:
                raise ValueError("init_score_val must come with init_score")
            return None
        if (self.validation is None) != (n_validation == 0):
            raise ValueError("init_score_val must be given together with init_score and X_val")
        tables = [_read_scores("init_score", self.training, n_rows, n_boosters)]
        if n_validation:
            tables.append(_read_scores("init_score_val", self.validation, n_validation, n_boosters))
        return np.concatenate(tables)


def _read_scores(name: str, given: Any, n_rows: int, n_boosters: int) -> Array:
    scores = check_numbers(name, given)
    expected = (n_rows,) if n_boosters == 1 else (n_rows, n_boosters)
    if scores.shape != expected and not (n_boosters == 1 and scores.shape == (n_rows, 1)):
        raise ValueError(f"{name} must have the shape {expected}, got {scores.shape}")
    if not np.isfinite(scores).all():
        raise ValueError(f"{name} must be finite, got {scores[~np.isfinite(scores)][0]}")
    return scores.reshape(n_rows, n_boosters)
