"""A worker's part of a distributed fit: the same few lines under every launcher."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from untwist.boosting.engines.xgboost.booster import xgboost
from untwist.classifier import PILBoostClassifier

__all__ = ["dismiss", "fit_shard", "tracker", "worker_model"]


def tracker(n_workers: int, host: str | None, timeout: int = 300) -> Any:
    """XGBoost's tracker, started, which brings so many workers together; its `worker_args` tell them where it is."""
    started = xgboost().tracker.RabitTracker(n_workers=n_workers, host_ip=host, sortby="task", timeout=timeout)
    started.start()
    return started


def dismiss(meeting: Any) -> None:
    """Ends a tracker, also one whose workers never came or died, of which XGBoost would complain."""
    with suppress(xgboost().core.XGBoostError):
        meeting.free()


def worker_model(model: PILBoostClassifier) -> PILBoostClassifier:
    """A plain model with the settings of `model` and what it was fitted to, as every worker gets it."""
    if model.engine not in ("auto", "xgboost"):
        raise ValueError(f'a distributed fit needs engine="xgboost", got {model.engine!r}')
    if isinstance(model.alpha, str) and model.alpha == "menon":
        raise ValueError('alpha="menon" looks at all rows at once: give a number or "auto"')
    if model.tree_method == "exact":
        raise ValueError('tree_method="exact" needs all rows in one place: choose "hist"')
    plain = PILBoostClassifier(**{**model.get_params(deep=False), "engine": "xgboost"})
    plain.__dict__.update(
        {name: value for name, value in vars(model).items() if name not in plain.get_params(deep=False)}
    )
    return plain


def fit_shard(
    model: PILBoostClassifier, rows: Mapping[str, Any], communicator: Mapping[str, Any], task: int
) -> PILBoostClassifier:
    """`model` fitted by all workers together, of which this one has `rows`, the arguments of `fit`.

    `communicator` are the tracker's `worker_args`; `task` numbers this worker, from 0. Every worker has the same model
    in the end.
    """
    with (
        xgboost().config_context(verbosity=0),
        xgboost().collective.CommunicatorContext(**communicator, dmlc_task_id=str(task)),
    ):
        return worker_model(model).fit(**rows)
