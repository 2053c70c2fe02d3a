"""The sections of a report but the review: plain words, a chart, the numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from untwist.audit.findings import MOST_TRAINED_AGAIN, Findings, TrainingFacts, count_finds
from untwist.audit.labels import LabelAudit
from untwist.audit.reviewed import ReviewOutcome
from untwist.audit.slices import Slice
from untwist.data.twins import HOW_MANY_UNKNOWN, NOTHING_KNOWN
from untwist.display import format_probability
from untwist.model import Candidate
from untwist.noise.estimate import CLEAN_LIMIT
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

__all__ = ["write_calibration", "write_columns", "write_noise", "write_peers", "write_summary", "write_training"]

#: Bars in a chart, at most.
MOST_BARS = 12
#: Labels in a table, at most.
MOST_LABELS = 100
#: Slices, or confusions, in a table, at most.
MOST_PARTS = 6
#: Characters of what to do about a column, at most.
MOST_ADVICE = 400
#: Pairs of a class and a label that are told in a sentence each, at most.
MOST_STANDING_OUT = 4

# ---- in short ----


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
    audit = findings.audit
    suspects = findings.suspects
    n = audit.n_judged
    rate, low, high = audit.noise_rate
    number, words = _write_headline(findings)
    mood = "" if audit.noise.found else " calm" if _is_clean(findings) else " open"
    worth = "no suspects"
    if len(suspects) and audit.tells_how_many:
        worth = f"{_say_how_many(audit, suspects)} of them truly wrong"
    elif len(suspects):
        worth = "how many of them are wrong cannot be told"
    if not audit.tells_how_many:
        wrong = ("wrong", "at least some" if audit.noise.found else "any number", "how many cannot be told")
    elif audit.noise.found:
        wrong = ("expected wrong", f"{rate * n:,.0f}", f"between {low * n:,.0f} and {high * n:,.0f}")
    else:
        low, high = 0.0, audit.highest_share
        reason = "more in some parts than in others" if findings.is_uneven else "no noise was found"
        wrong = ("may be wrong", f"0 to {math.ceil(high * n):,}", reason)
    if audit.hidden_source is not None:
        high = audit.highest_share
        name, number_wrong, _ = wrong
        column = for_page(name_column(audit.hidden_source.column), 40)
        wrong = (name, number_wrong, f"about {audit.hidden_source.share_as_source * n:,.0f} if {column} is a source")
    columns = f", {len(findings.column_names):,} columns" if findings.column_names else ""
    tiles = [
        ("labels judged", f"{n:,}", f"{len(audit.classes)} classes{columns}"),
        *_count_reviewed(audit.review),
        wrong,
        ("to review", f"{len(suspects):,}", worth),
    ]
    boxes = "".join(f"<div><dt>{name}</dt><dd><b>{one}</b> <span>{note}</span></dd></div>" for name, one, note in tiles)
    figure = ""
    if audit.tells_how_many:
        described = f"A hundred squares for a hundred labels: between {low:.0%} and {high:.0%} of them are wrong"
        picture = charts.draw_waffle((rate, low, high), described)
        figure = write_figure(picture, "A hundred labels. Full colour: wrong; faint: perhaps.")
    to_do = [
        *_point_to_review(audit.review),
        *_point_to_judge(audit),
        *_point_to_sources(findings),
        *_point_to_slices(findings),
        *_write_next_steps(findings, row_name),
    ]
    steps = "".join(f"<li>{step}</li>" for step in to_do)
    return (
        f'<div class=hero><div><p class="verdict{mood}">{number}</p><p class=lead>{words}</p></div>'
        f"{figure}</div><dl class=tiles>{boxes}</dl><h3>What to do next</h3><ol class=steps>{steps}</ol>"
    )


def _write_headline(findings: Findings) -> tuple[str, str]:
    """The answer, and the sentence that goes on from it, with what a review found."""
    review = findings.audit.review
    number, words = _say_how_noisy(findings)
    if review is None:
        return number, words
    reviewed = f" <b>{review.rows:,} rows are reviewed</b>: {review.decided}."
    reviewed += f" {review.held[:1].upper()}{review.held[1:]}." if review.held else ""
    if review.still_wrong and not findings.audit.noise.found:
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
    audit = findings.audit
    n = audit.n_judged
    hidden = audit.hidden_source
    rate, low, high = audit.noise_rate
    as_source = ""
    if hidden is not None:
        column = for_page(name_column(hidden.column), 40)
        share = format_interval((hidden.share_as_source, *hidden.interval_as_source))
        as_source = f" That is with {column} taken as a feature; if {column} is taken for a source, {share} look wrong."
    if audit.noise.found and audit.noise.is_given:
        words = f"of the {n:,} labels are wrong, if the noise rates that were given are right."
        return format_percent(rate), words + as_source
    if audit.noise.found and not audit.tells_how_many:
        return "At least some", f"of the {n:,} labels are wrong; {HOW_MANY_UNKNOWN}."
    if audit.noise.found:
        sure = f"We are 95&nbsp;% sure that it is between {format_percent(low)} and {format_percent(high)}."
        return format_percent(rate), f"of the {n:,} labels look wrong. {sure}{as_source}"
    if audit.twins is not None:
        return "Nothing", f"can be said of these labels: {NOTHING_KNOWN}."
    if audit.looks_in_sample:
        return "Nothing", "can be said of these labels: the posteriors look as if they had seen them."
    not_excluded = format_percent(audit.highest_share)
    if hidden is not None:
        return "Uneven", f"No noise that is the same everywhere was found.{as_source}"
    if findings.is_uneven:
        return "Uneven", (
            "No noise that is the same everywhere was found, but labels look wrong more often (or are much harder to "
            f'tell) in <a href="#noise">parts of the table</a>. Up to {not_excluded} of wrong labels would fit.'
        )
    if _is_clean(findings):
        return "Clean", (
            f"as far as can be seen: no evidence of wrong labels. At most {not_excluded} of them may be wrong."
        )
    if audit.noise.even_limit < CLEAN_LIMIT:
        is_of_several = len(audit.classes) > 2
        where = "in every class" if is_of_several else "everywhere"
        kind = "of one class or between two" if is_of_several else "more of it where rows are hard"
        return "No sign", (
            f"of noise that is the same {where}: up to {format_percent(audit.noise.even_limit)} would fit. "
            f"Uneven noise, {kind}, of up to {not_excluded} of the labels is not excluded."
        )
    return "Unclear", (
        "whether labels are wrong or rows just hard to tell apart: nothing here shows which. "
        f"Anything up to {not_excluded} of wrong labels would fit."
    )


def _is_clean(findings: Findings) -> bool:
    """Tell whether there is no noise to speak of, and not only none that can be told from hard data.

    Uneven noise looks like hard rows, so that few of them must be in doubt (`LabelAudit.highest_share`). Of several
    classes nobody can say so: noise between two of them may show in too few rows. Nor can it be said where labels look
    wrong more often in some part.
    """
    audit = findings.audit
    is_told = len(audit.classes) > 2 or audit.noise.found or findings.is_uneven
    is_told = is_told or (audit.review is not None and audit.review.still_wrong > 0)
    if is_told or audit.looks_in_sample or audit.twins is not None:
        return False
    return max(audit.noise.even_limit, audit.highest_share) < CLEAN_LIMIT


def _point_to_judge(audit: LabelAudit) -> list[str]:
    """What speaks against those who judged: that they may have seen the labels, or not all rows."""
    return [f"<b>Beware:</b> {for_page(one, MOST_ADVICE)}." for one in audit.describe_judge()]


def _point_to_sources(findings: Findings) -> list[str]:
    """Whose labels to look at first, if some stand out, or which column looks like a source."""
    hidden = findings.audit.hidden_source
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
    hidden = findings.audit.hidden_source
    slices = [one for one in findings.slices if hidden is None or one.column != hidden.column]
    if not slices:
        return []
    places = "; ".join(
        f"<b>{for_page(name_column(one.column), 40)} is {for_page(one.where, 60)}</b> "
        f"({_write_share(one)} of {one.rows:,} rows)"
        for one in slices[:MOST_STANDING_OUT]
    )
    more = f"; and in {len(slices) - MOST_STANDING_OUT:,} more parts" if len(slices) > MOST_STANDING_OUT else ""
    words = '<a href="#noise">look wrong more often</a> (or are much harder to tell)'
    return [f"Labels {words} where {places}{more}: look there first."]


def _write_share(one: Slice) -> str:
    """The share of wrong labels in a part with its interval; only the upper end where that begins at 0."""
    return format_interval((one.share_wrong, one.low, one.high)) if one.low > 0 else f"up to {format_percent(one.high)}"


def _say_how_many(audit: LabelAudit, rows: NDArray[np.intp]) -> str:
    """Say how many of some labels are wrong: about so many, and where no noise was found, at most so many."""
    number = count_finds(audit, rows)
    return f"about {number:,.0f}" if audit.noise.found else f"up to {math.ceil(number):,}"


def _write_next_steps(findings: Findings, row_name: str) -> list[str]:
    audit = findings.audit
    suspects = findings.suspects
    if not len(suspects) and findings.is_uneven:
        return ["No row is listed by itself. Look into the above before the labels, and the model, are relied on."]
    if not len(suspects) and audit.looks_in_sample:
        return ["No row is listed. Audit the labels once more by posteriors of models that have not seen them."]
    if not len(suspects) and audit.twins is not None:
        return ["No row is listed. Audit the labels once more, and say which rows belong together."]
    usable = "" if findings.training is None else " The model can be used as it is."
    if not len(suspects):
        if audit.noise.found or _is_clean(findings):
            nothing = "Nothing else" if audit.is_known_wrong.any() else "Nothing"
            return [f"{nothing} needs correcting: no label stands out as wrong.{usable}"]
        return [
            f"No label can be called wrong with confidence, so none is listed.{usable}",
            "If labels are doubted all the same, ask for a number of rows: the 50 most doubtful ones, say.",
        ]
    k = min(len(suspects), 50)
    first = f"the first {k} {for_page(row_name, 20)}s" if k > 1 else f"the {for_page(row_name, 20)}"
    until_then = ""
    if findings.training is not None:
        until_then = " Until then the model can be used as it is"
        until_then += ": it allows for the noise." if findings.training.untwists else "."
    many = f"{_say_how_many(audit, suspects[:k])} of the labels there may be wrong, or none"
    again = []
    if not audit.tells_how_many:
        again = [
            "First audit the labels once more, and say which rows belong together: then it shows how many are wrong."
        ]
        many = "some of the labels there may be wrong"
        until_then = ""
    elif audit.noise.found:
        nearly_all = audit.expect_wrong(suspects[:k]) >= k - 0.5
        number = "nearly all" if nearly_all else f"{_say_how_many(audit, suspects[:k])} of"
        many = f"{number} the labels there are expected to be truly wrong"
    unseen = []
    if audit.why_not_corrected:
        why = for_page(audit.why_not_corrected, MOST_ADVICE)
        unseen = [f"Let no label be replaced that nobody has looked at (<code>--corrected</code>): {why}."]
    return [
        *again,
        *unseen,
        f'Look at {first} of the <a href="#review">list</a>: {many}.',
        "Decide there: relabel what is wrong, keep what is right (hard cases are worth having), and save it all.",
        "<code>untwist apply</code> changes the labels that were decided on.",
        "Train again on the corrected data." + ("" if findings.is_uneven else until_then),
    ]


# ---- how noisy ----


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
    if not audit.tells_how_many:
        parts.append(
            f"<p>No share of wrong labels is told, of all or of one class: {HOW_MANY_UNKNOWN}, where wrong labels look "
            "right; audit the labels once more, and say which rows belong together.</p>"
        )
    else:
        parts += [_write_true_rates(audit), _write_matrix(audit), _write_rates(findings), _write_confusions(findings)]
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
    n_columns = 3 if audit.why_not_corrected else 4
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
    audit = findings.audit
    if audit.noise.is_given:
        return "The noise rates were given, not estimated, so that there are no intervals."
    judge = "No row was judged by a model that had seen it."
    if audit.twins is not None:
        judge = "No row was judged by a model that had seen it, but many by models that had seen a near twin of it."
    if findings.training is None:
        judge = f"The labels were judged by {for_page(audit.judge, 80)}; probabilities were calibrated to them first."
    words = (
        f"{judge} If labels contradict what similar rows say even where rows are "
        "as clear as can be, the labels must be wrong; if only unclear rows are contradicted, they are just hard. "
    )
    if not audit.noise.found and not audit.tells_how_many:
        return f"{words}Here that cannot be seen: {NOTHING_KNOWN}."
    if not audit.noise.found and audit.hidden_source is not None:
        column = for_page(name_column(audit.hidden_source.column), 40)
        return words + (
            f"Here wrong labels explain no more than hard rows do with {column} taken as a feature, and clearly more "
            "with it taken for a source."
        )
    if not audit.noise.found and findings.is_uneven:
        return words + (
            "Here noise that is the same everywhere explains no more than hard rows do, but in the parts below labels "
            "look wrong more often, or are much harder to tell."
        )
    if not audit.noise.found:
        return words + "Here wrong labels explain no more than hard rows do: no noise is claimed, no label is doubted."
    if audit.by_source is not None and audit.by_source.stands_out.any():
        evidence = f"{audit.by_source.evidence:,.1f} units of log-likelihood"
        return words + f"Here noise that differs by source explains the labels better than one for all, by {evidence}."
    if audit.by_source is not None and not audit.by_source.noise.found:
        return words + "Here it is labels of the same item that differ: they cannot all be right."
    evidence = f"{audit.noise.evidence:,.1f} units of log-likelihood"
    words += f"Here noise explains the labels better than hard rows do, by {evidence}"
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


def _write_matrix(audit: LabelAudit) -> str:
    """Which class bears which label, as a table whose colours are the shares; only as wide as a page is."""
    noise = audit.noise
    names = [for_page(label, 24) for label in audit.classes.tolist()]
    if not noise.found or not 2 < len(names) <= MOST_BARS:
        return ""
    intervals = [format_interval(one) for one in audit.list_class_shares()]
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
            _write_share(one),
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


# ---- the model ----


def write_training(findings: Findings) -> str:
    """Write what was trained on what, what alpha means, how the loss fell.

    Parameters
    ----------
    findings : Findings
        What `collect_findings` computed.

    Returns
    -------
    str
        HTML.
    """
    trained = findings.training
    if trained is None:
        return (
            f"<p>Nothing of ours: the labels were judged by {for_page(findings.audit.judge, 80)}. Learning curves, "
            "what the predictions rest on, and reasons row by row need a model of ours, and are left out.</p>"
        )
    best = trained.choice.best
    n_classes = len(findings.audit.classes)
    categories = f", {trained.n_categorical:,} of them categories" if trained.n_categorical else ""
    facts = {
        "Rows": f"{len(findings.audit.given):,}",
        "Columns": f"{trained.n_columns:,}{categories}",
        "Missing cells": f"{trained.missing_share:.1%}" if trained.missing_share else "none",
        "Classes": f"{n_classes}{_describe_boosting(trained, n_classes)}",
        "Trees": _describe_trees(trained),
        "Alpha": f"{best.alpha:g}",
    }
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items())
    tried = [
        [_write_setting(one, best), f"{one.n_rounds}", f"{one.loss:.4f}", f"{one.error:.1%}"]
        for one in trained.choice.tried
    ]
    return (
        "<p>Boosted trees with the alpha-loss (PILBoost). What was left open was chosen by folds: the setting that "
        "best predicts the given labels of rows it has not seen, which needs no clean label. The model is the mean of "
        f"the fold models.{_describe_mixture(trained)}</p><dl class=facts>{listed}</dl>"
        f"<h3>What alpha = {best.alpha:g} means</h3><p>{_explain_alpha(trained)}</p>"
        f"{_write_learning_curves(findings, trained)}"
        + write_table("What was tried", ["setting", "rounds", "log-loss", "error"], tried)
    )


def _describe_trees(trained: TrainingFacts) -> str:
    best = trained.choice.best
    mixture = trained.choice.mixture
    if mixture is None:
        return f"{trained.n_trees:,} of depth {best.max_depth}, from {best.n_rounds} rounds on every fold"
    return (
        f"{trained.n_trees:,}: on every fold {best.n_rounds} rounds of depth {best.max_depth} and {mixture.n_trees} "
        "randomised trees"
    )


def _describe_mixture(trained: TrainingFacts) -> str:
    mixture = trained.choice.mixture
    if mixture is None:
        return ""
    return (
        " Trees with random thresholds join the boosted ones, as far as they help: on rows set aside the log-loss of "
        f"boosted trees is {mixture.boosted_loss:.4f}, that of randomised ones {mixture.randomised_loss:.4f}, and "
        f"{mixture.loss:.4f} of both."
    )


def _describe_boosting(trained: TrainingFacts, n_classes: int) -> str:
    if n_classes == 2:
        return ""
    return ", boosted together" if trained.boosts_jointly else ", each against the rest"


def _write_setting(one: Candidate, best: Candidate) -> str:
    draws = ", all rows and columns" if one.drawn == 1 else ""
    is_chosen = (one.alpha, one.max_depth, one.drawn) == (best.alpha, best.max_depth, best.drawn)
    return f"alpha {one.alpha:g}, depth {one.max_depth}{draws}" + (" <small>chosen</small>" if is_chosen else "")


def _explain_alpha(trained: TrainingFacts) -> str:
    alpha = trained.choice.best.alpha
    words = "Alpha says how much a label counts that contradicts all rows like it. "
    if alpha == 1:
        words += "At 1 it counts in full, as in any ordinary booster. "
    elif alpha > 1:
        words += "Above 1 it counts for less than in an ordinary booster, and the less the larger alpha is. "
    else:
        words += "Below 1 it counts for more than in an ordinary booster. "
    words += "This value predicted the labels of unseen rows best. "
    if not trained.untwists:
        return words + "Probabilities follow from alpha alone: they are not corrected by the noise found above."
    return (
        words
        + "The noise itself is undone afterwards: probabilities and decisions are corrected by the noise found above."
    )


def _write_learning_curves(findings: Findings, trained: TrainingFacts) -> str:
    losses, errors = findings.losses, findings.errors
    kept = trained.choice.best.n_rounds
    if len(losses) < kept:
        return ""
    alone = len(findings.audit.classes) > 2 and not trained.boosts_jointly
    several = ", each class against the rest" if alone else ""
    loss = charts.draw_curve(losses.tolist(), kept, "log-loss", f"Log-loss after each round; {kept} rounds were kept")
    error = charts.draw_curve(
        errors.tolist(), kept, "labels missed", f"Share of labels missed after each round; {kept} kept", share=True
    )
    return (
        "<h3>Learning curves</h3><p>Of rows set aside. The loss falls as long as trees learn what holds for other rows "
        "too; where it turns they begin to learn single labels by heart, wrong ones included, and training ends.</p>"
        "<div class=pair>"
        + write_figure(loss, f"Log-loss{several}: lower is better.")
        + write_figure(
            error, f"Given labels predicted wrongly{several}. With wrong labels among them it cannot fall to zero."
        )
        + "</div>"
    )


def write_calibration(findings: Findings) -> str:
    """Write what was predicted against what was counted, and against the truth.

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
    bins = findings.calibration.groups
    curve = findings.calibration.clean_curve if audit.tells_how_many else ()
    two = len(audit.classes) == 2
    inside = sum(low <= said <= high for said, (_, low, high) in bins)
    label = f"<b>{for_page(audit.classes.tolist()[1], 40)}</b>" if two else "what the model finds likeliest"
    chart = charts.draw_calibration(
        bins,
        curve,
        findings.calibration.spread,
        f"Predicted and counted shares of labels, which agree in {inside} of {len(bins)} groups"
        + ("; the clean posterior" if curve else ""),
    )
    counted = write_table(
        "Groups of rows",
        ["predicted", "counted", "95&nbsp;% interval"],
        [[f"{said:.1%}", f"{share:.1%}", f"{low:.1%} to {high:.1%}"] for said, (share, low, high) in bins],
    )
    meanings = ""
    truth = f"What such a prediction means for the truth cannot be told: {NOTHING_KNOWN}."
    if curve:
        x, y = np.transpose(curve)
        examples = [p for p in (0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9) if bins[0][0] - 0.05 < p < bins[-1][0] + 0.05]
        meanings = write_table(
            "What a prediction means",
            ["so labelled", "truly so"],
            [[f"{p:.0%}", format_probability(float(np.interp(p, x, y)))] for p in examples],
        )
        truth = (
            "The curve says what such a prediction means for the truth, "
            + ("with the noise undone" if audit.noise.found else "which hardly differs where no noise was found")
            + ": noise pulls shares towards the middle, untwisting takes them back."
        )
    return (
        f"<p>Each dot is a group of rows: across, how likely they were held to be labelled {label}; up, how many are. "
        f"On the dashed line the two agree; {inside} of the {len(bins)} dots do so within their 95&nbsp;% intervals, "
        f"and how the others differ is allowed for. {truth}</p>"
        + place_beside(
            write_figure(chart, "Grey: where the rows lie. No prediction is of a model that had seen the row."),
            f"{meanings}<details><summary>The numbers behind the dots</summary>{counted}</details>",
        )
    )


