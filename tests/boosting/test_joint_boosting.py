"""All classes boosted together: equal to the slow twin split by split, and to itself on any threads and row order."""

import numpy as np
import pytest

from helpers import joint_twin
from helpers.engines import get_forest, get_training_scores, make_booster, make_dataset
from helpers.histogram_twin import place_thresholds
from untwist.boosting.engines.engine import TreeGrowth
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss
from untwist.theory.several_classes import find_gradient, find_loss


def draw_sample(n, n_classes, seed, columns=4, values=None, missing=0.0, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    if values is not None:
        X = np.round(X * values / 4)
    labels = np.floor(n_classes / (1 + np.exp(-X[:, 0] - X[:, 1] * X[:, -1]))).astype(int).clip(0, n_classes - 1)
    labels = np.where(rng.random(n) < noise, rng.integers(n_classes, size=n), labels)
    labels[:n_classes] = np.arange(n_classes)
    X[rng.random(X.shape) < missing] = np.nan
    return X, labels


def make_joint_booster(
    X, labels, alpha=1.0, step=0.5, *, max_bins=255, weight=None, categories=None, by_edge=False, n_jobs=1, **settings
):
    of_task = ("validation_weight", "posterior_floor", "begins_at_shares")
    task = {name: settings.pop(name) for name in of_task if name in settings}
    data = make_dataset(X, labels, categories=categories, max_bins=max_bins, n_jobs=n_jobs)
    link = ClippedLink(AlphaLoss(alpha))
    growth = TreeGrowth(**settings)
    return make_booster(data, link, step, growth, positive_class=None, weight=weight, by_edge=by_edge, **task)


def list_codes(forest, node, column):
    """The codes that go left at a node."""
    cuts, categories = column
    missing = categories or len(cuts) + 1
    if forest.set[node] >= 0:
        return {code for code in forest.categories_going_left(node) if code <= missing}
    codes = set(range(int(np.searchsorted(cuts, forest.threshold[node])) + 1))
    return codes | ({missing} if forest.missing_left[node] else set())


def compare_trees(forest, tree, twin, columns, tolerance):
    """Walk down a tree of the forest and its twin side by side."""
    first = forest.offset[tree]
    pairs = [(first, twin)]
    while pairs:
        node, other = pairs.pop()
        assert forest.feature[node] == other.feature
        if other.feature < 0:
            np.testing.assert_allclose(forest.value[node], other.value, rtol=tolerance, atol=0)
            continue
        assert list_codes(forest, node, columns[other.feature]) == set(other.goes_left)
        assert forest.gain[node] == pytest.approx(other.gain, rel=1e-9, abs=1e-15)
        assert not forest.value[node].any()
        left = first + forest.left[node]
        pairs += [(left, other.children[0]), (left + 1, other.children[1])]


CASES = [
    {},
    {"n_classes": 4},
    {"n_classes": 7},
    {"n_classes": 8, "n": 160},
    {"n_classes": 12, "n": 200},
    {"alpha": 2.0},
    {"alpha": 2.0, "n_classes": 9},
    {"alpha": 0.5},
    {"alpha": 0.5, "n_classes": 12},
    {"alpha": 1.5, "n_classes": 5},
    {"alpha": 50.0},
    {"depth": 1},
    {"depth": 6},
    {"max_bins": 4},
    {"max_bins": 16, "missing": 0.2},
    {"missing": 0.3, "n_classes": 5},
    {"values": 3},
    {"values": 2, "missing": 0.1},
    {"l2": 2.5},
    {"n": 4},
    {"weighted": "shares"},
    {"weighted": "copies"},
    {"weighted": "copies", "n_classes": 9, "alpha": 2.0},
    {"weighted": "same"},
    {"weighted": "shares", "max_bins": 7, "missing": 0.1, "alpha": 0.5},
    {"held_out": True},
    {"held_out": True, "n_classes": 10},
    {"max_leaf_nodes": 4, "depth": 60},
    {"max_leaf_nodes": 6, "depth": 3, "missing": 0.1},
    {"max_leaf_nodes": 2},
    {"min_samples_leaf": 9},
    {"min_samples_leaf": 5, "n_classes": 7},
    {"min_samples_leaf": 3, "weighted": "shares"},
    {"min_weight_fraction_leaf": 0.1},
    {"subsample": 0.5},
    {"subsample": 0.001, "n": 30},
    {"max_features": 0.5},
    {"subsample": 0.7, "max_features": 0.6, "n_classes": 11, "seed": 3},
    {"categories": True},
    {"categories": True, "missing": 0.2, "n_classes": 5},
    {"categories": True, "n_classes": 10, "depth": 5},
    {"by_edge": True},
    {"step": 30.0},
    {"extra": True, "depth": 5, "n_classes": 9},
    {"extra": True, "missing": 0.3, "values": 3},
    {"extra": True, "missing": 0.9, "depth": 6, "weighted": "copies"},
    {"extra": True, "max_leaf_nodes": 7, "depth": 60, "min_samples_leaf": 4},
    {"extra": True, "categories": True, "missing": 0.2, "n_classes": 5, "min_weight_fraction_leaf": 0.05},
    {"extra": True, "max_features": 0.7, "subsample": 0.7, "max_bins": 16, "seed": 3},
    {"begins_at_shares": False, "weighted": "shares"},
    {"interactions": ((0,), (1, 2), (2, 3)), "depth": 4},
    {"interactions": ((0, 1), (2, 3)), "max_leaf_nodes": 7, "depth": 60, "n_classes": 9},
    {"interactions": ((0, 1), (1, 2, 3)), "extra": True, "depth": 5},
    {"max_features": 0.5, "feature_weights": (1.0, 0.0, 3.0, 0.5)},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.thinned(3)
def test_equal_to_the_slow_twin(case):
    case = dict(case)
    n, n_classes = case.pop("n", 120), case.pop("n_classes", 3)
    alpha, step, depth = case.pop("alpha", 1.0), case.pop("step", 0.5), case.pop("depth", 3)
    sample = {name: case.pop(name) for name in ("values", "missing") if name in case}
    X, labels = draw_sample(n, n_classes, seed=n + n_classes, **sample)
    rng = np.random.default_rng(n_classes)
    categories = None
    if case.pop("categories", False):
        known = ~np.isnan(X[:, 1])
        X[known, 1] = rng.integers(12, size=known.sum()) + 3 * (labels[known] % 3)
        categories = {1: 18}
    weight = {
        None: None,
        "shares": rng.random(n) * 3,
        "copies": rng.integers(0, 4, size=n).astype(float),
        "same": np.full(n, 0.3),
    }[case.pop("weighted", None)]
    if case.pop("held_out", False):
        weight = (rng.random(n) < 0.7).astype(float)
    compare_with_twin(X, labels, n_classes, alpha, step, weight, categories, depth, case)


def compare_with_twin(X, labels, n_classes, alpha, step, weight, categories, depth, settings, rounds=6):
    max_bins = settings.pop("max_bins", 255)
    booster = make_joint_booster(
        X, labels, alpha, step, max_bins=max_bins, weight=weight, categories=categories, max_depth=depth, **settings
    )
    assert booster.boost(rounds) == rounds
    forest = get_forest(booster)
    renamed = {"max_leaf_nodes": "max_leaves", "min_samples_leaf": "min_rows", "min_weight_fraction_leaf": "min_share"}
    twin = joint_twin.boost(
        X,
        labels,
        n_classes,
        alpha,
        step,
        rounds=rounds,
        depth=depth,
        max_bins=max_bins,
        weight=weight,
        categories=categories,
        **{renamed.get(name, name): value for name, value in settings.items()},
    )
    counts = categories or {}
    thresholds = [place_thresholds(column, np.full(len(X), 2**32), max_bins) for column in X.T]
    columns = [([], counts[f]) if f in counts else (thresholds[f], 0) for f in range(X.shape[1])]
    # An edge is a sum over leaves, which the twin has in another order, and with it comes the step.
    tolerance = 1e-12 if settings.get("by_edge") else 0.0
    twin_rounds = list(twin)
    assert len(twin_rounds) == rounds
    for tree, (grown, edge, leverage, _) in enumerate(twin_rounds):
        compare_trees(forest, tree, grown, columns, tolerance)
        assert forest.edge[tree] == pytest.approx(edge, rel=1e-9)
        assert forest.leverage[tree] == pytest.approx(leverage, rel=1e-9)
    np.testing.assert_allclose(get_training_scores(booster), twin_rounds[-1][-1], rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(forest.scores(X), get_training_scores(booster))


@pytest.mark.parametrize("n_classes", [3, 9])
def test_wide_sums_are_equal_to_the_slow_twin(n_classes):
    # So many copies do not fit into 32 bits.
    X, labels = draw_sample(1200, n_classes, seed=5, values=8, missing=0.1)
    weight = np.random.default_rng(0).integers(100, 128, size=1200).astype(float)
    compare_with_twin(X, labels, n_classes, 2.0, 0.5, weight, None, 3, {}, rounds=3)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 2.0, 20.0])
@pytest.mark.parametrize("n_classes", [3, 11])
def test_gradients_of_the_twin_follow_the_theory(alpha, n_classes):
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(300, n_classes)), rng.integers(n_classes, size=300)
    unit = 2.0**20
    gradients, mass = joint_twin.find_gradients(scores, labels, alpha, unit, np.ones(300), np.ones(300, dtype=int))
    expected = -find_gradient(scores, labels, alpha)
    # The emphasis is held to 16, which alpha 0.5 reaches where a label has a posterior below 1/16.
    held = np.exp(-find_loss(scores, labels, 1.0)) ** (1 - 1 / alpha) > 16
    assert held.any() == (alpha < 1)
    # Every class may be off by half a unit, the label by as many as there are classes, besides single precision.
    atol = n_classes / unit
    np.testing.assert_allclose(gradients[~held] / unit, expected[~held], rtol=1e-5, atol=atol)
    np.testing.assert_array_equal(gradients.sum(axis=1), 0)
    np.testing.assert_array_equal(np.abs(gradients).sum(axis=1), 2 * mass)


