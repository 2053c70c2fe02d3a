"""Rounds per second of one and of two workers on this machine, and the bytes that go between them in a round.

    python -m experiments.benchmarks.scaling [ROWS]

Each worker is a process with one thread and its share of the rows. Seconds are the median round's; bytes are what the
loopback device counted more for many rounds than for few, beside what the histograms should take. Prints a table and
writes results/scaling.csv.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np

from experiments.benchmarks.stamps import Stamps
from experiments.results import Writer
from untwist import PILBoostClassifier
from untwist.distributed import local

COLUMNS = 20
DEPTH = 6
#: Rounds of the shorter run.
FEW = 5
#: Rounds of the longer run; what both have in common comes before the first round.
MANY = 45
#: Bytes of a histogram's entry, which is two doubles.
BIN = 16


def draw_table(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows whose labels depend on some columns, a fifth of them wrong."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, COLUMNS), dtype=np.float32)
    clean = X[:, 0] + np.abs(X[:, 1]) + X[:, 2] * X[:, 3] > 0.8
    return X, (clean ^ (rng.random(rows) < 0.2)).astype(int)


def count_loopback() -> int:
    """Count the bytes sent over the loopback device since the machine started."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split()[9])


def measure(n_workers: int, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Measure seconds and bytes per round."""
    sent = []
    for rounds in (FEW, MANY):
        with tempfile.TemporaryDirectory() as folder:
            stamps = Stamps(f"{folder}/stamps")
            model = PILBoostClassifier(
                n_estimators=rounds, max_depth=DEPTH, engine="xgboost", callbacks=[stamps], n_jobs=1
            )
            before = count_loopback()
            local.fit(model, local.shards(n_workers, X, y))
            sent.append(count_loopback() - before)
            seconds = float(np.median(np.diff(np.loadtxt(stamps.path))))
    return seconds, (sent[1] - sent[0]) / (MANY - FEW)


def histogram_bytes(columns: int, depth: int, bins: int = 256) -> int:
    """Bytes that a worker's histograms of a round take: the root's, and of every two siblings the smaller one's."""
    return (1 << (depth - 1)) * columns * bins * BIN


def main() -> None:
    """Measure one worker and two, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000, help="rows to fit (default 1000000)")
    rows = parser.parse_args().rows
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])  # Workers find the callback there.
    X, y = draw_table(rows)
    names = ["workers", "rows", "seconds per round", "rounds per second", "bytes per round", "histograms' bytes"]
    print("  ".join(f"{name:>18}" for name in names))
    with Writer(Path("results/scaling.csv"), names, resume=False) as results:
        for n_workers in (1, 2):
            seconds, sent = measure(n_workers, X, y)
            expected = histogram_bytes(COLUMNS, DEPTH) * 2 * (n_workers - 1)  # A ring passes everything around twice.
            line = [n_workers, rows, round(seconds, 4), round(1 / seconds, 2), round(sent), expected]
            print("  ".join(f"{value:>18}" for value in line))
            results.add(line)


if __name__ == "__main__":
    main()
