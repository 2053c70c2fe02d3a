"""The prior of sources against slow twins, and what it must make of sources that are alike, bad or hardly known."""

from itertools import product
from math import exp, log

import numpy as np
import pytest
from scipy.special import betaln, logsumexp

from untwist.noise import hierarchy
from untwist.noise.hierarchy import LEVELS, SourcePrior, learn_prior


def draw_counts(rates, n_labels, n_classes, rng):
    """How many labels of each class sources give that err at these rates, evenly over all other labels."""
    counts = []
    for rate in rates:
        matrix = np.full((n_classes, n_classes), rate / (n_classes - 1))
        np.fill_diagonal(matrix, 1.0 - rate)
        counts.append([rng.multinomial(n_labels, row) for row in matrix])
    return np.array(counts, dtype=float)


def draw_from_urn(n_wrong, n_right, wrong, right):
    """The log-probability of labels drawn from Polya's urn, one after the other."""
    total = 0.0
    for drawn in range(n_wrong):
        total += log((wrong + drawn) / (wrong + right + drawn))
    for drawn in range(n_right):
        total += log((right + drawn) / (wrong + right + n_wrong + drawn))
    return total


def weigh_slowly(counts, levels):
    """Every hypothesis in its turn, source by source and level by level."""
    n_sources, n_classes = counts.shape[:2]
    flat = [level * (1 - level) for level in LEVELS]
    middles = [level for level in LEVELS if level <= hierarchy.HIGHEST_USUAL_LEVEL]
    rated, weights, unusual = [], [], []
    for concentration, middle, spread, share in product(
        hierarchy.CONCENTRATIONS, middles, hierarchy.SPREADS, hierarchy.UNUSUAL_SHARES
    ):
        bell = [exp(-((log(v / (1 - v)) - log(middle / (1 - middle))) ** 2) / spread**2 / 2) for v in LEVELS]
        value = -middle / hierarchy.USUAL_LEVEL
        of_sources, of_unusual = [], []
        for source in range(n_sources):
            likely = []
            for level in levels:
                rate = 0.0
                for k in range(n_classes):
                    right = int(counts[source, k, k])
                    wrong = int(counts[source, k].sum()) - right
                    rate += draw_from_urn(wrong, right, concentration * level[k], concentration * (1 - level[k]))
                likely.append(exp(rate))
            by_bell = [(1 - share) * b / sum(bell) * p for b, p in zip(bell, likely, strict=True)]
            by_flat = [share * f / sum(flat) * p for f, p in zip(flat, likely, strict=True)]
            both = sum(by_bell) + sum(by_flat)
            value += log(both)
            of_sources.append([(b + f) / both for b, f in zip(by_bell, by_flat, strict=True)])
            of_unusual.append(sum(by_flat) / both)
        rated.append(value)
        weights.append(of_sources)
        unusual.append(of_unusual)
    posterior = np.exp(np.array(rated) - max(rated))
    posterior /= posterior.sum()
    return np.einsum("h,hsj->sj", posterior, weights), posterior @ np.array(unusual)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_levels_of_sources_are_those_of_the_slow_twin(n_classes, monkeypatch):
    monkeypatch.setattr(hierarchy, "CONCENTRATIONS", np.array([8.0, 128.0]))
    counts = draw_counts([0.02, 0.05, 0.5], 12, n_classes, np.random.default_rng(0))
    levels = hierarchy._shape_levels(np.full((n_classes, n_classes), 0.05) + np.eye(n_classes) * 0.8)
    learned = hierarchy._weigh_hypotheses(counts, levels)
    weights, unusual = weigh_slowly(counts, levels)
    np.testing.assert_allclose(learned.weights.sum(axis=0), weights, atol=1e-9)
    np.testing.assert_allclose(learned.unusual, unusual, atol=1e-9)


