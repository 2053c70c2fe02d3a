"""What cleanlab's users rely on, by the subjects of its tests, written anew for `audit_labels`."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from untwist.audit import audit_labels

N = 300


@pytest.fixture(scope="module")
def clouds():
    """Three clouds of points in the plane, their true classes, and labels of which one in eight is wrong."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], N // 3)
    X = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])[truth] + rng.normal(size=(N, 2))
    labels = np.where(rng.random(N) < 0.125, (truth + rng.integers(1, 3, N)) % 3, truth)
    return X, truth, labels


@pytest.fixture(scope="module")
def posteriors(clouds):
    """Out-of-fold posteriors of another model."""
    X, _, labels = clouds
    return cross_val_predict(LogisticRegression(), X, labels, cv=5, method="predict_proba")


@pytest.fixture(scope="module")
def audit(clouds, posteriors):
    X, _, labels = clouds
    return audit_labels(X, labels, pred_probs=posteriors)


def test_most_wrong_labels_are_found_and_little_else(clouds, audit):
    _, truth, labels = clouds
    wrong = labels != truth
    assert wrong[audit.suspects()].mean() > 0.85
    assert wrong[audit.suspects()].sum() > 0.85 * wrong.sum()


def test_a_budget_is_kept_and_ranked_by_how_suspect_labels_are(audit):
    assert len(audit.suspects(budget=7)) == 7
    assert (np.diff(audit.wrong[audit.suspects(budget=N)]) <= 0).all()
    assert sorted(audit.suspects(budget=N)) == list(range(N))
    assert audit.suspects(budget=0).size == 0


def test_fewer_false_alarms_are_fewer_suspects(audit):
    strict, lax = (set(audit.suspects(false_discovery_rate=rate)) for rate in (0.01, 0.3))
    assert strict < lax


def test_probabilities_are_probabilities_and_rates_lie_in_their_intervals(audit):
    assert audit.wrong.shape == (N,)
    assert ((audit.wrong >= 0) & (audit.wrong <= 1)).all()
    for share, low, high in (audit.noise_rate, *audit.rate_by_label.values()):
        assert 0.0 <= low <= share <= high <= 1.0


def test_the_matrix_of_noise_is_stochastic_and_near_the_truth(clouds, audit):
    _, truth, labels = clouds
    np.testing.assert_allclose(audit.matrix.sum(axis=1), 1.0)
    actual = np.array([[np.mean(labels[truth == true] == label) for label in range(3)] for true in range(3)])
    np.testing.assert_allclose(audit.matrix, actual, atol=0.08)


def test_corrected_labels_are_nearer_to_the_truth(clouds, audit):
    _, truth, labels = clouds
    corrected = audit.corrected()
    assert (corrected != truth).sum() < 0.4 * (labels != truth).sum()
    unsuspected = np.setdiff1d(np.arange(N), audit.suspects())
    np.testing.assert_array_equal(corrected[unsuspected], labels[unsuspected])


def test_clean_labels_have_no_suspects(clouds):
    X, truth, _ = clouds
    posteriors = cross_val_predict(LogisticRegression(), X, truth, cv=5, method="predict_proba")
    assert len(audit_labels(X, truth, pred_probs=posteriors).suspects()) <= 3


@pytest.mark.parametrize("names", [["a", "b", "c"], [10, 20, 30], [-1.0, 0.0, 1.0]], ids=str)
def test_names_of_classes_make_no_difference(clouds, posteriors, audit, names):
    X, _, labels = clouds
    named = audit_labels(X, np.array(names)[labels], pred_probs=posteriors)
    np.testing.assert_allclose(named.wrong, audit.wrong, atol=1e-12)
    assert set(named.corrected()) <= set(names)


def test_any_classifier_is_fitted_out_of_fold_to_dense_and_sparse_tables(clouds):
    X, truth, labels = clouds
    dense, sparse = (audit_labels(table, labels, LogisticRegression()) for table in (X, csr_array(X)))
    assert (labels != truth)[dense.suspects()].mean() > 0.85
    assert len(np.setxor1d(dense.suspects(), sparse.suspects())) <= 0.1 * N


def test_a_rare_class_is_not_wrong_by_being_rare():
    rng = np.random.default_rng(1)
    truth = np.repeat([0, 1, 2], [150, 140, 10])
    X = 6.0 * np.eye(3)[truth] + rng.normal(size=(300, 3))
    audit = audit_labels(X, truth, LogisticRegression())
    assert (truth[audit.suspects()] == 2).sum() <= 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.full((N, 2), 0.5), "3"),
        (np.full((N - 1, 3), 1 / 3), str(N - 1)),
        (np.full((N, 3), np.nan), "NaN|nan|finite"),
        (np.full((N, 3), -1.0), "pred_probs"),
    ],
)
def test_posteriors_that_cannot_be_are_refused(clouds, given, message):
    X, _, labels = clouds
    with pytest.raises(ValueError, match=message):
        audit_labels(X, labels, pred_probs=given)


def test_missing_labels_and_other_lengths_are_refused(clouds, posteriors):
    X, _, labels = clouds
    with pytest.raises(ValueError, match=r"[Nn]a[Nn]|missing"):
        audit_labels(X, np.where(np.arange(N) == 5, np.nan, labels), pred_probs=posteriors)
    with pytest.raises(ValueError, match=str(N - 1)):
        audit_labels(X, labels[:-1], pred_probs=posteriors)
