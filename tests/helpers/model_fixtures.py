"""Models and rows for the tests of model files; ``python -m helpers.model_fixtures`` in tests writes their files.

Once a release has written them they are never written again: every later version must read them.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from helpers.learners import make_paper_model
from helpers.quick import QuickClassifier
from helpers.shared_models import make_shared_model
from untwist import PILBoostClassifier, UntwistClassifier, files
from untwist.data.cells import Reading
from untwist.data.tables import Schema
from untwist.model import Candidate, Choice, Mixture
from untwist.noise import NoiseModel
from untwist.noise.sources import NoiseBySource

FOLDER = Path(__file__).parents[1] / "fixtures"

#: What models that nothing has chosen are said to have been chosen as.
CANDIDATE = Candidate(alpha=1.0, max_depth=3, step=0.1, n_rounds=9, loss=0.75, error=0.25)


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
        "several": ({"alpha": 2.0, **plain}, [1, 2, 5, 9]),
        "negative": ({"alpha": -2.0, **plain}, [False, True]),
        "exact": ({"alpha": 4.0, "link": "exact", "early_stopping": True, **plain}, [-1.0, 1.0]),
    }
    fitted = {
        name: PILBoostClassifier(**one).fit(X, draw_labels(X, classes)) for name, (one, classes) in settings.items()
    }
    recipe = UntwistClassifier(categorical_features=[1], random_state=0, n_jobs=1)
    fitted["automatic"] = recipe.fit(X[:80], draw_labels(X[:80], ["no", "yes"]))  # It has many trees.
    known = {"noise": (0.1, 0.2), "class_weight": {"a": 2.0, "b": 1.0}}
    plain |= {"alpha": 1.1, "class_weight": known["class_weight"]}
    one = PILBoostClassifier(**plain).fit(X, draw_labels(X, ["a", "b"]))
    fitted["given"] = hold(replace(one.model_, noise=NoiseModel.given(known["noise"]), untwists=True), **known)
    of_columns = make_models_of_odd_columns()
    return (
        fitted | make_models_of_several_classes() | make_models_of_sources() | of_columns | make_models_with_a_start()
    )


def hold(model, **settings):
    """A classifier that has this model, as if it had fitted it."""
    classifier = UntwistClassifier(**settings)
    classifier.model_ = replace(model, choice=model.choice or Choice(CANDIDATE, (CANDIDATE,)), init=None)
    return classifier


def make_models_of_several_classes():
    """By name: a model whose classes share their trees, or whose labels follow a transition matrix."""
    X = draw_rows()
    plain = {"n_estimators": 3, "max_depth": 3, "categorical_features": [1]}
    settings = {
        "together": ({"alpha": 2.0, **plain}, [1, 2, 5, 9]),
        "matrices": ({"alpha": 1.0, "components": 3, "class_weight": "balanced", **plain}, ["a", "b", "c"]),
        "matrix": ({"alpha": 1.1, "components": "given", "shared": False, **plain}, [-1.0, 0.0, 1.0, 2.0]),
    }
    models = {
        name: hold(make_shared_model(X, draw_labels(X, classes), n_classes=len(classes), **one).model_)
        for name, (one, classes) in settings.items()
    }
    mixture = Mixture(0.5, 0.25, n_trees=100, min_samples_leaf=2, boosted_loss=0.75, randomised_loss=0.625, loss=0.5)
    chosen = models["matrices"]
    chosen.model_ = replace(chosen.model_, choice=Choice(CANDIDATE, (CANDIDATE,), mixture))
    return models


def make_models_of_sources():
    """By name: a model that knows the noise of sources."""
    X = draw_rows()
    plain = {"n_estimators": 3, "max_depth": 3, "categorical_features": [1]}
    several = make_shared_model(X, draw_labels(X, [1, 2, 5]), n_classes=3, alpha=1.0, components=2, **plain)
    known = {"noise": (0.1, 0.2), "random_state": 0, "n_jobs": 1}
    by_folds = QuickClassifier(alpha=1.0, **plain, **known).fit(X, draw_labels(X, ["no", "yes"]))
    models = {
        "branches": hold(by_folds.model_, **known),
        "months": hold(several.model_),
    }
    sources = {"branches": np.array(["", "Lübeck", "☃"]), "months": np.array([-1, 202401, 202402, 2**40])}
    for name, model in models.items():
        noise = draw_noise_by_source(sources[name], model.model_.noise)
        model.model_ = replace(model.model_, sources=noise)
    return models


def make_models_of_odd_columns():
    """By name: a model with a column coded by its labels, and one that reads two columns in ways of their own."""
    X = draw_rows()
    schema = Schema({1: (0, 1, 2, 3, 4)}, {1: (0.25, 0.75, 0.125, 0.5, 0.875, 0.375)})
    by_index = X.copy()
    X[:, 1] = schema.put_numbers(X)[:, 1]
    plain = {"n_estimators": 3, "max_depth": 3, "random_state": 0, "n_jobs": 1}
    model = PILBoostClassifier(alpha=2.0, **plain).fit(X, draw_labels(by_index, ["no", "yes"]))
    model.model_ = replace(model.model_, encoder=replace(model.model_.encoder, schema=schema))
    other = PILBoostClassifier(alpha=2.0, categorical_features=[1], **plain).fit(
        by_index, draw_labels(by_index, ["no", "yes"])
    )
    readings = {0: Reading(decimal=","), 2: Reading(order="month")}
    schema = replace(other.model_.encoder.schema, readings=readings)
    other.model_ = replace(other.model_, encoder=replace(other.model_.encoder, schema=schema))
    return {"coded": model, "readings": other}


def make_models_with_a_start():
    """By name: a model whose rounds begin at the base rate, or at scores of one's own."""
    X = draw_rows()
    plain = {"n_estimators": 3, "max_depth": 3, "random_state": 0, "n_jobs": 1, "categorical_features": [1]}
    weight = 1.0 + (X[:, 2] > 0)
    return {
        "prior": make_paper_model(alpha=2.0, init="prior", **plain).fit(X, draw_labels(X, ["no", "yes"]), weight),
        "priors": make_paper_model(alpha=1.1, init="prior", **plain).fit(X, draw_labels(X, [1, 2, 5]), weight),
        "scores": make_paper_model(alpha=2.0, **plain).fit(X, draw_labels(X, ["no", "yes"]), init_score=X[:, 2]),
    }


