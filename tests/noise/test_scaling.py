"""Matrix scaling, which explains labels without any noise: its slow twin, its optimum, and what it can explain."""

import numpy as np
import pytest
from scipy.optimize import minimize

from helpers import transitions_twin as twin
from untwist.noise import scaling
from untwist.noise.plausibility import ChosenRows
from untwist.noise.scaling import fit_scaling


def draw_rows(n=80, n_classes=3, seed=0, flatten=1.0):
    """Posteriors, flatter or steeper than labels are, and labels that follow the true ones."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.full(n_classes, 0.6), n) + 0.01
    true /= true.sum(axis=1, keepdims=True)
    labels = (rng.random((n, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(0, n_classes - 1)
    twisted = true**flatten
    order = np.argsort(labels, kind="stable")
    return ChosenRows(
        (twisted / twisted.sum(axis=1, keepdims=True))[order], labels[order], rng.uniform(0.5, 2.0, n)[order]
    )


def weigh(rows, parameters):
    """The slow twin at parameters of a row each for the matrix, and offsets."""
    n_classes = rows.twisted.shape[1]
    return twin.weigh_scaling(rows, parameters[:-n_classes].reshape(n_classes, n_classes), parameters[-n_classes:])


def explain_as_it_is(rows):
    """The log-likelihood of the posteriors as they are."""
    return float(rows.weight @ np.log(rows.twisted[np.arange(len(rows.labels)), rows.labels]))


@pytest.mark.parametrize(("n_classes", "flatten"), [(2, 1.0), (3, 0.4), (4, 2.0)])
def test_the_best_scaling_is_that_of_the_slow_twin_from_any_start(n_classes, flatten):
    rows = draw_rows(40, n_classes, n_classes, flatten)
    found = fit_scaling(rows).value
    rng = np.random.default_rng(1)
    n_parameters = n_classes * (n_classes + 1)
    for start in (np.zeros(n_parameters), rng.normal(0.0, 1.0, n_parameters)):
        # The search has no gradient, so that it is that of the twin's own differences; the problem is convex.
        best = minimize(lambda x: -weigh(rows, x), start, method="BFGS", options={"gtol": 1e-4})
        assert found == pytest.approx(-best.fun, abs=1e-3)


def test_its_gradient_is_that_of_differences_and_its_value_that_of_the_slow_twin(monkeypatch):
    rows = draw_rows(30, 3)
    costs = []

    def look(find_cost, start, *, jac, method, options):
        assert (jac, options["maxiter"]) == (True, scaling.MOST_STEPS)
        np.testing.assert_array_equal(start, [*np.eye(3).ravel(), 0.0, 0.0, 0.0])
        costs.append(find_cost)
        return minimize(find_cost, start, jac=jac, method=method, options=options)

    monkeypatch.setattr(scaling, "minimize", look)
    fit_scaling(rows)
    (find_cost,) = costs
    rng = np.random.default_rng(2)
    for _ in range(3):
        x = np.concatenate([np.eye(3).ravel(), np.zeros(3)]) + 0.3 * rng.normal(size=12)
        cost, gradient = find_cost(x)
        assert cost == pytest.approx(-weigh(rows, x))
        differences = [
            (find_cost(x + 1e-6 * step)[0] - find_cost(x - 1e-6 * step)[0]) / 2e-6 for step in np.eye(len(x))
        ]
        np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("flatten", [0.5, 1.0, 2.0])
def test_scaled_rows_are_those_of_the_best_scaling_and_have_no_more_to_scale(flatten):
    rows = draw_rows(400, 3, 7, flatten)
    best = minimize(lambda x: -weigh(rows, x), np.append(np.eye(3).ravel(), np.zeros(3)), method="BFGS")
    matrix, offsets = best.x[:9].reshape(3, 3), best.x[9:]
    scaled = fit_scaling(rows)
    logs = np.log(rows.twisted) - np.log(rows.twisted).mean(axis=1, keepdims=True)
    expected = np.exp(logs @ matrix.T + offsets)
    np.testing.assert_allclose(scaled.rows.twisted, expected / expected.sum(axis=1, keepdims=True), atol=1e-3)
    np.testing.assert_array_equal(scaled.rows.labels, rows.labels)
    np.testing.assert_array_equal(scaled.rows.weight, rows.weight)
    # Hardly more is left than what the prior had held back.
    assert explain_as_it_is(scaled.rows) >= scaled.value
    gained = scaled.value - explain_as_it_is(rows)
    assert fit_scaling(scaled.rows).value - explain_as_it_is(scaled.rows) < max(1.0, gained / 4.0)


def test_scaled_rows_keep_off_0():
    rows = draw_rows(400, 3, 7, 3.0)
    sharp = rows.twisted**6
    sharp = np.clip(sharp / sharp.sum(axis=1, keepdims=True), 1e-4, 1.0)
    scaled = fit_scaling(rows._replace(twisted=sharp / sharp.sum(axis=1, keepdims=True), labels=rows.labels)).rows
    np.testing.assert_allclose(scaled.twisted.sum(axis=1), 1.0)
    assert scaled.twisted.min() >= 1e-4 / 1.001


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_classes", [3, 12])
def test_it_explains_at_least_as_much_as_the_posteriors_as_they_are(n_classes, seed):
    rows = draw_rows(60, n_classes, seed)
    assert fit_scaling(rows).value >= explain_as_it_is(rows)


def test_posteriors_that_are_too_flat_are_explained_and_true_ones_hardly_any_better():
    flat, true = draw_rows(2000, 3, 1, 0.5), draw_rows(2000, 3, 1, 1.0)
    assert fit_scaling(flat).value - explain_as_it_is(flat) > 100.0
    # Of twelve parameters chance gains about half a nat each.
    assert fit_scaling(true).value - explain_as_it_is(true) < 12.0
    assert fit_scaling(flat).value == pytest.approx(fit_scaling(true).value, abs=12.0)


def test_weights_count_copies_and_the_order_of_classes_does_not_matter():
    rows = draw_rows(50, 3)._replace(weight=np.full(50, 2.0))
    twice = ChosenRows(*(np.concatenate([one, one]) for one in (rows.twisted, rows.labels)), np.ones(100))
    assert fit_scaling(rows).value == pytest.approx(fit_scaling(twice).value, abs=1e-3)
    order = np.array([2, 0, 1])
    moved = ChosenRows(rows.twisted[:, order], np.argsort(order)[rows.labels], rows.weight)
    assert fit_scaling(rows).value == pytest.approx(fit_scaling(moved).value, abs=1e-3)


def test_a_scaling_has_the_floor_that_it_is_told():
    rows = draw_rows(60, 3, 3, 0.3)
    floored = np.maximum(rows.twisted, 0.25)
    told = fit_scaling(rows, 0.25).value
    assert told == pytest.approx(fit_scaling(rows._replace(twisted=floored)).value, abs=1e-6)
    assert told != pytest.approx(fit_scaling(rows).value, abs=1e-3)


@pytest.mark.parametrize("least", [0.0, 0.01, 0.05])
def test_what_is_scaled_comes_no_nearer_to_0_than_it_may(least):
    rows = draw_rows(200, 3, 5, 2.0)
    floored = np.maximum(rows.twisted, least)
    floored /= floored.sum(axis=1, keepdims=True)
    scaled, expected = fit_scaling(rows, least), fit_scaling(rows._replace(twisted=floored))
    assert scaled.value == pytest.approx(expected.value)
    np.testing.assert_allclose(scaled.rows.twisted, expected.rows.twisted, atol=1e-6)
    assert scaled.value >= explain_as_it_is(rows._replace(twisted=floored))
    if least > 0.04:
        assert scaled.value < fit_scaling(rows).value - 1.0
