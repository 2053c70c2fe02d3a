"""The section of a report about how noisy the labels are: of which class, by which label, and where."""

from __future__ import annotations

import numpy as np

from untwist.audit.findings import Findings
from untwist.audit.labels import LabelAudit
from untwist.audit.slices import Slice
from untwist.data.near_duplicates import HOW_MANY_UNKNOWN, NOTHING_KNOWN
from untwist.noise.two_classes import ENOUGH_EVIDENCE
from untwist.report import charts
from untwist.report.markup import (
    format_interval,
    format_percent,
    name_column,
    place_beside,
    write_figure,
    write_heat_table,
    write_table,
)
from untwist.text import clip, for_page

__all__ = ["write_noise", "write_share"]

#: Bars in a chart, at most.
MOST_BARS = 12
#: Labels in a table, at most.
MOST_LABELS = 100
#: Slices, or confusions, in a table, at most.
MOST_PARTS = 6
#: Pairs of a class and a label that are told in a sentence each, at most.
MOST_STANDING_OUT = 4


def write_noise(findings: Findings) -> str:
    """Write rates by label with their intervals, and where wrong labels concentrate.

    Parameters
    ----------
    findings : Findings
        What `collect_findings` computed.

    Returns
    -------
    str
        HTML.
    """
    audit = findings.audit
    parts = [f"<p>{_write_certainty(findings)}</p>"]
    if audit.review is not None and audit.review.wrong:
        parts.append(
            "<p class=aside>By true class, and in the matrix, shares are those of the labels before the review. By "
            "label they are those of the labels that the data hold.</p>"
        )
    if not findings.verdict.tells_how_many:
        parts.append(
            f"<p>No share of wrong labels is told, of all or of one class: {HOW_MANY_UNKNOWN}, where wrong labels look "
            "right; audit the labels once more, and say which rows belong together.</p>"
        )
    else:
        parts += [
            _write_true_rates(audit),
            _write_matrix(findings),
            _write_rates(findings),
            _write_confusions(findings),
        ]
    parts.append(_write_slices(findings))
    if not np.all(audit.weight == 1):
        parts.append("<p class=aside>Shares count each row with its sample weight.</p>")
    return "".join(parts)


def _write_rates(findings: Findings) -> str:
    """Which share of the rows of each given label bears it wrongly, as a chart and a table."""
    audit = findings.audit
    labels = audit.classes.tolist()
    shares = [audit.rate_by_label[label] for label in labels]
    before = findings.n_rows_given
    after = findings.n_rows_corrected
    order = list(range(len(labels)))
    if len(labels) > MOST_BARS:
        order.sort(key=lambda i: (-shares[i][0], i))
    bars = [(str(labels[i]), shares[i]) for i in order[:MOST_BARS]]
    chart = charts.draw_intervals(
        bars,
        "Share of wrong labels by given label: " + "; ".join(f"{clip(name, 30)} {one[0]:.1%}" for name, one in bars),
        x_words="share of wrong labels; shaded: all labels",
        band=audit.noise_rate,
    )
    # A number that nobody should make is not shown.
    n_columns = 3 if findings.verdict.why_not_corrected else 4
    lines = [
        [for_page(labels[i], 40), f"{before[i]:,}", format_interval(shares[i]), f"{after[i]:,}"][:n_columns]
        for i in order[:MOST_LABELS]
    ]
    table = write_table("Labels as given", ["label", "rows", "wrong", "rows, corrected"][:n_columns], lines)
    if len(labels) > MOST_BARS:
        which = f"All {len(labels)} labels" if len(labels) <= MOST_LABELS else f"{MOST_LABELS} of {len(labels)} labels"
        table = f"<details><summary>{which}</summary>{table}</details>"
    caption = "Of the rows that bear a label, how many bear it wrongly. The lines are 95&nbsp;% intervals."
    if not audit.noise.found:
        alike = " that is the same everywhere" if findings.is_uneven else ""
        caption += f" No noise{alike} was found: this is what would fit if there were some."
    return place_beside(write_figure(chart, caption), table)


def _write_certainty(findings: Findings) -> str:
    """Who judged, and what shows that labels are wrong, or why nothing does."""
    audit = findings.audit
    if audit.noise.is_given:
        return "The noise rates were given, not estimated, so that there are no intervals."
    judge = "No row was judged by a model that had seen it."
    if audit.context.twins is not None:
        judge = (
            "No row was judged by a model that had seen it, but many by models that had seen a near-duplicate of it."
        )
    if findings.training is None:
        judge = (
            f"The labels were judged by {for_page(audit.judge.name, 80)}; probabilities were calibrated to them first."
        )
    words = (
        f"{judge} If labels contradict what similar rows say even where rows are "
        "as clear as can be, the labels must be wrong; if only unclear rows are contradicted, they are just hard. "
    )
    return words + (_name_evidence(audit) if audit.noise.found else _say_what_is_lacking(findings))


