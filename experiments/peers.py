"""Peers that the package itself does not need: CatBoost, cleanlab, and those that know numbers only.

Early-stopped XGBoost and LightGBM are those of `untwist.audit.peers`. All learn from the rows that they are given;
whatever stops early does so on a stratified fifth of them. `search` is how a careful user sets a peer up: candidates
are compared on that fifth, and the best one is fitted again to all rows.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import untwist
from untwist.arguments import Array
from untwist.audit.peers import LEARNING_RATE, PATIENCE, ROUNDS, HeldOut, fit_lightgbm, fit_xgboost

__all__ = [
    "LEAST_PROBABILITY",
    "PEERS",
    "XGBOOST",
    "Peer",
    "compute_log_loss",
    "fill_zeros",
    "find_version",
    "fit_catboost",
    "fit_cleanlab",
    "fit_on_numbers",
    "give_threads",
    "hold_out",
    "predict_unseen",
    "search",
    "spread_columns",
]

#: The distributions that XGBoost may come from.
XGBOOST = ("xgboost-cpu", "xgboost")
#: What XGBoost and LightGBM have unless a candidate says otherwise.
DEFAULTS = {"n_jobs": 1, "learning_rate": LEARNING_RATE}
#: The trees of a forest.
TREES = 300
#: No predicted probability counts as less than this: certain and wrong costs 13.8, not infinity.
LEAST_PROBABILITY = 1e-6


def find_version(packages: Iterable[str]) -> str:
    """Find the first of these distributions that is installed.

    Parameters
    ----------
    packages : iterable of str
        Names of distributions.

    Returns
    -------
    str
        Its name and version, empty where none is installed.
    """
    for package in packages:
        if package == "untwist":  # It is there, also where its folder is on the path and nothing was installed.
            return f"untwist {untwist.__version__}"
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return f"{package} {importlib.metadata.version(package)}"
    return ""


def hold_out(X: Any, y: Any, seed: int) -> tuple[Any, Any, HeldOut]:
    """Set a stratified fifth of the rows aside, the same rows for everyone who stops early.

    The row of a class that has no other stays among those to train on.

    Parameters
    ----------
    X, y : table and labels
        All rows.
    seed : int
        Of the draw.

    Returns
    -------
    X, y : table and labels
        The rows to train on.
    HeldOut
        The others.
    """
    _, class_of_row, counts = np.unique(y, return_inverse=True, return_counts=True)
    alone = counts[class_of_row] < 2
    if not alone.any():
        X_train, X_held, y_train, y_held = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
        return X_train, y_train, HeldOut(X_held, y_held)
    others = np.flatnonzero(~alone)
    train, held = train_test_split(others, test_size=0.2, stratify=y[others], random_state=seed)
    train = np.concatenate([train, np.flatnonzero(alone)])
    return _take(X, train), y[train], HeldOut(_take(X, held), y[held])


def _take(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


@dataclass(frozen=True)
class _TextModel:
    """A model of CatBoost that takes the tables that the others take."""

    model: Any

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(_to_text(X))


def _to_text(X: Any) -> Any:
    """CatBoost takes categories as text, and a missing one as a category."""
    categories = _list_categories(X)
    return X.astype(dict.fromkeys(categories, object)).fillna(dict.fromkeys(categories, "missing"))


def _list_categories(X: Any) -> list[Any]:
    """The columns of a DataFrame that hold categories."""
    return [column for column, kind in X.dtypes.items() if kind == "category"]


def fit_catboost(X: Any, y: Any, held_out: HeldOut | None = None, *, patience: int = PATIENCE, **settings: Any) -> Any:
    """Fit CatBoost with one thread, stopped early where rows are held out.

    Parameters
    ----------
    X, y : table and labels
        The rows to train on.
    held_out : HeldOut, optional
        The rows to stop on. Without them all rounds are run.
    patience : int
        Rounds without a gain before it stops.
    **settings
        Of `catboost.CatBoostClassifier`.

    Returns
    -------
    object
        A fitted model.
    """
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(thread_count=1, allow_writing_files=False, logging_level="Silent", **settings)
    is_frame = hasattr(X, "dtypes")
    rules: dict[str, Any] = {"cat_features": _list_categories(X)} if is_frame else {}
    if held_out is not None:
        watched = _to_text(held_out.X) if is_frame else held_out.X
        rules |= {"eval_set": (watched, held_out.y), "early_stopping_rounds": patience}
    return _TextModel(model.fit(_to_text(X), y, **rules)) if is_frame else model.fit(X, y, **rules)


def fit_on_numbers(classifier: Any, X: Any, y: Any) -> Any:
    """Fit a classifier that knows neither categories nor missing values.

    Parameters
    ----------
    classifier : object
        A classifier of scikit-learn.
    X, y : DataFrame and labels
        The rows.

    Returns
    -------
    sklearn.pipeline.Pipeline
    """
    numbers = SimpleImputer(strategy="median", keep_empty_features=True)
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((one_hot, _list_categories(X)), remainder=numbers)
    return make_pipeline(columns, classifier).fit(X, y)


# ---- peers as a careful user sets them up ----


def compute_log_loss(y: Any, posterior: Any) -> float:
    """Compute the mean log-loss.

    Parameters
    ----------
    y : array of int
        Labels, from 0 up.
    posterior : array of shape (n_rows, n_classes)
        What was predicted; no class counts as less than `LEAST_PROBABILITY`.

    Returns
    -------
    float

    Examples
    --------
    >>> round(compute_log_loss(np.array([0, 2]), np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])), 4)
    0.6931
    """
    clipped = np.maximum(np.asarray(posterior, dtype=float), LEAST_PROBABILITY)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return float(-np.mean(np.log(clipped[np.arange(len(y)), y])))


@dataclass(frozen=True)
class Peer:
    """How a peer is fitted, what is tried of it, and where it comes from.

    Attributes
    ----------
    fit : callable
        Takes X, y, held-out rows or None, a seed and settings, and gives a model.
    candidates : tuple of dict
        The settings that are compared on held-out rows.
    rounds : str
        The setting that says how many rounds there are, of a peer that stops early.
    count_rounds : callable
        Reads the best number of rounds off a model that stopped early.
    packages : tuple of str
        The distributions that it may come from.
    compare : callable
        Takes labels and posteriors of held-out rows; the candidate with the least value is chosen.
    """

    fit: Callable[..., Any]
    candidates: tuple[dict[str, Any], ...]
    packages: tuple[str, ...]
    rounds: str = ""
    count_rounds: Callable[[Any], int] = lambda _model: 0
    compare: Callable[[Any, Any], float] = compute_log_loss

    @property
    def version(self) -> str:
        """The package with its version, or nothing if it is not installed."""
        return find_version(self.packages)

    def predict(self, model: Any, X: Any, n_classes: int) -> Array:
        """Predict the posterior of every class; 0 of those that the model has never seen."""
        return spread_columns(model.predict_proba(X), model.classes_, n_classes)


def give_threads(peer: Peer, threads: int) -> Peer:
    """Give XGBoost or LightGBM so many threads, which have one otherwise.

    Parameters
    ----------
    peer : Peer
        The peer.
    threads : int
        How many threads each of its candidates has.

    Returns
    -------
    Peer

    Examples
    --------
    >>> give_threads(PEERS["xgboost"], 4).candidates
    ({'max_depth': 3, 'n_jobs': 4}, {'max_depth': 6, 'n_jobs': 4})
    """
    return replace(peer, candidates=tuple({**candidate, "n_jobs": threads} for candidate in peer.candidates))


def spread_columns(posterior: Any, classes: Any, n_classes: int) -> Array:
    """Give each class its column.

    Parameters
    ----------
    posterior : array
        A column for each of `classes`.
    classes : array of int
        The classes that a model knows.
    n_classes : int
        How many there are.

    Returns
    -------
    array of shape (n_rows, n_classes)

    Examples
    --------
    >>> spread_columns([[0.4, 0.6]], [0, 2], 3)
    array([[0.4, 0. , 0.6]])
    """
    spread = np.zeros((len(posterior), n_classes))
    spread[:, np.asarray(classes, dtype=np.intp)] = np.asarray(posterior, dtype=float)
    return spread


class Contiguous(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A peer with fixed settings whose labels need not be all of 0 to n_classes - 1, which XGBoost asks for."""

    def __init__(self, peer: Peer, settings: dict[str, Any], seed: int) -> None:
        self.peer = peer
        self.settings = settings
        self.seed = seed

    def fit(self, X: Any, y: Any, sample_weight: Any = None, held_out: HeldOut | None = None) -> Contiguous:
        """Fit the peer to labels that are renumbered without gaps."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        if held_out is not None:
            held_out = HeldOut(held_out.X, np.searchsorted(self.classes_, held_out.y))
        weights = {} if sample_weight is None else {"weight": sample_weight}
        self.model_ = self.peer.fit(X, labels, held_out, seed=self.seed, **weights, **self.settings)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Predict the posterior of the classes that were there."""
        return self.model_.predict_proba(X)

    def predict(self, X: Any) -> Any:
        """Predict labels."""
        return self.classes_[np.asarray(self.predict_proba(X)).argmax(axis=1)]


