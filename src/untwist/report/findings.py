"""The numbers that a report shows, from an audit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, ndtri
from sklearn.base import clone

from untwist.arguments import Array
from untwist.audit.labels import LabelAudit
from untwist.classifier import PILBoostClassifier
from untwist.report.charts import Point
from untwist.report.markup import Interval

__all__ = [
    "clean_curve",
    "effective",
    "expected_finds",
    "importances",
    "learning_curve",
    "reliability",
    "spread",
    "wilson",
]

N_BINS, LEAST_IN_BIN = 12, 25  # of the reliability


def wilson(share: float, n: float) -> Interval:
    """A share of n rows with Wilson's 95 % interval."""
    z2 = float(ndtri(0.975)) ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = float(np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n)))) / (1 + z2 / n)
    return share, max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))


def effective(weight: Array) -> float:
    """As many rows of one weight tell as much: unequal weights tell less."""
    return float(weight.sum() ** 2 / (weight**2).sum())


def _followed(audit: LabelAudit) -> tuple[Array, NDArray[np.bool_]]:
    """The twisted posterior of a label for each row, and whether the row bears it.

    Of two classes the second; of more, the one that is likeliest, so that each row counts once.
    """
    if len(audit.classes) == 2:
        return audit.posterior[:, 1], audit.given == audit.classes[1]
    likeliest = audit.posterior.argmax(axis=1)
    return audit.posterior.max(axis=1), audit.given == audit.classes[likeliest]


def reliability(audit: LabelAudit) -> list[tuple[float, Interval]]:
    """The mean posterior and the share of rows that bear the label, in bins of about equal weight."""
    said, bears = _followed(audit)
    order = np.argsort(said, kind="stable")
    order = order[audit.weight[order] > 0]
    weight = audit.weight[order]
    n_bins = max(1, min(N_BINS, len(order) // LEAST_IN_BIN))
    place = np.minimum((np.cumsum(weight) - 0.5 * weight) / weight.sum() * n_bins, n_bins - 1).astype(np.intp)
    found = []
    for one in np.unique(place):
        rows, own = order[place == one], weight[place == one]
        share = float(own @ bears[rows] / own.sum())
        found.append((float(np.average(said[rows], weights=own)), wilson(share, effective(own))))
    return found


def spread(audit: LabelAudit, n_bins: int = 25) -> list[float]:
    """The share of the weight where the posterior lies, in bins from 0 to 1."""
    said, _ = _followed(audit)
    mass = np.histogram(said, n_bins, (0.0, 1.0), weights=audit.weight)[0]
    return [float(one) for one in mass / mass.sum()]


def clean_curve(audit: LabelAudit) -> list[Point]:
    """The clean posterior over the twisted one."""
    least = 1.0 / len(audit.classes) if len(audit.classes) > 2 else 0.0  # the likeliest of many is not less
    twisted = np.linspace(least, 1.0, 101)
    clean = audit.noise.clean(logit(np.clip(twisted, 1e-4, 1 - 1e-4)))
    return [(float(x), float(y)) for x, y in zip(twisted, clean, strict=True)]


def learning_curve(model: PILBoostClassifier) -> tuple[Array, Array]:
    """Log-loss and error of rows set aside after each round, the mean over classes; empty where they are not known."""
    curves = model.evals_result_.get("validation", {"log_loss": [], "error": []})
    losses, errors = (np.atleast_2d(curves[name]).mean(axis=0) for name in ("log_loss", "error"))
    return losses, errors


def expected_finds(audit: LabelAudit, most: int, n_points: int = 120) -> list[Point]:
    """How many wrong labels are expected among so many rows, the worst first."""
    total = np.concatenate([[0.0], np.cumsum(audit.wrong[audit.ranking[:most]])])
    at = np.unique(np.linspace(0, len(total) - 1, n_points).astype(int))
    return [(float(i), float(total[i])) for i in at]


def importances(audit: LabelAudit, suspects: NDArray[np.intp]) -> tuple[Array, Array | None]:
    """Shares of the gain of all splits by column: of the model's trees, and of trees that see `suspects` corrected.

    The second has the chosen settings and folds of its own; it is None where there is nothing to correct, or if a class
    would be left without rows.
    """
    model, labels = audit.model, audit.corrected(suspects)
    known = audit.weight > 0
    if not (labels != audit.given)[known].any() or len(np.unique(labels[known])) < len(audit.classes):
        return model.importances("gain"), None
    return model.importances("gain"), _again(model, audit.X, labels, audit.weight).importances("gain")


def _again(model: PILBoostClassifier, X: Any, y: NDArray[Any], weight: Array) -> PILBoostClassifier:
    """The same choice, settings and kind of folds on other labels, with nothing left to choose."""
    best, growth = model.choice_.best, model._growth()
    step = {} if model._by_edge() else {"learning_rate": best.step}
    seed = model.random_state if isinstance(model.random_state, int) else 0
    again: PILBoostClassifier = clone(model).set_params(
        alpha=best.alpha,
        n_estimators=best.n_rounds,
        max_depth=best.max_depth,
        l2=growth.l2,
        subsample=growth.subsample,
        max_features=growth.max_features,
        noise_rates=None,
        early_stopping=False,
        callbacks=None,
        random_state=seed,
        **step,
    )
    return again._fit_automatic(X, y, weight, None, None, None)
