"""How soon does work hear of Ctrl-C? ``python tests/interrupting.py CASE MOMENT...`` prints the seconds, as JSON.

Each moment is when the signal comes, in seconds after the work began. What was at work must be of use afterwards.
"""

import json
import os
import signal
import sys
import threading
import time

import numpy as np
from sklearn.exceptions import NotFittedError

from untwist import PILBoostClassifier
from untwist.audit import audit_labels
from untwist.explain import explain

GIVEN = {"n_estimators": 10**6, "max_depth": 3, "learning_rate": 0.001, "n_jobs": 2}


def rows(n, columns=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def usable(model, X):
    """Whether a fit that was stopped left a model; if so, it must be a whole one."""
    try:
        proba = model.predict_proba(X[:100])
    except NotFittedError:
        return False
    assert np.isfinite(proba).all()
    assert model.n_iter_ >= 1
    return True


def of_fit(n, **settings):
    """A fit, and what it leaves."""
    X, y = rows(n)
    model = PILBoostClassifier(**settings, random_state=0)
    return lambda: model.fit(X, y), lambda: usable(model, X)


def of_answers(n, n_trees, ask):
    """Questions to a fitted model, which must answer as before."""
    few, y = rows(400)
    model = PILBoostClassifier(2.0, n_estimators=n_trees, max_depth=4, learning_rate=0.01, n_jobs=1).fit(few, y)
    X, expected = rows(n)[0], model.predict_proba(few)

    def same():
        np.testing.assert_array_equal(model.predict_proba(few), expected)
        return True

    return lambda: ask(model, X), same


def of_audit():
    X, y = rows(150_000, 10)
    return lambda: audit_labels(X, y), lambda: True


CASES = {  # each takes a minute and more if nobody stops it
    "fit": lambda: of_fit(20_000, alpha=1.05, **GIVEN),
    "fit, exact link": lambda: of_fit(20_000, alpha=4.0, link="exact", **GIVEN),
    "fit, automatic": lambda: of_fit(150_000, n_jobs=2),
    "fit, reference": lambda: of_fit(5_000, alpha=2.0, engine="reference", n_estimators=10**6),
    "binning": lambda: of_fit(1_500_000, alpha=1.0, **GIVEN),
    "predict": lambda: of_answers(2_000_000, 3000, PILBoostClassifier.predict_proba),
    "apply": lambda: of_answers(20_000, 3000, lambda model, X: [model.apply(X) for _ in range(200)]),
    "explain": lambda: of_answers(100_000, 500, explain),
    "audit": of_audit,
}


def main():
    work, check = CASES[sys.argv[1]]()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found = []
    for moment in map(float, sys.argv[2:]):
        sent = []

        def send(sent=sent):
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(moment, send)
        timer.start()
        try:
            work()
            raise SystemExit(f"{sys.argv[1]} was done before {moment} s were over")
        except KeyboardInterrupt:
            heard = time.perf_counter()
        timer.join()
        found.append([moment, heard - sent[0], check()])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
