"""Files of decisions: what goes in comes out, whatever a spreadsheet does in between."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from untwist.audit import Decisions, read_decisions, write_decisions
from untwist.files.decisions import COLUMNS, format_decisions, parse_decisions

MARK = f"{1:016x}-{2:016x}"
FIELDS = ("rows", "given", "decision", "labels", "notes", "lines", "decided_at")


def list_fields(decisions):
    return {name: [str(one) for one in getattr(decisions, name).tolist()] for name in FIELDS} | {
        "fingerprint": decisions.fingerprint if len(decisions) else ""
    }


@pytest.fixture
def decisions():
    return Decisions(
        rows=[7, 3, 12],
        given=["ja", "=nein", "007"],
        decision=["keep", "relabel", "skip"],
        labels=["ja", 'Köln; "Süd", \'x', "007"],
        notes=["", "@first\nsecond line", "-5"],
        fingerprint=MARK,
        lines=["9", "5", ""],
        decided_at=["2026-01-02T03:04:05Z", "", ""],
    )


def test_what_is_written_is_read(decisions, tmp_path):
    write_decisions(tmp_path / "d.csv", decisions)
    assert list_fields(read_decisions(tmp_path / "d.csv")) == list_fields(decisions)
    rows = list(csv.reader(io.StringIO((tmp_path / "d.csv").read_text("utf-8-sig"), newline="")))
    assert tuple(rows[0]) == COLUMNS
    assert rows[2][2] == "'=nein"  # No formula for a spreadsheet.


def resave(text, *, separator=",", ending="\r\n", quoting=csv.QUOTE_MINIMAL, mark="", tail=""):
    """Save the text as another program would."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=ending, quoting=quoting)
    writer.writerows(csv.reader(io.StringIO(text, newline="")))
    return mark + out.getvalue() + tail


@pytest.mark.parametrize(
    "habit",
    [
        {"separator": ";"},
        {"separator": "\t"},
        {"ending": "\n"},
        {"quoting": csv.QUOTE_ALL},
        {"separator": ";", "mark": "\ufeff", "tail": ";;;;;;;\r\n\r\n"},
    ],
    ids=str,
)
def test_a_spreadsheet_does_no_harm(decisions, habit, tmp_path):
    path = tmp_path / "saved.csv"
    path.write_bytes(resave(format_decisions(decisions), **habit).encode())
    assert list_fields(read_decisions(path)) == list_fields(decisions)


def test_a_person_may_write_the_least(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(f"fingerprint;row;given;decision;label\n{MARK};4;no;relabel;yes\n{MARK};5;no;keep\n")
    read = read_decisions(path)
    assert read.rows.tolist() == [4, 5]
    assert read.labels.tolist() == ["yes", "no"]
    assert read.notes.tolist() == ["", ""]


TEXT = st.text(st.characters(exclude_categories=()), min_size=1).filter(str.strip) | st.sampled_from(
    ["'=x", "''@", "'-5", "-5", "'", "\t1", "a\rb", "x\0"]
)


@given(st.lists(st.tuples(TEXT, TEXT, st.text()), max_size=5))
def test_any_text_comes_back(cells):
    given_labels, labels, notes = zip(*cells, strict=True) if cells else ((), (), ())
    arrays = [np.array(one, dtype=object) for one in (given_labels, labels, notes)]
    decisions = Decisions(range(len(cells)), arrays[0], ["relabel"] * len(cells), arrays[1], arrays[2], MARK)
    assert list_fields(parse_decisions(format_decisions(decisions))) == list_fields(decisions)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("fingerprint", "mark"), "no column 'fingerprint'"),
        (lambda text: text.replace("line,", "row,", 1), "several columns 'row'"),
        (lambda text: text.replace("\r\n7,", "\r\n7.5,"), "got '7.5'"),
        (lambda text: text.replace("\r\n7,", "\r\n3,"), "row 3 is decided on twice"),
        (lambda text: text.replace("keep", "stay"), "'stay'"),
        (lambda text: text.replace(MARK, "1" * 16 + "-" + "2" * 16, 1), "different data"),
        (lambda text: text + '9,"open', "no CSV"),
        (lambda text: text + "9" + ",1" * 9, "more cells"),
        (lambda _: "", "no column 'row'"),
    ],
)
def test_what_is_no_file_of_decisions_is_refused_with_its_name(decisions, change, words, tmp_path):
    path = tmp_path / "broken.csv"
    path.write_text(change(format_decisions(decisions)), newline="")
    with pytest.raises(ValueError, match=words) as caught:
        read_decisions(path)
    assert "broken.csv: " in str(caught.value)


