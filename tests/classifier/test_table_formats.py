"""The same rows in any container, layout or precision, dense or sparse, give the same model."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from helpers.small_fits import (
    assert_same_forests,
    draw_coloured_rows,
    draw_many_rows,
    draw_sample,
    make_model,
    stack_as_objects,
)
from untwist.boosting import forest


def test_any_kind_of_table_gives_the_same_model():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns, y = draw_coloured_rows()
    plain = stack_as_objects(columns)
    reference = make_model(max_depth=4).fit(plain, y)
    frame = pd.DataFrame(columns)
    dtype = pd.CategoricalDtype(["violet", "unused", "red", "blue", "yellow", "green"])
    lists = {"x": columns["x"].tolist(), "colour": columns["colour"].tolist(), "size": columns["size"].tolist()}
    tables = [
        plain.tolist(),
        frame,
        frame.astype({"colour": "category", "size": "category"}),
        frame.astype({"colour": dtype, "size": "string"}),
        pl.DataFrame(lists),
        pl.DataFrame(lists).with_columns(pl.col("colour").cast(pl.Categorical)),
        pa.table(lists),
        pa.table(lists).set_column(1, "colour", pa.array(lists["colour"]).dictionary_encode()),
    ]
    for table in tables:
        fitted = make_model(max_depth=4).fit(table, y)
        assert_same_forests(fitted, reference, table, plain)
        np.testing.assert_array_equal(fitted.apply(table), reference.apply(plain))
        np.testing.assert_array_equal(fitted.predict_proba(table), reference.predict_proba(plain))
        if not isinstance(table, list):
            assert fitted.feature_names_in_.tolist() == ["x", "colour", "size"]
    frames = tables[1:]
    fitted = make_model(max_depth=4).fit(frames[0], y)
    for table in frames:  # The model was fitted on one kind of table and is asked about another.
        np.testing.assert_array_equal(fitted.decision_function(table), reference.decision_function(plain))


@pytest.mark.parametrize("form", ["csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix", "coo_matrix"])
@pytest.mark.parametrize("classes", [2, 3])
def test_sparse_equals_dense(form, classes):
    X, y = draw_sample(classes=classes, missing=0.1)
    X[np.abs(X) < 0.5] = 0.0
    table = getattr(sparse, form)(X)
    settings = {"subsample": 0.7, "max_features": 0.6, "early_stopping": True}
    dense, thin = make_model(**settings).fit(X, y), make_model(**settings).fit(table, y)
    assert_same_forests(dense, thin, X)
    for name in ("decision_function", "predict", "predict_proba", "predict_proba_twisted", "apply"):
        np.testing.assert_array_equal(getattr(thin, name)(table), getattr(dense, name)(X))
    for one, other in zip(thin.staged_predict_proba(table), dense.staged_predict_proba(X), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(thin.margins(table, y), dense.margins(X, y))
    if classes == 2:
        whole = make_model().fit(table, y)
        assert whole.certificate(table, y).exact.verdicts == make_model().fit(X, y).certificate(X, y).exact.verdicts


def test_sparse_equals_dense_in_many_rows(monkeypatch):
    X, y = draw_many_rows(101_000)
    X = np.column_stack([X, X[::-1]])
    dense = make_model(1).fit(X, y)
    monkeypatch.setattr(forest, "CELLS_PER_BLOCK", len(y))  # Columns are then taken one at a time, as in a wide table.
    assert_same_forests(dense, make_model(1).fit(sparse.csc_array(X), y))


def test_sparse_blocks_of_any_size(monkeypatch):
    X, y = draw_sample(missing=0.1)
    X[np.abs(X) < 0.5] = 0.0
    whole = make_model().fit(X, y)
    monkeypatch.setattr(forest, "CELLS_PER_BLOCK", 100)
    assert_same_forests(whole, make_model().fit(sparse.csr_array(X), y), X, sparse.csc_array(X))


def test_layouts_and_precisions():
    X, y = draw_sample(missing=0.1)
    reference = make_model().fit(X, y)
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((480, 8))
    wide[::2, ::2] = X
    backward = np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    for table in (
        frozen,
        np.asfortranarray(X),
        wide[::2, ::2],
        backward,
        X.astype(">f8"),
        X.astype(object),
        X.tolist(),
    ):
        assert_same_forests(make_model().fit(table, y), reference, table, X)
    small = X.astype(np.float32)
    assert_same_forests(
        make_model().fit(small, y), make_model().fit(small.astype(np.float64), y), small, small.astype(np.float64)
    )
    whole = np.round(10 * np.nan_to_num(X))
    for dtype in (np.int8, np.int64, np.float16):
        assert_same_forests(
            make_model().fit(whole.astype(dtype), y), make_model().fit(whole, y), whole.astype(dtype), whole
        )
    np.testing.assert_array_equal(frozen, X)  # The input was not written to.


def test_labels_and_weights_in_any_container():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    X, y = draw_sample(classes=3)
    names, weight = np.array(["x", "y", "z"])[y], np.arange(len(y), dtype=float)
    expected = make_model().fit(X, y, sample_weight=weight).decision_function(X)
    series, texts = pd.Series(y), pd.Series(names)
    for labels in (y.tolist(), y.astype(np.uint8), series, series.astype("Int64"), pl.Series(y), pa.array(y)):
        np.testing.assert_array_equal(make_model().fit(X, labels, weight).decision_function(X), expected)
    for labels in (names.astype(object), texts, texts.astype("category"), pl.Series(names), pa.array(names.tolist())):
        fitted = make_model().fit(X, labels, weight, X_val=X, y_val=labels)
        np.testing.assert_array_equal(fitted.decision_function(X), expected)
        assert fitted.score(X, names) > 0.6
    for sample_weight in (weight.tolist(), weight.astype(int), pd.Series(weight), pl.Series(weight), pa.array(weight)):
        np.testing.assert_array_equal(make_model().fit(X, y, sample_weight).decision_function(X), expected)


def test_large_numbers_are_numbers_like_others():
    X, y = draw_sample()
    fitted = make_model().fit(X, y)
    far = np.full((2, 4), 1.7e308)
    np.testing.assert_array_equal(fitted.predict(far), fitted.predict(np.full((2, 4), 1e6)))
    assert make_model(1).fit(X * 1e307, y).predict(X * 1e307).shape == y.shape
    with pytest.raises(ValueError, match="column 0 in row 0"):
        fitted.predict(np.array([[np.inf, 0.0, 0.0, 0.0]]))


def test_infinite_cells_are_counted_and_the_first_is_named_in_tables_of_any_kind():
    pl = pytest.importorskip("polars")
    X, y = draw_sample()
    X[[7, 5], [1, 3]] = np.inf, -np.inf
    message = "X contains infinity: column {} in row 5 and 1 more cells"
    for table, name in (
        (X, 3),
        (sparse.csr_matrix(X), 3),
        (sparse.csc_matrix(X), 3),
        (pd.DataFrame(X, columns=list("abcd")), "'d'"),
        (pl.DataFrame(X, schema=list("abcd")), "'d'"),
    ):
        with pytest.raises(ValueError, match=message.format(name)):
            make_model().fit(table, y)
