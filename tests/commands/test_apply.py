"""``untwist apply``: the labels decided on change, nothing else does, and no other file is touched."""

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

TEXT = 'id;name;y;z\r\n1;"a;\nb"; yes ;7\r\n2;Bö;no;\r\n3;c;"no";1,5\r\n4;d;YES;0'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(TEXT, "utf-8", newline="")
    return tmp_path


def decide(table, decided, label="y", given=None, name="d.csv"):
    """Write decisions about rows of a file, each (row, decision, label)."""
    frame = read(Path(table)).frame
    rows = [one[0] for one in decided]
    given = given or [str(frame[label].iloc[row]).strip() for row in rows]
    labels = [one[2] if one[1] == "relabel" else old for one, old in zip(decided, given, strict=True)]
    mark = fingerprint_file(frame, label)
    write_decisions(name, Decisions(rows, given, [one[1] for one in decided], labels, [""] * len(rows), mark))


def test_labels_decided_on_change_and_no_other_byte(folder, capsys):
    decide("data.csv", [(2, "relabel", "yes"), (0, "keep", ""), (1, "skip", ""), (3, "relabel", "maybe; not")])
    status, out, err = untwist(capsys, "apply", "d.csv", "data.csv", "-o", "new.csv")
    assert (status, err) == (0, "")
    assert "labels in column 'y': 2 changed, 1 kept, 1 skipped" in out
    expected = TEXT.replace('"no";1,5', '"yes";1,5').replace("YES;0", '"maybe; not";0')
    assert Path("new.csv").read_bytes() == expected.encode()
    assert Path("data.csv").read_bytes() == TEXT.encode()


def test_json_says_the_same(folder, capsys):
    decide("data.csv", [(1, "relabel", "yes")])
    out = untwist(capsys, "apply", "d.csv", "data.csv", "-o", "new.csv", "--json")[1]
    expected = {"table": "data.csv", "output": "new.csv", "label_column": "y", "changed": 1, "kept": 0, "skipped": 0}
    assert json.loads(out) == expected | {"undo": "new.csv.undo"}


def test_a_class_of_several_spellings_keeps_the_text_of_its_cells(folder, capsys):
    decide("data.csv", [(3, "keep", ""), (0, "relabel", "no")], given=["yes", "Yes"])
    assert untwist(capsys, "apply", "d.csv", "data.csv", "-o", "new.csv")[0] == 0
    assert Path("new.csv").read_bytes() == TEXT.replace(" yes ;7", " no ;7").encode()


def test_compressed_files_stay_compressed(folder, capsys):
    Path("data.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    decide("data.csv.gz", [(1, "relabel", "yes")])
    assert untwist(capsys, "apply", "d.csv", "data.csv.gz", "-o", "new.csv.gz")[0] == 0
    assert gzip.decompress(Path("new.csv.gz").read_bytes()).decode() == TEXT.replace("Bö;no", "Bö;yes")


@pytest.mark.parametrize("end", ["parquet", "feather"])
@pytest.mark.parametrize(
    ("labels", "new", "expected"),
    [
        (["a", "b", None], "c", ["a", "c", None]),
        ([0, 1, 1], "0", [0, 0, 1]),
        ([0, 1, 1], "5", [0, 5, 1]),
        ([0.0, 1.0, 1.0], "0", [0.0, 0.0, 1.0]),
        ([True, False, True], "True", [True, True, True]),
    ],
)
def test_binary_files_keep_types_and_other_columns(folder, capsys, end, labels, new, expected):
    pyarrow = pytest.importorskip("pyarrow")
    columns = {
        "day": pyarrow.array([1, None, 3], pyarrow.date32()),
        "y": pyarrow.array(labels),
        "l": [[1], [2, 3], None],
    }
    table = pyarrow.table(columns)
    from pyarrow import feather, parquet

    (parquet.write_table if end == "parquet" else feather.write_feather)(table, f"data.{end}")
    decide(f"data.{end}", [(1, "relabel", new)])
    status, _, err = untwist(capsys, "apply", "d.csv", f"data.{end}", "-o", f"new.{end}")
    assert status == 0, err
    found = (parquet.read_table if end == "parquet" else feather.read_table)(f"new.{end}")
    assert found.schema == table.schema
    assert found.to_pydict() == table.to_pydict() | {"y": expected}


def test_a_label_that_a_typed_column_cannot_hold_is_refused(folder, capsys):
    pd.DataFrame({"x": [1.5, 2], "y": [0, 1]}).to_parquet("data.parquet")
    decide("data.parquet", [(1, "relabel", "maybe")])
    status, _, err = untwist(capsys, "apply", "d.csv", "data.parquet", "-o", "new.parquet")
    assert status == 1
    assert "data.parquet: column 'y' holds int64, and no other label" in err
    assert not Path("new.parquet").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("Bö", "Bo"), "labels, in column 'y', are those decided on, but other cells changed"),
        (lambda text: text.replace("Bö;no", "Bö;yes"), "its labels, in column 'y', are not those that were decided on"),
        (lambda text: text.replace("Bö;no", "Bo;yes"), "neither its labels nor its other cells are those"),
        (lambda text: text.replace("\r\n4;d;YES;0", ""), "neither its labels nor its other cells are those"),
        (lambda text: text.replace("name", "Name"), "but other cells changed"),
    ],
)
def test_a_file_that_was_not_reviewed_is_refused_and_what_differs_is_said(folder, capsys, change, words):
    decide("data.csv", [(1, "relabel", "yes")])
    Path("other.csv").write_text(change(TEXT), "utf-8", newline="")
    status, _, err = untwist(capsys, "apply", "d.csv", "other.csv", "-o", "new.csv")
    assert status == 1
    assert "other.csv is not the file that d.csv is about" in err
    assert words in err
    assert not Path("new.csv").exists()


