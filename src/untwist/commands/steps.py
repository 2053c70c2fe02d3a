"""The steps that several commands take: options, a table read, a fit with its progress, words and JSON."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from untwist.boosting.runs import Progress
from untwist.classifier import PILBoostClassifier
from untwist.commands.columns import PreparedTable, prepare
from untwist.commands.sheets import Sheet, read
from untwist.progress import ProgressLine
from untwist.text import for_json, for_terminal

__all__ = [
    "CommandFit",
    "add_table_options",
    "announce",
    "describe_noise",
    "encode_json",
    "fit",
    "read_table",
    "refuse_same_files",
    "say",
    "tell",
]


def say(words: str) -> None:
    """Print a line for the person who waits; results go to standard output."""
    print(for_terminal(" ".join(words.splitlines())), file=sys.stderr, flush=True)


def tell(words: str) -> None:
    """Print results for a person: what comes from data cannot steer the terminal."""
    print(for_terminal(words))


def add_table_options(parser: argparse.ArgumentParser, *, labelled: bool) -> None:
    """Add the options that name the file and say how to read it."""
    parser.add_argument("table", type=Path, metavar="TABLE", help="CSV (may be compressed), Parquet or Arrow file")
    if labelled:
        parser.add_argument("--label", required=True, metavar="COLUMN", help="the column to predict")
        parser.add_argument("--drop", nargs="+", default=[], metavar="COLUMN", help="columns to leave out")
        parser.add_argument(
            "--keep", nargs="+", default=[], metavar="COLUMN", help="columns to use though they look odd"
        )
        parser.add_argument("--seed", type=int, default=0, help="of what is drawn at random (default 0)")
    parser.add_argument("--separator", help="between cells (default: the likeliest of , ; | and tab)")
    parser.add_argument("--encoding", default="utf-8", help="of the text (default utf-8)")
    parser.add_argument("--threads", type=int, help="at most (default: all cores)")
    parser.add_argument("--json", action="store_true", help="results as JSON on standard output")


def read_table(options: argparse.Namespace) -> tuple[Sheet, PreparedTable]:
    """Read the file of a command and make its table ready, with words about what was done to it."""
    sheet = read(options.table, options.separator, options.encoding)
    table = prepare(sheet.frame, options.label, drop=options.drop, keep=options.keep)
    announce(table)
    return sheet, table


def announce(table: PreparedTable) -> None:
    """Say what was done to a table, and how large it is."""
    for note in table.notes:
        say(note)
    say(f"{len(table.y)} rows, {table.X.shape[1]} columns, {np.unique(table.y).size} classes")


def refuse_same_files(inputs: Sequence[Path], outputs: Sequence[Path | None]) -> None:
    """Refuse to write over what is read, or twice to one file."""
    seen = {os.path.realpath(path) for path in inputs}
    for output in (one for one in outputs if one is not None):
        if os.path.realpath(output) in seen:
            raise ValueError(f"{output} is read or written already: choose another name")
        seen.add(os.path.realpath(output))
        if not output.parent.is_dir():
            raise ValueError(f"there is no folder {output.parent} to write {output.name} to")
        if output.is_dir():
            raise ValueError(f"{output} is a folder, not a file")


@dataclass(frozen=True, eq=False)
class CommandFit:
    """The model of a command, and whether Ctrl-C ended its fit early."""

    model: PILBoostClassifier
    was_stopped: bool = False


def fit(table: PreparedTable, options: argparse.Namespace, noise_rates: Any = "auto") -> CommandFit:
    """Fit the default classifier, with a line of progress after two seconds."""
    line = ProgressLine()

    def show(progress: Progress) -> bool:
        searching = not math.isfinite(progress.seconds_left)
        line.show(f"{line.seconds:.0f} s, trying settings: {progress}" if searching else str(progress))
        return False

    settings = {"n_jobs": options.threads, "random_state": options.seed, "noise_rates": noise_rates}
    model = PILBoostClassifier(**settings, callbacks=[show])
    try:
        return CommandFit(model.fit(table.X, table.y))
    except KeyboardInterrupt:
        if not hasattr(model, "model_"):
            raise
        print(file=sys.stderr)
        say("Stopped.")
        return CommandFit(model, was_stopped=True)
    finally:
        line.clear()
        model.callbacks = None


def describe_noise(model: PILBoostClassifier) -> str:
    """Say the noise in words, with the names of the classes."""
    noise = model.noise_
    if noise is None or not noise.found or len(model.classes_) > 2:
        return "not estimated" if noise is None else str(noise)
    rates = ((noise.rate_neg, noise.interval_neg), (noise.rate_pos, noise.interval_pos))
    parts = [
        f"of what is truly {label} {rate:.1%} ({low:.1%} to {high:.1%})"
        for label, (rate, (low, high)) in zip(model.classes_, rates, strict=True)
    ]
    return f"wrong labels: {', '.join(parts)}"


def encode_json(value: Any) -> str:
    """Write results for machines: NumPy's numbers too, and null for what is no number."""

    def plain(one: Any) -> Any:
        if isinstance(one, (np.ndarray, np.generic)):
            one = one.tolist()
        if isinstance(one, float) and not math.isfinite(one):
            return None
        if isinstance(one, dict):
            return {str(key): plain(each) for key, each in one.items()}
        return [plain(each) for each in one] if isinstance(one, (list, tuple)) else one

    return for_json(json.dumps(plain(value), ensure_ascii=False, indent=1, default=str))
