"""How many rows count as one case, where those of a group err together."""

import numpy as np
import pytest

from untwist.noise.dependence import find_rows_per_case
from untwist.noise.rates import estimate_rates
from untwist.noise.transitions import estimate_transitions


def measure_slowly(posterior, labels, weight, groups):
    """The sum over all pairs of rows of a group of the products of residuals, over that of rows with themselves."""
    copies = np.repeat(np.arange(len(labels)), weight.astype(int))
    residuals = (np.eye(posterior.shape[1])[labels] - posterior)[copies]
    is_together = groups[copies][:, None] == groups[copies]
    return (residuals @ residuals.T)[is_together].sum() / (residuals**2).sum()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_it_is_the_design_effect(n_classes):
    rng = np.random.default_rng(n_classes)
    groups = rng.integers(12, size=90)
    labels = np.where(rng.random(90) < 0.6, groups % n_classes, rng.integers(n_classes, size=90))
    posterior, weight = rng.dirichlet(np.ones(n_classes), 90), rng.integers(0, 3, 90).astype(float)
    found = find_rows_per_case(posterior, labels, weight, groups)
    assert found == pytest.approx(measure_slowly(posterior, labels, weight, groups))
    assert find_rows_per_case(posterior, labels, weight / 900, groups) < found  # Shares do not count as copies.
    order = rng.permutation(90)
    assert find_rows_per_case(posterior[order], labels[order], weight[order], groups[order]) == found


def test_copies_count_as_one_and_independent_rows_as_they_are():
    rng = np.random.default_rng(0)
    labels, of_second = rng.integers(2, size=300), rng.random(300)
    posterior = np.column_stack([1 - of_second, of_second])
    copies = np.repeat(np.arange(300), 7)
    assert find_rows_per_case(posterior[copies], labels[copies], np.ones(2100), copies) == pytest.approx(7.0)
    labels = (rng.random(2100) < np.repeat(of_second, 7)).astype(int)
    assert find_rows_per_case(posterior[copies], labels, np.ones(2100), copies) == pytest.approx(1.0, abs=0.15)
    assert find_rows_per_case(posterior, labels[:300], np.ones(300)) == 1.0
    assert find_rows_per_case(np.eye(2)[[0, 1]], np.array([0, 1]), np.ones(2), np.zeros(2)) == 1.0  # Nothing is missed.


def test_copies_that_count_as_one_tell_what_their_originals_do():
    rng = np.random.default_rng(0)
    of_second = rng.choice([0.15, 0.85], 400) + 0.01 * rng.random(400)
    labels = (rng.random(400) < of_second).astype(int)
    copies = np.repeat(np.arange(400), 20)
    once, often = (
        estimate_rates(of_second[rows], labels[rows], rows_per_case=cases)
        for rows, cases in ((np.arange(400), 1.0), (copies, 20.0))
    )
    assert often.interval_neg == pytest.approx(once.interval_neg, abs=0.01)
    assert often.evidence == pytest.approx(once.evidence, rel=0.02)
    # Copies that count for themselves seem to exclude more.
    assert estimate_rates(of_second[copies], labels[copies]).interval_neg[1] < once.interval_neg[1] - 0.01


def test_the_same_of_several_classes():
    rng = np.random.default_rng(1)
    true = rng.integers(3, size=300)
    given = np.where(rng.random(300) < 0.2, rng.integers(3, size=300), true)
    posterior = np.array([[0.86, 0.07, 0.07], [0.07, 0.86, 0.07], [0.07, 0.07, 0.86]])[true]
    posterior = posterior + 0.01 * rng.random(posterior.shape)
    posterior /= posterior.sum(axis=1, keepdims=True)
    copies = np.repeat(np.arange(300), 10)
    once = estimate_transitions(posterior, given)
    often = estimate_transitions(posterior[copies], given[copies], rows_per_case=10.0)
    assert often.interval == pytest.approx(once.interval, abs=0.02)
    assert often.evidence == pytest.approx(once.evidence, rel=0.05)


@pytest.mark.parametrize(("sizes", "most"), [([4, 1], 17 / 5), ([2, 1, 1, 1], 7 / 5)])
def test_a_row_counts_for_no_less_than_its_part_of_the_group_that_rows_are_in_on_average(sizes, most):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    # Rows of the first group miss by much and all alike, the others by next to nothing.
    of_second = np.where(groups == 0, 0.9, 0.001)
    posterior = np.column_stack([1.0 - of_second, of_second])
    labels = np.zeros(len(groups), dtype=int)
    assert find_rows_per_case(posterior, labels, np.ones(len(groups)), groups) == pytest.approx(most)
    assert find_rows_per_case(posterior, labels, np.full(len(groups), 0.1), groups) == pytest.approx(most)
    # Rows that miss in opposite directions are as good as independent ones.
    labels[0] = 1
    opposite = np.where(groups == 0, 0.5, 0.001)
    opposite = np.column_stack([1.0 - opposite, opposite])
    if sizes[0] == 2:
        assert find_rows_per_case(opposite, labels, np.ones(len(groups)), groups) == 1.0
