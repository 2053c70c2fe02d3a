"""The ledger of a review: on disk before it counts, one writer at a time, what changed since when."""

import os
import subprocess
import sys

import pytest

from untwist.audit import Decisions, read_decisions, write_decisions
from untwist.files.decisions import format_decisions
from untwist.review import Ledger, Lock

MARK = f"{1:016x}-{2:016x}"
GIVEN = {0: "no", 1: "yes", 3: "no"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.decisions.csv"


def open_ledger(path, mark=MARK):
    return Ledger(path, mark, GIVEN, {row: str(row + 2) for row in GIVEN})


def list_file(path):
    found = read_decisions(path)
    fields = (found.rows, found.lines, found.given, found.decision, found.labels, found.notes)
    return list(zip(*(one.tolist() for one in fields), strict=True))


def test_a_decision_is_in_the_file_when_it_was_taken(path):
    ledger = open_ledger(path)
    assert not path.exists()
    ledger.decide(3, "relabel", "yes", "obvious")
    assert list_file(path) == [(3, "5", "no", "relabel", "yes", "obvious")]
    ledger.decide(1, "keep", "whatever")
    ledger.decide(3, "skip")
    assert list_file(path) == [(3, "5", "no", "skip", "no", ""), (1, "3", "yes", "keep", "yes", "")]
    ledger.decide(3, None)
    assert list_file(path) == [(1, "3", "yes", "keep", "yes", "")]
    assert read_decisions(path).fingerprint == MARK
    assert ledger.decisions.rows.tolist() == [1]


def test_the_file_is_what_writing_all_decisions_gives(path):
    ledger = open_ledger(path)
    for decision in [
        (3, "relabel", "=yes", "a\nb"),
        (0, "skip"),
        (1, "keep", "", "-1"),
        (0, None),
        (0, "keep"),
        (3, "skip"),
    ]:
        ledger.decide(*decision)
        expected = format_decisions(ledger.decisions).splitlines()
        assert sorted(path.read_text("utf-8-sig").splitlines()) == sorted(expected)


def test_pages_hear_of_changes_since_what_they_know(path):
    ledger = open_ledger(path)
    first = ledger.list_changes(0)
    assert (first["decisions"], first["whole"]) == ([], True)
    ledger.decide(0, "keep")
    ledger.decide(1, "relabel", "no")
    both = ledger.list_changes(first["version"])
    assert [one["row"] for one in both["decisions"]] == [0, 1]
    assert not both["whole"]
    assert both["decisions"][1].items() >= {"decision": "relabel", "label": "no", "note": ""}.items()
    ledger.decide(0, None)
    news = ledger.list_changes(both["version"])
    assert [(one["row"], one["decision"]) for one in news["decisions"]] == [(0, None)]
    assert news["version"] > both["version"] > first["version"]
    assert ledger.list_changes(news["version"])["decisions"] == []


def test_the_next_process_goes_on_and_tells_everything(path):
    before = open_ledger(path)
    before.decide(0, "keep", note="sure")
    known = before.list_changes(0)["version"]
    after = open_ledger(path)
    news = after.list_changes(known)
    assert news["whole"]
    assert [(one["row"], one["note"]) for one in news["decisions"]] == [(0, "sure")]
    assert after.list_changes(news["version"]) == {"version": news["version"], "whole": False, "decisions": []}
    assert after.list_changes(news["version"] + 5)["whole"]  # That version is none of this ledger.


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ((2, "keep"), "row must be"),
        ((-1, "keep"), "row must be"),
        (("0", "keep"), "row must be"),
        ((True, "keep"), "row must be"),
        ((None, "keep"), "row must be"),
        ((0, "drop"), "decision must be"),
        ((0, ["keep"]), "decision must be"),
        ((0, "relabel", ""), "label must be"),
        ((0, "relabel", " \t"), "label must be"),
        ((0, "relabel", 1), "label must be"),
        ((0, "relabel", "x" * 1001), "label must be"),
        ((0, "keep", "", "x" * 10_001), "note must be"),
        ((0, "keep", "", 7), "note must be"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(path, decision, words):
    ledger = open_ledger(path)
    with pytest.raises(ValueError, match=words):
        ledger.decide(*decision)
    assert not path.exists()
    assert ledger.list_changes(0)["decisions"] == []


def test_labels_that_a_spreadsheet_has_rewritten_are_the_classes(path):
    write_decisions(path, Decisions([0, 1], ["NO", "yes"], ["relabel", "relabel"], ["YES", "new"], ["", ""], MARK))
    ledger = open_ledger(path)
    assert ledger.decisions.given.tolist() == ["no", "yes"]
    assert ledger.decisions.labels.tolist() == ["yes", "new"]


def test_decisions_about_other_data_are_refused(path):
    open_ledger(path).decide(0, "keep")
    with pytest.raises(ValueError, match=r"other labels .*; choose another file by --decisions"):
        open_ledger(path, f"{1:016x}-{3:016x}")
    write_decisions(path, Decisions([2], ["no"], ["keep"], ["no"], [""], MARK))
    with pytest.raises(ValueError, match="row 2 has the label None, not 'no'"):
        open_ledger(path)


def test_a_file_that_another_program_has_changed_is_not_written_over(path):
    ledger = open_ledger(path)
    ledger.decide(0, "keep")
    content = path.read_bytes().replace(b"keep", b"skip") + b"\r\n"
    path.write_bytes(content)
    with pytest.raises(OSError, match="changed by another program"):
        ledger.decide(1, "keep")
    assert path.read_bytes() == content
    assert [one["row"] for one in ledger.list_changes(0)["decisions"]] == [0]


def test_what_cannot_be_written_was_not_decided(path, monkeypatch):
    ledger = open_ledger(path)
    monkeypatch.setattr("untwist.review.ledger.write_text", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        ledger.decide(0, "keep")
    assert ledger.list_changes(0)["decisions"] == []


def test_a_closed_ledger_takes_nothing(path):
    ledger = open_ledger(path)
    ledger.close()
    with pytest.raises(OSError, match="has ended"):
        ledger.decide(0, "keep")


def test_one_holds_the_lock_and_the_next_is_refused(path):
    lock = Lock(path)
    with pytest.raises(ValueError, match="another review"):
        Lock(path)
    lock.release()
    assert list(path.parent.iterdir()) == []
    Lock(path).release()


def test_two_names_of_a_file_have_one_lock(path):
    path.write_text("")
    link = path.with_name("link.csv")
    link.symlink_to(path)
    lock = Lock(link)
    with pytest.raises(ValueError, match="another review"):
        Lock(path)
    lock.release()


@pytest.mark.slow
def test_the_lock_of_a_dead_process_is_taken_over_with_its_address(path):
    token = "t" * 43
    code = f"""
import os, pathlib
from untwist.review import Lock
lock = Lock(pathlib.Path({str(path)!r}))
lock.write(1234, {token!r})
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    place = path.with_name(f"{path.name}.lock")
    assert place.exists()
    assert place.stat().st_mode & 0o777 == 0o600
    lock = Lock(path)
    assert lock.find_address() == (1234, token)
    lock.release()
    assert not place.exists()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"port": 0, "token": "x"}', '{"port": 99, "token": "../../etc"}'])
def test_what_a_lock_file_says_is_checked(path, content):
    place = path.with_name(f"{path.name}.lock")
    place.write_text(content)
    place.chmod(0o600)
    lock = Lock(path)
    assert lock.find_address() is None
    lock.release()


def test_an_address_that_others_could_have_read_is_not_taken_over(path):
    place = path.with_name(f"{path.name}.lock")
    place.write_text(f'{{"port": 1234, "token": "{"t" * 43}"}}')
    place.chmod(0o644)
    lock = Lock(path)
    assert lock.find_address() is None
    lock.write(99, "u" * 43)
    assert os.stat(place).st_mode & 0o077 == 0
    lock.release()
