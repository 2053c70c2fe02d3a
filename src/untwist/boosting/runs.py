"""Runs of boosting, one per class, side by side: when they stop, what they report and what they leave behind."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from untwist import _core
from untwist.arguments import Array
from untwist.boosting.algorithm import Hypothesis, Round, ValidationLoss, staged_scores
from untwist.boosting import forest as trees
from untwist.boosting.forest import Forest
from untwist.data.workers import ALONE, Workers

__all__ = ["CompiledRun", "Ensemble", "Progress", "ReferenceRun", "Run", "advance"]


@dataclass(frozen=True)
class Ensemble:
    """Weak hypotheses with their leverages and edges; loss and error of the validation rows after each round."""

    hypotheses: Sequence[Hypothesis]
    leverages: Array
    edges: Array
    losses: Array
    errors: Array
    forest: Forest | None = None

    @classmethod
    def of(cls, forest: Forest, losses: Array, errors: Array) -> Ensemble:
        """The trees of a forest as an ensemble."""
        return cls(forest.trees(), forest.leverage, forest.edge, losses, errors, forest)

    def __len__(self) -> int:
        return len(self.edges)

    def first(self, count: int) -> Ensemble:
        """The first `count` rounds, with all that is known of the validation rows."""
        if self.forest is not None:
            return Ensemble.of(self.forest.first(count), self.losses, self.errors)
        return Ensemble(
            self.hypotheses[:count], self.leverages[:count], self.edges[:count], self.losses, self.errors, None
        )

    def best(self) -> int:
        """The number of rounds up to the lowest validation loss; all of them where it is not known."""
        return int(np.nanargmin(self.losses)) + 1 if np.isfinite(self.losses).any() else len(self)

    def followed_by(self, other: Ensemble) -> Ensemble:
        """These rounds, then those of the other, whose run went on where this one ended."""
        followed = len(self.losses) or len(other.losses)
        unknown = np.full(len(self) - len(self.losses[: len(self)]) if followed else 0, np.nan)  # not validated
        losses = np.concatenate([self.losses[: len(self)], unknown, other.losses])
        errors = np.concatenate([self.errors[: len(self)], unknown, other.errors])
        if self.forest is not None and other.forest is not None:
            return Ensemble.of(self.forest.followed_by(other.forest), losses, errors)
        return Ensemble(
            [*self.hypotheses, *other.hypotheses],
            np.concatenate([self.leverages, other.leverages]),
            np.concatenate([self.edges, other.edges]),
            losses,
            errors,
        )

    def rounds(self) -> Iterator[tuple[float, Hypothesis]]:
        """(leverage, hypothesis) of each round."""
        return zip(self.leverages, self.hypotheses, strict=True)

    def scores(self, X: Any, n_jobs: int | None = None) -> Array:
        """The scores H(x) of the rows of X."""
        if self.forest is not None:
            return self.forest.scores(X, n_jobs=n_jobs)
        scores = np.zeros(X.shape[0])
        for scores in self.staged_scores(X):  # noqa: B007 - the last stage is the answer
            pass
        return scores

    def staged_scores(self, X: Any) -> Iterator[Array]:
        """The scores after each round."""
        return staged_scores(self.rounds(), X)


class Run(Protocol):
    """A run of boosting that goes on when asked to."""

    @property
    def count(self) -> int:
        """Rounds so far."""

    def boost(self, rounds: int, patience: int) -> bool:
        """Up to `rounds` more rounds, fewer if the loss was at its lowest `patience` rounds ago; False at the end."""

    def last_round(self) -> tuple[float, float, float]:
        """Edge, validation loss and validation error of the last round (NaN where there are no validation rows)."""

    def ensemble(self) -> Ensemble:
        """What the rounds so far leave behind."""


@dataclass
class CompiledRun:
    """A run of a booster that grows forests; `earlier` are the losses of the rounds that it goes on from."""

    booster: _core.Booster
    n_features: int
    n_threads: int
    earlier: Array = field(default_factory=lambda: np.zeros(0))
    count: int = 0

    def boost(self, rounds: int, patience: int) -> bool:
        """As Run says."""
        if patience and len(self.earlier):
            for _ in range(rounds):  # the booster itself would forget the earlier rounds
                losses = np.concatenate([self.earlier, self.booster.losses()])
                if len(losses) - int(np.argmin(losses)) > patience:
                    return False
                wanted, self.count = self.count + 1, self.booster.boost(1, 0, self.n_threads)
                if self.count != wanted:
                    return False
            return True
        wanted, self.count = self.count + rounds, self.booster.boost(rounds, patience, self.n_threads)
        return self.count == wanted

    def last_round(self) -> tuple[float, float, float]:
        """As Run says."""
        edge = float(self.booster.trees(self.count - 1)[0][-1])
        losses, errors = self.booster.losses(), self.booster.errors()
        return (edge, float(losses[-1]), float(errors[-1])) if len(losses) else (edge, np.nan, np.nan)

    def ensemble(self) -> Ensemble:
        """As Run says."""
        forest = trees.grown(self.booster, self.n_features)
        return Ensemble.of(forest, self.booster.losses(), self.booster.errors())


@dataclass
class ReferenceRun:
    """A run of the loop in `untwist.boosting.algorithm`."""

    rounds: Iterator[Round]
    loss: ValidationLoss | None
    kept: list[tuple[Hypothesis, float, float]] = field(default_factory=list)

    def boost(self, rounds: int, patience: int) -> bool:
        """As Run says."""
        for _ in range(rounds):
            losses = [] if self.loss is None else self.loss.losses
            if patience and losses and len(losses) - int(np.argmin(losses)) > patience:
                return False
            one = next(self.rounds, None)
            if one is None:
                return False
            self.kept.append((one.hypothesis, one.leverage, one.edge))
            if self.loss is not None:
                self.loss(one)
        return True

    @property
    def count(self) -> int:
        """As Run says."""
        return len(self.kept)

    def last_round(self) -> tuple[float, float, float]:
        """As Run says."""
        edge = self.kept[-1][2]
        return (edge, np.nan, np.nan) if self.loss is None else (edge, self.loss.losses[-1], self.loss.errors[-1])

    def ensemble(self) -> Ensemble:
        """As Run says."""
        losses, errors = ([], []) if self.loss is None else (self.loss.losses, self.loss.errors)
        hypotheses = [row[0] for row in self.kept]
        leverages, edges = (np.array([row[i] for row in self.kept]) for i in (1, 2))
        return Ensemble(hypotheses, leverages, edges, np.array(losses), np.array(errors))


@dataclass(frozen=True)
class Progress:
    """What a callback is told after a round; means over the classes where there are more than two.

    `round` counts from 1. `validation_loss` and `validation_error` are NaN without validation rows, `seconds_left`
    where the number of rounds is open. `model` makes a fitted model of the rounds so far, and is None while settings
    are tried.
    """

    round: int
    n_rounds: int
    edge: float
    validation_loss: float
    validation_error: float
    seconds: float
    seconds_left: float
    model: Callable[[], Any] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        seen = "" if np.isnan(self.validation_loss) else f", validation log-loss {self.validation_loss:.4f}"
        left = "" if np.isnan(self.seconds_left) else f", {self.seconds_left:.0f} s left"
        return f"round {self.round} of {self.n_rounds}: edge {self.edge:.4f}{seen}{left}"


Callback = Callable[[Progress], object]
PULSE = 0.05  # seconds between two looks at Ctrl-C


def advance(
    runs: Sequence[Run],
    n_rounds: int,
    *,
    first_round: int = 0,
    patience: int = 0,
    callbacks: Iterable[Callback] = (),
    verbose: int = 0,
    workers: Workers = ALONE,
    snapshot: Callable[[], Any] | None = None,
) -> KeyboardInterrupt | None:
    """Up to `n_rounds` of every run, side by side. Ctrl-C ends them early and is returned, with the rounds done kept.

    A callback that returns something true, to any of the workers, ends them too. With `verbose` a line goes to standard
    error every so many rounds. `first_round` were made before. `snapshot` makes a model of what there is.
    """
    callbacks = list(callbacks)
    going, done, block, begin = list(runs), 0, 1, time.perf_counter()
    try:
        while going and done < n_rounds:
            together = workers.size > 1  # they go from class to class at the same time, whatever their clocks say
            step = min(
                1 if callbacks or together else block,
                n_rounds - done,
                verbose - done % verbose if verbose else n_rounds,
            )
            start = time.perf_counter()
            before = sum(run.count for run in runs)
            going = [run for run in going if run.boost(step, patience)]
            done += step
            if sum(run.count for run in runs) == before:
                break
            block = 2 * block if time.perf_counter() - start < PULSE else max(1, block // 2)
            if not (callbacks or (verbose and done % verbose == 0)):
                continue
            progress = replace(_progress(runs, first_round, n_rounds, time.perf_counter() - begin), model=snapshot)
            if verbose and done % verbose == 0:
                print(progress, file=sys.stderr)
            answers = [callback(progress) for callback in callbacks]
            if callbacks and any(workers.all_of(any(answers))):
                break
    except KeyboardInterrupt as interrupt:
        return interrupt
    return None


def _progress(runs: Sequence[Run], first_round: int, n_rounds: int, seconds: float) -> Progress:
    edge, loss, error = np.mean([run.last_round() for run in runs if run.count], axis=0).tolist()
    done = max(run.count for run in runs)
    return Progress(
        first_round + done, first_round + n_rounds, edge, loss, error, seconds, seconds / done * (n_rounds - done)
    )
