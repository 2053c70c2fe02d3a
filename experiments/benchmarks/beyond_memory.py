"""A Parquet file that is trained on without its numbers ever being in memory, beside XGBoost's external-memory mode.

``python -m experiments.benchmarks.beyond_memory --rows 50000000 --folder DIR`` writes the file (float32, 20 % of the
labels turned over; it stays if `--keep` says so), trains each method in a process of its own, and prints seconds and
peak memory. The rows go to results/beyond_memory.csv.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.results import Writer

METHODS = ("untwist", "xgboost external", "xgboost quantile")
BLOCK = 500_000
LABEL = "y"
#: What is told of a method and the heading above it: seconds to read the labels, to bin the columns, to boost; the
#: accuracy is that on rows whose labels are right.
FIGURES = {
    "labels": "labels",
    "bins": "bins",
    "rounds": "rounds",
    "seconds": "all (s)",
    "cpu_seconds": "CPU (s)",
    "peak_gb": "peak GB",
    "clean_accuracy": "accuracy",
}


def write_file(path: Path, rows: int, columns: int, seed: int = 0) -> None:
    """Write the file, a block of rows after the other."""
    import pyarrow
    from pyarrow import parquet

    names = [f"x{i}" for i in range(columns)]
    schema = pyarrow.schema([*((name, pyarrow.float32()) for name in names), (LABEL, pyarrow.int8())])
    with parquet.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for block, first in enumerate(range(0, rows, BLOCK)):
            X, y = draw_rows(np.random.default_rng([seed, block]), min(BLOCK, rows - first), columns)
            writer.write_table(pyarrow.table([*X.T, y], schema=schema), row_group_size=BLOCK)


def draw_rows(rng: np.random.Generator, rows: int, columns: int, flipped: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows, some of whose labels are wrong."""
    X = np.asfortranarray(rng.standard_normal((rows, columns), dtype=np.float32))
    score = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) - 0.8 + 0.5 * np.sin(3 * X[:, 4])
    return X, ((score > 0) ^ (rng.random(rows) < flipped)).astype(np.int8)


def draw_clean_rows(columns: int, rows: int = 200_000) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows whose labels are right."""
    return draw_rows(np.random.default_rng(10**6), rows, columns, flipped=0.0)


def train_untwist(path: Path, rounds: int, depth: int, threads: int) -> tuple[dict[str, float], Any]:
    """Train PILBoost on the file; give seconds and what predicts."""
    from untwist import Growth, PILBoostClassifier
    from untwist.batches import Batches

    start = time.perf_counter()
    times: list[float] = []
    table = Batches(path)
    labels = table.column(LABEL)
    read = time.perf_counter()
    model = PILBoostClassifier(
        learning_rate=0.2, n_estimators=rounds, max_depth=depth, growth=Growth(init="prior"), n_jobs=threads
    )
    model.set_params(callbacks=[lambda _: times.append(time.perf_counter())])
    model.fit(table.drop(LABEL), labels)
    end = time.perf_counter()
    per_round = (times[-1] - times[0]) / max(1, len(times) - 1)
    bins = times[0] - per_round - read
    return {"labels": read - start, "bins": bins, "rounds": end - read - bins, "seconds": end - start}, model.predict


def make_xgboost_trainer(kind: str) -> Any:
    """Make what trains XGBoost on the file, in external memory or with quantiles in memory."""

    def train(path: Path, rounds: int, depth: int, threads: int) -> tuple[dict[str, float], Any]:
        import xgboost
        from pyarrow import parquet

        class Blocks(xgboost.DataIter):
            def __init__(self, cache: str | None) -> None:
                self.batches: Any = None
                super().__init__(cache_prefix=cache)

            def next(self, input_data: Any) -> bool:
                self.batches = self.batches or parquet.ParquetFile(path).iter_batches(BLOCK)
                batch = next(self.batches, None)
                if batch is None:
                    return False
                columns = [batch.column(i).to_numpy() for i in range(batch.num_columns)]
                input_data(data=np.column_stack(columns[:-1]), label=columns[-1])
                return True

            def reset(self) -> None:
                self.batches = None

        start = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            if kind == "external":
                data: Any = xgboost.ExtMemQuantileDMatrix(Blocks(f"{folder}/cache"), max_bin=256, nthread=threads)
            else:
                data = xgboost.QuantileDMatrix(Blocks(None), max_bin=256, nthread=threads)
            read = time.perf_counter()
            settings = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": depth, "eta": 0.1}
            model = xgboost.train(settings | {"nthread": threads, "max_bin": 256}, data, rounds)
            end = time.perf_counter()
            del data

        def predict(X: np.ndarray) -> np.ndarray:
            return model.inplace_predict(X) > 0.5

        return {"labels": 0.0, "bins": read - start, "rounds": end - read, "seconds": end - start}, predict

    return train


def measure(method: str, path: Path, rounds: int, depth: int, threads: int) -> dict[str, float]:
    """Train and judge a method, in a process of its own, whose peak memory is the method's."""
    train = {
        "untwist": train_untwist,
        "xgboost external": make_xgboost_trainer("external"),
        "xgboost quantile": make_xgboost_trainer("quantile"),
    }[method]
    seconds: dict[str, float]
    seconds, predict = train(path, rounds, depth, threads)
    used = resource.getrusage(resource.RUSAGE_SELF)
    from pyarrow import parquet

    X, y = draw_clean_rows(len(parquet.ParquetFile(path).schema_arrow.names) - 1)
    cost = {"cpu_seconds": used.ru_utime + used.ru_stime, "peak_gb": used.ru_maxrss / 1e6}
    return seconds | cost | {"clean_accuracy": float(np.mean(predict(X) == y))}


def main() -> None:
    """Write the file, train each method, print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--keep", action="store_true", help="the file stays, for another run")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    path = options.folder / f"beyond_memory_{options.rows}x{options.columns}.parquet"
    if options.only:
        print(json.dumps(measure(options.only, path, options.rounds, options.depth, options.threads)))
        return
    try:
        if not path.exists():
            start = time.perf_counter()
            write_file(path, options.rows, options.columns)
            print(f"{path}: {path.stat().st_size / 1e9:.2f} GB, written in {time.perf_counter() - start:.0f} s")
        print(f"{'':18}" + "".join(f"{heading:>9}" for heading in FIGURES.values()))
        results = []
        for method in options.methods:
            program = "experiments.benchmarks.beyond_memory"
            command = [sys.executable, "-m", program, *sys.argv[1:], "--only", method]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{method} failed with status {done.returncode}:\n{done.stderr}")
            found = json.loads(done.stdout.splitlines()[-1])
            sizes = {name: getattr(options, name) for name in ("rows", "columns", "rounds", "depth", "threads")}
            results.append({"method": method} | sizes | found)
            print(f"{method:18}" + "".join(f"{found[name]:9.4g}" for name in FIGURES), flush=True)
        with Writer(Path("results/beyond_memory.csv"), list(results[0]), resume=False) as file:
            for row in results:
                file.add(row.values())
    finally:
        if not options.keep:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
