"""The classifier with reviewed rows: what it takes, what it learns, what it refuses, and how it travels."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, cross_validate

from helpers.quick import make_classifier
from untwist import load, save
from untwist.audit import Decisions
from untwist.batches import Batches
from untwist.data.fingerprints import fingerprint


def make_model(**settings):
    return make_classifier(**{"random_state": 0, "n_jobs": 1, **settings})


@cache
def draw_rows(n=500, classes=2, rate=0.25, seed=0):
    """Rows with wrong labels, and what is true."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + 0.7 * X[:, 1] ** 2
    truth = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    y = np.where(rng.random(n) < rate, (truth + rng.integers(1, classes, n)) % classes, truth)
    return X, y, truth


def decide(X, y, truth, rows, skipped=()):
    words = np.where(y[rows] == truth[rows], "keep", "relabel").astype(object)
    labels = np.array(truth[rows])
    for place in np.flatnonzero(np.isin(rows, skipped)):
        words[place], labels[place] = "skip", y[rows[place]]
    return Decisions(rows, y[rows], words.astype(str), labels, [""] * len(rows), fingerprint(X, y))


def change(y, truth, rows):
    changed = y.copy()
    changed[rows] = truth[rows]
    return changed


ROWS = np.arange(0, 500, 4)


@pytest.fixture(scope="module")
def taught():
    X, y, truth = draw_rows()
    return make_model().fit(X, y, reviewed=decide(X, y, truth, ROWS))


# What it takes


@pytest.mark.slow
def test_labels_may_be_those_given_or_those_decided_on(taught):
    X, y, truth = draw_rows()
    decisions = decide(X, y, truth, ROWS)
    for labels in (change(y, truth, ROWS), change(y, truth, ROWS[::2])):
        model = make_model().fit(X, labels, reviewed=decisions)
        np.testing.assert_array_equal(model.predict_proba(X), taught.predict_proba(X))


@pytest.mark.slow
def test_booleans_and_positions_are_the_same():
    X, y, truth = draw_rows()
    labels = change(y, truth, ROWS)
    mask = np.isin(np.arange(500), ROWS)
    first, second, third = (
        make_model().fit(X, labels, reviewed=one).predict_proba(X) for one in (mask, ROWS[::-1], pd.Series(mask))
    )
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)


@pytest.mark.parametrize("nothing", ["positions", "booleans", "decisions", "skipped"])
@pytest.mark.thinned(3)
def test_without_a_reviewed_row_the_fit_is_what_it_was(nothing):
    X, y, truth = draw_rows()
    reviewed = {
        "positions": [],
        "booleans": np.zeros(500, dtype=bool),
        "decisions": decide(X, y, truth, ROWS[:0]),
        "skipped": decide(X, y, truth, ROWS, skipped=ROWS),
    }[nothing]
    expected = make_model().fit(X, y)
    np.testing.assert_array_equal(make_model().fit(X, y, reviewed=reviewed).predict_proba(X), expected.predict_proba(X))


def test_skipped_rows_are_as_if_nobody_had_looked():
    X, y, truth = draw_rows()
    with_skipped = make_model().fit(X, y, reviewed=decide(X, y, truth, ROWS, skipped=ROWS[50:]))
    without = make_model().fit(X, y, reviewed=decide(X, y, truth, ROWS[:50]))
    np.testing.assert_array_equal(with_skipped.predict_proba(X), without.predict_proba(X))


def test_labels_of_any_kind_and_decisions_as_text(taught):
    X, y, truth = draw_rows()
    names = np.array(["no", "yes"])
    model = make_model().fit(X, names[y], reviewed=decide(X, names[y], names[truth], ROWS))
    np.testing.assert_array_equal(model.predict_proba(X), taught.predict_proba(X))
    decisions = decide(X, y, truth, ROWS)
    as_text = Decisions(
        ROWS, y[ROWS].astype(str), decisions.decision, truth[ROWS].astype(str), decisions.notes, fingerprint(X, y)
    )
    model = make_model().fit(X, y, reviewed=as_text)
    np.testing.assert_array_equal(model.predict_proba(X), taught.predict_proba(X))


