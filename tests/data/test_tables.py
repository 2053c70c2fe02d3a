"""Tables as numbers: equal to a row-by-row twin, whatever the library, the types and the order of the rows."""

import datetime
import decimal
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from untwist.data.cells import Reading
from untwist.data.tables import Schema, bring_to_host, learn
from untwist.data.workers import Workers

# ---- a slow twin: rows of Python values, one at a time ----


def is_missing(value):
    return value is None or value is pd.NA or value != value


def learn_slowly(rows, categorical, weight, most):
    known = {}
    for column in categorical:
        totals = {}
        for row, w in zip(rows, weight, strict=True):
            if not is_missing(row[column]) and w > 0:
                totals.setdefault(row[column], []).append(w)
        ordered = sorted(totals, key=lambda value: (isinstance(value, str), value))
        heaviest = sorted(ordered, key=lambda value: -math.fsum(totals[value]))[:most]
        known[column] = [value for value in ordered if value in heaviest]
    return known


def encode_slowly(rows, known):
    out = []
    for row in rows:
        out.append([])
        for column, value in enumerate(row):
            if is_missing(value):
                out[-1].append(math.nan)
            elif column in known:
                out[-1].append(float(known[column].index(value)) if value in known[column] else math.nan)
            else:
                out[-1].append(float(value))
    return np.array(out)


def stack_objects(rows):
    X = np.empty((len(rows), len(rows[0])), dtype=object)
    for index, row in enumerate(rows):
        X[index] = row
    return X


def make_series(values, dtype, categories=None):
    if dtype == "category":
        return pd.Series(pd.Categorical(values, categories=categories))
    return pd.Series(values, dtype=dtype)


TEXT = st.sampled_from(["", "a", "b", "B", "ä", "1", "1.0", "nan", "True"])
KINDS = {  # The values of a column, and the pandas types that hold them.
    "text": (TEXT, [object, "string", "category"]),
    "int": (st.integers(-3, 3), [object, "Int64", "float64"]),
    "bool": (st.booleans(), [object, "boolean"]),
    "float": (st.sampled_from([-0.0, 1.0, 1.5, -2.5, 1e300, math.inf]), [object, "float64", "Float64"]),
}


@st.composite
def tables(draw, kinds=tuple(KINDS)):
    """Rows of Python values, the kind of each column, and a weight for each row."""
    kinds = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4))
    row = st.tuples(*[st.none() | KINDS[kind][0] for kind in kinds])
    rows = draw(st.lists(row, min_size=1, max_size=12))
    weight = draw(st.lists(st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.0]), min_size=len(rows), max_size=len(rows)))
    return rows, kinds, np.array(weight)


def chosen_of(draw, kinds):
    """Text columns, and some of the others."""
    return [index for index, kind in enumerate(kinds) if kind == "text" or draw(st.booleans())]


def make_frame(rows, kinds, pick):
    """A pandas frame of these rows; `pick` chooses the type of a column."""
    columns = {}
    for index, kind in enumerate(kinds):
        values = [row[index] for row in rows]
        dtype = pick(KINDS[kind][1])
        if dtype == "float64":
            values = [math.nan if value is None else value for value in values]
        columns[f"c{index}"] = make_series(values, dtype)
    return pd.DataFrame(columns)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_equals_the_twin(data):
    rows, kinds, weight = data.draw(tables())
    categorical, most = chosen_of(data.draw, kinds), data.draw(st.integers(1, 5))
    known = learn_slowly(rows, categorical, weight, most)
    expected = encode_slowly(rows, known)
    X = make_frame(rows, kinds, lambda types: data.draw(st.sampled_from(types)))
    for table in (X, stack_objects(rows)):
        schema = learn(table, categorical, weight, most)
        assert {index: list(values) for index, values in schema.categories.items()} == known
        np.testing.assert_array_equal(schema.encode(table), expected)
    assert pickle.loads(pickle.dumps(schema)) == schema


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_order_of_the_rows_does_not_matter(data):
    rows, kinds, weight = data.draw(tables())
    order = data.draw(st.permutations(range(len(rows))))
    X, most = stack_objects(rows), data.draw(st.integers(1, 4))
    categorical = chosen_of(data.draw, kinds)
    schema = learn(X, categorical, weight, most)
    assert learn(X[order], categorical, weight[order], most) == schema
    positive = weight > 0
    assert learn(X[positive], categorical, weight[positive], most) == schema


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_all_libraries_agree(data):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    rows, kinds, weight = data.draw(tables())
    categorical, most = chosen_of(data.draw, kinds), data.draw(st.integers(1, 5))
    known = learn_slowly(rows, categorical, weight, most)
    expected = encode_slowly(rows, known)
    names = [f"c{index}" for index in range(len(kinds))]
    columns = {name: [row[index] for row in rows] for index, name in enumerate(names)}
    choices = {
        "text": [pl.String, pl.Categorical, pl.Enum(["zz", *TEXT.elements])],
        "int": [pl.Int64, pl.Int8, pl.Decimal(9, 2)],
        "bool": [pl.Boolean],
        "float": [pl.Float64],
    }
    types = [data.draw(st.sampled_from(choices[kind])) for kind in kinds]
    polars_frame = pl.DataFrame(columns, schema=dict(zip(names, types, strict=True)))
    choices = {
        "text": [pa.string(), pa.large_string(), pa.dictionary(pa.uint8(), pa.string())],
        "int": [pa.int64(), pa.int8(), pa.decimal128(9, 2)],
        "bool": [pa.bool_()],
        "float": [pa.float64()],
    }
    types = [data.draw(st.sampled_from(choices[kind])) for kind in kinds]
    arrow = pa.table([pa.array(columns[name], type) for name, type in zip(names, types, strict=True)], names=names)
    half = len(rows) // 2
    chunked = pa.concat_tables([arrow.slice(0, half), arrow.slice(half)])
    wrapped = arrow.to_pandas(types_mapper=pd.ArrowDtype)
    schemas = []
    for table in (polars_frame, arrow, chunked, arrow.to_batches()[0], wrapped, stack_objects(rows)):
        schemas.append(learn(table, categorical, weight, most))
        assert {index: list(values) for index, values in schemas[-1].categories.items()} == known
        np.testing.assert_array_equal(schemas[0].encode(table), expected)


