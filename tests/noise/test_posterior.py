"""From scores to posteriors: every formula by hand, where labels are noisy, weighed or turned over."""

import numpy as np
import pytest
from scipy.special import expit, logit

from helpers.shared_models import draw_matrices
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss, LogLoss
from untwist.noise.posterior import TIE_BREAK, Posterior, find_posterior_floor, turns_labels_over
from untwist.noise.two_classes import TwoClassNoise
from untwist.theory.several_classes import SoftmaxLink

SCORES = np.array([-60.0, -2.0, -0.3, 0.0, 0.7, 3.0, 60.0])
TABLE = np.array([[0.5, -1.0, 0.2], [60.0, -60.0, 0.0], [-0.4, 0.3, 0.9]])
LINK = ClippedLink(AlphaLoss(2.0))
FLOOR = 0.01


def test_a_floor_is_that_of_the_rule_of_succession():
    assert find_posterior_floor(8) == 0.1
    assert find_posterior_floor(0) == 0.5


def test_only_a_negative_alpha_turns_labels_over():
    assert turns_labels_over(ClippedLink(AlphaLoss(-2.0)))
    assert not turns_labels_over(LINK)
    assert not turns_labels_over(ClippedLink(LogLoss()))
    assert not turns_labels_over(SoftmaxLink(AlphaLoss(2.0)))


def test_twisted_posteriors_of_two_classes_stay_within_the_floor():
    posterior = Posterior(LINK, FLOOR, np.ones(2))
    expected = np.clip(LINK.inverse(SCORES), 0.01, 0.99)
    assert expected.min() == 0.01
    np.testing.assert_array_equal(posterior.twisted(SCORES), np.column_stack([1.0 - expected, expected]))
    np.testing.assert_allclose(posterior.twisted_of_labels(SCORES)[:, 1], expected)


@pytest.mark.parametrize("alpha", [2.0, -2.0])
def test_without_noise_scores_are_decisions_turned_over_by_a_negative_alpha(alpha):
    sign = np.sign(alpha)
    link = ClippedLink(AlphaLoss(alpha))
    posterior = Posterior(link, FLOOR, np.ones(2))
    np.testing.assert_array_equal(posterior.decision(SCORES), sign * SCORES)
    expected = np.clip(link.tilted(SCORES), 0.01, 0.99)
    np.testing.assert_array_equal(posterior.clean(posterior.decision(SCORES))[:, 1], expected)
    np.testing.assert_array_equal(posterior.choose(sign * SCORES), sign * SCORES > 0)


def test_noise_is_undone_of_labels_without_their_weights():
    noise = TwoClassNoise.from_rates((0.1, 0.2))
    posterior = Posterior(LINK, FLOOR, np.array([1.0, np.exp(0.4)]), noise)
    decision = posterior.decision(SCORES)
    for score, found in zip(SCORES, decision, strict=True):
        twisted = logit(min(max(float(LINK.inverse(score)), 0.01), 0.99))
        expected = noise.clean_log_odds(twisted + 1e-6 * score / (1 + abs(score)) - 0.4) + 0.4
        assert found == pytest.approx(float(expected), abs=1e-12)
    np.testing.assert_allclose(posterior.clean(decision)[:, 1], np.clip(expit(decision), 0.01, 0.99))
    # Beyond the clip of the link scores still tell rows apart.
    beyond = posterior.decision(np.array([50.0, 60.0]))
    assert beyond[0] < beyond[1] < beyond[0] + 2 * TIE_BREAK


def normalise_slowly(posterior, scores):
    rows = []
    for row, of_row in zip(posterior, scores, strict=True):
        kept = [min(max(p, 0.01), 0.99) + 1e-6 * 0.01 * s / (1 + abs(s)) for p, s in zip(row, of_row, strict=True)]
        rows.append(np.array(kept) / sum(kept))
    return rows


@pytest.mark.parametrize("alpha", [2.0, -2.0])
def test_classes_against_the_rest_are_scaled_to_sum_to_one(alpha):
    link = ClippedLink(AlphaLoss(alpha))
    posterior = Posterior(link, FLOOR, np.ones(3))
    np.testing.assert_allclose(posterior.twisted(TABLE), normalise_slowly(link.inverse(TABLE), TABLE), rtol=1e-14)
    decision = posterior.decision(TABLE)
    np.testing.assert_array_equal(decision, np.sign(alpha) * TABLE)
    expected = normalise_slowly(link.tilted(TABLE), decision)
    np.testing.assert_allclose(posterior.clean(decision), expected, rtol=1e-14)
    np.testing.assert_array_equal(posterior.choose(TABLE), [0, 0, 2])
    np.testing.assert_array_equal(posterior.choose(np.zeros((2, 3))), [0, 0])


def test_weights_of_classes_are_taken_off_and_a_class_of_weight_0_keeps_what_it_has():
    link = SoftmaxLink(AlphaLoss(2.0))
    plain = Posterior(link, FLOOR, np.ones(3))
    given = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    assert plain.unweigh(given) is given
    weighed = Posterior(link, FLOOR, np.array([2.0, 0.0, 0.5]))
    expected = np.array([[0.1, 0.3, 1.0], [0.3, 0.3, 0.2]])
    np.testing.assert_allclose(weighed.unweigh(given), expected / expected.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(weighed.twisted_of_labels(TABLE), weighed.unweigh(plain.twisted(TABLE)))


def test_weights_of_two_classes_shift_log_odds_and_none_is_taken_off_where_a_class_weighs_nothing():
    weighed = Posterior(LINK, FLOOR, np.array([0.5, 2.0]))
    assert weighed.shift == pytest.approx(np.log(4.0))
    labels = weighed.twisted_of_labels(SCORES)
    np.testing.assert_allclose(labels, weighed.unweigh(weighed.twisted(SCORES)))
    np.testing.assert_allclose(labels.sum(axis=1), 1.0)
    assert Posterior(LINK, FLOOR, np.array([0.0, 2.0])).shift == Posterior(LINK, FLOOR, np.ones(3)).shift == 0.0


def test_matrices_are_undone_without_the_weights_which_come_back_afterwards():
    noise = draw_matrices(3, 2, np.random.default_rng(0))
    weights = np.array([2.0, 0.0, 0.5])
    posterior = Posterior(SoftmaxLink(AlphaLoss(2.0)), FLOOR, weights, noise)
    decision = posterior.decision(TABLE)
    expected = noise.clean(posterior.twisted_of_labels(TABLE)) * [2.0, 1.0, 0.5]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(decision), expected)
    np.testing.assert_allclose(posterior.clean(decision), normalise_slowly(expected, decision))
