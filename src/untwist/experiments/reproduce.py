"""The paper, reproduced: its tables and figures beside the published numbers. ``untwist reproduce``.

What is missing in the results file is run; the tables, the figures and the page are made from the file alone.
"""

from __future__ import annotations

import argparse
import base64
import html
import os
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from untwist.experiments.datasets import FOLDER
from untwist.experiments.figures import Figure, png, svg
from untwist.experiments.findings import ROUNDS, Results, figures, leads, sections, sentences
from untwist.experiments.methods import installed
from untwist.experiments.paper import EXPERIMENTS, Experiment
from untwist.experiments.results import read
from untwist.experiments.runner import measure
from untwist.experiments.sections import Section, document
from untwist.experiments.trials import Key, Source, Trial, TrialRow, judged, table

__all__ = ["Part", "main", "markdown", "page", "trials"]

RUNS = 10  # the paper's
QUICK_RUNS, QUICK_ROUNDS = 2, 100


class Part:
    """An experiment with its tables and figures."""

    def __init__(self, experiment: Experiment, results: Results) -> None:
        self.experiment = experiment
        self.sections: list[Section] = sections(experiment, results)
        self.figures: list[Figure] = figures(experiment, results)


def trials(chosen: Iterable[Experiment], runs: int, rounds: int) -> dict[Key, Trial]:
    """All that is to be run, seed by seed, so that what is there early covers everything once."""
    cells = [cell for experiment in chosen for cell in experiment.cells]
    by_seed = zip(*(cell.trials(runs, rounds) for cell in cells), strict=True)
    return {trial.key: trial for seed in by_seed for trial in seed}


def left_out(wanted: Iterable[Trial], source: Source) -> dict[str, str]:
    """Data sets and algorithms that cannot be had here, and why."""
    reasons = {}
    for data in dict.fromkeys(trial.data for trial in wanted):
        try:
            table(data, source)
        except (ValueError, OSError) as error:
            reasons[data] = str(error)
    for algorithm in {type(trial.algorithm) for trial in wanted}:
        if not installed(algorithm.packages):
            reasons[algorithm.__name__] = f'needs {algorithm.packages[-1]}: pip install "untwist[reproduce]"'
    return reasons


def _same_tables(rows: Iterable[TrialRow], path: Path, source: Source, skipped: Iterable[str]) -> None:
    """Refuse a results file of other tables: its numbers would be mixed with ours."""
    for data, digest in {(row.data, row.digest) for row in rows if not row.error}:
        if data not in skipped and table(data, source)[2] != digest:
            raise ValueError(f"{path} holds results of another {data!r} table than the one here: choose another --out")


# ---- what is shown ----


def _described(rows: list[TrialRow], results: Results) -> str:
    """When and with what it was run."""
    dates = sorted({row.date for row in rows})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    versions = ", ".join(sorted({row.version for row in rows}))
    return f"Run on {when}: {results.runs} runs, {results.rounds} rounds; {versions}."


def page(parts: list[Part], opening: list[str], top: list[Section]) -> str:
    """One HTML page with everything in it."""
    body = [f"<p>{html.escape(line)}</p>\n" for line in opening]
    links = (f"<li><a href=#{part.experiment.name}>{html.escape(part.experiment.title)}</a>" for part in parts)
    body += ["<ul>", *links, "</ul>\n"]
    for section in top:
        body += [f"<h2>{html.escape(section.title)}</h2>\n<p>{html.escape(section.note)}</p>\n{section.html()}\n"]
    for part in parts:
        one = part.experiment
        body.append(f"<h2 id={one.name}>{html.escape(one.title)}</h2>\n<p>{html.escape(one.note)}</p>\n")
        for figure in part.figures:
            image = base64.b64encode(svg(figure).encode()).decode()  # as an image: its styles stay its own
            caption = html.escape(figure.caption)
            source = f"data:image/svg+xml;base64,{image}"
            body.append(
                f'<figure><img class=paper alt="{html.escape(figure.title)}" src="{source}">'
                f"<figcaption>{caption}</figcaption></figure>\n"
            )
        for section in part.sections:
            body += [f"<h3>{html.escape(section.title)}</h3>\n<p>{html.escape(section.note)}</p>\n{section.html()}\n"]
    style = "<style>img.paper{max-width:100%;background:#fff}figcaption{max-width:50rem;opacity:.8}</style>"
    return document("untwist reproduce", "Being Properly Improper, reproduced", [style, *body])


