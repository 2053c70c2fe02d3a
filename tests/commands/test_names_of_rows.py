"""A row is called alike on all surfaces: by the line of the file, or where rows have no lines by its number from 1."""

import json
import re
import zipfile

import numpy as np
import pandas as pd
import pytest

from tests.helpers.command_line import untwist
from untwist.audit import Decisions, write_decisions
from untwist.commands.decided import fingerprint_file
from untwist.commands.sheets import read

#: The position of the row whose label is wrong.
WRONG = 40


def make_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=120).round(3), "note": ["of\ntwo lines", *[""] * 119]})
    frame["y"] = np.where(frame["x"] > 0, "yes", "no")
    frame.loc[WRONG, "x"] = 3.0
    frame.loc[WRONG, "y"] = "no"
    return frame


def write(name):
    frame = make_frame()
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
        frame.to_parquet(name)
    elif name.endswith(".xlsx"):
        pytest.importorskip("openpyxl")
        frame.to_excel(name, index=False)
    else:
        frame.to_csv(name.removesuffix(".zip"), index=False)
        if name.endswith(".zip"):
            with zipfile.ZipFile(name, "w") as archive:
                archive.write(name.removesuffix(".zip"))


@pytest.mark.parametrize(
    ("name", "word", "number"),
    [
        ("t.csv", "line", WRONG + 3),  # After the header and a cell of two lines.
        ("t.csv.zip", "row", WRONG + 1),
        ("t.parquet", "row", WRONG + 1),
        ("t.xlsx", "row", WRONG + 2),  # As a spreadsheet shows it, the header being row 1.
    ],
)
def test_a_row_has_one_name(tmp_path, monkeypatch, capsys, name, word, number):
    monkeypatch.chdir(tmp_path)
    write(name)
    audit = ["audit", name, "--label", "y", "--budget", 1]
    status, out, err = untwist(capsys, *audit, "--suspects", "s.csv", "-o", "r.html")
    assert status == 0, err
    assert f"\n{word} {number} of {name}: labelled no" in out
    assert pd.read_csv("s.csv")[word].tolist() == [number]
    page = (tmp_path / "r.html").read_text()
    assert f'"row_name":"{word}"' in page.replace(" ", "")
    assert json.loads(untwist(capsys, *audit, "--json")[1])["suspects"][0][word] == number

    untwist(capsys, "train", name, "--label", "y")
    out = untwist(capsys, "explain", "model.untwist", name, "--line", number)[1]
    assert out.startswith(f"{word} {number}: ")
    one = json.loads(untwist(capsys, "explain", "model.untwist", name, "--line", number, "--json")[1])[0]
    assert (one[word], one["position"]) == (number, WRONG)
    assert (
        f"no row begins in {word} 999 of {name}" in untwist(capsys, "explain", "model.untwist", name, "--line", 999)[2]
    )

    frame = read(tmp_path / name).frame
    for label, words in (("perhaps", f"{word} {number} is relabelled 'perhaps'"), ("yes", "")):
        mark = fingerprint_file(frame, "y")
        write_decisions("d.csv", Decisions([WRONG], ["no"], ["relabel"], [label], [""], mark))
        assert words in untwist(capsys, "train", name, "--label", "y", "--reviewed", "d.csv")[2]
    write_decisions("d.csv", Decisions([WRONG], ["never"], ["keep"], ["never"], [""], mark))
    was = f"{word} {number} is labelled 'no', but it was 'never' when it was reviewed"
    assert was in untwist(capsys, "train", name, "--label", "y", "--reviewed", "d.csv")[2]
    if not name.endswith(".zip"):
        err = untwist(
            capsys, "apply", "d.csv", name, "-o", f"new{tmp_path.joinpath(name).suffix.replace('xlsx', 'csv')}"
        )[2]
        assert f"{word} {number} of {name} had the label 'never'" in err


def test_errors_of_probabilities_call_rows_as_their_file_does(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write("t.csv")
    good = pd.DataFrame({"no": np.full(120, 0.5), "yes": np.full(120, 0.5)})
    for wrong, words in ((0.9, "must sum to 1 in each row, got 1.4 in line 9"), (7.0, "got 7.0 in line 9, class 'no'")):
        good.assign(no=np.where(np.arange(120) == 7, wrong, 0.5)).to_csv("p.csv", index=False)
        assert words in untwist(capsys, "audit", "t.csv", "--label", "y", "--probabilities", "p.csv")[2]


def test_the_numbers_beside_reasons_have_a_unit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write("t.csv")
    out = untwist(capsys, "audit", "t.csv", "--label", "y", "--budget", 1)[1]
    assert re.search(r"x is 3, usually .* \(\+\d+\.\d\d\)\n", out)
    assert "\nIn brackets: how many log-odds likelier the label would be with the usual value.\n" in out