# ---- arrays of numbers ----


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_floats_are_not_copied(dtype, order):
    X = np.asarray([[1.0, np.nan], [np.inf, -0.0]], dtype=dtype, order=order)
    schema = learn(X)
    assert schema == Schema({})
    out = schema.encode(X)
    assert out.dtype == dtype
    assert np.shares_memory(out, X)
    strided = np.arange(24, dtype=dtype).reshape(4, 6)[::2, ::-1]
    assert np.shares_memory(schema.encode(strided), strided)
    table = pd.DataFrame(X)
    assert np.shares_memory(learn(table).encode(table), table.to_numpy())
    matrix = sparse.csr_array(np.nan_to_num(X))
    assert np.shares_memory(schema.encode(matrix).data, matrix.data)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (bool, np.float32),
        (np.int8, np.float32),
        (np.uint16, np.float32),
        (np.float16, np.float32),
        (">f4", np.float32),
        (">f8", np.float64),
        (np.int32, np.float64),
        (np.uint64, np.float64),
        (np.longdouble, np.float64),
        (object, np.float64),
    ],
)
@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame])
def test_types_of_numbers(dtype, expected, make):
    X = np.array([[0, 1], [1, 0], [1, 1]], dtype=dtype)
    X = make(X)
    out = learn(X).encode(X)
    assert out.dtype == expected
    assert out.dtype.isnative
    np.testing.assert_array_equal(out, [[0, 1], [1, 0], [1, 1]])


def test_types_of_columns_are_joined():
    small = pd.DataFrame({"a": np.array([1, 2], np.int8), "b": [True, False], "c": ["x", "y"]})
    assert learn(small).encode(small).dtype == np.float32
    large = small.assign(d=[1, 2])
    assert learn(large).encode(large).dtype == np.float64
    assert learn(large).encode(large).flags.f_contiguous


def test_array_likes():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.array([[1.0, 2.0]])

    for X in ([[1, 2]], ((1.0, 2.0),), Wrapped(), [np.array([1, 2])]):
        np.testing.assert_array_equal(learn(X).encode(X), [[1, 2]])


def test_lists_keep_numbers_beside_text():
    X = [[2.5, "b"], [None, "a"], [1, None]]
    schema = learn(X)
    assert schema.categories == {1: ("a", "b")}
    np.testing.assert_array_equal(schema.encode(X), [[2.5, 1], [np.nan, 0], [1, np.nan]])


@pytest.mark.parametrize("kind", [float, int, object])
def test_masked_means_missing(kind):
    X = np.ma.masked_array([[1, 2], [3, 4]], mask=[[False, True], [False, False]], dtype=kind)
    np.testing.assert_array_equal(learn(X).encode(X), [[1, np.nan], [3, 4]])


@pytest.mark.parametrize("make", [np.array, np.rec.array])
def test_structured_arrays_are_refused(make):
    with pytest.raises(ValueError, match=r"got a structured array of NumPy: give pandas.DataFrame\(X\)"):
        learn(make([(1.0, 2), (3.0, 4)], dtype=[("a", float), ("b", int)]))


def test_what_nothing_masks_is_a_plain_array():
    for values in (np.arange(3), np.array(["a", "b"]), np.zeros((2, 2))):
        plain = bring_to_host(np.ma.array(values))
        assert type(plain) is np.ndarray
        assert plain.dtype == values.dtype
        np.testing.assert_array_equal(plain, values)


def test_what_is_masked_has_no_value():
    assert bring_to_host(np.ma.array(["a", "b"], mask=[0, 1])).tolist() == ["a", None]
    assert bring_to_host(np.ma.array([True, False], mask=[0, 1])).tolist() == [True, None]
    np.testing.assert_array_equal(bring_to_host(np.ma.array([0.5, 1.0], mask=[0, 1])), [0.5, np.nan])


