"""What is believed of the noise, for any number of classes: one name for two and for several."""

import numpy as np
import pytest

from untwist.noise import NoiseModel
from untwist.noise.rates import estimate_rates
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.noise.transitions import estimate_transitions
from untwist.noise.two_classes import TwoClassNoise

RATES = [[0.9, 0.1], [0.3, 0.7]]
MATRIX = [[0.8, 0.2, 0.0], [0.0, 1.0, 0.0], [0.1, 0.0, 0.9]]


def draw(matrix, n=400, seed=0):
    """Clean posteriors, those that labels follow, and labels."""
    rng = np.random.default_rng(seed)
    clean = rng.dirichlet(np.full(len(matrix), 0.3), n)
    twisted = clean @ np.array(matrix)
    return clean, twisted, (rng.random((n, 1)) > twisted.cumsum(axis=1)).sum(axis=1)


@pytest.mark.parametrize(("known", "matrix"), [((0.1, 0.3), RATES), (RATES, RATES), (MATRIX, MATRIX)], ids=str)
def test_noise_that_is_given_is_undone_and_done_again(known, matrix):
    noise = NoiseModel.given(known)
    clean, twisted, _ = draw(matrix)
    assert noise.is_given
    assert noise.is_undone
    np.testing.assert_allclose(noise.matrix, matrix)
    np.testing.assert_allclose(noise.clean(twisted), clean, atol=3e-3)
    np.testing.assert_allclose(noise.noisy(clean), twisted)
    assert noise.share == pytest.approx(1.0 - np.diag(matrix).mean())
    assert noise.learn(twisted, np.zeros(400, int), np.ones(400, int)) is noise


@pytest.mark.parametrize(
    "known", [(0.1,), (0.1, 0.2, 0.3), 0.1, [[0.9, 0.1]], [[0.4, 0.6], [0.0, 1.0]], (0.6, 0.5)], ids=str
)
def test_noise_that_cannot_be_is_refused(known):
    with pytest.raises(ValueError, match="must"):
        NoiseModel.given(known)


def test_rates_that_are_known_are_two():
    _, twisted, labels = draw(RATES)
    with pytest.raises(ValueError, match="known must be two rates, or a matrix of two rows and columns"):
        NoiseModel.estimate(twisted, labels, known=(0.1, 0.2, 0.3))


def test_an_estimate_is_that_of_two_classes_or_of_several():
    _, twisted, labels = draw(RATES)
    weight = np.arange(400) % 3
    two = NoiseModel.estimate(twisted, labels, weight, rows_per_case=2.0)
    same = estimate_rates(twisted[:, 1], labels, sample_weight=weight, rows_per_case=2.0)
    assert isinstance(two, TwoClassNoise)
    np.testing.assert_array_equal(two.weights, same.weights)
    assert (two.share, *two.interval) == two.share_wrong(twisted, labels, weight / 2.0)
    np.testing.assert_allclose(NoiseModel.estimate(twisted, labels, known=RATES).matrix, RATES)
    _, twisted, labels = draw(MATRIX)
    several = NoiseModel.estimate(twisted, labels, weight)
    assert isinstance(several, SeveralClassesNoise)
    np.testing.assert_array_equal(several.matrices, estimate_transitions(twisted, labels, weight).matrices)
    with pytest.raises(ValueError, match="a column per class"):
        NoiseModel.estimate(twisted[:, 0], labels)


@pytest.mark.parametrize("matrix", [RATES, MATRIX], ids=["two", "three"])
def test_what_is_known_of_a_row_agrees(matrix):
    _, twisted, labels = draw(matrix)
    noise = NoiseModel.estimate(twisted, labels)
    truth, wrong = noise.find_truth(twisted, labels), noise.probability_wrong(twisted, labels)
    np.testing.assert_allclose(truth.sum(axis=1), 1.0)
    np.testing.assert_allclose(1.0 - truth[np.arange(400), labels], wrong, atol=1e-9)
    assert noise.share_wrong(twisted, labels, 1.0)[0] == pytest.approx(wrong.mean(), abs=2e-3)
    worth = noise.worth(twisted, labels)
    assert ((worth >= 1.0) & (worth <= 5.0)).all()
    opened = noise.drop_upper_limits()
    assert opened.interval[1] == 1.0
    assert all(high == 1.0 for _, _, high in opened.list_class_shares())


def test_log_odds_of_two_classes_are_those_of_the_posterior_whatever_holds_the_matrix():
    log_odds = np.linspace(-1.5, 0.5, 9)
    by_rates = TwoClassNoise.from_rates((0.1, 0.3)).clean_log_odds(log_odds)
    np.testing.assert_allclose(SeveralClassesNoise.from_matrix(RATES).clean_log_odds(log_odds), by_rates, atol=5e-3)


def test_plots_know_how_likely_each_rate_is_or_only_intervals():
    _, twisted, labels = draw(RATES)
    noise = NoiseModel.estimate(twisted, labels)
    weighed = noise.weigh_rates()
    for rates, weights, one in zip(weighed.rates, weighed.weights, (noise.rates_neg, noise.rates_pos), strict=True):
        assert (np.diff(rates) > 0).all()
        assert set(rates) <= set(one)
        assert weights.sum() == pytest.approx(1.0)
    assert weighed.chance_of_noise == noise.chance_of_noise
    assert NoiseModel.given(MATRIX).weigh_rates() is None
