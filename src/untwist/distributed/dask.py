"""PILBoost on a Dask cluster: fit and predict on Dask arrays and data frames.

client = Client(...)                                # of dask.distributed
model = DaskPILBoostClassifier().fit(X, y)          # Dask collections, partitioned alike
model.predict_proba(X)                              # a Dask array, computed when asked for
"""

from __future__ import annotations

import importlib
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from untwist.classifier import PILBoostClassifier
from untwist.distributed.shard import dismiss, fit_shard, tracker, worker_model

__all__ = ["DaskPILBoostClassifier"]

PULSE = 1.0  # seconds between two looks at whether all workers are alive


class DaskPILBoostClassifier(PILBoostClassifier):
    """`PILBoostClassifier(engine="xgboost")` for Dask collections; settings and attributes are the same.

    Each Dask worker boosts on the partitions that it holds, and XGBoost's collective brings their histograms together:
    the model is the one that a single process makes of the same rows, whoever has which. Everything that `fit` takes
    must be partitioned by rows alike. It needs a `dask.distributed.Client`, which need not be passed on.
    """

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Boost on Dask collections; rows given to validate are shared out over the workers that train."""
        client = _needed("distributed").get_client()
        training = _parts(client, {"X": X, "y": y, "sample_weight": sample_weight})
        watched = (
            _parts(client, {"X": X_val, "y": y_val, "sample_weight": sample_weight_val}) if X_val is not None else {}
        )
        homes = sorted(training)
        for parts in (parts for home, parts in watched.items() if home not in training):
            watched.setdefault(homes[0], []).extend(parts)
        host = client.scheduler.address.split("://")[-1].rsplit(":", 1)[0]
        client.run_on_scheduler(_begin, n_workers=len(homes), host=host)
        try:
            communicator = client.run_on_scheduler(_arguments)
            futures = [
                client.submit(
                    _fit,
                    worker_model(self),
                    training[home],
                    watched.get(home, []),
                    communicator,
                    task,
                    workers=[home],
                    allow_other_workers=False,
                    pure=False,
                    retries=0,
                )
                for task, home in enumerate(homes)
            ]
            fitted = _result(client, futures, homes)
        finally:
            client.run_on_scheduler(_end)
        self.__dict__.update({name: value for name, value in vars(fitted).items() if name not in self.get_params()})
        return self

    def predict(self, X: Any) -> Any:
        """The class of every row, as a Dask array."""
        return self._by_parts(X, "predict")

    def predict_proba(self, X: Any) -> Any:
        """Clean posterior of every class, as a Dask array."""
        return self._by_parts(X, "predict_proba")

    def decision_function(self, X: Any) -> Any:
        """Score of the clean posterior, as a Dask array."""
        return self._by_parts(X, "decision_function")

    def local(self) -> PILBoostClassifier:
        """The model for tables in memory, which predicts at once and can be saved and exported."""
        check_is_fitted(self, "_ensembles")
        return worker_model(self)

    def _by_parts(self, X: Any, method: str) -> Any:
        call = getattr(self.local(), method)
        if not _is_dask(X):
            return call(X)
        several = len(self.classes_) if method != "predict" else 0
        columns = several if method == "predict_proba" or several > 2 else 0
        kind = self.classes_.dtype if method == "predict" else np.dtype(float)
        array = _needed("dask.array")
        if hasattr(X, "to_delayed") and not isinstance(X, array.Array):
            blocks = X.to_delayed()
            lengths: list[Any] = [np.nan] * len(blocks)
        else:
            X = X.rechunk({1: -1})
            blocks, lengths = X.to_delayed()[:, 0], list(X.chunks[0])
        delayed = _needed("dask").delayed(call)
        shape = (columns,) if columns else ()
        return array.concatenate(
            [
                array.from_delayed(delayed(block), (length, *shape), dtype=kind)
                for block, length in zip(blocks, lengths, strict=True)
            ],
            allow_unknown_chunksizes=True,
        )


def _needed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError('DaskPILBoostClassifier needs dask and distributed: pip install "untwist[dask]"') from error


def _is_dask(X: Any) -> bool:
    return bool(_needed("dask").is_dask_collection(X))


def _parts(client: Any, collections: dict[str, Any]) -> dict[str, list[Any]]:
    """By the address of a worker, the partitions that it holds: futures of dicts of tables."""
    given = {name: table for name, table in collections.items() if table is not None}
    if not {"X", "y"} <= set(given):
        raise ValueError("X and y must be given together")
    blocks = {}
    for name, table in given.items():
        if not _is_dask(table):
            raise ValueError(
                f"{name} must be a Dask collection, got a {type(table).__name__}: see dask.array.from_array"
            )
        if getattr(table, "ndim", 1) == 2 and hasattr(table, "rechunk"):
            table = table.rechunk({1: -1})
        blocks[name] = np.asarray(table.to_delayed(), dtype=object).ravel().tolist()
    counts = {name: len(each) for name, each in blocks.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"the collections must have as many partitions, got {counts}: rechunk or repartition them alike"
        )
    as_dict = _needed("dask").delayed(dict)
    rows = [as_dict(dict(zip(blocks, each, strict=True))) for each in zip(*blocks.values(), strict=True)]
    futures = client.compute(rows)
    _needed("distributed").wait(futures)
    homes: dict[str, list[Any]] = {}
    for future in futures:
        if future.status == "error":
            raise future.exception()
        homes.setdefault(client.who_has(future)[future.key][0], []).append(future)
    return homes


def _fit(
    model: PILBoostClassifier,
    training: list[dict[str, Any]],
    watched: list[dict[str, Any]],
    communicator: dict[str, Any],
    task: int,
) -> PILBoostClassifier | None:
    """Run by each worker: its partitions, as one table."""
    rows = _joined(training)
    rows |= {{"X": "X_val", "y": "y_val"}.get(name, f"{name}_val"): table for name, table in _joined(watched).items()}
    fitted = fit_shard(model, rows, communicator, task)
    return fitted if task == 0 else None


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    def joined(tables: list[Any]) -> Any:
        if hasattr(tables[0], "iloc"):
            return importlib.import_module("pandas").concat(tables, ignore_index=True)
        if hasattr(tables[0], "tocsr"):
            return importlib.import_module("scipy.sparse").vstack(tables, "csr")
        return np.concatenate(tables)

    return {name: joined([part[name] for part in parts]) for name in (parts[0] if parts else ())}


def _result(client: Any, futures: list[Any], homes: list[str]) -> PILBoostClassifier:
    """What the first worker made; a RuntimeError if a worker is lost, for without it the others wait in vain."""
    distributed = _needed("distributed")
    while True:
        try:
            distributed.wait(futures, timeout=PULSE)
            break
        except TimeoutError:
            failed = [future for future in futures if future.status == "error"]
            lost = [home for home in homes if home not in client.scheduler_info(n_workers=-1)["workers"]]
            if not (failed or lost):
                continue
            client.cancel(futures, force=True)
            if failed:
                raise failed[0].exception() from None
            raise RuntimeError(
                f"Dask lost the worker {lost[0]}, and the fit cannot go on without its rows: fit again"
            ) from None
    for future in futures:
        if future.status == "error":
            raise future.exception()
    return futures[0].result()  # type: ignore[no-any-return]


# Run on the scheduler, which all workers can reach: the tracker lives there for the time of a fit.


def _begin(dask_scheduler: Any, n_workers: int, host: str) -> None:
    dask_scheduler.untwist_tracker = tracker(n_workers, host)


def _arguments(dask_scheduler: Any) -> Any:
    return dask_scheduler.untwist_tracker.worker_args()


def _end(dask_scheduler: Any) -> None:
    dismiss(dask_scheduler.untwist_tracker)
    del dask_scheduler.untwist_tracker
