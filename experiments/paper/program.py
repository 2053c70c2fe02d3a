"""The program of the reproduction: runs what its results file lacks, and makes everything of the file alone."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from experiments.datasets import FOLDER, is_published
from experiments.paper.claims import list_leads, write_sentences
from experiments.paper.declarations import EXPERIMENTS, HOW, Experiment
from experiments.paper.exhibits import BESIDE
from experiments.paper.outcomes import ROUNDS, Outcomes
from experiments.paper.render import Opening, Part, write_files
from experiments.paper.trials import Source, Trial, TrialKey, TrialRow, judge, load_table
from experiments.peers import find_version
from experiments.results import read
from experiments.runner import measure
from untwist.boosting.forest import count_threads

__all__ = ["NAME", "list_trials", "main"]

NAME = "python -m experiments.paper"
SUMMARY = "The paper, reproduced: its tables and figures beside the published numbers."
#: The paper's runs.
RUNS = 10
#: Runs that --quick stands for.
QUICK_RUNS = 2
#: Rounds that --quick stands for.
QUICK_ROUNDS = 100


def list_trials(chosen: Iterable[Experiment], runs: int, rounds: int) -> dict[TrialKey, Trial]:
    """List all that is to be run, seed by seed, so that what is there early covers everything once."""
    cells = [cell for experiment in chosen for cell in experiment.cells]
    by_seed = zip(*(cell.list_trials(runs, rounds) for cell in cells), strict=True)
    return {trial.key: trial for seed in by_seed for trial in seed}


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then show it."""
    parser = _make_parser()
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in EXPERIMENTS:
            parser.error(f"unknown name {name!r}: choose from {', '.join(EXPERIMENTS)}")
    usual_runs, usual_rounds = (QUICK_RUNS, QUICK_ROUNDS) if options.quick else (RUNS, ROUNDS)
    runs = usual_runs if options.runs is None else options.runs
    rounds = usual_rounds if options.rounds is None else options.rounds
    if min(runs, rounds, options.jobs) < 1:
        parser.error("--runs, --rounds and --jobs must be at least 1")
    if options.data and not Path(options.data).is_dir():
        parser.error(f"--data {options.data} is no folder")
    if not importlib.util.find_spec("matplotlib"):  # This is said before the runs, not after them.
        raise ValueError("figures need matplotlib: pip install matplotlib")
    out = options.out or Path("results/reproduce-quick" if options.quick else "results/reproduce")
    path = out / "results.csv"
    chosen = [EXPERIMENTS[name] for name in options.names or EXPERIMENTS]
    wanted = list_trials(chosen, runs, rounds)
    skipped = {}
    if not options.render:
        source = Source(options.data or os.environ.get(FOLDER), options.download)
        skipped = _find_skipped(wanted.values(), source)
        for name, reason in skipped.items():
            print(f"{name} is skipped: {reason}", file=sys.stderr)
        _run(wanted, skipped, source, path, options.jobs)
    rows = [row for row in read(path, TrialRow) if row.key in wanted]
    if wanted and not rows:
        raise ValueError(f"{path} holds no result of {rounds} rounds of these experiments: nothing to show")
    outcomes = Outcomes(rows, runs, rounds)
    parts = [Part(experiment, outcomes) for experiment in chosen]
    opening = _open(rows, outcomes, skipped, everything=not options.names)
    stem = "-".join(options.names) or "index"
    write_files(parts, opening, out, stem)
    for part in parts:
        for table in part.tables:
            if options.names or table.title.endswith(BESIDE):  # Of everything, only what the paper has is printed.
                print(table)
    print(*opening.tables, *(line.replace("*", "") for line in opening.paragraphs), sep="\n\n")
    drawn = sum(len(part.figures) for part in parts)
    print(f"\nRows: {path}\nTables: {out / 'tables'}\nFigures: {drawn} in {out / 'figures'}\nPage: {out / stem}.html")


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=NAME, description=SUMMARY)
    cores = count_threads(None)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EXPERIMENTS)} (default: all)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_RUNS} runs of {QUICK_ROUNDS} rounds: about a minute, to look around",
    )
    parser.add_argument("--data", metavar="FOLDER", help=f"folder of CSV files (default: the environment's {FOLDER})")
    parser.add_argument("--download", action="store_true", help="fetch from OpenML what the folder lacks")
    parser.add_argument("--runs", type=int, help=f"splits (default {RUNS})")
    parser.add_argument("--rounds", type=int, help=f"rounds of boosting (default {ROUNDS})")
    parser.add_argument("--jobs", type=int, default=cores, help=f"processes (default {cores}, the cores there are)")
    parser.add_argument("--out", type=Path, help="where everything goes (default results/reproduce, or -quick)")
    parser.add_argument("--render", action="store_true", help="run nothing: show what the results file holds")
    return parser


