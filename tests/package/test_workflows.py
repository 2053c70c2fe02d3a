"""What a forge runs is what `make` runs."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from reliability import versions
from reliability.versions import EXTRAS, SMALL_BUILDS, TOOLS, TRIALS

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())


def list_targets(text):
    """The targets that a text asks make for, those of a matrix too."""
    named = [one for line in re.findall(r"\bmake ([a-z][a-z -]*)$", text, flags=re.M) for one in line.split()]
    of_matrix = re.findall(r"target: \[(.*)\]", text)
    return {*named, *(one.strip() for line in of_matrix for one in line.split(","))}


def test_workflows_run_targets_that_exist():
    known = set(re.findall(r"^([a-z][a-z0-9-]*):.*##", (ROOT / "Makefile").read_text(), flags=re.M))
    asked = set().union(*(list_targets(path.read_text()) for path in WORKFLOWS))
    assert {"test", "docs", "sdist"} <= asked <= known


def test_a_forge_runs_all_that_must_pass_before_anything_lands():
    tests = (ROOT / ".github/workflows/tests.yml").read_text()
    assert list_targets(tests) == list_targets((ROOT / ".ci/run").read_text())


def test_before_a_release_all_of_that_passes_and_more():
    (listed,) = re.findall(r"^test-all: (.*?) *##", (ROOT / "Makefile").read_text(), flags=re.M)
    assert list_targets((ROOT / ".ci/run").read_text()) | {"test-properties"} == set(listed.split())


def test_nothing_is_published_before_all_else_is_done():
    wheels = (ROOT / ".github/workflows/wheels.yml").read_text()
    assert list_targets(wheels) == {"sdist", "test-versions"}
    jobs = re.findall(r"^  ([a-z]+):$", wheels.partition("\njobs:\n")[2], flags=re.M)
    (needed,) = re.findall(r"needs: \[(.*)\]", wheels)
    assert needed.split(", ") == jobs[:-1]
    assert jobs[-1] == "publish"


def test_the_versions_of_python_that_are_promised_are_tested_and_built():
    named = re.findall(r"Python :: (3\.\d+)", " ".join(SETTINGS["project"]["classifiers"]))
    (tested,) = re.findall(r"python: \[(.*)\]", (ROOT / ".github/workflows/tests.yml").read_text())
    assert SETTINGS["project"]["requires-python"] == f">={named[0]}"
    assert tested.replace('"', "").split(", ") == named
    assert SETTINGS["tool"]["cibuildwheel"]["build"].split() == [f"cp{one.replace('.', '')}-*" for one in named]


def test_the_oldest_and_the_newest_versions_are_those_of_all_that_is_asked_for():
    of_extras = SETTINGS["project"]["optional-dependencies"]
    asked = [*SETTINGS["project"]["dependencies"], *(one for extra in EXTRAS for one in of_extras[extra])]
    allowed = dict(one.split(">=") for one in asked)
    named = {SMALL_BUILDS.get(name, name): version for name, version in allowed.items()}
    for trial in TRIALS:
        listed = trial.list_requirements()
        assert set(TOOLS) <= set(listed)
        if not trial.oldest:
            assert listed == [*named, *TOOLS]
            continue
        pinned = dict(one.split("==") for one in listed[: len(named)])
        assert set(trial.first_wheels) <= set(pinned) == set(named)
        for name, version in pinned.items():
            given = trial.first_wheels.get(name)
            assert version == named[name] if given is None else read_version(given) > read_version(named[name]), name


def read_version(version):
    return tuple(map(int, version.split(".")))


def test_the_oldest_python_has_the_very_oldest_versions():
    trial = TRIALS[0]
    assert f">={trial.python}" == SETTINGS["project"]["requires-python"]
    assert trial.oldest
    assert not trial.first_wheels


def test_what_is_left_out_with_old_versions_is_there():
    for trial in TRIALS:
        for test in trial.left_out:
            path, _, name = test.partition("::")
            assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(), test


def test_rooms_that_are_tried_with_other_versions_are_there():
    assert [room for room in versions.ROOMS if not (ROOT / "tests" / room).is_dir()] == []


@pytest.mark.parametrize("there", [{"3.11", "3.12", "3.13"}, {"3.12"}, set()])
def test_a_missing_python_is_named_and_the_others_are_tried(monkeypatch, capsys, there):
    tried = []
    monkeypatch.setattr("sys.argv", ["versions"])
    monkeypatch.setattr(versions, "find_python", lambda version: f"python{version}" if version in there else None)
    monkeypatch.setattr(versions, "build_wheel", lambda python, interface: f"{python} {interface}")
    monkeypatch.setattr(versions, "run_trial", lambda trial, *given: tried.append((trial.python, *given)) or True)
    with pytest.raises(SystemExit) as ended:
        versions.main()
    assert ended.value.code == 0 if there else "nothing was tried" in ended.value.code
    assert {python for python, *_ in tried} == there
    told = capsys.readouterr().out
    assert {version for version in ("3.11", "3.12", "3.13") if f"No Python {version} on this" in told}.isdisjoint(there)
    assert told.count("its tests are left out\n") == 3 - len(there)
    if len(there) == 3:  # One wheel serves all from 3.12 on.
        assert [wheel for *_, wheel in tried] == ["python3.11 3.11", "python3.12 abi3", "python3.12 abi3"]


@pytest.mark.parametrize("outcome", [True, False])
def test_a_trial_that_fails_is_a_failure(monkeypatch, outcome):
    monkeypatch.setattr("sys.argv", ["versions", "3.11", "3.12"])
    monkeypatch.setattr(versions, "find_python", str)
    monkeypatch.setattr(versions, "build_wheel", lambda *given: None)
    monkeypatch.setattr(versions, "run_trial", lambda trial, *given: outcome or trial.python != "3.11")
    with pytest.raises(SystemExit) as ended:
        versions.main()
    assert ended.value.code == (0 if outcome else 1)


def test_an_unknown_version_of_python_is_refused(monkeypatch):
    monkeypatch.setattr("sys.argv", ["versions", "2.7"])
    with pytest.raises(SystemExit, match=r"No trial of Python 2\.7: choose among 3\.11, 3\.12, 3\.13"):
        versions.main()


def test_an_interpreter_is_found_on_the_path_or_with_pyenv(monkeypatch, tmp_path):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    assert versions.find_python(f"{sys.version_info[0]}.{sys.version_info[1]}") == sys.executable
    assert versions.find_python("3.99") is None
    python = tmp_path / "versions" / "3.99.1" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho 3.99\n")
    python.chmod(0o755)
    assert versions.find_python("3.99") == str(python)
    python.write_text("#!/bin/sh\necho 3.98\n")  # A shim that starts another one.
    assert versions.find_python("3.99") is None


def test_every_extra_that_is_named_exists():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    text = "\n".join(file.read_text() for file in files)
    in_words = [one for group in re.findall(r'(?:untwist|install "\.)\[([a-z,]+)\]', text) for one in group.split(",")]
    named = {*in_words, *re.findall(r'extra="([a-z]+)"', text)}
    assert named <= set(SETTINGS["project"]["optional-dependencies"])
    assert {"cli", "dask", "export", "plot", "ray", "shap", "spark", "xgboost"} <= named
