"""The compiled core under sanitizers and valgrind: ``make sanitizers`` runs the make targets.

What they print is counted and kept in docs/reliability/sanitizers.json. The first report of a sanitizer ends a target,
and with it this program.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from reliability import corpus
from reliability.records import CORE_FOLDERS, Record, name_code

ROOT = Path(__file__).parent.parent
FOUND = (
    "One, on the way here: numbers that are not aligned, as fields of packed records are, were read as they lie. They "
    "are copied now, and refused at the border. Rare parts of the core (samples of many rows, sums of 64 bits, shares "
    "and copies of rows, starting scores, trees with more leaves than labels, an interruption) were added to what runs."
)


def run_target(target: str) -> str:
    """What a make target prints; it must succeed."""
    print(f"make {target}", flush=True)
    done = subprocess.run(["make", target], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout + done.stderr


def main() -> None:
    """Run the targets, count what they print, write it down."""
    start = time.perf_counter()
    passed = re.compile(r"^(\d+) passed, 0 failed$", re.M)
    engine, threads = (int(count) for count in passed.findall(run_target("sanitize")))
    tests = int(re.findall(r"(\d+) passed", run_target("sanitize-module"))[-1])
    valgrind = int(passed.findall(run_target("valgrind"))[0])
    replayed = sum(len(corpus.read_inputs(name)) for name in ("forest", "engine"))
    Record(
        name="sanitizers",
        title="The compiled core under sanitizers and valgrind",
        figures={
            "runs of the engine, address + undefined behaviour": engine,
            "runs of the engine, threads": threads,
            "runs of the engine, valgrind memcheck": valgrind,
            "inputs of the fuzzer replayed": replayed,
            "tests against a module built with the memory sanitizers": tests,
            "reports left": 0,
        },
        found=FOUND,
        command="make sanitizers",
        seconds=round(time.perf_counter() - start, 1),
        code=name_code(folders=CORE_FOLDERS),
    ).write(failed=False)  # A target that fails has ended this program before.


if __name__ == "__main__":
    main()
