"""The parts of a fit with given settings: rounds that are left and kept, what is told, and rounds that are replayed."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from untwist import PILBoostClassifier, fitting
from untwist.fitting import boost_given_settings, decide_alpha, replay_rounds
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss
from untwist.noise import Untwisting
from untwist.noise.matrix import MatrixUntwisting
from untwist.progress import ProgressLine, use_display
from untwist.settings import resolve
from untwist.training_data import TrainingData, ValidationTable


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
    settings = SimpleNamespace(n_rounds=7, init="prior")
    previous = SimpleNamespace(link=link, init="prior", n_rounds=5)
    assert fitting._count_rounds_left(settings, link, None) == 7
    assert fitting._count_rounds_left(settings, link, previous) == 2
    previous.n_rounds, previous.init = 7, None  # Older files do not say where rounds began.
    assert fitting._count_rounds_left(settings, link, previous) == 0
    for changes, message in [
        ({"n_rounds": 8}, "n_estimators must be at least the 8 rounds of the last fit, got 7"),
        ({"init": "zero"}, "goes on with init of the last fit, 'zero', got 'prior'"),
        ({"link": ClippedLink(AlphaLoss(3.0))}, "goes on with the link of the last fit"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitting._count_rounds_left(settings, link, SimpleNamespace(**vars(previous) | changes))


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
    data = SimpleNamespace(validation_share=np.array([0.0, 0.5, 0.0, 1.0]), validation_was_given=given)
    previous = SimpleNamespace(validation_rows=np.array(rows, int), validation_shares=np.array(shares))
    assert fitting._may_have_seen_validation(data, previous) is expected


def test_what_folds_set_aside_tells_nothing_of_later_rounds():
    ensembles = (SimpleNamespace(forget_validation=lambda: "forgotten"),)
    assert fitting._list_earlier(None) is None
    assert fitting._list_earlier(SimpleNamespace(choice=None, ensembles=ensembles)) == list(ensembles)
    assert fitting._list_earlier(SimpleNamespace(choice=object(), ensembles=ensembles)) == ["forgotten"]


def test_known_noise_is_of_two_classes_or_a_matrix():
    assert fitting._take_known_noise(None) is None
    assert isinstance(fitting._take_known_noise((0.1, 0.2)), Untwisting)
    assert isinstance(fitting._take_known_noise(0.7 * np.eye(3) + 0.1), MatrixUntwisting)


def test_alpha_is_that_of_the_settings_or_of_the_estimate():
    estimate = SimpleNamespace(alpha=1.5)
    data = SimpleNamespace(settings=SimpleNamespace(alphas=(1.0, 2.0)), estimate_menon=lambda: estimate)
    assert (decide_alpha(data).alphas, decide_alpha(data).estimate) == ((1.0, 2.0), None)
    data.settings.alphas = None
    assert (decide_alpha(data).alphas, decide_alpha(data).estimate) == ((1.5,), estimate)


# ---- fits ----


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    return X, (X[:, 0] + rng.normal(size=80) > 0).astype(int), rng.integers(1, 4, size=80).astype(float)


def collect(table, validation=None, **settings):
    settings = {"alpha": 2.0, "n_estimators": 6, "max_depth": 2, "random_state": 0, "n_jobs": 1} | settings
    parameters = PILBoostClassifier(**settings).get_params(deep=False)
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


def test_a_fit_that_goes_on_has_the_rounds_of_both(table):
    data = collect(table)
    first = boost_given_settings(collect(table, n_estimators=2)).model
    both = boost_given_settings(data, first).model
    whole = boost_given_settings(data).model
    assert (first.n_rounds, both.n_rounds) == (2, 6)
    np.testing.assert_allclose(both.scores(data.rows.X), whole.scores(data.rows.X), rtol=1e-12)
    assert (both.init, both.alpha, both.n_rows, both.seed) == ("prior", 2.0, 80, data.growth.seed)


def test_callbacks_see_the_model_so_far_and_may_end_the_fit(table):
    seen = []

    def look(progress):
        seen.append((progress.round, progress.model()))
        return progress.round == 3

    model = boost_given_settings(collect(table, callbacks=[look]), wrap_model=lambda model: model.n_rounds).model
    assert seen == [(1, 1), (2, 2), (3, 3)]
    assert model.n_rounds == 3


def test_early_stopping_keeps_the_round_of_the_lowest_loss(table):
    settings = {"n_estimators": 60, "early_stopping": True, "n_iter_no_change": 4}
    validation = ValidationTable(*(one[::2] for one in table))
    model = boost_given_settings(collect([one[1::2] for one in table], validation, **settings)).model
    (losses, _), kept = (model.ensembles[0].losses, model.ensembles[0].errors), len(model.ensembles[0])
    assert kept == np.argmin(losses) + 1 == len(losses) - 4 < 60


def test_rows_held_out_are_told_with_their_shares(table):
    data = collect(table, early_stopping=True, validation_fraction=0.25)
    model = boost_given_settings(data).model
    np.testing.assert_array_equal(model.validation_rows, np.flatnonzero(data.validation_share))
    np.testing.assert_array_equal(model.validation_shares, data.validation_share[model.validation_rows])


def test_what_is_measured_after_each_round_is_what_was_asked_for(table):
    validation = ValidationTable(*(one[:20] for one in table))

    def list_measured(validation=None, size=1, **settings):
        data = replace(collect(table, validation, **settings), workers=SimpleNamespace(size=size))
        posterior = boost_given_settings(collect(table)).model.posterior
        measurer = fitting._make_measurer(data, lambda: posterior, data.settings.make_link(2.0))
        return None if measurer is None else list(measurer.rows)

    assert list_measured() is list_measured(validation) is list_measured(size=2) is None
    assert list_measured(eval_training=True) == ["training"]
    assert list_measured(validation, eval_metric="accuracy") == ["validation"]
    assert list_measured(validation, eval_metric="accuracy", eval_training=True) == ["training", "validation"]
    assert list_measured(eval_metric="accuracy", eval_training=True) == ["training"]
    with pytest.raises(ValueError, match="eval_metric and eval_training are for one machine"):
        list_measured(eval_training=True, size=2)


# ---- rounds again ----


def make_replay(table, model=None, **settings):
    data = collect(table, **settings)
    X, y, weight = table
    model = boost_given_settings(data).model if model is None else model
    return model, data, replay_rounds(model, data.settings, X, y.astype(np.uint32), weight)


@pytest.mark.parametrize(
    "settings", [{}, {"class_weight": {1: 3.0}}, {"early_stopping": True}, {"init": "zero"}], ids=str
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
        ({"model": replace(model, choice=object())}, "for the paper's steps"),
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
