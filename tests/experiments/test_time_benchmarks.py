"""The programs of `make bench`: who is measured on how many threads, what is made of the times, and tiny runs."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from experiments.benchmarks import automatic_cost, classes, speed
from experiments.benchmarks.automatic_cost import Spent
from experiments.benchmarks.speed import CASES, FIT, MEMORY, METHODS, PREDICT, RIGHT, Case, Measurements, Setup
from experiments.peers import PEERS, give_threads, search

OURS, XGBOOST, LIGHTGBM, CATBOOST, HIST = METHODS


def read_rows(path):
    """Read a results file without the comment above its header."""
    lines = Path(path).read_text().splitlines()
    assert lines[0].startswith("# ")
    return list(csv.DictReader(lines[1:]))


@pytest.fixture
def two_threads(monkeypatch, tmp_path):
    """A machine with two threads, and a folder for results."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # The programs take it away; this puts it back.
    for module in (speed, automatic_cost, classes):
        monkeypatch.setattr(module, "THREADS", 2)
    monkeypatch.chdir(tmp_path)


# Which threads


@pytest.mark.parametrize(
    ("most", "counts"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 2, 4, 8]), (12, [1, 2, 4, 8, 12])]
)
def test_threads_double_up_to_all_of_them(most, counts):
    assert speed.list_threads(most) == counts


def test_half_of_one_thread_is_that_thread():
    assert [speed.list_all_and_half(threads) for threads in (1, 2, 5, 16)] == [[1], [1, 2], [2, 5], [8, 16]]


def test_some_methods_are_timed_on_every_number_of_threads_and_others_on_all(monkeypatch):
    monkeypatch.setattr(speed, "THREADS", 4)
    counts = {method: [] for method in METHODS}
    for method, threads in speed.list_setups(CASES[-1], METHODS):
        counts[method].append(threads)
    each = [1, 2, 4]
    assert counts == {OURS: each, XGBOOST: each, LIGHTGBM: each, CATBOOST: [4], HIST: [4]}


def test_peers_need_no_single_thread_for_a_million_rows_where_there_are_many(monkeypatch):
    monkeypatch.setattr(speed, "THREADS", 8)
    few, many = (set(speed.list_setups(case, METHODS)) for case in CASES[-2:])
    assert few - many == {Setup(XGBOOST, 1), Setup(LIGHTGBM, 1)}
    assert many < few


def test_bars_are_the_same_for_all_cases_on_many_threads():
    assert [case.find_bar(7) for case in CASES] == [0.3, 0.35, 0.35, 0.4, 0.45]
    assert {case.find_bar(8) for case in CASES} == {0.5}


def test_the_model_has_the_threads_of_its_setup():
    assert speed.make_model(OURS, 5, 2, threads=3).n_jobs == 3
    assert speed.make_model(OURS, 5, 2).n_jobs == speed.THREADS


# What the times say


def test_each_method_is_compared_on_the_threads_that_suit_it_best():
    fits = {Setup(OURS, 1): 3.0, Setup(OURS, 2): 2.0, Setup(XGBOOST, 1): 4.0, Setup(XGBOOST, 2): 9.0, Setup(HIST, 2): 8}
    assert speed.find_best_setups(fits) == {OURS: Setup(OURS, 2), XGBOOST: Setup(XGBOOST, 1), HIST: Setup(HIST, 2)}
    assert speed.find_ratio(fits) == 0.5
    words = "our fit / fastest peer = 0.50 (untwist on 2 threads, XGBoost on 1 thread)"
    assert speed.describe_ratio(fits) == words
    assert speed.describe_ratio(fits, 0.5) == f"{words}, bar 0.5: met"
    assert speed.describe_ratio(fits, 0.45) == f"{words}, bar 0.45: missed"


def test_a_ratio_needs_both():
    for alone in ({}, {Setup(OURS, 1): 1.0}, {Setup(XGBOOST, 1): 1.0}):
        assert math.isnan(speed.find_ratio(alone))
        assert speed.describe_ratio(alone, 0.5).endswith("one of them is missing")


def test_threads_that_slow_our_fit_down_are_named():
    fits = {Setup(OURS, threads): seconds for threads, seconds in [(8, 1.5), (1, 2.0), (2, 1.0), (4, 1.04)]}
    fits |= {Setup(XGBOOST, 1): 1.0, Setup(XGBOOST, 2): 9.0}
    words = "our fit with more threads: on 8 threads it takes 1.50 times as long as on 2"
    assert speed.describe_slowdowns(fits) == words
    fits[Setup(OURS, 4)] = 1.06
    assert "on 4 threads it takes 1.06 times as long as on 2, on 8 threads" in speed.describe_slowdowns(fits)


def test_a_fit_that_no_thread_slows_down():
    for fits in ({}, {Setup(OURS, 1): 1.0}, {Setup(OURS, 1): 1.0, Setup(OURS, 2): 1.04}):
        assert speed.describe_slowdowns(fits) == "our fit with more threads: nowhere more than 5 % slower"


