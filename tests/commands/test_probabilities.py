"""Audits of files by probabilities of any model, and advice that names options of the command."""

import json

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from helpers.command_line import untwist
from helpers.sourced_rows import draw_sourced_rows
from untwist.audit import audit_labels
from untwist.audit.hidden_sources import allow_for

pd = pytest.importorskip("pandas", reason="the commands read tables with pandas")
pytestmark = pytest.mark.usefixtures("few_components")


def make_table(rows=500, seed=0):
    """A table of which some labels are wrong, its true labels, and posteriors of a model that has not seen them."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, rows)
    frame = pd.DataFrame({"a": rng.normal(size=rows) + 3 * truth, "b": rng.normal(size=rows)}).round(4)
    y = np.where(rng.random(rows) < 0.15, 1 - truth, truth)
    posterior = cross_val_predict(LogisticRegression(), frame, y, cv=5, method="predict_proba")
    names = np.array(["leaves", "stays"])
    return frame.assign(churn=names[y]), names[truth], posterior


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with a table and a file of probabilities."""
    monkeypatch.chdir(tmp_path)
    frame, _, posterior = make_table()
    frame.to_csv("people.csv", index=False)
    pd.DataFrame(posterior, columns=["leaves", "stays"]).to_csv("p.csv", index=False)
    return tmp_path


AUDIT = ("audit", "people.csv", "--label", "churn", "--probabilities")


def test_probabilities_of_a_file_judge_the_labels(folder, capsys):
    outputs = ("--suspects", "s.csv", "--corrected", "c.csv", "-o", "r.html")
    status, out, err = untwist(capsys, *AUDIT, "p.csv", *outputs)
    frame, truth, posterior = make_table()
    audit = audit_labels(frame[["a", "b"]], frame["churn"], pred_probs=posterior)
    assert status == 0
    assert audit.verdict.describe(for_command=True, lists_rows=True) in out
    assert "trying settings" not in err
    suspects = pd.read_csv("s.csv")
    assert suspects["line"].tolist() == (audit.suspects() + 2).tolist()
    assert suspects["reasons"].isna().all()
    corrected = pd.read_csv("c.csv")["churn"]
    assert (corrected == truth).mean() > 0.93 > (frame["churn"] == truth).mean()
    assert "judged by posteriors that were given" in (folder / "r.html").read_text()


@pytest.mark.parametrize(
    "write",
    [
        lambda frame: frame.add_prefix("proba_").to_parquet("q.parquet"),
        lambda frame: frame.assign(id=range(len(frame)))[["id", "stays", "leaves"]].to_csv(
            "q.parquet.csv", index=False
        ),
        lambda frame: frame[["stays"]].to_csv("q.parquet.csv", index=False),
    ],
    ids=["parquet", "other columns", "one column"],
)
def test_files_of_probabilities_of_other_forms_say_the_same(folder, capsys, write):
    pytest.importorskip("pyarrow")
    expected = json.loads(untwist(capsys, *AUDIT, "p.csv", "--json")[1])
    write(pd.read_csv("p.csv"))
    path = next(folder.glob("q.*"))
    assert json.loads(untwist(capsys, *AUDIT, path, "--json")[1]) == expected
    assert expected["judge"] == "posteriors that were given"
    assert expected["looks_in_sample"] is False
    assert expected["suspects"]


def test_rows_without_a_label_are_left_out_of_both_files(folder, capsys):
    frame, _, posterior = make_table()
    audit = audit_labels(frame[["a", "b"]][3:], frame["churn"][3:], pred_probs=posterior[3:])
    frame.loc[:2, "churn"] = None
    frame.to_csv("people.csv", index=False)
    found = json.loads(untwist(capsys, *AUDIT, "p.csv", "--json")[1])
    assert found["rows"] == 497
    assert [one["line"] for one in found["suspects"]] == (audit.suspects() + 5).tolist()


def test_files_that_are_no_probabilities_are_refused(folder, capsys):
    def refuse(frame, *more):
        frame.to_csv("q.csv", index=False)
        status, out, err = untwist(capsys, *AUDIT, "q.csv", *more)
        assert status in (1, 2)
        assert not out
        return err

    good = pd.read_csv("p.csv")
    assert "q.csv must have a row for each of the 500 labels, got 499" in refuse(good[1:])
    assert "q.csv must have a column for each class: 'leaves', 'stays'" in refuse(
        good.set_axis(["leaves", "x"], axis=1)
    )
    assert "q.csv must sum to 1 in each row, got 1" in refuse(1.2 * good.clip(0.2, 0.8))
    assert "q.csv must hold numbers" in refuse(good.assign(stays="much"))
    assert "--peers are compared on the folds of our own model" in refuse(good, "--peers")
    assert "nowhere.csv does not exist" in untwist(capsys, *AUDIT, "nowhere.csv")[2]
    assert "p.csv is read or written already" in untwist(capsys, *AUDIT, "p.csv", "--suspects", "p.csv")[2]


def test_probabilities_that_have_seen_the_labels_are_named(folder, capsys):
    frame, *_ = make_table()
    forest = RandomForestClassifier(50, random_state=0).fit(frame[["a", "b"]], frame["churn"])
    pd.DataFrame(forest.predict_proba(frame[["a", "b"]]), columns=forest.classes_).to_csv("q.csv", index=False)
    _, out, err = untwist(capsys, *AUDIT, "q.csv")
    assert "the posteriors look as if they had seen the labels: they contradict" in out
    assert "UserWarning" not in err
    found = json.loads(untwist(capsys, *AUDIT, "q.csv", "--json")[1])
    assert found["looks_in_sample"] is True
    assert "a model of ours that has not seen these rows" in found["in_sample_reason"]


# ---- advice ----


@pytest.mark.slow
def test_advice_names_options_of_the_command_and_no_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y, source, _ = draw_sourced_rows(900)
    frame = pd.DataFrame(X.round(3), columns=list("abcd")).assign(branch=source, churn=y)
    frame.to_csv("branches.csv", index=False)
    _, out, _ = untwist(capsys, "audit", "branches.csv", "--label", "churn", "--seek-sources")
    assert "branch looks like a source rather than a feature" in out
    assert "run again with it as source: --source branch" in out
    found = json.loads(untwist(capsys, "audit", "branches.csv", "--label", "churn", "--seek-sources", "--json")[1])
    for words in (out, found["hidden_source"]["advice"]):
        assert "in Python" not in words
        assert "audit_labels(" not in words
        assert "suspects(" not in words
        assert "sources.rate(" not in words
    audit = audit_labels(frame.drop(columns="churn"), y)
    audit = allow_for(audit, audit.hidden_sources()[0])
    assert "in Python audit_labels(X.drop(columns='branch'), y, source=X['branch'])" in str(audit)
    # Where labels look wrong more often has a heading of its own.
    for line in audit.verdict.describe(for_command=True, lists_rows=True).splitlines():
        assert line in out or "look wrong more often" in line
