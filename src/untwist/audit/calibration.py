"""What was predicted against what was counted, and against the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from untwist.arguments import Array
from untwist.audit.judging import Interval
from untwist.audit.labels import LabelAudit
from untwist.noise.estimate import CONFIDENCE
from untwist.sums import add_up, add_up_by_group, average

__all__ = [
    "Calibration",
    "Point",
    "bound_share",
    "count_effective_rows",
    "measure_calibration",
    "measure_reliability",
    "measure_spread",
    "trace_clean_posterior",
]

#: Groups of rows that predicted and counted labels are compared by, at most.
MOST_GROUPS = 12

#: A group has this many rows, at least.
LEAST_IN_GROUP = 25

#: Bins of the histogram of posteriors.
N_BINS = 25

#: Points of the curve of the clean posterior.
CURVE_POINTS = 101

#: Posteriors of the curve are kept this far from 0 and 1.
CURVE_FLOOR = 1e-4

#: A point of a curve.
Point = tuple[float, float]


@dataclass(frozen=True)
class Calibration:
    """What was predicted against what was counted, and against the truth.

    Of two classes it is about the second; of more about the one that is likeliest, so that each row counts once.

    Parameters
    ----------
    groups : tuple
        For groups of rows of about equal weight the mean posterior, and the share of rows that bear the label.
    clean_curve : tuple of Point
        The clean posterior over the twisted one; of several classes its mean over each of the groups.
    spread : tuple of float
        The share of the weight in bins of the posterior from 0 to 1.
    """

    groups: tuple[tuple[float, Interval], ...]
    clean_curve: tuple[Point, ...]
    spread: tuple[float, ...]


def measure_calibration(audit: LabelAudit) -> Calibration:
    """Measure what was predicted against what was counted, and trace what that means for the truth.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.

    Returns
    -------
    Calibration
    """
    return Calibration(
        groups=tuple(measure_reliability(audit)),
        clean_curve=tuple(trace_clean_posterior(audit)),
        spread=tuple(measure_spread(audit)),
    )


def bound_share(share: float, n_rows: float) -> Interval:
    """Bound a share by Wilson's 95 % interval.

    Parameters
    ----------
    share : float
        The share.
    n_rows : float
        The number of rows that it was counted in; weights make it a fraction.

    Returns
    -------
    Interval
    """
    z_squared = float(ndtri((1.0 + CONFIDENCE) / 2.0)) ** 2
    scale = 1 + z_squared / n_rows
    middle = (share + z_squared / (2 * n_rows)) / scale
    variance = share * (1 - share) / n_rows + z_squared / (4 * n_rows * n_rows)
    half_width = float(np.sqrt(z_squared * variance)) / scale
    return share, max(0.0, min(middle - half_width, share)), min(1.0, max(middle + half_width, share))


def count_effective_rows(weight: Array) -> float:
    """Count how many rows of one weight would tell as much: unequal weights tell less.

    Parameters
    ----------
    weight : array
        The weights of the rows.

    Returns
    -------
    float
    """
    return add_up(weight) ** 2 / add_up(weight**2)


def _follow_label(audit: LabelAudit) -> tuple[Array, NDArray[np.bool_]]:
    """Return the twisted posterior of a label for each row, and whether the row bears it; see `Calibration`."""
    # The twisted posterior is that of labels before any review.
    labels = audit.given if audit.context.before_review is None else audit.context.before_review
    if len(audit.classes) == 2:
        return audit.posterior[:, 1], labels == audit.classes[1]
    likeliest = audit.posterior.argmax(axis=1)
    return audit.posterior.max(axis=1), labels == audit.classes[likeliest]


def measure_reliability(audit: LabelAudit) -> list[tuple[float, Interval]]:
    """Measure predicted and counted labels in groups of rows of about equal weight; see `Calibration`.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.

    Returns
    -------
    list of tuples
        For each group the mean posterior, and the share of rows that bear the label.
    """
    posterior, bears = _follow_label(audit)
    found = []
    for rows in _group_rows(audit, posterior):
        weight = audit.weight[rows]
        share = average(bears[rows], weight)
        mean_posterior = average(posterior[rows], weight)
        found.append((mean_posterior, bound_share(share, count_effective_rows(weight))))
    return found


def _group_rows(audit: LabelAudit, posterior: Array) -> list[NDArray[np.intp]]:
    """Return groups of rows of about equal weight, the one with the lowest posteriors first."""
    order = np.lexsort((audit.weight, posterior))  # Groups do not depend on the order of the rows.
    order = order[audit.weight[order] > 0]
    weight = audit.weight[order]
    n_groups = max(1, min(MOST_GROUPS, len(order) // LEAST_IN_GROUP))
    weight_before = np.cumsum(weight) - 0.5 * weight
    group_of_row = np.minimum(weight_before / weight.sum() * n_groups, n_groups - 1).astype(np.intp)
    return [order[group_of_row == group] for group in np.unique(group_of_row)]


def measure_spread(audit: LabelAudit) -> list[float]:
    """Measure where the posteriors lie.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.

    Returns
    -------
    list of float
        The share of the weight in each bin.
    """
    posterior, _ = _follow_label(audit)
    edges = np.linspace(0.0, 1.0, N_BINS + 1)
    bin_of_row = np.clip(np.searchsorted(edges, posterior, side="right") - 1, 0, N_BINS - 1)
    mass = add_up_by_group(audit.weight, bin_of_row, N_BINS)
    return [float(one) for one in mass / mass.sum()]


def trace_clean_posterior(audit: LabelAudit) -> list[Point]:
    """Trace the clean posterior over the twisted one.

    Parameters
    ----------
    audit : LabelAudit
        What `audit_labels` found.

    Returns
    -------
    list of Point
    """
    if len(audit.classes) > 2:
        return _trace_mean_clean_posterior(audit)
    twisted = np.linspace(0.0, 1.0, CURVE_POINTS)
    within = np.clip(twisted, CURVE_FLOOR, 1 - CURVE_FLOOR)
    clean = audit.noise.clean(np.column_stack([1.0 - within, within]))[:, 1]
    return [(float(x), float(y)) for x, y in zip(twisted, clean, strict=True)]


def _trace_mean_clean_posterior(audit: LabelAudit) -> list[Point]:
    """Trace the clean posterior of what was likeliest: of several classes, its mean over each group of rows."""
    twisted, _ = _follow_label(audit)
    likeliest = audit.posterior.argmax(axis=1)
    clean = audit.noise.clean(audit.posterior)[np.arange(len(likeliest)), likeliest]
    return [
        (average(twisted[rows], weight), average(clean[rows], weight))
        for rows in _group_rows(audit, twisted)
        for weight in [audit.weight[rows]]
    ]
