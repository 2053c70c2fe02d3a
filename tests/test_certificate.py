"""The certificate on real runs: its numbers by definition, and a theorem that is never violated."""

import itertools
import math

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from untwist.boosting import pilboost
from untwist.certificate import MET, NOT_APPLICABLE, certify, step_condition
from untwist.links import CanonicalLink, ClippedLink, default_step_size
from untwist.losses import AlphaLoss, FocalLoss, LogLoss, MatusitaLoss, SquareLoss


def sample(seed, noise=0.2, n=200):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] > 0, 1.0, -1.0)
    return X, np.where(rng.random(n) < noise, -y, y)


def run(link, step, seed=0, depth=2, rounds=40, sample_weight=None):
    X, y = sample(seed)
    learner = DecisionTreeRegressor(max_depth=depth, random_state=0)
    return list(itertools.islice(pilboost(X, y, learner, link, step, sample_weight=sample_weight), rounds))


LINKS = [ClippedLink(AlphaLoss(alpha)) for alpha in (0.5, 1.0, 1.1, 1.5, 2.0, 4.0, 8.0, -2.0)]
LINKS += [CanonicalLink(AlphaLoss(alpha)) for alpha in (1.1, 2.0, 4.0)]
LINKS += [ClippedLink(loss) for loss in (LogLoss(), SquareLoss(), MatusitaLoss(), FocalLoss(2.0))]


@pytest.mark.parametrize("factor", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("link", LINKS, ids=repr)
def test_no_round_violates_the_theorem(link, factor):
    step = factor * default_step_size(link)
    certificate = certify(run(link, step), link, step)
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
    certificate = certify(run(link, step), link, step)
    assert set(certificate.implied.verdicts) == {MET}
    assert certificate.implied.step.holds
    assert math.isfinite(certificate.implied.Q)


def test_numbers_by_definition():
    link, step = ClippedLink(AlphaLoss(2.0)), 2.0
    weight = np.random.default_rng(5).random(200)
    rounds = run(link, step, sample_weight=weight)
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
    assert certificate.sufficient_o1 == (False,) * 40  # alpha < 2.7


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


def test_summary_is_plain_text():
    link, step = ClippedLink(AlphaLoss(4.0)), 8.0
    text = str(certify(run(link, step), link, step))
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
        (lambda: certify(run(LINKS[4], 1.0, rounds=2), LINKS[4], 2.0), "rounds were not made with step_size 2"),
        (
            lambda: certify(run(LINKS[4], 1.0, rounds=2), LINKS[4], 1.0, sample_weight=[1.0]),
            "weights must be 200 numbers",
        ),
        (lambda: certify([], LINKS[0], 0.0), "step_size must be a number > 0"),
        (lambda: step_condition(LINKS[0], -1.0), "step_size must be a number > 0"),
        (lambda: certify(run(LINKS[4], 1.0, rounds=2), LINKS[4], 1.0).implied.rounds_for(2.5, 0.1), "below the clip"),
        (lambda: certify(run(LINKS[4], 1.0, rounds=2), LINKS[4], 1.0).implied.rounds_for(0.5, 1.5), "epsilon must be"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
