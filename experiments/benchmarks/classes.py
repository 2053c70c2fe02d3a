"""Time to fit several classes beside XGBoost (multi:softprob) and LightGBM (multiclass), in the same run.

    python -m experiments.benchmarks.classes [--quick] [--threads N]

2, 10 and 50 classes on 5,000 rows of 20 numbers, 20 % of the labels wrong; the same 100 rounds of trees of depth 6 and
255 bins for all, as in `speed`. With settings fixed like these, each method grows a tree per class and round (of two
classes, one); `several_classes_time` times the default fit instead. All threads; peers, which more threads can slow
down on small tables, have half of them too, and their better time counts. Methods take turns, and the best turn counts.
Right is the share of 5,000 fresh rows with clean labels that come out right. Rows go to results/classes*.csv.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from experiments.benchmarks.several_classes_time import draw_table
from experiments.benchmarks.speed import (
    FIT,
    ON_EVERY_COUNT,
    OURS,
    THREADS,
    Case,
    Measurements,
    Setup,
    describe_machine,
    describe_ratio,
    fit_once,
    keep_best,
    list_all_and_half,
    take_turns,
    warm_up,
)
from untwist.commands.main import run_program

__all__ = ["CASE", "TURNS", "main"]

NAME = "python -m experiments.benchmarks.classes"
CASE = Case(5_000, 20, 100, 6)
#: The turns that each method gets, by the number of classes: fits of many classes are long, and so less noisy.
TURNS = {2: 7, 10: 3, 50: 2}
QUICK = {2: 2, 10: 1}


def list_setups(methods: list[str], threads: int) -> list[Setup]:
    """List who fits on how many threads."""
    return [
        Setup(method, count)
        for method in methods
        for count in ([threads] if method == OURS else list_all_and_half(threads))
    ]


def compare(n_classes: int, turns: int, methods: list[str], threads: int, results: Measurements) -> None:
    """Compare the fits of a table, and what is predicted on all threads."""
    X, y, *fresh = draw_table(n_classes, CASE.rows, CASE.columns)
    name = f"{n_classes} classes, {CASE}"
    jobs = {
        setup: partial(fit_once, setup, CASE, X, y, tuple(fresh) if setup.threads == threads else None)
        for setup in list_setups(methods, threads)
    }
    best = keep_best(take_turns(name, jobs, turns))
    for quantity, values in best.items():
        results.add(name, quantity, values)
    results.show(name, f"best of {turns}", methods)
    print(f"  {describe_ratio(best.get(FIT, {}))}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog=NAME, description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="seconds: fewer classes and turns")
    parser.add_argument("--threads", type=int, default=THREADS, help="default: all that there are")
    options = parser.parse_args(arguments)
    if options.threads < 1:
        parser.error(f"--threads must be at least 1, got {options.threads}")
    versions = {method: version for method in ON_EVERY_COUNT if (version := warm_up(method))}
    methods = list(versions)
    setting = "; ".join([describe_machine(), *versions.values()])
    path = Path("results", "classes_quick.csv" if options.quick else "classes.csv")
    print(setting, flush=True)
    with Measurements(path, setting) as results:
        for n_classes, turns in (QUICK if options.quick else TURNS).items():
            compare(n_classes, turns, methods, options.threads, results)
    print(f"\n{results.make_table(methods).to_markdown()}\n{path} has all numbers")


if __name__ == "__main__":
    sys.exit(run_program(NAME, main))
