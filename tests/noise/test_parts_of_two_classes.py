"""What rates, intervals and tables of two classes are made of, beside slow twins and written-down numbers."""

import numpy as np
import pytest
from scipy.special import expit, logit

from untwist.noise.two_classes import (
    CONFIDENCE,
    ERROR_OF_CURVE,
    TOLERATED_SHORTFALL,
    TwoClassNoise,
    _condition_on_noise,
    _find_interval,
    _find_slack,
    _reach_fitting,
    _widen,
    split_at_half,
)


def spread_weight(rates, weights):
    """Return pieces (from, to, weight) over which the weight of each rate is spread: halfway to its neighbours."""
    distinct = sorted(set(rates))
    pieces = []
    for place, rate in enumerate(distinct):
        low = (rate + distinct[place - 1]) / 2 if place else rate
        high = (rate + distinct[place + 1]) / 2 if place + 1 < len(distinct) else rate
        if place and place + 1 == len(distinct):
            high = rate + (rate - low)
        if len(distinct) > 1 and distinct[0] == 0:
            # No noise is a case of its own, and what is between it and the next rate belongs to that.
            low, high = (0.0, 0.0) if rate == 0 else (0.0 if place == 1 else low, high)
        pieces.append((low, high, sum(w for r, w in zip(rates, weights, strict=True) if r == rate)))
    return pieces


def find_quantile(pieces, share):
    """Return the point up to which a share of the weight lies."""
    wanted = share * sum(weight for *_, weight in pieces)
    for low, high, weight in pieces:
        if wanted <= weight:
            return low + (high - low) * wanted / weight
        wanted -= weight
    return pieces[-1][1]


@pytest.mark.parametrize("first", [0.0, 0.03])
@pytest.mark.parametrize("n_rates", [1, 2, 3, 8])
def test_intervals_hold_the_middle_of_the_weight_as_a_slow_twin_says(first, n_rates):
    rng = np.random.default_rng(n_rates)
    for _ in range(10):
        distinct = first + np.append(0.0, np.cumsum(rng.uniform(0.01, 0.05, n_rates - 1)))
        rates = rng.permutation(np.append(distinct, rng.choice(distinct, 3)))
        weights = rng.dirichlet(np.full(len(rates), 0.7)) + 1e-6
        pieces = spread_weight(rates.tolist(), weights.tolist())
        low, high = (find_quantile(pieces, share) for share in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
        found = _find_interval(rates, weights, found=True)
        assert found == pytest.approx((max(0.0, low - ERROR_OF_CURVE), high), abs=1e-12)
        assert _find_interval(rates, weights, found=False) == (0.0, found[1])


def test_intervals_of_two_rates_are_written_down():
    low, high = _find_interval(np.array([0.1, 0.3]), np.array([0.5, 0.5]), found=True)
    assert (low, high) == pytest.approx((0.1 + 0.05 * 0.1 - ERROR_OF_CURVE, 0.4 - 0.05 * 0.2))
    assert _find_interval(np.array([0.0, 0.2]), np.array([0.99, 0.01]), found=True) == (0.0, 0.0)
    assert _find_interval(np.array([0.2, 0.98]), np.array([0.1, 0.9]), found=True)[1] == 1.0  # No rate is above 1.


def test_given_noise_pairs_without_any_count_for_nothing():
    weights = np.array([0.4, 0.1, 0.2, 0.3])
    grid = np.array([[0.0, 0.1, 0.0, 0.2], [0.0, 0.0, 0.3, 0.1]])
    np.testing.assert_allclose(_condition_on_noise(weights, grid), np.array([0.0, 1.0, 2.0, 3.0]) / 6.0)
    np.testing.assert_array_equal(_condition_on_noise(weights, np.zeros((2, 4))), weights)


def test_an_interval_reaches_what_fits_about_as_well_as_the_best():
    values = np.array([0.1, 0.3, 0.5])
    edge = np.array([0.0, TOLERATED_SHORTFALL, TOLERATED_SHORTFALL + 0.1])
    assert _reach_fitting((0.05, 0.2), values, None) == (0.05, 0.2)
    assert _reach_fitting((0.05, 0.2), values, edge) == (0.05, 0.3)
    assert _reach_fitting((0.05, 0.4), values, edge) == (0.05, 0.4)
    assert _reach_fitting((0.0, 0.0), values, np.full(3, 99.0)) == (0.0, 0.0)


def test_a_rate_may_be_off_by_half_a_step_of_its_grid():
    assert _find_slack(np.array([0.3, 0.1, 0.2, 0.6, 0.1])) == pytest.approx(0.05)
    assert _find_slack(np.array([0.1, 0.1])) == ERROR_OF_CURVE
    assert _find_slack(np.array([0.1, 0.1 + ERROR_OF_CURVE])) == ERROR_OF_CURVE
    assert _find_slack(np.array([0.1, 0.1 + 4 * ERROR_OF_CURVE])) == pytest.approx(2 * ERROR_OF_CURVE)


@pytest.mark.parametrize(("rate", "expected"), [(0.1, (0.1, 0.4)), (0.3, (0.2, 0.4)), (0.5, (0.2, 0.5))])
def test_an_interval_holds_its_rate(rate, expected):
    assert _widen((0.2, 0.4), rate) == expected


def test_log_odds_are_split_at_half_into_two_smooth_parts():
    log_odds = np.array([-1e4, -3.0, 0.0, 3.0, 1e4])
    below, above = split_at_half(log_odds)
    np.testing.assert_allclose(below + above, log_odds, atol=1e-9)
    np.testing.assert_allclose(below, -above[::-1])
    np.testing.assert_allclose(above[[0, 2, 4]], [-0.5, 0.0, 1e4 - 0.5], atol=1e-4)
    assert above[3] == pytest.approx((2.0 + 10**0.5) / 2)


def test_the_matrix_of_rates_has_a_row_for_each_true_class():
    np.testing.assert_allclose(TwoClassNoise.from_rates((0.1, 0.3)).matrix, [[0.9, 0.1], [0.3, 0.7]])


@pytest.mark.parametrize("rates", [(0.1, 0.3), (0.0, 0.2), (0.25, 0.0), (0.0, 0.0)])
def test_the_chance_of_a_label_to_be_wrong_is_that_of_bayes(rates):
    noise = TwoClassNoise.from_rates(rates)
    of_negative, of_positive = noise._wrong_tables
    rate_neg, rate_pos = rates
    clean = noise._tabulate_log_odds()[0]
    positive, negative = expit(clean), expit(-clean)
    bears_positive = positive * (1 - rate_pos) + negative * rate_neg
    bears_negative = positive * rate_pos + negative * (1 - rate_neg)
    inner = np.abs(clean) < 15  # Beyond, what divides is kept away from 0.
    np.testing.assert_allclose(of_negative[0][inner], (positive * rate_pos / bears_negative)[inner], rtol=1e-6)
    np.testing.assert_allclose(of_positive[0][inner], (negative * rate_neg / bears_positive)[inner], rtol=1e-6)
    for table in (of_negative, of_positive):
        assert np.isfinite(table).all()
        assert (table >= 0).all()
        assert (table <= 1 + 1e-9).all()


def test_clean_log_odds_of_known_rates_undo_the_twist():
    noise = TwoClassNoise.from_rates((0.1, 0.3))
    clean = np.linspace(0.05, 0.95, 19)
    twisted = 0.1 + 0.6 * clean
    np.testing.assert_allclose(noise._untwist(logit(twisted), np.zeros(1, dtype=int))[0], logit(clean), atol=0.02)
    assert (np.diff(noise._tabulate_log_odds()) >= 0).all()
