"""What users of other boosters look for: logarithms, the number of classes, generators."""

import numpy as np
import pytest
from sklearn.base import clone

from helpers.small_fits import draw_sample, make_model
from untwist import UntwistClassifier
from untwist.files import dumps, loads


@pytest.mark.parametrize("classes", [2, 3])
def test_logarithms_of_posteriors_and_the_number_of_classes(classes):
    X, y = draw_sample(classes=classes)
    model = make_model().fit(X, y)
    np.testing.assert_array_equal(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    assert model.n_classes_ == classes
    assert not hasattr(make_model(), "n_classes_")


def test_a_generator_gives_a_number_to_every_fit():
    X, y = draw_sample()
    settings = {"subsample": 0.5}
    one = make_model(random_state=np.random.default_rng(5), **settings)
    same = make_model(random_state=np.random.default_rng(5), **settings)
    first = one.fit(X, y).decision_function(X)
    np.testing.assert_array_equal(first, same.fit(X, y).decision_function(X))
    assert (one.fit(X, y).decision_function(X) != first).any()  # The generator has moved on.
    copied = clone(make_model(random_state=np.random.default_rng(5), **settings))
    np.testing.assert_array_equal(copied.fit(X, y).decision_function(X), first)
    assert isinstance(copied.get_params()["random_state"], np.random.Generator)
    assert loads(dumps(one)).random_state is None
    one, same, fresh = (UntwistClassifier(noise=None, random_state=np.random.default_rng(seed)) for seed in (0, 0, 1))
    first = one.fit(X, y).decision_function(X)
    np.testing.assert_array_equal(first, same.fit(X, y).decision_function(X))
    assert (fresh.fit(X, y).decision_function(X) != first).any()
