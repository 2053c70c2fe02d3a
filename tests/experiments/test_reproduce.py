"""The reproduction: what is declared, what an algorithm may see, what is recorded, and what is made of it."""

import json
import math
import re
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeRegressor

from experiments import results, runner
from experiments.paper import algorithms, claims, declarations, exhibits, program, trials
from experiments.paper.algorithms import AdaBoost, EngineTree, PILBoost, XGBoost
from experiments.paper.comparison import Summary, compare_with_published, summarise, welch
from experiments.paper.declarations import EXPERIMENTS, PUBLISHED, Cell, Experiment, Grid, Published
from experiments.paper.outcomes import Outcomes
from experiments.paper.trials import Source, Trial, TrialRow, judge, make_long_servedio
from experiments.peers import find_version
from experiments.tables import TextTable
from helpers.quick import make_classifier
from untwist.boosting import algorithm as boosting
from untwist.commands import main as cli
from untwist.twisters import ClassNoise, FeatureNoise

# Programs around the library: `make test-slow` runs their tests.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HERE = Source()


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("UNTWIST_DATA", raising=False)


# What is declared


def test_the_published_numbers_are_the_papers():
    original = ROOT.parent / "shared/paper/published.json"
    if not original.exists():
        pytest.skip("the paper's published.json is not at hand")
    assert json.loads(original.read_text()) == PUBLISHED


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("table1", "table1_xd6_feature_noise"),
        ("table2", "table2_cancer_class_noise"),
        ("table3", "table3_xd6_class_noise"),
        ("table4", "table4_shoppers_class_noise"),
    ],
)
def test_every_published_accuracy_stands_beside_a_cell_of_its_settings(name, table):
    (grid,) = EXPERIMENTS[name].grids
    source = PUBLISHED[table]
    for row, values in source["rows"].items():
        for rate, (mean, sd) in zip(source["p"], values, strict=True):
            found = grid.published[row, f"{rate:g}"]
            assert (found.mean, found.sd) == (mean, sd)
            cell = grid.cells[row, f"{rate:g}"]
            assert (cell.data, cell.depth) == (source["dataset"], source["depth"])
            twister = FeatureNoise(rate) if name == "table1" else ClassNoise(rate)
            assert cell.twist == (twister if rate else None)
            if row.startswith("PILBoost"):
                alpha = float(row.removeprefix("PILBoost alpha="))
                step = source["a_f"] if isinstance(source["a_f"], int) else source["a_f"][f"{alpha:g}"]
                if (name, alpha, rate) == ("table3", 4.0, 0):
                    step = 0.1  # says the caption
                assert cell.algorithm == PILBoost(alpha, step)
    beside = {place for place in grid.published if place[0] != declarations.AS_IN_2021}
    assert len(beside) == sum(map(len, source["rows"].values()))


def test_the_insider_and_the_times_are_published_too():
    grid = EXPERIMENTS["figure-insider"].grids[0]
    assert grid.published["PILBoost alpha=1.1", "insider"] == Published(0.85, 0.002)
    assert grid.published["XGBoost", "no twister"] == Published(0.892, 0.003)
    assert grid.cells["PILBoost alpha=1.1", "insider"].algorithm == PILBoost(1.1, 7.0)
    times = EXPERIMENTS["table5"].grids[0]
    assert len(times.published) == 20
    assert times.published["XGBoost", "shoppers"].mean == 3.16


def test_everything_the_paper_shows_is_there():
    assert set(EXPERIMENTS) >= {"table1", "table2", "table3", "table4", "table5", "figure-box-cancer"}
    assert set(EXPERIMENTS) >= {"figure-box-diabetes", "figure-insider", "figure-adaptive", "figure-theory"}
    noise = {cell.twist.rate for cell in EXPERIMENTS["figure-adaptive"].cells}
    assert sorted(noise) == pytest.approx(np.arange(1, 10) / 20)
    steps = {(cell.data, cell.algorithm.step_size) for cell in EXPERIMENTS["figure-adaptive"].cells
             if isinstance(cell.algorithm, PILBoost)}  # fmt: skip
    assert steps == {("xd6", 8.0), ("diabetes", 0.1), ("cancer", 7.0), ("cancer", 1.0)}


