"""Who survives 30 % wrong labels? ``make demo``: a table, and a page to open.

Breast cancer data (from scikit-learn), 70/30 splits, 30 % of the training labels flipped, accuracy on clean test
labels: the default, which tunes itself, beside the paper's cell of Table 2, 1000 stumps for everybody.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit
from scipy.stats import sem
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeRegressor

from experiments.peers import hold_out
from untwist.arguments import Array
from untwist.audit.peers import fit_xgboost
from untwist.boosting.algorithm import adaboost, staged_scores
from untwist.classifier import PILBoostClassifier
from untwist.commands.main import run_program
from untwist.progress import ProgressLine, describe_progress
from untwist.report.charts import draw_intervals
from untwist.report.markup import Section, write_figure, write_page, write_table
from untwist.text import for_page
from untwist.twisters import ClassNoise

__all__ = ["list_methods", "main", "measure", "measure_split", "rank", "render"]

NAME = "python -m experiments.demo"
#: Takes X_train, y_twisted, X_test and a seed, and gives the labels predicted for X_test.
Fit = Callable[[Any, Any, Any, int], Any]

ROUNDS = 1000
#: XGBoost stops when this many rounds have brought no gain.
PATIENCE = 10
#: The paper's a_f for each alpha.
STEP_SIZES = {1.1: 7.0, 2.0: 2.0, 4.0: 1.0}


def _predict_by_pilboost(alpha: float, X: Any, y: Any, X_test: Any, seed: int) -> Any:
    settings: dict[str, Any] = {"n_estimators": ROUNDS, "max_depth": 1, "init": "zero"}
    model = PILBoostClassifier(alpha, step_size=STEP_SIZES[alpha], **settings, random_state=seed)
    return model.fit(X, y).predict(X_test)


def _predict_by_default(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    """As it comes: depth, rounds and all else are chosen from the twisted data."""
    return PILBoostClassifier(n_jobs=1, random_state=seed).fit(X, y).predict(X_test)


def _predict_by_adaboost(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    rounds = adaboost(X, 2.0 * y - 1.0, DecisionTreeRegressor(max_depth=1, random_state=seed))
    *_, scores = staged_scores(((one.leverage, one.hypothesis) for one in islice(rounds, ROUNDS)), X_test)
    return (scores > 0).astype(int)


def _predict_by_xgboost(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    model = fit_xgboost(X, y, n_estimators=ROUNDS, max_depth=1, random_state=seed, n_jobs=1)
    return model.predict(X_test)


def _predict_by_stopped_xgboost(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    """Stopped early on a fifth of the twisted training data: what a careful user does today."""
    settings: dict[str, Any] = {"n_estimators": ROUNDS, "max_depth": 1, "random_state": seed, "n_jobs": 1}
    return fit_xgboost(*hold_out(X, y, seed), patience=PATIENCE, **settings).predict(X_test)


def list_methods() -> dict[str, Fit]:
    """List what is compared; XGBoost only where it is installed."""
    compared: dict[str, Fit] = {"untwist, as it comes": _predict_by_default}
    compared |= {f"PILBoost, alpha = {alpha:g}": partial(_predict_by_pilboost, alpha) for alpha in STEP_SIZES}
    compared["AdaBoost"] = _predict_by_adaboost
    if importlib.util.find_spec("xgboost"):
        compared["XGBoost"] = _predict_by_xgboost
        compared["XGBoost, stopped early"] = _predict_by_stopped_xgboost
    return compared


def measure_split(rate: float, seed: int) -> dict[str, float]:
    """Measure the clean test accuracy of every method on one split.

    Parameters
    ----------
    rate : float
        The share of training labels to flip.
    seed : int
        Of the split and of the flips.

    Returns
    -------
    dict of float
        By method.
    """
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    X_train, y_twisted, _ = ClassNoise(rate).twist(X_train, y_train, np.random.default_rng(seed))
    return {
        name: float(np.mean(predict(X_train, y_twisted, X_test, seed) == y_test))
        for name, predict in list_methods().items()
    }


def measure(rate: float, runs: int) -> dict[str, Array]:
    """Measure the clean test accuracy of every method over many splits, one process per core.

    Parameters
    ----------
    rate : float
        The share of training labels to flip.
    runs : int
        The number of splits, the same for all methods.

    Returns
    -------
    dict of arrays
        By method, one number per split.
    """
    if "XGBoost" not in list_methods():
        print("XGBoost is not installed and left out: pip install xgboost", file=sys.stderr)
    rows = []
    with ProcessPoolExecutor() as pool, ProgressLine() as line:
        for row in pool.map(partial(measure_split, rate), range(runs)):
            rows.append(row)
            line.show(describe_progress(len(rows), runs, line.seconds, "splits"))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def rank(accuracy: dict[str, Array]) -> list[tuple[str, float, float]]:
    """Rank the methods, the best first.

    Parameters
    ----------
    accuracy : dict of arrays
        What `measure` returns.

    Returns
    -------
    list of tuples
        Method, mean and half-width of a 95 % interval.
    """
    rows = [(name, float(a.mean()), float(stdtrit(len(a) - 1, 0.975) * sem(a))) for name, a in accuracy.items()]
    return sorted(rows, key=lambda row: -row[1])


def render(rows: list[tuple[str, float, float]], rate: float, runs: int) -> str:
    """Write a page that needs nothing else, with a chart and the numbers."""
    words = (
        f"<p>Breast cancer data, {rate:.0%} of the training labels flipped, {ROUNDS} stumps each (untwist as it comes "
        f"chooses for itself), accuracy on <em>clean</em> test labels; mean and 95&nbsp;% interval over {runs} splits. "
        "The chart begins at one half, a coin toss.</p>"
    )
    chart = draw_intervals(
        [(name, (mean, mean - half, mean + half)) for name, mean, half in rows],
        "Accuracy of each method: " + "; ".join(f"{name} {mean:.3f}" for name, mean, _ in rows),
        x_words="accuracy on clean test labels",
        start=0.5,
        name_width=24,
    )
    lines = [[for_page(name), f"{mean:.3f} ± {half:.3f}"] for name, mean, half in rows]
    table = write_table("Accuracy on clean test labels", ["method", "mean and interval"], lines)
    section = Section("accuracy", "Accuracy", "Accuracy", words + write_figure(chart) + table)
    return write_page("untwist demo", "Demo", f"Who survives {rate:.0%} wrong labels?", [section])


def main(arguments: list[str] | None = None) -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog=NAME, description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=0.3, help="share of training labels to flip (default .3)")
    parser.add_argument("--runs", type=int, default=10, help="number of splits, at least 2 (default 10)")
    parser.add_argument("--output", type=Path, default=Path("results/demo.html"), help="where the page goes")
    options = parser.parse_args(arguments)
    if not (0 <= options.rate <= 1 and options.runs >= 2):
        parser.error("--rate must lie in [0, 1] and --runs be at least 2")
    rows = rank(measure(options.rate, options.runs))
    print(f"Breast cancer, {options.rate:.0%} of the training labels wrong.")
    print(f"Accuracy on clean test labels, mean and 95 % interval over {options.runs} splits")
    print("(bars from .5, a coin toss, to 1):\n")
    for name, mean, half in rows:
        bar = "█" * round(40 * max(0.0, mean - 0.5) / 0.5)
        print(f"  {name:<24} {mean:.3f} ± {half:.3f}  {bar}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(render(rows, options.rate, options.runs), encoding="utf-8")
    print(f"\nReport: {options.output}")


if __name__ == "__main__":
    sys.exit(run_program(NAME, main))
