"""What models say of rows that they have not seen, written down."""

import numpy as np

from untwist.out_of_fold import JudgedParts, OutOfFold, RowContext

__all__ = ["make_unseen"]


def make_unseen(posterior, labels=None, weight=None, *, held_out=None, by_fold=None, classes=None, **context):
    """Return an `OutOfFold` of one fold; labels are 0, 1, 0, 1, ... and weights 1, unless told."""
    posterior = np.asarray(posterior, dtype=float)
    n_rows, n_classes = posterior.shape
    return OutOfFold(
        classes=np.array(list("abcdef")[:n_classes]) if classes is None else np.asarray(classes),
        posterior=posterior,
        labels=np.arange(n_rows) % 2 if labels is None else np.asarray(labels, dtype=np.intp),
        weight=np.ones(n_rows) if weight is None else np.asarray(weight, dtype=float),
        held_out=np.ones((1, n_rows)) if held_out is None else np.asarray(held_out, dtype=float),
        context=RowContext(**context),
        by_fold=None if by_fold is None else JudgedParts(*map(np.asarray, by_fold)),
    )
