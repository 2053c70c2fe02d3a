"""Candidates on folds: curves that are written down, beside plain sums over rounds."""

import numpy as np
import pytest

from untwist.automatic.candidates import FoldRun, has_stalled
from untwist.model import Candidate


class ScriptedBooster:
    """A booster whose curves are written down; it ends by itself where these do."""

    def __init__(self, losses, edge=0.1):
        self.all_losses, self.edge, self.done = np.asarray(losses, dtype=float), edge, 0

    def boost(self, n_rounds, patience=0):
        self.done += n_rounds
        return self.done

    def losses(self):
        return self.all_losses[: self.done]

    def errors(self):
        return self.losses() / 8

    def last_edge(self):
        return self.edge

    def ensemble(self):
        return Rounds(min(self.done, len(self.all_losses)))


class Rounds:
    """An ensemble and its forest in one: how many rounds are kept, and from which score they begin."""

    def __init__(self, count, start=0.0):
        self.count, self.start = count, start

    def __len__(self):
        return self.count

    def keep_first(self, count):
        assert count <= self.count
        return Rounds(count)

    @property
    def forest(self):
        return self

    def shift(self, start):
        return Rounds(self.count, start)


def make_run(*curves, weights=None, starts=None, edges=None, **options):
    """Return a run of classes with a booster per fold each."""
    n_folds = len(curves[0])
    weights = np.ones(n_folds) if weights is None else np.array(weights, dtype=float)
    boosters = [[ScriptedBooster(curve) for curve in folds] for folds in curves]
    for one, edge in zip((one for folds in boosters for one in folds), edges or (), strict=False):
        one.edge = edge
    starts = [[0.0] * n_folds for _ in curves] if starts is None else starts
    return FoldRun(2.0, 3, 0.5, 0.1, boosters, weights, starts, **options)


def test_curves_are_means_over_folds_by_weight_and_a_booster_that_ended_stays_where_it_was():
    run = make_run([[4.0, 2.0, 1.0], [8.0]], [[1.0, 1.0, 3.0], [5.0, 6.0, 7.0]], weights=[3.0, 1.0])
    run.boost(3)
    first, second = [5.0, 3.5, 2.75], [2.0, 2.25, 4.0]
    np.testing.assert_array_equal(run.losses(), np.add(first, second) / 2)
    for (losses, errors), expected in zip(run.curves(), (first, second), strict=True):
        np.testing.assert_array_equal(losses, expected)
        np.testing.assert_array_equal(errors, np.array(expected) / 8)
    report = run.last_round()
    assert (report.loss, report.error) == (3.375, 3.375 / 8)


def test_folds_that_are_ahead_wait_for_the_others():
    run = make_run([[4.0, 2.0, 1.0], [4.0, 2.0, 1.0]])
    run.boost(2)
    run.boosters[0][0].boost(1)  # Ctrl-C came before the other one had its turn.
    np.testing.assert_array_equal(run.losses(), [4.0, 2.0])


class Team:
    """Boosts one booster after the other and notes the rounds; the call of a number may be broken off halfway."""

    def __init__(self, error=None, broken_call=None):
        self.error, self.broken_call, self.calls = error, broken_call, []

    def boost(self, boosters, n_rounds):
        self.calls.append((len(boosters), n_rounds))
        if len(self.calls) == self.broken_call:
            boosters[0].boost(n_rounds)
            raise self.error
        for booster in boosters:
            booster.boost(n_rounds)


CURVES = [[4.0, 2.0, 1.5, 1.0, 0.5, 0.4], [8.0, 2.0, 3.0, 1.0, 0.25, 0.2]], [[1.0] * 6, [2.0, 3.0, 4.0, 3.0, 2.0, 1.0]]


def test_a_team_makes_the_same_rounds_as_one_booster_after_the_other():
    team = Team()
    together, alone = make_run(*CURVES, team=team), make_run(*CURVES)
    for n_rounds in (2, 1, 3):
        for run in (together, alone):
            run.boost(n_rounds)
        assert [one.done for folds in together.boosters for one in folds] == [alone.count] * 4
        assert together.made == alone.made == alone.count
        assert together.summarise(None) == alone.summarise(None)
        np.testing.assert_array_equal(together.losses(), alone.losses())
    assert (together.count, together.made) == (6, 6)
    assert team.calls == [(4, 2), (4, 1), (4, 3)]