def test_a_key_tells_settings_apart_and_shares_what_is_the_same():
    base = Cell("xd6", ClassNoise(0.15), PILBoost(2.0, 8.0), 3)
    changes = [{"data": "cancer"}, {"twist": None}, {"twist": ClassNoise(0.3)}, {"twist": FeatureNoise(0.15)}]
    changes += [{"algorithm": PILBoost(2.0, 7.0)}, {"algorithm": PILBoost(2.0, 8.0, "exact")}, {"depth": 1}]
    changes += [{"algorithm": XGBoost()}, {"algorithm": XGBoost(exact=True)}, {"grouped": True}]
    keys = {replace(base, **change).list_trials(2, 10)[1].key for change in [{}, *changes]}
    keys |= {base.list_trials(2, 10)[0].key, base.list_trials(2, 11)[0].key}
    assert len(keys) == len(changes) + 3
    boxes = {trial.key for cell in EXPERIMENTS["figure-box-cancer"].cells for trial in cell.list_trials(1, 10)}
    table = {trial.key for cell in EXPERIMENTS["table2"].cells for trial in cell.list_trials(1, 10)}
    assert boxes < table  # nothing is run twice


# What is drawn


def lesson_of(trial):
    key = trial.key
    return trials._make_lesson(key.data, key.twist, trial.twist, trial.seed, trial.grouped, HERE)


def test_algorithms_meet_the_same_split_and_twist():
    one, other = (Trial("xd6", ClassNoise(0.3), 3, 10, a, seed=4) for a in (AdaBoost(), XGBoost()))
    trials._make_lesson.cache_clear()
    lesson, X_test, y_test = lesson_of(one)
    trials._make_lesson.cache_clear()
    again, X_again, y_again = lesson_of(other)
    for a, b in [(lesson.X, again.X), (lesson.y, again.y), (X_test, X_again), (y_test, y_again)]:
        np.testing.assert_array_equal(a, b)
    assert (lesson.y != lesson.y_clean).sum() == math.ceil(0.3 * lesson.y.size)
    assert len(y_test) == math.ceil(0.3 * 973)
    truth = X_test.reshape(-1, 3, 3).all(axis=2).any(axis=1)
    np.testing.assert_array_equal(y_test, truth)  # test rows are clean
    np.testing.assert_array_equal(lesson.X, lesson.X_clean)
    assert not np.array_equal(lesson.y_clean, lesson_of(replace(one, seed=5))[0].y_clean)
    np.testing.assert_array_equal(lesson.X_clean, lesson_of(replace(one, twist=None))[0].X)  # one split for all twists


def test_feature_noise_leaves_labels_and_test_rows_alone():
    lesson, X_test, y_test = lesson_of(Trial("xd6", FeatureNoise(0.5), 3, 10, AdaBoost(), seed=0))
    np.testing.assert_array_equal(lesson.y, lesson.y_clean)
    assert np.mean(lesson.X_clean != lesson.X) == pytest.approx(0.25, abs=0.03)
    np.testing.assert_array_equal(y_test, X_test.reshape(-1, 3, 3).all(axis=2).any(axis=1))


@pytest.mark.parametrize("seed", range(3))
def test_a_grouped_split_keeps_twins_together(seed):
    lesson, X_test, y_test = lesson_of(Trial("xd6", None, 3, 10, AdaBoost(), seed, grouped=True))
    train, test = ({tuple(row) for row in X} for X in (lesson.X_clean, X_test))
    assert not train & test
    assert len(train | test) == 512
    assert len(test) == math.ceil(0.3 * 512)
    random_test = lesson_of(Trial("xd6", None, 3, 10, AdaBoost(), seed))
    twins = np.mean([tuple(row) in {tuple(one) for one in random_test[0].X} for row in random_test[1]])
    assert 0.55 < twins < 0.75  # two thirds, in the paper's split
    assert abs(y_test.mean() - lesson.y.mean()) < 0.03


def test_long_servedio_is_what_it_is_said_to_be():
    X, y = make_long_servedio(8000)
    agree = (X * (2 * y - 1)[:, None]) > 0
    large, puller = agree.all(axis=1), agree[:, :11].all(axis=1) & ~agree[:, 11:].any(axis=1)
    penaliser = (agree[:, :11].sum(axis=1) == 5) & (agree[:, 11:].sum(axis=1) == 6)
    assert (large | puller | penaliser).all()
    np.testing.assert_allclose([large.mean(), puller.mean(), penaliser.mean()], [0.25, 0.25, 0.5], atol=0.02)
    np.testing.assert_array_equal(X.sum(axis=1) > 0, y == 1)
    assert 0.45 < y.mean() < 0.55
    assert agree[penaliser].mean(axis=0) == pytest.approx([5 / 11] * 11 + [6 / 10] * 10, abs=0.05)


