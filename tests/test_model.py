"""FittedModel: immutable, public, and the one place where scores become posteriors."""

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from scipy.special import expit, logit

from helpers.quick import QuickClassifier, make_classifier
from helpers.sourced_rows import draw_sourced_rows
from untwist import PILBoostClassifier, UntwistClassifier
from untwist.data.near_duplicates import NOTHING_KNOWN, SOME_WRONG
from untwist.files import dumps, loads
from untwist.links import CanonicalLink, ClippedLink
from untwist.losses import AlphaLoss
from untwist.model import FittedModel
from untwist.noise.posterior import Posterior
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.noise.two_classes import TwoClassNoise
from untwist.predicting import find_model


@pytest.fixture(scope="module")
def flipped():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    return X, np.where(rng.random(400) < 0.2, 1 - y, y)


@pytest.fixture(scope="module")
def classifier(flipped):
    return UntwistClassifier(random_state=0).fit(*flipped)


def test_a_model_is_immutable_and_compares_by_identity(classifier):
    model = classifier.model_
    with pytest.raises(FrozenInstanceError):
        model.alpha = 3.0
    assert model == model
    assert model != replace(model)
    assert hash(model) == hash(model)


def test_all_fields_are_public():
    assert not [field.name for field in fields(FittedModel) if field.name.startswith("_")]


def test_attributes_of_the_classifier_are_views_of_the_model(classifier, flipped):
    X, _ = flipped
    model = classifier.model_
    assert classifier.classes_ is model.classes
    assert model.n_rounds == len(model.forests[0])
    assert classifier.choice_ is model.choice
    assert np.array_equal(classifier.predict_proba(X), model.posterior.clean(classifier.decision_function(X)))


def test_an_unfitted_classifier_has_no_attributes_and_no_model():
    unfitted = UntwistClassifier()
    for name in ("model_", "classes_", "noise_", "choice_", "oof_proba_", "n_features_in_"):
        assert not hasattr(unfitted, name)
    with pytest.raises(ValueError, match="not fitted yet"):
        find_model(unfitted)
    with pytest.raises(ValueError, match="model must be an UntwistClassifier or a PILBoostClassifier"):
        find_model("model.untwist")


def test_a_fit_that_fails_leaves_the_model_before_it(flipped):
    X, y = flipped
    model = PILBoostClassifier(alpha=2.0, n_estimators=3, max_depth=2).fit(X, y)
    before = model.model_
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    assert model.model_ is before


def test_a_pickled_model_predicts_the_same(classifier, flipped):
    X, _ = flipped
    again = pickle.loads(pickle.dumps(classifier.model_))
    assert np.array_equal(again.scores(X), classifier.model_.scores(X))


@pytest.mark.parametrize("alpha", [-2.0, 0.5, 1.0, 2.0, np.inf])
@pytest.mark.parametrize("link", [ClippedLink, CanonicalLink])
def test_the_posterior_of_two_classes_is_what_its_definition_says(alpha, link):
    link, floor = link(AlphaLoss(alpha)), 0.01
    posterior = Posterior(link, floor, np.ones(2))
    scores = np.linspace(-3.0, 3.0, 61)
    twisted = np.clip(link.inverse(scores), floor, 1.0 - floor)
    clean = np.clip(link.tilted(scores), floor, 1.0 - floor)
    assert np.allclose(posterior.twisted(scores), np.column_stack([1.0 - twisted, twisted]))
    assert np.allclose(posterior.clean(posterior.decision(scores)), np.column_stack([1.0 - clean, clean]))
    chosen = posterior.choose(posterior.decision(scores))
    decided = np.abs(clean - 0.5) > 1e-9
    assert np.array_equal(chosen[decided], (clean > 0.5)[decided])


def test_near_twins_leave_no_share_of_wrong_labels_to_tell(classifier, flipped):
    model = classifier.model_
    assert model.noise.found
    assert model.unreliable_words == ""
    assert str(model.noise) in repr(model)
    fooled = replace(model, has_twins=True)
    assert fooled.unreliable_words == SOME_WRONG
    assert SOME_WRONG in repr(fooled)
    assert replace(fooled, noise=None).unreliable_words == NOTHING_KNOWN
    told = QuickClassifier(alpha=1.1, n_estimators=3, noise=(0.1, 0.2)).fit(*flipped).model_
    assert replace(told, has_twins=True).unreliable_words == ""


def test_near_twins_leave_no_upper_limit_of_the_noise(classifier):
    noise = classifier.model_.noise
    assert classifier.noise_ is noise
    opened = replace(classifier.model_, has_twins=True).reliable_noise
    assert opened.interval_neg == (noise.interval_neg[0], 1.0)
    assert opened.interval_pos == (noise.interval_pos[0], 1.0)
    assert str(opened).count("to 100.0%)") == 2
    several = replace(estimate_of_three(), found=True)
    model = replace(classifier.model_, has_twins=True, noise=several)
    assert model.reliable_noise.interval == (0.05, 1.0)
    assert model.reliable_noise.class_intervals.tolist() == [[0.1, 1.0], [0.0, 1.0], [0.0, 1.0]]
    assert several.class_intervals[0].tolist() == [0.1, 0.3]


