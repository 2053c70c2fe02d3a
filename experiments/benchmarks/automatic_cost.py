"""What the default classifier costs beside a search of XGBoost over two depths with its refit, all threads, in turns.

    python -m experiments.benchmarks.automatic_cost [--quick] [--rows 1000 10000] [--threads N]

Numbers of 28 columns, 20 % of the labels flipped. Wall-clock seconds of the fit, mixing of families included, and of
the prediction of a million rows, the best of three turns, or of one where rows are a million; accuracy on the clean
labels of rows set aside. XGBoost has all threads and, as more of them make it slower on small tables, half of them too;
its better time counts. Boosted trees alone are what the default was before families were mixed. Rows go to
results/automatic_cost.csv.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from experiments.benchmarks.ablation import change_recipe
from experiments.benchmarks.speed import (
    MANY_ROWS,
    MANY_THREADS,
    THREADS,
    Setup,
    describe_machine,
    list_all_and_half,
    take_turns,
    write_threads,
)
from experiments.peers import PEERS, find_version, give_threads, search
from experiments.results import Writer
from experiments.tables import TextTable
from untwist import UntwistClassifier
from untwist.commands.main import run_program
from untwist.twisters import ClassNoise

__all__ = ["METHODS", "Spent", "main"]

NAME = "python -m experiments.benchmarks.automatic_cost"
ROWS = [1_000, 10_000, 100_000, 1_000_000]
QUICK_ROWS = [1_000, 10_000]
TEST_ROWS = 10_000
PREDICTED_ROWS = 1_000_000
#: Every time is the best of so many turns, unless the rows are many. The first turn of all imports libraries.
TURNS = 3
QUICK_TURNS = 2
COLUMNS = ["rows", "method", "threads", "seconds", "predict_seconds", "accuracy"]

OURS, PEER = "default", "xgboost"


def _fit_boosted_trees(X: Any, y: Any, threads: int) -> Any:
    """Fit the default without its trees of random thresholds."""
    return change_recipe(mixes=False)(X, y, 0, n_jobs=threads)


METHODS: dict[str, Callable[[Any, Any, int], Any]] = {
    OURS: lambda X, y, threads: UntwistClassifier(n_jobs=threads, random_state=0).fit(X, y),
    "boosted": _fit_boosted_trees,
    PEER: lambda X, y, threads: search(give_threads(PEERS["xgboost"], threads), X, y, 0)[0],
}


class Spent(NamedTuple):
    """Seconds of a fit and of a prediction, and which share of clean labels came out right."""

    fit: float
    predict: float
    right: float


class Table(NamedTuple):
    """Training rows with twisted labels, and test rows with clean ones."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


def draw_table(rows: int) -> Table:
    """Draw a table with so many training rows."""
    X, y = make_classification(rows + TEST_ROWS, 28, n_informative=12, random_state=0)
    X, X_test, y, y_test = train_test_split(X.astype(np.float32), y, train_size=rows, random_state=0)
    X, noisy, _ = ClassNoise(0.2).twist(X, y, rng=0)
    return Table(X, noisy, X_test, y_test)


def list_setups(rows: int, threads: int) -> list[Setup]:
    """List the methods with their threads; half of few threads could not be the best for many rows, and takes long."""
    needs_half = rows < MANY_ROWS or threads >= MANY_THREADS
    peer_threads = list_all_and_half(threads) if needs_half else [threads]
    return [Setup(method, count) for method in METHODS for count in (peer_threads if method == PEER else [threads])]


def take_turn(setup: Setup, table: Table, many: Any) -> Spent:
    """Fit and predict once."""
    start = time.perf_counter()
    model = METHODS[setup.method](table.X, table.y, setup.threads)
    fitted = time.perf_counter()
    model.predict_proba(many)
    predicted = time.perf_counter()
    right = float(np.mean(np.argmax(model.predict_proba(table.X_test), axis=1) == table.y_test))
    return Spent(fitted - start, predicted - fitted, right)


def make_table(rows: int, turns: int, best: dict[Setup, Spent], n_predicted: int) -> TextTable:
    """Make a table with a line for each setup; the ratio is that to the best time of the peer."""
    peer = find_fastest_peer(best)
    lines = []
    for setup, one in best.items():
        ratio = "-" if peer is None else f"{one.fit / best[peer].fit:.2f}"
        lines.append([str(setup), f"{one.fit:.3f}", ratio, f"{one.predict:.2f}", f"{100 * one.right:.1f}"])
    header = ["", "fit, s", "/ XGBoost", f"predict {n_predicted:,} rows, s", "right, %"]
    return TextTable(f"{rows:,} rows (best of {turns})", "", header, lines)


def find_fastest_peer(best: dict[Setup, Spent]) -> Setup | None:
    """Find the number of threads on which the peer is fastest."""
    return min((setup for setup in best if setup.method == PEER), key=lambda setup: best[setup].fit, default=None)


def describe_ratio(best: dict[Setup, Spent]) -> str:
    """Write what our default takes, as a multiple of the peer's best."""
    ours = next((setup for setup in best if setup.method == OURS), None)
    peer = find_fastest_peer(best)
    if ours is None or peer is None:
        return "our default fit / XGBoost's search with refit: one of them is missing"
    ratio = best[ours].fit / best[peer].fit
    return f"our default fit / XGBoost's search with refit = {ratio:.2f} (XGBoost on {write_threads(peer.threads)})"


def compare(rows: int, threads: int, turns: int, many: Any, file: Writer) -> None:
    """Time all methods on a table, write a row for each, and print them."""
    table = draw_table(rows)
    jobs = {setup: partial(take_turn, setup, table, many) for setup in list_setups(rows, threads)}
    best = {}
    for setup, spent in take_turns(f"{rows:,} rows", jobs, turns).items():
        best[setup] = Spent(min(one.fit for one in spent), min(one.predict for one in spent), spent[-1].right)
        file.add([rows, *setup, *best[setup]])
    print(f"\n{make_table(rows, turns, best, len(many))}  {describe_ratio(best)}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog=NAME, description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="seconds: two small tables, fewer turns and predictions")
    parser.add_argument("--rows", type=int, nargs="+", help=f"default {' '.join(map(str, ROWS))}")
    parser.add_argument("--threads", type=int, default=THREADS, help="default: all that there are")
    options = parser.parse_args(arguments)
    if options.threads < 1:
        parser.error(f"--threads must be at least 1, got {options.threads}")
    predicted_rows = PREDICTED_ROWS // 10 if options.quick else PREDICTED_ROWS
    many = np.random.default_rng(0).normal(scale=2.0, size=(predicted_rows, 28)).astype(np.float32)
    path = Path("results", "automatic_cost_quick.csv" if options.quick else "automatic_cost.csv")
    setting = "; ".join([describe_machine(), find_version(["untwist"]), PEERS["xgboost"].version])
    print(setting, flush=True)
    with Writer(path, COLUMNS, resume=False, comment=setting) as file:
        for rows in options.rows or (QUICK_ROWS if options.quick else ROWS):
            turns = 1 if rows >= MANY_ROWS else QUICK_TURNS if options.quick else TURNS
            compare(rows, options.threads, turns, many, file)
    print(f"\n{path} has all numbers")


if __name__ == "__main__":
    sys.exit(run_program(NAME, main))
