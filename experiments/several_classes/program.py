"""The program: runs what its results file lacks, and shows what the rows say, what is lost first."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from experiments.datasets import FOLDER, is_pair_with_noise, list_several
from experiments.halves import DESIGN, JUDGING, REAL_NOISE, find_half
from experiments.protocol import REAL, applies
from experiments.results import read
from experiments.runner import measure
from experiments.several_classes.judging import Job, judge, list_jobs
from experiments.several_classes.methods import GROUPS, OURS
from experiments.several_classes.rows import Row
from experiments.several_classes.sets import KINDS, LEAST_ROWS, load_set
from experiments.several_classes.standings import Standings, make_real_table, make_tables
from experiments.tables import TextTable
from untwist.boosting.forest import count_threads

__all__ = ["NAME", "main"]

NAME = "python -m experiments.several_classes"

#: Settings that --quick stands for; its sets are the first two of the half that designs.
QUICK: dict[str, Any] = {
    "kinds": ["none", "symmetric-0.2", "pair-0.3"],
    "splits": 1,
    "rows": 800,
    "out": Path("results/several-classes-quick.csv"),
}
#: Settings without --quick.
FULL: dict[str, Any] = {"kinds": [*KINDS, REAL], "splits": 3, "rows": 4000, "out": Path("results/several-classes.csv")}


def _make_parser() -> argparse.ArgumentParser:
    description = "Several classes: who learns the truth, and who finds the wrong labels?"
    parser = argparse.ArgumentParser(prog=NAME, description=description)
    cores = count_threads(None)
    parser.add_argument("--quick", action="store_true", help="two data sets, three kinds, one split: about a minute")
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        help="folder of CSV files of several classes with a column `label`, or one that has a folder `multiclass` "
        f"(default: the environment's {FOLDER})",
    )
    parser.add_argument("--half", choices=[DESIGN, JUDGING], help="one half of the data sets (default: both)")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="data sets (default: all there are)")
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help=f"of {', '.join([*KINDS, REAL])} (default: all)")
    parser.add_argument("--groups", nargs="+", metavar="GROUP", help=f"of {', '.join(GROUPS)} (default: all)")
    parser.add_argument("--again", nargs="+", metavar="GROUP", default=[], help="groups to run anew, not to skip")
    parser.add_argument("--splits", type=int, help="number of splits (default 3)")
    parser.add_argument("--rows", type=int, help="training rows, and test rows, at most (default 4000)")
    parser.add_argument("--jobs", type=int, default=cores, help=f"processes (default {cores}, the cores there are)")
    parser.add_argument("--minutes", type=float, help="begin nothing new after so many minutes")
    parser.add_argument("--show", action="store_true", help="run nothing, show what the results file has")
    parser.add_argument("--out", type=Path, help="results file (default results/several-classes.csv)")
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then show the standings."""
    parser = _make_parser()
    options = parser.parse_args(arguments)
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if min(options.splits, options.jobs) < 1 or options.rows < 60:
        parser.error("--splits and --jobs must be at least 1, --rows at least 60")
    there = list_several(options.data)
    if not there:
        where = options.data or os.environ.get(FOLDER)
        what = f"{where} has none" if where else f"name their folder by --data or {FOLDER}"
        print(f"No data sets of several classes, so that there is nothing to judge: {what}.", file=sys.stderr)
        return
    groups = options.groups or list(GROUPS)
    for what, chosen, known in [
        ("data set", options.sets or [], there),
        ("kind", options.kinds, [*KINDS, REAL]),
        ("group", groups + options.again, GROUPS),
    ]:
        for name in chosen:
            if name not in known:
                parser.error(f"unknown {what} {name!r}: choose from {', '.join(known)}")
    halves = _find_halves(there, options.data)
    sets = _choose_sets(options, halves)
    for group in groups:
        for method, packages in GROUPS[group].packages.items():
            if method not in GROUPS[group].installed:
                print(f"{method} is left out: pip install {packages[-1]} brings it.", file=sys.stderr)
    jobs = list_jobs(sets, groups, options.splits, options.rows)
    rows = _measure(jobs, options)
    _show(rows, halves, options)


