"""Which label stands for which class how often, estimated from posteriors of rows that a model has not seen.

The label of a row follows c T, where c is its clean posterior and T[j, k] the share of class j that bears label k. Rows
that are surest of class j then all have the same twisted posterior, row j of T: it has corners, and no row lies beyond
them. `estimate_transitions` looks for the matrix whose corners the out-of-fold posteriors show, by three rules: the
labels must be likely; clean labels should follow from the features; and most entries of T are equal, be it to zero.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from threadpoolctl import threadpool_limits

from untwist.arguments import Array, check_numbers
from untwist.noise.matrix import DEVIATIONS, MatrixUntwisting, check_matrix, spread_share, untwist_by_matrix

__all__ = ["ENOUGH_EVIDENCE", "estimate_transitions"]

#: Noise is found where it explains more nats than this beyond its price.
ENOUGH_EVIDENCE = 0.0
# Among fewer rows per class than this nothing is found: too little speaks against any matrix.
FEWEST_ROWS_PER_CLASS = 5.0
# Noise is found where it explains more nats than this; if it is uneven, the next number per class is added.
PRICE_OF_NOISE = 0.7
PRICE_OF_UNEVENNESS = 0.6
# To say which label each class is confused with, at one rate for all classes, costs so many nats per class.
PRICE_OF_TARGET = 0.5
# Each entry of a free matrix costs so many nats, which is about what chance gains by it...
PRICE_OF_ENTRY = 0.35
PRICE_OF_ENTRY_IN_EVEN_NOISE = 0.7
# ...but half of that where it is as small as this, and at 0 no more than the second number.
SMALL_ENTRY = 0.005
PRICE_OF_NO_ENTRY = 0.02
# No noise keeps at least this weight among the components: data never tell for certain why classes look alike.
HEDGE = 0.024
# An entry of the matrix that differs from the common one by this much is half way to being an exception.
ENTRY_SPREAD = 0.01
# An entry that is an exception costs this often the logarithm of how far out it is, squared.
ENTRY_PRICE = 0.4
# So many nats it is worth to divide by e what features leave unexplained of the clean labels.
WORTH_OF_EXPLAINING = 6.0
# It is worth less in proportion where classes have fewer rows than this: a few rows are explained by many matrices.
ROWS_TO_EXPLAIN = 20.0
# A rate may exceed the highest that the surest rows allow by about this much.
CAP_SPREAD = 0.02
# The highest rate is that of a one-sided bound of so many standard errors.
CAP_ERRORS = 2.0
# Numbers that differ by less than this part count as equal.
ROUNDING = 1e-9
# So many numbers of surest rows are looked at.
CAP_DEPTHS = 32
# A class counts for this power of its share where it is asked how much features leave unexplained.
RARE_CLASSES_COUNT = 0.5
# The variance of a class that would vanish counts as this much.
LEAST_VARIANCE = 1e-6
# So much of the clean labels features may leave unexplained at no price.
FREELY_UNEXPLAINED = 0.02
# The prior standard deviations of the mean logarithm of the slopes, of each slope's distance from it, of an offset.
MEAN_SLOPE_SPREAD = 0.5
SLOPE_SPREAD = 0.3
OFFSET_SPREAD = 0.3
# The logarithm of a slope, and an offset, stay within these.
STEEPEST = 1.2
LARGEST_OFFSET = 2.0
# The highest rate of noise that is the same in every class.
HIGHEST_RATE = 0.7
# The logarithm of an entry divided by its row's diagonal stays within these.
LEAST_LOG_ODDS = -12.0
LARGEST_LOG_ODDS = 1.0
# A twisted posterior nearer to 0 than this counts as this near.
POSTERIOR_FLOOR = 1e-4
# A clean posterior is not taken to be nearer to 0 than this, nor than the next one divided by the number of classes.
CLEAREST = 0.005
CLEAREST_OF_ALL_CLASSES = 0.05
# The search looks at so many rows at most, chosen by what they contain, and at no more cells than the last number.
MOST_ROWS = 6000
FEWEST_ROWS = 2500
MOST_CELLS = 130_000
# Rows of more weight than this in all would say nothing new.
MOST_TELLING_WEIGHT = 10_000.0
# Whether labels follow from features is asked of entries above this, among rows with a clean posterior above the next.
TELLING_ENTRY = 0.05
SURE = 0.8
# What the answer speaks against noise counts this often.
WEIGHT_OF_CONTRADICTION = 1.5
# The corners of the posteriors are looked for among this part of a class's rows, but among so many rows at least.
CORNER_SHARE = 0.2
FEWEST_CORNER_ROWS = 10
# Entries of a corner below the first number, or of fewer rows than the second, are left out at first.
LEAST_CORNER = 0.02
TELLING_ROWS = 1.0
# Of so many classes at most, corners of fewer rows are tried as well, and with all their entries.
FEW_CLASSES = 20
SHARP_CORNER_SHARE = 0.1
TOWARDS_SHARP_CORNERS = 0.8
# A matrix that the search begins with goes this far towards the corners, and keeps a diagonal of at least so much.
TOWARDS_CORNERS = 0.8
LEAST_START_DIAGONAL = 0.45
# No entry of it is below this.
LEAST_START_ENTRY = 3e-4
# Rates that the search for even noise begins with.
START_RATES = (0.05, 0.3)
# The most steps of a first search, and of the last one.
FIRST_STEPS = 30
LAST_STEPS = 60
# Each matrix is taken times these (what is off its diagonal), with weights of a normal distribution of this spread.
SCALES = (0.75, 0.9, 1.0, 1.1, 1.25)
SCALE_SPREAD = 0.12
# Uneven rates come out too low by this part of the mean rate, on the tables that the constants here were chosen on.
UNEVEN_BIAS = 0.45
# The log-odds of a share have this standard deviation, and its square grows by the next number per row: chosen such
# that intervals held the truth in 19 of 20 tables.
SHARE_SPREAD = 0.14
SHARE_SPREAD_BY_ROWS = 20.0
# Intervals hold what a fit says that is so many nats behind the best at most.
NEARLY_AS_GOOD = 3.0
# Below this evidence no noise at all is within the 95 % of what is likely: the odds against it are 39 to 1 here.
CERTAIN_EVIDENCE = 3.66
# The rate of a class has this standard deviation, and this part of the rate, besides that of a count.
RATE_SPREAD = 0.02
RELATIVE_RATE_SPREAD = 0.15
# Where there is no noise to be seen, these even rates stand for what is not excluded.
UNSEEN_RATES = (0.002, 0.01, 0.03)
# A component of less weight than this is left out, and all but so many.
LEAST_WEIGHT = 1e-3
MOST_COMPONENTS = 12
# No diagonal of a component is below this.
LEAST_DIAGONAL = 0.15


class _Rows(NamedTuple):
    """Rows sorted by label: their twisted posteriors, labels and weights."""

    twisted: Array
    labels: NDArray[np.intp]
    weight: Array


class _Fit(NamedTuple):
    """The best of a family: how plausible it is, its matrix, log-slopes and offsets, and its common entry."""

    value: float
    matrix: Array
    log_slopes: Array
    offsets: Array
    common: float


def estimate_transitions(
    posterior: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None = None, *, matrix: ArrayLike | None = None
) -> MatrixUntwisting:
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

    Returns
    -------
    MatrixUntwisting
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
    with threadpool_limits(limits=1, user_api="blas"):
        rows = _choose_rows(twisted, given, weight)
        objective = _Objective(rows)
        if matrix is not None:
            return _take_known_matrix(objective, check_matrix(matrix))
        return _combine(objective, *_search(objective))


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


def _choose_rows(twisted: Array, labels: NDArray[np.intp], weight: Array) -> _Rows:
    """Return rows by what they contain, whatever their order, and as many as the search can look at."""
    n_classes = twisted.shape[1]
    most = min(MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // n_classes))
    twisted, labels, weight = _merge_copies(twisted, labels, weight)
    total = max(float(weight.sum()), float(len(weight)))
    scaled = weight * (total / weight.sum())
    kept = np.arange(min(most, len(weight)))
    kept = kept[np.argsort(labels[kept], kind="stable")]
    chosen = np.clip(twisted[kept], POSTERIOR_FLOOR, 1.0)
    telling = min(total * len(kept) / len(weight), MOST_TELLING_WEIGHT)
    return _Rows(
        chosen / chosen.sum(axis=1, keepdims=True), labels[kept], scaled[kept] * (telling / scaled[kept].sum())
    )


def _merge_copies(twisted: Array, labels: NDArray[np.intp], weight: Array) -> tuple[Array, NDArray[np.intp], Array]:
    """Return the rows in an order by what they contain, copies as one row of their whole weight."""
    order = _order_by_content(twisted, labels, weight)
    twisted, labels, weight = twisted[order], labels[order], weight[order]
    differs = (twisted[1:] != twisted[:-1]).any(axis=1) | (labels[1:] != labels[:-1])
    first = np.flatnonzero(np.concatenate([[True], differs]))
    return twisted[first], labels[first], np.add.reduceat(weight, first)


def _order_by_content(twisted: Array, labels: NDArray[np.intp], weight: Array) -> NDArray[np.intp]:
    """Return an order of the rows that depends on what they contain, as good as random, and not on class numbers.

    Copies are neighbours, in the order of their weights.
    """
    bits = _scramble(np.ascontiguousarray(twisted).view(np.uint64))
    at_label = bits[np.arange(len(labels)), labels]
    code = _scramble(bits.sum(axis=1, dtype=np.uint64) + _scramble(at_label))
    order = np.argsort(code, kind="stable")
    tied = np.flatnonzero(code[order][1:] == code[order][:-1])
    if tied.size:
        # Rows of one code are sorted by all that they contain.
        of_ties = np.unique(np.concatenate([tied, tied + 1]))
        rows = order[of_ties]
        keys = (weight[rows], *twisted[rows].T, labels[rows], code[rows])
        order[of_ties] = rows[np.lexsort(keys)]
    return order


def _scramble(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return well-mixed bits, by the finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        mixed = bits + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(mixed ^ (mixed >> np.uint64(31)))


class _Objective:
    """How plausible a matrix, log-slopes and offsets are, and the gradients.

    Arrays have a row per class here, and a column per row of the table: sums over classes are then fast.
    """

    def __init__(self, rows: _Rows) -> None:
        self.rows = rows
        self.twisted = np.ascontiguousarray(rows.twisted.T)
        self.n_classes, self.n_rows = self.twisted.shape
        self.least = min(CLEAREST, CLEAREST_OF_ALL_CLASSES / self.n_classes)
        self.shares = rows.weight / rows.weight.sum()
        self.borne, self.first_rows = np.unique(rows.labels, return_index=True)
        by_label = np.bincount(rows.labels, self.shares, self.n_classes) ** RARE_CLASSES_COUNT
        self.class_weights = by_label / by_label.sum()
        self.rows_per_class = float(rows.weight.sum()) / self.n_classes
        self.worth_of_explaining = WORTH_OF_EXPLAINING * min(1.0, self.rows_per_class / ROWS_TO_EXPLAIN)
        self.caps = find_highest_rates(rows.twisted, rows.labels, rows.weight)
        # Arrays that every evaluation writes anew: asking for memory would take longer than the sums.
        self.workspace = np.empty((6, self.n_classes, self.n_rows))

    def evaluate(self, matrix: Array, log_slopes: Array, offsets: Array) -> tuple[float, Array, Array, Array]:
        """Return the plausibility, and its gradients by the matrix, the log-slopes and the offsets."""
        plain, kept, log_kept, clean, columns, by_clean = self.workspace
        inverse = np.linalg.inv(matrix)
        np.matmul(inverse.T, self.twisted, out=plain)
        np.maximum(plain, self.least, out=kept)
        total = kept.sum(axis=0)
        np.log(np.divide(kept, total, out=log_kept), out=log_kept)
        slopes = np.exp(log_slopes)
        np.multiply(log_kept, slopes[:, None], out=clean)
        clean += offsets[:, None]
        np.exp(clean, out=clean)
        clean /= clean.sum(axis=0)
        # How likely each label is: only the column of that label is needed.
        np.take(matrix, self.rows.labels, axis=1, out=columns, mode="clip")
        likely = np.maximum(np.einsum("kn,kn->n", clean, columns), np.finfo(float).tiny)
        unexplained, by_mean, by_square = self.find_unexplained(clean)
        mean_slope = log_slopes.mean()
        beyond = np.maximum(1.0 - np.diag(matrix) - self.caps, 0.0) / CAP_SPREAD
        value = (
            self.rows.weight @ np.log(likely)
            - self.worth_of_explaining * np.log(unexplained + FREELY_UNEXPLAINED)
            - (mean_slope / MEAN_SLOPE_SPREAD) ** 2 / 2.0
            - ((log_slopes - mean_slope) ** 2).sum() / (2.0 * SLOPE_SPREAD**2)
            - (offsets**2).sum() / (2.0 * OFFSET_SPREAD**2)
            - (beyond**2).sum() / 2.0
        )
        by_likely = self.rows.weight / likely
        worth = -self.worth_of_explaining / (unexplained + FREELY_UNEXPLAINED)
        np.multiply(clean, (2.0 * worth * by_square)[:, None], out=by_clean)
        by_clean += (worth * by_mean)[:, None]
        by_clean *= self.shares
        columns *= by_likely
        by_clean += columns
        by_matrix = np.zeros_like(matrix)
        by_matrix[:, self.borne] = np.add.reduceat(np.multiply(clean, by_likely, out=columns), self.first_rows, axis=1)
        # From here on by_clean is the gradient by the exponents, and then by the logarithms, of the clean posterior.
        by_clean -= np.einsum("kn,kn->n", by_clean, clean)
        by_clean *= clean
        by_offsets = by_clean.sum(axis=1) - offsets / OFFSET_SPREAD**2
        by_log_slopes = (
            np.einsum("kn,kn->k", by_clean, log_kept) * slopes
            - mean_slope / MEAN_SLOPE_SPREAD**2 / self.n_classes
            - (log_slopes - mean_slope) / SLOPE_SPREAD**2
        )
        by_clean *= slopes[:, None]
        by_total = by_clean.sum(axis=0) / total
        by_plain = np.divide(by_clean, kept, out=clean)
        by_plain -= by_total
        by_plain *= plain > self.least
        by_matrix -= (plain @ by_plain.T) @ inverse.T
        by_matrix[np.diag_indices(self.n_classes)] += beyond / CAP_SPREAD
        return float(value), by_matrix, by_log_slopes, by_offsets

    def find_contradiction(self, fit: _Fit) -> float:
        """Return how many nats speak against noise between two classes: what features say of its labels.

        By noise, which rows of class j bear label k does not follow from features. Where it does, classes are hard to
        tell apart. The answer is the score statistic of the posterior's log-odds of k against j, among rows that are
        surely of class j and bear one of these labels, for the pair of classes where it is greatest.
        """
        clean = untwist_by_matrix(self.rows.twisted, fit.matrix, np.exp(fit.log_slopes), fit.offsets, self.least)
        worst = 0.0
        for j, k in np.argwhere((fit.matrix > TELLING_ENTRY) & ~np.eye(self.n_classes, dtype=np.bool_)).tolist():
            labels = self.rows.labels
            chosen = np.flatnonzero((clean[:, j] > SURE) & ((labels == j) | (labels == k)))
            weight = self.rows.weight[chosen]
            if weight.sum() < FEWEST_CORNER_ROWS:
                continue
            bears_k = labels[chosen] == k
            log_odds = np.log(self.twisted[k, chosen] / self.twisted[j, chosen])
            part = float(weight @ bears_k / weight.sum())
            centred = log_odds - weight @ log_odds / weight.sum()
            variance = part * (1.0 - part) * float(weight @ centred**2)
            score = float(weight @ (centred * bears_k))
            # Log-odds that differ by rounding alone say nothing.
            if score > 0 and variance > ROUNDING * weight.sum():
                worst = max(worst, score**2 / (2.0 * variance))
        return worst

    def find_share(self, untwisting: MatrixUntwisting) -> float:
        """Return the share of wrong labels among the rows."""
        return float(self.shares @ untwisting.probability_wrong(self.rows.twisted, self.rows.labels))

    def find_unexplained(self, clean: Array) -> tuple[float, Array, Array]:
        """Return what features leave unexplained of the classes' variance, a mean of shares.

        And its gradients by the mean of the clean posterior of each class, and by the mean of its square.
        """
        mean = clean @ self.shares
        left = mean - np.einsum("kn,kn,n->k", clean, clean, self.shares)
        whole = np.maximum(mean * (1.0 - mean), LEAST_VARIANCE)
        by_left = self.class_weights / whole
        by_whole = -by_left * left / whole * (whole > LEAST_VARIANCE)
        return float(by_left @ left), by_left + by_whole * (1.0 - 2.0 * mean), -by_left


class _Family(Protocol):
    """Matrices that a few parameters describe."""

    bounds: list[tuple[float, float]]

    def make(self, parameters: Array, /) -> Array:
        """Return the matrix of the parameters."""

    def price(self, parameters: Array, matrix: Array, /) -> tuple[float, Array, Array]:
        """Return what the matrix costs, in nats, and the gradients by the matrix and by the parameters alone."""

    def pull_back(self, parameters: Array, matrix: Array, by_matrix: Array, /) -> Array:
        """Return the gradient by the parameters that a gradient by the matrix amounts to."""

    def find_common(self, parameters: Array, /) -> float:
        """Return the entry that classes have in common."""


class _Known:
    """One matrix."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.bounds: list[tuple[float, float]] = []

    def make(self, _parameters: Array) -> Array:
        return self.matrix

    def price(self, parameters: Array, matrix: Array) -> tuple[float, Array, Array]:
        return 0.0, np.zeros_like(matrix), parameters

    def pull_back(self, parameters: Array, _matrix: Array, _by_matrix: Array) -> Array:
        return parameters

    def find_common(self, _parameters: Array) -> float:
        return 0.0


