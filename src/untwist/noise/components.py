"""The noise of all labels together, as components that can be weighed again and moved.

An `Untwisting` of two classes holds pairs of rates with slopes, a `MatrixUntwisting` of several holds matrices with
slopes and offsets. Both are lists of components here: each makes a clean posterior of the twisted one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logit

from untwist.arguments import Array
from untwist.noise.matrix import MatrixUntwisting
from untwist.noise.untwisting import Untwisting, split_at_half, untwist_log_odds

__all__ = ["LEAST_WEIGHT", "SAFE_MARGIN", "Component", "Components", "find_log_odds", "take_components"]

# A posterior nearer to 0 or 1 than this counts as this near.
POSTERIOR_FLOOR = 1e-4
#: A probability that is divided by, or whose logarithm is taken, is kept above this.
SAFE_MARGIN = 1e-12
#: A component of less weight than this is left out.
LEAST_WEIGHT = 1e-6
# Pairs of rates this close are one component; twice as far, and so on, where there would be too many.
CLOSE_RATES = 0.01
# A matrix keeps so much of what tells classes apart, and a pair of rates sums to no more than 1 less this.
LEAST_SIGNAL = 0.05


@dataclass(frozen=True, eq=False)
class Component:
    """One noise of all labels.

    Attributes
    ----------
    weight : float
        How likely it is.
    matrix : ndarray of shape (n_classes, n_classes)
        Its transition matrix.
    slopes, offsets : ndarray of shape (n_classes,)
        What is made of the logarithm of the posterior that the matrix alone makes. Of two classes, the slopes are those
        of the log-odds below and above 0.
    members : ndarray of int
        Which components of the estimate it stands for; none once it was moved.
    """

    weight: float
    matrix: Array
    slopes: Array
    offsets: Array
    members: NDArray[np.intp]


class Components(ABC):
    """The noise of all labels, and the twisted posteriors of items."""

    #: Whether components have offsets.
    has_offsets: bool

    @abstractmethod
    def list_components(self, most: int) -> list[Component]:
        """Return what the noise consists of; neighbours as one where there would be more than `most`."""

    @abstractmethod
    def untwist(self, component: Component) -> Array:
        """Return the logarithm of the clean posterior of each item."""

    @abstractmethod
    def combine(self, components: list[Component], weights: Array) -> Untwisting | MatrixUntwisting:
        """Return the noise with these weights of components, which may have been moved."""


def take_components(noise: Untwisting | MatrixUntwisting, posterior: Array) -> Components:
    """Return the components of a noise.

    Parameters
    ----------
    noise : Untwisting or MatrixUntwisting
        The noise of all labels.
    posterior : ndarray of shape (n_items, n_classes)
        The twisted posteriors of items.

    Returns
    -------
    Components
        Of two classes or of several.
    """
    if isinstance(noise, MatrixUntwisting):
        return _Matrices(noise, posterior)
    return _Pairs(noise, posterior)


def find_log_odds(posterior: Array) -> Array:
    """Return the log-odds of the second of two classes.

    Parameters
    ----------
    posterior : ndarray of shape (n_rows, 2)
        Posteriors of both classes.

    Returns
    -------
    ndarray of shape (n_rows,)
        None larger than those of `POSTERIOR_FLOOR`, on either side of 0.
    """
    return np.asarray(logit(np.clip(posterior[:, 1], POSTERIOR_FLOOR, 1.0 - POSTERIOR_FLOOR)))


class _Pairs(Components):
    """Pairs of rates of two classes."""

    has_offsets = False

    def __init__(self, noise: Untwisting, posterior: Array) -> None:
        self.noise = noise
        self.log_odds = noise.scale * find_log_odds(posterior) + noise.offset

    def list_components(self, most: int) -> list[Component]:
        noise = self.noise
        components = []
        for members in self._group_neighbours(most):
            heaviest = members[int(np.argmax(noise.weights[members]))]
            rate_neg, rate_pos = noise.rates_neg[heaviest], noise.rates_pos[heaviest]
            bend = 0.0 if noise.bends is None else noise.bends[heaviest]
            components.append(
                Component(
                    weight=float(noise.weights[members].sum()),
                    matrix=np.array([[1.0 - rate_neg, rate_neg], [rate_pos, 1.0 - rate_pos]]),
                    slopes=noise.slopes[heaviest] + np.array([-bend, bend]),
                    offsets=np.zeros(2),
                    members=members,
                )
            )
        return components

    def _group_neighbours(self, most: int) -> Iterator[NDArray[np.intp]]:
        """Yield pairs of rates in groups of neighbours, at most so many groups."""
        width = CLOSE_RATES
        while True:
            cells = np.rint(np.stack([self.noise.rates_neg, self.noise.rates_pos]) / width).astype(np.intp)
            index = np.unique(cells, axis=1, return_inverse=True)[1].ravel()
            if index.max() < most:
                break
            width *= 2.0
        for group in range(int(index.max()) + 1):
            yield np.flatnonzero(index == group)

    def untwist(self, component: Component) -> Array:
        rates = _list_rates([component])
        below, above = split_at_half(untwist_log_odds(self.log_odds, rates, self.noise.clearest)[0])
        log_odds = component.slopes[0] * below + component.slopes[1] * above
        return np.column_stack([log_expit(-log_odds), log_expit(log_odds)])

    def combine(self, components: list[Component], weights: Array) -> Untwisting:
        noise = self.noise
        if not any(len(each.members) for each in components):
            # Components that several votes of an item have moved are no longer those of the estimate.
            low, high = np.array([each.slopes for each in components]).T
            return Untwisting.from_grid(
                _list_rates(components),
                weights,
                (low + high) / 2.0,
                noise.evidence,
                found=noise.found,
                clearest=noise.clearest,
                scale=noise.scale,
                offset=noise.offset,
                n_classes=noise.n_classes,
                bends=(high - low) / 2.0,
                uneven_limit=noise.uneven_limit,
            )
        return noise.weigh_again(_share_out(components, weights, noise.weights))


def _list_rates(components: list[Component]) -> Array:
    """Return the pair of rates of each component, a column each, made smaller where labels would tell nothing."""
    grid = np.array([[each.matrix[0, 1], each.matrix[1, 0]] for each in components]).T
    return np.asarray(grid * np.minimum(1.0, (1.0 - LEAST_SIGNAL) / np.maximum(grid.sum(axis=0), LEAST_SIGNAL)))


class _Matrices(Components):
    """Transition matrices of several classes."""

    has_offsets = True

    def __init__(self, noise: MatrixUntwisting, posterior: Array) -> None:
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
        return np.log(np.maximum(self._make_untwisting([component], np.ones(1)).clean(self.posterior), SAFE_MARGIN))

    def combine(self, components: list[Component], weights: Array) -> MatrixUntwisting:
        kept = np.flatnonzero(weights > LEAST_WEIGHT)
        return self._make_untwisting([components[index] for index in kept], weights[kept] / weights[kept].sum())

    def _make_untwisting(self, components: list[Component], weights: Array) -> MatrixUntwisting:
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


def _share_out(components: list[Component], weights: Array, before: Array) -> Array:
    """Return weights of all that components stand for, each in proportion to what it was."""
    shared = np.zeros(len(before))
    for component, weight in zip(components, weights.tolist(), strict=True):
        shared[component.members] = weight * before[component.members] / component.weight
    return shared
