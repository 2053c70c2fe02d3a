"""Decisions: what is refused, what changes, and which fingerprints tell data apart."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from untwist.data import batches
from untwist.data.decisions import Decisions, match_labels
from untwist.data.fingerprints import fingerprint, fingerprint_features, fingerprint_labels

MARK = f"{1:016x}-{2:016x}"


def decide(rows=(0, 2), given=("no", "no"), decision=("keep", "relabel"), labels=("no", "yes"), mark=MARK, **others):
    return Decisions(rows, given, decision, labels, [""] * len(rows), mark, **others)


def test_reviewed_are_all_but_skipped_and_relabelled_are_those_that_change():
    decisions = decide([4, 1, 3], ["a"] * 3, ["skip", "keep", "relabel"], ["a", "a", "b"])
    assert decisions.reviewed.tolist() == [False, True, True]
    assert decisions.relabelled.tolist() == [False, False, True]
    assert len(decisions) == 3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"decision": ("keep", "maybe")}, "row 2 has the decision 'maybe'"),
        ({"rows": (2, 2)}, "row 2 is decided on twice"),
        ({"rows": (-1, 2)}, "from 0, got -1"),
        ({"rows": (0.5, 2)}, "whole numbers"),
        ({"labels": ("no", " ")}, "row 2 has no label"),
        ({"labels": ("yes", "yes")}, "row 0 says keep, but its label changes from 'no' to 'yes'"),
        ({"given": ("no",)}, "given must be 2 values"),
        ({"mark": "abc"}, "fingerprint must be"),
        ({"lines": ["1"]}, "lines must be 2 values"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_row(wrong, words):
    with pytest.raises(ValueError, match=words):
        decide(**wrong)


def test_changing_labels_changes_those_decided_on_and_nothing_else():
    labels = np.array(["no", "yes", "no", "no"])
    changed = decide(labels=("no", "perhaps")).change(labels)
    assert changed.tolist() == ["no", "yes", "perhaps", "no"]
    assert labels.tolist() == ["no", "yes", "no", "no"]


@pytest.mark.parametrize(
    ("labels", "given", "label", "expected"),
    [
        ([0, 1, 0], "0", "1", [0, 1, 1]),
        ([0, 1, 0], "0", "7", [0, 1, 7]),
        ([0.0, 1.0, 0.0], "0", "1", [0.0, 1.0, 1.0]),
        ([False, True, False], "FALSE", "TRUE", [False, True, True]),
        (["false", "true", "false"], "FALSE", "TRUE", ["false", "true", "true"]),
    ],
)
def test_text_becomes_the_class_that_it_means(labels, given, label, expected):
    array = np.array(labels)
    changed = decide([2], [given], ["relabel"], [label]).change(array)
    assert changed.tolist() == expected
    assert changed.dtype == array.dtype


@pytest.mark.parametrize(("labels", "label"), [([0, 1, 0], "x"), ([0, 1, 0], "0.5"), ([True, False, True], "2")])
def test_a_label_of_another_kind_is_refused(labels, label):
    labels = np.array(labels)
    with pytest.raises(ValueError, match="row 2 is relabelled"):
        decide([2], [str(labels[2])], ["relabel"], [label]).change(labels)


def test_a_row_that_had_another_label_is_refused():
    with pytest.raises(ValueError, match="row 2 had the label 'no' when it was decided on, not 'yes'"):
        decide().change(np.array(["no", "no", "yes"]))
    with pytest.raises(ValueError, match="row 2 is decided on, but there are 2 rows"):
        decide().change(np.array(["no", "no"]))


def test_labels_that_look_alike_are_themselves_where_both_are_classes():
    assert match_labels(["yes", "YES", "Yes"], ["yes", "YES"]) == ["yes", "YES", "Yes"]


def test_decisions_of_other_data_name_what_differs():
    decisions = decide()
    decisions.check_fingerprint(MARK)
    with pytest.raises(ValueError, match=r"other features \(or rows\) \("):
        decisions.check_fingerprint(f"{9:016x}-{2:016x}")
    with pytest.raises(ValueError, match="have other labels"):
        decisions.check_fingerprint(f"{1:016x}-{9:016x}")
    with pytest.raises(ValueError, match=r"other features .* and other labels"):
        decisions.check_fingerprint(f"{9:016x}-{9:016x}")


TABLE = pd.DataFrame({"age": [31, 45, 62], "city": ["Bonn", None, "Köln"], "day": pd.to_datetime(["2020-01-01"] * 3)})

CHANGES = {
    "a cell": lambda frame: frame.assign(age=[31, 45, 63]),
    "a text": lambda frame: frame.assign(city=["Bonn", None, "Koln"]),
    "a gap": lambda frame: frame.assign(city=["Bonn", "", "Köln"]),
    "a date": lambda frame: frame.assign(day=pd.to_datetime(["2020-01-02"] * 3)),
    "a name": lambda frame: frame.rename(columns={"age": "Age"}),
    "the order of columns": lambda frame: frame[["city", "age", "day"]],
    "the order of rows": lambda frame: frame.iloc[::-1],
    "a row less": lambda frame: frame.iloc[:2],
    "where one cell ends": lambda frame: frame.assign(city=["Bon", "n", "Köln"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_of_the_table_changes_its_fingerprint(change):
    assert fingerprint_features(TABLE) == fingerprint_features(TABLE.copy())
    assert fingerprint_features(CHANGES[change](TABLE)) != fingerprint_features(TABLE)


def test_the_halves_are_of_the_features_and_of_the_labels():
    features, labels = fingerprint(TABLE, [0, 1, 0]).split("-")
    assert (features, labels) == (fingerprint_features(TABLE), fingerprint_labels(np.array([0, 1, 0])))
    assert fingerprint_labels(["a", "b"]) != fingerprint_labels(["ab", ""])


def test_all_kinds_of_tables_have_fingerprints():
    numbers = np.array([[1.0, 0.0], [np.nan, 3.0]])
    tables = {
        "array": numbers,
        "list": [["a", 1], ["b", None]],
        "sparse": sparse.csr_matrix(np.nan_to_num(numbers)),
        "polars": pl.DataFrame({"a": ["x", None]}),
        "arrow": pa.table({"a": ["y", None]}),
        "none": None,
        "lists in cells": pd.DataFrame({"a": [[1, 2], [3]]}),
    }
    found = {name: fingerprint_features(table) for name, table in tables.items()}
    assert len(set(found.values())) == len(tables)
    assert fingerprint_features(numbers) == fingerprint_features(numbers.astype(np.float32))
    assert fingerprint_features(-np.zeros((2, 1))) == fingerprint_features(np.zeros((2, 1)))
    assert fingerprint_features(pl.DataFrame({"a": ["x", None]})) == fingerprint_features(pa.table({"a": ["x", None]}))


def test_texts_without_a_second_dimension_count():
    one, other = ["a text", "another"], ["a text", "changed"]
    assert fingerprint_features(one) != fingerprint_features(other)
    assert fingerprint_features(one) != fingerprint_features(None)


def test_tables_in_files_have_the_fingerprint_that_they_have_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "CELLS", 16)
    table = pa.table(
        {
            "number": [1.5, -0.0, None, 2.0, 3.0],
            "whole": pa.array([1, 2, 3, 4, None], pa.int64()),  # The last block alone has a gap,
            "truth": pa.array([True, False, True, False, None]),  # and Booleans are numbers without one only.
            "text": ["a", "bc", "", "d", None],
            "day": pa.array([0, 1, 2, 3, 4], pa.date32()),
            "category": pa.array(["x", "y", "x", "z", "x"]).dictionary_encode(),
        }
    )
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=2)
    in_files = batches.Batches(tmp_path / "rows.parquet")
    assert len(list(in_files.blocks())) == 3
    assert fingerprint_features(in_files) == fingerprint_features(table)
    for name in table.column_names:
        assert fingerprint_features(in_files.drop(name)) != fingerprint_features(table)
        assert fingerprint_features(in_files.drop(name)) == fingerprint_features(table.drop_columns([name]))
