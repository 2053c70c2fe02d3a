"""The transition matrix: its slow twin, what it finds, what it must not claim, and what must not matter."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from threadpoolctl import threadpool_info, threadpool_limits

from helpers import transitions_twin as twin
from helpers.quick import QuickClassifier
from untwist.audit.correcting import count_expected
from untwist.files import dumps, loads
from untwist.noise import plausibility, transitions
from untwist.noise.climbing import climb, find_clean_fit
from untwist.noise.families import FreeMatrices, KnownMatrix, TiedMatrices, make_even_matrix
from untwist.noise.plausibility import Fit, Plausibility, choose_rows, count_posteriors, find_highest_rates
from untwist.noise.scaling import Scaling, fit_scaling
from untwist.noise.several_classes import ENOUGH_EVIDENCE, SeveralClassesNoise
from untwist.noise.transitions import _price_unevenness, estimate_transitions


def make_matrix(kind, n_classes):
    identity = np.eye(n_classes)
    match kind:
        case "none":
            return identity
        case "even":
            return make_even_matrix(n_classes, 0.2)
        case "pairs":
            return 0.75 * identity + 0.25 * np.roll(identity, 1, axis=1)
        case "one class":
            matrix = identity.copy()
            matrix[1] = 0.6 * identity[1] + 0.4 * identity[2]
            return matrix
        case "random":
            rng = np.random.default_rng(5)
            matrix = rng.dirichlet(np.full(n_classes, 0.5), size=n_classes) * rng.uniform(0.1, 0.5, (n_classes, 1))
            np.fill_diagonal(matrix, 0.0)
            return matrix + np.diag(1.0 - matrix.sum(axis=1))


def draw_rows(kind="pairs", n=3000, n_classes=4, seed=0, clarity=3.5):
    """Posteriors that a model might have out of fold (a little shy, as models are), labels, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    clean = np.exp(1.5 * (rng.normal(size=(n, n_classes)) + clarity * np.eye(n_classes)[truth]))
    clean /= clean.sum(axis=1, keepdims=True)
    matrix = make_matrix(kind, n_classes)
    labels = (rng.random((n, 1)) > matrix[truth].cumsum(axis=1)).sum(axis=1).clip(0, n_classes - 1)
    guess = clean @ matrix * np.exp(0.2 * rng.normal(size=clean.shape))
    return guess / guess.sum(axis=1, keepdims=True), labels, truth


def list_pairs(n_classes):
    """Every class with every other one."""
    return ~np.eye(n_classes, dtype=bool)


def assert_same(first, second):
    """The two estimates agree bit for bit."""
    for name in ("weights", "matrices", "slopes", "offsets", "class_shares", "class_intervals", "decided_pairs"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.share, first.interval, first.evidence) == (second.share, second.interval, second.evidence)


# ---- the formulas ----


@pytest.fixture(scope="module")
def objective():
    rng = np.random.default_rng(1)
    return Plausibility(choose_rows(rng.dirichlet(np.ones(4), 40), rng.integers(4, size=40), rng.uniform(0.5, 3.0, 40)))


def test_the_plausibility_is_that_of_the_slow_twin(objective):
    rng = np.random.default_rng(2)
    matrix = 0.7 * np.eye(4) + 0.3 * rng.dirichlet(np.ones(4), 4)
    log_slopes, offsets = rng.normal(0.0, 0.2, 4), rng.normal(0.0, 0.2, 4)
    value, *_ = objective.evaluate(matrix, log_slopes, offsets)
    caps = objective.caps
    expected = twin.find_plausibility(objective.rows, matrix, log_slopes, offsets, caps, objective.least)
    assert value == pytest.approx(expected, abs=1e-9)


# Class 1 bears no other label, and class 0 not that of class 3.
SOME_PAIRS = np.array([[0, 1, 1, 0], [0, 0, 0, 0], [1, 1, 0, 1], [1, 0, 1, 0]], dtype=bool)
FAMILIES = {
    "free": FreeMatrices(list_pairs(4)),
    "free between some": FreeMatrices(SOME_PAIRS),
    "tied": TiedMatrices(np.roll(np.eye(4), 1, axis=1)),
    "tied between some": TiedMatrices(np.array([[0, 0.5, 0.5, 0], [0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]])),
    "known": KnownMatrix(make_even_matrix(4, 0.1)),
}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
def test_gradients_are_differences_of_the_plausibility(objective, family):
    rng = np.random.default_rng(3)
    n_own = len(family.bounds)
    x = np.concatenate([rng.normal(-2.0, 0.3, n_own), rng.normal(0.0, 0.1, 8)])

    def find(x):
        matrix = family.make(x[:n_own])
        value, by_matrix, by_slopes, by_offsets = objective.evaluate(matrix, x[n_own : n_own + 4], x[n_own + 4 :])
        price, price_by_matrix, price_by_parameters = family.price(x[:n_own], matrix)
        by_own = family.pull_back(x[:n_own], matrix, by_matrix - price_by_matrix) - price_by_parameters
        return value - price, np.concatenate([by_own, by_slopes, by_offsets])

    differences = [(find(x + 1e-6 * step)[0] - find(x - 1e-6 * step)[0]) / 2e-6 for step in np.eye(len(x))]
    # Rounding of values near 100 leaves about 1e-14 * 100 / 1e-6.
    np.testing.assert_allclose(find(x)[1], differences, atol=1e-5)


def test_the_price_of_a_free_matrix_is_that_of_the_slow_twin():
    matrix, common = make_matrix("random", 4), 0.02
    family = FreeMatrices(list_pairs(4))
    parameters = family.start(matrix, common)
    np.testing.assert_allclose(family.make(parameters), np.maximum(matrix, 3e-4), atol=2e-3)
    assert family.find_common(parameters) == pytest.approx(common)
    assert family.price(parameters, matrix)[0] == pytest.approx(twin.price_free_matrix(matrix, common))
    some = FreeMatrices(SOME_PAIRS)
    parameters = some.start(matrix, common)
    assert len(parameters) == len(some.bounds) == SOME_PAIRS.sum() + 1
    made = some.make(parameters)
    assert (made[~SOME_PAIRS & list_pairs(4)] == 0).all()
    np.testing.assert_allclose(made.sum(axis=1), 1.0)
    # What is not free keeps its odds to the diagonal.
    odds = np.maximum(matrix, 3e-4) / np.diag(matrix)[:, None]
    np.testing.assert_allclose((made / np.diag(made)[:, None])[SOME_PAIRS], odds[SOME_PAIRS])
    assert some.price(parameters, made)[0] == pytest.approx(twin.price_free_matrix(made, common, SOME_PAIRS))


