"""The page on reliability says what its records say, and how to do it again."""

import importlib.util
import re
from pathlib import Path

import pytest

from reliability import covered, faults, mutate, records

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
