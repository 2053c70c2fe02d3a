"""Work for many threads and processes at once; ``python -m helpers.crowding`` in tests/ counts the threads it takes."""

import json
import threading
import time
from pathlib import Path

import numpy as np

from helpers.quick import QuickClassifier, make_classifier
from untwist import PILBoostClassifier
from untwist.files import dumps, loads


def draw_rows(n=3000, columns=12, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns)).round(2)
    y = np.clip(np.floor((X[:, 0] + rng.normal(size=n) + 2) / 4 * classes), 0, classes - 1)
    return X, y.astype(int)


JOBS = {  # Settings and classes of fits that are small, but large enough for threads.
    "given": ({"alpha": 2.0, "n_estimators": 6, "max_depth": 4, "subsample": 0.7}, 2),
    "exact": ({"alpha": 4.0, "n_estimators": 5, "max_depth": 3, "link": "exact"}, 2),
    "classes": ({"alpha": 1.1, "n_estimators": 4, "max_depth": 3}, 4),
    "automatic": ({"n_estimators": 20, "max_depth": 3}, 2),
}


def fit(name, n_jobs=2):
    settings, classes = JOBS[name]
    X, y = draw_rows(classes=classes)
    return make_classifier(**settings, n_jobs=n_jobs, random_state=0).fit(X, y)


def fit_and_predict(name, n_jobs=2):
    """All that a fit says, as numbers: made anew, through a file, predicted by a model that has not predicted yet."""
    model = fit(name, n_jobs)
    X, _ = draw_rows(classes=JOBS[name][1], seed=1)
    return loads(dumps(model)).predict_proba(X), model.decision_function(X)


def count_threads(work, expected):
    """How many threads more than before the process has at most while it works.

    On a busy machine a look may come too late, so the work is done up to ten times until as many as expected are seen.
    """
    most = 0
    for _ in range(10):
        most = max(most, watch_threads(work))
        if most >= expected:
            break
    return most


def watch_threads(work):
    """How many threads more than before are seen while `work` is done once."""
    tasks = Path("/proc/self/task")
    most = 0
    done = threading.Event()

    def look():
        nonlocal most
        while not done.is_set():
            most = max(most, sum(1 for _ in tasks.iterdir()))
            time.sleep(0.0005)

    watcher = threading.Thread(target=look)
    before = sum(1 for _ in tasks.iterdir()) + 1
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return most - before


def main():
    X, y = draw_rows(40_000)
    found = {}
    for n_jobs in (1, 2, 3):
        model = PILBoostClassifier(alpha=2.0, n_estimators=30, max_depth=5, n_jobs=n_jobs)
        automatic = QuickClassifier(n_estimators=20, n_jobs=n_jobs, random_state=0)
        found[n_jobs] = [
            count_threads(lambda model=model: model.fit(X, y), n_jobs - 1),
            count_threads(lambda model=model: [model.predict_proba(X) for _ in range(20)], n_jobs - 1),
            count_threads(lambda automatic=automatic: automatic.fit(X, y), n_jobs - 1),
        ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
