"""Columns that give the label away, that say nothing, or that name the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.audit.issues.issue import DataIssue, Example, name_column
from untwist.audit.issues.rows import ComparedRows

__all__ = ["find_constants", "find_ids", "find_leaks", "measure_leak"]

#: A column may leak the label if a small tree on it alone tells more than this share of the rows right.
LEAK_ACCURACY = 0.99
#: A column that leaks the label also undoes more than this share of the errors that the most frequent class makes.
LEAK_GAIN = 0.5
#: Leaks are not looked for if there are more classes than this.
MOST_LEAK_CLASSES = 50
#: Leaks are not looked for if a class has fewer rows than this.
LEAST_LEAK_ROWS = 5
#: Leaks are looked for in this many rows, at most.
MOST_LEAK_SAMPLE = 20_000
#: Leaves of the tree that looks for a leak, at most; where there are many classes, two for each.
LEAK_TREE_LEAVES = 16
#: Rows in a leaf of the tree that looks for a leak, at least.
LEAK_TREE_LEAF = 5
#: Infinity becomes this and a missing value its negative, as the tree takes finite numbers only.
FAR_AWAY = 1e30

#: A column says nearly nothing if fewer rows than this, and a smaller share of them, differ from its usual value.
FEW_ROWS = 5
FEW_SHARE = 0.001

#: Columns that a sentence names, at most.
MOST_NAMES = 6

#: A column with fewer rows is not taken for one that names the rows.
LEAST_ID_ROWS = 50
#: A column of text names the rows if more than this share of its values are different.
DISTINCT_SHARE = 0.95
#: Whole numbers name the rows if they would all be different by chance with no more than this probability.
ID_CHANCE = 1e-6


def measure_leak(values: Array, labels: NDArray[np.intp]) -> float | None:
    """Measure how often a column alone tells the label, where that is so often that the column leaks it.

    Parameters
    ----------
    values : array
        The column as numbers, NaN where missing.
    labels : array of int
        The index of each row's label.

    Returns
    -------
    float or None
        The share of rows that a small tree gets right that has not seen them; None where the column is no leak, or
        where there are too few rows of a class, or too many classes.
    """
    from sklearn.model_selection import StratifiedKFold
    from sklearn.tree import DecisionTreeClassifier

    rows_of_class = np.bincount(labels)
    rows_of_class = rows_of_class[rows_of_class > 0]
    if not 2 <= len(rows_of_class) <= MOST_LEAK_CLASSES or rows_of_class.min() < LEAST_LEAK_ROWS:
        return None
    largest_share = rows_of_class.max() / len(labels)
    least_accuracy = max(LEAK_ACCURACY, largest_share + LEAK_GAIN * (1.0 - largest_share))
    # Trees take numbers of single precision, and nothing else converts them where arguments are not checked.
    finite = np.clip(np.nan_to_num(values, nan=-FAR_AWAY), -FAR_AWAY, FAR_AWAY)[:, None].astype(np.float32)
    n_leaves = max(LEAK_TREE_LEAVES, 2 * len(rows_of_class))
    tree = DecisionTreeClassifier(max_leaf_nodes=n_leaves, min_samples_leaf=LEAK_TREE_LEAF, random_state=0)

    def measure_half(seen: NDArray[np.intp], unseen: NDArray[np.intp]) -> float:
        # Tables may have many columns, and checks of the arguments would take longer than the trees.
        tree.fit(finite[seen], labels[seen], check_input=False)
        return float(np.mean(tree.predict(finite[unseen], check_input=False) == labels[unseen]))

    first, second = StratifiedKFold(2).split(finite, labels)
    accuracy_of_first = measure_half(*first)
    if (accuracy_of_first + 1.0) / 2.0 <= least_accuracy:  # A second half without any error would not make it a leak.
        return None
    accuracy = (accuracy_of_first + measure_half(*second)) / 2.0
    return accuracy if accuracy > least_accuracy else None


def find_leaks(table: ComparedRows, labels: NDArray[np.intp]) -> list[DataIssue]:
    """Find columns that tell the label all by themselves: they may not be known yet when a prediction is wanted.

    Parameters
    ----------
    table : ComparedRows
        The rows.
    labels : array of int
        The index of each row's label.

    Returns
    -------
    list of DataIssue
        One for each such column.
    """
    drawn = table.draw(MOST_LEAK_SAMPLE)
    drawn = drawn[np.lexsort((labels[drawn], table.hashes[drawn]))]  # The order of the rows makes no difference.
    issues = []
    for column in table.columns:
        accuracy = measure_leak(table.numbers[drawn, column], labels[drawn])
        if accuracy is not None:
            reason = (
                f"{table.name(column)} alone tells the label in {accuracy:.1%} of the rows; is it known in advance?"
            )
            name = table.encoder.feature_labels[column]
            issues.append(DataIssue("leak", np.zeros(0, dtype=np.intp), (name,), accuracy, reason))
    return issues


def find_constants(table: ComparedRows) -> tuple[list[DataIssue], list[int]]:
    """Find columns with one value only, or with so few others that nothing can be learned from them.

    Parameters
    ----------
    table : ComparedRows
        The rows.

    Returns
    -------
    list of DataIssue
        At most two: one for all columns that are constant, one for those that nearly are.
    list of int
        The columns that are constant.
    """
    n_rows = len(table)
    few = min(FEW_ROWS - 1, int(FEW_SHARE * n_rows))
    constant, nearly, rows = [], [], []
    for column in table.columns:
        values = table.numbers[:, column]
        # If fewer than five rows differ, the one in the middle of nine does not; what is missing comes last.
        usual = np.sort(values[: 2 * FEW_ROWS - 1])[min(n_rows, 2 * FEW_ROWS - 1) // 2]
        differs = np.flatnonzero(~np.isnan(values) if np.isnan(usual) else values != usual)
        if not len(differs):
            constant.append(column)
        elif len(differs) <= few:
            nearly.append(column)
            rows.append(differs)
    issues = []
    labels = table.encoder.feature_labels
    if constant:
        words = f"{_list_names(table, constant)} {'has' if len(constant) == 1 else 'have'} one value in all rows"
        names = tuple(labels[column] for column in constant)
        issues.append(DataIssue("constant_column", np.zeros(0, dtype=np.intp), names, 1.0, words))
    if nearly:
        together = np.unique(np.concatenate(rows))
        words = f"{_list_names(table, nearly)} {'has' if len(nearly) == 1 else 'have'} one value in all rows but "
        words += f"{max(map(len, rows))}" + ("" if len(nearly) == 1 else " at most") + ": too few to learn from"
        names = tuple(labels[column] for column in nearly)
        examples = tuple(
            Example((int(differs[0]),), table.describe(int(differs[0]), column))
            for column, differs in list(zip(nearly, rows, strict=True))[:3]
        )
        issues.append(DataIssue("constant_column", together, names, 1.0 - len(together) / n_rows, words, examples))
    return issues, constant


def find_ids(table: ComparedRows) -> tuple[list[DataIssue], list[int]]:
    """Find columns that name the rows: they say nothing of new ones.

    Text names the rows where nearly all of it differs. Whole numbers do where none occurs twice, though by chance some
    would, as with birthdays: there are n * n / 2 pairs of n rows, and each pair is equal with one chance in the number
    of values between the lowest and the highest.

    Parameters
    ----------
    table : ComparedRows
        The rows.

    Returns
    -------
    list of DataIssue
        At most one.
    list of int
        These columns.
    """
    found = []
    for column in table.columns:
        values = table.numbers[:, column]
        known = values[~np.isnan(values)]
        if len(known) < LEAST_ID_ROWS:
            continue
        if table.is_category(column):
            if len(np.unique(known)) > DISTINCT_SHARE * len(known):
                found.append(column)
            continue
        if not (known[:LEAST_ID_ROWS] == np.floor(known[:LEAST_ID_ROWS])).all():
            continue
        span = float(known.max() - known.min()) + 1.0
        if not np.isfinite(span) or (known != np.floor(known)).any() or len(np.unique(known)) < len(known):
            continue
        if len(known) * (len(known) - 1) / 2.0 / span > -np.log(ID_CHANCE):
            found.append(column)
    if not found:
        return [], []
    words = f"{_list_names(table, found)} {'differs' if len(found) == 1 else 'differ'} from row to row, as an id does: "
    words += "it says nothing of new rows, leave it out" if len(found) == 1 else "they say nothing of new rows"
    names = tuple(table.encoder.feature_labels[column] for column in found)
    return [DataIssue("id_column", np.zeros(0, dtype=np.intp), names, 1.0, words)], found


def _list_names(table: ComparedRows, columns: list[int]) -> str:
    names = [name_column(table.encoder.feature_labels[column]) for column in columns]
    return ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
