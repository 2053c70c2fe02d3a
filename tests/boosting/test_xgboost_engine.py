"""The engine over XGBoost's trees: round by round that of the compiled engine on the same bins, and what it refuses."""

import json
import sys

import numpy as np
import pytest
from scipy import sparse

import untwist
from helpers.noisy_rows import make_noisy_rows
from helpers.quick import make_classifier
from untwist import Growth, PILBoostClassifier, UntwistClassifier, _core
from untwist.boosting.engines.engine import EngineOptions, Rows, Task, TreeGrowth
from untwist.boosting.engines.xgboost.booster import XGBoostBooster
from untwist.boosting.engines.xgboost.dataset import XGBoostDataset
from untwist.boosting.engines.xgboost.trees import assemble_forest, find_last_below, read_trees
from untwist.boosting.engines.xgboost.weights import Weigher, find_array_library
from untwist.export import numbers, probabilities, to_xgboost
from untwist.links import CanonicalLink, ClippedLink
from untwist.losses import AlphaLoss, SquareLoss

xgboost = pytest.importorskip("xgboost")
ARRAYS = ("feature", "left", "threshold", "missing_left", "set")


def fit_both(X, y, *fit, **settings):
    """The same fit by XGBoost's trees and by the compiled engine."""
    settings = {"alpha": 2.0, "n_estimators": 12, "max_depth": 4, "random_state": 0, "n_jobs": 1} | settings
    theirs = make_classifier(engine="xgboost", **settings).fit(X, y, *fit)
    ours = make_classifier(**{k: v for k, v in settings.items() if k not in ("tree_method", "device")}).fit(X, y, *fit)
    return theirs, ours


def assert_same_rounds(theirs, ours, X):
    """Trees alike node by node; edges and scores to the rounding of XGBoost's leaves, which are singles.

    A score near the clip comes from leaves of little weight, and differs most: by 1e-5 of it at times.
    """
    forests = [(a.forest, b.forest) for a, b in zip(theirs.model_.ensembles, ours.model_.ensembles, strict=True)]
    for a, b in forests:
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
        np.testing.assert_allclose(a.edge, b.edge, atol=1e-7)
        np.testing.assert_allclose(a.gain, b.gain, atol=1e-6)
    np.testing.assert_allclose(theirs.decision_function(X), ours.decision_function(X), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"alpha": 1.0},
        {"alpha": 1.3, "max_depth": 2},
        {"alpha": np.inf},
        {"alpha": -2.0},
        {"alpha": 4.0, "link": "exact"},
        {"learning_rate": 0.3, "l2": 3.0},
        {"min_weight_fraction_leaf": 0.1},
        {"max_bins": 16},
        {"class_weight": "balanced"},
    ],
)
def test_rounds_are_those_of_the_compiled_engine(settings):
    X, y = make_noisy_rows()
    assert_same_rounds(*fit_both(X, y, **settings), X)


def test_trees_that_grow_by_leaves_have_the_same_leaves():
    X, y = make_noisy_rows()
    theirs, ours = fit_both(X, y, max_leaf_nodes=7, max_depth=None)
    np.testing.assert_allclose(theirs.edges_, ours.edges_, atol=1e-7)  # The nodes are numbered in another order.
    np.testing.assert_allclose(theirs.decision_function(X), ours.decision_function(X), atol=1e-6)


def test_rounds_are_the_same_with_weights_and_copies():
    X, y = make_noisy_rows(values=30)
    rng = np.random.default_rng(1)
    for weight in (rng.integers(0, 4, len(y)).astype(float), rng.exponential(size=len(y)), np.full(len(y), 1e-3)):
        # From the prior some rows lie so near the clip that XGBoost's leaves, which are singles, decide on a split.
        assert_same_rounds(*fit_both(X, y, weight, init="zero"), X)


