"""How likely each label is wrong, and how many are: of labels that are all alike, or by who gave them.

Both ways start from the twisted posterior of every row, out of fold, and from the noise that was estimated from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.data.reviews import ReviewedRows
from untwist.data.sources import UNKNOWN, LabelSources
from untwist.noise.estimate import CONFIDENCE
from untwist.noise.model import SAFE_MARGIN, NoiseModel, move_interval
from untwist.noise.out_of_fold import count_rows_per_case
from untwist.noise.sources import NoiseBySource
from untwist.out_of_fold import OutOfFold
from untwist.sums import add_up, add_up_by_group, average

__all__ = [
    "Interval",
    "Judgement",
    "bound_share",
    "doubt_judgement",
    "find_unseen_share",
    "judge_alike",
    "judge_by_source",
    "judge_labels",
    "settle_reviewed",
    "widen_interval",
]

#: A share with its lower and upper limit.
Interval = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Judgement:
    """What is known of the labels of some rows.

    Parameters
    ----------
    noise : NoiseModel
        The noise of all labels together.
    predicted : array of int
        The class that each row most likely is.
    wrong : array
        The probability that its label is wrong.
    share : Interval
        The share of wrong labels.
    share_by_label : list of Interval
        The same among the rows of each given label.
    """

    noise: NoiseModel
    predicted: NDArray[np.intp]
    wrong: Array
    share: Interval
    share_by_label: list[Interval]


def judge_labels(
    unseen: OutOfFold,
    noise: NoiseModel,
    by_source: NoiseBySource | None,
    held: NDArray[np.intp],
) -> Judgement:
    """Judge labels by their sources where these are known, and all alike where not.

    Parameters
    ----------
    unseen : OutOfFold
        What models say that have not seen them.
    noise : NoiseModel
        How noisy labels are.
    by_source : NoiseBySource or None
        The same by source.
    held : array of int
        The labels as the data have them now, after any review.

    Returns
    -------
    Judgement
        Of labels that a person has reviewed it is certain. Nothing is excluded of rows that models may remember.
    """
    review, sources, twins = unseen.context.reviewed, unseen.context.sources, unseen.context.twins
    weight, cases = unseen.judged_weight, count_rows_per_case(unseen)
    counted = weight if review is None else np.where(review.is_reviewed, 0.0, weight)
    told = unseen.posterior, unseen.labels, counted
    if by_source is None or sources is None:
        part = None if unseen.judged.all() else unseen.judged
        judged = judge_alike(noise, *told, rows_per_case=cases, judged=part)
    else:
        judged = judge_by_source(by_source, sources, *told, rows_per_case=cases)
    if review is not None:
        judged = settle_reviewed(judged, review, held, weight)
    return judged if twins is None else doubt_judgement(judged, twins.share)


# ---- labels that are all alike ----


def judge_alike(
    noise: NoiseModel,
    posterior: Array,
    labels: NDArray[np.intp],
    weight: Array,
    *,
    rows_per_case: float = 1.0,
    judged: NDArray[np.bool_] | None = None,
) -> Judgement:
    """Judge labels of which nobody knows who gave them: one noise is that of all.

    Parameters
    ----------
    noise : NoiseModel
        That noise.
    posterior : array of shape (n_rows, n_classes)
        The twisted posterior, out of fold.
    labels : array of int
        The index of each row's label.
    weight : array
        How much each row counts.
    rows_per_case : float, default 1
        How many rows count as one, as those of a group err together.
    judged : array of bool or None
        The rows that have a posterior; None: all of them. Of others nothing is known: no probability, NaN, and no other
        class than their label.

    Returns
    -------
    Judgement
    """
    if judged is not None:
        rows = np.flatnonzero(judged)
        found = judge_alike(noise, posterior[rows], labels[rows], weight[rows], rows_per_case=rows_per_case)
        predicted, wrong = labels.copy(), np.full(len(labels), np.nan)
        predicted[rows], wrong[rows] = found.predicted, found.wrong
        return replace(found, predicted=predicted, wrong=wrong)

    def bound(weight_here: Array) -> Interval:
        share, low, high = noise.share_wrong(posterior, labels, weight_here)
        return share, low, high if noise.is_given else _keep_unseen(high, weight_here, rows_per_case)

    return Judgement(
        noise=noise,
        predicted=noise.clean(posterior).argmax(axis=1),
        wrong=noise.probability_wrong(posterior, labels),
        share=bound(weight),
        share_by_label=[bound(np.where(labels == label, weight, 0.0)) for label in range(posterior.shape[1])],
    )


def doubt_judgement(judged: Judgement, share: float) -> Judgement:
    """Return a judgement that excludes nothing of a share of the rows: models may have remembered their labels.

    Parameters
    ----------
    judged : Judgement
        What is known if models know all that they say.
    share : float
        The share of the rows that nearly repeat rows which models have seen.

    Returns
    -------
    Judgement
        Its shares may be as high as if all labels of such rows were wrong.
    """
    return replace(
        judged,
        noise=judged.noise if judged.noise.is_given else judged.noise.drop_upper_limits(),
        share=widen_interval(judged.share, share),
        share_by_label=[widen_interval(one, share) for one in judged.share_by_label],
    )


def settle_reviewed(judged: Judgement, review: ReviewedRows, labels: NDArray[np.intp], weight: Array) -> Judgement:
    """Return what is known of labels some of which a person has reviewed: of these it is certain.

    Parameters
    ----------
    judged : Judgement
        What is known of the labels as they were given, reviewed rows not counted in its shares.
    review : ReviewedRows
        The rows that were reviewed.
    labels : array of int
        The labels as the data have them now: of a reviewed row the one that was given, or the one decided on.
    weight : array
        How much each row counts.

    Returns
    -------
    Judgement
        Of the labels as the data have them: one that was found wrong counts as wrong until it is changed.
    """
    is_open = ~review.is_reviewed
    is_wrong = review.is_reviewed & (labels != review.labels)

    def settle(interval: Interval, counted: NDArray[np.bool_]) -> Interval:
        left, known = (average(one[counted].astype(np.float64), weight[counted]) for one in (is_open, is_wrong))
        share, low, high = (known + left * one for one in interval)
        return share, low, high

    return replace(
        judged,
        predicted=np.where(is_open, judged.predicted, review.labels).astype(np.intp),
        wrong=np.where(is_open, judged.wrong, is_wrong),
        share=settle(judged.share, np.ones_like(is_open)),
        share_by_label=[settle(one, labels == label) for label, one in enumerate(judged.share_by_label)],
    )


# ---- labels by their sources ----


def judge_by_source(
    by_source: NoiseBySource,
    votes: LabelSources,
    posterior: Array,
    labels: NDArray[np.intp],
    weight: Array,
    *,
    rows_per_case: float = 1.0,
) -> Judgement:
    """Judge every label by the noise of its source, and by all labels of its item.

    A row is taken to be what its features alone say, unless its item has several labels or its own is likelier wrong
    than right: a label must not be called right for the reason that it was given.

    Parameters
    ----------
    by_source : NoiseBySource
        What each source gets wrong.
    votes : LabelSources
        The source and the item of each row.
    posterior : array of shape (n_rows, n_classes)
        The twisted posterior, out of fold, the same for all rows of an item.
    labels : array of int
        The index of each row's label.
    weight : array
        How much each row counts.
    rows_per_case : float, default 1
        How many rows count as one, as those of a group err together.

    Returns
    -------
    Judgement
        Its noise is that of all labels as they are, whatever they weighed where the posterior was learned.
    """
    truth = by_source.find_truth(posterior, labels, votes.index, votes.items)[votes.items]
    wrong = np.clip(1.0 - truth[np.arange(len(labels)), labels], 0.0, 1.0)
    has_several = np.bincount(votes.items)[votes.items] > 1
    by_features = by_source.noise.clean(posterior).argmax(axis=1)
    noise = _pool_noise(by_source, votes, truth, labels, weight)
    share = average(wrong, weight)
    overall = share, *bound_share(share, by_source, noise, posterior, labels, weight, rows_per_case)
    by_label = []
    for label in range(posterior.shape[1]):
        here = np.where(labels == label, weight, 0.0)
        share_here = average(wrong, here)
        low, high = move_interval(share_here, overall)
        by_label.append((share_here, low, _keep_unseen(high, here, rows_per_case)))
    return Judgement(
        noise=noise,
        predicted=np.where(has_several | (wrong > 0.5), truth.argmax(axis=1), by_features),
        wrong=wrong,
        share=overall,
        share_by_label=by_label,
    )


def bound_share(
    share: float,
    by_source: NoiseBySource,
    noise: NoiseModel,
    posterior: Array,
    labels: NDArray[np.intp],
    weight: Array,
    rows_per_case: float = 1.0,
) -> tuple[float, float]:
    """Return the 95 % interval of the share of wrong labels of all sources together.

    Parameters
    ----------
    share : float
        That share.
    by_source : NoiseBySource
        What each source gets wrong.
    noise : NoiseModel
        The noise of all labels together.
    posterior : array of shape (n_rows, n_classes)
        The twisted posterior, out of fold.
    labels : array of int
        The index of each row's label.
    weight : array
        How much each row counts.
    rows_per_case : float, default 1
        How many rows count as one, as those of a group err together.

    Returns
    -------
    low, high : float
        From 0 to no less than what all labels leave open where no noise is found.
    """
    pooled = noise.share_wrong(posterior, labels, weight)
    low, high = _bound_mean(share, pooled, by_source.shares, by_source.intervals, by_source.counts)
    if not noise.found:
        low, high = 0.0, max(high, pooled[2])
    return low, _keep_unseen(high, weight, rows_per_case)


def _pool_noise(
    by_source: NoiseBySource, votes: LabelSources, truth: Array, labels: NDArray[np.intp], weight: Array
) -> NoiseModel:
    """Return the noise of all labels as they are.

    Labels may have weighed more or less where the posterior was learned, which changes the share of wrong ones. That a
    source stands out is evidence of noise, and so are two labels of an item that differ, as an item has one truth.
    """
    noise = by_source.noise
    found = bool(noise.found or by_source.stands_out.any() or _has_disagreeing_labels(votes.items, labels))
    mass = _sum_truth_by_source(len(by_source.names), votes, truth, weight)
    class_shares = 1.0 - np.diagonal(by_source.matrices, axis1=1, axis2=2)
    shares = [average(share, of_class) for share, of_class in zip(class_shares.T, mass.T, strict=True)]

    def bound(true: int, pooled: Interval) -> tuple[float, float]:
        own = class_shares[:, true], by_source.class_intervals[:, true], mass[:, true]
        low, high = _bound_mean(shares[true], pooled, *own)
        return (low, high) if found else (0.0, max(high, pooled[2]))

    share = average(np.array(shares), mass.sum(axis=0))
    of_all = by_source.shares, by_source.intervals, by_source.counts
    return noise.pool_sources(
        share,
        _bound_mean(share, (noise.share, *noise.interval), *of_all),
        np.array(shares),
        np.array([bound(true, one) for true, one in enumerate(noise.list_class_shares())]),
        found=found,
    )


def _has_disagreeing_labels(items: NDArray[np.intp], labels: NDArray[np.intp]) -> bool:
    """Tell whether labels of one item differ."""
    label_of_item = np.zeros(int(items.max(initial=-1)) + 1, dtype=np.intp)
    label_of_item[items] = labels
    return bool((labels != label_of_item[items]).any())


def _sum_truth_by_source(n_sources: int, votes: LabelSources, truth: Array, weight: Array) -> Array:
    """Return how many items of each true class each source has labelled, of shape (n_sources, n_classes)."""
    known = votes.index != UNKNOWN
    return np.column_stack(
        [add_up_by_group((of_class * weight)[known], votes.index[known], n_sources) for of_class in truth.T]
    )


def _bound_mean(mean: float, pooled: Interval, shares: Array, intervals: Array, mass: Array) -> tuple[float, float]:
    """Return the interval of the mean of the shares of sources, each with its mass.

    Each source may be off by itself, and all may be off together, as they are where the noise of all labels is: by as
    many points as that, by as much in log-odds, or by as much as the intervals of the sources allow, whichever is
    least. Both errors add up as independent ones do.
    """
    low, high = move_interval(mean, pooled)
    part = mass / max(add_up(mass), SAFE_MARGIN)

    def add_errors(together: float, own: Array) -> float:
        errors = np.sort(part * own)
        return float(np.hypot(min(together, errors.sum()), np.sqrt((errors**2).sum())))

    below = add_errors(min(mean - low, pooled[0] - pooled[1]), shares - intervals[:, 0])
    above = add_errors(min(high - mean, pooled[2] - pooled[0]), intervals[:, 1] - shares)
    return max(0.0, mean - below), min(1.0, mean + above)


# ---- shares and their intervals ----


def widen_interval(interval: Interval, share: float) -> Interval:
    """Return a share whose upper limit excludes nothing of a part of the rows.

    Parameters
    ----------
    interval : Interval
        The share with its limits.
    share : float
        That part.

    Returns
    -------
    Interval
    """
    middle, low, high = interval
    return middle, low, high + share * (1.0 - high)


def find_unseen_share(n_rows: float) -> float:
    """Return the share of wrong labels that would show in none of so many rows in one case of twenty.

    Parameters
    ----------
    n_rows : float
        The number of rows, or of cases that err independently.

    Returns
    -------
    float
        About three by the number of rows: no estimate from so many rows excludes less.
    """
    return -float(np.expm1(np.log(1.0 - CONFIDENCE) / max(1, n_rows)))


def _keep_unseen(high: float, weight: Array, rows_per_case: float = 1.0) -> float:
    """Return the upper limit of a share, which ends no lower than rows can tell."""
    return max(high, find_unseen_share(np.count_nonzero(weight) / rows_per_case))
