"""Which columns may meet in a tree, and how likely each is to be drawn."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier

from helpers.small_fits import assert_same_forests, draw_sample, list_forests, make_model
from untwist import UntwistClassifier


def list_ways(forest):
    """The columns on every way from the root of a tree to a leaf."""
    ways = []
    for tree in range(len(forest)):
        first = int(forest.offset[tree])
        open_nodes = [(first, frozenset())]
        while open_nodes:
            node, way = open_nodes.pop()
            if forest.feature[node] < 0:
                ways.append(way)
                continue
            left = first + int(forest.left[node])
            longer = way | {int(forest.feature[node])}
            open_nodes += [(left, longer), (left + 1, longer)]
    return ways


KINDS = [
    {"max_depth": 4},
    {"max_leaf_nodes": 9, "max_depth": None},
    {"extra_trees": True, "max_depth": 4},
    {"engine": "xgboost", "max_depth": 4},
    {"max_features": 0.75, "subsample": 0.7, "max_depth": 4},
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    ("given", "groups"),
    [
        ("no_interactions", [{0}, {1}, {2}, {3}]),
        ("pairwise", [{i, j} for i in range(4) for j in range(4)]),
        ([{0, 1}, {1, 2}], [{0, 1}, {1, 2}, {3}]),  # Columns that no group names make one more.
        ([[0], (1, 2, 3)], [{0}, {1, 2, 3}]),
    ],
    ids=str,
)
def test_only_columns_of_one_group_meet(kind, given, groups):
    if kind.get("engine") == "xgboost":
        pytest.importorskip("xgboost")
    X, y = draw_sample(300)
    ways = list_ways(make_model(8, interaction_cst=given, **kind).fit(X, y).forest_)
    assert all(any(way <= group for group in groups) for way in ways)
    assert len(set().union(*ways)) > 1 or kind.get("extra_trees")  # Other columns than the best one have their trees.
    free = list_ways(make_model(8, **kind).fit(X, y).forest_)
    assert not all(any(way <= group for group in groups) for way in free)


def test_classes_boosted_together_keep_to_groups_and_are_not_mixed_with_others():
    X, y = draw_sample(300, classes=3)
    model = UntwistClassifier(interaction_cst=[{0}, {1, 2}], random_state=0).fit(X, y)
    groups = [{0}, {1, 2}, {3}]
    assert all(any(way <= group for group in groups) for forest in list_forests(model) for way in list_ways(forest))
    assert model.choice_.mixture is None
    assert UntwistClassifier(interaction_cst="pairwise", random_state=0).fit(X, y > 0).choice_.mixture is None


def test_groups_have_the_meaning_of_scikit_learn():
    """Without interactions the score is a sum over columns: moving one adds the same whatever the others are."""
    X, y = draw_sample(400)
    theirs = HistGradientBoostingClassifier(interaction_cst="no_interactions", max_iter=20, random_state=0).fit(X, y)
    ours = make_model(20, interaction_cst="no_interactions", max_depth=4).fit(X, y)
    moved = X.copy()
    moved[:, 0] = X[::-1, 0]
    for model in (theirs, ours):
        here = X.copy()
        here[:, 1:] = X[0, 1:]
        there = here.copy()
        there[:, 0] = moved[:, 0]
        alone = model.decision_function(there) - model.decision_function(here)
        together = model.decision_function(moved) - model.decision_function(X)
        np.testing.assert_allclose(together, alone, atol=1e-9)


@pytest.mark.parametrize("kind", [{}, {"extra_trees": True}, {"max_features": 0.5, "feature_weights": np.arange(40)}])
def test_sparse_tables_keep_to_groups_as_dense_ones(kind):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((200, 40)) < 0.2, rng.normal(size=(200, 40)), 0.0)
    y = (dense[:, :6].sum(axis=1) + 0.3 * rng.normal(size=200) > 0).astype(int)
    groups = [set(range(0, 40, 2)), set(range(1, 40, 2)), {0, 1}]
    settings = {"max_depth": 5, "interaction_cst": groups, **kind}
    model, other = (make_model(6, **settings).fit(X, y) for X in (dense, sparse.csr_array(dense)))
    assert_same_forests(model, other, dense)
    assert all(any(way <= group for group in groups) for way in list_ways(other.forest_))


def test_groups_by_name_are_those_by_position():
    X, y = draw_sample()
    frame = pd.DataFrame(X, columns=list("abcd"))
    by_name = make_model(interaction_cst=[["a", "c"], ["b", "d"]]).fit(frame, y)
    assert_same_forests(by_name, make_model(interaction_cst=[{0, 2}, {1, 3}]).fit(X, y), frame, X)
    all_may = make_model(interaction_cst=[{0, 1, 2, 3}]).fit(X, y)
    assert_same_forests(all_may, make_model().fit(X, y), X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("triples", 'must be None, "pairwise", "no_interactions" or a list of sets of columns'),
        (3, "must be None"),
        ([0, 1], "got a group 0"),
        (["ab"], "got a group 'ab'"),
        ([{0, 4}], "by position from 0 to 3 or by name, got 4"),
        ([{0, -1}], "got -1"),
        ([{0, "x"}], "got 'x'"),
        ([{2}, {1.5}], "got 1.5"),
        ([{2}, {True}], "got True"),
    ],
)
def test_groups_that_cannot_be_are_named(given, message):
    X, y = draw_sample()
    with pytest.raises(ValueError, match=message):
        make_model(interaction_cst=given).fit(X, y)


def test_settings_that_do_not_go_with_rules_for_columns():
    X, y = draw_sample()
    for name, value in (("interaction_cst", "pairwise"), ("feature_weights", np.ones(4))):
        with pytest.raises(ValueError, match=f'{name}=.* needs engine="compiled" or "xgboost"'):
            make_model(engine="reference", **{name: value}).fit(X, y)


# Chances of columns


@pytest.mark.parametrize("engine", ["compiled", "xgboost"])
def test_a_column_is_drawn_as_often_as_its_weight_says(engine):
    if engine == "xgboost":
        pytest.importorskip("xgboost")
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = (X.sum(axis=1) > 0).astype(int)
    weights = np.array([4.0, 2.0, 1.0, 0.0])
    settings = {"max_depth": 1, "max_features": 0.25, "learning_rate": 1e-9, "engine": engine}
    model = make_model(700, feature_weights=weights, **settings).fit(X, y)
    drawn = model.importances("splits")
    # Of 700 draws the share of a column has a standard deviation below 0.02.
    np.testing.assert_allclose(drawn, weights / weights.sum(), atol=0.07)
    assert drawn[3] == 0


@pytest.mark.parametrize("engine", ["compiled", "xgboost"])
def test_a_column_of_weight_0_is_never_drawn(engine):
    if engine == "xgboost":
        pytest.importorskip("xgboost")
    X = np.random.default_rng(0).normal(size=(200, 4))
    y = (X[:, 1] > 0).astype(int)
    settings = {"max_features": 0.75, "engine": engine, "random_state": 0}
    model = make_model(feature_weights=[1, 0, 0, 0], **settings).fit(X, y)
    assert np.flatnonzero(model.importances("splits")).tolist() == [0]
    X[:, [0, 2, 3]] = 0.0  # The only column that varies has no weight.
    model = make_model(feature_weights=[1, 0, 1, 1], **settings).fit(X, y)
    assert not model.importances("splits").any()


def test_equal_weights_draw_as_none_and_all_columns_are_drawn_without_draws():
    X, y = draw_sample()
    settings = {"max_features": 0.5, "random_state": 3}
    alike = make_model(feature_weights=[2.0] * 4, **settings).fit(X, y)
    assert_same_forests(alike, make_model(**settings).fit(X, y), X)
    with pytest.warns(UserWarning, match="feature_weights play no part in this fit.*give max_features"):
        without_draws = make_model(feature_weights=[1, 0, 0, 0]).fit(X, y)
    assert_same_forests(without_draws, make_model().fit(X, y), X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0, 2.0], "must be 4 numbers, one per column"),
        ([1.0, -1.0, 1.0, 1.0], "finite and non-negative"),
        ([0.0] * 4, "not all 0"),
        ("many", "feature_weights must be"),
    ],
)
def test_weights_of_columns_that_cannot_be_are_named(given, message):
    X, y = draw_sample()
    with pytest.raises(ValueError, match=message):
        make_model(feature_weights=given).fit(X, y)
