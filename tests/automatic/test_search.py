"""What a search decides before and between candidates, and that it chooses the same on however many threads."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_circles, make_classification

from helpers.quick import make_classifier, resolve
from helpers.small_fits import assert_same_forests
from untwist.automatic.candidates import CandidateKey
from untwist.automatic.search import Search
from untwist.boosting.engines.compiled import CompiledEngine
from untwist.boosting.engines.engine import Engine
from untwist.boosting.runs import advance
from untwist.links import LogitLink
from untwist.model import Candidate
from untwist.settings import JOINT_LEARNING_RATES, LEARNING_RATES, MIXED_ALPHAS, MIXED_DEPTHS
from untwist.training_data import TrainingData


class EndedError(Exception):
    """Ends a search where a test has seen enough."""


def end_search(*_):
    raise EndedError


def make_search(n_classes=2, changes=None, **settings):
    """Return a search over 60 rows; `changes` are fields of its data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.digitize(X[:, 0], np.arange(1, n_classes) - n_classes / 2)
    parameters = make_classifier(random_state=0, **{"n_jobs": 1} | settings).get_params(deep=False)
    data = TrainingData.collect(resolve(parameters), X, y)
    return Search(replace(data, **changes or {}))


@pytest.mark.parametrize(
    ("settings", "enough"),
    [({}, 600), ({"n_classes": 3}, 1000), ({"boosted_only": True}, 4000)],
    ids=str,
)
def test_candidates_are_compared_on_as_many_folds_as_set_enough_rows_aside(settings, enough):
    search = make_search(**settings)
    for weights in ([enough] * 5, [enough - 1] * 5, [enough / 3 + 1] * 5, [enough / 4] * 5, [1.0] * 5, [9e9]):
        search.fold_weights = np.array(weights)
        expected = next((k for k in range(1, len(weights)) if sum(weights[:k]) >= enough), len(weights))
        assert search.n_first_folds == expected


def test_folds_weigh_what_they_set_aside():
    search = make_search()
    assert search.held_out_weight is search.data.folds
    np.testing.assert_array_equal(search.fold_weights, search.data.folds.sum(axis=1))


def widen(n_features, n_rows):
    encoder = replace(make_search().data.encoder, n_features=n_features)
    return {"encoder": encoder, "n_effective_rows": float(n_rows)}


@pytest.mark.parametrize(
    ("n_features", "n_rows", "is_wide"), [(10_001, 1000, True), (10_000, 1000, False), (10_001, 1001, False)]
)
def test_few_rows_with_many_columns_make_fewer_rounds_of_longer_steps(n_features, n_rows, is_wide):
    search = make_search(changes=widen(n_features, n_rows), boosted_only=True)
    assert search.most_rounds == (100 if is_wide else 1000)
    assert (search.step, *search.longer_steps) == ((LEARNING_RATES[0], 0.2) if is_wide else LEARNING_RATES)
    assert start(search)[0].slow_after == (50 if is_wide else 200)


def test_what_was_given_is_not_chosen():
    search = make_search(n_estimators=30, boosted_only=True)
    assert (search.most_rounds, search.fixed_rounds) == (30, 30)
    assert make_search().fixed_rounds is None
    step = make_search(changes={"settings": replace(search.settings, step=0.3)})
    assert (step.step, step.longer_steps) == (0.3, [])
    assert make_search(max_depth=3).depths == [3]
    assert make_search(alpha=2.0).alphas == (2.0,)


def test_a_second_fit_of_mixed_families_tries_nothing_but_what_the_first_has_chosen():
    chosen = Candidate(1.5, 6, 0.1, 10, 0.5, 0.1)
    second = make_search(changes={"settings": make_search().settings.narrow_to(chosen)})
    assert second.data.boosts_log_odds
    assert (second.depths, second.alphas) == ([6], (1.5,))
    assert second.forecast.n_candidates == 1


