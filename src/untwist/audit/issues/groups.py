"""Classes that are too small to learn, and groups of rows in which the model fails."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from untwist.arguments import Array
from untwist.audit.discoveries import FALSE_DISCOVERY_RATE, select_discoveries
from untwist.audit.issues.issue import MOST_EXAMPLES, DataIssue, Example
from untwist.audit.issues.rows import ComparedRows
from untwist.audit.slices import split_column

__all__ = ["find_failing_groups", "find_small_classes"]

#: A class with fewer rows is too small: each of five folds has fewer than two of it.
LEAST_CLASS_ROWS = 10

#: Groups with fewer rows tell little of the model.
LEAST_GROUP_ROWS = 50

#: Rows that are looked at, at most.
MOST_ROWS = 100_000

#: The model is of use where it undoes at least this share of the errors of always saying the most frequent class.
USEFUL = 0.3

#: It fails where it undoes no more than this share of them.
FAILING = 0.1

#: It misses this many times as many labels there as elsewhere, at least.
TIMES_WORSE = 1.5


def find_small_classes(labels: NDArray[np.intp], classes: NDArray[Any]) -> list[DataIssue]:
    """Find classes with fewer rows than can be learned from.

    Parameters
    ----------
    labels : array of int
        The index of each row's label.
    classes : array
        The labels that there are.

    Returns
    -------
    list of DataIssue
        At most one.
    """
    times = np.bincount(labels, minlength=len(classes))
    small = np.flatnonzero(times < LEAST_CLASS_ROWS)
    if not len(small):
        return []
    rows = np.flatnonzero(np.isin(labels, small))
    told = ", ".join(f"{classes[index]} ({times[index]})" for index in small[:MOST_EXAMPLES].tolist())
    more = f" and {len(small) - MOST_EXAMPLES} more" if len(small) > MOST_EXAMPLES else ""
    reason = f"{told}{more}: with fewer than {LEAST_CLASS_ROWS} rows no part of them can judge what the rest taught"
    examples = tuple(
        Example(tuple(np.flatnonzero(labels == index).tolist()), f"labelled {classes[index]}")
        for index in small[:MOST_EXAMPLES].tolist()
    )
    return [DataIssue("small_class", rows, (), len(rows) / len(labels), reason, examples)]


def find_failing_groups(
    table: ComparedRows, labels: NDArray[np.intp], posterior: Array, weight: Array
) -> list[DataIssue]:
    """Find parts of columns in which the model is of no use, though elsewhere it is.

    Parameters
    ----------
    table : ComparedRows
        The rows.
    labels : array of int
        The index of each row's label.
    posterior : array of shape (n_rows, n_classes)
        What models that have not seen a row say of its class.
    weight : array
        The sample weights; rows of weight 0 are not looked at.

    Returns
    -------
    list of DataIssue
        One for each part, the clearest first.
    """
    rows = table.draw(MOST_ROWS, np.flatnonzero(weight > 0))
    missed = np.argmax(posterior[rows], axis=1) != labels[rows]
    given = labels[rows]
    n_rows, n_missed = len(rows), int(missed.sum())
    times = np.bincount(given, minlength=posterior.shape[1])
    found = []
    for column in table.columns:
        for where, inside in split_column(table.encoder, column, table.numbers[rows, column]):
            n_here = int(inside.sum())
            if not LEAST_GROUP_ROWS <= n_here <= n_rows - LEAST_GROUP_ROWS:
                continue
            times_here = np.bincount(given[inside], minlength=len(times))
            missed_here = int(missed[inside].sum())
            elsewhere = (n_missed - missed_here) / (n_rows - n_here)
            # How likely as many are missed where the model is as good as elsewhere.
            p_value = 1.0 - float(bdtr(missed_here - 1, n_here, elsewhere)) if missed_here else 1.0
            others = times - times_here
            skill_here = 1.0 - missed_here / max(1, n_here - times_here.max())
            skill = 1.0 - (n_missed - missed_here) / max(1, n_rows - n_here - others.max())
            fails = skill_here <= FAILING and skill >= USEFUL and missed_here >= TIMES_WORSE * elsewhere * n_here
            found.append((p_value, fails, column, where, inside, missed_here / n_here, elsewhere))
    p_values = np.array([one[0] for one in found])
    issues = []
    for index in np.argsort(p_values, kind="stable")[: int(select_discoveries(p_values, FALSE_DISCOVERY_RATE).sum())]:
        _, fails, column, where, inside, share, elsewhere = found[index]
        if fails:
            reason = (
                f"where {table.name(column)} is {where}, the model misses {share:.0%} of {int(inside.sum()):,} labels"
            )
            reason += f", no better than always saying the most frequent one; elsewhere it misses {elsewhere:.0%}"
            name = table.encoder.feature_labels[column]
            issues.append(DataIssue("failing_group", rows[inside], (name,), share, reason))
    return issues
