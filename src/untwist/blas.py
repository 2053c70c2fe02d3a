"""Matrix products on one thread: those of a fit are small, and the threads of a BLAS go on spinning after each of them.

They would take the processor from the threads that boost. It also leaves nothing to depend on their number.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["use_one_blas_thread"]


def use_one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which every BLAS of this process has one thread.

    Examples
    --------
    >>> import numpy as np
    >>> with use_one_blas_thread():
    ...     float(np.ones(3) @ np.ones(3))
    3.0
    """
    limited: AbstractContextManager[Any] = _find_libraries().limit(limits=1, user_api="blas")
    return limited


@lru_cache
def _find_libraries() -> ThreadpoolController:
    """Find the libraries that are loaded, which takes milliseconds and is done once."""
    return ThreadpoolController()
