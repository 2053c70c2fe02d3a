"""What a forge runs is what `make` runs."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


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
