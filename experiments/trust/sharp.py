"""Do 95 % intervals hold the truth where rows are many and classes sharp? By all that have intervals of noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.protocol import make_rng
from experiments.tables import TextTable
from experiments.trust.parts import Job, Part, write_number, write_share
from experiments.trust.worlds import flip
from untwist.arguments import Array
from untwist.audit import audit_labels
from untwist.noise import menon

__all__ = ["SHARP", "SharpRow"]

NAN = math.nan
#: The rates of the first and of the second class, in per cent. The largest samples have the first of them only.
RATES = ("20-20", "10-30", "12-12", "0-20")
#: By the number of rows: of how many worlds, rates and seeds there are samples.
SAMPLES = {100_000: (3, 4, 1), 1_000_000: (3, 2, 1), 5_000_000: (1, 1, 1)}
QUICK_SAMPLES = {2_000: (3, 2, 1)}
#: Worlds whose classes follow from one or two of their columns without a doubt.
WORLDS = ("threshold", "steps", "corner")
#: Few columns, as most of the time goes into rows.
COLUMNS = 2
#: How many sources labels have that are all alike.
SOURCES = 4


@dataclass(frozen=True)
class SharpRow:
    """The intervals of one estimate. `found` is 1 where it says that there is noise.

    `by` is "audit", "audit by source" (of four sources that are all alike) or "menon".
    """

    world: str
    rates: str
    n_rows: int
    seed: int
    by: str = ""
    neg: float = NAN
    neg_low: float = NAN
    neg_high: float = NAN
    pos: float = NAN
    pos_low: float = NAN
    pos_high: float = NAN
    found: float = NAN
    error: str = ""

    @property
    def key(self) -> Job:
        """What was run."""
        return self.world, self.rates, self.n_rows, self.seed, self.by

    def covers(self, what: str) -> float:
        """Tell whether the interval of "neg" or "pos" holds the truth: 1 or 0."""
        truth, low, high = (getattr(self, what + end) for end in ("", "_low", "_high"))
        # A limit is a number that was rounded to six digits.
        return float(low - 1e-6 <= truth <= high + 1e-6)

    def width(self, what: str) -> float:
        """Return how wide the interval is."""
        return float(getattr(self, what + "_high") - getattr(self, what + "_low"))


def list_jobs(quick: bool, folder: str | None) -> list[Job]:  # noqa: ARG001
    """List the samples, the largest last."""
    return [
        (world, rate, n_rows, seed)
        for n_rows, (n_worlds, n_rates, n_seeds) in (QUICK_SAMPLES if quick else SAMPLES).items()
        for seed in range(n_seeds)
        for world in WORLDS[:n_worlds]
        for rate in RATES[:n_rates]
    ]


def judge(job: Job, folder: str | None) -> list[SharpRow]:  # noqa: ARG001
    """Estimate the rates of one sample in every way."""
    world, rates, n_rows, seed = job
    X = make_rng("sharp", world, n_rows, seed).normal(size=(n_rows, COLUMNS))
    truth = {
        "threshold": X[:, 0] > 0,
        "steps": np.floor(2.0 * X[:, 0]) % 2 == 0,
        "corner": (X > -0.5).all(axis=1),
    }[world].astype(np.int64)
    neg, pos = (int(rate) / 100 for rate in rates.split("-"))
    rng = make_rng("sharp labels", *job)
    labels = flip(truth, np.array([[1.0 - neg, neg], [pos, 1.0 - pos]]), rng)
    audit = audit_labels(X, labels, n_jobs=1, random_state=seed)
    source = rng.integers(SOURCES, size=n_rows)
    by_source = audit_labels(y=labels, pred_probs=audit.posterior, source=source)
    of_paper = menon(X, labels, random_state=seed)

    def write(by: str, intervals: Sequence[tuple[float, float]], found: bool) -> SharpRow:
        ends: Array = np.array(intervals, dtype=np.float64)
        return replace(
            SharpRow(*job),
            by=by,
            neg=neg,
            neg_low=float(ends[0, 0]),
            neg_high=float(ends[0, 1]),
            pos=pos,
            pos_low=float(ends[1, 0]),
            pos_high=float(ends[1, 1]),
            found=float(found),
        )

    return [
        write("audit", [one[1:] for one in audit.noise.list_class_shares()], audit.noise.found),
        write("audit by source", [one[1:] for one in by_source.noise.list_class_shares()], by_source.noise.found),
        write("menon", [of_paper.interval_neg, of_paper.interval_pos], of_paper.found),
    ]


def make_tables(rows: list[SharpRow]) -> list[TextTable]:
    """Make the table: coverage and width by estimate and size, then the samples that are lost."""
    cells: dict[tuple[str, int], list[SharpRow]] = {}
    for row in sorted(rows, key=lambda row: (row.by, row.n_rows)):
        cells.setdefault((row.by, row.n_rows), []).append(row)
    lines = []
    for (by, n_rows), here in cells.items():
        line = [by, f"{n_rows:,}", str(len(here)), write_share(row.found for row in here)]
        for what in ("neg", "pos"):
            covered = float(np.mean([row.covers(what) for row in here]))
            width = float(np.median([row.width(what) for row in here]))
            line.append(f"{write_number(covered, 2)} ({write_number(width)})")
        lines.append(line)
    note = (
        "How often the 95 % interval holds the rate of each class, and in brackets its median width, where classes "
        "follow from one or two columns without a doubt. The sources are four that are all alike."
    )
    lost = [
        [row.by, row.world, row.rates, f"{row.n_rows:,}", what]
        for row in rows
        for what in ("neg", "pos")
        if not row.covers(what)
    ]
    return [
        TextTable("many rows, sharp classes", note, ["by", "rows", "runs", "found", "neg", "pos"], lines),
        TextTable(
            f"intervals that leave out the truth, {len(lost)} of {2 * len(rows)}",
            "Of intervals of 95 % one in twenty may.",
            ["by", "world", "rates", "rows", "class"],
            lost,
        ),
    ]


#: The part.
SHARP = Part("sharp", "Do 95 % intervals hold the truth of many sharp rows?", SharpRow, list_jobs, judge, make_tables)
