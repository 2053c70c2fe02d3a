"""The search for the most plausible transition matrix of each family, from several starts.

Rows that are surest of class j all have about the same twisted posterior, row j of the matrix. These corners are where
the search for matrices of any shape begins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logit

from untwist.arguments import Array
from untwist.noise.families import HIGHEST_RATE, Family, FreeMatrices, KnownMatrix, TiedMatrices
from untwist.noise.plausibility import FEWEST_CORNER_ROWS, Fit, Plausibility

__all__ = ["climb", "find_clean_fit", "search_matrices"]

# ---- corners ----

# The corners of the posteriors are looked for among this part of a class's rows.
CORNER_SHARE = 0.2
# Entries of a corner below the first number, or of fewer rows than the second, are left out at first.
LEAST_CORNER = 0.02
TELLING_ROWS = 1.0
# Of so many classes at most, corners of fewer rows are tried as well, and with all their entries.
FEW_CLASSES = 20
SHARP_CORNER_SHARE = 0.1
TOWARDS_SHARP_CORNERS = 0.8

# ---- starts, steps and limits ----

# A matrix that the search begins with goes this far towards the corners, and keeps a diagonal of at least so much.
TOWARDS_CORNERS = 0.8
LEAST_START_DIAGONAL = 0.45
# Rates that the search for even noise begins with.
START_RATES = (0.05, 0.3)
# Noise makes posteriors flat, so that a search for uneven noise begins with log-slopes higher by this.
STEEPER_START = 0.3
# The most steps of a first search, and of the last one.
FIRST_STEPS = 30
LAST_STEPS = 60
# The logarithm of a slope, and an offset, stay within these.
STEEPEST = 1.2
LARGEST_OFFSET = 2.0


def climb(
    plausibility: Plausibility, family: Family, start: Array, log_slopes: Array, offsets: Array, steps: int
) -> tuple[Fit, Array]:
    """Return the best of a family near a start, and its parameters."""
    n_classes = plausibility.n_classes
    n_own = len(family.bounds)

    def find_cost(x: Array) -> tuple[float, Array]:
        parameters = x[:n_own]
        matrix = family.make(parameters)
        value, by_matrix, by_slopes, by_offsets = plausibility.evaluate(
            matrix, x[n_own : n_own + n_classes], x[n_own + n_classes :]
        )
        price, price_by_matrix, price_by_parameters = family.price(parameters, matrix)
        by_parameters = family.pull_back(parameters, matrix, by_matrix - price_by_matrix) - price_by_parameters
        return price - value, -np.concatenate([by_parameters, by_slopes, by_offsets])

    bounds = [
        *family.bounds,
        *[(-STEEPEST, STEEPEST)] * n_classes,
        *[(-LARGEST_OFFSET, LARGEST_OFFSET)] * n_classes,
    ]
    low, high = np.array(bounds).T
    x = np.clip(np.concatenate([start, log_slopes, offsets]), low, high)
    result = minimize(find_cost, x, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})
    parameters, slopes, shifts = np.split(result.x, [n_own, n_own + n_classes])
    fit = Fit(-float(result.fun), family.make(parameters), slopes, shifts, family.find_common(parameters))
    return fit, parameters


def search_matrices(plausibility: Plausibility, pairs: NDArray[np.bool_], clean: Fit) -> tuple[Fit, Fit, list[Fit]]:
    """Return the best fits with noise between some pairs of classes.

    Parameters
    ----------
    plausibility : Plausibility
        What a matrix is judged by.
    pairs : ndarray of bool of shape (n_classes, n_classes)
        Which classes, a row each, may bear which other labels.
    clean : Fit
        The best fit without noise.

    Returns
    -------
    even, one_by_one : Fit
        With the same rate in all classes that may have one: spread evenly over other labels, and with one label each.
    uneven : list of Fit
        Of any shape, the best first.
    """
    n_classes = plausibility.n_classes
    even = _climb_tied(plausibility, _direct(np.where(pairs, 1.0, 0.0)), clean)
    free = FreeMatrices(pairs)
    corners = _go_towards(_find_corners(plausibility, CORNER_SHARE, TELLING_ROWS), pairs, TOWARDS_CORNERS)
    steeper = clean.log_slopes + STEEPER_START
    starts = [climb(plausibility, free, free.start(corners, 0.0), steeper, clean.offsets, FIRST_STEPS)]
    sharp = _go_towards(_find_corners(plausibility, SHARP_CORNER_SHARE, 0.0), pairs, TOWARDS_SHARP_CORNERS)
    if n_classes <= FEW_CLASSES:
        starts.append(climb(plausibility, free, free.start(sharp, 0.0), steeper, clean.offsets, FIRST_STEPS))
    if even.matrix.diagonal().min() < 1.0 - START_RATES[0] / 2.0:
        between = (even.matrix + corners) / 2.0
        starts.append(
            climb(plausibility, free, free.start(between, even.common), even.log_slopes, even.offsets, FIRST_STEPS)
        )
    starts.sort(key=lambda start: -start[0].value)
    best, parameters = starts[0]
    best, _ = climb(plausibility, free, parameters, best.log_slopes, best.offsets, LAST_STEPS)
    # Each class bears the other label that the corners show most of.
    towards = np.where(pairs, sharp, 0.0)
    is_largest = (towards == towards.max(axis=1, keepdims=True)) & (towards > 0.0)
    first = is_largest & (np.cumsum(is_largest, axis=1) == 1)
    one_by_one = _climb_tied(plausibility, _direct(np.where(first, 1.0, 0.0)), clean)
    return even, one_by_one, [best, *(fit for fit, _ in starts[1:])]


def find_clean_fit(plausibility: Plausibility) -> Fit:
    """Return the best fit without noise: slopes and offsets alone."""
    zeros = np.zeros(plausibility.n_classes)
    return climb(plausibility, KnownMatrix(np.eye(len(zeros))), np.zeros(0), zeros, zeros, FIRST_STEPS)[0]


def _direct(towards: Array) -> Array:
    """Return where wrong labels of each class go, as shares; those of a class that goes nowhere to itself."""
    total = towards.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, towards / np.where(total > 0.0, total, 1.0), np.eye(len(towards)))


def _climb_tied(plausibility: Plausibility, directions: Array, clean: Fit) -> Fit:
    """Return the best fit with one rate for all classes, from the better of two starts."""
    family = TiedMatrices(directions)
    starts = (
        climb(
            plausibility,
            family,
            np.array([logit(rate / HIGHEST_RATE)]),
            clean.log_slopes + rate,
            clean.offsets,
            FIRST_STEPS,
        )[0]
        for rate in START_RATES
    )
    return max(starts, key=lambda fit: fit.value)


def _find_corners(plausibility: Plausibility, part: float, least_rows: float) -> Array:
    """Return the mean of posterior and label over the part of rows that are surest of each class.

    Entries of fewer rows than `least_rows` are left out.
    """
    rows = plausibility.rows
    n_classes = plausibility.n_classes
    counts = np.bincount(rows.labels, rows.weight, n_classes)
    corners = np.empty((n_classes, n_classes))
    for each in range(n_classes):
        n_surest = max(float(FEWEST_CORNER_ROWS), part * counts[each])
        sure = rows.twisted[:, each]
        order = np.argsort(-sure, kind="stable")
        last = np.searchsorted(np.cumsum(rows.weight[order]), n_surest)
        surest = np.flatnonzero(sure >= sure[order[min(last, len(order) - 1)]])
        weight = rows.weight[surest] / rows.weight[surest].sum()
        borne = np.bincount(rows.labels[surest], weight, n_classes)
        corner = (weight @ rows.twisted[surest] + borne) / 2.0
        # What a single row may have caused is left out, so that the search begins with few entries.
        if least_rows > 0:
            corner[corner < max(LEAST_CORNER, least_rows / n_surest)] = 0.0
        corner[each] = max(corner[each], LEAST_CORNER)
        corners[each] = corner / corner.sum()
    return corners


def _go_towards(corners: Array, pairs: NDArray[np.bool_], part: float) -> Array:
    """Return a matrix part of the way from no noise to the corners, with a large enough diagonal."""
    off_diagonal = np.where(pairs, corners, 0.0)
    own = np.diag(corners)
    off_diagonal /= (off_diagonal.sum(axis=1) + own)[:, None]
    rates = off_diagonal.sum(axis=1)
    kept_rates = np.minimum(part * rates, 1.0 - LEAST_START_DIAGONAL)
    matrix = off_diagonal * (kept_rates / np.maximum(rates, 1e-12))[:, None]
    np.fill_diagonal(matrix, 1.0 - kept_rates)
    return np.asarray(matrix)
