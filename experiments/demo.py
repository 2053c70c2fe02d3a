"""Wrong labels, found and survived. ``make demo``: the audit of a table as a page to open, and a comparison.

Breast cancer data (from scikit-learn). ``untwist audit`` looks for flipped labels in a file, as it would in anybody's.
Then methods learn from 70/30 splits with more and more wrong labels, and are judged on clean test labels: the default,
which tunes itself, beside its peers and beside the paper's PILBoost of 1000 stumps.
"""

from __future__ import annotations

import argparse
import importlib.util
import shlex
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from scipy.stats import sem
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from experiments.peers import hold_out
from untwist import PILBoostClassifier, UntwistClassifier
from untwist.arguments import Array
from untwist.audit.peers import fit_xgboost
from untwist.commands import audit
from untwist.commands.main import run_program
from untwist.commands.requests import REQUESTS
from untwist.progress import ProgressLine, describe_progress
from untwist.twisters import ClassNoise

__all__ = ["audit_noisy_table", "format_table", "list_methods", "main", "measure", "measure_split", "write_noisy_table"]

NAME = "python -m experiments.demo"
#: Takes X_train, y_twisted, X_test and a seed, and gives the labels predicted for X_test.
Predict = Callable[[Any, Any, Any, int], Any]

ROUNDS = 1000
#: XGBoost stops when this many rounds have brought no gain.
PATIENCE = 10
#: The paper's a_f for each alpha.
STEP_SIZES = {1.1: 7.0, 2.0: 2.0, 4.0: 1.0}
#: The share of wrong labels in the table that is audited, and those that the methods are compared at.
AUDITED_RATE = 0.2
RATES = (0.0, 0.2, 0.3)
#: The columns of the noisy table that hold its labels, and what they were before some were flipped.
LABEL, TRUTH = "diagnosis", "true diagnosis"

# ---- the audit ----


def write_noisy_table(path: Path) -> None:
    """Write the data as a CSV file whose labels are wrong in part.

    Parameters
    ----------
    path : Path
        Where the table goes.
    """
    data = load_breast_cancer(as_frame=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(data.target))  # The data come sorted in part, which is not what the demo is about.
    X, y = data.data.iloc[order], data.target.to_numpy()[order]
    _, y_twisted, _ = ClassNoise(AUDITED_RATE).twist(X.to_numpy(), y, rng)
    labels = {LABEL: data.target_names[y_twisted], TRUTH: data.target_names[y]}
    pd.concat([pd.DataFrame(labels, index=X.index), X], axis=1).to_csv(path, index=False)


def audit_noisy_table(folder: Path) -> None:
    """Look for the wrong labels of a table by the command that everybody has, and count those that it found.

    Parameters
    ----------
    folder : Path
        Where the table, its suspects and the page go.
    """
    table, suspects = folder / "demo.csv", folder / "demo-suspects.csv"
    write_noisy_table(table)
    files = ["-o", str(folder / "demo.html"), "--suspects", str(suspects)]
    arguments = [str(table), "--label", LABEL, "--drop", TRUTH, "--peers", *files]
    print(f"$ untwist audit {shlex.join(arguments)}\n", flush=True)
    audit.main(REQUESTS["audit"](arguments))
    rows, listed = pd.read_csv(table), pd.read_csv(suspects)
    print(
        f"\n{np.sum(rows[LABEL] != rows[TRUTH])} labels of this table were flipped. "
        f"Of {len(listed)} suspects, {np.sum(listed[LABEL] != listed[TRUTH])} are among them."
    )


# ---- the comparison ----


def _predict_by_pilboost(alpha: float, X: Any, y: Any, X_test: Any, seed: int) -> Any:
    step = STEP_SIZES[alpha]
    model = PILBoostClassifier(alpha, step_size=step, n_estimators=ROUNDS, max_depth=1, random_state=seed)
    return model.fit(X, y).predict(X_test)


