"""The training rows as numbers, before they go to an engine: columns, labels, weights, and what was told of columns.

Workers of a distributed fit agree in here on columns, categories, classes and weights.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    _get_feature_names,
    check_consistent_length,
)

from untwist.arguments import Array
from untwist.boosting.engines.engine import Rows
from untwist.boosting.forest import iterate_row_blocks
from untwist.data import tables
from untwist.data.batches import Batches, Encoded
from untwist.data.column_names import list_names, read_other_names
from untwist.data.emptiness import describe_emptiness
from untwist.data.encoding import TableEncoder
from untwist.data.groups import (
    OwnFolds,
    RowGroups,
)
from untwist.data.label_coding import MANY_CATEGORIES, LabelCoding
from untwist.data.labels import (
    encode_labels,
    find_classes,
    refuse_missing,
    scale_weights,
    settle_objects,
    weigh_classes,
)
from untwist.data.sources import LabelSources, find_source_columns, hash_rows
from untwist.data.tables import Schema
from untwist.data.targets import refuse_regression_target
from untwist.data.workers import Workers
from untwist.fit_arguments import SourceColumns, ValidationTable, read_folds
from untwist.model import FittedModel
from untwist.settings import VALIDATION_FRACTION, Settings
from untwist.sums import add_up_by_group

__all__ = ["TrainingTable"]


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """The training rows as numbers, before they go to an engine."""

    settings: Settings
    workers: Workers
    X: Any
    labels: NDArray[np.uint32]
    weight: Array
    classes: NDArray[Any]
    class_weights: Array
    encoder: TableEncoder
    coding: LabelCoding | None

    @classmethod
    def read(
        cls,
        settings: Settings,
        workers: Workers,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        previous: FittedModel | None,
        estimator: Any,
    ) -> TrainingTable:
        """Check the rows and make numbers of them, like the rows of a previous model if there is one."""
        X, y = map(tables.bring_to_host, (X, y))
        refuse_missing(y)
        weight = None
        if sample_weight is not None:
            weight = _check_weights(sample_weight, X, workers, ensure_non_negative=True)
        schema = _find_schema(settings, workers, X, weight, previous)
        if previous is not None:
            encoder, classes = previous.encoder, previous.classes
            numbers = encoder.by_index.encode(X, estimator)
            many = list(encoder.schema.numbers)
            if many and len(previous.classes) > 2:
                # The direction in which the categories of these rows differ most may be another one.
                names = ", ".join(repr(encoder.feature_labels[column]) for column in many)
                raise ValueError(
                    f"a warm start with several classes takes no column of more than {MANY_CATEGORIES} categories, "
                    f"got {names}: fit all rounds at once"
                )
            labels = encode_labels("y", y, classes)
            check_consistent_length(numbers, labels)
        else:
            numbers, y = _encode(settings, X, y, schema, estimator)
            head = X.head if isinstance(X, Batches) else X
            encoder = TableEncoder(
                numbers.shape[1], _get_feature_names(head), schema, settings.accepted_tables, read_other_names(head)
            )
            many = _list_columns_to_code(schema, workers)
            classes, labels = find_classes(y, workers)
        settings.check_classes(len(classes))
        weight, class_weights = _weigh_rows(settings, workers, classes, labels, weight)
        coding = None
        if many:
            n_categories = {column: len(schema.categories[column]) for column in many}
            blocks = (block for _, block in iterate_row_blocks(numbers))
            coding = LabelCoding.read(blocks, n_categories, labels, weight, len(classes))
            if previous is None:
                found = coding.number_categories(weight)
                schema = replace(schema, numbers={column: tuple(one.tolist()) for column, one in found.items()})
                encoder = replace(encoder, schema=schema)
        return cls(settings, workers, numbers, labels, weight, classes, class_weights, encoder, coding)

    @property
    def n_rows(self) -> int:
        """The number of training rows."""
        return len(self.labels)

    def check_sense(self, y: Any) -> None:
        """Refuse a target that holds no classes, and warn of a table that teaches nothing."""
        refuse_regression_target(y, self.classes, sum(self.workers.gather(self.n_rows)))
        words = describe_emptiness((block for _, block in iterate_row_blocks(self.X)), self.workers)
        if words is not None:
            warnings.warn(words, UserWarning, stacklevel=4)

    def read_own_folds(
        self, X: Any, groups: RowGroups | None, sources: LabelSources | None, has_review: bool
    ) -> OwnFolds | None:
        """Return folds of one's own, which must keep groups and items together; None where folds are drawn, if any."""
        if not self.settings.automatic:
            return None
        table = np.zeros((self.n_rows, 1)) if isinstance(X, Batches) else X
        return read_folds(self.settings.cv, table, self.classes[self.labels], groups, sources, has_review)

    def read_sources(self, columns: SourceColumns, groups: RowGroups | None = None) -> LabelSources | None:
        """Return who gave each label and which rows are of one item, if that was told."""
        sources = columns.read_sources(self._hash_contents, self.labels, self.weight, groups)
        if sources is not None:
            self._warn_of_source_among_columns(sources.index)
        return sources

    def _hash_contents(self) -> NDArray[np.uint64]:
        """Return a hash of what each row holds."""
        blocks = [self.X] if sparse.issparse(self.X) else (block for _, block in iterate_row_blocks(self.X))
        return np.concatenate([hash_rows(block) for block in blocks])

    def _warn_of_source_among_columns(self, index: NDArray[np.intp]) -> None:
        """Warn of a column that is the source: the model would learn the noise of each as if it were the truth."""
        for column in _list_source_columns(self.X, index):
            name = self.encoder.feature_labels[column]
            warnings.warn(
                f"column {name!r} of X is the source: leave it out of X, or the model takes the errors of a source for "
                "what its rows are like, and its wrong labels look right",
                UserWarning,
                stacklevel=5,
            )

    def append_validation(self, validation: ValidationTable, estimator: Any) -> tuple[Rows, Array | None]:
        """Return the training rows, then the validation rows, and what each weighs in the validation loss."""
        X, labels, weight = self.X, self.labels, self.weight
        validation_weight = None
        weight_val = np.zeros(1)  # Workers without validation rows take part in the scaling all the same.
        if validation.X is not None:
            X_val, y_val, weight_val = self._encode_validation(validation, estimator)
            X = _stack_tables(X, X_val)
            labels = np.concatenate([labels, y_val])
            weight = np.concatenate([weight, np.zeros(len(y_val))])
        if any(self.workers.gather(validation.X is not None)):
            scaled = scale_weights(weight_val, self.workers)
            validation_weight = np.concatenate([np.zeros(self.n_rows), scaled[: len(labels) - self.n_rows]])
        rows = Rows(X, labels, weight, self.encoder.schema.n_sets, self.workers, n_classes=len(self.classes))
        return rows, validation_weight

    def _encode_validation(self, validation: ValidationTable, estimator: Any) -> tuple[Any, NDArray[np.uint32], Array]:
        """Return the validation rows as numbers, like the training rows."""
        try:
            X_val = self.encoder.encode(validation.X, estimator)
            y_val = encode_labels("y_val", validation.y, self.classes)
        except ValueError as error:
            raise ValueError(f"validation rows: {error}") from error
        if X_val.shape[0] != len(y_val):
            raise ValueError(f"X_val and y_val must have as many rows, got {X_val.shape[0]} and {len(y_val)}")
        weight = _check_weights(validation.sample_weight, X_val, self.workers)
        if not ((weight >= 0).all() and (weight.any() or self.workers.size > 1)):
            raise ValueError("sample_weight_val must be finite and non-negative, not all 0")
        return X_val, y_val, weight

    def check_enough_to_hold_out(self) -> None:
        """Raise an error where there are too few rows to hold out some of them."""
        share = VALIDATION_FRACTION
        counted = [add_up_by_group(one, self.labels, len(self.classes)) for one in (self.weight > 0, self.weight)]
        counts = np.maximum(*self.workers.sum(np.stack(counted)))
        n_rows, smallest = int(counts.sum()), int(counts[counts > 0].min())
        if smallest < 2 or n_rows * min(share, 1.0 - share) < 2:
            raise ValueError(
                f"early_stopping cannot hold out {share:g} of {n_rows} rows, {smallest} in the smallest class: "
                "give X_val and y_val, or more rows"
            )


