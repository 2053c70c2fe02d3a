"""Randomised trees: equal to their naive twin, split by split, and to themselves on any threads and order of rows."""

import math

import numpy as np
import pytest

from helpers import randomised_twin
from helpers.engines import make_dataset
from untwist import _core
from untwist.boosting.engines.compiled import CompiledEngine
from untwist.boosting.engines.engine import Task, TreeGrowth
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss


def draw_sample(n, n_classes, seed=0, *, columns=5, values=None, missing=0.0, categories=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    if values is not None:
        X = np.round(X * values / 4)
    for column, count in (categories or {}).items():
        X[:, column] = rng.integers(0, count, n)
    labels = np.floor(n_classes * rng.random(n) ** 2 / 2 + n_classes / 2 / (1 + np.exp(X[:, 0] - X[:, -1]))).astype(int)
    labels = np.minimum(labels, n_classes - 1)
    labels[:n_classes] = np.arange(n_classes)[:n]
    X[rng.random(X.shape) < missing] = np.nan
    return X, labels


def grow(X, labels, n_trees=3, *, min_samples_leaf=3, max_features=0.6, seed=5, trained=None, first_tree=0, **data):
    dataset = make_dataset(X, labels, data.pop("weight", None), **({"n_jobs": 1} | data))
    task = Task(ClippedLink(AlphaLoss(2.0)), 1.0, TreeGrowth(seed=seed), weight=trained)
    return CompiledEngine().grow_randomised(dataset, task, n_trees, min_samples_leaf, max_features, first_tree)


def assert_same_trees(one, other):
    for name in ("edge", "leverage", "offset", "feature", "left", "threshold", "missing_left", "value", "gain", "set"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.codes, other.codes)


def assert_equal_to_the_twin(X, labels, forest, number, tree, **rules):
    """Compare a tree of the forest with the twin's tree of that number."""
    nodes, thresholds = randomised_twin.grow(X, labels, number, **rules)
    first = int(forest.offset[tree])
    assert int(forest.offset[tree + 1]) - first == len(nodes)
    for at, node in enumerate(nodes, first):
        assert forest.feature[at] == node.feature
        if node.feature < 0:
            # A logarithm of a quotient is a difference of logarithms here, each of which is rounded.
            expected = node.log_shares if len(node.log_shares) != 2 else node.log_shares[1] - node.log_shares[0]
            np.testing.assert_allclose(forest.value[at] * len(forest), expected, rtol=1e-13, atol=1e-13)
            continue
        assert not forest.value[at].any()
        assert forest.left[at] == node.left
        assert forest.gain[at] == pytest.approx(node.gain, abs=1e-12)
        assert bool(forest.missing_left[at]) == node.sides[-1]
        if forest.set[at] >= 0:
            assert forest.categories_going_left(at) == [code for code, left in enumerate(node.sides) if left]
        else:
            last = sum(node.sides[:-1]) - 1
            cuts = [*thresholds[node.feature], math.inf]
            assert forest.threshold[at] == cuts[last]


CASES = [
    {},
    {"n": 4},
    {"n": 700, "min_samples_leaf": 5},  # Nodes of more than a word of rows.
    {"n_classes": 2},
    {"n_classes": 2, "trained": "copies", "missing": 0.1, "categories": {1: 6}},
    {"n_classes": 2, "trained": "real", "n": 300, "min_samples_leaf": 1},
    {"n_classes": 40, "n": 300, "min_samples_leaf": 2},
    {"min_samples_leaf": 1, "max_features": 0.1},
    {"min_samples_leaf": 1, "max_features": 1.0, "values": 2},
    {"min_samples_leaf": 60},
    {"min_samples_leaf": 0, "values": 3, "missing": 0.2},
    {"missing": 0.3},
    {"missing": 0.9, "min_samples_leaf": 1, "max_features": 1.0},
    {"max_bins": 4, "missing": 0.1},
    {"categories": {0: 5, 3: 2}},
    {"categories": {0: 200, 1: 3, 2: 2}, "missing": 0.2, "min_samples_leaf": 1, "n": 400},
    {"trained": "some"},
    {"trained": "copies", "missing": 0.1, "categories": {1: 6}},
    {"trained": "copies", "weighted": True, "n": 500},
    {"trained": "real", "min_samples_leaf": 2, "n": 300},
    {"columns": 90, "max_features": 0.02, "values": 1, "min_samples_leaf": 1},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.thinned(3)
def test_equals_the_naive_twin(case):
    case = {"n": 120, "n_classes": 4, "min_samples_leaf": 3, "max_features": 0.6} | case
    drawn = {
        name: case[name] for name in ("n", "n_classes", "columns", "values", "missing", "categories") if name in case
    }
    X, labels = draw_sample(**drawn, seed=3)
    rng = np.random.default_rng(1)
    kind = case.get("trained")
    trained, unit = None, 1
    if kind == "some":
        trained = (rng.random(len(X)) < 0.7).astype(float)
    elif kind == "copies":
        trained = rng.integers(0, 5, len(X)).astype(float)
    elif kind == "real":
        trained, unit = rng.uniform(0, 1, len(X)), 2**24
    weight = rng.integers(0, 3, len(X)).astype(float) if case.get("weighted") else None
    rules = {
        name: case[name] for name in ("min_samples_leaf", "max_features", "categories", "max_bins") if name in case
    }
    forest = grow(X, labels, 3, seed=11, weight=weight, trained=trained, first_tree=4, **rules)
    assert forest.n_outputs == (1 if case["n_classes"] == 2 else case["n_classes"])
    np.testing.assert_array_equal(forest.leverage, np.full(3, 1 / 3))
    twin_weights = None if trained is None else np.round(trained * unit).astype(int)
    for tree in range(3):
        assert_equal_to_the_twin(
            X, labels, forest, 4 + tree, tree, seed=11, weight=weight, trained=twin_weights, unit=unit, **rules
        )


def test_the_cases_reach_every_kind_of_split():
    """Thresholds, sets, missing values on both sides, and splits between known and missing values."""
    X, labels = draw_sample(400, 4, seed=3, missing=0.7, categories={1: 6})
    forest = grow(X, labels, 20, min_samples_leaf=1, categories={1: 6})
    split = forest.feature >= 0
    assert (split & (forest.set >= 0)).any()
    assert (split & np.isinf(forest.threshold)).any()
    for missing_left in (0, 1):
        assert (split & (forest.set < 0) & (forest.missing_left == missing_left)).any()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_bits_for_any_threads_and_any_order_of_the_rows(weighted):
    X, labels = draw_sample(3000, 7, columns=8, missing=0.05, categories={2: 9})
    rng = np.random.default_rng(0)
    weight = rng.random(len(X)) if weighted else None
    reference = grow(X, labels, 12, weight=weight, trained=weight, categories={2: 9})
    for n_jobs in (2, 5):
        other = grow(X, labels, 12, weight=weight, trained=weight, categories={2: 9}, n_jobs=n_jobs)
        assert_same_trees(other, reference)
    order = rng.permutation(len(X))
    shuffled = None if weight is None else weight[order]
    other = grow(X[order], labels[order], 12, weight=shuffled, trained=shuffled, categories={2: 9}, n_jobs=2)
    assert_same_trees(other, reference)


def test_a_whole_weight_counts_copies():
    X, labels = draw_sample(400, 4, missing=0.1)
    copies = np.random.default_rng(2).integers(1, 4, len(X))
    weight = copies.astype(float)
    weighed = grow(X, labels, 6, weight=weight, trained=weight)
    copied = grow(np.repeat(X, copies, axis=0), np.repeat(labels, copies), 6)
    assert_same_trees(weighed, copied)


def test_a_row_of_weight_0_does_not_train():
    X, labels = draw_sample(400, 4)
    trained = np.ones(400)
    trained[200:] = 0.0
    twisted = labels.copy()
    twisted[200:] = (labels[200:] + 1) % 4
    assert_same_trees(grow(X, labels, 5, trained=trained), grow(X, twisted, 5, trained=trained))
    assert not np.array_equal(grow(X, labels, 5).value, grow(X, twisted, 5).value)


def test_weights_count_in_rows_of_weight_1():
    """A row of weight 200 is as good as 200 rows, and the one row that smooths a leaf counts the less."""
    X, labels = draw_sample(300, 3)
    heavy = grow(X, labels, 1, trained=np.full(300, 200.0), min_samples_leaf=1000)
    single = grow(X, labels, 1, min_samples_leaf=5)
    np.testing.assert_array_equal(heavy.feature, single.feature)
    nodes = np.bincount(single.leaves(X)[:, 0], minlength=len(single.feature))
    prior = (200 * np.bincount(labels) + 1) / (200 * 300 + 3)
    for leaf in np.flatnonzero(single.feature < 0):
        shares = (200 * np.bincount(labels[single.leaves(X)[:, 0] == leaf], minlength=3) + prior) / (
            200 * nodes[leaf] + 1
        )
        np.testing.assert_allclose(heavy.value[leaf], np.log(shares), rtol=0, atol=1e-12)


def test_a_leaf_has_enough_rows_and_shares_that_sum_to_1():
    X, labels = draw_sample(1000, 5)
    forest = grow(X, labels, 8, min_samples_leaf=7)
    leaves = forest.leaves(X)
    for tree in range(len(forest)):
        assert np.bincount(leaves[:, tree])[np.unique(leaves[:, tree])].min() >= 7
    shares = np.exp(forest.value[forest.feature < 0] * len(forest)).sum(axis=1)
    np.testing.assert_allclose(shares, 1.0, rtol=0, atol=1e-12)


def test_a_class_that_does_not_train_has_a_small_share():
    X, labels = draw_sample(200, 4)
    trained = (labels != 2).astype(float)
    forest = grow(X, labels, 4, trained=trained)
    probabilities = np.exp(forest.scores(X)[:, 2])
    assert np.isfinite(forest.value).all()
    assert (probabilities < 0.01).all()
    assert (probabilities > 0).all()


def test_of_two_classes_one_that_does_not_train_has_small_odds():
    X, labels = draw_sample(200, 2)
    for absent, sign in ((0, 1), (1, -1)):
        scores = grow(X, labels, 4, trained=(labels != absent).astype(float)).scores(X)
        assert scores.shape == (200,)
        assert np.isfinite(scores).all()
        assert (sign * scores > math.log(100)).all()


def test_trees_of_other_numbers_and_seeds_differ_and_may_be_grown_in_parts():
    X, labels = draw_sample(300, 3)
    whole = grow(X, labels, 6)
    part = grow(X, labels, 2, first_tree=4)
    nodes = slice(int(whole.offset[4]), int(whole.offset[6]))
    np.testing.assert_array_equal(part.feature, whole.feature[nodes])
    np.testing.assert_array_equal(part.threshold, whole.threshold[nodes])
    np.testing.assert_allclose(part.value * 2, whole.value[nodes] * 6, rtol=1e-15)
    first, second = (grow(X, labels, 1, first_tree=number) for number in (0, 1))
    assert first.threshold[0] != second.threshold[0]
    assert first.threshold[0] != grow(X, labels, 1, seed=6).threshold[0]


def test_they_tell_classes_apart():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 4)) * 3
    labels = np.arange(1200) % 6
    X = centres[labels] + rng.normal(size=(1200, 4))
    forest = grow(X[:600], labels[:600], 40)
    assert (forest.scores(X[600:]).argmax(axis=1) == labels[600:]).mean() > 0.9


