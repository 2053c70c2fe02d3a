r"""Losses for class probability estimation (Section 3 of the paper; the alpha-loss is its Definition "defALPHALOSS").

A loss is a pair of partial losses on [0, 1]: ``partial_pos(u)`` is what the estimate u costs when the label is +1,
``partial_neg(u)`` when it is -1. All else follows from the pair, and `Loss` computes it numerically; a subclass
overrides what it knows in closed form. Exact in, exact out: nothing is clipped, infinities are values, 0 * inf = 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import boxcox, boxcox1p, expit, lambertw, log_expit, logit, xlog1py, xlogy

from untwist.arguments import Array, check_numbers, check_positive, check_probabilities, check_real
from untwist.theory.numerics import expectation, minimisers, slope

__all__ = [
    "AlphaLoss",
    "ExponentialLoss",
    "FocalLoss",
    "LogLoss",
    "Loss",
    "MatusitaLoss",
    "SquareLoss",
    "SuperLoss",
    "tilt",
    "tilted_logit",
]


class Loss(ABC):
    """A loss for class probability estimation, given by its partial losses.

    A subclass must define ``partial_pos``; ``partial_neg`` defaults to its mirror image (property S). They get a NumPy
    array of any shape with entries in [0, 1], both ends included, and return as many costs, which may be infinite at
    an end. Everything else has a numerical definition here that any closed form must agree with
    (tests/theory/test_losses.py checks every loss).

    Examples
    --------
    >>> class CubicLoss(Loss):
    ...     def partial_pos(self, u):
    ...         return (1.0 - u) ** 3
    >>> CubicLoss().tilted_estimate([0.2, 0.5]).round(4)
    array([0.3333, 0.5   ])
    """

    def __init_subclass__(cls) -> None:
        for name in ("partial_pos", "partial_neg", "partial_pos_derivative", "partial_neg_derivative"):
            if name in vars(cls):
                # An infinite cost is a value here, not a cause for a warning.
                silent = np.errstate(divide="ignore", over="ignore", invalid="ignore")
                setattr(cls, name, silent(vars(cls)[name]))

    @abstractmethod
    def partial_pos(self, u: ArrayLike) -> Array:
        """Cost l_1(u) of an estimate when the label is +1 (eq. "eqpartialloss").

        Parameters
        ----------
        u : array_like
            Estimates in [0, 1].

        Returns
        -------
        ndarray
            One cost per estimate, possibly infinite.
        """

    def partial_neg(self, u: ArrayLike) -> Array:
        """Cost l_{-1}(u) of an estimate when the label is -1; by default l_1(1 - u).

        Parameters
        ----------
        u : array_like
            Estimates in [0, 1].

        Returns
        -------
        ndarray
            One cost per estimate, possibly infinite.
        """
        return self.partial_pos(1.0 - check_probabilities("u", u))

    def partial_pos_derivative(self, u: ArrayLike) -> Array:
        """Derivative of ``partial_pos``, at the ends from just inside; numerically to about 1e-9.

        Parameters
        ----------
        u : array_like
            Estimates in [0, 1].

        Returns
        -------
        ndarray
            One slope per estimate.
        """
        return slope(self.partial_pos, check_probabilities("u", u))

    def partial_neg_derivative(self, u: ArrayLike) -> Array:
        """Derivative of ``partial_neg``, at the ends from just inside; numerically to about 1e-9.

        Parameters
        ----------
        u : array_like
            Estimates in [0, 1].

        Returns
        -------
        ndarray
            One slope per estimate.
        """
        return slope(self.partial_neg, check_probabilities("u", u))

    def conditional_risk(self, u: ArrayLike, eta: ArrayLike) -> Array:
        """Pointwise risk L(u, eta) = eta * l_1(u) + (1 - eta) * l_{-1}(u), 0 * inf = 0 (eq. "eqpoirisk").

        Parameters
        ----------
        u : array_like
            Estimates in [0, 1].
        eta : array_like
            Posteriors in [0, 1] that the labels follow.

        Returns
        -------
        ndarray
            The expected cost of each estimate.
        """
        return expectation(check_probabilities("eta", eta), self.partial_pos(u), self.partial_neg(u))

    def bayes_risk(self, eta: ArrayLike) -> Array:
        """Pointwise Bayes risk inf_u L(u, eta).

        Parameters
        ----------
        eta : array_like
            Posteriors in [0, 1].

        Returns
        -------
        ndarray
            The least expected cost at each posterior.
        """
        low, high = self.tilted_set(eta)
        return np.minimum(self.conditional_risk(low, eta), self.conditional_risk(high, eta))

    def tilted_estimate(self, eta: ArrayLike) -> Array:
        """Bayes tilted estimate t(eta), the u that minimises L(u, eta) (eq. "defBTE").

        Parameters
        ----------
        eta : array_like
            Posteriors in [0, 1].

        Returns
        -------
        ndarray
            The minimiser at each posterior; the midpoint of their interval where there are several.
        """
        low, high = self.tilted_set(eta)
        return np.asarray(low + 0.5 * (high - low))[()]

    def tilted_set(self, eta: ArrayLike) -> tuple[Array, Array]:
        """Smallest interval that holds every minimiser of L(., eta).

        Parameters
        ----------
        eta : array_like
            Posteriors in [0, 1].

        Returns
        -------
        low, high : ndarray
            The ends of the interval at each posterior; they are equal where there is one minimiser only.
        """
        eta = check_probabilities("eta", eta)
        low, high = minimisers(self, eta.ravel())
        return low.reshape(eta.shape)[()], high.reshape(eta.shape)[()]

    def tilted_inverse(self, u: ArrayLike) -> Array:
        """The eta whose tilted estimate is u, from stationarity: l_{-1}'(u) / (l_{-1}'(u) - l_1'(u)).

        Parameters
        ----------
        u : array_like
            Estimates in [0, 1].

        Returns
        -------
        ndarray
            One posterior per estimate.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.divide(self.partial_pos_derivative(u), self.partial_neg_derivative(u))
            # Adding 0.0 turns -0.0 into 0.0.
            return np.asarray(1.0 / (1.0 - ratio))[()] + 0.0

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({arguments})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(vars(self).values())))


