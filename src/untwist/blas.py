"""Matrix products on one thread: those of a fit are small, and the threads of a BLAS go on spinning after each of them.

They would take the processor from the threads that boost. And the number of threads of a matrix product may change its
last bit. threadpoolctl, which comes with scikit-learn, sets the limit.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import threadpoolctl

__all__ = ["use_one_blas_thread"]


class _Limit:
    """The limit of this process, for all who ask for it at the same time: the last of them to leave lifts it.

    If each of them restored what it found, one would restore what another one had set.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_users = 0
        self.limiter: Any = None

    def take(self) -> None:
        """Set the limit, unless somebody has."""
        with self.lock:
            if self.n_users == 0:
                self.limiter = _find_libraries().limit(limits=1, user_api="blas")
                _let_other_threads_decide()
            self.n_users += 1

    def give_back(self) -> None:
        """Lift the limit, unless somebody still needs it."""
        with self.lock:
            self.n_users -= 1
            if self.n_users == 0:
                self.limiter.restore_original_limits()
                _let_other_threads_decide()
                self.limiter = None


_limit = _Limit()


@contextmanager
def use_one_blas_thread() -> Iterator[None]:
    """Give every BLAS of this process one thread, until all who asked for it are done.

    Examples
    --------
    >>> import numpy as np
    >>> with use_one_blas_thread():
    ...     float(np.ones(3) @ np.ones(3))
    3.0
    """
    limit = _limit  # A process that is forked inside has another one.
    limit.take()
    try:
        yield
    finally:
        limit.give_back()


@lru_cache
def _find_libraries() -> threadpoolctl.ThreadpoolController:
    """Find the libraries that are loaded, which takes milliseconds and is done once."""
    return threadpoolctl.ThreadpoolController()


def _let_other_threads_decide() -> None:
    """Lift what newer versions of threadpoolctl do: only the thread that set a number of threads may set another."""
    let_go = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if let_go is not None:
        let_go()


def _begin_anew() -> None:
    """Count from 0 in a forked process: the fits that other threads were at never end there."""
    global _limit
    _limit = _Limit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
