"""The chosen candidate, trained once more: on some of the rows, or without one of the columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray
from sklearn.utils.validation import _check_monotonic_cst

from untwist.arguments import Array
from untwist.automatic.search import Search
from untwist.classifier import UntwistClassifier
from untwist.data.targets import know_rows
from untwist.fit_arguments import SourceColumns
from untwist.model import FittedModel
from untwist.settings import RECIPE_DEFAULTS, Settings, resolve_recipe
from untwist.training_data import TrainingData

__all__ = ["train_on_numbers"]


def train_on_numbers(
    model: UntwistClassifier,
    numbers: Array,
    labels: NDArray[Any],
    weight: Array,
    *,
    without: int | None = None,
) -> FittedModel:
    """Train the chosen candidate, by folds of its own, on rows that are numbers.

    Parameters
    ----------
    model : UntwistClassifier
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
    columns = replace(settings.columns, categorical_features=sorted(encoder.schema.categories.keys() - {without}))
    if columns.monotonic_cst is not None:
        # These rows are an array, whose columns have no names.
        directions = _check_monotonic_cst(encoder.stand_in_for(model), columns.monotonic_cst)
        columns = replace(columns, monotonic_cst=directions)
    settings = replace(settings, columns=columns)
    if without is not None:
        numbers = numbers.copy()
        numbers[:, without] = 0.0
    return _train(model, settings, numbers, labels, weight)


def _resolve(model: UntwistClassifier) -> Settings:
    """Return the settings of a fitted classifier, with the very folds of one's own that it had, if it had such."""
    # A subclass may have a constructor of its own.
    settings = resolve_recipe({name: getattr(model, name) for name in RECIPE_DEFAULTS}, seed=model.model_.seed)
    unseen = model.model_.out_of_fold
    return (
        settings
        if unseen is None or unseen.context.own_folds is None
        else replace(settings, cv=unseen.context.own_folds)
    )


def _train(
    model: UntwistClassifier, settings: Settings, numbers: Array, labels: NDArray[Any], weight: Array
) -> FittedModel:
    """Train the candidate that a model has chosen."""
    choice = model.model_.choice
    assert choice is not None  # A model that can be audited has chosen by folds.
    with know_rows():
        data = TrainingData.collect(settings, numbers, labels, weight, sources=SourceColumns())
    fit = Search(replace(data, settings=settings.narrow_to(choice.best))).run()
    if fit.interrupt is not None:
        raise fit.interrupt
    return fit.model
