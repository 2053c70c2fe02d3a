"""A worker's part of a distributed fit: the same few lines under every launcher."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from untwist.boosting.engines.xgboost.dataset import import_xgboost
from untwist.classifier import PILBoostClassifier

__all__ = ["end_tracker", "fit_shard", "make_worker_model", "start_tracker"]


def start_tracker(n_workers: int, host: str | None, timeout: int = 300) -> Any:
    """Start XGBoost's tracker, which brings workers together.

    Parameters
    ----------
    n_workers : int
        How many workers will come.
    host : str or None
        The address of this machine that they can reach; None to let XGBoost find it.
    timeout : int, default 300
        Seconds that workers wait for each other.

    Returns
    -------
    xgboost.tracker.RabitTracker
        Its `worker_args` tell workers where it is.
    """
    tracker_module = import_xgboost().tracker
    tracker = tracker_module.RabitTracker(n_workers=n_workers, host_ip=host, sortby="task", timeout=timeout)
    tracker.start()
    return tracker


def end_tracker(tracker: Any) -> None:
    """End a tracker, also one whose workers never came or died, of which XGBoost would complain.

    Parameters
    ----------
    tracker : xgboost.tracker.RabitTracker
        What `start_tracker` gave.
    """
    with suppress(import_xgboost().core.XGBoostError):
        tracker.free()


def make_worker_model(model: PILBoostClassifier) -> PILBoostClassifier:
    """Return a plain classifier with the settings of `model` and what it was fitted to, as every worker gets it.

    Parameters
    ----------
    model : PILBoostClassifier
        A classifier, perhaps one for Dask.

    Returns
    -------
    PILBoostClassifier
        A classifier with ``engine="xgboost"``.

    Raises
    ------
    ValueError
        For settings that a distributed fit does not know.
    """
    if model.engine not in ("auto", "xgboost"):
        raise ValueError(f'a distributed fit needs engine="xgboost", got {model.engine!r}')
    if isinstance(model.alpha, str) and model.alpha == "menon":
        raise ValueError('alpha="menon" looks at all rows at once: give a number or "auto"')
    if model.tree_method == "exact":
        raise ValueError('tree_method="exact" needs all rows in one place: choose "hist"')
    plain = PILBoostClassifier(**{**model.get_params(deep=False), "engine": "xgboost"})
    if hasattr(model, "model_"):
        plain.model_ = model.model_
    return plain


def fit_shard(
    model: PILBoostClassifier, rows: Mapping[str, Any], communicator: Mapping[str, Any], task: int
) -> PILBoostClassifier:
    """Fit a model by all workers together, of which this one has some rows.

    Parameters
    ----------
    model : PILBoostClassifier
        The model to fit, the same for all workers.
    rows : mapping
        The arguments of `fit` for the rows of this worker.
    communicator : mapping
        The tracker's `worker_args`.
    task : int
        The rank of this worker: its number among all, from 0. XGBoost calls it a task.

    Returns
    -------
    PILBoostClassifier
        The fitted model, the same for all workers.
    """
    xgboost = import_xgboost()
    quietly = xgboost.config_context(verbosity=0)
    meeting = xgboost.collective.CommunicatorContext(**communicator, dmlc_task_id=str(task))
    with quietly, meeting:
        return make_worker_model(model).fit(**rows)
