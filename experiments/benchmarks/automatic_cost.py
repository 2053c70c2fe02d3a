"""What the default classifier costs beside an early-stopped XGBoost with its refit, all threads, in turns.

Numbers of 28 columns, 20 % of the labels flipped. Wall-clock seconds, the better of two turns; accuracy on the clean
labels of rows set aside. Rows go to results/automatic_cost.csv.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from experiments.peers import hold_out
from experiments.results import Writer
from untwist import PILBoostClassifier
from untwist.audit.peers import LEARNING_RATE, ROUNDS, fit_xgboost
from untwist.twisters import ClassNoise


def fit_default(X: Any, y: Any) -> Any:
    """Fit our default."""
    return PILBoostClassifier(random_state=0).fit(X, y)


def fit_peer(X: Any, y: Any) -> Any:
    """Fit XGBoost, stopped early, and again to all rows."""
    stopped = fit_xgboost(*hold_out(X, y, 0), n_estimators=ROUNDS, learning_rate=LEARNING_RATE)
    return fit_xgboost(X, y, n_estimators=stopped.best_iteration + 1, learning_rate=LEARNING_RATE)


METHODS = {"default": fit_default, "xgboost": fit_peer}


def main() -> None:
    """Time both methods and print a line for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options = parser.parse_args()
    out = Path("results/automatic_cost.csv")
    print(f"{'rows':>9}{'untwist, s':>12}{'XGBoost, s':>12}{'ratio':>8}{'right':>8}{'right':>8}")
    with Writer(out, ["rows", "method", "seconds", "accuracy"], resume=False) as results:
        for rows in options.rows:
            X, y = make_classification(rows + 10_000, 28, n_informative=12, random_state=0)
            X, X_test, y, y_test = train_test_split(X.astype(np.float32), y, train_size=rows, random_state=0)
            X, noisy, _ = ClassNoise(0.2).twist(X, y, rng=0)
            seconds: dict[str, float] = {}
            right: dict[str, float] = {}
            for _ in range(2):
                for name, fit in METHODS.items():
                    start = time.perf_counter()
                    model = fit(X, noisy)
                    spent = time.perf_counter() - start
                    seconds[name] = min(spent, seconds.get(name, spent))
                    right[name] = model.score(X_test, y_test)
            for name in METHODS:
                results.add([rows, name, seconds[name], right[name]])
            ours, theirs = seconds.values()
            accuracy = "".join(f"{value:8.3f}" for value in right.values())
            print(f"{rows:9,}{ours:12.2f}{theirs:12.2f}{ours / theirs:8.2f}{accuracy}", flush=True)
    print(f"Rows: {out}")


if __name__ == "__main__":
    main()
