"""Which label stands for which class how often, estimated from posteriors of rows that a model has not seen.

The label of a row follows c T, where c is its clean posterior and T[j, k] the share of class j that bears label k. Rows
that are surest of class j then all have the same twisted posterior, row j of T: it has corners, and no row lies beyond
them. `estimate_transitions` looks for the matrix whose corners the out-of-fold posteriors show, by three rules: the
labels must be likely; clean labels should follow from the features; and most entries of T are equal, be it to zero.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import Array, check_numbers
from untwist.blas import use_one_blas_thread
from untwist.noise.climbing import FIRST_STEPS, START_RATES, climb, search_matrices
from untwist.noise.families import KnownMatrix, make_even_matrix
from untwist.noise.model import check_matrix
from untwist.noise.plausibility import Fit, Plausibility, choose_rows, count_posteriors
from untwist.noise.rates import has_few_groups
from untwist.noise.several_classes import (
    DEVIATIONS,
    ENOUGH_EVIDENCE,
    UNSEEN_RATES,
    SeveralClassesNoise,
    spread_share,
)

__all__ = ["estimate_transitions"]

# ---- what counts as noise ----

# Among fewer rows per class than this nothing is found: too little speaks against any matrix.
FEWEST_ROWS_PER_CLASS = 5.0
# Noise must explain so many nats before any of them is evidence, and so many more per class if it is uneven.
PRICE_OF_NOISE = 0.7
PRICE_OF_UNEVENNESS = 0.6
# To say which label each class is confused with, at one rate for all classes, costs so many nats per class.
PRICE_OF_TARGET = 0.5
# Each entry of a matrix of any shape costs so many nats, which is about what chance gains by it; the second
# number where most of the noise is even.
PRICE_OF_ENTRY = 0.35
PRICE_OF_ENTRY_IN_EVEN_NOISE = 0.7
# An entry as small as this costs half of that, and one of 0 no more than the second number.
SMALL_ENTRY = 0.005
PRICE_OF_NO_ENTRY = 0.02
# Nats that speak against noise, as labels follow from features, count this often.
WEIGHT_OF_CONTRADICTION = 1.5

# Rows in few groups may be hard in each for reasons of its own, where more than this share is surely of no class.
LEAST_UNSURE = 0.05

# ---- components ----

# A matrix is a component at each of these scales of what is off its diagonal, with a weight by how far the scale is
# from 1: that of a normal distribution with this standard deviation.
SCALES = (0.75, 0.9, 1.0, 1.1, 1.25)
SCALE_SPREAD = 0.12
# Uneven rates come out too low by this part of the mean rate, on the tables that the constants here were chosen on.
UNEVEN_BIAS = 0.45
# No noise keeps at least this weight among the components: data never tell for certain why classes look alike.
HEDGE = 0.024
# A component of less weight than this is left out, and all but so many.
LEAST_WEIGHT = 1e-3
MOST_COMPONENTS = 12
# No diagonal of a component is below this.
LEAST_DIAGONAL = 0.15
# The smallest singular value of a matrix is more than this, and what undoes it has no numbers beyond 1e8.
LEAST_SINGULAR_VALUE = 1e-8

# ---- shares and their intervals ----

# The variance of the log-odds of a share is the square of the first number plus the second by the number of rows,
# chosen such that intervals held the truth in 19 of 20 tables.
SHARE_SPREAD = 0.14
SHARE_SPREAD_BY_ROWS = 20.0
# Intervals hold the shares of every fit that is at most so many nats behind the best one.
NEARLY_AS_GOOD = 3.0
# Below this evidence intervals begin at 0. It makes the odds against no noise 39 to 1, as 2.5 % on one side do.
CERTAIN_EVIDENCE = 3.66
# The variance of a class's rate is that of a count, plus the squares of this and of this part of the rate.
RATE_SPREAD = 0.02
RELATIVE_RATE_SPREAD = 0.15


def estimate_transitions(
    posterior: ArrayLike,
    labels: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    matrix: ArrayLike | None = None,
    rows_per_case: float = 1.0,
) -> SeveralClassesNoise:
    """Estimate which label stands for which class how often, from posteriors of a model that has not seen the rows.

    Parameters
    ----------
    posterior : array_like of shape (n_rows, n_classes)
        The probability of each label in each row, out of fold.
    labels : array_like of int of shape (n_rows,)
        The class that each label names.
    sample_weight : array_like of shape (n_rows,), optional
        How much each row counts.
    matrix : array_like of shape (n_classes, n_classes), optional
        The transition matrix if it is known; only slopes and offsets are then found.
    rows_per_case : float, default 1
        How many rows count as one: rows of a group may err together (`untwist.noise.dependence`).

    Returns
    -------
    SeveralClassesNoise
        The matrices that fit, and what takes the twisted posterior to the clean one. It does not depend on the order
        of the rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> true = rng.integers(3, size=3000)
    >>> given = np.where((true == 0) & (rng.random(3000) < 0.3), 1, true)
    >>> twisted = np.array([[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])[true]
    >>> estimate_transitions(0.9 * twisted + 0.1 / 3, given).matrix.round(1) + 0.0
    array([[0.7, 0.3, 0. ],
           [0. , 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    twisted, given, weight = _check_rows(posterior, labels, sample_weight)
    # The number of threads of a matrix product may change its last bit.
    with use_one_blas_thread():
        rows = choose_rows(twisted, given, weight)
        rows = rows._replace(weight=rows.weight / rows_per_case)
        plausibility = Plausibility(rows)
        if matrix is not None:
            return _take_known_matrix(plausibility, check_matrix(matrix))
        is_grouped = has_few_groups(count_posteriors(twisted), float(weight.sum()) / rows_per_case)
        return _combine(plausibility, *search_matrices(plausibility), is_grouped=is_grouped)


def _check_rows(
    posterior: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Array, NDArray[np.intp], Array]:
    """Return posteriors that sum to 1, labels and weights, of the rows that count."""
    twisted = check_numbers("posterior", posterior)
    given = np.asarray(labels)
    if twisted.ndim != 2 or twisted.shape[1] < 2 or given.shape != twisted.shape[:1] or given.size == 0:
        raise ValueError(
            f"posterior must have a row per label and a column per class, got shapes {twisted.shape} and {given.shape}"
        )
    if not ((twisted >= 0).all() and (twisted <= 1 + 1e-6).all() and (twisted.sum(axis=1) > 0).all()):
        raise ValueError("posterior must hold probabilities, with a positive sum in each row")
    n_classes = twisted.shape[1]
    if not (given.dtype.kind in "iub" and (given >= 0).all() and (given < n_classes).all()):
        raise ValueError(f"labels must be whole numbers from 0 to {n_classes - 1}, the columns of posterior")
    weight = np.ones(given.size) if sample_weight is None else check_numbers("sample_weight", sample_weight)
    if weight.shape != given.shape or not ((weight >= 0).all() and 0 < weight.sum() < np.inf):
        raise ValueError("sample_weight must be finite and non-negative, one per row, not all 0, with a finite sum")
    counts = weight > 0
    return twisted[counts], given[counts].astype(np.intp), weight[counts]


def _combine(
    plausibility: Plausibility, clean: Fit, even: Fit, pairs: Fit, uneven: list[Fit], *, is_grouped: bool
) -> SeveralClassesNoise:
    """Return the mixture of all fits, each at several scales, weighed by how plausible they are.

    Rows that come in few groups of equal posteriors, some of them between classes, may be hard for reasons of their own
    in each: noise then has no evidence over no noise.
    """
    n_classes = plausibility.n_classes
    identity = np.eye(n_classes)
    log_weights = []
    matrices = []
    fits = []
    for rate in UNSEEN_RATES:
        matrix = make_even_matrix(n_classes, rate)
        log_weights.append(plausibility.evaluate(matrix, clean.log_slopes, clean.offsets)[0] - clean.value)
        matrices.append(matrix)
        fits.append(clean)
    prices = [0.0, PRICE_OF_TARGET * n_classes, *(_price_unevenness(fit) for fit in uneven)]
    noisy = []
    for fit, price in zip([even, pairs, *uneven], prices, strict=True):
        against = 0.0 if fit is even else WEIGHT_OF_CONTRADICTION * plausibility.find_contradiction(fit)
        noisy.append((fit, fit.value - clean.value - PRICE_OF_NOISE - price - against))
    likeliest, evidence = max(noisy, key=lambda one: one[1])
    # Groups that are all sure of a class are what noise makes of a sharp problem.
    if is_grouped and evidence > 0 and plausibility.find_unsure_share(likeliest) > LEAST_UNSURE:
        noisy = [(fit, gain - evidence) for fit, gain in noisy]
        evidence = 0.0
    for fit, gain in noisy:
        factor = 1.0 if fit is even else 1.0 + UNEVEN_BIAS * (1.0 - np.trace(fit.matrix) / n_classes)
        for scale in SCALES:
            matrix = identity + factor * scale * (fit.matrix - identity)
            if matrix.diagonal().min() >= LEAST_DIAGONAL and _can_be_undone(matrix):
                log_weights.append(gain - ((scale - 1.0) / SCALE_SPREAD) ** 2 / 2.0)
                matrices.append(matrix)
                fits.append(fit)
    weights = _weigh(np.array(log_weights), len(UNSEEN_RATES))
    kept = np.sort(np.argsort(-weights, kind="stable")[:MOST_COMPONENTS])
    kept = kept[weights[kept] >= LEAST_WEIGHT]
    weights = weights[kept] / weights[kept].sum()
    mixture = SeveralClassesNoise(
        weights=weights,
        matrices=np.array([matrices[index] for index in kept]),
        slopes=np.exp([fits[index].log_slopes for index in kept]),
        offsets=np.array([fits[index].offsets for index in kept]),
        least=plausibility.least,
        evidence=evidence,
        found=evidence > ENOUGH_EVIDENCE and plausibility.rows_per_class >= FEWEST_ROWS_PER_CLASS,
        share=0.0,
        interval=(0.0, 1.0),
        class_shares=np.zeros(n_classes),
        class_intervals=np.zeros((n_classes, 2)),
        uneven_limit=1.0,
    )
    best = max(fit.value for fit, _ in noisy)
    return _describe_shares(plausibility, mixture, [fit for fit, _ in noisy if fit.value >= best - NEARLY_AS_GOOD])


def _can_be_undone(matrix: Array) -> bool:
    """Tell whether more than rounding is left of a posterior that this matrix has twisted."""
    return float(np.linalg.svd(matrix, compute_uv=False)[-1]) > LEAST_SINGULAR_VALUE


def _weigh(log_weights: Array, n_unseen: int) -> Array:
    """Return weights that sum to 1; the first so many, without noise to be seen, keep at least `HEDGE` of them."""
    weights = np.exp(log_weights - log_weights.max())
    hedge = max(HEDGE, float(weights[:n_unseen].sum() / weights.sum()))
    for group, whole in ((slice(None, n_unseen), hedge), (slice(n_unseen, None), 1.0 - hedge)):
        weights[group] = np.exp(log_weights[group] - log_weights[group].max())
        weights[group] *= whole / weights[group].sum()
    return np.asarray(weights)


def _price_unevenness(fit: Fit) -> float:
    """Return what the entries off the diagonal cost where they are free, in nats."""
    n_classes = len(fit.matrix)
    entries = fit.matrix[~np.eye(n_classes, dtype=np.bool_)]
    # Where much noise is even, every entry is off 0 and chance has more to gain.
    is_mostly_even = fit.common * (n_classes - 1) >= START_RATES[0]
    price = PRICE_OF_ENTRY_IN_EVEN_NOISE if is_mostly_even else PRICE_OF_ENTRY
    in_use = entries**2 / (entries**2 + SMALL_ENTRY**2)
    return PRICE_OF_UNEVENNESS * n_classes + float((PRICE_OF_NO_ENTRY + price * in_use).sum())


def _describe_shares(
    plausibility: Plausibility, mixture: SeveralClassesNoise, alternatives: list[Fit]
) -> SeveralClassesNoise:
    """Return the mixture with the shares of wrong labels, over all and by class, and what is not excluded.

    Where noise was found, an interval holds the shares under every fit that is nearly as good as the best one, prices
    aside: fits that agree on the labels may differ on how many are wrong.
    """
    rows = plausibility.rows
    n_labels = np.bincount(rows.labels, rows.weight, plausibility.n_classes)
    by_class = 1.0 - np.diag(mixture.matrix)
    share = plausibility.find_share(mixture)
    if mixture.found:
        spread = float(np.sqrt(SHARE_SPREAD**2 + SHARE_SPREAD_BY_ROWS / rows.weight.sum()))
        one_by_one = [_take_fit(mixture, fit) for fit in alternatives]
        shares = [share, *(plausibility.find_share(one) for one in one_by_one)]
        interval = (spread_share(min(shares), spread)[0], spread_share(max(shares), spread)[1])
        rates = np.array([by_class, *(1.0 - np.diag(one.matrix) for one in one_by_one)])
        # The variance of a count, and what even a count of 0 does not exclude.
        counted = rates * (1.0 - rates) / np.maximum(n_labels, 1.0) + (n_labels + 1.0) ** -2.0
        deviation = DEVIATIONS * np.sqrt(RATE_SPREAD**2 + (RELATIVE_RATE_SPREAD * rates) ** 2 + counted)
        low = np.maximum(rates - deviation, 0.0).min(axis=0)
        high = np.minimum(rates + deviation, 1.0).max(axis=0)
        if mixture.evidence < CERTAIN_EVIDENCE:
            low = np.zeros_like(low)
            interval = (0.0, interval[1])
    else:
        low = np.zeros_like(by_class)
        high = np.maximum(plausibility.caps, by_class)
        interval = (0.0, max(share, float(high @ n_labels) / float(n_labels.sum())))
    return replace(
        mixture,
        share=share,
        interval=interval,
        class_shares=by_class,
        class_intervals=np.column_stack([low, high]),
        uneven_limit=interval[1],
    )


def _take_fit(mixture: SeveralClassesNoise, fit: Fit) -> SeveralClassesNoise:
    """Return the noise of one fit alone."""
    return replace(
        mixture,
        weights=np.ones(1),
        matrices=fit.matrix[None],
        slopes=np.exp(fit.log_slopes)[None],
        offsets=fit.offsets[None],
    )


def _take_known_matrix(plausibility: Plausibility, matrix: Array) -> SeveralClassesNoise:
    """Return the noise of a known matrix, with slopes and offsets that fit."""
    zeros = np.zeros(plausibility.n_classes)
    fit, _ = climb(plausibility, KnownMatrix(matrix), np.zeros(0), zeros, zeros, FIRST_STEPS)
    known = replace(
        SeveralClassesNoise.from_matrix(matrix),
        slopes=np.exp(fit.log_slopes)[None],
        offsets=fit.offsets[None],
        least=plausibility.least,
    )
    rows = plausibility.rows
    share = known.share_wrong(rows.twisted, rows.labels, rows.weight)[0]
    return replace(known, share=share, interval=(share, share), uneven_limit=share)