def test_entries_are_priced():
    zeros = np.zeros(4)
    nothing, pairs, mostly_even = (
        _price_unevenness(Fit(0.0, make_matrix(kind, 4), zeros, zeros, common), list_pairs(4))
        for kind, common in (("none", 0.0), ("pairs", 0.0), ("pairs", 0.1))
    )
    # Of a class that bears its own label alone nothing is to be said, nor of pairs without noise.
    some = _price_unevenness(Fit(0.0, make_matrix("none", 4), zeros, zeros, 0.0), SOME_PAIRS)
    assert some == pytest.approx(3 * transitions.PRICE_OF_UNEVENNESS + 7 * transitions.PRICE_OF_NO_ENTRY)
    assert nothing == pytest.approx(4 * transitions.PRICE_OF_UNEVENNESS + 12 * transitions.PRICE_OF_NO_ENTRY)
    assert pairs == pytest.approx(nothing + 4 * transitions.PRICE_OF_ENTRY, rel=1e-3)
    assert mostly_even == pytest.approx(nothing + 4 * transitions.PRICE_OF_ENTRY_IN_EVEN_NOISE, rel=1e-3)


def test_the_contradiction_is_that_of_the_slow_twin():
    posterior, labels, _ = draw_rows("even", n=400, n_classes=3)
    objective = Plausibility(choose_rows(posterior, labels, np.linspace(0.5, 2.0, 400)))
    matrix, zeros = make_even_matrix(3, 0.4), np.zeros(3)
    clean = [twin.untwist_row(q, matrix, np.ones(3), zeros, objective.least) for q in objective.rows.twisted]
    expected = twin.find_contradiction(objective.rows, clean)
    assert expected > 0
    assert objective.find_contradiction(Fit(0.0, matrix, zeros, zeros, 0.0)) == pytest.approx(expected)


def test_classes_that_are_hard_to_tell_apart_are_no_noise():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=3000)
    # Of the last two classes features say a little, and the model is too sure of it.
    hint = rng.normal(size=3000) + 0.7 * (truth == 2)
    second = 1 / (1 + np.exp(1.2 * (hint - 0.35)))
    posterior = np.where(truth[:, None] == 0, [[0.98, 0.01, 0.01]], np.column_stack([0 * hint, second, 1 - second]))
    posterior = (posterior + 0.01) / (posterior + 0.01).sum(axis=1, keepdims=True)
    noise = estimate_transitions(posterior, truth)
    assert not noise.found
    assert noise.class_intervals[2, 1] > 0.05


def test_a_climb_ends_higher_than_it_began():
    posterior, labels, _ = draw_rows()
    objective = Plausibility(choose_rows(posterior, labels, np.ones(len(labels))))
    zeros = np.zeros(4)
    start = np.array([-2.0])
    before = objective.evaluate(TiedMatrices(make_even_matrix(4, 1.0)).make(start), zeros, zeros)[0]
    fit, _ = climb(objective, TiedMatrices(make_even_matrix(4, 1.0)), start, zeros, zeros, 20)
    assert fit.value > before + 1.0
    assert fit.value == pytest.approx(objective.evaluate(fit.matrix, fit.log_slopes, fit.offsets)[0], abs=1e-9)


def test_the_highest_rates_are_those_of_the_slow_twin():
    posterior, labels, _ = draw_rows(n=300)
    depths = np.unique(np.ceil(np.geomspace(1, 300, plausibility.CAP_DEPTHS) - 1e-6).astype(int)).tolist()
    expected = [twin.find_highest_rate(posterior[:, j], labels, j, depths) for j in range(4)]
    np.testing.assert_allclose(find_highest_rates(posterior, labels, np.ones(300)), expected, atol=1e-12)
    # A weight counts copies.
    twice = find_highest_rates(np.vstack([posterior] * 2), np.tile(labels, 2), np.ones(600))
    np.testing.assert_allclose(find_highest_rates(posterior, labels, np.full(300, 2.0)), twice, atol=1e-9)


