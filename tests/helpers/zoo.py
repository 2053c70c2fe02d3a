"""Fitted models of every kind, for what is made of models: exports and explanations."""

from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np
import pandas as pd

from helpers.quick import make_classifier
from helpers.shared_models import make_shared_model
from untwist import training_table
from untwist.data.label_coding import MANY_CATEGORIES
from untwist.data.tables import KNOWN_CATEGORIES
from untwist.noise import NoiseModel


def make_table(n_classes=2, rows=300, seed=0):
    """Numbers, many zeros, categories and a column that is there or not, all with missing values, and noisy labels."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=rows).round(2),
            "city": rng.choice([f"city {index}" for index in range(40)], rows),
            "rooms": rng.integers(0, 5, rows).astype(np.float64),
            "sparse": np.where(rng.random(rows) < 0.7, 0.0, rng.normal(size=rows)),
            "kind": rng.choice(["a*/", "b\n", "ç"], rows),
            "told": np.where(rng.random(rows) < 0.5, np.nan, 1.0),
        }
    )
    city = X["city"].str.split().str[1].astype(int) % 3 - 1
    truth = X["size"] + city + X["sparse"] * X["rooms"] + (X["kind"] == "ç") + X["told"].isna()
    y = np.searchsorted(np.quantile(truth, np.arange(1, n_classes) / n_classes), truth)
    y = np.where(rng.random(rows) < 0.2, rng.integers(0, n_classes, rows), y)
    return X.mask(rng.random(X.shape) < 0.08), y


GIVEN = {"n_estimators": 15, "max_depth": 3}
MODELS = {
    "alpha 1": {"alpha": 1.0, **GIVEN},
    "alpha 1, stumps, exact link": {"alpha": 1.0, "link": "exact", "n_estimators": 30, "max_depth": 1},
    "alpha 1.1, class weights": {"alpha": 1.1, "class_weight": "balanced", **GIVEN},
    "alpha 1.1, exact link": {"alpha": 1.1, "link": "exact", **GIVEN},
    "alpha 2, many leaves": {"alpha": 2.0, "n_estimators": 10, "max_depth": None, "max_leaf_nodes": 40},
    "alpha 2, exact link, depth 6": {"alpha": 2.0, "link": "exact", "n_estimators": 10, "max_depth": 6},
    "alpha 4, beyond the clip": {"alpha": 4.0, "step_size": 8.0, **GIVEN},
    "alpha 4, exact link": {"alpha": 4.0, "link": "exact", **GIVEN},
    "alpha 4, logit link": {"alpha": 4.0, "link": "logit", **GIVEN},
    "rates given, logit link": {"alpha": 2.0, "link": "logit", "noise": (0.1, 0.3), **GIVEN},
    "alpha 1/2": {"alpha": 0.5, **GIVEN},
    "alpha 1/2, exact link": {"alpha": 0.5, "link": "exact", **GIVEN},
    "alpha infinite": {"alpha": np.inf, **GIVEN},
    "alpha infinite, exact link": {"alpha": np.inf, "link": "exact", **GIVEN},
    "alpha -2": {"alpha": -2.0, **GIVEN},
    "alpha -2, exact link": {"alpha": -2.0, "link": "exact", **GIVEN},
    "rates given": {"alpha": 2.0, "noise": (0.1, 0.3), "class_weight": {0: 1.0, 1: 3.0}, **GIVEN},
    "rates given, exact link": {"alpha": 4.0, "link": "exact", "noise": (0.1, 0.3), **GIVEN},
    "rates given, alpha infinite": {"alpha": np.inf, "noise": (0.1, 0.3), **GIVEN},
    "rates given, beyond the table": {"alpha": 2.0, "noise": (0.1, 0.3), **GIVEN},
    "nothing but leaves": {"alpha": 2.0, "min_samples_leaf": 1000, "class_weight": {0: 1.0, 1: 3.0}, **GIVEN},
    "an empty set of categories": {"alpha": 2.0, **GIVEN},
    "automatic": {"n_estimators": 8},
    "automatic, class weights": {"n_estimators": 8, "class_weight": "balanced"},
    "four classes": {"alpha": 2.0, **GIVEN},
    "four classes, alpha -2": {"alpha": -2.0, **GIVEN},
    "four classes, automatic": {"n_estimators": 5, "max_depth": 3},
}


#: Models of classes that were boosted together, and of labels that follow a matrix: by hand, as no fit makes them all.
SHARED = {
    "three classes together": {"n_classes": 3, "alpha": 1.0},
    "five classes together, alpha 2": {"n_classes": 5, "alpha": 2.0, "class_weight": "balanced"},
    "four classes together, far scores": {"n_classes": 4, "alpha": 4.0, "spread": 100.0},
    "three classes together, nothing but leaves": {"n_classes": 3, "alpha": 2.0, "min_samples_leaf": 1000},
    "three classes together, a given matrix": {"n_classes": 3, "alpha": 1.0, "components": "given"},
    "four classes together, an empty set": {"n_classes": 4, "alpha": 1.0, "components": 2},
    "five classes together, four matrices": {"n_classes": 5, "alpha": 2.0, "components": 4, "class_weight": "balanced"},
    "twelve classes together, eight matrices": {"n_classes": 12, "alpha": 1.1, "components": 8},
    "a class without weight": {"n_classes": 3, "alpha": 1.0, "components": 3, "class_weight": {0: 0.0, 1: 1.0, 2: 5.0}},
    "each of four classes, a given matrix": {"n_classes": 4, "alpha": 2.0, "components": "given", "shared": False},
    "each of four classes, exact link, matrices": {
        "n_classes": 4,
        "alpha": 4.0,
        "link": "exact",
        "components": 3,
        "shared": False,
    },
    "each of three classes, alpha -2, matrices": {"n_classes": 3, "alpha": -2.0, "components": 2, "shared": False},
    "each of three classes, alpha infinite, matrices": {
        "n_classes": 3,
        "alpha": np.inf,
        "components": 2,
        "shared": False,
        "class_weight": "balanced",
    },
}
MODELS |= SHARED


@cache
def fit_model(name):
    """The model of this name, and 200 rows of which it has seen half."""
    n_classes = MODELS[name].get("n_classes", 4 if name.startswith("four") else 2)
    X, y = make_table(n_classes)
    if name in SHARED:
        model = make_shared_model(X, y, **SHARED[name])
    else:
        # Cities are coded by their labels in some models, and split by sets in the others.
        is_coded = any(word in name for word in ("automatic", "class weights", "four classes"))
        most_sets = MANY_CATEGORIES if is_coded else KNOWN_CATEGORIES
        with patch.object(training_table, "MANY_CATEGORIES", most_sets):
            settings = {key: value for key, value in MODELS[name].items() if key != "noise"}
            model = make_classifier(**settings, n_jobs=1, random_state=0).fit(X, y)
    if "noise" in MODELS[name]:  # Which the recipe alone is told, of few of these links.
        model.model_ = replace(model.model_, noise=NoiseModel.given(MODELS[name]["noise"]), untwists=True)
    if "an empty set" in name:  # The engine makes no such split, but it would mean something.
        forest = model.model_.shared_forests[0]
        first = forest.set[forest.set >= 0][0]
        forest.codes[4 * first : 4 * first + 4] = 0
    if name == "rates given, beyond the table":  # Very uneven weights would put it there.
        model.model_ = replace(model.model_, class_weights=np.array([1.0, np.exp(-19.0)]))
    unseen, _ = make_table(n_classes, seed=1)
    X, unseen = X[:100], unseen[:100].assign(city=unseen["city"][:100].replace("city 1", "elsewhere"))
    return model, pd.concat([X, unseen], ignore_index=True)


def compute_boosted_scores(model, X):
    """The score that exports and explanations speak of: positive where it speaks for the class."""
    scores = model.model_.scores(model.model_.encoder.encode(X))
    return -scores if model.model_.alpha < 0 and model.model_.posterior.noise is None else scores