def test_companions_make_as_many_rounds_and_are_judged_by_none_of_them_before_their_turn():
    team, companions = Team(), []
    run = make_run(*CURVES, team=team, companions=companions)
    later = make_run(*CURVES, team=team)
    run.boost(1)
    companions.append(later)
    run.boost(2)
    assert [one.done for folds in later.boosters for one in folds] == [2] * 4
    assert (later.made, later.count, len(later.losses())) == (2, 0, 0)
    assert team.calls == [(4, 1), (8, 2)]
    later.boost(1)
    later.boost(1)
    assert len(team.calls) == 2  # The rounds were there.
    assert (later.made, later.count) == (2, 2)
    alone = make_run(*CURVES)
    alone.boost(2)
    assert later.summarise(2) == alone.summarise(2)
    later.boost(1)
    assert team.calls[2:] == [(4, 1)]
    assert [one.done for one in later.boosters[0]] == [3, 3]


def test_a_run_that_is_ahead_tells_of_the_rounds_that_are_asked_for_only():
    ahead, alone = make_run(*CURVES, team=Team(), made=5), make_run(*CURVES)
    for booster in (one for folds in ahead.boosters for one in folds):
        booster.boost(5)
    for run in (ahead, alone):
        run.boost(3)
    np.testing.assert_array_equal(ahead.losses(), alone.losses())
    assert ahead.summarise(None) == alone.summarise(None)
    for one, other in zip(ahead.curves(), alone.curves(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [[one.count for one in folds] for folds in ahead.list_forests(3)] == [[3, 3], [3, 3]]


@pytest.mark.parametrize(("n_made", "n_calls"), [(0, 1), (3, 1), (9, 1), (10, 0), (11, 0)])
def test_a_run_makes_as_many_rounds_as_are_asked_for_however_many_were_made_before(n_made, n_calls):
    team = Team()
    run = make_run([np.ones(40)], team=team, made=n_made, ends_by_itself=False)
    run.boosters[0][0].boost(n_made)
    run.boost(10)
    assert len(team.calls) == n_calls
    assert len(run.losses()) == run.count == 10
    assert run.boosters[0][0].done == run.made >= 10


def test_companions_whose_loss_rests_wait_for_their_turn():
    """They need no more rounds: when their turn comes, they end where they rest."""
    team = Team()
    falling, resting, given = np.linspace(2.0, 1.0, 60), np.append([3.0, 2.0], np.full(58, 1.0)), np.ones(60)
    rests, goes_on = make_run([resting], team=team), make_run([falling], team=team)
    makes_all = make_run([given], team=team, ends_by_itself=False)
    run = make_run([falling], team=team, companions=[rests, goes_on, makes_all])
    for _ in range(4):
        run.boost(10)
    assert team.calls == [(4, 10), (4, 10), (3, 10), (3, 10)]
    assert (rests.made, goes_on.made, makes_all.made) == (20, 40, 40)
    assert (rests.rests, goes_on.rests, makes_all.rests) == (True, False, False)
    assert [rests.boost(10), rests.boost(10)] == [True, False]
    alone = make_run([resting])
    assert [alone.boost(10), alone.boost(10)] == [True, False]
    assert rests.summarise(None) == alone.summarise(None)
    assert len(team.calls) == 4


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()], ids=repr)
def test_an_error_or_ctrl_c_in_a_team_is_raised_and_the_rounds_before_are_kept(error):
    companion = make_run(*CURVES)
    run = make_run(*CURVES, team=Team(error, broken_call=2), companions=[companion])
    run.boost(2)
    before = run.summarise(2)
    with pytest.raises(type(error)):
        run.boost(3)
    assert [one.done for folds in run.boosters for one in folds] == [5, 2, 2, 2]
    assert (run.count, run.made, companion.made) == (2, 2, 2)
    assert run.summarise(2) == before
    assert [[one.count for one in folds] for folds in run.list_forests(2)] == [[2, 2], [2, 2]]


def test_the_edge_of_a_round_is_the_mean_of_all_boosters():
    run = make_run([[1.0], [1.0]], [[1.0], [1.0]], edges=[0.1, 0.2, 0.3, 0.8])
    run.boost(1)
    assert run.last_round().edge == pytest.approx(0.35)


def test_half_of_the_rounds_beyond_the_best_are_kept_unless_all_were_asked_for():
    losses = [5.0, 4.0, 1.0, 2.0, 3.0, 6.0, 7.0, 8.0]
    run = make_run([losses])
    run.boost(8)
    assert run.summarise(None) == Candidate(2.0, 3, 0.1, 5, 3.0, 3.0 / 8, 0.5)
    assert run.summarise(8) == Candidate(2.0, 3, 0.1, 8, 8.0, 1.0, 0.5)
    assert run.key == (2.0, 3, 0.5)


