"""How much memory a file may ask for: one that unpacks to far more than its size is refused in time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

#: Bytes of memory that reading a file may take in any case.
LEAST_BYTES = 8 << 30
#: Bytes of memory that reading a file may take for each byte of the file.
BYTES_PER_BYTE = 200
#: A text is held about so often while a table is worked on: as it was read, in a frame, as a category, to be written.
TIMES_HELD = 4


class UnreadableFile(ValueError):
    """What is wrong with a file, in a sentence that names it."""


@contextmanager
def limit_memory(*paths: Path) -> Iterator[None]:
    """Refuse files that need far more memory than their size lets expect, before the machine comes to a halt.

    The limit holds for what is done while it lasts, in all threads, and on Linux alone. Within another limit the lower
    one holds.

    Parameters
    ----------
    *paths : Path
        The files that are read; without any there is no limit.

    Yields
    ------
    None
        A MemoryError becomes an `UnreadableFile`.
    """
    if not paths:
        yield
        return
    try:
        with _limit_address_space(_find_most_bytes(paths)):
            yield
    except MemoryError as error:
        raise refuse_memory(*paths) from error


def find_most_text(*paths: Path) -> float:
    """Return how many bytes of text may be held at once of what files hold, whatever the system allows.

    Parameters
    ----------
    *paths : Path
        The files; without any there is no limit.

    Returns
    -------
    float
    """
    return _find_most_bytes(paths) / TIMES_HELD if paths else math.inf


def refuse_memory(*paths: Path) -> UnreadableFile:
    """Return the error for files that need more memory than they may ask for.

    Parameters
    ----------
    *paths : Path
        The files.

    Returns
    -------
    UnreadableFile
    """
    names = str(paths[0]) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    words = (
        f"{names} needs more than {_find_most_bytes(paths) / 1e9:.0f} GB of memory: unpack or split it if it is what"
    )
    return UnreadableFile(f"{words} it seems; where this process may take less (ulimit -v), allow it more")


def _find_most_bytes(paths: Sequence[Path]) -> int:
    return LEAST_BYTES + BYTES_PER_BYTE * sum(path.stat().st_size for path in paths if path.exists())


@contextmanager
def _limit_address_space(most: int) -> Iterator[None]:
    """Let this process take at most `most` bytes more than it has; anywhere but on Linux there is no limit."""
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        usual = resource.getrlimit(resource.RLIMIT_AS)
        limits = [one for one in (used + most, *usual) if one != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_AS, (min(limits), usual[1]))
    except (ImportError, OSError, ValueError):  # There are no such limits here.
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, usual)
