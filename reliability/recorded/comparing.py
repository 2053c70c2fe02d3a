"""Numbers that were recorded, and how far others are from them."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reliability.recorded.cases import Outputs

__all__ = ["Difference", "Numbers", "compare_outputs", "flatten", "measure_distance", "name_libraries", "read", "write"]

#: Numbers are the same that differ by no more than this, times the recorded one where that is above 1.
TOLERANCE = 1e-12

#: The libraries whose arithmetic enters the numbers.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "xgboost", "xgboost-cpu")

Numbers = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Difference:
    """How far an output of a case is from what was recorded.

    Parameters
    ----------
    what : str
        The name of the output.
    largest : float
        The largest absolute difference; infinite where there is no other number to compare with.
    is_same : bool
        Whether all numbers are within the tolerance.
    """

    what: str
    largest: float
    is_same: bool


def measure_distance(recorded: NDArray[np.float64], found: NDArray[np.float64]) -> tuple[float, bool]:
    """Return the largest absolute difference of two arrays, and whether all are within the tolerance."""
    if recorded.shape != found.shape:
        return np.inf, False
    is_equal = (recorded == found) | (np.isnan(recorded) & np.isnan(found))
    with np.errstate(invalid="ignore"):
        distance = np.where(is_equal, 0.0, np.abs(recorded - found))
        distance[np.isnan(distance)] = np.inf
        is_same = is_equal | (np.isfinite(distance) & (distance <= TOLERANCE * np.maximum(1.0, np.abs(recorded))))
    return float(distance.max(initial=0.0)), bool(is_same.all())


def compare_outputs(
    recorded: Mapping[str, NDArray[np.float64]], found: Mapping[str, NDArray[np.float64]]
) -> list[Difference]:
    """Return how far each output of a case is from what was recorded, the farthest first."""
    differences = []
    for what in sorted({*recorded, *found}):
        if what in recorded and what in found:
            differences.append(Difference(what, *measure_distance(recorded[what], found[what])))
        else:
            missing = "is gone" if what in recorded else "was not recorded"
            differences.append(Difference(f"{what} ({missing})", np.inf, False))
    return sorted(differences, key=lambda one: (one.is_same, -one.largest))


def flatten(outputs: Outputs) -> Numbers:
    """Return the outputs of a case as arrays of 64-bit numbers; a ValueError for what is no number."""
    return {what: np.asarray(value, dtype=np.float64) for what, value in outputs.items()}


def name_libraries() -> list[str]:
    """Name what numbers depend on besides our own code."""
    found = [f"Python {platform.python_version()} on {platform.machine()}"]
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return found


def read(path: Path) -> tuple[dict[str, Numbers], list[str]]:
    """Return the recorded outputs of each case, and the libraries that they were recorded with."""
    with np.load(path, allow_pickle=False) as stored:
        layout, libraries = json.loads(str(stored["layout"])), stored["libraries"].tolist()
        sizes = [int(np.prod(shape)) for _, _, shape in layout]
        parts = np.split(stored["numbers"], np.cumsum(sizes)[:-1])
    cases: dict[str, Numbers] = {}
    for (case, what, shape), part in zip(layout, parts, strict=True):
        cases.setdefault(case, {})[what] = part.reshape(shape)
    return cases, libraries


def write(path: Path, cases: Mapping[str, Numbers], libraries: list[str]) -> None:
    """Record the outputs of cases: all numbers one after the other, and what and of which shape they are."""
    outputs = [(case, what, values) for case, found in sorted(cases.items()) for what, values in found.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path,
        libraries=np.array(libraries),
        layout=np.array(json.dumps([(case, what, values.shape) for case, what, values in outputs])),
        numbers=np.concatenate([values.ravel() for _, _, values in outputs]),
    )
