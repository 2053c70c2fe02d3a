"""The tests of other libraries against PILBoostClassifier; ``python -m reliability.peers --record`` keeps the figures.

Scikit-learn ships its tests: they run as they are installed, with a PILBoostClassifier in place of scikit-learn's own
classifiers (`stand_ins.py`; `plugin.py` has which for which). What does not apply or is known to be different is listed
with its reason in `differences.toml`. Every other test must pass, and what is listed as different must fail, so that
the list cannot grow old. LightGBM, XGBoost and cleanlab ship no tests: what theirs are about is written anew in
tests/peers, and runs with all other tests of this project.

    python -m reliability.peers sklearn.tests.test_calibration   # one module
    python -m reliability.peers --unlisted                       # as if nothing were listed
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from reliability.peers.plugin import DIFFERENT, MISSING, NOT_APPLICABLE, SUITES
from reliability.records import Record

ROOT = Path(__file__).parents[2]
CONFIGURATION = Path(__file__).with_name("pytest.ini")
PASSED = "passed"
NEVER_FITTED = "passed without a fit of ours"
NOT_INSTALLED = "skipped by scikit-learn itself"


class Outcomes:
    """A plugin of pytest that counts how tests end."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test: where it ends before its call, as skipped ones do, or by its call."""
        if report.when == "call" or (report.when == "setup" and report.skipped):
            self.counted[judge(report)] += 1


def judge(report: pytest.TestReport) -> str:
    """How a test ended."""
    if report.skipped:
        reason = getattr(report, "wasxfail", "") or str(report.longrepr)
        return next((kind for kind in (NOT_APPLICABLE, DIFFERENT, MISSING) if f"{kind}: " in reason), NOT_INSTALLED)
    if report.failed:
        return "failed"
    return PASSED if dict(report.user_properties)["fits"] else NEVER_FITTED


def main() -> int:
    """Exit status: that of pytest."""
    parser = argparse.ArgumentParser(prog="python -m reliability.peers", description=__doc__.split("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", default=list(SUITES), help="of tests (default: all)")
    parser.add_argument("--unlisted", action="store_true", help="expect nothing of any test")
    parser.add_argument("--record", action="store_true", help="write docs/reliability/peers.json")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["PYTHONPATH"] = str(ROOT)  # Processes that a test starts look here for the stand-ins.
    start = time.perf_counter()
    outcomes = Outcomes()
    options = ["--quiet", "-c", str(CONFIGURATION), "--numprocesses=auto", "--dist=worksteal"]
    options += ["--unlisted"] if arguments.unlisted else []
    status = pytest.main([*options, *arguments.modules], plugins=[outcomes])
    print(", ".join(f"{count} {words}" for words, count in sorted(outcomes.counted.items())))
    if arguments.record:
        summarise(outcomes.counted, time.perf_counter() - start).write(failed=status != 0)
    return int(status)


def summarise(counted: Counter[str], seconds: float) -> Record:
    """The record of a run of all suites."""
    applied = counted.total() - counted[NOT_APPLICABLE] - counted[NEVER_FITTED] - counted[NOT_INSTALLED]
    return Record(
        name="peers",
        title="The tests of scikit-learn, with PILBoostClassifier in place of its classifiers",
        figures={
            "modules of tests": len(SUITES),
            "tests": counted.total(),
            "tests that fit PILBoostClassifier": applied,
            "passed": counted[PASSED],
            "different for a reason": counted[DIFFERENT],
            "wanted and not there yet": counted[MISSING],
            "do not apply": counted[NOT_APPLICABLE],
            "pass without fitting it": counted[NEVER_FITTED],
            "skipped, as packages or hardware of scikit-learn's are not there": counted[NOT_INSTALLED],
        },
        found=f"Of scikit-learn {importlib.metadata.version('scikit-learn')}: HistGradientBoosting, GradientBoosting, "
        "forests, AdaBoost, calibration, inspection, meta-estimators and searches. What does not apply or is different "
        "is in `reliability/peers/differences.toml`, each with its reason. LightGBM, XGBoost and cleanlab ship no "
        "tests: what theirs are about is written anew in `tests/peers`, which `make test` runs.",
        command="make test-peers",
        seconds=round(seconds, 1),
    )


if __name__ == "__main__":
    sys.exit(main())
