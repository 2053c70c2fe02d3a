"""Clones of any classifier as a model of labels: their mean posterior, calibrated, and the noise that they show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.utils.validation import _check_feature_names, _check_n_features

from untwist.arguments import Array
from untwist.crossing import ClonesByFold
from untwist.data.batches import Batches
from untwist.data.encoding import TableEncoder
from untwist.data.tables import allow_taking_rows
from untwist.label_model import LabelModel
from untwist.noise.calibration import Calibration

__all__ = ["ClonesModel", "PassedRows", "settle_rows"]


def settle_rows(X: Any) -> Any:
    """Return rows of which some can be taken: as they are, or an array where they are one in all but that."""
    if X is None or isinstance(X, Batches):
        what = "None" if X is None else "Batches: read them into a data frame"
        raise ValueError(f"X must be rows in memory with an estimator of your own, got {what}")
    X = allow_taking_rows(X)
    return X if isinstance(X, (list, tuple)) or hasattr(X, "__getitem__") else np.asarray(X)


@dataclass(frozen=True, eq=False)
class PassedRows:
    """The rows of a classifier of one's own, which gets them as they are.

    Parameters
    ----------
    by_index : TableEncoder or None
        How the training table became numbers, by which it is known again; None for what is no table.
    """

    by_index: TableEncoder | None

    def encode(self, X: Any, estimator: Any) -> Any:
        """Return rows as they are, if they have the columns of the training table."""
        X = settle_rows(X)
        if self.by_index is None:
            return X
        n_dimensions = X.ndim if hasattr(X, "ndim") else np.ndim(X)
        if n_dimensions != 2:
            raise ValueError(
                f"Expected 2D array, got {n_dimensions}D array instead. Reshape your data: X.reshape(1, -1) if it is "
                "one row, X.reshape(-1, 1) if it is one column"
            )
        columns = self.by_index.stand_in_for(estimator)
        _check_feature_names(columns, X, reset=False)
        _check_n_features(columns, X, reset=False)
        return X

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        if self.by_index is None:
            raise AttributeError("the rows that were fitted to are no table")
        return self.by_index.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns."""
        if self.by_index is None:
            raise AttributeError("the rows that were fitted to are no table")
        return self.by_index.feature_names_in_


@dataclass(frozen=True, eq=False, kw_only=True)
class ClonesModel(LabelModel):
    """What a fit of a classifier of one's own leaves behind: a clone for each fold.

    Parameters
    ----------
    clones : ClonesByFold
        The clones, which predict.
    calibration : Calibration
        What takes their posteriors to what the labels say of them.
    encoder : PassedRows
        The columns of the training table.
    """

    clones: ClonesByFold
    calibration: Calibration
    encoder: PassedRows

    def __repr__(self) -> str:
        noise = "noise not estimated" if self.noise is None else self.unreliable_words or self.noise
        return f"ClonesModel({self.clones!r}, {self.n_rows} rows, {len(self.classes)} classes; {noise})"

    def scores(self, rows: Any, n_jobs: int | None = None, rounds: None = None) -> Array:
        """Return the log-odds of the posterior that labels follow; beyond two classes the logarithm of each."""
        del rounds  # Clones have none.
        posterior = self.calibration.apply(self.clones.posterior(rows, n_jobs))
        of_classes = np.log(np.where(self.class_weights > 0, self.class_weights, 1.0))
        if len(self.classes) == 2:
            return np.asarray(logit(posterior[:, 1]) + (of_classes[1] - of_classes[0]))
        return np.asarray(np.log(posterior) + of_classes)

    def describe_twins(self) -> str:
        """Say which rows nearly repeat rows of other folds; empty where few do."""
        twins = None if self.out_of_fold is None else self.out_of_fold.context.twins
        return "" if twins is None else twins.describe()

    def importances(self, kind: str = "paper") -> NoReturn:
        """Raise a ValueError: importances are those of the classifier, if it has any."""
        del kind
        raise ValueError(
            "importances are for the trees of untwist: those of an estimator of your own are in "
            "model_.clones.clones[fold].model"
        )
