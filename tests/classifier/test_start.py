"""Where boosting begins: at the base rate, at 0, or at scores that are given."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.linear_model import Ridge

from helpers.quick import QuickClassifier
from helpers.small_fits import assert_same_forests, draw_sample, make_model
from untwist.automatic import search
from untwist.boosting.starting import find_prior_score, weigh_classes_exactly
from untwist.export import numbers, to_code, to_xgboost
from untwist.links import CanonicalLink, ClippedLink, LogitLink
from untwist.losses import AlphaLoss, SquareLoss


def draw_rare(share=0.02, n=2000, seed=0):
    """Rows of which a small share is positive, by the first column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > np.quantile(X[:, 0], 1 - share)).astype(int)


@pytest.mark.parametrize("kind", [ClippedLink, CanonicalLink])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.1, 2.0, 3.0, -2.0])
@pytest.mark.parametrize("share", [0.5, 0.49, 0.2, 0.02, 0.002, 0.7, 0.99])
def test_the_start_is_where_the_twisted_posterior_is_the_base_rate(kind, alpha, share):
    link = kind(AlphaLoss(alpha))
    start = find_prior_score(link, 1e4 * share, 1e4 * (1 - share))
    end = min(link.clip, 1e3) * (1 - 1e-9)
    # The twin looks for the score, knowing only what posterior each score has.
    twin = brentq(lambda z: float(link.inverse(z)) - share, -end, end, xtol=1e-14, rtol=1e-14)
    assert start == pytest.approx(twin, abs=1e-9)
    assert find_prior_score(link, 1e4 * (1 - share), 1e4 * share) == -start


@pytest.mark.parametrize("alpha", [1.0, 2.0, 8.0, 50.0, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [ClippedLink, CanonicalLink])
def test_the_start_stays_within_the_clip_for_any_base_rate(kind, alpha):
    link = kind(AlphaLoss(alpha))
    for positive, negative in ((0.0, 1e9), (1.0, 1e12), (1e9, 0.0), (3.0, 4.0)):
        start = find_prior_score(link, positive, negative)
        assert abs(start) < link.clip
        assert float(link.weights(abs(start))) > 0  # A row of the larger class still weighs something.
    assert find_prior_score(ClippedLink(AlphaLoss(math.inf)), 1.0, 9.0) == 0.0


def test_log_odds_begin_at_alpha_times_those_of_the_classes_up_to_a_limit():
    assert find_prior_score(LogitLink(AlphaLoss(2.0)), 30.0, 70.0) == pytest.approx(2 * math.log(3 / 7))
    assert find_prior_score(LogitLink(AlphaLoss(2.0)), 1.0, 999.0) == -4.0


@pytest.mark.parametrize("weigh", ["ones", "copies", "same", "shares", "tiny"])
def test_sums_of_weights_are_exact_in_any_order(weigh):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 500).astype(np.uint32)
    weight = {
        "ones": np.ones(500),
        "copies": rng.integers(0, 5, 500).astype(float),
        "same": np.full(500, 0.3),
        "shares": rng.random(500),
        "tiny": rng.random(500) * 1e-9,
    }[weigh]
    masses = weigh_classes_exactly(labels, weight, 3)
    exact = [sum(map(Fraction, weight[labels == k].tolist())) for k in range(3)]
    for k in range(3):
        assert masses[k, 0] / masses[k, 1] == pytest.approx(float(exact[k] / (sum(exact) - exact[k])), rel=1e-12)
    order = rng.permutation(500)
    np.testing.assert_array_equal(weigh_classes_exactly(labels[order], weight[order], 3), masses)


@pytest.mark.parametrize("number", [1.0, 3.0, 0.3, 1e-9, 1e300])
def test_a_weight_that_is_repeated_without_memory_counts_as_copies_of_it_do(number):
    labels = np.random.default_rng(0).integers(0, 3, 500).astype(np.uint32)
    masses = weigh_classes_exactly(labels, np.broadcast_to(number, 500), 3)
    np.testing.assert_array_equal(masses, weigh_classes_exactly(labels, np.full(500, number), 3))


@pytest.mark.parametrize("settings", [{}, {"engine": "reference"}, {"estimator": Ridge()}, {"link": "exact"}], ids=str)
def test_few_rounds_of_a_rare_class_predict_about_its_share(settings):
    X, y = draw_rare()
    share = y.mean()
    model = make_model(5, alpha=1.0, step_size=0.1, init="prior", **settings).fit(X, y)
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(share, rel=0.25)
    assert float(model.link_.inverse(model.start_)) == pytest.approx(share, rel=1e-9)
    zero = make_model(5, alpha=1.0, step_size=0.1, **settings).fit(X, y)
    assert zero.start_ == 0.0
    assert zero.predict_proba(X)[:, 1].mean() > 0.2


