"""What this process holds, by Linux's own account, and whether it holds more and more."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["Held", "find_slope", "read_held", "read_resident_bytes"]

PROCESS = Path("/proc/self")


@dataclass(frozen=True)
class Held:
    """What the process holds after so many operations."""

    n_done: int
    resident_bytes: int
    files: int
    threads: int
    children: int


def read_held(n_done: int) -> Held:
    """Look at what the process holds, once garbage is collected."""
    gc.collect()
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


def find_slope(done: Sequence[int], sizes: Sequence[int]) -> float:
    """By how many bytes memory grows with each operation: the slope of the line through all measurements."""
    return float(np.polyfit(np.asarray(done, dtype=float), np.asarray(sizes, dtype=float), 1)[0])
