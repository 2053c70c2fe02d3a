"""Decisions on the command line: rows that are known teach the others."""

import json
from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import untwist
from helpers.prepared_tables import prepare_frame
from untwist import load
from untwist.audit import Decisions, audit_labels, read_decisions, write_decisions
from untwist.commands.decided import fingerprint_file, read_reviewed
from untwist.commands.sheets import read

pd = pytest.importorskip("pandas", reason="the commands read tables with pandas")

#: Rows of the file that have no label, so that positions in the table are others than in the file.
UNLABELLED = [0, 7, 200]


def make_table(n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).round(3)
    truth = (X[:, 0] + 0.7 * X[:, 1] ** 2 > 0.6).astype(int)
    y = np.where(rng.random(n) < 0.2, 1 - truth, truth)
    names = np.array(["stays", "leaves"])
    frame = pd.DataFrame(X, columns=list("abc")).assign(churn=names[y])
    frame.loc[UNLABELLED, "churn"] = ""
    return frame, names[truth]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table, and decisions about every fifth row of its file."""
    monkeypatch.chdir(tmp_path)
    frame, truth = make_table()
    frame.to_csv("data.csv", index=False)
    rows = np.setdiff1d(np.arange(0, 400, 5), UNLABELLED)
    given = frame["churn"].to_numpy()[rows]
    words = np.where(given == truth[rows], "keep", "relabel")
    mark = fingerprint_file(read(Path("data.csv")).frame, "churn")
    write_decisions("d.csv", Decisions(rows, given, words, truth[rows], [""] * len(rows), mark))
    return frame, truth, rows


@pytest.mark.slow
def test_training_learns_from_decisions(folder, capsys):
    _, truth, rows = folder
    status, out, _ = untwist(capsys, "train", "data.csv", "--label", "churn", "--reviewed", "d.csv", "-o", "m.untwist")
    assert status == 0
    assert "Trained on 397 rows" in out
    taught = load("m.untwist")
    sheet = read(Path("data.csv"))
    table = prepare_frame(sheet.frame, "churn")
    decisions = read_reviewed(Path("d.csv"), sheet.frame, "churn", table)
    np.testing.assert_array_equal(table.rows[decisions.rows], rows)
    np.testing.assert_array_equal(decisions.labels, truth[rows])
    expected = audit_labels(table.X, table.y, reviewed=decisions).model
    np.testing.assert_array_equal(taught.predict_proba(table.X), expected.predict_proba(table.X))
    assert untwist(capsys, "train", "data.csv", "--label", "churn", "-o", "plain.untwist")[0] == 0
    assert (load("plain.untwist").predict_proba(table.X) != taught.predict_proba(table.X)).any()


def test_reviewed_rows_are_no_suspects_of_an_audit(folder, capsys):
    _, truth, rows = folder
    status, out, _ = untwist(capsys, "audit", "data.csv", "--label", "churn", "--reviewed", "d.csv", "--budget", "397",
                             "--suspects", "s.csv", "--corrected", "fixed.csv")  # fmt: skip
    assert status == 0
    n_wrong = int((folder[0]["churn"].to_numpy()[rows] != truth[rows]).sum())
    assert f"{len(rows)} rows are reviewed: {n_wrong} of their labels were wrong, {len(rows) - n_wrong} right" in out
    assert f"the data still hold all {n_wrong} labels found wrong: untwist apply changes them" in out
    suspects = pd.read_csv("s.csv")
    assert len(suspects) == 397 - len(rows)
    assert not np.isin(suspects["line"] - 2, rows).any()
    # What was decided is in the corrected table too.
    fixed = pd.read_csv("fixed.csv")["churn"].to_numpy()
    np.testing.assert_array_equal(fixed[rows], truth[rows])


@pytest.mark.slow
def test_labels_may_have_been_changed_since(folder, capsys):
    assert untwist(capsys, "apply", "d.csv", "data.csv", "-o", "new.csv")[0] == 0
    found = [
        json.loads(untwist(capsys, "audit", name, "--label", "churn", "--reviewed", "d.csv", "--json")[1])
        for name in ("data.csv", "new.csv")
    ]
    before, after = found
    reviews = before["review"], after["review"]
    n_wrong = reviews[0]["wrong"]
    assert (reviews[0]["still_wrong"], reviews[1]["still_wrong"]) == (n_wrong, 0)
    for name in ("rows", "right", "wrong", "skipped", "rows_left"):
        assert reviews[0][name] == reviews[1][name]
    assert reviews[0]["wrong_left"] == pytest.approx(reviews[1]["wrong_left"])
    shares = [one["verdict"]["share"] for one in found]
    for name in ("value", "low", "high"):
        assert shares[0][name] - shares[1][name] == pytest.approx(n_wrong / 397)
    assert before["suspects"] == after["suspects"]
    for name in ("value", "low", "high"):
        assert before["wrong_among_suspects"][name] == pytest.approx(after["wrong_among_suspects"][name])


def test_what_is_refused(folder, capsys):
    frame, _, _ = folder
    frame.iloc[::-1].to_csv("other.csv", index=False)
    status, _, err = untwist(capsys, "audit", "other.csv", "--label", "churn", "--reviewed", "d.csv")
    assert status == 1
    assert "d.csv is about another file, or about another label than 'churn'" in err
    many = read_decisions("d.csv")
    write_decisions("d.csv", Decisions([999], ["stays"], ["keep"], ["stays"], [""], many.fingerprint))
    status, _, err = untwist(capsys, "train", "data.csv", "--label", "churn", "--reviewed", "d.csv")
    assert status == 1
    assert "d.csv: a decision has 999 for its row, which is counted from 0, but the table has 400 rows" in err
    for command in ("train", "audit"):
        status, _, err = untwist(
            capsys, command, "data.csv", "--label", "churn", "--reviewed", "d.csv", "--source", "a"
        )
        assert status == 2
        assert "--reviewed" in err
    status, _, err = untwist(capsys, "train", "data.csv", "--label", "churn", "--reviewed", "d.csv", "-o", "d.csv")
    assert status == 1
    assert "read or written already" in err
