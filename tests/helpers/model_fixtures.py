"""Models and rows for the tests of model files; ``python -m helpers.model_fixtures`` in tests writes the newest anew.

A file of an earlier format is never written again: it must stay readable.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from helpers.shared_models import make_shared_model
from untwist import PILBoostClassifier, files
from untwist.model import Candidate, Choice, Mixture

FOLDER = Path(__file__).parents[1] / "fixtures"


def draw_rows(n=300, seed=0):
    """Numbers, a column with categories as numbers, missing values; encoded by hand, so that pandas is not needed."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 5, n), rng.normal(size=n), np.ones(n)]).astype(float)
    X[rng.random(n) < 0.1, 0] = np.nan
    X[rng.random(n) < 0.1, 1] = np.nan
    return X


def draw_labels(X, classes, seed=1):
    """Follow the columns, with a fifth drawn at random."""
    rng = np.random.default_rng(seed)
    score = np.nan_to_num(X[:, 0]) + np.isin(X[:, 1], (1, 4)) * 1.5 - 0.4
    place = np.clip(np.floor((score + 2) / 4 * len(classes)), 0, len(classes) - 1).astype(int)
    wrong = rng.random(len(X)) < 0.2
    place[wrong] = rng.integers(0, len(classes), wrong.sum())
    return np.asarray(classes)[place]


def fit_models():
    """By name: a fitted model."""
    X = draw_rows()
    plain = {"n_estimators": 12, "max_depth": 3, "categorical_features": [1], "random_state": 0, "n_jobs": 1}
    settings = {
        "automatic": ({"categorical_features": [1], "random_state": 0, "n_jobs": 1}, ["no", "yes"]),
        "several": ({"alpha": 2.0, **plain}, [1, 2, 5, 9]),
        "negative": ({"alpha": -2.0, **plain}, [False, True]),
        "exact": ({"alpha": 4.0, "link": "exact", "early_stopping": True, **plain}, [-1.0, 1.0]),
        "given": ({"alpha": 1.1, "noise_rates": (0.1, 0.2), "class_weight": {"a": 2.0, "b": 1.0}, **plain}, ["a", "b"]),
    }
    fitted = {
        name: PILBoostClassifier(**one).fit(X, draw_labels(X, classes)) for name, (one, classes) in settings.items()
    }
    return fitted | make_models_of_format_2()


def make_models_of_format_2():
    """By name: a model that format 1 cannot hold."""
    X = draw_rows()
    plain = {"n_estimators": 3, "max_depth": 3, "categorical_features": [1]}
    settings = {
        "together": ({"alpha": 2.0, **plain}, [1, 2, 5, 9]),
        "matrices": ({"alpha": 1.0, "components": 3, "class_weight": "balanced", **plain}, ["a", "b", "c"]),
        "matrix": ({"alpha": 1.1, "components": "given", "shared": False, **plain}, [-1.0, 0.0, 1.0, 2.0]),
    }
    models = {
        name: make_shared_model(X, draw_labels(X, classes), n_classes=len(classes), **one)
        for name, (one, classes) in settings.items()
    }
    candidate = Candidate(alpha=1.0, max_depth=3, step=0.1, n_rounds=9, loss=0.75, error=0.25)
    mixture = Mixture(0.5, 0.25, n_trees=100, min_samples_leaf=2, boosted_loss=0.75, randomised_loss=0.625, loss=0.5)
    chosen = models["matrices"]
    chosen.model_ = replace(chosen.model_, choice=Choice(candidate, (candidate,), mixture))
    return models


if __name__ == "__main__":
    expected = {}
    for name, model in make_models_of_format_2().items():
        path = FOLDER / f"format-{files.VERSION}-{name}.untwist"
        files.save(model, path)
        proba = model.predict_proba(draw_rows(20, seed=7))
        expected[path.name] = [[float(p).hex() for p in row] for row in proba]
    (FOLDER / f"format-{files.VERSION}.json").write_text(json.dumps(expected, indent=1) + "\n")
