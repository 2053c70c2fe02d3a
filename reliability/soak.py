"""An hour of everything in one process, which must stay right and must not hold more and more.

``make soak``: 60 minutes, or MINUTES. Operations are drawn at random (`reliability.operations`), each with a seed of
its own, and each checks its answers. Memory, files, threads and child processes are looked at after every tenth.

``python -m reliability.soak --replay NAME SEED`` does one operation again, the one that failed say.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from reliability.operations import OPERATIONS
from reliability.records import Record
from reliability.resources import Held, find_slope, read_held, settle_pools

#: Every operation is done so many times before anything is measured: modules are imported then, caches filled.
WARM_UP_ROUNDS = 3

#: What the process holds during this first share of the time is not judged: the allocator still finds its sizes.
WARM_UP_SHARE = 0.2

#: Operations between two looks.
EVERY = 10

#: Memory may grow by so many bytes per operation. The least that an operation could leave behind, a small model or
#: table, has about 10,000; the heap of a process that does many things in random order breaks up by some hundred each.
MOST_BYTES = 2_000.0

#: What the heap holds goes up and down by some MB with what was done last, so that the slope of a short run is
#: uncertain: it must be above what is allowed by so many standard errors. Of an hour these are some hundred bytes.
ERRORS = 3.0

#: Fewer looks than this say nothing of a slope.
FEWEST_LOOKS = 10


@dataclass
class Soak:
    """What was done, and what the process held meanwhile."""

    seed: int
    done: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    settled: list[Held] = field(default_factory=list)
    most_before: Held | None = None

    @property
    def n_done(self) -> int:
        """The number of operations so far."""
        return sum(self.done.values())

    def do(self, name: str, seed: int) -> None:
        """Do an operation; what fails is told with the line that does it again."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                OPERATIONS[name](np.random.default_rng(seed))
        except (Exception, SystemExit) as error:
            again = f"python -m reliability.soak --replay {name} {seed}"
            self.failures.append(f"{name}: {type(error).__name__}: {error}; again: {again}")
            traceback.print_exc()
            print(self.failures[-1], flush=True)
        self.done[name] += 1

    def warm_up(self, rng: np.random.Generator) -> None:
        """Do everything a few times, and keep the most files, threads and children that were seen meanwhile."""
        seen = []
        for _ in range(WARM_UP_ROUNDS):
            for name in OPERATIONS:
                self.do(name, _draw_seed(rng))
                seen.append(read_held(self.n_done))
        self.most_before = Held(
            n_done=self.n_done,
            resident_bytes=max(one.resident_bytes for one in seen),
            files=max(one.files for one in seen),
            threads=max(one.threads for one in seen),
            children=max(one.children for one in seen),
        )

    def judge(self) -> list[str]:
        """Return what is wrong, in words; nothing where all is well."""
        return [*self.failures, *judge_growth(self.settled, self.most_before)]


def judge_growth(settled: list[Held], before: Held | None) -> list[str]:
    """Return what the process holds more and more of, in words.

    Parameters
    ----------
    settled : list of Held
        What it held at each look, once it had settled.
    before : Held or None
        The most that it held while it settled. Files, threads and children are whole and have no noise: none may ever
        be more than that.

    Returns
    -------
    list of str
    """
    if before is None or len(settled) < FEWEST_LOOKS:
        return [f"{len(settled)} looks at memory say nothing: take more minutes"]
    found = []
    slope, error = find_slope([one.n_done for one in settled], [one.resident_bytes for one in settled])
    if slope - ERRORS * error > MOST_BYTES:
        found.append(
            f"memory grows by {slope:,.0f} bytes per operation (standard error {error:,.0f}), {MOST_BYTES:,.0f} allowed"
        )
    for what in ("files", "threads", "children"):
        most = max(getattr(one, what) for one in settled)
        if most > getattr(before, what):
            found.append(f"{most} {what}, and {getattr(before, what)} at most after everything had been done before")
    return found


def soak(minutes: float, seed: int) -> Soak:
    """Do everything in random order for so many minutes, and tell how it goes once a minute.

    Parameters
    ----------
    minutes : float
        How long.
    seed : int
        What the order and all seeds follow from.

    Returns
    -------
    Soak
    """
    start = time.monotonic()
    settle_pools()
    run = Soak(seed)
    rng = np.random.default_rng(seed)
    names = list(OPERATIONS)
    run.warm_up(rng)
    told_at = 0.0
    while (seconds := time.monotonic() - start) < 60.0 * minutes:
        run.do(names[int(rng.integers(len(names)))], _draw_seed(rng))
        if run.n_done % EVERY:
            continue
        held = read_held(run.n_done)
        if seconds >= WARM_UP_SHARE * 60.0 * minutes:
            run.settled.append(held)
        if seconds - told_at >= 60.0:
            told_at = seconds
            print(f"{seconds / 60.0:5.1f} min  {_describe(held)}", flush=True)
    return run


def main() -> int:
    """Exit status: 1 if an answer was wrong or something grows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="what all follows from; by default a new one")
    parser.add_argument("--replay", nargs=2, metavar=("NAME", "SEED"), help="do one operation only")
    parser.add_argument("--record", action="store_true", help="write docs/reliability/soak.json")
    options = parser.parse_args()
    if options.replay is not None:
        name, seed = options.replay
        OPERATIONS[name](np.random.default_rng(int(seed)))
        print(f"{name} with seed {seed}: right")
        return 0
    seed = _draw_seed(np.random.default_rng()) if options.seed is None else options.seed
    print(f"{options.minutes:g} minutes, seed {seed}: the same order again by --seed {seed}", flush=True)
    start = time.monotonic()
    run = soak(options.minutes, seed)
    seconds = time.monotonic() - start
    wrong = run.judge()
    for name in sorted(run.done):
        print(f"{run.done[name]:6,} {name}")
    for held in (run.settled[:1], run.settled[-1:]):
        print(*map(_describe, held))
    for one in wrong:
        print(f"WRONG: {one}")
    print(f"{run.n_done:,} operations in {seconds / 60.0:.1f} minutes: {'all is well' if not wrong else 'IT FAILS'}")
    if options.record:
        _record(run, seconds).write(failed=bool(wrong))
    return int(bool(wrong))


def _record(run: Soak, seconds: float) -> Record:
    done, sizes = ([getattr(one, what) for one in run.settled] for what in ("n_done", "resident_bytes"))
    slope, error = find_slope(done, sizes)
    last = run.settled[-1]
    return Record(
        name="soak",
        title="Fits, predictions, files, audits, signals and forks in one process, for a long time",
        figures={
            "operations": run.n_done,
            **{f"of these {name.replace('_', ' ')}": count for name, count in sorted(run.done.items())},
            "wrong answers": len(run.failures),
            "MB when settled": round(sizes[0] / 1e6, 1),
            "MB at the end": round(sizes[-1] / 1e6, 1),
            "bytes per operation (resident)": round(slope, 1),
            "standard error of that": round(error, 1),
            "bytes per operation allowed": MOST_BYTES,
            "open files, threads, child processes at the end": f"{last.files}, {last.threads}, {last.children}",
            "seed": run.seed,
        },
        found="Nothing: every answer was right, and memory, files, threads and processes are flat.",
        command=f"make soak MINUTES={seconds / 60.0:.0f}",
        seconds=round(seconds, 1),
    )


def _draw_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**32))


def _describe(held: Held) -> str:
    return (
        f"{held.n_done:,} operations, {held.resident_bytes / 1e6:.1f} MB, {held.files} files, {held.threads} threads, "
        f"{held.children} children"
    )


if __name__ == "__main__":
    sys.exit(main())
