"""Twisters of labels that look at the true class alone, so that one transition matrix says it all."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from untwist.arguments import (
    Array,
    check_count,
    check_fraction,
    check_probabilities,
)
from untwist.theory import twists
from untwist.twisters.columns import (
    Indices,
    check_rows,
    encode_values,
    rewrite,
)

__all__ = [
    "BernoulliNoise",
    "ClassConditionalNoise",
    "ClassNoise",
    "LabelTwister",
    "OneBadClass",
    "PairFlips",
    "RandomTransitions",
    "TransitionNoise",
    "check_transitions",
    "encode_classes",
    "read_labels",
    "spread_evenly",
]


class LabelTwister(ABC):
    """Changes labels in a copy of them; a subclass says which ones and to what."""

    @abstractmethod
    def _draw_labels(self, X: Any, labels: Indices, classes: NDArray[Any], rng: np.random.Generator) -> Indices:
        """Draw the new label of each row; labels are indices of the classes, of which there are two or more."""

    def twist(self, X: Any, y: Any, rng: np.random.Generator | int | None) -> tuple[Any, Any, Indices]:
        """Change labels in a copy of y.

        Parameters
        ----------
        X : array, data frame or None
            The rows, left as they are.
        y : array_like of shape (n_rows,)
            Labels of any kind; none may be missing.
        rng : numpy.random.Generator, int or None
            Where the changes are drawn from.

        Returns
        -------
        X
            As given.
        y_twisted
            A copy of y with labels changed.
        changed : ndarray of int
            The indices of the rows whose label differs from before, in order.
        """
        values, labels, classes = read_labels(X, y)
        drawn = self._draw_labels(X, labels, classes, np.random.default_rng(rng))
        changed = np.flatnonzero(drawn != labels)
        twisted = rewrite(y if hasattr(y, "iloc") else values, changed, classes[drawn[changed]])
        return X, twisted, changed


def read_labels(X: Any, y: Any) -> tuple[NDArray[Any], Indices, NDArray[Any]]:
    """Return y as an array, y as indices of the classes, and the classes, sorted; or raise a ValueError."""
    values = np.asarray(y)
    if values.ndim != 1:
        raise ValueError(f"y must be one label per row, got shape {values.shape}")
    check_rows(X, values)
    return values, *encode_classes("y", values)


def encode_classes(name: str, values: NDArray[Any]) -> tuple[Indices, NDArray[Any]]:
    """Return labels as indices of the classes, and the classes, sorted; a ValueError unless there are two or more."""
    labels, classes = encode_values(values)
    present = classes[np.unique(labels[labels >= 0])]
    if present.size < 2 or (labels < 0).any():
        raise ValueError(f"{name} must have at least two classes and none missing, got {present[:5]}")
    return labels, classes


class _ClassTwister(LabelTwister):
    """Changes labels by their true class alone, so that one transition matrix says it all."""

    @abstractmethod
    def _make_matrix(self, classes: NDArray[Any]) -> Array:
        """Return the matrix for these classes, which are sorted."""

    def transition_matrix(self, classes: ArrayLike) -> Array:
        """Return the probability of each label given the true class.

        Parameters
        ----------
        classes : array_like
            The labels that there are, two or more, or y itself.

        Returns
        -------
        ndarray of shape (n_classes, n_classes)
            Row: true class, column: label, both in sorted order.
        """
        return self._make_matrix(encode_classes("classes", np.ravel(np.asarray(classes)))[1])


class _FlipTwister(_ClassTwister):
    """Flips labels of two classes, each independently with the rates of its twist unless a subclass overrides that."""

    def __post_init__(self) -> None:
        # Making the twist checks the rates.
        self._make_twist()

    @abstractmethod
    def _make_twist(self) -> twists.ClassConditionalTwist:
        """Return what this twister does to posteriors of two classes."""

    def _draw_flips(self, labels: Indices, rng: np.random.Generator) -> Indices:
        """Draw the rows to flip, in order; labels are 0 and 1 unless a subclass takes more classes."""
        twist = self._make_twist()
        rates = np.array([twist.rate_neg, twist.rate_pos])
        return np.flatnonzero(rng.random(labels.size) < rates[labels])

    def _draw_labels(self, X: Any, labels: Indices, classes: NDArray[Any], rng: np.random.Generator) -> Indices:  # noqa: ARG002
        self._refuse_more_classes(classes)
        flipped = self._draw_flips(labels, rng)
        # Of two classes there is but one other, and nothing more is drawn.
        steps = 1 if classes.size == 2 else rng.integers(1, classes.size, size=flipped.size)
        drawn = labels.copy()
        drawn[flipped] = (labels[flipped] + steps) % classes.size
        return drawn

    def _refuse_more_classes(self, classes: NDArray[Any]) -> None:
        if classes.size != 2:
            raise ValueError(f"y must have two classes to flip between, got {classes[:5]}")

    def _make_matrix(self, classes: NDArray[Any]) -> Array:
        self._refuse_more_classes(classes)
        twist = self._make_twist()
        return np.array([[1.0 - twist.rate_neg, twist.rate_neg], [twist.rate_pos, 1.0 - twist.rate_pos]])

    def posterior(self, eta_clean: ArrayLike) -> Array:
        """Return the twisted posterior of the second class in sorted order, of two classes.

        Parameters
        ----------
        eta_clean : array_like
            Clean posteriors of that class, in [0, 1].

        Returns
        -------
        ndarray
            The twisted posteriors. Those of several classes are ``clean @ twister.transition_matrix(classes)``.
        """
        return self._make_twist()(eta_clean)


class _SymmetricTwister(_FlipTwister):
    """Flips labels of all classes at one rate, of more than two to another one at random."""

    rate: float

    def _make_twist(self) -> twists.SymmetricNoise:
        return twists.SymmetricNoise(self.rate)

    def _draw_flips(self, labels: Indices, rng: np.random.Generator) -> Indices:
        return np.flatnonzero(rng.random(labels.size) < self.rate)

    def _refuse_more_classes(self, classes: NDArray[Any]) -> None:
        pass

    def _make_matrix(self, classes: NDArray[Any]) -> Array:
        return spread_evenly(np.full(classes.size, self.rate))


def spread_evenly(rates: Array) -> Array:
    """Return the matrix of these rates, one for each class, whose wrong labels are any other one equally often."""
    n_classes = rates.shape[-1]
    correct = np.eye(n_classes)
    wrong = rates[..., :, None] / (n_classes - 1)
    return np.asarray((1.0 - rates)[..., :, None] * correct + wrong * (1.0 - correct))


@dataclass(frozen=True)
class ClassNoise(_SymmetricTwister):
    """Flips exactly ceil(rate * n) labels, drawn without replacement: the class noise of the paper's experiments.

    Of more than two classes, each label that flips becomes one of the others, all with the same probability.

    Parameters
    ----------
    rate : float
        The share of labels to flip, in [0, 1].

    Examples
    --------
    >>> twister = ClassNoise(0.3)
    >>> X, y, flipped = twister.twist(np.zeros((5, 1)), [0, 0, 1, 1, 1], np.random.default_rng(0))
    >>> y, flipped
    (array([0, 0, 1, 0, 0]), array([3, 4]))
    """

    rate: float

    def _draw_flips(self, labels: Indices, rng: np.random.Generator) -> Indices:
        # The product is rounded first, so that 0.3 * 10 gives 3 flips and not 4.
        flips = math.ceil(round(self.rate * labels.size, 9))
        return np.sort(rng.choice(labels.size, size=flips, replace=False))


@dataclass(frozen=True)
class BernoulliNoise(_SymmetricTwister):
    """Flips each label independently with one probability: symmetric noise.

    Of more than two classes, each label that flips becomes one of the others, all with the same probability.

    Parameters
    ----------
    rate : float
        The probability that a label flips, in [0, 1].

    Examples
    --------
    >>> BernoulliNoise(0.3).twist(None, ["ham", "ham", "spam"], rng=1)[1:]
    (array(['ham', 'ham', 'ham'], dtype='<U4'), array([2]))
    """

    rate: float


@dataclass(frozen=True, kw_only=True)
class ClassConditionalNoise(_FlipTwister):
    """Flips each label of two classes independently, those of each class with their own probability.

    One-sided noise is to give one rate only: in the example no ham is ever called spam. What it does to posteriors is
    `untwist.twists.ClassConditionalTwist`.

    Parameters
    ----------
    rate_neg : float, default 0.0
        The probability that a label of the first class, in sorted order, flips.
    rate_pos : float, default 0.0
        The probability that a label of the second class flips.

    Examples
    --------
    >>> ClassConditionalNoise(rate_pos=1.0).twist(None, ["ham", "spam", "ham"], rng=0)[1:]
    (array(['ham', 'ham', 'ham'], dtype='<U4'), array([1]))
    """

    rate_neg: float = 0.0
    rate_pos: float = 0.0

    def _make_twist(self) -> twists.ClassConditionalTwist:
        return twists.ClassConditionalTwist(rate_neg=self.rate_neg, rate_pos=self.rate_pos)


class _TransitionTwister(_ClassTwister):
    """Draws the label of each row independently, from the row of the matrix that belongs to its true class."""

    def _draw_labels(self, X: Any, labels: Indices, classes: NDArray[Any], rng: np.random.Generator) -> Indices:  # noqa: ARG002
        matrix = self._make_matrix(classes)
        cumulative = np.cumsum(matrix, axis=1)
        # Divided by itself the last entry is 1, which no draw reaches.
        cumulative /= cumulative[:, -1:]
        draws = rng.random(labels.size)
        drawn = labels.copy()
        for index in range(classes.size):
            rows = np.flatnonzero(labels == index)
            # The first entry above the draw is that of a label with a positive probability.
            drawn[rows] = np.searchsorted(cumulative[index], draws[rows], side="right")
        return drawn


@dataclass(frozen=True)
class TransitionNoise(_TransitionTwister):
    """Draws each label from a transition matrix.

    Parameters
    ----------
    matrix : array_like of shape (n_classes, n_classes)
        Row: true class, column: label, both in sorted order; probabilities, which sum to 1 in each row.

    Examples
    --------
    Spam is never called ham; ham is called news in every case.

    >>> noise = TransitionNoise([[0, 1, 0], [0, 1, 0], [0, 0, 1]])
    >>> noise.twist(None, ["ham", "news", "spam", "ham"], rng=0)[1:]
    (array(['news', 'news', 'spam', 'news'], dtype='<U4'), array([0, 3]))
    """

    matrix: ArrayLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", check_transitions("matrix", check_probabilities("matrix", self.matrix)))

    def _make_matrix(self, classes: NDArray[Any]) -> Array:
        matrix = np.array(self.matrix, dtype=np.float64)
        if len(matrix) != classes.size:
            raise ValueError(f"y must have {len(matrix)} classes, as the matrix has, got {classes.size}: {classes[:5]}")
        return matrix


def check_transitions(name: str, matrix: Array) -> tuple[tuple[float, ...], ...]:
    """Return a transition matrix as tuples, which can be compared and hashed, or raise a ValueError."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(f"{name} must have a row and a column for each of two or more classes, got {matrix.shape}")
    sums = matrix.sum(axis=1)
    # Numbers that were printed with six digits are still taken.
    if (off := np.flatnonzero(np.abs(sums - 1.0) > 1e-5)).size:
        raise ValueError(f"{name} must sum to 1 in each row, got {sums[off[0]]:g} in row {off[0]}")
    return tuple(map(tuple, (matrix / sums[:, None]).tolist()))


