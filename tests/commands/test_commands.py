"""The command line: what a person types, what comes out, and a plain sentence for whatever is wrong."""

import hashlib
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import untwist
from helpers.prepared_tables import prepare_frame
from helpers.sourced_rows import draw_sourced_rows
from helpers.tickets import make_tickets
from untwist import Growth, PILBoostClassifier, UntwistClassifier, _core, load, progress, save
from untwist.audit import audit_labels
from untwist.commands import doctor, inspect, sheets, steps
from untwist.commands import main as cli
from untwist.explain import explain
from untwist.twisters import ClassNoise

pd = pytest.importorskip("pandas", reason="the commands read tables with pandas")
pytestmark = pytest.mark.usefixtures("few_components")


def make_people(rows=400, noise=0.15, seed=0):
    """Text, numbers, missing values, dates, an id; the label depends on city and age."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "customer_id": np.arange(rows) + 1000,
            "city": rng.choice(["Åre", "Lund", "Ystad", "Kiruna"], rows),
            "age": rng.integers(18, 90, rows).astype(float),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
        }
    )
    truth = np.where((frame["age"] > 50) ^ frame["city"].isin(["Lund", "Kiruna"]), "stays", "leaves")
    frame["since"] = frame["since"].dt.strftime("%Y-%m-%d")
    frame.loc[rng.random(rows) < 0.05, "age"] = np.nan
    frame["churn"] = ClassNoise(noise).twist(None, truth, seed)[1] if noise else truth
    return frame, truth


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with a table."""
    monkeypatch.chdir(tmp_path)
    frame, _ = make_people()
    frame.to_csv("people.csv", index=False)
    return tmp_path


@pytest.fixture(scope="module")
def model_content(tmp_path_factory):
    """The file of a model trained on the table as it comes."""
    folder = tmp_path_factory.mktemp("model")
    make_people()[0].to_csv(folder / "people.csv", index=False)
    assert cli.main(["train", f"{folder}/people.csv", "--label", "churn", "-o", f"{folder}/model.untwist"]) == 0
    return (folder / "model.untwist").read_bytes()


@pytest.fixture
def trained(folder, model_content):
    """The folder with the table, and model.untwist trained on it."""
    (folder / "model.untwist").write_bytes(model_content)
    return folder


# Train and predict


def test_train_then_predict(folder, capsys):
    status, out, err = untwist(capsys, "train", "people.csv", "--label", "churn", "-o", "m.untwist")
    assert status == 0
    assert "customer_id: looks like an id; left out (--keep 'customer_id' uses it)" in err
    assert "since: dates" in err
    assert "400 rows, 3 columns, 2 classes" in err
    assert "Model: m.untwist" in out
    assert "of what is truly leaves" in out
    frame, truth = make_people()
    frame.drop(columns="churn").to_csv("new.csv", index=False)
    status, out, err = untwist(capsys, "predict", "m.untwist", "new.csv")
    predictions = pd.read_csv(io.StringIO(out))
    assert status == 0
    assert list(predictions) == ["prediction", "P(leaves)", "P(stays)"]
    assert np.mean(predictions["prediction"] == truth) > 0.9
    np.testing.assert_allclose(predictions[["P(leaves)", "P(stays)"]].sum(axis=1), 1.0)
    table = prepare_frame(frame, "churn")
    model = UntwistClassifier(random_state=0).fit(table.X, table.y)
    np.testing.assert_allclose(predictions["P(stays)"], model.predict_proba(table.X)[:, 1])


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv", lambda f, n: f.to_csv(n, index=False)),
        ("t.tsv", lambda f, n: f.to_csv(n, index=False, sep="\t")),
        ("t.txt", lambda f, n: f.to_csv(n, index=False, sep=";")),
        ("t.csv.gz", lambda f, n: f.to_csv(n, index=False)),
        ("t.csv.xz", lambda f, n: f.to_csv(n, index=False, sep="|")),
        ("t.csv.zip", lambda f, n: f.to_csv(n, index=False)),
        ("t.parquet", lambda f, n: f.to_parquet(n)),
        ("t.feather", lambda f, n: f.to_feather(n)),
    ],
)
def test_every_kind_of_file_is_the_same_table(folder, name, write):
    if name.endswith(("parquet", "feather")):
        pytest.importorskip("pyarrow")
    frame, _ = make_people()
    write(frame, name)
    found = prepare_frame(sheets.read(folder / name).frame, "churn").X
    expected = prepare_frame(frame, "churn").X
    assert list(found) == list(expected)
    assert (found["city"].astype(str) == frame["city"]).all()
    np.testing.assert_array_equal(found["age"], frame["age"])
    np.testing.assert_array_equal(found["since"], expected["since"])


def test_predictions_to_a_file_with_the_input(trained, capsys):
    for name in ("out.csv", "out.csv.gz", "out.parquet", "out.feather"):
        status, out, err = untwist(capsys, "predict", "model.untwist", "people.csv", "-o", name, "--with-input")
        assert (status, out) == (0, "")
        assert f"400 predictions in {name}" in err
        found = sheets.read(trained / name).frame
        assert list(found)[:5] == list(make_people()[0])
        assert "P(stays)" in found
    assert not list(trained.glob(".*"))


def test_new_rows_are_made_to_fit_and_it_is_said(trained, capsys):
    new = pd.DataFrame({"since": ["2021-05-01", "soon"], "age": ["44", "old"], "city": ["Lund", "Paris"], "x": [1, 2]})
    new.to_csv("new.csv", index=False)
    status, out, err = untwist(capsys, "predict", "model.untwist", "new.csv", "--json")
    assert status == 0
    assert "age: 1 values are no numbers: taken as missing" in err
    assert "city: 'Paris' did not occur in training: taken as missing" in err
    assert "since: 1 values are no dates" in err
    rows = json.loads(out)
    model = load("model.untwist")
    day = pd.to_datetime(["2021-05-01", None])
    same = pd.DataFrame({"city": ["Lund", None], "age": [44.0, np.nan], "since": day})
    np.testing.assert_allclose([row["P(stays)"] for row in rows], model.predict_proba(same)[:, 1])


