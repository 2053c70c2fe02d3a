"""Names of sources and items, and which rows are labels of one thing."""

import datetime
from collections import defaultdict, namedtuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from untwist.data.sources import (
    UNKNOWN,
    LabelSources,
    find_items,
    find_source_columns,
    hash_rows,
    look_up_sources,
    read_names,
)


@pytest.mark.parametrize(
    ("values", "names", "index"),
    [
        (["b", "a", "b"], ["a", "b"], [1, 0, 1]),
        ([3, 1, 3], [1, 3], [1, 0, 1]),
        (np.array([3, 1, 3], dtype=np.uint8), [1, 3], [1, 0, 1]),
        ([0.5, np.nan, -1.0], [-1.0, 0.5], [1, UNKNOWN, 0]),
        ([True, False, True], [False, True], [1, 0, 1]),
        ([None, "x", None], ["x"], [UNKNOWN, 0, UNKNOWN]),
        ([None, 2, 10], [2, 10], [UNKNOWN, 0, 1]),
        (np.array(["b", np.nan, "a"], dtype=object), ["a", "b"], [1, UNKNOWN, 0]),
        ([None, None, None], [], [UNKNOWN] * 3),
        (np.array(["2024-02", "NaT", "2023-12"], dtype="datetime64[M]"), ["2023-12", "2024-02"], [1, UNKNOWN, 0]),
        ([datetime.date(2024, 2, 1), None, datetime.date(2023, 1, 1)], ["2023-01-01", "2024-02-01"], [1, UNKNOWN, 0]),
        (pd.Series(["b", "a", None], dtype="category"), ["a", "b"], [1, 0, UNKNOWN]),
        (pd.Series([2, 1, None], dtype="Int64"), [1, 2], [1, 0, UNKNOWN]),
        (np.ma.array(["b", "a", "c"], mask=[0, 0, 1]), ["a", "b"], [1, 0, UNKNOWN]),
        (pd.Series(["b", "a", None], dtype="string"), ["a", "b"], [1, 0, UNKNOWN]),
        (np.array(["b", "a", "b"], dtype=">U2"), ["a", "b"], [1, 0, 1]),
        (np.array([3, 1, 3], dtype=">i4"), [1, 3], [1, 0, 1]),
        (pd.Series([("b", 2), ("a", 1), None]), ["('a', 1)", "('b', 2)"], [1, 0, UNKNOWN]),
        (pd.Series([(2,), (1, 3), (2,)]), ["(1, 3)", "(2,)"], [1, 0, 1]),
    ],
)
def test_names_of_any_kind(values, names, index):
    found, numbers = read_names("source", values, 3)
    assert found.dtype.isnative
    assert found.tolist() == names
    assert numbers.tolist() == index
    assert found.dtype.kind in "biufU"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["a", "b"], "source must be one name per row of X, got 2 for 3 rows"),
        ([["a"], ["b"], ["c"]], r"source must be one name per row, got an array of shape \(3, 1\)"),
        ("abc", r"source must be the values, one per row, and not the name of a column: give source=X\['abc'\]"),
        (7, r"source must be one name per row, got an array of shape \(\)"),
        (np.array(["a", 1, "b"], dtype=object), "all text or all numbers, got both"),
        ([1.0, np.inf, 2.0], "source must hold finite numbers or text"),
    ],
)
def test_what_cannot_name_sources_is_refused(values, words):
    with pytest.raises(ValueError, match=words):
        read_names("source", values, 3)


def test_known_sources_are_looked_up():
    names = np.array(["a", "b", "c"])
    assert look_up_sources(["c", None, "a"], names, 3).tolist() == [2, UNKNOWN, 0]
    assert look_up_sources([None], names, 1).tolist() == [UNKNOWN]
    assert look_up_sources([2, 1], np.array([1.0, 2.0]), 2).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"names that fit has not seen: \['d'\]; give None"):
        look_up_sources(["c", "d"], names, 2)
    with pytest.raises(ValueError, match="source"):
        look_up_sources([1, 2], names, 2)


def test_equal_rows_have_one_hash_and_others_another():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (2000, 6)).astype(float)
    table[table == 2] = np.nan
    hashes = hash_rows(table)
    by_hash, by_content = defaultdict(set), defaultdict(set)
    for row, value in zip(table, hashes.tolist(), strict=True):
        by_hash[value].add(row.tobytes())
        by_content[row.tobytes()].add(value)
    assert {len(one) for one in by_hash.values()} == {len(one) for one in by_content.values()} == {1}
    assert len(by_hash) == len(np.unique(np.nan_to_num(table, nan=9.0), axis=0)) > 400


def test_a_hash_knows_no_sign_of_zero_and_no_kind_of_nan():
    odd_nan = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    pair = np.array([[0.0, np.nan], [-0.0, odd_nan]])
    assert len(set(hash_rows(pair).tolist())) == 1
    assert len(set(hash_rows(np.array([[1.0, 2.0], [2.0, 1.0]])).tolist())) == 2
    whole = np.arange(12).reshape(4, 3)
    np.testing.assert_array_equal(hash_rows(whole), hash_rows(whole.astype(np.float64)))


