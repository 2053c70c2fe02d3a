"""What is usual for a label, against a slow twin that looks at one value after the other."""

from collections import Counter

import numpy as np
import pytest

from helpers.report_fixtures import make_customers
from untwist.audit import audit_labels
from untwist.audit.usual import find_usual_values


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
    return audit_labels(table, labels, seeks_sources=False)


def test_unusual_values_are_those_that_few_rows_of_the_label_have(audit):
    rows = audit.ranking[:200]
    columns = range(audit.numbers.shape[1])
    encoder = audit.fitted.encoder
    found = find_usual_values(encoder, audit.numbers, audit.label_indices, rows, columns)
    for column, one in zip(columns, found, strict=True):
        for row, marked in zip(rows.tolist(), one.is_unusual.tolist(), strict=True):
            values = audit.numbers[audit.label_indices == audit.label_indices[row], column].tolist()
            expected = is_unusual(audit.numbers[row, column], values, column in encoder.schema.categories)
            assert marked == expected, (column, row)
    marked = [one.is_unusual.any() for one in found]
    assert marked[encoder.feature_labels.index("rare")]
    assert marked[encoder.feature_labels.index("age")]


def test_what_is_usual_is_a_range_or_the_commonest_category(audit):
    names = audit.fitted.encoder.feature_labels
    columns = [names.index(name) for name in ("plan", "age", "never there")]
    rows = np.array([0])
    plan, age, never = find_usual_values(audit.fitted.encoder, audit.numbers, audit.label_indices, rows, columns)
    label = audit.label_indices[0]
    bearing = audit.X[audit.given == audit.given[0]]
    shares = bearing["plan"].value_counts(normalize=True)
    assert plan.texts == {label: f"{shares.index[0]} ({shares.iloc[0]:.0%})"}
    low = bearing["age"].quantile(0.025, interpolation="lower")
    high = bearing["age"].quantile(0.975, interpolation="higher")
    assert age.texts == {label: f"{low:.4g} to {high:.4g}"}
    assert never.texts == {label: "missing"}
    assert not never.is_unusual.any()
