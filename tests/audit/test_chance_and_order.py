"""Audits that are told that labels are outcomes of chance, or in which order classes are."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from untwist import UntwistClassifier
from untwist.audit import audit_labels


def draw_levels(n=300):
    """Three levels of a number, which features tell but for their thresholds."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    return X, np.digitize(X[:, 0], [-0.5, 0.5])


def test_no_outcome_of_chance_is_wrong_on_any_surface():
    X, y = draw_levels()
    audit = audit_labels(X, y, UntwistClassifier(GaussianNB()), chance=True)
    assert audit.wrong.sum() == 0
    assert audit.suspects().size == 0
    for one in (audit.expected_yield(np.arange(30)), audit.verdict.share, audit.verdict.upper_bound):
        assert (one.value, one.low, one.high) == (0, 0, 0)
    with pytest.warns(UserWarning, match="outcomes of chance, none of which is wrong"):
        np.testing.assert_array_equal(audit.corrected(np.arange(300)), y)
    # The most surprising come first.
    of_label = audit.posterior[np.arange(300), y]
    np.testing.assert_allclose(of_label[audit.ranking], np.sort(of_label))


@pytest.mark.parametrize("known", ["reviewed", "source"])
def test_chance_goes_neither_with_sources_nor_with_a_review_whoever_knows_of_them(known):
    X, y = draw_levels()
    told = {"reviewed": np.arange(20)} if known == "reviewed" else {"source": np.arange(300) % 3}
    with pytest.raises(ValueError, match="chance=True goes neither with source nor with reviewed"):
        audit_labels(X, y, GaussianNB(), chance=True, **told)
    model = UntwistClassifier(GaussianNB()).fit(X, y, **told)
    with pytest.raises(ValueError, match="chance=True goes neither with source nor with reviewed"):
        audit_labels(X, y, model, chance=True, source=told.get("source"))


def test_an_order_is_told_once():
    X, y = draw_levels()
    with pytest.raises(ValueError, match="order must be None beside a model that has its own"):
        audit_labels(X, y, UntwistClassifier(GaussianNB(), order=[0, 1, 2]), order=[2, 0, 1])
    audit = audit_labels(X, y, UntwistClassifier(GaussianNB()), order=[2, 0, 1])
    np.testing.assert_array_equal(audit.context.order, [1, 2, 0])


def test_absent_rows_are_no_suspects():
    X, y = draw_levels()
    weight = np.where(y == 2, 0.0, 1.0)
    audit = audit_labels(X, y, UntwistClassifier(GaussianNB()), sample_weight=weight)
    assert (y[audit.suspects()] < 2).all()
    assert len(audit.suspects()) == round(audit.wrong[y < 2].sum())


# GaussianNB of scikit-learn 1.7 asks what kind of target its list of classes is, and is warned of it.
@pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%")
def test_a_yield_of_given_noise_of_few_classes_is_no_more_than_it_says():
    n_classes, n_rows = 30, 1800
    rng = np.random.default_rng(0)
    matrix = np.eye(n_classes)
    matrix[0, :2] = 0.9, 0.1
    y = rng.integers(n_classes, size=n_rows)
    X = rng.normal(size=(n_rows, n_classes)) + 8.0 * np.eye(n_classes)[y]
    audit = audit_labels(X, y, UntwistClassifier(GaussianNB(), noise=matrix))
    told = audit.expected_yield(np.arange(100))
    assert told.high < 10
