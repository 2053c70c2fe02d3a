"""``untwist review``: the whole way from a table to cleaned labels, a killed server, two reviews of one file."""

import json
import os
import re
import signal
import socket
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import untwist
from helpers.patience import PATIENCE
from helpers.review_process import open_reviews
from untwist.audit import read_decisions
from untwist.audit.statements import INDEPENDENT_ERRORS, Statement
from untwist.commands import review
from untwist.commands.requests import REQUESTS

pd = pytest.importorskip("pandas", reason="the commands read tables with pandas")


def make_table(noise=0.2, n_rows=600):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n_rows).round(3), "b": rng.normal(size=n_rows).round(3)})
    frame["y"] = np.where((frame["a"] > 0) ^ (rng.random(n_rows) < noise), "up", "down")
    frame.loc[4, "y"] = ""
    return frame


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_table().to_csv("data.csv", index=False)
    return tmp_path


@pytest.fixture
def start():
    with open_reviews() as begin:
        yield begin


@pytest.mark.slow
def test_from_a_table_to_cleaned_labels(folder, start, capsys):
    before = Path("data.csv").read_bytes()
    first = start()
    assert first.address, first.said
    with urllib.request.urlopen(first.address, timeout=PATIENCE) as answer:
        page = answer.read().decode()
    config = json.loads(re.search(r'<script type="application/json" id="?review-config"?>(.*?)</script>', page)[1])
    assert config["server"] == "decisions"
    assert config["classes"] == ["down", "up"]
    frame = make_table()
    other = {"up": "down", "down": "up"}
    first.post(row=7, decision="relabel", label=other[frame["y"][7]], note="seen")
    first.post(row=9, decision="keep")

    # A second review of the same file is refused, in words.
    second = start()
    assert second.address is None
    assert second.end(signal.SIGINT)[0] == 1
    assert "data.decisions.csv is being written by another review" in second.said

    # Nothing is lost when the server is killed, and the next one is where the page expects it.
    first.end(signal.SIGKILL)
    assert read_decisions("data.decisions.csv").rows.tolist() == [7, 9]
    third = start()
    assert third.address == first.address
    assert "data.decisions.csv has 2 decisions already" in third.said
    answer = third.post(row=11, decision="skip", since=1)
    assert answer["whole"]
    assert [one["row"] for one in answer["decisions"]] == [7, 9, 11]

    # Ctrl-C ends it, with the next command.
    status, out = third.end(signal.SIGINT)
    assert status == 0, third.said
    assert re.match(r"1 of 2 labels were wrong, (about \d \(\d to \d\)|0 to 2) were expected; 1 skipped", out)
    command = re.search("To change the labels: (.*)", out)[1]
    assert command == "untwist apply data.decisions.csv data.csv -o data.cleaned.csv"
    assert sorted(os.listdir()) == ["data.csv", "data.decisions.csv"]
    assert untwist(capsys, *command.split()[1:])[0] == 0
    after = Path("data.cleaned.csv").read_text().splitlines()
    changed = [
        i for i, lines in enumerate(zip(before.decode().splitlines(), after, strict=True)) if len(set(lines)) > 1
    ]
    assert changed == [8]
    assert after[8].endswith(other[frame["y"][7]])


@pytest.mark.slow
def test_json_says_what_was_decided(folder, start):
    running = start("--json", "--decisions", "mine.csv", "--budget", "10")
    running.post(row=3, decision="keep")
    status, out = running.end(signal.SIGINT)
    assert status == 0
    found = json.loads(out)
    assert found.items() >= {"decided": 1, "wrong": 0, "right": 1, "skipped": 0, "decisions": "mine.csv"}.items()
    assert found["next"] == "untwist apply mine.csv data.csv -o data.cleaned.csv"
    assert read_decisions("mine.csv").lines.tolist() == ["5"]


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (Statement(4.2, 2.0, 6.5), "about 4 (2 to 7) were expected"),
        (Statement(0.1, 0.0, 9.0), "0 to 9 were expected"),
        (
            Statement(0.1, 0.0, 7.1, rests_on=(INDEPENDENT_ERRORS,)),
            "0 to 8 were expected if errors do not depend on features",
        ),
    ],
)
def test_the_summary_compares_with_what_was_expected(capsys, expected, words):
    counts = {"decided": 9, "wrong": 3, "right": 6, "skipped": 0}
    review._print_summary(counts, expected, Path("d.csv"), "untwist apply")
    out = capsys.readouterr().out
    assert out == f"3 of 9 labels were wrong, {words}. d.csv has it all.\nTo change the labels: untwist apply\n"


