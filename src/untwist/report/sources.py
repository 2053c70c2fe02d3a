"""The section of a report about who gave the labels: the worst sources first, and what to do about them."""

from __future__ import annotations

import math

from untwist.audit.findings import Findings
from untwist.audit.sources import Disagreement, SourceQuality
from untwist.audit.statements import write_count
from untwist.audit.verdict import LEAST_REPEATED
from untwist.display import write_share
from untwist.report import charts
from untwist.report.markup import format_interval, format_percent, place_beside, write_figure, write_table
from untwist.text import clip, for_page

__all__ = ["write_sources"]

#: Sources in a chart, and in a table, at most: the worst.
MOST_BARS = 12
MOST_SOURCES = 25
#: Sources that are told in a sentence each, at most.
MOST_TOLD = 6
#: Pairs of sources in a table, at most.
MOST_PAIRS = 12
#: What follows the name of what stands out.
STANDS_OUT = " <small>stands out</small>"


def write_sources(findings: Findings) -> str:
    """Write how good the labels of each source are, what to do about bad ones, and who disagrees with whom.

    Parameters
    ----------
    findings : Findings
        What `collect_findings` computed.

    Returns
    -------
    str
        HTML; nothing where no sources were told.
    """
    sources = findings.sources
    if not sources:
        return ""
    return "".join(
        [
            f"<p>{_introduce(findings)}</p>",
            _write_advice(findings),
            place_beside(_draw(findings), _write_table(findings)) if findings.verdict.is_found else "",
            _write_disagreements(findings.disagreements),
        ]
    )


def _introduce(findings: Findings) -> str:
    audit = findings.audit
    n_sources = len(findings.sources)
    words = f"The labels come from {n_sources:,} sources" if n_sources > 1 else "The labels come from one source"
    words += "."
    if findings.verdict.is_found:
        words += (
            " The share of wrong labels is estimated for each; where a source has few labels, it is drawn towards that "
            "of the others."
        )
    if audit.sources.share_repeated >= LEAST_REPEATED:
        words += (
            f" An item has {audit.sources.labels_per_item:.2g} labels on average: what it truly is follows from its "
            "features and all of these, each counting as much as its source is worth."
        )
    unknown = int((audit.sources.indices < 0).sum())
    if unknown:
        words += f" {unknown:,} labels are of no known source and are judged as those of all."
    return words


def _write_advice(findings: Findings) -> str:
    sources = findings.sources
    bad = [one for one in sources if one.stands_out]
    if not bad and len(sources) == 1:
        return ""
    if not bad:
        if not findings.verdict.is_found:
            return "<p>Which of them are noisier than the others cannot be told.</p>"
        # The shares of single sources differ by chance, and most where labels are few: only that of all is told.
        in_common = format_interval(findings.verdict.share)
        return (
            f"<p>No source stands out: of the labels of all {in_common} are wrong. What the lines below differ by may "
            "be chance.</p>"
        )
    lines = [_advise(one, tells_share=findings.verdict.is_found) for one in bad[:MOST_TOLD]]
    if len(bad) > MOST_TOLD:
        lines.append(f"<li>{len(bad) - MOST_TOLD:,} more sources stand out.</li>")
    return f"<h3>What to do</h3><ul class=steps>{''.join(lines)}</ul>"


def _advise(one: SourceQuality, *, tells_share: bool) -> str:
    """What to do about a source, with its share of wrong labels where that can be told."""
    name = for_page(one.name, 40)
    share = format_interval((one.share_wrong, one.low, one.high))
    others = "" if math.isnan(one.others) else f"; of the others {format_percent(one.others)}"
    words = (
        f"Of the labels of <b>{name}</b> {share} are wrong{others}: about {write_count(one.expected_wrong)} of "
        f"{one.labels:,}."
    )
    if one.errs_in_one_class:
        worst, *limits = one.worst_class
        share = format_interval((limits[0], limits[1], limits[2]))
        words += f" Most of all it mislabels what is truly <b>{for_page(worst, 40)}</b>, {share} of it."
    if not tells_share:
        words = f"Labels of <b>{name}</b> are wrong more often than those of the others; how many cannot be told."
    if one.is_mostly_wrong:
        return f"<li>{words} Most of what it says is wrong: ask whether its classes were mixed up.</li>"
    return f"<li>{words} Review them first, or leave them out; and ask there how labels are given.</li>"


def _draw(findings: Findings) -> str:
    overall = findings.verdict.share
    rows = [(str(one.name), (one.share_wrong, one.low, one.high)) for one in findings.sources[:MOST_BARS]]
    described = "; ".join(f"{clip(name, 30)} {write_share(share[0])}" for name, share in rows)
    chart = charts.draw_intervals(
        rows,
        f"Share of wrong labels by source: {described}",
        x_words="share of wrong labels; shaded: all labels",
        band=(overall.value, overall.low, overall.high),
    )
    n_more = len(findings.sources) - len(rows)
    caption = "The share of its labels that are wrong. The lines are 95&nbsp;% intervals."
    return write_figure(chart, caption + (f" The worst {len(rows)} of {len(findings.sources):,}." if n_more else ""))


def _write_table(findings: Findings) -> str:
    shown = findings.sources[:MOST_SOURCES]
    lines = [
        [
            for_page(one.name, 40) + (STANDS_OUT if one.stands_out else ""),
            f"{one.labels:,}",
            format_interval((one.share_wrong, one.low, one.high)),
            write_count(one.expected_wrong),
        ]
        for one in shown
    ]
    table = write_table("Sources, the worst first", ["source", "labels", "share wrong", "expected wrong"], lines)
    n_more = len(findings.sources) - len(shown)
    return table + (f"<p class=aside>... and {n_more:,} more.</p>" if n_more else "")


def _write_disagreements(pairs: list[Disagreement]) -> str:
    lines = [
        [
            f"{for_page(one.first, 30)} and {for_page(one.second, 30)}" + (STANDS_OUT if one.stands_out else ""),
            f"{one.items:,}",
            format_percent(one.share),
            format_percent(one.expected),
        ]
        for one in pairs[:MOST_PAIRS]
    ]
    if not lines:
        return ""
    header = ["sources", "items of both", "disagree on", "explained"]
    words = (
        "<p class=aside>Explained: how often two sources of their quality disagree, each erring by itself. Where they "
        "disagree more, ask whether the two mean the same by the classes, and see the same of an item.</p>"
    )
    return write_table("Who disagrees with whom", header, lines) + words
