"""Stand-in: noise by source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from untwist.arguments import Array
from untwist.noise.matrix import MatrixUntwisting
from untwist.noise.untwisting import Untwisting

__all__ = ["NoiseBySource", "estimate_by_source"]


@dataclass(frozen=True, eq=False)
class NoiseBySource:
    """Noise by source."""

    names: NDArray[Any]
    counts: Array
    matrices: Array
    common: Array
    shares: Array
    intervals: Array
    class_intervals: Array
    stands_out: NDArray[np.bool_]
    reliability: Array
    evidence: float
    untwisting: Untwisting | MatrixUntwisting

    def twist(self, clean: Array, sources: NDArray[np.intp]) -> Array:
        """Return what labels follow."""
        matrices = np.concatenate([self.matrices, self.common[None]])[sources]
        return np.einsum("nj,njk->nk", clean, matrices)


def estimate_by_source(posterior, labels, sources, *, names, noise, weight=None, items=None, pooled_weight=None):
    """Estimate."""
    n_classes = posterior.shape[1]
    clean = noise.clean(posterior) if n_classes > 2 else noise.clean(logit(posterior[:, 1]))
    if n_classes == 2:
        clean = np.column_stack([1 - clean, clean])
    weight = np.ones(len(labels)) if weight is None else weight
    n_sources = len(names)
    matrices = np.tile(noise.matrix, (n_sources + 1, 1, 1))
    common = noise.matrix
    for _ in range(50):
        resp = clean * matrices[sources][np.arange(len(labels)), :, labels]
        resp /= resp.sum(axis=1, keepdims=True)
        counts = np.zeros((n_sources + 1, n_classes, n_classes))
        np.add.at(counts, (sources, slice(None), labels), resp * weight[:, None])
        counts[-1] = counts.sum(axis=0)
        common = (counts[-1] + noise.matrix) / (counts[-1] + noise.matrix).sum(axis=1, keepdims=True)
        counts = counts + 5 * common
        matrices = counts / counts.sum(axis=2, keepdims=True)
    counts = np.bincount(sources[sources >= 0], weight[sources >= 0], minlength=n_sources)
    shares = 1 - matrices[:-1].diagonal(axis1=1, axis2=2).mean(axis=1)
    clear = np.maximum(np.linalg.det(matrices[:-1]), 0.01)
    return NoiseBySource(
        names, counts, matrices[:-1], common, shares, np.column_stack([shares, shares]),
        np.repeat(1 - matrices[:-1].diagonal(axis1=1, axis2=2)[:, :, None], 2, axis=2),
        shares > 0.25, clear / clear.max(), 1.0, noise,
    )