@pytest.fixture
def stopped_at_once(monkeypatch):
    """Reviews end as soon as they serve; returns what they served."""
    served = []

    def serve(server, **_):
        served.append(server)

    monkeypatch.setattr(review, "_serve", serve)
    return served


def test_clean_data_have_rows_to_look_at_too(folder, capsys, stopped_at_once):
    make_table(noise=0).to_csv("data.csv", index=False)
    status, out, err = untwist(capsys, "review", "data.csv", "--label", "y")
    assert status == 0
    assert "the page has the 50 rows to look at first" in err
    assert "Nothing was decided." in out
    assert not Path("data.decisions.csv").exists()


def test_what_a_killed_review_had_begun_to_write_is_removed_at_the_next_start(folder, capsys, stopped_at_once):
    Path(".data.decisions.csv.0123456789abcdef").write_text("half")
    untwist(capsys, "review", "data.csv", "--label", "y")
    assert stopped_at_once
    assert os.listdir() == ["data.csv"]


def test_rows_without_a_label_cannot_be_decided_on(folder, capsys, stopped_at_once):
    untwist(capsys, "review", "data.csv", "--label", "y")
    (server,) = stopped_at_once
    given = dict(server.ledger._given)
    assert 4 not in given
    assert given[5] == make_table()["y"][5]
    with pytest.raises(OSError, match="has ended"):
        server.ledger.decide(5, "keep")


def test_decisions_of_another_table_are_refused_before_anything_is_fitted(folder, capsys, stopped_at_once, monkeypatch):
    frame = make_table()
    frame.assign(a=-frame["a"]).to_csv("other.csv", index=False)
    untwist(capsys, "review", "data.csv", "--label", "y", "--decisions", "d.csv")
    ledger = stopped_at_once[0].ledger
    ledger._is_closed = False
    ledger.decide(0, "keep")
    monkeypatch.setattr(review, "judge", lambda *_: pytest.fail("fitted"))
    status, _, err = untwist(capsys, "review", "other.csv", "--label", "y", "--decisions", "d.csv")
    assert status == 1
    assert "d.csv: the decisions are about other data" in err
    assert "other features" in err
    assert not Path("d.csv.lock").exists()


def test_a_port_that_is_taken_is_named(folder, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, _, err = untwist(capsys, "review", "data.csv", "--label", "y", "--port", port)
    assert status == 1
    assert f"port {port} cannot be had" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--decisions", "data.csv"], "is read or written already"),
        (["--port", "70000"], "--port must be"),
        (["--budget", "0"], "must be at least 1"),
        (["--decisions", "no/where.csv"], "there is no folder no"),
    ],
)
def test_what_cannot_be_done_is_said_first(folder, capsys, arguments, words):
    status, _, err = untwist(capsys, "review", "data.csv", "--label", "y", *arguments)
    assert status in (1, 2)
    assert words in err


@pytest.mark.parametrize(
    ("name", "stem", "cleaned"),
    [
        ("data.csv", "data", "data.cleaned.csv"),
        ("a.b.csv.gz", "a.b", "a.b.cleaned.csv.gz"),
        ("my data.parquet", "my data", "'my data.cleaned.parquet'"),
        ("table", "table", "table.cleaned"),
    ],
)
def test_files_beside_the_table_have_its_name(tmp_path, monkeypatch, name, stem, cleaned):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    options = REQUESTS["review"]([name, "--label", "y"])
    assert options.decisions == Path(f"{stem}.decisions.csv")
    assert review._name_next_command(options).endswith(f"-o {cleaned}")
