"""Posteriors of any model, audited by untwist and by cleanlab: the same posteriors, two ways to judge labels.

XGBoost, LightGBM, CatBoost, a forest and a logistic regression, as they come, predict every row of 20 data sets out of
fold; the labels are clean, or twisted in two ways. `untwist` gets the posteriors alone, as cleanlab does. A third line
asks whether posteriors that have seen their labels are recognised, and no others: with the rows at hand, and without.

    UNTWIST_DATA=... python -m experiments.benchmarks.any_model --jobs 16

Half of the sets were there to design by, the other half judges (`experiments.halves`). Rows go to
results/any_model.csv; the same command goes on where it ended.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.datasets import is_pair_with_noise, list_names, list_several, load
from experiments.halves import DESIGN, JUDGING, OF_THE_PAPER, find_half
from experiments.runner import measure, summarise_error, work_alone
from experiments.several_classes.sets import load_set, split_twisted
from experiments.tables import TextTable
from untwist.arguments import Array
from untwist.audit import audit_labels
from untwist.boosting.forest import count_threads

#: Sets of two classes and of several, half of each to design by.
TWO = ["cancer", "ionosphere", "credit_approval", "spambase", "ringnorm", "adult", "german_credit", "phoneme"]
TWO += ["kr_vs_kp", "mammographic", "phishing_websites", "digits_odd"]
SEVERAL = ["vehicle", "waveform_5000", "cmc", "splice", "segment", "satimage", "car", "pendigits"]
#: What is done to the labels of two classes, and of several.
KINDS = {False: ["none", "symmetric-0.2", "class-0.1-0.4"], True: ["none", "symmetric-0.2", "pair-0.3"]}
N_FOLDS = 5
OURS, THEIRS, SEEN = "untwist", "cleanlab", "untwist, labels seen"


def _make_xgboost() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1)


def _make_lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1)


def _make_catboost() -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(thread_count=1, verbose=False, allow_writing_files=False)


MODELS: dict[str, Callable[[], Any]] = {
    "XGBoost": _make_xgboost,
    "LightGBM": _make_lightgbm,
    "CatBoost": _make_catboost,
    "forest": lambda: RandomForestClassifier(n_jobs=1, random_state=0),
    "logistic": lambda: make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000)),
}


class AuditKey(NamedTuple):
    """What was run."""

    data: str
    kind: str
    seed: int
    max_rows: int
    model: str
    method: str


class AuditJob(NamedTuple):
    """What one process does at a time: a model on one split."""

    data: str
    kind: str
    seed: int
    max_rows: int
    model: str
    several: bool

    @property
    def keys(self) -> list[AuditKey]:
        """The keys of the rows that it gives."""
        return [AuditKey(*self[:5], method) for method in (OURS, THEIRS, SEEN)]


@dataclass(frozen=True)
class AuditRow:
    """How labels were judged. `hits` are wrong labels among the flagged, `hits_at_number` among so many first rows.

    `named` and `named_without_rows` say whether the posteriors were called ones that have seen their labels.
    """

    data: str
    kind: str
    seed: int
    max_rows: int
    model: str
    method: str
    rows: int = 0
    wrong: int = 0
    average_precision: float = float("nan")
    flagged: int = 0
    hits: int = 0
    hits_at_number: int = 0
    share_said: float = float("nan")
    named: int = 0
    named_without_rows: int = 0
    seconds: float = 0.0
    error: str = ""

    @property
    def key(self) -> AuditKey:
        """What was run."""
        return AuditKey(self.data, self.kind, self.seed, self.max_rows, self.model, self.method)

    @property
    def f1(self) -> float:
        """The F1 of the flagged labels; 1 where none is wrong and none flagged."""
        return 2 * self.hits / (self.flagged + self.wrong) if self.flagged + self.wrong else 1.0

    @property
    def recall_at_number(self) -> float:
        """The share of the wrong labels among as many first rows, which is their precision and F1 too."""
        return self.hits_at_number / self.wrong if self.wrong else float("nan")


def judge_safely(job: AuditJob, folder: str | None) -> list[AuditRow]:
    """Judge as `judge` does; what goes wrong is in the rows."""
    try:
        return judge(job, folder)
    except Exception as error:  # Whatever a peer raises must not end the program.
        return [AuditRow(*key, error=summarise_error(error)) for key in job.keys]


def judge(job: AuditJob, folder: str | None) -> list[AuditRow]:
    """Judge the labels of one twisted split by posteriors of one model."""
    import pandas as pd

    with work_alone():
        table = load_set(job.data, folder)[0] if job.several else load(job.data, folder)
        split, truth = split_twisted(table, job.kind, job.seed, job.max_rows)
        assert truth is not None  # None of these sets has noisy labels only.
        X = pd.get_dummies(split.X, dtype=float)
        X = X.set_axis([f"c{column}" for column in range(X.shape[1])], axis=1)  # Some refuse brackets in a name.
        _, y = np.unique(split.y, return_inverse=True)
        wrong = np.asarray(split.y) != truth
        posterior = predict_unseen(MODELS[job.model], X, y, job.seed)
        seen = MODELS[job.model]().fit(X, y).predict_proba(X)

        def record(method: str, seconds: float, suspicion: Array, flagged: Any, **more: Any) -> AuditRow:
            first = np.argsort(-suspicion, kind="stable")[: int(wrong.sum())]
            return AuditRow(
                *job[:5],
                method,
                rows=len(y),
                wrong=int(wrong.sum()),
                average_precision=float(average_precision_score(wrong, suspicion)) if wrong.any() else float("nan"),
                flagged=int(flagged.sum()),
                hits=int((flagged & wrong).sum()),
                hits_at_number=int(wrong[first].sum()),
                seconds=seconds,
                **more,
            )

        rows = []
        for method, given in ((OURS, posterior), (SEEN, seen)):
            start = time.process_time()
            audit = audit_labels(y=y, pred_probs=given)
            flagged = np.zeros(len(y), dtype=bool)
            flagged[audit.suspects()] = True
            seconds = time.process_time() - start
            suspicion = np.empty(len(y))
            suspicion[audit.ranking] = -np.arange(len(y))  # Ties are broken as the audit does.
            named = audit_labels(X, y, pred_probs=given, n_jobs=1).judge.looks_in_sample
            signs = {"named": int(named), "named_without_rows": int(audit.judge.looks_in_sample)}
            rows.append(record(method, seconds, suspicion, flagged, share_said=audit.noise_rate[0], **signs))
        start = time.process_time()
        suspicion, flagged = judge_by_cleanlab(y, posterior)
        rows.append(record(THEIRS, time.process_time() - start, suspicion, flagged))
        return rows


def predict_unseen(make: Callable[[], Any], X: Any, y: Any, seed: int) -> Array:
    """Predict the posteriors of all rows, five folds."""
    posterior = np.zeros((len(y), int(y.max()) + 1))
    for train, test in StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(X, y):
        known, labels = np.unique(y[train], return_inverse=True)
        posterior[np.ix_(test, known)] = make().fit(X.iloc[train], labels).predict_proba(X.iloc[test])
    return posterior


def judge_by_cleanlab(y: Any, posterior: Array) -> tuple[Array, Any]:
    """Give how suspect each row is, and which rows are flagged."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    return 1.0 - get_label_quality_scores(y, posterior), find_label_issues(y, posterior, n_jobs=1)