def test_rounds_are_the_same_with_missing_values():
    X, y = make_noisy_rows(values=30)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    theirs, ours = fit_both(X, y, n_estimators=5, max_depth=2)
    np.testing.assert_array_equal(theirs.forest_.feature, ours.forest_.feature)
    np.testing.assert_array_equal(theirs.forest_.threshold, ours.forest_.threshold)
    np.testing.assert_allclose(theirs.decision_function(X), ours.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("codes", [True, False], ids=["codes", "numbers"])
@pytest.mark.parametrize("condition", [-np.inf, np.inf, -0.5, 0.0, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("missing_left", [0, 1])
def test_a_tree_sends_every_row_where_xgboost_does_even_by_an_infinite_condition(codes, condition, missing_left):
    known = np.array([10.0, 20.0, 30.0])
    table = np.array([[0.0], [1.0], [2.0], [3.0], [np.nan]])
    matrix = xgboost.DMatrix(table, label=[0, 0, 1, 1, 1])
    booster = xgboost.train({"max_depth": 1, "base_score": 0.0, "min_child_weight": 0.0}, matrix, 1)
    content = json.loads(booster.save_raw("json"))
    (tree,) = content["learner"]["gradient_booster"]["model"]["trees"]
    tree |= {"split_conditions": [condition, *tree["split_conditions"][1:]], "default_left": [missing_left, 0, 0]}
    planted = xgboost.Booster(model_file=bytearray(json.dumps(content).encode()))
    forest = assemble_forest(
        read_trees(planted.save_raw("json")),
        leverages=np.ones(1),
        edges=np.ones(1),
        sample_weights=np.ones(1),
        thresholds=[known] if codes else None,
        n_categories=np.zeros(1, dtype=np.int32),
        has_missing=np.ones(1, dtype=bool),
    )
    rows = np.array([[5.0], [15.0], [25.0], [35.0], [np.nan]]) if codes else table
    np.testing.assert_array_equal(forest.scores(rows), planted.predict(matrix, output_margin=True))


@pytest.mark.parametrize("method", ["hist", "approx", "exact"])
@pytest.mark.parametrize("direction", [-1, 1])
def test_missing_values_may_be_left_of_all_others(method, direction):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (500, 1)).astype(float)
    lost = rng.random(500) < 0.3
    X[lost] = np.nan
    y = (lost if direction < 0 else ~lost) ^ (rng.random(500) < 0.1)
    options = EngineOptions(growth=TreeGrowth(monotone=(direction,)), tree_method=method)
    link = ClippedLink(AlphaLoss(2.0))
    dataset = XGBoostDataset(Rows(X, y.astype(np.uint32), np.ones(500)), options)
    booster = XGBoostBooster(dataset, Task(link, 1.0, options.growth, positive_class=1))
    booster.boost(3)
    forest = booster.ensemble().forest
    assert (forest.missing_left[0], forest.threshold[0] < 0) == (1, True)
    np.testing.assert_allclose(forest.scores(X), booster.current_scores(), rtol=1e-12)


def test_rounds_are_the_same_for_several_classes():
    X, y = make_noisy_rows(classes=4)
    assert_same_rounds(*fit_both(X, y, n_estimators=6), X)


def test_rounds_are_the_same_beyond_the_rows_that_place_thresholds():
    X, y = make_noisy_rows(rows=120_000, columns=5)
    assert_same_rounds(*fit_both(X.astype(np.float32), y, n_estimators=5), X[:1000].astype(np.float32))


def test_rounds_are_the_same_on_a_sparse_table():
    X, y = make_noisy_rows(values=4)
    assert_same_rounds(*fit_both(sparse.csr_array(X), y), X)


@pytest.mark.parametrize("method", ["approx", "exact"])
def test_other_tree_methods_split_the_same_rows(method):
    X, y = make_noisy_rows(values=100)
    theirs, ours = fit_both(X, y, tree_method=method, n_estimators=4)
    np.testing.assert_array_equal(theirs.forest_.feature, ours.forest_.feature)
    np.testing.assert_allclose(theirs.edges_, ours.edges_, atol=1e-7)


def test_a_split_on_numbers_keeps_every_row_on_its_side():
    rng = np.random.default_rng(0)
    singles = np.concatenate([rng.normal(size=1000), [0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38, 1.0]]).astype(np.float32)
    below = find_last_below(singles)
    assert (below.astype(np.float32) < singles).all()
    assert (np.nextafter(below, np.inf).astype(np.float32) >= singles).all()
    largest = np.finfo(np.float32).max
    extremes = find_last_below(np.array([-np.inf, -largest, largest, np.inf], dtype=np.float32))
    tie = 2.0**128 - 2.0**103  # Half way between the largest single and the next one if there were one.
    np.testing.assert_array_equal(extremes[[0, 1, 3]], [-np.inf, -tie, np.nextafter(tie, 0.0)])
    X, y = make_noisy_rows()
    model = PILBoostClassifier(
        alpha=2.0, n_estimators=8, max_depth=5, engine="xgboost", growth=Growth(tree_method="exact")
    ).fit(X, y)
    rows = np.concatenate([X, np.nextafter(X, np.inf), model.forest_.threshold[:, None] * np.ones(X.shape[1])])
    plain = to_xgboost(model)
    expected = plain.predict(xgboost.DMatrix(rows), output_margin=True)
    np.testing.assert_allclose(model.decision_function(rows), expected, atol=1e-5)


def test_categories_are_learned():
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 12, 3000)
    y = (np.isin(colour, [1, 4, 7, 8]) ^ (rng.random(3000) < 0.1)).astype(int)
    X = np.column_stack([colour.astype(float), rng.normal(size=3000)])
    X[:50, 0] = np.nan
    model = PILBoostClassifier(alpha=2.0, n_estimators=20, max_depth=3, engine="xgboost", categorical_features=[0]).fit(
        X, y
    )
    truth = np.isin(np.arange(12), [1, 4, 7, 8])
    rows = np.column_stack([np.arange(12.0), np.zeros(12)])
    np.testing.assert_array_equal(model.predict(rows), truth)
    # One value is unknown and one is missing.
    assert np.isfinite(model.predict_proba([[99.0, 0.0], [np.nan, 0.0], [1.0, 0.0]])).all()
    fewer = PILBoostClassifier(alpha=2.0, n_estimators=5, max_depth=1, engine="xgboost", categorical_features=[0])
    assert fewer.fit(X, y).forest_.set.max() >= 0


def test_monotone_columns_are_monotone():
    X, y = make_noisy_rows()
    settings = {"n_estimators": 20, "max_depth": 4, "monotonic_cst": [1, 0, 0, 0, 0, 0]}
    model, ours = fit_both(X, y, **settings)
    rows = [np.column_stack([np.full(50, value), X[:50, 1:]]) for value in np.linspace(-3, 3)]
    assert (np.diff([model.decision_function(each) for each in rows], axis=0) >= -1e-12).all()
    np.testing.assert_allclose(model.edges_, ours.edges_, atol=1e-7)  # Bounds cut the values of leaves here.


def test_early_stopping_follows_the_rows_given():
    X, y = make_noisy_rows(4000)
    settings = {"n_estimators": 200, "early_stopping": 5, "learning_rate": 0.5}
    theirs, ours = fit_both(X[:3000], y[:3000], None, X[3000:], y[3000:], **settings)
    assert theirs.n_iter_ == ours.n_iter_ < 200
    for name in ("log_loss", "error"):
        kept = theirs.evals_result_["validation"][name]
        np.testing.assert_allclose(kept, ours.evals_result_["validation"][name], atol=2e-5)
    alone = make_classifier(alpha=2.0, max_depth=4, engine="xgboost", random_state=0, **settings).fit(X, y)
    assert 300 < len(alone.validation_rows_) < 500
    assert alone.n_iter_ < 200


def test_rows_and_columns_are_drawn():
    X, y = make_noisy_rows()
    settings = {
        "alpha": 2.0,
        "n_estimators": 20,
        "max_depth": 3,
        "engine": "xgboost",
        "subsample": 0.7,
        "max_features": 0.7,
    }
    drawn = [make_classifier(random_state=seed, **settings).fit(X, y) for seed in (0, 0, 1)]
    scores = [model.decision_function(X) for model in drawn]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert np.abs(scores[0] - scores[2]).max() > 0.01
    assert drawn[0].score(X, y) > 0.7


@pytest.mark.slow
def test_what_is_open_is_chosen_by_folds():
    X, y = make_noisy_rows(3000)
    settings = {"engine": "xgboost", "random_state": 0, "n_jobs": 1, "max_depth": 2}
    model = make_classifier(**settings).fit(X, y)
    again = make_classifier(**settings).fit(X[::-1], y[::-1])
    np.testing.assert_allclose(model.predict_proba(X), again.predict_proba(X), atol=1e-12)
    assert model.noise_.rate_neg > 0.02
    assert model.oof_proba_.shape == (3000, 2)
    assert len(model.choice_.tried) >= 2


def test_a_warm_start_goes_on_and_files_and_copies_change_no_bit(tmp_path):
    X, y = make_noisy_rows()
    settings = {"alpha": 2.0, "max_depth": 3, "engine": "xgboost", "subsample": 0.7, "random_state": 3}
    whole = make_classifier(n_estimators=10, **settings).fit(X, y)
    half = make_classifier(n_estimators=4, **settings).fit(X, y)
    untwist.save(half, tmp_path / "half.untwist")
    half = untwist.load(tmp_path / "half.untwist").set_params(n_estimators=10, warm_start=True).fit(X, y)
    np.testing.assert_array_equal(half.forest_.value, whole.forest_.value)
    untwist.save(whole, tmp_path / "whole.untwist")
    loaded = untwist.load(tmp_path / "whole.untwist")
    np.testing.assert_array_equal(loaded.predict_proba(X), whole.predict_proba(X))
    assert loaded.engine == "xgboost"


@pytest.mark.parametrize("alpha", [0.3, 1.0, 1.1, 2.0, 7.0, 1e6, np.inf])
@pytest.mark.parametrize("link", [ClippedLink, CanonicalLink])
def test_weights_are_those_of_the_link_to_a_unit(alpha, link):
    link = link(AlphaLoss(alpha))
    margins = np.concatenate([np.linspace(-5, 5, 1001), [0.0, 1e-300, -1e-300, 1e300, -1e300]])
    random_weight = np.random.default_rng(0).random(len(margins))
    for unit in (2.0**17, 2.0**24):
        for weight in (None, random_weight):
            found = Weigher(link, unit, "cpu")(margins, weight)
            assert found.dtype == np.float32
            assert (found * unit == np.floor(found * unit)).all()
            expected = link.weights(margins) * (1.0 if weight is None else weight)
            np.testing.assert_allclose(found, expected, atol=1 / unit + 1e-6)
    copies = np.array([0.0, 1.0, 3.0, 128.0])
    counted = Weigher(link, 2.0**17, "cpu", whole_copies=True)(np.full(4, 0.3), copies)
    np.testing.assert_array_equal(counted, counted[1] * copies.astype(np.float32))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tree_method": "gpu_hist"}, "tree_method must be one of"),
        ({"device": "tpu"}, "device must be"),
        ({"min_samples_leaf": 5}, 'min_samples_leaf=5 needs engine="compiled" or "reference", got the xgboost engine'),
        ({"tree_method": "exact", "device": "cuda"}, "exact"),
        ({"tree_method": "exact", "categorical_features": [0]}, "categor"),
        ({"tree_method": "exact", "max_leaf_nodes": 3}, "max_leaf_nodes"),
        ({"tree_method": "exact", "max_bins": 16}, "max_bins"),
    ],
)
def test_what_xgboost_cannot_do_is_refused(settings, message):
    X, y = make_noisy_rows(200, values=5)
    with pytest.raises(ValueError, match=message):
        make_classifier(alpha=2.0, n_estimators=2, max_depth=2, engine="xgboost", **settings).fit(X, y)


