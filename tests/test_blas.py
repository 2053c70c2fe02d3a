"""Matrix products have one thread while anybody fits, and as many as before when nobody does."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from helpers.patience import PATIENCE
from untwist import PILBoostClassifier
from untwist.blas import use_one_blas_thread


def list_threads():
    """The threads of each BLAS that is loaded."""
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def _three_threads():
    """A number that is neither 1 nor that of the tests, set by a thread that is gone and has no say any more."""
    before = list_threads()
    run_elsewhere(lambda: threadpool_limits(3, user_api="blas"))
    if set(list_threads()) != {3}:
        pytest.skip("this BLAS does not take three threads")
    yield
    run_elsewhere(lambda: threadpool_limits(before[0], user_api="blas"))


def run_elsewhere(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE)


def test_one_thread_inside_and_as_many_as_before_outside():
    with use_one_blas_thread():
        assert set(list_threads()) == {1}
        with use_one_blas_thread():
            assert set(list_threads()) == {1}
        assert set(list_threads()) == {1}
    assert set(list_threads()) == {3}
    with pytest.raises(RuntimeError, match="broken"), use_one_blas_thread():
        raise RuntimeError("broken")
    assert set(list_threads()) == {3}


def test_those_that_overlap_leave_the_number_as_it_was_whoever_ends_first():
    first_is_in, second_is_in, first_is_out = threading.Event(), threading.Event(), threading.Event()
    seen = []

    def come_first():
        with use_one_blas_thread():
            first_is_in.set()
            second_is_in.wait(PATIENCE)
            seen.append(set(list_threads()))
        first_is_out.set()

    def come_second():
        first_is_in.wait(PATIENCE)
        with use_one_blas_thread():
            second_is_in.set()
            first_is_out.wait(PATIENCE)

    threads = [threading.Thread(target=work) for work in (come_first, come_second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert seen == [{1}]
    assert set(list_threads()) == {3}
    with use_one_blas_thread():
        assert set(list_threads()) == {1}


def test_a_fit_leaves_the_number_as_it_was():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    seen = []
    settings = {"alpha": 2.0, "n_estimators": 2}
    PILBoostClassifier(**settings, callbacks=[lambda report: seen.append(set(list_threads()))]).fit(X, y)
    assert seen
    assert set.union(*seen) == {1}
    assert set(list_threads()) == {3}