def test_few_rounds_of_xgboosts_trees_predict_about_the_share():
    pytest.importorskip("xgboost")
    X, y = draw_rare()
    ours, theirs = (make_model(5, alpha=1.1, init="prior", **one).fit(X, y) for one in ({}, {"engine": "xgboost"}))
    assert ours.start_ == theirs.start_ < 0
    np.testing.assert_allclose(theirs.decision_function(X), ours.decision_function(X), atol=1e-5)


def test_a_loss_of_ones_own_begins_at_the_base_rate_too():
    X, y = draw_rare(0.2, 300)
    model = make_model(3, loss=SquareLoss(), link="exact", max_depth=2, init="prior").fit(X, y)
    assert float(model.link_.inverse(model.start_)) == pytest.approx(y.mean(), rel=1e-9)


def test_class_and_sample_weights_count_and_rows_held_out_do_not():
    X, y = draw_rare(0.2, 400)
    weight = np.random.default_rng(1).random(400)
    model = make_model(3, class_weight={0: 1.0, 1: 3.0}, early_stopping=3, init="prior").fit(X, y, weight)
    trains = weight * np.where(y == 1, 3.0, 1.0)
    trains[model.validation_rows_] *= 1 - model.model_.validation_shares
    assert float(model.link_.inverse(model.start_)) == pytest.approx(np.average(y, weights=trains), rel=1e-9)
    balanced = make_model(3, class_weight="balanced", init="prior").fit(X, y)
    assert balanced.start_ == pytest.approx(0.0, abs=1e-12)


def test_several_classes_begin_each_at_its_share():
    X, y = draw_sample(classes=4)
    model = make_model(3, init="prior").fit(X, y)
    for k in range(4):
        assert float(model.link_.inverse(model.start_[k])) == pytest.approx(np.mean(y == k), rel=1e-9)


def learn_hardly_anything(monkeypatch):
    """Have the recipe take steps so small that its models stay where they began."""
    for rates in ("LEARNING_RATES", "JOINT_LEARNING_RATES"):
        monkeypatch.setattr(search, rates, (1e-6,))


def test_classes_boosted_together_begin_at_their_shares(monkeypatch):
    learn_hardly_anything(monkeypatch)
    X, y = draw_sample(classes=3)
    y[y == 2] = np.where(np.arange((y == 2).sum()) % 4, 0, 2)
    model = QuickClassifier(noise=None, n_estimators=1, max_depth=2, random_state=0).fit(X, y)
    shares = np.bincount(y) / len(y)
    np.testing.assert_allclose(model.predict_proba_twisted(X).mean(axis=0), shares, atol=0.01)


@pytest.mark.parametrize("n_estimators", [10, 20])
def test_fits_by_folds_begin_at_the_base_rate_of_each_fold(n_estimators, monkeypatch):
    learn_hardly_anything(monkeypatch)
    X, y = draw_rare(0.1, 500)
    model = QuickClassifier(noise=None, random_state=0, boosted_only=True, n_estimators=n_estimators)
    np.testing.assert_allclose(model.fit(X, y).predict_proba_twisted(X)[:, 1], y.mean(), atol=0.005)
    np.testing.assert_allclose(model.oof_proba_[:, 1], y.mean(), atol=0.005)


def test_neither_order_nor_threads_matter():
    X, y = draw_rare(0.1, 600)
    weight = np.random.default_rng(3).random(600)
    order = np.random.default_rng(4).permutation(600)
    one = make_model(5, n_jobs=1, init="prior").fit(X, y, weight)
    other = make_model(5, n_jobs=3, init="prior").fit(X[order], y[order], weight[order])
    assert one.start_ == other.start_
    assert_same_forests(one, other, X)


def test_a_warm_start_goes_on_from_where_the_first_fit_began():
    X, y = draw_rare(0.1, 300)
    model = make_model(3, warm_start=True, init="prior").fit(X, y)
    model.set_params(n_estimators=7).fit(X, y)
    at_once = make_model(7, init="prior").fit(X, y)
    assert model.start_ == at_once.start_ != 0
    np.testing.assert_allclose(model.decision_function(X), at_once.decision_function(X), rtol=1e-9)


