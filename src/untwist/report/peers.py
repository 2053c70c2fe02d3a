"""Other boosters on the same folds of the same noisy rows: what they predict for labels they have not seen."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from untwist.arguments import Array
from untwist.audit.labels import LabelAudit
from untwist.automatic.search import N_FOLDS
from untwist.data.folds import cross_folds

__all__ = ["Peer", "compare"]

ROUNDS, PATIENCE, RATE = 2000, 50, 0.1
SMALL = 10_000  # rows: with fewer, threads cost more than they save


@dataclass(frozen=True)
class Peer:
    """How well rows that were not trained on are predicted: shares of labels, and log-loss of the labels as given.

    `corrected`: the labels after the suspects have been corrected, which is what untwist takes for the truth.
    """

    given: float
    log_loss: float
    corrected: float


def compare(audit: LabelAudit) -> dict[str, Peer]:
    """untwist and those of XGBoost and LightGBM that are installed, early-stopped on a fifth of their training rows.

    All by the same folds, so that no row is judged by a model that has seen it.
    """
    model, labels = audit.model, np.searchsorted(audit.classes, audit.given).astype(np.uint32)
    weight = audit.weight * model._class_weights[labels]
    hashes = model._sample(model._rows(audit.X), labels, weight, None, None, None).data.hashes()
    held = cross_folds(hashes, labels, weight, N_FOLDS, model._seed) / np.where(weight > 0, weight, 1.0)
    found = {"untwist": _judged(audit, audit.posterior, np.searchsorted(audit.classes, audit.predicted))}
    for name, (package, fit) in FITS.items():
        if importlib.util.find_spec(package) is None:
            continue
        posterior = np.zeros_like(audit.posterior)
        for share in held:  # of each row that the fold sets aside
            part = np.flatnonzero(share)
            posterior[part] += share[part, None] * _answers(fit, audit, audit.weight * (1.0 - share), part)
        found[name] = _judged(audit, posterior, posterior.argmax(axis=1))
    return found


def _judged(audit: LabelAudit, posterior: Array, predicted: NDArray[np.intp]) -> Peer:
    labels, truth = (np.searchsorted(audit.classes, each) for each in (audit.given, audit.corrected()))
    least, known = 1.0 / (len(labels) + 2.0), audit.weight > 0
    own = np.clip(posterior[np.arange(len(labels)), labels], least, 1.0 - least)
    given, loss, corrected = (
        float(np.average(each[known], weights=audit.weight[known]))
        for each in (predicted == labels, -np.log(own), predicted == truth)
    )
    return Peer(given, loss, corrected)


@dataclass(frozen=True)
class _Lesson:
    """(X, y, weight) to learn from and to stop on; classes are numbered from 0 on."""

    train: tuple[Array, NDArray[np.intp], Array]
    stop: tuple[Array, NDArray[np.intp], Array]
    n_classes: int
    categories: list[int]
    seed: int
    n_jobs: int | None


Answers = Callable[[Array], Array]  # the posterior of each class for rows


def _answers(fit: Callable[[_Lesson], Answers], audit: LabelAudit, weight: Array, rows: NDArray[np.intp]) -> Array:
    """Posteriors of `rows` by a peer that has learned from all rows with their `weight`."""
    learned = np.flatnonzero(weight > 0)
    known, labels = np.unique(np.searchsorted(audit.classes, audit.given[learned]), return_inverse=True)
    even = labels if np.bincount(labels).min() >= 2 and len(learned) >= 10 * len(known) else None
    train, stop = train_test_split(np.arange(len(learned)), test_size=0.2, stratify=even, random_state=0)
    if len(np.unique(labels[train])) < len(known):
        train = np.arange(len(learned))  # too few to spare some
    parts = [(audit._numbers[learned[part]], labels[part], weight[learned[part]]) for part in (train, stop)]
    model, found = audit.model, np.zeros((len(rows), len(audit.classes)))
    n_jobs = 1 if model.n_jobs is None and len(learned) < SMALL else model.n_jobs
    lesson = _Lesson(parts[0], parts[1], len(known), sorted(model._schema.categories), model._seed, n_jobs)
    found[:, known] = fit(lesson)(audit._numbers[rows]) if len(known) > 1 else 1.0  # a class may be missing
    return found


def _xgboost(lesson: _Lesson) -> Answers:
    from xgboost import XGBClassifier

    model = XGBClassifier(
        n_estimators=ROUNDS,
        learning_rate=RATE,
        early_stopping_rounds=PATIENCE,
        enable_categorical=True,
        feature_types=["c" if i in lesson.categories else "float" for i in range(lesson.train[0].shape[1])],
        n_jobs=lesson.n_jobs,
        random_state=lesson.seed,
    )
    X, y, weight = lesson.stop
    watched = {"eval_set": [(X, y)], "sample_weight_eval_set": [weight], "verbose": False}
    X, y, weight = lesson.train
    return model.fit(X, y, sample_weight=weight, **watched).predict_proba


def _lightgbm(lesson: _Lesson) -> Answers:
    from lightgbm import Dataset, early_stopping, train

    settings: dict[str, Any] = {"objective": "binary"}
    if lesson.n_classes > 2:
        settings = {"objective": "multiclass", "num_class": lesson.n_classes}
    settings |= {"learning_rate": RATE, "seed": lesson.seed, "num_threads": lesson.n_jobs or 0, "verbose": -1}
    X, y, weight = lesson.train
    data = Dataset(X, y, weight=weight, categorical_feature=lesson.categories, params={"verbose": -1})
    X, y, weight = lesson.stop
    watched = data.create_valid(X, y, weight=weight)
    stop = early_stopping(PATIENCE, verbose=False)
    booster = train(settings, data, ROUNDS, valid_sets=[watched], callbacks=[stop])

    def posterior(rows: Array) -> Array:
        answers = np.asarray(booster.predict(rows))
        return answers if answers.ndim == 2 else np.column_stack([1.0 - answers, answers])

    return posterior


FITS: dict[str, tuple[str, Callable[[_Lesson], Answers]]] = {
    "XGBoost, stopped early": ("xgboost", _xgboost),
    "LightGBM, stopped early": ("lightgbm", _lightgbm),
}
