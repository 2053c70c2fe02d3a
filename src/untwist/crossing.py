"""Clones of any classifier, each fitted to all rows but those that it is to judge."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from untwist.arguments import Array
from untwist.data.targets import know_rows
from untwist.out_of_fold import OutOfFold, RowContext
from untwist.progress import ProgressLine, describe_progress

__all__ = [
    "MOST_MISSED",
    "ClonesByFold",
    "FittedClone",
    "check_estimator",
    "cross_fit_clones",
    "find_held_out_shares",
    "takes_sample_weight",
]

#: A row of which a fold sets aside all but this share is set aside as a whole: the rest is rounding.
ROUNDING = 1e-9

#: The probabilities of a row may miss 1 by so much in all: float32, or numbers that were rounded for a file.
MOST_MISSED = 0.01


@dataclass(frozen=True, eq=False)
class FittedClone:
    """A classifier that was fitted to some of the rows, which may lack some of the classes.

    Parameters
    ----------
    model : classifier or None
        The fitted clone; None where a single class was left, of which it is sure.
    known : array of int
        The class that each column of its `predict_proba` speaks of.
    n_classes : int
        How many classes there are.
    """

    model: Any
    known: NDArray[np.intp]
    n_classes: int

    def posterior(self, X: Any, positions: NDArray[np.intp] | None = None) -> Array:
        """Return the posterior of every class, 0 for one that the clone does not know.

        Parameters
        ----------
        X : table
            The rows, as the classifier takes them.
        positions : array of int or None
            Where these rows are in their table, by which errors name them; None for the table itself.

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        posterior = np.zeros((n_rows, self.n_classes))
        if self.model is None:
            posterior[:, self.known] = 1.0
            return posterior
        found = np.asarray(self.model.predict_proba(X), dtype=np.float64)
        if found.ndim != 2 or found.shape[1] != len(self.known):
            raise ValueError(
                f"predict_proba of {name_estimator(self.model)} must have a column for each of the {len(self.known)} "
                f"classes that it was fitted to, got shape {found.shape}"
            )
        self._check_probabilities(found, np.arange(n_rows) if positions is None else positions)
        posterior[:, self.known] = found
        return posterior

    def _check_probabilities(self, found: Array, positions: NDArray[np.intp]) -> None:
        """Raise a ValueError where what the classifier says are no probabilities, with the row and the value."""
        of_whom = f"predict_proba of {name_estimator(self.model)}"
        outside = ~((found >= -MOST_MISSED) & (found <= 1.0 + MOST_MISSED))  # Also where a number is missing.
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise ValueError(f"{of_whom} must be from 0 to 1, got {found[row, column]:.4g} in row {positions[row]}")
        total = found.sum(axis=1)
        missed = np.flatnonzero(np.abs(total - 1.0) > MOST_MISSED)
        if len(missed):
            raise ValueError(
                f"{of_whom} must sum to 1 in each row, got {total[missed[0]]:.4g} in row {positions[missed[0]]}"
            )


