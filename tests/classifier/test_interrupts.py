"""Fits that are interrupted or fail: they leave the rounds so far, or nothing, and never a mixture."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from helpers.learners import make_paper_model
from helpers.small_fits import add_text_column, any_engine, assert_same_forests, draw_sample, make_model
from untwist.boosting.runs import BoosterRun


@any_engine
@pytest.mark.parametrize("classes", [2, 3])
def test_an_interrupt_keeps_the_rounds_so_far(settings, classes):
    def interrupt(progress):
        if progress.round == 7:
            raise KeyboardInterrupt

    X, y = draw_sample(classes=classes)
    fitted = make_model(20, callbacks=[interrupt], warm_start=True, **settings)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, y)
    assert fitted.n_iter_ == 7
    seven = make_model(7, **settings).fit(X, y)
    np.testing.assert_array_equal(fitted.decision_function(X), seven.decision_function(X))
    np.testing.assert_array_equal(fitted.predict_proba(X), seven.predict_proba(X))
    if "estimator" not in settings and settings.get("engine") != "reference":
        fitted.set_params(callbacks=None).fit(X, y)  # A warm start goes on where it was.
        assert_same_forests(fitted, make_model(20, **settings).fit(X, y), X)


def test_ctrl_c_during_a_long_fit():
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals go to the main thread")
    X, y = draw_sample(2000, noise=0.4)
    fitted = make_model(200_000, alpha=1.05, max_depth=2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for seconds in (0.25, 1.0, 4.0, 16.0):  # A busy machine may not have begun by the first of these.
            timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the signal may come as soon as the timer runs
                timer.start()
                fitted.fit(X, y)
            timer.join()
            if hasattr(fitted, "n_iter_"):
                break
    finally:
        signal.signal(signal.SIGINT, before)
    assert 1 <= fitted.n_iter_ < 200_000
    assert_same_forests(fitted, make_model(fitted.n_iter_, alpha=1.05, max_depth=2).fit(X, y), X)


class Interrupting(BaseEstimator):
    """A Ridge whose so-and-so-manyth fit is interrupted."""

    def __init__(self, fits):
        self.fits = fits

    def fit(self, X, y, sample_weight):
        self.fits.append(None)
        if len(self.fits) == self.fits.maximum:
            raise KeyboardInterrupt
        self.ridge_ = Ridge().fit(X, y, sample_weight)
        return self

    def predict(self, X):
        return self.ridge_.predict(X)


class Count(list):
    """Shared by all copies."""

    def __init__(self, maximum):
        super().__init__()
        self.maximum = maximum

    def __deepcopy__(self, memo):
        return self

    def __sklearn_clone__(self):
        return self


def test_an_interrupt_before_the_first_round_leaves_the_model_unfitted(monkeypatch):
    X, y = draw_sample()
    fitted = make_model(estimator=Interrupting(Count(1)))
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, y)
    with pytest.raises(NotFittedError):
        fitted.predict(X)

    def interrupted(self, rounds, patience):
        raise KeyboardInterrupt

    compiled = make_model()
    with monkeypatch.context() as patch:
        patch.setattr(BoosterRun, "boost", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compiled.fit(X, y)
    with pytest.raises(NotFittedError):
        compiled.decision_function(X)
    assert compiled.fit(X, y).n_iter_ == 6


@pytest.mark.parametrize("fits", [2, 3, 5])
def test_an_interrupt_between_classes_leaves_a_model_that_works(fits):
    X, y = draw_sample(classes=3)
    fitted = make_model(estimator=Interrupting(Count(fits)))
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, y, X_val=X, y_val=y)
    if fits < 4:  # There is not even one round of every class.
        with pytest.raises(NotFittedError):
            fitted.predict(X)
        return
    assert fitted.n_iter_ == (fits + 1) // 3
    scores = fitted.decision_function(X)
    assert scores.shape == (len(y), 3)
    np.testing.assert_array_equal(fitted.predict(X), scores.argmax(axis=1))
    stages = list(fitted.staged_decision_function(X))
    np.testing.assert_array_equal(stages[-1], scores)


@pytest.mark.parametrize("failure", [{"max_bins": 999}, {"callbacks": [lambda progress: 1 / 0]}], ids=["bad", "raised"])
def test_a_failed_second_fit_leaves_no_mixture(failure):
    """Either the model of the first fit or none; not its trees with the classes and columns of the second."""
    X, y = draw_sample()
    fitted = make_model().fit(X, y)
    before = fitted.predict_proba(X)
    other, labels = draw_sample(classes=3, seed=1)
    with pytest.raises((ValueError, ZeroDivisionError)):
        fitted.set_params(**failure).fit(add_text_column(other), labels)
    try:
        after = fitted.predict_proba(X)
    except NotFittedError:
        return
    np.testing.assert_array_equal(after, before)
    assert fitted.classes_.tolist() == [0, 1]


def test_a_signal_is_heard_within_a_slow_tree():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60_000, 20)), rng.integers(0, 2, 60_000)
    slow = make_paper_model(1.0, n_estimators=1000, max_depth=None, learning_rate=0.1)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    start = time.process_time()
    try:
        with pytest.raises(KeyboardInterrupt):
            slow.fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # A thousand trees would take minutes of the processor, which do not depend on what else the machine does.
    assert time.process_time() - start < 60