def test_few_different_rows_cannot_be_set_aside_by_their_contents():
    X = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 50, axis=0)
    y = np.random.default_rng(0).integers(0, 2, len(X))
    for settings in ({}, {"alpha": 2.0, "max_depth": 2, "n_estimators": 5, "early_stopping": True}):
        outcomes = []
        for seed in range(4):
            model = make_classifier(engine="xgboost", n_jobs=1, random_state=seed, **settings)
            try:
                model.fit(X, y)
            except ValueError as error:
                assert "too few different rows" in str(error)  # noqa: PT017 - some seeds are lucky
                outcomes.append("refused")
            else:
                assert len(model.evals_result_["validation"]["log_loss"])
        assert "refused" in outcomes


def test_an_approximate_fit_goes_on_to_the_same_model():
    X, y = make_noisy_rows(1500)
    settings = {"alpha": 2.0, "max_depth": 3, "engine": "xgboost", "tree_method": "approx", "max_bins": 20, "n_jobs": 1}
    whole = make_classifier(n_estimators=10, **settings).fit(X, y)
    half = make_classifier(n_estimators=5, **settings).fit(X, y)
    half.set_params(n_estimators=10, warm_start=True).fit(X, y)
    np.testing.assert_array_equal(half.forest_.value, whole.forest_.value)


