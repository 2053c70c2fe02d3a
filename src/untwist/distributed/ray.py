"""PILBoost on a Ray cluster: fit and predict on Ray Datasets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from untwist.arguments import check_count
from untwist.distributed.columns import TrainingColumns, add_predictions, import_pyarrow, list_features
from untwist.distributed.launching import (
    LOST,
    Outcome,
    fit_with_restarts,
    limit_threads,
    refuse_validation_of_the_recipe,
    try_shard,
    wait_for_model,
)
from untwist.distributed.shard import start_tracker
from untwist.model import FittedModel
from untwist.optional import import_optional
from untwist.predicting import ModelPredictions

__all__ = ["fit", "predict"]

#: References to the Arrow tables of each worker.
Parts = list[list[Any]]


def fit(
    model: ModelPredictions,
    data: Any,
    label: str,
    *,
    n_workers: int,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    validation: Any = None,
    cpus_per_worker: int = 1,
    restarts: int = 0,
    timeout: float = 300.0,
) -> ModelPredictions:
    """Fit a model by actors, each with some rows of a Ray Dataset.

    The model is the same for any number of workers, and whoever has which rows.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        The model to fit.
    data : ray.data.Dataset
        The rows, with a column for each feature. It is computed once and kept in Ray's memory while the fit lasts.
    label : str
        The column of the labels.
    n_workers : int
        How many actors share the rows, as equally as can be; of fewer rows than that, one for each row.
    features : sequence of str or None, default None
        The columns to learn from; None for all but those of labels and weights.
    weight : str or None, default None
        The column of the weights.
    validation : ray.data.Dataset or None, default None
        Rows that only serve to follow the loss and to stop early, with the same columns.
    cpus_per_worker : int, default 1
        The CPUs of each actor, which has as many threads unless the model has `n_jobs`.
    restarts : int, default 0
        How often all workers begin again if one dies: from the last checkpoint if the model has a `Checkpoint` among
        its callbacks, whose file all machines can see.
    timeout : float, default 300
        How many seconds to wait until the cluster has room for all workers.

    Returns
    -------
    UntwistClassifier or PILBoostClassifier
        The fitted model, for tables in memory too: it predicts, is saved and exported like any other.

    Raises
    ------
    ValueError
        For columns that are missing, or rows that a worker refuses.
    RuntimeError
        If a worker died, and the others were ended; it says what happened.
    TimeoutError
        If the cluster has no room.
    """
    _import_ray()
    check_count("n_workers", n_workers)
    check_count("cpus_per_worker", cpus_per_worker)
    refuse_validation_of_the_recipe(model, validation)
    columns = TrainingColumns.choose(data.columns() or [], label, features, weight)
    training = _cut(data, columns, n_workers)
    if not training:
        raise ValueError("the dataset has no rows")
    held_out = [] if validation is None else _cut(validation, columns, len(training))
    held_out += [[] for _ in range(len(training) - len(held_out))]

    def fit_once(plain: ModelPredictions) -> FittedModel:
        limited = limit_threads(plain, cpus_per_worker)
        with _start_workers(len(training), cpus_per_worker, timeout) as workers:
            return _fit_parts(workers, limited, columns, training, held_out)

    return fit_with_restarts(model, fit_once, restarts)


def predict(model: ModelPredictions, data: Any) -> Any:
    """Add the column "prediction", and "probability" with the clean posterior of every class, to a Ray Dataset.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A classifier that was fitted to columns with names, anywhere.
    data : ray.data.Dataset
        Rows with these columns, and perhaps others.

    Returns
    -------
    ray.data.Dataset
        The same rows, computed when asked for; probabilities are in the order of `classes_`.
    """
    _import_ray()
    list_features(model)  # A model that cannot predict is refused at once.
    return data.map_batches(partial(add_predictions, limit_threads(model, 1)), batch_format="pyarrow")


class _Worker:
    """An actor with some of the rows. The first one has the tracker too, as all can reach it."""

    def start_tracker(self, n_workers: int) -> Mapping[str, Any]:
        """Return what workers need to find each other."""
        host = import_optional("ray.util", "untwist.distributed.ray", extra="ray").get_node_ip_address()
        self.tracker = start_tracker(n_workers, host)
        return self.tracker.worker_args()  # type: ignore[no-any-return]

    def fit(
        self,
        model: ModelPredictions,
        columns: TrainingColumns,
        training: list[Any],
        held_out: list[Any],
        communicator: Mapping[str, Any],
        rank: int,
    ) -> Outcome:
        """Fit the rows of this worker."""
        ray = _import_ray()
        rows = columns.read_rows(_join_tables(ray.get(training)))
        rows |= columns.read_rows(_join_tables(ray.get(held_out)), "_val")
        return try_shard(model, rows, communicator, rank)


@contextmanager
def _start_workers(n_workers: int, cpus: int, timeout: float) -> Iterator[list[Any]]:
    """Start actors, all of them or none: two fits that wait for each other's workers would wait for ever."""
    ray = _import_ray()
    groups = import_optional("ray.util.placement_group", "untwist.distributed.ray", extra="ray")
    strategies = import_optional("ray.util.scheduling_strategies", "untwist.distributed.ray", extra="ray")
    room = groups.placement_group([{"CPU": cpus}] * n_workers)
    workers: list[Any] = []
    try:
        if not room.wait(timeout):
            raise TimeoutError(
                f"Ray had no room for {n_workers} workers with {cpus} CPUs each within {timeout:g} seconds: "
                f"ask for fewer, or wait until others are done"
            )
        for rank in range(n_workers):
            place = strategies.PlacementGroupSchedulingStrategy(room, placement_group_bundle_index=rank)
            actor = ray.remote(_Worker).options(num_cpus=cpus, max_restarts=0, scheduling_strategy=place)
            workers.append(actor.remote())
        yield workers
    finally:
        for worker in workers:
            ray.kill(worker)
        groups.remove_placement_group(room)