def test_other_encodings_are_refused(tmp_path):
    (tmp_path / "latin.csv").write_bytes("row,ü".encode("latin-1"))
    with pytest.raises(ValueError, match="save it as CSV UTF-8"):
        read_decisions(tmp_path / "latin.csv")


def test_no_decisions_are_decisions_too(tmp_path):
    none = Decisions([], [], [], [], [], MARK)
    write_decisions(tmp_path / "none.csv", none)
    assert len(read_decisions(tmp_path / "none.csv")) == 0


def parse_lines(*lines, names="row,line,given,decision,label,note,decided_at,fingerprint"):
    return parse_decisions("\n".join([names, *lines]))


def test_errors_name_the_line_of_the_file():
    good = f'1,,no,keep,,"two\nlines",,{MARK}'
    with pytest.raises(ValueError, match="line 5 has more cells than the first line has names"):
        parse_lines("", good, "2" + ",x" * 8)
    with pytest.raises(ValueError, match=r"this is no CSV: .*, in line 3"):
        parse_lines(f"1,,no,keep,,,,{MARK}", '2,"open')
    assert len(parse_lines(good, " , ", "")) == 1  # Lines without anything are no decisions.


def test_rows_are_whole_numbers_of_up_to_fifteen_digits():
    read = parse_lines(f" {10**15 - 1} ,,no,keep,,,,{MARK}", f"0,,no,keep,,,,{MARK}")
    assert sorted(read.rows.tolist()) == [0, 10**15 - 1]
    for odd in ("", "-1", str(10**15), "1e3", "1.0"):
        with pytest.raises(ValueError, match="row must be a position, a whole number from 0, got"):
            parse_lines(f"{odd},,no,keep,,,,{MARK}")


def test_whoever_keeps_or_skips_a_label_need_not_repeat_it():
    read = parse_lines(
        f"1,,no,keep,,,,{MARK}", f"2,,no, skip ,,,, {MARK} ", f"3,,no,keep,no,,,{MARK}", f"4,,no,relabel,yes,,,{MARK}"
    )
    assert read.labels.tolist() == ["no", "no", "no", "yes"]
    assert read.decision.tolist() == ["keep", "skip", "keep", "relabel"]
    assert read.fingerprint == MARK
    with pytest.raises(ValueError, match="row 1 has no label"):
        parse_lines(f"1,,no,relabel,,,,{MARK}")
    with pytest.raises(ValueError, match="row 1 says keep, but its label changes from 'no' to 'yes'"):
        parse_lines(f"1,,no,keep,yes,,,{MARK}")


def test_the_first_line_tells_what_is_between_cells_whatever_ends_it():
    for ending in ("\n", "\r", "\r\n"):
        text = ending.join(["row;given;decision;label;fingerprint", f"1;a,b,c,d,e,f;relabel;g,h;{MARK}", ""])
        read = parse_decisions(text)
        assert (read.given.tolist(), read.labels.tolist()) == (["a,b,c,d,e,f"], ["g,h"])


def test_decisions_about_different_data_are_named_up_to_three():
    marks = [f"{number:016x}-{2:016x}" for number in (4, 1, 3, 2)]
    lines = [f"{row},,no,keep,,,,{mark}" for row, mark in enumerate(marks)]
    with pytest.raises(ValueError, match="different data") as caught:
        parse_lines(*lines)
    assert str(caught.value).endswith(", ".join([marks[1], marks[3], marks[2]]))
