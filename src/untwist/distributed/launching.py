"""What all launchers do alike: have a worker fit its rows, wait for all, tell what went wrong, begin again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from untwist.distributed.shard import fit_shard, make_worker_model
from untwist.files.checkpoints import Checkpoint, resumed
from untwist.model import FittedModel
from untwist.pilboost import PILBoostClassifier
from untwist.predicting import ModelPredictions

#: Seconds between two looks at the workers.
SECONDS_BETWEEN_LOOKS = 0.1

#: When a worker has failed, the others have this many seconds to fail too and to tell why.
SECONDS_TO_TELL = 5.0

#: The failure of a worker that is gone.
LOST = "lost"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a worker.

    Parameters
    ----------
    model : FittedModel or None
        The first worker brings the model.
    failure : str
        The name of the error that the worker had, or `LOST`; empty where all went well.
    message : str
        What the error says; of a lost worker, the whole sentence that the caller will read.
    """

    model: FittedModel | None = None
    failure: str = ""
    message: str = ""

    @classmethod
    def of_error(cls, error: BaseException) -> Outcome:
        """Return the outcome of a worker that had an error."""
        return cls(failure=type(error).__name__, message=str(error))


def refuse_validation_of_the_recipe(model: ModelPredictions, validation: Any) -> None:
    """Raise an error where validation rows are given to a classifier that judges by folds.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        The classifier to fit.
    validation : object or None
        The validation rows.
    """
    if validation is not None and not isinstance(model, PILBoostClassifier):
        raise ValueError("validation must be None for an UntwistClassifier, which judges by folds of its own")


def limit_threads(model: ModelPredictions, n_threads: int) -> ModelPredictions:
    """Return a model with this number of threads, unless it says how many it wants.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A classifier.
    n_threads : int
        What the cluster gives to a worker.

    Returns
    -------
    UntwistClassifier or PILBoostClassifier
        Another one with the same settings and what it was fitted to.
    """
    limited = copy(model)
    if model.n_jobs is None:
        limited.n_jobs = n_threads
    return limited


def try_shard(model: ModelPredictions, rows: Mapping[str, Any], communicator: Mapping[str, Any], rank: int) -> Outcome:
    """Fit a model by all workers together, and keep what goes wrong as an outcome.

    Parameters
    ----------
    model, rows, communicator
        As `fit_shard` takes them.
    rank : int
        The number of this worker, from 0; the first one brings the model.

    Returns
    -------
    Outcome
    """
    try:
        fitted = fit_shard(model, rows, communicator, rank)
    except Exception as error:
        return Outcome.of_error(error)
    return Outcome(model=fitted.model_ if rank == 0 else None)


def wait_for_model(look: Callable[[Collection[int]], Mapping[int, Outcome]], n_workers: int) -> FittedModel:
    """Wait for all workers; where one has failed, only as long as the others may need to tell why.

    Parameters
    ----------
    look : function
        It gets the ranks that are awaited, and returns the outcomes of those that have ended.
    n_workers : int
        How many workers there are.

    Returns
    -------
    FittedModel

    Raises
    ------
    RuntimeError or ValueError
        As `choose_model` does.
    """
    outcomes: dict[int, Outcome] = {}
    end = math.inf
    while True:
        outcomes |= look([rank for rank in range(n_workers) if rank not in outcomes])
        if len(outcomes) == n_workers or time.monotonic() > end:
            return choose_model(outcomes, n_workers)
        if any(outcome.failure for outcome in outcomes.values()):
            end = min(end, time.monotonic() + SECONDS_TO_TELL)
        time.sleep(SECONDS_BETWEEN_LOOKS)


def choose_model(outcomes: Mapping[int, Outcome], n_workers: int) -> FittedModel:
    """Return what the first worker made, unless a worker failed.

    Parameters
    ----------
    outcomes : mapping
        The outcomes of workers by rank: of all, unless one failed.
    n_workers : int
        How many workers there are.

    Returns
    -------
    FittedModel

    Raises
    ------
    ValueError
        If a worker refused its rows.
    RuntimeError
        If a worker was lost, or failed otherwise.
    """
    # A worker that is gone is the cause of other errors, and those of XGBoost only say that others are missing.
    order = {LOST: 0, "XGBoostError": 2}
    failed = [(rank, outcome) for rank, outcome in sorted(outcomes.items()) if outcome.failure]
    for rank, outcome in sorted(failed, key=lambda one: order.get(one[1].failure, 1)):
        if outcome.failure == LOST:
            raise RuntimeError(outcome.message)
        kind = ValueError if outcome.failure == "ValueError" else RuntimeError
        raise kind(f"worker {rank} of {n_workers}: {outcome.message or outcome.failure}")
    model = outcomes[0].model
    assert model is not None
    return model


def fit_with_restarts(
    model: ModelPredictions, fit_once: Callable[[ModelPredictions], FittedModel], restarts: int
) -> ModelPredictions:
    """Fit by workers that begin again if one dies: from the last checkpoint if the model has a `Checkpoint`.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        The model to fit.
    fit_once : function
        It starts the workers with a model; a RuntimeError if one dies.
    restarts : int
        How often they may begin again.

    Returns
    -------
    UntwistClassifier or PILBoostClassifier
        The fitted model.
    """
    checkpoints = [one.path for one in model.callbacks or () if isinstance(one, Checkpoint)]
    times_before = _list_times(checkpoints)
    for attempt in range(restarts + 1):
        plain = make_worker_model(model)
        try:
            plain.model_ = fit_once(plain)
            return plain
        except RuntimeError:
            if attempt == restarts:
                raise
            if _list_times(checkpoints) != times_before:  # A file that was there before may be of another fit.
                model = resumed(make_worker_model(model), checkpoints[0])
    raise AssertionError("unreachable")


def _list_times(paths: Sequence[Path]) -> list[int]:
    """Return when each file was written last; 0 where there is none."""
    return [path.stat().st_mtime_ns if path.exists() else 0 for path in paths]
