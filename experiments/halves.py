"""Which half of the data sets judges: a rule that knows their names only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

__all__ = ["DESIGN", "JUDGING", "OF_THE_PAPER", "REAL_NOISE", "find_half"]

#: The half of the sets that the design has looked at, the half that judges, and what stands apart.
DESIGN, JUDGING, REAL_NOISE = "design", "judging", "real noise"

#: The paper's own data sets, which the default is made to do well on: they never judge it.
OF_THE_PAPER = ("cancer", "online_shoppers", "pima", "xd6")


def find_half(names: Iterable[str], looked_at: Iterable[str] = ()) -> dict[str, str]:
    """Find which half each data set belongs to.

    Names are ranked by their MD5 digest: the lower half designs, the upper half, with the one in the middle, judges.

    Parameters
    ----------
    names : iterable of str
        All data sets that there are, but for those that stand apart.
    looked_at : iterable of str
        Those that the design has looked at, whatever their half by rank.

    Returns
    -------
    dict
        By name, `DESIGN` or `JUDGING`.

    Examples
    --------
    >>> find_half(["vehicle", "splice", "yeast"])
    {'vehicle': 'design', 'splice': 'judging', 'yeast': 'judging'}
    >>> find_half(["vehicle", "splice", "yeast"], looked_at=["yeast"])
    {'vehicle': 'design', 'splice': 'judging', 'yeast': 'design'}
    """
    ranked = sorted(names, key=lambda name: hashlib.md5(name.encode(), usedforsecurity=False).hexdigest())
    known = set(looked_at)
    return {name: DESIGN if rank < len(ranked) // 2 or name in known else JUDGING for rank, name in enumerate(ranked)}