@pytest.mark.parametrize("X", [np.zeros(3), np.zeros((2, 2, 2)), np.array(1.0), [1, 2], ["a", "b"], pd.Series([1.0])])
def test_other_dimensions_are_passed_on(X):
    assert learn(X) == Schema({})
    assert np.ndim(learn(X).encode(X)) == np.ndim(X)


@pytest.mark.parametrize(
    "X", [np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((0, 2), object), pd.DataFrame(index=[1, 2])]
)
def test_empty_tables_are_passed_on(X):
    assert learn(X).encode(X).shape == X.shape


def test_categories_among_numbers_of_an_array():
    X = np.array([[3, 10], [1, 20], [3, 30]])
    schema = learn(X, [0])
    assert schema.categories == {0: (1, 3)}
    for table in (X, X.astype(np.float64), X.astype(np.float32)):
        np.testing.assert_array_equal(schema.encode(table), [[1, 10], [0, 20], [1, 30]])
        np.testing.assert_array_equal(table, X)  # The table is still what it was.
    assert schema.encode(np.zeros((2, 0))).shape == (2, 0)  # Too few columns are for scikit-learn to complain about.


def test_large_integers_are_categories_of_their_own():
    X = np.array([[2**53], [2**53 + 1], [-(2**62) - 1]])
    assert learn(X, [0]).categories == {0: (-(2**62) - 1, 2**53, 2**53 + 1)}
    table = pd.DataFrame({"id": pd.array([2**53, 2**53 + 1, None], dtype="Int64"), "x": [0.5, 1.5, 2.5]})
    np.testing.assert_array_equal(learn(table, ["id"]).encode(table)[:, 0], [0, 1, np.nan])


def test_objects_that_are_numbers():
    X = stack_objects([[1, True, decimal.Decimal("0.5")], [None, np.float32(2), pd.NA], [np.nan, np.bool_(False), 3]])
    expected = [[1, 1, 0.5], [np.nan, 2, np.nan], [np.nan, 0, 3]]
    np.testing.assert_array_equal(learn(X).encode(X), expected)
    np.testing.assert_array_equal(learn(X).encode(pd.DataFrame(X)), expected)


# ---- sparse ----


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_stays_sparse(form, kind):
    dense = np.array([[0, 2.5], [np.nan, 0], [0, 0]])
    X = getattr(sparse, f"{form}_{kind}")(dense)
    out = learn(X).encode(X)
    assert out.format == ("csc" if form == "csc" else "csr")
    np.testing.assert_array_equal(out.toarray(), dense)
    assert learn(X, []) == learn(X, None) == learn(X, [False, False]) == Schema({})


@pytest.mark.parametrize(("dtype", "expected"), [(bool, "f4"), ("i2", "f4"), ("f4", "f4"), ("i8", "f8"), ("g", "f8")])
def test_types_of_sparse_numbers(dtype, expected):
    out = Schema({}).encode(sparse.csr_array(np.eye(2, dtype=dtype)))
    assert out.dtype == expected
    np.testing.assert_array_equal(out.toarray(), np.eye(2))


def test_sparse_without_categories():
    X = sparse.csr_array(np.eye(2))
    with pytest.raises(ValueError, match="if X is sparse: make X dense"):
        learn(X, [0])
    with pytest.raises(ValueError, match="X must be dense, as it was when fitted"):
        learn(X.toarray(), [0]).encode(X)
    with pytest.raises(ValueError, match="Complex data not supported"):
        Schema({}).encode(X.astype(complex))


def test_sparse_frames():
    dense = pd.DataFrame({"a": [0, 0, 2], "b": [0, 1, 0]})
    wholly = dense.astype(pd.SparseDtype(int, 0))
    out = learn(wholly).encode(wholly)
    assert sparse.issparse(out)
    np.testing.assert_array_equal(out.toarray(), dense)
    with pytest.raises(ValueError, match="if X is sparse"):
        learn(wholly, ["b"])
    partly = wholly.assign(c=["x", "y", "x"])
    np.testing.assert_array_equal(learn(partly, ["b", "c"]).encode(partly), [[0, 0, 0], [0, 1, 1], [2, 0, 0]])
    holes = pd.DataFrame({"a": pd.arrays.SparseArray([np.nan, 1.0])})  # What is not stored is missing here.
    np.testing.assert_array_equal(learn(holes).encode(holes), [[np.nan], [1]])


# ---- which columns are categorical ----


def make_every_kind():
    return pd.DataFrame(
        {
            "number": [1.5, 2.5, None],
            "text": ["b", None, "a"],
            "object": np.array(["y", "x", None], dtype=object),
            "category": pd.Categorical([20, 10, None], categories=[30, 20, 10]),
            "string": pd.array(["q", pd.NA, "p"], dtype="string"),
            "flag": [True, False, True],
            "none": [None, None, None],
        }
    )


def test_auto_takes_text_and_categories():
    X = make_every_kind()
    schema = learn(X)
    assert schema.categories == {1: ("a", "b"), 2: ("x", "y"), 3: (10, 20), 4: ("p", "q")}
    expected = [[1.5, 1, 1, 1, 1, 1, np.nan], [2.5, np.nan, 0, 0, np.nan, 0, np.nan]]
    expected.append([np.nan, 0, np.nan, np.nan, 0, 1, np.nan])
    np.testing.assert_array_equal(schema.encode(X), expected)
    np.testing.assert_array_equal(schema.encode(X.to_numpy()), expected)


