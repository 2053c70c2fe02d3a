"""All that comes before round one: the table as codes, labels, weights, validation rows and folds.

Workers of a distributed fit agree in here on the seed; while the engine makes its dataset they agree on bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from untwist.arguments import Array
from untwist.boosting.engines.engine import Dataset, EngineOptions, Rows, Task, TreeGrowth
from untwist.boosting.forest import iterate_row_blocks
from untwist.boosting.memory import check_memory_of_boosters
from untwist.boosting.starting import find_prior_score, weigh_classes_exactly
from untwist.data import tables
from untwist.data.batches import Encoded
from untwist.data.closeness import ComparedRows
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
from untwist.data.near_duplicates import NearDuplicates, draw_rows, find_split_rows
from untwist.data.sources import LabelSources
from untwist.data.targets import are_rows_known
from untwist.data.workers import Workers, find_workers, solo
from untwist.fit_arguments import NO_REVIEW_FOR_WORKERS, InitScores, SourceColumns, ValidationTable
from untwist.model import FittedModel
from untwist.noise.paper import MenonEstimate, menon
from untwist.noise.posterior import find_posterior_floor, turns_labels_over
from untwist.settings import N_FOLDS, VALIDATION_FRACTION, Settings
from untwist.sums import add_up
from untwist.theory.links import Link
from untwist.training_table import TrainingTable

__all__ = ["TrainingData", "check_review_allowed"]

#: So many rows are hashed at once, so that what it takes of memory is bounded.
ROWS_PER_HASHING = 65_536


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
    validation_weight : array or None
        What each row weighs in the validation loss; None where there are no validation rows.
    validation_was_given : bool
        Whether the validation rows were given, or drawn from the training rows.
    validation_share : array
        The share of each training row's weight that was drawn for validation.
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
    validation_weight: Array | None
    validation_was_given: bool
    validation_share: Array
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
        groups = table.read_groups(sources)
        label_sources = table.read_sources(sources, groups)
        rows, validation_weight = table.append_validation(validation, estimator)
        items = _find_items_to_keep_together(settings, groups, label_sources)
        n_folds = _count_folds(settings, table, rows, groups, items)
        if boosts:
            check_memory_of_boosters(
                settings.engine,
                len(rows.labels),
                len(table.classes),
                jointly=settings.boosts_jointly(len(table.classes)),
                n_folds=n_folds,
                device=settings.engine_options.device,
            )
        begin_at = (InitScores() if init_scores is None else init_scores).read(
            table.n_rows,
            len(rows.labels) - table.n_rows,
            len(list_positive_classes(len(table.classes))),
            workers,
        )
        growth = replace(
            settings.growth,
            seed=seed,
            monotone=table.find_directions(estimator),
            interactions=table.find_interactions(),
            feature_weights=table.find_feature_weights(),
        )
        options = replace(settings.engine_options, growth=growth)
        coding = table.coding
        # Rows are set aside by what they contain before columns are coded, which depends on what is set aside.
        contents: Dataset = settings.engine.make_dataset(rows, options) if coding is None else coding
        validation_was_given = validation_weight is not None
        if groups is not None and not validation_was_given:
            own = contents.hashes() if label_sources is None else mix_bits(label_sources.items.astype(np.uint64))
            rows = replace(rows, groups=groups.hash_rows(own))
        weight, validation_share = rows.weight, np.zeros(table.n_rows)
        if settings.patience and not validation_was_given:
            share = table.check_enough_to_hold_out(VALIDATION_FRACTION)
            validation_share = settings.engine.hold_out(contents, rows, share, seed)
            validation_weight, weight = weight * validation_share, weight * (1.0 - validation_share)
        folds = own_folds = None
        if settings.automatic and not isinstance(settings.cv, int):
            own_folds = table.read_own_folds(X, groups, label_sources, has_review)
            folds = np.where(own_folds.held_out, rows.weight, 0.0)
        elif settings.automatic:
            folds = _make_folds(settings, contents, rows, items, len(table.classes), seed)
        datasets: tuple[Dataset, ...] = (contents,)
        fold_numbers: tuple[NDArray[np.float32], ...] = ()
        if coding is not None:
            trained = None
            if folds is not None:
                trained = [_weigh_training(weight, folds, own_folds, fold) for fold in range(len(folds))]
            rows, datasets, fold_numbers = _code_rows(settings, options, rows, coding, weight[: table.n_rows], trained)
        data = cls(
            settings=settings,
            rows=rows,
            datasets=datasets,
            weight=weight,
            validation_weight=validation_weight,
            validation_was_given=validation_was_given,
            validation_share=validation_share,
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
            coding=coding,
            fold_numbers=fold_numbers,
            init_scores=begin_at,
            groups=groups,
            own_folds=own_folds,
        )
        data.check_trained_classes()
        return data

    def check_trained_classes(self) -> None:
        """Raise an error where groups, or folds of one's own, leave a model without rows of a class."""
        if self.groups is None and self.own_folds is None:
            return
        parts = range(1 if self.folds is None else len(self.folds))
        by_fold = (self.training_weight(fold) for fold in parts)
        check_trained_classes(self.rows.labels, self.rows.weight, self.classes, by_fold, self.own_folds, self.workers)

    def training_weight(self, fold: int) -> Array:
        """Return the weight of each row that the model of a fold trains on."""
        if self.folds is None:
            return self.weight
        return _weigh_training(self.weight, self.folds, self.own_folds, fold)

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
        rows = replace(self.rows, X=self.table, n_categories=schema.n_sets)
        options = replace(self.settings.engine_options, growth=self.growth)
        coding = None
        fold_numbers: tuple[NDArray[np.float32], ...] = ()
        if still_coded:
            coding = self.coding.keep(still_coded)
            trained = [self.training_weight(fold) for fold in range(len(self.folds))]
            rows, datasets, fold_numbers = _code_rows(self.settings, options, rows, coding, self.weight, trained)
        else:
            datasets = (self.settings.engine.make_dataset(rows, options),)
        return replace(
            self,
            rows=rows,
            datasets=datasets,
            encoder=replace(self.encoder, schema=schema),
            coding=coding,
            fold_numbers=fold_numbers,
        )

    def join_folds(self) -> TrainingData:
        """Return the same rows without folds: all of them train, and the loss is that of the training rows."""
        datasets = self.datasets
        if self.fold_numbers:
            options = replace(self.settings.engine_options, growth=self.growth)
            datasets = (self.settings.engine.make_dataset(self.rows, options),)
        return replace(
            self, folds=None, own_folds=None, validation_weight=self.weight, datasets=datasets, fold_numbers=()
        )

    def relabel(self, labels: NDArray[np.uint32], worth: Array) -> TrainingData:
        """Return the same rows, in the same folds, with other labels and weights.

        Columns that are coded by labels keep the numbers that they have.

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
        options = replace(self.settings.engine_options, growth=self.growth)
        by_fold = [rows]
        if self.coding is not None and self.fold_numbers:
            by_fold = [_put_numbers(rows, self.coding, numbers) for numbers in self.fold_numbers]
        return replace(
            self,
            rows=rows,
            weight=self.weight * factor,
            folds=self.folds * factor,
            datasets=tuple(self.settings.engine.make_dataset(one, options) for one in by_fold),
        )

    @property
    def posterior_floor(self) -> float:
        """By the rule of succession, no posterior can be nearer to 0 or 1 than this."""
        return find_posterior_floor(self.n_effective_rows)

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

    def find_given_scores(self, link: Link, class_index: int) -> Array | None:
        """Return the score of each row that a booster was told to begin at, None where it was told nothing.

        What is given is a score of the clean posterior, and what is boosted one of the twisted posterior.
        """
        if self.init_scores is None:
            return None
        given = self.init_scores[:, class_index]
        return -given if turns_labels_over(link) else given

    def make_task(self, link: Link, step_size: float, class_index: int) -> Task:
        """Return what the booster of a class has to do in a plain fit."""
        return Task(
            link=link,
            step_size=step_size,
            growth=self.growth,
            by_edge=self.settings.by_edge,
            positive_class=self.positive_classes[class_index],
            weight=self.weight,
            validation_weight=self.validation_weight,
            posterior_floor=self.posterior_floor,
            begins_at_shares=self.settings.init == "prior",
            stream=class_index,
        )

    def find_twins(self) -> NearDuplicates | None:
        """Look for rows that nearly repeat rows of other folds: groups that were given may not keep them together.

        Returns
        -------
        NearDuplicates or None
            None too where the table is sparse, or where other workers have rows: nobody looks then.
        """
        if self.folds is None or self.workers.size > 1:
            return None
        if not isinstance(self.table, (np.ndarray, Encoded)):
            return None
        judged = self.folds.any(axis=0)
        # That rows share one of many categories makes no near-duplicates: what a category says is there to be learned.
        coded = () if self.coding is None else self.coding.n_categories
        compared = [column for column in range(self.table.shape[1]) if column not in coded]
        hashes = self.datasets[0].hashes() if self.coding is None else self.coding.hashes()
        rows = draw_rows(hashes, self.weight, len(compared), lambda tied: self._hash_exactly(tied, compared))
        numbers = self.table.take_rows(rows) if isinstance(self.table, Encoded) else self.table[rows]
        fold_of_row = np.where(judged, self.folds.argmax(axis=0), -1)[rows]
        trained = np.stack([self.training_weight(fold)[rows] > 0 for fold in range(len(self.folds))])
        if not self._folds_are_told:
            # Where copies of a row lie in several folds, the order of the table may decide which copy lies in which.
            # No such row is asked for its near-duplicates, and it counts as one that every fold trains on.
            is_split = find_split_rows(hashes, rows, self.folds)
            fold_of_row[is_split] = -1
            trained[:, is_split] = True
        table = ComparedRows(numbers, self.encoder, compared)
        group = None if self.groups is None else self.groups.index[rows]
        twins = NearDuplicates.find(table, self.rows.labels[rows], fold_of_row, trained, group)
        if twins is None:
            return None
        column = twins.find_group_column(zip(self.encoder.feature_labels, numbers.T, strict=True))
        pairs, pairs_beyond = rows[twins.pairs], rows[twins.pairs_beyond]
        has_groups = self.groups is not None
        return replace(twins, column=column, pairs=pairs, pairs_beyond=pairs_beyond, has_groups=has_groups)

    @property
    def _folds_are_told(self) -> bool:
        """Whether more than the contents of a row tells which folds it lies in: its group, or folds of one's own."""
        return self.own_folds is not None or self.groups is not None

    def _hash_exactly(self, rows: NDArray[np.intp], columns: Sequence[int]) -> NDArray[np.uint64]:
        """Return hashes of the numbers in these columns and of the labels of some rows, whose positions are in order.

        The engine's hashes are of bins, each of which may hold several numbers. Groups and folds of one's own are
        hashed too, as copies of a row may lie in different ones.
        """
        parts = []
        for where, block in iterate_row_blocks(self.table):
            first, last = np.searchsorted(rows, (where.start, where.stop))
            for start in range(first, last, ROWS_PER_HASHING):
                chosen = rows[start : min(last, start + ROWS_PER_HASHING)] - where.start
                parts.append(ComparedRows(block[chosen], self.encoder, columns).hashes)
        hashes = mix_bits(np.concatenate(parts) ^ mix_bits(self.rows.labels[rows].astype(np.uint64)))
        if self.groups is not None:
            hashes = mix_bits(hashes ^ mix_bits(self.groups.index[rows].astype(np.uint64)))
        if self.folds is not None and self._folds_are_told:
            for fold, is_judged in enumerate(self.folds[:, rows] > 0):
                is_trained = self.training_weight(fold)[rows] > 0
                hashes = mix_bits(hashes + is_judged.astype(np.uint64) + 2 * is_trained.astype(np.uint64))
        return hashes

    def estimate_menon(self) -> MenonEstimate:
        """Return the paper's estimate of the noise, and with it alpha."""
        if isinstance(self.rows.X, Encoded):
            raise ValueError('alpha="menon" needs the table in memory, got Batches: give a number')
        rows = np.flatnonzero(self.rows.weight)
        table = self.rows.X[rows].toarray() if sparse.issparse(self.rows.X) else self.rows.X[rows]
        weight = self.rows.weight[rows]
        return menon(table, self.rows.labels[rows], sample_weight=weight, random_state=self.growth.seed)

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


