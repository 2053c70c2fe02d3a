"""The default fit of several classes: weights, tables, orders, rare classes, and all that a fitted model tells."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.class_weight import compute_sample_weight

from helpers.quick import make_classifier
from helpers.small_fits import assert_same_forests, draw_coloured_rows, draw_sample
from untwist.batches import Batches
from untwist.boosting.runs import Progress
from untwist.noise.several_classes import SeveralClassesNoise

X, Y = draw_sample(classes=3, missing=0.05)
N = len(Y)
MATRIX = np.array([[0.8, 0.2, 0.0], [0.0, 1.0, 0.0], [0.1, 0.1, 0.8]])


def make_automatic(**settings):
    return make_classifier(**{"random_state": 0, "n_jobs": 1, **settings})


@pytest.fixture(scope="module")
def fitted():
    return make_automatic().fit(X, Y)


def assert_same_model(one, other, rows=X, other_rows=None):
    """Bit for bit the same, out-of-fold rows aside."""
    assert_same_forests(one, other, rows, other_rows)
    assert one.choice_ == other.choice_
    if one.noise_ is not None:
        np.testing.assert_array_equal(one.noise_.matrix, other.noise_.matrix)


# ---- nothing that does not matter matters ----


def test_neither_the_order_of_rows_nor_threads_matter(fitted):
    order = np.random.default_rng(1).permutation(N)
    shuffled = make_automatic(n_jobs=3).fit(X[order], Y[order])
    assert_same_model(shuffled, fitted)
    np.testing.assert_array_equal(shuffled.oof_proba_, fitted.oof_proba_[order])
    np.testing.assert_array_equal(shuffled.predict_proba(X), fitted.predict_proba(X))


def end_soon(progress):
    """End the search within its first candidate; the model is as whole as any."""
    return progress.round >= 30


def test_threads_do_not_matter_where_there_are_rows_enough_to_use_them():
    rows, labels = draw_sample(1000, classes=40, missing=0.1)
    given = {"callbacks": [end_soon], "noise": None}
    assert_same_model(*(make_automatic(n_jobs=n, **given).fit(rows, labels) for n in (1, 3)), rows)


def test_names_of_classes_do_not_matter(fitted):
    labels = np.array([False, 7, 9])
    renamed = make_automatic().fit(X, labels[Y])
    assert_same_model(renamed, fitted)
    np.testing.assert_array_equal(renamed.classes_, labels)
    np.testing.assert_array_equal(renamed.predict(X), labels[fitted.predict(X)])
    as_objects = make_automatic().fit(X, np.array(["a", "b", "c"], dtype=object)[Y])
    assert_same_model(as_objects, fitted)
    assert set(as_objects.predict(X)) == {"a", "b", "c"}


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix])
@pytest.mark.thinned(2)
def test_sparse_equals_dense(form):
    dense = np.where(np.abs(X) < 0.5, 0.0, X)
    one, other = make_automatic().fit(dense, Y), make_automatic().fit(form(dense), Y)
    assert_same_model(one, other, dense, form(dense))
    np.testing.assert_array_equal(one.oof_proba_, other.oof_proba_)


def draw_colours():
    columns, y = draw_coloured_rows()
    return columns, y + (np.asarray(columns["size"]) == "S")


@pytest.mark.slow
def test_any_kind_of_table_gives_the_same_model():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns, y = draw_colours()
    frame = pd.DataFrame(columns)
    lists = {name: list(values) for name, values in columns.items()}
    first = make_automatic().fit(frame, y)
    assert (first.model_.by_class("forest").set >= 0).any()
    for table in (frame.astype({"colour": "category"}), pl.DataFrame(lists), pa.table(lists)):
        assert_same_model(make_automatic().fit(table, y), first, table, frame)
    assert first.score(frame, y) > 0.8


def test_blocks_of_rows_give_the_same_model(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns, y = draw_colours()
    table = pa.table({name: list(values) for name, values in columns.items()})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=60)
    source = Batches(tmp_path / "t.parquet")
    one, other = make_automatic().fit(table, y), make_automatic().fit(source, y)
    assert_same_model(one, other, table, source)
    np.testing.assert_array_equal(one.oof_proba_, other.oof_proba_)


# ---- weights ----


def test_a_weight_is_so_many_copies():
    weight = 1 + np.arange(N) % 3
    given = {"noise": MATRIX}
    one = make_automatic(**given).fit(X, Y, sample_weight=weight)
    other = make_automatic(**given).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    assert one.choice_.best.n_rounds == other.choice_.best.n_rounds
    assert one.choice_.mixture.min_samples_leaf == other.choice_.mixture.min_samples_leaf
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(one.oof_proba_, other.oof_proba_[np.cumsum(weight) - 1], atol=1e-3)


@pytest.mark.parametrize("settings", [{}, {"class_weight": {0: 3.0, 2: 0.5}}], ids=str)
@pytest.mark.thinned(2)
def test_rows_of_weight_0_are_absent(settings):
    weight = (np.arange(N) % 6 > 0).astype(float)
    kept = weight > 0
    one = make_automatic(**settings).fit(X, Y, sample_weight=weight)
    other = make_automatic(**settings).fit(X[kept], Y[kept])
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    np.testing.assert_array_equal(one.oof_proba_[kept], other.oof_proba_)
    np.testing.assert_allclose(one.oof_proba_[~kept], one.predict_proba_twisted(X[~kept]), atol=1e-9)


def test_a_class_without_weight_is_never_predicted():
    kept = Y < 2
    by_rows = make_automatic().fit(X, Y, sample_weight=kept)
    by_class = make_automatic(class_weight={2: 0.0}).fit(X, Y)
    for model in (by_rows, by_class):
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.model_.by_class("forest").n_outputs == 3
        proba = model.predict_proba(X)
        assert np.isfinite(proba).all()
        assert proba[:, 2].max() < 0.05
        assert set(model.predict(X)) == {0, 1}
        assert np.mean(model.predict(X)[kept] == Y[kept]) > 0.8


@pytest.mark.parametrize("setting", [{0: 3.0, 1: 0.5}, "balanced"], ids=str)
@pytest.mark.thinned(2)
def test_class_weights_are_sample_weights_that_are_no_noise(setting):
    kept = (Y > 0) | (np.arange(N) % 4 == 0)  # Class 0 is rare.
    rows, labels = X[kept], Y[kept]
    given = {"noise": None}
    one = make_automatic(class_weight=setting, **given).fit(rows, labels)
    other = make_automatic(**given).fit(rows, labels, sample_weight=compute_sample_weight(setting, labels))
    assert_same_forests(one, make_automatic(class_weight=setting).fit(rows, labels))
    if isinstance(setting, dict):
        # The labels of rows set aside count without class weights, so that the mixture may be another one.
        np.testing.assert_array_equal(one.choice_.tried, other.choice_.tried)
    plain = make_automatic().fit(rows, labels)
    weighted = make_automatic(class_weight=setting).fit(rows, labels)
    assert np.mean(weighted.predict(rows) == 0) >= np.mean(plain.predict(rows) == 0)
    assert abs(weighted.noise_.share - plain.noise_.share) < 0.1
    np.testing.assert_allclose(weighted.oof_proba_.sum(axis=1), 1.0)


# ---- what a fitted model tells ----


def test_posteriors_and_predictions_agree(fitted):
    decision, proba = fitted.decision_function(X), fitted.predict_proba(X)
    for one in (proba, fitted.predict_proba_twisted(X), fitted.oof_proba_):
        assert one.shape == (N, 3)
        assert (one > 0).all()
        np.testing.assert_allclose(one.sum(axis=1), 1.0)
    np.testing.assert_array_equal(fitted.predict(X), decision.argmax(axis=1))
    np.testing.assert_array_equal(fitted.predict(X), proba.argmax(axis=1))
    assert fitted.score(X, Y) > 0.8
    assert isinstance(fitted.noise_, SeveralClassesNoise)
    assert fitted.noise_.matrix.shape == (3, 3)


def test_stages_end_at_the_model(fitted):
    few, model = X[:2], fitted.model_
    stages = list(model.staged_scores(model.encoder.encode(few)))
    made = [model.by_class(name) for name in ("hypotheses", "leverages", "edges")]
    assert {len(stages), *map(len, made)} == {model.n_rounds}
    np.testing.assert_allclose(stages[-1], model.scores(few), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        model.posterior.decision(stages[-1]), fitted.decision_function(few), rtol=1e-9, atol=1e-12
    )


def test_leaves_add_up_to_the_scores(fitted):
    forest = fitted.model_.by_class("forest")
    leaves = fitted.model_.leaves(X)[:, :, 0]
    assert leaves.shape == (N, fitted.model_.n_rounds)
    assert (forest.feature[forest.offset[:-1] + leaves] == -1).all()
    scores = forest.value[forest.offset[:-1] + leaves].sum(axis=1)
    np.testing.assert_allclose(fitted.model_.scores(X), scores, rtol=1e-9, atol=1e-12)


def test_margins_are_log_odds_and_weights_what_is_left_to_learn(fitted):
    scores, labels = fitted.model_.scores(X), Y
    margins = fitted.model_.margins(scores, labels)
    weights = fitted.model_.link.weights(margins)
    for k in range(3):
        others = [j for j in range(3) if j != k]
        odds = scores[:, k] - logsumexp(scores[:, others], axis=1)
        signed = np.where(labels == k, odds, -odds)
        np.testing.assert_allclose(margins[:, k], signed, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(weights[:, k], expit(-signed), rtol=1e-9)


def test_importances_are_shares(fitted):
    for kind in ("paper", "gain", "splits"):
        shares = fitted.importances(kind)
        assert shares.shape == (4,)
        assert shares.sum() == pytest.approx(1.0)
        assert shares.argmin() == 3  # No label depends on this column.


def test_copies_are_the_same_model(fitted):
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert_same_model(twin, fitted)
        np.testing.assert_array_equal(twin.predict_proba(X), fitted.predict_proba(X))
        np.testing.assert_array_equal(twin.oof_proba_, fitted.oof_proba_)
        assert str(twin.noise_) == str(fitted.noise_)
    again = clone(fitted)
    with pytest.raises(NotFittedError):
        again.predict(X)
    assert_same_model(again.fit(X, Y), fitted)


# ---- noise ----


def test_without_noise_labels_are_believed(fitted):
    plain = make_automatic(noise=None).fit(X, Y)
    assert plain.noise_ is None
    assert_same_forests(plain, fitted)
    np.testing.assert_array_equal(plain.oof_proba_, fitted.oof_proba_)
    np.testing.assert_array_equal(plain.predict(X), plain.predict_proba_twisted(X).argmax(axis=1))


def test_a_given_matrix_is_the_noise(fitted):
    model = make_automatic(noise=MATRIX).fit(X, Y)
    assert_same_forests(model, fitted)
    np.testing.assert_allclose(model.noise_.matrix, MATRIX)
    clean = model.noise_.clean(model.predict_proba_twisted(X))
    np.testing.assert_allclose(model.predict_proba(X), clean, atol=0.01)  # Limits keep posteriors off 0 and 1.
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))


# ---- callbacks ----


def test_callbacks_follow_the_search_and_can_end_it(fitted):
    heard = []
    whole = make_automatic(callbacks=[heard.append]).fit(X, Y)
    assert_same_model(whole, fitted)
    assert len(heard) > 10
    assert all(isinstance(one, Progress) and np.isfinite(one.validation_loss) for one in heard)
    heard.clear()
    stopped = make_automatic(callbacks=[lambda one: heard.append(one) or len(heard) == 2]).fit(X, Y)
    assert len(heard) == 2
    assert len(stopped.choice_.tried) == 1
    assert stopped.choice_.best.n_rounds <= 20
    assert stopped.oof_proba_.shape == (N, 3)
    assert stopped.score(X, Y) > 0.6


def test_candidates_are_reported(capsys):
    model = make_automatic(verbose=1, max_depth=2).fit(X, Y)
    assert capsys.readouterr().err.splitlines() == [str(one) for one in model.choice_.tried]


# ---- rare classes and odd tables ----


def check_soundness(model, rows, n_classes):
    proba = model.predict_proba(rows)
    assert proba.shape == (len(rows), n_classes)
    assert np.isfinite(proba).all()
    assert (proba > 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.oof_proba_.sum(axis=1), 1.0)
    assert np.isfinite(model.noise_.matrix).all()
    assert "%" in str(model.noise_)


@pytest.mark.parametrize("n_rows", [1, 2, 5])
@pytest.mark.thinned(2)
def test_a_class_of_a_few_rows(n_rows):
    labels = Y.copy()
    labels[:n_rows] = 7
    model = make_automatic().fit(X, labels)
    check_soundness(model, X, 4)
    assert np.mean(model.predict(X) == labels) > 0.6


@pytest.mark.parametrize("n", [3, 4, 10])
@pytest.mark.thinned(2)
@pytest.mark.filterwarnings("ignore:.*nothing but the shares of the classes:UserWarning")
def test_a_handful_of_rows(n):
    labels = np.arange(n) % 3
    check_soundness(make_automatic().fit(X[:n], labels), X, 3)
    check_soundness(make_automatic().fit(np.zeros((n, 2)), labels), np.zeros((2, 2)), 3)


@pytest.mark.slow
def test_a_hundred_classes_of_three_rows():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(100), 3)
    rows = rng.normal(size=(100, 5))[labels] + 0.1 * rng.normal(size=(300, 5))
    model = make_automatic(callbacks=[end_soon]).fit(rows, labels)
    check_soundness(model, rows, 100)
    assert model.score(rows, labels) > 0.8
    assert np.mean(model.oof_proba_.argmax(axis=1) == labels) > 0.5


def test_scores_that_are_no_better_than_none_still_tell_the_likeliest_class():
    rows, labels = draw_sample(
        150, classes=50, noise=0.0
    )  # A class has three rows, and rows set aside look like others.
    model = make_automatic(callbacks=[end_soon]).fit(rows, labels)
    check_soundness(model, rows, 50)
    assert model.choice_.mixture.loss == pytest.approx(np.log(50), abs=0.01)
    assert model.score(rows, labels) > 0.2


@pytest.mark.parametrize("constant", [[0], [0, 1, 2], [0, 1, 2, 3]])
@pytest.mark.thinned(2)
@pytest.mark.filterwarnings("ignore:.*nothing but the shares of the classes:UserWarning")
def test_constant_columns(constant):
    rows = X.copy()
    rows[:, constant] = 2.5
    model = make_automatic().fit(rows, Y)
    check_soundness(model, rows, 3)
    assert not model.importances("splits")[constant].any()
    if len(constant) == 4:
        shares = np.bincount(Y) / N
        np.testing.assert_allclose(model.predict_proba_twisted(rows[:1])[0], shares, atol=0.02)


def test_missing_values_alone():
    rows = np.where(np.arange(N)[:, None] % 3 == Y[:, None], np.nan, 1.0)
    model = make_automatic().fit(rows, Y)
    check_soundness(model, rows, 3)


def test_heavy_and_light_weights():
    for weight in (1e-12, 1e12):
        model = make_automatic().fit(X, Y, sample_weight=np.full(N, weight))
        check_soundness(model, X, 3)
    uneven = np.geomspace(1e-9, 1e9, N)
    check_soundness(make_automatic().fit(X, Y, sample_weight=uneven), X, 3)