def test_exports_and_staged_scores_have_the_start():
    X, y = draw_rare(0.1, 300)
    model = make_model(4, alpha=1.1, init="prior").fit(X, y)
    assert model.start_ < 0
    rows = numbers(model, X)
    space = {}
    exec(to_code(model, "python"), space)
    predict = space["predict_proba"]
    np.testing.assert_allclose([predict(row) for row in rows[:20].tolist()], model.predict_proba(X[:20]), rtol=1e-9)
    *_, last = model.staged_decision_function(X)
    np.testing.assert_array_equal(last, model.decision_function(X))
    xgboost = pytest.importorskip("xgboost")
    margins = to_xgboost(model).predict(xgboost.DMatrix(rows), output_margin=True)
    np.testing.assert_allclose(margins, model.decision_function(X), atol=1e-5)


def test_a_certificate_begins_at_the_start():
    X, y = draw_rare(0.2, 300)
    model = make_model(6, alpha=1.1, init="prior").fit(X, y)
    assert model.start_ < 0
    certificate = model.certificate(X, y)
    signs = 2.0 * y - 1
    risks = [np.mean(model.link_.margin_loss(signs * model.start_))]
    risks += [np.mean(model.link_.margin_loss(signs * scores)) for scores in model.staged_decision_function(X)]
    assert certificate.implied.first_risk == pytest.approx(risks[0])
    np.testing.assert_allclose(certificate.implied.decrease, -np.diff(risks), atol=1e-9)
    assert "violated" not in certificate.implied.verdicts


def test_what_is_no_start_is_refused():
    X, y = draw_sample()
    for init in ("mean", 0, None):
        with pytest.raises(ValueError, match='init must be "prior" or "zero"'):
            make_model(init=init).fit(X, y)


# Scores to begin at


@pytest.mark.parametrize("settings", [{}, {"engine": "reference"}, {"engine": "xgboost"}], ids=str)
def test_scores_to_begin_at_take_the_place_of_the_start(settings):
    if settings.get("engine") == "xgboost":
        pytest.importorskip("xgboost")
    X, y = draw_sample()
    first = make_model(4, init="prior", **settings).fit(X, y)
    given = first.decision_function(X)
    second = make_model(3, init="prior", **settings).fit(X, y, init_score=given)
    assert second.start_ == 0.0
    signs = 2.0 * y - 1
    h = second.estimators_[0].predict(X)
    edge = np.mean(first.link_.weights(signs * given) * signs * h)
    assert second.edges_[0] == pytest.approx(edge, rel=1e-4)
    # Predictions do not have it: what was learned is what to add.
    added = sum(b * one.predict(X) for b, one in zip(second.leverages_, second.estimators_, strict=True))
    np.testing.assert_allclose(second.decision_function(X), added, rtol=1e-9, atol=1e-12)


def test_scores_to_begin_at_of_validation_rows_and_several_classes():
    X, y = draw_sample(classes=3)
    X_val, y_val = draw_sample(60, classes=3, seed=1)
    first = make_model(4).fit(X, y)
    given, given_val = first.decision_function(X), first.decision_function(X_val)
    model = make_model(3, init="prior").fit(X, y, X_val=X_val, y_val=y_val, init_score=given, init_score_val=given_val)
    for k in range(3):
        after = given_val[:, k] + next(iter(model.staged_decision_function(X_val)))[:, k]
        posterior = model.link_.inverse(np.where(y_val == k, 1, -1) * after).clip(1 / 242, 241 / 242)
        assert model.evals_result_["validation"]["log_loss"][k][0] == pytest.approx(-np.log(posterior).mean(), rel=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("alpha", [2.0, -2.0])
def test_rounds_that_begin_at_a_decision_function_are_those_that_follow(alpha, classes):
    X, y = draw_sample(classes=classes)
    first = make_model(4, alpha=alpha).fit(X, y).decision_function(X)
    added = make_model(3, alpha=alpha).fit(X, y, init_score=first).decision_function(X)
    at_once = make_model(7, alpha=alpha).fit(X, y).decision_function(X)
    np.testing.assert_allclose(first + added, at_once, atol=1e-12)


def test_scores_that_cannot_be_begun_at_are_refused():
    X, y = draw_sample(60)
    ones = np.ones(60)
    cases = [
        ({"init_score": np.ones(59)}, r"init_score must have the shape \(60,\), got \(59,\)"),
        ({"init_score": np.where(ones > 0, np.inf, 0)}, "init_score must be finite"),
        ({"init_score_val": ones}, "init_score_val must come with init_score"),
        ({"init_score": ones, "X_val": X, "y_val": y}, "init_score_val must be given together"),
    ]
    for fit, message in cases:
        with pytest.raises(ValueError, match=message):
            make_model().fit(X, y, **fit)
    X, y = draw_sample(60, classes=3)
    with pytest.raises(ValueError, match=r"init_score must have the shape \(60, 3\)"):
        make_model().fit(X, y, init_score=ones)
