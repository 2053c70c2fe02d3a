"""Property-based tests at length; ``python reliability/properties.py --record`` keeps the figures for the page.

The same tests as in `make test`, with UNTWIST_EXAMPLES times as many examples (20 unless it says otherwise), new ones
in every run. A failure is printed with a line that reproduces it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from records import Record

TESTS = Path(__file__).parent.parent / "tests"
FILES = ("test_invariants.py", "test_theory_invariants.py")


class Counting:
    """Which tests failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """As pytest tells it."""
        if report.failed:
            self.failed.append(report.nodeid)


def main() -> int:
    """Exit status: that of pytest."""
    os.environ.setdefault("UNTWIST_EXAMPLES", "20")
    counting, start = Counting(), time.perf_counter()
    options = ["--quiet", "-p", "no:cacheprovider", "-p", "no:xdist"]
    status = pytest.main([*options, *(str(TESTS / name) for name in FILES)], plugins=[counting])
    tried = sys.modules["strategies"].TRIED
    seconds, failures = time.perf_counter() - start, len(counting.failed)
    held = "all held" if not failures else f"{failures} did not hold: {', '.join(counting.failed)}"
    if "--record" not in sys.argv:
        return int(status)
    Record(
        name="properties",
        title="Properties of the public API on random data made to break them",
        figures={"properties": len(tried), "examples tried": sum(tried.values()), "failures": failures},
        found=f"{len(tried)} properties, {sum(tried.values()):,} examples: {held}",
        command="make test-properties",
        seconds=round(seconds, 1),
    ).write()
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
