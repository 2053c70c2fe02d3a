"""Early stopping: which rows are held out, what is measured on them, and that they never train."""

import numpy as np
import pytest
from scipy import sparse

from helpers.learners import make_paper_model
from helpers.small_fits import (
    add_text_column,
    any_settings,
    assert_same_forests,
    draw_many_rows,
    draw_sample,
    list_forests,
    make_model,
)
from untwist.data.folds import hold_out_share


def test_copies_are_held_out_together():
    X, y = draw_sample(400, classes=3)
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(400), 3))
    fitted = make_model(3, early_stopping=True).fit(X[rows], y[rows])
    held, kept = set(rows[fitted.validation_rows_]), set(np.delete(rows, fitted.validation_rows_))
    assert not held & kept
    assert len(fitted.validation_rows_) == 3 * len(held)
    for k in range(3):
        assert np.mean(y[rows[fitted.validation_rows_]] == k) == pytest.approx(np.mean(y == k), abs=0.03)


def test_every_class_gives_a_tenth():
    rng = np.random.default_rng(1)
    X, y = draw_sample(900)
    y = np.where(rng.random(900) < 0.1, 2, y)
    weight = rng.uniform(0.5, 2.0, 900)
    for sample_weight in (None, weight):
        fitted = make_model(2, early_stopping=True).fit(X, y, sample_weight=sample_weight)
        mass = np.ones(900) if sample_weight is None else sample_weight
        for k in range(3):
            rows = fitted.validation_rows_[y[fitted.validation_rows_] == k]
            assert mass[rows].sum() / mass[y == k].sum() == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.7])
def test_every_class_gives_the_share_that_is_asked_for(share):
    rng = np.random.default_rng(1)
    contents, labels = rng.integers(0, 2**60, 900).astype(np.uint64), rng.integers(0, 3, 900).astype(np.uint32)
    for weight in (np.ones(900), rng.uniform(0.5, 2.0, 900)):
        held = hold_out_share(contents, labels, weight, share, 1)
        for k in range(3):
            mass = weight * (labels == k)
            assert (held * mass).sum() / mass.sum() == pytest.approx(share, abs=0.03)


def test_few_distinct_rows_are_shared_out():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]] * 10), np.array([0, 1, 1, 1] * 10)
    fitted = make_model(30, early_stopping=True).fit(X, y)
    order = np.random.default_rng(0).permutation(40)
    assert_same_forests(fitted, make_model(30, early_stopping=True).fit(X[order], y[order]), X)
    np.testing.assert_array_equal(fitted.predict([[1.0]]), [1])
    assert np.isfinite(fitted.evals_result_["validation"]["log_loss"]).all()
    certificate = fitted.certificate(X, y)
    assert "violated" not in certificate.implied.verdicts


@pytest.mark.parametrize(("share", "few"), [(0.1, 2), (0.8, 2), (0.9, 3), (0.95, 5)])
def test_every_class_keeps_rows_to_train_on(share, few):
    X, _ = draw_sample(300)
    y = (np.arange(300) < few).astype(int)
    contents = np.random.default_rng(0).integers(0, 2**60, 300).astype(np.uint64)
    for seed in range(20):
        held = hold_out_share(contents, y.astype(np.uint32), np.ones(300), share, seed)
        assert (held[y == 1] < 1).any()
        assert (held[y == 1] > 0).any()
    fitted = make_model(2, early_stopping=True).fit(X, y)
    trained = np.setdiff1d(np.arange(300), fitted.validation_rows_[fitted.model_.validation_shares == 1.0])
    assert y[trained].any()
    assert (fitted.decision_function(X) > 0).any() or fitted.decision_function(X).std() > 0


