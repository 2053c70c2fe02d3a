"""Runs side by side: when they stop, what callbacks are told, what they leave behind. On runs that do as told."""

import math

import numpy as np
import pytest

from helpers.learners import Oracle
from untwist.boosting.algorithm import Round
from untwist.boosting.engines import reference
from untwist.boosting.engines.engine import EngineOptions, Rows, Task, TreeGrowth
from untwist.boosting.ensemble import Ensemble
from untwist.boosting.runs import BoosterRun, Ending, Progress, RoundReport, advance
from untwist.data.workers import Workers
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss


class Booster:
    """Has these losses to come, one a round; asked for more it stops."""

    def __init__(self, losses, validated=True):
        self.coming, self.done, self.validated, self.asked = list(losses), 0, validated, []

    def boost(self, rounds, patience=0):
        self.asked.append((rounds, patience))
        self.done = min(self.done + rounds, len(self.coming))
        return self.done

    def losses(self):
        return np.array(self.coming[: self.done] if self.validated else [])

    def errors(self):
        return self.losses() / 10

    def last_edge(self):
        return (self.done - 1) / 100


class Run:
    """Gives up after `most` rounds; edge, loss and error are made of the round."""

    def __init__(self, most=math.inf, loss=1.0):
        self.most, self.loss, self.count, self.steps = most, loss, 0, []

    def boost(self, rounds, patience):
        self.steps.append((rounds, patience))
        wanted, self.count = self.count + rounds, min(self.count + rounds, self.most)
        return self.count == wanted

    def last_round(self):
        return RoundReport(0.5 / self.count, self.loss / self.count, 0.1)


def make_ensemble(count, losses=(), errors=None):
    hypotheses = [Oracle(factor=i + 1.0) for i in range(count)]
    errors = losses if errors is None else errors
    return Ensemble(hypotheses, np.full(count, 0.5), np.arange(count) / 10, np.array(losses), np.array(errors))


# ---- ensembles ----


def test_scores_are_the_sum_of_the_rounds_and_0_without_any():
    X = np.array([[1.0], [-2.0]])
    assert make_ensemble(0).scores(X).tolist() == [0.0, 0.0]
    assert make_ensemble(3).scores(X).tolist() == [3.0, -6.0]
    assert [stage.tolist() for stage in make_ensemble(2).staged_scores(X)] == [[0.5, -1.0], [1.5, -3.0]]
    assert make_ensemble(3).keep_first(2).scores(X).tolist() == [1.5, -3.0]
    assert len(make_ensemble(3).keep_first(2)) == 2


def test_the_best_round_is_the_first_of_the_lowest_known_loss():
    assert len(make_ensemble(4, [math.nan, 0.5, 0.3, 0.3]).keep_best()) == 3
    assert len(make_ensemble(3, [math.nan, math.nan, math.nan]).keep_best()) == 3
    assert len(make_ensemble(3).keep_best()) == 3
    assert make_ensemble(4, [0.9, 0.5, 0.6, 0.7]).keep_first(2).losses.tolist() == [0.9, 0.5, 0.6, 0.7]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([], [], []),
        ([0.5, 0.4], [0.3], [0.5, 0.4, 0.3]),
        ([], [0.3], [math.nan, math.nan, 0.3]),
        ([0.5, 0.4], [], [0.5, 0.4]),
        ([0.5, 0.4, 0.6, 0.7], [0.3], [0.5, 0.4, 0.3]),  # Two rounds of four were kept.
    ],
)
def test_losses_of_runs_that_follow_each_other(before, after, expected):
    joined = make_ensemble(2, before, [2 * loss for loss in before]).append(
        make_ensemble(1, after, [2 * x for x in after])
    )
    np.testing.assert_array_equal(joined.losses, expected)
    np.testing.assert_array_equal(joined.errors, 2 * np.array(expected))
    assert joined.edges.tolist() == [0.0, 0.1, 0.0]
    assert joined.scores(np.array([[1.0]])).tolist() == [2.0]


# ---- runs ----


def test_a_run_asks_for_all_rounds_at_once():
    booster = Booster([0.5, 0.4, 0.6])
    run = BoosterRun(booster)
    assert run.boost(2, 7) is True
    assert (run.count, booster.asked) == (2, [(2, 7)])
    assert run.last_round() == RoundReport(0.01, 0.4, pytest.approx(0.04))
    assert run.boost(2, 7) is False  # The booster has stopped.
    assert run.count == 3
    blind = BoosterRun(Booster([0.5], validated=False))
    blind.boost(1, 0)
    assert blind.last_round().edge == 0.0
    assert math.isnan(blind.last_round().loss)
    assert math.isnan(blind.last_round().error)


