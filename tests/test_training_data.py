"""TrainingData: what is ready before round one."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from helpers.quick import make_classifier, resolve
from helpers.sourced_rows import draw_sourced_rows
from untwist import Growth, PILBoostClassifier, UntwistClassifier, training_data, training_table
from untwist.data.workers import Workers, solo
from untwist.fit_arguments import InitScores, SourceColumns, ValidationTable
from untwist.settings import N_FOLDS
from untwist.training_data import TrainingData


class Pair(Workers):
    """The first of two workers; the other one says the same unless `answer` is given."""

    def __init__(self, **answer):
        super().__init__(0, 2)
        self.answer = answer

    def gather(self, item):
        return [item, self.answer.get("item", item)]

    def sum(self, values):
        return 2 * values


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, np.where(X[:, 0] > 0, "yes", "no"), rng.integers(1, 4, size=120).astype(float)


def collect(table, *args, validation=None, weighted=True, sources=None, **settings):
    X, y, weight = table
    parameters = make_classifier(*args, random_state=0, **settings).get_params(deep=False)
    return TrainingData.collect(resolve(parameters), X, y, weight if weighted else None, validation, sources=sources)


def test_an_automatic_fit_gets_folds_that_set_every_row_aside_once(table):
    data = collect(table)
    assert data.folds.shape == (N_FOLDS, 120)
    assert np.array_equal(data.folds.sum(axis=0), table[2])
    assert data.validation.weight is None
    assert not data.validation.share.any()


def test_validation_rows_take_the_place_of_folds_and_come_last(table):
    X, y, weight = table
    given = {"n_estimators": 5, "max_depth": 2}
    data = collect(table, 2.0, validation=ValidationTable(X[:20], y[:20], weight[:20]), **given)
    assert data.folds is None
    assert data.validation.was_given
    assert np.array_equal(data.rows.X[120:], X[:20])
    assert np.array_equal(data.validation.weight, np.concatenate([np.zeros(120), weight[:20]]))
    assert np.array_equal(data.weight, np.concatenate([weight, np.zeros(20)]))
    assert data.n_rows == 120


def test_early_stopping_holds_a_share_of_the_rows_out(table):
    data = collect(table, 2.0, n_estimators=5, max_depth=2, early_stopping=True)
    assert np.array_equal(data.weight + data.validation.weight, table[2])
    held_out = data.validation.weight.sum() / table[2].sum()
    assert 0.05 < held_out < 0.15
    assert np.array_equal(data.validation.share > 0, data.validation.weight > 0)


def test_effective_rows_are_the_number_of_rows_or_their_weight_whichever_is_larger(table):
    X, y, weight = table
    assert collect(table, 2.0, n_estimators=5, max_depth=2).n_effective_rows == weight.sum()
    assert collect((X, y, weight / 100.0), 2.0, n_estimators=5, max_depth=2).n_effective_rows == 120


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
    settings = resolve(UntwistClassifier(random_state=0).get_params(deep=False))
    settings = replace(settings, engine_options=replace(settings.engine_options, max_bins=4))

    def collect_by(*columns):
        return TrainingData.collect(settings, X, X[:, 0] > 0, sources=SourceColumns(*columns))

    assert collect_by(np.arange(2000) % 400).sources.n_items == 2000
    named = collect_by(np.arange(2000) % 2, np.arange(2000) // 2)
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
    collect((np.column_stack([X[:, 0], np.zeros(200)]), y, None), sources=SourceColumns(["me"] * 200))
    once = np.append(code[:199], 9)  # A source of a single row is one like any other.
    with pytest.warns(UserWarning, match="column 1 of X is the source"):
        collect((np.column_stack([X[:, 0], once]), y, None), sources=SourceColumns(once))
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


# ---- rules for columns ----


def find_interactions(table, given):
    return collect(table, 2.0, n_estimators=2, max_depth=2, interaction_cst=given).growth.interactions


def test_groups_of_columns_are_found_by_position_or_name(table):
    X, y, weight = table
    assert find_interactions(table, None) == ()
    assert find_interactions(table, "no_interactions") == ((0,), (1,), (2,))
    assert find_interactions(table, "pairwise") == ((0, 1), (0, 2), (1, 2))
    assert find_interactions((X[:, :1], y, weight), "pairwise") == ()
    assert find_interactions(table, [{2, 0}]) == ((0, 2), (1,))
    assert find_interactions(table, [[1, 0], (np.int64(2),)]) == ((0, 1), (2,))
    named = (pd.DataFrame(X, columns=["a", "b", "c"]), y, weight)
    assert find_interactions(named, [["c", 0]]) == ((0, 2), (1,))
    for odd in ([[3]], [[-1]], [[True]], [["d"]], [[0.0]]):
        with pytest.raises(ValueError, match="by position from 0 to 2 or by name, got"):
            find_interactions(named, odd)
    for odd in ("all", 3, {0: 1}, ["ab"], [b"a"], [0]):
        with pytest.raises(ValueError, match="interaction_cst must be None"):
            find_interactions(table, odd)


def test_columns_are_drawn_by_weights_that_are_numbers(table):
    def find(given):
        return collect(table, 2.0, n_estimators=2, max_depth=2, feature_weights=given).growth.feature_weights

    assert find(None) == ()
    assert find([0, 0.5, 2]) == (0.0, 0.5, 2.0)
    for odd, message in [
        ([1, 1], "must be 3 numbers, one per column"),
        ([[1, 1, 1]], "must be 3 numbers, one per column"),
        ([0, 0, 0], "must be finite and non-negative, not all 0"),
        ([1, -1, 1], "must be finite and non-negative, not all 0"),
        ([1, np.inf, 1], "must be finite and non-negative, not all 0"),
        ([1, np.nan, 1], "must be finite and non-negative, not all 0"),
        (np.ones(3) * 1j, "feature_weights must be numbers, got"),
    ]:
        with pytest.raises(ValueError, match=message):
            find(odd)


def test_directions_are_for_numbers_of_two_classes(table):
    X, y, weight = table
    with pytest.raises(ValueError, match="where there are more than two classes"):
        collect((X, np.digitize(X[:, 0], [-0.5, 0.5]), weight), 2.0, monotonic_cst=[1, 0, 0])
    categories = (np.column_stack([X[:, :2], np.arange(120) % 3]), y, weight)
    assert collect(categories, 2.0, monotonic_cst=[1, 0, 0], categorical_features=[2]).growth.monotone == (1, 0, 0)
    with pytest.raises(ValueError, match="must be 0 for column 2, which holds categories"):
        collect(categories, 2.0, monotonic_cst=[1, 0, 1], categorical_features=[2])


# ---- scores to begin at ----


def read_scores(training=None, validation=None, n_boosters=1, n_validation=0, workers=solo):
    return InitScores(training, validation).read(3, n_validation, n_boosters, workers)


def test_scores_to_begin_at_are_a_column_for_each_booster():
    assert read_scores() is None
    assert read_scores([1, 2, 3]).tolist() == [[1.0], [2.0], [3.0]]
    assert read_scores([[1], [2], [3]]).tolist() == [[1.0], [2.0], [3.0]]
    assert read_scores([[1, 2], [3, 4], [5, 6]], n_boosters=2).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert read_scores([1, 2, 3], [4, 5], n_validation=2).tolist() == [[1.0], [2.0], [3.0], [4.0], [5.0]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"validation": [1]}, "init_score_val must come with init_score"),
        ({"training": [1, 2, 3], "validation": [4]}, "init_score_val must be given together with init_score and X_val"),
        ({"training": [1, 2, 3], "n_validation": 1}, "init_score_val must be given together with init_score and X_val"),
        ({"training": [1, 2]}, r"init_score must have the shape \(3,\), got \(2,\)"),
        ({"training": [1, 2, 3], "n_boosters": 2}, r"init_score must have the shape \(3, 2\), got \(3,\)"),
        ({"training": [[1], [2], [3]], "n_boosters": 2}, r"must have the shape \(3, 2\), got \(3, 1\)"),
        ({"training": [[1, 2]] * 3}, r"init_score must have the shape \(3,\), got \(3, 2\)"),
        ({"training": np.array([1, 2, 3]) + 1j}, r"init_score must be numbers, got array\(\[1.\+1.j"),
        ({"training": [1, np.inf, 3]}, "init_score must be finite, got inf"),
        ({"training": [1, 2, 3], "validation": [np.nan], "n_validation": 1}, "init_score_val must be finite, got nan"),
        ({"training": [1, 2, 3], "workers": Pair()}, "init_score must be None in a distributed fit"),
        ({"workers": Pair(item=True)}, "init_score must be None in a distributed fit"),
    ],
)
def test_scores_to_begin_at_that_cannot_be_meant_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        read_scores(**given)


def test_given_scores_take_the_place_of_the_prior(table):
    X, y, _ = table
    scores = np.linspace(-1.0, 1.0, 120)
    for alpha in (2.0, -2.0):
        settings = resolve(PILBoostClassifier(alpha=alpha, growth=Growth(init="prior")).get_params(deep=False))
        data = TrainingData.collect(settings, X, y, init_scores=InitScores(scores))
        link = settings.make_link(alpha)
        assert data.find_starts(link, data.weight) == [0.0]
        assert replace(data, init_scores=None).find_starts(link, data.weight) != [0.0]


# ---- several workers ----


def check_sources(workers=solo, columns=None, **settings):
    settings = SimpleNamespace(**{"estimates_noise": True, "cv": 5} | settings)
    SourceColumns(**columns or {"source": ["a"]}).check_allowed(settings, workers)


def test_sources_go_with_settings_that_estimate_noise_on_one_machine():
    check_sources()
    check_sources(columns={"groups": [1]}, estimates_noise=False, workers=Pair())
    check_sources(columns={"groups": None}, cv=object())
    for given, message in [
        ({"columns": {"item": [1]}}, "item must come with source"),
        ({"workers": Pair()}, "source and item must be None in a distributed fit"),
        ({"workers": Pair(item=True), "columns": {"groups": None}}, "source and item must be None in a distributed"),
        ({"workers": Pair(item=False), "columns": {"groups": [1]}}, "groups must be given to all workers"),
        ({"workers": Pair(), "columns": {"groups": [1]}, "cv": object()}, "cv must be None or a number of folds"),
        ({"estimates_noise": False}, "source must be None where no noise is estimated, .* leave noise=.auto."),
    ]:
        with pytest.raises(ValueError, match=message):
            check_sources(**given)


def check_review(has_review=True, workers=solo, source=None, untwists_posteriors=True):
    settings = SimpleNamespace(untwists_posteriors=untwists_posteriors)
    training_data.check_review_allowed(has_review, settings, SourceColumns(source), workers)


def test_reviewed_rows_go_with_settings_that_estimate_noise_on_one_machine():
    check_review()
    check_review(has_review=False, source=[1], untwists_posteriors=False, workers=Pair())
    for given, message in [
        ({"workers": Pair()}, "reviewed must be None in a distributed fit"),
        ({"workers": Pair(item=True), "has_review": False}, "reviewed must be None in a distributed fit"),
        ({"source": [1]}, "reviewed must be None with source"),
        ({"untwists_posteriors": False}, "reviewed must be None with noise=None, .* leave noise=.auto."),
    ]:
        with pytest.raises(ValueError, match=message):
            check_review(**given)


def test_workers_must_have_the_same_columns():
    X = np.zeros((4, 2))
    training_table._agree_on_columns(solo, ["a"], X)
    training_table._agree_on_columns(Pair(), ["a", "b"], X)
    training_table._agree_on_columns(Pair(), [], X)
    for other in ((["b", "a"], False), (["a", "b"], True)):
        with pytest.raises(ValueError, match="the workers must have the same columns"):
            training_table._agree_on_columns(Differing(other), ["a", "b"], X)
    with pytest.raises(ValueError, match="Batches are for one worker"):
        training_table._agree_on_columns(Pair(item=True), ["a"], X)


class Differing(Pair):
    """The other worker has other columns."""

    def __init__(self, columns):
        super().__init__()
        self.columns = columns

    def gather(self, item):
        return [item, self.columns if isinstance(item, tuple) else item]


def test_effective_rows_are_counted_over_all_workers():
    weight = np.array([0.0, 0.5, 0.5, 0.25])
    assert training_data._count_effective_rows(weight, solo) == 3.0
    assert training_data._count_effective_rows(weight, Pair()) == 6.0
    assert training_data._count_effective_rows(8 * weight, solo) == 10.0
    assert training_data._count_effective_rows(np.array([2.0**60]), solo) == 2.0**53


def test_weights_of_one_worker_may_all_be_0():
    X, zeros = np.zeros((3, 1)), np.zeros(3)
    assert training_table._check_weights(zeros, X, Pair(), ensure_non_negative=True).tolist() == [0.0] * 3
    assert training_table._check_weights(None, X, Pair()).tolist() == [1.0] * 3
    assert training_table._check_weights([1, 2, 0], X, Pair()).tolist() == [1.0, 2.0, 0.0]
    with pytest.raises(ValueError, match="Negative values"):
        training_table._check_weights([1.0, -1.0, 0.0], X, solo, ensure_non_negative=True)
    with pytest.raises(ValueError, match="shape"):
        training_table._check_weights(np.zeros(4), X, Pair())


# ---- rows, weights and folds ----


def test_several_workers_code_no_column_by_labels():
    schema = SimpleNamespace(categories={0: range(300), 2: range(2), 4: range(40)})
    assert training_table._list_columns_to_code(schema, solo) == [0, 4]
    assert training_table._list_columns_to_code(schema, Workers(0, 2)) == []
    limit = training_table.MANY_CATEGORIES
    at_the_limit = SimpleNamespace(categories={0: range(limit), 1: range(limit + 1)})
    assert training_table._list_columns_to_code(at_the_limit, solo) == [1]


def test_rows_are_refused_that_nothing_can_be_told_of(table):
    source, folds = np.arange(120) % 3, [(np.arange(60), np.arange(60, 120))]
    in_halves = [*folds, (np.arange(60, 120), np.arange(60))]
    across = np.arange(120) % 60
    given = {"n_estimators": 2, "max_depth": 2}
    for sources, settings, message in [
        (SourceColumns(source), {"alpha": 2.0, **given}, "source must be None where no noise is estimated"),
        (SourceColumns(groups=across), {"cv": in_halves}, "cv trains on some rows of group"),
        (SourceColumns(source, across), {"cv": in_halves}, "cv trains on some labels of the item"),
        (SourceColumns(source), {"cv": folds}, "source must be None with a cv that does not judge every row"),
        (SourceColumns([None] * 120), {}, "source must be known for some of the rows with a weight"),
    ]:
        with pytest.raises(ValueError, match=message):
            collect(table, sources=sources, **settings)
    collect(table, sources=SourceColumns(groups=np.arange(120)), cv=in_halves)


def test_reviewed_rows_and_folds_that_judge_some_rows_only_are_refused_together(table):
    X, y, weight = table
    half = resolve(UntwistClassifier(cv=[(np.arange(60), np.arange(60, 120))]).get_params(deep=False))
    TrainingData.collect(half, X, y, weight)
    with pytest.raises(ValueError, match="reviewed must be None with a cv that does not judge every row"):
        TrainingData.collect(half, X, y, weight, has_review=True)
    plain = resolve(UntwistClassifier().get_params(deep=False))
    with pytest.raises(ValueError, match="reviewed must be None with source"):
        TrainingData.collect(plain, X, y, weight, sources=SourceColumns(y), has_review=True)


def test_every_fold_of_groups_or_of_ones_own_must_train_on_all_classes(table):
    X, y, weight = table
    by_label = np.where(y == "yes", 0, 1 + np.arange(120) % 3)  # One group has all of a class.
    with pytest.raises(ValueError, match="class 'yes' lies in too few groups"):
        collect(table, sources=SourceColumns(groups=by_label))
    with pytest.raises(ValueError, match="fold 0, trains on no row of class 'yes'"):
        collect(table, cv=[(np.flatnonzero(y == "no"), np.flatnonzero(y == "yes"))])
    collect(table)
    rare = (X, np.where(np.arange(120) == 7, "yes", "no"), weight)
    collect(rare)  # Of rows without groups nobody can say what else could be done.


def go_on(table, previous, **settings):
    parameters = make_classifier(alpha=2.0, n_estimators=2, max_depth=2, random_state=0, **settings)
    X, y, weight = table
    return TrainingData.collect(resolve(parameters.get_params(deep=False)), X, y, weight, previous=previous)


def test_a_warm_start_takes_rows_like_those_of_the_model_before(table):
    X, y, weight = table
    first = PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=2).fit(X, y).model_
    data = go_on((X[:50], y[:50], weight[:50]), first)
    assert data.encoder is first.encoder
    np.testing.assert_array_equal(data.classes, first.classes)
    np.testing.assert_array_equal(data.rows.labels, (y[:50] == "yes").astype(int))
    for other, message in [
        ((X, y[:119], None), "inconsistent numbers of samples"),
        ((X[:, :2], y, weight), "2 features"),
        ((X, np.where(y == "yes", "perhaps", "no"), weight), "perhaps"),
    ]:
        with pytest.raises(ValueError, match=message):
            go_on(other, first)


def test_a_warm_start_of_several_classes_takes_no_column_of_many_categories(coded):
    X, y, weight = coded
    settings = {"categorical_features": [1], "n_estimators": 2, "max_depth": 2}
    for n_classes in (2, 3):
        labels = y if n_classes == 2 else np.arange(600) % 3
        first = make_classifier(alpha=2.0, **settings).fit(X, labels).model_
        if n_classes == 2:
            assert go_on((X, labels, weight), first, categorical_features=[1]).coding is not None
            continue
        with pytest.raises(ValueError, match="a warm start with several classes takes no column of more than"):
            go_on((X, labels, weight), first, categorical_features=[1])


@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_source_may_be_a_column_of_two_values(is_sparse):
    rng = np.random.default_rng(0)
    index = np.arange(40) % 2
    X = np.column_stack([rng.normal(size=40), 3.0 * index, index[rng.permutation(40)]])
    X = sparse.csr_array(X) if is_sparse else X
    assert training_table._list_source_columns(X, index) == [1]
    assert training_table._list_source_columns(X, np.zeros(40, int)) == []
    rare = np.where(np.arange(40) % 4 == 0, 1, 0)  # The column is 0 for most of the rows.
    by_name = np.column_stack([rng.normal(size=40), rare])
    assert training_table._list_source_columns(sparse.csr_array(by_name) if is_sparse else by_name, rare) == [1]
    assert training_table._list_source_columns(X, np.arange(40)) == []  # Any row may have a source of its own.


def test_names_of_columns_are_different():
    frame = pd.DataFrame(np.zeros((2, 3)), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match=r"got \['a'\] more than once"):
        training_table._read_column_names(frame)
    assert training_table._read_column_names(frame.iloc[:, :2]) == ["a", "b"]
    assert training_table._read_column_names(np.zeros((2, 2))) == []


def test_validation_rows_are_stacked_in_the_kind_of_the_training_rows():
    X, more = np.arange(6.0).reshape(3, 2), np.ones((1, 2))
    for one in (X, sparse.csr_array(X)):
        for other in (more, sparse.csr_array(more)):
            both = training_table._stack_tables(one, other)
            assert sparse.issparse(both) == sparse.issparse(one)
            both = both.toarray() if sparse.issparse(both) else both
            np.testing.assert_array_equal(both, np.vstack([X, more]))


@pytest.mark.parametrize(
    ("counts", "weight", "share", "enough"),
    [
        ([10, 10], 1.0, 0.1, True),
        ([10, 9], 1.0, 0.1, False),
        ([10, 9], 1.0, 0.9, False),
        ([4, 4], 1.0, 0.75, True),
        ([4, 3], 1.0, 0.75, False),
        ([19, 1], 1.0, 0.1, False),
        ([18, 2], 1.0, 0.1, True),
        ([18, 2], 0.1, 0.1, True),  # A row counts as one at least.
        ([3, 3], 5.0, 0.1, True),  # Weights count copies.
    ],
)
def test_two_rows_at_least_are_held_out_and_stay(monkeypatch, counts, weight, share, enough):
    n = sum(counts)
    X, y = np.arange(float(n)).reshape(-1, 1), np.repeat([0, 1], counts)
    monkeypatch.setattr(training_data, "VALIDATION_FRACTION", share)
    monkeypatch.setattr(training_table, "VALIDATION_FRACTION", share)
    settings = {"n_estimators": 2, "max_depth": 1, "early_stopping": True}
    if enough:
        assert collect((X, y, np.full(n, weight)), 2.0, **settings).validation.share.any()
        return
    with pytest.raises(ValueError, match=f"cannot hold out {share} of {n} rows, {min(counts)} in the smallest class"):
        collect((X, y, np.full(n, weight)), 2.0, **settings)


def test_a_fold_trains_on_what_it_does_not_set_aside(table):
    data = collect(table)
    for fold in range(N_FOLDS):
        np.testing.assert_array_equal(data.training_weight(fold), table[2] - data.folds[fold])
        assert data.dataset_of(fold) is data.datasets[0]
    whole = data.join_folds()
    assert len(whole.folds) == 1
    np.testing.assert_array_equal(whole.training_weight(0), table[2])
    np.testing.assert_array_equal(whole.folds[0], table[2])
    own = collect(table, cv=[(np.arange(60), np.arange(60, 90))])
    np.testing.assert_array_equal(own.training_weight(0), np.where(np.arange(120) < 60, table[2], 0.0))
    np.testing.assert_array_equal(own.folds, [np.where((np.arange(120) // 30) == 2, table[2], 0.0)])


def test_class_weights_are_taken_out_again(table):
    _, y, weight = table
    data = collect(table, class_weight={"yes": 4.0, "no": 0.5})
    np.testing.assert_array_equal(data.unweigh_classes(), weight)
    X = table[0]
    three = (X, np.digitize(X[:, 0], [-0.5, 0.5]), weight)
    absent = collect(three, class_weight={0: 0.0, 1: 2.0, 2: 1.0})
    np.testing.assert_array_equal(absent.unweigh_classes(), np.where(three[1] == 0, 0.0, weight))
    assert (y == "yes").any()


def test_other_labels_have_the_weight_of_their_class(table):
    _, y, weight = table
    data = collect(table, class_weight={"yes": 4.0, "no": 0.5})
    labels = data.rows.labels.copy()
    labels[:10] = 1 - labels[:10]
    worth = np.where(np.arange(120) % 2, 3.0, 1.0)
    again = data.relabel(labels, worth)
    expected = weight * worth * np.where(labels == 1, 4.0, 0.5)
    np.testing.assert_allclose(again.rows.weight, expected)
    np.testing.assert_allclose(again.weight, expected)
    np.testing.assert_allclose(again.folds.sum(axis=0), expected)
    np.testing.assert_array_equal(again.folds > 0, data.folds > 0)
    np.testing.assert_array_equal(again.rows.labels, labels)
    assert len(again.datasets) == 1
    assert (y == "no").any()


def test_starts_are_those_of_the_weight_that_trains(table):
    data = collect(table, 2.0, n_estimators=2, max_depth=2, init="prior")
    link = data.settings.make_link(2.0)
    only_yes = np.where(data.rows.labels == 1, 3.0, 1.0)
    (start,) = data.find_starts(link, only_yes)
    share = only_yes[data.rows.labels == 1].sum() / only_yes.sum()
    assert float(link.inverse(start)) == pytest.approx(share)
    zero = collect(table, 2.0, n_estimators=2, max_depth=2, init="zero")
    assert zero.find_starts(link, only_yes) == [0.0]
    assert (data.make_task(link, 0.5, 0).begins_at_shares, zero.make_task(link, 0.5, 0).begins_at_shares) == (
        True,
        False,
    )
    task = data.make_task(link, 0.5, 0)
    assert (task.step_size, task.by_edge, task.positive_class) == (0.5, data.settings.by_edge, 1)
    assert (task.weight is data.weight, task.validation_weight, task.posterior_floor) == (
        True,
        None,
        1 / (2 + table[2].sum()),
    )


def test_two_classes_must_weigh_something(table):
    X, y, weight = table
    for changes, settings in [
        (np.where(y == "yes", weight, 0.0), {}),
        (weight, {"class_weight": {"no": 0.0, "yes": 1.0}}),
    ]:
        with pytest.raises(ValueError, match="two classes among the rows with positive sample_weight"):
            collect((X, y, changes), **settings)


def test_validation_rows_have_labels_weights_and_columns_that_fit(table):
    X, y, weight = table
    for validation, message in [
        (ValidationTable(X[:5], y[:4]), "X_val and y_val must have as many rows, got 5 and 4"),
        (ValidationTable(X[:5], y[:5], -weight[:5]), "sample_weight_val must be finite and non-negative, not all 0"),
        (ValidationTable(X[:5], y[:5], 0 * weight[:5]), "."),
        (ValidationTable(X[:5], ["maybe"] * 5), "validation rows: "),
    ]:
        with pytest.raises(ValueError, match=message):
            collect(table, validation=validation)


# ---- columns of many categories ----


@pytest.fixture(scope="module")
def coded():
    """Rows with a column of 300 categories, one of 20, and one of numbers."""
    rng = np.random.default_rng(1)
    many, some = rng.integers(0, 300, 600), rng.integers(0, 20, 600)
    many[:300] = np.arange(300)
    X = np.column_stack([many, some, rng.normal(size=600)]).astype(float)
    return X, (some % 2 + rng.normal(size=600) > 0.5).astype(int), np.ones(600)


def test_columns_of_many_categories_are_coded_anew_for_each_fold(coded):
    data = collect(coded, categorical_features=[0, 1])
    assert dict(data.coding.n_categories) == {0: 300, 1: 20}
    assert len(data.datasets) == len(data.fold_numbers) == N_FOLDS
    positions = np.array([3, 500])
    for fold in range(N_FOLDS):
        numbers = data.coding.number_rows(data.training_weight(fold))
        np.testing.assert_array_equal(data.fold_numbers[fold], numbers)
        shown = data.show_to_fold(fold, positions, data.rows.X[positions])
        np.testing.assert_array_equal(shown[:, :2], numbers[positions])
        np.testing.assert_array_equal(shown[:, 2], coded[0][positions, 2])
        assert data.dataset_of(fold) is data.datasets[fold]
    np.testing.assert_array_equal(data.rows.X[:, :2], data.coding.number_rows(data.weight))
    np.testing.assert_array_equal(data.table[:, 1], coded[0][:, 1])


def test_what_trees_take_as_sets_may_be_split_by_them(coded):
    data = collect(coded, categorical_features=[0, 1])
    by_sets = data.split_by_sets()
    assert dict(by_sets.coding.n_categories) == {0: 300}
    assert list(by_sets.encoder.schema.numbers) == [0]
    assert dict(by_sets.rows.n_categories) == {1: 20}
    np.testing.assert_array_equal(by_sets.rows.X[:, 1], coded[0][:, 1])
    assert len(by_sets.datasets) == N_FOLDS
    some = collect(coded, categorical_features=[1]).split_by_sets()
    assert (some.coding, some.fold_numbers, len(some.datasets)) == (None, (), 1)
    assert dict(some.rows.n_categories) == {1: 20}
    assert collect(coded, categorical_features=[0]).split_by_sets() is None  # They are too many for sets.
    assert collect(coded).split_by_sets() is None
    given = collect(coded, 2.0, n_estimators=2, max_depth=2, categorical_features=[1])
    assert given.coding is not None
    assert given.split_by_sets() is None  # There are no folds to tell by.


def test_other_labels_and_joined_folds_keep_the_numbers_of_categories(coded):
    data = collect(coded, categorical_features=[1])
    again = data.relabel(1 - data.rows.labels, np.ones(600))
    assert len(again.datasets) == N_FOLDS
    assert again.fold_numbers is data.fold_numbers
    np.testing.assert_array_equal(again.rows.X, data.rows.X)
    whole = data.join_folds()
    assert (len(whole.datasets), whole.fold_numbers) == (1, ())
