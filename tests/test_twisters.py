"""Class noise: exactly as many flips as asked, nothing else touched, and tied to the twist of posteriors."""

import numpy as np
import pytest

from untwist.twisters import ClassNoise


@pytest.mark.parametrize(
    ("rate", "n", "count"), [(0.0, 10, 0), (0.3, 10, 3), (0.15, 681, 103), (0.301, 10, 4), (1.0, 7, 7)]
)
def test_flips_exactly_the_ceiling(rate, n, count):
    y = np.arange(n) % 2
    X = np.random.default_rng(1).normal(size=(n, 2))
    X_twisted, twisted, flipped = ClassNoise(rate).twist(X, y, np.random.default_rng(0))
    assert X_twisted is X
    np.testing.assert_array_equal(np.flatnonzero(twisted != y), flipped)
    assert len(flipped) == count


def test_labels_of_any_kind_and_the_input_is_left_alone():
    y = np.array(["spam", "ham", "ham", "spam"])
    before = y.copy()
    _, twisted, flipped = ClassNoise(0.5).twist(None, y, np.random.default_rng(0))
    np.testing.assert_array_equal(y, before)
    assert set(twisted) <= {"spam", "ham"}
    assert (twisted[flipped] != y[flipped]).all()


def test_posterior_is_what_the_sample_shows():
    rng = np.random.default_rng(0)
    eta, n = 0.8, 200_000
    y = (rng.random(n) < eta).astype(int)
    twister = ClassNoise(0.2)
    _, twisted, _ = twister.twist(None, y, rng)
    assert twisted.mean() == pytest.approx(twister.posterior(eta), abs=4 * (0.25 / n) ** 0.5)


def test_bad_input():
    with pytest.raises(ValueError, match=r"rate must lie in \[0, 1\], got 1.2"):
        ClassNoise(1.2)
    with pytest.raises(ValueError, match="two classes to flip between, got 3"):
        ClassNoise(0.1).twist(None, [0, 1, 2], np.random.default_rng(0))
