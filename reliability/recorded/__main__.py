"""Are the numbers those of 0.2.0? ``make same-numbers`` fits all cases anew and compares, in about two minutes.

    python -m reliability.recorded                              # all cases
    python -m reliability.recorded audits given/early-stopping  # a section, a case
    python -m reliability.recorded --record PATH [CASE ...]     # writes numbers instead

Recording some cases leaves the others in the file as they are.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

# Each of these modules has the cases of a section.
import reliability.recorded.audits
import reliability.recorded.automatic
import reliability.recorded.elsewhere
import reliability.recorded.given  # noqa: F401
from reliability.recorded.cases import CASES, NotInstalledError, Outputs, select_cases
from reliability.recorded.comparing import TOLERANCE, Numbers, compare_outputs, flatten, name_libraries, read, write

PATH = Path(__file__).with_name("0.2.0.npz")
# What a case that raised an error is called, and the width of the column of names.
FAILED = "FAILED"
WIDTH = 38


def run_case(name: str) -> Numbers:
    """Return the numbers of a case; what it warns of is left unsaid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs: Outputs = CASES[name]()
    return flatten(outputs)


def run(names: list[str]) -> Iterator[tuple[str, Numbers | None, str]]:
    """Run cases one after the other: the name of each with its numbers, or with why it has none."""
    for name in names:
        try:
            yield name, run_case(name), ""
        except NotInstalledError as error:
            yield name, None, f"skipped: {error}"
        except Exception as error:  # A case that fails must not hide the others.
            yield name, None, f"{FAILED} with {type(error).__name__}: {error}"


def record(names: list[str], path: Path) -> list[str]:
    """Write the numbers of cases, beside those of other cases that are in the file; return what failed."""
    kept, libraries = read(path) if path.exists() else ({}, name_libraries())
    if libraries != name_libraries():
        raise SystemExit(f"{path} was recorded with {', '.join(libraries)}: record all cases in another file")
    failed = []
    for name, numbers, problem in run(names):
        print(f"{name:<{WIDTH}} {problem or 'recorded'}", flush=True)
        if numbers is not None:
            kept[name] = numbers
        elif problem.startswith(FAILED):
            failed.append(f"{name} {problem}")
    write(path, kept, libraries)
    return failed


def compare(names: list[str], path: Path) -> list[str]:
    """Print how far each case is from what was recorded; return what is not the same."""
    recorded, libraries = read(path)
    if libraries != name_libraries():
        print(f"Recorded with other versions, whose arithmetic may differ: {', '.join(libraries)}")
    changed = []
    print(f"{'case':<{WIDTH}} {'numbers':>7} {'largest absolute difference, and of what'}", flush=True)
    for name, numbers, problem in run(names):
        if numbers is None:
            print(f"{name:<{WIDTH}} {problem}", flush=True)
            changed += [f"{name} {problem}"] if problem.startswith(FAILED) else []
            continue
        if name not in recorded:
            print(f"{name:<{WIDTH}} was not recorded", flush=True)
            changed.append(f"{name} was not recorded")
            continue
        size = sum(values.size for values in numbers.values())
        differences = compare_outputs(recorded[name], numbers)
        for one in [one for one in differences if not one.is_same] or differences[:1]:
            print(
                f"{name:<{WIDTH}} {size:>7} {one.largest:<8.2g} {one.what}{'' if one.is_same else ': CHANGED'}",
                flush=True,
            )
        changed += [f"{name}: {one.what} by {one.largest:.2g}" for one in differences if not one.is_same]
    return changed


def main() -> int:
    """Exit status: 1 if a number is another one than was recorded, or if a case fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="a case or a section (all of them)")
    parser.add_argument("--record", type=Path, metavar="PATH", help="write the numbers to this file")
    parser.add_argument(
        "--against", type=Path, metavar="PATH", default=PATH, help="the file to compare with (0.2.0.npz)"
    )
    options = parser.parse_args()
    names = list(select_cases(options.cases))
    start = time.perf_counter()
    wrong = record(names, options.record) if options.record else compare(names, options.against)
    seconds = time.perf_counter() - start
    if wrong:
        print(f"{len(wrong)} outputs are not the same:", *wrong, sep="\n  ")
    elif not options.record:
        print(f"All numbers of {len(names)} cases are the same, within {TOLERANCE:g}, after {seconds:.0f} s")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
