"""The tables and figures of the reproduction, from its rows. Nothing is run again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.paper import theory
from experiments.paper.comparison import Summary, compare_with_published, welch
from experiments.paper.declarations import (
    AS_IN_2021,
    DEFAULT,
    FEATURES,
    OURS,
    REASONS,
    STOPPED,
    THEORY,
    Experiment,
    Grid,
)
from experiments.paper.figures import Bars, Boxes, Figure, Heat, Line, Lines, Panel
from experiments.paper.outcomes import ABSENT, ROUNDS, Outcomes, format_number, format_summary
from experiments.tables import TextTable
from untwist.arguments import Array

__all__ = ["BESIDE", "describe_lead", "find_best_row", "find_spans", "make_figures", "make_tables"]

#: How the titles of tables end that stand beside published ones.
BESIDE = ": beside the published numbers"
#: Short forms of names, for figures.
SHORT = {
    "PILBoost alpha=": "PILBoost ",
    "stopped, careful": "careful",
    "XGBoost stopped, clean data": "XGBoost cheating",
    OURS: "untwist",
    AS_IN_2021: "XGBoost 2021",
}

# ---- tables ----


def make_tables(experiment: Experiment, outcomes: Outcomes) -> list[TextTable]:
    """Make all tables of an experiment."""
    if experiment.name == DEFAULT:  # The accuracies of its cells are in the tables that these come from.
        return [_list_default_leads(experiment, outcomes)]
    parts = []
    for grid in experiment.grids:
        parts.append(_list_accuracies(experiment, grid, outcomes))
        if grid.published:
            parts.append(_list_beside(experiment, grid, outcomes))
    return parts + [make(experiment, outcomes) for make in EXTRAS.get(experiment.name, ())]


def _list_accuracies(experiment: Experiment, grid: Grid, outcomes: Outcomes) -> TextTable:
    digits = 3 if experiment.shown == "accuracy" else 2
    table = [
        [
            row,
            *(
                format_summary(outcomes.summarise(grid.cells[row, column], experiment.shown), digits)
                if (row, column) in grid.cells
                else ""
                for column in grid.columns
            ),
        ]
        for row in grid.rows
    ]
    what = "Accuracy on clean test rows" if experiment.shown == "accuracy" else "Seconds"
    note = f"{what}: mean and half of its 95 % interval; {_count_runs(grid, outcomes)}, {outcomes.rounds} rounds."
    return TextTable(f"{experiment.title} ({grid.title})", note, [grid.corner, *grid.columns], table)


def _count_runs(grid: Grid, outcomes: Outcomes) -> str:
    """How many runs the cells have."""
    counts = [len(outcomes.list_rows(cell)) for cell in grid.cells.values()]
    return f"{max(counts)} runs" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)} runs"


def _list_beside(experiment: Experiment, grid: Grid, outcomes: Outcomes) -> TextTable:
    """Ours and the published numbers; both ± are population standard deviations, as in the paper."""
    timed = experiment.shown == "seconds"
    table = []
    for (row, column), published in grid.published.items():
        ours = outcomes.summarise(grid.cells[row, column], experiment.shown)
        digits = published.digits
        if not ours.runs:
            table.append([row, column, ABSENT, format_number(published.mean, digits), ABSENT, "skipped"])
        elif timed:
            faster = f"{published.mean / ours.mean:.1f} times" if outcomes.rounds == ROUNDS else ABSENT
            table.append([row, column, format_number(ours.mean, 2), format_number(published.mean, 2), faster, ""])
        else:
            found = compare_with_published(ours, published)
            words = found.words if outcomes.rounds == ROUNDS else "other rounds"
            if words in ("better", "differs"):
                words += f": {REASONS.get((experiment.name, row, column), 'not explained')}"
            numbers = (f"{format_number(one.mean)} ± {one.sd:.3f}" for one in (ours, published))
            table.append([row, column, *numbers, format_number(found.difference, 3, sign=True), words])
    note = (
        "The published times are of another machine: the ratio is of machines as much as of programs."
        if timed
        else "Mean and population sd over runs. Agrees: within the sampling error of both (Welch's t, 95 %) and the "
        "rounding in print."
    )
    if outcomes.rounds != ROUNDS:
        note += f" These are {outcomes.rounds} rounds, the published {ROUNDS}."
    header = [
        "algorithm",
        grid.corner,
        "ours",
        "published",
        "faster" if timed else "difference",
        "" if timed else "verdict",
    ]
    return TextTable(f"{experiment.title}{BESIDE}", note, header, table)


def _test_insider(experiment: Experiment, outcomes: Outcomes) -> TextTable:
    cells = experiment.grids[0].cells
    ours = cells["PILBoost alpha=1.1", "insider"]
    table = []
    for row in experiment.grids[0].rows[1:]:
        theirs = cells[row, "insider"]
        both = outcomes.list_values(ours), outcomes.list_values(theirs)
        p = f"{welch(*both):.2g}" if min(map(len, both)) > 1 else ABSENT
        kept = outcomes.summarise(theirs, "kept")
        table.append([row, format_summary(outcomes.find_lead(ours, theirs), sign=True), p, format_number(kept.mean, 0)])
    note = (
        "Accuracy of PILBoost alpha=1.1 less that of the others, run by run with a 95 % interval; p of Welch's test, "
        "which the paper gives as .004 for XGBoost; rounds that were kept, on average."
    )
    return TextTable("Under the insider: who is ahead", note, ["PILBoost against", "lead", "p", "rounds kept"], table)


def _list_profiles(experiment: Experiment, outcomes: Outcomes) -> TextTable:
    grid = experiment.grids[0]
    table = []
    for row in grid.rows:
        before, after = (outcomes.average_importances(grid.cells[row, column]) for column in grid.columns)
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
    return TextTable("Feature importances", note, header, table)


def _list_estimates(experiment: Experiment, outcomes: Outcomes) -> TextTable:
    table = []
    for grid in experiment.grids:
        for row in ("Menon", "Original Learned (cheats)", "Taylor Series (cheats)"):
            each = [outcomes.list_values(grid.cells[row, column], "alpha") for column in grid.columns]
            table.append([f"{grid.title}: {row}", *(f"{np.median(a):.2f}" if a.size else ABSENT for a in each)])
    note = "The alpha that each method chose, median over runs, by label noise."
    return TextTable("The estimated alpha", note, ["method", *experiment.grids[0].columns], table)


def _list_best_alphas(experiment: Experiment, outcomes: Outcomes) -> TextTable:
    table = []
    for grid in experiment.grids:
        best = [find_best_row(grid, column, outcomes) for column in grid.columns]
        table.append([grid.title, *(name.removeprefix("alpha=") for name in best)])
    note = "By mean accuracy over runs; in brackets how many of the others are not worse at 95 % (paired t)."
    return TextTable("The best alpha by noise", note, ["data", *experiment.grids[0].columns], table)


def find_best_row(grid: Grid, column: str, outcomes: Outcomes) -> str:
    """Find the row of highest mean accuracy, and how many rows are not told apart from it."""
    means = {row: outcomes.summarise(grid.cells[row, column]).mean for row in grid.rows}
    if not all(np.isfinite(list(means.values()))):
        return ABSENT
    best = max(means, key=lambda row: means[row])
    gaps = (outcomes.find_lead(grid.cells[best, column], grid.cells[row, column]) for row in grid.rows if row != best)
    return f"{best} ({sum(gap.mean <= gap.half for gap in gaps)})"


def _list_default_leads(experiment: Experiment, outcomes: Outcomes) -> TextTable:
    """List how far our default is ahead of the best fixed alpha, or behind it."""
    table = []
    for grid in experiment.grids:
        for column in grid.columns:
            name = f"{grid.title}, {grid.corner} {column}"
            found = {row: outcomes.summarise(grid.cells[row, column]) for row in grid.rows}
            fixed = {row: one.mean for row, one in found.items() if row != OURS and one.runs}
            if not fixed:
                table.append([name, *[ABSENT] * 5])
                continue
            best = max(fixed, key=lambda row: fixed[row])
            lead = outcomes.find_lead(grid.cells[OURS, column], grid.cells[best, column])
            accuracies = (format_summary(found[row]) for row in (best, OURS))
            alpha = best.removeprefix("PILBoost alpha=")
            table.append([name, alpha, *accuracies, format_summary(lead, sign=True), describe_lead(lead)])
    note = (
        "The best of the paper's alphas by mean accuracy over these very runs, which flatters it; its accuracy and "
        "ours, and our lead, run by run, with halves of 95 % intervals. Behind: by more than that half."
    )
    header = ["cell", "best alpha", "its accuracy", "untwist", "lead", "verdict"]
    return TextTable("Our default against the best fixed alpha", note, header, table)


def describe_lead(lead: Summary) -> str:
    """Say in words what a lead amounts to at 95 %."""
    if lead.runs < 2:
        return ABSENT
    if abs(lead.mean) <= lead.half:
        return "not told apart"
    return "ahead" if lead.mean > 0 else "behind"


def find_spans(experiment: Experiment, outcomes: Outcomes) -> list[tuple[str, str, float, float]]:
    """Find for each row of each grid its name, the best a_f of .1 to 15, the highest and the lowest mean accuracy."""
    found = []
    for grid in experiment.grids:
        ballpark = [column for column in grid.columns if 0.1 <= float(column) <= 15]
        for row in grid.rows:
            means = [outcomes.summarise(grid.cells[row, column]).mean for column in ballpark]
            if np.isfinite(means).all():
                best = ballpark[int(np.argmax(means))]
                found.append((f"{grid.title}, {row}", best, max(means), min(means)))
    return found


def _list_ranges(experiment: Experiment, outcomes: Outcomes) -> TextTable:
    table = [
        [name, best, *map(format_number, (high, low, high - low))]
        for name, best, high, low in find_spans(experiment, outcomes)
    ]
    note = "Over the a_f from .1 to 15 that the paper speaks of."
    return TextTable("How much a_f matters", note, ["cell", "best a_f", "highest", "lowest", "range"], table)


#: Tables of an experiment beside those of its grids.
EXTRAS = {
    "figure-insider": (_test_insider, _list_profiles),
    "figure-adaptive": (_list_estimates,),
    "alphas": (_list_best_alphas,),
    "step-sizes": (_list_ranges,),
}


# ---- figures ----


def make_figures(experiment: Experiment, outcomes: Outcomes) -> list[Figure]:
    """Make all figures of an experiment."""
    if experiment.name == THEORY:
        return theory.make_figures()
    make = {"boxes": _draw_boxes, "lines": _draw_lines, "importances": _draw_importances, "heat": _draw_heat}.get(
        experiment.drawn
    )
    return make(experiment, outcomes) if make else []


def _shorten(name: str) -> str:
    for long, short in SHORT.items():
        name = name.replace(long, short)
    return name


def _make_box_panels(grid: Grid, outcomes: Outcomes) -> tuple[Panel, ...]:
    def values(column: str) -> Mapping[str, Array]:
        return {_shorten(row): outcomes.list_values(grid.cells[row, column]) for row in grid.rows}

    numbers = grid.columns[0][0].isdigit()
    titles = {column: f"{grid.corner} {column}" if numbers else column for column in grid.columns}
    return tuple(Boxes(titles[column], "accuracy", values(column)) for column in grid.columns)


def _draw_boxes(experiment: Experiment, outcomes: Outcomes) -> list[Figure]:
    panels = _make_box_panels(experiment.grids[0], outcomes)
    caption = f"{experiment.note} Orange: median; green: mean; circles: outliers."
    return [Figure(experiment.name, experiment.title, caption, panels, columns=1)]


#: Lines that would hide others and are left to the table.
UNDRAWN = (STOPPED, "LightGBM stopped, careful")


def _draw_lines(experiment: Experiment, outcomes: Outcomes) -> list[Figure]:
    panels = []
    for grid in experiment.grids:
        x = np.array([float(column) for column in grid.columns])
        lines = []
        for row in (row for row in grid.rows if row not in UNDRAWN):
            each = [outcomes.summarise(grid.cells[row, column]) for column in grid.columns]
            mean, half = (np.array([getattr(one, what) for one in each]) for what in ("mean", "half"))
            half = np.where([one.runs > 2 for one in each], half, 0.0)
            low, high = np.clip([mean - half, mean + half], 0.0, 1.0)  # Few runs have wide intervals.
            lines.append(Line(_shorten(row), x, mean, low, high, ours=row == OURS))
        panels.append(Lines(grid.title, grid.corner, "accuracy", tuple(lines)))
    return [Figure(experiment.name, experiment.title, experiment.note, tuple(panels))]


def _draw_importances(experiment: Experiment, outcomes: Outcomes) -> list[Figure]:
    grid = experiment.grids[0]
    profiled = ("PILBoost alpha=1.1", "XGBoost", "XGBoost lambda=20", "XGBoost stopped, clean data", STOPPED, OURS)
    bars = {row: {c: outcomes.average_importances(grid.cells[row, c]) for c in grid.columns} for row in profiled}
    highest = max((max(values, default=0.0) for each in bars.values() for values in each.values()), default=0.0)
    panels = tuple(
        Bars(_shorten(row), "importance", FEATURES, each, y_range=(0.0, 1.05 * highest or 1.0))
        for row, each in bars.items()
    )
    caption = (
        "Normalised feature importances without and with the insider, mean over runs: for boosters of ours the "
        "paper's (by leverage and impurity), for XGBoost gain."
    )
    boxes = _make_box_panels(grid, outcomes)
    scores = Figure("figure-insider-accuracy", "The insider twister: accuracies", experiment.note, boxes, columns=1)
    return [Figure(experiment.name, f"{experiment.title}: importances", caption, panels), scores]


def _draw_heat(experiment: Experiment, outcomes: Outcomes) -> list[Figure]:
    panels = tuple(
        Heat(
            grid.title,
            grid.corner,
            "alpha",
            grid.columns,
            [row.removeprefix("alpha=") for row in grid.rows],
            np.array(
                [[outcomes.summarise(grid.cells[row, column]).mean for column in grid.columns] for row in grid.rows]
            ),
        )
        for grid in experiment.grids
    )
    caption = f"Mean accuracy. {experiment.note}"
    return [Figure(experiment.name, experiment.title, caption, panels, columns=3)]
