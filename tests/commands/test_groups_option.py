"""Groups on the command line: a column that says which rows belong together, and is no feature."""

import json
from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import untwist
from helpers.grouped_rows import draw_patients
from untwist import load
from untwist.commands.columns import PreparedTable
from untwist.commands.sheets import Sheet
from untwist.commands.steps import name_near_duplicates
from untwist.data.near_duplicates import NearDuplicates

pd = pytest.importorskip("pandas", reason="the commands read tables with pandas")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a table of patients, 14 rows each, that nearly repeat each other."""
    monkeypatch.chdir(tmp_path)
    X, y, patient, _ = draw_patients(30, 14, 6)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(patient=[f"P{one:03d}" for one in patient], ill=y)
    frame.sample(frac=1.0, random_state=0).to_csv("visits.csv", index=False)
    frame.to_parquet("visits.parquet")
    return tmp_path


def test_training_is_told_which_rows_belong_together(folder, capsys):
    status, out, err = untwist(capsys, "train", "visits.csv", "--label", "ill", "--groups", "patient", "--json")
    assert status == 0
    assert "patient: which rows belong together, one of 30; no feature, left out" in err
    found = json.loads(out)
    assert found["near_duplicates"] is None
    assert found["agrees_with_labels"] < 0.95
    assert list(load("model.untwist").feature_names_in_) == list("abcdef")


def test_training_without_groups_warns_and_names_the_column(folder, capsys):
    status, out, err = untwist(capsys, "train", "visits.csv", "--label", "ill", "--drop", "patient")
    assert status == 0
    assert "have near-duplicates in other folds" in out
    assert "--groups patient" in out
    assert "Noise: how many are wrong cannot be told" in out
    assert "UserWarning" not in err
    status, out, _ = untwist(capsys, "train", "visits.csv", "--label", "ill", "--json")
    assert json.loads(out)["near_duplicates"]["column"] == "patient"
    assert json.loads(out)["matrix"] is None
    # The file remembers it.
    _, out, _ = untwist(capsys, "inspect", "model.untwist")
    assert "noise: how many are wrong cannot be told" in out
    found = json.loads(untwist(capsys, "inspect", "model.untwist", "--json")[1])
    assert found["near_duplicates"] is True
    assert found["matrix"] is None
    assert "how many are wrong cannot be told" in repr(load("model.untwist").model_)


def test_training_in_blocks_takes_groups(folder, capsys):
    pytest.importorskip("pyarrow")
    status, _, err = untwist(
        capsys, "train", "visits.parquet", "--label", "ill", "--groups", "patient", "--blocks", "-o", "blocks.untwist"
    )
    assert status == 0
    assert "patient: which rows belong together" in err
    assert list(load("blocks.untwist").feature_names_in_) == list("abcdef")


def test_near_duplicates_are_looked_for_in_blocks_too(folder, capsys):
    pytest.importorskip("pyarrow")
    arguments = ["train", "visits.parquet", "--label", "ill", "--drop", "patient", "--json"]
    whole, blocks = (json.loads(untwist(capsys, *arguments, how)[1]) for how in ("--no-blocks", "--blocks"))
    assert blocks["near_duplicates"] == whole["near_duplicates"]
    assert blocks["near_duplicates"]["column"] == "patient"
    assert blocks["noise"].startswith("how many are wrong cannot be told")


def test_an_audit_by_groups(folder, capsys):
    arguments = ["audit", "visits.csv", "--label", "ill", "--groups", "patient"]
    status, out, _ = untwist(capsys, *arguments, "-o", "r.html")
    assert status == 0
    assert "rows of 30 groups are judged by models that have not seen their group" in out
    assert "near-duplicates" not in out
    assert "rows of 30 groups" in (folder / "r.html").read_text()
    found = json.loads(untwist(capsys, *arguments, "--json")[1])
    assert found["groups"] == 30
    assert found["rows_per_case"] > 10
    assert found["near_duplicates"] is None
    assert found["verdict"]["upper_bound"]["high"] > 0.2


@pytest.mark.slow
def test_an_audit_without_groups_claims_nothing(folder, capsys):
    status, out, err = untwist(capsys, "audit", "visits.csv", "--label", "ill", "--drop", "patient", "-o", "r.html")
    assert status == 0
    assert out.startswith("420 labels: whether labels are wrong or rows are hard cannot be told from these data")
    assert "--groups patient" in out
    assert "no sign of noise" not in out
    assert "UserWarning" not in err
    assert "have near-duplicates in other folds" in (folder / "r.html").read_text()
    found = json.loads(untwist(capsys, "audit", "visits.csv", "--label", "ill", "--drop", "patient", "--json")[1])
    assert found["near_duplicates"]["share"] > 0.8
    assert found["near_duplicates"]["advice"].endswith("--groups patient ('patient' looks like their name)")
    verdict = found["verdict"]
    assert (verdict["state"], verdict["upper_bound"]["high"], found["matrix"]) == ("undecided", 1.0, None)
    assert verdict["by_class"] == verdict["by_label"] == verdict["pairs"] == found["confusions"] == []


def test_columns_left_out_that_hold_no_text_do_not_matter():
    rows = np.arange(40)
    frame = pd.DataFrame({"scan": [b"\xff"] * 40, "parts": [[1]] * 40, "patient": rows // 4, "ill": rows % 2})
    pairs = np.column_stack([rows[::4], rows[1::4]])
    twins = NearDuplicates(0.9, 0.0, 0.4, pairs, np.column_stack([rows[:-4], rows[4:]]))
    table = PreparedTable(frame[[]], frame["ill"].to_numpy(), rows)
    assert name_near_duplicates(twins, Sheet(Path("visits.csv"), frame), table, "ill").column == "patient"


def test_given_probabilities_are_judged_by_groups(folder, capsys):
    frame = pd.read_csv("visits.csv")
    share = 0.8 * frame["ill"] + 0.1
    pd.DataFrame({"0": 1 - share, "1": share}).to_csv("p.csv", index=False)
    found = json.loads(
        untwist(capsys, "audit", "visits.csv", "--label", "ill", "--groups", "patient", "--probabilities", "p.csv",
                "--json")[1]
    )  # fmt: skip
    assert found["groups"] == 30


def test_the_groups_are_no_other_column_and_inspect_knows_them(folder, capsys):
    for command in ("train", "inspect"):
        status, _, err = untwist(capsys, command, "visits.csv", "--label", "ill", "--groups", "ill")
        assert status != 0
        assert "label, source, item and groups must be different columns" in err
    status, _, err = untwist(capsys, "audit", "visits.csv", "--label", "ill", "--groups", "pat")
    assert "did you mean 'patient'?" in err
    status, out, _ = untwist(capsys, "inspect", "visits.csv", "--label", "ill", "--groups", "patient")
    assert status == 0
    assert any(line.split()[:2] == ["patient", "groups"] for line in out.splitlines())
    assert name_near_duplicates(None, None, None, "ill") is None
