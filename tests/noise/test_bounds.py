"""Upper bounds of noise rates: beside a slow twin, on what they must not depend on, and how often they hold."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from untwist.noise.bounds import DEPTH_FACTOR, bound_rates, bound_share


def bound_slowly(posterior, labels, groups=None, confidence=0.95):
    """The bounds by their definitions: a loop over classes, prefixes and rows, and the binomial law itself."""
    n_rows, n_classes = posterior.shape
    groups = np.arange(n_rows) if groups is None else groups
    bounds = []
    for one in range(n_classes):
        surest = []
        for group in set(groups.tolist()):
            rows = [row for row in range(n_rows) if groups[row] == group]
            best = max(posterior[row, one] for row in rows)
            surest.append((best, all(labels[row] == one for row in rows if posterior[row, one] == best)))
        surest.sort(reverse=True)
        n_depths = int(math.log(len(surest)) / math.log(DEPTH_FACTOR)) + 1
        highest = 1.0
        for step in range(n_depths):
            least = surest[math.ceil(len(surest) / DEPTH_FACTOR**step) - 1][0]
            taken = [bears for sure, bears in surest if sure >= least]
            others, total, chance = taken.count(False), len(taken), (1.0 - confidence) / n_depths
            if others < len(taken):
                # The rate at which so few rows of other labels, or fewer, have just this chance.
                found = brentq(lambda rate, k=others, n=total, p=chance: binom.cdf(k, n, rate) - p, 0.0, 1.0)
                highest = min(highest, found)
        bounds.append(highest)
    return np.array(bounds)


def draw(n_classes, matrix, n, seed, spread=1.5):
    """True classes, noisy labels, and posteriors of models that know neither."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, n_classes, n)
    scores = spread * rng.normal(size=(n, n_classes)) + 3.0 * np.eye(n_classes)[true]
    labels = (matrix[true].cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
    clean = np.exp(scores - scores.max(axis=1, keepdims=True))
    return true, labels, clean / clean.sum(axis=1, keepdims=True) @ matrix


MATRICES = {
    "two classes, clean": np.eye(2),
    "two classes, even": np.array([[0.8, 0.2], [0.2, 0.8]]),
    "two classes, uneven": np.array([[0.9, 0.1], [0.4, 0.6]]),
    "five classes, clean": np.eye(5),
    "five classes, even": 0.7 * np.eye(5) + 0.06,
    "five classes, to the next": 0.7 * np.eye(5) + 0.3 * np.roll(np.eye(5), 1, axis=1),
}


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("decimals", [1, 9])
@pytest.mark.parametrize("name", MATRICES)
def test_bounds_are_those_of_their_definition_in_any_order_of_the_rows(name, decimals, grouped):
    matrix = MATRICES[name]
    _, labels, posterior = draw(len(matrix), matrix, 90, seed=3)
    posterior = posterior.round(decimals)  # With one digit many rows are equally sure.
    labels[::17] = -1
    groups = np.random.default_rng(0).integers(0, 40, 90) if grouped else None
    found = bound_rates(posterior, labels, groups=groups)
    np.testing.assert_allclose(found, bound_slowly(posterior, labels, groups), rtol=1e-9)
    order = np.random.default_rng(1).permutation(90)
    again = bound_rates(posterior[order], labels[order], groups=groups[order] if grouped else None)
    np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("name", MATRICES)
def test_bounds_hold_where_errors_do_not_depend_on_features(name):
    matrix = MATRICES[name]
    n_classes, rates = len(matrix), 1.0 - np.diag(matrix)
    holds, share_holds = [], []
    for seed in range(200):
        true, labels, posterior = draw(n_classes, matrix, 400, seed)
        found = bound_rates(posterior, labels)
        holds.append(found >= rates)
        share = bound_share(found, np.bincount(labels, minlength=n_classes) / 400)
        share_holds.append(share >= (labels != true).mean())
    # A rate that held in 95 of 100 cases would be this low in 200 in one case of a thousand.
    assert np.mean(holds, axis=0).min() >= 0.895
    assert np.mean(share_holds) >= 0.95


def test_bounds_are_tight_where_rows_are_sure():
    _, labels, posterior = draw(2, np.array([[0.9, 0.1], [0.4, 0.6]]), 20_000, 0, spread=0.3)
    rates = bound_rates(posterior, labels)
    np.testing.assert_allclose(rates, [0.1, 0.4], atol=0.03)
    assert bound_share(rates, np.bincount(labels) / 20_000) == pytest.approx(0.25, abs=0.04)


def test_errors_that_follow_the_features_are_beyond_the_bounds():
    """A corner of one class is labelled the other: no bound sees it, which is why all of them say if."""
    rng = np.random.default_rng(0)
    place = rng.random(2000)
    labels = (place > 0.3).astype(int)  # Truly above 0.5.
    posterior = np.column_stack([1.0 - labels, labels]) * 0.98 + 0.01
    share = bound_share(bound_rates(posterior, labels), np.bincount(labels) / 2000)
    assert share < 0.02 < 0.15 < np.mean((place > 0.5) != labels)


def test_nothing_is_excluded_without_rows_or_where_no_row_bears_a_label():
    assert bound_rates(np.empty((0, 3)), np.empty(0, int)).tolist() == [1.0, 1.0, 1.0]
    posterior = np.tile([0.5, 0.5], (50, 1))
    only_first = bound_rates(posterior, np.zeros(50, int))
    assert only_first[0] < 0.2 < only_first[1] == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_no_way_in_which_labels_may_have_moved_has_more_wrong_ones(seed):
    """Shares that some true classes and rates below the bounds make are never above the share that is told."""
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 5))
    for _ in range(200):
        matrix = rng.dirichlet(np.full(n_classes, 0.3), n_classes) * 0.6 + 0.4 * np.eye(n_classes)
        shares = rng.dirichlet(np.ones(n_classes))
        rates = 1.0 - np.diag(matrix)
        highest = np.minimum(1.0, rates + rng.choice([0.0, 0.1], n_classes))
        wrong = shares @ rates
        assert bound_share(highest, shares @ matrix) >= wrong - 1e-7
    # Of two classes the rates and the shares of labels leave one way alone.
    two = np.array([[0.9, 0.1], [0.3, 0.7]])
    assert bound_share(np.array([0.1, 0.3]), np.array([0.5, 0.5]) @ two) == pytest.approx(0.2)
    assert bound_share(np.zeros(n_classes), np.full(n_classes, 1.0 / n_classes)) == pytest.approx(0.0, abs=1e-9)
    assert bound_share(np.ones(3), np.array([0.5, 0.3, 0.2])) == pytest.approx(1.0)
