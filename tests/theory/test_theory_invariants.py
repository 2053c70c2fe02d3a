"""What holds of losses, links, twists, twisters, noise estimates and objectives, for any numbers."""

from itertools import islice

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import expit, logit
from sklearn.tree import DecisionTreeRegressor

from helpers.strategies import holds
from untwist import links, losses, noise, objectives, properties, twisters, twists
from untwist.boosting.algorithm import pilboost, staged_scores
from untwist.noise.rates import estimate_rates

probability = st.floats(0.0, 1.0) | st.sampled_from([0.0, 5e-324, 1e-300, 0.5, 1.0 - 2.0**-53, 1.0])
inside = st.floats(1e-12, 1.0 - 1e-12)
shapes = st.sampled_from([(), (0,), (1,), (7,), (2, 3), (0, 4), (2, 0)])
alphas = st.floats(0.05, 50.0) | st.sampled_from([1e-3, 0.5, 1.0, 1.0 + 1e-12, 2.0, 1e6, np.inf])
signed = alphas | alphas.map(lambda alpha: -alpha)
scores = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 5e-324, 1e300, -1e300, np.inf, -np.inf])
kinds = st.sampled_from([links.ClippedLink, links.CanonicalLink])
LOSSES = [losses.AlphaLoss(1.5), losses.LogLoss(), losses.SquareLoss(), losses.MatusitaLoss(), losses.FocalLoss(2.0)]


def array_of(elements):
    return shapes.flatmap(lambda shape: arrays.arrays(np.float64, shape, elements=elements))


# ---- losses ----


@holds(60, alpha=signed, u=array_of(probability))
def test_partial_losses_are_costs_that_mirror_each_other(alpha, u):
    loss = losses.AlphaLoss(alpha)
    pos, neg = loss.partial_pos(u), loss.partial_neg(u)
    for cost in (pos, neg):
        assert np.shape(cost) == u.shape
        assert (np.asarray(cost) >= 0).all()
    np.testing.assert_allclose(loss.partial_neg(1.0 - (1.0 - u)), loss.partial_pos(1.0 - u), rtol=1e-9)


@holds(60, alpha=signed, u=probability, v=probability)
def test_a_larger_estimate_costs_less_where_the_label_agrees(alpha, u, v):
    low, high = sorted([u, v])
    loss = losses.AlphaLoss(alpha)
    partial = loss.partial_pos if alpha > 0 else loss.partial_neg
    assert partial(low) >= partial(high) * (1 - 1e-12)


@holds(60, alpha=st.floats(0.1, 10.0), eta=inside, u=probability)
def test_no_estimate_beats_the_tilted_one(alpha, eta, u):
    for loss in (losses.AlphaLoss(alpha), *LOSSES):
        best = loss.conditional_risk(loss.tilted_estimate(eta), eta)
        assert best <= loss.conditional_risk(u, eta) + 1e-7 * (1.0 + abs(best))
        assert loss.bayes_risk(eta) == pytest.approx(float(best), rel=1e-6, abs=1e-9)


@holds(60, eta=array_of(probability), alpha=signed)
def test_tilting_stays_within_zero_and_one_and_keeps_the_shape(eta, alpha):
    tilted = losses.tilt(eta, alpha)
    assert np.shape(tilted) == eta.shape
    assert ((np.asarray(tilted) >= 0) & (np.asarray(tilted) <= 1)).all()
    np.testing.assert_allclose(losses.tilt(eta, -alpha), 1.0 - np.asarray(tilted), atol=1e-15)


@holds(60, eta=inside, alpha=st.floats(0.1, 5.0))
def test_tilting_back_undoes_a_tilt(eta, alpha):
    tilted = float(losses.tilt(eta, alpha))
    assume(1e-12 < tilted < 1 - 1e-12)
    assert float(losses.tilt(tilted, 1.0 / alpha)) == pytest.approx(eta, rel=1e-3)


TYPES = ["float16", "float32", ">f8", "int8", "bool", "uint64", "object"]


