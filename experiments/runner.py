"""The runner: does what a results file lacks, in parallel, and can be stopped and started at any time."""

from __future__ import annotations

import math
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import astuple
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar, cast

from threadpoolctl import threadpool_limits

from experiments.results import Result, Writer, list_columns, read
from untwist.progress import ProgressLine, describe_progress

__all__ = ["measure", "record", "run", "summarise_error", "time_fit", "work_alone"]

J = TypeVar("J")
M = TypeVar("M")
R = TypeVar("R", bound=Result)
T = TypeVar("T")


def measure(
    wanted: Mapping[Any, J],
    judge: Callable[[J], list[R]],
    path: Path,
    kind: type[R],
    *,
    processes: int = 1,
    minutes: float | None = None,
    again: Callable[[R], bool] = lambda _: False,
    describe: Callable[[R], str] = lambda row: ", ".join(map(str, cast(Iterable[object], row.key))),
) -> list[R]:
    """Run the jobs that a results file lacks, and read the rows of all that are wanted.

    Parameters
    ----------
    wanted : mapping
        Jobs by the key of a row; a job with several rows is there several times.
    judge : callable
        Gives the rows of a job. It and the jobs can be pickled.
    path, kind : Path and type
        The results file and what its rows are.
    processes : int
        How many run at a time.
    minutes : float, optional
        Nothing new is begun after so many.
    again : callable
        Whether a row that is there is to be run anew. Rows with an error are.
    describe : callable
        Says which row is done.

    Returns
    -------
    list
        The rows of the jobs wanted.
    """
    done = {row.key for row in read(path, kind) if not row.error and not again(row)}
    missing = list({id(job): job for key, job in wanted.items() if key not in done}.values())
    deadline = math.inf if minutes is None else time.time() + 60.0 * minutes
    left = 0
    with Writer(path, list_columns(kind)) as results, ProgressLine() as line:
        try:
            for count, rows in enumerate(run(missing, partial(_judge_in_time, judge, deadline), processes), start=1):
                left += rows is None
                for row in rows or []:
                    results.add(astuple(row))  # type: ignore[call-overload]  # Result asks for a dataclass, which a protocol cannot say.
                    if row.error:
                        line.print_status(f"failed: {describe(row)}: {row.error}")
                if rows:
                    line.show(f"{describe_progress(count, len(missing), line.seconds, 'jobs')} ({describe(rows[-1])})")
        except KeyboardInterrupt:
            line.print_status(f"Stopped; what is done is in {path}, and the same command goes on from there.")
            raise
        if left:
            line.print_status(f"{left} jobs are left: the same command goes on from there.")
    return [row for row in read(path, kind) if row.key in wanted]


def _judge_in_time(judge: Callable[[J], list[R]], deadline: float, job: J) -> list[R] | None:
    """The rows of a job, or None where it is too late to begin."""
    return judge(job) if time.time() < deadline else None


def run(jobs: list[J], work: Callable[[J], T], processes: int) -> Iterator[T]:
    """Run jobs and give their results in the order in which they get ready.

    Parameters
    ----------
    jobs : list
        What is to be done.
    work : callable
        Does a job. It and the jobs can be pickled.
    processes : int
        How many run at a time; one gives the results in the order of the jobs.
    """
    if processes == 1 or not jobs:
        yield from map(work, jobs)
        return
    ignore_interrupts = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that writes the file.
    pool = ProcessPoolExecutor(
        min(processes, len(jobs)), get_context("spawn"), initializer=signal.signal, initargs=ignore_interrupts
    )
    try:
        waiting: set[Future[T]] = set()
        queue = iter(jobs)
        while True:
            for job in queue:
                waiting.add(pool.submit(work, job))
                if len(waiting) >= 2 * processes:
                    break
            if not waiting:
                return
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in ready)
    except BrokenProcessPool as error:
        raise ValueError("a worker process died (out of memory?); run again to go on where it ended") from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def record(tasks: list[J], judge: Callable[[J], list[list[Any]]], columns: list[str], out: Path) -> list[list[Any]]:
    """Judge tasks on all cores, and write their rows to a new file.

    Parameters
    ----------
    tasks : list
        What `judge` is given, one after the other.
    judge : callable
        Returns some rows, which have a cell for each column.
    columns : list of str
        The heading of the file.
    out : Path
        The file.

    Returns
    -------
    list of lists
        All rows.
    """
    rows: list[list[Any]] = []
    with Writer(out, columns, resume=False) as results, ProgressLine() as line:
        for count, some in enumerate(run(tasks, judge, len(os.sched_getaffinity(0))), start=1):
            for row in some:
                results.add(row)
            rows += some
            line.show(describe_progress(count, len(tasks), line.seconds, "runs"))
    return rows


@contextmanager
def work_alone() -> Iterator[None]:
    """Keep to one thread and ignore warnings, which are the business of whoever is compared."""
    with warnings.catch_warnings(), threadpool_limits(1):  # HistGradientBoosting has no other switch for threads.
        warnings.simplefilter("ignore")
        yield


def time_fit(fit: Callable[[], M]) -> tuple[M, float]:
    """Fit, and measure the time it takes.

    Parameters
    ----------
    fit : callable
        Returns a fitted model.

    Returns
    -------
    object
        The model.
    float
        Seconds of processor time, whatever else the machine does.
    """
    start = time.process_time()
    model = fit()
    return model, time.process_time() - start


def summarise_error(error: BaseException) -> str:
    """Write an error as a line of at most 300 characters.

    Parameters
    ----------
    error : BaseException
        The error.

    Returns
    -------
    str
    """
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
