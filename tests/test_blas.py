"""Matrix products have one thread while anybody fits, and as many as before when nobody does."""

import os
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from helpers.patience import PATIENCE
from helpers.quick import make_classifier
from untwist import UntwistClassifier
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


def test_the_last_of_those_that_overlap_lifts_the_limit_whoever_began():
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
            seen.append(set(list_threads()))

    for _ in range(2):
        threads = [threading.Thread(target=work) for work in (come_first, come_second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        for event in (first_is_in, second_is_in, first_is_out):
            event.clear()
        assert set(list_threads()) == {3}
    assert seen == [{1}] * 4
    with threadpool_limits(2, user_api="blas"):  # This thread has a say, whoever had one before.
        assert set(list_threads()) == {2}


def test_fits_in_several_threads_leave_the_number_as_it_was():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 3)), rng.integers(0, 3, 150)

    def fit(labels):
        UntwistClassifier(n_jobs=2, random_state=0).fit(X, labels)

    for _ in range(2):
        threads = [threading.Thread(target=fit, args=(labels,)) for labels in (y, y > 0, y, y > 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert set(list_threads()) == {3}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no processes")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_that_is_forked_inside_can_go_in_and_out():
    with use_one_blas_thread():
        child = os.fork()
        if child == 0:
            with use_one_blas_thread():
                inside = set(list_threads())
            os._exit(0 if inside == {1} else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert set(list_threads()) == {3}


def test_a_fit_leaves_the_number_as_it_was():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    seen = []
    settings = {"alpha": 2.0, "n_estimators": 2}
    make_classifier(callbacks=[lambda report: seen.append(set(list_threads()))], **settings).fit(X, y)
    assert seen
    assert set.union(*seen) == {1}
    assert set(list_threads()) == {3}
