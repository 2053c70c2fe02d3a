"""The chosen candidate, trained once more: on other labels, on some of the rows, or without one of the columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_monotonic_cst

from untwist.arguments import Array
from untwist.automatic.search import Search
from untwist.classifier import UntwistClassifier
from untwist.data.targets import know_rows
from untwist.fit_arguments import SourceColumns
from untwist.model import FittedModel
from untwist.settings import N_FOLDS, Settings, resolve_recipe
from untwist.training_data import TrainingData

__all__ = ["train_chosen_candidate", "train_on_numbers"]


def train_chosen_candidate(
    model: UntwistClassifier, X: Any, labels: NDArray[Any], weight: Array, sources: SourceColumns
) -> FittedModel:
    """Train the chosen candidate, by folds of its own, with nothing left to choose.

    Parameters
    ----------
    model : UntwistClassifier
        A classifier that chose by folds.
    X : table
        Its rows.
    labels, weight : arrays
        What to train it on.
    sources : SourceColumns
        Who gave the labels.

    Returns
    -------
    FittedModel
    """
    return _train(model, _resolve(model), X, labels, weight, sources)


def train_on_numbers(
    model: UntwistClassifier,
    numbers: Array,
    labels: NDArray[Any],
    weight: Array,
    sources: SourceColumns | None = None,
    *,
    without: int | None = None,
    rows: NDArray[np.intp] | None = None,
) -> FittedModel:
    """Train the chosen candidate on rows that are numbers, perhaps without a column, which is 0 everywhere then.

    Parameters
    ----------
    model : UntwistClassifier
        A classifier that chose by folds.
    numbers : array
        Some or all of its rows, as numbers.
    labels, weight : arrays
        Their labels and weights.
    sources : SourceColumns or None
        Who gave the labels, if that is known.
    without : int or None
        The position of a column to leave out.
    rows : array of int or None
        Which of the rows that the classifier was fitted to these are; None for all of them.

    Returns
    -------
    FittedModel
    """
    encoder = model.model_.encoder
    settings = _resolve(model)
    if rows is not None and not isinstance(settings.cv, int):
        settings = replace(settings, cv=N_FOLDS)  # Of some rows, folds of one's own may train on too few.
    settings = replace(settings, categorical_features=sorted(encoder.schema.categories.keys() - {without}))
    if settings.monotonic_cst is not None:
        # These rows are an array, whose columns have no names.
        directions = _check_monotonic_cst(encoder.stand_in_for(model), settings.monotonic_cst)
        settings = replace(settings, monotonic_cst=directions)
    if without is not None:
        numbers = numbers.copy()
        numbers[:, without] = 0.0
    return _train(model, settings, numbers, labels, weight, sources or SourceColumns())


def _resolve(model: UntwistClassifier) -> Settings:
    """Return the settings of a fitted classifier, with the very folds of one's own that it had, if it had such."""
    settings = resolve_recipe(model.get_params(deep=False), seed=model.model_.seed)
    unseen = model.model_.out_of_fold
    own_folds = None if unseen is None else unseen.context.own_folds
    return settings if own_folds is None else replace(settings, cv=own_folds)


def _train(
    model: UntwistClassifier, settings: Settings, X: Any, labels: NDArray[Any], weight: Array, sources: SourceColumns
) -> FittedModel:
    """Train the candidate that a model has chosen."""
    choice = model.model_.choice
    assert choice is not None  # A model that can be audited has chosen by folds.
    with know_rows():
        data = TrainingData.collect(settings, X, labels, weight, sources=sources)
    fit = Search(replace(data, settings=settings.narrow_to(choice.best))).run()
    if fit.interrupt is not None:
        raise fit.interrupt
    return fit.model