@pytest.mark.slow
def test_json_is_json_and_words_go_to_the_other_stream(folder, capsys):
    for arguments in (
        ["train", "people.csv", "--label", "churn"],
        ["audit", "people.csv", "--label", "churn"],
        ["inspect", "model.untwist"],
        ["doctor"],
        ["predict", "model.untwist", "people.csv"],
    ):
        status, out, _ = untwist(capsys, *arguments, "--json")
        assert status == 0
        assert json.loads(out)


# Columns


def test_columns_are_what_they_look_like():
    n = 200
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "stray": ["many", "few", "?"] + ["7.5"] * (n - 3),
            "mixed": ["a", "b"] * 20 + ["1"] * (n - 40),
            "date": ["2021-01-01T10:00"] * (n - 1) + [None],
            "stamp": pd.Timestamp("1970-01-03"),
            "empty": np.nan,
            "word": [f"w{i}" for i in range(n)],
            "flag": rng.random(n) < 0.5,
            "row_id": rng.permutation(n),
            "grid": rng.permutation(n),
            "y": rng.choice(["a", "b"], n),
        }
    )
    table = prepare_frame(frame, "y")
    notes = "\n".join(table.notes)
    assert list(table.X) == ["number", "stray", "mixed", "date", "stamp", "flag", "grid"]
    assert "stray: numbers; 'many', 'few' taken as missing" in notes
    assert "mixed: text, though 80% of its values are numbers" in notes
    assert table.X["date"][0] == pd.Timestamp("2021-01-01T10:00")
    assert table.X["stamp"][0] == pd.Timestamp("1970-01-03")
    assert "empty: all values are missing; left out" in notes
    assert "word: 200 different words in 200 rows; left out (--keep 'word' uses it)" in notes
    assert "row_id: looks like an id" in notes
    kept = prepare_frame(frame, "y", keep=["word", "row_id"], drop=["grid"])
    assert {"word", "row_id"} <= set(kept.X)
    assert "grid" not in kept.X


def test_a_leak_is_warned_of_and_kept():
    frame, truth = make_people(noise=0)
    frame["cancelled_on_phone"] = np.where(truth == "leaves", 1, 0)
    table = prepare_frame(frame, "churn")
    assert any(note.startswith("cancelled_on_phone: tells the label in 100.0%") for note in table.notes)
    assert "cancelled_on_phone" in table.X
    assert not any("tells the label" in note for note in prepare_frame(make_people()[0], "churn").notes)


def test_rows_without_a_label_are_left_out_and_counted():
    frame, _ = make_people()
    frame.loc[[3, 7], "churn"] = None
    table = prepare_frame(frame, "churn")
    assert table.notes[0] == "2 rows have no label and are left out"
    assert len(table.y) == 398
    assert table.rows[3] == 4


def test_what_is_text_stays_text_whoever_comes_with_it(folder, capsys):
    rng = np.random.default_rng(0)
    codes = rng.choice(["007", "7", "12", "A1"], 300)
    table = pd.DataFrame(
        {"code": codes, "x": rng.normal(size=300).round(3), "y": np.where(np.isin(codes, ["007", "A1"]), "p", "q")}
    )
    table.to_csv("codes.csv", index=False)
    assert untwist(capsys, "train", "codes.csv", "--label", "y")[0] == 0
    for lines in ("007,0\n12,0\n", "007,0\n12,0\nA1,0\n", "007,0\n12,0\n,0\n"):
        (folder / "new.csv").write_text("code,x\n" + lines)
        out = untwist(capsys, "predict", "model.untwist", "new.csv")[1]
        assert [line.split(",")[0] for line in out.splitlines()[1:3]] == ["p", "q"]
    all_codes = prepare_frame(pd.DataFrame({"zip": ["01234", "1234"] * 30, "y": ["a", "b"] * 30}), "y")
    assert all_codes.X["zip"].nunique() == 2
    assert "zip: text: it has numbers with leading zeros" in all_codes.notes


def test_a_class_may_be_called_none_or_na(folder, capsys):
    labels = np.resize(["None", "NA", "Mild"], 90)
    pd.DataFrame({"x": np.arange(90) % 3, "y": labels}).to_csv("t.csv", index=False)
    _, out, err = untwist(capsys, "train", "t.csv", "--label", "y")
    assert "classes Mild, NA, None" in out
    assert "no label" not in err
    sheet = sheets.read(folder / "t.csv")
    sheet.frame.loc[3, "y"] = " "
    assert len(prepare_frame(sheet.frame, "y").y) == 89


def test_labels_keep_their_kind():
    def labels(values):
        return prepare_frame(pd.DataFrame({"x": np.arange(len(values)), "y": values}), "y").y

    assert labels(["0", "1"] * 5).dtype == np.int64
    assert labels(["007", "7"] * 5).dtype.kind == "U"
    assert labels(["p", "p ", "q"] * 5).tolist() == ["p", "p", "q"] * 5
    assert labels([1.0, 2.0, np.nan] * 5).tolist() == [1, 2] * 5
    assert labels([True, False] * 5).tolist() == ["True", "False"] * 5
    assert labels(pd.array([1, None, 2] * 5, dtype="Int64")).tolist() == [1, 2] * 5


def test_rows_with_more_cells_than_names_are_refused(folder, capsys):
    (folder / "t.csv").write_text("a,b\n0.1,0,\n0.2,1,\n")
    status, _, err = untwist(capsys, "train", "t.csv", "--label", "b")
    assert status == 1
    assert "rows have more cells than the header has names" in err