def test_rows_that_are_equally_sure_are_not_told_apart_by_their_labels(monkeypatch):
    monkeypatch.setattr(transitions, "MOST_ROWS_PER_POSTERIOR", np.inf)
    labels = np.repeat([0, 1, 1, 2], [70, 30, 100, 100])
    twisted = np.repeat([[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 100, axis=0)
    highest = find_highest_rates(twisted, labels, np.ones(300))
    assert highest[0] == pytest.approx(twin.find_highest_rate(twisted[:, 0], labels, 0, [100, 300]))
    assert highest[0] > 0.3
    noise = estimate_transitions(np.tile(twisted, (5, 1)), np.tile(labels, 5))
    np.testing.assert_allclose(noise.matrix[0], [0.7, 0.3, 0.0], atol=0.03)


def test_copies_of_few_rows_are_all_looked_at():
    rng = np.random.default_rng(0)
    kinds = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    truth = rng.integers(3, size=50_000)
    labels = (rng.random((50_000, 1)) > kinds[truth].cumsum(axis=1)).sum(axis=1)
    rows = choose_rows(kinds[truth], labels, np.ones(50_000))
    assert len(rows.labels) == 9
    shares = np.bincount(rows.labels, rows.weight) / rows.weight.sum()
    np.testing.assert_allclose(shares, np.bincount(labels) / 50_000, atol=1e-12)


@pytest.mark.parametrize("kind", ["none", "even", "pairs", "one class", "random"])
@pytest.mark.thinned(2)
def test_no_class_is_noisier_than_its_highest_rate(kind):
    exceeded = []
    for seed in range(10):
        posterior, labels, _ = draw_rows(kind, n=1000, seed=seed, clarity=2.0)
        rates = 1.0 - np.diag(make_matrix(kind, 4))
        exceeded.extend(rates > find_highest_rates(posterior, labels, np.ones(1000)) + 1e-12)
    # The bound is a one-sided one of two standard errors, at the best of several depths.
    assert np.mean(exceeded) <= 0.15


# ---- what it finds ----


@pytest.mark.parametrize("n_classes", [3, 4, 8])
@pytest.mark.parametrize("kind", ["even", "pairs", "one class", "random"])
@pytest.mark.thinned(2)
def test_noise_is_found_and_measured(kind, n_classes):
    posterior, labels, truth = draw_rows(kind, n_classes=n_classes)
    noise = estimate_transitions(posterior, labels)
    wrong = labels != truth
    assert noise.found
    assert noise.evidence > ENOUGH_EVIDENCE
    assert noise.share == pytest.approx(wrong.mean(), abs=0.03)
    assert noise.interval[0] <= wrong.mean() <= noise.interval[1]
    np.testing.assert_allclose(noise.matrix, make_matrix(kind, n_classes), atol=0.1)
    # The matrix is the mean over noise and next to none, the shares are those of noise alone.
    rates = noise.weights[0] * 0.002 + (1.0 - noise.weights[0]) * noise.class_shares
    np.testing.assert_allclose(1.0 - np.diag(noise.matrix), rates, atol=1e-4)
    assert (noise.class_intervals[:, 0] <= noise.class_shares).all()
    assert (noise.class_shares <= noise.class_intervals[:, 1]).all()
    probability = noise.probability_wrong(posterior, labels)
    assert probability[wrong].mean() > probability[~wrong].mean() + 0.4
    assert noise.interval[0] > 0
    assert noise.found_pairs.sum() == n_classes * (n_classes - 1)
    # As many as are expected to be wrong are about as many as there are, and mostly wrong.
    suspects = np.argsort(-probability)[: count_expected(probability)]
    assert 2 * wrong[suspects].sum() / (len(suspects) + wrong.sum()) > 0.9
    # The clean posterior says more of the truth than the twisted one.
    rows = np.arange(len(truth))
    before, after = (-np.log(p[rows, truth]).mean() for p in (posterior, noise.clean(posterior)))
    assert after < before


@pytest.mark.parametrize("clarity", [1.0, 2.0, 3.5, 6.0])
@pytest.mark.parametrize("n_classes", [3, 8])
@pytest.mark.thinned(3)
def test_clean_labels_are_not_accused_and_not_acquitted_for_nothing(n_classes, clarity):
    posterior, labels, truth = draw_rows("none", n_classes=n_classes, clarity=clarity)
    noise = estimate_transitions(posterior, labels)
    assert not noise.found
    assert not noise.found_pairs.any()
    # One label of 500 is never excluded to be wrong.
    assert count_expected(noise.probability_wrong(posterior, labels)) <= 0.005 * len(labels)
    assert noise.share < 0.03
    low, high = noise.interval
    assert low == 0.0
    assert high >= 1.0 / len(labels)
    assert noise.uneven_limit >= high
    assert (noise.class_intervals[:, 0] == 0).all()
    assert (noise.class_intervals[:, 1] > 0).all()
    rows = np.arange(len(truth))
    before, after = (-np.log(p[rows, truth]).mean() for p in (posterior, noise.clean(posterior)))
    assert after < before + 0.02


@pytest.mark.parametrize("n", [6, 10, 20, 40])
@pytest.mark.thinned(4)
def test_few_rows_that_are_merely_hard_are_not_accused(n):
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        posterior = rng.dirichlet(np.ones(3), n)
        labels = np.array([rng.choice(3, p=q) for q in posterior])
        found.append(estimate_transitions(posterior, labels).found)
    assert not any(found)


def draw_levels(n=3000, n_levels=5, seed=0, spread=0.25, flips=0.0, by=2, boldness=0.5):
    """Levels of a number that features tell but for a normal error, of which some labels move by so many levels.

    The model's own error is wider than the true one by `1 / boldness`, as models are shy; where `flips` is 0 nothing is
    wrong, and rows near a threshold are hard.
    """
    rng = np.random.default_rng(seed)
    centre = rng.uniform(0.0, n_levels, n)
    levels = np.clip(centre + spread * rng.normal(size=n), 0.0, n_levels - 1e-9).astype(int)
    ends = np.concatenate([[-np.inf], np.arange(1, n_levels), [np.inf]])
    clean = np.diff(ndtr((ends - centre[:, None]) * boldness / spread), axis=1) + 1e-4
    clean /= clean.sum(axis=1, keepdims=True)
    labels = np.where(rng.random(n) < flips, (levels + by) % n_levels, levels)
    guess = clean @ ((1.0 - flips) * np.eye(n_levels) + flips * np.roll(np.eye(n_levels), by, axis=1))
    guess *= np.exp(0.2 * rng.normal(size=guess.shape))
    return guess / guess.sum(axis=1, keepdims=True), labels, levels


def find_neighbours(places):
    """Which classes are next to each other in an order."""
    return np.abs(np.subtract.outer(places, places)) == 1


@pytest.mark.parametrize("boldness", [0.5, 1.0])
@pytest.mark.parametrize(("n_levels", "spread"), [(3, 0.4), (5, 0.25), (6, 0.6), (7, 1.5)])
@pytest.mark.thinned(2)
def test_levels_that_are_hard_near_their_thresholds_are_never_noisy(n_levels, spread, boldness):
    for seed in range(4):
        posterior, labels, _ = draw_levels(1500, n_levels, seed, spread, boldness=boldness)
        for order in (None, np.arange(n_levels)):
            noise = estimate_transitions(posterior, labels, order=order)
            assert not noise.found
            assert not noise.found_pairs.any()
            assert noise.interval[0] == 0.0
            assert count_expected(noise.probability_wrong(posterior, labels)) <= 0.005 * len(labels)


@pytest.mark.parametrize("n", [500, 2000, 6000])
def test_noise_that_is_plain_by_exact_posteriors_is_found_however_many_rows_there_are(n):
    """A fifth of each class bears the label of the next one, and features tell nearly all rows apart."""
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=n)
    # The posterior of classes whose features are normal around corners.
    clean = np.exp(4.0 * (rng.normal(size=(n, 4)) + 4.0 * np.eye(4)[truth]))
    matrix = 0.8 * np.eye(4) + 0.2 * np.roll(np.eye(4), 1, axis=1)
    labels = (rng.random((n, 1)) > matrix[truth].cumsum(axis=1)).sum(axis=1).clip(0, 3)
    noise = estimate_transitions(clean / clean.sum(axis=1, keepdims=True) @ matrix, labels)
    assert noise.share == pytest.approx(np.mean(labels != truth), abs=0.03)
    assert noise.found


@pytest.mark.parametrize("n_classes", [10, 30])
@pytest.mark.parametrize("clarity", [1.0, 6.0])
@pytest.mark.thinned(2)
def test_ten_clean_rows_a_class_are_never_noisy(n_classes, clarity):
    for seed in range(5):
        posterior, labels, _ = draw_rows("none", 10 * n_classes, n_classes, seed, clarity)
        noise = estimate_transitions(posterior, labels)
        assert not noise.found
        assert noise.interval[0] == 0.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.thinned(2)
def test_far_flips_are_found_while_neighbours_stay_undecided(seed):
    posterior, labels, levels = draw_levels(seed=seed, flips=0.15)
    wrong = labels != levels
    noise = estimate_transitions(posterior, labels)
    assert noise.found
    neighbours = find_neighbours(np.arange(5))
    assert not noise.decided_pairs[neighbours].any()
    # Whatever is two levels apart, or more, was decided: labels moved by two, all round.
    np.testing.assert_array_equal(noise.decided_pairs, ~neighbours & list_pairs(5))
    assert noise.share == pytest.approx(wrong.mean(), abs=0.02)
    assert noise.interval[0] <= wrong.mean() <= noise.interval[1]
    probability = noise.probability_wrong(posterior, labels)
    suspects = np.argsort(-probability)[: count_expected(probability)]
    assert wrong[suspects].mean() > 0.95
    assert len(suspects) == pytest.approx(wrong.sum(), rel=0.1)
    # All but a hedge is that of noise between decided pairs; of the hedge some is that of undecided noise.
    assert noise.weights[-1] == pytest.approx(1.0 - transitions.HEDGE, abs=1e-6)
    assert len(noise.weights) > 2
    assert (noise.matrices[-1][neighbours] == 0.0).all()
    # More than the surest rows exclude is not excluded of a class with an undecided neighbour.
    caps = find_highest_rates(posterior, labels, np.ones(len(labels)))
    assert (noise.class_intervals[:, 1] >= caps - 1e-9).all()
    counts = np.bincount(labels)
    assert noise.interval[1] >= np.average(caps, weights=counts) - 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.thinned(2)
def test_in_an_order_noise_is_looked_for_between_all_but_neighbours(seed):
    posterior, labels, levels = draw_levels(seed=seed, flips=0.15)
    names = np.random.default_rng(seed).permutation(5)  # The name of each level, as those of classes are sorted.
    posterior, labels = posterior[:, np.argsort(names)], names[labels]
    order = np.argsort(names)
    noise = estimate_transitions(posterior, labels, order=order)
    assert noise.found
    np.testing.assert_array_equal(noise.decided_pairs, ~find_neighbours(order) & list_pairs(5))
    assert noise.share == pytest.approx(np.mean(labels != names[levels]), abs=0.02)
    # No noise that can be seen is the only matrix in which a label may be that of a neighbour.
    assert (noise.matrices[1:][:, find_neighbours(order)] == 0.0).all()
    assert estimate_transitions(posterior, labels, order=order.tolist()).evidence == noise.evidence
    # The other way round it is the same order.
    assert_same(noise, estimate_transitions(posterior, labels, order=4 - order))


def test_two_classes_in_an_order_have_no_pair_that_noise_is_looked_for_between():
    posterior, labels, _ = draw_rows("even", n=400, n_classes=2)
    assert estimate_transitions(posterior, labels).decided_pairs.any()
    noise = estimate_transitions(posterior, labels, order=[1, 0])
    assert not noise.found
    assert not noise.decided_pairs.any()
    assert noise.interval[0] == 0.0


@pytest.mark.parametrize("order", [[0, 1, 1, 2], [1, 2, 3, 4], [0, 1, 2], [[0, 1], [2, 3]], [0.5, 1, 2, 3], "abcd"])
def test_what_is_no_order_is_refused(order):
    posterior, labels, _ = draw_rows(n=50)
    with pytest.raises(ValueError, match="order must hold the place of each of the 4 classes, from 0"):
        estimate_transitions(posterior, labels, order=order)


def test_harder_data_exclude_less():
    limits = [estimate_transitions(*draw_rows("none", clarity=each)[:2]).uneven_limit for each in (0.5, 1.0, 2.0, 4.0)]
    assert limits == sorted(limits, reverse=True)
    assert limits[0] > 0.2
    assert limits[-1] < 0.02


def test_noise_is_found_or_its_interval_begins_at_0_and_no_label_is_replaced():
    """Where nothing but weak evidence speaks for noise, it is not found, and never is any of it certain."""
    evidences = []
    for seed in range(12):
        noise = estimate_transitions(*draw_rows("even", n=60, n_classes=3, clarity=2.0, seed=seed)[:2])
        evidences.append(noise.evidence)
        assert noise.found == (noise.evidence > ENOUGH_EVIDENCE)
        assert noise.found_pairs.any() == noise.found
        assert (noise.interval[0] > 0) == noise.found
        if not noise.found:
            assert noise.share_wrong([[0.4, 0.3, 0.3]], [0], 1.0)[1] == 0.0
            assert (noise.class_intervals[:, 0] == 0).all()
    assert min(evidences) < 0 < max(evidences) < 2 * ENOUGH_EVIDENCE


def test_a_known_matrix_is_kept_and_only_calibrated():
    posterior, labels, truth = draw_rows("pairs")
    matrix = make_matrix("pairs", 4)
    noise = estimate_transitions(posterior**0.5 / (posterior**0.5).sum(axis=1, keepdims=True), labels, matrix=matrix)
    np.testing.assert_allclose(noise.matrix, matrix)
    assert noise.is_given
    assert noise.found
    # Posteriors that were too shy are made surer.
    assert (noise.slopes > 1.1).all()
    assert noise.share == pytest.approx(np.mean(labels != truth), abs=0.05)


# ---- what must not matter ----


@pytest.mark.parametrize("n", [300, 9000])
def test_the_order_of_the_rows_does_not_matter(n):
    posterior, labels, _ = draw_rows("random", n=n)
    posterior[::7] = posterior[0]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, n)
    order = np.random.default_rng(1).permutation(n)
    assert_same(
        estimate_transitions(posterior, labels, weight),
        estimate_transitions(posterior[order], labels[order], weight[order]),
    )


