"""The methods that meet in the arena: each learns from the twisted training data alone and gives probabilities.

All follow the same rules: one thread, no clean label, nothing tuned by hand to a data set. Peers are set up as careful
users do it: candidates are compared on a stratified fifth of the noisy training data, where boosters also stop early,
and the best one is fitted again to all of them. Some are shown a second time, with our untwisting on top: what the
noise estimate adds to another's posteriors, and what our own booster adds to the noise estimate. Where a table has a
column that says who gave the label, all methods have it; ours is told that it is the source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from experiments.peers import PEERS, XGBOOST, Contiguous, Peer, find_version, fit_cleanlab, predict_unseen, search
from experiments.protocol import SOURCE
from experiments.robust_focal_loss import RobustFocalLoss
from untwist import PILBoostClassifier, UntwistClassifier
from untwist.arguments import Array
from untwist.audit.peers import HeldOut, fit_xgboost
from untwist.noise import NoiseModel

__all__ = ["METHODS", "OURS", "PEER", "Method", "Model", "is_peer"]

#: The method that the arena is about.
OURS = "untwist"
#: The method that ours must nowhere lose to, and whose time ours is compared with.
PEER = "xgboost-careful"
#: The learning rate of careful boosters.
LEARNING_RATE = 0.05
#: The rows per leaf that a careful user of forests tries.
LEAVES = (1, 2, 5, 10, 20)


class Model(Protocol):
    """What a fit gives."""

    def predict_proba(self, X: Any) -> Any:
        """A row of P(0), P(1), ... for each row of X."""


@dataclass(frozen=True)
class Method:
    """A method of the arena.

    Attributes
    ----------
    fit : callable
        Takes X, y and a seed, and of a method that follows another also the model of that; gives a `Model`.
    words : str
        What it is in words.
    packages : tuple of str
        The distributions that it may come from.
    follows : str
        The method whose fit this one goes on from, if there is one.
    on_top : bool
        Whether it is a peer with our untwisting on top, which stands apart.
    several : bool
        Whether it knows more than two classes.
    """

    fit: Callable[..., Model]
    words: str
    packages: tuple[str, ...] = ("scikit-learn",)
    follows: str = ""
    on_top: bool = False
    several: bool = True

    @property
    def version(self) -> str:
        """The package with its version, or nothing if it is not installed."""
        return find_version(self.packages)


def is_peer(name: str) -> bool:
    """Find out whether a method is one that ours is compared with: neither ours nor one that has a part of ours."""
    return name != OURS and not (name in METHODS and METHODS[name].on_top)


@dataclass(frozen=True)
class _WithoutSource:
    """A model that was told the sources of its training rows, which are no feature."""

    model: UntwistClassifier

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X.drop(columns=SOURCE))

    def predict(self, X: Any) -> Any:
        return self.model.predict(X.drop(columns=SOURCE))


def _fit_untwist(X: Any, y: Any, seed: int) -> Model:
    model = UntwistClassifier(n_jobs=1, random_state=seed)
    if SOURCE in getattr(X, "columns", ()):
        return _WithoutSource(model.fit(X.drop(columns=SOURCE), y, source=X[SOURCE]))
    return model.fit(X, y)


def _fit_as_in_the_paper(X: Any, y: Any, seed: int) -> Model:
    settings: dict[str, Any] = {"alpha": 2.0, "step_size": 8.0, "n_estimators": 1000, "max_depth": 3}
    return PILBoostClassifier(**settings, n_jobs=1, random_state=seed).fit(X, y)


def _fit_xgboost(X: Any, y: Any, seed: int) -> Model:
    return fit_xgboost(X, y, n_jobs=1, random_state=seed)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _OnColumns:
    """A model of some columns of a table."""

    model: Model
    columns: list[str]

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X[self.columns])


def _fit_hist_gradient_boosting(X: Any, y: Any, seed: int) -> Model:
    # It keeps the last round, not the best, so that more patience than its own would only hurt it.
    model = HistGradientBoostingClassifier(early_stopping=True, random_state=seed)
    columns = [column for column in X.columns if X[column].notna().any()]  # It fails at a column without a value.
    return _OnColumns(model.fit(X[columns], y), columns)


# ---- careful peers, and what goes on from their fits ----


def _set(peer: str, **settings: Any) -> Peer:
    """The peer with settings that all of its candidates share."""
    known = PEERS[peer]
    return replace(known, candidates=tuple(candidate | settings for candidate in known.candidates))


def _fit_focal(X: Any, y: Any, held_out: HeldOut | None, seed: int, r: float, q: float, **settings: Any) -> Any:
    objective = RobustFocalLoss(r, q)
    return PEERS["xgboost"].fit(X, y, held_out, seed, objective=objective, eval_metric="auc", **settings)


def _choose_focus(peer: Peer) -> Peer:
    """XGBoost with the robust focal loss; log-loss on noisy labels would never choose it, so that AUC does."""
    losses = [{"r": r, "q": q} for r in (0.0, 1.0) for q in (0.1, 0.5)]
    candidates = tuple(candidate | loss for candidate in peer.candidates for loss in losses)
    return replace(peer, fit=_fit_focal, candidates=candidates, compare=_find_lacking_auc)


def _find_lacking_auc(y: Any, posterior: Any) -> float:
    return 1.0 - float(roc_auc_score(y, posterior[:, 1]))


def _choose_leaves(peer: str) -> Peer:
    return replace(PEERS[peer], candidates=tuple({"min_samples_leaf": leaf} for leaf in LEAVES))


def _make_careful(peer: Peer, words: str, **details: Any) -> Method:
    return Method(lambda X, y, seed: search(peer, X, y, seed)[0], words, peer.packages, **details)


@dataclass(frozen=True)
class _Untwisted:
    """A model of two classes with our estimate of the noise undone."""

    model: Contiguous
    noise: NoiseModel

    def predict_proba(self, X: Any) -> Array:
        twisted = np.asarray(self.model.predict_proba(X), dtype=float)
        return self.noise.clean(self.noise.count_as_estimated(twisted))


def _untwist(X: Any, y: Any, seed: int, fitted: Contiguous) -> Model:
    unseen = predict_unseen(fitted.peer, fitted.settings, X, y, seed)
    return _Untwisted(fitted, NoiseModel.estimate(unseen, y))


def _put_on_top(follows: str, words: str, packages: tuple[str, ...] = ("scikit-learn",)) -> Method:
    return Method(_untwist, words, packages, follows, on_top=True, several=False)


def _clean_labels(X: Any, y: Any, seed: int, fitted: Contiguous) -> Model:
    unseen = predict_unseen(fitted.peer, fitted.settings, X, y, seed)
    return fit_cleanlab(fitted.peer, fitted.settings, X, y, unseen, seed)  # type: ignore[no-any-return]


_CAUTIOUS: dict[str, Any] = {"min_child_weight": 5, "reg_lambda": 5.0, "subsample": 0.7, "colsample_bytree": 0.7}

#: By name; whatever follows another method comes after it.
METHODS = {
    OURS: Method(_fit_untwist, "untwist, as it comes", ("untwist",)),
    "pilboost-paper": Method(_fit_as_in_the_paper, "PILBoost as in the paper", ("untwist",)),
    "xgboost": Method(_fit_xgboost, "XGBoost, as it comes", XGBOOST),
    PEER: _make_careful(_set("xgboost", learning_rate=LEARNING_RATE), "XGBoost, careful"),
    "xgboost-cautious": _make_careful(
        _set("xgboost", learning_rate=LEARNING_RATE, **_CAUTIOUS), "XGBoost, careful and cautious"
    ),
    "xgboost-focal": _make_careful(
        _choose_focus(_set("xgboost", learning_rate=LEARNING_RATE)), "XGBoost, robust focal loss", several=False
    ),
    "lightgbm-careful": _make_careful(_set("lightgbm", learning_rate=LEARNING_RATE), "LightGBM, careful"),
    "lightgbm-extra": _make_careful(
        _set("lightgbm", learning_rate=LEARNING_RATE, extra_trees=True), "LightGBM with extra_trees, careful"
    ),
    "catboost-careful": _make_careful(_set("catboost", learning_rate=LEARNING_RATE), "CatBoost, careful"),
    "hist-gradient": Method(_fit_hist_gradient_boosting, "HistGradientBoosting, stopped early"),
    "forest-careful": _make_careful(_choose_leaves("random-forest"), "random forest, careful"),
    "extra-trees-careful": _make_careful(_choose_leaves("extra-trees"), "ExtraTrees, careful"),
    "cleanlab-careful": Method(
        _clean_labels, "cleanlab around careful LightGBM", ("cleanlab",), follows="lightgbm-careful"
    ),
    "xgboost+untwist": _put_on_top(PEER, "careful XGBoost, untwisted", XGBOOST),
    "lightgbm+untwist": _put_on_top("lightgbm-careful", "careful LightGBM, untwisted", ("lightgbm",)),
    "catboost+untwist": _put_on_top("catboost-careful", "careful CatBoost, untwisted", ("catboost",)),
    "forest+untwist": _put_on_top("forest-careful", "careful random forest, untwisted"),
    "extra-trees+untwist": _put_on_top("extra-trees-careful", "careful ExtraTrees, untwisted"),
}
