"""Exports compute what the model computes: C and Python in every run, ONNX and treelite where they are installed."""

import ctypes
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.learners import Plain
from helpers.quick import QuickClassifier, make_classifier
from helpers.zoo import MODELS, SHARED, compute_boosted_scores, fit_model
from untwist import PILBoostClassifier, UntwistClassifier
from untwist.boosting.ensemble import Ensemble
from untwist.export import numbers, onnx, probabilities, scoring, to_code, to_onnx, to_treelite, to_xgboost

ROUNDING = 1e-12  # Sums and functions come in another order; nothing else differs.

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
heavy = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]  # What other packages warn of is theirs.


def run_in_python(model, rows):
    names = {}
    exec(to_code(model, "python"), names)
    return np.array([names["predict_proba"](row) for row in rows.tolist()])


def run_in_c(model, rows, folder):
    (folder / "model.c").write_text(to_code(model, "c"))
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    library = folder / "model.so"
    command = ["gcc", *strict, "-shared", "-fPIC", "-o", library, folder / "model.c", "-lm"]
    subprocess.run([str(part) for part in command], check=True)
    predict = ctypes.CDLL(str(library)).predict_proba
    out = np.empty((len(rows), len(model.classes_)))
    for row, answer in zip(rows, out, strict=True):
        predict(ctypes.c_void_p(row.ctypes.data), ctypes.c_void_p(answer.ctypes.data))
    return out


def run_in_onnx(model, rows):
    import onnx
    import onnxruntime

    proto = to_onnx(model)
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["label", "probabilities", "decision"], {"X": rows})


def run_in_treelite(model, rows):
    import treelite

    return treelite.gtil.predict(to_treelite(model), rows)


# ---- source text ----


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.thinned(3)
def test_python_text_gives_the_clean_probabilities(name):
    model, X = fit_model(name)
    np.testing.assert_allclose(run_in_python(model, numbers(model, X)), model.predict_proba(X), rtol=0, atol=ROUNDING)


@needs_gcc
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.thinned(3)
def test_c_text_gives_the_clean_probabilities(name, tmp_path):
    model, X = fit_model(name)
    np.testing.assert_allclose(
        run_in_c(model, numbers(model, X), tmp_path), model.predict_proba(X), rtol=0, atol=ROUNDING
    )


@pytest.mark.parametrize("alpha", [0.08, 0.3, 0.999999, 1.000001, 1.00000001, 1.5, 8.0, 100.0, -np.inf])
@pytest.mark.parametrize("link", ["clipped", "exact"])
def test_text_at_other_alphas_and_far_scores(alpha, link):
    X = np.random.default_rng(0).normal(size=(300, 3))
    settings = {"n_estimators": 30, "max_depth": 3, "n_jobs": 1, "step_size": 20.0}
    model = make_classifier(alpha=alpha, **settings).fit(X, X[:, 0] + X[:, 1] > 0)
    assert np.abs(model.decision_function(X)).max() > 2
    atol = 1e-8 if abs(alpha - 1.0) < 1e-5 else ROUNDING  # Rounding is divided by 1 - 1/alpha.
    np.testing.assert_allclose(run_in_python(model, X), model.predict_proba(X), rtol=0, atol=atol)


@pytest.mark.parametrize("alpha", [1.0, 1.1, 2.0, 4.0, 0.5])
@pytest.mark.parametrize("link", ["clipped", "exact"])
@pytest.mark.thinned(3)
def test_text_where_rates_untwist_scores_near_the_clip(alpha, link):
    X = np.random.default_rng(0).normal(size=(2000, 3))
    model = PILBoostClassifier(alpha=alpha, link=link, n_estimators=100, max_depth=3, n_jobs=1)
    model.fit(X, X[:, 0] + X[:, 1] > 0)
    # The tolerance allows for the rounding of the score.
    np.testing.assert_allclose(run_in_python(model, X), model.predict_proba(X), rtol=0, atol=1e-9)


