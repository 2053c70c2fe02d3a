"""What share of injected faults the tests catch; ``python -m reliability.mutate --record`` keeps the figures.

One session of pytest collects the tests; then each fault of `mutants` gets a fork of it that swaps the code of one
function and runs the tests that call that function, the quickest first, up to the first that fails: as many as take
PATIENCE seconds without a fault, so the share caught is a lower bound. A fault outside of functions, or in one that
no test calls after the import, gets a process of its own with all the tests of the module. A fork that does not end is
a fault caught. Seconds are those of the processor, so that a busy machine makes no difference. What survives and is
judged the same program, or as good, is listed with a reason in equivalent_mutants.json; what was tried is in
results/mutants.

    python -m reliability.mutate --sample 100 --module theory.losses noise   # more faults, of a module and of a room
    python -m reliability.mutate --seed 7 --processes 8                      # others; as many at a time
    python -m reliability.mutate --survivors                                 # those that survived the last run alone
    python -m reliability.mutate --summary --record                          # what all runs before have found
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import gc
import importlib
import importlib.machinery
import itertools
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest

from reliability.mutants import Mutant, list_mutants, mutate
from reliability.records import Record

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "untwist"
TESTS = ROOT / "tests"
EQUIVALENT = Path(__file__).parent / "equivalent_mutants.json"
RESULTS = ROOT / "results" / "mutants"
MUTATED = (  # These modules get faults, as patterns within src/untwist.
    "arguments.py",
    "twisters/*.py",
    "theory/*.py",
    "noise/*.py",
    "boosting/algorithm.py",
    "boosting/runs.py",
    "data/folds.py",
    "data/labels.py",
    "column_rules.py",
    "training_data.py",
    "near_duplicates.py",
    "fitting.py",
    "learning_noise.py",
    "automatic/*.py",
    "audit/*.py",
    "files/*.py",
)
FURTHER_TESTS = {  # Tests outside of its own folder that look at a module closely, as patterns within tests.
    "arguments": ("package/test_arguments.py",),
    "audit.findings": ("report/test_report.py",),
    "automatic": ("classifier/*.py",),
    "boosting": ("theory/test_certificate.py", "classifier/*.py"),
    "data.folds": ("automatic/*.py",),
    "files": ("classifier/test_fitted_model.py",),
    "column_rules": ("boosting/test_column_rules.py", "boosting/test_monotone_columns.py"),
    "fitting": ("classifier/*.py",),
    "learning_noise": ("automatic/*.py", "any_model/*.py"),
    "near_duplicates": ("data/test_near_duplicate_rows.py",),
    "theory": ("boosting/test_boosting.py",),
    "training_data": ("classifier/*.py", "data/test_batches.py"),
    "twisters": ("test_twisters.py", "theory/test_theory_invariants.py"),
}
NOT_IN_FORKS = (TESTS / "classifier/test_concurrency.py",)  # A fork inside of a fork fails without any fault.
TARGET = 0.9  # This share of a module's faults should be caught.
PATIENCE = 20.0  # Seconds of tests, as they take without a fault, that each fault is given.
# On a busy machine a process may wait this many seconds of the clock for one of the processor.
CLOCK_PER_PROCESSOR_SECOND = 20.0
# Exit statuses of a fork.
SURVIVED = 0
CAUGHT = 1
UNFIT = 77


def list_modules() -> list[str]:
    """The modules that get faults, as names within the package: `theory.losses`."""
    paths = [path for pattern in MUTATED for path in sorted(SOURCE.glob(pattern)) if path.name != "__init__.py"]
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in paths]


def find_source(module: str) -> Path:
    """The file of a module."""
    return SOURCE / f"{module.replace('.', '/')}.py"


def find_tests(module: str) -> list[Path]:
    """The tests of a module: those of the folder that mirrors its own, and those that look at it from elsewhere."""
    folder, _, name = module.rpartition(".")
    patterns = [f"{folder.replace('.', '/')}/test_*.py" if folder else f"test_{name}.py"]
    for place, further in FURTHER_TESTS.items():
        if f"{module}.".startswith(f"{place}."):
            patterns += further
    found = {path: None for pattern in patterns for path in sorted(TESTS.glob(pattern)) if path.match("test_*.py")}
    return [path for path in found if path not in NOT_IN_FORKS]


def main() -> int:
    """Exit status 0, or that of pytest if the tests fail without any fault."""
    parser = argparse.ArgumentParser(
        prog="python -m reliability.mutate", description="Which injected faults do the tests catch?"
    )
    parser.add_argument(
        "--module", nargs="*", default=list_modules(), metavar="NAME", help="a module, or a room for all of its"
    )
    parser.add_argument("--sample", type=int, default=60, help="faults of each module, drawn with a seed; 0: all")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--processes", type=int, default=1, help="so many faults are tried at a time")
    parser.add_argument("--survivors", action="store_true", help="only those that survived before")
    parser.add_argument("--summary", action="store_true", help="try nothing, sum up what was tried before")
    parser.add_argument(
        "--record", action="store_true", help="write docs/reliability/mutation.json, of this and before"
    )
    parser.add_argument("--fresh", help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=float, default=math.inf, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fresh:
        limit_processor_time(arguments.limit)
        return run_with_fault(json.loads(arguments.fresh))
    modules = [one for one in list_modules() if any(f"{one}.".startswith(f"{name}.") for name in arguments.module)]
    if not modules:
        parser.error(f"no module gets faults in {' '.join(arguments.module)}")
    status = 0 if arguments.summary else try_faults(modules, arguments)
    if status:
        return status
    record = summarise()
    print(record.found)
    if arguments.record:
        record.write(failed=False)
    return 0


def try_faults(modules: list[str], arguments: argparse.Namespace) -> int:
    """Try the faults of these modules in one session of pytest; its exit status."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    faults = choose_faults(modules, arguments)
    session = Forks(faults, renew=not arguments.survivors, processes=arguments.processes)
    files = {path: None for module in modules for path in find_tests(module)}
    paths = [*map(str, files), *(str(find_source(module)) for module in modules)]
    for module in modules:
        importlib.import_module(f"untwist.{module}")  # Pytest would rewrite what it imports by itself.
    return int(pytest.main(["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", *paths], plugins=[session]))


