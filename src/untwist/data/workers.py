"""What the workers of a distributed fit have to tell each other; a worker alone just knows it.

Everything here is a meeting: all workers have to come, in the same order. Sums are exact for whole numbers, so that the
result does not depend on how many workers there are.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALONE", "Workers", "present"]

T = TypeVar("T")


class Workers:
    """Who shares the rows of a fit: one worker, unless a subclass knows better. `rank` counts from 0."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    def total(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sums over all workers."""
        return values

    def all_of(self, item: T) -> list[T]:
        """What every worker has, in the order of their ranks."""
        return [item]

    def first_of(self, item: T) -> T:
        """What the first worker has."""
        return item


class _XGBoostWorkers(Workers):
    """Workers that XGBoost's communicator connects."""

    def __init__(self, collective: Any) -> None:
        super().__init__(collective.get_rank(), collective.get_world_size())
        self._collective = collective

    def total(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self._collective.allreduce(values, self._collective.Op.SUM)).reshape(values.shape)

    def all_of(self, item: T) -> list[T]:
        return [self._collective.broadcast(item if root == self.rank else None, root) for root in range(self.size)]

    def first_of(self, item: T) -> T:
        return self._collective.broadcast(item, 0)  # type: ignore[no-any-return]


ALONE = Workers()


def present() -> Workers:
    """The workers of XGBoost's communicator, if one is open in this process."""
    if sys.modules.get("xgboost") is None:
        return ALONE
    collective = sys.modules["xgboost"].collective
    return _XGBoostWorkers(collective) if collective.is_distributed() else ALONE
