"""A candidate of the search: one setting, boosted on several folds for every class."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from untwist.arguments import Array
from untwist.boosting.engines.engine import Booster, Team
from untwist.boosting.forest import Forest
from untwist.boosting.runs import RoundReport
from untwist.model import Candidate

__all__ = ["SLOW_AFTER", "CandidateKey", "FoldRun", "has_stalled"]

#: A candidate gets at least this many rounds to make progress in.
LEAST_PATIENCE = 15

#: A candidate that made many rounds up to its best one gets this share of them to make progress in.
PATIENCE_SHARE = 0.25

#: The loss makes progress if it falls by more than this share of itself.
PROGRESS_SHARE = 0.003

#: Nor is it progress to fall by less than this, in nats.
LEAST_PROGRESS = 0.0005

#: This share of the rounds after the best one is kept: the mean of all folds bears more rounds than a fold by itself.
KEPT_BEYOND_BEST = 0.5

#: A loss that still falls after this many rounds calls for longer steps.
SLOW_AFTER = 200

#: A candidate is hopeless if its loss is more than this times that of the best one after as many rounds.
HOPELESS_FACTOR = 1.1


class CandidateKey(NamedTuple):
    """What tells candidates apart; `drawn` is None where it is not open whether trees draw rows and columns."""

    alpha: float
    depth: int
    drawn: float | None = None


@dataclass
class FoldRun:
    """A candidate on some folds: a `Run` whose rounds are those of all its boosters.

    Parameters
    ----------
    alpha, depth, drawn, step
        The setting.
    boosters : list of lists of Booster
        By class, then by fold.
    fold_weights : array
        The weight that each fold sets aside.
    starts : list of lists of float
        The score that each booster begins at, which its trees do not have: by class, then by fold.
    ends_by_itself : bool
        Whether the run ends when its loss rests or is hopeless; otherwise it makes all rounds that it is asked for.
    slow_after : int or None
        The run ends, too, when its loss still falls after this many rounds, as longer steps would do better.
    to_beat : Candidate or None
        The best candidate so far.
    team : Team or None
        What boosts several boosters at a time; None where one follows the other.
    companions : collection of FoldRun
        A live view of the candidates that make as many rounds at the same time, before it is their turn.
    made : int
        Rounds that the boosters have made, perhaps before it was their turn.
    rests : bool
        Whether the loss rests after the rounds that were made, so that more of them are not needed.
    count : int
        Rounds so far, which the run is judged by.
    is_slow : bool
        Whether the run has ended because longer steps would do better.
    """

    alpha: float
    depth: int
    drawn: float | None
    step: float
    boosters: list[list[Booster]]
    fold_weights: Array
    starts: list[list[float]]
    ends_by_itself: bool = True
    slow_after: int | None = None
    to_beat: Candidate | None = None
    team: Team | None = None
    companions: Collection[FoldRun] = ()
    made: int = 0
    rests: bool = False
    count: int = 0
    is_slow: bool = False

    @property
    def key(self) -> CandidateKey:
        """What tells candidates apart."""
        return CandidateKey(self.alpha, self.depth, self.drawn)

    def boost(self, n_rounds: int, patience: int = 0) -> bool:
        """Make a number of rounds more; return False when the candidate is done."""
        del patience  # A candidate is judged by all its folds together.
        self._boost_all(n_rounds)
        self.count += n_rounds
        if not self.ends_by_itself:
            return True
        losses = self.losses()
        if has_stalled(losses) or self._is_hopeless(losses):
            return False
        self.is_slow = self.slow_after is not None and self.count >= self.slow_after
        return not self.is_slow

    def _boost_all(self, n_rounds: int) -> None:
        """Bring all boosters `n_rounds` beyond `count`, and the companions as far.

        Rounds that were made before it was the run's turn are not made again. What comes out is the same side by side
        as one after the other.
        """
        if self.team is None:
            for booster in self.list_boosters():
                booster.boost(n_rounds)
            self.made += n_rounds
            return
        while self.made < self.count + n_rounds:
            companions = [run for run in self.companions if not run.rests]
            self.team.boost([booster for run in (self, *companions) for booster in run.list_boosters()], n_rounds)
            self.made += n_rounds
            for run in companions:
                run.made += n_rounds
                run.rests = run.ends_by_itself and has_stalled(run.losses(run.made))

    def list_boosters(self) -> list[Booster]:
        """Return the boosters of all classes and folds."""
        return [booster for class_boosters in self.boosters for booster in class_boosters]

    def _is_hopeless(self, losses: Array) -> bool:
        """Tell whether the loss is far above that of the best candidate, after the rounds that one took."""
        if self.to_beat is None or self.count < self.to_beat.n_rounds:
            return False
        return bool(losses.min() > HOPELESS_FACTOR * self.to_beat.loss)

    def take_folds(self, other: FoldRun) -> None:
        """Add the folds of another run of the same candidate."""
        self.boosters = [own + more for own, more in zip(self.boosters, other.boosters, strict=True)]
        self.fold_weights = np.concatenate([self.fold_weights, other.fold_weights])
        self.starts = [own + more for own, more in zip(self.starts, other.starts, strict=True)]

    def summarise(self, n_rounds: int | None) -> Candidate:
        """Return what the candidate has come to after `n_rounds`, or, for None, after the rounds worth keeping."""
        losses, errors = self.losses(), self._average(self._list_errors())
        best, last = int(np.argmin(losses)), self.count - 1
        at = best + int(KEPT_BEYOND_BEST * (last - best)) if n_rounds is None else last
        loss, error = float(losses[at]), float(errors[at])
        return Candidate(self.alpha, self.depth, self.step, at + 1, loss, error, self.drawn)

    def losses(self, count: int | None = None) -> Array:
        """Return the log-loss of the rows set aside after each of the first `count` rounds, all so far for None."""
        losses = [[booster.losses() for booster in class_boosters] for class_boosters in self.boosters]
        return self._average(losses, count)

    def curves(self) -> list[tuple[Array, Array]]:
        """Return log-loss and error of the rows set aside after each round, by class."""
        losses = [[booster.losses() for booster in class_boosters] for class_boosters in self.boosters]
        errors = self._list_errors()
        return [(self._average([loss]), self._average([error])) for loss, error in zip(losses, errors, strict=True)]

    def last_round(self) -> RoundReport:
        """Return what there is to tell of the last round."""
        edges = [booster.last_edge() for class_boosters in self.boosters for booster in class_boosters]
        errors = self._average(self._list_errors())
        return RoundReport(float(np.mean(edges)), float(self.losses()[-1]), float(errors[-1]))

    def list_forests(self, n_rounds: int) -> list[list[Forest]]:
        """Return the first `n_rounds` trees of every class and fold."""
        ensembles = [[booster.ensemble() for booster in class_boosters] for class_boosters in self.boosters]
        kept = [
            [one.keep_first(min(n_rounds, len(one))).forest for one in class_ensembles] for class_ensembles in ensembles
        ]
        return [
            [
                forest.shift(start) if start else forest
                for forest, start in zip(class_forests, class_starts, strict=True)
                if forest is not None
            ]
            for class_forests, class_starts in zip(kept, self.starts, strict=True)
        ]

    def _list_errors(self) -> list[list[Array]]:
        return [[booster.errors() for booster in class_boosters] for class_boosters in self.boosters]

    def _average(self, curves: list[list[Array]], count: int | None = None) -> Array:
        """Return the mean over classes and folds after each round; a booster that has ended stays where it was."""
        count = self.count if count is None else count
        total = np.zeros(count)
        for class_curves in curves:
            for curve, weight in zip(class_curves, self.fold_weights, strict=True):
                known = curve[:count]  # Some folds may be ahead.
                total[: len(known)] += weight * known
                total[len(known) :] += weight * known[-1:]
        return np.asarray(total / (len(curves) * self.fold_weights.sum()))


def has_stalled(losses: Array) -> bool:
    """Tell whether a loss has hardly fallen for long."""
    wait = max(LEAST_PATIENCE, int(PATIENCE_SHARE * np.argmin(losses)))
    if len(losses) <= wait:
        return False
    before, since = losses[:-wait].min(), losses[-wait:].min()
    return bool(before - since <= max(PROGRESS_SHARE * since, LEAST_PROGRESS))
