"""The tests of the package with the oldest and the newest versions of what it needs, on several versions of Python.

    python -m reliability.versions [3.11] [3.12] [3.13]

Each of `TRIALS` is an environment in build/versions, made anew, with the wheel and the libraries.
A version of Python that this machine does not have is named and left out. ``make test`` tries what .venv has.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "versions"

#: What the tests of these extras need is installed too.
EXTRAS = ("cli", "plot", "xgboost")

#: The same library under the name of its small build.
SMALL_BUILDS = {"xgboost": "xgboost-cpu"}

#: What tests are written with.
TOOLS = ("hypothesis", "lightgbm", "mpmath", "odfpy", "openpyxl", "polars", "pytest", "pytest-xdist")

#: Old libraries make newer versions of pytest and pyparsing warn: no fault of ours.
OLD_TOOLS = ("pyparsing<3.3", "pytest==8.*")

#: What comes as source alone; nothing else is built, since that could take any compiler.
WITHOUT_WHEELS = ("odfpy",)

#: From this version of Python on one wheel serves all: that of the stable ABI.
STABLE_ABI = (3, 12)

#: The rooms of the package. Programs of the checkout and tests of the checkout itself are not what is installed.
ROOMS = (
    "any_model",
    "audit",
    "automatic",
    "boosting",
    "classifier",
    "commands",
    "data",
    "explain",
    "export",
    "files",
    "noise",
    "objectives",
    "peers",
    "report",
    "review",
    "theory",
)


@dataclass(frozen=True)
class Trial:
    """A version of Python, and the versions of libraries to test with on it.

    Parameters
    ----------
    python : str
        The version of Python, such as "3.12".
    oldest : bool
        Whether libraries are the oldest that pyproject.toml allows; otherwise the newest.
    first_wheels : dict
        Libraries whose oldest allowed version has no wheel for this Python, with the first version that has.
    left_out : tuple of str
        Tests that fail with old versions for reasons outside of untwist. Nothing else may be left out.
    """

    python: str
    oldest: bool
    first_wheels: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def version(self) -> tuple[int, ...]:
        """The version of Python as numbers."""
        return tuple(map(int, self.python.split(".")))

    def list_requirements(self) -> list[str]:
        """List what pip has to install: of the core and the extras, and what tests are written with."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        required = [*project["dependencies"]]
        required += [one for extra in EXTRAS for one in project["optional-dependencies"][extra]]
        pairs = [one.split(">=") for one in required]
        if not self.oldest:
            return [*(SMALL_BUILDS.get(name, name) for name, _ in pairs), *TOOLS]
        pinned = {name: self.first_wheels.get(name, version) for name, version in pairs}
        return [*(f"{SMALL_BUILDS.get(name, name)}=={version}" for name, version in pinned.items()), *TOOLS, *OLD_TOOLS]


#: Tests that old versions of pandas and pyarrow fail.
WITH_PANDAS_2 = (
    # Old pandas reads the last bit of some numbers in a CSV file otherwise than the commands do.
    "tests/commands/test_probabilities.py::test_files_of_probabilities_of_other_forms_say_the_same",
    # Before version 3.1 pandas cuts a cell of a CSV file at a zero byte. UTF-16 text has such bytes, and so
    # have inputs of the fuzzer.
    "tests/commands/test_odd_tables.py::test_wide_text_in_an_archive_is_advised",
    "tests/files/test_corpus.py::test_kept_inputs_are_refused_or_harmless[csv]",
    # Old pandas warns of huge numbers that the test itself converts.
    "tests/classifier/test_invariants.py::test_the_library_a_table_comes_from_does_not_matter",
)
WITH_OLD_ARROW = (
    # Arrow writes views of strings to Parquet from a later version on.
    "tests/commands/test_odd_tables.py::test_what_is_written_has_the_types_of_the_file_wherever_cells_are_missing",
)
WITH_OLD_SCIKIT_LEARN = (
    # Before version 1.8 it reads names of columns by a protocol that new versions of polars do not have.
    "tests/classifier/test_scikit_learn.py::test_pipelines_that_hand_on_frames",
    "tests/classifier/test_table_formats.py::test_any_kind_of_table_gives_the_same_model",
    "tests/report/test_report.py::test_tables_of_other_kinds[polars]",
    # A splitter that is given no groups says something else of it.
    "tests/classifier/test_groups_and_folds.py::test_a_splitter_that_asks_for_groups_says_how_to_give_them",
)
WITH_NUMPY_1 = (
    # It wraps numbers that are too large for their type with a warning, where later versions raise an error.
    "tests/files/test_reading.py::test_names_are_sorted_different_and_of_their_type",
)

