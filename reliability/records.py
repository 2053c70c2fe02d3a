"""What each program of this folder measured, kept as docs/reliability/NAME.json, and the page made of it.

`python reliability/records.py` writes docs/reliability.md; a test holds the page and the records together.
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "reliability"
PAGE = FOLDER.with_suffix(".md")


@dataclass(frozen=True)
class Record:
    """One row of the page: what was tried, the figures by their names, what was found, and how to do it again."""

    name: str
    title: str
    figures: dict[str, int | float | str]
    found: str
    command: str
    seconds: float
    python: str = platform.python_version()

    def write(self) -> None:
        """Keep it, in place of an older one of that name."""
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{self.name}.json").write_text(json.dumps(asdict(self), indent=1) + "\n")


def read() -> list[Record]:
    """All records, by name."""
    return [Record(**json.loads(file.read_text())) for file in sorted(FOLDER.glob("*.json"))]