def _refuse_too_many_folds(n_folds: int, rows: Rows, items: NDArray[np.intp] | None, n_classes: int) -> None:
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
        copies = np.bincount(labels, weights=np.clip(np.rint(weight), 1, n_folds), minlength=n_classes)
        # The weights of equal rows add up before they are rounded.
        counts = np.maximum(copies, np.ceil(np.bincount(labels, np.minimum(weight, n_folds), n_classes)))
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
    _refuse_too_many_folds(settings.cv, rows, items, len(table.classes))
    return settings.cv


def _make_folds(
    settings: Settings, contents: Dataset, rows: Rows, items: NDArray[np.intp] | None, n_classes: int, seed: int
) -> Array:
    """Return the weight of each row that each fold sets aside, drawn by what rows hold, by items or by groups."""
    if rows.groups is not None:
        _refuse_too_many_folds(settings.cv, rows, None, n_classes)
    if items is None:
        return settings.engine.make_folds(contents, rows, settings.cv, seed)
    return split_items_into_folds(contents.hashes(), items, rows.labels, rows.weight, settings.cv, seed)


def _weigh_training(weight: Array, folds: Array, own_folds: OwnFolds | None, fold: int) -> Array:
    """Return the weight of each row that a fold trains on: all that it does not set aside, or what it was told."""
    if own_folds is None:
        return np.asarray(weight - folds[fold])
    return np.where(own_folds.trained[fold], weight, 0.0)