def test_the_split_of_wrong_labels_is_rated_like_draws_from_an_urn():
    counts = np.array([[[9, 2, 1], [0, 5, 3], [0, 0, 4]]], dtype=float)
    split = 4.0 * np.array([[0.0, 0.25, 0.75], [0.5, 0.0, 0.5], [0.1, 0.9, 0.0]])
    expected = draw_from_urn(2, 1, 1.0, 3.0) + draw_from_urn(0, 3, 2.0, 2.0)
    assert hierarchy._rate_splits(counts, split) == pytest.approx(expected)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_sources_are_drawn_towards_each_other_and_a_bad_one_is_not(n_classes):
    rng = np.random.default_rng(1)
    rates = [0.45, *[0.03] * 9]
    counts = draw_counts(rates, 60, n_classes, rng)
    prior = learn_prior(counts, counts.sum(axis=0) / counts.sum(axis=(0, 2))[:, None])
    plain = 1.0 - np.einsum("skk->s", counts) / counts.sum(axis=(1, 2))
    drawn = 1.0 - np.einsum("skk->sk", prior.find_matrices(counts)).mean(axis=1)
    assert drawn[1:].std() < 0.8 * plain[1:].std()
    assert abs(drawn[0] - plain[0]) < 0.05
    assert prior.unusual[0] > 5 * prior.unusual[1:].max()
    assert (1.0 - np.diag(prior.common)).mean() < 0.1


def test_a_source_without_labels_is_like_the_others():
    counts = draw_counts([0.1] * 8, 100, 2, np.random.default_rng(2))
    counts = np.concatenate([counts, np.zeros((1, 2, 2))])
    prior = learn_prior(counts, np.array([[0.9, 0.1], [0.1, 0.9]]))
    assert 1.0 - prior.find_matrices(counts)[8, 0, 0] == pytest.approx(0.1, abs=0.05)


