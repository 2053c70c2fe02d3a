"""What the default classifier costs with many classes, beside XGBoost's search over two depths with its refit.

    python -m experiments.benchmarks.several_classes_time [--threads N] [--classes 10 50] [--turns 2]

Synthetic numbers, 4,000 rows of 16 columns and 20,000 of 28, 20 % of the labels wrong. Both get as many threads and
take turns; seconds are those of the clock and, beside them, of the processor, the better of the turns. Accuracy and
log-loss are on the clean labels of rows set aside. The last column is the part of our fit that the noise takes.
Rows go to results/several_classes_time.csv.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from experiments.peers import PEERS, compute_log_loss, give_threads, search
from experiments.results import Writer
from experiments.tables import TextTable
from untwist import UntwistClassifier
from untwist.boosting.forest import count_threads
from untwist.noise.out_of_fold import estimate_noise_of
from untwist.twisters import BernoulliNoise

#: Rows and columns of the tables.
SHAPES = [(4_000, 16), (20_000, 28)]
TEST_ROWS = 5_000
COLUMNS = ["classes", "rows", "columns", "threads", "method", "seconds", "processor", "accuracy", "log_loss", "noise"]


@dataclass(frozen=True)
class Timing:
    """What a fit took, and what it is worth; `noise` are the seconds of the processor for the estimate of the noise."""

    seconds: float
    processor: float
    accuracy: float
    log_loss: float
    noise: float = np.nan


def draw_table(n_classes: int, rows: int, columns: int) -> tuple[Any, Any, Any, Any]:
    """Draw training rows with twisted labels, and test rows with clean ones."""
    X, y = make_classification(
        rows + TEST_ROWS,
        columns,
        n_informative=12,
        n_redundant=2,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=1.5,
        random_state=0,
    )
    X, X_test, y, y_test = train_test_split(X.astype(np.float32), y, train_size=rows, stratify=y, random_state=0)
    return X, BernoulliNoise(0.2).twist(X, y, rng=0)[1], X_test, y_test


def time_untwist(X: Any, y: Any, X_test: Any, y_test: Any, threads: int) -> Timing:
    """Time our default."""
    start, processor = time.perf_counter(), time.process_time()
    model = UntwistClassifier(n_jobs=threads, random_state=0).fit(X, y)
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    noise = time.process_time()
    assert model.model_.out_of_fold is not None
    estimate_noise_of(model.model_.out_of_fold)
    noise = time.process_time() - noise
    right = float(np.mean(model.predict(X_test) == y_test))
    return Timing(seconds, processor, right, compute_log_loss(y_test, model.predict_proba(X_test)), noise)


def time_xgboost(X: Any, y: Any, X_test: Any, y_test: Any, threads: int) -> Timing:
    """Time XGBoost, stopped early at each of two depths, and fitted again to all rows."""
    peer = give_threads(PEERS["xgboost"], threads)
    start, processor = time.perf_counter(), time.process_time()
    model, _ = search(peer, X, y, seed=0)
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    posterior = peer.predict(model, X_test, int(y_test.max()) + 1)
    right = float(np.mean(posterior.argmax(axis=1) == y_test))
    return Timing(seconds, processor, right, compute_log_loss(y_test, posterior))


METHODS: dict[str, Callable[..., Timing]] = {"untwist": time_untwist, "xgboost": time_xgboost}


def measure(n_classes: int, rows: int, columns: int, threads: int, turns: int) -> dict[str, Timing]:
    """Time both methods in turns, and keep the better turn of each."""
    table = draw_table(n_classes, rows, columns)
    best: dict[str, Timing] = {}
    for _ in range(turns):
        for name, method in METHODS.items():
            timing = method(*table, threads)
            if name not in best or timing.seconds < best[name].seconds:
                best[name] = timing
    return best


def write_line(n_classes: int, rows: int, columns: int, best: dict[str, Timing]) -> list[str]:
    """Write what was measured as a line of the table."""
    ours, theirs = (best[name] for name in METHODS)
    return [
        str(n_classes),
        f"{rows:,} x {columns}",
        f"{ours.seconds:.1f} ({ours.processor:.1f})",
        f"{theirs.seconds:.1f} ({theirs.processor:.1f})",
        f"{ours.seconds / theirs.seconds:.2f}",
        f"{ours.accuracy:.3f}, {theirs.accuracy:.3f}",
        f"{ours.log_loss:.3f}, {theirs.log_loss:.3f}",
        f"{ours.noise / ours.processor:.1%}",
    ]


def main(arguments: list[str] | None = None) -> None:
    """Time all tables and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 50], help="numbers of classes (default 10 50)")
    parser.add_argument("--rows", type=int, nargs="+", help="which of 4000 and 20000 rows (default: both)")
    parser.add_argument(
        "--threads", type=int, default=count_threads(None), help="threads (default: the cores there are)"
    )
    parser.add_argument("--turns", type=int, default=2, help="how often each is timed (default 2)")
    options = parser.parse_args(arguments)
    if min(options.threads, options.turns) < 1:
        parser.error("--threads and --turns must be at least 1")
    shapes = [shape for shape in SHAPES if options.rows is None or shape[0] in options.rows]
    out = Path("results/several_classes_time.csv")
    lines = []
    with Writer(out, COLUMNS, resume=False) as results:
        for n_classes in options.classes:
            for rows, columns in shapes:
                best = measure(n_classes, rows, columns, options.threads, options.turns)
                for name, one in best.items():
                    timing = [one.seconds, one.processor, one.accuracy, one.log_loss, one.noise]
                    results.add([n_classes, rows, columns, options.threads, name, *timing])
                lines.append(write_line(n_classes, rows, columns, best))
                print("  ".join(lines[-1]), flush=True)
    header = ["classes", "table", "untwist, s", "XGBoost, s", "ratio", "accuracy", "log-loss", "noise of the fit"]
    note = (
        f"{options.threads} threads; seconds by the clock (of the processor); accuracy and log-loss: ours, XGBoost's."
    )
    print()
    print(TextTable("Time with many classes", note, header, lines))
    print(f"Rows: {out}")


if __name__ == "__main__":
    main()