def choose_faults(modules: list[str], arguments: argparse.Namespace) -> list[Mutant]:
    """The faults to try, module by module."""
    faults = []
    for module in modules:
        every = list_mutants(module, find_source(module).read_text())
        if arguments.survivors:
            alive = {
                key for key, caught in read_results(module)["results"].items() if not caught
            } - read_equivalent().keys()
            faults += [one for one in every if one.key in alive]
        elif arguments.sample and arguments.sample < len(every):
            drawn = random.Random(arguments.seed).sample(every, arguments.sample)
            faults += sorted(drawn, key=lambda one: (one.line, one.node, one.number))
        else:
            faults += every
    return faults


# ---- the session ----


class Forks:
    """A plugin of pytest: instead of running the collected tests it tries the faults, each in a fork."""

    def __init__(self, faults: list[Mutant], *, renew: bool, processes: int) -> None:
        self.faults = faults
        self.renew = renew
        self.processes = processes
        self.failed = False
        self.calls: dict[str, dict[str, list[str]]] = {}  # The tests that call a function, by its module and name.
        self.seconds: dict[str, float] = {}
        self.known: list[FunctionType] = []  # The functions of the package, without those inside of others.

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try the faults in place of the tests."""
        if session.testsfailed:
            return True
        with tempfile.TemporaryDirectory() as folder:
            watched = Path(folder) / "calls.json"
            if run_in_fork(lambda: self.watch(session, watched), math.inf) != 0:
                raise session.Failed("the tests fail as they are")
            self.calls, self.seconds = json.loads(watched.read_text())
        self.known = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
        self.known = [one for one in self.known if one.__code__.co_filename.startswith(str(SOURCE))]
        gc.freeze()
        for module, faults in itertools.groupby(self.faults, key=lambda fault: fault.module):
            begin, tried = time.perf_counter(), list(faults)
            # Every thread waits for the fork of its fault.
            with ThreadPoolExecutor(self.processes) as threads:
                caught = list(threads.map(lambda fault: self.is_caught(session, fault), tried))
            results = {fault.key: one for fault, one in zip(tried, caught, strict=True)}
            seconds = time.perf_counter() - begin
            for key in (key for key, one in results.items() if not one):
                print(f"SURVIVED {module} {key}")
            print(f"{module}: {sum(caught)} of {len(caught)} caught in {seconds:.0f} s", flush=True)
            write_results(module, results, seconds, renew=self.renew)
        return True

    def watch(self, session: pytest.Session, file: Path) -> int:
        """Run all tests as they are and write to a file which functions each of them calls, and its seconds."""
        modules = {fault.module for fault in self.faults}
        watcher = coverage.Coverage(data_file=None, include=[str(find_source(module)) for module in modules])
        shared = SharedFixtures(watcher)
        session.config.pluginmanager.register(shared)
        watcher.start()
        for item, following in pair_with_next(session.items):
            shared.switch(item.nodeid)
            begin = read_processor_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self.seconds[item.nodeid] = read_processor_time() - begin
            if self.failed:
                print(f"\n{item.nodeid} fails as it is")
                sys.stdout.flush()
                return 1
        watcher.stop()
        data = watcher.get_data()
        users = defaultdict(set)  # The tests that use a fixture which outlives a test.
        for item in session.items:
            for definitions in getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}).values():
                users[name_fixture(definitions[-1])].add(item.nodeid)
        calls: dict[str, dict[str, list[str]]] = {}
        for module in modules:
            path = find_source(module)
            by_line = data.contexts_by_lineno(str(path))
            found = defaultdict(set)
            for name, lines in find_lines(path.read_text()).items():
                for line in lines:
                    for context in by_line.get(line, ()):
                        found[name] |= users.get(context, {context})
            calls[module] = {name: sorted(found[name]) for name in found}
        file.write_text(json.dumps([calls, self.seconds]))
        return 0

    def is_caught(self, session: pytest.Session, fault: Mutant) -> bool:
        """Whether a test fails with the fault in, or does not end."""
        callers = set(self.calls[fault.module].get(fault.where, ()))
        places = [*find_tests(fault.module), find_source(fault.module)]
        items = [item for item in session.items if item.nodeid in callers and item.path in places]
        items.sort(key=lambda item: self.seconds[item.nodeid])
        spent = list(itertools.accumulate(self.seconds[item.nodeid] for item in items))
        items = items[: max(1, bisect.bisect_right(spent, PATIENCE))]
        if items and not fault.alone:
            # A fault may slow tests down and break none. 20 seconds more are for quick ones, whose times vary most.
            limit = 20.0 + 3.0 * sum(self.seconds[item.nodeid] for item in items)
            answer = run_in_fork(lambda: self.try_fault(items, fault), limit)
            if answer != UNFIT:
                return answer != SURVIVED
        usual = sum(seconds for name, seconds in self.seconds.items() if ROOT / name.split("::")[0] in places)
        # The same, and this process also has to import everything and to collect the tests.
        limit = 30.0 + 3.0 * usual
        command = [
            sys.executable,
            "-m",
            "reliability.mutate",
            "--fresh",
            json.dumps(vars(fault)),
            "--limit",
            str(limit),
        ]
        try:
            done = subprocess.run(command, capture_output=True, timeout=CLOCK_PER_PROCESSOR_SECOND * limit, cwd=ROOT)
            return done.returncode != 0
        except subprocess.TimeoutExpired:
            return True

    def try_fault(self, items: list[pytest.Item], fault: Mutant) -> int:
        """Swap the code and run tests up to the first that fails."""
        for descriptor in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        if not swap_code(self.known, fault):
            return UNFIT
        for item, following in pair_with_next(items):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return CAUGHT
        return SURVIVED


class SharedFixtures:
    """What a fixture of a module or session calls is noted down for all its users, not for the first alone."""

    def __init__(self, watch: coverage.Coverage) -> None:
        self.watch = watch
        self.context = ""

    def switch(self, context: str) -> None:
        """Note down what is called from here on for this test or fixture."""
        self.context = context
        self.watch.switch_context(context)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Note down what a fixture calls under its own name."""
        before = self.context
        if fixturedef.scope != "function":
            self.switch(name_fixture(fixturedef))
        result = yield
        self.switch(before)
        return result


