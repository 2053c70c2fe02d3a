"""The loop, against a transcription of the paper's algorithm with Python loops, and its consumers."""

import itertools
import math

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from helpers.learners import Misshapen, Oracle, Plain, Spoiler
from untwist.boosting.algorithm import Round, ValidationLoss, adaboost, pilboost, staged_scores
from untwist.links import CanonicalLink, ClippedLink
from untwist.losses import AlphaLoss, FocalLoss, LogLoss, MatusitaLoss, SquareLoss

take = itertools.islice
TREE = DecisionTreeRegressor(max_depth=2, random_state=0)


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=120) > 0, 1.0, -1.0)
    return X, y


def paper_weight(z, alpha):
    """The paper's f~ as printed, eq. "eq:tildefupdate", one number at a time."""
    c = alpha / (alpha - 1)
    if z <= -c:
        return 0.0
    if z >= c:
        return 1.0
    near = (c - abs(z)) ** (1 / (alpha - 1))
    far = (2 * c**c - (c - abs(z)) ** c) ** (1 / alpha)
    return near / (near + far) if z <= 0 else far / (near + far)


@pytest.mark.parametrize(("alpha", "step"), [(1.1, 8.0), (2.0, 8.0), (4.0, 1.0), (4.0, 8.0)])
def test_pilboost_is_the_algorithm_of_the_paper(sample, alpha, step):
    X, y = sample
    m = len(y)
    H = [0.0] * m
    ours = list(take(pilboost(X, y, TREE, ClippedLink(AlphaLoss(alpha)), step), 15))
    for one in ours:
        w = [paper_weight(-y[i] * H[i], alpha) for i in range(m)]
        h = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y, sample_weight=w).predict(X)
        eta = sum(w[i] * y[i] * h[i] for i in range(m)) / m
        H = [H[i] + step * eta * h[i] for i in range(m)]
        np.testing.assert_allclose(one.weights, w, atol=1e-12)
        assert one.edge == pytest.approx(eta, rel=1e-9)
        assert one.leverage == pytest.approx(step * eta, rel=1e-9)
        np.testing.assert_allclose(one.margins, y * H, rtol=1e-8, atol=1e-10)
    assert len(ours) == 15


def test_adaboost_is_the_one_of_the_paper(sample):
    X, y = sample
    m = len(y)
    w = [1.0 / m] * m
    for one in take(adaboost(X, y, TREE), 15):
        h = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y, sample_weight=w).predict(X)
        err = sum(w[i] for i in range(m) if np.sign(h[i]) != y[i])
        beta = 0.5 * math.log((1 - err) / err)
        assert one.leverage == pytest.approx(beta, rel=1e-8)
        w = [w[i] * math.exp(-beta * y[i] * h[i]) for i in range(m)]
        w = [value / sum(w) for value in w]


def test_sample_weights_of_adaboost_are_repeated_rows(sample):
    X, y = sample
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    weighted = take(adaboost(X, y, TREE, sample_weight=weight), 5)
    for one, other in zip(weighted, take(adaboost(X[rows], y[rows], TREE), 5), strict=True):
        assert one.leverage == pytest.approx(other.leverage, rel=1e-9)


def test_a_guess_of_0_is_an_error_of_adaboost():
    X, y = np.array([[1.0], [-1.0], [0.0]]), np.array([1.0, -1.0, 1.0])
    assert next(adaboost(X, y, Oracle())).leverage == pytest.approx(0.5 * math.log(2.0))


def test_absent_rows_do_not_take_the_weight_of_others():
    """The absent one is as wrong as the others are right; with a weight it would soon have all of it."""
    X, y = np.array([[1.0], [-1.0], [1.0]]), np.array([1.0, -1.0, -1.0])
    assert len(list(take(adaboost(X, y, Oracle(), sample_weight=[1, 1, 0]), 80))) == 80


def test_adaboost_survives_a_perfect_learner():
    X = np.array([[1.0], [-1.0], [1.0]])
    rounds = list(take(adaboost(X, X[:, 0], Oracle()), 50))
    assert all(np.isfinite(one.leverage) for one in rounds)
    assert np.isfinite(rounds[-1].margins).all()


def test_boosting_stops_when_all_weights_are_zero():
    X = np.array([[1.0], [-1.0]])
    rounds = list(pilboost(X, X[:, 0], Oracle(), ClippedLink(AlphaLoss(2.0)), 4.0))
    assert len(rounds) == 1  # With edge 1/2 and leverage 2 every margin is at the clip at once.
    np.testing.assert_array_equal(rounds[0].margins, [2.0, 2.0])