@dataclass(frozen=True, eq=False)
class ClonesByFold:
    """Clones of a classifier, one for each fold, and what they say of rows that they have not seen.

    Parameters
    ----------
    estimator : classifier or pipeline
        What was cloned.
    out_of_fold : OutOfFold
        What each clone says of the rows that its fold set aside.
    trained : array of shape (n_folds, n_rows)
        The share of each row that each clone was fitted to.
    clones : tuple of FittedClone
        The clone of each fold.
    whole : FittedClone or None
        A clone that was fitted to all rows, where folds of one's own do not train on all that they do not judge.
    X : table or None
        The rows; None once they were dropped.
    n_jobs : int or None
        How many clones are fitted at a time.
    """

    estimator: Any
    out_of_fold: OutOfFold
    trained: Array
    clones: tuple[FittedClone, ...]
    whole: FittedClone | None
    X: Any
    n_jobs: int | None = None

    def __repr__(self) -> str:
        return f"ClonesByFold({len(self.clones)} of {self.estimator!r:.60})"

    def posterior(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the mean posterior of the clones; that of the clone of all rows where there is one.

        Parameters
        ----------
        X : table
            Rows, as the classifier takes them.
        n_jobs : int or None
            How many clones predict at a time, in threads.

        Returns
        -------
        array of shape (n_rows, n_classes)
        """
        clones = self.clones if self.whole is None else (self.whole,)
        if isinstance(self.estimator, FrozenEstimator):
            clones = clones[:1]  # All are the same.
        found = Parallel(n_jobs, prefer="threads")(delayed(one.posterior)(X) for one in clones)
        return np.asarray(sum(found) / len(clones))

    def refit(self, labels: NDArray[np.intp], weight: Array) -> ClonesByFold:
        """Fit clones anew in the same folds, with other labels and weights.

        Parameters
        ----------
        labels : array of int
            The index of each row's label.
        weight : array
            The weight of each row. Where the classifier takes none, rows keep those that they had, with a UserWarning.

        Returns
        -------
        ClonesByFold
            These clones themselves where nothing is left to fit anew.
        """
        if self.X is None:
            raise ValueError("the rows were dropped, so that nothing can be fitted to them again: fit anew")
        before = self.out_of_fold
        if isinstance(self.estimator, FrozenEstimator):
            return self  # It is not fitted, whatever the labels are.
        if not takes_sample_weight(self.estimator) and not np.array_equal(weight, before.weight):
            warnings.warn(
                f"{name_estimator(self.estimator)} takes no sample_weight: labels that a review changed are learned, "
                "but all count alike, whatever they are worth",
                UserWarning,
                stacklevel=2,
            )
            weight = np.where(weight > 0, before.weight, 0.0)
        if np.array_equal(labels, before.labels) and np.array_equal(weight, before.weight):
            return self
        unseen = replace(before, labels=np.asarray(labels, dtype=np.intp), weight=weight)
        return _fit_clones(self.estimator, self.X, unseen, self.trained, self.n_jobs)

    def drop_rows(self) -> ClonesByFold:
        """Return the same without the rows, to be kept: it predicts, and can no longer be refitted."""
        return replace(self, X=None)


def cross_fit_clones(
    estimator: Any,
    X: Any,
    labels: NDArray[np.intp],
    classes: NDArray[Any],
    folds: Array,
    weight: Array,
    *,
    context: RowContext | None = None,
    n_jobs: int | None = None,
) -> ClonesByFold:
    """Fit clones of a classifier, each to all rows but those that its fold sets aside, which it judges.

    Parameters
    ----------
    estimator : classifier or pipeline
        It stays as it is: clones are fitted, with the settings that it has. One within `FrozenEstimator` is fitted
        already, to other rows, and judges all of these.
    X : table
        The rows, as the classifier takes them.
    labels : array of int
        The index of each row's label. That is what clones are fitted to, as some boosters take nothing else, unless
        some setting of the estimator, such as `class_weight`, speaks of the classes by name.
    classes : array
        The classes, sorted.
    folds : array of shape (n_folds, n_rows)
        The weight of each row that each fold sets aside.
    weight : array
        The weight of each row; clones are told unless all are 1. A row of weight 0 is fitted to by none.
    context : RowContext or None
        What else is known of the rows. Its `own_folds` say what each fold trains on and judges, where that was told;
        otherwise it trains on all that it does not set aside. Groups and items must be kept together by the folds.
    n_jobs : int or None
        How many clones are fitted at a time, each in a process.

    Returns
    -------
    ClonesByFold
        Its posterior is 0 for a class that no row of a fold was left to learn from. A row without weight is judged by
        all clones. NaN for a row that no fold of one's own judges.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, labels = np.arange(8.0)[:, None], np.arange(8) // 4
    >>> folds = np.eye(2)[:, np.arange(8) % 2]
    >>> fit = cross_fit_clones(LogisticRegression(), X, labels, np.array(["no", "yes"]), folds, np.ones(8))
    >>> fit.out_of_fold.posterior.argmax(axis=1)
    array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> fit.posterior([[-1.0], [9.0]]).argmax(axis=1)
    array([0, 1])
    """
    check_estimator(estimator)
    context = context or RowContext()
    own_folds = context.own_folds
    if own_folds is None:
        shares = find_held_out_shares(folds, weight)
        trained = 1.0 - shares
        # A row without weight was seen by nobody, so that every fold may judge it.
        shares = np.where(weight > 0, shares, 1.0 / len(shares))
    else:
        shares, trained = own_folds.held_out.astype(np.float64), own_folds.trained.astype(np.float64)
    no_posterior = np.full((len(labels), len(classes)), np.nan)
    unseen = OutOfFold(classes, no_posterior, np.asarray(labels, dtype=np.intp), weight, shares, context)
    return _fit_clones(estimator, X, unseen, trained, n_jobs)


def find_held_out_shares(folds: Array, weight: Array) -> Array:
    """Return, for every fold, the share of each row's weight that it sets aside.

    Parameters
    ----------
    folds : array of shape (n_folds, n_rows)
        The weight of each row that each fold sets aside.
    weight : array
        The weight of each row.

    Returns
    -------
    array of shape (n_folds, n_rows)
        0 in all folds for a row without weight.
    """
    shares = folds / np.where(weight > 0, weight, 1.0)
    return np.where(shares > 1.0 - ROUNDING, 1.0, shares)


def check_estimator(estimator: Any, name: str = "estimator", instead: str = "") -> None:
    """Raise a ValueError where clones of an estimator cannot judge labels.

    Parameters
    ----------
    estimator : object
        What should be a classifier with `fit` and `predict_proba`.
    name : str
        What errors call it.
    instead : str
        What else may be given where it has no probabilities.
    """
    if isinstance(estimator, type):
        raise ValueError(f"{name} must be a classifier, got a class: give {estimator.__name__}()")
    if not hasattr(estimator, "fit"):
        raise ValueError(f"{name} must be a classifier of scikit-learn's kind, with fit, got {estimator!r:.100}")
    # What has no tags is asked for none: scikit-learn would warn of it.
    if hasattr(estimator, "__sklearn_tags__") and is_regressor(estimator):
        raise ValueError(f"{name} must be a classifier, got a regressor, {estimator!r:.100}")
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{name} must have predict_proba, got {estimator!r:.100}: wrap it in CalibratedClassifierCV, say{instead}"
        )


def name_estimator(estimator: Any) -> str:
    """Return the class of an estimator; of a pipeline that of its last step."""
    return type(_find_last_step(estimator)[1]).__name__


def takes_sample_weight(estimator: Any) -> bool:
    """Tell whether the `fit` of an estimator, or of the last step of a pipeline, takes weights of rows."""
    return bool(has_fit_parameter(_find_last_step(estimator)[1], "sample_weight"))


def _find_last_step(estimator: Any) -> tuple[str, Any]:
    """Return the name and the last step of a pipeline, also of one within another; else no name and the estimator."""
    if not isinstance(estimator, Pipeline):
        return "", estimator
    name, step = estimator.steps[-1]
    within, last = _find_last_step(step)
    return f"{name}__{within}", last


def _fit_clones(estimator: Any, X: Any, unseen: OutOfFold, trained: Array, n_jobs: int | None) -> ClonesByFold:
    """Fit a clone for each fold, and one to all rows where folds of one's own leave out some; judge rows set aside."""
    own_folds = unseen.context.own_folds
    weights = [np.where(unseen.weight > 0, unseen.weight * share, 0.0) for share in trained]
    judged = [np.flatnonzero(share) for share in unseen.held_out]
    if own_folds is not None and not own_folds.is_complete:
        weights.append(unseen.weight)
        judged.append(np.zeros(0, dtype=np.intp))
    by_name = _speaks_of_classes(estimator, unseen.classes)
    jobs = (
        delayed(_fit_and_judge)(estimator, X, unseen.labels, unseen.classes, weight, rows, by_name)
        for weight, rows in zip(weights, judged, strict=True)
    )
    posterior = np.zeros((len(unseen.labels), len(unseen.classes)))
    clones: list[FittedClone] = []
    with ProgressLine() as line:
        for fitted, posterior_here in Parallel(n_jobs, return_as="generator")(jobs):
            if len(clones) < len(unseen.held_out):
                rows = judged[len(clones)]
                posterior[rows] += unseen.held_out[len(clones)][rows, None] * posterior_here
            clones.append(fitted)
            line.show(describe_progress(len(clones), len(weights), line.seconds, "folds of the classifier"))
    posterior[~unseen.judged] = np.nan
    return ClonesByFold(
        estimator=estimator,
        out_of_fold=replace(unseen, posterior=posterior),
        trained=trained,
        clones=tuple(clones[: len(trained)]),
        whole=clones[-1] if len(clones) > len(trained) else None,
        X=X,
        n_jobs=n_jobs,
    )


def _fit_and_judge(
    estimator: Any,
    X: Any,
    labels: NDArray[np.intp],
    classes: NDArray[Any],
    weight: Array,
    judged: NDArray[np.intp],
    by_name: bool,
) -> tuple[FittedClone, Array]:
    """Return a clone that was fitted to the rows with a weight, and what it says of others."""
    trained = np.flatnonzero(weight)
    known, numbers = np.unique(labels[trained], return_inverse=True)
    model = None
    if isinstance(estimator, FrozenEstimator):
        model, known = estimator, _find_classes_of_frozen(estimator, classes)
    elif len(known) > 1:
        with know_rows():
            targets = classes[labels[trained]] if by_name else numbers
            model = _fit(estimator, _safe_indexing(X, trained), targets, weight[trained])
    fitted = FittedClone(model, known, len(classes))
    if not len(judged):
        return fitted, np.zeros((0, len(classes)))
    return fitted, fitted.posterior(_safe_indexing(X, judged), judged)


def _find_classes_of_frozen(estimator: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the class that each column of a classifier which is fitted already speaks of."""
    positions = {name: position for position, name in enumerate(classes.tolist())}
    if not hasattr(estimator, "classes_"):
        raise ValueError(f"a frozen classifier must be fitted, got {estimator!r:.100}: fit it first")
    names = np.asarray(estimator.classes_).tolist()
    if set(names) != positions.keys():
        raise ValueError(
            f"a frozen classifier must have been fitted to the classes of y, {classes.tolist()[:8]!r}, got one of "
            f"{names[:8]!r}: fit it to rows of all these classes, and of no others"
        )
    return np.array([positions[name] for name in names], dtype=np.intp)


def _speaks_of_classes(estimator: Any, classes: NDArray[Any]) -> bool:
    """Tell whether a setting of the estimator, such as class_weight, has the classes as keys."""
    names = set(classes.tolist())
    settings = estimator.get_params(deep=True).values()
    return any(isinstance(one, dict) and bool(one) and set(one) <= names for one in settings)


def _fit(estimator: Any, X: Any, targets: NDArray[Any], weight: Array) -> Any:
    """Return a clone that was fitted, with the weights of rows unless they are all 1."""
    fresh = _copy(estimator)
    if (weight == 1).all():
        return fresh.fit(X, targets)
    if not takes_sample_weight(fresh):
        raise ValueError(f"sample_weight must be None with a classifier that takes none, got {estimator!r:.100}")
    # Where metadata are routed, a pipeline passes weights on to the steps that ask for them.
    step = "" if get_config()["enable_metadata_routing"] else _find_last_step(fresh)[0]
    return fresh.fit(X, targets, **{f"{step}sample_weight": weight})


def _copy(estimator: Any) -> Any:
    """Return an estimator with the same settings, to be fitted anew."""
    try:
        return clone(estimator)
    except RuntimeError:  # CatBoost changes a list of columns that it is given, which scikit-learn does not allow.
        return copy.deepcopy(estimator)
