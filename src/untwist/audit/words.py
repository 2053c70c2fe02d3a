"""What an audit found, in words and for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from untwist.data.twins import NOTHING_KNOWN, SOME_WRONG
from untwist.display import (
    NAME_WIDTH,
    describe_probability,
    write_bar,
    write_curve,
    write_fragment,
    write_percent,
    write_table,
)
from untwist.text import for_page

if TYPE_CHECKING:
    from untwist.audit.labels import LabelAudit

__all__ = [
    "describe_as_source",
    "describe_audit",
    "describe_judge",
    "describe_noise",
    "describe_sources",
    "write_html",
]

#: Labels whose share of wrong ones is printed, at most: the noisiest.
MOST_LABELS = 12

#: Pairs of a class and a label that are printed, at most.
MOST_CONFUSIONS = 4

#: How a line about the rows of one label begins.
BY_LABEL = "  of those that say"

#: Where fewer rows share their item with others it is not worth a word: some rows look alike by chance.
LEAST_REPEATED = 0.1

#: Sources that stand out, or pairs of them, that are printed, at most.
MOST_SOURCES = 4

#: Where the sources are that stand out and are not printed, in Python and on the command line.
ALL_SOURCES = ("list_sources() has them all", "--json lists them all")

#: How to ask for rows where no label is suspect, in Python and on the command line.
FIRST_ROWS = ("suspects(budget=...) are the rows to look at first", "--budget 50 lists the rows to look at first")

#: Suspects that a notebook lists, at most, and points of the curve of what a review of them finds.
MOST_LISTED = 5
CURVE_POINTS = 40


def describe_audit(audit: LabelAudit, *, for_command: bool) -> str:
    """Say in words how noisy the labels are, where most, and who gave the wrong ones.

    Parameters
    ----------
    audit : LabelAudit
        What was found.
    for_command : bool
        Whether advice names options of the command line rather than Python.

    Returns
    -------
    str
    """
    n_rows = audit.n_judged
    judge = audit.describe_judge(for_command=for_command)
    sources = audit.describe_sources(for_command=for_command)
    others = [f"  {one}" for one in [*judge, *sources, *audit.describe_review(for_command=for_command)]]
    if not audit.noise.found:
        words = f"{n_rows} labels: {audit.describe_noise()}{audit.describe_as_source()}"
        words += "" if audit.twins is not None else f"; {FIRST_ROWS[for_command]}"
        return "\n".join([words, *others])
    suspects = audit.suspects()
    number = f"{'' if audit.reviewed is None else 'of those not reviewed '}{len(suspects)}"
    doubted = f"{number} are suspects"
    if len(audit.classes) == 2:
        doubted = f"{number} are more likely wrong than right"
    elif audit.tells_how_many:
        doubted += f", about {audit.expect_wrong(suspects):,.0f} of them truly wrong"
    if not audit.tells_how_many:
        return "\n".join([f"{n_rows} labels: {SOME_WRONG}; {doubted}", *others])
    rate, low, high = audit.noise_rate
    wrong = f"{rate:.1%} of them wrong ({low:.1%} to {high:.1%})"
    lines = [f"{n_rows} labels, {wrong}{audit.describe_as_source()}; {doubted}"]
    noisiest = sorted(audit.rate_by_label, key=lambda label: -audit.rate_by_label[label][0])[:MOST_LABELS]
    for label in (one for one in audit.rate_by_label if one in noisiest):
        rate, low, high = audit.rate_by_label[label]
        lines.append(f"{BY_LABEL} {label}: {rate:.1%} ({low:.1%} to {high:.1%})")
    if n_others := len(audit.classes) - len(noisiest):
        lines.append(f"  ... and less of the {n_others} other labels")
    lines += [f"  {one}" for one in audit.confusions() if one.stands_out][:MOST_CONFUSIONS]
    return "\n".join(lines + others)


def describe_judge(audit: LabelAudit, *, for_command: bool) -> list[str]:
    """Say in words what speaks against those who judged: that they may have seen the labels, or not all rows.

    Parameters
    ----------
    audit : LabelAudit
        What was found.
    for_command : bool
        Whether advice names options of the command line rather than Python.

    Returns
    -------
    list of str
    """
    lines = []
    if audit.looks_in_sample:
        words = f"the posteriors look as if they had seen the labels: {audit.in_sample_reason}"
        lines.append(
            f"{words}; wrong labels that were seen look right, so that too few are found: give posteriors out of fold"
        )
    if audit.twins is not None:
        lines.append(audit.twins.describe(for_command=for_command))
    if audit.judged is not None:
        n_rows = len(audit.given)
        lines.append(
            f"{n_rows - audit.n_judged:,} of the {n_rows:,} labels are not judged, as no fold sets them aside: nothing "
            "is said of them"
        )
    if audit.groups is not None:
        lines.append(_describe_groups(audit))
    return lines


def _describe_groups(audit: LabelAudit) -> str:
    """Say how many groups there are, and for how many independent rows they count."""
    counted = audit.weight > 0
    named = [one for one in audit.groups[counted].tolist() if one is not None] if audit.groups is not None else []
    known = set(named)
    if len(known) == len(named):
        return (
            f"none of the {len(known):,} groups has several rows: nothing keeps rows together that are about one thing"
        )
    cases = np.count_nonzero(counted) / audit.rows_per_case
    return (
        f"rows of {len(known):,} groups are judged by models that have not seen their group; as rows of a group err "
        f"together, they count for about {cases:,.0f}"
    )


def describe_noise(audit: LabelAudit) -> str:
    """Say in words how noisy the labels are, with the names of the classes.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    str
    """
    if not audit.tells_how_many:
        return SOME_WRONG if audit.noise.found else NOTHING_KNOWN
    if audit.by_source is None or not audit.noise.found or len(audit.classes) == 2:
        return audit.noise.describe(audit.classes)
    share, low, high = audit.noise_rate
    return f"wrong labels: {share:.1%} ({low:.1%} to {high:.1%}) of all"


def describe_as_source(audit: LabelAudit) -> str:
    """Say how many labels look wrong if a column that looks like a source is taken for one.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    str
    """
    hidden = audit.hidden_source
    if hidden is None:
        return ""
    low, high = hidden.interval_as_source
    share = f"{hidden.share_as_source:.1%} ({low:.1%} to {high:.1%})"
    return f", with {hidden.name} taken as a feature; {share} wrong if {hidden.name} is taken for a source"


def describe_sources(audit: LabelAudit, *, for_command: bool) -> list[str]:
    """Say in words which sources stand out, and what several labels of an item add.

    Parameters
    ----------
    audit : LabelAudit
        What was found.
    for_command : bool
        Whether advice names options of the command line rather than Python.

    Returns
    -------
    list of str
    """
    if audit.by_source is None:
        return [] if audit.hidden_source is None else [audit.hidden_source.advise(for_command=for_command)]
    lines = []
    unknown = int(np.count_nonzero((audit.source_indices < 0) & (audit.weight > 0)))
    if unknown:
        lines.append(f"{unknown:,} labels are of no known source: they are judged as those of all")
    sources = audit.list_sources()
    bad = [one for one in sources if one.stands_out]
    if not bad:
        # The shares of single sources differ by chance, and most where labels are few: only that of all is told.
        share, low, high = audit.noise_rate
        in_common = f": of the labels of all {share:.1%} ({low:.1%} to {high:.1%}) are wrong"
        shares = in_common if audit.knows_share and len(sources) > 1 else ""
        unknown_too = f"which of {len(sources):,} are noisier than the others cannot be told either"
        none_found = f"no source stands out among {len(sources):,}{shares}"
        lines.append(none_found if audit.tells_how_many or audit.noise.found else unknown_too)
    lines += map(str, bad[:MOST_SOURCES])
    if len(bad) > MOST_SOURCES:
        lines.append(f"... and {len(bad) - MOST_SOURCES:,} more sources stand out: {ALL_SOURCES[for_command]}")
    if audit.share_repeated >= LEAST_REPEATED:
        lines.append(
            f"the truth of each item comes from its features and {audit.labels_per_item:.2g} labels on average"
        )
        lines += [str(one) for one in audit.list_disagreements() if one.stands_out][:MOST_SOURCES]
    return lines


def write_html(audit: LabelAudit) -> str:
    """Write how noisy the labels are, the first suspects and what a review finds, for notebooks.

    Parameters
    ----------
    audit : LabelAudit
        What was found.

    Returns
    -------
    str
    """
    longest = max(high for *_, high in audit.rate_by_label.values())
    noisiest = sorted(audit.rate_by_label, key=lambda label: -audit.rate_by_label[label][0])[:MOST_LABELS]
    labels = [
        [f"<b>{for_page(label, NAME_WIDTH)}</b>", write_percent(*rate), write_bar(*rate, longest=longest)]
        for label, rate in audit.rate_by_label.items()
        if label in noisiest
    ]
    suspects = audit.suspects()
    listed = [
        [
            f"{row}",
            for_page(audit.given[row], NAME_WIDTH),
            for_page(audit.predicted[row], NAME_WIDTH),
            describe_probability(float(audit.wrong[row]), audit.bound_probability(row)),
        ]
        for row in suspects[:MOST_LISTED].tolist()
    ]
    reviewed = audit.ranking[: 2 * len(suspects)]
    found = np.concatenate([[0.0], np.cumsum(audit.wrong[reviewed])])
    steps = np.unique(np.linspace(0, len(reviewed), CURVE_POINTS).astype(np.intp))
    curve = list(zip(steps.astype(float).tolist(), found[steps].tolist(), strict=True))
    expected = f"wrong labels found, as rows are reviewed: about {found[-1]:,.0f} in {len(reviewed):,}"
    return write_fragment(
        "Label audit",
        "\n".join(line for line in str(audit).splitlines() if not line.startswith(BY_LABEL)),
        write_table(["label", "wrong", ""], labels) if audit.knows_share else "",
        write_table(["row", "labelled", "looks like", "likely wrong"], listed),
        write_curve(curve, expected) if len(suspects) > 1 and audit.tells_how_many else "",
    )
