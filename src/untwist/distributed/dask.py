"""Both classifiers on a Dask cluster: fit and predict on Dask arrays and data frames."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Self
from uuid import uuid4

import numpy as np
from sklearn.utils.validation import check_is_fitted

from untwist.classifier import UntwistClassifier
from untwist.distributed.launching import LOST, Outcome, try_shard, wait_for_model
from untwist.distributed.shard import end_tracker, make_worker_model, start_tracker
from untwist.fit_arguments import (
    NO_INIT_SCORE_FOR_WORKERS,
    NO_REVIEW_FOR_WORKERS,
    NO_SOURCES_FOR_WORKERS,
    ValidationTable,
)
from untwist.model import FittedModel
from untwist.optional import import_optional
from untwist.pilboost import PILBoostClassifier
from untwist.predicting import ModelPredictions

__all__ = ["DaskPILBoostClassifier", "DaskUntwistClassifier"]

#: The partitions of each worker, by its address: futures of dicts of tables.
Partitions = dict[str, list[Any]]

#: The trackers that live on the scheduler, by the key of their fit. All workers can reach the scheduler.
TRACKERS: dict[str, Any] = {}


class DaskPredictions(ModelPredictions):
    """What the classifiers for Dask share: fits on the workers that hold the rows, and predictions by partition."""

    def _fit_collections(self, training: Mapping[str, Any], validation: Mapping[str, Any] | None = None) -> FittedModel:
        """Return the model of Dask collections, named as `fit` names them and partitioned by rows alike."""
        try:
            client = _import_dask("distributed").get_client()
        except ValueError as error:
            raise ValueError("there is no Dask client here: make a dask.distributed.Client first") from error
        parts = _find_partitions(client, training)
        if not parts:
            raise ValueError("X and y have no rows")
        held_out: Partitions = {} if validation is None else _find_partitions(client, validation)
        addresses = sorted(parts)
        for partitions in [held_out.pop(address) for address in list(held_out) if address not in parts]:
            held_out.setdefault(addresses[0], []).extend(partitions)
        # Two fits that wait for each other's workers would wait for ever.
        with _import_dask("distributed").MultiLock(addresses):
            return self._fit_on_workers(client, addresses, parts, held_out)

    def _fit_on_workers(
        self, client: Any, addresses: list[str], training: Partitions, validation: Partitions
    ) -> FittedModel:
        host = client.scheduler.address.split("://")[-1].rsplit(":", 1)[0]
        key = uuid4().hex
        communicator = client.run_on_scheduler(_begin_on_scheduler, n_workers=len(addresses), host=host, key=key)
        futures: list[Any] = []
        try:
            futures += [
                client.submit(
                    _fit_partitions,
                    make_worker_model(self),
                    training[address],
                    validation.get(address, []),
                    communicator,
                    rank,
                    workers=[address],
                    allow_other_workers=False,
                    pure=False,
                    retries=0,
                )
                for rank, address in enumerate(addresses)
            ]
            return wait_for_model(partial(_look, client, futures, addresses), len(futures))
        finally:
            client.cancel([future for future in futures if not future.done()], force=True)
            client.run_on_scheduler(_end_on_scheduler, key=key)

    def predict(self, X: Any) -> Any:
        """Return the class of every row, as a Dask array.

        Parameters
        ----------
        X : Dask collection or table
            The rows; those of a table in memory are predicted at once.

        Returns
        -------
        dask.array.Array or ndarray
            One label per row.
        """
        return self._map_partitions(X, "predict")

    def predict_proba(self, X: Any) -> Any:
        """Return the clean posterior of every class, as a Dask array: a row for each row of X, a column per class."""
        return self._map_partitions(X, "predict_proba")

    def predict_proba_twisted(self, X: Any) -> Any:
        """Return the posterior of every class as the training labels follow it, as a Dask array."""
        return self._map_partitions(X, "predict_proba_twisted")

    def decision_function(self, X: Any) -> Any:
        """Return the score of the clean posterior, as a Dask array: one per row, or one for each class beyond two."""
        return self._map_partitions(X, "decision_function")

    def local(self) -> ModelPredictions:
        """Return the model for tables in memory, which predicts at once and can be saved and exported.

        Returns
        -------
        UntwistClassifier or PILBoostClassifier
            A fitted classifier.
        """
        check_is_fitted(self, "model_")
        return make_worker_model(self)

    def _map_partitions(self, X: Any, method: str, **options: Any) -> Any:
        """Return what a method of the local model makes of every partition, computed when asked for."""
        model = self.local()
        call = partial(getattr(model, method), **options)
        if not _is_dask(X):
            return call(X)
        n_classes = len(model.classes_)
        has_columns = method.startswith("predict_proba") or (method == "decision_function" and n_classes > 2)
        shape = (n_classes,) if has_columns else ()
        dtype = model.classes_.dtype if method == "predict" else np.dtype(float)

        def call_on_block(block: Any) -> Any:
            return call(block) if len(block) else np.zeros((0, *shape), dtype=dtype)

        array = _import_dask("dask.array")
        if isinstance(X, array.Array):
            X = X.rechunk({1: -1})
            blocks = X.to_delayed()[:, 0]
            lengths = list(X.chunks[0])
        else:
            blocks = X.to_delayed()
            lengths = [np.nan] * len(blocks)
        delayed = _import_dask("dask").delayed(call_on_block)
        answers = [
            array.from_delayed(delayed(block), (length, *shape), dtype=dtype)
            for block, length in zip(blocks, lengths, strict=True)
        ]
        return array.concatenate(answers, allow_unknown_chunksizes=True)


class DaskUntwistClassifier(DaskPredictions, UntwistClassifier):
    """`UntwistClassifier(engine="xgboost")` for Dask collections; settings and attributes are the same.

    Each Dask worker boosts on the partitions that it holds, and XGBoost's collective brings their histograms together:
    the model is the one that a single process makes of the same rows, whoever has which. Everything that `fit` takes
    must be partitioned by rows alike. It needs a `dask.distributed.Client`, which need not be passed on.
    """

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        source: Any = None,
        item: Any = None,
        reviewed: Any = None,
        groups: Any = None,
    ) -> Self:
        """Learn from Dask collections.

        Parameters
        ----------
        X, y, sample_weight
            Dask arrays or data frames, partitioned alike.
        source, item, reviewed
            Not for distributed rows: sources and reviewed rows are judged by all rows at once.
        groups : Dask array or series, or None
            Which rows belong together, whichever workers hold them; partitioned like X. The fold of a group follows
            from its name.

        Returns
        -------
        self
        """
        if source is not None or item is not None:
            raise ValueError(NO_SOURCES_FOR_WORKERS)
        if reviewed is not None:
            raise ValueError(NO_REVIEW_FOR_WORKERS)
        self.model_ = self._fit_collections({"X": X, "y": y, "sample_weight": sample_weight, "groups": groups})
        return self


class DaskPILBoostClassifier(DaskPredictions, PILBoostClassifier):
    """`PILBoostClassifier(engine="xgboost")` for Dask collections, as `DaskUntwistClassifier` is for the other."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        *,
        groups: Any = None,
        init_score: Any = None,
        init_score_val: Any = None,
    ) -> Self:
        """Boost on Dask collections.

        Parameters
        ----------
        X, y, sample_weight
            Dask arrays or data frames, partitioned alike.
        X_val, y_val, sample_weight_val
            Validation rows, which stay with their workers; those of workers that do not train go to the first one.
        groups : Dask array or series, or None
            Which rows belong together, whichever workers hold them; partitioned like X.
        init_score, init_score_val
            Not for distributed rows.

        Returns
        -------
        self
        """
        if init_score is not None or init_score_val is not None:
            raise ValueError(NO_INIT_SCORE_FOR_WORKERS)
        ValidationTable(X_val, y_val, sample_weight_val).check_complete()
        validation = None if X_val is None else {"X": X_val, "y": y_val, "sample_weight": sample_weight_val}
        training = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups}
        self.model_ = self._fit_collections(training, validation)
        return self

    def predict(self, X: Any, iteration_range: tuple[int, int] | None = None) -> Any:
        """Return the class of every row; only the rounds of `iteration_range` count, if it is given."""
        return self._map_partitions(X, "predict", iteration_range=iteration_range)

    def predict_proba(self, X: Any, iteration_range: tuple[int, int] | None = None) -> Any:
        """Return the clean posterior of every class, perhaps by some of the rounds."""
        return self._map_partitions(X, "predict_proba", iteration_range=iteration_range)

    def predict_proba_twisted(self, X: Any, iteration_range: tuple[int, int] | None = None) -> Any:
        """Return the posterior that labels follow, perhaps by some of the rounds."""
        return self._map_partitions(X, "predict_proba_twisted", iteration_range=iteration_range)

    def decision_function(self, X: Any, iteration_range: tuple[int, int] | None = None) -> Any:
        """Return the score of the clean posterior, perhaps by some of the rounds."""
        return self._map_partitions(X, "decision_function", iteration_range=iteration_range)


