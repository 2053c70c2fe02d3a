"""What each of the two classifiers is by itself: the paper and nothing else, or a recipe with few parameters."""

import inspect

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_class_weight_classifiers, parametrize_with_checks

from helpers.noisy_rows import make_noisy_rows
from helpers.small_fits import assert_same_forests, draw_sample
from untwist import Growth, PILBoostClassifier, UntwistClassifier
from untwist.boosting.algorithm import pilboost
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss

# ---- scikit-learn's own checks ----


def list_failing_checks(estimator):
    """Checks that ask for more than is promised, and why."""
    if isinstance(estimator, UntwistClassifier):
        # Where given folds hold copies of a row, the weights of families agree to seven digits, not to eight.
        names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
        return dict.fromkeys(names, "rtol=1e-7, found 1.1e-7")
    return {"check_class_weight_classifiers": "it sets min_weight_fraction_leaf, but not where Growth has it"}


@parametrize_with_checks([UntwistClassifier(), PILBoostClassifier()], expected_failed_checks=list_failing_checks)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.thinned(3)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_checks([PILBoostClassifier(engine="reference")], expected_failed_checks=list_failing_checks)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.slow
def test_scikit_learn_checks_of_the_reference_engine(estimator, check):
    check(estimator)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_class_weights_outweigh_all_else_where_leaves_hold_a_share_of_the_weight(engine):
    """The check sets this for trees of scikit-learn, and cannot for ours."""
    growth = Growth(min_weight_fraction_leaf=0.01)
    check_class_weight_classifiers("PILBoostClassifier", PILBoostClassifier(engine=engine, growth=growth))


# ---- parameters ----


def test_each_has_few_parameters():
    """A parameter more is one more thing to understand: it has to be worth changing these numbers."""
    assert len(PILBoostClassifier().get_params(deep=False)) == 24
    assert len(UntwistClassifier().get_params(deep=False)) <= 16
    assert len(Growth().get_params()) == 9


@pytest.mark.parametrize("classifier", [PILBoostClassifier, UntwistClassifier, Growth])
def test_every_parameter_is_described_in_the_order_of_the_constructor(classifier):
    words = inspect.getdoc(classifier).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    described = [line.partition(" : ")[0] for line in words.splitlines() if not line.startswith(" ")]
    assert described == [name for name in inspect.signature(classifier.__init__).parameters if name != "self"]


@pytest.mark.parametrize("name", ["alpha", "n_estimators", "max_depth", "early_stopping", "loss", "warm_start"])
def test_the_recipe_has_none_of_the_papers_settings(name):
    with pytest.raises(TypeError, match=name):
        UntwistClassifier(**{name: None})


@pytest.mark.parametrize("name", ["noise", "cv"])
def test_the_paper_has_none_of_the_recipes_settings(name):
    with pytest.raises(TypeError, match=name):
        PILBoostClassifier(**{name: None})


def test_the_paper_estimates_no_noise_unless_it_is_asked_to():
    X, y = draw_sample()
    plain = PILBoostClassifier(n_estimators=3).fit(X, y)
    assert plain.noise_ is None
    for name in ("oof_proba_", "choice_", "sources_"):
        assert not hasattr(plain, name)
    asked = PILBoostClassifier(alpha="menon", n_estimators=3).fit(X, y)
    assert 0 <= asked.noise_.rate < 0.5
    assert asked.alpha_ == asked.noise_.alpha


# ---- the paper's class is the paper's pseudo-code ----


def draw_grid():
    """Few values per column, labels by two of them, a fifth of them wrong."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 60, (400, 5)) / 4.0
    y = (X[:, 0] + X[:, 1] > 15).astype(int)
    return X, np.where(rng.random(400) < 0.2, 1 - y, y)


def round_cancer():
    """A data set of scikit-learn's, in columns of at most 255 values."""
    X, y = load_breast_cancer(return_X_y=True)
    places = np.argsort(np.argsort(X, axis=0, kind="stable"), axis=0, kind="stable")
    return places * 200 // len(X) * 1.0, y


DATA_SETS = {"noisy": lambda: make_noisy_rows(400, values=100), "grid": draw_grid, "cancer": round_cancer}

#: How many rounds these data sets take at least until a margin comes to the clip, which lies at alpha / (alpha - 1).
LEAST_ROUNDS_TO_THE_CLIP = {1.1: 100, 2.0: 2, 4.0: 2}