def markdown(parts: list[Part], opening: list[str], top: list[Section], folder: str) -> str:
    """The same as Markdown; `folder` is where the figures are, seen from the page."""
    lines = ["# Being Properly Improper, reproduced", ""]
    lines += [line + "\n" for line in opening]
    lines += [section.markdown() for section in top]
    for part in parts:
        lines += [f"## {part.experiment.title}", "", part.experiment.note, ""]
        for figure in part.figures:
            lines += [f"![{figure.title}]({folder}/{figure.name}.svg)", "", f"*{figure.caption}*", ""]
        lines += [section.markdown(level=3) for section in part.sections]
    return "\n".join(lines).rstrip() + "\n"


def _write(parts: list[Part], opening: list[str], top: list[Section], out: Path) -> None:
    """Tables, figures and pages in their folder."""
    for name in ("tables", "figures"):
        (out / name).mkdir(parents=True, exist_ok=True)
    for part in parts:
        if part.sections:
            name = part.experiment.name
            (out / "tables" / f"{name}.md").write_text("\n".join(one.markdown() for one in part.sections), "utf-8")
            (out / "tables" / f"{name}.tex").write_text("\n".join(one.latex() for one in part.sections), "utf-8")
        for figure in part.figures:
            (out / "figures" / f"{figure.name}.svg").write_text(svg(figure), "utf-8")
            (out / "figures" / f"{figure.name}.png").write_bytes(png(figure))
    (out / "reproduce.md").write_text(markdown(parts, opening, top, "figures"), "utf-8")
    (out / "index.html").write_text(page(parts, opening, top), "utf-8")


# ---- the command ----


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="untwist reproduce", description=__doc__.splitlines()[0])
    cores = len(os.sched_getaffinity(0))
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
    parser.add_argument("--out", type=Path, help="folder of the results, tables, figures and the page")
    parser.add_argument("--render", action="store_true", help="run nothing: show what the results file holds")
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then show everything."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in EXPERIMENTS:
            parser.error(f"unknown name {name!r}: choose from {', '.join(EXPERIMENTS)}")
    runs, rounds = (QUICK_RUNS, QUICK_ROUNDS) if options.quick else (RUNS, ROUNDS)
    runs, rounds = (
        given if given is not None else usual for given, usual in ((options.runs, runs), (options.rounds, rounds))
    )
    if min(runs, rounds, options.jobs) < 1:
        parser.error("--runs, --rounds and --jobs must be at least 1")
    out = options.out or Path("results/reproduce-quick" if options.quick else "results/reproduce")
    path = out / "results.csv"
    chosen = [EXPERIMENTS[name] for name in options.names or EXPERIMENTS]
    wanted = trials(chosen, runs, rounds)
    skipped: dict[str, str] = {}
    if options.render:
        rows = [row for row in read(path, TrialRow) if row.key in wanted]
        if wanted and not rows:
            raise ValueError(f"{path} holds no result of {rounds} rounds: leave --render away to run them")
    else:
        source = Source(options.data or os.environ.get(FOLDER), options.download)
        skipped = left_out(wanted.values(), source)
        for name, reason in skipped.items():
            print(f"{name} is skipped: {reason}", file=sys.stderr)
        _same_tables(read(path, TrialRow), path, source, skipped)
        possible = {
            key: trial
            for key, trial in wanted.items()
            if not skipped.keys() & {trial.data, type(trial.algorithm).__name__}
        }
        rows = measure(possible, partial(judged, source=source), path, TrialRow, jobs=options.jobs)
    results = Results(rows, runs, rounds)
    parts = [Part(experiment, results) for experiment in chosen]
    everything = not options.names
    opening = ([_described(rows, results)] if rows else []) + [f"Skipped: {name}: {skipped[name]}." for name in skipped]
    if (runs, rounds) != (RUNS, ROUNDS):
        opening.append(f"This is a look around: the paper's are {RUNS} runs of {ROUNDS} rounds.")
    opening += sentences(results) if everything else []
    top = [leads(results)] if everything else []
    for part in parts:
        for section in part.sections:
            print(section)
    print(*top, *opening, sep="\n\n")
    _write(parts, opening, top, out)
    print(f"\nRows: {path}\nPage: {out / 'index.html'}")


if __name__ == "__main__":
    main()
