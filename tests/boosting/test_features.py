"""What PILBoostClassifier promises beyond two classes of numbers: each promise against a slow or simpler twin."""

import copy
import itertools
import math
import os
import pickle
import re
import signal
import threading
import time

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from helpers.learners import paper_style
from untwist.boosting import forest as trees
from untwist.boosting.runs import CompiledRun
from untwist.data.folds import hold_out
from untwist.losses import AlphaLoss

FOREST = ("edge", "offset", "feature", "left", "threshold", "missing_left", "value", "gain", "set", "codes")


def sample(n=240, classes=2, seed=0, noise=0.1, missing=0.0):
    """Four columns of numbers; the label depends on three of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + X[:, 1] * X[:, 2]
    y = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    y = np.where(rng.random(n) < noise, rng.integers(0, classes, n), y)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def model(rounds=6, **settings):
    return paper_style(**{"n_estimators": rounds, "random_state": 0, **settings})


def forests(fitted):
    return fitted.forest_ if isinstance(fitted.forest_, list) else [fitted.forest_]


def assert_same(one, other, X=None, other_X=None):
    """Bit for bit the same model, and the same scores."""
    for left, right in zip(forests(one), forests(other), strict=True):
        for name in FOREST:
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
    if X is not None:
        other_X = X if other_X is None else other_X
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(other_X))


def mixed(X):
    """The table with a text column made of the last one, for settings that ask for it."""
    table = X.astype(object)
    table[:, 3] = np.array(["low", "mid", "high", "top"], dtype=object)[np.digitize(X[:, 3], [-0.7, 0.0, 0.7])]
    return table


SETTINGS = [
    {},
    {"max_leaf_nodes": 5, "max_depth": None},
    {"min_samples_leaf": 12},
    {"min_weight_fraction_leaf": 0.1},
    {"l2": 3.0},
    {"subsample": 0.5},
    {"max_features": 0.5},
    {"subsample": 0.6, "max_features": 0.7, "min_samples_leaf": 5, "l2": 1.0, "max_leaf_nodes": 6},
    {"early_stopping": True, "validation_fraction": 0.25, "n_iter_no_change": 3},
    {"early_stopping": True, "subsample": 0.7, "max_features": 0.5},
    {"class_weight": "balanced"},
    {"alpha": -1.5, "link": "exact"},
    {"max_bins": 16},
]
everywhere = pytest.mark.parametrize("settings", SETTINGS, ids=str)


# ---- more than two classes ----


@pytest.mark.parametrize("alpha", [2.0, -1.5, math.inf])
@pytest.mark.parametrize("classes", [3, 5])
def test_one_against_the_rest_is_a_binary_fit_per_class(alpha, classes):
    X, y = sample(classes=classes, missing=0.1)
    settings = {"alpha": alpha, "subsample": 0.8, "max_features": 0.7, "min_samples_leaf": 3}
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    many = model(**settings).fit(X, y, sample_weight=weight)
    scores = many.decision_function(X)
    assert scores.shape == (len(y), classes)
    for k in range(classes):
        binary = model(**settings).fit(X, y == k, sample_weight=weight)
        np.testing.assert_array_equal(scores[:, k], binary.decision_function(X))
        np.testing.assert_array_equal(many.leverages_[k], binary.leverages_)
        np.testing.assert_array_equal(many.edges_[k], binary.edges_)
        np.testing.assert_array_equal(many.apply(X)[:, :, k], binary.apply(X))
    np.testing.assert_array_equal(many.predict(X), np.arange(classes)[scores.argmax(axis=1)])
    own = np.column_stack([model(**settings).fit(X, y == k, weight).predict_proba(X)[:, 1] for k in range(classes)])
    np.testing.assert_allclose(many.predict_proba(X), own / own.sum(axis=1, keepdims=True), rtol=1e-5)
    if alpha > 0:
        assert many.score(X, y, sample_weight=weight) > 0.7


@pytest.mark.parametrize("settings", [{}, {"engine": "reference"}, {"estimator": Ridge()}, {"link": "exact"}], ids=str)
@pytest.mark.parametrize("alpha", [2.0, -2.0])
def test_many_classes_are_consistent(settings, alpha):
    X, y = sample(classes=4)
    labels = np.array(["d", "a", "c", "b"])
    fitted = model(alpha=alpha, **settings).fit(X, labels[y])
    assert fitted.classes_.tolist() == ["a", "b", "c", "d"]
    scores, clean, twisted = fitted.decision_function(X), fitted.predict_proba(X), fitted.predict_proba_twisted(X)
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[scores.argmax(axis=1)])
    for probabilities in (clean, twisted):
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert (probabilities > 0).all()
    rows = np.ptp(clean, axis=1) > 1e-12
    decided = fitted.predict(X)[rows]
    chosen = clean[rows, np.searchsorted(fitted.classes_, decided)]
    assert (chosen >= clean[rows].max(axis=1) - 1e-12).all()  # the largest posterior, ties of clipped ones apart
    stages = [list(f(X)) for f in (fitted.staged_decision_function, fitted.staged_predict, fitted.staged_predict_proba)]
    assert [len(stage) for stage in stages] == [fitted.n_iter_] * 3
    np.testing.assert_allclose(stages[0][-1], scores, rtol=1e-13)
    np.testing.assert_array_equal(stages[1][-1], fitted.predict(X))
    np.testing.assert_allclose(stages[2][-1], clean, rtol=1e-12)
    if alpha < 0:
        positive = model(alpha=-alpha, **settings).fit(X, labels[y])
        np.testing.assert_array_equal(scores, -positive.decision_function(X))
        np.testing.assert_array_equal(twisted, positive.predict_proba_twisted(X))


def test_reference_engine_and_estimator_boost_one_against_the_rest():
    X, y = sample(classes=3)
    weight = np.random.default_rng(2).uniform(0.5, 1.0, len(y))  # no two splits are equally good
    for settings, tolerance in (({"estimator": Ridge(10.0)}, 0.0), ({"engine": "reference"}, 1e-9)):
        many = model(**settings).fit(X, y, sample_weight=weight)
        for k in range(3):
            binary = model(**settings).fit(X, y == k, sample_weight=weight)
            np.testing.assert_allclose(
                many.decision_function(X)[:, k], binary.decision_function(X), rtol=tolerance, atol=tolerance
            )
        assert [len(column) for column in many.estimators_] == [6, 6, 6]
        assert many.forest_ == [None] * 3
        with pytest.raises(ValueError, match="only the trees of the compiled engine"):
            many.apply(X)


def test_the_names_of_classes_only_permute_the_columns():
    X, y = sample(classes=4)
    plain = model(subsample=0.7).fit(X, y)
    names = np.array([7, -3, 50, 11])
    renamed = model(subsample=0.7).fit(X, names[y])
    order = np.argsort(names)
    np.testing.assert_array_equal(renamed.classes_, names[order])
    np.testing.assert_array_equal(renamed.decision_function(X), plain.decision_function(X)[:, order])
    np.testing.assert_array_equal(renamed.predict(X), names[plain.predict(X)])
    np.testing.assert_array_equal(renamed.margins(X, names[y]), plain.margins(X, y)[:, order])


def test_classes_stop_early_each_by_itself():
    X, y = sample(400, classes=3, noise=0.25)
    X_val, y_val = sample(200, classes=3, seed=1, noise=0.25)
    fitted = model(100, early_stopping=True, n_iter_no_change=4).fit(X, y, X_val=X_val, y_val=y_val)
    counts = [len(forest) for forest in fitted.forest_]
    assert len(set(counts)) > 1
    assert fitted.n_iter_ == max(counts) < 100
    stages = list(fitted.staged_decision_function(X))
    leaves = fitted.apply(X)
    assert len(stages) == leaves.shape[1] == fitted.n_iter_
    for k in range(3):
        one = model(100, early_stopping=True, n_iter_no_change=4).fit(X, y == k, X_val=X_val, y_val=y_val == k)
        assert len(one.forest_) == counts[k]
        for name in ("log_loss", "error"):
            np.testing.assert_array_equal(
                fitted.evals_result_["validation"][name][k], one.evals_result_["validation"][name]
            )
        for t, score in enumerate(one.staged_decision_function(X)):
            np.testing.assert_array_equal(stages[t][:, k], score)
        for later in stages[counts[k] :]:
            np.testing.assert_array_equal(later[:, k], one.decision_function(X))
        np.testing.assert_array_equal(leaves[:, : counts[k], k], one.apply(X))
        assert (leaves[:, counts[k] :, k] == -1).all()
    np.testing.assert_array_equal(stages[-1], fitted.decision_function(X))
    np.testing.assert_allclose(fitted.importances("gain").sum(), 1.0)


def test_a_class_of_one_row_and_thirty_classes():
    X, y = sample(300, classes=30, noise=0.0)
    y[0] = 99
    fitted = model(8).fit(X, y)
    assert fitted.predict_proba(X).shape == (300, 31)
    assert fitted.predict(X[:1]) == 99
    assert np.mean(fitted.predict(X) == y) > 0.6


def test_sample_weights_can_remove_a_class():
    X, y = sample(classes=3)
    kept = y < 2
    three, two = model().fit(X, y, sample_weight=kept), model().fit(X[kept], y[kept])
    scores = three.decision_function(X)
    assert three.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(scores[:, 1], two.decision_function(X))
    np.testing.assert_allclose(scores[:, 0], -scores[:, 1], rtol=1e-6, atol=1e-9)
    assert (scores[:, 2] < 0).all()
    np.testing.assert_array_equal(three.predict(X), two.predict(X))
    stopping = model(early_stopping=True).fit(X, y, sample_weight=kept)
    assert kept[stopping.validation_rows_].all()


# ---- categories ----


def coloured(n=200, seed=0, missing=True):
    """Number, colour and size columns as Python lists, and a label that depends on the colour out of order."""
    rng = np.random.default_rng(seed)
    colours = rng.choice(["blue", "green", "red", "violet", "yellow"], n)
    sizes = rng.choice(["L", "M", "S"], n)
    x = rng.normal(size=n)
    y = (np.isin(colours, ["blue", "red"]) ^ (x > 1) ^ (rng.random(n) < 0.1)).astype(int)
    colours = colours.astype(object)
    if missing:
        colours[rng.random(n) < 0.1] = None
    return {"x": x, "colour": colours, "size": sizes.astype(object)}, y


def as_objects(columns):
    return np.column_stack([np.asarray(values, dtype=object) for values in columns.values()])


def test_any_kind_of_table_gives_the_same_model():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns, y = coloured()
    plain = as_objects(columns)
    reference = model(max_depth=4).fit(plain, y)
    frame = pd.DataFrame(columns)
    dtype = pd.CategoricalDtype(["violet", "unused", "red", "blue", "yellow", "green"])
    lists = {"x": columns["x"].tolist(), "colour": columns["colour"].tolist(), "size": columns["size"].tolist()}
    tables = [
        plain.tolist(),
        frame,
        frame.astype({"colour": "category", "size": "category"}),
        frame.astype({"colour": dtype, "size": "string"}),
        pl.DataFrame(lists),
        pl.DataFrame(lists).with_columns(pl.col("colour").cast(pl.Categorical)),
        pa.table(lists),
        pa.table(lists).set_column(1, "colour", pa.array(lists["colour"]).dictionary_encode()),
    ]
    for table in tables:
        fitted = model(max_depth=4).fit(table, y)
        assert_same(fitted, reference, table, plain)
        np.testing.assert_array_equal(fitted.apply(table), reference.apply(plain))
        np.testing.assert_array_equal(fitted.predict_proba(table), reference.predict_proba(plain))
        if not isinstance(table, list):
            assert fitted.feature_names_in_.tolist() == ["x", "colour", "size"]
    frames = tables[1:]
    fitted = model(max_depth=4).fit(frames[0], y)
    for table in frames:  # fitted on one kind, asked about another
        np.testing.assert_array_equal(fitted.decision_function(table), reference.decision_function(plain))


def test_the_order_of_rows_does_not_matter_with_categories():
    columns, y = coloured(300)
    X, order = as_objects(columns), np.random.default_rng(0).permutation(300)
    settings = {"subsample": 0.7, "max_features": 0.6, "min_samples_leaf": 4}
    assert_same(model(**settings).fit(X, y), model(**settings).fit(X[order], y[order]), X)


@pytest.mark.parametrize("missing", [False, True])
def test_unseen_and_missing_categories_are_one(missing):
    columns, y = coloured(missing=missing)
    X = as_objects(columns)
    fitted = model(max_depth=4).fit(X, y)
    new = np.array([[0.3, value, "M"] for value in ("octarine", None, np.nan, 5)], dtype=object)
    scores = fitted.decision_function(new)
    assert np.isfinite(scores).all()
    assert len(set(scores.tolist())) == 1
    frame = pd.DataFrame(columns).astype({"colour": "category"})
    by_name = model(max_depth=4).fit(frame, y)
    later = pd.DataFrame({"x": [0.3], "colour": pd.Categorical(["octarine"]), "size": ["M"]})
    np.testing.assert_array_equal(by_name.decision_function(later), scores[:1])
    if not missing:  # where training had none they go to the heavier side of every split
        stump = model(1, max_depth=1, categorical_features=[0]).fit([["a"]] * 5 + [["b"]] * 3, [0] * 5 + [1] * 3)
        assert stump.decision_function([["?"]]) == stump.decision_function([["a"]])


def test_only_the_heaviest_254_categories_are_known():
    rng = np.random.default_rng(0)
    names = np.array([f"c{i:03}" for i in range(300)], dtype=object)
    codes = np.concatenate([np.repeat(np.arange(254), 3), np.repeat(np.arange(254, 300), 2)])
    weight = np.where(codes == 299, 5.0, 1.0)  # by weight c299 is among them, and c253 not
    y = (rng.random(300)[codes] > 0.5).astype(int)
    X = np.column_stack([names[codes], rng.normal(size=len(y))]).astype(object)
    known = (codes < 253) | (codes == 299)
    pruned = X.copy()
    pruned[~known, 0] = None
    fitted = model(max_depth=2).fit(X, y, sample_weight=weight)
    assert_same(fitted, model(max_depth=2).fit(pruned, y, sample_weight=weight), X, pruned)
    assert len(set(fitted.decision_function([[names[i], 0.0] for i in (253, 254, 298)]).tolist())) == 1
    assert fitted.score(X[known], y[known]) > 0.9


def test_one_stump_learns_any_set_of_categories():
    names = np.array(list("abcdefgh"), dtype=object)
    codes = np.tile(np.arange(8), 30)
    y = np.isin(codes, [0, 3, 4, 7]).astype(int)
    X = np.column_stack([np.random.default_rng(0).normal(size=240), names[codes]]).astype(object)
    fitted = model(1, max_depth=1).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), y)
    assert fitted.forest_.feature.tolist() == [1, -1, -1]
    ordinal = model(1, max_depth=1, categorical_features=None).fit(np.column_stack([X[:, 0].astype(float), codes]), y)
    assert ordinal.score(np.column_stack([X[:, 0].astype(float), codes]), y) < 0.8


def test_numbers_as_categories():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.choice([3, 10, 7, -1], 200)])
    y = np.isin(X[:, 1], [3, 10]).astype(int) ^ (rng.random(200) < 0.1)
    frame = pd.DataFrame({"x": X[:, 0], "k": pd.Categorical(X[:, 1].astype(int))})
    reference = model().fit(frame, y)
    for chosen in ([1], np.array([1]), [False, True]):
        fitted = model(categorical_features=chosen).fit(X, y)
        assert_same(fitted, reference, X, frame)
        np.testing.assert_array_equal(
            fitted.decision_function([[0.0, 99.0]]), fitted.decision_function([[0.0, np.nan]])
        )
    assert_same(model(categorical_features=["k"]).fit(frame.astype({"k": float}), y), reference)
    assert (model().fit(X, y).forest_.set == -1).all()


def test_only_the_compiled_engine_knows_categories():
    columns, y = coloured()
    for settings in ({"engine": "reference"}, {"estimator": Ridge()}):
        with pytest.raises(ValueError, match="only the compiled engine knows categories"):
            model(**settings).fit(pd.DataFrame(columns), y)
    with pytest.raises(ValueError, match="categorical_features"):
        model(categorical_features=None).fit(pd.DataFrame(columns), y)


# ---- trees ----


def rounds_by_hand(fitted, X, signs, weight):
    """For every round the boosting weight of each row, its leaf, and what its leaf adds to its score."""
    before = np.zeros(len(signs))
    for t, (after, leaves) in enumerate(zip(fitted.staged_decision_function(X), fitted.apply(X).T, strict=True)):
        yield t, fitted.link_.weights(signs * before) * weight, leaves, after - before
        before = after


def leaf_sums(leaves, amount):
    return np.array([amount[leaves == leaf].sum() for leaf in np.unique(leaves)])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"min_samples_leaf": 25},
        {"min_weight_fraction_leaf": 0.12},
        {"max_leaf_nodes": 3, "max_depth": None},
        {"max_leaf_nodes": 5, "max_depth": 3},
        {"l2": 15.0},
        {"l2": 2.0, "min_samples_leaf": 15, "max_leaf_nodes": 7, "max_depth": None, "min_weight_fraction_leaf": 0.05},
    ],
    ids=str,
)
def test_leaves_keep_the_rules(settings, weighted):
    X, y = sample(missing=0.1)
    signs, rng = 2.0 * y - 1, np.random.default_rng(3)
    weight = rng.integers(0, 5, len(y)) / 2.0 if weighted else np.ones(len(y))
    free, fitted = (model(12, **one).fit(X, y, sample_weight=weight) for one in ({}, settings))
    here = weight > 0
    grown = 0
    for t, share, leaves, added in rounds_by_hand(fitted, X, signs, weight):
        G, W = leaf_sums(leaves[here], (share * signs)[here]), leaf_sums(leaves[here], share[here])
        values = [added[leaves == leaf][0] for leaf in np.unique(leaves[here])]
        np.testing.assert_allclose(
            values, fitted.leverages_[t] * G / (W + settings.get("l2", 0.0)), rtol=1e-4, atol=1e-6
        )
        count = len(W)
        grown = max(grown, count)
        assert count <= min(settings.get("max_leaf_nodes", 99), 2 ** (settings.get("max_depth", 3) or 99))
        rows = leaf_sums(leaves[here], (weight * (share > 0))[here])
        if count > 1:
            assert rows.min() >= settings.get("min_samples_leaf", 0) * (1 - 1e-3)
            assert W.min() >= settings.get("min_weight_fraction_leaf", 0.0) * W.sum() * (1 - 1e-5)
    assert grown > 2
    assert np.abs(free.decision_function(X) - fitted.decision_function(X)).max() > 1e-3  # the rule did something


@pytest.mark.parametrize("setting", [{"min_samples_leaf": 30}, {"l2": 30.0}], ids=str)
@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_rows_count_with_their_weight_also_where_all_weigh_the_same(setting, factor):
    """Promise: min_samples_leaf and l2 count in rows, and a row of sample weight 2 is two rows."""
    X, y = sample()
    value = dict.fromkeys(setting, type(setting[next(iter(setting))])(next(iter(setting.values())) / factor))
    weighted = model(**setting).fit(X, y, sample_weight=np.full(len(y), factor))
    plain = model(**value).fit(X, y)  # half the rule for rows that count once
    np.testing.assert_allclose(weighted.decision_function(X), plain.decision_function(X), rtol=1e-5, atol=1e-6)
    assert np.abs(model().fit(X, y).decision_function(X) - plain.decision_function(X)).max() > 1e-3


@everywhere
def test_the_order_of_the_rows_does_not_matter(settings):
    X, y = sample(missing=0.1)
    order = np.random.default_rng(4).permutation(len(y))
    one, other = model(12, **settings).fit(X, y), model(12, **settings).fit(X[order], y[order])
    assert_same(one, other, X)
    assert sorted(order[other.validation_rows_]) == one.validation_rows_.tolist()
    assert str(one.evals_result_) == str(other.evals_result_)


@everywhere
def test_the_number_of_threads_does_not_matter(settings):
    X, y = sample(4500, missing=0.02)
    X = np.column_stack([X, X + np.random.default_rng(0).normal(size=X.shape), X[:, ::-1] ** 2])
    assert_same(model(3, n_jobs=1, **settings).fit(X, y), model(3, n_jobs=3, **settings).fit(X, y), X)


@everywhere
def test_a_weight_is_so_many_copies(settings):
    X, y = sample(160)
    weight = 2 ** np.random.default_rng(5).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    one, other = model(**settings).fit(X, y, sample_weight=weight), model(**settings).fit(X[rows], y[rows])
    np.testing.assert_array_equal(np.unique(rows[other.validation_rows_]), one.validation_rows_)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-3, atol=1e-5)
    kept = np.arange(len(y)) % 3 > 0
    weight = np.where(kept, weight, 0)
    one, other = (
        model(**settings).fit(X, y, sample_weight=weight),
        model(**settings).fit(X[kept], y[kept], weight[kept]),
    )
    assert_same(one, other, X)


@everywhere
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_constant_column_changes_nothing(settings, place):
    X, y = sample(missing=0.1)
    plain = model(**settings).fit(X, y)
    for value in (7.5, np.nan):
        padded = np.insert(X, place, value, axis=1)
        fitted = model(**settings).fit(padded, y)
        np.testing.assert_array_equal(fitted.decision_function(padded), plain.decision_function(X))
        np.testing.assert_array_equal(fitted.validation_rows_, plain.validation_rows_)
        assert np.delete(fitted.importances("splits"), place).tolist() == plain.importances("splits").tolist()
    table = np.insert(X.astype(object), place, "same", axis=1)
    fitted = model(**settings).fit(table, y)
    np.testing.assert_array_equal(fitted.decision_function(table), plain.decision_function(X))


@pytest.mark.parametrize("settings", [{"subsample": 0.5}, {"max_features": 0.5}, {"early_stopping": True}], ids=str)
def test_a_draw_depends_on_the_seed_alone(settings):
    X, y = sample()
    fits = [model(8, random_state=seed, **settings).fit(X, y).decision_function(X) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert (fits[0] != fits[2]).any()
    given = [model(8, random_state=np.random.RandomState(7), **settings).fit(X, y) for _ in range(2)]
    assert_same(*given, X)


def test_without_a_draw_the_seed_does_not_matter():
    X, y = sample()
    assert_same(model(random_state=1).fit(X, y), model(random_state=2).fit(X, y), X)


def test_a_subsample_is_about_its_share_and_new_every_round():
    X, y = sample(3000)
    fitted = model(5, subsample=0.3, max_depth=1).fit(X, y)
    whole = model(1, max_depth=1).fit(X, y)
    assert fitted.edges_[0] == pytest.approx(whole.edges_[0], rel=0.3)
    assert len({tuple(fitted.forest_.first(t + 1).value[-2:]) for t in range(5)}) == 5
    few = model(40, max_features=0.25, max_depth=2).fit(X, y)
    for t in range(40):  # one column of four in each tree
        nodes = slice(*few.forest_.offset[t : t + 2])
        assert len(set(few.forest_.feature[nodes].tolist()) - {-1}) <= 1
    assert set(few.forest_.feature.tolist()) == {-1, 0, 1, 2, 3}


# ---- monotone columns ----


def ladders(fitted, X, column, wrap=lambda X: X):
    """Scores of rows of X as one column climbs."""
    steps = np.linspace(-3.5, 3.5, 40)
    grid = np.repeat(X[:60], len(steps), axis=0)
    grid[:, column] = np.tile(steps, 60)
    return fitted.decision_function(wrap(grid)).reshape(60, -1), fitted.predict_proba(wrap(grid))[:, 1].reshape(60, -1)


@pytest.mark.parametrize("alpha", [1.1, 3.0, -2.0])
@pytest.mark.parametrize(
    "settings",
    [
        {"max_depth": 5},
        {"max_leaf_nodes": 12, "max_depth": None},
        {"subsample": 0.6, "max_features": 0.7, "l2": 1.0},
        {"min_samples_leaf": 5, "max_bins": 20},
    ],
    ids=str,
)
def test_monotone_columns(alpha, settings):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 3))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(np.sin(3 * X[:, 0]) + np.cos(3 * X[:, 1]) + X[:, 2]) > 0.3).astype(int)
    free = ladders(model(30, alpha=alpha, **settings).fit(X, y), X, 0)[0]
    assert np.diff(free).min() < 0 < np.diff(free).max()
    bound = model(30, alpha=alpha, monotonic_cst=[1, -1, 0], **settings).fit(X, y)
    for column, sign in ((0, 1), (1, -1)):
        for values in ladders(bound, X, column):
            assert (sign * np.diff(values, axis=1) >= -1e-12).all()
        assert np.abs(np.diff(ladders(bound, X, column)[0])).max() > 0.01  # not by ignoring the column
    frame = pd.DataFrame(X, columns=list("abc"))
    named = model(30, alpha=alpha, monotonic_cst={"a": 1, "b": -1}, **settings).fit(frame, y)
    assert_same(named, bound, frame, X)
    unbound = model(30, alpha=alpha, monotonic_cst=[0, 0, 0], **settings).fit(X, y)
    np.testing.assert_array_equal(ladders(unbound, X, 0)[0], free)


def test_monotone_columns_with_a_negative_alpha_in_the_loss():
    X, y = sample()
    bound = model(20, loss=AlphaLoss(-2.0), engine="compiled", monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    twin = model(20, alpha=-2.0, monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    assert (np.diff(ladders(bound, X, 0)[0], axis=1) >= 0).all()
    assert_same(bound, twin, X)


def test_monotone_columns_that_cannot_be():
    X, y = sample(classes=3)
    with pytest.raises(ValueError, match="monotonic_cst must be None where there are more than two classes"):
        model(monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    model(1, monotonic_cst=[0, 0, 0, 0]).fit(X, y)
    columns, y = coloured()
    with pytest.raises(ValueError, match="monotonic_cst must be 0 for column 'colour', which holds categories"):
        model(monotonic_cst={"colour": 1}).fit(pd.DataFrame(columns), y)
    model(1, monotonic_cst={"x": 1}).fit(pd.DataFrame(columns), y)


# ---- going on ----


def go_on(fitted, rounds, *data, **named):
    return fitted.set_params(n_estimators=rounds).fit(*data, **named)


@pytest.mark.parametrize("settings", [one for one in SETTINGS if "early_stopping" not in one], ids=str)
@pytest.mark.parametrize("kind", ["numbers", "categories", "classes", "validation"])
def test_a_warm_start_equals_one_fit(settings, kind):
    X, y = sample(classes=3 if kind == "classes" else 2)
    X = mixed(X) if kind == "categories" else X
    more = {}
    if kind == "validation":
        more = dict(zip(("X_val", "y_val"), sample(50, seed=9, missing=0.2), strict=True))
    at_once = model(14, **settings).fit(X, y, **more)
    halves = model(5, warm_start=True, **settings).fit(X, y, **more)
    go_on(halves, 6, X, y, **more)
    go_on(halves, 14, X, y, **more)
    assert_same(halves, at_once, X)
    assert halves.n_iter_ == 14
    np.testing.assert_array_equal(halves.predict_proba(X), at_once.predict_proba(X))
    np.testing.assert_array_equal(halves.leverages_, at_once.leverages_)
    for name, values in at_once.evals_result_.get("validation", {}).items():
        np.testing.assert_array_equal(halves.evals_result_["validation"][name], values)
    go_on(halves, 14, X, y, **more)  # nothing left to do
    assert_same(halves, at_once, X)


def test_a_warm_start_keeps_its_seed():
    X, y = sample()
    fitted = model(4, warm_start=True, subsample=0.5, random_state=None).fit(X, y)
    first = fitted.forest_.value.copy()
    go_on(fitted, 8, X, y)
    np.testing.assert_array_equal(fitted.forest_.value[: len(first)], first)
    assert fitted.n_iter_ == 8


def test_a_warm_start_on_a_frame():
    columns, y = coloured()
    for frame in (pd.DataFrame(columns), pd.DataFrame(columns)[["x"]]):
        halves = model(3, warm_start=True).fit(frame, y)
        go_on(halves, 8, frame, y)
        assert_same(halves, model(8).fit(frame, y), frame)
        assert halves.feature_names_in_.tolist() == frame.columns.tolist()
        with pytest.raises(ValueError, match="feature names"):
            go_on(halves, 9, frame.rename(columns={"x": "z"}), y)


def test_a_warm_start_that_stopped_early_goes_on_from_the_rounds_it_kept():
    X, y = sample(noise=0.3)
    fitted = model(60, early_stopping=True, warm_start=True, n_iter_no_change=3).fit(X, y)
    kept, rows = fitted.n_iter_, fitted.validation_rows_
    assert kept < 57
    first = fitted.forest_.value.copy()
    go_on(fitted, 80, X, y)
    np.testing.assert_array_equal(fitted.forest_.value[: len(first)], first)
    np.testing.assert_array_equal(fitted.validation_rows_, rows)
    losses = fitted.evals_result_["validation"]["log_loss"]
    assert fitted.n_iter_ == np.argmin(losses) + 1 >= kept


def test_a_warm_start_that_cannot_be():
    X, y = sample()
    fitted = model(6, warm_start=True).fit(X, y)
    scores = fitted.decision_function(X)
    with pytest.raises(ValueError, match="n_estimators must be at least the 6 rounds of the last fit, got 5"):
        go_on(fitted, 5, X, y)
    with pytest.raises(ValueError, match="y has labels that the training labels have not"):
        go_on(fitted, 9, X, y + 1)
    with pytest.raises(ValueError, match="features"):
        go_on(fitted, 9, X[:, :2], y)
    np.testing.assert_array_equal(fitted.decision_function(X), scores)
    fresh = go_on(fitted.set_params(warm_start=False), 3, X, y + 1)
    assert fresh.classes_.tolist() == [1, 2]
    assert fresh.n_iter_ == 3


def test_a_warm_start_of_the_reference_engine_goes_on():
    X, y = sample(classes=3)
    weight = np.random.default_rng(2).uniform(0.5, 1.0, len(y))
    X_val, y_val = sample(60, classes=3, seed=1)
    for settings in ({"engine": "reference"}, {"estimator": Ridge(10.0)}):
        fitted = model(3, warm_start=True, **settings).fit(X, y, weight, X_val=X_val, y_val=y_val)
        first = list(fitted.estimators_[0])
        go_on(fitted, 8, X, y, weight, X_val=X_val, y_val=y_val)
        at_once = model(8, **settings).fit(X, y, weight, X_val=X_val, y_val=y_val)
        assert all(one is other for one, other in zip(first, fitted.estimators_[0], strict=False))
        np.testing.assert_allclose(fitted.decision_function(X), at_once.decision_function(X), rtol=1e-9, atol=1e-12)
        for k in range(3):
            np.testing.assert_allclose(
                fitted.evals_result_["validation"]["log_loss"][k], at_once.evals_result_["validation"]["log_loss"][k]
            )


def test_the_step_of_later_rounds_is_their_own():
    """Leverages, which the certificate and the hypotheses rest on, are those that made the scores."""
    X, y = sample()
    fitted = model(3, warm_start=True, step_size=1.0).fit(X, y)
    go_on(fitted.set_params(step_size=2.0), 6, X, y)
    replayed = sum(b * h.predict(X) for b, h in zip(fitted.leverages_, fitted.estimators_, strict=True))
    np.testing.assert_allclose(replayed, fitted.decision_function(X), rtol=1e-12)
    np.testing.assert_allclose(fitted.leverages_, np.repeat([1.0, 2.0], 3) * fitted.edges_)


# ---- callbacks, reports, Ctrl-C ----

KINDS = [
    {},
    {"engine": "reference"},
    {"estimator": Ridge()},
    {"subsample": 0.5, "max_features": 0.5},
]
any_engine = pytest.mark.parametrize("settings", KINDS, ids=str)


@any_engine
@pytest.mark.parametrize("classes", [2, 3])
def test_callbacks_are_told_of_every_round(settings, classes):
    X, y = sample(classes=classes)
    X_val, y_val = sample(50, classes=classes, seed=1)
    seen, others = [], []
    fitted = model(7, callbacks=[seen.append, others.append], **settings).fit(X, y, X_val=X_val, y_val=y_val)
    assert [one.round for one in seen] == list(range(1, 8))
    assert others == seen
    assert {one.n_rounds for one in seen} == {7}
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(seen))
    results = fitted.evals_result_["validation"]
    for name, values in (("validation_loss", results["log_loss"]), ("validation_error", results["error"])):
        mean = values if classes == 2 else np.mean(values, axis=0)
        np.testing.assert_allclose([getattr(one, name) for one in seen], mean, rtol=1e-12)
    mean = fitted.edges_ if classes == 2 else np.mean(fitted.edges_, axis=0)
    np.testing.assert_allclose([one.edge for one in seen], mean, rtol=1e-12)
    silent = model(7, **settings).fit(X, y)
    np.testing.assert_array_equal(silent.decision_function(X), fitted.decision_function(X))
    lonely = []
    model(2, callbacks=(lonely.append,), **settings).fit(X, y)
    assert all(math.isnan(one.validation_loss) and math.isnan(one.validation_error) for one in lonely)


@any_engine
def test_no_round_is_told_twice_when_a_fit_ends_early(settings):
    X, y = sample(noise=0.3)
    seen = []
    fitted = model(300, early_stopping=True, n_iter_no_change=3, callbacks=[seen.append], **settings).fit(X, y)
    rounds = len(fitted.evals_result_["validation"]["log_loss"])
    assert rounds == fitted.n_iter_ + 3
    assert [one.round for one in seen] == list(range(1, rounds + 1))


def test_no_round_is_told_twice_when_all_rows_are_beyond_the_clip(capsys):
    X, y = np.repeat([[0.0], [1.0]], 5, axis=0), np.repeat([0, 1], 5)
    seen = []
    fitted = model(50, step_size=4.0, callbacks=[seen.append], verbose=1).fit(X, y)
    assert fitted.n_iter_ == 1
    assert [one.round for one in seen] == [1]
    assert capsys.readouterr().err.count("round") == 1


@any_engine
@pytest.mark.parametrize("classes", [2, 3])
def test_a_callback_can_end_a_fit(settings, classes):
    X, y = sample(classes=classes)
    calls = []
    fitted = model(50, callbacks=[lambda p: p.round == 4, lambda p: calls.append(p.round)], **settings).fit(X, y)
    assert fitted.n_iter_ == 4
    assert calls == [1, 2, 3, 4]  # the others are told of the last round too
    np.testing.assert_array_equal(fitted.decision_function(X), model(4, **settings).fit(X, y).decision_function(X))


def test_what_a_callback_raises_goes_on_to_the_caller():
    def fail(progress):
        raise ZeroDivisionError("mine")

    X, y = sample()
    fitted = model(callbacks=[fail])
    with pytest.raises(ZeroDivisionError, match="mine"):
        fitted.fit(X, y)
    with pytest.raises(NotFittedError):
        fitted.predict(X)


def test_reports_tell_the_round_and_the_time_left(capsys):
    X, y = sample()
    model(9, verbose=3).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    for line, done in zip(lines, (3, 6, 9), strict=True):
        assert re.fullmatch(rf"round {done} of 9: edge -?0\.\d{{4}}, \d+ s left", line)
    model(5, verbose=True, engine="reference").fit(X, y, X_val=X, y_val=y)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == list("12345")
    assert all(re.search(r"validation log-loss \d\.\d{4}, \d+ s left$", line) for line in lines)
    model(5, verbose=7).fit(X, y)
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""


@any_engine
@pytest.mark.parametrize("classes", [2, 3])
def test_an_interrupt_keeps_the_rounds_so_far(settings, classes):
    def interrupt(progress):
        if progress.round == 7:
            raise KeyboardInterrupt

    X, y = sample(classes=classes)
    fitted = model(20, callbacks=[interrupt], warm_start=True, **settings)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, y)
    assert fitted.n_iter_ == 7
    seven = model(7, **settings).fit(X, y)
    np.testing.assert_array_equal(fitted.decision_function(X), seven.decision_function(X))
    np.testing.assert_array_equal(fitted.predict_proba(X), seven.predict_proba(X))
    if "estimator" not in settings and settings.get("engine") != "reference":
        fitted.set_params(callbacks=None).fit(X, y)  # and a warm start goes on where it was
        assert_same(fitted, model(20, **settings).fit(X, y), X)


def test_ctrl_c_during_a_long_fit():
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals go to the main thread")
    X, y = sample(2000, noise=0.4)
    fitted = model(200_000, alpha=1.05, max_depth=2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.25, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            fitted.fit(X, y)
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert 1 <= fitted.n_iter_ < 200_000
    assert_same(fitted, model(fitted.n_iter_, alpha=1.05, max_depth=2).fit(X, y), X)


class Interrupting(BaseEstimator):
    """A Ridge whose so-and-so-manyth fit is interrupted."""

    def __init__(self, fits):
        self.fits = fits

    def fit(self, X, y, sample_weight):
        self.fits.append(None)
        if len(self.fits) == self.fits.maximum:
            raise KeyboardInterrupt
        self.ridge_ = Ridge().fit(X, y, sample_weight)
        return self

    def predict(self, X):
        return self.ridge_.predict(X)


class Count(list):
    """Shared by all copies."""

    def __init__(self, maximum):
        super().__init__()
        self.maximum = maximum

    def __deepcopy__(self, memo):
        return self

    def __sklearn_clone__(self):
        return self


def test_an_interrupt_before_the_first_round_leaves_the_model_unfitted(monkeypatch):
    X, y = sample()
    fitted = model(estimator=Interrupting(Count(1)))
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, y)
    with pytest.raises(NotFittedError):
        fitted.predict(X)

    def interrupted(self, rounds, patience):
        raise KeyboardInterrupt

    compiled = model()
    with monkeypatch.context() as patch:
        patch.setattr(CompiledRun, "boost", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compiled.fit(X, y)
    with pytest.raises(NotFittedError):
        compiled.decision_function(X)
    assert compiled.fit(X, y).n_iter_ == 6


@pytest.mark.parametrize("fits", [2, 3, 5])
def test_an_interrupt_between_classes_leaves_a_model_that_works(fits):
    X, y = sample(classes=3)
    fitted = model(estimator=Interrupting(Count(fits)))
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, y, X_val=X, y_val=y)
    if fits < 4:  # not even a round of every class
        with pytest.raises(NotFittedError):
            fitted.predict(X)
        return
    assert fitted.n_iter_ == (fits + 1) // 3
    scores = fitted.decision_function(X)
    assert scores.shape == (len(y), 3)
    np.testing.assert_array_equal(fitted.predict(X), scores.argmax(axis=1))
    stages = list(fitted.staged_decision_function(X))
    np.testing.assert_array_equal(stages[-1], scores)


@pytest.mark.parametrize("failure", [{"max_bins": 999}, {"callbacks": [lambda progress: 1 / 0]}], ids=["bad", "raised"])
def test_a_failed_second_fit_leaves_no_mixture(failure):
    """Either the model of the first fit or none; not its trees with the classes and columns of the second."""
    X, y = sample()
    fitted = model().fit(X, y)
    before = fitted.predict_proba(X)
    other, labels = sample(classes=3, seed=1)
    with pytest.raises((ValueError, ZeroDivisionError)):
        fitted.set_params(**failure).fit(mixed(other), labels)
    try:
        after = fitted.predict_proba(X)
    except NotFittedError:
        return
    np.testing.assert_array_equal(after, before)
    assert fitted.classes_.tolist() == [0, 1]


# ---- early stopping ----


def test_copies_are_held_out_together():
    X, y = sample(200, classes=3)
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(200), 3))
    fitted = model(3, early_stopping=True, validation_fraction=0.2).fit(X[rows], y[rows])
    held, kept = set(rows[fitted.validation_rows_]), set(np.delete(rows, fitted.validation_rows_))
    assert not held & kept
    assert len(fitted.validation_rows_) == 3 * len(held)
    for k in range(3):
        assert np.mean(y[rows[fitted.validation_rows_]] == k) == pytest.approx(np.mean(y == k), abs=0.03)


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.7])
def test_every_class_gives_its_share(fraction):
    rng = np.random.default_rng(1)
    X, y = sample(900)
    y = np.where(rng.random(900) < 0.1, 2, y)
    weight = rng.uniform(0.5, 2.0, 900)
    for own in (None, weight):
        fitted = model(2, early_stopping=True, validation_fraction=fraction).fit(X, y, sample_weight=own)
        mass = np.ones(900) if own is None else own
        for k in range(3):
            rows = fitted.validation_rows_[y[fitted.validation_rows_] == k]
            assert mass[rows].sum() / mass[y == k].sum() == pytest.approx(fraction, abs=0.03)


def test_few_distinct_rows_are_shared_out():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]] * 10), np.array([0, 1, 1, 1] * 10)
    fitted = model(30, early_stopping=True, validation_fraction=0.25).fit(X, y)
    order = np.random.default_rng(0).permutation(40)
    assert_same(fitted, model(30, early_stopping=True, validation_fraction=0.25).fit(X[order], y[order]), X)
    np.testing.assert_array_equal(fitted.predict([[1.0]]), [1])
    assert np.isfinite(fitted.evals_result_["validation"]["log_loss"]).all()
    certificate = fitted.certificate(X, y)
    assert "violated" not in certificate.implied.verdicts


@pytest.mark.parametrize(("fraction", "few"), [(0.8, 2), (0.9, 3), (0.95, 5)])
def test_every_class_keeps_rows_to_train_on(fraction, few):
    X, _ = sample(300)
    y = (np.arange(300) < few).astype(int)
    fitted = model(2, early_stopping=True, validation_fraction=fraction).fit(X, y)
    trained = np.setdiff1d(np.arange(300), fitted.validation_rows_[fitted._validation_shares == 1.0])
    assert y[trained].any()
    assert (fitted.decision_function(X) > 0).any() or fitted.decision_function(X).std() > 0


def test_what_is_held_out_depends_neither_on_the_order_nor_on_the_scale_of_weights():
    rng = np.random.default_rng(1)
    for _ in range(2000):
        n, share = int(rng.integers(2, 60)), float(rng.choice([0.1, 0.2, 0.25, 0.3, 0.5]))
        contents = rng.integers(0, rng.choice([3, 10, 1000]), n).astype(np.uint64)
        labels, weight, order = np.zeros(n, dtype=np.intp), rng.integers(1, 5, n).astype(float), rng.permutation(n)
        held = hold_out(contents, labels, weight, share, 1)
        rows = np.repeat(np.arange(n), weight.astype(int))
        np.testing.assert_array_equal(hold_out(contents[rows], labels[rows], np.ones(len(rows)), share, 1), held[rows])
        np.testing.assert_array_equal(hold_out(contents[order], labels, weight[order] / 3, share, 1), held[order])


def test_rows_to_hold_out_count_with_their_weight():
    X, y = sample(10)
    copies = model(early_stopping=True).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    weighted = model(early_stopping=True).fit(X, y, sample_weight=np.full(10, 2.0))
    np.testing.assert_allclose(weighted.decision_function(X), copies.decision_function(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"engine": "reference"}, {"link": "exact"}, {"alpha": -2.0}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_those_of_the_stages(settings, classes, weighted):
    X, y = sample(classes=classes)
    X_val, y_val = sample(70, classes=classes, seed=1)
    own = np.random.default_rng(2).integers(0, 4, 70).astype(float) if weighted else np.ones(70)
    fitted = model(8, **settings).fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=own if weighted else None)
    results, least = fitted.evals_result_["validation"], 1 / (len(y) + 2)
    orientation = -1.0 if settings.get("alpha", 1.0) < 0 else 1.0
    for t, scores in enumerate(fitted.staged_decision_function(X_val)):
        for k, column in enumerate(np.atleast_2d((orientation * scores).T)):
            positive = y_val == (1 if classes == 2 else k)
            p = fitted.link_.inverse(column)
            loss = -np.log(np.clip(np.where(positive, p, 1 - p), least, 1 - least))
            found = {name: values if classes == 2 else values[k] for name, values in results.items()}
            assert found["log_loss"][t] == pytest.approx(np.average(loss, weights=own), rel=1e-4, abs=1e-5)
            assert found["error"][t] == pytest.approx(np.average((column > 0) != positive, weights=own), rel=1e-5)


def test_the_loss_is_kept_within_the_limits_of_the_probabilities():
    """A row of weight 3 is three rows here too: n is the number of rows or their total weight."""
    X, y = sample(40, noise=0.0)
    weighted = model(60).fit(X, y, sample_weight=np.full(40, 3.0), X_val=X, y_val=y)
    copies = model(60).fit(np.repeat(X, 3, axis=0), np.repeat(y, 3), X_val=X, y_val=y)
    np.testing.assert_allclose(weighted.decision_function(X), copies.decision_function(X), rtol=1e-4, atol=1e-5)
    for fitted in (weighted, copies):
        posterior = fitted.predict_proba_twisted(X)[np.arange(40), y]
        assert fitted.evals_result_["validation"]["log_loss"][-1] == pytest.approx(-np.log(posterior).mean(), rel=1e-3)


@everywhere
@pytest.mark.parametrize("kind", ["numbers", "categories", "classes", "sparse", "weighted"])
def test_given_validation_rows_never_train(settings, kind):
    X, y = sample(classes=3 if kind == "classes" else 2)
    X_val, y_val = sample(90, classes=3 if kind == "classes" else 2, seed=1, missing=0.2)
    X_val *= 100  # beyond all bins
    weight = np.full(len(y), 2.0) if kind == "weighted" else None
    settings = {name: value for name, value in settings.items() if name != "early_stopping"}
    if kind == "categories":
        X, X_val = mixed(X), mixed(X_val)
        X_val[::3, 3] = "new"
        X_val[1::7, 3] = None
    if kind == "sparse":
        X, X_val = sparse.csr_array(X), sparse.csc_array(X_val)
    plain = model(**settings).fit(X, y, sample_weight=weight)
    followed = model(**settings).fit(X, y, sample_weight=weight, X_val=X_val, y_val=y_val)
    assert_same(plain, followed, X)
    np.testing.assert_allclose(plain.predict_proba(X), followed.predict_proba(X), rtol=1e-14)
    stopped = model(**settings, early_stopping=True).fit(X, y, sample_weight=weight, X_val=X_val, y_val=y_val)
    for one, whole in zip(forests(stopped), forests(plain), strict=True):
        np.testing.assert_array_equal(one.value, whole.value[: len(one.value)])


def big(n=60_000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def test_many_validation_rows_never_train_either():
    X, y = big()
    plain = model(1).fit(X, y)
    assert_same(plain, model(1).fit(X, y, X_val=X[:50_000] + 0.1, y_val=y[:50_000]))


def test_rows_of_weight_zero_are_absent_however_many():
    X, y = big()
    plain = model(1).fit(X, y)
    both, weight = np.vstack([X, X[:50_000] + 0.1]), np.repeat([1.0, 0.0], [60_000, 50_000])
    assert_same(plain, model(1).fit(both, np.concatenate([y, y[:50_000]]), sample_weight=weight))


def test_a_constant_column_changes_nothing_in_many_rows():
    X, y = big(101_000)
    plain, padded = model(1).fit(X, y), model(1).fit(np.column_stack([np.ones(len(y)), X]), y)
    np.testing.assert_array_equal(plain.forest_.threshold, padded.forest_.threshold)


def test_sparse_equals_dense_in_many_rows(monkeypatch):
    X, y = big(101_000)
    X = np.column_stack([X, X[::-1]])
    dense = model(1).fit(X, y)
    monkeypatch.setattr(trees, "BLOCK", len(y))  # one column at a time, as for a wide table
    assert_same(dense, model(1).fit(sparse.csc_array(X), y))


def test_validation_weights_and_mixed_formats():
    X, y = sample()
    X_val, y_val = sample(60, seed=1)
    weight = np.random.default_rng(0).integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weight)
    one = model().fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=weight).evals_result_["validation"]
    for table in (X_val[rows], X_val[rows].tolist(), sparse.csr_array(X_val[rows])):
        other = model().fit(X, y, X_val=table, y_val=y_val[rows]).evals_result_["validation"]
        for name in one:
            np.testing.assert_allclose(one[name], other[name], rtol=1e-5)
    for table in (X_val[rows], sparse.coo_array(X_val[rows])):
        other = model().fit(sparse.csr_array(X), y, X_val=table, y_val=y_val[rows]).evals_result_["validation"]
        np.testing.assert_allclose(one["log_loss"], other["log_loss"], rtol=1e-5)


def test_both_engines_hold_out_the_same_rows_and_stop_alike():
    X, y = sample(200, noise=0.45, seed=1)
    X = np.round(2 * X)
    weight = np.random.default_rng(0).uniform(0.5, 1.0, 200)  # no two splits are equally good
    settings = {"early_stopping": True, "n_iter_no_change": 5, "step_size": 1.0}
    compiled, loop = (model(60, engine=engine, **settings).fit(X, y, weight) for engine in ("compiled", "reference"))
    np.testing.assert_array_equal(compiled.validation_rows_, loop.validation_rows_)
    assert compiled.n_iter_ == loop.n_iter_ < 60
    for name in ("log_loss", "error"):
        np.testing.assert_allclose(
            compiled.evals_result_["validation"][name], loop.evals_result_["validation"][name], rtol=2e-3, atol=1e-4
        )
    np.testing.assert_allclose(compiled.decision_function(X), loop.decision_function(X), rtol=2e-3, atol=2e-3)


# ---- class weights, formats ----


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("settings", [{}, {"engine": "reference"}, {"early_stopping": True}], ids=str)
def test_class_weights_are_sample_weights(classes, settings):
    X, y = sample(classes=classes)
    labels = np.array(["x", "y", "z"])[y]
    kept = np.random.default_rng(0).random(len(y)) > 0.4 * (y == 0)
    X, labels = X[kept], labels[kept]
    own = np.random.default_rng(1).integers(1, 4, len(labels)).astype(float)
    dictionary = {"x": 3.0, "y": 0.5}
    by_hand = np.array([dictionary.get(label, 1.0) for label in labels])
    mass = {label: own[labels == label].sum() for label in set(labels)}
    balanced = np.array([own.sum() / (classes * mass[label]) for label in labels])
    for setting, weight, twin in (
        (dictionary, None, by_hand),
        (dictionary, own, by_hand * own),
        ("balanced", None, compute_sample_weight("balanced", labels)),
        ("balanced", own, balanced * own),
    ):
        one = model(class_weight=setting, **settings).fit(X, labels, sample_weight=weight)
        other = model(**settings).fit(X, labels, sample_weight=twin)
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
        np.testing.assert_array_equal(one.validation_rows_, other.validation_rows_)
        if classes == 2:
            given = one.certificate(X, labels, sample_weight=weight)
            assert given.exact.verdicts == other.certificate(X, labels, sample_weight=twin).exact.verdicts
    plain = model(**settings).fit(X, labels)
    assert (plain.decision_function(X) != one.decision_function(X)).any()


@pytest.mark.parametrize("setting", [{0: 0.0, 1: 0.0}, {0: 0.0}, {0: math.inf}], ids=str)
def test_class_weights_must_leave_two_classes(setting):
    with pytest.raises(ValueError, match="class"):
        model(class_weight=setting).fit(*sample())


@pytest.mark.parametrize("form", ["csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix", "coo_matrix"])
@pytest.mark.parametrize("classes", [2, 3])
def test_sparse_equals_dense(form, classes):
    X, y = sample(classes=classes, missing=0.1)
    X[np.abs(X) < 0.5] = 0.0
    table = getattr(sparse, form)(X)
    settings = {"subsample": 0.7, "max_features": 0.6, "early_stopping": True}
    dense, thin = model(**settings).fit(X, y), model(**settings).fit(table, y)
    assert_same(dense, thin, X)
    for name in ("decision_function", "predict", "predict_proba", "predict_proba_twisted", "apply"):
        np.testing.assert_array_equal(getattr(thin, name)(table), getattr(dense, name)(X))
    for one, other in zip(thin.staged_predict_proba(table), dense.staged_predict_proba(X), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(thin.margins(table, y), dense.margins(X, y))
    if classes == 2:
        whole = model().fit(table, y)
        assert whole.certificate(table, y).exact.verdicts == model().fit(X, y).certificate(X, y).exact.verdicts


def test_sparse_blocks_of_any_size(monkeypatch):
    X, y = sample(missing=0.1)
    X[np.abs(X) < 0.5] = 0.0
    whole = model().fit(X, y)
    monkeypatch.setattr(trees, "BLOCK", 100)
    assert_same(whole, model().fit(sparse.csr_array(X), y), X, sparse.csc_array(X))


def test_layouts_and_precisions():
    X, y = sample(missing=0.1)
    reference = model().fit(X, y)
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((480, 8))
    wide[::2, ::2] = X
    backward = np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    for table in (
        frozen,
        np.asfortranarray(X),
        wide[::2, ::2],
        backward,
        X.astype(">f8"),
        X.astype(object),
        X.tolist(),
    ):
        assert_same(model().fit(table, y), reference, table, X)
    small = X.astype(np.float32)
    assert_same(model().fit(small, y), model().fit(small.astype(np.float64), y), small, small.astype(np.float64))
    whole = np.round(10 * np.nan_to_num(X))
    for dtype in (np.int8, np.int64, np.float16):
        assert_same(model().fit(whole.astype(dtype), y), model().fit(whole, y), whole.astype(dtype), whole)
    np.testing.assert_array_equal(frozen, X)  # and nothing was written to


def test_labels_and_weights_in_any_container():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    X, y = sample(classes=3)
    names, weight = np.array(["x", "y", "z"])[y], np.arange(len(y), dtype=float)
    expected = model().fit(X, y, sample_weight=weight).decision_function(X)
    series, texts = pd.Series(y), pd.Series(names)
    for labels in (y.tolist(), y.astype(np.uint8), series, series.astype("Int64"), pl.Series(y), pa.array(y)):
        np.testing.assert_array_equal(model().fit(X, labels, weight).decision_function(X), expected)
    for labels in (names.astype(object), texts, texts.astype("category"), pl.Series(names), pa.array(names.tolist())):
        fitted = model().fit(X, labels, weight, X_val=X, y_val=labels)
        np.testing.assert_array_equal(fitted.decision_function(X), expected)
        assert fitted.score(X, names) > 0.6
    for own in (weight.tolist(), weight.astype(int), pd.Series(weight), pl.Series(weight), pa.array(weight)):
        np.testing.assert_array_equal(model().fit(X, y, own).decision_function(X), expected)


def test_fits_side_by_side_in_threads():
    X, y = sample(1000, classes=3)
    X, results = np.tile(X, 16), [None] * 3

    def fit(place):
        results[place] = model(4, n_jobs=2, subsample=0.5).fit(X, y)

    threads = [threading.Thread(target=fit, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = model(4, n_jobs=1, subsample=0.5).fit(X, y)
    for result in results:
        assert_same(result, alone)


def test_large_numbers_are_numbers_like_others():
    X, y = sample()
    fitted = model().fit(X, y)
    far = np.full((2, 4), 1.7e308)
    np.testing.assert_array_equal(fitted.predict(far), fitted.predict(np.full((2, 4), 1e6)))
    assert model(1).fit(X * 1e307, y).predict(X * 1e307).shape == y.shape
    with pytest.raises(ValueError, match="infinity"):
        fitted.predict(np.array([[np.inf, 0.0, 0.0, 0.0]]))


# ---- what can be read off a model ----


def walk(forest, t, row):
    """The leaf of a row of numbers, one comparison at a time."""
    first, node = int(forest.offset[t]), 0
    while forest.feature[first + node] >= 0:
        at = first + node
        value = row[forest.feature[at]]
        if math.isnan(value):
            left = bool(forest.missing_left[at])
        elif forest.set[at] >= 0:
            words = forest.codes[4 * forest.set[at] :][:4]
            left = bool(int(words[int(value) // 64]) >> int(value) % 64 & 1)
        else:
            left = value <= forest.threshold[at]
        node = int(forest.left[at]) + (0 if left else 1)
    return node


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("n", [1, 7, 300])
def test_leaves_are_where_a_walk_ends(classes, n):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 2)), rng.integers(0, 90, 300)])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.digitize(np.nan_to_num(X[:, 0]), [0.0, 1.0][: classes - 1]) + np.nan_to_num(X[:, 2]).astype(int)) % classes
    fitted = model(max_depth=5, categorical_features=[2]).fit(X, y)
    known = sorted(set(X[~np.isnan(X[:, 2]), 2]))
    new = X[:n].copy()
    new[::5, 2] = 1000.0  # unseen
    new[::4, 0] = np.nan
    numbers = new.copy()
    numbers[:, 2] = [known.index(value) if value in known else math.nan for value in new[:, 2]]
    leaves = fitted.apply(new).reshape(n, fitted.n_iter_, -1)
    scores = np.zeros((n, leaves.shape[2]))
    for k, forest in enumerate(forests(fitted)):
        for t in range(len(forest)):
            expected = [walk(forest, t, row) for row in numbers]
            np.testing.assert_array_equal(leaves[:, t, k], expected)
            scores[:, k] += forest.value[forest.offset[t] + np.array(expected)]
    np.testing.assert_allclose(fitted.decision_function(new).reshape(n, -1), scores, rtol=1e-13)
    assert any((forest.set >= 0).any() for forest in forests(fitted))


@pytest.mark.parametrize("alpha", [2.0, -2.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_margins_and_weights(alpha, classes):
    X, y = sample(classes=classes)
    labels = np.array(["a", "b", "c"])
    fitted = model(alpha=alpha).fit(X, labels[y])
    scores = np.sign(alpha) * fitted.decision_function(X)
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0) if classes > 2 else 2.0 * y - 1
    np.testing.assert_array_equal(fitted.margins(X, labels[y]), signs * scores)
    weights = fitted.weights(X, labels[y])
    np.testing.assert_array_equal(weights, fitted.link_.weights(signs * scores))
    assert ((weights >= 0) & (weights <= 1)).all()
    assert weights[signs * scores < 0].min() > 0.5 > weights[signs * scores > 0].max()
    with pytest.raises(ValueError, match="labels that the training labels have not"):
        fitted.margins(X, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_importances_by_hand(classes):
    X, y = sample(classes=classes)
    fitted = model(max_depth=2).fit(X, y)
    paper, gain, splits = np.zeros(4), np.zeros(4), np.zeros(4)
    leverages = [fitted.leverages_] if classes == 2 else fitted.leverages_
    for forest, leverage in zip(forests(fitted), leverages, strict=True):
        for t in range(len(forest)):
            own = np.zeros(4)
            for node in range(forest.offset[t], forest.offset[t + 1]):
                if forest.feature[node] >= 0:
                    own[forest.feature[node]] += forest.gain[node]
                    splits[forest.feature[node]] += 1
            gain += own
            paper += leverage[t] * own / own.sum()
    for kind, by_hand in (("paper", paper), ("gain", gain), ("splits", splits)):
        shares = fitted.importances(kind)
        assert shares.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(shares, by_hand / by_hand.sum(), rtol=1e-12)
    np.testing.assert_array_equal(fitted.feature_importances_, fitted.importances())
    assert fitted.importances("gain")[3] == fitted.importances("gain").min()
    with pytest.raises(ValueError, match="kind must be"):
        fitted.importances("weight")
    loop = model(engine="reference").fit(X, y)
    assert loop.importances("paper").sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="needs the trees of the compiled engine"):
        loop.importances("splits")
    with pytest.raises(NotFittedError):
        model().importances()


@pytest.mark.parametrize(
    "settings",
    [
        {"early_stopping": True, "class_weight": "balanced"},
        {"class_weight": {0: 2.5}, "max_features": 0.5},
        {"l2": 2.0, "max_leaf_nodes": 5, "min_samples_leaf": 4},
        {"monotonic_cst": [1, 0, 0, 0]},
        {"alpha": -2.0},
        {"estimator": Ridge(5.0), "class_weight": "balanced"},
    ],
    ids=str,
)
def test_certificates(settings):
    X, y = sample()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    fitted = model(10, **settings).fit(X, y, sample_weight=weight)
    certificate = fitted.certificate(X, y, sample_weight=weight)
    assert len(certificate.exact.verdicts) == fitted.n_iter_
    assert "violated" not in certificate.exact.verdicts + certificate.implied.verdicts
    with pytest.raises(ValueError, match="the data that fit was given"):
        fitted.certificate(X, y)
    with pytest.raises(ValueError, match="the data that fit was given"):
        fitted.certificate(X[::-1], y, sample_weight=weight)


def test_certificates_of_categories_and_after_a_warm_start():
    X, y = sample()
    fitted = model(4, warm_start=True).fit(mixed(X), y)
    go_on(fitted, 9, mixed(X), y)
    certificate = fitted.certificate(mixed(X), y)
    assert certificate.exact.verdicts == model(9).fit(mixed(X), y).certificate(mixed(X), y).exact.verdicts


def test_certificates_that_cannot_be():
    X, y = sample()
    with pytest.raises(NotFittedError):
        model().certificate(X, y)
    with pytest.raises(ValueError, match="subsample=1"):
        model(subsample=0.5).fit(X, y).certificate(X, y)
    X, y = sample(classes=3)
    with pytest.raises(ValueError, match="two classes"):
        model().fit(X, y).certificate(X, y)


# ---- in scikit-learn's world ----


def test_metadata_routing():
    X, y = sample(classes=3)
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    folds = KFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = model().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = cross_validate(routed, X, y, cv=folds, params={"sample_weight": weight})["test_score"]
        search = GridSearchCV(routed, {"alpha": [1.1, 2.0]}, cv=folds).fit(X, y, sample_weight=weight)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, routed).fit(X, y, sample_weight=weight)
        watching = make_pipeline(model().set_fit_request(X_val=True, y_val=True))
        watching.fit(X, y, X_val=X[:50], y_val=y[:50])
    expected = [
        model().fit(X[train], y[train], weight[train]).score(X[test], y[test], weight[test])
        for train, test in folds.split(X)
    ]
    np.testing.assert_allclose(found, expected)
    best = search.best_estimator_
    assert_same(best, model(alpha=best.alpha).fit(X, y, weight), X)
    Z = StandardScaler().fit_transform(X)
    assert_same(pipeline[-1], model().fit(Z, y, weight), Z)
    assert len(watching[-1].evals_result_["validation"]["log_loss"][0]) == 6


def test_pipelines_that_hand_on_frames():
    X, y = sample()
    frame = pd.DataFrame(X, columns=list("abcd"))
    for kind in ("pandas", "polars"):
        pytest.importorskip(kind)
        pipeline = make_pipeline(StandardScaler(), model(monotonic_cst={"a": 1})).set_output(transform=kind)
        pipeline.fit(frame, y)
        assert pipeline[-1].feature_names_in_.tolist() == list("abcd")
        plain = model(monotonic_cst=[1, 0, 0, 0]).fit(StandardScaler().fit_transform(X), y)
        np.testing.assert_array_equal(
            pipeline.decision_function(frame), plain.decision_function(StandardScaler().fit_transform(X))
        )


def test_copies_of_a_model():
    columns, y = coloured(classes := 200)
    frame, labels = pd.DataFrame(columns).astype({"colour": "category"}), np.arange(classes) % 3
    for target in (y, labels):
        fitted = model(callbacks=[print_nothing], early_stopping=True).fit(frame, target)
        expected = fitted.predict_proba(frame)
        unseen = frame.assign(colour=pd.Categorical(["octarine"] * len(frame)))
        for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
            np.testing.assert_array_equal(other.predict_proba(frame), expected)
            np.testing.assert_array_equal(other.predict_proba(unseen), fitted.predict_proba(unseen))
            np.testing.assert_array_equal(other.apply(frame), fitted.apply(frame))
            assert_same(other, fitted)
        fresh = clone(fitted)
        with pytest.raises(NotFittedError):
            fresh.predict(frame)
        assert_same(fresh.fit(frame, target), fitted, frame)
    changed = copy.deepcopy(fitted).fit(frame, y)  # a copy goes its own way
    assert len(changed.classes_) == 2
    np.testing.assert_array_equal(fitted.predict_proba(frame), expected)


def print_nothing(progress):
    return False


def test_other_processes():
    X, y = sample(2000, classes=3)
    X = np.tile(X, 8)  # enough for threads
    fitted = model(n_jobs=2).fit(X, y)
    halves = joblib.Parallel(n_jobs=2)(joblib.delayed(fitted.predict_proba)(part) for part in np.array_split(X, 2))
    np.testing.assert_array_equal(np.vstack(halves), fitted.predict_proba(X))
    again = joblib.Parallel(n_jobs=2)(joblib.delayed(model(2).fit)(X, y == k) for k in range(2))
    for k in range(2):
        assert_same(again[k], model(2).fit(X, y == k))


def test_cross_validation_and_calibration_of_many_classes():
    X, y = sample(classes=3)
    folds = StratifiedKFold(3)
    found = cross_val_predict(model(), X, y, cv=folds, method="predict_proba")
    for train, test in folds.split(X, y):
        np.testing.assert_array_equal(found[test], model().fit(X[train], y[train]).predict_proba(X[test]))
    calibrated = CalibratedClassifierCV(model(), cv=folds).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    assert calibrated.score(X, y) > 0.6


def test_inspection():
    X, y = sample(noise=0.0)
    fitted = model(20).fit(X, y)
    importance = permutation_importance(fitted, X, y, n_repeats=3, random_state=0).importances_mean
    assert importance.argmin() == 3
    assert importance[:3].min() > 0.02
    columns, labels = coloured()
    frame = pd.DataFrame(columns).astype({"colour": "category"})
    for target, method in ((labels, "decision_function"), (np.arange(200) % 3, "predict_proba")):
        fitted = model().fit(frame, target)
        shown = partial_dependence(fitted, frame, ["x"], response_method=method, grid_resolution=5, kind="average")
        for i, value in enumerate(shown["grid_values"][0]):
            means = getattr(fitted, method)(frame.assign(x=value)).mean(axis=0)
            np.testing.assert_allclose(shown["average"][:, i], means)


# ---- errors ----


@pytest.mark.parametrize(
    "settings",
    [
        {"max_leaf_nodes": 1},
        {"max_leaf_nodes": 3.0},
        {"min_samples_leaf": 0},
        {"min_samples_leaf": 0.1},
        {"min_weight_fraction_leaf": 0.6},
        {"min_weight_fraction_leaf": -0.1},
        {"min_weight_fraction_leaf": math.nan},
        {"min_weight_fraction_leaf": None},
        {"l2": -1.0},
        {"l2": math.nan},
        {"l2": math.inf},
        {"l2": "much"},
        {"subsample": 0.0},
        {"subsample": 1.5},
        {"subsample": None},
        {"max_features": 0},
        {"max_features": 1.01},
        {"max_features": "sqrt"},
        {"max_bins": 1},
        {"max_bins": 10.0},
        {"max_depth": 2.5},
        {"categorical_features": "all"},
        {"categorical_features": [4]},
        {"categorical_features": ["colour"]},
        {"categorical_features": [True, False]},
        {"monotonic_cst": [1, 0]},
        {"monotonic_cst": [2, 0, 0, 0]},
        {"monotonic_cst": "up"},
        {"monotonic_cst": {"a": 1}},
        {"class_weight": "even"},
        {"class_weight": [1.0, 2.0]},
        {"class_weight": {5: 1.0}},
        {"class_weight": {0: -1.0}},
        {"class_weight": {0: math.nan}},
        {"class_weight": {0: "a"}},
        {"validation_fraction": 0.0, "early_stopping": True},
        {"validation_fraction": None, "early_stopping": True},
        {"n_iter_no_change": 1.5, "early_stopping": True},
        {"callbacks": [1]},
        {"callbacks": 5},
        {"callbacks": print},
        {"verbose": None},
        {"verbose": "loud"},
        {"n_jobs": 1.5},
        {"l2": 1.0, "engine": "reference"},
        {"subsample": 0.5, "engine": "reference"},
        {"max_features": 0.5, "estimator": Ridge()},
        {"max_bins": 20, "engine": "reference"},
        {"monotonic_cst": [1, 0, 0, 0], "engine": "reference"},
        {"monotonic_cst": np.array([1, 0, 0, 0]), "engine": "reference"},
    ],
    ids=str,
)
def test_bad_settings_are_named(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        model(**settings).fit(*sample())


def test_a_huge_patience_or_tree_is_no_error_of_another_kind():
    X, y = sample()
    assert_same(model(max_leaf_nodes=10**6, max_depth=3).fit(X, y), model(max_leaf_nodes=8, max_depth=3).fit(X, y), X)
    with pytest.raises(ValueError, match="categor"):
        model(categorical_features=[0]).fit(sparse.csr_array(X), y)
    with pytest.raises(ValueError, match="X_val and y_val must have as many rows"):
        model().fit(X, y, X_val=X, y_val=y[:-1])
    with pytest.raises(ValueError, match="features"):
        model().fit(X, y, X_val=X[:, :3], y_val=y)


def test_validation_labels_that_are_missing_are_named():
    X, y = sample()
    with pytest.raises(ValueError, match="y_val"):
        model().fit(X, np.array(["n", "y"], dtype=object)[y], X_val=X, y_val=np.full(len(y), None))


# ---- what new users ran into ----


def test_predictions_and_probabilities_name_the_same_class_beyond_the_clip():
    X, test, y, _ = train_test_split(*load_wine(return_X_y=True), random_state=0)
    fitted = paper_style(2.0, random_state=0).fit(X, y)
    assert min(map(len, fitted.edges_)) < 100  # a class is told apart at once, and all its rows are beyond the clip
    np.testing.assert_array_equal(fitted.predict(test), fitted.predict_proba(test).argmax(axis=1))


@pytest.mark.parametrize(
    "column", [lambda rng, n: rng.integers(0, 100, n).astype(float), lambda rng, n: rng.normal(size=n)]
)
def test_early_stopping_works_where_contents_repeat(column):
    """Few distinct rows: whole contents must not leave training to judge what was never seen."""
    rng = np.random.default_rng(0)
    X = column(rng, 8000)[:, None]
    rate = 0.5 + 0.4 * np.sin(X[:, 0] * (0.3 if X.max() > 50 else 3))
    y = (rng.random(8000) < rate).astype(int)
    stopped = paper_style(
        1.0, learning_rate=0.3, max_depth=6, n_estimators=200, early_stopping=True, random_state=0
    ).fit(X, y)
    assert np.abs(stopped.predict_proba(X)[:, 1] - rate).mean() < 0.07


def test_weights_are_copies_whatever_their_ratios():
    X, y = sample()
    weight = np.random.default_rng(3).integers(0, 4, len(y))
    weighted = paper_style(2.0, n_estimators=1, min_samples_leaf=7, l2=2.0).fit(X, y, sample_weight=weight)
    copies = paper_style(2.0, n_estimators=1, min_samples_leaf=7, l2=2.0).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_array_equal(weighted.forest_.feature, copies.forest_.feature)
    np.testing.assert_array_equal(weighted.forest_.threshold, copies.forest_.threshold)
    np.testing.assert_allclose(weighted.forest_.value, copies.forest_.value, rtol=1e-6)


def test_a_signal_is_heard_within_a_slow_tree():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60_000, 20)), rng.integers(0, 2, 60_000)
    slow = paper_style(1.0, n_estimators=1000, max_depth=None, learning_rate=0.1)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    start = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            slow.fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - start < 60  # a thousand trees would take minutes


def test_lengths_labels_names_and_links_that_do_not_fit_are_named():
    X, y = sample()
    fitted = paper_style(2.0, n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.weights(X[:5], y[:1])
    with pytest.raises(ValueError, match="a warm start goes on with the link of the last fit"):
        fitted.set_params(warm_start=True, alpha=8.0, n_estimators=5).fit(X, y)
    with pytest.raises(ValueError, match="validation rows: X has 2 features"):
        paper_style(2.0).fit(X, y, X_val=X[:, :2], y_val=y)
    with pytest.raises(ValueError, match="no missing labels, got 1, the first in row 3"):
        paper_style(2.0).fit(X, np.array(["a", "b", "a", None, *["b"] * (len(y) - 4)], dtype=object))
    with pytest.raises(ValueError, match=r"different names of columns, got \['a'\] more than once"):
        paper_style(2.0).fit(pd.DataFrame(X, columns=["a", "a", "b", "c"]), y)
