"""What is usual for a label, against a slow twin that looks at one value after the other."""

from collections import Counter

import numpy as np
import pytest

from helpers.report_fixtures import make_customers
from untwist.audit import audit_labels
from untwist.audit.usual import find_usual_values
from untwist.data.encoding import TableEncoder
from untwist.data.tables import Schema


def is_unusual(value, values, holds_categories):
    """Whether at most one in twenty of the values are as rare."""
    known = [one for one in values if one == one]
    if value != value:
        return len(values) - len(known) <= len(values) / 20
    if not known:
        return True
    if not holds_categories:
        low = np.quantile(known, 0.025, method="lower")
        high = np.quantile(known, 0.975, method="higher")
        return not low <= value <= high
    times = Counter(known)
    as_rare = [times[one] for one in times if (times[one], one) <= (times[value], value)]
    return sum(as_rare) <= len(known) / 20


@pytest.fixture(scope="module")
def audit():
    table, labels, _ = make_customers(500)
    rng = np.random.default_rng(0)
    table["rare"] = rng.choice(["a", "b", "c", "d"], 500, p=[0.6, 0.33, 0.04, 0.03])
    table["never there"] = np.nan
    table.loc[rng.random(500) < 0.02, "age"] = np.nan
    return audit_labels(table, labels)


def test_unusual_values_are_those_that_few_rows_of_the_label_have(audit):
    rows = audit.ranking[:200]
    columns = range(audit.table.numbers.shape[1])
    encoder = audit.model.model_.encoder
    found = find_usual_values(encoder, audit.table.numbers, audit.label_indices, rows, columns)
    for column, one in zip(columns, found, strict=True):
        for row, marked in zip(rows.tolist(), one.is_unusual.tolist(), strict=True):
            values = audit.table.numbers[audit.label_indices == audit.label_indices[row], column].tolist()
            expected = is_unusual(audit.table.numbers[row, column], values, column in encoder.schema.categories)
            assert marked == expected, (column, row)
    marked = [one.is_unusual.any() for one in found]
    assert marked[encoder.feature_labels.index("rare")]
    assert marked[encoder.feature_labels.index("age")]


def test_what_is_usual_is_a_range_or_the_commonest_category(audit):
    names = audit.model.model_.encoder.feature_labels
    columns = [names.index(name) for name in ("plan", "age", "never there")]
    rows = np.array([0])
    plan, age, never = find_usual_values(
        audit.model.model_.encoder, audit.table.numbers, audit.label_indices, rows, columns
    )
    label = audit.label_indices[0]
    bearing = audit.table.X[audit.given == audit.given[0]]
    shares = bearing["plan"].value_counts(normalize=True)
    assert plan.texts == {label: f"{shares.index[0]} ({shares.iloc[0]:.0%})"}
    low = bearing["age"].quantile(0.025, interpolation="lower")
    high = bearing["age"].quantile(0.975, interpolation="higher")
    assert age.texts == {label: f"{low:.4g} to {high:.4g}"}
    assert never.texts == {label: "missing"}
    assert not never.is_unusual.any()


def test_the_share_that_is_unusual_ends_at_one_in_twenty():
    encoder = TableEncoder(3, schema=Schema({1: ("p", "q", "r")}))
    table = np.zeros((100, 3))
    table[:, 0] = np.arange(100)
    table[:, 1] = np.repeat([0.0, 1.0, 2.0], [5, 4, 91])
    table[95:, 2] = np.nan
    labels = np.zeros(100, dtype=int)
    rows = np.arange(100)
    numbers, categories, gaps = find_usual_values(encoder, table, labels, rows, [0, 1, 2])
    assert np.flatnonzero(numbers.is_unusual).tolist() == [0, 1, 98, 99]
    assert numbers.texts == {0: "2 to 97"}
    assert np.flatnonzero(categories.is_unusual).tolist() == [5, 6, 7, 8]  # With the next rarest it would be nine.
    assert categories.texts == {0: "r (91%)"}
    assert np.flatnonzero(gaps.is_unusual).tolist() == [95, 96, 97, 98, 99]
    assert gaps.texts == {0: "0"}
    table[94, 2] = np.nan  # Six in a hundred are nothing unusual.
    table[:6, 1] = np.nan
    _, categories, gaps = find_usual_values(encoder, table, labels, rows, [0, 1, 2])
    assert not gaps.is_unusual.any()
    assert np.flatnonzero(categories.is_unusual).tolist() == [6, 7, 8]
    assert categories.texts == {0: "r (91%)"}
    table[:5, 1] = 0.0
    table[5, 1] = np.nan
    (categories,) = find_usual_values(encoder, table, labels, rows, [1])
    assert np.flatnonzero(categories.is_unusual).tolist() == [5, 6, 7, 8]


def test_categories_that_make_up_one_in_twenty_together_are_unusual():
    encoder = TableEncoder(1, schema=Schema({0: ("p", "q", "r")}))
    for times, n_unusual in (([2, 2, 36], 2), ([1, 1, 38], 2), ([3, 0, 37], 0), ([0, 2, 38], 2), ([0, 0, 40], 0)):
        table = np.repeat([0.0, 1.0, 2.0], times)[:, None]
        (found,) = find_usual_values(encoder, table, np.zeros(40, dtype=int), np.arange(40), [0])
        assert np.count_nonzero(found.is_unusual) == n_unusual
        assert not found.is_unusual[-1]


def test_what_is_usual_is_asked_of_the_rows_of_each_label():
    encoder = TableEncoder(2)
    table = np.column_stack([np.r_[np.arange(40), 100 + np.arange(40)], np.r_[np.full(40, np.nan), np.zeros(40)]])
    labels = np.repeat([0, 1], 40)
    labels[0], labels[79] = 1, 0
    numbers, gaps = find_usual_values(encoder, table, labels, np.array([0, 20, 79]), [0, 1])
    assert numbers.is_unusual.tolist() == [False, False, False]  # The ends of a few rows are usual.
    assert numbers.texts == {0: "1 to 139", 1: "0 to 138"}
    assert gaps.texts == {0: "0", 1: "0"}
    (only,) = find_usual_values(encoder, table[:40], np.zeros(40, dtype=int), np.array([3]), [1])
    assert (only.texts, only.is_unusual.tolist()) == ({0: "missing"}, [False])
    assert find_usual_values(encoder, table, labels, np.array([20]), [0])[0].texts == {0: "1 to 139"}