def _list_source_columns(X: Any, index: NDArray[np.intp]) -> list[int]:
    """Return the columns of a table that tell sources apart, and nothing else."""
    numbers, counts = np.unique(index, return_counts=True)
    if len(numbers) < 2 or counts.max() == 1:
        return []
    columns = np.arange(X.shape[1])
    if sparse.issparse(X):
        # Such a column is 0 for the rows of one source at most, which rules nearly all of them out.
        by_column = X.tocsc()
        columns = np.flatnonzero(np.diff(by_column.indptr) >= len(index) - counts.max())
        X = by_column[:, columns].tocsr()
    kept = []
    may_be = None
    for rows, block in iterate_row_blocks(X):
        if may_be is None:
            # The first rows rule out nearly all columns, so that few of them are looked at as a whole.
            may_be = find_source_columns(block, index[rows])
        kept.append(block[:, may_be])
    assert may_be is not None
    is_source = find_source_columns(np.concatenate(kept), index)
    return [int(column) for column in columns[may_be][is_source]]


def _read_column_names(X: Any) -> list[Any]:
    """Return the names of the columns of a frame (pandas, polars, Arrow); none where they have no names."""
    names = list_names(X)
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(f"X must have different names of columns, got {repeated} more than once")
    return names


def _agree_on_columns(workers: Workers, names: list[Any], X: Any) -> None:
    if workers.size == 1:
        return
    if any(workers.gather(isinstance(X, Batches))):
        raise ValueError("Batches are for one worker: give each of several its rows as a table")
    if len({repr(columns) for columns in workers.gather((names or np.shape(X)[1:], sparse.issparse(X)))}) > 1:
        raise ValueError("the workers must have the same columns, in the same order, all sparse or all dense")


