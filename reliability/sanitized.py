"""Runs pytest with the package in a folder instead of the installed one: see `make sanitize-module`."""

import sys

import pytest

folder, *arguments = sys.argv[1:]
sys.meta_path[:] = [finder for finder in sys.meta_path if "ditable" not in f"{finder!r} {type(finder).__module__}"]
sys.path.insert(0, folder)
import untwist._core  # noqa: E402

if not untwist._core.__file__.startswith(folder):
    sys.exit(f"{untwist._core.__file__} is not in {folder}")
sys.exit(pytest.main(arguments))
