"""Where wrong labels concentrate: parts of the data whose noise is clearly above that of all rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, ndtri

from untwist.arguments import Array
from untwist.audit.reasons import describe_value
from untwist.data.encoding import TableEncoder
from untwist.noise import estimate_noise
from untwist.noise.estimate import CONFIDENCE
from untwist.noise.matrix import MatrixUntwisting, untwist_by_matrix
from untwist.noise.transitions import estimate_transitions

__all__ = ["JudgedRows", "Slice", "find_slices", "find_slices_of_classes", "split_column"]

#: Fewer rows tell little of their noise.
LEAST_ROWS = 100

#: With this many different values or fewer, each value of a column of numbers is a part.
MOST_VALUES = 4

#: How likely it is that any part at all counts as noisy by chance alone.
FALSE_ALARM = 0.05

#: An interval that is right with probability `CONFIDENCE` is this many standard deviations wide.
INTERVAL_WIDTH = 2.0 * float(ndtri((1.0 + CONFIDENCE) / 2.0))

#: The noise of a part is estimated where its rows disagree by so many standard deviations more than all rows do.
DEVIATIONS_WORTH_A_LOOK = 2.0


@dataclass(frozen=True)
class Slice:
    """A part of the data in which more labels are wrong than elsewhere.

    Parameters
    ----------
    column : object
        The name of a column, or its number.
    where : str
        What it is there.
    rows : int
        The number of rows.
    share_wrong : float
        How many of their labels are wrong.
    """

    column: Any
    where: str
    rows: int
    share_wrong: float

    def __str__(self) -> str:
        return f"{self.share_wrong:.1%} of the {self.rows} rows where {self.column} is {self.where}"


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """The rows with what is known of their labels.

    Parameters
    ----------
    table : array
        The rows as numbers.
    posterior : array
        The twisted posterior, out of fold: of two classes that of the second, of several a column for each.
    labels : array of int
        The index of each row's label.
    disagrees : array of bool
        Whether the other rows speak for another label.
    weight : array
        The sample weights.
    """

    table: Array
    posterior: Array
    labels: NDArray[np.intp]
    disagrees: NDArray[np.bool_]
    weight: Array


@dataclass(frozen=True, eq=False)
class _Part:
    """Some rows, by what a column is there."""

    column: int
    where: str
    rows: NDArray[np.intp]


def _list_parts(judged: JudgedRows, encoder: TableEncoder, columns: Iterable[int]) -> list[_Part]:
    """Return all parts of all columns, without the rows of weight 0."""
    return [
        _Part(column, where, np.flatnonzero(in_part & (judged.weight > 0)))
        for column in columns
        for where, in_part in split_column(encoder, column, judged.table[:, column])
    ]


def find_slices(
    judged: JudgedRows,
    encoder: TableEncoder,
    columns: Iterable[int],
    noise_rate: tuple[float, float, float],
    noise_found: bool,
) -> list[Slice]:
    """Return the parts whose noise, estimated by itself, is clearly above that of all rows; the largest excess first.

    Parameters
    ----------
    judged : JudgedRows
        All rows.
    encoder : TableEncoder
        What the columns are.
    columns : iterable of int
        The columns to look at.
    noise_rate : tuple of float
        The share of wrong labels among all rows, with its 95 % interval.
    noise_found : bool
        Whether there is evidence of noise among all rows.

    Returns
    -------
    list of Slice
    """
    parts = _list_parts(judged, encoder, columns)
    overall_rate, _, highest_overall = noise_rate
    overall_disagreement = judged.disagrees.mean()
    n_weighted = np.count_nonzero(judged.weight)
    # Of many parts some look noisy by chance, so that the limit is the higher the more parts there are.
    deviations = ndtri(1.0 - FALSE_ALARM / max(1, len(parts)))
    found = []
    for part in parts:
        rows = part.rows
        if not LEAST_ROWS <= len(rows) < n_weighted:
            continue
        if judged.disagrees[rows].mean() <= overall_disagreement:
            continue
        weight = judged.weight[rows]
        noise = estimate_noise(judged.posterior[rows], judged.labels[rows], sample_weight=weight)
        rate, low, high = noise.share_wrong(logit(judged.posterior[rows]), judged.labels[rows], weight)
        deviation = (high - low) / INTERVAL_WIDTH
        is_noisier = low > highest_overall and rate - deviations * deviation > overall_rate
        if is_noisier and (noise_found or noise.found):
            excess = weight.sum() * (rate - overall_rate)
            found.append((excess, Slice(encoder.feature_labels[part.column], part.where, len(rows), rate)))
    return [one for _, one in sorted(found, key=lambda pair: -pair[0])]


def find_slices_of_classes(
    judged: JudgedRows, encoder: TableEncoder, columns: Iterable[int], noise: MatrixUntwisting
) -> list[Slice]:
    """Return the parts whose noise, estimated by itself, is clearly above what their classes explain.

    The transition matrices of all rows say how many wrong labels there should be among rows of such classes. A part
    is named if its own noise is above that, and above that of all rows, by more than chance makes of so many parts.
    Where all rows show no noise, the evidence of a part must outweigh the number of parts as well.

    Parameters
    ----------
    judged : JudgedRows
        All rows, of several classes.
    encoder : TableEncoder
        What the columns are.
    columns : iterable of int
        The columns to look at.
    noise : MatrixUntwisting
        The transition matrices that fit all rows.

    Returns
    -------
    list of Slice
        The largest excess first.
    """
    parts = _list_parts(judged, encoder, columns)
    overall_rate, _, highest_overall = noise.share_wrong(judged.posterior, judged.labels, judged.weight)
    explained = _explain_by_classes(judged.posterior, noise)
    unexplained = judged.disagrees - explained
    n_weighted = np.count_nonzero(judged.weight)
    deviations = ndtri(1.0 - FALSE_ALARM / max(1, len(parts)))
    least_evidence = 0.0 if noise.found else np.log(max(1, len(parts)))
    found = []
    for part in parts:
        rows = part.rows
        if not LEAST_ROWS <= len(rows) < n_weighted or not _exceeds_whole(unexplained, judged.weight, rows):
            continue
        weight = judged.weight[rows]
        here = judged.posterior[rows], judged.labels[rows], weight
        own_noise = estimate_transitions(*here)
        rate, low, high = own_noise.share_wrong(*here)
        by_classes = float(np.average(explained[rows], weights=weight))
        n_rows = weight.sum() ** 2 / (weight**2).sum()
        deviation = np.hypot((high - low) / INTERVAL_WIDTH, np.sqrt(rate * (1.0 - rate) / n_rows))
        expected_rate = max(overall_rate, by_classes)
        is_noisier = low > max(highest_overall, by_classes) and rate - deviations * deviation > expected_rate
        if is_noisier and own_noise.found and own_noise.evidence >= least_evidence:
            excess = weight.sum() * (rate - expected_rate)
            found.append((excess, Slice(encoder.feature_labels[part.column], part.where, len(rows), rate)))
    return [one for _, one in sorted(found, key=lambda pair: -pair[0])]


def _exceeds_whole(values: Array, weight: Array, rows: NDArray[np.intp]) -> bool:
    """Tell whether the mean of some rows is so far above that of all that it is worth a look."""
    overall = np.average(values, weights=weight)
    variance = np.average((values - overall) ** 2, weights=weight)
    here = np.average(values[rows], weights=weight[rows])
    return bool(here - overall >= DEVIATIONS_WORTH_A_LOOK * np.sqrt(variance / len(rows)))


def _explain_by_classes(posterior: Array, noise: MatrixUntwisting) -> Array:
    """Return how likely a wrong label is in each row, by its clean posterior and the noise of the classes alone."""
    by_component = (
        weight * (untwist_by_matrix(posterior, matrix, slope, offset, noise.least) @ (1.0 - np.diag(matrix)))
        for weight, matrix, slope, offset in zip(
            noise.weights, noise.matrices, noise.slopes, noise.offsets, strict=True
        )
    )
    return np.asarray(sum(by_component))


def split_column(encoder: TableEncoder, column: int, values: Array) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the parts of a column: missing values, categories, or quarters of numbers.

    Parameters
    ----------
    encoder : TableEncoder
        What the columns are.
    column : int
        The position of the column.
    values : array
        Its numbers.

    Yields
    ------
    str
        What the column is there, in words.
    array of bool
        Whether each row is in the part.
    """
    missing = np.isnan(values)
    if missing.any():
        yield "missing", missing
    known = np.unique(values[~missing])
    if column in encoder.schema.categories or len(known) <= MOST_VALUES:
        for value in known:
            yield describe_value(encoder.decode(column, value)), values == value
        return
    edges = np.unique(np.quantile(values[~missing], (0.25, 0.5, 0.75)))
    part_of_row = np.where(missing, -1, np.searchsorted(edges, values))
    for part in range(len(edges) + 1):
        low = "" if part == 0 else f"above {edges[part - 1]:g}"
        high = "" if part == len(edges) else f"at most {edges[part]:g}"
        yield " and ".join(filter(None, (low, high))), part_of_row == part
