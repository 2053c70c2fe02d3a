"""The chosen candidate, trained once more: on some of the rows, or without one of the columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray
from sklearn.utils.validation import _check_monotonic_cst

from untwist.arguments import Array
from untwist.automatic.search import Search
from untwist.classifier import PILBoostClassifier, list_parameters
from untwist.data.targets import know_rows
from untwist.model import FittedModel
from untwist.settings import Settings, resolve
from untwist.theory.links import LogitLink
from untwist.theory.several_classes import SoftmaxLink
from untwist.training_data import SourceColumns, TrainingData

__all__ = ["collect_again", "train_on_numbers"]


def collect_again(model: PILBoostClassifier, X: Any, labels: NDArray[Any], sources: SourceColumns) -> TrainingData:
    """Return the training rows of a classifier once more, in the folds that it had.

    Parameters
    ----------
    model : PILBoostClassifier
        A classifier that chose by folds.
    X, labels
        The rows that it was fitted to.
    sources : SourceColumns
        Who gave the labels, and which rows belong together.

    Returns
    -------
    TrainingData
    """
    assert model.model_.out_of_fold is not None  # A model that can be audited has chosen by folds.
    weight = model.model_.out_of_fold.fit_weights()
    with know_rows():
        return TrainingData.collect(_resolve(model), X, labels, weight, sources=sources)


def train_on_numbers(
    model: PILBoostClassifier,
    numbers: Array,
    labels: NDArray[Any],
    weight: Array,
    *,
    without: int | None = None,
) -> FittedModel:
    """Train the chosen candidate, by folds of its own, on rows that are numbers.

    Parameters
    ----------
    model : PILBoostClassifier
        A classifier that chose by folds.
    numbers : array
        Some or all of its rows, as numbers.
    labels, weight : arrays
        Their labels and weights.
    without : int or None
        The position of a column to leave out: it is 0 everywhere then.

    Returns
    -------
    FittedModel
    """
    encoder = model.model_.encoder
    settings = _resolve(model)
    settings = replace(settings, categorical_features=sorted(encoder.schema.categories.keys() - {without}))
    if settings.monotonic_cst is not None:
        # These rows are an array, whose columns have no names.
        directions = _check_monotonic_cst(encoder.stand_in_for(model), settings.monotonic_cst)
        settings = replace(settings, monotonic_cst=directions)
    if without is not None:
        numbers = numbers.copy()
        numbers[:, without] = 0.0
    return _train(model, settings, numbers, labels, weight)


def _resolve(model: PILBoostClassifier) -> Settings:
    """Return the settings of a fitted classifier, with the very folds of one's own that it had, if it had such."""
    settings = resolve(list_parameters(model), seed=model.model_.seed)
    unseen = model.model_.out_of_fold
    return settings if unseen is None or unseen.own_folds is None else replace(settings, cv=unseen.own_folds)


def _train(
    model: PILBoostClassifier, settings: Settings, numbers: Array, labels: NDArray[Any], weight: Array
) -> FittedModel:
    """Train the candidate that a model has chosen."""
    choice = model.model_.choice
    assert choice is not None  # A model that can be audited has chosen by folds.
    if not isinstance(model.model_.link, (LogitLink, SoftmaxLink)):  # An older untwist may have mixed no families.
        settings = replace(settings, families="boosted")
    with know_rows():
        data = TrainingData.collect(settings, numbers, labels, weight, sources=SourceColumns())
    fit = Search(replace(data, settings=settings.narrow_to(choice.best))).run()
    if fit.interrupt is not None:
        raise fit.interrupt
    return fit.model
