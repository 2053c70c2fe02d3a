"""Long fits that can be stopped, and go on from what was saved last."""

from __future__ import annotations

import os
from copy import copy
from pathlib import Path
from typing import Any

from untwist.arguments import check_count
from untwist.boosting.runs import Progress
from untwist.data.workers import find_workers
from untwist.files.reading import load
from untwist.files.writing import list_settings, make_plain, save
from untwist.growth import Growth
from untwist.pilboost import PILBoostClassifier

__all__ = ["Checkpoint", "resumed"]

#: Settings that may differ from those of the checkpoint.
FREE_SETTINGS = {"n_estimators", "callbacks", "verbose", "n_jobs", "warm_start", "random_state"}


class Checkpoint:
    """A callback that saves the model after every `every` rounds, in place of the last one.

    A file is whole or not there: what a full disk or a killed process leaves behind is the checkpoint before. Of the
    workers of a distributed fit the first one saves.

    Parameters
    ----------
    path : str or path
        The file.
    every : int, default 50
        Rounds between two checkpoints.

    Examples
    --------
    >>> from untwist import PILBoostClassifier
    >>> model = PILBoostClassifier(n_estimators=500, callbacks=[Checkpoint("run.untwist", every=100)])
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 50) -> None:
        self.path = Path(path)
        self.every = check_count("every", every)

    def __call__(self, progress: Progress) -> None:
        """Save if it is time to."""
        if progress.model is None:
            raise ValueError("a checkpoint is for a PILBoostClassifier, whose rounds follow one another")
        if progress.round % self.every == 0 and find_workers().rank == 0:
            save(progress.model(), self.path)


def resumed(model: PILBoostClassifier, path: str | os.PathLike[str]) -> PILBoostClassifier:
    """Return `model` with the rounds of a checkpoint, if there is one: its `fit` on the same data goes on from there.

    The model is then the same as without the interruption. That the data are the same, `init_score`
    included, is up to you.

    Parameters
    ----------
    model : PILBoostClassifier
        The classifier whose fit was interrupted.
    path : str or path
        The file of its `Checkpoint`.

    Returns
    -------
    PILBoostClassifier
        With ``warm_start=True``; `model` itself where there is no such file.

    Raises
    ------
    ValueError
        If the checkpoint is of other settings.
    """
    if not Path(path).exists():
        return model
    found = load(path)
    if not isinstance(found, PILBoostClassifier):
        raise ValueError(f"{path} holds no PILBoostClassifier, whose rounds follow one another")
    wanted = _list_settings(model)
    for name, value in _list_settings(found).items():
        if name not in FREE_SETTINGS and not _is_same_setting(name, value, wanted[name]):
            raise ValueError(
                f"{path} was fitted with {name}={value!r}, not {wanted[name]!r}: remove it, or set that back"
            )
    again = copy(model)
    again.warm_start = True
    again.model_ = found.model_
    return again


def _list_settings(model: PILBoostClassifier) -> dict[str, Any]:
    """Return the settings of a classifier as a file holds them; no `growth` is one of its defaults."""
    settings = list_settings(model)
    return settings | {"growth": settings["growth"] or Growth().get_params()}


def _is_same_setting(name: str, found: Any, wanted: Any) -> bool:
    """Tell whether two values are one in a file, where an array is a list and a number of NumPy is one of Python."""
    try:
        return repr(make_plain(name, found)) == repr(make_plain(name, wanted))
    except ValueError:  # No file holds such a value, so the checkpoint has another one.
        return False
