"""A metric of one's own, measured on validation rows after each round."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer
from sklearn.metrics._scorer import _BaseScorer

from untwist.arguments import Array, check_real
from untwist.boosting.ensemble import is_stale
from untwist.noise.posterior import Posterior

#: What `eval_metric` may be.
KINDS = "eval_metric must be None, the name of a scorer of scikit-learn, a scorer or a function"

#: A metric whose name ends so is better the larger it is, as in scikit-learn.
HIGHER_IS_BETTER = ("_score",)

#: A metric whose name ends so is better the smaller it is, as in scikit-learn.
LOWER_IS_BETTER = ("_loss", "_error", "_deviance")

#: The scorer of scikit-learn that measures what other libraries call by another name, by that name.
SCORER_BY_OTHER_NAME = {
    "auc": "roc_auc",
    "aucpr": "average_precision",
    **dict.fromkeys(("logloss", "binary_logloss", "mlogloss", "multi_logloss"), "neg_log_loss"),
    **dict.fromkeys(("error", "binary_error", "merror", "multi_error"), "accuracy"),
}

#: What a metric of scikit-learn says that compares predicted labels, where it is given probabilities.
PREDICTED_LABELS_WANTED = "can't handle a mix of"

#: These names are taken by what is always measured.
BUILT_IN = ("log_loss", "error")


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """Some of the rows: their positions, the index of each one's class, and what it weighs."""

    positions: NDArray[np.intp]
    labels: NDArray[np.uint32]
    weight: Array

    @classmethod
    def choose(cls, labels: NDArray[np.uint32], weight: Array) -> MeasuredRows:
        """Return the rows that weigh something."""
        positions = np.flatnonzero(weight)
        return cls(positions, labels[positions], weight[positions])


