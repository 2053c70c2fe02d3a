"""Coverage-guided fuzzing: atheris drives the targets of targets.py, libFuzzer those in C++, for a budget of seconds.

``make fuzz BUDGET=300``, or ``python -m reliability.fuzz --seconds 300 csv core``; ``--executions 1000000`` goes on
in passes of so many seconds until there were as many, ``--processes 2`` fuzzes two targets at a time. What is found
is kept in build/fuzz/crashes; once it is fixed, ``python -m reliability.corpus add TARGET FILE`` keeps the case for
the tests. build/fuzz also holds the corpus that the next run goes on with; ``--keep`` puts the smallest inputs that
together reach all of it into tests/corpus, ``--record`` the figures into docs/reliability.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reliability import corpus
from reliability.records import Record
from reliability.targets import TARGETS, make_seeds

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "fuzz"
PYTHON = list(TARGETS)
COMPILED = ["forest", "engine"]
MOST_BYTES = {"model": 6000, "parquet": 8000, "workbook": 8000, "csv": 12000, "engine": 3000}
MOST_KEPT = 60_000  # This many bytes of one target are kept at most.
MOST_FILES = 100  # About so many inputs of one target are kept.
NO_ATHERIS = "no atheris here: pip install atheris"
NO_CLANG = "no clang++ with libFuzzer here (as root on Debian: apt-get install clang libclang-rt-dev)"
FLAGS = "-std=c++17 -O1 -g -Wall -Wextra -ffp-contract=off -pthread -DUNTWIST_VECTORISED= -fno-sanitize-recover=all"


def main() -> int:
    """Each target for its share of the time; 1 if one of them found something."""
    parser = argparse.ArgumentParser(
        prog="python -m reliability.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"of {', '.join([*PYTHON, *COMPILED])} (default all)"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together (default 60)")
    parser.add_argument("--executions", type=int, default=0, help="pass after pass until there were so many in all")
    parser.add_argument("--processes", type=int, default=1, help="so many targets are fuzzed at a time")
    parser.add_argument("--keep", action="store_true", help="minimise the corpus into tests/corpus")
    parser.add_argument("--record", action="store_true", help="write docs/reliability/fuzzing.json")
    options = parser.parse_args()
    targets = options.targets or [*PYTHON, *COMPILED]
    if strange := set(targets) - {*PYTHON, *COMPILED}:
        parser.error(f"no target {sorted(strange)[0]!r}")
    start = time.perf_counter()
    commands: dict[str, list[str]] = {}
    for name in targets:
        command = build(name) if name in COMPILED else find_driver(name)
        if command is None:
            print(f"{name:8} skipped: {NO_CLANG if name in COMPILED else NO_ATHERIS}")
        else:
            commands[name] = command
    runs: Counter[str] = Counter()
    seconds = max(1, round(options.seconds * options.processes / len(targets)))
    found: set[str] = set()
    while commands and not found:
        with ThreadPoolExecutor(options.processes) as threads:
            answers = threads.map(lambda name: fuzz(name, commands[name], seconds), commands)
            for name, (executed, crashed) in zip(commands, answers, strict=True):
                runs[name] += executed
                found |= {name} if crashed else set()
                ending = ", FOUND SOMETHING" if crashed else ""
                print(f"{name:8} {executed:>9} executions in {seconds} s{ending}", flush=True)
        if runs.total() >= options.executions:
            break
    if options.keep:
        for name, command in commands.items():
            keep(name, command)
    print(f"{runs.total()} executions, {len(found)} targets with findings" + (f": see {WORK}/crashes" if found else ""))
    if options.record:
        command = f"make fuzz BUDGET={options.seconds:.0f} EXECUTIONS={options.executions}"
        record(runs, len(found), command, time.perf_counter() - start)
    return int(bool(found))


def find_driver(name: str) -> list[str] | None:
    """The process of a target in Python; None without atheris."""
    return [sys.executable, "-m", "reliability.fuzz_python", name] if importlib.util.find_spec("atheris") else None


def build(name: str) -> list[str] | None:
    """The program of a target in C++ under the address and undefined-behaviour sanitizers; None without a compiler."""
    program = ROOT / "build" / f"fuzz-{name}"
    clang = os.environ.get("CLANG", "clang++")
    if shutil.which(clang) is None:
        return None
    program.parent.mkdir(exist_ok=True)
    source = ROOT / "reliability" / f"fuzz_{name}.cpp"
    command = [clang, *FLAGS.split(), "-fsanitize=fuzzer,address,undefined", "-o", str(program), str(source)]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode and "libclang_rt" in built.stderr:
        return None
    if built.returncode:
        sys.exit(built.stderr)
    return [str(program)]


def fuzz(name: str, command: list[str], seconds: int) -> tuple[int, bool]:
    """How many executions there were, and whether one of them failed."""
    folder = WORK / name
    crashes = WORK / "crashes"
    kept = WORK / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(exist_ok=True)
    corpus.unpack(WORK / "corpus", [name])
    for index, content in enumerate(make_seeds(name if name in PYTHON else "core")):
        (folder / f"seed-{index}").write_bytes(content)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={MOST_BYTES.get(name, 1000)}",
        "-timeout=20",
        "-rss_limit_mb=3000",
    ]
    options += ["-print_final_stats=1", "-verbosity=1", f"-artifact_prefix={crashes}/{name}-"]
    process = subprocess.run(
        [*command, *options, str(folder), str(kept)], capture_output=True, text=True, errors="replace", cwd=ROOT
    )
    (WORK / f"{name}.log").write_text(process.stdout + process.stderr)
    executed = re.findall(r"stat::number_of_executed_units: (\d+)", process.stderr)
    seen = executed or re.findall(r"^#(\d+)", process.stderr, re.M) or ["0"]
    if process.returncode:
        print("\n".join((process.stdout + process.stderr).splitlines()[-25:]))
    return int(seen[-1]), process.returncode != 0


def keep(name: str, command: list[str]) -> None:
    """Keep the smallest inputs that together reach all that was reached, as far as there is room."""
    found = WORK / name
    kept = WORK / "corpus" / name
    if name in COMPILED:  # Atheris cannot merge, but what it adds to its folder is small already.
        merged = WORK / f"{name}-merged"
        shutil.rmtree(merged, ignore_errors=True)
        merged.mkdir()
        options = ["-merge=1", f"-max_len={MOST_BYTES.get(name, 1000)}"]
        subprocess.run([*command, *options, str(merged), str(found), str(kept)], capture_output=True, check=True)
        found = merged
    inputs = {key: content for key, content in corpus.read_inputs(name).items() if key.startswith(corpus.FOUND)}
    size = 0
    files = [file for file in found.iterdir() if not file.name.startswith("seed-")]
    for file in sorted(files, key=lambda file: (file.stat().st_size, file.name))[:: 1 + len(files) // MOST_FILES]:
        size += file.stat().st_size
        if size <= MOST_KEPT:
            inputs[file.name[:12]] = file.read_bytes()
    corpus.write_inputs(name, inputs)


def record(runs: Counter[str], found: int, command: str, seconds: float) -> None:
    """Write down the figures of this run for the page."""
    kept = sum(len(corpus.read_inputs(target)) for target in corpus.list_targets())
    Record(
        name="fuzzing",
        title="Coverage-guided fuzzing of what reads foreign bytes",
        figures={"executions": runs.total(), **{f"executions: {name}": count for name, count in runs.items()}}
        | {"findings left": found, "inputs kept": kept},
        found=(ROOT / "reliability" / "found.md").read_text().strip(),
        command=command,
        seconds=round(seconds, 1),
    ).write(failed=found > 0)


if __name__ == "__main__":
    sys.exit(main())