def test_a_run_that_goes_on_remembers_the_losses_before():
    booster = Booster([0.6, 0.7, 0.8, 0.9])
    run = BoosterRun(booster, np.array([0.9, 0.5]))
    assert run.boost(2, 3) is True  # The lowest loss was one round ago, then two.
    assert run.boost(5, 3) is False
    assert (run.count, booster.asked) == (3, [(1, 0)] * 3)
    better = BoosterRun(Booster([0.6, 0.4, 0.8]), np.array([0.9, 0.5]))
    assert better.boost(3, 2) is True
    assert better.boost(1, 2) is False  # There are no more rounds.
    assert better.count == 3
    whole = Booster([0.6, 0.7])
    BoosterRun(whole, np.array([0.1])).boost(2, 0)
    assert whole.asked == [(2, 0)]  # Without patience there is nothing to remember.


def make_reference_run(monkeypatch, losses=None, rounds=5):
    """A run of the reference engine whose rounds and validation losses are given."""
    y = np.array([1.0, -1.0])
    made = (Round(i, Oracle(), 0.1 * i, 0.5, y, y, y) for i in range(rounds))

    class Loss:
        losses, errors = [], []

        def __call__(self, one):
            self.losses.append(losses[one.index])
            self.errors.append(losses[one.index] / 10)

    monkeypatch.setattr(reference, "pilboost", lambda *_, **__: made)
    monkeypatch.setattr(reference, "ValidationLoss", lambda *_, **__: Loss())
    rows = Rows(np.zeros((2, 1)), np.array([1, 0], dtype=np.uint32), np.ones(2))
    watched = None if losses is None else np.ones(2)
    task = Task(ClippedLink(AlphaLoss(2.0)), 1.0, TreeGrowth(), validation_weight=watched)
    dataset = reference.ReferenceDataset(rows, EngineOptions())
    return BoosterRun(reference.ReferenceBooster(dataset, task))


def test_a_reference_run_stops_by_patience_or_at_its_end(monkeypatch):
    run = make_reference_run(monkeypatch, losses=[0.9, 0.5, 0.6, 0.7, 0.8])
    assert run.boost(2, 2) is True
    assert run.last_round() == RoundReport(0.1, 0.5, 0.05)
    assert run.boost(9, 2) is False
    assert (run.count, len(run.ensemble().keep_best())) == (4, 2)  # There were two rounds without a gain.
    assert run.last_round() == RoundReport(pytest.approx(0.3), 0.7, pytest.approx(0.07))
    patient = make_reference_run(monkeypatch, losses=[0.9, 0.5, 0.6, 0.7, 0.8])
    assert patient.boost(9, 0) is False
    assert patient.count == 5
    blind = make_reference_run(monkeypatch)
    assert blind.boost(5, 1) is True
    assert math.isnan(blind.last_round().loss)
    assert blind.ensemble().losses.size == 0
    assert blind.ensemble().leverages.tolist() == [0.5] * 5
    assert blind.ensemble().edges.tolist() == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])


# ---- side by side ----


def test_runs_go_side_by_side_until_each_has_enough():
    short, long = Run(most=3), Run()
    assert advance([short, long], 40, patience=7) == Ending()
    assert (short.count, long.count) == (3, 40)
    assert {patience for _, patience in short.steps + long.steps} == {7}
    assert len(long.steps) < 40  # The rounds were not boosted one by one.


def test_runs_that_make_no_round_any_more_end():
    class Idle(Run):
        def boost(self, rounds, patience):
            self.steps.append(rounds)
            return True

    idle = Idle()
    assert advance([idle], 40) == Ending()
    assert len(idle.steps) == 1


def test_a_callback_is_told_of_every_round_and_its_answer_ends_them():
    told, runs = [], [Run(loss=2.0), Run(most=2, loss=4.0)]
    model = object()

    def callback(progress):
        told.append(progress)
        return progress.round == 14

    end = advance(runs, 8, first_round=10, callbacks=[callback, lambda progress: None], snapshot=lambda: model)
    assert end == Ending(stopped_by_callback=True)
    assert [one.round for one in told] == [11, 12, 13, 14]
    assert all(one.n_rounds == 18 and one.model() is model for one in told)
    assert told[0].edge == pytest.approx(0.5)
    assert told[3].edge == pytest.approx((0.5 / 4 + 0.5 / 2) / 2)  # The edge is a mean over the classes.
    assert told[3].validation_loss == pytest.approx((2.0 / 4 + 4.0 / 2) / 2)
    assert told[3].validation_error == pytest.approx(0.1)
    assert told[3].seconds >= told[0].seconds >= 0
    assert told[3].seconds_left == pytest.approx(told[3].seconds / 4 * 4)
    assert runs[0].steps == [(1, 0)] * 4  # There is no patience unless it is asked for.