def test_tables_become_numbers_by_the_alphabet():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"month": pd.Categorical(["May", "Aug", "Feb"]), "pages": [1, 2, 3]})
    np.testing.assert_array_equal(trials.to_numbers(X), [[2, 1], [0, 2], [1, 3]])


# What an algorithm may see


HONEST = [
    PILBoost(2.0, 8.0),
    PILBoost(2.0, 8.0, "exact"),
    algorithms.Untwist(),
    algorithms.Menon(8.0),
    AdaBoost(),
    XGBoost(),
    XGBoost(exact=True, l2=20.0),
    XGBoost(stop=algorithms.PAPER),
    XGBoost(stop=algorithms.CAREFUL),
    algorithms.LightGBM(),
]
CHEATS = [algorithms.OriginalLearned(8.0), algorithms.TaylorSeries(8.0), XGBoost(stop=algorithms.CHEATING)]


def small_lesson(rounds=20):
    lesson, X_test, y_test = lesson_of(Trial("xd6", ClassNoise(0.1), 3, rounds, AdaBoost(), seed=0))
    return lesson._replace(depth=3, rounds=rounds), X_test, y_test


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", HONEST + CHEATS, ids=repr)
def test_every_algorithm_learns(algorithm):
    if not find_version(algorithm.packages):
        pytest.skip(f"{algorithm.packages[-1]} is not installed")
    lesson, X_test, y_test = small_lesson(100)
    trained = algorithm.fit(lesson)
    assert np.mean(trained.predict(X_test) == y_test) > 0.75
    assert set(np.unique(trained.predict(X_test))) <= {0, 1}
    assert trained.importances.shape == (9,)
    assert trained.importances.sum() == pytest.approx(1.0)
    assert trained.rounds > 0
    again = algorithm.fit(lesson)
    np.testing.assert_array_equal(trained.predict(X_test), again.predict(X_test))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", HONEST, ids=repr)
def test_the_honest_do_not_look_at_clean_data(algorithm):
    if not find_version(algorithm.packages):
        pytest.skip(f"{algorithm.packages[-1]} is not installed")
    lesson, X_test, _ = small_lesson()
    poisoned = lesson._replace(X_clean=np.full_like(lesson.X_clean, np.nan), y_clean=1 - lesson.y_clean)
    np.testing.assert_array_equal(algorithm.fit(lesson).predict(X_test), algorithm.fit(poisoned).predict(X_test))


def test_who_stops_holds_out_a_fifth_and_cheats_see_it_clean():
    lesson, *_ = small_lesson()
    for clean in (False, True):
        rest, held_out = lesson.hold_out(clean)
        X, y = held_out.X, held_out.y
        assert len(y) == math.ceil(0.2 * lesson.y.size)
        assert len(rest.y) + len(y) == lesson.y.size
        assert (rest.y != rest.y_clean).any()
        formula = X.reshape(-1, 3, 3).all(axis=2).any(axis=1)
        assert (y == formula).all() == clean
        assert (rest.depth, rest.rounds, rest.seed) == (lesson.depth, lesson.rounds, lesson.seed)


@pytest.mark.filterwarnings("ignore")
def test_stopping_keeps_fewer_rounds_than_it_may():
    pytest.importorskip("xgboost")
    lesson, *_ = small_lesson(1000)
    assert XGBoost().fit(lesson).rounds == 1000
    for stop in (algorithms.PAPER, algorithms.CAREFUL):
        trained = XGBoost(stop=stop).fit(lesson)
        assert trained.rounds < 1000
        again = XGBoost(stop=stop).fit(lesson._replace(rounds=trained.rounds))  # the rounds it kept, and no others
        np.testing.assert_allclose(trained.importances, again.importances, atol=1e-6)


def test_an_estimated_alpha_without_bounds_is_brought_within():
    lesson, *_ = small_lesson()
    for alpha in (math.inf, -math.inf, 1e9, 0.0, 1e-9):
        trained = algorithms._fit_at(alpha, 8.0, lesson)
        assert 0.01 < abs(trained.alpha) <= 100


# The trees of AdaBoost, against scikit-learn's


@pytest.mark.parametrize("depth", [1, 3])
def test_an_engine_tree_is_scikit_learns(depth):
    rng = np.random.default_rng(depth)
    X = rng.integers(0, 40, (300, 5)).astype(float)  # few values: a bin each
    y = np.where(rng.random(300) < 0.2 + 0.6 * (X[:, 0] > 20), 1.0, -1.0)
    weight = rng.random(300)
    ours = EngineTree.bin_table(X, y > 0, depth).fit(X, y, sample_weight=weight)
    theirs = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-3)


