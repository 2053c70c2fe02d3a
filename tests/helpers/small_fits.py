"""Small samples, quick models and lists of settings for the tests of fits, and the comparison of two models."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from helpers.learners import make_paper_model
from helpers.number_fixtures import ARRAYS

SETTINGS = [
    {},
    {"max_leaf_nodes": 5, "max_depth": None},
    {"min_samples_leaf": 12},
    {"min_weight_fraction_leaf": 0.1},
    {"l2": 3.0},
    {"subsample": 0.5},
    {"max_features": 0.5},
    {"extra_trees": True},
    {"subsample": 0.6, "max_features": 0.7, "min_samples_leaf": 5, "l2": 1.0, "max_leaf_nodes": 6},
    {"early_stopping": 3},
    {"early_stopping": True, "subsample": 0.7, "max_features": 0.5},
    {"class_weight": "balanced"},
    {"alpha": -1.5, "link": "exact"},
    {"max_bins": 16},
]

# A test under this mark runs with each of the settings.
any_settings = pytest.mark.parametrize("settings", SETTINGS, ids=str)

KINDS = [
    {},
    {"engine": "reference"},
    {"estimator": Ridge()},
    {"subsample": 0.5, "max_features": 0.5},
]

# A test under this mark runs with each engine, a given estimator, and draws of rows and columns.
any_engine = pytest.mark.parametrize("settings", KINDS, ids=str)


def draw_sample(n=240, classes=2, seed=0, noise=0.1, missing=0.0):
    """Four columns of numbers; the label depends on three of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + X[:, 1] * X[:, 2]
    y = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    y = np.where(rng.random(n) < noise, rng.integers(0, classes, n), y)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def draw_coloured_rows(n=200, seed=0, missing=True):
    """Number, colour and size columns as Python lists, and a label that depends on the colour out of order."""
    rng = np.random.default_rng(seed)
    colours = rng.choice(["blue", "green", "red", "violet", "yellow"], n)
    sizes = rng.choice(["L", "M", "S"], n)
    x = rng.normal(size=n)
    y = (np.isin(colours, ["blue", "red"]) ^ (x > 1) ^ (rng.random(n) < 0.1)).astype(int)
    colours = colours.astype(object)
    if missing:
        colours[rng.random(n) < 0.1] = None
    return {"x": x, "colour": colours, "size": sizes.astype(object)}, y


def draw_many_rows(n=60_000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def stack_as_objects(columns):
    return np.column_stack([np.asarray(values, dtype=object) for values in columns.values()])


def add_text_column(X):
    """The table with a text column made of the last one, for settings that ask for it."""
    table = X.astype(object)
    table[:, 3] = np.array(["low", "mid", "high", "top"], dtype=object)[np.digitize(X[:, 3], [-0.7, 0.0, 0.7])]
    return table


def make_model(rounds=6, **settings):
    return make_paper_model(**{"n_estimators": rounds, "random_state": 0, **settings})


def list_forests(fitted):
    """The trees of either classifier, for each class that was boosted by itself."""
    return [ensemble.forest for ensemble in fitted.model_.ensembles]


def assert_same_forests(one, other, X=None, other_X=None):
    """Bit for bit the same model, and the same scores."""
    for left, right in zip(list_forests(one), list_forests(other), strict=True):
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
    if X is not None:
        other_X = X if other_X is None else other_X
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(other_X))
