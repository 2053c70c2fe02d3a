"""The alpha-loss as an objective of XGBoost, LightGBM and CatBoost and as a PyTorch module, for any number of classes.

A row has one margin (two classes: p = sigmoid(margin) is the probability of class 1) or one per class (p =
softmax(margin)). It costs ``(1 - p_y**r) / r``, r = 1 - 1/alpha, p_y the probability of its label: the log-loss at
alpha = 1, 1 - p_y at infinity. Of a model learned from twisted labels, p is the clean posterior, and that of margin /
alpha the twisted one (Lemma "lemPointwise"; for several classes p is proportional to the twisted posterior to the
power alpha). A negative alpha undoes a twist across 1/2, of two classes only.

Nothing here imports a library of boosting: the objects are what it calls. Only `torch_loss` imports PyTorch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, log_softmax, logsumexp

from untwist.arguments import Array, check_numbers
from untwist.optional import import_optional
from untwist.theory.losses import AlphaLoss

__all__ = [
    "CatBoostMetric",
    "CatBoostObjective",
    "LightGBMMetric",
    "LightGBMObjective",
    "XGBoostMetric",
    "XGBoostObjective",
    "clean_proba",
    "gradient",
    "hessian",
    "loss",
    "safe_hessian",
    "torch_loss",
    "twisted_log_loss",
    "twisted_proba",
]

# The libraries divide by sums of Hessians, so that the Hessian of a row is at least this.
HESSIAN_FLOOR = 1e-6
# The libraries sum in 32 bits and weights have no bound for alpha < 1, so that a row's log-weight is at most this.
LOG_WEIGHT_CEILING = math.log(1e12)

Labels = NDArray[np.intp]


# ---- the loss of margins ----


def loss(margin: ArrayLike, y: ArrayLike, alpha: float) -> Array:
    """Return the alpha-loss of each row.

    Parameters
    ----------
    margin : array_like of shape (n_rows,) or (n_rows, n_classes)
        One margin per row, or one per class.
    y : array_like of shape (n_rows,)
        The labels 0, 1, ...
    alpha : float
        Not 0; negative for two classes only.

    Returns
    -------
    ndarray of shape (n_rows,)
        One cost per row, possibly infinite.

    Examples
    --------
    >>> loss([0.0, 0.0, 40.0], [0, 1, 0], 2.0).round(3)
    array([0.586, 0.586, 2.   ])
    """
    margin, y, rate = _check_sample(margin, y, alpha)
    log_p = _log_probability_of_label(margin, y, alpha)
    with np.errstate(over="ignore"):
        # Adding 0.0 turns -0.0 into 0.0.
        return np.asarray(-np.expm1(rate * log_p) / rate if rate else -log_p) + 0.0


def gradient(margin: ArrayLike, y: ArrayLike, alpha: float) -> Array:
    """Return the derivative of `loss` by each margin, p_y**r * (p_k - [k = y]).

    It is the log-loss's, and less than that where the model contradicts y.

    Parameters
    ----------
    margin : array_like of shape (n_rows,) or (n_rows, n_classes)
        One margin per row, or one per class.
    y : array_like of shape (n_rows,)
        The labels 0, 1, ...
    alpha : float
        Not 0; negative for two classes only.

    Returns
    -------
    ndarray
        In the shape of `margin`.

    Examples
    --------
    >>> gradient([0.0, -3.0], [1, 1], 2.0).round(3)
    array([-0.354, -0.207])
    """
    parts = _decompose(*_check_sample(margin, y, alpha), alpha)
    with np.errstate(over="ignore"):
        return np.asarray(-parts.sign * np.exp(parts.weight + parts.pull))


def hessian(margin: ArrayLike, y: ArrayLike, alpha: float) -> Array:
    """Return the second derivative of `loss` by each margin.

    It is p_y**r * (p_k * (1 - p_k) - r * (p_k - [k = y])**2). For alpha > 1 it is negative where the model contradicts
    y, p_y < r * (1 - p_y): no Newton step is safe there.

    Parameters
    ----------
    margin : array_like of shape (n_rows,) or (n_rows, n_classes)
        One margin per row, or one per class.
    y : array_like of shape (n_rows,)
        The labels 0, 1, ...
    alpha : float
        Not 0; negative for two classes only.

    Returns
    -------
    ndarray
        In the shape of `margin`.
    """
    parts = _decompose(*_check_sample(margin, y, alpha), alpha)
    with np.errstate(over="ignore"):
        curve = np.exp(parts.weight + parts.spread)
        turn = np.exp(parts.weight + 2.0 * parts.pull)
        return np.asarray(curve - parts.rate * turn)


def safe_hessian(margin: ArrayLike, y: ArrayLike, alpha: float) -> Array:
    """Return a Hessian that is never negative.

    For alpha <= 1 it is `hessian`, else p_y**r * p_k * (1 - p_k), which is larger: the Hessian of a bound. For
    alpha > 1 the loss is concave in the log-loss, so that it stays below the log-loss times the weight p_y**r of
    today's margin (plus a constant), and touches it there.

    Parameters
    ----------
    margin : array_like of shape (n_rows,) or (n_rows, n_classes)
        One margin per row, or one per class.
    y : array_like of shape (n_rows,)
        The labels 0, 1, ...
    alpha : float
        Not 0; negative for two classes only.

    Returns
    -------
    ndarray
        In the shape of `margin`; never negative.
    """
    parts = _decompose(*_check_sample(margin, y, alpha), alpha)
    with np.errstate(over="ignore"):
        return _bound_curvature(parts)


def clean_proba(margin: ArrayLike) -> Array:
    """Return the clean posterior at margins.

    Parameters
    ----------
    margin : array_like of shape (n_rows,) or (n_rows, n_classes)
        One margin per row, or one per class.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        The probability of each class.

    Examples
    --------
    >>> clean_proba([-2.0, 0.0, 2.0]).round(3)
    array([[0.881, 0.119],
           [0.5  , 0.5  ],
           [0.119, 0.881]])
    """
    margin = _check_margins(margin)
    if margin.ndim == 1:
        return np.column_stack([expit(-margin), expit(margin)])
    return np.asarray(np.exp(log_softmax(margin, axis=1)))


def twisted_proba(margin: ArrayLike, alpha: float) -> Array:
    """Return the twisted posterior of a model trained with that alpha: what the labels look like, noise and all.

    Parameters
    ----------
    margin : array_like of shape (n_rows,) or (n_rows, n_classes)
        One margin per row, or one per class.
    alpha : float
        That of the training.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        The probability of each class.

    Examples
    --------
    >>> twisted_proba([-2.0, 0.0, 2.0], alpha=2.0).round(3)
    array([[0.731, 0.269],
           [0.5  , 0.5  ],
           [0.269, 0.731]])
    """
    margin = _check_margins(margin)
    _check_alpha(alpha, margin.ndim)
    return clean_proba(margin / alpha)


def twisted_log_loss(margin: ArrayLike, y: ArrayLike, alpha: float, sample_weight: ArrayLike | None = None) -> float:
    """Return the mean log-loss of the twisted posterior: it is proper for noisy labels, which may select models by it.

    Parameters
    ----------
    margin : array_like of shape (n_rows,) or (n_rows, n_classes)
        One margin per row, or one per class.
    y : array_like of shape (n_rows,)
        The labels 0, 1, ...
    alpha : float
        That of the training; finite.
    sample_weight : array_like of shape (n_rows,), optional
        How much each row counts.

    Returns
    -------
    float
        The mean, in nats.
    """
    margin, y, _ = _check_sample(margin, y, alpha)
    if math.isinf(alpha):
        raise ValueError(f"alpha must be finite, got {alpha!r}: there margins do not tell the twisted posterior")
    weights = None if sample_weight is None else check_numbers("sample_weight", sample_weight)
    return float(np.average(-_log_probability_of_label(margin / alpha, y, 1.0), weights=weights))


class _Parts(NamedTuple):
    """What derivatives are made of, as logarithms: nothing cancels, and what overflows does so in the product only.

    `rate` is r, `weight` log(p_y**r), `pull` log |[k = y] - p_k|, `sign` the sign of [k = y] - p_k, and `spread`
    log(p_k * (1 - p_k)).
    """

    rate: float
    weight: Array
    pull: Array
    sign: Array
    spread: Array


def _decompose(margin: Array, y: Labels, rate: float, alpha: float) -> _Parts:
    if margin.ndim == 1:
        # A negative alpha believes the other label.
        sign = np.where(y == (alpha > 0), 1.0, -1.0)
        log_p = log_expit(sign * margin)
        log_q = log_expit(-sign * margin)
        return _Parts(rate, rate * log_p, log_q, sign, log_p + log_q)
    rows = np.arange(y.size)
    log_p = log_softmax(margin, axis=1)
    at_label = (rows, y)
    at_top = (rows, log_p.argmax(axis=1))
    others = log_p.copy()
    others[at_top] = -math.inf
    # At the top 1 - p may round to 0, and there the sum of the others takes its place.
    with np.errstate(divide="ignore"):
        log_q = np.log1p(-np.exp(log_p))
    log_q[at_top] = logsumexp(others, axis=1)
    pull = log_p.copy()
    pull[at_label] = log_q[at_label]
    sign = np.full(margin.shape, -1.0)
    sign[at_label] = 1.0
    return _Parts(rate, rate * log_p[at_label][:, None], pull, sign, log_p + log_q)


def _bound_curvature(parts: _Parts) -> Array:
    curve = np.exp(parts.weight + parts.spread)
    return np.asarray(curve - parts.rate * np.exp(parts.weight + 2.0 * parts.pull) if parts.rate < 0 else curve)


def _log_probability_of_label(margin: Array, y: Labels, alpha: float) -> Array:
    """Return log p_y; for a negative alpha that of the other class."""
    if margin.ndim == 1:
        return np.asarray(log_expit(np.where(y == (alpha > 0), margin, -margin)))
    return np.asarray(log_softmax(margin, axis=1)[np.arange(y.size), y])


def _check_alpha(alpha: Any, dimensions: int = 1) -> float:
    """Return r = 1 - 1 / |alpha|, if there is such a loss for one margin (dimension 1) or several a row."""
    rate = AlphaLoss(alpha).rate
    if alpha == 0:
        raise ValueError("alpha must not be 0: its loss is infinite everywhere")
    if alpha < 0 and dimensions > 1:
        raise ValueError(f"alpha must be > 0 for more than two classes, got {alpha!r}")
    return rate


def _check_margins(margin: ArrayLike) -> Array:
    margin = check_numbers("margin", margin)
    if margin.ndim not in (1, 2) or (margin.ndim == 2 and margin.shape[1] < 2):
        raise ValueError(f"margin must be a number per row or at least two, one per class, got shape {margin.shape}")
    return margin


def _check_sample(margin: ArrayLike, y: ArrayLike, alpha: Any) -> tuple[Array, Labels, float]:
    margin = _check_margins(margin)
    values = check_numbers("y", y)
    rate = _check_alpha(alpha, margin.ndim)
    if values.shape != margin.shape[:1]:
        raise ValueError(f"y must be a label for each of {margin.shape[0]} rows, got shape {values.shape}")
    classes = margin.shape[1] if margin.ndim == 2 else 2
    known = (values >= 0) & (values < classes) & (values % 1 == 0)
    if not known.all():
        hint = ": more classes take a margin each" if margin.ndim == 1 else ""
        raise ValueError(f"y must be one of 0 to {classes - 1}, got {values[~known][0]:g}{hint}")
    return margin, values.astype(np.intp), rate


# ---- XGBoost and LightGBM ----


@dataclass(frozen=True)
class _AtAlpha:
    """What a library calls, at one alpha."""

    alpha: float

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)


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
    parts = _decompose(*_check_sample(margin, y, alpha), alpha)
    parts = parts._replace(weight=np.minimum(parts.weight, LOG_WEIGHT_CEILING))
    steps = -parts.sign * np.exp(parts.weight + parts.pull)
    return steps, np.maximum(_bound_curvature(parts), HESSIAN_FLOOR)


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
        rate = _check_alpha(self.alpha, 2)
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


# ---- PyTorch ----


def torch_loss(alpha: float, reduction: str = "mean", weight: Any = None) -> Any:
    """Return the alpha-loss of logits as a PyTorch module, to replace BCEWithLogitsLoss and CrossEntropyLoss.

    Targets of the logits' shape are 0, 1 or between, each element a question of two classes; targets without the
    class dimension, the second (as of CrossEntropyLoss), are classes 0, 1, ...

    Parameters
    ----------
    alpha : float
        Not 0; negative for two classes only.
    reduction : {"mean", "sum", "none"}, default "mean"
        What to make of the losses of all targets.
    weight : array_like, optional
        A number per class; the mean is then a weighted one.

    Returns
    -------
    torch.nn.Module
        Called with logits and targets.
    """
    return _make_torch_module()(alpha, reduction, weight)


@cache
def _make_torch_module() -> Any:
    """Return the class of the module, made when PyTorch is there to subclass."""
    torch = import_optional("torch", "torch_loss", needs="PyTorch")
    functional = torch.nn.functional

    base: Any = torch.nn.Module

    class AlphaLossModule(base):
        """See `torch_loss`."""

        weight: Any

        def __init__(self, alpha: float, reduction: str, weight: Any) -> None:
            super().__init__()
            if reduction not in ("mean", "sum", "none"):
                raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
            self.rate = _check_alpha(alpha)
            self.alpha = alpha
            self.reduction = reduction
            # The factor 1.0 makes floats of whole numbers too.
            self.register_buffer("weight", None if weight is None else torch.as_tensor(weight) * 1.0)

        def forward(self, logits: Any, target: Any) -> Any:
            if logits.shape == target.shape:
                losses, weight = self._weigh_two_classes(logits, target)
            else:
                losses, weight = self._weigh_classes(logits, target)
            if self.reduction == "none":
                return losses
            if self.reduction == "sum":
                return losses.sum()
            return losses.mean() if weight is None else losses.sum() / weight.sum()

        def _weigh_two_classes(self, logits: Any, target: Any) -> Any:
            _refuse(target, ~((target >= 0) & (target <= 1)), "target must lie in [0, 1]")
            y = target.to(logits.dtype)
            towards = logits if self.alpha > 0 else -logits
            # A part that does not count is asked at 0: elsewhere it could be infinite, and 0 * inf is no number.
            cost_pos = self._cost(functional.logsigmoid(towards.where(y > 0, torch.zeros_like(logits))))
            cost_neg = self._cost(functional.logsigmoid(-towards.where(y < 1, torch.zeros_like(logits))))
            if self.weight is None:
                return y * cost_pos + (1 - y) * cost_neg, None
            pos = y * self._class_weight(1, 2, logits)
            neg = (1 - y) * self._class_weight(0, 2, logits)
            return pos * cost_pos + neg * cost_neg, pos + neg

        def _weigh_classes(self, logits: Any, target: Any) -> Any:
            axis = min(1, logits.ndim - 1)
            rest = logits.shape[:axis] + logits.shape[axis + 1 :]
            if logits.ndim == 0 or logits.shape[axis] < 2 or target.shape != rest or target.is_floating_point():
                raise ValueError(
                    "target must have the shape of the logits, or that without their classes and integers, got "
                    f"{tuple(logits.shape)} and {tuple(target.shape)} of {target.dtype}"
                )
            _check_alpha(self.alpha, 2)
            classes = logits.shape[axis]
            y = target.long()
            _refuse(target, (target < 0) | (target >= classes), f"target must be one of 0 to {classes - 1}")
            log_p = functional.log_softmax(logits, axis).gather(axis, y.unsqueeze(axis)).squeeze(axis)
            if self.weight is None:
                return self._cost(log_p), None
            weight = self._class_weight(y, classes, logits)
            return weight * self._cost(log_p), weight

        def _cost(self, log_p: Any) -> Any:
            if self.rate == 0:
                return -log_p
            power = self.rate * log_p
            # Below -1/2 expm1 is not needed, and its derivative, expm1 + 1, would round small ones away.
            return -torch.where(power > -0.5, torch.expm1(power), torch.exp(power) - 1.0) / self.rate

        def _class_weight(self, y: Any, classes: int, logits: Any) -> Any:
            if self.weight.shape != (classes,):
                raise ValueError(f"weight must be {classes} numbers, one a class, got shape {tuple(self.weight.shape)}")
            return self.weight.to(logits.dtype)[y]

        def extra_repr(self) -> str:
            weight = "" if self.weight is None else f", weight={self.weight.tolist()}"
            return f"alpha={self.alpha!r}, reduction={self.reduction!r}{weight}"

        def __reduce__(self) -> Any:
            # Pickle could not find the class, which is made inside of a function.
            return torch_loss, (self.alpha, self.reduction, self.weight)

    def _refuse(target: Any, wrong: Any, message: str) -> None:
        # On another device it would take a wait to look at the values.
        if target.device.type == "cpu" and bool(wrong.any()):
            raise ValueError(f"{message}, got {target[wrong].flatten()[0].item():g}")

    return AlphaLossModule
