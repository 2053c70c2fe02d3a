"""Settings: every parameter is checked once, every "auto" is decided once, and nothing is decided later."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from helpers.quick import make_classifier, resolve
from untwist import PILBoostClassifier, UntwistClassifier
from untwist.losses import AlphaLoss, FocalLoss
from untwist.settings import ALPHAS, DEPTHS, ENGINE_SPECIFIC_DEFAULTS


def resolve_classifier(*args, seed=None, **settings):
    return resolve(make_classifier(*args, **settings).get_params(deep=False), seed=seed)


def test_the_default_leaves_alpha_depth_and_rounds_to_the_data():
    settings = resolve_classifier()
    assert settings.automatic
    assert settings.engine.name == "compiled"
    assert (settings.alphas, settings.depths, settings.n_rounds) == (ALPHAS, DEPTHS, None)
    assert (settings.growth.l2, settings.growth.subsample, settings.growth.max_features) == (1.0, 0.7, 0.7)
    assert not settings.by_edge
    assert settings.untwists_posteriors


def test_given_settings_leave_nothing_open_and_take_the_papers_steps():
    settings = resolve_classifier(2.0, n_estimators=10, max_depth=3)
    assert not settings.automatic
    assert (settings.alphas, settings.depths, settings.n_rounds) == ((2.0,), (3,), 10)
    assert (settings.growth.l2, settings.growth.subsample, settings.growth.max_features) == (0.0, 1.0, 1.0)
    assert settings.by_edge
    assert settings.choose_step(settings.make_link(2.0)) == 4.0
    assert not settings.untwists_posteriors


def test_one_open_setting_makes_the_fit_automatic_and_the_others_stay_as_given():
    settings = resolve_classifier(2.0, max_depth=3, l2=0.5)
    assert settings.automatic
    assert (settings.alphas, settings.depths, settings.n_rounds) == ((2.0,), (3,), None)
    assert (settings.growth.l2, settings.growth.subsample) == (0.5, 0.7)


@pytest.mark.parametrize("settings", [{"engine": "reference"}, {"estimator": Ridge()}, {"loss": FocalLoss(2.0)}])
def test_where_nothing_can_be_chosen_auto_is_plain(settings):
    settings = resolve_classifier(**settings)
    assert not settings.automatic
    assert settings.engine.name == "reference"
    assert (settings.alphas, settings.depths, settings.n_rounds) == ((2.0,), (3,), 100)


def test_the_alpha_loss_is_no_other_loss_but_an_alpha():
    settings = resolve_classifier(loss=AlphaLoss(3.0), n_estimators=10, max_depth=2)
    assert settings.engine.name == "compiled"
    assert (settings.alphas, settings.loss) == ((3.0,), None)


def test_a_model_of_the_alpha_loss_is_that_of_its_alpha():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int)
    by_loss = PILBoostClassifier(loss=AlphaLoss(3.0), n_estimators=10, max_depth=2, random_state=0).fit(X, y)
    by_alpha = PILBoostClassifier(alpha=3.0, n_estimators=10, max_depth=2, random_state=0).fit(X, y)
    assert by_loss.forest_ is not None
    assert by_loss.alpha_ == 3.0
    assert np.array_equal(by_loss.decision_function(X), by_alpha.decision_function(X))


def test_settings_are_frozen():
    with pytest.raises(FrozenInstanceError):
        resolve_classifier().alphas = (1.0,)


def test_a_seed_is_drawn_once_unless_an_earlier_fit_has_one():
    assert resolve_classifier(random_state=7).seed == resolve_classifier(random_state=7).seed
    assert resolve_classifier(random_state=7).seed != resolve_classifier(random_state=8).seed
    state = np.random.RandomState(0)
    before = state.get_state()[2]
    assert resolve_classifier(random_state=state, seed=5).seed == 5
    assert state.get_state()[2] == before


def test_a_fixed_candidate_leaves_nothing_open_but_is_still_boosted_by_folds():
    from untwist.model import Candidate

    fixed = resolve_classifier().narrow_to(
        Candidate(alpha=2.0, max_depth=4, step=0.2, n_rounds=30, loss=0.5, error=0.2)
    )
    assert fixed.automatic
    assert (fixed.alphas, fixed.depths, fixed.n_rounds, fixed.step) == ((2.0,), (4,), 30, 0.2)
    assert not fixed.untwists_posteriors


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": None, "noise": (0.1, 0.1)}, "alpha must be a number"),
        ({"alpha": "most"}, "alpha must be a number"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": -1.0, "noise": (0.1, 0.1)}, "negative alpha"),
        ({"noise": (0.6, 0.5)}, "sum to less than 1"),
        ({"noise": 0.1}, "noise_rates must be"),
        ({"n_estimators": 0}, "n_estimators must be an integer >= 1"),
        ({"max_depth": -1}, "max_depth must be an integer >= 1"),
        ({"max_leaf_nodes": 1}, "max_leaf_nodes must be an integer >= 2"),
        ({"min_samples_leaf": 0}, "min_samples_leaf"),
        ({"min_weight_fraction_leaf": 0.6}, "min_weight_fraction_leaf must lie in"),
        ({"l2": -1.0}, "l2"),
        ({"subsample": 0.0}, "subsample"),
        ({"max_features": 1.5}, "max_features"),
        ({"max_bins": 1}, "max_bins"),
        ({"step_size": 1.0, "learning_rate": 0.1}, "exclude each other"),
        ({"step_size": "big"}, "step_size must be a number"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"link": "linear"}, "link must be"),
        ({"loss": "log"}, "loss must be a Loss"),
        ({"loss": FocalLoss(2.0), "engine": "compiled"}, "alpha-loss only"),
        ({"engine": "gpu"}, 'engine must be "auto", "compiled", "xgboost" or "reference", got .gpu.'),
        ({"engine": "compiled", "estimator": Ridge()}, "exclude each other"),
        ({"estimator": Ridge}, "estimator must be an object with fit and predict"),
        ({"early_stopping": 1}, "early_stopping must be True or False"),
        ({"warm_start": "yes"}, "warm_start must be True or False"),
        ({"warm_start": True}, "warm_start needs alpha, n_estimators and max_depth"),
        ({"callbacks": [1]}, "callbacks must be a list of functions"),
        ({"validation_fraction": 1.0}, "validation_fraction must be below 1"),
        ({"early_stopping": 0}, "n_iter_no_change"),
        ({"verbose": -1}, "verbose"),
        ({"n_jobs": 0}, "n_jobs must be an integer other than 0"),
        ({"engine": "xgboost", "tree_method": "gpu_hist"}, "tree_method must be one of"),
        ({"engine": "xgboost", "device": "tpu"}, "device must be"),
        ({"engine": "xgboost", "tree_method": "exact", "max_depth": None}, "needs a max_depth"),
    ],
)
def test_a_bad_parameter_is_named_before_any_data_is_looked_at(settings, message):
    with pytest.raises(ValueError, match=message):
        resolve_classifier(**settings)


@pytest.mark.parametrize(
    ("engine", "setting"),
    [
        ("compiled", {"tree_method": "approx"}),
        ("compiled", {"device": "cuda"}),
        ("reference", {"l2_regularization": 1.0}),
        ("reference", {"interaction_cst": "pairwise"}),
        ("reference", {"feature_weights": [1.0, 2.0]}),
        ("reference", {"monotonic_cst": [1, 0]}),
        ("reference", {"max_bins": 16}),
        ("xgboost", {"min_samples_leaf": 5}),
    ],
)
def test_a_setting_that_plays_no_part_in_the_engine_is_refused(engine, setting):
    (name,) = setting
    with pytest.raises(ValueError, match=rf"{name}=.* needs engine=.*, got the {engine} engine"):
        resolve_classifier(engine=engine, **setting)


def test_the_defaults_of_engine_settings_are_those_of_the_classifier():
    parameters = UntwistClassifier().get_params()
    assert {name: parameters[name] for name in ENGINE_SPECIFIC_DEFAULTS} == ENGINE_SPECIFIC_DEFAULTS


def test_a_subclass_of_the_alpha_loss_is_another_loss():
    class HalfLoss(AlphaLoss):
        def partial_pos(self, u):
            return 0.5 * super().partial_pos(u)

    settings = resolve_classifier(loss=HalfLoss(2.0))
    assert settings.engine.name == "reference"
    assert isinstance(settings.loss, HalfLoss)
    with pytest.raises(ValueError, match="alpha-loss only"):
        resolve_classifier(loss=HalfLoss(2.0), engine="compiled")


def test_alpha_plays_no_part_beside_another_loss():
    assert resolve_classifier(alpha=0, loss=FocalLoss(2.0)).loss == FocalLoss(2.0)


def test_families_of_several_classes_are_mixed_where_they_are_boosted_together():
    with pytest.raises(ValueError, match="needs a finite alpha above 0 for several classes"):
        resolve_classifier(boosted_only=False, alpha=-1.0).check_classes(3)
    resolve_classifier(boosted_only=False, alpha=2.0).check_classes(3)
