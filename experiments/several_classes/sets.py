"""The data sets of several classes, and what noise does to them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from experiments.datasets import Labels, Table, drop_rare_classes, load_several
from experiments.protocol import REAL, Split, apply_twist, make_rng, split

__all__ = ["KINDS", "LEAST_ROWS", "load_set", "split_twisted"]

#: Classes with fewer rows than this are dropped: they cannot be split.
LEAST_ROWS = 8
#: The kinds of noise, names of `experiments.protocol.TWISTS`.
KINDS = ["none", "symmetric-0.2", "symmetric-0.4", "pair-0.1", "pair-0.3", "one-class-0.4", "random-matrix"]


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