def search(peer: Peer, X: Any, y: Any, seed: int) -> tuple[Contiguous, dict[str, Any]]:
    """Compare the candidates of a peer on held-out rows, and fit the best one to all rows.

    Parameters
    ----------
    peer : Peer
        The peer.
    X, y : table and labels
        All rows; labels are whole numbers.
    seed : int
        Of what is drawn at random.

    Returns
    -------
    Contiguous
        The fitted model.
    dict
        The settings that were chosen, the number of rounds among them.
    """
    X_train, y_train, held_out = hold_out(X, y, seed)
    losses = []
    chosen = []
    for candidate in peer.candidates:
        limit = {peer.rounds: ROUNDS} if peer.rounds else {}
        model = Contiguous(peer, {**candidate, **limit}, seed)
        model.fit(X_train, y_train, held_out=held_out if peer.rounds else None)
        posterior = spread_columns(model.predict_proba(held_out.X), model.classes_, int(np.max(y)) + 1)
        losses.append(peer.compare(held_out.y, posterior))
        best_rounds = {peer.rounds: peer.count_rounds(model.model_)} if peer.rounds else {}
        chosen.append({**candidate, **best_rounds})
    settings = chosen[int(np.argmin(losses))]
    return Contiguous(peer, settings, seed).fit(X, y), settings


