"""The line of progress: quiet at first, written over on a terminal, now and then in a log, gone at the end."""

import io
import sys

import pytest

from untwist import progress
from untwist.progress import ProgressLine, describe_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_short_job_shows_nothing(monkeypatch, clock):
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        with ProgressLine() as line:
            clock[0] += 1.9
            line.show("half")
        assert stream.getvalue() == ""


def test_on_a_terminal_the_line_is_written_over_and_cleared(monkeypatch, clock):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressLine() as line:
        for step in range(40):
            clock[0] += 0.5
            line.show(f"step {step} \x1b[2J\nand more" + "x" * 200)
        line.print_status("something happened")
        clock[0] += 0.5
        line.show("the end")
    *shown, last, cleared, rest = stream.getvalue().split("\r")
    assert all(len(one) <= progress.WIDTH for one in shown if "something" not in one)
    assert "something happened\n" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
    assert last.rstrip() == "the end"
    assert (cleared.strip(), rest) == ("", "")


def test_in_a_log_there_is_a_line_every_ten_seconds(monkeypatch, clock):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressLine() as line:
        for step in range(60):
            clock[0] += 1.0
            line.show(f"step {step}")
    assert stream.getvalue().splitlines() == [f"step {step}" for step in (9, 19, 29, 39, 49, 59)]


def test_what_is_left_is_told_in_words():
    assert describe_progress(1, 3, 10.0, "fits") == "1 of 3 fits, about 20 s left"
    assert describe_progress(1, 11, 60.0, "fits") == "1 of 11 fits, about 10 min left"
    assert describe_progress(1, 101, 120.0, "splits") == "1 of 101 splits, about 3.3 h left"
