"""The line that tells whoever waits how far a long job has come."""

from __future__ import annotations

import sys
import time
from typing import Self

from untwist.text import for_terminal

__all__ = ["ProgressLine", "describe_progress", "print_status"]

#: A job that ends within this many seconds shows no progress.
QUIET_SECONDS = 2.0
#: Seconds between two states of the line on a terminal.
TERMINAL_INTERVAL = 0.2
#: Seconds between two lines in a log, where nothing can be written over.
LOG_INTERVAL = 10.0
#: Columns that the line takes on a terminal.
WIDTH = 78


def print_status(words: str) -> None:
    """Print one line on standard error, for the person who waits.

    Parameters
    ----------
    words : str
        What to say; line ends in it become blanks.
    """
    print(_join_lines(words), file=sys.stderr, flush=True)


def _join_lines(words: str) -> str:
    return for_terminal(" ".join(words.splitlines()))


class ProgressLine:
    """A line on standard error that is written over on a terminal, and repeated now and then in a log.

    As a context manager it clears the line at the end.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._last = self._start
        self._on_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._visible = False

    @property
    def seconds(self) -> float:
        """Seconds since the job began."""
        return time.monotonic() - self._start

    def show(self, words: str) -> None:
        """Show how far the job is, unless that was done just now or the job has only begun.

        Parameters
        ----------
        words : str
            How far it is.
        """
        interval = TERMINAL_INTERVAL if self._on_terminal else LOG_INTERVAL
        now = time.monotonic()
        if now - self._start < QUIET_SECONDS or now - self._last < interval:
            return
        self._last = now
        line = _join_lines(words)
        if self._on_terminal:
            self._visible = True
            line = f"\r{line:<{WIDTH}.{WIDTH}}"
        else:
            line += "\n"
        print(line, end="", file=sys.stderr, flush=True)

    def print_status(self, words: str) -> None:
        """Print a line that stays.

        Parameters
        ----------
        words : str
            What to say.
        """
        self.clear()
        print_status(words)

    def clear(self) -> None:
        """Wipe the line, if there is one."""
        if self._visible:
            print("\r" + " " * WIDTH + "\r", end="", file=sys.stderr, flush=True)
        self._visible = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()


def describe_progress(done: int, total: int, seconds: float, unit: str) -> str:
    """Say how many units are done, and how long the others may take.

    Parameters
    ----------
    done, total : int
        The units that are done, at least one, and all units.
    seconds : float
        How long the units took that are done.
    unit : str
        What the units are called, in the plural.

    Returns
    -------
    str
        The sentence.

    Examples
    --------
    >>> describe_progress(30, 40, 60.0, "fits")
    '30 of 40 fits, about 20 s left'
    """
    left = seconds / done * (total - done)
    minutes = round(left / 60)
    duration = f"{left:.0f} s" if left < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
    return f"{done} of {total} {unit}, about {duration} left"