def _find_schema(
    settings: Settings, workers: Workers, X: Any, weight: Array | None, previous: FittedModel | None
) -> Schema:
    """Return how columns become numbers, after a check that the engine takes such a table."""
    if isinstance(X, Batches) and not settings.accepted_tables.blocks:
        raise ValueError('only the compiled engine and XGBoost with "hist" learn from Batches')
    names = _read_column_names(X)
    _agree_on_columns(workers, names, X)
    if previous is not None:
        schema = previous.encoder.schema
        if schema.numbers and workers.size > 1:
            raise ValueError(
                "a warm start of several workers cannot go on from a model with columns that are coded by labels, as "
                "each worker knows its own labels only: fit on one machine, or anew"
            )
    elif isinstance(X, Batches):
        schema = X.learn(settings.columns.categorical_features, weight, tables.LARGEST_CODE)
    else:
        most = tables.KNOWN_CATEGORIES if workers.size > 1 else tables.LARGEST_CODE
        schema = tables.learn(X, settings.columns.categorical_features, weight, most, workers)
    if schema.categories and not settings.accepted_tables.categories:
        holding = [names[column] if names else column for column in schema.categories]
        raise ValueError(
            f"the {settings.engine.name} engine takes no categories, but columns {holding} hold some: encode them, "
            "say with OrdinalEncoder"
        )
    return schema


def _list_columns_to_code(schema: Schema, workers: Workers) -> list[int]:
    """Return the columns that are coded by their labels; none where each worker knows its own labels only."""
    if workers.size > 1:
        return []
    return [column for column, known in schema.categories.items() if len(known) > MANY_CATEGORIES]


def _weigh_rows(
    settings: Settings, workers: Workers, classes: NDArray[Any], labels: NDArray[np.uint32], weight: Array | None
) -> tuple[Array, Array]:
    """Return the weight of every row, class weights included, and the class weights."""
    if weight is None:
        weight = np.broadcast_to(1.0, len(labels))  # This takes no memory for what is all the same.
    weight = scale_weights(weight, workers)
    mass = workers.sum(add_up_by_group(weight, labels, len(classes)))
    class_weights = np.ones(len(classes))
    if settings.class_weight is not None:
        class_weights = weigh_classes(settings.class_weight, classes, mass)
        weight = scale_weights(weight * class_weights[labels], workers)
    if np.count_nonzero((mass > 0) & (class_weights > 0)) < 2:
        raise ValueError("y must have two classes among the rows with positive sample_weight and class_weight")
    return weight, class_weights


def _encode(settings: Settings, X: Any, y: Any, schema: Schema, estimator: Any) -> tuple[Any, Any]:
    """Return a new table as numbers, and its labels, both checked."""
    accepted = settings.accepted_tables
    y = settle_objects(y)
    if not isinstance(X, Batches):
        return accepted.check_with_labels(schema.encode(X), y, estimator, _read_column_names(X) or None)
    numbers = X.encode(
        schema, lambda block, first_row: accepted.check(block, estimator, X.column_names, first_row), is_new=True
    )
    y = _check_y(y, estimator=estimator)
    check_consistent_length(numbers, y)
    return numbers, y


def _check_weights(weight: ArrayLike | None, X: Any, workers: Workers, **options: Any) -> Array:
    """Return sample weights, checked; those of one worker among several may well all be 0."""
    weight = tables.bring_to_host(weight)
    if workers.size > 1 and weight is not None and not np.any(weight):
        return np.asarray(0.0 * _check_sample_weight(np.ones_like(weight), X, dtype=np.float64))
    return np.asarray(_check_sample_weight(weight, X, dtype=np.float64, **options))


def _stack_tables(X: Any, X_val: Any) -> Any:
    """Return the training rows, then the validation rows."""
    if isinstance(X_val, Encoded) and not isinstance(X, Encoded):
        raise ValueError("X_val must be in memory if X is")
    if sparse.issparse(X):
        return sparse.vstack([X, X_val], "csr")
    dense = X_val.toarray() if sparse.issparse(X_val) else X_val
    return X.concatenate(dense) if isinstance(X, Encoded) else np.concatenate([X, dense])