def test_families_that_are_mixed_have_candidates_of_their_own():
    mixed, boosted, several = make_search(), make_search(boosted_only=True), make_search(3)
    assert (mixed.alphas, mixed.depths) == (MIXED_ALPHAS, sorted(MIXED_DEPTHS))
    assert len(mixed.shares) > 1
    for other in (boosted, several):
        assert other.alphas == other.settings.alphas
        assert other.depths == sorted(other.settings.depths)
        assert other.shares == (None,)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"n_rows": 200_000}, True),
        ({"n_rows": 200_001}, False),
        ({"workers": SimpleNamespace(size=2, sum=lambda values: values)}, False),
    ],
)
def test_small_tables_are_boosted_side_by_side_on_one_machine(changes, expected):
    def find_team(n_jobs, make_team):
        search = make_search(changes=changes, n_jobs=n_jobs)
        settings = replace(search.settings, engine=SimpleNamespace(make_team=make_team, boosts_jointly=True))
        search.settings, search.data = settings, replace(search.data, settings=settings)
        teams = []

        def try_candidate(*_):
            teams.append(search.team)
            raise EndedError

        search.try_candidate = try_candidate
        with pytest.raises(EndedError):
            search.run()
        assert search.foresees is (teams[0] is not None)
        assert search.team is None
        return teams[0]

    assert find_team(2, lambda n_threads: f"team of {n_threads}") == ("team of 2" if expected else None)
    assert find_team(7, lambda n_threads: f"team of {n_threads}") == ("team of 7" if expected else None)
    assert find_team(1, lambda n_threads: f"team of {n_threads}") is None
    assert find_team(2, lambda n_threads: None) is None  # Its boosters work one after the other.


# ---- the order of candidates ----


def run_with_losses(search, losses):
    """Have candidates lose what is written down by (alpha, depth, drawn), or 1; return the list of those tried."""
    tried = []

    def try_candidate(alpha, depth, drawn=None):
        key = CandidateKey(alpha, depth, search.shares[0] if drawn is None else drawn)
        if key not in search.candidates:
            tried.append(tuple(key))
            loss = losses.get(tuple(key), 1.0)
            search.candidates[key] = Candidate(alpha, depth, 0.1, 10, loss, 0.1, key.drawn)
            best = None if search.best_run is None else search.candidates[search.best_run.key].loss
            if best is None or loss < best:
                search.best_run = SimpleNamespace(key=key, list_forests=end_search)
        return search.candidates[key].loss

    search.try_candidate = try_candidate
    with pytest.raises(EndedError):
        search.run()
    return tried


def test_depth_comes_first_and_then_larger_alphas_as_long_as_they_help():
    def run(losses):
        search = make_search(boosted_only=True)
        search.settings = replace(search.settings, alphas=(1.0, 2.0, 4.0, 8.0))
        assert search.depths == [2, 4, 6]
        return run_with_losses(search, losses)

    best = {(1.0, 2, None): 0.5}
    depths = [(1.0, 4, None), (1.0, 2, None)]
    assert run(best) == [*depths, (2.0, 2, None)]
    # An alpha that is as good is no reason to stop.
    assert run(best | {(2.0, 2, None): 0.5, (4.0, 2, None): 0.6}) == [*depths, (2.0, 2, None), (4.0, 2, None)]


def test_mixed_families_try_larger_alphas_as_in_the_paper():
    search = make_search()
    first, second, third = MIXED_ALPHAS[:3]
    drawn, plain = search.shares
    tried = run_with_losses(search, {(third, 3, plain): 1.5})
    assert [key for key in tried if key[0] != first] == [(second, 3, plain), (third, 3, plain)]
    assert {key[2] for key in tried if key[0] == first} == {drawn}


def test_a_given_depth_is_tried_once():
    search = make_search(max_depth=3, boosted_only=True, alpha=1.0)
    assert run_with_losses(search, {}) == [(1.0, 3, None)]


def make_coded_search(sets):
    """Return a search over columns of many categories, which may be split by sets."""
    search = make_search(boosted_only=True)
    workers = SimpleNamespace(size=2)  # Nothing is boosted side by side.
    search.data = SimpleNamespace(
        split_by_sets=lambda: sets, boosts_log_odds=False, workers=workers, settings=search.settings
    )
    return search


