"""``untwist apply --undo``: labels that were changed are what they were, byte for byte."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import untwist
from untwist.audit import Decisions, write_decisions
from untwist.commands.decided import fingerprint_file
from untwist.commands.sheets import read

pd = pytest.importorskip("pandas", reason="the commands read tables with pandas")

#: Cells of labels in many ways to write them: blanks, quotes that are needed and that are not, cases.
TEXT = 'id;name;y;z\r\n1;"a;\nb"; yes ;7\r\n2;Bö;no;\r\n3;c;"no";1,5\r\n4;d;YES;0\r\n5;e;"it ""is""";0\r\n6;f;-1;0'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(TEXT, "utf-8", newline="")
    return tmp_path


def decide(table, new, label="y"):
    """Write decisions that change labels of a file, by row."""
    frame = read(Path(table)).frame
    rows = list(new)
    given = [str(frame[label].iloc[row]).strip() for row in rows]
    mark = fingerprint_file(frame, label)
    write_decisions(
        "d.csv", Decisions(rows, given, ["relabel"] * len(rows), list(new.values()), [""] * len(rows), mark)
    )


NEW = {0: "no", 1: "maybe; not", 2: "yes", 3: " blank", 4: "no", 5: '"'}


@pytest.mark.parametrize("end", ["csv", "csv.gz"])
def test_labels_are_what_they_were_byte_for_byte(folder, capsys, end):
    if end == "csv.gz":
        Path("data.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    decide(f"data.{end}", NEW)
    status, out, _ = untwist(capsys, "apply", "d.csv", f"data.{end}", "-o", f"new.{end}")
    assert status == 0
    assert f"new.{end}.undo takes the change back: untwist apply --undo" in out
    status, out, err = untwist(capsys, "apply", "--undo", f"new.{end}.undo", f"new.{end}", "-o", f"back.{end}")
    assert (status, err) == (0, "")
    assert f"labels in column 'y': 6 changed, 0 kept, 0 skipped; back.{end} has them, and all else as it was" in out
    unpack = gzip.decompress if end == "csv.gz" else bytes
    assert unpack(Path(f"new.{end}").read_bytes()) != TEXT.encode()
    assert unpack(Path(f"back.{end}").read_bytes()) == TEXT.encode()
    assert not Path(f"back.{end}.undo").exists()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings_stay(folder, capsys, encoding):
    before = "y,name\r\nno,Bö\r\nyes,Ü\r\n".encode(encoding)
    Path("coded.csv").write_bytes(before)
    frame = read(Path("coded.csv"), encoding=encoding).frame
    write_decisions("d.csv", Decisions([1], ["yes"], ["relabel"], ["no"], [""], fingerprint_file(frame, "y")))
    said = ("--encoding", encoding)
    assert untwist(capsys, "apply", "d.csv", "coded.csv", "-o", "new.csv", *said)[0] == 0
    assert untwist(capsys, "apply", "--undo", "new.csv.undo", "new.csv", "-o", "back.csv", *said)[0] == 0
    assert Path("back.csv").read_bytes() == before


@pytest.mark.parametrize("end", ["parquet", "feather"])
@pytest.mark.parametrize(
    ("labels", "new"),
    [
        (["a", "b", None], "c"),
        ([0, 1, None], "0"),
        ([0.5, 1.0, 1e-300], "0.5"),
        ([True, False, True], "True"),
        (pd.Categorical(["lo", "hi", "lo"], ["lo", "mid", "hi"], ordered=True), "lo"),
    ],
)
def test_typed_labels_are_what_they_were(folder, capsys, end, labels, new):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    read_table = parquet.read_table if end == "parquet" else feather.read_table
    table = pyarrow.table({"x": [1, 2, 3], "y": pyarrow.array(labels)})
    (parquet.write_table if end == "parquet" else feather.write_feather)(table, f"data.{end}")
    before = read_table(f"data.{end}")
    decide(f"data.{end}", {1: new})
    assert untwist(capsys, "apply", "d.csv", f"data.{end}", "-o", f"new.{end}")[0] == 0
    assert read_table(f"new.{end}").to_pydict() != before.to_pydict()
    status, _, err = untwist(capsys, "apply", "--undo", f"new.{end}.undo", f"new.{end}", "-o", f"back.{end}")
    assert status == 0, err
    assert read_table(f"back.{end}").equals(before)


def test_the_copy_of_a_spreadsheet_has_its_labels_again(folder, capsys):
    pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    frame = pd.DataFrame({"x": [1.5, 2, 3], "y": ["a, b", "c", "c"]})
    frame.to_excel("data.xlsx", index=False)
    decide("data.xlsx", {0: "c", 1: "a, b"})
    assert untwist(capsys, "apply", "d.csv", "data.xlsx", "-o", "new.csv")[0] == 0
    assert untwist(capsys, "apply", "--undo", "new.csv.undo", "new.csv", "-o", "back.csv")[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv("back.csv"), frame)
    assert Path("back.csv").read_text().splitlines()[1] == '1.5,"a, b"'


def test_the_copy_of_a_spreadsheet_is_cut_at_commas_whatever_its_header_holds(folder, capsys):
    pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    frame = pd.DataFrame({"size; weight; age": [1.5, 2, 3], "y": ["a", "c", "c"]})
    frame.to_excel("data.xlsx", index=False)
    decide("data.xlsx", {0: "c"})
    assert untwist(capsys, "apply", "d.csv", "data.xlsx", "-o", "new.csv")[0] == 0
    undone = untwist(capsys, "apply", "--undo", "new.csv.undo", "new.csv", "-o", "back.csv", "--separator", ",")
    assert undone[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv("back.csv"), frame)


def test_labels_in_a_column_without_a_name_are_taken_back(folder, capsys):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.5, 2, 3], "": ["a", "b", "b"]})
    frame.to_parquet("data.parquet")
    decide("data.parquet", {0: "b"}, label="column 2")
    assert untwist(capsys, "apply", "d.csv", "data.parquet", "-o", "new.parquet")[0] == 0
    assert untwist(capsys, "apply", "--undo", "new.parquet.undo", "new.parquet", "-o", "back.parquet")[0] == 0
    pd.testing.assert_frame_equal(pd.read_parquet("back.parquet"), frame)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("Bö", "Bo"), "are those decided on, but other cells changed"),
        (lambda text: text.replace('"yes";1,5', '"no";1,5'), "its labels, in column 'y', are not those"),
        (lambda text: text + "\r\n7;g;no;1", "neither its labels nor its other cells"),
    ],
)
def test_a_file_that_has_changed_since_is_refused(folder, capsys, change, words):
    decide("data.csv", NEW)
    assert untwist(capsys, "apply", "d.csv", "data.csv", "-o", "new.csv")[0] == 0
    text = Path("new.csv").read_bytes().decode()
    assert change(text) != text
    Path("new.csv").write_bytes(change(text).encode())
    status, _, err = untwist(capsys, "apply", "--undo", "new.csv.undo", "new.csv", "-o", "back.csv")
    assert status == 1
    assert "new.csv is not the file that new.csv.undo takes back, or has changed since it was written" in err
    assert words in err
    assert not Path("back.csv").exists()


