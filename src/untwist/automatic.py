"""What the user left open, chosen from the twisted data alone, by folds over one binned table.

Every candidate (an alpha and a depth) is boosted on all folds side by side. The log-loss of the twisted posterior on
the rows set aside, which needs no clean label, says how many rounds to keep and which candidate is best; the model is
the mean of its fold models. Depth is chosen first, at an alpha in the middle, then alpha.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from untwist import _core, trees
from untwist.arguments import Array
from untwist.links import Link

__all__ = ["ALPHAS", "DEPTHS", "N_FOLDS", "Candidate", "Choice", "Folds", "choose"]

N_FOLDS = 5
DEPTHS = (3, 6)
ALPHAS = (1.0, 2.0, 4.0)
MOST_ROUNDS, PATIENCE, BLOCK = 2000, 50, 10


@dataclass(frozen=True)
class Candidate:
    """A setting that was tried: its best number of rounds, and log-loss and error of the rows set aside there."""

    alpha: float
    max_depth: int
    n_rounds: int
    loss: float
    error: float

    def __str__(self) -> str:
        return (
            f"alpha {self.alpha:<4g} depth {self.max_depth}, {self.n_rounds:4d} rounds: "
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
class Folds:
    """What boosts a class on a fold, ``booster(link, growth, label, fold)``; the weight that each fold sets aside."""

    booster: Callable[[Link, trees.Growth, int, int], _core.Booster]
    classes: Sequence[int]
    weights: Array
    n_features: int
    n_threads: int


def choose(
    folds: Folds,
    growth: trees.Growth,
    link_of: Callable[[float], Link],
    *,
    alphas: Sequence[float] = ALPHAS,
    depths: Sequence[int] = DEPTHS,
    n_rounds: int | None = None,
    report: Callable[[Candidate], object] = lambda _: None,
) -> tuple[Choice, list[trees.Forest], KeyboardInterrupt | None]:
    """The best depth at the middle alpha, then the best alpha; for every class the mean of its fold models.

    `n_rounds` None leaves the rounds open too. `report` is told of every candidate. Ctrl-C, once there is one, ends the
    search and is returned.
    """
    tried: dict[tuple[float, int], Candidate] = {}
    best: tuple[Candidate, list[list[_core.Booster]]] | None = None

    def attempt(alpha: float, depth: int) -> Candidate:
        nonlocal best
        if (alpha, depth) not in tried:
            link, shape = link_of(alpha), replace(growth, max_depth=depth)
            runs = [
                [folds.booster(link, shape, label, fold) for fold in range(len(folds.weights))]
                for label in folds.classes
            ]
            tried[alpha, depth] = Candidate(alpha, depth, *_boosted(runs, folds, n_rounds))
            if best is None or tried[alpha, depth].loss < best[0].loss:
                best = tried[alpha, depth], runs
            report(tried[alpha, depth])
        return tried[alpha, depth]

    interrupt = None
    try:
        depth = min((attempt(alphas[len(alphas) // 2], depth) for depth in depths), key=lambda one: one.loss).max_depth
        for alpha in alphas:
            attempt(alpha, depth)
    except KeyboardInterrupt as error:
        interrupt = error
        if best is None:
            raise
    assert best is not None  # there is at least one candidate
    chosen, runs = best
    grown = [[trees.grown(run, folds.n_features) for run in each_fold] for each_fold in runs]
    means = [trees.Forest.mean([one.first(min(chosen.n_rounds, len(one))) for one in each_fold]) for each_fold in grown]
    return Choice(chosen, tuple(tried.values())), means, interrupt


def _boosted(runs: list[list[_core.Booster]], folds: Folds, n_rounds: int | None) -> tuple[int, float, float]:
    """Boosts until the loss of the rows set aside has not fallen for long; the best round, its loss and error."""
    most, done = MOST_ROUNDS if n_rounds is None else n_rounds, 0
    losses = np.zeros(0)
    while done < most:
        step = min(BLOCK, most - done)
        for run in (run for each_fold in runs for run in each_fold):
            run.boost(step, threads=folds.n_threads)
        done += step
        losses = _mean_curve([[run.losses() for run in each_fold] for each_fold in runs], folds.weights, done)
        if n_rounds is None and done - int(np.argmin(losses)) > PATIENCE:
            break
    errors = _mean_curve([[run.errors() for run in each_fold] for each_fold in runs], folds.weights, done)
    at = int(np.argmin(losses)) if n_rounds is None else done - 1
    return at + 1, float(losses[at]), float(errors[at])


def _mean_curve(curves: list[list[Array]], weights: Array, length: int) -> Array:
    """The mean over classes and folds after each round; a run that has ended stays where it was."""
    total = np.zeros(length)
    for each_fold in curves:
        for curve, weight in zip(each_fold, weights, strict=True):
            total += weight * np.pad(curve, (0, length - len(curve)), mode="edge")
    return np.asarray(total / (len(curves) * weights.sum()))
