"""Do 95 % intervals hold the truth? Whole fits and audits of simulated worlds of two classes, with known rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments.protocol import make_rng
from experiments.tables import TextTable
from experiments.trust.parts import Job, Part, write_number, write_share
from experiments.trust.worlds import DESIGN_WORLDS, JUDGING_WORLDS, RANDOM_WORLDS, TWO_WORLDS, flip, simulate
from untwist.audit import audit_labels

__all__ = ["COVERAGE", "CoverageRow"]

NAN = math.nan
#: The rates of the first and of the second class, in per cent.
RATES = ("0-0", "10-10", "20-20", "35-35", "10-30", "30-10", "0-30", "5-20")
#: By the number of rows, how many samples there are of each world and rates.
SAMPLES = {50_000: 4, 10_000: 8, 2_000: 16, 500: 16}
QUICK_SAMPLES = {500: 1}
#: The worlds by what they are for.
GROUPS = {"random labels": RANDOM_WORLDS, "judging": JUDGING_WORLDS, "design": DESIGN_WORLDS}
#: An interval of 95 % that covers less often than this is lost.
PROMISED = 0.9
#: What has an interval: the rate of each true class, the share of wrong labels, and the same among each label.
BOUNDED = ("neg", "pos", "share", "among_neg", "among_pos")


@dataclass(frozen=True)
class CoverageRow:
    """One audit: the truth of what is estimated, and the limits of its interval.

    `neg` and `pos` are the rates that were used, the others are shares of the sample as it was drawn. `found` is 1
    where the audit says that there is noise.
    """

    world: str
    rates: str
    n_rows: int
    seed: int
    neg: float = NAN
    neg_low: float = NAN
    neg_high: float = NAN
    pos: float = NAN
    pos_low: float = NAN
    pos_high: float = NAN
    share: float = NAN
    share_low: float = NAN
    share_high: float = NAN
    among_neg: float = NAN
    among_neg_low: float = NAN
    among_neg_high: float = NAN
    among_pos: float = NAN
    among_pos_low: float = NAN
    among_pos_high: float = NAN
    found: float = NAN
    error: str = ""

    @property
    def key(self) -> Job:
        """What was run."""
        return self.world, self.rates, self.n_rows, self.seed

    def covers(self, what: str) -> float:
        """Tell whether the interval of one of `BOUNDED` holds the truth: 1 or 0, NaN where there is none."""
        truth, low, high = (getattr(self, what + end) for end in ("", "_low", "_high"))
        # A limit is a number that was rounded to six digits.
        return NAN if np.isnan([truth, low, high]).any() else float(low - 1e-6 <= truth <= high + 1e-6)

    def width(self, what: str) -> float:
        """Return how wide the interval is."""
        return float(getattr(self, what + "_high") - getattr(self, what + "_low"))


def list_jobs(quick: bool, folder: str | None) -> list[Job]:  # noqa: ARG001
    """List the samples, the largest first."""
    worlds, rates = (("easy", "step"), ("0-0", "20-20")) if quick else (TWO_WORLDS, RATES)
    return [
        (world, rate, n_rows, seed)
        for n_rows, samples in (QUICK_SAMPLES if quick else SAMPLES).items()
        for seed in range(samples)
        for world in worlds
        for rate in rates
    ]


def judge(job: Job, folder: str | None) -> list[CoverageRow]:  # noqa: ARG001
    """Audit one sample."""
    world, rates, n_rows, seed = job
    X, truth, _ = simulate(world, n_rows, make_rng("coverage", world, n_rows, seed))
    neg, pos = (int(rate) / 100 for rate in rates.split("-"))
    matrix = np.array([[1.0 - neg, neg], [pos, 1.0 - pos]])
    labels = flip(truth, matrix, make_rng("coverage", *job))
    wrong = labels != truth
    audit = audit_labels(X, labels, n_jobs=1, random_state=seed)
    numbers: dict[str, Any] = {"neg": neg, "pos": pos, "share": float(wrong.mean())}
    numbers |= {f"among_{name}": float(wrong[labels == label].mean()) for label, name in enumerate(("neg", "pos"))}
    said = (*audit.noise.list_class_shares(), audit.noise_rate, *audit.rate_by_label.values())
    for what, (_, low, high) in zip(BOUNDED, said, strict=True):
        numbers |= {f"{what}_low": float(low), f"{what}_high": float(high)}
    return [replace(CoverageRow(*job), **numbers, found=float(audit.noise.found))]


def make_tables(rows: list[CoverageRow]) -> list[TextTable]:
    """Make the tables: cells that lose first, then coverage and width by size, and by world."""
    tables = [_list_losses(rows)]
    for half, worlds in GROUPS.items():
        here = [row for row in rows if row.world in worlds]
        if here:
            tables.append(_tabulate(f"coverage, {half} worlds", here, lambda row: (row.n_rows, _describe(row.rates))))
    tables.append(_tabulate("coverage by world", rows, lambda row: (row.world, _describe(row.rates))))
    tables.append(_tabulate("coverage by rates", rows, lambda row: (row.rates,)))
    return tables


def _describe(rates: str) -> str:
    neg, pos = rates.split("-")
    return "no noise" if rates == "0-0" else "equal" if neg == pos else "unequal"


def _group(rows: list[CoverageRow], key: Callable[[CoverageRow], tuple[Any, ...]]) -> dict[Any, list[CoverageRow]]:
    cells: dict[Any, list[CoverageRow]] = {}
    for row in rows:
        cells.setdefault(key(row), []).append(row)
    return dict(sorted(cells.items()))


def _tabulate(title: str, rows: list[CoverageRow], key: Callable[[CoverageRow], tuple[Any, ...]]) -> TextTable:
    lines = []
    for cell, here in _group(rows, key).items():
        line = [" ".join(map(str, cell)), str(len(here)), write_share(row.found for row in here)]
        for what in BOUNDED:
            covered = [row.covers(what) for row in here]
            widths = [row.width(what) for row in here]
            line.append(f"{write_number(float(np.nanmean(covered)), 2)} ({write_number(float(np.nanmedian(widths)))})")
        lines.append(line)
    note = (
        "How often the 95 % interval holds the truth, and in brackets its median width: of the rate of each class, of "
        "the share of wrong labels, and of that among the labels of each class."
    )
    return TextTable(title, note, ["", "runs", "found", *BOUNDED], lines)


def _list_losses(rows: list[CoverageRow]) -> TextTable:
    """List the cells of size and kind, by half, that cover less often than was promised."""
    lines = []
    for half, worlds in GROUPS.items():
        cells = _group([row for row in rows if row.world in worlds], lambda row: (row.n_rows, _describe(row.rates)))
        for (n_rows, kind), here in cells.items():
            for what in BOUNDED:
                covered = float(np.nanmean([row.covers(what) for row in here]))
                if covered < PROMISED:
                    lines.append([half, str(n_rows), kind, what, write_number(covered, 2), str(len(here))])
    lines.sort(key=lambda line: (list(GROUPS).index(line[0]), float(line[4])))
    note = (
        f"Cells in which the 95 % interval holds the truth in less than {PROMISED:.0%} of the runs. Where 3 % of the "
        "clean labels are random however clear the features (the world of clusters), no data tell that from noise."
    )
    return TextTable(
        f"coverage: losing cells, {len(lines)}", note, ["half", "rows", "rates", "of", "covers", "runs"], lines
    )


#: The part.
COVERAGE = Part("coverage", "Do 95 % intervals hold the truth?", CoverageRow, list_jobs, judge, make_tables)