def test_a_plain_xgboost_model_of_a_frame_has_its_names_and_contributions():
    pandas = pytest.importorskip("pandas")
    X, y = make_noisy_rows(400)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = PILBoostClassifier(alpha=2.0, n_estimators=5, max_depth=3).fit(frame, y)
    matrix = xgboost.DMatrix(frame)
    plain = to_xgboost(model)
    np.testing.assert_allclose(plain.predict(matrix, output_margin=True), model.decision_function(frame), atol=1e-5)
    contributions = plain.predict(matrix, pred_contribs=True)
    np.testing.assert_allclose(contributions.sum(axis=1), model.decision_function(frame), atol=1e-4)
    odd = PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=2).fit(frame.rename(columns={"a": "a < [b]"}), y)
    assert to_xgboost(odd).feature_names is None


def test_its_settings_need_the_engine():
    X, y = make_noisy_rows(200)
    with pytest.raises(ValueError, match="device='cuda' needs engine=\"xgboost\""):
        UntwistClassifier(device="cuda").fit(X, y)


class OnGPU:
    """As CuPy's arrays look to others."""

    __cuda_array_interface__ = None

    def __init__(self, values):
        self.values = values

    def get(self):
        return self.values


def test_tables_on_a_gpu_are_fetched_and_matrices_of_xgboost_refused():
    X, y = make_noisy_rows(300)
    settings = {"n_estimators": 3, "max_depth": 2, "engine": "xgboost", "n_jobs": 1}
    model = make_classifier(alpha=2.0, **settings).fit(OnGPU(X), OnGPU(y), OnGPU(np.ones(len(y))))
    np.testing.assert_array_equal(model.predict(OnGPU(X)), make_classifier(alpha=2.0, **settings).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="a matrix of XGBoost, which keeps no rows"):
        make_classifier(alpha=2.0, **settings).fit(xgboost.DMatrix(X), y)


