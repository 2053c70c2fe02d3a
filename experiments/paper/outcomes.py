"""What the rows of the reproduction say of a cell: its runs, their mean, its lead over another cell."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from experiments.paper.comparison import Summary, summarise
from experiments.paper.declarations import Cell
from experiments.paper.trials import TrialRow
from untwist.arguments import Array

__all__ = ["ABSENT", "ROUNDS", "Outcomes", "format_number", "format_summary"]

#: What stands where there is no number.
ABSENT = "—"
#: The paper's rounds of boosting.
ROUNDS = 1000


class Outcomes:
    """The rows of one setting, by cell; errors and other settings are left out."""

    def __init__(self, rows: Iterable[TrialRow], runs: int, rounds: int) -> None:
        self.runs = runs
        self.rounds = rounds
        self.by_key = {row.key: row for row in rows if not row.error}

    def list_rows(self, cell: Cell) -> list[TrialRow]:
        """List what there is of a cell, by seed."""
        keys = (trial.key for trial in cell.list_trials(self.runs, self.rounds))
        return [self.by_key[key] for key in keys if key in self.by_key]

    def list_values(self, cell: Cell, what: str = "accuracy") -> Array:
        """List one number per run."""
        return np.array([getattr(row, what) for row in self.list_rows(cell)], dtype=np.float64)

    def summarise(self, cell: Cell, what: str = "accuracy") -> Summary:
        """Sum up all runs."""
        return summarise(self.list_values(cell, what))

    def find_lead(self, ours: Cell, theirs: Cell) -> Summary:
        """Find the accuracy of one cell less that of another, over the seeds that both have."""
        return self.pool_leads([(ours, theirs)])

    def pool_leads(self, pairs: Iterable[tuple[Cell, Cell]]) -> Summary:
        """Average the lead over pairs of cells, run by run, over the seeds that all have."""
        by_pair = []
        for ours, theirs in pairs:
            one, other = ({row.seed: row.accuracy for row in self.list_rows(cell)} for cell in (ours, theirs))
            by_pair.append({seed: one[seed] - other[seed] for seed in one.keys() & other.keys()})
        seeds = sorted(set[int].intersection(*(set(each) for each in by_pair)))
        return summarise([np.mean([each[seed] for each in by_pair]) for seed in seeds])

    def average_importances(self, cell: Cell) -> Array:
        """Average the importance of each column over runs."""
        profiles = [[float(one) for one in row.importances.split()] for row in self.list_rows(cell)]
        return np.mean(profiles, axis=0) if profiles else np.zeros(0)


def format_number(value: float, digits: int = 3, sign: bool = False) -> str:
    """Write a number, or a dash where there is none."""
    return f"{value:{'+' if sign else ''}.{digits}f}" if np.isfinite(value) else ABSENT


def format_summary(one: Summary, digits: int = 3, sign: bool = False) -> str:
    """Write a mean and half of its interval."""
    if not one.runs:
        return ABSENT
    half = f" ± {one.half:.{digits}f}" if one.runs > 2 else ""  # The interval of two runs is absurdly wide.
    return format_number(one.mean, digits, sign) + half