def make_tables(rows: list[AuditRow], half: str) -> list[TextTable]:
    """Average over the data sets of a half: how well labels are judged, and which posteriors are called seen."""

    def average(values: Iterable[float]) -> str:
        numbers = [value for value in values if not np.isnan(value)]
        return f"{np.mean(numbers):.3f}" if numbers else "-"

    judged, named = [], []
    for model in [*(name for name in MODELS if any(row.model == name for row in rows)), "all"]:
        here = [row for row in rows if model in (row.model, "all") and not row.error]
        for method in (OURS, THEIRS):
            of_method = [row for row in here if row.method == method]
            noisy = [row for row in of_method if row.wrong]
            clean = [row for row in of_method if not row.wrong]
            judged.append(
                [
                    model,
                    method,
                    average(row.average_precision for row in noisy),
                    average(row.f1 for row in noisy),
                    average(row.recall_at_number for row in noisy),
                    average(row.flagged / row.rows for row in clean),
                    average(abs(row.share_said - row.wrong / row.rows) for row in of_method),
                    average(row.seconds for row in of_method),
                ]
            )
        for words, method, is_noisy in (
            ("out of fold, noisy labels", OURS, True),
            ("out of fold, clean labels", OURS, False),
            ("seen, noisy labels", SEEN, True),
            ("seen, clean labels", SEEN, False),
        ):
            chosen = [row for row in here if row.method == method and bool(row.wrong) == is_noisy]
            without_rows = average(row.named_without_rows for row in chosen)
            named.append([model, words, average(row.named for row in chosen), without_rows])
    note = (
        "Mean over data sets and noise. AP: average precision of the ranking; F1: of the flagged labels; at number: "
        "wrong labels among as many first rows as are wrong; clean: the share flagged where no label is wrong; "
        "error: of the share of wrong labels."
    )
    header = ["model", "", "AP", "F1", "at number", "clean", "error", "seconds"]
    names = ", ".join(sorted({row.data for row in rows}))
    return [
        TextTable(f"The {half} half: {names}", note, header, judged),
        TextTable(
            f"The {half} half: posteriors that are called ones that have seen their labels",
            "The share so called, with the rows at hand and without.",
            ["model", "posteriors", "with rows", "without"],
            named,
        ),
    ]


def main() -> None:
    """Judge what the results file lacks, and print tables for each half."""
    cores = count_threads(None)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--data", metavar="FOLDER", help="folder of CSV files (default: the environment's UNTWIST_DATA)"
    )
    parser.add_argument("--sets", nargs="+", metavar="SET", help=f"of {', '.join(TWO + SEVERAL)} (default: all)")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=1, help="number of splits (default 1)")
    parser.add_argument("--rows", type=int, default=2000, help="rows of a set, at most (default 2000)")
    parser.add_argument("--jobs", type=int, default=cores, help=f"processes (default {cores}, the cores there are)")
    parser.add_argument("--out", type=Path, default=Path("results/any_model.csv"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    several = list_several(options.data)
    halves = find_half(list_names(options.data), looked_at=OF_THE_PAPER)
    halves |= find_half(name for name in several if not is_pair_with_noise(name, options.data))
    sets = options.sets or [name for name in TWO + SEVERAL if name in halves]
    for name in sets:
        if name not in halves:
            parser.error(f"there is no data set {name!r}: choose from {', '.join(halves)}")
    jobs = [
        AuditJob(data, kind, seed, options.rows, model, data in several)
        for data in sets
        for kind in KINDS[data in several]
        for seed in range(options.seeds)
        for model in options.models
    ]
    wanted = {key: job for job in jobs for key in job.keys}
    rows = measure(wanted, partial(judge_safely, folder=options.data), options.out, AuditRow, processes=options.jobs)
    for half in (DESIGN, JUDGING):
        if here := [row for row in rows if halves[row.data] == half]:
            print(*make_tables(here, half), sep="\n")
    print(f"Rows: {options.out}")


if __name__ == "__main__":
    main()