def test_of_many_sources_the_first_ones_stand_for_all():
    rng = np.random.default_rng(3)
    counts = draw_counts(rng.beta(2, 30, 400), 30, 2, rng)
    pooled = np.array([[0.94, 0.06], [0.06, 0.94]])
    many, few = learn_prior(counts, pooled), learn_prior(counts[: hierarchy.MOST_TELLING_SOURCES], pooled)
    np.testing.assert_allclose(many.common, few.common)
    np.testing.assert_allclose(many.weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(many.find_matrices(counts)[:300], few.find_matrices(counts[:300]), atol=2e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_is_drawn_is_the_mode_of_what_is_rated(n_classes):
    rng = np.random.default_rng(4)
    counts = draw_counts([0.3, 0.05], 20, n_classes, rng) + 1.0
    prior = learn_prior(counts, counts.sum(axis=0) / counts.sum(axis=(0, 2))[:, None])
    matrices = prior.find_matrices(counts)

    def rate(each):
        return prior.rate_matrices(each) + float((counts * np.log(each)).sum())

    best = rate(matrices)
    for _ in range(200):
        moved = matrices * np.exp(rng.normal(scale=0.05, size=matrices.shape))
        assert rate(moved / moved.sum(axis=2, keepdims=True)) < best + 1e-9


def test_the_spread_of_kinds_is_the_covariance_of_their_means():
    counts = draw_counts([0.3, 0.05], 15, 2, np.random.default_rng(5))
    prior = learn_prior(counts, np.array([[0.8, 0.2], [0.2, 0.8]]))
    for source in range(2):
        means = []
        for level, concentration in zip(prior.levels, prior.concentrations, strict=True):
            n_wrong = counts[source].sum(axis=1) - np.diag(counts[source])
            means.append((n_wrong + concentration * level) / (counts[source].sum(axis=1) + concentration))
        expected = np.cov(np.array(means).T, aweights=prior.weights[source], ddof=0)
        np.testing.assert_allclose(prior.find_spread(counts)[source], expected, atol=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1e-9, 1.0, 1e3])
def test_logarithms_are_added_as_scipy_does(scale):
    logarithms = scale * np.random.default_rng(0).normal(size=(4, 30, 3)) - 1e4
    assert hierarchy._add_logarithms(logarithms) == logsumexp(logarithms)


def test_a_prior_keeps_what_it_was_made_of():
    prior = learn_prior(np.ones((3, 2, 2)), np.eye(2))
    assert isinstance(prior, SourcePrior)
    assert np.isfinite(prior.evidence)
    np.testing.assert_allclose(prior.common.sum(axis=1), 1.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_sources", [3, hierarchy.MOST_TELLING_SOURCES + 3])
def test_many_labels_that_no_close_following_explains_leave_no_gaps(n_sources):
    # Half of the classes are right throughout and half wrong throughout, which a high concentration all but excludes.
    n_classes = 10
    always = np.repeat([0.0, 1.0], n_classes // 2)[:, None]
    one = 1e6 * np.where(np.eye(n_classes) == 1, 1.0 - always, always / (n_classes - 1))
    counts = np.repeat(one[None], n_sources, axis=0)
    prior = learn_prior(counts, np.full((n_classes, n_classes), 0.05) + 0.5 * np.eye(n_classes))
    assert prior.weights.sum(axis=1) == pytest.approx(1.0)
    assert np.isfinite(prior.evidence)
    assert prior.find_matrices(counts)[0].diagonal() == pytest.approx(1.0 - always[:, 0], abs=2e-3)


# ---- evidence ----


def rate_hypotheses(counts, levels):
    """By hypothesis its log-probability before any label, and that of each source's labels under it."""
    n_classes = counts.shape[1]
    middles = [level for level in LEVELS if level <= 0.5]
    odds = LEVELS / (1 - LEVELS)
    prior_of_middle = np.exp(-np.array(middles) / 0.05)
    # The four spreads of a middle are equally likely, as are concentrations and shares of unusual sources.
    prior_of_middle /= 4 * prior_of_middle.sum()
    flat = LEVELS * (1 - LEVELS) / (LEVELS * (1 - LEVELS)).sum()
    rated = []
    for concentration, (index, middle), spread, share in product(
        hierarchy.CONCENTRATIONS, enumerate(middles), (0.3, 0.6, 1.0, 1.6), (0.01, 0.05, 0.15)
    ):
        bell = np.exp(-(np.log(odds * (1 - middle) / middle) ** 2) / spread**2 / 2)
        of_level = (1 - share) * bell / bell.sum() + share * flat
        likely = []
        for source in counts:
            by_level = np.zeros(len(levels))
            for k in range(n_classes):
                n_right, n_wrong = source[k, k], source[k].sum() - source[k, k]
                wrong, right = concentration * levels[:, k], concentration * (1 - levels[:, k])
                by_level += betaln(n_wrong + wrong, n_right + right) - betaln(wrong, right)
            likely.append(logsumexp(by_level, b=of_level))
        prior = log(prior_of_middle[index]) - log(len(hierarchy.CONCENTRATIONS) * 3)
        rated.append((prior, likely))
    return rated


def test_the_evidence_is_the_probability_of_all_counts_over_all_hypotheses(monkeypatch):
    monkeypatch.setattr(hierarchy, "CONCENTRATIONS", np.array([8.0, 128.0]))
    counts = draw_counts([0.02, 0.05, 0.5], 12, 2, np.random.default_rng(0))
    levels = hierarchy._shape_levels(np.array([[0.9, 0.1], [0.3, 0.7]]))
    learned = hierarchy._weigh_hypotheses(counts, levels)
    rated = rate_hypotheses(counts, levels)
    assert learned.evidence == pytest.approx(logsumexp([prior + sum(likely) for prior, likely in rated]))
    # Where hypotheses are given, each source is weighed by them alone.
    given = learned.hypotheses
    kept = np.where(
        (given.max(axis=(1, 2)) > 1e-3)[:, None, None] & (given.max(axis=(0, 2)) > 1e-3)[None, :, None], given, 0.0
    )
    kept = (kept / kept.sum()).ravel()
    again = hierarchy._weigh_hypotheses(counts, levels, given)
    by_source = np.array([likely for _, likely in rated])
    expected = sum(logsumexp(one, b=kept) for one in by_source.T)
    assert again.evidence == pytest.approx(expected)
    np.testing.assert_allclose(again.weights.sum(axis=(0, 2)), 1.0)


def test_levels_of_classes_move_alike_in_log_odds_and_not_too_far():
    common = np.array([[0.9, 0.1], [0.3, 0.7]])
    found = hierarchy._shape_levels(common)
    uneven = np.log([0.1 / 0.9, 0.3 / 0.7]) - log(0.2 / 0.8)
    expected = np.log(LEVELS / (1 - LEVELS))[:, None] + uneven
    np.testing.assert_allclose(np.log(found / (1 - found)), expected)
    extreme = hierarchy._shape_levels(np.array([[1.0, 0.0], [0.9, 0.1]]))
    assert np.log(extreme / (1 - extreme))[0, 0] == pytest.approx(log(LEVELS[0] / (1 - LEVELS[0])) - 3.0)
    np.testing.assert_allclose([LEVELS[0], LEVELS[-1], len(LEVELS)], [0.002, 0.95, 24])


def test_the_split_of_wrong_labels_leaves_out_the_right_ones_and_no_label_is_impossible():
    common = np.array([[0.9, 0.08, 0.02], [0.0, 1.0, 0.0], [0.2, 0.0, 0.8]])
    expected = [[0.0, 0.8, 0.2], [0.5, 0.0, 0.5], [0.2 / 0.201, 0.001 / 0.201, 0.0]]
    np.testing.assert_allclose(hierarchy._find_split(common), expected)
    np.testing.assert_allclose(hierarchy.keep_entries(np.array([[3.0, 1.0], [5.0, 0.0]]))[0], [0.75, 0.25])
    assert hierarchy.keep_entries(np.array([[1.0, 0.0]]))[0, 1] == pytest.approx(1e-4 / 1.0001)


def test_matrices_are_counts_with_what_the_prior_adds():
    counts = draw_counts([0.3, 0.05], 15, 3, np.random.default_rng(6))
    prior = learn_prior(counts, counts.sum(axis=0) / counts.sum(axis=(0, 2))[:, None])
    found = prior.find_matrices(counts)
    np.testing.assert_allclose(prior.split.sum(axis=1), 4.0)
    for s, k in product(range(2), range(3)):
        added = [
            w * c * level[k] for w, c, level in zip(prior.weights[s], prior.concentrations, prior.levels, strict=True)
        ]
        n_wrong = counts[s, k].sum() - counts[s, k, k]
        wrong = (n_wrong + sum(added)) / (counts[s, k].sum() + prior.weights[s] @ prior.concentrations)
        assert 1.0 - found[s, k, k] == pytest.approx(wrong)
        for other in {0, 1, 2} - {k}:
            part = (counts[s, k, other] + prior.split[k, other]) / (n_wrong + 4.0)
            assert found[s, k, other] == pytest.approx(wrong * part)


def test_the_common_matrix_is_that_of_usual_sources_drawn_towards_all_labels_by_two():
    counts = draw_counts([0.1] * 4, 40, 2, np.random.default_rng(7))
    pooled = np.array([[0.6, 0.4], [0.2, 0.8]])
    prior = learn_prior(counts, pooled)
    # It does not move any more: from it, sources that count for what they allow make the same.
    again = learn_prior(counts, pooled, prior)
    np.testing.assert_allclose(again.common, prior.common, atol=2e-2)
    empty = learn_prior(np.zeros((2, 2, 2)), pooled)
    # Without labels all classes keep the unevenness of the pooled matrix, at the level of a careful source.
    assert 1.0 - empty.common[0, 0] > 1.0 - empty.common[1, 1]
    assert (1.0 - np.diag(empty.common)).mean() < 0.3
