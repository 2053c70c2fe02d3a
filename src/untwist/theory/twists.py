r"""Twists of the posterior and how to undo them (Section 4 of the paper: Lemma "lemPointwise", both theorems).

A twist maps the clean posterior eta_clean(x) = P(Y = 1 | x) to the twisted one that the training labels follow. The
alpha-loss undoes it where its tilted estimate ``tilt(eta_twisted, alpha)`` equals eta_clean: at one x by
`alpha_star`, over a distribution of x as well as one alpha can by `best_fixed_alpha`.

A distribution over x is an array of points, one entry of eta_clean and eta_twisted each, with optional weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import entr, expit, logit

from untwist.arguments import (
    Array,
    check_fraction,
    check_numbers,
    check_positive,
    check_probabilities,
    check_real,
    normalise_weights,
)
from untwist.theory.losses import tilt, tilted_logit

__all__ = [
    "ClassConditionalTwist",
    "ConstructiveAlpha",
    "SymmetricNoise",
    "alpha_star",
    "best_fixed_alpha",
    "binary_entropy",
    "constructive_alpha",
    "cross_entropy",
    "cross_entropy_gain",
    "cross_entropy_slope",
    "entropy",
    "is_bayes_blunting",
    "kl_divergence",
]


# ---- twists: maps of posteriors. Any function of eta is one; these are the common ones, with their inverse. ----


@dataclass(frozen=True, kw_only=True)
class ClassConditionalTwist:
    """What it does to a posterior that labels flip, each class at its own rate.

    ``eta_twisted = (1 - rate_neg - rate_pos) * eta_clean + rate_neg``. The agent that flips labels of a sample at these
    rates is `untwist.twisters.ClassConditionalNoise`.

    Parameters
    ----------
    rate_neg : float
        The probability that a label -1 flips.
    rate_pos : float
        The probability that a label +1 flips.

    Examples
    --------
    >>> float(ClassConditionalTwist(rate_neg=0.1, rate_pos=0.2)(0.5))
    0.45
    """

    rate_neg: float
    rate_pos: float

    def __post_init__(self) -> None:
        check_fraction("rate_neg", self.rate_neg)
        check_fraction("rate_pos", self.rate_pos)

    def __call__(self, eta_clean: ArrayLike) -> Array:
        """Twist posteriors.

        Parameters
        ----------
        eta_clean : array_like
            Clean posteriors in [0, 1].

        Returns
        -------
        ndarray
            The twisted posteriors.
        """
        eta = check_probabilities("eta_clean", eta_clean)
        return np.asarray((1.0 - self.rate_pos) * eta + self.rate_neg * (1.0 - eta))[()]

    def inverse(self, eta_twisted: ArrayLike) -> Array:
        """Undo the twist.

        Parameters
        ----------
        eta_twisted : array_like
            Twisted posteriors in [0, 1].

        Returns
        -------
        ndarray
            The clean posteriors; 0 or 1, the nearest, where no clean posterior twists to `eta_twisted`.
        """
        keep = 1.0 - self.rate_pos - self.rate_neg
        if keep == 0:
            raise ValueError(f"rates {self.rate_pos} and {self.rate_neg} add up to 1: the labels say nothing about x")
        return np.clip((check_probabilities("eta_twisted", eta_twisted) - self.rate_neg) / keep, 0.0, 1.0)[()]


@dataclass(frozen=True)
class SymmetricNoise(ClassConditionalTwist):
    """The twist of labels that all flip at one rate p: ``eta_twisted = eta_clean*(1-p) + (1-eta_clean)*p``.

    Bayes blunting for p <= 1/2 (Lemma "lemSymLabFlip").

    Parameters
    ----------
    rate : float
        The probability p that a label flips.

    Examples
    --------
    >>> float(SymmetricNoise(0.3)(1.0))
    0.7
    """

    def __init__(self, rate: float) -> None:
        rate = check_fraction("rate", rate)
        object.__setattr__(self, "rate_neg", rate)
        object.__setattr__(self, "rate_pos", rate)

    def __repr__(self) -> str:
        return f"SymmetricNoise({self.rate_neg!r})"


def is_bayes_blunting(eta_clean: ArrayLike, eta_twisted: ArrayLike, *, strict: bool = False) -> NDArray[np.bool_]:
    """Tell whether the twist only takes confidence away, at each x (Definition "def:Bayesblunting").

    That is ``eta_clean <= eta_twisted <= 1/2`` or ``eta_clean >= eta_twisted >= 1/2``.

    Parameters
    ----------
    eta_clean, eta_twisted : array_like
        Clean and twisted posteriors in [0, 1].
    strict : bool, default False
        Whether ``eta_clean`` must differ from ``eta_twisted``.

    Returns
    -------
    ndarray of bool
        One answer per point.
    """
    clean = check_probabilities("eta_clean", eta_clean)
    twisted = check_probabilities("eta_twisted", eta_twisted)
    blunt = ((clean <= twisted) & (twisted <= 0.5)) | ((clean >= twisted) & (twisted >= 0.5))
    return np.asarray(blunt & (clean != twisted) if strict else blunt)[()]


# ---- one alpha per x ----


def alpha_star(eta_clean: ArrayLike, eta_twisted: ArrayLike) -> Array:
    """Return the alpha whose tilted estimate turns eta_twisted into eta_clean, logit(eta_clean) / logit(eta_twisted).

    Lemma "lemPointwise" (c, d): at least 1 for a Bayes blunting twist, negative across 1/2. Where the quotient is
    undefined or the answer not unique:

    - no twist, eta_clean = eta_twisted: 1;
    - eta_twisted = 1/2 otherwise: +inf, whose estimate there is all of [0, 1];
    - eta_clean = 1/2, or eta_twisted 0 or 1 and eta_clean inside: 0, whose estimate is all of [0, 1];
    - the two at opposite extremes: -1 (any negative alpha does it).

    Parameters
    ----------
    eta_clean, eta_twisted : array_like
        Clean and twisted posteriors in [0, 1].

    Returns
    -------
    ndarray
        One alpha per point.

    Examples
    --------
    >>> alpha_star([0.1, 0.3, 0.3, 0.5, 0.9], [0.3, 0.1, 0.7, 0.2, 0.5]).round(4)
    array([ 2.5932,  0.3856, -1.    ,  0.    ,     inf])
    """
    clean, twisted = _broadcast(
        check_probabilities("eta_clean", eta_clean), check_probabilities("eta_twisted", eta_twisted)
    )
    odds_clean = logit(clean)
    odds_twisted = logit(twisted)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = odds_clean / odds_twisted
    opposite = np.isinf(odds_clean) & np.isinf(odds_twisted)
    cases = [clean == twisted, opposite, clean == 0.5, twisted == 0.5, np.isinf(odds_twisted)]
    return np.select(cases, [1.0, -1.0, 0.0, math.inf, 0.0], quotient)[()]


# ---- one alpha for all of X ----


def binary_entropy(u: ArrayLike) -> Array:
    """`H_b(u) = -u*log(u) - (1-u)*log(1-u)`, 0 at 0 and 1.

    Parameters
    ----------
    u : array_like
        Posteriors in [0, 1].

    Returns
    -------
    ndarray
        One entropy per posterior, in nats.
    """
    u = check_probabilities("u", u)
    return np.asarray(entr(u) + entr(1.0 - u))[()]


def entropy(eta_clean: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Averaged binary entropy H(eta_clean) (eq. "eq:avgcleanentropy").

    Parameters
    ----------
    eta_clean : array_like
        Clean posteriors in [0, 1], one per point.
    weights : array_like, optional
        How much each point counts; all the same by default.

    Returns
    -------
    float
        The entropy, in nats.
    """
    clean, _, weight = _check_points(eta_clean, 0.5, weights)
    return _mean(binary_entropy(clean), weight)