class _Tied:
    """Matrices with the same rate in every class, and wrong labels that go the ways of `directions`."""

    def __init__(self, directions: Array) -> None:
        self.n_classes = len(directions)
        self.slope = directions - np.eye(self.n_classes)
        self.bounds = [(-8.0, 6.0)]

    def make(self, parameters: Array) -> Array:
        return np.asarray(np.eye(self.n_classes) + HIGHEST_RATE * expit(parameters[0]) * self.slope)

    def price(self, _parameters: Array, matrix: Array) -> tuple[float, Array, Array]:
        return 0.0, np.zeros_like(matrix), np.zeros(1)

    def pull_back(self, parameters: Array, _matrix: Array, by_matrix: Array) -> Array:
        part = expit(parameters[0])
        return np.array([(by_matrix * self.slope).sum() * HIGHEST_RATE * part * (1.0 - part)])

    def find_common(self, parameters: Array) -> float:
        return HIGHEST_RATE * float(expit(parameters[0])) / (self.n_classes - 1)


class _Free:
    """Any matrices; those are dear that have many entries off the diagonal unlike a common one.

    The parameters are ln (T[j, k] / T[j, j]) and the logarithm of the common entry.
    """

    def __init__(self, n_classes: int) -> None:
        self.off_diagonal = ~np.eye(n_classes, dtype=np.bool_)
        n_entries = n_classes * (n_classes - 1)
        self.bounds = [(LEAST_LOG_ODDS, LARGEST_LOG_ODDS)] * n_entries + [(LEAST_LOG_ODDS, -1.0)]

    def start(self, matrix: Array, common: float) -> Array:
        odds = np.maximum(matrix, LEAST_START_ENTRY) / np.diag(matrix)[:, None]
        return np.append(np.log(odds[self.off_diagonal]), np.log(max(common, 1e-5)))

    def make(self, parameters: Array) -> Array:
        odds = np.eye(len(self.off_diagonal))
        odds[self.off_diagonal] = np.exp(parameters[:-1])
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def price(self, parameters: Array, matrix: Array) -> tuple[float, Array, Array]:
        common = np.exp(parameters[-1])
        distance = np.where(self.off_diagonal, (matrix - common) / ENTRY_SPREAD, 0.0)
        by_matrix = 2.0 * ENTRY_PRICE * distance / (1.0 + distance**2) / ENTRY_SPREAD
        by_parameters = np.zeros_like(parameters)
        by_parameters[-1] = -by_matrix.sum() * common
        return float(ENTRY_PRICE * np.log1p(distance**2).sum()), by_matrix, by_parameters

    def pull_back(self, _parameters: Array, matrix: Array, by_matrix: Array) -> Array:
        by_log_odds = matrix * (by_matrix - (by_matrix * matrix).sum(axis=1, keepdims=True))
        return np.append(by_log_odds[self.off_diagonal], 0.0)

    def find_common(self, parameters: Array) -> float:
        return float(np.exp(parameters[-1]))


