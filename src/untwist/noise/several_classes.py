"""From the twisted posterior of several classes to the clean one, by transition matrices that fit the labels.

A transition matrix T has a row per true class and a column per label: T[j, k] is the share of class j that bears label
k. If c is the clean posterior of a row, its label follows c T. A component is a matrix with a slope and an offset for
each class; over several components, each with a weight, every answer is their mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, logsumexp

from untwist.arguments import Array
from untwist.noise.components import LEAST_SIGNAL, LEAST_WEIGHT, PROBABILITY_FLOOR, Component, Components
from untwist.noise.model import SAFE_MARGIN, NoiseFormula, NoiseModel, check_matrix, move_interval
from untwist.sums import average

__all__ = ["SeveralClassesNoise", "check_matrix"]

# Where the matrix is known, a clean posterior may come this close to 0.
CLEAREST_BY_KNOWN_MATRIX = 1e-9
# Rows are untwisted in tiles of so many, the last one filled up. A matrix product of another shape may round otherwise,
# and the posterior of a row must not depend on how many others there are.
ROWS_PER_TILE = 64
# So many cells at a time are untwisted, which keeps what lies between in a fast cache.
CELLS_PER_BLOCK = 1 << 18
#: Noise is found where so many nats speak for it, prices and prior counted in: odds of 39 to 1, as 2.5 % on one side.
ENOUGH_EVIDENCE = 3.66
#: Where there is no noise to be seen, this even rate stands for it: one wrong label of 500 is never excluded.
UNSEEN_RATE = 0.002
# The confidence of all intervals, on either side.
TAILS = (0.025, 0.975)
# So many standard deviations on either side hold 95 % of a normal distribution.
DEVIATIONS = 1.96
# Words name so many confusions at most, of at least this share of a class, that are so many times the usual one.
MOST_CONFUSIONS = 3
LEAST_CONFUSION = 0.02
STANDING_OUT = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class SeveralClassesNoise(NoiseModel):
    """The noise of several classes: transition matrices that fit the labels.

    Attributes
    ----------
    matrices : ndarray of shape (n_components, n_classes, n_classes)
        The transition matrix of each.
    slopes, offsets : ndarray of shape (n_components, n_classes)
        The clean posterior is proportional to exp(offset + slope * ln c0), where c0 is what the matrix alone makes of
        the twisted one; slopes of 1 and offsets of 0 take the twisted posterior at its word.
    least : float
        How close to 0 a clean posterior may come, before slope and offset.
    class_shares : ndarray of shape (n_classes,)
        The share of each true class that bears another label.
    class_intervals : ndarray of shape (n_classes, 2)
        Their intervals.
    decided_pairs : ndarray of bool of shape (n_classes, n_classes)
        Which true class, a row each, features tell apart from which other one once noise is undone. Of other pairs it
        is undecided whether labels are wrong or rows are hard.

    Where no noise was found, the intervals begin at 0 and end where the labels of the surest rows exclude more.

    Examples
    --------
    >>> noise = SeveralClassesNoise.from_matrix([[0.8, 0.2, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> noise.clean([[0.4, 0.6, 0.0]]).round(3)
    array([[0.5, 0.5, 0. ]])
    """

    array_axes: ClassVar = {
        "weights": "m",
        "matrices": "mkk",
        "slopes": "mk",
        "offsets": "mk",
        "class_shares": "k",
        "class_intervals": "k2",
        "decided_pairs": "kk",
    }

    matrices: Array
    slopes: Array
    offsets: Array
    least: float
    class_shares: Array
    class_intervals: Array
    decided_pairs: NDArray[np.bool_]

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> SeveralClassesNoise:
        """Return the untwisting by a matrix that is known, of a posterior that is taken at its word.

        Parameters
        ----------
        matrix : array_like of shape (n_classes, n_classes)
            A row per true class, a column per label.

        Returns
        -------
        SeveralClassesNoise
            With one component.
        """
        known = check_matrix(matrix)
        n_classes = len(known)
        wrong = 1.0 - np.diag(known)
        mean = float(wrong.mean())
        return cls(
            weights=np.ones(1),
            matrices=known[None],
            slopes=np.ones((1, n_classes)),
            offsets=np.zeros((1, n_classes)),
            least=CLEAREST_BY_KNOWN_MATRIX,
            evidence=math.nan,
            found=True,
            share=mean,
            interval=(mean, mean),
            class_shares=wrong,
            class_intervals=np.column_stack([wrong, wrong]),
            decided_pairs=~np.eye(n_classes, dtype=np.bool_),
            uneven_limit=mean,
        )

    @property
    def is_undone(self) -> bool:
        """Whether noise was found: it is all or nothing, as no noise is none of the matrices."""
        return self.found

    def list_class_shares(self) -> list[tuple[float, float, float]]:
        """Return the share of each true class that bears another label, with the ends of its 95 % interval."""
        ends = self.class_intervals.tolist()
        return [(share, low, high) for share, (low, high) in zip(self.class_shares.tolist(), ends, strict=True)]

    def drop_upper_limits(self) -> SeveralClassesNoise:
        """Return this estimate without upper limits, for labels that models may have remembered.

        Returns
        -------
        SeveralClassesNoise
            Its intervals end at 1.
        """
        class_intervals = self.class_intervals.copy()
        class_intervals[:, 1] = 1.0
        return replace(self, interval=(self.interval[0], 1.0), class_intervals=class_intervals)

    @property
    def found_pairs(self) -> NDArray[np.bool_]:
        """Between which true class, a row each, and which label noise was found."""
        return self.decided_pairs & self.found

    @property
    def even_limit(self) -> float:
        """The highest rate that may be that of every class; where no noise was found, what is not excluded of it."""
        return float(self.class_intervals[:, 1].min())

    @cached_property
    def _has_noise(self) -> NDArray[np.bool_]:
        """Which components have more noise than what stands for none."""
        return np.asarray(1.0 - np.trace(self.matrices, axis1=1, axis2=2) / self.n_classes > 2.0 * UNSEEN_RATE)

    @cached_property
    def matrix(self) -> Array:
        """The mean transition matrix: a row per true class, a column per label."""
        return np.asarray(np.einsum("m,mjk->jk", self.weights, self.matrices))

    def describe(self, classes: ArrayLike) -> str:
        """Say in words how noisy the labels are, with the names of the classes.

        Parameters
        ----------
        classes : array_like of shape (n_classes,)
            The names.

        Returns
        -------
        str
            Where noise was found its share, and which class bears which other label often; else what is not excluded.
        """
        low, high = self.interval
        if not self.found:
            return (
                f"no sign of noise that is the same in every class (0% to {self.even_limit:.1%} would fit); "
                f"uneven noise of up to {self.uneven_limit:.1%} of the labels is not excluded"
            )
        shares = f"{self.share:.1%}" if self.is_given else f"{self.share:.1%} ({low:.1%} to {high:.1%}) of all"
        what = f"wrong labels{' (as given)' if self.is_given else ''}: {shares}"
        names = np.asarray(classes).tolist()
        confusions = [f"{self.matrix[j, k]:.0%} of {names[j]} labelled {names[k]}" for j, k in self._list_confusions()]
        return f"{what}; most of them: {', '.join(confusions)}" if confusions else what

    def _list_confusions(self) -> list[tuple[int, int]]:
        """Return the class and the label of the entries off the diagonal that stand out, the largest first."""
        off_diagonal = self.matrix - np.diag(np.diag(self.matrix))
        usual = off_diagonal.sum() / (self.n_classes * (self.n_classes - 1))
        order = np.argsort(-off_diagonal, axis=None, kind="stable")[:MOST_CONFUSIONS]
        pairs = zip(*(each.tolist() for each in np.unravel_index(order, off_diagonal.shape)), strict=True)
        # A class of a few rows may have any rate at all, and is not named for it.
        is_certain = self.class_intervals[:, 0] > 0
        least = max(STANDING_OUT * usual, LEAST_CONFUSION)
        return [(j, k) for j, k in pairs if is_certain[j] and off_diagonal[j, k] > least]

    def clean(self, posterior: ArrayLike) -> Array:
        """Return the clean posterior of rows whose labels follow a twisted one.

        Parameters
        ----------
        posterior : array_like of shape (n_rows, n_classes)
            The twisted posterior.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Each row sums to 1.
        """
        twisted = _check_posterior(posterior, self.n_classes)
        clean = np.empty_like(twisted)
        for rows in _iterate_blocks(twisted):
            parts = zip(self.weights, self._untwist(twisted[rows]), strict=True)
            clean[rows] = sum(weight * part for weight, part in parts)
        return clean

    def probability_wrong(self, posterior: ArrayLike, labels: ArrayLike) -> Array:
        """Return the probability that a label is wrong.

        Parameters
        ----------
        posterior : array_like of shape (n_rows, n_classes)
            The twisted posterior.
        labels : array_like of int of shape (n_rows,)
            The class that each label names.

        Returns
        -------
        ndarray of shape (n_rows,)
            One probability per label.
        """
        twisted = _check_posterior(posterior, self.n_classes)
        given = np.asarray(labels, dtype=np.intp)
        wrong = np.zeros(len(twisted))
        for rows in _iterate_blocks(twisted):
            here = given[rows]
            for weight, matrix, clean in zip(self.weights, self.matrices, self._untwist(twisted[rows]), strict=True):
                borne = np.maximum((clean * matrix.T[here]).sum(axis=1), SAFE_MARGIN)
                at_label = clean[np.arange(len(here)), here]
                wrong[rows] += weight * np.clip(1.0 - matrix[here, here] * at_label / borne, 0.0, 1.0)
        return wrong

    def iterate_truths(self, posterior: Array, labels: NDArray[np.intp]) -> Iterator[Array]:
        """Yield the probability of each class to be the truth, given a row and its label, under each matrix.

        Parameters
        ----------
        posterior : ndarray of shape (n_rows, n_classes)
            The twisted posterior.
        labels : ndarray of int of shape (n_rows,)
            The class that each label names.

        Yields
        ------
        ndarray of shape (n_rows, n_classes)
            Each row sums to 1.
        """
        for matrix, slope, offset in zip(self.matrices, self.slopes, self.offsets, strict=True):
            class_and_label = untwist_by_matrix(posterior, matrix, slope, offset, self.least) * matrix[:, labels].T
            yield class_and_label / np.maximum(class_and_label.sum(axis=1, keepdims=True), SAFE_MARGIN)

    def share_wrong(
        self, posterior: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike
    ) -> tuple[float, float, float]:
        """Return the share of labels that are wrong.

        Parameters
        ----------
        posterior : array_like of shape (n_rows, n_classes)
            The twisted posterior.
        labels : array_like of int of shape (n_rows,)
            The class that each label names.
        sample_weight : array_like
            How much each row counts; one number, or one per row.

        Returns
        -------
        share, low, high : float
            The mean of `probability_wrong` over the rows, and its 95 % interval.
        """
        wrong = self.probability_wrong(posterior, labels)
        weight = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), wrong.shape)
        share = average(wrong, weight)
        if not self.found:
            # Without a sign of noise, all that is known is how noisy each class may be at most.
            highest = average(self.class_intervals[np.asarray(labels, dtype=np.intp), 1], weight)
            return share, 0.0, max(share, highest)
        low, high = move_interval(share, (self.share, *self.interval))
        is_open = np.count_nonzero(self.decided_pairs) < self.n_classes * (self.n_classes - 1)
        # How wrong labels of undecided pairs spread over labels is not known.
        return share, low, max(high, self.interval[1]) if is_open else high

    @cached_property
    def _inverses(self) -> Array:
        return invert_matrices(self.matrices)

    def _untwist(self, twisted: Array) -> Iterator[Array]:
        """Yield the clean posterior under each component."""
        tiles = _cut_tiles(twisted)
        for inverse, slope, offset in zip(self._inverses, self.slopes, self.offsets, strict=True):
            yield _untwist_tiles(tiles, inverse, slope, offset, self.least)[: len(twisted)]

    def bound_entry(self, truth: int, label: int, entry: float) -> tuple[float, float]:
        """Return the 95 % interval of an entry of the matrix: what the components say of it, and that of its class.

        Parameters
        ----------
        truth, label : int
            The class and the label.
        entry : float
            The share of the class that bears the label; where sources are told apart it need not be that of `matrix`.

        Returns
        -------
        low, high : float
            The interval.
        """
        # Where noise was found, the entry is what it is if there is noise.
        counted = self._has_noise if self.found and self._has_noise.any() else np.ones_like(self._has_noise)
        low, high = find_interval(self.matrices[counted, truth, label], self.weights[counted])
        if entry != self.matrix[truth, label]:
            low, high = move_interval(entry, (float(self.matrix[truth, label]), low, high))
        scale = entry / max(float(self.class_shares[truth]), SAFE_MARGIN)
        lowest, highest = (scale * self.class_intervals[truth]).tolist()
        return max(0.0, min(low, lowest, entry)), min(1.0, max(high, highest, entry))

    def formula(self) -> NoiseFormula:
        """Return the components, and how close to 0 posteriors may come."""
        components = zip(self.weights.tolist(), self.matrices, self.slopes, self.offsets, strict=True)
        return NoiseFormula(components=tuple(components), least=self.least)

    def take_components(self, posterior: Array) -> Components:
        """Return the matrices one by one, at the posteriors of items."""
        return _Matrices(self, posterior)

    def count_as_estimated(self, posterior: Array) -> Array:
        """Return posteriors as they are: what a matrix makes of them has a limit of its own."""
        return posterior

    def pool_sources(
        self,
        share: float,
        interval: tuple[float, float],
        class_shares: Array,
        class_intervals: Array,
        *,
        found: bool,
    ) -> SeveralClassesNoise:
        """Return the noise with the shares that sources have together, as `NoiseModel.pool_sources` has it."""
        return replace(
            self,
            share=share,
            interval=interval,
            class_shares=class_shares,
            class_intervals=class_intervals,
            found=found,
            decided_pairs=self._decide_pairs(found),
        )

    def _decide_pairs(self, found: bool) -> NDArray[np.bool_]:
        """Return the decided pairs where others know whether there is noise: all, if they alone found it."""
        return ~np.eye(self.n_classes, dtype=np.bool_) if found and not self.found else self.decided_pairs

    def _weigh_by_review(self, weights: Array, likelihood: Array) -> SeveralClassesNoise:
        """Return the matrices with other weights; shares move by as much as the matrices do, intervals with them."""
        rate = 1.0 - np.trace(self.matrices, axis1=1, axis2=2) / self.n_classes
        is_noise = self._has_noise
        evidence = self.evidence
        if is_noise.any() and not is_noise.all():
            explained = [
                logsumexp(likelihood[those], b=self.weights[those] / self.weights[those].sum())
                for those in (is_noise, ~is_noise)
            ]
            evidence += float(explained[0] - explained[1])
        # Where too few rows kept noise from being found, a review of some of them does not change that.
        was_judged = self.found or self.evidence <= ENOUGH_EVIDENCE
        found = bool(was_judged and evidence > ENOUGH_EVIDENCE)
        decided = self._decide_pairs(found)
        weighed = replace(self, weights=weights, evidence=evidence, found=found, decided_pairs=decided)
        by_class = 1.0 - np.diag(weighed.matrix)
        factors = by_class / np.maximum(self.class_shares, SAFE_MARGIN)
        overall = float(rate @ weights) / max(float(rate @ self.weights), SAFE_MARGIN)
        low, high = (min(1.0, overall * end) for end in self.interval)
        return replace(
            weighed,
            share=min(1.0, overall * self.share),
            interval=(low, high),
            class_shares=by_class,
            class_intervals=np.clip(self.class_intervals * factors[:, None], 0.0, 1.0),
            uneven_limit=max(self.uneven_limit, high),
        )


def invert_matrices(matrices: Array) -> Array:
    """Return inverses, by eliminating one column after the other.

    A library would be faster, and its last bit would depend on how many threads it has.

    Parameters
    ----------
    matrices : ndarray of shape (n_matrices, n_classes, n_classes)
        Invertible matrices.

    Returns
    -------
    ndarray of shape (n_matrices, n_classes, n_classes)
        The inverse of each.
    """
    n_matrices, n_classes, _ = matrices.shape
    which = np.arange(n_matrices)
    identities = np.broadcast_to(np.eye(n_classes), matrices.shape)
    rows = np.concatenate([matrices, identities], axis=2)
    for column in range(n_classes):
        pivot = column + np.abs(rows[:, column:, column]).argmax(axis=1)
        pivot_rows = rows[which, pivot]
        rows[which, pivot] = rows[:, column]
        pivot_rows = pivot_rows / pivot_rows[:, column, None]
        factors = rows[:, :, column].copy()
        rows -= factors[:, :, None] * pivot_rows[:, None, :]
        rows[:, column] = pivot_rows
    return np.ascontiguousarray(rows[:, :, n_classes:])


def untwist_by_matrix(twisted: Array, matrix: Array, slope: Array, offset: Array, least: float) -> Array:
    """Return the clean posterior under one transition matrix.

    Parameters
    ----------
    twisted : ndarray of shape (n_rows, n_classes)
        The twisted posterior.
    matrix : ndarray of shape (n_classes, n_classes)
        A row per true class, a column per label.
    slope, offset : ndarray of shape (n_classes,)
        What is made of the logarithm of each class.
    least : float
        How close to 0 a posterior may come, before slope and offset.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Each row sums to 1.
    """
    inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    return _untwist_tiles(_cut_tiles(twisted), inverse, slope, offset, least)[: len(twisted)]


def _cut_tiles(twisted: Array) -> Array:
    """Return posteriors as (tile, class, row), so that sums over classes are fast; the last tile repeats a row."""
    n_rows, n_classes = twisted.shape
    n_tiles = -(-n_rows // ROWS_PER_TILE)
    filled = np.pad(twisted, ((0, n_tiles * ROWS_PER_TILE - n_rows), (0, 0)), mode="edge")
    return np.ascontiguousarray(filled.reshape(n_tiles, ROWS_PER_TILE, n_classes).transpose(0, 2, 1))


def _untwist_tiles(tiles: Array, inverse: Array, slope: Array, offset: Array, least: float) -> Array:
    """Return the clean posterior of tiles, a row for each of theirs, under the matrix with this inverse."""
    plain = np.maximum(inverse.T @ tiles, least)
    exponent = offset[:, None] + slope[:, None] * np.log(plain / plain.sum(axis=1, keepdims=True))
    odds = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    return np.asarray(odds.transpose(0, 2, 1).reshape(-1, tiles.shape[1]))


def find_interval(values: Array, weights: Array) -> tuple[float, float]:
    """Return where the middle 95 % of the weight lies.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        What there is to choose from.
    weights : ndarray of shape (n_values,)
        How likely each is.

    Returns
    -------
    low, high : float
        The interval.
    """
    order = np.argsort(values, kind="stable")
    weight_until = np.cumsum(weights[order])
    places = np.searchsorted(weight_until, np.array(TAILS) * weight_until[-1])
    low, high = values[order][np.minimum(places, len(values) - 1)]
    return float(low), float(high)


def spread_share(share: float, spread: float) -> tuple[float, float]:
    """Return the 95 % interval of a share whose log-odds have a standard deviation.

    Parameters
    ----------
    share : float
        From 0 to 1.
    spread : float
        The standard deviation.

    Returns
    -------
    low, high : float
        The interval, which holds the share.
    """
    log_odds = logit(np.clip(share, SAFE_MARGIN, 1.0 - SAFE_MARGIN))
    low, high = expit(log_odds + spread * DEVIATIONS * np.array([-1.0, 1.0]))
    return min(float(low), share), max(float(high), share)


def _check_posterior(posterior: ArrayLike, n_classes: int) -> Array:
    twisted = np.asarray(posterior, dtype=np.float64)
    if twisted.ndim != 2 or twisted.shape[1] != n_classes:
        raise ValueError(f"posterior must have a column per class, {n_classes} in all, got shape {twisted.shape}")
    return twisted


def _iterate_blocks(table: NDArray[Any]) -> Iterator[slice]:
    """Yield the rows of a table, some at a time."""
    step = max(1, CELLS_PER_BLOCK // max(1, table.shape[1]))
    for first in range(0, len(table), step):
        yield slice(first, first + step)


class _Matrices(Components):
    """Transition matrices of several classes."""

    has_offsets = True

    def __init__(self, noise: SeveralClassesNoise, posterior: Array) -> None:
        self.noise = noise
        self.posterior = posterior

    def list_components(self, most: int) -> list[Component]:
        noise = self.noise
        heaviest = np.sort(np.argsort(-noise.weights, kind="stable")[:most])
        return [
            Component(
                weight=float(noise.weights[index]),
                matrix=noise.matrices[index],
                slopes=noise.slopes[index],
                offsets=noise.offsets[index],
                members=np.array([index]),
            )
            for index in heaviest.tolist()
        ]

    def untwist(self, component: Component) -> Array:
        return np.log(
            np.maximum(self._replace_components([component], np.ones(1)).clean(self.posterior), PROBABILITY_FLOOR)
        )

    def combine(self, components: list[Component], weights: Array) -> SeveralClassesNoise:
        kept = np.flatnonzero(weights > LEAST_WEIGHT)
        return self._replace_components([components[index] for index in kept], weights[kept] / weights[kept].sum())

    def _replace_components(self, components: list[Component], weights: Array) -> SeveralClassesNoise:
        matrices = np.array([_keep_signal(each.matrix) for each in components])
        return replace(
            self.noise,
            weights=weights,
            matrices=matrices,
            slopes=np.array([each.slopes for each in components]),
            offsets=np.array([each.offsets for each in components]),
            class_shares=1.0 - np.einsum("m,mkk->k", weights, matrices),
        )


def _keep_signal(matrix: Array) -> Array:
    """Return the matrix, with more on its diagonal where some class hardly bears its own label more than others do."""
    others = matrix - np.diag(np.diag(matrix))
    lacking = max(0.0, LEAST_SIGNAL - float((np.diag(matrix) - others.max(axis=1)).min()))
    return np.asarray((1.0 - lacking) * matrix + lacking * np.eye(len(matrix))) if lacking > 0 else matrix
