"""Peers that the package itself does not need: CatBoost, cleanlab, and those that know numbers only.

Early-stopped XGBoost and LightGBM are those of `untwist.audit.peers`. All learn from the rows that they are given;
whatever stops early does so on a stratified fifth of them.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from untwist.audit.peers import PATIENCE, HeldOut

__all__ = ["XGBOOST", "find_version", "fit_catboost", "fit_cleanlab", "fit_on_numbers", "hold_out"]

#: The distributions that XGBoost may come from.
XGBOOST = ("xgboost-cpu", "xgboost")


def find_version(packages: Iterable[str]) -> str:
    """Find the first of these distributions that is installed.

    Parameters
    ----------
    packages : iterable of str
        Names of distributions.

    Returns
    -------
    str
        Its name and version, empty where none is installed.
    """
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return f"{package} {importlib.metadata.version(package)}"
    return ""


def hold_out(X: Any, y: Any, seed: int) -> tuple[Any, Any, HeldOut]:
    """Set a stratified fifth of the rows aside, the same rows for everyone who stops early.

    Parameters
    ----------
    X, y : table and labels
        All rows.
    seed : int
        Of the draw.

    Returns
    -------
    X, y : table and labels
        The rows to train on.
    HeldOut
        The others.
    """
    X_train, X_held, y_train, y_held = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    return X_train, y_train, HeldOut(X_held, y_held)


@dataclass(frozen=True)
class _TextModel:
    """A model of CatBoost that takes the tables that the others take."""

    model: Any

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(_to_text(X))


def _to_text(X: Any) -> Any:
    """CatBoost takes categories as text, and a missing one as a category."""
    categories = _list_categories(X)
    return X.astype(dict.fromkeys(categories, object)).fillna(dict.fromkeys(categories, "missing"))


def _list_categories(X: Any) -> list[Any]:
    """The columns of a DataFrame that hold categories."""
    return [column for column, kind in X.dtypes.items() if kind == "category"]


def fit_catboost(X: Any, y: Any, held_out: HeldOut, *, patience: int = PATIENCE, **settings: Any) -> Any:
    """Fit CatBoost with one thread, stopped early.

    Parameters
    ----------
    X, y : table and labels
        The rows to train on.
    held_out : HeldOut
        The rows to stop on.
    patience : int
        Rounds without a gain before it stops.
    **settings
        Of `catboost.CatBoostClassifier`.

    Returns
    -------
    object
        A fitted model.
    """
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(thread_count=1, allow_writing_files=False, logging_level="Silent", **settings)
    if not hasattr(X, "dtypes"):
        return model.fit(X, y, eval_set=(held_out.X, held_out.y), early_stopping_rounds=patience)
    watched = (_to_text(held_out.X), held_out.y)
    rules = {"cat_features": _list_categories(X), "eval_set": watched, "early_stopping_rounds": patience}
    return _TextModel(model.fit(_to_text(X), y, **rules))


def fit_cleanlab(X: Any, y: Any, seed: int) -> Any:
    """Fit cleanlab's learner around LightGBM, as its documentation advises.

    Parameters
    ----------
    X, y : table and labels
        The rows.
    seed : int
        Of what is drawn at random.

    Returns
    -------
    cleanlab.classification.CleanLearning
    """
    from cleanlab.classification import CleanLearning
    from lightgbm import LGBMClassifier

    booster = LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1)
    return CleanLearning(booster, seed=seed, find_label_issues_kwargs={"n_jobs": 1}).fit(X, y)


def fit_on_numbers(classifier: Any, X: Any, y: Any) -> Any:
    """Fit a classifier that knows neither categories nor missing values.

    Parameters
    ----------
    classifier : object
        A classifier of scikit-learn.
    X, y : DataFrame and labels
        The rows.

    Returns
    -------
    sklearn.pipeline.Pipeline
    """
    numbers = SimpleImputer(strategy="median", keep_empty_features=True)
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((one_hot, _list_categories(X)), remainder=numbers)
    return make_pipeline(columns, classifier).fit(X, y)
