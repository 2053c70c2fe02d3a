"""What labels are expected to be, against sums and differences that are written out."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from untwist.audit import expectation
from untwist.audit.expectation import LEAST_POSTERIOR, Expectation, calibrate, find_prior


def draw(n_classes=3, n_matrices=2, n=40, seed=0):
    rng = np.random.default_rng(seed)
    clean = rng.dirichlet(np.full(n_classes, 0.5), n)
    clean[0] = np.eye(n_classes)[0]
    matrices = 0.8 * np.eye(n_classes) + 0.2 * rng.dirichlet(np.ones(n_classes), (n_matrices, n_classes))
    expected = Expectation(clean, matrices, rng.integers(0, n_matrices, n))
    return expected, rng.integers(0, n_classes, n), rng.integers(0, 3, n) * 1.0


def change_slowly(expected, parameters):
    """The clean posterior, raised to the slope and times the exponentials of the offsets, row by row."""
    changed = []
    for row in expected.clean:
        powers = [
            max(p, LEAST_POSTERIOR) ** parameters[-1] * np.exp(offset)
            for p, offset in zip(row, parameters[:-1], strict=True)
        ]
        changed.append([one / sum(powers) for one in powers])
    return np.array(changed)


def twist_slowly(expected, values):
    rows = [row @ expected.matrices[number] for row, number in zip(values, expected.matrix_of_row, strict=True)]
    return np.maximum(rows, LEAST_POSTERIOR)


@pytest.mark.parametrize("n_matrices", [1, 2])
def test_posteriors_follow_the_matrix_of_each_row(n_matrices):
    expected, labels, weight = draw(n_matrices=n_matrices)
    np.testing.assert_allclose(expected.posterior, twist_slowly(expected, expected.clean))
    np.testing.assert_allclose(expected.logs, np.log(np.maximum(expected.clean, LEAST_POSTERIOR)))
    rows = np.array([7, 0, 30])
    np.testing.assert_array_equal(expected.take(rows).posterior, expected.posterior[rows])
    likelihood = sum(weight[row] * np.log(expected.posterior[row, labels[row]]) for row in range(40))
    assert expected.find_likelihood(labels, weight) == pytest.approx(likelihood)
    alone = Expectation.under_one_matrix(expected.clean, expected.matrices[0])
    np.testing.assert_allclose(alone.posterior, np.maximum(expected.clean @ expected.matrices[0], LEAST_POSTERIOR))
    certain = Expectation.under_one_matrix(expected.clean, np.eye(3))
    assert certain.posterior[0].tolist() == [1.0, LEAST_POSTERIOR, LEAST_POSTERIOR]


def test_offsets_and_a_slope_change_the_clean_posterior():
    expected, _, _ = draw()
    parameters = np.array([0.5, -1.0, 0.2, 0.7])
    np.testing.assert_allclose(expected.change(parameters).clean, change_slowly(expected, parameters))


@pytest.mark.parametrize("n_matrices", [1, 2])
def test_directions_are_derivatives(n_matrices):
    expected, _, _ = draw(n_matrices=n_matrices)
    parameters = np.array([0.5, -1.0, 0.2, 0.7])
    found = list(expected.change(parameters).list_directions(expected.logs))
    assert len(found) == 4
    for index, direction in enumerate(found):
        step = 1e-6 * np.eye(4)[index]
        up, down = (np.log(expected.change(parameters + sign * step).posterior) for sign in (1, -1))
        np.testing.assert_allclose(direction, (up - down) / 2e-6, atol=1e-6)


def test_offsets_spread_by_3_and_slopes_by_a_fifth_around_1():
    means, precisions = find_prior(3)
    assert means.tolist() == [0, 0, 0, 1]
    np.testing.assert_allclose(precisions, [1 / 9, 1 / 9, 1 / 9, 25])


@pytest.mark.parametrize("fits_slope", [True, False])
@pytest.mark.parametrize(("n_classes", "n_matrices"), [(2, 1), (3, 2)])
def test_what_fits_best_is_found(n_classes, n_matrices, fits_slope):
    expected, labels, weight = draw(n_classes, n_matrices)

    def find_cost(free):
        parameters = free if fits_slope else np.append(free, 1.0)
        likelihood = replace(expected, clean=change_slowly(expected, parameters)).find_likelihood(labels, weight)
        prior = (parameters[:-1] ** 2).sum() / 18 + 25 * (parameters[-1] - 1) ** 2 / 2
        return prior - likelihood

    start = np.append(np.zeros(n_classes), 1.0)[: n_classes + fits_slope]
    best = minimize(find_cost, start, method="BFGS", options={"gtol": 1e-8})
    found = calibrate(expected, labels, weight, fits_slope=fits_slope)
    assert found.explained == pytest.approx(-best.fun, abs=1e-5)
    np.testing.assert_allclose(found.parameters[: len(best.x)], best.x, atol=2e-3)
    assert fits_slope or found.parameters[-1] == 1.0
    np.testing.assert_allclose(found.expected.clean, change_slowly(expected, found.parameters))
    absent = calibrate(expected.take(np.flatnonzero(weight)), labels[weight > 0], weight[weight > 0])
    assert not fits_slope or absent.explained == found.explained


def test_steps_that_go_too_far_are_halved(monkeypatch):
    """Labels that contradict sure posteriors ask for long steps, none of which may make the fit worse."""
    rng = np.random.default_rng(0)
    clean = np.where(rng.random((30, 1)) < 0.5, [[1 - 1e-6, 1e-6]], [[1e-6, 1 - 1e-6]])
    expected = Expectation.under_one_matrix(clean, np.eye(2))
    labels = 1 - clean.argmax(axis=1)
    labels[::3] = 0
    weight = np.full(30, 50.0)
    explained = []
    for most in range(1, 8):
        monkeypatch.setattr(expectation, "MOST_STEPS", most)
        explained.append(calibrate(expected, labels, weight).explained)
    assert explained == sorted(explained)
    assert explained[0] > expected.find_likelihood(labels, weight)
    monkeypatch.setattr(expectation, "MOST_HALVINGS", 0)
    stays = calibrate(expected, labels, weight)
    assert stays.explained == pytest.approx(expected.find_likelihood(labels, weight))
    assert stays.parameters.tolist() == [0, 0, 1]


def test_weights_beside_which_the_prior_is_lost_change_nothing():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        posterior = rng.dirichlet([1.0, 1.0], 100)
        labels = (rng.random(100) < posterior[:, 1]).astype(int)
        expected = Expectation.under_one_matrix(posterior, np.eye(2))
        usual, huge = (
            calibrate(expected, labels, np.full(100, weight), fits_slope=False).expected
            for weight in (1e9, 2.0**53 / 100)
        )
        np.testing.assert_allclose(huge.posterior, usual.posterior, atol=1e-3)
