"""The paper, reproduced: its tables and figures beside the published numbers. ``untwist reproduce``.

What is missing in the results file is run; the tables, the figures and the page are made from the file alone.
"""

from __future__ import annotations

import argparse
import base64
import html
import importlib.util
import os
import re
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from experiments.claims import leads, sentences
from experiments.datasets import FOLDER, published
from experiments.figures import Figure, png, svg
from experiments.findings import BESIDE, ROUNDS, Results, figures, sections
from experiments.methods import installed
from experiments.paper import EXPERIMENTS, WORDS, Experiment
from experiments.results import read
from experiments.runner import measure
from experiments.sections import Section, document
from experiments.trials import Key, Source, Trial, TrialRow, judged, table
from untwist.boosting.forest import threads

__all__ = ["Part", "main", "markdown", "page", "trials"]

SUMMARY = "The paper, reproduced: its tables and figures beside the published numbers."
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
            if not published(table(data, source)[0]):
                print(f"{data} is not the table of docs/reproduce.md: expect other numbers.", file=sys.stderr)
        except (ValueError, OSError) as error:
            reasons[data] = str(error)
    for algorithm in dict.fromkeys(type(trial.algorithm) for trial in wanted):
        if not installed(algorithm.packages):
            reasons[algorithm.__name__] = f'needs {algorithm.packages[-1]}: pip install "untwist[reproduce]"'
    return reasons


def _same_tables(rows: Iterable[TrialRow], path: Path, source: Source, here: set[str]) -> None:
    """Refuse a results file of other tables than those here: its numbers would be mixed with ours."""
    for data, digest in {(row.data, row.digest) for row in rows if not row.error}:
        if data in here and table(data, source)[2] != digest:
            raise ValueError(f"{path} holds results of another {data!r} table than the one here: choose another --out")


# ---- what is shown ----


def _described(rows: list[TrialRow], results: Results) -> str:
    """When and with what it was run."""
    done = [row for row in rows if not row.error]
    failed = len(rows) - len(done)
    if not done:
        return f"All {failed} runs failed."
    dates = sorted({row.date for row in done})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    versions = ", ".join(sorted({row.version for row in done}))
    words = f"Run on {when}: {results.runs} runs, {results.rounds} rounds; {versions}."
    return words + (f" {failed} of {len(rows)} fits failed." if failed else "")


Story = tuple[list[str], list[Section]]  # paragraphs and tables that a page opens with


def page(parts: list[Part], story: Story) -> str:
    """One HTML page with everything in it."""
    body = [f"<p>{html.escape(line.replace('*', ''))}</p>\n" for line in story[0]]
    links = (f"<li><a href=#{part.experiment.name}>{html.escape(part.experiment.title)}</a>" for part in parts)
    body += ["<ul>", *links, "</ul>\n"]
    for section in story[1]:
        body += [f"<h2>{html.escape(section.title)}</h2>\n<p>{html.escape(section.note)}</p>\n{section.html()}\n"]
    for part in parts:
        one = part.experiment
        body.append(f"<h2 id={one.name}>{html.escape(one.title)}</h2>\n<p>{html.escape(one.note)}</p>\n")
        for figure in part.figures:
            image = base64.b64encode(svg(figure).encode()).decode()  # as an image: its styles stay its own
            source, caption = f"data:image/svg+xml;base64,{image}", html.escape(figure.caption)
            body.append(
                f'<figure><img class=paper alt="{html.escape(figure.title)}" src="{source}">'
                f"<figcaption>{caption}</figcaption></figure>\n"
            )
        for section in part.sections:
            body += [f"<h3>{html.escape(section.title)}</h3>\n<p>{html.escape(section.note)}</p>\n{section.html()}\n"]
    style = "<style>img.paper{max-width:100%;background:#fff}figcaption{max-width:50rem;opacity:.8}</style>"
    return document("untwist reproduce", TITLE, [style, *body])


TITLE = "Being Properly Improper, reproduced"


def markdown(parts: list[Part], story: Story, folder: str) -> str:
    """The same as Markdown; `folder` is where the figures are, seen from the page."""
    lines = [f"# {TITLE}", "", *(line + "\n" for line in story[0])]
    lines += [f"- [{part.experiment.title}](#{_anchor(part.experiment.title)})" for part in parts]
    lines += ["", *(section.markdown() for section in story[1])]
    for part in parts:
        lines += [f"## {part.experiment.title}", "", part.experiment.note, ""]
        for figure in part.figures:
            caption = figure.caption.replace("*", r"\*")
            lines += [f"![{figure.title}]({folder}/{figure.name}.svg)", "", f"*{caption}*", ""]
        lines += [section.markdown(level=3) for section in part.sections]
    return "\n".join(lines).rstrip() + "\n"


