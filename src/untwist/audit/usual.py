"""What is usual in each column among the rows of a label, and which values are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.audit.reasons import describe_value
from untwist.data.encoding import TableEncoder

__all__ = ["UsualValues", "find_usual_values"]

#: A value is unusual for a label if at most this share of the rows of that label have one as rare.
UNUSUAL_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class UsualValues:
    """What is usual in a column among the rows of each label.

    Parameters
    ----------
    texts : dict of int to str
        For each label that was asked for what is usual, in words: a range of numbers, or the commonest category.
    is_unusual : array of bool
        Whether the value of each row that was asked for is unusual for its label.
    """

    texts: dict[int, str]
    is_unusual: NDArray[np.bool_]


def find_usual_values(
    encoder: TableEncoder, table: Array, labels: NDArray[np.intp], rows: NDArray[np.intp], columns: Sequence[int]
) -> list[UsualValues]:
    """Find what is usual for the labels of some rows, and which of their values are not.

    Of numbers those are unusual that lie outside the middle 95 % of the rows of a label, of categories the rarest, as
    many as make up 5 % together, and a missing value where at most 5 % are missing.

    Parameters
    ----------
    encoder : TableEncoder
        It knows which columns hold categories.
    table : array
        All rows as numbers, with categories as indices.
    labels : array of int
        The index of each row's label.
    rows : array of int
        The positions of the rows that are judged.
    columns : sequence of int
        The columns to look at.

    Returns
    -------
    list of UsualValues
        One for each of the columns.
    """
    rows_of_label = {label: np.flatnonzero(labels == label) for label in np.unique(labels[rows]).tolist()}
    found = []
    for column in columns:
        values = table[:, column]
        texts = {}
        is_unusual = np.zeros(len(rows), dtype=np.bool_)
        for label, bearing in rows_of_label.items():
            asked = labels[rows] == label
            texts[label], is_unusual[asked] = _judge(encoder, column, values[bearing], values[rows[asked]])
        found.append(UsualValues(texts, is_unusual))
    return found


def _judge(encoder: TableEncoder, column: int, values: Array, judged: Array) -> tuple[str, NDArray[np.bool_]]:
    """Say what is usual among values, and which of the judged ones are not."""
    known = values[~np.isnan(values)]
    is_missing = np.isnan(judged)
    missing_is_unusual = len(values) - len(known) <= UNUSUAL_SHARE * len(values)
    if not len(known):
        return "missing", ~is_missing
    if column in encoder.schema.categories:
        times = np.bincount(known.astype(np.intp), minlength=len(encoder.schema.categories[column]))
        rarest_first = np.argsort(times, kind="stable")
        is_rare = np.zeros(len(times), dtype=np.bool_)
        is_rare[rarest_first] = np.cumsum(times[rarest_first]) <= UNUSUAL_SHARE * len(known)
        commonest = int(times.argmax())
        text = f"{describe_value(encoder.decode(column, commonest))} ({times[commonest] / len(values):.0%})"
        return text, np.where(is_missing, missing_is_unusual, is_rare[np.where(is_missing, 0, judged).astype(np.intp)])
    # Both ends are values that occur: between two dates there would be a time of day that nobody wrote.
    low = np.quantile(known, UNUSUAL_SHARE / 2, method="lower")
    high = np.quantile(known, 1 - UNUSUAL_SHARE / 2, method="higher")
    ends = [describe_value(encoder.decode(column, float(end))) for end in (low, high)]
    text = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
    with np.errstate(invalid="ignore"):
        return text, np.where(is_missing, missing_is_unusual, (judged < low) | (judged > high))
