"""Time and memory of untwist beside XGBoost (hist), LightGBM, CatBoost and HistGradientBoosting, in the same run.

Binary data with 20 % label noise; the same rounds, depth and 255 bins for all; all threads. A fit includes binning. The
methods take turns, so that a noisy minute hits all of them; the best turn counts. Memory is that of a fit in a fresh
process: its peak less what was there before. Each number goes to results/speed*.csv as soon as it is known.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from timeit import repeat, timeit
from typing import Any, NamedTuple

import numpy as np

from experiments.results import Writer
from experiments.tables import TextTable
from untwist.boosting.forest import count_threads
from untwist.commands.main import run_program
from untwist.progress import ProgressLine

__all__ = ["CASES", "METHODS", "Case", "main"]

NAME = "python -m experiments.benchmarks.speed"

THREADS = count_threads(None)
METHODS = ["untwist", "XGBoost", "LightGBM", "CatBoost", "HistGradientBoosting"]
FIT = "fit"
MEMORY = "memory of a fit"
PREDICT = "predict"
MANY = "predict 1,000,000 rows"
ONE = "predict one row"
#: Equal rounds are not equal learning, so that this is measured too.
RIGHT = "right on clean rows"
UNITS = {
    FIT: "s",
    RIGHT: "%",
    MEMORY: "MB",
    PREDICT: "s",
    MANY: "s",
    ONE: "µs",
    "exponent": "1",
    "swapped out": "pages",
}
time_once = partial(timeit, number=1)
time_each = partial(repeat, number=1, repeat=200)


class Case(NamedTuple):
    """A problem, how many turns each method gets at it, and what our fit / fastest peer should be at most."""

    rows: int
    columns: int
    rounds: int
    depth: int
    turns: int = 1
    bar: float = 1.0

    def __str__(self) -> str:
        return f"{self.rows:,} x {self.columns}, {self.rounds} rounds, depth {self.depth}"


CASES = [
    Case(681, 9, 1000, 3, turns=7, bar=0.4),
    Case(8631, 17, 1000, 3, turns=7, bar=0.4),
    Case(100_000, 28, 300, 3, turns=5, bar=0.5),
    Case(100_000, 28, 300, 6, turns=5, bar=0.5),
    Case(1_000_000, 28, 100, 6, turns=2, bar=0.6),
]
QUICK = [CASES[0]._replace(turns=3), CASES[1]._replace(turns=2), CASES[3]._replace(turns=2)]
HUGE = Case(10_000_000, 28, 20, 6)


def draw_data(rows: int, columns: int, real: bool, noise: float = 0.2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows with a nonlinear truth and flipped labels; a third of the columns is binary unless `real`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    if not real:
        X[:, ::3] = X[:, ::3] > 0
    y = (X[:, 1] + X[:, 2] * X[:, 4] + X[:, 0] * X[:, 5] - 0.3 > 0).astype(int)
    return X, np.where(rng.random(rows) < noise, 1 - y, y)


def make_model(method: str, rounds: int, depth: int) -> Any:
    """Make a model to fit; its library is imported, and no other. HistGradientBoosting takes all threads by itself."""
    common = {"n_estimators": rounds, "max_depth": depth, "n_jobs": THREADS}
    # Our rounds learn about as much as the peers' at twice their rate; with alpha left open there would be folds, too.
    ours = {"alpha": 2.0, "learning_rate": 0.2, **common}
    peer = {"learning_rate": 0.1, **common}
    cat = {"learning_rate": 0.1, "iterations": rounds, "depth": depth, "thread_count": THREADS, "border_count": 254}
    hist = {"learning_rate": 0.1, "max_iter": rounds, "max_depth": depth, "max_leaf_nodes": 2**depth, "max_bins": 255}
    known: dict[str, tuple[str, str, dict[str, Any]]] = {
        "untwist": ("untwist", "PILBoost", ours | {"max_bins": 255}),
        "XGBoost": ("xgboost", "XGB", peer | {"max_bin": 255, "tree_method": "hist"}),
        "LightGBM": ("lightgbm", "LGBM", peer | {"max_bin": 255, "num_leaves": 2**depth, "verbose": -1}),
        "CatBoost": ("catboost", method, cat | {"allow_writing_files": False, "logging_level": "Silent"}),
        "HistGradientBoosting": ("sklearn.ensemble", method, hist | {"early_stopping": False}),
    }
    module, name, settings = known[method]
    return getattr(importlib.import_module(module), f"{name}Classifier")(**settings)


def warm_up(method: str) -> str:
    """Do one tiny fit; give the library and its version, or nothing if it is missing."""
    os.environ.pop("OMP_NUM_THREADS", None)  # HistGradientBoosting would heed it, the others not.
    X, y = draw_data(200, 6, real=True)
    try:
        model = make_model(method, rounds=2, depth=2).fit(X, y)
    except (ImportError, OSError) as error:
        print(f"{method} is left out ({error}): pip install {method.lower()} brings it")
        return ""
    model.predict_proba(X)
    library = type(model).__module__.split(".")[0]
    return f"{library} {sys.modules[library].__version__}"


def fit_and_predict(method: str, case: Case, X: np.ndarray, y: np.ndarray, real: bool) -> tuple[float, float, float]:
    """Time both, and count how many of fresh rows with clean labels come out right, in percent."""
    model = make_model(method, case.rounds, case.depth)
    times = time_once(lambda: model.fit(X, y)), time_once(lambda: model.predict_proba(X))
    return *times, 100 * model.score(*draw_data(20_000, case.columns, real, noise=0.0, seed=1))


def fit_here(method: str, case: Case, real: bool) -> tuple[float, float, int]:
    """Measure seconds, MB, and pages that the machine swapped out; data and library are there before it begins."""

    def ask_kernel(file: str, name: str) -> int:
        return int(re.findall(rf"^{name}\W+(\d+)", Path("/proc", file).read_text(), re.MULTILINE)[0])

    X, y = draw_data(case.rows, case.columns, real)
    warm_up(method)
    ctypes.CDLL(None).malloc_trim(0)  # Free memory would be used again, uncounted.
    Path("/proc/self/clear_refs").write_text("5")  # The peak starts anew.
    resident, swapped = ask_kernel("self/status", "VmRSS"), ask_kernel("vmstat", "pswpout")
    fit = time_once(lambda: make_model(method, case.rounds, case.depth).fit(X, y))
    return fit, (ask_kernel("self/status", "VmHWM") - resident) * 1024 / 1e6, ask_kernel("vmstat", "pswpout") - swapped


def fit_elsewhere(method: str, case: Case, real: bool) -> tuple[float, float, int]:
    """Measure the same in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(fit_here, method, case, real).result()


