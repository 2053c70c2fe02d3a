"""The program of the arena: runs what its results file lacks, and shows what the rows say."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from experiments.arena.judging import judge, list_keys
from experiments.arena.methods import METHODS
from experiments.arena.render import render
from experiments.arena.rows import ArenaRow
from experiments.arena.standings import Standings, make_tables
from experiments.datasets import FOLDER, is_pair_with_noise, list_names, list_several
from experiments.protocol import TWISTS
from experiments.runner import measure
from experiments.several_classes.sets import DESIGN, find_half
from untwist.boosting.forest import count_threads

__all__ = ["NAME", "main"]

NAME = "python -m experiments.arena"

#: Settings that --quick stands for.
QUICK: dict[str, Any] = {
    "sets": ["cancer", "digits_odd", "german_credit", "jira_lucene-2.3.0", "pima", "xd6"],
    "twists": ["none", "symmetric-0.2", "symmetric-0.4", "class-0.1-0.4", "insider", "real"],
    "seeds": 3,
    "rows": 600,
    "out": Path("results/arena-quick.csv"),
}
#: Settings without --quick.
FULL: dict[str, Any] = {
    "sets": None,
    "twists": list(TWISTS),
    "seeds": 5,
    "rows": 2500,
    "out": Path("results/arena.csv"),
}
#: The results files of a run with several classes.
OUT_SEVERAL = {True: Path("results/arena-several-quick.csv"), False: Path("results/arena-several.csv")}


def _make_parser() -> argparse.ArgumentParser:
    description = "Who learns the truth from twisted training data? Data sets x twists x methods x seeds."
    parser = argparse.ArgumentParser(prog=NAME, description=description)
    cores = count_threads(None)
    parser.add_argument("--quick", action="store_true", help="a part that takes about two minutes on two cores")
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
    parser.add_argument("--sets", nargs="+", metavar="SET", help="data sets (default: all there are)")
    parser.add_argument("--twists", nargs="+", metavar="TWIST", help=f"of {', '.join(TWISTS)} (default: all)")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help=f"of {', '.join(METHODS)} (default: all)")
    parser.add_argument("--again", nargs="+", metavar="METHOD", default=[], help="methods to fit anew, not to skip")
    parser.add_argument("--seeds", type=int, help="number of splits (default 5)")
    parser.add_argument("--rows", type=int, help="training rows, and test rows, at most (default 2500)")
    parser.add_argument("--jobs", type=int, default=cores, help=f"processes (default {cores}, the cores there are)")
    parser.add_argument("--out", type=Path, help="results file (default results/arena.csv); the page goes beside it")
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
    if options.sets is None:
        options.sets = there
    elif options.sets is QUICK["sets"] and options.several:
        halves = find_half(name for name in there if not is_pair_with_noise(name, options.data))
        options.sets = [name for name, half in halves.items() if half == DESIGN][:2]
        options.twists = [*options.twists, "pair-0.3"]
    elif options.sets is QUICK["sets"]:
        options.sets = [name for name in options.sets if name in there]
    methods = options.methods or list(METHODS)
    for what, chosen, known in [
        ("data set", options.sets, there),
        ("twist", options.twists, TWISTS),
        ("method", methods + options.again, METHODS),
    ]:
        for name in chosen:
            if name not in known:
                parser.error(f"unknown {what} {name!r}: choose from {', '.join(known)}")
    if not (options.data or os.environ.get(FOLDER)):
        print(f"No data folder (--data, {FOLDER}): only the sets that come with scikit-learn.", file=sys.stderr)
    installed = [name for name in methods if METHODS[name].version]
    for name in methods:
        if name not in installed:
            print(
                f'{METHODS[name].words} is left out: pip install --editable ".[experiments]" brings it.',
                file=sys.stderr,
            )
    wanted = list_keys(
        options.sets, options.twists, installed, options.seeds, options.rows, options.data, options.several
    )
    if not wanted:
        raise ValueError("none of these data sets has the labels that these twists need")
    again = set(options.again)
    rows = measure(
        {key: key for key in wanted},
        partial(judge, folder=options.data, several=options.several),
        options.out,
        ArenaRow,
        processes=options.jobs,
        again=lambda row: row.method in again,
    )
    standings = Standings(rows)
    setting = _describe(rows)
    if standings.incomplete:
        setting += f" {standings.incomplete} runs that not every method has finished are left out."
    print(setting + "\n", *make_tables(standings), sep="\n")
    page = options.out.with_suffix(".html")
    page.write_text(render(standings, setting), encoding="utf-8")
    print(f"Rows: {options.out}\nPage: {page}")


def _describe(rows: list[ArenaRow]) -> str:
    """Say what was run, in words."""
    counts = {what: len({getattr(row, what) for row in rows}) for what in ("data", "twist", "method", "seed")}
    rows_at_most = ", ".join(str(size) for size in sorted({row.max_rows for row in rows}))
    versions = ", ".join(sorted({row.version for row in rows if row.version}))
    words = "{data} data sets, {twist} twists, {method} methods, {seed} splits".format(**counts)
    return f"{words}, at most {rows_at_most} training rows; judged on clean test rows. {versions}."
