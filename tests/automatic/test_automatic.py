"""What is left open is chosen from the twisted data alone, by folds drawn by content."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from helpers.engines import get_forest, make_booster, make_dataset, wrap_boosters
from helpers.quick import make_classifier, resolve
from untwist import settings as default_settings
from untwist.automatic import candidates, search
from untwist.automatic.search import Search, find_lowest
from untwist.boosting.engines.compiled import CompiledEngine
from untwist.boosting.engines.engine import Engine, TreeGrowth
from untwist.boosting.ensemble import Ensemble
from untwist.boosting.forest import Forest
from untwist.data.folds import split_into_folds
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss
from untwist.training_data import TrainingData
from untwist.twisters import ClassNoise


def sample(n=400, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    return X, ClassNoise(noise).twist(X, y, rng)[1], y


def auto(**settings):
    """Return a classifier that chooses among boosted trees alone; one thread, so that their folds come in order."""
    return make_classifier(**{"boosted_only": True, "random_state": 0, "n_jobs": 1, **settings})


# ---- folds ----


def folds_of(X, y, weight=None, seed=0):
    weight = np.ones(len(y)) if weight is None else weight
    return split_into_folds(make_dataset(X, y, weight).hashes(), y.astype(np.uint32), weight, 5, seed)


def test_every_row_is_set_aside_once_and_classes_are_shared_evenly():
    X, y, _ = sample(1000)
    held = folds_of(X, y)
    np.testing.assert_allclose(held.sum(axis=0), 1.0)
    assert set(np.unique(held)) == {0.0, 1.0}
    for label in (0, 1):
        assert np.abs(held[:, y == label].sum(axis=1) / np.sum(y == label) - 0.2).max() < 0.01
    assert (folds_of(X, y, seed=1) != held).any()


def test_folds_do_not_depend_on_the_order_of_rows_and_keep_copies_together():
    X, y, _ = sample()
    order = np.random.default_rng(1).permutation(len(y))
    held = folds_of(X, y)
    np.testing.assert_array_equal(folds_of(X[order], y[order]), held[:, order])
    copies = np.repeat(np.arange(len(y)), 1 + np.arange(len(y)) % 3)
    twice = folds_of(X[copies], y[copies])
    weighted = folds_of(X, y, 1.0 + np.arange(len(y)) % 3)
    np.testing.assert_array_equal(twice > 0, weighted[:, copies] > 0)
    assert set(np.unique(twice)) == {0.0, 1.0}


def test_heavy_contents_are_dealt_out_copy_by_copy():
    X, y, copies = np.array([[0.0], [1.0]]), np.array([0, 1]), np.array([7, 3])
    weighted = folds_of(X, y, copies.astype(float))
    single = folds_of(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    assert set(np.unique(single)) == {0.0, 1.0}
    np.testing.assert_array_equal(np.add.reduceat(single, [0, 7], axis=1), weighted)
    assert sorted(weighted[:, 0]) == [1, 1, 1, 2, 2]
    assert sorted(weighted[:, 1]) == [0, 0, 1, 1, 1]


def test_frequent_contents_with_several_labels_are_samples_of_their_own():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (600, 1)).astype(float), rng.integers(0, 2, 600)
    held = folds_of(X, y)
    np.testing.assert_allclose(held.sum(axis=0), 1.0)
    for value in range(3):
        inside = held[:, X[:, 0] == value].mean(axis=1)
        assert (inside > 0.05).all()  # no fold loses a value
        assert np.ptp(inside) > 0  # and they are drawn, not shared out evenly


def test_the_mean_of_forests_is_the_mean_of_their_scores():
    X, y, _ = sample()
    X[:, 3] = np.abs(np.round(X[:, 3]))
    data = make_dataset(X, y, categories={3: 6})
    forests = []
    for seed, rounds in enumerate((3, 7, 5)):
        booster = make_booster(
            data, ClippedLink(AlphaLoss(2.0)), 0.3, TreeGrowth(subsample=0.6, seed=seed), by_edge=False
        )
        booster.boost(rounds)
        forests.append(get_forest(booster))
    mean = Forest.average(forests)
    assert len(mean) == 15
    assert (mean.set >= 0).any()
    np.testing.assert_allclose(
        mean.scores(X), np.mean([one.scores(X) for one in forests], axis=0), rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(mean.leverage, 0.1)


@pytest.mark.filterwarnings("ignore:.*nothing but the shares of the classes:UserWarning")
@pytest.mark.parametrize("n", [2, 3, 4, 7, 12])
def test_a_handful_of_rows_has_fewer_folds(n):
    X, y = np.arange(float(n))[:, None], np.arange(n) % 2
    held = folds_of(X, y)
    assert (held.sum(axis=1) > 0).all()
    np.testing.assert_array_equal(held.sum(axis=0), 1.0)
    assert auto().fit(X, y).predict(X).shape == (n,)
    repeated = auto().fit(np.zeros((n, 1)), y)
    assert repeated.predict_proba(np.zeros((1, 1))).shape == (1, 2)


# ---- the choice ----


@pytest.fixture
def one_by_one(monkeypatch):
    """An engine that boosts each of several classes against the rest, as XGBoost does."""
    monkeypatch.setattr(CompiledEngine, "boosts_jointly", False)


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("classes", [2, 3])
def test_the_model_is_the_mean_of_fold_models_judged_on_rows_set_aside(classes):
    X, y, _ = sample()
    y = y + (X[:, 3] > 1) if classes == 3 else y
    model = auto(noise=None).fit(X, y)
    best = model.choice_.best
    data = make_dataset(X, y)
    held = split_into_folds(data.hashes(), y.astype(np.uint32), np.ones(len(y)), 5, model.model_.seed)
    link = ClippedLink(AlphaLoss(best.alpha))
    growth = TreeGrowth(max_depth=best.max_depth, l2=1.0, subsample=0.7, max_features=0.7, seed=model.model_.seed)
    scores, losses = [], []
    for label in [1] if classes == 2 else range(3):
        folds = []
        for one in held:
            start = float(link.link(np.average(y == label, weights=1 - one)))
            task = {"by_edge": False, "positive_class": label, "weight": 1 - one, "start": np.full(len(y), start)}
            booster = make_booster(data, link, 0.1, growth, **task)
            booster.boost(best.n_rounds)
            folds.append(start + get_forest(booster).scores(X))
        scores.append(np.mean(folds, axis=0))
        apart = np.take_along_axis(np.array(folds), held.argmax(axis=0)[None], axis=0)[0]
        posterior = link.inverse(np.where(y == label, 1, -1) * apart).clip(1 / 402, 401 / 402)
        losses.append(-np.log(posterior).mean())
    expected = scores[0] if classes == 2 else np.column_stack(scores)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-9, atol=1e-12)
    again = auto().fit(X, y)  # Untwisting trains no other trees.
    np.testing.assert_array_equal(again.model_.scores(X), model.model_.scores(X))
    assert best.loss == pytest.approx(np.mean(losses), rel=1e-3)
    assert best.loss == min(one.loss for one in model.choice_.tried)
    assert f"alpha {best.alpha:g}, depth {best.max_depth}, {best.n_rounds} rounds" in str(model.choice_)
    assert model.model_.alpha == best.alpha


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("classes", [2, 3])
def test_the_learning_curve_is_that_of_the_rows_set_aside(classes):
    X, y, _ = sample()
    y = y + (X[:, 3] > 1) if classes == 3 else y
    model = auto().fit(X, y)
    best, curve = model.choice_.best, model.model_.validation_curves()["validation"]
    losses, errors = np.atleast_2d(curve["log_loss"]), np.atleast_2d(curve["error"])
    assert losses.shape == errors.shape
    assert len(losses) == (1 if classes == 2 else 3)
    assert losses.shape[1] >= best.n_rounds  # of rounds not kept too
    assert losses.mean(axis=0)[best.n_rounds - 1] == pytest.approx(best.loss, rel=1e-12)
    assert errors.mean(axis=0)[best.n_rounds - 1] == pytest.approx(best.error, rel=1e-12)
    if classes == 2:
        own = model.oof_proba_[np.arange(len(y)), y]
        assert losses[0, best.n_rounds - 1] == pytest.approx(-np.log(own).mean(), rel=1e-3)
        assert errors[0, best.n_rounds - 1] == pytest.approx(np.mean(own < 0.5), abs=1 / len(y))


def test_depth_is_chosen_first_and_then_alpha():
    X, y, _ = sample()
    tried = [(one.alpha, one.max_depth) for one in auto().fit(X, y).choice_.tried]
    depth = tried[-1][1]
    assert tried in ([(1.0, 4), (1.0, 2), (2.0, 2)], [(1.0, 4), (1.0, 2), (1.0, 6), (2.0, depth)])


def test_depth_is_climbed_from_the_middle():
    def climb_losses(losses):
        seen = []
        best = find_lowest(list(range(len(losses))), lambda level: seen.append(level) or losses[level])
        return best, sorted(set(seen))

    assert climb_losses([3, 2, 3]) == (1, [0, 1, 2])
    assert climb_losses([1, 2, 0]) == (0, [0, 1])
    assert climb_losses([2, 1, 0]) == (2, [0, 1, 2])
    assert climb_losses([0, 1, 2, 3, 4]) == (0, [0, 1, 2])
    assert climb_losses([5, 4, 3, 2, 1]) == (4, [1, 2, 3, 4])
    assert climb_losses([1]) == (0, [])


def test_values_that_are_given_stay():
    X, y, _ = sample()
    given = auto(alpha=1.5, max_depth=2).fit(X, y)
    assert [(one.alpha, one.max_depth) for one in given.choice_.tried] == [(1.5, 2)]
    counted = auto(n_estimators=7).fit(X, y)
    assert {one.n_rounds for one in counted.choice_.tried} == {7}
    assert counted.model_.n_rounds == 35
    assert auto().fit(X, y).model_.step_size == 0.1


def test_neither_the_order_of_rows_nor_threads_matter_and_weights_are_copies():
    X, y, _ = sample()
    model = auto().fit(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    for other in (auto().fit(X[order], y[order]), auto(n_jobs=2).fit(X, y), auto(n_jobs=1).fit(X, y)):
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
    weight = 1 + np.arange(len(y)) % 2
    weighted = auto(alpha=2.0, max_depth=3).fit(X, y, sample_weight=weight)
    copies = auto(alpha=2.0, max_depth=3).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.choice_.best.n_rounds == copies.choice_.best.n_rounds
    np.testing.assert_allclose(weighted.decision_function(X), copies.decision_function(X), atol=2e-3)


def test_it_learns_the_truth_behind_the_labels():
    X, noisy, truth = sample(3000, noise=0.3)
    assert auto().fit(X, noisy).score(X, truth) > 0.9


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


def interrupting(monkeypatch, candidate, fold, at):
    """Ctrl-C while this fold of this candidate is at this round."""
    made = []

    def wrap(booster, task):
        made.append(task)
        hit = len(made) - 1 == 5 * candidate + fold
        return Interrupted(booster, at) if hit else booster

    wrap_boosters(monkeypatch, wrap)


def test_candidates_are_reported(capsys):
    X, y, _ = sample()
    whole = auto(verbose=1).fit(X, y)
    assert capsys.readouterr().err.splitlines() == [str(one) for one in whole.choice_.tried]


def test_ctrl_c_keeps_the_best_candidate_so_far(monkeypatch):
    X, y, _ = sample()
    whole = auto().fit(X, y)
    interrupting(monkeypatch, candidate=2, fold=1, at=10)
    model = auto()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.choice_.tried == whole.choice_.tried[:2]
    assert model.predict(X).shape == y.shape


def test_ctrl_c_in_the_first_candidate_keeps_its_rounds(monkeypatch):
    X, y, _ = sample()
    interrupting(monkeypatch, candidate=0, fold=2, at=20)
    model = auto()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert len(model.choice_.tried) == 1
    assert model.choice_.best.n_rounds <= 20
    assert model.predict_proba(X).shape == (len(y), 2)


def test_ctrl_c_before_the_first_round_leaves_nothing(monkeypatch):
    X, y, _ = sample()
    interrupting(monkeypatch, candidate=0, fold=0, at=5)
    model = auto()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_tables_with_categories_and_missing_values():
    X, y, _ = sample()
    frame = pd.DataFrame(X).assign(kind=np.where(y == 1, "a", "b")).rename(columns=str)
    frame.loc[::5, "0"] = np.nan
    assert auto().fit(frame, y).score(frame, y) == 1.0


def test_the_candidates_are_these():
    assert default_settings.ALPHAS == (1.0, 2.0)
    assert default_settings.DEPTHS == (2, 4, 6)
    assert default_settings.LEARNING_RATES == (0.1, 0.2)


# ---- the search itself, with losses that are written down ----


class Scripted:
    """A booster whose loss after each round is given."""

    def __init__(self, curve, interrupted_at=None):
        self.curve, self.done, self.interrupted_at = curve, 0, interrupted_at

    def boost(self, rounds, patience=0):
        if self.interrupted_at is not None and self.done + rounds > self.interrupted_at:
            raise KeyboardInterrupt
        self.done += rounds
        return self.done

    def losses(self):
        return np.array([self.curve(t) for t in range(1, self.done + 1)])

    errors = losses

    def last_edge(self):
        return 0.1

    def ensemble(self):
        """As many trees as there were rounds, each of them a leaf."""
        reals, no_splits = np.full(self.done, 0.1), np.full(self.done, -1, dtype=np.int32)
        forest = Forest(
            edge=reals,
            leverage=reals,
            offset=np.arange(self.done + 1),
            feature=no_splits,
            left=np.zeros(self.done, dtype=np.int32),
            threshold=reals,
            missing_left=np.zeros(self.done, dtype=np.uint8),
            value=reals,
            gain=reals,
            set=no_splits,
            codes=np.zeros(0, dtype=np.uint64),
            n_features=4,
        )
        return Ensemble.from_forest(forest, self.losses(), self.errors())


class ScriptedEngine(Engine):
    """Makes scripted boosters and keeps what was begun; `interrupt`: which of them, and when."""

    def __init__(self, curve, interrupt):
        self.curve = curve
        self.interrupt = interrupt
        self.begun = []

    def make_dataset(self, rows, settings):
        raise NotImplementedError

    def make_booster(self, dataset, task):
        hit = self.interrupt is not None and len(self.begun) == self.interrupt[0]
        setting = (task.link.loss.alpha, task.growth.max_depth, task.step_size)
        booster = Scripted(self.curve(*setting), self.interrupt[1] if hit else None)
        self.begun.append((setting, booster))
        return booster


def falling(time, end=0.2, start=0.7):
    """A loss that nears `end` in so many rounds."""
    return lambda t: end + (start - end) * np.exp(-t / time)


def run_search(curve, interrupt=None, **changes):
    """What was chosen by one fold, and (alpha, depth, step, rounds) of all that was begun."""
    X, y, _ = sample(50)
    engine = ScriptedEngine(curve, interrupt)
    settings = resolve(auto(noise=None).get_params(), seed=0)
    data = TrainingData.collect(settings, X, y)
    data = replace(data, settings=replace(settings, engine=engine, **changes), folds=np.ones((1, len(y))))
    fit = Search(data).run()
    return fit, [(*setting, booster.done) for setting, booster in engine.begun]


def test_steps_stay_where_they_are_long_enough():
    fit, begun = run_search(lambda alpha, depth, step: falling(12))
    assert [one[:3] for one in begun] == [(1.0, 4, 0.1), (1.0, 2, 0.1), (1.0, 6, 0.1), (2.0, 4, 0.1)]
    assert all(50 < rounds < 200 for *_, rounds in begun)
    assert {one.step for one in fit.model.choice.tried} == {0.1}


def test_a_loss_that_still_falls_after_200_rounds_is_begun_anew_with_longer_steps_and_so_are_all_that_follow():
    fit, begun = run_search(lambda alpha, depth, step: falling(10 / step))
    assert begun[0] == (1.0, 4, 0.1, 200)
    assert [one[:3] for one in begun[1:]] == [(1.0, 4, 0.2), (1.0, 2, 0.2), (1.0, 6, 0.2), (2.0, 4, 0.2)]
    assert all(200 < rounds < 1000 for *_, rounds in begun[1:])  # and longer ones there are not
    assert [one.step for one in fit.model.choice.tried] == [0.2] * 4
    assert fit.model.n_rounds == fit.model.choice.best.n_rounds
    assert str(fit.model.choice).count(" rounds of 0.2: ") == 4


def test_each_candidate_tells_its_own_step():
    slow, fast = falling(100, 0.1, 0.3), falling(12)
    fit, begun = run_search(lambda alpha, depth, step: slow if depth == 2 else fast)
    assert [one[:3] for one in begun] == [(1.0, 4, 0.1), (1.0, 2, 0.1), (1.0, 2, 0.2), (2.0, 2, 0.2)]
    assert [(one.max_depth, one.step) for one in fit.model.choice.tried] == [(4, 0.1), (2, 0.2), (2, 0.2)]


def test_a_given_step_and_a_given_number_of_rounds_stay():
    _, begun = run_search(lambda alpha, depth, step: falling(100), step=0.1)
    assert {step for _, _, step, _ in begun} == {0.1}
    assert len(begun) == 4
    _, begun = run_search(lambda alpha, depth, step: falling(100), n_rounds=200)
    assert {one[2:] for one in begun} == {(0.1, 200)}


def test_a_hopeless_candidate_is_given_up_after_the_rounds_of_the_best():
    ends = {4: 0.2, 2: 0.23, 6: 0.21}
    fit, begun = run_search(lambda alpha, depth, step: falling(12 if depth == 4 else 60, ends[depth]), alphas=(1.0,))
    first, second, third = fit.model.choice.tried
    for one, (*_, rounds) in zip((second, third), begun[1:], strict=True):
        assert first.n_rounds <= rounds <= first.n_rounds + search.BLOCK
        assert one.loss > candidates.HOPELESS_FACTOR * first.loss
    assert fit.model.choice.best == first


def test_a_candidate_that_is_a_little_behind_goes_on_and_may_win():
    slower = {4: falling(12, 0.25), 2: falling(30, 0.19), 6: falling(30, 0.26)}
    fit, begun = run_search(lambda alpha, depth, step: slower[depth], alphas=(1.0,))
    assert fit.model.choice.best.max_depth == 2
    assert begun[1][3] > fit.model.choice.tried[0].n_rounds + search.BLOCK


def test_somewhat_more_than_the_best_rounds_are_kept_and_loss_and_error_are_those_there():
    def curve(t):
        return 0.3 + 0.4 * abs(t - 40) / 40

    fit, begun = run_search(lambda alpha, depth, step: curve, alphas=(1.0,), depths=(4,))
    best, rounds = fit.model.choice.best, begun[0][3]
    assert rounds > 50
    assert best.n_rounds == 40 + int(candidates.KEPT_BEYOND_BEST * (rounds - 40))
    assert (best.loss, best.error) == (curve(best.n_rounds), curve(best.n_rounds))
    assert fit.model.n_rounds == best.n_rounds
    fit, _ = run_search(lambda alpha, depth, step: curve, alphas=(1.0,), depths=(4,), n_rounds=60)
    assert (fit.model.choice.best.n_rounds, fit.model.choice.best.loss) == (60, curve(60))


def test_ctrl_c_in_longer_steps_keeps_their_rounds():
    fit, begun = run_search(lambda alpha, depth, step: falling(10 / step), interrupt=(1, 40))
    assert isinstance(fit.interrupt, KeyboardInterrupt)
    assert begun == [(1.0, 4, 0.1, 200), (1.0, 4, 0.2, 40)]
    assert (fit.model.choice.best.n_rounds, fit.model.choice.best.step) == (40, 0.2)


def test_ctrl_c_at_the_beginning_of_longer_steps_keeps_the_rounds_of_the_shorter():
    try:
        fit, _ = run_search(lambda alpha, depth, step: falling(10 / step), interrupt=(1, 5))
    except KeyboardInterrupt:
        pytest.fail("nothing is left")
    assert (fit.model.choice.best.n_rounds, fit.model.choice.best.step) == (200, 0.1)


def test_progress_is_told_when_longer_steps_begin():
    heard = []
    fit, _ = run_search(lambda alpha, depth, step: falling(10 / step), callbacks=(heard.append,))
    assert {one.step for one in fit.model.choice.tried} == {0.2}
    assert all(np.isfinite([one.validation_loss, one.validation_error, one.edge]).all() for one in heard)


def waves(n=600):
    """Clean labels of a shape that takes many rounds."""
    X = np.random.default_rng(0).normal(size=(n, 6))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] * X[:, 4] > 0).astype(int)


def test_longer_steps_are_told_by_the_model(monkeypatch):
    X, y = waves()

    def fit(*learning_rates):
        monkeypatch.setattr(search, "LEARNING_RATES", learning_rates)
        return auto(alpha=1.0, noise=None, max_depth=4).fit(X, y)

    model = fit(0.1, 0.2)
    assert model.model_.step_size == model.choice_.best.step == 0.2
    assert f"{model.choice_.best.n_rounds:4d} rounds of 0.2: " in str(model.choice_)
    given = fit(0.1)
    assert given.model_.step_size == given.choice_.best.step == 0.1
    assert given.choice_.best.n_rounds > 200
    same = fit(0.2)
    np.testing.assert_array_equal(model.decision_function(X), same.decision_function(X))


def test_callbacks_follow_longer_steps():
    X, y = waves()
    heard = []
    assert auto(alpha=1.0, noise=None, max_depth=4, callbacks=[heard.append]).fit(X, y).model_.step_size == 0.2
    assert len(heard) > 15


def test_where_rows_are_many_the_first_folds_choose_and_the_best_gets_the_rest(monkeypatch):
    X, y, _ = sample(600)
    whole = auto().fit(X, y)
    monkeypatch.setattr(search, "ENOUGH_ROWS", 200)  # two folds of 120
    made = []
    wrap_boosters(monkeypatch, lambda booster, task: made.append(task.validation_weight) or booster)
    model = auto().fit(X, y)
    assert len(made) == 2 * len(model.choice_.tried) + 3
    assert model.model_.n_rounds == 5 * model.choice_.best.n_rounds
    assert model.oof_proba_.shape == (600, 2)
    np.testing.assert_array_equal(np.sum(made[:2] + made[-3:], axis=0), 1.0)  # every row is set aside once
    assert abs(model.score(X, y) - whole.score(X, y)) < 0.05


def test_ctrl_c_before_the_best_has_all_folds_keeps_those_it_has(monkeypatch):
    X, y, _ = sample(600)
    monkeypatch.setattr(search, "ENOUGH_ROWS", 200)
    made = []

    def wrap(booster, task):
        made.append(task.validation_weight)
        is_later_fold = len(made) > 2 and not any(np.array_equal(made[-1], one) for one in made[:2])
        return Interrupted(booster, 0) if is_later_fold else booster

    wrap_boosters(monkeypatch, wrap)
    model = auto()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.model_.n_rounds == 2 * model.choice_.best.n_rounds
    assert model.predict(X).shape == y.shape
    assert not hasattr(model, "oof_proba_")  # most rows were seen by all models
