"""Forests of one output and of several: equal to rows that walk down one by one, joined, cut, scaled and pickled."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from untwist import PILBoostClassifier, _core
from untwist.boosting.ensemble import Ensemble
from untwist.boosting.forest import Forest

N_FEATURES = 5
N_CATEGORICAL = 2


def draw_forest(seed, *, n_trees=6, n_splits=12, n_outputs=None):
    """Return random trees; the first columns hold categories."""
    rng = np.random.default_rng(seed)
    arrays = {name: [] for name in ("offset", "feature", "left", "threshold", "missing_left", "value", "set", "codes")}
    arrays["offset"].append(0)
    shape = () if n_outputs is None else (n_outputs,)
    for _ in range(n_trees):
        left, leaves = [-1], [0]
        for _ in range(rng.integers(n_splits + 1)):
            node = leaves.pop(rng.integers(len(leaves)))
            left[node] = len(left)
            leaves += [len(left), len(left) + 1]
            left += [-1, -1]
        for child in left:
            feature = -1 if child < 0 else int(rng.integers(N_FEATURES))
            by_set = 0 <= feature < N_CATEGORICAL
            arrays["feature"].append(feature)
            arrays["left"].append(child)
            arrays["threshold"].append(0.0 if child < 0 or by_set else float(rng.integers(-3, 4)))
            arrays["missing_left"].append(int(rng.integers(2)))
            arrays["value"].append(rng.normal(size=shape) if child < 0 else np.zeros(shape))
            arrays["set"].append(len(arrays["codes"]) // 4 if by_set else -1)
            arrays["codes"] += rng.integers(0, 2**63, 4 if by_set else 0, dtype=np.uint64).tolist()
        arrays["offset"].append(len(arrays["left"]))
    value = np.array(arrays.pop("value"), dtype=np.float64).reshape(-1, *shape)
    kinds = {"offset": "i8", "feature": "i4", "left": "i4", "threshold": "f8", "missing_left": "u1", "set": "i4"}
    return Forest(
        edge=np.zeros(n_trees),
        leverage=rng.uniform(0.1, 1.0, n_trees),
        value=value,
        gain=np.where(np.array(arrays["feature"]) < 0, 0.0, 1.0),
        n_features=N_FEATURES,
        **{name: np.array(arrays[name], dtype=kinds.get(name, "u8")) for name in arrays},
    )


def draw_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (n, N_FEATURES)).astype(float)
    X[:, :N_CATEGORICAL] = rng.integers(0, 256, (n, N_CATEGORICAL))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def walk(forest, tree, x):
    """Return the node that a row ends at, counted within the tree, as the description of the arrays says."""
    first = forest.offset[tree]
    node = first
    while forest.feature[node] >= 0:
        value = x[forest.feature[node]]
        if np.isnan(value):
            goes_left = bool(forest.missing_left[node])
        elif forest.set[node] >= 0:
            goes_left = int(value) in forest.categories_going_left(node)
        else:
            goes_left = value <= forest.threshold[node]
        node = first + forest.left[node] + (0 if goes_left else 1)
    return node - first


def score_naively(forest, X, first=0, last=None):
    """Add up one leaf per tree, row by row."""
    scores = np.zeros((len(X), *forest.value.shape[1:]))
    for row, x in enumerate(X):
        for tree in range(first, len(forest) if last is None else last):
            scores[row] += forest.value[forest.offset[tree] + walk(forest, tree, x)]
    return scores


def assert_same_trees(one, other):
    for name in vars(one):
        if name != "prepared":
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("n_outputs", [None, 1, 2, 3, 7, 60])
@pytest.mark.parametrize("n_rows", [1, 7, 47, 48, 300])  # Few rows are walked, many are encoded.
@pytest.mark.parametrize("n_splits", [0, 12, 400])  # More than 255 splits are too many for moves alone.
@pytest.mark.thinned(3)
def test_scores_and_leaves_are_those_of_a_walk(n_outputs, n_rows, n_splits):
    forest = draw_forest(n_splits, n_splits=n_splits, n_outputs=n_outputs)
    X = draw_rows(n_rows)
    assert forest.n_outputs == (n_outputs or 1)
    scores = forest.scores(X, n_jobs=1)
    assert scores.shape == ((n_rows,) if n_outputs is None else (n_rows, n_outputs))
    np.testing.assert_array_equal(scores, score_naively(forest, X))
    np.testing.assert_array_equal(forest.scores(X.astype(np.float32), 2, 5), score_naively(forest, X, 2, 5))
    nodes = [[walk(forest, tree, x) for tree in range(len(forest))] for x in X]
    np.testing.assert_array_equal(forest.leaves(X), nodes)


@pytest.mark.parametrize("n_outputs", [None, 3])
def test_blocks_of_rows_that_go_down_a_deep_tree_together(n_outputs):
    forest = draw_forest(2, n_trees=3, n_splits=2000, n_outputs=n_outputs)
    assert (np.diff(forest.offset) > 2 * 255).any()
    X = draw_rows(1500)
    np.testing.assert_array_equal(forest.scores(X, n_jobs=1), score_naively(forest, X))
    np.testing.assert_array_equal(forest.scores(X, n_jobs=3), forest.scores(X, n_jobs=1))


@pytest.mark.parametrize("n_outputs", [None, 3])
def test_any_number_of_threads_gives_the_same_bits(n_outputs):
    forest = draw_forest(3, n_trees=40, n_splits=60, n_outputs=n_outputs)
    X = draw_rows(3000)
    scores = forest.scores(X, n_jobs=1)
    for n_jobs in (2, 5):
        np.testing.assert_array_equal(forest.scores(X, n_jobs=n_jobs), scores)


@pytest.mark.parametrize("n_outputs", [1, 2, 10])
def test_an_output_is_a_forest_of_its_own(n_outputs):
    forest = draw_forest(5, n_outputs=n_outputs)
    X = draw_rows(100)
    for output in range(n_outputs):
        one = forest.output(output)
        assert one.value.ndim == 1
        assert one.n_outputs == 1
        np.testing.assert_array_equal(one.scores(X), forest.scores(X)[:, output])
    for output in (-1, n_outputs):
        with pytest.raises(ValueError, match=f"index must be one of {n_outputs} outputs"):
            forest.output(output)
    assert_same_trees(draw_forest(5).output(0), draw_forest(5))


@pytest.mark.parametrize("n_outputs", [None, 4])
def test_cutting_joining_and_scaling(n_outputs):
    one, other = (draw_forest(seed, n_trees=4 + seed, n_outputs=n_outputs) for seed in (1, 2))
    X = draw_rows(80)
    joined = one.append(other)
    assert_same_trees(joined.keep_first(len(one)), Forest(**(vars(one) | {"codes": joined.codes})))
    np.testing.assert_array_equal(joined.scores(X, 0, len(one)), one.scores(X))
    np.testing.assert_array_equal(joined.scores(X, len(one)), other.scores(X))
    mean = Forest.average([one, other])
    np.testing.assert_allclose(mean.scores(X), (one.scores(X) + other.scores(X)) / 2, rtol=0, atol=1e-14)
    half = one.scale(0.5)  # Halves are exact, so that the scores are too.
    np.testing.assert_array_equal(half.scores(X), 0.5 * one.scores(X))
    np.testing.assert_array_equal(half.leverage, 0.5 * one.leverage)
    np.testing.assert_array_equal(half.trees()[2].predict(X), one.trees()[2].predict(X))
    np.testing.assert_array_equal(one.scale(0.0).scores(X), 0.0 * one.scores(X))


def test_a_tree_predicts_a_row_of_values_per_row():
    forest = draw_forest(8, n_outputs=3)
    X = draw_rows(20)
    for tree, hypothesis in enumerate(forest.trees()):
        expected = score_naively(forest, X, tree, tree + 1) / forest.leverage[tree]
        np.testing.assert_array_equal(hypothesis.predict(X), expected)


@pytest.mark.parametrize("n_outputs", [None, 3])
def test_an_ensemble_has_the_scores_of_its_forest_and_those_of_its_stages(n_outputs):
    forest = draw_forest(8, n_outputs=n_outputs)
    X = draw_rows(20)
    ensemble = Ensemble.from_forest(forest, np.zeros(0), np.zeros(0))
    np.testing.assert_array_equal(ensemble.scores(X), score_naively(forest, X))
    stages = list(ensemble.staged_scores(X))
    assert len(stages) == len(forest)
    for tree, scores in enumerate(stages):
        np.testing.assert_allclose(scores, score_naively(forest, X, 0, tree + 1), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(ensemble.keep_first(2).scores(X), score_naively(forest, X, 0, 2))
    np.testing.assert_array_equal(ensemble.append(ensemble).scores(X), forest.append(forest).scores(X))


@pytest.mark.parametrize("n_outputs", [None, 3])
def test_pickles_carry_the_trees_and_nothing_else(n_outputs):
    forest = draw_forest(9, n_outputs=n_outputs)
    X = draw_rows(60)
    scores = forest.scores(X)  # The trees are prepared by now, which no pickle could hold.
    copy = pickle.loads(pickle.dumps(forest))
    assert "prepared" not in vars(copy)
    assert_same_trees(copy, forest)
    np.testing.assert_array_equal(copy.scores(X), scores)


def test_a_forest_without_trees_scores_zeros():
    forest = draw_forest(9, n_outputs=3).keep_first(0)
    np.testing.assert_array_equal(forest.scores(draw_rows(4)), np.zeros((4, 3)))


def test_values_in_any_layout_score_alike():
    forest = draw_forest(9, n_outputs=3)
    by_column = Forest(**(vars(forest) | {"value": np.asfortranarray(forest.value)}))
    np.testing.assert_array_equal(by_column.scores(draw_rows(60)), forest.scores(draw_rows(60)))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda value: value[:, :0], "a leaf must have a value"),
        (lambda value: value[:-1], "one entry per node"),
        (lambda value: value[:, :, np.newaxis], "a value must be a number, or a row of numbers"),
    ],
)
def test_values_of_another_shape_are_refused(value, message):
    forest = draw_forest(9, n_outputs=3)
    with pytest.raises(ValueError, match=message):
        Forest(**(vars(forest) | {"value": np.ascontiguousarray(value(forest.value))})).prepared  # noqa: B018


@pytest.mark.parametrize(
    ("n_outputs", "shape"), [(None, (9,)), (None, (10, 2)), (3, (10,)), (3, (10, 2)), (3, (9, 3)), (3, (10, 3, 1))]
)
def test_scores_of_another_shape_are_refused(n_outputs, shape):
    forest = draw_forest(9, n_outputs=n_outputs)
    with pytest.raises(ValueError, match=r"one score per row and output|a number per row, or a row of numbers"):
        forest.prepared.add_scores(draw_rows(10), 0, len(forest), 1, np.zeros(shape))


def test_the_core_adds_to_what_is_there():
    forest = draw_forest(9, n_outputs=3)
    X = draw_rows(10)
    scores = np.ones((10, 3))
    core: _core.Forest = forest.prepared
    core.add_scores(X, 0, 1, 1, scores)
    np.testing.assert_array_equal(scores, 1.0 + score_naively(forest, X, 0, 1))


def test_an_array_without_numbers_may_lie_anywhere():
    """Unpickled arrays of no numbers do, under Python 3.13 and NumPy 2.1."""
    X = np.arange(20.0)[:, None]
    forest = PILBoostClassifier(n_estimators=2).fit(X, X[:, 0] > 9).forest_
    askew = np.ndarray((0,), forest.codes.dtype, buffer=bytearray(16), offset=1)
    np.testing.assert_array_equal(replace(forest, codes=askew).scores(X), forest.scores(X))
