"""The transition matrix: its slow twin, what it finds, what it must not claim, and what must not matter."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from helpers import transitions_twin as twin
from helpers.quick import QuickClassifier
from untwist.files import dumps, loads
from untwist.noise import plausibility, transitions
from untwist.noise.climbing import climb
from untwist.noise.families import FreeMatrices, KnownMatrix, TiedMatrices, make_even_matrix
from untwist.noise.plausibility import Fit, Plausibility, choose_rows, count_posteriors, find_highest_rates
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.noise.transitions import _price_unevenness, _weigh, estimate_transitions


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


def assert_same(first, second):
    """The two estimates agree bit for bit."""
    for name in ("weights", "matrices", "slopes", "offsets", "class_shares", "class_intervals"):
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


FAMILIES = [FreeMatrices(4), TiedMatrices(np.roll(np.eye(4), 1, axis=1)), KnownMatrix(make_even_matrix(4, 0.1))]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
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
    family = FreeMatrices(4)
    parameters = family.start(matrix, common)
    np.testing.assert_allclose(family.make(parameters), np.maximum(matrix, 3e-4), atol=2e-3)
    assert family.find_common(parameters) == pytest.approx(common)
    assert family.price(parameters, matrix)[0] == pytest.approx(twin.price_free_matrix(matrix, common))


def test_entries_are_priced():
    zeros = np.zeros(4)
    nothing, pairs, mostly_even = (
        _price_unevenness(Fit(0.0, make_matrix(kind, 4), zeros, zeros, common))
        for kind, common in (("none", 0.0), ("pairs", 0.0), ("pairs", 0.1))
    )
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


def test_weights_keep_a_hedge():
    strong = _weigh(np.array([0.0, -1.0, 500.0, 499.0]), 2)
    assert strong.sum() == pytest.approx(1.0)
    assert strong[:2].sum() == pytest.approx(transitions.HEDGE)
    assert strong[0] / strong[1] == pytest.approx(np.e)
    weak = _weigh(np.array([0.0, 0.0, 1.0]), 2)
    np.testing.assert_allclose(weak, np.exp([0, 0, 1]) / np.exp([0, 0, 1]).sum())


def test_the_highest_rates_are_those_of_the_slow_twin():
    posterior, labels, _ = draw_rows(n=300)
    depths = np.unique(np.ceil(np.geomspace(1, 300, plausibility.CAP_DEPTHS) - 1e-6).astype(int)).tolist()
    expected = [twin.find_highest_rate(posterior[:, j], labels, j, depths) for j in range(4)]
    np.testing.assert_allclose(find_highest_rates(posterior, labels, np.ones(300)), expected, atol=1e-12)
    # A weight counts copies.
    twice = find_highest_rates(np.vstack([posterior] * 2), np.tile(labels, 2), np.ones(600))
    np.testing.assert_allclose(find_highest_rates(posterior, labels, np.full(300, 2.0)), twice, atol=1e-9)


def test_rows_that_are_equally_sure_are_not_told_apart_by_their_labels():
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
    assert noise.evidence > 0
    assert noise.share == pytest.approx(wrong.mean(), abs=0.03)
    assert noise.interval[0] <= wrong.mean() <= noise.interval[1]
    np.testing.assert_allclose(noise.matrix, make_matrix(kind, n_classes), atol=0.1)
    np.testing.assert_allclose(noise.class_shares, 1.0 - np.diag(noise.matrix))
    assert (noise.class_intervals[:, 0] <= noise.class_shares).all()
    assert (noise.class_shares <= noise.class_intervals[:, 1]).all()
    probability = noise.probability_wrong(posterior, labels)
    assert probability[wrong].mean() > probability[~wrong].mean() + 0.4
    flagged = noise.choose_suspects(probability)
    assert 2 * (flagged & wrong).sum() / (flagged.sum() + wrong.sum()) > 0.75
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
    assert not noise.choose_suspects(noise.probability_wrong(posterior, labels)).any()
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
    assert sum(found) <= 3


def test_harder_data_exclude_less():
    limits = [estimate_transitions(*draw_rows("none", clarity=each)[:2]).uneven_limit for each in (0.5, 1.0, 2.0, 4.0)]
    assert limits == sorted(limits, reverse=True)
    assert limits[0] > 0.2
    assert limits[-1] < 0.02


def test_weak_evidence_does_not_exclude_that_there_is_no_noise():
    weak = []
    for seed in range(12):
        noise = estimate_transitions(*draw_rows("even", n=60, n_classes=3, clarity=2.0, seed=seed)[:2])
        if noise.found and noise.evidence < transitions.CERTAIN_EVIDENCE:
            weak.append(noise)
    assert weak
    for noise in weak:
        assert noise.interval[0] == 0.0
        assert noise.share_wrong([[0.4, 0.3, 0.3]], [0], 1.0)[1] < 1e-6
        assert (noise.class_intervals[:, 0] == 0).all()


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
    assert len(noise.weights) <= transitions.MOST_COMPONENTS
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


def test_groups_of_rows_that_are_hard_are_not_called_noise():
    groups = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]])
    rng = np.random.default_rng(0)
    posterior = groups[rng.integers(4, size=3000)]
    labels = (posterior.cumsum(axis=1) < rng.random(3000)[:, None]).sum(axis=1)
    found = estimate_transitions(posterior, labels)
    assert not found.found
    assert found.evidence == 0
    assert found.interval[0] == 0
    assert found.interval[1] > 0.15


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


def combine(plausibility, gains, is_grouped=False):
    """The mixture of made-up fits that explain so many nats more than no noise does."""
    even, pairs, *uneven = (
        make_fit(kind, 100.0 + gain, slope=0.1 * index)
        for index, (kind, gain) in enumerate(zip(("even", "pairs", "random", "one class"), gains, strict=False))
    )
    clean = make_fit("none", 100.0, slope=-0.1)
    mixture = transitions._combine(plausibility, clean, even, pairs, uneven, is_grouped=is_grouped)
    return mixture, clean, (even, pairs, *uneven)


def mix_slowly(plausibility, clean, fits, evidence_taken_off=0.0):
    """Log-weights, matrices and log-slopes of all components, before the hedge."""
    components = []
    for rate in (0.002, 0.01, 0.03):
        matrix = make_even_matrix(3, rate)
        value = plausibility.evaluate(matrix, clean.log_slopes, clean.offsets)[0] - 100.0
        components.append((value, matrix, clean.log_slopes))
    gains = []
    for index, fit in enumerate(fits):
        gain = fit.value - 100.0 - 0.7
        if index > 0:
            gain -= 1.5 * plausibility.find_contradiction(fit)
            gain -= 3 * 0.5 if index == 1 else _price_unevenness(fit)
        gains.append(gain)
        factor = 1.0 + (0.45 * (1.0 - np.diag(fit.matrix)).mean() if index else 0.0)
        for scale in (0.75, 0.9, 1.0, 1.1, 1.25):
            off_diagonal = factor * scale * (fit.matrix * (1 - np.eye(3)))
            matrix = off_diagonal + np.diag(1.0 - off_diagonal.sum(axis=1))
            if np.diag(matrix).min() >= 0.15:
                value = gain - evidence_taken_off - ((scale - 1.0) / 0.12) ** 2 / 2
                components.append((value, matrix, fit.log_slopes))
    return components, max(gains)


def assert_mixed(mixture, components):
    """The mixture is that of the twelve heaviest components, without those of less than a thousandth."""
    weights = _weigh(np.array([one[0] for one in components]), 3)
    kept = sorted(sorted(range(len(weights)), key=lambda index: -weights[index])[:12])
    kept = [index for index in kept if weights[index] >= 1e-3]
    np.testing.assert_allclose(mixture.weights, weights[kept] / weights[kept].sum())
    np.testing.assert_allclose(mixture.matrices, [components[index][1] for index in kept], atol=1e-12)
    np.testing.assert_allclose(mixture.slopes, np.exp([components[index][2] for index in kept]))


@pytest.mark.parametrize("gains", [(9.0, 8.0, 12.0, 5.0), (5.0, 5.0, 4.0), (-3.0, -2.0, -9.0)])
def test_fits_are_mixed_at_several_scales_by_what_they_explain(three, gains):
    mixture, clean, fits = combine(three, gains)
    components, evidence = mix_slowly(three, clean, fits)
    assert mixture.evidence == pytest.approx(evidence)
    assert mixture.found == (evidence > 0)
    assert_mixed(mixture, components)
    assert mixture.least == three.least


def test_groups_of_rows_take_the_evidence_off_where_some_are_unsure(three):
    fits = combine(three, (9.0, 8.0, 12.0))[2]
    for share, is_taken in ((0.06, True), (0.05, False)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(three, "find_unsure_share", lambda _fit, share=share: share)
            mixture, clean, _ = combine(three, (9.0, 8.0, 12.0), is_grouped=True)
            components, evidence = mix_slowly(three, clean, fits)
            assert mixture.evidence == (0.0 if is_taken else pytest.approx(evidence))
            assert mixture.found != is_taken
            if is_taken:
                components, _ = mix_slowly(three, clean, fits, evidence)
            assert_mixed(mixture, components)
            assert combine(three, (9.0, 8.0, 12.0))[0].found


def test_noise_takes_enough_rows_of_each_class():
    posterior, labels, _ = draw_rows("even", n=60, n_classes=3)
    for n_rows, found in ((15, True), (14, False)):
        objective = Plausibility(choose_rows(posterior, labels, np.ones(60)))
        objective.rows_per_class = n_rows / 3
        assert combine(objective, (9.0, 8.0, 12.0))[0].found == found


def describe_slowly(plausibility, mixture, fits):
    """Shares and intervals over the mixture and fits that are nearly as good, class by class."""
    rows = plausibility.rows
    share = np.average(mixture.probability_wrong(rows.twisted, rows.labels), weights=rows.weight)
    shares, rates = [share], [1.0 - np.diag(mixture.matrix)]
    for fit in fits:
        one = transitions._take_fit(mixture, fit)
        shares.append(np.average(one.probability_wrong(rows.twisted, rows.labels), weights=rows.weight))
        rates.append(1.0 - np.diag(fit.matrix))
    spread = 1.96 * np.sqrt(0.14**2 + 20.0 / rows.weight.sum())
    low, high = (np.log(one / (1 - one)) + side * spread for one, side in ((min(shares), -1), (max(shares), 1)))
    interval = 1 / (1 + np.exp(-low)), 1 / (1 + np.exp(-high))
    by_class = []
    for k in range(len(rates[0])):
        n = rows.weight[rows.labels == k].sum()
        ends = []
        for rate in rates:
            variance = 0.02**2 + (0.15 * rate[k]) ** 2 + rate[k] * (1 - rate[k]) / max(n, 1) + 1 / (n + 1) ** 2
            ends.append((max(rate[k] - 1.96 * np.sqrt(variance), 0), min(rate[k] + 1.96 * np.sqrt(variance), 1)))
        by_class.append((min(one for one, _ in ends), max(other for _, other in ends)))
    return share, interval, np.array(by_class)


def test_intervals_hold_all_fits_that_are_nearly_as_good(three):
    mixture, _, fits = combine(three, (9.0, 8.9, 12.0, 9.1))
    # 9.0 and 9.1 are within three nats of 12, 8.9 is not.
    share, interval, by_class = describe_slowly(three, mixture, [fits[0], fits[2], fits[3]])
    assert mixture.share == pytest.approx(share)
    assert mixture.interval == pytest.approx(interval)
    np.testing.assert_allclose(mixture.class_intervals, by_class)
    np.testing.assert_allclose(mixture.class_shares, 1.0 - np.diag(mixture.matrix))
    assert mixture.uneven_limit == mixture.interval[1]


def test_without_noise_intervals_end_at_the_highest_rates(three):
    mixture, _, _ = combine(three, (-3.0, -2.0, -9.0))
    n_labels = np.bincount(three.rows.labels, three.rows.weight)
    np.testing.assert_array_equal(mixture.class_intervals[:, 0], 0.0)
    np.testing.assert_allclose(mixture.class_intervals[:, 1], np.maximum(three.caps, mixture.class_shares))
    assert mixture.interval == (0.0, pytest.approx(np.average(mixture.class_intervals[:, 1], weights=n_labels)))


def test_weak_evidence_leaves_no_noise_within_all_intervals(three):
    weak, _, fits = combine(three, (4.2, -5.0, -9.0))
    strong, _, _ = combine(three, (4.5, -5.0, -9.0))
    assert weak.evidence < 3.66 < strong.evidence
    assert weak.found
    assert weak.interval[0] == 0.0 < strong.interval[0]
    assert (weak.class_intervals[:, 0] == 0).all()
    assert (strong.class_intervals[:, 0] > 0).all()
    assert weak.interval[1] == pytest.approx(describe_slowly(three, weak, fits[:1])[1][1])


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
def test_matrices_that_cannot_be_undone_are_left_out():
    """A rate of 2/3 leaves nothing of three classes: rows that are all alike bring the search there."""
    X, y = np.ones((7, 2)), np.array([2, 2, 2, 1, 0, 0, 0])
    model = QuickClassifier(n_estimators=6, n_jobs=1, random_state=1).fit(X, y)
    least = np.linalg.svd(model.noise_.matrices, compute_uv=False).min()
    assert least > 1e-8
    np.testing.assert_array_equal(loads(dumps(model)).predict_proba(X), model.predict_proba(X))
    even = make_even_matrix(3, 2 / 3 - 1e-7)
    assert transitions._can_be_undone(even)
    assert not transitions._can_be_undone(make_even_matrix(3, 2 / 3 - 1e-9))
    assert not transitions._can_be_undone(np.full((3, 3), 1 / 3))
