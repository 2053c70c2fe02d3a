"""All that comes before round one: the table as codes, labels, weights, validation rows and folds.

Workers of a distributed fit agree in here on the seed; while the engine makes its dataset they agree on bins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array
from untwist.boosting.engines.engine import Dataset, Rows, Task, TreeGrowth
from untwist.boosting.memory import check_memory_of_boosters
from untwist.boosting.starting import find_prior_score, weigh_classes_exactly
from untwist.data import tables
from untwist.data.batches import Encoded
from untwist.data.encoding import TableEncoder
from untwist.data.folds import mix_bits, split_items_into_folds
from untwist.data.groups import (
    OwnFolds,
    RowGroups,
    check_trained_classes,
)
from untwist.data.label_coding import LabelCoding
from untwist.data.labels import (
    MOST_WEIGHT,
    list_positive_classes,
)
from untwist.data.sources import LabelSources
from untwist.data.targets import are_rows_known
from untwist.data.workers import Workers, find_workers, solo
from untwist.fit_arguments import NO_REVIEW_FOR_WORKERS, InitScores, SourceColumns, ValidationTable
from untwist.model import FittedModel
from untwist.noise.posterior import find_posterior_floor
from untwist.settings import N_FOLDS, VALIDATION_FRACTION, Settings
from untwist.sums import add_up
from untwist.theory.links import Link
from untwist.training_table import TrainingTable

__all__ = ["TrainingData", "check_review_allowed"]


@dataclass(frozen=True, eq=False)
class Validation:
    """The rows that the loss is followed by.

    Parameters
    ----------
    weight : array or None
        What each row weighs in the validation loss; None where there are no validation rows.
    was_given : bool
        Whether the validation rows were given, or drawn from the training rows.
    share : array
        The share of each training row's weight that was drawn for validation.
    """

    weight: Array | None
    was_given: bool
    share: Array


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The rows of a fit as the engine holds them. Validation rows that were given come after the training rows.

    Parameters
    ----------
    settings : Settings
        The settings that the rows were prepared for.
    rows : Rows
        All rows as numbers, with their labels and weights, class weights included.
    datasets : tuple of Dataset
        The same as the engine holds them: once, or where columns are coded by their labels once for each fold.
    weight : array
        What each row weighs in training: 0 for validation rows.
    validation : Validation
        The rows that the loss is followed by, if there are such.
    folds : array or None
        The weight of each row that each fold sets aside; None where nothing is to be chosen.
    classes, class_weights, encoder
        As in `FittedModel`.
    n_rows : int
        The number of training rows.
    n_effective_rows : float
        The number of rows that train or their total weight, whichever is larger; of all workers.
    growth : TreeGrowth
        How trees grow, with the seed and the directions of monotone columns.
    workers : Workers
        Who else has training rows.
    sources : LabelSources or None
        Who gave the label of each training row, if that was told.
    table : array, sparse matrix or Encoded
        The rows with categories as indices, by which the table is known again.
    coding : LabelCoding or None
        The columns of many categories that are coded by their labels, if there are such.
    fold_numbers : tuple of arrays
        What the rows of each fold's model have in these columns.
    init_scores : array or None
        The scores to begin at that `fit` was given: a row for each row, a column for each booster.
    groups : RowGroups or None
        Which training rows belong together, if that was told.
    own_folds : OwnFolds or None
        The rows that each fold trains on and judges where folds of one's own were given. Otherwise each trains on what
        it does not set aside.
    """

    settings: Settings
    rows: Rows
    datasets: tuple[Dataset, ...]
    weight: Array
    validation: Validation
    folds: Array | None
    classes: NDArray[Any]
    class_weights: Array
    encoder: TableEncoder
    n_rows: int
    n_effective_rows: float
    growth: TreeGrowth
    workers: Workers
    table: Any
    sources: LabelSources | None = None
    coding: LabelCoding | None = None
    fold_numbers: tuple[NDArray[np.float32], ...] = ()
    init_scores: Array | None = None
    groups: RowGroups | None = None
    own_folds: OwnFolds | None = None

    @classmethod
    def collect(
        cls,
        settings: Settings,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        validation: ValidationTable | None = None,
        *,
        sources: SourceColumns | None = None,
        has_review: bool = False,
        boosts: bool = True,
        init_scores: InitScores | None = None,
        previous: FittedModel | None = None,
        estimator: Any = None,
    ) -> TrainingData:
        """Check the rows and bring them to the engine.

        Parameters
        ----------
        settings : Settings
            What the fit is to do.
        X, y, sample_weight
            As `PILBoostClassifier.fit` takes them.
        validation : ValidationTable or None
            The validation rows that were given.
        sources : SourceColumns or None
            Who gave each label, and which rows belong together.
        has_review : bool
            Whether some rows have been reviewed.
        boosts : bool
            Whether they are to be boosted, which must not take more memory than there is; otherwise they are only read.
        init_scores : InitScores or None
            The scores to begin at.
        previous : FittedModel or None
            The model to go on from: the rows must have its columns and classes.
        estimator : object or None
            In whose name scikit-learn's errors speak.
        """
        validation = ValidationTable() if validation is None else validation
        validation.check_complete()
        workers = find_workers() if settings.engine.joins_workers else solo
        sources = SourceColumns() if sources is None else sources
        sources.check_allowed(settings, workers)
        check_review_allowed(has_review, settings, sources, workers)
        seed = workers.gather(settings.seed)[0]
        table = TrainingTable.read(settings, workers, X, y, sample_weight, previous, estimator)
        if previous is None and not are_rows_known():
            table.check_sense(y)
        groups = sources.read_groups(table.n_rows)
        label_sources = table.read_sources(sources, groups)
        rows, validation_weight = table.append_validation(validation, estimator)
        items = _find_items_to_keep_together(settings, groups, label_sources)
        n_folds = _count_folds(settings, table, rows, groups, items)
        if boosts:
            _check_memory(settings, rows, n_folds)
        starts = (InitScores() if init_scores is None else init_scores).read(
            table.n_rows, len(rows.labels) - table.n_rows, len(list_positive_classes(len(table.classes))), workers
        )
        growth = settings.columns.tell(
            settings.growth, table.encoder, len(table.classes), settings.turns_labels_over, estimator
        )
        growth = replace(growth, seed=seed)
        options = replace(settings.engine_options, growth=growth)
        # Rows are set aside by what they contain before columns are coded, which depends on what is set aside.
        coding = table.coding
        contents: Dataset = settings.engine.make_dataset(rows, options) if coding is None else coding
        if groups is not None and validation_weight is None:
            own = contents.hashes() if label_sources is None else mix_bits(label_sources.items.astype(np.uint64))
            rows = replace(rows, groups=groups.hash_rows(own))
        held_out = _hold_out(settings, table, contents, rows, validation_weight, seed)
        weight = rows.weight * (1.0 - held_out.share) if held_out.share.any() else rows.weight
        own_folds = table.read_own_folds(X, groups, label_sources, has_review)
        folds = _make_folds(settings, contents, rows, items, own_folds, seed)
        data = cls(
            settings=settings,
            rows=rows,
            datasets=(contents,),
            weight=weight,
            validation=held_out,
            folds=folds,
            classes=table.classes,
            class_weights=table.class_weights,
            encoder=table.encoder,
            n_rows=table.n_rows,
            n_effective_rows=_count_effective_rows(weight[: table.n_rows], workers),
            growth=growth,
            workers=workers,
            table=rows.X if coding is None else table.X,
            sources=label_sources,
            init_scores=starts,
            groups=groups,
            own_folds=own_folds,
        )
        _check_trained_classes(data)
        return data if coding is None else _code_columns(data, coding)

    def training_weight(self, fold: int) -> Array:
        """Return the weight of each row that the model of a fold trains on."""
        if self.folds is None:
            return self.weight
        if self.own_folds is None:
            return np.asarray(self.weight - self.folds[fold])
        return np.where(self.own_folds.trained[fold], self.weight, 0.0)

    def dataset_of(self, fold: int) -> Dataset:
        """Return the rows as the model of a fold sees them; of a fit without folds that is fold 0."""
        return self.datasets[fold if self.fold_numbers else 0]

    def show_to_fold(self, fold: int, rows: NDArray[np.intp], numbers: NDArray[Any]) -> NDArray[Any]:
        """Return some of the rows, given with their positions in the table, as the model of a fold sees them."""
        if self.coding is None or not self.fold_numbers:
            return numbers
        return self.coding.put(numbers, self.fold_numbers[fold][rows])

    def split_by_sets(self) -> TrainingData | None:
        """Return the same with columns that are coded by their labels as sets of categories, as far as trees take such.

        Returns
        -------
        TrainingData or None
            None where there are no such columns, or no folds to tell by which is better.
        """
        if self.coding is None or self.folds is None:
            return None
        still_coded = [one for one, count in self.coding.n_categories.items() if count > tables.KNOWN_CATEGORIES]
        if len(still_coded) == len(self.coding.n_categories):
            return None
        schema = self.encoder.schema
        schema = replace(schema, numbers={column: schema.numbers[column] for column in still_coded})
        by_sets = replace(
            self,
            rows=replace(self.rows, X=self.table, n_categories=schema.n_sets),
            encoder=replace(self.encoder, schema=schema),
            coding=None,
            fold_numbers=(),
        )
        if still_coded:
            return _code_columns(by_sets, self.coding.keep(still_coded))
        return replace(by_sets, datasets=_bin_tables(self, by_sets.rows))

    def join_folds(self) -> TrainingData:
        """Return the same rows in one fold, which trains on all and judges all: the loss is that of training."""
        everything = np.ones((1, self.n_rows), dtype=np.bool_)
        return replace(
            self,
            folds=self.weight[None],
            own_folds=OwnFolds(everything, everything),
            datasets=_bin_tables(self, self.rows) if self.fold_numbers else self.datasets,
            fold_numbers=(),
        )

    def relabel(self, labels: NDArray[np.uint32], worth: Array) -> TrainingData:
        """Return the same rows, in the same folds, with other labels and weights.

        Columns that are coded by labels keep the numbers that they have. Labels of sources stay as they are, and so do
        the bins of their rows.

        Parameters
        ----------
        labels : array of uint32
            The index of each row's class.
        worth : array
            What the weight of each row is multiplied by, above 0.

        Returns
        -------
        TrainingData
        """
        assert self.folds is not None
        before, after = (self.class_weights[one] for one in (self.rows.labels, labels))
        factor = worth * np.divide(after, before, out=np.ones_like(after), where=before > 0)
        rows = replace(self.rows, labels=labels, weight=self.rows.weight * factor)
        weighed = replace(self, rows=rows, weight=self.weight * factor, folds=self.folds * factor)
        if self.sources is not None:
            return weighed
        by_fold = [rows]
        if self.coding is not None and self.fold_numbers:
            by_fold = [_put_numbers(rows, self.coding, numbers) for numbers in self.fold_numbers]
        return replace(weighed, datasets=_bin_tables(self, *by_fold))

    @property
    def boosts_jointly(self) -> bool:
        """Whether one booster tells all classes apart."""
        return self.settings.boosts_jointly(len(self.classes))

    @property
    def mixes_families(self) -> bool:
        """Whether several families of trees make the model."""
        return self.settings.mixes_families(len(self.classes))

    @property
    def boosts_log_odds(self) -> bool:
        """Whether the boosted scores of two classes are log-odds, as those of families that are mixed must be."""
        return self.mixes_families and not self.boosts_jointly

    @property
    def positive_classes(self) -> list[int] | list[None]:
        """The class that each booster tells from the others; None for one that tells all classes apart."""
        return [None] if self.boosts_jointly else list_positive_classes(len(self.classes))

    def find_starts(self, link: Link, weight: Array) -> list[float]:
        """Return the score that each booster begins at, by what each row weighs in its training.

        Classes that are boosted together begin at their shares by themselves, and `init_scores` take the place of all.
        """
        if self.settings.init == "zero" or self.boosts_jointly or self.init_scores is not None:
            return [0.0] * len(self.positive_classes)
        masses = weigh_classes_exactly(self.rows.labels, weight, len(self.classes), self.workers)
        return [
            find_prior_score(link, float(masses[label, 0]), float(masses[label, 1]))
            for label in list_positive_classes(len(self.classes))
        ]

    def make_task(self, link: Link, step_size: float, class_index: int) -> Task:
        """Return what the booster of a class has to do in a plain fit."""
        return Task(
            link=link,
            step_size=step_size,
            growth=self.growth,
            by_edge=self.settings.by_edge,
            positive_class=self.positive_classes[class_index],
            weight=self.weight,
            validation_weight=self.validation.weight,
            posterior_floor=find_posterior_floor(self.n_effective_rows),
            begins_at_shares=self.settings.init == "prior",
            stream=class_index,
        )

    def unweigh_classes(self) -> Array:
        """Return the sample weight of each training row, without that of its class."""
        weight, labels = self.rows.weight[: self.n_rows], self.rows.labels[: self.n_rows]
        by_class = self.class_weights[labels]
        return np.divide(weight, by_class, out=np.zeros(len(weight)), where=by_class > 0)

    @cached_property
    def fingerprint(self) -> int:
        """A number that tells this training table from another one."""
        return tables.compute_fingerprint(self.table, self.rows.labels)


