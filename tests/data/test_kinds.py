"""What a column held when it was learned from, and what it holds now: kinds that disagree are refused or warned of."""

import datetime
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import untwist
from untwist import PILBoostClassifier
from untwist.audit import audit_labels
from untwist.batches import Batches
from untwist.data import tables
from untwist.data.sources import read_names
from untwist.data.tables import FEWEST_STRANGERS, learn
from untwist.explain import shap_values
from untwist.files import dumps, loads

N = 80
CODES = np.arange(N) % 8
LABELS = (CODES >= 4).astype(int)
WEEK = [datetime.timedelta(int(code)) for code in CODES]


def make_frames(values):
    """Yield a frame of each library with the values as its first column."""
    import polars as pl
    import pyarrow as pa

    values = list(values)
    yield pd.DataFrame({"a": values, "b": np.arange(N) / N})
    yield pl.DataFrame({"a": values, "b": np.arange(N) / N})
    yield pa.table({"a": values, "b": np.arange(N) / N})
    array = np.empty((N, 2), dtype=object)
    array[:, 0], array[:, 1] = values, np.arange(N) / N
    yield array


KINDS = {
    "numbers": [int(code) for code in CODES],
    "Booleans": [bool(code >= 4) for code in CODES],
    "text": [f"w{code}" for code in CODES],
    "dates": [datetime.date(2020, 1, 1) + week for week in WEEK],
    "lengths of time": WEEK,
}


def fit(X, y=LABELS, **settings):
    return PILBoostClassifier(alpha=2, n_estimators=5, max_depth=2, **settings).fit(X, y)


@pytest.mark.parametrize("before", KINDS)
@pytest.mark.parametrize("now", KINDS)
def test_kinds_that_disagree_are_refused_or_warned_of(before, now):
    pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for learned in make_frames(KINDS[before]):
        schema = learn(learned)
        for given in make_frames(KINDS[now]):
            if before == now:
                schema.encode(given)
            elif (before, now) == ("numbers", "Booleans"):
                with pytest.warns(
                    UserWarning, match=r"column ('a'|0) holds Booleans now, and held numbers when fitted"
                ):
                    schema.encode(given)
            else:
                with pytest.raises(ValueError, match=r"column ('a'|0)( |:)"):
                    schema.encode(given)


def test_booleans_and_numbers_of_0_and_1_are_the_same():
    truths, numbers = pd.DataFrame({"a": [True, False]}), pd.DataFrame({"a": [1.0, 0.0]})
    np.testing.assert_array_equal(learn(truths).encode(numbers), [[1], [0]])
    np.testing.assert_array_equal(learn(truths).encode(np.array([[1], [np.nan]])), [[1], [np.nan]])
    with pytest.raises(ValueError, match="column 'a' held Booleans when fitted, and numbers other than 0 and 1 now"):
        learn(truths).encode(2 * numbers)
    with pytest.raises(ValueError, match="column 1 held Booleans"):
        learn(np.ones((2, 2), dtype=bool)).encode(sparse.csr_array([[1.0, 7.0]]))
    with pytest.warns(UserWarning, match="columns 0, 1 hold Booleans now"):
        learn(np.ones((2, 2))).encode(np.ones((2, 2), dtype=bool))


def test_every_way_to_give_rows_heeds_the_kind(tmp_path):
    numbers = pd.DataFrame({"a": CODES * 1.0, "b": np.arange(N) / N})
    lengths = numbers.assign(a=pd.to_timedelta(CODES, "D"))
    untwist.save(fit(lengths), tmp_path / "model")
    for model, rows, words in (
        (fit(numbers), lengths, "column 'a' held numbers when fitted, and lengths of time now"),
        (fit(lengths), numbers, "column 'a' held lengths of time when fitted, and numbers now"),
        (untwist.load(tmp_path / "model"), numbers, "column 'a' held lengths of time when fitted, and numbers now"),
    ):
        for call in (model.predict, model.predict_proba, partial(shap_values, model)):
            with pytest.raises(ValueError, match=words):
                call(rows)
    with pytest.raises(ValueError, match="validation rows: column 'a' held numbers when fitted"):
        PILBoostClassifier(alpha=2, n_estimators=2).fit(numbers, LABELS, X_val=lengths, y_val=LABELS)
    for nothing in (np.nan, pd.NaT):  # pandas makes dates of the latter.
        missing = lengths.assign(a=nothing)
        for model in (fit(lengths), fit(numbers)):
            assert model.predict(missing).shape == (N,)


