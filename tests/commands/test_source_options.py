"""Sources and items on the command line: columns that are no features."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest

from helpers.command_line import untwist
from helpers.grouped_rows import draw_patients
from helpers.prepared_tables import prepare_frame
from helpers.sourced_rows import draw_sourced_rows, draw_votes
from untwist import UntwistClassifier, load, save
from untwist.audit import audit_labels

pd = pytest.importorskip("pandas", reason="the commands read tables with pandas")
pytestmark = pytest.mark.usefixtures("few_components")


def make_branches(n=600, **settings):
    X, y, source, truth = draw_sourced_rows(n, **settings)
    frame = pd.DataFrame(X.round(3), columns=list("abcd"))
    return frame.assign(branch=source, churn=np.array(["leaves", "stays"])[y]), np.array(["leaves", "stays"])[truth]


def make_votes(n_items=250):
    X, y, source, items, truth = draw_votes(n_items)
    frame = pd.DataFrame(X.round(3), columns=list("abcd"))
    who = np.array(["Ann", "Bea", "Cid", "Dov", "Eve"])[source]
    return frame.assign(picture=items + 100, who=who, says=np.array(["cat", "dog"])[y]), truth


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with a table of branches and one of votes."""
    monkeypatch.chdir(tmp_path)
    make_branches()[0].to_csv("branches.csv", index=False)
    make_votes()[0].to_csv("votes.csv", index=False)
    return tmp_path


@pytest.mark.slow
def test_an_audit_by_source_names_the_bad_branch(folder, capsys):
    status, out, err = untwist(capsys, "audit", "branches.csv", "--label", "churn", "--source", "branch", "--suspects",
                               "s.csv", "-o", "r.html")  # fmt: skip
    assert status == 0
    assert "branch: who gave the label, one of 4; no feature, left out" in err
    assert "600 rows, 4 columns, 2 classes" in err
    assert "of the labels of Leipzig are wrong" in out
    assert "review them first, or leave them out" in out
    suspects = pd.read_csv("s.csv")
    assert list(suspects)[:3] == ["line", "source", "label"]
    assert (suspects["source"] == suspects["branch"]).all()
    assert (suspects["source"] == "Leipzig").mean() > 0.6
    page = (folder / "r.html").read_text()
    assert 'id=sources aria-labelledby="sources-title"' in page
    assert "<small>by Leipzig</small>" in page


@pytest.mark.slow
def test_json_has_the_sources(folder, capsys):
    frame, _ = make_branches()
    status, out, _ = untwist(capsys, "audit", "branches.csv", "--label", "churn", "--source", "branch", "--json")
    found = json.loads(out)
    assert status == 0
    audit = audit_labels(frame[list("abcd")], frame["churn"], source=frame["branch"])
    first = found["sources"][0]
    expected = audit.sources.rate()[0]
    assert [one["source"] for one in found["sources"]] == [one.name for one in audit.sources.rate()]
    assert (first["source"], first["labels"], first["stands_out"]) == ("Leipzig", expected.labels, True)
    assert first["share"] == pytest.approx(expected.share_wrong)
    assert first["low"] < first["share"] < first["high"]
    assert [one["class"] for one in first["by_class"]] == ["leaves", "stays"]
    assert found["labels_per_item"] == 1.0
    assert found["disagreements"] == []
    assert all(one["source"] in set(frame["branch"]) for one in found["suspects"])
    plain = json.loads(untwist(capsys, "audit", "branches.csv", "--label", "churn", "--budget", "2", "--json")[1])
    assert "sources" not in plain
    assert [sorted({"source", "label"} & set(one)) for one in plain["suspects"]] == [["label"], ["label"]]


