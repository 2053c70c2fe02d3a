"""What XGBoost's users rely on, by the subjects of its tests, written anew for PILBoostClassifier."""

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import StackingClassifier
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.quick import make_classifier
from untwist.files import load, save


def make_model(**settings):
    usual = {"alpha": 1.0, "n_estimators": 15, "max_depth": 3, "learning_rate": 0.4, "n_jobs": 1, "random_state": 0}
    return make_classifier(**(usual | settings))


@pytest.fixture(scope="module")
def digits():
    """The digits 0 and 1."""
    return load_digits(n_class=2, return_X_y=True)


def test_two_digits_are_told_apart_on_unseen_folds(digits):
    folds = KFold(n_splits=2, shuffle=True, random_state=0)
    assert cross_val_score(make_model(), *digits, cv=folds).min() > 0.9


def test_three_flowers_are_told_apart_on_unseen_folds():
    X, y = load_iris(return_X_y=True)
    predicted = cross_val_predict(make_model(), X, y, cv=KFold(n_splits=2, shuffle=True, random_state=0))
    assert (predicted != y).mean() < 0.1


@pytest.mark.parametrize("labels", [["no", "yes"], [-1, 1], [False, True], [2.0, 7.0]], ids=str)
def test_labels_come_back_as_they_were_given(digits, labels):
    X, y = digits
    given = np.array(labels)[y]
    model = make_model(n_estimators=5).fit(X, given)
    assert model.predict(X).dtype == given.dtype
    assert (model.predict(X) == given).mean() > 0.98
    assert model.classes_.tolist() == labels


def test_zeros_that_weigh_nothing_are_absent(digits):
    X, y = digits
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    absent = make_model().fit(X[weight > 0], y[weight > 0])
    weightless = make_model().fit(X, y, weight)
    np.testing.assert_allclose(weightless.decision_function(X), absent.decision_function(X), rtol=1e-9)


def test_validation_rows_weigh_as_they_are_told(digits):
    X, y = digits
    doubled = np.repeat(np.arange(len(y)), 1 + (y == 1))
    by_weight = make_model().fit(X, y, X_val=X, y_val=1 - y, sample_weight_val=1.0 + (y == 1))
    by_rows = make_model().fit(X, y, X_val=X[doubled], y_val=1 - y[doubled])
    np.testing.assert_allclose(
        by_weight.evals_result_["validation"]["log_loss"], by_rows.evals_result_["validation"]["log_loss"], rtol=1e-9
    )


def test_importances_are_shares_of_columns_that_tell(digits):
    X, y = digits
    model = make_model().fit(X, y)
    for kind in ("paper", "gain", "splits"):
        shares = model.importances(kind)
        assert shares.shape == (64,)
        assert shares.sum() == pytest.approx(1.0)
        assert shares[X.std(axis=0) == 0].sum() == 0.0
    with pytest.raises(ValueError, match="weight"):
        model.importances("weight")


def test_columns_are_known_by_name_and_order(digits):
    frame = pd.DataFrame(digits[0][:, 18:24], columns=list("abcdef"))
    model = make_model().fit(frame, digits[1])
    assert model.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="names"):
        model.predict(frame[list("fedcba")])
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(frame.to_numpy())


def test_copies_clones_and_pickles(digits):
    X, y = digits
    model = make_model().fit(X, y)
    expected = model.predict_proba(X)
    for twin in (deepcopy(model), pickle.loads(pickle.dumps(model)), clone(model).fit(X, y)):
        np.testing.assert_array_equal(twin.predict_proba(X), expected)
    assert not hasattr(clone(model), "classes_")


def test_a_saved_model_predicts_the_same(digits, tmp_path):
    X, y = digits
    model = make_model().fit(X, y)
    save(model, tmp_path / "model.untwist")
    loaded = load(tmp_path / "model.untwist")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.get_params()["max_depth"] == 3


def test_settings_can_be_read_and_set_one_by_one():
    model = make_model()
    assert model.get_params()["n_estimators"] == 15
    assert model.set_params(n_estimators=7).n_estimators == 7
    with pytest.raises(ValueError, match="eta"):
        model.set_params(eta=0.3)
    assert is_classifier(model)


@pytest.mark.parametrize(
    "settings", [{"max_depth": -1}, {"n_estimators": 0}, {"subsample": 2.0}, {"learning_rate": -1}]
)
def test_settings_that_cannot_be_are_refused(digits, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        make_model(**settings).fit(*digits)


def test_rows_and_columns_are_drawn_anew_by_another_seed(digits):
    X, y = digits
    first, again, other = (
        make_model(subsample=0.5, max_features=0.3, random_state=seed).fit(X, y).decision_function(X)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_prediction_is_the_last_of_the_stages(digits):
    X, y = digits
    model = make_model().fit(X, y)
    stages = list(model.staged_decision_function(X))
    assert len(stages) == model.n_iter_
    np.testing.assert_allclose(stages[-1], model.decision_function(X), rtol=1e-9)
    early = make_model(n_estimators=4).fit(X, y).decision_function(X)
    np.testing.assert_allclose(stages[3], early, rtol=1e-9)


def test_leaves_are_those_of_every_tree(digits):
    X, y = digits
    leaves = make_model().fit(X, y).apply(X)
    assert leaves.shape == (len(X), 15)
    assert (leaves >= 0).all()


def test_it_serves_inside_of_other_estimators():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[::3], y[::3]
    model = make_model(n_estimators=5)
    calibrated = CalibratedClassifierCV(model, cv=2).fit(X, y)
    stacked = StackingClassifier([("ours", model)], LogisticRegression(), cv=2).fit(X, y)
    piped = make_pipeline(StandardScaler(), model).fit(X, y)
    selected = RFECV(model, step=10, cv=2).fit(X, y)
    assert all(one.score(X, y) > 0.93 for one in (calibrated, stacked, piped, selected))
    assert selected.n_features_ <= 30


def test_infinite_numbers_are_refused_by_name(digits):
    X, y = digits
    X = X.copy()
    X[3, 4] = np.inf
    with pytest.raises(ValueError, match="inf"):
        make_model().fit(X, y)


def test_empty_tables_and_other_lengths_are_refused(digits):
    X, y = digits
    with pytest.raises(ValueError, match="0 sample"):
        make_model().fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make_model().fit(X, y[:-1])
