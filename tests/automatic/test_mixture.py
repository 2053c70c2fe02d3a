"""Weights of a mixture: beside a search over all pairs of weights."""

import numpy as np
import pytest
from scipy.special import log_softmax

from untwist.automatic.mixture import EQUAL_ROWS, find_log_loss, find_mixture_weights


def draw_members(n_rows=400, n_classes=4, seed=0, blind=False):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_rows)
    signal = np.eye(n_classes)[labels]
    first = 2.0 * signal + rng.normal(size=signal.shape)
    second = rng.normal(size=signal.shape) if blind else signal + rng.normal(size=signal.shape)
    return [first, second], labels.astype(np.uint32)


def find_penalised_loss(weights, members, labels, sample_weight):
    scores = sum(weight * member for weight, member in zip(weights, members, strict=True))
    chosen = log_softmax(scores, axis=1)[np.arange(len(labels)), labels]
    total = sample_weight.sum()
    ridge = EQUAL_ROWS / total
    return -(sample_weight @ chosen) / total + ridge * sum((weight - 0.5) ** 2 for weight in weights)


@pytest.mark.parametrize("blind", [False, True])
def test_weights_are_the_best_of_a_grid(blind):
    members, labels = draw_members(blind=blind)
    sample_weight = np.random.default_rng(1).integers(0, 3, len(labels)).astype(float)
    found = find_mixture_weights(members, labels, sample_weight)
    grid = np.arange(0.0, 3.0, 0.02)
    losses = [[find_penalised_loss((a, b), members, labels, sample_weight) for b in grid] for a in grid]
    best = np.unravel_index(np.argmin(losses), (len(grid), len(grid)))
    np.testing.assert_allclose(found, grid[list(best)], atol=0.02)
    assert (found >= 0).all()


def test_a_weight_counts_copies_of_a_row():
    members, labels = draw_members()
    copies = np.random.default_rng(2).integers(0, 4, len(labels))
    repeated = find_mixture_weights(
        [np.repeat(m, copies, axis=0) for m in members], np.repeat(labels, copies), np.ones(copies.sum())
    )
    np.testing.assert_allclose(find_mixture_weights(members, labels, copies.astype(float)), repeated, rtol=1e-8)


def test_few_rows_stay_near_equal_weights():
    members, labels = draw_members(n_rows=2)
    few = find_mixture_weights(members, labels, np.ones(2))
    many = find_mixture_weights(members, labels, np.full(2, 1e6))
    assert np.abs(few - 0.5).max() < 0.7 < np.abs(many - 0.5).max()


def test_log_loss_is_that_of_the_posterior():
    members, labels = draw_members()
    weight = np.random.default_rng(3).uniform(size=len(labels))
    odds = np.exp(members[0])
    posterior = (odds / odds.sum(axis=1, keepdims=True))[np.arange(len(labels)), labels]
    assert find_log_loss(members[0], labels, weight) == pytest.approx(np.average(-np.log(posterior), weights=weight))


def test_no_bit_depends_on_the_order_of_the_rows():
    members, labels = draw_members()
    weight = np.random.default_rng(4).uniform(size=len(labels))
    weights = find_mixture_weights(members, labels, weight)
    loss = find_log_loss(members[0], labels, weight)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(labels))
        shuffled = [member[order] for member in members]
        np.testing.assert_array_equal(find_mixture_weights(shuffled, labels[order], weight[order]), weights)
        assert find_log_loss(shuffled[0], labels[order], weight[order]) == loss
