"""The paper, statement by statement: each test bears the LaTeX label of what it checks, in the order of the paper.

Source: Sypherd, Nock, Sankar, "Being Properly Improper" (ICML 2022). Where its text has a slip, the test checks the
corrected statement, says so after "Slip:", and where it is cheap also shows that the printed one fails. Exact values
come from `reference` (80 digits). Random inputs are seeded; extreme ones are listed by hand.
"""

import math
from dataclasses import replace
from functools import cache

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy.optimize import brentq
from scipy.special import expit, lambertw, logit
from sklearn.tree import DecisionTreeRegressor

from helpers import reference as exact
from untwist.boosting.algorithm import pilboost
from untwist.explorer import ALPHA, FOCAL, SUPER, LossFamily, explore
from untwist.links import CanonicalLink, ClippedLink, default_step_size
from untwist.losses import AlphaLoss, FocalLoss, LogLoss, Loss, MatusitaLoss, SquareLoss, SuperLoss, tilt
from untwist.properties import differentiable, extremes, monotone, proper, properties, strictly_proper, symmetric
from untwist.theory.certificate import MET, NOT_APPLICABLE, VIOLATED, StepCondition, certify, step_condition
from untwist.twists import (
    ClassConditionalTwist,
    SymmetricNoise,
    alpha_star,
    best_fixed_alpha,
    binary_entropy,
    constructive_alpha,
    cross_entropy,
    cross_entropy_gain,
    cross_entropy_slope,
    entropy,
    is_bayes_blunting,
    kl_divergence,
)

INF = math.inf
NEAR_ONE = [1.0 - 1e-12, 1.0, 1.0 + 1e-12, 1.0001]
POSITIVE = [0.01, 0.5, *NEAR_ONE, 1.5, 2.0, 4.0, 8.0, 1e6]
FINITE = [*POSITIVE, *(-alpha for alpha in POSITIVE)]
ETAS = np.array([0.0, 1e-30, 1e-12, 0.1, 0.3, 0.4999999, 0.5, 0.5000001, 0.7, 0.9, 1.0 - 1e-12, 1.0])
PROPER = [LogLoss(), SquareLoss(), MatusitaLoss()]
LOSSES = [
    *PROPER,
    *(AlphaLoss(alpha) for alpha in (0.5, 1.0001, 1.5, 2.0, 4.0, -2.0, INF, -INF)),
    FocalLoss(2.0),
    SuperLoss(LogLoss(), tau=0.5, lam=1.0),
    SuperLoss(SquareLoss(), tau=0.3, lam=0.5),
]


def make_rng():
    return np.random.default_rng(20220717)


def convert_to_floats(values):
    """Exact numbers as an array of floats."""
    return np.array([float(value) for value in values])


def draw_points(random, size):
    """Random weights, clean and twisted posteriors, some of them extreme."""
    clean = np.where(random.random(size) < 0.15, random.choice([0.0, 0.5, 1.0, 1e-12], size), random.random(size))
    return random.random(size) + 0.01, clean, expit(random.normal(0.0, random.choice([0.1, 1.0, 4.0]), size))


# ---- Section 3: losses for class probability estimation ----


@pytest.mark.parametrize("loss", PROPER, ids=repr)
def test_section_3_log_square_and_matusita_are_strictly_proper_with_M_D_S(loss):
    """Commonly used proper losses (log, square, Matusita) satisfy M, D and S, are strictly proper (and satisfy E)."""
    assert all(properties(loss).values())


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.thinned(2)
def test_equation_eqpoirisk(loss):
    """L(u, v) = v*l_1(u) + (1-v)*l_{-1}(u), 0*inf = 0, and L_(v) is its infimum over u (1e-9 above no grid value)."""
    u = np.concatenate([[0.0], expit(np.linspace(-30.0, 30.0, 1999)), [1.0]])
    some = u[::20]  # They begin with 0 and end with 1; exact sums take long.
    assert (some[0], some[-1]) == (0.0, 1.0)
    for v in [0.0, 1e-12, 0.3, 0.5, 0.7, 1.0]:
        risk = loss.conditional_risk(u, v)
        summed = map(exact.expectation, np.full(some.size, v), loss.partial_pos(some), loss.partial_neg(some))
        np.testing.assert_allclose(risk[::20], convert_to_floats(summed), rtol=1e-13)
        assert loss.bayes_risk(v) <= risk.min() + 1e-12
        assert loss.bayes_risk(v) >= risk.min() - 1e-3 * (1.0 + abs(risk.min()))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.thinned(2)
