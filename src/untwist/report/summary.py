"""The section of a report that says in short how noisy the labels are, how sure that is, and what to do."""

from __future__ import annotations

from untwist.audit.findings import Findings
from untwist.audit.reviewed import ReviewOutcome
from untwist.audit.statements import write_conditions
from untwist.audit.verdict import FORBIDDING, NoticeKind, State, Verdict
from untwist.report import charts
from untwist.report.markup import format_interval, format_percent, format_words, name_column, write_figure
from untwist.report.noise import write_part
from untwist.text import clip, for_page

__all__ = ["write_summary"]

#: Characters of what to do about a column, at most.
MOST_ADVICE = 400
#: Names, or parts of the table, that are told in a sentence, at most.
MOST_STANDING_OUT = 4

#: The answer where no share is told, and the colour of the answer, by state.
ANSWERS = {State.UNDECIDED: "Undecided", State.NONE: "No sign"}
MOODS = {State.FOUND: "", State.UNDECIDED: " open", State.NONE: " calm"}


def write_summary(findings: Findings, row_name: str) -> str:
    """Write how noisy the labels are, how sure that is, and what to do.

    Parameters
    ----------
    findings : Findings
        What `collect_findings` computed.
    row_name : str
        The word for one of the rows.

    Returns
    -------
    str
        HTML.
    """
    verdict = findings.verdict
    number, words = _write_headline(findings)
    boxes = "".join(
        f"<div><dt>{name}</dt><dd><b>{one}</b> <span>{note}</span></dd></div>"
        for name, one, note in _list_tiles(findings)
    )
    to_do = [
        *_point_to_review(findings.audit.review),
        *_point_to_notices(verdict),
        *_point_to_sources(findings),
        *_point_to_slices(findings),
        *_write_next_steps(findings, row_name),
    ]
    steps = "".join(f"<li>{step}</li>" for step in to_do)
    return (
        f'<div class=hero><div><p class="verdict{MOODS[verdict.state]}">{number}</p><p class=lead>{words}</p></div>'
        f"{_draw_share(verdict)}</div><dl class=tiles>{boxes}</dl><h3>What to do next</h3><ol class=steps>{steps}</ol>"
    )


def _draw_share(verdict: Verdict) -> str:
    """A hundred labels, and how many of them are wrong; nothing where nothing is excluded."""
    if verdict.is_chance or not (verdict.is_found or verdict.is_bounded):
        return ""
    share = verdict.share
    told = verdict.claim if verdict.is_found else verdict.bound
    rate = share.value if verdict.is_found else 0.0
    picture = charts.draw_waffle((rate, share.low, share.high), f"A hundred squares for a hundred labels: {told}")
    conditions = write_conditions(share.rests_on if verdict.is_found else verdict.upper_bound.rests_on)
    return write_figure(picture, f"A hundred labels. Full colour: wrong; faint: perhaps, {conditions.strip()}.")


def _list_tiles(findings: Findings) -> list[tuple[str, str, str]]:
    """The name, the number and a note of each tile."""
    verdict, suspects = findings.verdict, findings.suspects
    columns = f", {len(findings.column_names):,} columns" if findings.column_names else ""
    worth = verdict.describe_yield(findings.audit.expected_yield(suspects)) if len(suspects) else "no suspects"
    return [
        ("labels judged", f"{verdict.n_judged:,}", f"{len(findings.audit.classes)} classes{columns}"),
        *_count_reviewed(findings.audit.review),
        *_count_wrong(verdict),
        ("to review", f"{len(suspects):,}", worth),
    ]


def _count_wrong(verdict: Verdict) -> list[tuple[str, str, str]]:
    """The tile of the share of labels that are wrong, or may be."""
    if verdict.is_chance:
        return []
    share, bound = verdict.share, verdict.upper_bound
    if verdict.is_found:
        limits = f"{format_percent(share.low)} to {format_percent(share.high)},{write_conditions(share.rests_on)}"
        return [("wrong", format_percent(share.value), limits)]
    if not verdict.is_bounded:
        return [("may be wrong", "any number", "how many cannot be told")]
    return [("may be wrong", f"0&nbsp;% to {format_percent(bound.high)}", write_conditions(bound.rests_on).strip())]


def _write_headline(findings: Findings) -> tuple[str, str]:
    """The answer, and the sentence that goes on from it, with what a review found."""
    verdict, review = findings.verdict, findings.audit.review
    number = format_percent(verdict.share.value) if verdict.is_found else ANSWERS[verdict.state]
    number = "Outcomes" if verdict.is_chance else number
    words = f"{format_words(verdict.sentence)}."
    if review is None:
        return number, words
    told = f"<b>{review.rows:,} rows are reviewed</b>: {review.decided}."
    told += "".join(f" {one[:1].upper()}{one[1:]}." for one in (review.held, review.left) if one)
    return number, f"{words} {told}"


def _count_reviewed(review: ReviewOutcome | None) -> list[tuple[str, str, str]]:
    """The tile of what a review found, if there was one."""
    return [] if review is None else [("reviewed", f"{review.rows:,}", review.decided)]