def test_one_kind_of_file_is_not_taken_for_the_other(folder, capsys):
    decide("data.csv", {1: "yes"})
    assert untwist(capsys, "apply", "d.csv", "data.csv", "-o", "new.csv")[0] == 0
    err = untwist(capsys, "apply", "--undo", "d.csv", "new.csv", "-o", "back.csv")[2]
    assert "d.csv: there is no column 'before': it takes no labels back: the file that does is beside the one" in err
    err = untwist(capsys, "apply", "new.csv.undo", "new.csv", "-o", "back.csv")[2]
    assert "new.csv.undo: there is no column 'decision': this is no file of decisions" in err
    assert "takes changed labels back: untwist apply --undo" in err
    assert not Path("back.csv").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda text: text.replace("\r\n1,", "\r\n9,"),
            "a decision has 9 for its row, which is counted from 0, but",
        ),
        (lambda text: text.replace("\r\n1,", "\r\nx,"), "row must be a position"),
        (lambda text: text + text.splitlines(keepends=True)[1], "row 1 is decided on twice"),
        (lambda text: text.splitlines(keepends=True)[0], "has no decisions"),
        (lambda text: text.replace(",no,", ',"a;b",'), "is no single cell between ';'"),
        (lambda text: text.replace(",no,", ","), "fingerprint must be two times 16 hexadecimal digits"),
    ],
)
def test_a_damaged_file_is_refused(folder, capsys, change, words):
    decide("data.csv", {1: "yes"})
    assert untwist(capsys, "apply", "d.csv", "data.csv", "-o", "new.csv")[0] == 0
    text = Path("new.csv.undo").read_bytes().decode("utf-8-sig")
    assert change(text) != text
    Path("new.csv.undo").write_bytes(change(text).encode())
    status, _, err = untwist(capsys, "apply", "--undo", "new.csv.undo", "new.csv", "-o", "back.csv")
    assert status == 1
    assert words in err
    assert not Path("back.csv").exists()


def test_where_nothing_changed_there_is_nothing_to_take_back(folder, capsys):
    frame = read(Path("data.csv")).frame
    write_decisions("d.csv", Decisions([1], ["no"], ["keep"], ["no"], [""], fingerprint_file(frame, "y")))
    out = untwist(capsys, "apply", "d.csv", "data.csv", "-o", "new.csv", "--json")[1]
    assert json.loads(out)["undo"] is None
    assert not Path("new.csv.undo").exists()


