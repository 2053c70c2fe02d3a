"""The compiled engine without the classifier: a dataset, a booster, the forest that it grows."""

import numpy as np

from untwist.boosting.engines.compiled import CompiledBooster, CompiledDataset, CompiledEngine
from untwist.boosting.engines.engine import Rows, Task


def make_dataset(X, labels, weight=None, *, categories=None, max_bins=255, n_jobs=None):
    """Bin rows with labels from 0 on; `categories` tells how many a categorical column has."""
    weight = np.ones(len(labels)) if weight is None else weight
    rows = Rows(X, np.asarray(labels, dtype=np.uint32), weight, categories or {})
    return CompiledDataset(rows, max_bins=max_bins, n_jobs=n_jobs)


def make_booster(dataset, link, step_size, growth, **task):
    """Return a booster of the compiled engine; `task` are further fields of `Task`."""
    return CompiledBooster(dataset, Task(link, step_size, growth, **task))


def get_forest(booster):
    """Return the trees so far."""
    return booster.ensemble().forest


def get_training_scores(booster):
    """Return the scores of the training rows as the core has added them up."""
    return booster.core.scores()


def wrap_boosters(monkeypatch, wrap):
    """Have the classifier use `wrap(booster, task)` in place of every booster that the compiled engine makes."""
    make = CompiledEngine.make_booster
    monkeypatch.setattr(
        CompiledEngine, "make_booster", lambda self, dataset, task: wrap(make(self, dataset, task), task)
    )