def find_highest_rates(twisted: Array, labels: NDArray[np.intp], weight: Array) -> Array:
    """Return the highest rate of noise of each class that the surest rows do not exclude.

    Of rows that were chosen without looking at their labels, no greater part can bear label j than of class j itself.
    So the part of the rows surest of class j that bear label j bounds its rate, whether posteriors are calibrated or
    not: by Wilson's lower bound, at the number of surest rows that bounds it most.

    Parameters
    ----------
    twisted : ndarray of shape (n_rows, n_classes)
        The twisted posterior, out of fold.
    labels : ndarray of int of shape (n_rows,)
        The class that each label names.
    weight : ndarray of shape (n_rows,)
        How many rows each one stands for.

    Returns
    -------
    ndarray of shape (n_classes,)
        Each from 0 to 1.
    """
    n_classes = twisted.shape[1]
    highest = np.ones(n_classes)
    square = CAP_ERRORS**2
    for each in range(n_classes):
        order = np.argsort(-twisted[:, each], kind="stable")
        # Rows that are equally sure are taken together: their order would be one by labels.
        sure = twisted[order, each]
        ends = np.append(np.flatnonzero(sure[1:] != sure[:-1]), len(sure) - 1)
        sorted_weight = weight[order]
        weight_until = np.cumsum(sorted_weight)
        wanted = np.geomspace(min(1.0, weight_until[-1]), weight_until[-1], CAP_DEPTHS)
        places = np.searchsorted(weight_until, wanted * (1.0 - ROUNDING))
        depths = ends[np.searchsorted(ends, np.minimum(places, len(sure) - 1))]
        total = weight_until[depths]
        right = np.cumsum(sorted_weight * (labels[order] == each))[depths]
        part = np.clip(right / total, 0.0, 1.0)
        spread = CAP_ERRORS * np.sqrt(part * (1.0 - part) / total + square / (4.0 * total**2))
        bound = (part + square / (2.0 * total) - spread) / (1.0 + square / total)
        highest[each] = 1.0 - bound.max()
    return highest


