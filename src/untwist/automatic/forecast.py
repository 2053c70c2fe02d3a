"""How many seconds a search has left: what it has taken so far, and what usually follows.

A search is candidates on the first folds, the best of them on the others, randomised trees, and the noise. Its rounds
are timed as they come. How many candidates there will be, how many rounds each makes and what a randomised tree costs
beside a round are what they mostly were; the forecast is corrected by whatever turns out otherwise. Nothing of it has
a part in the model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

__all__ = ["GROWING_SHARE", "USUAL_ALPHAS", "USUAL_DEPTHS", "Forecast"]

#: Rounds of a candidate, before the first one has ended.
USUAL_ROUNDS = 100
#: Candidates that are tried where the depth is open, and how many more where alpha is.
USUAL_DEPTHS = 3
USUAL_ALPHAS = 1
#: A candidate that has made more rounds than usual is taken to need this share of them more.
OVERTIME = 0.25
#: A randomised tree costs as many rounds of one fold as this times its depth in levels; to weigh all of them takes so
#: many seconds at least.
TREE_COST = 0.42
MIXING_SECONDS = 0.2
#: Of the time of randomised trees this share is growing; the rest is scoring and weighing them.
GROWING_SHARE = 0.6
#: Seconds to estimate the noise: at least, for each thousand rows and each class, and for each pair of classes.
NOISE_SECONDS = 0.15
NOISE_SECONDS_PER_THOUSAND = 0.0005
NOISE_SECONDS_PER_PAIR = 0.001
#: How likely it is that sources differ so much that everything is boosted once more.
CHANCE_OF_SECOND_FIT = 0.6
#: Seconds to judge the sources, at least and for each thousand rows.
JUDGING_SECONDS = 0.2
JUDGING_SECONDS_PER_THOUSAND = 0.02


class Forecast:
    """What a search has done, and how long the rest may take.

    Parameters
    ----------
    n_candidates : int
        Candidates that are to be expected.
    n_folds, n_first_folds : int
        All folds, and those that candidates are compared on.
    n_rows, n_classes : int
        The size of the table.
    most_rounds : int
        Rounds of a candidate, at most.
    n_trees : int
        The randomised trees of each fold; 0 for none.
    leaf_sizes : sequence of int
        The numbers of rows per leaf that are tried for them.
    has_sources : bool
        Whether a second fit may follow.
    now : function
        The clock, in seconds.
    """

    def __init__(
        self,
        *,
        n_candidates: int,
        n_folds: int,
        n_first_folds: int,
        n_rows: int,
        n_classes: int,
        most_rounds: int,
        n_trees: int = 0,
        leaf_sizes: Sequence[int] = (1,),
        has_sources: bool = False,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.n_candidates = n_candidates
        self.n_folds = n_folds
        self.n_first_folds = n_first_folds
        self.n_rows = n_rows
        self.n_classes = n_classes
        self.most_rounds = most_rounds
        self.n_trees = n_trees
        self.leaf_sizes = leaf_sizes
        self.has_sources = has_sources
        self.now = now
        self.ended_rounds: list[int] = []  # Of each candidate that has ended,
        self.ended_seconds: list[float] = []  # and how long it took.
        self.best_rounds = 0  # Of the candidate that was chosen, once it is.
        self.stage = "candidates"
        self.stage_began = now()
        self.done = 0.0  # The share of the stage, or of a candidate its rounds.

    def begin(self, stage: str, best_rounds: int = 0) -> None:
        """Begin a part of the search.

        Parameters
        ----------
        stage : "candidates", "folds", "trees" or "noise"
            The part; "candidates" for each of them.
        best_rounds : int
            The rounds of the candidate that was chosen, where it is.
        """
        self.stage = stage
        self.stage_began = self.now()
        self.done = 0.0
        self.best_rounds = best_rounds or self.best_rounds

    def end_candidate(self, n_rounds: int) -> None:
        """Keep what a candidate took.

        Parameters
        ----------
        n_rounds : int
            Rounds that it made.
        """
        self.ended_rounds.append(n_rounds)
        self.ended_seconds.append(self.now() - self.stage_began)
        self.begin("candidates")

    def tell(self, done: float) -> None:
        """Tell how far the part is that has begun.

        Parameters
        ----------
        done : float
            The rounds of a candidate; of other parts the share that is done.
        """
        self.done = done

    @property
    def seconds_left(self) -> float:
        """How long the rest may take; NaN before the first rounds."""
        if not self._rounds_timed:
            return math.nan
        stages = {"candidates": self._candidates, "folds": self._folds, "trees": self._trees, "noise": self._noise}
        names = list(stages)
        later = names[names.index(self.stage) + 1 :]
        left = self._finish_stage(stages[self.stage]()) + sum(stages[name]() for name in later)
        if self.has_sources:
            again = self._usual_rounds * self._seconds_per_round * self.n_folds + self._trees()
            judging = JUDGING_SECONDS + JUDGING_SECONDS_PER_THOUSAND * self.n_rows / 1000
            left += judging + CHANCE_OF_SECOND_FIT * (again + self._noise() + judging)
        return left

    def _finish_stage(self, usual: float) -> float:
        """Return how long the part that has begun still takes, by its own speed as soon as that is known."""
        if self.stage == "candidates":
            return usual
        elapsed = self.now() - self.stage_began
        if self.done > 0:
            return elapsed / self.done * (1.0 - self.done)
        return max(usual - elapsed, OVERTIME * elapsed)

    @property
    def _rounds_timed(self) -> float:
        current = self.done if self.stage == "candidates" else 0.0
        return sum(self.ended_rounds) + current

    @property
    def _seconds_per_round(self) -> float:
        """Seconds of a round on one fold."""
        seconds = sum(self.ended_seconds)
        if self.stage == "candidates" and self.done:
            seconds += self.now() - self.stage_began
        return seconds / self._rounds_timed / self.n_first_folds

    @property
    def _usual_rounds(self) -> float:
        """Rounds of a candidate: of the best one, else the mean of those that have ended."""
        if self.best_rounds:
            return float(self.best_rounds)
        ended = self.ended_rounds
        return sum(ended) / len(ended) if ended else float(min(USUAL_ROUNDS, self.most_rounds))

    def _candidates(self) -> float:
        n_left = max(self.n_candidates - len(self.ended_rounds) - bool(self.done), 0)
        current = 0.0
        if self.done:
            current = min(max(self._usual_rounds - self.done, OVERTIME * self.done), self.most_rounds - self.done)
        return (current + n_left * self._usual_rounds) * self._seconds_per_round * self.n_first_folds

    def _folds(self) -> float:
        return self._usual_rounds * self._seconds_per_round * (self.n_folds - self.n_first_folds)

    def _trees(self) -> float:
        n_tried = self.n_first_folds * len(self.leaf_sizes)
        n_trees = self.n_trees * (n_tried + self.n_folds - self.n_first_folds)
        leaf_size = sum(self.leaf_sizes) / len(self.leaf_sizes)
        levels = math.log2(max(self.n_rows / leaf_size, 2.0))
        return n_trees * TREE_COST * levels * self._seconds_per_round + (MIXING_SECONDS if self.n_trees else 0.0)

    def _noise(self) -> float:
        by_rows = NOISE_SECONDS_PER_THOUSAND * self.n_rows / 1000 * self.n_classes
        return NOISE_SECONDS + by_rows + NOISE_SECONDS_PER_PAIR * self.n_classes**2
