"""The program: runs what the results files lack, part by part, and shows what the rows say."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from experiments.datasets import FOLDER
from experiments.peers import find_version
from experiments.tables import TextTable
from experiments.trust.annotators import ANNOTATORS
from experiments.trust.clean import CLEAN
from experiments.trust.coverage import COVERAGE
from experiments.trust.parts import Part
from experiments.trust.sharp import SHARP
from experiments.trust.slices import SLICES
from experiments.trust.sources import SOURCES
from untwist.boosting.forest import count_threads

__all__ = ["NAME", "PARTS", "main"]

NAME = "python -m experiments.trust"

#: The parts by name.
PARTS: dict[str, Part[Any]] = {part.name: part for part in (SOURCES, ANNOTATORS, SLICES, CLEAN, COVERAGE, SHARP)}
#: Where rows and tables go, as a whole and in a quick run.
OUT = {False: Path("results/trust"), True: Path("results/trust-quick")}
#: The beginning of a page of all parts.
INTRODUCTION = """\
`make trust` makes these tables: every part is a program of `experiments/trust`, with fixed seeds, and whole fits and
audits of data whose truth is known. What is lost comes first. Worlds and data sets that the methods were designed by
stand apart from those that judge; sources, annotators and planted slices are simulated, and the methods were designed
on worlds like them.
"""
#: Peers that may be missing, and what brings them.
OPTIONAL = {
    "crowd-kit": "Dawid-Skene is left out: pip install --no-deps crowd-kit attrs nltk regex brings it.",
    "cleanlab": "cleanlab is left out: pip install cleanlab brings it.",
}


def _make_parser() -> argparse.ArgumentParser:
    description = "Is what is claimed true? Intervals, clean and hard data, sources, annotators, slices."
    parser = argparse.ArgumentParser(prog=NAME, description=description)
    cores = count_threads(None)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="a few small samples of each part: seconds")
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        help=f"folder of CSV files with a column `label` (default: the environment's {FOLDER})",
    )
    parser.add_argument("--workers", type=int, default=cores, help=f"processes (default {cores}, the cores there are)")
    parser.add_argument("--show", action="store_true", help="run nothing, show what the results files have")
    parser.add_argument("--out", type=Path, help=f"folder of rows and tables (default {OUT[False]})")
    parser.add_argument("--page", type=Path, help="write the tables of all parts to this Markdown file too")
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing of each part, then show its tables."""
    parser = _make_parser()
    options = parser.parse_args(arguments)
    if options.workers < 1:
        parser.error("--workers must be at least 1")
    for name in options.parts:
        if name not in PARTS:
            parser.error(f"unknown part {name!r}: choose from {', '.join(PARTS)}")
    chosen = [PARTS[name] for name in options.parts or PARTS]
    out: Path = options.out or OUT[options.quick]
    if CLEAN in chosen and not (options.data or os.environ.get(FOLDER)):
        print(f"No data folder (--data, {FOLDER}): only the sets that come with scikit-learn.", file=sys.stderr)
    if ANNOTATORS in chosen:
        for package, words in OPTIONAL.items():
            if not find_version((package,)):
                print(words, file=sys.stderr)
    pages = []
    for part in chosen:
        path = out / f"{part.name}.csv"
        jobs = part.list_jobs(options.quick, options.data)
        if not options.show:
            part.measure(jobs, path, options.data, options.workers)
        pages.append(_show(part, part.read(jobs, path), path))
    if options.page:
        options.page.write_text("\n".join(["# Is what is claimed true?", "", INTRODUCTION, *pages]), encoding="utf-8")


def _show(part: Part[Any], rows: list[Any], path: Path) -> str:
    """Print the tables of a part, and write them as Markdown beside the rows; return that as a section."""
    failed = [row for row in rows if row.error]
    good = [row for row in rows if not row.error]
    tables = part.make_tables(good) if good else []
    if failed:
        lines = [[", ".join(map(str, row.key)), row.error] for row in failed]
        note = "These runs are left out."
        tables.insert(0, TextTable(f"{part.name}: failures, {len(failed)}", note, ["what", "error"], lines))
    if not tables:
        print(f"{part.name}: nothing has been run yet.", file=sys.stderr)
        return ""
    print(f"{part.words}\n", *tables, sep="\n")
    page = path.with_suffix(".md")
    page.write_text("\n".join([f"# {part.words}", "", *(table.to_markdown() for table in tables)]), encoding="utf-8")
    print(f"Rows: {path}\nPage: {page}\n")
    return "\n".join([f"## {part.words}", "", *(table.to_markdown(level=3) for table in tables)])