def make_even_matrix(n_classes: int, rate: float) -> Array:
    """Return the matrix of a rate that is the same in every class, every other label as likely.

    Parameters
    ----------
    n_classes : int
        The number of classes.
    rate : float
        The share of each class that bears another label.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        A row per true class, a column per label.
    """
    matrix = np.full((n_classes, n_classes), rate / (n_classes - 1))
    np.fill_diagonal(matrix, 1.0 - rate)
    return matrix


def _climb(
    objective: _Objective, family: _Family, start: Array, log_slopes: Array, offsets: Array, steps: int
) -> tuple[_Fit, Array]:
    """Return the best of a family near a start, and its parameters."""
    n_classes = objective.n_classes
    n_own = len(family.bounds)

    def find_cost(x: Array) -> tuple[float, Array]:
        parameters = x[:n_own]
        matrix = family.make(parameters)
        value, by_matrix, by_slopes, by_offsets = objective.evaluate(
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
    fit = _Fit(-float(result.fun), family.make(parameters), slopes, shifts, family.find_common(parameters))
    return fit, parameters


def _search(objective: _Objective) -> tuple[_Fit, _Fit, _Fit, list[_Fit]]:
    """Return the best fit without noise, with even noise, with pairs of classes, and fits of any uneven noise."""
    n_classes = objective.n_classes
    zeros = np.zeros(n_classes)
    clean, _ = _climb(objective, _Known(np.eye(n_classes)), np.zeros(0), zeros, zeros, FIRST_STEPS)
    even = _climb_tied(objective, make_even_matrix(n_classes, 1.0), clean)
    free = _Free(n_classes)
    corners = _go_towards(_find_corners(objective, CORNER_SHARE, TELLING_ROWS), TOWARDS_CORNERS)
    steeper = clean.log_slopes + 0.3
    starts = [_climb(objective, free, free.start(corners, 0.0), steeper, clean.offsets, FIRST_STEPS)]
    sharp = _go_towards(_find_corners(objective, SHARP_CORNER_SHARE, 0.0), TOWARDS_SHARP_CORNERS)
    if n_classes <= FEW_CLASSES:
        starts.append(_climb(objective, free, free.start(sharp, 0.0), steeper, clean.offsets, FIRST_STEPS))
    if even.matrix[0, 0] < 1.0 - START_RATES[0] / 2.0:
        between = (even.matrix + corners) / 2.0
        starts.append(
            _climb(objective, free, free.start(between, even.common), even.log_slopes, even.offsets, FIRST_STEPS)
        )
    starts.sort(key=lambda start: -start[0].value)
    best, parameters = starts[0]
    best, _ = _climb(objective, free, parameters, best.log_slopes, best.offsets, LAST_STEPS)
    # Each class bears the other label that the corners show most of.
    targets = (sharp - np.diag(np.diag(sharp))).argmax(axis=1)
    pairs = _climb_tied(objective, np.eye(n_classes)[targets], clean)
    return clean, even, pairs, [best, *(fit for fit, _ in starts[1:])]


def _climb_tied(objective: _Objective, directions: Array, clean: _Fit) -> _Fit:
    """Return the best fit with one rate for all classes, from the better of two starts."""
    family = _Tied(directions)
    starts = (
        _climb(
            objective,
            family,
            np.array([logit(rate / HIGHEST_RATE)]),
            clean.log_slopes + rate,
            clean.offsets,
            FIRST_STEPS,
        )[0]
        for rate in START_RATES
    )
    return max(starts, key=lambda fit: fit.value)


def _find_corners(objective: _Objective, part: float, least_rows: float) -> Array:
    """Return the mean of posterior and label over the part of rows that are surest of each class.

    Entries of fewer rows than `least_rows` are left out.
    """
    rows = objective.rows
    n_classes = objective.n_classes
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


def _go_towards(corners: Array, part: float) -> Array:
    """Return a matrix part of the way from no noise to the corners, with a large enough diagonal."""
    off_diagonal = corners - np.diag(np.diag(corners))
    rates = off_diagonal.sum(axis=1)
    kept_rates = np.minimum(part * rates, 1.0 - LEAST_START_DIAGONAL)
    matrix = off_diagonal * (kept_rates / np.maximum(rates, 1e-12))[:, None]
    np.fill_diagonal(matrix, 1.0 - kept_rates)
    return np.asarray(matrix)


def _combine(objective: _Objective, clean: _Fit, even: _Fit, pairs: _Fit, uneven: list[_Fit]) -> MatrixUntwisting:
    """Return the mixture of all fits, each at several scales, weighed by how plausible they are."""
    n_classes = objective.n_classes
    identity = np.eye(n_classes)
    log_weights = []
    matrices = []
    fits = []
    for rate in UNSEEN_RATES:
        matrix = make_even_matrix(n_classes, rate)
        log_weights.append(objective.evaluate(matrix, clean.log_slopes, clean.offsets)[0] - clean.value)
        matrices.append(matrix)
        fits.append(clean)
    prices = [0.0, PRICE_OF_TARGET * n_classes, *(_price_unevenness(fit) for fit in uneven)]
    noisy = []
    for fit, price in zip([even, pairs, *uneven], prices, strict=True):
        against = 0.0 if fit is even else WEIGHT_OF_CONTRADICTION * objective.find_contradiction(fit)
        noisy.append((fit, fit.value - clean.value - PRICE_OF_NOISE - price - against))
    evidence = max(gain for _, gain in noisy)
    for fit, gain in noisy:
        factor = 1.0 if fit is even else 1.0 + UNEVEN_BIAS * (1.0 - np.trace(fit.matrix) / n_classes)
        for scale in SCALES:
            matrix = identity + factor * scale * (fit.matrix - identity)
            if matrix.diagonal().min() >= LEAST_DIAGONAL:
                log_weights.append(gain - ((scale - 1.0) / SCALE_SPREAD) ** 2 / 2.0)
                matrices.append(matrix)
                fits.append(fit)
    weights = _weigh(np.array(log_weights), len(UNSEEN_RATES))
    kept = np.sort(np.argsort(-weights, kind="stable")[:MOST_COMPONENTS])
    kept = kept[weights[kept] >= LEAST_WEIGHT]
    weights = weights[kept] / weights[kept].sum()
    mixture = MatrixUntwisting(
        weights=weights,
        matrices=np.array([matrices[index] for index in kept]),
        slopes=np.exp([fits[index].log_slopes for index in kept]),
        offsets=np.array([fits[index].offsets for index in kept]),
        least=objective.least,
        evidence=evidence,
        found=evidence > ENOUGH_EVIDENCE and objective.rows_per_class >= FEWEST_ROWS_PER_CLASS,
        share=0.0,
        interval=(0.0, 1.0),
        class_shares=np.zeros(n_classes),
        class_intervals=np.zeros((n_classes, 2)),
        uneven_limit=1.0,
    )
    best = max(fit.value for fit, _ in noisy)
    return _describe_shares(objective, mixture, [fit for fit, _ in noisy if fit.value >= best - NEARLY_AS_GOOD])


def _weigh(log_weights: Array, n_unseen: int) -> Array:
    """Return weights that sum to 1; the first so many, without noise to be seen, keep at least `HEDGE` of them."""
    weights = np.exp(log_weights - log_weights.max())
    hedge = max(HEDGE, float(weights[:n_unseen].sum() / weights.sum()))
    for group, whole in ((slice(None, n_unseen), hedge), (slice(n_unseen, None), 1.0 - hedge)):
        weights[group] = np.exp(log_weights[group] - log_weights[group].max())
        weights[group] *= whole / weights[group].sum()
    return np.asarray(weights)


def _price_unevenness(fit: _Fit) -> float:
    """Return what the entries off the diagonal cost where they are free, in nats."""
    n_classes = len(fit.matrix)
    entries = fit.matrix[~np.eye(n_classes, dtype=np.bool_)]
    # Where much noise is even, every entry is off 0 and chance has more to gain.
    is_mostly_even = fit.common * (n_classes - 1) >= START_RATES[0]
    price = PRICE_OF_ENTRY_IN_EVEN_NOISE if is_mostly_even else PRICE_OF_ENTRY
    in_use = entries**2 / (entries**2 + SMALL_ENTRY**2)
    return PRICE_OF_UNEVENNESS * n_classes + float((PRICE_OF_NO_ENTRY + price * in_use).sum())


def _describe_shares(objective: _Objective, mixture: MatrixUntwisting, alternatives: list[_Fit]) -> MatrixUntwisting:
    """Return the mixture with the shares of wrong labels, over all and by class, and what is not excluded.

    Where noise was found, an interval holds the shares under every fit that is nearly as good as the best one, prices
    aside: fits that agree on the labels may differ on how many are wrong.
    """
    rows = objective.rows
    n_labels = np.bincount(rows.labels, rows.weight, objective.n_classes)
    by_class = 1.0 - np.diag(mixture.matrix)
    share = objective.find_share(mixture)
    if mixture.found:
        spread = float(np.sqrt(SHARE_SPREAD**2 + SHARE_SPREAD_BY_ROWS / rows.weight.sum()))
        one_by_one = [_take_fit(mixture, fit) for fit in alternatives]
        shares = [share, *(objective.find_share(one) for one in one_by_one)]
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
        high = np.maximum(objective.caps, by_class)
        interval = (0.0, max(share, float(high @ n_labels) / float(n_labels.sum())))
    return replace(
        mixture,
        share=share,
        interval=interval,
        class_shares=by_class,
        class_intervals=np.column_stack([low, high]),
        uneven_limit=interval[1],
    )


def _take_fit(mixture: MatrixUntwisting, fit: _Fit) -> MatrixUntwisting:
    """Return the untwisting by one fit alone."""
    return replace(
        mixture,
        weights=np.ones(1),
        matrices=fit.matrix[None],
        slopes=np.exp(fit.log_slopes)[None],
        offsets=fit.offsets[None],
    )


def _take_known_matrix(objective: _Objective, matrix: Array) -> MatrixUntwisting:
    """Return the untwisting by a known matrix, with slopes and offsets that fit."""
    zeros = np.zeros(objective.n_classes)
    fit, _ = _climb(objective, _Known(matrix), np.zeros(0), zeros, zeros, FIRST_STEPS)
    known = replace(
        MatrixUntwisting.from_matrix(matrix),
        slopes=np.exp(fit.log_slopes)[None],
        offsets=fit.offsets[None],
        least=objective.least,
    )
    rows = objective.rows
    share = known.share_wrong(rows.twisted, rows.labels, rows.weight)[0]
    return replace(known, share=share, interval=(share, share), uneven_limit=share)