def test_adaboost_over_engine_trees_is_the_papers_round_by_round():
    lesson, *_ = small_lesson()
    signs = 2.0 * lesson.y - 1.0
    engine = EngineTree.bin_table(lesson.X, lesson.y, 3)
    plain = DecisionTreeRegressor(max_depth=3, random_state=0)
    rounds = (islice(boosting.adaboost(lesson.X, signs, tree), 8) for tree in (engine, plain))
    for ours, theirs in zip(*rounds, strict=True):
        assert ours.leverage == pytest.approx(theirs.leverage, abs=1e-4)
        np.testing.assert_allclose(ours.margins, theirs.margins, atol=1e-3)


# What the numbers say


def test_a_summary_is_the_t_interval():
    values = np.random.default_rng(0).normal(0.9, 0.02, 10)
    found = summarise(values)
    low, high = stats.t.interval(0.95, 9, loc=values.mean(), scale=stats.sem(values))
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx((low, high))
    assert found.sd == pytest.approx(values.std(ddof=0))
    assert summarise([0.5]) == Summary(0.5, 0.0, math.inf, 1)
    assert summarise([]).runs == 0
    assert math.isnan(summarise([]).mean)
    assert welch([1, 1], [1, 1]) == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_the_verdict_is_welchs_test_with_the_rounding_in_print(seed):
    rng = np.random.default_rng(seed)
    ours, theirs = rng.normal(0.9, 0.02, 10), rng.normal(0.9 + rng.normal(0, 0.015), 0.01, 10)
    printed = Published(theirs.mean(), theirs.std(), digits=12)
    differs = stats.ttest_ind(ours, theirs, equal_var=False).pvalue < 0.05
    words = compare_with_published(summarise(ours), printed).words
    assert (words != "agrees") == differs
    assert words in ("agrees", "better" if ours.mean() > theirs.mean() else "differs")


def test_the_verdict_at_its_edges():
    exact = Summary(1.0, 0.0, 0.0, 10)
    assert compare_with_published(exact, Published(1.0, 0.0)).words == "agrees"
    assert (
        compare_with_published(replace_mean(exact, 0.9995), Published(1.0, 0.0)).words == "agrees"
    )  # it may have been printed so
    assert compare_with_published(replace_mean(exact, 0.999), Published(1.0, 0.0)).words == "differs"
    assert compare_with_published(replace_mean(exact, 0.996), Published(1.0, 0.0, digits=2)).words == "agrees"
    assert (
        compare_with_published(Summary(0.1, 0.0, math.inf, 1), Published(1.0, 0.0)).words == "one run"
    )  # it says nothing
    assert compare_with_published(exact, Published(0.9, 0.01)).difference == pytest.approx(0.1)


def replace_mean(one, mean):
    return one._replace(mean=mean)


# What is recorded


def row(cell, seed, accuracy, rounds=1000, **more):
    return TrialRow(*replace_seed(cell, seed, rounds), accuracy=accuracy, seconds=0.5, digest="x", date="2026-01-02",
                    version="untwist 1", **more)  # fmt: skip


def replace_seed(cell, seed, rounds):
    return cell.list_trials(seed + 1, rounds)[seed].key


def test_a_trial_is_judged_on_clean_test_rows_and_an_error_is_a_result():
    trial = Trial("xd6", ClassNoise(0.2), 3, 30, PILBoost(2.0, 8.0), seed=1)
    (found,) = judge(trial, HERE)
    lesson, X_test, y_test = lesson_of(trial)
    settings = {"step_size": 8.0, "n_estimators": 30, "max_depth": 3, "init": "zero"}
    model = make_classifier(alpha=2.0, n_jobs=1, random_state=1, **settings)
    assert found.accuracy == model.fit(lesson.X, lesson.y).score(X_test, y_test)
    assert (found.key, found.kept, found.alpha, found.error) == (trial.key, 30, 2.0, "")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found.date)
    assert found.version.startswith("untwist ")
    (bad,) = judge(replace(trial, algorithm=PILBoost(2.0, -1.0)), HERE)
    assert bad.error.startswith("ValueError: step_size")
    assert "needs online_shoppers.csv" in judge(replace(trial, data="shoppers"), HERE)[0].error


