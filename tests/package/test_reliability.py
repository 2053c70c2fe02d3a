"""The page on reliability says what its records say, and how to do it again."""

import importlib.util
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reliability import covered, faults, mutate, records, soak
from reliability.resources import Held, find_slope, read_held

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()


def test_the_page_is_that_of_the_records():
    assert records.PAGE.read_text(encoding="utf-8") == records.render(records.read_all()), "make docs-reliability"


def test_every_record_is_complete_and_can_be_made_again():
    for one in records.read_all():
        assert one.figures, one.name
        assert one.found.strip(), one.name
        assert one.seconds > 0, one.name
        targets = [word for word in one.command.removeprefix("make ").split() if "=" not in word]
        assert one.command.startswith("make "), one.name
        assert all(re.search(rf"^{target}:", MAKEFILE, re.M) for target in targets), one.name


def test_records_come_in_order_and_unknown_ones_last(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    for name in ("zoo", "leaks", "abc", "fuzzing"):
        records.Record(
            name, f"About {name}, twice", {"things": 12345, "share": 0.5}, "Nothing.", "make x", 100.0
        ).write(failed=False)
    found = records.read_all()
    assert [one.name for one in found] == ["fuzzing", "leaks", "abc", "zoo"]
    text = records.render(found)
    assert "| things | 12,345 |" in text
    assert "[About zoo, twice](#about-zoo-twice)" in text
    assert "`make x`, 100 s, Python" in text


def test_what_failed_is_not_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    record = records.Record("leaks", "Leaks", {"fits": 3}, "Nothing.", "make leaks", 1.0)
    with pytest.raises(SystemExit, match="leaks: not recorded, because something failed"):
        record.write(failed=True)
    assert not list(tmp_path.iterdir())
    record.write(failed=False)
    assert records.read_all() == [record]


@pytest.mark.parametrize("program", [covered, faults])
def test_coverage_and_faults_with_failing_tests_are_not_recorded(tmp_path, monkeypatch, program):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    monkeypatch.setattr("sys.argv", ["program", "--record"])
    monkeypatch.setattr(pytest, "main", lambda *_, **__: pytest.ExitCode.TESTS_FAILED)
    with pytest.raises(SystemExit, match="not recorded"):
        program.main()
    assert not list(tmp_path.iterdir())


def test_no_record_is_of_a_run_with_failing_tests():
    assert not [one.name for one in records.read_all() if "failing" in one.found]


def test_coverage_is_summed_up_by_package():
    numbers = {"num_statements": 10, "covered_lines": 9, "num_branches": 10, "covered_branches": 9, "excluded_lines": 1}
    files = {
        "src/untwist/theory/losses.py": {"summary": numbers},
        "src/untwist/report/page.py": {"summary": numbers | {"covered_lines": 10, "covered_branches": 10}},
        "src/untwist/distributed/dask.py": {"summary": numbers | {"covered_lines": 0}},
        "experiments/__init__.py": {"summary": numbers},
    }
    figures = covered.summarise(files, 12.0).figures
    assert figures["lines"] == 40
    assert figures["per cent of lines"] == 70.0
    assert figures["per cent of both, untwist.report"] == 100.0
    assert figures["per cent of both, the library itself"] == 67.5
    assert figures["modules below 95 % for a reason"] == "experiments 90.0 %, untwist.distributed.dask 45.0 %"
    assert figures["modules below 95 % otherwise"] == "untwist.theory.losses 90.0 %"


def test_excuses_and_lists_of_tests_name_what_exists():
    for module in (*covered.EXCUSES, *covered.APART):
        assert importlib.util.find_spec(module), module
    assert len(mutate.list_modules()) > 10
    for pattern in mutate.MUTATED:
        assert list(mutate.SOURCE.glob(pattern)), pattern
    for pattern in [one for further in mutate.FURTHER_TESTS.values() for one in further]:
        assert list(mutate.TESTS.glob(pattern)), pattern
    for module in mutate.list_modules():
        assert mutate.find_tests(module), module
    for name in faults.FILES:
        assert len(list(faults.TESTS.rglob(name))) == 1, name


# ---- the soak ----


def draw_looks(rng, *, slope=0.0, files=6, threads=5, children=0, n_looks=200):
    """What a process holds in one look after the other: memory goes up and down by some MB."""
    return [
        Held(10 * look, int(260e6 + slope * 10 * look + rng.normal(scale=3e6)), files, threads, children)
        for look in range(n_looks)
    ]


MOST = Held(42, 280_000_000, 6, 5, 0)


@pytest.mark.parametrize("seed", range(20))
def test_a_soak_that_is_flat_passes(seed):
    assert soak.judge_growth(draw_looks(np.random.default_rng(seed)), MOST) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_soak_tells_of_a_model_that_every_operation_leaves_behind(seed):
    (found,) = soak.judge_growth(draw_looks(np.random.default_rng(seed), slope=10_000.0), MOST)
    assert re.match(r"memory grows by (9|10),\d\d\d bytes per operation", found)


@pytest.mark.parametrize("what", ["files", "threads", "children"])
def test_a_soak_tells_of_one_more_of_what_can_be_counted(what):
    looks = draw_looks(np.random.default_rng(0))
    looks[-1] = replace(looks[-1], **{what: getattr(MOST, what) + 1})
    (found,) = soak.judge_growth(looks, MOST)
    assert what in found


def test_a_soak_of_few_looks_says_nothing():
    (found,) = soak.judge_growth(draw_looks(np.random.default_rng(0), n_looks=9), MOST)
    assert "say nothing" in found


def test_a_wrong_answer_is_told_with_the_line_that_gives_it_again(monkeypatch, capsys):
    def fail(rng):
        raise AssertionError(f"{rng.integers(10)} is wrong")

    monkeypatch.setitem(soak.OPERATIONS, "fork", fail)
    run = soak.Soak(0)
    run.do("fork", 7)
    assert run.n_done == 1
    assert "again: python -m reliability.soak --replay fork 7" in run.failures[0]
    assert "AssertionError" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", soak.OPERATIONS)
@pytest.mark.filterwarnings("ignore")
def test_every_operation_of_a_soak_holds(name):
    soak.OPERATIONS[name](np.random.default_rng(0))


def test_what_a_process_holds_is_counted():
    before = read_held(0)
    with open(os.devnull) as _:
        assert read_held(1).files == before.files + 1
    assert read_held(2).files == before.files
    assert before.resident_bytes > 1e6
    assert before.threads >= 1


def test_a_slope_has_an_error():
    rng = np.random.default_rng(0)
    done = np.arange(500)
    slopes = [find_slope(done, 3.0 * done + rng.normal(scale=50.0, size=500))[0] for _ in range(300)]
    assert np.std(slopes) == pytest.approx(find_slope(done, 3.0 * done + rng.normal(scale=50.0, size=500))[1], rel=0.15)
    assert np.mean(slopes) == pytest.approx(3.0, abs=0.01)


def test_a_record_names_the_code_that_it_was_measured_on(tmp_path, monkeypatch):
    for folder in ("src/untwist", "cpp"):
        (tmp_path / folder).mkdir(parents=True)
    names = [records.name_code(tmp_path)]
    for name, content in [("src/untwist/a.py", "1"), ("src/untwist/a.py", "2"), ("cpp/b.hpp", "2"), ("cpp/c.hpp", "")]:
        (tmp_path / name).write_text(content)
        names.append(records.name_code(tmp_path))
    assert len(set(names)) == 5
    (tmp_path / "src/untwist/a.pyc").write_text("3")
    assert records.name_code(tmp_path) == names[-1]
    of_core = records.name_code(tmp_path, records.CORE_FOLDERS)
    (tmp_path / "src/untwist/a.py").write_text("3")
    assert records.name_code(tmp_path, records.CORE_FOLDERS) == of_core
    assert records.name_code(tmp_path) != names[-1]
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    record = records.Record("leaks", "Leaks", {"fits": 3}, "Nothing.", "make leaks", 1.0)
    record.write(failed=False)
    assert record.code == records.name_code()
    assert f"code {record.code}." in records.render(records.read_all())
