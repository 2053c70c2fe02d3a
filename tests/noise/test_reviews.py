"""What reviewed labels tell of the noise, and what a known label is worth."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

from untwist.noise.model import LEAST_PROBABILITY, MOST_WORTH
from untwist.noise.rates import estimate_rates
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.noise.transitions import estimate_transitions
from untwist.noise.two_classes import TwoClassNoise

# Clean posteriors come from a table, and their log-odds have a slope of a thousandth too much (`LEAKED_SLOPE`).
ROUNDING = 1e-3


def draw_two_classes(n=3000, rates=(0.1, 0.3), seed=0):
    """Posteriors with an error, noisy labels, and the truth."""
    rng = np.random.default_rng(seed)
    clean = expit(3.0 * rng.normal(size=n))
    truth = (rng.random(n) < clean).astype(int)
    rate = np.where(truth == 1, rates[1], rates[0])
    given = np.where(rng.random(n) < rate, 1 - truth, truth)
    twisted = expit(logit(rates[0] + (1.0 - sum(rates)) * clean) + rng.normal(scale=0.2, size=n))
    return np.column_stack([1.0 - twisted, twisted]), given, truth


def draw_three_classes(n=3000, rate=0.3, seed=0):
    rng = np.random.default_rng(seed)
    logs = 2.5 * rng.normal(size=(n, 3))
    clean = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    truth = (rng.random((n, 1)) > np.cumsum(clean, axis=1)).sum(axis=1)
    given = np.where(rng.random(n) < rate, (truth + rng.integers(1, 3, n)) % 3, truth)
    matrix = np.full((3, 3), rate / 2) + (1 - 1.5 * rate) * np.eye(3)
    return clean @ matrix, given, truth, matrix


# ---- what was found weighs the rates again ----


def test_rates_are_weighed_by_what_was_found_row_by_row():
    posterior, given, truth = draw_two_classes(400)
    noise = estimate_rates(posterior[:, 1], given)
    rows = np.arange(0, 400, 7)
    learned = noise.learn(posterior[rows], given[rows], truth[rows])
    expected = []
    for index in range(len(noise.weights)):
        one = TwoClassNoise.from_grid(
            np.array([[noise.rates_neg[index]], [noise.rates_pos[index]]]),
            np.ones(1),
            noise.slopes[[index]],
            np.nan,
            found=True,
            clearest=noise.clearest,
            scale=noise.scale,
            offset=noise.offset,
            bends=noise.bends[[index]],
        )
        weight = noise.weights[index]
        for row in rows:
            wrong = float(one.probability_wrong(posterior[[row]], given[[row]])[0])
            found = wrong if given[row] != truth[row] else 1.0 - wrong
            weight *= min(max(found, LEAST_PROBABILITY), 1.0 - LEAST_PROBABILITY)
        expected.append(weight)
    expected = np.array(expected) / np.sum(expected)
    pairs = {(neg, pos): weight for neg, pos, weight in zip(noise.rates_neg, noise.rates_pos, expected, strict=True)}
    kept = [pairs[pair] for pair in zip(learned.rates_neg, learned.rates_pos, strict=True)]
    np.testing.assert_allclose(learned.weights, np.array(kept) / np.sum(kept), rtol=1e-9)
    assert sum(kept) > 0.999


@pytest.mark.parametrize(
    ("selection", "learned_of"),
    [("suspects", [0, 1]), ("random", [0, 1]), ("label 1", [0])],  # A wrong label 1 stands in a row of class 0.
)
def test_whichever_rows_are_reviewed_the_rates_come_nearer_to_the_truth(selection, learned_of):
    before, after = [], []
    for seed in range(4):
        posterior, given, truth = draw_two_classes(2000, seed=seed)
        noise = estimate_rates(posterior[:, 1], given)
        wrong = noise.probability_wrong(posterior, given)
        order = {
            "suspects": np.argsort(-wrong),
            "random": np.random.default_rng(seed).permutation(2000),
            "label 1": np.argsort(-np.where(given == 1, 1.0 + wrong, wrong)),
        }[selection]
        rows = order[:400]
        learned = noise.learn(posterior[rows], given[rows], truth[rows])
        for one, errors in ((noise, before), (learned, after)):
            errors.append(np.abs([one.rate_neg - 0.1, one.rate_pos - 0.3])[learned_of])
        assert np.ptp(learned.interval_neg) <= np.ptp(noise.interval_neg) + 1e-12
    assert np.mean(after) < np.mean(before)
    # The share of wrong labels among the suspects, about two thirds, is far from both rates.
    assert np.mean(after) < 0.04


def test_clean_labels_that_are_confirmed_speak_against_noise_and_wrong_ones_for_it():
    rng = np.random.default_rng(0)
    posterior = expit(rng.normal(size=1000))
    given = (rng.random(1000) < posterior).astype(int)
    noise = estimate_rates(posterior, given)
    both = np.column_stack([1.0 - posterior, posterior])
    surprising = np.argsort(both[np.arange(1000), given])[:150]
    right = noise.learn(both[surprising], given[surprising], given[surprising])
    wrong = noise.learn(both[surprising], given[surprising], 1 - given[surprising])
    assert not right.found
    assert right.chance_of_noise < noise.chance_of_noise
    assert wrong.found
    assert wrong.evidence > noise.evidence > right.evidence
    assert wrong.rate_neg + wrong.rate_pos > 0.2


def test_nothing_is_learned_of_noise_that_is_given_or_from_no_rows():
    posterior, given, truth = draw_two_classes(100)
    known = TwoClassNoise.from_rates((0.1, 0.2))
    assert known.learn(posterior, given, truth) is known
    matrix = SeveralClassesNoise.from_matrix(np.eye(3))
    assert matrix.learn(np.eye(3), np.arange(3), np.arange(3)) is matrix
    noise = estimate_rates(posterior[:, 1], given)
    assert noise.learn(posterior[:0], given[:0], truth[:0]) is noise


def test_matrices_are_weighed_by_what_was_found_row_by_row():
    posterior, given, truth, _ = draw_three_classes(600)
    noise = estimate_transitions(posterior, given)
    rows = np.arange(0, 600, 11)
    learned = noise.learn(posterior[rows], given[rows], truth[rows])
    expected = []
    for index, (matrix, slope, offset) in enumerate(zip(noise.matrices, noise.slopes, noise.offsets, strict=True)):
        weight = noise.weights[index]
        for row in rows:
            plain = np.maximum(posterior[row] @ np.linalg.inv(matrix), noise.least)
            clean = np.exp(offset + slope * np.log(plain / plain.sum()))
            joint = clean * matrix[:, given[row]]
            found = joint[truth[row]] / joint.sum()
            weight *= min(max(found, LEAST_PROBABILITY), 1.0 - LEAST_PROBABILITY)
        expected.append(weight)
    np.testing.assert_allclose(learned.weights, np.array(expected) / np.sum(expected), rtol=1e-7)
    np.testing.assert_allclose(learned.class_shares, 1.0 - np.diag(learned.matrix))
    low, high = learned.interval
    assert low <= learned.share <= high
    assert (learned.class_intervals[:, 0] <= learned.class_shares).all()
    assert (learned.class_shares <= learned.class_intervals[:, 1]).all()


def test_a_matrix_comes_nearer_to_the_truth_by_a_review_of_suspects():
    before, after = [], []
    for seed in range(3):
        posterior, given, truth, matrix = draw_three_classes(1500, seed=seed)
        noise = estimate_transitions(posterior**1.3 / (posterior**1.3).sum(axis=1, keepdims=True), given)
        rows = np.argsort(-noise.probability_wrong(posterior, given))[:300]
        learned = noise.learn(posterior[rows], given[rows], truth[rows])
        before.append(np.abs(noise.matrix - matrix).sum())
        after.append(np.abs(learned.matrix - matrix).sum())
    assert np.mean(after) <= np.mean(before)


# ---- what a known label is worth ----


def pull(labels_follow, posterior):
    """How a posterior is pulled by labels of which there is so much of each, in the direction of each class."""
    return labels_follow - labels_follow.sum() * posterior


@pytest.mark.parametrize("reviewed_label", [0, 1])
@pytest.mark.parametrize("clean", [0.3, 0.5, 0.6, 0.8])
@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.05, 0.3), (0.2, 0.1)])
def test_known_and_noisy_labels_together_follow_the_twisted_posterior(clean, rates, reviewed_label):
    """Rows of one kind, of which all that bear one label are reviewed, though that is not known of the others."""
    noise = TwoClassNoise.from_rates(rates)
    truth = np.array([1.0 - clean, clean])
    twisted = truth @ noise.matrix
    worth = noise.worth(np.tile(twisted, (2, 1)), np.arange(2))
    assert (worth < MOST_WORTH).all()
    joint = truth[:, None] * noise.matrix  # By truth, then by label.
    mass = joint.sum(axis=0) * (np.arange(2) != reviewed_label)  # The labels that nobody has looked at.
    mass += worth * joint[:, reviewed_label]
    np.testing.assert_allclose(pull(mass, twisted), 0.0, atol=ROUNDING)


def test_the_same_of_three_classes_where_wrong_labels_are_evenly_spread():
    matrix = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    noise = SeveralClassesNoise.from_matrix(matrix)
    truth = np.array([0.5, 0.2, 0.3])
    twisted = truth @ matrix
    worth = noise.worth(np.tile(twisted, (3, 1)), np.arange(3))
    joint = truth[:, None] * matrix
    mass = worth * joint[:, 1] + joint.sum(axis=0) * [1, 0, 1]
    np.testing.assert_allclose(pull(mass, twisted), 0.0, atol=ROUNDING)


def test_a_known_label_is_worth_one_where_labels_are_never_wrong_and_never_too_much():
    clean = np.linspace(0.01, 0.99, 9)
    posterior = np.column_stack([1.0 - clean, clean])
    np.testing.assert_allclose(TwoClassNoise.from_rates((0.0, 0.0)).worth(posterior, np.ones(9, int)), 1.0)
    worth = TwoClassNoise.from_rates((0.3, 0.4)).worth(0.3 + 0.3 * posterior, np.ones(9, int))
    assert ((worth >= 1.0) & (worth <= MOST_WORTH)).all()
    assert worth[0] == MOST_WORTH  # That it is of this class comes as a surprise.
    assert worth[0] >= worth[4] >= worth[-1] > 1.0


# ---- evidence, shares and intervals that follow ----


def make_rates(shortfalls=(0.0, 3.0, 1.0), grid=((0.0, 0.1, 0.2), (0.0, 0.2, 0.1)), **settings):
    """No noise and two pairs of rates."""
    weights = np.array([0.5, 0.3, 0.2])
    settings = {"found": False, "clearest": 0.005, "uneven_limit": 0.3} | settings
    shortfalls = None if shortfalls is None else np.array(shortfalls)
    return TwoClassNoise.from_grid(
        np.array(grid), weights, np.ones(3), -1.0, bends=np.zeros(3), shortfalls=shortfalls, **settings
    )


def test_what_a_review_explains_of_rates_is_evidence():
    noise = make_rates()
    likelihood = np.array([-9.0, -2.0, -3.0])
    weights = noise.weights * np.exp(likelihood)
    learned = noise._weigh_by_review(weights / weights.sum(), likelihood)
    # The best pair, with what it explained before, explains -4 - -9 nats more, from a best of noise of -1.
    assert learned.evidence == pytest.approx(-1.0 + max(-2.0 - 3.0, -3.0 - 1.0) + 1.0 + 9.0)
    assert learned.found
    np.testing.assert_allclose(learned.shortfalls, [5.0, 1.0, 0.0])
    np.testing.assert_allclose(learned.weights, weights / weights.sum())
    unlikely = np.array([0.6, 0.3, 0.1])
    assert not noise._weigh_by_review(unlikely, likelihood).found  # Its chance is below 0.75.
    assert not noise._weigh_by_review(np.array([0.1, 0.5, 0.4]), np.array([-9.0, -12.0, -8.0])).found
    assert noise._weigh_by_review(np.array([0.25, 0.5, 0.25]), np.array([-3.0, -12.0, 0.0])).found
    unknown = make_rates(None)._weigh_by_review(weights / weights.sum(), likelihood)
    assert unknown.evidence == pytest.approx(-1.0 - 2.0 + 9.0)
    assert unknown.shortfalls is None


@pytest.mark.parametrize("grid", [((0.0, 0.1, 0.2), (0.0, 0.0, 0.0)), ((0.0, 0.0, 0.0), (0.0, 0.2, 0.1))], ids=str)
def test_wrong_labels_of_one_class_alone_are_noise(grid):
    noise = make_rates(grid=grid)
    likelihood = np.array([-9.0, -2.0, -3.0])
    weights = np.array([0.01, 0.5, 0.49])
    learned = noise._weigh_by_review(weights, likelihood)
    assert learned.evidence == pytest.approx(-1.0 + max(-2.0 - 3.0, -3.0 - 1.0) + 1.0 + 9.0)
    assert learned.found


def test_where_every_pair_is_noise_a_review_is_no_evidence():
    noise = make_rates(grid=((0.3, 0.1, 0.2), (0.3, 0.2, 0.1)))
    assert noise._weigh_by_review(noise.weights, np.array([-9.0, -2.0, -3.0])).evidence == -1.0


def make_matrices(evidence=-1.0, found=False):
    """Next to no noise, some and more, of three classes; of two of them it is undecided."""
    rates = np.array([0.003, 0.2, 0.4])
    matrices = np.array([(1 - 1.5 * rate) * np.eye(3) + rate / 2 for rate in rates])
    weights = np.array([0.5, 0.3, 0.2])
    shares = np.full(3, weights @ rates)
    return SeveralClassesNoise(
        weights=weights,
        matrices=matrices,
        slopes=np.ones((3, 3)),
        offsets=np.zeros((3, 3)),
        least=0.005,
        evidence=evidence,
        found=found,
        share=0.15,
        interval=(0.05, 0.3),
        class_shares=shares,
        class_intervals=np.column_stack([shares / 2, shares * 3]),
        decided_pairs=np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]], dtype=bool),
        uneven_limit=0.5,
    )


def test_what_a_review_explains_of_matrices_is_evidence_and_shares_move_with_them():
    noise = make_matrices()
    likelihood = np.array([-8.0, -2.0, -3.0])
    weights = np.array([0.1, 0.5, 0.4])
    learned = noise._weigh_by_review(weights, likelihood)
    explained = np.log(0.6 * np.exp(-2.0) + 0.4 * np.exp(-3.0)) + 8.0
    assert learned.evidence == pytest.approx(-1.0 + explained)
    assert learned.found
    # The review alone found it, wherever it is.
    np.testing.assert_array_equal(learned.found_pairs, ~np.eye(3, dtype=bool))
    factor = (weights @ [0.003, 0.2, 0.4]) / (noise.weights @ [0.003, 0.2, 0.4])
    assert learned.share == pytest.approx(0.15 * factor)
    assert learned.interval == pytest.approx((0.05 * factor, 0.3 * factor))
    assert learned.uneven_limit == pytest.approx(max(0.5, 0.3 * factor))
    np.testing.assert_allclose(learned.class_shares, factor * noise.class_shares)
    np.testing.assert_allclose(learned.class_intervals, np.minimum(factor * noise.class_intervals, 1.0))
    np.testing.assert_array_equal(learned.weights, weights)
    worst = noise._weigh_by_review(np.array([0.0, 0.0, 1.0]), likelihood)
    assert worst.interval[1] == pytest.approx(0.3 * 0.4 / 0.1415)
    assert worst.uneven_limit == worst.interval[1]
    assert worst.class_intervals[0, 1] == 1.0


def test_no_share_moves_beyond_all_labels_by_a_review():
    noise = replace(make_matrices(), share=0.9, interval=(0.8, 0.95), uneven_limit=1.0)
    learned = noise._weigh_by_review(np.array([0.0, 0.0, 1.0]), np.array([-6.0, -2.0, -3.0]))
    assert (learned.share, learned.interval, learned.uneven_limit) == (1.0, (1.0, 1.0), 1.0)


def test_a_review_finds_noise_of_matrices_only_where_enough_rows_were_there_to_judge():
    likelihood = np.array([-8.0, -2.0, -3.0])
    weights = np.array([0.1, 0.5, 0.4])
    assert make_matrices(3.65)._weigh_by_review(weights, likelihood).found
    assert not make_matrices(3.67)._weigh_by_review(weights, likelihood).found  # There were too few rows.
    before = make_matrices(3.67, found=True)
    after = before._weigh_by_review(weights, likelihood)
    assert after.found
    np.testing.assert_array_equal(after.decided_pairs, before.decided_pairs)
    assert not before._weigh_by_review(weights, -likelihood).found
    # What a review explains must leave enough evidence.
    for evidence, found in ((-2.0, True), (-2.1, False)):
        assert make_matrices(evidence)._weigh_by_review(weights, likelihood).found == found
    only_noise = replace(
        make_matrices(2.0, found=True), weights=np.array([0.6, 0.4]), matrices=make_matrices().matrices[1:]
    )
    assert only_noise._weigh_by_review(np.array([0.5, 0.5]), np.array([-6.0, -2.0])).evidence == 2.0


def test_the_worth_of_a_known_label_is_its_formula():
    rng = np.random.default_rng(0)
    matrix = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]])
    noise = SeveralClassesNoise.from_matrix(matrix)
    clean, labels = rng.dirichlet(np.ones(3), 40), rng.integers(3, size=40)
    found = noise.worth(clean @ matrix, labels)
    for c, k, worth in zip(clean, labels, found, strict=True):
        share = (matrix[k, k] * c[k] / (c @ matrix[:, k]) - c[k]) / (1.0 - c[k])
        assert worth == pytest.approx(1.0 / min(max(share, 0.2), 1.0), rel=1e-6)
    assert len({float(one) for one in found}) > 20
