"""The chosen candidate, trained once more: on other labels, or on a table without one of its columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.utils.validation import _check_monotonic_cst

from untwist.arguments import Array
from untwist.automatic.search import Search
from untwist.classifier import PILBoostClassifier, list_parameters
from untwist.model import FittedModel
from untwist.noise.posterior import ClassesPosterior, Posterior
from untwist.settings import Settings, resolve
from untwist.training_data import TrainingData

__all__ = ["find_label_posterior", "train_again", "train_without_column"]


def train_again(model: PILBoostClassifier, X: Any, labels: NDArray[Any], weight: Array) -> FittedModel:
    """Train the chosen candidate on other labels, by folds of its own, with nothing left to choose.

    Parameters
    ----------
    model : PILBoostClassifier
        A classifier that chose by folds.
    X : table
        Its rows.
    labels, weight : arrays
        What to train it on.

    Returns
    -------
    FittedModel
    """
    return _train(_narrow_settings(model), X, labels, weight)


def train_without_column(
    model: PILBoostClassifier, numbers: Array, column: int, labels: NDArray[Any], weight: Array
) -> FittedModel:
    """Train the chosen candidate on rows in which a column says nothing, as it is 0 everywhere.

    Parameters
    ----------
    model : PILBoostClassifier
        A classifier that chose by folds.
    numbers : array
        Its rows as numbers.
    column : int
        The position of the column.
    labels, weight : arrays
        Their labels and weights.

    Returns
    -------
    FittedModel
    """
    encoder = model.model_.encoder
    settings = _narrow_settings(model)
    settings = replace(settings, categorical_features=sorted(encoder.schema.categories.keys() - {column}))
    if settings.monotonic_cst is not None:
        # These rows are an array, whose columns have no names.
        directions = _check_monotonic_cst(encoder.stand_in_for(model), settings.monotonic_cst)
        settings = replace(settings, monotonic_cst=directions)
    blanked = numbers.copy()
    blanked[:, column] = 0.0
    return _train(settings, blanked, labels, weight)


def _narrow_settings(model: PILBoostClassifier) -> Settings:
    """Return the settings of a fit that tries the chosen candidate only."""
    fitted = model.model_
    assert fitted.choice is not None  # A model that can be audited has chosen by folds.
    return resolve(list_parameters(model), seed=fitted.seed).narrow_to(fitted.choice.best)


def _train(settings: Settings, X: Any, labels: NDArray[Any], weight: Array) -> FittedModel:
    fit = Search(TrainingData.collect(settings, X, labels, weight)).run()
    if fit.interrupt is not None:
        raise fit.interrupt
    return fit.model


def find_label_posterior(fitted: FittedModel, posterior: Array) -> Array:
    """Return what labels follow, without the weights of their classes, by the twisted posterior of a model.

    Parameters
    ----------
    fitted : FittedModel
        The model.
    posterior : array of shape (n_rows, n_classes)
        Its twisted posterior.

    Returns
    -------
    array of shape (n_rows, n_classes)
        Each row sums to 1.
    """
    if isinstance(fitted.posterior, Posterior) and len(fitted.classes) == 2:
        positive = expit(logit(posterior[:, 1]) - fitted.posterior.shift)
        return np.column_stack([1.0 - positive, positive])
    return ClassesPosterior(fitted.link, fitted.posterior.floor, fitted.class_weights).unweigh(posterior)
