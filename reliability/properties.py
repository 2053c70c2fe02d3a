"""Property-based tests at length; ``python -m reliability.properties --record`` keeps the figures for the page.

The same tests as in `make test`, with UNTWIST_EXAMPLES times as many examples (20 unless it says otherwise), new ones
in every run. A failure is printed with a line that reproduces it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from reliability.records import Record

TESTS = Path(__file__).parent.parent / "tests"


def main() -> int:
    """Exit status: that of pytest."""
    os.environ.setdefault("UNTWIST_EXAMPLES", "20")
    start = time.perf_counter()
    options = ["--quiet", "-p", "no:cacheprovider", "-p", "no:xdist"]
    status = pytest.main([*options, *(str(path) for path in sorted(TESTS.rglob("test_*invariants.py")))])
    seconds = time.perf_counter() - start
    tried = sys.modules["helpers.strategies"].TRIED
    if "--record" not in sys.argv:
        return int(status)
    Record(
        name="properties",
        title="Properties of the public API on random data made to break them",
        figures={"properties": len(tried), "examples tried": sum(tried.values()), "failures": 0},
        found=f"{len(tried)} properties, {sum(tried.values()):,} examples: all held",
        command="make test-properties",
        seconds=round(seconds, 1),
    ).write(failed=status != 0)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
