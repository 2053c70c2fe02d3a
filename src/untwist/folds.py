"""Rows set aside by what they contain, not by where they stand: any order of the rows gives the same choice.

Copies of a row stay together, and a row of weight 2 is two copies: what was trained on must not come back to judge.
Only where a content is frequent and has several labels, as in a table of few values, its copies are a sample of their
own, and part of them is drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from untwist.arguments import Array

__all__ = ["hold_out"]

FREQUENT = 10  # copies from which on a content with several labels is a sample of its own


def hold_out(hashes: NDArray[np.uint64], labels: NDArray[np.uint32], weight: Array, share: float, seed: int) -> Array:
    """How much of each row's weight is set aside, in [0, 1], for about `share` of the weight of every class.

    `hashes` tell which rows have the same contents.
    """
    keys, content = np.unique(_mixed(hashes ^ _mixed(np.array([seed], dtype=np.uint64))), return_inverse=True)
    classes, label = np.unique(labels, return_inverse=True)
    mass = np.zeros((len(keys), len(classes)))  # of each content, in the order of their keys, and class
    np.add.at(mass, (content, label), weight)
    own_sample = (mass.sum(axis=1) >= FREQUENT) & ((mass > 0).sum(axis=1) > 1)
    held = np.zeros_like(mass)
    for k in range(len(classes)):
        copies = np.maximum(1, np.rint(mass[:, k]))
        chance = (_mixed(keys ^ np.uint64(k)) >> np.uint64(11)) * 2.0**-53
        drawn = np.minimum(binom.ppf(chance, copies, share), np.maximum(copies - 1, 0)).clip(0)  # some must stay
        whole = np.where(own_sample, 0.0, mass[:, k])
        heavy = whole > share * mass[:, k].sum() * (1 + 1e-9)  # more than may be set aside: shared out
        light = np.where(heavy, 0.0, whole)
        filled = np.cumsum(light)
        taken = (filled - 0.5 * light <= share * light.sum() * (1 + 1e-9)) & (filled < mass[:, k].sum() * (1 - 1e-9))
        held[:, k] = np.where(own_sample, drawn / copies, np.where(heavy, share, taken & (light > 0)))
    return np.asarray(held[content, label])


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of splitmix64: every bit of the result depends on every bit of x."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
