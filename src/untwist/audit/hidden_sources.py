"""A column that is no feature but tells who or what gave the labels, some of whose values gave worse ones.

Where a bad branch is a column of the table, the model learns that its labels are next to random, and its rows look
merely hard: nobody doubts a label there. Three steps find such a column.

1. `screen_columns` asks what the model would have said had each row come with the other values of a column. A source
   leaves its rows as they were, with more wrong labels at some values; a feature makes other rows of them, which no
   noise explains. Nothing is fitted for that.
2. The model is trained again without a column, for the two best columns at most, and the noise of each of its values
   is estimated as that of a source.
3. The labels decide, by their likelihood under models that have not seen them. The column is taken for a source where
   noise by its values explains them clearly better than an offset to each class and a slope for each value, which says
   that rows are otherwise or harder there. What the model that has the column explains beyond that noise counts
   against it: a feature is explained far better by that model. And labels must be wrong in both directions, as those
   that are wrong in one cannot be told from a class that is more frequent there.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.audit.correcting import count_expected
from untwist.audit.expectation import LEAST_POSTERIOR, Expectation, calibrate
from untwist.audit.judging import bound_share
from untwist.audit.reasons import describe_limit, describe_value
from untwist.audit.slices import JudgedRows, collect_judged_rows
from untwist.audit.training import train_on_numbers
from untwist.classifier import UntwistClassifier
from untwist.data.cells import to_date
from untwist.data.encoding import TableEncoder
from untwist.display import write_share
from untwist.noise.model import NoiseModel
from untwist.noise.out_of_fold import estimate_noise_of
from untwist.noise.sources import NoiseBySource, estimate_by_source
from untwist.sums import add_up_by_group
from untwist.text import name_column

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = [
    "HiddenSource",
    "allow_for",
    "describe_groups",
    "find_hidden_sources",
    "group_values",
    "look_for_sources",
    "screen_columns",
]

#: Columns that are screened, the most important ones.
MOST_SCREENED = 20

#: Rows that columns are screened by, at most.
MOST_ROWS = 10_000

#: Tables with more cells than this, as numbers or for the classes of the labels, are not searched.
MOST_CELLS = 50_000_000

#: Columns that the model is trained without, at most.
MOST_TRAINED = 2

#: Of more rows than this so many are tried first, and all only where a column looks like a source among these.
MOST_TRIED_FIRST = 100_000

#: With this many different values or fewer, each value of a column of numbers is a group of its own.
MOST_VALUES = 12

#: A column with more groups than this names the things that are labelled, and not who labelled them.
MOST_GROUPS = 254

#: A column of more numbers is cut into this many groups of about equal size.
N_GROUPS = 16

#: Values of a column that the screen puts in the place of others, at most: the most frequent ones.
MOST_REPLACED = 8

#: Shares of additional wrong labels that the screen tries.
TRIED_SHARES = np.arange(1, 11) / 20.0

#: Fewer nats than this, for one value of a column, are left to chance by the screen.
NATS_BY_CHANCE = 2.0

#: The screen asks for so many nats that noise by the values of a column explains.
LEAST_GAIN = 5.0

#: What a column explains as a feature beyond that, relative to what it would explain as a source, is at most this.
MOST_LOST = 1.5

#: The noise of the values of a source differs by so many nats, at least.
LEAST_EVIDENCE = 5.0

#: A column is a source where it explains so many nats more as a source than as a feature.
LEAST_MARGIN = 4.0

#: Fewer rows than this do not tell a bad source from a rare kind of row.
LEAST_ROWS = 50

#: Beside a share below this one, or from this many times on, the number of times says nothing.
CLOSE_TO_NONE = 0.005
MOST_TIMES = 20.0

#: From this many times on, whole numbers of times will do.
COUNTED_TIMES = 2.5

#: Values that begin like this are taken for dates, which have an order.
DATE = re.compile(r"\d{4}-\d{2}")


@dataclass(frozen=True, eq=False)
class HiddenSource:
    """A column some of whose values gave worse labels than the others: it looks like a source rather than a feature.

    Rows whose labels are right but much harder to tell at some values look the same.

    Parameters
    ----------
    column : object
        The name of the column, or its number.
    position : int
        Its position.
    where : str
        At which values labels look wrong more often, in words: "is Leipzig", "is above 310".
    rows : int
        How many rows are there.
    share_there, share_elsewhere : float
        The shares of labels that look wrong there and elsewhere, with the column taken for a source.
    share_as_feature : float
        The share of all labels that look wrong with the column taken for a feature.
    share_as_source : float
        The same with the column taken for a source.
    interval_as_source : tuple of float
        Its 95 % interval.
    suspects_as_feature, suspects_as_source : tuple of int
        As many labels, the most suspect ones, as are expected to be wrong: there, and in all.
    ranges : tuple of pairs of float, or None
        Where the column was cut into ranges of its numbers, those where labels look wrong more often: above the first
        number, and at most the second. None where each value is a group of its own.
    has_missing : bool
        Whether labels look wrong more often where the column is missing.
    margin : float
        How many nats of log-likelihood the column explains more as a source than as an offset and a slope by value,
        less what the model that has the column explains beyond that.
    by_value : NoiseBySource
        The noise of each group of values.
    group_of_row : array of int
        The group of each row, an index of `by_value.names`.
    posterior : array of shape (n_rows, n_classes)
        The twisted posterior by models that have seen neither the row nor the column.
    noise : NoiseModel
        The noise of all labels that these models show.
    is_date : bool
        Whether the column holds dates, so that ranges are of days since 1970.
    """

    column: Any
    position: int
    where: str
    rows: int
    share_there: float
    share_elsewhere: float
    share_as_feature: float
    share_as_source: float
    interval_as_source: tuple[float, float]
    suspects_as_feature: tuple[int, int]
    suspects_as_source: tuple[int, int]
    ranges: tuple[tuple[float, float], ...] | None
    has_missing: bool
    margin: float
    by_value: NoiseBySource
    group_of_row: NDArray[np.intp]
    posterior: Array
    noise: NoiseModel
    is_date: bool = False

    def __repr__(self) -> str:
        return f"HiddenSource({self})"

    @property
    def times(self) -> float:
        """How many times as often labels look wrong there as elsewhere."""
        return self.share_there / max(self.share_elsewhere, LEAST_POSTERIOR)

    def __str__(self) -> str:
        return self.advise()

    def advise(self, *, for_command: bool = False) -> str:
        """Say what the column hides, and how to run again with it as source.

        Parameters
        ----------
        for_command : bool, default False
            Whether to name options of the command line only; else those follow the call in Python.

        Returns
        -------
        str
            The words, without a full stop.
        """
        remedy = self.advise_on_command_line() if for_command else f"in Python {self.advise_in_python()}"
        if not for_command and not isinstance(self.column, int):
            remedy += f"; on the command line {self.advise_on_command_line()}"
        return f"{self.describe()}; run again with it as source: {remedy}"

    @property
    def name(self) -> str:
        """What the column is called; those of an array have numbers only."""
        return name_column(self.column)

    def describe(self) -> str:
        """Say in words where labels look wrong more often, and what follows if the column is taken for a source.

        Returns
        -------
        str
            The words, without a full stop.
        """
        name = self.name
        there, everywhere = self.suspects_as_feature
        there_as_source, everywhere_as_source = self.suspects_as_source
        return (
            f"labels where {name} {self.where} look wrong {self._describe_times()} "
            f"({write_share(self.share_there)} of {self.rows:,}, {write_share(self.share_elsewhere)} elsewhere): "
            f"{name} looks like a source rather than a feature, and may hide them: {there_as_source:,} of "
            f"{everywhere_as_source:,} suspects are there if it is taken for one, {there:,} of {everywhere:,} as it is"
        )

    def advise_in_python(self) -> str:
        """Say how to call `audit_labels` so that the column is a source and no feature.

        A column that was cut into ranges is a source by whether a row is in the bad ones: each number by itself would
        be a source of next to no labels. Empty cells get a name, as labels of an unknown source are judged as all are.

        Returns
        -------
        str
            The call, for rows X and labels y.
        """
        is_numbered = isinstance(self.column, int)
        column = f"X[:, {self.column}]" if is_numbered else f"X[{self.column!r}]"
        rest = f"np.delete(X, {self.column}, axis=1)" if is_numbered else f"X.drop(columns={self.column!r})"
        source = column
        if self.ranges is not None:
            parts = [_write_range(column, low, high, self.is_date) for low, high in self.ranges]
            if self.has_missing:
                parts.append(f"np.isnan({column})" if is_numbered else f"{column}.isna()")
            source = parts[0] if len(parts) == 1 else " | ".join(f"({part})" for part in parts)
        elif self.has_missing:
            source = f"[str(value) for value in {column}]"
        return f"audit_labels({rest}, y, source={source})"

    def advise_on_command_line(self) -> str:
        """Say the same for a file.

        Returns
        -------
        str
            Options, and what to do to the file first.
        """
        name = str(self.column)
        option = shlex.quote(name) if name.isprintable() else "COLUMN"
        if self.ranges is not None:
            return (
                f"add a column that says of every row whether {self.name} {self.where}, name it by --source, and leave "
                f"the old one out by --drop {option}"
            )
        if self.has_missing:
            return (
                f"--source {option}, once the empty cells of the column have a name, as labels of an unknown source "
                "are judged as those of all"
            )
        return f"--source {option}"

    def _describe_times(self) -> str:
        if self.share_elsewhere < CLOSE_TO_NONE or self.times >= MOST_TIMES:
            return "far more often"
        return f"{self.times:.0f} times as often" if self.times >= COUNTED_TIMES else f"{self.times:.1f} times as often"


def look_for_sources(audit: LabelAudit, model: UntwistClassifier) -> list[HiddenSource]:
    """Look for columns of an audited table that look like sources of labels; see `LabelAudit.hidden_sources`.

    Parameters
    ----------
    audit : LabelAudit
        What was found, of rows whose sources are not known.
    model : UntwistClassifier
        The classifier that judged the labels.

    Returns
    -------
    list of HiddenSource
    """
    context, fitted = audit.context, model.model_
    assert fitted.out_of_fold is not None  # A model that can be audited has chosen by folds.
    # What a column would explain as a source is measured row by row, in folds that are made anew.
    told = {
        "source": context.source,
        "groups": context.groups,
        "folds of your own": fitted.out_of_fold.context.own_folds,
    }
    if named := [name for name, value in told.items() if value is not None]:
        raise ValueError(
            f"a column that looks like a source is looked for where rows stand alone, and these came with {named[0]}: "
            "audit them without, and look there"
        )
    n_rows, n_columns = len(audit.given), fitted.encoder.n_features
    if not context.can_tell(audit.noise) or n_rows * max(n_columns, len(audit.classes) ** 2) > MOST_CELLS:
        return []
    return find_hidden_sources(collect_judged_rows(audit), model, audit.suspects(), audit.noise_rate[0])


def allow_for(audit: LabelAudit, hidden: HiddenSource) -> LabelAudit:
    """Return the same audit where all that is said allows for a column that looks like a source.

    Parameters
    ----------
    audit : LabelAudit
        What was found.
    hidden : HiddenSource
        The column: one of `audit.hidden_sources()`.

    Returns
    -------
    LabelAudit
    """
    return replace(audit, context=replace(audit.context, hidden_source=hidden))


def find_hidden_sources(
    judged: JudgedRows, model: UntwistClassifier, suspects: NDArray[np.intp], share_wrong: float
) -> list[HiddenSource]:
    """Look for columns that look like sources of labels: some of their values gave worse ones than the others.

    Parameters
    ----------
    judged : JudgedRows
        All rows, with what is known of their labels where all columns are taken for features.
    model : UntwistClassifier
        The classifier that judged them.
    suspects : array of int
        The rows that it doubts.
    share_wrong : float
        The share of labels that look wrong to it.

    Returns
    -------
    list of HiddenSource
        Those that explain clearly more as a source than as a feature, the one that explains most first.
    """
    n_rows, n_columns = judged.table.shape
    if n_columns < 2:
        return []
    columns = screen_columns(judged, model)
    if columns and n_rows > MOST_TRIED_FIRST:
        columns = _try_some_rows(judged, model, columns)
    if not columns:
        return []
    as_feature = calibrate(judged.expected, judged.labels, judged.weight).explained
    doubted = np.zeros(n_rows, dtype=np.bool_)
    doubted[suspects] = True
    found = [_judge_without(judged, model, column, as_feature, doubted, share_wrong) for column in columns]
    return sorted((one for one in found if one is not None), key=lambda source: -source.margin)


# ---- groups of values ----


def group_values(encoder: TableEncoder, column: int, values: Array) -> tuple[NDArray[np.intp], list[str], Array]:
    """Return the group of each row by its value in a column: a category, a number, a range of numbers, or missing.

    Parameters
    ----------
    encoder : TableEncoder
        What the columns are.
    column : int
        The position of the column.
    values : array
        Its numbers.

    Returns
    -------
    group_of_row : array of int
        From 0; ranges rise, and what is missing comes last.
    names : list of str
        What each group is called.
    upper : array
        The largest value of each group; NaN for what is missing.
    """
    missing = np.isnan(values)
    known = np.unique(values[~missing])
    if not _is_cut_into_ranges(encoder, column, values):
        upper = known
        names = [describe_value(encoder.decode(column, value)) for value in known.tolist()]
    else:
        edges = np.quantile(values[~missing], np.arange(1, N_GROUPS) / N_GROUPS, method="lower")
        upper = np.unique(np.append(edges, known[-1]))
        limits = [describe_limit(encoder, column, limit) for limit in upper.tolist()]
        names = [
            " and ".join(([f"above {low}"] if index else []) + ([f"at most {high}"] if index < len(upper) - 1 else []))
            for index, (low, high) in enumerate(zip(["", *limits[:-1]], limits, strict=True))
        ]
    group_of_row = np.where(missing, len(upper), np.searchsorted(upper, values)).astype(np.intp)
    if missing.any():
        names, upper = [*names, "missing"], np.append(upper, np.nan)
    return group_of_row, names, upper


def describe_groups(encoder: TableEncoder, column: int, values: Array, chosen: NDArray[np.bool_]) -> str:
    """Say at which groups of values a column is; neighbouring ranges of numbers, and dates, are put together.

    Parameters
    ----------
    encoder : TableEncoder
        What the columns are.
    column : int
        The position of the column.
    values : array
        Its numbers.
    chosen : array of bool
        Which of the groups of `group_values`.

    Returns
    -------
    str
        Such as "is above 310".
    """
    _, names, upper = group_values(encoder, column, values)
    known = np.flatnonzero(~np.isnan(upper))
    there = np.flatnonzero(chosen)
    are_neighbours = len(there) > 0 and there[-1] - there[0] == len(there) - 1 and there[-1] <= known[-1]
    if are_neighbours and _is_cut_into_ranges(encoder, column, values):
        low = f"above {describe_limit(encoder, column, upper[there[0] - 1])}" if there[0] else ""
        high = f"at most {describe_limit(encoder, column, upper[there[-1]])}" if there[-1] < known[-1] else ""
        return "is " + " and ".join(filter(None, (low, high)))
    if are_neighbours and len(there) > 1 and all(DATE.match(names[index]) for index in known):
        if there[-1] == known[-1]:
            return f"is {names[there[0]]} or later"
        return f"is from {names[there[0]]} to {names[there[-1]]}"
    return "is " + " or ".join(names[index] for index in there)


def _find_ranges(upper: Array, chosen: NDArray[np.bool_]) -> tuple[tuple[float, float], ...]:
    """Return the chosen ranges of a column of numbers, neighbours put together: above one number, at most another.

    The first range has no lower limit, the last one no upper limit.
    """
    limits = upper[~np.isnan(upper)].tolist()
    limits = [-np.inf, *limits[:-1], np.inf]
    ranges: list[tuple[float, float]] = []
    for index in np.flatnonzero(chosen[: len(limits) - 1]).tolist():
        low, high = limits[index], limits[index + 1]
        if ranges and ranges[-1][1] == low:
            low = ranges.pop()[0]
        ranges.append((low, high))
    return tuple(ranges)


def _write_range(column: str, low: float, high: float, is_date: bool) -> str:
    """Write in Python that a column is in a range."""
    limits = [(">", low)] if np.isfinite(low) else []
    limits += [("<=", high)] if np.isfinite(high) else []
    shown = [repr(str(to_date(one))) if is_date else repr(float(one)).removesuffix(".0") for _, one in limits]
    parts = [f"{column} {sign} {limit}" for (sign, _), limit in zip(limits, shown, strict=True)]
    return parts[0] if len(parts) == 1 else " & ".join(f"({part})" for part in parts)


def _is_cut_into_ranges(encoder: TableEncoder, column: int, values: Array) -> bool:
    """Tell whether the groups of a column are ranges of its numbers, as it has too many different ones."""
    return column not in encoder.schema.categories and len(np.unique(values[~np.isnan(values)])) > MOST_VALUES


# ---- the screen ----


def screen_columns(judged: JudgedRows, model: UntwistClassifier) -> list[int]:
    """Return the columns that may be sources, the likeliest first, and `MOST_TRAINED` of them at most.

    Parameters
    ----------
    judged : JudgedRows
        All rows, with what is known of their labels where all columns are taken for features.
    model : UntwistClassifier
        The classifier that judged them.

    Returns
    -------
    list of int
        Positions of columns.
    """
    fitted = model.model_
    judged = judged.take(judged.choose_rows(MOST_ROWS))
    table, posterior, labels, weight = judged.table, judged.posterior, judged.labels, judged.weight
    as_feature = _fit_posterior(posterior, labels, weight).find_likelihood(labels, weight)
    importances = fitted.importances("gain")
    logs_as_they_are = _predict_logs(model, table)
    found = []
    for column in np.argsort(-importances, kind="stable")[:MOST_SCREENED].tolist():
        group_of_row, names, _ = group_values(fitted.encoder, column, table[:, column])
        if len(names) > MOST_GROUPS:
            continue
        imagined = posterior
        if importances[column] > 0:
            change = _imagine_other_values(model, table, column, group_of_row) - logs_as_they_are
            powers = np.exp(_find_logs(posterior) + change)
            imagined = powers / powers.sum(axis=1, keepdims=True)
        without_column = _fit_posterior(imagined, labels, weight)
        explained, gain = _explain_by_noise(without_column, labels, weight, group_of_row)
        lost = as_feature - explained - gain
        # What the column explains as a feature must not be much more than what it would explain as a source.
        if gain >= LEAST_GAIN and lost < MOST_LOST * gain:
            found.append((lost - gain, column))
    return [column for _, column in sorted(found)[:MOST_TRAINED]]


def _fit_posterior(posterior: Array, labels: NDArray[np.intp], weight: Array) -> Expectation:
    """Return what labels are expected to be by a twisted posterior, which offsets and a slope fit to them."""
    no_noise = np.eye(posterior.shape[1])
    return calibrate(Expectation.under_one_matrix(posterior, no_noise), labels, weight).expected


def _explain_by_noise(
    expected: Expectation, labels: NDArray[np.intp], weight: Array, group_of_row: NDArray[np.intp]
) -> tuple[float, float]:
    """Return the log-likelihood of labels, and what additional noise in some groups of rows would add to it."""
    p = expected.posterior[np.arange(len(labels)), labels]
    others = (1.0 - p) / (expected.posterior.shape[1] - 1)
    n_groups = int(group_of_row.max()) + 1
    plain = add_up_by_group(weight * np.log(p), group_of_row, n_groups)
    noisy = [
        add_up_by_group(weight * np.log(p + share * (others - p)), group_of_row, n_groups) for share in TRIED_SHARES
    ]
    gains = np.max(noisy, axis=0) - plain
    return float(plain.sum()), float(gains[gains > NATS_BY_CHANCE].sum())


def _imagine_other_values(model: UntwistClassifier, table: Array, column: int, group_of_row: NDArray[np.intp]) -> Array:
    """Return the logarithms of the posteriors of rows if their value in a column were any, as frequent as it is.

    The trees have seen most rows. What they say of a row as it is and of the row with another value differs by what the
    column does to the trees, and only that difference is added to what models say that have not seen the row.
    """
    fitted = model.model_
    times = np.bincount(group_of_row)
    frequent = np.argsort(-times, kind="stable")[:MOST_REPLACED]
    imagined = np.zeros((len(table), len(fitted.classes)))
    for group in frequent[times[frequent] > 0].tolist():
        values = np.sort(table[group_of_row == group, column])
        changed = table.copy()
        changed[:, column] = values[(len(values) - 1) // 2]
        imagined += times[group] / times[frequent].sum() * _predict_logs(model, changed)
    return imagined


def _predict_logs(model: UntwistClassifier, table: Array) -> Array:
    """Return the logarithms of the twisted posteriors of rows in which categories are indices."""
    fitted = model.model_
    scores = fitted.scores(fitted.encoder.schema.put_numbers(table), model.n_jobs)
    return _find_logs(fitted.posterior.twisted(scores))


def _find_logs(posterior: Array) -> Array:
    return np.asarray(np.log(np.maximum(posterior, LEAST_POSTERIOR)))


# ---- the judgement ----


def _try_some_rows(judged: JudgedRows, model: UntwistClassifier, columns: list[int]) -> list[int]:
    """Return those of some columns that look like sources among some of the rows.

    All models are trained on these rows alone, the one that has the columns too: one that has seen more rows would
    explain more, whatever the columns are.
    """
    some = judged.take(judged.choose_rows(MOST_TRIED_FIRST))
    unseen = train_on_numbers(model, some.table, model.model_.classes[some.labels], some.weight).out_of_fold
    assert unseen is not None  # It was chosen by folds.
    posterior, noise = unseen.posterior, estimate_noise_of(unseen)
    some = replace(
        some,
        posterior=posterior,
        noise=noise,
        expected=Expectation.under_one_matrix(noise.clean(posterior), noise.matrix),
    )
    as_feature = calibrate(some.expected, some.labels, some.weight).explained
    doubted = np.zeros(len(some.labels), dtype=np.bool_)
    return [column for column in columns if _judge_without(some, model, column, as_feature, doubted, 0.0) is not None]


def _judge_without(
    judged: JudgedRows,
    model: UntwistClassifier,
    column: int,
    as_feature: float,
    doubted: NDArray[np.bool_],
    share_wrong: float,
) -> HiddenSource | None:
    """Judge the labels again without a column; None where it explains them no better as a source than as a feature."""
    labels, weight, encoder = judged.labels, judged.weight, model.model_.encoder
    unseen = train_on_numbers(model, judged.table, model.model_.classes[labels], weight, without=column).out_of_fold
    assert unseen is not None  # It was chosen by folds.
    posterior, noise = unseen.posterior, estimate_noise_of(unseen)
    values = judged.table[:, column]
    group_of_row, names, upper = group_values(encoder, column, values)
    by_value = estimate_by_source(posterior, labels, group_of_row, names=names, noise=noise, weight=weight)
    stands_out = by_value.stands_out & _err_in_both_directions(by_value)
    is_there = stands_out[group_of_row] & (weight > 0)
    if np.count_nonzero(is_there) < LEAST_ROWS or stands_out.all() or by_value.evidence < LEAST_EVIDENCE:
        return None
    by_source = Expectation(by_value.clean(posterior), by_value.matrices, group_of_row)
    as_source = calibrate(by_source, labels, weight).explained
    as_feature_by_value = max(
        _explain_by_group(expected, judged, group_of_row)
        for expected in (
            Expectation.under_one_matrix(noise.clean(posterior), noise.matrix),
            Expectation.under_one_matrix(posterior, np.eye(len(noise.matrix))),
        )
    )
    # The model that has the column may know where in a range bad values begin, and explain a little more for that.
    margin = as_source - as_feature_by_value - max(0.0, as_feature - as_source)
    if margin < LEAST_MARGIN:
        return None
    rows = np.arange(len(labels))
    wrong = 1.0 - by_value.find_truth(posterior, labels, group_of_row)[rows, labels]
    share_as_source = _average(by_value, np.ones(len(names), dtype=np.bool_))
    suspects = np.zeros(len(wrong), dtype=np.bool_)
    suspects[np.argsort(-wrong, kind="stable")[: count_expected(wrong)]] = True
    return HiddenSource(
        column=encoder.feature_labels[column],
        position=column,
        where=describe_groups(encoder, column, values, stands_out),
        rows=int(np.count_nonzero(is_there)),
        share_there=_average(by_value, stands_out),
        share_elsewhere=_average(by_value, ~stands_out),
        share_as_feature=share_wrong,
        share_as_source=share_as_source,
        interval_as_source=bound_share(share_as_source, by_value, noise, posterior, labels, weight),
        suspects_as_feature=(int(np.count_nonzero(doubted & is_there)), int(np.count_nonzero(doubted))),
        suspects_as_source=(int(np.count_nonzero(suspects & is_there)), int(np.count_nonzero(suspects))),
        ranges=_find_ranges(upper, stands_out) if _is_cut_into_ranges(encoder, column, values) else None,
        has_missing=bool(stands_out[np.isnan(upper)].any()),
        margin=margin,
        by_value=by_value,
        group_of_row=group_of_row,
        posterior=posterior,
        noise=noise,
        is_date=column in encoder.schema.dates,
    )


def _explain_by_group(expected: Expectation, judged: JudgedRows, group_of_row: NDArray[np.intp]) -> float:
    """Return the log-likelihood of the labels where each group of rows has offsets and a slope of its own."""
    counted = judged.weight > 0
    groups = (np.flatnonzero((group_of_row == group) & counted) for group in np.unique(group_of_row[counted]))
    return sum(calibrate(expected.take(rows), judged.labels[rows], judged.weight[rows]).explained for rows in groups)


def _err_in_both_directions(by_value: NoiseBySource) -> NDArray[np.bool_]:
    """Tell which sources mislabel two classes at least, more often than is common.

    Labels that are wrong in one direction only cannot be told from rows that are of that class more often.
    """
    is_above = by_value.class_intervals[:, :, 0] > 1.0 - np.diag(by_value.common)
    return np.asarray(is_above.sum(axis=1) >= 2)


def _average(by_value: NoiseBySource, chosen: NDArray[np.bool_]) -> float:
    """Return the share of wrong labels of some sources together."""
    return float(by_value.shares[chosen] @ by_value.counts[chosen] / by_value.counts[chosen].sum())
