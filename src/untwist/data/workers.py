"""What the workers of a distributed fit have to tell each other; a single worker just knows it.

Everything here is a meeting: all workers have to come, in the same order. Sums are exact for whole numbers, so that the
result does not depend on how many workers there are.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class Workers:
    """Who shares the rows of a fit: one worker, unless a subclass connects several.

    Parameters
    ----------
    rank : int, default 0
        The number of this worker, from 0.
    size : int, default 1
        How many workers there are.

    Examples
    --------
    >>> Workers().gather("mine")
    ['mine']
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank = rank
        self.size = size

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Add up what all workers have.

        Parameters
        ----------
        values : ndarray
            Numbers of this worker, in a shape that all share.

        Returns
        -------
        ndarray
            The sums over all workers, in the same shape.
        """
        return values

    def gather(self, item: T) -> list[T]:
        """Collect what every worker has.

        Parameters
        ----------
        item
            What this worker has; it must be possible to pickle it.

        Returns
        -------
        list
            One item per worker, in the order of their ranks.
        """
        return [item]


class _XGBoostWorkers(Workers):
    """Workers that XGBoost's communicator connects."""

    def __init__(self, collective: Any) -> None:
        super().__init__(collective.get_rank(), collective.get_world_size())
        self._collective = collective

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self._collective.allreduce(values, self._collective.Op.SUM)).reshape(values.shape)

    def gather(self, item: T) -> list[T]:
        return [self._collective.broadcast(item if root == self.rank else None, root) for root in range(self.size)]


#: The one worker of a fit that is not distributed.
solo = Workers()


def find_workers() -> Workers:
    """Find the workers that share this process's fits.

    Returns
    -------
    Workers
        Those of XGBoost's communicator, if one is open in this process; otherwise `solo`.
    """
    if sys.modules.get("xgboost") is None:
        return solo
    collective = sys.modules["xgboost"].collective
    return _XGBoostWorkers(collective) if collective.is_distributed() else solo
