"""What a search tells while it goes on, when it ends early, and what of the rows set aside it keeps."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.quick import make_classifier, resolve
from untwist.automatic import search as searching
from untwist.automatic.candidates import CandidateKey
from untwist.automatic.out_of_fold import HeldOutScores
from untwist.automatic.search import Search, find_lowest
from untwist.boosting.runs import Ending
from untwist.data.workers import Workers
from untwist.fit_arguments import SourceColumns
from untwist.model import Candidate
from untwist.training_data import TrainingData


def collect(n_rows=60, sources=None, **settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    parameters = make_classifier(random_state=0, n_jobs=1, **settings).get_params(deep=False)
    return TrainingData.collect(resolve(parameters), X, (X[:, 0] > 0).astype(int), sources=sources)


def make_search(**options):
    return Search(collect(**options))


class FakeRun:
    """A run that has come to a loss after some rounds."""

    def __init__(self, loss=0.5, count=20, depth=4, step=0.1, n_folds=2):
        self.loss, self.count, self.step = loss, count, step
        self.alpha, self.depth = 1.5, depth
        self.key = CandidateKey(1.5, depth, None)
        self.fold_weights = np.ones(n_folds)
        self.taken = None

    def summarise(self, n_rounds):
        return Candidate(1.5, self.depth, self.step, self.count if n_rounds is None else n_rounds, self.loss, 0.25)

    def take_folds(self, others):
        self.taken = others


@pytest.fixture
def advanced(monkeypatch):
    """What `advance` was asked for, each time; it ends as `ending` says after it has let the search watch."""
    calls = SimpleNamespace(asked=[], ending=Ending(), counts=())

    def advance(runs, n_rounds, **options):
        (run,) = runs
        calls.asked.append(SimpleNamespace(run=run, n_rounds=n_rounds, **options))
        for count in calls.counts:
            run.count = count
            options["watch"]()
        return calls.ending

    monkeypatch.setattr(searching, "advance", advance)
    return calls


@pytest.fixture
def shown(monkeypatch):
    """What whoever waits is shown: words and seconds."""
    told = []
    display = SimpleNamespace(show=lambda words, seconds: told.append((words, seconds)))
    monkeypatch.setattr(searching, "find_display", lambda: display)
    return told


# ---- what is shown ----


def test_whoever_waits_is_shown_words_and_the_seconds_that_are_left(shown, monkeypatch):
    search = make_search()
    search.forecast = SimpleNamespace(tell=lambda done: setattr(search.forecast, "seconds_left", 100.0 - done))
    search.show("trying", 30.0)
    assert shown == [("trying", 70.0)]
    monkeypatch.setattr(searching, "find_display", lambda: None)
    search.show("in silence", 40.0)
    assert shown == [("trying", 70.0)]
    assert search.forecast.seconds_left == 60.0  # The forecast is told in any case.


def test_one_of_several_workers_shows_what_all_do(shown):
    for rank, n_shown in ((0, 1), (1, 1), (2, 1)):
        search = make_search()
        search.data = replace(search.data, workers=Workers(rank, 3))
        search.show("trying", 1.0)
        assert len(shown) == n_shown


def test_a_candidate_is_boosted_in_blocks_up_to_the_most_rounds_and_tells_of_each(advanced, shown):
    heard = []
    search = make_search(callbacks=[heard.append], boosted_only=True)
    advanced.counts, done = (10, 20), []
    search.forecast.tell = done.append
    search.boost(FakeRun(depth=3))
    (asked,) = advanced.asked
    assert (asked.n_rounds, asked.block, asked.rounds_open) == (1000, 10, True)
    assert asked.callbacks == search.settings.callbacks
    assert asked.workers is search.data.workers
    assert asked.started_at == search.started_at
    assert [words for words, _ in shown] == [f"trying alpha 1.5, depth 3, round {count}" for count in (10, 20)]
    assert done == [10, 20]
    assert search.forecast.ended_rounds == [20]
    assert (search.interrupt, search.stopped) == (None, False)


@pytest.mark.parametrize("interrupt", [None, KeyboardInterrupt()], ids=str)
@pytest.mark.parametrize("by_callback", [False, True])
def test_a_callback_and_ctrl_c_end_the_search(advanced, interrupt, by_callback):
    search = make_search()
    advanced.ending = Ending(interrupt, by_callback)
    search.boost(FakeRun())
    assert search.interrupt is interrupt
    assert search.stopped is (by_callback or interrupt is not None)


@pytest.mark.parametrize(("boosted_only", "later"), [(False, ["trees"]), (True, [])])
def test_each_part_of_a_search_is_shown_as_it_begins(shown, boosted_only, later):
    search = make_search(boosted_only=boosted_only)
    parts = []
    search.show = lambda words, done: parts.append((search.forecast.stage, words.split(",")[0], done))
    fit = search.run()
    search.show_noise()
    later = [*later, "noise"]
    best = search.best_run
    assert list(dict.fromkeys(stage for stage, *_ in parts)) == ["candidates", *later]
    assert search.forecast.best_rounds == best.count
    words = {"trees": "randomised trees", "noise": "how noisy the labels are"}
    for name in later:
        of_part = [part for part in parts if part[0] == name]
        assert of_part[0] == (name, words[name], 0.0)
        shares = [done for _, _, done in of_part]
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(0.6 if name == "trees" else 0.0)  # The rest of the time is weighing them.
    assert (fit.model.choice.mixture is not None) is ("trees" in later)


def begin_anew(search, run=None):
    """Have a candidate begun anew with longer steps, by this run, or by none where Ctrl-C comes before."""
    steps = []

    def start_run(key, folds):
        steps.append((key, folds, search.step, dict(search.foreseen)))
        if run is None:
            raise KeyboardInterrupt
        return run

    search.start_run, search.longer_steps, search.foreseen = start_run, [0.3, 0.4], {"a key": "a run"}
    shorter = FakeRun()
    found = search.try_longer_steps(shorter)
    assert steps == [(shorter.key, range(5), 0.4, {})]
    assert search.longer_steps == [0.3]
    return shorter, found


@pytest.mark.parametrize("count", [0, 1, 30])
def test_longer_steps_take_the_place_of_shorter_ones_once_they_get_anywhere(advanced, count):
    search, longer = make_search(), FakeRun(count=count)
    shorter, found = begin_anew(search, longer)
    assert found is (longer if count else shorter)
    assert [one.run for one in advanced.asked] == [longer]
    assert (search.interrupt, search.stopped) == (None, False)


def test_ctrl_c_before_longer_steps_begin_ends_the_search_with_the_shorter(advanced):
    search = make_search()
    shorter, found = begin_anew(search)
    assert found is shorter
    assert isinstance(search.interrupt, KeyboardInterrupt)
    assert search.stopped
    assert advanced.asked == []


# ---- the best candidate ----


def test_the_best_candidate_is_the_first_of_the_lowest_loss(capsys):
    search = make_search()
    runs = [FakeRun(loss, depth=depth) for depth, loss in ((4, 0.5), (3, 0.6), (2, 0.4), (6, 0.4))]
    best = []
    for run in runs:
        assert search.record(run) == run.loss
        best.append(search.best_run)
    assert best == [runs[0], runs[0], runs[2], runs[2]]
    assert [one.loss for one in search.candidates.values()] == [0.5, 0.6, 0.4, 0.4]
    assert capsys.readouterr().err == ""


def test_one_worker_says_what_candidates_have_come_to_if_asked(capsys):
    for rank, verbose, is_said in ((0, 1, True), (1, 1, False), (0, 0, False)):
        search = make_search(verbose=verbose)
        search.data = replace(search.data, workers=Workers(rank, 2))
        search.record(FakeRun())
        assert capsys.readouterr().err == (f"{FakeRun().summarise(None)}\n" if is_said else "")


def test_a_given_number_of_rounds_is_kept_whole():
    search = make_search(n_estimators=7)
    search.record(FakeRun(count=20))
    assert [one.n_rounds for one in search.candidates.values()] == [7]
    found = make_search()
    found.record(FakeRun(count=20))
    assert [one.n_rounds for one in found.candidates.values()] == [20]


def follow(path, losses):
    """Return where the losses along a path do not fall any more."""
    here = 0
    while here + 1 < len(path) and losses[path[here + 1]] < losses[path[here]]:
        here += 1
    return path[here]


@pytest.mark.parametrize("n_levels", [1, 2, 3, 4, 5, 6])
def test_the_lowest_level_is_found_from_the_middle_down_and_else_up(n_levels):
    rng = np.random.default_rng(n_levels)
    levels = [10 * k for k in range(n_levels)]
    middle = n_levels // 2
    for _ in range(60):
        losses = dict(zip(levels, rng.integers(0, 4, n_levels).tolist(), strict=True))
        down, up = (follow(path, losses) for path in (levels[middle::-1], levels[middle:]))
        assert find_lowest(levels, losses.__getitem__) == (up if down == levels[middle] else down)


# ---- the folds that are left ----


def make_last_part(monkeypatch, search, n_first):
    """Have a search compare candidates on so many folds; return the runs that it begins on others."""
    monkeypatch.setattr(Search, "n_first_folds", property(lambda self: n_first))
    begun = []

    def start_run(key, folds):
        begun.append((key, folds, search.step))
        return replace(real_start(key, folds), boosters=[])

    real_start = search.start_run
    search.start_run = start_run
    return begun


def test_the_best_candidate_is_boosted_on_the_folds_that_it_has_not_seen(monkeypatch, advanced, shown):
    search = make_search()
    begun = make_last_part(monkeypatch, search, 2)
    best = FakeRun(count=40, step=0.07)
    advanced.counts, done = (10, 20), []
    search.forecast.tell = done.append
    search.boost_remaining_folds(best)
    assert begun == [(best.key, range(2, 5), 0.07)]
    (asked,) = advanced.asked
    assert (asked.n_rounds, asked.block, asked.workers) == (40, 10, search.data.workers)
    assert not asked.run.ends_by_itself
    assert best.taken is asked.run
    assert search.chosen == best.summarise(None)
    assert [words for words, _ in shown] == ["the other folds, round 10", "the other folds, round 20"]
    assert done == [0.25, 0.5]
    assert (search.forecast.stage, search.forecast.best_rounds) == ("folds", 40)


def test_ctrl_c_among_the_folds_that_are_left_keeps_the_first(monkeypatch, advanced):
    search, interrupt = make_search(), KeyboardInterrupt()
    make_last_part(monkeypatch, search, 2)
    advanced.ending = Ending(interrupt)
    best = FakeRun()
    search.boost_remaining_folds(best)
    assert search.interrupt is interrupt
    assert (best.taken, search.chosen) == (None, None)


def test_nothing_is_boosted_where_no_fold_is_left_or_ctrl_c_came_before(monkeypatch, advanced):
    for n_first, interrupt in ((5, None), (2, KeyboardInterrupt())):
        search = make_search()
        search.interrupt = interrupt
        begun = make_last_part(monkeypatch, search, n_first)
        search.boost_remaining_folds(FakeRun())
        assert (begun, advanced.asked) == ([], [])


# ---- all rows once more ----


class FakeForest:
    """A forest that knows by how much it was scaled."""

    n_outputs = 1

    def __init__(self, factor=1.0):
        self.factor = factor

    def scale(self, factor):
        return FakeForest(self.factor * factor)


@pytest.mark.parametrize(
    ("settings", "mixes", "expected"),
    [({}, False, 1 / 1.5), ({}, True, "grown"), ({"boosted_only": True}, False, 1.0)],
    ids=str,
)
def test_the_rounds_that_folds_chose_are_made_again_on_all_rows(
    monkeypatch, advanced, shown, settings, mixes, expected
):
    search = make_search(**settings)
    advanced.counts, done, begun = (10, 20), [], []
    search.forecast.tell = done.append
    run = replace(search.start_run(CandidateKey(1.5, 4), range(1)), boosters=[])
    forest = FakeForest()

    class Whole:
        def __init__(self, data):
            self.data = data

        def start_run(self, key, folds):
            begun.append((key, folds, self.step, len(self.data.folds)))
            return run

    monkeypatch.setattr(searching, "Search", Whole)
    monkeypatch.setattr(type(run), "list_forests", lambda self, n_rounds: [[forest]] if n_rounds == 40 else None)

    def grow(data, boosted, mixture, n_folds):
        return ("grown", len(data.folds), boosted.factor, mixture, n_folds)

    monkeypatch.setattr(searching, "grow_mixture", grow)
    best = FakeRun(depth=3)
    chosen = Candidate(1.5, 3, 0.07, 40, 0.5, 0.25)
    ((found,),) = search.train_on_all_rows(best, chosen, "mixture" if mixes else None)
    assert begun == [(best.key, range(1), 0.07, 1)]
    (asked,) = advanced.asked
    assert (asked.n_rounds, asked.block, asked.run.ends_by_itself) == (40, 10, False)
    assert [words for words, _ in shown] == ["all rows, round 10", "all rows, round 20"]
    assert done == [0.25, 0.5]
    assert (search.forecast.stage, search.forecast.best_rounds) == ("folds", 40)
    if mixes:
        assert found == ("grown", 1, 1 / 1.5, "mixture", 5)
    else:
        assert found.factor == expected


def test_ctrl_c_while_all_rows_are_boosted_leaves_the_models_of_folds(advanced):
    search, interrupt = make_search(), KeyboardInterrupt()
    advanced.ending = Ending(interrupt)
    assert search.train_on_all_rows(FakeRun(), Candidate(1.5, 4, 0.1, 40, 0.5, 0.25), None) == []
    assert search.interrupt is interrupt


# ---- rows set aside ----


def score(monkeypatch, search, n_folds):
    """Return what is kept of rows set aside, and what the scoring was told; every class weighs 2 or 5."""
    weights = np.array([2.0, 5.0])
    search.data = replace(search.data, class_weights=weights)
    told = []
    labels = np.array([0, 1, 1, 0], dtype=np.uint32)
    unseen = HeldOutScores(np.arange(4), np.array([4.0, 10.0, 0.0, 1.0]), np.zeros((4, 1)), labels)
    monkeypatch.setattr(searching, "score_held_out_rows", lambda *one, **two: told.append((one, two)) or unseen)
    forests = [[f"forest {fold}" for fold in range(n_folds)]]
    return search.collect_held_out_scores(forests), unseen, told[0]


@pytest.mark.parametrize("n_folds", [5, 4])
def test_class_weights_are_taken_off_the_rows_that_are_scored(monkeypatch, n_folds):
    search = make_search()
    found, _, ((forests, rows, held_out, n_training), options) = score(monkeypatch, search, n_folds)
    assert found.weight.tolist() == [2.0, 2.0, 0.0, 0.5]
    assert len(forests[0]) == n_folds
    assert rows is search.data.rows
    np.testing.assert_array_equal(held_out, search.data.folds[:n_folds])
    assert n_training == 60
    assert options["n_jobs"] == 1
    assert options["show_to_fold"] == search.data.show_to_fold
    assert options["own_folds"] is None


def test_folds_of_ones_own_say_who_is_scored(monkeypatch):
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(20), np.arange(20, 40))]
    search = make_search(cv=folds)
    _, _, (_, options) = score(monkeypatch, search, 2)
    assert options["own_folds"] is search.data.own_folds is not None


# ---- the forecast ----


def test_a_second_fit_is_foreseen_where_sources_may_differ():
    source = np.arange(60) % 3
    for sources, expected in ((None, False), (SourceColumns(source), True)):
        assert make_search(sources=sources).forecast.has_sources is expected
    data = collect(sources=SourceColumns(source))
    assert not Search(replace(data, settings=replace(data.settings, estimates_noise=False))).forecast.has_sources


def test_a_forecast_knows_the_first_folds_and_the_leaves_to_try():
    forecast = make_search(n_rows=60).forecast
    assert forecast.n_first_folds == 5
    assert forecast.leaf_sizes == [2, 5, 15, 40]