def _point_to_review(review: ReviewOutcome | None) -> list[str]:
    """That labels found wrong are to be changed, if the data still hold some."""
    if review is None or not review.still_wrong:
        return []
    return [
        f"Change what was decided: {review.held}, which count as wrong here. <code>untwist apply</code> changes them."
    ]


def _point_to_notices(verdict: Verdict) -> list[str]:
    """What stands in the way of telling more; parts of the table, and a column like a source, have a line each."""
    told = [one for one in verdict.notices if one.kind not in (NoticeKind.UNEVEN, NoticeKind.SOURCE)]
    return [f"<b>Beware:</b> {format_words(clip(one.sentence.python, MOST_ADVICE))}." for one in told]


def _point_to_sources(findings: Findings) -> list[str]:
    """Whose labels to look at first, if some stand out, or which column looks like a source."""
    hidden = findings.audit.context.hidden_source
    if hidden is not None:
        column = for_page(name_column(hidden.column), 40)
        there, everywhere = hidden.suspects_as_feature
        there_as_source, everywhere_as_source = hidden.suspects_as_source
        words = (
            f"Labels where <b>{column} {for_page(hidden.where, 60)}</b> look wrong in "
            f"{format_percent(hidden.share_there)} of {hidden.rows:,} rows, elsewhere in "
            f"{format_percent(hidden.share_elsewhere)}. {column} looks like who gave the labels rather than like a "
            f"feature, and as a feature it may hide them: {there:,} of the {everywhere:,} suspects are there, and "
            f"{there_as_source:,} of {everywhere_as_source:,} if it is taken for the source. Run again with it as "
            f"source: {format_interval((hidden.share_as_source, *hidden.interval_as_source))} of all "
            f"labels look wrong then. In Python: <code>{for_page(hidden.advise_in_python(), MOST_ADVICE)}</code>"
        )
        if not isinstance(hidden.column, int):  # Columns of files have names.
            words += f"; on the command line: {for_page(hidden.advise_on_command_line(), MOST_ADVICE)}"
        return [f"{words}."]
    bad = [one for one in findings.sources if one.stands_out]
    if not bad:
        return []
    names = ", ".join(f"<b>{for_page(one.name, 40)}</b>" for one in bad[:MOST_STANDING_OUT])
    more = f" and {len(bad) - MOST_STANDING_OUT:,} more" if len(bad) > MOST_STANDING_OUT else ""
    return [f'Labels of {names}{more} are wrong more often than those of the others: <a href="#sources">by source</a>.']


def _point_to_slices(findings: Findings) -> list[str]:
    """Where wrong labels concentrate, beyond a column that looks like a source."""
    hidden = findings.audit.context.hidden_source
    slices = [one for one in findings.slices if hidden is None or one.column != hidden.column]
    if not slices:
        return []
    places = "; ".join(
        f"<b>{for_page(name_column(one.column), 40)} is {for_page(one.where, 60)}</b> "
        f"({write_part(one)} of {one.rows:,} rows)"
        for one in slices[:MOST_STANDING_OUT]
    )
    more = f"; and in {len(slices) - MOST_STANDING_OUT:,} more parts" if len(slices) > MOST_STANDING_OUT else ""
    words = '<a href="#noise">look wrong more often</a> (or are much harder to tell)'
    return [f"Labels {words} where {places}{more}: look there first."]


def _write_next_steps(findings: Findings, row_name: str) -> list[str]:
    """What to do about the suspects, or instead where there are none."""
    verdict, suspects, audit = findings.verdict, findings.suspects, findings.audit
    usable = ""
    if findings.training is not None and not verdict.notes(*FORBIDDING):
        usable = " Until then the model can be used as it is"
        usable += ": it allows for the noise." if findings.training.untwists and verdict.is_found else "."
    steps = []
    if verdict.notes(*FORBIDDING):
        steps.append(f"First audit the labels once more: {format_words(verdict.next_step.python)}.")
    if not len(suspects):
        listed = f"No row is listed: {format_words(verdict.next_step.python)} (<code>untwist audit --budget 50</code>)."
        why = "" if verdict.is_chance else " Only a look at rows shows errors that follow the features."
        return [*steps, f"{listed}{why}{usable}"]
    k = min(len(suspects), 50)
    first = f"the first {k} {for_page(row_name, 20)}s" if k > 1 else f"the {for_page(row_name, 20)}"
    many = format_words(verdict.describe_yield(audit.expected_yield(suspects[:k])))
    if verdict.is_chance:
        return [*steps, f'Look at {first} of the <a href="#review">list</a>: a surprise may be worth knowing.']
    if verdict.why_not_corrected:
        why = for_page(verdict.why_not_corrected, MOST_ADVICE)
        steps.append(f"Let no label be replaced that nobody has looked at (<code>--corrected</code>): {why}.")
    return [
        *steps,
        f'Look at {first} of the <a href="#review">list</a>: {many}.',
        "Decide there: relabel what is wrong, keep what is right (hard cases are worth having), and save it all.",
        "<code>untwist apply</code> changes the labels that were decided on.",
        f"Train again on the corrected data.{usable}",
    ]
