r"""The alpha-loss of several classes, by which all of them are boosted together, and its link.

This is our extension: the paper defines the alpha-loss, and proves its theorems, for two classes. Scores H, one per
class, become a posterior p = softmax(H), and a row with label y has the loss

    l(y, H) = alpha / (alpha - 1) * (1 - p_y^((alpha - 1) / alpha)),

which is -ln p_y at alpha = 1. For two classes it is the paper's alpha-loss of p_y. As there, the minimiser tilts: where
labels follow the twisted posterior q, the expected loss is smallest at p proportional to q^alpha (`tilt_posterior`), so
that scores tell q as softmax(H / alpha) (`find_twisted_posterior`). `SoftmaxLink` takes the place of the paper's links.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_softmax, softmax

from untwist.arguments import Array, check_numbers, check_positive, check_probabilities
from untwist.theory.losses import AlphaLoss

__all__ = ["SoftmaxLink", "find_gradient", "find_loss", "find_twisted_posterior", "tilt_posterior"]


def find_loss(scores: ArrayLike, labels: ArrayLike, alpha: float) -> Array:
    """Return the alpha-loss of each row.

    Parameters
    ----------
    scores : array_like of shape (n_rows, n_classes)
        A score per class.
    labels : array_like of int, of shape (n_rows,)
        The index of each row's class.
    alpha : float
        Above 0, and finite.

    Returns
    -------
    ndarray of shape (n_rows,)
        Losses, none of them negative.

    Examples
    --------
    >>> find_loss([[0.0, 0.0, 0.0, 0.0]], [2], alpha=2.0)
    array([1.])
    """
    log_p = _log_posterior_of_labels(scores, labels)
    power = 1.0 - 1.0 / check_positive("alpha", alpha)
    return -log_p if power == 0.0 else np.asarray(-np.expm1(power * log_p) / power)


def find_gradient(scores: ArrayLike, labels: ArrayLike, alpha: float) -> Array:
    """Return the gradient of the loss of each row with respect to its scores: p_y^((alpha-1)/alpha) * (p - e_y).

    Parameters
    ----------
    scores, labels, alpha
        As for `find_loss`.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        The numbers of a row add up to 0; that of its label alone is not positive.

    Examples
    --------
    >>> find_gradient([[0.0, 0.0, 0.0, 0.0]], [2], alpha=2.0)
    array([[ 0.125,  0.125, -0.375,  0.125]])
    """
    table = check_numbers("scores", scores)
    log_p = _log_posterior_of_labels(table, labels)
    emphasis = np.exp((1.0 - 1.0 / check_positive("alpha", alpha)) * log_p)
    difference = np.asarray(softmax(table, axis=1))
    rows = np.arange(len(table))
    own = np.asarray(labels)
    difference[rows, own] = 0.0
    difference[rows, own] = -difference.sum(axis=1)  # This is p_y - 1 without the rounding of 1 - p_y.
    return np.asarray(emphasis[:, None] * difference)


def tilt_posterior(posterior: ArrayLike, alpha: float) -> Array:
    """Return the posterior p at which the expected loss of labels that follow `posterior` is smallest.

    Parameters
    ----------
    posterior : array_like of shape (n_rows, n_classes)
        The distribution q of the labels; each row adds up to 1.
    alpha : float
        Above 0, and finite.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        p proportional to q^alpha, row by row.

    Examples
    --------
    >>> tilt_posterior([[0.2, 0.4, 0.4]], alpha=2.0).round(3)
    array([[0.111, 0.444, 0.444]])
    """
    q = check_probabilities("posterior", posterior)
    power = (q / q.max(axis=1, keepdims=True)) ** check_positive("alpha", alpha)
    return np.asarray(power / power.sum(axis=1, keepdims=True))


def find_twisted_posterior(scores: ArrayLike, alpha: float) -> Array:
    """Return the posterior of the labels that scores stand for: softmax(H / alpha).

    Parameters
    ----------
    scores : array_like of shape (n_rows, n_classes)
        A score per class, boosted with the alpha-loss.
    alpha : float
        Above 0, and finite.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Each row adds up to 1.

    Examples
    --------
    >>> find_twisted_posterior([[0.0, np.log(4.0), np.log(4.0)]], alpha=2.0)
    array([[0.2, 0.4, 0.4]])
    """
    return np.asarray(softmax(check_numbers("scores", scores) / check_positive("alpha", alpha), axis=1))


class SoftmaxLink:
    """The link of classes that were boosted together: scores are logarithms of posteriors, up to a constant per row.

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


def _log_posterior_of_labels(scores: ArrayLike, labels: ArrayLike) -> Array:
    """Return ln p_y of each row."""
    log_p = log_softmax(check_numbers("scores", scores), axis=1)
    return np.asarray(log_p[np.arange(len(log_p)), np.asarray(labels)])