def cross_entropy(
    eta_clean: ArrayLike, eta_twisted: ArrayLike, alpha: ArrayLike, weights: ArrayLike | None = None
) -> float:
    """CE of the tilted estimate under the clean posterior (eq. "defCE").

    ``E[eta_clean * -log t + (1 - eta_clean) * -log(1 - t)]``, t = tilt(eta_twisted, alpha). With z = logit(eta_twisted)
    and Y drawn from eta_clean it is ``E[log(1 + exp(-alpha*Y*z))]``, convex in a fixed alpha. Where the estimate is a
    set, its midpoint 1/2 counts.

    Parameters
    ----------
    eta_clean, eta_twisted : array_like
        Clean and twisted posteriors in [0, 1], one each per point.
    alpha : array_like
        One number in [-inf, +inf], or one per point.
    weights : array_like, optional
        How much each point counts; all the same by default.

    Returns
    -------
    float
        The cross-entropy, in nats.
    """
    clean, twisted, weight = _check_points(eta_clean, eta_twisted, weights)
    return _mean(_cost(clean, tilted_logit(twisted, _check_alpha(alpha, clean.size))), weight)


def kl_divergence(
    eta_clean: ArrayLike, eta_twisted: ArrayLike, alpha: ArrayLike, weights: ArrayLike | None = None
) -> float:
    """KL divergence of the tilted estimate from the clean posterior, CE - H (eq. "eq:kldivalpha").

    Parameters
    ----------
    eta_clean, eta_twisted : array_like
        Clean and twisted posteriors in [0, 1], one each per point.
    alpha : array_like
        One number in [-inf, +inf], or one per point.
    weights : array_like, optional
        How much each point counts; all the same by default.

    Returns
    -------
    float
        The divergence, in nats.
    """
    clean, twisted, weight = _check_points(eta_clean, eta_twisted, weights)
    cost = _cost(clean, tilted_logit(twisted, _check_alpha(alpha, clean.size)))
    return _mean(np.maximum(0.0, cost - binary_entropy(clean)), weight)