@pytest.mark.parametrize(
    ("of_numbers", "of_sets", "interrupt", "takes_sets"),
    [
        (1.0, 0.97, False, True),
        (1.0, 0.981, False, False),
        (1.0, 0.5, True, False),
        (0.5, 0.48, False, True),
        (0.5, 0.495, False, False),
        (0.5, 1.5, False, False),
    ],
)
@pytest.mark.parametrize("mixes", [False, True])
def test_sets_take_the_place_of_numbers_where_they_gain_enough(of_numbers, of_sets, interrupt, takes_sets, mixes):
    sets = SimpleNamespace(boosts_log_odds=mixes)
    search = make_coded_search(sets)
    search.data.boosts_log_odds = mixes
    losses, tried = iter([of_numbers, of_sets]), []

    def try_candidate(alpha, depth):
        if len(tried) == 2:
            raise EndedError
        tried.append((alpha, depth, search.data is sets))
        search.candidates[len(tried)] = "tried"
        search.best_run = len(tried)
        search.interrupt = KeyboardInterrupt() if interrupt and len(tried) == 2 else None
        return next(losses)

    search.try_candidate = try_candidate
    with pytest.raises(EndedError):
        search.run()
    middle = 4  # Of the depths 2, 4 and 6, or 2, 3, 4 and 6 where families are mixed.
    assert tried == [(search.alphas[0], middle, False), (search.alphas[0], middle, True)]
    assert (search.data is sets) is takes_sets
    assert (list(search.candidates), search.best_run) == (([2], 2) if takes_sets else ([1], 1))


def test_sets_are_not_tried_where_the_search_has_ended():
    search, seen = make_coded_search("sets"), []

    def try_candidate(alpha, depth):
        if seen:
            raise EndedError
        seen.append(search.data)
        search.stopped = True
        return 1.0

    search.try_candidate = try_candidate
    with pytest.raises(EndedError):
        search.run()
    assert search.data is seen[0]


# ---- runs ----


class Noting(Engine):
    """Makes nothing and notes the tasks that it was given."""

    def __init__(self):
        self.tasks = []

    def make_dataset(self, rows, settings):
        raise NotImplementedError

    def make_booster(self, dataset, task):
        self.tasks.append(task)
        return f"booster {len(self.tasks)}"


def start(search, alpha=2.0, depth=3, drawn=None, folds=range(1, 3), team=None):
    engine = Noting()
    search.settings = replace(search.settings, engine=engine)
    search.team = team
    search.step = 0.25
    return search.start_run(CandidateKey(alpha, depth, drawn), folds), engine.tasks


