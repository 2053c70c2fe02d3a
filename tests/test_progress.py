"""The line of progress: quiet at first, written over on a terminal, now and then in a log, gone at the end."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from untwist import PILBoostClassifier, progress
from untwist.audit import audit_labels
from untwist.progress import (
    NotebookBar,
    ProgressLine,
    describe_progress,
    find_display,
    show_progress,
    use_display,
)


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


# ---- who waits, and where ----


class Page:
    """What a notebook shows of one display."""

    def __init__(self):
        self.shown = []

    def display(self, thing, display_id):
        assert display_id is True
        self.update(thing)
        return self

    def update(self, thing):
        self.shown.append(thing._repr_html_())


@pytest.fixture
def notebook(monkeypatch):
    """A stand-in for the kernel of a notebook."""
    page = Page()
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=page.display))
    return page


def test_nobody_waits_unless_asked_to():
    assert find_display() is None
    with show_progress(False):
        assert find_display() is None
    with show_progress(True):
        outer = find_display()
        assert isinstance(outer, ProgressLine)
        with show_progress(True):
            assert find_display() is outer  # One job within another goes on with its display.
    assert find_display() is None


def test_a_display_closes_where_a_job_fails(monkeypatch, clock):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)

    def fail():
        with use_display(ProgressLine()):
            clock[0] += 5
            find_display().show("half", 5.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert find_display() is None
    assert stream.getvalue().endswith("\r" + " " * progress.WIDTH + "\r")


def test_the_line_has_a_bar_that_does_not_go_back(monkeypatch, clock):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    line = ProgressLine()
    clock[0] += 30
    line.show("first", 30.0)
    clock[0] += 1
    line.show("second", 100.0)
    first, second = (one.strip() for one in stream.getvalue().split("\r")[1:])
    assert first == "██████░░░░░░ 50%, about 30 s left: first"
    assert second == "██████░░░░░░ 50%, about 2 min left: second"


def test_in_a_notebook_there_is_a_bar_and_lines_stay(notebook, clock, capsys):
    with show_progress(True):
        display = find_display()
        assert isinstance(display, NotebookBar)
        clock[0] += 10
        display.show("trying <b>", 30.0)
        assert "width:25.0%" in notebook.shown[-1]
        assert "10 s, trying &lt;b&gt;, about 30 s left" in notebook.shown[-1]
        n_shown = len(notebook.shown)
        clock[0] += 0.1
        display.show("too soon", 20.0)
        assert len(notebook.shown) == n_shown
        for number in range(40):
            display.print_status(f"<i>line {number}")
        assert "width:25.2%" in notebook.shown[-1]  # The time goes on.
    assert "width" not in notebook.shown[-1]
    assert "&lt;i&gt;line 39" in notebook.shown[-1]
    assert "line 9\n" not in notebook.shown[-1]  # Only the last ones.
    assert capsys.readouterr() == ("", "")


def test_the_shell_of_a_terminal_is_no_notebook(monkeypatch):
    shell = type("TerminalInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with show_progress(True):
        assert type(find_display()) is ProgressLine


def test_verbose_fits_and_audits_show_a_bar_in_a_notebook(notebook, capsys):
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = X[:, 0] > np.random.default_rng(1).normal(size=300)
    PILBoostClassifier(alpha=2.0, n_estimators=30, max_depth=2).fit(X, y)
    assert notebook.shown == []
    PILBoostClassifier(alpha=2.0, n_estimators=30, max_depth=2, verbose=10).fit(X, y)
    assert notebook.shown[-1].count("round ") == 3
    audit = audit_labels(X, y, verbose=1)
    lines = [str(one) for one in audit.model.choice_.tried]
    assert any(all(line in shown for line in lines) for shown in notebook.shown)
    assert capsys.readouterr() == ("", "")
