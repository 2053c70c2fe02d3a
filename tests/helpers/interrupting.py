"""How soon does work hear of Ctrl-C? ``python -m helpers.interrupting CASE MOMENT...`` prints it, as JSON.

Each moment is when the signal comes, in seconds after the work began. Told are the seconds of the processor from the
signal on, which do not depend on what else the machine does. What was at work must be of use afterwards.
"""

import json
import os
import signal
import sys
import threading
import time

import numpy as np
from sklearn.exceptions import NotFittedError

from helpers.quick import make_classifier
from untwist import PILBoostClassifier
from untwist.audit import audit_labels
from untwist.boosting.engines.compiled import CompiledEngine
from untwist.boosting.engines.engine import EngineOptions, Rows, Task, TreeGrowth
from untwist.explain import explain
from untwist.links import ClippedLink
from untwist.losses import AlphaLoss

GIVEN = {"n_estimators": 10**6, "max_depth": 3, "learning_rate": 0.001, "n_jobs": 2}


def draw_rows(n, columns=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def check_model(model, X):
    """Whether a fit that was stopped left a model; if so, it must be a whole one."""
    try:
        proba = model.predict_proba(X[:100])
    except NotFittedError:
        return False
    assert np.isfinite(proba).all()
    assert model.model_.n_rounds >= 1
    return True


def prepare_fit(n, **settings):
    """A fit to interrupt, and a check of what it leaves."""
    X, y = draw_rows(n)
    model = make_classifier(**settings, random_state=0)
    return lambda: model.fit(X, y), lambda: check_model(model, X)


def prepare_questions(n, n_trees, ask):
    """Questions to a fitted model, and a check that it answers as before."""
    few, y = draw_rows(400)
    model = PILBoostClassifier(alpha=2.0, n_estimators=n_trees, max_depth=4, learning_rate=0.01, n_jobs=1).fit(few, y)
    X, _ = draw_rows(n)
    expected = model.predict_proba(few)

    def check_answers():
        np.testing.assert_array_equal(model.predict_proba(few), expected)
        return True

    return lambda: ask(model, X), check_answers


def prepare_audit():
    X, y = draw_rows(150_000, 10)
    return lambda: audit_labels(X, y), lambda: True


def prepare_randomised_trees():
    X, y = draw_rows(20_000)
    engine = CompiledEngine()
    dataset = engine.make_dataset(Rows(X, y.astype(np.uint32), np.ones(len(y))), EngineOptions(n_jobs=2))
    task = Task(ClippedLink(AlphaLoss(2.0)), 1.0, TreeGrowth())
    return lambda: engine.grow_randomised(dataset, task, 10**5, 5, 0.5), lambda: True


CASES = {  # Each takes a minute and more if nobody stops it.
    "fit": lambda: prepare_fit(20_000, alpha=1.05, **GIVEN),
    "fit, exact link": lambda: prepare_fit(20_000, alpha=4.0, link="exact", **GIVEN),
    "fit, automatic": lambda: prepare_fit(150_000, n_jobs=2),
    "fit, reference": lambda: prepare_fit(5_000, alpha=2.0, engine="reference", n_estimators=10**6),
    "binning": lambda: prepare_fit(1_500_000, alpha=1.0, **GIVEN),
    "predict": lambda: prepare_questions(2_000_000, 3000, PILBoostClassifier.predict_proba),
    "apply": lambda: prepare_questions(20_000, 3000, lambda model, X: [model.apply(X) for _ in range(200)]),
    "explain": lambda: prepare_questions(100_000, 500, explain),
    "audit": prepare_audit,
    "randomised trees": prepare_randomised_trees,
}


def main():
    work, check = CASES[sys.argv[1]]()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found = []
    for moment in map(float, sys.argv[2:]):
        sent = []

        def send(sent=sent):
            sent.append(time.process_time())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(moment, send)
        try:
            timer.start()
            work()
            raise SystemExit(f"{sys.argv[1]} was done before {moment} s were over")
        except KeyboardInterrupt:
            heard = time.process_time()
        timer.join()
        found.append([moment, heard - sent[0], check()])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
