"""TrainingData: what is ready before round one."""

import numpy as np
import pytest
from scipy import sparse

from helpers.sourced_rows import draw_sourced_rows
from untwist import PILBoostClassifier
from untwist.settings import resolve
from untwist.training_data import N_FOLDS, SourceColumns, TrainingData, ValidationTable


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, np.where(X[:, 0] > 0, "yes", "no"), rng.integers(1, 4, size=120).astype(float)


def collect(table, *args, validation=None, weighted=True, sources=None, **settings):
    X, y, weight = table
    parameters = PILBoostClassifier(*args, random_state=0, **settings).get_params(deep=False)
    return TrainingData.collect(resolve(parameters), X, y, weight if weighted else None, validation, sources=sources)


def test_an_automatic_fit_gets_folds_that_set_every_row_aside_once(table):
    data = collect(table)
    assert data.folds.shape == (N_FOLDS, 120)
    assert np.array_equal(data.folds.sum(axis=0), table[2])
    assert data.validation_weight is None
    assert not data.validation_share.any()


def test_validation_rows_take_the_place_of_folds_and_come_last(table):
    X, y, weight = table
    data = collect(table, validation=ValidationTable(X[:20], y[:20], weight[:20]))
    assert data.folds is None
    assert data.validation_was_given
    assert np.array_equal(data.rows.X[120:], X[:20])
    assert np.array_equal(data.validation_weight, np.concatenate([np.zeros(120), weight[:20]]))
    assert np.array_equal(data.weight, np.concatenate([weight, np.zeros(20)]))
    assert data.n_rows == 120


def test_early_stopping_holds_a_share_of_the_rows_out(table):
    data = collect(table, 2.0, n_estimators=5, max_depth=2, early_stopping=True, validation_fraction=0.25)
    assert np.array_equal(data.weight + data.validation_weight, table[2])
    held_out = data.validation_weight.sum() / table[2].sum()
    assert 0.15 < held_out < 0.35
    assert np.array_equal(data.validation_share > 0, data.validation_weight > 0)


def test_effective_rows_are_the_number_of_rows_or_their_weight_whichever_is_larger(table):
    X, y, weight = table
    assert collect(table, 2.0, n_estimators=5, max_depth=2).n_effective_rows == weight.sum()
    assert collect((X, y, weight / 100.0), 2.0, n_estimators=5, max_depth=2).n_effective_rows == 120
    assert collect(table, weighted=False).posterior_floor == 1.0 / 122.0


def test_class_weights_multiply_the_weights_of_rows(table):
    _, y, weight = table
    data = collect(table, class_weight={"yes": 2.0})
    assert np.array_equal(data.rows.weight, np.where(y == "yes", 2.0 * weight, weight))
    assert np.array_equal(data.class_weights, [1.0, 2.0])


def test_directions_of_monotone_columns_turn_with_a_negative_alpha(table):
    assert collect(table, 2.0, monotonic_cst=[1, 0, -1]).growth.monotone == (1, 0, -1)
    assert collect(table, -2.0, monotonic_cst=[1, 0, -1]).growth.monotone == (-1, 0, 1)
    assert collect(table, 2.0, monotonic_cst=[0, 0, 0]).growth.monotone == ()


def test_each_class_beyond_two_has_a_task_and_a_stream_of_its_own(table):
    X, _, weight = table
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    data = collect((X, y, weight), 2.0, n_estimators=5, max_depth=2)
    link = data.settings.make_link(2.0)
    tasks = [data.make_task(link, 1.0, index) for index in range(3)]
    assert [task.positive_class for task in tasks] == [0, 1, 2]
    assert [task.stream for task in tasks] == [0, 1, 2]


def test_incomplete_validation_rows_are_refused(table):
    X, y, weight = table
    with pytest.raises(ValueError, match="X_val and y_val must be given together"):
        collect(table, validation=ValidationTable(X=X))
    with pytest.raises(ValueError, match="sample_weight_val must come with"):
        collect(table, validation=ValidationTable(sample_weight=weight))
    with pytest.raises(ValueError, match="validation rows: X has 2 features"):
        collect(table, validation=ValidationTable(X[:, :2], y))


def test_sources_without_repeated_items_leave_the_folds_as_they_are(table):
    data = collect(table, sources=SourceColumns(["a", "b"] * 60))
    assert np.array_equal(data.folds, collect(table).folds)
    assert data.sources.names.tolist() == ["a", "b"]
    assert np.array_equal(data.sources.index, [0, 1] * 60)
    assert data.sources.n_items == 120
    assert collect(table).sources is None


def test_rows_that_repeat_features_are_items_of_one_fold(table):
    X, y, weight = table
    long = (np.repeat(X, 2, axis=0), np.repeat(y, 2), np.repeat(weight, 2))
    long[1][::2] = np.where(long[1][::2] == "yes", "no", "yes")  # The first label of each item is wrong.
    data = collect(long, sources=SourceColumns(["a", "b"] * 120))
    assert data.sources.n_items == 120
    assert np.array_equal(data.sources.items[::2], data.sources.items[1::2])
    assert np.array_equal(data.folds.sum(axis=0), long[2])
    assert np.array_equal(data.folds[:, ::2] > 0, data.folds[:, 1::2] > 0)
    same_source = collect(long, sources=SourceColumns(["a", "a"] * 120))
    assert same_source.sources.n_items == 240


def test_items_go_by_features_not_by_their_bins():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    data = collect((X, X[:, 0] > 0, None), weighted=False, max_bins=4, sources=SourceColumns(np.arange(2000) % 400))
    assert data.sources.n_items == 2000
    named = collect(
        (X, X[:, 0] > 0, None),
        weighted=False,
        max_bins=4,
        sources=SourceColumns(np.arange(2000) % 2, np.arange(2000) // 2),
    )
    assert named.sources.n_items == 1000
    assert np.array_equal(named.folds[:, ::2] > 0, named.folds[:, 1::2] > 0)


def test_no_other_column_is_taken_for_the_source():
    """Warnings are errors."""
    X, y, source, _ = draw_sourced_rows(200)
    code = np.unique(source, return_inverse=True)[1]
    almost = np.where(np.arange(200) == 7, (code + 1) % 4, code)
    coarse = code == 1  # It does not tell all sources apart.
    fine = code + X[:, 0] / 100  # It tells more than the source.
    collect((np.column_stack([X, almost, coarse, fine, np.zeros(200)]), y, None), sources=SourceColumns(source))
    collect((X, y, None), sources=SourceColumns(np.arange(200)))  # A source and a number of its own for every row.
    collect((np.zeros((200, 1)), y, None), sources=SourceColumns(["me"] * 200))
    with pytest.warns(UserWarning, match="column 1 of X is the source"):
        collect((np.column_stack([X[:, 0], -3.0 * code]), y, None), sources=SourceColumns(source))


def test_the_source_is_found_in_wide_sparse_tables_sorted_by_it():
    source = np.sort(np.arange(600) % 3)
    X = sparse.random_array((600, 3000), density=0.01, rng=np.random.default_rng(0)).tolil()
    X[:, [2999]] = 2.0 * source[:, None]
    y = np.arange(600) % 2
    with pytest.warns(UserWarning, match="column 2999 of X is the source") as warned:
        collect((X.tocsr(), y, None), sources=SourceColumns(source))
    assert len(warned) == 1
