"""Why a label is doubted: columns that speak against it, and similar rows that bear another one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from untwist.arguments import Array
from untwist.data.encoding import TableEncoder
from untwist.display import format_probability
from untwist.model import FittedModel
from untwist.text import name_column

__all__ = ["Explanation", "Reason", "ReasonFinder", "describe_limit", "describe_value"]

#: Rows that are called similar to a row, at most.
N_SIMILAR = 20

#: Of these so many are named, at most.
N_NAMED = 5

#: Similar rows are looked for among this many rows, at most.
MOST_LOOKED_AT = 10_000

#: A column whose effect is smaller, in log-odds, is no reason.
LEAST_EFFECT = 0.005

#: This many rows are compared with others at a time.
ROWS_PER_BLOCK = 250

#: This many rows with one column changed are scored at a time, about.
CHANGED_PER_BLOCK = 20_000


@dataclass(frozen=True)
class Reason:
    """A column that speaks against a label.

    Parameters
    ----------
    column : object
        The name of the column, or its number.
    value, usual : object
        Its value in the row, and what is usual for the label; None where it is missing.
    effect : float
        By how many log-odds the row would look more like its label with the usual value.
    """

    column: Any
    value: Any
    usual: Any
    effect: float

    def __str__(self) -> str:
        value = describe_value(self.value)
        usual = describe_value(self.usual)
        return f"{name_column(self.column)} is {value}, usually {usual} ({self.effect:+.2f})"


@dataclass(frozen=True)
class Explanation:
    """Why a label is doubted.

    Parameters
    ----------
    row : int
        The position of the row.
    given, predicted : object
        Its label, and the one that the other rows speak for.
    wrong : float
        The probability that the label is wrong.
    reasons : tuple of Reason
        The strongest comes first.
    n_disagreeing, n_similar : int
        Of the `n_similar` most similar rows, all of other groups where groups were given, `n_disagreeing` bear another
        label; both 0 where none were looked for, or where there are no trees of ours to tell which rows are similar.
    n_predicted : int
        Of these, the rows that bear the label `predicted`.
    expected : float or None
        Where labels are outcomes of chance, how likely this one was; None where they may be wrong.
    similar : tuple of int
        The positions of the rows that are most similar, at most five.
    """

    row: int
    given: Any
    predicted: Any
    wrong: float
    reasons: tuple[Reason, ...]
    n_disagreeing: int
    n_similar: int
    n_predicted: int = 0
    expected: float | None = None
    similar: tuple[int, ...] = ()

    @property
    def is_judged(self) -> bool:
        """Whether some fold judged the label."""
        return not math.isnan(self.wrong)

    @property
    def likely(self) -> str:
        """How likely the label is wrong, in words; of an outcome of chance how likely it was."""
        if not self.is_judged:
            return "not judged"
        return format_probability(self.wrong if self.expected is None else self.expected)

    def __repr__(self) -> str:
        return f"Explanation({str(self).splitlines()[0]}; {len(self.reasons)} reasons)"

    def __str__(self) -> str:
        others = f"{self.n_disagreeing} of the {self.n_similar} most similar rows bear another label"
        if 0 < self.n_predicted < self.n_disagreeing:
            others += f", {self.n_predicted} of them {self.predicted}"
        told = f"labelled {self.given}, looks like {self.predicted}, {self.likely} likely wrong"
        if self.expected is not None:
            told = f"{self.given}, which was {self.likely} likely"
        if not self.is_judged:
            told = f"labelled {self.given}, {self.likely}"
        lines = [f"row {self.row}: {told}"]
        if self.n_similar:
            lines.append(f"  {others}")
        return "\n".join(lines + [f"  {reason}" for reason in self.reasons])


@dataclass(frozen=True, eq=False)
class ReasonFinder:
    """Looks for reasons in the rows that a model was fitted to.

    Parameters
    ----------
    fitted : FittedModel
        The model.
    table : array
        Its training rows as numbers, with categories as indices.
    labels : array of int
        The index of each row's label among the classes.
    n_jobs : int or None
        Threads.
    groups : array of int or None
        A number for each row's group. Rows of a group may share a wrong label, so that none of them is called similar
        to another one; None where every row is a group of its own.
    """

    fitted: FittedModel
    table: Array
    labels: NDArray[np.intp]
    n_jobs: int | None = None
    groups: NDArray[np.intp] | None = None

    def find_usual(self, label: int) -> Array:
        """Return the median, or most frequent category, of each column among the rows of a label.

        Parameters
        ----------
        label : int
            The index of the label.

        Returns
        -------
        array
            A number for each column, NaN where all values are missing.
        """
        bearing = np.flatnonzero(self.labels == label)
        usual = np.full(self.table.shape[1], np.nan)
        for column in range(self.table.shape[1]):
            values = self.table[bearing, column]
            known = values[~np.isnan(values)]
            if column in self.fitted.encoder.schema.categories and known.size:
                categories, times = np.unique(known, return_counts=True)
                usual[column] = categories[times.argmax()]
            elif known.size:
                # The mean of two dates may be no date of the column.
                is_date = column in self.fitted.encoder.schema.dates
                usual[column] = np.quantile(known, 0.5, method="lower") if is_date else np.median(known)
        return usual

    def find_reasons(
        self, rows: NDArray[np.intp], usual: Mapping[int, Array], predicted: NDArray[np.intp]
    ) -> Iterator[list[Reason]]:
        """Yield for each of the rows the columns that speak against its label, the strongest first.

        A column speaks against a label if the row would look more like it with the `usual` value of the column. Of
        several classes, more like it than like the one that is predicted.

        Parameters
        ----------
        rows : array of int
            The positions of the rows.
        usual : mapping of int to array
            What `find_usual` returns for each of their labels.
        predicted : array of int
            The index of the label that the other rows speak for, of each of `rows`.

        Yields
        ------
        list of Reason
        """
        n_together = max(1, CHANGED_PER_BLOCK // max(1, len(self._split_columns)))
        for start in range(0, len(rows), n_together):
            block = slice(start, start + n_together)
            yield from self._find_reasons_of_block(rows[block], usual, predicted[block])

    def _find_reasons_of_block(
        self, rows: NDArray[np.intp], usual: Mapping[int, Array], predicted: NDArray[np.intp]
    ) -> Iterator[list[Reason]]:
        here = self.table[rows]
        labels = self.labels[rows]
        usual_here = np.stack([usual[label] for label in labels.tolist()])
        effects = np.zeros(here.shape)
        is_split = np.zeros(here.shape[1], dtype=np.bool_)
        is_split[self._split_columns] = True
        is_other = (here != usual_here) & ~(np.isnan(here) & np.isnan(usual_here))
        row, column = np.nonzero(is_other & is_split)
        likeness = self._measure_likeness(here, labels, predicted)
        for start in range(0, len(row), CHANGED_PER_BLOCK):
            at, changed_column = row[start : start + CHANGED_PER_BLOCK], column[start : start + CHANGED_PER_BLOCK]
            changed = here[at]
            changed[np.arange(len(at)), changed_column] = usual_here[at, changed_column]
            effects[at, changed_column] = self._measure_likeness(changed, labels[at], predicted[at]) - likeness[at]
        encoder = self.fitted.encoder
        names = encoder.feature_labels
        for values, usual_values, effect in zip(here, usual_here, effects, strict=True):
            yield [
                Reason(
                    names[column],
                    encoder.decode(column, values[column]),
                    encoder.decode(column, usual_values[column]),
                    float(effect[column]),
                )
                for column in np.argsort(-effect, kind="stable").tolist()
                if effect[column] > LEAST_EFFECT
            ]

    def find_similar(self, rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Yield for each row those of other groups that share most leaves of the trees with it, most of all first.

        Parameters
        ----------
        rows : array of int
            The positions of the rows.

        Yields
        ------
        array of int
        """
        for start in range(0, len(rows), ROWS_PER_BLOCK):
            yield from self._find_similar_to_block(rows[start : start + ROWS_PER_BLOCK])

    def _find_similar_to_block(self, rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        others, rows_of_leaves = self._looked_at
        shared = (self._mark_leaves(rows) @ rows_of_leaves).toarray().astype(np.int64)
        groups = np.arange(len(self.labels)) if self.groups is None else self.groups
        shared[groups[rows][:, None] == groups[others]] = -1  # No row is similar to itself, or to one of its group.
        # Of rows that share as many leaves the first comes first, so that no two keys are the same.
        keys = shared * len(others) + np.arange(len(others))[::-1]
        n_similar = min(N_SIMILAR, len(others))
        closest = np.argpartition(-keys, n_similar - 1, axis=1)[:, :n_similar]
        order = np.argsort(-np.take_along_axis(keys, closest, axis=1), axis=1)
        for row_keys, found in zip(keys, np.take_along_axis(closest, order, axis=1), strict=True):
            yield others[found[row_keys[found] >= 0]]

    @cached_property
    def _looked_at(self) -> tuple[NDArray[np.intp], sparse.csr_array]:
        """The rows among which similar ones are looked for; for each leaf a line with a 1 for each that lies in it."""
        others = np.arange(len(self.labels))
        if len(others) > MOST_LOOKED_AT:
            others = np.sort(np.random.default_rng(0).choice(others, MOST_LOOKED_AT, replace=False))
        return others, self._mark_leaves(others).T.tocsr()

    def _mark_leaves(self, rows: NDArray[np.intp]) -> sparse.csr_array:
        """Return a line for each of the rows, with a 1 for each leaf that it lies in."""
        encoded = np.ascontiguousarray(self.fitted.encoder.schema.put_numbers(self.table[rows]))
        parts = []
        for forest in self.fitted.shared_forests:
            first_nodes = forest.offset[: len(forest)].astype(np.int32)
            parts.append(forest.leaves(encoded, self.n_jobs) + first_nodes)
        n_nodes = [len(forest.feature) for forest in self.fitted.shared_forests]
        shifts = np.cumsum([0, *n_nodes[:-1]])
        leaves = np.hstack([part + shift for part, shift in zip(parts, shifts, strict=True)])
        ends = np.arange(len(rows) + 1) * leaves.shape[1]
        ones = np.ones(leaves.size, dtype=np.int32)
        return sparse.csr_array((ones, leaves.ravel(), ends), shape=(len(rows), sum(n_nodes)))

    def _measure_likeness(self, table: Array, label: NDArray[np.intp], predicted: NDArray[np.intp]) -> Array:
        """Return how much rows look like a label each, in log-odds; of several classes, against the one predicted."""
        encoded = self.fitted.encoder.schema.put_numbers(table)
        scores = self.fitted.scores(np.ascontiguousarray(encoded), self.n_jobs)
        if scores.ndim == 1:
            decision = self.fitted.posterior.decision(scores)
            return np.where(label == 1, decision, -decision)
        # The clean posterior has a floor, where it would not tell one column from another; the twisted one goes on.
        log_posterior = np.log(self.fitted.posterior.twisted(scores))
        at = np.arange(len(label))
        of_label = log_posterior[at, label]
        of_others = log_posterior.copy()
        of_others[at, label] = -np.inf
        against = np.where(label != predicted, log_posterior[at, predicted], of_others.max(axis=1))
        return np.asarray(of_label - against)

    @cached_property
    def _split_columns(self) -> NDArray[np.intp]:
        """The columns that some tree splits on."""
        used = np.unique(np.concatenate([forest.feature for forest in self.fitted.shared_forests])).astype(np.intp)
        return used[used >= 0]


def describe_value(value: Any) -> str:
    """Return a cell of the data as text.

    Parameters
    ----------
    value : object
        A number, a date, a category, or None or NaN for a missing value.

    Returns
    -------
    str
        A number with four digits, "missing" for a missing value, and anything else as it is.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def describe_limit(encoder: TableEncoder, column: int, number: float) -> str:
    """Return the end of a range of numbers, or of dates, as text.

    Parameters
    ----------
    encoder : TableEncoder
        What the columns are.
    column : int
        The position of the column.
    number : float
        What the cell is in the encoded table.

    Returns
    -------
    str
        A number with six digits, or a date.
    """
    return str(encoder.decode(column, number)) if column in encoder.schema.dates else f"{number:g}"
