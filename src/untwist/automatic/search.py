"""What the user left open, chosen from the twisted data alone, by folds over one binned table.

Every candidate (an alpha and a depth) is boosted on all folds side by side, or, where rows are many, on the first ones,
and the best of them then on the others. The log-loss of the twisted posterior on the rows set aside, which needs no
clean label, says how many rounds to keep and which candidate is best. Depth is chosen first, at the first alpha, from
the middle outwards, then alpha. The model is the mean of the fold models, and what they say of the rows they have not
seen tells how noisy the labels are (`untwist.noise.rates`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist import _core
from untwist.arguments import Array
from untwist.boosting import forest as trees
from untwist.boosting.runs import Progress
from untwist.theory.links import Link

__all__ = [
    "ALPHAS",
    "DEPTHS",
    "N_FOLDS",
    "STEPS",
    "Candidate",
    "Choice",
    "Chosen",
    "Folds",
    "Unseen",
    "choose",
    "judged",
]

N_FOLDS = 5
ENOUGH_ROWS = 4000  # set aside tell candidates apart: the first folds that have so many do, the best then gets the rest
DEPTHS = (2, 4, 6)
ALPHAS = (1.0, 2.0)
STEPS = (0.1, 0.2)
MOST_ROUNDS, BLOCK = 1000, 10
LEAST_PATIENCE, PATIENCE = 15, 0.25  # rounds without progress, at least, and as a share of the rounds up to the best
PROGRESS, LEAST_PROGRESS = 0.003, 0.0005  # by how much the loss must have fallen, as a share and in nats
BEYOND = 0.5  # of the rounds after the best: the mean of all folds bears more of them than a fold by itself
SLOW = 200  # rounds after which a loss that still falls calls for longer steps
HOPELESS = 1.1  # times the loss of the best candidate, after as many rounds


@dataclass(frozen=True)
class Candidate:
    """A setting that was tried: the rounds that would be kept, and log-loss and error of the rows set aside there."""

    alpha: float
    max_depth: int
    step: float
    n_rounds: int
    loss: float
    error: float

    def __str__(self) -> str:
        return (
            f"alpha {self.alpha:<4g} depth {self.max_depth}, {self.n_rounds:4d} rounds of {self.step:g}: "
            f"log-loss {self.loss:.4f}, error {self.error:.4f}"
        )


@dataclass(frozen=True)
class Choice:
    """The best candidate, and all that were tried."""

    best: Candidate
    tried: tuple[Candidate, ...]

    def __str__(self) -> str:
        lines = [f"alpha {self.best.alpha:g}, depth {self.best.max_depth}, {self.best.n_rounds} rounds, chosen from:"]
        return "\n".join(lines + [f"  {one}" for one in self.tried])


@dataclass(frozen=True)
class Chosen:
    """The choice, the forests of every class and fold cut to its rounds, and Ctrl-C if that ended the search.

    `curves` are, by class, log-loss and error of the rows set aside after each round of the best candidate, those
    beyond its rounds too. `n_folds` are fewer than there are if Ctrl-C came before the best candidate had got them all.
    """

    choice: Choice
    forests: list[list[trees.Forest]]
    curves: list[tuple[Array, Array]]
    n_folds: int
    interrupt: KeyboardInterrupt | None


@dataclass(frozen=True)
class Folds:
    """What boosts a class on a fold, ``booster(link, growth, step, label, fold)``; the weight each fold sets aside."""

    booster: Callable[[Link, trees.Growth, float, int, int], _core.Booster]
    classes: Sequence[int]
    weights: Array
    n_features: int
    n_threads: int


@dataclass
class _Run:
    """A candidate on all folds and classes."""

    alpha: float
    depth: int
    step: float
    boosters: list[list[_core.Booster]]  # by class, then fold
    fold_weights: Array
    n_threads: int
    done: int = 0

    def boost(self, rounds: int) -> None:
        """So many rounds more."""
        for booster in (booster for each_fold in self.boosters for booster in each_fold):
            booster.boost(rounds, threads=self.n_threads)
        self.done += rounds

    def take(self, other: _Run) -> None:
        """The folds of another run of the same candidate too."""
        self.boosters = [own + more for own, more in zip(self.boosters, other.boosters, strict=True)]
        self.fold_weights = np.concatenate([self.fold_weights, other.fold_weights])

    def losses(self) -> Array:
        """Log-loss of the rows set aside after each round."""
        return self._mean([[booster.losses() for booster in each_fold] for each_fold in self.boosters])

    def curves(self) -> list[tuple[Array, Array]]:
        """Log-loss and error after each round, by class."""
        return [
            (self._mean([[one.losses() for one in each_fold]]), self._mean([[one.errors() for one in each_fold]]))
            for each_fold in self.boosters
        ]

    def candidate(self, n_rounds: int | None) -> Candidate:
        """What it has come to after so many rounds, or somewhat beyond the best number of them."""
        losses = self.losses()
        errors = self._mean([[booster.errors() for booster in each_fold] for each_fold in self.boosters])
        best, last = int(np.argmin(losses)), self.done - 1
        at = best + int(BEYOND * (last - best)) if n_rounds is None else last
        return Candidate(self.alpha, self.depth, self.step, at + 1, float(losses[at]), float(errors[at]))

    def progress(self, most: int, begin: float) -> Progress:
        """What a callback is told."""
        edges = [one.trees(len(one.losses()) - 1)[0][-1] for each_fold in self.boosters for one in each_fold]
        errors = self._mean([[booster.errors() for booster in each_fold] for each_fold in self.boosters])
        seconds = time.perf_counter() - begin
        edge, loss, error = float(np.mean(edges)), float(self.losses()[-1]), float(errors[-1])
        return Progress(self.done, most, edge, loss, error, seconds, float("nan"))

    def _mean(self, curves: list[list[Array]]) -> Array:
        """The mean over classes and folds after each round; a run that has ended stays where it was."""
        total = np.zeros(self.done)
        for each_fold in curves:
            for curve, weight in zip(each_fold, self.fold_weights, strict=True):
                kept = curve[: self.done]  # Ctrl-C may leave some folds ahead
                total += weight * np.pad(kept, (0, self.done - len(kept)), mode="edge")
        return np.asarray(total / (len(curves) * self.fold_weights.sum()))


def choose(
    folds: Folds,
    growth: trees.Growth,
    link_of: Callable[[float], Link],
    *,
    alphas: Sequence[float] = ALPHAS,
    depths: Sequence[int] = DEPTHS,
    steps: Sequence[float] = STEPS,
    n_rounds: int | None = None,
    at_most: bool = False,
    report: Callable[[Candidate], object] = lambda _: None,
    tell: Callable[[Progress], bool] | None = None,
) -> Chosen:
    """The best depth at the first alpha, then the best alpha; the forests of the best candidate.

    All candidates take the first of the `steps`, or the second if that has been too short for one of them. `n_rounds`
    None leaves the rounds open too; `at_most` leaves them open up to `n_rounds`. `report` hears of every
    candidate, `tell` of progress every few rounds; a true answer ends the search, and so does Ctrl-C, with what there
    is.
    """
    fixed = None if at_most else n_rounds
    most = MOST_ROUNDS if n_rounds is None else n_rounds
    tried: dict[tuple[float, int], Candidate] = {}
    best: tuple[Candidate, _Run] | None = None
    interrupt: KeyboardInterrupt | None = None
    begin = time.perf_counter()
    stopped = False
    step, *longer = steps

    n_first = int(np.searchsorted(np.cumsum(folds.weights), ENOUGH_ROWS)) + 1
    first, rest = range(len(folds.weights))[:n_first], range(len(folds.weights))[n_first:]

    def started(alpha: float, depth: int, step: float, chosen: range) -> _Run:
        link, shape = link_of(alpha), replace(growth, max_depth=depth)
        boosters = [[folds.booster(link, shape, step, label, fold) for fold in chosen] for label in folds.classes]
        return _Run(alpha, depth, step, boosters, folds.weights[chosen.start : chosen.stop], folds.n_threads)

    def attempt(alpha: float, depth: int) -> float:
        nonlocal best, stopped, interrupt, step
        if stopped or (alpha, depth) in tried:
            return tried[alpha, depth].loss if (alpha, depth) in tried else np.inf
        run = shorter = started(alpha, depth, step, first)
        try:
            while run.done < most and not stopped:
                run.boost(min(BLOCK, most - run.done))
                if fixed is None and (_rests(run.losses()) or _hopeless(run, best)):
                    break
                if fixed is None and longer and run.done >= SLOW:
                    step = longer.pop()
                    run = started(alpha, depth, step, first)
                    continue
                stopped = tell is not None and tell(run.progress(most, begin))
        except KeyboardInterrupt as error:
            interrupt, stopped = error, True
            run = run if run.done else shorter  # the longer steps have not got anywhere yet
            if best is not None or run.done == 0:
                return np.inf  # a candidate that was compared with others is better than half of one
        tried[alpha, depth] = run.candidate(fixed)
        if best is None or tried[alpha, depth].loss < best[0].loss:
            best = tried[alpha, depth], run
        report(tried[alpha, depth])
        return tried[alpha, depth].loss

    depth = _climbed(sorted(depths), lambda depth: attempt(alphas[0], depth))
    for alpha in alphas:
        attempt(alpha, depth)
    if best is None:
        assert interrupt is not None
        raise interrupt  # not even a few rounds of the first candidate
    chosen, run = best
    if rest and interrupt is None:
        others = started(run.alpha, run.depth, run.step, rest)
        try:
            others.boost(run.done)
            run.take(others)
            tried[run.alpha, run.depth] = chosen = run.candidate(fixed)
        except KeyboardInterrupt as error:
            interrupt = error
    grown = [[trees.grown(booster, folds.n_features) for booster in each_fold] for each_fold in run.boosters]
    forests = [[one.first(min(chosen.n_rounds, len(one))) for one in each_fold] for each_fold in grown]
    return Chosen(Choice(chosen, tuple(tried.values())), forests, run.curves(), len(run.fold_weights), interrupt)


@dataclass(frozen=True)
class Unseen:
    """Rows with the scores, a column per class, of models that have not seen them; `weight` is what was set aside."""

    rows: NDArray[np.intp]
    weight: Array
    scores: Array

    def mean_scores(self) -> Array:
        """The scores of every row; the mean where several folds had a part of it."""
        part = np.where(self.weight > 0, self.weight, 1.0)
        total = np.bincount(self.rows, part)
        return np.column_stack([np.bincount(self.rows, part * each) / total for each in self.scores.T])


def judged(
    forests: list[list[trees.Forest]], X: Any, held: Array, *, n_training: int, n_jobs: int | None = None
) -> Unseen:
    """The rows that each fold set aside, one after the other.

    Training rows that none did, as they have no weight, come last: the mean of all folds judges them.
    """
    rows = [np.flatnonzero(weight) for weight in held]
    nowhere = np.flatnonzero(held.sum(axis=0)[:n_training] == 0)
    judges = [[[each[fold]] for each in forests] for fold in range(len(held))] + [forests]  # by place, then class
    places = [*rows, nowhere]
    scores = [np.empty((len(own), len(forests))) for own in places]
    for part, block in trees.row_blocks(X):
        for own, out, by_class in zip(places, scores, judges, strict=True):
            inside = slice(*np.searchsorted(own, (part.start, part.stop)))
            seen = block[own[inside] - part.start]
            for k, each in enumerate(by_class):
                out[inside, k] = np.mean([one.scores(seen, n_jobs=n_jobs) for one in each], axis=0)
    weight = np.concatenate([*(weight[own] for weight, own in zip(held, rows, strict=True)), np.zeros(len(nowhere))])
    return Unseen(np.concatenate(places), weight, np.concatenate(scores))


def _climbed(levels: Sequence[int], loss: Callable[[int], float]) -> int:
    """The best level: from the middle one down as long as that helps; if it does not, up."""
    best = middle = len(levels) // 2
    while best > 0 and loss(levels[best]) > loss(levels[best - 1]):
        best -= 1
    while middle <= best < len(levels) - 1 and loss(levels[best]) > loss(levels[best + 1]):
        best += 1
    return levels[best]


def _rests(losses: Array) -> bool:
    """Whether the loss has hardly fallen for long."""
    wait = max(LEAST_PATIENCE, int(PATIENCE * np.argmin(losses)))
    if len(losses) <= wait:
        return False
    before, since = losses[:-wait].min(), losses[-wait:].min()
    return bool(before - since <= max(PROGRESS * since, LEAST_PROGRESS))


def _hopeless(run: _Run, best: tuple[Candidate, _Run] | None) -> bool:
    """Whether it is far behind the best candidate after the rounds that one took."""
    return best is not None and run.done >= best[0].n_rounds and run.losses().min() > HOPELESS * best[0].loss
