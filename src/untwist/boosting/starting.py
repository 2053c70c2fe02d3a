"""Where boosting begins: at the score of the base rate, as other boosters do, where it does not begin at 0."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from untwist.arguments import Array
from untwist.boosting.engines.compiled import scale_weights
from untwist.data.workers import Workers, solo
from untwist.theory.links import Link, LogitLink

__all__ = ["find_prior_score", "weigh_classes_exactly"]

#: Weights are summed as whole multiples of this share of a row, so that neither order nor workers show in the sum.
SHARE_OF_ROW = 2.0**-24

#: A class without rows counts as half a row, so that its logarithm is finite.
LEAST_ROWS = 0.5

#: A base rate counts as no further from 1/2 than these log-odds, 1 in 1,000: weights of 17 bits hold hardly less.
LARGEST_LOG_ODDS = math.log(999.0)

#: Scores that are log-odds begin no further from 0 than this: far from it, rows of the rare class hardly weigh anything.
LARGEST_LOGIT_START = 4.0

#: Boosting begins within this share of the clip, beyond which rows weigh nothing.
LARGEST_SHARE_OF_CLIP = 1.0 - 2.0**-20


def weigh_classes_exactly(labels: NDArray[np.uint32], weight: Array, n_classes: int, workers: Workers = solo) -> Array:
    """Return the weight of each class in rows, the same bits for any order of the rows, whichever worker has them.

    Parameters
    ----------
    labels : array of uint32
        The index of each row's class.
    weight : array
        The weight of each row. Where weights do not count copies of rows, the heaviest is a row or more than half one.
    n_classes : int
        The number of classes.
    workers : Workers
        Who else has rows.

    Returns
    -------
    array of shape (n_classes,)

    Examples
    --------
    >>> weigh_classes_exactly(np.array([0, 1, 1], dtype=np.uint32), np.array([1.0, 0.5, 0.25]), 2)
    array([1.  , 0.75])
    """
    scaled, _ = scale_weights(weight, workers)
    whole = np.rint(scaled / SHARE_OF_ROW).astype(np.int64)
    sums = np.array([whole[labels == label].sum() for label in range(n_classes)], dtype=np.int64)
    return np.asarray(workers.sum(sums) * SHARE_OF_ROW, dtype=np.float64)


def find_prior_score(link: Link, positive: float, negative: float) -> float:
    """Return the score at which the twisted posterior is the base rate, within the clip of the link.

    Parameters
    ----------
    link : Link
        The link that is boosted with.
    positive, negative : float
        The weight of the positive class, and of all others, in rows.

    Returns
    -------
    float
        0 where both weigh the same, and where no score within the clip tells one base rate from another.

    Examples
    --------
    >>> from untwist.theory.links import ClippedLink
    >>> from untwist.theory.losses import AlphaLoss
    >>> link = ClippedLink(AlphaLoss(2.0))
    >>> start = find_prior_score(link, 2.0, 98.0)
    >>> round(start, 4), link.inverse(start).round(4)
    (-1.9423, np.float64(0.02))
    """
    log_odds = float(np.log(max(positive, LEAST_ROWS) / max(negative, LEAST_ROWS)))
    if isinstance(link, LogitLink):
        return float(np.clip(link.loss.alpha * log_odds, -LARGEST_LOGIT_START, LARGEST_LOGIT_START))
    if math.isinf(getattr(link.loss, "alpha", 1.0)):
        return 0.0  # All scores within the clip have a posterior of 1/2.
    base_rate = expit(np.clip(log_odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS))
    most = LARGEST_SHARE_OF_CLIP * link.clip
    return float(np.clip(link.link(base_rate), -most, most))
