"""What users of other boosters look for: names, logarithms, a number for missing values, generators."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from helpers.small_fits import assert_same_forests, draw_sample, make_model
from untwist import UntwistClassifier
from untwist.export import numbers
from untwist.files import dumps, loads


@pytest.mark.parametrize("classes", [2, 3])
def test_logarithms_of_posteriors_and_the_number_of_classes(classes):
    X, y = draw_sample(classes=classes)
    model = make_model().fit(X, y)
    np.testing.assert_array_equal(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    assert model.n_classes_ == classes
    assert not hasattr(make_model(), "n_classes_")


def test_the_older_name_of_a_parameter_is_still_taken():
    X, y = draw_sample()
    older, newer = make_model(l2=3.0).fit(X, y), make_model(l2_regularization=3.0).fit(X, y)
    assert_same_forests(older, newer, X)
    assert_same_forests(clone(older).fit(X, y), newer, X)
    assert older.get_params()["l2"] == 3.0
    assert (clone(older).l2, clone(older).l2_regularization) == (3.0, "auto")
    again = clone(older).set_params(l2="auto", l2_regularization=3.0).fit(X, y)
    assert_same_forests(again, newer, X)
    assert_same_forests(loads(dumps(older)).fit(X, y), newer, X)
    with pytest.raises(ValueError, match="l2_regularization and l2 are one parameter: give l2_regularization alone"):
        make_model(l2=3.0, l2_regularization=3.0).fit(X, y)


def test_an_engine_that_knows_the_older_name_knows_the_parameter():
    X, y = draw_sample()
    with pytest.raises(ValueError, match=r'l2_regularization=1\.0 needs engine="compiled" or "xgboost"'):
        make_model(engine="reference", l2=1.0).fit(X, y)


# A number for missing values


@pytest.mark.parametrize("kind", ["array", "single", "sparse", "frame", "text"])
def test_a_number_counts_as_missing(kind):
    X, y = draw_sample(missing=0.2)
    filled = np.where(np.isnan(X), -999.0, X)

    def wrap(table):
        if kind == "single":
            return table.astype(np.float32)
        if kind == "sparse":
            return sparse.csr_array(table)
        if kind == "frame":
            return pytest.importorskip("pandas").DataFrame(table, columns=list("abcd"))
        if kind == "text":
            mixed = table.astype(object)
            mixed[:, 3] = np.where(X[:, 3] > 0, "a", "b")
            return mixed
        return table

    expected = make_model().fit(wrap(X), y)
    model = make_model(missing=-999).fit(wrap(filled), y)
    assert_same_forests(model, expected, wrap(filled), wrap(X))
    loaded = loads(dumps(model))
    np.testing.assert_array_equal(loaded.predict_proba(wrap(filled)), expected.predict_proba(wrap(X)))
    assert np.isnan(numbers(model, wrap(filled))).sum() == np.isnan(numbers(expected, wrap(X))).sum() > 0
    assert make_model(missing=np.nan).fit(wrap(X), y).model_.encoder.schema.missing is None


def test_a_category_is_no_missing_number_and_a_category_by_index_is_not_mistaken():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 4, 300), rng.normal(size=300)])
    y = (np.isin(X[:, 0], (1, 3)) ^ (X[:, 1] > 1)).astype(int)
    plain = make_model(categorical_features=[0]).fit(X, y)
    model = make_model(categorical_features=[0], missing=1.0).fit(X, y)
    assert_same_forests(plain, model, X)


def test_the_table_that_was_given_stays_as_it_was():
    X, y = draw_sample()
    X[::7, 0] = -1.0
    before = X.copy()
    make_model(missing=-1).fit(X, y).predict(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("missing", ["?", True, np.inf, [1.0]])
def test_what_is_no_number_for_missing_values_is_refused(missing):
    X, y = draw_sample()
    with pytest.raises(ValueError, match="missing must be"):
        make_model(missing=missing).fit(X, y)


def test_zeros_of_a_sparse_table_cannot_be_missing():
    X, y = draw_sample()
    with pytest.raises(ValueError, match="missing must not be 0 for a sparse table"):
        make_model(missing=0).fit(sparse.csr_array(X), y)


# Generators


def test_a_generator_gives_a_number_to_every_fit():
    X, y = draw_sample()
    settings = {"subsample": 0.5}
    one = make_model(random_state=np.random.default_rng(5), **settings)
    same = make_model(random_state=np.random.default_rng(5), **settings)
    first = one.fit(X, y).decision_function(X)
    np.testing.assert_array_equal(first, same.fit(X, y).decision_function(X))
    assert (one.fit(X, y).decision_function(X) != first).any()  # The generator has moved on.
    copied = clone(make_model(random_state=np.random.default_rng(5), **settings))
    np.testing.assert_array_equal(copied.fit(X, y).decision_function(X), first)
    assert isinstance(copied.get_params()["random_state"], np.random.Generator)
    assert loads(dumps(one)).random_state is None
    assert UntwistClassifier(random_state=np.random.default_rng(0)).fit(X, y).n_iter_ > 0