class AlphaLoss(Loss):
    """The alpha-loss, for every alpha in [-inf, +inf] (Definition "defALPHALOSS").

    With ``r = 1 - 1/alpha``: ``partial_pos(u) = (1 - u**r) / r`` for alpha > 0; the limit -log(u) at alpha = 1 and
    1 - u at +inf; +inf everywhere at alpha = 0. A negative alpha mirrors its absolute value: partial_pos(1 - u).
    Symmetric always; monotone and zero at the extremes for alpha > 0 only; proper for alpha = 1 only. It is the
    only loss here that is twist-proper (Lemma "lemPointwise"): its tilted estimate reaches every eta_clean from any
    eta_twisted (from 1/2 and for 1/2, as one of a set).

    Parameters
    ----------
    alpha : float
        Any number, +inf and -inf included; its absolute value is 0 or at least 1e-300.

    Examples
    --------
    >>> AlphaLoss(2.0).tilted_estimate([0.3, 0.5, 0.8]).round(4)
    array([0.1552, 0.5   , 0.9412])
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = check_real("alpha", alpha)
        if 0 < abs(self.alpha) < 1e-300:
            raise ValueError(f"alpha must be 0 or at least 1e-300 in size, got {alpha!r}")

    @property
    def conjugate(self) -> float:
        """c = a / (a - 1) for a = |alpha|: where the link ends (infinite at a = 1, negative below)."""
        return 1.0 / self.exponent if self.exponent else math.inf

    @property
    def exponent(self) -> float:
        """r = 1 / c = 1 - 1 / |alpha|, the exponent of the partial losses; -inf at alpha = 0."""
        a = abs(self.alpha)
        if a == 0:
            return -math.inf
        return 1.0 if math.isinf(a) else (a - 1.0) / a

    def partial_pos(self, u: ArrayLike) -> Array:
        """(1 - u**r) / r, for alpha < 0 at 1 - u."""
        u = check_probabilities("u", u)
        return self._cost_of_complement(u) if self.alpha < 0 else self._cost(u)

    def partial_neg(self, u: ArrayLike) -> Array:
        """(1 - (1-u)**r) / r, for alpha < 0 at 1 - u."""
        u = check_probabilities("u", u)
        return self._cost(u) if self.alpha < 0 else self._cost_of_complement(u)

    def partial_pos_derivative(self, u: ArrayLike) -> Array:
        """-u**(-1/alpha); NaN at alpha = 0, where nothing is finite."""
        u = check_probabilities("u", u)
        return self._power(1.0 - u) if self.alpha < 0 else -self._power(u)

    def partial_neg_derivative(self, u: ArrayLike) -> Array:
        """(1-u)**(-1/alpha); NaN at alpha = 0, where nothing is finite."""
        u = check_probabilities("u", u)
        return -self._power(u) if self.alpha < 0 else self._power(1.0 - u)

    def bayes_risk(self, eta: ArrayLike) -> Array:
        """c * (1 - (eta**a + (1-eta)**a)**(1/a)), a = |alpha|, as a sum of non-negative terms; even in alpha."""
        eta = check_probabilities("eta", eta)
        if self.alpha == 0:
            return np.full(eta.shape, math.inf)[()]
        log_odds = tilted_logit(eta, abs(self.alpha))
        cost_pos = self._cost_of_log(log_expit(log_odds))
        cost_neg = self._cost_of_log(log_expit(-log_odds))
        return expectation(eta, cost_pos, cost_neg)

    def tilted_estimate(self, eta: ArrayLike) -> Array:
        """sigma(alpha * logit(eta)) (Lemma "lemPointwise" (b)); 1/2, the midpoint, where the answer is [0, 1]."""
        return tilt(eta, self.alpha)

    def tilted_set(self, eta: ArrayLike) -> tuple[Array, Array]:
        """A point, but [0, 1] for alpha = 0 and for alpha = +-inf at eta = 1/2."""
        estimate = self.tilted_estimate(eta)
        every_u_is_optimal = np.full(np.shape(eta), self.alpha == 0)
        if math.isinf(self.alpha):
            every_u_is_optimal = np.equal(eta, 0.5)
        low = np.where(every_u_is_optimal, 0.0, estimate)[()]
        high = np.where(every_u_is_optimal, 1.0, estimate)[()]
        return low, high

    def tilted_inverse(self, u: ArrayLike) -> Array:
        """sigma(logit(u) / alpha): 1/2 for alpha = +-inf inside (0, 1)."""
        u = check_probabilities("u", u)
        if self.alpha == 0:
            raise ValueError("alpha must not be 0: its tilted estimate is all of [0, 1] everywhere")
        with np.errstate(invalid="ignore"):
            log_odds = np.where(np.isinf(logit(u)), np.sign(self.alpha) * logit(u), logit(u) / self.alpha)
        return np.asarray(expit(log_odds))[()]

    def _cost(self, u: Array) -> Array:
        if self.alpha == 0:
            return np.full(u.shape, math.inf)[()]
        return np.asarray(-boxcox(u, self.exponent))[()] + 0.0

    def _cost_of_complement(self, u: Array) -> Array:
        if self.alpha == 0:
            return np.full(u.shape, math.inf)[()]
        return np.asarray(-boxcox1p(-u, self.exponent))[()] + 0.0

    def _cost_of_log(self, log_u: Array) -> Array:
        r = self.exponent
        with np.errstate(over="ignore"):
            return np.asarray(-np.expm1(r * log_u) / r if r else -log_u)

    def _power(self, u: Array) -> Array:
        if self.alpha == 0:
            return np.full(u.shape, math.nan)[()]
        return np.asarray(u ** (-1.0 / abs(self.alpha)))[()]


class LogLoss(AlphaLoss):
    """The log-loss, partial_pos(u) = -log(u): the alpha-loss at 1, strictly proper."""

    def __init__(self) -> None:
        super().__init__(1.0)

    def __repr__(self) -> str:
        return "LogLoss()"


def is_alpha_loss(loss: object) -> bool:
    """Tell whether a loss is the alpha-loss as it is, so that its compiled formulas hold; a subclass may change them.

    Parameters
    ----------
    loss : object
        A loss, or anything else.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_alpha_loss(AlphaLoss(2.0)), is_alpha_loss(LogLoss()), is_alpha_loss(FocalLoss(2.0))
    (True, True, False)
    """
    return type(loss) in (AlphaLoss, LogLoss)


class _StrictlyProper(Loss):
    """A loss whose tilted estimate is eta itself."""

    def tilted_set(self, eta: ArrayLike) -> tuple[Array, Array]:
        """(eta, eta)."""
        eta = check_probabilities("eta", eta)[()]
        return eta, eta

    def tilted_inverse(self, u: ArrayLike) -> Array:
        """The identity."""
        return check_probabilities("u", u)[()]


class SquareLoss(_StrictlyProper):
    """The square loss, partial_pos(u) = (1 - u)**2: this scale makes the canonical link 2*u - 1. Strictly proper."""

    def partial_pos(self, u: ArrayLike) -> Array:
        """(1 - u)**2."""
        return (1.0 - check_probabilities("u", u)) ** 2

    def partial_neg(self, u: ArrayLike) -> Array:
        """u**2."""
        return check_probabilities("u", u) ** 2

    def partial_pos_derivative(self, u: ArrayLike) -> Array:
        """-2 * (1 - u)."""
        return -2.0 * (1.0 - check_probabilities("u", u))

    def partial_neg_derivative(self, u: ArrayLike) -> Array:
        """2 * u."""
        return 2.0 * check_probabilities("u", u)

    def bayes_risk(self, eta: ArrayLike) -> Array:
        """eta * (1 - eta)."""
        eta = check_probabilities("eta", eta)
        return eta * (1.0 - eta)


class MatusitaLoss(_StrictlyProper):
    """Matusita's loss, partial_pos(u) = sqrt((1 - u) / u): strictly proper, infinite at the wrong end."""

    def partial_pos(self, u: ArrayLike) -> Array:
        """sqrt((1 - u) / u)."""
        u = check_probabilities("u", u)
        return np.sqrt((1.0 - u) / u)

    def partial_neg(self, u: ArrayLike) -> Array:
        """sqrt(u / (1 - u))."""
        u = check_probabilities("u", u)
        return np.sqrt(u / (1.0 - u))

    def partial_pos_derivative(self, u: ArrayLike) -> Array:
        """-1 / (2 * u**1.5 * (1 - u)**0.5)."""
        u = check_probabilities("u", u)
        return -0.5 / (u**1.5 * np.sqrt(1.0 - u))

    def partial_neg_derivative(self, u: ArrayLike) -> Array:
        """1 / (2 * (1 - u)**1.5 * u**0.5)."""
        u = check_probabilities("u", u)
        return 0.5 / ((1.0 - u) ** 1.5 * np.sqrt(u))

    def bayes_risk(self, eta: ArrayLike) -> Array:
        """2 * sqrt(eta * (1 - eta))."""
        eta = check_probabilities("eta", eta)
        return 2.0 * np.sqrt(eta * (1.0 - eta))


