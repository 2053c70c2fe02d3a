"""What each ingredient of the default classifier contributes: the arena, with one ingredient less each time.

Accuracy and log-loss on clean test rows, mean over data sets and splits; rows go to results/ablation.csv.
"""

import argparse
import csv
import os
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from experiments.datasets import load, names
from experiments.protocol import TWISTS, applies, split
from untwist import PILBoostClassifier
from untwist.automatic import search as automatic

COLUMNS = ["data", "twist", "seed", "variant", "accuracy", "log_loss", "seconds", "alpha"]


def default(X: Any, y: Any, seed: int, **settings: Any) -> Any:
    return PILBoostClassifier(n_jobs=1, random_state=seed, **settings).fit(X, y)


def with_alphas(*alphas: float) -> Callable[..., Any]:
    def fit(X: Any, y: Any, seed: int) -> Any:
        with patch.object(automatic, "ALPHAS", alphas):
            return default(X, y, seed)

    return fit


def with_settings(**settings: Any) -> Callable[..., Any]:
    return lambda X, y, seed: default(X, y, seed, **settings)


def without_averaging(X: Any, y: Any, seed: int) -> Any:
    X, X_val, y, y_val = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    return PILBoostClassifier(n_jobs=1, random_state=seed).fit(X, y, X_val=X_val, y_val=y_val)


VARIANTS: dict[str, Callable[..., Any]] = {
    "default": default,
    "alpha = 1 only": with_alphas(1.0),
    "alpha = 2 only": with_alphas(2.0),
    "alpha = 4 only": with_alphas(4.0),
    "rates not untwisted": with_settings(noise_rates=None),
    "300 rounds, not stopped": with_settings(n_estimators=300),
    "one model, no averaging": without_averaging,
    "no l2, all rows and columns": with_settings(l2=0.0, subsample=1.0, max_features=1.0),
    "depth 4 only": with_settings(max_depth=4),
    "as in the paper": with_settings(alpha=2.0, step_size=8.0, n_estimators=1000, max_depth=3),
    "alpha by Menon's estimate": with_settings(alpha="menon"),
}


def cell(task: tuple[str, str, int, str | None]) -> list[dict[str, Any]]:
    name, twist, seed, folder = task
    warnings.filterwarnings("ignore")
    data = split(load(name, folder), twist, seed, 2500)
    rows = []
    for variant, fit in VARIANTS.items():
        begin = time.process_time()
        model = fit(data.X, data.y, seed)
        seconds = time.process_time() - begin
        p = model.predict_proba(data.X_test)[:, 1].clip(1e-6, 1 - 1e-6)
        accuracy = float(np.mean(model.predict(data.X_test) == data.y_test))
        loss = log_loss(data.y_test, p, labels=[0, 1])
        rows.append(
            dict(zip(COLUMNS, (name, twist, seed, variant, accuracy, loss, seconds, model.alpha_), strict=True))
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help="folder of CSV files; without, the sets of scikit-learn")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    tasks = [
        (name, twist, seed, options.data)
        for name in names(options.data)
        for twist in TWISTS
        if applies(twist, load(name, options.data))
        for seed in range(options.seeds)
    ]
    out = Path("results/ablation.csv")
    out.parent.mkdir(exist_ok=True)
    rows: list[dict[str, Any]] = []
    context = get_context("spawn")
    with out.open("w", newline="") as file, ProcessPoolExecutor(len(os.sched_getaffinity(0)), context) as pool:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for done, found in enumerate(pool.map(cell, tasks)):
            writer.writerows(found)
            rows += found
            print(f"\r{done + 1} of {len(tasks)} runs", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    show(rows)
    print(f"Rows: {out}")


def show(rows: list[dict[str, Any]]) -> None:
    def mean(variant: str, column: str, twists: list[str]) -> float:
        return float(np.mean([r[column] for r in rows if r["variant"] == variant and r["twist"] in twists]))

    groups = {
        "twisted": [twist for twist in TWISTS if twist != "none"],
        "none": ["none"],
        "symmetric": [twist for twist in TWISTS if twist.startswith("symmetric")],
        "class": [twist for twist in TWISTS if twist.startswith("class")],
        "features": ["features", "insider"],
        "real": ["real"],
    }
    print(f"{'':30}accuracy{'':{11 * len(groups) - 8}}  log-loss   seconds")
    print(f"{'':30}" + "".join(f"{name:>11}" for name in groups) + f"{'twisted':>10}{'':>10}")
    for variant in VARIANTS:
        accuracy = "".join(f"{mean(variant, 'accuracy', twists):11.4f}" for twists in groups.values())
        loss, seconds = mean(variant, "log_loss", groups["twisted"]), mean(variant, "seconds", list(TWISTS))
        print(f"{variant:30}{accuracy}{loss:10.4f}{seconds:10.3f}")


if __name__ == "__main__":
    main()
