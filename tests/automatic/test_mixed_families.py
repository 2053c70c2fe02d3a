"""The default fit of several classes, written out: boosted and randomised trees on folds, and how they are mixed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from helpers.engines import get_forest, make_booster, make_dataset, wrap_boosters
from helpers.quick import make_classifier
from helpers.small_fits import draw_sample
from untwist.automatic import mixture, search
from untwist.automatic import randomised as randomised_trees
from untwist.boosting.engines.compiled import CompiledEngine
from untwist.boosting.engines.engine import Task, TreeGrowth
from untwist.data.folds import split_into_folds
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss

X, Y = draw_sample(classes=3)
N = len(Y)


def make_automatic(**settings):
    return make_classifier(**{"random_state": 0, "n_jobs": 1, **settings})


def split(model):
    """Return the weight of each row that each fold sets aside."""
    return split_into_folds(make_dataset(X, Y).hashes(), Y.astype(np.uint32), np.ones(N), 5, model.model_.seed)


def boost_fold(model, weight):
    """Return the boosted scores of all rows, in units of the twisted posterior, by a fold that has these weights."""
    best = model.choice_.best
    growth = TreeGrowth(max_depth=best.max_depth, l2=1.0, subsample=0.7, max_features=0.7, seed=model.model_.seed)
    link, step = ClippedLink(AlphaLoss(best.alpha)), best.alpha * best.step
    booster = make_booster(make_dataset(X, Y), link, step, growth, by_edge=False, positive_class=None, weight=weight)
    booster.boost(best.n_rounds)
    return get_forest(booster).scores(X) / best.alpha


def randomise_fold(model, weight, fold, leaf_size):
    """Return the scores of all rows by the randomised trees of a fold that has these weights."""
    task = Task(ClippedLink(AlphaLoss(1.0)), 1.0, TreeGrowth(seed=model.model_.seed), weight=weight)
    n_trees = randomised_trees.SEVERAL_CLASSES.n_trees[0]
    grown = CompiledEngine().grow_randomised(make_dataset(X, Y), task, n_trees, leaf_size, 0.5, fold * n_trees)
    assert len(grown) == n_trees
    return grown.scores(X)


def join_held_out(folds, held):
    """Return, for each row, the scores of the fold that set it aside."""
    return np.array([folds[fold][row] for row, fold in enumerate(held.argmax(axis=0))])


def find_loss(scores):
    return -log_softmax(scores, axis=1)[np.arange(N), Y].mean()


@pytest.fixture(scope="module")
def fitted():
    return make_automatic(noise=None).fit(X, Y)


@pytest.fixture(scope="module")
def members(fitted):
    """The scores of all rows by each fold, boosted and randomised."""
    held = split(fitted)
    boosted = [boost_fold(fitted, 1 - one) for one in held]
    size = fitted.choice_.mixture.min_samples_leaf
    randomised = [randomise_fold(fitted, 1 - one, fold, size) for fold, one in enumerate(held)]
    return held, np.array(boosted), np.array(randomised)


def test_the_model_is_the_mean_of_boosted_and_randomised_trees(fitted, members):
    _, boosted, randomised = members
    mixed = fitted.choice_.mixture
    expected = mixed.boosted_weight * boosted.mean(axis=0) + mixed.randomised_weight * randomised.mean(axis=0)
    np.testing.assert_allclose(fitted.decision_function(X), expected, rtol=1e-9, atol=1e-12)
    assert (
        fitted.model_.n_rounds
        == len(fitted.model_.by_class("forest"))
        == 5 * (fitted.choice_.best.n_rounds + mixed.n_trees)
    )
    assert min(mixed.boosted_weight, mixed.randomised_weight) > 0  # Both kinds of trees have been looked at.
    floor = 1 / (N + 2)
    for found, posterior in (
        (fitted.predict_proba_twisted(X), softmax(expected, axis=1)),
        (fitted.predict_proba(X), softmax(fitted.model_.alpha * expected, axis=1)),
    ):
        within = posterior.clip(floor, 1 - floor)
        # What tells equals apart moves no posterior by more than this.
        np.testing.assert_allclose(found, within / within.sum(axis=1, keepdims=True), atol=1e-5)
    untwisted = make_automatic().fit(X, Y)  # Untwisting trains no other trees.
    np.testing.assert_array_equal(untwisted.model_.scores(X), fitted.model_.scores(X))


def test_out_of_fold_posteriors_are_by_models_that_have_not_seen_the_row(fitted, members):
    held, boosted, randomised = members
    mixed = fitted.choice_.mixture
    folds = mixed.boosted_weight * boosted + mixed.randomised_weight * randomised
    np.testing.assert_allclose(fitted.oof_proba_, softmax(join_held_out(folds, held), axis=1), atol=2e-3)
    own = fitted.model_.out_of_fold
    expected = fitted.model_.posterior.twisted(join_held_out(folds, held))
    np.testing.assert_allclose(own.posterior, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(np.sort(own.parts.rows), np.arange(N))
    np.testing.assert_array_equal(own.held_out, held)
    np.testing.assert_array_equal(own.judged_weight, 1.0)


def test_losses_are_those_of_the_rows_set_aside(fitted, members):
    held, boosted, randomised = members
    choice, mixed = fitted.choice_, fitted.choice_.mixture
    of_boosted, of_randomised = join_held_out(boosted, held), join_held_out(randomised, held)
    together = mixed.boosted_weight * of_boosted + mixed.randomised_weight * of_randomised
    assert mixed.boosted_loss == pytest.approx(find_loss(of_boosted), rel=1e-9)
    assert mixed.randomised_loss == pytest.approx(find_loss(of_randomised), rel=1e-9)
    assert mixed.loss == pytest.approx(find_loss(together), rel=1e-9)
    assert mixed.loss < min(mixed.boosted_loss, mixed.randomised_loss)
    assert choice.best.loss == pytest.approx(mixed.boosted_loss, rel=1e-3)  # Rounds are judged in single precision.
    assert choice.best.error == pytest.approx(np.mean(of_boosted.argmax(axis=1) != Y), abs=1 / N)
    curve = fitted.model_.validation_curves()["validation"]
    assert curve["log_loss"].shape == curve["error"].shape
    assert len(curve["log_loss"]) >= choice.best.n_rounds  # It tells of rounds not kept too.
    assert curve["log_loss"][choice.best.n_rounds - 1] == pytest.approx(choice.best.loss, rel=1e-12)
    assert choice.best.loss == min(one.loss for one in choice.tried)
    assert str(mixed) in str(choice)


def test_weights_and_leaf_size_are_the_best_on_rows_set_aside(fitted, members):
    held, boosted, randomised = members
    mixed = fitted.choice_.mixture
    of_boosted, of_randomised = join_held_out(boosted, held), join_held_out(randomised, held)

    def find_price(first, second):
        ridge = mixture.EQUAL_ROWS / N * ((first - 0.5) ** 2 + (second - 0.5) ** 2)
        return find_loss(first * of_boosted + second * of_randomised) + ridge

    best = find_price(mixed.boosted_weight, mixed.randomised_weight)
    for first, second in ((0.01, 0), (-0.01, 0), (0, 0.01), (0, -0.01), (0.01, -0.01), (-0.01, 0.01)):
        assert find_price(mixed.boosted_weight + first, mixed.randomised_weight + second) > best
    losses = {}
    for size in randomised_trees.SEVERAL_CLASSES.leaf_sizes:
        scores = join_held_out([randomise_fold(fitted, 1 - one, fold, size) for fold, one in enumerate(held)], held)
        slope = minimize_scalar(lambda a, s=scores: find_loss(a * s) + mixture.EQUAL_ROWS / N * (a - 1) ** 2).x
        losses[size] = find_loss(slope * scores)
    assert min(losses, key=losses.get) == mixed.min_samples_leaf


@pytest.mark.parametrize("given", [{"n_estimators": 7}, {"max_depth": 2}], ids=str)
def test_where_the_size_of_trees_is_given_none_are_randomised(given):
    model = make_automatic(noise=None, **given).fit(X, Y)
    assert model.choice_.mixture is None
    assert model.model_.n_rounds == 5 * model.choice_.best.n_rounds
    assert model.model_.by_class("forest").n_outputs == 3
    expected = np.mean([boost_fold(model, 1 - one) for one in split(model)], axis=0)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-9, atol=1e-12)


def test_an_engine_that_knows_no_softmax_boosts_each_class_against_the_rest():
    pytest.importorskip("xgboost")
    model = make_automatic(n_estimators=5, engine="xgboost").fit(X, Y)
    assert model.choice_.mixture is None
    assert [forest.n_outputs for forest in model.model_.by_class("forest")] == [1, 1, 1]


def test_where_rows_are_many_the_first_folds_choose_and_the_best_gets_the_rest(monkeypatch, fitted):
    monkeypatch.setattr(search, "ENOUGH_ROWS_JOINTLY", 90)  # These are two folds of 48.
    made, grown = [], []
    wrap_boosters(monkeypatch, lambda booster, task: made.append(task.validation_weight) or booster)
    grow = CompiledEngine.grow_randomised
    monkeypatch.setattr(
        CompiledEngine,
        "grow_randomised",
        lambda *args, **first: grown.append((args[2].weight, args[4])) or grow(*args, **first),
    )
    monkeypatch.setattr(search, "JOINT_LEARNING_RATES", (0.1,))
    model = make_automatic().fit(X, Y)
    assert len(made) == 2 * len(model.choice_.tried) + 3
    np.testing.assert_array_equal(np.sum(made[:2] + made[-3:], axis=0), 1.0)
    assert [size for _, size in grown[:6]] == [2, 2, 5, 5, 15, 15]
    assert [size for _, size in grown[6:]] == [model.choice_.mixture.min_samples_leaf] * 3
    np.testing.assert_array_equal(np.sum([1 - weight for weight, _ in grown[:2] + grown[6:]], axis=0), 1.0)
    assert model.oof_proba_.shape == (N, 3)
    assert abs(model.score(X, Y) - fitted.score(X, Y)) < 0.1


def test_leaves_grow_where_trees_would_take_too_much_memory(monkeypatch):
    plan = randomised_trees.SEVERAL_CLASSES
    bounded = replace(plan, most_values=int(1.4 * N * 3 * 20 / 4))
    monkeypatch.setattr(randomised_trees, "SEVERAL_CLASSES", bounded)
    mixed = make_automatic().fit(X, Y).choice_.mixture
    assert mixed.n_trees == 20
    assert mixed.min_samples_leaf in (4, 5, 15)
    monkeypatch.setattr(randomised_trees, "SEVERAL_CLASSES", replace(plan, most_values=100))
    mixed = make_automatic().fit(X, Y).choice_.mixture
    assert mixed.min_samples_leaf == np.ceil(1.4 * N * 3 * 20 / 100)


class Interrupted:
    """A booster that hears Ctrl-C before a certain round."""

    def __init__(self, booster, at):
        self.booster, self.at = booster, at

    def boost(self, rounds, patience=0):
        if len(self.booster.losses()) + rounds > self.at:
            raise KeyboardInterrupt
        return self.booster.boost(rounds, patience)

    def __getattr__(self, name):
        return getattr(self.booster, name)


@pytest.mark.parametrize(("candidate", "at"), [(0, 20), (1, 10)])
def test_ctrl_c_while_boosting_keeps_the_best_so_far(monkeypatch, fitted, candidate, at):
    made = []

    def wrap(booster, task):
        made.append(task)
        return Interrupted(booster, at) if len(made) == 5 * candidate + 2 else booster

    wrap_boosters(monkeypatch, wrap)
    model = make_automatic()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert len(model.choice_.tried) == 1
    assert model.choice_.mixture is None  # Nothing is begun after Ctrl-C.
    if candidate == 0:
        assert model.choice_.best.n_rounds <= at
    else:
        assert model.choice_.tried == fitted.choice_.tried[:1]
    assert model.predict_proba(X).shape == (N, 3)
    assert model.oof_proba_.shape == (N, 3)


@pytest.mark.parametrize("call", [1, 7, 15])
def test_ctrl_c_while_randomised_trees_grow_keeps_the_boosted_ones(monkeypatch, members, call):
    grow, calls = CompiledEngine.grow_randomised, []

    def interrupt(*args, **first):
        calls.append(args)
        if len(calls) == call:
            raise KeyboardInterrupt
        return grow(*args, **first)

    monkeypatch.setattr(CompiledEngine, "grow_randomised", interrupt)
    model = make_automatic()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert len(calls) == call
    assert model.choice_.mixture is None
    held, boosted, _ = members
    np.testing.assert_allclose(model.model_.scores(X), boosted.mean(axis=0), rtol=1e-9, atol=1e-12)
    expected = model.model_.posterior.twisted(join_held_out(boosted, held))
    np.testing.assert_allclose(model.model_.out_of_fold.posterior, expected, rtol=1e-9, atol=1e-12)
    assert model.noise_.matrix.shape == (3, 3)


def test_ctrl_c_before_the_first_round_leaves_nothing(monkeypatch):
    wrap_boosters(monkeypatch, lambda booster, task: Interrupted(booster, 5))
    model = make_automatic()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "model_")