def test_models_that_know_kinds_and_names_keep_them_in_files():
    frame = pd.DataFrame({2019: pd.to_timedelta(CODES, "D"), 2020: CODES >= 4})
    encoder = loads(dumps(fit(frame))).model_.encoder
    assert encoder.schema.durations == {0}
    assert encoder.schema.truths == {1}
    assert encoder.other_names == ("2019", "2020")


def test_a_model_of_numbers_from_a_file_warns_of_booleans_too():
    numbers = pd.DataFrame({"a": CODES * 1.0})
    with pytest.warns(UserWarning, match="column 'a' holds Booleans now, and held numbers when fitted"):
        loads(dumps(fit(numbers))).predict_proba(numbers > 3)


# ---- categories ----


def test_a_column_without_a_known_category_is_warned_of():
    words = pd.DataFrame({"a": pd.Categorical([f"w{code}" for code in CODES]), "b": np.arange(N)})
    schema = learn(words)
    other = words.assign(a=words["a"].astype(str).str.upper())
    with pytest.warns(UserWarning, match="column 'a' holds no category that it held when fitted, but 'W0', 'W1', 'W2'"):
        schema.encode(other)
    # A known category of the type that is in no row does not count, and a single known row is enough.
    kept = other.assign(a=pd.Categorical(other["a"], categories=[*other["a"].unique(), "w0"]))
    with pytest.warns(UserWarning, match="column 'a' holds no category"):
        schema.encode(kept)
    # A handful of rows may well hold none but new categories; missing ones do not count.
    assert FEWEST_STRANGERS == 10
    with pytest.warns(UserWarning, match="column 'a' holds no category"):
        schema.encode(other[:10])
    schema.encode(other[:9])
    schema.encode(other.assign(a=[*other["a"][:9], *[None] * (N - 9)]))
    other.loc[0, "a"] = "w0"
    schema.encode(other)
    schema.encode(words.assign(a=pd.Categorical([None] * N, categories=["x"])))


def test_words_of_truth_are_no_numbers():
    with pytest.warns(UserWarning, match="holds numbers as text"):
        schema = learn(pd.DataFrame({"a": ["1.5", "2.5"]}))
    with pytest.raises(ValueError, match="column 'a' held numbers when fitted, and 'true' now"):
        schema.encode(pd.DataFrame({"a": ["true", "2.5"]}))


# ---- names of columns ----

ORDERED = np.column_stack([CODES, np.arange(N), -CODES])


@pytest.mark.parametrize(
    "names",
    [
        [2019, 2020, 2021],
        [0.5, 1.5, 2.5],
        [0, 1, 2],
        pd.date_range("2020", periods=3),
        pd.MultiIndex.from_product([["x"], [1, 2, 3]]),
        ["p", "q", "r"],
    ],
    ids=["whole", "fractions", "positions", "dates", "tuples", "text"],
)
def test_columns_in_another_order_are_refused(names):
    frame = pd.DataFrame(ORDERED, columns=names)
    for model in (fit(frame), loads(dumps(fit(frame)))):
        expected = model.predict_proba(frame)
        for order in ([0, 2, 1], [1, 0, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]):
            other = frame.iloc[:, order]
            with pytest.raises(ValueError, match="same order"):
                model.predict_proba(other)
            np.testing.assert_array_equal(model.predict_proba(other[list(frame.columns)]), expected)
    with pytest.raises(ValueError, match=r"(?s)validation rows: .*same order"):
        PILBoostClassifier(alpha=2, n_estimators=2).fit(frame, LABELS, X_val=frame.iloc[:, ::-1], y_val=LABELS)


