"""Where wrong labels concentrate: parts of the data whose labels are wrong more often than those of all rows.

A part is a category, what is missing, or a quarter of a column of numbers. Were its labels as good as all others, they
would follow the posteriors of models that have not seen them, up to what differs everywhere: rows of a part may be of
some class more often than the features say (an offset of its log-odds), and harder or easier (a slope). A wrong label
is another thing, as it contradicts even rows that are clear. The score test of `measure_parts` asks how much
of that is left once offsets and a slope are allowed for, and the p-values of all parts are compared by Benjamini and
Hochberg's rule: of the parts that are named, no more than a stated share is expected to be named by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from untwist.arguments import Array
from untwist.audit.discoveries import FALSE_DISCOVERY_RATE, select_discoveries
from untwist.audit.expectation import Expectation, calibrate, find_prior
from untwist.audit.reasons import describe_limit, describe_value
from untwist.audit.statements import write_shares
from untwist.data.encoding import TableEncoder
from untwist.display import write_range
from untwist.noise.model import NoiseModel
from untwist.noise.sources import estimate_by_source
from untwist.sums import add_up
from untwist.text import name_column

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = [
    "Excess",
    "JudgedRows",
    "Slice",
    "collect_judged_rows",
    "find_p_values",
    "find_slices",
    "measure_parts",
    "split_column",
]

#: Fewer rows tell little of their noise.
LEAST_ROWS = 100

#: With this many different values or fewer, each value of a column of numbers is a part.
MOST_VALUES = 4

#: Of a column with more categories than this, the most frequent ones are parts.
MOST_CATEGORIES = 254

#: The share of additional wrong labels that the test is sharpest for.
EXPECTED_EXCESS = 0.15

#: The median of the square of a standard normal variable.
MEDIAN_SQUARE = 0.4549

#: A sum less skewed than this is taken for a normal one.
LEAST_SKEWNESS = 1e-3

#: The offsets of parts that deviate by so many standard deviations are fitted.
WORTH_FITTING = 1.0


@dataclass(frozen=True)
class Slice:
    """A part of the data in which more labels are wrong than elsewhere.

    Parameters
    ----------
    column : object
        The name of a column, or its number.
    where : str
        What it is there.
    rows : int
        The number of rows.
    share_wrong, low, high : float
        The share of its labels that are wrong, with its 95 % interval. Where no noise was found in the table, `low` is
        0: these rows may just be harder than the others.
    p_value : float
        How likely the labels of a part that is as good as all others contradict the features so much.
    """

    column: Any
    where: str
    rows: int
    share_wrong: float
    low: float
    high: float
    p_value: float

    def __str__(self) -> str:
        limits = self.share_wrong, self.low, self.high
        share = write_shares(limits) if self.low > 0 else write_range(*limits[1:])
        return f"{share} of the {self.rows:,} rows where {name_column(self.column)} is {self.where}"


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """The rows with what is known of their labels.

    Parameters
    ----------
    table : array of shape (n_rows, n_columns)
        The rows as numbers.
    posterior : array of shape (n_rows, n_classes)
        The twisted posterior, out of fold.
    labels : array of int
        The index of each row's label.
    weight : array
        The sample weights.
    noise : NoiseModel
        The noise of all rows.
    expected : Expectation
        What labels are expected to be by all that is known.
    without : mapping of int to tuple
        The posterior and the noise of a model that was trained without a column, where there is such a model: the parts
        of that column are judged by them.
    rows_per_case : float
        How many rows count as one, as those of a group err together.
    """

    table: Array
    posterior: Array
    labels: NDArray[np.intp]
    weight: Array
    noise: NoiseModel
    expected: Expectation
    without: Mapping[int, tuple[Array, NoiseModel]] = field(default_factory=dict)
    rows_per_case: float = 1.0

    def take(self, rows: NDArray[np.intp]) -> JudgedRows:
        """Return the same of some rows, in their order."""
        return replace(
            self,
            table=self.table[rows],
            posterior=self.posterior[rows],
            labels=self.labels[rows],
            weight=self.weight[rows],
            expected=self.expected.take(rows),
            without={column: (posterior[rows], noise) for column, (posterior, noise) in self.without.items()},
        )

    def choose_rows(self, most: int) -> NDArray[np.intp]:
        """Return rows of positive weight in an order of their own; of many, some that are spread over all posteriors.

        Parameters
        ----------
        most : int
            How many, at most.

        Returns
        -------
        array of int
            The same rows whatever order the table has them in.
        """
        rows = np.flatnonzero(self.weight > 0)
        rows = rows[np.lexsort((self.labels[rows], self.posterior[rows, 0]))]
        keys = np.column_stack((self.posterior[rows, 0], self.labels[rows]))
        starts = np.append(True, (keys[1:] != keys[:-1]).any(axis=1))
        is_tied = ~(starts & np.append(starts[1:], True))
        # What the columns say puts in order only the rows that posterior and label leave equal, and these are few.
        tied = rows[is_tied]
        rows[is_tied] = tied[np.lexsort((*self.table[tied].T, np.cumsum(starts)[is_tied]))]
        if len(rows) > most:
            rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]
        return rows


def collect_judged_rows(audit: LabelAudit) -> JudgedRows:
    """Return the rows of an audit that were judged, with what is known of their labels.

    Parameters
    ----------
    audit : LabelAudit
        What was found; a column that looks like a source is left out for itself.

    Returns
    -------
    JudgedRows
    """
    context = audit.context
    hidden, by_source, before = context.hidden_source, context.by_source, context.before_review
    expected = Expectation.under_one_matrix(audit.clean, audit.noise.matrix)
    if by_source is not None:
        clean = by_source.clean(audit.posterior)
        expected = Expectation(clean, by_source.matrices_by_index, audit.sources.indices)
    judged = JudgedRows(
        table=audit.table.numbers,
        posterior=audit.posterior,
        # The posterior is that of the labels before any review.
        labels=audit.label_indices if before is None else np.searchsorted(audit.classes, before),
        weight=audit.weight,
        noise=audit.noise,
        expected=expected,
        without={} if hidden is None else {hidden.position: (hidden.posterior, hidden.noise)},
        rows_per_case=context.rows_per_case,
    )
    return judged if context.judged is None else judged.take(np.flatnonzero(context.judged))


def find_slices(
    judged: JudgedRows,
    encoder: TableEncoder,
    columns: Iterable[int],
    false_discovery_rate: float = FALSE_DISCOVERY_RATE,
) -> list[Slice]:
    """Return the parts whose labels are wrong more often than those of all rows, the clearest first.

    Parameters
    ----------
    judged : JudgedRows
        All rows.
    encoder : TableEncoder
        What the columns are.
    columns : iterable of int
        The columns to look at.
    false_discovery_rate : float
        The share of the named parts that is expected to be named by chance, at most.

    Returns
    -------
    list of Slice
    """
    n_weighted = np.count_nonzero(judged.weight)
    parts = [
        (column, where, rows)
        for column in columns
        for where, in_part in split_column(encoder, column, judged.table[:, column])
        for rows in [np.flatnonzero(in_part & (judged.weight > 0))]
        if LEAST_ROWS <= len(rows) < n_weighted
    ]
    excesses: dict[int, Excess] = {}
    for expected, indices in _group_by_expectation(judged, [column for column, _, _ in parts]):
        measured = measure_parts(expected, judged.labels, judged.weight, [parts[index][2] for index in indices])
        excesses.update(zip(indices, measured, strict=True))
    p_values = find_p_values([excesses[index] for index in range(len(parts))], judged.rows_per_case)
    named = np.flatnonzero(select_discoveries(p_values, false_discovery_rate))
    named = named[np.argsort(p_values[named], kind="stable")]
    shares = _estimate_shares(judged, encoder, dict.fromkeys(parts[index][0] for index in named.tolist()))
    return [
        Slice(encoder.feature_labels[column], where, len(rows), *shares[column, where], float(p_values[index]))
        for index in named.tolist()
        for column, where, rows in [parts[index]]
        if (column, where) in shares
    ]


def _group_by_expectation(judged: JudgedRows, columns: list[int]) -> Iterator[tuple[Expectation, list[int]]]:
    """Yield what parts are judged by, with the indices of these parts, by the column of each part."""
    yield judged.expected, [index for index, column in enumerate(columns) if column not in judged.without]
    for left_out, (posterior, noise) in judged.without.items():
        expected = Expectation.under_one_matrix(noise.clean(posterior), noise.matrix)
        yield expected, [index for index, column in enumerate(columns) if column == left_out]


def _estimate_shares(
    judged: JudgedRows, encoder: TableEncoder, columns: Iterable[int]
) -> dict[tuple[int, str], tuple[float, float, float]]:
    """Return the share of wrong labels in those parts of some columns where it is above that of the whole column.

    The parts of a column are taken for sources.
    """
    shares = {}
    for column in columns:
        names = []
        part_of_row = np.full(len(judged.labels), -1, dtype=np.intp)
        for index, (where, in_part) in enumerate(split_column(encoder, column, judged.table[:, column])):
            names.append(where)
            part_of_row[in_part] = index
        posterior, noise = judged.without.get(column, (judged.posterior, judged.noise))
        by_part = estimate_by_source(
            posterior,
            judged.labels,
            part_of_row,
            names=names,
            noise=noise,
            weight=judged.weight,
            rows_per_case=judged.rows_per_case,
        )
        overall = float(by_part.shares @ by_part.counts / by_part.counts.sum())
        for where, share, (low, high) in zip(names, by_part.shares.tolist(), by_part.intervals.tolist(), strict=True):
            if share > overall:
                shares[column, where] = (share, low if judged.noise.found else 0.0, high)
    return shares


# ---- the test ----


class Excess(NamedTuple):
    """By how much the labels of a part contradict the features: the score, its variance and third cumulant."""

    score: float
    variance: float
    third: float


def measure_parts(
    expected: Expectation, labels: NDArray[np.intp], weight: Array, parts: Iterable[NDArray[np.intp]]
) -> list[Excess]:
    """Measure how much the labels of parts contradict the features, beyond offsets and a slope.

    The score is that of additional wrong labels, a share e of them: a posterior p becomes (1 - e) p + e q, with q equal
    for all other classes; it is weighed as e = `EXPECTED_EXCESS` makes best. What of it offsets and a slope
    explain is taken out; these are normal variables of the spreads `OFFSET_SPREAD` and `SLOPE_SPREAD`.

    Parameters
    ----------
    expected : Expectation
        What labels are expected to be.
    labels : array of int
        The index of each row's label.
    weight : array
        How much each row counts.
    parts : iterable of arrays of int
        The rows of each part.

    Returns
    -------
    list of Excess
    """
    calibrated = calibrate(expected, labels, weight).expected
    weight = weight * (np.count_nonzero(weight) / add_up(weight))
    order = np.lexsort((weight, labels, *expected.posterior.T))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    measured = []
    for part in parts:
        rows = order[np.sort(place[part])]
        here, labels_here, weight_here = calibrated.take(rows), labels[rows], weight[rows]
        excess = _measure(here, here.logs, labels_here, weight_here)
        if excess.score > WORTH_FITTING * np.sqrt(excess.variance):
            # The effect of offsets was taken to be a straight line, which that of large ones is not.
            fitted = calibrate(here, labels_here, weight_here, fits_slope=False)
            excess = _measure(fitted.expected, here.logs, labels_here, weight_here, fitted.parameters[:-1])
        measured.append(excess)
    return measured


def _measure(
    here: Expectation, logs: Array, labels: NDArray[np.intp], weight: Array, offsets: Array | float = 0.0
) -> Excess:
    """Measure a part by derivatives at its expectation, which has these offsets to logarithms of clean posteriors."""
    p = here.posterior
    n_classes = p.shape[1]
    drift = (1.0 - n_classes * p) / (n_classes - 1)
    noise = drift / (p + EXPECTED_EXCESS * drift)
    noise -= (p * noise).sum(axis=1, keepdims=True)
    variances = (weight**2)[:, None] * p
    directions = np.stack(list(here.list_directions(logs)))
    with_noise = np.einsum("ank,nk->a", directions, variances * noise)
    among = np.einsum("ank,bnk,nk->ab", directions, directions, variances)
    _, precision = find_prior(n_classes)
    explained = np.linalg.solve(among + np.diag(precision), with_noise)
    left = noise - np.einsum("a,ank->nk", explained, directions)
    drawn_back = float((explained * precision)[:-1] @ np.broadcast_to(offsets, n_classes))
    return Excess(
        score=float((weight * left[np.arange(len(labels)), labels]).sum()) + drawn_back,
        variance=float((variances * noise**2).sum() - explained @ with_noise),
        third=float(((weight**3)[:, None] * p * left**3).sum()),
    )


def find_p_values(excesses: list[Excess], rows_per_case: float = 1.0) -> Array:
    """Return how likely it is that parts which are as good as all others contradict the features so much.

    Where the scores of all parts are larger than their variances allow, as posteriors are a little wrong everywhere,
    they are made smaller: the median of their squares is that of a normal variable then. A sum of few unlikely labels
    is skewed, so that a gamma variable with its three moments is asked.

    Parameters
    ----------
    excesses : list of Excess
        Those of all parts.
    rows_per_case : float, default 1
        How many rows count as one: the scores vary by so much more than those of independent rows.

    Returns
    -------
    array
        One for each part.
    """
    if not excesses:
        return np.zeros(0)
    score, variance, third = np.array(excesses).T
    deviations = score / np.sqrt(variance)
    inflation = max(rows_per_case, float(np.median(deviations**2)) / MEDIAN_SQUARE)
    skewness = np.maximum(third / variance**1.5, LEAST_SKEWNESS)
    shape = 4.0 / skewness**2
    return np.asarray(gammaincc(shape, np.maximum(shape + deviations / np.sqrt(inflation) * np.sqrt(shape), 0.0)))


# ---- parts ----


def split_column(encoder: TableEncoder, column: int, values: Array) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the parts of a column: missing values, categories, or quarters of numbers.

    Parameters
    ----------
    encoder : TableEncoder
        What the columns are.
    column : int
        The position of the column.
    values : array
        Its numbers.

    Yields
    ------
    str
        What the column is there, in words.
    array of bool
        Whether each row is in the part.
    """
    missing = np.isnan(values)
    if missing.any():
        yield "missing", missing
    known, times = np.unique(values[~missing], return_counts=True)
    if column in encoder.schema.categories or len(known) <= MOST_VALUES:
        for value in known[np.sort(np.argsort(-times, kind="stable")[:MOST_CATEGORIES])]:
            yield describe_value(encoder.decode(column, value)), values == value
        return
    edges = np.unique(np.quantile(values[~missing], (0.25, 0.5, 0.75)))
    part_of_row = np.where(missing, -1, np.searchsorted(edges, values))
    for part in range(len(edges) + 1):
        low = "" if part == 0 else f"above {describe_limit(encoder, column, edges[part - 1])}"
        high = "" if part == len(edges) else f"at most {describe_limit(encoder, column, edges[part])}"
        yield " and ".join(filter(None, (low, high))), part_of_row == part
