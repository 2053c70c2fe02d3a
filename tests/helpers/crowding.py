"""Work for many threads and processes at once, and ``python tests/crowding.py``, which counts the threads it takes."""

import json
import threading
import time
from pathlib import Path

import numpy as np

from untwist import PILBoostClassifier
from untwist.files import dumps, loads


def rows(n=3000, columns=12, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns)).round(2)
    y = np.clip(np.floor((X[:, 0] + rng.normal(size=n) + 2) / 4 * classes), 0, classes - 1)
    return X, y.astype(int)


JOBS = {  # small ones, large enough for threads within
    "given": ({"alpha": 2.0, "n_estimators": 6, "max_depth": 4, "subsample": 0.7}, 2),
    "exact": ({"alpha": 4.0, "n_estimators": 5, "max_depth": 3, "link": "exact"}, 2),
    "classes": ({"alpha": 1.1, "n_estimators": 4, "max_depth": 3}, 4),
    "automatic": ({"n_estimators": 20, "max_depth": 3}, 2),
}


def fitted(name, n_jobs=2):
    settings, classes = JOBS[name]
    X, y = rows(classes=classes)
    return PILBoostClassifier(**settings, n_jobs=n_jobs, random_state=0).fit(X, y)


def result(name, n_jobs=2):
    """All that a fit says, as numbers: made anew, through a file, predicted by a model that has not predicted yet."""
    model = fitted(name, n_jobs)
    X, _ = rows(classes=JOBS[name][1], seed=1)
    return loads(dumps(model)).predict_proba(X), model.decision_function(X)


def most_threads(work):
    """What `work` answers, and how many threads the process had at most meanwhile, beyond those it had before."""
    tasks, most, done = Path("/proc/self/task"), 0, threading.Event()

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
    X, y = rows(40_000)
    found = {}
    for n_jobs in (1, 2, 3):
        model = PILBoostClassifier(2.0, n_estimators=30, max_depth=5, n_jobs=n_jobs)
        automatic = PILBoostClassifier(n_estimators=20, n_jobs=n_jobs, random_state=0)
        found[n_jobs] = [
            most_threads(lambda model=model: model.fit(X, y)),
            most_threads(lambda model=model: [model.predict_proba(X) for _ in range(20)]),
            most_threads(lambda automatic=automatic: automatic.fit(X, y)),
        ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