def check_review_allowed(has_review: bool, settings: Settings, sources: SourceColumns, workers: Workers) -> None:
    """Raise an error where rows are reviewed and nothing can be told of the others."""
    if any(workers.gather(has_review)) and workers.size > 1:
        raise ValueError(NO_REVIEW_FOR_WORKERS)
    if not has_review:
        return
    instead = "or give y with the labels that were decided on"
    if sources.source is not None:
        raise ValueError(f"reviewed must be None with source: leave out one of them, {instead}")
    if not settings.untwists_posteriors:
        raise ValueError(
            "reviewed must be None with noise=None, as what a known label is worth depends on the noise: leave "
            f'noise="auto", {instead}'
        )


def _refuse_too_many_folds(n_folds: int, rows: Rows, items: NDArray[np.intp] | None) -> None:
    """Raise an error where more folds are asked for than there are rows of a class, groups or items to fill them.

    The default number is not refused: few rows make fewer folds. A row counts as the copies that its weight stands for,
    as each of these may lie in a fold of its own.
    """
    if n_folds == N_FOLDS:
        return
    present = rows.weight > 0
    if rows.groups is not None:
        unit, counts = "different groups", np.array([len(np.unique(rows.groups[present]))])
    elif items is not None:
        unit, counts = "items", np.array([len(np.unique(items[present]))])
    else:
        unit, labels, weight = "rows of the largest class", rows.labels[present], rows.weight[present]
        copies = np.bincount(labels, weights=np.clip(np.rint(weight), 1, n_folds), minlength=rows.n_classes)
        # The weights of equal rows add up before they are rounded.
        counts = np.maximum(copies, np.ceil(np.bincount(labels, np.minimum(weight, n_folds), rows.n_classes)))
    most = int(rows.workers.sum(counts).max())
    if n_folds > most:
        raise ValueError(f"cv must be at most the number of {unit}, {most}, got {n_folds}: take fewer folds")


