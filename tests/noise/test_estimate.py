"""What every estimate of two classes says: in words, as a matrix and as HTML."""

import numpy as np
import pytest

from untwist.display import write_noise
from untwist.noise.estimate import RatesEstimate, describe_range
from untwist.noise.several_classes import SeveralClassesNoise

FOUND = RatesEstimate(rate_neg=0.1, rate_pos=0.3, interval_neg=(0.05, 0.2), interval_pos=(0.25, 0.4), found=True)
MATRIX = np.array([[0.9, 0.1], [0.3, 0.7]])


def test_the_matrix_has_a_row_for_each_true_class():
    np.testing.assert_allclose(FOUND.matrix, MATRIX)


def test_words_have_the_names_of_two_classes():
    words = "wrong labels: of what is truly ham 10.0% (5.0% to 20.0%), of what is truly spam 30.0% (25.0% to 40.0%)"
    assert FOUND.describe(["ham", "spam"]) == words
    without = "wrong labels: 10.0% (5.0% to 20.0%) of the negatives, 30.0% (25.0% to 40.0%) of the positives"
    assert str(FOUND) == without


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        (((0.0, 0.02), (0.01, 0.049)), "no sign of noise that is the same everywhere (rates from 0% to 5% would fit)"),
        (((0.0, 0.004), (0.0, 0.002)), "no sign of noise that is the same everywhere (rates below 1% would fit)"),
        (((0.02, 0.03), (0.01, 0.05)), "hard rows or wrong labels: rates from 1% to 5% would fit"),
        (((0.1, 0.3), (0.2, 0.25)), "hard rows or wrong labels: rates from 10% to 30% would fit"),
    ],
)
def test_words_where_nothing_was_found(ends, words):
    estimate = RatesEstimate(False, 0.01, 0.02, *ends)
    assert str(estimate) == words
    assert estimate.describe(["ham", "spam"]) == words


def test_a_range_never_excludes_every_rate():
    assert describe_range(0.0, 0.005) == "rates from 0% to 0%"
    assert describe_range(0.0, 0.0049) == "rates below 1%"


def test_html_has_the_words_and_the_rates_of_each_class():
    names = ["ham", "spam"]
    rates = [(0.1, 0.05, 0.2), (0.3, 0.25, 0.4)]
    assert FOUND.write_html(names) == write_noise(FOUND.describe(names), names, rates, MATRIX)
    assert FOUND._repr_html_() == FOUND.write_html(["negatives", "positives"])


def test_html_of_several_classes_has_their_shares_and_the_matrix():
    matrix = np.array([[0.8, 0.2, 0.0], [0.0, 1.0, 0.0], [0.1, 0.0, 0.9]])
    noise = SeveralClassesNoise.from_matrix(matrix)
    rates = [(share, share, share) for share in (1.0 - np.diag(matrix)).tolist()]
    assert noise.write_html(["a", "b", "c"]) == write_noise(noise.describe("abc"), ["a", "b", "c"], rates, noise.matrix)
