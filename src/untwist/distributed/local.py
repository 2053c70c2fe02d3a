"""A distributed fit by processes of this machine, over XGBoost's tracker on loopback."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from untwist.arguments import check_count
from untwist.classifier import PILBoostClassifier
from untwist.distributed.shard import dismiss, tracker, worker_model
from untwist.files.checkpoints import Checkpoint, resumed

__all__ = ["fit", "shards"]

Rows = Mapping[str, Any] | tuple[Any, ...] | Callable[[], Mapping[str, Any]]
ARGUMENTS = ("X", "y", "sample_weight", "X_val", "y_val", "sample_weight_val")
PULSE = 0.05  # seconds between two looks at the workers
GRACE = 5.0  # seconds in which the others may tell why they failed too


def shards(n_workers: int, X: Any, y: Any, sample_weight: Any = None) -> list[dict[str, Any]]:
    """The rows of arrays or frames in so many parts, one after the other, as `fit` takes them."""
    ends = np.linspace(0, len(y), check_count("n_workers", n_workers) + 1).astype(int)

    def part(table: Any, rows: slice) -> Any:
        return table.iloc[rows] if hasattr(table, "iloc") else table[rows]

    cuts = [slice(first, last) for first, last in pairwise(ends)]
    names = {"X": X, "y": y} | ({} if sample_weight is None else {"sample_weight": sample_weight})
    return [{name: part(table, rows) for name, table in names.items()} for rows in cuts]


def fit(model: PILBoostClassifier, parts: Sequence[Rows], *, restarts: int = 0) -> PILBoostClassifier:
    """`model` fitted by a process for each of the `parts`: the arguments of `fit`, as dicts or tuples, or functions.

    The model is the same for any number of workers, and whoever has which rows. If a worker dies, the others are ended
    and a RuntimeError says what happened; with `restarts` all begin again, from the last checkpoint if the model has a
    `Checkpoint` among its callbacks. Functions must be importable by the workers.
    """
    paths = [one.path for one in model.callbacks or () if isinstance(one, Checkpoint)]
    before = _stamps(paths)
    for attempt in range(restarts + 1):
        try:
            return _fitted(worker_model(model), parts)
        except RuntimeError:
            if attempt == restarts:
                raise
            if _stamps(paths) != before:  # an older file may be of another fit
                model = resumed(worker_model(model), paths[0])
    raise AssertionError("unreachable")


def _stamps(paths: Sequence[Path]) -> list[int]:
    return [path.stat().st_mtime_ns if path.exists() else 0 for path in paths]


def _fitted(model: PILBoostClassifier, parts: Sequence[Rows]) -> PILBoostClassifier:
    n_workers = check_count("number of parts", len(parts))
    with tempfile.TemporaryDirectory(prefix="untwist-") as name:
        folder = Path(name)
        try:
            for task, rows in enumerate(parts):
                with (folder / f"rows-{task}").open("wb") as file:
                    pickle.dump(dict(zip(ARGUMENTS, rows, strict=False)) if isinstance(rows, tuple) else rows, file, 5)
            pickle.dumps(model)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(f"workers need callbacks and functions from a module, no lambdas: {error}") from error
        meeting = tracker(n_workers, "127.0.0.1")
        workers: list[subprocess.Popen[bytes]] = []
        try:
            (folder / "job").write_bytes(pickle.dumps((model, meeting.worker_args())))
            command = [sys.executable, "-m", "untwist.distributed.worker", name]
            for task in range(n_workers):
                workers.append(subprocess.Popen([*command, str(task)], stdout=subprocess.DEVNULL))  # XGBoost chats
            _watched(workers, folder)
            return pickle.loads((folder / "model").read_bytes())  # type: ignore[no-any-return]  # our child wrote it
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
            dismiss(meeting)


def _watched(workers: Sequence[subprocess.Popen[bytes]], folder: Path) -> None:
    """Waits for all workers; a RuntimeError, or the ValueError that a worker had, if one fails."""
    while None in (codes := [worker.poll() for worker in workers]):
        if any(codes):
            until = time.monotonic() + GRACE
            while time.monotonic() < until and None in [worker.poll() for worker in workers]:
                time.sleep(PULSE)
            break
        time.sleep(PULSE)
    codes = [worker.poll() for worker in workers]
    errors = {task: file.read_text() for task in range(len(workers)) if (file := folder / f"error-{task}").exists()}
    for task, code in enumerate(codes):
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            raise RuntimeError(f"worker {task} of {len(workers)} was killed ({name}): the fit cannot go on without it")
    for task, text in sorted(errors.items(), key=lambda error: error[1].startswith("XGBoostError")):
        kind, _, message = text.partition(": ")  # those that only lost the others come last
        failure = ValueError if kind == "ValueError" else RuntimeError
        raise failure(f"worker {task} of {len(workers)}: {message or kind}")
    if any(codes):
        raise RuntimeError(f"a worker ended with exit codes {codes}")