def test_an_empty_line_is_a_row_where_there_is_one_column(folder, capsys):
    (folder / "a.csv").write_text("a,y\n" + "1,p\n2,q\n" * 30)
    untwist(capsys, "train", "a.csv", "--label", "y")
    (folder / "new.csv").write_text("a\n1\n\n2\n")
    assert len(untwist(capsys, "predict", "model.untwist", "new.csv")[1].splitlines()) == 1 + 3


def test_dates_are_dates_in_training_and_later(folder, capsys):
    pytest.importorskip("pyarrow")
    days = pd.date_range("2021-01-01", periods=120).date
    y = np.where(np.arange(120) < 60, "early", "late")
    pd.DataFrame({"d": days, "y": y}).to_parquet("t.parquet")
    _, _, err = untwist(capsys, "train", "t.parquet", "--label", "y")
    assert "d: dates" in err
    out = untwist(capsys, "predict", "model.untwist", "t.parquet")[1]
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == y.tolist()
    stray = prepare_frame(pd.DataFrame({"d": ["2021-01-01"] * 60 + ["2021"], "y": ["a", "b"] * 30 + ["a"]}), "y")
    assert pd.isna(stray.X["d"].iloc[60])  # A number among dates is no date.


def test_the_index_that_pandas_writes_is_no_feature(folder, capsys):
    frame, _ = make_people()
    frame.sort_values("churn").reset_index(drop=True).to_csv("i.csv")
    _, _, err = untwist(capsys, "train", "i.csv", "--label", "churn")
    assert "column 1: has no name, and names the rows as an index does; left out (--keep 'column 1' uses it)" in err


def test_true_and_false_and_blanks_are_numbers():
    table = prepare_frame(pd.DataFrame({"b": ["True", "false", "", " TRUE"] * 9, "y": ["p", "q"] * 18}), "y")
    np.testing.assert_array_equal(table.X["b"][:4], [1.0, 0.0, np.nan, 1.0])


def test_what_is_nearly_a_number_is_one():
    y = ["p", "q"] * 30
    table = prepare_frame(pd.DataFrame({"fee": ["12,50", "7,25"] * 30, "share": ["45.5%", "3 %"] * 30, "y": y}), "y")
    assert table.X["fee"][:2].tolist() == [12.5, 7.25]
    assert table.X["share"][:2].tolist() == [0.455, 0.03]


def test_many_words_are_counted():
    n = 900
    words = [f"w{i % 300}" for i in range(n)]
    table = prepare_frame(pd.DataFrame({"d": words, "y": np.resize(["p", "q"], n)}), "y")
    assert "d: text with 300 values" in table.notes


def test_a_label_that_names_the_rows_is_refused(folder, capsys):
    status, _, err = untwist(capsys, "train", "people.csv", "--label", "customer_id")
    assert status == 1
    assert "column 'customer_id' holds 400 different values in 400 rows: is it the label?" in err


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.zip", "t.csv.xz", "t.csv.bz2"])
def test_a_broken_archive_gets_a_sentence(folder, capsys, name):
    frame, _ = make_people()
    frame.to_csv(name, index=False)
    (folder / name).write_bytes((folder / name).read_bytes()[:300])
    status, _, err = untwist(capsys, "train", name, "--label", "churn")
    assert status == 1
    assert f"{name} cannot be read as a table" in err
    (folder / name).write_bytes(b"rubbish" * 20)
    assert untwist(capsys, "train", name, "--label", "churn")[0] == 1


def test_several_classes_are_counted_as_classes(folder, capsys):
    frame, _ = make_people(noise=0)
    frame["churn"] = np.random.default_rng(99).choice(list("abcdefgh"), 400)
    frame.to_csv("eight.csv", index=False)
    found = json.loads(untwist(capsys, "train", "eight.csv", "--label", "churn", "--json")[1])
    assert found["agrees_with_labels"] < 0.3  # There is nothing to learn.


def test_labels_can_be_believed(folder, capsys):
    untwist(capsys, "train", "people.csv", "--label", "churn", "--believe-labels")
    model = load("model.untwist")
    assert model.noise is None
    assert model.noise_ is None


# The audit


def test_lines_are_those_of_the_file(folder):
    (folder / "t.csv").write_text('a,y\n"two\nlines",p\n\n1,q\n2,p\n')
    sheet = sheets.read(folder / "t.csv")
    assert sheet.lines.tolist() == [2, 5, 6]
    assert len(sheet.frame) == 3


def test_a_corrected_copy_differs_in_labels_alone(folder):
    text = 'id;name;y\r\n007;"a;b\nc";p\r\n;NA;q\r\n0.130;FALSE;"p"\r\n'
    (folder / "t.csv").write_bytes(text.encode("latin-1"))
    sheet = sheets.read(folder / "t.csv", encoding="latin-1")
    assert sheet.replace_labels("y", np.array([], dtype=int), [])[0].decode("latin-1") == text
    changed = sheet.replace_labels("y", np.array([0, 2]), ["q", "r;s"])[0].decode("latin-1")
    assert changed == 'id;name;y\r\n007;"a;b\nc";q\r\n;NA;q\r\n0.130;FALSE;"r;s"\r\n'


def test_a_corrected_parquet_keeps_its_types(folder):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table(
        {"n": pyarrow.array([1, None, 3], pyarrow.int32()), "y": pyarrow.array(["a", "b", None]).dictionary_encode()}
    )
    parquet.write_table(table, "t.parquet")
    (folder / "c.parquet").write_bytes(sheets.read(folder / "t.parquet").replace_labels("y", np.array([0]), ["b"])[0])
    found = parquet.read_table("c.parquet")
    assert found.schema == table.schema
    assert found.to_pydict() == {"n": [1, None, 3], "y": ["b", "b", None]}


