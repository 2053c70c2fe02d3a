"""PILBoost, and AdaBoost as the paper runs it, over any weak learner: one loop (Algorithm "cboost").

The loop is a generator of rounds without end; who consumes it decides when to stop, what to log and what to keep. It
is the definition that faster engines are tested against.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from untwist.arguments import Array, check_numbers, check_positive
from untwist.theory.links import Link

#: AdaBoost's error is kept so far from 0 and 1.
LEAST_ERROR = 1e-10

#: The square of a prediction, times a step, must not overflow.
LARGEST_PREDICTION = 1e100


class Hypothesis(Protocol):
    """A weak hypothesis h."""

    def predict(self, X: Any) -> Array:
        """Return a real number per row, its sign the guess."""


class WeakLearner(Hypothesis, Protocol):
    """What boosting asks of a weak learner; every regressor of scikit-learn has it."""

    def fit(self, X: Any, y: Array, sample_weight: Array) -> Self:
        """Fit to labels y in {-1, +1} with non-negative weights."""


@dataclass(frozen=True, eq=False)
class Round:
    """One round of boosting, H += leverage * hypothesis.

    `edge` is the mean of weight * y * h(x) over the sample, `leverage` the coefficient beta, for PILBoost a_f * edge.
    Per example: the boosting `weights` that the hypothesis was fitted with, `agreement` = y * h(x), and the `margins`
    y * H(x) after the round.
    """

    index: int
    hypothesis: Hypothesis
    edge: float
    leverage: float
    weights: Array
    agreement: Array
    margins: Array


def boost(
    X: Any,
    y: ArrayLike,
    weak_learner: WeakLearner,
    *,
    weigh: Callable[[Array], Array],
    leverage: Callable[[Array, Array], float],
    sample_weight: ArrayLike | None = None,
    start: Array | None = None,
    rng: np.random.Generator | None = None,
) -> Iterator[Round]:
    """Yield rounds of boosting for labels y in {-1, +1} until all weights are zero.

    Parameters
    ----------
    X : table
        What the weak learner takes.
    y : array-like
        Labels -1 and +1.
    weak_learner : WeakLearner
        A fresh copy is fitted in every round. If it has a `random_state`, that is drawn from `rng`.
    weigh : function
        ``weigh(margins)`` gives the weights of a round.
    leverage : function
        ``leverage(share, agreement)`` gives the coefficient of a hypothesis from each example's share of the weight
        (weights * sample_weight / total sample weight) and y * h(x).
    sample_weight : array-like or None
        Non-negative weights of the rows.
    start : array or None
        Scores to go on from.
    rng : Generator or None
        What random states are drawn from.

    Yields
    ------
    Round
    """
    labels, weight = _check_labels_and_weights(y, sample_weight)
    if hasattr(X, "shape") and X.shape[0] != labels.size:
        raise ValueError(f"X and y must have as many rows, got {X.shape[0]} and {labels.size}")
    if not has_fit_parameter(weak_learner, "sample_weight"):
        raise ValueError(f"estimator {weak_learner!r} cannot boost: its fit takes no sample_weight")
    margins = np.zeros(labels.size) if start is None else labels * start
    return _iterate_rounds(X, labels, weight, margins, weak_learner, weigh, leverage, rng)


def _iterate_rounds(
    X: Any,
    y: Array,
    sample_weight: Array,
    margins: Array,
    weak_learner: WeakLearner,
    weigh: Callable[[Array], Array],
    leverage: Callable[[Array, Array], float],
    rng: np.random.Generator | None,
) -> Iterator[Round]:
    for index in itertools.count():
        weights = weigh(margins)
        share = weights * sample_weight
        if not share.any():
            return
        hypothesis = _copy_learner(weak_learner, rng)
        hypothesis.fit(X, y, sample_weight=share)
        agreement = y * _predict_checked(hypothesis, X, y.size, index)
        share = share / sample_weight.sum()
        beta = leverage(share, agreement)
        margins = margins + beta * agreement
        yield Round(index, hypothesis, float(share @ agreement), beta, weights, agreement, margins)


def pilboost(
    X: Any,
    y: ArrayLike,
    weak_learner: WeakLearner,
    link: Link,
    step_size: float,
    *,
    sample_weight: ArrayLike | None = None,
    by_edge: bool = True,
    start: Array | None = None,
    rng: np.random.Generator | None = None,
) -> Iterator[Round]:
    """Yield the rounds of PILBoost: weights inverse(-margin) of any link, coefficient step_size * edge.

    Edges shrink as the margins grow, and with them the steps: it is slow in the end. `by_edge=False` makes step_size
    itself the coefficient, as the learning rate of other boosters. The other parameters are those of `boost`.
    """
    step = check_positive("step_size", step_size)
    if not isinstance(link, Link):
        raise ValueError(f"link must be a Link, such as ClippedLink(AlphaLoss(2.0)), got {link!r}")
    return boost(
        X,
        y,
        weak_learner,
        weigh=link.weights,
        leverage=lambda share, agreement: step * float(share @ agreement) if by_edge else step,
        sample_weight=sample_weight,
        start=start,
        rng=rng,
    )


def adaboost(
    X: Any,
    y: ArrayLike,
    weak_learner: WeakLearner,
    *,
    sample_weight: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Iterator[Round]:
    """Yield the rounds of AdaBoost as the paper runs it, with real-valued hypotheses.

    Weights are exp(-margin), normalised, and the coefficient is log((1-err)/err)/2. err is the share of the weight
    where sign(h) != y, h = 0 counting as an error; it is kept away from 0 and 1, where the coefficient would be
    infinite. The parameters are those of `boost`.
    """
    weight = _check_labels_and_weights(y, sample_weight)[1]
    present = weight > 0  # The softmax must not spend weight on absent rows.

    def leverage(share: Array, agreement: Array) -> float:
        error = float(np.clip(share[agreement <= 0].sum() / share.sum(), LEAST_ERROR, 1.0 - LEAST_ERROR))
        return 0.5 * math.log((1.0 - error) / error)

    return boost(
        X,
        y,
        weak_learner,
        weigh=lambda margins: margins.size * np.asarray(softmax(np.where(present, -margins, -np.inf))),
        leverage=leverage,
        sample_weight=sample_weight,
        rng=rng,
    )


class ValidationLoss:
    """Log-loss and error of rows that are not trained on, after each round; `losses` and `errors` keep them.

    The loss is that of the rows' own labels under the twisted posterior, which is kept within
    [posterior_floor, 1 - posterior_floor].
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        link: Link,
        sample_weight: ArrayLike | None = None,
        *,
        start: Array | None = None,
        posterior_floor: float = 1e-6,
    ) -> None:
        self._X = X
        self._link = link
        self._posterior_floor = posterior_floor
        self._y, weight = _check_labels_and_weights(y, sample_weight, "sample_weight_val")
        self._share = weight / weight.sum()
        self.margins = np.zeros(self._y.size) if start is None else self._y * start
        self.losses: list[float] = []
        self.errors: list[float] = []

    def __call__(self, one: Round) -> float:
        """Add the round's hypothesis and return the loss."""
        prediction = _predict_checked(one.hypothesis, self._X, self._y.size, one.index)
        self.margins = self.margins + one.leverage * self._y * prediction
        floor = self._posterior_floor
        posterior = np.clip(self._link.weights(-self.margins), floor, 1.0 - floor)
        right = (self.margins > 0) | ((self.margins == 0) & (self._y < 0))  # A score of 0 is a guess at the negative.
        self.losses.append(float(self._share @ -np.log(posterior)))
        self.errors.append(float(self._share @ ~right))
        return self.losses[-1]