def test_the_best_turn_counts():
    turns = {Setup(OURS, 1): [{FIT: 3.0}, {FIT: 2.0}], Setup(OURS, 2): [{FIT: 1.0, RIGHT: 90.0}]}
    assert speed.keep_best(turns) == {
        FIT: {Setup(OURS, 1): 2.0, Setup(OURS, 2): 1.0},
        RIGHT: {Setup(OURS, 2): 90.0},
    }


def test_a_method_that_fails_is_named_and_the_others_go_on(capsys):
    def fail():
        raise ValueError("no such thing")

    given = speed.take_turns("case", {Setup(OURS, 1): lambda: 1, Setup(XGBOOST, 2): fail}, turns=2)
    assert given == {Setup(OURS, 1): [1, 1]}
    assert capsys.readouterr().out == "case: XGBoost on 2 threads failed with ValueError: no such thing\n"


def test_tables_have_a_line_per_method_and_a_column_per_number_of_threads(tmp_path, capsys):
    fits = {Setup(OURS, 1): 2.0, Setup(OURS, 2): 1.0, Setup(XGBOOST, 1): 4.0, Setup(XGBOOST, 2): 5.0, Setup(HIST, 2): 8}
    with Measurements(tmp_path / "speed.csv", "here") as results:
        results.add("case", FIT, fits)
        results.add("case", MEMORY, {Setup(OURS, 2): 30.0, Setup(XGBOOST, 2): 20.0})
    results.show("case", "best of 1", [OURS, XGBOOST, HIST])
    _, title, _, header, *lines = capsys.readouterr().out.splitlines()
    assert title == "case (best of 1)"
    assert header.split("  ")[-3:] == ["fit on 1 thread, s", "fit on 2 threads, s", "memory of a fit, MB"]
    assert [line.split() for line in lines] == [
        [OURS, "2.000", "1.000", "30"],
        [XGBOOST, "4.000", "5.000", "20"],
        [HIST, "-", "8.000", "-"],
    ]
    assert results.make_table([OURS, XGBOOST, HIST]).lines == [
        ["fit, s (case)", "**1.000**", "4.000", "8.000", "0.25"],
        ["memory of a fit, MB (case)", "30", "**20**", "-", "1.50"],
    ]
    rows = read_rows(tmp_path / "speed.csv")
    assert list(rows[0]) == ["case", "method", "threads", "quantity", "value", "unit"]
    assert [(row["method"], row["threads"]) for row in rows[:5]] == [(name, str(threads)) for name, threads in fits]


# The default fit


def test_the_peer_of_the_default_has_all_threads_or_half_of_them():
    few = automatic_cost.list_setups(1_000, 4)
    assert few == [("default", 4), ("boosted", 4), ("xgboost", 2), ("xgboost", 4)]
    assert automatic_cost.list_setups(1_000_000, 4) == [("default", 4), ("boosted", 4), ("xgboost", 4)]
    assert automatic_cost.list_setups(1_000_000, 16)[-2:] == [("xgboost", 8), ("xgboost", 16)]
    assert automatic_cost.list_setups(1_000, 1)[-1] == ("xgboost", 1)


def test_the_default_is_compared_with_the_better_time_of_its_peer():
    best = {
        Setup("default", 2): Spent(3.0, 0.1, 0.9),
        Setup("xgboost", 1): Spent(4.0, 0.3, 0.8),
        Setup("xgboost", 2): Spent(5.0, 0.2, 0.8),
    }
    table = automatic_cost.make_table(1_000, 3, best, 500)
    assert table.lines[0] == ["default on 2 threads", "3.000", "0.75", "0.10", "90.0"]
    assert [line[2] for line in table.lines] == ["0.75", "1.00", "1.25"]
    assert automatic_cost.describe_ratio(best).endswith("= 0.75 (XGBoost on 1 thread)")
    del best[Setup("xgboost", 1)], best[Setup("xgboost", 2)]
    assert automatic_cost.make_table(1_000, 3, best, 500).lines[0][2] == "-"
    assert automatic_cost.describe_ratio(best).endswith("one of them is missing")


@pytest.mark.slow
def test_the_search_of_the_peer_uses_its_threads():
    pytest.importorskip("xgboost")
    X, y = speed.draw_data(200, 6, real=True)
    for threads in (1, 2):
        model, settings = search(give_threads(PEERS["xgboost"], threads), X, y, seed=0)
        assert (settings["n_jobs"], model.model_.n_jobs) == (threads, threads)


# Several classes


def test_peers_have_half_of_the_threads_too():
    setups = classes.list_setups([OURS, XGBOOST], 4)
    assert setups == [(OURS, 4), (XGBOOST, 2), (XGBOOST, 4)]
    assert classes.list_setups([OURS, XGBOOST], 1) == [(OURS, 1), (XGBOOST, 1)]


