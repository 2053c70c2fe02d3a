"""Rows whose labels a person has looked at: which rows, what their labels said before, and what is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from untwist.data.decisions import Decisions, match_labels
from untwist.data.fingerprints import fingerprint_features
from untwist.data.labels import refuse_missing
from untwist.data.tables import bring_to_host


@dataclass(frozen=True, eq=False)
class ReviewedRows:
    """Which training rows are reviewed, with labels as indices of classes; all arrays have one entry per row.

    Parameters
    ----------
    is_reviewed : array of bool
        Whether the label of each row is known to be right.
    given : array of uint32
        The labels before the review.
    labels : array of uint32
        The labels after it.
    knows_given : bool
        Whether `given` are the labels before the review indeed; otherwise these are not known of reviewed rows, and
        `given` is the same as `labels`.
    n_skipped : int, default 0
        How many rows a person looked at and could not decide on: they are as if nobody had looked.
    """

    is_reviewed: NDArray[np.bool_]
    given: NDArray[np.uint32]
    labels: NDArray[np.uint32]
    knows_given: bool
    n_skipped: int = 0

    def restore(self, labels: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the labels before the review.

        Parameters
        ----------
        labels : array of uint32
            Labels of the rows, those of reviewed rows as they were before or after the review.

        Returns
        -------
        array of uint32
            A ValueError where a reviewed row has neither label.
        """
        neither = self.is_reviewed & (labels != self.given) & (labels != self.labels)
        if neither.any():
            row = int(np.flatnonzero(neither)[0])
            raise ValueError(f"y must have the label that was given or decided on, but row {row} has another one")
        return np.where(self.is_reviewed, self.given, labels)


@dataclass(frozen=True, eq=False)
class Review:
    """What `fit` was told of reviewed rows, with labels as they are.

    Parameters
    ----------
    is_reviewed : array of bool
        Whether the label of each row is known to be right.
    given, labels : arrays
        The labels of all rows before and after the review.
    knows_given, n_skipped
        As in `ReviewedRows`.
    """

    is_reviewed: NDArray[np.bool_]
    given: NDArray[Any]
    labels: NDArray[Any]
    knows_given: bool
    n_skipped: int = 0

    def encode(self, classes: NDArray[Any]) -> ReviewedRows:
        """Return the same with labels as indices of classes.

        Parameters
        ----------
        classes : array
            The labels that there were before the review, in order.

        Returns
        -------
        ReviewedRows
            A ValueError where a label that was decided on is none of them.
        """
        new = self.is_reviewed & ~np.isin(self.labels, classes)
        if new.any():
            row = int(np.flatnonzero(new)[0])
            raise ValueError(
                f"row {row} is relabelled {str(self.labels[row])!r:.40}, which is the label of no row of y: a class "
                "needs rows to be learned from"
            )
        given, labels = (np.searchsorted(classes, one).astype(np.uint32) for one in (self.given, self.labels))
        return ReviewedRows(self.is_reviewed, given, labels, self.knows_given, self.n_skipped)


def read_review(reviewed: Any, X: Any, y: Any) -> Review:
    """Read which rows are reviewed.

    Parameters
    ----------
    reviewed : Decisions or array-like
        What was decided about rows of the table, or a Boolean for each row, or the positions of rows: the labels of
        those in `y` are right.
    X : table
        The rows. Decisions must be about a table with these very features.
    y : array-like
        The labels; of a row that was decided on, the one that was given or the one decided on.

    Returns
    -------
    Review
        A ValueError where rows or labels are not those of the decisions.

    Examples
    --------
    >>> read_review([0, 2], np.zeros((3, 1)), ["no", "yes", "no"]).is_reviewed
    array([ True, False,  True])
    """
    refuse_missing(y)
    labels = column_or_1d(bring_to_host(y))
    if not isinstance(reviewed, Decisions):
        return Review(_read_mask(reviewed, len(labels)), labels, labels, knows_given=False)
    decisions = reviewed
    if len(decisions) and decisions.fingerprint.split("-")[0] != fingerprint_features(X):
        raise ValueError(
            "reviewed must be decisions about the rows of X: these were made for other features, or for rows in "
            "another order, or for the cells of a CSV file as text (dtype=str, keep_default_na=False)"
        )
    is_reviewed = np.zeros(len(labels), dtype=np.bool_)
    positions = decisions.rows[decisions.reviewed]
    if positions.size and positions.max() >= len(labels):
        raise ValueError(
            f"reviewed has a decision about row {positions.max()}, but there are {len(labels)} rows, from 0"
        )
    is_reviewed[positions] = True
    classes = np.unique(labels).tolist()
    before, after = (
        _put(labels, positions, match_labels(each[decisions.reviewed].tolist(), classes))
        for each in (decisions.given, decisions.labels)
    )
    neither = is_reviewed & (labels != before) & (labels != after)
    if neither.any():
        row = int(np.flatnonzero(neither)[0])
        raise ValueError(
            f"row {row} of y is {str(labels[row])!r:.40}, but it was {str(before[row])!r:.40} when it was reviewed, "
            f"and {str(after[row])!r:.40} was decided on"
        )
    n_skipped = int(np.count_nonzero(~decisions.reviewed))
    return Review(is_reviewed, before, after, knows_given=True, n_skipped=n_skipped)


def _read_mask(reviewed: Any, n_rows: int) -> NDArray[np.bool_]:
    """Return whether each row is reviewed, from Booleans or positions."""
    chosen = np.asarray(bring_to_host(reviewed))
    if chosen.dtype == np.bool_ and chosen.shape == (n_rows,):
        return chosen
    is_positions = chosen.ndim == 1 and (chosen.dtype.kind in "iu" or chosen.size == 0) and chosen.dtype != np.bool_
    if not is_positions or (chosen.size and not 0 <= chosen.min() <= chosen.max() < n_rows):
        raise ValueError(
            f"reviewed must be Decisions, a Boolean for each of the {n_rows} rows, or positions of rows from 0 to "
            f"{n_rows - 1}, got {reviewed!r:.80}"
        )
    mask = np.zeros(n_rows, dtype=np.bool_)
    mask[chosen.astype(np.intp)] = True
    return mask


def _put(labels: NDArray[Any], positions: NDArray[np.intp], values: list[Any]) -> NDArray[Any]:
    """Return a copy of labels with other values at some positions; longer text makes room for itself."""
    if not values:
        return labels
    is_text = labels.dtype.kind == "U"
    changed = labels.astype(np.result_type(labels.dtype, np.array(values).dtype) if is_text else labels.dtype)
    try:
        changed[positions] = np.array(values, dtype=changed.dtype)
    except ValueError as error:
        raise ValueError(f"reviewed has a label that is not of the kind of y: {error}") from error
    return changed