def name_fixture(fixturedef: Any) -> str:
    """A name under which coverage notes down what a fixture calls."""
    return f"fixture {fixturedef.baseid} {fixturedef.argname}"


def pair_with_next(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Each with the next one."""
    return zip(items, [*items[1:], None], strict=True)


def read_processor_time() -> float:
    """Seconds of the processor that this process and those of its children that have ended took so far."""
    return sum(os.times()[:4])


def limit_processor_time(seconds: float) -> None:
    """End this process once it has taken so much time of the processor, on top of what it took before."""
    if math.isfinite(seconds):
        allowed = math.ceil(time.process_time() + seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (allowed, allowed))


def run_in_fork(task: Any, limit: float) -> int:
    """The number that `task` returns in a fork of this process; CAUGHT if it dies or takes longer than `limit`.

    The limit is one of processor time. A fork that waits for something that never comes takes none, so that it ends
    after CLOCK_PER_PROCESSOR_SECOND times as many seconds of the clock.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = CAUGHT
        try:
            os.setpgid(0, 0)
            limit_processor_time(limit)
            status = task()
        finally:
            os._exit(status)
    deadline = time.monotonic() + CLOCK_PER_PROCESSOR_SECOND * limit
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done and os.WIFEXITED(status):
            return os.WEXITSTATUS(status)
        if done:  # What the fork has started must not outlive it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            return CAUGHT
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return CAUGHT


# ---- code ----


def list_codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those inside it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from list_codes(inner)


def find_lines(source: str) -> dict[str, set[int]]:
    """By the name of a function its lines."""
    lines = defaultdict(set)
    for code in list_codes(compile(source, "module", "exec")):
        name = code.co_qualname.replace(".<locals>", "")
        for outer in (name, *(name[:place] for place, sign in enumerate(name) if sign == ".")):
            lines[outer] |= {line for _, _, line in code.co_lines() if line and line != code.co_firstlineno}
    return lines


def swap_code(known: list[FunctionType], fault: Mutant) -> bool:
    """Give every function of the module the code it has with the fault in; False if one cannot have it."""
    path = find_source(fault.module)
    new = {(code.co_qualname, code.co_firstlineno): code for code in list_codes(compile_with(fault))}
    for function in known:
        old = function.__code__
        if old.co_filename != str(path) or (old.co_qualname, old.co_firstlineno) not in new:
            continue
        code = new[old.co_qualname, old.co_firstlineno]
        if code == old:
            continue
        if code.co_freevars != old.co_freevars:
            return False
        function.__code__ = code
    return True


def compile_with(fault: Mutant) -> CodeType:
    """The code of the module with the fault in."""
    path = find_source(fault.module)
    return compile(mutate(path.read_text(), fault), str(path), "exec", dont_inherit=True)


def run_with_fault(fields: dict[str, Any]) -> int:
    """Import the module with the fault in and run all its tests; this process is for that alone."""
    fault = Mutant(**fields)
    path = str(find_source(fault.module))
    usual = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        return compile_with(fault) if loader.path == path else usual(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    importlib.import_module(f"untwist.{fault.module}")  # Pytest would read the file by itself.
    tests = [path, *map(str, find_tests(fault.module))]
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))


