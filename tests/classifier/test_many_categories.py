"""Columns of more categories than trees should split by sets of: coded by their labels, and known by their names."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.quick import make_classifier, resolve
from helpers.small_fits import assert_same_forests, make_model
from untwist import PILBoostClassifier, UntwistClassifier, training_data
from untwist.audit import audit_labels
from untwist.batches import Batches
from untwist.data.label_coding import MANY_CATEGORIES
from untwist.data.workers import Workers
from untwist.explain import explain
from untwist.export import numbers, to_code
from untwist.files import dumps, loads
from untwist.training_data import TrainingData


def draw_ids(n_rows=1500, n_ids=300, seed=0, classes=2):
    """Rows whose id decides the label, and a column that says nothing."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, n_ids, n_rows)
    X = pd.DataFrame({"id": [f"u{one}" for one in ids], "x": rng.normal(size=n_rows)})
    return X, np.random.default_rng(99).integers(0, classes, n_ids)[ids]


def draw_names(n_rows, n_names=100, seed=0):
    """Numbers that say something of the label, and names that say nothing."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n_rows, 3))
    y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-2.0 * numbers[:, 0] - numbers[:, 1]))).astype(int)
    X = pd.DataFrame(numbers, columns=["a", "b", "c"])
    X["name"] = [f"n{one}" for one in rng.integers(0, n_names, n_rows)]
    return X, y


@pytest.fixture(scope="module")
def by_id():
    X, y = draw_ids()
    return X, y, UntwistClassifier(random_state=0, n_jobs=1).fit(X, y)


def test_ids_that_decide_the_label_are_learned(by_id):
    model = by_id[2]
    X_new, y_new = draw_ids(seed=1)
    known = X_new["id"].isin(by_id[0]["id"])
    assert model.score(X_new[known], y_new[known]) > 0.97
    # Rows that folds set aside show as much, which they would not if they had been seen, or never.
    assert np.mean(model.oof_proba_.argmax(axis=1) == by_id[1]) > 0.95


@pytest.mark.parametrize("settings", [{"alpha": 2.0, "n_estimators": 20, "max_depth": 3}, {"engine": "xgboost"}])
def test_other_ways_to_fit_learn_them_too(settings, by_id):
    if "engine" in settings:
        pytest.importorskip("xgboost")
        settings = settings | {"alpha": 1.0, "n_estimators": 10, "max_depth": 2}
    X, y, _ = by_id
    assert make_classifier(**settings, random_state=0, n_jobs=1).fit(X, y).score(X, y) > 0.97


def test_several_classes(by_id):
    X, y = draw_ids(classes=3)
    model = PILBoostClassifier(alpha=2.0, n_estimators=30, max_depth=3, random_state=0, n_jobs=1).fit(X, y)
    assert model.score(X, y) > 0.9


def test_names_that_say_nothing_cost_next_to_nothing():
    X, y = draw_names(3000)
    with_names, without = (
        UntwistClassifier(random_state=0, n_jobs=1).fit(table[:700], y[:700]) for table in (X, X[["a", "b", "c"]])
    )
    loss = without.score(X.loc[700:, ["a", "b", "c"]], y[700:]) - with_names.score(X[700:], y[700:])
    assert loss < 0.01
    assert with_names.feature_importances_.argmax() == 0
    importances = explain(with_names, X[1000:1300]).importances()
    assert importances.argmax() == 0
    assert importances[3] < 0.1
    np.testing.assert_allclose(importances.sum(), 1.0)


@pytest.mark.parametrize(
    "settings",
    [{}, {"alpha": 2.0, "n_estimators": 5, "max_depth": 3, "early_stopping": True}],
    ids=["automatic", "early stopping"],
)
def test_the_order_of_rows_does_not_matter(settings):
    X, y = draw_ids(400, n_ids=60)
    order = np.random.default_rng(0).permutation(400)
    models = [
        make_classifier(**settings, random_state=0, n_jobs=1).fit(X.iloc[rows], y[rows])
        for rows in (np.arange(400), order)
    ]
    np.testing.assert_array_equal(*[model.predict_proba(X) for model in models])


def test_what_folds_set_aside_tells_nothing_to_their_models():
    """The label of a row moves the numbers of the folds that train on it, and not of the one that sets it aside."""
    X, y = draw_ids(400, n_ids=60)
    settings = resolve(UntwistClassifier(random_state=0).get_params())
    before = TrainingData.collect(settings, X, y)
    aside = np.flatnonzero(before.folds[0] > 0)
    weight = before.weight - before.folds[0]
    labels = before.rows.labels.copy()
    labels[aside] = 1 - labels[aside]
    after = replace(before.coding, labels=labels)
    np.testing.assert_array_equal(after.number_rows(weight), before.fold_numbers[0])
    shown = before.show_to_fold(0, aside, before.rows.X[aside])
    np.testing.assert_array_equal(shown[:, 0], before.fold_numbers[0][aside, 0])
    np.testing.assert_array_equal(shown[:, 1], X["x"].iloc[aside])


def test_unknown_categories_are_the_mean_and_missing_ones_are_missing(by_id):
    model = by_id[2]
    schema = model.model_.encoder.schema
    new = pd.DataFrame({"id": ["nobody", None, "u3"], "x": 0.0})
    encoded = numbers(model, new)[:, 0]
    assert encoded[0] == schema.numbers[0][-1]
    np.testing.assert_allclose(encoded[0], by_id[1].mean(), atol=1e-6)
    assert np.isnan(encoded[1])
    assert encoded[2] == schema.numbers[0][schema.categories[0].index("u3")]


def test_few_categories_are_split_by_sets():
    rng = np.random.default_rng(0)
    for n_categories, is_coded in ((MANY_CATEGORIES, False), (MANY_CATEGORIES + 1, True)):
        codes = np.arange(400) % n_categories
        X = np.column_stack([codes, rng.normal(size=400)])
        model = make_model(3, categorical_features=[0]).fit(X, codes % 2)
        assert bool(model.model_.encoder.schema.numbers) == is_coded
        assert bool((model.forest_.set >= 0).any()) != is_coded


def test_sets_are_taken_where_folds_say_so():
    """What a city does depends on another column alone, so that its mean label says nothing."""
    rng = np.random.default_rng(0)
    city, sign = rng.integers(0, 20, 2000), rng.integers(0, 2, 2000)
    ids = [f"i{one}" for one in rng.integers(0, 300, 2000)]
    X = pd.DataFrame({"city": [f"c{one}" for one in city], "sign": sign, "id": ids})
    y = (city % 2) ^ sign
    model = UntwistClassifier(random_state=0, n_jobs=1).fit(X[:1000], y[:1000])
    assert list(model.model_.encoder.schema.numbers) == [2]  # The id has more categories than a set has room for.
    assert model.score(X[1000:], y[1000:]) > 0.95
    by_numbers = PILBoostClassifier(alpha=2.0, n_estimators=20, max_depth=3, random_state=0, n_jobs=1).fit(
        X[:1000], y[:1000]
    )
    assert list(by_numbers.model_.encoder.schema.numbers) == [0, 2]


def test_files_pickles_and_exports_keep_the_numbers(by_id):
    X, _, model = by_id
    rows = pd.concat([X[:50], pd.DataFrame({"id": ["nobody", None], "x": [0.0, np.nan]})])
    expected = model.predict_proba(rows)
    content = dumps(model)
    np.testing.assert_array_equal(loads(content).predict_proba(rows), expected)
    assert dumps(loads(content)) == content
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(rows), expected)
    namespace = {}
    exec(to_code(model, "python"), namespace)
    written = [namespace["predict_proba"](row) for row in numbers(model, rows).tolist()]
    np.testing.assert_allclose(written, expected, rtol=1e-9)


def test_reasons_and_explanations_name_the_category(by_id):
    X, y, model = by_id
    wrong = y.copy()
    wrong[:10] = 1 - wrong[:10]
    audit = audit_labels(X, wrong, n_jobs=1)
    found = audit.suspects(budget=10)
    assert np.isin(found, range(10)).mean() >= 0.8
    reason = audit.explain(int(found[0])).reasons[0]
    assert (reason.column, reason.value) == ("id", X["id"][found[0]])
    shown = explain(model, X[:3]).shown
    assert shown[:, 0].tolist() == X["id"][:3].tolist()


def test_a_table_in_blocks_gives_the_same_model(tmp_path):
    pytest.importorskip("pyarrow")
    X, y = draw_ids(400, n_ids=60)
    X.to_parquet(tmp_path / "t.parquet", row_group_size=100)
    settings = {"random_state": 0, "n_jobs": 1}
    whole = make_classifier(**settings).fit(X, y)
    blocks = make_classifier(**settings).fit(Batches(tmp_path / "t.parquet", ["id", "x"]), y)
    np.testing.assert_array_equal(whole.predict_proba(X), blocks.predict_proba(X))


def test_validation_rows_have_the_numbers_of_new_rows():
    X, y = draw_ids(600, n_ids=60)
    model = make_model(5).fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
    np.testing.assert_allclose(
        model.evals_result_["validation"]["error"][-1], np.mean(model.predict(X[400:]) != y[400:])
    )


def test_a_warm_start_goes_on_with_the_same_numbers():
    X, y = draw_ids(400, n_ids=60)
    whole = make_model(8).fit(X, y)
    part = make_model(4, warm_start=True).fit(X, y)
    part.set_params(n_estimators=8).fit(X, y)
    assert_same_forests(part, whole, X)


def test_workers_do_not_go_on_from_such_a_model(monkeypatch):
    pytest.importorskip("xgboost")
    X, y = draw_ids(400, n_ids=60)
    model = make_model(2, engine="xgboost", warm_start=True).fit(X, y)
    monkeypatch.setattr(training_data, "find_workers", lambda: Workers(size=2))
    with pytest.raises(ValueError, match="a warm start of several workers cannot go on from a model with columns"):
        model.set_params(n_estimators=4).fit(X, y)


def test_what_such_columns_cannot_do_is_said(by_id):
    X, y, _ = by_id
    with pytest.raises(ValueError, match=re.escape("monotonic_cst must be 0 for column 'id', which holds categories")):
        make_model(monotonic_cst={"id": 1}).fit(X, y)
    with pytest.raises(ValueError, match="columns of many categories are coded by the labels of other rows"):
        make_model(3).fit(X, y).certificate(X, y)


def test_a_warm_start_with_several_classes_is_refused():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": [f"c{one}" for one in rng.integers(0, 40, 400)], "a": rng.normal(size=400)})
    y = rng.integers(0, 3, 400)
    model = PILBoostClassifier(alpha=1.0, n_estimators=2, max_depth=2, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"no column of more than 12 categories, got 'id': fit all rounds at once"):
        model.set_params(n_estimators=4).fit(X, y)
