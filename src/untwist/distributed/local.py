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
from untwist.distributed.shard import end_tracker, make_worker_model, start_tracker
from untwist.files.checkpoints import Checkpoint, resumed

__all__ = ["fit", "shards"]

#: What a worker gets: the arguments of `fit`, or a function that returns them.
Part = Mapping[str, Any] | tuple[Any, ...] | Callable[[], Mapping[str, Any]]

#: The arguments of `fit`, in the order of a tuple.
ARGUMENTS = ("X", "y", "sample_weight", "X_val", "y_val", "sample_weight_val")

#: Seconds between two looks at the workers.
SECONDS_BETWEEN_LOOKS = 0.05

#: When a worker has failed, the others have this many seconds to fail too and to tell why.
SECONDS_TO_TELL = 5.0


def shards(n_workers: int, X: Any, y: Any, sample_weight: Any = None) -> list[dict[str, Any]]:
    """Cut the rows of arrays or frames into parts, one after the other, as `fit` takes them.

    Parameters
    ----------
    n_workers : int
        The number of parts.
    X, y, sample_weight
        As `PILBoostClassifier.fit` takes them.

    Returns
    -------
    list of dict
        The arguments of `fit` for each part.
    """
    ends = np.linspace(0, len(y), check_count("n_workers", n_workers) + 1).astype(int)
    tables = {"X": X, "y": y}
    if sample_weight is not None:
        tables["sample_weight"] = sample_weight

    def cut(table: Any, first: int, last: int) -> Any:
        return table.iloc[first:last] if hasattr(table, "iloc") else table[first:last]

    return [{name: cut(table, first, last) for name, table in tables.items()} for first, last in pairwise(ends)]


def fit(model: PILBoostClassifier, parts: Sequence[Part], *, restarts: int = 0) -> PILBoostClassifier:
    """Fit a model by a process for each part of the rows.

    The model is the same for any number of workers, and whoever has which rows.

    Parameters
    ----------
    model : PILBoostClassifier
        The model to fit.
    parts : sequence
        For each worker the arguments of `fit`, as a dict or a tuple, or a function that returns a dict and that the
        worker can import.
    restarts : int, default 0
        How often all workers begin again if one dies: from the last checkpoint if the model has a `Checkpoint` among
        its callbacks.

    Returns
    -------
    PILBoostClassifier
        The fitted model.

    Raises
    ------
    RuntimeError
        If a worker died, and the others were ended; it says what happened.
    """
    checkpoints = [one.path for one in model.callbacks or () if isinstance(one, Checkpoint)]
    times_before = _list_times(checkpoints)
    for attempt in range(restarts + 1):
        try:
            return _fit_once(make_worker_model(model), parts)
        except RuntimeError:
            if attempt == restarts:
                raise
            if _list_times(checkpoints) != times_before:  # A file that was there before may be of another fit.
                model = resumed(make_worker_model(model), checkpoints[0])
    raise AssertionError("unreachable")


def _list_times(paths: Sequence[Path]) -> list[int]:
    """Return when each file was written last; 0 where there is none."""
    return [path.stat().st_mtime_ns if path.exists() else 0 for path in paths]


def _fit_once(model: PILBoostClassifier, parts: Sequence[Part]) -> PILBoostClassifier:
    n_workers = check_count("number of parts", len(parts))
    with tempfile.TemporaryDirectory(prefix="untwist-") as name:
        folder = Path(name)
        _write_parts(model, parts, folder)
        tracker = start_tracker(n_workers, "127.0.0.1")
        workers: list[subprocess.Popen[bytes]] = []
        try:
            (folder / "job").write_bytes(pickle.dumps((model, tracker.worker_args())))
            command = [sys.executable, "-m", "untwist.distributed.worker", name]
            for rank in range(n_workers):
                # XGBoost writes to standard output whatever it does.
                workers.append(subprocess.Popen([*command, str(rank)], stdout=subprocess.DEVNULL))
            _wait(workers, folder)
            fitted = (folder / "model").read_bytes()
            return pickle.loads(fitted)  # type: ignore[no-any-return]  # Our child wrote it.
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
            end_tracker(tracker)


def _write_parts(model: PILBoostClassifier, parts: Sequence[Part], folder: Path) -> None:
    """Write the rows of each worker to a file; a ValueError where these, or the model, cannot be passed on."""
    try:
        for rank, part in enumerate(parts):
            rows = dict(zip(ARGUMENTS, part, strict=False)) if isinstance(part, tuple) else part
            with (folder / f"rows-{rank}").open("wb") as file:
                pickle.dump(rows, file, protocol=5)
        pickle.dumps(model)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(f"workers need callbacks and functions from a module, no lambdas: {error}") from error


def _wait(workers: Sequence[subprocess.Popen[bytes]], folder: Path) -> None:
    """Wait for all workers; a RuntimeError, or the ValueError that a worker had, if one fails."""
    while None in (codes := [worker.poll() for worker in workers]):
        if any(codes):
            _wait_for_others(workers)
            break
        time.sleep(SECONDS_BETWEEN_LOOKS)
    codes = [worker.poll() for worker in workers]
    for rank, code in enumerate(codes):
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            raise RuntimeError(f"worker {rank} of {len(workers)} was killed ({name}): the fit cannot go on without it")
    errors = {rank: file.read_text() for rank in range(len(workers)) if (file := folder / f"error-{rank}").exists()}
    # Workers that have only lost the others come last.
    for rank, text in sorted(errors.items(), key=lambda error: error[1].startswith("XGBoostError")):
        kind, _, message = text.partition(": ")
        failure = ValueError if kind == "ValueError" else RuntimeError
        raise failure(f"worker {rank} of {len(workers)}: {message or kind}")
    if any(codes):
        raise RuntimeError(f"a worker ended with exit codes {codes}")


def _wait_for_others(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    """Give workers a few seconds to end."""
    end = time.monotonic() + SECONDS_TO_TELL
    while time.monotonic() < end and None in [worker.poll() for worker in workers]:
        time.sleep(SECONDS_BETWEEN_LOOKS)
