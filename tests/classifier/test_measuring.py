"""Metrics of one's own, ranges of rounds."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, brier_score_loss, get_scorer, log_loss, make_scorer, roc_auc_score

from helpers.small_fits import draw_sample, make_model
from untwist.batches import Batches
from untwist.boosting.measuring import read_metric
from untwist.checkpoints import Checkpoint, resumed
from untwist.files import dumps, loads

ENGINES = [{}, {"engine": "reference"}, {"engine": "xgboost"}, {"estimator": Ridge()}]


def skip_without_xgboost(settings):
    if settings.get("engine") == "xgboost":
        pytest.importorskip("xgboost")


def lightgbms_way(y_true, y_proba):
    return "mean_square", float(np.mean((y_true - y_proba) ** 2)), False


def stage_twisted_posteriors(model, X):
    """What noisy labels follow after each round, by the scores of the rounds."""
    fitted = model.model_
    return [fitted.posterior.twisted(scores) for scores in fitted.staged_scores(fitted.encoder.encode(X))]


@pytest.mark.parametrize("settings", ENGINES, ids=str)
def test_a_metric_is_that_of_the_staged_twisted_posteriors(settings):
    skip_without_xgboost(settings)
    X, y = draw_sample(noise=0.25)
    X_val, y_val = draw_sample(90, seed=1, noise=0.25)
    weight = np.random.default_rng(0).random(90)
    cases = {
        "roc_auc": ("roc_auc", lambda p: roc_auc_score(y_val, p[:, 1], sample_weight=weight)),
        "neg_log_loss": ("neg_log_loss", lambda p: -log_loss(y_val, p, sample_weight=weight)),
        "eval_log_loss": (log_loss, lambda p: log_loss(y_val, p, sample_weight=weight)),
        "brier_score_loss": (brier_score_loss, lambda p: brier_score_loss(y_val, p[:, 1], sample_weight=weight)),
        "mean_square": (lightgbms_way, lambda p: np.mean((y_val - p[:, 1]) ** 2)),
        "accuracy_score": (
            make_scorer(get_scorer("accuracy")._score_func),
            lambda p: np.average(p.argmax(axis=1) == y_val, weights=weight),
        ),
    }
    for name, (metric, find) in cases.items():
        model = make_model(5, eval_metric=metric, **settings)
        model.fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=weight)
        curve = model.evals_result_["validation"][name]
        assert {"log_loss", "error"} <= model.evals_result_["validation"].keys()
        np.testing.assert_allclose(curve, [find(p) for p in stage_twisted_posteriors(model, X_val)], rtol=1e-6)


def test_early_stopping_goes_by_the_metric_and_its_direction():
    X, y = draw_sample(300, noise=0.3)
    X_val, y_val = draw_sample(150, seed=1, noise=0.3)
    settings = {"early_stopping": 6, "learning_rate": 0.5}
    for metric, sign in (("roc_auc", 1), (roc_auc_score, 1), (lightgbms_way, -1), (log_loss, -1)):
        model = make_model(200, eval_metric=metric, **settings).fit(X, y, X_val=X_val, y_val=y_val)
        (curve,) = (
            values for name, values in model.evals_result_["validation"].items() if name not in ("error", "log_loss")
        )
        best = int(np.argmax(sign * np.array(curve)))
        assert model.n_iter_ == best + 1 < 200
        assert len(curve) == best + 1 + 6
    rounds = iter(range(100))

    def eager_score(y_true, y_proba):
        return next(rounds)

    forever = make_model(30, eval_metric=eager_score, **settings).fit(X, y, X_val=X_val, y_val=y_val)
    assert forever.n_iter_ == 30 > make_model(30, **settings).fit(X, y, X_val=X_val, y_val=y_val).n_iter_
    held_out = make_model(200, eval_metric="roc_auc", **settings).fit(X, y)
    assert 0 < held_out.n_iter_ < 200
    assert len(held_out.validation_rows_) > 0


def test_several_classes_stop_after_the_same_round():
    X, y = draw_sample(300, classes=3, noise=0.3)
    X_val, y_val = draw_sample(150, classes=3, seed=1, noise=0.3)
    names = np.array(["a", "b", "c"])

    def top_score(y_true, y_proba, sample_weight):
        assert y_proba.shape == (150, 3)
        return np.average(names[y_proba.argmax(axis=1)] == y_true, weights=sample_weight)

    model = make_model(80, eval_metric=top_score, early_stopping=True, learning_rate=0.5)
    model.fit(X, names[y], X_val=X_val, y_val=names[y_val])
    assert len({len(forest) for forest in model.forest_}) == 1
    curve = model.evals_result_["validation"]["top_score"]
    assert model.n_iter_ == int(np.argmax(curve)) + 1
    assert np.max(curve) == pytest.approx(model.score(X_val, names[y_val]))


def test_a_warm_start_goes_on_with_the_curve():
    X, y = draw_sample()
    X_val, y_val = draw_sample(60, seed=1)
    model = make_model(3, warm_start=True, eval_metric="roc_auc").fit(X, y, X_val=X_val, y_val=y_val)
    model.set_params(n_estimators=7).fit(X, y, X_val=X_val, y_val=y_val)
    at_once = make_model(7, eval_metric="roc_auc").fit(X, y, X_val=X_val, y_val=y_val)
    curves = at_once.evals_result_["validation"]
    assert model.evals_result_["validation"].keys() == curves.keys() == {"log_loss", "error", "roc_auc"}
    for what, curve in curves.items():
        np.testing.assert_allclose(model.evals_result_["validation"][what], curve, rtol=1e-9)


def compare_with_noisy_labels(**settings):
    """A fit by a metric of noisy labels, and the log-loss of the same rounds by their twisted posteriors."""
    X, y = draw_sample(300, noise=0.3)
    X_val, y_val = draw_sample(150, seed=1, noise=0.3)
    model = make_model(20, early_stopping=20, learning_rate=0.5, **settings)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    whole = make_model(20, learning_rate=0.5, **settings | {"eval_metric": None}).fit(X, y)
    return model, [log_loss(y_val, p) for p in stage_twisted_posteriors(whole, X_val)]


@pytest.mark.parametrize("settings", [{"alpha": -2.0}, {"alpha": 4.0}], ids=str)
def test_noisy_labels_are_compared_with_the_posterior_that_they_follow(settings):
    model, losses = compare_with_noisy_labels(eval_metric="neg_log_loss", **settings)
    np.testing.assert_allclose(-model.evals_result_["validation"]["neg_log_loss"], losses, rtol=1e-6)
    assert model.n_iter_ == np.argmin(losses) + 1


def test_a_negative_alpha_stops_by_the_ranks_that_the_labels_follow():
    positive, negative = (compare_with_noisy_labels(eval_metric="roc_auc", alpha=alpha)[0] for alpha in (2.0, -2.0))
    assert negative.n_iter_ == positive.n_iter_
    curves = [one.evals_result_["validation"]["roc_auc"] for one in (positive, negative)]
    np.testing.assert_array_equal(*curves)


# Fits that go on


def boost_on(model, rounds, *data, **named):
    return model.set_params(n_estimators=rounds).fit(*data, **named)


STOPPING = {"early_stopping": 12, "learning_rate": 0.5}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("rounds", [5, 30])
def test_a_checkpoint_goes_on_by_the_metric_to_the_same_model(tmp_path, classes, rounds):
    X, y = draw_sample(300, classes=classes, noise=0.3)
    settings = STOPPING | {"eval_metric": "accuracy"}
    whole = make_model(30, **settings).fit(X, y)
    stop = [Checkpoint(tmp_path / "run.untwist", every=5), lambda progress: progress.round == rounds]
    make_model(30, callbacks=stop, **settings).fit(X, y)
    again = resumed(make_model(30, **settings), tmp_path / "run.untwist")
    assert again.fit(X, y).n_iter_ == whole.n_iter_ < 30
    np.testing.assert_array_equal(again.decision_function(X), whole.decision_function(X))
    assert str(again.evals_result_) == str(whole.evals_result_)


@pytest.mark.parametrize(
    ("earlier", "init_score"), [({}, False), ({"eval_metric": "accuracy"}, False), ({"eval_metric": "accuracy"}, True)]
)
def test_a_warm_start_by_another_metric_measures_the_rounds_before_it(earlier, init_score):
    X, y = draw_sample(300, noise=0.3)
    X_val, y_val = draw_sample(150, seed=1, noise=0.3)
    data = {"X_val": X_val, "y_val": y_val}
    if init_score:
        data |= {"init_score": X[:, 0], "init_score_val": X_val[:, 0]}
    model = make_model(8, warm_start=True, learning_rate=0.5, **earlier)
    if earlier:
        model.fit(X, y, **data)
    else:
        model.fit(X, y, init_score=data.get("init_score"))
    model.set_params(**STOPPING, eval_metric="roc_auc")
    boost_on(model, 20, X, y, **data)
    at_once = make_model(20, **STOPPING, eval_metric="roc_auc").fit(X, y, **data)
    assert model.n_iter_ == at_once.n_iter_
    assert model.evals_result_["validation"].keys() == {"log_loss", "error", "roc_auc"}
    np.testing.assert_allclose(
        model.evals_result_["validation"]["roc_auc"], at_once.evals_result_["validation"]["roc_auc"]
    )
    lengths = {len(curve) for curves in model.evals_result_.values() for curve in curves.values()}
    assert len(lengths) == 1
    kept = model.n_iter_
    assert boost_on(model, kept, X, y, **data).n_iter_ == kept  # There is nothing left to do.


def test_rounds_that_have_trained_on_validation_rows_are_not_judged_by_them():
    X, y = draw_sample(300, noise=0.3)
    model = make_model(8, warm_start=True, learning_rate=0.5).fit(X, y)
    model.set_params(**STOPPING, eval_metric="roc_auc")
    curves = boost_on(model, 12, X, y).evals_result_
    np.testing.assert_array_equal(np.isnan(curves["validation"]["roc_auc"]), np.arange(12) < 8)
    assert model.n_iter_ == np.nanargmax(curves["validation"]["roc_auc"]) + 1
    # With no round that can be judged, nothing says which ones to cut off.
    model = make_model(8, warm_start=True, learning_rate=0.5).fit(X, y)
    assert model.set_params(**STOPPING, eval_metric="roc_auc").fit(X, y).n_iter_ == 8


def test_rounds_of_batches_are_measured_again(tmp_path):
    pytest.importorskip("pyarrow")
    X, y = draw_sample(90)
    X_val, y_val = draw_sample(60, seed=1)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    blocks = Batches(tmp_path / "rows.parquet")
    data = {"X_val": pd.DataFrame(X_val, columns=list("abcd")), "y_val": y_val}
    model = boost_on(make_model(2, warm_start=True, eval_metric="roc_auc").fit(blocks, y, **data), 4, blocks, y, **data)
    at_once = make_model(4, eval_metric="roc_auc").fit(frame, y, **data)
    assert str(model.evals_result_) == str(at_once.evals_result_)


def test_classes_that_ended_apart_keep_what_they_had_at_the_best_round():
    X, y = draw_sample(300, classes=3, noise=0.3)
    X_val, y_val = draw_sample(150, classes=3, seed=1, noise=0.3)
    model = make_model(30, warm_start=True, **STOPPING | {"early_stopping": 2}).fit(X, y, X_val=X_val, y_val=y_val)
    before = [len(forest) for forest in model.forest_]
    assert len(set(before)) > 1
    rounds = iter(range(100))

    def eager_score(y_true, y_proba):
        return min(next(rounds), max(before) + 1)  # It is at its best after two rounds more.

    model.set_params(eval_metric=eager_score)
    boost_on(model, max(before) + 4, X, y, X_val=X_val, y_val=y_val)
    assert [len(forest) for forest in model.forest_] == [one + 2 for one in before]


def test_callbacks_see_what_was_measured():
    X, y = draw_sample()
    seen = []
    model = make_model(3, eval_metric="roc_auc", callbacks=[lambda progress: seen.append(progress.model())], **STOPPING)
    model.fit(X, y)
    for count, one in enumerate(seen, start=1):
        assert {len(curve) for curve in one.evals_result_["validation"].values()} == {count}
        assert "roc_auc" in one.evals_result_["validation"]


def test_a_metric_that_measures_nothing_is_named():
    X, y = draw_sample(80)
    with pytest.warns(UserWarning, match="eval_metric measures nothing in this fit: give X_val"):
        make_model(2, eval_metric="roc_auc").fit(X, y)


def unclear(y_true, y_proba):
    return float(np.mean(y_true == (y_proba > 0.5)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eval_metric": "no_such"}, "eval_metric must be None, the name of a scorer .* got 'no_such'"),
        ({"eval_metric": 3}, "eval_metric must be None, the name of a scorer"),
        ({"eval_metric": unclear}, "eval_metric=unclear must say whether a larger value is better"),
        ({"eval_metric": lambda y, p: ("own", "much", True)}, "must be a number"),
    ],
)
def test_what_cannot_be_measured_is_named(settings, message):
    X, y = draw_sample(80)
    with pytest.raises(ValueError, match=message):
        make_model(**settings).fit(X, y, X_val=X, y_val=y)


def test_curves_do_not_change_the_model_and_do_not_depend_on_order():
    X, y = draw_sample()
    X_val, y_val = draw_sample(90, seed=1)
    order, order_val = (np.random.default_rng(0).permutation(n) for n in (len(y), 90))
    plain = make_model().fit(X, y)
    measured = make_model(eval_metric="roc_auc").fit(X, y, X_val=X_val, y_val=y_val)
    np.testing.assert_array_equal(plain.decision_function(X), measured.decision_function(X))
    other = make_model(eval_metric="roc_auc")
    other.fit(X[order], y[order], X_val=X_val[order_val], y_val=y_val[order_val])
    assert str(other.evals_result_) == str(measured.evals_result_)


def test_files_keep_the_name_of_a_metric_and_leave_functions_and_curves_behind():
    X, y = draw_sample()
    model = make_model(eval_metric="roc_auc").fit(X, y, X_val=X, y_val=y)
    assert loads(dumps(model)).eval_metric == "roc_auc"
    assert "roc_auc" in model.evals_result_["validation"]
    assert loads(dumps(model)).evals_result_["validation"].keys() == {"log_loss", "error"}
    measured = make_model(eval_metric=log_loss).fit(X, y, X_val=X, y_val=y)
    assert loads(dumps(measured)).eval_metric is None


# Ranges of rounds


@pytest.mark.parametrize("settings", ENGINES, ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_range_of_rounds_is_the_start_and_these_rounds(settings, classes):
    skip_without_xgboost(settings)
    X, y = draw_sample(classes=classes)
    model = make_model(6, alpha=1.1, **settings).fit(X, y)
    stages = [np.tile(model.start_, (len(X), 1)).reshape(len(X), -1)]
    stages += [scores.reshape(len(X), -1) for scores in model.staged_decision_function(X)]
    for begin, end in ((0, 6), (0, 2), (2, 5), (5, 6)):
        expected = stages[0] + stages[end] - stages[begin]
        found = model.decision_function(X, iteration_range=(begin, end))
        np.testing.assert_allclose(found.reshape(len(X), -1), expected, atol=1e-12)
        proba = model.predict_proba(X, iteration_range=(begin, end))
        np.testing.assert_allclose(proba, model.model_.posterior.clean(found))
        twisted = model.predict_proba_twisted(X, iteration_range=(begin, end))
        np.testing.assert_allclose(twisted, model.model_.posterior.twisted(expected.reshape(found.shape)), atol=1e-12)
        np.testing.assert_array_equal(model.predict(X, iteration_range=(begin, end)), model.model_.choose_labels(found))
    for everything in (None, (0, 0), (0, 6)):
        np.testing.assert_array_equal(model.predict_proba(X, iteration_range=everything), model.predict_proba(X))


def test_a_shorter_range_is_the_shorter_fit():
    X, y = draw_sample()
    longer, shorter = make_model(8).fit(X, y), make_model(3).fit(X, y)
    np.testing.assert_array_equal(longer.predict_proba(X, iteration_range=(0, 3)), shorter.predict_proba(X))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0, 9), "within the 6 rounds"),
        ((3, 3), "begin < end"),
        ((-1, 2), "0 <= begin"),
        ((1,), "two whole numbers"),
        (5, "two whole numbers"),
        ((0.0, 2.5), "two whole numbers"),
    ],
)
def test_ranges_that_cannot_be_are_named(given, message):
    X, y = draw_sample()
    with pytest.raises(ValueError, match=message):
        make_model().fit(X, y).predict(X, iteration_range=given)


def test_a_metric_that_changes_its_name_or_direction_is_named():
    X, y = draw_sample()
    rounds = iter(range(1000))
    for answer, message in [
        (lambda *_: ("m", 1.0, next(rounds) % 2 == 0), "same is_higher_better after every round"),
        (lambda *_: (f"m{next(rounds)}", 1.0, True), "same name"),
        (lambda *_: ("m", 1.0, "yes"), "True or False"),
        (lambda *_: (3, 1.0, True), "as text"),
    ]:
        with pytest.raises(ValueError, match=message):
            make_model(eval_metric=answer).fit(X, y, X_val=X, y_val=y)


def test_a_scorer_that_cannot_measure_is_named():
    X, y = draw_sample(classes=3)
    with pytest.raises(ValueError, match="eval_metric=roc_auc cannot measure this fit"):
        make_model(eval_metric="roc_auc").fit(X, y, X_val=X, y_val=y)


@pytest.mark.parametrize(
    ("given", "scorer"), [("auc", "roc_auc"), ("binary_logloss", "neg_log_loss"), ("merror", "accuracy")]
)
def test_a_metric_by_the_name_of_another_library_is_told_its_own(given, scorer):
    X, y = draw_sample()
    with pytest.raises(ValueError, match=f"eval_metric='{given}' .* it is called '{scorer}' there"):
        make_model(eval_metric=given).fit(X, y, X_val=X, y_val=y)


def test_a_function_that_cannot_take_probabilities_is_named_with_what_it_is_given():
    X, y = draw_sample()
    with pytest.raises(
        ValueError, match=r"eval_metric=accuracy_score failed: .* given y and probabilities .*'accuracy'"
    ):
        make_model(eval_metric=accuracy_score).fit(X, y, X_val=X, y_val=y)


def takes_weight_third(y, p, w):
    return "m", 0.5, True


def test_a_function_of_other_arguments_is_named_with_what_it_may_take():
    with pytest.raises(ValueError, match=r"weight_third must take labels and .* sample_weight: .*; got \(y, p, w\)"):
        read_metric(takes_weight_third)
    with pytest.raises(ValueError, match="eval_metric=<lambda> must take labels and probabilities"):
        read_metric(lambda y: 0.5)
    for takes in (lambda *_, weight: 0.5, lambda y, p, sample_weight=None: 0.5, max, Ridge().score, at_half):
        assert read_metric(takes).function is takes
    with pytest.raises(ValueError, match="eval_metric must be") as caught:
        read_metric([0.1] * 1000)
    assert len(str(caught.value)) < 400


def measure_at(y, p, threshold, sample_weight=None):
    return "m", float(np.mean((p > threshold) == y)), True


@functools.wraps(measure_at)
def at_half(y, p):
    return measure_at(y, p, 0.5)


@functools.wraps(measure_at)
def at_half_weighted(*args, **options):
    assert list(options) == ["sample_weight"]
    return measure_at(*args, 0.5, **options)


@pytest.mark.parametrize("metric", [at_half, at_half_weighted])
def test_a_function_in_a_wrapper_is_given_what_the_wrapper_takes(metric):
    X, y = draw_sample()
    fitted = make_model(eval_metric=metric).fit(X, y, X_val=X, y_val=y)
    assert fitted.evals_result_["validation"]["m"][-1] > 0.5


def test_what_a_metric_returns_is_shown_in_short():
    X, y = draw_sample()
    for metric in (lambda y, p: ("m", p, True), lambda y, p: ("m", 0.5, p)):
        with pytest.raises(ValueError, match="eval_metric=<lambda>") as caught:
            make_model(eval_metric=metric).fit(X, y, X_val=X, y_val=y)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("one", [1, np.int64(1)])
def test_one_says_that_a_larger_value_is_better(one):
    X, y = draw_sample()
    expected, found = (
        make_model(eval_metric=lambda *_, better=better: ("m", 0.5, better)).fit(X, y, X_val=X, y_val=y)
        for better in (True, one)
    )
    np.testing.assert_array_equal(found.evals_result_["validation"]["m"], expected.evals_result_["validation"]["m"])
    with pytest.raises(ValueError, match="True or False"):
        make_model(eval_metric=lambda *_: ("m", 0.5, 2)).fit(X, y, X_val=X, y_val=y)