def test_booleans_that_name_columns_are_names():
    frame = pd.DataFrame(ORDERED[:, :2], columns=[False, True])  # As unstack and crosstab make them.
    model = fit(frame)
    with pytest.raises(ValueError, match="in another order: 'True', 'False' in place of 'False', 'True'"):
        model.predict(frame.iloc[:, ::-1])
    model.predict(frame)


def test_other_names_are_refused_and_arrays_go_by_position():
    model = fit(pd.DataFrame(ORDERED, columns=[2019, 2020, 2021]))
    with pytest.raises(ValueError, match="they are other ones: '2020', '2021', '2022' in place of '2019'"):
        model.predict(pd.DataFrame(ORDERED, columns=[2020, 2021, 2022]))
    expected = model.predict_proba(ORDERED)
    np.testing.assert_array_equal(model.predict_proba(pd.DataFrame(ORDERED)), expected)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        np.testing.assert_array_equal(
            model.predict_proba(pd.DataFrame(ORDERED, columns=["2019", "2020", "2021"])), expected
        )
    assert fit(ORDERED).predict(pd.DataFrame(ORDERED, columns=[5, 6, 7])).shape == (N,)


@pytest.mark.parametrize("table", [ORDERED, pd.DataFrame(ORDERED)], ids=["array", "frame"])
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_positions_as_text_in_another_order_are_refused(table):
    model = fit(table)
    same = pd.DataFrame(ORDERED, columns=["0", "1", "2"])  # as they come back from a CSV file
    np.testing.assert_array_equal(model.predict_proba(same), model.predict_proba(table))
    with pytest.raises(ValueError, match="in another order: '2', '0', '1' in place of '0', '1', '2'"):
        model.predict_proba(same[["2", "0", "1"]])


# ---- whole numbers that float64 merges ----

IDS = 2**53 + np.arange(N)


@pytest.mark.parametrize(
    "column",
    [
        IDS,
        IDS.astype(np.uint64),
        pd.array([*IDS[1:], None], dtype="Int64"),
        np.array([int(one) for one in IDS], dtype=object),
        np.array([10**30 + int(one) for one in CODES], dtype=object),
    ],
    ids=["int64", "uint64", "nullable", "objects", "huge"],
)
def test_whole_numbers_that_merge_are_refused(column):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"b": CODES, "id": column})
    tables = [frame, frame.to_numpy(dtype=object, na_value=None)]
    if column.dtype != object or max(column) < 2**63:
        tables += [pl.from_pandas(frame), pa.Table.from_pandas(frame)]
    for X in tables:
        with pytest.raises(
            ValueError, match=r"column ('id'|1) holds \d+ different whole numbers beyond 2\*\*53, .* only"
        ):
            fit(X)
    with pytest.raises(ValueError, match="column 'id' holds"):
        audit_labels(frame, LABELS)
    learn(frame.assign(id=column.astype(str)))
    learn(frame, categorical_features=["id"])
    learn(frame.assign(id=np.arange(N) * 2**40 + 2**60))  # Such numbers stay apart.


@pytest.mark.parametrize("library", ["objects", "pandas", "polars", "pyarrow"])
def test_decimals_that_merge_are_refused(library):
    pa = pytest.importorskip("pyarrow")
    column = pa.array([Decimal(int(one)) for one in IDS])
    table = pa.table({"b": CODES, "id": column})
    make = {
        "objects": lambda: pd.DataFrame({"b": CODES, "id": pd.Series(column.to_pylist(), dtype=object)}),
        "pandas": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": lambda: pytest.importorskip("polars").from_arrow(table),
        "pyarrow": lambda: table,
    }
    with pytest.raises(
        ValueError, match=r"column 'id' holds 80 different whole numbers beyond 2\*\*53, .* only 41 apart"
    ):
        fit(make[library]())
    assert learn(make[library](), categorical_features=["id"]).categories == {1: tuple(IDS.tolist())}