@dataclass(frozen=True)
class PairFlips(_TransitionTwister):
    """Takes each class for one other, with one probability.

    Parameters
    ----------
    rate : float
        The probability that a label of such a class changes, in [0, 1].
    pairs : mapping or iterable of pairs, optional
        Which label becomes which; other labels stay as they are. By default each becomes the next one in sorted order,
        and the last one the first.

    Examples
    --------
    >>> PairFlips(1.0).twist(None, ["a", "b", "c"], rng=0)[1].tolist()
    ['b', 'c', 'a']
    >>> PairFlips(1.0, {"billing": "bug"}).twist(None, ["billing", "bug", "praise"], rng=0)[1].tolist()
    ['bug', 'bug', 'praise']
    """

    rate: float
    pairs: Iterable[tuple[Any, Any]] | Mapping[Any, Any] | None = None

    def __post_init__(self) -> None:
        check_fraction("rate", self.rate)
        if self.pairs is None:
            return
        if not isinstance(self.pairs, Iterable):
            raise ValueError(f"pairs must be a mapping or a list of pairs of labels, got {self.pairs!r}")
        listed = list(self.pairs.items() if isinstance(self.pairs, Mapping) else self.pairs)
        if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 and pair[0] != pair[1] for pair in listed):
            raise ValueError(f"pairs must be two different labels each, got {self.pairs!r}")
        if len(listed) > len({before for before, _ in listed}):
            raise ValueError(f"pairs must begin with a label at most once each, got {self.pairs!r}")
        object.__setattr__(self, "pairs", tuple((before, after) for before, after in listed))

    def _make_matrix(self, classes: NDArray[Any]) -> Array:
        matrix = np.eye(classes.size)
        if self.pairs is None:
            pairs = [(index, (index + 1) % classes.size) for index in range(classes.size)]
        else:
            pairs = [
                (_find_class("pairs", one, classes), _find_class("pairs", other, classes)) for one, other in self.pairs
            ]
        for before, after in pairs:
            matrix[before, before] = 1.0 - self.rate
            matrix[before, after] = self.rate
        return matrix


