"""The report as one HTML file that loads nothing and sends nothing."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.resources
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from untwist.audit.labels import LabelAudit
from untwist.report import sections
from untwist.report.markup import shown
from untwist.report.peers import Peer
from untwist.report.review import review

__all__ = ["report"]

HEADINGS = {  # of each section, and in the list of them
    "summary": ("In short", "In short"),
    "noise": ("How noisy the labels are", "Noise"),
    "review": ("Labels to review", "Review"),
    "training": ("What was trained", "Training"),
    "calibration": ("The labels and the truth", "Calibration"),
    "columns": ("What the predictions rest on", "Columns"),
    "peers": ("Beside other boosters", "Others"),
}


def report(
    audit: LabelAudit,
    *,
    title: str,
    rows: Sequence[Any] | None = None,
    row_name: str = "row",
    peers: Mapping[str, Peer] | None = None,
    suspects: ArrayLike | None = None,
) -> str:
    """An audit as an HTML page; the same audit gives the same page.

    `rows` are what the rows are called, say the lines of a file, and `row_name` is the word for one; by default they
    are positions. `suspects` are the rows to list, by default `audit.suspects()`; the most doubtful come first. `peers`
    is what `untwist.report.compare` measured.
    """
    names = range(len(audit.given)) if rows is None else [_plain(one) for one in rows]
    if len(names) != len(audit.given):
        raise ValueError(f"rows must be one for each of the {len(audit.given)} labels, got {len(names)}")
    listed = audit.suspects()
    if suspects is not None:
        listed = audit.ranking[np.isin(audit.ranking, audit._positions(suspects))]
    parts = {
        "summary": sections.summary(audit, listed, row_name),
        "noise": sections.noise(audit, listed),
        "review": review(audit, listed, names, row_name, by_doubt=suspects is None),
        "training": sections.training(audit),
        "calibration": sections.calibration(audit),
        "columns": sections.columns(audit, listed),
        "peers": sections.peers(audit, peers) if peers else "",
    }
    return _document(title, {name: part for name, part in parts.items() if part})


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name


def _document(title: str, parts: Mapping[str, str]) -> str:
    folder = importlib.resources.files("untwist.report")
    style, script = (folder.joinpath(name).read_text("utf-8") for name in ("style.css", "script.js"))
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    version, name = importlib.metadata.version("untwist"), shown(title, 120)
    links = "".join(f'<li><a href="#{one}">{HEADINGS[one][1]}</a></li>' for one in parts)
    body = "".join(
        f'<section id={one} aria-labelledby="{one}-title">\n<h2 id="{one}-title">{HEADINGS[one][0]}</h2>\n'
        f"{part}\n</section>\n"
        for one, part in parts.items()
    )
    return f"""<!doctype html>
<html lang=en><head><meta charset=utf-8>
<meta http-equiv=Content-Security-Policy content="{policy}">
<meta name=viewport content="width=device-width, initial-scale=1"><meta name=color-scheme content="light dark">
<meta name=generator content="untwist {version}"><link rel=icon href="data:,">
<title>{name}: label audit</title><style>{style}</style></head>
<body><a class=skip href="#summary">Skip to the report</a>
<header><p class=eyebrow>Label audit</p><h1>{name}</h1>
<nav aria-label=Sections><ul>{links}</ul></nav></header>
<main>
{body}</main>
<footer><p>Made by untwist {version}. This file is complete: it loads nothing and sends nothing. It holds labels and
some values of the data, so share it as you would share the data.</p></footer>
<script>{script}</script></body></html>
"""


def _hash(text: str) -> str:
    """What the policy allows: this text and no other."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
