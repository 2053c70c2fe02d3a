"""The programs that judge what is claimed: what labels are said to be, sources, annotators, slices, many sharp rows.

They can be stopped and started at any time. What labels are said to be can also be measured on another machine, which
has neither pandas nor the tables: `--make-cells`, `--measure` and `--report` are its three steps.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from experiments.datasets import FOLDER
from experiments.peers import find_version
from experiments.results import read
from experiments.runner import measure
from experiments.tables import TextTable
from experiments.trust.annotators import ANNOTATORS
from experiments.trust.audits import CellRow, measure_cell
from experiments.trust.cells import Cell, list_cells, load_cells, save_cells
from experiments.trust.parts import Part
from experiments.trust.real_tables import find_missing
from experiments.trust.sharp import SHARP
from experiments.trust.slices import SLICES
from experiments.trust.sources import SOURCES
from experiments.trust.summaries import make_tables
from untwist.boosting.forest import count_threads

__all__ = ["LABELS", "NAME", "PARTS", "main"]

NAME = "experiments.trust"
#: The part that most is about: what is said of labels.
LABELS = "labels"
#: The other parts: minutes to hours each.
PARTS: dict[str, Part[Any]] = {part.name: part for part in (SOURCES, ANNOTATORS, SLICES, SHARP)}
#: Where rows and tables go, as a whole and in a quick run.
OUT = {False: Path("results/trust"), True: Path("results/trust-quick")}
#: Rows of the version before, of the same cells.
BEFORE = Path(__file__).parents[2] / "docs" / "trust" / "labels-before.csv"
#: The beginning of a page of all parts.
INTRODUCTION = """\
`make trust` makes these tables: every part is a program of `experiments/trust`, with fixed seeds, and whole fits and
audits of data whose truth is known. What is lost comes first.

What is said of labels is judged on tables that had no part in the design: the half of the project's data sets that a
rule which knows names only has set aside, tables of KEEL, and the judging half of those of R, none of which is a table
of the other half by another name; and simulated tables, of other seeds than those of the design. Sources, annotators
and planted slices are simulated, and the methods were designed on worlds like them: the rows of these parts, and of
sharp classes, are of earlier versions of the default, and of the slices 278 of 752 runs were finished.

