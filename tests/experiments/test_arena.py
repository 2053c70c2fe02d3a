"""The arena: what is drawn, what is recorded, and what the standings make of it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import friedmanchisquare, rankdata
from threadpoolctl import threadpool_limits

from experiments import datasets, peers, protocol, results, runner
from experiments.arena import judging, program
from experiments.arena.judging import list_jobs
from experiments.arena.methods import METHODS, OURS, PEER, Method, is_peer
from experiments.arena.render import _find_cliques, draw_ranks, render, write_markdown
from experiments.arena.rows import ArenaJob, ArenaRow
from experiments.arena.standings import DRAWS, Standings, bound_mean, critical_difference, make_tables
from experiments.halves import DESIGN, JUDGING, OF_THE_PAPER, find_half
from experiments.robust_focal_loss import RobustFocalLoss
from untwist import UntwistClassifier, progress
from untwist.commands import main as cli

# Programs around the library: `make test-slow` runs their tests.
pytestmark = pytest.mark.slow

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
        seen.append((name, X, y))
        return Constant(X, y)

    for name in ("one", "two"):
        monkeypatch.setitem(METHODS, name, Method(lambda X, y, seed, name=name: fit(name, X, y, seed), name))
    return seen


def judge(data, twist, seed, max_rows, method, folder=None, several=False):
    """The row of one method."""
    (row,) = judging.judge(ArenaJob(data, twist, seed, max_rows, (method,)), folder, several)
    return row


def measure(jobs, path, again=(), **options):
    wanted = {key: job for job in jobs for key in job.keys}
    return runner.measure(wanted, judging.judge, path, ArenaRow, again=lambda row: row.method in again, **options)


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
            judge("cancer", twist, 1, 200, method)
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
    assert isinstance(METHODS["untwist"].fit(part.X.drop(columns="source"), part.y, 0), UntwistClassifier)


def test_real_noise_comes_from_the_table():
    made = table()
    assert protocol.applies("real", made)
    assert not protocol.applies("real", replace(made, y_noisy=None))
    assert not protocol.applies("none", replace(made, y=None))
    assert 0.1 < np.mean(protocol.split(made, "real", 0, 280).y != protocol.split(made, "none", 0, 280).y) < 0.3


# What is recorded


def test_a_rerun_runs_what_is_missing_only(calls, tmp_path):
    path = tmp_path / "deep" / "rows.csv"
    wanted = list_jobs(["cancer"], ["none", "symmetric-0.2", "real"], ["one", "two"], 2, 200, None)
    assert len(wanted) == 2 * 2 * 2  # cancer has no real noisy labels
    rows = measure(wanted[:3], path)
    assert [name for name, *_ in calls] == ["one", "two", "one"]
    text = path.read_text()
    path.write_text(text[:-25])  # the last line is torn
    assert len(results.read(path, ArenaRow)) == 2
    assert {row.key for row in measure(wanted, path)} == {key for job in wanted for key in job.keys}
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
    wanted = list_jobs(["cancer"], ["symmetric-0.2"], ["one", "two"], 1, 200, None)
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
    assert "no probability" in judge("cancer", "none", 0, 200, "one").error


@pytest.mark.slow
def test_processes_give_the_same_rows(tmp_path):
    wanted = list_jobs(["cancer"], ["symmetric-0.2"], ["pilboost-paper", "hist-gradient"], 1, 60, None)
    here = measure(wanted, tmp_path / "here.csv", processes=1)
    there = measure(wanted, tmp_path / "there.csv", processes=2)
    assert [replace(row, seconds=0) for row in here] == sorted(
        (replace(row, seconds=0) for row in there), key=lambda row: row.method, reverse=True
    )
    assert not any(row.error for row in here)


def test_the_metrics_are_those_of_the_clean_test_rows(calls):
    row = judge("cancer", "symmetric-0.1", 0, 300, "one")
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


@pytest.fixture
def short(monkeypatch):
    """Peers with fewer trees."""
    monkeypatch.setattr(peers, "TREES", 8)
    monkeypatch.setattr(peers, "ROUNDS", 40)


def fit_and_predict(method, part):
    if not METHODS[method].version:
        pytest.skip(f"{METHODS[method].packages[0]} is not installed")
    with warnings.catch_warnings(), threadpool_limits(1):  # a peer's warnings are its own
        warnings.simplefilter("ignore")
        model, seconds = judging.Fits(part.X, part.y, 0).fit(method)
        assert seconds > 0
        return judging.predict(model, part.X_test)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_from_a_table_with_categories_and_gaps(method, short):
    made = table(600)
    X = made.X.mask(np.random.default_rng(2).random(made.X.shape) < 0.02).astype({"text": made.X["text"].dtype})
    part = protocol.split(replace(made, X=X), "symmetric-0.1", 0, 400)
    p, label = fit_and_predict(method, part)
    assert p.shape == (180, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    assert np.mean(label == part.y_test) > 0.8


def test_methods_that_follow_another_share_its_fit(monkeypatch):
    seen = []

    def fit(X, y, seed):
        seen.append(seed)
        return Constant(X, y)

    def follow(X, y, seed, before):
        assert before.p == y.mean()
        X.iloc[:] = 0  # It harms itself alone.
        return Constant(X, 1 - y)

    monkeypatch.setitem(METHODS, "one", Method(fit, "one"))
    for name in ("two", "three"):
        monkeypatch.setitem(METHODS, name, Method(follow, name, follows="one"))
    monkeypatch.setitem(METHODS, "four", Method(lambda X, y, seed, before: 1 / 0, "four", follows="one"))
    (job,) = list_jobs(["cancer"], ["none"], ["one", "four", "two", "three"], 1, 100, None)
    one, four, two, three = judging.judge(job)
    assert seen == [0]
    assert four.error.startswith("ZeroDivisionError")
    assert (two.error, two.accuracy) == ("", three.accuracy)
    assert two.seconds >= one.seconds
    # A follower alone has its base fitted as well, and no row of it.
    (job,) = list_jobs(["cancer"], ["none"], ["two"], 1, 100, None)
    assert [row.method for row in judging.judge(job)] == ["two"]


def test_untwisting_on_top_undoes_the_noise_of_a_peer(monkeypatch):
    monkeypatch.setattr(peers, "TREES", 40)
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"key": rng.normal(size=1200)})
    clean = (X["key"] > 0).to_numpy()
    y = np.where(rng.random(1200) < 0.3, ~clean, clean).astype(np.int64)
    fits = judging.Fits(X, y, 0)
    before, after = (
        np.abs(judging.predict(fits.fit(name)[0], X)[0][:, 1] - clean).mean()
        for name in ("forest-careful", "forest+untwist")
    )
    assert before > 0.25  # It believes the labels.
    assert after < before / 2


def test_a_peer_is_chosen_by_its_own_measure():
    def fit(X, y, held_out, seed, p):
        model = Constant(X, y)
        model.p = p
        return model

    X, y = np.zeros((50, 1)), np.arange(50) % 2
    peer = peers.Peer(fit, ({"p": 0.1}, {"p": 0.5}, {"p": 0.9}), ("scikit-learn",))
    assert peers.search(peer, X, y, 0)[1] == {"p": 0.5}
    largest = replace(peer, compare=lambda y, posterior: -posterior[:, 1].mean())
    assert peers.search(largest, X, y, 0)[1] == {"p": 0.9}


@pytest.mark.parametrize("r", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 1.0])
def test_the_robust_focal_loss_has_the_derivatives_of_its_formula(r, q):
    def compute(y, margin):
        p = expit(margin if y else -margin)
        return (1 - p) ** r * ((1 - p**q) / q if q else -np.log(p))

    margin = np.linspace(-8, 8, 33)
    for y in (0, 1):
        first, second = RobustFocalLoss(r, q)(np.full(33, y), margin)
        below, here, above = (compute(y, margin + step) for step in (-1e-4, 0, 1e-4))
        np.testing.assert_allclose(first, (above - below) / 2e-4, atol=1e-6)
        np.testing.assert_allclose(second, (above - 2 * here + below) / 1e-8, atol=1e-5)
        far = RobustFocalLoss(r, q)(np.full(2, y), np.array([-800.0, 800.0]))
        assert np.all(np.isfinite(far))


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


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.several])
def test_every_method_learns_several_classes(method, short):
    part = protocol.split(table_of_three(), "pair-0.1", 0, 280)
    p, label = fit_and_predict(method, part)
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
    row = judge("three", "pair-0.3", 0, 200, "one", str(several_folder), several=True)
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


def test_a_failure_among_several_classes_is_a_die(several_folder, monkeypatch):
    def fail(X, y, seed):
        raise RuntimeError("no luck")

    monkeypatch.setitem(METHODS, "one", Method(fail, "one"))
    row = judge("three", "none", 0, 200, "one", str(several_folder), several=True)
    assert (row.accuracy, row.log_loss, row.brier) == pytest.approx((1 / 3, np.log(3), 1 / 3))
    coin = ArenaRow("a", "none", 0, 9, "one")
    two = judging._make_failed_row(coin.key, 2, ValueError("x"))
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
    assert {row.twist for row in rows} == set(program.CHOSEN_TWISTS) - {"real", *protocol.TWO_CLASS_TWISTS}
    assert {row.data for row in rows} == {"three"}
    assert "accuracy by twist" in capsys.readouterr().out
    assert run("--several", *options) == 1
    assert "no data sets of several classes" in capsys.readouterr().err


# What the verdict makes of it


def made_rows(accuracy, methods=None, twist="symmetric-0.2"):
    """Rows from a table: runs x methods."""
    methods = methods or [OURS, PEER, "catboost-careful", "hist-gradient"][: len(accuracy[0])]
    return [
        ArenaRow(f"set{i}", twist, 0, 100, method, accuracy=value, reliability="/".join("111") + " 0/0/0" * 9)
        for i, line in enumerate(accuracy)
        for method, value in zip(methods, line, strict=True)
    ]


def test_ranks_are_those_of_the_obvious_version():
    accuracy = np.random.default_rng(0).integers(50, 60, size=(12, 4)) / 64  # with ties
    rows = made_rows(accuracy.tolist())
    obvious = np.zeros(4)
    for line in accuracy:
        for j in range(4):
            obvious[j] += 1 + np.sum(line > line[j]) + (np.sum(line == line[j]) - 1) / 2
    expected = dict(zip([row.method for row in rows[:4]], obvious / 12, strict=True))
    # Neither cells of another kind nor a peer with our untwisting on top change ranks.
    others = made_rows([[0.1, 0.2, 0.3, 0.4, 0.5]] * 3, [*expected, "xgboost+untwist"], twist="none")
    on_top = [replace(row, method="xgboost+untwist", accuracy=0.99) for row in rows[::4]]
    standings = Standings([*others, *rows, *on_top])
    assert standings.on_top == ["xgboost+untwist"]
    assert standings.rank("twisted") == pytest.approx(expected)
    assert list(standings.rank("twisted").values()) == sorted(expected.values())
    assert standings.rank("none")["hist-gradient"] == 1.0
    assert standings.rank("real") == {}
    together = standings.rank("twisted", "none")
    assert together[OURS] == pytest.approx((12 * expected[OURS] + 3 * 4) / 15)


def test_cells_average_over_seeds_and_leave_unfinished_runs_out():
    rows = made_rows([[0.9, 0.6]]) + [replace(row, seed=1, accuracy=0.5) for row in made_rows([[0.9, 0.6]])]
    unfinished = replace(rows[0], seed=2, accuracy=0.0)
    standings = Standings([*rows, unfinished])
    assert standings.cells == [("set0", "symmetric-0.2")]
    assert standings.incomplete == 1
    np.testing.assert_allclose(standings.tables["accuracy"], [[0.7, 0.55]])
    with pytest.raises(ValueError, match="no run yet"):
        Standings([rows[0], replace(rows[1], seed=5)])


def test_a_mean_is_bounded_by_drawing_whole_data_sets():
    rng = np.random.default_rng(1)
    values, groups = rng.normal(size=10), list("aabbbccdde")
    low, high = bound_mean(values, groups)
    drawn = np.random.default_rng(0).integers(5, size=(DRAWS, 5))
    obvious = []
    for names in drawn[:2000]:
        together = [
            value for one in names for value, group in zip(values, groups, strict=True) if group == "abcde"[one]
        ]
        obvious.append(np.mean(together))
    assert (low, high) == pytest.approx(tuple(np.quantile(obvious, [0.025, 0.975])), abs=0.1)
    order = rng.permutation(10)
    assert bound_mean(values[order], [groups[i] for i in order]) == pytest.approx((low, high))
    assert low < values.mean() < high


@pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (5, 2.728), (10, 3.164)])  # Demšar 2006, table 5a
def test_the_critical_difference_is_the_published_one(methods, q):
    assert critical_difference(methods, 30) == pytest.approx(q * np.sqrt(methods * (methods + 1) / 180), abs=5e-4)


def test_two_methods_rank_as_friedman_has_it():
    accuracy = np.random.default_rng(3).random((9, 3))
    ranks = rankdata(-accuracy, axis=1).mean(axis=0)
    statistic = 12 * 9 / (3 * 4) * np.sum((ranks - 2) ** 2)
    assert friedmanchisquare(*accuracy.T).statistic == pytest.approx(statistic)
    assert sorted(Standings(made_rows(accuracy.tolist())).rank("twisted").values()) == pytest.approx(sorted(ranks))


def test_losing_cells_come_first_and_kinds_stand_apart():
    rows = made_rows([[0.9, 0.8], [0.70, 0.73], [0.76, 0.78]]) + made_rows([[0.80, 0.804]], twist="none")
    losses, bars, twisted, untwisted, *_ = make_tables(Standings(rows), "Half: ")
    assert losses.title == "Half: losing cells, 1 of 4"
    assert losses.lines == [["set1", "symmetric-0.2", "0.700", "0.730", "-0.030"]]
    found = {bar: (what, met) for bar, what, met in bars.lines}
    assert found["mean rank below 2, twisted"] == ("1.67 of 2; 1.67 with real noise", "met")
    assert found["accuracy 0.02 above the best, twisted"] == (f"+0.0167 to {PEER}", "missed")
    assert found["accuracy within 0.002 of the best, untwisted"] == (f"-0.0040 to {PEER}", "missed")
    assert found[f"no cell more than 0.02 below {PEER}"] == ("1 cells, -0.030 at worst", "missed")
    assert found["lowest log-loss, twisted"] == (f"0.6931, {PEER} 0.6931", "met")
    assert "highest AUC, real noise" not in found
    assert (twisted.title, untwisted.title) == ("Half: twisted training data", "Half: untwisted training data")
    best, other = twisted.lines  # by rank
    assert (best[:5], best[-1]) == ([PEER, "0.7700", "+0.0167", "-0.0300", "+0.1000"], "1.33")
    assert (other[:5], other[-1]) == ([OURS, "0.7867", "", "", ""], "1.67")


def test_real_noise_is_judged_by_auc_and_a_tie_is_no_loss():
    rows = [replace(row, auc=0.8) for row in made_rows([[0.5, 0.6, 0.7]], twist="real")]
    bars = {bar: (what, met) for bar, what, met in make_tables(Standings(rows))[1].lines}
    assert bars["highest AUC, real noise"][1] == "met"
    rows[1] = replace(rows[1], auc=0.81)
    bars = {bar: (what, met) for bar, what, met in make_tables(Standings(rows))[1].lines}
    assert bars["highest AUC, real noise"] == (f"0.8000, {PEER} 0.8100", "missed")


def test_peers_with_our_untwisting_on_top_set_no_bar():
    ours, peer = made_rows([[0.9, 0.8]])
    rows = [
        ours,
        peer,
        replace(peer, method="forest+untwist", accuracy=0.99, log_loss=0.01, seconds=-1.0, reliability=""),
    ]
    tables = {one.title: one for one in make_tables(Standings(rows))}
    assert {met for *_, met in tables["bars"].lines} == {"met"}
    (line,) = tables["twisted training data, peers with our untwisting on top"].lines
    assert line[:3] == ["forest+untwist", "0.9900", "-0.0900"]
    assert line[6] == "nan"  # There is nothing to calibrate.
    assert [one[0] for one in tables["twisted training data"].lines] == [OURS, PEER]
    assert tables["accuracy by twist"].lines == [[OURS, "0.900*"], [PEER, "0.800 "], ["forest+untwist", "0.990 "]]
    assert tables["time"].lines[-1][0] == "forest+untwist"
    assert not is_peer("forest+untwist")
    assert is_peer("cleanlab-careful")


def test_the_calibration_error_weighs_bins_by_rows():
    bins = "3/0.3/0 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0 1/0.9/0"
    rows = [replace(row, reliability=bins) for row in made_rows([[0.9, 0.8]])]
    assert Standings(rows).average("calibration", OURS) == pytest.approx((0.3 + 0.9) / 4)


def test_bars_join_what_is_not_told_apart():
    assert _find_cliques([1.0, 1.5, 3.0, 3.2, 5.0], cd=1.6) == [(0, 1), (1, 2), (2, 3)]
    assert _find_cliques([1.0, 2.0, 3.0], cd=5.0) == [(0, 2)]
    assert _find_cliques([1.0, 3.0], cd=1.0) == []


def test_the_page_is_self_contained_and_escapes_names():
    rows = [replace(row, data="<script>", error="<b>") for row in made_rows([[0.9, 0.95, 0.7]])]
    text = render({JUDGING: Standings(rows), DESIGN: Standings(rows)}, "what & why")
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    assert "<b>" not in text
    assert "what &amp; why" in text
    assert "http:" not in text
    assert "https:" not in text
    assert text.index("Judging: losing cells") < text.index("Judging: twisted") < text.index("Design: losing cells")
    page = write_markdown({JUDGING: Standings(rows)}, "what & why")
    assert page.startswith("# The arena")
    assert "## Judging: losing cells, 1 of 1" in page
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
    assert "accuracy by twist" in output.out
    assert "left" in output.err
    assert "left" not in output.out
    assert out.with_suffix(".html").read_text().startswith("<!doctype html>")
    assert len(results.read(out, ArenaRow)) == 8


def test_halves_come_one_after_the_other_and_one_can_be_asked_for(calls, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    halves = find_half(datasets.list_names(), looked_at=OF_THE_PAPER)
    assert halves["xd6"] == DESIGN
    out = tmp_path / "rows.csv"
    options = ["--twists", "none", "--methods", "one", "two", "--seeds", "1", "--rows", "60", "--jobs", "1"]
    options += ["--out", str(out)]
    assert run(*options, "--half", DESIGN) == 0
    assert {row.data for row in results.read(out, ArenaRow)} == {name for name in halves if halves[name] == DESIGN}
    assert "Judging:" not in capsys.readouterr().out
    assert run(*options) == 0
    assert {row.data for row in results.read(out, ArenaRow)} == set(halves)
    output = capsys.readouterr().out
    assert output.index("Judging: untwisted training data") < output.index("Design: untwisted training data")
    page = out.with_suffix(".md").read_text()
    assert "## Judging: untwisted training data\n" in page
    made = len(calls)
    out.with_suffix(".md").unlink()
    assert run(*options, "--show") == 0
    assert out.with_suffix(".md").read_text() == page
    assert len(calls) == made


def test_a_budget_of_minutes_ends_cleanly(calls, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    out = tmp_path / "rows.csv"
    options = ["--sets", "cancer", "xd6", "--twists", "none", "--methods", "one", "two", "--rows", "60", "--jobs", "1"]
    options += ["--out", str(out)]
    assert run(*options, "--seeds", "1") == 0
    before = out.read_text()
    assert run(*options, "--seeds", "2", "--minutes", "0") == 0
    assert "4 jobs are left: the same command goes on from there" in capsys.readouterr().err
    assert out.read_text() == before
    assert run(*options[:-1], str(tmp_path / "new.csv"), "--minutes", "0") == 1
    assert "no run yet that every method has finished" in capsys.readouterr().err


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
    assert "Two is left out: pip install no-such-package brings it." in output.err
    assert "1 methods" in output.out


@pytest.mark.parametrize("command", [[], *([name] for name in cli.COMMANDS)])
def test_every_command_answers_help(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([*command, "--help"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith(" ".join(["usage: untwist", *command]) + " ")
