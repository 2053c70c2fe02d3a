"""All that comes before round one: the table as codes, labels, weights, validation rows and folds.

Workers of a distributed fit agree in here on columns, categories, classes, weights and seed; while the engine makes its
dataset they agree on bins.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import (
    _check_monotonic_cst,
    _check_sample_weight,
    _check_y,
    _get_feature_names,
    check_consistent_length,
)

from untwist.arguments import Array, check_numbers
from untwist.boosting.engines.engine import Dataset, EngineOptions, Growth, Rows, Task
from untwist.boosting.forest import iterate_row_blocks
from untwist.boosting.memory import check_memory_of_boosters
from untwist.boosting.starting import find_prior_score, weigh_classes_exactly
from untwist.data import tables
from untwist.data.batches import Batches, Encoded
from untwist.data.closeness import ComparedRows
from untwist.data.column_names import list_names, read_other_names
from untwist.data.emptiness import describe_emptiness
from untwist.data.encoding import TableEncoder
from untwist.data.folds import mix_bits, split_items_into_folds
from untwist.data.groups import (
    OwnFolds,
    RowGroups,
    check_own_folds,
    check_trained_classes,
    keep_items_in_groups,
    read_groups,
    read_own_folds,
)
from untwist.data.label_coding import MANY_CATEGORIES, LabelCoding
from untwist.data.labels import (
    MOST_WEIGHT,
    encode_labels,
    find_classes,
    list_positive_classes,
    refuse_missing,
    scale_weights,
    settle_objects,
    weigh_classes,
)
from untwist.data.sources import UNKNOWN, LabelSources, find_items, find_source_columns, hash_rows, read_names
from untwist.data.tables import Schema
from untwist.data.targets import are_rows_known, refuse_regression_target
from untwist.data.twins import Twins, draw_rows, find_split_rows, find_twins
from untwist.data.workers import Workers, find_workers, solo
from untwist.model import FittedModel
from untwist.noise.paper import MenonEstimate, menon
from untwist.noise.posterior import find_posterior_floor, turns_labels_over
from untwist.settings import N_FOLDS, Settings
from untwist.sums import add_up, add_up_by_group
from untwist.theory.links import Link

__all__ = [
    "NO_INIT_SCORE_FOR_WORKERS",
    "NO_OWN_FOLDS_FOR_WORKERS",
    "NO_REVIEW_FOR_WORKERS",
    "NO_SOURCES_FOR_WORKERS",
    "N_FOLDS",
    "InitScores",
    "SourceColumns",
    "TrainingData",
    "ValidationTable",
]

#: What workers of a distributed fit are told that were given sources.
NO_SOURCES_FOR_WORKERS = (
    "source and item must be None in a distributed fit, as sources are judged by all rows at once: "
    "fit PILBoostClassifier on one machine"
)

#: What workers of a distributed fit are told that were given reviewed rows.
NO_REVIEW_FOR_WORKERS = (
    "reviewed must be None in a distributed fit, as reviewed rows are judged by all rows at once: "
    "fit PILBoostClassifier on one machine, or give y with the labels that were decided on"
)

#: What workers of a distributed fit are told that were given scores to begin at.
NO_INIT_SCORE_FOR_WORKERS = "init_score must be None in a distributed fit: fit PILBoostClassifier on one machine"

#: What `interaction_cst` may be.
KINDS_OF_INTERACTIONS = 'interaction_cst must be None, "pairwise", "no_interactions" or a list of sets of columns'

#: What workers of a distributed fit are told that were given folds of one's own.
NO_OWN_FOLDS_FOR_WORKERS = (
    "cv must be None or a number of folds in a distributed fit, as each worker knows the positions of its own rows "
    "only: give groups, whose names all workers know"
)

#: So many rows are hashed at once, so that what it takes of memory is bounded.
ROWS_PER_HASHING = 65_536


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

    def check_allowed(self, settings: Settings, validation: ValidationTable, workers: Workers) -> None:
        """Raise an error where sources are given that nothing can be told of."""
        if self.item is not None and self.source is None:
            raise ValueError("item must come with source: who gave each of the labels of an item")
        if any(workers.gather(self.source is not None)) and workers.size > 1:
            raise ValueError(NO_SOURCES_FOR_WORKERS)
        if len(set(workers.gather(self.groups is not None))) > 1:
            raise ValueError("groups must be given to all workers of a distributed fit, or to none")
        if workers.size > 1 and not isinstance(settings.cv, int):
            raise ValueError(NO_OWN_FOLDS_FOR_WORKERS)
        if self.source is None:
            return
        if not settings.automatic or not settings.untwists_posteriors or settings.known_noise is not None:
            raise ValueError(
                "source must be None with settings that estimate no noise, as sources are judged by how their labels "
                'disagree with models that have not seen them: leave alpha="auto" and noise_rates="auto", and take no '
                "other loss, estimator or engine than those that grow trees"
            )
        if validation.X is not None:
            raise ValueError(
                "source must be None with X_val: sources are judged by folds over all rows; leave out X_val, or source"
            )


@dataclass(frozen=True, eq=False)
class InitScores:
    """The scores that boosting is to begin at, of training and of validation rows; None where `fit` was given none."""

    training: Any = None
    validation: Any = None

    def read(
        self, settings: Settings, n_rows: int, n_validation: int, n_boosters: int, workers: Workers
    ) -> Array | None:
        """Return a row for each training and validation row and a column for each booster, if there are scores."""
        if any(workers.gather(self.training is not None)) and workers.size > 1:
            raise ValueError(NO_INIT_SCORE_FOR_WORKERS)
        if self.training is None:
            if self.validation is not None:
                raise ValueError("init_score_val must come with init_score")
            return None
        if settings.automatic:
            raise ValueError(
                "init_score needs alpha, n_estimators and max_depth to be given: what is chosen by folds is a model by "
                "itself"
            )
        if settings.known_noise is not None:
            raise ValueError(
                "init_score must be None with noise_rates: boosting begins at a score of the twisted posterior, and "
                "what is learned cannot be added to it once the noise is undone; leave out one of them"
            )
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
    growth : Growth
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
    growth: Growth
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
        sources.check_allowed(settings, validation, workers)
        _check_review_allowed(has_review, settings, validation, sources, workers)
        seed = workers.broadcast_first(settings.seed)
        table = _TrainingTable.read(settings, workers, X, y, sample_weight, previous, estimator)
        if previous is None and not are_rows_known():
            table.check_sense(y)
        groups = table.read_groups(sources)
        label_sources = table.read_sources(sources, groups)
        rows, validation_weight = table.append_validation(validation, estimator)
        n_folds = 0
        items = None
        if settings.automatic and validation_weight is None and isinstance(settings.cv, int):
            if groups is None and label_sources is not None and label_sources.has_repeated_items:
                items = label_sources.items
            if groups is None:
                _refuse_too_many_folds(settings.cv, rows, items, len(table.classes))
            # What else is wrong with the number of folds is known once groups are.
            n_folds = settings.cv if groups is None else min(settings.cv, table.n_rows)
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
            settings,
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
        validation_share = np.zeros(table.n_rows)
        validation_was_given = validation_weight is not None
        weight = rows.weight
        if groups is not None and not validation_was_given:
            own = contents.hashes() if label_sources is None else mix_bits(label_sources.items.astype(np.uint64))
            rows = replace(rows, groups=groups.hash_rows(own))
        if settings.patience and not (validation_was_given or settings.automatic):
            share = table.check_enough_to_hold_out(settings.validation_fraction)
            validation_share = settings.engine.hold_out(contents, rows, share, seed)
            validation_weight = weight * validation_share
            weight = weight * (1.0 - validation_share)
        folds = own_folds = None
        if settings.automatic and not validation_was_given:
            if not isinstance(settings.cv, int):
                own_folds = table.read_own_folds(X, groups, label_sources, has_review)
                folds = np.where(own_folds.held_out, rows.weight, 0.0)
            else:
                if groups is not None:
                    _refuse_too_many_folds(settings.cv, rows, None, len(table.classes))
                if items is None:
                    folds = settings.engine.make_folds(contents, rows, settings.cv, seed)
                else:
                    folds = split_items_into_folds(
                        contents.hashes(), items, rows.labels, rows.weight, settings.cv, seed
                    )
        datasets: tuple[Dataset, ...] = (contents,)
        fold_numbers: tuple[NDArray[np.float32], ...] = ()
        if coding is not None:
            trained = (
                None if folds is None else [_weigh_training(weight, folds, own_folds, i) for i in range(len(folds))]
            )
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
        if groups is not None or own_folds is not None:
            parts = range(1 if folds is None else len(folds))
            by_fold = (data.training_weight(fold) for fold in parts)
            check_trained_classes(data.rows.labels, data.rows.weight, data.classes, by_fold, own_folds, workers)
        return data

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

    def find_twins(self) -> Twins | None:
        """Look for rows that nearly repeat rows of other folds: groups that were given may not keep them together.

        Returns
        -------
        Twins or None
            None too where the table is sparse, or where other workers have rows: nobody looks then.
        """
        if self.folds is None or self.workers.size > 1:
            return None
        if not isinstance(self.table, (np.ndarray, Encoded)):
            return None
        judged = self.folds.any(axis=0)
        # Rows of the same one of many categories are no twins by that: what a category says is there to be learned.
        coded = () if self.coding is None else self.coding.n_categories
        compared = [column for column in range(self.table.shape[1]) if column not in coded]
        hashes = self.datasets[0].hashes() if self.coding is None else self.coding.hashes()
        rows = draw_rows(hashes, self.weight, len(compared), lambda tied: self._hash_exactly(tied, compared))
        numbers = self.table.take_rows(rows) if isinstance(self.table, Encoded) else self.table[rows]
        fold_of_row = np.where(judged, self.folds.argmax(axis=0), -1)[rows]
        trained = np.stack([self.training_weight(fold)[rows] > 0 for fold in range(len(self.folds))])
        if not self._folds_are_told:
            # Where copies of a row lie in several folds, the order of the table may decide which copy lies in which.
            # No such row is asked for its twins, and it counts as one that every fold trains on.
            is_split = find_split_rows(hashes, rows, self.folds)
            fold_of_row[is_split] = -1
            trained[:, is_split] = True
        table = ComparedRows(numbers, self.encoder, compared)
        group = None if self.groups is None else self.groups.index[rows]
        twins = find_twins(table, self.rows.labels[rows], fold_of_row, trained, group)
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
            raise ValueError('alpha="menon" needs the table in memory, got Batches: give a number, or leave "auto"')
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


@dataclass(frozen=True, eq=False)
class _TrainingTable:
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
    ) -> _TrainingTable:
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
        return len(self.labels)

    def check_sense(self, y: Any) -> None:
        """Refuse a target that holds no classes, and warn of a table that teaches nothing."""
        refuse_regression_target(y, self.classes, sum(self.workers.gather(self.n_rows)))
        words = describe_emptiness((block for _, block in iterate_row_blocks(self.X)), self.workers)
        if words is not None:
            warnings.warn(words, UserWarning, stacklevel=4)

    def read_groups(self, columns: SourceColumns) -> RowGroups | None:
        """Return which rows belong together, if that was told."""
        return None if columns.groups is None else read_groups(columns.groups, self.n_rows)

    def read_own_folds(
        self, X: Any, groups: RowGroups | None, sources: LabelSources | None, has_review: bool
    ) -> OwnFolds:
        """Return folds of one's own, which must keep groups and items together."""
        table = np.zeros((self.n_rows, 1)) if isinstance(X, Batches) else X
        numbers = None if groups is None else groups.number_rows()
        folds = read_own_folds(self.settings.cv, table, self.classes[self.labels], numbers)
        needs_all = "reviewed" if has_review else "source" if sources is not None else None
        check_own_folds(folds, groups, None if sources is None else sources.items, needs_all)
        return folds

    def read_sources(self, columns: SourceColumns, groups: RowGroups | None = None) -> LabelSources | None:
        """Return who gave each label and which rows are of one item, if that was told."""
        if columns.source is None:
            return None
        names, index = read_names("source", columns.source, self.n_rows)
        if not (self.weight[index != UNKNOWN] > 0).any():
            raise ValueError("source must be known for some of the rows with a weight, got none but unknown ones")
        named = None if columns.item is None else read_names("item", columns.item, self.n_rows)[1]
        blocks = [self.X] if sparse.issparse(self.X) else (block for _, block in iterate_row_blocks(self.X))
        contents = np.concatenate([hash_rows(block) for block in blocks])
        contents, named = keep_items_in_groups(contents, named, groups)
        self._warn_of_source_among_columns(index)
        return LabelSources(names, index, find_items(contents, index, self.labels, self.weight, named))

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

    def check_enough_to_hold_out(self, share: float) -> float:
        """Return the share of rows to hold out, if there are rows enough to do so."""
        counted = [add_up_by_group(one, self.labels, len(self.classes)) for one in (self.weight > 0, self.weight)]
        counts = np.maximum(*self.workers.sum(np.stack(counted)))
        n_rows, smallest = int(counts.sum()), int(counts[counts > 0].min())
        if smallest < 2 or n_rows * min(share, 1.0 - share) < 2:
            raise ValueError(
                f"early_stopping cannot hold out {share:g} of {n_rows} rows, {smallest} in the smallest class: "
                "give X_val and y_val, or more rows"
            )
        return share

    def find_directions(self, estimator: Any) -> tuple[int, ...]:
        """Return the direction of each monotone column, in terms of the boosted score."""
        if self.settings.monotonic_cst is None:
            return ()
        directions = _check_monotonic_cst(self.encoder.stand_in_for(estimator), self.settings.monotonic_cst)
        if not np.any(directions):
            return ()
        if len(self.classes) > 2:
            raise ValueError("monotonic_cst must be None where there are more than two classes")
        for column in self.encoder.schema.categories:
            if directions[column]:
                name = self.encoder.feature_labels[column]
                raise ValueError(f"monotonic_cst must be 0 for column {name!r}, which holds categories")
        sign = -1 if self.settings.turns_labels_over else 1
        return tuple(int(sign * direction) for direction in directions)

    def find_interactions(self) -> tuple[tuple[int, ...], ...]:
        """Return the groups of columns that may meet in a tree; empty where all may."""
        given = self.settings.interaction_cst
        n_features = self.encoder.n_features
        if given is None:
            return ()
        if isinstance(given, str):
            if given == "no_interactions":
                return tuple((column,) for column in range(n_features))
            if given == "pairwise":
                return tuple(combinations(range(n_features), 2)) if n_features > 1 else ()
            raise ValueError(f"{KINDS_OF_INTERACTIONS}, got {given!r}")
        if not isinstance(given, (list, tuple, set, frozenset)):
            raise ValueError(f"{KINDS_OF_INTERACTIONS}, got {given!r}")
        groups = [self._find_group(group) for group in given]
        others = set(range(n_features)).difference(*groups)
        # As in scikit-learn, columns that no group names make one more group.
        return tuple(tuple(sorted(group)) for group in [*groups, *([others] if others else [])])

    def _find_group(self, group: Any) -> set[int]:
        """Return the positions of columns that are given by position or by name."""
        if isinstance(group, (str, bytes)) or not isinstance(group, Collection):
            raise ValueError(f"{KINDS_OF_INTERACTIONS}, got a group {group!r}")
        names = [] if self.encoder.feature_names is None else self.encoder.feature_names.tolist()
        positions = set()
        for column in group:
            if column in names:
                positions.add(names.index(column))
                continue
            is_position = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
            if not is_position or not 0 <= column < self.encoder.n_features:
                raise ValueError(
                    f"interaction_cst must hold columns of X, by position from 0 to {self.encoder.n_features - 1} "
                    f"or by name, got {column!r}"
                )
            positions.add(int(column))
        return positions

    def find_feature_weights(self) -> tuple[float, ...]:
        """Return the chance of each column to be drawn; empty where all have the same."""
        given = self.settings.feature_weights
        if given is None:
            return ()
        weights = check_numbers("feature_weights", given)
        if weights.shape != (self.encoder.n_features,):
            raise ValueError(
                f"feature_weights must be {self.encoder.n_features} numbers, one per column, got shape {weights.shape}"
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
            raise ValueError(f"feature_weights must be finite and non-negative, not all 0, got {given!r:.100}")
        return tuple(weights.tolist())


def _check_review_allowed(
    has_review: bool, settings: Settings, validation: ValidationTable, sources: SourceColumns, workers: Workers
) -> None:
    """Raise an error where rows are reviewed and nothing can be told of the others."""
    if any(workers.gather(has_review)) and workers.size > 1:
        raise ValueError(NO_REVIEW_FOR_WORKERS)
    if not has_review:
        return
    instead = "or give y with the labels that were decided on"
    if sources.source is not None:
        raise ValueError(f"reviewed must be None with source: leave out one of them, {instead}")
    if validation.X is not None:
        raise ValueError(
            f"reviewed must be None with X_val, as labels are judged by folds over all rows: leave out X_val, {instead}"
        )
    if not settings.automatic or not settings.untwists_posteriors:
        raise ValueError(
            "reviewed must be None with settings that estimate no noise, as what a known label is worth depends on it: "
            'leave alpha="auto" and noise_rates="auto", and take no other loss, estimator or engine than those that '
            f"grow trees, {instead}"
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
        if schema.missing != settings.missing:
            raise ValueError(
                f"a warm start goes on with missing of the last fit, {schema.missing!r}, got {settings.missing!r}"
            )
        if schema.numbers and workers.size > 1:
            raise ValueError(
                "a warm start of several workers cannot go on from a model with columns that are coded by labels, as "
                "each worker knows its own labels only: fit on one machine, or anew"
            )
    elif isinstance(X, Batches):
        schema = X.learn(settings.categorical_features, weight, tables.LARGEST_CODE)
    else:
        most = tables.KNOWN_CATEGORIES if workers.size > 1 else tables.LARGEST_CODE
        schema = tables.learn(X, settings.categorical_features, weight, most, workers)
    if previous is None:
        schema = replace(schema, missing=settings.missing)
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


def _count_effective_rows(weight: Array, workers: Workers) -> float:
    """Return the number of rows with a weight or their total weight, whichever is larger, over all workers."""
    total = workers.sum(np.array([float(np.count_nonzero(weight)), add_up(weight)]))
    return min(float(total.max()), MOST_WEIGHT)