@pytest.mark.parametrize("kind", ["none", "even", "random"])
@pytest.mark.thinned(2)
def test_the_order_of_the_classes_does_not_matter(kind):
    posterior, labels, _ = draw_rows(kind, n=8000)
    order = np.array([2, 0, 3, 1])
    first = estimate_transitions(posterior, labels)
    second = estimate_transitions(posterior[:, order], np.argsort(order)[labels])
    # Sums in another order lead the search to a point that is as good.
    assert second.share == pytest.approx(first.share, abs=2e-3)
    assert second.found == first.found
    np.testing.assert_allclose(second.matrix, first.matrix[np.ix_(order, order)], atol=5e-3)


def test_the_number_of_threads_does_not_matter():
    rows = draw_rows("random", n=1500, n_classes=40)[:2]  # Matrices of this size are multiplied by several threads.
    estimates = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            assert {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"} <= {threads}
            estimates.append(estimate_transitions(*rows))
    assert_same(*estimates)


def test_rows_without_weight_do_not_count_and_one_weight_for_all_changes_nothing():
    posterior, labels, _ = draw_rows("pairs", n=1000)
    first = estimate_transitions(posterior, labels)
    weight = np.append(np.full(1000, 2.0**-40), np.zeros(200))
    more_labels = np.append(labels, np.zeros(200, dtype=int))
    assert_close = np.testing.assert_allclose
    assert_close(
        estimate_transitions(np.vstack([posterior, posterior[:200]]), more_labels, weight).matrix, first.matrix
    )


def test_a_weight_counts_copies():
    posterior, labels, _ = draw_rows("pairs", n=800)
    twice = estimate_transitions(np.vstack([posterior] * 2), np.tile(labels, 2))
    weighed = estimate_transitions(posterior, labels, np.full(800, 2.0))
    assert_same(weighed, twice)


# ---- extremes ----


@pytest.mark.parametrize("n_classes", [2, 3, 30, 100])
@pytest.mark.parametrize("n", [10, 200])
@pytest.mark.thinned(3)
def test_few_rows_and_many_classes(n, n_classes):
    posterior, labels, _ = draw_rows("none", n=n, n_classes=n_classes)
    noise = estimate_transitions(posterior, labels)
    assert isinstance(noise, SeveralClassesNoise)
    assert np.isfinite(noise.clean(posterior)).all()
    np.testing.assert_allclose(noise.clean(posterior).sum(axis=1), 1.0)
    assert 0 <= noise.interval[0] <= noise.share <= noise.interval[1] <= 1
    assert (noise.weights >= transitions.LEAST_WEIGHT).all()
    assert noise.weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(noise.matrices.sum(axis=2), 1.0)
    assert (noise.matrices >= 0).all()


def test_classes_without_rows_and_posteriors_of_0_and_1():
    posterior, labels, _ = draw_rows("pairs", n=600)
    certain = np.round(posterior)
    certain[certain.sum(axis=1) == 0] = [0.0, 0.0, 1.0, 0.0]
    noise = estimate_transitions(np.hstack([certain, np.zeros((600, 1))]), labels)
    clean = noise.clean(np.hstack([certain, np.zeros((600, 1))]))
    assert np.isfinite(clean).all()
    assert noise.interval[1] > 0
    assert noise.class_intervals[4, 1] > 0.9


def test_all_rows_alike():
    noise = estimate_transitions(np.full((50, 3), 1 / 3), np.zeros(50, dtype=int))
    assert np.isfinite(noise.clean(np.full((50, 3), 1 / 3))).all()
    assert np.isfinite(noise.share)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e200])
