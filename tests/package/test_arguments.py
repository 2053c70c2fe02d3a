"""The checks of arguments: what they take, what they refuse, and in what words."""

import math

import numpy as np
import pytest

from untwist.arguments import (
    check_count,
    check_fraction,
    check_non_negative,
    check_numbers,
    check_positive,
    check_probabilities,
    check_real,
    check_share,
    normalise_weights,
)


def test_numbers_become_floats_of_any_shape():
    assert check_numbers("x", [[1, 2]]).dtype == np.float64
    assert check_numbers("x", 3).shape == ()
    assert math.isnan(check_numbers("x", math.nan))


@pytest.mark.parametrize("bad", [None, "one", [1, [2]], object(), 1j, [0.5 + 1j], np.ones(2) * 1j])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(ValueError, match="x must be numbers"):
        check_numbers("x", bad)


def test_masked_numbers_are_refused():
    assert check_numbers("x", np.ma.array([1, 2], mask=[0, 0])).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="x must be numbers, none masked"):
        check_numbers("x", np.ma.array([1, 2], mask=[0, 1]))


def test_messages_do_not_print_whole_arrays():
    many = np.full(900, "many")
    for check in (check_numbers, check_real, check_count):
        with pytest.raises(ValueError, match="x must be") as caught:
            check("x", many)
        assert len(str(caught.value)) < 150


def test_both_ends_are_probabilities_and_the_first_that_is_none_is_named():
    assert check_probabilities("u", [0, 1]).tolist() == [0.0, 1.0]
    for bad in (-1e-9, 1 + 1e-9, math.nan):
        with pytest.raises(ValueError, match=rf"u must lie in \[0, 1\], got {bad}"):
            check_probabilities("u", [0.5, bad, 7.0])


def test_weights_are_scaled_to_sum_to_one():
    assert normalise_weights(None, 4).tolist() == [0.25] * 4
    np.testing.assert_allclose(normalise_weights([1.0, 0.0, 3.0], 3), [0.25, 0.0, 0.75])
    np.testing.assert_allclose(normalise_weights([1e308, 1e308], 2), [0.5, 0.5])


@pytest.mark.parametrize(
    ("weights", "size", "message"),
    [
        (None, 0, "at least one point"),
        ([1.0, 2.0], 3, r"3 numbers, one per point, got shape \(2,\)"),
        ([1.0, -1.0], 2, "non-negative"),
        ([0.0, 0.0], 2, "not all zero"),
        ([1.0, math.inf], 2, "finite"),
        ([1.0, math.nan], 2, "finite"),
    ],
)
def test_what_is_no_distribution_is_refused(weights, size, message):
    with pytest.raises(ValueError, match=message):
        normalise_weights(weights, size)


def test_numbers_at_the_bounds():
    assert check_real("x", 2, low=2.0) == 2.0
    assert check_real("x", math.inf, low=0.0, open_low=True) == math.inf
    assert check_real("x", -math.inf) == -math.inf
    assert check_positive("x", 5e-324) == 5e-324
    assert check_non_negative("x", 0) == 0.0
    assert [check_fraction("x", 0), check_fraction("x", 1), check_share("x", 1)] == [0.0, 1.0, 1.0]
    assert [check_count("k", 1), check_count("k", 0, low=0), check_count("k", np.int8(3), high=3)] == [1, 0, 3]
    assert check_count("k", 10**30) == 2**31 - 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_real("x", True), "x must be a number, got True"),
        (lambda: check_real("x", np.True_), "x must be a number, got"),
        (lambda: check_real("x", "1"), "x must be a number, got '1'"),
        (lambda: check_real("x", math.nan), "x must be a number, got nan"),
        (lambda: check_real("x", 10**400), "x must fit a float64, got 1000"),
        (lambda: check_real("x", 1.9, low=2.0), "x must be a number >= 2, got 1.9"),
        (lambda: check_real("x", 2.0, low=2.0, open_low=True), "x must be a number > 2, got 2.0"),
        (lambda: check_positive("x", 0.0), "x must be a number > 0"),
        (lambda: check_positive("x", math.inf), "x must be finite"),
        (lambda: check_non_negative("x", -5e-324), "x must be a number >= 0"),
        (lambda: check_non_negative("x", math.inf), "x must be finite"),
        (lambda: check_fraction("x", -1e-9), r"x must lie in \[0, 1\]"),
        (lambda: check_fraction("x", 1.1), r"x must lie in \[0, 1\]"),
        (lambda: check_share("x", 0), "x must be a number > 0"),
        (lambda: check_share("x", 1.1), r"x must lie in \(0, 1\]"),
        (lambda: check_count("k", 0), "k must be an integer >= 1"),
        (lambda: check_count("k", True), "k must be an integer >= 1"),
        (lambda: check_count("k", 2.0), "k must be an integer >= 1"),
        (lambda: check_count("k", 4, high=3), "k must be at most 3"),
    ],
)
def test_what_is_out_of_bounds_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
