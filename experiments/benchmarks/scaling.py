"""Rounds per second of one and of two workers on this machine, and the bytes that go between them in a round.

    python benchmarks/scaling.py [ROWS]

Each worker is a process with one thread and its share of the rows. Seconds are the median round's; bytes are what the
loopback device counted more for many rounds than for few, beside what the histograms should take. Prints a table and
writes results/scaling.csv.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from stamps import Stamps

from untwist import PILBoostClassifier
from untwist.distributed import local

COLUMNS, DEPTH, FEW, MANY = 20, 6, 5, 45
BIN = 16  # bytes of a histogram's entry: two doubles


def table(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose labels depend on some columns, a fifth of them wrong."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, COLUMNS), dtype=np.float32)
    clean = X[:, 0] + np.abs(X[:, 1]) + X[:, 2] * X[:, 3] > 0.8
    return X, (clean ^ (rng.random(rows) < 0.2)).astype(int)


def loopback() -> int:
    """Bytes sent over the loopback device since the machine started."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split()[9])


def measured(n_workers: int, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Seconds and bytes per round."""
    sent = []
    for rounds in (FEW, MANY):
        with tempfile.TemporaryDirectory() as folder:
            stamps = Stamps(f"{folder}/stamps")
            settings = {"n_estimators": rounds, "max_depth": DEPTH, "engine": "xgboost", "n_jobs": 1}
            before = loopback()
            local.fit(PILBoostClassifier(2.0, **settings, callbacks=[stamps]), local.shards(n_workers, X, y))
            sent.append(loopback() - before)
            seconds = float(np.median(np.diff(np.loadtxt(stamps.path))))
    return seconds, (sent[1] - sent[0]) / (MANY - FEW)


def histogram_bytes(columns: int, depth: int, bins: int = 256) -> int:
    """What a worker's histograms of a round take: the root's, and of every two siblings the smaller one's."""
    return 2 ** (depth - 1) * columns * bins * BIN


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # where workers find the callback
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    X, y = table(rows)
    Path("results").mkdir(exist_ok=True)
    with Path("results/scaling.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        names = ["workers", "rows", "seconds per round", "rounds per second", "bytes per round", "histograms' bytes"]
        writer.writerow(names)
        print("  ".join(f"{name:>18}" for name in names))
        for n_workers in (1, 2):
            seconds, sent = measured(n_workers, X, y)
            expected = histogram_bytes(COLUMNS, DEPTH) * 2 * (n_workers - 1)  # a ring passes everything around twice
            line = [n_workers, rows, round(seconds, 4), round(1 / seconds, 2), round(sent), expected]
            print("  ".join(f"{value:>18}" for value in line))
            writer.writerow(line)