@holds(24, kind=st.sampled_from(TYPES), alpha=st.floats(0.5, 4.0), data=st.data())
def test_types_and_layouts_of_probabilities_do_not_matter(kind, alpha, data):
    values = [0.0, 0.25, 1.0] if "f" in kind else [0.0, 1.0]
    u = np.array(data.draw(st.lists(st.sampled_from(values), min_size=2)))
    typed = u.astype(kind)
    strided = np.repeat(typed, 3)[::3]
    strided.flags.writeable = False
    for function in (
        losses.AlphaLoss(alpha).partial_pos,
        losses.AlphaLoss(alpha).tilted_estimate,
        twists.binary_entropy,
    ):
        for form in (typed, strided, typed[::-1].copy()[::-1], typed.tolist()):
            np.testing.assert_array_equal(function(form), function(u))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1e-300, 1.0 + 1e-15, "a", None, 1j])
def test_what_is_no_probability_is_refused_by_name(bad):
    for function in (losses.AlphaLoss(2.0).partial_pos, losses.LogLoss().tilted_estimate, twists.binary_entropy):
        with pytest.raises(ValueError, match=r"^(u|eta) must"):
            function([0.5, bad])


@holds(15, alpha=st.floats(0.2, 20.0) | st.just(1.0), sign=st.sampled_from([-1.0, 1.0]))
def test_of_alpha_losses_only_the_log_loss_is_proper_and_only_positive_ones_are_monotone(alpha, sign):
    assume(alpha == 1 or abs(alpha - 1) > 0.05)
    loss = losses.AlphaLoss(sign * alpha)
    assert bool(properties.symmetric(loss))
    assert bool(properties.monotone(loss)) == (sign > 0)
    assert bool(properties.proper(loss)) == (sign * alpha == 1)


# ---- boosting ----


@holds(15, n=st.integers(4, 40), seed=st.integers(0, 2**32), alpha=st.sampled_from([0.7, 1.0, 2.0, 4.0]), link=kinds)
def test_rounds_of_boosting_keep_their_definitions(n, seed, alpha, link):
    rng, link = np.random.default_rng(seed), link(losses.AlphaLoss(alpha))
    X, y, sample_weight = rng.normal(size=(n, 2)).round(1), rng.choice([-1.0, 1.0], n), rng.uniform(0.1, 2.0, n)
    margins = np.zeros(n)
    for one in islice(pilboost(X, y, DecisionTreeRegressor(max_depth=2), link, 1.5, sample_weight=sample_weight), 4):
        np.testing.assert_array_equal(one.weights, link.weights(margins))
        assert ((one.weights >= 0) & (one.weights <= 1)).all()
        assert abs(one.edge) <= np.average(one.weights, weights=sample_weight) + 1e-12
        assert one.edge == pytest.approx(np.average(one.weights * one.agreement, weights=sample_weight), abs=1e-12)
        assert one.leverage == pytest.approx(1.5 * one.edge)
        np.testing.assert_allclose(one.margins, margins + one.leverage * one.agreement, atol=1e-12)
        margins = one.margins


# ---- links ----


@holds(60, alpha=alphas, kind=kinds, z=array_of(scores))
def test_posteriors_of_scores_are_probabilities_and_mirror_each_other(alpha, kind, z):
    link = kind(losses.AlphaLoss(alpha))
    for posterior in (link.inverse, link.tilted, link.weights):
        p = np.asarray(posterior(z))
        assert p.shape == z.shape
        assert ((p >= 0) & (p <= 1)).all()
        np.testing.assert_allclose(p + posterior(-z), 1.0, atol=1e-9)


@holds(60, alpha=alphas, kind=kinds, z=st.lists(scores, min_size=2, max_size=6))
def test_posteriors_rise_and_margin_losses_fall(alpha, kind, z):
    link, z = kind(losses.AlphaLoss(alpha)), np.sort(z)
    assert (np.diff(link.inverse(z)) >= -1e-12).all()
    assert (np.diff(link.tilted(z)) >= -1e-12).all()
    finite = z[np.isfinite(z)]
    cost = np.asarray(link.margin_loss(finite))
    assert (cost >= 0).all()
    with np.errstate(invalid="ignore"):
        fall = np.diff(cost)
    assert (fall[np.isfinite(fall)] <= 1e-9 * (1.0 + np.abs(cost[:-1][np.isfinite(fall)]))).all()


