"""Sparse and wide tables are held by column: the models are those of the same tables by row."""

from dataclasses import fields

import numpy as np
import pytest
from scipy import sparse

from helpers.quick import make_classifier
from untwist import UntwistClassifier, _core
from untwist.automatic import randomised
from untwist.boosting.engines.compiled import NOTHING, CompiledDataset, CompiledEngine
from untwist.boosting.engines.engine import Rows, Task, TreeGrowth
from untwist.boosting.forest import Forest
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss


def draw_sparse(n_rows=300, n_columns=40, n_classes=2, seed=0):
    """Return a sparse table with a full column, missing values, written zeros and repeated cells, and its labels."""
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((n_rows, n_columns)) < 0.05, np.round(rng.normal(size=(n_rows, n_columns)), 1), 0.0)
    dense[:, 0] = rng.normal(size=n_rows)
    score = dense[:, 0] + 3 * dense[:, 1:8].sum(axis=1) + rng.normal(size=n_rows)
    y = np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
    dense[rng.random((n_rows, n_columns)) < 0.01] = np.nan
    dense[5, 3] = 0.0
    written = dense != 0
    written[5, 3] = True
    half = np.repeat(dense[written] / 2, 2)
    start = np.append(0, 2 * np.cumsum(written.sum(axis=1)))
    table = sparse.csr_array((half, np.repeat(np.nonzero(written)[1], 2), start), shape=dense.shape)
    return table, dense, y


def draw_complete_sparse(n_rows=300, n_columns=60, seed=0):
    """Return a sparse table without missing values, with few listed rows a column, and labels of two classes.

    Cells are below 0 or above it or both, all different or often the same.
    """
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_rows, n_columns))
    values[:, ::2] = values[:, ::2].round()
    values[:, ::3] = np.abs(values[:, ::3])
    values[:, 1::3] = -np.abs(values[:, 1::3])
    share = rng.choice([0.005, 0.02, 0.1], n_columns)
    dense = np.where(rng.random((n_rows, n_columns)) < share, values, 0.0)
    y = (3 * dense[:, :10].sum(axis=1) + rng.normal(size=n_rows) > 0).astype(int)
    return sparse.csr_array(dense), dense, y


def assert_same_forests(one, other):
    for first, second in zip(one.model_.ensembles, other.model_.ensembles, strict=True):
        for field in fields(Forest):
            np.testing.assert_array_equal(getattr(first.forest, field.name), getattr(second.forest, field.name))


PLAIN = {"alpha": 2.0, "n_estimators": 8, "max_depth": 4, "random_state": 0}


