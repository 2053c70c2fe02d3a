"""The classifier that untwists: thresholds that move, posteriors of rows not seen, the rest of the defaults."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.datasets import load_iris

from helpers.engines import get_forest, make_booster, make_dataset
from helpers.learners import make_paper_model
from helpers.quick import QuickClassifier, make_classifier
from untwist import PILBoostClassifier
from untwist.boosting.engines.engine import TreeGrowth
from untwist.boosting.runs import Progress
from untwist.data.folds import split_into_folds
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss
from untwist.noise import MenonEstimate, menon
from untwist.noise.rates import estimate_rates
from untwist.noise.two_classes import TwoClassNoise
from untwist.twisters import ClassConditionalNoise


def draw_sample(n=500, seed=0, rates=(0.1, 0.3)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    return X, ClassConditionalNoise(rate_neg=rates[0], rate_pos=rates[1]).twist(X, y, rng)[1], y


def make_automatic(**settings):
    return make_classifier(**{"random_state": 0, **settings})


# ---- thresholds ----


@pytest.mark.parametrize(
    "model",
    [
        make_automatic(),
        make_automatic(noise=None),
        make_automatic(noise=(0.0, 0.4)),
        make_paper_model(),
        make_paper_model(alpha=-2.0),
        make_paper_model(alpha="menon"),
    ],
    ids=repr,
)
def test_predict_is_a_positive_decision_and_the_more_probable_class(model):
    X, y, _ = draw_sample()
    model = clone(model).fit(X, np.array(["ham", "spam"])[y])
    decision, proba = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), np.where(decision > 0, "spam", "ham"))
    clear = np.abs(proba[:, 1] - 0.5) > 1e-5
    np.testing.assert_array_equal(decision[clear] > 0, proba[clear, 1] > 0.5)
    order = np.argsort(decision)
    assert (np.diff(proba[order, 1]) >= 0).all()
    assert 0 < proba.min() < proba.max() < 1
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    if isinstance(model, PILBoostClassifier):
        *_, last = model.staged_predict_proba(X)
        np.testing.assert_allclose(last, proba, atol=1e-9)


@pytest.mark.parametrize("rates", [(0.1, 0.3), (0.0, 0.4), (0.3, 0.0), (0.2, 0.2)])
def test_known_rates_move_the_threshold_of_the_twisted_posterior(rates):
    X, y, _ = draw_sample()
    model = make_automatic(noise=rates).fit(X, y)
    twisted, threshold = model.predict_proba_twisted(X)[:, 1], (1 + rates[0] - rates[1]) / 2
    posterior = expit(model.noise_.scale * logit(twisted) + model.noise_.offset)
    clear = np.abs(posterior - threshold) > 1e-4
    assert clear.mean() > 0.9
    assert 0 < np.mean(posterior > threshold) < 1
    np.testing.assert_array_equal(model.predict(X)[clear], (posterior > threshold)[clear].astype(int))
    assert isinstance(model.noise_, TwoClassNoise)
    assert (model.noise_.rate_neg, model.noise_.rate_pos) == rates
    np.testing.assert_allclose(model.predict_proba(X), model.noise_.clean(model.predict_proba_twisted(X)), atol=2e-3)


def test_without_rates_the_threshold_stays_at_one_half():
    X, y, _ = draw_sample()
    for model in (make_automatic(noise=None).fit(X, y), make_paper_model().fit(X, y)):
        posterior = model.predict_proba_twisted(X)[:, 1]
        np.testing.assert_array_equal(model.predict(X), (posterior > 0.5).astype(int))
        assert model.noise_ is None


def test_estimated_rates_are_those_of_the_posteriors_of_rows_not_seen():
    X, y, _ = draw_sample()
    model = make_automatic().fit(X, y)
    expected = estimate_rates(model.oof_proba_[:, 1], y)
    rates = expected.rate_neg, expected.rate_pos
    assert (model.noise_.rate_neg, model.noise_.rate_pos) == pytest.approx(rates, abs=1e-3)
    assert model.noise_.evidence == pytest.approx(expected.evidence, abs=0.1)


def test_untwisting_by_known_rates_helps_against_one_sided_noise():
    X, y, truth = draw_sample(2000, rates=(0.0, 0.45))
    informed, ignorant = make_automatic(noise=(0.0, 0.45)).fit(X, y), make_automatic(noise=None).fit(X, y)
    assert informed.score(X, truth) > ignorant.score(X, truth) + 0.03


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ((0.5, 0.5), "noise must be two rates that sum to less than 1"),
        ((0.1,), 'noise must be "auto", None, two rates'),
        ((0.1, 1.5), 'noise must be "auto", None, two rates'),
        ("menon", 'noise must be "auto", None, two rates'),
        (0.2, 'noise must be "auto", None, two rates'),
    ],
)
def test_bad_rates_are_named(rates, message):
    X, y, _ = draw_sample(50)
    with pytest.raises(ValueError, match=message):
        make_automatic(noise=rates).fit(X, y)


def test_several_classes_take_a_matrix_of_their_size():
    X, y = load_iris(return_X_y=True)
    for rates in ((0.1, 0.1), np.eye(2), np.eye(4)):
        with pytest.raises(ValueError, match="noise must be a matrix of 3 rows and columns for 3 classes"):
            make_automatic(noise=rates).fit(X, y)
    assert make_automatic(noise=None).fit(X, y).noise_ is None
    matrix = np.array([[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.05, 0.05, 0.9]])
    model = make_automatic(noise=matrix.tolist()).fit(X, y)
    np.testing.assert_allclose(model.noise_.matrix, matrix)
    assert model.noise_.found
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))


def test_a_matrix_of_two_classes_is_a_pair_of_rates():
    X, y, _ = draw_sample()
    by_matrix = make_automatic(noise=[[0.9, 0.1], [0.3, 0.7]]).fit(X, y)
    by_rates = make_automatic(noise=(0.1, 0.3)).fit(X, y)
    np.testing.assert_allclose(by_matrix.predict_proba(X), by_rates.predict_proba(X), rtol=1e-12)
    np.testing.assert_allclose(by_matrix.noise_.rate_pos, 0.3)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)) / 3, "noise must be square"),
        (
            [[0.5, 0.6, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            "the rows of noise must sum to 1, got 1.1 for row 0",
        ),
        ([[1.2, -0.2, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "noise must hold shares from 0 to 1"),
        ([[0.4, 0.6, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "must bear its own label more often than any other"),
    ],
)
def test_bad_matrices_are_named(matrix, message):
    with pytest.raises(ValueError, match=message):
        make_automatic(noise=matrix).fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.0, 0.3)])
def test_probabilities_of_separable_data_stay_inside(rates):
    X = np.repeat([[0.0], [1.0]], 200, axis=0) + np.random.default_rng(0).normal(scale=0.01, size=(400, 1))
    y = np.repeat([0, 1], 200)
    for model in (
        make_automatic().fit(X, y),
        make_automatic(noise=rates).fit(X, y),
        make_paper_model().fit(X, y),
    ):
        for proba in (model.predict_proba([[-9.0], [9.0]]), model.predict_proba_twisted([[-9.0], [9.0]])):
            assert 1 / 402 - 1e-9 <= proba.min() < proba.max() <= 401 / 402 + 1e-9
    assert make_automatic().fit(X, y).oof_proba_.min() > 0


# ---- menon ----


def test_alpha_menon_is_the_estimate_of_the_paper():
    X, y, _ = draw_sample()
    model = make_paper_model(alpha="menon", random_state=0).fit(X, y)
    expected = menon(X, y, random_state=model.model_.seed)
    assert isinstance(model.noise_, MenonEstimate)
    assert (model.noise_, model.alpha_) == (expected, expected.alpha)
    assert model.link_.loss.alpha == expected.alpha
    np.testing.assert_array_equal(
        model.decision_function(X),
        make_paper_model(alpha=expected.alpha, random_state=0).fit(X, y).decision_function(X),
    )
    with pytest.raises(ValueError, match='alpha="menon" is for two classes'):
        make_paper_model(alpha="menon").fit(*load_iris(return_X_y=True))


def test_alpha_menon_leaves_out_rows_of_weight_0_and_takes_gaps():
    X, y, _ = draw_sample()
    X[::7, 1] = np.nan
    weight = (np.arange(500) % 5 > 0).astype(float)
    model = make_paper_model(alpha="menon", random_state=0).fit(X, y, sample_weight=weight)
    assert model.noise_ == menon(X[weight > 0], y[weight > 0], random_state=model.model_.seed)


# ---- rows not seen ----


def test_posteriors_out_of_fold_are_by_models_that_have_not_seen_the_row():
    X, y, _ = draw_sample(300)
    model = make_automatic(boosted_only=True).fit(X, y)
    best, data = model.choice_.best, make_dataset(X, y)
    held = split_into_folds(data.hashes(), y.astype(np.uint32), np.ones(300), 5, model.model_.seed)
    link = ClippedLink(AlphaLoss(best.alpha))
    growth = TreeGrowth(max_depth=best.max_depth, l2=1.0, subsample=0.7, max_features=0.7, seed=model.model_.seed)
    scores = np.empty(300)
    for fold in held:
        start = float(link.link(np.average(y, weights=1 - fold)))
        engine = make_booster(
            data, link, 0.1, growth, by_edge=False, positive_class=1, weight=1 - fold, start=np.full(300, start)
        )
        engine.boost(best.n_rounds)
        scores[fold > 0] = start + get_forest(engine).scores(X[fold > 0])
    positive = link.inverse(scores).clip(1 / 302, 301 / 302)
    np.testing.assert_allclose(model.oof_proba_, np.column_stack([1 - positive, positive]), atol=1e-6)


def test_a_label_that_is_memorised_is_still_doubted_out_of_fold():
    X, _, truth = draw_sample(300, rates=(0.0, 0.0))
    y = truth.copy()
    # These are a few of the rows whose label is clear.
    wrong = np.flatnonzero(np.abs(X[:, 0] + 0.5 * X[:, 1]) > 0.7)[::20]
    y[wrong] = 1 - y[wrong]
    model = QuickClassifier(alpha=1.0, n_estimators=300, noise=None, random_state=0).fit(X, y)
    posterior = model.oof_proba_[wrong, y[wrong]]
    seen = model.predict_proba_twisted(X)[wrong, y[wrong]]
    assert (posterior < 0.5).mean() >= 0.9
    assert seen.mean() > posterior.mean() + 0.2


def test_rows_of_weight_0_have_the_posterior_of_all_folds():
    X, y, _ = draw_sample(200)
    weight = (np.arange(200) >= 20).astype(float)
    model = make_automatic().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.oof_proba_[:20], model.predict_proba_twisted(X[:20]), atol=1e-9)
    without = make_automatic().fit(X[20:], y[20:])
    np.testing.assert_allclose(model.oof_proba_[20:], without.oof_proba_, atol=1e-6)
    rates = without.noise_.rate_neg, without.noise_.rate_pos
    assert (model.noise_.rate_neg, model.noise_.rate_pos) == pytest.approx(rates, abs=1e-3)


# ---- the rest of the defaults ----


def test_callbacks_follow_the_search_and_a_true_answer_ends_it_with_a_model():
    X, y, _ = draw_sample()
    heard, also = [], []
    whole = make_automatic(callbacks=[heard.append, also.append]).fit(X, y)
    assert heard == also
    assert len(heard) > 2
    assert all(isinstance(one, Progress) for one in heard)
    np.testing.assert_array_equal(whole.decision_function(X), make_automatic().fit(X, y).decision_function(X))
    heard.clear()

    def enough(progress):
        heard.append(progress)
        return len(heard) == 2

    stopped = make_automatic(callbacks=[enough]).fit(X, y)
    assert len(heard) == 2
    assert len(stopped.choice_.tried) == 1
    assert stopped.choice_.best.n_rounds <= 20
    assert stopped.score(X, y) > 0.6
    assert stopped.oof_proba_.shape == (500, 2)
    with pytest.raises(ValueError, match="callbacks must be a list of functions"):
        make_automatic(callbacks=[3]).fit(X, y)


def test_rounds_are_found_by_folds():
    X, y, _ = draw_sample()
    rounds = [one.n_rounds for one in make_automatic().fit(X, y).choice_.tried]
    assert len(set(rounds)) > 1
    assert 1 <= min(rounds) <= max(rounds) < 300
    assert {one.n_rounds for one in make_automatic(n_estimators=12).fit(X, y).choice_.tried} == {12}


def test_a_warm_start_goes_on_to_the_rounds_asked_for():
    X, y, _ = draw_sample(50)
    assert make_paper_model(warm_start=True, n_estimators=5).fit(X, y).set_params(n_estimators=9).fit(X, y).n_iter_ == 9


def test_class_weights_do_not_pass_for_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    truth = (X[:, 0] + X[:, 1] > 1.5).astype(int)
    y = np.where(rng.random(3000) < 0.1, 1 - truth, truth)
    plain, weighted = (make_automatic(class_weight=one).fit(X, y) for one in (None, "balanced"))
    assert abs(weighted.noise_.rate_neg - plain.noise_.rate_neg) < 0.03
    assert abs(weighted.noise_.rate_pos - plain.noise_.rate_pos) < 0.1
    assert weighted.predict(X).mean() >= plain.predict(X).mean()  # The weights still speak for the rare class.
    assert weighted.score(X, truth) > 0.95


def test_rates_of_an_earlier_fit_to_several_classes_are_forgotten():
    X, y, _ = draw_sample()
    model = make_automatic().fit(X, y + (X[:, 2] > 0.5))
    assert model.set_params(noise=(0.1, 0.1)).fit(X, y).noise_.rate_neg == 0.1


@pytest.mark.parametrize("seed", range(3))
def test_no_share_of_few_labels_ends_above_one(seed):
    rng = np.random.default_rng(seed)
    p = 0.3 + 0.4 * expit(3.0 * rng.normal(size=200))
    y = (rng.random(200) < p).astype(int)
    noise = estimate_rates(p, y)
    for row in range(50):
        share, low, high = noise.share_wrong(np.column_stack([1.0 - p, p]), y, np.arange(200) == row)
        assert 0.0 <= low <= share <= high <= 1.0
