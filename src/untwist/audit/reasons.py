"""Why a label is doubted: columns that speak against it, and similar rows that bear another one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.model import FittedModel

__all__ = ["Explanation", "Reason", "ReasonFinder", "describe_value"]

#: Rows that are called similar to a row, at most.
N_SIMILAR = 20

#: Similar rows are looked for among this many rows, at most.
MOST_LOOKED_AT = 10_000

#: A column whose effect is smaller, in log-odds, is no reason.
LEAST_EFFECT = 0.005

#: This many rows are compared with others, or made by changing a column each, at a time.
ROWS_PER_BLOCK = 250

#: The leaves of this many other rows are looked at together.
OTHERS_PER_BLOCK = 1000


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
        return f"{self.column} is {value}, usually {usual} ({self.effect:+.2f})"


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
        Of the `n_similar` most similar rows `n_disagreeing` bear another label.
    n_predicted : int
        Of these, the rows that bear the label `predicted`.
    wrong_at_most : float or None
        Where no noise was found, the highest probability that is not excluded: see `LabelAudit.bound_wrong`.
    """

    row: int
    given: Any
    predicted: Any
    wrong: float
    reasons: tuple[Reason, ...]
    n_disagreeing: int
    n_similar: int
    n_predicted: int = 0
    wrong_at_most: float | None = None

    def __repr__(self) -> str:
        return f"Explanation({str(self).splitlines()[0]}; {len(self.reasons)} reasons)"

    def __str__(self) -> str:
        others = f"{self.n_disagreeing} of the {self.n_similar} most similar rows bear another label"
        if 0 < self.n_predicted < self.n_disagreeing:
            others += f", {self.n_predicted} of them {self.predicted}"
        likely = f"{self.wrong:.0%}" + ("" if self.wrong_at_most is None else f" to {self.wrong_at_most:.0%}")
        lines = [
            f"row {self.row}: labelled {self.given}, looks like {self.predicted}, {likely} likely wrong",
            f"  {others}",
        ]
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
    """

    fitted: FittedModel
    table: Array
    labels: NDArray[np.intp]
    n_jobs: int | None = None

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
        rows = self.table[np.flatnonzero(self.labels == label)]
        usual = np.full(rows.shape[1], np.nan)
        for column, values in enumerate(rows.T):
            known = values[~np.isnan(values)]
            if column in self.fitted.encoder.schema.categories and known.size:
                categories, times = np.unique(known, return_counts=True)
                usual[column] = categories[times.argmax()]
            elif known.size:
                usual[column] = np.median(known)
        return usual

    def find_reasons(self, row: int, usual: Array, predicted: int) -> list[Reason]:
        """Return the columns that speak against the label of a row, the strongest first.

        A column speaks against a label if the row would look more like it with the `usual` value of the column. Of
        several classes, more like it than like the one that is predicted.

        Parameters
        ----------
        row : int
            The position of the row.
        usual : array
            What `find_usual` returns for its label.
        predicted : int
            The index of the label that the other rows speak for.

        Returns
        -------
        list of Reason
        """
        here = self.table[[row]]
        n_columns = here.shape[1]
        effects = np.zeros(n_columns)
        label = int(self.labels[row])
        likeness = self._measure_likeness(here, label, predicted)[0]
        for columns in np.array_split(self._split_columns, max(1, n_columns // ROWS_PER_BLOCK)):
            if not len(columns):
                continue
            changed = np.repeat(here, len(columns), axis=0)
            changed[np.arange(len(columns)), columns] = usual[columns]
            effects[columns] = self._measure_likeness(changed, label, predicted) - likeness
        encoder = self.fitted.encoder
        names = encoder.feature_labels
        return [
            Reason(
                names[column],
                encoder.decode(column, here[0, column]),
                encoder.decode(column, usual[column]),
                float(effects[column]),
            )
            for column in np.argsort(-effects, kind="stable").tolist()
            if effects[column] > LEAST_EFFECT
        ]

    def find_similar(self, rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Yield for each of the rows those that share most leaves of the trees with it, most of all first.

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

    def _find_similar_to_block(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        others = np.arange(len(self.labels))
        if len(others) > MOST_LOOKED_AT:
            others = np.sort(np.random.default_rng(0).choice(others, MOST_LOOKED_AT, replace=False))
        shared = np.zeros((len(rows), len(others)), dtype=np.int32)
        for forest in self.fitted.shared_forests:
            leaves_of_rows = forest.leaves(self._encoded[rows], self.n_jobs)
            for start in range(0, len(others), OTHERS_PER_BLOCK):
                block = slice(start, start + OTHERS_PER_BLOCK)
                leaves = forest.leaves(self._encoded[others[block]], self.n_jobs)
                for position, leaf in enumerate(leaves_of_rows):
                    shared[position, block] += np.count_nonzero(leaves == leaf, axis=1)
        shared[rows[:, None] == others] = -1  # No row is similar to itself.
        n_similar = min(N_SIMILAR, len(self.labels) - 1)
        return np.stack([others[np.argsort(-each, kind="stable")[:n_similar]] for each in shared])

    def _measure_likeness(self, table: Array, label: int, predicted: int) -> Array:
        """Return how much rows look like a label, in log-odds; of several classes, against the one predicted."""
        encoded = self.fitted.encoder.schema.put_numbers(table)
        scores = self.fitted.scores(np.ascontiguousarray(encoded), self.n_jobs)
        if scores.ndim == 1:
            decision = self.fitted.posterior.decision(scores)
            return decision if label == 1 else -decision
        # The clean posterior has a floor, where it would not tell one column from another; the twisted one goes on.
        log_posterior = np.log(self.fitted.posterior.twisted(scores))
        if label != predicted:
            return np.asarray(log_posterior[:, label] - log_posterior[:, predicted])
        strongest_other = np.delete(log_posterior, label, axis=1).max(axis=1)
        return np.asarray(log_posterior[:, label] - strongest_other)

    @cached_property
    def _encoded(self) -> Array:
        """The training rows as the trees take them."""
        return self.fitted.encoder.schema.put_numbers(self.table)

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
        A number, a category, or None or NaN for a missing value.

    Returns
    -------
    str
        A number with four digits, "missing" for a missing value, and anything else as it is.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