def test_weights_of_any_size(scale):
    posterior, labels, truth = draw_rows("pairs", n=1000)
    noise = estimate_transitions(posterior, labels, scale * np.linspace(0.5, 1.5, 1000))
    assert noise.found
    assert noise.share == pytest.approx(np.mean(labels != truth), abs=0.05)


@pytest.mark.parametrize(
    ("posterior", "labels", "weight", "message"),
    [
        (np.ones(3), [0, 1, 0], None, "a row per label and a column per class"),
        (np.ones((3, 1)), [0, 0, 0], None, "a row per label and a column per class"),
        (np.full((3, 2), 0.5), [0, 1], None, "a row per label and a column per class"),
        (np.full((0, 2), 0.5), [], None, "a row per label and a column per class"),
        (np.full((2, 2), -0.5), [0, 1], None, "must hold probabilities"),
        (np.full((2, 2), 0.0), [0, 1], None, "must hold probabilities"),
        (np.full((2, 2), 0.5), [0, 2], None, "whole numbers from 0 to 1"),
        (np.full((2, 2), 0.5), [0.0, 1.0], None, "whole numbers from 0 to 1"),
        (np.full((2, 2), 0.5), [0, 1], [1.0, -1.0], "sample_weight must be finite and non-negative"),
        (np.full((2, 2), 0.5), [0, 1], [0.0, 0.0], "sample_weight must be finite and non-negative"),
        (np.full((2, 2), 0.5), [0, 1], [1.0], "sample_weight must be finite and non-negative"),
    ],
)
def test_bad_rows_are_refused(posterior, labels, weight, message):
    with pytest.raises(ValueError, match=message):
        estimate_transitions(posterior, labels, weight)


def test_nothing_is_told_where_many_rows_share_a_posterior():
    posterior, labels, _ = draw_rows("even", n=600, n_classes=3)
    assert estimate_transitions(posterior, labels).found
    kinds = np.unique(posterior.round(1), axis=0)
    rounded = posterior.round(1) / posterior.round(1).sum(axis=1, keepdims=True)
    assert len(kinds) < 150
    coarse = estimate_transitions(rounded, labels)
    assert not coarse.found
    assert not coarse.decided_pairs.any()
    assert len(coarse.weights) == 1
    assert coarse.interval[0] == 0.0


def test_groups_of_rows_that_are_hard_are_not_called_noise(monkeypatch):
    monkeypatch.setattr(transitions, "MOST_ROWS_PER_POSTERIOR", np.inf)
    groups = np.array([[0.7, 0.15, 0.15], [0.15, 0.7, 0.15], [0.15, 0.15, 0.7], [0.5, 0.3, 0.2]])
    rng = np.random.default_rng(0)
    posterior = groups[np.where(rng.random(3000) < 0.9, rng.integers(3, size=3000), 3)]
    labels = (posterior.cumsum(axis=1) < rng.random(3000)[:, None]).sum(axis=1)
    noise = estimate_transitions(posterior, labels)
    assert not noise.found
    assert not noise.decided_pairs.any()
    assert noise.evidence == 0
    assert noise.interval[0] == 0
    assert noise.interval[1] > 0.3
    # Were these rows not in groups, they would be noisy.
    monkeypatch.setattr(transitions, "has_few_groups", lambda *_: False)
    assert estimate_transitions(posterior, labels).found


def test_posteriors_are_counted_whatever_their_order_and_by_class():
    rng = np.random.default_rng(0)
    twisted = rng.random((30, 3)).round(1)[rng.integers(30, size=200)]
    assert count_posteriors(twisted) == len({tuple(row) for row in twisted.tolist()})
    assert count_posteriors(np.array([[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]])) == 2


# ---- one step after the other ----


def make_fit(kind="even", value=0.0, common=0.0, n_classes=3, slope=0.0):
    offsets = np.linspace(-0.1, 0.1, n_classes)
    return Fit(value, make_matrix(kind, n_classes), np.full(n_classes, slope), offsets, common)


@pytest.fixture(scope="module")
def three():
    posterior, labels, _ = draw_rows("even", n=300, n_classes=3)
    return Plausibility(choose_rows(posterior, labels, np.ones(300)))