def staged_scores(rounds: Iterable[tuple[float, Hypothesis]], X: Any, start: float = 0.0) -> Iterator[Array]:
    """Yield the scores H(x) of the rows of X after each round, given as (leverage, hypothesis)."""
    scores: Array | float = start
    for leverage, hypothesis in rounds:
        scores = scores + leverage * hypothesis.predict(X)
        yield scores


def _check_labels_and_weights(
    y: ArrayLike, sample_weight: ArrayLike | None, name: str = "sample_weight"
) -> tuple[Array, Array]:
    """Return labels -1 and +1, and weights scaled by the largest, so that their size does not matter."""
    y = check_numbers("y", y)
    if y.ndim != 1 or y.size == 0:
        raise ValueError(f"y must be a non-empty one-dimensional array, got shape {y.shape}")
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError(f"y must hold labels -1 and +1 only, got {np.unique(y)[:5]}")
    weight = np.ones(y.size) if sample_weight is None else check_numbers(name, sample_weight)
    if weight.shape != y.shape:
        raise ValueError(f"{name} must be {y.size} numbers, one per row, got shape {weight.shape}")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError(f"{name} must be finite and non-negative, not all 0, got {weight.min()} to {weight.max()}")
    return y, weight / weight.max()


def _copy_learner(weak_learner: WeakLearner, rng: np.random.Generator | None) -> WeakLearner:
    """Return an unfitted copy, with a seed of its own where it takes one."""
    copy: Any = clone(weak_learner, safe=False)
    if rng is not None and hasattr(copy, "get_params") and "random_state" in copy.get_params():
        copy.set_params(random_state=int(rng.integers(2**31)))
    return copy  # type: ignore[no-any-return]


def _predict_checked(hypothesis: Hypothesis, X: Any, size: int, index: int) -> Array:
    """Return the predictions of a weak hypothesis, which must be finite numbers."""
    prediction = np.asarray(hypothesis.predict(X), dtype=np.float64)
    if prediction.shape != (size,):
        raise ValueError(f"estimator {hypothesis!r} must predict {size} numbers, got shape {prediction.shape}")
    if not np.isfinite(prediction).all():
        bad = prediction[~np.isfinite(prediction)][0]
        raise ValueError(
            f"estimator {hypothesis!r} predicted {bad} in round {index + 1}: it must predict finite numbers"
        )
    if np.abs(prediction).max() > LARGEST_PREDICTION:
        raise ValueError(f"estimator {hypothesis!r} predicted a number beyond 1e100 in round {index + 1}")
    return prediction