def take_turns(what: object, jobs: Mapping[Any, Callable[[], Any]], turns: int = 1) -> dict[Any, list[Any]]:
    """Run each job, turn by turn. One that fails is named and gets no further turn; the others go on."""
    given: dict[Any, list[Any]] = {name: [] for name in jobs}
    queue = list(jobs)
    with ProgressLine() as line:
        for turn in range(1, turns + 1):
            for name in queue.copy():
                line.show(f"{what}: {name}, {turn} of {turns}")
                time.sleep(0.1)  # The threads of the job before fall asleep.
                try:
                    given[name].append(jobs[name]())
                except Exception as error:
                    line.clear()
                    print(f"{what}: {name} failed with {type(error).__name__}: {error}")
                    queue.remove(name)
            queue = queue[1:] + queue[:1]  # Somebody else begins.
    return {name: values for name, values in given.items() if values}


class Measurements:
    """Numbers by case and quantity, then method."""

    def __init__(self, path: Path, setting: str) -> None:
        columns = ["case", "method", "quantity", "value", "unit"]
        self.file = Writer(path, columns, resume=False, comment=setting)
        self.values: dict[tuple[str, str], dict[str, float]] = {}

    def add(self, case: object, quantity: str, values: dict[str, float]) -> None:
        """Keep the numbers, and write them to the file at once."""
        self.values[str(case), quantity] = values
        for method, value in values.items():
            self.file.add([str(case), method, quantity, float(value), UNITS[quantity]])

    def show(self, case: object, note: str, methods: list[str]) -> None:
        """Print one case: a line per method, a column per quantity."""
        here = {quantity: values for (name, quantity), values in self.values.items() if name == str(case)}
        header = ["", *(f"{quantity}, {UNITS[quantity]}" for quantity in here)]
        columns = [format_cells(quantity, values, methods) for quantity, values in here.items()]
        lines = [list(line) for line in zip(methods, *columns, strict=True)]
        print(f"\n{TextTable(f'{case} ({note})', '', header, lines)}", end="", flush=True)

    def make_table(self, methods: list[str]) -> TextTable:
        """Make a table of all that was compared: a line per quantity and case, the best method in bold."""
        lines = []
        for (case, quantity), values in sorted(self.values.items(), key=lambda item: list(UNITS).index(item[0][1])):
            if len(values) > 1 and quantity != PREDICT:
                numbers = format_cells(quantity, values, methods)
                best = methods.index((max if quantity == RIGHT else min)(values, key=values.__getitem__))
                numbers[best] = f"**{numbers[best]}**"
                ratio = "" if quantity == RIGHT else f"{find_ratio(values):.2f}"
                lines.append([f"{quantity}, {UNITS[quantity]} ({case})", *numbers, ratio])
        return TextTable("All that was compared", "", ["", *methods, "ours / best peer"], lines)


def format_cells(quantity: str, values: dict[str, float], methods: list[str]) -> list[str]:
    """Write the numbers of a line, the methods in order."""
    digits = {"s": 3, "%": 1}.get(UNITS[quantity], 0)
    return [f"{values[name]:,.{digits}f}" if name in values else "-" for name in methods]


def find_ratio(values: dict[str, float]) -> float:
    """Divide ours by that of the best peer, if there are both."""
    return values.get("untwist", np.nan) / min((values[name] for name in values if name != "untwist"), default=np.nan)