def test_auto_in_arrays_takes_columns_that_hold_text():
    X = stack_objects([[1, "a", 2.5], [None, "b", "c"]])
    assert learn(X).categories == {1: ("a", "b"), 2: (2.5, "c")}
    assert learn(np.array([["x1", "a"], ["x2", "b"]])).categories == {0: ("x1", "x2"), 1: ("a", "b")}


def test_strings_of_numpy_2():
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("NumPy 1 has no StringDType")
    X = np.array([["b", "x"], ["a", np.nan]], dtype=np.dtypes.StringDType(na_object=np.nan))
    assert learn(X).categories == {0: ("a", "b"), 1: ("x",)}
    np.testing.assert_array_equal(learn(X).encode(X), [[1, 0], [0, np.nan]])


@pytest.mark.parametrize(
    "chosen", [[1, 3], (3, 1, 1), np.array([1, 3]), ["b", "d"], pd.Index(["d", "b"]), np.array(["b", "d"])]
)
def test_chosen_columns(chosen):
    X = pd.DataFrame({"a": [1, 2], "b": [4, 3], "c": [5, 6], "d": ["x", "y"]})
    assert learn(X, chosen).categories == {1: (3, 4), 3: ("x", "y")}
    mask = [False, True, False, True]
    for flags in (mask, np.array(mask), pd.Series(mask)):
        assert learn(X, flags) == learn(X, chosen)


def test_numbers_in_a_category_type_may_be_numbers():
    X = pd.DataFrame({"a": pd.Categorical([20, 10, None], categories=["unused", 10, 20])})
    schema = learn(X, None)
    assert schema == Schema({})
    np.testing.assert_array_equal(schema.encode(X), [[20], [10], [np.nan]])


def test_text_outside_the_chosen_columns_is_refused():
    X = make_every_kind()
    with pytest.raises(ValueError, match=r"columns 'text', 'object', 'string' hold text: add it there.*OrdinalEncoder"):
        learn(X, None)
    with pytest.raises(ValueError, match="column 'object' holds text"):
        learn(X, ["text", "string"])
    with pytest.raises(ValueError, match="column 1 holds text"):
        learn([[1, "a"]], [0])
    with pytest.raises(ValueError, match="columns 0, 1, 2, 3, 4 and 2 more hold text"):
        learn(np.full((2, 7), "a"), None)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("all", "got 'all'"),
        (1, "got 1"),
        (True, "got True"),
        ([0.0], r"got \[0.0\]"),
        ([2], r"indices from 0 to 1, got \[2\]"),
        ([-1, 0], r"got \[-1\]"),
        (["z", "b"], r"names of columns, such as \['a', 'b'\], got \['z'\]"),
        ([None], r"names of columns, such as \['a', 'b'\], got \[None\]"),
        ([True], "one for each of 2 columns, got 1 Booleans"),
        ([True, 1], r"got \[True, 1\]"),
        (["a", 1], r"got \['a', 1\]"),
        ([[True, False]], r"got \[\[True, False\]\]"),
        (np.eye(2, dtype=bool), "or of Booleans, got"),
    ],
)
def test_bad_choices(chosen, message):
    with pytest.raises(ValueError, match="categorical_features must be .*" + message):
        learn(pd.DataFrame({"a": [1, 2], "b": [3, 4]}), chosen)


def test_names_need_a_frame():
    with pytest.raises(ValueError, match=r"names of columns, such as \[0, 1\], got \['a'\]"):
        learn(np.zeros((2, 2)), ["a"])


def test_names_of_any_kind():
    X = pd.DataFrame([[1, "a", "b"]], columns=["x", "x", ("t", 1)])
    assert learn(X).categories == {1: ("a",), 2: ("b",)}
    # A name means all columns that have it.
    assert learn(X, ["x", ("t", 1)]).categories == {0: (1,), 1: ("a",), 2: ("b",)}
    X.columns = [2, 1, 0]
    assert learn(X, [1, 2]) == learn(X)  # Whole numbers are indices, not names.


# ---- which categories are known ----


def test_unseen_and_missing_are_nan():
    schema = learn([["a"], ["b"]])
    np.testing.assert_array_equal(schema.encode([["c"], [None], ["b"], [1]]), [[np.nan], [np.nan], [1], [np.nan]])
    with pytest.raises(ValueError, match="column 0 held text as categories when fitted, and numbers now"):
        schema.encode(np.array([[np.nan], [1.0]]))
    with pytest.raises(ValueError, match="column 'a' held numbers as categories when fitted, and text now"):
        learn(pd.DataFrame({"a": [1, 2]}), ["a"]).encode(pd.DataFrame({"a": ["1", "2"]}))


def test_text_without_any_value():
    X = pd.DataFrame({"a": pd.array([None, None], dtype="string"), "b": [1.0, 2.0]})
    assert learn(X).categories == {0: ()}
    np.testing.assert_array_equal(learn(X).encode(X), [[np.nan, 1], [np.nan, 2]])
    np.testing.assert_array_equal(learn(X, None).encode(X), [[np.nan, 1], [np.nan, 2]])


