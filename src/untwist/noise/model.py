"""What is believed of the noise, for two classes as for fifty: where it comes from, and what follows from it.

Noise of two classes is all pairs of rates that fit (`two_classes`), that of several is transition matrices
(`several_classes`). Both are components, each with a weight, and every answer is their mean.

A review weighs them again. Which rows are reviewed mostly depends on how suspect they are, so that wrong labels are far
more frequent among them than elsewhere. But what is suspect follows from features and labels, and under a given noise
these say how likely each label was wrong. Given both, it does not matter why a row was chosen: the likelihood of the
noise is that of what the reviewer found, row by row, and no share of wrong labels among the reviewed rows enters
anywhere.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, logsumexp

from untwist.arguments import Array, check_numbers
from untwist.noise.components import Components
from untwist.noise.estimate import NoiseEstimate

__all__ = ["SAFE_MARGIN", "NoiseFormula", "NoiseModel", "check_matrix", "find_rates", "move_interval"]

#: A posterior that is divided by, or whose logarithm is taken, is kept this far from 0 and 1.
SAFE_MARGIN = 1e-15
# The rows of a matrix that is given may miss 1 by this much, which rounding in a file explains.
ROUNDING = 1e-6
#: The probability of anything that a reviewer finds is at least this: reviewers err, and so do posteriors.
LEAST_PROBABILITY = 0.01
#: A known label weighs as much as so many noisy ones at most. Where it comes as a surprise it would weigh far more, and
#: a few rows would outvote all others.
MOST_WORTH = 5.0


@dataclass(frozen=True, eq=False)
class NoiseFormula:
    """The numbers that take a twisted posterior to the clean one, as exports write them down.

    Attributes
    ----------
    table : ndarray or None
        Of two classes the clean log-odds over those of `two_classes.TABLE`, between which they are linear.
    scale, offset : float
        What is made of twisted log-odds before they are looked up: times `scale`, plus `offset`.
    components : tuple
        Of several classes the weight, the transition matrix, the slopes and the offsets of each component.
    least : float
        How close to 0 a posterior that a matrix makes may come, before slopes and offsets.
    """

    table: Array | None = None
    scale: float = 1.0
    offset: float = 0.0
    components: tuple[tuple[float, Array, Array, Array], ...] = ()
    least: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class NoiseModel(NoiseEstimate):
    """What is believed of the noise: how noisy labels are, and what takes the twisted posterior to the clean one.

    Attributes
    ----------
    weights : ndarray of shape (n_components,)
        How likely each component is; the sum is 1.
    evidence : float
        The log-likelihood that noise explains, in nats, negative where no noise explains more; NaN where it was given.
    share : float
        The share of all labels that are wrong; where only rates or a matrix are known, if classes are equally frequent.
    interval : tuple of float
        Its interval, with a confidence of 95 %.
    uneven_limit : float
        The share of wrong labels, by noise that is not the same everywhere, that is not excluded.

    Examples
    --------
    >>> NoiseModel.given([[0.8, 0.2, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).clean([[0.4, 0.6, 0.0]]).round(3)
    array([[0.5, 0.5, 0. ]])
    """

    #: The fields that files hold as arrays, with their axes: components (m), classes (k), the ends of an interval (2).
    array_axes: ClassVar[Mapping[str, str]]

    weights: Array
    evidence: float
    share: float
    interval: tuple[float, float]
    uneven_limit: float

    @classmethod
    def estimate(
        cls,
        posterior: ArrayLike,
        labels: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        known: ArrayLike | None = None,
        order: ArrayLike | None = None,
        rows_per_case: float = 1.0,
    ) -> NoiseModel:
        """Estimate the noise of labels from posteriors of a model that has not seen them: out of fold.

        Parameters
        ----------
        posterior : array_like of shape (n_rows, n_classes)
            The probability of each label in each row.
        labels : array_like of int of shape (n_rows,)
            The class that each label names.
        sample_weight : array_like of shape (n_rows,), optional
            How much each row counts.
        known : tuple of float or array_like of shape (n_classes, n_classes), optional
            The rates or the transition matrix, where they are known (`given`); only what is made of the posterior
            besides is then found.
        order : array_like of int of shape (n_classes,), optional
            The place of each class, from 0, where several classes have an order.
        rows_per_case : float, default 1
            How many rows count as one: rows of a group may err together (`untwist.noise.dependence`).

        Returns
        -------
        NoiseModel
            It does not depend on the order of the rows.
        """
        # Both import this module for what they make.
        from untwist.noise.rates import estimate_rates
        from untwist.noise.transitions import estimate_transitions

        twisted = check_numbers("posterior", posterior)
        if twisted.ndim != 2 or twisted.shape[1] != 2:
            return estimate_transitions(
                twisted, labels, sample_weight, matrix=known, order=order, rows_per_case=rows_per_case
            )
        rates = None if known is None else find_rates(known)
        return estimate_rates(
            twisted[:, 1], labels, sample_weight=sample_weight, rates=rates, rows_per_case=rows_per_case
        )

    @classmethod
    def given(cls, known: ArrayLike) -> NoiseModel:
        """Return noise that is known, of a posterior that is taken at its word.

        Parameters
        ----------
        known : tuple of float or array_like of shape (n_classes, n_classes)
            Of two classes (rate_neg, rate_pos): the share of the negatives and of the positives that bears the other
            label. Of any number the transition matrix: a row per true class, a column per label.

        Returns
        -------
        NoiseModel
            With one component.
        """
        # Both import this module for what they make.
        from untwist.noise.several_classes import SeveralClassesNoise
        from untwist.noise.two_classes import TwoClassNoise

        if np.shape(known)[:1] == (2,):
            return TwoClassNoise.from_rates(find_rates(known))
        return SeveralClassesNoise.from_matrix(known)

    @property
    def is_given(self) -> bool:
        """Whether the noise was given, not estimated."""
        return math.isnan(self.evidence)

    @property
    @abstractmethod
    def is_undone(self) -> bool:
        """Whether probabilities are to be corrected by it, be it a part of the way."""

    @property
    @abstractmethod
    def found_pairs(self) -> NDArray[np.bool_]:
        """Between which true class, a row each, and which label, a column each, noise was found."""

    @property
    @abstractmethod
    def even_limit(self) -> float:
        """The highest rate of noise that is the same everywhere that would fit."""

    # ---- what follows from it ----

    @abstractmethod
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

    def clean_log_odds(self, log_odds: Array) -> Array:
        """Return the clean log-odds of the second of two classes, over the twisted ones.

        Parameters
        ----------
        log_odds : ndarray of shape (n_rows,)
            Log-odds of the twisted posterior.

        Returns
        -------
        ndarray of shape (n_rows,)
            Log-odds of the clean posterior.
        """
        negative, positive = self.clean(np.column_stack([expit(-log_odds), expit(log_odds)])).T
        return np.asarray(np.log(positive) - np.log(negative))

    def noisy(self, clean: Array) -> Array:
        """Return what labels follow where the clean posterior is this.

        Parameters
        ----------
        clean : ndarray of shape (n_rows, n_classes)
            The clean posterior.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Each row sums to 1.
        """
        return np.column_stack([(clean * of_label).sum(axis=1) for of_label in self.matrix.T])

    @abstractmethod
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

    @abstractmethod
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

    def find_truth(self, posterior: Array, labels: NDArray[np.intp]) -> Array:
        """Return the probability of each class to be the truth, given a row and its label.

        Parameters
        ----------
        posterior : ndarray of shape (n_rows, n_classes)
            The twisted posterior.
        labels : ndarray of int of shape (n_rows,)
            The class that each label names.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            One minus the entry of its label is the probability that the label is wrong.
        """
        truths = zip(self.weights, self.iterate_truths(posterior, labels), strict=True)
        return np.asarray(sum(weight * truth for weight, truth in truths))

    @abstractmethod
    def iterate_truths(self, posterior: Array, labels: NDArray[np.intp]) -> Iterator[Array]:
        """Yield what `find_truth` returns, under each component."""

    @abstractmethod
    def bound_entry(self, truth: int, label: int, entry: float) -> tuple[float, float]:
        """Return the 95 % interval of the share of a true class that bears some other label.

        Parameters
        ----------
        truth, label : int
            The class and the label.
        entry : float
            The share; where sources are told apart it need not be that of `matrix`.

        Returns
        -------
        low, high : float
            The interval.
        """

    def worth(self, posterior: Array, labels: NDArray[np.intp]) -> Array:
        """Return how many noisy labels a label is worth that is known to be right.

        A noisy label that says k, in a row whose clean posterior is c, makes the probability of k rise from c[k] to
        c[k] T[k, k] / t[k], where t = c T is what labels follow. That is a share s of the way to 1, which a known label
        goes at once: it is worth 1 / s noisy ones. With this weight the known labels of rows that bear a noisy label l
        pull a posterior of t as much, on average, as these noisy labels do. Known and noisy labels together follow t,
        then, even if rows were chosen by their noisy labels: of two classes exactly, of more where wrong labels are
        evenly spread.

        Parameters
        ----------
        posterior : ndarray of shape (n_rows, n_classes)
            The twisted posterior, by models that have not seen the rows.
        labels : ndarray of int of shape (n_rows,)
            The labels that are right.

        Returns
        -------
        ndarray of shape (n_rows,)
            From 1, where labels are never wrong, to `MOST_WORTH`.
        """
        rows = np.arange(len(labels))
        diagonal = self.matrix[labels, labels]
        clean = self.clean(posterior)
        of_label = np.maximum(clean[rows, labels], SAFE_MARGIN)
        twisted = np.maximum(self.noisy(clean)[rows, labels], SAFE_MARGIN)
        others = np.maximum(1.0 - of_label, SAFE_MARGIN)
        # (T[k, k] c[k] / t[k] - c[k]) / (1 - c[k]), without the difference of two numbers that are nearly the same.
        mean_of_others = np.maximum(twisted - of_label * diagonal, 0.0) / others
        share = of_label * (diagonal - mean_of_others) / twisted
        return np.asarray(1.0 / np.clip(share, 1.0 / MOST_WORTH, 1.0))

    @abstractmethod
    def formula(self) -> NoiseFormula:
        """Return the numbers of `clean`, for exports."""

    # ---- what else is learned of it ----

    def learn(self, posterior: Array, given: NDArray[np.intp], truth: NDArray[np.intp]) -> Self:
        """Return the noise weighed again by what a review of some labels found.

        Parameters
        ----------
        posterior : ndarray of shape (n_rows, n_classes)
            The twisted posterior of the reviewed rows, by models that have not seen them.
        given : ndarray of int of shape (n_rows,)
            Their labels before the review.
        truth : ndarray of int of shape (n_rows,)
            Their labels after it.

        Returns
        -------
        NoiseModel
            The same components with other weights, and the shares and intervals that follow; noise that was given stays
            as it is.

        Examples
        --------
        >>> surest = np.tile([0.8, 0.2], (100, 1))
        >>> posterior = np.concatenate([surest, surest[:, ::-1]])
        >>> noise = NoiseModel.estimate(posterior, np.tile([0, 0, 0, 0, 1, 1, 1, 1, 1, 0], 20))
        >>> learned = noise.learn(surest[:50], np.ones(50, int), np.zeros(50, int))
        >>> bool(learned.share > noise.share)
        True
        """
        if self.is_given or not len(given):
            return self
        # In this order the sum does not depend on that of the rows.
        order = np.lexsort((truth, given, *posterior.T))
        rows = np.arange(len(order))
        truths = self.iterate_truths(posterior[order], given[order])
        found = np.array([one[rows, truth[order]] for one in truths])
        likelihood = np.log(np.clip(found, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)).sum(axis=1)
        log_weights = np.log(np.maximum(self.weights, np.finfo(float).tiny)) + likelihood
        return self._weigh_by_review(np.exp(log_weights - logsumexp(log_weights)), likelihood)

    @abstractmethod
    def _weigh_by_review(self, weights: Array, likelihood: Array) -> Self:
        """Return the same components with other weights, by the log-likelihood of a review under each."""

    @abstractmethod
    def take_components(self, posterior: Array) -> Components:
        """Return the components one by one, which votes of sources may move, at the posteriors of items."""

    @abstractmethod
    def count_as_estimated(self, posterior: Array) -> Array:
        """Return posteriors within the limits in which the noise was estimated."""

    @abstractmethod
    def pool_sources(
        self,
        share: float,
        interval: tuple[float, float],
        class_shares: Array,
        class_intervals: Array,
        *,
        found: bool,
    ) -> Self:
        """Return the noise with the shares that sources have together.

        Parameters
        ----------
        share, interval : float and tuple of float
            The share of all labels that are wrong, and its 95 % interval.
        class_shares : ndarray of shape (n_classes,)
            The share of each true class that bears another label.
        class_intervals : ndarray of shape (n_classes, 2)
            Their 95 % intervals.
        found : bool
            Whether there is evidence of noise, by sources or by all labels.
        """


def check_matrix(matrix: ArrayLike, name: str = "matrix") -> Array:
    """Return a transition matrix that is given, checked.

    Parameters
    ----------
    matrix : array_like of shape (n_classes, n_classes)
        A row per true class, a column per label.
    name : str
        What errors call it.

    Returns
    -------
    ndarray
        Its rows sum to 1. A ValueError where it is no such matrix, or where some class bears another label more often
        than its own: no label would tell the classes apart then.
    """
    known = check_numbers(name, matrix)
    if known.ndim != 2 or known.shape[0] != known.shape[1] or len(known) < 2:
        raise ValueError(f"{name} must be square, a row per true class and a column per label, got shape {known.shape}")
    if not (np.isfinite(known).all() and (known >= 0).all()):
        raise ValueError(f"{name} must hold shares from 0 to 1, got {known.min()} to {known.max()}")
    sums = known.sum(axis=1)
    if np.abs(sums - 1.0).max() > ROUNDING:
        worst = int(np.abs(sums - 1.0).argmax())
        raise ValueError(f"the rows of {name} must sum to 1, got {sums[worst]:g} for row {worst}")
    off_diagonal = known - np.diag(np.diag(known))
    if (np.diag(known) <= off_diagonal.max(axis=1)).any() or np.linalg.matrix_rank(known) < len(known):
        raise ValueError(
            f"{name} must be invertible, and every class must bear its own label more often than any other"
        )
    return np.asarray(known / sums[:, None])


def find_rates(known: ArrayLike) -> tuple[float, float]:
    """Return the rates of two classes that are given as such, or as a transition matrix.

    Parameters
    ----------
    known : tuple of float or array_like of shape (2, 2)
        (rate_neg, rate_pos), or a row per true class and a column per label.

    Returns
    -------
    rate_neg, rate_pos : float
        The share of each class that bears the other label, unchecked where they were given as such.
    """
    rates = np.diag(np.fliplr(check_matrix(known))) if np.ndim(known) == 2 else np.asarray(known)
    if rates.shape != (2,):
        raise ValueError(f"known must be two rates, or a matrix of two rows and columns, got {known!r}")
    rate_neg, rate_pos = rates.tolist()
    return rate_neg, rate_pos


def move_interval(share: float, other: tuple[float, float, float]) -> tuple[float, float]:
    """Return an interval that is as far from a share, in log-odds, as another one is from its own.

    Parameters
    ----------
    share : float
        The share.
    other : tuple of float
        Another share with the ends of its interval.

    Returns
    -------
    low, high : float
        The interval, which holds the share.
    """
    here, there, low, high = logit(np.clip([share, *other], SAFE_MARGIN, 1.0 - SAFE_MARGIN))
    return min(float(expit(here + low - there)), share), max(float(expit(here + high - there)), share)
