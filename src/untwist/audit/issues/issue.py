"""What a finding about the data is: its kind, its rows and columns, and why, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from untwist.text import name_column

__all__ = ["KINDS", "DataIssue", "Example", "name_column"]

#: All kinds of findings, in the order in which they are told, and what a page calls them.
KINDS = {
    "leak": "column that gives the label away",
    "conflicting_duplicates": "equal rows, different labels",
    "exact_duplicates": "equal rows",
    "failing_group": "group where the model fails",
    "small_class": "class too small to learn",
    "drift": "drift",
    "id_column": "column that names the rows",
    "constant_column": "column that says nothing",
}

#: Examples of a finding, at most.
MOST_EXAMPLES = 5


class Example(NamedTuple):
    """Rows that show a finding, and what is to be seen there.

    Parameters
    ----------
    rows : tuple of int
        Their positions.
    words : str
        What is to be seen; empty where the rows speak for themselves.
    """

    rows: tuple[int, ...]
    words: str = ""

    def describe(self, names: Sequence[Any] | None = None, row_name: str = "row") -> str:
        """Say which rows these are, by their names.

        Parameters
        ----------
        names : sequence or None
            What all rows are called; by default they are positions.
        row_name : str
            The word for one of them.

        Returns
        -------
        str
        """
        called = [str(row if names is None else names[row]) for row in self.rows[:MOST_EXAMPLES]]
        more = ", ..." if len(self.rows) > MOST_EXAMPLES else ""
        rows = f"{row_name}{'s' if len(self.rows) > 1 else ''} {', '.join(called)}{more}"
        return f"{rows}: {self.words}" if self.words else rows


@dataclass(frozen=True, eq=False)
class DataIssue:
    """Something about the data that deserves a look, with its rows and its reason.

    Parameters
    ----------
    kind : str
        One of "leak", "conflicting_duplicates", "exact_duplicates", "failing_group", "small_class", "drift",
        "id_column" and "constant_column".
    rows : array of int
        The positions of the rows that it is about; none where it is about whole columns.
    columns : tuple
        The names of the columns that it is about, or their numbers.
    severity : float
        From 0 to 1: the share of the rows that it is about; of a leak the share of the labels that the column tells, of
        drift the share of the column that the order explains, of a failing group the share of labels that the model
        misses there.
    reason : str
        What was found, and by which measure it is more than chance.
    examples : tuple of Example
        The clearest cases.
    """

    kind: str
    rows: NDArray[np.intp]
    columns: tuple[Any, ...]
    severity: float
    reason: str
    examples: tuple[Example, ...] = field(default=())

    def __str__(self) -> str:
        return self.describe()

    def describe(self, names: Sequence[Any] | None = None, row_name: str = "row") -> str:
        """Say in a line what was found, with the first examples.

        Parameters
        ----------
        names : sequence or None
            What the rows are called, say the lines of a file; by default they are positions.
        row_name : str
            The word for one of them.

        Returns
        -------
        str
        """
        shown = "; ".join(one.describe(names, row_name) for one in self.examples[:2])
        return f"{KINDS[self.kind]}: {self.reason}" + (f" (say {shown})" if shown else "")
