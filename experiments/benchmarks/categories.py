"""Columns of many categories, beside LightGBM and CatBoost: names that say nothing, ids that say all, and real tables.

Accuracy and log-loss on clean test rows, mean over splits; rows go to results/categories.csv. "+ names" is a table with
a further column of 100 names that are drawn at random. Each of 2,000 ids has a label of its own; some ids of the test
rows do not occur in training. Peers are chosen from several candidates on held-out rows, and fitted again to all rows.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.metrics import log_loss

from experiments.datasets import load
from experiments.peers import PEERS, search
from experiments.protocol import Split, make_rng, split
from experiments.runner import record
from experiments.tables import TextTable
from untwist import UntwistClassifier, training_data
from untwist.data import tables

COLUMNS = ["data", "twist", "seed", "method", "accuracy", "log_loss", "importance"]
REAL = ["adult", "credit_approval", "cylinder_bands"]
TWISTS = ["none", "symmetric-0.2"]
#: The column that is added to a table.
NAMES = "drawn at random"


def add_names(data: Split, seed: int) -> Split:
    """Add a column of 100 names that say nothing."""
    rng = make_rng("names", seed)

    def add(X: Any) -> Any:
        names = np.array([f"name {one}" for one in rng.integers(0, 100, len(X))], dtype=object)
        return X.assign(**{NAMES: names}).astype({NAMES: "category"})

    return data._replace(X=add(data.X), X_test=add(data.X_test))


def draw_ids(twist: str, seed: int, n_train: int) -> Split:
    """Draw rows of 2,000 ids, each with a label of its own, beside two columns of noise."""
    import pandas

    rng = make_rng("ids", twist, seed)
    label_of_id = rng.integers(0, 2, 2000)
    ids = rng.integers(0, 2000, n_train + 4000)
    noise = rng.normal(size=(len(ids), 2))
    X = pandas.DataFrame({"id": [f"id {one}" for one in ids], "x": noise[:, 0], "z": noise[:, 1]})
    X = X.astype({"id": "category"})
    y = label_of_id[ids]
    wrong = rng.random(n_train) < (0.0 if twist == "none" else float(twist.split("-")[1]))
    y_train = np.where(wrong, 1 - y[:n_train], y[:n_train])
    return Split(X[:n_train], y_train, X[n_train:], y[n_train:])


def fit_untwist(X: Any, y: Any, seed: int) -> Any:
    """Fit our default."""
    return UntwistClassifier(n_jobs=1, random_state=seed).fit(X, y)


def fit_with_sets(X: Any, y: Any, seed: int) -> Any:
    """Fit our default, with all categories split by sets: of more than 254, the most frequent ones."""
    with (
        patch.object(training_data, "MANY_CATEGORIES", tables.KNOWN_CATEGORIES),
        patch.object(tables, "LARGEST_CODE", tables.KNOWN_CATEGORIES),
    ):
        return fit_untwist(X, y, seed)


METHODS: dict[str, Callable[[Any, Any, int], Any]] = {
    "untwist": fit_untwist,
    "by sets": fit_with_sets,
    "LightGBM": lambda X, y, seed: search(PEERS["lightgbm"], X, y, seed)[0],
    "CatBoost": lambda X, y, seed: search(PEERS["catboost"], X, y, seed)[0],
}


def judge(task: tuple[str, str, int, int, str | None]) -> list[list[Any]]:
    """Fit all methods to one split and judge them on its clean test rows."""
    name, twist, seed, max_rows, folder = task
    warnings.filterwarnings("ignore")
    if name == "2,000 ids":
        data = draw_ids(twist, seed, max_rows)
    else:
        plain = name.removesuffix(" + names")
        data = split(load(plain, folder), twist, seed, max_rows)
        if plain != name:
            data = add_names(data, seed)
    rows = []
    for method, fit in METHODS.items():
        model = fit(data.X, data.y, seed)
        posterior = np.asarray(model.predict_proba(data.X_test))[:, 1].clip(1e-6, 1 - 1e-6)
        accuracy = float(np.mean((posterior > 0.5) == data.y_test))
        importance = float("nan")
        if NAMES in data.X and isinstance(model, UntwistClassifier):
            importance = float(model.feature_importances_[list(data.X).index(NAMES)])
        rows.append([name, twist, seed, method, accuracy, float(log_loss(data.y_test, posterior)), importance])
    return rows


def make_table(rows: list[list[Any]]) -> TextTable:
    """Average over splits."""
    found = [dict(zip(COLUMNS, row, strict=True)) for row in rows]

    def average(name: str, twist: str, method: str, column: str) -> float:
        return float(
            np.mean(
                [one[column] for one in found if (one["data"], one["twist"], one["method"]) == (name, twist, method)]
            )
        )

    lines = []
    for name, twist in dict.fromkeys((one["data"], one["twist"]) for one in found):
        accuracy = [f"{average(name, twist, method, 'accuracy'):.4f}" for method in METHODS]
        loss = [f"{average(name, twist, method, 'log_loss'):.3f}" for method in METHODS]
        shares = [average(name, twist, method, "importance") for method in ("untwist", "by sets")]
        lines.append([name, twist, *accuracy, *loss, *("" if np.isnan(one) else f"{one:.0%}" for one in shares)])
    heading = ["", "", *METHODS, *(f"{method}, loss" for method in METHODS), "names, share", "by sets"]
    note = "Accuracy and log-loss on clean test rows; the share that the names have in our importances."
    return TextTable("Columns of many categories", note, heading, lines)


def main() -> None:
    """Run all methods and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help="folder of CSV files; without, ids alone")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000, help="rows of each part, at most; ids have ten times as many")
    options = parser.parse_args()
    names = [] if options.data is None else [*REAL, *(f"{name} + names" for name in REAL)]
    tasks = [
        (name, twist, seed, 10 * options.rows if name == "2,000 ids" else options.rows, options.data)
        for name in [*names, "2,000 ids"]
        for twist in TWISTS
        for seed in range(options.seeds)
    ]
    out = Path("results/categories.csv")
    print(make_table(record(tasks, judge, COLUMNS, out)))
    print(f"Rows: {out}")


if __name__ == "__main__":
    main()