def test_rows_survive_the_file(tmp_path):
    cell = EXPERIMENTS["figure-insider"].grids[0].cells["XGBoost", "insider"]
    one = row(cell, 0, 0.875, importances="0.5 0.5", alpha=math.nan)
    with results.Writer(tmp_path / "rows.csv", results.list_columns(TrialRow)) as file:
        file.add(astuple(one))
    (found,) = results.read(tmp_path / "rows.csv", TrialRow)
    assert found.key == one.key
    assert (found.accuracy, found.importances, math.isnan(found.alpha)) == (0.875, "0.5 0.5", True)


def test_results_take_their_own_setting_only():
    cell = Cell("xd6", None, AdaBoost(), 3)
    rows = [row(cell, 0, 0.9), row(cell, 1, 0.8), row(cell, 2, 0.1, error="broke"), row(cell, 3, 0.7, rounds=10)]
    found = Outcomes([*rows, row(cell, 12, 0.2)], runs=10, rounds=1000)
    np.testing.assert_array_equal(found.list_values(cell), [0.9, 0.8])
    other = replace(cell, algorithm=XGBoost())
    rows += [row(other, 1, 0.5), row(other, 4, 0.1)]
    assert Outcomes(rows, 10, 1000).find_lead(cell, other) == summarise([0.8 - 0.5])  # the seeds that both have


# What is made of it


def made_up(seed=0, runs=3, only=None):
    """Rows of made-up accuracies for all cells."""
    rng = np.random.default_rng(seed)
    rows = {}
    for experiment in EXPERIMENTS.values():
        for cell in experiment.cells:
            for s in range(runs):
                key = replace_seed(cell, s, 1000)
                if key not in rows and (only is None or key.data == only):
                    profile = " ".join(["0.0588235"] * 17) if key.data == "shoppers" else ""
                    rows[key] = row(cell, s, float(rng.uniform(0.6, 1.0)), importances=profile, alpha=2.0, kept=7)
    return list(rows.values())


def test_a_table_shows_the_numbers_of_its_cells():
    experiment = EXPERIMENTS["table3"]
    grid = experiment.grids[0]
    rows = made_up()
    found = Outcomes(rows, 3, 1000)
    wide, beside = exhibits.make_tables(experiment, found)
    assert wide.header == ["label noise", "0", "0.15", "0.3"]
    for line in wide.lines:
        for column, cell in zip(wide.header[1:], line[1:], strict=True):
            values = found.list_values(grid.cells[line[0], column])
            half = stats.t.ppf(0.975, 2) * values.std(ddof=1) / math.sqrt(3)
            assert cell == f"{values.mean():.3f} ± {half:.3f}"
    assert len(beside.lines) == 15 + 3
    line = next(one for one in beside.lines if one[:2] == ["XGBoost", "0.3"])
    values = found.list_values(grid.cells["XGBoost", "0.3"])
    assert line[2] == f"{values.mean():.3f} ± {values.std():.3f}"
    assert line[3] == "0.776 ± 0.041"
    assert line[4] == f"{values.mean() - 0.776:+.3f}"
    assert line[5].split(":")[0] == compare_with_published(summarise(values), Published(0.776, 0.041)).words


def test_what_was_not_run_is_said_to_be_skipped():
    found = Outcomes(made_up(only="xd6"), 3, 1000)
    wide, beside = exhibits.make_tables(EXPERIMENTS["table4"], found)
    assert {cell for line in wide.lines for cell in line[1:]} == {"—"}
    assert {line[-1] for line in beside.lines} == {"skipped"}
    for experiment in EXPERIMENTS.values():
        exhibits.make_tables(experiment, found)
        exhibits.make_figures(experiment, found)
    text = " ".join(claims.write_sentences(found))
    assert "nan" not in text
    assert "xd6" in text
    nothing = claims.write_sentences(Outcomes([], 3, 1000))
    assert len(nothing) == 5
    assert "nothing to compare" in nothing[0]
    assert "holds" not in nothing[1]
    assert claims.tally(Outcomes(made_up(runs=1), 1, 1000)) == {}


