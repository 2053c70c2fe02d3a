"""XGBoost's trees on a GPU: the same model as on the CPU, and what PILBoost's own work adds to a round.

    python -m experiments.benchmarks.devices [ROWS ...]

Peers in the same run: plain XGBoost (logistic loss) on the same GPU and the same bins, and the compiled engine on all
cores. Prints a table and writes results/devices.csv.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from experiments.results import Writer
from untwist import Growth, PILBoostClassifier
from untwist.boosting.engines.engine import EngineOptions, Rows, Task, TreeGrowth
from untwist.boosting.engines.xgboost.booster import XGBoostBooster
from untwist.boosting.engines.xgboost.dataset import XGBoostDataset
from untwist.links import ClippedLink, default_step_size
from untwist.losses import AlphaLoss

COLUMNS = 28
ROUNDS = 50
DEPTH = 6
#: Runs that are timed; one more warms up.
REPEATS = 2
MOST_ROWS_ON_CPU = 1_000_000
NAMES = ["rows", "device", "alpha", "set_up_s", "ms_per_round", "xgboost_ms_per_round", "overhead", "fit_s"]


def draw_table(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows whose labels depend on some columns, a fifth of them wrong."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, COLUMNS), dtype=np.float32)
    clean = X[:, 0] + np.abs(X[:, 1]) + X[:, 2] * X[:, 3] > 0.8
    return X, (clean ^ (rng.random(rows) < 0.2)).astype(np.uint32)


def time_best(job: Callable[[], float]) -> float:
    """Time several runs, the first of which warms up, and give the fewest seconds."""
    return min(job() for _ in range(REPEATS + 1))


def time_ours(data: XGBoostDataset, alpha: float) -> float:
    """Time ROUNDS rounds of PILBoost."""
    link = ClippedLink(AlphaLoss(alpha))
    weight = np.ones(len(data.labels))
    booster = XGBoostBooster(data, Task(link, default_step_size(link), TreeGrowth(max_depth=DEPTH), weight=weight))
    start = time.perf_counter()
    booster.boost(ROUNDS)
    return time.perf_counter() - start


def time_xgboost(data: XGBoostDataset) -> float:
    """Time ROUNDS rounds of plain XGBoost on the same bins."""
    settings = {"objective": "binary:logistic", "max_depth": DEPTH, "max_bin": 256, "device": data.device}
    booster = xgboost.Booster(settings | {"nthread": os.cpu_count()}, cache=[data.matrix])
    start = time.perf_counter()
    for index in range(ROUNDS):
        booster.update(data.matrix, index)
    booster.predict(data.matrix, output_margin=True)  # This waits for the device.
    return time.perf_counter() - start


def time_fit(X: np.ndarray, y: np.ndarray, engine: dict[str, Any]) -> float:
    """Time a whole fit, from the table to the model."""
    start = time.perf_counter()
    PILBoostClassifier(alpha=2.0, n_estimators=ROUNDS, max_depth=DEPTH, **engine).fit(X, y)
    return time.perf_counter() - start


def measure(rows: int) -> list[dict[str, object]]:
    """Measure the lines of the table for a number of rows."""
    X, y = draw_table(rows)
    found = []
    for device in ("cuda", "cpu")[: 2 if rows <= MOST_ROWS_ON_CPU else 1]:
        start = time.perf_counter()
        data = XGBoostDataset(Rows(X, y, np.ones(rows)), EngineOptions(device=device))
        setup = time.perf_counter() - start
        data.matrix.set_label(y)
        plain = time_best(partial(time_xgboost, data))
        for alpha in (2.0, 1.3):
            ours = time_best(partial(time_ours, data, alpha))
            found.append(
                {
                    "rows": rows,
                    "device": device,
                    "alpha": alpha,
                    "set_up_s": round(setup, 2),
                    "ms_per_round": round(1e3 * ours / ROUNDS, 2),
                    "xgboost_ms_per_round": round(1e3 * plain / ROUNDS, 2),
                    "overhead": round(ours / plain - 1, 3),
                }
            )
    engines: dict[str, dict[str, Any]] = {
        "compiled": {},
        "cuda, whole fit": {"engine": "xgboost", "growth": Growth(device="cuda")},
    }
    for name, engine in engines.items():
        seconds = time_best(partial(time_fit, X, y, engine))
        found.append({"rows": rows, "device": name, "alpha": 2.0, "fit_s": round(seconds, 2)})
    return found


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "weights": {"weighted": True},
    "missing values": {"missing": True},
    "categories": {"categorical_features": [5]},
    "subsample": {"growth": {"subsample": 0.5}},
    "early stopping": {"early_stopping": True, "n_estimators": 100, "learning_rate": 0.5},
    "exact link": {"alpha": 4.0, "link": "exact"},
    "by leaves": {"max_leaf_nodes": 9, "max_depth": None},
    "l2": {"growth": {"l2": 5.0}},
    "approx": {"growth": {"tree_method": "approx"}},
    "least share of a leaf": {"growth": {"min_weight_fraction_leaf": 0.05}},
    "monotone": {"monotonic_cst": [1, 0, 0, 0, 0, 0]},
}


def compare_models(case: dict[str, Any]) -> str:
    """Say how far the models of GPU and CPU differ."""
    settings: dict[str, Any] = {
        "alpha": 2.0,
        "n_estimators": 15,
        "max_depth": 4,
        "random_state": 0,
        "engine": "xgboost",
    } | case
    rng = np.random.default_rng(1)
    X = rng.integers(0, 30, (20_000, 6)).astype(float)
    y = (X[:, 0] + np.abs(X[:, 1] - 15) > 20) ^ (rng.random(len(X)) < 0.2)
    if settings.pop("missing", False):
        X[rng.random(X.shape) < 0.05] = np.nan
    weight = rng.exponential(size=len(y)) if settings.pop("weighted", False) else None
    growth = {"init": "prior"} | settings.pop("growth", {})
    cpu, gpu = (
        PILBoostClassifier(growth=Growth(device=device, **growth), **settings).fit(X, y, weight)
        for device in ("cpu", "cuda")
    )
    alike = np.array_equal(cpu.forest_.threshold, gpu.forest_.threshold)
    difference = np.abs(cpu.decision_function(X) - gpu.decision_function(X)).max()
    return f"scores differ by {difference:.1g}, thresholds are {'' if alike else 'not '}the same"


def main() -> None:
    """Compare the models of both devices, then the time they take."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=int, nargs="*", default=[1_000_000], help="rows to fit (default 1000000)")
    options = parser.parse_args()
    for name, case in CASES.items():
        print(f"{name}: {compare_models(case)}")
    print("  ".join(f"{name:>20}" for name in NAMES))
    with Writer(Path("results/devices.csv"), NAMES, resume=False) as results:
        for rows in options.rows:
            for line in measure(rows):
                cells = [line.get(name, "") for name in NAMES]
                print("  ".join(f"{cell!s:>20}" for cell in cells))
                results.add(cells)


if __name__ == "__main__":
    main()
