"""A worker's part of a distributed fit: the same few lines under every launcher."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from untwist.boosting.engines.xgboost.dataset import import_xgboost
from untwist.classifier import UntwistClassifier
from untwist.growth import Growth
from untwist.pilboost import PILBoostClassifier
from untwist.predicting import ModelPredictions

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


def make_worker_model(model: ModelPredictions) -> ModelPredictions:
    """Return a plain classifier with the settings of `model` and what it was fitted to, as every worker gets it.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        A classifier, perhaps one for Dask.

    Returns
    -------
    UntwistClassifier or PILBoostClassifier
        A classifier with ``engine="xgboost"``.

    Raises
    ------
    ValueError
        For settings that a distributed fit does not know.
    """
    parameters = model.get_params(deep=False)
    if parameters["engine"] not in ("auto", "xgboost"):
        raise ValueError(f'a distributed fit needs engine="xgboost", got {parameters["engine"]!r}')
    plain: ModelPredictions
    if isinstance(model, PILBoostClassifier):
        _check_settings(parameters)
        plain = PILBoostClassifier(**{**parameters, "engine": "xgboost"})
    else:
        if parameters["estimator"] is not None:
            raise ValueError(
                f"estimator must be None in a distributed fit, where XGBoost grows the trees, got "
                f"{parameters['estimator']!r:.100}"
            )
        plain = UntwistClassifier(**{**parameters, "engine": "xgboost"})
    if hasattr(model, "model_"):
        plain.model_ = model.model_
    return plain


def _check_settings(parameters: Mapping[str, Any]) -> None:
    """Raise an error for settings of a PILBoostClassifier that need all rows in one place."""
    if isinstance(parameters["alpha"], str) and parameters["alpha"] == "menon":
        raise ValueError('alpha="menon" looks at all rows at once: give a number')
    if isinstance(parameters["growth"], Growth) and parameters["growth"].tree_method == "exact":
        raise ValueError('tree_method="exact" needs all rows in one place: choose "hist"')


def fit_shard(
    model: ModelPredictions, rows: Mapping[str, Any], communicator: Mapping[str, Any], task: int
) -> ModelPredictions:
    """Fit a model by all workers together, of which this one has some rows.

    Parameters
    ----------
    model : UntwistClassifier or PILBoostClassifier
        The model to fit, the same for all workers.
    rows : mapping
        The arguments of `fit` for the rows of this worker.
    communicator : mapping
        The tracker's `worker_args`.
    task : int
        The rank of this worker: its number among all, from 0. XGBoost calls it a task.

    Returns
    -------
    UntwistClassifier or PILBoostClassifier
        The fitted model, the same for all workers.
    """
    xgboost = import_xgboost()
    quietly = xgboost.config_context(verbosity=0)
    meeting = xgboost.collective.CommunicatorContext(**communicator, dmlc_task_id=str(task))
    with quietly, meeting:
        fitted = make_worker_model(model)
        fitted.fit(**rows)
        return fitted