def estimate_of_three():
    known = SeveralClassesNoise.from_matrix([[0.8, 0.2, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    limits = np.array([[0.1, 0.3], [0.0, 0.1], [0.0, 0.1]])
    return replace(known, evidence=9.0, interval=(0.05, 0.1), class_intervals=limits)


@pytest.fixture(scope="module")
def sourced(few_components):
    X, y, source, _ = draw_sourced_rows()
    return UntwistClassifier(random_state=0).fit(X, y, source=source)


def doubt(classifier, *, found, stands_out):
    """The same classifier as if its rows had near-duplicates, with noise and sources that were found or not."""
    model = classifier.model_
    sources = replace(model.sources, stands_out=model.sources.stands_out & stands_out)
    doubted = copy.copy(classifier)
    doubted.model_ = replace(model, has_twins=True, noise=replace(model.noise, found=found), sources=sources)
    return doubted


@pytest.mark.parametrize("found", [False, True])
def test_near_twins_leave_only_the_names_of_sources_that_stand_out(sourced, found):
    whole = sourced.model_
    assert sourced.sources_ is whole.sources
    assert whole.describe_sources() == str(whole.sources)
    doubted = doubt(sourced, found=found, stands_out=True)
    for one in (doubted, loads(dumps(doubted))):
        assert str(one.sources_) == "noisier than the others (by how much cannot be told): Leipzig"
        assert one.model_.describe_sources() == str(one.sources_)
        assert one.model_.unreliable_words == SOME_WRONG
        assert (one.sources_.intervals[:, 1] == 1.0).all()
        assert (one.sources_.class_intervals[..., 1] == 1.0).all()
    untwisted = replace(doubted.model_, noise=TwoClassNoise.from_rates((0.1, 0.2)), untwists=True)
    assert untwisted.reliable_sources is untwisted.sources


def test_near_twins_among_which_nothing_was_found_leave_nothing_to_tell_of_sources(sourced, classifier):
    doubted = doubt(sourced, found=False, stands_out=False)
    for one in (doubted, loads(dumps(doubted))):
        assert (one.noise_, one.sources_) == (None, None)
        assert one.model_.unreliable_words == NOTHING_KNOWN
        assert one.model_.describe_sources() == "which of 4 are noisier than the others cannot be told either"
    some = doubt(sourced, found=True, stands_out=False)
    assert some.model_.describe_sources() == str(some.sources_) == "no source stands out among 4"
    assert classifier.model_.describe_sources() == ""
    assert not hasattr(classifier, "sources_")


def test_known_rates_untwist_the_posterior_and_class_weights_do_not_disturb_that():
    rates, shift, floor = (0.1, 0.2), 0.7, 1e-4
    link = ClippedLink(AlphaLoss(1.0))
    posterior = Posterior(link, floor, np.exp([0.0, shift]), TwoClassNoise.from_rates(rates))
    scores = np.linspace(-1.0, 1.0, 21)
    twisted = expit(logit(np.clip(link.inverse(scores), floor, 1.0 - floor)) - shift)
    clean = np.clip((twisted - rates[0]) / (1.0 - sum(rates)), 1e-9, 1.0 - 1e-9)
    expected = expit(logit(clean) + shift)
    inside = (clean > 0.01) & (clean < 0.99)
    assert inside.sum() > 10
    assert np.allclose(posterior.clean(posterior.decision(scores))[inside, 1], expected[inside], atol=2e-3)


def test_several_classes_sum_to_one_and_the_largest_is_chosen():
    posterior = Posterior(ClippedLink(AlphaLoss(2.0)), 0.001, np.ones(4))
    scores = np.random.default_rng(0).normal(size=(50, 4))
    clean = posterior.clean(posterior.decision(scores))
    assert np.allclose(clean.sum(axis=1), 1.0)
    assert np.array_equal(clean.argmax(axis=1), scores.argmax(axis=1))
    assert np.array_equal(posterior.choose(scores), scores.argmax(axis=1))


@pytest.mark.parametrize("settings", [{}, {"class_weight": {0: 1.0, 1: 3.0}}], ids=str)
def test_the_posterior_of_labels_knows_no_class_weights(flipped, settings):
    model = make_classifier(random_state=0, **settings).fit(*flipped).model_
    posterior = model.out_of_fold.posterior
    shift = np.log(model.class_weights[1] / model.class_weights[0])
    expected = expit(logit(model.out_of_fold_posterior()[:, 1]) - shift)
    np.testing.assert_allclose(posterior[:, 1], expected, rtol=1e-12)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(model.out_of_fold.parts.posterior, posterior[model.out_of_fold.parts.rows], rtol=1e-12)
    assert replace(model, out_of_fold=None).out_of_fold_posterior() is None
    unknown = replace(model, out_of_fold=model.out_of_fold.add_context(fingerprint=None))
    assert unknown.out_of_fold_posterior() is None