@pytest.mark.slow
def test_a_model_trained_by_source_predicts_files_with_and_without_the_column(folder, capsys):
    status, out, err = untwist(capsys, "train", "branches.csv", "--label", "churn", "--source", "branch", "-o", "m.u")
    assert status == 0
    assert "branch: who gave the label" in err
    assert "Sources: noisier than the others" in out
    assert "Leipzig" in out
    assert "wrong labels: " in out
    frame, truth = make_branches()
    frame.drop(columns=["branch", "churn"]).to_csv("new.csv", index=False)
    with_column = untwist(capsys, "predict", "m.u", "branches.csv")
    assert with_column[0] == 0
    assert with_column[1:] == untwist(capsys, "predict", "m.u", "new.csv")[1:]
    assert np.mean(pd.read_csv(io.StringIO(with_column[1]))["prediction"] == truth) > 0.9
    model = load("m.u")
    assert model.feature_names_in_.tolist() == list("abcd")
    trained = json.loads(
        untwist(capsys, "train", "branches.csv", "--label", "churn", "--source", "branch", "--json")[1]
    )
    inspected = json.loads(untwist(capsys, "inspect", "m.u", "--json")[1])
    assert trained["noise_found"]
    assert trained["sources"] == inspected["sources"]
    assert trained["sources"][0]["source"] == "Leipzig"
    assert trained["matrix"] == inspected["matrix"]
    assert np.sum(trained["matrix"], axis=1) == pytest.approx([1.0, 1.0])
    shares = [one["share"] for one in trained["sources"]]
    assert min(shares) < 1 - trained["matrix"][0][0] < max(shares)
    plain = json.loads(untwist(capsys, "train", "branches.csv", "--label", "churn", "--json")[1])
    assert plain["sources"] is None


@pytest.mark.slow
def test_the_corrected_copy_has_the_truth_in_every_row_of_an_item(folder, capsys):
    frame, truth = make_votes()
    arguments = ["votes.csv", "--label", "says", "--source", "who", "--item", "picture", "--corrected", "c.csv"]
    status, out, err = untwist(capsys, "audit", *arguments)
    assert status == 0
    assert "picture: what the label is of, one of 250; no feature, left out" in err
    assert "the truth of each item comes from its features and 3 labels on average" in out
    corrected = pd.read_csv("c.csv")
    assert (corrected.groupby("picture")["says"].nunique() == 1).all()
    right = corrected["says"] == np.array(["cat", "dog"])[truth]
    assert right.mean() > (frame["says"] == np.array(["cat", "dog"])[truth]).mean() + 0.1
    pd.testing.assert_frame_equal(corrected.drop(columns="says"), frame.drop(columns="says"))
    few = untwist(capsys, "audit", *arguments, "--budget", "1")
    assert few[0] == 0
    changed = pd.read_csv("c.csv")["says"] != frame["says"]
    assert frame.loc[changed, "picture"].nunique() == 1


def test_json_tells_who_disagrees_with_whom(folder, capsys):
    found = json.loads(
        untwist(capsys, "audit", "votes.csv", "--label", "says", "--source", "who", "--item", "picture", "--json")[1]
    )
    assert found["labels_per_item"] == 3.0
    assert {name for one in found["disagreements"] for name in one["sources"]} == {"Ann", "Bea", "Cid", "Dov", "Eve"}
    assert all(0 <= one["share"] <= 1 and 0 <= one["expected"] <= 1 for one in found["disagreements"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "brnch"], "there is no column 'brnch': did you mean 'branch'?"),
        (["--source", "zzz"], "there is no column 'zzz': the columns are 'a', 'b', 'c', 'd', 'branch', 'churn'"),
        (["--item", "a"], "an item needs a source too: the column that says who gave each of its labels"),
        (["--source", "churn"], "label, source, item and groups must be different columns"),
        (["--source", "branch", "--item", "branch"], "label, source, item and groups must be different columns"),
        (["--source", "branch", "--keep", "branch"], "column 'branch' is the source and no feature: it cannot be kept"),
    ],
)
def test_columns_that_cannot_be_sources_are_named(folder, capsys, arguments, message):
    for command in ("audit", "train"):
        status, out, err = untwist(capsys, command, "branches.csv", "--label", "churn", *arguments)
        assert (status, out) == (1, "")
        assert message in err


@pytest.mark.parametrize("told", [["--source", "branch"], ["--groups", "branch"], ["--probabilities", "p.csv"]])
def test_sources_are_sought_where_none_are_told_and_our_model_judges(folder, capsys, told):
    status, out, err = untwist(capsys, "audit", "branches.csv", "--label", "churn", "--seek-sources", *told)
    assert (status, out) == (2, "")
    assert "--seek-sources is for rows that stand alone, judged by a model of ours" in err