def draw_noise_by_source(names, noise, seed=0):
    """What an estimate might say of sources."""
    rng = np.random.default_rng(seed)
    n_classes = noise.n_classes
    matrices = 0.7 * np.eye(n_classes) + 0.3 * rng.dirichlet(np.ones(n_classes), (len(names), n_classes))
    wrong = 1.0 - np.diagonal(matrices, axis1=1, axis2=2)
    shares = wrong.mean(axis=1)
    return NoiseBySource(
        names=names,
        counts=rng.integers(1, 99, len(names)).astype(float),
        matrices=matrices,
        common=matrices.mean(axis=0),
        shares=shares,
        intervals=np.column_stack([shares / 2, (1 + shares) / 2]),
        class_intervals=np.stack([wrong / 2, (1 + wrong) / 2], axis=-1),
        stands_out=shares == shares.max(),
        reliability=(1 - shares) / (1 - shares).max(),
        evidence=3.25,
        noise=noise,
    )


if __name__ == "__main__":
    expected = {}
    for name, model in fit_models().items():
        path = FOLDER / f"format-{files.VERSION}-{name}.untwist"
        files.save(model, path)
        proba = model.predict_proba(draw_rows(20, seed=7))
        expected[path.name] = [[float(p).hex() for p in row] for row in proba]
    (FOLDER / f"format-{files.VERSION}.json").write_text(json.dumps(expected, indent=1) + "\n")
