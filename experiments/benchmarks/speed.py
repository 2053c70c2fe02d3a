"""Time and memory of untwist beside XGBoost (hist), LightGBM, CatBoost and HistGradientBoosting, in the same run.

    python -m experiments.benchmarks.speed [--quick] [--real] [--huge]

Binary data with 20 % label noise; the same rounds, depth and 255 bins for all. A fit includes binning. Fits of untwist,
XGBoost and LightGBM are timed on 1, 2, 4, ... threads up to what the machine has, all else on all threads. Methods and
numbers of threads take turns, so that a noisy minute hits all of them; the best turn counts. Memory is that of a fit in
a fresh process: its peak less what was there before. Each number goes to results/speed*.csv as soon as it is known.
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
from typing import Any, NamedTuple, Self

import numpy as np

from experiments.results import Writer
from experiments.tables import TextTable
from untwist.boosting.forest import count_threads
from untwist.commands.main import run_program
from untwist.progress import ProgressLine

__all__ = ["CASES", "METHODS", "Case", "Setup", "main"]

NAME = "python -m experiments.benchmarks.speed"

THREADS = count_threads(None)
OURS = "untwist"
#: Those that are timed on every number of threads come first.
ON_EVERY_COUNT = [OURS, "XGBoost", "LightGBM"]
METHODS = [*ON_EVERY_COUNT, "CatBoost", "HistGradientBoosting"]
#: From so many threads on, one bar holds for all cases.
MANY_THREADS = 8
BAR_ON_MANY_THREADS = 0.5
#: With many threads, peers need no single one for so many rows: it would take minutes and is never their best.
MANY_ROWS = 1_000_000
#: Our fit is called slower with more threads where it takes more than this many times what fewer threads take.
SLOWER = 1.05
FIT = "fit"
MEMORY = "memory of a fit"
PREDICT = "predict"
MANY = "predict 1,000,000 rows"
ONE = "predict one row"
SWAPPED = "swapped out"
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
    SWAPPED: "pages",
}
time_once = partial(timeit, number=1)
time_each = partial(repeat, number=1, repeat=200)


class Case(NamedTuple):
    """A problem, the turns at it, and what our fit / fastest peer should be at most on fewer than `MANY_THREADS`."""

    rows: int
    columns: int
    rounds: int
    depth: int
    turns: int = 1
    bar: float = 1.0

    def __str__(self) -> str:
        return f"{self.rows:,} x {self.columns}, {self.rounds} rounds, depth {self.depth}"

    def find_bar(self, threads: int) -> float:
        """Return the bar on a machine with so many threads."""
        return self.bar if threads < MANY_THREADS else BAR_ON_MANY_THREADS


class Setup(NamedTuple):
    """A method on so many threads."""

    method: str
    threads: int

    def __str__(self) -> str:
        return f"{self.method} on {write_threads(self.threads)}"


CASES = [
    Case(681, 9, 1000, 3, turns=7, bar=0.3),
    Case(8631, 17, 1000, 3, turns=7, bar=0.35),
    Case(100_000, 28, 300, 3, turns=3, bar=0.35),
    Case(100_000, 28, 300, 6, turns=3, bar=0.4),
    Case(1_000_000, 28, 100, 6, turns=2, bar=0.45),
]
QUICK = [CASES[0]._replace(turns=3), CASES[1]._replace(turns=2), CASES[3]._replace(turns=1)]
HUGE = Case(10_000_000, 28, 30, 6)


def write_threads(threads: int) -> str:
    """Write a number of threads with its noun."""
    return f"{threads} thread{'' if threads == 1 else 's'}"


def list_threads(most: int) -> list[int]:
    """List 1, 2, 4, ... threads up to the most, which always ends the list."""
    return [*(2**power for power in range((most - 1).bit_length())), most]


def list_all_and_half(threads: int) -> list[int]:
    """List half of the threads, if there is a half, and all: more of them make some peers slower on small tables."""
    return sorted({max(threads // 2, 1), threads})


def list_setups(case: Case, methods: list[str]) -> list[Setup]:
    """List who fits a case, and on how many threads."""
    setups = []
    for method in methods:
        counts = list_threads(THREADS) if method in ON_EVERY_COUNT else [THREADS]
        if method != OURS and skips_one_thread(case):
            counts = [threads for threads in counts if threads > 1]
        setups += [Setup(method, threads) for threads in counts]
    return setups


def skips_one_thread(case: Case) -> bool:
    """Tell whether peers are not timed on a single thread."""
    return case.rows >= MANY_ROWS and THREADS >= MANY_THREADS


def draw_data(rows: int, columns: int, real: bool, noise: float = 0.2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows with a nonlinear truth and flipped labels; a third of the columns is binary unless `real`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    if not real:
        X[:, ::3] = X[:, ::3] > 0
    y = (X[:, 1] + X[:, 2] * X[:, 4] + X[:, 0] * X[:, 5] - 0.3 > 0).astype(int)
    return X, np.where(rng.random(rows) < noise, 1 - y, y)


def make_model(method: str, rounds: int, depth: int, threads: int | None = None) -> Any:
    """Make a model to fit, on all threads unless a number is given; its library is imported, and no other.

    HistGradientBoosting always takes all threads by itself.
    """
    threads = threads or THREADS
    common = {"n_estimators": rounds, "max_depth": depth, "n_jobs": threads}
    # Our rounds learn about as much as the peers' at twice their rate; with alpha left open there would be folds, too.
    ours = {"alpha": 2.0, "learning_rate": 0.2, **common}
    peer = {"learning_rate": 0.1, **common}
    cat = {"learning_rate": 0.1, "iterations": rounds, "depth": depth, "thread_count": threads, "border_count": 254}
    hist = {"learning_rate": 0.1, "max_iter": rounds, "max_depth": depth, "max_leaf_nodes": 2**depth, "max_bins": 255}
    known: dict[str, tuple[str, str, dict[str, Any]]] = {
        OURS: ("untwist", "PILBoost", ours | {"max_bins": 255}),
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


def fit_once(setup: Setup, case: Case, X: Any, y: Any, fresh: tuple[Any, Any] | None = None) -> dict[str, float]:
    """Time a fit; where fresh rows with clean labels are given, time a prediction too, and count what it gets right."""
    model = make_model(setup.method, case.rounds, case.depth, setup.threads)
    numbers = {FIT: time_once(lambda: model.fit(X, y))}
    if fresh is not None:
        numbers[PREDICT] = time_once(lambda: model.predict_proba(X))
        numbers[RIGHT] = 100 * model.score(*fresh)
    return numbers


def keep_best(turns: Mapping[Setup, list[dict[str, float]]]) -> dict[str, dict[Setup, float]]:
    """Keep the least number of all turns, by quantity and setup; a model is equally right in each of them."""
    best: dict[str, dict[Setup, float]] = {}
    for setup, numbers in turns.items():
        for quantity in numbers[0]:
            best.setdefault(quantity, {})[setup] = min(one[quantity] for one in numbers)
    return best


def fit_here(setup: Setup, case: Case, real: bool) -> tuple[float, float, int]:
    """Measure seconds, MB, and pages that the machine swapped out; data and library are there before it begins."""

    def ask_kernel(file: str, name: str) -> int:
        return int(re.findall(rf"^{name}\W+(\d+)", Path("/proc", file).read_text(), re.MULTILINE)[0])

    X, y = draw_data(case.rows, case.columns, real)
    warm_up(setup.method)
    ctypes.CDLL(None).malloc_trim(0)  # Free memory would be used again, uncounted.
    Path("/proc/self/clear_refs").write_text("5")  # The peak starts anew.
    resident, swapped = ask_kernel("self/status", "VmRSS"), ask_kernel("vmstat", "pswpout")
    fit = fit_once(setup, case, X, y)[FIT]
    return fit, (ask_kernel("self/status", "VmHWM") - resident) * 1024 / 1e6, ask_kernel("vmstat", "pswpout") - swapped


def fit_elsewhere(setup: Setup, case: Case, real: bool) -> tuple[float, float, int]:
    """Measure the same in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(fit_here, setup, case, real).result()


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
    """Numbers by case and quantity, then setup; as a context manager it closes their file."""

    def __init__(self, path: Path, setting: str) -> None:
        columns = ["case", "method", "threads", "quantity", "value", "unit"]
        self.file = Writer(path, columns, resume=False, comment=setting)
        self.values: dict[tuple[str, str], dict[Setup, float]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.__exit__(*error)

    def add(self, case: object, quantity: str, values: dict[Setup, float]) -> None:
        """Keep the numbers, and write them to the file at once."""
        self.values[str(case), quantity] = values
        for setup, value in values.items():
            self.file.add([str(case), *setup, quantity, float(value), UNITS[quantity]])

    def show(self, case: object, note: str, methods: list[str]) -> None:
        """Print one case: a line per method, a column per quantity and, where there are several, number of threads."""
        header, columns = [""], [methods]
        for (name, quantity), values in self.values.items():
            if name != str(case):
                continue
            counts = sorted({setup.threads for setup in values})
            for threads in counts:
                place = f" on {write_threads(threads)}" if len(counts) > 1 else ""
                header.append(f"{quantity}{place}, {UNITS[quantity]}")
                here = {setup.method: value for setup, value in values.items() if setup.threads == threads}
                columns.append(format_cells(quantity, here, methods))
        lines = [list(line) for line in zip(*columns, strict=True)]
        print(f"\n{TextTable(f'{case} ({note})', '', header, lines)}", end="", flush=True)

    def make_table(self, methods: list[str]) -> TextTable:
        """Make a table of all that was compared: a line per quantity and case, the best method in bold."""
        lines = []
        for (case, quantity), values in sorted(self.values.items(), key=lambda item: list(UNITS).index(item[0][1])):
            best = {method: values[setup] for method, setup in find_best_setups(values).items()}
            if len(best) > 1 and quantity not in (PREDICT, SWAPPED):
                numbers = format_cells(quantity, best, methods)
                first = methods.index((max if quantity == RIGHT else min)(best, key=best.__getitem__))
                numbers[first] = f"**{numbers[first]}**"
                ratio = "" if quantity == RIGHT else f"{find_ratio(values):.2f}"
                lines.append([f"{quantity}, {UNITS[quantity]} ({case})", *numbers, ratio])
        note = "Each fit is that on the number of threads which suits its method best."
        return TextTable("All that was compared", note, ["", *methods, "ours / best peer"], lines)


def format_cells(quantity: str, values: dict[str, float], methods: list[str]) -> list[str]:
    """Write the numbers of a line, the methods in order."""
    digits = {"s": 3, "%": 1}.get(UNITS[quantity], 0)
    return [f"{values[name]:,.{digits}f}" if name in values else "-" for name in methods]


def find_best_setups(values: dict[Setup, float]) -> dict[str, Setup]:
    """Find the number of threads with the least value for each method; the best method comes first."""
    best: dict[str, Setup] = {}
    for setup in sorted(values, key=values.__getitem__):
        best.setdefault(setup.method, setup)
    return best


def pair_best(values: dict[Setup, float]) -> tuple[Setup | None, Setup | None]:
    """Find our best setup and that of the best peer, where there is one."""
    best = find_best_setups(values)
    ours = best.pop(OURS, None)
    return ours, next(iter(best.values()), None)


def find_ratio(values: dict[Setup, float]) -> float:
    """Divide ours by that of the best peer, if there are both."""
    ours, peer = pair_best(values)
    return values[ours] / values[peer] if ours and peer else np.nan


def describe_ratio(fits: dict[Setup, float], bar: float | None = None) -> str:
    """Write our fit / fastest peer, who these are, and whether a bar is met."""
    ours, peer = pair_best(fits)
    if ours is None or peer is None:
        return "our fit / fastest peer: one of them is missing"
    ratio = find_ratio(fits)
    verdict = "" if bar is None else f", bar {bar}: {'met' if ratio <= bar else 'missed'}"
    return f"our fit / fastest peer = {ratio:.2f} ({ours}, {peer}){verdict}"


def describe_slowdowns(fits: dict[Setup, float]) -> str:
    """Write on which numbers of threads our fit takes longer than on fewer, by more than SLOWER allows."""
    ours = {setup.threads: seconds for setup, seconds in fits.items() if setup.method == OURS}
    found = []
    for threads in sorted(ours):
        fewer = min((count for count in ours if count < threads), key=ours.__getitem__, default=threads)
        times = ours[threads] / ours[fewer]
        if times > SLOWER:
            found.append(f"on {write_threads(threads)} it takes {times:.2f} times as long as on {fewer}")
    return "our fit with more threads: " + (", ".join(found) or f"nowhere more than {100 * (SLOWER - 1):.0f} % slower")


def compare_fits(case: Case, methods: list[str], results: Measurements, real: bool) -> None:
    """Compare fits, predictions of the training rows, the memory where rows are many; say if our fit meets its bar."""
    X, y = draw_data(case.rows, case.columns, real)
    fresh = draw_data(20_000, case.columns, real, noise=0.0, seed=1)
    jobs = {
        setup: partial(fit_once, setup, case, X, y, fresh if setup.threads == THREADS else None)
        for setup in list_setups(case, methods)
    }
    best = keep_best(take_turns(case, jobs, case.turns))
    for quantity, values in best.items():
        results.add(case, quantity, values)
    if case.rows >= 100_000:
        setups = [Setup(method, THREADS) for method in methods]
        alone = take_turns(f"{case}, memory", {setup: partial(fit_elsewhere, setup, case, real) for setup in setups})
        results.add(case, MEMORY, {setup: memory for setup, [(_, memory, _)] in alone.items()})
    results.show(case, f"best of {case.turns}", methods)
    fits = best.get(FIT, {})
    print(f"  {describe_ratio(fits, case.find_bar(THREADS))}\n  {describe_slowdowns(fits)}")
    if skips_one_thread(case):
        print("  peers were not timed on 1 thread, which would take minutes")
    sys.stdout.flush()


def compare_predictions(methods: list[str], results: Measurements, real: bool, turns: int) -> None:
    """Compare many rows in one call, and one row per call."""
    X, y = draw_data(1_000_000, 28, real)
    case = "100 trees of depth 6, 28 columns"
    fits = {
        Setup(method, THREADS): partial(make_model(method, rounds=100, depth=6).fit, X[:100_000], y[:100_000])
        for method in methods
    }
    models = {setup: model for setup, [model] in take_turns("models to predict with", fits).items()}
    many = {setup: partial(time_once, partial(model.predict_proba, X)) for setup, model in models.items()}
    one = {setup: partial(time_each, partial(model.predict_proba, X[:1])) for setup, model in models.items()}
    results.add(case, MANY, {setup: min(times) for setup, times in take_turns(MANY, many, turns).items()})
    medians = {setup: 1e6 * float(np.median(times)) for setup, times in take_turns(ONE, one, turns).items()}
    results.add(case, ONE, medians)
    results.show(case, f"best of {turns}; one row: median of {200 * turns:,} calls", methods)


def measure_growth(what: str, cases: list[Case], results: Measurements, real: bool, turns: int) -> None:
    """Find the power of the rows, or of the columns, with which the time of our fit grows."""
    ours = Setup(OURS, THREADS)
    jobs = {case: partial(fit_once, ours, case, *draw_data(*case[:2], real)) for case in cases}
    done = take_turns(f"growth with {what}", jobs, turns)
    fits = {case: min(one[FIT] for one in numbers) for case, numbers in done.items()}
    exponent = np.polyfit(np.log([getattr(case, what) for case in fits]), np.log(list(fits.values())), deg=1)[0]
    for case, fit in fits.items():
        results.add(case, FIT, {ours: fit})
    results.add(f"growth with {what}", "exponent", {ours: exponent})
    numbers = ", ".join(f"{getattr(case, what):,}: {fit:.3f} s" for case, fit in fits.items())
    print(f"\nOur fit grows with {what}^{exponent:.2f} (50 rounds, depth 6, best of {turns})\n  {numbers}", flush=True)


def measure_huge(methods: list[str], results: Measurements, real: bool) -> None:
    """Measure ten million rows, each method in a process of its own on all threads."""
    setups = [Setup(method, THREADS) for method in methods]
    done = take_turns(HUGE, {setup: partial(fit_elsewhere, setup, HUGE, real) for setup in setups})
    for place, quantity in enumerate((FIT, MEMORY, SWAPPED)):
        results.add(HUGE, quantity, {setup: numbers[place] for setup, [numbers] in done.items()})
    results.show(HUGE, "one fit", methods)
    print(f"  {describe_ratio(results.values[str(HUGE), FIT])}", flush=True)


def compare_all(methods: list[str], results: Measurements, real: bool, quick: bool) -> None:
    """Compare fits and predictions, and see how our fit grows."""
    for case in QUICK if quick else CASES:
        compare_fits(case, methods, results, real)
    compare_predictions(methods, results, real, turns=1 if quick else 10)
    sizes, turns = (3, 2) if quick else (5, 3)
    measure_growth("rows", [Case(50_000 * 2**i, 28, 50, 6) for i in range(sizes)], results, real, turns)
    measure_growth("columns", [Case(100_000, 8 * 2**i, 50, 6) for i in range(sizes)], results, real, turns)


def describe_machine() -> str:
    """Write what the numbers depend on, beside the versions of the libraries."""
    cpu = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()) or ["unknown CPU"]
    return f"{write_threads(THREADS)}, {cpu[0]}, load {os.getloadavg()[0]:.1f}, numpy {np.__version__}"


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog=NAME, description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="about a minute: three of the cases, fewer turns")
    parser.add_argument("--real", action="store_true", help="all columns real, instead of a third of them binary")
    parser.add_argument("--huge", action="store_true", help=f"only {HUGE}, by {', '.join(ON_EVERY_COUNT)}")
    options = parser.parse_args(arguments)
    real = options.real
    wanted = ON_EVERY_COUNT if options.huge else METHODS
    versions = {method: version for method in wanted if (version := warm_up(method))}
    methods = list(versions)
    columns = "all columns real" if real else "a third of the columns binary"
    setting = "; ".join([columns, describe_machine(), *versions.values()])
    path = Path("results", "_".join(["speed"] + [flag for flag, on in vars(options).items() if on]) + ".csv")
    print(setting, flush=True)
    with Measurements(path, setting) as results:
        try:
            if options.huge:
                measure_huge(methods, results, real)
            else:
                compare_all(methods, results, real, options.quick)
        finally:
            table = results.make_table(methods)
            print(f"\n{table.to_markdown() if table.lines else ''}\n{path} has all numbers")


if __name__ == "__main__":
    sys.exit(run_program(NAME, main))