def predict_unseen(peer: Peer, settings: dict[str, Any], X: Any, y: Any, seed: int, n_folds: int = 5) -> Array:
    """Predict every row by a model that has not seen it.

    Parameters
    ----------
    peer : Peer
        The peer.
    settings : dict
        Its settings, see `search`.
    X, y : table and labels
        All rows; labels are whole numbers.
    seed : int
        Of the folds and of the peer.
    n_folds : int
        How many folds there are.

    Returns
    -------
    array of shape (n_rows, n_classes)
    """
    posterior = np.zeros((len(y), int(np.max(y)) + 1))
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y):
        model = Contiguous(peer, settings, seed).fit(_take(X, train), y[train])
        posterior[test] = spread_columns(model.predict_proba(_take(X, test)), model.classes_, posterior.shape[1])
    return posterior


def fit_cleanlab(peer: Peer, settings: dict[str, Any], X: Any, y: Any, unseen: Array, seed: int) -> Any:
    """Fit cleanlab's learner around a peer, as its documentation advises.

    Parameters
    ----------
    peer, settings : Peer and dict
        The peer and its settings, see `search`.
    X, y : table and labels
        All rows; labels are whole numbers.
    unseen : array
        Out-of-fold posteriors, see `predict_unseen`.
    seed : int
        Of what is drawn at random.

    Returns
    -------
    cleanlab.classification.CleanLearning
    """
    from cleanlab.classification import CleanLearning

    learner = CleanLearning(Contiguous(peer, settings, seed), seed=seed, find_label_issues_kwargs={"n_jobs": 1})
    return learner.fit(X, y, pred_probs=fill_zeros(unseen))


def fill_zeros(posterior: Array) -> Array:
    """Return posteriors without zeros that sum to 1, as cleanlab asks for them."""
    filled = np.maximum(posterior, 1e-12)
    return np.asarray(filled / filled.sum(axis=1, keepdims=True))


# ---- who they are ----


def _fit_xgboost_peer(X: Any, y: Any, held_out: HeldOut | None, seed: int, **settings: Any) -> Any:
    return fit_xgboost(X, y, held_out, random_state=seed, **DEFAULTS | settings)


def _fit_lightgbm_peer(X: Any, y: Any, held_out: HeldOut | None, seed: int, **settings: Any) -> Any:
    return fit_lightgbm(X, y, held_out, random_state=seed, **DEFAULTS | settings)


def _fit_catboost_peer(X: Any, y: Any, held_out: HeldOut | None, seed: int, **settings: Any) -> Any:
    return fit_catboost(X, y, held_out, random_seed=seed, **{"learning_rate": LEARNING_RATE} | settings)


def _fit_forest(kind: type[Any], X: Any, y: Any, held_out: HeldOut | None, seed: int, **settings: Any) -> Any:
    assert held_out is None, "its trees stop by themselves"
    return fit_on_numbers(kind(TREES, n_jobs=1, random_state=seed, **settings), X, y)


#: Peers with the candidates that a careful user would try.
PEERS = {
    "xgboost": Peer(
        _fit_xgboost_peer,
        ({"max_depth": 3}, {"max_depth": 6}),
        XGBOOST,
        "n_estimators",
        lambda model: int(model.best_iteration) + 1,
    ),
    "lightgbm": Peer(
        _fit_lightgbm_peer,
        ({"max_depth": 3, "num_leaves": 8}, {"max_depth": 6, "num_leaves": 31}),
        ("lightgbm",),
        "n_estimators",
        lambda model: int(model.best_iteration_),
    ),
    "catboost": Peer(
        _fit_catboost_peer,
        ({"depth": 4}, {"depth": 6}),
        ("catboost",),
        "iterations",
        lambda model: int(getattr(model, "model", model).tree_count_),
    ),
    **{
        name: Peer(
            partial(_fit_forest, kind),
            tuple({"min_samples_leaf": leaf} for leaf in (1, 2, 5, 10)),
            ("scikit-learn",),
        )
        for name, kind in [("extra-trees", ExtraTreesClassifier), ("random-forest", RandomForestClassifier)]
    },
}
