"""The suspect rows: what a review may expect, a table to sort and to filter, a list to download."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.audit.findings import Findings, count_finds
from untwist.audit.labels import LabelAudit
from untwist.audit.reasons import Explanation, Reason, describe_value
from untwist.report import charts
from untwist.report.markup import (
    format_percent,
    format_probability,
    name_column,
    place_beside,
    write_figure,
    write_table,
)
from untwist.text import for_page, for_script

__all__ = ["write_review"]

#: Bytes of the list to download, at most.
MOST_EMBEDDED = 200_000
#: A reason of a smaller effect, in log-odds, would be shown as +0.0.
LEAST_SHOWN_EFFECT = 0.05


def write_review(findings: Findings, names: Sequence[Any], row_name: str) -> str:
    """Write the section of the suspect rows.

    Parameters
    ----------
    findings : Findings
        What `collect_findings` computed.
    names : sequence
        What the rows are called.
    row_name : str
        The word for one of the rows.

    Returns
    -------
    str
        HTML.
    """
    audit = findings.audit
    suspects = findings.suspects
    if not len(suspects) and findings.is_uneven:
        return f"<p>No row is listed by itself: {_point_to_parts(findings)}.</p>"
    if not len(suspects):
        found = "no label is more likely wrong than right"
        if not audit.noise.found:
            limit = format_percent(audit.highest_share)
            found = f"no evidence of wrong labels was found, though up to {limit} of them are not excluded"
        return f"<p>There is nothing to review: {found}.</p>"
    kept = _embed(audit, suspects, names)
    body = "".join(_write_line(audit, rank, names[one.row], one) for rank, one in enumerate(findings.explanations))
    heads = [for_page(row_name, 20), "label", "looks like", "likely wrong", "similar rows against it", "why"]
    head = "".join(
        f"<th scope=col aria-sort={'descending' if word == 'likely wrong' else 'none'}>"
        f"<button type=button>{word}</button></th>"
        for word in heads
    )
    return f"""<p>{_introduce(findings, len(kept["row"]))}</p>
{_write_expectation(findings)}
<form class=controls hidden role=search aria-label="Filter the table">
<label>Search <input type=search id=words autocomplete=off></label>
{_write_filter("Label", "given", audit)}{_write_filter("Looks like", "like", audit)}
<button type=button id=download>Download the review list (CSV, {len(kept["row"]):,} rows)</button></form>
<p id=status role=status class=aside></p>
<div class=scroll role=region tabindex=0 aria-label="Suspect rows"><table id=suspects><caption>Suspect rows</caption>
<thead><tr>{head}</tr></thead><tbody>
{body}</tbody></table></div>
<button type=button id=more hidden>Show more</button>
<p class=aside>Why: a column speaks against the label if the row would look more like its label with what is usual
for that label there; the number says how strongly, in log-odds. Similar rows share most leaves of the trees.</p>
<script type="application/json" id=review-list>{for_script(kept)}</script>"""


def _point_to_parts(findings: Findings) -> str:
    """Where to look instead, if no label stands out by itself but some part of the table does."""
    hidden = findings.audit.hidden_source
    if hidden is not None:
        column = for_page(name_column(hidden.column), 40)
        return (
            f"with {column} taken as a feature no row is suspect. With it as a source "
            f'{hidden.suspects_as_source[1]:,} are: run again as said under <a href="#summary">in short</a>'
        )
    return (
        "no single label stands out. But labels look wrong more often (or are much harder to tell) in "
        '<a href="#noise">parts of the table</a>: review some of them there'
    )


def _introduce(findings: Findings, n_kept: int) -> str:
    n_suspects = len(findings.suspects)
    n_listed = len(findings.explanations)
    by_doubt = "Rows whose label is more likely wrong than right"
    if len(findings.audit.classes) > 2:
        by_doubt = "Rows whose label is doubtful enough for a review to be worth it"
    words = "The rows that were asked for" if findings.asked_for else by_doubt
    number = count_finds(findings.audit, findings.suspects)
    words += f", the most doubtful first. Of these {n_suspects:,} "
    if findings.audit.noise.found:
        words += f"about {number:,.0f} are expected to be wrong."
    else:
        words += (
            f"up to {math.ceil(number):,} may be wrong: no noise was found that is the same everywhere, and uneven "
            "noise looks like hard rows. Only a review can tell."
        )
    if n_suspects > n_listed:
        rest = "all of them" if n_kept == n_suspects else f"the first {n_kept:,}"
        words += f" The table shows the first {n_listed:,} of {n_suspects:,}; the download has {rest}."
    return words


def _write_expectation(findings: Findings) -> str:
    audit = findings.audit
    suspects = findings.suspects
    steps = [k for k in (10, 50, 100, 500, 1000, 5000) if k < len(suspects)] + [len(suspects)]
    finds = [count_finds(audit, suspects[:k]) for k in steps]
    up_to = "" if audit.noise.found else "up to "
    lines = [
        [
            f"first {k:,}",
            f"{up_to}{found:,.1f}",
            up_to + (f"{found / k:.0%}" if up_to else format_probability(found / k)),
        ]
        for k, found in zip(steps, finds, strict=True)
    ]
    chart = charts.draw_finds(
        findings.expected_finds,
        count_finds(audit, np.arange(len(audit.given))) / len(audit.given),
        len(suspects),
        f"Wrong labels expected to be found by a review: {up_to}{finds[-1]:,.0f} among {len(suspects):,} rows",
    )
    caption = "What a review is expected to find" if audit.noise.found else "What a review may find at most"
    caption += ". The dot is the end of the list; the dashed line is a review in any order."
    return place_beside(
        write_figure(chart, caption), write_table("What to expect", ["rows reviewed", "truly wrong", "share"], lines)
    )


def _write_filter(word: str, name: str, audit: LabelAudit) -> str:
    options = "".join(f"<option value={i}>{for_page(one, 40)}</option>" for i, one in enumerate(audit.classes.tolist()))
    return f'<label>{word} <select id={name}><option value="">any</option>{options}</select></label>\n'


def _write_line(audit: LabelAudit, rank: int, name: Any, one: Explanation) -> str:
    """A line of the table. Cells have numbers to sort by, the line has its classes to filter by."""
    given, like = np.searchsorted(audit.classes, [one.given, one.predicted])
    reasons = "".join(_write_reason(reason) for reason in one.reasons if reason.effect >= LEAST_SHOWN_EFFECT)
    number = f' data-v="{name!r}"' if isinstance(name, (int, float)) and math.isfinite(name) else ""
    likely = format_probability(one.wrong)
    if one.wrong_at_most is not None:
        likely += f" to {format_probability(one.wrong_at_most)}"
    meter = (
        '<svg class=meter viewBox="0 0 60 8" aria-hidden=true><rect class=rest width="60" height="8" rx="4"/>'
        f'<rect class=full width="{60 * one.wrong:.1f}" height="8" rx="4"/></svg>'
    )
    return (
        f"<tr data-i={rank} data-g={given} data-l={like}><th scope=row{number}>{for_page(name, 40)}</th>"
        f"<td>{for_page(one.given, 40)}{_name_source(audit, one.row)}</td><td>{for_page(one.predicted, 40)}</td>"
        f'<td data-v="{one.wrong:.6f}">{meter}{likely}</td>'
        f"<td data-v={one.n_disagreeing}>{one.n_disagreeing} of {one.n_similar}</td>"
        f"<td><ul>{reasons or '<li>no single column stands out</li>'}</ul></td></tr>\n"
    )


def _name_source(audit: LabelAudit, row: int) -> str:
    """Who gave the label, below it."""
    if audit.source is None or audit.source[row] is None:
        return ""
    return f" <small>by {for_page(audit.source[row], 40)}</small>"


def _write_reason(reason: Reason) -> str:
    column = for_page(name_column(reason.column), 40)
    value = for_page(describe_value(reason.value), 40)
    usual = for_page(describe_value(reason.usual), 40)
    return f"<li><b>{column}</b> is {value}, usually {usual} <small>+{reason.effect:.1f}</small></li>"


def _embed(audit: LabelAudit, suspects: NDArray[np.intp], names: Sequence[Any]) -> dict[str, list[Any]]:
    """The list to download, by column; as many rows as fit."""
    kept: dict[str, list[Any]] = {"labels": [str(label) for label in audit.classes.tolist()]}
    shown_names = [names[row] if type(names[row]) is int else str(names[row]) for row in suspects.tolist()]
    sizes = np.cumsum([len(for_script(name)) + 12 for name in shown_names])
    first = suspects[: int(np.searchsorted(sizes, MOST_EMBEDDED, side="right"))]
    return kept | {
        "row": shown_names[: len(first)],
        "given": np.searchsorted(audit.classes, audit.given[first]).tolist(),
        "like": np.searchsorted(audit.classes, audit.predicted[first]).tolist(),
        "wrong": audit.wrong[first].round(4).tolist(),
    }
