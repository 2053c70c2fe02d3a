"""Rows set aside by what they contain, not by where they stand: any order of the rows gives the same choice.

Copies of a row stay together, and a row of weight 2 is two copies. Where a few contents carry most of the weight none
of them can be spared whole; these are shared out: part of their weight is set aside, the rest stays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array

__all__ = ["hold_out"]


def hold_out(hashes: NDArray[np.uint64], labels: NDArray[np.uint32], weight: Array, share: float, seed: int) -> Array:
    """How much of each row's weight is set aside, in [0, 1], for about `share` of the weight of every class.

    `hashes` tell which rows have the same contents.
    """
    held = np.zeros(len(weight))
    keys = _mixed(hashes ^ _mixed(np.array([seed], dtype=np.uint64)))
    for label in np.unique(labels):
        rows = np.flatnonzero((labels == label) & (weight > 0))
        _, first, group = np.unique(keys[rows], return_index=True, return_inverse=True)
        mass = np.bincount(group, weights=weight[rows], minlength=len(first))  # groups in the order of their keys
        heavy = mass > share * mass.sum() * (1 + 1e-9)  # more than may be set aside
        wanted = share * mass[~heavy].sum()
        filled = np.cumsum(np.where(heavy, 0.0, mass))
        taken = (filled - 0.5 * mass <= wanted * (1 + 1e-9)) & (filled < mass.sum() * (1 - 1e-9))  # some must stay
        held[rows] = np.where(heavy, share, (taken & ~heavy).astype(float))[group]
    return held


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of splitmix64: every bit of the result depends on every bit of x."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