@holds(40, alpha=st.floats(0.5, 4.0), kind=kinds, u=st.floats(0.2, 0.8))  # Beyond these u, scores end at the clip.
def test_a_link_and_its_inverse_undo_each_other(alpha, kind, u):
    link = kind(losses.AlphaLoss(alpha))
    assert float(link.inverse(link.link(u))) == pytest.approx(u, abs=1e-6)
    assert float(link.tilted(link.score(u))) == pytest.approx(u, abs=1e-6)


# ---- twists ----

rates = st.floats(0.0, 0.49)


@holds(60, eta=array_of(probability), neg=rates, pos=rates)
def test_noise_and_its_inverse_undo_each_other(eta, neg, pos):
    twist = twists.ClassConditionalTwist(rate_pos=pos, rate_neg=neg)
    twisted = np.asarray(twist(eta))
    assert ((twisted >= 0) & (twisted <= 1)).all()
    np.testing.assert_allclose(twist.inverse(twisted), eta, atol=1e-12)
    if neg == pos:
        assert np.asarray(twists.is_bayes_blunting(eta, twisted)).all()


@holds(60, clean=inside, twisted=inside)
def test_alpha_star_undoes_the_twist(clean, twisted):
    assume(abs(twisted - 0.5) > 1e-6)
    assert float(losses.tilt(twisted, twists.alpha_star(clean, twisted))) == pytest.approx(clean, rel=1e-6)


points = st.integers(1, 6).flatmap(
    lambda n: st.tuples(*(arrays.arrays(np.float64, n, elements=probability) for _ in range(2)),
                        arrays.arrays(np.float64, n, elements=st.floats(0.01, 100.0))))  # fmt: skip


@holds(80, drawn=points, alpha=signed)
def test_no_alpha_beats_the_best_fixed_one_and_none_the_entropy(drawn, alpha):
    clean, twisted, weight = drawn
    best = twists.best_fixed_alpha(clean, twisted, weight)
    least = twists.cross_entropy(clean, twisted, best, weight)
    slack = 1e-7 * (1.0 + abs(least)) if np.isfinite(least) else 0.0
    assert least <= twists.cross_entropy(clean, twisted, alpha, weight) + slack
    assert twists.kl_divergence(clean, twisted, alpha, weight) >= 0
    assert twists.cross_entropy(clean, twisted, alpha, weight) >= twists.entropy(clean, weight) - 1e-9


@holds(60, drawn=points, B=st.floats(0.01, 50.0))
def test_the_constructive_alpha_keeps_its_bound(drawn, B):
    clean, twisted, weight = drawn
    assume((np.abs(logit(twisted)) <= B).any())
    found = twists.constructive_alpha(clean, twisted, B, weight)
    assert found.cross_entropy <= found.bound + 1e-9 * (1.0 + abs(found.bound)) or np.isinf(found.bound)


# ---- twisters ----

LABELS = [np.array(["ham", "spam"]), np.array([-1, 1]), np.array([False, True]), np.array([0.0, 1.0], np.float32)]


@holds(40, bits=st.lists(st.booleans(), min_size=2, max_size=40), kind=st.integers(0, 3), rate=st.floats(0.0, 1.0),
       seed=st.integers(0, 2**32), series=st.booleans())  # fmt: skip
