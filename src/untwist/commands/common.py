"""What the commands share: options, words on standard error, a fit with its progress."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from untwist.boosting.runs import Progress
from untwist.classifier import PILBoostClassifier
from untwist.commands.columns import Prepared, prepared
from untwist.commands.sheets import Sheet, read
from untwist.text import escaped, printable

__all__ = ["as_json", "chosen_table", "described", "different", "fit", "noise_words", "say", "table_options", "tell"]


def say(words: str) -> None:
    """A line for the person who waits; results go to standard output."""
    print(printable(" ".join(words.splitlines())), file=sys.stderr, flush=True)


def tell(words: str) -> None:
    """Results for a person: what comes from data cannot steer the terminal."""
    print(printable(words))


def table_options(parser: argparse.ArgumentParser, *, labelled: bool) -> None:
    """The file and how to read it."""
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


def chosen_table(options: argparse.Namespace) -> tuple[Sheet, Prepared]:
    """The file of a command and the table in it, with words about what was done to it."""
    sheet = read(options.table, options.separator, options.encoding)
    return sheet, described(prepared(sheet.frame, options.label, drop=options.drop, keep=options.keep))


def described(table: Prepared) -> Prepared:
    """The table, after words about what was done to it."""
    for note in table.notes:
        say(note)
    say(f"{len(table.y)} rows, {table.X.shape[1]} columns, {np.unique(table.y).size} classes")
    return table


def different(inputs: Sequence[Path], outputs: Sequence[Path | None]) -> None:
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


def fit(table: Prepared, options: argparse.Namespace, noise_rates: Any = "auto") -> PILBoostClassifier:
    """The default classifier, with a line of progress after two seconds."""
    progress = _Line()
    settings = {"n_jobs": options.threads, "random_state": options.seed, "noise_rates": noise_rates}
    model = PILBoostClassifier(**settings, callbacks=[progress])
    try:
        return model.fit(table.X, table.y)
    except KeyboardInterrupt:
        if not hasattr(model, "_ensembles"):
            raise
        print(file=sys.stderr)
        say("Stopped.")
        model.stopped_ = True
        return model
    finally:
        progress.end()
        model.callbacks = None


def noise_words(model: PILBoostClassifier) -> str:
    """The noise in words, with the names of the classes."""
    noise = model.noise_
    if noise is None or not noise.found or len(model.classes_) > 2:
        return "not estimated" if noise is None else str(noise)
    rates = ((noise.rate_neg, noise.interval_neg), (noise.rate_pos, noise.interval_pos))
    parts = [
        f"of what is truly {label} {rate:.1%} ({low:.1%} to {high:.1%})"
        for label, (rate, (low, high)) in zip(model.classes_, rates, strict=True)
    ]
    return f"wrong labels: {', '.join(parts)}"


class _Line:
    """A line of progress that is written over; in a log, one every ten seconds."""

    def __init__(self) -> None:
        self.start = self.last = time.monotonic()
        self.over = sys.stderr.isatty()

    def __call__(self, progress: Progress) -> bool:
        now = time.monotonic()
        if now - self.start > 2.0 and now - self.last > (0.2 if self.over else 10.0):
            self.last = now
            tried = "" if math.isfinite(progress.seconds_left) else f"{now - self.start:.0f} s, trying settings: "
            words = f"{tried}{progress}"
            print(f"\r{words:<78.78}" if self.over else f"{words}\n", end="", file=sys.stderr, flush=True)
        return False

    def end(self) -> None:
        if self.over:
            print("\r" + " " * 78 + "\r", end="", file=sys.stderr, flush=True)


def as_json(value: Any) -> str:
    """Results for machines: NumPy's numbers too, and null for what is no number."""

    def plain(one: Any) -> Any:
        if isinstance(one, (np.ndarray, np.generic)):
            one = one.tolist()
        if isinstance(one, float) and not math.isfinite(one):
            return None
        if isinstance(one, dict):
            return {str(key): plain(each) for key, each in one.items()}
        return [plain(each) for each in one] if isinstance(one, (list, tuple)) else one

    return escaped(json.dumps(plain(value), ensure_ascii=False, indent=1, default=str))
