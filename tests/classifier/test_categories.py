"""Columns that hold categories: learned, unseen, missing, and as numbers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from helpers.small_fits import assert_same_forests, draw_coloured_rows, make_model, stack_as_objects


def test_the_order_of_rows_does_not_matter_with_categories():
    columns, y = draw_coloured_rows(300)
    X, order = stack_as_objects(columns), np.random.default_rng(0).permutation(300)
    settings = {"subsample": 0.7, "max_features": 0.6, "min_samples_leaf": 4}
    assert_same_forests(make_model(**settings).fit(X, y), make_model(**settings).fit(X[order], y[order]), X)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.filterwarnings("ignore:column .* holds no category:UserWarning")
def test_unseen_and_missing_categories_are_one(missing):
    columns, y = draw_coloured_rows(missing=missing)
    X = stack_as_objects(columns)
    fitted = make_model(max_depth=4).fit(X, y)
    new = np.array([[0.3, value, "M"] for value in ("octarine", None, np.nan, 5)], dtype=object)
    scores = fitted.decision_function(new)
    assert np.isfinite(scores).all()
    assert len(set(scores.tolist())) == 1
    frame = pd.DataFrame(columns).astype({"colour": "category"})
    by_name = make_model(max_depth=4).fit(frame, y)
    later = pd.DataFrame({"x": [0.3], "colour": pd.Categorical(["octarine"]), "size": ["M"]})
    np.testing.assert_array_equal(by_name.decision_function(later), scores[:1])
    if not missing:  # Where training had none, they go to the heavier side of every split.
        stump = make_model(1, max_depth=1, categorical_features=[0]).fit([["a"]] * 5 + [["b"]] * 3, [0] * 5 + [1] * 3)
        assert stump.decision_function([["?"]]) == stump.decision_function([["a"]])


def test_one_stump_learns_any_set_of_categories():
    names = np.array(list("abcdefgh"), dtype=object)
    codes = np.tile(np.arange(8), 30)
    y = np.isin(codes, [0, 3, 4, 7]).astype(int)
    X = np.column_stack([np.random.default_rng(0).normal(size=240), names[codes]]).astype(object)
    fitted = make_model(1, max_depth=1).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), y)
    assert fitted.forest_.feature.tolist() == [1, -1, -1]
    ordinal = make_model(1, max_depth=1, categorical_features=None).fit(
        np.column_stack([X[:, 0].astype(float), codes]), y
    )
    assert ordinal.score(np.column_stack([X[:, 0].astype(float), codes]), y) < 0.8


@pytest.mark.filterwarnings("ignore:column .* holds no category:UserWarning")
def test_numbers_as_categories():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.choice([3, 10, 7, -1], 200)])
    y = np.isin(X[:, 1], [3, 10]).astype(int) ^ (rng.random(200) < 0.1)
    frame = pd.DataFrame({"x": X[:, 0], "k": pd.Categorical(X[:, 1].astype(int))})
    reference = make_model().fit(frame, y)
    for chosen in ([1], np.array([1]), [False, True]):
        fitted = make_model(categorical_features=chosen).fit(X, y)
        assert_same_forests(fitted, reference, X, frame)
        np.testing.assert_array_equal(
            fitted.decision_function([[0.0, 99.0]]), fitted.decision_function([[0.0, np.nan]])
        )
    assert_same_forests(make_model(categorical_features=["k"]).fit(frame.astype({"k": float}), y), reference)
    assert (make_model().fit(X, y).forest_.set == -1).all()


def test_only_the_compiled_engine_knows_categories():
    columns, y = draw_coloured_rows()
    for settings in ({"engine": "reference"}, {"estimator": Ridge()}):
        with pytest.raises(ValueError, match="the reference engine takes no categories"):
            make_model(**settings).fit(pd.DataFrame(columns), y)
    with pytest.raises(ValueError, match="categorical_features"):
        make_model(categorical_features=None).fit(pd.DataFrame(columns), y)
