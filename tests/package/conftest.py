"""The site of the documentation, built once for all tests that look at it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    for package in ("mkdocs", "jupytext"):
        pytest.importorskip(package, reason=f"the site is built with {package}")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    # `tests/examples` runs the notebooks; without their outputs the site takes seconds less.
    settings = os.environ | {"NO_MKDOCS_2_WARNING": "1", "UNTWIST_SITE_RUNS_NOTEBOOKS": "0"}
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=settings)
    assert built.returncode == 0, built.stderr
    return folder