# ---- what is run ----


def _find_skipped(wanted: Iterable[Trial], source: Source) -> dict[str, str]:
    """Data sets and algorithms that cannot be had here, and why."""
    reasons = {}
    for data in dict.fromkeys(trial.data for trial in wanted):
        try:
            if not is_published(load_table(data, source)[0]):
                print(f"{data} is not the table of docs/reproduce.md: expect other numbers.", file=sys.stderr)
        except (ValueError, OSError) as error:
            reasons[data] = str(error)
    for algorithm in dict.fromkeys(type(trial.algorithm) for trial in wanted):
        if not find_version(algorithm.packages):
            package = algorithm.packages[-1]
            reasons[algorithm.__name__] = f"needs {package}: pip install {package}"
    return reasons


def _run(wanted: dict[TrialKey, Trial], skipped: dict[str, str], source: Source, path: Path, processes: int) -> None:
    """Run what can be run and is not in the file, or is there by another version of its package."""
    here = {trial.data for trial in wanted.values()} - skipped.keys()
    _refuse_other_tables(read(path, TrialRow), path, source, here)
    possible = {
        key: trial for key, trial in wanted.items() if not skipped.keys() & {trial.data, type(trial.algorithm).__name__}
    }

    def is_outdated(row: TrialRow) -> bool:
        return row.key in possible and row.version != find_version(possible[row.key].algorithm.packages)

    def describe(row: TrialRow) -> str:
        return f"{row.data}, {row.algorithm.split('(')[0]}"

    judge_here = partial(judge, source=source)
    measure(possible, judge_here, path, TrialRow, processes=processes, again=is_outdated, describe=describe)


def _refuse_other_tables(rows: Iterable[TrialRow], path: Path, source: Source, here: set[str]) -> None:
    """Refuse a results file of other tables than those here: its numbers would be mixed with ours."""
    for data, digest in {(row.data, row.digest) for row in rows if not row.error}:
        if data in here and load_table(data, source)[2] != digest:
            raise ValueError(f"{path} holds results of another {data!r} table than the one here: choose another --out")


# ---- what is told first ----


def _open(rows: list[TrialRow], outcomes: Outcomes, skipped: dict[str, str], everything: bool) -> Opening:
    """What was run, and, of everything, what it shows."""
    lines = [_describe(rows, outcomes)] if rows else []
    lines += [f"Skipped: {name}: {skipped[name]}." for name in skipped]
    if outcomes.runs < RUNS or outcomes.rounds != ROUNDS:
        lines.append(f"This is a look around: the paper's are {RUNS} runs of {ROUNDS} rounds.")
    elif everything:
        lines += write_sentences(outcomes)
    return Opening([*lines, HOW], [list_leads(outcomes)] if everything else [])


def _describe(rows: list[TrialRow], outcomes: Outcomes) -> str:
    """When and with what it was run."""
    done = [row for row in rows if not row.error]
    failed = len(rows) - len(done)
    if not done:
        return f"All {failed} runs failed."
    dates = sorted({row.date for row in done})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    versions = ", ".join(sorted({row.version for row in done}))
    words = f"Run on {when}: {outcomes.runs} runs, {outcomes.rounds} rounds; {versions}."
    return words + (f" {failed} of {len(rows)} fits failed." if failed else "")
