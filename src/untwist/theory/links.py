r"""Links between scores and posteriors (Sections 5 and "Pseudo-Inverse Link" of the paper).

A booster works with a real score z = H(x). A link attaches to it two posteriors: ``inverse(z)`` estimates the twisted
one, the one that the training labels follow, and ``tilted(z)`` the clean one, its Bayes tilted estimate under the
loss. Both come from one increasing function, ``score(u)``, the score at which the clean posterior is u:

- canonical (exact): ``score(u) = l_{-1}(u) - l_1(u)``;
- clipped (the paper's pseudo-inverse link): one partial loss on each side of 1/2, rescaled to meet the canonical one
  at posteriors 0, 1/2 and 1;
- logit, of the alpha-loss: ``score(u) = logit(u)``.

A link also is a margin loss: boosting weighs an example of margin m by ``weights(m) = inverse(-m)`` and thereby
descends ``margin_loss(m)``, the integral of the weights from m on. For the canonical link that is the surrogate F of
the paper, for the clipped link the loss that PILBoost really descends. Links that are named after the logit have other
weights, the slopes of losses of their own.

Both links work for any loss that meets their conditions. For some losses `untwist.theory.closed_form_links` has closed
forms, which take the place of the general recipe.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit

from untwist.arguments import Array, check_numbers, check_probabilities
from untwist.theory.losses import AlphaLoss, Loss, MatusitaLoss
from untwist.theory.numerics import LOGIT_OF_ONE, LOGIT_OF_ZERO, bisect, integral_from_zero, slope
from untwist.theory.properties import PropertyCheck, extremes, monotone, symmetric

__all__ = ["CanonicalLink", "ClippedLink", "HalfLogitLink", "Link", "LogitLink", "default_step_size"]

AnyLink = TypeVar("AnyLink", bound="Link")


class Link(ABC):
    """An increasing map between scores and posteriors, for a loss.

    ``CanonicalLink(loss)`` and ``ClippedLink(loss)`` use closed forms where one is known for the loss (a subclass
    declared with ``closed_form_for=``); ``numerical(loss)`` never does.

    Parameters
    ----------
    loss : Loss
        The loss that the posteriors belong to. A ValueError says which of the link's conditions it does not meet.
    """

    _closed_forms: ClassVar[dict[type[Loss], type[Link]]] = {}
    loss: Loss

    def __init_subclass__(cls, closed_form_for: type[Loss] | None = None) -> None:
        if closed_form_for is None:
            cls._closed_forms = {}
        else:
            cls._closed_forms[closed_form_for] = cls

    # The loss is optional here because skops makes an object without its arguments and then gives it its attributes.
    def __new__(cls, loss: Loss | None = None) -> Self:  # noqa: D102 - a magic method like those D105 spares
        closed = [cls._closed_forms[kind] for kind in type(loss).__mro__ if kind in cls._closed_forms]
        return object.__new__(closed[0] if closed and issubclass(closed[0], cls) else cls)

    def __init__(self, loss: Loss) -> None:
        if not isinstance(loss, Loss):
            raise ValueError(f"loss must be a Loss, got {loss!r}")
        self.loss = loss
        self._check()

    @classmethod
    def numerical(cls, loss: Loss) -> Self:
        """Return the link of `loss` from its partial losses alone, without any closed form.

        Parameters
        ----------
        loss : Loss
            The loss that the posteriors belong to.

        Returns
        -------
        Link
            Of exactly this class.
        """
        return _restore(cls, loss)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.loss)

    _required_properties: ClassVar[dict[str, Callable[[Loss], PropertyCheck]]] = {"M": monotone}

    def _check(self) -> None:
        """Raise ValueError if the loss does not meet the conditions of this link: both posteriors must rise with z."""
        for name, check in self._required_properties.items():
            found = check(self.loss)
            if not found:
                near = "" if found.witness is None else f" (near u = {found.witness:.4g})"
                raise ValueError(
                    f"loss must have property {name} for this link, but for {self.loss!r} {found.reason}{near}"
                )
        u = np.linspace(0.0, 1.0, 1001)
        eta = self.loss.tilted_inverse(u)
        score_rises = (np.diff(self.score(u)) > 0).all()
        twisted_rises = (np.diff(eta[np.isfinite(eta)]) > -1e-9).all()
        if not (score_rises and twisted_rises):
            raise ValueError(f"loss must have an invertible tilted estimate and link, which {self.loss!r} has not")

    @abstractmethod
    def score(self, u: ArrayLike) -> Array:
        """The score at which the clean posterior is u.

        Parameters
        ----------
        u : array_like
            Posteriors in [0, 1].

        Returns
        -------
        ndarray
            One score per posterior, possibly infinite.
        """

    @abstractmethod
    def score_derivative(self, u: ArrayLike) -> Array:
        """Derivative of ``score``.

        Parameters
        ----------
        u : array_like
            Posteriors in [0, 1].

        Returns
        -------
        ndarray
            One slope per posterior.
        """

    @property
    def clip(self) -> float:
        """The score from which on the posterior is 1, to rounding (possibly infinite); minus it, 0."""
        return float(self.score(1.0))

    def tilted(self, z: ArrayLike) -> Array:
        """Clean posterior at score z: the u with ``score(u) = z``.

        Parameters
        ----------
        z : array_like
            Scores.

        Returns
        -------
        ndarray
            One posterior per score: 0 or 1 beyond the clip, NaN for NaN.
        """

        def solve(z: Array) -> Array:
            low = np.full(z.shape, LOGIT_OF_ZERO)
            high = np.full(z.shape, LOGIT_OF_ONE)
            log_odds = bisect(lambda x: np.asarray(self.score(expit(x)) > z), low, high)
            return np.where(z >= self.score(1.0), 1.0, np.where(z <= self.score(0.0), 0.0, expit(log_odds)))

        return _apply_where_known(solve, check_numbers("z", z))

    def link(self, u: ArrayLike) -> Array:
        """Score of the twisted posterior u.

        Parameters
        ----------
        u : array_like
            Posteriors in [0, 1].

        Returns
        -------
        ndarray
            One score per posterior, possibly infinite.
        """
        return self.score(self.loss.tilted_estimate(u))

    def inverse(self, z: ArrayLike) -> Array:
        """Twisted posterior at score z.

        Parameters
        ----------
        z : array_like
            Scores.

        Returns
        -------
        ndarray
            One posterior per score: 0 or 1 beyond the clip, to which it may jump, NaN for NaN.
        """

        def invert(z: Array) -> Array:
            u = self.tilted(z)
            return np.where((u <= 0) | (u >= 1), u, self.loss.tilted_inverse(u))

        return _apply_where_known(invert, check_numbers("z", z))

    def inverse_derivative(self, z: ArrayLike) -> Array:
        """Slope of ``inverse`` at score z.

        Parameters
        ----------
        z : array_like
            Scores.

        Returns
        -------
        ndarray
            One slope per score: 0 beyond the clip, NaN for NaN.
        """

        def differentiate(z: Array) -> Array:
            u = self.tilted(z)
            with np.errstate(divide="ignore", invalid="ignore"):
                inside = slope(self.loss.tilted_inverse, u) / self.score_derivative(u)
            return np.where((u <= 0) | (u >= 1), 0.0, inside)

        return _apply_where_known(differentiate, check_numbers("z", z))

    def weights(self, margin: ArrayLike) -> Array:
        """Boosting weight of an example: ``inverse(-margin)`` (Step 2.1).

        Parameters
        ----------
        margin : array_like
            Margins y*H(x).

        Returns
        -------
        ndarray
            One weight in [0, 1] per margin.
        """
        return self.inverse(-check_numbers("margin", margin))

    @abstractmethod
    def margin_loss(self, margin: ArrayLike) -> Array:
        """Integral of ``weights`` from a margin to infinity: convex, decreasing, with slope ``-weights(margin)``.

        Parameters
        ----------
        margin : array_like
            Margins y*H(x).

        Returns
        -------
        ndarray
            One loss per margin.
        """

    def curvature(self, margin: ArrayLike) -> Array:
        """Second derivative of ``margin_loss``.

        Parameters
        ----------
        margin : array_like
            Margins y*H(x).

        Returns
        -------
        ndarray
            One curvature per margin.
        """
        return self.inverse_derivative(-check_numbers("margin", margin))

    @property
    def clip_curvature(self) -> float:
        """Limit of ``curvature`` at the clip from inside; infinite where the weights leave 0 vertically."""
        near, nearer = (float(self.curvature(-self.score(expit(x)))) for x in (-18.0, -26.0))
        return math.inf if nearer > 1.5 * near else nearer

    def largest_curvature(self, low: ArrayLike, high: ArrayLike) -> float:
        """Find the largest curvature over intervals [low_i, high_i] of margins.

        It is attained at an end, at a peak inside, or at the clip; the peaks are found once per link.

        Parameters
        ----------
        low, high : array_like
            The ends of the intervals.

        Returns
        -------
        float
            The curvature, possibly infinite.
        """
        low = np.atleast_1d(check_numbers("low", low))
        high = np.atleast_1d(check_numbers("high", high))
        ends = np.concatenate([low, high])
        largest = float(np.max(self.curvature(ends), initial=0.0))
        inside = (peak for margin, peak in self._peaks if ((low <= margin) & (margin <= high)).any())
        return max(largest, *inside, 0.0)

    @cached_property
    def _peaks(self) -> list[tuple[float, float]]:
        """The margins where the curvature has a local maximum, the clip included, with the curvature there."""
        peaks = [(side * self.clip, self.clip_curvature) for side in (-1.0, 1.0) if math.isfinite(self.clip)]
        log_odds = np.linspace(-26.0, 26.0, 5201)
        curvature = self.curvature(self.score(expit(log_odds)))
        inner = np.flatnonzero((curvature[1:-1] > curvature[:-2]) & (curvature[1:-1] >= curvature[2:])) + 1
        for centre in log_odds[inner]:
            near = self.score(expit(np.linspace(centre - 0.01, centre + 0.01, 401)))
            values = self.curvature(near)
            peaks.append((float(near[values.argmax()]), float(values.max())))
        return peaks

    def __repr__(self) -> str:
        public = next(kind.__name__ for kind in type(self).__mro__ if not kind.__name__.startswith("_"))
        return f"{public}({self.loss!r})"


class CanonicalLink(Link):
    """The canonical link of a loss, link(v) = (-L_)'(v) = l_{-1}(t(v)) - l_1(t(v)), and its exact inverse.

    Its ``margin_loss`` is the surrogate F(z) = (-L_)*(-z) of the paper (eq. "defsur"), which at v = inverse(-z) is
    L_(v) - z*v = l_{-1}(t(v)): no cancellation.

    Parameters
    ----------
    loss : Loss
        A loss with property M and a tilted estimate that rises.

    Examples
    --------
    >>> from untwist.theory.losses import AlphaLoss
    >>> CanonicalLink(AlphaLoss(1.0)).inverse([-1.0, 0.0, 1.0]).round(4)  # the logistic function
    array([0.2689, 0.5   , 0.7311])
    """

    def score(self, u: ArrayLike) -> Array:
        """l_{-1}(u) - l_1(u)."""
        return self.loss.partial_neg(u) - self.loss.partial_pos(u)

    def score_derivative(self, u: ArrayLike) -> Array:
        """l_{-1}'(u) - l_1'(u)."""
        return self.loss.partial_neg_derivative(u) - self.loss.partial_pos_derivative(u)

    def margin_loss(self, margin: ArrayLike) -> Array:
        """The surrogate F; its derivative is ``-weights``, its second derivative ``curvature``."""

        def surrogate(margin: Array) -> Array:
            if self._symmetric:
                # A symmetric loss has F(-m) = F(m) + m, and close to 0 the posterior has all its digits.
                return self.loss.partial_neg(self.tilted(-np.abs(margin))) + np.maximum(-margin, 0.0)
            beyond = np.maximum(-margin - self.clip, 0.0) if math.isfinite(self.clip) else 0.0
            return self.loss.partial_neg(self.tilted(-margin)) + beyond

        return _apply_where_known(surrogate, check_numbers("margin", margin))

    @cached_property
    def _symmetric(self) -> bool:
        return bool(symmetric(self.loss))


class ClippedLink(Link):
    """The paper's clipped inverse link (Lemma "lemINVERTLP") of a loss with properties M, S and E.

    One partial loss on each side: ``score(u) = a * (l_1(1/2) - l_1(u))`` for u <= 1/2, mirrored above, with
    ``a = l_1(0) / (l_1(0) - l_1(1/2))``, which is 1 where l_1(0) is infinite. Without S the pieces would not meet the
    canonical link at 1/2. Where t(u) rounds to 0 or 1, as for a large alpha, ``inverse(link(u))`` cannot bring u back.

    Parameters
    ----------
    loss : Loss
        A loss with properties M, S and E and a tilted estimate that rises.

    Examples
    --------
    >>> from untwist.theory.losses import AlphaLoss
    >>> ClippedLink(AlphaLoss(2.0)).inverse([-2.0, -1.0, 0.0, 1.0, 2.0]).round(4)
    array([0.    , 0.2743, 0.5   , 0.7257, 1.    ])
    """

    _required_properties: ClassVar[dict[str, Callable[[Loss], PropertyCheck]]] = {
        "M": monotone,
        "S": symmetric,
        "E": extremes,
    }

    @property
    def _stretch(self) -> float:
        """The factor a that brings the clipped score of 0 to -l_1(0), the canonical one."""
        end = float(self.loss.partial_pos(0.0))
        middle = float(self.loss.partial_pos(0.5))
        return 1.0 if math.isinf(end) else end / (end - middle)

    def score(self, u: ArrayLike) -> Array:
        """a * (l_1(1/2) - l_1(u)) up to 1/2, a * (l_{-1}(u) - l_{-1}(1/2)) above."""
        u = check_probabilities("u", u)
        below = -self.loss.partial_pos(np.minimum(u, 0.5))
        above = self.loss.partial_neg(np.maximum(u, 0.5))
        rise = np.where(u <= 0.5, below, above)
        middle = self.loss.partial_pos(0.5)
        return np.asarray(self._stretch * (rise + np.where(u <= 0.5, middle, -middle)))[()]

    def score_derivative(self, u: ArrayLike) -> Array:
        """-a * l_1'(u) up to 1/2, a * l_{-1}'(u) above."""
        u = check_probabilities("u", u)
        return self._stretch * np.where(
            u <= 0.5, -self.loss.partial_pos_derivative(u), self.loss.partial_neg_derivative(u)
        )

    def margin_loss(self, margin: ArrayLike) -> Array:
        """Integral of a * -l_1' * l_{-1}' / (l_{-1}' - l_1') over u from 0 to t(-|m|); plus max(0, -m).

        That is the twisted posterior times the slope of the score: over u the range is finite.
        """

        def density(u: Array) -> Array:
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                rise = 1.0 / self.loss.partial_neg_derivative(u) - 1.0 / self.loss.partial_pos_derivative(u)
                return np.where(u > 0, 1.0 / rise, 0.0)

        def area(margin: Array) -> Array:
            size = integral_from_zero(density, self.tilted(-np.abs(margin)))
            return self._stretch * size + np.maximum(-margin, 0.0)

        return _apply_where_known(area, check_numbers("margin", margin))


class HalfLogitLink(Link):
    """The link logit(u) / 2, under which Matusita's loss is the exponential loss exp(-m) of AdaBoost.

    Not canonical: the weights exp(-m) are the slope of that margin loss, not a posterior.

    Parameters
    ----------
    loss : MatusitaLoss
        The loss, or its subclass ExponentialLoss.

    Examples
    --------
    >>> from untwist.theory.losses import ExponentialLoss
    >>> HalfLogitLink(ExponentialLoss()).weights([-1.0, 0.0, 1.0]).round(4)
    array([2.7183, 1.    , 0.3679])
    """

    def _check(self) -> None:
        if not isinstance(self.loss, MatusitaLoss):
            raise ValueError(f"loss must be ExponentialLoss() for the half-logit link, got {self.loss!r}")

    def score(self, u: ArrayLike) -> Array:
        """logit(u) / 2."""
        return np.asarray(0.5 * logit(check_probabilities("u", u)))[()]

    def score_derivative(self, u: ArrayLike) -> Array:
        """1 / (2 * u * (1 - u))."""
        u = check_probabilities("u", u)
        with np.errstate(divide="ignore"):
            return 0.5 / (u * (1.0 - u))

    def tilted(self, z: ArrayLike) -> Array:
        """sigma(2 * z)."""
        return np.asarray(expit(2.0 * check_numbers("z", z)))[()]

    def weights(self, margin: ArrayLike) -> Array:
        """exp(-margin)."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-check_numbers("margin", margin)))[()]

    margin_loss = weights
    curvature = weights


