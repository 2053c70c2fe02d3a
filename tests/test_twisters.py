"""Class noise: exactly as many flips as asked, nothing else touched, and tied to the twist of posteriors."""

import numpy as np
import pandas as pd
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


def test_a_series_stays_a_series_and_a_seed_will_do():
    y = pd.Series([0, 1, 1, 0], index=list("abcd"), name="label")
    _, twisted, flipped = ClassNoise(0.5).twist(None, y, 0)
    assert twisted.index.equals(y.index)
    assert twisted.name == "label"
    assert (twisted.to_numpy() != y.to_numpy()).nonzero()[0].tolist() == flipped.tolist()
    _, again, _ = ClassNoise(0.5).twist(None, y, np.random.default_rng(0))
    assert again.equals(twisted)


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
    with pytest.raises(ValueError, match=r"two classes to flip between and none missing, got \[0 1 2\]"):
        ClassNoise(0.1).twist(None, [0, 1, 2], np.random.default_rng(0))
    with pytest.raises(ValueError, match="none missing"):
        ClassNoise(0.1).twist(None, [0.0, 1.0, np.nan], np.random.default_rng(0))
    with pytest.raises(ValueError, match="as many rows, got 2 and 3"):
        ClassNoise(0.1).twist(np.zeros((2, 1)), [0, 1, 0], np.random.default_rng(0))
