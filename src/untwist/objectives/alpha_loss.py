"""The alpha-loss of margins, its derivatives, and the posteriors that margins stand for."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, log_softmax, logsumexp

from untwist.arguments import Array, check_numbers
from untwist.theory.losses import AlphaLoss

__all__ = ["clean_proba", "gradient", "hessian", "loss", "safe_hessian", "twisted_log_loss", "twisted_proba"]

Labels = NDArray[np.intp]


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
    margin, y, exponent = check_sample(margin, y, alpha)
    log_p = _log_probability_of_label(margin, y, alpha)
    with np.errstate(over="ignore"):
        # Adding 0.0 turns -0.0 into 0.0.
        return np.asarray(-np.expm1(exponent * log_p) / exponent if exponent else -log_p) + 0.0


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
    parts = decompose(*check_sample(margin, y, alpha), alpha)
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
    parts = decompose(*check_sample(margin, y, alpha), alpha)
    with np.errstate(over="ignore"):
        curve = np.exp(parts.weight + parts.spread)
        turn = np.exp(parts.weight + 2.0 * parts.pull)
        return np.asarray(curve - parts.exponent * turn)


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
    parts = decompose(*check_sample(margin, y, alpha), alpha)
    with np.errstate(over="ignore"):
        return bound_curvature(parts)


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
    check_alpha(alpha, margin.ndim)
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
    margin, y, _ = check_sample(margin, y, alpha)
    if math.isinf(alpha):
        raise ValueError(f"alpha must be finite, got {alpha!r}: there margins do not tell the twisted posterior")
    weights = None if sample_weight is None else check_numbers("sample_weight", sample_weight)
    return float(np.average(-_log_probability_of_label(margin / alpha, y, 1.0), weights=weights))


class Parts(NamedTuple):
    """What derivatives are made of, as logarithms: nothing cancels, and what overflows does so in the product only.

    `exponent` is r, `weight` log(p_y**r), `pull` log |[k = y] - p_k|, `sign` the sign of [k = y] - p_k, and `spread`
    log(p_k * (1 - p_k)).
    """

    exponent: float
    weight: Array
    pull: Array
    sign: Array
    spread: Array


def decompose(margin: Array, y: Labels, exponent: float, alpha: float) -> Parts:
    """Return the parts of the derivatives of a sample that `check_sample` has checked, whose `exponent` is r."""
    if margin.ndim == 1:
        # A negative alpha believes the other label.
        sign = np.where(y == (alpha > 0), 1.0, -1.0)
        log_p = log_expit(sign * margin)
        log_q = log_expit(-sign * margin)
        return Parts(exponent, exponent * log_p, log_q, sign, log_p + log_q)
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
    return Parts(exponent, exponent * log_p[at_label][:, None], pull, sign, log_p + log_q)


def bound_curvature(parts: Parts) -> Array:
    """Return `safe_hessian` of these parts."""
    curve = np.exp(parts.weight + parts.spread)
    return np.asarray(curve - parts.exponent * np.exp(parts.weight + 2.0 * parts.pull) if parts.exponent < 0 else curve)


def _log_probability_of_label(margin: Array, y: Labels, alpha: float) -> Array:
    """Return log p_y; for a negative alpha that of the other class."""
    if margin.ndim == 1:
        return np.asarray(log_expit(np.where(y == (alpha > 0), margin, -margin)))
    return np.asarray(log_softmax(margin, axis=1)[np.arange(y.size), y])


def check_alpha(alpha: Any, dimensions: int = 1) -> float:
    """Return r = 1 - 1 / |alpha|, if there is such a loss for one margin (dimension 1) or several a row."""
    exponent = AlphaLoss(alpha).exponent
    if alpha == 0:
        raise ValueError("alpha must not be 0: its loss is infinite everywhere")
    if alpha < 0 and dimensions > 1:
        raise ValueError(f"alpha must be > 0 for more than two classes, got {alpha!r}")
    return exponent


def _check_margins(margin: ArrayLike) -> Array:
    margin = check_numbers("margin", margin)
    if margin.ndim not in (1, 2) or (margin.ndim == 2 and margin.shape[1] < 2):
        raise ValueError(f"margin must be a number per row or at least two, one per class, got shape {margin.shape}")
    return margin


def check_sample(margin: ArrayLike, y: ArrayLike, alpha: Any) -> tuple[Array, Labels, float]:
    """Return margins, labels and r, if they go together."""
    margin = _check_margins(margin)
    values = check_numbers("y", y)
    exponent = check_alpha(alpha, margin.ndim)
    if values.shape != margin.shape[:1]:
        raise ValueError(f"y must be a label for each of {margin.shape[0]} rows, got shape {values.shape}")
    classes = margin.shape[1] if margin.ndim == 2 else 2
    known = (values >= 0) & (values < classes) & (values % 1 == 0)
    if not known.all():
        hint = ": more classes take a margin each" if margin.ndim == 1 else ""
        raise ValueError(f"y must be one of 0 to {classes - 1}, got {values[~known][0]:g}{hint}")
    return margin, values.astype(np.intp), exponent