def test_what_is_held_out_depends_neither_on_the_order_nor_on_the_scale_of_weights():
    rng = np.random.default_rng(1)
    for _ in range(400):
        n, share = int(rng.integers(2, 60)), float(rng.choice([0.1, 0.2, 0.25, 0.3, 0.5]))
        contents = rng.integers(0, rng.choice([3, 10, 1000]), n).astype(np.uint64)
        labels, weight, order = np.zeros(n, dtype=np.intp), rng.integers(1, 5, n).astype(float), rng.permutation(n)
        held = hold_out_share(contents, labels, weight, share, 1)
        rows = np.repeat(np.arange(n), weight.astype(int))
        np.testing.assert_array_equal(
            hold_out_share(contents[rows], labels[rows], np.ones(len(rows)), share, 1), held[rows]
        )
        np.testing.assert_array_equal(hold_out_share(contents[order], labels, weight[order] / 3, share, 1), held[order])


def test_rows_to_hold_out_count_with_their_weight():
    X, y = draw_sample(10)
    copies = make_model(early_stopping=True).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    weighted = make_model(early_stopping=True).fit(X, y, sample_weight=np.full(10, 2.0))
    np.testing.assert_allclose(weighted.decision_function(X), copies.decision_function(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"engine": "reference"}, {"link": "exact"}, {"alpha": -2.0}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_those_of_the_stages(settings, classes, weighted):
    X, y = draw_sample(classes=classes)
    X_val, y_val = draw_sample(70, classes=classes, seed=1)
    weight = np.random.default_rng(2).integers(0, 4, 70).astype(float) if weighted else np.ones(70)
    fitted = make_model(8, **settings).fit(
        X, y, X_val=X_val, y_val=y_val, sample_weight_val=weight if weighted else None
    )
    results, least = fitted.evals_result_["validation"], 1 / (len(y) + 2)
    orientation = -1.0 if settings.get("alpha", 1.0) < 0 else 1.0
    for t, scores in enumerate(fitted.staged_decision_function(X_val)):
        for k, column in enumerate(np.atleast_2d((orientation * scores).T)):
            positive = y_val == (1 if classes == 2 else k)
            p = fitted.link_.inverse(column)
            loss = -np.log(np.clip(np.where(positive, p, 1 - p), least, 1 - least))
            found = {name: values if classes == 2 else values[k] for name, values in results.items()}
            assert found["log_loss"][t] == pytest.approx(np.average(loss, weights=weight), rel=1e-4, abs=1e-5)
            assert found["error"][t] == pytest.approx(np.average((column > 0) != positive, weights=weight), rel=1e-5)


def test_the_loss_is_kept_within_the_limits_of_the_probabilities():
    """A row of weight 3 is three rows here too: n is the number of rows or their total weight."""
    X, y = draw_sample(40, noise=0.0)
    weighted = make_model(60).fit(X, y, sample_weight=np.full(40, 3.0), X_val=X, y_val=y)
    copies = make_model(60).fit(np.repeat(X, 3, axis=0), np.repeat(y, 3), X_val=X, y_val=y)
    np.testing.assert_allclose(weighted.decision_function(X), copies.decision_function(X), rtol=1e-4, atol=1e-5)
    for fitted in (weighted, copies):
        posterior = fitted.predict_proba_twisted(X)[np.arange(40), y]
        assert fitted.evals_result_["validation"]["log_loss"][-1] == pytest.approx(-np.log(posterior).mean(), rel=1e-3)


@any_settings
@pytest.mark.parametrize("kind", ["numbers", "categories", "classes", "sparse", "weighted"])
@pytest.mark.thinned(3)
def test_given_validation_rows_never_train(settings, kind):
    X, y = draw_sample(classes=3 if kind == "classes" else 2)
    X_val, y_val = draw_sample(90, classes=3 if kind == "classes" else 2, seed=1, missing=0.2)
    X_val *= 100  # These values are beyond all bins.
    weight = np.full(len(y), 2.0) if kind == "weighted" else None
    settings = {name: value for name, value in settings.items() if name != "early_stopping"}
    if kind == "categories":
        X, X_val = add_text_column(X), add_text_column(X_val)
        X_val[::3, 3] = "new"
        X_val[1::7, 3] = None
    if kind == "sparse":
        X, X_val = sparse.csr_array(X), sparse.csc_array(X_val)
    plain = make_model(**settings).fit(X, y, sample_weight=weight)
    followed = make_model(**settings).fit(X, y, sample_weight=weight, X_val=X_val, y_val=y_val)
    assert_same_forests(plain, followed, X)
    np.testing.assert_allclose(plain.predict_proba(X), followed.predict_proba(X), rtol=1e-14)
    stopped = make_model(**settings, early_stopping=True).fit(X, y, sample_weight=weight, X_val=X_val, y_val=y_val)
    for one, whole in zip(list_forests(stopped), list_forests(plain), strict=True):
        np.testing.assert_array_equal(one.value, whole.value[: len(one.value)])


def test_many_validation_rows_never_train_either():
    X, y = draw_many_rows()
    plain = make_model(1).fit(X, y)
    assert_same_forests(plain, make_model(1).fit(X, y, X_val=X[:50_000] + 0.1, y_val=y[:50_000]))


def test_validation_weights_and_mixed_formats():
    X, y = draw_sample()
    X_val, y_val = draw_sample(60, seed=1)
    weight = np.random.default_rng(0).integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weight)
    one = make_model().fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=weight).evals_result_["validation"]
    for table in (X_val[rows], X_val[rows].tolist(), sparse.csr_array(X_val[rows])):
        other = make_model().fit(X, y, X_val=table, y_val=y_val[rows]).evals_result_["validation"]
        for name in one:
            np.testing.assert_allclose(one[name], other[name], rtol=1e-5)
    for table in (X_val[rows], sparse.coo_array(X_val[rows])):
        other = make_model().fit(sparse.csr_array(X), y, X_val=table, y_val=y_val[rows]).evals_result_["validation"]
        np.testing.assert_allclose(one["log_loss"], other["log_loss"], rtol=1e-5)