def invert_link(score, alpha):
    """The clipped inverse link, f(z) = sigma(logit(t(z)) / alpha), by the closed form of t."""
    c = alpha / (alpha - 1.0)
    tail = 0.5 * np.maximum(0.0, 1.0 - np.abs(score) / c) ** c
    with np.errstate(divide="ignore"):
        odds = np.log(tail) - np.log1p(-tail)
    return expit(np.sign(score) * -odds / alpha)


def boost_by_hand(X, y, alpha, *, sample_weight=None, seeds=None):
    """The paper's pseudo-code over trees of scikit-learn, line by line; yields the margins after each round."""
    sign = 2.0 * y - 1.0
    share = np.full(len(y), 1.0 / len(y)) if sample_weight is None else sample_weight / sample_weight.sum()
    a_f = 2.0 * min(alpha, alpha / (alpha - 1.0))
    margins = np.zeros(len(y))
    while True:
        weight = share * invert_link(-margins, alpha)
        tree = DecisionTreeRegressor(max_depth=3, random_state=0 if seeds is None else int(seeds.integers(2**31)))
        h = tree.fit(X, sign, sample_weight=weight).predict(X)
        margins = margins + a_f * np.sum(weight * sign * h) * sign * h
        yield margins


@pytest.mark.parametrize("alpha", [1.1, 2.0, 4.0])
@pytest.mark.parametrize("name", DATA_SETS)
def test_the_defaults_are_the_papers_pseudo_code(name, alpha):
    X, y = DATA_SETS[name]()
    model = PILBoostClassifier(alpha, engine="reference", random_state=0).fit(X, y)
    assert model.start_ == 0.0
    assert model.n_iter_ == 100
    link, sign, rows = ClippedLink(AlphaLoss(alpha)), 2.0 * y - 1.0, X.astype(np.float32)
    # Both loops draw the seeds of their trees, which break ties, as the classifier does.
    loop_seeds, hand_seeds = (np.random.default_rng([model.model_.seed, 0, 0]) for _ in range(2))
    loop = pilboost(rows, sign, DecisionTreeRegressor(max_depth=3), link, model.step_size_, rng=loop_seeds)
    by_hand = boost_by_hand(rows, y, alpha, seeds=hand_seeds)
    for edge, scores, one in zip(model.edges_, model.staged_decision_function(X), loop, strict=False):
        assert edge == pytest.approx(one.edge, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(sign * scores, one.margins, rtol=1e-9, atol=1e-9)
    n_compared = 0
    for scores, margins in zip(model.staged_decision_function(X), by_hand, strict=False):
        np.testing.assert_allclose(sign * scores, margins, rtol=1e-9, atol=1e-9)
        n_compared += 1
        if np.abs(margins).max() >= link.clip:  # There the slope of the link is infinite, and rounding counts.
            break
    assert n_compared >= LEAST_ROUNDS_TO_THE_CLIP[alpha]


@pytest.mark.parametrize("alpha", [1.1, 2.0, 4.0])
@pytest.mark.parametrize("name", DATA_SETS)
def test_the_compiled_engine_is_the_pseudo_code_until_a_margin_comes_to_the_clip(name, alpha):
    X, y = DATA_SETS[name]()
    # No two splits are equally good with these, which have few bits.
    weight = np.random.default_rng(5).integers(2**9, 2**10, len(y)) / 2**10
    model = PILBoostClassifier(alpha, random_state=0).fit(X, y, weight)
    sign, n_compared = 2.0 * y - 1.0, 0
    by_hand = boost_by_hand(X.astype(np.float32), y, alpha, sample_weight=weight)
    for scores, margins in zip(model.staged_decision_function(X), by_hand, strict=False):
        np.testing.assert_allclose(sign * scores, margins, rtol=1e-6, atol=1e-6)
        n_compared += 1
        if np.abs(margins).max() >= model.link_.clip:
            break
    assert n_compared >= LEAST_ROUNDS_TO_THE_CLIP[alpha]


# ---- growth ----


def test_growth_is_set_copied_and_shown_like_parameters_of_an_estimator():
    model = PILBoostClassifier(n_estimators=3, random_state=0)
    assert model.growth is None
    assert "growth__l2" not in model.get_params()
    model.set_params(growth__l2=1, growth__subsample=0.5)
    assert (model.growth.l2, model.growth.subsample, model.growth.init) == (1, 0.5, "zero")
    assert model.get_params()["growth__l2"] == 1
    copied = clone(model)
    assert copied.growth is not model.growth
    assert copied.get_params()["growth__subsample"] == 0.5
    copied.set_params(growth__l2=2)
    assert model.growth.l2 == 1
    assert "growth=Growth(l2=1, subsample=0.5)" in repr(model)
    X, y = draw_sample()
    given = PILBoostClassifier(n_estimators=3, random_state=0, growth=Growth(l2=1, subsample=0.5)).fit(X, y)
    assert_same_forests(model.fit(X, y), given, X)
    with pytest.raises(AssertionError):
        assert_same_forests(copied.fit(X, y), given, X)


def test_growth_that_is_given_with_one_of_its_parameters_takes_it():
    shared = Growth(subsample=0.5)
    model = PILBoostClassifier().set_params(growth=shared, growth__l2=3)
    assert model.growth is shared
    assert shared.get_params()["l2"] == 3
    model.set_params(growth=None)
    assert model.growth is None


def test_no_growth_is_the_default_growth():
    X, y = draw_sample()
    one, other = (PILBoostClassifier(n_estimators=4, random_state=0, growth=growth) for growth in (None, Growth()))
    assert_same_forests(one.fit(X, y), other.fit(X, y), X)


@pytest.mark.parametrize("growth", [None, Growth(l2=1)], ids=str)
def test_a_parameter_that_growth_has_not_is_refused(growth):
    with pytest.raises(ValueError, match="Invalid parameter 'shrinkage' for estimator Growth"):
        PILBoostClassifier(growth=growth).set_params(growth__shrinkage=1)


# ---- errors name parameters ----


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"growth": {"l2": 1}}, r"growth must be a Growth, such as Growth\(subsample=0.5\), got {'l2': 1}"),
        ({"growth": Growth(l2=-1)}, "l2 must be a number >= 0, got -1"),
        ({"growth": Growth(init="mean")}, 'init must be "prior" or "zero", got \'mean\''),
        ({"growth": Growth(extra_trees=1)}, "extra_trees must be True or False, got 1"),
        ({"growth": Growth(subsample=0)}, "subsample must"),
        ({"growth": Growth(tree_method="exact")}, r"growth=Growth\(tree_method='exact'\) needs engine=\"xgboost\""),
        ({"growth": Growth(device="cuda")}, 'device=.cuda. needs engine="xgboost", got the compiled engine'),
        (
            {"growth": Growth(max_features=0.5), "engine": "reference"},
            r"growth=Growth\(max_features=0.5\) needs engine=",
        ),
        ({"alpha": "auto"}, "alpha must be a number or \"menon\", got 'auto'"),
        ({"alpha": None}, 'alpha must be a number or "menon", got None'),
        ({"n_estimators": "auto"}, "n_estimators must be an integer >= 1, got 'auto'"),
        ({"max_depth": "auto"}, "max_depth must be an integer >= 1, got 'auto'"),
        ({"early_stopping": 2.0}, "early_stopping must be True, False or the number of rounds to wait"),
        ({"link": "logit", "alpha": 0.5}, 'link="logit" needs a finite alpha from 1 on, got 0.5'),
    ],
    ids=str,
)
def test_bad_settings_of_the_paper_are_named(settings, message):
    model = PILBoostClassifier(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(*draw_sample())
    assert model.__sklearn_tags__().estimator_type == "classifier"  # Only `fit` raises.
    with pytest.raises(NotFittedError):
        model.predict(draw_sample()[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise": "menon"}, "noise must be .* got 'menon'"),
        ({"noise": (0.6, 0.6)}, "noise must be two rates that sum to less than 1"),
        ({"cv": 1}, "cv must be an integer >= 2, got 1"),
        ({"cv": "five"}, "cv must be None, a number of folds, .* got 'five'"),
        ({"engine": "reference"}, "engine must be .* got 'reference'"),
        ({"device": "cuda"}, 'device=.cuda. needs engine="xgboost", got the compiled engine'),
        ({"verbose": -1}, "verbose must be an integer >= 0"),
        ({"callbacks": print}, "callbacks must be a list of functions"),
        ({"random_state": -1}, "random_state must be None"),
        ({"n_jobs": 0}, "n_jobs must be an integer other than 0"),
        ({"class_weight": "even"}, "class_weight"),
        ({"monotonic_cst": [2, 0, 0, 0]}, "monotonic_cst"),
        ({"categorical_features": [9]}, "categorical_features"),
        ({"interaction_cst": "all"}, "interaction_cst"),
    ],
    ids=str,
)
def test_bad_settings_of_the_recipe_are_named(settings, message):
    model = UntwistClassifier(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(*draw_sample())
    assert model.__sklearn_tags__().estimator_type == "classifier"
    with pytest.raises(NotFittedError):
        model.predict(draw_sample()[0])
