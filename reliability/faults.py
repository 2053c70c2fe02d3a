"""Load, faults and hostile input: ``make faults`` runs the tests that provoke them and counts.

Writes docs/reliability/faults.json.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from reliability.records import Record

TESTS = Path(__file__).parent.parent / "tests"
FILES = {  # What the tests of a file provoke; the files are looked for in all folders of tests/.
    "test_concurrency.py": "many threads, forked and spawned workers, nesting, oversubscription",
    "test_signals.py": "Ctrl-C at any moment",
    "test_faults.py": "full disks, folders that refuse, killed processes, clocks, packages missing or too old",
    "test_distributed.py": "workers that die, refuse their rows, go on from a checkpoint",
    "test_dask.py": "a Dask cluster, and a worker of it that is killed",
    "test_clusters.py": "Ray and Spark, and a worker of each that is killed",
    "test_security.py": "hostile model files, tables, names and values",
    "test_reproducibility.py": "the same numbers as stored ones, on 1, 2 and 4 threads",
    "test_batches.py": "files cut off, changed or of the wrong kind between two passes",
}
FOUND = """\
Found on the way, and fixed with tests: prediction and binning of many rows did not hear Ctrl-C (up to 7 s), nor did the
command while it imports; weights of 1e250 on repeated rows broke folds; noise estimates, folds of copies and total
weights depended on the order of rows in their last digits; terminals were sent escape sequences from data; a tracker
whose worker had died raised an error of its own in the place of the cause."""


class PassedTests:
    """A plugin of pytest that counts the tests that passed, by file."""

    def __init__(self) -> None:
        self.passed: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one."""
        if report.when == "call" and report.passed:
            self.passed[Path(report.nodeid.split("::")[0]).name] += 1


def main() -> int:
    """Exit status: that of pytest."""
    counting = PassedTests()
    start = time.perf_counter()
    options = ["--quiet", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not browser"]
    status = pytest.main([*options, *(str(path) for name in FILES for path in TESTS.rglob(name))], plugins=[counting])
    figures: dict[str, int | float | str] = {words: counting.passed[name] for name, words in FILES.items()}
    Record(
        name="faults",
        title="Load, faults and hostile input, provoked",
        figures=figures | {"tests in all": counting.passed.total()},
        found=FOUND,
        command="make faults",
        seconds=round(time.perf_counter() - start, 1),
    ).write(failed=status != 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
