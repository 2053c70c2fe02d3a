"""A fit that goes on from a checkpoint, in one process; test_distributed.py has more of them."""

import numpy as np
import pytest

from helpers.model_fixtures import draw_labels, draw_rows
from helpers.quick import make_classifier
from untwist import Growth, PILBoostClassifier
from untwist.checkpoints import Checkpoint, resumed
from untwist.losses import AlphaLoss


@pytest.mark.parametrize("settings", [{"alpha": 2.0}, {"loss": AlphaLoss(2.0)}], ids=["alpha", "loss"])
def test_a_fit_that_was_stopped_goes_on_to_the_same_model(tmp_path, settings):
    X = draw_rows(100)
    y = draw_labels(X, [0, 1])
    settings = settings | {"n_estimators": 8, "max_depth": 2, "random_state": 0}
    stop = [Checkpoint(tmp_path / "run.untwist", every=2), lambda progress: progress.round == 5]
    make_classifier(callbacks=stop, **settings).fit(X, y)
    again = resumed(make_classifier(**settings), tmp_path / "run.untwist")
    assert again.n_iter_ == 4
    whole = make_classifier(**settings).fit(X, y)
    np.testing.assert_array_equal(again.fit(X, y).decision_function(X), whole.decision_function(X))
    with pytest.raises(ValueError, match=r"was fitted with alpha=2.0, not 3.0: remove it"):
        resumed(make_classifier(**settings | {"loss": None, "alpha": 3.0}), tmp_path / "run.untwist")


def test_settings_of_numpy_and_sets_are_those_that_the_checkpoint_was_fitted_with(tmp_path):
    X = draw_rows(100)
    y = draw_labels(X, [0, 1])
    settings = {
        "alpha": np.float64(2.0),
        "n_estimators": 4,
        "max_depth": 2,
        "monotonic_cst": np.zeros(X.shape[1], dtype=int),
        "categorical_features": {1},
    }
    make_classifier(callbacks=[Checkpoint(tmp_path / "run.untwist", every=2)], **settings).fit(X, y)
    assert resumed(make_classifier(**settings), tmp_path / "run.untwist").n_iter_ == 4
    with pytest.raises(ValueError, match="was fitted with loss=None, not <object"):
        resumed(make_classifier(**settings | {"loss": object()}), tmp_path / "run.untwist")


@pytest.mark.parametrize(("first", "second"), [(None, Growth()), (Growth(), None)])
def test_no_growth_is_that_of_its_defaults(tmp_path, first, second):
    X = draw_rows(100)
    y = draw_labels(X, [0, 1])
    path = tmp_path / "run.untwist"
    settings = {"n_estimators": 4, "max_depth": 2, "random_state": 0}
    PILBoostClassifier(growth=first, callbacks=[Checkpoint(path, every=2)], **settings).fit(X, y)
    assert resumed(PILBoostClassifier(growth=second, **settings), path).n_iter_ == 4
    with pytest.raises(ValueError, match="was fitted with growth="):
        resumed(PILBoostClassifier(growth=Growth(l2=1.0), **settings), path)