def test_a_budget_replaces_no_label_that_is_likelier_right(folder, capsys):
    options = ["--budget", 200, "--corrected", "c.csv"]
    _, _, err = untwist(capsys, "audit", "people.csv", "--label", "churn", *options)
    before, after = (pd.read_csv(name)["churn"] for name in ("people.csv", "c.csv"))
    assert f"{(before != after).sum()} labels replaced" in err
    assert 20 < (before != after).sum() < 100


def test_outputs_do_not_destroy_what_is_there(trained, capsys):
    content = (trained / "model.untwist").read_bytes()
    assert untwist(capsys, "predict", "model.untwist", "people.csv", "-o", "model.untwist")[0] == 1
    both = ["--suspects", "x.csv", "--corrected", "x.csv"]
    assert untwist(capsys, "audit", "people.csv", "--label", "churn", *both)[0] == 1
    assert untwist(capsys, "audit", "people.csv", "--label", "churn", "--corrected", "x.parquet")[0] == 2
    assert untwist(capsys, "predict", "model.untwist", "people.csv", "-o", "/dev/null")[0] == 0
    assert not Path("/dev/null").is_file()
    assert (trained / "model.untwist").read_bytes() == content
    frame, _ = make_people()
    frame.assign(prediction="mine").to_csv("p.csv", index=False)
    out = untwist(capsys, "predict", "model.untwist", "p.csv", "--with-input")[1]
    assert {"prediction", "prediction_"} <= set(out.splitlines()[0].split(","))


def test_an_audit_lists_corrects_and_leaves_the_input_alone(folder, capsys):
    before = hashlib.sha256((folder / "people.csv").read_bytes()).hexdigest()
    options = ["--suspects", "s.csv", "--corrected", "c.csv", "-o", "report.html"]
    status, out, _ = untwist(capsys, "audit", "people.csv", "--label", "churn", *options)
    assert status == 0
    assert hashlib.sha256((folder / "people.csv").read_bytes()).hexdigest() == before
    frame, _ = make_people()
    table = prepare_frame(frame, "churn")
    audit = audit_labels(table.X, table.y, UntwistClassifier(random_state=0).fit(table.X, table.y))
    suspects = audit.suspects()
    assert audit.verdict.describe(for_command=True, lists_rows=True) in out
    assert f"line {suspects[0] + 2} of people.csv" in out
    listed = pd.read_csv("s.csv")
    assert listed["line"].tolist() == (suspects + 2).tolist()
    assert list(listed)[:5] == ["line", "label", "looks_like", "probability_wrong", "reasons"]
    assert listed["reasons"].str.len().min() > 5
    corrected = pd.read_csv("c.csv")
    changed = np.flatnonzero(corrected["churn"].to_numpy() != frame["churn"].to_numpy())
    likely = suspects[audit.wrong[suspects] > 0.5]
    assert 0 < len(likely) < len(suspects)
    assert changed.tolist() == sorted(likely.tolist())
    before, after = ((folder / name).read_text().splitlines() for name in ("people.csv", "c.csv"))
    assert [i for i in range(401) if before[i] != after[i]] == sorted((likely + 1).tolist())
    assert "<html" in (folder / "report.html").read_text()


def test_labels_of_which_it_is_undecided_are_replaced_by_force_alone(folder, capsys, monkeypatch):
    asked = []

    def settle(audit, rows):
        asked.append(rows)
        return rows[2:]

    monkeypatch.setattr("untwist.commands.audit.find_settled", settle)
    audit = ["audit", "people.csv", "--label", "churn", "--corrected", "c.csv"]
    frame, _ = make_people()
    for options, n_left in (([], 2), (["--force"], 0)):
        status, _, told = untwist(capsys, *audit, *options)
        assert status == 0
        changed = np.flatnonzero(pd.read_csv("c.csv")["churn"].to_numpy() != frame["churn"].to_numpy())
        assert changed.tolist() == sorted(asked[0][n_left:].tolist())
        left = "2 more look wrong, but it is undecided whether labels are wrong or rows are hard; --force replaces them"
        assert (left in told) == (n_left > 0)
        Path("c.csv").unlink()
    assert len(asked) == 1


def test_a_budget_asks_for_so_many(folder, capsys):
    status, *_ = untwist(capsys, "audit", "people.csv", "--label", "churn", "--suspects", "s.csv", "--budget", 7)
    assert status == 0
    assert len(pd.read_csv("s.csv")) == 7
    assert untwist(capsys, "audit", "people.csv", "--label", "churn", "--budget", 0)[0] == 2


@pytest.mark.slow
def test_a_budget_is_told_what_it_should_find(folder, capsys):
    _, out, _ = untwist(capsys, "audit", "people.csv", "--label", "churn", "--budget", 40)
    table = prepare_frame(make_people()[0], "churn")
    audit = audit_labels(table.X, table.y, UntwistClassifier(random_state=0).fit(table.X, table.y))
    expected = audit.wrong[audit.ranking[:40]].sum()
    assert f"These 40 rows: about {expected:.0f} (" in out
    clean, _ = make_people(noise=0)
    clean.to_csv("clean.csv", index=False)
    _, out, _ = untwist(capsys, "audit", "clean.csv", "--label", "churn")
    assert "; --budget 50 lists the rows to look at first" in out.replace("\n", " ")
    assert "at most 0 %" not in out
    found = json.loads(untwist(capsys, "audit", "clean.csv", "--label", "churn", "--budget", 1, "--json")[1])
    assert found["verdict"]["upper_bound"]["high"] == found["verdict"]["share"]["high"] >= 0.007
    assert len(found["suspects"]) == 1
    assert (found["wrong_among_suspects"]["low"], found["wrong_among_suspects"]["high"]) == (0.0, 1.0)
    _, out, _ = untwist(capsys, "audit", "clean.csv", "--label", "churn", "--budget", 20)
    table = prepare_frame(clean, "churn")
    audit = audit_labels(table.X, table.y, UntwistClassifier(random_state=0).fit(table.X, table.y))
    told = audit.verdict.describe_yield(audit.expected_yield(audit.suspects(budget=20)))
    assert f"These 20 rows: {told}." in " ".join(out.split())


