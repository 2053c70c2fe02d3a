"""The certificate on real runs: its numbers by definition, and a theorem that is never violated."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from sklearn.tree import DecisionTreeRegressor

from helpers import reference
from untwist.boosting.algorithm import Round, pilboost
from untwist.links import CanonicalLink, ClippedLink, LogitLink, default_step_size
from untwist.losses import AlphaLoss, FocalLoss, LogLoss, MatusitaLoss, SquareLoss, SuperLoss
from untwist.theory.certificate import MET, NOT_APPLICABLE, VIOLATED, StepCondition, certify, step_condition


def draw_sample(seed, noise=0.2, n=200):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] > 0, 1.0, -1.0)
    return X, np.where(rng.random(n) < noise, -y, y)


def boost_rounds(link, step, seed=0, depth=2, rounds=40, sample_weight=None):
    X, y = draw_sample(seed)
    learner = DecisionTreeRegressor(max_depth=depth, random_state=0)
    return list(itertools.islice(pilboost(X, y, learner, link, step, sample_weight=sample_weight), rounds))


LINKS = [ClippedLink(AlphaLoss(alpha)) for alpha in (0.5, 1.0, 1.1, 1.5, 2.0, 4.0, 8.0, -2.0)]
LINKS += [CanonicalLink(AlphaLoss(alpha)) for alpha in (1.1, 2.0, 4.0)]
LINKS += [ClippedLink(loss) for loss in (LogLoss(), SquareLoss(), MatusitaLoss(), FocalLoss(2.0))]


@pytest.mark.parametrize("factor", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("link", LINKS, ids=repr)
@pytest.mark.thinned(7)
def test_no_round_violates_the_theorem(link, factor):
    step = factor * default_step_size(link)
    certificate = certify(boost_rounds(link, step), link, step)
    for one in (certificate.exact, certificate.implied):
        assert set(one.verdicts) <= {MET, NOT_APPLICABLE}
        applicable = one.bound > 0
        assert (one.decrease[applicable] >= one.bound[applicable] - 1e-12).all()
        assert [verdict == MET for verdict in one.verdicts] == applicable.tolist()
        assert one.last_risk <= one.guaranteed_risk + 1e-12


@pytest.mark.parametrize("alpha", [1.1, 1.5, 2.0])
def test_the_default_step_is_certified_on_the_implied_loss(alpha):
    """Up to alpha = 2 the default step satisfies (O2) with zeta = 0, so every round is promised a decrease."""
    link = ClippedLink(AlphaLoss(alpha))
    step = default_step_size(link)
    certificate = certify(boost_rounds(link, step), link, step)
    assert set(certificate.implied.verdicts) == {MET}
    assert certificate.implied.step.holds
    assert math.isfinite(certificate.implied.Q)


def test_numbers_by_definition():
    link, step = ClippedLink(AlphaLoss(2.0)), 2.0
    weight = np.random.default_rng(5).random(200)
    rounds = boost_rounds(link, step, sample_weight=weight)
    certificate = certify(rounds, link, step, sample_weight=weight)
    exact = CanonicalLink(AlphaLoss(2.0))
    share = weight / weight.sum()
    assert max(np.abs(one.agreement).max() for one in rounds) == certificate.M
    before = np.zeros(200)
    for t, one in enumerate(rounds):
        mean_weight = share @ link.weights(before)
        assert certificate.mean_weights[t] == pytest.approx(mean_weight)
        assert abs(one.edge) >= certificate.gamma * mean_weight * certificate.M * (1 - 1e-12)
        edge_exact = share @ (one.agreement * exact.weights(before))
        assert certificate.exact.zeta[t] == pytest.approx(abs(edge_exact - one.edge) / abs(one.edge), rel=1e-9)
        fell = share @ (exact.margin_loss(before) - exact.margin_loss(one.margins))
        assert certificate.exact.decrease[t] == pytest.approx(fell, rel=1e-9)
        on_the_way = before + np.linspace(0, 1, 51)[:, None] * (one.margins - before)
        assert certificate.exact.curvature[t] >= exact.curvature(on_the_way).max() * (1 - 1e-9)
        before = one.margins
    assert (certificate.implied.zeta < 1e-12).all()
    assert certificate.exact.first_risk == pytest.approx(float(AlphaLoss(2.0).partial_pos(0.5)))
    assert certificate.sufficient_o1 == (False,) * 40  # The alpha is below 2.7.


def test_bounds_and_constants_by_definition():
    """The exact loss of a run with too long a step: bounds of both signs, and what follows from them."""
    link, step = ClippedLink(AlphaLoss(2.0)), 3.0
    certificate = certify(boost_rounds(link, step), link, step)
    one = certificate.exact
    edges = np.array([made.edge for made in boost_rounds(link, step)])
    largest = np.array([np.abs(made.agreement).max() for made in boost_rounds(link, step)])
    bracket = 1 - one.zeta - one.curvature * step * largest**2 / 2
    np.testing.assert_allclose(one.bound, bracket * step * edges**2, rtol=1e-12)
    assert {verdict for verdict, positive in zip(one.verdicts, bracket > 0, strict=True) if positive} == {MET}
    assert one.first_risk - one.decrease.sum() == pytest.approx(one.last_risk)
    condition = certificate.implied.step
    assert (condition.curvature, condition.M) == (certificate.implied.curvature.max(), certificate.M)
    assert condition.zeta == certificate.implied.zeta.max()
    bend = step * condition.curvature * condition.M**2
    assert condition.pi == pytest.approx(abs(bend / (1 - condition.zeta) - 1))
    assert condition.ideal_step == pytest.approx((1 - condition.zeta) * step / bend)
    slack = (1 - condition.zeta) ** 2 * (1 - condition.pi**2)
    expected = 2 * condition.curvature / (certificate.gamma**2 * slack)
    assert math.isclose(certificate.implied.Q, expected, rel_tol=1e-9)
    promised = certificate.implied.first_risk - np.sum(certificate.mean_weights**2) / certificate.implied.Q
    assert certificate.implied.guaranteed_risk == pytest.approx(max(0.0, promised))
    gap = certificate.implied.first_risk - 0.2 * float(link.margin_loss(0.5))
    needed = certificate.implied.Q * gap / (0.2 * float(link.weights(0.5))) ** 2
    assert certificate.implied.rounds_for(0.5, 0.2) == pytest.approx(needed)
    assert certificate.implied.rounds_for(0.0, 1.0) == 0.0  # All margins are at most 0 from the start.


def test_the_step_condition_by_definition():
    condition = StepCondition(curvature=0.5, step_size=2.0, M=3.0, zeta=0.2)
    assert condition.pi == pytest.approx(2.0 * 0.5 * 9.0 / 0.8 - 1.0)
    assert condition.ideal_step == pytest.approx(0.8 / 4.5)
    assert StepCondition(1.0, 1.0, 1.0, 0.0).pi == 0.0
    assert not StepCondition(1.0, 2.0, 1.0, 0.0).holds  # Here pi is 1.
    assert StepCondition(0.0, 1.0, 1.0, 0.0).ideal_step == math.inf
    assert StepCondition(1.0, 1.0, 1.0, 1.5).ideal_step == 0.0


def make_round(margins, edge=0.0, agreement=1.0, weight=0.5, step=1.0):
    """A round that says of itself what it is told."""
    margins = np.asarray(margins, float)
    return Round(0, None, edge, step * edge, np.full(margins.shape, weight), np.full(margins.shape, agreement), margins)


def test_a_learner_without_an_edge_is_promised_nothing():
    link = ClippedLink(AlphaLoss(2.0))
    found = certify([make_round([0.0, 0.0], agreement=0.0)], link, 1.0)
    assert (found.M, found.gamma) == (0.0, 0.0)
    assert found.implied.zeta.tolist() == [0.0]
    assert found.implied.verdicts == (NOT_APPLICABLE,)
    assert math.isinf(found.implied.Q)
    assert found.implied.guaranteed_risk == found.implied.first_risk
    assert found.implied.step.ideal_step == math.inf
    other = certify([make_round([0.0, 0.0])], link, 1.0)  # The round denies the edge that its own weights have.
    assert other.implied.zeta.tolist() == [math.inf]
    assert not other.implied.step.holds


def test_a_broken_promise_is_told():
    link = ClippedLink(AlphaLoss(2.0))
    found = certify([make_round([0.0, 0.0], edge=0.5)], link, 1.0)  # The margins stay where they are.
    assert found.implied.verdicts == (VIOLATED,)
    assert "was broken" in found.summary()
    assert "1 violated" in found.summary()


@pytest.mark.parametrize(
    ("change", "enough"),
    [
        ({}, True),
        ({"edge": 0.14 * 0.4 - 1e-9}, False),
        ({"edge": -0.14 * 0.4}, True),
        ({"weight": 0.4 - 1e-9}, False),
        ({"alpha": 2.7}, True),
        ({"alpha": -2.7}, True),
        ({"alpha": 2.69}, False),
        ({"agreement": 1.1}, False),
    ],
)
def test_the_sufficient_conditions_of_the_paper(change, enough):
    settings = {"edge": 0.14 * 0.4, "weight": 0.4, "alpha": 4.0, "agreement": 1.0} | change
    link = ClippedLink(AlphaLoss(settings.pop("alpha")))
    assert certify([make_round([0.1, 0.1], **settings)], link, 1.0).sufficient_o1 == (enough,)


@pytest.mark.parametrize(
    ("share", "outside"), [(0.0, True), (0.995, True), (0.997, False), (-0.997, False), (1.0, False), (1.001, True)]
)
def test_margins_close_below_the_clip_are_where_the_links_part(share, outside):
    """The band of Lemma "edgeALPHA": from 1 - 1/alpha^4 to 1 times the clip, before a round."""
    link = ClippedLink(AlphaLoss(4.0))
    first = make_round([0.0, share * link.clip], edge=0.4)
    assert certify([first, make_round([0.0, 0.0], edge=0.4)], link, 1.0).sufficient_o1 == (True, outside)


def test_other_losses_have_no_sufficient_conditions():
    link = ClippedLink(LogLoss())
    certificate = certify([make_round([0.1, 0.1], edge=0.4)], link, 1.0)
    assert certificate.sufficient_o1 == (False,)  # An alpha of 1 is too small for any band.
    square = certify([make_round([0.1, 0.1], edge=0.4)], ClippedLink(SquareLoss()), 1.0)
    assert square.sufficient_o1 is None
    assert "sufficient conditions" not in square.summary()


def test_margin_bound_of_the_second_part():
    """If the theorem asks for T rounds, then at some round up to T few margins are small. Here T is within reach."""
    link = ClippedLink(AlphaLoss(1.5))
    step = default_step_size(link)
    X = np.array([[1.0], [-1.0]] * 20)
    learner = DecisionTreeRegressor(max_depth=1, random_state=0)
    rounds = list(itertools.islice(pilboost(X, X[:, 0], learner, link, step), 60))
    certificate = certify(rounds, link, step)
    needed = certificate.implied.rounds_for(theta=0.5, epsilon=0.5)
    assert 0 < needed < len(rounds)
    assert any(np.mean(one.margins <= 0.5) <= 0.5 for one in rounds[: math.ceil(needed)])
    assert certificate.implied.rounds_for(0.5, 0.1) > needed
    assert certificate.implied.rounds_for(0.5, 1e-200) == math.inf


def boost_by_the_paper(alpha, step, agreement, rounds=4):
    """Boost one hypothesis again and again as Algorithm "cboost" says, by the clipped link in 80 digits."""
    steps, leverage = [], mpf(0)
    for index in range(rounds):
        weights = [reference.clipped_inverse(-(a * leverage), alpha) for a in agreement]
        edge = sum(w * a for w, a in zip(weights, agreement, strict=True)) / len(agreement)
        before, leverage = leverage, leverage + step * edge
        steps.append((index, before, leverage, weights, edge))
    return steps


def count_rounds_by_the_paper(alpha, step, agreement, steps, theta, epsilon):
    """T >= Q(F) * (F(0) - (1-eps) * inf F - eps * F(theta)) / (eps * f~(-theta))^2, for the surrogate F, inf F = 0.

    The weight f~ is that of PILBoost (Step 2.1), the clipped link's; F'' is largest at 0 for these alphas.
    """
    M = max(abs(a) for a in agreement)
    gamma, zeta = mpf("inf"), mpf(0)
    for _, before, _after, weights, edge in steps:
        slopes = [reference.canonical_inverse(-(a * before), alpha) for a in agreement]  # These are -F'.
        edge_of_F = sum(w * a for w, a in zip(slopes, agreement, strict=True)) / len(agreement)
        zeta = max(zeta, abs(edge_of_F - edge) / abs(edge))
        gamma = min(gamma, abs(edge) / (sum(weights) / len(weights) * M))
    curvature = mpf(2) ** (-1 - 1 / mpf(alpha)) / mpf(alpha)
    for share in range(9):
        margin = share * M * steps[-1][2] / 8
        assert mpmath.diff(lambda z: reference.canonical_inverse(z, alpha), -margin) <= curvature * (1 + mpf(10) ** -20)
    pi = abs(step * curvature * M**2 / (1 - zeta) - 1)
    Q = 2 * curvature / (gamma**2 * (1 - zeta) ** 2 * (1 - pi**2))
    gap = reference.surrogate(0, alpha) - epsilon * reference.surrogate(theta, alpha)
    return float(Q * gap / (epsilon * reference.clipped_inverse(-theta, alpha)) ** 2)


@pytest.mark.parametrize(("alpha", "theta"), [(1.1, 3), (1.5, 2), (1.5, 0)])
def test_rounds_for_a_margin_are_those_of_the_paper(alpha, theta):
    """The second part of Theorem "genBOOST" divides by the weight of the link that was boosted, not by that of F."""
    step, agreement = mpf(1), [mpf("0.75"), mpf("0.5"), mpf("0.75"), mpf("-0.25")]
    steps = boost_by_the_paper(alpha, step, agreement)
    rounds = [
        Round(
            index,
            None,
            float(edge),
            float(step * edge),
            np.array(weights, float),
            np.array(agreement, float),
            np.array([a * after for a in agreement], float),
        )
        for index, _, after, weights, edge in steps
    ]
    found = certify(rounds, ClippedLink(AlphaLoss(alpha)), float(step)).exact
    needed = count_rounds_by_the_paper(alpha, step, agreement, steps, theta, mpf("0.5"))
    assert 0 < needed < math.inf
    assert found.rounds_for(theta, 0.5) == pytest.approx(needed, rel=1e-8)


def test_a_loss_that_falls_below_zero_has_that_infimum():
    """The Super Loss shifts the extremes: inf F is what it costs to be right for sure, and not 0."""
    loss = SuperLoss(LogLoss(), 0.5, 1.0)
    link = CanonicalLink(loss)
    found = certify([make_round([0.3, 0.1], edge=0.3, agreement=0.6, step=0.5)], link, 0.5).exact
    assert found.infimum == pytest.approx(float(loss.partial_pos(1.0)), rel=1e-12)
    assert found.infimum < -0.5
    gap = found.first_risk - 0.75 * float(loss.partial_pos(1.0)) - 0.25 * float(link.margin_loss(0.2))
    assert found.rounds_for(0.2, 0.25) == pytest.approx(found.Q * gap / (0.25 * float(link.inverse(-0.2))) ** 2)


def test_summary_is_plain_text():
    link, step = ClippedLink(AlphaLoss(4.0)), 8.0
    text = str(certify(boost_rounds(link, step), link, step))
    assert "promised a decrease in" in text
    assert "was kept" in text
    for part in (
        "over 40 rounds, step size 8",
        "exact surrogate F",
        "margin loss of the link",
        "(O2)",
        "not applicable",
    ):
        assert part in text


@pytest.mark.parametrize(("alpha", "holds"), [(1.0, True), (1.1, True), (2.0, True), (4.0, False), (math.inf, False)])
def test_what_o2_says_of_the_default_step(alpha, holds):
    link = ClippedLink(AlphaLoss(alpha))
    condition = step_condition(link, default_step_size(link))
    assert condition.holds is holds
    if holds:
        assert step_condition(link, condition.ideal_step).pi == pytest.approx(0, abs=1e-12)
        assert not step_condition(link, 2.1 * condition.ideal_step).holds
    assert not step_condition(link, 1.0, zeta=1.0).holds


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: certify([], LINKS[0], 1.0), "rounds must not be empty"),
        (
            lambda: certify(boost_rounds(LINKS[4], 1.0, rounds=2), LINKS[4], 2.0),
            "rounds were not made with step_size 2",
        ),
        (
            lambda: certify(boost_rounds(LINKS[4], 1.0, rounds=2), LINKS[4], 1.0, sample_weight=[1.0]),
            "weights must be 200 numbers",
        ),
        (lambda: certify([], LogitLink(AlphaLoss(4.0)), 1.0), "must have a convex margin loss"),
        (lambda: certify([], LINKS[0], 0.0), "step_size must be a number > 0"),
        (lambda: step_condition(LINKS[0], -1.0), "step_size must be a number > 0"),
        (
            lambda: certify(boost_rounds(LINKS[4], 1.0, rounds=2), LINKS[4], 1.0).implied.rounds_for(2.5, 0.1),
            "below the clip",
        ),
        (
            lambda: certify(boost_rounds(LINKS[4], 1.0, rounds=2), LINKS[4], 1.0).implied.rounds_for(0.5, 1.5),
            "epsilon must be",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