def test_a_run_goes_on_while_its_loss_falls():
    falling = 2.0 - 0.01 * np.arange(100)
    run = make_run([falling], slow_after=30)
    assert run.boost(10)
    assert run.count == 10
    assert run.boost(19)
    assert not run.is_slow
    assert not run.boost(1)
    assert run.is_slow
    patient = make_run([falling])
    assert patient.boost(90)
    assert not patient.is_slow
    resting = make_run([np.ones(100)])
    assert not resting.boost(16)
    assert not resting.is_slow
    assert make_run([np.ones(100)], ends_by_itself=False).boost(90)


@pytest.mark.parametrize(
    ("loss", "n_rounds", "goes_on"),
    [(1.1, 10, True), (1.100001, 10, False), (1.100001, 9, True), (0.5, 10, True), (9.0, 11, False)],
)
def test_a_run_far_behind_the_best_is_hopeless_after_as_many_rounds(loss, n_rounds, goes_on):
    best = Candidate(1.0, 2, 0.1, n_rounds=10, loss=1.0, error=0.1)
    run = make_run([np.append(np.full(20, 10.0 * loss), loss)], to_beat=best)
    run.boosters[0][0].all_losses[n_rounds - 1] = loss
    assert run.boost(n_rounds) is goes_on


def test_folds_of_another_run_are_added_class_by_class():
    run = make_run([[1.0], [2.0]], [[3.0], [4.0]], weights=[1.0, 2.0], starts=[[0.1, 0.2], [0.3, 0.4]])
    more = make_run([[5.0]], [[6.0]], weights=[3.0], starts=[[0.5], [0.6]])
    run.boost(1)
    more.boost(1)
    run.take_folds(more)
    assert [[one.all_losses[0] for one in folds] for folds in run.boosters] == [[1.0, 2.0, 5.0], [3.0, 4.0, 6.0]]
    assert run.fold_weights.tolist() == [1.0, 2.0, 3.0]
    assert run.starts == [[0.1, 0.2, 0.5], [0.3, 0.4, 0.6]]
    assert run.losses().tolist() == [(1 + 4 + 15 + 3 + 8 + 18) / 12]


def test_forests_have_the_first_rounds_and_the_scores_that_they_began_at():
    run = make_run([[1.0] * 9, [1.0] * 2], [[1.0] * 9, [1.0] * 9], starts=[[0.0, 0.5], [-0.25, 0.0]])
    run.boost(9)
    forests = run.list_forests(5)
    assert [[(one.count, one.start) for one in folds] for folds in forests] == [
        [(5, 0.0), (2, 0.5)],
        [(5, -0.25), (5, 0.0)],
    ]


def has_stalled_slowly(losses):
    """As `has_stalled`, from its words."""
    best = min(range(len(losses)), key=lambda t: losses[t])
    patience = max(15, best // 4)
    if len(losses) <= patience:
        return False
    before = min(losses[: len(losses) - patience])
    since = min(losses[len(losses) - patience :])
    progress = before - since
    return not (progress > 0.003 * since and progress > 0.0005)


@pytest.mark.parametrize("seed", range(20))
def test_a_loss_has_stalled_as_a_slow_twin_says(seed):
    rng = np.random.default_rng(seed)
    time, end = rng.uniform(3, 60), rng.choice([0.0, 0.05, 0.5])
    losses = end + 0.7 * np.exp(-np.arange(1, 250) / time) + rng.normal(scale=rng.choice([0.0, 1e-3]), size=249)
    answers = [has_stalled(losses[:n]) for n in range(1, 250)]
    assert answers == [has_stalled_slowly(losses[:n].tolist()) for n in range(1, 250)]
    assert not answers[0]


def test_a_loss_stalls_at_the_very_limits():
    def step_down(by, level=0.0, n_rounds=16):
        return has_stalled(np.append(np.full(n_rounds - 1, level + by), level))

    assert has_stalled(np.full(16, 0.5))
    assert not has_stalled(np.full(15, 0.5))
    assert step_down(0.0005)
    assert not step_down(0.00051)
    assert step_down(0.00299, 1.0)
    assert not step_down(0.00301, 1.0)
    late = np.concatenate([np.linspace(2.0, 1.0, 80), np.full(19, 1.0)])
    assert not has_stalled(
        late[:98]
    )  # The best round is the 80th: 18 rounds of rest are not a quarter of those before.
    assert has_stalled(late)
