"""What LightGBM's users rely on, by the subjects of its tests, written anew for PILBoostClassifier."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split

from helpers.quick import make_classifier
from untwist.explain import explain


def make_model(**settings):
    usual = {"alpha": 1.0, "n_estimators": 30, "max_depth": 3, "learning_rate": 0.4, "n_jobs": 1, "random_state": 0}
    return make_classifier(**(usual | settings))


@pytest.fixture(scope="module")
def cancer():
    return train_test_split(*load_breast_cancer(return_X_y=True), test_size=0.2, random_state=42)


def test_two_classes_are_learned_and_the_loss_is_told_of_every_round(cancer):
    X, X_test, y, y_test = cancer
    model = make_model(learning_rate=0.2).fit(X, y, X_val=X_test, y_val=y_test)
    curve = model.evals_result_["validation"]["log_loss"]
    assert log_loss(y_test, model.predict_proba(X_test)) < 0.2
    assert len(curve) == model.n_iter_ == 30
    assert curve[-1] == pytest.approx(log_loss(y_test, model.predict_proba_twisted(X_test)), abs=1e-6)


def test_ten_classes_are_learned():
    X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), test_size=0.1, random_state=42)
    model = make_model(n_estimators=20).fit(X[:600], y[:600])
    assert accuracy_score(y_test, model.predict(X_test)) > 0.9
    np.testing.assert_allclose(model.predict_proba(X_test).sum(axis=1), 1.0)


@pytest.mark.parametrize("filled", [0.0, 1.0, -3.0])
def test_missing_values_tell_by_being_missing(filled):
    y = np.arange(200) % 2
    X = np.where(y == 1, np.nan, filled)[:, None]
    model = make_model().fit(X, y)
    assert (model.predict(X) == y).all()
    assert roc_auc_score(y, model.decision_function(X)) == 1.0


def test_missing_values_that_training_has_not_seen_are_predicted_like_some_row():
    X = np.linspace(0, 1, 100)[:, None]
    model = make_model().fit(X, (X[:, 0] > 0.3).astype(int))
    score = model.decision_function([[np.nan]])
    assert score[0] in model.decision_function(X)


@pytest.mark.parametrize("shift", [0, 5])
def test_categories_out_of_order_are_learned_exactly(shift):
    X = np.repeat(np.arange(8), 20)[:, None] + shift
    y = X[:, 0] % 2
    model = make_model(categorical_features=[0], n_estimators=10).fit(X, y)
    assert (model.predict(X) == y).all()


def test_categories_of_a_frame_mean_the_same_in_any_order_and_after_pickling():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 300)
    frame = pd.DataFrame({"colour": pd.Categorical(colour), "x": rng.normal(size=300)})
    y = (colour == "green").astype(int)
    model = make_model().fit(frame, y)
    turned = frame.assign(colour=frame["colour"].cat.reorder_categories(["red", "blue", "green"]))
    expected = model.predict_proba(frame)
    np.testing.assert_array_equal(model.predict_proba(turned), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(frame), expected)
    strange = frame.assign(colour=pd.Categorical(["violet"] * 300))
    with pytest.warns(UserWarning, match="column 'colour' holds no category that it held when fitted, but 'violet'"):
        assert np.isfinite(model.predict_proba(strange)).all()


def test_training_stops_early_and_keeps_the_best_round(cancer):
    X, X_test, y, y_test = cancer
    model = make_model(n_estimators=300, early_stopping=5).fit(X, y, X_val=X_test, y_val=y_test)
    curve = model.evals_result_["validation"]["log_loss"]
    assert model.n_iter_ < 300
    assert model.n_iter_ == 1 + int(np.argmin(curve))
    assert len(curve) == model.n_iter_ + 5


def test_training_goes_on_where_it_ended(cancer):
    X, X_test, y, _ = cancer
    at_once = make_model(n_estimators=20).fit(X, y)
    in_two = make_model(n_estimators=8, warm_start=True).fit(X, y).set_params(n_estimators=20).fit(X, y)
    np.testing.assert_array_equal(in_two.decision_function(X_test), at_once.decision_function(X_test))


@pytest.mark.parametrize(
    "layout", [np.asfortranarray, lambda X: X[:, ::-1][:, ::-1], lambda X: np.repeat(X, 2, 0)[::2]]
)
def test_slices_and_other_layouts_of_memory_give_the_same_model(cancer, layout):
    X, X_test, y, _ = cancer
    expected = make_model().fit(X, y).decision_function(X_test)
    np.testing.assert_array_equal(make_model().fit(layout(X), y).decision_function(layout(X_test)), expected)


def test_a_sparse_table_is_its_dense_twin(cancer):
    X, X_test, y, _ = cancer
    X, X_test = np.where(X > 20, X, 0.0), np.where(X_test > 20, X_test, 0.0)
    expected = make_model().fit(X, y).decision_function(X_test)
    found = make_model().fit(csr_array(X), y).decision_function(csr_array(X_test))
    np.testing.assert_array_equal(found, expected)


def test_contributions_sum_to_the_score(cancer):
    X, X_test, y, _ = cancer
    model = make_model().fit(X, y)
    explanation = explain(model, X_test)
    total = explanation.values.sum(axis=1) + explanation.base_values
    np.testing.assert_allclose(total, model.decision_function(X_test), atol=1e-9)


@pytest.mark.parametrize("direction", [-1, 1])
def test_a_monotone_column_is_monotone_whatever_the_others_are(direction):
    rng = np.random.default_rng(0)
    X = rng.random((500, 3))
    y = (np.sin(9 * X[:, 0]) + X[:, 1] > 0.7).astype(int)
    model = make_model(monotonic_cst=[direction, 0, 0], n_estimators=20).fit(X, y)
    line = np.linspace(0, 1, 50)
    for row in X[:20]:
        path = np.tile(row, (50, 1))
        path[:, 0] = line
        assert (direction * np.diff(model.decision_function(path)) >= 0).all()


def test_few_bins_keep_few_values_apart():
    X = np.repeat([[0.0], [1.0], [2.0]], 30, axis=0)
    model = make_model(max_bins=2, n_estimators=5).fit(X, X[:, 0] > 0)
    assert len(np.unique(model.decision_function(X))) == 2
    model = make_model(max_bins=3, n_estimators=5).fit(X, X[:, 0] == 1)
    assert len(np.unique(model.decision_function(X).round(12))) >= 2
    assert (model.predict(X) == (X[:, 0] == 1)).all()


def test_columns_that_say_nothing_are_never_split(cancer):
    X, _, y, _ = cancer
    X = np.column_stack([X[:, :5], np.ones(len(X)), np.full(len(X), np.nan)])
    model = make_model().fit(X, y)
    assert model.importances("splits")[5:].tolist() == [0.0, 0.0]
    assert model.feature_importances_[:5].sum() == pytest.approx(1.0)


def test_a_search_over_settings_finds_the_best_of_them(cancer):
    X, _, y, _ = cancer
    search = GridSearchCV(make_model(n_estimators=5), {"max_depth": [1, 3], "min_samples_leaf": [1, 20]}, cv=2).fit(
        X, y
    )
    scores = search.cv_results_["mean_test_score"]
    assert search.best_score_ == scores.max()
    chosen = make_model(n_estimators=5, **search.best_params_)
    assert cross_val_score(chosen, X, y, cv=2).mean() == search.best_score_


def test_a_class_that_weighs_more_is_found_more_often(cancer):
    X, X_test, y, y_test = cancer
    found = [
        (make_model(n_estimators=5, class_weight=weights).fit(X, y).predict(X_test)[y_test == 0] == 0).mean()
        for weights in ({0: 0.05, 1: 1.0}, None, {0: 20.0, 1: 1.0})
    ]
    assert found[0] < found[1] <= found[2]


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float32", "bool"])
def test_numbers_of_any_type_are_the_same_numbers(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 3))
    y = X[:, 0] ^ (rng.random(200) < 0.1)
    expected = make_model().fit(X.astype(float), y).decision_function(X)
    np.testing.assert_array_equal(make_model().fit(X.astype(dtype), y).decision_function(X.astype(dtype)), expected)


def test_too_few_columns_are_refused(cancer):
    X, X_test, y, _ = cancer
    with pytest.raises(ValueError, match="30"):
        make_model().fit(X, y).predict(X_test[:, :-1])