# ---- the record ----


def read_results(module: str) -> dict[str, Any]:
    """By fault whether it was caught, and the seconds that took."""
    file = RESULTS / f"{module}.json"
    return json.loads(file.read_text()) if file.exists() else {"results": {}, "seconds": 0.0}


def write_results(module: str, results: dict[str, bool], seconds: float, *, renew: bool) -> None:
    """Write them to a file, in place of the one before, or add to it."""
    before = {"results": {}, "seconds": 0.0} if renew else read_results(module)
    now = {"results": before["results"] | results, "seconds": before["seconds"] + seconds}
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{module}.json").write_text(json.dumps(now, indent=1) + "\n")


def read_equivalent() -> dict[str, str]:
    """By fault the reason why no test can or should catch it."""
    return {key: row["reason"] for row in json.loads(EQUIVALENT.read_text()) for key in row["mutants"]}


def summarise() -> Record:
    """The figures of all modules that were tried, as far as they are as they were."""
    excused = read_equivalent()
    totals: Counter[str] = Counter()
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    low = []
    seconds = 0.0
    for module in list_modules():
        every = {fault.key for fault in list_mutants(module, find_source(module).read_text())}
        results = {key: caught for key, caught in read_results(module)["results"].items() if key in every}
        if not results:
            continue
        tally = Counter(tried=len(results), caught=sum(results.values()), drawn_from=len(every))
        tally["equivalent"] = sum(key in excused for key, caught in results.items() if not caught)
        real = tally["tried"] - tally["equivalent"]
        if tally["caught"] < TARGET * real:
            low.append(f"{module} {tally['caught']} of {real}")
        rooms[name_room(module)] += tally
        totals += tally
        seconds += read_results(module)["seconds"]
    real = totals["tried"] - totals["equivalent"]
    low_end, high_end = wilson(totals["caught"], real)
    share = 100 * totals["caught"] / real
    return Record(
        name="mutation",
        title="Faults injected into the code, and the share that the tests catch",
        figures={
            "faults tried": totals["tried"],
            "caught": totals["caught"],
            "equivalent": totals["equivalent"],
            "survived": real - totals["caught"],
            "per cent caught": round(share, 1),
            **{room: describe(tally) for room, tally in rooms.items()},
            f"modules below {100 * TARGET:.0f} %": ", ".join(low) or "none",
        },
        found=f"{totals['caught']} of {real} faults caught, {share:.1f} % (95 % interval {low_end:.1f} to "
        f"{high_end:.1f} %); {totals['equivalent']} more make no difference that a test should see, each with its "
        "reason in `reliability/equivalent_mutants.json`.",
        command="make mutants",
        seconds=round(seconds, 1),
    )


def name_room(module: str) -> str:
    """The room of a module where all of the room gets faults, else the module itself."""
    room = module.partition(".")[0]
    return room if f"{room}/*.py" in MUTATED else module


def describe(tally: Counter[str]) -> str:
    """How many faults of a room were caught, in words."""
    real = tally["tried"] - tally["equivalent"]
    low, high = wilson(tally["caught"], real)
    share = 100 * tally["caught"] / real
    return (
        f"{tally['caught']} of {real} caught, {share:.0f} % ({low:.0f} to {high:.0f} %); "
        f"{tally['equivalent']} equivalent; drawn from {tally['drawn_from']}"
    )


def wilson(hits: int, tries: int) -> tuple[float, float]:
    """95 % interval of a share, in per cent (Wilson's)."""
    z, share = 1.96, hits / tries
    middle = share + z * z / (2 * tries)
    half = z * math.sqrt(share * (1 - share) / tries + z * z / (4 * tries * tries))
    return tuple(100 * (middle + sign * half) / (1 + z * z / tries) for sign in (-1, 1))  # type: ignore[return-value]


if __name__ == "__main__":
    sys.exit(main())
