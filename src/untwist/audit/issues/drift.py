"""What changes with the order of the rows, or with time.

The rows in order are cut into blocks. Were the order chance, the mean rank of a column, or the share of a category,
would differ between blocks no more than chance allows (Kruskal and Wallis' test, and that of Pearson). The label is
looked at first. A column must drift by itself, and beyond what its labels explain too: a table sorted by its label is
one finding and not one for each column, and where time and a column both act on the label, the two go together among
the rows of a label though neither changes with the other. Columns of dates are left out, as time passes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from untwist.arguments import Array
from untwist.audit.issues.issue import DataIssue
from untwist.audit.issues.rows import ComparedRows

__all__ = ["find_drift", "measure_drift"]

#: Blocks that rows in order are cut into.
N_BLOCKS = 10

#: Drift is named where less than one column in so many tables has as much by chance.
TABLES_PER_FALSE_ALARM = 1000.0

#: Drift is named where the order explains at least this share of a column: large tables show the smallest changes.
LEAST_EXPLAINED = 0.02

#: Fewer rows are not looked at.
LEAST_ROWS = 200

#: Rows that are looked at, at most.
MOST_ROWS = 50_000

#: A variable whose squares sum to less is constant within each class.
LEAST_VARIATION = 1e-9

#: Categories of a column that are looked at, at most: the most frequent.
MOST_CATEGORIES = 20


def measure_drift(indicators: Array, block: NDArray[np.intp], labels: NDArray[np.intp] | None) -> tuple[float, float]:
    """Measure how much of some variables their block explains, beyond what labels explain.

    Parameters
    ----------
    indicators : array of shape (n_rows, n_variables)
        Ranks, or whether a column has a category.
    block : array of int
        The block of each row.
    labels : array of int or None
        The index of each row's label.

    Returns
    -------
    explained : float
        The share of the variation that the blocks explain.
    p_value : float
        How likely chance explains as much.
    """
    values = indicators - indicators.mean(axis=0)
    if labels is not None:
        values = values - _average(values, labels)[labels]
    total = (values**2).sum(axis=0)
    left = total > LEAST_VARIATION
    if not left.any():
        return 0.0, 1.0
    values, total = values[:, left], total[left]
    between = (np.bincount(block)[:, None] * _average(values, block) ** 2).sum(axis=0)
    explained = float(between.sum() / total.sum())
    n_blocks = len(np.unique(block))
    parts = (len(values) - 1) * between / total
    n_free = len(parts)
    if n_free > 1:
        # These are categories: Pearson's statistic weighs each by the share of the others, and one follows from them.
        parts = parts * (1.0 - indicators.mean(axis=0)[left])
        n_free -= bool((indicators.sum(axis=1) == 1.0).all())
    return explained, float(gammaincc((n_blocks - 1) * n_free / 2.0, parts.sum() / 2.0))


def _average(values: Array, group: NDArray[np.intp]) -> Array:
    """Average over each group."""
    times = np.maximum(np.bincount(group), 1)
    sums = [np.bincount(group, weights=column, minlength=len(times)) for column in values.T]
    return np.stack(sums, axis=1) / times[:, None]


def find_drift(
    table: ComparedRows, labels: NDArray[np.intp] | None, order: Array, order_name: str, without: int | None = None
) -> list[DataIssue]:
    """Find whether labels and columns change with an order of the rows.

    Parameters
    ----------
    table : ComparedRows
        The rows.
    labels : array of int or None
        The index of each row's label.
    order : array
        A number for each row: its place, or its time; rows without one, NaN, are not looked at.
    order_name : str
        What the order is called.
    without : int or None
        A column that is the order itself.

    Returns
    -------
    list of DataIssue
        At most two: one for the label, one for all columns.
    """
    known = np.flatnonzero(~np.isnan(order))
    rows = table.draw(MOST_ROWS, known)
    if len(rows) < LEAST_ROWS:
        return []
    edges = np.unique(np.quantile(order[rows], np.arange(1, N_BLOCKS) / N_BLOCKS))
    block = np.unique(np.searchsorted(edges, order[rows], "left"), return_inverse=True)[1]
    if block.max() == 0:
        return []
    dates = table.encoder.schema.dates
    columns = [column for column in table.columns if column != without and column not in dates]
    limit = 1.0 / (TABLES_PER_FALSE_ALARM * (len(columns) + 1))
    issues = []
    if labels is not None:
        explained, p_value = measure_drift(_indicate(labels[rows].astype(np.float64), True), block, None)
        if p_value < limit and explained >= LEAST_EXPLAINED:
            reason = f"the shares of the classes change with {order_name}, which explains {explained:.0%} of the label"
            reason += ": rows set aside in that order do not stand for the others"
            issues.append(DataIssue("drift", np.zeros(0, dtype=np.intp), (), explained, reason))
    drifting = []
    given = None if labels is None else labels[rows]
    for column in columns:
        indicators = _indicate(table.numbers[rows, column], table.is_category(column))
        measured = [measure_drift(indicators, block, None)]
        if given is not None:
            measured.append(measure_drift(indicators, block, given))
        explained = min(share for share, _ in measured)
        if max(p_value for _, p_value in measured) < limit and explained >= LEAST_EXPLAINED:
            drifting.append((explained, column))
    if drifting:
        drifting.sort(key=lambda one: (-one[0], one[1]))
        names = tuple(table.encoder.feature_labels[column] for _, column in drifting)
        told = ", ".join(f"{table.name(column)} ({explained:.0%})" for explained, column in drifting[:4])
        more = f" and {len(drifting) - 4} more" if len(drifting) > 4 else ""
        beyond = "" if labels is None else ", beyond what the labels explain"
        verb = "changes" if len(drifting) == 1 else "change"
        reason = f"{told}{more} {verb} with {order_name}, which explains that share{beyond}"
        issues.append(DataIssue("drift", np.zeros(0, dtype=np.intp), names, drifting[0][0], reason))
    return issues


def _indicate(values: Array, is_category: bool) -> Array:
    """Return the ranks of numbers, or whether a column has each of its most frequent categories."""
    missing = np.isnan(values)
    if not is_category:
        rising = np.sort(values[~missing])
        ranks = (np.searchsorted(rising, values, "left") + np.searchsorted(rising, values, "right")) / 2.0
        return np.where(missing, len(rising) / 2.0, ranks)[:, None]
    codes = np.where(missing, -1, values).astype(np.intp) + 1
    frequent = np.argsort(-np.bincount(codes), kind="stable")[:MOST_CATEGORIES]
    return np.asarray(codes[:, None] == frequent, dtype=np.float64)
