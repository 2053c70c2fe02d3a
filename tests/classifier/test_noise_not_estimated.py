"""Fits that estimate no noise say so."""

import pytest

from helpers.quick import QuickClassifier, make_classifier
from helpers.small_fits import draw_sample

X, Y = draw_sample(n=200)
NEITHER = "noise is neither estimated nor undone in this fit, as alpha=1 believes every label"


def test_alpha_1_alone_says_that_it_estimates_no_noise():
    with pytest.warns(UserWarning, match=NEITHER):
        model = QuickClassifier(alpha=1.0, max_depth=2, random_state=0).fit(X, Y)
    assert model.noise_ is None
    assert "noise not estimated" in repr(model.model_)
    assert "not estimated: probabilities are those that alpha implies" in model._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 1.0, "noise": None},
        {"alpha": 1.0, "noise": (0.1, 0.1)},
        {"alpha": 1.0, "n_estimators": 3},  # There are no folds that could have told.
        {"alpha": 2.0},  # This alpha is what the user says of the noise.
        {},
    ],
    ids=str,
)
def test_whoever_has_said_what_is_to_be_done_is_not_told(settings):
    """Warnings are errors here."""
    make_classifier(max_depth=2, random_state=0, **settings).fit(X, Y)
