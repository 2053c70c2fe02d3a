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

from records import Record

ROOT = Path(__file__).parent.parent
FOUND = (
    "One, on the way here: numbers that are not aligned, as fields of packed records are, were read as they lie. They "
    "are copied now, and refused at the border. Rare parts of the core (samples of many rows, sums of 64 bits, shares "
    "and copies of rows, starting scores, trees with more leaves than labels, an interruption) were added to what runs."
)


def printed(target: str) -> str:
    """What a make target prints; it must succeed."""
    print(f"make {target}", flush=True)
    done = subprocess.run(["make", target], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout + done.stderr


def main() -> None:
    """Run, count, keep."""
    start = time.perf_counter()
    engine, threads = (int(count) for count in re.findall(r"^(\d+) passed, 0 failed$", printed("sanitize"), re.M))
    tests = int(re.findall(r"(\d+) passed", printed("sanitize-module"))[-1])
    valgrind = int(re.findall(r"^(\d+) passed, 0 failed$", printed("valgrind"), re.M)[0])
    replayed = sum(1 for name in ("forest", "engine") for _ in (ROOT / "tests" / "corpus" / name).iterdir())
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
    ).write()


if __name__ == "__main__":
    main()