@pytest.mark.slow
def test_training_tells_no_share_of_a_source_whose_rows_have_near_twins(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y, _, _ = draw_patients(30, 14, 6)
    who = np.random.default_rng(0).choice(["Ann", "Bob", "Cid"], len(y))
    pd.DataFrame(X, columns=list("abcdef")).assign(who=who, ill=y).to_csv("visits.csv", index=False)
    arguments = ["train", "visits.csv", "--label", "ill", "--source", "who"]
    _, out, _ = untwist(capsys, *arguments)
    assert "Sources: which of 3 are noisier than the others cannot be told either." in out
    _, out, _ = untwist(capsys, "inspect", "model.untwist")
    assert "sources: which of 3 are noisier than the others cannot be told either" in out
    assert f"  Ann  {np.count_nonzero(who == 'Ann')} labels" in out.splitlines()
    told, kept = (
        json.loads(untwist(capsys, *command, "--json")[1])["sources"]
        for command in (arguments, ["inspect", "model.untwist"])
    )
    assert told == kept
    assert [one["source"] for one in told] == ["Ann", "Bob", "Cid"]
    assert {one[name] for one in told for name in ("share", "low", "high", "matrix")} == {None}
    assert load("model.untwist").sources_ is None


def test_among_near_twins_a_source_that_stands_out_is_named_without_its_share(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y, source, _ = draw_sourced_rows()
    model = UntwistClassifier(random_state=0, n_jobs=1).fit(X, y, source=source)
    model.model_ = replace(model.model_, has_twins=True)
    save(model, "m.untwist")
    lines = untwist(capsys, "inspect", "m.untwist")[1].splitlines()
    assert "sources: noisier than the others (by how much cannot be told): Leipzig" in lines
    assert f"  Leipzig  {np.count_nonzero(source == 'Leipzig')} labels, stands out" in lines
    assert not any("% wrong" in line for line in lines)
    first, *others = json.loads(untwist(capsys, "inspect", "m.untwist", "--json")[1])["sources"]
    assert (first["source"], first["stands_out"]) == ("Leipzig", True)
    assert {one[name] for one in (first, *others) for name in ("share", "low", "high", "matrix")} == {None}
    names = [one["source"] for one in others]
    assert names == sorted(names)


def test_believing_all_labels_and_telling_sources_apart_exclude_each_other(folder, capsys):
    arguments = ["branches.csv", "--label", "churn", "--source", "branch", "--believe-labels"]
    status, _, err = untwist(capsys, "train", *arguments)
    assert status == 2
    assert "--believe-labels and --source exclude each other" in err


def test_sources_are_names_whatever_they_look_like():
    frame = pd.DataFrame(
        {
            "x": np.arange(8.0),
            "who": [" Ann", "Ann ", "", None, "NA", "Ann", "7", "7"],
            "month": [3.0, 3.0, np.nan, 4.0, 4.0, 12.0, 12.0, 3.0],
            "y": ["a", "b", "a", "b", None, "b", "a", "b"],
        }
    )
    table = prepare_frame(frame, "y", source="who", item="month")
    assert table.source.tolist() == ["Ann", "Ann", None, None, "Ann", "7", "7"]  # The row without a label is left out.
    assert table.item.tolist() == ["3", "3", None, "4", "12", "12", "3"]
    assert list(table.X) == ["x"]
    assert "who: who gave the label, one of 2 (2 cells are empty); no feature, left out" in table.notes
    assert prepare_frame(frame.assign(y=list("abababab")), "y", source="who").source[4] == "NA"
    assert prepare_frame(frame, "y").source is None


@pytest.mark.slow
def test_a_file_read_in_blocks_has_its_sources_too(folder, capsys):
    pytest.importorskip("pyarrow")
    make_branches()[0].to_parquet("branches.parquet")
    for blocks in ("--blocks", "--no-blocks"):
        arguments = ["branches.parquet", "--label", "churn", "--source", "branch", "-o", f"m{blocks}.untwist", blocks]
        status, out, _ = untwist(capsys, "train", *arguments)
        assert status == 0
        assert "Leipzig" in out
    assert (folder / "m--blocks.untwist").read_bytes() == (folder / "m--no-blocks.untwist").read_bytes()


@pytest.mark.slow
def test_names_of_sources_cannot_steer_the_terminal(folder, capsys):
    frame, _ = make_branches(600)
    frame["branch"] = frame["branch"].replace("Leipzig", "\x1b[31mLeipzig\u202e").replace("Ulm", "=1+1")
    frame.to_csv("odd.csv", index=False)
    arguments = ["odd.csv", "--label", "churn", "--source", "branch"]
    _, out, err = untwist(capsys, "audit", *arguments, "--suspects", "s.csv")
    assert "Leipzig" in out
    assert not {"\x1b", "\u202e"} & set(out + err)
    assert "\x1b" not in untwist(capsys, "audit", *arguments, "--json")[1]
    assert "\x1b" not in untwist(capsys, "train", *arguments)[1]
    cells = pd.read_csv("s.csv")["source"]
    assert not cells.str.startswith("=").any()