def test_the_five_sentences_have_the_numbers():
    rows = made_up()
    found = Outcomes(rows, 3, 1000)
    agreement, advantage, stopped, settings, harder = claims.write_sentences(found)
    counts = claims.tally(found)
    assert sum(sum(one.values()) for one in counts.values()) == 70 + 14 + 4 + 2
    agreeing = sum(one["agrees"] for name, one in counts.items() if name != declarations.AS_IN_2021)
    assert f"Agreement: {agreeing} of 74 published accuracies agree" in agreement
    cells = EXPERIMENTS["table3"].grids[0].cells
    gap = found.find_lead(cells["PILBoost alpha=2.0", "0.3"], cells["XGBoost", "0.3"])
    assert f"xd6 {gap.mean:+.3f} ± {gap.half:.3f}" in advantage
    gap = found.find_lead(cells["PILBoost alpha=2.0", "0.3"], cells[declarations.PATIENT, "0.3"])
    assert f"xd6 {gap.mean:+.3f} ± {gap.half:.3f}" in stopped
    assert "nan" not in settings + harder


def test_the_best_alpha_counts_those_that_are_not_worse():
    grid = EXPERIMENTS["alphas"].grids[0]
    means = dict(zip(grid.rows, [0.70, 0.90, 0.899, 0.80, 0.70, 0.60, 0.5], strict=True))
    wiggle = [0.0, 0.01, -0.01]
    rows = [row(grid.cells[name, "0.1"], s, means[name] + wiggle[(s + (name == "alpha=1.5")) % 3])
            for name in grid.rows for s in range(3)]  # fmt: skip
    assert exhibits.find_best_row(grid, "0.1", Outcomes(rows, 3, 1000)) == "alpha=1.1 (1)"


def test_our_default_stands_beside_the_best_fixed_alpha():
    experiment = EXPERIMENTS[declarations.DEFAULT]
    shared = {cell for name in ("table1", "table2", "table3", "table4", "figure-box-diabetes")
              for cell in EXPERIMENTS[name].cells}  # fmt: skip
    assert set(experiment.cells) < shared  # nothing is run twice
    assert {cell.data for cell in experiment.cells} == {"xd6", "cancer", "shoppers", "diabetes"}
    found = Outcomes(made_up(), 3, 1000)
    (table,) = exhibits.make_tables(experiment, found)
    assert len(table.lines) == sum(len(grid.columns) for grid in experiment.grids) == 17
    line = next(one for one in table.lines if one[0] == "xd6, label noise 0.3")
    cells = EXPERIMENTS["table3"].grids[0].cells
    values = {alpha: found.list_values(cells[f"PILBoost alpha={alpha}", "0.3"]) for alpha in ("1.1", "2.0", "4.0")}
    best = max(values, key=lambda alpha: values[alpha].mean())
    ours = found.list_values(cells[declarations.OURS, "0.3"])
    gap = ours - values[best]
    half = stats.t.ppf(0.975, 2) * gap.std(ddof=1) / math.sqrt(3)
    assert line[1] == best
    assert [one.split(" ")[0] for one in line[2:5]] == [
        f"{values[best].mean():.3f}", f"{ours.mean():.3f}", f"{gap.mean():+.3f}"]  # fmt: skip
    assert line[4].endswith(f"± {half:.3f}")
    assert line[5] == ("not told apart" if abs(gap.mean()) <= half else "ahead" if gap.mean() > 0 else "behind")


@pytest.mark.parametrize(
    ("leads", "words"),
    [([0.1, 0.11, 0.12], "ahead"), ([-0.1, -0.11, -0.12], "behind"), ([0.1, -0.1, 0.0], "not told apart"),
     ([0.0, 0.0, 0.0], "not told apart"), ([0.1], "—"), ([], "—")],
)  # fmt: skip
def test_a_lead_in_words(leads, words):
    assert exhibits.describe_lead(summarise(leads)) == words


def test_figures_hold_the_values():
    found = Outcomes(made_up(), 3, 1000)
    (boxes,) = exhibits.make_figures(EXPERIMENTS["figure-box-cancer"], found)
    cells = EXPERIMENTS["figure-box-cancer"].grids[0].cells
    np.testing.assert_array_equal(
        boxes.panels[2].boxes["PILBoost 1.1"], found.list_values(cells["PILBoost alpha=1.1", "0.3"])
    )
    (lines,) = exhibits.make_figures(EXPERIMENTS["figure-adaptive"], found)
    assert len(lines.panels) == 4
    menon = next(line for line in lines.panels[0].lines if line.label == "Menon")
    one = found.summarise(EXPERIMENTS["figure-adaptive"].grids[0].cells["Menon", "0.05"])
    assert (menon.y[0], menon.low[0]) == (one.mean, max(0.0, one.mean - one.half))
    assert menon.high[0] == min(1.0, one.mean + one.half)
    bars, scores = exhibits.make_figures(EXPERIMENTS["figure-insider"], found)
    assert bars.panels[0].names == declarations.FEATURES
    assert bars.panels[0].bars["insider"].shape == (17,)
    assert len(scores.panels) == 2
    (heat,) = exhibits.make_figures(EXPERIMENTS["alphas"], found)
    assert heat.panels[0].values.shape == (7, 5)


