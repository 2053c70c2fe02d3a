"""How much memory there is: what would need more is refused before the work, in a sentence.

A forecast counts only what is certainly held at once, so that nothing is refused that would have gone well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from untwist.boosting.engines.engine import Engine

#: Fewer bytes than this are not worth a look at what there is.
ALWAYS_THERE = 1 << 28
BYTES_PER_SCORE = 8


def check_memory_of_boosters(
    engine: Engine, n_rows: int, n_classes: int, *, jointly: bool, n_folds: int, device: str = "cpu"
) -> None:
    """Raise a MemoryError where boosters, and what they say of the rows, would hold more than there is.

    Parameters
    ----------
    engine : Engine
        Who makes them.
    n_rows, n_classes : int
        The size of the table.
    jointly : bool
        Whether one booster has all classes; otherwise each class has one, and two classes one together.
    n_folds : int
        How many folds have boosters of their own; 0 where nothing is chosen by folds.
    device : str
        Where they boost: what they hold on a GPU is no memory of this process.
    """
    n_scores = n_classes if n_classes > 2 else 1
    each = engine.count_bytes(n_rows, n_classes, jointly=jointly) if device == "cpu" else 0
    n_bytes = each * max(n_folds, 1) * (1 if jointly else n_scores)
    if n_folds:
        n_bytes += 2 * BYTES_PER_SCORE * n_rows * n_scores  # Fold by fold, and then all of them.
    if n_bytes < ALWAYS_THERE:
        return
    free = find_free_memory()
    if n_bytes > free:
        raise MemoryError(
            f"to boost {n_classes:,} classes on {n_rows:,} rows takes at least {n_bytes / 1e9:,.1f} GB of memory at "
            f"once, and {free / 1e9:,.1f} GB is free: fit a part of the rows"
            + (", or give rare classes one name" if n_classes > 2 else "")
        )


def find_free_memory() -> float:
    """Return how many bytes this process may still take, as the system, its container and its own limit tell.

    Returns
    -------
    float
        Infinity where nothing tells, as anywhere but on Linux.
    """
    return min(_read_system(), *_iterate_containers(), _read_own_limit())


def _read_system() -> float:
    """Return what the machine has left, with its swap."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return math.inf
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    if "MemAvailable" not in kilobytes:
        return math.inf
    return 1024.0 * (kilobytes["MemAvailable"] + kilobytes.get("SwapFree", 0))


def _iterate_containers(
    root: Path = Path("/sys/fs/cgroup"), groups: Path = Path("/proc/self/cgroup")
) -> Iterator[float]:
    """Yield what each control group around this process has left; its cache of files can be had, too."""
    try:
        path = next(line[3:] for line in groups.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return
    group = root / path.strip("/")
    for folder in (group, *group.parents):
        try:
            most, used = (folder / "memory.max").read_text().strip(), int((folder / "memory.current").read_text())
            cached = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines()).get("file", "0")
        except (OSError, ValueError):
            continue
        if most != "max":
            yield float(max(int(most) - used + int(cached), 0))


def _read_own_limit() -> float:
    """Return what is left of the address space of this process, where that is limited."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return math.inf
    return math.inf if limit == resource.RLIM_INFINITY else float(max(limit - used, 0))