@pytest.mark.slow
def test_an_audit_of_several_classes_tells_who_is_labelled_as_what(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, given, truth = make_tickets(1000)
    X.assign(topic=given).to_csv("tickets.csv", index=False)
    options = ["--label", "topic", "-o", "report.html", "--suspects", "s.csv", "--corrected", "c.csv"]
    status, out, err = untwist(capsys, "audit", "tickets.csv", *options)
    assert status == 0, err
    assert "1000 rows, 9 columns, 4 classes" in err
    assert "true class billing labelled bug: " in out
    assert "no sign" not in out
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Clean" not in page
    assert "<table class=heat>" in page
    listed = pd.read_csv("s.csv")
    expected = f"about {listed['probability_wrong'].sum():,.0f}"
    assert f"{len(listed)} suspects, {expected} (" in out
    assert f"These {len(listed)} rows" not in out  # Once is enough.
    assert np.mean(pd.read_csv("c.csv")["topic"] == truth) > np.mean(given == truth) + 0.05
    found = json.loads(untwist(capsys, "audit", "tickets.csv", "--label", "topic", "--json")[1])
    assert found["classes"] == ["account", "billing", "bug", "feature"]
    verdict = found["verdict"]
    assert verdict["state"] == "found"
    matrix = np.array(found["matrix"])
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
    assert [one["of"] for one in verdict["by_class"]] == [f"true class {name}" for name in found["classes"]]
    assert [one["of"] for one in verdict["by_label"]] == [f"given label {name}" for name in found["classes"]]
    for one in verdict["by_class"] + verdict["by_label"] + verdict["pairs"]:
        assert one["low"] <= one["value"] <= one["high"] > 0
        assert "errors do not depend on features" in one["rests_on"]
    first = found["confusions"][0]
    assert (first["class"], first["label"], first["share"]) == ("billing", "bug", matrix[1, 2])
    expected = sum(one["probability_wrong"] for one in found["suspects"])
    assert found["wrong_among_suspects"]["value"] == pytest.approx(expected, abs=0.2)
    assert found["wrong_among_suspects"] == verdict["suspects_wrong"]


@pytest.mark.slow
def test_a_model_of_several_classes_is_trained_inspected_and_explained(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, given, _ = make_tickets(2000)
    X.assign(topic=given).to_csv("tickets.csv", index=False)
    trained = json.loads(untwist(capsys, "train", "tickets.csv", "--label", "topic", "--json")[1])
    assert trained["noise_found"]
    assert trained["matrix"][1][2] > 0.15
    status, out, _ = untwist(capsys, "inspect", "model.untwist")
    assert status == 0
    assert f"noise: {trained['noise']}" in out
    inspected = json.loads(untwist(capsys, "inspect", "model.untwist", "--json")[1])
    np.testing.assert_allclose(inspected["matrix"], trained["matrix"], rtol=1e-12)
    status, out, _ = untwist(capsys, "explain", "model.untwist", "tickets.csv", "--line", 2)
    assert status == 0
    assert out.startswith("line 2: ")


@pytest.mark.parametrize("option", ["--corrected", "--suspects"])
@pytest.mark.parametrize("name", ["out.csv.zip", "out.csv.zst"])
def test_a_kind_of_file_that_cannot_be_written_is_refused_before_the_fit(folder, capsys, monkeypatch, option, name):
    monkeypatch.setattr("untwist.commands.audit.fit", lambda *_: pytest.fail("it was fitted"))
    status, _, err = untwist(capsys, "audit", "people.csv", "--label", "churn", option, name)
    assert status == 1
    assert f"{name} cannot be written: choose .csv" in err
    assert not (folder / name).exists()


def test_nan_is_a_class_and_no_number_with_a_fraction():
    frame = pd.DataFrame({"a": np.arange(4.0), "y": ["1", "nan", "1", "nan"]})
    assert prepare_frame(frame, "y").y.tolist() == ["1", "nan", "1", "nan"]


# What is wrong


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "bad.csv does not exist"),
        (b"", "bad.csv is empty: the first line"),
        (b"a,churn\n", "bad.csv has no rows"),
        (b"a,churn\n1,x\n", "column 'churn' holds only 'x': two classes are needed"),
        (b"a,churn\n1,x\n2,x\n", "column 'churn' holds only 'x'"),
        (b"a,churn\n1,\n2,\n", "no row has a label in column 'churn'"),
        (b"a,churn\n1,1.5\n2,2.5\n", "holds 2 different numbers, not classes"),
        (b"a,a,churn\n1,2,x\n3,4,y\n", "bad.csv has several columns 'a'"),
        (b"\xff\xfe,churn\n", "bad.csv is not utf-16-le text"),
        (b"a,churn\n1,x\n2,y,3\n", "bad.csv: line 3 has 3 cells, not 2"),
        (b"churn\nx\ny\n", "no column is left to learn from"),
        (b"a,b,churn\n,,x\n,,y\n", r"no column is left to learn from \(a: all values are missing; left out; b: all"),
        (b"a,b,c,d,e,f,churn\n,,,,,,x\n,,,,,,y\n", r"d: all values are missing; left out; and 2 more\)"),
        (b"chrun,b\nx,1\ny,2\n", "there is no column 'churn': did you mean 'chrun'?"),
        (b"\x00\x01\x02" * 99, "bad.csv cannot be read|bad.csv has no rows"),
    ],
)
def test_a_bad_table_gets_a_sentence(folder, capsys, content, words):
    if content is not None:
        (folder / "bad.csv").write_bytes(content)
    status, out, err = untwist(capsys, "train", "bad.csv", "--label", "churn")
    assert status == 1
    assert out == ""
    last = err.strip().splitlines()[-1]
    assert last.startswith("untwist train: ")
    assert words in last or re.search(words, last)
    assert "Traceback" not in err
    assert not (folder / "model.untwist").exists()