def test_constant_columns_and_one_class_make_a_lone_leaf():
    X, labels = draw_sample(50, 3)
    lone = grow(np.ones_like(X), labels, 2)
    np.testing.assert_array_equal(lone.offset, [0, 1, 2])
    prior = (np.bincount(labels) + 1) / 53
    np.testing.assert_allclose(np.exp(lone.scores(X[:1]))[0], (np.bincount(labels) + prior) / 51, rtol=1e-12)
    np.testing.assert_array_equal(grow(X, np.zeros(50, dtype=int), 2).offset, [0, 1, 2])


def test_rows_that_are_told_apart_one_by_one_stop_at_a_depth():
    """Every split sets one row aside at best, so that only the limit ends the tree."""
    X = np.arange(200.0)[:, np.newaxis] ** 4
    labels = np.arange(200) % 2
    forest = grow(X, labels, 30, min_samples_leaf=1)
    depth = np.zeros(len(forest.feature), dtype=int)
    for tree in range(len(forest)):
        first = int(forest.offset[tree])
        for node in range(first, int(forest.offset[tree + 1])):
            if forest.feature[node] >= 0:
                depth[first + forest.left[node] : first + forest.left[node] + 2] = depth[node] + 1
    assert 10 < depth.max() <= 60


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trees": 0}, "in range"),
        ({"min_samples_leaf": -1.0}, "in range"),
        ({"min_samples_leaf": math.nan}, "in range"),
        ({"min_samples_leaf": math.inf}, "in range"),
        ({"smoothing": 0.0}, "in range"),
        ({"smoothing": math.inf}, "in range"),
        ({"max_features": 0.0}, "shares must lie in"),
        ({"max_features": 1.5}, "shares must lie in"),
        ({"threads": 0}, "threads must be positive"),
        ({"sample_weight": np.ones(3)}, "one weight per row, or none"),
        ({"sample_weight": np.full(30, 1.5)}, "at most 1, or counts"),
        ({"sample_weight": np.full(30, 129.0)}, "at most 1, or counts"),
        ({"sample_weight": np.zeros(30)}, "at least one weight must be positive"),
        ({"sample_weight": np.full(30, -1.0)}, "finite and not negative"),
    ],
)
def test_settings_out_of_range_are_refused(change, message):
    X, labels = draw_sample(30, 3)
    settings = {
        "sample_weight": np.zeros(0),
        "trees": 2,
        "first_tree": 0,
        "min_samples_leaf": 1.0,
        "max_features": 0.5,
        "smoothing": 1.0,
        "seed": 0,
        "threads": 1,
    }
    with pytest.raises(ValueError, match=message):
        _core.grow_randomised(make_dataset(X, labels).core, **(settings | change))