class Script:
    """Stands in for the search: fits that explain so many nats more than no noise does, by the pairs searched between.

    `overlaps` are those of the best fit between the same pairs of classes, `rival` what matrix scaling explains, and
    `beyond` what noise explains after it; None where nobody asks for that.
    """

    def __init__(self, monkeypatch, plausibility, gains, overlaps=(), rival=0.0, beyond=None):
        self.clean = make_fit("none", 100.0, slope=-0.1)
        self.gains, self.overlaps, self.searched = gains, list(overlaps), []
        monkeypatch.setattr(transitions, "find_clean_fit", lambda _plausibility: self.clean)
        monkeypatch.setattr(transitions, "search_matrices", self.search)
        likelihood = plausibility.find_likelihood(self.clean)
        self.scaling = Scaling(likelihood + rival, plausibility.rows)
        monkeypatch.setattr(transitions, "fit_scaling", lambda _rows, _least: self.scaling)
        monkeypatch.setattr(transitions, "_explain_beyond", self.explain_beyond)
        self.beyond = beyond
        monkeypatch.setattr(plausibility, "find_overlap", self.find_overlap)

    def search(self, _plausibility, pairs, clean):
        assert clean is self.clean
        gains = self.gains[len(self.searched)]
        even, one_by_one, *uneven = (
            make_fit(kind, 100.0 + gain, slope=0.1 * index + 0.01 * len(self.searched))
            for index, (kind, gain) in enumerate(zip(("even", "pairs", "random", "one class"), gains, strict=False))
        )
        self.searched.append((pairs, [even, one_by_one, *uneven]))
        return even, one_by_one, uneven

    def explain_beyond(self, scaling, pairs):
        assert scaling is self.scaling
        np.testing.assert_array_equal(pairs, self.searched[-1][0])
        assert self.beyond is not None
        return self.beyond

    def find_overlap(self, fit):
        # It is that of the best fit between the pairs that were searched last.
        assert any(fit is one for one in self.searched[-1][1])
        return self.overlaps.pop(0) if self.overlaps else np.zeros((3, 3))


def rate_slowly(plausibility, pairs, fits):
    """What each fit explains beyond no noise, less its price and what features say against it."""
    n_noisy = sum(row.any() for row in pairs)
    gains = []
    for index, fit in enumerate(fits):
        gain = fit.value - 100.0 - 0.7
        if index > 0:
            gain -= 1.5 * plausibility.find_contradiction(fit)
            gain -= 0.5 * n_noisy if index == 1 else _price_unevenness(fit, pairs)
        gains.append(gain)
    return gains


@pytest.fixture
def combine(three, monkeypatch):
    """The mixture of made-up fits, with the script that made them."""

    def make(gains, overlaps=(), rival=0.0, *, beyond=None, apart=None, is_grouped=False):
        script = Script(monkeypatch, three, gains, overlaps, rival, beyond)
        apart = list_pairs(3) if apart is None else apart
        return transitions._combine(three, apart, is_grouped=is_grouped), script

    return make


def assert_mixed(three, mixture, script, rival=0.0, decided_pairs=None):
    """The mixture has the matrices of the script with the weights of the slow twin, without those of next to none."""
    apart, first = script.searched[0]
    decided_pairs = apart if decided_pairs is None else decided_pairs
    settled = script.searched[-1][1] if decided_pairs.any() else []
    gains = rate_slowly(three, apart, first)
    masked = rate_slowly(three, decided_pairs, settled) if decided_pairs.any() else None
    is_whole = np.array_equal(apart, decided_pairs)
    unseen, undecided, decided = twin.mix(gains, masked, rival, is_whole, script.beyond)
    even, best = first[0], first[int(np.argmax(gains))]
    fits = [script.clean, *[even, best][: len(undecided)], *settled]
    matrices = [make_even_matrix(3, 0.002), *(fit.matrix for fit in fits[1:])]
    weights = np.array([unseen, *undecided, *decided])
    kept = np.flatnonzero(weights >= 1e-3)
    np.testing.assert_allclose(mixture.weights, weights[kept] / weights[kept].sum())
    np.testing.assert_array_equal(mixture.matrices, [matrices[index] for index in kept])
    np.testing.assert_allclose(mixture.slopes, np.exp([fits[index].log_slopes for index in kept]))
    np.testing.assert_array_equal(mixture.offsets, [fits[index].offsets for index in kept])
    np.testing.assert_array_equal(mixture.decided_pairs, decided_pairs)
    evidence = twin.find_evidence(gains, masked, rival, script.beyond)
    assert mixture.evidence == pytest.approx(evidence)
    assert mixture.found == (evidence > 3.66)
    assert mixture.least == three.least
    return weights


@pytest.mark.parametrize("rival", [-5.0, 0.0, 3.0])
@pytest.mark.parametrize("gains", [(19.0, 18.0, 22.0, 15.0), (6.0, 9.5, 9.0), (5.0, 5.0, 4.0), (-3.0, -2.0, -9.0)])
def test_fits_are_mixed_by_what_they_explain_beyond_a_scaling_and_a_prior(three, combine, gains, rival):
    mixture, script = combine([gains], rival=rival)
    unseen, *_ = assert_mixed(three, mixture, script, rival)
    assert unseen >= transitions.HEDGE
    assert len(script.searched) == 1


def test_evidence_is_what_noise_explains_beyond_the_better_of_scaling_and_the_fit_without(combine):
    alone = combine([(20.0, -9.0, -9.0)])[0].evidence
    assert alone == pytest.approx(20.0 - 0.7 - 4.0)
    assert combine([(20.0, -9.0, -9.0)], rival=-7.0)[0].evidence == pytest.approx(alone)
    assert combine([(20.0, -9.0, -9.0)], rival=7.0)[0].evidence == pytest.approx(alone - 7.0)
    for rival, found in ((alone - 3.67, True), (alone - 3.65, False)):
        assert combine([(20.0, -9.0, -9.0)], rival=rival, beyond=None if found else 0.0)[0].found == found


@pytest.mark.parametrize("beyond", [0.0, 5.0, 7.65, 7.67, 30.0])
@pytest.mark.parametrize("gains", [(9.0, 28.0, 12.0, 11.0), (8.5, -9.0, -9.0), (8.3, -9.0, -9.0)])
def test_where_scaling_explains_more_noise_counts_for_what_it_explains_after_it(three, combine, gains, beyond):
    """Of noise that would not be found without scaling nobody asks what it explains after it."""
    is_asked = max(gains) > 8.4  # Nats beyond 0.7 for noise, 4 for the prior and 3.66 to be found.
    mixture, script = combine([gains], rival=25.0, beyond=beyond if is_asked else None)
    assert_mixed(three, mixture, script, rival=25.0)
    assert mixture.found == (is_asked and beyond > 7.66)


