"""Matrix products on one thread: those of a fit are small, and the threads of a BLAS go on spinning after each of them.

They would take the processor from the threads that boost. threadpoolctl, which comes with scikit-learn, sets the limit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

__all__ = ["use_one_blas_thread"]

#: Whoever limits the threads holds this.
_limiting = threading.Lock()


@contextmanager
def use_one_blas_thread() -> Iterator[None]:
    """Give every BLAS of this process one thread, unless somebody else is doing so.

    The limit is that of the process. Two who set it at the same time would each restore what the other one set, so the
    second goes without: its matrix products have one thread as long as the first is at work.

    Examples
    --------
    >>> import numpy as np
    >>> with use_one_blas_thread():
    ...     float(np.ones(3) @ np.ones(3))
    3.0
    """
    if not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with _find_libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limiting.release()


@lru_cache
def _find_libraries() -> ThreadpoolController:
    """Find the libraries that are loaded, which takes milliseconds and is done once."""
    return ThreadpoolController()