def test_both_engines_hold_out_the_same_rows_and_stop_alike():
    X, y = draw_sample(200, noise=0.45, seed=1)
    X = np.round(2 * X)
    weight = np.random.default_rng(0).uniform(0.5, 1.0, 200)  # No two splits are equally good.
    settings = {"early_stopping": 5, "step_size": 1.0}
    compiled, loop = (
        make_model(60, engine=engine, **settings).fit(X, y, weight) for engine in ("compiled", "reference")
    )
    np.testing.assert_array_equal(compiled.validation_rows_, loop.validation_rows_)
    assert compiled.n_iter_ == loop.n_iter_ < 60
    for name in ("log_loss", "error"):
        np.testing.assert_allclose(
            compiled.evals_result_["validation"][name], loop.evals_result_["validation"][name], rtol=2e-3, atol=1e-4
        )
    np.testing.assert_allclose(compiled.decision_function(X), loop.decision_function(X), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    "column", [lambda rng, n: rng.integers(0, 100, n).astype(float), lambda rng, n: rng.normal(size=n)]
)
def test_early_stopping_works_where_contents_repeat(column):
    """Few distinct rows: whole contents must not leave training to judge what was never seen."""
    rng = np.random.default_rng(0)
    X = column(rng, 8000)[:, None]
    rate = 0.5 + 0.4 * np.sin(X[:, 0] * (0.3 if X.max() > 50 else 3))
    y = (rng.random(8000) < rate).astype(int)
    stopped = make_paper_model(
        1.0, learning_rate=0.3, max_depth=6, n_estimators=200, early_stopping=True, random_state=0
    ).fit(X, y)
    assert np.abs(stopped.predict_proba(X)[:, 1] - rate).mean() < 0.07


def test_validation_labels_that_are_missing_are_named():
    X, y = draw_sample()
    with pytest.raises(ValueError, match="y_val"):
        make_model().fit(X, np.array(["n", "y"], dtype=object)[y], X_val=X, y_val=np.full(len(y), None))
