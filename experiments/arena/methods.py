"""The methods that meet in the arena: each learns from the twisted training data alone and gives probabilities.

All follow the same rules: one thread, no clean label, nothing tuned by hand to a data set; whatever stops early does so
on a stratified fifth of its own noisy training data (HistGradientBoosting by its own rules, on a tenth). Where a table
has a column that says who gave the label, all methods have it; ours is told that it is the source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier, RandomForestClassifier

from experiments.peers import XGBOOST, find_version, fit_catboost, fit_cleanlab, fit_on_numbers, hold_out
from experiments.protocol import SOURCE
from untwist.arguments import Array
from untwist.audit.peers import LEARNING_RATE, PATIENCE, ROUNDS, fit_lightgbm, fit_xgboost
from untwist.classifier import PILBoostClassifier
from untwist.objectives import XGBoostMetric, XGBoostObjective, clean_proba

__all__ = ["METHODS", "OURS", "PEER", "TIMED", "Method", "Model"]

#: The method that the arena is about.
OURS = "untwist"
#: The method that ours must nowhere lose to.
PEER = "xgboost-stopped"
#: The method whose time ours is compared with.
TIMED = "xgboost-refitted"


class Model(Protocol):
    """What a fit gives."""

    def predict_proba(self, X: Any) -> Any:
        """A row of P(0), P(1), ... for each row of X."""


@dataclass(frozen=True)
class Method:
    """How to fit, what it is in words, and the distributions it may come from."""

    fit: Callable[[Any, Any, int], Model]
    words: str
    packages: tuple[str, ...] = ("scikit-learn",)

    @property
    def version(self) -> str:
        """The package with its version, or nothing if it is not installed."""
        return find_version(self.packages)


@dataclass(frozen=True)
class _WithoutSource:
    """A model that was told the sources of its training rows, which are no feature."""

    model: PILBoostClassifier

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X.drop(columns=SOURCE))

    def predict(self, X: Any) -> Any:
        return self.model.predict(X.drop(columns=SOURCE))


def _fit_untwist(X: Any, y: Any, seed: int) -> Model:
    model = PILBoostClassifier(n_jobs=1, random_state=seed)
    if SOURCE in getattr(X, "columns", ()):
        return _WithoutSource(model.fit(X.drop(columns=SOURCE), y, source=X[SOURCE]))
    return model.fit(X, y)


def _fit_as_in_the_paper(X: Any, y: Any, seed: int) -> Model:
    settings: dict[str, Any] = {"alpha": 2.0, "step_size": 8.0, "n_estimators": 1000, "max_depth": 3}
    return PILBoostClassifier(**settings, n_jobs=1, random_state=seed).fit(X, y)


def _fit_xgboost(X: Any, y: Any, seed: int) -> Model:
    return fit_xgboost(X, y, n_jobs=1, random_state=seed)  # type: ignore[no-any-return]


def _fit_xgboost_stopped(X: Any, y: Any, seed: int) -> Any:
    settings: dict[str, Any] = {
        "n_estimators": ROUNDS,
        "learning_rate": LEARNING_RATE,
        "n_jobs": 1,
        "random_state": seed,
    }
    return fit_xgboost(*hold_out(X, y, seed), **settings)


def _fit_xgboost_refitted(X: Any, y: Any, seed: int) -> Model:
    rounds = _fit_xgboost_stopped(X, y, seed).best_iteration + 1
    settings: dict[str, Any] = {
        "n_estimators": rounds,
        "learning_rate": LEARNING_RATE,
        "n_jobs": 1,
        "random_state": seed,
    }
    return fit_xgboost(X, y, **settings)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _AlphaModel:
    booster: Any

    def predict_proba(self, X: Any) -> Array:
        from xgboost import DMatrix

        rounds = (0, self.booster.best_iteration + 1)
        data = DMatrix(X, enable_categorical=True)
        return clean_proba(self.booster.predict(data, output_margin=True, iteration_range=rounds))


@dataclass(frozen=True)
class _OneAgainstRest:
    models: list[Model]

    def predict_proba(self, X: Any) -> Array:
        positive = np.column_stack([np.asarray(model.predict_proba(X))[:, 1] for model in self.models])
        return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def _fit_xgboost_alpha(X: Any, y: Any, seed: int, alpha: float = 2.0) -> Model:
    """The alpha-loss as an objective: sigmoid(margin) is the clean posterior, sigmoid(margin / alpha) the noisy one.

    It is a loss of two classes; of several, each is set against the rest.
    """
    from xgboost import DMatrix, train

    if np.max(y) > 1:
        one_against_rest = [_fit_xgboost_alpha(X, (y == one).astype(np.int64), seed, alpha) for one in np.unique(y)]
        return _OneAgainstRest(one_against_rest)

    X_train, y_train, held_out = hold_out(X, y, seed)
    settings = {
        "learning_rate": LEARNING_RATE,
        "nthread": 1,
        "seed": seed,
        "base_score": 0.0,
        "disable_default_eval_metric": 1,
    }
    booster = train(
        settings,
        DMatrix(X_train, y_train, enable_categorical=True),
        ROUNDS,
        evals=[(DMatrix(held_out.X, held_out.y, enable_categorical=True), "validation")],
        obj=XGBoostObjective(alpha),
        custom_metric=XGBoostMetric(alpha),
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    return _AlphaModel(booster)


def _fit_lightgbm_stopped(X: Any, y: Any, seed: int) -> Model:
    settings: dict[str, Any] = {
        "n_estimators": ROUNDS,
        "learning_rate": LEARNING_RATE,
        "n_jobs": 1,
        "random_state": seed,
    }
    return fit_lightgbm(*hold_out(X, y, seed), **settings)  # type: ignore[no-any-return]


def _fit_catboost_stopped(X: Any, y: Any, seed: int) -> Model:
    settings: dict[str, Any] = {"iterations": ROUNDS, "learning_rate": LEARNING_RATE, "random_seed": seed}
    return fit_catboost(*hold_out(X, y, seed), **settings)  # type: ignore[no-any-return]


def _fit_hist_gradient_boosting(X: Any, y: Any, seed: int) -> Model:
    # It keeps the last round, not the best, so that more patience than its own would only hurt it.
    return HistGradientBoostingClassifier(early_stopping=True, random_state=seed).fit(X, y)  # type: ignore[no-any-return]


def _fit_random_forest(X: Any, y: Any, seed: int) -> Model:
    return fit_on_numbers(RandomForestClassifier(300, n_jobs=1, random_state=seed), X, y)  # type: ignore[no-any-return]


def _fit_adaboost(X: Any, y: Any, seed: int) -> Model:
    return fit_on_numbers(AdaBoostClassifier(random_state=seed), X, y)  # type: ignore[no-any-return]


METHODS = {
    OURS: Method(_fit_untwist, "untwist, as it comes", ("untwist",)),
    "pilboost-paper": Method(_fit_as_in_the_paper, "PILBoost as in the paper", ("untwist",)),
    "xgboost": Method(_fit_xgboost, "XGBoost, as it comes", XGBOOST),
    PEER: Method(_fit_xgboost_stopped, "XGBoost, stopped early", XGBOOST),
    TIMED: Method(_fit_xgboost_refitted, "XGBoost, stopped early, refitted", XGBOOST),
    "xgboost-alpha": Method(_fit_xgboost_alpha, "XGBoost with the alpha-loss", XGBOOST),
    "lightgbm-stopped": Method(_fit_lightgbm_stopped, "LightGBM, stopped early", ("lightgbm",)),
    "catboost-stopped": Method(_fit_catboost_stopped, "CatBoost, stopped early", ("catboost",)),
    "hist-gradient": Method(_fit_hist_gradient_boosting, "HistGradientBoosting, stopped early"),
    "random-forest": Method(_fit_random_forest, "random forest"),
    "adaboost": Method(_fit_adaboost, "AdaBoost"),
    "cleanlab": Method(fit_cleanlab, "cleanlab around LightGBM", ("cleanlab",)),
}
