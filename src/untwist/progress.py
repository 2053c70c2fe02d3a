"""What tells whoever waits how far a long job has come: a line in a terminal or a log, a bar in a notebook.

A job does not know who waits. It looks for the display that is open (`find_display`), if any, and whoever wants to see
something opens one around it (`show_progress`, `use_display`).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Self

from untwist.text import for_page, for_terminal

__all__ = [
    "NotebookBar",
    "ProgressLine",
    "describe_progress",
    "find_display",
    "print_status",
    "show_progress",
    "use_display",
]

#: A job that ends within this many seconds shows no progress.
QUIET_SECONDS = 2.0
#: Seconds between two states of the line on a terminal.
TERMINAL_INTERVAL = 0.2
#: Seconds between two lines in a log, where nothing can be written over.
LOG_INTERVAL = 10.0
#: Columns that the line takes on a terminal, and of these its bar.
WIDTH = 78
BAR_WIDTH = 12
#: Lines that stay which a notebook shows below its bar, at most.
MOST_LINES = 30


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
        self._share = 0.0

    def _find_share(self, seconds_left: float) -> float:
        """Return the share of the time that is over, by what is left; an estimate that grows does not turn it back."""
        total = self.seconds + seconds_left
        self._share = max(self._share, min(self.seconds / total if total else 0.0, 0.99))
        return self._share

    @property
    def seconds(self) -> float:
        """Seconds since the job began."""
        return time.monotonic() - self._start

    def show(self, words: str, seconds_left: float = math.nan) -> None:
        """Show how far the job is, unless that was done just now or the job has only begun.

        Parameters
        ----------
        words : str
            How far it is.
        seconds_left : float
            How long it may take yet; NaN where nobody knows.
        """
        interval = TERMINAL_INTERVAL if self._on_terminal else LOG_INTERVAL
        now = time.monotonic()
        if now - self._start < QUIET_SECONDS or now - self._last < interval:
            return
        self._last = now
        line = _join_lines(words)
        if not math.isnan(seconds_left):
            share = self._find_share(seconds_left)
            filled = round(share * BAR_WIDTH)
            bar = "█" * filled + "░" * (BAR_WIDTH - filled)
            line = f"{bar} {share:.0%}, about {_describe_duration(seconds_left)} left: {line}"
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


class NotebookBar(ProgressLine):
    """A bar below the cell of a notebook, with lines that stay beneath it; at the end the bar goes, and the lines stay.

    Parameters
    ----------
    show_page : callable
        `IPython.display.display`.
    """

    def __init__(self, show_page: Any) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._words = "starting"
        self._left = math.nan
        self._page = show_page(_Fragment(self._write()), display_id=True)

    def show(self, words: str, seconds_left: float = math.nan) -> None:
        """Show how far the job is, unless that was done just now.

        Parameters
        ----------
        words : str
            How far it is.
        seconds_left : float
            How long it may take yet; NaN where nobody knows.
        """
        now = time.monotonic()
        if now - self._last < TERMINAL_INTERVAL:
            return
        self._last = now
        self._words, self._left = words, seconds_left
        self._page.update(_Fragment(self._write()))

    def print_status(self, words: str) -> None:
        """Add a line that stays.

        Parameters
        ----------
        words : str
            What to say.
        """
        self._lines.append(words)
        self._page.update(_Fragment(self._write()))

    def clear(self) -> None:
        """Take the bar away; the lines stay."""
        self._page.update(_Fragment(self._write_lines() or "<span></span>"))

    def _write(self) -> str:
        words = f"{self.seconds:.0f} s, {self._words}"
        share = 0.0
        if not math.isnan(self._left):
            share = self._find_share(self._left)
            words += f", about {_describe_duration(self._left)} left"
        frame = "width:16em;height:.8em;border:1px solid #2f83d6;display:inline-block;vertical-align:middle"
        filled = f'<div style="width:{share:.1%};height:100%;background:#2f83d6"></div>'
        return f'<div><div style="{frame}">{filled}</div> {for_page(words)}</div>{self._write_lines()}'

    def _write_lines(self) -> str:
        if not self._lines:
            return ""
        lines = for_page("\n".join(self._lines[-MOST_LINES:]))
        return f'<pre style="font-size:.85em;margin:.3em 0;background:none;color:inherit">{lines}</pre>'


class _Fragment:
    """HTML for a notebook."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return ""


_DISPLAY: ContextVar[ProgressLine | None] = ContextVar("display", default=None)


def find_display() -> ProgressLine | None:
    """Return the display that is open, None where nobody waits for words.

    Returns
    -------
    ProgressLine or None
    """
    return _DISPLAY.get()


@contextmanager
def use_display(display: ProgressLine) -> Iterator[None]:
    """Make a display the one that jobs find, and clear it at the end.

    Parameters
    ----------
    display : ProgressLine
        The display.
    """
    before = _DISPLAY.set(display)
    try:
        yield
    finally:
        _DISPLAY.reset(before)
        display.clear()


def show_progress(wanted: bool) -> AbstractContextManager[None]:
    """Return a context in which jobs find a display, if that is wanted: the one that is open, else a new one.

    Parameters
    ----------
    wanted : bool
        Whether anybody waits for words.

    Returns
    -------
    context manager
    """
    return use_display(_open_display()) if wanted and find_display() is None else nullcontext()


def _open_display() -> ProgressLine:
    """Return a bar where this is a notebook, else a line on standard error."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if type(shell).__name__ == "ZMQInteractiveShell":  # The shell of a terminal has another name.
        return NotebookBar(sys.modules["IPython.display"].display)
    return ProgressLine()


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
    return f"{done} of {total} {unit}, about {_describe_duration(seconds / done * (total - done))} left"


def _describe_duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
