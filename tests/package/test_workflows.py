"""What a forge runs is what `make` runs."""

import re
import tomllib
from pathlib import Path

from reliability.lowest import EXTRAS, SMALL_BUILDS, list_lowest

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
    assert list_targets((ROOT / ".ci/run").read_text()) | {"test-properties", "test-lowest"} == set(listed.split())


def test_nothing_is_published_before_all_else_is_done():
    wheels = (ROOT / ".github/workflows/wheels.yml").read_text()
    assert list_targets(wheels) == {"sdist", "test-lowest"}
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


def test_the_oldest_versions_are_all_that_is_asked_for():
    of_extras = SETTINGS["project"]["optional-dependencies"]
    asked = [*SETTINGS["project"]["dependencies"], *(one for extra in EXTRAS for one in of_extras[extra])]
    names = [one.partition(">=")[0] for one in asked]
    assert [one.partition("==")[0] for one in list_lowest()] == [SMALL_BUILDS.get(name, name) for name in names]


def test_every_extra_that_is_named_exists():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    text = "\n".join(file.read_text() for file in files)
    in_words = [one for group in re.findall(r'(?:untwist|install "\.)\[([a-z,]+)\]', text) for one in group.split(",")]
    named = {*in_words, *re.findall(r'extra="([a-z]+)"', text)}
    assert named <= set(SETTINGS["project"]["optional-dependencies"])
    assert {"cli", "dask", "export", "plot", "ray", "shap", "spark", "xgboost"} <= named
