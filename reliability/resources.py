"""What this process holds, by Linux's own account, and whether it holds more and more."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow

__all__ = ["Held", "find_slope", "read_held", "read_resident_bytes", "settle_pools"]

PROCESS = Path("/proc/self")

#: The number by which GNU's C library knows the setting of how many heaps there are.
M_ARENA_MAX = -8

#: NumPy caches freed arrays below this many bytes, up to NUMPY_KEEPS of each size.
NUMPY_KEEPS_BELOW = 1024
NUMPY_KEEPS = 7


@dataclass(frozen=True)
class Held:
    """What the process holds after so many operations."""

    n_done: int
    resident_bytes: int
    files: int
    threads: int
    children: int


def settle_pools() -> None:
    """Keep memory pools from looking like leaks.

    malloc gets one heap, Arrow one thread, and NumPy's cache of small arrays is filled.

    GNU's C library makes a heap for each new thread, up to eight per core, and Arrow starts threads up to its limit.
    NumPy keeps up to 3.7 MB of small arrays: an hour of tables of random sizes fills that only in part, which looks
    like a leak of some thousand bytes per operation.
    """
    ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    for n_bytes in range(NUMPY_KEEPS_BELOW):
        arrays = [np.empty(n_bytes, dtype=np.uint8) for _ in range(NUMPY_KEEPS)]
        del arrays


def read_held(n_done: int) -> Held:
    """Look at what the process holds, without garbage and without what the allocator keeps for later."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    tasks = list((PROCESS / "task").iterdir())
    return Held(
        n_done=n_done,
        resident_bytes=read_resident_bytes(),
        files=len(os.listdir(PROCESS / "fd")),
        threads=len(tasks),
        children=sum(len((task / "children").read_text().split()) for task in tasks),
    )


def read_resident_bytes() -> int:
    """Bytes that this process holds."""
    return int((PROCESS / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def find_slope(done: Sequence[int], sizes: Sequence[int]) -> tuple[float, float]:
    """By how many bytes memory grows with each operation, and the standard error of that: the slope of a line."""
    x, y = np.asarray(done, dtype=float), np.asarray(sizes, dtype=float)
    slope, start = np.polyfit(x, y, 1)
    variance = np.sum((y - start - slope * x) ** 2) / max(len(x) - 2, 1)
    return float(slope), float(np.sqrt(variance / np.sum((x - x.mean()) ** 2)))
