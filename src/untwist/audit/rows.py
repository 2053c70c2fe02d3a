"""The rows of an audit by posteriors of other models: labels, weights, sources and folds, with a table or without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _check_sample_weight

from untwist.arguments import Array
from untwist.classifier import PILBoostClassifier, list_parameters
from untwist.data.batches import Batches
from untwist.data.encoding import TableEncoder
from untwist.data.folds import mix_bits, split_groups_into_folds, split_into_folds, split_items_into_folds
from untwist.data.groups import (
    OwnFolds,
    RowGroups,
    check_own_folds,
    check_trained_classes,
    keep_items_in_groups,
    read_groups,
    read_own_folds,
)
from untwist.data.labels import find_classes, refuse_missing, scale_weights, settle_objects
from untwist.data.sources import UNKNOWN, LabelSources, find_items, hash_rows, read_names
from untwist.data.tables import bring_to_host, refuse_other_objects
from untwist.data.targets import are_rows_known, refuse_regression_target
from untwist.data.twins import Twins
from untwist.settings import resolve
from untwist.training_data import SourceColumns, TrainingData

__all__ = ["AuditedRows", "read_rows"]


@dataclass(frozen=True, eq=False)
class AuditedRows:
    """The rows whose labels are judged.

    Parameters
    ----------
    classes : array
        The classes, sorted.
    labels : array of int
        The index of each row's label.
    weight : array
        How much each row counts.
    votes : LabelSources or None
        Who gave each label, if that was told.
    folds : array or None
        The weight of each row that each fold sets aside: rows of equal content, and of the same item, are set aside
        together. None where there are no rows to fit anything to.
    encoder : TableEncoder or None
        How the rows become numbers, where they are a table.
    groups : RowGroups or None
        Which rows belong together, if that was told.
    own_folds : OwnFolds or None
        The rows that each fold trains on and judges, where folds of one's own were given.
    twins : Twins or None
        Rows that nearly repeat rows of other folds, if many do.
    """

    classes: NDArray[Any]
    labels: NDArray[np.intp]
    weight: Array
    votes: LabelSources | None
    folds: Array | None
    encoder: TableEncoder | None
    groups: RowGroups | None = None
    own_folds: OwnFolds | None = None
    twins: Twins | None = None

    @property
    def judged(self) -> NDArray[np.bool_] | None:
        """Whether each row is judged; None where all are."""
        if self.own_folds is None or self.own_folds.judged.all():
            return None
        return self.own_folds.judged


def read_rows(
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    sources: SourceColumns,
    random_state: Any,
    cv: Any = None,
    has_review: bool = False,
) -> AuditedRows:
    """Read the rows as `PILBoostClassifier.fit` would, and where they are no table, as far as there are any.

    Parameters
    ----------
    X : table, sequence or None
        The rows. Texts, images and whatever else is no table are told apart by what they hold, and nothing else.
    y, sample_weight
        As `PILBoostClassifier.fit` takes them.
    sources : SourceColumns
        Who gave each label, and which rows belong together.
    random_state : object
        What the folds follow from.
    cv : object
        The folds, as `PILBoostClassifier` takes them.
    has_review : bool
        Whether some rows have been reviewed, so that all must be judged.

    Returns
    -------
    AuditedRows
    """
    if isinstance(X, Batches):
        raise ValueError("X must be in memory to be judged by posteriors of other models, got Batches: leave it out")
    if X is not None and not isinstance(X, (list, tuple)):
        refuse_other_objects(X)  # What a list holds may be anything that the model takes, also dicts.
    X = bring_to_host(X)
    if X is not None and _count_dimensions(X) == 2:
        settings = resolve(list_parameters(PILBoostClassifier(cv=cv, random_state=random_state)))
        data = TrainingData.collect(settings, X, y, sample_weight, sources=sources, has_review=has_review, boosts=False)
        return AuditedRows(
            classes=data.classes,
            labels=data.rows.labels.astype(np.intp),
            weight=data.rows.weight,
            votes=data.sources,
            folds=data.folds,
            encoder=data.encoder,
            groups=data.groups,
            own_folds=data.own_folds,
            twins=data.find_twins(),
        )
    refuse_missing(y)
    given = column_or_1d(settle_objects(bring_to_host(y)))
    classes, numbers = find_classes(given)
    if not are_rows_known():
        refuse_regression_target(y, classes, len(given))
    contents = _hash_contents(X, len(given))
    weight = _check_sample_weight(bring_to_host(sample_weight), contents, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight must be positive for some of the rows")
    weight = scale_weights(weight)
    groups = None if sources.groups is None else read_groups(sources.groups, len(given))
    votes = _read_sources(sources, contents, numbers, weight, groups)
    settings = resolve(list_parameters(PILBoostClassifier(cv=cv, random_state=random_state)))
    folds = own_folds = None
    if X is None:
        pass  # There are no rows to fit anything to.
    elif not isinstance(settings.cv, int):
        own_folds = read_own_folds(settings.cv, X, given, None if groups is None else groups.number_rows())
        needs_all = "reviewed" if has_review else None if votes is None else "source"
        check_own_folds(own_folds, groups, None if votes is None else votes.items, needs_all)
        check_trained_classes(numbers, weight, classes, np.where(own_folds.trained, weight, 0.0), own_folds)
        folds = np.where(own_folds.held_out, weight, 0.0)
    elif groups is not None:
        alone = contents if votes is None else mix_bits(votes.items.astype(np.uint64))
        hashes = groups.hash_rows(alone)
        folds = split_groups_into_folds(contents, hashes, numbers, weight, settings.cv, settings.seed)
        check_trained_classes(numbers, weight, classes, weight - folds, None)
    elif votes is not None and votes.has_repeated_items:
        folds = split_items_into_folds(contents, votes.items, numbers, weight, settings.cv, settings.seed)
    else:
        folds = split_into_folds(contents, numbers, weight, settings.cv, settings.seed)
    labels = numbers.astype(np.intp)
    return AuditedRows(classes, labels, weight, votes, folds, None, groups, own_folds)


def _count_dimensions(X: Any) -> int:
    """Return 2 for a table, 1 for a sequence of texts."""
    return len(X.shape) if hasattr(X, "shape") else np.asarray(X, dtype=object).ndim


def _hash_contents(X: Any, n_rows: int) -> NDArray[np.uint64]:
    """Return a hash of what each row holds; without rows each differs from all others."""
    if X is None:
        return mix_bits(np.arange(n_rows, dtype=np.uint64))
    if _count_dimensions(X) == 1:
        return mix_bits(read_names("X", X, n_rows)[1].astype(np.uint64))
    numbers = np.asarray(X)
    if len(numbers) != n_rows:
        raise ValueError(f"X and y must have as many rows, got {len(numbers)} and {n_rows}")
    return hash_rows(numbers.reshape(n_rows, -1))


def _read_sources(
    columns: SourceColumns,
    contents: NDArray[np.uint64],
    labels: NDArray[np.uint32],
    weight: Array,
    groups: RowGroups | None,
) -> LabelSources | None:
    """Return who gave each label and which rows are of one item, if that was told."""
    if columns.item is not None and columns.source is None:
        raise ValueError("item must come with source: who gave each of the labels of an item")
    if columns.source is None:
        return None
    names, index = read_names("source", columns.source, len(labels))
    if not (weight[index != UNKNOWN] > 0).any():
        raise ValueError("source must be known for some of the rows with a weight, got none but unknown ones")
    named = None if columns.item is None else read_names("item", columns.item, len(labels))[1]
    contents, named = keep_items_in_groups(contents, named, groups)
    return LabelSources(names, index, find_items(contents, index, labels, weight, named))