def _say_what_is_lacking(findings: Findings) -> str:
    """Why no noise was found."""
    hidden = findings.audit.context.hidden_source
    if not findings.verdict.tells_how_many:
        return f"Here that cannot be seen: {NOTHING_KNOWN}."
    if hidden is not None:
        column = for_page(name_column(hidden.column), 40)
        return (
            f"Here wrong labels explain no more than hard rows do with {column} taken as a feature, and clearly more "
            "with it taken for a source."
        )
    if findings.is_uneven:
        return (
            "Here noise that is the same everywhere explains no more than hard rows do, but in the parts below labels "
            "look wrong more often, or are much harder to tell."
        )
    return "Here wrong labels explain no more than hard rows do: no noise is claimed, no label is doubted."


def _name_evidence(audit: LabelAudit) -> str:
    """What shows that labels are wrong."""
    by_source = audit.context.by_source
    if by_source is not None and by_source.stands_out.any():
        evidence = f"{by_source.evidence:,.1f} units of log-likelihood"
        return f"Here noise that differs by source explains the labels better than one for all, by {evidence}."
    if by_source is not None and not by_source.noise.found:
        return "Here it is labels of the same item that differ: they cannot all be right."
    evidence = f"{audit.noise.evidence:,.1f} units of log-likelihood"
    words = f"Here noise explains the labels better than hard rows do, by {evidence}"
    if len(audit.classes) > 2:
        return words + " more than it takes to describe it."
    return words + f"; {ENOUGH_EVIDENCE:g} would be enough to count as found."


def _write_true_rates(audit: LabelAudit) -> str:
    """Which share of each true class is mislabelled."""
    if not audit.noise.found:
        return ""
    if len(audit.classes) > 2:
        return _write_standing_out(audit)
    neg, pos = audit.noise.list_class_shares()
    first, second = (for_page(label, 40) for label in audit.classes.tolist())
    return (
        f"<p>Of the rows that are truly <b>{first}</b>, {format_interval(neg)} are labelled {second}; "
        f"of those that are truly <b>{second}</b>, {format_interval(pos)} are labelled {first}.</p>"
    )


def _write_standing_out(audit: LabelAudit) -> str:
    """Which classes often bear one other label."""
    lines = [
        f"<li><b>{for_page(one.truth, 40)}</b> is often labelled <b>{for_page(one.label, 40)}</b>: "
        f"{format_interval((one.share, one.low, one.high))} of it, about {one.rows:,.0f} rows.</li>"
        for one in audit.confusions()
        if one.stands_out
    ]
    return f"<ul class=steps>{''.join(lines[:MOST_STANDING_OUT])}</ul>" if lines else ""


def _write_matrix(findings: Findings) -> str:
    """Which class bears which label, as a table whose colours are the shares; only as wide as a page is."""
    audit = findings.audit
    noise = audit.noise
    names = [for_page(label, 24) for label in audit.classes.tolist()]
    if not noise.found or not 2 < len(names) <= MOST_BARS:
        return ""
    intervals = [format_interval(one) for one in findings.verdict.share_by_class]
    return write_heat_table(
        "Who is labelled as what: of each true class, the labels that it bears, in %",
        "truly ↓ labelled →",
        names,
        audit.matrix.tolist(),
        "labelled wrongly",
        intervals,
    )


def _write_confusions(findings: Findings) -> str:
    """Which class bears which label how often, where there are more than two."""
    if len(findings.audit.classes) == 2 or not findings.audit.noise.found:
        return ""
    most = MOST_PARTS if len(findings.audit.classes) <= MOST_BARS else MOST_BARS
    lines = [
        [
            f"{for_page(one.confusion.truth, 40)} → {for_page(one.confusion.label, 40)}",
            format_interval((one.confusion.share, one.confusion.low, one.confusion.high)),
            f"{one.confusion.rows:,.0f}",
            f"{one.n_suspects:,}",
        ]
        for one in findings.confusions[:most]
    ]
    header = ["truly → labelled", "share of the class", "rows expected", "rows to review"]
    return write_table("The most frequent confusions", header, lines) if lines else ""


def _write_slices(findings: Findings) -> str:
    lines = [
        [
            f"{for_page(name_column(one.column), 40)} is {for_page(one.where, 60)}",
            f"{one.rows:,}",
            write_share(one),
            f"{one.p_value:.1g}",
        ]
        for one in findings.slices[:MOST_PARTS]
    ]
    return (
        write_table(
            "Where labels look wrong more often (or are much harder to tell)",
            ["rows where", "rows", "wrong", "p-value"],
            lines,
        )
        if lines
        else ""
    )


def write_share(one: Slice) -> str:
    """Write the share of wrong labels in a part with its interval; only the upper end where that begins at 0.

    Parameters
    ----------
    one : Slice
        The part.

    Returns
    -------
    str
        HTML.
    """
    return format_interval((one.share_wrong, one.low, one.high)) if one.low > 0 else f"up to {format_percent(one.high)}"
