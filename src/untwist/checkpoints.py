"""Long fits that can be stopped, and go on from what was saved last."""

from __future__ import annotations

import os
from pathlib import Path

from untwist import collective
from untwist.arguments import count
from untwist.classifier import PILBoostClassifier
from untwist.files import load, save
from untwist.training import Progress

__all__ = ["Checkpoint", "resumed"]


class Checkpoint:
    """A callback that saves the model after every so many rounds, in place of the last one.

    A file is whole or not there: what a full disk or a killed process leaves behind is the checkpoint before. Of the
    workers of a distributed fit the first one saves.

    >>> from untwist import PILBoostClassifier
    >>> model = PILBoostClassifier(2.0, n_estimators=500, max_depth=3, callbacks=[Checkpoint("run.untwist", every=100)])
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 50) -> None:
        self.path, self.every = Path(path), count("every", every)

    def __call__(self, progress: Progress) -> None:
        """Save if it is time to."""
        if progress.model is None:
            raise ValueError("a checkpoint needs alpha, n_estimators and max_depth to be given: see PILBoostClassifier")
        if progress.round % self.every == 0 and collective.present().rank == 0:
            save(progress.model(), self.path)


def resumed(model: PILBoostClassifier, path: str | os.PathLike[str]) -> PILBoostClassifier:
    """`model` with the rounds of a checkpoint, if there is one: its `fit` on the same data goes on from there.

    The model is the same as without the interruption.
    """
    if not Path(path).exists():
        return model
    found = load(path)
    settings = model.get_params(deep=False)
    return found.set_params(**{**settings, "warm_start": True, "random_state": found.random_state})
