"""Objectives and metrics for XGBoost, LightGBM and CatBoost: objects that these libraries call."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from untwist.arguments import Array, check_numbers
from untwist.objectives.alpha_loss import bound_curvature, check_alpha, check_sample, decompose, twisted_log_loss

__all__ = [
    "CatBoostMetric",
    "CatBoostObjective",
    "LightGBMMetric",
    "LightGBMObjective",
    "XGBoostMetric",
    "XGBoostObjective",
]

# The libraries divide by sums of Hessians, so that the Hessian of a row is at least this.
HESSIAN_FLOOR = 1e-6
# The libraries sum in 32 bits and weights have no bound for alpha < 1, so that a row's log-weight is at most this.
LOG_WEIGHT_CEILING = math.log(1e12)


# ---- XGBoost and LightGBM ----


@dataclass(frozen=True)
class _AtAlpha:
    """What a library calls, at one alpha."""

    alpha: float

    def __post_init__(self) -> None:
        check_alpha(self.alpha)


class _Objective(_AtAlpha):
    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> tuple[Array, Array]:
        """Return the gradient and the Hessian for a library.

        Parameters
        ----------
        y_true, y_pred
            Labels and margins; or margins and the library's data, as its native API has it.
        sample_weight : array_like, optional
            How much each row counts.

        Returns
        -------
        gradient, hessian : ndarray
            In the shape of the margins.
        """
        y, margin, weight = _read_arguments(y_true, y_pred, sample_weight)
        steps, curves = _differentiate(margin, y, self.alpha)
        if margin.ndim == 2:
            curves *= self._hessian_factor(margin.shape[1])
        scale = 1.0 if weight is None else weight.reshape(-1, *[1] * (margin.ndim - 1))
        return scale * steps, scale * curves

    def _hessian_factor(self, n_classes: int) -> float:
        """Return what the library multiplies the Hessians of a class with, as all classes move at the same time."""
        raise NotImplementedError


class XGBoostObjective(_Objective):
    """The alpha-loss for ``XGBClassifier(objective=...)`` and ``xgboost.train(..., obj=...)``; sample weights count.

    An XGBClassifier gives clean probabilities and classes as always. In the native API name the objective that it
    stands for too, ``"binary:logistic"`` or ``"multi:softprob"``: so the margins begin at 0 and predictions are clean
    probabilities.

    Parameters
    ----------
    alpha : float
        Not 0; negative for two classes only.

    Examples
    --------
    >>> XGBoostObjective(2.0)(np.array([0, 1, 1]), np.array([0.0, 0.0, -3.0]))[0].round(3)
    array([ 0.354, -0.354, -0.207])
    """

    def _hessian_factor(self, _n_classes: int) -> float:
        return 2.0


class LightGBMObjective(_Objective):
    """The alpha-loss for ``LGBMClassifier(objective=...)`` and ``lightgbm.train({"objective": ...})``; weights count.

    Its models give margins: ``predict(X, raw_score=True)``, for `clean_proba` to turn into probabilities.

    Parameters
    ----------
    alpha : float
        Not 0; negative for two classes only.
    """

    def _hessian_factor(self, n_classes: int) -> float:
        return n_classes / (n_classes - 1)


class XGBoostMetric(_AtAlpha):
    """`twisted_log_loss` for ``XGBClassifier(eval_metric=...)`` and ``xgboost.train(..., custom_metric=...)``.

    Parameters
    ----------
    alpha : float
        That of the objective; finite.
    """

    # XGBoost reads the name of a metric from here.
    __name__ = "twisted_log_loss"

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> float | tuple[str, float]:
        """Return the mean loss.

        Parameters
        ----------
        y_true, y_pred
            Labels and margins; or margins and the library's data, as its native API has it.
        sample_weight : array_like, optional
            How much each row counts.

        Returns
        -------
        float or tuple of str and float
            The value, and in the native API its name before it.
        """
        value = _measure(self.alpha, y_true, y_pred, sample_weight)
        return (self.__name__, value) if hasattr(y_pred, "get_label") else value


class LightGBMMetric(_AtAlpha):
    """`twisted_log_loss` for ``LGBMClassifier.fit(eval_metric=...)`` and ``lightgbm.train(..., feval=...)``.

    Parameters
    ----------
    alpha : float
        That of the objective; finite.
    """

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> tuple[str, float, bool]:
        """Return the mean loss.

        Parameters
        ----------
        y_true, y_pred
            Labels and margins; or margins and the library's data, as its native API has it.
        sample_weight : array_like, optional
            How much each row counts.

        Returns
        -------
        tuple of str, float and bool
            The name, the value, and that more is not better.
        """
        return "twisted_log_loss", _measure(self.alpha, y_true, y_pred, sample_weight), False


def _measure(alpha: float, *arguments: Any) -> float:
    y, margin, weight = _read_arguments(*arguments)
    return twisted_log_loss(margin, y, alpha, weight)


def _read_arguments(y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[Array, Array, Array | None]:
    """Return labels, margins and weights; the native APIs give margins and data, which know the rest."""
    if hasattr(y_pred, "get_label"):
        y_true, y_pred, sample_weight = y_pred.get_label(), y_true, y_pred.get_weight()
    weight = (
        None if sample_weight is None or np.size(sample_weight) == 0 else check_numbers("sample_weight", sample_weight)
    )
    return check_numbers("y_true", y_true), check_numbers("y_pred", y_pred), weight


def _differentiate(margin: ArrayLike, y: ArrayLike, alpha: float) -> tuple[Array, Array]:
    """Return the gradient and the safe Hessian within what a library can sum and divide by."""
    parts = decompose(*check_sample(margin, y, alpha), alpha)
    parts = parts._replace(weight=np.minimum(parts.weight, LOG_WEIGHT_CEILING))
    steps = -parts.sign * np.exp(parts.weight + parts.pull)
    return steps, np.maximum(bound_curvature(parts), HESSIAN_FLOOR)


# ---- CatBoost ----


class CatBoostObjective(_AtAlpha):
    """The alpha-loss for ``CatBoostClassifier(loss_function=...)``; say ``classes_count`` for more than two classes.

    CatBoost wants an ``eval_metric`` with it (`CatBoostMetric`). ``predict(X, prediction_type="RawFormulaVal")`` gives
    margins, ``predict_proba`` clean probabilities. Several classes are slow: it asks row by row.

    Parameters
    ----------
    alpha : float
        Not 0; negative for two classes only.
    """

    def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> Array:
        """Return the derivatives of what CatBoost maximises, minus the loss, for two classes.

        Parameters
        ----------
        approxes, targets, weights
            The margin, the label and the weight of each row; weights may be None.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            The first and the second derivative of each row.
        """
        pair = np.column_stack(_differentiate(approxes, targets, self.alpha))
        return -pair if weights is None else -pair * check_numbers("weights", weights)[:, None]

    def calc_ders_multi(self, approx: Any, target: float, weight: float) -> tuple[Array, Array]:
        """Return the derivatives of minus the loss of one row, for more than two classes.

        Parameters
        ----------
        approx : array_like of shape (n_classes,)
            The margins.
        target, weight : float
            The label and the weight.

        Returns
        -------
        gradient : ndarray of shape (n_classes,)
            The first derivatives.
        matrix : ndarray of shape (n_classes, n_classes)
            The second derivatives: minus the whole matrix of which `safe_hessian` is the diagonal.
        """
        rate = check_alpha(self.alpha, 2)
        y = int(target)
        odds = np.exp(approx - np.max(approx))
        p = odds / odds.sum()
        log_p = float(approx[y] - np.max(approx) - math.log(odds.sum()))
        pull = -p
        pull[y] += 1.0
        weight = weight * math.exp(min(rate * log_p, LOG_WEIGHT_CEILING))
        matrix = np.diag(p) - np.outer(p, p) + max(-rate, 0.0) * np.outer(pull, pull)
        return weight * pull, -weight * matrix


class CatBoostMetric(_AtAlpha):
    """`twisted_log_loss` for ``CatBoostClassifier(eval_metric=...)``.

    Parameters
    ----------
    alpha : float
        That of the objective; finite.
    """

    def is_max_optimal(self) -> bool:
        """Return False, as less is better."""
        return False

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """Return the sum of the losses and the sum of the weights.

        Parameters
        ----------
        approxes : sequence of arrays
            The margins of all rows, one array or one for each class.
        target, weight
            The label and the weight of each row; weight may be None.

        Returns
        -------
        tuple of float
            Both sums.
        """
        margin = approxes[0] if len(approxes) == 1 else np.column_stack(approxes)
        total = float(len(target) if weight is None else np.sum(weight))
        return total * twisted_log_loss(margin, target, self.alpha, weight), total

    def get_final_error(self, error: float, weight: float) -> float:
        """Return the mean loss.

        Parameters
        ----------
        error, weight : float
            What `evaluate` gave.

        Returns
        -------
        float
            The mean.
        """
        return error / weight
