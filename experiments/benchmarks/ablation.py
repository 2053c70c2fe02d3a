"""What each ingredient of the default classifier contributes: the arena, with one ingredient less each time.

Accuracy and log-loss on clean test rows, mean over data sets and splits; rows go to results/ablation.csv.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.metrics import log_loss

from experiments.datasets import list_names, load
from experiments.peers import hold_out
from experiments.protocol import TWISTS, applies, split
from experiments.runner import record
from experiments.tables import TextTable
from untwist import PILBoostClassifier, UntwistClassifier, classifier
from untwist import settings as untwist_settings
from untwist.automatic import mixture, randomised, search
from untwist.automatic.mixture import find_mixture_weights
from untwist.settings import RECIPE_GROWTH

COLUMNS = ["data", "twist", "seed", "variant", "accuracy", "log_loss", "seconds", "alpha"]
#: Twists that are averaged together.
GROUPS = {
    "twisted": [twist for twist in TWISTS if twist != "none"],
    "none": ["none"],
    "symmetric": [twist for twist in TWISTS if twist.startswith("symmetric")],
    "class": [twist for twist in TWISTS if twist.startswith("class")],
    "features": ["features", "insider"],
    "real": ["real"],
}


def fit_default(X: Any, y: Any, seed: int, *, n_jobs: int = 1, **parameters: Any) -> Any:
    """Fit our default, but for these parameters."""
    return UntwistClassifier(n_jobs=n_jobs, random_state=seed, **parameters).fit(X, y)


def patch_module(module: Any, **replacements: Any) -> Callable[..., Any]:
    """Make a fit with other constants or functions in a module."""

    def fit(X: Any, y: Any, seed: int, **parameters: Any) -> Any:
        with patch.multiple(module, **replacements):
            return fit_default(X, y, seed, **parameters)

    return fit


def change_recipe(**changes: Any) -> Callable[..., Any]:
    """Make a fit whose recipe has other settings, which are no parameters of the classifier."""

    def resolve(parameters: Any) -> Any:
        return replace(untwist_settings.resolve_recipe(parameters), **changes)

    return patch_module(classifier, resolve_recipe=resolve)


def fit_as_in_the_paper(X: Any, y: Any, seed: int) -> Any:
    """Fit the paper's algorithm by itself."""
    model = PILBoostClassifier(alpha=2.0, step_size=8.0, n_estimators=1000, max_depth=3, n_jobs=1, random_state=seed)
    return model.fit(X, y)


def ignore_boosted_trees(members: Any, labels: Any, weight: Any) -> Any:
    """Find weights of randomised trees alone, which come last."""
    weights = np.zeros(len(members))
    weights[-1] = find_mixture_weights(members[-1:], labels, weight)[0]
    return weights


def fit_without_averaging(X: Any, y: Any, seed: int) -> Any:
    """Fit one model that stops early on a fifth of the rows."""
    train, _, held_out = hold_out(np.arange(len(y)), y, seed)
    return fit_default(X, y, seed, cv=[(train, held_out.X)])


VARIANTS: dict[str, Callable[..., Any]] = {
    "default": fit_default,
    "boosted trees alone": change_recipe(mixes=False),
    "randomised trees alone": patch_module(randomised, find_mixture_weights=ignore_boosted_trees),
    "equal weights": patch_module(mixture, EQUAL_ROWS=1e9),
    "rates not untwisted": lambda X, y, seed: fit_default(X, y, seed, noise=None),
    "one model, no averaging": fit_without_averaging,
    "no l2": patch_module(untwist_settings, RECIPE_GROWTH=replace(RECIPE_GROWTH, l2=0.0)),
    "alpha = 1 only": patch_module(search, MIXED_ALPHAS=(1.0,)),
    "depth 4 at alpha 1": patch_module(search, MIXED_DEPTHS=(4,)),
    "larger alphas at the best depth": patch_module(untwist_settings, MIXED_SHARES=(0.7,)),
    "thresholds drawn in boosting too": patch_module(
        untwist_settings, RECIPE_GROWTH=replace(RECIPE_GROWTH, extra=True)
    ),
    "as in the paper": fit_as_in_the_paper,
    "alpha by Menon's estimate": change_recipe(alphas=None, estimates_noise=False, mixes=False),
}


def judge(task: tuple[str, str, int, str | None]) -> list[list[Any]]:
    """Fit all variants to one split and judge them on its clean test rows."""
    name, twist, seed, folder = task
    warnings.filterwarnings("ignore")
    data = split(load(name, folder), twist, seed, 2500)
    rows = []
    for variant, fit in VARIANTS.items():
        start = time.process_time()
        model = fit(data.X, data.y, seed)
        seconds = time.process_time() - start
        p = model.predict_proba(data.X_test)[:, 1].clip(1e-6, 1 - 1e-6)
        accuracy = float(np.mean(model.predict(data.X_test) == data.y_test))
        loss = float(log_loss(data.y_test, p, labels=[0, 1]))
        rows.append([name, twist, seed, variant, accuracy, loss, seconds, model.model_.alpha])
    return rows


def make_table(rows: list[list[Any]]) -> TextTable:
    """Average over data sets and splits."""
    found = [dict(zip(COLUMNS, row, strict=True)) for row in rows]

    def average(variant: str, column: str, twists: list[str]) -> float:
        values = [row[column] for row in found if row["variant"] == variant and row["twist"] in twists]
        return float(np.mean(values)) if values else float("nan")

    lines = []
    for variant in VARIANTS:
        accuracy = [f"{average(variant, 'accuracy', twists):.4f}" for twists in GROUPS.values()]
        loss = f"{average(variant, 'log_loss', GROUPS['twisted']):.4f}"
        lines.append([variant, *accuracy, loss, f"{average(variant, 'seconds', list(TWISTS)):.3f}"])
    note = "Accuracy by group of twists, log-loss under all twists, seconds of a fit; on clean test rows."
    return TextTable("One ingredient less", note, ["", *GROUPS, "log-loss", "seconds"], lines)


def main() -> None:
    """Run all variants and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help="folder of CSV files; without, the sets of scikit-learn")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--twists", nargs="+", metavar="TWIST", default=TWISTS, help=f"of {', '.join(TWISTS)}")
    options = parser.parse_args()
    tasks = [
        (name, twist, seed, options.data)
        for name in list_names(options.data)
        for twist in options.twists
        if applies(twist, load(name, options.data))
        for seed in range(options.seeds)
    ]
    out = Path("results/ablation.csv")
    print(make_table(record(tasks, judge, COLUMNS, out)))
    print(f"Rows: {out}")


if __name__ == "__main__":
    main()
