"""Rows that repeat others exactly, and whether that is more than chance: in coarse tables everything repeats.

What chance gives is told by the rows that differ from a row in a single column. Of those that agree with it in all
others, some would have its value in that one too, by chance as many as have it among all rows: each column gives such
an estimate, and the largest counts. So that a row without such neighbours is not taken for a wonder, it has at least as
many as rows have on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from untwist.arguments import Array
from untwist.audit.discoveries import FALSE_DISCOVERY_RATE, select_discoveries
from untwist.audit.issues.issue import MOST_EXAMPLES, DataIssue, Example
from untwist.audit.issues.rows import ComparedRows

__all__ = ["Copies", "find_copies", "find_duplicates"]

#: What chance gives is counted among this many rows that are drawn, at most.
MOST_COUNTED = 100_000


@dataclass(frozen=True, eq=False)
class Copies:
    """Which rows are equal.

    Parameters
    ----------
    group : array of int
        The number of each row's content.
    repeated : array of int
        The contents that occur more than once.
    expected : array
        For each of these, how many further rows of that content chance would give.
    """

    group: NDArray[np.intp]
    repeated: NDArray[np.intp]
    expected: Array

    @property
    def beyond_chance(self) -> NDArray[np.intp]:
        """The contents that occur more often than chance allows."""
        times = np.bincount(self.group)
        p_values = np.ones(len(times))
        more = times[self.repeated] - 1.0
        p_values[self.repeated] = np.where(self.expected > 0.0, gammainc(more, np.maximum(self.expected, 1e-300)), 0.0)
        return np.flatnonzero(select_discoveries(p_values, FALSE_DISCOVERY_RATE))


def find_copies(table: ComparedRows) -> Copies:
    """Find which rows are equal in all columns, and how many of them chance would give.

    Parameters
    ----------
    table : ComparedRows
        The rows.

    Returns
    -------
    Copies
    """
    _, first, group, times = np.unique(table.hashes, return_index=True, return_inverse=True, return_counts=True)
    repeated = np.flatnonzero(times > 1)
    rows = first[repeated]
    expected, odds_against = np.zeros(len(rows)), np.zeros(len(rows))
    drawn = table.draw(MOST_COUNTED)
    rising = np.sort(table.hashes[drawn])
    copies, pairs = _count(rising, table.hashes[rows]), _count_pairs(rising)
    n_alike = 0
    for column in table.columns if len(rows) else ():
        cells = table.hash_column(column)
        others = table.hashes - cells
        among = np.sort(others[drawn])
        share = np.clip(_count(np.sort(cells[drawn]), cells[rows]), 1, len(drawn) - 1) / len(drawn)
        differing = _count(among, others[rows]) - copies
        expected = np.maximum(expected, differing * share / (1.0 - share))
        odds_against += (1.0 - share) / share
        n_alike += _count_pairs(among) - pairs
    # Both rows of a pair that differs in one column have the other as a neighbour.
    usual = 2.0 * n_alike / len(drawn)
    expected = np.maximum(expected, usual / np.maximum(odds_against, 1e-300))
    return Copies(group, repeated, expected * len(table) / len(drawn))


def _count(rising: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Count how often each of some numbers occurs among others, which are in order."""
    return np.searchsorted(rising, wanted, "right") - np.searchsorted(rising, wanted, "left")


def _count_pairs(rising: NDArray[np.uint64]) -> int:
    """Count the pairs of equal numbers, which are in order."""
    times = np.diff(np.flatnonzero(np.concatenate([[True], rising[1:] != rising[:-1], [True]])))
    return int((times * (times - 1) // 2).sum())


def find_duplicates(
    table: ComparedRows, labels: NDArray[np.intp] | None, classes: NDArray[Any], copies: Copies
) -> list[DataIssue]:
    """Find rows that are equal in all columns, and those among them whose labels differ.

    Parameters
    ----------
    table : ComparedRows
        The rows.
    labels : array of int or None
        The index of each row's label.
    classes : array
        The labels that there are.
    copies : Copies
        What `find_copies` found.

    Returns
    -------
    list of DataIssue
        None where chance may well give as many equal rows.
    """
    named = copies.beyond_chance
    if not len(named):
        return []
    n_rows = len(table)
    rows = np.flatnonzero(np.isin(copies.group, named))
    reason = f"{len(rows):,} rows are equal in all columns to others ({len(named):,} different ones)"
    if n_more := len(copies.repeated) - len(named):
        reason += f"; {n_more:,} more may be equal by chance"
    issues = [
        DataIssue("exact_duplicates", rows, (), len(rows) / n_rows, reason, _list_groups(copies.group, rows)),
    ]
    if labels is None:
        return issues
    low = np.full(copies.group.max() + 1, len(classes))
    high = np.full(len(low), -1)
    np.minimum.at(low, copies.group, labels)
    np.maximum.at(high, copies.group, labels)
    conflicting = rows[(low < high)[copies.group[rows]]]
    if len(conflicting):
        examples = tuple(
            Example(one.rows, "labelled " + ", ".join(str(classes[labels[row]]) for row in one.rows[:MOST_EXAMPLES]))
            for one in _list_groups(copies.group, conflicting)
        )
        reason = (
            f"{len(conflicting):,} rows are equal in all columns to a row with another label: one of the two is wrong"
        )
        reason += ", or the columns do not tell the classes apart"
        share = len(conflicting) / n_rows
        issues.append(DataIssue("conflicting_duplicates", conflicting, (), share, reason, examples))
    return issues


def _list_groups(group: NDArray[np.intp], rows: NDArray[np.intp]) -> tuple[Example, ...]:
    """List the largest groups of equal rows, the one with the first row first among equals."""
    numbers, first, times = np.unique(group[rows], return_index=True, return_counts=True)
    largest = np.lexsort((first, -times))[:MOST_EXAMPLES]
    return tuple(Example(tuple(rows[group[rows] == number].tolist())) for number in numbers[largest])