def cross_entropy_gain(eta_clean: ArrayLike, eta_twisted: ArrayLike, alpha: ArrayLike) -> Array:
    """f_{alpha,eta_clean}(eta_twisted), what alpha gains over alpha = 1 at each x (eq. "eq:simpleexpressionf").

    Parameters
    ----------
    eta_clean, eta_twisted : array_like
        Clean and twisted posteriors in [0, 1], one each per point.
    alpha : array_like
        One number in [-inf, +inf], or one per point.

    Returns
    -------
    ndarray
        The gain in cross-entropy at each point, in nats.
    """
    clean = check_probabilities("eta_clean", eta_clean)
    twisted = check_probabilities("eta_twisted", eta_twisted)
    with np.errstate(invalid="ignore"):
        gain = _cost(clean, tilted_logit(twisted, 1.0)) - _cost(clean, tilted_logit(twisted, alpha))
    return np.asarray(gain)[()]


def cross_entropy_slope(
    eta_clean: ArrayLike, eta_twisted: ArrayLike, alpha: float, weights: ArrayLike | None = None
) -> float:
    """dCE/dalpha = E[z * (sigma(alpha*z) - eta_clean)], z = logit(eta_twisted) finite.

    Negative at alpha = 1 exactly when some fixed alpha_0 > 1 beats the proper choice, which every strictly Bayes
    blunting twist makes true (Theorem "thmALPHABLUNTING").

    Parameters
    ----------
    eta_clean, eta_twisted : array_like
        Clean and twisted posteriors in [0, 1], one each per point.
    alpha : float
        Where to find the slope.
    weights : array_like, optional
        How much each point counts; all the same by default.

    Returns
    -------
    float
        The slope of `cross_entropy`.
    """
    clean, twisted, weight = _check_points(eta_clean, eta_twisted, weights)
    z = logit(twisted)
    if np.isinf(z).any():
        raise ValueError("eta_twisted must lie strictly inside (0, 1) for the slope of the cross-entropy")
    return _mean(z * (tilt(twisted, check_real("alpha", alpha)) - clean), weight)


