"""Fits whose very numbers are in fixtures/numbers.json; ``python tests/helpers/number_fixtures.py --again`` renews it.

Do so only where a release changes the numbers on purpose, and say so in the changelog. The data are made by arithmetic
of whole numbers, so that they depend on no library.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from helpers.quick import make_classifier
from untwist import __version__
from untwist.boosting.forest import Forest

PATH = Path(__file__).parents[1] / "fixtures" / "numbers.json"
ROWS = 10_000  # With six columns these are enough rows for threads to be used.
STRUCTURE = ("offset", "feature", "left", "threshold", "missing_left", "set", "codes")
# A forest is these arrays and its number of columns.
ARRAYS = tuple(name for name in Forest.__dataclass_fields__ if name != "n_features")


def draw_bits(n, stream):
    """Draw `n` 64-bit numbers by splitmix64, counted from a start of its own for every stream."""
    start = np.uint64(stream * 0x632BE59BD9B4E019 % 2**64)
    with np.errstate(over="ignore"):
        x = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def draw_below(n, stream, end):
    """Whole numbers from 0 to end - 1."""
    return (draw_bits(n, stream) % np.uint64(end)).astype(np.int64)


def make_rows(n=ROWS, start=0):
    """Two columns of many values, one of few, one of categories, one constant and one that is missing at times."""
    many = [draw_below(n, start + i, 2**20) / 2**16 for i in range(2)]
    gaps = np.where(draw_below(n, start + 5, 5) == 0, np.nan, draw_below(n, start + 4, 1000) / 8.0)
    return np.column_stack([*many, draw_below(n, start + 2, 7), draw_below(n, start + 3, 12), np.full(n, 3.5), gaps])


def make_labels(X, classes):
    """By sums of whole numbers, a fifth of them at random."""
    n = len(X)
    score = (X[:, 0] * 2**16).astype(np.int64) % 2**20 + (X[:, 3].astype(np.int64) % 3) * 2**18
    place = np.minimum(score * classes // (3 * 2**19), classes - 1)
    return np.where(draw_below(n, 91, 5) == 0, draw_below(n, 92, classes), place)


GIVEN = {"n_estimators": 10, "max_depth": 4, "init": "zero"}
FROM_THE_PRIOR = {**GIVEN, "init": "prior"}
CASES = {  # A case has settings, the number of classes, and a function that makes weights.
    "given": ({"alpha": 2.0, **GIVEN}, 2, None),
    "alpha 1.1, steps alike": ({"alpha": 1.1, "learning_rate": 0.2, **GIVEN}, 2, None),
    "exact link": ({"alpha": 4.0, "link": "exact", **GIVEN}, 2, None),
    "several classes": ({"alpha": 1.1, "n_estimators": 6, "max_depth": 3, "init": "zero"}, 5, None),
    "categories": ({"alpha": 2.0, "categorical_features": [3], "max_leaf_nodes": 12, **GIVEN}, 2, None),
    "whole weights": ({"alpha": 2.0, **GIVEN}, 2, lambda n: draw_below(n, 77, 4) * 1.0),
    "weights": ({"alpha": 2.0, "min_samples_leaf": 5, **GIVEN}, 2, lambda n: (1 + draw_below(n, 78, 2**20)) / 2**10),
    "drawn rows and columns": ({"alpha": 2.0, "subsample": 0.5, "max_features": 0.5, "l2": 1.0, **GIVEN}, 2, None),
    "early stopping": (
        {
            "alpha": 1.1,
            "early_stopping": True,
            "n_estimators": 60,
            "learning_rate": 1.0,
            "max_depth": 5,
            "init": "zero",
        },
        2,
        None,
    ),
    "from the prior": ({"alpha": 2.0, **FROM_THE_PRIOR}, 2, lambda n: 1.0 + draw_below(n, 79, 3)),
    "from the prior, exact link": ({"alpha": 1.1, "link": "exact", **FROM_THE_PRIOR}, 2, None),
    "from the prior, several classes": (
        {"alpha": 1.1, "n_estimators": 6, "max_depth": 3, "init": "prior"},
        5,
        None,
    ),
    "automatic": ({"n_estimators": 30}, 2, None),
    "automatic, several classes": ({"n_estimators": 10, "max_depth": 3, "categorical_features": [3]}, 4, None),
}
# exp and log of the C library or of NumPy enter these fits, so other processors agree only to 1e-5.
BY_LIBM = ("exact link", "from the prior, exact link", "automatic, several classes")


def fit(name, n_jobs=1):
    settings, classes, weigh = CASES[name]
    X = make_rows()
    weight = None if weigh is None else weigh(len(X))
    return make_classifier(**settings, n_jobs=n_jobs, random_state=0).fit(X, make_labels(X, classes), weight)


def digest(arrays):
    """SHA-256 of arrays as little-endian bytes."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
    return found.hexdigest()


def describe(model):
    """What a model is: digests of its trees, without values and with them, and what it says of a few new rows."""
    forests = [ensemble.forest for ensemble in model.model_.ensembles]
    few = make_rows(12, start=500)
    columns = [np.atleast_2d(forest.scores(few).T) for forest in forests]  # Trees may have a vector in every leaf.
    return {
        "structure": digest(getattr(forest, name) for forest in forests for name in STRUCTURE),
        "trees": digest(getattr(forest, name) for forest in forests for name in ARRAYS),
        "n_iter": model.model_.n_rounds,
        "scores": np.concatenate(columns).tolist(),
        "proba": model.predict_proba(few).tolist(),
    }


if __name__ == "__main__":
    if PATH.exists() and "--again" not in sys.argv:
        raise SystemExit(f"{PATH.name} is there: --again writes it anew, which gives up the numbers of before")
    found = {"untwist": __version__, "cases": {name: describe(fit(name)) for name in CASES}}
    PATH.write_text(json.dumps(found, indent=1) + "\n")
