"""What the default classifier costs beside an early-stopped XGBoost with its refit, all threads, in turns.

Numbers of 28 columns, 20 % of the labels flipped. Wall-clock seconds, the better of two turns; accuracy on the clean
labels of rows set aside. Rows go to results/automatic_cost.csv.
"""

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier

from untwist import PILBoostClassifier
from untwist.twisters import ClassNoise


def default(X: Any, y: Any) -> Any:
    return PILBoostClassifier(random_state=0).fit(X, y)


def xgboost(X: Any, y: Any) -> Any:
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    stopped = XGBClassifier(n_estimators=2000, learning_rate=0.1, early_stopping_rounds=50)
    stopped.fit(X_train, y_train, eval_set=[(X_val, y_val)], verbose=False)
    return XGBClassifier(n_estimators=stopped.best_iteration + 1, learning_rate=0.1).fit(X, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    out = Path("results/automatic_cost.csv")
    out.parent.mkdir(exist_ok=True)
    print(f"{'rows':>9}{'untwist, s':>12}{'XGBoost, s':>12}{'ratio':>8}{'right':>8}{'right':>8}")
    with out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["rows", "method", "seconds", "accuracy"])
        for rows in parser.parse_args().rows:
            X, y = make_classification(rows + 10_000, 28, n_informative=12, random_state=0)
            X, X_test, y, y_test = train_test_split(X.astype(np.float32), y, train_size=rows, random_state=0)
            X, noisy, _ = ClassNoise(0.2).twist(X, y, rng=0)
            seconds, right = {}, {}
            for _ in range(2):
                for method in (default, xgboost):
                    begin = time.perf_counter()
                    model = method(X, noisy)
                    spent = time.perf_counter() - begin
                    name = method.__name__
                    seconds[name] = min(spent, seconds.get(name, spent))
                    right[name] = model.score(X_test, y_test)
            for name in seconds:
                writer.writerow([rows, name, seconds[name], right[name]])
            ours, theirs = seconds.values()
            accuracy = "".join(f"{value:8.3f}" for value in right.values())
            print(f"{rows:9,}{ours:12.2f}{theirs:12.2f}{ours / theirs:8.2f}{accuracy}", flush=True)
    print(f"Rows: {out}")


if __name__ == "__main__":
    main()
