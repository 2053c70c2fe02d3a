"""Text that comes from data, made harmless: for HTML, for SVG and for a script; and the pieces a page is made of."""

from __future__ import annotations

import html
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [
    "Interval",
    "beside",
    "clipped",
    "data_table",
    "figure",
    "for_script",
    "likely",
    "name_of",
    "percent",
    "shown",
    "value_of",
    "with_interval",
]

Interval = tuple[float, float, float]  # a value with its lower and upper limit

# What is not seen or turns text around: controls, directions, halves of surrogate pairs, what is no character.
UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufffe\uffff]"
)

# ---- what comes from data ----


def clipped(value: Any, most: int = 80) -> str:
    """A value as one line of at most so many columns, a wide character counted twice; nothing unseen is left."""
    text = UNSEEN.sub("\N{REPLACEMENT CHARACTER}", " ".join(str(value)[: 4 * most].split())) or "(empty)"
    width = 0
    for place, sign in enumerate(text):
        width += 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        if width > most:
            return text[: max(place - 1, 1)].rstrip() + "…"
    return text


def shown(value: Any, most: int = 80) -> str:
    """A value as HTML."""
    return html.escape(clipped(value, most))


def value_of(value: Any) -> str:
    """A cell of the data in words."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def name_of(column: Any) -> str:
    """A column in words; those of an array have numbers only."""
    return f"column {column}" if isinstance(column, int) else str(column)


def for_script(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it ends the element or begins another."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


# ---- numbers ----


def percent(value: float) -> str:
    """A share as HTML."""
    return f"{100 * value:.1f}&nbsp;%"


def with_interval(rate: Interval) -> str:
    """A share and its limits as HTML."""
    return f"{percent(rate[0])} <small>({100 * rate[1]:.1f} to {100 * rate[2]:.1f})</small>"


def likely(probability: float) -> str:
    """A probability in percent that does not claim certainty."""
    return "over 99%" if probability > 0.99 else "under 1%" if probability < 0.01 else f"{probability:.0%}"


# ---- pieces of a page; what they are given is HTML ----


def figure(chart: str, caption: str = "") -> str:
    """A chart with its caption."""
    return f"<figure>{chart}" + (f"<figcaption>{caption}</figcaption>" if caption else "") + "</figure>"


def beside(left: str, right: str) -> str:
    """Side by side, or one below the other where there is no room."""
    return f"<div class=pair>{left}<div>{right}</div></div>"


def data_table(caption: str, header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table; the first cell of each line is its name, the others are numbers."""
    first, *others = header
    head = f"<th scope=col>{first}</th>" + "".join(f"<th scope=col class=number>{cell}</th>" for cell in others)
    body = ""
    for name, *numbers in lines:
        body += (
            f"<tr><th scope=row>{name}</th>" + "".join(f"<td class=number>{one}</td>" for one in numbers) + "</tr>\n"
        )
    return (
        f'<div class=scroll role=region tabindex=0 aria-label="{caption}"><table><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>\n"
    )