def write_columns(findings: Findings) -> str:
    """Write what the trees split on, with the labels as given and as corrected.

    Parameters
    ----------
    findings : Findings
        What `collect_findings` computed.

    Returns
    -------
    str
        HTML; nothing where there are no trees of ours.
    """
    if findings.training is None:
        return ""
    before = findings.importances
    after = findings.corrected_importances
    names = [name_column(one) for one in findings.column_names]
    both = before if after is None else np.maximum(before, after)
    order = [int(i) for i in np.argsort(-both, kind="stable")[:MOST_BARS] if both[i] > 0]
    if not order:
        return "<p>No column helps to predict the labels.</p>"
    lines = [(names[i], float(before[i]), None if after is None else float(after[i])) for i in order]
    words = "How much of what all splits gained is due to each column. "
    if after is None:
        words += "No label was corrected, so that there is nothing to compare with."
    else:
        words += (
            "What a column loses once the suspects are corrected went into explaining labels that look wrong, what it "
            "gains was hidden by them (as the corrections come from the same model, they suit it)."
        )
        if len(findings.audit.given) > MOST_TRAINED_AGAIN:
            words += f" The trees that see them corrected have seen {MOST_TRAINED_AGAIN:,} rows."
    if rest := len(names) - len(lines):
        words += f" All other columns ({rest:,}) together: {format_percent(1.0 - float(before[order].sum()))}."
    chart = charts.draw_pairs(
        lines, "Importance: " + "; ".join(f"{clip(name, 30)} {one:.1%}" for name, one, _ in lines)
    )
    header = ["column", "as given"] + ([] if after is None else ["corrected", "change"])
    cells = [
        [for_page(name, 60), f"{one:.1%}"] + ([] if two is None else [f"{two:.1%}", f"{100 * (two - one):+.1f}"])
        for name, one, two in lines
    ]
    return f"<p>{words}</p>" + place_beside(write_figure(chart), write_table("Importance of columns", header, cells))


# ---- others ----


def write_peers(findings: Findings) -> str:
    """Write how others predict the same rows; nothing where they were not measured.

    Parameters
    ----------
    findings : Findings
        What `collect_findings` computed.

    Returns
    -------
    str
        HTML.
    """
    if not findings.peers:
        return ""
    lines = [
        [
            for_page(name, 80),
            format_interval(one.agreement_with_given),
            f"{one.log_loss:.4f}",
            format_interval(one.agreement_with_corrected),
        ]
        for name, one in findings.peers.items()
    ]
    header = ["method", "agrees with labels as given", "log-loss on them", "agrees with corrected labels"]
    return (
        "<p>Each method predicted every row without having seen it, by the same folds. The labels as given are noisy: "
        "to agree with more of them is not always better, as wrong ones are among them. The corrected labels are those "
        "of untwist itself, so that the last column flatters it: it shows how far others follow the noise, not who is "
        "right."
        "</p>" + write_table("Out-of-fold predictions, with 95&nbsp;% intervals", header, lines)
    )
