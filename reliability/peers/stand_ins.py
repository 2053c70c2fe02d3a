"""PILBoostClassifier under the names and settings of scikit-learn's classifiers, so that their tests can be run on it.

`make_stand_in(peer)` makes a class with the constructor of `peer`: `fit` translates its settings into those of a
PILBoostClassifier, and everything else is asked of that one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from sklearn import ensemble, linear_model, naive_bayes, neighbors, neural_network, svm, tree
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from untwist import Growth, PILBoostClassifier

#: Settings that mean the same in both places.
SHARED = (
    "categorical_features",
    "class_weight",
    "interaction_cst",
    "max_bins",
    "max_depth",
    "max_leaf_nodes",
    "min_samples_leaf",
    "monotonic_cst",
    "n_estimators",
    "random_state",
    "verbose",
    "warm_start",
)


class Fits:
    """How many fits the stand-ins have made."""

    count = 0


class StandIn(ClassifierMixin, BaseEstimator):
    """A PILBoostClassifier behind another classifier's constructor."""

    translate: Callable[[dict[str, Any]], dict[str, Any]]

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **more: Any) -> StandIn:
        """Translate the settings and boost."""
        Fits.count += 1
        settings = type(self).translate(self.get_params(deep=False))
        before = vars(self).get("boosting_")
        if before is not None and settings.get("warm_start"):
            self.boosting_ = before.set_params(**settings)
        else:
            vars(self).pop("boosting_", None)
            self.boosting_ = PILBoostClassifier(**settings)
        try:
            self.boosting_.fit(X, y, sample_weight, **more)
        except Exception:
            if before is None:
                del self.boosting_
            raise
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        boosting = vars(self).get("boosting_")
        if boosting is not None:
            return getattr(boosting, name)
        if callable(getattr(PILBoostClassifier, name, None)):
            return getattr(PILBoostClassifier(), name)
        if isinstance(getattr(PILBoostClassifier, name, None), property):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        raise AttributeError(name)

    def __sklearn_is_fitted__(self) -> bool:
        return "boosting_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        return PILBoostClassifier().__sklearn_tags__()


def make_stand_in(peer: type) -> type:
    """A class with the constructor of `peer` that boosts."""
    signature = inspect.signature(peer.__init__)  # type: ignore[misc]

    def __init__(self: Any, *positional: Any, **named: Any) -> None:
        given = signature.bind(self, *positional, **named)
        given.apply_defaults()
        for name, value in given.arguments.items():
            if name != "self":
                setattr(self, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    translate = TRANSLATIONS.get(peer, translate_roughly)
    members = {"__init__": __init__, "translate": staticmethod(translate), "__module__": __name__}
    return type(peer.__name__, (StandIn,), members)


def share(settings: dict[str, Any]) -> dict[str, Any]:
    """What means the same in both places, with the log-loss that other libraries boost."""
    return {"alpha": 1.0, "n_jobs": 1} | {name: settings[name] for name in SHARED if name in settings}


def share_growth(settings: dict[str, Any], **ours: Any) -> Growth:
    """How trees grow, as far as it means the same in both places; rounds begin at the base rate in other libraries."""
    shared = {name: settings[name] for name in ("min_weight_fraction_leaf", "subsample") if name in settings}
    return Growth(init="prior", **shared, **ours)


def translate_histogram_boosting(settings: dict[str, Any]) -> dict[str, Any]:
    """HistGradientBoostingClassifier's."""
    ours = share(settings)
    ours["learning_rate"] = 2.0 * settings["learning_rate"]  # Scores here are half of the log-odds.
    ours["n_estimators"] = settings["max_iter"]
    ours["growth"] = share_growth(settings, l2=settings["l2_regularization"], max_features=settings["max_features"])
    ours["early_stopping"] = settings["early_stopping"] is True and settings["n_iter_no_change"]
    if isinstance(settings["categorical_features"], str):  # It is "from_dtype".
        ours["categorical_features"] = "auto"
    return ours


def translate_gradient_boosting(settings: dict[str, Any]) -> dict[str, Any]:
    """GradientBoostingClassifier's."""
    ours = share(settings)
    ours["learning_rate"] = 2.0 * settings["learning_rate"]
    ours["early_stopping"] = settings["n_iter_no_change"] or False
    ours["growth"] = share_growth(settings, max_features=find_share(settings["max_features"]))
    return ours


def translate_forest(settings: dict[str, Any]) -> dict[str, Any]:
    """RandomForestClassifier's and ExtraTreesClassifier's: as many trees, boosted."""
    ours = share(settings)
    ours["learning_rate"] = 0.5
    ours["max_depth"] = settings["max_depth"] or 6
    drawn = {"max_features": find_share(settings["max_features"]), "extra_trees": settings["bootstrap"] is False}
    ours["growth"] = share_growth(settings, **drawn)
    return ours


def translate_adaptive_boosting(settings: dict[str, Any]) -> dict[str, Any]:
    """AdaBoostClassifier's: its stumps."""
    learning_rate = settings["learning_rate"]
    return share(settings) | {"max_depth": 1, "learning_rate": learning_rate, "growth": share_growth(settings)}


def translate_roughly(settings: dict[str, Any]) -> dict[str, Any]:
    """Those of any other classifier: few rounds, where tests are about something else."""
    kept = {name: settings[name] for name in ("class_weight", "random_state") if name in settings}
    few = {"alpha": 1.0, "n_jobs": 1, "n_estimators": 10, "max_depth": 3, "learning_rate": 0.5}
    return few | kept | {"growth": share_growth(settings)}


def find_share(max_features: Any) -> Any:
    """The share of columns for each tree; the words of scikit-learn and None stand for all of them."""
    return 1.0 if max_features in (None, "sqrt", "log2") else max_features


TRANSLATIONS: dict[type, Callable[[dict[str, Any]], dict[str, Any]]] = {
    ensemble.AdaBoostClassifier: translate_adaptive_boosting,
    ensemble.ExtraTreesClassifier: translate_forest,
    ensemble.GradientBoostingClassifier: translate_gradient_boosting,
    ensemble.HistGradientBoostingClassifier: translate_histogram_boosting,
    ensemble.RandomForestClassifier: translate_forest,
}
#: The stand-in for each classifier.
STAND_INS: dict[type, type] = {
    peer: make_stand_in(peer)
    for peer in (
        ensemble.AdaBoostClassifier,
        ensemble.ExtraTreesClassifier,
        ensemble.GradientBoostingClassifier,
        ensemble.HistGradientBoostingClassifier,
        ensemble.RandomForestClassifier,
        linear_model.LogisticRegression,
        linear_model.Perceptron,
        linear_model.RidgeClassifier,
        linear_model.SGDClassifier,
        naive_bayes.GaussianNB,
        naive_bayes.MultinomialNB,
        neighbors.KNeighborsClassifier,
        neural_network.MLPClassifier,
        svm.LinearSVC,
        svm.SVC,
        tree.DecisionTreeClassifier,
    )
}
globals().update({peer.__name__: made for peer, made in STAND_INS.items()})  # Pickles look for them here.
