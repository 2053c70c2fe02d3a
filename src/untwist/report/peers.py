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
from untwist.audit.peers import LEARNING_RATE, ROUNDS, HeldOut, fit_lightgbm, fit_xgboost
from untwist.automatic.search import N_FOLDS
from untwist.data.folds import cross_folds

__all__ = ["Peer", "compare"]

#: With fewer rows, threads cost more than they save.
SMALL = 10_000


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
            posterior[part] += share[part, None] * _predict(fit, audit, audit.weight * (1.0 - share), part)
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


def _predict(fit: Callable[..., Any], audit: LabelAudit, weight: Array, rows: NDArray[np.intp]) -> Array:
    """Posteriors of `rows` by a peer that has learned from all rows with their `weight`."""
    model = audit.model
    learned = np.flatnonzero(weight > 0)
    known, labels = np.unique(np.searchsorted(audit.classes, audit.given[learned]), return_inverse=True)
    posterior = np.zeros((len(rows), len(audit.classes)))  # A class that was not learned keeps probability 0.
    if len(known) == 1:
        posterior[:, known] = 1.0
        return posterior
    even = labels if np.bincount(labels).min() >= 2 and len(learned) >= 10 * len(known) else None
    train, stop = train_test_split(np.arange(len(learned)), test_size=0.2, stratify=even, random_state=0)
    if len(np.unique(labels[train])) < len(known):
        train = np.arange(len(learned))  # There are too few rows to spare some.
    table = audit._numbers
    peer = fit(
        table[learned[train]],
        labels[train],
        HeldOut(table[learned[stop]], labels[stop], weight[learned[stop]]),
        weight=weight[learned[train]],
        categories=sorted(model._schema.categories),
        n_estimators=ROUNDS,
        learning_rate=LEARNING_RATE,
        n_jobs=1 if model.n_jobs is None and len(learned) < SMALL else model.n_jobs,
        random_state=model._seed,
    )
    posterior[:, known] = peer.predict_proba(table[rows])
    return posterior


FITS: dict[str, tuple[str, Callable[..., Any]]] = {
    "XGBoost, stopped early": ("xgboost", fit_xgboost),
    "LightGBM, stopped early": ("lightgbm", fit_lightgbm),
}
