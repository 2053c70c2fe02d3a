"""Who survives 30 % wrong labels? ``untwist demo``: a table, and a report to open.

Breast cancer data (from scikit-learn), 70/30 splits, 30 % of the training labels flipped, accuracy on clean test
labels: the default, which tunes itself, beside the paper's cell of Table 2, 1000 stumps for everybody.
"""

from __future__ import annotations

import argparse
import html
import importlib.util
import sys
import time
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

from untwist.arguments import Array
from untwist.boosting.algorithm import adaboost, staged_scores
from untwist.classifier import PILBoostClassifier
from untwist.twisters import ClassNoise

Fit = Callable[[Any, Any, Any, int], Any]  # (X_train, y_twisted, X_test, seed) -> labels predicted for X_test

ROUNDS = 1000
STEP_SIZES = {1.1: 7.0, 2.0: 2.0, 4.0: 1.0}  # the paper's a_f for each alpha


def _pilboost(alpha: float, X: Any, y: Any, X_test: Any, seed: int) -> Any:
    model = PILBoostClassifier(alpha, step_size=STEP_SIZES[alpha], n_estimators=ROUNDS, max_depth=1, random_state=seed)
    return model.fit(X, y).predict(X_test)


def _default(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    """As it comes: depth, rounds and all else chosen from the twisted data."""
    return PILBoostClassifier(n_jobs=1, random_state=seed).fit(X, y).predict(X_test)


def _adaboost(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    rounds = adaboost(X, 2.0 * y - 1.0, DecisionTreeRegressor(max_depth=1, random_state=seed))
    *_, scores = staged_scores(((one.leverage, one.hypothesis) for one in islice(rounds, ROUNDS)), X_test)
    return (scores > 0).astype(int)


def _xgboost(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=ROUNDS, max_depth=1, random_state=seed, n_jobs=1).fit(X, y).predict(X_test)


def _xgboost_stopped(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    """Stopped early on a fifth of the twisted training data: what a careful user does today."""
    from xgboost import XGBClassifier

    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    model = XGBClassifier(n_estimators=ROUNDS, max_depth=1, early_stopping_rounds=10, random_state=seed, n_jobs=1)
    return model.fit(X_train, y_train, eval_set=[(X_val, y_val)], verbose=False).predict(X_test)


def methods() -> dict[str, Fit]:
    """What is compared; XGBoost only where it is installed."""
    compared: dict[str, Fit] = {"untwist, as it comes": _default}
    compared |= {f"PILBoost, alpha = {alpha:g}": partial(_pilboost, alpha) for alpha in STEP_SIZES}
    compared["AdaBoost"] = _adaboost
    if importlib.util.find_spec("xgboost"):
        compared["XGBoost"] = _xgboost
        compared["XGBoost, stopped early"] = _xgboost_stopped
    return compared


def one_split(rate: float, seed: int) -> dict[str, float]:
    """Clean test accuracy of every method on one split."""
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    X_train, y_twisted, _ = ClassNoise(rate).twist(X_train, y_train, np.random.default_rng(seed))
    return {name: float(np.mean(fit(X_train, y_twisted, X_test, seed) == y_test)) for name, fit in methods().items()}


def measure(rate: float, runs: int) -> dict[str, Array]:
    """Clean test accuracy of every method over `runs` splits, the same for all, one process per core."""
    if "XGBoost" not in methods():
        print('XGBoost is not installed and left out: pip install "untwist[peers]"', file=sys.stderr)
    start, rows = time.monotonic(), []
    with ProcessPoolExecutor() as pool:
        print(f"{runs} splits, {len(methods())} methods ...", end="", file=sys.stderr, flush=True)
        for row in pool.map(partial(one_split, rate), range(runs)):
            rows.append(row)
            left = (time.monotonic() - start) * (runs - len(rows)) / len(rows)
            print(f"\r{len(rows)} of {runs} splits done, about {left:.0f} s left ", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 50 + "\r", end="", file=sys.stderr)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def table(accuracy: dict[str, Array]) -> list[tuple[str, float, float]]:
    """(method, mean, half-width of a 95 % interval), best first."""
    rows = [(name, float(a.mean()), float(stdtrit(len(a) - 1, 0.975) * sem(a))) for name, a in accuracy.items()]
    return sorted(rows, key=lambda row: -row[1])


def report(rows: list[tuple[str, float, float]], rate: float, runs: int) -> str:
    """A self-contained HTML page with the table as bars."""
    bars = "".join(
        f"<tr><th scope=row>{html.escape(name)}</th><td>{mean:.3f} ± {half:.3f}</td>"
        f'<td class=bar><div style="width:{100 * max(0.0, mean - 0.5) / 0.5:.1f}%"></div></td></tr>'
        for name, mean, half in rows
    )
    return f"""<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>untwist demo</title><style>
:root{{color-scheme:light dark}}
body{{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}}
table{{border-collapse:collapse;width:100%}}th{{text-align:left;font-weight:500}}th,td{{padding:.35rem .8rem .35rem 0}}
td{{font-variant-numeric:tabular-nums;white-space:nowrap}}.bar{{width:45%}}
.bar div{{height:1rem;background:#3b7dd8;border-radius:3px}}
</style><h1>Who survives {rate:.0%} wrong labels?</h1>
<p>Breast cancer data, {rate:.0%} of the training labels flipped, {ROUNDS} stumps each (untwist as it comes chooses for
itself), accuracy on <em>clean</em> test
labels; mean and 95&nbsp;% interval over {runs} splits. Bars run from .5, a coin toss, to 1.</p>
<table>{bars}</table></html>
"""


def main(arguments: list[str] | None = None) -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog="untwist demo", description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=0.3, help="share of training labels to flip (default .3)")
    parser.add_argument("--runs", type=int, default=10, help="number of splits, at least 2 (default 10)")
    parser.add_argument("--output", type=Path, default=Path("results/demo.html"), help="where the report goes")
    options = parser.parse_args(arguments)
    if not (0 <= options.rate <= 1 and options.runs >= 2):
        parser.error("--rate must lie in [0, 1] and --runs be at least 2")
    rows = table(measure(options.rate, options.runs))
    print(f"Breast cancer, {options.rate:.0%} of the training labels wrong.")
    print(f"Accuracy on clean test labels, mean and 95 % interval over {options.runs} splits")
    print("(bars from .5, a coin toss, to 1):\n")
    for name, mean, half in rows:
        print(f"  {name:<24} {mean:.3f} ± {half:.3f}  {'█' * round(40 * max(0.0, mean - 0.5) / 0.5)}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(report(rows, options.rate, options.runs), encoding="utf-8")
    print(f"\nReport: {options.output}")


if __name__ == "__main__":
    main()
