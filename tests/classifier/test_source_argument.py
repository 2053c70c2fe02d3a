"""The classifier with sources: what it takes, what it refuses, what it says, and how it travels."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.special import logit
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.quick import make_classifier
from helpers.small_fits import assert_same_forests
from helpers.sourced_rows import draw_sourced_rows, draw_votes
from untwist import PILBoostClassifier
from untwist.batches import Batches

pytestmark = pytest.mark.usefixtures("few_components")


def make_model(**settings):
    return make_classifier(**{"random_state": 0, "n_jobs": 1, **settings})


@pytest.fixture(scope="module")
def fitted():
    X, y, source, _ = draw_sourced_rows()
    return make_model().fit(X, y, source=source)


# What it takes


@pytest.mark.parametrize(
    "convert",
    [
        list,
        pd.Series,
        lambda names: pd.Series(names, dtype="category"),
        lambda names: np.searchsorted(["Bonn", "Leipzig", "Trier", "Ulm"], names),
        lambda names: np.searchsorted(["Bonn", "Leipzig", "Trier", "Ulm"], names) / 2,
    ],
    ids=["list", "series", "categories", "ints", "floats"],
)
@pytest.mark.thinned(3)
def test_sources_of_any_kind_give_the_same_model(convert, fitted):
    X, y, source, _ = draw_sourced_rows()
    model = make_model().fit(X, y, source=convert(source))
    np.testing.assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(model.sources_.matrices, fitted.sources_.matrices)


def test_names_do_not_matter(fitted):
    X, y, source, _ = draw_sourced_rows()
    renamed = pd.Series(source).map({"Bonn": "z", "Leipzig": "c", "Trier": "y", "Ulm": "a"})
    model = make_model().fit(X, y, source=renamed)
    assert model.sources_.names.tolist() == ["a", "c", "y", "z"]
    np.testing.assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(model.sources_.shares[[3, 1, 2, 0]], fitted.sources_.shares)


def test_labels_of_unknown_sources_are_taken_too(fitted):
    X, y, source, _ = draw_sourced_rows()
    some = np.where(np.arange(len(y)) % 10 == 0, None, source)
    model = make_model().fit(X, y, source=some)
    assert model.sources_.counts.sum() == np.count_nonzero(some)
    assert model.sources_.names[model.sources_.stands_out].tolist() == ["Leipzig"]


def test_one_source_alone_is_no_reason_for_a_second_fit():
    X, y, _, _ = draw_sourced_rows()
    model = make_model().fit(X, y, source=["me"] * len(y))
    assert_same_forests(model, make_model().fit(X, y), X)


@pytest.mark.slow
def test_tables_of_other_kinds(fitted, tmp_path):
    X, y, source, _ = draw_sourced_rows()
    expected = fitted.predict_proba(X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for table in (frame, sparse.csr_matrix(X)):
        np.testing.assert_array_equal(make_model().fit(table, y, source=source).predict_proba(table), expected)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=250)
    model = make_model().fit(Batches(tmp_path / "rows.parquet"), y, source=source)
    np.testing.assert_array_equal(model.predict_proba(frame), expected)


@pytest.mark.slow
def test_xgboost_grows_trees_by_source_too():
    pytest.importorskip("xgboost")
    X, y, source, items, truth = draw_votes()
    model = make_model(engine="xgboost").fit(X, y, source=source, item=items)
    assert (model.predict(X) == truth).mean() > 0.85
    assert model.sources_.shares[0] > model.sources_.shares[-1]


@pytest.mark.slow
def test_without_items_equal_rows_of_different_sources_are_one():
    X, y, source, items, _ = draw_votes()
    named, unnamed = make_model().fit(X, y, source=source, item=items), make_model().fit(X, y, source=source)
    np.testing.assert_array_equal(unnamed.sources_.matrices, named.sources_.matrices)
    assert unnamed.model_.out_of_fold.context.sources.n_items == 200


def test_the_truth_behind_several_labels_is_learned():
    X, y, source, _, truth = draw_votes(400)
    model = make_model().fit(X, y, source=source)
    np.testing.assert_allclose(1 - model.sources_.shares, [0.55, 0.7, 0.8, 0.9, 0.95], atol=0.08)
    assert (model.predict(X) == truth).mean() > 0.93


# What it refuses


@pytest.mark.parametrize(
    ("settings", "arguments", "words"),
    [
        ({}, {"source": ["a"] * 3}, "source must be one name per row of X, got 3 for 600 rows"),
        ({}, {"source": np.full((600, 1), "a")}, r"source must be one name per row, got an array of shape \(600, 1\)"),
        ({}, {"source": [None] * 600}, "source must be known for some of the rows"),
        ({}, {"item": np.arange(600)}, "item must come with source"),
        ({}, {"source": ["a"] * 600, "item": [1, 2]}, "item must be one name per row of X, got 2"),
        ({}, {"source": ["a"] * 600, "item": np.zeros(600)}, "two different items at least"),
        (
            {"noise": None},
            {"source": ["a"] * 600},
            'source must be None where no noise is estimated, .*: leave noise="auto"',
        ),
        (
            {"noise": (0.1, 0.1)},
            {"source": ["a"] * 600},
            'source must be None where no noise is estimated, .*: leave noise="auto"',
        ),
    ],
    ids=lambda one: str(one)[:40],
)
def test_what_does_not_go_with_sources_is_refused(settings, arguments, words):
    X, y, _, _ = draw_sourced_rows()
    model = make_model(**settings)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y, **arguments)
    assert not hasattr(model, "model_")


@pytest.mark.parametrize("kind", ["numbers", "categories", "sparse", "missing"])
def test_a_column_that_is_the_source_is_warned_of(kind):
    X, y, source, _ = draw_sourced_rows(200)
    code = np.unique(source, return_inverse=True)[1].astype(float)
    table, name = np.column_stack([X, code]), "column 4"
    if kind == "categories":
        table, name = pd.DataFrame(X, columns=list("abcd")).assign(branch=pd.Categorical(source)), "column 'branch'"
    if kind == "sparse":
        table = sparse.csr_matrix(table)
    if kind == "missing":
        table[source == "Bonn", 4] = np.nan
        source = np.where(source == "Bonn", None, source)
    # A warning is an error here, and ends the fit.
    with pytest.raises(UserWarning, match=f"{name} of X is the source: leave it out of X"):
        make_model().fit(table, y, source=source)


# What it says


def test_without_sources_there_are_none():
    X, y, _, _ = draw_sourced_rows(100)
    model = make_model().fit(X, y)
    with pytest.raises(AttributeError, match="fit was not told the sources"):
        getattr(model, "sources_")  # noqa: B009 - it is read to fail
    with pytest.raises(ValueError, match="source must be None: fit was not told"):
        model.alpha_star(X, ["Bonn"] * 100)
    assert model.model_.sources is None


def test_alpha_star_takes_what_labels_of_a_source_follow_to_the_truth(fitted):
    X, _, source, _ = draw_sourced_rows()
    alpha = fitted.alpha_star(X, source)
    clean = fitted.predict_proba(X)
    matrices = dict(zip(fitted.sources_.names, fitted.sources_.matrices, strict=True))
    twisted = np.array([row @ matrices[name] for row, name in zip(clean, source, strict=True)])
    np.testing.assert_allclose(alpha * logit(twisted[:, 1]), logit(clean[:, 1]), rtol=1e-8, atol=1e-8)
    sure = np.abs(clean[:, 1] - 0.5) > 0.4
    assert np.median(np.abs(alpha[sure & (source == "Leipzig")])) > 3 * np.median(alpha[sure & (source == "Ulm")])
    unknown = fitted.alpha_star(X)
    np.testing.assert_array_equal(unknown, fitted.alpha_star(X, [None] * len(X)))
    expected = logit(clean[:, 1]) / logit((clean @ fitted.sources_.overall)[:, 1])
    np.testing.assert_allclose(unknown, expected, rtol=1e-8)


def test_alpha_star_without_sources_is_that_of_all_labels():
    X, y, _, _ = draw_sourced_rows()
    for settings in ({}, {"class_weight": "balanced"}):
        model = make_model(**settings).fit(X, y, np.where(y == 1, 3.0, 1.0))
        shift = np.log(np.divide(*model.model_.class_weights[::-1]))
        clean, twisted = (logit(p[:, 1]) - shift for p in (model.predict_proba(X), model.predict_proba_twisted(X)))
        np.testing.assert_allclose(model.alpha_star(X) * twisted, clean, rtol=1e-6, atol=1e-6)
    plain = PILBoostClassifier(alpha=2.0, n_estimators=5, max_depth=2).fit(X, y)
    inside = np.abs(plain.predict_proba_twisted(X)[:, 1] - 0.5) < 0.4
    np.testing.assert_allclose(plain.alpha_star(X)[inside], 2.0, rtol=1e-6)


def test_alpha_star_refuses_what_it_cannot_tell(fitted):
    X, y, source, _ = draw_sourced_rows(classes=3)
    with pytest.raises(ValueError, match=r"names that fit has not seen: \['Rome'\]"):
        fitted.alpha_star(X[:2], ["Ulm", "Rome"])
    with pytest.raises(ValueError, match="got 1 for 2 rows"):
        fitted.alpha_star(X[:2], ["Ulm"])
    several = make_model().fit(X[:60], y[:60], source=source[:60])
    with pytest.raises(ValueError, match="alpha_star is for two classes, got a model of 3"):
        several.alpha_star(X)


# How it travels


@pytest.mark.slow
def test_sources_are_routed_through_pipelines_and_cross_validation():
    X, y, source, items, _ = draw_votes(100)
    folds = KFold(2)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_model().set_fit_request(source=True, item="thing")
        pipeline = make_pipeline(StandardScaler(), routed).fit(X, y, source=source, thing=items)
        found = cross_validate(
            routed, X, y, cv=folds, params={"source": source, "thing": items}, return_estimator=True
        )["estimator"]
        assert clone(routed).get_metadata_routing().fit.requests["item"] == "thing"
    Z = StandardScaler().fit_transform(X)
    expected = make_model().fit(Z, y, source=source, item=items)
    np.testing.assert_array_equal(pipeline.predict_proba(X), expected.predict_proba(Z))
    np.testing.assert_array_equal(pipeline[-1].sources_.shares, expected.sources_.shares)
    for model, (train, _) in zip(found, folds.split(X), strict=True):
        expected = make_model().fit(X[train], y[train], source=source[train], item=items[train])
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_copies_know_the_sources_and_clones_do_not(fitted):
    X, _, source, _ = draw_sourced_rows(50)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.copy(fitted), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(other.sources_.matrices, fitted.sources_.matrices)
        np.testing.assert_array_equal(other.alpha_star(X, source), fitted.alpha_star(X, source))
    assert not hasattr(clone(fitted), "sources_")
    assert "source" not in fitted.get_params()
    fitted_again = clone(fitted).fit(X, (X[:, 0] > 0).astype(int))
    assert not hasattr(fitted_again, "sources_")
