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

import numpy as np
import xgboost

from untwist import PILBoostClassifier
from untwist.collective import ALONE
from untwist.links import ClippedLink, default_step_size
from untwist.losses import AlphaLoss
from untwist.trees import Growth
from untwist.xgb.engine import Booster, Dataset

COLUMNS, ROUNDS, DEPTH, REPEATS = 28, 50, 6, 3


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
    for device in ("cuda", "cpu"):
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
            workers=ALONE,
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
    start = time.perf_counter()
    PILBoostClassifier(2.0, n_estimators=ROUNDS, max_depth=DEPTH).fit(X, y)
    whole = time.perf_counter() - start
    found.append({"rows": rows, "device": "compiled engine", "alpha": 2.0, "fit_s": round(whole, 2)})
    start = time.perf_counter()
    PILBoostClassifier(2.0, n_estimators=ROUNDS, max_depth=DEPTH, engine="xgboost", device="cuda").fit(X, y)
    found.append(
        {"rows": rows, "device": "cuda, whole fit", "alpha": 2.0, "fit_s": round(time.perf_counter() - start, 2)}
    )
    return found


def same_model(rows: int = 200_000) -> dict[str, float]:
    """How far the models of GPU, CPU and the compiled engine differ."""
    X, y = table(rows)
    settings = {"alpha": 2.0, "n_estimators": 30, "max_depth": DEPTH}
    models = {
        "cuda": PILBoostClassifier(**settings, engine="xgboost", device="cuda").fit(X, y),
        "cpu": PILBoostClassifier(**settings, engine="xgboost").fit(X, y),
        "compiled": PILBoostClassifier(**settings).fit(X, y),
    }
    scores = {name: model.decision_function(X) for name, model in models.items()}
    splits = {name: (model.forest_.feature, model.forest_.threshold) for name, model in models.items()}
    return {
        f"{a} - {b}": float(np.abs(scores[a] - scores[b]).max())
        for a, b in (("cuda", "cpu"), ("cpu", "compiled"), ("cuda", "compiled"))
    } | {
        f"splits alike, {a} and {b}": float(
            len(splits[a][0]) == len(splits[b][0])
            and all(np.array_equal(u, v) for u, v in zip(splits[a], splits[b], strict=True))
        )
        for a, b in (("cuda", "cpu"), ("cuda", "compiled"))
    }


if __name__ == "__main__":
    for name, value in same_model().items():
        print(f"{name}: {value:.3g}")
    lines = [line for rows in map(int, sys.argv[1:] or ["1000000"]) for line in measured(rows)]
    names = list(dict.fromkeys(name for line in lines for name in line))
    print("  ".join(f"{name:>20}" for name in names))
    for line in lines:
        print("  ".join(f"{line.get(name, '')!s:>20}" for name in names))
    Path("results").mkdir(exist_ok=True)
    with Path("results/devices.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(lines)
