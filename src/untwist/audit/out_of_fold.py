"""Any classifier, fitted to all rows but those that it is to judge."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from untwist.arguments import Array
from untwist.data.groups import OwnFolds
from untwist.data.targets import know_rows
from untwist.progress import ProgressLine, describe_progress

__all__ = ["find_held_out_shares", "predict_out_of_fold"]

#: A row of which a fold sets aside all but this share is set aside as a whole: the rest is rounding.
ROUNDING = 1e-9


def find_held_out_shares(folds: Array, weight: Array) -> Array:
    """Return, for every fold, the share of each row's weight that it sets aside.

    Parameters
    ----------
    folds : array of shape (n_folds, n_rows)
        The weight of each row that each fold sets aside.
    weight : array
        The weight of each row.

    Returns
    -------
    array of shape (n_folds, n_rows)
        0 in all folds for a row without weight.
    """
    shares = folds / np.where(weight > 0, weight, 1.0)
    return np.where(shares > 1.0 - ROUNDING, 1.0, shares)


def predict_out_of_fold(
    model: Any,
    X: Any,
    labels: NDArray[np.intp],
    classes: NDArray[Any],
    folds: Array,
    weight: Array,
    own_folds: OwnFolds | None = None,
) -> Array:
    """Return posteriors of every row by clones of a classifier that have not seen it.

    Parameters
    ----------
    model : classifier or pipeline
        It stays as it is: clones are fitted, with the settings that it has.
    X : table
        The rows, as the classifier takes them.
    labels : array of int
        The index of each row's label. That is what clones are fitted to, as some boosters take nothing else, unless
        some setting of the model, such as `class_weight`, speaks of the classes by name.
    classes : array
        The classes.
    folds : array of shape (n_folds, n_rows)
        The weight of each row that each fold sets aside.
    weight : array
        The weight of each row; clones are told unless all are 1.
    own_folds : OwnFolds or None
        The rows that each fold trains on and judges, where that was told; otherwise it trains on all that it does not
        set aside.

    Returns
    -------
    array of shape (n_rows, n_classes)
        0 for a class that no row of a fold was left to learn from. A row without weight is judged by all clones. NaN
        for a row that no fold of one's own judges.
    """
    _check_model(model)
    if own_folds is None:
        shares = find_held_out_shares(folds, weight)
        # A row without weight was seen by nobody, so that every fold may judge it.
        shares = np.where(weight > 0, shares, 1.0 / len(shares))
        weights = np.where(weight > 0, weight * (1.0 - shares), 0.0)
    else:
        shares = own_folds.held_out.astype(np.float64)
        weights = np.where(own_folds.trained, weight, 0.0)
    posterior = np.zeros((len(labels), len(classes)))
    by_name = _speaks_of_classes(model, classes)
    with ProgressLine() as line:
        for fold, (share, weight_here) in enumerate(zip(shares, weights, strict=True), start=1):
            trained, judged = np.flatnonzero(weight_here), np.flatnonzero(share)
            known, numbers = np.unique(labels[trained], return_inverse=True)
            posterior_here = np.zeros((len(judged), len(classes)))
            if len(known) == 1:
                posterior_here[:, known] = 1.0
            else:
                targets = classes[labels[trained]] if by_name else numbers
                with know_rows():
                    fitted = _fit(model, _safe_indexing(X, trained), targets, weight_here[trained])
                posterior_here[:, known] = _predict(fitted, _safe_indexing(X, judged), len(known))
            posterior[judged] += share[judged, None] * posterior_here
            line.show(describe_progress(fold, len(shares), line.seconds, "folds of the given model"))
    posterior[shares.sum(axis=0) == 0] = np.nan
    return posterior


def _check_model(model: Any) -> None:
    if isinstance(model, type):
        raise ValueError(f"model must be a classifier, got a class: give {model.__name__}()")
    if not hasattr(model, "fit"):
        raise ValueError(f"model must be a classifier of scikit-learn's kind, with fit, got {model!r:.100}")
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"model must have predict_proba, got {model!r:.100}: wrap it in CalibratedClassifierCV, say, or give "
            "posteriors as pred_probs"
        )


def _speaks_of_classes(model: Any, classes: NDArray[Any]) -> bool:
    """Tell whether a setting of the model, such as class_weight, has the classes as keys."""
    names = set(classes.tolist())
    settings = model.get_params(deep=True).values()
    return any(isinstance(one, dict) and bool(one) and set(one) <= names for one in settings)


def _fit(model: Any, X: Any, targets: NDArray[Any], weight: Array) -> Any:
    """Return a clone that was fitted, with the weights of rows unless they are all 1."""
    fresh = _copy(model)
    if (weight == 1).all():
        return fresh.fit(X, targets)
    last_name, last = fresh.steps[-1] if isinstance(fresh, Pipeline) else ("", fresh)
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(f"sample_weight must be None with a model that takes none, got {model!r:.100}")
    prefix = f"{last_name}__" if last_name else ""
    return fresh.fit(X, targets, **{f"{prefix}sample_weight": weight})


def _copy(model: Any) -> Any:
    """Return a model with the same settings, to be fitted anew."""
    try:
        return clone(model)
    except RuntimeError:  # CatBoost changes a list of columns that it is given, which scikit-learn does not allow.
        return copy.deepcopy(model)


def _predict(fitted: Any, X: Any, n_known: int) -> Array:
    posterior = np.asarray(fitted.predict_proba(X), dtype=np.float64)
    if posterior.ndim != 2 or posterior.shape[1] != n_known:
        raise ValueError(
            f"predict_proba of the model must have a column for each of the {n_known} classes that it was fitted to, "
            f"got shape {posterior.shape}"
        )
    return posterior