def test_twisted_labels_differ_where_it_is_said_and_nowhere_else(bits, kind, rate, seed, series):
    assume(len(set(bits)) == 2)
    y = LABELS[kind][np.array(bits, dtype=int)]
    y = pd.Series(y, index=np.arange(len(y))[::-1]) if series else y
    before = np.array(y)
    for twister in (twisters.ClassNoise(rate), twisters.BernoulliNoise(rate),
                    twisters.ClassConditionalNoise(rate_neg=rate, rate_pos=rate / 2)):  # fmt: skip
        _, twisted, flipped = twister.twist(None, y, seed)
        np.testing.assert_array_equal(np.flatnonzero(np.asarray(twisted) != before), flipped)
        np.testing.assert_array_equal(np.asarray(y), before)
        assert np.asarray(twisted).dtype == before.dtype
        assert set(np.asarray(twisted)) <= set(before)
        np.testing.assert_array_equal(twister.twist(None, y, seed)[2], flipped)
    assert len(twisters.ClassNoise(rate).twist(None, y, seed)[2]) == int(np.ceil(round(rate * len(y), 9)))


cells = arrays.arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)),
                      elements=st.sampled_from([0.0, 1.0, 2.0, -1e308, 1e308, 5e-324, np.nan]))  # fmt: skip


@holds(40, X=cells, rate=st.floats(0.0, 1.0), seed=st.integers(0, 2**32), frame=st.booleans())
def test_twisted_cells_differ_where_it_is_said_and_nowhere_else(X, rate, seed, frame):
    table = pd.DataFrame(X) if frame else X
    for twister in (twisters.FeatureNoise(rate), twisters.Insider([0], noise={}, shift=rate)):
        twisted, _, changed = twister.twist(table, None, seed)
        after = np.asarray(twisted)
        differs = (after != X) & ~(np.isnan(after) & np.isnan(X))
        np.testing.assert_array_equal(differs, changed)
        np.testing.assert_array_equal(np.isnan(after), np.isnan(X))
        np.testing.assert_array_equal(np.asarray(table), X)
        np.testing.assert_array_equal(np.asarray(twister.twist(table, None, seed)[0]), after)


# ---- noise ----


@holds(25, n=st.integers(1, 80), seed=st.integers(0, 2**32), extreme=st.booleans(),
       weighing=st.sampled_from(["none", "whole", "reals", "scales"]))  # fmt: skip
def test_estimated_rates_are_rates_whatever_the_order_and_a_weight_is_copies(n, seed, extreme, weighing):
    rng = np.random.default_rng(seed)
    p = rng.choice([0.0, 1.0, 0.5, 5e-324], n) if extreme else expit(rng.normal(scale=3, size=n))
    y = (rng.random(n) < p).astype(int)
    weight = {"none": None, "whole": rng.integers(1, 5, n), "reals": rng.random(n) + 1e-3,
              "scales": 10.0 ** rng.uniform(-300, 300, n)}[weighing]  # fmt: skip
    found = estimate_rates(p, y, sample_weight=weight)
    for rate, (low, high) in ((found.rate_neg, found.interval_neg), (found.rate_pos, found.interval_pos)):
        assert 0 <= low <= rate <= high <= 1
    z = np.linspace(-30, 30, 61)
    posterior = np.column_stack([expit(-z), expit(z)])
    clean = found.clean(posterior)
    assert ((clean >= 0) & (clean <= 1)).all()
    np.testing.assert_allclose(clean.sum(axis=1), 1.0)
    assert (np.diff(found.clean_log_odds(z)) >= 0).all()
    wrong = found.probability_wrong(posterior, np.arange(61) % 2)
    assert ((wrong >= 0) & (wrong <= 1)).all()
    order = rng.permutation(n)
    other = estimate_rates(p[order], y[order], sample_weight=None if weight is None else weight[order])
    np.testing.assert_array_equal(found.clean_log_odds(z), other.clean_log_odds(z))
    if weighing == "whole":
        copies = estimate_rates(np.repeat(p, weight), np.repeat(y, weight))
        np.testing.assert_allclose(copies.clean_log_odds(z), found.clean_log_odds(z), rtol=1e-6, atol=1e-9)


@holds(15, n=st.integers(2, 60), seed=st.integers(0, 2**32), columns=st.integers(1, 3))
def test_menon_estimates_are_rates_and_an_alpha(n, seed, columns):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    found = noise.menon(rng.normal(size=(n, columns)).round(1), y)
    assert found.alpha > 0
    for rate, (low, high) in ((found.rate_neg, found.interval_neg), (found.rate_pos, found.interval_pos)):
        assert 0 <= low <= rate <= high <= 1