def test_latin_text_is_recognised_and_read_when_said_so(folder, capsys):
    frame, _ = make_people()
    frame.to_csv("latin.csv", index=False, encoding="latin-1")
    status, _, err = untwist(capsys, "train", "latin.csv", "--label", "churn")
    assert status == 0
    assert "latin.csv is no UTF-8 and is read as cp1252 (--encoding decides)" in err
    status, _, err = untwist(capsys, "train", "latin.csv", "--label", "churn", "--encoding", "utf-8")
    assert status == 1
    assert "latin.csv is not utf-8 text (byte 0xc5): try --encoding latin-1" in err
    status, _, err = untwist(capsys, "train", "latin.csv", "--label", "churn", "--encoding", "latin-1")
    assert status == 0
    assert "no UTF-8" not in err
    assert untwist(capsys, "train", "latin.csv", "--label", "churn", "--encoding", "klingon")[0] == 1


def test_other_bad_requests(folder, capsys):
    for arguments, words in [
        (["train", ".", "--label", "x"], "is a folder"),
        (["train", "people.csv", "--label", "churn", "-o", "nowhere/m"], "there is no folder nowhere to write m to"),
        (["train", "people.csv", "--label", "churn", "-o", "people.csv"], "is read or written already"),
        (["audit", "people.csv", "--label", "churn", "--corrected", "people.csv"], "is read or written already"),
        (["train", "people.csv", "--label", "churn", "--drop", "nothing"], "there is no column 'nothing'"),
        (["predict", "people.csv", "people.csv"], "this is no untwist model file"),
        (["inspect", "none.untwist"], "none.untwist does not exist"),
    ]:
        status, out, err = untwist(capsys, *arguments)
        assert (status, out) == (1, ""), arguments
        assert words in err
    for arguments in (["train"], ["frobnicate"], [], ["train", "people.csv", "--label"]):
        assert untwist(capsys, *arguments)[0] == 2


def test_a_model_and_a_table_that_do_not_belong_together(trained, capsys):
    (trained / "other.csv").write_text("a,b\n1,2\n")
    status, _, err = untwist(capsys, "predict", "model.untwist", "other.csv")
    assert status == 1
    assert "the model needs columns that the file has not: 'city', 'age', 'since'" in err


def test_without_pandas_one_line_says_what_to_install(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    status, _, err = untwist(capsys, "train", "people.csv", "--label", "churn")
    assert status == 1
    assert err == 'untwist train: reading tables needs pandas and pyarrow: pip install "untwist[cli]"\n'


def test_ctrl_c_keeps_the_rounds_done(folder, capsys, monkeypatch):
    fit = UntwistClassifier.fit

    def interrupted(self, X, y, **_):
        fit(self, X, y)
        raise KeyboardInterrupt

    def at_once(self, X, y, **_):
        raise KeyboardInterrupt

    monkeypatch.setattr(UntwistClassifier, "fit", interrupted)
    status, _, err = untwist(capsys, "train", "people.csv", "--label", "churn")
    assert status == 130
    assert "The model has the rounds done so far" in err
    assert load(folder / "model.untwist").model_.n_rounds > 0
    assert untwist(capsys, "audit", "people.csv", "--label", "churn", "--suspects", "s.csv")[0] == 130
    assert not (folder / "s.csv").exists()
    monkeypatch.setattr(UntwistClassifier, "fit", at_once)
    assert untwist(capsys, "train", "people.csv", "--label", "churn", "-o", "x.untwist")[0] == 130
    assert not (folder / "x.untwist").exists()


def test_progress_is_shown_after_two_seconds(folder, capsys, monkeypatch):
    clock = iter(np.arange(0, 1e6, 30.0))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    assert cli.main(["train", "people.csv", "--label", "churn"]) == 0
    shown = capsys.readouterr().err
    assert re.search(r"\d+%, about \d+ (s|min) left: trying alpha 1, depth \d, round \d+", shown)
    assert "randomised trees" in shown


# The doctor, and what is in a file


def test_the_doctor_finds_all_in_order_and_says_when_not(capsys, monkeypatch):
    status, out, _ = untwist(capsys, "doctor")
    assert status == 0
    assert "All in order" in out
    assert "numpy" in out
    assert f"({_core.instruction_set()})" in out
    assert list(doctor.list_extras()) == ["cli", "dask", "export", "plot", "ray", "shap", "spark", "xgboost"]
    assert "xgboost" in doctor.list_extras()["dask"]
    monkeypatch.setattr(doctor, "find_version", lambda name: "")
    assert 'missing pandas, pyarrow, python-calamine: pip install "untwist[cli]"' in untwist(capsys, "doctor")[1]
    monkeypatch.setattr(doctor, "run_self_test", lambda: {"the sky is blue": False})
    status, out, _ = untwist(capsys, "doctor")
    assert status == 1
    assert "FAILED the sky is blue" in out


def test_the_instruction_set_in_use_is_one_that_the_processor_has(capsys):
    known = {"AVX-512": "avx512f", "AVX2": "avx2", "NEON": "asimd", "baseline": ""}
    found = json.loads(untwist(capsys, "doctor", "--json")[1])["instruction_set"]
    assert found in known
    if Path("/proc/cpuinfo").exists():
        assert known[found] in Path("/proc/cpuinfo").read_text()


def test_inspect_of_very_many_columns_lists_those_that_trees_ask_for(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 6))
    model = PILBoostClassifier(alpha=2.0, n_estimators=2, max_depth=1, random_state=0).fit(X, X[:, 4] > 0)
    path = tmp_path / "wide.untwist"
    save(model, path)
    assert len(json.loads(untwist(capsys, "inspect", path, "--json")[1])["columns"]) == 6
    monkeypatch.setattr(inspect, "MOST_COLUMNS", 5)
    assert [one["name"] for one in json.loads(untwist(capsys, "inspect", path, "--json")[1])["columns"]] == ["4"]
    out = untwist(capsys, "inspect", path)[1]
    assert out.endswith("  4  numbers          100.0%\n  no tree asks for the other columns, of 6\n")


