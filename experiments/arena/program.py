"""The program of the arena: runs what its results file lacks, and shows what the rows say."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from experiments.arena.judging import judge, list_jobs
from experiments.arena.methods import METHODS
from experiments.arena.render import list_tables, render, write_markdown
from experiments.arena.rows import ArenaRow
from experiments.arena.standings import Standings
from experiments.datasets import FOLDER, is_pair_with_noise, list_names, list_several
from experiments.halves import DESIGN, JUDGING, OF_THE_PAPER, REAL_NOISE, find_half
from experiments.protocol import REAL, TWISTS
from experiments.results import read
from experiments.runner import measure
from untwist.boosting.forest import count_threads

__all__ = ["NAME", "main"]

NAME = "python -m experiments.arena"

#: The twists that are run unless others are asked for, the last three of them only with several classes.
CHOSEN_TWISTS = ["none", "symmetric-0.2", "symmetric-0.4", "class-0.1-0.4", "insider", REAL]
CHOSEN_TWISTS += ["pair-0.3", "one-class-0.4", "random-matrix"]
#: Settings that --quick stands for; its sets are of the half that designs.
QUICK: dict[str, Any] = {
    "sets": ["credit_approval", "digits_large", "ionosphere", "jira_lucene-2.3.0", "pima"],
    "seeds": 1,
    "rows": 600,
    "out": Path("results/arena-quick.csv"),
}
#: Settings without --quick.
FULL: dict[str, Any] = {"sets": None, "seeds": 3, "rows": 2500, "out": Path("results/arena.csv")}
#: The results files of a run with several classes.
OUT_SEVERAL = {True: Path("results/arena-several-quick.csv"), False: Path("results/arena-several.csv")}


def _make_parser() -> argparse.ArgumentParser:
    description = "Who learns the truth from twisted training data? Data sets x twists x methods x seeds."
    parser = argparse.ArgumentParser(prog=NAME, description=description)
    cores = count_threads(None)
    parser.add_argument("--quick", action="store_true", help="a part that takes some minutes on two cores")
    parser.add_argument(
        "--several",
        action="store_true",
        help="data sets of several classes, in the folder `multiclass` of the data folder, instead of those of two",
    )
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        help=f"folder of CSV files with a column `label` (default: the environment's {FOLDER})",
    )
    parser.add_argument("--half", choices=[DESIGN, JUDGING], help="one half of the data sets (default: both)")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="data sets (default: all there are)")
    chosen = ", ".join(CHOSEN_TWISTS)
    parser.add_argument(
        "--twists",
        nargs="+",
        metavar="TWIST",
        default=CHOSEN_TWISTS,
        help=f"of {', '.join(TWISTS)} (default: {chosen})",
    )
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help=f"of {', '.join(METHODS)} (default: all)")
    parser.add_argument("--again", nargs="+", metavar="METHOD", default=[], help="methods to fit anew, not to skip")
    parser.add_argument("--seeds", type=int, help="number of splits (default 3)")
    parser.add_argument("--rows", type=int, help="training rows, and test rows, at most (default 2500)")
    parser.add_argument("--jobs", type=int, default=cores, help=f"processes (default {cores}, the cores there are)")
    parser.add_argument("--minutes", type=float, help="begin nothing new after so many minutes")
    parser.add_argument("--show", action="store_true", help="run nothing, show what the results file has")
    parser.add_argument("--out", type=Path, help="results file (default results/arena.csv); pages go beside it")
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then show the standings."""
    parser = _make_parser()
    options = parser.parse_args(arguments)
    if options.several and options.out is None:
        options.out = OUT_SEVERAL[options.quick]
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if min(options.seeds, options.jobs) < 1 or options.rows < 20:
        parser.error("--seeds and --jobs must be at least 1, --rows at least 20")
    there = list_several(options.data) if options.several else list_names(options.data)
    if options.several and not there:
        raise ValueError(f"there are no data sets of several classes: name their folder by --data or {FOLDER}")
    methods = options.methods or [name for name, method in METHODS.items() if method.several or not options.several]
    for what, chosen, known in [
        ("data set", [] if options.sets is QUICK["sets"] else options.sets or [], there),
        ("twist", options.twists, TWISTS),
        ("method", methods + options.again, METHODS),
    ]:
        for name in chosen:
            if name not in known:
                parser.error(f"unknown {what} {name!r}: choose from {', '.join(known)}")
    if not (options.data or os.environ.get(FOLDER)):
        print(f"No data folder (--data, {FOLDER}): only the sets that come with scikit-learn.", file=sys.stderr)
    halves = _find_halves(there, options)
    if not options.show:
        methods = _find_installed(methods)
    jobs = list_jobs(
        _choose_sets(halves, options),
        options.twists,
        methods,
        options.seeds,
        options.rows,
        options.data,
        options.several,
    )
    if not jobs:
        raise ValueError("none of these data sets has the labels that these twists need")
    wanted = {key: job for job in jobs for key in job.keys}
    if options.show:
        rows = [row for row in read(options.out, ArenaRow) if row.key in wanted]
    else:
        again = set(options.again)
        rows = measure(
            wanted,
            partial(judge, folder=options.data, several=options.several),
            options.out,
            ArenaRow,
            processes=options.jobs,
            minutes=options.minutes,
            again=lambda row: row.method in again,
        )
    _show(rows, halves, options.out)


