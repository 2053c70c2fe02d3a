"""Plots of models and audits by Matplotlib, which the extra `plot` brings.

Every function draws on the axes that it is given, or on those of a new figure, and returns them, so that a plot can be
changed or saved with Matplotlib's own methods. The numbers are those of the report (`untwist.audit.findings`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array, check_count
from untwist.audit.calibration import measure_reliability, trace_clean_posterior
from untwist.audit.context import find_positions
from untwist.audit.explaining import require_model
from untwist.audit.findings import average_learning_curves, expect_finds
from untwist.audit.labels import LabelAudit
from untwist.audit.verdict import FORBIDDING
from untwist.model import FittedModel
from untwist.noise.estimate import NoiseEstimate, RateWeights
from untwist.optional import import_optional
from untwist.predicting import find_model
from untwist.text import clip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_calibration",
    "plot_importances",
    "plot_learning_curves",
    "plot_noise_posterior",
    "plot_review_yield",
    "plot_transition_matrix",
]

#: Colours that the colour-blind tell apart (Okabe and Ito).
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"
#: Rows that a review is shown for, at least, where nobody says how many.
LEAST_REVIEWED = 50
#: Width of a name, in characters.
NAME_WIDTH = 24
#: Classes up to which the cells of a matrix have their numbers.
MOST_NUMBERED = 12


def plot_learning_curves(model: Any, metric: str = "log_loss", ax: Axes | None = None) -> Axes:
    """Plot how the rows set aside fare from round to round.

    Parameters
    ----------
    model : UntwistClassifier, UntwistClassifier, FittedModel or LabelAudit
        A fit that had rows set aside: settings chosen from the data, validation rows or early stopping.
    metric : "log_loss" or "error", default "log_loss"
        What is shown of them, by their labels as given; the mean over classes where each has rounds of its own.
    ax : Axes or None
        Where to draw; None for a new figure.

    Returns
    -------
    Axes
    """
    if metric not in ("log_loss", "error"):
        raise ValueError(f'metric must be "log_loss" or "error", got {metric!r}')
    fitted = _find_fitted(model)
    curve = average_learning_curves(fitted)[metric == "error"]
    if not len(curve):
        raise ValueError(
            "model has no learning curves: take UntwistClassifier, or fit PILBoostClassifier with X_val and y_val"
        )
    ax = _open(ax)
    ax.plot(np.arange(1, len(curve) + 1), curve, color=BLUE, label="rows set aside")
    if fitted.choice is not None:
        kept = fitted.choice.best.n_rounds
        ax.axvline(kept, color=ORANGE, linestyle="--", label=f"{kept} rounds kept")
        ax.legend()
    names = {"log_loss": "log-loss", "error": "error"}
    ax.set(xlabel="round", ylabel=f"{names[metric]} by the labels as given", title="Learning curve")
    return ax


def plot_noise_posterior(model: Any, ax: Axes | None = None) -> Axes:
    """Plot which shares of wrong labels are plausible.

    Of two classes these are all rates that fit, each as likely as it is, if there is noise; the title has the chance
    of that. Of several, the share of each class with its 95 % interval.

    Parameters
    ----------
    model : UntwistClassifier, UntwistClassifier, FittedModel or LabelAudit
        A fit that estimated the noise.
    ax : Axes or None
        Where to draw; None for a new figure.

    Returns
    -------
    Axes
    """
    noise = _find_noise(model)
    names = _name_classes(model.classes if isinstance(model, LabelAudit) else find_model(model).classes)
    ax = _open(ax)
    title = _name_noise(noise)
    weighed = noise.weigh_rates()
    if weighed is not None:
        _draw_rates(ax, weighed, names)
        title = title if noise.is_given else f"{title}: a chance of {weighed.chance_of_noise:.0%}"
        ax.set(xlabel="% that bears the other label", ylabel="% likely, if there is noise", title=title)
        return ax
    shares, *ends = np.array(noise.list_class_shares()).T
    across = np.arange(len(names))
    reach = np.abs(ends - shares)
    ax.errorbar(100 * shares, across, xerr=100 * reach, fmt="o", color=BLUE, ecolor=ORANGE, capsize=3)
    ax.set_yticks(across, names)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set(xlabel="% that bears another label, with 95 % interval", ylabel="true class", title=title)
    return ax


def _draw_rates(ax: Axes, weighed: RateWeights, names: list[str]) -> None:
    """Draw how likely each rate of each class is."""
    for values, mass, name, colour in zip(weighed.rates, weighed.weights, names, (BLUE, ORANGE), strict=True):
        label = f"of what is truly {name}"
        if len(values) == 1:
            ax.axvline(100 * values[0], color=colour, label=label)
        else:
            ax.plot(100 * values, 100 * mass, color=colour, marker=".", label=label)
            ax.fill_between(100 * values, 100 * mass, color=colour, alpha=0.2)
    ax.set_ylim(bottom=0)
    ax.set_xlim(left=0)
    if ax.get_legend_handles_labels()[0]:
        ax.legend()


def plot_transition_matrix(model: Any, ax: Axes | None = None) -> Axes:
    """Plot which class bears which label how often.

    Parameters
    ----------
    model : UntwistClassifier, UntwistClassifier, FittedModel or LabelAudit
        A fit that estimated the noise; of an audit the matrix is that of all sources together.
    ax : Axes or None
        Where to draw; None for a new figure.

    Returns
    -------
    Axes
    """
    noise = _find_noise(model)
    matrix = model.matrix if isinstance(model, LabelAudit) else noise.matrix
    names = _name_classes(model.classes if isinstance(model, LabelAudit) else find_model(model).classes)
    ax = _open(ax)
    across = np.arange(len(names))
    # The diagonal is close to 1 in any case, and would hide how the other cells differ.
    shown = np.where(np.eye(len(names), dtype=bool), np.nan, matrix)
    largest = max(float(np.nanmax(shown)), 0.05)
    colour_map = import_optional("matplotlib", "untwist.plot", extra="plot").colormaps["Blues"].with_extremes(bad="w")
    image = ax.imshow(100 * shown, cmap=colour_map, vmin=0, vmax=100 * largest)
    ax.figure.colorbar(image, ax=ax, label="% of the true class, wrong labels only")
    if len(names) <= MOST_NUMBERED:
        for row, column in np.ndindex(matrix.shape):
            is_dark = row != column and matrix[row, column] > 0.6 * largest
            number = f"{100 * matrix[row, column]:.1f}"
            ax.text(column, row, number, ha="center", va="center", color="w" if is_dark else "k", fontsize="small")
    is_long = max(map(len, names)) > 6
    ax.set_xticks(across, names, rotation=45 if is_long else 0, ha="right" if is_long else "center")
    ax.set_yticks(across, names)
    ax.set(xlabel="label", ylabel="true class", title=_name_noise(noise))
    return ax


def plot_calibration(audit: LabelAudit, ax: Axes | None = None) -> Axes:
    """Plot what was predicted against what was counted, and what untwisting makes of it.

    Before untwisting, a posterior says how many rows bear a label, and points on the diagonal say that it does. After,
    it says of how many that label is true, which no count can check: the labels are what is in doubt.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found. Of two classes the label is the second one, of several each row's likeliest.
    ax : Axes or None
        Where to draw; None for a new figure.

    Returns
    -------
    Axes
    """
    _require_audit(audit)
    groups = measure_reliability(audit)
    predicted = np.array([said for said, _ in groups])
    share, low, high = np.array([interval for _, interval in groups]).T
    ax = _open(ax)
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":")
    reach = np.stack([share - low, high - share])
    counted = "before: labels counted"
    ax.errorbar(predicted, share, yerr=reach, fmt="o", color=BLUE, capsize=2, label=counted)
    clean = np.array(trace_clean_posterior(audit))
    ax.plot(*clean.T, color=ORANGE, linewidth=2, label="after untwisting")
    what = f"of the label {_name_classes(audit.classes)[1]}" if len(audit.classes) == 2 else "of the likeliest label"
    ax.set(xlabel=f"probability {what}, as predicted", ylabel=f"share {what}", title="Calibration")
    ax.set_aspect("equal")
    ax.legend(loc="lower right", fontsize="small")
    return ax


def plot_importances(model: Any, kind: str = "paper", most: int = 15, ax: Axes | None = None) -> Axes:
    """Plot how much each column contributes.

    Parameters
    ----------
    model : UntwistClassifier, UntwistClassifier, FittedModel or LabelAudit
        A fitted model.
    kind : "paper", "gain" or "splits", default "paper"
        As in `UntwistClassifier.importances`.
    most : int, default 15
        Columns to show, at most: those with the largest shares.
    ax : Axes or None
        Where to draw; None for a new figure.

    Returns
    -------
    Axes
    """
    fitted = _find_fitted(model)
    importances = fitted.importances(kind)
    order = np.argsort(-importances, kind="stable")[: check_count("most", most, low=1)]
    labels = [_make_plain(fitted.encoder.feature_labels[column]) for column in order.tolist()]
    ax = _open(ax)
    across = np.arange(len(order))
    ax.barh(across, 100 * importances[order], color=BLUE)
    ax.set_yticks(across, labels)
    ax.invert_yaxis()
    others = len(importances) - len(order)
    title = f"Importances, {others} columns left out" if others else "Importances"
    what = {"paper": "importance", "gain": "gain of all splits", "splits": "splits"}[kind]
    ax.set(xlabel=f"% of the {what}", ylabel="column", title=title)
    return ax


def plot_review_yield(
    audit: LabelAudit, decisions: Any = None, most: int | None = None, ax: Axes | None = None
) -> Axes:
    """Plot how many wrong labels a review finds, the most suspect rows first.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.
    decisions : Decisions or None
        What a review decided: an object with the arrays `rows` (positions), `given`, `labels` and `reviewed`. What was
        found is then shown beside what was expected of the same rows.
    most : int or None
        Rows to review; None for as many as were reviewed, or else twice as many as there are suspects and at least 50.
    ax : Axes or None
        Where to draw; None for a new figure.

    Returns
    -------
    Axes
    """
    _require_audit(audit)
    review = None if decisions is None else _list_review(audit, decisions)
    if most is None:
        most = max(2 * len(audit.suspects()), LEAST_REVIEWED) if review is None else len(review[0])
    points = np.array(expect_finds(audit, check_count("most", most, low=1)))
    ax = _open(ax)
    word = "expected" if audit.verdict.is_found else "expected (0 is not excluded)"
    ax.plot(*points.T, color=BLUE, label=f"{word}, the most suspect rows first")
    highest = float(points[:, 1].max())
    if review is not None:
        rows, is_found = review
        found = np.concatenate([[0], np.cumsum(is_found)])
        count = np.arange(len(found))
        ax.step(count, found, where="post", color=ORANGE, linewidth=2, label=f"found: {found[-1]} in {len(rows)} rows")
        there = [audit.expect_wrong(rows[:n]) for n in count.tolist()]
        ax.plot(count, there, color=BLUE, linestyle="--", label=f"{word} in the same rows: {there[-1]:.0f}")
        highest = max(highest, float(found[-1]), there[-1])
    ends = [0.0, float(points[-1, 0])]
    ax.plot(ends, ends, color=GREY, linestyle=":", label="if every label were wrong")
    ax.set_ylim(0, 1.15 * max(highest, 1.0))
    ax.set_xlim(left=0)
    ax.set(xlabel="rows reviewed", ylabel="wrong labels found", title="Yield of a review")
    ax.legend()
    return ax


def _list_review(audit: LabelAudit, decisions: Any) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the rows that were reviewed, the most suspect first, and whether the label of each was changed."""
    reviewed = np.asarray(decisions.reviewed, dtype=bool)
    rows = find_positions(np.asarray(decisions.rows)[reviewed], len(audit.given))
    if not len(rows):
        raise ValueError("decisions must have rows that were reviewed, and all were skipped")
    given, labels = (np.asarray(one)[reviewed].astype(str) for one in (decisions.given, decisions.labels))
    place = np.full(len(audit.given), len(audit.given))  # Rows that the audit knew as reviewed are not ranked.
    place[audit.ranking] = np.arange(len(audit.ranking))
    order = np.argsort(place[rows], kind="stable")
    return rows[order], (given != labels)[order]


