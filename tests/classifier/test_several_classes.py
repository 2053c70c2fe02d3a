"""More than two classes: one against the rest, each class as a fit of its own."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    train_test_split,
)

from helpers.learners import make_paper_model
from helpers.small_fits import draw_sample, make_model


@pytest.mark.parametrize("alpha", [2.0, -1.5, math.inf])
@pytest.mark.parametrize("classes", [3, 5])
def test_one_against_the_rest_is_a_binary_fit_per_class(alpha, classes):
    X, y = draw_sample(classes=classes, missing=0.1)
    settings = {"alpha": alpha, "subsample": 0.8, "max_features": 0.7, "min_samples_leaf": 3}
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    many = make_model(**settings).fit(X, y, sample_weight=weight)
    scores = many.decision_function(X)
    assert scores.shape == (len(y), classes)
    for k in range(classes):
        binary = make_model(**settings).fit(X, y == k, sample_weight=weight)
        np.testing.assert_array_equal(scores[:, k], binary.decision_function(X))
        np.testing.assert_array_equal(many.leverages_[k], binary.leverages_)
        np.testing.assert_array_equal(many.edges_[k], binary.edges_)
        np.testing.assert_array_equal(many.apply(X)[:, :, k], binary.apply(X))
    np.testing.assert_array_equal(many.predict(X), np.arange(classes)[scores.argmax(axis=1)])
    posteriors = np.column_stack(
        [make_model(**settings).fit(X, y == k, weight).predict_proba(X)[:, 1] for k in range(classes)]
    )
    np.testing.assert_allclose(many.predict_proba(X), posteriors / posteriors.sum(axis=1, keepdims=True), rtol=1e-5)
    if alpha > 0:
        assert many.score(X, y, sample_weight=weight) > 0.7


@pytest.mark.parametrize("settings", [{}, {"engine": "reference"}, {"estimator": Ridge()}, {"link": "exact"}], ids=str)
@pytest.mark.parametrize("alpha", [2.0, -2.0])
@pytest.mark.thinned(3)
def test_many_classes_are_consistent(settings, alpha):
    X, y = draw_sample(classes=4)
    labels = np.array(["d", "a", "c", "b"])
    fitted = make_model(alpha=alpha, **settings).fit(X, labels[y])
    assert fitted.classes_.tolist() == ["a", "b", "c", "d"]
    scores, clean, twisted = fitted.decision_function(X), fitted.predict_proba(X), fitted.predict_proba_twisted(X)
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[scores.argmax(axis=1)])
    for probabilities in (clean, twisted):
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert (probabilities > 0).all()
    rows = np.ptp(clean, axis=1) > 1e-12
    decided = fitted.predict(X)[rows]
    chosen = clean[rows, np.searchsorted(fitted.classes_, decided)]
    # The chosen class has the largest posterior, apart from ties of clipped ones.
    assert (chosen >= clean[rows].max(axis=1) - 1e-12).all()
    stages = [list(f(X)) for f in (fitted.staged_decision_function, fitted.staged_predict, fitted.staged_predict_proba)]
    assert [len(stage) for stage in stages] == [fitted.n_iter_] * 3
    np.testing.assert_allclose(stages[0][-1], scores, rtol=1e-13)
    np.testing.assert_array_equal(stages[1][-1], fitted.predict(X))
    np.testing.assert_allclose(stages[2][-1], clean, rtol=1e-12)
    if alpha < 0:
        positive = make_model(alpha=-alpha, **settings).fit(X, labels[y])
        np.testing.assert_array_equal(scores, -positive.decision_function(X))
        np.testing.assert_array_equal(twisted, positive.predict_proba_twisted(X))


def test_reference_engine_and_estimator_boost_one_against_the_rest():
    X, y = draw_sample(classes=3)
    weight = np.random.default_rng(2).uniform(0.5, 1.0, len(y))  # No two splits are equally good.
    for settings, tolerance in (({"estimator": Ridge(10.0)}, 0.0), ({"engine": "reference"}, 1e-9)):
        many = make_model(**settings).fit(X, y, sample_weight=weight)
        for k in range(3):
            binary = make_model(**settings).fit(X, y == k, sample_weight=weight)
            np.testing.assert_allclose(
                many.decision_function(X)[:, k], binary.decision_function(X), rtol=tolerance, atol=tolerance
            )
        assert [len(column) for column in many.estimators_] == [6, 6, 6]
        assert many.forest_ == [None] * 3
        with pytest.raises(ValueError, match="only the trees of the compiled engine"):
            many.apply(X)


def test_the_names_of_classes_only_permute_the_columns():
    X, y = draw_sample(classes=4)
    plain = make_model(subsample=0.7).fit(X, y)
    names = np.array([7, -3, 50, 11])
    renamed = make_model(subsample=0.7).fit(X, names[y])
    order = np.argsort(names)
    np.testing.assert_array_equal(renamed.classes_, names[order])
    np.testing.assert_array_equal(renamed.decision_function(X), plain.decision_function(X)[:, order])
    np.testing.assert_array_equal(renamed.predict(X), names[plain.predict(X)])
    np.testing.assert_array_equal(renamed.margins(X, names[y]), plain.margins(X, y)[:, order])


def test_classes_stop_early_each_by_itself():
    X, y = draw_sample(400, classes=3, noise=0.25)
    X_val, y_val = draw_sample(200, classes=3, seed=1, noise=0.25)
    fitted = make_model(100, early_stopping=4).fit(X, y, X_val=X_val, y_val=y_val)
    counts = [len(forest) for forest in fitted.forest_]
    assert len(set(counts)) > 1
    assert fitted.n_iter_ == max(counts) < 100
    stages = list(fitted.staged_decision_function(X))
    leaves = fitted.apply(X)
    assert len(stages) == leaves.shape[1] == fitted.n_iter_
    for k in range(3):
        one = make_model(100, early_stopping=4).fit(X, y == k, X_val=X_val, y_val=y_val == k)
        assert len(one.forest_) == counts[k]
        for name in ("log_loss", "error"):
            np.testing.assert_array_equal(
                fitted.evals_result_["validation"][name][k], one.evals_result_["validation"][name]
            )
        for t, score in enumerate(one.staged_decision_function(X)):
            np.testing.assert_array_equal(stages[t][:, k], score)
        for later in stages[counts[k] :]:
            np.testing.assert_array_equal(later[:, k], one.decision_function(X))
        np.testing.assert_array_equal(leaves[:, : counts[k], k], one.apply(X))
        assert (leaves[:, counts[k] :, k] == -1).all()
    np.testing.assert_array_equal(stages[-1], fitted.decision_function(X))
    np.testing.assert_allclose(fitted.importances("gain").sum(), 1.0)


def test_a_class_of_one_row_and_thirty_classes():
    X, y = draw_sample(300, classes=30, noise=0.0)
    y[0] = 99
    fitted = make_model(8, init="zero").fit(X, y)
    assert fitted.predict_proba(X).shape == (300, 31)
    assert fitted.predict(X[:1]) == 99
    assert np.mean(fitted.predict(X) == y) > 0.6


def test_sample_weights_can_remove_a_class():
    X, y = draw_sample(classes=3)
    kept = y < 2
    three, two = make_model().fit(X, y, sample_weight=kept), make_model().fit(X[kept], y[kept])
    scores = three.decision_function(X)
    assert three.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(scores[:, 1], two.decision_function(X))
    np.testing.assert_allclose(scores[:, 0], -scores[:, 1], rtol=1e-6, atol=1e-9)
    assert (scores[:, 2] < 0).all()
    np.testing.assert_array_equal(three.predict(X), two.predict(X))
    stopping = make_model(early_stopping=True).fit(X, y, sample_weight=kept)
    assert kept[stopping.validation_rows_].all()


def test_predictions_and_probabilities_name_the_same_class_beyond_the_clip():
    X, test, y, _ = train_test_split(*load_wine(return_X_y=True), random_state=0)
    fitted = make_paper_model(2.0, random_state=0).fit(X, y)
    assert min(map(len, fitted.edges_)) < 100  # A class is told apart at once, and all its rows are beyond the clip.
    np.testing.assert_array_equal(fitted.predict(test), fitted.predict_proba(test).argmax(axis=1))