def test_workers_go_round_by_round_together():
    runs = [Run(), Run()]
    advance(runs, 5, workers=Workers(0, 2))
    assert runs[0].steps == runs[1].steps == [(1, 0)] * 5


def test_progress_is_printed_every_so_many_rounds(capsys):
    advance([Run()], 10, verbose=4)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["round 4 of 10", "round 8 of 10"]
    assert lines[0].startswith("round 4 of 10: edge 0.1250, validation log-loss 0.2500, ")
    assert lines[0].endswith(" s left")
    plain = Progress(3, 9, 0.5, math.nan, math.nan, 1.0, math.nan)
    assert str(plain) == "round 3 of 9: edge 0.5000"


def test_ctrl_c_is_handed_back_with_the_rounds_kept():
    class Interrupted(Run):
        def boost(self, rounds, patience):
            if self.count >= 3:
                raise KeyboardInterrupt
            return super().boost(1, patience) or True

    run = Interrupted()
    assert isinstance(advance([run], 40).interrupt, KeyboardInterrupt)
    assert run.count == 3


class Team:
    """Boosts one booster after the other and notes how many rounds of how many; breaks off if it is told to."""

    def __init__(self, error=None):
        self.error, self.calls = error, []

    def boost(self, boosters, n_rounds, patience=0):
        self.calls.append((len(boosters), n_rounds, patience))
        if self.error is not None:
            raise self.error
        return [booster.boost(n_rounds, patience) for booster in boosters]


def test_a_team_boosts_the_runs_that_go_on():
    team = Team()
    short, long = BoosterRun(Booster([0.5] * 3)), BoosterRun(Booster([0.5] * 40))
    assert advance([short, long], 8, block=2, patience=7, team=team) == Ending()
    assert (short.count, long.count) == (3, 8)
    assert team.calls == [(2, 2, 7), (2, 2, 7)]  # One run by itself needs no team.
    assert long.booster.asked == [(2, 7)] * 4
    assert short.booster.asked == [(2, 7)] * 2


def test_runs_that_a_team_boosts_are_those_that_go_one_after_the_other():
    def make_runs():
        return [BoosterRun(Booster(np.linspace(0.7, 0.1, n_rounds))) for n_rounds in (1, 9, 20, 30)]

    def listen(told):
        return lambda progress: told.append((progress.round, progress.edge, progress.validation_loss))

    together, alone = make_runs(), make_runs()
    told_together, told_alone = [], []
    assert advance(together, 25, callbacks=[listen(told_together)], team=Team()) == Ending()
    assert advance(alone, 25, callbacks=[listen(told_alone)]) == Ending()
    assert [run.count for run in together] == [run.count for run in alone] == [1, 9, 20, 25]
    assert told_together == told_alone
    assert [one for one, *_ in told_alone] == list(range(1, 26))


def test_runs_that_remember_earlier_losses_or_have_several_boosters_need_no_team():
    team = Team()
    earlier = [BoosterRun(Booster([0.5] * 40), np.array([0.9])) for _ in range(2)]
    advance(earlier, 4, patience=3, team=team)
    assert [run.booster.asked[:2] for run in earlier] == [[(1, 0), (1, 0)]] * 2
    others = [Run(), BoosterRun(Booster([0.5] * 40))]
    advance(others, 4, team=team)
    assert [run.count for run in others] == [4, 4]
    assert team.calls == []
    advance(earlier, 2, block=2, team=team)  # Without patience there is nothing to remember.
    assert team.calls == [(2, 2, 0)]


def test_ctrl_c_in_a_team_is_handed_back_and_other_errors_are_raised():
    runs = [BoosterRun(Booster([0.5] * 40)) for _ in range(2)]
    interrupt = KeyboardInterrupt()
    assert advance(runs, 5, team=Team(interrupt)).interrupt is interrupt
    assert [run.count for run in runs] == [0, 0]
    with pytest.raises(RuntimeError, match="broken"):
        advance(runs, 5, team=Team(RuntimeError("broken")))