def test_peers_take_several_classes_by_their_softmax():
    X, y = speed.draw_data(90, 6, real=True)
    y = (y + (X[:, 1] > 0)).astype(int)
    for method, objective in ((XGBOOST, "multi:softprob"), (LIGHTGBM, "multiclass")):
        pytest.importorskip(method.lower())
        model = speed.make_model(method, 2, 2, threads=1).fit(X, y)
        assert getattr(model, "objective_", model.objective) == objective


# From end to end


@pytest.mark.parametrize("program", [automatic_cost, classes])
def test_no_threads_are_refused(program, capsys):
    with pytest.raises(SystemExit):
        program.main(["--threads", "0"])
    assert "--threads must be at least 1, got 0" in capsys.readouterr().err


@pytest.mark.slow
def test_fits_are_compared_on_every_number_of_threads(two_threads, monkeypatch, capsys):
    draw = speed.draw_data
    monkeypatch.setattr(speed, "draw_data", lambda rows, *rest, **more: draw(min(rows, 300), *rest, **more))
    monkeypatch.setattr(speed, "QUICK", [Case(300, 9, 5, 2, turns=2)])
    speed.main(["--quick"])
    out = capsys.readouterr().out
    assert "fit on 1 thread, s  fit on 2 threads, s  predict, s  right on clean rows, %" in out
    assert "our fit / fastest peer = " in out
    assert "our fit with more threads: " in out
    assert "Our fit grows with columns^" in out
    rows = read_rows("results/speed_quick.csv")
    counts = {
        quantity: {Setup(row["method"], int(row["threads"])) for row in rows if row["quantity"] == quantity}
        for quantity in (FIT, PREDICT, RIGHT)
    }
    assert {Setup(OURS, 1), Setup(OURS, 2), Setup(HIST, 2)} <= counts[FIT]
    assert counts[PREDICT] == counts[RIGHT] == {setup for setup in counts[FIT] if setup.threads == 2}
    for method in (XGBOOST, LIGHTGBM):
        assert (Setup(method, 1) in counts[FIT]) == (Setup(method, 2) in counts[FIT])
    assert all(float(row["value"]) > 0 for row in rows if row["quantity"] in (FIT, PREDICT, RIGHT))


@pytest.mark.slow
def test_huge_tables_are_fitted_by_the_fastest_peers_too(two_threads, monkeypatch, capsys):
    pytest.importorskip("xgboost")
    pytest.importorskip("lightgbm")
    assert (speed.HUGE.rows, speed.HUGE.rounds) == (10_000_000, 30)
    monkeypatch.setattr(speed, "HUGE", Case(300, 9, 5, 2))
    speed.main(["--huge"])
    assert "our fit / fastest peer = " in capsys.readouterr().out
    rows = read_rows("results/speed_huge.csv")
    expected = [(OURS, "2"), (XGBOOST, "2"), (LIGHTGBM, "2")]
    assert [(row["method"], row["threads"]) for row in rows if row["quantity"] == MEMORY] == expected


@pytest.mark.slow
def test_the_default_is_timed_beside_a_search(two_threads, monkeypatch, capsys):
    pytest.importorskip("xgboost")
    monkeypatch.setattr(automatic_cost, "TEST_ROWS", 400)
    monkeypatch.setattr(automatic_cost, "PREDICTED_ROWS", 1000)
    automatic_cost.main(["--quick", "--rows", "200"])
    out = capsys.readouterr().out
    assert "200 rows (best of 2)" in out
    assert "predict 100 rows, s" in out
    assert "our default fit / XGBoost's search with refit = " in out
    rows = read_rows("results/automatic_cost_quick.csv")
    assert list(rows[0]) == automatic_cost.COLUMNS
    expected = [("default", "2"), ("boosted", "2"), ("xgboost", "1"), ("xgboost", "2")]
    assert [(row["method"], row["threads"]) for row in rows] == expected
    assert all(float(row["accuracy"]) > 0.6 for row in rows)


@pytest.mark.slow
def test_several_classes_are_timed_beside_peers(two_threads, monkeypatch, capsys):
    pytest.importorskip("xgboost")
    pytest.importorskip("lightgbm")
    assert (list(classes.TURNS), classes.CASE[:4]) == ([2, 10, 50], (5_000, 20, 100, 6))
    monkeypatch.setattr(classes, "CASE", Case(400, 20, 3, 3))
    monkeypatch.setattr(classes, "TURNS", {2: 2, 4: 1})
    classes.main([])
    out = capsys.readouterr().out
    assert "4 classes, 400 x 20, 3 rounds, depth 3 (best of 1)" in out
    assert out.count("our fit / fastest peer = ") == 2
    rows = [row for row in read_rows("results/classes.csv") if row["case"].startswith("4 classes")]
    fits = [(row["method"], row["threads"]) for row in rows if row["quantity"] == FIT]
    assert fits == [(OURS, "2"), (XGBOOST, "1"), (XGBOOST, "2"), (LIGHTGBM, "1"), (LIGHTGBM, "2")]
    assert np.min([float(row["value"]) for row in rows if row["quantity"] == RIGHT]) > 50