def test_no_input_is_written_over(folder, capsys):
    decide("data.csv", {1: "yes"})
    Path("d.csv").rename("new.csv.undo")
    err = untwist(capsys, "apply", "new.csv.undo", "data.csv", "-o", "new.csv")[2]
    assert "new.csv.undo is read or written already" in err


def test_json_says_how_many(folder, capsys):
    decide("data.csv", NEW)
    untwist(capsys, "apply", "d.csv", "data.csv", "-o", "new.csv")
    out = untwist(capsys, "apply", "--undo", "new.csv.undo", "new.csv", "-o", "back.csv", "--json")[1]
    expected = {"table": "new.csv", "output": "back.csv", "label_column": "y", "undo": None}
    assert json.loads(out) == expected | {"changed": 6, "kept": 0, "skipped": 0}


# ---- labels that an audit replaced ----


def test_corrected_labels_are_taken_back(folder, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)).round(3)
    truth = np.where(X[:, 0] > 0, "yes", "no")
    y = np.where(rng.random(400) < 0.1, np.where(truth == "yes", "no", " YES "), truth)
    lines = [f'{a},"{label}",{b}' for (a, b), label in zip(X, y, strict=True)]
    Path("many.csv").write_text("\n".join(["a,y,b", *lines]))
    status, _, err = untwist(capsys, "audit", "many.csv", "--label", "y", "--corrected", "c.csv", "--threads", "1")
    assert status == 0
    assert "c.csv.undo takes them back: untwist apply --undo" in err
    assert Path("c.csv").read_bytes() != Path("many.csv").read_bytes()
    assert untwist(capsys, "apply", "--undo", "c.csv.undo", "c.csv", "-o", "back.csv")[0] == 0
    assert Path("back.csv").read_bytes() == Path("many.csv").read_bytes()


def write_small_classes():
    truth = np.repeat(np.arange(30), 10)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": (10 * truth + rng.normal(size=300)).round(3), "b": rng.normal(size=300).round(3)})
    frame.assign(y=[f"k{one:02d}" for one in truth]).to_csv("small.csv", index=False)


def test_labels_of_small_classes_are_replaced_by_force_alone(folder, capsys):
    write_small_classes()
    asked = ("audit", "small.csv", "--label", "y", "--threads", "1", "--corrected", "c.csv")
    status, out, err = untwist(capsys, *asked, "--suspects", "s.csv", "--json")
    assert status == 1
    assert "c.csv is not written: 30 of the 30 classes have under 50 rows" in err
    assert "Review the suspects (untwist review)" in err
    assert "--force" in err
    assert not Path("c.csv").exists()
    assert not Path("c.csv.undo").exists()
    assert len(pd.read_csv("s.csv")) == len(json.loads(out)["suspects"])  # All else has been done.
    assert untwist(capsys, *asked, "--force")[0] == 0
    assert Path("c.csv").exists()
    assert untwist(capsys, "apply", "--undo", "c.csv.undo", "c.csv", "-o", "back.csv")[0] == 0
    assert Path("back.csv").read_bytes() == Path("small.csv").read_bytes()


def test_force_alone_makes_no_sense(folder, capsys):
    status, _, err = untwist(capsys, "audit", "data.csv", "--label", "y", "--force")
    assert status == 2
    assert "--force is for --corrected FILE" in err


@pytest.mark.slow
def test_a_file_says_the_order_of_its_categories(folder, capsys):
    from sklearn.datasets import make_friedman1

    pytest.importorskip("pyarrow")
    X, number = make_friedman1(3000, noise=1, random_state=0)
    names = np.array(["awful", "bad", "fair", "good", "great", "ace"])
    level = np.digitize(number, np.quantile(number, np.arange(1, 6) / 6))
    moved = np.random.default_rng(0).random(3000) < 0.1
    level[moved] = np.where(level[moved] < 3, level[moved] + 3, level[moved] - 3)
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    frame.assign(y=pd.Categorical(names[level], names, ordered=True)).to_parquet("levels.parquet")
    frame.assign(y=level).to_csv("levels.csv", index=False)
    for end in ("parquet", "csv"):
        told = untwist(capsys, "audit", f"levels.{end}", "--label", "y", "--json", "--corrected", f"c.{end}")
        assert told[0] == 0
        read = pd.read_parquet if end == "parquet" else pd.read_csv
        before, after = (read(f"{name}.{end}")["y"] for name in ("levels", "c"))
        if end == "parquet":
            before, after = before.cat.codes, after.cat.codes
        changed = (before != after).to_numpy()
        assert changed.sum() > 100
        # What was found are far flips, and no label moves to a neighbour.
        assert (np.abs(before - after)[changed] > 1).all()