def test_text_says_what_goes_in_and_comes_out():
    model, _ = fit_model("four classes")
    schema = model.model_.encoder.schema
    for language, sign in (("c", "//"), ("python", "#")):
        text = to_code(model, language, name="clean_of")
        assert text.startswith(f"{sign} A model of untwist. In goes a row of numbers, NaN where")
        number_of_city = dict(zip(schema.categories[1], schema.numbers[1], strict=False))
        assert f"{sign}   0: 'size'\n{sign}   1: 'city', {number_of_city['city 0']} = 'city 0', " in text
        assert f", {schema.numbers[1][-1]} = anything else\n" in text
        assert f"{sign}   4: 'kind', 0 = 'a*/', 1 = 'b\\n', 2 = '\\xe7'\n" in text
        assert f"{sign}   class 3: 3\n" in text
        assert "clean_of(" in text
        assert text.isascii()


def test_text_of_a_model_without_categories_has_no_sets_and_without_noise_no_table():
    X = np.random.default_rng(0).normal(size=(100, 2))
    text = to_code(PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2).fit(X, X[:, 0] > 0))
    assert "SET" not in text
    assert "TABLE" not in text
    assert "0: a number" in text


def test_trees_that_classes_share_are_written_once():
    model, _ = fit_model("five classes together, four matrices")
    names = {}
    exec(to_code(model, "python"), names)
    (forest,) = model.model_.shared_forests
    assert len(names["ROOT"]) == len(forest)
    assert len(names["FEATURE"]) == len(forest.feature)
    assert len(names["VALUE"]) == 5 * np.count_nonzero(forest.feature < 0)
    matrix = np.linalg.inv(model.noise_.matrices[0]).ravel().tolist()
    assert matrix in [names[name] for name in names if name.startswith("CONSTANT")]


def test_bad_arguments_of_to_code():
    model, _ = fit_model("alpha 1")
    with pytest.raises(ValueError, match="language must be"):
        to_code(model, "rust")
    for name in ("a b", "2", "é", None):
        with pytest.raises(ValueError, match="name must be"):
            to_code(model, name=name)


# ---- any export ----


def test_numbers_are_what_the_trees_see():
    model, X = fit_model("alpha 1.1, class weights")
    rows = numbers(model, X)
    assert rows.dtype == np.float64
    assert rows.flags.c_contiguous
    unknown = model.model_.encoder.schema.numbers[1][-1]
    np.testing.assert_array_equal(rows[(X["city"] == "elsewhere").to_numpy(), 1], unknown)
    assert np.isnan(rows[X["city"].isna().to_numpy(), 1]).all()
    np.testing.assert_array_equal(rows[:, 0], X["size"])
    table = sparse.random(60, 4, 0.5, "csr", random_state=0)
    plain = PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2).fit(table, np.arange(60) % 2)
    np.testing.assert_array_equal(numbers(plain, table), table.toarray())
    with pytest.raises(NotFittedError):
        numbers(UntwistClassifier(), X)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.thinned(3)
def test_probabilities_of_boosted_scores(name):
    model, X = fit_model(name)
    np.testing.assert_array_equal(probabilities(model, compute_boosted_scores(model, X)), model.predict_proba(X))


@pytest.mark.parametrize("name", SHARED)
def test_a_plain_xgboost_model_of_several_classes(name):
    xgboost = pytest.importorskip("xgboost")
    model, X = fit_model(name)
    known = model.model_.encoder.schema.categories
    kinds = ["c" if column in known else "q" for column in range(X.shape[1])]
    rows = xgboost.DMatrix(numbers(model, X), feature_names=list(X), feature_types=kinds, enable_categorical=True)
    margins = to_xgboost(model).predict(rows, output_margin=True)
    scores = compute_boosted_scores(model, X)
    # XGBoost has single precision, and adds up as many numbers as there are trees.
    np.testing.assert_allclose(margins, scores, rtol=0, atol=1e-5 * np.abs(scores).max())
    if np.isfinite(model.alpha_):  # The posterior of an infinite alpha has a step, which a rounded score may be beyond.
        np.testing.assert_allclose(probabilities(model, margins), model.predict_proba(X), rtol=0, atol=1e-4)


