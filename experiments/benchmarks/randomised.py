"""Randomised trees beside scikit-learn's ExtraTreesClassifier: the time to grow them, and to predict with them.

    python -m experiments.benchmarks.randomised [--quick]

Two classes, numbers only, 20 % of the labels wrong; as many trees, rows per leaf and columns per node for both. Growing
includes binning. Both take turns, on one thread and on all; the best turn counts. Right is how many of 20,000 fresh
rows with clean labels come out right. Rows go to results/randomised.csv.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from experiments.benchmarks.speed import THREADS, draw_data, take_turns
from experiments.results import Writer
from experiments.tables import TextTable
from untwist.boosting.engines.compiled import CompiledEngine
from untwist.boosting.engines.engine import EngineOptions, Rows, Task, TreeGrowth
from untwist.commands.main import run_program
from untwist.theory.links import ClippedLink
from untwist.theory.losses import AlphaLoss

__all__ = ["CASES", "Case", "Grown", "main"]

NAME = "python -m experiments.benchmarks.randomised"
OURS, PEER = "untwist", "scikit-learn"
MAX_FEATURES = 0.5
COLUMNS = ["case", "threads", "method", "grow", "nodes", "right", "predicted_rows", "predict"]


class Case(NamedTuple):
    """Trees to grow, how many turns each method gets, and how much faster than the peer ours should be."""

    rows: int
    columns: int
    trees: int
    min_samples_leaf: int = 5
    turns: int = 3
    predicted_rows: int = 20_000
    bar: float | None = None

    def __str__(self) -> str:
        return f"{self.rows:,} x {self.columns}, {self.trees} trees, {self.min_samples_leaf} rows per leaf"


CASES = [
    Case(1_000, 20, 100),
    Case(10_000, 20, 100, bar=5.0),
    Case(100_000, 20, 50, turns=2),
    Case(100_000, 28, 200, turns=1, predicted_rows=1_000_000),
]
QUICK = [CASES[0], CASES[1], CASES[3]._replace(trees=10, predicted_rows=100_000)]


#: Tells the class of each row.
Predict = Callable[[Any], Any]


class Grown(NamedTuple):
    """What came of a turn: seconds to grow and to predict, nodes, and which share of clean labels was right."""

    grow: float
    predict: float
    nodes: int
    right: float


def grow_ours(case: Case, threads: int, X: Any, y: Any) -> tuple[int, Predict]:
    """Grow our trees; return the number of their nodes, and what tells the class of rows."""
    engine = CompiledEngine()
    rows = Rows(X, y.astype(np.uint32), np.ones(len(y)))
    dataset = engine.make_dataset(rows, EngineOptions(n_jobs=threads))
    task = Task(ClippedLink(AlphaLoss(1.0)), 1.0, TreeGrowth())
    forest = engine.grow_randomised(dataset, task, case.trees, case.min_samples_leaf, MAX_FEATURES)
    return len(forest.feature), lambda table: forest.scores(table, n_jobs=threads) > 0


def grow_peer(case: Case, threads: int, X: Any, y: Any) -> tuple[int, Predict]:
    """Grow those of scikit-learn."""
    model = ExtraTreesClassifier(
        case.trees,
        min_samples_leaf=case.min_samples_leaf,
        max_features=MAX_FEATURES,
        n_jobs=threads,
        random_state=0,
    ).fit(X, y)
    return sum(tree.tree_.node_count for tree in model.estimators_), model.predict


METHODS = {OURS: grow_ours, PEER: grow_peer}


def take_turn(method: str, case: Case, threads: int) -> Grown:
    """Grow trees and predict with them once."""
    X, y = draw_data(case.rows, case.columns, real=True)
    X_new, y_new = draw_data(case.predicted_rows, case.columns, real=True, noise=0.0, seed=1)
    start = time.perf_counter()
    nodes, predict = METHODS[method](case, threads, X, y)
    grown = time.perf_counter()
    predicted = predict(X_new)
    return Grown(grown - start, time.perf_counter() - grown, nodes, float(np.mean(predicted == y_new)))


def compare(case: Case, threads: int, file: Writer) -> None:
    """Compare both methods, write a row for each, and say by how much ours is faster."""
    jobs = {method: partial(take_turn, method, case, threads) for method in METHODS}
    best = {}
    for method, turns in take_turns(f"{case}, {threads} threads", jobs, case.turns).items():
        best[method] = turns[0]._replace(grow=min(one.grow for one in turns), predict=min(one.predict for one in turns))
    header = ["", "grow, s", "nodes", "right, %", f"predict {case.predicted_rows:,} rows, s"]
    lines = []
    for method, one in best.items():
        lines.append([method, f"{one.grow:.3f}", f"{one.nodes:,}", f"{100 * one.right:.1f}", f"{one.predict:.3f}"])
        file.add([str(case), threads, method, one.grow, one.nodes, one.right, case.predicted_rows, one.predict])
    print(f"\n{TextTable(f'{case}, {threads} threads (best of {case.turns})', '', header, lines)}", end="")
    if len(best) < len(METHODS):
        return
    grows, predicts = (getattr(best[PEER], what) / getattr(best[OURS], what) for what in ("grow", "predict"))
    bar = "" if case.bar is None else f", bar {case.bar}: {'met' if grows >= case.bar else 'missed'}"
    print(f"  ours grow {grows:.1f} times as fast{bar}; they predict {predicts:.1f} times as fast", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog=NAME, description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="seconds: fewer cases and trees")
    options = parser.parse_args(arguments)
    path = Path("results", "randomised_quick.csv" if options.quick else "randomised.csv")
    file = Writer(path, COLUMNS, resume=False, comment=f"{THREADS} threads, load {os.getloadavg()[0]:.1f}")
    for case in QUICK if options.quick else CASES:
        for threads in sorted({1, THREADS}):
            compare(case, threads, file)
    print(f"\n{path} has all numbers")


if __name__ == "__main__":
    sys.exit(run_program(NAME, main))
