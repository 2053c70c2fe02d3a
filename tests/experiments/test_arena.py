"""The arena: what is drawn, what is recorded, and what the standings make of it."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, rankdata, wilcoxon
from threadpoolctl import threadpool_limits

from experiments import datasets, protocol, results, runner
from experiments.arena import judging, program
from experiments.arena.judging import judge, list_keys
from experiments.arena.methods import METHODS, OURS, PEER, TIMED, Method
from experiments.arena.render import _find_cliques, draw_ranks, render
from experiments.arena.rows import ArenaKey, ArenaRow
from experiments.arena.standings import Standings, critical_difference, holm, make_tables, signed_rank
from untwist import PILBoostClassifier, progress
from untwist.commands import main as cli

pd = pytest.importorskip("pandas", reason="the arena works on pandas tables")


class Constant:
    """Says the share of ones it was trained with."""

    def __init__(self, X, y):
        self.p = y.mean()

    def predict_proba(self, X):
        return np.tile([1 - self.p, self.p], (len(X), 1))


@pytest.fixture
def calls(monkeypatch):
    """Two methods for the arena, `one` and `two`, and the training data they were given."""
    seen = []

    def fit(name, X, y, seed):
        if len(X) > 60:  # not the warm-up
            seen.append((name, X, y))
        return Constant(X, y)

    for name in ("one", "two"):
        monkeypatch.setitem(METHODS, name, Method(lambda X, y, seed, name=name: fit(name, X, y, seed), name))
    judging._warm_up.cache_clear()
    return seen


def measure(wanted, path, again=(), processes=1):
    jobs = {key: key for key in wanted}
    return runner.measure(jobs, judge, path, ArenaRow, processes=processes, again=lambda row: row.method in again)


def run(*arguments):
    return cli.run_program(program.NAME, program.main, list(arguments))


def table(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"key": rng.normal(size=rows), "noise": rng.normal(size=rows), "text": rng.choice(list("abc"), rows)}
    )
    X["text"] = X["text"].astype("category")
    y = (X["key"] + (X["text"] == "a") > 0).to_numpy().astype(np.int64)
    return datasets.Table("made", X, y, y_noisy=np.where(rng.random(rows) < 0.2, 1 - y, y))


# What is drawn


def test_all_methods_meet_the_same_split_and_twist(calls):
    for twist in ("symmetric-0.3", "features", "insider"):
        calls.clear()
        for method in ("one", "two"):
            judging._split_once.cache_clear()  # as in another process
            judge(ArenaKey("cancer", twist, 1, 200, method))
        (_, X_one, y_one), (_, X_two, y_two) = calls
        pd.testing.assert_frame_equal(X_one, X_two)
        np.testing.assert_array_equal(y_one, y_two)


def test_draws_do_not_depend_on_the_process():
    assert protocol.make_rng("cancer", "none", 0).integers(1000) == 635  # with Python's hash() it would change


def test_a_split_is_stratified_clean_in_its_test_part_and_the_same_for_all_twists():
    made = table()
    plain, noisy, other = (
        protocol.split(made, *one) for one in [("none", 0, 200), ("class-0.4-0.1", 0, 200), ("none", 1, 200)]
    )
    assert (len(plain.X), len(plain.X_test)) == (200, 120)
    assert abs(plain.y.mean() - made.y.mean()) < 0.01
    pd.testing.assert_frame_equal(plain.X, noisy.X)
    np.testing.assert_array_equal(plain.y_test, noisy.y_test)
    truth = plain.X_test["c0"] + (plain.X_test["c2"] == "a") > 0
    np.testing.assert_array_equal(noisy.y_test, truth)
    assert not plain.X.equals(other.X)
    assert not set(plain.X["c0"]) & set(plain.X_test["c0"])


def test_twists_do_what_they_say():
    made = table(20_000)
    X, y = made.X.copy(), made.y
    rng = np.random.default_rng(0)
    for rate in (0.1, 0.2, 0.3, 0.4):
        assert np.mean(protocol.apply_twist(f"symmetric-{rate}", X, y, rng)[1] != y) == rate
    flipped = protocol.apply_twist("class-0.1-0.4", X, y, rng)[1] != y
    assert flipped[y == 0].mean() == pytest.approx(0.1, abs=0.01)
    assert flipped[y == 1].mean() == pytest.approx(0.4, abs=0.015)
    assert (protocol.apply_twist("class-0.4-0.1", X, y, rng)[1] != y)[y == 0].mean() == pytest.approx(0.4, abs=0.015)
    noisy, labels = protocol.apply_twist("features", X, y, rng)
    changed = noisy[["key", "noise"]].ne(
        X[["key", "noise"]]
    )  # of reals, next to no draw gives the value that was there
    assert changed.any(axis=1).mean() == pytest.approx(0.3 * (1 - 0.7**2), abs=0.01)
    assert changed["key"].mean() == pytest.approx(0.09, abs=0.01)
    assert set(noisy["key"]) <= set(X["key"])
    assert noisy["text"].dtype == X["text"].dtype
    np.testing.assert_array_equal(labels, y)
    pd.testing.assert_frame_equal(X, made.X)  # the arguments stay as they are


def test_the_insider_hits_the_two_most_informative_columns():
    made = table(20_000)
    y = made.y
    X = made.X.assign(key=y + np.random.default_rng(1).normal(size=y.size), text=np.where(y, "b", "a"))
    X["text"] = X["text"].astype(made.X["text"].dtype)
    noisy, _ = protocol.apply_twist("insider", X, y, np.random.default_rng(0))
    pd.testing.assert_series_equal(noisy["noise"], X["noise"])
    assert (noisy["key"] - X["key"]).std() == pytest.approx(2 * X["key"].std(), rel=0.03)
    moved = noisy["text"] != X["text"]
    assert moved.mean() == pytest.approx(0.5, abs=0.02)
    assert set(zip(X["text"][moved], noisy["text"][moved], strict=True)) == {("a", "b"), ("b", "a")}


def test_noise_of_a_source_near_the_boundary_and_over_time():
    made = table(4_000)
    clean = protocol.split(made, "none", 0, 2_000)
    part = protocol.split(made, "source-0.45", 0, 2_000)
    shares = pd.Series(part.y != clean.y).groupby(part.X["source"].to_numpy()).mean().sort_values()
    assert len(shares) == 8
    assert shares.iloc[-1] == pytest.approx(0.45, abs=0.12)  # of about 250 rows
    assert shares.iloc[-2] < 0.13
    assert set(part.X_test["source"]) == set(part.X["source"])
    assert part.X_test["source"].dtype == part.X["source"].dtype
    pd.testing.assert_frame_equal(part.X.drop(columns="source"), clean.X)
    pd.testing.assert_frame_equal(part.X_test.drop(columns="source"), clean.X_test)
    part = protocol.split(made, "time-0.2", 0, 2_000)
    wrong = part.y != clean.y
    assert wrong.mean() == pytest.approx(0.2, abs=0.04)
    assert wrong[part.X["time"] > 0.7].mean() > 4 * wrong[part.X["time"] < 0.3].mean()
    assert part.X_test["time"].between(0, 1).all()
    part = protocol.split(made, "boundary-0.2", 0, 2_000)
    wrong = part.y != clean.y
    assert wrong.mean() == pytest.approx(0.2, abs=0.04)
    assert list(part.X) == list(clean.X)
    again = protocol.split(made, "boundary-0.2", 0, 2_000)
    np.testing.assert_array_equal(part.y, again.y)


def test_ours_is_told_which_column_is_the_source():
    part = protocol.split(table(600), "source-0.45", 0, 400)
    model = METHODS["untwist"].fit(part.X, part.y, 0)
    assert model.model.sources_.names.tolist() == sorted(set(part.X["source"]))
    other = part.X_test.assign(source=part.X_test["source"].to_numpy()[::-1])
    np.testing.assert_array_equal(model.predict_proba(part.X_test), model.predict_proba(other))
    assert np.mean(model.predict(part.X_test) == part.y_test) > 0.7
    assert isinstance(METHODS["untwist"].fit(part.X.drop(columns="source"), part.y, 0), PILBoostClassifier)


def test_real_noise_comes_from_the_table():
    made = table()
    assert protocol.applies("real", made)
    assert not protocol.applies("real", replace(made, y_noisy=None))
    assert not protocol.applies("none", replace(made, y=None))
    assert 0.1 < np.mean(protocol.split(made, "real", 0, 280).y != protocol.split(made, "none", 0, 280).y) < 0.3


# What is recorded


def test_a_rerun_runs_what_is_missing_only(calls, tmp_path):
    path = tmp_path / "deep" / "rows.csv"
    wanted = list_keys(["cancer"], ["none", "symmetric-0.2", "real"], ["one", "two"], 2, 200, None)
    assert len(wanted) == 2 * 2 * 2  # cancer has no real noisy labels
    rows = measure(wanted[:3], path)
    assert [name for name, *_ in calls] == ["one", "two", "one"]
    text = path.read_text()
    path.write_text(text[:-25])  # the last line is torn
    assert len(results.read(path, ArenaRow)) == 2
    assert {row.key for row in measure(wanted, path)} == set(wanted)
    assert len(calls) == 3 + 6
    assert path.read_text().startswith(text[: text.rstrip().rfind("\n")])
    again = measure(wanted, path)
    assert len(calls) == 9
    assert [row.accuracy for row in again[:2]] == [row.accuracy for row in rows[:2]]
    measure(wanted, path, again={"two"})
    assert [name for name, *_ in calls[9:]] == ["two"] * 4
    assert len(results.read(path, ArenaRow)) == 8


def test_a_method_that_raises_is_recorded_and_tried_again(calls, tmp_path, monkeypatch, capsys):
    def fit(X, y, seed):
        raise RuntimeError("no\nluck, today")

    monkeypatch.setitem(METHODS, "two", Method(fit, "two"))
    wanted = list_keys(["cancer"], ["symmetric-0.2"], ["one", "two"], 1, 200, None)
    path = tmp_path / "rows.csv"
    one, two = measure(wanted, path)
    assert (one.error, two.error) == ("", "RuntimeError: no luck, today")
    assert two.accuracy == 0.5
    assert "failed: cancer, symmetric-0.2, 0, 200, two: RuntimeError" in capsys.readouterr().err
    assert "no luck, today" in str(make_tables(Standings([one, two]))[-1])
    monkeypatch.setitem(METHODS, "two", METHODS["one"])
    assert not any(row.error for row in measure(wanted, path))


def test_a_probability_that_is_none_is_an_error(calls, monkeypatch):
    monkeypatch.setattr(Constant, "predict_proba", lambda self, X: np.full((len(X), 2), np.nan))
    assert "no probability" in judge(ArenaKey("cancer", "none", 0, 200, "one")).error


@pytest.mark.slow
def test_processes_give_the_same_rows(tmp_path):
    wanted = list_keys(["cancer"], ["symmetric-0.2"], ["pilboost-paper", "adaboost"], 1, 60, None)
    here = measure(wanted, tmp_path / "here.csv", processes=1)
    there = measure(wanted, tmp_path / "there.csv", processes=2)
    assert [replace(row, seconds=0) for row in here] == sorted(
        (replace(row, seconds=0) for row in there), key=lambda row: row.method, reverse=True
    )
    assert not any(row.error for row in here)


def test_the_metrics_are_those_of_the_clean_test_rows(calls):
    row = judge(ArenaKey("cancer", "symmetric-0.1", 0, 300, "one"))
    _, y, _, y_test = protocol.split(datasets.load("cancer"), "symmetric-0.1", 0, 300)
    p = y.mean()
    assert p > 0.5
    assert row.accuracy == pytest.approx(y_test.mean())
    assert row.auc == 0.5
    assert row.log_loss == pytest.approx(-y_test.mean() * np.log(p) - (1 - y_test.mean()) * np.log(1 - p))
    assert row.bins.sum(axis=0) == pytest.approx([y_test.size, p * y_test.size, y_test.sum()], rel=1e-5)


def test_a_foreign_or_damaged_file_is_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="no results file of this version"):
        results.read(path, ArenaRow)
    path.write_text(",".join(results.list_columns(ArenaRow)) + "\ncancer,none,zero\n")
    with pytest.raises(ValueError, match="line 2 is no row of results"):
        results.read(path, ArenaRow)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_from_a_table_with_categories_and_gaps(method):
    if not METHODS[method].version:
        pytest.skip(f"{METHODS[method].packages[0]} is not installed")
    made = table(600)
    X = made.X.mask(np.random.default_rng(2).random(made.X.shape) < 0.02).astype({"text": made.X["text"].dtype})
    part = protocol.split(replace(made, X=X), "symmetric-0.1", 0, 400)
    with warnings.catch_warnings(), threadpool_limits(1):  # a peer's warnings are its own
        warnings.simplefilter("ignore")
        model = METHODS[method].fit(part.X, part.y, 0)
    p = model.predict_proba(part.X_test)
    assert p.shape == (180, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    assert np.mean((p[:, 1] > 0.5) == part.y_test) > 0.8


# Several classes


def table_of_three(rows=400):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, rows)
    X = pd.DataFrame({"key": y + 0.3 * rng.normal(size=rows), "text": rng.choice(list("abc"), rows)})
    return datasets.Table("three", X.astype({"text": "category"}), y.astype(np.int64), classes=("a", "b", "c"))


@pytest.fixture
def several_folder(tmp_path, monkeypatch):
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    (tmp_path / "multiclass").mkdir()
    made = table_of_three()
    made.X.assign(label=made.y).to_csv(tmp_path / "multiclass" / "three.csv", index=False)
    judging._load_once.cache_clear()
    judging._split_once.cache_clear()
    yield tmp_path
    judging._load_once.cache_clear()
    judging._split_once.cache_clear()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_several_classes(method):
    if not METHODS[method].version:
        pytest.skip(f"{METHODS[method].packages[0]} is not installed")
    part = protocol.split(table_of_three(), "pair-0.1", 0, 280)
    with warnings.catch_warnings(), threadpool_limits(1):  # a peer's warnings are its own
        warnings.simplefilter("ignore")
        _, p, label = judging._fit_and_predict(METHODS[method], part, part.y.copy(), 0)
    assert p.shape == (120, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    assert np.mean(label == part.y_test) > 0.75


def test_the_metrics_of_several_classes_are_the_obvious_ones(several_folder, monkeypatch):
    rng = np.random.default_rng(0)

    class Guess:
        def predict_proba(self, X):
            self.p = rng.dirichlet(np.ones(3), len(X))
            return self.p

    guess = Guess()
    monkeypatch.setitem(METHODS, "one", Method(lambda X, y, seed: guess, "one"))
    judging._warm_up.cache_clear()
    monkeypatch.setattr(judging, "_warm_up", lambda method: None)
    row = judge(ArenaKey("three", "pair-0.3", 0, 200, "one"), str(several_folder), several=True)
    assert row.error == ""
    y = protocol.split(datasets.load_several("three", several_folder), "pair-0.3", 0, 200).y_test
    p = guess.p
    assert row.accuracy == np.mean(p.argmax(axis=1) == y)
    assert row.log_loss == pytest.approx(np.mean([-np.log(p[i, label]) for i, label in enumerate(y)]), rel=1e-4)
    brier = [sum((p[i, one] - (one == label)) ** 2 for one in range(3)) / 2 for i, label in enumerate(y)]
    assert row.brier == pytest.approx(np.mean(brier))
    auc = [
        np.mean([(p[i, one] > p[j, one]) for i in np.flatnonzero(y == one) for j in np.flatnonzero(y != one)])
        for one in range(3)
    ]
    assert row.auc == pytest.approx(np.mean(auc))
    assert row.bins.sum(axis=0) == pytest.approx([3 * len(y), len(y), len(y)], rel=1e-4)


def test_of_two_classes_both_ways_to_measure_agree():
    p = np.random.default_rng(0).random(50)
    y = (np.arange(50) % 3 == 0).astype(np.int64)
    posterior = np.column_stack([1 - p, p])
    empty = ArenaRow("a", "none", 0, 9, "one")
    two, several = judging._measure_two(empty, posterior, y), judging._measure_several(empty, posterior, y)
    for metric in ("auc", "log_loss", "brier"):
        assert getattr(two, metric) == pytest.approx(getattr(several, metric), rel=1e-5)


def test_a_failure_among_several_classes_is_a_die(several_folder, monkeypatch):
    def fail(X, y, seed):
        raise RuntimeError("no luck")

    monkeypatch.setitem(METHODS, "one", Method(fail, "one"))
    monkeypatch.setattr(judging, "_warm_up", lambda method: None)
    row = judge(ArenaKey("three", "none", 0, 200, "one"), str(several_folder), several=True)
    assert (row.accuracy, row.log_loss, row.brier) == pytest.approx((1 / 3, np.log(3), 1 / 3))
    coin = ArenaRow("a", "none", 0, 9, "one")
    two = judging._make_failed_row(coin.key, 2, "x")
    assert replace(two, error="") == coin


def test_the_command_takes_several_classes(calls, several_folder, tmp_path, capsys, monkeypatch):
    class Shares:
        def __init__(self, y):
            self.p = np.bincount(y) / len(y)

        def predict_proba(self, X):
            return np.tile(self.p, (len(X), 1))

    for name in ("one", "two"):
        monkeypatch.setitem(METHODS, name, Method(lambda X, y, seed: Shares(y), name))
    out = tmp_path / "rows.csv"
    options = ["--methods", "one", "two", "--jobs", "1", "--out", str(out)]
    assert run("--several", "--data", str(several_folder), *options, "--seeds", "1") == 0
    rows = results.read(out, ArenaRow)
    assert not any(row.error for row in rows)
    assert {row.twist for row in rows} == set(protocol.TWISTS) - {"real", *protocol.TWO_CLASS_TWISTS}
    assert {row.data for row in rows} == {"three"}
    assert "Accuracy by twist" in capsys.readouterr().out
    assert run("--several", *options) == 1
    assert "no data sets of several classes" in capsys.readouterr().err


# What the verdict makes of it


def made_rows(accuracy, methods=None, twist="symmetric-0.2"):
    """Rows from a table: runs x methods."""
    methods = methods or [OURS, PEER, "adaboost", "cleanlab"][: len(accuracy[0])]
    return [
        ArenaRow(f"set{i}", twist, 0, 100, method, accuracy=value, reliability="/".join("111") + " 0/0/0" * 9)
        for i, line in enumerate(accuracy)
        for method, value in zip(methods, line, strict=True)
    ]


def test_ranks_are_those_of_the_obvious_version():
    accuracy = np.random.default_rng(0).integers(50, 60, size=(12, 4)) / 64  # with ties
    standings = Standings(made_rows(accuracy.tolist()))
    obvious = np.zeros(4)
    for line in accuracy:
        for j in range(4):
            obvious[j] += 1 + np.sum(line > line[j]) + (np.sum(line == line[j]) - 1) / 2
    assert standings.ranks == pytest.approx(dict(zip([OURS, PEER, "adaboost", "cleanlab"], obvious / 12, strict=True)))
    assert list(standings.ranks.values()) == sorted(standings.ranks.values())


def test_cells_average_over_seeds_and_leave_unfinished_runs_out():
    rows = made_rows([[0.9, 0.6]]) + [replace(row, seed=1, accuracy=0.5) for row in made_rows([[0.9, 0.6]])]
    unfinished = replace(rows[0], seed=2, accuracy=0.0)
    standings = Standings([*rows, unfinished])
    assert standings.cells == [("set0", "symmetric-0.2")]
    assert standings.incomplete == 1
    np.testing.assert_allclose(standings.tables["accuracy"], [[0.7, 0.55]])
    with pytest.raises(ValueError, match="no run yet"):
        Standings([rows[0], replace(rows[1], seed=5)])


def test_the_signed_rank_test_is_scipys_and_has_an_answer_for_ties():
    lead = np.random.default_rng(0).normal(0.3, 1, 20)
    assert signed_rank(lead) == pytest.approx(wilcoxon(lead).pvalue)
    assert signed_rank(np.zeros(7)) == 1
    assert signed_rank(np.full(7, 1e-17)) == 1
    exact = [
        sum(r * s for r, s in zip(range(1, 6), signs, strict=True)) for signs in itertools.product([0, 1], repeat=5)
    ]
    assert signed_rank(np.arange(1.0, 6.0)) == pytest.approx(2 * np.mean(np.array(exact) >= 15))


def test_holm_is_the_step_down_procedure():
    rng = np.random.default_rng(0)
    for p in rng.random((20, 5)) ** 3:
        for level in (0.01, 0.05, 0.3):
            rejected = set()
            for step, i in enumerate(np.argsort(p)):
                if p[i] > level / (5 - step):
                    break
                rejected.add(i)
            assert set(np.flatnonzero(holm(p) <= level)) == rejected
    assert holm([0.9, 0.9]).tolist() == [1, 1]


@pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (5, 2.728), (10, 3.164)])  # Demšar 2006, table 5a
def test_the_critical_difference_is_the_published_one(methods, q):
    assert critical_difference(methods, 30) == pytest.approx(q * np.sqrt(methods * (methods + 1) / 180), abs=5e-4)


def test_two_methods_rank_as_friedman_has_it():
    accuracy = np.random.default_rng(3).random((9, 3))
    ranks = rankdata(-accuracy, axis=1).mean(axis=0)
    statistic = 12 * 9 / (3 * 4) * np.sum((ranks - 2) ** 2)
    assert friedmanchisquare(*accuracy.T).statistic == pytest.approx(statistic)
    assert sorted(Standings(made_rows(accuracy.tolist())).ranks.values()) == pytest.approx(sorted(ranks))


def test_losing_cases_come_first_and_the_untwisted_apart():
    rows = made_rows([[0.9, 0.8], [0.70, 0.73], [0.76, 0.78]]) + made_rows([[0.80, 0.804]], twist="none")
    losses, aims = make_tables(Standings(rows))[:2]
    assert losses.title == "Losing cases: 1 of 4"
    assert losses.lines == [["set1", "symmetric-0.2", "0.700", "0.730", "-0.030"]]
    found = {aim: (what, met) for aim, what, met in aims.lines}
    assert found["untwisted: within .005 of the best peer"] == (f"-0.0040 to {PEER}", "met")
    assert found[f"nowhere more than 0.02 below {PEER}"] == ("-0.030 at worst", "missed")


@pytest.mark.parametrize(
    ("ratio", "verdicts"), [(1.0, ["met", "met"]), (2.19, ["missed", "met"]), (3.5, ["missed"] * 2)]
)
def test_time_has_an_aim_and_a_limit(ratio, verdicts):
    ours, peer = made_rows([[0.9, 0.8]])
    rows = [replace(ours, seconds=ratio), peer, replace(peer, method=TIMED, seconds=1.0)]
    *_, aim, limit = make_tables(Standings(rows))[1].lines
    assert aim == [f"as fast as {TIMED}", f"{ratio:.2f} times", verdicts[0]]
    assert limit == [f"at most 3 times as slow as {TIMED}", f"{ratio:.2f} times", verdicts[1]]


def test_the_calibration_error_weighs_bins_by_rows():
    bins = "3/0.3/0 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0 1/0.9/0"
    rows = [replace(row, reliability=bins) for row in made_rows([[0.9, 0.8]])]
    assert Standings(rows).measure_calibration(OURS) == pytest.approx((0.3 + 0.9) / 4)


def test_bars_join_what_is_not_told_apart():
    assert _find_cliques([1.0, 1.5, 3.0, 3.2, 5.0], cd=1.6) == [(0, 1), (1, 2), (2, 3)]
    assert _find_cliques([1.0, 2.0, 3.0], cd=5.0) == [(0, 2)]
    assert _find_cliques([1.0, 3.0], cd=1.0) == []


def test_the_page_is_self_contained_and_escapes_names():
    rows = [replace(row, data="<script>", error="<b>") for row in made_rows([[0.9, 0.95, 0.7]])]
    text = render(Standings(rows), "what & why")
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    assert "<b>" not in text
    assert "what &amp; why" in text
    assert "http:" not in text
    assert "https:" not in text
    assert text.index("Losing cases") < text.index("Mean ranks")
    assert "&lt;i&gt; 1.00" in draw_ranks({"<i>": 1.0, "b": 2.0}, cd=0.5)


# The command line


def test_the_command_runs_and_shows(calls, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(progress, "LOG_INTERVAL", 0.0)
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    out = tmp_path / "rows.csv"
    options = [
        "--sets",
        "cancer",
        "--twists",
        "none",
        "features",
        "--methods",
        "one",
        "two",
        "--seeds",
        "2",
        "--rows",
        "99",
    ]
    assert run(*options, "--jobs", "1", "--out", str(out)) == 0
    output = capsys.readouterr()
    assert "1 data sets, 2 twists, 2 methods, 2 splits" in output.out
    assert "Accuracy by twist" in output.out
    assert "left" in output.err
    assert "left" not in output.out
    assert out.with_suffix(".html").read_text().startswith("<!doctype html>")
    assert len(results.read(out, ArenaRow)) == 8


def test_bad_requests_get_one_sentence_and_a_status(calls, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    monkeypatch.chdir(tmp_path)
    for options, status, words in [
        (["--data", "nowhere"], 1, "data folder nowhere does not exist"),
        (["--sets", "cancer", "--twists", "real"], 1, "none of these data sets has the labels"),
        (["--sets", "x"], 2, "unknown data set 'x': choose from cancer"),
        (["--methods", "x"], 2, "unknown method 'x'"),
        (["--rows", "3"], 2, "--rows at least 20"),
    ]:
        try:
            got = run(*options)
        except SystemExit as stop:
            got = stop.code
        assert got == status
        assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_ctrl_c_keeps_what_is_done(calls, tmp_path, capsys, monkeypatch):
    def fit(X, y, seed):
        raise KeyboardInterrupt

    monkeypatch.setitem(METHODS, "two", Method(fit, "two"))
    out = tmp_path / "rows.csv"
    assert run("--sets", "cancer", "--methods", "one", "two", "--jobs", "1", "--out", str(out)) == 130
    assert "the same command goes on from there" in capsys.readouterr().err
    assert [row.method for row in results.read(out, ArenaRow)] == ["one"]


def test_what_is_not_installed_is_left_out_in_one_line(calls, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(METHODS, "two", Method(METHODS["one"].fit, "Two", ("no-such-package",)))
    options = ["--sets", "cancer", "--twists", "none", "--methods", "one", "two", "--seeds", "1", "--jobs", "1"]
    assert run(*options, "--out", str(tmp_path / "rows.csv")) == 0
    output = capsys.readouterr()
    assert 'Two is left out: pip install --editable ".[experiments]" brings it.' in output.err
    assert "1 methods" in output.out


@pytest.mark.parametrize("command", [[], *([name] for name in cli.COMMANDS)])
def test_every_command_answers_help(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([*command, "--help"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith(" ".join(["usage: untwist", *command]) + " ")
