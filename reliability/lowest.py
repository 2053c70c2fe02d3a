"""The oldest versions that pyproject.toml allows: an environment that has them, and the tests of the package in it.

``make test-lowest`` makes the environment in build/lowest. The newest versions are those of .venv.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / "build" / "lowest"

#: From this version of Python on there are no wheels of the oldest libraries.
NO_WHEELS_FROM = (3, 13)

#: What the tests of these extras need is pinned too.
EXTRAS = ("cli", "plot", "xgboost")

#: The same library under the name of its small build.
SMALL_BUILDS = {"xgboost": "xgboost-cpu"}

#: What tests are written with. Old libraries make newer versions of pytest and pyparsing warn: no fault of ours.
TOOLS = ("hypothesis", "lightgbm", "mpmath", "polars", "pyparsing<3.3", "pytest==8.*", "pytest-xdist")

#: Tests that fail with old versions for reasons outside of untwist. Nothing else may be left out.
NOT_WITH_OLD_VERSIONS = (
    # Arrow writes views of strings to Parquet from a later version on.
    "tests/commands/test_odd_tables.py::test_what_is_written_has_the_types_of_the_file_wherever_cells_are_missing",
    # Before version 3.1 pandas cuts a cell of a CSV file at a zero byte. UTF-16 text has such bytes, and so
    # have inputs of the fuzzer.
    "tests/commands/test_odd_tables.py::test_wide_text_in_an_archive_is_advised",
    "tests/files/test_corpus.py::test_kept_inputs_are_refused_or_harmless[csv]",
    # Old pandas reads the last bit of some numbers in a CSV file otherwise than the commands do.
    "tests/commands/test_probabilities.py::test_files_of_probabilities_of_other_forms_say_the_same",
    # Old pandas warns of huge numbers that the test itself converts.
    "tests/classifier/test_invariants.py::test_the_library_a_table_comes_from_does_not_matter",
)

#: The rooms of the package. Programs of the checkout and tests of the checkout itself are not what is installed.
ROOMS = ("audit", "automatic", "boosting", "classifier", "commands", "data", "explain", "export", "files", "noise",
         "objectives", "report", "review", "theory")  # fmt: skip


def list_lowest() -> list[str]:
    """List the requirements of the core and of the extras, each at the oldest version that it allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = [*project["dependencies"], *(one for extra in EXTRAS for one in project["optional-dependencies"][extra])]
    pairs = [one.split(">=") for one in required]
    return [f"{SMALL_BUILDS.get(name, name)}=={version}" for name, version in pairs]


def main() -> None:
    """Make the environment, and run the tests in it."""
    if sys.version_info >= NO_WHEELS_FROM:
        raise SystemExit("The oldest versions can be had for Python 3.11 and 3.12: make test-lowest PYTHON=python3.11")
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    lowest = list_lowest()
    print("Testing with", ", ".join(lowest), flush=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(ROOT), *lowest, *TOOLS], check=True)
    tests = [*(f"tests/{room}" for room in ROOMS), *map(str, sorted(ROOT.glob("tests/test_*.py")))]
    pytest = [str(python), "-m", "pytest", "--quiet", "--numprocesses=auto", "--dist=worksteal"]
    pytest += ["--override-ini=xfail_strict=false"]  # What is known to fail with new versions may pass with old ones.
    pytest += [*(f"--deselect={test}" for test in NOT_WITH_OLD_VERSIONS), *tests]
    raise SystemExit(subprocess.run(pytest, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}).returncode)


if __name__ == "__main__":
    main()