def _find_items_to_keep_together(
    settings: Settings, groups: RowGroups | None, sources: LabelSources | None
) -> NDArray[np.intp] | None:
    """Return the item of each row where folds that are drawn must keep the rows of an item together, as groups do."""
    if not settings.automatic or not isinstance(settings.cv, int) or groups is not None or sources is None:
        return None
    return sources.items if sources.has_repeated_items else None


def _count_folds(
    settings: Settings, table: TrainingTable, rows: Rows, groups: RowGroups | None, items: NDArray[np.intp] | None
) -> int:
    """Return how many folds there will be at most, 0 where none are drawn; an error where that is too many.

    With groups, what else is wrong with the number of folds is known once rows have been told apart.
    """
    if not settings.automatic or not isinstance(settings.cv, int):
        return 0
    if groups is not None:
        return min(settings.cv, table.n_rows)
    _refuse_too_many_folds(settings.cv, rows, items)
    return settings.cv


def _make_folds(
    settings: Settings,
    contents: Dataset,
    rows: Rows,
    items: NDArray[np.intp] | None,
    own_folds: OwnFolds | None,
    seed: int,
) -> Array | None:
    """Return the weight of each row that each fold sets aside, drawn by what rows hold, by items or by groups.

    Folds of one's own are not drawn; None where nothing is to be chosen.
    """
    if not settings.automatic:
        return None
    if own_folds is not None:
        return np.where(own_folds.held_out, rows.weight, 0.0)
    if rows.groups is not None:
        _refuse_too_many_folds(settings.cv, rows, None)
    if items is None:
        return settings.engine.make_folds(contents, rows, settings.cv, seed)
    return split_items_into_folds(contents.hashes(), items, rows.labels, rows.weight, settings.cv, seed)