def _code_rows(
    settings: Settings,
    options: EngineOptions,
    rows: Rows,
    coding: LabelCoding,
    weight: Array,
    trained: list[Array] | None,
) -> tuple[Rows, tuple[Dataset, ...], tuple[NDArray[np.float32], ...]]:
    """Return rows with columns that are coded by labels, the same as the engine holds them, and the numbers of folds.

    With folds, given by the weight that each trains on, there is a dataset for each, whose numbers come from the rows
    that its model trains on and no others.
    """
    rows = _put_numbers(rows, coding, coding.number_rows(weight))
    if trained is None:
        return rows, (settings.engine.make_dataset(rows, options),), ()
    fold_numbers = tuple(coding.number_rows(one) for one in trained)
    datasets = [settings.engine.make_dataset(_put_numbers(rows, coding, numbers), options) for numbers in fold_numbers]
    return rows, tuple(datasets), fold_numbers


def _put_numbers(rows: Rows, coding: LabelCoding, numbers: NDArray[np.float32]) -> Rows:
    """Return rows whose first ones, those that are coded by their labels, have other numbers."""
    if isinstance(rows.X, Encoded):
        return replace(rows, X=rows.X.replace_rows(lambda part, block: coding.put(block, numbers[part])))
    return replace(rows, X=coding.put(rows.X, numbers))


def _count_effective_rows(weight: Array, workers: Workers) -> float:
    """Return the number of rows with a weight or their total weight, whichever is larger, over all workers."""
    total = workers.sum(np.array([float(np.count_nonzero(weight)), add_up(weight)]))
    return min(float(total.max()), MOST_WEIGHT)
