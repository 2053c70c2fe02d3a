"""The pieces that pages are made of, for the report and for the experiments: the shell, tables, figures, numbers.

What the pieces are given is HTML already; `untwist.text.for_page` makes HTML of what comes from data.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.resources
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from untwist.audit.judging import Interval
from untwist.audit.statements import Statement
from untwist.display import write_share
from untwist.text import for_page, name_column

__all__ = [
    "Section",
    "format_interval",
    "format_percent",
    "format_words",
    "name_column",
    "place_beside",
    "write_figure",
    "write_heat_table",
    "write_page",
    "write_table",
]

#: Shades of a cell, beside none.
HEATS = 5
#: Where all shares are smaller, even the largest has but a faint colour.
LEAST_HEAT = 0.05

# ---- the page ----


class Section(NamedTuple):
    """A part of a page.

    Parameters
    ----------
    anchor : str
        What links to it end with.
    heading, link : str
        Its heading, and what the list of sections calls it.
    body : str
        HTML.
    """

    anchor: str
    heading: str
    link: str
    body: str


def write_page(
    title: str,
    eyebrow: str,
    heading: str,
    sections: Sequence[Section],
    *,
    advice: str = "",
    script: str = "",
    sends: bool = False,
) -> str:
    """Write an HTML page that loads nothing, and sends nothing unless it is told to.

    Parameters
    ----------
    title : str
        What the browser calls the page.
    eyebrow, heading : str
        What kind of page it is, above its heading.
    sections : sequence of Section
        The parts, in order.
    advice : str
        A sentence for the end of the page.
    script : str
        JavaScript. The policy of the page allows this script and no other.
    sends : bool
        Whether the script may speak to the server that the page comes from.

    Returns
    -------
    str
        The page.
    """
    style = _read("style.css")
    allowed_script = _hash(script) if script else "'none'"
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {allowed_script}; img-src data:; base-uri 'none'; "
        "form-action 'none'" + ("; connect-src 'self'" if sends else "")
    )
    version = importlib.metadata.version("untwist")
    links = "".join(f'<li><a href="#{one.anchor}">{one.link}</a></li>' for one in sections)
    body = "".join(
        f'<section id={one.anchor} aria-labelledby="{one.anchor}-title">\n'
        f'<h2 id="{one.anchor}-title">{one.heading}</h2>\n{one.body}\n</section>\n'
        for one in sections
    )
    complete = "This file is complete: it loads nothing and sends nothing."
    if sends:
        complete = "It loads nothing, and sends decisions to the server on this machine that it comes from."
    footer = f"Made by untwist {version}. {complete}"
    footer += f" {advice}" if advice else ""
    running = f"<script>{script}</script>" if script else ""
    return f"""<!doctype html>
<html lang=en><head><meta charset=utf-8>
<meta http-equiv=Content-Security-Policy content="{policy}">
<meta name=viewport content="width=device-width, initial-scale=1"><meta name=color-scheme content="light dark">
<meta name=generator content="untwist {version}"><link rel=icon href="data:,">
<title>{title}</title><style>{style}</style></head>
<body><a class=skip href="#{sections[0].anchor}">Skip to the report</a>
<header><p class=eyebrow>{eyebrow}</p><h1>{heading}</h1>
<nav aria-label=Sections><ul>{links}</ul></nav></header>
<main>
{body}</main>
<footer><p>{footer}</p></footer>
{running}</body></html>
"""


def _read(name: str) -> str:
    return importlib.resources.files("untwist.report").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """What the policy of a page calls a text that it allows."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


# ---- its pieces ----


def write_figure(chart: str, caption: str = "") -> str:
    """Write a chart with its caption.

    Parameters
    ----------
    chart : str
        SVG.
    caption : str
        HTML; nothing where it is empty.

    Returns
    -------
    str
        HTML.
    """
    return f"<figure>{chart}" + (f"<figcaption>{caption}</figcaption>" if caption else "") + "</figure>"


