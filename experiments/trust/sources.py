"""Is a bad source found, and no good one accused? Eight sources of unequal size, one of which is bad."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.datasets import Labels
from experiments.protocol import make_rng
from experiments.tables import TextTable
from experiments.trust.parts import Job, Part, write_mean, write_share
from experiments.trust.worlds import FOUR_WORLDS, flip, simulate, spread_evenly
from untwist.arguments import Array
from untwist.audit import audit_labels

__all__ = ["SOURCES", "SourcesRow"]

NAN = math.nan
#: The worlds, and how many samples there are of each.
WORLDS = ("easy", "hard", *FOUR_WORLDS)
SEEDS = 20
#: The rows of each source; the smallest ones have to be told too.
SIZES = (1000, 800, 600, 400, 400, 400, 200, 200)
QUICK_SIZES = (150, 100, 100)
#: The share of wrong labels of the bad source, and of all others at most.
BAD_RATE = 0.45
MOST_OF_GOOD = 0.05
#: How far off the share of a small source may be.
CLOSE = 0.05


@dataclass(frozen=True)
class SourcesRow:
    """One audit with sources.

    Attributes
    ----------
    world, n_rows, seed
        What was run.
    found : float
        1 where the bad source stands out.
    accused : float
        How many good ones do.
    recall, precision : float
        Of the suspects among the wrong labels of the bad source, and of all suspects.
    recall_without : float
        The recall of an audit that is not told the sources.
    small_error : float
        How far off the shares of the smallest sources are, in the mean.
    small_close : float
        The share of these that are off by no more than `CLOSE`.
    bad_covers, covers : float
        Whether the interval of the bad source holds its share of wrong labels, and of how many of all sources it does.
    class_covers : float
        Of how many sources and classes the interval holds the rate that was used.
    bad_width : float
        The width of the bad source's interval.
    error : str
        What went wrong.
    """

    world: str
    n_rows: int
    seed: int
    found: float = NAN
    accused: float = NAN
    recall: float = NAN
    precision: float = NAN
    recall_without: float = NAN
    small_error: float = NAN
    small_close: float = NAN
    bad_covers: float = NAN
    covers: float = NAN
    class_covers: float = NAN
    bad_width: float = NAN
    error: str = ""

    @property
    def key(self) -> Job:
        """What was run."""
        return self.world, self.n_rows, self.seed


def list_jobs(quick: bool, folder: str | None) -> list[Job]:  # noqa: ARG001
    """List the samples, those of four classes first."""
    if quick:
        return [("easy", sum(QUICK_SIZES), 0)]
    return [(world, sum(SIZES), seed) for world in reversed(WORLDS) for seed in range(SEEDS)]


def judge(job: Job, folder: str | None) -> list[SourcesRow]:  # noqa: ARG001
    """Audit one sample with its sources, and once without."""
    X, labels, wrong, source, rates, bad = _plant(job)
    seed = job[2]
    names = np.array([f"branch {index}" for index in range(len(rates))])
    audit = audit_labels(X, labels, source=names[source], n_jobs=1, random_state=seed)
    without = audit_labels(X, labels, n_jobs=1, random_state=seed)
    noise = audit.context.by_source
    assert noise is not None
    sizes = np.bincount(source)
    shares = np.array([wrong[source == index].mean() for index in range(len(sizes))])
    small = np.flatnonzero(sizes == min(sizes))
    errors = np.abs(noise.shares - shares)[small]
    covered = (noise.intervals[:, 0] <= shares) & (shares <= noise.intervals[:, 1])
    low, high = noise.class_intervals[..., 0], noise.class_intervals[..., 1]
    suspects = audit.suspects()
    to_find = np.flatnonzero(wrong & (source == bad))
    return [
        replace(
            SourcesRow(*job),
            found=float(noise.stands_out[bad]),
            accused=float(np.delete(noise.stands_out, bad).sum()),
            recall=float(np.isin(to_find, suspects).mean()),
            precision=float(wrong[suspects].mean()) if len(suspects) else NAN,
            recall_without=float(np.isin(to_find, without.suspects()).mean()),
            small_error=float(errors.mean()),
            small_close=float(np.mean(errors <= CLOSE)),
            bad_covers=float(covered[bad]),
            covers=float(covered.mean()),
            class_covers=float(np.mean((low <= rates[:, None]) & (rates[:, None] <= high))),
            bad_width=float(np.diff(noise.intervals[bad])[0]),
        )
    ]


class Planted(NamedTuple):
    """Rows with the labels of sources: which are wrong, who gave them, the rate of each source, and the bad one."""

    X: Array
    labels: Labels
    wrong: NDArray[np.bool_]
    source: Labels
    rates: Array
    bad: int


def _plant(job: Job) -> Planted:
    """Draw a world, sources for its rows, one of which is bad, and their labels."""
    world, n_rows, _ = job
    rng = make_rng("sources", *job)
    X, truth, posterior = simulate(world, n_rows, rng)
    sizes = SIZES if n_rows == sum(SIZES) else QUICK_SIZES
    source = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    rates = rng.uniform(0.0, MOST_OF_GOOD, len(sizes))
    bad = int(rng.integers(len(sizes)))
    rates[bad] = BAD_RATE
    labels = flip(truth, spread_evenly(rates, posterior.shape[1])[source], rng)
    return Planted(X, labels, labels != truth, source, rates, bad)


def make_tables(rows: list[SourcesRow]) -> list[TextTable]:
    """Make the table, a line for each world."""
    lines = []
    for world in dict.fromkeys(row.world for row in rows):
        here = [row for row in rows if row.world == world]
        lines.append(
            [
                world,
                f"{sum(row.found for row in here):.0f} of {len(here)}",
                f"{sum(row.accused == 0 for row in here)} of {len(here)}",
                write_mean(row.recall for row in here),
                write_mean(row.precision for row in here),
                write_mean(row.recall_without for row in here),
                write_mean(row.small_error for row in here),
                write_share(row.small_close for row in here),
                f"{sum(row.bad_covers for row in here):.0f} of {len(here)}",
                write_mean((row.covers for row in here), 2),
                write_mean((row.class_covers for row in here), 2),
                write_mean((row.bad_width for row in here), 2),
            ]
        )
    header = [
        "world",
        "bad found",
        "none accused",
        "recall",
        "precision",
        "without source",
        "error",
        f"within {CLOSE:g}",
        "bad covered",
        "covered",
        "by class",
        "width",
    ]
    note = (
        f"{len(SIZES)} sources of {min(SIZES)} to {max(SIZES)} rows; one is wrong in {BAD_RATE:.0%}, others in 0 to "
        f"{MOST_OF_GOOD:.0%}. Recall of the bad one's wrong labels among the suspects, and without source=; the error "
        "of the shares of the smallest sources; how often intervals hold the truth."
    )
    return [TextTable("planted sources", note, header, lines)]


#: The part.
SOURCES = Part("sources", "Is a bad source found, and no good one accused?", SourcesRow, list_jobs, judge, make_tables)
