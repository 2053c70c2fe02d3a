"""How trees grow: the rules of leaves, draws of rows and columns, and what must not change a tree."""

import math
import threading

import numpy as np
import pytest

from helpers.small_fits import any_settings, assert_same_forests, draw_many_rows, draw_sample, list_forests, make_model
from untwist import training_table


def replay_rounds(fitted, X, signs, weight):
    """For every round the boosting weight of each row, its leaf, and what its leaf adds to its score."""
    before = np.full(len(signs), fitted.start_)
    for t, (after, leaves) in enumerate(zip(fitted.staged_decision_function(X), fitted.apply(X).T, strict=True)):
        yield t, fitted.link_.weights(signs * before) * weight, leaves, after - before
        before = after


def sum_by_leaf(leaves, amount):
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
    X, y = draw_sample(missing=0.1)
    signs, rng = 2.0 * y - 1, np.random.default_rng(3)
    weight = rng.integers(0, 5, len(y)) / 2.0 if weighted else np.ones(len(y))
    free, fitted = (make_model(12, **one).fit(X, y, sample_weight=weight) for one in ({}, settings))
    here = weight > 0
    grown = 0
    for t, share, leaves, added in replay_rounds(fitted, X, signs, weight):
        G, W = sum_by_leaf(leaves[here], (share * signs)[here]), sum_by_leaf(leaves[here], share[here])
        values = [added[leaves == leaf][0] for leaf in np.unique(leaves[here])]
        np.testing.assert_allclose(
            values, fitted.leverages_[t] * G / (W + settings.get("l2", 0.0)), rtol=1e-4, atol=1e-6
        )
        count = len(W)
        grown = max(grown, count)
        assert count <= min(settings.get("max_leaf_nodes", 99), 2 ** (settings.get("max_depth", 3) or 99))
        rows = sum_by_leaf(leaves[here], (weight * (share > 0))[here])
        if count > 1:
            assert rows.min() >= settings.get("min_samples_leaf", 0) * (1 - 1e-3)
            assert W.min() >= settings.get("min_weight_fraction_leaf", 0.0) * W.sum() * (1 - 1e-5)
    assert grown > 2
    assert np.abs(free.decision_function(X) - fitted.decision_function(X)).max() > 1e-3  # The rule did something.


@any_settings
def test_the_order_of_the_rows_does_not_matter(settings):
    X, y = draw_sample(missing=0.1)
    order = np.random.default_rng(4).permutation(len(y))
    one, other = make_model(12, **settings).fit(X, y), make_model(12, **settings).fit(X[order], y[order])
    assert_same_forests(one, other, X)
    assert sorted(order[other.validation_rows_]) == one.validation_rows_.tolist()
    assert str(one.evals_result_) == str(other.evals_result_)


@any_settings
def test_the_number_of_threads_does_not_matter(settings):
    X, y = draw_sample(4500, missing=0.02)
    X = np.column_stack([X, X + np.random.default_rng(0).normal(size=X.shape), X[:, ::-1] ** 2])
    assert_same_forests(make_model(3, n_jobs=1, **settings).fit(X, y), make_model(3, n_jobs=3, **settings).fit(X, y), X)


@any_settings
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_constant_column_changes_nothing(settings, place):
    X, y = draw_sample(missing=0.1)
    plain = make_model(**settings).fit(X, y)
    for value in (7.5, np.nan):
        padded = np.insert(X, place, value, axis=1)
        fitted = make_model(**settings).fit(padded, y)
        np.testing.assert_array_equal(fitted.decision_function(padded), plain.decision_function(X))
        np.testing.assert_array_equal(fitted.validation_rows_, plain.validation_rows_)
        assert np.delete(fitted.importances("splits"), place).tolist() == plain.importances("splits").tolist()
    table = np.insert(X.astype(object), place, "same", axis=1)
    fitted = make_model(**settings).fit(table, y)
    np.testing.assert_array_equal(fitted.decision_function(table), plain.decision_function(X))


def test_a_constant_column_changes_nothing_in_many_rows():
    X, y = draw_many_rows(101_000)
    plain, padded = make_model(1).fit(X, y), make_model(1).fit(np.column_stack([np.ones(len(y)), X]), y)
    np.testing.assert_array_equal(plain.forest_.threshold, padded.forest_.threshold)