@pytest.mark.parametrize("kind", ["frame", "sparse", "batches", "categories", "xgboost"])
@pytest.mark.thinned(3)
def test_tables_of_any_kind(kind, tmp_path):
    X, y, truth = draw_rows()
    table, settings = X.round(1), {}
    if kind == "frame":
        table = pd.DataFrame(table, columns=list("abcd"))
    if kind == "sparse":
        table = sparse.csr_matrix(np.where(table > 0, table, 0.0))
    if kind == "categories":  # So many that they are coded by their labels.
        many = pd.Categorical([f"c{number % 300}" for number in range(500)])
        table = pd.DataFrame(table, columns=list("abcd")).assign(e=many)
    if kind == "batches":
        pytest.importorskip("pyarrow")
        pd.DataFrame(table, columns=list("abcd")).to_parquet(tmp_path / "rows.parquet")
        table = Batches(tmp_path / "rows.parquet")
    if kind == "xgboost":
        pytest.importorskip("xgboost")
        settings = {"engine": "xgboost"}
    model = make_model(**settings).fit(table, y, reviewed=decide(table, y, truth, ROWS))
    assert model.model_.out_of_fold.context.reviewed.is_reviewed.sum() == len(ROWS)
    assert np.mean(model.predict(table) == truth) > np.mean(y == truth)


@pytest.mark.slow
def test_class_and_sample_weights():
    X, y, truth = draw_rows()
    weight = np.where(np.arange(500) % 10 == 0, 0.0, 1.0)  # Some rows are absent, and some of these are reviewed.
    decisions = decide(X, y, truth, ROWS)
    model = make_model(class_weight={0: 1.0, 1: 3.0}).fit(X, y, weight, reviewed=decisions)
    plain = make_model().fit(X, y, weight, reviewed=decisions)
    assert model.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean()
    np.testing.assert_array_equal(model.model_.out_of_fold.judged_weight, weight)
    present = weight > 0
    absent = make_model().fit(
        X[present],
        y[present],
        reviewed=np.flatnonzero(np.isin(np.flatnonzero(present), ROWS)),
    )
    as_mask = make_model().fit(X, y, weight, reviewed=ROWS)
    np.testing.assert_allclose(as_mask.predict_proba(X), absent.predict_proba(X), rtol=1e-9)


# What it learns


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.slow
def test_a_review_makes_the_model_better(classes):
    gains = []
    for seed in range(2):
        X, y, truth = draw_rows(700, classes, 0.3, seed)
        X_test, _, y_test = draw_rows(2000, classes, 0.3, seed + 10)
        rows = np.random.default_rng(seed).permutation(700)[:250]
        before = make_model().fit(X, y)
        after = make_model().fit(X, y, reviewed=decide(X, y, truth, rows))
        gains.append(log_loss(y_test, before.predict_proba(X_test)) - log_loss(y_test, after.predict_proba(X_test)))
    assert min(gains) > 0


@pytest.mark.slow
def test_what_the_reviewer_found_tells_the_noise_though_only_suspects_were_reviewed():
    X, y, truth = draw_rows(1000, rate=0.2, seed=3)
    before = make_model().fit(X, y)
    suspects = np.argsort(before.oof_proba_[np.arange(1000), y])[:150]
    after = make_model().fit(X, y, reviewed=decide(X, y, truth, suspects))
    true_rates = [np.mean(y[truth == label] != label) for label in (0, 1)]
    assert np.mean(y[suspects] != truth[suspects]) > 0.8
    assert [after.noise_.rate_neg, after.noise_.rate_pos] == pytest.approx(true_rates, abs=0.06)
    # With Booleans nobody knows what was found: the rows that are left look cleaner than all.
    left = make_model().fit(X, change(y, truth, suspects), reviewed=suspects)
    assert left.noise_.rate_neg + left.noise_.rate_pos < after.noise_.rate_neg + after.noise_.rate_pos


def test_known_noise_stays_as_it_was_given():
    X, y, truth = draw_rows()
    model = make_model(noise=(0.2, 0.3)).fit(X, y, reviewed=decide(X, y, truth, ROWS))
    assert (model.noise_.rate_neg, model.noise_.rate_pos) == (0.2, 0.3)
    assert model.noise_.is_given


@pytest.mark.parametrize("classes", [2, 3])
def test_the_order_of_the_rows_does_not_matter(classes):
    X, y, truth = draw_rows(300, classes)
    rows = np.arange(0, 300, 3)
    order = np.random.default_rng(0).permutation(300)
    place = np.argsort(order)
    expected = make_model().fit(X, y, reviewed=decide(X, y, truth, rows)).predict_proba(X)
    shuffled = decide(X[order], y[order], truth[order], place[rows])
    np.testing.assert_array_equal(make_model().fit(X[order], y[order], reviewed=shuffled).predict_proba(X), expected)


