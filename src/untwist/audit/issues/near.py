"""Rows that nearly repeat others: much closer to each other than to the rows around them.

Around a row, the number of others within a distance r grows as r to the power of the dimension that the rows fill. The
distances to a few neighbours thus tell how many rows are to be expected within the distance of the nearest one. Where
that number is so small that, among all rows looked at, hardly one is so by chance, the two are nearly equal rows. They
are not where the columns one by one explain as much: the share of rows that are as close to a row in a column,
multiplied over all columns, is what rows of independent columns would be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.audit.discoveries import select_discoveries
from untwist.audit.issues.issue import MOST_EXAMPLES, DataIssue, Example
from untwist.audit.issues.rows import ComparedRows
from untwist.data.folds import mix_bits

__all__ = ["expect_by_columns", "find_candidates", "find_near_duplicates", "measure_dimension"]

#: Neighbours that the rows around a row are known by.
N_NEIGHBOURS = 6

#: Up to this many rows are all compared with each other.
MOST_COMPARED = 6_000

#: Of more rows, those around a row are known by so many that are drawn.
N_DRAWN = 2_000

#: Of more rows, candidates are sought so many times, each time among rows that agree in half of the columns.
N_TIMES = 4

#: Numbers agree there if they fall into the same of as many steps, over about three standard deviations.
N_STEPS = 4

#: Candidates are this close in the order of rows that agree.
WINDOW = 2

#: Bits that say where in the order of a random direction a row is.
PLACE_BITS = 20

#: Of more candidates, the closest are judged.
MOST_JUDGED = 20_000

#: The share of the pairs that are expected to be named by chance, at most.
FALSE_DISCOVERY_RATE = 0.01

#: Near duplicates are closer to each other than this share of the distance to the rows around them.
LARGEST_RATIO = 0.18

#: A row counts no more than this in the estimate of the dimension, which is this at most.
LARGEST_LOGARITHM = 5.0
MOST_DIMENSIONS = 1000.0

#: Fewer different rows tell nothing of what is usual.
LEAST_ROWS = 50


def find_near_duplicates(
    table: ComparedRows, group: NDArray[np.intp], labels: NDArray[np.intp] | None
) -> list[DataIssue]:
    """Find rows that are nearly equal, but not equal, to another.

    Parameters
    ----------
    table : ComparedRows
        The rows.
    group : array of int
        The number of each row's content: of equal rows the first is looked at.
    labels : array of int or None
        The index of each row's label.

    Returns
    -------
    list of DataIssue
    """
    _, different = np.unique(group, return_index=True)
    different = different[np.argsort(table.hashes[different])]  # The order of the rows makes no difference.
    if len(different) < LEAST_ROWS or not table.columns:
        return []
    drawn = table.draw(MOST_COMPARED if len(different) <= MOST_COMPARED else N_DRAWN, different)
    among, nearest = table.find_nearest(drawn, drawn, N_NEIGHBOURS)
    dimension = measure_dimension(among)
    if len(drawn) == len(different):
        first, second, distance, around = drawn, nearest[:, 0], among[:, 0], among[:, -1]
    else:
        first, second, distance = find_candidates(table, different)
        usual = np.median(among[:, -1])
        close = np.flatnonzero(distance < LARGEST_RATIO**2 * usual)
        close = close[np.argsort(distance[close], kind="stable")[:MOST_JUDGED]]
        first, second, distance = first[close], second[close], distance[close]
        around = table.find_nearest(first, drawn, N_NEIGHBOURS)[0][:, -1]
    # So many rows are expected within the distance of the nearest one.
    ratio = np.sqrt(distance / np.maximum(around, np.finfo(float).tiny))
    expected = N_NEIGHBOURS * len(different) / len(drawn) * ratio**dimension
    close = np.flatnonzero(ratio <= LARGEST_RATIO)
    first, second, ratio, expected = first[close], second[close], ratio[close], expected[close]
    expected = np.maximum(expected, expect_by_columns(table, first, second))
    p_values = np.ones(len(different))
    p_values[: len(first)] = -np.expm1(-expected)
    named = select_discoveries(p_values, FALSE_DISCOVERY_RATE)[: len(first)]
    if not named.any():
        return []
    first, second, ratio = first[named], second[named], ratio[named]
    rows = np.unique(np.concatenate([first, second]))
    order = np.lexsort((np.maximum(first, second), np.minimum(first, second), ratio))
    low, high = np.minimum(first, second)[order].tolist(), np.maximum(first, second)[order].tolist()
    pairs = dict.fromkeys(zip(low, high, strict=True))
    examples = tuple(Example(pair, _describe_pair(table, *pair, labels)) for pair in list(pairs)[:MOST_EXAMPLES])
    closer = f"{1.0 / max(float(np.median(ratio)), 1e-3):,.0f} times closer to each other than to the rows around them"
    reason = (
        f"{len(rows):,} rows are nearly equal to others: {closer}, which hardly one row of such a table is by chance"
    )
    if labels is not None and (n_differ := int((labels[first] != labels[second]).sum())):
        reason += f"; of {len(first):,} such rows {n_differ:,} have another label than their twin"
    return [DataIssue("near_duplicates", rows, (), len(rows) / len(table), reason, examples)]


def measure_dimension(squares: Array) -> float:
    """Measure the dimension that rows fill, from their squared distances to neighbours, in order.

    The estimate is Levina and Bickel's, averaged over the rows as MacKay and Ghahramani advise. The nearest neighbours,
    among which copies may be, have no part in it.

    Parameters
    ----------
    squares : array of shape (n_rows, n_neighbours)
        Squared distances, rising along each row.

    Returns
    -------
    float
        At least 1.
    """
    ranks = np.arange(2, squares.shape[1])
    inner = np.maximum(squares[:, 1:-1], np.finfo(float).tiny)
    logs = 0.5 * np.log(np.maximum(squares[:, -1:], np.finfo(float).tiny) / inner)
    # In one dimension the logarithm of the last distance over that of neighbour j is the sum of 1 / i from j on.
    in_one = float(np.sum((ranks - 1.0) / ranks)) / len(ranks)
    mean = float(np.mean(np.minimum(logs.mean(axis=1), LARGEST_LOGARITHM)))
    return max(1.0, in_one / max(mean, 1.0 / MOST_DIMENSIONS))


def expect_by_columns(table: ComparedRows, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
    """Expect how many rows are as close to a row as another is, in every column, if columns were independent.

    Parameters
    ----------
    table : ComparedRows
        All rows.
    first, second : arrays of int
        Pairs of rows.

    Returns
    -------
    array
        A number for each pair.
    """
    drawn = table.draw(N_DRAWN)
    expected = np.full(len(first), float(len(table)))
    for column in table.columns:
        values = table.numbers[:, column]
        here, there = values[first], values[second]
        among = values[drawn]
        n_missing = int(np.isnan(among).sum())
        rising = np.sort(among[~np.isnan(among)])
        with np.errstate(over="ignore"):
            near = np.abs(here - there)
        if table.is_category(column):
            near = np.where(near == 0.0, 0.0, np.inf)
        with np.errstate(over="ignore"):  # Huge numbers are as far away as infinite ones.
            low, high = here - near, here + near
        times = np.searchsorted(rising, high, "right") - np.searchsorted(rising, low, "left")
        times = np.where(np.isnan(here) & np.isnan(there), n_missing, np.where(np.isnan(near), len(drawn), times))
        expected *= np.clip(times, 1, len(drawn)) / len(drawn)
    return expected


def find_candidates(table: ComparedRows, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Find for many rows another that is close to it, without comparing all pairs.

    Some times over, rows are gathered that agree in half of the columns, and are put in the order of a random
    direction; those next to each other are compared in all columns.

    Parameters
    ----------
    table : ComparedRows
        All rows.
    rows : array of int
        Those to look at.

    Returns
    -------
    first, second : arrays of int
        Pairs; each row is the first of one at most.
    array
        Their squared distances.
    """
    places, _ = table.places
    rng = np.random.default_rng(0)
    best = np.full(len(rows), np.inf)
    twin = np.full(len(rows), -1, dtype=np.intp)
    for _ in range(N_TIMES):
        key = np.zeros(len(table), dtype=np.uint64)
        for column in np.flatnonzero(rng.random(places.shape[1]) < 0.5).tolist():
            step = np.floor(N_STEPS * (places[:, column] + np.float32(rng.random()))).astype(np.int64)
            key += step.astype(np.uint64) * (rng.integers(2**63, dtype=np.uint64) | np.uint64(1))
        direction = places @ np.asarray(rng.normal(size=places.shape[1]), dtype=np.float32)
        agreeing = (mix_bits(key) << np.uint64(PLACE_BITS))[rows]
        within = _scale(direction[rows], PLACE_BITS)
        order = np.argsort(agreeing | within, kind="stable")
        for step_apart in range(1, WINDOW + 1):
            here, there = order[:-step_apart], order[step_apart:]
            agree = agreeing[here] == agreeing[there]
            here, there = here[agree], there[agree]
            squares = table.measure(rows[here], rows[there])
            for one, other in ((here, there), (there, here)):
                closer = squares < best[one]
                best[one[closer]] = squares[closer]
                twin[one[closer]] = rows[other[closer]]
    found = np.flatnonzero(twin >= 0)
    return rows[found], twin[found], best[found]


def _scale(values: NDArray[np.float32], n_bits: int) -> NDArray[np.uint64]:
    """Return numbers as whole ones of so many bits, in the same order."""
    spread = float(np.ptp(values))
    return np.asarray((values - values.min()) * ((2**n_bits - 1) / spread if spread > 0 else 0.0), dtype=np.uint64)


def _describe_pair(table: ComparedRows, first: int, second: int, labels: NDArray[np.intp] | None) -> str:
    """Say in how many columns two rows differ."""
    a, b = table.numbers[first, table.columns], table.numbers[second, table.columns]
    n_differ = int(((a != b) & ~(np.isnan(a) & np.isnan(b))).sum())
    words = f"differ in {n_differ} of {len(table.columns)} columns, a little"
    return words if labels is None or labels[first] == labels[second] else f"{words}, and in their labels"