class ExponentialLoss(MatusitaLoss):
    """The exponential loss exp(-m) as a loss on probabilities: Matusita's, read through the link logit(u) / 2.

    It differs from MatusitaLoss only in the link under which it is AdaBoost's, `untwist.theory.links.HalfLogitLink`.
    """


class FocalLoss(Loss):
    """The focal loss, partial_pos(u) = -(1 - u)**gamma * log(u), gamma >= 0 (Lemma "lemFocalLoss").

    Symmetric, monotone, zero at the extremes; proper for gamma = 0 only (then the log-loss). Not twist-proper: its
    tilted estimate is never further from 1/2 than eta.

    Parameters
    ----------
    gamma : float
        Finite and not negative.

    Examples
    --------
    >>> FocalLoss(2.0).tilted_estimate([0.1, 0.5]).round(4)
    array([0.3058, 0.5   ])
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = check_real("gamma", gamma, low=0.0)
        if math.isinf(self.gamma):
            raise ValueError("gamma must be finite, got inf")

    def partial_pos(self, u: ArrayLike) -> Array:
        """-(1 - u)**gamma * log(u)."""
        u = check_probabilities("u", u)
        return np.asarray(-xlogy((1.0 - u) ** self.gamma, u))[()] + 0.0

    def partial_neg(self, u: ArrayLike) -> Array:
        """-u**gamma * log(1 - u)."""
        u = check_probabilities("u", u)
        return np.asarray(-xlog1py(u**self.gamma, -u))[()] + 0.0

    def partial_pos_derivative(self, u: ArrayLike) -> Array:
        """(1 - u)**gamma * (gamma * log(u) / (1 - u) - 1 / u)."""
        u = check_probabilities("u", u)
        relative_log = np.where(u < 1, xlogy(self.gamma, u) / (1.0 - u), -self.gamma)
        return np.asarray((1.0 - u) ** self.gamma * (relative_log - 1.0 / u))[()]

    def partial_neg_derivative(self, u: ArrayLike) -> Array:
        """u**gamma * (1 / (1 - u) - gamma * log(1 - u) / u)."""
        u = check_probabilities("u", u)
        relative_log = np.where(u > 0, xlog1py(self.gamma, -u) / u, -self.gamma)
        return np.asarray(u**self.gamma * (1.0 / (1.0 - u) - relative_log))[()]


class SuperLoss(Loss):
    """The Super Loss around any loss: easy examples count more, hard ones less (after Lemma "lemFocalLoss").

    The partial losses are ``(l - tau) * sigma + lam * log(sigma)**2`` with l a partial loss of `loss` and
    ``sigma = exp(-W(max(-1/e, beta)))``, ``beta = (l - tau) / (2 * lam)``, W Lambert's function: a stationary point,
    not a minimum, in sigma. As beta = W e^W this is ``lam * W * (W + 2)``, or ``e * (l - tau) + lam`` below -1/e.
    Not twist-proper: it moves estimates away from 1/2 only. It shifts the extremes (E fails in general).

    Parameters
    ----------
    loss : Loss
        The loss to wrap.
    tau : float
        The cost that divides easy examples from hard ones; finite.
    lam : float
        How gently the weight of an example depends on its cost; finite and positive.

    Examples
    --------
    >>> SuperLoss(LogLoss(), tau=0.5, lam=1.0).tilted_estimate([0.1, 0.5]).round(4)
    array([0.0391, 0.5   ])
    """

    def __init__(self, loss: Loss, tau: float, lam: float) -> None:
        if not isinstance(loss, Loss):
            raise ValueError(f"loss must be a Loss, got {loss!r}")
        self.loss = loss
        self.tau = check_real("tau", tau)
        self.lam = check_positive("lam", lam)
        if math.isinf(self.tau):
            raise ValueError(f"tau must be finite, got {tau!r}")

    def partial_pos(self, u: ArrayLike) -> Array:
        """The Super Loss of the wrapped ``partial_pos``."""
        return self._wrap(self.loss.partial_pos(u))

    def partial_neg(self, u: ArrayLike) -> Array:
        """The Super Loss of the wrapped ``partial_neg``."""
        return self._wrap(self.loss.partial_neg(u))

    def partial_pos_derivative(self, u: ArrayLike) -> Array:
        """l_1'(u) * sigma(l_1(u)) (eq. "simpl-eq-sl")."""
        return _damp(self.loss.partial_pos_derivative(u), self._lambert(self.loss.partial_pos(u)))

    def partial_neg_derivative(self, u: ArrayLike) -> Array:
        """l_{-1}'(u) * sigma(l_{-1}(u)) (eq. "simpl-eq-sl")."""
        return _damp(self.loss.partial_neg_derivative(u), self._lambert(self.loss.partial_neg(u)))

    def _lambert(self, cost: Array) -> Array:
        beta = (cost - self.tau) / (2.0 * self.lam)
        branch_point = -math.exp(-1.0)
        # SciPy's W is NaN at the branch point and is not needed at infinity.
        within = np.clip(beta, branch_point + 1e-16, np.finfo(float).max)
        w = np.where(beta <= branch_point, -1.0, lambertw(within).real)
        return np.where(np.isposinf(beta), math.inf, w)[()]

    def _wrap(self, cost: Array) -> Array:
        w = self._lambert(cost)
        # At this excess over tau and below it sigma has its largest value, e.
        easy = 2.0 * self.lam * -math.exp(-1.0)
        excess = cost - self.tau
        return np.where(excess > easy, self.lam * w * (w + 2.0), math.e * excess + self.lam)[()]