def test_a_plain_xgboost_model_where_all_known_categories_go_left():
    xgboost = pytest.importorskip("xgboost")
    X = np.column_stack([np.arange(90) % 3, np.random.default_rng(0).normal(size=90)]).astype(float)
    X[::7, 0] = np.nan
    settings = {"n_estimators": 3, "max_depth": 2, "categorical_features": [0], "n_jobs": 1}
    model = make_classifier(alpha=2.0, **settings).fit(X, np.isnan(X[:, 0]) | (X[:, 0] == 1))
    sets = model.forest_.set >= 0
    model.forest_.codes[:] = 2**64 - 1  # The engine makes such splits at random, where it grows randomised trees.
    model.forest_.missing_left[sets] = 0
    assert sets.any()
    rows = xgboost.DMatrix(X, feature_types=["c", "q"], enable_categorical=True)
    margins = to_xgboost(model).predict(rows, output_margin=True)
    np.testing.assert_allclose(margins, model.decision_function(X), rtol=0, atol=1e-6)
    assert len(np.unique(margins)) > 1


def test_only_fitted_models_of_the_compiled_engine_are_exported():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] > 0
    reference = PILBoostClassifier(alpha=2.0, n_estimators=2, engine="reference").fit(X, y)
    custom = PILBoostClassifier(alpha=2.0, n_estimators=2, estimator=Plain()).fit(X, y)
    for model in (reference, custom):
        with pytest.raises(ValueError, match="must be one of the compiled engine"):
            to_code(model)
    with pytest.raises(NotFittedError):
        to_code(UntwistClassifier())
    with pytest.raises(
        ValueError, match=r"must be an UntwistClassifier or a PILBoostClassifier \(of a pipeline the last step\)"
    ):
        to_code(make_pipeline(StandardScaler(), QuickClassifier(alpha=2.0, n_estimators=2)))
    low = PILBoostClassifier(alpha=0.05, link="exact", n_estimators=2, max_depth=2).fit(X, y)
    with pytest.raises(ValueError, match=r"exact link cannot be exported below alpha = 0\.08, got 0\.05"):
        to_code(low)


@pytest.mark.parametrize(("export", "package"), [(to_onnx, "onnx"), (to_treelite, "treelite")])
def test_what_is_not_installed_is_named_in_one_line(export, package, monkeypatch):
    for module in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    model, _ = fit_model("alpha 1")
    with pytest.raises(ImportError) as caught:
        export(model)
    assert str(caught.value) == f'{export.__name__} needs {package}: pip install "untwist[export]"'


# ---- ONNX and treelite ----