def _import_dask(module: str) -> Any:
    return import_optional(module, "untwist.distributed.dask", needs="dask and distributed", extra="dask")


def _is_dask(X: Any) -> bool:
    return bool(_import_dask("dask").is_dask_collection(X))


def _find_partitions(client: Any, collections: Mapping[str, Any]) -> Partitions:
    """Compute all partitions, and return who holds which; those without rows are left out."""
    given = {name: table for name, table in collections.items() if table is not None}
    if not {"X", "y"} <= set(given):
        raise ValueError("X and y must be given together")
    blocks = {name: _list_blocks(name, table) for name, table in given.items()}
    counts = {name: len(each) for name, each in blocks.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"the collections must have as many partitions, got {counts}: rechunk or repartition them alike"
        )
    make_dict = _import_dask("dask").delayed(dict)
    rows = [make_dict(dict(zip(blocks, each, strict=True))) for each in zip(*blocks.values(), strict=True)]
    futures = client.compute(rows)
    _import_dask("distributed").wait(futures)
    for future in futures:
        if future.status == "error":
            raise future.exception()
    counts_of_rows = client.gather(client.map(_count_rows, futures))
    partitions: Partitions = {}
    for future, n_rows in zip(futures, counts_of_rows, strict=True):
        if not n_rows:
            continue
        address = client.who_has(future)[future.key][0]
        partitions.setdefault(address, []).append(future)
    return partitions