def test_the_order_of_a_type_does_not_matter():
    values = ["b", "c", None, "b"]
    tables = [
        pd.DataFrame({"x": make_series(values, "category", order)}) for order in (["b", "c"], ["z", "c", "b", "a"])
    ]
    tables.append(pd.DataFrame({"x": pd.Categorical(values, categories=["c", "b"], ordered=True)}))
    for table in tables:
        assert learn(table).categories == {0: ("b", "c")}
        np.testing.assert_array_equal(learn(table).encode(table), [[0], [1], [np.nan], [0]])


def test_rows_of_weight_zero_are_not_known():
    schema = learn([["a"], ["b"], ["a"]], sample_weight=[1, 0, 2])
    assert schema.categories == {0: ("a",)}
    np.testing.assert_array_equal(schema.encode([["b"], ["a"]]), [[np.nan], [0]])


def test_only_the_heaviest_are_known():
    X = [["a"], ["b"], ["b"], ["c"], ["d"], [None], [None]]
    assert learn(X, max_categories=2).categories == {0: ("a", "b")}  # The categories a, c and d weigh the same.
    assert learn(X, sample_weight=[1, 1, 1, 3, 5, 9, 9], max_categories=2).categories == {0: ("c", "d")}
    np.testing.assert_array_equal(
        learn(X, max_categories=1).encode(X), [[np.nan], [0], [0], [np.nan], [np.nan], [np.nan], [np.nan]]
    )
    many = np.array([f"no. {i}" for i in range(300)])[:, None]
    assert len(learn(many).categories[0]) == 254


def test_sums_of_weights_do_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    weight = rng.random(1000) * 10.0 ** rng.integers(-8, 8, 1000)
    X = np.repeat(["a", "b", "c"], 1000)[:, None].astype(object)  # The three weigh the same, in any order of adding.
    for _ in range(10):
        weights = np.concatenate([rng.permutation(weight) for _ in range(3)])
        assert learn(X, sample_weight=weights, max_categories=2).categories == {0: ("a", "b")}


def test_equal_values_are_one_category():
    X = stack_objects(
        [[1], [True], [1.0], [np.int8(1)], ["1"], [decimal.Decimal(1)], [2.5], [np.float32(2.5)], [0], [-0.0]]
    )
    expected = [[1], [1], [1], [1], [3], [1], [2], [2], [0], [0]]
    for table in (X, pd.DataFrame(X), pd.DataFrame({"x": X[:, 0]}).astype("category")):
        assert learn(table).categories == {0: (0, 1, 2.5, "1")}
        assert [type(value) for value in learn(table).categories[0]] == [int, int, float, str]
        np.testing.assert_array_equal(learn(table).encode(table), expected)
    assert [type(value) for value in learn(X[::-1]).categories[0]] == [int, int, float, str]


def test_schemas_hold_plain_values():
    X = pd.DataFrame(
        {"a": np.array(["x", "y"]), "b": pd.Categorical(np.array([1, 2], np.int8)), "c": pd.cut([1, 9], 2)}
    )
    schema = learn(X)
    assert {type(value) for values in schema.categories.values() for value in values} == {str, int}
    assert len(schema.categories[2]) == 2  # The intervals of pandas.cut are known by what they print.
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_a_subclass_of_text_is_its_text():
    class Loud(str):
        def __str__(self):
            return "loud"

    assert learn([[Loud("a")], [np.str_("b")]]).categories == {0: ("a", "b")}


@pytest.mark.parametrize("most", [0, -1, 1.5, "many", None, 2**25])
def test_bad_max_categories(most):
    with pytest.raises(ValueError, match="max_categories must be an integer from 1 to"):
        learn([[1]], max_categories=most)


def test_bad_weights():
    with pytest.raises(ValueError, match=r"sample_weight must be 2 numbers, one per row, got shape \(3,\)"):
        learn([["a"], ["b"]], sample_weight=[1, 2, 3])


# ---- one table, another at prediction ----


def test_a_category_may_come_in_another_type():
    X = pd.DataFrame({"x": pd.Categorical([1, 2, 3])})
    schema = learn(X)
    for values in (
        [2, 3],
        [2.0, 3.0],
        pd.array([2, 3], dtype="Int8"),
        np.array([2, 3], object),
        pd.Categorical([2, 3]),
    ):
        np.testing.assert_array_equal(schema.encode(pd.DataFrame({"x": values})), [[1], [2]])


@pytest.mark.parametrize("values", [["1.5", "2"], pd.Categorical(["1", "2"]), np.array(["a", 1.0], dtype=object)])
def test_numbers_must_stay_numbers(values):
    schema = learn(pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]}))
    X = pd.DataFrame({"x": values, "y": ["b", "a"]})
    with pytest.raises(ValueError, match="where it did when fitted, but column 'x' holds text"):
        schema.encode(X)
    with pytest.raises(ValueError, match="where it did when fitted, but column 0 holds text"):
        schema.encode(X.to_numpy())


