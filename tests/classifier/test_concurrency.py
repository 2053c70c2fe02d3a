"""Many at once: threads, processes, threads in processes, more of them than cores. No deadlock and no wrong number."""

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from helpers import crowding
from helpers.crowding import JOBS, draw_rows, fit, fit_and_predict
from helpers.patience import PATIENCE
from helpers.quick import make_classifier
from untwist import PILBoostClassifier
from untwist.explain import shap_values
from untwist.files import dumps, loads


@pytest.fixture(scope="module")
def expected():
    """What one thread says by itself."""
    return {name: fit_and_predict(name, n_jobs=1) for name in JOBS}


def assert_equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_many_threads_fit_save_load_and_predict_at_once(expected):
    names = [name for _ in range(4) for name in JOBS]
    with ThreadPoolExecutor(8) as pool:
        for name, found in zip(names, pool.map(fit_and_predict, names, timeout=PATIENCE), strict=True):
            assert_equal(found, expected[name])


def test_one_model_answers_many_threads_from_its_first_question_on():
    X, _ = draw_rows(seed=1)
    content = dumps(fit("given"))
    expected = loads(content).predict_proba(X), shap_values(loads(content), X[:50])
    for _ in range(3):
        model = loads(content)  # This model has not made its trees ready yet.
        together = threading.Barrier(8)

        def ask(_, model=model, together=together):
            together.wait(PATIENCE)
            return model.predict_proba(X), shap_values(model, X[:50])

        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(ask, range(8), timeout=PATIENCE):
                assert_equal(found, expected)


@pytest.mark.slow
def test_a_fit_lets_other_threads_go_on():
    X, y = draw_rows(60_000)
    model = PILBoostClassifier(alpha=1.1, n_estimators=150, max_depth=6, n_jobs=1)
    fit = threading.Thread(target=model.fit, args=(X, y))
    turns = 0
    fit.start()
    while fit.is_alive():
        time.sleep(0.001)
        turns += 1
    # There are up to a thousand turns a second, and the fit takes longer where the machine is busy.
    assert turns > 20


def test_more_threads_than_cores_give_the_same(expected):
    for n_jobs in (3, 64):
        assert_equal(fit_and_predict("given", n_jobs=n_jobs), expected["given"])
    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(fit_and_predict, ["classes"] * 6, [16] * 6, timeout=PATIENCE):
            assert_equal(found, expected["classes"])


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.thinned(3)
def test_processes_started_in_any_way_give_the_same(method, expected):
    fit("given")  # Threads have been at work in this process.
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        for name, found in zip(JOBS, pool.map(fit_and_predict, JOBS, timeout=PATIENCE), strict=True):
            assert_equal(found, expected[name])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_other_threads_fit_does_not_hang(expected):
    stop = threading.Event()

    def keep_fitting():
        while not stop.is_set():
            fit("given")

    others = [threading.Thread(target=keep_fitting) for _ in range(2)]
    for thread in others:
        thread.start()
    try:
        for _ in range(3):
            process = multiprocessing.get_context("fork").Process(target=check_in_child, args=(expected["given"],))
            process.start()
            process.join(PATIENCE)
            assert process.exitcode == 0
    finally:
        stop.set()
        for thread in others:
            thread.join(PATIENCE)


def check_in_child(expected):
    assert_equal(fit_and_predict("given"), expected)


@pytest.mark.slow
def test_parallelism_within_parallelism_gives_the_same(expected):
    X, y = draw_rows()
    settings, _ = JOBS["given"]

    def search(n_jobs):
        model = make_classifier(**settings, n_jobs=n_jobs, random_state=0)
        found = GridSearchCV(model, {"alpha": [1.1, 2.0]}, cv=2, n_jobs=n_jobs).fit(X, y)
        return found.cv_results_["mean_test_score"], found.best_estimator_.decision_function(X)

    alone = search(1)
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend, n_jobs=2):
            assert_equal(search(2), alone)
    for found in joblib.Parallel(n_jobs=2, timeout=PATIENCE)(
        joblib.delayed(fit_and_predict)(name) for name in ["given"] * 3
    ):
        assert_equal(found, expected["given"])


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads in /proc")
@pytest.mark.slow
def test_n_jobs_is_the_number_of_threads_used():
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    tests = {"PYTHONPATH": str(Path(crowding.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", "helpers.crowding"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | one | tests,
    )
    assert done.returncode == 0, done.stderr
    for n_jobs, more in json.loads(done.stdout).items():
        assert more == [int(n_jobs) - 1] * 3  # The thread that asks is one of them.