def test_an_adversarial_learner_is_turned_around():
    X = np.array([[1.0], [-1.0], [-1.0]])
    first = next(pilboost(X, X[:, 0], Oracle(factor=-1.0), ClippedLink(AlphaLoss(2.0)), 1.0))
    assert first.edge == -0.5
    assert (first.margins > 0).all()


def test_a_useless_learner_changes_nothing_and_does_not_end_the_loop():
    X = np.zeros((4, 1))
    rounds = list(take(pilboost(X, [1, -1, 1, -1], Oracle(), ClippedLink(AlphaLoss(2.0)), 1.0), 5))
    assert len(rounds) == 5
    assert all(one.edge == 0 and not one.margins.any() for one in rounds)


@pytest.mark.parametrize("learner", [TREE, Ridge(), Plain()], ids=lambda learner: type(learner).__name__)
@pytest.mark.parametrize(
    "link",
    [
        ClippedLink(loss)
        for loss in (AlphaLoss(1.1), AlphaLoss(4.0), LogLoss(), SquareLoss(), MatusitaLoss(), FocalLoss(2.0))
    ]
    + [CanonicalLink(loss) for loss in (AlphaLoss(2.0), LogLoss(), SquareLoss(), MatusitaLoss())],
    ids=repr,
)
@pytest.mark.thinned(2)
def test_any_link_boosts_any_learner_and_the_risk_falls(sample, learner, link):
    X, y = sample
    step = 0.5 / float(link.largest_curvature(-0.2, 0.2))
    margins = [one.margins for one in take(pilboost(X, y, learner, link, step), 10)]
    risks = [np.mean(link.margin_loss(m)) for m in [np.zeros(len(y)), *margins]]
    assert risks[-1] < risks[0] or isinstance(learner, Plain)
    assert (np.diff(risks[:3]) <= 1e-12).all()


def test_sample_weights_are_repeated_and_absent_rows(sample):
    X, y = sample
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    link = ClippedLink(AlphaLoss(2.0))
    weighted = take(pilboost(X, y, TREE, link, 3.0, sample_weight=weight), 8)
    repeated = take(pilboost(X[rows], y[rows], TREE, link, 3.0), 8)
    for one, other in zip(weighted, repeated, strict=True):
        assert one.edge == pytest.approx(other.edge, rel=1e-9)
        np.testing.assert_allclose(one.margins[rows], other.margins, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "boost", [adaboost, lambda *data, **rest: pilboost(*data, ClippedLink(AlphaLoss(2.0)), 8.0, **rest)]
)
def test_rows_of_weight_zero_are_absent_in_every_round(boost):
    """Even where an absent row keeps its weight after all others have lost theirs."""
    X, y = np.array([[0.0], [1.0], [1.0], [3.0]]), np.array([-1.0, 1.0, -1.0, 1.0])
    keep = np.array([0, 1, 3])
    learner = DecisionTreeRegressor(random_state=0)
    weighted = list(take(boost(X, y, learner, sample_weight=[1, 2, 0, 1]), 5))
    without = list(take(boost(X[keep], y[keep], learner, sample_weight=[1, 2, 1]), 5))
    assert len(weighted) == len(without) > 0
    np.testing.assert_allclose([one.leverage for one in weighted], [one.leverage for one in without], rtol=1e-9)


def test_huge_and_tiny_sample_weights_only_matter_by_ratio(sample):
    X, y = sample
    link = ClippedLink(AlphaLoss(2.0))
    plain = list(take(pilboost(X, y, TREE, link, 3.0), 3))
    for scale in (1e-300, 1e300):
        scaled = list(take(pilboost(X, y, TREE, link, 3.0, sample_weight=np.full(len(y), scale)), 3))
        np.testing.assert_allclose(scaled[-1].margins, plain[-1].margins, rtol=1e-6)


def test_random_learners_get_seeds_of_their_own(sample):
    X, y = sample
    learner = DecisionTreeRegressor(max_depth=2, max_features=1)
    link = ClippedLink(AlphaLoss(2.0))

    def run(seed):
        return [one.edge for one in take(pilboost(X, y, learner, link, 3.0, rng=np.random.default_rng(seed)), 5)]

    assert run(0) == run(0) != run(1)