def test_numbers_that_come_as_flags_categories_or_nothing():
    schema = learn(pd.DataFrame({"x": [1.0, 2.0]}))
    for values in (pd.Categorical([1, 0]), pd.array([1, 0], dtype="Int64"), np.array([1, 0], object)):
        np.testing.assert_array_equal(schema.encode(pd.DataFrame({"x": values})), [[1], [0]])
    nothing = pd.DataFrame({"x": pd.array([None, None], dtype="string")})
    np.testing.assert_array_equal(schema.encode(nothing), [[np.nan], [np.nan]])


# ---- what is refused ----


@pytest.mark.parametrize(
    "values",
    [
        pd.period_range("2020", periods=2, freq="D"),
        np.array([datetime.time(12), None], dtype=object),
        np.array([datetime.date(2020, 1, 1), datetime.timedelta(1)], dtype=object),
        np.array([datetime.date(2020, 1, 1), 3.0], dtype=object),
        np.array([pd.Timestamp("2020"), 3.0], dtype=object),
        np.array([np.timedelta64(1, "D"), 3], dtype=object),
        np.array([b"1", b"2"], dtype=object),
        pd.interval_range(0, 2),
    ],
)
def test_what_is_no_number_and_no_date_is_refused(values):
    X = pd.DataFrame({"ok": [1, 2], "day": values})
    for chosen in ("auto", None, ["day"]):
        with pytest.raises(ValueError, match=r"column 'day' is .*: make numbers of it, or text, or leave it out"):
            learn(X, chosen)
    with pytest.raises(ValueError, match="column 'day' is"):
        Schema({}).encode(X)


@pytest.mark.parametrize("dtype", ["S3", [("a", int)]])
def test_arrays_of_no_numbers_are_refused(dtype):
    with pytest.raises(ValueError, match="column 0 is"):
        learn(np.zeros((2, 2), dtype=dtype))


@pytest.mark.parametrize("X", [[[1j]], pd.DataFrame([[1j]]), np.array([[1j, 2.0]], dtype=object)])
def test_complex_is_refused(X):
    for call in (learn, Schema({}).encode):
        with pytest.raises(ValueError, match="Complex data not supported"):
            call(X)


def test_nested_is_refused():
    X = stack_objects([[1.0, 2.0], [{"foo": "bar"}, 3.0]])
    schema = learn(X)
    with pytest.raises(TypeError, match=r"column 0: float\(\) argument must be .* string.* number.*leave it out"):
        schema.encode(X)
    with pytest.raises(ValueError, match=r"but not in column 0: unhashable type.*make a column of each of its parts"):
        learn(X, [0])
    with pytest.raises(ValueError, match="not in column 0: it holds a tuple"):
        learn(stack_objects([["a"], [(1, 2)]]))
    with pytest.raises(ValueError, match="column 'x': setting an array element with a sequence"):
        Schema({}).encode(pd.DataFrame({"x": [[1, 2], [3, 4]]}))
    with pytest.raises(ValueError, match="column 0: int too large"):
        Schema({}).encode(stack_objects([[10**400]]))


# ---- polars and pyarrow ----


def test_polars_types():
    pl = pytest.importorskip("polars")
    X = pl.DataFrame(
        {
            "category": pl.Series(["b", None, "a"], dtype=pl.Categorical),
            "enum": pl.Series(["b", None, "a"], dtype=pl.Enum(["z", "b", "a"])),
            "text": ["b", None, "a"],
            "null": [None, None, None],
            "flag": [True, None, False],
            "decimal": pl.Series(["1.50", None, "2"]).cast(pl.Decimal(5, 2)),
            "float": [1.5, None, math.nan],
            "object": pl.Series([1, None, 2.5], dtype=pl.Object),
        }
    )
    assert learn(X).categories == dict.fromkeys(range(3), ("a", "b"))
    nan = np.nan
    expected = [[1, 1, 1, nan, 1, 1.5, 1.5, 1], [nan] * 8, [0, 0, 0, nan, 0, 2, nan, 2.5]]
    np.testing.assert_array_equal(learn(X).encode(X), expected)
    others = {3: (), 4: (0, 1), 5: (1.5, 2), 6: (1.5,), 7: (1, 2.5)}
    assert learn(X, X.columns).categories == {**learn(X).categories, **others}
    small = pl.DataFrame({"a": pl.Series([1], dtype=pl.Int16), "b": pl.Series([1.5], dtype=pl.Float32)})
    assert learn(small).encode(small).dtype == np.float32


def test_polars_refusals():
    pl = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"LazyFrame: call its collect\(\) first"):
        learn(pl.LazyFrame({"a": [1]}))
    for values in ([datetime.time(12)], [[1]], [{"a": 1}], [b"a"]):
        with pytest.raises(ValueError, match=r"column 'a' is .*leave it out"):
            learn(pl.DataFrame({"a": values}))
    with pytest.raises(ValueError, match="column 'a' holds text"):
        Schema({}).encode(pl.DataFrame({"a": ["1"]}))


