"""Which of many findings hold, at a stated rate of false ones among them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array

__all__ = ["FALSE_DISCOVERY_RATE", "select_discoveries"]

#: Of the findings that are named, this share at most is expected to be named by chance, unless said otherwise.
FALSE_DISCOVERY_RATE = 0.05


def select_discoveries(p_values: Array, false_discovery_rate: float) -> NDArray[np.bool_]:
    """Return which p-values are small enough, by Benjamini and Hochberg's rule.

    Parameters
    ----------
    p_values : array
        One for each hypothesis.
    false_discovery_rate : float
        The share of the selected ones that is expected to be selected by chance, at most.

    Returns
    -------
    array of bool
    """
    n_tests = len(p_values)
    rising = np.sort(p_values)
    small = np.flatnonzero(rising <= false_discovery_rate * np.arange(1, n_tests + 1) / max(1, n_tests))
    return p_values <= (rising[small[-1]] if small.size else -1.0)
