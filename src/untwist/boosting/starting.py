"""Where boosting begins: at the score of the base rate, as other boosters do, where it does not begin at 0."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from untwist.arguments import Array
from untwist.boosting.engines.compiled import MOST_COPIES, scale_weights
from untwist.data.workers import Workers, solo
from untwist.sums import is_broadcast
from untwist.theory.links import Link, LogitLink
from untwist.theory.losses import AlphaLoss

#: A sum of weights that are whole numbers stays below 2 to the power of this, so that it is exact.
BITS_OF_SUM = 62

#: A class without rows counts as half a row, so that its logarithm is finite.
LEAST_ROWS = 0.5

#: Base rates beyond 1 in 1,000, on either side, count as that: weights of common rows would round to almost nothing.
LARGEST_LOG_ODDS = math.log(999.0)

#: Scores that are log-odds begin no further from 0 than this: far from it, rows of the rare class hardly weigh.
LARGEST_LOGIT_START = 4.0

#: Boosting begins within this share of the clip, beyond which rows weigh nothing.
LARGEST_SHARE_OF_CLIP = 1.0 - 2.0**-20


def weigh_classes_exactly(labels: NDArray[np.uint32], weight: Array, n_classes: int, workers: Workers = solo) -> Array:
    """Return the weight of each class, and of all others, the same bits for any order of rows and any workers.

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
    array of shape (n_classes, 2)
        The weight of the class and that of all others, in rows.

    Examples
    --------
    >>> weigh_classes_exactly(np.array([0, 1, 1], dtype=np.uint32), np.array([1.0, 0.5, 0.25]), 2)
    array([[1.  , 0.75],
           [0.75, 1.  ]])
    """
    scaled, _ = scale_weights(weight, workers)
    n_rows = int(workers.sum(np.array([np.count_nonzero(scaled)]))[0])
    # Sums of whole numbers are the same in any order.
    share_of_row = math.ldexp(1.0, (n_rows * MOST_COPIES).bit_length() - BITS_OF_SUM)
    if is_broadcast(scaled):
        sums = np.bincount(labels, minlength=n_classes) * np.rint(scaled[0] / share_of_row).astype(np.int64)
    else:
        whole = np.rint(scaled / share_of_row).astype(np.int64)
        sums = np.array([whole[labels == label].sum() for label in range(n_classes)], dtype=np.int64)
    of_classes = workers.sum(sums)
    return np.column_stack([of_classes, of_classes.sum() - of_classes]) * share_of_row


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
    alpha = link.loss.alpha if isinstance(link.loss, AlphaLoss) else 1.0
    if isinstance(link, LogitLink):
        return float(np.clip(alpha * log_odds, -LARGEST_LOGIT_START, LARGEST_LOGIT_START))
    if math.isinf(alpha):
        return 0.0  # All scores within the clip have a posterior of 1/2.
    # A swap of the classes turns the start over to the last bit, as links of the alpha-loss are symmetric.
    if isinstance(link.loss, AlphaLoss) and positive > negative:
        return -find_prior_score(link, negative, positive)
    base_rate = expit(np.clip(log_odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS))
    most = LARGEST_SHARE_OF_CLIP * link.clip
    return float(np.clip(link.link(base_rate), -most, most))