@pytest.mark.parametrize("n_classes", [2, 3, 12])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"min_samples_leaf": 5, "l2": 1.0},
        {"subsample": 0.7, "max_features": 0.5},
        {"extra_trees": True},
        {"max_depth": None, "max_leaf_nodes": 9, "min_weight_fraction_leaf": 0.05},
    ],
    ids=str,
)
@pytest.mark.thinned(3)
def test_sparse_tables_make_the_models_of_dense_ones(n_classes, settings):
    table, dense, y = draw_sparse(n_classes=n_classes)
    weight = np.random.default_rng(1).integers(0, 4, len(y)) / 2
    expected = make_classifier(**{**PLAIN, **settings}).fit(dense, y, sample_weight=weight)
    for format in ("csr", "csc", "coo"):
        found = make_classifier(**{**PLAIN, **settings}).fit(table.asformat(format), y, sample_weight=weight)
        assert_same_forests(expected, found)
    np.testing.assert_array_equal(expected.predict_proba(dense), expected.predict_proba(table))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"min_samples_leaf": 5, "l2": 1.0},
        {"subsample": 0.7, "max_features": 0.5},
        {"extra_trees": True},
        {"monotonic_cst": [1, -1] + 58 * [0]},
        {"interaction_cst": [list(range(30)), list(range(20, 60))]},
        {"max_depth": None, "max_leaf_nodes": 9, "min_weight_fraction_leaf": 0.05},
        {"max_depth": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_lists_without_missing_values_make_the_models_of_dense_tables(settings, weighted):
    table, dense, y = draw_complete_sparse()
    weight = np.random.default_rng(1).integers(0, 4, len(y)) / 2 if weighted else None
    for n_jobs in (1, 2):
        settings = {**PLAIN, **settings, "n_jobs": n_jobs}
        one, other = (make_classifier(**settings).fit(X, y, sample_weight=weight) for X in (dense, table))
        assert_same_forests(one, other)


def test_of_equal_lists_the_first_wins():
    # More columns than a thread takes at a time, each with one row; every row is that of 1,000 columns.
    n_columns = 20_000
    rows = np.arange(n_columns) % 20
    table = sparse.csc_array((np.ones(n_columns), rows, np.arange(n_columns + 1)), shape=(20, n_columns))
    y = (np.arange(20) < 3).astype(int)
    for n_jobs in (1, 2):
        model = make_classifier(**PLAIN | {"n_estimators": 3, "n_jobs": n_jobs}).fit(table, y)
        assert set(model.model_.ensembles[0].forest.used_columns) == {0, 1, 2}


@pytest.mark.parametrize("leaf_size", [1, 2, 4, 15])
@pytest.mark.parametrize("weighted", [False, True])
def test_randomised_trees_of_sparse_tables_are_those_of_dense_ones(leaf_size, weighted):
    table, dense, y = draw_complete_sparse()
    weight = np.random.default_rng(1).integers(0, 4, len(y)) / 2.0 if weighted else np.ones(len(y))
    forests = []
    for X in (dense, table):
        dataset = CompiledDataset(Rows(X, y, weight, {}))
        task = Task(ClippedLink(AlphaLoss(2.0)), 1.0, TreeGrowth(seed=3), weight=weight)
        forests.append(CompiledEngine().grow_randomised(dataset, task, 30, leaf_size, 0.3))
    for field in fields(Forest):
        np.testing.assert_array_equal(*(getattr(forest, field.name) for forest in forests))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_tables_are_searched_as_dense_ones(n_classes):
    table, dense, y = draw_sparse(n_rows=150, n_classes=n_classes)
    expected, found = (UntwistClassifier(random_state=0).fit(X, y) for X in (dense, table))
    assert_same_forests(expected, found)
    np.testing.assert_array_equal(expected.model_.out_of_fold.posterior, found.model_.out_of_fold.posterior)


def test_monotone_columns_of_sparse_tables():
    table, dense, y = draw_sparse()
    settings = PLAIN | {"monotonic_cst": [1, 1] + 38 * [0]}
    assert_same_forests(*(make_classifier(**settings).fit(X, y) for X in (dense, table)))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("settings", [{}, {"min_samples_leaf": 5}, {"extra_trees": True}], ids=str)
@pytest.mark.thinned(3)
def test_wide_tables_make_the_models_of_their_histograms(n_classes, settings):
    # With rows of weight 0 there are so many that the table counts as an ordinary one.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 1030)).round(1)
    X[rng.random(X.shape) < 0.02] = np.nan
    y = np.arange(600) % n_classes
    X[:, 5] += y
    few = slice(0, 300)
    weight = np.where(np.arange(600) < 300, 1.0, 0.0)
    wide = make_classifier(**{**PLAIN, **settings}).fit(X[few], y[few])
    tall = make_classifier(**{**PLAIN, **settings}).fit(X, y, sample_weight=weight)
    assert_same_forests(wide, tall)


def test_rows_have_the_same_hashes_however_they_are_held():
    table, dense, y = draw_sparse()
    expected, found = (CompiledDataset(Rows(X, y, np.ones(len(y)), {})).hashes() for X in (dense, table))
    np.testing.assert_array_equal(expected, found)


def test_thresholds_of_many_rows_come_from_the_same_sample():
    rng = np.random.default_rng(0)
    n_rows = 101_000
    dense = np.where(rng.random((n_rows, 6)) < 0.1, rng.normal(size=(n_rows, 6)), 0.0)
    dense[:, 4], dense[:, 5] = 3.0, rng.integers(0, 2, n_rows) * (rng.random(n_rows) < 0.001)
    y = (dense[:, 0] + rng.normal(size=n_rows) > 0).astype(int)
    weight = rng.integers(0, 100, n_rows).clip(0, 1) * rng.integers(1, 3, n_rows)
    settings = PLAIN | {"n_estimators": 2, "max_depth": 6}
    forests = [make_classifier(**settings).fit(X, y, sample_weight=weight) for X in (dense, sparse.csr_array(dense))]
    assert_same_forests(*forests)


def test_sparse_tables_stay_sparse():
    # Written out, this table would take 2.4 GB.
    y = np.arange(1000) % 2
    others = sparse.random_array((1000, 300_000), density=1e-4, rng=np.random.default_rng(0))
    table = sparse.hstack([others, sparse.csr_array(y[:, None] * 1.0)], format="csr")
    model = make_classifier(**PLAIN | {"n_estimators": 2}).fit(table, y)
    assert model.score(table, y) == 1.0
    assert set(model.model_.ensembles[0].forest.used_columns) == {300_000}


def test_randomised_trees_of_many_columns_draw_fewer(monkeypatch):
    drawn = []
    grow = _core.grow_randomised

    def watch(*arguments, **settings):
        drawn.append(settings["max_features"])
        return grow(*arguments, **settings)

    monkeypatch.setattr(_core, "grow_randomised", watch)
    monkeypatch.setattr(randomised, "MOST_DRAWN_COLUMNS", 8)
    table, _, y = draw_sparse(n_rows=60)
    UntwistClassifier(random_state=0).fit(table, y)
    assert set(drawn) == {8 / 40}


@pytest.mark.parametrize(
    ("start", "row", "what"),
    [
        ([0, 1], [0], "fit together"),
        ([0, 2, 1], [0], "follow each other"),
        ([0, 1, 2], [0, 4], "below their number"),
        ([0, 2, 2], [1, 1], "each once"),
        ([0, 2, 2], [-1, 1], "below their number"),
    ],
)
def test_core_refuses_tables_that_are_not_sound(start, row, what):
    data = _core.Dataset(np.array([0, 1, 0, 1], dtype=np.uint32), 2, 2, sparse=True)
    arrays = np.array(start, dtype=np.int64), np.array(row, dtype=np.int32), np.ones(len(row))
    with pytest.raises(ValueError, match=what):
        data.add_sparse_columns(*arrays, NOTHING, 255, 1)


def test_core_keeps_kinds_of_datasets_apart():
    labels = np.array([0, 1], dtype=np.uint32)
    with pytest.raises(ValueError, match="lean and sparse"):
        _core.Dataset(labels, 2, 1, lean=True, sparse=True)
    data = _core.Dataset(labels, 2, 1, sparse=True)
    with pytest.raises(ValueError, match="must not be sparse"):
        data.add_columns(np.zeros((2, 1)), 0, np.zeros(1, dtype=np.int32), NOTHING, 255, 1)
    with pytest.raises(ValueError, match="must not be sparse"):
        data.add_rows(np.zeros((2, 1)), 0, NOTHING, 1)
    dense = _core.Dataset(labels, 2, 1)
    empty = np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int32), NOTHING
    with pytest.raises(ValueError, match="must be sparse"):
        dense.add_sparse_columns(*empty, NOTHING, 255, 1)
