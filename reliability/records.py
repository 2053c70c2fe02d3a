"""What each program of this folder measured, kept as docs/reliability/NAME.json, and the page made of it.

`python -m reliability.records` writes docs/reliability.md; a test holds the page and the records together. Whatever
failed is not recorded: figures of a run with failing tests say nothing.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "reliability"
PAGE = FOLDER.with_suffix(".md")
ORDER = ["coverage", "mutation", "properties", "fuzzing", "sanitizers", "leaks", "soak", "load", "faults"]
INTRODUCTION = """\
# Hard to break

What was done to break untwist, what was found, and how to do it again. Each section is the record that a program in
`reliability/` or a make target left; `SECURITY.md` says what foreign bytes can and cannot do.
Coverage is that of the present state; all other figures, and the modules that they name, are those of version 0.1.0."""


@dataclass(frozen=True)
class Record:
    """A section of the page: what was tried, the figures by their names, what was found, and how to do it again."""

    name: str
    title: str
    figures: dict[str, int | float | str]
    found: str
    command: str
    seconds: float
    python: str = platform.python_version()

    def write(self, *, failed: bool) -> None:
        """Keep it, in place of an older one of that name; where something failed, keep nothing and end the program."""
        if failed:
            sys.exit(f"{self.name}: not recorded, because something failed")
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{self.name}.json").write_text(json.dumps(asdict(self), indent=1) + "\n")


def read_all() -> list[Record]:
    """All records, in the order of the page; those that it does not know at its end, by name."""
    records = [Record(**json.loads(file.read_text())) for file in sorted(FOLDER.glob("*.json"))]
    return sorted(records, key=lambda one: (ORDER.index(one.name) if one.name in ORDER else len(ORDER), one.name))


def render(records: list[Record]) -> str:
    """The page, in Markdown."""
    parts = [INTRODUCTION]
    if records:
        rows = [
            f"| [{one.title}](#{_make_anchor(one.title)}) | `{one.command}` | {_format_time(one.seconds)} |"
            for one in records
        ]
        parts.append("\n".join(["| what was tried | command | time |", "|---|---|---|", *rows]))
    for one in records:
        figures = [f"| {name} | {_format_number(value)} |" for name, value in one.figures.items()]
        parts.append(f"## {one.title}")
        parts.append("\n".join(["| | |", "|---|---|", *figures]))
        parts.append(one.found.strip())
        parts.append(f"`{one.command}`, {_format_time(one.seconds)}, Python {one.python}.")
    return "\n\n".join(parts) + "\n"


def _make_anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _format_number(value: float | str) -> str:
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


def _format_time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


if __name__ == "__main__":
    PAGE.write_text(render(read_all()), encoding="utf-8")