class LogitLink(Link):
    """The link logit(u), under which scores are log-odds, of the alpha-loss for an alpha from 1 on.

    This is how neural networks use that loss, by the name of generalised cross entropy. It is not canonical: the
    weights are the slope of the margin loss l_1(sigma(m)), which is not convex above alpha = 1. They fall off for large
    margins of either sign, so that labels which contradict the scores hardly count.

    Parameters
    ----------
    loss : AlphaLoss
        The loss; its alpha is finite and at least 1.

    Examples
    --------
    >>> from untwist.theory.losses import AlphaLoss
    >>> LogitLink(AlphaLoss(4.0)).weights([-8.0, -1.0, 0.0, 1.0, 8.0]).round(4)
    array([0.0025, 0.273 , 0.2973, 0.2126, 0.0003])
    """

    def _check(self) -> None:
        if not (isinstance(self.loss, AlphaLoss) and 1.0 <= self.loss.alpha < math.inf):
            raise ValueError(f"loss must be AlphaLoss(alpha) with a finite alpha >= 1, got {self.loss!r}")
        self._alpha = float(self.loss.alpha)
        self._r = self.loss.exponent

    def score(self, u: ArrayLike) -> Array:
        """logit(u)."""
        return np.asarray(logit(check_probabilities("u", u)))[()]

    def score_derivative(self, u: ArrayLike) -> Array:
        """1 / (u * (1 - u))."""
        u = check_probabilities("u", u)
        with np.errstate(divide="ignore"):
            return 1.0 / (u * (1.0 - u))

    def tilted(self, z: ArrayLike) -> Array:
        """sigma(z)."""
        return np.asarray(expit(check_numbers("z", z)))[()]

    def inverse(self, z: ArrayLike) -> Array:
        """sigma(z / alpha)."""
        return np.asarray(expit(check_numbers("z", z) / self._alpha))[()]

    def inverse_derivative(self, z: ArrayLike) -> Array:
        """v * (1 - v) / alpha."""
        v = check_numbers("z", z) / self._alpha
        return np.asarray(expit(v) * expit(-v) / self._alpha)[()]

    def weights(self, margin: ArrayLike) -> Array:
        """p^r * (1 - p) with p = sigma(m) and r = 1 - 1/alpha."""
        margin = check_numbers("margin", margin)
        return np.asarray(np.exp(self._r * log_expit(margin)) * expit(-margin))[()]

    def margin_loss(self, margin: ArrayLike) -> Array:
        """l_1(sigma(m)) = (1 - p^r) / r, -log p at alpha = 1."""
        log_p = log_expit(check_numbers("margin", margin))
        r = self._r
        return np.asarray(-np.expm1(r * log_p) / r if r else -log_p)[()]

    def curvature(self, margin: ArrayLike) -> Array:
        """p^r * (1 - p) * (p - r * (1 - p)), which is negative where p < r / (1 + r)."""
        q = expit(-check_numbers("margin", margin))
        return np.asarray(self.weights(margin) * ((1.0 - q) - self._r * q))[()]


