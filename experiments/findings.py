"""The tables and figures of the reproduction, from its rows. Nothing is run again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from experiments import theory
from experiments.comparison import Summary, summary, verdict, welch
from experiments.figures import Bars, Boxes, Figure, Heat, Line, Lines, Panel
from experiments.paper import (
    AS_IN_2021,
    FEATURES,
    OURS,
    REASONS,
    STOPPED,
    THEORY,
    Cell,
    Experiment,
    Grid,
)
from experiments.sections import Section
from experiments.trials import TrialRow
from untwist.arguments import Array

__all__ = ["ABSENT", "BESIDE", "ROUNDS", "Results", "best_row", "figures", "interval", "number", "sections", "spans"]

ABSENT = "—"
BESIDE = ": beside the published numbers"  # how the titles of such tables end
SHORT = {
    "PILBoost alpha=": "PILBoost ",
    "stopped, careful": "careful",
    "XGBoost stopped, clean data": "XGBoost cheating",
    OURS: "untwist",
    AS_IN_2021: "XGBoost 2021",
}
ROUNDS = 1000  # the paper's


class Results:
    """The rows of one setting, by cell; errors and other settings are left out."""

    def __init__(self, rows: Iterable[TrialRow], runs: int, rounds: int) -> None:
        self.runs, self.rounds = runs, rounds
        self.by_key = {row.key: row for row in rows if not row.error}

    def of(self, cell: Cell) -> list[TrialRow]:
        """What there is of a cell, by seed."""
        keys = (trial.key for trial in cell.trials(self.runs, self.rounds))
        return [self.by_key[key] for key in keys if key in self.by_key]

    def values(self, cell: Cell, what: str = "accuracy") -> Array:
        """One number per run."""
        return np.array([getattr(row, what) for row in self.of(cell)], dtype=np.float64)

    def summary(self, cell: Cell, what: str = "accuracy") -> Summary:
        """Of all runs."""
        return summary(self.values(cell, what))

    def lead(self, ours: Cell, theirs: Cell) -> Summary:
        """Accuracy of one cell less that of another, over the seeds that both have."""
        return self.pooled_lead([(ours, theirs)])

    def pooled_lead(self, pairs: Iterable[tuple[Cell, Cell]]) -> Summary:
        """The mean lead over pairs of cells, run by run, over the seeds that all have."""
        by_pair = []
        for ours, theirs in pairs:
            one, other = ({row.seed: row.accuracy for row in self.of(cell)} for cell in (ours, theirs))
            by_pair.append({seed: one[seed] - other[seed] for seed in one.keys() & other.keys()})
        seeds = sorted(set[int].intersection(*(set(each) for each in by_pair)))
        return summary([np.mean([each[seed] for each in by_pair]) for seed in seeds])

    def importances(self, cell: Cell) -> Array:
        """Mean over runs, one number per column of the table."""
        profiles = [[float(one) for one in row.importances.split()] for row in self.of(cell)]
        return np.mean(profiles, axis=0) if profiles else np.zeros(0)


def number(value: float, digits: int = 3, sign: bool = False) -> str:
    """A number, or a dash where there is none."""
    return f"{value:{'+' if sign else ''}.{digits}f}" if np.isfinite(value) else ABSENT


def interval(one: Summary, digits: int = 3, sign: bool = False) -> str:
    """A mean and half of its interval."""
    if not one.runs:
        return ABSENT
    return number(one.mean, digits, sign) + (f" ± {one.half:.{digits}f}" if one.runs > 2 else "")  # of two: absurd


# ---- tables ----


def sections(experiment: Experiment, results: Results) -> list[Section]:
    """All tables of an experiment."""
    parts = []
    for grid in experiment.grids:
        parts.append(_wide(experiment, grid, results))
        if grid.published:
            parts.append(_beside(experiment, grid, results))
    return parts + [make(experiment, results) for make in EXTRAS.get(experiment.name, ())]


def _wide(experiment: Experiment, grid: Grid, results: Results) -> Section:
    digits = 3 if experiment.shown == "accuracy" else 2
    table = [
        [
            row,
            *(
                interval(results.summary(grid.cells[row, column], experiment.shown), digits)
                if (row, column) in grid.cells
                else ""
                for column in grid.columns
            ),
        ]
        for row in grid.rows
    ]
    what = "Accuracy on clean test rows" if experiment.shown == "accuracy" else "Seconds"
    note = f"{what}: mean and half of its 95 % interval; {_runs(grid, results)}, {results.rounds} rounds."
    return Section(f"{experiment.title} ({grid.title})", note, [grid.corner, *grid.columns], table)


def _runs(grid: Grid, results: Results) -> str:
    """How many runs the cells have."""
    counts = [len(results.of(cell)) for cell in grid.cells.values()]
    return f"{max(counts)} runs" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)} runs"


def _beside(experiment: Experiment, grid: Grid, results: Results) -> Section:
    """Ours and the published numbers; both ± are population standard deviations, as in the paper."""
    timed = experiment.shown == "seconds"
    table = []
    for (row, column), published in grid.published.items():
        ours = results.summary(grid.cells[row, column], experiment.shown)
        digits = published.digits
        if not ours.runs:
            table.append([row, column, ABSENT, number(published.mean, digits), ABSENT, "skipped"])
        elif timed:
            faster = f"{published.mean / ours.mean:.1f} times" if results.rounds == ROUNDS else ABSENT
            table.append([row, column, number(ours.mean, 2), number(published.mean, 2), faster, ""])
        else:
            found = verdict(ours, published)
            words = found.words if results.rounds == ROUNDS else "other rounds"
            if words in ("better", "differs"):
                words += f": {REASONS.get((experiment.name, row, column), 'not explained')}"
            numbers = (f"{number(one.mean)} ± {one.sd:.3f}" for one in (ours, published))
            table.append([row, column, *numbers, number(found.difference, 3, sign=True), words])
    note = (
        "The published times are of another machine: the ratio is of machines as much as of programs."
        if timed
        else "Mean and population sd over runs. Agrees: within the sampling error of both (Welch's t, 95 %) and the "
        "rounding in print."
    )
    if results.rounds != ROUNDS:
        note += f" These are {results.rounds} rounds, the published {ROUNDS}."
    header = [
        "algorithm",
        grid.corner,
        "ours",
        "published",
        "faster" if timed else "difference",
        "" if timed else "verdict",
    ]
    return Section(f"{experiment.title}{BESIDE}", note, header, table)


def _welch_test(experiment: Experiment, results: Results) -> Section:
    cells = experiment.grids[0].cells
    ours = cells["PILBoost alpha=1.1", "insider"]
    table = []
    for row in experiment.grids[0].rows[1:]:
        theirs = cells[row, "insider"]
        both = results.values(ours), results.values(theirs)
        p = f"{welch(*both):.2g}" if min(map(len, both)) > 1 else ABSENT
        kept = results.summary(theirs, "kept")
        table.append([row, interval(results.lead(ours, theirs), sign=True), p, number(kept.mean, 0)])
    note = (
        "Accuracy of PILBoost alpha=1.1 less that of the others, run by run with a 95 % interval; p of Welch's test, "
        "which the paper gives as .004 for XGBoost; rounds that were kept, on average."
    )
    return Section("Under the insider: who is ahead", note, ["PILBoost against", "lead", "p", "rounds kept"], table)


def _profiles(experiment: Experiment, results: Results) -> Section:
    grid = experiment.grids[0]
    table = []
    for row in grid.rows:
        before, after = (results.importances(grid.cells[row, column]) for column in grid.columns)
        if not (before.size and after.size):
            table.append([row, *[ABSENT] * 5])
            continue
        spread = [np.exp(-np.sum(p[p > 0] * np.log(p[p > 0]))) for p in (before, after)]
        moved = np.abs(after - before).sum() / 2
        table.append([row, *(f"{p[8]:.3f}" for p in (before, after)), *(f"{s:.1f}" for s in spread), f"{moved:.3f}"])
    note = (
        "Importance of PageValues without and with the insider; the number of columns that the profile is spread over "
        "(exp of its entropy; 17 is uniform); the share of importance that the insider moved to other columns. As in "
        "the paper, importance is the sum of leverage times impurity for PILBoost and untwist, the mean gain of a "
        "split for XGBoost; for LightGBM it is the total gain: compare within a row."
    )
    header = ["importances of", "PageValues", "with insider", "spread", "with insider", "moved"]
    return Section("Feature importances", note, header, table)


def _estimates(experiment: Experiment, results: Results) -> Section:
    table = []
    for grid in experiment.grids:
        for row in ("Menon", "Original Learned (cheats)", "Taylor Series (cheats)"):
            each = [results.values(grid.cells[row, column], "alpha") for column in grid.columns]
            table.append([f"{grid.title}: {row}", *(f"{np.median(a):.2f}" if a.size else ABSENT for a in each)])
    note = "The alpha that each method chose, median over runs, by label noise."
    return Section("The estimated alpha", note, ["method", *experiment.grids[0].columns], table)


def _best_alpha(experiment: Experiment, results: Results) -> Section:
    table = []
    for grid in experiment.grids:
        best = [best_row(grid, column, results) for column in grid.columns]
        table.append([grid.title, *(name.removeprefix("alpha=") for name in best)])
    note = "By mean accuracy over runs; in brackets how many of the others are not worse at 95 % (paired t)."
    return Section("The best alpha by noise", note, ["data", *experiment.grids[0].columns], table)


def best_row(grid: Grid, column: str, results: Results) -> str:
    """The row of highest mean accuracy, and how many rows are not told apart from it."""
    means = {row: results.summary(grid.cells[row, column]).mean for row in grid.rows}
    if not all(np.isfinite(list(means.values()))):
        return ABSENT
    best = max(means, key=lambda row: means[row])
    gaps = (results.lead(grid.cells[best, column], grid.cells[row, column]) for row in grid.rows if row != best)
    return f"{best} ({sum(gap.mean <= gap.half for gap in gaps)})"


def spans(experiment: Experiment, results: Results) -> list[tuple[str, str, float, float]]:
    """For each row of each grid: its name, the best a_f of .1 to 15, the highest and the lowest mean accuracy."""
    found = []
    for grid in experiment.grids:
        ballpark = [column for column in grid.columns if 0.1 <= float(column) <= 15]
        for row in grid.rows:
            means = [results.summary(grid.cells[row, column]).mean for column in ballpark]
            if np.isfinite(means).all():
                best = ballpark[int(np.argmax(means))]
                found.append((f"{grid.title}, {row}", best, max(means), min(means)))
    return found


def _ranges(experiment: Experiment, results: Results) -> Section:
    table = [
        [name, best, *map(number, (high, low, high - low))] for name, best, high, low in spans(experiment, results)
    ]
    note = "Over the a_f from .1 to 15 that the paper speaks of."
    return Section("How much a_f matters", note, ["cell", "best a_f", "highest", "lowest", "range"], table)


EXTRAS = {
    "figure-insider": (_welch_test, _profiles),
    "figure-adaptive": (_estimates,),
    "alphas": (_best_alpha,),
    "step-sizes": (_ranges,),
}


# ---- figures ----


def figures(experiment: Experiment, results: Results) -> list[Figure]:
    """All figures of an experiment."""
    if experiment.name == THEORY:
        return theory.figures()
    make = {"boxes": _boxes, "lines": _lines, "importances": _importances, "heat": _heat}.get(experiment.drawn)
    return make(experiment, results) if make else []


def _short(name: str) -> str:
    for long, short in SHORT.items():
        name = name.replace(long, short)
    return name


def _box_panels(grid: Grid, results: Results) -> tuple[Panel, ...]:
    def values(column: str) -> Mapping[str, Array]:
        return {_short(row): results.values(grid.cells[row, column]) for row in grid.rows}

    numbers = grid.columns[0][0].isdigit()
    titles = {column: f"{grid.corner} {column}" if numbers else column for column in grid.columns}
    return tuple(Boxes(titles[column], "accuracy", values(column)) for column in grid.columns)


def _boxes(experiment: Experiment, results: Results) -> list[Figure]:
    panels = _box_panels(experiment.grids[0], results)
    caption = f"{experiment.note} Orange: median; green: mean; circles: outliers."
    return [Figure(experiment.name, experiment.title, caption, panels, columns=1)]


UNDRAWN = (STOPPED, "LightGBM stopped, careful")  # lines that would hide others; the table has them


def _lines(experiment: Experiment, results: Results) -> list[Figure]:
    panels = []
    for grid in experiment.grids:
        x = np.array([float(column) for column in grid.columns])
        lines = []
        for row in (row for row in grid.rows if row not in UNDRAWN):
            each = [results.summary(grid.cells[row, column]) for column in grid.columns]
            mean, half = (np.array([getattr(one, what) for one in each]) for what in ("mean", "half"))
            half = np.where([one.runs > 2 for one in each], half, 0.0)
            low, high = np.clip([mean - half, mean + half], 0.0, 1.0)  # few runs, wide intervals
            lines.append(Line(_short(row), x, mean, low, high, ours=row == OURS))
        panels.append(Lines(grid.title, grid.corner, "accuracy", tuple(lines)))
    return [Figure(experiment.name, experiment.title, experiment.note, tuple(panels))]


def _importances(experiment: Experiment, results: Results) -> list[Figure]:
    grid = experiment.grids[0]
    profiled = ("PILBoost alpha=1.1", "XGBoost", "XGBoost lambda=20", "XGBoost stopped, clean data", STOPPED, OURS)
    bars = {row: {c: results.importances(grid.cells[row, c]) for c in grid.columns} for row in profiled}
    highest = max((max(values, default=0.0) for each in bars.values() for values in each.values()), default=0.0)
    panels = tuple(
        Bars(_short(row), "importance", FEATURES, each, y_range=(0.0, 1.05 * highest or 1.0))
        for row, each in bars.items()
    )
    caption = (
        "Normalised feature importances without and with the insider, mean over runs: for boosters of ours the "
        "paper's (by leverage and impurity), for XGBoost gain."
    )
    boxes = _box_panels(grid, results)
    scores = Figure("figure-insider-accuracy", "The insider twister: accuracies", experiment.note, boxes, columns=1)
    return [Figure(experiment.name, f"{experiment.title}: importances", caption, panels), scores]


def _heat(experiment: Experiment, results: Results) -> list[Figure]:
    panels = tuple(
        Heat(
            grid.title,
            grid.corner,
            "alpha",
            grid.columns,
            [row.removeprefix("alpha=") for row in grid.rows],
            np.array([[results.summary(grid.cells[row, column]).mean for column in grid.columns] for row in grid.rows]),
        )
        for grid in experiment.grids
    )
    caption = f"Mean accuracy. {experiment.note}"
    return [Figure(experiment.name, experiment.title, caption, panels, columns=3)]
