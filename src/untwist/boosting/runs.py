"""Runs of boosting side by side: when they stop, what they report, and what Ctrl-C leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from untwist.arguments import Array
from untwist.boosting.engines.engine import Booster, Team
from untwist.boosting.ensemble import Ensemble, is_stale
from untwist.data.workers import Workers, solo
from untwist.progress import find_display, print_status

#: Rounds are made in blocks that take about this many seconds, as Ctrl-C is looked for between them.
SECONDS_PER_BLOCK = 0.05


@dataclass(frozen=True)
class RoundReport:
    """The edge of a round, and loss and error of the validation rows after it; NaN where there are none."""

    edge: float
    loss: float
    error: float


class Run(Protocol):
    """What `advance` drives: it makes rounds when asked to."""

    @property
    def count(self) -> int:
        """Rounds so far."""

    def boost(self, n_rounds: int, patience: int) -> bool:
        """Make up to `n_rounds` more rounds; return False when there is nothing left to do.

        With `patience` above 0 the run ends when the validation loss was at its lowest that many rounds ago.
        """

    def last_round(self) -> RoundReport:
        """Return what there is to tell of the last round."""


@dataclass
class BoosterRun:
    """A run of one booster from a start; `earlier_losses` are those of the rounds that it goes on from."""

    booster: Booster
    earlier_losses: Array = field(default_factory=lambda: np.zeros(0))
    start: float = 0.0
    count: int = 0

    def boost(self, n_rounds: int, patience: int) -> bool:
        """Make up to `n_rounds` more rounds; return False at the end."""
        if patience and len(self.earlier_losses):
            return self._boost_after_earlier_rounds(n_rounds, patience)
        wanted = self.count + n_rounds
        self.count = self.booster.boost(n_rounds, patience)
        return self.count == wanted

    def _boost_after_earlier_rounds(self, n_rounds: int, patience: int) -> bool:
        """Boost round by round: the booster knows nothing of the earlier losses, and its patience would begin anew."""
        for _ in range(n_rounds):
            losses = np.concatenate([self.earlier_losses, self.booster.losses()])
            if is_stale(losses, patience):
                return False
            wanted = self.count + 1
            self.count = self.booster.boost(1)
            if self.count != wanted:
                return False
        return True

    def last_round(self) -> RoundReport:
        """Return what there is to tell of the last round."""
        losses, errors = self.booster.losses(), self.booster.errors()
        if len(losses) == 0:
            return RoundReport(self.booster.last_edge(), np.nan, np.nan)
        return RoundReport(self.booster.last_edge(), float(losses[-1]), float(errors[-1]))

    def ensemble(self) -> Ensemble:
        """Return what the rounds so far leave behind."""
        return replace(self.booster.ensemble(), start=self.start)


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


@dataclass(frozen=True)
class Ending:
    """How `advance` ended: by Ctrl-C, by a callback, or (neither) because there was nothing left to do."""

    interrupt: KeyboardInterrupt | None = None
    stopped_by_callback: bool = False


def advance(
    runs: Sequence[Run],
    n_rounds: int,
    *,
    first_round: int = 0,
    patience: int = 0,
    block: int | None = None,
    rounds_open: bool = False,
    callbacks: Iterable[Callback] = (),
    verbose: int = 0,
    workers: Workers = solo,
    snapshot: Callable[[], Any] | None = None,
    started_at: float | None = None,
    watch: Callable[[], None] | None = None,
    judge: Callable[[], bool] | None = None,
    team: Team | None = None,
) -> Ending:
    """Make up to `n_rounds` rounds of every run, side by side; Ctrl-C ends them early, with the rounds done kept.

    Parameters
    ----------
    runs : sequence of Run
        What to drive. One that has ended waits for the others.
    n_rounds : int
        Rounds of each run, at most.
    first_round : int
        How many rounds were made before, which `Progress` counts too.
    patience : int
        What `Run.boost` is told.
    block : int or None
        Rounds between two looks at callbacks and Ctrl-C. None: as many as take 0.05 seconds, or one if there are
        callbacks, or several workers, who go from class to class at the same time whatever their clocks say.
    rounds_open : bool
        Whether `n_rounds` is only a bound, so that there is no telling how many seconds are left.
    callbacks : functions
        Each is told the `Progress` after a block. A true answer to any of the workers ends all runs.
    verbose : int
        A line goes to standard error after each such number of rounds; 0 for none.
    workers : Workers
        Who else makes the same rounds.
    snapshot : function or None
        Makes a model of what there is, for callbacks.
    started_at : float or None
        When the clock of `Progress` started, by `time.perf_counter`; None for now.
    watch : function or None
        Is called after every block, and tells whoever waits how far the runs are.
    judge : function or None
        Is called after every round; a true answer ends all runs.
    team : Team or None
        What boosts several runs, each of one booster, at a time; None where one follows the other.
    """
    callbacks = list(callbacks)
    going = list(runs)
    done = 0
    adaptive_block = 1
    started_at = time.perf_counter() if started_at is None else started_at
    round_by_round = bool(callbacks) or workers.size > 1 or judge is not None
    try:
        while going and done < n_rounds:
            step = block if block is not None else 1 if round_by_round else adaptive_block
            step = min(step, n_rounds - done, verbose - done % verbose if verbose else n_rounds)
            start = time.perf_counter()
            before = sum(run.count for run in runs)
            going = _boost_runs(going, step, patience, team)
            done += step
            if sum(run.count for run in runs) == before or (rounds_open and not going):
                break  # Nothing was done, or a run whose length is open has just ended by itself.
            quick = time.perf_counter() - start < SECONDS_PER_BLOCK
            adaptive_block = 2 * adaptive_block if quick else max(1, adaptive_block // 2)
            if watch is not None:
                watch()
            if judge is not None and judge():
                going = []
            report_now = verbose > 0 and done % verbose == 0
            if not (callbacks or report_now):
                continue
            progress = _measure_progress(runs, first_round, n_rounds, time.perf_counter() - started_at)
            progress = replace(progress, model=snapshot)
            if rounds_open:
                progress = replace(progress, seconds_left=float("nan"))
            if report_now:
                say(str(progress))
            answers = [callback(progress) for callback in callbacks]
            if callbacks and any(workers.gather(any(answers))):
                return Ending(stopped_by_callback=True)
    except KeyboardInterrupt as interrupt:
        return Ending(interrupt=interrupt)
    return Ending()


def _boost_runs(runs: list[Run], n_rounds: int, patience: int, team: Team | None) -> list[Run]:
    """Make `n_rounds` rounds of every run, and return those that go on."""
    # A run that goes on from an earlier fit counts the rounds of that fit, too, and so looks out for its end itself.
    shareable = [run for run in runs if isinstance(run, BoosterRun) and not (patience and len(run.earlier_losses))]
    if team is None or len(shareable) < len(runs) or len(runs) == 1:
        return [run for run in runs if run.boost(n_rounds, patience)]
    wanted = [run.count + n_rounds for run in shareable]
    for run, count in zip(shareable, team.boost([run.booster for run in shareable], n_rounds, patience), strict=True):
        run.count = count
    return [run for run, count in zip(runs, wanted, strict=True) if run.count == count]


def say(words: str) -> None:
    """Print a line that stays, above the progress of the job where that is shown."""
    display = find_display()
    if display is None:
        print_status(words)
    else:
        display.print_status(words)


def _measure_progress(runs: Sequence[Run], first_round: int, n_rounds: int, seconds: float) -> Progress:
    reports = [run.last_round() for run in runs if run.count]
    edge, loss, error = np.mean([(one.edge, one.loss, one.error) for one in reports], axis=0).tolist()
    done = max(run.count for run in runs)
    return Progress(
        round=first_round + done,
        n_rounds=first_round + n_rounds,
        edge=edge,
        validation_loss=loss,
        validation_error=error,
        seconds=seconds,
        seconds_left=seconds / done * (n_rounds - done),
    )
