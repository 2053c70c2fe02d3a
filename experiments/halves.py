"""Which half of the data sets judges: a rule that knows their names only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

__all__ = ["DESIGN", "JUDGING", "REAL_NOISE", "find_half"]

#: The half of the sets that the design has looked at, the half that judges, and what stands apart.
DESIGN, JUDGING, REAL_NOISE = "design", "judging", "real noise"


def find_half(names: Iterable[str]) -> dict[str, str]:
    """Find which half each data set belongs to.

    Names are ranked by their MD5 digest: the lower half designs, the upper half, with the one in the middle, judges.

    Parameters
    ----------
    names : iterable of str
        All data sets that there are, but for those that stand apart.

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