class Answers(ClassifierMixin, BaseEstimator):
    """What a model says of rows that are given by their boosted scores, as scorers of scikit-learn ask for it.

    It speaks of the twisted posterior, as it is compared with labels that are as noisy as those of the training.
    """

    def __init__(self, classes: NDArray[Any], posterior: Posterior) -> None:
        self.classes = classes
        self.posterior = posterior

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        return self.classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, scores: Array) -> Array:
        """Return the score of the twisted posterior."""
        return scores

    def predict_proba(self, scores: Array) -> Array:
        """Return the twisted posterior of every class."""
        return self.posterior.twisted(scores)

    def predict(self, scores: Array) -> NDArray[Any]:
        """Return the class whose twisted posterior is largest."""
        return np.asarray(self.classes[self.posterior.choose(scores)])


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric of one's own.

    Parameters
    ----------
    name : str
        What `evals_result_` calls it.
    function : callable
        A scorer of scikit-learn, or a function of labels, posteriors and, if it takes them, weights.
    is_scorer : bool
        Which of the two it is.
    """

    name: str
    function: Callable[..., Any]
    is_scorer: bool

    def measure(self, answers: Answers, scores: Array, y: NDArray[Any], weight: Array) -> tuple[str, float, bool]:
        """Return the name, the value and whether a larger one is better, as functions for LightGBM do."""
        if self.is_scorer:
            takes_weight = _takes(getattr(self.function, "_score_func", self.function), "sample_weight")
            options = {"sample_weight": weight} if takes_weight else {}
            try:
                found = self.function(answers, scores, y, **options)
            except ValueError as error:
                # The scorer's message names arguments of its own, which the user of eval_metric has not given.
                raise ValueError(f"eval_metric={self.name} cannot measure this fit: {error}") from error
            return self._check(found, higher_is_better=True)
        posterior = answers.predict_proba(scores)
        posterior = posterior[:, 1] if posterior.shape[1] == 2 else posterior
        weight_name = _find_weight_name(self.function)
        options = {} if weight_name is None else {weight_name: weight}
        try:
            found = self.function(y, posterior, **options)
        except ValueError as error:
            if PREDICTED_LABELS_WANTED not in str(error):
                raise
            raise ValueError(
                f"eval_metric={self.name} failed: {error}; a function is given y and probabilities (of two classes "
                "that of the second): for a metric of predicted labels name a scorer instead, such as 'accuracy'"
            ) from error
        if isinstance(found, tuple) and len(found) == 3:
            name, value, higher_is_better = found
            if not isinstance(name, str) or not _is_truth_value(higher_is_better):
                raise ValueError(
                    f"eval_metric={self.name} must return (name, value, is_higher_better) as text, a number and True "
                    f"or False, got {found!r:.100}"
                )
            return name, self._check(value, bool(higher_is_better))[1], bool(higher_is_better)
        if self.name.endswith(HIGHER_IS_BETTER):
            return self._check(found, higher_is_better=True)
        if self.name.endswith(LOWER_IS_BETTER):
            return self._check(found, higher_is_better=False)
        raise ValueError(
            f"eval_metric={self.name} must say whether a larger value is better: let it return (name, value, "
            "is_higher_better), or let its name end with _score, _loss, _error or _deviance"
        )

    def _check(self, value: Any, higher_is_better: bool) -> tuple[str, float, bool]:
        return self.name, check_real(f"the value of eval_metric={self.name}", value), higher_is_better


def read_metric(given: Any) -> Metric | None:
    """Return the metric that `eval_metric` stands for.

    Parameters
    ----------
    given : str, scorer, function or None
        The name of a scorer of scikit-learn or a scorer: more is better. Or a function of labels and posteriors (of two
        classes that of the second): it returns (name, value, is_higher_better) as for LightGBM, or a number where its
        name ends with _score (more is better), _loss, _error or _deviance (less is better). It may have a parameter
        sample_weight.

    Returns
    -------
    Metric or None

    Examples
    --------
    >>> read_metric("roc_auc").name
    'roc_auc'
    """
    if given is None:
        return None
    if isinstance(given, str):
        try:
            return Metric(given, get_scorer(given), is_scorer=True)
        except (ValueError, KeyError) as error:
            if scorer := SCORER_BY_OTHER_NAME.get(given):
                raise ValueError(
                    f"eval_metric={given!r} is no scorer of scikit-learn: it is called {scorer!r} there"
                ) from error
            raise ValueError(f"{KINDS}, got {given!r:.100}, which is no scorer") from error
    if not callable(given):
        raise ValueError(f"{KINDS}, got {given!r:.100}")
    name = getattr(given, "__name__", type(given).__name__)
    if isinstance(given, _BaseScorer):
        return Metric(getattr(given, "_score_func", given).__name__, given, is_scorer=True)
    _check_signature(name, given)
    return Metric(name, given, is_scorer=False)


def _check_signature(name: str, function: Callable[..., Any]) -> None:
    """Raise an error where a function does not take what it will be given."""
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return  # Some functions that are not written in Python have no signature to look at.
    weight_name = _find_weight_name(function)
    try:
        signature.bind("y", "posterior", **({} if weight_name is None else {weight_name: "weight"}))
    except TypeError as error:
        raise ValueError(
            f"eval_metric={name} must take labels and probabilities, (y, p), and may take weights by the name "
            f"sample_weight: (y, p, sample_weight=None); got {signature!s:.100}"
        ) from error


def _find_weight_name(function: Callable[..., Any]) -> str | None:
    """Return by what name a function takes weights; None if it takes none."""
    return next((name for name in ("sample_weight", "weight") if _takes(function, name)), None)


def _is_truth_value(value: Any) -> bool:
    """Tell whether a value is True or False, or 1 or 0 in their place."""
    return isinstance(value, (bool, np.bool_, int, np.integer)) and value in (0, 1)


def _takes(function: Callable[..., Any], name: str) -> bool:
    """Tell whether a function has a parameter of this name, which what it may be wrapped in lets through."""
    with suppress(TypeError, ValueError):  # It has no signature of its own.
        wrapper = inspect.signature(function, follow_wrapped=False)
        try:
            wrapper.bind_partial(**{name: None})
        except TypeError:
            return False
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


@dataclass(eq=False)
class Measurer:
    """Measures validation rows after each round.

    Parameters
    ----------
    metric : Metric
        The metric of one's own.
    answers : Answers
        What makes posteriors of scores.
    rows : MeasuredRows
        The validation rows.
    patience : int
        Rounds that the metric may make no progress; 0 for any number.
    not_measured : int
        How many rounds there were before the first that was measured.
    values : list of float
        The metric after each round that was measured.
    """

    metric: Metric
    answers: Answers
    rows: MeasuredRows
    patience: int = 0
    not_measured: int = 0
    values: list[float] = field(default_factory=list)
    #: The name and the direction that the metric told first, which it must keep.
    _told_first: tuple[str, bool] | None = field(default=None, init=False)

    @property
    def _losses(self) -> Array:
        """The metric after each round that was measured, as a loss."""
        higher_is_better = self._told_first is not None and self._told_first[1]
        return -np.array(self.values) if higher_is_better else np.array(self.values)

    @property
    def has_stalled(self) -> bool:
        """Whether the metric makes no progress any more."""
        return is_stale(self._losses, self.patience)

    @property
    def best_round(self) -> int | None:
        """How many rounds there were when the metric was at its best; None without any."""
        if not np.isfinite(self.values).any():
            return None
        return self.not_measured + int(np.nanargmin(self._losses)) + 1

    def measure(self, columns: list[Array]) -> bool:
        """Measure what the scores of all rows say, a column per booster; return whether progress has ended."""
        self.measure_rows([column[self.rows.positions] for column in columns])
        return self.has_stalled

    def measure_rows(self, columns: list[Array]) -> None:
        """Measure what the scores of the validation rows say, a column per booster."""
        scores = columns[0] if len(columns) == 1 else np.column_stack(columns)
        y = self.answers.classes[self.rows.labels]
        name, value, higher_is_better = self.metric.measure(self.answers, scores, y, self.rows.weight)
        told = name, higher_is_better
        if self._told_first is None:
            self._told_first = told
        if told != self._told_first:
            raise ValueError(
                f"eval_metric={self.metric.name} must return the same name and the same is_higher_better after every "
                f"round, got {told!r} after {self._told_first!r}"
            )
        self.values.append(value)

    def list_curves(self) -> dict[str, Array]:
        """Return the metric after each round, by its name; NaN where it was not measured."""
        if self._told_first is None:
            return {}
        name, _ = self._told_first
        curve = f"eval_{name}" if name in BUILT_IN else name
        return {curve: np.array([np.nan] * self.not_measured + self.values)}
