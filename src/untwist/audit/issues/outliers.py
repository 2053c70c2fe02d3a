"""Rows unlike all others: a value far beyond all others of its column, or a row far from all others.

How far out the last rows of a sample lie is read off the rows before them: beyond the tenth that lies farthest out, the
number of rows falls as a power of the distance (Hill's rule; where it falls faster, as it mostly does, what is said is
too cautious). Of the rows that are named, no more than a stated share is expected to lie so far out by chance.
"""

from __future__ import annotations

import numpy as np

from untwist.arguments import Array
from untwist.audit.discoveries import FALSE_DISCOVERY_RATE, select_discoveries
from untwist.audit.issues.issue import MOST_EXAMPLES, DataIssue, Example
from untwist.audit.issues.rows import ComparedRows

__all__ = ["expect_beyond", "find_outliers"]

#: Fewer values tell nothing of how far out the last ones lie.
LEAST_ROWS = 100

#: The shares of the rows, farthest out, that tell how fast rows become fewer.
TAILS = (0.1, 0.05, 0.025)

#: A value is far beyond all others if it is at least so many times as far from the median as the next of those.
LEAST_GAP = 1.5

#: The distance to this neighbour tells how far a row is from all others.
NEIGHBOUR = 5

#: Up to this many rows are all compared with each other.
MOST_COMPARED = 5_000

#: Each of more rows is compared with the nearest of so many that are drawn.
N_DRAWN = 500


def expect_beyond(distances: Array) -> Array:
    """Expect how many rows lie as far out as each of these does, by how the distances of the others fall off.

    Parameters
    ----------
    distances : array
        How far out each row lies; not negative.

    Returns
    -------
    array
        A number for each row; the number of all rows where nothing can be said.
    """
    n_rows = len(distances)
    nothing = np.full(n_rows, float(n_rows))
    if n_rows < LEAST_ROWS:
        return nothing
    counts = [max(2, round(share * n_rows)) for share in TAILS]
    start, *others = np.partition(distances, [n_rows - count for count in counts])[[n_rows - count for count in counts]]
    if not start > 0.0:
        return nothing
    fall = max(
        float(np.log(other / start)) / np.log(counts[0] / count)
        for other, count in zip(others, counts[1:], strict=True)
    )
    if fall <= 0.0:
        return nothing
    with np.errstate(over="ignore"):
        beyond = counts[0] * np.maximum(distances / start, 1.0) ** (-1.0 / fall)
    return np.where(distances > start, beyond, nothing)


def find_outliers(table: ComparedRows) -> list[DataIssue]:
    """Find rows with a value far beyond all others, or far from all others by all columns together.

    Parameters
    ----------
    table : ComparedRows
        The rows.

    Returns
    -------
    list of DataIssue
        At most one.
    """
    n_rows = len(table)
    if n_rows < LEAST_ROWS or not table.columns:
        return []
    numeric = [column for column in table.columns if not table.is_category(column)]
    n_tests = 2 * len(numeric) + 1
    least, where = np.full(n_rows, float(n_rows)), np.full(n_rows, -1)
    for column in numeric:
        for side in (1.0, -1.0):
            expected = _expect_in_column(side * table.numbers[:, column])
            fewer = expected < least
            least[fewer], where[fewer] = expected[fewer], column
    apart = _measure_apartness(table)
    expected = expect_beyond(apart)
    fewer = expected < least
    least[fewer], where[fewer] = expected[fewer], -1
    rows = np.flatnonzero(select_discoveries(least * n_tests / n_rows, FALSE_DISCOVERY_RATE))
    if not len(rows):
        return []
    order = rows[np.argsort(least[rows], kind="stable")]
    examples = tuple(
        Example(
            (row,),
            "far from all other rows, by all columns together" if where[row] < 0 else table.describe(row, where[row]),
        )
        for row in order[:MOST_EXAMPLES].tolist()
    )
    columns = tuple(table.encoder.feature_labels[column] for column in np.unique(where[rows]).tolist() if column >= 0)
    n_together = int((where[rows] < 0).sum())
    kinds = []
    if len(rows) > n_together:
        kinds.append(f"{len(rows) - n_together:,} with a value far beyond all others")
    if n_together:
        kinds.append(f"{n_together:,} far from all others by all columns together")
    reason = " and ".join(kinds)
    reason += f"; of the rows named, {FALSE_DISCOVERY_RATE:.0%} at most are expected to be so far out by chance"
    return [DataIssue("outliers", rows, columns, len(rows) / n_rows, reason, examples)]


def _expect_in_column(values: Array) -> Array:
    """Expect how many rows have values as high, where these are beyond a gap, by those above the median."""
    known = np.flatnonzero(~np.isnan(values) & (np.abs(values) < np.inf))
    expected = np.full(len(values), float(len(values)))
    if len(known) < LEAST_ROWS:
        return expected
    middle = np.median(values[known])
    above = known[values[known] > middle]
    if len(above) < LEAST_ROWS:
        return expected
    distances = values[above] - middle
    rising = np.sort(distances)[-max(2, len(above) // 20) :]
    gaps = np.flatnonzero(rising[1:] >= LEAST_GAP * rising[:-1])
    if len(gaps):
        beyond = distances > rising[gaps[0]]
        expected[above[beyond]] = expect_beyond(distances)[beyond]
    return expected


def _measure_apartness(table: ComparedRows) -> Array:
    """Measure how far each row is from others, by all columns: the distance to one of its nearest rows."""
    few = len(table) <= MOST_COMPARED
    drawn = table.draw(MOST_COMPARED if few else N_DRAWN)
    nearest, _ = table.find_nearest(np.arange(len(table)), drawn, NEIGHBOUR if few else 1)
    return np.sqrt(nearest[:, -1])