def _check_memory(settings: Settings, rows: Rows, n_folds: int) -> None:
    """Raise a MemoryError where boosting would take more memory than there is."""
    check_memory_of_boosters(
        settings.engine,
        len(rows.labels),
        rows.n_classes,
        jointly=settings.boosts_jointly(rows.n_classes),
        n_folds=n_folds,
        device=settings.engine_options.device,
    )


def _hold_out(
    settings: Settings, table: TrainingTable, contents: Dataset, rows: Rows, given: Array | None, seed: int
) -> Validation:
    """Return the validation rows: those that were given, with these weights, or what early stopping holds out."""
    if given is not None or not settings.patience:
        return Validation(given, given is not None, np.zeros(table.n_rows))
    table.check_enough_to_hold_out()
    share = settings.engine.hold_out(contents, rows, VALIDATION_FRACTION, seed)
    return Validation(rows.weight * share, False, share)


def _check_trained_classes(data: TrainingData) -> None:
    """Raise an error where groups, or folds of one's own, leave a model without rows of a class."""
    if data.groups is None and data.own_folds is None:
        return
    parts = range(1 if data.folds is None else len(data.folds))
    by_fold = (data.training_weight(fold) for fold in parts)
    check_trained_classes(data.rows.labels, data.rows.weight, data.classes, by_fold, data.own_folds, data.workers)