def test_inspect_tells_columns_classes_and_size(trained, capsys):
    status, out, _ = untwist(capsys, "inspect", "model.untwist")
    assert status == 0
    assert "classes leaves, stays" in out
    assert "city" in out
    assert "4 categories" in out
    model = PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2).fit(np.arange(20.0)[:, None], np.arange(20) > 9)
    save(model, trained / "plain.untwist")
    assert untwist(capsys, "inspect", "plain.untwist")[0] == 0  # This model has no names, no choice and no noise.


def test_a_model_of_the_paper_is_inspected_predicts_and_is_explained(folder, capsys):
    frame, _ = make_people()
    rows = frame[["age"]].fillna(30.0)
    growth = Growth(init="prior", l2=1.5)
    model = PILBoostClassifier(alpha="menon", n_estimators=3, max_depth=2, growth=growth).fit(rows, frame["churn"])
    save(model, "paper.untwist")
    rows.to_csv("rows.csv", index=False)
    found = json.loads(untwist(capsys, "inspect", "paper.untwist", "--json")[1])
    assert (found["model"], found["alpha"], found["trees"]) == ("PILBoostClassifier", model.alpha_, 3)
    assert found["settings"]["growth"] == growth.get_params()
    assert found["noise"] == model.noise_.describe(model.classes_)
    assert found["matrix"] == model.noise_.matrix.tolist()
    out = untwist(capsys, "inspect", "paper.untwist")[1]
    assert out.startswith("paper.untwist: PILBoostClassifier, 3 trees, ")
    assert f"; classes leaves, stays; alpha {model.alpha_:g}\n" in out
    status, out, _ = untwist(capsys, "predict", "paper.untwist", "rows.csv")
    assert status == 0
    predicted = pd.read_csv(io.StringIO(out))
    np.testing.assert_allclose(predicted["P(stays)"], model.predict_proba(rows)[:, 1], rtol=1e-12)
    assert predicted["prediction"].tolist() == model.predict(rows).tolist()
    (row,) = json.loads(untwist(capsys, "explain", "paper.untwist", "rows.csv", "--line", 2, "--json")[1])
    assert row["prediction"] == predicted["prediction"][0]
    assert row["columns"][0]["contribution"] + row["baseline"] == pytest.approx(row["score"], abs=1e-9)
    assert row["unit"] == f"units of the score of the alpha-loss, alpha {model.alpha_:g}: 0 is one half"


@pytest.mark.slow
def test_an_audit_by_source_speaks_of_options_and_all_keys_are_documented(folder, capsys, monkeypatch):
    X, y, source, _ = draw_sourced_rows()
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(label=y, branch=source)
    frame.to_csv("branches.csv", index=False)
    options = ["audit", "branches.csv", "--label", "label", "--source", "branch"]
    monkeypatch.setattr("untwist.audit.verdict.MOST_NAMED", 0)
    _, out, _ = untwist(capsys, *options)
    assert "... and 1 more sources stand out: --json lists them all" in out
    assert "list_sources()" not in out
    documented = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text("utf-8")
    found = json.loads(untwist(capsys, *options, "--json")[1])
    assert {"sources", "hidden_source", "slices"} <= set(found)
    assert [key for key in found if f"`{key}`" not in documented] == []


def test_an_audit_tells_what_else_is_wrong_by_lines(folder, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(240, 3)), columns=list("abc"))
    frame["day"] = pd.date_range("2024-01-01", periods=240).strftime("%Y-%m-%d")
    frame["b"] += np.linspace(0, 3, 240)
    frame["label"] = (frame["a"] > 0).astype(int)
    frame = frame.iloc[rng.permutation(240)].reset_index(drop=True)
    frame.loc[7] = frame.loc[5]
    frame.to_csv("wrong.csv", index=False)
    _, out, _ = untwist(capsys, "audit", "wrong.csv", "--label", "label", "-o", "wrong.html")
    assert "equal rows: 2 rows are equal in all columns to others" in out
    assert "lines 7, 9" in out  # The header is line 1.
    assert "lines 7, 9" in Path("wrong.html").read_text("utf-8")
    found = json.loads(untwist(capsys, "audit", "wrong.csv", "--label", "label", "--json")[1])["issues"]
    equal, drift = (next(one for one in found if one["kind"] == kind) for kind in ("exact_duplicates", "drift"))
    assert equal["lines"] == [7, 9]
    assert equal["examples"][0]["lines"] == [7, 9]
    assert drift["columns"] == ["b"]
    assert "changes with day" in drift["reason"]


def test_inspect_tells_the_sources_the_noisiest_first(folder, capsys, monkeypatch):
    X, y, source, _ = draw_sourced_rows()
    model = UntwistClassifier(random_state=0, n_jobs=1).fit(X, y, source=np.char.add(source, "\x1b[31m"))
    save(model, folder / "sources.untwist")
    status, out, _ = untwist(capsys, "inspect", "sources.untwist")
    assert status == 0
    assert "\x1b" not in out  # What comes from data cannot steer the terminal.
    lines = out.splitlines()
    (first,) = (place for place, line in enumerate(lines) if line.startswith("sources: noisier than the others"))
    assert lines[first + 1].strip().startswith("Leipzig")
    assert lines[first + 1].endswith(f"of {np.count_nonzero(source == 'Leipzig')} labels, stands out")
    assert not any(line.endswith("stands out") for line in lines[first + 2 : first + 5])
    found = json.loads(untwist(capsys, "inspect", "sources.untwist", "--json")[1])["sources"]
    shares = [one["share"] for one in found]
    assert shares == sorted(model.sources_.shares, reverse=True)
    assert found[0]["stands_out"] is True
    np.testing.assert_allclose(found[0]["matrix"], model.sources_.matrices[1])
    monkeypatch.setattr(inspect, "MOST_SOURCES", 3)
    assert "  and 1 sources more" in untwist(capsys, "inspect", "sources.untwist")[1].splitlines()