The rows are in docs/trust/*.csv. Anybody can measure them anew: `make trust UNTWIST_DATA=FOLDER` (of CSV files with a
column `label`, by the names in experiments/trust/real_tables.py; without it what comes with packages judges).
"""
LABELS_WORDS = "Is what is said of labels true?"
#: Peers that may be missing, and what brings them.
OPTIONAL = {
    "crowd-kit": "Dawid-Skene is left out: pip install --no-deps crowd-kit attrs nltk regex brings it.",
    "cleanlab": "cleanlab is left out: pip install cleanlab brings it.",
}


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=NAME, description="Is what is claimed true?")
    cores = count_threads(None)
    names = ", ".join((LABELS, *PARTS))
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {names} (default: {LABELS}; all: all of them)")
    parser.add_argument("--quick", action="store_true", help="a few small samples of each part: seconds")
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        help=f"folder of CSV files with a column `label` (default: the environment's {FOLDER})",
    )
    parser.add_argument("--workers", type=int, default=cores, help=f"processes (default {cores}, the cores there are)")
    parser.add_argument("--minutes", type=float, help=f"begin nothing new after so many, of {LABELS}")
    parser.add_argument("--show", action="store_true", help="run nothing, show what the results files have")
    parser.add_argument("--out", type=Path, help=f"folder of rows and tables (default {OUT[False]})")
    parser.add_argument("--page", type=Path, help="write the tables of all parts to this Markdown file too")
    elsewhere = parser.add_argument_group(f"to measure {LABELS} on another machine")
    elsewhere.add_argument("--make-cells", type=Path, metavar="FILE", help="write all tables and labels to a file")
    elsewhere.add_argument(
        "--measure", type=Path, nargs=2, metavar=("FILE", "ROWS"), help="audit those of a file, and write rows"
    )
    elsewhere.add_argument("--report", type=Path, nargs="+", metavar="ROWS", help="show the tables of such rows")
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing of each part, then show its tables."""
    parser = _make_parser()
    options = parser.parse_args(arguments)
    if options.workers < 1:
        parser.error("--workers must be at least 1")
    chosen = [LABELS, *PARTS] if options.parts == ["all"] else options.parts or [LABELS]
    for name in chosen:
        if name not in (LABELS, *PARTS):
            parser.error(f"unknown part {name!r}: choose from {', '.join((LABELS, *PARTS))}, or all")
    if options.make_cells:
        cells = _list_cells(options)
        save_cells(cells, options.make_cells)
        print(f"{len(cells)} cells: {options.make_cells}")
    elif options.measure:
        file, rows_file = options.measure
        rows = _measure(load_cells(file), rows_file, options)
        print(f"{len(rows)} rows, {sum(bool(row.error) for row in rows)} of them errors: {rows_file}")
    elif options.report:
        rows = list({row.key: row for file in options.report for row in read(file, CellRow)}.values())
        section = _show(LABELS_WORDS, LABELS, rows, _tabulate(rows), None)
        _write_page(options.page, [section])
    else:
        _run(chosen, options)


def _run(chosen: list[str], options: argparse.Namespace) -> None:
    out: Path = options.out or OUT[options.quick]
    sections = []
    for name in chosen:
        path = out / f"{name}.csv"
        beside = None if options.page else path
        if name == LABELS:
            if not options.show:
                _measure(_list_cells(options), path, options)
            rows = read(path, CellRow)
            sections.append(_show(LABELS_WORDS, LABELS, rows, _tabulate(rows), beside))
            continue
        part = PARTS[name]
        if part is ANNOTATORS and not options.show:
            _say_what_is_left_out("crowd-kit", "cleanlab")
        if options.show:
            rows = read(path, part.kind)
        else:
            jobs = part.list_jobs(options.quick, options.data)
            part.measure(jobs, path, options.data, options.workers)
            rows = part.read(jobs, path)
        good = [row for row in rows if not row.error]
        sections.append(_show(part.words, name, rows, part.make_tables(good) if good else [], beside))
    _write_page(options.page, sections)


def _list_cells(options: argparse.Namespace) -> list[Cell]:
    if not options.quick:
        for words in find_missing(options.data):
            print(words, file=sys.stderr)
    return list_cells(options.data, options.quick)


def _measure(cells: list[Cell], path: Path, options: argparse.Namespace) -> list[CellRow]:
    """Audit the cells that a file of rows lacks, those first that take longest."""
    _say_what_is_left_out("cleanlab")
    cells = sorted(cells, key=lambda cell: -len(cell.y) * cell.n_classes * cell.n_seeds)
    jobs = {cell.key: cell for cell in cells}
    return measure(jobs, measure_cell, path, CellRow, processes=options.workers, minutes=options.minutes)


def _say_what_is_left_out(*packages: str) -> None:
    for package in packages:
        if not find_version((package,)):
            print(OPTIONAL[package], file=sys.stderr)


def _tabulate(rows: list[CellRow]) -> list[TextTable]:
    good = [row for row in rows if not row.error]
    return make_tables(good, read(BEFORE, CellRow)) if good else []


def _show(words: str, name: str, rows: list[Any], tables: list[TextTable], path: Path | None) -> str:
    """Print the tables of a part, and write them as Markdown beside its rows if these are named; return a section."""
    failed = [row for row in rows if row.error]
    if failed:
        lines = [[", ".join(map(str, row.key)), row.error] for row in failed]
        note = "These runs are left out."
        tables = [TextTable(f"{name}: failures, {len(failed)}", note, ["what", "error"], lines), *tables]
    if not tables:
        print(f"{name}: nothing has been run yet.", file=sys.stderr)
        return ""
    print(f"{words}\n", *tables, sep="\n")
    if path is not None:
        page = path.with_suffix(".md")
        page.write_text("\n".join([f"# {words}", "", *(table.to_markdown() for table in tables)]), encoding="utf-8")
        print(f"Rows: {path}\nPage: {page}\n")
    return "\n".join([f"## {words}", "", *(table.to_markdown(level=3) for table in tables)])


def _write_page(page: Path | None, sections: list[str]) -> None:
    if page is not None:
        page.write_text("\n".join(["# Is what is claimed true?", "", INTRODUCTION, *sections]), encoding="utf-8")
