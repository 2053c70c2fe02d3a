"""The noise of all labels as components: they untwist as the noise does, and are put together again."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import transitions_twin as twin
from helpers.shared_models import draw_matrices
from untwist.noise import several_classes, two_classes
from untwist.noise.rates import estimate_rates
from untwist.noise.two_classes import TwoClassNoise, untwist_log_odds


def estimate_pairs(n_rows=3000):
    rng = np.random.default_rng(0)
    twisted = 0.1 + 0.6 / (1.0 + np.exp(-6.0 * rng.normal(size=n_rows)))
    noise = estimate_rates(twisted, (rng.random(n_rows) < twisted).astype(int))
    return noise, np.column_stack([1.0 - twisted, twisted])[:50]


def untwist_all(noise, posterior, most):
    components = noise.take_components(posterior)
    listed = components.list_components(most)
    return sum(each.weight * np.exp(components.untwist(each)) for each in listed), listed, components


def test_all_pairs_of_rates_together_untwist_as_the_noise_does():
    noise, posterior = estimate_pairs()
    clean, listed, _ = untwist_all(noise, posterior, 10_000)
    assert len(listed) == len(noise.weights)
    # The table of the noise has steps of 0.01.
    np.testing.assert_allclose(clean, noise.clean(posterior), atol=1e-4)
    np.testing.assert_allclose(clean.sum(axis=1), 1.0)


def test_neighbours_are_one_component_where_there_would_be_too_many():
    noise, posterior = estimate_pairs()
    clean, listed, components = untwist_all(noise, posterior, 5)
    assert len(listed) <= 5 < len(noise.weights)
    assert sum(each.weight for each in listed) == pytest.approx(1.0)
    assert sorted(np.concatenate([each.members for each in listed])) == list(range(len(noise.weights)))
    np.testing.assert_allclose(clean, noise.clean(posterior), atol=0.05)
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
    assert isinstance(combined, TwoClassNoise)
    np.testing.assert_allclose([combined.rate_neg, combined.rate_pos], [0.15, 0.25])
    np.testing.assert_allclose(combined.clean(posterior), np.exp(components.untwist(moved)), atol=1e-4)


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


# ---- one after the other, by hand ----


def make_pairs(bends=None, seed=3):
    """An estimate of some pairs of rates, among them neighbours and no noise."""
    rng = np.random.default_rng(seed)
    grid = np.array([[0.0, 0.1, 0.104, 0.1, 0.2, 0.3], [0.0, 0.2, 0.2, 0.24, 0.05, 0.3]])
    bends = np.linspace(-0.3, 0.4, 6) if bends is None else bends
    weights = np.array([0.1, 0.15, 0.3, 0.25, 0.12, 0.08])
    settings = {"found": True, "clearest": 0.004, "scale": 1.2, "offset": -0.1, "uneven_limit": 0.2}
    noise = TwoClassNoise.from_grid(grid, weights, rng.uniform(0.8, 1.3, 6), 5.5, bends=bends, **settings)
    of_second = rng.uniform(0.0, 1.0, 20)
    return noise, np.column_stack([1.0 - of_second, of_second])


@pytest.mark.parametrize(
    ("most", "groups"),
    [
        (99, [[0], [1, 2], [3], [4], [5]]),  # Rates within a hundredth are one.
        (5, [[0], [1, 2], [3], [4], [5]]),
        (4, [[0], [1, 2, 3], [4], [5]]),  # Cells are of 0.08 then.
        (1, [[0, 1, 2, 3, 4, 5]]),
    ],
)
def test_a_component_is_the_heaviest_of_its_pairs_with_the_weight_of_all(most, groups):
    noise, posterior = make_pairs()
    listed = noise.take_components(posterior).list_components(most)
    assert sorted(each.members.tolist() for each in listed) == groups
    for each in listed:
        heaviest = max(each.members, key=lambda index: noise.weights[index])
        neg, pos = noise.rates_neg[heaviest], noise.rates_pos[heaviest]
        np.testing.assert_allclose(each.matrix, [[1 - neg, neg], [pos, 1 - pos]])
        slope, bend = noise.slopes[heaviest], noise.bends[heaviest]
        np.testing.assert_allclose(each.slopes, [slope - bend, slope + bend])
        np.testing.assert_array_equal(each.offsets, [0.0, 0.0])
        assert each.weight == pytest.approx(sum(noise.weights[index] for index in each.members))
    straight = replace(noise, bends=None)
    for each in straight.take_components(posterior).list_components(99):
        assert each.slopes[0] == each.slopes[1]


def test_a_pair_untwists_to_its_own_curve():
    noise, posterior = make_pairs()
    components = noise.take_components(posterior)
    z = 1.2 * np.log(np.clip(posterior[:, 1], 1e-4, 1 - 1e-4) / np.clip(posterior[:, 0], 1e-4, 1 - 1e-4)) - 0.1
    for each in components.list_components(99):
        (neg, pos), (low, high) = (each.matrix[0, 1], each.matrix[1, 0]), each.slopes
        u = untwist_log_odds(z, np.array([[neg], [pos]]), 0.004)[0]
        bend = np.sqrt(u**2 + 1.0) - 1.0
        clean = 1.0 / (1.0 + np.exp(-low * (u - bend) / 2 - high * (u + bend) / 2))
        np.testing.assert_allclose(np.exp(components.untwist(each)), np.column_stack([1 - clean, clean]), atol=1e-12)


def test_pairs_with_other_weights_share_these_out_and_moved_ones_keep_their_bends():
    noise, posterior = make_pairs()
    components = noise.take_components(posterior)
    listed = components.list_components(4)
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    combined = components.combine(listed, weights)
    assert len(combined.weights) == 6
    for each, weight in zip(listed, weights, strict=True):
        part = noise.weights[each.members] / noise.weights[each.members].sum()
        np.testing.assert_allclose(combined.weights[each.members], weight * part)
    moved = [replace(each, members=np.zeros(0, dtype=np.intp)) for each in listed]
    combined = components.combine(moved, weights)
    np.testing.assert_allclose(combined.weights, weights)
    np.testing.assert_allclose(combined.slopes, [each.slopes.mean() for each in listed])
    np.testing.assert_allclose(combined.bends, [(each.slopes[1] - each.slopes[0]) / 2 for each in listed])
    np.testing.assert_allclose(combined.rates_neg, [each.matrix[0, 1] for each in listed])
    np.testing.assert_allclose(combined.rates_pos, [each.matrix[1, 0] for each in listed])
    for name in ("evidence", "found", "clearest", "scale", "offset", "uneven_limit"):
        assert getattr(combined, name) == getattr(noise, name)


def test_posteriors_of_two_classes_end_where_those_of_the_estimate_did():
    posterior = np.array([[1.0, 0.0], [0.9999, 0.0001], [0.75, 0.25], [0.0, 1.0]])
    expected = [[0.9999, 0.0001], [0.9999, 0.0001], [0.75, 0.25], [0.0001, 0.9999]]
    np.testing.assert_allclose(TwoClassNoise.from_rates((0.1, 0.2)).count_as_estimated(posterior), expected)
    several, certain = draw_matrices(3, 2, np.random.default_rng(0)), np.eye(3)
    assert several.count_as_estimated(certain) is certain


def test_rates_that_leave_too_little_signal_are_made_smaller_in_proportion():
    noise, posterior = make_pairs()
    _, listed, _ = untwist_all(noise, posterior, 1)
    for rates, expected in [
        ((0.0, 0.0), (0.0, 0.0)),
        ((0.5, 0.45), (0.5, 0.45)),
        ((0.6, 0.4), (0.57, 0.38)),
        ((1.0, 0.9), (0.5, 0.45)),
        ((0.01, 0.02), (0.01, 0.02)),
    ]:
        matrix = np.array([[1 - rates[0], rates[0]], [rates[1], 1 - rates[1]]])
        np.testing.assert_allclose(two_classes._list_rates([replace(listed[0], matrix=matrix)])[:, 0], expected)


def test_a_matrix_keeps_a_diagonal_that_stands_out():
    clear = np.array([[0.52, 0.45, 0.03], [0.0, 1.0, 0.0], [0.1, 0.2, 0.7]])
    assert several_classes._keep_signal(clear) is clear
    unclear = np.array([[0.4, 0.5, 0.1], [0.0, 1.0, 0.0], [0.1, 0.2, 0.7]])
    # Its first class lacks 0.1, and 0.05 more.
    np.testing.assert_allclose(several_classes._keep_signal(unclear), 0.85 * unclear + 0.15 * np.eye(3))
    hardly = np.array([[0.48, 0.46, 0.06], [0.0, 1.0, 0.0], [0.1, 0.2, 0.7]])
    np.testing.assert_allclose(several_classes._keep_signal(hardly), 0.97 * hardly + 0.03 * np.eye(3))


def test_the_heaviest_matrices_are_listed_in_their_order_and_next_to_none_is_left_out():
    rng = np.random.default_rng(2)
    noise, posterior = draw_matrices(3, 4, rng), rng.dirichlet(np.ones(3), 5)
    noise = replace(noise, weights=np.array([0.2, 0.4, 0.1, 0.3]))
    components = noise.take_components(posterior)
    for most, indices in ((2, [1, 3]), (3, [0, 1, 3]), (9, [0, 1, 2, 3])):
        listed = components.list_components(most)
        assert [each.members.tolist() for each in listed] == [[index] for index in indices]
        for each, index in zip(listed, indices, strict=True):
            assert each.weight == noise.weights[index]
            np.testing.assert_array_equal(each.matrix, noise.matrices[index])
            np.testing.assert_array_equal([each.slopes, each.offsets], [noise.slopes[index], noise.offsets[index]])
    combined = components.combine(listed, np.array([1e-6, 0.5, 0.25, 2e-6]))
    np.testing.assert_allclose(combined.weights, np.array([0.5, 0.25, 2e-6]) / 0.750002)
    np.testing.assert_array_equal(combined.slopes, noise.slopes[1:])
    # A posterior of 0 has a logarithm all the same.
    certain = replace(noise, least=1e-3, slopes=np.full((4, 3), 50.0))
    one = certain.take_components(np.eye(3) @ noise.matrices[1])
    logs = one.untwist(one.list_components(9)[1])
    assert logs.min() >= np.log(1e-12)
    np.testing.assert_allclose(np.exp(logs), np.eye(3), atol=1e-9)