def test_what_noise_explains_after_scaling_is_a_gain_of_scaled_rows_and_nothing_where_pairs_overlap(monkeypatch):
    posterior, labels, _ = draw_rows("one class", n=400, n_classes=3)
    rows = choose_rows(posterior, labels, np.ones(400))
    scaling = fit_scaling(rows)
    scaled = Plausibility(scaling.rows)
    clean = find_clean_fit(scaled)
    for pairs in (list_pairs(3), leave_out((0, 1))):
        best = max(one.gain for one in transitions._rate_fits(scaled, pairs, clean))
        assert transitions._explain_beyond(scaling, pairs) == pytest.approx(best)
    monkeypatch.setattr(Plausibility, "find_overlap", lambda *_: make_overlap((0, 1)))
    assert transitions._explain_beyond(scaling, leave_out((0, 1))) == pytest.approx(best)
    assert transitions._explain_beyond(scaling, list_pairs(3)) == 0.0


def make_overlap(*pairs, of=0.55):
    """That of three classes which are told apart, but for some pairs."""
    overlap = np.full((3, 3), 0.549)
    for j, k in pairs:
        overlap[j, k] = overlap[k, j] = of
    return overlap


def leave_out(*pairs, n_classes=3):
    """All pairs of classes but some, both ways."""
    left = list_pairs(n_classes)
    for j, k in pairs:
        left[j, k] = left[k, j] = False
    return left


def test_pairs_that_overlap_are_left_out_until_all_others_are_told_apart(three, combine):
    gains = [(5.0, 6.0, 30.0), (4.0, 25.0, 21.0), (18.0, 3.0, 17.0)]
    # The second search finds another pair that overlaps, and the first one not any more: it stays undecided.
    mixture, script = combine(gains, [make_overlap((0, 1)), make_overlap((1, 2), of=0.9), make_overlap()])
    searched = [pairs for pairs, _ in script.searched]
    np.testing.assert_array_equal(searched, [leave_out(), leave_out((0, 1)), leave_out((0, 1), (1, 2))])
    assert_mixed(three, mixture, script, decided_pairs=searched[-1])
    assert mixture.found
    np.testing.assert_array_equal(mixture.found_pairs, searched[-1])
    # Pairs that were never looked between are not undecided, and stay as they are.
    between = leave_out((0, 1))
    mixture, script = combine([(18.0, 3.0, 17.0)], [make_overlap((0, 1))], apart=between)
    weights = assert_mixed(three, mixture, script)
    assert len(weights) == 4  # None of them is that of an undecided fit.


@pytest.mark.parametrize("gains", [(30.0, 6.0, 5.0), (9.0, 30.0, 12.0), (-9.0, -8.0, -7.0), (4.0, -9.0, 4.5)])
def test_noise_between_classes_that_are_never_told_apart_has_half_of_what_it_may_have(three, combine, gains):
    mixture, script = combine([gains], [np.full((3, 3), 0.6)], rival=1.0)
    weights = assert_mixed(three, mixture, script, rival=1.0, decided_pairs=np.zeros((3, 3), dtype=bool))
    assert weights[0] >= 0.25
    assert mixture.evidence <= 0.0
    assert not mixture.found_pairs.any()
    assert len(script.searched) == 1
    assert mixture.interval[0] == 0.0


def test_groups_of_rows_take_the_evidence_off_where_some_are_unsure(three, combine, monkeypatch):
    gains = (19.0, 18.0, 22.0)
    for share, is_taken in ((0.06, True), (0.05, False)):
        monkeypatch.setattr(three, "find_unsure_share", lambda _fit, share=share: share)
        mixture, script = combine([gains], is_grouped=True)
        assert mixture.evidence == 0.0 if is_taken else mixture.evidence > 9.0
        assert mixture.found != is_taken
        assert_mixed(three, mixture, script, decided_pairs=np.zeros((3, 3), dtype=bool) if is_taken else None)
        assert combine([gains])[0].found


def test_noise_takes_enough_rows_of_each_class(three, combine, monkeypatch):
    for n_rows, found in ((15, True), (14, False)):
        monkeypatch.setattr(three, "rows_per_class", n_rows / 3)
        mixture, _ = combine([(19.0, 18.0, 22.0)])
        assert mixture.evidence > 9.0
        assert mixture.found == found
        assert (mixture.interval[0] > 0) == found


def describe_slowly(plausibility, decided, fits, is_open):
    """Shares and intervals over decided noise and fits that are nearly as good, class by class."""
    rows = plausibility.rows
    share = np.average(decided.probability_wrong(rows.twisted, rows.labels), weights=rows.weight)
    shares, rates = [share], [1.0 - np.diag(decided.matrix)]
    for fit in fits:
        one = transitions._take_fit(decided, fit)
        shares.append(np.average(one.probability_wrong(rows.twisted, rows.labels), weights=rows.weight))
        rates.append(1.0 - np.diag(fit.matrix))
    spread = 1.96 * np.sqrt(0.14**2 + 20.0 / rows.weight.sum())
    low, high = (np.log(one / (1 - one)) + side * spread for one, side in ((min(shares), -1), (max(shares), 1)))
    low, high = 1 / (1 + np.exp(-low)), 1 / (1 + np.exp(-high))
    by_class = []
    n_labels = [rows.weight[rows.labels == k].sum() for k in range(len(rates[0]))]
    for k, n in enumerate(n_labels):
        ends = []
        for rate in rates:
            variance = 0.02**2 + (0.15 * rate[k]) ** 2 + rate[k] * (1 - rate[k]) / max(n, 1) + 1 / (n + 1) ** 2
            ends.append((max(rate[k] - 1.96 * np.sqrt(variance), 0), min(rate[k] + 1.96 * np.sqrt(variance), 1)))
        end = max(other for _, other in ends)
        by_class.append((min(one for one, _ in ends), max(end, plausibility.caps[k]) if is_open[k].any() else end))
    if is_open.any():
        high = max(high, np.average([end for _, end in by_class], weights=n_labels))
    return share, (low, high), np.array(by_class)


def mix_decided(mixture, script, gains):
    """The noise of decided pairs alone."""
    fits = script.searched[-1][1]
    weights = np.exp(gains - np.max(gains))
    return replace(
        mixture,
        weights=weights / weights.sum(),
        matrices=np.array([fit.matrix for fit in fits]),
        slopes=np.exp([fit.log_slopes for fit in fits]),
        offsets=np.array([fit.offsets for fit in fits]),
    )