TRIALS = (
    Trial("3.11", oldest=True, left_out=(*WITH_PANDAS_2, *WITH_OLD_ARROW, *WITH_OLD_SCIKIT_LEARN, *WITH_NUMPY_1)),
    Trial("3.12", oldest=False),
    Trial(
        "3.13",
        oldest=True,
        first_wheels={"numpy": "2.1", "pandas": "2.2.3", "pyarrow": "18", "matplotlib": "3.9.2"},
        left_out=(*WITH_PANDAS_2, *WITH_OLD_ARROW, *WITH_OLD_SCIKIT_LEARN),
    ),
)


def find_python(version: str) -> str | None:
    """Find an interpreter: this one, one that is on the path, or one of pyenv's."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    of_pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *sorted(of_pyenv.glob(f"{version}.*/bin/python"))]
    return next((str(one) for one in candidates if one is not None and _is_of_version(one, version)), None)


def _is_of_version(python: str | Path, version: str) -> bool:
    """Tell whether a command starts that Python: a shim of pyenv may start none."""
    asked = subprocess.run(
        [python, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
    )
    return asked.stdout.strip() == version


def build_wheel(python: str, interface: str) -> Path:
    """Build the wheel for a binary interface."""
    folder = FOLDER / f"wheel-{interface}"
    shutil.rmtree(folder, ignore_errors=True)
    pip = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("untwist-*.whl")
    return wheel


def run_trial(trial: Trial, python: str, wheel: Path) -> bool:
    """Make the environment and run the tests in it; tell whether they passed."""
    environment = FOLDER / trial.python
    inside = environment / "bin" / "python"
    start = time.monotonic()
    subprocess.run([python, "-m", "venv", "--clear", str(environment)], check=True)
    requirements = trial.list_requirements()
    print(f"Python {trial.python} with", ", ".join(requirements), flush=True)
    pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    pip += ["--only-binary=:all:", f"--no-binary={','.join(WITHOUT_WHEELS)}"]
    subprocess.run([*pip, str(wheel), *requirements], check=True)
    made = time.monotonic()
    tests = [*(f"tests/{room}" for room in ROOMS), *map(str, sorted(ROOT.glob("tests/test_*.py")))]
    pytest = [str(inside), "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--numprocesses=auto"]
    pytest += ["--dist=worksteal", *(f"--deselect={test}" for test in trial.left_out)]
    if trial.oldest:
        pytest += ["--override-ini=xfail_strict=false"]  # What is known to fail with new versions may pass.
    tried = subprocess.run([*pytest, *tests], cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"})
    took = f"{made - start:.0f} s to make the environment, {time.monotonic() - made:.0f} s to test"
    print(f"Python {trial.python}: {'passed' if tried.returncode == 0 else 'FAILED'}, {took}", flush=True)
    return tried.returncode == 0


def main() -> None:
    """Run the trials."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [trial.python for trial in TRIALS]
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"of Python, among {', '.join(known)} (all)")
    asked = parser.parse_args().versions or known
    if unknown := set(asked) - set(known):
        raise SystemExit(f"No trial of Python {', '.join(sorted(unknown))}: choose among {', '.join(known)}")
    wheels: dict[str, Path] = {}
    passed = []
    for trial in TRIALS:
        if trial.python not in asked:
            continue
        if (python := find_python(trial.python)) is None:
            print(f"No Python {trial.python} on this machine: its tests are left out", flush=True)
            continue
        interface = "abi3" if trial.version >= STABLE_ABI else trial.python
        if interface not in wheels:
            wheels[interface] = build_wheel(python, interface)
        passed.append(run_trial(trial, python, wheels[interface]))
    if not passed:
        raise SystemExit(f"None of Python {', '.join(asked)} is on this machine: nothing was tried")
    raise SystemExit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