def test_decimals_stay_the_numbers_that_they_are():
    values = [Decimal("0.25"), Decimal("1E+2"), Decimal("1E+400"), Decimal("NaN"), None, Decimal("-3.0")]
    table = pd.DataFrame({"a": pd.Series(values, dtype=object)})
    assert learn(table, categorical_features=["a"]).categories == {0: (-3, 0.25, 100, float("inf"))}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_names_that_are_long_whole_numbers_stay_apart_where_some_are_missing(library):
    values = [None, *IDS[1:].tolist()]
    make = {
        "pandas": lambda: pd.Series(values, dtype="Int64"),
        "polars": lambda: pytest.importorskip("polars").Series(values),
        "pyarrow": lambda: pytest.importorskip("pyarrow").array(values),
    }
    names, index = read_names("item", make[library](), N)
    assert names.tolist() == IDS[1:].tolist()
    assert index.tolist() == list(range(-1, N - 1))


def test_merged_numbers_are_refused_in_sparse_tables_and_in_blocks(tmp_path):
    pytest.importorskip("pyarrow")
    X = np.column_stack([CODES, IDS])
    with pytest.raises(ValueError, match="column 1 holds 80 different whole numbers"):
        fit(sparse.csr_array(X))
    pd.DataFrame(X, columns=["b", "id"]).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="column 'id' holds 80 different whole numbers"):
        fit(Batches(tmp_path / "x.parquet"))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_columns_of_sparse_counts_are_not_looked_at_one_by_one(dtype, monkeypatch):
    monkeypatch.setattr(tables, "describe_array", None)
    learn(sparse.csr_array(np.column_stack([CODES, 1000 * CODES]).astype(dtype)))
    learn(sparse.csr_array((N, 2), dtype=dtype))


def test_long_numbers_as_text_are_categories():
    schema = learn(pd.DataFrame({"id": [str(one) for one in IDS]}))
    assert len(schema.categories[0]) == N


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object])
def test_labels_beyond_the_floats_stay_apart(dtype):
    classes = np.array([2**53, 2**53 + 1, 2**53 + 2])
    y = classes[CODES % 3].astype(dtype)
    model = fit(ORDERED, y)
    assert model.classes_.tolist() == classes.tolist()
    assert loads(dumps(model)).classes_.tolist() == classes.tolist()
    assert set(model.predict(ORDERED).tolist()) <= set(classes.tolist())


def test_labels_that_would_merge_are_refused():
    y = np.array([2**63 + 5, 2**63 + 6, -1], dtype=object)[CODES % 3]
    with pytest.raises(ValueError, match=r"y holds whole numbers beyond .* as text"):
        fit(ORDERED, y)
    unsigned = np.array([2**53, 2**53 + 1], dtype=np.uint64)[LABELS]
    with pytest.raises(ValueError, match="y_val holds whole numbers beyond"):
        PILBoostClassifier(alpha=2, n_estimators=2).fit(
            ORDERED, unsigned, X_val=ORDERED, y_val=unsigned.astype(np.int64)
        )


# ---- what is no table ----


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ({"a": [1, 2]}, r"got a dict: give pandas\.DataFrame\(X\)"),
        ([{"a": 1}, {"a": 2}], "got a list of dict: give pandas"),
        ("table.csv", "got 'table.csv': read the file first"),
        ({1, 2}, "got {1, 2}"),
        (None, "got None"),
        (iter([1, 2]), "got <list_iterator"),
    ],
)
def test_what_is_no_table_is_named(X, words):
    for call in (fit, fit(ORDERED).predict):
        with pytest.raises(ValueError, match=f"X must be a table.*{words}"):
            call(X)


def test_labels_that_are_a_dict_are_named():
    with pytest.raises(ValueError, match=r"y must be labels, one for each row, got \{'y'"):
        fit(ORDERED, {"y": [0, 1]})