def _code_columns(data: TrainingData, coding: LabelCoding) -> TrainingData:
    """Return the same with columns that are coded by their labels.

    With folds there is a dataset for each, whose numbers come from the rows that its model trains on and no others.
    """
    rows = _put_numbers(data.rows, coding, coding.number_rows(data.weight[: data.n_rows]))
    if data.folds is None:
        return replace(data, rows=rows, datasets=_bin_tables(data, rows), coding=coding)
    numbers = tuple(coding.number_rows(data.training_weight(fold)) for fold in range(len(data.folds)))
    datasets = _bin_tables(data, *(_put_numbers(rows, coding, of_fold) for of_fold in numbers))
    return replace(data, rows=rows, datasets=datasets, coding=coding, fold_numbers=numbers)


def _bin_tables(data: TrainingData, *tables: Rows) -> tuple[Dataset, ...]:
    """Return tables as the engine holds them."""
    options = replace(data.settings.engine_options, growth=data.growth)
    return tuple(data.settings.engine.make_dataset(rows, options) for rows in tables)


def _put_numbers(rows: Rows, coding: LabelCoding, numbers: NDArray[np.float32]) -> Rows:
    """Return rows whose first ones, those that are coded by their labels, have other numbers."""
    if isinstance(rows.X, Encoded):
        return replace(rows, X=rows.X.replace_rows(lambda part, block: coding.put(block, numbers[part])))
    return replace(rows, X=coding.put(rows.X, numbers))


def _count_effective_rows(weight: Array, workers: Workers) -> float:
    """Return the number of rows with a weight or their total weight, whichever is larger, over all workers."""
    total = workers.sum(np.array([float(np.count_nonzero(weight)), add_up(weight)]))
    return min(float(total.max()), MOST_WEIGHT)
