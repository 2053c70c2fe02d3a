"""The audit beside cleanlab, on the same flips: who finds them first, who says how many there are, and how fast.

cleanlab gets out-of-fold posteriors of LightGBM, five folds, as its documentation advises: once with LightGBM as it
comes and once stopped early on a part of each training fold. A third line gives it the posteriors of untwist, so that
only the two ways to judge labels differ. One thread each. Rows go to results/label_audit.csv.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, train_test_split

from experiments.datasets import Table, list_names, load
from experiments.protocol import TWISTS, apply_twist, split
from experiments.results import Writer
from experiments.tables import TextTable
from untwist.audit import audit_labels
from untwist.audit.peers import ROUNDS, HeldOut, fit_lightgbm
from untwist.progress import ProgressLine, describe_progress

NOISE = ["none", "symmetric-0.1", "symmetric-0.2", "symmetric-0.3", "symmetric-0.4", "class-0.1-0.4", "class-0.4-0.1"]
METHODS = ["untwist", "cleanlab, LightGBM", "cleanlab, LightGBM stopped early", "cleanlab, posteriors of untwist"]
COLUMNS = [
    "data",
    "twist",
    "seed",
    "method",
    "rows",
    "wrong",
    "average_precision",
    "share_said",
    "flagged",
    "hits",
    "seconds",
]


def predict_unseen(X: Any, y: Any, seed: int, stopped: bool) -> Any:
    """Predict the posteriors of all rows by LightGBM, five folds."""
    settings: dict[str, Any] = {"n_jobs": 1, "random_state": seed}
    p = np.zeros((len(y), 2))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        if stopped:
            fit, watch = train_test_split(train, test_size=0.2, stratify=y[train], random_state=seed)
            held_out = HeldOut(X.iloc[watch], y[watch])
            model = fit_lightgbm(X.iloc[fit], y[fit], held_out, n_estimators=ROUNDS, **settings)
        else:
            model = fit_lightgbm(X.iloc[train], y[train], **settings)
        p[test] = model.predict_proba(X.iloc[test])
    return p


def judge_by_cleanlab(y: Any, p: Any) -> tuple[Any, float, Any]:
    """Give how suspect each row is, the share of wrong labels, and which rows are flagged."""
    from cleanlab.count import estimate_joint
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    flagged = find_label_issues(y, p, n_jobs=1)
    return 1.0 - get_label_quality_scores(y, p), 1.0 - float(np.trace(estimate_joint(y, p))), flagged


def judge(table: Table, twist: str, seed: int) -> list[dict[str, Any]]:
    """Judge the labels of one twisted split by every method."""
    clean = split(table, "none", seed, 2500)
    X, y = apply_twist(twist, clean.X, clean.y, np.random.default_rng([seed, list(TWISTS).index(twist)]))
    wrong = y != clean.y
    rows = []

    def record(method: str, start: float, suspicion: Any, share: float, flagged: Any) -> None:
        precision = float(average_precision_score(wrong, suspicion)) if wrong.any() else float("nan")
        seconds = time.process_time() - start
        hits = (flagged & wrong).sum()
        found = [len(y), int(wrong.sum()), precision, float(share), int(flagged.sum()), int(hits), seconds]
        rows.append(dict(zip(COLUMNS, [table.name, twist, seed, method, *found], strict=True)))

    start = time.process_time()
    audit = audit_labels(X, y, n_jobs=1, random_state=seed)
    flagged = np.zeros(len(y), dtype=bool)
    flagged[audit.suspects()] = True
    record(METHODS[0], start, audit.wrong, audit.noise_rate[0], flagged)
    for method, stopped in ((METHODS[1], False), (METHODS[2], True)):
        start = time.process_time()
        record(method, start, *judge_by_cleanlab(y, predict_unseen(X, y, seed, stopped)))
    start = time.process_time()
    record(METHODS[3], start, *judge_by_cleanlab(y, audit.posterior))
    return rows


def make_table(rows: list[dict[str, Any]], twist: str) -> TextTable:
    """Average over data sets and splits, of one twist or of all but none."""

    def average(values: list[float]) -> str:
        return f"{np.mean(values):.3f}" if values else "-"

    lines = []
    for method in METHODS:
        here = [
            row for row in rows if row["method"] == method and row["twist"] in (NOISE[1:] if not twist else [twist])
        ]
        noisy = [row for row in here if row["wrong"]]
        lines.append(
            [
                method,
                average([row["average_precision"] for row in noisy]),
                average([abs(row["share_said"] - row["wrong"] / row["rows"]) for row in here]),
                average([row["flagged"] / row["rows"] for row in here]),
                average([row["hits"] / row["wrong"] for row in noisy]),
                average([row["hits"] / row["flagged"] for row in noisy if row["flagged"]]),
                average([row["seconds"] for row in here]),
            ]
        )
    note = (
        "Mean over data sets and splits. AP: average precision of the ranking; error: of the share of wrong labels; "
        "found: flagged among the wrong; right: wrong among the flagged."
    )
    header = ["", "AP", "error", "flagged", "found", "right", "seconds"]
    return TextTable(twist or "all but none", note, header, lines)


def main() -> None:
    """Judge all data sets and print a table for each twist."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help="folder of CSV files; without, the sets of scikit-learn")
    parser.add_argument("--quick", action="store_true", help="a part of the data sets, one split")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    sets = [name for name in list_names(options.data) if load(name, options.data).y is not None]
    seeds = options.seeds
    if options.quick:
        sets = sets[::4]
        seeds = 1
    out = Path("results/label_audit.csv")
    rows: list[dict[str, Any]] = []
    with Writer(out, COLUMNS, resume=False) as results, ProgressLine() as line:
        for count, name in enumerate(sets, start=1):
            table = load(name, options.data)
            for twist in NOISE:
                for seed in range(seeds):
                    for row in judge(table, twist, seed):
                        rows.append(row)
                        results.add(row.values())
            line.show(describe_progress(count, len(sets), line.seconds, "data sets"))
    for twist in [*NOISE, ""]:
        print(make_table(rows, twist))
    print(f"Rows: {out}")


if __name__ == "__main__":
    main()
