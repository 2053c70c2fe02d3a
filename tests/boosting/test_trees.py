"""The compiled engine: equal to its naive twin, to the reference loop, and to itself on any threads and row order."""

import itertools
import math

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from helpers import histogram_twin
from helpers.engines import get_forest, get_training_scores, make_booster, make_dataset
from helpers.learners import make_paper_model
from untwist import PILBoostClassifier
from untwist.boosting.algorithm import pilboost
from untwist.boosting.engines.engine import TreeGrowth
from untwist.boosting.forest import count_threads
from untwist.links import CanonicalLink, ClippedLink, default_step_size
from untwist.losses import AlphaLoss


def draw_sample(n, columns, seed, values=None, missing=0.0, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    if values is not None:
        X = np.round(X * values / 4)
    y = np.where(X[:, 0] + X[:, 1] * X[:, -1] > 0, 1.0, -1.0)
    y = np.where(rng.random(n) < noise, -y, y)
    y[:2] = -1, 1
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def make_engine(X, y, link, step, *, max_bins=255, weight=None, categories=None, by_edge=True, n_jobs=1, **growth):
    data = make_dataset(X, y > 0, weight, categories=categories, max_bins=max_bins, n_jobs=n_jobs)
    return make_booster(data, link, step, TreeGrowth(**growth), weight=weight, by_edge=by_edge)


def grow_forest(X, y, link, step, rounds, *, depth=3, n_jobs=1, **settings):
    engine = make_engine(X, y, link, step, max_depth=depth, n_jobs=n_jobs, **settings)
    engine.boost(rounds)
    return get_forest(engine)


CASES = [
    {},
    {"depth": 1},
    {"depth": 5},
    {"max_bins": 4},
    {"max_bins": 16, "missing": 0.2},
    {"missing": 0.3},
    {"values": 3},
    {"values": 2, "missing": 0.1},
    {"l2": 2.5},
    {"weighted": True},
    {"weighted": True, "max_bins": 7, "missing": 0.1},
    {"n": 3},
    {"max_leaf_nodes": 4, "depth": 60},
    {"max_leaf_nodes": 6, "depth": 3, "missing": 0.1},
    {"max_leaf_nodes": 2},
    {"min_samples_leaf": 9},
    {"min_samples_leaf": 9, "weighted": True, "missing": 0.2},
    {"min_samples_leaf": 31},
    {"min_weight_fraction_leaf": 0.15},
    {"min_weight_fraction_leaf": 0.05, "weighted": True, "max_leaf_nodes": 5},
    {"categories": 5},
    {"categories": 5, "missing": 0.2},
    {"categories": 9, "missing": 0.1, "weighted": True, "max_leaf_nodes": 7, "min_samples_leaf": 3},
    {"monotone": (1, 0, 0, -1), "weighted": "real"},  # Equal bounds make ties of unequal splits, which weights break.
    {"monotone": (-1, 1, 0, 0), "missing": 0.2, "depth": 5, "l2": 1.0, "weighted": "real"},
    {"subsample": 0.6},
    {"subsample": 0.01, "n": 12},
    {"max_features": 0.5},
    {"subsample": 0.7, "max_features": 0.3, "weighted": True, "missing": 0.1},
    {"extra": True, "depth": 5},
    {"extra": True, "missing": 0.3, "values": 3, "weighted": True},
    {"extra": True, "missing": 0.9, "depth": 6},
    {"extra": True, "max_leaf_nodes": 7, "depth": 60, "min_samples_leaf": 4},
    {"extra": True, "categories": 9, "missing": 0.1, "min_weight_fraction_leaf": 0.05},
    {"extra": True, "monotone": (1, 0, 0, -1), "max_features": 0.7, "subsample": 0.7, "weighted": "real"},
    {"interactions": ((0,), (1,), (2,), (3,)), "depth": 4},
    {"interactions": ((0, 1), (1, 2), (2, 3)), "depth": 5, "missing": 0.1},
    {"interactions": ((0, 1, 2), (3,)), "max_leaf_nodes": 7, "depth": 60, "weighted": True},
    {"interactions": ((0, 3), (1, 2, 3)), "extra": True, "depth": 5},
    {"interactions": ((0, 1), (2, 3)), "monotone": (1, 0, 0, -1), "max_features": 0.7, "weighted": "real"},
    {"feature_weights": (1.0, 2.0, 0.0, 0.5), "max_features": 0.5},
    {"feature_weights": (0.0, 1.0, 0.0, 0.0), "max_features": 0.7, "depth": 2},
]

TWIN_NAMES = {"max_leaf_nodes": "max_leaves", "min_samples_leaf": "min_rows", "min_weight_fraction_leaf": "min_share"}


ALPHAS = [0.5, 1 - 1e-5, 1.0, 1 + 1e-12, 1 + 1e-5, 1.001, 1.1, 2.0, 4.0, math.inf]


@pytest.mark.parametrize(
    ("case", "alpha"),
    [(case, alpha) for i, case in enumerate(CASES) for alpha in (ALPHAS if i < 3 else (1.1, ALPHAS[i % 10]))],
    ids=str,
)
@pytest.mark.thinned(5)
def test_equals_the_naive_twin(alpha, case):
    data = {"n", "values", "missing", "weighted", "categories"}
    X, y = draw_sample(case.get("n", 60), 4, seed=7, values=case.get("values"), missing=case.get("missing", 0.0))
    rng = np.random.default_rng(1)
    weight = {None: None, True: rng.integers(1, 5, len(y)).astype(float), "real": rng.uniform(1, 4, len(y))}[
        case.get("weighted")
    ]
    settings = {"depth": 3, "seed": 5} | {name: value for name, value in case.items() if name not in data}
    if "categories" in case:
        X[:, 1:3] = np.where(np.isnan(X[:, 1:3]), np.nan, rng.integers(0, case["categories"], (len(y), 2)))
        settings["categories"] = {1: case["categories"], 2: case["categories"]}
    link = ClippedLink(AlphaLoss(alpha))
    step = 0.97 * default_step_size(link)  # The step itself can put margins on the clip to the last bit.
    ours = grow_forest(X, y, link, step, 6, weight=weight, **settings)
    names = {TWIN_NAMES.get(name, name): value for name, value in settings.items()}
    twin = list(histogram_twin.boost(X, y, link, step, rounds=6, sample_weight=weight, **names))
    assert len(ours) == len(twin)
    for t, (_, edge, scores) in enumerate(twin):
        # One unit of a fixed-point weight may round the other way in single precision.
        assert ours.edge[t] == pytest.approx(edge, rel=2e-6, abs=1e-7)
        np.testing.assert_allclose(ours.scores(X, last=t + 1), scores, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", [ClippedLink, CanonicalLink])
@pytest.mark.parametrize("alpha", [1.1, 2.0, 4.0])
@pytest.mark.parametrize(("seed", "by_edge"), [(0, True), (1, True), (2, False)])
def test_equals_the_reference_loop_where_both_see_the_same_splits(kind, alpha, seed, by_edge):
    """Few distinct values per column, real-valued noise in the sample weights so that no two gains are equal."""
    X, y = draw_sample(300, 5, seed=seed, values=6)
    weight = np.random.default_rng(seed).uniform(0.5, 1.0, len(y))
    link = kind(AlphaLoss(alpha))
    learner = DecisionTreeRegressor(max_depth=3, random_state=0)
    step = 1.0 if by_edge else 0.3
    ours = grow_forest(X, y, link, step, 10, weight=weight, by_edge=by_edge)
    loop = pilboost(X, y, learner, link, step, sample_weight=weight, by_edge=by_edge)
    for t, one in enumerate(itertools.islice(loop, 10)):
        assert ours.edge[t] == pytest.approx(one.edge, rel=1e-4)
        np.testing.assert_allclose(y * ours.scores(X, last=t + 1), one.margins, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("n", [50, 9000, 70_000])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.thinned(3)
def test_the_same_bits_for_any_threads_and_any_order_of_the_rows(n, weighted):
    X, y = draw_sample(n, 12, seed=3, missing=0.05)
    X[:, 3] = np.round(X[:, 3])
    rng = np.random.default_rng(0)
    weight = rng.random(n) if weighted else None
    order = rng.permutation(n)
    link = ClippedLink(AlphaLoss(4.0))
    reference = grow_forest(X, y, link, 2.0, 12, depth=5, weight=weight)
    shuffled = None if weight is None else weight[order]
    for other in (
        grow_forest(X, y, link, 2.0, 12, depth=5, weight=weight, n_jobs=2),
        grow_forest(X, y, link, 2.0, 12, depth=5, weight=weight, n_jobs=5),
        grow_forest(X[order], y[order], link, 2.0, 12, depth=5, weight=shuffled, n_jobs=2),
        grow_forest(np.asfortranarray(X), y, link, 2.0, 12, depth=5, weight=weight),
    ):
        for name in ("edge", "offset", "feature", "left", "threshold", "missing_left", "value", "gain", "set", "codes"):
            np.testing.assert_array_equal(getattr(other, name), getattr(reference, name))
    np.testing.assert_array_equal(reference.scores(X, n_jobs=1), reference.scores(X, n_jobs=2))


def test_many_rows_agree_with_exact_arithmetic_to_the_stated_tolerance():
    """17 bits for many rows: edges are within 2^-16 of exact."""
    X, y = draw_sample(30_000, 6, seed=5)
    X = np.round(3 * X)
    link = ClippedLink(AlphaLoss(2.0))
    ours = grow_forest(X, y, link, 4.0, 20, n_jobs=2)
    learner = DecisionTreeRegressor(max_depth=3, random_state=0)
    for t, one in enumerate(itertools.islice(pilboost(X, y, learner, link, 4.0), 20)):
        assert ours.edge[t] == pytest.approx(one.edge, abs=2**-16)


def test_rows_beyond_the_clip_come_back_when_the_tree_turns_against_them():
    """Margins of rows of weight 0 are still updated: the scores of the forest are those of training."""
    X, y = draw_sample(400, 3, seed=9, noise=0.3)
    link = ClippedLink(AlphaLoss(8.0))
    ours = grow_forest(X, y, link, 5.0, 60)
    beyond = [(np.abs(y * ours.scores(X, last=t)) >= link.clip) for t in range(1, 61)]
    assert any((before & ~after).any() for before, after in itertools.pairwise(beyond))
    for t in (1, 30, 59):
        weights = link.weights(y * ours.scores(X, last=t))
        h = ours.scores(X, t, t + 1) / ours.leverage[t]
        assert np.mean(weights * y * h) == pytest.approx(ours.edge[t], abs=1e-6)


def test_missing_values_learn_a_direction_and_unseen_ones_follow_the_majority():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [1.0], [np.nan], [np.nan]])
    y = np.array([-1.0, -1.0, 1.0, 1.0, 1.0, -1.0, -1.0])
    link = ClippedLink(AlphaLoss(2.0))
    learned = grow_forest(X, y, link, 1.0, 1, depth=1)
    assert learned.scores(np.array([[np.nan]]))[0] < 0
    unseen = grow_forest(X[:5], y[:5], link, 1.0, 1, depth=1)
    assert unseen.scores(np.array([[np.nan]]))[0] > 0  # Three of five are positive.
    only_missing = grow_forest(np.where(np.isnan(X), np.nan, 3.0), y, link, 1.0, 1, depth=1)
    assert only_missing.scores(np.array([[np.nan], [3.0], [-9.0]])).round(3).tolist() == pytest.approx(
        only_missing.scores(np.array([[np.nan], [3.0], [3.0]])).round(3).tolist()
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_values(dtype):
    big = np.finfo(dtype).max
    X = np.array([[-big, 5e-324], [-1, 0], [0, 0], [1, 0], [big, -0.0], [big, 1e-300]], dtype=dtype)
    y = np.array([-1.0, -1, -1, 1, 1, 1])
    ours = grow_forest(X, y, ClippedLink(AlphaLoss(2.0)), 1.0, 3, depth=2)
    assert (np.sign(ours.scores(X)) == y).all()
    assert np.isfinite(ours.scores(np.array([[np.inf, np.inf], [-np.inf, np.nan]], dtype=dtype))).all()


def test_constant_columns_and_ties():
    X, y = draw_sample(100, 3, seed=4)
    link = ClippedLink(AlphaLoss(2.0))
    plain = grow_forest(X, y, link, 2.0, 5)
    padded = grow_forest(np.column_stack([np.ones(100), X, X]), y, link, 2.0, 5)
    np.testing.assert_array_equal(padded.feature, np.where(plain.feature >= 0, plain.feature + 1, -1))
    np.testing.assert_array_equal(padded.value, plain.value)
    flat = grow_forest(np.ones((100, 2)), y, link, 2.0, 3)
    assert (flat.feature == -1).all()


def test_a_fit_ends_when_all_weights_are_zero():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    y = np.repeat([-1.0, 1.0], 5)
    assert len(grow_forest(X, y, ClippedLink(AlphaLoss(2.0)), 4.0, 50)) == 1
    assert make_paper_model(alpha=2.0, step_size=4.0, n_estimators=50).fit(X, y).n_iter_ == 1


def test_rounds_in_blocks_one_at_a_time_and_at_once_are_the_same():
    X, y = draw_sample(300, 4, seed=6)
    link = ClippedLink(AlphaLoss(1.5))
    for settings in ({}, {"subsample": 0.5, "max_features": 0.5, "seed": 3}):
        at_once, single = (make_engine(X, y, link, 2.0, **settings) for _ in range(2))
        at_once.boost(37)
        for _ in range(37):
            single.boost(1)
        one, other = (get_forest(engine) for engine in (at_once, single))
        np.testing.assert_array_equal(one.value, other.value)
        np.testing.assert_array_equal(get_training_scores(at_once), one.scores(X))
        rest = make_booster(
            make_dataset(X, y > 0),
            link,
            2.0,
            TreeGrowth(**settings),
            start=one.keep_first(20).scores(X),
            first_round=20,
        )
        rest.boost(17)
        np.testing.assert_array_equal(one.keep_first(20).append(get_forest(rest)).value, one.value)


@pytest.mark.parametrize(("n_jobs", "expected"), [(1, 1), (3, 3)])
def test_n_jobs(n_jobs, expected):
    assert count_threads(n_jobs) == expected
    assert count_threads(None) == count_threads(-1) >= count_threads(-2) >= 1


def test_strided_and_read_only_input():
    X, y = draw_sample(200, 8, seed=2)
    link = ClippedLink(AlphaLoss(2.0))
    view = X[:, ::2]
    frozen = view.copy()
    frozen.flags.writeable = False
    one, other = grow_forest(view, y, link, 2.0, 5), grow_forest(frozen, y, link, 2.0, 5)
    np.testing.assert_array_equal(one.value, other.value)
    np.testing.assert_array_equal(one.scores(view), other.scores(frozen))


def test_importances_are_the_gain_share():
    X, y = draw_sample(500, 4, seed=1)
    compiled = make_paper_model(n_estimators=30, random_state=0).fit(X, y)
    reference = make_paper_model(n_estimators=30, engine="reference", random_state=0).fit(X, y)
    np.testing.assert_allclose(compiled.feature_importances_, reference.feature_importances_, atol=0.05)


def test_the_border_refuses_what_does_not_fit():
    X, y = draw_sample(20, 3, seed=1)
    ours = grow_forest(X, y, ClippedLink(AlphaLoss(2.0)), 1.0, 2)
    with pytest.raises(ValueError, match="range of the trees"):
        ours.scores(X, last=3)
    with pytest.raises(ValueError, match="one label per row"):
        grow_forest(X, y[:-1], ClippedLink(AlphaLoss(2.0)), 1.0, 2)
    with pytest.raises(ValueError, match="must have the columns"):
        ours.scores(X[:, :1])
    whole = np.array([[2**24], [2**24 + 1]])
    split = grow_forest(whole.astype(float), np.array([-1.0, 1.0]), ClippedLink(AlphaLoss(2.0)), 1.0, 1)
    # The numbers are not rounded to float32 on the way.
    np.testing.assert_array_equal(np.sign(split.scores(whole)), [-1, 1])
    packed = np.zeros(20, dtype=[("flag", "i1"), ("x", "f8", 3)])
    packed["x"] = X
    np.testing.assert_array_equal(ours.scores(packed["x"]), ours.scores(X))


def test_l2_counts_rows_whatever_the_weights():
    X, y = draw_sample(200, 4, seed=8)
    link = ClippedLink(AlphaLoss(2.0))
    copies = np.repeat(np.arange(200), np.where(np.arange(200) == 0, 50, 2))
    weight = np.where(np.arange(200) == 0, 50.0, 2.0)
    for rows, weights in ((np.repeat(np.arange(200), 2), np.full(200, 2.0)), (copies, weight)):
        weighted = grow_forest(X, y, link, 2.0, 8, l2=5.0, weight=weights)
        repeated = grow_forest(X[rows], y[rows], link, 2.0, 8, l2=5.0)
        np.testing.assert_allclose(weighted.scores(X), repeated.scores(X), rtol=1e-4, atol=1e-5)


def test_one_heavy_row_does_not_wipe_out_the_others():
    X, _ = draw_sample(20_000, 3, seed=1)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    weight = np.ones(20_000)
    weight[0] = 1e4
    ours = grow_forest(X, y, ClippedLink(AlphaLoss(2.0)), 4.0, 30, weight=weight)
    assert np.mean(np.sign(ours.scores(X)) == y) > 0.99


@pytest.mark.parametrize("step", [1e39, 1e100])
def test_absurd_steps_keep_the_edges_in_bounds(step):
    X, y = draw_sample(300, 3, seed=1)
    assert (np.abs(grow_forest(X, y, ClippedLink(AlphaLoss(2.0)), step, 10).edge) <= 1).all()


def test_a_heavy_value_takes_one_bin_wherever_it_lies():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(20_000) < 0.95, 0.0, rng.uniform(-1.0, -0.001, 20_000))
    y = np.where(np.sin(40 * x) >= 0, 1.0, -1.0)
    accuracy = []
    for X in (x[:, None], -x[:, None]):
        ours = grow_forest(X, y, ClippedLink(AlphaLoss(1.1)), 2.0, 30, depth=5)
        accuracy.append(np.mean(np.sign(ours.scores(X))[x < 0] == y[x < 0]))
    assert min(accuracy) > 0.95
    assert abs(accuracy[0] - accuracy[1]) < 0.02


@pytest.mark.slow
def test_the_certificate_allows_for_the_rounding_of_many_rows():
    X, y = np.repeat([[0.0], [1.0]], 10_000, axis=0), np.repeat([0, 1], 10_000)
    model = make_paper_model(1.1, step_size=2.0, n_estimators=100).fit(X, y)
    assert "violated" not in model.certificate(X, y).implied.verdicts


@pytest.mark.parametrize("common", [10, 250])
def test_values_that_a_sample_of_many_rows_misses_still_count(common):
    """Few values in the sample: the column is counted in full; 20 rare ones are too many beside 250, not beside 10."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, common, 120_000).astype(float)
    rare = np.arange(20) * 6000
    x[rare] = 1000 + np.arange(20)
    y, weight = np.where(rng.random(len(x)) < 0.5, 1.0, -1.0), np.full(len(x), 1e-3)
    y[rare], weight[rare] = np.where(np.isin(np.arange(20), [7, 8, 9]), 1.0, -1.0), 10.0
    ours = grow_forest(x[:, None], y, ClippedLink(AlphaLoss(1.1)), 2.0, 10, depth=3, weight=weight)
    assert (np.sign(ours.scores(x[rare][:, None])) == y[rare]).all()


def test_fields_of_packed_records_are_copied_and_refused_at_the_border():
    records = np.zeros(300, dtype=[("one", "u1"), ("X", "<f8", 3)])
    records["X"] = np.random.default_rng(0).normal(size=(300, 3))
    X, plain = records["X"], records["X"].copy()
    assert not X.flags.aligned
    model = PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2).fit(X, plain[:, 0] > 0)
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(plain))
    shifted = np.frombuffer(bytearray(b"\0" + plain.tobytes()), dtype=np.float64, offset=1).reshape(plain.shape)
    with pytest.raises(ValueError, match="aligned"):
        model.forest_.prepared.add_scores(shifted, 0, 3, 1, np.zeros(300))
