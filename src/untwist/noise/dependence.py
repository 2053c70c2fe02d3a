"""Rows of a group that err together: how many of them count as one independent case."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.sums import add_up, add_up_by_group

__all__ = ["find_rows_per_case"]


def find_rows_per_case(
    posterior: Array, labels: NDArray[Any], weight: Array, groups: NDArray[Any] | None = None
) -> float:
    """Find how many rows count as one case, by how far the rows of a group miss their labels in the same direction.

    It is what survey statistics call the design effect: the variance of the sum of all residuals, taken group by group,
    over that of independent rows. Where the rows of a group are copies of each other it is the size of groups; where
    they err independently it is 1.

    Parameters
    ----------
    posterior : array of shape (n_rows, n_classes)
        The twisted posterior, out of fold.
    labels : array of int of shape (n_rows,)
        The index of each row's label.
    weight : array of shape (n_rows,)
        How much each row counts.
    groups : array of int of shape (n_rows,) or None
        Equal for rows of one group; None where nothing is known of groups, and each row is a case.

    Returns
    -------
    float
        At least 1, and at most the size of the group that a row is in on average.

    Examples
    --------
    >>> groups = np.repeat(np.arange(50), 4)
    >>> labels = np.arange(50) % 2
    >>> find_rows_per_case(np.full((200, 2), 0.5), np.repeat(labels, 4), np.ones(200), groups)
    4.0
    """
    if groups is None:
        return 1.0
    counted = np.flatnonzero(weight)
    names, group = np.unique(groups[counted], return_inverse=True)
    # A row of weight 2 is two copies; weights that are shares of a whole say nothing about the number of rows.
    weight_here = weight[counted] * max(1.0, len(counted) / add_up(weight[counted]))
    together = apart = 0.0
    for label, column in enumerate(posterior[counted].T):
        residual = (labels[counted] == label) - column
        together += add_up(add_up_by_group(weight_here * residual, group, len(names)) ** 2)
        apart += add_up(weight_here * residual**2)
    size = add_up_by_group(weight_here, group, len(names))
    most = add_up(size**2) / add_up(weight_here)
    return float(np.clip(together / apart, 1.0, max(most, 1.0))) if apart > 0 else 1.0
