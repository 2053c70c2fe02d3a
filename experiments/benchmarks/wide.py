"""Tables of many columns: time and peak memory of untwist beside LightGBM and XGBoost as they come.

The default fit searches: it boosts several candidates in five folds. A fit with a given alpha is one model of 100
rounds of depth 6, which is what XGBoost makes by default.

Each fit is made in a process of its own, in turns. Seconds are the best of them, of the fit and of the prediction of as
many new rows; memory is the peak of the process less what it had before the fit. 10 % of the labels are flipped, and
accuracy is on clean labels of new rows. Rows go to results/wide.csv.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from experiments.results import Writer
from untwist import Growth, PILBoostClassifier, UntwistClassifier
from untwist.twisters import ClassNoise

#: A table is made by a kind, rows, columns and classes.
TABLES: dict[str, tuple[str, int, int, int]] = {
    "dense 20 x 50,000": ("dense", 20, 50_000, 2),
    "sparse 200 x 200,000": ("sparse", 200, 200_000, 2),
    "words 20,000 x 50,000": ("words", 20_000, 50_000, 2),
    "words 20,000 x 50,000, 20 classes": ("words", 20_000, 50_000, 20),
}

QUICK: dict[str, tuple[str, int, int, int]] = {
    "dense 20 x 5,000": ("dense", 20, 5_000, 2),
    "sparse 200 x 20,000": ("sparse", 200, 20_000, 2),
    "words 2,000 x 20,000": ("words", 2_000, 20_000, 2),
}

#: The share of the labels that are flipped.
FLIPPED = 0.1

#: So many words are in a text.
WORDS = 50


def make_lightgbm() -> Any:
    """Return LightGBM as it comes."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(verbose=-1)


def make_xgboost() -> Any:
    """Return XGBoost as it comes."""
    from xgboost import XGBClassifier

    return XGBClassifier()


METHODS: dict[str, Callable[[], Any]] = {
    "untwist": lambda: UntwistClassifier(random_state=0),
    "untwist, alpha 2": lambda: PILBoostClassifier(max_depth=6, growth=Growth(init="prior"), random_state=0),
    "LightGBM": make_lightgbm,
    "XGBoost": make_xgboost,
}


def make_table(kind: str, rows: int, columns: int, classes: int) -> tuple[Any, NDArray[Any]]:
    """Return twice as many rows, and what they truly are.

    Parameters
    ----------
    kind : str
        "dense" are normal numbers, ten columns of which are shifted by the class; "sparse" has one cell in a hundred,
        and ten columns with half of the rows of the second class; "words" counts words, which are as frequent as in a
        language, and each class has twenty words that it likes.
    rows, columns, classes : int
        The size of each half.

    Returns
    -------
    X : array or sparse matrix
        The table.
    y : array
        The class of each row.
    """
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(2 * rows) % classes)
    if kind == "dense":
        X = rng.normal(size=(2 * rows, columns))
        X[:, :10] += y[:, None]
        return X, y
    if kind == "sparse":
        noise = sparse.random(2 * rows, columns - 10, density=0.01, format="csr", random_state=0)
        signs = (rng.random((2 * rows, 10)) < 0.5) * y[:, None]
        return sparse.hstack([signs.astype(np.float64), noise], "csr"), y
    frequency = 1.0 / np.arange(1, columns + 1)
    words = rng.choice(columns, size=(2 * rows, WORDS), p=frequency / frequency.sum())
    liked = 100 + 20 * y[:, None] + rng.integers(0, 20, size=(2 * rows, 5))
    words[:, :5] = np.where(rng.random((2 * rows, 5)) < 0.3, liked, words[:, :5])
    start = WORDS * np.arange(2 * rows + 1)
    X = sparse.csr_matrix((np.ones(words.size), words.ravel(), start), shape=(2 * rows, columns))
    X.sum_duplicates()
    return X, y


def read_memory(field: str) -> float:
    """Return a size of this process in GB: VmRSS now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return float(next(line for line in lines if line.startswith(field)).split()[1]) / 1e6


def measure(table: str, method: str) -> dict[str, float]:
    """Fit and predict in this process."""
    kind, rows, columns, classes = {**TABLES, **QUICK}[table]
    X, y = make_table(kind, rows, columns, classes)
    train, test = slice(0, rows), slice(rows, 2 * rows)
    _, noisy, _ = ClassNoise(FLIPPED).twist(None, y[train], rng=0)
    model = METHODS[method]()
    Path("/proc/self/clear_refs").write_text("5", "utf-8")  # The peak starts anew.
    before = read_memory("VmRSS")
    start = time.perf_counter()
    model.fit(X[train], noisy)
    seconds = time.perf_counter() - start
    peak = read_memory("VmHWM") - before
    start = time.perf_counter()
    right = float(np.mean(model.predict(X[test]) == y[test]))
    return {"seconds": seconds, "gb": peak, "predict_seconds": time.perf_counter() - start, "right": right}


def measure_apart(table: str, method: str) -> dict[str, float]:
    """Do the same in a process of its own."""
    command = [sys.executable, "-m", "experiments.benchmarks.wide", "--one", table, method]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    found: dict[str, float] = json.loads(lines[-1])
    return found


def main() -> None:
    """Measure all methods on all tables, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller tables, once")
    parser.add_argument("--turns", type=int, default=2, help="the best of so many")
    parser.add_argument("--tables", nargs="+", choices=[*TABLES, *QUICK], help="only these")
    parser.add_argument("--one", nargs=2, metavar=("TABLE", "METHOD"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    tables = options.tables or list(QUICK if options.quick else TABLES)
    numbers = ["seconds", "gb", "predict_seconds", "right"]
    print(f"{'table':36}{'method':18}{'fit, s':>9}{'GB':>8}{'predict, s':>12}{'right':>8}")
    with Writer(Path("results/wide.csv"), ["table", "method", *numbers], resume=False) as results:
        for table in tables:
            found: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
            for _ in range(1 if options.quick else options.turns):
                for method, turns in found.items():
                    turns.append(measure_apart(table, method))
            for method, turns in found.items():
                best = {name: min(turn[name] for turn in turns) for name in numbers}
                results.add([table, method, *best.values()])
                seconds, gb, predicting, right = best.values()
                print(f"{table:36}{method:18}{seconds:9.2f}{gb:8.2f}{predicting:12.2f}{right:8.3f}", flush=True)


if __name__ == "__main__":
    main()
