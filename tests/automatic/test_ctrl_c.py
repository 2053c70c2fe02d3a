"""Ctrl-C in a fit that chooses by folds: the rounds so far are kept, and nothing long is begun any more."""

import numpy as np
import pytest

from helpers.quick import make_classifier
from helpers.small_fits import draw_sample
from untwist import UntwistClassifier, learning_noise
from untwist.automatic import recipe, search
from untwist.noise.plausibility import Plausibility

SETTINGS = {"boosted_only": True, "max_depth": 2, "random_state": 0, "n_jobs": 1}


def interrupt_at(count, function=lambda *args, **settings: None):
    """A function that hears Ctrl-C at its so-and-so-manyth call, and the list of its calls."""
    calls = []

    def call(*args, **settings):
        calls.append(None)
        if len(calls) == count:
            raise KeyboardInterrupt
        return function(*args, **settings)

    return call, calls


def draw_classes(n_classes, n=600):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, 2)) + np.column_stack([y, y % 3]), y


def fit_until_interrupted(X, y, **told):
    model = make_classifier(**SETTINGS, **told)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(X, y)
    return model, getattr(caught.value, "__notes__", [])


@pytest.mark.parametrize(("n_classes", "is_estimated"), [(2, True), (20, True), (21, False), (40, False)])
def test_noise_of_many_classes_is_not_estimated_any_more(n_classes, is_estimated):
    X, y = draw_classes(n_classes)
    model, notes = fit_until_interrupted(X, y, callbacks=[interrupt_at(1)[0]])
    assert model.model_.n_rounds >= 1
    assert (model.noise_ is not None) == is_estimated
    assert bool(notes) != is_estimated
    assert ("noise not estimated" in repr(model.model_)) != is_estimated
    if not is_estimated:
        assert "noisy the labels are was not estimated" in notes[0]
        np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba_twisted(X))


def test_the_given_noise_of_many_classes_is_undone_all_the_same():
    X, y = draw_classes(25)
    matrix = 0.8 * np.eye(25) + 0.2 / 25
    model, notes = fit_until_interrupted(X, y, noise=matrix, callbacks=[interrupt_at(1)[0]])
    np.testing.assert_allclose(model.noise_.matrix, matrix)
    assert (model.predict_proba(X) != model.predict_proba_twisted(X)).any()
    assert not notes


@pytest.mark.parametrize("step", [1, 2, 30])
def test_ctrl_c_is_heard_at_every_step_of_the_noise_estimate_and_keeps_the_rounds(step, monkeypatch):
    X, y = draw_classes(6)
    whole = make_classifier(noise=None, **SETTINGS).fit(X, y)
    evaluate, calls = interrupt_at(step, Plausibility.evaluate)
    monkeypatch.setattr(Plausibility, "evaluate", lambda self, *args: evaluate(self, *args))
    model, notes = fit_until_interrupted(X, y)
    assert len(calls) == step
    assert model.noise_ is None
    assert notes
    np.testing.assert_array_equal(model.decision_function(X), whole.decision_function(X))
    np.testing.assert_array_equal(model.oof_proba_, whole.oof_proba_)


def test_ctrl_c_while_rows_are_scored_keeps_the_rounds(monkeypatch):
    X, y = draw_sample(400)
    whole = make_classifier(noise=None, **SETTINGS).fit(X, y)
    score, calls = interrupt_at(1)
    monkeypatch.setattr(search, "score_held_out_rows", score)
    model, notes = fit_until_interrupted(X, y)
    assert len(calls) == 1
    assert notes
    np.testing.assert_array_equal(model.decision_function(X), whole.decision_function(X))
    assert model.noise_ is None
    assert not hasattr(model, "oof_proba_")


def test_noise_of_many_classes_is_not_estimated_where_ctrl_c_comes_while_families_are_mixed(monkeypatch):
    estimate, calls = interrupt_at(0)
    monkeypatch.setattr(learning_noise, "estimate_noise_of", estimate)
    monkeypatch.setattr(search, "mix_in_randomised_trees", interrupt_at(1)[0])
    X, y = draw_classes(21)
    model = UntwistClassifier(random_state=0, n_jobs=1)
    monkeypatch.setattr(search, "MOST_ROUNDS", 20)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not calls
    assert model.noise_ is None
    assert model.oof_proba_.shape == (600, 21)


def test_many_rows_are_not_scored_any_more(monkeypatch):
    score, calls = interrupt_at(0)
    monkeypatch.setattr(search, "score_held_out_rows", score)
    monkeypatch.setattr(search, "MOST_LOOKUPS_AFTER_INTERRUPT", 400)
    X, y = draw_sample(400)
    model, notes = fit_until_interrupted(X, y, callbacks=[interrupt_at(1)[0]])
    assert not calls
    assert notes
    assert model.noise_ is None
    assert np.isfinite(model.predict_proba(X)).all()


def test_sources_are_not_judged_any_more(monkeypatch):
    X, y = draw_sample(400)
    judge, calls = interrupt_at(0)
    monkeypatch.setattr(learning_noise, "estimate_noise_of_sources", judge)
    model = make_classifier(callbacks=[interrupt_at(2)[0]], **SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, source=np.arange(400) % 5)
    assert not calls
    assert not hasattr(model, "sources_")
    assert model.noise_ is not None


def test_noise_of_more_classes_than_can_show_any_is_not_estimated(monkeypatch):
    estimate, calls = interrupt_at(0, learning_noise.estimate_noise_of)
    monkeypatch.setattr(learning_noise, "estimate_noise_of", estimate)
    monkeypatch.setattr(recipe, "MOST_CLASSES", 5)
    X, y = draw_classes(6)
    assert make_classifier(**SETTINGS).fit(X, y).noise_ is None
    assert not calls
    X, y = draw_classes(5)
    assert make_classifier(**SETTINGS).fit(X, y).noise_ is not None
    assert len(calls) == 1


def test_sources_are_refused_before_the_work_where_classes_are_too_many_to_show_noise(monkeypatch):
    monkeypatch.setattr(recipe, "MOST_CLASSES", 5)
    rounds, calls = interrupt_at(0)
    model = make_classifier(callbacks=[rounds], **SETTINGS)
    X, y = draw_classes(6)
    with pytest.raises(ValueError, match=r"^source must be None with more than 5 classes, got 6: "):
        model.fit(X, y, source=np.arange(len(y)) % 4)
    assert not calls
    X, y = draw_classes(5)
    assert model.fit(X, y, source=np.arange(len(y)) % 4).sources_ is not None
