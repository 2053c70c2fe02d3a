"""Posteriors of any model, brought to what the labels say of them."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from untwist.noise import calibration
from untwist.noise.calibration import calibrate


def draw_labels(n=3000, n_classes=3, seed=0):
    """Honest posteriors, none of them near 0, and labels that follow them."""
    rng = np.random.default_rng(seed)
    posterior = 0.97 * softmax(1.5 * rng.normal(size=(n, n_classes)), axis=1) + 0.03 / n_classes
    labels = (rng.random(n)[:, None] > np.cumsum(posterior, axis=1)).sum(axis=1)
    return posterior, labels


def distort(posterior, slope, offsets):
    return softmax(slope * np.log(posterior) + offsets, axis=1)


def find_log_loss(posterior, labels, weight=None):
    return -np.average(np.log(posterior[np.arange(len(labels)), labels]), weights=weight)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_honest_posteriors_stay_as_they_are(n_classes):
    posterior, labels = draw_labels(n_classes=n_classes)
    np.testing.assert_allclose(calibrate(posterior, labels, np.ones(3000)), posterior, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("slope", [0.4, 2.5])
def test_distorted_posteriors_come_back(n_classes, slope):
    posterior, labels = draw_labels(n_classes=n_classes)
    offsets = np.linspace(-0.5, 0.5, n_classes)
    found = calibrate(distort(posterior, slope, offsets), labels, np.ones(3000))
    assert np.abs(found - posterior).mean() < 0.02
    assert find_log_loss(found, labels) < find_log_loss(posterior, labels) + 0.002


def test_it_is_what_a_slow_twin_finds():
    posterior, labels = draw_labels()
    given = distort(posterior, 1.6, np.array([0.0, 0.3, -0.3]))  # All of it is above the floor.
    logs = np.log(given)

    def cost(parameters):
        log_slope, *offsets = parameters
        likely = softmax(np.exp(log_slope) * logs + offsets, axis=1)
        prior = (log_slope / calibration.SLOPE_SPREAD) ** 2 + np.sum(
            (offsets / np.float64(calibration.OFFSET_SPREAD)) ** 2
        )
        return 3000 * find_log_loss(likely, labels) + prior / 2

    best = minimize(cost, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9, "maxiter": 5000}).x
    expected = softmax(np.exp(best[0]) * logs + best[1:], axis=1)
    np.testing.assert_allclose(calibrate(given, labels, np.ones(3000)), expected, atol=1e-3)


def test_the_gradient_is_that_of_the_cost():
    posterior, labels = draw_labels(200)
    rows = np.log(posterior), labels, np.random.default_rng(1).random(200)
    at = np.array([0.3, 0.1, -0.4, 0.2])
    gradient = calibration._find_cost(at, *rows)[1]
    for one in range(4):
        step = 1e-6 * np.eye(4)[one]
        difference = calibration._find_cost(at + step, *rows)[0] - calibration._find_cost(at - step, *rows)[0]
        assert gradient[one] == pytest.approx(difference / 2e-6, rel=1e-5)


def test_of_two_classes_no_two_rows_change_their_order():
    posterior, labels = draw_labels(n_classes=2)
    given = distort(posterior, 3.0, np.array([0.2, -0.2]))
    found = calibrate(given, labels, np.ones(3000))
    assert (np.diff(found[np.argsort(given[:, 1]), 1]) >= 0).all()
    assert len(np.unique(found[:, 1])) > 0.95 * len(np.unique(given[:, 1]))


def test_weights_of_any_scale_and_rows_in_any_order_give_the_same():
    posterior, labels = draw_labels(500)
    given = distort(posterior, 2.0, np.zeros(3))
    weight = np.random.default_rng(2).integers(0, 3, 500).astype(float)
    order = np.random.default_rng(3).permutation(500)
    found = calibrate(given, labels, weight)
    np.testing.assert_array_equal(calibrate(given[order], labels[order], weight[order]), found[order])
    twice = calibrate(given, labels, 2.0 * weight)
    np.testing.assert_allclose(twice, found, atol=1e-3)


def test_no_probability_is_0():
    labels = np.arange(60) % 3
    found = calibrate(np.eye(3)[labels], labels, np.ones(60))
    assert found.min() > 0
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
