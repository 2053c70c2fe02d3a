"""Who is judged. A group of methods shares its fits: cleanlab judges labels by posteriors that others have predicted.

All follow the same rules: one thread, no true label, nothing tuned by hand to a data set.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.datasets import Labels
from experiments.peers import (
    PEERS,
    XGBOOST,
    fill_zeros,
    find_version,
    fit_cleanlab,
    predict_unseen,
    search,
    spread_columns,
)
from experiments.runner import time_fit
from untwist import PILBoostClassifier, UntwistClassifier
from untwist.arguments import Array
from untwist.audit import audit_labels
from untwist.noise.out_of_fold import estimate_noise_of

__all__ = ["AUDITORS", "CONTROLS", "GROUPS", "OURS", "PEER", "RIVALS", "Group", "Labelling", "Outcome"]

#: The method that all is about.
OURS = "untwist"
#: The method that ours must nowhere lose to.
PEER = "xgboost"
#: Whose accuracy and log-loss ours are compared with.
RIVALS = ["xgboost", "lightgbm", "catboost", "extra-trees", "cleanlab"]
#: cleanlab with the posteriors of three models; the best of them counts.
AUDITORS = ["cleanlab on xgboost", "cleanlab on extra-trees", "cleanlab on untwist"]
#: What is shown and not compared: ours without its correction, and the paper's two-class booster, one against the rest.
CONTROLS = ["untwist, uncorrected", "pilboost-paper"]
CLEANLAB = ("cleanlab",)


@dataclass(frozen=True, eq=False)
class Labelling:
    """What a method says of the training labels.

    Attributes
    ----------
    suspicion : Array
        By row, the larger the more suspect.
    flagged : array of bool
        The rows that are taken for wrong.
    share : tuple of float
        The share of wrong labels with its interval, NaN where there is none.
    found : float
        1 if noise was found, 0 if not, NaN for a method that does not say.
    by_margin : Array, optional
        Another ranking.
    """

    suspicion: Array
    flagged: Any
    share: tuple[float, float, float]
    found: float = np.nan
    by_margin: Array | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method gives: posteriors and labels of the test rows, or what it says of the training labels, or both.

    Attributes
    ----------
    method : str
        Who.
    posterior : Array, optional
        Of the test rows; a column for each class that the training labels have.
    predicted : array of int, optional
        Labels of the test rows, by default the class of the largest posterior.
    labelling : Labelling, optional
        What it says of the training labels.
    seconds, noise_seconds : float
        Of the processor, for the fit, and for the estimate of the noise that is a part of it.
    """

    method: str
    posterior: Array | None = None
    predicted: Labels | None = None
    labelling: Labelling | None = None
    seconds: float = np.nan
    noise_seconds: float = np.nan


@dataclass(frozen=True)
class Group:
    """Methods that share fits.

    Attributes
    ----------
    judge : callable
        Takes X, y, X_test and a seed, and gives the outcome of one method after the other; labels are 0, 1, ...
    packages : dict
        By method, in the order of its outcomes, the distributions that it may come from.
    """

    judge: Callable[[Any, Labels, Any, int], Iterator[Outcome]]
    packages: dict[str, tuple[str, ...]]

    @property
    def installed(self) -> list[str]:
        """The methods that can be run here."""
        return [method for method, packages in self.packages.items() if find_version(packages)]


def _judge_untwist(X: Any, y: Labels, X_test: Any, seed: int) -> Iterator[Outcome]:
    model, seconds = time_fit(lambda: UntwistClassifier(n_jobs=1, random_state=seed).fit(X, y))
    audit = audit_labels(X, y, model)
    flagged = np.zeros(len(y), dtype=bool)
    flagged[audit.suspects()] = True
    suspicion = np.zeros(len(y))
    suspicion[audit.ranking] = np.arange(len(y), 0, -1)
    share, low, high = audit.noise_rate
    labelling = Labelling(suspicion, flagged, (share, low, high), float(audit.noise.found))
    start = time.process_time()
    assert model.model_.out_of_fold is not None
    estimate_noise_of(model.model_.out_of_fold)
    noise_seconds = time.process_time() - start
    yield Outcome(OURS, model.predict_proba(X_test), model.predict(X_test), labelling, seconds, noise_seconds)
    if find_version(CLEANLAB):
        labelling, seconds = time_fit(lambda: judge_by_cleanlab(y, np.asarray(model.oof_proba_)))
        yield Outcome("cleanlab on untwist", labelling=labelling, seconds=seconds)


