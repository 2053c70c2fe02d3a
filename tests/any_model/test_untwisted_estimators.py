"""UntwistClassifier around a classifier of one's own: clones judge rows, the noise they show is undone."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from untwist import PILBoostClassifier, UntwistClassifier
from untwist.any_model.rows import read_rows
from untwist.audit import audit_labels
from untwist.files import dumps
from untwist.fit_arguments import SourceColumns
from untwist.noise import NoiseModel
from untwist.noise.calibration import find_calibration
from untwist.settings import RECIPE_DEFAULTS, resolve_recipe
from untwist.twisters import ClassConditionalNoise


def draw_noisy_rows(n=900, rates=(0.05, 0.35), seed=0, classes=2):
    """Rows of several classes that four columns tell apart, the labels as they are given, and the true ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + 0.7 * X[:, 1] + 0.3 * rng.normal(size=n)
    truth = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    if classes == 2:
        return X, ClassConditionalNoise(rate_neg=rates[0], rate_pos=rates[1]).twist(X, truth, rng)[1], truth
    wrong = rng.random(n) < 0.2
    return X, np.where(wrong, (truth + 1) % classes, truth), truth


def make_linear():
    return make_pipeline(StandardScaler(), LogisticRegression())


@parametrize_with_checks([UntwistClassifier(LogisticRegression(), random_state=0)])
def test_it_keeps_the_contract_of_scikit_learn_around_an_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [make_linear(), GaussianNB()], ids=["pipeline", "naive Bayes"])
def test_it_is_nearer_the_truth_than_the_estimator_alone(estimator):
    X, y, truth = draw_noisy_rows(1500)
    alone = clone(estimator).fit(X[:1000], y[:1000])
    untwisted = UntwistClassifier(estimator, random_state=0).fit(X[:1000], y[:1000])
    assert untwisted.noise_.found
    right, before = ((model.predict(X[1000:]) == truth[1000:]).mean() for model in (untwisted, alone))
    assert right > before + 0.03


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_clones_by_folds_calibrated_and_corrected(classes):
    """The same written out: clones, their judgement of rows set aside, its calibration, the noise, the mean."""
    X, y, _ = draw_noisy_rows(400, classes=classes)
    new = np.random.default_rng(5).normal(size=(50, 4))
    model = UntwistClassifier(make_linear(), random_state=3).fit(X, y)
    rows = read_rows(resolve_recipe({**RECIPE_DEFAULTS, "random_state": 0}), X, y, None, SourceColumns())
    held_out = model.model_.out_of_fold.held_out
    assert held_out.shape == (5, 400)
    posterior, clones = np.empty((400, classes)), []
    for part in held_out:
        judged = part > 0
        clones.append(make_linear().fit(X[~judged], y[~judged]))
        posterior[judged] = clones[-1].predict_proba(X[judged])
    labels, weight = rows.labels, np.ones(400)
    calibration = find_calibration(posterior, labels, weight, are_counts=True)
    noise = NoiseModel.estimate(calibration.apply(posterior), labels, weight)
    of_new = calibration.apply(np.mean([one.predict_proba(new) for one in clones], axis=0))
    np.testing.assert_allclose(model.predict_proba_twisted(new), of_new, atol=2e-6)
    np.testing.assert_allclose(model.oof_proba_, calibration.apply(posterior), atol=1e-12)
    np.testing.assert_allclose(model.noise_.matrix, noise.matrix, atol=1e-9)
    expected = (noise.clean(of_new) if noise.is_undone else of_new).clip(1 / 402, 1 - 1 / 402)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=5e-6)


@pytest.mark.parametrize("noise", [None, (0.05, 0.35), [[0.95, 0.05], [0.35, 0.65]]], ids=["none", "rates", "matrix"])
def test_noise_may_be_given_or_labels_believed(noise):
    X, y, truth = draw_noisy_rows()
    model = UntwistClassifier(make_linear(), noise=noise, random_state=0).fit(X, y)
    if noise is None:
        assert model.noise_ is None
        np.testing.assert_allclose(model.predict_proba(X), model.predict_proba_twisted(X))
        return
    assert model.noise_.is_given
    np.testing.assert_allclose(model.noise_.matrix, [[0.95, 0.05], [0.35, 0.65]])
    believing = UntwistClassifier(make_linear(), noise=None, random_state=0).fit(X, y)
    assert (model.predict(X) == truth).mean() > (believing.predict(X) == truth).mean() + 0.02


def test_a_matrix_of_other_classes_is_refused():
    X, y, _ = draw_noisy_rows(200)
    with pytest.raises(ValueError, match="noise must be a matrix of 2 rows and columns for 2 classes"):
        UntwistClassifier(GaussianNB(), noise=np.eye(3)).fit(X, y)


