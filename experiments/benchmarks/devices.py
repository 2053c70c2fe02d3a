"""XGBoost's trees on a GPU: the same model as on the CPU, and what PILBoost's own work adds to a round.

    python benchmarks/devices.py [ROWS ...]

Peers in the same run: plain XGBoost (logistic loss) on the same GPU and the same bins, and the compiled engine on all
cores. Prints a table and writes results/devices.csv.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from untwist import PILBoostClassifier
from untwist.boosting.engines.xgboost.booster import Booster, Dataset
from untwist.boosting.forest import Growth
from untwist.data.workers import solo
from untwist.links import ClippedLink, default_step_size
from untwist.losses import AlphaLoss

COLUMNS, ROUNDS, DEPTH, REPEATS = 28, 50, 6, 2
MOST_ROWS_ON_CPU = 1_000_000


def table(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose labels depend on some columns, a fifth of them wrong."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, COLUMNS), dtype=np.float32)
    clean = X[:, 0] + np.abs(X[:, 1]) + X[:, 2] * X[:, 3] > 0.8
    return X, (clean ^ (rng.random(rows) < 0.2)).astype(np.uint32)


def best(job: Callable[[], float]) -> float:
    """The fewest seconds of several runs, the first of which warms up."""
    return min(job() for _ in range(REPEATS + 1))


def rounds_of_ours(data: Dataset, alpha: float) -> float:
    """Seconds of ROUNDS rounds of PILBoost."""
    link = ClippedLink(AlphaLoss(alpha))
    booster = Booster(
        data,
        link,
        default_step_size(link),
        Growth(max_depth=DEPTH),
        by_edge=True,
        least=1e-6,
        positive_class=1,
        weight=np.ones(len(data.labels)),
    )
    start = time.perf_counter()
    booster.boost(ROUNDS, threads=os.cpu_count() or 1)
    return time.perf_counter() - start


def rounds_of_xgboost(data: Dataset) -> float:
    """Seconds of ROUNDS rounds of plain XGBoost on the same bins."""
    settings = {"objective": "binary:logistic", "max_depth": DEPTH, "max_bin": 256, "device": data.device}
    booster = xgboost.Booster(settings | {"nthread": os.cpu_count()}, cache=[data.matrix])
    start = time.perf_counter()
    for index in range(ROUNDS):
        booster.update(data.matrix, index)
    booster.predict(data.matrix, output_margin=True)  # waits for the device
    return time.perf_counter() - start


def measured(rows: int) -> list[dict[str, object]]:
    """The table's lines for so many rows."""
    X, y = table(rows)
    found = []
    for device in ("cuda", "cpu")[: 2 if rows <= MOST_ROWS_ON_CPU else 1]:
        start = time.perf_counter()
        data = Dataset(
            X,
            y,
            None,
            categories={},
            max_bins=255,
            tree_method="hist",
            device=device,
            n_jobs=None,
            workers=solo,
        )
        setup = time.perf_counter() - start
        data.matrix.set_label(y)
        plain = best(lambda data=data: rounds_of_xgboost(data))
        for alpha in (2.0, 1.3):
            ours = best(lambda data=data, alpha=alpha: rounds_of_ours(data, alpha))
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
    settings = {"n_estimators": ROUNDS, "max_depth": DEPTH}
    for name, engine in {"compiled": {}, "cuda, whole fit": {"engine": "xgboost", "device": "cuda"}}.items():
        start = time.perf_counter()
        PILBoostClassifier(2.0, **settings, **engine).fit(X, y)
        found.append({"rows": rows, "device": name, "alpha": 2.0, "fit_s": round(time.perf_counter() - start, 2)})
    return found


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "weights": {"weighted": True},
    "missing values": {"missing": True},
    "categories": {"categorical_features": [5]},
    "subsample": {"subsample": 0.5},
    "early stopping": {"early_stopping": True, "n_estimators": 100, "learning_rate": 0.5},
    "exact link": {"alpha": 4.0, "link": "exact"},
    "by leaves": {"max_leaf_nodes": 9, "max_depth": None},
    "l2": {"l2": 5.0},
    "approx": {"tree_method": "approx"},
    "least share of a leaf": {"min_weight_fraction_leaf": 0.05},
    "monotone": {"monotonic_cst": [1, 0, 0, 0, 0, 0]},
}


def same_model(case: dict[str, Any]) -> str:
    """How far the models of GPU and CPU differ."""
    settings = {"alpha": 2.0, "n_estimators": 15, "max_depth": 4, "random_state": 0, "engine": "xgboost"} | case
    rng = np.random.default_rng(1)
    X = rng.integers(0, 30, (20_000, 6)).astype(float)
    y = (X[:, 0] + np.abs(X[:, 1] - 15) > 20) ^ (rng.random(len(X)) < 0.2)
    if settings.pop("missing", False):
        X[rng.random(X.shape) < 0.05] = np.nan
    weight = rng.exponential(size=len(y)) if settings.pop("weighted", False) else None
    cpu, gpu = (PILBoostClassifier(**settings, device=device).fit(X, y, weight) for device in ("cpu", "cuda"))
    alike = np.array_equal(cpu.forest_.threshold, gpu.forest_.threshold)
    difference = np.abs(cpu.decision_function(X) - gpu.decision_function(X)).max()
    return f"scores differ by {difference:.1g}, thresholds are {'' if alike else 'not '}the same"


if __name__ == "__main__":
    for name, case in CASES.items():
        print(f"{name}: {same_model(case)}")
    names = ["rows", "device", "alpha", "set_up_s", "ms_per_round", "xgboost_ms_per_round", "overhead", "fit_s"]
    print("  ".join(f"{name:>20}" for name in names))
    Path("results").mkdir(exist_ok=True)
    with Path("results/devices.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for rows in map(int, sys.argv[1:] or ["1000000"]):
            for line in measured(rows):
                print("  ".join(f"{line.get(name, '')!s:>20}" for name in names))
                writer.writerow(line)
