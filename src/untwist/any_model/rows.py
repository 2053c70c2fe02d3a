"""The rows that models of any kind judge: labels, weights, sources and folds, with a table or without."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _check_sample_weight

from untwist.arguments import Array
from untwist.class_order import place_classes
from untwist.data.batches import Batches
from untwist.data.encoding import TableEncoder
from untwist.data.folds import mix_bits, split_groups_into_folds, split_into_folds, split_items_into_folds
from untwist.data.groups import (
    check_trained_classes,
)
from untwist.data.labels import find_classes, refuse_missing, scale_weights, settle_objects
from untwist.data.reviews import Review, ReviewedRows, read_review
from untwist.data.sources import hash_rows, read_names
from untwist.data.tables import bring_to_host, compute_fingerprint, refuse_other_objects
from untwist.data.targets import are_rows_known, refuse_regression_target
from untwist.fit_arguments import SourceColumns, read_folds
from untwist.near_duplicates import find_near_duplicates
from untwist.out_of_fold import RowContext
from untwist.settings import Settings
from untwist.training_data import TrainingData

__all__ = ["JudgedRows", "encode_review", "hash_contents", "read_rows"]


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """The rows whose labels are judged.

    Parameters
    ----------
    classes : array
        The classes, sorted.
    labels : array of int
        The index of each row's label.
    weight : array
        How much each row counts.
    folds : array or None
        The weight of each row that each fold sets aside: rows of equal content, and of the same item, are set aside
        together. None where there are no rows to fit anything to.
    encoder : TableEncoder or None
        How the rows become numbers, where they are a table.
    context : RowContext
        What else is known of the rows.
    """

    classes: NDArray[Any]
    labels: NDArray[np.intp]
    weight: Array
    folds: Array | None
    encoder: TableEncoder | None
    context: RowContext


def read_rows(
    settings: Settings,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    sources: SourceColumns,
    reviewed: Any = None,
) -> JudgedRows:
    """Read the rows as `UntwistClassifier.fit` would, and where they are no table, as far as there are any.

    Parameters
    ----------
    settings : Settings
        The folds, and the seed that they follow from; class weights play no part.
    X : table, sequence or None
        The rows. Texts, images and whatever else is no table are told apart by what they hold, and nothing else.
    y, sample_weight
        As `UntwistClassifier.fit` takes them.
    sources : SourceColumns
        Who gave each label, and which rows belong together.
    reviewed : object
        What a person found, as `UntwistClassifier.fit` takes it; all rows must be judged then.

    Returns
    -------
    JudgedRows
    """
    if isinstance(X, Batches):
        raise ValueError("X must be in memory to be judged by posteriors of other models, got Batches: leave it out")
    if reviewed is not None and sources.source is not None:
        raise ValueError("reviewed and source exclude each other: apply the decisions to y, and leave reviewed out")
    if X is not None and not isinstance(X, (list, tuple)):
        refuse_other_objects(X)  # What a list holds may be anything that the model takes, also dicts.
    review = None if reviewed is None else read_review(reviewed, X, y)
    y = y if review is None else review.given
    X = bring_to_host(X)
    is_table = X is not None and _count_dimensions(X) == 2
    read = _read_table if is_table else _read_others
    return read(replace(settings, class_weight=None), X, y, sample_weight, sources, review)


def _read_table(
    settings: Settings, X: Any, y: Any, sample_weight: ArrayLike | None, sources: SourceColumns, review: Review | None
) -> JudgedRows:
    """Read rows that are a table, as the recipe would."""
    has_review = review is not None
    data = TrainingData.collect(settings, X, y, sample_weight, sources=sources, has_review=has_review, boosts=False)
    context = RowContext(
        fingerprint=data.fingerprint,
        groups=data.groups,
        sources=data.sources,
        reviewed=encode_review(review, data.classes),
        own_folds=data.own_folds,
        order=place_classes(settings.order, data.classes),
        twins=find_near_duplicates(data),
    )
    labels = data.rows.labels.astype(np.intp)
    return JudgedRows(data.classes, labels, data.rows.weight, data.folds, data.encoder, context)


def _read_others(
    settings: Settings, X: Any, y: Any, sample_weight: ArrayLike | None, sources: SourceColumns, review: Review | None
) -> JudgedRows:
    """Read rows that are no table, or labels alone."""
    refuse_missing(y)
    given = column_or_1d(settle_objects(bring_to_host(y)))
    classes, numbers = find_classes(given)
    if not are_rows_known():
        refuse_regression_target(y, classes, len(given))
    contents = hash_contents(X, len(given))
    weight = _check_sample_weight(bring_to_host(sample_weight), contents, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight must be positive for some of the rows")
    weight = scale_weights(weight)
    groups = sources.read_groups(len(given))
    votes = sources.read_sources(lambda: contents, numbers, weight, groups)
    context = RowContext(
        fingerprint=None if X is None else compute_fingerprint(contents[:, None], numbers),
        groups=groups,
        sources=votes,
        reviewed=encode_review(review, classes),
        order=place_classes(settings.order, classes),
        own_folds=None if X is None else read_folds(settings.cv, X, given, groups, votes, review is not None),
    )
    rows = JudgedRows(classes, numbers.astype(np.intp), weight, None, None, context)
    # Without X there are no rows to fit anything to.
    return rows if X is None else replace(rows, folds=_make_folds(settings, rows, contents, numbers))


def _make_folds(
    settings: Settings, rows: JudgedRows, contents: NDArray[np.uint64], numbers: NDArray[np.uint32]
) -> Array:
    """Return the weight of each row that each fold sets aside, drawn by what rows hold unless folds are told."""
    weight, classes = rows.weight, rows.classes
    own_folds, groups, votes = rows.context.own_folds, rows.context.groups, rows.context.sources
    if own_folds is not None:
        check_trained_classes(numbers, weight, classes, np.where(own_folds.trained, weight, 0.0), own_folds)
        return np.where(own_folds.held_out, weight, 0.0)
    if groups is not None:
        alone = contents if votes is None else mix_bits(votes.items.astype(np.uint64))
        hashes = groups.hash_rows(alone)
        folds = split_groups_into_folds(contents, hashes, numbers, weight, settings.cv, settings.seed)
        check_trained_classes(numbers, weight, classes, weight - folds, None)
        return folds
    if votes is not None and votes.has_repeated_items:
        return split_items_into_folds(contents, votes.items, numbers, weight, settings.cv, settings.seed)
    return split_into_folds(contents, numbers, weight, settings.cv, settings.seed)


def encode_review(review: Review | None, classes: NDArray[Any]) -> ReviewedRows | None:
    """Return what a review found, with labels as indices of classes; None where it decided on nothing."""
    return None if review is None or not review.is_reviewed.any() else review.encode(classes)


def _count_dimensions(X: Any) -> int:
    """Return 2 for a table, 1 for a sequence of texts."""
    return len(X.shape) if hasattr(X, "shape") else np.asarray(X, dtype=object).ndim


def hash_contents(X: Any, n_rows: int) -> NDArray[np.uint64]:
    """Return a hash of what each row holds; without rows each differs from all others."""
    if X is None:
        return mix_bits(np.arange(n_rows, dtype=np.uint64))
    if _count_dimensions(X) == 1:
        return mix_bits(read_names("X", X, n_rows)[1].astype(np.uint64))
    numbers = np.asarray(X)
    if len(numbers) != n_rows:
        raise ValueError(f"X and y must have as many rows, got {len(numbers)} and {n_rows}")
    return hash_rows(numbers.reshape(n_rows, -1))
