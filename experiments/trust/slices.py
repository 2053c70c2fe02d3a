"""Slices and hidden sources: how many are false where there are none, and how many are found that were planted."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from experiments.datasets import Table, list_names, load
from experiments.protocol import applies, make_rng, split
from experiments.tables import TextTable
from experiments.trust.parts import Job, Part, write_mean, write_share
from experiments.trust.worlds import (
    DESIGN_WORLDS,
    FOUR_WORLDS,
    JUDGING_WORLDS,
    RANDOM_WORLDS,
    flip,
    simulate,
    spread_evenly,
)
from untwist.audit import audit_labels
from untwist.audit.hidden_sources import allow_for

__all__ = ["SLICES", "SlicesRow"]

NAN = math.nan
#: What the labels of a simulated world are like: the same noise everywhere, or a part that is worse.
EVEN = ("0-0", "20-20", "10-30")
PLANTED = ("branch-45", "branch-20", "branch-45-hidden", "time")
#: How real sets are twisted; a slice is then false, as noise is the same everywhere.
REAL_TWIST = "symmetric-0.2"
WORLDS = (*DESIGN_WORLDS, *JUDGING_WORLDS, *RANDOM_WORLDS, *FOUR_WORLDS)
SEEDS = 10
ROWS = 4_000
QUICK_ROWS = 400
#: The categories of the column that may be worse in one of them, and the share of wrong labels of all others.
BRANCHES = ("Bonn", "Kiel", "Leipzig", "Ulm", "Worms", "Trier", "Jena", "Halle")
BAD = "Leipzig"
ELSEWHERE = 0.05


@dataclass(frozen=True)
class SlicesRow:
    """One audit of a table with a column of branches.

    Attributes
    ----------
    data, noise, n_rows, seed
        What was run: a world or a real set, and what its labels are like.
    named, false : float
        Slices that were named, and how many of them are none.
    found : float
        1 where the planted one is among them.
    spoke : float
        1 where a hidden source was reported.
    spoke_right : float
        1 where it was the column that had one.
    error : str
        What went wrong.
    """

    data: str
    noise: str
    n_rows: int
    seed: int
    named: float = NAN
    false: float = NAN
    found: float = NAN
    spoke: float = NAN
    spoke_right: float = NAN
    error: str = ""

    @property
    def key(self) -> Job:
        """What was run."""
        return self.data, self.noise, self.n_rows, self.seed


def list_jobs(quick: bool, folder: str | None) -> list[Job]:
    """List the samples, those of real sets first."""
    if quick:
        return [("easy", noise, QUICK_ROWS, 0) for noise in ("20-20", "branch-45")]
    real = [
        (data, REAL_TWIST, ROWS, seed)
        for data in list_names(folder)
        if applies(REAL_TWIST, _load(data, folder))
        for seed in range(2)
    ]
    return real + [
        (world, noise, ROWS, seed)
        for seed in range(SEEDS)
        for world in reversed(WORLDS)
        for noise in (*EVEN, *PLANTED)
        if not (world.startswith("four") and noise == "10-30")
    ]


@lru_cache(maxsize=2)
def _load(data: str, folder: str | None) -> Table:
    return load(data, folder)


def judge(job: Job, folder: str | None) -> list[SlicesRow]:
    """Audit one sample."""
    data, noise, n_rows, seed = job
    bad_column = where = ""
    if data in WORLDS:
        X, labels = _draw(job)
        if noise.startswith("branch"):
            bad_column, where = "branch", BAD
        elif noise == "time":
            bad_column = "time"
    else:
        X, labels, *_ = split(_load(data, folder), noise, seed, n_rows)
    audit = audit_labels(X, labels, n_jobs=1, random_state=seed)
    hidden = next(iter(audit.hidden_sources()), None)
    slices = (audit if hidden is None else allow_for(audit, hidden)).slices()
    true = [one for one in slices if one.column == bad_column and where in str(one.where)]
    return [
        replace(
            SlicesRow(*job),
            named=float(len(slices)),
            false=float(len(slices) - len(true)),
            found=float(bool(true)) if bad_column and bad_column in X else NAN,
            spoke=float(hidden is not None),
            spoke_right=float(hidden is not None and hidden.column == bad_column) if bad_column in X else NAN,
        )
    ]


def _draw(job: Job) -> tuple[Any, Any]:
    """Draw a world with columns of branches, of days and of one category of three that has nothing to do with noise."""
    import pandas as pd

    world, noise, n_rows, _ = job
    rng = make_rng("slices", *job)
    X, truth, posterior = simulate(world, n_rows, rng)
    n_classes = posterior.shape[1]
    branch = rng.choice(BRANCHES, size=n_rows)
    time = rng.random(n_rows)
    if noise.startswith("branch"):
        rate = np.where(branch == BAD, int(noise.split("-")[1]) / 100, ELSEWHERE)
    elif noise == "time":
        # Labels of the last third are wrong more and more often.
        rate = ELSEWHERE + 0.4 * np.clip(3.0 * time - 2.0, 0.0, 1.0)
    else:
        neg, pos = (int(one) / 100 for one in noise.split("-"))
        rate = np.where(truth == 0, neg, pos)
    labels = flip(truth, spread_evenly(rate, n_classes), rng)
    frame = pd.DataFrame(X, columns=[f"x{index}" for index in range(X.shape[1])])
    frame["shape"] = pd.Categorical(rng.choice(["round", "long", "flat"], size=n_rows))
    if not noise.endswith("hidden"):
        frame["branch"] = pd.Categorical(branch)
    frame["time"] = time
    return frame, labels


def make_tables(rows: list[SlicesRow]) -> list[TextTable]:
    """Make the tables: false slices and false alarms first, then what was planted, by half."""
    halves = {
        "judging": (*JUDGING_WORLDS, *RANDOM_WORLDS),
        "design": DESIGN_WORLDS,
        "four classes": FOUR_WORLDS,
        "real sets": tuple({row.data for row in rows} - set(WORLDS)),
    }
    lines = []
    for noise in (*EVEN, REAL_TWIST, *PLANTED):
        for half, data in halves.items():
            here = [row for row in rows if row.noise == noise and row.data in data]
            if here:
                named = sum(row.named for row in here)
                lines.append(
                    [
                        f"{noise}, {half}",
                        str(len(here)),
                        write_mean((row.named for row in here), 2),
                        f"{sum(row.false for row in here) / named:.2f}" if named else "-",
                        write_share(float(row.false > 0) for row in here),
                        write_share(row.found for row in here),
                        write_share(row.spoke for row in here),
                        write_share(row.spoke_right for row in here),
                    ]
                )
    header = ["noise, where", "runs", "named", "false", "any false", "found", "spoke", "rightly"]
    note = (
        "Slices: how many are named in the mean, which share of all is false, how many runs name a false one, and how "
        "often the planted one is found. A hidden source: how often one is reported, and how often rightly."
    )
    return [TextTable("slices and hidden sources", note, header, lines)]


#: The part.
SLICES = Part("slices", "Are slices false where there are none?", SlicesRow, list_jobs, judge, make_tables)
