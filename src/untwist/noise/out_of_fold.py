"""The noise that an `OutOfFold` shows: of all labels, with what a review found, and of each source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.data.workers import Workers, solo
from untwist.noise.dependence import find_rows_per_case
from untwist.noise.model import NoiseModel
from untwist.noise.sources import NoiseBySource, estimate_by_source
from untwist.out_of_fold import OutOfFold

__all__ = ["count_rows_per_case", "estimate_noise_of", "estimate_noise_of_reviewed", "estimate_noise_of_sources"]


def estimate_noise_of(
    unseen: OutOfFold, known: tuple[float, float] | Array | None = None, workers: Workers = solo
) -> NoiseModel:
    """Return the noise of all labels together.

    Parameters
    ----------
    unseen : OutOfFold
        What models say of the rows of this worker.
    known : tuple of float, array or None
        The rates, or of several classes the transition matrix, where they are known.
    workers : Workers
        Who else has rows.

    Returns
    -------
    NoiseModel
        The same on all workers.
    """
    parts = unseen.parts
    groups = unseen.hash_groups(parts.rows, workers.rank)
    told = [] if groups is None else [groups]
    columns = parts.posterior.T
    labels, weight, *others = _gather_sorted(workers, unseen.labels[parts.rows], parts.weight, *columns, *told)
    posterior, told = np.column_stack(others[: len(columns)]), others[len(columns) :]
    cases = find_rows_per_case(posterior, labels, weight, *told)
    order = unseen.context.order
    return NoiseModel.estimate(posterior, labels, weight, known=known, order=order, rows_per_case=cases)


def estimate_noise_of_reviewed(
    unseen: OutOfFold, known: tuple[float, float] | Array | None = None, workers: Workers = solo
) -> NoiseModel:
    """Return the noise of the labels as they were before a review, by what it found.

    Parameters
    ----------
    unseen : OutOfFold
        What models say of the rows; its context has the review.
    known : tuple of float, array or None
        The rates, or of several classes the transition matrix, where they are known.
    workers : Workers
        Who else has rows.

    Returns
    -------
    NoiseModel
        Where nobody knows what the labels of reviewed rows were, the noise is that of the other rows, if there are any.
    """
    review = unseen.context.reviewed
    assert review is not None
    if not review.knows_given:
        left = np.where(review.is_reviewed, 0.0, unseen.judged_weight)
        return estimate_noise_of(_weigh(unseen, ~review.is_reviewed) if left.any() else unseen, known, workers)
    reviewed = np.flatnonzero(review.is_reviewed & (unseen.judged_weight > 0))
    return estimate_noise_of(unseen, known, workers).learn(
        unseen.posterior[reviewed],
        unseen.labels[reviewed],
        review.labels[reviewed].astype(np.intp),
    )


def estimate_noise_of_sources(unseen: OutOfFold, noise: NoiseModel, reliability: Array | None = None) -> NoiseBySource:
    """Return the noise of the labels of each source.

    Parameters
    ----------
    unseen : OutOfFold
        What models say of the rows; its context has their sources.
    noise : NoiseModel
        That of all labels together.
    reliability : array or None
        What the weight of each row was multiplied by where models were trained, if it was.

    Returns
    -------
    NoiseBySource
    """
    unseen = unseen.average_by_item()
    sources, weight = unseen.context.sources, unseen.judged_weight
    assert sources is not None
    in_training = weight if reliability is None else weight * reliability
    present = np.flatnonzero(weight)  # A row of weight 0 is an absent one.
    return estimate_by_source(
        unseen.posterior[present],
        unseen.labels[present],
        sources.index[present],
        names=sources.names,
        noise=noise,
        weight=weight[present],
        items=np.unique(sources.items[present], return_inverse=True)[1],
        pooled_weight=in_training[present],
        rows_per_case=count_rows_per_case(unseen),
    )


def count_rows_per_case(unseen: OutOfFold) -> float:
    """Return how many rows count as one, as those of a group err together.

    Parameters
    ----------
    unseen : OutOfFold
        What models say of the rows.

    Returns
    -------
    float
        1 where nothing is known of groups.
    """
    groups = unseen.context.groups
    numbers = None if groups is None else groups.number_rows()
    return find_rows_per_case(unseen.posterior, unseen.labels, unseen.judged_weight, numbers)


def _weigh(unseen: OutOfFold, counts: NDArray[np.bool_]) -> OutOfFold:
    """Return the same where only some rows have a weight."""
    by_fold = unseen.by_fold
    if by_fold is not None:
        by_fold = replace(by_fold, weight=np.where(counts[by_fold.rows], by_fold.weight, 0.0))
    return replace(unseen, weight=np.where(counts, unseen.weight, 0.0), by_fold=by_fold)


def _gather_sorted(workers: Workers, *columns: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the rows of all workers, in an order that does not depend on who had them; those of one as they are."""
    if workers.size == 1:
        return list(columns)
    joined = [np.concatenate(parts) for parts in zip(*workers.gather(columns), strict=True)]
    order = np.lexsort(joined[::-1])
    return [column[order] for column in joined]
