"""Weights of rows and of classes: a row of weight 2 is two rows."""

import math

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from helpers.learners import make_paper_model
from helpers.small_fits import any_settings, assert_same_forests, draw_many_rows, draw_sample, make_model


@pytest.mark.parametrize("setting", [{"min_samples_leaf": 30}, {"l2": 30.0}], ids=str)
@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_rows_count_with_their_weight_also_where_all_weigh_the_same(setting, factor):
    """Promise: min_samples_leaf and l2 count in rows, and a row of sample weight 2 is two rows."""
    X, y = draw_sample()
    value = dict.fromkeys(setting, type(setting[next(iter(setting))])(next(iter(setting.values())) / factor))
    weighted = make_model(**setting).fit(X, y, sample_weight=np.full(len(y), factor))
    plain = make_model(**value).fit(X, y)  # The rule is that much smaller for rows that count once.
    np.testing.assert_allclose(weighted.decision_function(X), plain.decision_function(X), rtol=1e-5, atol=1e-6)
    assert np.abs(make_model().fit(X, y).decision_function(X) - plain.decision_function(X)).max() > 1e-3


@any_settings
def test_a_weight_is_so_many_copies(settings):
    X, y = draw_sample(160)
    weight = 2 ** np.random.default_rng(5).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    one, other = make_model(**settings).fit(X, y, sample_weight=weight), make_model(**settings).fit(X[rows], y[rows])
    np.testing.assert_array_equal(np.unique(rows[other.validation_rows_]), one.validation_rows_)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-3, atol=1e-5)
    kept = np.arange(len(y)) % 3 > 0
    weight = np.where(kept, weight, 0)
    one, other = (
        make_model(**settings).fit(X, y, sample_weight=weight),
        make_model(**settings).fit(X[kept], y[kept], weight[kept]),
    )
    assert_same_forests(one, other, X)


def test_rows_of_weight_zero_are_absent_however_many():
    X, y = draw_many_rows()
    plain = make_model(1).fit(X, y)
    both, weight = np.vstack([X, X[:50_000] + 0.1]), np.repeat([1.0, 0.0], [60_000, 50_000])
    assert_same_forests(plain, make_model(1).fit(both, np.concatenate([y, y[:50_000]]), sample_weight=weight))


def test_weights_are_copies_whatever_their_ratios():
    X, y = draw_sample()
    weight = np.random.default_rng(3).integers(0, 4, len(y))
    weighted = make_paper_model(2.0, n_estimators=1, min_samples_leaf=7, l2=2.0).fit(X, y, sample_weight=weight)
    copies = make_paper_model(2.0, n_estimators=1, min_samples_leaf=7, l2=2.0).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_array_equal(weighted.forest_.feature, copies.forest_.feature)
    np.testing.assert_array_equal(weighted.forest_.threshold, copies.forest_.threshold)
    np.testing.assert_allclose(weighted.forest_.value, copies.forest_.value, rtol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("settings", [{}, {"engine": "reference"}, {"early_stopping": True}], ids=str)
@pytest.mark.thinned(3)
def test_class_weights_are_sample_weights(classes, settings):
    X, y = draw_sample(classes=classes)
    labels = np.array(["x", "y", "z"])[y]
    kept = np.random.default_rng(0).random(len(y)) > 0.4 * (y == 0)
    X, labels = X[kept], labels[kept]
    given_weight = np.random.default_rng(1).integers(1, 4, len(labels)).astype(float)
    dictionary = {"x": 3.0, "y": 0.5}
    by_hand = np.array([dictionary.get(label, 1.0) for label in labels])
    mass = {label: given_weight[labels == label].sum() for label in set(labels)}
    balanced = np.array([given_weight.sum() / (classes * mass[label]) for label in labels])
    for setting, weight, twin in (
        (dictionary, None, by_hand),
        (dictionary, given_weight, by_hand * given_weight),
        ("balanced", None, compute_sample_weight("balanced", labels)),
        ("balanced", given_weight, balanced * given_weight),
    ):
        one = make_model(class_weight=setting, **settings).fit(X, labels, sample_weight=weight)
        other = make_model(**settings).fit(X, labels, sample_weight=twin)
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
        np.testing.assert_array_equal(one.validation_rows_, other.validation_rows_)
        if classes == 2:
            given = one.certificate(X, labels, sample_weight=weight)
            assert given.exact.verdicts == other.certificate(X, labels, sample_weight=twin).exact.verdicts
    plain = make_model(**settings).fit(X, labels)
    assert (plain.decision_function(X) != one.decision_function(X)).any()


@pytest.mark.parametrize("setting", [{0: 0.0, 1: 0.0}, {0: 0.0}, {0: math.inf}], ids=str)
def test_class_weights_must_leave_two_classes(setting):
    with pytest.raises(ValueError, match="class"):
        make_model(class_weight=setting).fit(*draw_sample())
