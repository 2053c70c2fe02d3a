"""Twisters of labels that look at the row: by who gave its label, or by where it lies."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesClassifier

from untwist.arguments import (
    Array,
    check_count,
    check_fraction,
    check_probabilities,
)
from untwist.twisters.columns import (
    Indices,
    encode_table,
    encode_values,
    locate_columns,
    read_numbers,
    read_table,
    take_column,
)
from untwist.twisters.labels import LabelTwister, check_transitions, read_labels, spread_evenly

__all__ = ["InstanceNoise", "SourceNoise"]


class _RowTwister(LabelTwister):
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
        return self._make_matrices(X, *read_labels(X, y)[1:])

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
            return spread_evenly(np.repeat(rates[:, None], classes.size, axis=1))
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
        return check_transitions(name, noise)
    if noise.ndim > 2 or (noise.ndim == 1 and noise.size < 2):
        raise ValueError(f"{name} must be a rate, a rate for each class or a transition matrix, got {value!r}")
    return tuple(noise.tolist()) if noise.ndim else float(noise)


def _fill_matrix(noise: Any, classes: NDArray[Any]) -> Array:
    """Return the matrix of a rate, of a rate for each class or of a matrix."""
    numbers = np.array(noise, dtype=np.float64)
    if numbers.ndim and len(numbers) != classes.size:
        raise ValueError(f"y must have {len(numbers)} classes, as the noise has, got {classes.size}: {classes[:5]}")
    return numbers if numbers.ndim == 2 else spread_evenly(np.broadcast_to(numbers, classes.size))


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
