"""PILBoost on a Spark cluster: fit and predict on Spark DataFrames."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from untwist.arguments import check_count
from untwist.distributed.columns import (
    PREDICTED,
    TrainingColumns,
    add_predictions,
    find_label_type,
    import_pyarrow,
)
from untwist.distributed.launching import (
    Outcome,
    choose_model,
    fit_with_restarts,
    limit_threads,
    refuse_validation_of_the_recipe,
    try_shard,
)
from untwist.distributed.shard import end_tracker, start_tracker
from untwist.model import FittedModel
from untwist.optional import import_optional
from untwist.predicting import ModelPredictions

__all__ = ["fit", "predict"]

#: The column that tells rows to validate on from those to train on.
IS_HELD_OUT = "untwist_is_held_out"

#: What is said where a task has rows to validate on and none to train on.
TOO_FEW_ROWS = "it got rows to validate on, and none to train on: ask for fewer workers"

#: What Spark calls the types of labels.
LABEL_TYPES = {"int64": "bigint", "double": "double", "bool": "boolean", "string": "string"}


def fit(
    model: ModelPredictions,
    data: Any,
    label: str,
    *,
    n_workers: int,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    validation: Any = None,
    restarts: int = 0,
) -> ModelPredictions:
    """Fit a model by the tasks of a barrier stage, each with some rows of a Spark DataFrame.

    The model is the same for any number of workers, and whoever has which rows.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        The model to fit.
    data : pyspark.sql.DataFrame
        The rows, with a column for each feature. They are dealt out anew.
    label : str
        The column of the labels.
    n_workers : int
        How many tasks share the rows. Spark must be able to run all of them at once; where it cannot, it looks again
        for ten minutes (``spark.scheduler.barrier.maxConcurrentTasksCheck``) and then says so. A task has a thread for
        each of ``spark.task.cpus``, unless the model has `n_jobs`.
    features : sequence of str or None, default None
        The columns to learn from; None for all but those of labels and weights.
    weight : str or None, default None
        The column of the weights.
    validation : pyspark.sql.DataFrame or None, default None
        Rows that only serve to follow the loss and to stop early, with the same columns.
    restarts : int, default 0
        How often all workers begin again if one dies: from the last checkpoint if the model has a `Checkpoint` among
        its callbacks, whose file all machines can see.

    Returns
    -------
    UntwistClassifier or PILBoostClassifier
        The fitted model, for tables in memory too: it predicts, is saved and exported like any other.

    Raises
    ------
    ValueError
        For columns that are missing, or rows that a worker refuses.
    RuntimeError
        If a worker died, or Spark could not run the tasks; it says what happened.
    TimeoutError
        If the cluster has no room.
    """
    functions = _import_spark("pyspark.sql.functions")
    check_count("n_workers", n_workers)
    refuse_validation_of_the_recipe(model, validation)
    columns = TrainingColumns.choose(data.columns, label, features, weight)
    names = [_quote(name) for name in columns.names]
    rows = data.select(*names).withColumn(IS_HELD_OUT, functions.lit(False))
    if validation is not None:
        held_out = validation.select(*names).withColumn(IS_HELD_OUT, functions.lit(True))
        rows = rows.unionByName(held_out)

    def fit_once(plain: ModelPredictions) -> FittedModel:
        # A barrier stage must not narrow the partitions of the one before, so that rows have to be dealt out.
        tasks = rows.repartition(n_workers).mapInArrow(
            partial(_fit_partition, plain, columns), "rank int, n_workers int, outcome binary", barrier=True
        )
        try:
            answers = tasks.collect()
        except Exception as error:
            reason = str(error).split("\n\tat ")[0]  # The Java calls follow.
            if "more slots than the total number of slots" in reason:
                raise TimeoutError(f"Spark had no room for {n_workers} workers at once: ask for fewer") from error
            raise RuntimeError(f"Spark lost a worker, or could not run one: {reason}") from error
        if not answers:
            raise ValueError("the data frame has no rows")
        # Our own tasks wrote what is read here.
        outcomes = {answer.rank: pickle.loads(bytes(answer.outcome)) for answer in answers}
        return choose_model(outcomes, answers[0].n_workers)

    return fit_with_restarts(model, fit_once, restarts)


def predict(model: ModelPredictions, data: Any) -> Any:
    """Add the column "prediction", and "probability" with the clean posterior of every class, to a Spark DataFrame.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A classifier that was fitted to columns with names, anywhere.
    data : pyspark.sql.DataFrame
        Rows with these columns, and perhaps others.

    Returns
    -------
    pyspark.sql.DataFrame
        The same rows, computed when asked for; probabilities are arrays in the order of `classes_`.
    """
    types = _import_spark("pyspark.sql.types")
    # What cannot be predicted is refused at once.
    add_predictions(model, import_pyarrow("predict").table({name: [] for name in data.columns}))
    kind = str(find_label_type(model))
    if kind not in LABEL_TYPES:
        raise ValueError(f"labels must be numbers, text or Booleans for Spark, got {kind}")
    schema = types.StructType(list(data.schema.fields))
    schema.add(PREDICTED[0], LABEL_TYPES[kind])
    schema.add(PREDICTED[1], types.ArrayType(types.DoubleType()))
    return data.mapInArrow(partial(_predict_batches, limit_threads(model, 1)), schema)


def _fit_partition(model: ModelPredictions, columns: TrainingColumns, batches: Iterator[Any]) -> Iterator[Any]:
    """Fit the rows of a task together with all other tasks, and yield what came of it.

    Tasks without rows stay out. The first one that has some is the first worker, and has the tracker.
    """
    context = _import_spark("pyspark").BarrierTaskContext.get()
    rows = _read_rows(columns, list(batches))
    roles = context.allGather("trains" if "y" in rows else "validates" if rows else "rests")
    tasks = [task for task, role in enumerate(roles) if role == "trains"]
    task = context.partitionId()
    if "validates" in roles:
        if task == roles.index("validates"):
            yield _make_answer(0, len(tasks), Outcome(failure="ValueError", message=TOO_FEW_ROWS))
        return
    tracker = None
    if tasks[:1] == [task]:
        tracker = start_tracker(len(tasks), context.getTaskInfos()[task].address.rsplit(":", 1)[0])
    communicators = context.allGather(json.dumps(None if tracker is None else tracker.worker_args()))
    if task in tasks:
        communicator = json.loads(communicators[tasks[0]])
        rank = tasks.index(task)
        outcome = try_shard(limit_threads(model, context.cpus()), rows, communicator, rank)
        yield _make_answer(rank, len(tasks), outcome)
    context.barrier()  # The tracker must be there until all are done.
    if tracker is not None:
        end_tracker(tracker)


def _make_answer(rank: int, n_workers: int, outcome: Outcome) -> Any:
    """Return what a task tells the driver."""
    answer = {"rank": [rank], "n_workers": [n_workers], "outcome": [pickle.dumps(outcome)]}
    pyarrow = import_pyarrow("untwist.distributed.spark")
    types = [("rank", pyarrow.int32()), ("n_workers", pyarrow.int32()), ("outcome", pyarrow.binary())]
    return pyarrow.RecordBatch.from_pydict(answer, schema=pyarrow.schema(types))


def _read_rows(columns: TrainingColumns, batches: Sequence[Any]) -> dict[str, Any]:
    """Return the arguments of `fit` for the rows of a task; none where it has no rows."""
    if not batches:
        return {}
    table = import_pyarrow("untwist.distributed.spark").Table.from_batches(batches)
    is_held_out = table[IS_HELD_OUT]
    compute = import_optional("pyarrow.compute", "untwist.distributed.spark", extra="spark")
    training, held_out = table.filter(compute.invert(is_held_out)), table.filter(is_held_out)
    return columns.read_rows(training) | columns.read_rows(held_out, "_val")


def _predict_batches(model: ModelPredictions, batches: Iterator[Any]) -> Iterator[Any]:
    """Add predictions to the rows of a task."""
    pyarrow = import_pyarrow("untwist.distributed.spark")
    for batch in batches:
        yield from add_predictions(model, pyarrow.Table.from_batches([batch])).to_batches()


def _quote(name: str) -> str:
    """Return the name of a column as Spark reads it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def _import_spark(module: str) -> Any:
    return import_optional(module, "untwist.distributed.spark", extra="spark")
