"""Twisters of labels: by the true class alone, so that one matrix says it all, or by what the row is."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesClassifier

from untwist.arguments import Array, check_count, check_fraction, check_probabilities
from untwist.theory import twists
from untwist.twisters.columns import (
    Indices,
    check_rows,
    encode_table,
    encode_values,
    locate_columns,
    read_numbers,
    read_table,
    rewrite,
    take_column,
)

__all__ = [
    "BernoulliNoise",
    "ClassConditionalNoise",
    "ClassNoise",
    "InstanceNoise",
    "OneBadClass",
    "PairFlips",
    "RandomTransitions",
    "SourceNoise",
    "TransitionNoise",
]

# ---- by the true class alone ----


class _LabelTwister(ABC):
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
        values, labels, classes = _read_labels(X, y)
        drawn = self._draw_labels(X, labels, classes, np.random.default_rng(rng))
        changed = np.flatnonzero(drawn != labels)
        twisted = rewrite(y if hasattr(y, "iloc") else values, changed, classes[drawn[changed]])
        return X, twisted, changed


def _read_labels(X: Any, y: Any) -> tuple[NDArray[Any], Indices, NDArray[Any]]:
    """Return y as an array, y as indices of the classes, and the classes, sorted; or raise a ValueError."""
    values = np.asarray(y)
    if values.ndim != 1:
        raise ValueError(f"y must be one label per row, got shape {values.shape}")
    check_rows(X, values)
    return values, *_encode_classes("y", values)


def _encode_classes(name: str, values: NDArray[Any]) -> tuple[Indices, NDArray[Any]]:
    """Return labels as indices of the classes, and the classes, sorted; a ValueError unless there are two or more."""
    labels, classes = encode_values(values)
    present = classes[np.unique(labels[labels >= 0])]
    if present.size < 2 or (labels < 0).any():
        raise ValueError(f"{name} must have at least two classes and none missing, got {present[:5]}")
    return labels, classes


class _ClassTwister(_LabelTwister):
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
        return self._make_matrix(_encode_classes("classes", np.ravel(np.asarray(classes)))[1])


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
        return _spread_evenly(np.full(classes.size, self.rate))


def _spread_evenly(rates: Array) -> Array:
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
        object.__setattr__(self, "matrix", _check_matrix("matrix", check_probabilities("matrix", self.matrix)))

    def _make_matrix(self, classes: NDArray[Any]) -> Array:
        matrix = np.array(self.matrix, dtype=np.float64)
        if len(matrix) != classes.size:
            raise ValueError(f"y must have {len(matrix)} classes, as the matrix has, got {classes.size}: {classes[:5]}")
        return matrix


def _check_matrix(name: str, matrix: Array) -> tuple[tuple[float, ...], ...]:
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


# ---- by what the row is ----


class _RowTwister(_LabelTwister):
    """Draws the label of each row from a transition matrix of its own."""

    @abstractmethod
    def _make_matrices(self, X: Any, labels: Indices, classes: NDArray[Any]) -> Array:
        """Return the matrix of each row, of shape (n_rows, n_classes, n_classes)."""

    def transition_matrices(self, X: Any, y: Any) -> Array:
        """Return for each row the probability of each label given the true class.

        Twisted posteriors are ``np.einsum("nk,nkl->nl", clean, matrices)``.

        Parameters
        ----------
        X : array, data frame or None
            The rows.
        y : array_like of shape (n_rows,)
            Their clean labels.

        Returns
        -------
        ndarray of shape (n_rows, n_classes, n_classes)
            Of each row a matrix with a row per true class and a column per label, both in sorted order.
        """
        return self._make_matrices(X, *_read_labels(X, y)[1:])

    def _draw_labels(self, X: Any, labels: Indices, classes: NDArray[Any], rng: np.random.Generator) -> Indices:
        matrices = self._make_matrices(X, labels, classes)
        cumulative = np.cumsum(matrices[np.arange(labels.size), labels], axis=1)
        # Divided by itself the last entry is 1, which no draw reaches.
        cumulative /= cumulative[:, -1:]
        # The first entry above the draw is that of a label with a positive probability.
        return np.asarray(np.sum(cumulative <= rng.random(labels.size)[:, None], axis=1), dtype=np.intp)


@dataclass(frozen=True)
class SourceNoise(_RowTwister):
    """Changes the labels of each source at its own rates; a source is who or what gave a label.

    Where `noise` is no mapping, one source is bad: it is drawn by the seed from the sources that there are, each with
    the same probability.

    Parameters
    ----------
    source : str, int or array_like of shape (n_rows,)
        The name or the index of the column of X that has the source, or the source of each row.
    noise : mapping, or what `others` may be
        The noise of each source, by its name; or that of one bad source.
    others : float or array_like, default 0.0
        The noise of all other sources, and of rows whose source is missing: a rate, for all classes; or a rate for each
        class in sorted order, where wrong labels are any other one equally often; or a transition matrix (row: true
        class, column: label).
    seed : int, default 0
        Of the source that is bad.

    Examples
    --------
    Leipzig takes all ham for spam and all spam for ham.

    >>> noise = SourceNoise(["Bonn", "Leipzig", "Leipzig", "Bonn"], {"Leipzig": 1.0})
    >>> noise.twist(None, ["ham", "ham", "spam", "spam"], rng=0)[1:]
    (array(['ham', 'spam', 'ham', 'spam'], dtype='<U4'), array([1, 2]))
    """

    source: str | int | ArrayLike
    noise: Mapping[Any, Any] | Any = field(hash=False)
    others: Any = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.source, (bool, float)) or self.source is None:
            raise ValueError(f"source must be the name or the index of a column, or an array, got {self.source!r}")
        if not isinstance(self.source, (str, Integral)):
            sources = np.asarray(self.source)
            if sources.ndim != 1:
                raise ValueError(f"source must be one per row, got shape {sources.shape}")
            # A tuple can be compared and hashed.
            object.__setattr__(self, "source", tuple(sources.tolist()))
        if isinstance(self.noise, Mapping):
            noise = {name: _check_noise(f"noise of {name!r}", value) for name, value in self.noise.items()}
        else:
            noise = _check_noise("noise", self.noise)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "others", _check_noise("others", self.others))
        check_count("seed", self.seed, low=0)

    def _make_matrices(self, X: Any, labels: Indices, classes: NDArray[Any]) -> Array:
        codes, names = self._read_sources(X, labels.size)
        if isinstance(self.noise, Mapping):
            chosen = {_find_source(name, names): value for name, value in self.noise.items()}
        else:
            if not names.size:
                raise ValueError("source must name at least one source, got none: all are missing")
            chosen = {int(np.random.default_rng(self.seed).integers(names.size)): self.noise}
        # The last matrix is that of rows whose source is missing, as their code is -1.
        of_source = [_fill_matrix(chosen.get(code, self.others), classes) for code in range(names.size)]
        return np.array([*of_source, _fill_matrix(self.others, classes)])[codes]

    def _read_sources(self, X: Any, n_rows: int) -> tuple[Indices, NDArray[Any]]:
        """Return the code of the source of each row, -1 where it is missing, and the names by their codes."""
        if not isinstance(self.source, (str, Integral)):
            assert isinstance(self.source, tuple)
            if len(self.source) != n_rows:
                raise ValueError(f"source must be one per row, got {len(self.source)} for {n_rows} rows")
            return encode_values(np.array(self.source, dtype=object))
        table = read_table("source", X)
        return encode_values(take_column(table, locate_columns("source", [self.source], table)[0]))


@dataclass(frozen=True)
class InstanceNoise(_RowTwister):
    """Changes labels at a rate that rises: towards the boundary between classes, or along a column.

    Rows are ranked, by how near they are to the boundary or by their value in the column. The rate of a row is a power
    of its rank, from 0 for the first one up to `highest`, with a mean of `rate`. At the boundary the two likeliest
    classes are equally likely; the likeliest one is taken for the second, and all others for the likeliest. Along a
    column each label becomes any other one equally often.

    Parameters
    ----------
    rate : float
        The mean probability that a label changes, in [0, highest].
    column : str or int, optional
        The name or the index of a column of numbers or dates along which the rate rises; rows where it is missing have
        the mean rate. By default the rate rises towards the boundary.
    model : optional
        Says where the boundary is: something with ``predict_proba(X)``, or posteriors of shape (n_rows, n_classes), or
        those of the second of two classes. By default extremely randomised trees are fitted to the clean labels, and
        rows are judged by trees that have not seen them.
    highest : float, default 0.5
        The rate of the last row, if there are many, in [0, 1]. Up to one half the likelier of two classes stays so.

    Examples
    --------
    >>> noise = InstanceNoise(0.25, column=0)
    >>> matrices = noise.transition_matrices([[8], [6], [7], [9]], ["ham", "spam", "spam", "ham"])
    >>> 1 - matrices[:, 0, 0]
    array([0.3125, 0.0625, 0.1875, 0.4375])
    """

    rate: float
    column: str | int | None = None
    model: Any = None
    highest: float = 0.5

    def __post_init__(self) -> None:
        check_fraction("highest", self.highest)
        if check_fraction("rate", self.rate) > self.highest:
            raise ValueError(f"rate must be at most highest, {self.highest:g}, got {self.rate:g}")
        if self.column is not None:
            if isinstance(self.column, (bool, float)) or not isinstance(self.column, (str, Integral)):
                raise ValueError(f"column must be the name or the index of a column, got {self.column!r}")
            if self.model is not None:
                raise ValueError("column and model must not both be given: noise rises along one or towards a boundary")
        if self.model is not None and not hasattr(self.model, "predict_proba"):
            posterior = check_probabilities("model", self.model).tolist()
            # Tuples can be compared and hashed.
            object.__setattr__(self, "model", tuple(tuple(one) if isinstance(one, list) else one for one in posterior))

    def _make_matrices(self, X: Any, labels: Indices, classes: NDArray[Any]) -> Array:
        if self.column is not None:
            rates = self._raise_rates(self._read_column(X))
            return _spread_evenly(np.repeat(rates[:, None], classes.size, axis=1))
        posterior = self._find_posterior(X, labels, classes)
        # The sort is stable, so that of classes equally likely the first one counts as the likeliest.
        second, likeliest = np.argsort(-posterior, axis=1, kind="stable")[:, 1::-1].T
        rows = np.arange(labels.size)
        rates = self._raise_rates(posterior[rows, second] - posterior[rows, likeliest])
        matrices = (1.0 - rates)[:, None, None] * np.eye(classes.size)
        for true in range(classes.size):
            matrices[rows, true, np.where(likeliest == true, second, likeliest)] = rates
        return matrices

    def _raise_rates(self, heights: Array) -> Array:
        """Return the rate of each row, which rises with its height; the mean rate where that is missing."""
        rates = np.full(heights.size, float(self.rate))
        present = ~np.isnan(heights)
        if self.rate > 0.0 and present.any():
            # The middle of its rank: the mean of such a power over all of them is close to 1 / (power + 1).
            share = (rankdata(heights[present]) - 0.5) / present.sum()
            # The highest rank counts as 1, so that not all of the powers vanish however low the rate.
            risen = (share / share.max()) ** (self.highest / self.rate - 1.0)
            rates[present] = np.minimum(risen * self.rate / risen.mean(), 1.0)
        return rates

    def _read_column(self, X: Any) -> Array:
        table = read_table("column", X)
        assert self.column is not None
        column = take_column(table, locate_columns("column", [self.column], table)[0])
        if np.asarray(column).dtype.kind == "M":
            days = np.asarray(column)
            return np.where(np.isnat(days), np.nan, days.astype(np.int64).astype(np.float64))
        if (numbers := read_numbers(column)) is None:
            raise ValueError(f"column must be one of numbers or dates, which {self.column!r} is not")
        return numbers

    def _find_posterior(self, X: Any, labels: Indices, classes: NDArray[Any]) -> Array:
        """Return the probability of each class, row by row."""
        if self.model is None:
            return _judge_unseen(encode_table(read_table("model", X)), labels)
        given = self.model.predict_proba(X) if hasattr(self.model, "predict_proba") else self.model
        posterior = check_probabilities("model", given)
        if posterior.ndim == 1 and classes.size == 2:
            posterior = np.column_stack([1.0 - posterior, posterior])
        if posterior.shape != (labels.size, classes.size):
            wanted = (labels.size, classes.size)
            raise ValueError(f"model must give posteriors of shape {wanted}, got {posterior.shape}")
        return posterior


def _check_noise(name: str, value: Any) -> Any:
    """Return a rate, or as tuples a rate for each class or a transition matrix; or raise a ValueError."""
    noise = check_probabilities(name, value)
    if noise.ndim == 2:
        return _check_matrix(name, noise)
    if noise.ndim > 2 or (noise.ndim == 1 and noise.size < 2):
        raise ValueError(f"{name} must be a rate, a rate for each class or a transition matrix, got {value!r}")
    return tuple(noise.tolist()) if noise.ndim else float(noise)


def _fill_matrix(noise: Any, classes: NDArray[Any]) -> Array:
    """Return the matrix of a rate, of a rate for each class or of a matrix."""
    numbers = np.array(noise, dtype=np.float64)
    if numbers.ndim and len(numbers) != classes.size:
        raise ValueError(f"y must have {len(numbers)} classes, as the noise has, got {classes.size}: {classes[:5]}")
    return numbers if numbers.ndim == 2 else _spread_evenly(np.broadcast_to(numbers, classes.size))


def _find_source(name: Any, names: NDArray[Any]) -> int:
    """Return the code of a source by its name."""
    found = [code for code, one in enumerate(names.tolist()) if one == name]
    if not found:
        raise ValueError(f"noise must be of sources that there are, such as {names[:5].tolist()}, got {name!r}")
    return found[0]


def _judge_unseen(numbers: Array, labels: Indices) -> Array:
    """Return the posteriors of all rows by trees that have not seen them."""
    # Leaves of a few rows, as rows that stand alone would all look as if they were far from any boundary.
    trees = ExtraTreesClassifier(200, min_samples_leaf=3, bootstrap=True, oob_score=True, random_state=0)
    with warnings.catch_warnings():
        # Of a handful of rows one may be in every draw; it then counts as near to the boundary.
        warnings.simplefilter("ignore")
        posterior = np.nan_to_num(trees.fit(numbers, labels).oob_decision_function_)
    return np.asarray(posterior, dtype=np.float64)
