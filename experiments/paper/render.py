"""The reproduction as files: Markdown, LaTeX and figures, and one HTML page with everything in it."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from pathlib import Path

from experiments.paper.declarations import Experiment
from experiments.paper.exhibits import make_figures, make_tables
from experiments.paper.figures import Figure, draw_png, draw_svg
from experiments.paper.outcomes import Outcomes
from experiments.tables import TextTable
from untwist.report.markup import Section, write_figure, write_page
from untwist.text import for_page

__all__ = ["Opening", "Part", "render_html", "render_markdown", "write_files"]

TITLE = "Being Properly Improper, reproduced"


@dataclass(frozen=True)
class Opening:
    """What a page opens with: paragraphs, in which * stands around names, and tables."""

    paragraphs: list[str]
    tables: list[TextTable]


class Part:
    """An experiment with its tables and figures."""

    def __init__(self, experiment: Experiment, outcomes: Outcomes) -> None:
        self.experiment = experiment
        self.tables: list[TextTable] = make_tables(experiment, outcomes)
        self.figures: list[Figure] = make_figures(experiment, outcomes)


def render_html(parts: list[Part], opening: Opening) -> str:
    """Write one HTML page with everything in it."""
    paragraphs = [f"<p>{for_page(line.replace('*', ''))}</p>\n" for line in opening.paragraphs]
    tables = [_write_titled(table) for table in opening.tables]
    sections = [Section("opening", "In short", "In short", "".join([*paragraphs, *tables]))]
    for part in parts:
        title = for_page(part.experiment.title)
        pieces = [f"<p>{for_page(part.experiment.note)}</p>\n"]
        pieces += [_embed(figure) for figure in part.figures]
        pieces += [_write_titled(table) for table in part.tables]
        sections.append(Section(part.experiment.name, title, title, "".join(pieces)))
    return write_page("untwist: the paper, reproduced", "The paper", TITLE, sections)


def _write_titled(table: TextTable) -> str:
    return f"<h3>{for_page(table.title)}</h3>\n{table.to_html()}\n"


def _embed(figure: Figure) -> str:
    """A figure as an image, so that its styles stay its own."""
    image = base64.b64encode(draw_svg(figure).encode()).decode()
    element = f'<img alt="{for_page(figure.title)}" src="data:image/svg+xml;base64,{image}">'
    return write_figure(element, for_page(figure.caption)) + "\n"


def render_markdown(parts: list[Part], opening: Opening, folder: str) -> str:
    """Write the same as Markdown; `folder` is where the figures are, seen from the page."""
    lines = [f"# {TITLE}", "", *(line + "\n" for line in opening.paragraphs)]
    lines += [f"- [{part.experiment.title}](#{_name_anchor(part.experiment.title)})" for part in parts]
    lines += ["", *(table.to_markdown() for table in opening.tables)]
    for part in parts:
        lines += [f"## {part.experiment.title}", "", part.experiment.note, ""]
        for figure in part.figures:
            caption = figure.caption.replace("*", r"\*")
            lines += [f"![{figure.title}]({folder}/{figure.name}.svg)", "", f"*{caption}*", ""]
        lines += [table.to_markdown(level=3) for table in part.tables]
    return "\n".join(lines).rstrip() + "\n"


def _name_anchor(title: str) -> str:
    """As GitHub names a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def write_files(parts: list[Part], opening: Opening, out: Path, stem: str) -> None:
    """Write tables, figures and pages into their folder."""
    for name in ("tables", "figures"):
        (out / name).mkdir(parents=True, exist_ok=True)
    for part in parts:
        if part.tables:
            name = part.experiment.name
            (out / "tables" / f"{name}.md").write_text("\n".join(one.to_markdown() for one in part.tables), "utf-8")
            (out / "tables" / f"{name}.tex").write_text("\n".join(one.to_latex() for one in part.tables), "utf-8")
        for figure in part.figures:
            (out / "figures" / f"{figure.name}.svg").write_text(draw_svg(figure), "utf-8")
            (out / "figures" / f"{figure.name}.png").write_bytes(draw_png(figure))
    (out / f"{stem}.md").write_text(render_markdown(parts, opening, "figures"), "utf-8")
    (out / f"{stem}.html").write_text(render_html(parts, opening), "utf-8")
