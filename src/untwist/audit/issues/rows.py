"""The rows of a table as they are compared, with words for what is seen there."""

from __future__ import annotations

from dataclasses import dataclass

from untwist.audit.issues.issue import name_column
from untwist.audit.reasons import describe_value
from untwist.data import closeness

__all__ = ["ComparedRows"]


@dataclass(frozen=True, eq=False)
class ComparedRows(closeness.ComparedRows):
    """Rows of numbers and categories, made comparable, whose columns and cells have names."""

    def name(self, column: int) -> str:
        """Return what a column is called."""
        return name_column(self.encoder.feature_labels[column])

    def describe(self, row: int, column: int) -> str:
        """Return a cell in words, with the name of its column."""
        return f"{self.name(column)} is {describe_value(self.encoder.decode(column, self.numbers[row, column]))}"
