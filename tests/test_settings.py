"""Settings: every parameter is checked once, every "auto" is decided once, and nothing is decided later."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from untwist import Growth, PILBoostClassifier, UntwistClassifier
from untwist.losses import AlphaLoss, FocalLoss
from untwist.model import Candidate
from untwist.settings import (
    ALPHAS,
    DEPTHS,
    ENGINE_SPECIFIC_DEFAULTS,
    MIXED_SHARES,
    N_FOLDS,
    PATIENCE,
    RECIPE_DEFAULTS,
    choose_engine,
    choose_recipe_engine,
    resolve_paper,
    resolve_recipe,
)

#: A transition matrix of three classes.
THREE = [[0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.2, 0.1, 0.7]]


def read_paper(seed=None, **settings):
    return resolve_paper(PILBoostClassifier(**settings).get_params(deep=False), seed=seed)


def read_growth(**growth):
    return read_paper(growth=Growth(**growth))


def read_recipe(seed=None, **settings):
    return resolve_recipe(UntwistClassifier(**settings).get_params(deep=False), seed=seed)


# ---- the recipe ----


def test_the_recipe_leaves_alpha_depth_rounds_and_noise_to_the_data():
    settings = read_recipe()
    assert settings.automatic
    assert settings.engine.name == "compiled"
    assert (settings.alphas, settings.depths, settings.n_rounds) == (ALPHAS, DEPTHS, None)
    assert (settings.growth.l2, settings.growth.subsample, settings.growth.max_features) == (1.0, 0.7, 0.7)
    assert (settings.step, settings.by_edge, settings.init, settings.link_name) == (None, False, "prior", "clipped")
    assert (settings.shares, settings.mixes, settings.cv) == (MIXED_SHARES, True, N_FOLDS)
    assert (settings.patience, settings.metric, settings.loss) == (0, None, None)
    assert (settings.known_noise, settings.estimates_noise) == (None, True)
    assert settings.untwists_posteriors


def test_the_recipe_hands_on_what_the_table_or_the_engine_has_to_read():
    def stop(_):
        return True

    given = {
        "categorical_features": [0],
        "monotonic_cst": [1, 0],
        "interaction_cst": "pairwise",
    }
    others = {"class_weight": "balanced", "n_jobs": 2, "callbacks": [stop], "verbose": 3}
    settings = read_recipe(**given, **others, engine="xgboost", device="cuda:1")
    assert vars(settings.columns) == given | {"feature_weights": None}
    assert (settings.class_weight, settings.callbacks, settings.verbose) == ("balanced", (stop,), 3)
    assert (settings.engine.name, settings.engine_options.device) == ("xgboost", "cuda:1")
    assert settings.engine_options.n_jobs == 2


@pytest.mark.parametrize(
    ("noise", "known", "estimates", "untwists"),
    [
        ("auto", None, True, True),
        (None, None, False, False),
        ((0.1, 0.2), (0.1, 0.2), False, True),
        (np.array([0, 0.3]), (0.0, 0.3), False, True),
        ([[0.9, 0.1], [0.2, 0.8]], (0.1, 0.2), False, True),
    ],
)
def test_noise_is_estimated_left_alone_or_known(noise, known, estimates, untwists):
    settings = read_recipe(noise=noise)
    assert settings.known_noise == (None if known is None else pytest.approx(known))
    assert (settings.estimates_noise, settings.untwists_posteriors) == (estimates, untwists)


def test_noise_that_is_known_is_of_as_many_classes_as_there_are():
    np.testing.assert_allclose(read_recipe(noise=THREE).known_noise, THREE)
    read_recipe(noise=THREE).check_classes(3)
    read_recipe(noise=(0.1, 0.2)).check_classes(2)
    read_recipe().check_classes(3)
    for noise, n_classes in [(THREE, 2), (THREE, 4), ((0.1, 0.2), 3)]:
        with pytest.raises(ValueError, match=f"noise must be a matrix of {n_classes} rows and columns for {n_classes}"):
            read_recipe(noise=noise).check_classes(n_classes)


def test_folds_are_a_number_or_ones_own():
    assert read_recipe(cv=None).cv == 5
    assert read_recipe(cv=2).cv == 2
    assert read_recipe(cv=np.int64(7)).cv == 7
    for own in (KFold(3), [(range(5), range(5, 10))], iter([([0], [1])])):
        assert read_recipe(cv=own).cv is own


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise": (0.6, 0.5)}, "noise must be two rates that sum to less than 1, got .*swap the labels first"),
        ({"noise": (0.5, 0.5)}, "noise must be two rates that sum to less than 1"),
        ({"noise": 0.1}, 'noise must be "auto", None, two rates in .0, 1., or a transition matrix, got 0.1'),
        ({"noise": "none"}, 'noise must be "auto", None, two rates'),
        ({"noise": (0.1, 1.2)}, 'noise must be "auto", None, two rates'),
        ({"noise": (0.1, 0.1, 0.1)}, 'noise must be "auto", None, two rates'),
        ({"noise": (None, 0.1)}, 'noise must be "auto", None, two rates'),
        ({"noise": [[0.9, 0.2], [0.1, 0.9]]}, "the rows of noise must sum to 1, got 1.1 for row 0"),
        ({"noise": [[0.4, 0.6], [0.1, 0.9]]}, "noise must be invertible"),
        ({"noise": [[0.9, 0.1]]}, "noise must be square"),
        ({"noise": [[1.1, -0.1], [0.0, 1.0]]}, "noise must hold shares from 0 to 1"),
        ({"cv": 1}, "cv must be an integer >= 2, got 1"),
        ({"cv": True}, "cv must be None, a number of folds, a splitter .* got True"),
        ({"cv": "5"}, "cv must be None, a number of folds"),
        ({"cv": 2.5}, "cv must be None, a number of folds"),
        ({"cv": {}}, "cv must be None, a number of folds"),
        ({"cv": KFold}, "cv must be None, a number of folds"),
        ({"engine": "gpu"}, "engine must be .* got .gpu."),
        ({"engine": None}, "engine must be .* got None"),
        (
            {"engine": "reference"},
            'engine must be "auto" or one of "compiled", "xgboost", which grow forests, got .reference.',
        ),
        ({"device": "cuda"}, 'device=.cuda. needs engine="xgboost", got the compiled engine'),
        ({"device": "tpu", "engine": "xgboost"}, "device must be .*got .tpu."),
        ({"callbacks": [1]}, r"callbacks must be a list of functions, got \[1\]"),
        ({"callbacks": print}, "callbacks must be a list of functions"),
        ({"n_jobs": 0}, "n_jobs must be an integer other than 0"),
        ({"n_jobs": 1.5}, "n_jobs must be an integer other than 0"),
        ({"random_state": "seven"}, "random_state must be None, a whole number .* got .seven."),
        ({"random_state": -1}, "random_state must be None, a whole number"),
        ({"verbose": -1}, "verbose must be an integer >= 0, got -1"),
        ({"verbose": "yes"}, "verbose must be an integer >= 0"),
    ],
)
def test_a_bad_parameter_of_the_recipe_is_named_before_any_data_is_looked_at(settings, message):
    with pytest.raises(ValueError, match=message):
        read_recipe(**settings)


@pytest.mark.parametrize(
    ("settings", "two", "three"),
    [
        ({}, True, True),
        ({"monotonic_cst": [0, 0]}, True, True),
        ({"monotonic_cst": {"a": 0}}, True, True),
        ({"monotonic_cst": [0, 1]}, False, True),
        ({"monotonic_cst": {"a": -1}}, False, True),
        ({"interaction_cst": "pairwise"}, False, False),
        ({"engine": "xgboost"}, False, False),
    ],
)
def test_random_thresholds_join_where_no_rule_for_columns_is_broken(settings, two, three):
    settings = read_recipe(**settings)
    assert (settings.mixes_families(2), settings.mixes_families(3)) == (two, three)


def test_several_classes_are_boosted_together_by_the_recipe_where_the_engine_can():
    assert [read_recipe().boosts_jointly(n_classes) for n_classes in (2, 3)] == [False, True]
    assert not read_recipe(engine="xgboost").boosts_jointly(3)
    assert not read_paper().boosts_jointly(3)
    assert not read_paper().mixes_families(3)


def test_a_fixed_candidate_leaves_nothing_open_but_is_still_boosted_by_folds():
    settings = read_recipe(noise=(0.1, 0.2), callbacks=[print], verbose=2)
    candidate = Candidate(alpha=2.0, max_depth=4, step=0.2, n_rounds=30, loss=0.5, error=0.2, drawn=0.7)
    fixed = settings.narrow_to(candidate)
    assert fixed.automatic
    assert (fixed.alphas, fixed.depths, fixed.n_rounds, fixed.step) == ((2.0,), (4,), 30, 0.2)
    assert fixed.shares == (0.7,)
    assert (fixed.callbacks, fixed.verbose) == ((), 0)
    assert not fixed.untwists_posteriors
    assert not read_recipe().narrow_to(candidate).untwists_posteriors


@pytest.mark.parametrize("noise", ["auto", (0.1, 0.2)])
def test_a_quick_fit_leaves_the_rounds_open_and_nothing_else(noise):
    quick = read_recipe(noise=noise).shrink_to(2.0, 3)
    assert quick.automatic
    assert (quick.alphas, quick.depths, quick.shares, quick.n_rounds) == ((2.0,), (3,), (None,), None)
    assert not quick.mixes
    assert not quick.untwists_posteriors


# ---- the paper ----


def test_the_paper_leaves_nothing_open_and_takes_its_own_steps():
    settings = read_paper()
    assert not settings.automatic
    assert settings.engine.name == "compiled"
    assert (settings.alphas, settings.depths, settings.n_rounds) == ((2.0,), (3,), 100)
    assert (settings.growth.l2, settings.growth.subsample, settings.growth.max_features) == (0.0, 1.0, 1.0)
    assert (settings.growth.min_samples_leaf, settings.growth.max_leaf_nodes) == (1, None)
    assert (settings.growth.min_weight_fraction_leaf, settings.growth.extra) == (0.0, False)
    assert (settings.step, settings.by_edge, settings.init, settings.link_name) == (None, True, "zero", "clipped")
    assert settings.choose_step(settings.make_link(2.0)) == 4.0
    assert (settings.mixes, settings.shares, settings.patience) == (False, (None,), 0)
    assert (settings.known_noise, settings.estimates_noise) == (None, False)
    assert (settings.loss, settings.metric, settings.callbacks) == (None, None, ())
    assert not settings.untwists_posteriors


def test_the_paper_hands_on_what_the_table_or_the_engine_has_to_read():
    given = {
        "categorical_features": [0],
        "monotonic_cst": [1, 0],
        "interaction_cst": "pairwise",
    }
    others = {"class_weight": "balanced", "n_jobs": 2, "verbose": 3, "eval_metric": "roc_auc", "max_bins": 16}
    settings = read_paper(**given, **others, growth=Growth(feature_weights=[1.0, 2.0]))
    assert vars(settings.columns) == given | {"feature_weights": [1.0, 2.0]}
    assert (settings.class_weight, settings.verbose) == ("balanced", 3)
    assert settings.metric.name == "roc_auc"
    assert settings.engine_options.max_bins == 16
    assert settings.engine_options.n_jobs == 2
    learner = Ridge()
    assert read_paper(estimator=learner).engine_options.estimator is learner
    read_paper(warm_start=np.bool_(True))


def test_trees_grow_as_they_are_told():
    growth = read_paper(
        max_depth=5,
        max_leaf_nodes=9,
        min_samples_leaf=4,
        growth=Growth(
            l2=0.5, subsample=0.6, max_features=0.8, min_weight_fraction_leaf=0.1, extra_trees=np.bool_(True)
        ),
    ).growth
    assert (growth.max_depth, growth.max_leaf_nodes, growth.min_samples_leaf) == (5, 9, 4)
    assert (growth.l2, growth.subsample, growth.max_features) == (0.5, 0.6, 0.8)
    assert (growth.min_weight_fraction_leaf, growth.extra) == (0.1, True)
    assert read_growth(init="prior").init == "prior"
    options = read_paper(engine="xgboost", growth=Growth(tree_method="approx", device="cuda")).engine_options
    assert (options.tree_method, options.device) == ("approx", "cuda")


def test_a_depth_without_a_limit_is_that_of_the_deepest_trees():
    settings = read_paper(max_depth=None)
    assert settings.growth.max_depth is None
    assert settings.depths == (60,)


@pytest.mark.parametrize(
    ("given", "step", "by_edge"),
    [
        ({}, None, True),
        ({"step_size": 3}, 3.0, True),
        ({"learning_rate": 0.1}, 0.1, False),
    ],
)
def test_steps_are_the_papers_or_a_learning_rate(given, step, by_edge):
    settings = read_paper(**given)
    assert (settings.step, settings.by_edge) == (step, by_edge)
    assert settings.choose_step(settings.make_link(2.0)) == (4.0 if step is None else step)


@pytest.mark.parametrize(
    ("early_stopping", "patience"), [(False, 0), (np.False_, 0), (True, PATIENCE), (1, 1), (np.int64(25), 25)]
)
def test_early_stopping_is_yes_no_or_the_rounds_to_wait(early_stopping, patience):
    assert read_paper(early_stopping=early_stopping).patience == patience


def test_alpha_is_a_number_or_the_papers_estimate():
    assert read_paper(alpha=3).alphas == (3.0,)
    assert read_paper(alpha=np.inf).alphas == (np.inf,)
    menon = read_paper(alpha="menon")
    assert menon.alphas is None
    menon.check_classes(2)
    with pytest.raises(ValueError, match='alpha="menon" is for two classes'):
        menon.check_classes(3)
    read_paper(alpha=-2.0).check_classes(3)  # Each class is boosted against the rest.


def test_a_negative_alpha_turns_labels_over_and_another_loss_does_not():
    assert read_paper(alpha=-2.0).turns_labels_over
    assert not read_paper(alpha=2.0).turns_labels_over
    assert not read_paper(alpha="menon").turns_labels_over
    assert not read_paper(alpha=-2.0, loss=FocalLoss(2.0)).turns_labels_over


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": None}, 'alpha must be a number or "menon", got None'),
        ({"alpha": "most"}, 'alpha must be a number or "menon", got .most.'),
        ({"alpha": "auto"}, 'alpha must be a number or "menon", got .auto.'),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": np.nan}, "alpha"),
        ({"n_estimators": 0}, "n_estimators must be an integer >= 1, got 0"),
        ({"n_estimators": "auto"}, "n_estimators must be an integer >= 1"),
        ({"max_depth": -1}, "max_depth must be an integer >= 1, got -1"),
        ({"max_depth": "auto"}, "max_depth must be an integer >= 1"),
        ({"max_leaf_nodes": 1}, "max_leaf_nodes must be an integer >= 2"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be an integer >= 1"),
        ({"max_bins": 1}, "max_bins must be an integer"),
        ({"max_bins": 256}, "max_bins must be at most 255, got 256"),
        ({"step_size": 1.0, "learning_rate": 0.1}, "step_size and learning_rate exclude each other"),
        ({"step_size": "big"}, 'step_size must be a number > 0 or "auto", got .big.'),
        ({"step_size": None}, 'step_size must be a number > 0 or "auto", got None'),
        ({"step_size": 0.0}, "step_size must be a .*number > 0"),
        ({"learning_rate": 0.0}, "learning_rate must be a .*number > 0"),
        ({"link": "linear"}, 'link must be "clipped", "exact" or "logit", got .linear.'),
        ({"link": None}, 'link must be "clipped", "exact" or "logit"'),
        ({"link": "logit", "alpha": 0.5}, 'link="logit" needs a finite alpha from 1 on, got 0.5'),
        ({"link": "logit", "alpha": np.inf}, 'link="logit" needs a finite alpha from 1 on, got inf'),
        ({"link": "logit", "alpha": "menon"}, 'link="logit" needs a finite alpha from 1 on, got .menon.'),
        ({"link": "logit", "engine": "xgboost"}, "link='logit' is not for the xgboost engine"),
        ({"link": "logit", "loss": FocalLoss(2.0)}, 'link="logit" is for the alpha-loss, got loss='),
        ({"loss": "log"}, "loss must be a Loss, got .log."),
        ({"loss": FocalLoss(2.0), "engine": "compiled"}, "the compiled engine boosts the alpha-loss only"),
        ({"engine": "gpu"}, 'engine must be "auto", "compiled", "xgboost" or "reference", got .gpu.'),
        ({"engine": "compiled", "estimator": Ridge()}, "engine='compiled' and estimator= exclude each other"),
        ({"estimator": Ridge}, "estimator must be an object with fit and predict"),
        ({"estimator": 3}, "estimator must be an object with fit and predict, got 3"),
        ({"early_stopping": 0}, "early_stopping must be an integer >= 1, got 0"),
        ({"early_stopping": 2.0}, "early_stopping must be True, False or the number of rounds to wait .* got 2.0"),
        ({"early_stopping": "yes"}, "early_stopping must be True, False or the number of rounds"),
        ({"eval_metric": "accuraccy"}, "eval_metric.*accuraccy"),
        ({"eval_metric": 3}, "eval_metric.*3"),
        ({"warm_start": "yes"}, "warm_start must be True or False, got .yes."),
        ({"warm_start": 1}, "warm_start must be True or False, got 1"),
        ({"callbacks": [1]}, r"callbacks must be a list of functions, got \[1\]"),
        ({"callbacks": print}, "callbacks must be a list of functions"),
        ({"n_jobs": 0}, "n_jobs must be an integer other than 0"),
        ({"random_state": "seven"}, "random_state must be None, a whole number .* got .seven."),
        ({"verbose": -1}, "verbose must be an integer >= 0, got -1"),
        ({"growth": {"l2": 1.0}}, r"growth must be a Growth, such as Growth\(subsample=0.5\), got \{'l2': 1.0\}"),
    ],
)
def test_a_bad_parameter_of_the_paper_is_named_before_any_data_is_looked_at(settings, message):
    with pytest.raises(ValueError, match=message):
        read_paper(**settings)


@pytest.mark.parametrize(
    ("growth", "message"),
    [
        ({"init": "mean"}, 'init must be "prior" or "zero", got .mean.'),
        ({"init": None}, 'init must be "prior" or "zero", got None'),
        ({"l2": -1.0}, "l2 must be a .*number >= 0"),
        ({"l2": np.inf}, "l2"),
        ({"subsample": 0.0}, "subsample must be a number > 0, got 0.0"),
        ({"subsample": 1.5}, "subsample must lie in"),
        ({"max_features": 1.5}, "max_features must lie in"),
        ({"max_features": 0.0}, "max_features must be a number > 0, got 0.0"),
        ({"min_weight_fraction_leaf": 0.6}, r"min_weight_fraction_leaf must lie in \[0, 0.5\], got 0.6"),
        ({"min_weight_fraction_leaf": -0.1}, "min_weight_fraction_leaf must be a number >= 0"),
        ({"extra_trees": "yes"}, "extra_trees must be True or False, got .yes."),
        ({"extra_trees": 1}, "extra_trees must be True or False, got 1"),
    ],
)
def test_a_bad_parameter_of_the_growth_is_named(growth, message):
    with pytest.raises(ValueError, match=message):
        read_growth(**growth)


@pytest.mark.parametrize(
    ("growth", "settings", "message"),
    [
        ({"tree_method": "gpu_hist"}, {}, "tree_method must be one of"),
        ({"device": "tpu"}, {}, "device must be"),
        ({"tree_method": "exact"}, {"max_depth": None}, "needs a max_depth"),
    ],
)
def test_a_bad_parameter_of_xgboost_is_named(growth, settings, message):
    with pytest.raises(ValueError, match=message):
        read_paper(engine="xgboost", growth=Growth(**growth), **settings)


def test_the_edges_of_what_is_allowed_are_allowed():
    assert read_growth(min_weight_fraction_leaf=0.5).growth.min_weight_fraction_leaf == 0.5
    assert read_growth(min_weight_fraction_leaf=0.0, l2=0.0, subsample=1.0, max_features=1.0).growth.l2 == 0.0
    assert read_paper(max_leaf_nodes=2, max_bins=2, n_estimators=1, max_depth=1).depths == (1,)
    assert read_paper(link="logit", alpha=1.0).link_name == "logit"
    assert read_paper(link="exact", alpha=np.inf).link_name == "exact"
    assert read_recipe(noise=(0.0, 0.99)).known_noise == (0.0, 0.99)
    assert [read_recipe(verbose=verbose).verbose for verbose in (0, False, True)] == [0, 0, 1]


@pytest.mark.parametrize(
    ("engine", "setting"),
    [
        ("compiled", {"tree_method": "approx"}),
        ("reference", {"l2": 1.0}),
        ("reference", {"subsample": 0.5}),
        ("reference", {"max_features": 0.5}),
        ("reference", {"extra_trees": True}),
        ("reference", {"feature_weights": [1.0, 2.0]}),
        ("reference", {"feature_weights": np.array([1.0, 2.0])}),
        ("xgboost", {"extra_trees": True}),
    ],
)
def test_a_growth_that_plays_no_part_in_the_engine_is_refused(engine, setting):
    (name,) = setting
    with pytest.raises(ValueError, match=rf"growth=Growth\({name}=.*\) needs engine=.*, got the {engine} engine"):
        read_paper(engine=engine, growth=Growth(**setting))


@pytest.mark.parametrize(
    ("engine", "setting"),
    [
        ("reference", {"interaction_cst": "pairwise"}),
        ("reference", {"monotonic_cst": [1, 0]}),
        ("reference", {"max_bins": 16}),
        ("xgboost", {"min_samples_leaf": 5}),
    ],
)
def test_a_setting_that_plays_no_part_in_the_engine_is_refused(engine, setting):
    (name,) = setting
    with pytest.raises(ValueError, match=rf"^{name}=.* needs engine=.*, got the {engine} engine"):
        read_paper(engine=engine, **setting)


def test_a_device_that_plays_no_part_is_refused_in_the_words_of_both_classes():
    for read in (lambda: read_recipe(device="cuda"), lambda: read_growth(device="cuda")):
        with pytest.raises(ValueError, match=r'device=.cuda.\)? needs engine="xgboost", got the compiled engine'):
            read()


def test_the_defaults_of_engine_settings_are_those_of_the_classifiers():
    parameters = PILBoostClassifier().get_params() | Growth().get_params()
    assert {name: parameters[name] for name in ENGINE_SPECIFIC_DEFAULTS} == ENGINE_SPECIFIC_DEFAULTS
    of_recipe = {name: value for name, value in UntwistClassifier().get_params().items() if name in parameters}
    shared = ENGINE_SPECIFIC_DEFAULTS.keys() & of_recipe.keys()
    assert shared == {"monotonic_cst", "interaction_cst", "device"}
    assert {name: of_recipe[name] for name in shared} == {name: ENGINE_SPECIFIC_DEFAULTS[name] for name in shared}


def test_the_defaults_of_the_recipe_are_those_of_the_classifier():
    assert UntwistClassifier().get_params() == RECIPE_DEFAULTS | {"estimator": None}


def test_defaults_that_are_given_are_refused_by_no_engine():
    for engine in ("compiled", "reference", "xgboost"):
        given = {"engine": engine, "min_samples_leaf": np.int64(1), "max_bins": 255, "growth": Growth(l2=0)}
        assert read_paper(**given).engine.name == engine


# ---- which engine, which loss ----


@pytest.mark.parametrize("settings", [{"engine": "reference"}, {"estimator": Ridge()}, {"loss": FocalLoss(2.0)}])
def test_what_only_the_reference_engine_can_do_it_does(settings):
    settings = read_paper(**settings)
    assert not settings.automatic
    assert settings.engine.name == "reference"
    assert (settings.alphas, settings.depths, settings.n_rounds) == ((2.0,), (3,), 100)


def test_auto_is_the_compiled_engine_and_a_given_engine_is_that_one():
    for choose in (
        lambda name: choose_recipe_engine(name),
        lambda name: choose_engine({"engine": name, "estimator": None, "loss": None}),
    ):
        assert [choose(name).name for name in ("auto", "compiled", "xgboost")] == ["compiled", "compiled", "xgboost"]


def test_the_tables_that_are_taken_are_those_of_the_engine():
    assert read_recipe().accepted_tables.categories
    assert read_paper().accepted_tables.categories
    assert not read_paper(engine="reference").accepted_tables.categories
    assert not read_paper(estimator=Ridge()).accepted_tables.missing_values
    assert read_paper(engine="xgboost").accepted_tables.blocks
    assert not read_paper(engine="xgboost", growth=Growth(tree_method="exact")).accepted_tables.blocks


def test_the_alpha_loss_is_no_other_loss_but_an_alpha():
    settings = read_paper(loss=AlphaLoss(3.0))
    assert settings.engine.name == "compiled"
    assert (settings.alphas, settings.loss) == ((3.0,), None)
    assert settings.make_link(3.0).loss == AlphaLoss(3.0)


def test_a_model_of_the_alpha_loss_is_that_of_its_alpha():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int)
    by_loss = PILBoostClassifier(loss=AlphaLoss(3.0), n_estimators=10, max_depth=2, random_state=0).fit(X, y)
    by_alpha = PILBoostClassifier(alpha=3.0, n_estimators=10, max_depth=2, random_state=0).fit(X, y)
    assert by_loss.forest_ is not None
    assert by_loss.alpha_ == 3.0
    assert np.array_equal(by_loss.decision_function(X), by_alpha.decision_function(X))


def test_a_subclass_of_the_alpha_loss_is_another_loss():
    class HalfLoss(AlphaLoss):
        def partial_pos(self, u):
            return 0.5 * super().partial_pos(u)

    settings = read_paper(loss=HalfLoss(2.0))
    assert settings.engine.name == "reference"
    assert isinstance(settings.loss, HalfLoss)
    with pytest.raises(ValueError, match="alpha-loss only"):
        read_paper(loss=HalfLoss(2.0), engine="compiled")


def test_alpha_plays_no_part_beside_another_loss():
    settings = read_paper(alpha=0, loss=FocalLoss(2.0))
    assert settings.loss == FocalLoss(2.0)
    assert settings.make_link(0).loss == FocalLoss(2.0)


# ---- both ----


@pytest.mark.parametrize(
    ("resolve", "parameters"),
    [(resolve_paper, PILBoostClassifier().get_params(deep=False)), (resolve_recipe, RECIPE_DEFAULTS)],
)
def test_every_parameter_is_looked_at(resolve, parameters):
    """One that `resolve` forgot would have no effect. Copying all of them, as in a check, does not count."""
    looked_at = set()

    class Watched(dict):
        def __getitem__(self, name):
            looked_at.add(name)
            return super().__getitem__(name)

    resolve(Watched(parameters))
    assert looked_at == set(parameters)


@pytest.mark.parametrize("read", [read_paper, read_recipe])
def test_settings_are_frozen(read):
    with pytest.raises(FrozenInstanceError):
        read().alphas = (1.0,)


@pytest.mark.parametrize("read", [read_paper, read_recipe])
def test_a_seed_is_drawn_once_unless_an_earlier_fit_has_one(read):
    assert read(random_state=7).seed == read(random_state=7).seed
    assert read(random_state=7).seed != read(random_state=8).seed
    state = np.random.RandomState(0)
    before = state.get_state()[2]
    assert read(random_state=state, seed=5).seed == 5
    assert state.get_state()[2] == before
    generator = np.random.default_rng(3)
    expected = int(np.random.default_rng(3).integers(np.iinfo(np.int32).max))
    assert read(random_state=generator).seed == expected
    assert read(random_state=generator).seed != expected  # A generator gives every fit another number.
