"""A forest, CatBoost and a pipeline, alone and within `UntwistClassifier`: who learns the truth from noisy labels.

Class noise: 5 % of the negatives and 35 % of the positives bear the other label. Accuracy on clean test rows, mean over
splits that both share; rows go to results/untwisted_estimators.csv.

    python -m experiments.benchmarks.untwisted_estimators --data FOLDER
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from experiments.datasets import list_names, load
from experiments.protocol import make_rng, split
from experiments.runner import record, work_alone
from experiments.tables import TextTable
from untwist import UntwistClassifier
from untwist.twisters import ClassConditionalNoise

COLUMNS = ["data", "seed", "estimator", "alone", "untwisted", "believed"]
#: The share of wrong labels among the negatives and among the positives.
RATE_NEG, RATE_POS = 0.05, 0.35
#: Tables of 200 to 5,000 rows of the paper and of public benchmarks, with and without categories.
TABLES = (
    "banknote",
    "breast_w_683",
    "credit_approval",
    "german_credit",
    "ionosphere",
    "kr_vs_kp",
    "phishing_websites",
    "phoneme",
    "pima",
    "ringnorm",
    "spambase",
    "xd6",
)
#: Rows to train on and to test on, at most.
MOST_ROWS = 2500


def prepare_columns(scaled: bool) -> Any:
    """Return a step that makes numbers of any table, scaled where an estimator needs that."""
    numbers: list[Any] = [SimpleImputer(strategy="median", keep_empty_features=True), *([StandardScaler()] * scaled)]
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(
        (one_hot, make_column_selector(dtype_include=["category", object])), remainder=make_pipeline(*numbers)
    )


def make_forest(seed: int) -> Any:
    """Return a forest with leaves large enough for its posteriors to mean something."""
    forest = RandomForestClassifier(300, min_samples_leaf=5, n_jobs=1, random_state=seed)
    return make_pipeline(prepare_columns(scaled=False), forest)


def make_catboost(seed: int) -> Any:
    """Return CatBoost with few enough rounds not to learn every label by heart."""
    from catboost import CatBoostClassifier

    quiet = {"thread_count": 1, "allow_writing_files": False, "logging_level": "Silent"}
    return make_pipeline(prepare_columns(scaled=False), CatBoostClassifier(iterations=200, random_seed=seed, **quiet))


def make_linear_pipeline(seed: int) -> Any:
    """Return a logistic regression on scaled columns."""
    del seed  # Nothing is drawn.
    return make_pipeline(prepare_columns(scaled=True), LogisticRegression(max_iter=2000))


ESTIMATORS: dict[str, Callable[[int], Any]] = {
    "forest": make_forest,
    "CatBoost": make_catboost,
    "pipeline": make_linear_pipeline,
}


def judge(task: tuple[str, int, str | None]) -> list[list[Any]]:
    """Fit every estimator to one split, alone, untwisted, and by the same folds with labels believed."""
    name, seed, folder = task
    data = split(load(name, folder), "none", seed, MOST_ROWS)
    _, y, _ = ClassConditionalNoise(rate_neg=RATE_NEG, rate_pos=RATE_POS).twist(
        data.X, data.y, make_rng(name, seed, "class noise")
    )
    rows = []
    with work_alone():
        for estimator, make in ESTIMATORS.items():
            models = (
                make(seed).fit(data.X, y),
                UntwistClassifier(make(seed), random_state=seed).fit(data.X, y),
                UntwistClassifier(make(seed), noise=None, random_state=seed).fit(data.X, y),
            )
            scores = [float(np.mean(np.ravel(one.predict(data.X_test)) == data.y_test)) for one in models]
            rows.append([name, seed, estimator, *scores])
    return rows


def make_table(rows: list[list[Any]]) -> TextTable:
    """Average over splits: a line for each table, and the number of tables on which each estimator gains."""
    names = list(dict.fromkeys(row[0] for row in rows))
    lines, gains = [], dict.fromkeys(ESTIMATORS, 0)
    for name in names:
        cells = [name]
        for estimator in ESTIMATORS:
            found = np.array([row[3:] for row in rows if row[0] == name and row[2] == estimator], dtype=float)
            alone, untwisted, _ = found.mean(axis=0)
            gains[estimator] += untwisted > alone
            cells += [f"{alone:.3f}", f"{untwisted:.3f}"]
        lines.append(cells)
    means = [f"{np.mean([row[3 + k] for row in rows if row[2] == one]):.3f}" for one in ESTIMATORS for k in (0, 1)]
    lines.append(["mean", *means])
    lines.append(["better on", *(cell for one in ESTIMATORS for cell in ("", f"{gains[one]} of {len(names)}"))])
    header = ["", *(cell for one in ESTIMATORS for cell in (one, "untwisted"))]
    note = f"Trained with {RATE_NEG:.0%} of the negatives and {RATE_POS:.0%} of the positives mislabelled."
    return TextTable("Accuracy on clean rows, alone and untwisted", note, header, lines)


def main() -> None:
    """Judge all tables that there are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help="where the tables are (UNTWIST_DATA)")
    parser.add_argument("--seeds", type=int, default=3, help="splits of each table (default 3)")
    options = parser.parse_args()
    names = [name for name in list_names(options.data) if name in TABLES]
    out = Path("results/untwisted_estimators.csv")
    tasks = [(name, seed, options.data) for name in names for seed in range(options.seeds)]
    print(make_table(record(tasks, judge, COLUMNS, out)))
    print(f"Rows: {out}")


if __name__ == "__main__":
    main()
