"""Numbers that were recorded: a changed one is noticed and named, and none is missing."""

import numpy as np
import pytest

from reliability.recorded import __main__ as program
from reliability.recorded import comparing
from reliability.recorded.cases import CASES, NotInstalledError, case, select_cases
from reliability.recorded.comparing import TOLERANCE, compare_outputs, flatten, measure_distance

FAST = "given/paper"


def run_program(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["recorded", *map(str, arguments)])
    return program.main()


def test_every_case_is_recorded_and_nothing_else():
    recorded, libraries = comparing.read(program.PATH)
    assert set(recorded) == set(CASES)
    assert any(name.startswith("numpy ") for name in libraries)
    assert program.PATH.stat().st_size < 500_000
    for name, outputs in recorded.items():
        assert outputs, name
        assert all(values.dtype == np.float64 for values in outputs.values()), name
        assert sum(values.size for values in outputs.values()) > 0, name


@pytest.mark.parametrize(
    ("found", "largest", "is_same"),
    [
        ([1.0, 1000.0, np.nan, np.inf], 0.0, True),
        ([1.0 + 0.9 * TOLERANCE, 1000.0, np.nan, np.inf], TOLERANCE, True),
        ([1.0 + 2.0 * TOLERANCE, 1000.0, np.nan, np.inf], 2.0 * TOLERANCE, False),
        ([1.0, 1000.0 + 900.0 * TOLERANCE, np.nan, np.inf], 900.0 * TOLERANCE, True),
        ([1.0, 1000.0 + 2000.0 * TOLERANCE, np.nan, np.inf], 2000.0 * TOLERANCE, False),
        ([1.0, 1000.0, 0.0, np.inf], np.inf, False),
        ([np.nan, 1000.0, np.nan, np.inf], np.inf, False),
        ([1.0, 1000.0, np.nan, -np.inf], np.inf, False),
        ([1.0, 1000.0, np.nan], np.inf, False),
    ],
)
def test_numbers_are_the_same_within_the_tolerance(found, largest, is_same):
    distance, same = measure_distance(np.array([1.0, 1000.0, np.nan, np.inf]), np.array(found))
    assert same is is_same
    # The difference itself is rounded to a number near 1 or near 1000.
    assert distance == pytest.approx(largest, rel=0.3, abs=1e-16)


def test_outputs_that_are_gone_or_new_are_changes_and_the_farthest_comes_first():
    recorded = flatten({"same": 1.0, "far": [1, 2], "near": 0.5, "gone": 3})
    found = flatten({"same": 1.0, "far": [1, 4], "near": 0.5 + 1e-9, "new": True})
    differences = compare_outputs(recorded, found)
    changed = [one.what for one in differences if not one.is_same]
    assert changed == ["gone (is gone)", "new (was not recorded)", "far", "near"]
    assert [one.what for one in differences if one.is_same] == ["same"]


def test_what_is_written_is_read(tmp_path):
    cases = {
        "a/b": flatten({"none": np.zeros((0, 3)), "one": 1 / 3, "table": np.eye(2)}),
        "a/c": flatten({"x": np.nan}),
    }
    path = tmp_path / "numbers.npz"
    comparing.write(path, cases, ["numpy 2"])
    read, libraries = comparing.read(path)
    assert libraries == ["numpy 2"]
    assert {name: list(outputs) for name, outputs in read.items()} == {"a/b": ["none", "one", "table"], "a/c": ["x"]}
    assert all(np.array_equal(read[a][b], cases[a][b], equal_nan=True) for a in cases for b in cases[a])
    assert read["a/b"]["none"].shape == (0, 3)


def test_a_changed_number_is_named_by_the_program(tmp_path, monkeypatch, capsys):
    path = tmp_path / "numbers.npz"
    assert run_program(monkeypatch, FAST, "--record", path) == 0
    assert run_program(monkeypatch, FAST, "--against", path) == 0
    assert "All numbers of 1 cases are the same" in capsys.readouterr().out
    recorded, libraries = comparing.read(path)
    recorded[FAST]["score"][5] += 1e-9
    comparing.write(path, recorded, libraries)
    assert run_program(monkeypatch, FAST, "--against", path) == 1
    assert f"{FAST}: score by 1e-09" in capsys.readouterr().out
    assert run_program(monkeypatch, "given/prior", "--against", path) == 1
    assert "given/prior was not recorded" in capsys.readouterr().out


def test_recording_some_cases_keeps_the_others(tmp_path, monkeypatch):
    path = tmp_path / "numbers.npz"
    comparing.write(path, {"given/other": flatten({"x": 1.0})}, comparing.name_libraries())
    assert run_program(monkeypatch, FAST, "--record", path) == 0
    assert set(comparing.read(path)[0]) == {"given/other", FAST}
    comparing.write(path, {"given/other": flatten({"x": 1.0})}, ["numpy 0"])
    with pytest.raises(SystemExit, match="was recorded with numpy 0: record all cases in another file"):
        run_program(monkeypatch, FAST, "--record", path)


def test_a_case_that_fails_is_named_and_one_without_its_library_is_skipped(tmp_path, monkeypatch, capsys):
    def fail():
        raise RuntimeError("nothing there")

    def skip():
        raise NotInstalledError("zoo is not installed")

    path = tmp_path / "numbers.npz"
    comparing.write(path, {"given/other": flatten({"x": 1.0})}, comparing.name_libraries())
    monkeypatch.setitem(CASES, FAST, fail)
    monkeypatch.setitem(CASES, "given/prior", skip)
    assert run_program(monkeypatch, FAST, "given/prior", "--against", path) == 1
    printed = capsys.readouterr().out
    assert f"{FAST} FAILED with RuntimeError: nothing there" in printed
    assert "skipped: zoo is not installed" in printed
    assert run_program(monkeypatch, "given/prior", "--against", path) == 0


def test_cases_are_asked_for_by_name_or_section():
    assert list(select_cases([])) == list(CASES)
    assert list(select_cases([FAST])) == [FAST]
    assert {name.partition("/")[0] for name in select_cases(["audits", FAST])} == {"audits", "given"}
    with pytest.raises(SystemExit, match="no case given/zoo: sections are audits, automatic, elsewhere, given"):
        select_cases(["given/zoo"])
    with pytest.raises(ValueError, match="there are two cases given/paper"):
        case(CASES[FAST])