def _predict_by_default(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    """As it comes: depth, rounds and all else are chosen from the twisted data."""
    return UntwistClassifier(n_jobs=1, random_state=seed).fit(X, y).predict(X_test)


def _predict_by_forest(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    return RandomForestClassifier(random_state=seed, n_jobs=1).fit(X, y).predict(X_test)


def _predict_by_xgboost(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    model = fit_xgboost(X, y, n_estimators=ROUNDS, max_depth=1, random_state=seed, n_jobs=1)
    return model.predict(X_test)


def _predict_by_stopped_xgboost(X: Any, y: Any, X_test: Any, seed: int) -> Any:
    """Stopped early on a fifth of the twisted training data: what a careful user does today."""
    settings: dict[str, Any] = {"n_estimators": ROUNDS, "max_depth": 1, "random_state": seed, "n_jobs": 1}
    return fit_xgboost(*hold_out(X, y, seed), patience=PATIENCE, **settings).predict(X_test)


def list_methods() -> dict[str, Predict]:
    """List what is compared; XGBoost only where it is installed."""
    compared: dict[str, Predict] = {"untwist, as it comes": _predict_by_default}
    compared |= {f"PILBoost, alpha = {alpha:g}": partial(_predict_by_pilboost, alpha) for alpha in STEP_SIZES}
    compared["random forest"] = _predict_by_forest
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


def measure(runs: int) -> dict[str, Array]:
    """Measure the clean test accuracy of every method over many splits, one process per core.

    Parameters
    ----------
    runs : int
        The number of splits, the same for all methods and rates.

    Returns
    -------
    dict of arrays
        By method, a row for each of `RATES` and a column for each split.
    """
    if "XGBoost" not in list_methods():
        print("XGBoost is not installed and left out: pip install xgboost", file=sys.stderr)
    rates, seeds = np.repeat(RATES, runs).tolist(), list(range(runs)) * len(RATES)
    measured = []
    spawning = get_context("spawn")  # A forked process can hang on locks that the parent's threads held.
    with ProcessPoolExecutor(mp_context=spawning) as pool, ProgressLine() as line:
        for one in pool.map(measure_split, rates, seeds):
            measured.append(one)
            line.show(describe_progress(len(measured), len(seeds), line.seconds, "splits"))
    return {name: np.reshape([one[name] for one in measured], (len(RATES), runs)) for name in measured[0]}


def format_table(accuracy: dict[str, Array]) -> str:
    """Write the mean of each method at each rate with the half-width of a 95 % interval.

    Parameters
    ----------
    accuracy : dict of arrays
        What `measure` returns.

    Returns
    -------
    str
        A line for each method, the best at the highest rate first.
    """
    lines = [f"  {'wrong training labels':<24}" + "".join(f"{rate:<16.0%}" for rate in RATES).rstrip()]
    for name, of_rates in sorted(accuracy.items(), key=lambda item: -item[1][-1].mean()):
        cells = [f"{one.mean():.3f} ± {stdtrit(len(one) - 1, 0.975) * sem(one):.3f}" for one in of_rates]
        lines.append(f"  {name:<24}" + "   ".join(cells))
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog=NAME, description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=6, help="number of splits, at least 2 (default 6)")
    parser.add_argument("--folder", type=Path, default=Path("results"), help="where the table and the page go")
    options = parser.parse_args(arguments)
    if options.runs < 2:
        parser.error("--runs must be at least 2")
    options.folder.mkdir(parents=True, exist_ok=True)
    audit_noisy_table(options.folder)
    table = format_table(measure(options.runs))
    print("\nWho learns the truth from wrong labels? Accuracy on clean test labels,")
    print(f"mean and 95 % interval over {options.runs} splits:\n\n{table}\n")
    print(f"The page of the audit, to open in a browser: {options.folder / 'demo.html'}")


if __name__ == "__main__":
    sys.exit(run_program(NAME, main))