def _find_halves(there: list[str], folder: str | None) -> dict[str, str]:
    """Find which half each data set is in; those with real noise stand apart, whatever was asked for."""
    apart = [name for name in there if is_pair_with_noise(name, folder)]
    return find_half(name for name in there if name not in apart) | dict.fromkeys(apart, REAL_NOISE)


def _choose_sets(options: argparse.Namespace, halves: dict[str, str]) -> dict[str, list[str]]:
    """Return the kinds of noise by data set, for those that were asked for."""
    if options.sets:
        chosen = list(options.sets)
    elif options.quick:
        chosen = [name for name, half in halves.items() if half == DESIGN][:2]
    else:
        chosen = list(halves)
    if options.half:
        chosen = [name for name in chosen if halves[name] == options.half]
    sets = {}
    for name in chosen:
        table, dropped = load_set(name, options.data)
        if dropped:
            words = ", ".join(f"{label} ({rows})" for label, rows in dropped.items())
            print(f"{name}: classes with fewer than {LEAST_ROWS} rows are dropped: {words}.", file=sys.stderr)
        if len(table.classes) < 3:
            print(f"{name} is left out: it has {len(table.classes)} classes.", file=sys.stderr)
            continue
        sets[name] = [kind for kind in options.kinds if applies(kind, table)]
    return sets


def _measure(jobs: list[Job], options: argparse.Namespace) -> list[Row]:
    """Run the jobs that lack a row in the results file, and read the rows of all that are wanted."""
    wanted = {key: job for job in jobs for key in job.keys}
    if options.show:
        return [row for row in read(options.out, Row) if row.key in wanted]
    again = {method for group in options.again for method in GROUPS[group].packages}
    return measure(
        wanted,
        partial(judge, folder=options.data),
        options.out,
        Row,
        processes=options.jobs,
        minutes=options.minutes,
        again=lambda row: row.method in again,
    )


def _show(rows: list[Row], halves: dict[str, str], options: argparse.Namespace) -> None:
    """Print all tables, and write them as a page of Markdown beside the rows."""
    tables: list[TextTable] = []
    words = [_describe(rows)]
    for half in (JUDGING, DESIGN):
        here = [row for row in rows if halves[row.data] == half]
        if not here:
            continue
        standings = Standings(here)
        if standings.incomplete:
            words.append(f"{half}: {standings.incomplete} runs that not every method has finished are left out.")
        tables += make_tables(standings, half)
    tables += make_real_table(rows)
    if not tables:
        raise ValueError("there is no run yet that every method has finished")
    names = {half: [name for name, one in halves.items() if one == half] for half in (DESIGN, JUDGING)}
    words += [f"The {half} half: {', '.join(there) or 'none'}." for half, there in names.items()]
    print("\n".join(words) + "\n", *tables, sep="\n")
    page = options.out.with_suffix(".md")
    parts = ["# Several classes", "", *(word + "\n" for word in words), *(table.to_markdown() for table in tables)]
    page.write_text("\n".join(parts), encoding="utf-8")
    print(f"Rows: {options.out}\nPage: {page}")


def _describe(rows: list[Row]) -> str:
    """Say what was run, in words."""
    counts = {what: len({getattr(row, what) for row in rows}) for what in ("data", "kind", "split")}
    versions = ", ".join(sorted({row.version for row in rows if row.version}))
    sizes = ", ".join(str(size) for size in sorted({row.max_rows for row in rows}))
    words = "{data} data sets, {kind} kinds of noise, {split} splits".format(**counts)
    return f"{words}, at most {sizes} training rows; {OURS} and its peers see twisted labels only. {versions}."
