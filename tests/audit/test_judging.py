"""How likely labels are wrong and how many: each step against sums that are written out."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

from helpers.small_audits import draw_rows, make_matrices, make_pairs, make_sources
from helpers.tickets import spread_noise
from untwist.audit import judging
from untwist.audit.judging import (
    Judgement,
    bound_share,
    find_unseen_share,
    judge_alike,
    judge_by_source,
    move_interval,
    settle_reviewed,
    widen_interval,
)
from untwist.data.reviews import ReviewedRows
from untwist.data.sources import LabelSources
from untwist.noise.two_classes import TwoClassNoise

# ---- intervals ----


def test_an_interval_moves_by_its_odds_and_keeps_the_share_inside():
    for share, other in ((0.3, (0.1, 0.02, 0.5)), (0.9, (0.5, 0.4, 0.45)), (0.05, (0.2, 0.25, 0.3))):
        factors = [(one / (1 - one)) / (other[0] / (1 - other[0])) for one in other[1:]]
        ends = [factor * share / (1 - share) / (1 + factor * share / (1 - share)) for factor in factors]
        low, high = move_interval(share, other)
        assert (low, high) == pytest.approx((min(ends[0], share), max(ends[1], share)))


def test_an_interval_of_none_or_of_all_is_moved_too():
    assert move_interval(0.5, (1.0, 0.9, 1.0)) == (pytest.approx(0.0, abs=1e-9), 0.5)
    assert move_interval(0.5, (0.0, 0.0, 0.1)) == (0.5, pytest.approx(1.0))
    for share in (0.0, 1.0):
        low, high = move_interval(share, (0.3, 0.2, 0.4))
        assert (low, high) == (pytest.approx(share), pytest.approx(share))
        assert low <= share <= high


def test_a_widened_interval_may_have_all_of_the_doubted_part_wrong():
    assert widen_interval((0.1, 0.05, 0.2), 0.0) == (0.1, 0.05, 0.2)
    assert widen_interval((0.1, 0.05, 0.2), 0.25) == pytest.approx((0.1, 0.05, 0.25 + 0.75 * 0.2))
    assert widen_interval((0.1, 0.05, 0.2), 1.0) == (0.1, 0.05, 1.0)


@pytest.mark.parametrize("n_rows", [1, 2.5, 10, 1000])
def test_what_no_row_shows_would_show_in_nineteen_of_twenty_cases(n_rows):
    assert (1 - find_unseen_share(n_rows)) ** n_rows == pytest.approx(0.05)
    assert find_unseen_share(0) == find_unseen_share(0.3) == find_unseen_share(1) == pytest.approx(0.95)


def bound_mean_slowly(mean, pooled, shares, intervals, mass):
    """Errors of all together, no more than any of three limits, and of each by itself, added as independent ones."""
    part = [one / sum(mass) for one in mass]
    ends = move_interval(mean, pooled)
    limits = []
    for side in (0, 1):
        own = [p * abs(interval[side] - share) for p, share, interval in zip(part, shares, intervals, strict=True)]
        together = min(abs(ends[side] - mean), abs(pooled[1 + side] - pooled[0]), sum(own))
        limits.append(math.sqrt(together**2 + sum(one**2 for one in own)))
    return max(0.0, mean - limits[0]), min(1.0, mean + limits[1])


@pytest.mark.parametrize("pooled", [(0.2, 0.15, 0.3), (0.02, 0.01, 0.9), (0.6, 0.1, 0.61)])
@pytest.mark.parametrize("mean", [0.01, 0.3, 0.95])
def test_the_interval_of_a_mean_is_that_of_its_definition(mean, pooled):
    rng = np.random.default_rng(0)
    for width in (0.01, 0.3):
        shares, mass = rng.uniform(0.1, 0.6, 4), rng.uniform(1, 9, 4)
        intervals = np.column_stack([shares - width * shares, shares + width])
        found = judging._bound_mean(mean, pooled, shares, intervals, mass)
        assert found == pytest.approx(bound_mean_slowly(mean, pooled, shares, intervals, mass))
    assert judging._bound_mean(0.2, pooled, shares, intervals, np.zeros(4)) == (0.2, 0.2)


# ---- labels that are all alike ----


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_that_are_alike_are_judged_by_the_noise_of_all(n_classes):
    noise = make_pairs() if n_classes == 2 else make_matrices(3)
    posterior, labels, weight, _ = draw_rows(n_classes)
    judged = judge_alike(noise, posterior, labels, weight, rows_per_case=3.0)
    assert judged.noise is noise
    np.testing.assert_array_equal(judged.wrong, noise.probability_wrong(posterior, labels))
    np.testing.assert_array_equal(judged.predicted, noise.clean(posterior).argmax(axis=1))
    for label, found in enumerate([judged.share, *judged.share_by_label], start=-1):
        here = weight if label < 0 else weight * (labels == label)
        share, low, high = noise.share_wrong(posterior, labels, here)
        assert found == (share, low, max(high, find_unseen_share(np.count_nonzero(here) / 3.0)))


def test_rates_that_are_given_leave_nothing_open():
    posterior, labels, weight, _ = draw_rows(2)
    share, low, high = judge_alike(TwoClassNoise.from_rates((0.1, 0.2)), posterior, labels, weight).share
    assert low == share == high


@pytest.mark.parametrize("is_changed", [False, True])
def test_what_was_reviewed_is_known_and_thins_out_the_rest(is_changed):
    is_reviewed = np.array([True, False, False, True, False])
    given, decided = np.array([1, 1, 0, 1, 1]), np.array([1, 1, 0, 0, 1])
    weight = np.array([1.0, 2.0, 1.0, 3.0, 1.0])
    review = ReviewedRows(is_reviewed, given.astype(np.uint32), decided.astype(np.uint32), True)
    wrong, predicted = np.array([0.9, 0.8, 0.1, 0.7, 0.6]), np.array([0, 0, 0, 1, 0])
    before = Judgement(make_pairs(), predicted, wrong, (0.4, 0.2, 0.8), [(0.1, 0.0, 0.2), (0.5, 0.4, 0.6)])
    after = settle_reviewed(before, review, decided if is_changed else given, weight)
    # Row 3, of weight 3, was found wrong: it counts until its label is changed.
    assert after.wrong.tolist() == [0.0, 0.8, 0.1, 0.0 if is_changed else 1.0, 0.6]
    assert after.predicted.tolist() == [1, 0, 0, 0, 0]
    zeros, ones = before.share_by_label
    if is_changed:
        assert after.share == pytest.approx(tuple(4 / 8 * one for one in before.share))
        assert after.share_by_label[0] == pytest.approx(tuple(1 / 4 * one for one in zeros))
        assert after.share_by_label[1] == pytest.approx(tuple(3 / 4 * one for one in ones))
    else:
        assert after.share == pytest.approx(tuple(3 / 8 + 4 / 8 * one for one in before.share))
        assert after.share_by_label[0] == pytest.approx(zeros)
        assert after.share_by_label[1] == pytest.approx(tuple(3 / 7 + 3 / 7 * one for one in ones))


# ---- labels by their sources ----


@pytest.mark.parametrize("has_noise", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_by_source_have_the_noise_of_their_definition(n_classes, has_noise):
    noise = make_pairs(has_noise) if n_classes == 2 else make_matrices(3, has_noise)
    by_source = make_sources(noise, n_classes)
    posterior, labels, weight, rng = draw_rows(n_classes)
    who = rng.integers(-1, 3, 60)
    votes = LabelSources(np.arange(3), who, np.arange(60))
    judged = judge_by_source(by_source, votes, posterior, labels, weight, rows_per_case=2.0)
    truth = by_source.find_truth(posterior, labels, who)
    wrong = np.array([1 - truth[row, labels[row]] for row in range(60)])
    np.testing.assert_allclose(judged.wrong, wrong, atol=1e-12)
    by_features = noise.clean(posterior).argmax(axis=1)
    np.testing.assert_array_equal(judged.predicted, np.where(wrong > 0.5, truth.argmax(axis=1), by_features))
    share = sum(weight * wrong) / sum(weight)
    pooled = judged.noise.share_wrong(posterior, labels, weight)
    low, high = bound_mean_slowly(share, pooled, by_source.shares, by_source.intervals, by_source.counts)
    if not has_noise:
        low, high = 0.0, max(high, pooled[2])
    high = max(high, find_unseen_share(np.count_nonzero(weight) / 2.0))
    assert judged.share == pytest.approx((share, low, high))
    assert bound_share(share, by_source, judged.noise, posterior, labels, weight, 2.0) == pytest.approx((low, high))
    for label, found in enumerate(judged.share_by_label):
        here = weight * (labels == label)
        mean = sum(here * wrong) / sum(here)
        ends = move_interval(mean, judged.share)
        unseen = find_unseen_share(np.count_nonzero(here) / 2.0)
        assert found == pytest.approx((mean, ends[0], max(ends[1], unseen)))
    # The noise of all labels together: by class, the mean over sources, each by what it has labelled of the class.
    assert judged.noise.found == has_noise
    shares, intervals = [], []
    for k in range(n_classes):
        mass = [sum(truth[row, k] * weight[row] for row in range(60) if who[row] == one) for one in range(3)]
        own = [1 - by_source.matrices[one, k, k] for one in range(3)]
        shares.append(sum(m * one for m, one in zip(mass, own, strict=True)) / sum(mass))
        if n_classes == 2:
            of_class = [(noise.rate_neg, *noise.interval_neg), (noise.rate_pos, *noise.interval_pos)][k]
        else:
            of_class = (noise.class_shares[k], *noise.class_intervals[k])
        low, high = bound_mean_slowly(shares[k], of_class, own, by_source.class_intervals[:, k], mass)
        intervals.append((low, high) if has_noise else (0.0, max(high, of_class[2])))
    if n_classes == 2:
        assert (judged.noise.rate_neg, judged.noise.rate_pos) == pytest.approx(tuple(shares))
        assert judged.noise.interval_neg == pytest.approx(intervals[0])
        assert judged.noise.interval_pos == pytest.approx(intervals[1])
        return
    np.testing.assert_allclose(judged.noise.class_shares, shares)
    np.testing.assert_allclose(judged.noise.class_intervals, intervals)
    mass = [sum(truth[row, k] * weight[row] for row in range(60) if who[row] >= 0) for k in range(n_classes)]
    mean = sum(m * one for m, one in zip(mass, shares, strict=True)) / sum(mass)
    assert judged.noise.share == pytest.approx(mean)
    of_all = noise.share, *noise.interval
    expected = bound_mean_slowly(mean, of_all, by_source.shares, by_source.intervals, by_source.counts)
    assert judged.noise.interval == pytest.approx(expected)


def test_a_source_that_stands_out_or_labels_that_differ_are_evidence_of_noise():
    posterior, labels, weight, _ = draw_rows(2)
    silent = make_sources(make_pairs(found=False), 2)
    loud = replace(silent, stands_out=np.array([False, True, False]))
    alone = LabelSources(np.arange(3), np.arange(60) % 3, np.arange(60))
    assert not judge_by_source(silent, alone, posterior, labels, weight).noise.found
    assert judge_by_source(loud, alone, posterior, labels, weight).noise.found
    posterior[1::2] = posterior[::2]
    of_two = LabelSources(np.arange(3), np.arange(60) % 3, np.arange(60) // 2)
    labels[1::2] = labels[::2]
    assert not judge_by_source(silent, of_two, posterior, labels, weight).noise.found
    labels[1] = 1 - labels[1]
    assert judge_by_source(silent, of_two, posterior, labels, weight).noise.found
    assert not judging._has_disagreeing_labels(np.zeros(0, dtype=int), np.zeros(0, dtype=int))


def test_several_labels_of_an_item_say_what_its_rows_look_like():
    noise = TwoClassNoise.from_rates((0.1, 0.1))
    by_source = replace(make_sources(noise, 2), matrices=np.array([spread_noise(2, rate) for rate in (0.05, 0.2, 0.3)]))
    posterior = np.repeat([[0.45, 0.55]], 4, axis=0)
    votes = LabelSources(np.arange(3), np.array([0, 1, 2, 0]), np.array([0, 0, 0, 1]))
    judged = judge_by_source(by_source, votes, posterior, np.array([0, 0, 1, 0]), np.ones(4))
    # Both good sources say 0 of the first item; the label of the other item stands alone, and is likelier right.
    assert judged.predicted.tolist() == [0, 0, 0, 1]
    clean = expit(noise.clean_log_odds(logit(0.55)))
    odds = (1 - clean) * 0.95 * 0.8 * 0.3 / (clean * 0.05 * 0.2 * 0.7)
    np.testing.assert_allclose(judged.wrong[:3], [1 / (1 + odds), 1 / (1 + odds), odds / (1 + odds)])