@pytest.mark.slow
def test_explain_tells_what_speaks_for_a_prediction(trained, capsys):
    status, out, _ = untwist(capsys, "explain", "model.untwist", "people.csv")
    assert status == 0
    heading = "What moves the score for stays of 400 rows, up or down, on average; in log-odds:"
    assert out.splitlines()[0] == heading
    assert {line.split()[0] for line in out.splitlines()[1:3]} == {"city", "age"}
    status, out, _ = untwist(capsys, "explain", "model.untwist", "people.csv", "--line", 2, 9, "--json")
    one, _ = json.loads(out)
    frame, _ = make_people()
    table = prepare_frame(frame, "churn")
    model = load("model.untwist")
    found = explain(model, table.X.iloc[[0]], background=table.X)
    place = model.predict_proba(table.X.iloc[[0]]).argmax()
    by_name = {column["name"]: column["contribution"] for column in one["columns"]}
    expected = dict(zip(found.feature_names, found.values[0] * (1 if place else -1), strict=True))
    assert by_name == pytest.approx(expected)
    assert one["prediction"] == model.classes_[place]
    status, out, _ = untwist(capsys, "explain", "model.untwist", "people.csv", "--line", 2)
    assert out.startswith("line 2: ")
    assert f"city is {frame['city'][0]}" in out
    for line in (0, 1, 402, 999):
        assert untwist(capsys, "explain", "model.untwist", "people.csv", "--line", line)[0] == 2


@pytest.mark.slow
def test_explain_with_several_classes(folder, capsys):
    frame, _ = make_people(noise=0)
    frame["churn"] = np.where(frame["age"] > 60, "stays", np.where(frame["city"] == "Lund", "leaves", "asks"))
    frame.to_csv("three.csv", index=False)
    untwist(capsys, "train", "three.csv", "--label", "churn")
    status, out, _ = untwist(capsys, "explain", "model.untwist", "three.csv", "--line", 2)
    assert status == 0
    assert "city is" in out
    assert untwist(capsys, "explain", "model.untwist", "three.csv")[0] == 0


def test_a_reader_that_has_had_enough_is_no_error(folder, monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

        def fileno(self):
            return 99

    monkeypatch.setattr(sys, "stdout", Closed())
    monkeypatch.setattr(cli.os, "dup2", lambda *_: None)
    assert cli.main(["doctor"]) == 0


# What once went wrong


def test_a_corrected_copy_keeps_odd_cells(folder, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    odd = ["two\nlines", "a\u2028b", "a\x0bb\x0cc", "\x85", "carriage\rreturn", 'quo"te', "long" * 50_000, "a;b"]
    frame = pd.DataFrame({"x": x, "a;b;c;d;e": [odd[i % len(odd)] for i in range(200)]})
    frame["y"] = np.where((x > 0) ^ (rng.random(200) < 0.15), "up", "down")
    frame.to_csv("odd.csv", index=False, quoting=1)
    status, _, err = untwist(capsys, "audit", "odd.csv", "--label", "y", "--corrected", "c.csv", "--suspects", "s.csv")
    assert status == 0, err
    before, after = (sheets.read(folder / name).frame for name in ("odd.csv", "c.csv"))
    pd.testing.assert_frame_equal(before.drop(columns="y"), after.drop(columns="y"))
    assert (before["y"] != after["y"]).sum() > 10
    listed = sheets.read(folder / "s.csv").frame
    assert set(listed["a;b;c;d;e"]) <= set(odd)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[1, 2], [3]] * 20, "column 'a' cannot be read as numbers or text"),
        ([{"k": 1}, {"k": 2}] * 20, "column 'a' cannot be read as numbers or text"),
    ],
    ids=["lists", "records"],
)
def test_columns_that_are_neither_numbers_nor_text_are_named(folder, capsys, values, words):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": values, "b": np.arange(40.0), "y": [0, 1] * 20}), "odd.parquet")
    status, _, err = untwist(capsys, "train", "odd.parquet", "--label", "y")
    assert status == 1
    assert words in err
    parquet.write_table(pa.table({"b": np.arange(4.0)}).select([]), "none.parquet")
    with pytest.raises(ValueError, match="has no"):
        sheets.read(folder / "none.parquet")


def test_too_little_memory_is_a_sentence(folder, capsys, monkeypatch):
    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(steps, "read", no_memory)
    status, _, err = untwist(capsys, "train", "people.csv", "--label", "churn")
    assert (status, err) == (1, "untwist train: there is not enough memory for this\n")


@pytest.mark.parametrize("name", ["numbers.csv", "numbers.xlsx"])
def test_a_corrected_copy_writes_labels_as_the_file_does(name, tmp_path, monkeypatch, capsys):
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    y = ((x[:, 0] > 0) ^ (np.arange(400) < 25)) + 1.0
    frame = pd.DataFrame(x.round(3), columns=["a", "b", "c"]).assign(y=y)
    frame.to_csv(name, index=False) if name.endswith("csv") else frame.to_excel(name, index=False)
    assert untwist(capsys, "audit", name, "--label", "y", "--corrected", "c.csv")[0] == 0
    copy = pd.read_csv("c.csv", dtype=str)["y"]
    assert (copy.astype(float) != y).any()
    assert len(set(copy)) == 2
