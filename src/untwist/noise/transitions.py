"""Which label stands for which class how often, estimated from posteriors of rows that a model has not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from untwist.noise.matrix import MatrixUntwisting, find_interval

__all__ = ["estimate_transitions"]


def estimate_transitions(
    posterior: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None = None, *, matrix: ArrayLike | None = None
) -> MatrixUntwisting:
    """Return the transition matrices that fit the labels; the slopes and offsets only where `matrix` is known."""
    if matrix is not None:
        return MatrixUntwisting.from_matrix(matrix)
    # A placeholder with one rate for all classes, until the estimate of the matrix comes.
    twisted = np.asarray(posterior, dtype=np.float64)
    given = np.asarray(labels, dtype=np.intp)
    weight = np.ones(len(given)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    n_classes = twisted.shape[1]
    identity = np.eye(n_classes)
    rates = np.linspace(0.0, 0.55, 12)
    matrices = np.array([(1 - r) * identity + r * (1 - identity) / (n_classes - 1) for r in rates])
    least = min(0.005, 0.05 / n_classes)
    ones = np.ones((len(rates), n_classes))
    whole = MatrixUntwisting(
        np.full(len(rates), 1 / len(rates)),
        matrices,
        ones,
        0 * ones,
        least,
        0.0,
        False,
        0.0,
        (0.0, 0.0),
        ones[0],
        np.ones((n_classes, 2)),
        0.5,
    )
    rows = np.arange(len(given))
    fit = np.array(
        [
            weight @ np.log((clean @ one)[rows, given])
            - (1 - np.mean((clean**2).sum(1))) / (1 - (clean.mean(0) ** 2).sum()) / 0.15
            for clean, one in zip(whole._untwist(twisted), matrices, strict=True)
        ]
    )
    weights = np.exp(fit - fit.max())
    weights /= weights.sum()
    low, high = find_interval(rates, weights)
    share = float(weights @ rates)
    found = bool(fit.max() - fit[0] > 2)
    kept = weights > 1e-3
    return MatrixUntwisting(
        weights[kept] / weights[kept].sum(),
        matrices[kept],
        ones[kept],
        0 * ones[kept],
        least,
        float(fit.max() - fit[0]),
        found,
        share,
        (low, high),
        np.full(n_classes, share),
        np.tile([low, high], (n_classes, 1)),
        0.1,
    )
