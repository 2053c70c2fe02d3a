"""The default fit of two classes, written out: boosted log-odds and randomised trees on folds, and their mean."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from helpers.engines import get_forest, make_booster, make_dataset
from helpers.quick import make_classifier
from helpers.small_fits import assert_same_forests, draw_sample
from untwist import UntwistClassifier, files, settings
from untwist.automatic import randomised as randomised_trees
from untwist.boosting.engines.compiled import CompiledEngine, CompiledTeam
from untwist.boosting.engines.engine import Task, TreeGrowth
from untwist.data.folds import split_into_folds
from untwist.export import to_code
from untwist.links import ClippedLink, LogitLink
from untwist.losses import AlphaLoss

X, Y = draw_sample(classes=2)
N = len(Y)


def make_mixed(**settings):
    return make_classifier(**{"random_state": 0, "n_jobs": 1, **settings})


@pytest.fixture(scope="module")
def fitted():
    return make_mixed().fit(X, Y)


def boost_fold(model, weight):
    """Return the boosted log-odds of all rows, by a fold that has these weights."""
    best = model.choice_.best
    growth = TreeGrowth(
        max_depth=best.max_depth, l2=1.0, subsample=best.drawn, max_features=best.drawn, seed=model.model_.seed
    )
    start = best.alpha * np.log(weight[Y == 1].sum() / weight[Y == 0].sum())
    booster = make_booster(
        make_dataset(X, Y),
        LogitLink(AlphaLoss(best.alpha)),
        2 * best.alpha * best.step,
        growth,
        by_edge=False,
        weight=weight,
        start=np.full(N, start),
    )
    booster.boost(best.n_rounds)
    return (start + get_forest(booster).scores(X)) / best.alpha


def randomise_fold(model, weight, fold):
    """Return the log-odds of all rows by the randomised trees of a fold that has these weights."""
    mixed = model.choice_.mixture
    task = Task(ClippedLink(AlphaLoss(1.0)), 1.0, TreeGrowth(seed=model.model_.seed), weight=weight)
    share = randomised_trees.RANDOMISED_FEATURES
    grown = CompiledEngine().grow_randomised(
        make_dataset(X, Y), task, mixed.n_trees, mixed.min_samples_leaf, share, fold * mixed.n_trees
    )
    return grown.scores(X)


def test_the_model_is_the_mean_of_both_families_on_all_folds(fitted):
    held = split_into_folds(make_dataset(X, Y).hashes(), Y.astype(np.uint32), np.ones(N), 5, fitted.model_.seed)
    mixed = fitted.choice_.mixture
    folds = [
        mixed.boosted_weight * boost_fold(fitted, 1 - one)
        + mixed.randomised_weight * randomise_fold(fitted, 1 - one, fold)
        for fold, one in enumerate(held)
    ]
    expected = np.mean(folds, axis=0)
    np.testing.assert_allclose(fitted.model_.scores(X), expected, rtol=1e-9, atol=1e-9)
    unseen = np.array([folds[fold][row] for row, fold in enumerate(held.argmax(axis=0))])
    floor = 1 / (N + 2)
    of_second = expit(unseen).clip(floor, 1 - floor)
    np.testing.assert_allclose(fitted.model_.out_of_fold.posterior[:, 1], of_second, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba_twisted(X)[:, 1], expit(expected).clip(floor, 1 - floor))
    assert mixed.loss == pytest.approx(np.logaddexp(0, -unseen * (2 * Y - 1)).mean(), rel=1e-9)
    assert fitted.model_.n_rounds == 5 * (fitted.choice_.best.n_rounds + mixed.n_trees)


def test_neither_the_order_of_the_rows_nor_threads_matter(fitted):
    order = np.random.default_rng(0).permutation(N)
    other = make_mixed(n_jobs=3).fit(X[order], Y[order])
    np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))


def test_noise_is_found_and_undone(fitted):
    np.testing.assert_array_equal(fitted.predict(X), fitted.decision_function(X) > 0)
    plain = make_mixed(noise=None).fit(X, Y)
    np.testing.assert_array_equal(plain.model_.scores(X), fitted.model_.scores(X))
    np.testing.assert_array_equal(plain.predict_proba(X), plain.predict_proba_twisted(X))


def test_files_and_exports_say_the_same(fitted):
    again = files.loads(files.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert str(again.choice_) == str(fitted.choice_)
    assert isinstance(again.model_.link, LogitLink)
    assert again.get_params() == UntwistClassifier(random_state=0, n_jobs=1).get_params()
    code = {}
    exec(to_code(fitted, "python"), code)
    np.testing.assert_allclose([code["predict_proba"](row)[1] for row in X[:20]], fitted.predict_proba(X[:20])[:, 1])


def test_families_are_mixed_by_default(fitted):
    default = make_mixed(boosted_only=False).fit(X, Y)
    np.testing.assert_array_equal(default.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize(
    "given",
    [
        {"alpha": 2.0},
        {"n_estimators": 20},
        {"max_depth": 3},
        {"interaction_cst": "no_interactions"},
        {"monotonic_cst": [1] + [0] * (X.shape[1] - 1)},
    ],
    ids=str,
)
def test_what_only_boosted_trees_can_do_is_left_to_them(given):
    default, boosted = (make_mixed(boosted_only=one, **given).fit(X, Y) for one in (False, True))
    assert default.choice_.mixture is None
    np.testing.assert_array_equal(default.predict_proba(X), boosted.predict_proba(X))


def test_several_classes_may_do_without_randomised_trees():
    X3, y3 = draw_sample(classes=3)
    assert make_mixed(boosted_only=True).fit(X3, y3).choice_.mixture is None
    assert make_mixed().fit(X3, y3).choice_.mixture is not None


@pytest.mark.parametrize(
    "weights", [{"class_weight": {0: 1.0, 1: 1e5}}, {"sample_weight": np.where(np.arange(N) == 0, 1e7, 1.0)}], ids=list
)
def test_boosting_begins_where_rows_still_weigh_something(weights):
    model = make_mixed(class_weight=weights.get("class_weight"))
    model.fit(X, Y, sample_weight=weights.get("sample_weight"))
    assert np.isfinite(model.predict_proba(X)).all()


def test_directions_that_ask_for_nothing_are_none(fitted):
    other = make_mixed(monotonic_cst=[0] * X.shape[1]).fit(X, Y)
    np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize(("given", "least"), [({"min_samples_leaf": 50}, 50), ({"min_weight_fraction_leaf": 0.4}, 0.4)])
def test_leaves_of_randomised_trees_are_no_smaller_than_asked_for(monkeypatch, given, least):
    """None of the sizes that are tried without being asked is as large."""
    monkeypatch.setattr(settings, "RECIPE_GROWTH", replace(settings.RECIPE_GROWTH, **given))
    mixed = make_mixed().fit(X, Y).choice_.mixture
    held = split_into_folds(make_dataset(X, Y).hashes(), Y.astype(np.uint32), np.ones(N), 5, 0)
    least = least if least >= 1 else int(np.floor(least * (N - held.sum(axis=1).max())))
    assert mixed.min_samples_leaf >= least


def test_larger_alphas_are_tried_as_in_the_paper(fitted):
    tried = fitted.choice_.tried
    assert {one.drawn for one in tried if one.alpha == 1} == {0.7}
    assert {(one.max_depth, one.drawn) for one in tried if one.alpha > 1} == {(3, 1.0)}


def test_folds_side_by_side_and_one_after_the_other_are_the_same(fitted, monkeypatch):
    calls = []
    boost = CompiledTeam.boost

    def note(self, boosters, *arguments):
        calls.append(len(boosters))
        return boost(self, boosters, *arguments)

    monkeypatch.setattr(CompiledTeam, "boost", note)
    together = make_mixed(n_jobs=2).fit(X, Y)
    assert set(calls) == {5}
    calls.clear()
    monkeypatch.setattr("untwist.fitting.MOST_ROWS_SIDE_BY_SIDE", 0)
    alone = make_mixed(n_jobs=2).fit(X, Y)
    assert calls == []
    np.testing.assert_array_equal(alone.model_.scores(X), fitted.model_.scores(X))
    np.testing.assert_array_equal(together.model_.scores(X), fitted.model_.scores(X))


class BrokenTeam:
    """Breaks off in its fourth call, when some of the boosters have made their rounds."""

    def __init__(self, error):
        self.error, self.n_calls = error, 0

    def boost(self, boosters, n_rounds):
        self.n_calls += 1
        if self.n_calls == 4:
            boosters = boosters[:2]
        for booster in boosters:
            booster.boost(n_rounds)
        if self.n_calls == 4:
            raise self.error


def test_an_error_in_a_team_reaches_the_caller(monkeypatch):
    team = BrokenTeam(RuntimeError("broken"))
    monkeypatch.setattr(CompiledEngine, "make_team", lambda self, n_threads: team)
    model = make_mixed(n_jobs=2)
    with pytest.raises(RuntimeError, match="broken"):
        model.fit(X, Y)
    assert team.n_calls == 4
    assert not hasattr(model, "model_")


@pytest.mark.parametrize("n_jobs", [2, 50])
def test_ctrl_c_in_a_team_keeps_the_rounds_that_all_boosters_have(monkeypatch, n_jobs):
    """Boosters that are ahead, and candidates whose turn had not come, leave nothing behind."""
    team = BrokenTeam(KeyboardInterrupt())
    monkeypatch.setattr(CompiledEngine, "make_team", lambda self, n_threads: team)
    stopped = make_mixed(n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, Y)
    assert team.n_calls == 4
    (tried,) = stopped.choice_.tried
    assert (tried.alpha, tried.max_depth) == (1.0, 4)
    assert tried.n_rounds <= 30

    def interrupt(progress):
        if progress.round == 30:
            raise KeyboardInterrupt

    alone = make_mixed(callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        alone.fit(X, Y)
    assert stopped.choice_ == alone.choice_
    assert_same_forests(stopped, alone, X)


def test_weights_count_copies_and_rows_of_weight_0_count_for_nothing():
    """Of so many rows the leaves of randomised trees are larger, by the weight of the rows."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1200, 4))
    labels = (rows[:, 0] + rng.normal(size=1200) > 0).astype(int)
    twice = make_mixed().fit(np.vstack([rows, rows]), np.r_[labels, labels])
    weighted = make_mixed().fit(rows, labels, sample_weight=np.full(1200, 2.0))
    np.testing.assert_allclose(weighted.predict_proba(rows), twice.predict_proba(rows), atol=1e-6)
    single = make_mixed().fit(rows, labels)
    others = make_mixed().fit(np.vstack([rows, rows + 1]), np.r_[labels, labels], sample_weight=np.arange(2400) < 1200)
    np.testing.assert_allclose(others.predict_proba(rows), single.predict_proba(rows), atol=1e-6)
