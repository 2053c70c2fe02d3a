"""The section of a report that says in short how noisy the labels are, how sure that is, and what to do."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from untwist.audit.findings import Findings, count_finds
from untwist.audit.labels import LabelAudit
from untwist.audit.reviewed import ReviewOutcome, find_known_wrong
from untwist.audit.verdict import State, Verdict
from untwist.data.near_duplicates import HOW_MANY_UNKNOWN, NOTHING_KNOWN
from untwist.report import charts
from untwist.report.markup import (
    format_interval,
    format_percent,
    name_column,
    write_figure,
)
from untwist.report.noise import write_share
from untwist.text import for_page

__all__ = ["write_summary"]

#: Characters of what to do about a column, at most.
MOST_ADVICE = 400
#: Names, or parts of the table, that are told in a sentence, at most.
MOST_STANDING_OUT = 4


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
    mood = "" if verdict.is_found else " calm" if verdict.state is State.CLEAN else " open"
    boxes = "".join(
        f"<div><dt>{name}</dt><dd><b>{one}</b> <span>{note}</span></dd></div>"
        for name, one, note in _list_tiles(findings)
    )
    figure = ""
    if verdict.tells_how_many:
        rate = verdict.share[0]
        low, high = _find_limits(findings)
        described = f"A hundred squares for a hundred labels: between {low:.0%} and {high:.0%} of them are wrong"
        picture = charts.draw_waffle((rate, low, high), described)
        figure = write_figure(picture, "A hundred labels. Full colour: wrong; faint: perhaps.")
    to_do = [
        *_point_to_review(findings.audit.review),
        *_point_to_judge(verdict),
        *_point_to_sources(findings),
        *_point_to_slices(findings),
        *_write_next_steps(findings, row_name),
    ]
    steps = "".join(f"<li>{step}</li>" for step in to_do)
    return (
        f'<div class=hero><div><p class="verdict{mood}">{number}</p><p class=lead>{words}</p></div>'
        f"{figure}</div><dl class=tiles>{boxes}</dl><h3>What to do next</h3><ol class=steps>{steps}</ol>"
    )


def _find_limits(findings: Findings) -> tuple[float, float]:
    """The limits of the share of wrong labels; where no noise was found, of what is not excluded."""
    verdict = findings.verdict
    _, low, high = verdict.share
    if not verdict.is_found:
        return 0.0, verdict.highest_share
    return low, high if findings.audit.context.hidden_source is None else verdict.highest_share


def _list_tiles(findings: Findings) -> list[tuple[str, str, str]]:
    """The name, the number and a note of each tile."""
    verdict, suspects = findings.verdict, findings.suspects
    columns = f", {len(findings.column_names):,} columns" if findings.column_names else ""
    worth = "no suspects"
    if len(suspects) and verdict.tells_how_many:
        worth = f"{_say_how_many(findings, suspects)} of them truly wrong"
    elif len(suspects):
        worth = "how many of them are wrong cannot be told"
    return [
        ("labels judged", f"{verdict.n_judged:,}", f"{len(findings.audit.classes)} classes{columns}"),
        *_count_reviewed(findings.audit.review),
        _count_wrong(findings),
        ("to review", f"{len(suspects):,}", worth),
    ]


def _count_wrong(findings: Findings) -> tuple[str, str, str]:
    """The tile of how many labels are wrong, or may be."""
    verdict, n = findings.verdict, findings.verdict.n_judged
    hidden = findings.audit.context.hidden_source
    low, high = verdict.share[1:] if verdict.is_found else (0.0, verdict.highest_share)
    if not verdict.tells_how_many:
        tile = "wrong", "at least some" if verdict.is_found else "any number", "how many cannot be told"
    elif verdict.is_found:
        tile = "expected wrong", f"{verdict.share[0] * n:,.0f}", f"between {low * n:,.0f} and {high * n:,.0f}"
    else:
        reason = "more in some parts than in others" if findings.is_uneven else "no noise was found"
        tile = "may be wrong", f"0 to {math.ceil(high * n):,}", reason
    if hidden is None:
        return tile
    column = for_page(name_column(hidden.column), 40)
    return tile[0], tile[1], f"about {hidden.share_as_source * n:,.0f} if {column} is a source"


def _write_headline(findings: Findings) -> tuple[str, str]:
    """The answer, and the sentence that goes on from it, with what a review found."""
    review = findings.audit.review
    number, words = _say_how_noisy(findings)
    if review is None:
        return number, words
    reviewed = f" <b>{review.rows:,} rows are reviewed</b>: {review.decided}."
    reviewed += f" {review.held[:1].upper()}{review.held[1:]}." if review.held else ""
    if review.still_wrong and not findings.verdict.is_found:
        of_all = words if number == "Uneven" else f"{number} {words}"
        return f"{review.still_wrong:,} wrong", f"{reviewed.strip()} As for all labels: {of_all}"
    left = f" {review.left[:1].upper()}{review.left[1:]}." if review.left else ""
    return number, f"{words}{reviewed}{left}"


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


def _say_how_noisy(findings: Findings) -> tuple[str, str]:
    """How many of the labels that the data hold are wrong, and how sure that is."""
    verdict, as_source = findings.verdict, _describe_as_source(findings.audit)
    n, (rate, low, high) = verdict.n_judged, verdict.share
    match verdict.state:
        case State.GIVEN:
            words = f"of the {n:,} labels are wrong, if the noise rates that were given are right."
            return format_percent(rate), words + as_source
        case State.FOUND:
            sure = f"We are 95&nbsp;% sure that it is between {format_percent(low)} and {format_percent(high)}."
            return format_percent(rate), f"of the {n:,} labels look wrong. {sure}{as_source}"
        case State.SOME:
            return "At least some", f"of the {n:,} labels are wrong; {HOW_MANY_UNKNOWN}."
        case State.UNKNOWN:
            return "Nothing", f"can be said of these labels: {NOTHING_KNOWN}."
        case State.SEEN:
            return "Nothing", "can be said of these labels: the posteriors look as if they had seen them."
        case State.AS_SOURCE:
            return "Uneven", f"No noise that is the same everywhere was found.{as_source}"
    return _say_what_is_not_excluded(findings)


def _describe_as_source(audit: LabelAudit) -> str:
    """How many labels look wrong if a column that looks like a source is taken for one, as a sentence that goes on."""
    hidden = audit.context.hidden_source
    if hidden is None:
        return ""
    column = for_page(name_column(hidden.column), 40)
    share = format_interval((hidden.share_as_source, *hidden.interval_as_source))
    return f" That is with {column} taken as a feature; if {column} is taken for a source, {share} look wrong."


def _say_what_is_not_excluded(findings: Findings) -> tuple[str, str]:
    """What may be wrong all the same where no noise was found."""
    verdict = findings.verdict
    not_excluded = format_percent(verdict.highest_share)
    match verdict.state:
        case State.UNEVEN:
            return "Uneven", (
                "No noise that is the same everywhere was found, but labels look wrong more often (or are much harder "
                f'to tell) in <a href="#noise">parts of the table</a>. Up to {not_excluded} of wrong labels would fit.'
            )
        case State.CLEAN:
            return "Clean", (
                f"as far as can be seen: no evidence of wrong labels. At most {not_excluded} of them may be wrong."
            )
        case State.NO_SIGN:
            is_of_several = len(findings.audit.classes) > 2
            where = "in every class" if is_of_several else "everywhere"
            kind = "of one class or between two" if is_of_several else "more of it where rows are hard"
            return "No sign", (
                f"of noise that is the same {where}: up to {format_percent(findings.audit.noise.even_limit)} would "
                f"fit. Uneven noise, {kind}, of up to {not_excluded} of the labels is not excluded."
            )
    return "Unclear", (
        "whether labels are wrong or rows just hard to tell apart: nothing here shows which. "
        f"Anything up to {not_excluded} of wrong labels would fit."
    )


def _point_to_judge(verdict: Verdict) -> list[str]:
    """What speaks against those who judged: that they may have seen the labels, or not all rows."""
    return [f"<b>Beware:</b> {for_page(one.python, MOST_ADVICE)}." for one in verdict.rests_on]


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
            f"source, in Python: <code>{for_page(hidden.advise_in_python(), MOST_ADVICE)}</code>"
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
        f"({write_share(one)} of {one.rows:,} rows)"
        for one in slices[:MOST_STANDING_OUT]
    )
    more = f"; and in {len(slices) - MOST_STANDING_OUT:,} more parts" if len(slices) > MOST_STANDING_OUT else ""
    words = '<a href="#noise">look wrong more often</a> (or are much harder to tell)'
    return [f"Labels {words} where {places}{more}: look there first."]


def _say_how_many(findings: Findings, rows: NDArray[np.intp]) -> str:
    """Say how many of some labels are wrong: about so many, and where no noise was found, at most so many."""
    number = count_finds(findings.audit, rows)
    return f"about {number:,.0f}" if findings.verdict.is_found else f"up to {math.ceil(number):,}"


def _write_next_steps(findings: Findings, row_name: str) -> list[str]:
    """What to do about the suspects, or instead where there are none."""
    if not len(findings.suspects):
        return _write_steps_without_rows(findings)
    verdict, suspects = findings.verdict, findings.suspects
    k = min(len(suspects), 50)
    first = f"the first {k} {for_page(row_name, 20)}s" if k > 1 else f"the {for_page(row_name, 20)}"
    until_then = ""
    if findings.training is not None and verdict.tells_how_many and not findings.is_uneven:
        until_then = " Until then the model can be used as it is"
        until_then += ": it allows for the noise." if findings.training.untwists else "."
    steps = []
    if not verdict.tells_how_many:
        steps.append(
            "First audit the labels once more, and say which rows belong together: then it shows how many are wrong."
        )
        many = "some of the labels there may be wrong"
    elif verdict.is_found:
        nearly_all = findings.audit.expect_wrong(suspects[:k]) >= k - 0.5
        number = "nearly all" if nearly_all else f"{_say_how_many(findings, suspects[:k])} of"
        many = f"{number} the labels there are expected to be truly wrong"
    else:
        many = f"{_say_how_many(findings, suspects[:k])} of the labels there may be wrong, or none"
    if verdict.why_not_corrected:
        why = for_page(verdict.why_not_corrected, MOST_ADVICE)
        steps.append(f"Let no label be replaced that nobody has looked at (<code>--corrected</code>): {why}.")
    return [
        *steps,
        f'Look at {first} of the <a href="#review">list</a>: {many}.',
        "Decide there: relabel what is wrong, keep what is right (hard cases are worth having), and save it all.",
        "<code>untwist apply</code> changes the labels that were decided on.",
        f"Train again on the corrected data.{until_then}",
    ]


def _write_steps_without_rows(findings: Findings) -> list[str]:
    """What to do where no row is a suspect."""
    verdict = findings.verdict
    if findings.is_uneven:
        return ["No row is listed by itself. Look into the above before the labels, and the model, are relied on."]
    if findings.audit.judge.looks_in_sample:
        return ["No row is listed. Audit the labels once more by posteriors of models that have not seen them."]
    if findings.audit.context.twins is not None:
        return ["No row is listed. Audit the labels once more, and say which rows belong together."]
    usable = "" if findings.training is None else " The model can be used as it is."
    if verdict.is_found or verdict.state is State.CLEAN:
        nothing = "Nothing else" if find_known_wrong(findings.audit).any() else "Nothing"
        return [f"{nothing} needs correcting: no label stands out as wrong.{usable}"]
    return [
        f"No label can be called wrong with confidence, so none is listed.{usable}",
        "If labels are doubted all the same, ask for a number of rows: the 50 most doubtful ones, say.",
    ]
