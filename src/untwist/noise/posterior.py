"""From boosted scores to posteriors. `untwist.export.formulas` writes the same formulas down for other languages.

The link makes the twisted posterior of a score. Noise, where it is known or was estimated, is undone; where it is not,
the clean posterior is the one that the loss implies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, logit

from untwist.arguments import Array
from untwist.noise.model import NoiseModel
from untwist.theory.links import Link
from untwist.theory.losses import AlphaLoss
from untwist.theory.several_classes import SoftmaxLink

__all__ = ["TIE_BREAK", "Posterior", "find_posterior_floor", "turns_labels_over"]

#: Beyond the clip of the link all posteriors are alike. This much of the score is added to tell rows apart.
TIE_BREAK = 1e-6


def find_posterior_floor(n_rows: float) -> float:
    """Return how near to 0 or 1 a posterior may come that was learned from so many rows, by the rule of succession."""
    return 1.0 / (n_rows + 2.0)


def turns_labels_over(link: Link | SoftmaxLink) -> bool:
    """Tell whether the clean posterior is the complement of the twisted one, as it is for a negative alpha.

    Parameters
    ----------
    link : Link or SoftmaxLink
        The link that the scores were boosted with.

    Returns
    -------
    bool
        True for the alpha-loss with a negative alpha, which a SoftmaxLink never has.
    """
    return isinstance(link.loss, AlphaLoss) and link.loss.alpha < 0


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the scores of a boosted model say of the classes.

    Scores are one number per row for two classes. For more they have a column per class: of classes that were boosted
    together (`SoftmaxLink`), or each against the rest.

    Parameters
    ----------
    link : Link or SoftmaxLink
        The link that the scores were boosted with.
    floor : float
        Posteriors are kept within [floor, 1 - floor]; those of several classes before they are scaled to sum to one.
    class_weights : ndarray of shape (n_classes,)
        What the rows of each class were multiplied by. Noise is a matter of the labels without weights.
    noise : NoiseModel or None
        The noise to undo; None where the loss alone undoes it.
    """

    link: Link | SoftmaxLink
    floor: float
    class_weights: Array
    noise: NoiseModel | None = None

    @cached_property
    def shift(self) -> float:
        """What class weights have added to the log-odds of two classes."""
        if len(self.class_weights) > 2 or not (self.class_weights > 0).all():
            return 0.0
        return float(np.log(self.class_weights[1] / self.class_weights[0]))

    def twisted(self, scores: Array) -> Array:
        """Return the twisted posterior of every class, which the training labels, with their weights, follow.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Scores of the boosted model.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Each row sums to 1.
        """
        return self._normalise(self.link.inverse(scores), scores)

    def twisted_of_labels(self, scores: Array) -> Array:
        """Return the twisted posterior of every class without the weights of classes.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Scores of the boosted model.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Each row sums to 1.
        """
        if scores.ndim == 2:
            return self.unweigh(self.twisted(scores))
        positive = expit(self._find_log_odds(scores) - self.shift)
        return np.column_stack([1.0 - positive, positive])

    def unweigh(self, posterior: Array) -> Array:
        """Return posteriors of weighted classes as they are without the weights.

        Parameters
        ----------
        posterior : ndarray of shape (n_rows, n_classes)
            Posteriors of rows that were multiplied by `class_weights`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Each row sums to 1. A class of weight 0 keeps what it has, as nothing is known of it.
        """
        if (self.class_weights == 1).all():
            return posterior
        plain = posterior / np.where(self.class_weights > 0, self.class_weights, 1.0)
        return np.asarray(plain / plain.sum(axis=1, keepdims=True))

    def decision(self, scores: Array) -> Array:
        """Return the scores of the clean posterior: of two classes, positive ones speak for the second.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Scores of the boosted model.

        Returns
        -------
        ndarray of the shape of `scores`
            Where there is noise to undo, the log-odds of the clean posterior of two classes, and of several its
            logarithm, with the weights of classes.
        """
        if self.noise is None:
            return -scores if turns_labels_over(self.link) else scores
        if scores.ndim == 1:
            tie_break = TIE_BREAK * scores / (1.0 + np.abs(scores))
            return self.noise.clean_log_odds(self._find_log_odds(scores) + tie_break - self.shift) + self.shift
        clean = self.noise.clean(self.twisted_of_labels(scores))
        weights = np.where(self.class_weights > 0, self.class_weights, 1.0)
        weighted = np.log(np.maximum(clean, np.finfo(float).tiny)) + np.log(weights)
        return np.asarray(weighted - np.logaddexp.reduce(weighted, axis=1)[:, None])

    def clean(self, decision: Array) -> Array:
        """Return the clean posterior of every class at the values of `decision`.

        Parameters
        ----------
        decision : ndarray of shape (n_rows,) or (n_rows, n_classes)
            What `decision` returns.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Each row sums to 1.
        """
        if self.noise is not None:
            return self._normalise(expit(decision) if decision.ndim == 1 else np.exp(decision), decision)
        boosted = -decision if turns_labels_over(self.link) else decision
        return self._normalise(self.link.tilted(boosted), decision)

    def choose(self, decision: Array) -> Any:
        """Return the index of the class that the values of `decision` speak for; 0 at exactly 0.

        Parameters
        ----------
        decision : ndarray of shape (n_rows,) or (n_rows, n_classes)
            What `decision` returns.

        Returns
        -------
        ndarray of int of shape (n_rows,)
            One index per row.
        """
        return decision.argmax(axis=1) if decision.ndim == 2 else (decision > 0).astype(np.intp)

    def _find_log_odds(self, scores: Array) -> Array:
        """Return the log-odds of the twisted posterior of two classes."""
        return np.asarray(logit(np.clip(self.link.inverse(scores), self.floor, 1.0 - self.floor)))

    def _normalise(self, posterior: Array, scores: Array) -> Array:
        """Return a column per class that sum to one; classes beyond two come each against the rest."""
        within = posterior.clip(self.floor, 1.0 - self.floor)
        if within.ndim == 1:
            both = np.empty((len(within), 2))  # For a single row this is much faster than to stack columns.
            both[:, 0] = 1.0 - within
            both[:, 1] = within
            return both
        within = within + TIE_BREAK * self.floor * scores / (1.0 + np.abs(scores))
        return np.asarray(within / within.sum(axis=1, keepdims=True))