def best_fixed_alpha(eta_clean: ArrayLike, eta_twisted: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Find the one alpha in [-inf, +inf] that minimises `cross_entropy`: the alpha_0 of Theorem "thmALPHABLUNTING".

    A convex problem, a logistic regression with one parameter: one root of `cross_entropy_slope`. +-inf when the sign
    of Y*z is certain; 1 when every eta_twisted is 1/2, where alpha makes no difference. Points with eta_twisted 0 or 1
    cost infinitely much unless alpha = 0 or eta_clean agrees: they force 0, or only the sign of alpha.

    Parameters
    ----------
    eta_clean, eta_twisted : array_like
        Clean and twisted posteriors in [0, 1], one each per point.
    weights : array_like, optional
        How much each point counts; all the same by default.

    Returns
    -------
    float
        The alpha.

    Examples
    --------
    >>> eta = np.array([0.02, 0.2, 0.9])
    >>> round(best_fixed_alpha(eta, SymmetricNoise(0.3)(eta)), 3)
    3.486
    """
    clean, twisted, weight = _keep_weighted(*_check_points(eta_clean, eta_twisted, weights))
    certain = (twisted == 0) | (twisted == 1)
    agrees = clean[certain] == twisted[certain]
    opposes = clean[certain] == 1.0 - twisted[certain]
    sign = 1.0 if agrees.all() else -1.0 if opposes.all() else 0.0
    if certain.any() and sign == 0:
        return 0.0
    clean, z, weight = clean[~certain], logit(twisted[~certain]), weight[~certain]
    if not z.any():
        return sign if certain.any() else 1.0
    best = _find_logistic_root(clean, z, weight)
    if certain.any() and best * sign <= 0:
        # The infimum lies at 0 from that side, and 0 itself costs log(2) there.
        return sign * np.finfo(float).tiny
    return best


def _find_logistic_root(clean: Array, z: Array, weight: Array) -> float:
    """Find the alpha at which the slope of the cross-entropy is 0; +-inf where it keeps its sign."""
    # The root is sought for alpha * scale, so that its size does not matter.
    scale = float(np.abs(z).max())
    informative = z != 0
    z = z[informative] / scale
    clean = clean[informative]
    weight = weight[informative]

    def slope(a: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.sum(weight * z * (expit(a * z) - clean)))

    if np.array_equal(clean, z > 0):
        return math.inf
    if np.array_equal(clean, z < 0):
        return -math.inf
    low, high = -1.0, 1.0
    while slope(high) < 0:
        high *= 2.0
    while slope(low) > 0:
        low *= 2.0
    return float(brentq(slope, low, high, xtol=1e-300, rtol=1e-15, maxiter=500)) / scale


@dataclass(frozen=True)
class ConstructiveAlpha:
    """What `constructive_alpha` found: the alpha, the numbers that gave it, and the bound it guarantees.

    Attributes
    ----------
    alpha : float
        The constructive alpha*.
    edge : float
        e = E[Y * logit(eta_twisted)] / B within the support B.
    edge_used : float
        The edge that alpha was made from: the estimate, if one was given.
    coverage : float
        The weight of the support.
    edge_outside : float
        The edge lost outside the support.
    bound : float
        The upper bound on the cross-entropy.
    cross_entropy : float
        The cross-entropy at alpha.
    curvature : float
        The curvature of the bound at alpha: flat when alpha is large.
    """

    alpha: float
    edge: float
    edge_used: float
    coverage: float
    edge_outside: float
    bound: float
    cross_entropy: float
    curvature: float


def constructive_alpha(
    eta_clean: ArrayLike,
    eta_twisted: ArrayLike,
    B: float,
    weights: ArrayLike | None = None,
    *,
    estimated_edge: float | None = None,
) -> ConstructiveAlpha:
    """Find alpha* = logit(q) / B, q = (1 + e) / 2, by construction, and its bound (Theorems "thmALPHAGLOB", "...sup").

    With ``e = E[Y * logit(eta_twisted)] / B`` over the support where abs(logit(eta_twisted)) <= B, of weight p(B),
    ``CE(alpha*) <= p(B)*H_b(q) + (1-p(B)) * (e_out * log((1+|e|)/(1-|e|)) + (1-|e|)/(1+|e|))``. With an estimate e^ in
    place of e the bound grows by ``p(B) * (e^ - e)/2 * log((1+e^)/(1-e^))`` (twice the paper's constant, which is too
    small).

    Parameters
    ----------
    eta_clean, eta_twisted : array_like
        Clean and twisted posteriors in [0, 1], one each per point.
    B : float
        The largest size of a log-odds within the support; positive.
    weights : array_like, optional
        How much each point counts; all the same by default.
    estimated_edge : float, optional
        An estimate of e in [-1, 1], to use in place of e.

    Returns
    -------
    ConstructiveAlpha
        The alpha, the numbers that gave it, and its bound.

    Examples
    --------
    >>> found = constructive_alpha([0.05, 0.9], [0.3, 0.6], B=1.0)
    >>> round(found.alpha, 3), found.cross_entropy <= found.bound
    (1.218, True)
    """
    B = check_positive("B", B)
    clean, twisted, weight = _keep_weighted(*_check_points(eta_clean, eta_twisted, weights))
    z = logit(twisted)
    inside = np.abs(z) <= B
    coverage = min(1.0, float(weight[inside].sum()))
    if coverage == 0:
        raise ValueError(f"B must leave some support: no |logit(eta_twisted)| is <= {B}")
    within = weight[inside] / coverage
    edge = float(np.clip(np.sum(within * (2.0 * clean[inside] - 1.0) * z[inside]) / B, -1.0, 1.0))
    used = edge if estimated_edge is None else check_real("estimated_edge", estimated_edge)
    if abs(used) > 1:
        raise ValueError(f"estimated_edge must lie in [-1, 1], got {estimated_edge!r}")
    # The steepness is logit(q) = alpha * B.
    steepness = 2.0 * math.atanh(used) if abs(used) < 1 else math.copysign(math.inf, used)
    bound = coverage * (float(binary_entropy(0.5 * (1.0 + used))) + _product(0.5 * (used - edge), steepness))
    edge_outside = 0.0
    if not inside.all():
        outside = ~inside
        edge_outside = _edge_lost(clean[outside], z[outside], weight[outside], used, B)
        remainder = (1.0 - abs(used)) / (1.0 + abs(used))
        bound += (1.0 - coverage) * (_product(edge_outside, abs(steepness)) + remainder)
    alpha = steepness / B
    return ConstructiveAlpha(
        alpha=alpha,
        edge=edge,
        edge_used=used,
        coverage=coverage,
        edge_outside=edge_outside,
        bound=bound,
        cross_entropy=cross_entropy(clean, twisted, alpha, weight),
        curvature=B * B * (1.0 - used * used) / 4.0,
    )


def _edge_lost(clean: Array, z: Array, weight: Array, edge: float, B: float) -> float:
    """The mean of max(0, -sign(edge) * Y * z) / B: what points lose whose log-odds z point the wrong way."""
    toward = np.sign(edge) * z if edge else np.zeros(z.size)
    loss_pos = np.maximum(0.0, -toward)
    loss_neg = np.maximum(0.0, toward)
    with np.errstate(invalid="ignore"):
        lost = np.where(clean > 0, clean * loss_pos, 0.0)
        lost += np.where(clean < 1, (1.0 - clean) * loss_neg, 0.0)
    return float(np.sum(weight * lost)) / (float(weight.sum()) * B)


def _check_points(
    eta_clean: ArrayLike, eta_twisted: ArrayLike, weights: ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Return both posteriors as one-dimensional arrays of one length, and the weights as a distribution over them."""
    clean, twisted = _broadcast(
        np.atleast_1d(check_probabilities("eta_clean", eta_clean)),
        np.atleast_1d(check_probabilities("eta_twisted", eta_twisted)),
    )
    if clean.ndim != 1:
        raise ValueError(f"eta_clean and eta_twisted must be one-dimensional, got shape {clean.shape}")
    return clean, twisted, normalise_weights(weights, clean.size)


def _keep_weighted(clean: Array, twisted: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return the points of positive weight."""
    some = weight > 0
    return clean[some], twisted[some], weight[some]


def _broadcast(clean: Array, twisted: Array) -> tuple[Array, Array]:
    try:
        clean, twisted = np.broadcast_arrays(clean, twisted)
    except ValueError as error:
        raise ValueError(
            f"eta_clean and eta_twisted must match, got shapes {clean.shape} and {twisted.shape}"
        ) from error
    return clean, twisted


def _check_alpha(alpha: ArrayLike, size: int) -> Array:
    """Return alpha as a number, or one number per point."""
    array = check_numbers("alpha", alpha)
    if array.shape not in ((), (size,)):
        raise ValueError(f"alpha must be one number or {size}, one per point, got shape {array.shape}")
    return array


def _cost(clean: Array, log_odds: Array) -> Array:
    """clean * log(1 + exp(-log_odds)) + (1 - clean) * log(1 + exp(log_odds)), 0 * inf = 0."""
    with np.errstate(invalid="ignore"):
        cost_pos = np.where(clean > 0, clean * np.logaddexp(0.0, -log_odds), 0.0)
        cost_neg = np.where(clean < 1, (1.0 - clean) * np.logaddexp(0.0, log_odds), 0.0)
    return np.asarray(cost_pos + cost_neg)


def _mean(values: Array, weight: Array) -> float:
    """Weighted mean in which a point of weight 0 does not count, whatever its value."""
    with np.errstate(invalid="ignore"):
        return float(np.sum(np.where(weight > 0, weight * values, 0.0)))


def _product(a: float, b: float) -> float:
    """a * b with 0 * inf = 0."""
    return 0.0 if a == 0 else a * b
