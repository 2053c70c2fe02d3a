"""Boosters side by side: a team makes the same trees as each booster by itself, bit for bit, whatever its threads."""

import _thread
import os
import signal
import threading
import time

import numpy as np
import pytest

from helpers.engines import get_training_scores, make_booster, make_dataset
from helpers.patience import PATIENCE
from helpers.quick import make_classifier
from untwist import _core
from untwist.boosting.engines.compiled import CompiledEngine, CompiledTeam
from untwist.boosting.engines.engine import TreeGrowth
from untwist.links import CanonicalLink, ClippedLink, LogitLink
from untwist.losses import AlphaLoss


def draw_rows(n=300, n_classes=3, seed=0):
    """Numbers, some of them missing, categories in the last column, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    labels = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n), np.arange(1, n_classes) - n_classes / 2)
    X[:, 4] = rng.integers(0, 4, n)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, labels


X, LABELS = draw_rows()
DATASET = make_dataset(X, LABELS, categories={4: 4})
HALF = (np.arange(len(X)) % 2).astype(float)

KINDS = [
    (ClippedLink(AlphaLoss(2.0)), 1.0, TreeGrowth(max_depth=2), {"positive_class": 1}),
    (LogitLink(AlphaLoss(1.0)), 0.2, TreeGrowth(max_depth=6, subsample=0.7, max_features=0.7), {"by_edge": False}),
    (CanonicalLink(AlphaLoss(1.5)), 0.5, TreeGrowth(max_leaf_nodes=9, max_depth=None), {"positive_class": 2}),
    (ClippedLink(AlphaLoss(1.0)), 0.1, TreeGrowth(max_depth=4, extra=True), {"positive_class": None, "by_edge": False}),
    (ClippedLink(AlphaLoss(4.0)), 0.3, TreeGrowth(max_depth=1, min_samples_leaf=9), {"weight": 1.0 + HALF}),
]


def make_kind(index):
    """Return one of many boosters, none of which is like another."""
    link, step, growth, task = KINDS[index % len(KINDS)]
    task = {"positive_class": 0, "weight": 1.0 - 0.5 * HALF, "validation_weight": HALF} | task
    return make_booster(DATASET, link, step * (1 + index // len(KINDS)), growth, **task)


def boost_alone(index, n_rounds, patience=0):
    booster = make_kind(index)
    booster.boost(n_rounds, patience)
    return booster


def assert_same(one, other):
    """Trees, edges, losses, errors and scores are the same, bit for bit."""
    assert len(one.core) == len(other.core)
    for left, right in zip(one.core.trees(0), other.core.trees(0), strict=True):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(one.losses(), other.losses())
    np.testing.assert_array_equal(one.errors(), other.errors())
    np.testing.assert_array_equal(get_training_scores(one), get_training_scores(other))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("n_boosters", [1, 2, 5, 17])
def test_boosters_of_a_team_make_the_rounds_that_they_make_alone(n_threads, n_boosters):
    """There are fewer threads than boosters, as many, and more; and so few that no booster is left before its end."""
    boosters = [make_kind(index) for index in range(n_boosters)]
    team = CompiledTeam(n_threads)
    assert team.boost(boosters, 4) == [4] * n_boosters
    assert team.boost(boosters, 1) == [5] * n_boosters
    assert team.boost(boosters, 7) == [12] * n_boosters
    for index, booster in enumerate(boosters):
        assert_same(booster, boost_alone(index, 12))


def test_kinds_of_boosters_differ():
    """Otherwise a booster could pass for another."""
    losses = [tuple(boost_alone(index, 3).losses()) for index in range(4 * len(KINDS))]
    assert len(set(losses)) == len(losses)


def test_boosters_may_join_late_and_leave_early():
    team, boosters = CompiledTeam(3), [make_kind(index) for index in range(4)]
    assert team.boost(boosters[:2], 5) == [5, 5]
    assert team.boost(boosters, 3) == [8, 8, 3, 3]
    assert team.boost(boosters[1:], 2) == [10, 5, 5]
    boosters[0].boost(1)  # By itself it goes on, too.
    for index, (booster, n_rounds) in enumerate(zip(boosters, [9, 10, 5, 5], strict=True)):
        assert_same(booster, boost_alone(index, n_rounds))


def test_several_teams_may_boost_at_the_same_time():
    counts = {}

    def boost(place):
        boosters = [make_kind(index) for index in range(3)]
        for _ in range(3):
            counts[place] = CompiledTeam(2).boost(boosters, 5)
        counts[place] = boosters

    threads = [threading.Thread(target=boost, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    expected = [boost_alone(index, 15) for index in range(3)]
    for place in range(3):
        for one, other in zip(counts[place], expected, strict=True):
            assert_same(one, other)


def test_no_rounds_and_no_boosters_are_nothing_to_do():
    team, booster = CompiledTeam(2), make_kind(0)
    assert team.boost([], 5) == []
    assert team.boost([booster], 0) == [0]
    assert team.boost([booster, make_kind(1)], 0) == [0, 0]


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_a_booster_whose_weights_vanish_ends_and_the_others_go_on(n_threads):
    """Where the classes are apart, steps so long leave no row a weight, or no gradient."""
    rows, labels = np.repeat([[0.0], [1.0]], 20, axis=0), np.repeat([0, 1], 20)
    apart = make_dataset(rows, labels)

    def make_ending():
        clipped = make_booster(apart, ClippedLink(AlphaLoss(2.0)), 100.0, TreeGrowth(max_depth=1), positive_class=1)
        jointly = make_booster(
            apart, ClippedLink(AlphaLoss(1.0)), 1000.0, TreeGrowth(), positive_class=None, by_edge=False
        )
        return [clipped, jointly]

    alone = [booster.boost(50) for booster in make_ending()]
    assert max(alone) < 50
    team, boosters = CompiledTeam(n_threads), [*make_ending(), make_kind(0), make_kind(1)]
    assert team.boost(boosters, 50) == [*alone, 50, 50]
    assert team.boost(boosters, 3) == [*alone, 53, 53]  # What has ended stays as it is.
    for index in (0, 1):
        assert_same(boosters[2 + index], boost_alone(index, 53))


@pytest.mark.parametrize("n_threads", [1, 2, 12])
@pytest.mark.parametrize("patience", [1, 3])
def test_boosters_stop_by_their_own_patience(n_threads, patience):
    boosters = [make_kind(index) for index in range(10)]
    alone = [boost_alone(index, 200, patience) for index in range(10)]
    counts = [len(booster.core) for booster in alone]
    assert min(counts) < max(counts)
    assert min(counts) > patience
    team = CompiledTeam(n_threads)
    assert team.boost(boosters, 200, patience) == counts
    for one, other in zip(boosters, alone, strict=True):
        assert_same(one, other)


def test_a_booster_that_is_in_use_is_refused_and_all_may_be_used_afterwards():
    team, booster, other = CompiledTeam(2), make_kind(0), make_kind(1)
    with pytest.raises(RuntimeError, match="at work in another thread"):
        team.boost([other, booster, booster], 3)
    assert team.boost([other, booster], 3) == [3, 3]
    assert_same(booster, boost_alone(0, 3))


def test_the_border_refuses_nonsense():
    for threads in (0, -1):
        with pytest.raises(ValueError, match="threads must be positive"):
            _core.Team(threads)
    booster = make_kind(0)
    with pytest.raises((TypeError, RuntimeError)):
        _core.Team(2).boost([booster.core, "booster"], 3)
    assert len(booster.core) == 0
    assert booster.boost(1) == 1  # Nobody holds it any more.


def list_threads():
    return set(os.listdir("/proc/self/task"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="this system does not list threads")
def test_the_threads_of_a_team_end_with_it():
    before = list_threads()
    team = CompiledTeam(4)
    team.boost([make_kind(index) for index in range(4)], 2)
    started = list_threads() - before
    assert len(started) >= 3
    del team
    give_up = time.monotonic() + PATIENCE
    while started & list_threads() and time.monotonic() < give_up:
        time.sleep(0.001)  # The system takes a moment to strike a thread off its list.
    assert not started & list_threads()


@pytest.mark.parametrize("n_boosters", [1, 2, 5, 40])
def test_ctrl_c_leaves_whole_rounds_to_go_on_from(n_boosters):
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals go to the main thread")
    kinds = [index for index in range(100) if index % len(KINDS) in (0, 2, 4)][:n_boosters]  # They grow on and on.
    boosters, team = [make_kind(index) for index in kinds], CompiledTeam(2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for seconds in (0.25, 1.0, 4.0, 16.0):  # A busy machine may not have begun by the first of these.
            timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the signal may come as soon as the timer runs
                timer.start()
                team.boost(boosters, 10**8)
            timer.join()
            counts = [len(booster.core) for booster in boosters]
            if max(counts) > 0:
                break
    finally:
        signal.signal(signal.SIGINT, before)
    assert max(counts) > 0
    assert [len(booster.losses()) for booster in boosters] == counts
    assert team.boost(boosters, 2) == [count + 2 for count in counts]
    for place in {0, n_boosters // 2, n_boosters - 1}:
        assert_same(boosters[place], boost_alone(kinds[place], counts[place] + 2))


def run_forked(work):
    """Return how a forked process ends that does some work and leaves as programs do."""
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no processes")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_lets_go_of_a_team_or_goes_on_with_threads_of_its_own():
    teams, boosters = [CompiledTeam(4)], [make_kind(index) for index in range(3)]
    teams[0].boost(boosters, 5)

    def go_on():
        assert teams[0].boost(boosters, 5) == [10] * 3
        for index, booster in enumerate(boosters):
            assert_same(booster, boost_alone(index, 10))
        teams.clear()

    assert run_forked(teams.clear) == 0
    assert run_forked(go_on) == 0
    assert teams[0].boost(boosters, 1) == [6] * 3  # The parent has its threads as before.


def test_a_team_that_is_at_work_is_not_lent():
    team, booster = CompiledTeam(2), make_kind(0)
    found, has_asked = [], threading.Event()

    def ask():
        try:
            team.boost([make_kind(1)], 1)
        except RuntimeError as error:
            found.append(str(error))
        finally:
            has_asked.set()

    def interrupt(*_):
        has_asked.clear()
        # Where coverage is measured, a thread of `threading` is traced, and so waits for a lock that the interrupted
        # thread may hold.
        _thread.start_new_thread(ask, ())
        has_asked.wait(PATIENCE)
        # The next one comes when this one is done, however long it takes.
        signal.setitimer(signal.ITIMER_REAL, 0 if found else 0.01)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        give_up = time.monotonic() + PATIENCE
        while not found and time.monotonic() < give_up:
            team.boost([booster], 20_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert set(found) == {"this team of threads is at work in another thread"}


# ---- fits ----


@pytest.mark.parametrize(
    "settings",
    [{}, {"early_stopping": 3}, {"subsample": 0.6, "max_features": 0.6}, {"l2": 2.0}],
    ids=str,
)
def test_classes_side_by_side_are_those_that_are_boosted_one_after_the_other(settings, monkeypatch):
    n_teams = []
    make_team = CompiledEngine.make_team

    def note(self, n_threads):
        n_teams.append(n_threads)
        return make_team(self, n_threads)

    monkeypatch.setattr(CompiledEngine, "make_team", note)
    settings = {"alpha": 2.0, "n_estimators": 30, "max_depth": 3, "random_state": 0} | settings
    alone = make_classifier(**settings, n_jobs=1).fit(X, LABELS)
    assert n_teams == []
    for n_jobs in (2, 7):
        together = make_classifier(**settings, n_jobs=n_jobs).fit(X, LABELS)
        assert n_teams.pop() == n_jobs
        for one, other in zip(together.model_.ensembles, alone.model_.ensembles, strict=True):
            for name, values in vars(one.forest).items():
                np.testing.assert_array_equal(values, getattr(other.forest, name), err_msg=name)
            np.testing.assert_array_equal(one.losses, other.losses)
        np.testing.assert_array_equal(together.predict_proba(X), alone.predict_proba(X))
