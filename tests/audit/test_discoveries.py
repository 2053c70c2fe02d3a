"""Which of many findings hold, against the definition."""

import numpy as np
import pytest

from untwist.audit.discoveries import select_discoveries


def select_slowly(p_values, rate):
    """By the definition: the largest k with k p-values at or below rate * k / n."""
    n = len(p_values)
    limits = [rate * k / n for k in range(1, n + 1) if sum(p <= rate * k / n for p in p_values) >= k]
    return [bool(limits) and p <= max(limits) for p in p_values]


@pytest.mark.parametrize("seed", range(20))
def test_discoveries_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    p_values = np.round(rng.random(rng.integers(1, 12)) ** rng.integers(1, 8), 3)
    for rate in (0.0, 0.05, 0.3, 1.0):
        assert select_discoveries(p_values, rate).tolist() == select_slowly(p_values.tolist(), rate)
    assert select_discoveries(np.zeros(0), 0.05).tolist() == []


def test_a_single_finding_holds_up_to_the_rate_itself():
    assert select_discoveries(np.array([0.05]), 0.05).tolist() == [True]
    assert select_discoveries(np.array([0.0501]), 0.05).tolist() == [False]
    assert select_discoveries(np.array([0.02, 0.5]), 0.05).tolist() == [True, False]
