"""Which lines and branches the fast tests run; ``python -m reliability.covered --record`` keeps the figures.

Counted is what runs in the processes of pytest: what a test starts in a process of its own (commands, workers, the
tries of signals) is run but not counted, so the share is a lower bound. Every line that is missed is printed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from reliability.records import Record

TARGET = 95.0  # Per cent of lines and branches that the tests of each module should run.
EXCUSES = {  # A module, or all modules of a package, may be below the target because the rest is run elsewhere.
    "experiments": "runs in processes of its own, and needs CatBoost and cleanlab: `make arena`, `make bench`",
    "untwist.boosting.engines.xgboost": "needs a GPU in parts: `experiments/benchmarks/devices.py`",
    "untwist.commands.main": "is run by tests in processes of their own, where Ctrl-C and closed pipes can be tried",
    "untwist.data.workers": "connects workers, which are processes of their own: `make test-distributed`",
    "untwist.distributed": "starts processes and needs Dask, Ray and Spark: `make test-distributed`",
    "untwist.explain": "needs shap for some of its tables: `make test-integrations`",
    "untwist.export.onnx": "needs ONNX: `make test-integrations`",
    "untwist.export.treelite": "needs treelite: `make test-integrations`",
    "untwist.objectives.torch_module": "needs PyTorch: `make test-integrations`",
}
APART = ("experiments", "untwist.commands", "untwist.report")  # These are programs and pages around the library.


def main() -> int:
    """Exit status: that of pytest."""
    start = time.perf_counter()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COVERAGE_FILE"] = str(Path(folder) / "data")
        report = Path(folder) / "report.json"
        counted = [
            "--cov=untwist",
            "--cov=experiments",
            "--cov-branch",
            "--cov-report=term-missing:skip-covered",
            f"--cov-report=json:{report}",
        ]
        options = ["--quiet", "-p", "no:cacheprovider", "--numprocesses=auto", *counted]
        status = pytest.main(options)
        files = json.loads(report.read_text())["files"] if report.exists() else {}
    if "--record" in sys.argv:
        summarise(files, time.perf_counter() - start).write(failed=status != 0)
    return int(status)


def summarise(files: dict[str, Any], seconds: float) -> Record:
    """The record of a run: `files` is what coverage reports of each."""
    parts: dict[str, Counter[str]] = {"all": Counter()}
    low = []
    unexplained = []
    for path, file in files.items():
        name = name_module(path)
        numbers = Counter({key: value for key, value in file["summary"].items() if isinstance(value, int)})
        part = find_package(name, APART) or "the library itself"
        for key in ("all", part):
            parts.setdefault(key, Counter()).update(numbers)
        if share(numbers) < TARGET:
            (low if find_package(name, EXCUSES) else unexplained).append(f"{name} {share(numbers):.1f} %")
    whole = parts.pop("all")
    figures = {
        "lines": whole["num_statements"],
        "lines run": whole["covered_lines"],
        "branches": whole["num_branches"],
        "branches run": whole["covered_branches"],
        "per cent of lines": percent(whole["covered_lines"], whole["num_statements"]),
        "per cent of branches": percent(whole["covered_branches"], whole["num_branches"]),
        "per cent of both": share(whole),
        **{f"per cent of both, {name}": share(numbers) for name, numbers in sorted(parts.items())},
        "lines excused as out of reach": whole["excluded_lines"],
        f"modules below {TARGET:g} % for a reason": ", ".join(sorted(low)) or "none",
        f"modules below {TARGET:g} % otherwise": ", ".join(sorted(unexplained)) or "none",
    }
    lines, branches = figures["per cent of lines"], figures["per cent of branches"]
    return Record(
        name="coverage",
        title="Lines and branches that the fast tests run",
        figures=figures,
        found=f"{lines} % of lines and {branches} % of branches; "
        "what tests start in other processes is not counted, nor what needs packages or a GPU that the fast tests do "
        "without; `reliability/covered.py` has the reason for each module.",
        command="make coverage",
        seconds=round(seconds, 1),
    )


def name_module(path: str) -> str:
    """The name under which a file of src/ or experiments/ is imported."""
    parts = Path(path).with_suffix("").parts
    parts = parts[1:] if parts[0] == "src" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def find_package(module: str, packages: Iterable[str]) -> str | None:
    """Which of these packages or modules a module belongs to."""
    return next((one for one in packages if f"{module}.".startswith(f"{one}.")), None)


def share(numbers: Counter[str]) -> float:
    """Lines and branches together, in per cent."""
    run = numbers["covered_lines"] + numbers["covered_branches"]
    return percent(run, numbers["num_statements"] + numbers["num_branches"])


def percent(part: int, whole: int) -> float:
    """To a tenth, rounded down: 100 only if nothing is missing."""
    return int(1000 * part / whole) / 10 if whole else 100.0


if __name__ == "__main__":
    sys.exit(main())
