"""A warm start: later fits go on from the rounds of earlier ones, to the model of one fit."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from helpers.small_fits import (
    SETTINGS,
    add_text_column,
    assert_same_forests,
    draw_coloured_rows,
    draw_sample,
    make_model,
)
from untwist import PILBoostClassifier
from untwist.files import dumps, loads


def boost_on(fitted, rounds, *data, **named):
    return fitted.set_params(n_estimators=rounds).fit(*data, **named)


@pytest.mark.parametrize("settings", [one for one in SETTINGS if "early_stopping" not in one], ids=str)
@pytest.mark.parametrize("kind", ["numbers", "categories", "classes", "validation"])
@pytest.mark.thinned(3)
def test_a_warm_start_equals_one_fit(settings, kind):
    X, y = draw_sample(classes=3 if kind == "classes" else 2)
    X = add_text_column(X) if kind == "categories" else X
    more = {}
    if kind == "validation":
        more = dict(zip(("X_val", "y_val"), draw_sample(50, seed=9, missing=0.2), strict=True))
    at_once = make_model(14, **settings).fit(X, y, **more)
    halves = make_model(5, warm_start=True, **settings).fit(X, y, **more)
    boost_on(halves, 6, X, y, **more)
    boost_on(halves, 14, X, y, **more)
    assert_same_forests(halves, at_once, X)
    assert halves.n_iter_ == 14
    np.testing.assert_array_equal(halves.predict_proba(X), at_once.predict_proba(X))
    np.testing.assert_array_equal(halves.leverages_, at_once.leverages_)
    for name, values in at_once.evals_result_.get("validation", {}).items():
        np.testing.assert_array_equal(halves.evals_result_["validation"][name], values)
    boost_on(halves, 14, X, y, **more)  # There is nothing left to do.
    assert_same_forests(halves, at_once, X)


def test_a_warm_start_keeps_its_seed():
    X, y = draw_sample()
    fitted = make_model(4, warm_start=True, subsample=0.5, random_state=None).fit(X, y)
    first = fitted.forest_.value.copy()
    boost_on(fitted, 8, X, y)
    np.testing.assert_array_equal(fitted.forest_.value[: len(first)], first)
    assert fitted.n_iter_ == 8


def test_a_warm_start_on_a_frame():
    columns, y = draw_coloured_rows()
    for frame in (pd.DataFrame(columns), pd.DataFrame(columns)[["x"]]):
        halves = make_model(3, warm_start=True).fit(frame, y)
        boost_on(halves, 8, frame, y)
        assert_same_forests(halves, make_model(8).fit(frame, y), frame)
        assert halves.feature_names_in_.tolist() == frame.columns.tolist()
        with pytest.raises(ValueError, match="feature names"):
            boost_on(halves, 9, frame.rename(columns={"x": "z"}), y)


def test_a_warm_start_that_stopped_early_goes_on_from_the_rounds_it_kept():
    X, y = draw_sample(noise=0.3)
    fitted = make_model(60, warm_start=True, early_stopping=3).fit(X, y)
    kept, rows = fitted.n_iter_, fitted.validation_rows_
    assert kept < 57
    first = fitted.forest_.value.copy()
    boost_on(fitted, 80, X, y)
    np.testing.assert_array_equal(fitted.forest_.value[: len(first)], first)
    np.testing.assert_array_equal(fitted.validation_rows_, rows)
    losses = fitted.evals_result_["validation"]["log_loss"]
    assert fitted.n_iter_ == np.argmin(losses) + 1 >= kept


def test_a_warm_start_that_cannot_be():
    X, y = draw_sample()
    fitted = make_model(6, warm_start=True).fit(X, y)
    scores = fitted.decision_function(X)
    with pytest.raises(ValueError, match="n_estimators must be at least the 6 rounds of the last fit, got 5"):
        boost_on(fitted, 5, X, y)
    with pytest.raises(ValueError, match="y has labels that the training labels have not"):
        boost_on(fitted, 9, X, y + 1)
    with pytest.raises(ValueError, match="features"):
        boost_on(fitted, 9, X[:, :2], y)
    for model in (fitted, loads(dumps(fitted))):
        with pytest.raises(ValueError, match="a warm start goes on with init of the last fit, 'zero', got 'prior'"):
            boost_on(model.set_params(growth__init="prior"), 9, X, y)
        model.set_params(growth=None)
    np.testing.assert_array_equal(fitted.decision_function(X), scores)
    fresh = boost_on(fitted.set_params(warm_start=False), 3, X, y + 1)
    assert fresh.classes_.tolist() == [1, 2]
    assert fresh.n_iter_ == 3


@pytest.mark.parametrize("classes", [2, 3])
def test_a_warm_start_has_init_score_where_the_last_fit_had_it(classes):
    X, y = draw_sample(classes=classes)
    given = make_model(4).fit(X, y).decision_function(X)
    fitted = make_model(3, warm_start=True).fit(X, y, init_score=given)
    with pytest.raises(ValueError, match="a warm start goes on with init_score of the last fit, got none"):
        boost_on(fitted, 8, X, y)
    at_once = make_model(8).fit(X, y, init_score=given)
    for halves in (pickle.loads(pickle.dumps(fitted)), loads(dumps(fitted))):
        with pytest.raises(ValueError, match="a warm start goes on with init_score of the last fit, got none"):
            boost_on(halves, 8, X, y)
        boost_on(halves, 8, X, y, init_score=given)
        np.testing.assert_array_equal(halves.decision_function(X), at_once.decision_function(X))
    for init in ("prior", "zero"):
        plain = make_model(3, warm_start=True, init=init).fit(X, y)
        for model in (plain, loads(dumps(plain))):
            with pytest.raises(ValueError, match="goes on with init_score of the last fit, which had none"):
                boost_on(model, 8, X, y, init_score=given)


def test_a_warm_start_of_the_reference_engine_goes_on():
    X, y = draw_sample(classes=3)
    weight = np.random.default_rng(2).uniform(0.5, 1.0, len(y))
    X_val, y_val = draw_sample(60, classes=3, seed=1)
    # Trees of scikit-learn break ties by seeds, and from 0 there are none.
    for settings in ({"engine": "reference"}, {"estimator": Ridge(10.0)}):
        fitted = make_model(3, warm_start=True, **settings).fit(X, y, weight, X_val=X_val, y_val=y_val)
        first = list(fitted.estimators_[0])
        boost_on(fitted, 8, X, y, weight, X_val=X_val, y_val=y_val)
        at_once = make_model(8, **settings).fit(X, y, weight, X_val=X_val, y_val=y_val)
        assert all(one is other for one, other in zip(first, fitted.estimators_[0], strict=False))
        np.testing.assert_allclose(fitted.decision_function(X), at_once.decision_function(X), rtol=1e-9, atol=1e-12)
        for k in range(3):
            np.testing.assert_allclose(
                fitted.evals_result_["validation"]["log_loss"][k], at_once.evals_result_["validation"]["log_loss"][k]
            )


def test_the_step_of_later_rounds_is_their_own():
    """Leverages, which the certificate and the hypotheses rest on, are those that made the scores."""
    X, y = draw_sample()
    fitted = make_model(3, warm_start=True, step_size=1.0).fit(X, y)
    boost_on(fitted.set_params(step_size=2.0), 6, X, y)
    replayed = sum(b * h.predict(X) for b, h in zip(fitted.leverages_, fitted.estimators_, strict=True))
    np.testing.assert_allclose(fitted.start_ + replayed, fitted.decision_function(X), rtol=1e-12)
    np.testing.assert_allclose(fitted.leverages_, np.repeat([1.0, 2.0], 3) * fitted.edges_)


def test_certificates_of_categories_and_after_a_warm_start():
    X, y = draw_sample()
    fitted = make_model(4, warm_start=True).fit(add_text_column(X), y)
    boost_on(fitted, 9, add_text_column(X), y)
    certificate = fitted.certificate(add_text_column(X), y)
    assert (
        certificate.exact.verdicts
        == make_model(9).fit(add_text_column(X), y).certificate(add_text_column(X), y).exact.verdicts
    )


def test_rounds_that_were_not_validated_do_not_end_a_warm_start():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    model = PILBoostClassifier(alpha=2.0, n_estimators=5, max_depth=2, warm_start=True, random_state=0).fit(X, y)
    for n_estimators in (10, 30):
        model.set_params(n_estimators=n_estimators, early_stopping=40)
        model.fit(X, y, X_val=X, y_val=y)
    assert len(model.evals_result_["validation"]["log_loss"]) == 30