def test_threads_do_not_matter():
    X, y = make_noisy_rows(2000)
    settings = {"n_estimators": 5, "max_depth": 3, "engine": "xgboost"}
    one, two = (make_classifier(alpha=2.0, n_jobs=n_jobs, **settings).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.forest_.value, two.forest_.value)


def test_without_xgboost_a_message_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "xgboost", None)
    X, y = make_noisy_rows(200)
    with pytest.raises(ImportError, match=r"untwist\[xgboost\]"):
        PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=2, engine="xgboost").fit(X, y)


def test_numbers_beyond_single_precision_are_refused_where_they_would_become_infinite():
    X, y = make_noisy_rows(200)
    X[0, 0] = 1e300
    model = PILBoostClassifier(
        alpha=2.0, n_estimators=2, max_depth=2, engine="xgboost", growth=Growth(tree_method="exact")
    )
    with pytest.raises(ValueError, match="single precision"):
        model.fit(X, y)
    model.set_params(growth__tree_method="hist").fit(X, y)  # Bins have no such limit.


def test_weight_bits_are_those_of_the_engine():
    assert [_core.weight_bits(float(n), n) for n in (10, 1000, 10**6, 10**9)] == [24, 21, 17, 17]


@pytest.mark.parametrize("engine", ["compiled", "xgboost"])
def test_a_plain_xgboost_model_has_the_scores(engine):
    X, y = make_noisy_rows(1500, classes=2, values=40)
    rng = np.random.default_rng(0)
    X[:, 0], X[rng.random(X.shape) < 0.05] = rng.integers(0, 9, len(X)), np.nan
    for labels in (y, np.array(["no", "yes"])[y], y + rng.integers(0, 2, len(y))):
        for alpha in (2.0, -3.0):
            settings = {"n_estimators": 9, "max_depth": 4, "engine": engine, "categorical_features": [0]}
            model = make_classifier(alpha=alpha, **settings).fit(X, labels)
            rows = numbers(model, np.vstack([X, np.full(X.shape[1], np.nan), np.full(X.shape[1], 99.0)]))
            kinds = ["c" if column == 0 else "q" for column in range(X.shape[1])]
            matrix = xgboost.DMatrix(rows, feature_types=kinds, enable_categorical=True)
            margins = to_xgboost(model).predict(matrix, output_margin=True)
            np.testing.assert_allclose(margins, model.decision_function(rows), atol=1e-5)
            np.testing.assert_allclose(probabilities(model, margins), model.predict_proba(rows), atol=1e-5)


