"""The audit beside cleanlab, on the same flips: who finds them first, who says how many there are, and how fast.

cleanlab gets out-of-fold posteriors of LightGBM, five folds, as its documentation advises: once with LightGBM as it
comes and once stopped early on a part of each training fold. A third line gives it the posteriors of untwist, so that
only the two ways to judge labels differ. One thread each. Rows go to results/label_audit.csv.
"""

import argparse
import csv
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, train_test_split

from experiments.datasets import load, names
from experiments.protocol import TWISTS, split, twisted
from untwist.audit import audit_labels

NOISE = ["none", "symmetric-0.1", "symmetric-0.2", "symmetric-0.3", "symmetric-0.4", "class-0.1-0.4", "class-0.4-0.1"]
METHODS = ["untwist", "cleanlab, LightGBM", "cleanlab, LightGBM stopped early", "cleanlab, posteriors of untwist"]
COLUMNS = ["data", "twist", "seed", "method", "rows", "wrong", "average_precision", "share_said", "flagged", "hits"]
COLUMNS += ["seconds"]


def posteriors(X: Any, y: Any, seed: int, stopped: bool) -> Any:
    from lightgbm import LGBMClassifier, early_stopping

    p = np.zeros((len(y), 2))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        model = LGBMClassifier(n_jobs=1, verbose=-1, random_state=seed)
        if stopped:
            model.set_params(n_estimators=2000)
            fit, watch = train_test_split(train, test_size=0.2, stratify=y[train], random_state=seed)
            stop = [early_stopping(50, verbose=False)]
            model.fit(X.iloc[fit], y[fit], eval_set=[(X.iloc[watch], y[watch])], callbacks=stop)
        else:
            model.fit(X.iloc[train], y[train])
        p[test] = model.predict_proba(X.iloc[test])
    return p


def by_cleanlab(y: Any, p: Any) -> tuple[Any, float, Any]:
    """How suspect each row is, the share of wrong labels, and which rows are flagged."""
    from cleanlab.count import estimate_joint
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    flagged = find_label_issues(y, p, n_jobs=1)
    return 1.0 - get_label_quality_scores(y, p), 1.0 - float(np.trace(estimate_joint(y, p))), flagged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help="folder of CSV files; without, the sets of scikit-learn")
    parser.add_argument("--quick", action="store_true", help="a part of the data sets, one split")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    sets = [name for name in names(options.data) if load(name, options.data).y is not None]
    sets, seeds = (sets[::4], 1) if options.quick else (sets, options.seeds)
    out = Path("results/label_audit.csv")
    out.parent.mkdir(exist_ok=True)
    rows: list[dict[str, Any]] = []
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for number, name in enumerate(sets):
            print(f"\r{number} of {len(sets)} data sets ({name})        ", end="", file=sys.stderr, flush=True)
            table = load(name, options.data)
            for twist in NOISE:
                for seed in range(seeds):
                    for row in cell(table, twist, seed):
                        rows.append(row)
                        writer.writerow(row)
                    file.flush()
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    show(rows)
    print(f"Rows: {out}")


def cell(table: Any, twist: str, seed: int) -> list[dict[str, Any]]:
    clean = split(table, "none", seed, 2500)
    X, y = twisted(twist, clean.X, clean.y, np.random.default_rng([seed, list(TWISTS).index(twist)]))
    wrong = y != clean.y
    rows = []

    def record(method: str, begin: float, suspicion: Any, share: float, flagged: Any) -> None:
        precision = average_precision_score(wrong, suspicion) if wrong.any() else float("nan")
        seconds = time.process_time() - begin
        found = [len(y), wrong.sum(), precision, share, flagged.sum(), (flagged & wrong).sum(), seconds]
        rows.append(dict(zip(COLUMNS, [table.name, twist, seed, method, *found], strict=True)))

    begin = time.process_time()
    audit = audit_labels(X, y, n_jobs=1, random_state=seed)
    flagged = np.zeros(len(y), dtype=bool)
    flagged[audit.suspects()] = True
    record(METHODS[0], begin, audit.wrong, audit.noise_rate[0], flagged)
    for method, stopped in ((METHODS[1], False), (METHODS[2], True)):
        begin = time.process_time()
        record(method, begin, *by_cleanlab(y, posteriors(X, y, seed, stopped)))
    begin = time.process_time()
    record(METHODS[3], begin, *by_cleanlab(y, audit.posterior))
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    def mean(values: list[float]) -> float:
        return float(np.mean(values)) if values else float("nan")

    print("Mean over data sets and splits. AP: average precision of the ranking; error: of the share of wrong labels;")
    print("found: flagged among the wrong; right: wrong among the flagged.\n")
    print(f"{'':34}{'twist':16}{'AP':>7}{'error':>8}{'flagged':>9}{'found':>8}{'right':>8}{'seconds':>9}")
    for twist in [*NOISE, "all but none"]:
        for method in METHODS:
            own = [r for r in rows if r["method"] == method and (r["twist"] == twist or twist not in NOISE)]
            own = [r for r in own if twist in NOISE or r["twist"] != "none"]
            precision = mean([r["average_precision"] for r in own if r["wrong"]])
            error = mean([abs(r["share_said"] - r["wrong"] / r["rows"]) for r in own])
            flagged = mean([r["flagged"] / r["rows"] for r in own])
            found = mean([r["hits"] / r["wrong"] for r in own if r["wrong"]])
            right = mean([r["hits"] / r["flagged"] for r in own if r["flagged"] and r["wrong"]])
            seconds = mean([r["seconds"] for r in own])
            numbers = f"{precision:7.3f}{error:8.3f}{flagged:9.3f}{found:8.3f}{right:8.3f}{seconds:9.2f}"
            print(f"{method:34}{twist:16}{numbers}".replace("nan", "  -"))
        print()


if __name__ == "__main__":
    main()
