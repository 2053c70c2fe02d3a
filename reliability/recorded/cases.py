"""What a case is: a function that fits something and returns its numbers by name. All cases, by section and name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["CASES", "NotInstalledError", "case", "import_or_skip", "select_cases"]

#: What a case returns: arrays, numbers or lists of these, by what they are.
Outputs = dict[str, Any]

#: Every case by its name, such as "given/early-stopping": the module that it is in, and what its function is called.
CASES: dict[str, Callable[[], Outputs]] = {}


class NotInstalledError(Exception):
    """A case needs a library that is not there."""


def case(function: Callable[[], Outputs]) -> Callable[[], Outputs]:
    """Keep a function as a case."""
    section = function.__module__.rpartition(".")[2]
    name = f"{section}/{function.__name__.replace('_', '-')}"
    if name in CASES:
        raise ValueError(f"there are two cases {name}")
    CASES[name] = function
    return function


def import_or_skip(name: str) -> ModuleType:
    """Return a module; a NotInstalledError where it cannot be imported."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"{error.name} is not installed") from error


def select_cases(asked: list[str]) -> dict[str, Callable[[], Outputs]]:
    """Return the cases of some names or sections, in the order of all; all of them where nothing is asked for."""
    sections = {name.partition("/")[0] for name in CASES}
    if unknown := set(asked) - set(CASES) - sections:
        raise SystemExit(f"no case {sorted(unknown)[0]}: sections are {', '.join(sorted(sections))}")
    return {name: run for name, run in CASES.items() if not asked or {name, name.partition("/")[0]} & set(asked)}
