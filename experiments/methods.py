"""The methods that meet in the arena: each learns from the twisted training data alone and gives probabilities.

All follow the same rules: one thread, no clean label, nothing tuned by hand to a data set; whatever stops early does so
on a stratified fifth of its own noisy training data (HistGradientBoosting by its own rules, on a tenth).
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from sklearn.compose import make_column_transformer
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from untwist.arguments import Array
from untwist.classifier import PILBoostClassifier
from untwist.objectives import XGBoostMetric, XGBoostObjective, clean_proba

__all__ = ["METHODS", "OURS", "PEER", "TIMED", "XGBOOST", "Method", "Model", "installed"]

OURS = "untwist"  # the method the verdict is about,
PEER = "xgboost-stopped"  # the one it must nowhere lose to,
TIMED = "xgboost-refitted"  # and the one whose time it is compared with

XGBOOST = ("xgboost-cpu", "xgboost")  # it goes by two names
ROUNDS, PATIENCE, RATE = 2000, 50, 0.1  # of those that stop early


class Model(Protocol):
    """What a fit gives."""

    def predict_proba(self, X: Any) -> Any:
        """A row of P(0), P(1) for each row of X."""


@dataclass(frozen=True)
class Method:
    """How to fit, what it is in words, and the distributions it may come from."""

    fit: Callable[[Any, Any, int], Model]
    words: str
    packages: tuple[str, ...] = ("scikit-learn",)

    @property
    def version(self) -> str:
        """The package with its version, or nothing if it is not installed."""
        return installed(self.packages)


def installed(packages: Iterable[str]) -> str:
    """The first of these distributions that is there, with its version; or nothing."""
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return f"{package} {importlib.metadata.version(package)}"
    return ""


def _untwist(X: Any, y: Any, seed: int) -> Model:
    return PILBoostClassifier(n_jobs=1, random_state=seed).fit(X, y)


def _paper(X: Any, y: Any, seed: int) -> Model:
    settings: dict[str, Any] = {"alpha": 2.0, "step_size": 8.0, "n_estimators": 1000, "max_depth": 3}
    return PILBoostClassifier(**settings, n_jobs=1, random_state=seed).fit(X, y)


def _held_out(X: Any, y: Any, seed: int) -> list[Any]:
    """X_train, X_validation, y_train, y_validation: the same rows for everyone who stops early."""
    return list(train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed))


def _new_xgboost(seed: int, **settings: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(enable_categorical=True, n_jobs=1, random_state=seed, **settings)


def _xgboost(X: Any, y: Any, seed: int) -> Model:
    return _new_xgboost(seed).fit(X, y)  # type: ignore[no-any-return]


def _xgboost_stopped(X: Any, y: Any, seed: int) -> Any:
    X_train, X_val, y_train, y_val = _held_out(X, y, seed)
    model = _new_xgboost(seed, n_estimators=ROUNDS, learning_rate=RATE, early_stopping_rounds=PATIENCE)
    return model.fit(X_train, y_train, eval_set=[(X_val, y_val)], verbose=False)


def _xgboost_refitted(X: Any, y: Any, seed: int) -> Model:
    rounds = _xgboost_stopped(X, y, seed).best_iteration + 1
    return _new_xgboost(seed, n_estimators=rounds, learning_rate=RATE).fit(X, y)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _AlphaModel:
    booster: Any

    def predict_proba(self, X: Any) -> Array:
        from xgboost import DMatrix

        rounds = (0, self.booster.best_iteration + 1)
        data = DMatrix(X, enable_categorical=True)
        return clean_proba(self.booster.predict(data, output_margin=True, iteration_range=rounds))


def _xgboost_alpha(X: Any, y: Any, seed: int, alpha: float = 2.0) -> Model:
    """The alpha-loss as an objective: sigmoid(margin) is the clean posterior, sigmoid(margin / alpha) the noisy one."""
    from xgboost import DMatrix, train

    X_train, X_val, y_train, y_val = _held_out(X, y, seed)
    train_data, val_data = (DMatrix(*pair, enable_categorical=True) for pair in ((X_train, y_train), (X_val, y_val)))
    settings = {"learning_rate": RATE, "nthread": 1, "seed": seed, "base_score": 0.0, "disable_default_eval_metric": 1}
    booster = train(
        settings,
        train_data,
        ROUNDS,
        evals=[(val_data, "validation")],
        obj=XGBoostObjective(alpha),
        custom_metric=XGBoostMetric(alpha),
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    return _AlphaModel(booster)


def _new_lightgbm(seed: int, **settings: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1, **settings)


def _lightgbm_stopped(X: Any, y: Any, seed: int) -> Model:
    from lightgbm import early_stopping

    X_train, X_val, y_train, y_val = _held_out(X, y, seed)
    model = _new_lightgbm(seed, n_estimators=ROUNDS, learning_rate=RATE)
    stop = early_stopping(PATIENCE, verbose=False)
    return model.fit(X_train, y_train, eval_set=[(X_val, y_val)], callbacks=[stop])  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _CatModel:
    model: Any

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(_cat_text(X))


def _cat_text(X: Any) -> Any:
    """CatBoost takes categories as text, and a missing one as a category."""
    return X.astype(dict.fromkeys(_categories(X), object)).fillna(dict.fromkeys(_categories(X), "missing"))


def _catboost_stopped(X: Any, y: Any, seed: int) -> Model:
    from catboost import CatBoostClassifier

    X_train, X_val, y_train, y_val = _held_out(X, y, seed)
    quiet = {"thread_count": 1, "allow_writing_files": False, "logging_level": "Silent"}
    model = CatBoostClassifier(iterations=ROUNDS, learning_rate=RATE, random_seed=seed, **quiet)
    rules = {"cat_features": _categories(X), "early_stopping_rounds": PATIENCE}
    return _CatModel(model.fit(_cat_text(X_train), y_train, eval_set=(_cat_text(X_val), y_val), **rules))


def _hist_gradient_boosting(X: Any, y: Any, seed: int) -> Model:
    # by its own rules: it keeps the last round, not the best, so that more patience would only hurt it
    return HistGradientBoostingClassifier(early_stopping=True, random_state=seed).fit(X, y)  # type: ignore[no-any-return]


def _categories(X: Any) -> list[Any]:
    """The columns of a DataFrame that hold categories."""
    return [column for column, kind in X.dtypes.items() if kind == "category"]


def _on_numbers(classifier: Any, X: Any) -> Any:
    """For those that know neither categories nor missing values."""
    numbers = SimpleImputer(strategy="median", keep_empty_features=True)
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(make_column_transformer((one_hot, _categories(X)), remainder=numbers), classifier)


def _random_forest(X: Any, y: Any, seed: int) -> Model:
    return _on_numbers(RandomForestClassifier(300, n_jobs=1, random_state=seed), X).fit(X, y)  # type: ignore[no-any-return]


def _adaboost(X: Any, y: Any, seed: int) -> Model:
    return _on_numbers(AdaBoostClassifier(random_state=seed), X).fit(X, y)  # type: ignore[no-any-return]


def _cleanlab(X: Any, y: Any, seed: int) -> Model:
    from cleanlab.classification import CleanLearning

    model = CleanLearning(_new_lightgbm(seed), seed=seed, find_label_issues_kwargs={"n_jobs": 1})
    return model.fit(X, y)  # type: ignore[no-any-return]


METHODS = {
    OURS: Method(_untwist, "untwist, as it comes", ("untwist",)),
    "pilboost-paper": Method(_paper, "PILBoost as in the paper", ("untwist",)),
    "xgboost": Method(_xgboost, "XGBoost, as it comes", XGBOOST),
    PEER: Method(_xgboost_stopped, "XGBoost, stopped early", XGBOOST),
    TIMED: Method(_xgboost_refitted, "XGBoost, stopped early, refitted", XGBOOST),
    "xgboost-alpha": Method(_xgboost_alpha, "XGBoost with the alpha-loss", XGBOOST),
    "lightgbm-stopped": Method(_lightgbm_stopped, "LightGBM, stopped early", ("lightgbm",)),
    "catboost-stopped": Method(_catboost_stopped, "CatBoost, stopped early", ("catboost",)),
    "hist-gradient": Method(_hist_gradient_boosting, "HistGradientBoosting, stopped early"),
    "random-forest": Method(_random_forest, "random forest"),
    "adaboost": Method(_adaboost, "AdaBoost"),
    "cleanlab": Method(_cleanlab, "cleanlab around LightGBM", ("cleanlab",)),
}
