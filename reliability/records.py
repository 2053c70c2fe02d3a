"""What each program of this folder measured, kept as docs/reliability/NAME.json, and the page made of it.

`python -m reliability.records` writes docs/reliability.md; a test holds the page and the records together. Whatever
failed is not recorded: figures of a run with failing tests say nothing. `python -m reliability.records --code` prints
the names that the code of this checkout has in its records.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "reliability"
PAGE = FOLDER.with_suffix(".md")
ORDER = ["coverage", "peers", "mutation", "properties", "fuzzing", "sanitizers", "leaks", "soak", "load", "faults"]
SOURCES = {".py", ".pyi", ".js", ".css", ".cpp", ".hpp"}
INTRODUCTION = """\
# Hard to break

What was done to break untwist, what was found, and how to do it again. Each section is the record that a program in
`reliability/` or a make target left; `SECURITY.md` says what foreign bytes can and cannot do.
A section ends with the name of the code that it was measured on: `src/untwist` and `cpp`, or the compiled core in `cpp`
where that alone is looked at. `python -m reliability.records --code` prints both names of a checkout."""
#: The folders whose files name the code of a record: the compiled core alone, or the whole package.
CORE_FOLDERS = ("cpp",)
PACKAGE_FOLDERS = ("src/untwist", *CORE_FOLDERS)


def name_code(root: Path = ROOT, folders: tuple[str, ...] = PACKAGE_FOLDERS) -> str:
    """Name the code in some folders: twelve characters that differ wherever a source file there does."""
    contents = hashlib.sha256()
    files = [file for folder in folders for file in (root / folder).rglob("*") if file.suffix in SOURCES]
    for file in sorted(files):
        contents.update(f"{file.relative_to(root).as_posix()}\0{file.stat().st_size}\0".encode())
        contents.update(file.read_bytes())
    return contents.hexdigest()[:12]


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
    code: str = field(default_factory=name_code)

    def write(self, *, failed: bool) -> None:
        """Keep it, in place of an older one of that name; where something failed, keep nothing and end the program."""
        if failed:
            sys.exit(f"{self.name}: not recorded, because something failed")
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{self.name}.json").write_text(json.dumps(asdict(self), indent=1) + "\n")


def read_all() -> list[Record]:
    """All records, in the order of the page; those that it does not know at its end, by name."""
    records = [Record(**{"code": "unknown", **json.loads(file.read_text())}) for file in sorted(FOLDER.glob("*.json"))]
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
        parts.append(f"`{one.command}`, {_format_time(one.seconds)}, Python {one.python}, code {one.code}.")
    return "\n\n".join(parts) + "\n"


def _make_anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _format_number(value: float | str) -> str:
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


def _format_time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


if __name__ == "__main__":
    if "--code" in sys.argv:
        print(f"package {name_code()}, core {name_code(folders=CORE_FOLDERS)}")
    else:
        PAGE.write_text(render(read_all()), encoding="utf-8")
