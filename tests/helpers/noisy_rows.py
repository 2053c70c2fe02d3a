"""Rows with noisy labels for the tests of the XGBoost engine and of distributed fits."""

import numpy as np


def make_noisy_rows(rows=2000, columns=6, classes=2, seed=0, values=None):
    """Rows whose labels depend on some of the columns, a fifth of them wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) if values is None else rng.integers(0, values, (rows, columns)).astype(float)
    centre = X - X.mean(axis=0)
    score = centre[:, 0] + np.abs(centre[:, 1]) + 0.5 * centre[:, 2] * (centre[:, 3] > 0)
    y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    wrong = rng.random(rows) < 0.2
    y[wrong] = rng.integers(0, classes, wrong.sum())
    return X, y
