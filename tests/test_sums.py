"""Sums that do not depend on the order of their terms, beside those of fractions, which have no rounding."""

import math
from fractions import Fraction

import numpy as np
import pytest

from untwist.sums import add_up, add_up_by_group, average, is_broadcast, shorten_broadcast

#: Terms of every kind, made from a generator.
TERMS = {
    "fractions": lambda rng: rng.random(500),
    "all scales": lambda rng: rng.choice([-1.0, 1.0], 500) * 10.0 ** rng.uniform(-300, 300, 500),
    "cancelling": lambda rng: np.concatenate([big := rng.normal(size=200) * 1e17, -big, rng.random(100)]),
    "whole": lambda rng: rng.integers(-9, 10, 500) * 1.0,
    "whole and too large": lambda rng: rng.integers(1, 9, 500) * 2.0**53,
    "subnormal": lambda rng: rng.integers(0, 9, 500) * 5e-324,
    "one": lambda rng: rng.random(1),
    "none": lambda rng: np.zeros(0),
}


@pytest.mark.parametrize("kind", TERMS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_sum_is_the_exact_one_rounded_once_in_any_order(kind, seed):
    rng = np.random.default_rng(seed)
    terms = TERMS[kind](rng)
    exact = float(sum(map(Fraction, terms.tolist())))
    assert add_up(terms) == exact
    assert add_up(rng.permutation(terms)) == exact
    assert add_up(np.append(terms, np.zeros(7))) == exact


@pytest.mark.parametrize("kind", [kind for kind in TERMS if kind != "cancelling"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sums_of_groups_are_the_same_in_any_order(kind, seed):
    rng = np.random.default_rng(seed)
    terms = TERMS[kind](rng)
    groups = rng.integers(0, 5, len(terms))
    sums = add_up_by_group(terms, groups, 6)
    assert sums.shape == (6,)
    assert sums[5] == 0.0
    for group in range(5):
        here = list(map(Fraction, terms[groups == group].tolist()))
        # Each of up to 500 additions is rounded.
        assert abs(Fraction(sums[group]) - sum(here)) <= 500 * Fraction(2) ** -53 * sum(map(abs, here))
    order = rng.permutation(len(terms))
    np.testing.assert_array_equal(add_up_by_group(terms[order], groups[order], 6), sums)
    longer = np.append(terms, np.zeros(7)), np.append(groups, np.arange(7) % 5)
    np.testing.assert_array_equal(add_up_by_group(*longer, 6), sums)


def test_what_plain_sums_get_wrong():
    terms = np.random.default_rng(0).random(500)
    orders = [np.random.default_rng(seed).permutation(terms) for seed in range(20)]
    assert len({float(one.sum()) for one in orders}) > 1
    assert len({add_up(one) for one in orders}) == 1


def test_sums_too_large_on_the_way_or_in_the_end():
    largest = np.finfo(float).max
    assert add_up(np.array([largest, largest, -largest, 0.5])) == largest
    assert add_up(np.array([largest, 0.5, largest])) == math.inf
    assert add_up(np.array([-largest, -0.5, -largest])) == -math.inf


def test_blocks_of_terms_are_put_together():
    terms = np.random.default_rng(0).random(200_000)
    assert add_up(terms) == math.fsum(terms.tolist())
    assert add_up(terms.reshape(400, 500)) == math.fsum(terms.tolist())


def test_truth_values_are_counted():
    assert add_up(np.array([True, False, True])) == 2.0
    assert add_up_by_group(np.array([True, False, True]), np.array([1, 1, 0]), 2).tolist() == [1.0, 1.0]


def test_an_average_is_by_weight():
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=300), rng.random(300)
    order = rng.permutation(300)
    assert average(values[order], weight[order]) == average(values, weight)
    assert average(values, weight) == pytest.approx(np.average(values, weights=weight), rel=1e-12)
    assert average(values > 0, np.where(values > 0, weight, 0.0)) == 1.0
    assert average(values, np.zeros(300)) == 0.0


@pytest.mark.parametrize("number", [0.0, 1.0, 3.0, 0.1, 2.0**53, 5e-324])
@pytest.mark.parametrize("count", [1, 2, 999])
def test_a_number_that_is_broadcast_without_memory_adds_up_as_copies_of_it_do(number, count):
    repeated = np.broadcast_to(number, count)
    copies = np.full(count, number)
    groups = np.arange(count) % 3
    assert add_up(repeated) == add_up(copies)
    np.testing.assert_array_equal(add_up_by_group(repeated, groups, 4), add_up_by_group(copies, groups, 4))


def test_only_one_number_in_memory_is_broadcast():
    assert shorten_broadcast(np.broadcast_to(2.0, 5)).tolist() == [2.0]
    for terms in (np.ones(5), np.ones(1), np.zeros(0), np.broadcast_to(1.0, 0), np.ones((2, 2)), np.array(1.0)):
        assert not is_broadcast(terms)
        assert shorten_broadcast(terms) is terms
    assert add_up(np.array(3.0)) == 3.0
    assert add_up(np.broadcast_to(np.array([1.0, 2.0]), (3, 2))) == 9.0
