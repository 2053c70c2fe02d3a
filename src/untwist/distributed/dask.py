"""PILBoost on a Dask cluster: fit and predict on Dask arrays and data frames.

client = Client(...)                                # of dask.distributed
model = DaskPILBoostClassifier().fit(X, y)          # Dask collections, partitioned alike
model.predict_proba(X)                              # a Dask array, computed when asked for
"""

from __future__ import annotations

import importlib
import time
from typing import Any, Self
from uuid import uuid4

import numpy as np
from sklearn.utils.validation import check_is_fitted

from untwist.classifier import PILBoostClassifier
from untwist.distributed.shard import dismiss, fit_shard, tracker, worker_model

__all__ = ["DaskPILBoostClassifier"]

PULSE = 0.1  # seconds between two looks at the workers
GRACE = 2.0  # seconds in which the others may tell why they failed too


class DaskPILBoostClassifier(PILBoostClassifier):
    """`PILBoostClassifier(engine="xgboost")` for Dask collections; settings and attributes are the same.

    Each Dask worker boosts on the partitions that it holds, and XGBoost's collective brings their histograms together:
    the model is the one that a single process makes of the same rows, whoever has which. Everything that `fit` takes
    must be partitioned by rows alike. It needs a `dask.distributed.Client`, which need not be passed on.
    """

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Boost on Dask collections; rows given to validate are shared out over the workers that train."""
        try:
            client = _needed("distributed").get_client()
        except ValueError as error:
            raise ValueError("there is no Dask client here: make a dask.distributed.Client first") from error
        training = _parts(client, {"X": X, "y": y, "sample_weight": sample_weight})
        watched = (
            _parts(client, {"X": X_val, "y": y_val, "sample_weight": sample_weight_val}) if X_val is not None else {}
        )
        homes = sorted(training)
        for parts in [watched.pop(home) for home in list(watched) if home not in training]:
            watched.setdefault(homes[0], []).extend(parts)
        with _needed("distributed").MultiLock(homes):  # two fits that wait for each other's workers would wait for ever
            fitted = self._fitted(client, homes, training, watched)
        for name in set(vars(self)) - set(self.get_params()):
            del self.__dict__[name]  # of an earlier fit
        self.__dict__.update({name: value for name, value in vars(fitted).items() if name not in self.get_params()})
        return self

    def _fitted(
        self, client: Any, homes: list[str], training: dict[str, list[Any]], watched: dict[str, list[Any]]
    ) -> PILBoostClassifier:
        host, key = client.scheduler.address.split("://")[-1].rsplit(":", 1)[0], uuid4().hex
        communicator = client.run_on_scheduler(_begin, n_workers=len(homes), host=host, key=key)
        where = {"allow_other_workers": False, "pure": False, "retries": 0}
        try:
            futures = [
                client.submit(
                    _fit,
                    worker_model(self),
                    training[home],
                    watched.get(home, []),
                    communicator,
                    task,
                    workers=[home],
                    **where,
                )
                for task, home in enumerate(homes)
            ]
            return _result(client, futures, homes)
        finally:
            client.run_on_scheduler(_end, key=key)

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

        def of_block(block: Any) -> Any:
            return call(block) if len(block) else np.zeros((0, *shape), dtype=kind)

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
        delayed = _needed("dask").delayed(of_block)
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
        parts = table.to_delayed(optimize_graph=False)  # an optimiser would join partitions of narrow columns
        blocks[name] = np.asarray(parts, dtype=object).ravel().tolist()
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
    """What the first worker made; if one fails or is lost the others wait in vain, and an error says which."""

    def lost() -> list[str]:
        return [home for home in homes if home not in client.scheduler_info(n_workers=-1)["workers"]]

    def failures() -> list[BaseException]:
        return [future.exception() for future in futures if future.status == "error"]

    while not all(future.done() for future in futures) and not failures() and not lost():
        time.sleep(PULSE)
    if failures() or lost():
        time.sleep(GRACE)  # for the cause to show, where the first to fail only missed another
    missing, errors = lost(), sorted(failures(), key=lambda error: type(error).__name__ == "XGBoostError")
    if missing or errors:
        client.cancel(futures, force=True)
    if missing:
        raise RuntimeError(f"Dask lost worker {missing[0]}, and the fit cannot go on without its rows")
    if errors:
        raise errors[0]
    return futures[0].result()  # type: ignore[no-any-return]


# Run on the scheduler, which all workers can reach: the tracker lives there for the time of a fit.


TRACKERS: dict[str, Any] = {}


def _begin(n_workers: int, host: str, key: str) -> Any:
    TRACKERS[key] = tracker(n_workers, host)
    return TRACKERS[key].worker_args()


def _end(key: str) -> None:
    dismiss(TRACKERS.pop(key))