@pytest.mark.slow
def test_all_rows_may_be_reviewed():
    X, y, truth = draw_rows(300)
    X_test, _, y_test = draw_rows(2000, seed=9)
    clean = make_model().fit(X, truth)
    for reviewed, labels in ((decide(X, y, truth, np.arange(300)), y), (np.ones(300, dtype=bool), truth)):
        model = make_model().fit(X, labels, reviewed=reviewed)
        assert model.score(X_test, y_test) > clean.score(X_test, y_test) - 0.02


def test_a_callback_that_ends_the_second_fit_leaves_the_first():
    X, y, truth = draw_rows()
    seen = []

    def stop_later(progress):
        seen.append(progress.round)
        return len(seen) > stop_after

    stop_after = 10**9
    make_model(callbacks=[stop_later]).fit(X, y)
    stop_after, n_first = len(seen) + 1, len(seen)
    seen.clear()
    model = make_model(callbacks=[stop_later]).fit(X, y, reviewed=decide(X, y, truth, ROWS))
    assert len(seen) > n_first
    assert model.model_.out_of_fold.context.reviewed is not None
    plain = make_model().fit(X, y)
    np.testing.assert_array_equal(model.oof_proba_, plain.oof_proba_)


# What it refuses


@pytest.mark.parametrize(
    ("reviewed", "message"),
    [
        (np.zeros(3, dtype=bool), "a Boolean for each of the 500 rows"),
        ([500], "positions of rows from 0 to 499"),
        ([-1], "positions of rows from 0 to 499"),
        ([0.5], "reviewed must be Decisions"),
        ("data.csv", "reviewed must be Decisions"),
    ],
)
def test_rows_that_are_not_there(reviewed, message):
    X, y, _ = draw_rows()
    with pytest.raises(ValueError, match=message):
        make_model().fit(X, y, reviewed=reviewed)


def test_decisions_about_other_data():
    X, y, truth = draw_rows()
    decisions = decide(X, y, truth, ROWS)
    with pytest.raises(ValueError, match="made for other features, or for rows in another order"):
        make_model().fit(X[::-1], y[::-1], reviewed=decisions)
    names = np.array(["no", "yes", "perhaps"])
    other = names[y].copy()
    row = int(np.flatnonzero(y[ROWS] == truth[ROWS])[0]) * 4
    other[row] = "perhaps"
    with pytest.raises(ValueError, match=f"row {row} of y is 'perhaps', but it was"):
        make_model().fit(X, other, reviewed=decide(X, names[y], names[truth], ROWS))
    new = names[truth].copy()
    new[8] = "perhaps"
    with pytest.raises(ValueError, match="row 8 is relabelled 'perhaps', which is the label of no row of y"):
        make_model().fit(X, names[y], reviewed=decide(X, names[y], new, ROWS))


@pytest.mark.parametrize(
    ("settings", "more", "message"),
    [
        ({}, {"source": np.arange(500) % 3}, "reviewed must be None with source"),
        ({"noise": None}, {}, "reviewed must be None with noise=None, as what a known label is worth depends on"),
    ],
    ids=["source", "believed labels"],
)
def test_what_does_not_go_with_reviewed_rows(settings, more, message):
    X, y, _ = draw_rows()
    with pytest.raises(ValueError, match=message):
        make_model(**settings).fit(X, y, reviewed=[0], **more)


# How it travels


def test_models_that_were_taught_are_saved_copied_and_cloned(taught, tmp_path):
    X, _, _ = draw_rows()
    save(taught, tmp_path / "model.untwist")
    for other in (load(tmp_path / "model.untwist"), pickle.loads(pickle.dumps(taught))):
        np.testing.assert_array_equal(other.predict_proba(X), taught.predict_proba(X))
        assert str(other.noise_) == str(taught.noise_)
    assert "reviewed" not in taught.get_params()
    assert not hasattr(clone(taught), "model_")


@pytest.mark.slow
def test_masks_are_routed_through_cross_validation():
    X, y, truth = draw_rows()
    labels, mask = change(y, truth, ROWS), np.isin(np.arange(500), ROWS)
    folds = KFold(2)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_model().set_fit_request(reviewed=True)
        found = cross_validate(routed, X, labels, cv=folds, params={"reviewed": mask}, return_estimator=True)
    for model, (train, _) in zip(found["estimator"], folds.split(X), strict=True):
        expected = make_model().fit(X[train], labels[train], reviewed=mask[train])
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