@pytest.mark.parametrize(
    "settings",
    [{"subsample": 0.5}, {"max_features": 0.5}, {"extra_trees": True}, {"early_stopping": True}],
    ids=str,
)
def test_a_draw_depends_on_the_seed_alone(settings):
    X, y = draw_sample()
    fits = [make_model(8, random_state=seed, **settings).fit(X, y).decision_function(X) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert (fits[0] != fits[2]).any()
    given = [make_model(8, random_state=np.random.RandomState(7), **settings).fit(X, y) for _ in range(2)]
    assert_same_forests(*given, X)


def test_without_a_draw_the_seed_does_not_matter():
    X, y = draw_sample()
    assert_same_forests(make_model(random_state=1).fit(X, y), make_model(random_state=2).fit(X, y), X)


def test_a_subsample_is_about_its_share_and_new_every_round():
    X, y = draw_sample(3000)
    fitted = make_model(5, subsample=0.3, max_depth=1).fit(X, y)
    whole = make_model(1, max_depth=1).fit(X, y)
    assert fitted.edges_[0] == pytest.approx(whole.edges_[0], rel=0.3)
    assert len({tuple(fitted.forest_.keep_first(t + 1).value[-2:]) for t in range(5)}) == 5
    few = make_model(40, max_features=0.25, max_depth=2).fit(X, y)
    for t in range(40):  # Each tree uses one column of four.
        nodes = slice(*few.forest_.offset[t : t + 2])
        assert len(set(few.forest_.feature[nodes].tolist()) - {-1}) <= 1
    assert set(few.forest_.feature.tolist()) == {-1, 0, 1, 2, 3}


@pytest.mark.parametrize("classes", [2, 3])
def test_drawn_splits_do_not_depend_on_the_order_in_which_nodes_grow(classes):
    X, y = draw_sample(500, classes, missing=0.1)
    settings = {"max_depth": 4, "learning_rate": 0.3, "extra_trees": True}
    by_level = make_model(**settings).fit(X, y)
    best_first = make_model(max_leaf_nodes=99, **settings).fit(X, y)
    np.testing.assert_array_equal(by_level.decision_function(X), best_first.decision_function(X))


def test_drawn_splits_lie_anywhere_in_the_rows_of_a_node():
    """Of the only column any split is made that is drawn, wherever it lies."""
    x = np.arange(1000.0)[:, np.newaxis]
    y = np.random.default_rng(0).integers(0, 2, 1000)
    trees = make_model(60, extra_trees=True, max_depth=1, max_bins=250).fit(x, y).forest_
    cuts = trees.threshold[trees.feature >= 0]
    assert len(cuts) > 40
    assert 350 < np.mean(cuts) < 650
    assert len(np.unique(cuts)) > 35


def test_fits_side_by_side_in_threads():
    X, y = draw_sample(1000, classes=3)
    X, results = np.tile(X, 16), [None] * 3

    def fit(place):
        results[place] = make_model(4, n_jobs=2, subsample=0.5).fit(X, y)

    threads = [threading.Thread(target=fit, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = make_model(4, n_jobs=1, subsample=0.5).fit(X, y)
    for result in results:
        assert_same_forests(result, alone)


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
def test_leaves_are_where_a_walk_ends(classes, n, monkeypatch):
    monkeypatch.setattr(
        training_table, "MANY_CATEGORIES", 254
    )  # So many categories are split by sets only if folds say so.
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 2)), rng.integers(0, 90, 300)])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.digitize(np.nan_to_num(X[:, 0]), [0.0, 1.0][: classes - 1]) + np.nan_to_num(X[:, 2]).astype(int)) % classes
    fitted = make_model(max_depth=5, categorical_features=[2]).fit(X, y)
    known = sorted(set(X[~np.isnan(X[:, 2]), 2]))
    new = X[:n].copy()
    new[::5, 2] = 1000.0  # This category was never seen.
    new[::4, 0] = np.nan
    numbers = new.copy()
    numbers[:, 2] = [known.index(value) if value in known else math.nan for value in new[:, 2]]
    leaves = fitted.apply(new).reshape(n, fitted.n_iter_, -1)
    scores = np.tile(np.atleast_1d(fitted.start_).astype(float), (n, 1))
    for k, forest in enumerate(list_forests(fitted)):
        for t in range(len(forest)):
            expected = [walk(forest, t, row) for row in numbers]
            np.testing.assert_array_equal(leaves[:, t, k], expected)
            scores[:, k] += forest.value[forest.offset[t] + np.array(expected)]
    np.testing.assert_allclose(fitted.decision_function(new).reshape(n, -1), scores, rtol=1e-13)
    assert any((forest.set >= 0).any() for forest in list_forests(fitted))
