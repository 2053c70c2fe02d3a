"""What a soak does over and over: each operation makes data of its own from a seed and checks what came of them.

A wrong answer is an AssertionError. Nothing is kept from one operation to the next, so that each can be done again by
itself: ``python -m reliability.soak --replay NAME SEED``.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from untwist import Growth, PILBoostClassifier, UntwistClassifier
from untwist.audit import audit_labels, read_decisions, write_decisions
from untwist.audit.issues import find_data_issues
from untwist.batches import Batches
from untwist.commands.main import main as run_command
from untwist.data.decisions import Decisions
from untwist.explain import shap_values
from untwist.export import numbers, to_code, to_xgboost
from untwist.files import dumps, load, loads, save
from untwist.report import report

__all__ = ["OPERATIONS", "Sample", "check"]

#: A child that has not ended after so many seconds never will.
SECONDS_FOR_A_CHILD = 300.0

#: A signal that was sent is heard within so many seconds.
SECONDS_TO_HEAR = 300.0

#: Ctrl-C comes within so many seconds.
SECONDS_TO_INTERRUPT = 0.2

#: Folds that the recipe judges labels by: fewer than usual, so that many fits are made.
FOLDS = 3

SETTINGS: list[dict[str, Any]] = [
    {"alpha": 2.0},
    {"alpha": 1.1, "link": "exact"},
    {"alpha": -2.0, "min_samples_leaf": 5},
    {"alpha": 4.0, "growth": Growth(subsample=0.7, max_features=0.5), "max_leaf_nodes": 6},
    {"alpha": 1.5, "link": "logit", "learning_rate": 0.3, "class_weight": "balanced"},
    {"alpha": 2.0, "growth": Growth(init="prior", extra_trees=True, l2=1.0)},
    {"alpha": 2.0, "early_stopping": True},
]


@dataclass(frozen=True)
class Sample:
    """A table with numbers, gaps and a text column, labels of which some are wrong, and weights."""

    X: pd.DataFrame
    y: np.ndarray
    weight: np.ndarray
    rng: np.random.Generator

    def draw_settings(self) -> dict[str, Any]:
        """Draw settings of a quick fit."""
        chosen = SETTINGS[int(self.rng.integers(len(SETTINGS)))]
        seed, n_jobs = int(self.rng.integers(1000)), int(self.rng.integers(1, 3))
        return {"n_estimators": 8, "max_depth": 3, "random_state": seed, "n_jobs": n_jobs} | chosen

    def make_recipe(self) -> UntwistClassifier:
        """Make a classifier that chooses by folds."""
        return UntwistClassifier(cv=FOLDS, random_state=int(self.rng.integers(1000)), n_jobs=1)


def draw_sample(rng: np.random.Generator, n_classes: int | None = None) -> Sample:
    """Draw a table of 80 to 200 rows."""
    n_rows = int(rng.integers(80, 200))
    n_classes = int(rng.integers(2, 4)) if n_classes is None else n_classes
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b", "c"])
    X = X.mask(rng.random(X.shape) < 0.05)
    X["city"] = rng.choice(["Ayr", "Bath", "Cork", "Derry"], n_rows)
    height = X["a"].fillna(0.0).to_numpy() + (X["city"] == "Bath").to_numpy()
    y = np.digitize(height, np.quantile(height, np.arange(1, n_classes) / n_classes))
    y = np.where(rng.random(n_rows) < 0.15, rng.integers(0, n_classes, n_rows), y)
    y[:n_classes] = np.arange(n_classes)
    return Sample(X, y, rng.random(n_rows) + 0.1, rng)


def check(holds: bool, what: str) -> None:
    """Raise an AssertionError where something does not hold; an assert could be switched off."""
    if not holds:
        raise AssertionError(what)


def check_same(one: Any, other: Any, what: str) -> None:
    check(np.array_equal(np.asarray(one), np.asarray(other), equal_nan=False), what)


def check_probabilities(proba: np.ndarray) -> None:
    check(bool(np.isfinite(proba).all() and (proba >= 0).all()), "probabilities are finite and not negative")
    check(bool(np.abs(proba.sum(axis=1) - 1.0).max() < 1e-9), "probabilities sum to 1")


@contextlib.contextmanager
def make_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        yield Path(name)


# ---- fits ----


def fit_in_any_order(rng: np.random.Generator) -> None:
    """Fit rows in two orders, on one thread and on two."""
    sample = draw_sample(rng)
    order = rng.permutation(len(sample.y))
    settings = sample.draw_settings()
    model = PILBoostClassifier(**settings).fit(sample.X, sample.y, sample.weight)
    settings["n_jobs"] = 3 - settings["n_jobs"]
    other = PILBoostClassifier(**settings).fit(sample.X.iloc[order], sample.y[order], sample.weight[order])
    check_probabilities(model.predict_proba(sample.X))
    check_same(other.predict_proba(sample.X), model.predict_proba(sample.X), "any order of rows gives one model")


def fit_by_folds(rng: np.random.Generator) -> None:
    """Choose by folds, twice."""
    sample = draw_sample(rng)
    recipe = sample.make_recipe()
    one, other = (clone(recipe).fit(sample.X, sample.y, sample.weight) for _ in range(2))
    check_probabilities(one.oof_proba_)
    check(dumps(one) == dumps(other), "two fits of the same rows are one model")


def go_on_from_earlier_rounds(rng: np.random.Generator) -> None:
    """Fit three rounds and five more, and all eight at once."""
    sample = draw_sample(rng)
    settings = {"alpha": 2.0, "max_depth": 3, "random_state": 0}
    model = PILBoostClassifier(n_estimators=3, warm_start=True, **settings).fit(sample.X, sample.y)
    model.set_params(n_estimators=8).fit(sample.X, sample.y)
    at_once = PILBoostClassifier(n_estimators=8, **settings).fit(sample.X, sample.y)
    check_same(model.predict_proba(sample.X), at_once.predict_proba(sample.X), "a warm start goes on where it was")


def fit_a_table_in_files(rng: np.random.Generator) -> None:
    """Fit a Parquet file in blocks, and the same table in memory."""
    sample = draw_sample(rng)
    settings = sample.draw_settings()
    with make_folder() as folder:
        sample.X.to_parquet(folder / "rows.parquet")
        in_files = PILBoostClassifier(**settings).fit(Batches(folder / "rows.parquet"), sample.y)
        check_same(
            in_files.predict_proba(Batches(folder / "rows.parquet")),
            PILBoostClassifier(**settings).fit(sample.X, sample.y).predict_proba(sample.X),
            "a table in files gives the model of the same table in memory",
        )


def refuse_what_is_wrong(rng: np.random.Generator) -> None:
    """Give arguments that must be refused: no error may hold on to rows."""
    sample = draw_sample(rng)
    lost = sample.y.astype(object)
    lost[3] = None
    model = PILBoostClassifier(**sample.draw_settings()).fit(sample.X, sample.y)
    wrong: list[Callable[[], Any]] = [
        lambda: PILBoostClassifier(alpha=0.0).fit(sample.X, sample.y),
        lambda: UntwistClassifier(noise=(0.5, 0.6)).fit(sample.X, sample.y),
        lambda: UntwistClassifier().fit(sample.X, lost),
        lambda: UntwistClassifier().fit(sample.X, sample.y[:-1]),
        lambda: model.predict(sample.X[["a", "b"]]),
        lambda: loads(dumps(model)[:-40]),
        lambda: loads(b"no model"),
    ]
    for number, call in enumerate(wrong):
        try:
            call()
        except ValueError:
            continue
        raise AssertionError(f"wrong argument {number} was taken")


# ---- saved, copied and exported models ----


def save_and_load(rng: np.random.Generator) -> None:
    """Save a model, load it, pickle it, and clone it."""
    sample = draw_sample(rng)
    model = PILBoostClassifier(**sample.draw_settings()).fit(sample.X, sample.y, sample.weight)
    expected = model.predict_proba(sample.X)
    with make_folder() as folder:
        save(model, folder / "model.untwist")
        check_same(load(folder / "model.untwist").predict_proba(sample.X), expected, "a saved model predicts the same")
    check_same(pickle.loads(pickle.dumps(model)).predict_proba(sample.X), expected, "a pickled model predicts the same")
    again = clone(model).fit(sample.X, sample.y, sample.weight)
    check_same(again.predict_proba(sample.X), expected, "a cloned model learns the same")


def export(rng: np.random.Generator) -> None:
    """Export a model as Python and to XGBoost, and explain it."""
    sample = draw_sample(rng)
    settings = sample.draw_settings() | {"alpha": 2.0, "link": "clipped"}
    model = PILBoostClassifier(**settings).fit(sample.X, sample.y)
    rows = numbers(model, sample.X)
    names: dict[str, Any] = {}
    exec(to_code(model, "python"), names)  # It is our own text.
    proba = np.array([names["predict_proba"](row) for row in rows[:20].tolist()])
    check(bool(np.abs(proba - model.predict_proba(sample.X)[:20]).max() < 1e-9), "exported Python predicts the same")
    check(len(to_xgboost(model).get_dump()) > 0, "XGBoost gets trees")
    values = shap_values(model, sample.X[:10])
    scores = np.reshape(model.decision_function(sample.X[:10]), (10, -1))
    check(bool(np.isfinite(np.asarray(values)).all()) and np.isfinite(scores).all(), "explanations are finite")


# ---- audits ----


def audit(rng: np.random.Generator) -> None:
    """Audit labels, explain one, review some, and write a page."""
    sample = draw_sample(rng)
    model = sample.make_recipe().fit(sample.X, sample.y, sample.weight)
    found = audit_labels(sample.X, sample.y, model)
    check(bool(((found.wrong >= 0) & (found.wrong <= 1)).all()), "probabilities to be wrong are probabilities")
    worst = found.ranking[:3]
    check(found.explain(int(worst[0])).row == worst[0], "the explanation is that of the row")
    page = report(found, title="soak")
    check(page == report(found, title="soak") and "</html>" in page, "the same audit gives the same page")
    given = found.given[worst].astype(str)
    decided = Decisions(worst, given, ["keep"] * 3, given, [""] * 3, found.fingerprint)
    with make_folder() as folder:
        write_decisions(folder / "decisions.csv", decided)
        check_same(found.apply(read_decisions(folder / "decisions.csv")), sample.y, "labels that are kept stay")


def audit_by_source(rng: np.random.Generator) -> None:
    """Audit the labels of three sources, and again by posteriors of another model."""
    sample = draw_sample(rng, n_classes=2)
    source = rng.choice(["x", "y", "z"], len(sample.y))
    model = sample.make_recipe().fit(sample.X, sample.y, source=source)
    found = audit_labels(sample.X, sample.y, model, source=source)
    check(len(found.sources.rate()) == 3, "every source is judged")
    other = audit_labels(y=sample.y, pred_probs=np.clip(model.oof_proba_, 0.05, 0.95))
    check(bool(((other.wrong >= 0) & (other.wrong <= 1)).all()), "probabilities to be wrong are probabilities")
    check(all(issue.kind for issue in find_data_issues(sample.X, sample.y)), "issues have a kind")


def use_commands(rng: np.random.Generator) -> None:
    """Train, predict and audit on the command line, in this process."""
    sample = draw_sample(rng, n_classes=2)
    with make_folder() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            sample.X.assign(label=sample.y).to_csv("rows.csv", index=False)
            for line in (
                "train rows.csv --label label --threads 2",
                "predict model.untwist rows.csv -o predicted.csv",
                "audit rows.csv --label label -o page.html",
                "train missing.csv --label label",
            ):
                status = run_command(line.split())
                check(status == ("missing" in line), f"untwist {line}: exit status {status}: {said.getvalue()}")
        predicted = pd.read_csv("predicted.csv")
        check(len(predicted) == len(sample.y), "every row is predicted")
        check("</html>" in Path("page.html").read_text(encoding="utf-8"), "the page is whole")


# ---- signals, threads and processes ----


def interrupt_a_fit(rng: np.random.Generator) -> None:
    """Press Ctrl-C during a fit: it leaves the rounds so far, and the next fit knows nothing of it."""
    sample = draw_sample(rng, n_classes=2)
    settings = {"alpha": 1.05, "max_depth": 2, "random_state": 0}
    model = PILBoostClassifier(n_estimators=1_000_000, **settings)
    heard = False
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(float(rng.uniform(0.0, SECONDS_TO_INTERRUPT)), os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        model.fit(sample.X, sample.y)
        timer.join()
        time.sleep(SECONDS_TO_HEAR)
    except KeyboardInterrupt:
        heard = True
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    check(heard, "a fit hears of Ctrl-C")
    if hasattr(model, "model_") and model.n_iter_ <= 100:  # More rounds would take long to make again.
        again = PILBoostClassifier(n_estimators=model.n_iter_, **settings).fit(sample.X, sample.y)
        check_same(model.predict_proba(sample.X), again.predict_proba(sample.X), "Ctrl-C leaves the rounds so far")


def use_many_threads(rng: np.random.Generator) -> None:
    """Fit and predict on many threads at once."""
    sample = draw_sample(rng)
    settings = sample.draw_settings()
    model = PILBoostClassifier(**settings).fit(sample.X, sample.y)
    expected = model.predict_proba(sample.X)

    def ask(number: int) -> np.ndarray:
        asked = model if number % 2 else PILBoostClassifier(**settings).fit(sample.X, sample.y)
        return asked.predict_proba(sample.X)

    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(ask, range(12)):
            check_same(found, expected, "threads do not disturb each other")


def fork(rng: np.random.Generator) -> None:
    """Fork after threads were used: the child fits and predicts as its parent does."""
    sample = draw_sample(rng)
    settings = sample.draw_settings() | {"n_jobs": 2}
    model = PILBoostClassifier(**settings).fit(sample.X, sample.y)
    expected = model.predict_proba(sample.X)
    child = os.fork()
    if child == 0:
        # Whatever happens, the child must not go on with what its parent does.
        with contextlib.suppress(BaseException):
            again = PILBoostClassifier(**settings).fit(sample.X, sample.y)
            is_same = all(np.array_equal(one.predict_proba(sample.X), expected) for one in (model, again))
            os._exit(0 if is_same else 2)
        os._exit(3)
    check(_wait_for(child) == 0, "a forked child fits and predicts as its parent does")
    check_same(model.predict_proba(sample.X), expected, "a parent predicts as before")


def use_processes(rng: np.random.Generator) -> None:
    """Fit in a process that multiprocessing starts by a fork."""
    sample = draw_sample(rng)
    settings = sample.draw_settings()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_fit_and_send, args=(sender, settings, sample.X, sample.y))
    process.start()
    sender.close()
    try:
        check(receiver.poll(SECONDS_FOR_A_CHILD), "a process answers")
        found = receiver.recv()
    finally:
        receiver.close()
        process.join(SECONDS_FOR_A_CHILD)
        process.kill()
        process.join()
        process.close()
    expected = PILBoostClassifier(**settings).fit(sample.X, sample.y).predict_proba(sample.X)
    check_same(found, expected, "another process makes the same model")


def _fit_and_send(sender: Any, settings: dict[str, Any], X: pd.DataFrame, y: np.ndarray) -> None:
    sender.send(PILBoostClassifier(**settings).fit(X, y).predict_proba(X))


def _wait_for(child: int) -> int:
    """Return the exit code of a child; one that never ends is killed."""
    end = time.monotonic() + SECONDS_FOR_A_CHILD
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


#: All operations by their names.
OPERATIONS: dict[str, Callable[[np.random.Generator], None]] = {
    one.__name__: one
    for one in (
        fit_in_any_order,
        fit_by_folds,
        go_on_from_earlier_rounds,
        fit_a_table_in_files,
        refuse_what_is_wrong,
        save_and_load,
        export,
        audit,
        audit_by_source,
        use_commands,
        interrupt_a_fit,
        use_many_threads,
        fork,
        use_processes,
    )
}
