"""A distributed fit by processes of this machine, over XGBoost's tracker on loopback.

Run as a program, this module is one of these processes.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from untwist.arguments import check_count
from untwist.distributed.launching import LOST, Outcome, fit_with_restarts, try_shard, wait_for_model
from untwist.distributed.shard import end_tracker, start_tracker
from untwist.model import FittedModel
from untwist.predicting import ModelPredictions

__all__ = ["fit", "shards"]

#: What a worker gets: the arguments of `fit`, or a function that returns them.
Part = Mapping[str, Any] | tuple[Any, ...] | Callable[[], Mapping[str, Any]]

#: The arguments of `fit`, in the order of a tuple.
ARGUMENTS = ("X", "y", "sample_weight", "X_val", "y_val", "sample_weight_val")


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


def fit(model: ModelPredictions, parts: Sequence[Part], *, restarts: int = 0) -> ModelPredictions:
    """Fit a model by a process for each part of the rows.

    The model is the same for any number of workers, and whoever has which rows.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        The model to fit.
    parts : sequence
        For each worker the arguments of `fit`, as a dict or a tuple, or a function that returns a dict and that the
        worker can import.
    restarts : int, default 0
        How often all workers begin again if one dies: from the last checkpoint if the model has a `Checkpoint` among
        its callbacks.

    Returns
    -------
    UntwistClassifier or PILBoostClassifier
        The fitted model.

    Raises
    ------
    RuntimeError
        If a worker died, and the others were ended; it says what happened.
    """
    return fit_with_restarts(model, partial(_fit_once, parts=parts), restarts)


def _fit_once(model: ModelPredictions, parts: Sequence[Part]) -> FittedModel:
    n_workers = check_count("number of parts", len(parts))
    with tempfile.TemporaryDirectory(prefix="untwist-") as name:
        folder = Path(name)
        _write_parts(model, parts, folder)
        tracker = start_tracker(n_workers, "127.0.0.1")
        workers: list[subprocess.Popen[bytes]] = []
        try:
            (folder / "job").write_bytes(pickle.dumps((model, tracker.worker_args())))
            command = [sys.executable, "-m", "untwist.distributed.local", name]
            for rank in range(n_workers):
                # XGBoost writes to standard output whatever it does.
                workers.append(subprocess.Popen([*command, str(rank)], stdout=subprocess.DEVNULL))
            return wait_for_model(partial(_look, workers, folder), n_workers)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
            end_tracker(tracker)


def _write_parts(model: ModelPredictions, parts: Sequence[Part], folder: Path) -> None:
    """Write the rows of each worker to a file; a ValueError where these, or the model, cannot be passed on."""
    try:
        for rank, part in enumerate(parts):
            rows = dict(zip(ARGUMENTS, part, strict=False)) if isinstance(part, tuple) else part
            with (folder / f"rows-{rank}").open("wb") as file:
                pickle.dump(rows, file, protocol=5)
        pickle.dumps(model)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(f"workers need callbacks and functions from a module, no lambdas: {error}") from error


def _look(workers: Sequence[subprocess.Popen[bytes]], folder: Path, ranks: Collection[int]) -> dict[int, Outcome]:
    """Return what those of these workers left behind that have ended."""
    outcomes = {}
    for rank in ranks:
        code = workers[rank].poll()
        if code == 0:
            outcomes[rank] = pickle.loads((folder / f"outcome-{rank}").read_bytes())  # Our child wrote it.
        elif code is not None:
            end = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
            message = f"worker {rank} of {len(workers)} {end}: the fit cannot go on without it"
            outcomes[rank] = Outcome(failure=LOST, message=message)
    return outcomes


def _work(folder: Path, rank: int) -> None:
    """Fit the rows of one worker, in a process of its own, and write what came of it."""
    try:
        model, communicator = pickle.loads((folder / "job").read_bytes())  # Our parent wrote it.
        with (folder / f"rows-{rank}").open("rb") as file:
            rows = pickle.load(file)
        outcome = try_shard(model, rows() if callable(rows) else rows, communicator, rank)
    except Exception as error:
        outcome = Outcome.of_error(error)
    (folder / f"outcome-{rank}").write_bytes(pickle.dumps(outcome))


if __name__ == "__main__":
    _work(Path(sys.argv[1]), int(sys.argv[2]))