def test_arrow_types():
    pa = pytest.importorskip("pyarrow")
    text = ["b", None, "a"]
    # The chunks have two dictionaries.
    chunks = [pa.array(["b", None]).dictionary_encode(), pa.array(["a"]).dictionary_encode()]
    X = pa.table(
        {
            "dictionary": pa.chunked_array(chunks),
            "string": text,
            "large": pa.array(text, pa.large_string()),
            "view": pa.array(text, pa.string_view()),
            "null": pa.nulls(3),
            "flag": [True, None, False],
            "decimal": pa.array([decimal.Decimal("1.50"), None, 2], pa.decimal128(5, 2)),
            "half": pa.array(np.array([1.5, 0, 2], np.float16), mask=np.array([False, True, False])),
            "numbers": pa.array([3, None, 2]).dictionary_encode(),
        }
    )
    assert learn(X).categories == {**dict.fromkeys(range(4), ("a", "b")), 8: (2, 3)}
    nan = np.nan
    expected = [[1, 1, 1, 1, nan, 1, 1.5, 1.5, 1], [nan] * 9, [0, 0, 0, 0, nan, 0, 2, 2, 0]]
    np.testing.assert_array_equal(learn(X).encode(X), expected)
    np.testing.assert_array_equal(learn(X).encode(X.combine_chunks().to_batches()[0]), expected)
    np.testing.assert_array_equal(learn(X).encode(X.to_pandas(types_mapper=pd.ArrowDtype)), expected)
    assert learn(X, range(9)).categories[6] == (1.5, 2)
    large = pa.table({"a": [2**60 + 1, None]})
    np.testing.assert_array_equal(learn(large).encode(large), [[2.0**60], [nan]])
    small = pa.table({"a": pa.array([1], pa.int16()), "b": pa.array([1.5], pa.float32())})
    assert learn(small).encode(small).dtype == np.float32


def test_arrow_refusals():
    pa = pytest.importorskip("pyarrow")
    for values in ([datetime.time(12)], [[1]], [{"a": 1}], [b"a"]):
        table = pa.table({"a": values})
        for X in (table, table.to_pandas(types_mapper=pd.ArrowDtype)):
            with pytest.raises(ValueError, match=r"column 'a' is .*leave it out"):
                learn(X)
    with pytest.raises(ValueError, match="column 'a' holds text"):
        Schema({}).encode(pa.table({"a": ["1"]}))
    with pytest.raises(ValueError, match="it holds a date"):
        learn(pa.table({"a": pa.array([datetime.date(2020, 1, 1)]).dictionary_encode()}))


class TwoWorkers(Workers):
    """A worker that has another one with the same rows."""

    def __init__(self):
        super().__init__(size=2)

    def gather(self, item):
        return [item, item]


def test_workers_warn_of_categories_that_are_lost():
    X = pd.DataFrame({"id": [f"no. {i}" for i in range(600)]})
    with pytest.warns(UserWarning, match="column 'id' holds 600 categories, of which the 254 most frequent are known"):
        schema = learn(X, workers=TwoWorkers())
    assert len(schema.categories[0]) == 254


def test_numbers_stand_for_categories_that_are_coded_by_their_labels():
    schema = Schema({0: ("a", "b")}, {0: (0.25, 0.75, 0.5)})
    X = pd.DataFrame({"c": ["b", "a", "new", None], "x": [1.0, 2.0, 3.0, 4.0]})
    np.testing.assert_array_equal(schema.encode(X)[:, 0], [0.75, 0.25, 0.5, np.nan])
    by_index = Schema(schema.categories).encode(X)
    np.testing.assert_array_equal(by_index[:, 0], [1.0, 0.0, np.nan, np.nan])
    np.testing.assert_array_equal(schema.put_numbers(by_index)[:, 0], [0.75, 0.25, np.nan, np.nan])
    np.testing.assert_array_equal(by_index[:2, 0], [1.0, 0.0])
    assert schema.n_sets == {}
    assert Schema(schema.categories).n_sets == {0: 2}


# ---- dates, and numbers held as text ----

DAYS = [18262.0, np.nan, 18263.25]  # 2020-01-01, nothing, 2020-01-02 at six in the morning


def list_dates():
    """The same three dates in every form that a table can have them in."""
    moments = [datetime.datetime(2020, 1, 1), None, datetime.datetime(2020, 1, 2, 6)]
    in_utc = [None if one is None else one.replace(tzinfo=datetime.UTC) for one in moments]
    eastern = pd.to_datetime(moments).tz_localize("UTC").tz_convert("America/New_York")
    yield "pandas", pd.DataFrame({"d": pd.to_datetime(moments)})
    yield "pandas, seconds", pd.DataFrame({"d": pd.to_datetime(moments).astype("datetime64[s]")})
    yield "pandas, time zone", pd.DataFrame({"d": eastern})
    yield "pandas, objects", pd.DataFrame({"d": np.array(moments, dtype=object)}, dtype=object)
    yield "pandas, objects of a time zone", pd.DataFrame({"d": np.array(in_utc, dtype=object)}, dtype=object)
    yield "numpy", np.array(moments, dtype="datetime64[ms]")[:, None]
    yield "numpy, objects", np.array([*moments[:2], pd.Timestamp(moments[2])], dtype=object)[:, None]
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    yield "polars", pl.DataFrame({"d": moments})
    yield "polars, time zone", pl.DataFrame({"d": in_utc})
    for unit in ("s", "ms", "us", "ns"):
        yield f"arrow, {unit}", pa.table({"d": pa.array(moments, pa.timestamp(unit))})
    yield "arrow in pandas", pa.table({"d": pa.array(moments)}).to_pandas(types_mapper=pd.ArrowDtype)


