"""How far off the estimate of the seconds left is, a quarter, half and three quarters through a fit.

Each table is fitted with a display that keeps every estimate with the time it was made. The ratio is what was said to
be left over what was left: 1 is right, 2 twice as much, 0.5 half. Tables of the folder that UNTWIST_DATA names can be
added by `--tables`. Rows go to results/progress_estimate.csv.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification

from experiments.datasets import load
from experiments.results import Writer
from untwist import UntwistClassifier
from untwist.progress import ProgressLine, use_display
from untwist.twisters import ClassNoise

#: The shares of a fit at which estimates are looked at.
SHARES = (0.25, 0.5, 0.75)


class Recorder(ProgressLine):
    """A display that keeps what it is told, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[float, float]] = []

    def show(self, words: str, seconds_left: float = math.nan) -> None:
        """Keep an estimate."""
        del words
        self.told.append((time.perf_counter(), seconds_left))


def list_tables(rows: list[int]) -> dict[str, tuple[Any, Any, Any]]:
    """Return tables with a fifth of their labels wrong: X, y and who gave each label, or None."""
    tables: dict[str, tuple[Any, Any, Any]] = {}
    for name, load_table in (("breast cancer", load_breast_cancer), ("digits", load_digits)):
        tables[name] = (*_twist(*load_table(return_X_y=True)), None)
    for n in rows:
        for n_classes in (2, 4):
            X, y = make_classification(n, 20, n_informative=8, n_classes=n_classes, random_state=0)
            tables[f"{n:,} rows, {n_classes} classes"] = (*_twist(X, y), None)
    X, y = _twist(*make_classification(rows[0], 20, n_informative=8, random_state=1))
    source = np.arange(len(y)) % 8
    bad = (source == 0) & (np.arange(len(y)) % 16 == 0)
    tables[f"{rows[0]:,} rows of 8 sources"] = (X, np.where(bad, 1 - y, y), source)
    return tables


def _twist(X: Any, y: Any) -> tuple[Any, Any]:
    twisted = ClassNoise(0.2).twist(X, y, rng=0)
    return twisted[0], twisted[1]


def measure(X: Any, y: Any, source: Any, n_jobs: int | None) -> tuple[float, list[float]]:
    """Fit a table; return the seconds that took, and what was estimated over what was left at each of `SHARES`."""
    recorder = Recorder()
    start = time.perf_counter()
    with use_display(recorder):
        UntwistClassifier(random_state=0, n_jobs=n_jobs).fit(X, y, source=source)
    end = time.perf_counter()
    ratios = []
    for share in SHARES:
        moment = start + share * (end - start)
        said = [(when, left) for when, left in recorder.told if when <= moment and not math.isnan(left)]
        if not said:
            ratios.append(math.nan)
            continue
        when, left = said[-1]
        ratios.append(max(left - (moment - when), 0.0) / (end - moment))  # A person counts down from the last one.
    return end - start, ratios


def main() -> None:
    """Measure all tables and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 60_000])
    parser.add_argument("--tables", nargs="*", default=[], help="names of tables in the folder of UNTWIST_DATA")
    parser.add_argument("--jobs", type=int, default=None, help="threads of each fit (default: all cores)")
    options = parser.parse_args()
    out = Path("results/progress_estimate.csv")
    columns = ["table", "seconds", *(f"ratio_at_{share:g}" for share in SHARES)]
    with Writer(out, columns, resume=False) as results:
        print(f"{'table':32}{'seconds':>8}" + "".join(f"{f'at {share:.0%}':>9}" for share in SHARES))
        tables = list_tables(options.rows)
        for name in options.tables:
            table = load(name)
            tables[name] = (*_twist(table.X, table.y), None)
        for name, (X, y, source) in tables.items():
            seconds, ratios = measure(X, y, source, options.jobs)
            print(f"{name:32}{seconds:8.2f}" + "".join(f"{ratio:9.2f}" for ratio in ratios))
            results.add([name, seconds, *ratios])


if __name__ == "__main__":
    main()
