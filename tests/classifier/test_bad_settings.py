"""Settings and data that do not fit are refused by name."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from helpers.learners import make_paper_model
from helpers.small_fits import assert_same_forests, draw_sample, make_model


@pytest.mark.parametrize(
    "settings",
    [
        {"max_leaf_nodes": 1},
        {"max_leaf_nodes": 3.0},
        {"min_samples_leaf": 0},
        {"min_samples_leaf": 0.1},
        {"min_weight_fraction_leaf": 0.6},
        {"min_weight_fraction_leaf": -0.1},
        {"min_weight_fraction_leaf": math.nan},
        {"min_weight_fraction_leaf": None},
        {"l2": -1.0},
        {"l2": math.nan},
        {"l2": math.inf},
        {"l2": "much"},
        {"subsample": 0.0},
        {"subsample": 1.5},
        {"subsample": None},
        {"max_features": 0},
        {"max_features": 1.01},
        {"max_features": "sqrt"},
        {"extra_trees": 1},
        {"extra_trees": "yes"},
        {"extra_trees": True, "engine": "xgboost"},
        {"max_bins": 1},
        {"max_bins": 10.0},
        {"max_depth": 2.5},
        {"categorical_features": "all"},
        {"categorical_features": [4]},
        {"categorical_features": ["colour"]},
        {"categorical_features": [True, False]},
        {"monotonic_cst": [1, 0]},
        {"monotonic_cst": [2, 0, 0, 0]},
        {"monotonic_cst": "up"},
        {"monotonic_cst": {"a": 1}},
        {"class_weight": "even"},
        {"class_weight": [1.0, 2.0]},
        {"class_weight": {5: 1.0}},
        {"class_weight": {0: -1.0}},
        {"class_weight": {0: math.nan}},
        {"class_weight": {0: "a"}},
        {"early_stopping": 0},
        {"early_stopping": 1.5},
        {"early_stopping": None},
        {"callbacks": [1]},
        {"random_state": "a"},
        {"random_state": -1},
        {"callbacks": 5},
        {"callbacks": print},
        {"verbose": None},
        {"verbose": "loud"},
        {"n_jobs": 1.5},
        {"l2": 1.0, "engine": "reference"},
        {"subsample": 0.5, "engine": "reference"},
        {"max_features": 0.5, "estimator": Ridge()},
        {"extra_trees": True, "engine": "reference"},
        {"max_bins": 20, "engine": "reference"},
        {"monotonic_cst": [1, 0, 0, 0], "engine": "reference"},
        {"monotonic_cst": np.array([1, 0, 0, 0]), "engine": "reference"},
    ],
    ids=str,
)
def test_bad_settings_are_named(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        make_model(**settings).fit(*draw_sample())


def test_a_huge_patience_or_tree_is_no_error_of_another_kind():
    X, y = draw_sample()
    assert_same_forests(
        make_model(max_leaf_nodes=10**6, max_depth=3).fit(X, y), make_model(max_leaf_nodes=8, max_depth=3).fit(X, y), X
    )
    with pytest.raises(ValueError, match="categor"):
        make_model(categorical_features=[0]).fit(sparse.csr_array(X), y)
    with pytest.raises(ValueError, match="X_val and y_val must have as many rows"):
        make_model().fit(X, y, X_val=X, y_val=y[:-1])
    with pytest.raises(ValueError, match="features"):
        make_model().fit(X, y, X_val=X[:, :3], y_val=y)


def test_lengths_labels_names_and_links_that_do_not_fit_are_named():
    X, y = draw_sample()
    fitted = make_paper_model(2.0, n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.weights(X[:5], y[:1])
    with pytest.raises(ValueError, match="a warm start goes on with the link of the last fit"):
        fitted.set_params(warm_start=True, alpha=8.0, n_estimators=5).fit(X, y)
    with pytest.raises(ValueError, match="validation rows: X has 2 features"):
        make_paper_model(2.0).fit(X, y, X_val=X[:, :2], y_val=y)
    with pytest.raises(ValueError, match="no missing labels, got 1, the first in row 3"):
        make_paper_model(2.0).fit(X, np.array(["a", "b", "a", None, *["b"] * (len(y) - 4)], dtype=object))
    with pytest.raises(ValueError, match=r"different names of columns, got \['a'\] more than once"):
        make_paper_model(2.0).fit(pd.DataFrame(X, columns=["a", "a", "b", "c"]), y)