def _judge_uncorrected(X: Any, y: Labels, X_test: Any, seed: int) -> Iterator[Outcome]:
    classifier = UntwistClassifier(noise=None, n_jobs=1, random_state=seed)
    model, seconds = time_fit(lambda: classifier.fit(X, y))
    yield Outcome("untwist, uncorrected", model.predict_proba(X_test), model.predict(X_test), seconds=seconds)


def _judge_paper(X: Any, y: Labels, X_test: Any, seed: int) -> Iterator[Outcome]:
    settings: dict[str, Any] = {"alpha": 2.0, "step_size": 8.0, "n_estimators": 1000, "max_depth": 3}
    model, seconds = time_fit(lambda: PILBoostClassifier(**settings, n_jobs=1, random_state=seed).fit(X, y))
    yield Outcome("pilboost-paper", model.predict_proba(X_test), model.predict(X_test), seconds=seconds)


def _judge_peer(name: str, X: Any, y: Labels, X_test: Any, seed: int) -> Iterator[Outcome]:
    (model, settings), seconds = time_fit(lambda: search(PEERS[name], X, y, seed))
    n_classes = int(y.max()) + 1
    yield Outcome(name, PEERS[name].predict(model, X_test, n_classes), seconds=seconds)
    if f"cleanlab on {name}" not in AUDITORS or not find_version(CLEANLAB):
        return
    unseen, more_seconds = time_fit(lambda: predict_unseen(PEERS[name], settings, X, y, seed))
    labelling, audit_seconds = time_fit(lambda: judge_by_cleanlab(y, unseen))
    yield Outcome(f"cleanlab on {name}", labelling=labelling, seconds=seconds + more_seconds + audit_seconds)
    if name == "xgboost":
        cleaned, last_seconds = time_fit(lambda: fit_cleanlab(PEERS[name], settings, X, y, unseen, seed))
        posterior = spread_columns(cleaned.predict_proba(X_test), cleaned.clf.classes_, n_classes)
        # cleanlab's learner needs the search, the folds and the fit to what is left.
        yield Outcome("cleanlab", posterior, seconds=seconds + more_seconds + last_seconds)


def judge_by_cleanlab(y: Labels, posterior: Array) -> Labelling:
    """Judge labels by cleanlab as it comes.

    Parameters
    ----------
    y : array of int
        The labels, 0, 1, ...
    posterior : array
        Out-of-fold posteriors.

    Returns
    -------
    Labelling
        By self-confidence, and by the normalised margin.
    """
    from cleanlab.count import estimate_joint
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    posterior = fill_zeros(posterior)
    flagged = find_label_issues(y, posterior, n_jobs=1)
    confidence, margin = (
        get_label_quality_scores(y, posterior, method=method) for method in ("self_confidence", "normalized_margin")
    )
    share = 1.0 - float(np.trace(estimate_joint(y, posterior)))
    return Labelling(1.0 - confidence, flagged, (share, np.nan, np.nan), by_margin=1.0 - margin)


def _make_peer_judge(name: str) -> Callable[[Any, Labels, Any, int], Iterator[Outcome]]:
    return lambda X, y, X_test, seed: _judge_peer(name, X, y, X_test, seed)


#: The methods by the group that shares their fits.
GROUPS = {
    "untwist": Group(_judge_untwist, {OURS: ("untwist",), "cleanlab on untwist": CLEANLAB}),
    "untwist, uncorrected": Group(_judge_uncorrected, {"untwist, uncorrected": ("untwist",)}),
    "pilboost-paper": Group(_judge_paper, {"pilboost-paper": ("untwist",)}),
    "xgboost": Group(
        _make_peer_judge("xgboost"),
        {"xgboost": XGBOOST, "cleanlab on xgboost": CLEANLAB, "cleanlab": CLEANLAB},
    ),
    "lightgbm": Group(_make_peer_judge("lightgbm"), {"lightgbm": ("lightgbm",)}),
    "catboost": Group(_make_peer_judge("catboost"), {"catboost": ("catboost",)}),
    "extra-trees": Group(
        _make_peer_judge("extra-trees"),
        {"extra-trees": ("scikit-learn",), "cleanlab on extra-trees": CLEANLAB},
    ),
}
