"""From boosted scores to posteriors. `untwist.export.scoring` writes the same formula down for other languages.

The link makes the twisted posterior of a score. Noise rates, where they are known or were estimated, untwist it; where
they are not, the clean posterior is the one that the loss implies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from untwist.arguments import Array
from untwist.noise.untwisting import Untwisting
from untwist.theory.links import Link
from untwist.theory.losses import AlphaLoss

__all__ = ["TIE_BREAK", "Posterior", "find_posterior_floor", "turns_labels_over"]

#: Beyond the clip of the link all posteriors are alike. This much of the score is added to tell rows apart.
TIE_BREAK = 1e-6


def find_posterior_floor(n_rows: float) -> float:
    """Return how near to 0 or 1 a posterior may come that was learned from so many rows, by the rule of succession."""
    return 1.0 / (n_rows + 2.0)


def turns_labels_over(link: Link) -> bool:
    """Tell whether the clean posterior is the complement of the twisted one, as it is for a negative alpha.

    Parameters
    ----------
    link : Link
        The link that the scores were boosted with.

    Returns
    -------
    bool
        True for the alpha-loss with a negative alpha.
    """
    return isinstance(link.loss, AlphaLoss) and link.loss.alpha < 0


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the scores of a boosted model say of the classes.

    Scores are one number per row for two classes, and a column per class, each against the rest, for more.

    Parameters
    ----------
    link : Link
        The link that the scores were boosted with.
    floor : float
        Posteriors are kept within [floor, 1 - floor].
    shift : float
        What class weights have added to the log-odds of two classes. Noise is a matter of the labels without weights.
    untwisting : Untwisting or None
        The noise to undo; None where the loss alone undoes it.
    """

    link: Link
    floor: float
    shift: float = 0.0
    untwisting: Untwisting | None = None

    def twisted_log_odds(self, scores: Array) -> Array:
        """Return the log-odds of the twisted posterior of each score.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Scores of the boosted model.

        Returns
        -------
        ndarray of the shape of `scores`
            Log-odds of posteriors within [floor, 1 - floor].
        """
        return np.asarray(logit(np.clip(self.link.inverse(scores), self.floor, 1.0 - self.floor)))

    def twisted(self, scores: Array) -> Array:
        """Return the twisted posterior of every class, which the training labels follow.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Scores of the boosted model.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            One posterior per class; each row sums to 1.
        """
        return self._normalise(self.link.inverse(scores), scores)

    def decision(self, scores: Array) -> Array:
        """Return the scores of the clean posterior: of two classes, positive ones speak for the second.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Scores of the boosted model.

        Returns
        -------
        ndarray of the shape of `scores`
            Scores of the clean posterior; its log-odds where there is noise to undo.
        """
        if self.untwisting is None:
            return -scores if turns_labels_over(self.link) else scores
        tie_break = TIE_BREAK * scores / (1.0 + np.abs(scores))
        twisted = self.twisted_log_odds(scores) + tie_break - self.shift
        return self.untwisting.clean_log_odds(twisted) + self.shift

    def clean(self, decision: Array) -> Array:
        """Return the clean posterior of every class at the values of `decision`.

        Parameters
        ----------
        decision : ndarray of shape (n_rows,) or (n_rows, n_classes)
            What `decision` returns.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            One posterior per class; each row sums to 1.
        """
        if self.untwisting is not None:
            return self._normalise(expit(decision), decision)
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

    def _normalise(self, posterior: Array, scores: Array) -> Array:
        """Return a column per class that sum to one; classes beyond two come each against the rest."""
        within = np.clip(posterior, self.floor, 1.0 - self.floor)
        if within.ndim == 1:
            return np.column_stack([1.0 - within, within])
        within = within + TIE_BREAK * self.floor * scores / (1.0 + np.abs(scores))
        return np.asarray(within / within.sum(axis=1, keepdims=True))
