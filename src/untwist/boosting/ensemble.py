"""What a run of boosting leaves behind: weak hypotheses, their coefficients, and how well held-out rows fared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from untwist.arguments import Array
from untwist.boosting.algorithm import Hypothesis, staged_scores
from untwist.boosting.forest import Forest
from untwist.display import abbreviate


def is_stale(losses: Array, patience: int) -> bool:
    """Tell whether a validation loss was at its lowest more than `patience` rounds ago.

    Rounds that were not validated are NaN. Without patience, or without any loss, nothing is stale.
    """
    if not patience or not np.isfinite(losses).any():
        return False
    return len(losses) - int(np.nanargmin(losses)) > patience


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The rounds of one class against the rest, or of all classes together, with a column of scores for each.

    Parameters
    ----------
    hypotheses : sequence of Hypothesis
        The weak hypotheses, one per round.
    leverages, edges : arrays
        Their coefficients and their edges.
    losses, errors : arrays
        Log-loss and error of the validation rows after each round; empty where there were none. They may know of later
        rounds, too, that were not kept.
    forest : Forest or None
        The hypotheses as flat arrays, where they are trees of an engine that grows forests.
    start : float
        The score that the rounds began at, which no hypothesis has.
    """

    hypotheses: Sequence[Hypothesis]
    leverages: Array
    edges: Array
    losses: Array
    errors: Array
    forest: Forest | None = None
    start: float = 0.0

    __repr__ = abbreviate

    @classmethod
    def from_forest(cls, forest: Forest, losses: Array, errors: Array, start: float = 0.0) -> Ensemble:
        """Return the trees of a forest as an ensemble."""
        return cls(forest.trees(), forest.leverage, forest.edge, losses, errors, forest, start)

    def __len__(self) -> int:
        return len(self.edges)

    def keep_first(self, count: int) -> Ensemble:
        """Return the first `count` rounds, with all that is known of the validation rows."""
        if self.forest is not None:
            return Ensemble.from_forest(self.forest.keep_first(count), self.losses, self.errors, self.start)
        return replace(
            self, hypotheses=self.hypotheses[:count], leverages=self.leverages[:count], edges=self.edges[:count]
        )

    def keep_best(self) -> Ensemble:
        """Return the rounds up to the lowest validation loss; all of them where it is not known."""
        if not np.isfinite(self.losses).any():
            return self
        return self.keep_first(int(np.nanargmin(self.losses)) + 1)

    def append(self, later: Ensemble) -> Ensemble:
        """Return these rounds, then those of a run that went on where this one ended."""
        n_rounds = len(self)
        losses, errors = self.losses[:n_rounds], self.errors[:n_rounds]
        if len(losses) or len(later.losses):
            not_validated = np.full(n_rounds - len(losses), np.nan)
            losses = np.concatenate([losses, not_validated, later.losses])
            errors = np.concatenate([errors, not_validated, later.errors])
        if self.forest is not None and later.forest is not None:
            return Ensemble.from_forest(self.forest.append(later.forest), losses, errors, self.start)
        return Ensemble(
            hypotheses=[*self.hypotheses, *later.hypotheses],
            leverages=np.concatenate([self.leverages, later.leverages]),
            edges=np.concatenate([self.edges, later.edges]),
            losses=losses,
            errors=errors,
            start=self.start,
        )

    def iterate_rounds(self) -> Iterator[tuple[float, Hypothesis]]:
        """Yield (leverage, hypothesis) of each round."""
        return zip(self.leverages, self.hypotheses, strict=True)

    @property
    def whole_forest(self) -> Forest | None:
        """The trees, with the start as part of the first one: their scores are those of the ensemble."""
        return self.forest.shift(self.start) if self.forest is not None and self.start else self.forest

    def scores(self, X: Any, n_jobs: int | None = None, rounds: tuple[int, int] | None = None) -> Array:
        """Return the scores H(x) of the rows of X; with `rounds` only those from the first to before the second."""
        first, last = (0, len(self)) if rounds is None else (min(one, len(self)) for one in rounds)
        if self.forest is not None:
            return self.forest.scores(X, first, last, n_jobs=n_jobs, start=self.start)
        scores = np.full(X.shape[0], self.start)
        chosen = islice(self.iterate_rounds(), first, last)
        for scores in staged_scores(chosen, X, self.start):  # noqa: B007 - The last stage is the answer.
            pass
        return scores

    def staged_scores(self, X: Any) -> Iterator[Array]:
        """Yield the scores after each round."""
        return staged_scores(self.iterate_rounds(), X, self.start)
