"""Which label stands for which class how often, estimated from posteriors of rows that a model has not seen.

The label of a row follows c T, where c is its clean posterior and T[j, k] the share of class j that bears label k. Rows
that are surest of class j then all have the same twisted posterior, row j of T: it has corners, and no row lies beyond
them. `estimate_transitions` looks for the matrix whose corners the out-of-fold posteriors show, by three rules: the
labels must be likely; clean labels should follow from the features; and most entries of T are equal, be it to zero.

Three things keep it from noise that is not there. A matrix is a better calibration map, too: noise must explain more
than matrix scaling does, which knows none (`scaling`). Between classes that features do not tell apart once the noise
is undone, hard rows look like wrong labels: such a pair stays undecided, and others are judged without it. And what is
left has a prior against it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp

from untwist.arguments import Array, check_numbers
from untwist.blas import use_one_blas_thread
from untwist.noise.climbing import FIRST_STEPS, START_RATES, climb, find_clean_fit, search_matrices
from untwist.noise.families import KnownMatrix, make_even_matrix
from untwist.noise.model import check_matrix
from untwist.noise.plausibility import Fit, Plausibility, choose_rows, count_posteriors
from untwist.noise.rates import has_few_groups
from untwist.noise.scaling import Scaling, fit_scaling
from untwist.noise.several_classes import (
    DEVIATIONS,
    ENOUGH_EVIDENCE,
    UNSEEN_RATE,
    SeveralClassesNoise,
    spread_share,
)

__all__ = ["estimate_transitions"]

# ---- what counts as noise ----

# Among fewer rows per class than this nothing is found: too little speaks against any matrix.
FEWEST_ROWS_PER_CLASS = 5.0
# Nats of prior odds against noise. On tables of the design no clean one was found noisy from 4 to 7 nats of evidence
# on, and of 84 noisy ones 52 to 50.
PRIOR_AGAINST_NOISE = 4.0
# A pair of classes is undecided whose overlap, once noise is undone, is over this: 1 is that of features that say
# nothing. From .4 to .7 clean tables of the design stay clean; at .55 most noise is found.
MOST_OVERLAP = 0.55
# Where pairs are undecided, noise between them and hard rows are equally likely, as far as noise has evidence.
HALF = 0.5
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

# Where more rows than this share a posterior, on average, nothing is told: a single tree or a neighbour answers so, and
# what it does not know looks like wrong labels. On the digits single trees have 10 and more rows for each, five bagged
# trees 5, forests of 30 and of 100 trees 1.3 and 1.1.
MOST_ROWS_PER_POSTERIOR = 4.0

# Rows in few groups may be hard in each for reasons of its own, where more than this share is surely of no class.
LEAST_UNSURE = 0.05

# ---- components ----

# What is not noise between decided pairs keeps at least this weight: data never tell for certain why classes look
# alike.
HEDGE = 0.024
# A component of less weight than this is left out.
LEAST_WEIGHT = 1e-3
# The smallest singular value of a matrix is more than this, and what undoes it has no numbers beyond 1e8.
LEAST_SINGULAR_VALUE = 1e-8

# ---- shares and their intervals ----

# The variance of the log-odds of a share is the square of the first number plus the second by the number of rows,
# chosen such that intervals held the truth in 19 of 20 tables.
SHARE_SPREAD = 0.14
SHARE_SPREAD_BY_ROWS = 20.0
# Intervals hold the shares of every fit that is at most so many nats behind the best one.
NEARLY_AS_GOOD = 3.0
# The variance of a class's rate is that of a count, plus the squares of this and of this part of the rate.
RATE_SPREAD = 0.02
RELATIVE_RATE_SPREAD = 0.15


def estimate_transitions(
    posterior: ArrayLike,
    labels: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    matrix: ArrayLike | None = None,
    order: ArrayLike | None = None,
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
    order : array_like of int of shape (n_classes,), optional
        The place of each class, from 0, where classes have an order: overlap of neighbours is then expected, and noise
        is looked for between others alone.
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
    >>> posterior = 0.9 * twisted + rng.uniform(0.02, 0.04, (3000, 3))
    >>> estimate_transitions(posterior, given).matrix.round(1) + 0.0
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
        n_posteriors = count_posteriors(twisted)
        if len(twisted) / rows_per_case > MOST_ROWS_PER_POSTERIOR * n_posteriors:
            return _describe_unfound(plausibility, _mix(plausibility, [_find_unseen(plausibility, 1.0)]))
        is_grouped = has_few_groups(n_posteriors, float(weight.sum()) / rows_per_case)
        return _combine(plausibility, _find_apart(twisted.shape[1], order), is_grouped=is_grouped)


def _find_apart(n_classes: int, order: ArrayLike | None) -> NDArray[np.bool_]:
    """Return between which classes noise is looked for: all pairs, but for neighbours in an order."""
    if order is None:
        return ~np.eye(n_classes, dtype=np.bool_)
    places = np.asarray(order)
    if sorted(places.tolist()) != list(range(n_classes)):
        raise ValueError(f"order must hold the place of each of the {n_classes} classes, from 0, got {order!r}")
    return np.asarray(np.abs(np.subtract.outer(places, places)) > 1)


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


class _Rated(NamedTuple):
    """A fit with noise, and the nats that it explains beyond the best one without, less its price."""

    fit: Fit
    gain: float


class _Component(NamedTuple):
    """A matrix with its weight, and the fit whose slopes and offsets go with it."""

    weight: float
    matrix: Array
    fit: Fit


def _combine(plausibility: Plausibility, apart: NDArray[np.bool_], *, is_grouped: bool) -> SeveralClassesNoise:
    """Return the mean over no noise and noise, by the evidence for noise between pairs of classes that are told apart.

    Rows that come in few groups of equal posteriors, some of them between classes, may be hard for reasons of their own
    in each: no pair of classes is then decided.
    """
    clean = find_clean_fit(plausibility)
    scaling = fit_scaling(plausibility.rows, plausibility.least)
    against = PRIOR_AGAINST_NOISE + max(0.0, scaling.value - plausibility.find_likelihood(clean))
    first = _rate_fits(plausibility, apart, clean)
    pairs, fits = _settle_pairs(plausibility, apart, first, clean)
    # Groups that are all sure of a class are what noise makes of a sharp problem.
    if is_grouped and pairs.any() and plausibility.find_unsure_share(_find_best(fits).fit) > LEAST_UNSURE:
        pairs = np.zeros_like(pairs)
    decided, undecided = [], []
    evidence = min(0.0, _find_best(first).gain - against)
    if pairs.any():
        gain = _find_best(fits).gain
        evidence = gain - against
        if PRIOR_AGAINST_NOISE + ENOUGH_EVIDENCE < gain <= against + ENOUGH_EVIDENCE:
            # What noise explains is less than what a scaling does, and may still be something else.
            evidence = max(evidence, _explain_beyond(scaling, pairs) - PRIOR_AGAINST_NOISE)
        decided = _share_out(fits, (1.0 - HEDGE) * float(expit(evidence)))
    if not np.array_equal(pairs, apart):
        left = 1.0 - sum(one.weight for one in decided)
        undecided = _take_undecided(first, against, left)
    left = 1.0 - sum(one.weight for one in decided + undecided)
    unseen = _find_unseen(plausibility, left, clean)
    mixture = _mix(plausibility, [unseen, *undecided, *decided])
    found = evidence > ENOUGH_EVIDENCE and plausibility.rows_per_class >= FEWEST_ROWS_PER_CLASS
    mixture = replace(mixture, evidence=evidence, found=found, decided_pairs=pairs)
    if not found:
        return _describe_unfound(plausibility, mixture)
    best = max(fit.value for fit, _ in fits)
    alternatives = [fit for fit, _ in fits if fit.value >= best - NEARLY_AS_GOOD]
    is_open = ~np.eye(plausibility.n_classes, dtype=np.bool_) & ~pairs
    return _describe_found(plausibility, mixture, _mix(plausibility, decided), alternatives, is_open)


def _find_unseen(plausibility: Plausibility, weight: float, clean: Fit | None = None) -> _Component:
    """Return what stands for no noise to be seen."""
    fit = find_clean_fit(plausibility) if clean is None else clean
    return _Component(weight, make_even_matrix(plausibility.n_classes, UNSEEN_RATE), fit)


def _explain_beyond(scaling: Scaling, pairs: NDArray[np.bool_]) -> float:
    """Return the nats that noise between some pairs of classes explains of posteriors that are scaled already.

    The answer is 0 where these pairs are not told apart any more.
    """
    plausibility = Plausibility(scaling.rows)
    clean = find_clean_fit(plausibility)
    settled, fits = _settle_pairs(plausibility, pairs, _rate_fits(plausibility, pairs, clean), clean)
    return _find_best(fits).gain if np.array_equal(settled, pairs) else 0.0


def _rate_fits(plausibility: Plausibility, pairs: NDArray[np.bool_], clean: Fit) -> list[_Rated]:
    """Return the best fits with noise between some pairs of classes, that of an even rate first."""
    even, one_by_one, uneven = search_matrices(plausibility, pairs, clean)
    n_noisy = int(np.count_nonzero(pairs.any(axis=1)))
    prices = [0.0, PRICE_OF_TARGET * n_noisy, *(_price_unevenness(fit, pairs) for fit in uneven)]
    rated = []
    for fit, price in zip([even, one_by_one, *uneven], prices, strict=True):
        against = 0.0 if fit is even else WEIGHT_OF_CONTRADICTION * plausibility.find_contradiction(fit)
        gain = fit.value - clean.value - PRICE_OF_NOISE - price - against
        rated.append(_Rated(fit, gain if _can_be_undone(fit.matrix) else -np.inf))
    return rated


def _can_be_undone(matrix: Array) -> bool:
    """Tell whether more than rounding is left of a posterior that this matrix has twisted."""
    return float(np.linalg.svd(matrix, compute_uv=False)[-1]) > LEAST_SINGULAR_VALUE


def _find_best(rated: list[_Rated]) -> _Rated:
    return max(rated, key=lambda one: one.gain)


def _settle_pairs(
    plausibility: Plausibility, apart: NDArray[np.bool_], first: list[_Rated], clean: Fit
) -> tuple[NDArray[np.bool_], list[_Rated]]:
    """Return the pairs of classes that features tell apart once the noise between them is undone, and their fits."""
    pairs, fits = apart, first
    while pairs.any():
        best = _find_best(fits)
        left = pairs & (plausibility.find_overlap(best.fit) < MOST_OVERLAP) & np.isfinite(best.gain)
        if np.array_equal(left, pairs):
            break
        pairs = left
        if pairs.any():
            fits = _rate_fits(plausibility, pairs, clean)
    return pairs, [one for one in fits if np.isfinite(one.gain)]


def _share_out(fits: list[_Rated], weight: float) -> list[_Component]:
    """Return the matrices of fits, with a weight together, each by the nats that it explains."""
    gains = np.array([one.gain for one in fits])
    shares = np.exp(gains - logsumexp(gains)) * weight
    return [_Component(share, fit.matrix, fit) for (fit, _), share in zip(fits, shares.tolist(), strict=True)]


def _take_undecided(first: list[_Rated], against: float, left: float) -> list[_Component]:
    """Return the noise that explains most between all classes, and even noise, each with half of what it may have.

    Even noise comes first: hard rows are hard to tell from few other classes, not from all of them alike.
    """
    taken = []
    even, best = first[0], _find_best(first)
    for fit, gain in [even] if best is even else [even, best]:
        taken.append(_Component(HALF * float(expit(gain - against)) * left, fit.matrix, fit))
        left -= taken[-1].weight
    return taken


def _mix(plausibility: Plausibility, components: list[_Component]) -> SeveralClassesNoise:
    """Return the mean over some components, without those of next to no weight."""
    weights = np.array([one.weight for one in components])
    weights = weights / weights.sum()
    kept = np.flatnonzero(weights >= LEAST_WEIGHT)
    n_classes = plausibility.n_classes
    return SeveralClassesNoise(
        weights=weights[kept] / weights[kept].sum(),
        matrices=np.array([components[index].matrix for index in kept]),
        slopes=np.exp([components[index].fit.log_slopes for index in kept]),
        offsets=np.array([components[index].fit.offsets for index in kept]),
        least=plausibility.least,
        evidence=0.0,
        found=False,
        decided_pairs=np.zeros((n_classes, n_classes), dtype=np.bool_),
        share=0.0,
        interval=(0.0, 1.0),
        class_shares=np.zeros(n_classes),
        class_intervals=np.zeros((n_classes, 2)),
        uneven_limit=1.0,
    )


def _price_unevenness(fit: Fit, pairs: NDArray[np.bool_]) -> float:
    """Return what the entries off the diagonal cost where they are free, in nats."""
    entries = fit.matrix[pairs]
    # Where much noise is even, every entry is off 0 and chance has more to gain.
    is_mostly_even = fit.common * (len(fit.matrix) - 1) >= START_RATES[0]
    price = PRICE_OF_ENTRY_IN_EVEN_NOISE if is_mostly_even else PRICE_OF_ENTRY
    in_use = entries**2 / (entries**2 + SMALL_ENTRY**2)
    n_noisy = np.count_nonzero(pairs.any(axis=1))
    return PRICE_OF_UNEVENNESS * float(n_noisy) + float((PRICE_OF_NO_ENTRY + price * in_use).sum())


def _describe_found(
    plausibility: Plausibility,
    mixture: SeveralClassesNoise,
    decided: SeveralClassesNoise,
    alternatives: list[Fit],
    is_open: NDArray[np.bool_],
) -> SeveralClassesNoise:
    """Return the mixture with the shares of wrong labels, over all and by class, if there is noise.

    An interval holds the shares under every fit that is nearly as good as the best one, prices aside: fits that agree
    on the labels may differ on how many are wrong. Of a class with undecided pairs no more is excluded than the surest
    rows exclude.
    """
    rows = plausibility.rows
    n_labels = np.bincount(rows.labels, rows.weight, plausibility.n_classes)
    by_class = 1.0 - np.diag(decided.matrix)
    share = plausibility.find_share(decided)
    spread = float(np.sqrt(SHARE_SPREAD**2 + SHARE_SPREAD_BY_ROWS / rows.weight.sum()))
    one_by_one = [_take_fit(mixture, fit) for fit in alternatives]
    shares = [share, *(plausibility.find_share(one) for one in one_by_one)]
    rates = np.array([by_class, *(1.0 - np.diag(one.matrix) for one in one_by_one)])
    # The variance of a count, and what even a count of 0 does not exclude.
    counted = rates * (1.0 - rates) / np.maximum(n_labels, 1.0) + (n_labels + 1.0) ** -2.0
    deviation = DEVIATIONS * np.sqrt(RATE_SPREAD**2 + (RELATIVE_RATE_SPREAD * rates) ** 2 + counted)
    low = np.maximum(rates - deviation, 0.0).min(axis=0)
    high = np.minimum(rates + deviation, 1.0).max(axis=0)
    highest = spread_share(max(shares), spread)[1]
    if is_open.any():
        high = np.where(is_open.any(axis=1), np.maximum(high, plausibility.caps), high)
        highest = max(highest, float(high @ n_labels) / float(n_labels.sum()))
    return replace(
        mixture,
        share=share,
        interval=(spread_share(min(shares), spread)[0], highest),
        class_shares=by_class,
        class_intervals=np.column_stack([low, high]),
        uneven_limit=highest,
    )


def _describe_unfound(plausibility: Plausibility, mixture: SeveralClassesNoise) -> SeveralClassesNoise:
    """Return the mixture with what the surest rows do not exclude."""
    n_labels = np.bincount(plausibility.rows.labels, plausibility.rows.weight, plausibility.n_classes)
    by_class = 1.0 - np.diag(mixture.matrix)
    share = plausibility.find_share(mixture)
    high = np.maximum(plausibility.caps, by_class)
    highest = max(share, float(high @ n_labels) / float(n_labels.sum()))
    return replace(
        mixture,
        share=share,
        interval=(0.0, highest),
        class_shares=by_class,
        class_intervals=np.column_stack([np.zeros_like(high), high]),
        uneven_limit=highest,
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