def test_a_table_in_every_form():
    table = TextTable("Rates & <b>", "50 % of a_f", ["name", "x"], [["a_1 & b", "0.5 ± 0.1"], ["<c|d>", "—"]])
    assert "| a_1 & b | 0.5 ± 0.1 |" in table.to_markdown()
    assert r"| <c\|d> | — |" in table.to_markdown()
    assert table.to_markdown(3).startswith("### Rates")
    latex = table.to_latex()
    assert r"a\_1 \& b & 0.5 $\pm$ 0.1 \\" in latex
    assert r"\caption{Rates \& <b>. 50 \% of a\_f}" in latex
    assert "&lt;c|d&gt;" in table.to_html()
    assert "class=ours" in table.to_html(stands_out=lambda name: name.startswith("a_1"))
    assert "Rates &amp; &lt;b&gt;" in table.to_html()


# The command


@pytest.fixture
def small(monkeypatch):
    """Two experiments of few cells, and how often an algorithm was trained."""

    fits = []

    @dataclass(frozen=True)
    class Says:
        label: int
        packages = ("untwist",)

        def fit(self, lesson):
            if lesson.X.shape[1] == 9:  # not the warm-up
                fits.append((lesson.seed, self.label))
            return algorithms.TrainedAlgorithm(lambda X: np.full(len(X), self.label), 1, np.ones(9) / 9)

    cells = {(f"says {k}", "0.1"): Cell("xd6", ClassNoise(0.1), Says(k), 1) for k in (0, 1)}
    absent = {("says 0", "0.1"): Cell("shoppers", ClassNoise(0.1), Says(0), 1)}
    published = {("says 0", "0.1"): Published(0.67, 0.01)}
    one = Experiment("one", "One", "Its note.", (Grid("xd6", "noise", cells, published),), drawn="boxes")
    two = Experiment("two", "Two", "Its note.", (Grid("shoppers", "noise", absent),))
    chosen = {"one": one, "two": two}
    monkeypatch.setattr(program, "EXPERIMENTS", chosen)
    trials._warm_up.cache_clear()
    return fits


def run(*arguments, out):
    return cli.run_program(program.NAME, program.main, [*arguments, "--jobs", "1", "--out", str(out)])