def test_a_run_has_a_booster_for_each_class_and_fold(monkeypatch):
    monkeypatch.setattr(CompiledEngine, "boosts_jointly", False)  # Then each class is boosted against the rest.
    search = make_search(3, boosted_only=True, alpha=2.0)
    run, tasks = start(search)
    n_classes = len(search.data.positive_classes)
    assert run.boosters == [[f"booster {2 * k + 1}", f"booster {2 * k + 2}"] for k in range(n_classes)]
    assert (run.alpha, run.depth, run.drawn, run.step, run.count) == (2.0, 3, None, 0.25, 0)
    np.testing.assert_array_equal(run.fold_weights, search.fold_weights[1:3])
    for place, task in enumerate(tasks):
        fold = 1 + place % 2
        np.testing.assert_array_equal(task.weight, search.data.training_weight(fold))
        np.testing.assert_array_equal(task.validation_weight, search.data.folds[fold])
        assert task.growth.max_depth == 3
        begin = run.starts[place // 2][place % 2]
        assert task.start is None if begin == 0.0 else (task.start == begin).all()


@pytest.mark.parametrize(
    ("settings", "factor"), [({"boosted_only": True}, 1.0), ({}, 4.0), ({"n_classes": 3}, 2.0)], ids=str
)
def test_steps_of_scores_that_are_logarithms_go_with_alpha(settings, factor):
    search = make_search(**settings)
    run, tasks = start(search)
    assert run.step == 0.25
    assert {task.step_size for task in tasks} == {0.25 * factor}
    assert all(isinstance(task.link, LogitLink) == (settings == {}) for task in tasks)


def test_trees_draw_the_share_of_the_candidate():
    for drawn in (None, 0.5):
        search = make_search()
        (task, *_) = start(search, drawn=drawn)[1]
        expected = search.data.growth.subsample if drawn is None else 0.5
        assert task.growth.subsample == expected
        assert drawn is None or task.growth.max_features == 0.5


def test_an_engine_boosts_one_booster_after_the_other_unless_it_says_otherwise():
    assert Noting().make_team(2) is None


@pytest.mark.parametrize("folds", [range(1), range(2), range(2, 5)], ids=str)
def test_the_boosters_of_a_run_have_the_team_of_the_search(folds):
    for team in (None, object()):
        run, tasks = start(make_search(), folds=folds, team=team)
        assert run.team is team
        assert len(tasks) == len(folds)


def test_a_run_knows_what_it_has_to_beat_and_when_it_is_slow():
    search = make_search(boosted_only=True)
    best = CandidateKey(1.0, 4)
    search.candidates[best] = "the best"
    search.best_run = SimpleNamespace(key=best)
    run, _ = start(search)
    assert (run.to_beat, run.slow_after, run.ends_by_itself) == ("the best", 200, True)
    given = make_search(changes={"settings": replace(search.settings, n_rounds=9, step=0.1)})
    run, _ = start(given)
    assert (run.to_beat, run.slow_after, run.ends_by_itself) == (None, None, False)


@pytest.mark.parametrize(
    ("settings", "n_candidates"),
    [({}, 4), ({"max_depth": 3}, 2), ({"alpha": 2.0}, 3), ({"alpha": 2.0, "max_depth": 3}, 1)],
    ids=str,
)
def test_a_forecast_expects_what_is_open(settings, n_candidates):
    forecast = make_search(**settings).forecast
    assert forecast.n_candidates == n_candidates
    assert (forecast.n_folds, forecast.n_rows, forecast.n_classes, forecast.most_rounds) == (5, 60, 2, 1000)
    assert not forecast.has_sources
    assert make_search(boosted_only=True).forecast.n_trees == 0
    assert make_search().forecast.n_trees == 20


# ---- candidates that are boosted before it is their turn ----


@pytest.mark.parametrize(
    ("settings", "by_threads"),
    [
        ({}, {1: 1, 4: 1, 9: 1, 10: 2, 14: 2, 15: 3, 24: 4, 25: 5, 1000: 5}),  # Four depths, and a larger alpha.
        ({"boosted_only": True}, {9: 1, 10: 2, 15: 3, 1000: 3}),
        ({"boosted_only": True, "max_depth": 3}, {9: 1, 1000: 1}),
        # Classes that are boosted one by one have a booster each on every fold.
        ({"n_classes": 3, "engine": "xgboost"}, {29: 1, 30: 2, 44: 2, 45: 3, 1000: 3}),
    ],
    ids=str,
)
def test_as_many_candidates_are_boosted_at_once_as_there_are_threads_for(settings, by_threads):
    for n_jobs, expected in by_threads.items():
        search = make_search(**settings, n_jobs=n_jobs)
        assert search.n_first_folds == 5
        assert search.n_runs_at_once == 1  # Nobody has said that others may begin.
        search.foresees = True
        assert search.n_runs_at_once == expected


def test_boosters_of_many_rows_have_two_threads_and_nothing_begins_with_steps_that_may_be_too_short():
    def count_runs(n_rows, n_jobs, step=None):
        search = make_search(n_jobs=n_jobs)
        search = Search(replace(search.data, n_rows=n_rows, settings=replace(search.settings, step=step)))
        search.foresees = True
        return search.n_runs_at_once

    assert [count_runs(30_000, n_jobs) for n_jobs in (10, 20, 40)] == [2, 4, 5]
    assert [count_runs(30_001, n_jobs) for n_jobs in (10, 20, 40)] == [1, 1, 1]
    assert [count_runs(30_001, n_jobs, step=0.1) for n_jobs in (10, 19, 20, 30, 40)] == [1, 1, 2, 3, 4]


def test_few_threads_are_for_the_candidate_whose_turn_it_is():
    alone = [(np.arange(40), np.arange(40, 60))]
    for n_jobs, expected in ((2, 1), (3, 1), (4, 4)):
        search = make_search(cv=alone, n_jobs=n_jobs)
        search.foresees = True
        assert search.n_first_folds == 1
        assert search.n_runs_at_once == expected


def list_likely(search, taken, losses=None):
    """List the keys that may come after one, as tuples, where candidates have lost what is written down by key."""
    for key, loss in (losses or {}).items():
        search.candidates[CandidateKey(*key)] = Candidate(key[0], key[1], 0.1, 10, loss, 0.1, key[2])
    return [tuple(key) for key in search.list_likely_keys(CandidateKey(*taken))]


LARGER = (2.0, 3, 1.0)


@pytest.mark.parametrize(
    ("taken", "losses", "expected"),
    [
        # Of the depths 2, 3, 4 and 6 the search tries 4 and 3 in any case.
        (4, {}, [(1.0, 3, 0.7), LARGER, (1.0, 6, 0.7), (1.0, 2, 0.7)]),
        (3, {4: 0.5}, [LARGER, (1.0, 6, 0.7), (1.0, 2, 0.7)]),
        (2, {4: 0.5, 3: 0.4}, [LARGER]),  # The loss falls as trees become less deep.
        (6, {4: 0.4, 3: 0.5}, [LARGER]),
        (6, {4: 0.4, 3: 0.4}, [LARGER]),  # Trees that are no better for being less deep become deeper.
    ],
)
def test_likely_keys_are_those_that_the_search_may_try_next(taken, losses, expected):
    by_key = {(1.0, depth, 0.7): loss for depth, loss in losses.items()}
    assert list_likely(make_search(), (1.0, taken, 0.7), by_key) == expected


def test_depths_that_are_left_are_likely_after_a_larger_alpha():
    known = {(1.0, 4, 0.7): 0.5, (1.0, 3, 0.7): 0.4}
    assert list_likely(make_search(), LARGER, known) == [(1.0, 2, 0.7)]
    known = {(1.0, 4, 0.7): 0.4, (1.0, 3, 0.7): 0.5}
    assert list_likely(make_search(), LARGER, known) == [(1.0, 6, 0.7)]
    everything = {(1.0, depth, 0.7): 1.0 for depth in MIXED_DEPTHS}
    assert list_likely(make_search(), LARGER, everything) == []


def test_a_depth_or_an_alpha_that_was_given_leaves_no_other():
    assert list_likely(make_search(max_depth=5), (1.0, 5, None)) == []
    assert list_likely(make_search(max_depth=5), (2.0, 5, None)) == [(1.0, 5, None)]
    assert list_likely(make_search(alpha=2.0), (2.0, 4, None)) == [(2.0, 2, None), (2.0, 6, None)]


def test_alphas_without_shares_depend_on_the_depth_and_are_not_likely():
    for settings in ({"boosted_only": True}, {"n_classes": 3}):
        assert list_likely(make_search(**settings), (1.0, 4, None)) == [(1.0, 2, None), (1.0, 6, None)]
        known = {(1.0, 4, None): 0.5, (1.0, 2, None): 0.6}
        assert list_likely(make_search(**settings), (1.0, 6, None), known) == []
        assert list_likely(make_search(**settings), (2.0, 4, None), known) == [(1.0, 6, None)]
        assert list_likely(make_search(**settings), (1.0, 4, None), {(1.0, 2, None): 0.6}) == [(1.0, 6, None)]


def make_foreseeing_search(**settings):
    """Return a search with a team that boosts nothing."""
    search = make_search(**settings)
    search.settings = replace(search.settings, engine=Noting())
    search.team, search.foresees = object(), True
    return search


def test_a_run_has_those_that_are_likely_next_for_companions():
    search = make_foreseeing_search(n_jobs=15)
    first = search.take_run(CandidateKey(1.0, 4, 0.7))
    assert [tuple(key) for key in search.foreseen] == [(1.0, 3, 0.7), LARGER]
    assert list(first.companions) == list(search.foreseen.values())
    begun, larger = search.foreseen.values()
    begun.made = 30
    search.best_run = first
    search.candidates[first.key] = Candidate(1.0, 4, 0.05, 20, 0.5, 0.1, 0.7)
    search.longer_steps = []
    second = search.take_run(CandidateKey(1.0, 3, 0.7))
    assert second.boosters is begun.boosters
    assert (second.made, second.count) == (30, 0)
    # What is known by now counts, and not what was known when the run began.
    assert (begun.slow_after, begun.to_beat) == (200, None)
    assert (second.slow_after, second.to_beat) == (None, search.candidates[first.key])
    assert [tuple(key) for key in search.foreseen] == [LARGER, (1.0, 6, 0.7)]
    assert search.foreseen[CandidateKey(*LARGER)] is larger  # What has begun is not begun again.
    assert list(second.companions) == list(first.companions) == list(search.foreseen.values())
    assert len(search.settings.engine.tasks) == 4 * 5


def test_what_is_not_likely_any_more_is_forgotten():
    search = make_foreseeing_search(n_jobs=25)
    search.take_run(CandidateKey(1.0, 4, 0.7))
    assert {key.depth for key in search.foreseen if key.alpha == 1.0} == {2, 3, 6}
    search.candidates[CandidateKey(1.0, 4, 0.7)] = Candidate(1.0, 4, 0.05, 20, 0.5, 0.1, 0.7)
    search.take_run(CandidateKey(1.0, 3, 0.7))
    assert {key.depth for key in search.foreseen if key.alpha == 1.0} == {2, 6}
    search.candidates[CandidateKey(1.0, 3, 0.7)] = Candidate(1.0, 3, 0.05, 20, 0.4, 0.1, 0.7)
    run = search.take_run(CandidateKey(1.0, 2, 0.7))
    assert [tuple(one.key) for one in run.companions] == [LARGER]  # Trees of depth 6 would not be tried any more.
    assert len(search.settings.engine.tasks) == 5 * 5


def test_nothing_is_begun_where_there_are_no_idle_threads_or_nobody_foresees():
    for n_jobs, foresees in ((9, True), (1000, False)):
        search = make_foreseeing_search(n_jobs=n_jobs)
        search.foresees = foresees
        run = search.take_run(CandidateKey(1.0, 4, 0.7))
        assert len(search.foreseen) == len(run.companions) == 0
        assert len(search.settings.engine.tasks) == 5


@pytest.fixture
def taken(monkeypatch):
    """The runs that searches boost, in their order, with the keys of those that are boosted before their turn."""
    noted = []

    def note(runs, *arguments, **options):
        (run,) = runs
        assert all(one.step == run.step for one in run.companions)
        companions = [tuple(one.key) for one in run.companions]
        noted.append(SimpleNamespace(run=run, key=tuple(run.key), companions=companions))
        return advance(runs, *arguments, **options)

    monkeypatch.setattr("untwist.automatic.search.advance", note)
    return noted


def test_with_callbacks_nothing_is_begun_before_its_turn(taken):
    """They are told of the rounds of one candidate after the other, and may end the search at any of them."""
    make_search(n_jobs=16).run()
    assert any(one.companions for one in taken)
    taken.clear()
    told = []
    make_search(n_jobs=16, callbacks=[lambda progress: told.append(progress.round)]).run()
    assert [one.companions for one in taken] == [[]] * len(taken)
    assert told.count(10) == len(taken) > 2


def test_what_has_begun_is_forgotten_when_steps_become_longer_and_at_the_end(taken, monkeypatch):
    monkeypatch.setattr("untwist.automatic.search.SLOW_AFTER", 10)
    monkeypatch.setattr("untwist.automatic.search.ENOUGH_ROWS_MIXED", 20)
    search = make_search(n_jobs=25)
    assert search.n_first_folds == 2
    search.run()
    short, long = JOINT_LEARNING_RATES
    first, again, *others, last = taken
    assert first.key == again.key == (1.0, 4, 0.7)
    assert (first.run.step, again.run.step) == (short, long)
    assert (len(first.companions), len(again.companions)) == (4, 0)
    assert {one.run.step for one in others} == {long}
    assert len(others[0].companions) == 3  # They begin anew.
    assert len(last.run.fold_weights) == 3  # The folds that are left come last.
    assert last.companions == []
    assert search.foreseen == {}
    assert search.team is None


class InterruptedTeam:
    """Boosts one booster after the other, until Ctrl-C comes in its third call."""

    def __init__(self):
        self.n_boosters = []

    def boost(self, boosters, n_rounds):
        self.n_boosters.append(len(boosters))
        if len(self.n_boosters) == 3:
            raise KeyboardInterrupt
        for booster in boosters:
            booster.boost(n_rounds)


def test_ctrl_c_forgets_what_has_begun_and_keeps_the_rounds_before(monkeypatch):
    team = InterruptedTeam()
    monkeypatch.setattr("untwist.automatic.search.make_team", lambda data: team)
    search = make_search(n_jobs=15)
    fit = search.run()
    assert team.n_boosters == [15, 15, 15]
    assert isinstance(fit.interrupt, KeyboardInterrupt)
    assert search.foreseen == {}
    (tried,) = fit.model.choice.tried
    assert (tried.alpha, tried.max_depth) == (1.0, 4)
    assert tried.n_rounds <= 20


@pytest.mark.parametrize("n_jobs", [1, 15])
def test_ctrl_c_while_a_candidate_is_made_ready_keeps_those_before(n_jobs, monkeypatch):
    search = make_search(n_jobs=n_jobs)
    take_run = search.take_run
    keys = []

    def interrupt_the_second(key):
        keys.append(key)
        if len(keys) == 2:
            raise KeyboardInterrupt
        return take_run(key)

    monkeypatch.setattr(search, "take_run", interrupt_the_second)
    fit = search.run()
    assert isinstance(fit.interrupt, KeyboardInterrupt)
    assert len(keys) == 2
    assert [tried.max_depth for tried in fit.model.choice.tried] == [keys[0].depth]


def test_ctrl_c_before_the_first_candidate_is_ready_ends_the_search(monkeypatch):
    search = make_search(n_jobs=15)
    monkeypatch.setattr(search, "take_run", lambda key: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        search.run()
    assert search.team is None


def test_nothing_holds_the_team_once_the_candidates_are_boosted(taken):
    search = make_search(n_jobs=15)
    search.run()
    assert search.team is None
    assert search.best_run.team is None


def draw_parity():
    """The label tells whether an odd number of three columns is positive: trees must be deep."""
    X = np.random.default_rng(0).normal(size=(500, 3))
    return X, (X > 0).sum(axis=1) % 2


def draw_one_threshold():
    """The label depends on one column, and trees need no depth."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    return X, (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(int)


def draw_classification(**settings):
    return make_classification(400, 8, n_informative=4, flip_y=0.2, random_state=0, **settings)


FITS = {
    "deep trees, longer steps": (draw_parity, {}, [4, 3, 6]),
    "shallow trees": (draw_one_threshold, {}, [4, 3, 2]),
    "circles": (lambda: make_circles(500, noise=0.15, factor=0.6, random_state=0), {}, [4, 3, 6]),
    "boosted trees": (draw_classification, {"boosted_only": True}, [4, 2, 6]),
    "rounds that were given": (draw_classification, {"n_estimators": 23}, [4, 2, 6]),
    "classes together": (lambda: draw_classification(n_classes=3), {}, [4, 2, 6]),
    "one class against the rest": (lambda: draw_classification(n_classes=3), {"alpha": 2.0}, [4, 2]),
}


@pytest.mark.parametrize("name", FITS)
def test_a_search_chooses_and_grows_the_same_on_however_many_threads(name, taken, monkeypatch):
    draw, settings, depths = FITS[name]
    monkeypatch.setattr(CompiledEngine, "boosts_jointly", name != "one class against the rest")
    X, y = draw()
    alone = make_classifier(random_state=0, n_jobs=1, **settings).fit(X, y)
    tried = alone.choice_.tried
    assert [one.max_depth for one in tried if one.alpha == tried[0].alpha] == depths
    assert not any(one.companions for one in taken)
    in_order = [one.key for one in taken]
    for n_jobs in (2, 16, 50):
        taken.clear()
        together = make_classifier(random_state=0, n_jobs=n_jobs, **settings).fit(X, y)
        assert [one.key for one in taken] == in_order
        n_boosters = 5 * len(together.model_.ensembles)
        assert any(one.companions for one in taken) is (n_jobs >= 2 * n_boosters)
        assert together.choice_ == alone.choice_
        for one, other in zip(together.model_.ensembles, alone.model_.ensembles, strict=True):
            np.testing.assert_array_equal(one.losses, other.losses)
            np.testing.assert_array_equal(one.errors, other.errors)
        assert_same_forests(together, alone, X)
        np.testing.assert_array_equal(together.model_.out_of_fold.posterior, alone.model_.out_of_fold.posterior)
    if name == "deep trees, longer steps":  # Some had made more rounds than they needed before it was their turn.
        assert any(one.run.made > one.run.count for one in taken)
