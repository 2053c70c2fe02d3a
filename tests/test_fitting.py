"""The parts of a fit with given settings: rounds that are left and kept, what is told, and rounds that are replayed."""

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from helpers.quick import QuickClassifier, make_classifier, resolve
from untwist import PILBoostClassifier, fitting
from untwist.boosting.runs import Ending, advance
from untwist.data.batches import Encoded
from untwist.data.workers import Workers
from untwist.fit_arguments import InitScores, ValidationTable
from untwist.fitting import boost_given_settings, decide_alpha, replay_rounds
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss
from untwist.noise.paper import MenonEstimate, menon
from untwist.progress import ProgressLine, use_display
from untwist.settings import resolve_paper
from untwist.training_data import TrainingData, Validation


class Rounds:
    """An ensemble that is nothing but its number of rounds."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def keep_first(self, count):
        assert 0 <= count <= self.count
        return Rounds(count)


@pytest.mark.parametrize(
    ("lengths", "earlier", "count", "expected"),
    [
        ([9], None, 4, [4]),
        ([9], None, 9, [9]),
        ([3], None, 4, [3]),  # Its rounds had ended before.
        ([9, 8], [5, 4], 7, [7, 6]),  # Two rounds after those that went before.
        ([9, 8], [5, 4], 5, [5, 4]),
        ([9, 8], [5, 4], 4, [4, 4]),
        ([9, 8], [5, 4], 3, [3, 3]),
    ],
)
def test_each_class_keeps_what_it_had_after_so_many_rounds(lengths, earlier, count, expected):
    before = None if earlier is None else [Rounds(one) for one in earlier]
    assert [len(one) for one in fitting._keep_rounds([Rounds(one) for one in lengths], count, before)] == expected


def test_rounds_that_are_left_are_those_after_the_last_fit():
    link = ClippedLink(AlphaLoss(2.0))
    data = SimpleNamespace(settings=SimpleNamespace(n_rounds=7, init="prior"), init_scores=None)
    previous = SimpleNamespace(link=link, init="prior", n_rounds=5)
    assert fitting._count_rounds_left(data, link, None) == 7
    assert fitting._count_rounds_left(data, link, previous) == 2
    previous.n_rounds = 7
    assert fitting._count_rounds_left(data, link, previous) == 0
    for changes, message in [
        ({"n_rounds": 8}, "n_estimators must be at least the 8 rounds of the last fit, got 7"),
        ({"init": "zero"}, "goes on with init of the last fit, 'zero', got 'prior'"),
        ({"link": ClippedLink(AlphaLoss(3.0))}, "goes on with the link of the last fit"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitting._count_rounds_left(data, link, SimpleNamespace(**vars(previous) | changes))


@pytest.mark.parametrize(
    ("given", "rows", "shares", "expected"),
    [
        (True, [0], [0.5], False),
        (False, [1, 3], [0.5, 1.0], False),
        (False, [1], [0.5], True),
        (False, [1, 2], [0.5, 1.0], True),
        (False, [1, 3], [0.5, 0.5], True),
        (False, [], [], True),
    ],
)
def test_only_rows_that_were_held_out_before_are_known_to_be_unseen(given, rows, shares, expected):
    data = SimpleNamespace(validation=Validation(None, given, np.array([0.0, 0.5, 0.0, 1.0])))
    previous = SimpleNamespace(validation_rows=np.array(rows, int), validation_shares=np.array(shares))
    assert fitting._may_have_seen_validation(data, previous) is expected


def test_alpha_is_that_of_the_settings():
    data = SimpleNamespace(settings=SimpleNamespace(alphas=(2.0,)))
    assert decide_alpha(data) == (2.0, None)


def test_menon_sees_the_rows_with_a_weight_whether_sparse_or_not(table):
    X, y, weight = table
    weight = np.where(np.arange(80) % 5 == 0, 0.0, weight)
    rows = weight > 0
    data = collect((X, y, weight), alpha="menon")
    expected = menon(X[rows], y[rows], sample_weight=weight[rows], random_state=data.growth.seed)
    assert decide_alpha(data) == (expected.alpha, expected)
    assert decide_alpha(collect((sparse.csr_array(X), y, weight), alpha="menon")) == decide_alpha(data)


def test_given_scores_turn_with_a_negative_alpha(table):
    X, y, _ = table
    scores = np.linspace(-1.0, 1.0, 80)
    for alpha, sign in [(2.0, 1.0), (-2.0, -1.0)]:
        settings = resolve_paper(PILBoostClassifier(alpha=alpha).get_params(deep=False))
        data = TrainingData.collect(settings, X, y, init_scores=InitScores(scores))
        link = settings.make_link(alpha)
        np.testing.assert_array_equal(fitting._find_given_scores(data, link, 0), sign * scores)
        assert fitting._find_given_scores(replace(data, init_scores=None), link, 0) is None


@pytest.mark.parametrize(
    ("n_jobs", "size", "n_rows", "expected"),
    [
        (1, 1, 10, None),
        (2, 1, 10, "team of 2"),
        (7, 1, 200_000, "team of 7"),
        (7, 1, 200_001, None),
        (7, 2, 10, None),  # Workers boost in the same order.
    ],
)
def test_a_team_is_for_several_threads_of_one_machine_and_few_rows(n_jobs, size, n_rows, expected):
    engine = SimpleNamespace(make_team=lambda n_threads: f"team of {n_threads}")
    settings = SimpleNamespace(engine_options=SimpleNamespace(n_jobs=n_jobs), engine=engine)
    data = SimpleNamespace(settings=settings, workers=SimpleNamespace(size=size), n_rows=n_rows)
    assert fitting.make_team(data) == expected


# ---- fits ----


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    return X, (X[:, 0] + rng.normal(size=80) > 0).astype(int), rng.integers(1, 4, size=80).astype(float)


def collect(table, validation=None, **settings):
    settings = {"alpha": 2.0, "n_estimators": 6, "max_depth": 2, "random_state": 0, "n_jobs": 1} | settings
    parameters = make_classifier(**settings).get_params(deep=False)
    return TrainingData.collect(resolve(parameters), *table, validation)


class Recorder(ProgressLine):
    """Keeps what it is told to show."""

    def __init__(self):
        super().__init__()
        self.told = []

    def show(self, words, seconds_left=math.nan):
        self.told.append((words, seconds_left))


def test_progress_is_told_with_the_seconds_that_the_rest_takes_at_this_pace(table, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(fitting.time, "perf_counter", lambda: clock[0])

    def take_ten_seconds(progress):
        clock[0] += 10.0

    recorder = Recorder()
    with use_display(recorder):
        boost_given_settings(collect(table, callbacks=[take_ten_seconds]))
    # Callbacks come after a round is told: ten seconds for each of the rounds before.
    expected = [(f"round {done} of 6", 10.0 * (done - 1) / done * (6 - done)) for done in range(1, 7)]
    assert recorder.told == expected


@pytest.mark.parametrize("init", ["zero", "prior"])
def test_a_fit_that_goes_on_has_the_rounds_of_both(table, init):
    data = collect(table, init=init)
    first = boost_given_settings(collect(table, n_estimators=2, init=init)).model
    both = boost_given_settings(data, first).model
    whole = boost_given_settings(data).model
    assert (first.n_rounds, both.n_rounds) == (2, 6)
    np.testing.assert_allclose(both.scores(data.rows.X), whole.scores(data.rows.X), rtol=1e-12)
    assert (both.init, both.alpha, both.n_rows, both.seed) == (init, 2.0, 80, data.growth.seed)


def test_callbacks_see_the_model_so_far_and_may_end_the_fit(table):
    seen = []

    def look(progress):
        seen.append((progress.round, progress.model()))
        return progress.round == 3

    model = boost_given_settings(collect(table, callbacks=[look]), wrap_model=lambda model: model.n_rounds).model
    assert seen == [(1, 1), (2, 2), (3, 3)]
    assert model.n_rounds == 3


def test_early_stopping_keeps_the_round_of_the_lowest_loss(table):
    settings = {"n_estimators": 60, "early_stopping": 4}
    validation = ValidationTable(*(one[::2] for one in table))
    model = boost_given_settings(collect([one[1::2] for one in table], validation, **settings)).model
    (losses, _), kept = (model.ensembles[0].losses, model.ensembles[0].errors), len(model.ensembles[0])
    assert kept == np.argmin(losses) + 1 == len(losses) - 4 < 60


def test_rows_held_out_are_told_with_their_shares(table):
    data = collect(table, early_stopping=True)
    model = boost_given_settings(data).model
    np.testing.assert_array_equal(model.validation_rows, np.flatnonzero(data.validation.share))
    np.testing.assert_array_equal(model.validation_shares, data.validation.share[model.validation_rows])


def test_what_is_measured_after_each_round_is_what_was_asked_for(table):
    validation = ValidationTable(*(one[:20] for one in table))

    def list_measured(validation=None, size=1, **settings):
        data = replace(collect(table, validation, **settings), workers=SimpleNamespace(size=size))
        posterior = boost_given_settings(collect(table)).model.posterior
        measurer = fitting._make_measurer(data, lambda: posterior)
        return None if measurer is None else measurer.rows.positions.tolist()

    assert list_measured() is list_measured(validation) is list_measured(size=2) is None
    assert list_measured(eval_metric="accuracy") is list_measured(eval_metric="accuracy", size=2) is None
    assert list_measured(validation, eval_metric="accuracy") == list(range(80, 100))
    held_out = collect(table, early_stopping=True).validation.share
    assert list_measured(eval_metric="accuracy", early_stopping=True) == np.flatnonzero(held_out).tolist()
    with pytest.raises(ValueError, match="eval_metric is for one machine"):
        list_measured(validation, eval_metric="accuracy", size=2)


# ---- what rounds are made with ----


@pytest.fixture
def asked(monkeypatch):
    """What `advance` is asked for; it makes no round."""
    calls = []

    def advance(runs, n_rounds, **options):
        calls.append(SimpleNamespace(runs=runs, n_rounds=n_rounds, **options))
        return Ending()

    monkeypatch.setattr(fitting, "advance", advance)
    monkeypatch.setattr(fitting, "make_team", lambda data: "a team")
    return calls


def make_classes(table, n_classes):
    X, _, weight = table
    return X, np.digitize(X[:, 0], np.linspace(-0.5, 0.5, n_classes - 1)), weight


def test_boosters_work_side_by_side_where_there_are_several(table, asked):
    for n_classes, team in ((2, None), (3, "a team")):
        boost_given_settings(collect(make_classes(table, n_classes)))
        assert asked[-1].team == team
        assert len(asked[-1].runs) == (1 if n_classes == 2 else 3)


def test_one_worker_says_what_rounds_come_to(table, asked):
    for rank, verbose, said in ((0, 5, 5), (1, 5, 0), (0, 0, 0)):
        boost_given_settings(replace(collect(table, verbose=verbose), workers=Workers(rank, 2)))
        assert asked[-1].verbose == said
        assert asked[-1].workers.rank == rank


def test_patience_is_that_of_the_loss_unless_a_metric_is_asked_for(table, asked):
    validation = ValidationTable(*(one[:20] for one in table))
    stops = {"early_stopping": 4, "validation": validation}
    for settings, patience, is_judged in (
        ({}, 0, False),
        (stops, 4, False),
        (stops | {"eval_metric": "accuracy"}, 0, True),
        ({"validation": validation, "eval_metric": "accuracy"}, 0, True),
        ({"eval_metric": "accuracy"}, 0, False),
    ):
        boost_given_settings(collect(table, **settings))
        assert asked[-1].patience == patience
        assert (asked[-1].judge is not None) is is_judged


def test_rounds_are_counted_from_those_of_the_model_before(table, asked, monkeypatch):
    with monkeypatch.context() as usual:
        usual.setattr(fitting, "advance", advance)
        first = boost_given_settings(collect(table, n_estimators=2)).model
    heard = [lambda progress: None]
    for previous, expected in ((None, (0, 6)), (first, (2, 4))):
        boost_given_settings(collect(table, callbacks=heard), previous)
        assert (asked[-1].first_round, asked[-1].n_rounds) == expected
        assert list(asked[-1].callbacks) == heard


def test_a_fit_that_goes_on_measures_the_rounds_before_it(table):
    validation = ValidationTable(*(one[:20] for one in table))
    first = boost_given_settings(collect(table, validation, n_estimators=2)).model
    settings = {"eval_metric": "accuracy"}
    both, whole = (boost_given_settings(collect(table, validation, **settings), one).model for one in (first, None))
    assert both.curves.keys() == whole.curves.keys() == {"accuracy"}
    for name, values in whole.curves.items():
        assert len(values) == 6
        np.testing.assert_allclose(both.curves[name], values, rtol=1e-9)


def test_no_round_follows_those_after_which_a_metric_makes_no_progress(table, asked, monkeypatch):
    measurer = SimpleNamespace(has_stalled=True, best_round=None, list_curves=dict)
    monkeypatch.setattr(fitting, "_make_measurer", lambda *_: measurer)
    for has_stalled, n_rounds in ((False, 6), (True, 0)):
        measurer.has_stalled = has_stalled
        boost_given_settings(collect(table))
        assert asked[-1].n_rounds == n_rounds


@pytest.mark.parametrize("n_boosted", [0, 2, 3])
def test_ctrl_c_before_every_class_has_a_round_leaves_nothing(table, monkeypatch, n_boosted):
    def interrupt(runs, n_rounds, **options):
        for run in runs[:n_boosted]:
            run.boost(1, 0)
        return Ending(KeyboardInterrupt())

    monkeypatch.setattr(fitting, "advance", interrupt)
    data = collect(make_classes(table, 3))
    if n_boosted < 3:
        with pytest.raises(KeyboardInterrupt):
            boost_given_settings(data)
        return
    fit = boost_given_settings(data)
    assert isinstance(fit.interrupt, KeyboardInterrupt)
    assert [len(one) for one in fit.model.ensembles] == [1, 1, 1]


LINK = ClippedLink(AlphaLoss(2.0))


class NotingEngine:
    """Makes boosters that are nothing but their tasks."""

    def make_booster(self, dataset, task):
        return SimpleNamespace(dataset=dataset, task=task)


class Earlier:
    """Rounds of an earlier fit, with the losses of some of them, and the scores 0.5, 1.5, ... that they give rows."""

    def __init__(self, count, n_losses):
        self.count, self.losses = count, np.arange(1.0, n_losses + 1.0)

    def __len__(self):
        return self.count

    def scores(self, X, n_jobs):
        assert n_jobs == 3
        return np.arange(len(X)) + 0.5


def start_runs(earlier=None, starts=(0.0,), given=None):
    """Return the runs of four rows by classes that begin at these scores; `given` are those that `fit` was told."""
    data = SimpleNamespace(
        settings=SimpleNamespace(engine_options=SimpleNamespace(n_jobs=3), engine=NotingEngine()),
        rows=SimpleNamespace(X=np.zeros((4, 1)), labels=np.zeros(4, np.uint32)),
        weight="weight",
        find_starts=lambda link, weight: list(starts) if (link, weight) == (LINK, "weight") else None,
        make_task=lambda link, step, index: Task(link=link, step=step, index=index),
        init_scores=None if given is None else given + np.arange(2.0) + np.zeros((4, 1)),
        dataset_of=lambda fold: f"rows of fold {fold}",
    )
    return fitting._start_runs(data, LINK, 0.25, earlier)


@dataclass(frozen=True)
class Task:
    link: Any
    step: float
    index: int
    start: Any = None
    first_round: int = 0


def test_each_class_begins_at_its_own_score():
    runs = start_runs(starts=(0.0, -1.5, 2.0))
    assert [run.start for run in runs] == [0.0, -1.5, 2.0]
    assert [run.booster.task.index for run in runs] == [0, 1, 2]
    assert all((one.booster.dataset, one.booster.task.step) == ("rows of fold 0", 0.25) for one in runs)
    assert runs[0].booster.task.start is None
    np.testing.assert_array_equal(runs[1].booster.task.start, np.full(4, -1.5))
    assert [len(run.earlier_losses) for run in runs] == [0, 0, 0]


def test_rounds_go_on_from_the_scores_of_those_before():
    cut, whole = start_runs([Earlier(5, 7), Earlier(6, 6)], starts=(0.75, 0.0))
    for run, first_round in ((cut, 5), (whole, 6)):
        np.testing.assert_array_equal(run.booster.task.start, [0.5, 1.5, 2.5, 3.5])
        assert run.booster.task.first_round == first_round
    assert cut.earlier_losses.tolist() == []  # Early stopping has cut rounds off.
    assert whole.earlier_losses.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert (cut.start, whole.start) == (0.75, 0.0)


def test_scores_that_were_given_are_added_to_those_before():
    (alone, second), (after,) = start_runs(starts=(0.0, 0.0), given=7.0), start_runs([Earlier(2, 2)], given=7.0)
    assert alone.booster.task.start.tolist() == [7.0] * 4
    assert second.booster.task.start.tolist() == [8.0] * 4
    assert after.booster.task.start.tolist() == [7.5, 8.5, 9.5, 10.5]


class Noted:
    """A measurer that notes what it is to measure."""

    def __init__(self, *positions):
        self.rows = SimpleNamespace(positions=np.array(positions))
        self.not_measured, self.measured = 0, []

    def measure_rows(self, columns):
        self.measured.append([column.tolist() for column in columns])


def measure_earlier(*, given=None, was_given=False, in_blocks=False):
    """Have two rounds of two boosters measured on five rows."""
    table = np.arange(5.0)[:, None]
    X = object.__new__(Encoded) if in_blocks else table

    def stage(rows):
        for factor in (1.0, 10.0):
            numbers = table if in_blocks else rows
            assert (rows is X) is in_blocks
            yield factor * np.column_stack([numbers[:, 0], -numbers[:, 0]])

    data = SimpleNamespace(
        rows=SimpleNamespace(X=X),
        init_scores=given,
        validation=Validation(None, was_given, np.array([0.0, 0.0, 0.0, 0.0, 1.0])),
    )
    previous = SimpleNamespace(
        n_rounds=2,
        ensembles="ab",
        staged_scores=stage,
        validation_rows=np.array([], int),
        validation_shares=np.array([]),
    )
    measurer = Noted(1, 4)
    fitting._measure_earlier_rounds(measurer, data, ClippedLink(AlphaLoss(2.0)), previous)
    return measurer


@pytest.mark.parametrize("in_blocks", [False, True])
def test_rounds_before_are_measured_on_validation_rows(in_blocks):
    measurer = measure_earlier(was_given=True, in_blocks=in_blocks)
    assert measurer.measured == [[[1.0, 4.0], [-1.0, -4.0]], [[10.0, 40.0], [-10.0, -40.0]]]
    assert measurer.not_measured == 0


def test_rounds_before_are_measured_from_the_scores_that_were_given():
    given = np.column_stack([np.arange(100.0, 105.0), np.zeros(5)])
    assert measure_earlier(was_given=True, given=given).measured[0] == [[102.0, 108.0], [-1.0, -4.0]]


def test_rounds_before_that_nobody_can_judge_are_not_measured():
    seen = measure_earlier()  # They may have trained on what is held out now.
    assert (seen.measured, seen.not_measured) == ([], 2)


# ---- rounds again ----


def make_replay(table, model=None, **settings):
    data = collect(table, **settings)
    X, y, weight = table
    model = boost_given_settings(data).model if model is None else model
    return model, data, replay_rounds(model, data.settings, X, y.astype(np.uint32), weight)


@pytest.mark.parametrize(
    "settings", [{}, {"class_weight": {1: 3.0}}, {"early_stopping": True}, {"init": "prior"}], ids=str
)
def test_rounds_are_replayed_from_their_hypotheses(table, settings):
    X, y, _ = table
    model, data, replay = make_replay(table, **settings)
    rows = np.flatnonzero(data.weight)
    signs = np.where(y == 1, 1.0, -1.0)[rows]
    np.testing.assert_allclose(replay.sample_weight, data.weight[rows])
    ensemble = model.ensembles[0]
    margins = ensemble.start * signs
    np.testing.assert_allclose(replay.start, margins)
    rounds = list(replay.rounds)
    assert [one.index for one in rounds] == list(range(len(ensemble)))
    for one, leverage in zip(rounds, ensemble.leverages, strict=True):
        np.testing.assert_allclose(one.weights, model.link.weights(margins))
        agreement = signs * one.hypothesis.predict(X[rows])
        np.testing.assert_allclose(one.agreement, agreement)
        edge = np.average(one.weights * agreement, weights=replay.sample_weight)
        assert one.edge == pytest.approx(edge, rel=2e-3)
        margins = margins + leverage * agreement
        np.testing.assert_allclose(one.margins, margins)
    np.testing.assert_allclose(signs * margins, model.scores(X[rows]))


def test_other_data_are_not_taken_for_those_of_the_fit(table):
    X, y, weight = table
    model, data, _ = make_replay(table)
    heavy = np.where(np.arange(80) == 0, 5.0 * weight, weight)
    for other in ((X, 1 - y, weight), (X[::-1], y, weight), (X, y, heavy)):
        with pytest.raises(ValueError, match="the edges differ"):
            list(replay_rounds(model, data.settings, other[0], other[1].astype(np.uint32), other[2]).rounds)


def test_rounds_are_replayed_for_what_a_certificate_is_for(table):
    X, y, weight = table
    model, data, _ = make_replay(table)
    labels, settings = y.astype(np.uint32), data.settings
    draws = collect(table, subsample=0.5).settings
    for changes, message in [
        ({"model": replace(model, classes=np.arange(3))}, "a certificate is for two classes"),
        ({"settings": replace(settings, by_edge=False)}, "for the paper's steps"),
        ({"settings": replace(settings, link_name="logit")}, "margin losses that are convex"),
        ({"settings": draws}, "rounds that see all rows: subsample=1"),
        ({"X": X[:79]}, "must be the 80 rows that fit was given, got 79 and 80"),
        ({"labels": labels[:79]}, "must be the 80 rows that fit was given, got 80 and 79"),
        ({"X": X[:79], "labels": labels[:79]}, "must be the 80 rows that fit was given, got 79 and 79"),
    ]:
        arguments = {"model": model, "settings": settings, "X": X, "labels": labels, "sample_weight": weight} | changes
        with pytest.raises(ValueError, match=message):
            replay_rounds(**arguments)


@pytest.mark.parametrize("heaviest", [1.0, 100.0])
def test_edges_may_differ_by_as_much_as_weights_are_rounded(heaviest):
    weight = np.append(heaviest, np.ones(999))
    allowed = 1e-6 + 2.0**-17 * 1000 * heaviest / weight.sum()
    hypothesis = SimpleNamespace(predict=lambda X: np.zeros(len(X)))  # Its edge is 0.
    for edge, is_taken in ((0.99 * allowed, True), (-0.99 * allowed, True), (1.02 * allowed, False)):
        ensemble = SimpleNamespace(iterate_rounds=lambda: [(0.5, hypothesis)], edges=[edge])
        model = SimpleNamespace(ensembles=[ensemble], link=SimpleNamespace(weights=np.ones_like))
        rounds = fitting._replay(model, np.zeros((1000, 1)), np.ones(1000), np.zeros(1000), weight)
        if is_taken:
            assert [one.edge for one in rounds] == [edge]
            continue
        with pytest.raises(ValueError, match="the edges differ"):
            list(rounds)


def test_a_model_has_the_noise_that_was_given_or_that_menon_estimated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(rng.random(300) < 0.2, X[:, 0] < 0, X[:, 0] > 0).astype(int)
    small = {"n_estimators": 3, "max_depth": 2, "random_state": 0}
    given = QuickClassifier(alpha=2.0, noise=(0.1, 0.2), **small).fit(X, y).model_
    assert given.untwists
    assert (given.noise.rate_neg, given.noise.rate_pos) == (0.1, 0.2)
    menon = make_classifier(alpha="menon", **small).fit(X, y).model_
    assert (type(menon.menon), menon.noise) == (MenonEstimate, None)
    plain = make_classifier(alpha=2.0, **small).fit(X, y).model_
    assert (plain.menon, plain.noise) == (None, None)