@dataclass(frozen=True)
class OneBadClass(_TransitionTwister):
    """Takes one class for another, with some probability; all other labels stay as they are.

    Parameters
    ----------
    rate : float
        The probability that a label of that class changes, in [0, 1].
    label : optional
        The class whose labels change, by default the first one in sorted order.
    target : optional
        What they become, by default the next one in sorted order, or the first one after the last.

    Examples
    --------
    >>> OneBadClass(1.0, "b").twist(None, ["a", "b", "c"], rng=0)[1].tolist()
    ['a', 'c', 'c']
    """

    rate: float
    label: Any = None
    target: Any = None

    def __post_init__(self) -> None:
        check_fraction("rate", self.rate)
        if self.label is not None and self.label == self.target:
            raise ValueError(f"target must differ from label, got {self.target!r} for both")

    def _make_matrix(self, classes: NDArray[Any]) -> Array:
        before = 0 if self.label is None else _find_class("label", self.label, classes)
        after = (before + 1) % classes.size if self.target is None else _find_class("target", self.target, classes)
        if before == after:
            raise ValueError(f"target must differ from the class that changes, got {self.target!r} for both")
        matrix = np.eye(classes.size)
        matrix[before, before] = 1.0 - self.rate
        matrix[before, after] = self.rate
        return matrix