def test_consumers(sample):
    X, y = sample
    link = ClippedLink(AlphaLoss(2.0))
    loss = ValidationLoss(X[:30], y[:30], link, posterior_floor=0.01)
    kept = list(take(pilboost(X, y, TREE, link, 3.0), 20))
    for one in kept:
        loss(one)
    margins = kept[-1].margins[:30]
    assert loss.losses[-1] == pytest.approx(-np.log(link.inverse(margins).clip(0.01, 0.99)).mean())
    assert loss.errors[-1] == np.mean(margins < 0)
    *_, final = staged_scores([(one.leverage, one.hypothesis) for one in kept], X)
    np.testing.assert_allclose(y * final, kept[-1].margins, atol=1e-12)


def test_validation_loss_at_the_clip_and_at_a_score_of_0():
    X, y = np.array([[1.0], [1.0], [-1.0], [0.0], [0.0], [0.0]]), np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0])
    link = ClippedLink(AlphaLoss(2.0))
    loss = ValidationLoss(X, y, link, posterior_floor=0.1)
    one = Round(0, Oracle(), edge=1.0, leverage=9.0, weights=y, agreement=y, margins=y)
    right, wrong, even = -np.log([0.9, 0.1, 0.5])
    assert loss(one) == pytest.approx((2 * right + wrong + 3 * even) / 6)
    assert loss.errors == [pytest.approx(3 / 6)]  # One row is wrong, and so are the positives at 0.
    weighted = ValidationLoss(X, y, link, [0.0, 3.0, 0.0, 0.0, 0.0, 1.0], posterior_floor=0.1)
    assert weighted(one) == pytest.approx(0.75 * wrong + 0.25 * even)
    assert weighted.errors == [0.75]


def test_a_run_goes_on_from_the_scores_of_another(sample):
    X, y = sample
    link = ClippedLink(AlphaLoss(2.0))
    kept = list(take(pilboost(X, y, TREE, link, 3.0), 8))
    rest = list(take(pilboost(X, y, TREE, link, 3.0, start=y * kept[4].margins), 3))
    np.testing.assert_allclose(rest[-1].margins, kept[-1].margins, rtol=1e-9)
    loss = ValidationLoss(X, y, link, start=y * kept[-1].margins)
    assert loss(rest[0]) <= ValidationLoss(X, y, link)(rest[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [0.0, 1.0]}, "y must hold labels -1 and \\+1 only, got"),
        ({"y": []}, "y must be a non-empty"),
        ({"step_size": 0.0}, "step_size must be a number > 0, got 0.0"),
        ({"step_size": math.nan}, "step_size must be a number > 0, got nan"),
        ({"step_size": math.inf}, "step_size must be finite"),
        ({"sample_weight": [1.0, -1.0]}, "sample_weight must be finite and non-negative, not all 0, got -1.0 to 1.0"),
        ({"sample_weight": [0.0, 0.0]}, "sample_weight must be finite and non-negative, not all 0"),
        ({"sample_weight": [1.0, math.nan]}, "sample_weight must be finite"),
        ({"sample_weight": [math.inf, 1.0]}, "sample_weight must be finite"),
        ({"X": np.array([[1.0], [math.inf]])}, "predicted inf in round 1"),
        ({"X": np.array([[1e101], [1.0]])}, "beyond 1e100 in round 1"),
        ({"sample_weight": [1.0]}, "sample_weight must be 2 numbers, one per row"),
        ({"weak_learner": Spoiler()}, "predicted nan in round 2"),
        ({"weak_learner": Spoiler(math.inf)}, "predicted inf in round 2"),
        ({"weak_learner": Spoiler(1e200)}, "beyond 1e100 in round 2"),
        ({"weak_learner": Misshapen()}, r"must predict 2 numbers, got shape \(2, 1\)"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {"X": np.array([[1.0], [-1.0]]), "y": [1.0, -1.0], "weak_learner": Oracle(), "step_size": 1.0} | change
    with pytest.raises(ValueError, match=message):
        list(take(pilboost(link=ClippedLink(AlphaLoss(2.0)), **arguments), 3))


def test_unsuitable_learners_links_and_rows_are_named(sample):
    X, y = sample
    link = ClippedLink(AlphaLoss(2.0))
    with pytest.raises(ValueError, match=r"KNeighborsRegressor.* its fit takes no sample_weight"):
        pilboost(X, y, KNeighborsRegressor(), link, 1.0)
    with pytest.raises(ValueError, match="link must be a Link"):
        pilboost(X, y, TREE, AlphaLoss(2.0), 1.0)
    with pytest.raises(ValueError, match="as many rows, got 120 and 119"):
        pilboost(X, y[:-1], TREE, link, 1.0)