def test_a_sparse_table_has_the_hashes_of_the_dense_one():
    rng = np.random.default_rng(0)
    table = rng.integers(-1, 2, (300, 7)).astype(float)
    table[rng.random(table.shape) < 0.1] = np.nan
    wide = sparse.csr_matrix(table)
    wide.data[:20] = 0.0  # Zeros that are there, and cells in two parts.
    cells = wide.tocoo()
    twice = [np.repeat(one, 2) for one in (cells.data / 2, cells.row, cells.col)]
    halves = sparse.coo_matrix((twice[0], twice[1:]), shape=wide.shape)
    for form in (wide, wide.tocsc(), sparse.csr_array(wide), halves):
        np.testing.assert_array_equal(hash_rows(form), hash_rows(wide.toarray()))
    assert len(np.unique(hash_rows(wide))) == len(np.unique(np.nan_to_num(wide.toarray(), nan=9.0), axis=0))


def find_groups_slowly(contents, sources, weight, named):
    """The rows of each item, as sets: what `find_items` does, row by row."""
    groups = defaultdict(list)
    for row, (content, heavy) in enumerate(zip(contents, weight, strict=True)):
        key = ("content", content) if heavy > 0 else ("row", row)
        if named is not None:
            key = ("name", named[row]) if named[row] >= 0 and weight[row] > 0 else ("row", row)
        groups[key].append(row)
    items = set()
    for (kind, _), rows in groups.items():
        by = [sources[row] for row in rows]
        together = kind != "content" or len(set(by)) == len(by)
        items |= {frozenset(rows)} if together else {frozenset([row]) for row in rows}
    n_repeated = sum(len(rows) for rows in items if len(rows) > 1)
    if named is None and n_repeated < 0.5 * sum(heavy > 0 for heavy in weight):
        return {frozenset([row]) for row in range(len(contents))}
    return items


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.integers(-1, 3), st.integers(0, 1), st.sampled_from([0.0, 1.0, 0.5])),
        min_size=1,
        max_size=25,
    ),
    named=st.booleans(),
    seed=st.integers(0, 99),
)
def test_items_are_those_that_a_slow_look_finds_in_any_order(rows, named, seed):
    contents, sources, labels, weight = (np.array(column) for column in zip(*rows, strict=True))
    contents, labels = contents.astype(np.uint64), labels.astype(np.uint32)
    rng = np.random.default_rng(seed)
    names = rng.integers(-1, 4, len(rows)) if named else None
    items = find_items(contents, sources, labels, weight, names)
    found = {frozenset(np.flatnonzero(items == one).tolist()) for one in range(items.max() + 1)}
    assert found == find_groups_slowly(contents.tolist(), sources.tolist(), weight.tolist(), names)
    order = rng.permutation(len(rows))
    again = find_items(
        contents[order], sources[order], labels[order], weight[order], None if names is None else names[order]
    )

    def describe(order, items):
        columns = [contents, sources, labels, weight] + ([] if names is None else [names])
        return sorted(zip(*(column[order].tolist() for column in columns), items.tolist(), strict=True))

    assert describe(order, again) == describe(np.arange(len(rows)), items)


def test_sources_know_whether_items_have_several_labels():
    names, index = read_names("source", ["a", "b", "a"], 3)
    assert not LabelSources(names, index, np.array([0, 1, 2])).has_repeated_items
    assert LabelSources(names, index, np.array([0, 0, 1])).has_repeated_items
    assert LabelSources(names, index, np.array([0, 0, 1])).n_items == 2


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(-1, 2), st.sampled_from([0.0, -0.0, 1.0, 2.0, np.nan]), st.sampled_from([0.0, 1.0])),
        min_size=1,
        max_size=8,
    )
)
def test_a_column_is_the_source_where_values_and_sources_are_pairs(rows):
    sources, *columns = (np.array(column) for column in zip(*rows, strict=True))
    columns = [*columns, sources / 3.0, np.where(sources == -1, np.nan, sources)]
    found = find_source_columns(np.column_stack(columns), sources)
    for column, is_source in zip(columns, found.tolist(), strict=True):
        values = ["missing" if value != value else value for value in column.tolist()]
        pairs = set(zip(values, sources.tolist(), strict=True))
        assert is_source is (len(pairs) == len(set(values)) == len(set(sources.tolist())))
    assert found[-2:].all()


def test_a_column_may_differ_from_the_source_in_its_last_row_alone():
    sources = np.arange(5000) % 7
    almost = sources.copy()
    almost[-1] += 1
    assert find_source_columns(np.column_stack([sources, almost]).astype(float), sources).tolist() == [True, False]


def test_names_of_several_parts_may_have_a_type_of_their_own():
    place = namedtuple("place", ["town", "ward"])
    names, index = read_names("source", pd.Series([place(1, 2), place(1, 3), place(1, 2)]), 3)
    assert names.tolist() == ["place(town=1, ward=2)", "place(town=1, ward=3)"]
    assert index.tolist() == [0, 1, 0]


def test_names_of_several_parts_may_come_as_a_list():
    for last, text in (((1, 2), "(1, 2)"), ((1, 2, 3), "(1, 2, 3)")):
        names, index = read_names("groups", [("a", 1), None, last], 3)
        assert names.tolist() == ["('a', 1)", text]
        assert index.tolist() == [0, -1, 1]
    with pytest.raises(ValueError, match=r"groups must be one name per row, got an array of shape \(2, 2\)"):
        read_names("groups", [["a", 1], ["b", 2]], 2)
