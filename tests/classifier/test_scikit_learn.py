"""The classifier among scikit-learn's tools: routing, pipelines, copies, processes, inspection."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.small_fits import assert_same_forests, draw_coloured_rows, draw_sample, make_model
from untwist import PILBoostClassifier, UntwistClassifier


def test_metadata_routing():
    X, y = draw_sample(classes=3)
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    folds = KFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_model().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = cross_validate(routed, X, y, cv=folds, params={"sample_weight": weight})["test_score"]
        search = GridSearchCV(routed, {"alpha": [1.1, 2.0]}, cv=folds).fit(X, y, sample_weight=weight)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, routed).fit(X, y, sample_weight=weight)
        watching = make_pipeline(make_model().set_fit_request(X_val=True, y_val=True))
        watching.fit(X, y, X_val=X[:50], y_val=y[:50])
    expected = [
        make_model().fit(X[train], y[train], weight[train]).score(X[test], y[test], weight[test])
        for train, test in folds.split(X)
    ]
    np.testing.assert_allclose(found, expected)
    best = search.best_estimator_
    assert_same_forests(best, make_model(alpha=best.alpha).fit(X, y, weight), X)
    Z = StandardScaler().fit_transform(X)
    assert_same_forests(pipeline[-1], make_model().fit(Z, y, weight), Z)
    assert len(watching[-1].evals_result_["validation"]["log_loss"][0]) == 6


def test_pipelines_that_hand_on_frames():
    X, y = draw_sample()
    frame = pd.DataFrame(X, columns=list("abcd"))
    for kind in ("pandas", "polars"):
        pytest.importorskip(kind)
        pipeline = make_pipeline(StandardScaler(), make_model(monotonic_cst={"a": 1})).set_output(transform=kind)
        pipeline.fit(frame, y)
        assert pipeline[-1].feature_names_in_.tolist() == list("abcd")
        plain = make_model(monotonic_cst=[1, 0, 0, 0]).fit(StandardScaler().fit_transform(X), y)
        np.testing.assert_array_equal(
            pipeline.decision_function(frame), plain.decision_function(StandardScaler().fit_transform(X))
        )


@pytest.mark.filterwarnings("ignore:column .* holds no category:UserWarning")
def test_copies_of_a_model():
    columns, y = draw_coloured_rows(classes := 200)
    frame, labels = pd.DataFrame(columns).astype({"colour": "category"}), np.arange(classes) % 3
    for target in (y, labels):
        fitted = make_model(callbacks=[print_nothing], early_stopping=True).fit(frame, target)
        expected = fitted.predict_proba(frame)
        unseen = frame.assign(colour=pd.Categorical(["octarine"] * len(frame)))
        for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
            np.testing.assert_array_equal(other.predict_proba(frame), expected)
            np.testing.assert_array_equal(other.predict_proba(unseen), fitted.predict_proba(unseen))
            np.testing.assert_array_equal(other.apply(frame), fitted.apply(frame))
            assert_same_forests(other, fitted)
        fresh = clone(fitted)
        with pytest.raises(NotFittedError):
            fresh.predict(frame)
        assert_same_forests(fresh.fit(frame, target), fitted, frame)
    changed = copy.deepcopy(fitted).fit(frame, y)  # A copy goes its own way.
    assert len(changed.classes_) == 2
    np.testing.assert_array_equal(fitted.predict_proba(frame), expected)


def print_nothing(progress):
    return False


@pytest.mark.slow
def test_other_processes():
    X, y = draw_sample(2000, classes=3)
    X = np.tile(X, 8)  # The table is large enough for threads to be used.
    fitted = make_model(n_jobs=2).fit(X, y)
    halves = joblib.Parallel(n_jobs=2)(joblib.delayed(fitted.predict_proba)(part) for part in np.array_split(X, 2))
    np.testing.assert_array_equal(np.vstack(halves), fitted.predict_proba(X))
    again = joblib.Parallel(n_jobs=2)(joblib.delayed(make_model(2).fit)(X, y == k) for k in range(2))
    for k in range(2):
        assert_same_forests(again[k], make_model(2).fit(X, y == k))


def test_cross_validation_and_calibration_of_many_classes():
    X, y = draw_sample(classes=3)
    folds = StratifiedKFold(3)
    found = cross_val_predict(make_model(), X, y, cv=folds, method="predict_proba")
    for train, test in folds.split(X, y):
        np.testing.assert_array_equal(found[test], make_model().fit(X[train], y[train]).predict_proba(X[test]))
    calibrated = CalibratedClassifierCV(make_model(), cv=folds).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    assert calibrated.score(X, y) > 0.6


def test_inspection():
    X, y = draw_sample(noise=0.0)
    fitted = make_model(20).fit(X, y)
    importance = permutation_importance(fitted, X, y, n_repeats=3, random_state=0).importances_mean
    assert importance.argmin() == 3
    assert importance[:3].min() > 0.02
    columns, labels = draw_coloured_rows()
    frame = pd.DataFrame(columns).astype({"colour": "category"})
    for target, method in ((labels, "decision_function"), (np.arange(200) % 3, "predict_proba")):
        fitted = make_model().fit(frame, target)
        shown = partial_dependence(fitted, frame, ["x"], response_method=method, grid_resolution=5, kind="average")
        for i, value in enumerate(shown["grid_values"][0]):
            means = getattr(fitted, method)(frame.assign(x=value)).mean(axis=0)
            np.testing.assert_allclose(shown["average"][:, i], means)


def test_a_subclass_may_have_a_constructor_of_its_own():
    class Shallow(PILBoostClassifier):
        def __init__(self, depth=2):
            super().__init__(alpha=2.0, n_estimators=4, max_depth=depth)
            self.depth = depth

    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = X[:, 0] + rng.normal(size=100) > 0
    assert Shallow(depth=1).fit(X, y).n_iter_ == 4

    class Believing(UntwistClassifier):
        def __init__(self, n_folds=5):
            super().__init__(noise=None, cv=n_folds, random_state=0)
            self.n_folds = n_folds

    plain = UntwistClassifier(noise=None, cv=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(Believing(n_folds=3).fit(X, y).oof_proba_, plain.oof_proba_)


def test_messages_about_validation_rows_name_the_classifier():
    X = np.random.default_rng(0).normal(size=(100, 3))
    y = X[:, 0] > 0
    with pytest.raises(ValueError, match="X has 2 features, but PILBoostClassifier is expecting 3"):
        PILBoostClassifier().fit(X, y, X_val=X[:, :2], y_val=y)
    with pytest.raises(ValueError, match="This PILBoostClassifier estimator requires y to be passed"):
        PILBoostClassifier().fit(X, None)