def list_trees(booster):
    return booster.core.trees(0)


SETTINGS = [
    {},
    {"n_classes": 12, "alpha": 2.0, "missing": 0.1},
    {"subsample": 0.5, "max_features": 0.5, "n_classes": 5},
    {"min_samples_leaf": 5, "weighted": True, "alpha": 0.5},
    {"copies": True, "n_classes": 9},
    {"extra": True, "n_classes": 5, "missing": 0.1},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_threads_and_the_order_of_rows_do_not_matter(settings):
    settings = dict(settings)
    n, n_classes, alpha = 6000, settings.pop("n_classes", 3), settings.pop("alpha", 1.0)
    X, labels = draw_sample(n, n_classes, seed=1, columns=6, missing=settings.pop("missing", 0.0))
    rng = np.random.default_rng(2)
    weight = rng.random(n) if settings.pop("weighted", False) else None
    if settings.pop("copies", False):  # They do not fit into 32 bits.
        weight = rng.integers(100, 128, size=n).astype(float)
    validation_weight = (rng.random(n) < 0.3).astype(float)
    runs = []
    for n_jobs, order in ((1, np.arange(n)), (2, np.arange(n)), (3, rng.permutation(n)), (1, np.arange(n)[::-1])):
        booster = make_joint_booster(
            X[order],
            labels[order],
            alpha,
            weight=None if weight is None else weight[order],
            validation_weight=validation_weight[order],
            n_jobs=n_jobs,
            max_depth=5,
            **settings,
        )
        booster.boost(8)
        runs.append((list_trees(booster), booster.losses(), booster.errors()))
    trees, losses, errors = runs[0]
    for other_trees, other_losses, other_errors in runs[1:]:
        for array, other in zip(trees, other_trees, strict=True):
            np.testing.assert_array_equal(array, other)
        np.testing.assert_array_equal(losses, other_losses)
        np.testing.assert_array_equal(errors, other_errors)


def test_copies_of_rows_are_weights():
    X, labels = draw_sample(200, 9, seed=3)
    copies = np.random.default_rng(0).integers(1, 4, size=200)
    weighted = make_joint_booster(X, labels, 2.0, weight=copies.astype(float))
    copied = make_joint_booster(np.repeat(X, copies, axis=0), np.repeat(labels, copies), 2.0)
    for booster in (weighted, copied):
        booster.boost(5)
    for array, other in zip(list_trees(weighted), list_trees(copied), strict=True):
        np.testing.assert_array_equal(array, other)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
@pytest.mark.parametrize("n_classes", [3, 10])
def test_validation_loss_is_that_of_the_twisted_posterior(alpha, n_classes):
    X, labels = draw_sample(700, n_classes, seed=4)
    validation_weight = np.where(np.arange(700) % 3 == 0, np.random.default_rng(0).random(700), 0.0)
    weight = (validation_weight == 0).astype(float)
    floor = 0.02
    booster = make_joint_booster(
        X, labels, alpha, step=1.0, weight=weight, validation_weight=validation_weight, posterior_floor=floor
    )
    booster.boost(15)
    forest = get_forest(booster)
    for rounds in (1, 7, 15):
        scores = forest.keep_first(rounds).scores(X)
        q = np.exp(-find_loss(scores / alpha, labels, 1.0))
        loss = -np.log(np.clip(q, floor, 1 - floor))
        expected = np.average(loss, weights=validation_weight)
        # Losses are rounded to a millionth, their weights to one part in 131,072.
        assert booster.losses()[rounds - 1] == pytest.approx(expected, abs=5e-5)
        wrong = scores.argmax(axis=1) != labels
        assert booster.errors()[rounds - 1] == pytest.approx(np.average(wrong, weights=validation_weight), abs=5e-5)


def test_rounds_begin_at_the_shares_of_the_classes():
    X, labels = draw_sample(300, 3, seed=5)
    booster = make_joint_booster(X, labels, 2.0, step=1e-9)
    booster.boost(1)
    shares = np.bincount(labels) / 300
    np.testing.assert_allclose(get_training_scores(booster)[0], 2.0 * np.log(shares), atol=1e-8)


def test_a_class_without_training_rows():
    X, labels = draw_sample(120, 4, seed=6)
    weight = (labels != 2).astype(float)
    booster = make_joint_booster(X, labels, weight=weight, validation_weight=1 - weight)
    booster.boost(5)
    assert np.isfinite(get_training_scores(booster)).all()
    assert (get_training_scores(booster).argmax(axis=1) != 2).all()
    assert (booster.errors() == 1).all()


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("n_classes", [3, 12])
def test_training_loss_falls(alpha, n_classes):
    X, labels = draw_sample(400, n_classes, seed=7)
    booster = make_joint_booster(X, labels, alpha, step=0.1 * alpha)
    losses = []
    for _ in range(20):
        booster.boost(1)
        losses.append(find_loss(get_training_scores(booster), labels, alpha).mean())
    assert (np.diff(losses) < 0).all()


def test_patience_ends_the_rounds():
    X, labels = draw_sample(300, 3, seed=8, noise=0.5)
    validation_weight = (np.arange(300) % 2).astype(float)
    booster = make_joint_booster(
        X, labels, step=2.0, weight=1 - validation_weight, validation_weight=validation_weight, max_depth=6
    )
    rounds = booster.boost(500, patience=5)
    assert rounds < 500
    assert rounds == np.argmin(booster.losses()) + 6
    assert len(booster.ensemble().keep_best()) == rounds - 5


def test_scores_so_large_that_all_gradients_vanish():
    X = np.repeat([[0.0], [1.0], [2.0]], 20, axis=0)
    labels = np.repeat([0, 1, 2], 20)
    booster = make_joint_booster(X, labels, step=1000.0)
    assert booster.boost(50) < 50
    assert np.isfinite(get_training_scores(booster)).all()


def test_what_cannot_be_boosted_together_is_refused():
    X, labels = draw_sample(60, 3, seed=9)
    with pytest.raises(ValueError, match="alpha must be finite"):
        make_joint_booster(X, labels, np.inf)
    with pytest.raises(ValueError, match="monotone"):
        make_joint_booster(X, labels, monotone=(1, 0, 0, 0))
    with pytest.raises(ValueError, match="cannot go on from scores"):
        make_booster(
            make_dataset(X, labels),
            ClippedLink(AlphaLoss(2.0)),
            0.5,
            TreeGrowth(),
            positive_class=None,
            start=np.zeros(60),
        )
