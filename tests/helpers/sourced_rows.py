"""Rows whose labels come from sources of unequal quality."""

import numpy as np

NAMES = np.array(["Bonn", "Leipzig", "Trier", "Ulm"])


def draw_sourced_rows(n=600, seed=0, classes=2, bad_rate=0.45, good_rate=0.02):
    """X, the labels, their sources, and the truth; the labels of Leipzig are often wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + 0.5 * X[:, 1]
    truth = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    source = NAMES[rng.integers(0, len(NAMES), n)]
    is_wrong = rng.random(n) < np.where(source == "Leipzig", bad_rate, good_rate)
    y = np.where(is_wrong, (truth + rng.integers(1, classes, n)) % classes, truth)
    return X, y, source, truth


def draw_votes(n_items=200, n_votes=3, seed=0, skills=(0.55, 0.7, 0.8, 0.9, 0.95)):
    """X, the labels, their sources and their items, in long form, and the truth of each row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 4))
    truth = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    items = np.repeat(np.arange(n_items), n_votes)
    source = np.concatenate([rng.permutation(len(skills))[:n_votes] for _ in range(n_items)])
    is_right = rng.random(len(items)) < np.array(skills)[source]
    return X[items], np.where(is_right, truth[items], 1 - truth[items]), source, items, truth[items]
