"""Shapley values: against all subsets of columns, additive, and equal to those of shap."""

import math
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance

from helpers.quick import make_classifier
from helpers.zoo import MODELS, compute_boosted_scores, fit_model
from untwist import Growth, PILBoostClassifier, explain
from untwist.boosting.ensemble import Ensemble
from untwist.explain import shap_trees, shap_values, shapley, tree_explainer
from untwist.export import numbers
from untwist.noise.several_classes import SeveralClassesNoise

ROUNDING = 1e-10


# ---- the slow twin: all subsets of columns ----


def goes_left(forest, node, x):
    if forest.set[node] >= 0 and not np.isnan(x):
        return bool(int(forest.codes[4 * forest.set[node] + int(x) // 64]) >> int(x) % 64 & 1)
    return bool(forest.missing_left[node]) if np.isnan(x) else x <= forest.threshold[node]


def expect_value(forest, root, node, row, known, background):
    """What a tree gives where only some columns are known; elsewhere the mean over the background rows there."""
    column = forest.feature[node]
    if column < 0:
        return forest.value[node]
    left = root + forest.left[node]
    sides = [goes_left(forest, node, x) for x in background[:, column]]
    here = {True: background[np.array(sides, bool)], False: background[~np.array(sides, bool)]}
    means = {side: expect_value(forest, root, left + (not side), row, known, here[side]) for side in (True, False)}
    if column in known:
        return means[goes_left(forest, node, row[column])]
    share = np.mean(sides)
    return share * means[True] + (1 - share) * means[False]


def average_over_orders(forest, row, background):
    """The definition: the mean over all orders of columns of what a column adds to those before it."""
    width = len(row)
    score = {
        known: sum(expect_value(forest, root, root, row, known, background) for root in forest.offset[:-1])
        for size in range(width + 1)
        for known in combinations(range(width), size)
    }
    values = np.zeros(width)
    for known, before in score.items():
        for column in set(range(width)) - set(known):
            weight = math.factorial(len(known)) * math.factorial(width - len(known) - 1) / math.factorial(width)
            values[column] += weight * (score[tuple(sorted((*known, column)))] - before)
    return values, score[()]


@pytest.mark.parametrize("settings", [{"max_depth": 1}, {"max_depth": 3}, {"max_depth": 6}, {"max_leaf_nodes": 20}])
@pytest.mark.thinned(2)
def test_values_are_those_of_all_subsets_of_columns(settings):
    _, X = fit_model("alpha 1")
    chance = 0.1 + 0.5 * (X["kind"] == "ç") + 0.3 * (X["told"].isna() & (X["size"] > 0))
    y = np.random.default_rng(0).random(len(X)) < chance
    settings = {"max_depth": None, "n_estimators": 2, "n_jobs": 1} | settings
    model = make_classifier(alpha=2.0, **settings).fit(X, y)
    rows = numbers(model, X)
    found = explain.explain(model, X[:5], background=X)
    assert (model.forest_.set >= 0).any()
    for row, values in zip(rows[:5], found.values, strict=True):
        twin, base = average_over_orders(model.forest_, row, rows)
        # Leaves without rows count as having a millionth of one.
        np.testing.assert_allclose(values, twin, rtol=0, atol=1e-6)
        assert found.base_values == pytest.approx(model.start_ + base, abs=1e-6)


def test_values_of_classes_that_share_trees_are_those_of_all_subsets_of_columns():
    model, X = fit_model("three classes together")
    (forest,) = model.model_.shared_forests
    few = forest.keep_first(2)
    model = replace(model.model_, ensembles=(Ensemble.from_forest(few, np.zeros(0), np.zeros(0)),))
    rows = numbers(model, X)
    found = explain.explain(model, X[:2], background=X)
    for row, values in zip(rows[:2], found.values, strict=True):
        for output in range(3):
            twin, base = average_over_orders(few.output(output), row, rows)
            np.testing.assert_allclose(values[:, output], twin, rtol=0, atol=1e-6)
            assert found.base_values[output] == pytest.approx(base, abs=1e-6)


# ---- additivity ----


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.thinned(3)
def test_values_add_up_to_the_boosted_score(name):
    model, X = fit_model(name)
    found = explain.explain(model, X)
    n_classes = len(model.classes_)
    assert found.values.shape == ((*X.shape, n_classes) if n_classes > 2 else X.shape)
    scores = compute_boosted_scores(model, X)
    np.testing.assert_allclose(found.scores, scores, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(found.base_values, scores.mean(axis=0), rtol=0, atol=1e-5)
    if isinstance(model.model_.posterior.noise, SeveralClassesNoise):
        return  # The clean posterior of a class follows from the scores of all classes.
    if model.model_.posterior.noise is None:
        np.testing.assert_allclose(found.scores, model.decision_function(X), rtol=0, atol=ROUNDING)
    else:
        order = np.argsort(scores, axis=0)
        assert (np.diff(np.take_along_axis(model.decision_function(X), order, axis=0), axis=0) >= -1e-9).all()


def test_a_background_of_few_rows_and_leaves_that_none_of_them_reaches():
    model, X = fit_model("alpha 2, exact link, depth 6")
    for background in (X[:1], X[:7]):
        found = explain.explain(model, X, background)
        np.testing.assert_allclose(found.scores, compute_boosted_scores(model, X), rtol=0, atol=ROUNDING)
        assert found.base_values == pytest.approx(compute_boosted_scores(model, background).mean(), abs=1e-4)
    # One row cannot be told from itself.
    np.testing.assert_allclose(explain.explain(model, X[:1], X[:1]).values, 0.0, atol=1e-4)


def test_rows_come_in_blocks(monkeypatch):
    model, X = fit_model("four classes")
    whole = shap_values(model, X)
    monkeypatch.setattr(shapley, "CELLS_PER_BLOCK", 1)
    np.testing.assert_allclose(shap_values(model, X[:20], X), whole[:20], rtol=0, atol=ROUNDING)


def test_a_column_without_splits_contributes_nothing():
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = PILBoostClassifier(alpha=2.0, n_estimators=10, max_depth=2, growth=Growth(max_features=1.0)).fit(
        X[:, :2], X[:, 0] > 0
    )
    wide = np.column_stack([X[:, :2], np.zeros(200)])
    other = PILBoostClassifier(alpha=2.0, n_estimators=10, max_depth=2, growth=Growth(max_features=1.0)).fit(
        wide, X[:, 0] > 0
    )
    np.testing.assert_array_equal(shap_values(other, wide)[:, 2], 0.0)
    np.testing.assert_allclose(shap_values(other, wide)[:, :2], shap_values(model, X[:, :2]), atol=ROUNDING)


def test_contributions_know_names_and_categories():
    model, X = fit_model("alpha 1")
    found = explain.explain(model, X[:10])
    assert found.feature_names == list(X.columns)
    assert [one for one in found.shown[:, 1] if one is not None] == X["city"][:10].dropna().tolist()
    np.testing.assert_array_equal(found.data, numbers(model, X[:10]))
    plain = PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=1).fit(np.eye(20), np.arange(20) % 2)
    assert explain.explain(plain, np.eye(20)).feature_names[:2] == ["column 0", "column 1"]


def test_only_models_of_the_compiled_engine_are_explained():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = PILBoostClassifier(alpha=2.0, n_estimators=2, engine="reference").fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="must be one of the compiled engine"):
        explain.explain(model, X)


def test_without_shap_one_line_says_what_to_install(monkeypatch):
    for module in [name for name in sys.modules if name.split(".")[0] == "shap"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "shap", None)
    model, X = fit_model("alpha 1")
    found = explain.explain(model, X)
    with pytest.raises(ImportError, match=r'^to_shap needs shap: pip install "untwist\[shap\]"$'):
        found.to_shap()
    with pytest.raises(ImportError, match=r'^tree_explainer needs shap: pip install "untwist\[shap\]"$'):
        tree_explainer(model, X)


# ---- the package shap ----


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_shap_finds_the_same_values(name):
    model, X = fit_model(name)
    found = explain.explain(model, X[:50], X)
    explainer = tree_explainer(model, X)
    values = explainer.shap_values(numbers(model, X[:50]), check_additivity=False)
    np.testing.assert_allclose(values, found.values, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(explainer.expected_value, found.base_values, rtol=0, atol=ROUNDING)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_plots_of_shap(monkeypatch):
    import matplotlib
    import shap

    matplotlib.use("Agg")
    model, X = fit_model("alpha 1")
    found = explain.explain(model, X).to_shap()
    assert isinstance(found, shap.Explanation)
    shap.plots.waterfall(found[0], show=False)
    axes = matplotlib.pyplot.gca()
    assert any("city" in label.get_text() for label in axes.get_yticklabels())
    shap.plots.bar(found, show=False)
    shap.plots.beeswarm(found, show=False)
    several, X = fit_model("four classes")
    shap.plots.bar(explain.explain(several, X).to_shap()[:, :, 2], show=False)
    matplotlib.pyplot.close("all")


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_categories_that_are_too_many_for_shap(monkeypatch):
    model, X = fit_model("alpha 1")
    monkeypatch.setattr(shap_trees, "MOST_NODES", 15 * 30)
    with pytest.raises(ValueError, match="the trees are too large for shap"):
        tree_explainer(model, X)


# ---- inspection by scikit-learn ----


def test_permutation_importance_of_a_table_with_categories_and_missing_values():
    model, X = fit_model("alpha 1")
    y = model.predict(X)
    importance = permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean
    assert importance.shape == (X.shape[1],)
    strength = np.abs(shap_values(model, X)).mean(axis=0)
    assert set(np.argsort(importance)[-2:]) == set(np.argsort(strength)[-2:])
    for kind in ("paper", "gain", "splits"):
        assert model.importances(kind).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("dtype", [object, "category"])
def test_partial_dependence_of_a_table_with_categories_and_missing_values(dtype):
    """scikit-learn draws its own grid only for columns without missing values; for others it takes one."""
    model, X = fit_model("alpha 1")
    X = X.astype({"city": dtype, "kind": dtype})
    grid = {"size": np.array([-1.0, 0.0, 1.0]), "kind": np.array(["a*/", "ç"], dtype=object)}
    for column, categories in (("size", None), ("kind", ["kind"])):
        values = {"custom_values": {column: grid[column]}, "response_method": "decision_function"}
        found = partial_dependence(model, X, [column], categorical_features=categories, **values)
        changed = [model.decision_function(X.assign(**{column: value})).mean() for value in grid[column]]
        np.testing.assert_allclose(found["average"][0], changed)
    full = X[X["rooms"].notna() & X["kind"].notna()]
    found = partial_dependence(model, full, ["rooms", "kind"], categorical_features=["kind"])
    assert found["average"].shape == (1, 5, 3)


def test_a_display_of_partial_dependence():
    import matplotlib as mpl

    mpl.use("Agg")
    model, X = fit_model("alpha 1")
    known = X.dropna(subset=["size", "kind"]).astype({"kind": object})
    display = PartialDependenceDisplay.from_estimator(model, known, ["size", "kind"], categorical_features=["kind"])
    assert display.axes_.size >= 2
    mpl.pyplot.close("all")
