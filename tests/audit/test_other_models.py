"""Audits by posteriors of any model: given, or of a classifier that is fitted here out of fold."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from helpers.quick import QuickClassifier
from untwist import PILBoostClassifier, UntwistClassifier
from untwist.audit import Decisions, audit_labels, seen_labels
from untwist.audit.posteriors import read_posteriors
from untwist.audit.verdict import State
from untwist.boosting import memory
from untwist.crossing import cross_fit_clones, find_held_out_shares
from untwist.noise.two_classes import TwoClassNoise
from untwist.report import compare, report
from untwist.twisters import ClassNoise


def draw_noisy_rows(n=1200, rate=0.2, n_classes=2, seed=3):
    """Rows, their labels of which some are wrong, and which."""
    X, truth = make_classification(
        n, 6, n_informative=5, n_redundant=0, n_classes=n_classes, class_sep=2.0, flip_y=0, random_state=seed
    )
    _, y, flipped = ClassNoise(rate).twist(X, truth, seed)
    wrong = np.zeros(n, dtype=bool)
    wrong[flipped] = True
    return X, y, wrong


def predict_unseen(model, X, y):
    return cross_val_predict(model, X, y, cv=5, method="predict_proba")


@pytest.fixture(scope="module")
def noisy():
    X, y, wrong = draw_noisy_rows()
    return X, y, wrong, predict_unseen(RandomForestClassifier(60, random_state=0), X, y)


# ---- posteriors that are given ----


def test_posteriors_of_another_model_find_the_wrong_labels(noisy):
    X, y, wrong, posterior = noisy
    audit = audit_labels(X, y, pred_probs=posterior)
    share, low, high = audit.noise_rate
    assert low < wrong.mean() < high
    assert share == pytest.approx(0.2, abs=0.05)
    assert wrong[audit.suspects()].mean() > 0.85
    assert np.isin(np.flatnonzero(wrong), audit.suspects()).mean() > 0.7
    assert audit.judge.name == "posteriors that were given"
    assert isinstance(audit.noise, TwoClassNoise)


def test_without_rows_the_same_is_found(noisy):
    X, y, _, posterior = noisy
    alone = audit_labels(y=y, pred_probs=posterior)
    np.testing.assert_array_equal(alone.wrong, audit_labels(X, y, pred_probs=posterior).wrong)
    np.testing.assert_array_equal(alone.ranking, audit_labels(None, y, pred_probs=posterior).ranking)
    assert len(alone.to_frame()) == len(y)
    assert alone.confusions()[0].truth in (0, 1)


def test_of_two_classes_the_second_column_will_do(noisy):
    _, y, _, posterior = noisy
    whole = audit_labels(y=y, pred_probs=posterior)
    for one in (posterior[:, 1], posterior[:, 1:], posterior[:, 1].tolist()):
        np.testing.assert_allclose(audit_labels(y=y, pred_probs=one).wrong, whole.wrong, atol=1e-12)


def test_several_classes_are_audited_by_posteriors_of_others():
    X, y, wrong = draw_noisy_rows(1500, n_classes=3)
    names = np.array(["cat", "ant", "bee"])
    posterior = predict_unseen(make_pipeline(StandardScaler(), GaussianNB()), X, names[y])
    audit = audit_labels(y=names[y], pred_probs=posterior)
    assert audit.classes.tolist() == ["ant", "bee", "cat"]
    assert wrong[audit.suspects()].mean() > 0.7
    assert audit.noise_rate[1] < wrong.mean() < audit.noise_rate[2] + 0.03
    assert audit.matrix.shape == (3, 3)
    frame = pd.DataFrame(posterior, columns=audit.classes)[["cat", "ant", "bee"]]
    np.testing.assert_array_equal(audit_labels(y=names[y], pred_probs=frame).wrong, audit.wrong)


def test_the_order_of_the_rows_does_not_matter(noisy):
    _, y, _, posterior = noisy
    order = np.random.default_rng(0).permutation(len(y))
    there = audit_labels(y=y, pred_probs=posterior)
    back = audit_labels(y=y[order], pred_probs=posterior[order])
    np.testing.assert_array_equal(back.wrong, there.wrong[order])


def test_tables_of_any_layout_are_judged_alike(noisy):
    X, y, _, posterior = (values[:250] for values in noisy)
    there = audit_labels(X, y, pred_probs=posterior)
    batch = pa.RecordBatch.from_arrays(list(X.T), names=list("abcdefgh"[: X.shape[1]]))
    for table in (sparse.coo_matrix(X), batch):
        audit = audit_labels(table, y, pred_probs=posterior)
        np.testing.assert_array_equal(audit.wrong, there.wrong)
        np.testing.assert_array_equal(audit.table.numbers, there.table.numbers)
    trees = RandomForestClassifier(5, random_state=0)
    by_model = [audit_labels(table, y, trees) for table in (sparse.csr_matrix(X), sparse.coo_matrix(X))]
    np.testing.assert_array_equal(by_model[1].wrong, by_model[0].wrong)


def test_posteriors_that_boast_are_calibrated(noisy):
    X, y, *_ = noisy
    posterior = predict_unseen(LogisticRegression(), X, y)
    boasting = posterior**4 / (posterior**4).sum(axis=1, keepdims=True)
    there, here = (audit_labels(y=y, pred_probs=one) for one in (posterior, boasting))
    assert np.abs(here.posterior - there.posterior).mean() < 0.03 < np.abs(boasting - posterior).mean()
    np.testing.assert_allclose(here.wrong, there.wrong, atol=0.06)


def test_sources_and_items_are_judged_by_posteriors_of_others():
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.integers(0, 2, 400), 3)
    X = np.repeat(rng.normal(size=(400, 3)), 3, axis=0) + 3 * truth[:, None]
    source = np.tile(["ann", "bob", "eve"], 400)
    item = np.repeat(np.arange(400), 3)
    wrong = rng.random(1200) < np.where(source == "eve", 0.4, 0.05)
    y = np.where(wrong, 1 - truth, truth)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    for audit in (
        audit_labels(X, y, model, source=source, item=item),
        audit_labels(X, y, pred_probs=predict_unseen(model, X, y), source=source),
        audit_labels(y=y, pred_probs=predict_unseen(model, X, y), source=source, item=item),
    ):
        worst = audit.sources.rate()[0]
        assert (worst.name, worst.stands_out) == ("eve", True)
        assert worst.share_wrong == pytest.approx(0.4, abs=0.08)
        assert audit.sources.labels_per_item == 3
        assert (
            np.mean([one.truth == truth[3 * number] for number, one in enumerate(audit.sources.judge_items())]) > 0.95
        )
        # All rows of an item have the same posterior.
        assert np.ptp(audit.posterior.reshape(400, 3, 2), axis=1).max() == 0
    with pytest.raises(ValueError, match="item must come with source"):
        audit_labels(y=y, pred_probs=predict_unseen(model, X, y), item=item)


def test_rows_of_weight_0_are_judged_and_do_not_count(noisy):
    _, y, _, posterior = noisy
    weight = np.r_[np.ones(1000), np.zeros(200)]
    counted = audit_labels(y=y[:1000], pred_probs=posterior[:1000])
    audit = audit_labels(y=y, pred_probs=posterior, sample_weight=weight)
    assert audit.noise_rate == counted.noise_rate
    np.testing.assert_array_equal(audit.wrong[:1000], counted.wrong)
    assert len(audit.wrong) == 1200


# ---- what is wrong with posteriors ----


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            np.full((4, 3), 1 / 3),
            r"one column for each of the 2 classes 'no', 'yes', in this order, got shape \(4, 3\)",
        ),
        (np.full((3, 2), 0.5), "a row for each of the 4 labels, got 3"),
        ([[0.5, 0.5], [np.nan, 1], [1, 0], [0, 1]], "finite numbers, got nan in row 1, class 'no'"),
        ([[0.5, 0.5], [1, 0], [1.2, -0.2], [0, 1]], "from 0 to 1, got 1.2 in row 2, class 'no'"),
        ([[0.5, 0.5], [1, 0], [0.6, 0.6], [0, 1]], r"sum to 1 in each row, got 1.2 in row 2 \(1 of 4"),
        ([["a", "b"]] * 4, "hold numbers"),
        (pd.DataFrame(np.full((4, 2), 0.5), columns=["no", "maybe"]), "a column for each class: 'no', 'yes'"),
        (
            pd.DataFrame({"proba_no": np.full(4, 0.5)}),
            "be of class 'yes' where it is one column, got that of 'no' only",
        ),
        ([0.1, 0.2, 0.3, 7.0], "from 0 to 1, got 7.0 in row 3"),
    ],
)
def test_posteriors_that_are_none_are_refused(given, message):
    with pytest.raises(ValueError, match=f"pred_probs must .*{message}"):
        audit_labels(y=["no", "yes", "no", "yes"], pred_probs=given)


def test_names_of_columns_tell_their_classes():
    classes, table = np.array([3, 20]), np.array([[0.9, 0.1], [0.2, 0.8]])
    for names in ([3, 20], ["3", "20"], ["proba_3", "proba_20"], ["P(3)", "P(20)"], [0, 1]):
        frame = pd.DataFrame(table, columns=names)
        np.testing.assert_allclose(read_posteriors(frame, classes, 2), table)
        if names != [0, 1]:
            frame = frame.assign(id=[7, 8])[[names[1], "id", names[0]]]
            np.testing.assert_allclose(read_posteriors(frame, classes, 2), table)


def test_arguments_that_do_not_go_together_are_refused(noisy):
    X, y, _, posterior = noisy
    with pytest.raises(ValueError, match="y must be the labels"):
        audit_labels(X, pred_probs=posterior)
    with pytest.raises(ValueError, match="X must be the rows, unless pred_probs are given"):
        audit_labels(y=y)
    with pytest.raises(ValueError, match="pred_probs and model exclude each other"):
        audit_labels(X, y, GaussianNB(), pred_probs=posterior)
    with pytest.raises(ValueError, match=r"got a class: give GaussianNB\(\)"):
        audit_labels(X, y, GaussianNB)
    with pytest.raises(ValueError, match="with fit, got 'forest'"):
        audit_labels(X, y, "forest")
    with pytest.raises(ValueError, match=r"must have predict_proba.*CalibratedClassifierCV"):
        audit_labels(X, y, RidgeClassifier())
    with pytest.raises(ValueError, match="sample_weight must be None with a classifier that takes none"):
        audit_labels(X, y, KNeighborsClassifier(), sample_weight=np.full(len(y), 2.0))


def test_what_needs_our_trees_or_rows_says_so(noisy):
    X, y, _, posterior = noisy
    audit = audit_labels(X, y, pred_probs=posterior)
    for ask in (lambda: audit.explain(0), audit.hidden_sources, lambda: compare(audit)):
        with pytest.raises(ValueError, match=r"from a model of ours.*judged by posteriors that were given"):
            ask()
    assert isinstance(audit.slices(), list)
    with pytest.raises(ValueError, match="X must be a table to look into its columns"):
        audit_labels(y=y, pred_probs=posterior).slices()


def test_what_is_no_table_is_named_for_other_models_too(noisy):
    X, noisy_labels, *_ = noisy
    columns = {"a": X[:, 0], "b": X[:, 1]}
    for given in ({"model": LogisticRegression()}, {"pred_probs": np.full((len(X), 2), 0.5)}):
        with pytest.raises(ValueError, match=r"^X must be a table, got a dict: give pandas.DataFrame\(X\)$"):
            audit_labels(columns, noisy_labels, **given)


def test_no_memory_is_asked_for_where_another_model_learns(noisy, monkeypatch):
    monkeypatch.setattr(memory, "ALWAYS_THERE", 0)
    monkeypatch.setattr(memory, "find_free_memory", lambda: 0)
    X, noisy_labels, *_ = noisy
    assert len(audit_labels(X, noisy_labels, GaussianNB()).wrong) == len(X)
    with pytest.raises(MemoryError, match="to boost 2 classes"):
        audit_labels(X, noisy_labels)


def test_slices_are_found_by_posteriors_of_others():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 2000)
    city = rng.choice(["Bonn", "Köln", "Ulm"], 2000)
    frame = pd.DataFrame({"size": rng.normal(size=2000) + 4 * truth, "city": city})
    y = np.where(rng.random(2000) < np.where(city == "Ulm", 0.35, 0.02), 1 - truth, truth)
    audit = audit_labels(frame, y, pred_probs=predict_unseen(LogisticRegression(), frame[["size"]], y))
    assert [(one.column, one.where) for one in audit.slices()] == [("city", "Ulm")]


# ---- classifiers that are fitted here ----


def test_a_classifier_is_fitted_out_of_fold_and_stays_as_it_is(noisy):
    X, y, wrong, _ = noisy
    forest = RandomForestClassifier(60, random_state=0).fit(X, y)
    before = forest.predict_proba(X)
    audit = audit_labels(X, y, forest)
    assert audit.judge.name == "RandomForestClassifier, fitted out of fold"
    assert not audit.judge.looks_in_sample
    assert wrong[audit.suspects()].mean() > 0.85
    np.testing.assert_array_equal(forest.predict_proba(X), before)


class Memory(KNeighborsClassifier):
    """A classifier that knows the label of every row that it has seen."""

    def __init__(self):
        super().__init__(1)


def test_copies_of_a_row_are_never_on_both_sides():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(200, 2)), 2, axis=0)
    y = np.repeat(rng.integers(0, 2, 200), 2)
    audit = audit_labels(X, y, Memory())
    # Nothing is to be learned from these rows but by heart.
    assert np.mean(audit.posterior.argmax(axis=1) == y) < 0.65


def test_the_rows_of_an_item_are_never_on_both_sides():
    rng = np.random.default_rng(0)
    item, truth = np.repeat(np.arange(200), 2), np.repeat(rng.integers(0, 2, 200), 2)
    X = np.repeat(rng.normal(size=(200, 2)), 2, axis=0) + 1e-6 * rng.normal(size=(400, 2))
    source = np.tile(["ann", "bob"], 200)
    audit = audit_labels(X, truth, Memory(), source=source, item=item)
    assert np.mean(audit.posterior.argmax(axis=1) == truth) < 0.65


def test_folds_are_fitted_as_a_slow_twin_does():
    X, y, _ = draw_noisy_rows(200)
    folds = np.zeros((4, 200))
    folds[np.arange(200) % 4, np.arange(200)] = 1.0
    posterior = cross_fit_clones(GaussianNB(), X, y, np.array([0, 1]), folds, np.ones(200)).out_of_fold.posterior
    for row in range(200):
        others = np.arange(200) % 4 != row % 4
        expected = GaussianNB().fit(X[others], y[others]).predict_proba(X[row : row + 1])[0]
        np.testing.assert_allclose(posterior[row], expected, atol=1e-12)


def test_a_row_that_several_folds_share_gets_their_mean_and_one_without_weight_that_of_all():
    X, y, _ = draw_noisy_rows(100)
    weight = np.r_[4.0, 0.0, np.ones(98)]
    folds = np.zeros((2, 100))
    folds[np.arange(100) % 2, np.arange(100)] = weight
    folds[:, 0] = [1.0, 3.0]
    np.testing.assert_array_equal(find_held_out_shares(folds, weight)[:, :3], [[0.25, 0, 1], [0.75, 0, 0]])
    posterior = cross_fit_clones(GaussianNB(), X, y, np.array([0, 1]), folds, weight).out_of_fold.posterior
    parts = [
        GaussianNB().fit(X[kept > 0], y[kept > 0], sample_weight=kept[kept > 0]).predict_proba(X[:2])
        for kept in weight - folds
    ]
    np.testing.assert_allclose(posterior[0], 0.25 * parts[0][0] + 0.75 * parts[1][0])
    np.testing.assert_allclose(posterior[1], 0.5 * parts[0][1] + 0.5 * parts[1][1])


def test_labels_by_name_reach_only_models_that_ask_for_names():
    X, y, _ = draw_noisy_rows(300)
    names = np.array(["no", "yes"])[y]
    plain = audit_labels(X, names, LogisticRegression(class_weight={"no": 1.0, "yes": 1.0}))
    np.testing.assert_allclose(plain.posterior, audit_labels(X, names, LogisticRegression()).posterior)


def test_a_class_that_a_fold_has_not_seen_has_no_probability_there():
    X, y, _ = draw_noisy_rows(100)
    y[0] = 2
    folds = np.zeros((5, 100))
    folds[np.arange(100) % 5, np.arange(100)] = 1.0
    posterior = cross_fit_clones(GaussianNB(), X, y, np.arange(3), folds, np.ones(100)).out_of_fold.posterior
    assert (posterior[::5, 2] == 0).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)


def test_a_pipeline_takes_categories_and_weights():
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 900)
    truth = (kind == "a").astype(int)
    wrong = rng.random(900) < 0.15
    frame = pd.DataFrame({"kind": kind, "size": rng.normal(size=900) + 3 * truth})
    encoder = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression())
    audit = audit_labels(frame, np.where(wrong, 1 - truth, truth), model, sample_weight=np.full(900, 2.0))
    assert audit.judge.name == "LogisticRegression, fitted out of fold"
    assert wrong[audit.suspects()].mean() > 0.95
    assert (audit.weight == 2).all()


def test_texts_are_audited_by_a_pipeline_that_reads_them():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 600)
    words = np.array([["bad", "sad", "ugly"], ["good", "glad", "nice"]])
    texts = [f"{words[label, rng.integers(3)]} {number}" for number, label in enumerate(truth)]
    wrong = rng.random(600) < 0.15
    audit = audit_labels(
        texts, np.where(wrong, 1 - truth, truth), make_pipeline(CountVectorizer(), LogisticRegression())
    )
    assert set(audit.ranking[: wrong.sum()]) == set(np.flatnonzero(wrong))
    np.testing.assert_array_equal(audit.wrong > 0.5, wrong)
    assert len(audit.suspects()) > 0.8 * wrong.sum()
    assert wrong[audit.suspects()].all()
    assert len(audit.to_frame()) == 600
    images = rng.normal(size=(600, 2, 2)) + 3 * truth[:, None, None]

    class OfImages(GaussianNB):
        def fit(self, X, y):
            return super().fit(X.reshape(len(X), -1), y)

        def predict_proba(self, X):
            return super().predict_proba(X.reshape(len(X), -1))

    assert wrong[audit_labels(images, np.where(wrong, 1 - truth, truth), OfImages()).suspects()].mean() > 0.9


@pytest.mark.parametrize("package", ["xgboost", "lightgbm", "catboost"])
def test_boosters_take_labels_by_name_and_categories(package):
    module = pytest.importorskip(package)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 600)
    frame = pd.DataFrame(rng.normal(size=(600, 3)) + 4 * np.eye(3)[truth], columns=["a", "b", "c"])
    frame["city"] = pd.Categorical(rng.choice(["Bonn", "Ulm"], 600))
    wrong = rng.random(600) < 0.1
    names = np.array(["x", "y", "z"])[np.where(wrong, (truth + 1) % 3, truth)]
    model = {
        "xgboost": lambda: module.XGBClassifier(n_estimators=20, enable_categorical=True, n_jobs=1),
        "lightgbm": lambda: module.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1),
        "catboost": lambda: module.CatBoostClassifier(
            iterations=20, cat_features=["city"], verbose=False, thread_count=1, allow_writing_files=False
        ),
    }[package]()
    audit = audit_labels(frame, names, model)
    assert wrong[audit.suspects()].mean() > 0.8
    assert np.isin(np.flatnonzero(wrong), audit.suspects()).mean() > 0.8


# ---- posteriors that have seen their labels ----

SEEING = [
    RandomForestClassifier(60, random_state=0),
    HistGradientBoostingClassifier(max_iter=200, random_state=0),
    KNeighborsClassifier(1),
]


@pytest.mark.parametrize("model", SEEING, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("has_rows", [True, False])
def test_posteriors_that_have_seen_noisy_labels_are_named(noisy, model, has_rows):
    X, y, _, _ = noisy
    seen = model.fit(X, y).predict_proba(X)
    with pytest.warns(UserWarning, match="pred_probs look as if they had seen the labels"):
        audit = audit_labels(X if has_rows else None, y, pred_probs=seen)
    assert audit.judge.looks_in_sample
    assert "the posteriors look as if they had seen the labels" in str(audit)
    assert audit.judge.in_sample_reason in str(audit)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(60, random_state=0),
        ExtraTreesClassifier(60, random_state=0),
        HistGradientBoostingClassifier(max_iter=60, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
        KNeighborsClassifier(1),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.slow
def test_posteriors_out_of_fold_raise_no_alarm_on_clean_or_noisy_data(noisy, model):
    X, y, *_ = noisy
    sets = [(X, y), load_breast_cancer(return_X_y=True)]
    if not isinstance(model, HistGradientBoostingClassifier):  # It takes its time with ten classes.
        digits, digit = load_digits(return_X_y=True)
        sets.append((digits[:900], digit[:900]))
    for table, labels in sets:
        posterior = predict_unseen(model, table, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for rows in (table, None):
                assert not audit_labels(rows, labels, pred_probs=posterior).judge.looks_in_sample


def test_of_many_rows_a_sample_is_compared(noisy, monkeypatch):
    X, y, _, posterior = noisy
    weight = np.ones(len(y))
    seen = RandomForestClassifier(30, random_state=0).fit(X, y).predict_proba(X)
    monkeypatch.setattr(seen_labels, "MOST_ROWS", 400)
    assert "a model of ours that has not seen these rows" in seen_labels.compare_with_quick_model(seen, X, y, weight)
    assert not seen_labels.compare_with_quick_model(posterior, X, y, weight)
    # Who learned from three times as many rows may err 0.4 times as often without a word.
    better = np.where(np.random.default_rng(0).random((len(y), 1)) < 0.6, seen, posterior)
    assert not seen_labels.compare_with_quick_model(better, X, y, weight)


# ---- the report ----


@pytest.mark.parametrize("has_rows", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_report_leaves_out_what_needs_our_trees(has_rows, n_classes):
    X, y, _ = draw_noisy_rows(600, n_classes=n_classes)
    posterior = predict_unseen(make_pipeline(StandardScaler(), GaussianNB()), X, y)
    page = report(audit_labels(X if has_rows else None, y, pred_probs=posterior), title="others")
    assert "The labels were judged by posteriors that were given" in page
    assert "No row was judged by a model that had seen it" not in page
    assert "id=training" in page.replace('"', "")
    assert "What the predictions rest on" not in page
    assert "no trees of ours to ask" in page


def test_a_report_warns_of_posteriors_that_have_seen_their_labels(noisy):
    X, y, _, _ = noisy
    with pytest.warns(UserWarning, match="had seen the labels"):
        audit = audit_labels(X, y, pred_probs=RandomForestClassifier(30, random_state=0).fit(X, y).predict_proba(X))
    page = report(audit, title="seen")
    assert "Beware" in page
    assert "Undecided" in page
    assert "at most" not in page
    assert audit.verdict.state is State.UNDECIDED
    assert "the posteriors look as if they had seen the labels" in page


def test_reviewed_rows_are_right_whoever_judges(noisy):
    X, y, wrong, posterior = noisy
    audit = audit_labels(X, y, pred_probs=posterior)
    rows = audit.suspects(budget=60)
    labels = np.where(wrong[rows], audit.classes[1 - np.searchsorted(audit.classes, y[rows])], y[rows])
    said = np.where(wrong[rows], "relabel", "keep")
    decisions = Decisions(rows, y[rows], said, labels, [""] * len(rows), audit.fingerprint)
    for reviewed in (decisions, rows):
        given = audit.apply(decisions)
        after = audit_labels(X, given, pred_probs=posterior, reviewed=reviewed)
        assert after.reviewed.sum() == 60
        assert (after.wrong[rows] == 0).all()
        assert not np.isin(after.suspects(budget=len(y) - 60), rows).any()
        np.testing.assert_array_equal(after.given, given)
        assert report(after, title="t")
    with pytest.raises(ValueError, match="reviewed and source exclude each other"):
        audit_labels(X, y, pred_probs=posterior, reviewed=decisions, source=["a"] * len(y))


def test_columns_in_another_order_are_asked_about(noisy):
    _, y, _, posterior = noisy
    with pytest.warns(UserWarning, match=r"less than chance would: are their columns in the order .* \(0, 1\)\?"):
        audit_labels(y=y, pred_probs=posterior[:, ::-1])
    with pytest.raises(ValueError, match="X comes first"):
        audit_labels(y, posterior)


def test_an_unfitted_classifier_of_ours_is_fitted_as_the_audit_would():
    X, y, _ = draw_noisy_rows(300)
    given = QuickClassifier(max_depth=2)
    audit = audit_labels(X, y, given, random_state=3)
    assert not hasattr(given, "model_")
    assert audit.model.max_depth == 2
    fitted = QuickClassifier(max_depth=2, random_state=3).fit(X, y)
    np.testing.assert_array_equal(audit.wrong, audit_labels(X, y, fitted).wrong)
    mine = audit_labels(X, y, UntwistClassifier(random_state=0), random_state=3)
    assert mine.model.random_state == 0
    halves = np.array([[np.arange(0, 300, 2), np.arange(1, 300, 2)], [np.arange(1, 300, 2), np.arange(0, 300, 2)]])
    by_halves = audit_labels(X, y, UntwistClassifier(cv=halves))
    np.testing.assert_array_equal(by_halves.model.cv, halves)
    with pytest.raises(ValueError, match="cv must be None beside a model that has its own"):
        audit_labels(X, y, UntwistClassifier(cv=3), cv=4)


def test_a_classifier_of_ours_that_chooses_nothing_is_fitted_out_of_fold():
    X, y, _ = draw_noisy_rows(300)
    given = PILBoostClassifier(alpha=1.0, n_estimators=20, max_depth=2, random_state=0)
    audit = audit_labels(X, y, given)
    assert audit.model is None
    assert audit.judge.name == "PILBoostClassifier, fitted out of fold"
    # One that is fitted has seen every label: it is cloned all the same.
    np.testing.assert_array_equal(audit_labels(X, y, given.fit(X, y)).wrong, audit.wrong)
    # Believing every label is how it learns; the audit says how many are wrong all the same, and nothing warns of it.
    believing = audit_labels(X, y, QuickClassifier(alpha=1.0))
    assert believing.noise.found


@pytest.mark.parametrize("judge", [DecisionTreeClassifier(min_samples_leaf=5, random_state=0), KNeighborsClassifier(1)])
def test_what_a_coarse_model_does_not_know_is_no_wrong_label(judge):
    X, y = load_digits(return_X_y=True)
    audit = audit_labels(X, y, judge)
    assert (audit.posterior.argmax(axis=1) == y).mean() < 0.99
    assert not audit.noise.found
    assert len(audit.suspects()) <= 0.005 * len(y)
    np.testing.assert_array_equal(audit.corrected(), y)