# ---- what is drawn, and where ----


def _open(ax: Axes | None) -> Axes:
    """Return the axes to draw on."""
    pyplot = import_optional("matplotlib.pyplot", "untwist.plot", extra="plot")
    if ax is not None:
        return ax
    made: Axes = pyplot.subplots(layout="constrained")[1]
    return made


def _find_fitted(model: Any) -> FittedModel:
    return require_model(model, "what was fitted comes").model_ if isinstance(model, LabelAudit) else find_model(model)


def _require_audit(audit: Any) -> None:
    if not isinstance(audit, LabelAudit):
        raise ValueError(f"audit must be what audit_labels returns, got {audit!r:.100}")


def _find_noise(model: Any) -> NoiseEstimate:
    noise, unreliable = _look_up_noise(model)
    if noise is None:
        raise ValueError("model has no estimate of the noise: fit an UntwistClassifier")
    if unreliable:
        raise ValueError(f"there is no noise to draw: {unreliable}")
    return noise


def _look_up_noise(model: Any) -> tuple[NoiseEstimate | None, str]:
    """Return what was estimated, and why it cannot be relied on; no words where it can."""
    if isinstance(model, LabelAudit):
        return model.noise, model.verdict.sentence if model.verdict.notes(*FORBIDDING) else ""
    fitted = find_model(model)
    return fitted.estimate, fitted.unreliable_words


def _name_noise(noise: NoiseEstimate) -> str:
    if noise.is_given:
        return "Noise, as given"
    return "Noise" if noise.found else "Noise, not found but not excluded"


def _name_classes(classes: Array) -> list[str]:
    return [_make_plain(name) for name in classes.tolist()]


def _make_plain(name: Any) -> str:
    """Return a name that Matplotlib takes for text, not for a formula."""
    return clip(name, NAME_WIDTH).replace("$", r"\$")
