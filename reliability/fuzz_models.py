"""A model that was loaded, used in every way that there is: whatever passes at load must do no harm anywhere else.

What two ways compute of the same rows must be the same, so that no export or explanation walks another path. Ways whose
packages are missing are left out.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from untwist import PILBoostClassifier, files
from untwist.commands.main import main as run_command
from untwist.explain import explain
from untwist.export import numbers, probabilities, to_code, to_onnx, to_treelite, to_xgboost
from untwist.export.scoring import Scoring
from untwist.predicting import ModelPredictions

__all__ = ["USES", "make_table", "use_everywhere"]

MEMORY = "/dev/shm"  # Where this folder exists, files in it never touch a disk.
MOST_COLUMNS = 300  # Tables of wider models would take too long to be tried often.
MOST_TREES = 200  # Explanations of more trees would take too long.
TOLERANCE = 1e-6  # Formulas of exports are those of the model to rounding; near a clip that is the root of one.


def make_table(model: ModelPredictions, n_rows: int) -> Any:
    """Rows as a model was fitted to: numbers, its categories and one that is unknown, dates, missing values."""
    encoder = model.model_.encoder
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n_rows, encoder.n_features)) < 0.1, np.nan, rng.normal(size=(n_rows, encoder.n_features)))
    X[:, : encoder.n_features // 2] = np.round(3 * X[:, : encoder.n_features // 2])
    if encoder.feature_names is None and not encoder.schema.categories and not encoder.schema.dates:
        return X
    table = X.astype(object)
    for column, known in encoder.schema.categories.items():
        pool = [*known, None, known[0] if known and not isinstance(known[0], str) else "never seen"]
        table[:, column] = [pool[index] for index in rng.integers(0, len(pool), n_rows)]
    for column in encoder.schema.dates:
        table[:, column] = [f"20{year}-05-11" for year in rng.integers(10, 40, n_rows)]
    if encoder.feature_names is None:
        return table
    import pandas

    frame = pandas.DataFrame(table, columns=encoder.feature_names)
    plain = [*{*range(encoder.n_features)} - {*encoder.schema.categories} - {*encoder.schema.dates}]
    return frame.astype({frame.columns[column]: np.float64 for column in plain})


def take(X: Any, count: int) -> Any:
    """The first rows."""
    return X[:count] if isinstance(X, np.ndarray) else X.iloc[:count]


def check_probabilities(proba: Any, model: ModelPredictions) -> None:
    """Refuse what is no table of probabilities."""
    assert proba.shape[1] == len(model.classes_), proba.shape
    assert np.isfinite(proba).all(), "probabilities that are none"
    assert ((proba >= 0) & (proba <= 1)).all(), "probabilities that are none"


def check_same(found: Any, expected: Any, what: str) -> None:
    """Refuse probabilities that are others than those of the model."""
    difference = float(np.abs(found - expected).max())
    assert difference < TOLERANCE, f"{what} differs by {difference:g}"


def predict(model: ModelPredictions, X: Any) -> None:
    """All that predicts, for few rows, which are walked, and for many, which are encoded."""
    for rows in (take(X, 5), X):
        check_probabilities(model.predict_proba(rows), model)
        check_probabilities(model.predict_proba_twisted(rows), model)
        assert np.isin(model.predict(rows), model.classes_).all(), "a class that is none"
    assert np.isfinite(model.decision_function(X)).all(), "scores that are none"
    if isinstance(model, PILBoostClassifier):
        for proba in model.staged_predict_proba(take(X, 5)):
            check_probabilities(proba, model)
        model.apply(X)
    if len(model.classes_) == 2:
        alphas, twisted = model.alpha_star(X), model.predict_proba_twisted(X)
        assert not np.isnan(alphas).any(), "alphas that are none"
        if (model.model_.class_weights == 1).all() and model.model_.sources is None:
            assert np.isfinite(alphas[twisted[:, 1] != 0.5]).all(), "alphas that are not finite"


def describe(model: ModelPredictions, _: Any) -> None:
    """All that says something of a model."""
    fitted = model.model_
    for kind in ("paper", "gain", "splits"):
        assert np.isfinite(model.importances(kind)).all(), "importances that are none"
    for one in (model, fitted, fitted.choice, fitted.sources, fitted.reliable_noise, model.noise_):
        str(one), repr(one), getattr(one, "_repr_html_", str)()
    fitted.describe_sources()
    if model.noise_ is not None:
        model.noise_.describe(model.classes_)
        assert np.isfinite(model.noise_.matrix).all(), "rates that are none"
    for name in dir(model):
        if name.endswith("_") and not name.startswith("_"):
            repr(getattr(model, name, None))


def save_again(model: ModelPredictions, _: Any) -> None:
    """The same model from a file of its own, and what the command says of it."""
    content = files.dumps(model)
    assert files.dumps(files.loads(content)) == content, "another model once saved again"
    with tempfile.TemporaryDirectory(dir=MEMORY if os.path.isdir(MEMORY) else None) as folder:
        path = Path(folder) / "model.untwist"
        path.write_bytes(content)
        for options in ([], ["--json"]):
            with contextlib.redirect_stdout(io.StringIO()):
                assert run_command(["inspect", str(path), *options]) == 0


def explain_rows(model: ModelPredictions, X: Any) -> None:
    """Contributions that add up to the scores."""
    if sum(map(len, model.model_.ensembles)) > MOST_TREES:
        return
    found = explain(model, take(X, 3), background=take(X, 20))
    assert np.isfinite(found.values).all(), "contributions that are none"
    found.importances()
    scores = Scoring.from_model(model).sign * model.model_.scores(model.model_.encoder.encode(take(X, 3)))
    largest = max(float(np.abs(one.forest.value).max()) for one in model.model_.ensembles)
    assert np.allclose(found.scores, scores, rtol=1e-6, atol=1e-9 * max(1.0, largest)), "an explanation of another path"


def export_code(model: ModelPredictions, X: Any) -> None:
    """Source text, which is run where it is of Python."""
    try:
        to_code(model, "c")
    except ValueError as error:
        assert "the exact link cannot be exported below" in str(error), error
        return
    scope: dict[str, Any] = {}
    exec(to_code(model, "python"), scope)
    rows = take(X, 8)
    found = [scope["predict_proba"](row) for row in numbers(model, rows).tolist()]
    check_same(np.array(found), model.predict_proba(rows), "code")


def export_onnx(model: ModelPredictions, X: Any) -> None:
    """ONNX, run."""
    import onnxruntime

    try:
        content = to_onnx(model).SerializeToString()
    except ValueError as error:
        assert "ONNX knows labels of" in str(error) or "the exact link cannot be exported below" in str(error), error
        return
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (found,) = session.run(["probabilities"], {"X": numbers(model, X)})
    check_same(found, model.predict_proba(X), "ONNX")


def export_treelite(model: ModelPredictions, X: Any) -> None:
    """Treelite, run."""
    from treelite import gtil

    found = probabilities(model, gtil.predict(to_treelite(model), numbers(model, X)))
    check_same(found, model.predict_proba(X), "treelite")


def export_xgboost(model: ModelPredictions, X: Any) -> None:
    """XGBoost, run; in single precision rows near a threshold go elsewhere."""
    import xgboost

    booster = to_xgboost(model)
    encoder = model.model_.encoder
    kinds = ["c" if column in encoder.schema.n_sets else "q" for column in range(encoder.n_features)]
    names = booster.feature_names
    rows = xgboost.DMatrix(numbers(model, X), feature_types=kinds, feature_names=names, enable_categorical=True)
    assert np.isfinite(booster.predict(rows, output_margin=True)).all(), "scores that are none"


#: What is done with a model, and the packages that it takes.
USES: dict[str, tuple[Callable[[ModelPredictions, Any], None], tuple[str, ...]]] = {
    "predict": (predict, ()),
    "describe": (describe, ()),
    "save again and inspect": (save_again, ()),
    "explain": (explain_rows, ()),
    "to_code": (export_code, ()),
    "to_onnx": (export_onnx, ("onnx", "onnxruntime")),
    "to_treelite": (export_treelite, ("treelite",)),
    "to_xgboost": (export_xgboost, ("xgboost",)),
}


def use_everywhere(model: ModelPredictions) -> list[str]:
    """Use a model in every way, and return the names of the ways; what goes wrong raises."""
    if model.n_features_in_ > MOST_COLUMNS:
        return []
    model.n_jobs = 1
    X = make_table(model, 60)
    done = []
    for name, (use, packages) in USES.items():
        if all(map(importlib.util.find_spec, packages)):
            with np.errstate(all="ignore"):
                use(model, X)
            done.append(name)
    return done
