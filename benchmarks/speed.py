"""Fit and predict time, against XGBoost (hist), LightGBM and HistGradientBoosting in the same run.

Binary data with 20 % label noise; the same rounds, depth and bins for everybody, all threads of the machine; fit time
includes binning; best of several repeats. Prints a table and writes the rows to results/speed.csv.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from pathlib import Path

import numpy as np

from untwist import PILBoostClassifier

CASES = [(681, 9, 1000, 3), (8631, 17, 1000, 3), (100_000, 28, 300, 3), (100_000, 28, 300, 6), (1_000_000, 28, 100, 6)]
THREADS = len(os.sched_getaffinity(0))


def data(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """A third of the columns binary, the rest real; a nonlinear truth; every fifth label flipped."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    X[:, ::3] = X[:, ::3] > 0
    y = (X[:, 1] + X[:, 2] * X[:, 4] + X[:, 0] * X[:, 5] - 0.3 > 0).astype(int)
    return X, np.where(rng.random(rows) < 0.2, 1 - y, y)


def methods(rounds: int, depth: int) -> dict[str, object]:
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier
    from xgboost import XGBClassifier

    return {
        "untwist": PILBoostClassifier(n_estimators=rounds, max_depth=depth, n_jobs=THREADS),
        "XGBoost": XGBClassifier(
            n_estimators=rounds, max_depth=depth, tree_method="hist", max_bin=256, n_jobs=THREADS, learning_rate=0.1
        ),
        "LightGBM": LGBMClassifier(
            n_estimators=rounds, max_depth=depth, num_leaves=2**depth, max_bin=255, n_jobs=THREADS, verbose=-1
        ),
        "HistGradientBoosting": HistGradientBoostingClassifier(
            max_iter=rounds, max_depth=depth, max_leaf_nodes=2**depth, early_stopping=False, max_bins=255
        ),
    }


def best_time(repeats: int, job: object) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cases", type=int, default=len(CASES), help="only the first so many")
    parser.add_argument("--output", type=Path, default=Path("results/speed.csv"))
    options = parser.parse_args()
    rows = []
    print(f"{THREADS} threads; seconds, best of {options.repeats}")
    for n, columns, rounds, depth in CASES[: options.cases]:
        X, y = data(n, columns)
        repeats = options.repeats if n < 1_000_000 else 1
        for name, model in methods(rounds, depth).items():
            print(f"  {n} x {columns}: {name} ...", end="\r", file=sys.stderr, flush=True)
            fit = best_time(repeats, lambda model=model, X=X, y=y: model.fit(X, y))
            predict = best_time(repeats, lambda model=model, X=X: model.predict_proba(X))
            rows.append(
                {
                    "rows": n,
                    "columns": columns,
                    "rounds": rounds,
                    "depth": depth,
                    "method": name,
                    "fit": fit,
                    "predict": predict,
                }
            )
        here = rows[-4:]
        fastest = min(row["fit"] for row in here[1:])
        ratio = here[0]["fit"] / fastest
        print(f"\n{n} x {columns}, {rounds} rounds, depth {depth}: our fit / fastest peer = {ratio:.2f}")
        for row in here:
            print(f"  {row['method']:<22} fit {row['fit']:8.3f}   predict {row['predict']:8.3f}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(f"\nrows: {options.output}")


if __name__ == "__main__":
    main()