#: The links of the alpha-loss by the names that a setting has for them.
LINKS: dict[str, type[Link]] = {"clipped": ClippedLink, "exact": CanonicalLink, "logit": LogitLink}


def find_link_name(link: Link) -> str:
    """Return the name that a setting has for a link of the alpha-loss.

    Parameters
    ----------
    link : Link
        The link.

    Returns
    -------
    str

    Examples
    --------
    >>> from untwist.theory.losses import AlphaLoss
    >>> find_link_name(ClippedLink(AlphaLoss(2.0)))
    'clipped'
    """
    return next(name for name, kind in LINKS.items() if isinstance(link, kind))


def _restore(kind: type[AnyLink], loss: Loss) -> AnyLink:
    """Make a link of exactly this class, past the choice of a closed form."""
    link = object.__new__(kind)
    # This is what `kind(loss)` does after choosing the class.
    link.__init__(loss)  # type: ignore[misc]
    return link


def _apply_where_known(function: Callable[[Array], Array], z: Array) -> Array:
    """Return `function(z)`, NaN where z is NaN."""
    known = ~np.isnan(z)
    return np.where(known, function(np.where(known, z, 0.0)), np.nan)[()]


def default_step_size(link: Link) -> float:
    """Return the step a_f for which boosting is sound by default: ``2 * min(alpha, c)`` for the alpha-loss.

    That is `2*alpha` up to alpha = 2 (below 1 too, where c is negative) and `2*c` above, where 1/F''(0) would be too
    large because the curvature peaks at the clip; 2*alpha for every alpha where scores are log-odds. For any other
    loss 1 over the curvature at margin 0, the step that (O2) asks for with M = 1 where the curvature peaks there.

    Parameters
    ----------
    link : Link
        The link to boost with.

    Returns
    -------
    float
        The step size.

    Examples
    --------
    >>> from untwist.theory.losses import AlphaLoss, LogLoss
    >>> [default_step_size(ClippedLink(AlphaLoss(alpha))) for alpha in (1.1, 2.0, 4.0, float("inf"))]
    [2.2, 4.0, 2.6666666666666665, 2.0]
    """
    if isinstance(link.loss, AlphaLoss):
        a = abs(link.loss.alpha)
        if isinstance(link, LogitLink):
            return 2.0 * a
        return 2.0 * a if a <= 2 else 2.0 * link.loss.conjugate
    bend = float(link.curvature(0.0))
    if not bend > 1e-6:
        raise ValueError(
            f"step_size: there is no default for {link!r}, whose margin loss is straight at 0; give a number"
        )
    return 1.0 / bend
