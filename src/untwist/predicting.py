"""What both estimators do once they are fitted: predict by the model that `fit` left behind, and tell of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from untwist.any_model.model import ClonesModel
from untwist.arguments import Array
from untwist.data.encoding import AcceptedTables
from untwist.data.labels import settle_objects
from untwist.model import FittedModel
from untwist.theory.twists import alpha_star

__all__ = ["ModelPredictions", "expose", "find_fitted", "find_model", "require"]

#: What a fit leaves behind.
AnyModel = FittedModel | ClonesModel


def expose(find: Callable[[Any], Any]) -> Any:
    """Return a property of the fitted model; an AttributeError, as scikit-learn expects it, where there is none yet."""

    def get(self: ModelPredictions) -> Any:
        if "model_" not in vars(self):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        try:
            return find(self.model_)
        except ValueError as error:
            raise AttributeError(str(error)) from error

    return property(get)


def require(value: Any, what_is_missing: str) -> Any:
    """Return a value that only some fits leave behind."""
    if value is None:
        raise AttributeError(what_is_missing)
    return value


class ModelPredictions(ClassifierMixin, BaseEstimator):
    """A classifier that predicts by its `model_`, whose parts are its attributes.

    Its subclasses fit. Each method reads the model once, as another thread may fit meanwhile.
    """

    model_: Any  # A FittedModel, or a ClonesModel where the classifier was given an estimator.
    n_jobs: int | None
    fit: Callable[..., Any]

    # ---- prediction ----

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class whose clean posterior is largest; of two, classes_[0] at a score of exactly 0.

        Parameters
        ----------
        X : table
            Whatever `fit` takes.

        Returns
        -------
        array
            One label per row.
        """
        model = find_fitted(self)
        return model.choose_labels(self._decide(model, X))

    def predict_proba(self, X: Any) -> Array:
        """Return the clean posterior of every class, kept within [1/(n+2), 1 - 1/(n+2)].

        Beyond that, by the rule of succession, n rows cannot justify any probability. n is the number of training rows
        or their total weight, whichever is larger. More than two classes are scaled to sum to one.
        """
        model = find_fitted(self)
        return model.posterior.clean(self._decide(model, X))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict_proba_twisted(self, X: Any) -> Array:
        """Return the posterior of every class as the twisted training labels follow it, within the same limits."""
        model = find_fitted(self)
        return model.posterior.twisted(self._score(model, X))

    def decision_function(self, X: Any) -> Array:
        """Return the score of the clean posterior; a column per class beyond two.

        Of two classes it is positive where `predict` says classes_[1]; of more the largest speaks for its class.
        """
        return self._decide(find_fitted(self), X)

    def alpha_star(self, X: Any, source: Any = None) -> Array:
        """Return the paper's pointwise alpha*(x), which undoes the noise of each row's label. Two classes only.

        It is the log-odds of the clean posterior over those of the posterior that labels follow: 1 where labels are
        clean, larger the more noise there is, negative where most labels are wrong (`untwist.twists.alpha_star`).

        Parameters
        ----------
        X : table
            As for `predict`.
        source : array-like or None
            Who gives the label of each row, among the sources that `fit` was told. None, here or for a row: nobody
            knows, and the noise is that of all sources together; without sources, that of all labels.

        Returns
        -------
        array
            One alpha per row.
        """
        model = find_fitted(self)
        if len(model.classes) != 2:
            raise ValueError(f"alpha_star is for two classes, got a model of {len(model.classes)}")
        scores = self._score(model, X)
        clean = model.unweigh(model.posterior.clean(model.posterior.decision(scores)))
        if source is None and model.sources is None:
            twisted = model.unweigh(model.posterior.twisted(scores))
        else:
            twisted = model.find_source_labels_follow(clean, source)
        return alpha_star(clean[:, 1], twisted[:, 1])

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows whose label is the predicted one, by weight if there are weights.

        It is measured against the labels that are given, wrong ones included: on noisy labels the truth scores lower
        than what has learned the noise.
        """
        return float(super().score(X, settle_objects(y), sample_weight))

    def _score(self, model: AnyModel, X: Any, rounds: Any = None) -> Array:
        return model.scores(model.encoder.encode(X, self), self.n_jobs, rounds)

    def _decide(self, model: AnyModel, X: Any, rounds: Any = None) -> Array:
        return model.posterior.decision(self._score(model, X, rounds))

    # ---- what was learned ----

    classes_ = expose(lambda model: model.classes)
    n_classes_ = expose(lambda model: len(model.classes))
    n_features_in_ = expose(lambda model: model.encoder.n_features_in_)
    feature_names_in_ = expose(lambda model: model.encoder.feature_names_in_)
    noise_ = expose(lambda model: model.reliable_noise)
    feature_importances_ = expose(lambda model: model.importances("paper"))

    def importances(self, kind: str = "paper") -> Array:
        """Return how much each column contributes, as shares.

        Parameters
        ----------
        kind : "paper", "gain" or "splits"
            The paper's (`feature_importances_`), the gain of all splits of a column, or their number.
        """
        return find_fitted(self).importances(kind)

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram with what the fit has found, for notebooks."""
        return f"{super()._repr_html_inner()}{self._write_html()}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return the same, and the text beside it; notebooks ask for this first."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:  # scikit-learn's setting of "display" may ask for text alone.
            bundle["text/html"] += self._write_html()
        return bundle

    def _write_html(self) -> str:
        """Return what the fit has found as HTML; nothing before it."""
        model = vars(self).get("model_")
        return "" if model is None else "".join(f"<div>{part}</div>" for part in model.write_html_parts())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        accepted = self._find_accepted_tables()
        tags.input_tags.allow_nan = accepted.missing_values
        tags.input_tags.sparse = accepted.sparse
        tags.input_tags.categorical = accepted.categories
        return tags

    def _find_accepted_tables(self) -> AcceptedTables:
        """Return which tables `fit` takes, also where the parameters make no sense, which only `fit` says."""
        return AcceptedTables()


def find_fitted(classifier: ModelPredictions) -> FittedModel | ClonesModel:
    """Return what the fit of a classifier left behind; scikit-learn's error where there was none."""
    if "model_" not in vars(classifier):  # This takes a single row no time, other than scikit-learn's own check.
        check_is_fitted(classifier, "model_")
    return classifier.model_  # type: ignore[no-any-return]


def find_model(model: Any) -> FittedModel:
    """Return the trees behind a classifier, or the model itself; a ValueError for anything else."""
    if isinstance(model, FittedModel):
        return model
    if not isinstance(model, ModelPredictions):
        raise ValueError(
            f"model must be an UntwistClassifier or a PILBoostClassifier (of a pipeline the last step), got "
            f"{model!r:.100}"
        )
    found = find_fitted(model)
    if isinstance(found, ClonesModel):
        raise ValueError(f"model must be made of untwist's own trees, got one around an estimator: {found.clones!r}")
    return found
