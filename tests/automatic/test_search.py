"""What a search decides before and between candidates, without boosting any."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from untwist import PILBoostClassifier
from untwist.automatic.candidates import CandidateKey
from untwist.automatic.search import Search
from untwist.boosting.engines.engine import Engine
from untwist.fitting import AlphaDecision
from untwist.links import LogitLink
from untwist.model import Candidate
from untwist.settings import LEARNING_RATES, MIXED_ALPHAS, MIXED_DEPTHS, resolve
from untwist.training_data import TrainingData, ValidationTable


class EndedError(Exception):
    """Ends a search where a test has seen enough."""


def end_search(*_):
    raise EndedError


def make_search(n_classes=2, validation=None, changes=None, **settings):
    """Return a search over 60 rows; `changes` are fields of its data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.digitize(X[:, 0], np.arange(1, n_classes) - n_classes / 2)
    parameters = PILBoostClassifier(random_state=0, **{"n_jobs": 1} | settings).get_params(deep=False)
    data = TrainingData.collect(resolve(parameters), X, y, None, validation)
    return Search(replace(data, **changes or {}))


@pytest.mark.parametrize(
    ("settings", "enough"),
    [({}, 600), ({"n_classes": 3}, 1000), ({"families": "boosted"}, 4000)],
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
    X = np.random.default_rng(1).normal(size=(10, 3))
    given = make_search(validation=ValidationTable(X, np.arange(10) % 2))
    assert given.fold_weights.tolist() == [10.0]
    np.testing.assert_array_equal(given.held_out_weight, [np.repeat([0.0, 1.0], [60, 10])])


def widen(n_features, n_rows):
    encoder = replace(make_search().data.encoder, n_features=n_features)
    return {"encoder": encoder, "n_effective_rows": float(n_rows)}


@pytest.mark.parametrize(
    ("n_features", "n_rows", "is_wide"), [(10_001, 1000, True), (10_000, 1000, False), (10_001, 1001, False)]
)
def test_few_rows_with_many_columns_make_fewer_rounds_of_longer_steps(n_features, n_rows, is_wide):
    search = make_search(changes=widen(n_features, n_rows), families="boosted")
    assert search.most_rounds == (100 if is_wide else 1000)
    assert (search.step, *search.longer_steps) == ((LEARNING_RATES[0], 0.2) if is_wide else LEARNING_RATES)
    assert start(search)[0].slow_after == (50 if is_wide else 200)


def test_what_was_given_is_not_chosen():
    search = make_search(n_estimators=30, learning_rate=0.3, families="boosted")
    assert (search.most_rounds, search.fixed_rounds) == (30, 30)
    assert (search.step, search.longer_steps) == (0.3, [])
    limit = make_search(n_estimators=30, early_stopping=True)
    assert (limit.most_rounds, limit.fixed_rounds) == (30, None)
    assert make_search(max_depth=3).depths == [3]
    assert make_search(alpha=2.0).alphas == (2.0,)


def test_families_that_are_mixed_have_candidates_of_their_own():
    mixed, boosted, several = make_search(), make_search(families="boosted"), make_search(3)
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
        ({"n_rows": 30_000}, True),
        ({"n_rows": 30_001}, False),
        ({"workers": SimpleNamespace(size=2, sum=lambda values: values)}, False),
    ],
)
def test_small_tables_are_boosted_side_by_side_on_one_machine(changes, expected, monkeypatch):
    monkeypatch.setattr("untwist.automatic.search.count_threads", lambda n_jobs: n_jobs)

    def has_threads(n_jobs, **engine):
        search = make_search(changes=changes, n_jobs=n_jobs)
        search.settings = replace(search.settings, engine=SimpleNamespace(**{"boosts_side_by_side": True} | engine))
        search.try_candidate = end_search
        with pytest.raises(EndedError):
            search.run()
        return search.threads is not None

    assert has_threads(2) is expected
    assert has_threads(1) is False
    assert has_threads(2, boosts_side_by_side=False) is False


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
        search = make_search(families="boosted")
        search.alpha_decision = AlphaDecision((1.0, 2.0, 4.0, 8.0))
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
    search = make_search(max_depth=3, families="boosted", alpha=1.0)
    assert run_with_losses(search, {}) == [(1.0, 3, None)]


def make_coded_search(sets):
    """Return a search over columns of many categories, which may be split by sets."""
    search = make_search(families="boosted")
    workers = SimpleNamespace(size=2)  # Nothing is boosted side by side.
    search.data = SimpleNamespace(split_by_sets=lambda: sets, boosts_log_odds=False, workers=workers)
    return search


@pytest.mark.parametrize(
    ("of_sets", "interrupt", "takes_sets"), [(0.97, False, True), (0.981, False, False), (0.5, True, False)]
)
def test_sets_take_the_place_of_numbers_where_they_gain_enough(of_sets, interrupt, takes_sets):
    sets = SimpleNamespace(boosts_log_odds=False)
    search = make_coded_search(sets)
    losses, tried = iter([1.0, of_sets]), []

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
    middle = search.depths[len(search.depths) // 2]
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

    boosts_side_by_side = True

    def __init__(self):
        self.tasks = []

    def make_dataset(self, rows, settings):
        raise NotImplementedError

    def make_booster(self, dataset, task):
        self.tasks.append(task)
        return f"booster {len(self.tasks)}"


def start(search, alpha=2.0, depth=3, drawn=None, folds=range(1, 3), threads=None):
    engine = Noting()
    search.settings = replace(search.settings, engine=engine)
    search.threads = threads
    search.step = 0.25
    return search.start_run(CandidateKey(alpha, depth, drawn), folds), engine.tasks


def test_a_run_has_a_booster_for_each_class_and_fold():
    search = make_search(3, families="boosted", max_leaf_nodes=None, alpha=2.0, link="exact")
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
    ("settings", "factor"), [({"families": "boosted"}, 1.0), ({}, 4.0), ({"n_classes": 3}, 2.0)], ids=str
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


def test_boosters_side_by_side_share_the_threads(monkeypatch):
    monkeypatch.setattr("untwist.automatic.search.count_threads", lambda n_jobs: 7)
    executor = object()
    for folds, n_threads in [(range(2), 3), (range(5), 1), (range(1), None)]:
        run, tasks = start(make_search(), folds=folds, threads=executor)
        assert {task.n_threads for task in tasks} == {n_threads}
        assert run.threads is (None if n_threads is None else executor)
    assert {task.n_threads for task in start(make_search())[1]} == {None}


def test_a_run_knows_what_it_has_to_beat_and_when_it_is_slow():
    search = make_search(families="boosted")
    best = CandidateKey(1.0, 4)
    search.candidates[best] = "the best"
    search.best_run = SimpleNamespace(key=best)
    run, _ = start(search)
    assert (run.to_beat, run.slow_after, run.ends_by_itself) == ("the best", 200, True)
    given = make_search(families="boosted", n_estimators=9, learning_rate=0.1)
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
    assert make_search(families="boosted").forecast.n_trees == 0
    assert make_search().forecast.n_trees == 20
