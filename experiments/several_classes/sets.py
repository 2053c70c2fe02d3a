"""The data sets of several classes, and which half of them judges."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from experiments.datasets import Labels, Table, drop_rare_classes, load_several
from experiments.protocol import REAL, Split, apply_twist, make_rng, split

__all__ = ["DESIGN", "JUDGING", "KINDS", "LEAST_ROWS", "REAL_NOISE", "find_half", "load_set", "split_twisted"]

#: Classes with fewer rows than this are dropped: they cannot be split.
LEAST_ROWS = 8
#: The kinds of noise, names of `experiments.protocol.TWISTS`.
KINDS = ["none", "symmetric-0.2", "symmetric-0.4", "pair-0.1", "pair-0.3", "one-class-0.4", "random-matrix"]
#: The half of the sets that the design has looked at, the half that judges, and what stands apart.
DESIGN, JUDGING, REAL_NOISE = "design", "judging", "real noise"


def find_half(names: Iterable[str]) -> dict[str, str]:
    """Find which half each data set belongs to.

    Names are ranked by their MD5 digest: the lower half designs, the upper half, with the one in the middle, judges.

    Parameters
    ----------
    names : iterable of str
        All data sets that there are, but for those with real noise.

    Returns
    -------
    dict
        By name, `DESIGN` or `JUDGING`.

    Examples
    --------
    >>> find_half(["vehicle", "splice", "yeast"])
    {'vehicle': 'design', 'splice': 'judging', 'yeast': 'judging'}
    """
    ranked = sorted(names, key=lambda name: hashlib.md5(name.encode(), usedforsecurity=False).hexdigest())
    return {name: DESIGN if rank < len(ranked) // 2 else JUDGING for rank, name in enumerate(ranked)}


@lru_cache(maxsize=2)
def load_set(data: str, folder: str | None) -> tuple[Table, dict[str, int]]:
    """Load a data set without the classes that are too rare, and say which these are, with their rows.

    Parameters
    ----------
    data : str
        Its name.
    folder : str, optional
        See `experiments.datasets.load_several`.

    Returns
    -------
    Table
    dict
        Rows by the name of what was dropped.
    """
    return drop_rare_classes(load_several(data, folder), LEAST_ROWS)


def split_twisted(table: Table, kind: str, seed: int, max_rows: int) -> tuple[Split, Labels | None]:
    """Split a table, twist the labels of its training part, and keep the true ones.

    Parameters
    ----------
    table : Table
        The table.
    kind : str
        One of `KINDS`, or `REAL` for a table that comes with noisy labels.
    seed : int
        Of the split.
    max_rows : int
        Rows of each part, at most.

    Returns
    -------
    Split
        What training code may see, and the clean test rows.
    array or None
        The true training labels, where they are known.
    """
    if kind == REAL:
        return split(table, REAL, seed, max_rows), None
    clean = split(table, "none", seed, max_rows)
    # These are the very draws of `split`, which would keep the true labels to itself.
    X, y = apply_twist(kind, clean.X, clean.y, make_rng(table.name, kind, seed, "twist"))
    return Split(X, np.asarray(y), clean.X_test, clean.y_test), clean.y
