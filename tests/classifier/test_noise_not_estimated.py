"""Fits that estimate no noise say so."""

from helpers.small_fits import draw_sample
from untwist import UntwistClassifier


def test_a_model_that_believes_every_label_says_that_it_estimates_no_noise():
    model = UntwistClassifier(noise=None, random_state=0).fit(*draw_sample(n=200))
    assert model.noise_ is None
    assert "noise not estimated" in repr(model.model_)
    assert "not estimated: probabilities are those of the labels as they are" in model._repr_mimebundle_()["text/html"]
