"""How plausible a transition matrix is, by the labels of rows and their posteriors out of fold.

`Plausibility` adds up the log-likelihood of the labels, what it is worth that clean labels follow from the features,
the priors of slopes and offsets, and a bound: no class has a higher rate of noise than its surest rows allow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.noise.several_classes import SeveralClassesNoise, untwist_by_matrix

__all__ = [
    "ChosenRows",
    "Fit",
    "Plausibility",
    "choose_rows",
    "count_posteriors",
    "find_highest_rates",
    "scramble_bits",
]

# ---- the rows that are looked at ----

# The search looks at so many rows at most, chosen by what they contain, and at no more cells than the last number.
MOST_ROWS = 6000
FEWEST_ROWS = 2500
MOST_CELLS = 130_000
# Rows of more weight than this in all would say nothing new.
MOST_TELLING_WEIGHT = 10_000.0
# A twisted posterior nearer to 0 than this counts as this near.
POSTERIOR_FLOOR = 1e-4
# A clean posterior is not taken to be nearer to 0 than this, nor than the next one divided by the number of classes.
CLEAREST = 0.005
CLEAREST_OF_ALL_CLASSES = 0.05

# ---- what features explain ----

# To divide by e what features leave unexplained of the clean labels is worth so many nats.
WORTH_OF_EXPLAINING = 6.0
# That is worth less in proportion where classes have fewer rows than this: many matrices explain a few rows.
ROWS_TO_EXPLAIN = 20.0
# So much of the clean labels features may leave unexplained at no price.
FREELY_UNEXPLAINED = 0.02
# A class counts for this power of its share where it is asked how much features leave unexplained.
RARE_CLASSES_COUNT = 0.5
# The variance of a class that would vanish counts as this much.
LEAST_VARIANCE = 1e-6
# Two classes whose shares have no larger product than this have no rows, and are not told apart.
LEAST_OVERLAP = 1e-12

# ---- slopes and offsets ----

# The prior standard deviations of the mean logarithm of the slopes, of each slope's distance from it, of an offset.
MEAN_SLOPE_SPREAD = 0.5
SLOPE_SPREAD = 0.3
OFFSET_SPREAD = 0.3

# ---- what the surest rows say ----

# A rate may exceed the highest that the surest rows allow by about this much.
CAP_SPREAD = 0.02
# The highest rate is that of a one-sided bound of so many standard errors.
CAP_ERRORS = 2.0
# The bound is tried at so many numbers of surest rows, from one to all.
CAP_DEPTHS = 32
# Weights that differ by this part are equal.
ROUNDING = 1e-9
# Fewer rows than this would tell little of what labels a class bears.
FEWEST_CORNER_ROWS = 10
# Whether labels follow from features is asked of entries above this, among rows that are surer of a class than the
# second number says.
TELLING_ENTRY = 0.05
SURE = 0.8


class ChosenRows(NamedTuple):
    """Rows sorted by label: their twisted posteriors, labels and weights."""

    twisted: Array
    labels: NDArray[np.intp]
    weight: Array


class Fit(NamedTuple):
    """The best of a family: how plausible it is, its matrix, log-slopes and offsets, and its common entry."""

    value: float
    matrix: Array
    log_slopes: Array
    offsets: Array
    common: float


def choose_rows(twisted: Array, labels: NDArray[np.intp], weight: Array) -> ChosenRows:
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
    return ChosenRows(
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
    bits = scramble_bits(np.ascontiguousarray(twisted).view(np.uint64))
    at_label = bits[np.arange(len(labels)), labels]
    code = scramble_bits(bits.sum(axis=1, dtype=np.uint64) + scramble_bits(at_label))
    order = np.argsort(code, kind="stable")
    tied = np.flatnonzero(code[order][1:] == code[order][:-1])
    if tied.size:
        # Rows of one code are sorted by all that they contain.
        of_ties = np.unique(np.concatenate([tied, tied + 1]))
        rows = order[of_ties]
        keys = (weight[rows], *twisted[rows].T, labels[rows], code[rows])
        order[of_ties] = rows[np.lexsort(keys)]
    return order


def count_posteriors(twisted: Array) -> int:
    """Return how many different posteriors there are.

    Parameters
    ----------
    twisted : ndarray of shape (n_rows, n_classes)
        The posteriors.

    Returns
    -------
    int
    """
    # The column counts, so that posteriors of other classes are other posteriors.
    columns = scramble_bits(np.arange(twisted.shape[1], dtype=np.uint64))
    bits = scramble_bits(np.ascontiguousarray(twisted).view(np.uint64) ^ columns)
    return len(np.unique(bits.sum(axis=1, dtype=np.uint64)))


def scramble_bits(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return well-mixed bits, by the finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        mixed = bits + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(mixed ^ (mixed >> np.uint64(31)))


class Plausibility:
    """How plausible a matrix, log-slopes and offsets are, and the gradients.

    Arrays have a row per class here, and a column per row of the table: sums over classes are then fast.
    """

    def __init__(self, rows: ChosenRows) -> None:
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

    def find_contradiction(self, fit: Fit) -> float:
        """Return how many nats speak against noise between two classes: what features say of its labels.

        By noise, which rows of class j bear label k does not follow from features. Where it does, classes are hard to
        tell apart. The answer is the score statistic of the posterior's log-odds of k against j, among rows that are
        surely of class j and bear one of these labels, for the pair of classes where it is greatest.
        """
        clean = self.clean(fit)
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

    def find_unsure_share(self, fit: Fit) -> float:
        """Return the share of rows that are surely of no class."""
        return float(self.shares @ (self.clean(fit).max(axis=1) < SURE))

    def find_overlap(self, fit: Fit) -> Array:
        """Return how far features leave it open which of two classes a row is of, once the noise of a fit is undone.

        It is the mean product of their clean posteriors, divided by the product of their shares: 0 where the classes
        are told apart, 1 where features say nothing of them, nor does any row belong to one of them. The floor of
        posteriors, about as high as one row, does not count.
        """
        clean = np.maximum(self.clean(fit) - 2.0 * self.least, 0.0)
        shares = self.shares @ clean
        by_chance = np.outer(shares, shares)
        together = (clean * self.shares[:, None]).T @ clean
        return np.asarray(np.divide(together, by_chance, out=np.ones_like(together), where=by_chance > LEAST_OVERLAP))

    def find_likelihood(self, fit: Fit) -> float:
        """Return the log-likelihood of the labels under a fit, in nats."""
        borne = (self.clean(fit) * fit.matrix.T[self.rows.labels]).sum(axis=1)
        return float(self.rows.weight @ np.log(np.maximum(borne, np.finfo(float).tiny)))

    def clean(self, fit: Fit) -> Array:
        """Return the clean posterior of the rows under a fit."""
        return untwist_by_matrix(self.rows.twisted, fit.matrix, np.exp(fit.log_slopes), fit.offsets, self.least)

    def find_share(self, noise: SeveralClassesNoise) -> float:
        """Return the share of wrong labels among the rows."""
        return float(self.shares @ noise.probability_wrong(self.rows.twisted, self.rows.labels))

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
