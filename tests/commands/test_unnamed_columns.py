"""Columns without a name: an index that was written with the table is left out, and any other has a name for people."""

import json

import numpy as np
import pandas as pd
import pytest

from helpers.quick import QuickClassifier
from tests.helpers.command_line import untwist
from untwist import save
from untwist.audit import Reason, Slice
from untwist.commands.decided import find_label, fingerprint_file
from untwist.commands.names import find_names_in_file, find_unnamed, name_columns
from untwist.commands.sheets import read
from untwist.data.fingerprints import fingerprint


def make_frame(n_rows=120):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, n_rows)).round(3)
    return pd.DataFrame({"x": x, "z": z, "y": np.where(x + z > 0, "yes", "no")})


def report_columns(capsys, name, *options):
    """What becomes of each column, by its name."""
    status, out, err = untwist(capsys, "inspect", name, "--label", "y", "--json", *options)
    assert status == 0, err
    return {one["name"]: one for one in json.loads(out)["columns"]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


INDICES = {
    "of all rows": make_frame(),
    "of few rows": make_frame(12),
    "of rows that were shuffled": make_frame().sample(frac=1.0, random_state=0),
    "of rows that were drawn": make_frame().sample(frac=1.0, replace=True, random_state=0),
    "of tables that were joined": pd.concat([make_frame(30)] * 4),
    "of names": make_frame(30).set_axis([f"car {number}" for number in range(30)]),
}


@pytest.mark.parametrize("case", INDICES)
def test_an_index_without_a_name_is_left_out_and_can_be_kept(folder, capsys, case):
    INDICES[case].to_csv("i.csv")
    index = report_columns(capsys, "i.csv")["column 1"]
    assert not index["is_used"]
    words = "has no name, and names the rows as an index does; left out (--keep 'column 1' uses it)"
    assert index["note"] == words
    assert report_columns(capsys, "i.csv", "--keep", "column 1")["column 1"]["is_used"]


def test_an_index_that_was_read_as_a_column_is_one_still(folder, capsys):
    INDICES["of tables that were joined"].to_csv("i.csv")
    pd.read_csv("i.csv").to_csv("again.csv")
    found = report_columns(capsys, "again.csv")
    assert [name for name, one in found.items() if not one["is_used"]] == ["column 1", "Unnamed: 0"]
    assert found["Unnamed: 0"]["note"].startswith("names the rows as an index does; left out")


@pytest.mark.parametrize(
    "cells",
    [
        np.random.default_rng(0).normal(size=120),
        np.random.default_rng(0).integers(0, 9, size=120),
        np.where(np.arange(120) % 3, "red", "blue"),
    ],
    ids=["fractions", "a few numbers", "a few words"],
)
def test_a_first_column_that_names_no_rows_is_used(folder, capsys, cells):
    frame = make_frame()
    frame.insert(0, "nameless", cells)
    frame.rename(columns={"nameless": ""}).to_csv("f.csv", index=False)
    assert report_columns(capsys, "f.csv")["column 1"]["is_used"]


def test_a_model_predicts_alike_with_and_without_the_index(folder, capsys):
    frame = make_frame()
    shuffled = frame.sample(frac=1.0, replace=True, random_state=0)
    shuffled.to_csv("with.csv")
    shuffled.to_csv("without.csv", index=False)
    assert "column 1: has no name" in untwist(capsys, "train", "with.csv", "--label", "y")[2]
    model = (folder / "model.untwist").read_bytes()
    answers = [untwist(capsys, "predict", "model.untwist", name)[:2] for name in ("with.csv", "without.csv")]
    assert answers[0] == answers[1]
    assert answers[0][0] == 0
    untwist(capsys, "train", "without.csv", "--label", "y")
    assert (folder / "model.untwist").read_bytes() == model


def test_another_column_without_a_name_has_one_for_people(folder, capsys):
    frame = make_frame()[["z", "x", "y"]].rename(columns={"x": ""})
    frame.to_csv("t.csv", index=False)
    found = json.loads(untwist(capsys, "train", "t.csv", "--label", "y", "--json")[1])
    assert sorted(found["importances"]) == ["column 2", "z"]
    for command in (["inspect", "model.untwist"], ["explain", "model.untwist", "t.csv"], ["inspect", "t.csv"]):
        assert "column 2" in untwist(capsys, *command)[1]
    untwist(capsys, "audit", "t.csv", "--label", "y", "--budget", 3, "--suspects", "s.csv", "-o", "r.html")
    assert "column 2" in pd.read_csv("s.csv").columns
    assert "column 2" in (folder / "r.html").read_text()
    out = untwist(capsys, "predict", "model.untwist", "t.csv", "--with-input")[1]
    assert out.splitlines()[0] == "z,,y,prediction,P(no),P(yes)"  # Columns of the file are written as it has them.


def test_several_columns_without_a_name_are_told_apart(folder, capsys):
    frame = make_frame()
    frame.rename(columns={"x": "", "z": ""}).to_csv("s.csv")
    found = report_columns(capsys, "s.csv")
    assert {name: one["is_used"] for name, one in found.items()} == {
        "column 1": False,
        "column 2": True,
        "column 3": True,
        "y": True,
    }


def test_names_that_are_given_are_free():
    assert name_columns(["", "column 1", "column 1_"]) == ["column 1__", "column 1", "column 1_"]
    assert find_unnamed(["", "column 1", "column 1_"]) == ("column 1__",)
    assert find_names_in_file(["column 1", "x", "column 3"]) == ["column 1", "x", "column 3"]
    assert find_names_in_file(["x", "column 1"]) == ["x", "column 1"]


def test_a_column_that_is_called_by_its_number_is_no_index(folder, capsys):
    frame = make_frame(30)
    frame.insert(0, "column 1", np.random.default_rng(0).permutation(30))
    frame.to_csv("c.csv", index=False)
    assert report_columns(capsys, "c.csv")["column 1"]["is_used"]


@pytest.mark.parametrize("way", ["--blocks", "--no-blocks"])
def test_parquet_files_are_no_exception(folder, capsys, way):
    pytest.importorskip("pyarrow")
    make_frame().rename(columns={"x": ""}).to_parquet("t.parquet")
    status, out, err = untwist(capsys, "train", "t.parquet", "--label", "y", "--json", way)
    assert status == 0, err
    assert sorted(json.loads(out)["importances"]) == ["column 1", "z"]
    assert untwist(capsys, "predict", "model.untwist", "t.parquet", "--with-input", way)[0] == 0


def test_a_model_without_a_name_for_a_column_finds_it(folder, capsys):
    frame = make_frame().rename(columns={"x": ""})
    save(QuickClassifier(alpha=2.0, n_estimators=5).fit(frame[["", "z"]], frame["y"]), "old.untwist")
    frame.to_csv("t.csv", index=False)
    status, _, err = untwist(capsys, "predict", "old.untwist", "t.csv")
    assert status == 0, err
    frame.rename(columns={"": "x"}).to_csv("named.csv", index=False)
    assert untwist(capsys, "predict", "old.untwist", "named.csv")[0] == 1


@pytest.mark.filterwarnings("ignore:X has feature names")  # A file has names of text alone.
def test_columns_that_are_called_by_numbers_are_called_so_everywhere(folder, capsys):
    frame = make_frame().rename(columns={"x": 2019, "z": 2020})
    save(QuickClassifier(alpha=2.0, n_estimators=5).fit(frame[[2019, 2020]], frame["y"]), "model.untwist")
    frame.to_csv("t.csv", index=False)
    assert untwist(capsys, "predict", "model.untwist", "t.csv")[0] == 0
    columns = json.loads(untwist(capsys, "inspect", "model.untwist", "--json")[1])["columns"]
    assert [column["name"] for column in columns] == ["2019", "2020"]
    found = json.loads(untwist(capsys, "explain", "model.untwist", "t.csv", "--json")[1])
    assert sorted(found["mean_contribution"]) == ["2019", "2020"]


def test_decisions_are_about_the_file_as_it_is(folder):
    frame = make_frame(20)
    frame.to_csv("i.csv")
    as_text = pd.read_csv("i.csv", dtype=str, keep_default_na=False).rename(columns={"Unnamed: 0": ""})
    mark = fingerprint(as_text.drop(columns="y"), as_text["y"])
    read_again = read(folder / "i.csv").frame
    assert fingerprint_file(read_again, "y") == mark
    assert find_label(read_again, mark) == "y"


def test_a_column_that_is_called_an_id_and_counts_few_rows_is_left_out(folder, capsys):
    frame = make_frame(12)
    frame.insert(1, "id", np.arange(1, 13))
    frame.insert(1, "year", np.arange(1990, 2002))
    frame.to_csv("few.csv", index=False)
    found = report_columns(capsys, "few.csv")
    assert (found["id"]["is_used"], found["year"]["is_used"]) == (False, True)


def test_words_about_a_column_of_a_frame_without_a_name_are_not_blank():
    assert str(Reason("", 1.0, 2.0, 0.5)) == "(no name) is 1, usually 2 (+0.50)"
    assert str(Reason(3, 1.0, 2.0, 0.5)).startswith("column 3 is 1")
    assert "where (no name) is red" in str(Slice("", "red", 9, 0.5, 0.4, 0.6, 0.01))
