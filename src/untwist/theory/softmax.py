"""The link of several classes that were boosted together: scores are logarithms of posteriors, up to a constant.

The paper's links are for two classes. This one is our extension: see `untwist.theory.several_classes`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax

from untwist.arguments import Array
from untwist.theory.losses import AlphaLoss

__all__ = ["SoftmaxLink"]


class SoftmaxLink:
    """A map from a row of scores, one per class, to posteriors.

    Parameters
    ----------
    loss : AlphaLoss
        The loss that the scores were boosted with. Its minimiser is proportional to the alpha-th power of the twisted
        posterior; scores are divided by alpha before they come here.

    Examples
    --------
    >>> SoftmaxLink(AlphaLoss(1.0)).inverse([[0.0, 0.0, np.log(2.0)]])
    array([[0.25, 0.25, 0.5 ]])
    """

    def __init__(self, loss: AlphaLoss) -> None:
        self.loss = loss

    def __repr__(self) -> str:
        return f"SoftmaxLink({self.loss!r})"

    def inverse(self, scores: ArrayLike) -> Array:
        """Return the twisted posterior of rows of scores.

        Parameters
        ----------
        scores : array_like of shape (n_rows, n_classes)
            A score per class.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Each row sums to 1.
        """
        return np.asarray(softmax(np.asarray(scores, dtype=np.float64), axis=1))

    def tilted(self, scores: ArrayLike) -> Array:
        """Return the Bayes tilted estimate of the clean posterior under the loss.

        Parameters
        ----------
        scores : array_like of shape (n_rows, n_classes)
            A score per class.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Each row sums to 1.
        """
        return self.inverse(self.loss.alpha * np.asarray(scores, dtype=np.float64))

    def margins(self, scores: ArrayLike) -> Array:
        """Return the log-odds of each class against the others.

        Parameters
        ----------
        scores : array_like of shape (n_rows, n_classes)
            A score per class.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Positive where a class is likelier than not.
        """
        table = np.asarray(scores, dtype=np.float64)
        others = np.empty_like(table)
        for column in range(table.shape[1]):
            others[:, column] = np.logaddexp.reduce(np.delete(table, column, axis=1), axis=1)
        return table - others

    def weights(self, margins: ArrayLike) -> Array:
        """Return how much of a label is yet to be learned, at log-odds with the sign of the label.

        Parameters
        ----------
        margins : array_like
            Log-odds, positive where the row agrees with its label.

        Returns
        -------
        ndarray
            Weights in [0, 1].
        """
        return np.asarray(expit(-np.asarray(margins, dtype=np.float64)))
