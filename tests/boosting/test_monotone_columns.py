"""Columns whose score may only rise, or only fall."""

import numpy as np
import pandas as pd
import pytest

from helpers.small_fits import assert_same_forests, draw_coloured_rows, draw_sample, make_model
from untwist.losses import AlphaLoss


def climb(fitted, X, column, wrap=lambda X: X):
    """Scores of rows of X as one column climbs."""
    steps = np.linspace(-3.5, 3.5, 40)
    grid = np.repeat(X[:60], len(steps), axis=0)
    grid[:, column] = np.tile(steps, 60)
    return fitted.decision_function(wrap(grid)).reshape(60, -1), fitted.predict_proba(wrap(grid))[:, 1].reshape(60, -1)


@pytest.mark.parametrize("alpha", [1.1, 3.0, -2.0])
@pytest.mark.parametrize(
    "settings",
    [
        {"max_depth": 5},
        {"max_leaf_nodes": 12, "max_depth": None},
        {"subsample": 0.6, "max_features": 0.7, "l2": 1.0},
        {"extra_trees": True, "min_samples_leaf": 5},
        {"min_samples_leaf": 5, "max_bins": 20},
    ],
    ids=str,
)
def test_monotone_columns(alpha, settings):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 3))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(np.sin(3 * X[:, 0]) + np.cos(3 * X[:, 1]) + X[:, 2]) > 0.3).astype(int)
    free = climb(make_model(30, alpha=alpha, **settings).fit(X, y), X, 0)[0]
    assert np.diff(free).min() < 0 < np.diff(free).max()
    bound = make_model(30, alpha=alpha, monotonic_cst=[1, -1, 0], **settings).fit(X, y)
    for column, sign in ((0, 1), (1, -1)):
        for values in climb(bound, X, column):
            assert (sign * np.diff(values, axis=1) >= -1e-12).all()
        assert np.abs(np.diff(climb(bound, X, column)[0])).max() > 0.01  # The column is not simply ignored.
    frame = pd.DataFrame(X, columns=list("abc"))
    named = make_model(30, alpha=alpha, monotonic_cst={"a": 1, "b": -1}, **settings).fit(frame, y)
    assert_same_forests(named, bound, frame, X)
    unbound = make_model(30, alpha=alpha, monotonic_cst=[0, 0, 0], **settings).fit(X, y)
    np.testing.assert_array_equal(climb(unbound, X, 0)[0], free)


def test_monotone_columns_with_a_negative_alpha_in_the_loss():
    X, y = draw_sample()
    bound = make_model(20, loss=AlphaLoss(-2.0), engine="compiled", monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    twin = make_model(20, alpha=-2.0, monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    assert (np.diff(climb(bound, X, 0)[0], axis=1) >= 0).all()
    assert_same_forests(bound, twin, X)


def test_monotone_columns_that_cannot_be():
    X, y = draw_sample(classes=3)
    with pytest.raises(ValueError, match="monotonic_cst must be None where there are more than two classes"):
        make_model(monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    make_model(1, monotonic_cst=[0, 0, 0, 0]).fit(X, y)
    columns, y = draw_coloured_rows()
    with pytest.raises(ValueError, match="monotonic_cst must be 0 for column 'colour', which holds categories"):
        make_model(monotonic_cst={"colour": 1}).fit(pd.DataFrame(columns), y)
    make_model(1, monotonic_cst={"x": 1}).fit(pd.DataFrame(columns), y)
