"""Tables as text: aligned for a terminal, in Markdown, LaTeX and HTML."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from untwist.report.markup import write_table
from untwist.text import for_page

__all__ = ["TextTable"]

LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "—": "---"}
    | {character: "\\" + character for character in "&%$#_{}"}
)


@dataclass(frozen=True)
class TextTable:
    """A table with its title and a note; `figure` names the figure that belongs to it, if there is one."""

    title: str
    note: str
    header: list[str]
    lines: list[list[str]]
    figure: str = ""

    def __str__(self) -> str:
        lines = [self.header, *self.lines]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join([one[0].ljust(widths[0]), *map(str.rjust, one[1:], widths[1:])]).rstrip() for one in lines]
        note = [self.note] if self.note else []
        return "\n".join([self.title, *note, "", *("  " + line for line in text)]) + "\n"

    def to_markdown(self, level: int = 2) -> str:
        """Write it as Markdown.

        Parameters
        ----------
        level : int
            The level of its heading.

        Returns
        -------
        str
        """
        lines = [self.header, ["---", *("---:" for _ in self.header[1:])], *self.lines]
        rows = ("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
        return "\n".join([f"{'#' * level} {self.title}", "", *([self.note, ""] if self.note else []), *rows]) + "\n"

    def to_latex(self) -> str:
        """Write a table environment, with the title and the note as its caption."""
        rows = (" & ".join(map(_escape_latex, line)) + r" \\" for line in self.lines)
        head = " & ".join(map(_escape_latex, self.header)) + r" \\ \hline"
        caption = _escape_latex(f"{self.title}. {self.note}".strip())
        columns = "l" + "r" * (len(self.header) - 1)
        body = "\n".join([head, *rows])
        return (
            "\\begin{table}[h]\n\\centering\n\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
            f"\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}}}\n\\caption{{{caption}}}\n\\end{{table}}\n"
        )

    def to_html(self, stands_out: Callable[[str], bool] = lambda _name: False) -> str:
        """Write the note and the table as HTML.

        Parameters
        ----------
        stands_out : callable
            Whether the line with that first cell is in colour.

        Returns
        -------
        str
        """
        note = f"<p>{for_page(self.note)}</p>\n" if self.note else ""
        lines = [[for_page(cell) for cell in line] for line in self.lines]
        return note + write_table(for_page(self.title), [for_page(cell) for cell in self.header], lines, stands_out)


def _escape_latex(text: str) -> str:
    return re.sub(r"(?<!\w)-(?=\d)", "$-$", text.translate(LATEX))