def place_beside(left: str, right: str) -> str:
    """Place two pieces side by side, or one below the other where there is no room.

    Parameters
    ----------
    left, right : str
        HTML.

    Returns
    -------
    str
        HTML.
    """
    return f"<div class=pair>{left}<div>{right}</div></div>"


def write_table(
    caption: str,
    header: Sequence[str],
    lines: Iterable[Sequence[str]],
    stands_out: Callable[[str], bool] = lambda _name: False,
) -> str:
    """Write a table; the first cell of each line is its name, the others are numbers.

    Parameters
    ----------
    caption : str
        What the table is about.
    header : sequence of str
        A cell for each column.
    lines : iterable of sequences of str
        As many cells each.
    stands_out : callable
        Whether the line of that name is shown in colour.

    Returns
    -------
    str
        The table in a box that scrolls where it is too wide.
    """
    first, *others = header
    head = f"<th scope=col>{first}</th>" + "".join(f"<th scope=col class=number>{cell}</th>" for cell in others)
    body = ""
    for name, *numbers in lines:
        row = "<tr class=ours>" if stands_out(name) else "<tr>"
        cells = "".join(f"<td class=number>{one}</td>" for one in numbers)
        body += f"{row}<th scope=row>{name}</th>{cells}</tr>\n"
    return (
        f'<div class=scroll role=region tabindex=0 aria-label="{caption}"><table><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>\n"
    )


def write_heat_table(
    caption: str,
    corner: str,
    names: Sequence[str],
    shares: Sequence[Sequence[float]],
    last_header: str,
    last_cells: Sequence[str],
) -> str:
    """Write a square table of shares: off its diagonal the colour of a cell says how large it is, beside its number.

    Parameters
    ----------
    caption : str
        What the table is about.
    corner : str
        What the lines are.
    names : sequence of str
        The name of each line, and of each column.
    shares : sequence of sequences of float
        A line of shares for each name.
    last_header : str
        The header of one more column.
    last_cells : sequence of str
        The cells of that column.

    Returns
    -------
    str
        The table in a box that scrolls where it is too wide.
    """
    off_diagonal = [one for i, line in enumerate(shares) for j, one in enumerate(line) if i != j]
    most = max([*off_diagonal, LEAST_HEAT])
    head = "".join(f"<th scope=col class=number>{name}</th>" for name in [*names, last_header])
    body = ""
    for i, (name, line, last) in enumerate(zip(names, shares, last_cells, strict=True)):
        heats = ["own" if i == j else f"heat{math.ceil(HEATS * one / most - 0.5)}" for j, one in enumerate(line)]
        cells = "".join(
            f'<td class="number {heat}">{100 * one:.0f}</td>' for heat, one in zip(heats, line, strict=True)
        )
        body += f"<tr><th scope=row>{name}</th>{cells}<td class=number>{last}</td></tr>\n"
    box = f'<div class=scroll role=region tabindex=0 aria-label="{caption}">'
    return (
        f"{box}<table class=heat><caption>{caption}</caption>"
        f"<thead><tr><th scope=col>{corner}</th>{head}</tr></thead><tbody>\n{body}</tbody></table></div>\n"
    )


# ---- names and numbers ----


def format_percent(value: float) -> str:
    """Write a share in percent, as HTML.

    Parameters
    ----------
    value : float
        The share, from 0 to 1.

    Returns
    -------
    str
        What `write_share` writes, kept on one line.
    """
    return write_share(value).replace(" %", "&nbsp;%")


def format_interval(rate: Statement | Interval) -> str:
    """Write a share and its limits in percent, as HTML.

    Parameters
    ----------
    rate : Statement or Interval
        The share and its limits, from 0 to 1.

    Returns
    -------
    str
        HTML.
    """
    value, low, high = (rate.value, rate.low, rate.high) if isinstance(rate, Statement) else rate
    return f"{format_percent(value)} <small>({format_percent(low)} to {format_percent(high)})</small>"


def format_words(words: str) -> str:
    """Write a sentence as HTML; numbers stay on one line with their signs.

    Parameters
    ----------
    words : str
        Text.

    Returns
    -------
    str
        HTML.
    """
    return for_page(words).replace(" %", "&nbsp;%")
