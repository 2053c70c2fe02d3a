"""The alpha-loss of several classes, against its definition, its limits and numerical derivatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from untwist.theory.losses import AlphaLoss
from untwist.theory.several_classes import find_gradient, find_loss, find_twisted_posterior, tilt_posterior

ALPHAS = [0.5, 0.8, 1.0, 1.5, 2.0, 10.0]


def make_rows(seed, n_classes, n_rows=20):
    rng = np.random.default_rng(seed)
    return rng.normal(scale=2.0, size=(n_rows, n_classes)), rng.integers(n_classes, size=n_rows)


def make_posterior(seed, n_classes):
    return np.random.default_rng(seed).dirichlet(np.ones(n_classes))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_loss_by_its_definition(alpha):
    scores, labels = make_rows(0, 5)
    for row, label, loss in zip(scores, labels, find_loss(scores, labels, alpha), strict=True):
        p = np.exp(row[label]) / np.exp(row).sum()
        expected = -np.log(p) if alpha == 1 else alpha / (alpha - 1) * (1 - p ** ((alpha - 1) / alpha))
        assert loss == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_two_classes_are_those_of_the_paper(alpha):
    scores, labels = make_rows(1, 2)
    p = 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))
    loss = AlphaLoss(alpha)
    expected = np.where(labels == 1, loss.partial_pos(p), loss.partial_neg(p))
    np.testing.assert_allclose(find_loss(scores, labels, alpha), expected, rtol=1e-10)


def test_log_loss_is_the_limit():
    scores, labels = make_rows(2, 4)
    np.testing.assert_allclose(find_loss(scores, labels, 1 + 1e-9), find_loss(scores, labels, 1.0), rtol=1e-7)


@given(seed=st.integers(0, 1000), n_classes=st.integers(2, 8), alpha=st.floats(0.3, 20.0))
def test_gradient_by_central_differences(seed, n_classes, alpha):
    scores, labels = make_rows(seed, n_classes, n_rows=3)
    gradient = find_gradient(scores, labels, alpha)
    step = 1e-5
    for k in range(n_classes):
        ahead, back = scores.copy(), scores.copy()
        ahead[:, k] += step
        back[:, k] -= step
        slope = (find_loss(ahead, labels, alpha) - find_loss(back, labels, alpha)) / (2 * step)
        # A difference has the square of the step as its error, and the rounding of a loss over the step.
        np.testing.assert_allclose(gradient[:, k], slope, rtol=1e-5, atol=1e-5)


@given(seed=st.integers(0, 1000), n_classes=st.integers(2, 8), alpha=st.floats(0.3, 20.0))
def test_gradient_adds_up_to_nothing(seed, n_classes, alpha):
    scores, labels = make_rows(seed, n_classes)
    gradient = find_gradient(10 * scores, labels, alpha)
    scale = np.abs(gradient).max(axis=1)
    assert (np.abs(gradient.sum(axis=1)) <= 1e-14 * scale).all()
    is_label = np.arange(n_classes) == labels[:, None]
    assert (gradient[is_label] <= 0).all()
    assert (gradient[~is_label] >= 0).all()


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_minimiser_is_the_tilted_posterior(alpha, n_classes):
    q = make_posterior(n_classes, n_classes)

    def find_expected_loss(scores):
        return q @ find_loss(np.tile(scores, (n_classes, 1)), np.arange(n_classes), alpha)

    best = minimize(find_expected_loss, np.zeros(n_classes), method="BFGS", options={"gtol": 1e-9}).x
    p = np.exp(best) / np.exp(best).sum()
    np.testing.assert_allclose(p, tilt_posterior(q[None], alpha)[0], atol=2e-4)
    np.testing.assert_allclose(find_twisted_posterior(best[None], alpha)[0], q, atol=2e-4)


@given(seed=st.integers(0, 1000), n_classes=st.integers(2, 8), alpha=st.floats(0.1, 50.0))
def test_gradient_vanishes_at_the_tilted_posterior(seed, n_classes, alpha):
    q = make_posterior(seed, n_classes)
    scores = alpha * np.log(q)
    gradients = find_gradient(np.tile(scores, (n_classes, 1)), np.arange(n_classes), alpha)
    size = q @ np.abs(gradients)
    assert (np.abs(q @ gradients) <= 1e-9 * size).all()
    np.testing.assert_allclose(find_twisted_posterior(scores[None], alpha)[0], q, rtol=1e-9)


def test_extreme_scores_have_finite_losses():
    scores = np.array([[1e4, 0.0, -1e4], [0.0, 1e4, 0.0]])
    for labels in ([0, 1], [2, 0]):
        assert np.isfinite(find_loss(scores, labels, 2.0)).all()
        assert np.isfinite(find_gradient(scores, labels, 2.0)).all()
    np.testing.assert_array_equal(find_loss(scores, [0, 1], 2.0), [0.0, 0.0])
    np.testing.assert_array_equal(find_loss(scores, [2, 0], 2.0), [2.0, 2.0])


def test_bad_arguments():
    with pytest.raises(ValueError, match="alpha"):
        find_loss([[0.0, 1.0]], [0], 0.0)
    with pytest.raises(ValueError, match="posterior"):
        tilt_posterior([[1.5, -0.5]], 2.0)
