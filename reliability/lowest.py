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

#: What the tests of these extras need is pinned too.
EXTRAS = ("cli", "plot", "xgboost")

#: The same library under the name of its small build.
SMALL_BUILDS = {"xgboost": "xgboost-cpu"}

#: What tests are written with, in any version.
TOOLS = ("hypothesis", "mpmath", "pytest", "pytest-xdist")

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
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    lowest = list_lowest()
    print("Testing with", ", ".join(lowest), flush=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(ROOT), *lowest, *TOOLS], check=True)
    tests = [f"tests/{room}" for room in ROOMS]
    pytest = [str(python), "-m", "pytest", "--quiet", "--numprocesses=auto", "--dist=worksteal", *tests]
    raise SystemExit(subprocess.run(pytest, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}).returncode)


if __name__ == "__main__":
    main()