def tilt(eta: ArrayLike, alpha: ArrayLike) -> Array:
    """The alpha-tilted posterior sigma(alpha * logit(eta)), 0 * inf = 0 (Lemma "lemPointwise" (b)).

    Parameters
    ----------
    eta : array_like
        Posteriors in [0, 1].
    alpha : array_like
        One number in [-inf, +inf], or one per posterior.

    Returns
    -------
    ndarray
        The tilted posteriors.

    Examples
    --------
    >>> tilt(0.3, [1.0, 2.0, -1.0, float("inf")]).round(3)
    array([0.3  , 0.155, 0.7  , 0.   ])
    """
    return np.asarray(expit(tilted_logit(eta, alpha)))[()]


def tilted_logit(eta: ArrayLike, alpha: ArrayLike) -> Array:
    """alpha * logit(eta), the log-odds of `tilt`, with 0 * inf = 0.

    Parameters
    ----------
    eta : array_like
        Posteriors in [0, 1].
    alpha : array_like
        One number in [-inf, +inf], or one per posterior.

    Returns
    -------
    ndarray
        The log-odds of the tilted posteriors.
    """
    log_odds = logit(check_probabilities("eta", eta))
    alpha = check_numbers("alpha", alpha)
    if np.isnan(alpha).any():
        raise ValueError("alpha must be a number, got nan")
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where((alpha == 0) | (log_odds == 0), 0.0, alpha * log_odds)[()]


def _damp(slope: Array, w: Array) -> Array:
    """slope * exp(-w); an infinite slope stays infinite, as W grows only with the logarithm of the cost."""
    return np.where(np.isinf(slope), slope, slope * np.exp(-w))[()]
