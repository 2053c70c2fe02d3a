"""Weights of a mixture: beside a search over all pairs of weights. And models that are mixtures."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import log_softmax

from untwist import UntwistClassifier, settings
from untwist.automatic import mixture
from untwist.automatic.mixture import EQUAL_ROWS, LEAST_WEIGHT, find_log_loss, find_mixture_weights


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
    ridge = EQUAL_ROWS / max(total, np.count_nonzero(sample_weight))
    return -(sample_weight @ chosen) / total + ridge * sum((weight - 0.5) ** 2 for weight in weights)


@pytest.mark.parametrize("blind", [False, True])
def test_weights_are_the_best_of_a_grid(blind):
    members, labels = draw_members(blind=blind)
    sample_weight = np.random.default_rng(1).integers(0, 3, len(labels)).astype(float)
    found = find_mixture_weights(members, labels, sample_weight)
    best = np.full(2, 1.5)
    for reach, step in ((1.5, 0.1), (0.16, 0.02)):  # The loss is convex: the best is near the best of a coarse grid.
        grids = [np.arange(max(middle - reach, 0.0), middle + reach, step) for middle in best]
        best = min(product(*grids), key=lambda pair: find_penalised_loss(pair, members, labels, sample_weight))
    np.testing.assert_allclose(found, best, atol=0.02)
    assert (found >= 0).all()


def test_a_weight_counts_copies_of_a_row():
    members, labels = draw_members()
    copies = np.random.default_rng(2).integers(0, 4, len(labels))
    repeated = find_mixture_weights(
        [np.repeat(m, copies, axis=0) for m in members], np.repeat(labels, copies), np.ones(copies.sum())
    )
    np.testing.assert_allclose(find_mixture_weights(members, labels, copies.astype(float)), repeated, rtol=1e-8)


def test_weights_may_be_shares_of_a_whole():
    members, labels = draw_members()
    one_each = find_mixture_weights(members, labels, np.ones(len(labels)))
    shares = find_mixture_weights(members, labels, np.full(len(labels), 1.0 / len(labels)))
    np.testing.assert_allclose(shares, one_each, rtol=1e-8)


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


def test_what_misleads_counts_for_little_and_yet_tells_classes_apart():
    members, labels = draw_members()
    found = find_mixture_weights([-member for member in members], labels, np.ones(len(labels)))
    assert (found > 0).all()
    assert found.sum() == pytest.approx(LEAST_WEIGHT)


def test_log_odds_are_mixed_as_two_scores_are():
    members, labels = draw_members(n_classes=2, seed=5)
    weight = np.random.default_rng(6).uniform(size=len(labels))
    log_odds = [member[:, 1:] - member[:, :1] for member in members]
    as_scores = [np.column_stack([np.zeros(len(labels)), one]) for one in log_odds]
    found = find_mixture_weights(log_odds, labels, weight)
    np.testing.assert_allclose(found, find_mixture_weights(as_scores, labels, weight), rtol=1e-6)
    assert find_log_loss(log_odds[0], labels, weight) == pytest.approx(find_log_loss(members[0], labels, weight))
    assert find_log_loss(log_odds[0], 1 - labels, weight) > find_log_loss(log_odds[0], labels, weight)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_slopes_are_those_of_the_log_posterior(n_columns):
    rng = np.random.default_rng(n_columns)
    members, labels = rng.normal(size=(2, 20, n_columns)), rng.integers(0, max(2, n_columns), 20).astype(np.uint32)
    judge = mixture._judge_two if n_columns == 1 else mixture._judge_several
    weights, step = np.array([0.3, 1.2]), 1e-6
    _, slopes = judge(weights, members, labels)
    for place, shift in enumerate(step * np.eye(2)):
        after, before = (judge(weights + sign * shift, members, labels)[0] for sign in (1, -1))
        np.testing.assert_allclose(slopes[place], (after - before) / (2 * step), atol=1e-8)


def test_rows_without_weight_lose_nothing():
    members, labels = draw_members(50)
    assert find_log_loss(members[0], labels, np.zeros(50)) == 0.0


def test_members_that_tell_everything_are_trusted_far_and_those_that_tell_little_not_less_than_the_least():
    labels = np.arange(400, dtype=np.uint32) % 2
    sure = np.where(labels == 1, 1.0, -1.0)[:, None]
    assert find_mixture_weights([sure], labels, np.ones(400))[0] > 2.0
    rng = np.random.default_rng(0)
    for share in (0.52, 0.6):
        noisy = np.where(rng.random(400) < share, sure[:, 0], -sure[:, 0])[:, None]
        (weight,) = find_mixture_weights([noisy], labels, np.full(400, 1e9))
        right = np.mean(noisy == sure)
        assert weight == pytest.approx(max(np.log(right / (1 - right)), LEAST_WEIGHT), rel=1e-4)


@pytest.mark.parametrize("scale", [100.0, 1.0, 0.1, 0.01])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_weight_of_a_single_member_is_where_no_other_is_better(scale, n_classes):
    """Its scores are far too large, or so small that the weight is found far beyond 1."""
    members, labels = draw_members(n_classes=n_classes)
    member = scale * members[0]
    one = member[:, 1:] - member[:, :1] if n_classes == 2 else member
    weight = np.random.default_rng(1).integers(0, 3, len(labels)).astype(float)
    (found,) = find_mixture_weights([one], labels, weight)
    ridge = EQUAL_ROWS / weight.sum()

    def find_loss(slope):
        return find_log_loss(slope * one, labels, weight) + ridge * (slope - 1.0) ** 2

    assert found > 0
    assert all(find_loss(found) <= find_loss(found * factor) for factor in (0.5, 0.99, 0.9999, 1.0001, 1.01, 2.0))
    order = np.random.default_rng(2).permutation(len(labels))
    assert find_mixture_weights([one[order]], labels[order], weight[order])[0] == found


# ---- models ----


def draw_rows(n_rows=240, n_classes=9):
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_rows)
    return 1.5 * np.eye(n_classes)[y] + rng.normal(size=(n_rows, n_classes)), y


def test_a_model_depends_neither_on_the_order_of_rows_nor_on_threads_nor_on_other_rows():
    X, y = draw_rows()
    model = UntwistClassifier(random_state=0, n_jobs=1).fit(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    other = UntwistClassifier(random_state=0, n_jobs=2).fit(X[order], y[order])
    posterior = model.predict_proba(X)
    np.testing.assert_array_equal(other.predict_proba(X), posterior)
    np.testing.assert_array_equal(other.oof_proba_, model.oof_proba_[order])
    np.testing.assert_array_equal(other.noise_.matrices, model.noise_.matrices)
    np.testing.assert_array_equal(np.vstack([model.predict_proba(X[i : i + 1]) for i in range(20)]), posterior[:20])


def test_leaves_of_randomised_trees_are_as_large_as_is_asked_for(monkeypatch):
    monkeypatch.setattr(settings, "RECIPE_GROWTH", replace(settings.RECIPE_GROWTH, min_samples_leaf=30))
    X, y = draw_rows(n_classes=3)
    model = UntwistClassifier(random_state=0, n_jobs=1).fit(X, y)
    assert model.choice_.mixture.min_samples_leaf == 30
    leaves = model.model_.leaves(X)[:, :, 0]
    # A fold grows its trees on a part of these rows.
    assert min(np.unique(leaf, return_counts=True)[1].min() for leaf in leaves.T) >= 30
