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
from untwist.audit.explaining import require_model
from untwist.audit.labels import LabelAudit
from untwist.audit.peers import LEARNING_RATE, ROUNDS, HeldOut, fit_lightgbm, fit_xgboost
from untwist.data.batches import Batches, fit_memory
from untwist.sums import average

__all__ = ["Peer", "compare"]

#: With fewer rows, threads cost more than they save.
FEW_ROWS = 10_000

#: The share of its training rows that a peer stops early on.
STOPPING_SHARE = 0.2

#: The peers: the package that each needs, and the function that fits it.
PEERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "XGBoost, stopped early": ("xgboost", fit_xgboost),
    "LightGBM, stopped early": ("lightgbm", fit_lightgbm),
}


@dataclass(frozen=True)
class Peer:
    """How well a method predicts rows that it was not trained on.

    Parameters
    ----------
    agreement_with_given : float
        The share of the labels as given that it predicts.
    log_loss : float
        Its log-loss on the labels as given.
    agreement_with_corrected : float
        The share that it predicts of the labels after the suspects have been corrected, which is what untwist takes for
        the truth.
    """

    agreement_with_given: float
    log_loss: float
    agreement_with_corrected: float


def compare(audit: LabelAudit) -> dict[str, Peer]:
    """Measure untwist and those of XGBoost and LightGBM that are installed, on the folds of the audit.

    No row is judged by a model that has seen it. The others stop early on a fifth of their training rows.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.

    Returns
    -------
    dict of Peer
        By the name of the method. A ValueError where the rows are `Batches` that are too many for memory.
    """
    X = audit.table.X
    if isinstance(X, Batches) and not fit_memory(X):
        raise ValueError(
            f"other boosters need all rows in memory, and {X} are too many: audit some of them, "
            "Batches(..., rows=...), and compare on these"
        )
    folds = _find_folds(audit)
    measured = {"untwist": _measure(audit, audit.posterior, audit.clean.argmax(axis=1))}
    for name, (package, fit) in PEERS.items():
        if importlib.util.find_spec(package) is None:
            continue
        posterior = np.zeros_like(audit.posterior)
        for held_out_share, weight in zip(*folds, strict=True):
            rows = np.flatnonzero(held_out_share)
            posterior[rows] += held_out_share[rows, None] * _predict(fit, audit, weight, rows)
        measured[name] = _measure(audit, posterior, posterior.argmax(axis=1))
    return measured


def _find_folds(audit: LabelAudit) -> tuple[Array, Array]:
    """Return the share of each row's weight that each fold of the audited model set aside, and what it trained on."""
    unseen = require_model(audit, "the folds of other boosters come").model_.out_of_fold
    assert unseen is not None  # A model that can be audited has chosen by folds.
    own_folds = unseen.context.own_folds
    if own_folds is not None:
        return unseen.held_out, np.where(own_folds.trained, unseen.weight, 0.0)
    return unseen.held_out, unseen.weight * (1.0 - unseen.held_out)


def _measure(audit: LabelAudit, posterior: Array, predicted: NDArray[np.intp]) -> Peer:
    rows = np.flatnonzero(audit.weight)  # The others are not judged, or absent.
    labels, predicted, weight = audit.label_indices[rows], predicted[rows], audit.weight[rows]
    corrected = np.searchsorted(audit.classes, audit.corrected(force=True)[rows])
    posterior_floor = 1.0 / (audit.verdict.n_judged + 2.0)
    posterior_of_label = posterior[rows, labels]
    log_losses = -np.log(np.clip(posterior_of_label, posterior_floor, 1.0 - posterior_floor))
    return Peer(
        agreement_with_given=average(predicted == labels, weight),
        log_loss=average(log_losses, weight),
        agreement_with_corrected=average(predicted == corrected, weight),
    )


def _predict(fit: Callable[..., Any], audit: LabelAudit, weight: Array, rows: NDArray[np.intp]) -> Array:
    """Return posteriors of `rows` by a peer that has learned from all rows with their `weight`."""
    trained = np.flatnonzero(weight > 0)
    known, labels = np.unique(audit.label_indices[trained], return_inverse=True)
    posterior = np.zeros((len(rows), len(audit.classes)))  # A class that was not learned keeps probability 0.
    if len(known) == 1:
        posterior[:, known] = 1.0
        return posterior
    train, stop = _split(labels, len(known))
    table = audit.table.numbers
    model = require_model(audit, "the threads of other boosters come")
    peer_model = fit(
        table[trained[train]],
        labels[train],
        HeldOut(table[trained[stop]], labels[stop], weight[trained[stop]]),
        weight=weight[trained[train]],
        categories=sorted(model.model_.encoder.schema.categories),
        n_estimators=ROUNDS,
        learning_rate=LEARNING_RATE,
        n_jobs=1 if model.n_jobs is None and len(trained) < FEW_ROWS else model.n_jobs,
        random_state=model.model_.seed,
    )
    posterior[:, known] = peer_model.predict_proba(table[rows])
    return posterior


def _split(labels: NDArray[np.intp], n_classes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows to train on and those to stop on; where rows are too few to spare some, all of them train."""
    everything = np.arange(len(labels))
    enough = np.bincount(labels).min() >= 2 and len(labels) >= 10 * n_classes
    train, stop = train_test_split(
        everything, test_size=STOPPING_SHARE, stratify=labels if enough else None, random_state=0
    )
    if len(np.unique(labels[train])) < n_classes:
        train = everything
    return train, stop
