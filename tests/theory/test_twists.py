"""Twists and their undoing, against the definitions."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from helpers import reference
from untwist.losses import AlphaLoss
from untwist.twists import (
    ClassConditionalTwist,
    SymmetricNoise,
    alpha_star,
    best_fixed_alpha,
    binary_entropy,
    constructive_alpha,
    cross_entropy,
    cross_entropy_gain,
    cross_entropy_slope,
    entropy,
    is_bayes_blunting,
    kl_divergence,
)


def test_noise_and_its_inverse():
    eta = np.linspace(0, 1, 11)
    np.testing.assert_allclose(SymmetricNoise(0.3)(eta), 0.7 * eta + 0.3 * (1 - eta))
    noise = ClassConditionalTwist(rate_neg=0.1, rate_pos=0.2)
    np.testing.assert_allclose(noise(eta), 0.7 * eta + 0.1)
    np.testing.assert_allclose(noise.inverse(noise(eta)), eta, atol=1e-15)
    assert noise.inverse(0.02) == 0.0  # No clean posterior twists to it.
    with pytest.raises(ValueError, match="add up to 1"):
        SymmetricNoise(0.5).inverse(0.5)
    with pytest.raises(ValueError, match=r"rate must lie in \[0, 1\]"):
        SymmetricNoise(-0.1)
    with pytest.raises(ValueError, match="rate_neg must be a number, got nan"):
        ClassConditionalTwist(rate_neg=math.nan, rate_pos=0.1)


def test_the_rates_of_a_twist_are_given_by_name():
    with pytest.raises(TypeError):
        ClassConditionalTwist(0.1, 0.2)  # which is which would be a guess


#: (eta_clean, eta_twisted, alpha*): every edge case of section 2 of the mathematics.
EDGE_CASES = [
    (0.1, 0.3, math.log(9) / math.log(7 / 3)),
    (0.3, 0.7, -1.0),
    (0.9, 0.5, math.inf),
    (0.1, 0.5, math.inf),
    (0.0, 0.5, math.inf),
    (0.5, 0.2, 0.0),
    (0.5, 1.0, 0.0),
    (0.5, 0.5, 1.0),
    (0.3, 0.0, 0.0),
    (0.3, 1.0, 0.0),
    (0.0, 0.0, 1.0),
    (1.0, 1.0, 1.0),
    (0.0, 1.0, -1.0),
    (1.0, 0.0, -1.0),
    (1.0, 0.7, math.inf),
    (1.0, 0.3, -math.inf),
    (0.0, 0.3, math.inf),
    (0.25, 0.25, 1.0),
]


@pytest.mark.parametrize(("clean", "twisted", "expected"), EDGE_CASES)
def test_alpha_star_and_that_it_undoes_the_twist(clean, twisted, expected):
    alpha = float(alpha_star(clean, twisted))
    assert alpha == pytest.approx(expected)
    low, high = AlphaLoss(alpha).tilted_set(twisted)
    assert low - 1e-12 <= clean <= high + 1e-12


def test_alpha_star_is_vectorised():
    clean, twisted, expected = np.array(EDGE_CASES).T
    np.testing.assert_allclose(alpha_star(clean, twisted), expected)
    assert alpha_star(clean[:, None], twisted[None, :]).shape == (18, 18)


def test_bayes_blunting_pointwise():
    clean = np.array([0.1, 0.1, 0.9, 0.3, 0.5, 0.3])
    twisted = np.array([0.3, 0.05, 0.5, 0.7, 0.5, 0.3])
    np.testing.assert_array_equal(is_bayes_blunting(clean, twisted), [True, False, True, False, True, True])
    np.testing.assert_array_equal(
        is_bayes_blunting(clean, twisted, strict=True), [True, False, True, False, False, False]
    )


@pytest.mark.parametrize("alpha", [-3.0, -1e-9, 0.0, 1e-9, 0.4, 1.0, 1 + 1e-12, 2.5, 40.0])
def test_cross_entropy_entropy_and_divergence_by_definition(alpha):
    rng = np.random.default_rng(0)
    clean, twisted, weights = rng.random(9), rng.random(9), rng.random(9)
    weights[0] = 0.0
    expected = reference.cross_entropy(clean, twisted, alpha, weights)
    assert cross_entropy(clean, twisted, alpha, weights) == pytest.approx(float(expected), rel=1e-12)
    average = sum(w * reference.binary_entropy(u) for w, u in zip(weights, clean, strict=True)) / sum(weights)
    assert entropy(clean, weights) == pytest.approx(float(average), rel=1e-13)
    assert kl_divergence(clean, twisted, alpha, weights) == pytest.approx(float(expected - average), rel=1e-10)
    gain = cross_entropy(clean, twisted, 1.0) - cross_entropy(clean, twisted, alpha)
    assert cross_entropy_gain(clean, twisted, alpha).mean() == pytest.approx(gain, abs=1e-12)


def test_one_alpha_per_point_reaches_zero_divergence():
    rng = np.random.default_rng(1)
    clean, twisted = rng.uniform(0.01, 0.99, 50), rng.uniform(0.01, 0.99, 50)
    assert kl_divergence(clean, twisted, alpha_star(clean, twisted)) == pytest.approx(0, abs=1e-14)


def test_extreme_posteriors_count_as_they_should():
    assert cross_entropy([1.0, 0.0], [1.0, 0.0], 2.0) == 0
    assert cross_entropy([0.5], [1.0], 2.0) == math.inf
    assert cross_entropy([0.5], [0.3], -math.inf) == math.inf
    assert cross_entropy([0.0, 1.0], [0.3, 0.6], math.inf) == 0
    assert cross_entropy([0.5], [1.0], 0.0) == pytest.approx(math.log(2))
    assert cross_entropy([0.5, 1.0], [1.0, 1.0], 2.0, [0.0, 1.0]) == 0  # A point of weight 0 is absent.
    assert kl_divergence([0.3], [0.1], 1000.0) == pytest.approx(0.3 * 1000 * math.log(9) - entropy([0.3]))
    assert binary_entropy([0.0, 1.0]).tolist() == [0.0, 0.0]


def test_slope_is_the_derivative():
    rng = np.random.default_rng(2)
    clean, twisted = rng.random(20), rng.uniform(0.01, 0.99, 20)
    for alpha in (-2.0, 0.3, 1.0, 5.0):
        difference = cross_entropy(clean, twisted, alpha + 1e-5) - cross_entropy(clean, twisted, alpha - 1e-5)
        assert cross_entropy_slope(clean, twisted, alpha) == pytest.approx(difference / 2e-5, rel=1e-6)
    with pytest.raises(ValueError, match="strictly inside"):
        cross_entropy_slope([0.5], [1.0], 1.0)


@pytest.mark.parametrize("seed", range(20))
def test_best_fixed_alpha_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    clean, twisted = rng.random(n), np.clip(rng.random(n), 1e-6, 1 - 1e-6)
    weights = rng.random(n) * (rng.random(n) < 0.8) + (np.arange(n) == 0)
    found = best_fixed_alpha(clean, twisted, weights)
    brute = minimize_scalar(lambda a: cross_entropy(clean, twisted, a, weights), bracket=(-1, 1), tol=1e-12)
    assert cross_entropy(clean, twisted, found, weights) <= brute.fun + 1e-12
    assert abs(cross_entropy_slope(clean, twisted, found, weights)) < 1e-12 * (1 + np.abs(np.log(twisted)).max())


@pytest.mark.parametrize(
    ("clean", "twisted", "expected"),
    [
        ([0.3, 0.7], [0.5, 0.5], 1.0),  # The cross-entropy is flat.
        ([0.0, 1.0], [0.2, 0.9], math.inf),  # The sign of Y*z is certain.
        ([1.0, 0.0], [0.2, 0.9], -math.inf),
        ([0.4, 0.5], [1.0, 0.9], 0.0),  # The first point costs infinitely much under any other alpha.
        ([0.0, 1.0], [1.0, 0.0], -math.inf),  # The posteriors are certain and opposite.
        ([0.5], [0.9], 0.0),
        ([0.0, 0.3], [1.0, 0.5], -1.0),  # The first point fixes the sign, and the second has no say.
        ([1.0, 0.3], [1.0, 0.5], 1.0),
    ],
)
def test_best_fixed_alpha_at_the_edges(clean, twisted, expected):
    found = best_fixed_alpha(clean, twisted)
    if expected == -math.inf and set(twisted) == {0.0, 1.0}:
        assert found < 0
        assert cross_entropy(clean, twisted, found) == 0
    else:
        assert found == pytest.approx(expected, abs=1e-12)


def test_certain_points_only_fix_the_sign():
    clean, twisted = np.array([1.0, 0.2]), np.array([1.0, 0.9])  # The second point alone wants a negative alpha.
    assert best_fixed_alpha(clean[1:], twisted[1:]) < 0
    found = best_fixed_alpha(clean, twisted)
    assert 0 < found < 1e-300
    assert cross_entropy(clean, twisted, found) == pytest.approx(0.5 * math.log(2))


def test_best_fixed_alpha_where_one_point_hardly_disagrees():
    """The root lies far out, and is found from both sides."""
    clean, twisted = np.array([1.0, 1.0 - 2**-53]), np.array([1.0 - 1e-9, 0.5 + 2**-53])
    found = best_fixed_alpha(clean, twisted)
    assert 1e15 < found < math.inf
    assert best_fixed_alpha(1.0 - clean, twisted) == pytest.approx(-found)


@pytest.mark.parametrize("sign", [1, -1])
def test_constructive_alpha_by_definition(sign):
    rng = np.random.default_rng(3)
    clean, weights = rng.random(40), rng.random(40)
    z = sign * (np.log(clean / (1 - clean)) + rng.normal(size=40))
    B, share = 1.5, weights / weights.sum()
    found = constructive_alpha(clean, 1 / (1 + np.exp(-z)), B, weights)
    inside = np.abs(z) <= B
    coverage = share[inside].sum()
    edge = np.sum(share[inside] * (2 * clean - 1)[inside] * z[inside]) / coverage / B
    assert (np.sign(edge), found.coverage) == (sign, pytest.approx(coverage))
    assert found.edge == found.edge_used == pytest.approx(edge)
    assert found.alpha == pytest.approx(math.log((1 + edge) / (1 - edge)) / B)
    assert found.curvature == pytest.approx(B**2 * (1 - edge**2) / 4)
    lost = clean * np.maximum(0, -sign * z) + (1 - clean) * np.maximum(0, sign * z)
    outside = np.sum((share * lost)[~inside]) / share[~inside].sum() / B
    assert found.edge_outside == pytest.approx(outside)
    size, q = abs(edge), (1 + edge) / 2
    bound = coverage * binary_entropy(q)
    bound += (1 - coverage) * (outside * math.log((1 + size) / (1 - size)) + (1 - size) / (1 + size))
    assert found.bound == pytest.approx(bound)


def test_constructive_alpha_at_the_edges():
    plain = constructive_alpha([0.1, 0.2], [0.3, 0.4], B=1.0)
    absent = constructive_alpha([0.1, 0.2, 0.3], [0.3, 0.4, 0.01], B=1.0, weights=[1, 1, 0])
    assert absent == plain
    no_edge = constructive_alpha([0.5, 1.0], [0.5, 1.0], B=1.0)
    assert (no_edge.alpha, no_edge.edge_outside) == (0.0, 0.0)
    assert no_edge.cross_entropy == pytest.approx(math.log(2))
    assert no_edge.bound >= no_edge.cross_entropy
    certain = constructive_alpha([0.0, 1.0], [1 / (1 + math.e), math.e / (1 + math.e)], B=1.0)
    assert certain.bound == pytest.approx(0, abs=1e-12)


def test_best_fixed_alpha_is_scale_free():
    """Posteriors very close to 1/2: alpha is huge and still found."""
    clean = np.array([0.2, 0.7])
    twisted = 0.5 + 1e-9 * (clean - 0.5)
    found = best_fixed_alpha(clean, twisted)
    assert found > 1e8
    assert kl_divergence(clean, twisted, found) < kl_divergence(clean, twisted, 0.99 * found)
    assert kl_divergence(clean, twisted, found) < kl_divergence(clean, twisted, 1.01 * found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: alpha_star(1.2, 0.5), "eta_clean must lie"),
        (lambda: cross_entropy([0.5], [2.0], 1.0), "eta_twisted must lie"),
        (lambda: cross_entropy([], [], 1.0), "at least one point"),
        (lambda: alpha_star([0.9, 0.8], [0.6, 0.6, 0.7]), r"must match, got shapes \(2,\) and \(3,\)"),
        (lambda: alpha_star(None, 0.7), "eta_clean must be numbers, got None"),
        (lambda: cross_entropy([0.5], [0.5], [1.0, 2.0]), "alpha must be one number or 1"),
        (lambda: kl_divergence([0.5], [0.5], [[1.0]]), "alpha must be one number or 1"),
        (lambda: entropy([[0.5]]), "one-dimensional"),
        (lambda: entropy([0.5, 0.5], [1.0]), "weights must be 2 numbers"),
        (lambda: cross_entropy([0.5], [0.5], math.nan), "alpha must be a number, got nan"),
        (lambda: entropy([0.5, 0.5], [-1.0, 1.0]), "weights must be"),
        (lambda: entropy([0.5, 0.5], [0.0, 0.0]), "weights must be"),
        (lambda: cross_entropy([[0.5]], [[0.5]], 1.0), "one-dimensional"),
        (lambda: constructive_alpha([0.5], [0.5], B=0.0), "B must be a number > 0"),
        (lambda: constructive_alpha([0.5], [0.9], B=0.1), "leave some support"),
        (lambda: constructive_alpha([0.5], [0.6], B=1.0, estimated_edge=1.5), "estimated_edge must lie"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
