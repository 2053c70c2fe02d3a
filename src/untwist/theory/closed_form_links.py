"""Links of the alpha-loss, the square loss and Matusita's loss in closed form.

Each class says with ``closed_form_for=`` for which loss it is, and ``CanonicalLink(loss)`` or ``ClippedLink(loss)`` is
then an instance of it. So nobody has to name these classes, which answer as their parents do, faster and to more
digits. Importing any module of `untwist.theory` imports this one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit

from untwist import _core
from untwist.arguments import Array, check_numbers, check_probabilities
from untwist.theory.links import CanonicalLink, ClippedLink
from untwist.theory.losses import AlphaLoss, MatusitaLoss, SquareLoss, tilted_logit
from untwist.theory.numerics import integral_from_zero

__all__: list[str] = []


class _AlphaLink(ABC):
    """What both links of the alpha-loss share: a compiled map from the score to s = logit of the clean posterior.

    The Bayes risk is even in alpha, so link, weights and margin loss are those of a = |alpha|; only the clean posterior
    is complemented for a negative alpha.
    """

    # This is an AlphaLoss, but a mixin cannot give an attribute a narrower type than its sibling class does.
    loss: Any

    def _check(self) -> None:
        if self.loss.alpha == 0:
            raise ValueError("alpha must not be 0 for a link: the loss is infinite everywhere")
        self._a = abs(self.loss.alpha)
        self._r = self.loss.exponent

    @abstractmethod
    def _logit(self, z: Array) -> Array:
        """The log-odds s of the clean posterior of |alpha|."""

    @abstractmethod
    def _score_of_logit(self, s: Array) -> Array:
        """The score at those log-odds: the inverse of ``_logit``."""

    def link(self, u: ArrayLike) -> Array:
        """The score at s = a * logit(u)."""
        return self._score_of_logit(tilted_logit(check_probabilities("u", u), self._a))

    def score(self, u: ArrayLike) -> Array:
        """The score at s = logit(u), -logit(u) for alpha < 0."""
        return self._score_of_logit(self._sign * logit(check_probabilities("u", u)))

    def score_derivative(self, u: ArrayLike) -> Array:
        """dz/ds * ds/du."""
        u = check_probabilities("u", u)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            score_per_logit = np.exp(-self._log_logit_derivative(np.abs(logit(u))))
            return np.asarray(self._sign * score_per_logit / (u * (1.0 - u)))[()]

    @property
    def _sign(self) -> float:
        return math.copysign(1.0, self.loss.alpha)

    @property
    def clip(self) -> float:
        """c = a / (a - 1) for a > 1, infinite below."""
        return float(self.loss.conjugate) if self._a > 1 else math.inf

    def tilted(self, z: ArrayLike) -> Array:
        """sigma(s), or sigma(-s) for alpha < 0."""
        return np.asarray(expit(self._sign * self._logit(check_numbers("z", z))))[()]

    def inverse(self, z: ArrayLike) -> Array:
        """sigma(s / a): 1/2 inside the clip at alpha = +-inf, exactly 0 and 1 from the clip on."""
        return np.asarray(expit(self._twisted_logit(self._logit(check_numbers("z", z)))))[()]

    def _twisted_logit(self, s: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(s), s, s / self._a)

    def inverse_derivative(self, z: ArrayLike) -> Array:
        """v * (1 - v) / a * ds/dz in logarithms, as near the clip one factor vanishes and the other explodes."""
        s = np.abs(self._logit(check_numbers("z", z)))
        if math.isinf(self._a):
            return np.where(np.isnan(s), np.nan, 0.0)[()]
        v = self._twisted_logit(s)
        with np.errstate(invalid="ignore"):
            log_slope = log_expit(v) + log_expit(-v) - math.log(self._a) + self._log_logit_derivative(s)
        return np.where(np.isposinf(s), 0.0, np.exp(log_slope))[()]

    @abstractmethod
    def _log_logit_derivative(self, s: Array) -> Array:
        """log(ds/dz) at |s|."""


class _CanonicalAlphaLink(_AlphaLink, CanonicalLink, closed_form_for=AlphaLoss):
    """link = (sigma(s)**r - sigma(-s)**r) / r at s = a * logit(v); the inverse by Newton steps in compiled code."""

    def _logit(self, z: Array) -> Array:
        out = np.empty(z.size)
        _core.exact_logit(np.ascontiguousarray(z).reshape(-1), self._a, out)
        return out.reshape(z.shape)

    def _score_of_logit(self, s: Array) -> Array:
        """sigma(|s|)**r * (1 - exp(-r*|s|)) / r with the sign of s, which does not cancel at 0."""
        size = np.abs(s)
        if self._r:
            with np.errstate(over="ignore", invalid="ignore"):
                size = np.exp(self._r * log_expit(size)) * -np.expm1(-self._r * size) / self._r
        return np.asarray(np.copysign(size, s))[()]

    def margin_loss(self, margin: ArrayLike) -> Array:
        """l_1 at sigma(s(|m|)), plus max(0, -m)."""
        margin = check_numbers("margin", margin)
        log_t = log_expit(self._logit(np.abs(margin)))
        cost = -np.expm1(self._r * log_t) / self._r if self._r else -log_t
        return np.asarray(cost + np.maximum(-margin, 0.0))[()]

    def _log_logit_derivative(self, s: Array) -> Array:
        log_p, log_q = log_expit(s), log_expit(-s)
        return np.asarray(-np.logaddexp(self._r * log_p + log_q, self._r * log_q + log_p))

    @property
    def clip_curvature(self) -> float:
        """Infinite above alpha = 2, 1/2 at 2, 0 below."""
        return 0.0 if self._a < 2 else 0.5 if self._a == 2 else math.inf


class _ClippedAlphaLink(_AlphaLink, ClippedLink, closed_form_for=AlphaLoss):
    """The closed form (Lemma "lemPILalphaloss"): tail(z) = max(0, 1 - |z|/c)**c / 2 = exp(-T)/2, sigma(-|s|) = tail."""

    @property
    def _log_unit(self) -> float:
        """Below alpha = 1 nothing is clipped, and the paper's recipe measures the score in units of 2**r."""
        return self._r * math.log(2.0) if self._a < 1 else 0.0

    def _logit(self, z: Array) -> Array:
        out = np.empty(z.size)
        _core.clipped_logit(np.ascontiguousarray(z).reshape(-1), self._a, out)
        return out.reshape(z.shape)

    def tilted(self, z: ArrayLike) -> Array:
        """tail(z) below 0, 1 - tail(-z) above; turned over for alpha < 0."""
        z = check_numbers("z", z)
        out = np.empty(z.size)
        _core.clipped_posterior(np.ascontiguousarray(self._sign * z).reshape(-1), self._a, out)
        return out.reshape(z.shape)[()]

    def _score_of_logit(self, s: Array) -> Array:
        """(1 - exp(-r*T)) / r with T = -log(2 * sigma(-|s|)), in units of 2**r below alpha = 1."""
        size = np.abs(s)
        decay = size + np.log1p(0.5 * np.expm1(-size))
        with np.errstate(over="ignore", invalid="ignore"):
            if self._r:
                decay = -np.expm1(-self._r * decay) / self._r
            return np.asarray(np.copysign(decay * np.exp(-self._log_unit), s))[()]

    def margin_loss(self, margin: ArrayLike) -> Array:
        """Integral of 1 / (x**(1/a) + (2-x)**(1/a)) from 0 to 2*tail(|m|), in units of 2**r; plus max(0, -m)."""
        margin = check_numbers("margin", margin)
        power = 1.0 / self._a
        tail = expit(-np.abs(self._logit(margin)))
        area = integral_from_zero(lambda x: 1.0 / (x**power + (2.0 - x) ** power), 2.0 * tail)
        with np.errstate(over="ignore"):
            return np.asarray(area * np.exp(-self._log_unit) + np.maximum(-margin, 0.0))[()]

    def _log_logit_derivative(self, s: Array) -> Array:
        return np.asarray(self._log_unit - log_expit(s) - self._r * (math.log(2.0) + log_expit(-s)))

    @property
    def clip_curvature(self) -> float:
        """Infinite above alpha = 2, 2**-1.5 at 2, 0 below."""
        return 0.0 if self._a < 2 else 2.0**-1.5 if self._a == 2 else math.inf


class _CanonicalSquareLink(CanonicalLink, closed_form_for=SquareLoss):
    """link = 2*v - 1."""

    def tilted(self, z: ArrayLike) -> Array:
        """(1 + z) / 2 within [0, 1]."""
        return np.clip(0.5 + 0.5 * check_numbers("z", z), 0.0, 1.0)[()]


class _CanonicalMatusitaLink(CanonicalLink, closed_form_for=MatusitaLoss):
    """link = (2*v - 1) / sqrt(v * (1 - v)) = 2 * sinh(logit(v) / 2)."""

    def tilted(self, z: ArrayLike) -> Array:
        """sigma(2 * asinh(z / 2))."""
        return np.asarray(expit(2.0 * np.arcsinh(0.5 * check_numbers("z", z))))[()]