def test_class_weights_move_probabilities_by_their_odds():
    X, y, _ = draw_noisy_rows()
    plain = UntwistClassifier(make_linear(), random_state=0).fit(X, y)
    weighed = UntwistClassifier(make_linear(), class_weight={0: 1.0, 1: 3.0}, random_state=0).fit(X, y)
    odds = [model.predict_proba(X)[:, 1] / model.predict_proba(X)[:, 0] for model in (plain, weighed)]
    inside = (odds[0] > 1e-2) & (odds[0] < 30)
    np.testing.assert_allclose(odds[1][inside], 3.0 * odds[0][inside], rtol=1e-3)
    balanced = UntwistClassifier(make_linear(), class_weight="balanced", random_state=0).fit(X, y)
    assert balanced.predict(X).mean() != plain.predict(X).mean()


def test_a_weight_is_so_many_copies():
    X, y, _ = draw_noisy_rows(300)
    weight = np.random.default_rng(2).integers(0, 4, 300)
    exact = LogisticRegression(solver="newton-cholesky", tol=1e-12)
    weighed = UntwistClassifier(exact, random_state=0).fit(X, y, sample_weight=weight)
    repeated = UntwistClassifier(exact, random_state=0).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighed.predict_proba(X), repeated.predict_proba(X), atol=1e-7)


def test_folds_of_ones_own_groups_and_sources_are_heeded():
    X, y, _ = draw_noisy_rows(600)
    own = UntwistClassifier(GaussianNB(), cv=KFold(4)).fit(X, y)
    assert own.model_.out_of_fold.held_out.shape == (4, 600)
    half = UntwistClassifier(GaussianNB(), cv=[(np.arange(300), np.arange(300, 600))]).fit(X, y)
    assert np.isnan(half.oof_proba_[:300]).all()
    assert not np.isnan(half.oof_proba_[300:]).any()
    patient = np.arange(600) // 3
    held_out = UntwistClassifier(GaussianNB(), random_state=0).fit(X, y, groups=patient).model_.out_of_fold.held_out
    assert (held_out == held_out[:, 3 * patient]).all()


def test_rows_that_a_person_has_seen_teach_the_clones():
    X, y, truth = draw_noisy_rows(1200, rates=(0.1, 0.4))
    known = np.random.default_rng(1).choice(1200, 200, replace=False)
    labels = y.copy()
    labels[known] = truth[known]
    taught = UntwistClassifier(make_linear(), random_state=0).fit(X, labels, reviewed=known)
    before = UntwistClassifier(make_linear(), random_state=0).fit(X, y)
    assert taught.model_.out_of_fold.context.reviewed.is_reviewed.sum() == 200
    errors = [np.abs(np.diag(model.noise_.matrix)[1] - 0.6) for model in (taught, before)]
    assert errors[0] < max(errors[1], 0.06)
    with pytest.warns(UserWarning, match="KNeighborsClassifier takes no sample_weight"):
        UntwistClassifier(KNeighborsClassifier(), random_state=0).fit(X, labels, reviewed=known)


def test_bad_sources_are_named_and_count_less():
    X, y, truth = draw_noisy_rows(1600, rates=(0.02, 0.02))
    source = np.arange(1600) % 4
    rng = np.random.default_rng(3)
    y = np.where((source == 3) & (truth == 1) & (rng.random(1600) < 0.8), 0, y)
    model = UntwistClassifier(make_linear(), random_state=0).fit(X, y, source=source)
    assert model.sources_.stands_out.tolist() == [False, False, False, True]
    alone = make_linear().fit(X, y)
    assert model.sources_.reliability[3] < 0.8 * model.sources_.reliability[0]
    assert (model.predict(X) == truth).mean() > (alone.predict(X) == truth).mean() + 0.005


def test_texts_go_to_the_estimator_as_they_are():
    rng = np.random.default_rng(0)
    words = np.array(["good", "fine", "bad", "poor"])
    truth = rng.integers(0, 2, 400)
    texts = [f"{words[2 * one + rng.integers(2)]} {rng.integers(100)}" for one in truth]
    y = np.where(rng.random(400) < 0.2, 1 - truth, truth)
    model = UntwistClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()), random_state=0).fit(texts, y)
    assert (model.predict(["good day", "bad day"]) == [0, 1]).all()
    assert not hasattr(model, "n_features_in_")
    assert (model.predict(texts) == truth).mean() > 0.95


def test_a_frozen_estimator_is_not_fitted_again():
    X, y, truth = draw_noisy_rows(1200)
    before = make_linear().fit(X[:600], y[:600])
    model = UntwistClassifier(FrozenEstimator(before), random_state=0).fit(X[600:], y[600:])
    assert all(one.model.estimator is before for one in model.model_.clones.clones)
    assert (model.predict(X) == truth).mean() > (before.predict(X) == truth).mean()


def test_pilboost_is_an_estimator_too():
    X, y, truth = draw_noisy_rows(600)
    boosted = PILBoostClassifier(alpha=1.0, n_estimators=20, max_depth=2)
    model = UntwistClassifier(boosted, random_state=0).fit(X, y)
    assert (model.predict(X) == truth).mean() > (boosted.fit(X, y).predict(X) == truth).mean()