@dataclass(frozen=True)
class RandomTransitions(_TransitionTwister):
    """Draws a transition matrix by a seed: each class has a rate of its own and its own preferred mistakes.

    The rate of a class is uniform between 0 and `rate`; how its wrong labels are spread over the other classes follows
    a Dirichlet distribution with parameter 1/2, which prefers few of them. The seed and the number of classes decide
    the matrix, the `rng` of `twist` decides which rows change.

    Parameters
    ----------
    rate : float, default 0.5
        The largest probability that a label changes, in [0, 1].
    seed : int, default 0
        Of the matrix.

    Examples
    --------
    >>> RandomTransitions(0.5, seed=1).transition_matrix(["a", "b", "c"]).round(2)
    array([[0.74, 0.13, 0.12],
           [0.01, 0.99, 0.  ],
           [0.11, 0.05, 0.85]])
    """

    rate: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_fraction("rate", self.rate)
        check_count("seed", self.seed, low=0)

    def _make_matrix(self, classes: NDArray[Any]) -> Array:
        rng = np.random.default_rng(self.seed)
        rows = []
        for index in range(classes.size):
            rate = self.rate * rng.random()
            spread = rng.dirichlet(np.full(classes.size - 1, 0.5))
            rows.append(np.insert(rate * spread, index, 1.0 - rate))
        return np.array(rows)


def _find_class(argument: str, label: Any, classes: NDArray[Any]) -> int:
    """Return the index of a label among the classes."""
    found = [index for index, one in enumerate(classes.tolist()) if one == label]
    if not found:
        raise ValueError(f"{argument} must be labels that y has, such as {classes[:5].tolist()}, got {label!r}")
    return found[0]