@pytest.mark.parametrize("caps", [0.02, 0.6])
@pytest.mark.parametrize("open_pairs", [(), ((0, 1),), ((0, 1), (1, 2))])
def test_intervals_hold_all_fits_that_are_nearly_as_good_and_what_is_open(
    three, combine, monkeypatch, open_pairs, caps
):
    monkeypatch.setattr(three, "caps", np.array([caps, caps + 0.01, caps + 0.02]))
    gains = (29.0, 28.9, 32.0, 29.1)
    decided_pairs = leave_out(*open_pairs)
    mixture, script = combine([gains] * 2, [make_overlap(*open_pairs)])
    assert_mixed(three, mixture, script, decided_pairs=decided_pairs)
    settled = script.searched[-1][1]
    decided = mix_decided(mixture, script, rate_slowly(three, decided_pairs, settled))
    # 29.0 and 29.1 are within three nats of 32, 28.9 is not.
    close = [settled[0], settled[2], settled[3]]
    share, interval, by_class = describe_slowly(three, decided, close, leave_out() & ~decided_pairs)
    # The share is of the wrong labels if there is noise, so that a component of next to no weight may be left out.
    assert mixture.share == pytest.approx(share, rel=2e-3)
    assert mixture.interval == pytest.approx(interval, rel=2e-3)
    np.testing.assert_allclose(mixture.class_intervals, by_class, rtol=2e-3)
    np.testing.assert_allclose(mixture.class_shares, 1.0 - np.diag(decided.matrix), rtol=2e-3)
    assert mixture.uneven_limit == mixture.interval[1]
    assert (mixture.interval[1] > 0.5) == (bool(open_pairs) and caps == 0.6)


def test_without_noise_intervals_end_at_the_highest_rates(three, combine):
    mixture, _ = combine([(-3.0, -2.0, -9.0)])
    n_labels = np.bincount(three.rows.labels, three.rows.weight)
    np.testing.assert_array_equal(mixture.class_intervals[:, 0], 0.0)
    np.testing.assert_allclose(mixture.class_shares, 1.0 - np.diag(mixture.matrix))
    np.testing.assert_allclose(mixture.class_intervals[:, 1], np.maximum(three.caps, mixture.class_shares))
    assert mixture.interval == (0.0, pytest.approx(np.average(mixture.class_intervals[:, 1], weights=n_labels)))
    wrong = mixture.probability_wrong(three.rows.twisted, three.rows.labels)
    assert mixture.share == pytest.approx(np.average(wrong, weights=three.rows.weight))


def test_a_known_matrix_has_slopes_and_offsets_of_its_climb_and_its_share(three):
    matrix = make_even_matrix(3, 0.2)
    known = transitions._take_known_matrix(three, matrix)
    fit, _ = climb(three, KnownMatrix(matrix), np.zeros(0), np.zeros(3), np.zeros(3), 30)
    np.testing.assert_allclose(known.slopes[0], np.exp(fit.log_slopes))
    np.testing.assert_allclose(known.offsets[0], fit.offsets)
    assert known.least == three.least
    wrong = known.probability_wrong(three.rows.twisted, three.rows.labels)
    assert known.share == pytest.approx(np.average(wrong, weights=three.rows.weight))
    assert known.interval == (known.share, known.share) == (known.uneven_limit, known.uneven_limit)


def test_rows_at_the_limits_are_taken_and_rows_without_weight_left_out():
    for labels in (np.array([1, 0, 1]), np.array([1, 0, 1], dtype=np.uint8), np.array([True, False, True])):
        posterior = [[0.0, 1 + 5e-7], [0.2, 0.2], [0.5, 0.5]]
        twisted, given, weight = transitions._check_rows(posterior, labels, [1.0, 2.0, 0.0])
        np.testing.assert_array_equal(twisted, posterior[:2])
        assert (given.tolist(), weight.tolist(), given.dtype) == ([1, 0], [1.0, 2.0], np.intp)
    assert transitions._check_rows([[0.5, 0.5]], [1], None)[2].tolist() == [1.0]
    for posterior, labels, weight in [
        ([[0.5, 0.5], [0.5, 1.1]], [0, 1], None),
        ([[0.5, 0.5], [0.0, 0.0]], [0, 1], None),
        ([[0.5, 0.5], [0.5, 0.5]], [0, -1], None),
        ([[0.5, 0.5], [0.5, 0.5]], [0, 1], [1.0, np.inf]),
        ([[0.5, 0.5], [0.5, 0.5]], [[0], [1]], None),
    ]:
        with pytest.raises(ValueError, match="must"):
            transitions._check_rows(posterior, labels, weight)


@pytest.mark.filterwarnings("ignore:.*nothing but the shares of the classes:UserWarning")
def test_models_of_rows_that_are_all_alike_are_read_as_they_were_written():
    X, y = np.ones((7, 2)), np.array([2, 2, 2, 1, 0, 0, 0])
    model = QuickClassifier(n_estimators=6, n_jobs=1, random_state=1).fit(X, y)
    assert np.linalg.svd(model.noise_.matrices, compute_uv=False).min() > 1e-8
    np.testing.assert_array_equal(loads(dumps(model)).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("seed", [3, 11, 17, 20, 29])
@pytest.mark.parametrize("n", [7, 50, 1000])
def test_matrices_that_cannot_be_undone_are_left_out(n, seed):
    """A rate of 2/3 leaves nothing of three classes: labels that features say nothing of bring the search there."""
    rng = np.random.default_rng(seed)
    posterior = np.tile(rng.dirichlet(np.ones(3)), (n, 1))
    noise = estimate_transitions(posterior, rng.integers(3, size=n))
    assert np.linalg.svd(noise.matrices, compute_uv=False).min() > 1e-8
    # Which labels are wrong cannot be told of classes that are all alike.
    assert not noise.found
    assert noise.interval[0] == 0.0


def test_a_fit_that_cannot_be_undone_explains_nothing(three, monkeypatch):
    assert transitions._can_be_undone(make_even_matrix(3, 2 / 3 - 1e-7))
    assert not transitions._can_be_undone(make_even_matrix(3, 2 / 3 - 1e-9))
    assert not transitions._can_be_undone(np.full((3, 3), 1 / 3))
    hopeless = make_fit(value=150.0)._replace(matrix=make_even_matrix(3, 2 / 3 - 1e-9))
    good = make_fit("one class", 130.0)
    for uneven, is_found in ((good, True), (hopeless, False)):
        Script(monkeypatch, three, [])
        monkeypatch.setattr(transitions, "search_matrices", lambda *_, one=uneven: (hopeless, hopeless, [one]))
        monkeypatch.setattr(three, "find_overlap", lambda _fit: np.zeros((3, 3)))
        noise = transitions._combine(three, list_pairs(3), is_grouped=False)
        assert noise.found == is_found
        expected = [make_even_matrix(3, 0.002), *([good.matrix] if is_found else [])]
        np.testing.assert_array_equal(noise.matrices, expected)
        assert (noise.evidence > 0) == is_found
