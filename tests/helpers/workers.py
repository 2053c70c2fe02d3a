"""What the tests of distributed fits share: their settings, the comparison of two models, a worker that dies."""

import os
import signal
from pathlib import Path

import numpy as np

from untwist.data.workers import find_workers

# A worker process finds `helpers.workers`, and with it `Killer`, if PYTHONPATH names this folder.
TESTS = str(Path(__file__).parents[1])
GIVEN = {"alpha": 2.0, "n_estimators": 8, "max_depth": 3, "engine": "xgboost", "n_jobs": 1, "random_state": 0}
ARRAYS = ("edge", "leverage", "offset", "feature", "left", "threshold", "missing_left", "value", "gain", "set", "codes")


def assert_same_model(one, other):
    """The same forests, link and classes, bit for bit."""
    for a, b in zip(one.model_.ensembles, other.model_.ensembles, strict=True):
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(a.forest, name), getattr(b.forest, name), err_msg=name)
        np.testing.assert_array_equal(a.losses, b.losses)
        assert a.start == b.start
    np.testing.assert_array_equal(one.classes_, other.classes_)
    assert repr(one.model_.link) == repr(other.model_.link)
    assert str(one.noise_) == str(other.noise_)
    # This is a sum of weights, which workers add up in another order.
    np.testing.assert_allclose(one.model_.n_effective_rows, other.model_.n_effective_rows, rtol=1e-14)


class Killer:
    """A callback that kills the worker of that rank after so many rounds, once if a marker file is named."""

    def __init__(self, rank, round_, marker=None):
        self.rank = rank
        self.round = round_
        self.marker = None if marker is None else str(marker)

    def __call__(self, progress):
        if progress.round != self.round or find_workers().rank != self.rank:
            return
        if self.marker is not None:
            if os.path.exists(self.marker):
                return
            open(self.marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
