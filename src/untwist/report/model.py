"""The sections of a report about the model: how it was trained, what it predicts, what it rests on, and others."""

from __future__ import annotations

import numpy as np

from untwist.audit.findings import Findings, TrainingFacts
from untwist.display import format_probability, write_range, write_share
from untwist.model import Candidate
from untwist.report import charts
from untwist.report.markup import (
    format_interval,
    format_percent,
    name_column,
    place_beside,
    write_figure,
    write_table,
)
from untwist.text import clip, for_page

__all__ = ["write_calibration", "write_columns", "write_peers", "write_training"]

#: Bars in a chart, at most.
MOST_BARS = 12


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
            f"<p>Nothing of ours: the labels were judged by {for_page(findings.audit.judge.name, 80)}. Learning "
            "curves, what the predictions rest on, and reasons row by row need a model of ours, and are left out.</p>"
        )
    best = trained.choice.best
    n_classes = len(findings.audit.classes)
    categories = f", {trained.n_categorical:,} of them categories" if trained.n_categorical else ""
    facts = {
        "Rows": f"{len(findings.audit.given):,}",
        "Columns": f"{trained.n_columns:,}{categories}",
        "Missing cells": write_share(trained.missing_share) if trained.missing_share else "none",
        "Classes": f"{n_classes}{_describe_boosting(trained, n_classes)}",
        "Trees": _describe_trees(trained),
        "Alpha": f"{best.alpha:g}",
    }
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items())
    tried = [
        [_write_setting(one, best), f"{one.n_rounds}", f"{one.loss:.4f}", write_share(one.error)]
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
    curve = findings.calibration.clean_curve if findings.verdict.is_found else ()
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
        [[write_share(said), write_share(share), write_range(low, high)] for said, (share, low, high) in bins],
    )
    meanings = ""
    truth = "What such a prediction means for the truth is not told, as no noise was found that could be undone."
    if curve:
        x, y = np.transpose(curve)
        examples = [p for p in (0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9) if bins[0][0] - 0.05 < p < bins[-1][0] + 0.05]
        meanings = write_table(
            "What a prediction means",
            ["so labelled", "truly so"],
            [[f"{100 * p:.0f} %", format_probability(float(np.interp(p, x, y)))] for p in examples],
        )
        truth = (
            "The curve says what such a prediction means for the truth, with the noise undone: noise pulls shares "
            "towards the middle, untwisting takes them back."
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
    """Write what the trees split on.

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
    shares = findings.importances
    order = [int(i) for i in np.argsort(-shares, kind="stable")[:MOST_BARS] if shares[i] > 0]
    if not order:
        return "<p>No column helps to predict the labels.</p>"
    names = [name_column(one) for one in findings.column_names]
    lines = [(names[i], float(shares[i])) for i in order]
    words = "How much of what all splits gained is due to each column."
    if rest := len(names) - len(lines):
        words += f" All other columns ({rest:,}) together: {format_percent(1.0 - float(shares[order].sum()))}."
    chart = charts.draw_shares(
        lines, "Importance: " + "; ".join(f"{clip(name, 30)} {write_share(one)}" for name, one in lines)
    )
    cells = [[for_page(name, 60), write_share(one)] for name, one in lines]
    table = write_table("Importance of columns", ["column", "share of the gain"], cells)
    return f"<p>{words}</p>" + place_beside(write_figure(chart), table)


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