def test_the_command_runs_what_is_missing_and_shows_it(small, tmp_path, capsys):
    assert run("one", "--runs", "2", "--rounds", "5", out=tmp_path) == 0
    assert sorted(small) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    output = capsys.readouterr().out
    assert "says 0" in output
    assert "0.67" in output
    for name in ("results.csv", "one.html", "one.md", "tables/one.md", "tables/one.tex", "figures/one.svg"):
        assert (tmp_path / name).stat().st_size > 100, name
    assert (tmp_path / "figures/one.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "one.html").read_text()
    assert "http:" not in page.replace("http://www.w3.org", "")
    assert run("one", "--runs", "3", "--rounds", "5", out=tmp_path) == 0
    assert sorted(small[4:]) == [(2, 0), (2, 1)]  # the third run alone
    before = (tmp_path / "results.csv").read_text()
    assert run("one", "--runs", "3", "--rounds", "5", "--render", out=tmp_path) == 0
    assert len(small) == 6
    assert (tmp_path / "results.csv").read_text() == before


def test_missing_data_is_said_and_skipped(small, tmp_path, capsys):
    assert run("two", "one", "--runs", "1", "--rounds", "5", out=tmp_path) == 0
    output = capsys.readouterr()
    assert "shoppers is skipped: data set 'shoppers' needs online_shoppers.csv" in output.err
    assert "Skipped: shoppers" in output.out
    assert {label for _, label in small} == {0, 1}


def test_a_missing_package_is_said_and_skipped(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(program, "find_version", lambda packages: "")
    assert run("one", "--runs", "1", "--rounds", "5", out=tmp_path) == 1
    assert "Says is skipped: needs untwist: pip install untwist" in capsys.readouterr().err
    assert not small


def test_bad_requests_get_a_plain_answer_and_lose_nothing(small, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        run("table9", out=tmp_path)
    assert stop.value.code == 2
    assert "unknown name 'table9': choose from one, two" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("one", "--runs", "0", out=tmp_path)
    with pytest.raises(SystemExit):
        run("one", "--data", str(tmp_path / "nowhere"), out=tmp_path)
    assert "nowhere is no folder" in capsys.readouterr().err
    assert run("one", "--render", out=tmp_path) == 1
    assert "holds no result of 1000 rounds of these experiments" in capsys.readouterr().err
    path = tmp_path / "results.csv"
    for foreign in (b"a,b\n1,2\n", b"my precious notes", b"\xff\xfe\n"):
        path.write_bytes(foreign)
        assert run("one", out=tmp_path) == 1
        assert "no results file" in capsys.readouterr().err
        assert path.read_bytes() == foreign
    path.unlink()
    assert run("one", "--runs", "1", "--rounds", "5", out=tmp_path) == 0
    text = path.read_text()
    path.write_text(text.replace(trials.load_table("xd6", HERE)[2], "0" * 12))
    capsys.readouterr()
    assert run("one", "--runs", "2", "--rounds", "5", out=tmp_path) == 1
    assert "results of another 'xd6' table" in capsys.readouterr().err
    assert path.read_text() == text.replace(trials.load_table("xd6", HERE)[2], "0" * 12)


def test_rows_of_another_version_are_run_again(small, tmp_path):
    assert run("one", "--runs", "1", "--rounds", "5", out=tmp_path) == 0
    path = tmp_path / "results.csv"
    path.write_text(re.sub(r"untwist \d[^,]*", "untwist 0.0.0", path.read_text(), count=1))
    assert run("one", "--runs", "1", "--rounds", "5", out=tmp_path) == 0
    assert len(small) == 2 + 1


def test_rows_are_shown_though_their_table_is_not_at_hand(small, tmp_path, capsys):
    cell = program.EXPERIMENTS["two"].grids[0].cells["says 0", "0.1"]
    with results.Writer(tmp_path / "results.csv", results.list_columns(TrialRow)) as file:
        file.add(astuple(row(cell, 0, 0.625, rounds=5)))
    assert run("one", "two", "--runs", "1", "--rounds", "5", out=tmp_path) == 0
    assert "0.625" in capsys.readouterr().out


def test_without_matplotlib_nothing_is_run(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(program.importlib.util, "find_spec", lambda name: None)
    assert run("one", out=tmp_path) == 1
    assert "figures need matplotlib: pip install matplotlib" in capsys.readouterr().err
    assert not small


def test_ctrl_c_keeps_what_is_done(small, tmp_path, capsys, monkeypatch):
    calls = []

    def interrupted(trial, source):
        if calls:
            raise KeyboardInterrupt
        calls.append(trial)
        return judge(trial, source)

    monkeypatch.setattr(program, "judge", interrupted)
    assert run("one", "--runs", "2", "--rounds", "5", out=tmp_path) == 130
    assert "the same command goes on from there" in capsys.readouterr().err
    assert len(results.read(tmp_path / "results.csv", TrialRow)) == 1
    monkeypatch.undo()


@pytest.mark.slow
def test_processes_give_the_same_rows(tmp_path):
    wanted = {trial.key: trial for trial in Cell("xd6", ClassNoise(0.1), PILBoost(2.0, 8.0), 3).list_trials(3, 20)}
    judge_here = partial(judge, source=HERE)
    here, there = (runner.measure(wanted, judge_here, tmp_path / f"{n}.csv", TrialRow, processes=n) for n in (1, 2))
    assert {(r.key, r.accuracy) for r in here} == {(r.key, r.accuracy) for r in there}


def test_the_page_of_the_docs_is_what_its_results_give(tmp_path, capsys, monkeypatch):
    """docs/reproduce.md comes from docs/reproduce/results.csv, all of it; how figures are drawn is tested elsewhere."""
    monkeypatch.setattr("experiments.paper.render.draw_svg", lambda figure: f"<svg><title>{figure.name}</title></svg>")
    monkeypatch.setattr("experiments.paper.render.draw_png", lambda figure: figure.name.encode())
    (tmp_path / "results.csv").write_bytes((ROOT / "docs/reproduce/results.csv").read_bytes())
    assert run("--render", out=tmp_path) == 0
    text = (tmp_path / "index.md").read_text().replace("(figures/", "(reproduce/")
    assert text == (ROOT / "docs/reproduce.md").read_text()
    drawn = {path.name for path in (tmp_path / "figures").glob("*.svg")}
    assert drawn == {path.name for path in (ROOT / "docs/reproduce").glob("*.svg")}