def test_it_is_audited_pickled_and_cloned_and_no_file_holds_it():
    X, y, _ = draw_noisy_rows(500)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = UntwistClassifier(make_linear(), random_state=0).fit(frame, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert model.model_.clones.X is None, "a fitted classifier keeps no rows"
    assert not hasattr(clone(model), "model_")
    audit = audit_labels(frame, y, model)
    np.testing.assert_array_equal(audit.posterior, model.oof_proba_)
    assert audit.noise is model.noise_
    assert audit.judge.name == "LogisticRegression, fitted out of fold"
    with pytest.raises(ValueError, match="only trees of untwist can be written to a model file"):
        dumps(model)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("bacd")])
    with pytest.raises(AttributeError, match="nothing was left to choose"):
        _ = model.choice_
    with pytest.raises(ValueError, match="importances are for the trees of untwist"):
        model.importances()


class Deaf(BaseEstimator):
    """It learns, and tells no probabilities."""

    def fit(self, X, y):
        return self


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"monotonic_cst": [1, 0, 0, 0]}, "monotonic_cst is for the recipe of untwist and must be None"),
        ({"engine": "xgboost"}, "engine is for the recipe of untwist and must be 'auto'"),
        ({"callbacks": [print]}, "callbacks is for the recipe of untwist and must be None"),
        ({"estimator": Deaf()}, "estimator must have predict_proba"),
        ({"estimator": GaussianNB}, r"got a class: give GaussianNB\(\)"),
        ({"estimator": "forest"}, "must be a classifier of scikit-learn's kind"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_named(settings, words):
    X, y, _ = draw_noisy_rows(100)
    with pytest.raises(ValueError, match=words):
        UntwistClassifier(**{"estimator": GaussianNB(), **settings}).fit(X, y)


def test_a_forest_is_untwisted_on_every_thread_alike():
    X, y, _ = draw_noisy_rows(400)
    forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=0)
    one, two = (UntwistClassifier(forest, n_jobs=n_jobs, random_state=0).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_what_the_recipe_refuses_is_refused_around_an_estimator():
    X, y, truth = draw_noisy_rows(200)
    with pytest.raises(ValueError, match="reviewed must be None with noise=None"):
        UntwistClassifier(GaussianNB(), noise=None).fit(X, truth, reviewed=[1, 2])
    for noise in (None, (0.1, 0.1)):
        with pytest.raises(ValueError, match="source must be None where no noise is estimated"):
            UntwistClassifier(GaussianNB(), noise=noise).fit(X, y, source=np.arange(200) % 3)
    with pytest.raises(ValueError, match=r"class_weight must be above 0 with an estimator, .* got 0 for 1"):
        UntwistClassifier(GaussianNB(), class_weight={1: 0.0}).fit(X, y)
    with pytest.raises(ValueError, match="X must be rows in memory with an estimator of your own, got None"):
        UntwistClassifier(GaussianNB()).fit(None, y)
    with pytest.raises(ValueError, match="y must have two classes among the rows with positive sample_weight"):
        UntwistClassifier(GaussianNB()).fit([str(row) for row in X], y, sample_weight=(y == 0).astype(float))


def test_rows_are_compared_with_those_of_the_model_that_was_read():
    """Another thread may fit to another table meanwhile."""
    X, y, _ = draw_noisy_rows(200)
    model = UntwistClassifier(GaussianNB(), random_state=0).fit(X, y)
    before = model.model_
    model.fit(X[:, :3], y)
    assert before.encoder.encode(X, model) is X


def test_a_classifier_without_tags_and_a_class_will_do_or_are_named():
    class Duck:
        def get_params(self, deep=True):
            return {}

        def set_params(self):
            return self

        def fit(self, X, y):
            self.model = GaussianNB().fit(X, y)
            return self

        def predict_proba(self, X):
            return self.model.predict_proba(X)

    X, y, _ = draw_noisy_rows(200)
    model = UntwistClassifier(Duck(), random_state=0).fit(X, y)
    same = UntwistClassifier(GaussianNB(), random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    assert UntwistClassifier(GaussianNB).__sklearn_tags__().estimator_type == "classifier"


def test_the_folds_are_those_of_an_audit_by_the_estimator():
    X, y, _ = draw_noisy_rows(400)
    model = UntwistClassifier(make_linear(), random_state=4).fit(X, y)
    audit = audit_labels(X, y, make_linear(), random_state=4)
    np.testing.assert_allclose(model.oof_proba_, audit.posterior, atol=1e-12)
    texts = [" ".join(f"w{number}" for number in row) for row in (X > 0).astype(int) + 2 * np.arange(4)]
    judge = make_pipeline(TfidfVectorizer(), LogisticRegression())
    of_texts = UntwistClassifier(judge, random_state=0).fit(texts, y)
    np.testing.assert_allclose(audit_labels(texts, y, of_texts).posterior, audit_labels(texts, y, judge).posterior)
    with pytest.raises(ValueError, match="X and y must be the rows that the model was fitted to"):
        audit_labels(texts[::-1], y, of_texts)