def test_lemma_lemUstar_the_bayes_risk_is_concave_and_continuous(loss):
    """L_ is concave (1e-9), and |L_(a) - L_(u)| <= Z*|a - u| with Z the largest |l_1 - l_{-1}| at both t's."""
    random = make_rng()
    a, u, share = np.concatenate([random.random((3, 300)), expit(random.normal(0.0, 8.0, (3, 100)))], axis=1)
    risk_a, risk_u = loss.bayes_risk(a), loss.bayes_risk(u)
    chord = share * risk_a + (1.0 - share) * risk_u
    assert (loss.bayes_risk(share * a + (1.0 - share) * u) >= chord - 1e-9).all()
    ends = [np.abs(loss.partial_pos(t) - loss.partial_neg(t)) for v in (a, u) for t in loss.tilted_set(v)]
    assert (np.abs(risk_a - risk_u) <= np.max(ends, axis=0) * np.abs(a - u) + 1e-9).all()
    for end in (0.0, 1.0):  # It is continuous up to the ends, and sqrt(1e-12) is the slowest approach here.
        near = loss.bayes_risk(np.abs(end - np.array([1e-12, 1e-16, 1e-30])))
        np.testing.assert_allclose(near, loss.bayes_risk(end), rtol=0, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.thinned(3)
def test_lemma_lemUstar_the_surrogate_is_convex_continuous_and_non_increasing(loss):
    """F(z) = (-L_)*(-z), the brute-force sup (1e-6), is convex, continuous (slope in [-1, 0]) and non-increasing."""
    z = np.linspace(-6.0, 6.0, 121)
    v = np.concatenate([np.linspace(0.0, 1.0, 4001), expit(np.linspace(-25.0, 25.0, 4001))])
    sup = np.max(loss.bayes_risk(v) - z[:, None] * v, axis=1)
    surrogate = CanonicalLink(loss).margin_loss(z)
    np.testing.assert_allclose(surrogate, sup, rtol=0, atol=1e-6)
    steps = np.diff(surrogate) / np.diff(z)
    assert ((steps <= 1e-9) & (steps >= -1.0 - 1e-9)).all()
    assert (np.diff(steps) >= -1e-8).all()


def test_equation_defsur_the_log_loss_gives_entropy_and_logistic_loss():
    """Picking the log-loss gives the binary entropy for L_ and the logistic loss log(1 + exp(-z)) for F (1e-14)."""
    z = np.array([-1e6, -40.0, -1.0, 0.0, 1e-9, 1.0, 40.0, 1e6])
    np.testing.assert_allclose(
        LogLoss().bayes_risk(ETAS), convert_to_floats(map(exact.binary_entropy, ETAS)), rtol=1e-14
    )
    np.testing.assert_allclose(CanonicalLink(LogLoss()).margin_loss(z), np.logaddexp(0.0, -z), rtol=1e-14)


# ---- Section 4: Bayes tilted estimates (with Appendix "app-proof-bayestilt") ----


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.thinned(3)
def test_equation_defBTE(loss):
    """t(v) = argmin over u of L(u, v): brute force on a grid finds nothing better, and nothing as good elsewhere."""
    grid = np.concatenate([[0.0], expit(np.linspace(-20.0, 20.0, 2001)), [1.0]])
    for v in [0.0, 0.01, 0.3, 0.5, 0.8, 1.0]:
        low, high = exact.argmin_on_grid(loss, v, grid)
        estimate = loss.tilted_set(v)
        np.testing.assert_allclose(estimate, (low, high), rtol=0, atol=0.005)
        np.testing.assert_allclose(loss.conditional_risk(estimate, v), loss.bayes_risk(v), rtol=1e-9, atol=1e-12)


def test_equation_defBTE_a_proper_loss_returns_what_it_is_given():
    """Strictly proper: t(v) = {v}, so a proper loss cannot untwist; the alpha-loss is proper at alpha = 1 only."""
    for loss in PROPER:
        np.testing.assert_allclose(loss.tilted_set(ETAS), (ETAS, ETAS), rtol=1e-14)
        np.testing.assert_allclose(Loss.tilted_set(loss, ETAS), (ETAS, ETAS), rtol=0, atol=1e-7)
    verdicts = {alpha: bool(proper(AlphaLoss(alpha))) for alpha in (-INF, -1.0, 0.5, 0.99, 1.0, 1.01, 2.0, INF)}
    assert [alpha for alpha, verdict in verdicts.items() if verdict] == [1.0]


@pytest.mark.parametrize(
    "loss", [LogLoss(), SquareLoss(), *map(AlphaLoss, [0.5, 1.0001, 2.0, 8.0]), *map(FocalLoss, [0.5, 2.0])], ids=repr
)
def test_lemma_btesingleton(loss):
    """M, D, S and strictly convex partial losses: |t(v)| = 1 for every v in [0, 1]."""
    assert monotone(loss)
    assert differentiable(loss)
    assert symmetric(loss)
    u = np.linspace(0.0, 1.0, 2001)[1:-1]
    assert (np.diff(loss.partial_pos(u), 2) > 0).all()
    assert (np.diff(loss.partial_neg(u), 2) > 0).all()
    v = np.concatenate([ETAS, make_rng().random(200)])
    low, high = Loss.tilted_set(loss, v)  # This is the numerical search, not the closed form.
    np.testing.assert_allclose(low, high, rtol=0, atol=1e-9)


def test_lemma_btesingleton_strict_convexity_is_not_required():
    """Slip: "strict convexity is required" is too strong: Matusita's partial loss is not convex above 3/4, |t| = 1."""
    loss, u = MatusitaLoss(), np.linspace(0.0, 1.0, 2001)[1:-1]
    bend = np.diff(loss.partial_pos(u), 2)
    assert (bend[u[1:-1] < 0.74] > 0).all()
    assert (bend[u[1:-1] > 0.76] < 0).all()
    assert strictly_proper(loss)


class Polygon(Loss):
    """Partial losses that are linear between knots, with exact slopes."""

    def __init__(self, knots, pos, neg):
        self.knots, self.pos, self.neg = (np.asarray(values, dtype=float) for values in (knots, pos, neg))

    def partial_pos(self, u):
        return np.interp(u, self.knots, self.pos)

    def partial_neg(self, u):
        return np.interp(u, self.knots, self.neg)

    def _slope(self, values, u):
        piece = np.clip(np.searchsorted(self.knots, u, side="right") - 1, 0, self.knots.size - 2)
        return (np.diff(values) / np.diff(self.knots))[piece]

    def partial_pos_derivative(self, u):
        return self._slope(self.pos, u)

    def partial_neg_derivative(self, u):
        return self._slope(self.neg, u)


def test_lemma_proptilt_M():
    """(M): u1 < u3 => t(u1) <= t(u3) and t(u1) & t(u3) within t(u2) between; on random convex polygons, set-valued."""
    random, set_valued, shared = make_rng(), 0, 0
    knots, v = np.linspace(0.0, 1.0, 9), np.linspace(0.0, 1.0, 33)
    for _ in range(30):
        down, up = -np.sort(-random.integers(0, 5, 8)), np.sort(random.integers(0, 5, 8))
        loss = Polygon(knots, np.append(np.cumsum(down[::-1])[::-1], 0), np.append(0, np.cumsum(up)))
        assert monotone(loss)
        low, high = loss.tilted_set(v)
        # With integers and dyadic v the brute force over the knots is exact.
        brute = np.array([exact.argmin_on_grid(loss, eta, knots, tolerance=0) for eta in v])
        np.testing.assert_allclose((low, high), brute.T, rtol=0, atol=1e-8)
        assert (np.diff(low) >= -1e-8).all()
        assert (np.diff(high) >= -1e-8).all()
        set_valued += int((high > low + 0.1).sum())
        for first in range(0, 33, 4):
            for last in range(first + 2, 33, 4):
                common = max(low[first], low[last]), min(high[first], high[last])
                if common[0] <= common[1]:
                    shared += 1
                    between = slice(first + 1, last)
                    assert (low[between] <= common[0] + 1e-8).all()
                    assert (high[between] >= common[1] - 1e-8).all()
    assert set_valued > 50
    assert shared > 50


@pytest.mark.parametrize("alpha", [-4.0, -1.0, -0.5, 0.5, 1.0, 1.0001, 2.0, 4.0])
def test_lemma_proptilt_D(alpha):
    """(D): l_1'(t) <= l_{-1}'(t) iff t' >= 0; L_' = l_1(t) - l_{-1}(t), L_'' = t'*(l_1'(t) - l_{-1}'(t)) (1e-5)."""
    loss, v, h = AlphaLoss(alpha), np.linspace(0.05, 0.95, 19), 1e-5
    t, around = loss.tilted_estimate(v), [loss.tilted_estimate(v + shift) for shift in (h, -h)]
    slope = (around[0] - around[1]) / (2 * h)
    difference = loss.partial_pos_derivative(t) - loss.partial_neg_derivative(t)
    assert ((difference <= 0) == (slope >= 0)).all()
    assert (slope > 0).all() == (alpha > 0)

    def bayes_slope(v):
        t = loss.tilted_estimate(v)
        return loss.partial_pos(t) - loss.partial_neg(t)

    first = [(exact.bayes_risk(x + mpf(h), alpha) - exact.bayes_risk(x - mpf(h), alpha)) / (2 * h) for x in v]
    np.testing.assert_allclose(bayes_slope(v), convert_to_floats(first), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose((bayes_slope(v + h) - bayes_slope(v - h)) / (2 * h), slope * difference, rtol=1e-5)


@pytest.mark.parametrize("loss", [*LOSSES, AlphaLoss(0.0)], ids=repr)
def test_lemma_proptilt_S(loss):
    """(S): t(1 - u) = {1} - t(u), as sets (1e-9)."""
    assert symmetric(loss)
    u = np.arange(257) / 256.0  # With these numbers 1 - u is exact.
    low, high = loss.tilted_set(u)
    mirrored_low, mirrored_high = loss.tilted_set(1.0 - u)
    np.testing.assert_allclose((mirrored_low, mirrored_high), (1.0 - high, 1.0 - low), rtol=0, atol=1e-9)


def test_lemma_proptilt_E():
    """(E): l_1(1) = l_{-1}(0) = 0 and non-negative imply 0 in t(0), 1 in t(1); a negative alpha lacks both."""
    with_e = [loss for loss in LOSSES if extremes(loss)]
    assert len(with_e) >= 10
    for loss in with_e:
        assert loss.tilted_set(0.0)[0] == 0
        assert loss.tilted_set(1.0)[1] == 1
        assert loss.bayes_risk(0.0) == loss.bayes_risk(1.0) == 0
    for alpha in (-1e-3, -2.0, -INF):
        assert not extremes(AlphaLoss(alpha))
        assert AlphaLoss(alpha).tilted_set(0.0) == (1.0, 1.0)


class AffinePiece(Loss):
    """The square loss with an affine piece put in between v and w: strictly monotone, differentiable, convex."""

    def __init__(self, v, w):
        self.v, self.w = v, w

    # It is the integral of start - x(u) for the position x, which stands still on [v, w].
    def _integral(self, u, start):
        u, width = np.asarray(u, dtype=float), self.w - self.v
        x = np.where(u <= self.v, u, np.maximum(self.v, u - width))
        moved = start * u - x * x / 2.0
        return moved - self.v * np.clip(u - self.v, 0.0, width)

    def partial_pos(self, u):
        return 2.0 * (self._integral(1.0, 1.0) - self._integral(u, 1.0))

    def partial_neg(self, u):
        return -2.0 * self._integral(u, 0.0)


@pytest.mark.parametrize(("v", "w"), [(0.3, 0.5), (0.4, 0.6), (0.05, 0.2), (0.5, 0.9)])
@pytest.mark.thinned(2)
def test_lemma_proptilt_remark_strictly_monotone_losses_can_have_a_set_valued_estimate(v, w):
    """Affine pieces on [v, w] of slopes -a and b with b/a = v/(1-v) make t(v) = [v, w], strict monotony or not."""
    loss, u = AffinePiece(v, w), np.linspace(0.0, 1.0, 1001)
    assert (np.diff(loss.partial_pos(u)) < 0).all()
    assert (np.diff(loss.partial_neg(u)) > 0).all()
    assert differentiable(loss)
    slopes = [float(np.diff(partial([v, w]))[0]) for partial in (loss.partial_pos, loss.partial_neg)]
    assert -slopes[1] / slopes[0] == pytest.approx(v / (1.0 - v), rel=1e-12)
    np.testing.assert_allclose(loss.tilted_set(v), (v, w), rtol=0, atol=1e-6)
    low, high = loss.tilted_set([0.5 * v, v + 0.01, 0.95])
    np.testing.assert_allclose(low, high, rtol=0, atol=1e-9)
    assert not strictly_proper(loss)


# ---- Section 4: twists and twist-proper losses ----


def test_definition_Bayesblunting():
    """Blunting iff eta_c <= eta_t <= 1/2 or eta_c >= eta_t >= 1/2; strictly: eta_c < eta_t or eta_c > eta_t there."""
    points = np.concatenate([ETAS, make_rng().random(60)])
    clean, twisted = (grid.ravel() for grid in np.meshgrid(points, points))
    pairs = list(zip(clean.tolist(), twisted.tolist(), strict=True))
    assert is_bayes_blunting(clean, twisted).tolist() == [c <= t <= 0.5 or c >= t >= 0.5 for c, t in pairs]
    strict = [c < t <= 0.5 or c > t >= 0.5 for c, t in pairs]
    assert is_bayes_blunting(clean, twisted, strict=True).tolist() == strict
    # Blunting keeps the guess and takes confidence away.
    blunt = is_bayes_blunting(clean, twisted)
    assert (np.abs(twisted[blunt] - 0.5) <= np.abs(clean[blunt] - 0.5)).all()
    assert not ((clean[blunt] - 0.5) * (twisted[blunt] - 0.5) < 0).any()


def test_lemma_lemSymLabFlip():
    """Symmetric label noise is Bayes blunting for p <= 1/2 (strictly for 0 < p, eta_c != 1/2), and not above."""
    clean = np.concatenate([ETAS, make_rng().random(500)])
    for p in [0.0, 1e-12, 0.1, 0.3, 0.499999, 0.5]:
        twisted = SymmetricNoise(p)(clean)
        np.testing.assert_allclose(twisted, clean * (1.0 - p) + (1.0 - clean) * p, rtol=1e-15)
        assert is_bayes_blunting(clean, twisted).all()
    strict = is_bayes_blunting(clean, SymmetricNoise(0.2)(clean), strict=True)
    assert (strict == (clean != 0.5)).all()
    away = np.abs(clean - 0.5) > 1e-3
    for p in [0.501, 0.9, 1.0]:
        assert not is_bayes_blunting(clean[away], SymmetricNoise(p)(clean[away])).any()
    # Class-conditional noise need not be blunting.
    assert not is_bayes_blunting(0.6, ClassConditionalTwist(rate_neg=0.0, rate_pos=0.4)(0.6))


@pytest.mark.parametrize(("clean", "twisted"), [(0.1, 0.3), (0.3, 0.1), (0.3, 0.7), (0.999, 0.501), (1e-6, 0.9)])
def test_definition_TwistProper(clean, twisted):
    """Strictly twist-proper: some hyperparameter makes {eta_c} = t(eta_t); the alpha-loss does for any pair (1e-6)."""
    found = explore(ALPHA, clean, twisted)
    assert found.reaches(1e-6)
    assert found.single
    assert found.parameters["alpha"] == pytest.approx(float(alpha_star(clean, twisted)), rel=1e-3)


def test_definition_TwistProper_without_a_hyperparameter_only_the_constant_loss_would_do():
    """Without hyperparameters twist-properness would force t = [0, 1]: alpha = 0, whose partial losses say nothing."""
    low, high = AlphaLoss(0.0).tilted_set(ETAS)
    np.testing.assert_array_equal((low, high), (np.zeros(ETAS.size), np.ones(ETAS.size)))
    assert np.isposinf(AlphaLoss(0.0).partial_pos(ETAS)).all()


def focal_ratio(u, gamma):
    """f(u, gamma) / f(1-u, gamma) of the proof; it must equal v/(1-v) where u is the tilted estimate of v."""

    def f(u):
        return u**gamma * (gamma * (1 - u) * mpmath.log(1 - u) - u)

    return f(u) / f(1 - u)


def test_lemma_lemFocalLoss_proof():
    """d(ratio)/dgamma has the sign of A*gamma^2 + B*gamma + C <= 0. Slip: A, B and C of the paper are not these."""
    for u in map(mpf, [1e-6, 0.01, 0.1, 0.25, 0.4, 0.499]):
        log_u, log_q, b = mpmath.log(u), mpmath.log(1 - u), u * mpmath.log(u) - (1 - u) * mpmath.log(1 - u)
        A = u * (1 - u) * log_u * log_q * mpmath.log(u / (1 - u))
        B = -(1 - 2 * u) * log_u * log_q - u**2 * log_u**2 + (1 - u) ** 2 * log_q**2
        C = b
        assert A < 0
        assert B < 0
        assert C < 0
        printed = (
            u * (1 - u) * log_u * log_q * mpmath.log(u * (1 - u)),
            -(u**2 * log_u**2 + (1 - u) ** 2 * log_q**2 + (1 - 2 * u) ** 2 * log_u * log_q),
            (1 - 2 * u) * b,
        )
        for gamma in map(mpf, [0.01, 0.5, 1, 2, 7]):
            f = (1 - u) ** gamma * (gamma * u * log_u - (1 - u))  # This is f(1-u, gamma).
            derivative = mpmath.diff(lambda gamma, u=u: focal_ratio(u, gamma), gamma)
            factor = (u * (1 - u)) ** gamma / f**2
            assert mpmath.almosteq(derivative, factor * (A * gamma**2 + B * gamma + C), rel_eps=mpf(10) ** -15)
            wrong = factor * (printed[0] * gamma**2 + printed[1] * gamma + printed[2])
            assert u < 0.1 or abs(wrong / derivative - 1) > 1e-3
            assert focal_ratio(u, gamma) <= u / (1 - u)


@pytest.mark.slow
def test_lemma_lemFocalLoss():
    """The focal loss is not twist-proper: it cannot undo blunting (.3 -> .1) nor cross 1/2 (.7 -> .3)."""
    np.testing.assert_allclose(FocalLoss(0.0).partial_pos(ETAS), LogLoss().partial_pos(ETAS), rtol=1e-14)
    assert explore(FOCAL, 0.1, 0.3).distance == pytest.approx(0.2, abs=1e-6)
    assert explore(FOCAL, 0.3, 0.7).distance > 0.19
    assert explore(FOCAL, 0.3, 0.1).reaches()
    random = make_rng()
    for gamma in [0.01, 0.5, 2.0, 10.0]:
        eta = random.random(100)
        estimate = FocalLoss(gamma).tilted_estimate(eta)
        assert (np.abs(estimate - 0.5) <= np.abs(eta - 0.5) + 1e-9).all()
        ratio = convert_to_floats(focal_ratio(mpf(u), mpf(gamma)) for u in estimate)
        np.testing.assert_allclose(ratio, eta / (1.0 - eta), rtol=1e-6)


def test_lemma_super_loss_derivative():
    """d/du of the Super Loss is l_b'(u)*exp(-W(max(-1/e, beta_b))) (1e-9), sup exp(-W) = e, sigma* stationary."""
    z = np.concatenate([[-math.exp(-1) + 1e-12], np.geomspace(1e-6, 1e6, 60)])
    w = lambertw(z).real
    np.testing.assert_allclose((1.0 + w) / (z + np.exp(w)), np.exp(-w), rtol=1e-5)
    assert np.exp(-w).max() < math.e
    assert np.exp(-w[0]) == pytest.approx(math.e, rel=1e-5)
    u = np.linspace(0.05, 0.95, 19)
    for loss in (LogLoss(), SquareLoss(), MatusitaLoss()):
        for tau, lam in [(0.1, 1.0), (2.0, 0.2), (-3.0, 0.05)]:
            wrapped = SuperLoss(loss, tau, lam)
            for kind in ("partial_pos", "partial_neg"):
                cost = getattr(loss, kind)(u)
                beta = np.maximum(-math.exp(-1.0) + 1e-16, (cost - tau) / (2.0 * lam))
                sigma = np.where(beta <= -math.exp(-1.0) + 1e-15, math.e, np.exp(-lambertw(beta).real))
                by_definition = (cost - tau) * sigma + lam * np.log(sigma) ** 2
                np.testing.assert_allclose(getattr(wrapped, kind)(u), by_definition, rtol=1e-9, atol=1e-9)
                derivative = getattr(wrapped, f"{kind}_derivative")(u)
                np.testing.assert_allclose(derivative, getattr(loss, f"{kind}_derivative")(u) * sigma, rtol=1e-7)
                numerical = getattr(Loss, f"{kind}_derivative")(wrapped, u)
                np.testing.assert_allclose(derivative, numerical, rtol=1e-5, atol=1e-7)
                inner = beta > -math.exp(-1.0) + 1e-6
                stationary = (cost - tau) + 2.0 * lam * np.log(sigma) / sigma
                np.testing.assert_allclose(stationary[inner], 0.0, rtol=0, atol=1e-8 * (1.0 + np.abs(cost).max()))


@pytest.mark.parametrize("loss", PROPER, ids=repr)
@pytest.mark.thinned(3)
def test_lemma_super_loss_is_not_twist_proper(loss):
    """Around strictly monotone partial losses the Super Loss is not twist-proper: it fails at (.3, .1), (.3, .7)."""
    values = {"tau": (-30.0, -1.0, 0.0, 0.3, 1.0, 30.0), "lam": (1e-3, 0.03, 0.3, 3.0, 1e3)}
    family = LossFamily("Super Loss", lambda tau, lam: SuperLoss(loss, tau, lam), values)
    u = np.linspace(0.0, 1.0, 101)[1:-1]
    assert (np.diff(loss.partial_pos(u)) < 0).all()  # The remark says that all popular losses are strictly monotone.
    assert (np.diff(loss.partial_neg(u)) > 0).all()
    for clean, twisted in [(0.3, 0.1), (0.3, 0.7)]:
        assert explore(family, clean, twisted, refinements=4).distance > 0.15


@pytest.mark.slow
def test_lemma_super_loss_does_undo_blunting():
    assert explore(SUPER, 0.1, 0.3).reaches()


# ---- Section 4: the alpha-loss ----


@pytest.mark.parametrize("alpha", [*FINITE, INF, -INF])
def test_definition_defALPHALOSS(alpha):
    """l_1(u) = c*(1 - u**(1/c)), its limits -log(u) and 1 - u; below 0, l_1^{-alpha}(1-u) (rtol 1e-12)."""
    u = np.concatenate([ETAS, make_rng().random(100)])
    loss = AlphaLoss(alpha)
    for ours, twin in ((loss.partial_pos, exact.partial_pos), (loss.partial_neg, exact.partial_neg)):
        values = ours(u)
        np.testing.assert_allclose(values, convert_to_floats(twin(x, alpha) for x in u), rtol=1e-12)
        assert (values >= 0).all()
    np.testing.assert_array_equal(loss.partial_pos(u), AlphaLoss(-alpha).partial_neg(u))


def test_definition_defALPHALOSS_limits():
    """By continuity l_1^0 = inf, l_1^1(u) = -log(u), l_1^inf(u) = 1 - u."""
    u = np.concatenate([[1e-12], np.linspace(0.01, 0.999, 50)])
    assert np.isposinf(AlphaLoss(0.0).partial_pos(np.append(u, [0.0, 1.0]))).all()
    assert (np.diff([AlphaLoss(alpha).partial_pos(0.5) for alpha in (1.0, 0.1, 0.01, 0.001)]) > 0).all()
    for alpha in NEAR_ONE[:3]:
        np.testing.assert_allclose(AlphaLoss(alpha).partial_pos(u), -np.log(u), rtol=1e-10)
    np.testing.assert_allclose(AlphaLoss(INF).partial_pos(u), 1.0 - u, rtol=1e-15)
    np.testing.assert_allclose(AlphaLoss(1e12).partial_pos(u), 1.0 - u, rtol=1e-10)


@pytest.mark.parametrize("alpha", [*FINITE, INF, -INF])
def test_lemma_lemPointwise_a(alpha):
    """(a) M, D, S hold for every alpha != 0. Slip: below 0, M holds reversed (and E fails)."""
    loss = AlphaLoss(alpha)
    assert symmetric(loss)
    assert bool(monotone(loss)) == (alpha > 0)
    assert monotone(AlphaLoss(abs(alpha)))
    assert bool(extremes(loss)) == (alpha > 0)
    if abs(alpha) > 0.1:  # Below that, the bends are too sharp for a check by differences.
        assert differentiable(loss)


@pytest.mark.parametrize("alpha", FINITE)
def test_lemma_lemPointwise_b(alpha):
    """(b) t(eta) = {eta**alpha / (eta**alpha + (1-eta)**alpha)}, alpha finite != 0 (rtol 1e-15*(4 + |log-odds|))."""
    eta = np.concatenate([ETAS, make_rng().random(100)])
    low, high = AlphaLoss(alpha).tilted_set(eta)
    np.testing.assert_array_equal(low, high)
    truth = [exact.tilted_estimate(x, alpha) for x in eta]
    odds = np.array([float(abs(alpha * exact.logit(x))) for x in eta])
    slack = 1e-15 * (4.0 + np.where(np.isinf(odds), 0.0, odds))
    assert (np.abs(low - convert_to_floats(truth)) <= slack * convert_to_floats(truth) + 5e-324).all()
    # With these numbers 1 - eta is exact, so the symmetry that the text notes can be tested.
    eta = np.arange(257) / 256.0
    np.testing.assert_allclose(tilt(eta, alpha), tilt(1.0 - eta, -alpha), rtol=1e-12)


def test_lemma_lemPointwise_b_at_infinity_and_zero():
    """(b) t = [0, 1] at alpha = 0, and at +-inf for eta = 1/2; else a step. Slip: its values are 0 and 1, not +-1."""
    step = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    eta = np.array([0.0, 1.0, 0.3, 0.7, np.nextafter(0.5, 0), np.nextafter(0.5, 1)])
    np.testing.assert_array_equal(AlphaLoss(INF).tilted_set(eta), (step, step))
    np.testing.assert_array_equal(AlphaLoss(-INF).tilted_set(eta), (1.0 - step, 1.0 - step))
    for alpha in (INF, -INF):
        assert AlphaLoss(alpha).tilted_set(0.5) == (0.0, 1.0)
    assert AlphaLoss(0.0).tilted_set(0.3) == (0.0, 1.0)
    grid = np.linspace(0.0, 1.0, 101)
    assert exact.argmin_on_grid(AlphaLoss(INF), 0.5, grid) == (0.0, 1.0)


def test_lemma_lemPointwise_c():
    """(c) t(eta_t) = {eta_c} at alpha* = logit(eta_c)/logit(eta_t), for every twist (1e-12 in the log-odds, exact)."""
    random = make_rng()
    clean, twisted = expit(random.normal(0.0, 5.0, (2, 300)))
    alpha = alpha_star(clean, twisted)
    np.testing.assert_allclose(
        alpha, convert_to_floats(exact.logit(c) / exact.logit(t) for c, t in zip(clean, twisted, strict=True))
    )
    np.testing.assert_allclose(tilt(twisted, alpha), clean, rtol=1e-12)
    np.testing.assert_allclose(1.0 - tilt(twisted, alpha), 1.0 - clean, rtol=1e-9)
    clean, twisted = (grid.ravel() for grid in np.meshgrid(ETAS, ETAS))
    for c, t, alpha in zip(clean, twisted, alpha_star(clean, twisted), strict=True):
        low, high = AlphaLoss(float(alpha)).tilted_set(t)  # At the extremes eta_c is still in the set.
        assert low - 1e-12 <= c <= high + 1e-12


@pytest.mark.parametrize(
    ("clean", "twisted", "alpha"),
    [
        (0.9, 0.5, INF),
        (0.1, 0.5, INF),
        (0.5, 0.2, 0.0),
        (0.3, 0.0, 0.0),
        (0.3, 1.0, 0.0),
        (0.0, 1.0, -1.0),
        (1.0, 0.0, -1.0),
        (1.0, 1.0, 1.0),
        (0.5, 0.5, 1.0),
        (1.0, 0.7, INF),
        (1.0, 0.3, -INF),
    ],
)
def test_lemma_lemPointwise_c_where_the_quotient_is_not_defined(clean, twisted, alpha):
    """(c) at the edges: eta_t = 1/2 needs +-inf, eta_c = 1/2 or eta_t certain needs 0 (both set-valued), and so on."""
    assert alpha_star(clean, twisted) == alpha
    low, high = AlphaLoss(alpha).tilted_set(twisted)
    assert low <= clean <= high


def test_lemma_lemPointwise_d():
    """(d) alpha* >= 1 for any Bayes blunting twist; negative for a twist across 1/2, below 1 for a sharpening one."""
    random = make_rng()
    clean = np.concatenate([ETAS, random.random(300)])
    share = random.random(clean.size)
    twisted = 0.5 + share * (clean - 0.5)
    assert is_bayes_blunting(clean, twisted).all()
    assert (alpha_star(clean, twisted)[clean != 0.5] >= 1.0).all()
    for p in [1e-12, 0.2, 0.4999, 0.5]:
        assert (alpha_star(clean, SymmetricNoise(p)(clean))[clean != 0.5] >= 1.0 - 1e-9).all()
    away = np.abs(clean - 0.5) > 1e-3
    assert (alpha_star(clean, 1.0 - twisted)[away & (share > 1e-3)] < 0).all()
    inside = away & (clean > 0) & (clean < 1) & (share < 0.99)
    assert (alpha_star(twisted, clean)[inside] < 1.0).all()


# ---- Section 4: one alpha for all of X ----


def test_equation_defCE_and_kldivalpha():
    """CE by its definition (rtol 1e-11), alpha a number or one per x; D_KL = CE - H(eta_c) >= 0."""
    random = make_rng()
    for alpha in [*FINITE, 0.0]:
        weights, clean, twisted = draw_points(random, 6)
        truth = exact.cross_entropy(clean, twisted, alpha, weights)
        ours = cross_entropy(clean, twisted, alpha, weights)
        assert ours == pytest.approx(float(truth), rel=1e-11)
        kl = kl_divergence(clean, twisted, alpha, weights)
        assert kl == pytest.approx(ours - entropy(clean, weights), rel=1e-9, abs=1e-12)
        assert kl >= 0
    alphas = random.normal(0.0, 3.0, 6)
    one_by_one = [cross_entropy(c, t, a) for c, t, a in zip(clean, twisted, alphas, strict=True)]
    weighted = float(np.average(one_by_one, weights=weights))
    assert cross_entropy(clean, twisted, alphas, weights) == pytest.approx(weighted, rel=1e-12)
    assert cross_entropy([0.3], [0.0], 1.0) == INF
    assert cross_entropy([0.0, 1.0], [0.0, 1.0], INF) == 0.0
    assert entropy([0.0, 0.5, 1.0], [1, 2, 1]) == pytest.approx(0.5 * math.log(2.0), rel=1e-15)


@pytest.mark.parametrize("trial", range(40))
def test_theorem_thmALPHABLUNTING(trial):
    """Strictly blunting: some alpha_0 > 1 has D(1) > D(alpha_0) >= D(alpha*(.)), alpha* > 1; dCE/dalpha(1) < 0."""
    random = np.random.default_rng(trial)
    weights, clean, _ = draw_points(random, int(random.integers(1, 9)))
    clean = np.where(clean == 0.5, 0.6, clean)
    twisted = expit(logit(np.clip(clean, 1e-12, 1 - 1e-12)) * random.uniform(0.0, 0.99, clean.size))
    twisted = np.where(random.random(clean.size) < 0.1, 0.5, twisted)
    twisted[0] = expit(0.5 * logit(np.clip(clean[0], 1e-12, 1 - 1e-12)))  # The twisted posteriors must not all be 1/2.
    assert is_bayes_blunting(clean, twisted, strict=True).all()
    best, mapping = best_fixed_alpha(clean, twisted, weights), alpha_star(clean, twisted)
    divergence = [kl_divergence(clean, twisted, alpha, weights) for alpha in (1.0, best, mapping)]
    assert best > 1
    assert (mapping > 1).all()
    assert divergence[0] > divergence[1] >= divergence[2] - 1e-15
    assert cross_entropy_slope(clean, twisted, 1.0, weights) < 0
    if not (twisted == 0.5).any():
        assert divergence[2] == pytest.approx(0.0, abs=1e-12)
    for alpha in np.geomspace(0.1, 100.0, 60):  # No other alpha is better than alpha_0.
        assert kl_divergence(clean, twisted, alpha, weights) >= divergence[1] - 1e-12


def test_theorem_thmALPHABLUNTING_needs_a_twist_that_leaves_something():
    """Slip: p < 1/2 (the paper has <=): at p = 1/2, or eta_t = 1/2 everywhere, CE is log(2) at every alpha."""
    clean = np.array([0.1, 0.2, 0.9])
    half = SymmetricNoise(0.5)(clean)
    assert is_bayes_blunting(clean, half, strict=True).all()
    values = {cross_entropy(clean, half, alpha) for alpha in (-INF, -1.0, 1.0, 2.0, 1e6, INF)}
    assert all(value == pytest.approx(math.log(2.0), rel=1e-15) for value in values)
    assert best_fixed_alpha(clean, half) == 1.0
    assert best_fixed_alpha(clean, SymmetricNoise(0.4999)(clean)) > 1000


GRID = np.linspace(0.001, 0.999, 999)


def test_theorem_thmALPHABLUNTING_proof_SYMMETRY_and_CONTINUITY():
    """f_{alpha,c}(t) = f_{alpha,1-c}(1-t), f_1 = 0, continuous in alpha; f as printed (1e-10)."""
    random = make_rng()
    for clean in [0.0, 1e-12, 0.1, 0.5, 0.9, 1.0]:
        for alpha in [0.5, 1.0001, 2.0, 8.0]:
            gain = cross_entropy_gain(clean, GRID, alpha)
            np.testing.assert_allclose(gain, cross_entropy_gain(1.0 - clean, 1.0 - GRID, alpha), rtol=1e-9, atol=1e-12)
            powers = np.log(GRID**alpha + (1.0 - GRID) ** alpha)
            printed = (alpha - 1.0) * (clean * np.log(GRID) + (1.0 - clean) * np.log(1.0 - GRID)) - powers
            np.testing.assert_allclose(gain, printed, rtol=1e-10, atol=1e-12)
            nearby = cross_entropy_gain(clean, GRID, alpha * (1.0 + 1e-9))
            np.testing.assert_allclose(nearby, gain, rtol=0, atol=1e-7)
        assert (cross_entropy_gain(clean, random.random(50), 1.0) == 0).all()


def test_theorem_thmALPHABLUNTING_proof_CONCAVITY_is_false():
    """Slip: f_{alpha,c} need not be concave for alpha > 1, and f''(1/2) = -4*(alpha^2 - 1), not about -alpha^2.
    Below 1 it is convex as said, and does not gain between 1/2 and c."""
    assert np.diff(cross_entropy_gain(0.9, GRID, 2.0), 2).max() < 0
    assert np.diff(cross_entropy_gain(0.99, GRID, 8.0), 2)[(GRID[1:-1] > 0.72) & (GRID[1:-1] < 0.78)].min() > 1e-7
    for alpha in [0.2, 0.5, 0.9]:
        assert np.diff(cross_entropy_gain(0.9, GRID, alpha), 2).min() > 0
        assert (cross_entropy_gain(0.9, np.linspace(0.501, 0.9, 100), alpha) < 0).all()
    for alpha in [1.1, 2.0, 4.0]:
        middle = cross_entropy_gain(0.9, 0.5 + 1e-4 * np.array([-1.0, 0.0, 1.0]), alpha)
        second = float(np.diff(middle, 2)[0]) / 1e-8
        assert second == pytest.approx(-4.0 * (alpha**2 - 1.0), rel=1e-4)


@pytest.mark.parametrize("clean", [0.6, 0.9, 0.999])
def test_theorem_thmALPHABLUNTING_proof_ZEROES(clean):
    """f_{alpha,c} is 0 at 1/2 and once more, from c (alpha -> 1) to 1/2 (alpha -> inf), where both equations hold."""

    def second_zero(alpha):
        return brentq(lambda t: float(cross_entropy_gain(clean, t, alpha)), 0.5 + 1e-9, clean, xtol=1e-15)

    alphas = [1.0001, 1.1, 2.0, 4.0, 16.0, 256.0]
    zeros = np.array([second_zero(alpha) for alpha in alphas])
    assert (np.diff(zeros) < 0).all()
    assert zeros[0] == pytest.approx(clean, abs=1e-3)
    assert second_zero(1e6) == pytest.approx(0.5, abs=1e-3)
    for alpha, t in zip(alphas, zeros, strict=True):
        assert cross_entropy_gain(clean, 0.5, alpha) == 0
        assert -1e-3 * alpha < cross_entropy_gain(clean, clean, 1.0 + 1e-4) < 0
        inside, outside = np.linspace(0.5, t, 52)[1:-1], np.linspace(t, 1.0, 52)[1:-1]
        assert (cross_entropy_gain(clean, inside, alpha) > 0).all()
        assert (cross_entropy_gain(clean, outside, alpha) < 0).all()
        power = (1.0 - t) ** ((alpha - 1.0) * (1.0 - 1.0 / clean)) * (t**alpha + (1.0 - t) ** alpha) ** (1.0 / clean)
        # This is the equation "eq:transcendentalbb".
        assert power ** (1.0 / (alpha - 1.0)) == pytest.approx(t, rel=1e-6)
        left = math.log(t) - (1.0 - 1.0 / clean) * math.log1p(-t)
        right = alpha / (alpha - 1.0) * math.log(t) / clean
        right += math.log1p((1.0 / t - 1.0) ** alpha) / (clean * (alpha - 1.0))
        assert left == pytest.approx(right, rel=1e-6, abs=1e-6)  # This is the equation "eq:transbbcont".


@pytest.mark.parametrize("clean", [0.6, 0.9, 0.999])
def test_theorem_thmALPHABLUNTING_proof_MAXIMUM(clean):
    """The maximum solves eq. "eq:transmax" and tends to 1/2. Slip: as alpha -> 1 it is not c/2 + 1/4 but solves
    (c - t)/(t*(1-t)) = logit(t)."""

    def equation(t, alpha):
        return (alpha * (1 - clean) + clean - t) / (alpha * clean - clean + t) - (1 / t - 1) ** alpha

    def derivative(t):  # It is the derivative of (c - t)*logit(t) = df/dalpha at alpha = 1.
        return (clean - t) / (t * (1.0 - t)) - logit(t)

    found = []
    for alpha in [1.001, 1.5, 4.0, 16.0, 256.0]:
        grid = np.linspace(0.5, clean, 200001)
        top = float(grid[cross_entropy_gain(clean, grid, alpha).argmax()])
        root = brentq(equation, top - 1e-3, top + 1e-3, args=(alpha,), xtol=1e-14)
        assert root == pytest.approx(top, abs=1e-4)
        found.append(top)
    assert (np.diff(found) < 0).all()
    assert found[-1] == pytest.approx(0.5, abs=0.02)
    limit = brentq(derivative, 0.5 + 1e-9, clean)
    assert found[0] == pytest.approx(limit, abs=1e-3)
    assert abs(limit - (clean / 2 + 0.25)) > 1e-4


def test_figure_BayesBlunting():
    """At eta_c = .9 a small alpha gains over more of [.5, .9], a large one gains more at its best."""
    twisted = np.linspace(0.5, 0.9, 4001)[1:]
    gains = [cross_entropy_gain(0.9, twisted, alpha) for alpha in (1.1, 1.5, 2.0, 4.0, 8.0)]
    covered = [(gain > 0).mean() for gain in gains]
    assert (np.diff(covered) < 0).all()
    assert covered[0] > 0.9
    assert (np.diff([gain.max() for gain in gains]) > 0).all()


def test_lemma_lemBSUR():
    """|z| <= B: log(1 + exp(alpha*z)) <= log(1 + exp(alpha*B)) - (B - z)/2*alpha for any alpha; equal at +-B."""
    random = make_rng()
    for alpha in [-1e3, -2.0, -1e-9, 0.0, 1e-9, 0.5, 1.0, 30.0, 1e3]:
        for B in [1e-6, 1.0, 3.0, 50.0]:
            for z in [-B, 0.0, B, *random.uniform(-B, B, 5)]:
                left = mpmath.log(1 + mpmath.exp(mpf(alpha) * mpf(z)))
                right = mpmath.log(1 + mpmath.exp(mpf(alpha) * B)) - (mpf(B) - mpf(z)) / 2 * mpf(alpha)
                assert left <= right + mpf(10) ** -40
                assert abs(z) != B or abs(left - right) < mpf(10) ** -40


def test_lemma_lemEXPB():
    """|logit(eta)| <= B bounds -log t(eta) and -log(1 - t(eta)) by log(1+exp(alpha*B)) - alpha*(B +- logit(eta))/2."""
    random = make_rng()
    for alpha in [-50.0, -1.0, 0.0, 0.3, 1.0001, 4.0, 1e3]:
        for B in [0.01, 1.0, 8.0]:
            z = np.append(random.uniform(-B, B, 200), [-B, B])
            eta = expit(z)
            base = np.logaddexp(0.0, alpha * B)
            # The costs are -log t and -log(1-t).
            cost_pos, cost_neg = ([cross_entropy(label, x, alpha) for x in eta] for label in (1.0, 0.0))
            slack = 1e-12 * (1.0 + abs(alpha) * B)
            assert (cost_pos <= base - alpha * (B + z) / 2.0 + slack).all()
            assert (cost_neg <= base - alpha * (B - z) / 2.0 + slack).all()


@pytest.mark.parametrize("trial", range(60))
def test_theorem_thmALPHAGLOB(trial):
    """p(B) = 1, alpha* = logit(q)/B, q = (1+e)/2: D_KL(alpha*) <= H_b(q) - H(eta_c), for any twist (1e-12)."""
    random = np.random.default_rng(1000 + trial)
    weights, clean, twisted = draw_points(random, int(random.integers(1, 12)))
    B = float(np.abs(logit(twisted)).max() * random.choice([1.0, 1.1, 3.0])) or 1.0
    found = constructive_alpha(clean, twisted, B, weights)
    share = weights / weights.sum()
    edge = float(share @ ((2.0 * clean - 1.0) * logit(twisted))) / B
    assert found.coverage == pytest.approx(1.0, abs=1e-15)
    assert found.edge == pytest.approx(edge, abs=1e-12)
    assert abs(found.edge) <= 1
    assert found.alpha == pytest.approx(float(logit(0.5 * (1.0 + edge))) / B, rel=1e-6, abs=1e-12)
    bound = float(binary_entropy(0.5 * (1.0 + edge)))
    assert found.bound == pytest.approx(bound, abs=1e-12)
    assert kl_divergence(clean, twisted, found.alpha, weights) <= bound - entropy(clean, weights) + 1e-12
    best = best_fixed_alpha(clean, twisted, weights)
    assert cross_entropy(clean, twisted, best, weights) <= found.cross_entropy + 1e-12


@pytest.mark.parametrize("trial", range(60))
def test_theorem_thmALPHAGLOBsup(trial):
    """p(B) < 1: CE <= p*H_b(q) + (1-p)*(e_out*log((1+|e|)/(1-|e|)) + (1-|e|)/(1+|e|)), eta_t 0 or 1 too (1e-12)."""
    random = np.random.default_rng(2000 + trial)
    weights, clean, twisted = draw_points(random, 12)
    certain = trial % 3 == 0
    if certain:
        twisted[-1], clean[-1] = random.choice([0.0, 1.0], 2)
    z = logit(twisted)
    B = float(np.quantile(np.abs(z[:-1]), random.uniform(0.1, 0.8)))
    found = constructive_alpha(clean, twisted, B, weights)
    inside, y = np.abs(z) <= B, 2.0 * clean - 1.0
    p = weights[inside].sum() / weights.sum()
    e = float(np.average(y[inside] * z[inside], weights=weights[inside])) / B
    assert 0 < p < 1
    assert found.coverage == pytest.approx(p, rel=1e-12)
    if not certain:
        sign, out = np.sign(found.alpha), ~inside
        lost = clean[out] * np.maximum(0.0, -sign * z[out]) + (1.0 - clean[out]) * np.maximum(0.0, sign * z[out])
        e_out = float(np.average(lost, weights=weights[out])) / B
        rest = e_out * math.log((1.0 + abs(e)) / (1.0 - abs(e))) + (1.0 - abs(e)) / (1.0 + abs(e))
        assert found.edge_outside == pytest.approx(e_out, rel=1e-9)
        assert found.bound == pytest.approx(p * float(binary_entropy(0.5 * (1.0 + e))) + (1.0 - p) * rest, rel=1e-9)
    assert cross_entropy(clean, twisted, found.alpha, weights) <= found.bound + 1e-12


def test_theorem_thmALPHAGLOBsup_remark_the_edge_outside_may_be_small():
    """It generalises thmALPHAGLOB (p(B) = 1). Slip: "|e(B-bar)| >= 1" is false, it is 0 where no sign flips."""
    found = constructive_alpha([0.9, 1.0], [0.7, 0.99], B=1.0)
    assert found.coverage == 0.5
    assert found.edge_outside == 0.0
    whole = constructive_alpha([0.9, 1.0], [0.7, 0.99], B=5.0)
    assert whole.coverage == 1.0
    assert whole.bound == pytest.approx(float(binary_entropy(0.5 * (1.0 + whole.edge))), rel=1e-12)


@pytest.mark.parametrize("trial", range(60))
def test_theorem_thmALPHAGLOBsup_remark_estimated_edge(trial):
    """With e^: CE <= H_b(q^) + (e^-e)/2*log((1+e^)/(1-e^)) <= H_b(q^) + |e-e^||e^|/(1-|e^|). Slip: the factor 2."""
    random = np.random.default_rng(3000 + trial)
    weights, clean, twisted = draw_points(random, 8)
    B = float(np.abs(logit(twisted)).max())
    guess = float(random.choice([random.uniform(-0.999, 0.999), 0.0, 1e-12, 0.999999]))
    found = constructive_alpha(clean, twisted, B, weights, estimated_edge=guess)
    assert found.edge_used == guess
    first = float(binary_entropy(0.5 * (1.0 + guess)))
    tight = first + 0.5 * (guess - found.edge) * math.log((1.0 + guess) / (1.0 - guess))
    assert found.bound == pytest.approx(tight, rel=1e-9)
    assert cross_entropy(clean, twisted, found.alpha, weights) <= found.bound + 1e-12
    assert found.bound <= first + abs(found.edge - guess) * abs(guess) / (1.0 - abs(guess)) + 1e-12
    part = constructive_alpha(clean, twisted, B * 0.6, weights, estimated_edge=guess)  # Now p(B) is below 1.
    assert part.coverage < 1
    assert cross_entropy(clean, twisted, part.alpha, weights) <= part.bound + 1e-12


def test_theorem_thmALPHAGLOBsup_remark_the_printed_constant_is_too_small():
    """Slip: with eta_c = 1/2, logit(eta_t) = 1 = B (e = 0) and e^ = 1/2, CE = .837 exceeds the paper's bound .812."""
    found = constructive_alpha([0.5], [expit(1.0)], B=1.0 + 1e-15, estimated_edge=0.5)
    printed = float(binary_entropy(0.75)) + 0.5 * 0.5 / (2.0 * 0.5)
    assert found.cross_entropy > printed + 0.02
    assert found.cross_entropy == pytest.approx(found.bound, rel=1e-12)  # The corrected bound is tight here.


def test_theorem_thmALPHAGLOBsup_curvature():
    """L(alpha) = log(1+exp(alpha*B)) - alpha*B*(1+e)/2 is least at alpha*, L(alpha*) = H_b(q), L'' = B^2(1-e^2)/4."""
    random = make_rng()
    flatness = []
    for B, edge in [(1.0, 0.0), (2.0, 0.3), (2.0, -0.7), (2.0, 0.99), *random.uniform(0.1, 0.9, (5, 2))]:
        point = expit(edge * B)  # One x with eta_c = 1 has the edge `edge`.
        found = constructive_alpha([1.0], [point], float(B))
        assert found.edge == pytest.approx(edge, abs=1e-12)

        def L(alpha, B=B, edge=found.edge):
            return mpmath.log(1 + mpmath.exp(alpha * mpf(B))) - alpha * mpf(B) * (1 + mpf(edge)) / 2

        assert abs(mpmath.diff(L, found.alpha)) < 1e-9
        assert float(mpmath.diff(L, found.alpha, 2)) == pytest.approx(found.curvature, rel=1e-9)
        assert found.curvature == pytest.approx(B**2 * (1.0 - found.edge**2) / 4.0, rel=1e-12)
        assert float(L(found.alpha)) == pytest.approx(found.bound, rel=1e-9)
        flatness.append((B == 2.0, abs(found.alpha), found.curvature))
    same = sorted(row[1:] for row in flatness if row[0])  # At one B, the larger |alpha*| is, the flatter it is.
    assert (np.diff([curvature for _, curvature in same]) < 0).all()


def test_figure_CEUB():
    """x uniform on [-2, 2], eta_c = sigma(x/10), eta_t = sigma(x/.6): K <= L, near each other, least at about the same
    alpha. Slip: the figure's B = 2 is below the logits it draws (3.33), the Lemma promises K <= L from 10/3 on only."""
    x = (np.arange(2000) + 0.5) / 500.0 - 2.0
    clean, twisted = expit(x / 10.0), expit(x / 0.6)
    alphas = np.linspace(-4.0, 4.0, 81)
    K = np.array([cross_entropy(clean, twisted, alpha) for alpha in alphas])
    edge_sum = float(np.mean((2.0 * clean - 1.0) * x / 0.6))
    for B in (2.0, 10.0 / 3.0):
        L = np.logaddexp(0.0, alphas * B) - alphas * (B + edge_sum) / 2.0
        assert (K <= L + 1e-12).all()
        if B == 2.0:
            assert (L - K)[np.abs(alphas) <= 1.0].max() < 0.06
            assert abs(alphas[K.argmin()] - alphas[L.argmin()]) < 0.11
    assert np.abs(logit(twisted)).max() > 3.3
    assert constructive_alpha(clean, twisted, B=2.0).coverage == pytest.approx(0.6, abs=1e-3)


@pytest.mark.parametrize("p", [1e-9, 0.01, 0.3, 0.5, expit(1.0), 0.9, 1.0 - 1e-9])
def test_theorem_thmALPHAGLOBsup_remark_gains_over_the_proper_choice(p):
    """Logits +-1, B = 1, p = P(Y*z = 1): e = 2p-1, alpha* = logit(p), CE(alpha*) = H(p), CE(1) = log(1+e) - p > .3."""
    clean, twisted, B = [p, 1.0 - p], expit([1.0, -1.0]), 1.0 + 1e-15
    found = constructive_alpha(clean, twisted, B)
    assert found.edge == pytest.approx(2.0 * p - 1.0, abs=1e-12)
    assert found.alpha == pytest.approx(float(logit(p)), rel=1e-6, abs=1e-9)
    assert found.cross_entropy == pytest.approx(float(binary_entropy(p)), rel=1e-6)
    at_one = cross_entropy(clean, twisted, 1.0)
    assert at_one == pytest.approx(math.log(1.0 + math.e) - p, rel=1e-12)
    assert at_one > 0.3
    assert found.cross_entropy <= at_one + 1e-12


def test_theorem_thmALPHAGLOBsup_remark_polarity():
    """alpha* <= 0 iff e <= 0: a twist across 1/2 flips the polarity, tilt(eta, alpha) = tilt(1-eta, -alpha)."""
    random = make_rng()
    for _ in range(100):
        weights, clean, twisted = draw_points(random, 5)
        found = constructive_alpha(clean, twisted, float(np.abs(logit(twisted)).max()), weights)
        assert np.sign(found.alpha) == np.sign(found.edge)
    clean = np.array([0.05, 0.2, 0.9])
    flipped = constructive_alpha(clean, 1.0 - clean, B=3.0)
    assert flipped.alpha < 0
    estimate = tilt(1.0 - clean, flipped.alpha)
    assert ((estimate > 0.5) == (clean > 0.5)).all()
    np.testing.assert_allclose(estimate, tilt(clean, -flipped.alpha), rtol=1e-12)


# ---- Section 5 and Appendix "app-PIL": links ----


@pytest.mark.parametrize("alpha", [0.5, *NEAR_ONE, 1.1, 1.5, 2.0, 4.0, 8.0, -2.0])
@pytest.mark.thinned(3)
def test_equation_defweights(alpha):
    """F'(z) = -(link)^{-1}(-z), link = (-L_)' = l_{-1}(t) - l_1(t). Slips: the sign, and an exponent c for 1/c."""
    link, v = CanonicalLink(AlphaLoss(alpha)), np.array([1e-12, 0.01, 0.3, 0.4999, 0.5, 0.8, 0.999])
    np.testing.assert_allclose(link.link(v), convert_to_floats(exact.canonical_link(x, alpha) for x in v), rtol=1e-10)
    derivative = mpmath.diff(lambda v: -exact.bayes_risk(v, alpha), mpf(0.7))
    assert float(link.link(0.7)) == pytest.approx(float(derivative), rel=1e-9)
    a, c, t = abs(mpf(alpha)), exact.conjugate(alpha), exact.tilted_estimate(0.7, abs(alpha))
    if a not in (1, 2) and c < 100 and a > 1:
        assert abs(c * t**c - c * (1 - t) ** c - derivative) > 1e-3  # The printed exponent gives something else.
    z = np.array([-30.0, -1.2, -0.5, -1e-9, 0.0, 0.3, 0.9, 1.1, 30.0])
    np.testing.assert_allclose(
        link.inverse(z), convert_to_floats(exact.canonical_inverse(x, alpha) for x in z), rtol=1e-9
    )
    np.testing.assert_allclose(
        link.margin_loss(z), convert_to_floats(exact.surrogate(x, alpha) for x in z), rtol=1e-9, atol=1e-15
    )
    h, inner = 1e-6, z[1:-1]
    slope = (link.margin_loss(inner + h) - link.margin_loss(inner - h)) / (2 * h)
    np.testing.assert_allclose(slope, -link.inverse(-inner), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(link.weights(z), link.inverse(-z))


def test_equation_defweights_easy_inversions():
    """The inversion is easy for log (logistic), square ((1+z)/2); at alpha = 2, t(z) = 1/2 + z*sqrt(8 - z^2)/8."""
    z = np.linspace(-1.99, 1.99, 200)
    np.testing.assert_allclose(CanonicalLink(LogLoss()).inverse(z), expit(z), rtol=1e-14)
    np.testing.assert_allclose(CanonicalLink(SquareLoss()).inverse(z), np.clip((1.0 + z) / 2.0, 0.0, 1.0), atol=1e-15)
    two = CanonicalLink(AlphaLoss(2.0)).tilted(z)
    np.testing.assert_allclose(two, 0.5 + z * np.sqrt(8.0 - z * z) / 8.0, rtol=1e-10)


@pytest.mark.parametrize("loss", [*PROPER, *map(AlphaLoss, [0.5, 1.0001, 1.5, 3.0, 8.0]), FocalLoss(2.0)], ids=repr)
def test_lemma_lemINVERTLP(loss):
    """f_l = -L_' at 0, 1/2, 1; its inverse is (i) 0, (ii, iii) one partial loss each, (iv) 1; continuous (1e-7)."""
    link, canonical = ClippedLink(loss), CanonicalLink(loss)
    ends = np.array([0.0, 0.5, 1.0])
    np.testing.assert_allclose(link.link(ends), canonical.link(ends), rtol=1e-13, atol=1e-13)
    top, middle = float(loss.partial_pos(0.0)), float(loss.partial_pos(0.5))
    assert link.clip == pytest.approx(top, rel=1e-12)
    ratio = (middle - top) / top if math.isfinite(top) else -1.0  # The limit of the ratio is -1.
    z = -np.minimum(top, 20.0) * np.array([0.999, 0.7, 0.3, 0.1, 1e-6])
    clean = [
        brentq(lambda u, y=y: float(loss.partial_pos(u)) - y, 1e-12, 1.0, xtol=1e-300, rtol=1e-13)
        for y in ratio * z + middle
    ]
    np.testing.assert_allclose(link.tilted(z), clean, rtol=1e-7)
    np.testing.assert_allclose(link.inverse(z), loss.tilted_inverse(np.array(clean)), rtol=1e-7)
    np.testing.assert_allclose(link.inverse(-z), 1.0 - link.inverse(z), rtol=1e-7)  # This is (iii), by (S).
    if math.isfinite(top):
        np.testing.assert_array_equal(link.inverse([-top - 1.0, -1.01 * top, 1.01 * top, INF]), [0, 0, 1, 1])
    fine = np.linspace(-min(top, 6.0) * 1.1, min(top, 6.0) * 1.1, 20001)
    steps = np.diff(link.inverse(fine))
    assert (steps >= -1e-12).all()
    # There is no jump; at the clip the tangent may be vertical.
    assert steps[np.abs(fine[1:]) < 0.99 * top].max() < 5e-3
    assert link.inverse(-min(top, 40.0) * (1.0 - 1e-15)) < 0.01
    generic = ClippedLink.numerical(loss)
    np.testing.assert_allclose(generic.inverse(fine[::500]), link.inverse(fine[::500]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("loss", [*PROPER, *map(AlphaLoss, [0.5, 1.5, 4.0]), FocalLoss(2.0)], ids=repr)
def test_lemma_lemINVERTLP_derivable(loss):
    """(S) and (D): the clipped inverse link has a derivative at 0 too, where its pieces meet (1e-4); S is needed."""
    link, h = ClippedLink(loss), 1e-6
    before, middle, after = (float(link.inverse(z)) for z in (-h, 0.0, h))
    slope = float(link.inverse_derivative(0.0))
    assert (middle - before) / h == pytest.approx(slope, rel=1e-4)
    assert (after - middle) / h == pytest.approx(slope, rel=1e-4)
    with pytest.raises(ValueError, match="property S"):
        ClippedLink(AffinePiece(0.3, 0.5))


@pytest.mark.parametrize("alpha", [1.0 + 1e-12, 1.0001, 1.1, 1.5, 2.0, 2.7, 4.0, 8.0, 1e3, 1e6, -1.5, -4.0])
def test_lemma_lemPILalphaloss(alpha):
    """f_l(u) and its inverse in closed form equal the paper's printed formulas, evaluated exactly (rtol 1e-11)."""
    link, random = ClippedLink(AlphaLoss(alpha)), make_rng()
    u = np.concatenate([[1e-12, 0.3, 0.5, 0.7], random.random(20)])
    np.testing.assert_allclose(
        link.link(u), convert_to_floats(exact.clipped_link(x, alpha) for x in u), rtol=1e-9, atol=1e-15
    )
    c = link.clip
    size = min(c, 30.0)
    inner = np.concatenate([[-0.99, -1e-9, 0.0, 1e-9, 0.5, 0.99], random.uniform(-1.0, 1.0, 40)]) * size
    np.testing.assert_allclose(
        link.inverse(inner), convert_to_floats(exact.clipped_inverse(z, alpha) for z in inner), rtol=1e-11
    )
    tilted = convert_to_floats(exact.clipped_tilted(z, alpha) for z in inner)
    np.testing.assert_allclose(link.tilted(inner), tilted, rtol=1e-11)
    beyond = np.nextafter(c, INF)  # The float c itself may lie inside the exact one.
    np.testing.assert_array_equal(link.inverse([-INF, -beyond, beyond, INF]), [0.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(link.inverse(c), float(exact.clipped_inverse(c, alpha)), rtol=1e-9)
    assert float(link.inverse_derivative(0.0)) == pytest.approx(1.0 / (2.0 * abs(alpha)), rel=1e-12)


@pytest.mark.parametrize("alpha", [1.0 + 1e-12, 1.0001, 1.1, 2.0, 4.0, 1e6])
@pytest.mark.thinned(3)
def test_lemma_lemPILalphaloss_implied_margin_loss(alpha):
    """PILBoost descends G(m) = integral of f(-s) over s >= m, which is convex with G' = -f(-m) (rtol 1e-9)."""
    link = ClippedLink(AlphaLoss(alpha))
    for m in [-1.5, -0.6, 0.0, 0.4, 0.99]:
        truth = float(exact.implied_margin_loss(m, alpha))
        assert float(link.margin_loss(m)) == pytest.approx(truth, rel=1e-9)


def test_lemma_lemPILalphaloss_limits():
    """Limits: a Laplace distribution function at alpha = 1, 1/2 inside (-1, 1) at +inf; no clip below alpha = 1."""
    z = np.linspace(-5.0, 5.0, 101)
    laplace = np.where(z <= 0, np.exp(-np.abs(z)) / 2.0, 1.0 - np.exp(-np.abs(z)) / 2.0)
    for alpha in NEAR_ONE[:3]:
        np.testing.assert_allclose(ClippedLink(AlphaLoss(alpha)).inverse(z), laplace, rtol=1e-10)
    step = ClippedLink(AlphaLoss(INF)).inverse([-1.0, -0.999, 0.0, 0.999, 1.0])
    np.testing.assert_array_equal(step, [0.0, 0.5, 0.5, 0.5, 1.0])
    below = ClippedLink(AlphaLoss(0.5))
    np.testing.assert_allclose(
        below.inverse(z), convert_to_floats(exact.clipped_inverse(x, 0.5) for x in z), rtol=1e-12
    )
    assert below.inverse(-1e6) > 0


class ClippedPartialLosses(Loss):
    """The alpha-loss with l_1 replaced by 0 from 1/2 on, l_{-1} up to 1/2."""

    def partial_pos(self, u):
        return np.where(np.asarray(u) >= 0.5, 0.0, AlphaLoss(2.0).partial_pos(u))


def test_remark_remDer():
    """Clipping the partial losses themselves is not the clipped link: L_ becomes constant, its slope 0."""
    loss, v = ClippedPartialLosses(), np.linspace(0.01, 0.99, 99)
    np.testing.assert_allclose(loss.bayes_risk(v), 0.0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(loss.tilted_set(v), 0.5, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="invertible"):
        CanonicalLink(loss)
    assert (np.diff(ClippedLink(AlphaLoss(2.0)).link(v)) > 0).all()


def measure_link_distance(alpha):
    """Scores and the distance of clipped and exact inverse link there, on a grid that is dense near the clip."""
    loss = AlphaLoss(alpha)
    exact_link, clipped = CanonicalLink(loss), ClippedLink(loss)
    odds = np.linspace(0.0, 60.0, 20001)
    z = np.concatenate([link.link(expit(odds / alpha)) for link in (exact_link, clipped)])
    z = np.unique(np.concatenate([z, np.linspace(0.0, min(exact_link.clip, 60.0), 20001)]))
    return z, np.abs(clipped.inverse(z) - exact_link.inverse(z))


@pytest.mark.parametrize(("alpha", "printed"), [(1.1, 0.084), (1.5, 0.080), (2.0, 0.076), (4.0, 0.073), (8.0, 0.075)])
def test_lemma_edgeALPHA(alpha, printed):
    """alpha * max|clipped - exact inverse| is .084, .080, .076, .073, .075, so at most K/alpha with K = .133."""
    z, distance = measure_link_distance(alpha)
    assert round(alpha * float(distance.max()), 3) == printed
    worst = z[distance.argmax()]
    twin = abs(exact.clipped_inverse(worst, alpha) - exact.canonical_inverse(worst, alpha))
    assert float(distance.max()) == pytest.approx(float(twin), rel=1e-6)


@pytest.mark.parametrize("alpha", [*NEAR_ONE[1:], 1.01, 1.2, 2.7, 3.0, 6.0, 12.0, 20.0, 1e3, 1e6])
def test_lemma_edgeALPHA_anywhere(alpha):
    """alpha * |clipped - exact inverse| <= .086 everywhere, inside I_alpha = +-c*[1 - 1/alpha^4, 1] too."""
    z, distance = measure_link_distance(alpha)
    assert alpha * distance.max() <= 0.086
    assert distance.max() > 0
    assert ClippedLink(AlphaLoss(alpha)).inverse(-z[3]) < 0.5  # The distance is symmetric, as both links are.
    mirrored = np.abs(ClippedLink(AlphaLoss(alpha)).inverse(-z) - CanonicalLink(AlphaLoss(alpha)).inverse(-z))
    np.testing.assert_allclose(mirrored, distance, rtol=0, atol=1e-12)


# ---- Section 5: PILBoost ----


@cache
def draw_sample():
    """200 noisy rows in the plane."""
    random = make_rng()
    X = random.normal(size=(200, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 0] > 0, 1.0, -1.0)
    return X, np.where(random.random(200) < 0.1, -y, y)


@cache
def fit(link, step_size, rounds=60, depth=2):
    """The first rounds of PILBoost on the sample, its link and their certificate."""
    X, y = draw_sample()
    stream = pilboost(X, y, DecisionTreeRegressor(max_depth=depth, random_state=0), link, step_size)
    done = tuple(one for one, _ in zip(stream, range(rounds), strict=False))
    return done, certify(done, link, step_size)


LINKS = [kind(AlphaLoss(alpha)) for kind in (ClippedLink, CanonicalLink) for alpha in (0.8, 1.0, 1.1, 2.0, 4.0)]


def list_risks(margin_loss, rounds):
    """The empirical risk before every round and after the last."""
    return np.array([float(margin_loss(0.0)), *(float(margin_loss(one.margins).mean()) for one in rounds)])


@pytest.mark.parametrize("link", LINKS, ids=repr)
@pytest.mark.thinned(3)
def test_algorithm_cboost(link):
    """w_i = f(-y_i*H(x_i)), edge = mean(w*y*h), beta = a_f*edge, H += beta*h, from H = 0 (1e-14)."""
    X, y = draw_sample()
    rounds, _ = fit(link, 0.5)
    score = np.zeros(y.size)
    for one in rounds:
        np.testing.assert_allclose(one.weights, link.inverse(-y * score), rtol=1e-12, atol=1e-15)
        h = one.hypothesis.predict(X)
        assert one.edge == pytest.approx(float(np.mean(one.weights * y * h)), abs=1e-14)
        assert one.leverage == pytest.approx(0.5 * one.edge, abs=1e-14)
        score = score + one.leverage * h
        np.testing.assert_allclose(one.margins, y * score, rtol=0, atol=1e-13)


@pytest.mark.parametrize("link", LINKS, ids=repr)
@pytest.mark.thinned(3)
def test_assumptions_boundH_and_defWLA(link):
    """(R) |h| <= M; (WLA) the normalised edge is in [-M, M] and at least gamma*M in every round (its own constants)."""
    rounds, certificate = fit(link, default_step_size(link))
    assert all(np.abs(one.agreement).max() <= certificate.M for one in rounds)
    assert certificate.M <= 1.0 + 1e-12  # The tree predicts means of labels.
    normalised = np.array([abs(one.edge) / one.weights.mean() for one in rounds])
    assert (normalised <= certificate.M + 1e-12).all()
    assert normalised.min() == pytest.approx(certificate.gamma * certificate.M, rel=1e-12)
    assert 0 < certificate.gamma < 1


@pytest.mark.parametrize("link", LINKS, ids=repr)
@pytest.mark.thinned(3)
def test_assumption_defLT_O1(link):
    """(O1) |E[y*h*(-F')] - edge| <= zeta*|edge|, 0 for the exact link. Slips: -F' for F', |edge| for edge."""
    rounds, certificate = fit(link, 0.5)
    exact_link, before = CanonicalLink(link.loss), np.zeros(200)
    for one, zeta in zip(rounds, certificate.exact.zeta, strict=True):
        discrepancy = abs(float(np.mean(one.agreement * exact_link.weights(before))) - one.edge)
        assert discrepancy == pytest.approx(zeta * abs(one.edge), abs=1e-12)
        before = one.margins
    assert (certificate.implied.zeta <= 1e-12).all()
    assert (certificate.exact.zeta.max() > 1e-3) == isinstance(link, ClippedLink)


def test_assumption_defLT_O2():
    """(O2), two-sided: a_f*F''*M^2 in (1-zeta)*[1-pi, 1+pi] gives Z(a) = (1-zeta)^2(1-pi^2)/(2F''M^2).
    Slip: one-sided it would allow a_f -> 0, which decreases nothing."""
    random = make_rng()
    for _ in range(200):
        curvature, M, zeta = random.uniform(0.05, 2.0), random.uniform(0.1, 3.0), random.uniform(0.0, 0.95)
        step = random.uniform(0.0, 2.0) * (1.0 - zeta) / (curvature * M**2) + 1e-9
        condition = StepCondition(curvature, step, M, zeta)
        gain = (1.0 - zeta - curvature * step * M**2 / 2.0) * step
        promised = (1.0 - zeta) ** 2 * (1.0 - condition.pi**2) / (2.0 * curvature * M**2)
        assert gain == pytest.approx(promised, rel=1e-6, abs=1e-9)
        assert condition.holds == (0 < step < 2.0 * (1.0 - zeta) / (curvature * M**2))
    tiny = step_condition(ClippedLink(AlphaLoss(1.5)), 1e-9)
    assert tiny.pi == pytest.approx(1.0, abs=1e-8)
    ideal = step_condition(ClippedLink(AlphaLoss(1.5)), tiny.ideal_step)
    assert ideal.pi == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.8, 1.0, 1.1, 1.5, 2.0, 2.5, 4.0])
def test_assumption_defLT_O2_curvature(alpha):
    """sup F'' is finite up to alpha = 2 and infinite above (at the clip); F''(0) = 2**(1/c - 2)/alpha."""
    link = CanonicalLink(AlphaLoss(alpha))
    largest = link.largest_curvature(-INF, INF)
    assert math.isinf(largest) == (alpha > 2)
    assert float(link.curvature(0.0)) == pytest.approx(2.0 ** (-1.0 - 1.0 / alpha) / alpha, rel=1e-12)
    z = np.linspace(-5.0, 5.0, 20001)
    curvature = link.curvature(z)
    assert (curvature <= largest * (1.0 + 1e-9)).all()
    if alpha <= 2:
        at_clip = 0.5 if alpha == 2 else 0.0
        assert largest == pytest.approx(max(float(curvature.max()), at_clip), rel=1e-4)
    assert step_condition(link, 1.0).holds == (alpha <= 2 and largest < 2)


@pytest.mark.parametrize("link", LINKS, ids=repr)
@pytest.mark.thinned(3)
def test_theorem_genBOOST_decrease_per_round(link):
    """Each round lowers the risk of F by at least (1 - zeta - F''*a_f*M^2/2)*a_f*edge^2; of G too, with zeta = 0."""
    met = 0
    for step in (0.3, default_step_size(link)):
        rounds, certificate = fit(link, step)
        for surrogate in (certificate.exact, certificate.implied):
            fell = -np.diff(list_risks(surrogate.link.margin_loss, rounds))
            np.testing.assert_allclose(surrogate.decrease, fell, rtol=0, atol=1e-12)
            applicable = surrogate.bound > 0
            assert (fell[applicable] >= surrogate.bound[applicable] - 1e-12).all()
            assert VIOLATED not in surrogate.verdicts
            assert surrogate.verdicts == tuple(MET if yes else NOT_APPLICABLE for yes in applicable)
            met += int(applicable.sum())
    assert met > 60


@pytest.mark.parametrize("link", LINKS, ids=repr)
@pytest.mark.thinned(3)
def test_theorem_genBOOST_risk(link):
    """sum of squared mean weights >= Q*(F(0) - F(z*)) => risk <= F(z*), after any round. Slip: mean, not total."""
    finite = 0
    for rounds_done in (1, 2, 5, 20, 60):
        rounds, certificate = fit(link, 1.0, rounds_done)
        for surrogate in (certificate.exact, certificate.implied):
            assert surrogate.last_risk <= surrogate.guaranteed_risk + 1e-12
            assert surrogate.last_risk == pytest.approx(list_risks(surrogate.link.margin_loss, rounds)[-1], rel=1e-12)
            step = surrogate.step
            if math.isfinite(surrogate.Q):
                finite += 1
                slack = (1.0 - step.zeta) ** 2 * (1.0 - step.pi**2)
                assert pytest.approx(2.0 * step.curvature / (certificate.gamma**2 * slack), rel=1e-12) == surrogate.Q
                promised = surrogate.first_risk - float(np.sum(certificate.mean_weights**2)) / surrogate.Q
                assert surrogate.guaranteed_risk == pytest.approx(max(0.0, promised), rel=1e-12)
                assert surrogate.guaranteed_risk < surrogate.first_risk
    assert finite >= (2 if link.loss.alpha > 2 else 5)


@pytest.mark.parametrize("link", LINKS, ids=repr)
@pytest.mark.thinned(3)
def test_theorem_genBOOST_margins(link):
    """After T >= Q*(F(0) - (1-eps)*inf F - eps*F(theta))/(eps*f~(-theta))^2 rounds, P[margin <= theta] <= eps at one.
    The weight f~ is that of the link boosted with, whatever the loss F; inf F is 0."""
    checked, alpha, is_clipped = 0, link.loss.alpha, isinstance(link, ClippedLink)
    rounds, certificate = fit(link, 1.0, 60, depth=5)
    boosted = exact.clipped_inverse if is_clipped else exact.canonical_inverse
    implied = exact.implied_margin_loss if is_clipped else exact.surrogate
    for surrogate, margin_loss in ((certificate.exact, exact.surrogate), (certificate.implied, implied)):
        for theta in (0.0, 0.1, 0.3):
            for epsilon in (0.5, 0.7, 0.9, 1.0):
                needed = surrogate.rounds_for(theta, epsilon)
                if math.isfinite(surrogate.Q):
                    gap = margin_loss(0, alpha) - mpf(epsilon) * margin_loss(theta, alpha)
                    weight = boosted(-mpf(theta), alpha)
                    promised = max(0.0, float(surrogate.Q * gap / (mpf(epsilon) * weight) ** 2))
                    assert needed == pytest.approx(promised, rel=1e-9, abs=1e-9)
                if needed <= len(rounds):
                    shares = [float(np.mean(one.margins <= theta)) for one in rounds[: math.ceil(needed)]]
                    assert min([1.0, *shares]) <= epsilon
                    checked += needed > 0
    assert checked > 0 or link.loss.alpha > 2
    with pytest.raises(ValueError, match="clip"):
        certificate.exact.rounds_for(certificate.exact.link.clip, 0.5)


def test_theorem_genBOOST_remark_rates():
    """Q pays 1/gamma^2 and 1/(1-zeta)^2 (same pi), the rounds 1/epsilon^2 times the gap."""
    link = ClippedLink(AlphaLoss(1.5))
    one = fit(link, 1.0)[1].implied
    assert pytest.approx(4.0 * one.Q, rel=1e-12) == replace(one, gamma=one.gamma / 2.0).Q
    slow = replace(one, step=replace(one.step, zeta=0.5, step_size=0.5 * one.step.step_size))
    assert slow.step.pi == pytest.approx(one.step.pi, abs=1e-9)  # The zeta was 0 for the implied loss.
    assert pytest.approx(4.0 * one.Q, rel=1e-9) == slow.Q
    few, many = one.rounds_for(0.0, 1e-3), one.rounds_for(0.0, 1e-4)
    assert many / few == pytest.approx(100.0, rel=1e-2)


def test_theorem_genBOOST_remark_machine_types():
    """An inverse link rounded to a machine type still boosts: (O1) holds with a zeta of the size of its rounding."""

    class HalfPrecision(type(CanonicalLink(LogLoss()))):
        def weights(self, margin):
            return super().weights(margin).astype(np.float16).astype(float)

    _, certificate = fit(HalfPrecision(LogLoss()), 1.0)
    zeta = certificate.exact.zeta
    assert 0 < zeta.max() <= 2.0**-11 / certificate.gamma
    assert set(certificate.exact.verdicts) == {MET}


@pytest.mark.parametrize("trial", range(30))
@pytest.mark.thinned(3)
def test_section_PIL_sufficient_conditions_for_O1(trial):
    """No margin in I_alpha, normalised edge >= .14*M, mean weight >= .4, alpha >= 2.7 imply zeta <= 2.5/2.7 = .926."""
    random = np.random.default_rng(4000 + trial)
    alpha = float(random.choice([2.7, 4.0, 8.0, random.uniform(2.7, 20.0)]))
    clipped, canonical = ClippedLink(AlphaLoss(alpha)), CanonicalLink(AlphaLoss(alpha))
    reached = 0
    for _ in range(300):
        margins = random.uniform(-1.0, random.uniform(-0.5, 1.0), 30) * clipped.clip * (1.0 - alpha**-4.0)
        weights, used = canonical.weights(margins), clipped.weights(margins)
        # The worst weak hypothesis pays where the links differ.
        h = np.clip(np.sign(used - weights) * random.choice([-1.0, 1.0]) + random.normal(0.0, 0.7, 30), -1.0, 1.0)
        edge = float(np.mean(used * h))
        if used.mean() >= 0.4 and abs(edge) / used.mean() >= 0.14 * np.abs(h).max():
            reached += 1
            assert abs(float(np.mean(weights * h)) - edge) <= 2.5 / 2.7 * abs(edge)
    assert reached > 20


def test_section_PIL_sufficient_conditions_for_O1_on_a_run():
    """The certificate names the rounds that meet these conditions, and zeta <= .926 in each; none below alpha = 2.7."""
    flagged = 0
    for alpha in (2.7, 4.0, 8.0):
        rounds, certificate = fit(ClippedLink(AlphaLoss(alpha)), 0.3)
        held = np.array(certificate.sufficient_o1)
        assert (certificate.exact.zeta[held] <= 2.5 / 2.7).all()
        assert (certificate.mean_weights[held] >= 0.4).all()
        normalised = np.array([abs(one.edge) / one.weights.mean() for one in rounds])
        assert (normalised[held] >= 0.14 * certificate.M).all()
        flagged += int(held.sum())
    assert flagged > 30
    assert not any(fit(ClippedLink(AlphaLoss(2.0)), 0.3)[1].sufficient_o1)


def test_figure_f_alpha():
    """Condition (iii) at alpha = 5: the weight is .4 at margin .861 (Slip: .8, read off the figure); the links are
    close (.075/5)."""
    link = ClippedLink(AlphaLoss(5.0))
    assert brentq(lambda m: float(link.weights(m)) - 0.4, 0.0, 1.2) == pytest.approx(0.861, abs=1e-3)
    assert measure_link_distance(5.0)[1].max() < 0.015


def test_definition_kappa_dense():
    """Weights are kappa-dense iff their mean is >= kappa; the certificate reports the mean of every round."""
    rounds, certificate = fit(ClippedLink(AlphaLoss(1.5)), 1.0)
    np.testing.assert_allclose(certificate.mean_weights, [one.weights.mean() for one in rounds], rtol=1e-12)
    assert certificate.mean_weights[0] == pytest.approx(0.5, rel=1e-12)
    assert certificate.mean_weights[-1] < 0.4


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.0001, 1.1, 2.0, 4.0, 1e6, INF])
def test_lemma_lemKd(alpha):
    """Weights that fail to be kappa-dense leave P[y*H <= theta] <= kappa/f(-theta), for any theta in R."""
    link, random = ClippedLink(AlphaLoss(alpha)), make_rng()
    samples = [random.normal(random.normal(), random.uniform(0.1, 3.0), 50) for _ in range(50)]
    if math.isfinite(alpha):
        samples += [one.margins for one in fit(link, default_step_size(link), 20)[0]]
    bounded = 0
    for margins in samples:
        kappa = float(link.weights(margins).mean()) * (1.0 + 1e-12) + 1e-300  # The weights are just not kappa-dense.
        for theta in (-3.0, -0.5, 0.0, 0.3, 0.9, *margins[:5]):
            weight = float(link.inverse(-theta))
            if weight > 0:
                bounded += kappa < weight
                assert float(np.mean(margins <= theta)) <= kappa / weight
    assert bounded > 100