def _find_halves(there: list[str], options: argparse.Namespace) -> dict[str, str]:
    """Find which half each data set is in; of several classes those that have real noise only stand apart."""
    apart = [name for name in there if options.several and is_pair_with_noise(name, options.data)]
    halves = find_half((name for name in there if name not in apart), looked_at=OF_THE_PAPER)
    return halves | dict.fromkeys(apart, REAL_NOISE)


def _choose_sets(halves: dict[str, str], options: argparse.Namespace) -> list[str]:
    """Choose the data sets that were asked for."""
    chosen = sorted(halves) if options.sets is None else options.sets
    if chosen is QUICK["sets"] and options.several:
        chosen = [name for name, half in halves.items() if half == DESIGN][:2]
    return [name for name in chosen if name in halves and options.half in (None, halves[name])]


def _find_installed(methods: list[str]) -> list[str]:
    """Find the methods that can be run here, and say in a line which cannot."""
    installed = []
    for name in methods:
        needed = [METHODS[each] for each in (METHODS[name].follows, name) if each]
        missing = dict.fromkeys(method.packages[-1] for method in needed if not method.version)
        if missing:
            words = METHODS[name].words
            print(f"{words} is left out: pip install {' '.join(missing)} brings it.", file=sys.stderr)
        else:
            installed.append(name)
    return installed


def _show(rows: list[ArenaRow], halves: dict[str, str], out: Path) -> None:
    """Print all tables, and write them as pages of Markdown and HTML beside the rows."""
    setting = [_describe(rows)]
    standings = {}
    for half in (JUDGING, DESIGN, REAL_NOISE):
        here = [row for row in rows if halves[row.data] == half]
        if not here:
            continue
        names = ", ".join(sorted({row.data for row in here}))
        setting.append(f"{half.capitalize()}: {names}.")
        try:
            standings[half] = Standings(here)
        except ValueError as error:
            setting.append(f"{half.capitalize()}: {error}.")
            continue
        if standings[half].incomplete:
            setting.append(f"{standings[half].incomplete} runs that not every method has finished are left out.")
    if not standings:
        raise ValueError("there is no run yet that every method has finished")
    print("\n".join(setting) + "\n", *(table for table, _ in list_tables(standings)), sep="\n")
    out.with_suffix(".md").write_text(write_markdown(standings, "\n\n".join(setting)), encoding="utf-8")
    out.with_suffix(".html").write_text(render(standings, " ".join(setting)), encoding="utf-8")
    print(f"Rows: {out}\nPages: {out.with_suffix('.md')}, {out.with_suffix('.html')}")


def _describe(rows: list[ArenaRow]) -> str:
    """Say what was run, in words."""
    counts = {what: len({getattr(row, what) for row in rows}) for what in ("data", "twist", "method", "seed")}
    rows_at_most = ", ".join(str(size) for size in sorted({row.max_rows for row in rows}))
    versions = ", ".join(sorted({row.version for row in rows if row.version}))
    words = "{data} data sets, {twist} twists, {method} methods, {seed} splits".format(**counts)
    return f"{words}, at most {rows_at_most} training rows; judged on clean test rows. {versions}."