@holds(30, truth=st.lists(st.booleans(), min_size=1, max_size=20), seed=st.integers(0, 2**32))
def test_alphas_of_a_confusion_are_numbers(truth, seed):
    said = np.random.default_rng(seed).integers(0, 2, len(truth))
    for by in ("text", "script"):
        assert not np.isnan(noise.original_learned(np.array(truth) * 1, said, by=by))
    assert not np.isnan(noise.taylor(np.array(truth) * 1, said))


# ---- objectives ----

margins = arrays.arrays(
    np.float64, st.integers(1, 8), elements=st.floats(-700.0, 700.0) | st.sampled_from([1e6, -1e6, 0.0])
)
wide = arrays.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 6)), elements=st.floats(-700.0, 700.0))


@holds(60, margin=margins | wide, alpha=st.floats(0.1, 50.0) | st.just(np.inf), seed=st.integers(0, 2**32))
def test_objectives_are_finite_and_slope_as_they_must(margin, alpha, seed):
    classes = margin.shape[1] if margin.ndim == 2 else 2
    y = np.random.default_rng(seed).integers(0, classes, len(margin))
    cost, slope, curve = (f(margin, y, alpha) for f in (objectives.loss, objectives.gradient, objectives.safe_hessian))
    assert cost.shape == y.shape
    assert slope.shape == curve.shape == margin.shape
    assert (cost >= 0).all()
    assert (curve >= 0).all()
    assert not any(np.isnan(each).any() for each in (cost, slope, curve))  # They may be infinite below alpha = 1.
    slope_of_label = slope[np.arange(len(y)), y] if margin.ndim == 2 else slope * np.where(y == 1, 1, -1)
    assert (slope_of_label <= 0).all()  # More margin for the label never costs more.
    if margin.ndim == 2 and np.isfinite(slope).all():
        np.testing.assert_allclose(slope.sum(axis=1) / np.maximum(np.abs(slope).sum(axis=1), 1e-300), 0.0, atol=1e-9)
    proba = objectives.clean_proba(margin)
    assert ((proba >= 0) & (proba <= 1)).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-9)


@holds(40, margin=st.floats(-20.0, 20.0), alpha=st.floats(0.2, 20.0), label=st.integers(0, 1))
def test_gradients_are_the_slopes_of_the_loss_and_hessians_those_of_gradients(margin, alpha, label):
    at, y, h = np.array([margin - 1e-5, margin, margin + 1e-5]), np.full(3, label), 1e-5
    cost, slope = objectives.loss(at, y, alpha), objectives.gradient(at, y, alpha)
    size = 1e-4 * (1.0 + np.abs(cost).max())
    assert (cost[2] - cost[0]) / (2 * h) == pytest.approx(slope[1], rel=1e-4, abs=size)
    curve = objectives.hessian(at, y, alpha)[1]
    assert (slope[2] - slope[0]) / (2 * h) == pytest.approx(curve, rel=1e-4, abs=1e-4 * (1.0 + np.abs(slope).max()))
    assert objectives.safe_hessian(at, y, alpha)[1] >= curve * (1 - 1e-12)


@holds(20, margin=margins, alpha=st.floats(0.2, 20.0))
def test_the_two_forms_of_two_classes_agree(margin, alpha):
    y, both = np.arange(len(margin)) % 2, np.column_stack([np.zeros(len(margin)), margin])
    for one in (objectives.loss, lambda margin, *rest: objectives.gradient(margin, *rest).reshape(len(y), -1)[:, -1]):
        np.testing.assert_allclose(one(both, y, alpha), one(margin, y, alpha), rtol=1e-9, atol=1e-15)
    twisted = objectives.twisted_proba
    np.testing.assert_allclose(twisted(both, alpha), twisted(margin, alpha), atol=1e-12)


def test_no_rounds_have_no_scores():
    assert list(staged_scores([], np.zeros((3, 1)))) == []