def test_a_plain_xgboost_model_sends_even_the_largest_numbers_where_the_model_does():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((600, 1)) < 0.4, np.nan, rng.integers(0, 9, (600, 1)))
    y = np.isnan(X[:, 0]) ^ (rng.random(600) < 0.1)
    largest = float(np.finfo(np.float32).max)
    rows = np.array([[-largest], [0.0], [largest], [np.nan]])
    for direction in (-1, 1):  # Missing values are left of all others, and right of them.
        settings = {"n_estimators": 1, "max_depth": 1, "monotonic_cst": [direction], "engine": "xgboost"}
        model = make_classifier(alpha=2.0, **settings).fit(X, y)
        assert np.isinf(model.forest_.threshold[0])
        margins = to_xgboost(model).predict(xgboost.DMatrix(rows), output_margin=True)
        np.testing.assert_allclose(margins, model.decision_function(rows), atol=1e-6)


def test_a_plain_xgboost_model_of_classes_that_stop_apart(tmp_path):
    X, y = make_noisy_rows(1500, classes=3)
    model = PILBoostClassifier(alpha=2.0, n_estimators=40, max_depth=3, early_stopping=2, random_state=0)
    model.fit(X, y)
    assert len({len(one) for one in model.model_.ensembles}) > 1
    to_xgboost(model).save_model(tmp_path / "plain.ubj")
    loaded = xgboost.Booster(model_file=tmp_path / "plain.ubj")
    np.testing.assert_allclose(
        loaded.predict(xgboost.DMatrix(X), output_margin=True), model.decision_function(X), atol=1e-5
    )
    automatic = UntwistClassifier(random_state=0).fit(X[:500], y[:500] > 0)
    margins = to_xgboost(automatic).predict(xgboost.DMatrix(X), output_margin=True)
    np.testing.assert_allclose(probabilities(automatic, margins), automatic.predict_proba(X), atol=1e-4)


def test_what_weights_need_is_said(monkeypatch):
    with pytest.raises(ValueError, match="boost the alpha-loss only, got SquareLoss"):
        Weigher(ClippedLink(SquareLoss()), 1.0, "cpu")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match="device='cuda' needs CuPy"):
        find_array_library("cuda")
    assert find_array_library("cpu") is np