def test_a_file_saved_with_another_separator_is_the_same_table(folder, capsys):
    decide("data.csv", [(1, "relabel", "yes")])
    frame = read(Path("data.csv")).frame
    frame.to_csv("saved.csv", index=False)
    assert untwist(capsys, "apply", "d.csv", "saved.csv", "-o", "new.csv")[0] == 0
    assert read(Path("new.csv")).frame["y"].tolist()[1] == "yes"


def test_what_cannot_be_done_is_said(folder, capsys):
    decide("data.csv", [(1, "relabel", "yes")])
    assert "read or written already" in untwist(capsys, "apply", "d.csv", "data.csv", "-o", "data.csv")[2]
    assert "read or written already" in untwist(capsys, "apply", "d.csv", "data.csv", "-o", "d.csv")[2]
    assert "same kind" in untwist(capsys, "apply", "d.csv", "data.csv", "-o", "new.parquet")[2]
    assert "new.xlsx cannot be written" in untwist(capsys, "apply", "d.csv", "data.xlsx", "-o", "new.xlsx")[2]
    assert "must be a CSV file" in untwist(capsys, "apply", "d.csv", "data.xlsx", "-o", "new.parquet")[2]
    assert "d.csv is not the" in untwist(capsys, "apply", "d.csv", "d.csv", "-o", "new.csv")[2]
    decide("data.csv", [(1, "relabel", "yes")], given=["perhaps"])
    err = untwist(capsys, "apply", "d.csv", "data.csv", "-o", "new.csv")[2]
    assert "line 4 of data.csv had the label 'perhaps' when it was decided on, not 'no'" in err
    write_decisions("d.csv", Decisions([], [], [], [], [], ""))
    assert "has no decisions" in untwist(capsys, "apply", "d.csv", "data.csv", "-o", "new.csv")[2]


@pytest.mark.parametrize(("encoding", "mark"), [("utf-8", b"\xef\xbb\xbf"), ("utf-16", b""), ("latin-1", b"")])
def test_encodings_and_marks_stay(folder, capsys, encoding, mark):
    before, after = (f"y,name\r\nno,Bö\r\n{label},Ü\r\n" for label in ("yes", "no"))
    Path("coded.csv").write_bytes(mark + before.encode(encoding))
    frame = read(Path("coded.csv"), encoding=encoding).frame
    write_decisions("d.csv", Decisions([1], ["yes"], ["relabel"], ["no"], [""], fingerprint_file(frame, "y")))
    status, _, err = untwist(capsys, "apply", "d.csv", "coded.csv", "-o", "new.csv", "--encoding", encoding)
    assert status == 0, err
    assert Path("new.csv").read_bytes() == mark + after.encode(encoding)


def test_a_column_like_the_labels_is_no_trouble(folder, capsys):
    frame = pd.DataFrame({"copy": ["a", "b", "b"], "y": ["a", "b", "b"], "x": ["1", "2", "3"]})
    frame.to_csv("twins.csv", index=False)
    decide("twins.csv", [(2, "relabel", "a")])
    assert untwist(capsys, "apply", "d.csv", "twins.csv", "-o", "new.csv")[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv("new.csv", dtype=str), frame.assign(y=np.array(["a", "b", "a"])))


@pytest.mark.parametrize("blank", ["\t", "   ", " \t "])
def test_lines_of_blanks_are_no_rows(folder, capsys, blank):
    lines = ["a,y", "1,no", "2,no", blank, "3,no", "4,no", "5,yes"]
    Path("blank.csv").write_text("\n".join(lines) + "\n")
    decide("blank.csv", [(2, "relabel", "yes"), (3, "relabel", "yes")])
    assert untwist(capsys, "apply", "d.csv", "blank.csv", "-o", "new.csv")[0] == 0
    assert Path("new.csv").read_text().splitlines() == [*lines[:4], "3,yes", "4,yes", "5,yes"]


def test_a_label_may_be_called_nan(folder, capsys):
    Path("nan.csv").write_text("a,y\n1,nan\n2,ok\n3,nan\n")
    decide("nan.csv", [(0, "relabel", "ok"), (2, "keep", "nan")])
    assert untwist(capsys, "apply", "d.csv", "nan.csv", "-o", "new.csv")[0] == 0
    assert Path("new.csv").read_text() == "a,y\n1,ok\n2,ok\n3,nan\n"


def test_categories_of_parquet_keep_their_order(folder, capsys):
    kinds = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    frame = pd.DataFrame({"a": [1, 2, 3], "y": pd.Series(["high", "low", "low"], dtype=kinds)})
    frame.to_parquet("kinds.parquet")
    decide("kinds.parquet", [(1, "relabel", "high")])
    assert untwist(capsys, "apply", "d.csv", "kinds.parquet", "-o", "new.parquet")[0] == 0
    changed = pd.read_parquet("new.parquet")["y"]
    assert changed.dtype == kinds
    assert changed.tolist() == ["high", "high", "low"]


@pytest.mark.parametrize("odd", ["\v", '""', "x"])
def test_other_short_lines_are_rows(folder, odd):
    Path("odd.csv").write_text(f"a,y\n1,no\n{odd}\n3,yes\n")
    assert read(Path("odd.csv")).lines.tolist() == [2, 3, 4]
