"""The matrices of sources: every sum of it against a slow twin, and that the search ends at a peak."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from untwist.noise import source_fits
from untwist.noise.hierarchy import learn_prior
from untwist.noise.source_fits import _count
from untwist.noise.votes import arrange_votes


def draw_votes(n_items=40, n_classes=3, n_sources=3, several=True, seed=0):
    """Votes of sources that are mostly right, with the clean posterior of items and matrices of sources."""
    rng = np.random.default_rng(seed)
    items = np.repeat(np.arange(n_items), 3) if several else np.arange(n_items)
    posterior = rng.dirichlet(np.ones(n_classes), n_items)
    truth = np.array([rng.choice(n_classes, p=row) for row in posterior])[items]
    labels = np.where(rng.random(len(items)) < 0.7, truth, rng.integers(n_classes, size=len(items)))
    weight, pooled_weight = rng.uniform(0.5, 2.0, n_items)[items], rng.uniform(0.5, 2.0, len(items))
    sources = rng.integers(n_sources, size=len(items))
    votes = arrange_votes(
        posterior[items], labels, sources, items if several else None, weight, pooled_weight, n_sources
    )
    log_clean = np.log(rng.dirichlet(np.ones(n_classes), len(votes.first)))
    matrices = 0.6 * np.eye(n_classes) + 0.4 * rng.dirichlet(np.ones(n_classes), (n_sources, n_classes))
    return votes, log_clean, matrices


@pytest.fixture(scope="module", params=[True, False], ids=["several votes", "one vote"])
def drawn(request):
    return draw_votes(several=request.param)


def test_the_truth_of_an_item_follows_from_its_votes_by_bayes(drawn):
    votes, log_clean, matrices = drawn
    found, likelihood = source_fits._find_truth(votes, log_clean, matrices)
    total = 0.0
    for item in range(len(votes.first)):
        joint = np.exp(log_clean[item])
        for vote in np.flatnonzero(votes.item == item):
            joint = joint * matrices[votes.source[vote], :, votes.label[vote]]
        np.testing.assert_allclose(found[item], joint / joint.sum())
        total += votes.weight[item] * math.log(joint.sum())
    assert likelihood == pytest.approx(total)


def test_counts_shares_and_the_likelihood_of_all_labels_are_sums_over_votes(drawn):
    votes, log_clean, matrices = drawn
    truth = np.exp(log_clean)
    counts, shares, pooled = np.zeros((3, 3, 3)), np.zeros(truth.shape), 0.0
    for item, source, label, pooled_weight in zip(
        votes.item, votes.source, votes.label, votes.pooled_weight, strict=True
    ):
        counts[source, :, label] += votes.weight[item] * truth[item]
        shares[item, label] += 1 / np.count_nonzero(votes.item == item)
        likely = sum(truth[item, k] * matrices[0, k, label] for k in range(3))
        pooled += votes.weight[item] * pooled_weight * math.log(likely)
    np.testing.assert_allclose(_count(votes, truth), counts)
    np.testing.assert_allclose(source_fits._share_votes(votes), shares)
    assert source_fits._rate_pooled(votes, truth, matrices[0]) == pytest.approx(pooled)


def test_the_information_is_the_sum_of_squared_scores(drawn):
    votes, log_clean, matrices = drawn
    truth = np.exp(log_clean)
    wrong = source_fits.find_wrong_by_class(matrices)
    np.testing.assert_allclose(wrong, [1.0 - np.diag(matrix) for matrix in matrices])
    expected = np.zeros((3, 3, 3))
    for item, source, label in zip(votes.item, votes.source, votes.label, strict=True):
        score = np.array([truth[item, k] * ((label != k) - wrong[source, k]) for k in range(3)])
        expected[source] += votes.weight[item] * np.outer(score, score)
    np.testing.assert_allclose(source_fits._find_information(votes, truth, wrong), expected)


def test_shares_of_wrong_labels_stay_inside():
    matrices = np.array([np.eye(2), np.eye(2)[::-1], [[0.7, 0.3], [0.4, 0.6]]])
    np.testing.assert_allclose(
        source_fits.find_wrong_by_class(matrices), [[1e-4, 1e-4], [1 - 1e-4, 1 - 1e-4], [0.3, 0.4]]
    )


def discount_slowly(counts, matrix, information):
    """The counts of one source that are told, class by class."""
    n_classes = len(counts)
    by_class = np.diag(information)
    part = min(max(information.sum() / max(by_class.sum(), 1e-12), 0.0), 1.0)
    told = np.zeros((n_classes, n_classes))
    for k in range(n_classes):
        wrong = min(max(1 - matrix[k, k], 1e-4), 1 - 1e-4)
        size = by_class[k] * part / (wrong * (1 - wrong))
        missing = max(counts[k].sum() - size, 0.0)
        n_right = counts[k, k] - missing * (1 - wrong)
        n_wrong = counts[k].sum() - counts[k, k] - missing * wrong
        if n_wrong < 0:
            n_right, n_wrong = n_right - n_wrong / wrong, 0.0
        if n_right < 0:
            n_right, n_wrong = 0.0, n_wrong - n_right / (1 - wrong)
        others = [0.0 if j == k else max(counts[k, j] - missing * matrix[k, j], 0.0) for j in range(n_classes)]
        told[k] = np.array(others) * n_wrong / max(sum(others), 1e-12)
        told[k, k] = n_right
    return told


@pytest.mark.parametrize("scale", [0.0, 0.05, 0.4, 1.0, 3.0])
def test_counts_are_discounted_as_the_slow_twin_does(scale):
    rng = np.random.default_rng(1)
    counts = rng.gamma(0.5, 10.0, (20, 3, 3))
    matrices = 0.5 * np.eye(3) + 0.5 * rng.dirichlet(np.ones(3), (20, 3))
    roots = rng.normal(size=(20, 3, 3))
    information = scale * np.einsum("sij,skj->sik", roots, roots)
    found = source_fits._discount(counts, matrices, information)
    assert (found >= 0).all()
    for index in range(20):
        expected = discount_slowly(counts[index], matrices[index], information[index])
        np.testing.assert_allclose(found[index], expected, rtol=1e-9, atol=1e-9)


def test_known_truths_are_told_in_full():
    votes, _, matrices = draw_votes()
    truth = np.eye(3)[np.arange(len(votes.first)) % 3]
    counts = _count(votes, truth)
    # With the rates that were counted, the information of known truths is that of so many draws.
    counted = np.where(np.eye(3) == 1, 0.0, counts).sum(axis=2) / counts.sum(axis=2)
    matrices = np.where(np.eye(3) == 1, 1.0 - counted[:, :, None], counted[:, :, None] / 2)
    np.testing.assert_allclose(source_fits._count_what_is_told(votes, truth, matrices), counts, rtol=1e-9)


# ---- slope and offsets ----


@pytest.mark.parametrize("has_offsets", [True, False])
@pytest.mark.parametrize("slope", [0.4, 1.7])
def test_slope_and_offsets_are_the_best_by_their_prior(has_offsets, slope):
    votes, log_clean, _ = draw_votes(n_items=80)
    truth = np.exp(slope * log_clean + [0.3, -0.2, 0.0])
    truth /= truth.sum(axis=1, keepdims=True)

    def find_cost(parameters):
        offsets = np.append(parameters[1:], np.zeros(4 - len(parameters)))
        logs = parameters[0] * log_clean + offsets
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        prior = ((parameters[0] - 1.0) / 0.5) ** 2 + ((offsets / 0.5) ** 2).sum()
        return prior / 2 - (votes.weight[:, None] * truth * logs).sum()

    start = np.array([1.0, 0.0, 0.0, 0.0] if has_offsets else [1.0])
    best = minimize(find_cost, start, method="BFGS", options={"gtol": 1e-7}).x
    found, offsets = source_fits._calibrate(votes, log_clean, truth, has_offsets)
    assert found == pytest.approx(best[0], abs=1e-4)
    np.testing.assert_allclose(offsets, best[1:] if has_offsets else np.zeros(3), atol=1e-4)


def test_a_slope_stays_within_its_limits():
    votes, log_clean, _ = draw_votes(n_items=300)
    flat = 0.2 * log_clean
    surest = np.eye(3)[log_clean.argmax(axis=1)]
    assert source_fits._calibrate(votes, flat, surest, False)[0] == 5.0
    assert source_fits._calibrate(votes, log_clean, np.eye(3)[log_clean.argmin(axis=1)], True)[0] == 0.02


# ---- the climb ----


@pytest.mark.parametrize("several", [True, False])
def test_a_climb_ends_at_a_peak_that_plain_steps_do_not_exceed(several):
    votes, log_clean, matrices = draw_votes(n_items=120, several=several)
    truth, _ = source_fits._find_truth(votes, log_clean, matrices)
    prior = learn_prior(_count(votes, truth), matrices.mean(axis=0))

    def rate(each):
        return source_fits._find_truth(votes, log_clean, each)[1] + prior.rate_matrices(each)

    found = source_fits._climb(votes, log_clean, matrices, prior)
    plain = matrices
    for _ in range(400):
        plain = prior.find_matrices(_count(votes, source_fits._find_truth(votes, log_clean, plain)[0]))
    assert rate(found) == pytest.approx(rate(plain), abs=1e-3)
    np.testing.assert_allclose(found, plain, atol=5e-3)
    np.testing.assert_allclose(found.sum(axis=2), 1.0)


def test_slope_and_offsets_are_found_by_newtons_steps(monkeypatch):
    votes, log_clean, _ = draw_votes(n_items=80)
    truth = np.exp(1.2 * log_clean + [0.3, -0.2, 0.0])
    truth /= truth.sum(axis=1, keepdims=True)
    start = np.array([1.0, 0.0, 0.0, 0.0])

    def find_gradient(parameters):
        logs = parameters[0] * log_clean + parameters[1:]
        likely = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
        residual = votes.weight[:, None] * (truth - likely)
        return np.append((residual * log_clean).sum(), residual.sum(axis=0)) - 4.0 * (parameters - start)

    hessian = [(find_gradient(start + step) - find_gradient(start - step)) / 2e-5 for step in 1e-5 * np.eye(4)]
    move = np.linalg.solve(np.array(hessian), -find_gradient(start))
    assert np.abs(move).max() < 1.0
    monkeypatch.setattr(source_fits, "NEWTON_STEPS", 1)
    slope, offsets = source_fits._calibrate(votes, log_clean, truth, True)
    np.testing.assert_allclose([slope, *offsets], start + move, atol=1e-6)


# ---- what follows ----


def test_shares_of_sources_are_counted_even_of_a_light_one_and_expected_of_one_without_labels():
    votes, log_clean, _ = draw_votes(n_items=60, several=False, seed=2)
    # The last source that there is has a fiftieth of a label each, and one more has none.
    weight = np.where(votes.source == 2, 0.02, 1.0)
    votes = votes._replace(weight=weight, n_sources=4)
    matrices = 0.6 * np.eye(3) + 0.4 * np.random.default_rng(3).dirichlet(np.ones(3), (4, 3))
    truth, likelihood = source_fits._find_truth(votes, log_clean, matrices)
    counts = _count(votes, truth)
    assert 0 < counts[2].sum() < 1
    prior = learn_prior(counts, matrices.mean(axis=0))
    fit = source_fits._conclude(votes, None, log_clean, matrices, prior, matrices.mean(axis=0), -50.0)
    wrong = 1.0 - np.einsum("skk->sk", matrices)
    information = source_fits._find_information(votes, truth, wrong)
    told = source_fits._discount(counts, matrices, information)
    for s in range(4):
        mine = votes.source == s
        total = weight[mine].sum()
        if total:
            by_class = (weight[mine, None] * truth[mine]).sum(axis=0) / total
            share = 1.0 - weight[mine] @ truth[mine, votes.label[mine]] / total
            missing = min(max(1.0 - told[s].sum() / total, 0.0), 1.0)
        else:
            by_class, missing = np.full(3, 1 / 3), 1.0
            share = wrong[s].mean()
        np.testing.assert_allclose(fit.class_shares[s], by_class)
        assert fit.shares[s] == pytest.approx(share)
        # In log-odds: what the votes inform of and the labels that the prior adds.
        scale = np.diag(wrong[s] * (1.0 - wrong[s]))
        known = np.linalg.inv(information[s] + prior.added_labels[s] * scale)
        covariance = (1.0 + missing) * (scale @ known @ scale + prior.find_spread(told)[s])
        np.testing.assert_allclose(fit.covariance[s], covariance, rtol=1e-8)
    by_source = likelihood - (told * np.log(matrices)).sum() + prior.evidence
    assert fit.gain == pytest.approx(by_source + 50.0)
    alone = learn_prior(told.sum(axis=0, keepdims=True), matrices.mean(axis=0), prior)
    assert fit.evidence == pytest.approx(prior.evidence - alone.evidence)
    np.testing.assert_allclose(fit.clean, np.exp(log_clean))
