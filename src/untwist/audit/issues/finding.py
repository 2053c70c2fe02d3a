"""What else is wrong with the data: all that is looked for, in one list."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _get_feature_names

from untwist.arguments import Array
from untwist.audit.issues.columns import find_constants, find_ids, find_leaks
from untwist.audit.issues.drift import find_drift
from untwist.audit.issues.duplicates import find_copies, find_duplicates
from untwist.audit.issues.groups import find_failing_groups, find_small_classes
from untwist.audit.issues.issue import KINDS, DataIssue
from untwist.audit.issues.rows import ComparedRows
from untwist.data.batches import Batches
from untwist.data.columns import NUMERIC, describe_array
from untwist.data.encoding import TableEncoder
from untwist.data.labels import refuse_missing
from untwist.data.tables import LARGEST_CODE, bring_to_host, learn

__all__ = ["find_data_issues", "find_issues_in"]


def find_data_issues(
    X: Any,
    y: ArrayLike | None = None,
    *,
    pred_probs: ArrayLike | None = None,
    time: ArrayLike | None = None,
    item: ArrayLike | None = None,
) -> list[DataIssue]:
    """Find what else is wrong with data than labels; nothing is fitted but a small tree for each column.

    Parameters
    ----------
    X : table
        The rows, whatever `fit` takes: numbers, categories, missing values.
    y : array-like or None
        The labels; without them leaks, conflicting duplicates, small classes and failing groups are not looked for.
    pred_probs : array-like of shape (n_rows, n_classes) or None
        Posteriors of models that have not seen each row, in the order of the sorted labels; without them failing groups
        are not looked for.
    time : array-like or None
        When each row was taken, as numbers or dates; without it drift is looked for along the order of the rows only.
    item : array-like or None
        What each row is about: rows of one item are meant to be equal.

    Returns
    -------
    list of DataIssue
        By kind; nothing where nothing was found.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> find_data_issues(X, X[:, 0] + X[:, 1] > 0)
    []
    >>> X[7] = X[5]
    >>> [(issue.kind, issue.rows.tolist()) for issue in find_data_issues(X)]
    [('exact_duplicates', [5, 7])]
    """
    if len(np.shape(X)) != 2:
        raise ValueError(f"X must be a table of two dimensions, rows and columns, got shape {np.shape(X)}")
    if isinstance(X, Batches):
        schema, head = X.learn(max_categories=LARGEST_CODE), X.head
    else:
        schema, head = learn(X, max_categories=LARGEST_CODE), X
    encoder = TableEncoder(np.shape(X)[1], _get_feature_names(head), schema)
    numbers = encoder.encode_dense(X)
    labels, classes = None, np.zeros(0)
    if y is not None:
        refuse_missing(y)
        classes, labels = np.unique(np.asarray(bring_to_host(y)), return_inverse=True)
        if labels.shape != (len(numbers),):
            raise ValueError(f"y must be one label for each of the {len(numbers)} rows, got shape {np.shape(y)}")
    posterior = None
    if pred_probs is not None:
        posterior = np.asarray(pred_probs, dtype=np.float64)
        if labels is None or posterior.shape != (len(numbers), len(classes)):
            wanted = "y too" if labels is None else f"shape {(len(numbers), len(classes))}, got {posterior.shape}"
            raise ValueError(f"pred_probs needs {wanted}")
    return find_issues_in(
        numbers, encoder, labels, classes, posterior=posterior, time=read_times(time, len(numbers)), item=item
    )


def read_times(time: ArrayLike | None, n_rows: int) -> Array | None:
    """Return times as numbers, NaN where there is none; a ValueError where they are none, or not one for each row.

    Parameters
    ----------
    time : array-like or None
        Numbers or dates.
    n_rows : int
        How many there have to be.

    Returns
    -------
    array or None
    """
    if time is None:
        return None
    values = np.asarray(time)
    if values.shape != (n_rows,):
        raise ValueError(f"time must be one for each of the {n_rows} rows, got shape {values.shape}")
    column = describe_array("time", values)
    if column.kind not in NUMERIC:
        raise ValueError("time must hold numbers or dates: convert it, say by pandas.to_datetime")
    return np.asarray(column.read_numbers(), dtype=np.float64)


def find_issues_in(
    numbers: Array,
    encoder: TableEncoder,
    labels: NDArray[np.intp] | None,
    classes: NDArray[Any],
    *,
    posterior: Array | None = None,
    weight: Array | None = None,
    time: Array | None = None,
    time_column: int | None = None,
    item: ArrayLike | None = None,
    are_alone: bool = True,
) -> list[DataIssue]:
    """Find what is wrong with rows that are numbers already.

    Parameters
    ----------
    numbers : array of shape (n_rows, n_columns)
        A category is its index, NaN a missing value.
    encoder : TableEncoder
        What the columns are.
    labels, classes : arrays
        The index of each row's label, None if there are none, and the labels that there are.
    posterior, weight : arrays or None
        What models say that have not seen each row, and how much it counts.
    time : array or None
        When each row was taken.
    time_column : int or None
        The column that is the time itself.
    item : array-like or None
        What each row is about.
    are_alone : bool, default True
        Whether each row is a case of its own. Where rows of a group are alike, tests that count rows find failures and
        drift that are chance, so that neither is looked for.

    Returns
    -------
    list of DataIssue
    """
    # Most tests look at one column after the other, each of which lies in one piece then.
    table = ComparedRows(np.asfortranarray(numbers), encoder, range(numbers.shape[1]))
    issues, constant = find_constants(table)
    table = replace(table, columns=[column for column in table.columns if column not in constant])
    id_issues, ids = find_ids(table)
    issues += id_issues
    table = replace(table, columns=[column for column in table.columns if column not in ids])
    if labels is not None:
        issues += find_leaks(table, labels) + find_small_classes(labels, classes)
    if labels is not None and posterior is not None and are_alone:
        issues += find_failing_groups(table, labels, posterior, np.ones(len(labels)) if weight is None else weight)
    if are_alone:
        issues += find_drift(table, labels, np.arange(len(numbers), dtype=np.float64), "the order of the rows")
    if are_alone and time is not None:
        name = "time" if time_column is None else table.name(time_column)
        issues += find_drift(table, labels, time, name, without=time_column)
    if table.columns:
        issues += _find_duplicates_of_items(table, labels, classes, item)
    order = list(KINDS)
    return sorted(issues, key=lambda one: (order.index(one.kind), -one.severity))


def _find_duplicates_of_items(
    table: ComparedRows, labels: NDArray[np.intp] | None, classes: NDArray[Any], item: ArrayLike | None
) -> list[DataIssue]:
    """Find equal rows; rows of one item, which are meant to be equal, count once."""
    if item is None:
        return find_duplicates(table, labels, classes, find_copies(table))
    kept = np.sort(np.unique(np.asarray(item).astype(str), return_index=True)[1])
    firsts = replace(table, numbers=table.numbers[kept])
    issues = find_duplicates(firsts, None if labels is None else labels[kept], classes, find_copies(firsts))
    return [_name_rows(one, kept) for one in issues]


def _name_rows(issue: DataIssue, positions: NDArray[np.intp]) -> DataIssue:
    """Return a finding about some rows with their positions among all."""
    examples = tuple(one._replace(rows=tuple(positions[list(one.rows)].tolist())) for one in issue.examples)
    return replace(issue, rows=positions[issue.rows], examples=examples)