def _fit_parts(
    workers: list[Any], model: ModelPredictions, columns: TrainingColumns, training: Parts, held_out: Parts
) -> FittedModel:
    """Have each worker fit its part, and return what came of it."""
    ray = _import_ray()
    try:
        communicator = ray.get(workers[0].start_tracker.remote(len(workers)))
    except ray.exceptions.RayActorError as error:
        raise RuntimeError(_describe_loss(0, len(workers))) from error
    shared = ray.put(model)
    answers = [
        worker.fit.remote(shared, columns, training[rank], held_out[rank], communicator, rank)
        for rank, worker in enumerate(workers)
    ]
    return wait_for_model(partial(_look, answers), len(workers))


def _look(answers: list[Any], ranks: Collection[int]) -> dict[int, Outcome]:
    """Return what those of these workers made that have ended, or that the cluster has lost."""
    ray = _import_ray()
    outcomes = {}
    ready, _ = ray.wait([answers[rank] for rank in ranks], num_returns=len(ranks), timeout=0, fetch_local=False)
    for rank in ranks:
        if answers[rank] not in ready:
            continue
        try:
            outcomes[rank] = ray.get(answers[rank])
        except ray.exceptions.RayActorError:
            outcomes[rank] = Outcome(failure=LOST, message=_describe_loss(rank, len(answers)))
        except ray.exceptions.RayError as error:
            outcomes[rank] = Outcome.of_error(error)
    return outcomes


def _describe_loss(rank: int, n_workers: int) -> str:
    return f"Ray lost worker {rank} of {n_workers}, and the fit cannot go on without its rows"


def _cut(data: Any, columns: TrainingColumns, n_parts: int) -> Parts:
    """Cut a dataset in equal parts, one after the other, and return those that have rows."""
    rows = data.select_columns(columns.names).materialize()
    ends = np.linspace(0, rows.count(), n_parts + 1).astype(int)[1:-1]
    parts = rows.split_at_indices(ends.tolist()) if n_parts > 1 else [rows]
    return [part.to_arrow_refs() for part in parts if part.count()]


def _join_tables(tables: Sequence[Any]) -> Any:
    """Make one Arrow table of several, of which empty ones may not know the types of their columns."""
    pyarrow = import_pyarrow("untwist.distributed.ray")
    filled = [table for table in tables if table.num_rows]
    return pyarrow.concat_tables(filled, promote_options="permissive") if filled else pyarrow.table({})


def _import_ray() -> Any:
    import_optional("ray.data", "untwist.distributed.ray", needs="ray[data]", extra="ray")
    return import_optional("ray", "untwist.distributed.ray", extra="ray")
