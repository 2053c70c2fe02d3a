"""The limits of what a model file may say of trees: what lies at a limit is read, what lies beyond it is refused."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.file_arrays import Arrays, above, below, refuses
from untwist.boosting import forest
from untwist.data.tables import Schema
from untwist.files import reading_trees


def make_chain(depth):
    """Return a tree that splits its left child `depth` times, after a leaf that is a tree by itself."""
    feature, left = [-1], [0]
    for level in range(depth):
        feature += [0, -1] if level else [0]
        left += [2 * level + 1, 0] if level else [1]
    feature += [-1, -1] if depth else [-1]
    left += [0, 0] if depth else [0]
    # Children stand side by side: the left one splits, the right one is a leaf.
    return SimpleNamespace(feature=np.array(feature), left=np.array(left), offset=np.array([0, 1, len(feature)]))


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_depth_is_the_longest_way_down(depth):
    assert reading_trees._find_depth(make_chain(depth)) == depth


def test_depth_is_that_of_the_right_child_too():
    tree = SimpleNamespace(
        feature=np.array([0, -1, 0, -1, -1]), left=np.array([1, 0, 3, 0, 0]), offset=np.array([0, 5])
    )
    assert reading_trees._find_depth(tree) == 2
    none = SimpleNamespace(feature=np.zeros(0, int), left=np.zeros(0, int), offset=np.array([0]))
    assert reading_trees._find_depth(none) == 0


def read_chain(depth, n_features=1, categories=None, **changes):
    """Return the ensemble of a file with the trees of `make_chain`."""
    tree, arrays = make_chain(depth), Arrays()
    n_nodes = len(tree.feature)
    values = {name: np.zeros(n_nodes) for name in ("threshold", "value", "gain")}
    values |= {"feature": tree.feature, "left": tree.left, "offset": tree.offset, "set": np.full(n_nodes, -1)}
    values |= {"missing_left": np.zeros(n_nodes), "edge": [0.5, 0.25], "leverage": [2.0, 1.0], "codes": []}
    kinds = {"feature": "<i4", "left": "<i4", "set": "<i4", "offset": "<i8", "missing_left": "|u1", "codes": "<u8"}
    about = {
        name: arrays.put(one, kinds.get(name, "<f8")) for name, one in (values | changes).items() if name != "start"
    }
    about |= {"losses": arrays.put([0.5]), "errors": arrays.put([0.25])}
    about |= {"start": changes.get("start", 0.0), "outputs": 1}
    return reading_trees.read_ensemble(about, arrays.make_reader(), n_features, Schema(categories or {}))


def test_trees_are_no_deeper_than_60_splits():
    ensemble = read_chain(60, start=-1e30)
    assert (len(ensemble), ensemble.start, ensemble.forest.n_features) == (2, -1e30, 1)
    assert (ensemble.losses.tolist(), ensemble.errors.tolist()) == ([0.5], [0.25])
    assert read_chain(1).start == 0.0
    with refuses("trees are no deeper than 60"):
        read_chain(61)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": [0.0, 0.0, 1e30, 0.0]}, "scores are finite"),
        ({"value": [0.0, 0.0, -1e30, 0.0]}, "scores are finite"),
        ({"value": [math.nan, 0.0, 0.0, 0.0]}, "numbers are finite"),
        ({"gain": [math.inf, 0.0, 0.0, 0.0]}, "numbers are finite"),
        ({"gain": [0.0] * 3}, "arrays of nodes are of one length"),
        ({"threshold": [0.0] * 5}, "arrays of nodes are of one length"),
        ({"edge": [0.5]}, "arrays of trees are of one length"),
        ({"leverage": [0.5] * 3}, "arrays of trees are of one length"),
        ({"edge": [], "leverage": [], "offset": [0]}, "arrays of trees are of one length"),
        ({"codes": [0] * 3}, "a set is 4 words"),
        ({"start": above(1e30)}, ".* lies in"),
        ({"gain": [-1e-9, 0.0, 0.0, 0.0]}, "numbers are finite and at least 0"),
        ({"gain": [1e30, 0.0, 0.0, 0.0]}, "gains are finite"),
        ({"leverage": [-1e30, 1.0]}, "leverages are finite"),
        ({"leverage": [5e-324, 1.0], "value": [1.0, 0.0, 0.0, 0.0]}, "leaves over leverages are finite"),
        ({"threshold": [math.nan, 0.0, 0.0, 0.0]}, "thresholds are numbers"),
        ({"missing_left": [0, 2, 0, 0]}, "missing_left is 0 or 1"),
        ({"feature": [-1, 1, -1, -1]}, "the feature of a split must exist"),
        ({"feature": [-2, 0, -1, -1]}, "the feature of a split must exist"),
        ({"set": [-1, 0, -1, -1], "codes": [1, 0, 0, 0]}, "columns of categories, and no others, are split by sets"),
        ({"categories": {0: ("a", "b")}}, "columns of categories, and no others, are split by sets"),
    ],
    ids=str,
)
def test_trees_that_make_no_sense_are_refused(changes, message):
    with refuses(message):
        read_chain(1, **changes)


def test_trees_may_lie_on_their_limits():
    by_set = {"set": [-1, 0, -1, -1], "codes": [1, 0, 0, 0]}
    assert read_chain(1, categories={0: ("a", "b")}, **by_set).forest.n_sets == 1
    assert len(read_chain(1, categories={0: ()})) == 2  # A column without any known category has no sets.
    with refuses("columns of categories"):
        read_chain(1, categories={0: ()}, **by_set)
    most = below(1e30)
    limits = {"value": [0.0, 0.0, most, -most], "gain": [0.0, most, 0.0, 0.0], "leverage": [0.0, -most]}
    ensemble = read_chain(1, threshold=[0.0, -math.inf, 0.0, 0.0], missing_left=[0, 1, 0, 0], **limits)
    assert np.isfinite(list(ensemble.staged_scores(np.zeros((1, 1))))).all()


@pytest.mark.parametrize("n_features", [1, 4, 5, 2**23])
def test_trees_are_checked_however_many_columns_are_claimed(n_features, monkeypatch):
    """The core sees no column that no split asks for where the file has fewer nodes than it claims columns."""
    seen = []
    core = forest._core.Forest
    stand_in = SimpleNamespace(Forest=lambda **arrays: seen.append(arrays["features"]) or core(**arrays))
    monkeypatch.setattr(forest, "_core", stand_in)
    assert read_chain(1, n_features).forest.n_features == n_features
    assert seen == [n_features if n_features <= 4 else 1]
    for changes in ({"left": [1, 3, 0, 0]}, {"offset": [0, 2, 4]}, {"feature": [-1, n_features, -1, -1]}):
        with pytest.raises(ValueError, match=r"children|parent|must exist"):
            read_chain(1, n_features, **changes)


def test_values_of_leaves_go_to_their_nodes_and_splits_have_zeros():
    feature = np.array([0, -1, -1, -1], dtype=np.int32)  # A tree with a split, and a leaf that is a tree by itself.
    spread = reading_trees._spread_leaves(np.arange(1.0, 10.0), feature, 2, 3)
    np.testing.assert_array_equal(spread, [[0, 0, 0], [1, 2, 3], [4, 5, 6], [7, 8, 9]])
    for n_values, n_trees, message in [
        (9, 1, "a tree has one leaf more than splits"),
        (9, 3, "a tree has one leaf more than splits"),
        (8, 2, "a leaf has a value for each class"),
        (10, 2, "a leaf has a value for each class"),
    ]:
        with refuses(message):
            reading_trees._spread_leaves(np.zeros(n_values), feature, n_trees, 3)
