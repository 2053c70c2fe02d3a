"""The section of a report about how noisy the labels are: of which class, by which label, and where."""

from __future__ import annotations

import numpy as np

from untwist.audit.findings import Findings
from untwist.audit.labels import LabelAudit
from untwist.audit.slices import Slice
from untwist.audit.statements import write_conditions, write_count
from untwist.audit.verdict import FORBIDDING, Verdict
from untwist.display import write_share
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

__all__ = ["write_noise", "write_part"]

#: Bars in a chart, at most.
MOST_BARS = 12
#: Labels in a table, at most.
MOST_LABELS = 100
#: Classes whose upper bound is in a table, at most: the highest.
MOST_BOUNDED = 25
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
    audit, verdict = findings.audit, findings.verdict
    parts = [f"<p>{_write_certainty(findings)}</p>"]
    if audit.review is not None and audit.review.wrong:
        parts.append(
            "<p class=aside>By true class, and in the matrix, shares are those of the labels before the review. By "
            "label they are those of the labels that the data hold.</p>"
        )
    if verdict.is_found:
        parts += [_write_true_rates(verdict), _write_matrix(findings), _write_rates(findings)]
        parts.append(_write_confusions(findings))
    elif verdict.by_class and not verdict.is_chance:
        parts.append(_write_bounds(verdict))
    parts.append(_write_slices(findings))
    if not np.all(audit.weight == 1):
        parts.append("<p class=aside>Shares count each row with its sample weight.</p>")
    return "".join(parts)


def _write_bounds(verdict: Verdict) -> str:
    """How much of each true class bears another label at most, where no noise was found."""
    conditions = write_conditions(verdict.upper_bound.rests_on)
    worst = sorted(verdict.by_class, key=lambda one: -one.high)[:MOST_BOUNDED]
    chosen = [one for one in verdict.by_class if one in worst]
    lines = [[for_page(one.name, 40), format_percent(one.high)] for one in chosen]
    table = write_table(
        f"Of each true class, how much bears another label at most{conditions}", ["true class", "upper bound"], lines
    )
    n_more = len(verdict.by_class) - len(lines)
    return table + (f"<p class=aside>... and less of the {n_more:,} other classes.</p>" if n_more else "")


def _write_rates(findings: Findings) -> str:
    """Which share of the rows of each given label bears it wrongly, as a chart and a table."""
    verdict = findings.verdict
    labels = [one.name for one in verdict.by_label]
    before = findings.n_rows_given
    after = findings.n_rows_corrected
    order = list(range(len(labels)))
    if len(labels) > MOST_BARS:
        order.sort(key=lambda i: (-verdict.by_label[i].value, i))
    bars = [(labels[i], verdict.by_label[i]) for i in order[:MOST_BARS]]
    chart = charts.draw_intervals(
        [(name, (one.value, one.low, one.high)) for name, one in bars],
        "Share of wrong labels by given label: "
        + "; ".join(f"{clip(name, 30)} {write_share(one.value)}" for name, one in bars),
        x_words="share of wrong labels; shaded: all labels",
        band=(verdict.share.value, verdict.share.low, verdict.share.high),
    )
    # A number that nobody should make is not shown.
    n_columns = 3 if verdict.why_not_corrected else 4
    lines = [
        [for_page(labels[i], 40), f"{before[i]:,}", format_interval(verdict.by_label[i]), f"{after[i]:,}"][:n_columns]
        for i in order[:MOST_LABELS]
    ]
    header = ["of labels that say", "rows", "are wrong", "rows, corrected"][:n_columns]
    table = write_table("Labels as given", header, lines)
    if len(labels) > MOST_BARS:
        which = f"All {len(labels)} labels" if len(labels) <= MOST_LABELS else f"{MOST_LABELS} of {len(labels)} labels"
        table = f"<details><summary>{which}</summary>{table}</details>"
    caption = "Of labels that say so, how many are wrong. The lines are 95&nbsp;% intervals."
    return place_beside(write_figure(chart, caption), table)


def _write_certainty(findings: Findings) -> str:
    """Who judged, and what shows that labels are wrong, or why nothing does."""
    audit, verdict = findings.audit, findings.verdict
    if audit.noise.is_given and not verdict.is_chance:
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
    if verdict.is_chance:
        return f"{judge} The labels are outcomes of chance: what contradicts its row is a surprise, and no mistake."
    words = (
        f"{judge} If labels contradict what similar rows say even where rows are "
        "as clear as can be, labels are wrong if they are judgements and errors do not depend on features; if only "
        "unclear rows are contradicted, they may just be hard. "
    )
    return words + (_name_evidence(audit) if verdict.is_found else _say_what_is_lacking(findings))


def _say_what_is_lacking(findings: Findings) -> str:
    """Why no noise was found."""
    hidden, verdict = findings.audit.context.hidden_source, findings.verdict
    if verdict.notes(*FORBIDDING):
        return "Here that cannot be seen, as models may have seen the labels that they judge."
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
    if findings.audit.noise.found:
        return "Here noise explains the labels better than hard rows do, but its share may be next to nothing."
    return "Here wrong labels explain no more than hard rows do, so that no label is called wrong."


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


def _write_true_rates(verdict: Verdict) -> str:
    """Which share of each of two true classes is mislabelled, or which pairs of several are frequent."""
    if len(verdict.by_class) == 2:
        lines = [
            f"{format_interval(one)} of true <b>{for_page(one.name, 40)}</b> bear another label"
            for one in verdict.by_class
        ]
    else:
        lines = [f"<b>{for_page(one.of, 90)}</b>: {format_interval(one)}" for one in verdict.pairs[:MOST_STANDING_OUT]]
    return f"<ul class=steps>{''.join(f'<li>{line}.</li>' for line in lines)}</ul>" if lines else ""


def _write_matrix(findings: Findings) -> str:
    """Which class bears which label, as a table whose colours are the shares; only as wide as a page is."""
    audit = findings.audit
    names = [for_page(label, 24) for label in audit.classes.tolist()]
    if not 2 < len(names) <= MOST_BARS:
        return ""
    intervals = [format_interval(one) for one in findings.verdict.by_class]
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
    if len(findings.audit.classes) == 2:
        return ""
    most = MOST_PARTS if len(findings.audit.classes) <= MOST_BARS else MOST_BARS
    lines = [
        [
            f"{for_page(one.confusion.truth, 40)} → {for_page(one.confusion.label, 40)}",
            format_interval((one.confusion.share, one.confusion.low, one.confusion.high)),
            write_count(one.confusion.rows),
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
            write_part(one),
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


def write_part(one: Slice) -> str:
    """Write the share of wrong labels in a part with its interval; the limits alone where these begin at 0.

    Parameters
    ----------
    one : Slice
        The part.

    Returns
    -------
    str
        HTML.
    """
    if one.low > 0:
        return format_interval((one.share_wrong, one.low, one.high))
    return f"0&nbsp;% to {format_percent(one.high)}"
