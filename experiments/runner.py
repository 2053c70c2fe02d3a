"""The runner: does what a results file lacks, in parallel, and can be stopped and started at any time."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar, cast

from experiments.results import Result, Writer, read

__all__ = ["measure"]

EVERY = 10.0  # seconds between lines where they cannot be written over

J = TypeVar("J")
R = TypeVar("R", bound=Result)


def measure(
    wanted: Mapping[Any, J],
    judge: Callable[[J], R],
    path: Path,
    kind: type[R],
    *,
    jobs: int = 1,
    again: Callable[[R], bool] = lambda _: False,
    words: Callable[[R], str] = lambda row: ", ".join(map(str, cast(Iterable[object], row.key))),
) -> list[R]:
    """The rows of the jobs wanted, by key. What the file lacks is run and added; so are errors, and rows to do `again`.

    `judge` gives a job's row; it and the jobs can be pickled. `words` say which row is done.
    """
    done = {row.key for row in read(path, kind) if not row.error and not again(row)}
    missing = [job for key, job in wanted.items() if key not in done]
    with Writer(path, kind) as results:
        progress = _Progress(len(missing))
        try:
            for row in _run(missing, judge, jobs):
                results.add(row)
                if row.error:
                    progress.say(f"failed: {words(row)}: {row.error}")
                progress.step(words(row))
        except KeyboardInterrupt:
            progress.say(f"Stopped; what is done is in {path}, and the same command goes on from there.")
            raise
        progress.end()
    return [row for row in read(path, kind) if row.key in wanted]


def _run(missing: list[J], judge: Callable[[J], R], jobs: int) -> Iterator[R]:
    """Rows in the order in which they get ready, one process per job and one thread per process."""
    if jobs == 1 or not missing:
        yield from map(judge, missing)
        return
    ignore = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that writes the file
    pool = ProcessPoolExecutor(
        min(jobs, max(1, len(missing))), get_context("spawn"), initializer=signal.signal, initargs=ignore
    )
    try:
        waiting: set[Future[R]] = set()
        queue = iter(missing)
        while True:
            for job in queue:
                waiting.add(pool.submit(judge, job))
                if len(waiting) >= 2 * jobs:
                    break
            if not waiting:
                return
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in ready)
    except BrokenProcessPool as error:
        raise ValueError("a worker process died (out of memory?); run again to go on where it ended") from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class _Progress:
    """How many fits are done, how long the others take: a line written over, or a new one now and then."""

    def __init__(self, total: int) -> None:
        self.total, self.count, self.start = total, 0, time.monotonic()
        self.over = sys.stderr.isatty()
        self.last = self.start

    def step(self, words: str) -> None:
        self.count += 1
        now = time.monotonic()
        if not self.over and now - self.last < EVERY:
            return
        self.last = now
        left = (now - self.start) / self.count * (self.total - self.count)
        line = f"{self.count} of {self.total} fits, about {_duration(left)} left ({words}"
        text = f"\r{line[:99] + ')':<100}" if self.over else f"{line})\n"
        print(text, end="", file=sys.stderr, flush=True)

    def say(self, words: str) -> None:
        """Something worth a line of its own."""
        self.end()
        print(words, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Wipe the line."""
        if self.over and self.count:
            print("\r" + " " * 100 + "\r", end="", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
