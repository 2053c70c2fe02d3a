"""Which lines and branches the fast tests run; ``python reliability/covered.py --record`` keeps the figures.

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
from pathlib import Path
from typing import Any

import pytest
from records import Record

ROOT = Path(__file__).parent.parent
TARGET = 95.0  # per cent of lines and branches, of each module
WHY = {  # a module may be below it for a reason: where the rest of it is run
    "cli": "Ctrl-C and closed pipes are tried in processes of their own",
    "collective": "the workers of a distributed fit are processes of their own: `make test-distributed`",
    "distributed.dask": "needs Dask: `make test-distributed`",
    "distributed.local": "starts processes: `make test-distributed`",
    "distributed.shard": "runs in the processes of workers: `make test-distributed`",
    "distributed.worker": "is the program of a worker: `make test-distributed`",
    "explain": "its tables for shap need shap: `make test-integrations`",
    "export.onnx": "needs ONNX: `make test-integrations`",
    "export.treelite": "needs treelite: `make test-integrations`",
    "objectives": "its module for PyTorch needs PyTorch: `make test-integrations`",
    "xgb.engine": "needs a GPU in parts: `experiments/benchmarks/devices.py`",
    "xgb.weights": "needs a GPU in parts: `experiments/benchmarks/devices.py`",
}
APART = ("commands", "report")  # programs and pages around the library, reported apart


def main() -> int:
    """Exit status: that of pytest."""
    start = time.perf_counter()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COVERAGE_FILE"] = str(Path(folder) / "data")
        report = Path(folder) / "report.json"
        counted = [
            "--cov=untwist",
            "--cov-branch",
            "--cov-report=term-missing:skip-covered",
            f"--cov-report=json:{report}",
        ]
        options = ["--quiet", "-p", "no:cacheprovider", "--numprocesses=auto", *counted]
        status = pytest.main(options)
        files = json.loads(report.read_text())["files"]
    if "--record" in sys.argv:
        record(files, time.perf_counter() - start, failed=bool(status))
    return int(status)


def record(files: dict[str, Any], seconds: float, *, failed: bool) -> None:
    """Write the figures down."""
    parts: dict[str, Counter[str]] = {}
    low, unexplained = [], []
    for path, file in files.items():
        module = Path(path).relative_to("src/untwist").with_suffix("")
        numbers = Counter({name: value for name, value in file["summary"].items() if isinstance(value, int)})
        part = module.parts[0] if module.parts[0] in APART else "the library itself"
        for key in ("all", part):
            parts.setdefault(key, Counter()).update(numbers)
        name = ".".join(module.parts)
        if share(numbers) < TARGET:
            (low if name in WHY else unexplained).append(f"{name} {share(numbers):.1f} %")
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
    Record(
        name="coverage",
        title="Lines and branches that the fast tests run",
        figures=figures,
        found=f"{lines} % of lines and {branches} % of branches{', with failing tests' if failed else ''}; "
        "what tests start in other processes is not counted, nor what needs packages or a GPU that the fast tests do "
        "without; `reliability/covered.py` has the reason for each module.",
        command="make coverage",
        seconds=round(seconds, 1),
    ).write()


def share(numbers: Counter[str]) -> float:
    """Lines and branches together, in per cent."""
    run = numbers["covered_lines"] + numbers["covered_branches"]
    return percent(run, numbers["num_statements"] + numbers["num_branches"])


def percent(part: int, whole: int) -> float:
    """To a tenth, a full hundred only if nothing is missing."""
    return int(1000 * part / whole) / 10 if whole else 100.0


if __name__ == "__main__":
    sys.exit(main())
