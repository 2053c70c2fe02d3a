"""The noise of all labels as components: they untwist as the noise does, and are put together again."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import transitions_twin as twin
from helpers.shared_models import draw_matrices
from untwist.noise.components import find_log_odds, take_components
from untwist.noise.rates import estimate_noise
from untwist.noise.untwisting import Untwisting


def estimate_pairs(n_rows=3000):
    rng = np.random.default_rng(0)
    twisted = 0.1 + 0.6 / (1.0 + np.exp(-6.0 * rng.normal(size=n_rows)))
    noise = estimate_noise(twisted, (rng.random(n_rows) < twisted).astype(int))
    return noise, np.column_stack([1.0 - twisted, twisted])[:50]


def untwist_all(noise, posterior, most):
    components = take_components(noise, posterior)
    listed = components.list_components(most)
    return sum(each.weight * np.exp(components.untwist(each)) for each in listed), listed, components


def test_all_pairs_of_rates_together_untwist_as_the_noise_does():
    noise, posterior = estimate_pairs()
    clean, listed, _ = untwist_all(noise, posterior, 10_000)
    assert len(listed) == len(noise.weights)
    # The table of an untwisting has steps of 0.01.
    np.testing.assert_allclose(clean[:, 1], noise.clean(find_log_odds(posterior)), atol=1e-4)
    np.testing.assert_allclose(clean.sum(axis=1), 1.0)


def test_neighbours_are_one_component_where_there_would_be_too_many():
    noise, posterior = estimate_pairs()
    clean, listed, components = untwist_all(noise, posterior, 5)
    assert len(listed) <= 5 < len(noise.weights)
    assert sum(each.weight for each in listed) == pytest.approx(1.0)
    assert sorted(np.concatenate([each.members for each in listed])) == list(range(len(noise.weights)))
    np.testing.assert_allclose(clean[:, 1], noise.clean(find_log_odds(posterior)), atol=0.05)
    # With the weights that they had, they are the noise again.
    same = components.combine(listed, np.array([each.weight for each in listed]))
    np.testing.assert_allclose(same.weights, noise.weights)
    # All weight on one of them leaves the pairs that it stands for.
    chosen = components.combine(listed, np.eye(len(listed))[0])
    assert len(chosen.weights) <= len(listed[0].members)


def test_pairs_that_were_moved_are_taken_as_they_are():
    noise, posterior = estimate_pairs()
    _, listed, components = untwist_all(noise, posterior, 1)
    matrix = np.array([[0.85, 0.15], [0.25, 0.75]])
    moved = replace(listed[0], matrix=matrix, slopes=np.full(2, 1.3), members=np.zeros(0, dtype=np.intp))
    combined = components.combine([moved], np.ones(1))
    assert isinstance(combined, Untwisting)
    np.testing.assert_allclose([combined.rate_neg, combined.rate_pos], [0.15, 0.25])
    expected = np.exp(components.untwist(moved))[:, 1]
    np.testing.assert_allclose(combined.clean(find_log_odds(posterior)), expected, atol=1e-4)


def test_rates_that_sum_to_1_keep_some_signal():
    noise, posterior = estimate_pairs()
    _, listed, components = untwist_all(noise, posterior, 1)
    hopeless = replace(listed[0], matrix=np.full((2, 2), 0.5), members=np.zeros(0, dtype=np.intp))
    assert np.isfinite(components.untwist(hopeless)).all()
    assert components.combine([hopeless], np.ones(1)).rates_neg[0] < 0.5


def test_matrices_untwist_as_their_slow_twin_does():
    rng = np.random.default_rng(1)
    noise, posterior = draw_matrices(4, 3, rng), rng.dirichlet(np.ones(4), 20)
    clean, listed, components = untwist_all(noise, posterior, 10)
    np.testing.assert_allclose(clean, noise.clean(posterior), atol=1e-10)
    for each in listed:
        expected = [twin.untwist_row(row, each.matrix, each.slopes, each.offsets, noise.least) for row in posterior]
        np.testing.assert_allclose(np.exp(components.untwist(each)), expected, atol=1e-10)
    weights = np.array([0.0, 0.25, 0.75])
    combined = components.combine(listed, weights)
    np.testing.assert_allclose(combined.weights, weights[1:])
    np.testing.assert_allclose(combined.class_shares, 1.0 - np.diag(combined.matrix))