def _anchor(title: str) -> str:
    """As GitHub names a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _write(parts: list[Part], story: Story, out: Path, stem: str) -> None:
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
    (out / f"{stem}.md").write_text(markdown(parts, story, "figures"), "utf-8")
    (out / f"{stem}.html").write_text(page(parts, story), "utf-8")


# ---- the command ----


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="untwist reproduce", description=SUMMARY)
    cores = threads(None)
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


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then show it."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in EXPERIMENTS:
            parser.error(f"unknown name {name!r}: choose from {', '.join(EXPERIMENTS)}")
    usual = (QUICK_RUNS, QUICK_ROUNDS) if options.quick else (RUNS, ROUNDS)
    runs, rounds = (
        own if given is None else given for given, own in zip((options.runs, options.rounds), usual, strict=True)
    )
    if min(runs, rounds, options.jobs) < 1:
        parser.error("--runs, --rounds and --jobs must be at least 1")
    if options.data and not Path(options.data).is_dir():
        parser.error(f"--data {options.data} is no folder")
    if not importlib.util.find_spec("matplotlib"):
        raise ValueError('figures need matplotlib: pip install "untwist[reproduce]"')  # before the runs, not after
    out = options.out or Path("results/reproduce-quick" if options.quick else "results/reproduce")
    chosen = [EXPERIMENTS[name] for name in options.names or EXPERIMENTS]
    wanted = trials(chosen, runs, rounds)
    path, skipped = out / "results.csv", {}
    if not options.render:
        source = Source(options.data or os.environ.get(FOLDER), options.download)
        skipped = left_out(wanted.values(), source)
        for name, reason in skipped.items():
            print(f"{name} is skipped: {reason}", file=sys.stderr)
        _run(wanted, skipped, source, path, options.jobs)
    rows = [row for row in read(path, TrialRow) if row.key in wanted]
    if wanted and not rows:
        raise ValueError(f"{path} holds no result of {rounds} rounds of these experiments: nothing to show")
    results = Results(rows, runs, rounds)
    parts = [Part(experiment, results) for experiment in chosen]
    story = _story(rows, results, skipped, everything=not options.names)
    stem = "-".join(options.names) or "index"
    _write(parts, story, out, stem)
    for part in parts:
        for section in part.sections:
            if options.names or section.title.endswith(BESIDE):  # of everything only what the paper has
                print(section)
    print(*story[1], *(line.replace("*", "") for line in story[0]), sep="\n\n")
    drawn = sum(len(part.figures) for part in parts)
    print(f"\nRows: {path}\nTables: {out / 'tables'}\nFigures: {drawn} in {out / 'figures'}\nPage: {out / stem}.html")


def _run(wanted: dict[Key, Trial], skipped: dict[str, str], source: Source, path: Path, jobs: int) -> None:
    """What can be run and is not in the file, or is there by another version of its package."""
    _same_tables(read(path, TrialRow), path, source, {trial.data for trial in wanted.values()} - skipped.keys())
    possible = {
        key: trial for key, trial in wanted.items() if not skipped.keys() & {trial.data, type(trial.algorithm).__name__}
    }

    def outdated(row: TrialRow) -> bool:
        return row.key in possible and row.version != installed(possible[row.key].algorithm.packages)

    def words(row: TrialRow) -> str:
        return f"{row.data}, {row.algorithm.split('(')[0]}"

    judge = partial(judged, source=source)
    measure(possible, judge, path, TrialRow, jobs=jobs, again=outdated, words=words)


def _story(rows: list[TrialRow], results: Results, skipped: dict[str, str], everything: bool) -> Story:
    """What a page opens with: what was run, and, of everything, what it shows."""
    lines = [_described(rows, results)] if rows else []
    lines += [f"Skipped: {name}: {skipped[name]}." for name in skipped]
    if results.runs < RUNS or results.rounds != ROUNDS:
        lines.append(f"This is a look around: the paper's are {RUNS} runs of {ROUNDS} rounds.")
    elif everything:
        lines += sentences(results)
    return [*lines, WORDS], [leads(results)] if everything else []


if __name__ == "__main__":
    main()