def compare_fits(case: Case, methods: list[str], results: Measurements, real: bool) -> None:
    """Compare fits, predictions of the training rows, the memory where rows are many; say if our fit meets its bar."""
    X, y = draw_data(case.rows, case.columns, real)
    times = take_turns(
        case, {method: partial(fit_and_predict, method, case, X, y, real) for method in methods}, case.turns
    )
    fits, predicts, right = ({name: min(one[i] for one in all) for name, all in times.items()} for i in range(3))
    results.add(case, FIT, fits)
    results.add(case, PREDICT, predicts)
    results.add(case, RIGHT, right)
    if case.rows >= 100_000:
        alone = take_turns(
            f"{case}, memory", {method: partial(fit_elsewhere, method, case, real) for method in methods}
        )
        results.add(case, MEMORY, {method: memory for method, [(_, memory, _)] in alone.items()})
    results.show(case, f"best of {case.turns}", methods)
    met = "met" if find_ratio(fits) <= case.bar else "missed"
    print(f"  our fit / fastest peer = {find_ratio(fits):.2f}, bar {case.bar}: {met}", flush=True)


def compare_predictions(methods: list[str], results: Measurements, real: bool, turns: int) -> None:
    """Compare many rows in one call, and one row per call."""
    X, y = draw_data(1_000_000, 28, real)
    case = "100 trees of depth 6, 28 columns"
    fits = {
        method: partial(make_model(method, rounds=100, depth=6).fit, X[:100_000], y[:100_000]) for method in methods
    }
    models = {method: model for method, [model] in take_turns("models to predict with", fits).items()}
    many = {method: partial(time_once, partial(model.predict_proba, X)) for method, model in models.items()}
    one = {method: partial(time_each, partial(model.predict_proba, X[:1])) for method, model in models.items()}
    results.add(case, MANY, {method: min(times) for method, times in take_turns(MANY, many, turns).items()})
    medians = {method: 1e6 * float(np.median(times)) for method, times in take_turns(ONE, one, turns).items()}
    results.add(case, ONE, medians)
    results.show(case, f"best of {turns}; one row: median of {200 * turns:,} calls", methods)


def measure_growth(what: str, cases: list[Case], results: Measurements, real: bool, turns: int) -> None:
    """Find the power of the rows, or of the columns, with which the time of our fit grows."""
    jobs = {case: partial(fit_and_predict, "untwist", case, *draw_data(*case[:2], real), real) for case in cases}
    fits = {case: min(both)[0] for case, both in take_turns(f"growth with {what}", jobs, turns).items()}
    exponent = np.polyfit(np.log([getattr(case, what) for case in fits]), np.log(list(fits.values())), deg=1)[0]
    for case, fit in fits.items():
        results.add(case, FIT, {"untwist": fit})
    results.add(f"growth with {what}", "exponent", {"untwist": exponent})
    numbers = ", ".join(f"{getattr(case, what):,}: {fit:.3f} s" for case, fit in fits.items())
    print(f"\nOur fit grows with {what}^{exponent:.2f} (50 rounds, depth 6, best of {turns})\n  {numbers}", flush=True)


def measure_huge(results: Measurements, real: bool) -> None:
    """Measure ten million rows, ours alone."""
    [numbers] = take_turns(HUGE, {"untwist": partial(fit_elsewhere, "untwist", HUGE, real)})["untwist"]
    for quantity, value in zip((FIT, MEMORY, "swapped out"), numbers, strict=True):
        results.add(HUGE, quantity, {"untwist": value})
    results.show(HUGE, "one fit", ["untwist"])


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog=NAME, description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="about a minute: three of the cases, fewer turns")
    parser.add_argument("--real", action="store_true", help="all columns real, instead of a third of them binary")
    parser.add_argument("--huge", action="store_true", help=f"only untwist, only {HUGE}")
    options = parser.parse_args(arguments)
    quick = options.quick
    real = options.real
    versions = {method: version for method in METHODS[: 1 if options.huge else None] if (version := warm_up(method))}
    methods = list(versions)
    cpu = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()) or ["unknown CPU"]
    machine = f"{THREADS} threads, {cpu[0]}, load {os.getloadavg()[0]:.1f}, numpy {np.__version__}"
    setting = "; ".join(["all columns real" if real else "a third of the columns binary", machine, *versions.values()])
    path = Path("results", "_".join(["speed"] + [flag for flag, on in vars(options).items() if on]) + ".csv")
    results = Measurements(path, setting)
    print(setting, flush=True)
    try:
        if options.huge:
            return measure_huge(results, real)
        for case in QUICK if quick else CASES:
            compare_fits(case, methods, results, real)
        compare_predictions(methods, results, real, turns=1 if quick else 10)
        sizes, turns = (3, 2) if quick else (5, 3)
        measure_growth("rows", [Case(50_000 * 2**i, 28, 50, 6) for i in range(sizes)], results, real, turns)
        measure_growth("columns", [Case(100_000, 8 * 2**i, 50, 6) for i in range(sizes)], results, real, turns)
    finally:
        table = results.make_table(methods)
        print(f"\n{table.to_markdown() if table.lines else ''}\n{path} has all numbers")


if __name__ == "__main__":
    sys.exit(run_program(NAME, main))
