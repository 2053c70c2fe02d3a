"""A table with a title and a note: as text, as Markdown, as LaTeX, as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

__all__ = ["STYLE", "Section", "document"]

STYLE = """:root{color-scheme:light dark;--ours:#d0542b;--line:#8888}
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
h2{margin:2.5rem 0 0}p{max-width:50rem}.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .9rem .2rem 0;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{font-weight:600}th:first-child,td:first-child{text-align:left}.ours{color:var(--ours);font-weight:600}
svg{max-width:100%;height:auto;margin:1rem 0}svg text{font:13px system-ui,sans-serif;fill:currentColor}
svg .ours{fill:var(--ours)}svg path,svg line{stroke:currentColor;fill:none}svg path.ours{stroke:var(--ours);fill:none}
svg .bar{stroke-width:4}svg .faint{stroke:var(--line)}"""

LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "—": "---"}
    | {sign: "\\" + sign for sign in "&%$#_{}"}
)


@dataclass(frozen=True)
class Section:
    """A table with its title and a note; shown as text or as HTML, with a figure where there is one."""

    title: str
    note: str
    header: list[str]
    table: list[list[str]]
    figure: str = ""  # the name of the figure that belongs to it

    def __str__(self) -> str:
        lines = [self.header, *self.table]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join([one[0].ljust(widths[0]), *map(str.rjust, one[1:], widths[1:])]).rstrip() for one in lines]
        return "\n".join([self.title, self.note, "", *("  " + line for line in text)]) + "\n"

    def markdown(self, level: int = 2) -> str:
        """With a heading of that level."""
        lines = [self.header, ["---", *("---:" for _ in self.header[1:])], *self.table]
        rows = ("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
        return "\n".join([f"{'#' * level} {self.title}", "", *([self.note, ""] if self.note else []), *rows]) + "\n"

    def latex(self) -> str:
        """A table environment, with the title and the note as its caption."""
        rows = (" & ".join(map(_latex, line)) + r" \\" for line in self.table)
        head = " & ".join(map(_latex, self.header)) + r" \\ \hline"
        caption = _latex(f"{self.title}. {self.note}".strip())
        columns = "l" + "r" * (len(self.header) - 1)
        body = "\n".join([head, *rows])
        return (
            "\\begin{table}[h]\n\\centering\n\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
            f"\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}}}\n\\caption{{{caption}}}\n\\end{{table}}\n"
        )

    def html(self, ours: Callable[[str], bool] = lambda _: False) -> str:
        """The table alone; rows whose first cell is `ours` stand out."""
        head = "".join(f"<th scope=col>{html.escape(cell)}</th>" for cell in self.header)
        lines = ""
        for line in self.table:
            mark = " class=ours" if ours(line[0]) else ""
            lines += f"<tr{mark}>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>\n"
        return f"<div class=scroll><table><tr>{head}</tr>\n{lines}</table></div>"


def _latex(text: str) -> str:
    return re.sub(r"(?<!\w)-(?=\d)", "$-$", text.translate(LATEX))


def document(title: str, heading: str, parts: Iterable[str]) -> str:
    """A whole page that needs nothing else; `parts` are HTML."""
    return f"""<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>{html.escape(title)}</title><style>
{STYLE}
</style><h1>{html.escape(heading)}</h1>
{"".join(parts)}</html>
"""