def test_dates_of_every_kind_are_days():
    expected = np.array(DAYS)[:, None]
    for name, X in list_dates():
        schema = learn(X)
        assert schema == Schema({}, readings={0: Reading("date")}), name
        for other, table in list_dates():
            np.testing.assert_allclose(schema.encode(table), expected, rtol=1e-15, err_msg=f"{name} as {other}")


def test_whole_dates_and_lengths_of_time_are_days():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    days = [datetime.date(2020, 1, 1), None]
    for values in (pa.array(days), pa.array(days, pa.date64())):
        np.testing.assert_array_equal(
            learn(pa.table({"d": values})).encode(pa.table({"d": values})), [[18262], [np.nan]]
        )
    for X in (pl.DataFrame({"d": days}), np.array(days, dtype="M8[D]")[:, None], np.array(days, dtype=object)[:, None]):
        np.testing.assert_array_equal(learn(X).encode(X), [[18262], [np.nan]])
    for unit, since in (("s", 86_400), ("ms", 86_400_000), ("D", 1)):  # Their microseconds do not fit 64 bits.
        far = np.array([10**9 * since + since // 2, -(10**9) * since, 0, np.iinfo(np.int64).min])
        for kind in ("datetime64", "timedelta64"):
            expected = [[10**9 + since // 2 / since], [-(10**9)], [0], [np.nan]]
            np.testing.assert_array_equal(learn(X := far.view(f"{kind}[{unit}]")[:, None]).encode(X), expected)
    lengths = [datetime.timedelta(hours=36), None]
    for X in (
        pd.DataFrame({"t": pd.to_timedelta(lengths)}),
        np.array(lengths, dtype=object)[:, None],
        np.array(lengths, dtype="m8[s]")[:, None],
        pl.DataFrame({"t": lengths}),
        pa.table({"t": lengths}),
    ):
        assert learn(X) == Schema({}, durations=frozenset({0}))
        np.testing.assert_array_equal(learn(X).encode(X), [[1.5], [np.nan]])


def test_dates_and_numbers_are_not_taken_for_each_other():
    dates = pd.DataFrame({"d": pd.to_datetime(["2020-01-01", None]), "x": [1.0, 2.0]})
    numbers = pd.DataFrame({"d": [18262.0, np.nan], "x": [1.0, 2.0]})
    with pytest.raises(ValueError, match="column 'd' held dates when fitted, and numbers now"):
        learn(dates).encode(numbers)
    with pytest.raises(ValueError, match="column 0 held dates when fitted, and numbers now"):
        learn(dates).encode(numbers.to_numpy())
    with pytest.raises(ValueError, match="column 'd' held numbers when fitted, and dates now"):
        learn(numbers).encode(dates)
    with pytest.raises(ValueError, match=r"dense.*cannot hold dates"):
        learn(dates).encode(sparse.csr_matrix(np.eye(2)))
    with pytest.raises(ValueError, match="column 'd': it holds dates"):
        learn(dates, ["d"])
    np.testing.assert_array_equal(learn(dates).encode(dates.assign(d=[None, None]))[:, 0], [np.nan, np.nan])


@pytest.mark.parametrize(
    ("texts", "expected", "what"),
    [
        (["1.5", "20", None, " 3 "], [1.5, 20, np.nan, 3], "numbers"),
        (["1.500,5", "20", "k.A.", "7,25"], [1500.5, 20, np.nan, 7.25], "numbers"),
        (["20.08.2021", "01.02.2021", "", "2021-01-01"], [18859, 18659, np.nan, 18628], "dates"),
    ],
)
def test_numbers_held_as_text_are_read_with_a_word(texts, expected, what):
    X = pd.DataFrame({"x": texts})
    with pytest.warns(UserWarning, match=f"column 'x' holds {what} as text, which are read as {what}"):
        schema = learn(X)
    assert not schema.categories
    np.testing.assert_array_equal(schema.encode(X)[:, 0], expected)
    with pytest.raises(ValueError, match=f"column 'x' held {what} when fitted, and 'many' now"):
        schema.encode(pd.DataFrame({"x": ["many", *texts[1:]]}))


@pytest.mark.parametrize("texts", [["007", "12"], ["1", "x"], ["1.2.3", "1.10"], ["True", "False"], ["+49 30 12", "5"]])
def test_text_that_is_not_all_numbers_stays_text(texts):
    assert learn(pd.DataFrame({"x": texts})).categories == {0: tuple(sorted(texts))}


def test_numbers_as_text_are_categories_where_somebody_says_so():
    X = pd.DataFrame({"x": ["1", "2", "1"]})
    assert learn(X, ["x"]).categories == {0: ("1", "2")}
    assert learn(X.astype("category")).categories == {0: ("1", "2")}
