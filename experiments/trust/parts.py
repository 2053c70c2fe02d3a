"""A part of the evidence: what is to be run, how a job is judged, and the tables of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from experiments.results import Result, Writer, list_columns, read
from experiments.runner import run, summarise_error, work_alone
from experiments.tables import TextTable
from untwist.progress import ProgressLine, describe_progress

__all__ = ["Job", "Part", "write_mean", "write_number", "write_share"]

R = TypeVar("R", bound=Result)
#: A job is a tuple of numbers and text: the first columns of its rows.
Job = tuple[Any, ...]


@dataclass(frozen=True)
class Part(Generic[R]):
    """A part of the evidence.

    Attributes
    ----------
    name, words : str
        The name of the part and of its file, and what it asks.
    kind : type
        What its rows are: the first columns are the job, and the key of a row begins with it.
    list_jobs : callable
        Takes whether to be quick and the folder of the data sets; gives the jobs, the longest first.
    judge : callable
        Takes a job and that folder; gives its rows.
    make_tables : callable
        Takes rows without errors; gives what they say, what is lost first.
    """

    name: str
    words: str
    kind: type[R]
    list_jobs: Callable[[bool, str | None], list[Job]]
    judge: Callable[[Job, str | None], list[R]]
    make_tables: Callable[[list[R]], list[TextTable]]

    def measure(self, jobs: list[Job], path: Path, folder: str | None, processes: int) -> None:
        """Run the jobs that the results file lacks, and write their rows to it.

        Parameters
        ----------
        jobs : list
            What is wanted.
        path : Path
            The results file.
        folder : str, optional
            The folder of the data sets.
        processes : int
            How many run at a time.
        """
        done = {_find_job(row, jobs) for row in read(path, self.kind) if not row.error}
        missing = [job for job in jobs if job not in done]
        judge = partial(judge_safely, judge=self.judge, kind=self.kind, folder=folder)
        with Writer(path, list_columns(self.kind)) as results, ProgressLine() as line:
            try:
                for count, rows in enumerate(run(missing, judge, processes), start=1):
                    for row in rows:
                        results.add(astuple(row))  # type: ignore[call-overload]  # A protocol cannot ask for a dataclass.
                        if row.error:
                            line.print_status(f"failed: {self.name}, {row.key}: {row.error}")
                    line.show(f"{self.name}: {describe_progress(count, len(missing), line.seconds, 'jobs')}")
            except KeyboardInterrupt:
                line.print_status(f"Stopped; what is done is in {path}, and the same command goes on from there.")
                raise

    def read(self, jobs: list[Job], path: Path) -> list[R]:
        """Read the rows of these jobs, those with errors too.

        Parameters
        ----------
        jobs : list
            What is wanted.
        path : Path
            The results file.

        Returns
        -------
        list
        """
        wanted = set(jobs)
        return [row for row in read(path, self.kind) if _find_job(row, jobs) in wanted]


def _find_job(row: Any, jobs: list[Job]) -> Job:
    """Return the job of a row, which its key begins with."""
    return tuple(row.key)[: len(jobs[0])] if jobs else ()


def judge_safely(job: Job, judge: Callable[[Job, str | None], list[R]], kind: type[R], folder: str | None) -> list[R]:
    """Judge a job with one thread. An error is a result too.

    Parameters
    ----------
    job : tuple
        The job.
    judge, kind, folder
        Those of the part, and the folder of the data sets.

    Returns
    -------
    list
        Its rows, or one with the error.
    """
    try:
        with work_alone():
            return judge(job, folder)
    except Exception as error:  # Whatever goes wrong belongs in the row.
        row: Any = kind(*job)
        return [replace(row, error=summarise_error(error))]


# ---- cells of tables ----


def write_number(value: float, digits: int = 3) -> str:
    """Write a number, or a dash for one that is missing.

    >>> write_number(0.12345), write_number(float("nan"))
    ('0.123', '-')
    """
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


def write_share(flags: Iterable[float]) -> str:
    """Write in which share of some cases it was so, leaving out those that are missing.

    >>> write_share([1.0, 0.0, 1.0, float("nan")])
    '67 %'
    """
    known = [flag for flag in flags if not np.isnan(flag)]
    return f"{100 * np.mean(known):.0f} %" if known else "-"


def write_mean(values: Iterable[float], digits: int = 3) -> str:
    """Write the mean of what is not missing.

    >>> write_mean([1.0, 2.0, float("nan")], 1)
    '1.5'
    """
    known = [value for value in values if not np.isnan(value)]
    return write_number(float(np.mean(known)), digits) if known else "-"