def _count_rows(partition: Mapping[str, Any]) -> int:
    return len(partition["y"])


def _list_blocks(name: str, table: Any) -> list[Any]:
    """Return the partitions of a Dask collection, to be computed."""
    if not _is_dask(table):
        raise ValueError(f"{name} must be a Dask collection, got a {type(table).__name__}: see dask.array.from_array")
    if getattr(table, "ndim", 1) == 2 and hasattr(table, "rechunk"):
        table = table.rechunk({1: -1})
    blocks = table.to_delayed(optimize_graph=False)  # An optimiser would join partitions of narrow columns.
    return np.asarray(blocks, dtype=object).ravel().tolist()


def _fit_partitions(
    model: ModelPredictions,
    training: list[dict[str, Any]],
    validation: list[dict[str, Any]],
    communicator: dict[str, Any],
    rank: int,
) -> Outcome:
    """Fit the partitions of a worker, as one table."""
    rows = _join_partitions(training)
    rows |= {f"{name}_val": table for name, table in _join_partitions(validation).items()}
    return try_shard(model, rows, communicator, rank)


def _join_partitions(partitions: list[dict[str, Any]]) -> dict[str, Any]:
    names = partitions[0] if partitions else ()
    return {name: _join_tables([one[name] for one in partitions]) for name in names}


def _join_tables(tables: list[Any]) -> Any:
    if hasattr(tables[0], "iloc"):
        return importlib.import_module("pandas").concat(tables, ignore_index=True)
    if hasattr(tables[0], "tocsr"):
        return importlib.import_module("scipy.sparse").vstack(tables, "csr")
    if any(isinstance(one, np.ma.MaskedArray) for one in tables):
        joined: Any = np.ma.concatenate(tables)  # type: ignore[no-untyped-call]  # `np.concatenate` forgets the mask.
        return joined
    return np.concatenate(tables)


def _look(client: Any, futures: list[Any], addresses: list[str], ranks: Collection[int]) -> dict[int, Outcome]:
    """Return what those of these workers made that have ended, or that the cluster has lost."""
    present = client.nthreads()  # `scheduler_info` is shared, and at times empties between two lines of this thread.
    outcomes = {}
    for rank in ranks:
        future = futures[rank]
        if future.status == "finished":
            outcomes[rank] = future.result()
        elif addresses[rank] not in present:
            message = f"Dask lost worker {addresses[rank]}, and the fit cannot go on without its rows"
            outcomes[rank] = Outcome(failure=LOST, message=message)
        elif future.done():
            outcomes[rank] = Outcome.of_error(future.exception())
    return outcomes


def _begin_on_scheduler(n_workers: int, host: str, key: str) -> Any:
    """Start the tracker of a fit; run on the scheduler."""
    TRACKERS[key] = start_tracker(n_workers, host)
    return TRACKERS[key].worker_args()


def _end_on_scheduler(key: str) -> None:
    """End the tracker of a fit; run on the scheduler."""
    end_tracker(TRACKERS.pop(key))
