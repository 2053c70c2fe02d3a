"""From a table to cleaned labels in a real browser, by keyboard alone, with two tabs and a server that is killed."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from helpers.browser import Browser, find_chromium
from helpers.command_line import untwist
from helpers.report_fixtures import make_customers
from helpers.review_process import open_reviews
from untwist.audit import read_decisions

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="no Chromium here: as root on Debian, apt-get install chromium"),
]
READY = "document.getElementById('work') && !document.getElementById('work').hidden"


@pytest.fixture
def tabs(tmp_path_factory):
    """Two browsers, each with a tab."""
    opened = [Browser(tmp_path_factory.mktemp("downloads")) for _ in range(2)]
    yield opened
    for one in opened:
        one.close()


def wait_for_decisions(tab, n_reviewed):
    tab.wait_for(f"/ of {n_reviewed} (was|were) wrong/.test(document.getElementById('yield')?.textContent)")


def test_from_a_table_to_cleaned_labels_by_keyboard(tabs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table, labels, _ = make_customers(1500)
    table.insert(0, "note", np.where(np.arange(1500) % 7, "plain", 'odd; "quoted", <b>'))
    table.assign(y=labels).to_csv("data.csv", index=False)
    first, second = tabs
    with open_reviews() as start:
        review = start()
        assert review.address, review.said
        for tab in tabs:
            tab.open(review.address)
            tab.wait_for(READY)
        first.press("r", "Y", "s")
        wait_for_decisions(second, 2)
        decided = read_decisions("data.decisions.csv")
        assert decided.decision.tolist() == ["relabel", "keep", "skip"]

        # The server is killed, the person goes on, and the next server gets to know.
        review.end(signal.SIGKILL)
        first.press("r")
        first.wait_for("document.getElementById('message').textContent.startsWith('The server is gone.')")
        assert len(read_decisions("data.decisions.csv")) == 3
        review = start()
        wait_for_decisions(second, 3)
        status, out = review.end(signal.SIGINT)
    assert status == 0
    assert " of 3 labels were wrong" in out
    # Nothing but the server was asked for anything.
    address = review.address
    for tab in tabs:
        assert {one.split("?")[0] for one in tab.requests} == {address, f"{address}decisions"}

    command = out.split("To change the labels: ")[1].split()
    assert untwist(capsys, *command[1:])[0] == 0
    decided = read_decisions("data.decisions.csv")
    before, after = (Path(name).read_text().splitlines() for name in ("data.csv", "data.cleaned.csv"))
    changed = [i for i, lines in enumerate(zip(before, after, strict=True)) if len(set(lines)) == 2]
    lines = decided.lines[decided.relabelled]
    assert [i + 1 for i in changed] == sorted(map(int, lines.tolist()))
    assert len(changed) == 2
    assert sorted(os.listdir()) == ["data.cleaned.csv", "data.cleaned.csv.undo", "data.csv", "data.decisions.csv"]


def test_after_a_reload_no_key_changes_a_decision_that_is_out_of_view(tabs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, labels, _ = make_customers(1500)
    table.assign(y=(labels == "stays").astype(int)).to_csv("data.csv", index=False)
    tab, second = tabs
    with open_reviews() as start:
        review = start()
        assert review.address, review.said
        tab.open(review.address)
        tab.wait_for(READY)
        second.open(review.address)
        second.wait_for(READY)
        given = tab.run("document.querySelector('.was').textContent")
        tab.press(given)  # the key of a class is the digit that its label is
        wait_for_decisions(second, 1)
        (before,) = read_decisions("data.decisions.csv").decision.tolist()
        assert before == "keep"

        tab.open(review.address)
        tab.wait_for(READY)
        assert "kept" not in tab.run("document.getElementById('head').textContent")  # the next open row is at hand
        tab.run("document.querySelector('.item').click()")
        assert "kept" in tab.run("document.getElementById('head').textContent")
        tab.run("scrollTo({ top: 0, behavior: 'instant' })")
        tab.press("r")
        assert "Here it is" in tab.run("document.getElementById('message').textContent")
        tab.press("s")
        tab.wait_for("/1 skipped/.test(document.getElementById('yield').textContent)")
        second.wait_for("/1 skipped/.test(document.getElementById('yield').textContent)")
        assert read_decisions("data.decisions.csv").decision.tolist() == ["skip"]
        review.end(signal.SIGINT)
