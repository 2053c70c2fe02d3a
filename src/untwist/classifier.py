"""PILBoostClassifier: PILBoost as a scikit-learn classifier."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_random_state, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from untwist import trees
from untwist.arguments import Array, positive, real
from untwist.boosting import (
    AnyStep,
    Hypothesis,
    Round,
    ValidationRisk,
    WeakLearner,
    logged,
    pilboost,
    staged_scores,
    until_stale,
)
from untwist.certificate import Certificate, certify
from untwist.links import CanonicalLink, ClippedLink, Link, default_step_size
from untwist.losses import AlphaLoss, Loss

__all__ = ["PILBoostClassifier"]


class PILBoostClassifier(ClassifierMixin, BaseEstimator):
    """Boosting with the alpha-loss, which learns the clean posterior from twisted labels. Two classes.

    Parameters
    ----------
    alpha : float in [-inf, +inf] except 0, default 2
        1 trains the log-loss, which believes every label. Larger values undo more label noise; negative ones undo a
        twist that turns most labels over.
    step_size : float > 0 or "auto", default "auto"
        The paper's a_f, typically 1 to 15. "auto" is 2*a up to a = 2 and 2*a/(a-1) above, for a = abs(alpha).
    n_estimators : int, default 100
        Number of boosting rounds; fewer if every training row is beyond the clip or early stopping ends them.
    max_depth : int or None, default 3
        Depth of the trees that serve as weak learners; None for as deep as they get.
    l2 : float >= 0, default 0
        Shrinks a leaf with few rows: its value is G / (W + l2), in units of one row. Compiled engine only.
    max_bins : int in [2, 255], default 255
        A column with more distinct values than this is binned. Compiled engine only.
    link : "clipped" or "exact", default "clipped"
        The paper's clipped inverse link (`ClippedLink`) or the exact one (`CanonicalLink`).
    loss : Loss or None, default None
        A loss to boost instead of the alpha-loss; `alpha` then plays no part.
    engine : "auto", "compiled" or "reference", default "auto"
        "compiled" grows histogram trees, all rounds in compiled code: the same model for any number of threads and any
        order of the rows. "reference" runs the loop of `untwist.boosting` over regression trees of scikit-learn. "auto"
        is "compiled" for the alpha-loss unless an `estimator` is given.
    estimator : scikit-learn regressor or None, default None
        A weak learner of your own, fitted to labels -1 and +1 with sample weights; `max_depth` then plays no part. Not
        together with `engine`.
    early_stopping : bool, default False
        Stop when the margin loss on validation rows has not fallen for `n_iter_no_change` rounds, and keep the rounds
        up to its minimum. Validation rows are those given to `fit`, else a random `validation_fraction`.
    validation_fraction : float in (0, 1), default 0.1
    n_iter_no_change : int, default 10
    n_jobs : int or None, default None
        Threads of the compiled engine; None for as many as the process may use. The model does not depend on it.
    verbose : int, default 0
        Report to standard error every so many rounds.
    random_state : int, RandomState instance or None, default None

    Attributes
    ----------
    classes_ : the two labels; the second is the positive class
    estimators_, leverages_, edges_ : the weak hypotheses, their coefficients, and their edges, per round
    forest_ : the trees of the compiled engine as arrays, None for another engine
    link_, step_size_, n_iter_ : the link and step that were used, and the number of rounds kept
    validation_risk_ : mean margin loss on the validation rows after each round, if there were any
    validation_rows_ : indices of the training rows that `fit` held out for validation (empty if none)
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PILBoostClassifier(alpha=2.0, n_estimators=50, random_state=0).fit(X, y)
    >>> model.predict(X[:3]), model.decision_function(X[:3]).round(2)
    (array([0, 0, 0]), array([-2.31, -2.54, -3.27]))
    """

    def __init__(
        self,
        alpha: float = 2.0,
        *,
        step_size: float | str = "auto",
        n_estimators: int = 100,
        max_depth: int | None = 3,
        l2: float = 0.0,
        max_bins: int = 255,
        link: str = "clipped",
        loss: Loss | None = None,
        engine: str = "auto",
        estimator: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.step_size = step_size
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.l2 = l2
        self.max_bins = max_bins
        self.link = link
        self.loss = loss
        self.engine = engine
        self.estimator = estimator
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    # ---- training ----

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Boost on (X, y). Validation rows, if given, serve to follow the risk and to stop early, never to train.

        A sample weight of 2 is a repeated row (up to the order in which ties are broken), of 0 an absent one.
        """
        link = self._link()
        step_size = self._step_size(link)
        if not isinstance(self.early_stopping, (bool, np.bool_)):
            raise ValueError(f"early_stopping must be True or False, got {self.early_stopping!r}")
        X, y = self._numeric(X, y)
        self.classes_, signs = _two_classes(y)
        weight = np.ones(len(X))
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        random = check_random_state(self.random_state)
        risk = self._validation(link, X_val, y_val, sample_weight_val)
        rows, held_out = np.flatnonzero(weight), np.zeros(0, dtype=np.intp)
        if np.unique(signs[rows]).size < 2:
            raise ValueError("y must have two classes among the rows with positive sample_weight")
        if self.early_stopping and risk is None:
            rows, held_out = self._hold_out(rows, signs, random)
            risk = ValidationRisk(X[held_out], signs[held_out], link, weight[held_out])
        if len(rows) < len(X):
            X, signs, weight = X[rows], signs[rows], weight[rows]

        boosted: tuple[Any, Array, Array]
        if self._compiled():
            forest = self._boost_compiled(X, signs, weight, link, step_size, risk)
            boosted = forest.trees(X.shape[1]), forest.leverage, forest.edge
        else:
            forest = None
            boosted = self._boost_reference(X, signs, weight, link, step_size, risk, random)
        risks = np.array([] if risk is None else risk.history)
        count = int(np.argmin(risks)) + 1 if self.early_stopping else len(boosted[0])
        if forest is not None and count < len(forest):
            forest = forest.first(count)
            boosted = forest.trees(X.shape[1]), forest.leverage, forest.edge
        self.link_, self.step_size_, self.validation_rows_, self.validation_risk_ = link, step_size, held_out, risks
        estimators, leverages, edges = boosted
        self.estimators_, self.leverages_, self.edges_ = estimators[:count], leverages[:count], edges[:count]
        self.forest_ = forest
        self.n_iter_ = count
        self._n_rows, self._n_samples = len(y), max(len(X), float(weight.sum()))
        return self

    def _boost_compiled(
        self, X: Any, signs: Array, weight: Array, link: Link, step_size: float, risk: ValidationRisk | None
    ) -> trees.Forest:
        """All trees of the compiled engine; Python looks at single rounds only if it must."""
        max_bins = _count("max_bins", self.max_bins, low=2)
        if max_bins > 255:
            raise ValueError(f"max_bins must be at most 255, got {max_bins}")
        depth = 60 if self.max_depth is None else min(60, _count("max_depth", self.max_depth))
        l2, most = real("l2", self.l2, low=0.0), _count("n_estimators", self.n_estimators)
        bins = {"max_depth": depth, "max_bins": max_bins}
        engine = trees.booster(X, signs, weight, link, step_size, l2=l2, n_jobs=self.n_jobs, **bins)
        if risk is None and not self.verbose:
            trees.run(engine, most)
        else:
            for _ in self._watched(trees.rounds(engine, most, step_size, X.shape[1]), risk):
                pass
        return trees.grown(engine, step_size)

    def _boost_reference(
        self,
        X: Any,
        signs: Array,
        weight: Array,
        link: Link,
        step_size: float,
        risk: ValidationRisk | None,
        random: Any,
    ) -> tuple[list[Any], Array, Array]:
        """Weak hypotheses of the loop in `untwist.boosting`, their leverages and edges."""
        most, learner = _count("n_estimators", self.n_estimators), self._weak_learner()
        rng = np.random.default_rng(random.randint(np.iinfo(np.int32).max))
        rounds = islice(pilboost(X, signs, learner, link, step_size, sample_weight=weight, rng=rng), most)
        kept = [(one.hypothesis, one.leverage, one.edge) for one in self._watched(rounds, risk)]
        return [row[0] for row in kept], np.array([row[1] for row in kept]), np.array([row[2] for row in kept])

    def _watched(self, rounds: Iterator[AnyStep], risk: ValidationRisk | None) -> Iterator[AnyStep]:
        """The rounds, logged if verbose, their validation risk followed, until it is stale if early_stopping."""
        if verbose := _count("verbose", int(self.verbose), low=0):
            rounds = logged(rounds, verbose, lambda line: print(line, file=sys.stderr))
        if risk is not None:
            patience = _count("n_iter_no_change", self.n_iter_no_change) if self.early_stopping else sys.maxsize
            rounds = until_stale(rounds, risk, patience)
        return rounds

    def _compiled(self) -> bool:
        if self.engine not in ("auto", "compiled", "reference"):
            raise ValueError(f'engine must be "auto", "compiled" or "reference", got {self.engine!r}')
        if self.engine != "auto" and self.estimator is not None:
            raise ValueError(f"engine={self.engine!r} and estimator= exclude each other: give one of them")
        return self.engine == "compiled" or (self.engine == "auto" and self.estimator is None and self.loss is None)

    def _step_size(self, link: Link) -> float:
        if isinstance(self.step_size, str) and self.step_size == "auto":
            return default_step_size(link)
        if self.step_size is None or isinstance(self.step_size, str):
            raise ValueError(f'step_size must be a number > 0 or "auto", got {self.step_size!r}')
        return positive("step_size", self.step_size)

    def _link(self) -> Link:
        loss = AlphaLoss(self.alpha) if self.loss is None else self.loss
        if self.link not in ("clipped", "exact"):
            raise ValueError(f'link must be "clipped" or "exact", got {self.link!r}')
        return ClippedLink(loss) if self.link == "clipped" else CanonicalLink(loss)

    def _weak_learner(self) -> WeakLearner:
        if self.estimator is None:
            if self.max_depth is not None:
                _count("max_depth", self.max_depth)
            return DecisionTreeRegressor(max_depth=self.max_depth)  # type: ignore[no-any-return]  # untyped
        if isinstance(self.estimator, type) or not (
            hasattr(self.estimator, "fit") and hasattr(self.estimator, "predict")
        ):
            raise ValueError(f"estimator must be an object with fit and predict, got {self.estimator!r}")
        return self.estimator  # type: ignore[no-any-return]  # just checked

    def _numeric(self, X: Any, *y: Any, reset: bool = True) -> Any:
        """X (and y) as scikit-learn checks them, with a word on text columns."""
        text = [name for name, kind in getattr(X, "dtypes", {}).items() if str(kind) in ("object", "str", "string")]
        try:
            return validate_data(self, X, *y, reset=reset, dtype=self._dtype(), ensure_all_finite=self._finite())
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            where = f"columns {text[:5]} hold" if text else "it holds"
            raise ValueError(
                f"X must be numbers, but {where} text ({error}): encode it, say with OrdinalEncoder"
            ) from error

    def _dtype(self) -> Any:
        if self._compiled():
            return [np.float64, np.float32]  # either, as it comes
        return np.float32 if self.estimator is None else np.float64  # what the trees of scikit-learn work on anyway

    def _finite(self) -> bool | str:
        if self._compiled():
            return "allow-nan"
        learner = self._weak_learner()
        described = hasattr(learner, "__sklearn_tags__")
        return "allow-nan" if described and get_tags(learner).input_tags.allow_nan else True

    def _validation(
        self, link: Link, X_val: Any, y_val: Any, sample_weight_val: ArrayLike | None
    ) -> ValidationRisk | None:
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together")
        if X_val is None and sample_weight_val is not None:
            raise ValueError("sample_weight_val must come with X_val and y_val")
        if X_val is None:
            return None
        X_val, y_val = self._numeric(X_val, y_val, reset=False)
        return ValidationRisk(X_val, self._signs("y_val", y_val), link, sample_weight_val)

    def _hold_out(self, rows: NDArray[np.intp], signs: Array, random: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows to train on and rows to validate on, each class in its proportion."""
        share = real("validation_fraction", self.validation_fraction, low=0.0, open_low=True)
        if share >= 1:
            raise ValueError(f"validation_fraction must be below 1, got {share}")
        smallest = min(np.sum(signs[rows] > 0), np.sum(signs[rows] < 0))
        if smallest < 2 or len(rows) * min(share, 1.0 - share) < 2:
            raise ValueError(
                f"early_stopping cannot hold out {share:g} of {len(rows)} rows, {smallest} in the smaller class: "
                "give X_val and y_val, or more rows"
            )
        train, held_out = train_test_split(rows, test_size=share, stratify=signs[rows], random_state=random)
        return np.sort(train), np.sort(held_out)

    def _signs(self, name: str, y: Any) -> Array:
        """Labels as -1 and +1."""
        y = column_or_1d(y)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"{name} has labels that the training labels have not: {unknown[:5]}")
        return np.where(y == self.classes_[1], 1.0, -1.0)

    # ---- prediction ----

    def decision_function(self, X: Any) -> Array:
        """Score of the clean posterior: positive where `predict` says classes_[1]."""
        X = self._rows(X)
        if self.forest_ is not None:
            return self._orientation * self.forest_.scores(X, n_jobs=self.n_jobs)
        scores = np.zeros(len(X))
        for scores in staged_scores(self._rounds(), X):  # noqa: B007 - the last stage is the answer
            pass
        return self._orientation * scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class whose clean posterior is larger; classes_[0] at a score of exactly 0."""
        return self._decide(self.decision_function(X))

    def predict_proba(self, X: Any) -> Array:
        """Clean posterior of both classes, kept within [1/(n+2), 1 - 1/(n+2)].

        Beyond the clip the estimate is exactly 0 or 1; by the rule of succession n rows cannot justify more. n is the
        number of training rows or their total weight, whichever is larger.
        """
        return self._clean(self.decision_function(X))

    def predict_proba_twisted(self, X: Any) -> Array:
        """Posterior of both classes as the twisted training labels follow it, within the same limits."""
        scores = self._orientation * self.decision_function(X)
        return self._probabilities(self.link_.inverse(scores))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """`decision_function` after each round."""
        for scores in staged_scores(self._rounds(), self._rows(X)):
            yield self._orientation * scores

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """`predict` after each round."""
        return map(self._decide, self.staged_decision_function(X))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """`predict_proba` after each round."""
        return map(self._clean, self.staged_decision_function(X))

    @property
    def feature_importances_(self) -> Array:
        """The paper's importances: sum over rounds of leverage times the tree's impurity importances, normalised."""
        check_is_fitted(self, "estimators_")
        total = np.zeros(self.n_features_in_)
        for leverage, hypothesis in self._rounds():
            total += abs(leverage) * hypothesis.feature_importances_  # type: ignore[attr-defined]
        return total / total.sum() if total.sum() else total

    def certificate(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Certificate:
        """The convergence certificate of this fit; takes the very data that `fit` was given."""
        X, signs = self._rows(X), self._signs("y", y)
        if not len(X) == len(signs) == self._n_rows:
            raise ValueError(
                f"X and y must be the {self._n_rows} rows that fit was given, got {len(X)} and {len(signs)}"
            )
        weight = np.ones(len(X)) if sample_weight is None else np.array(_check_sample_weight(sample_weight, X))
        weight[self.validation_rows_] = 0.0
        rows = np.flatnonzero(weight)
        X, signs, weight = X[rows], signs[rows], weight[rows]
        return certify(self._replay(X, signs, weight), self.link_, self.step_size_, sample_weight=weight)

    def _replay(self, X: Any, signs: Array, weight: Array) -> Iterator[Round]:
        """The rounds of the fit again, from its hypotheses."""
        margins = np.zeros(len(signs))
        rounding = 2.0**-17 * len(weight) * weight.max() / weight.sum()  # of the compiled engine's weights
        for index, (leverage, hypothesis) in enumerate(self._rounds()):
            weights, agreement = self.link_.weights(margins), signs * hypothesis.predict(X)
            edge = float(np.average(weights * agreement, weights=weight))
            if not np.isclose(edge, self.edges_[index], rtol=1e-3, atol=1e-6 + rounding):
                raise ValueError("X, y and sample_weight must be the data that fit was given: the edges differ")
            margins = margins + leverage * agreement
            yield Round(index, hypothesis, self.edges_[index], leverage, weights, agreement, margins)

    def _rounds(self) -> Iterator[tuple[float, Hypothesis]]:
        return zip(self.leverages_, self.estimators_, strict=True)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "estimators_")
        return self._numeric(X, reset=False)

    @property
    def _orientation(self) -> float:
        """-1 for a negative alpha, which complements the clean posterior."""
        return -1.0 if isinstance(self.link_.loss, AlphaLoss) and self.link_.loss.alpha < 0 else 1.0

    def _decide(self, scores: Array) -> NDArray[Any]:
        return np.asarray(self.classes_[(scores > 0).astype(np.intp)])

    def _clean(self, scores: Array) -> Array:
        return self._probabilities(self.link_.tilted(self._orientation * scores))

    def _probabilities(self, positive_class: Array) -> Array:
        least = 1.0 / (self._n_samples + 2.0)
        p = np.clip(positive_class, least, 1.0 - least)
        return np.column_stack([1.0 - p, p])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = self._finite() == "allow-nan"
        return tags


def _two_classes(y: NDArray[Any]) -> tuple[NDArray[Any], Array]:
    """The two classes and the labels as -1 and +1."""
    try:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"y must hold labels of one kind, none missing ({error})") from error
    if classes.size > 2:
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {type_of_target(y)}: "
            f"y has {classes.size} classes, such as {classes[:5].tolist()}"
        )
    if classes.size < 2:
        raise ValueError(f"y must have two classes, got one class only: {classes.tolist()[0]!r}")
    return classes, np.where(codes == 1, 1.0, -1.0)


def _count(name: str, value: Any, low: int = 1) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or value < low:
        raise ValueError(f"{name} must be an integer >= {low}, got {value!r}")
    return int(value)
