"""What the default classifier costs beside a search of XGBoost over two depths with its refit, all threads, in turns.

Numbers of 28 columns, 20 % of the labels flipped. Wall-clock seconds of the fit, mixing of families included, and of
the prediction of a million rows, the best of three turns; accuracy on the clean labels of rows set aside. Boosted
trees alone are what the default was before families were mixed. Rows go to results/automatic_cost.csv.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from experiments.peers import PEERS, search
from experiments.results import Writer
from untwist import PILBoostClassifier
from untwist.twisters import ClassNoise

#: Every time is the best of so many turns.
TURNS = 3

METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "default": lambda X, y: PILBoostClassifier(random_state=0).fit(X, y),
    "boosted": lambda X, y: PILBoostClassifier(families="boosted", random_state=0).fit(X, y),
    "xgboost": lambda X, y: search(PEERS["xgboost"], X, y, 0)[0],
}


def main() -> None:
    """Time all methods and print a line for each and each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options = parser.parse_args()
    out = Path("results/automatic_cost.csv")
    many = np.random.default_rng(0).normal(scale=2.0, size=(1_000_000, 28)).astype(np.float32)
    print(f"{'rows':>9} {'method':10}{'fit, s':>9}{'/ XGBoost':>11}{'predict, s':>12}{'right':>8}")
    with Writer(out, ["rows", "method", "seconds", "predict_seconds", "accuracy"], resume=False) as results:
        for rows in options.rows:
            X, y = make_classification(rows + 10_000, 28, n_informative=12, random_state=0)
            X, X_test, y, y_test = train_test_split(X.astype(np.float32), y, train_size=rows, random_state=0)
            X, noisy, _ = ClassNoise(0.2).twist(X, y, rng=0)
            seconds: dict[str, float] = dict.fromkeys(METHODS, np.inf)
            predicting: dict[str, float] = dict.fromkeys(METHODS, np.inf)
            right: dict[str, float] = {}
            for _ in range(TURNS):
                for name, fit in METHODS.items():
                    start = time.perf_counter()
                    model = fit(X, noisy)
                    seconds[name] = min(time.perf_counter() - start, seconds[name])
                    start = time.perf_counter()
                    model.predict_proba(many)
                    predicting[name] = min(time.perf_counter() - start, predicting[name])
                    right[name] = float(np.mean(np.argmax(model.predict_proba(X_test), axis=1) == y_test))
            for name, spent in seconds.items():
                results.add([rows, name, spent, predicting[name], right[name]])
                ratio = spent / seconds["xgboost"]
                line = f"{rows:9,} {name:10}{spent:9.3f}{ratio:11.2f}{predicting[name]:12.2f}{right[name]:8.3f}"
                print(line, flush=True)
    print(f"Rows: {out}")


if __name__ == "__main__":
    main()