@pytest.mark.parametrize("name", [pytest.param(name, marks=heavy) for name in MODELS])
def test_onnx_gives_labels_probabilities_and_scores(name):
    model, X = fit_model(name)
    label, clean, decision = run_in_onnx(model, numbers(model, X))
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(clean, model.predict_proba(X), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(decision, model.decision_function(X), rtol=0, atol=1e-10)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("values_at_once", [1, 24, 10**6])
def test_onnx_adds_up_vectors_of_some_trees_at_a_time(values_at_once, monkeypatch):
    monkeypatch.setattr(onnx, "VALUES_AT_ONCE", values_at_once)
    model, X = fit_model("twelve classes together, eight matrices")
    _, clean, _ = run_in_onnx(model, numbers(model, X))
    np.testing.assert_allclose(clean, model.predict_proba(X), rtol=0, atol=ROUNDING)
    n_additions = sum(node.op_type == "Gather" for node in to_onnx(model).graph.node) - 1
    n_trees = len(model.model_.shared_forests[0])
    assert n_additions == -(-n_trees // max(1, values_at_once // 12))


@pytest.mark.parametrize("name", [pytest.param(name, marks=heavy) for name in MODELS])
def test_treelite_gives_the_boosted_scores(name):
    model, X = fit_model(name)
    scores = run_in_treelite(model, numbers(model, X))
    np.testing.assert_array_equal(scores.reshape(len(X), -1).squeeze(), compute_boosted_scores(model, X))
    np.testing.assert_array_equal(probabilities(model, scores), model.predict_proba(X))


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("classes", [["no", "yes"], [False, True], [3, 7], [1.0, 2.0], ["b", "a", "c"]])
def test_onnx_labels_of_any_kind(classes):
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = np.array(classes)[np.searchsorted([-0.3, 0.3][: len(classes) - 1], X[:, 0])]
    model = PILBoostClassifier(alpha=2.0, n_estimators=5, max_depth=2, n_jobs=1).fit(X, y)
    label, _, _ = run_in_onnx(model, X)
    assert label.tolist() == model.predict(X).tolist()


# ---- thresholds, labels and columns at the ends of what there is ----


def fit_with_infinite_thresholds():
    """A model at whose first splits all that is not missing goes to one side, and rows with missing values."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2))
    X[:80, 0] = np.nan
    y = np.isnan(X[:, 0]) ^ (X[:, 1] > 1)
    model = PILBoostClassifier(alpha=2.0, n_estimators=4, max_depth=2, random_state=0).fit(X, y)
    (ensemble,) = model.model_.ensembles
    forest = ensemble.forest
    roots = forest.offset[:-1]
    threshold, missing_left = forest.threshold.copy(), forest.missing_left.copy()
    threshold[roots[::2]], missing_left[roots[::2]] = -np.inf, 1
    threshold[roots[1::2]], missing_left[roots[1::2]] = np.inf, 0
    changed = Ensemble.from_forest(
        replace(forest, threshold=threshold, missing_left=missing_left), ensemble.losses, ensemble.errors
    )
    model.model_ = replace(model.model_, ensembles=(changed,))
    return model, X


def test_infinite_thresholds_of_either_sign_are_numbers_in_python():
    """A threshold of minus infinity was the name -inf, which Python and C do not know."""
    model, X = fit_with_infinite_thresholds()
    np.testing.assert_allclose(run_in_python(model, X), model.predict_proba(X), rtol=0, atol=ROUNDING)


@needs_gcc
def test_infinite_thresholds_of_either_sign_are_numbers_in_c(tmp_path):
    model, X = fit_with_infinite_thresholds()
    np.testing.assert_allclose(run_in_c(model, X, tmp_path), model.predict_proba(X), rtol=0, atol=ROUNDING)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_infinite_thresholds_of_either_sign_are_exported_everywhere():
    pytest.importorskip("onnxruntime")
    pytest.importorskip("treelite")
    model, X = fit_with_infinite_thresholds()
    np.testing.assert_allclose(run_in_onnx(model, X)[1], model.predict_proba(X), rtol=0, atol=ROUNDING)
    scores = run_in_treelite(model, X)
    np.testing.assert_allclose(probabilities(model, scores), model.predict_proba(X), rtol=0, atol=ROUNDING)


def test_labels_beyond_what_onnx_holds_are_refused():
    """They came out negative."""
    classes = np.array([1, 2**63], dtype=np.uint64)
    with pytest.raises(ValueError, match=r"below 2\^63, got 9223372036854775808"):
        onnx._make_labels(classes)
    assert onnx._make_labels(classes - np.uint64(1)).tolist() == [0, 2**63 - 1]


def test_columns_that_no_tree_asks_for_are_not_described_where_there_are_very_many(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 6))
    model = PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=1, random_state=0).fit(X, X[:, 4] > 0)
    all_lines = [f"# {column:>3}: a number" for column in range(6)]
    assert [line for line in to_code(model, "python").splitlines() if "a number" in line] == all_lines
    monkeypatch.setattr(scoring, "MOST_COLUMNS", 5)
    lines = to_code(model, "python").splitlines()
    assert [line for line in lines if "number" in line and line.startswith("#   ")] == [
        all_lines[4],
        "#   all other columns, of 6: numbers that do not matter",
    ]
