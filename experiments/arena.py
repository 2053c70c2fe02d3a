"""The arena: who learns the truth from twisted training data? Data sets x twists x methods x seeds.

Every method of a run sees the same split and the same twist, and is judged on clean test rows.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Iterable
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from threadpoolctl import threadpool_limits

from experiments.datasets import FOLDER, load, names
from experiments.methods import METHODS
from experiments.page import page
from experiments.protocol import TWISTS, Split, applies, split
from experiments.results import Key, Row, reliability
from experiments.runner import measure
from experiments.verdict import Verdict, sections
from untwist.boosting.forest import threads

__all__ = ["described", "judged", "keys", "main"]

cached_load = cache(load)


@lru_cache(maxsize=1)
def _cached_split(data: str, twist: str, seed: int, max_rows: int, folder: str | None) -> Split:
    return split(cached_load(data, folder), twist, seed, max_rows)


@cache
def _warm_up(method: str) -> None:
    """A first tiny fit, so that no time of importing is counted."""
    X, y, *_ = split(cached_load("cancer"), "none", seed=0, max_rows=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        METHODS[method].fit(X, y, 0)


def judged(key: Key, folder: str | None = None) -> Row:
    """Fit one method and judge it on the clean test rows. An error is a result too."""
    try:
        X, y, X_test, y_test = _cached_split(*key[:4], folder)
        method = METHODS[key.method]
        _warm_up(key.method)
        with warnings.catch_warnings(), threadpool_limits(1):  # HistGradientBoosting has no other switch
            warnings.simplefilter("ignore")
            start = time.process_time()  # of this process, whatever else the machine does
            model = method.fit(X.copy(), y.copy(), key.seed)  # a method that writes into them harms itself alone
            seconds = time.process_time() - start
            p = np.asarray(model.predict_proba(X_test), dtype=float)[:, 1]
            label = model.predict(X_test) if hasattr(model, "predict") else p > 0.5  # a threshold may have been moved
        if not np.all((p >= 0) & (p <= 1)):
            raise ValueError("predict_proba gave something that is no probability")
    except Exception as error:  # whatever a method fails of belongs in its row
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Row(*key, error=text[:300])
    return Row(
        *key,
        accuracy=float(np.mean(label == y_test)),
        auc=float(roc_auc_score(y_test, p)),
        log_loss=float(log_loss(y_test, np.clip(p, 1e-6, 1 - 1e-6))),  # certain and wrong costs 13.8, not infinity
        brier=float(brier_score_loss(y_test, p)),
        seconds=seconds,
        reliability=reliability(p, y_test.astype(float)),
        version=method.version,
    )


def keys(
    sets: Iterable[str], twists: Iterable[str], methods: Iterable[str], seeds: int, max_rows: int, folder: str | None
) -> list[Key]:
    """All that is to be run, seed by seed, so that what is there early covers everything once."""
    twists, methods = list(twists), list(methods)
    pairs = [(data, twist) for data in sets for twist in twists if applies(twist, cached_load(data, folder))]
    return [
        Key(data, twist, seed, max_rows, method) for seed in range(seeds) for data, twist in pairs for method in methods
    ]


QUICK: dict[str, Any] = {
    "sets": ["cancer", "digits_odd", "german_credit", "jira_lucene-2.3.0", "pima", "xd6"],
    "twists": ["none", "symmetric-0.2", "symmetric-0.4", "class-0.1-0.4", "insider", "real"],
    "seeds": 3,
    "rows": 600,
    "out": Path("results/arena-quick.csv"),
}
FULL: dict[str, Any] = {
    "sets": None,
    "twists": list(TWISTS),
    "seeds": 5,
    "rows": 2500,
    "out": Path("results/arena.csv"),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="untwist arena", description=__doc__.splitlines()[0])
    cores = threads(None)
    parser.add_argument("--quick", action="store_true", help="a part that takes about two minutes on two cores")
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        help=f"folder of CSV files with a column `label` (default: the environment's {FOLDER})",
    )
    parser.add_argument("--sets", nargs="+", metavar="SET", help="data sets (default: all there are)")
    parser.add_argument("--twists", nargs="+", metavar="TWIST", help=f"of {', '.join(TWISTS)} (default: all)")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help=f"of {', '.join(METHODS)} (default: all)")
    parser.add_argument("--again", nargs="+", metavar="METHOD", default=[], help="methods to fit anew, not to skip")
    parser.add_argument("--seeds", type=int, help="number of splits (default 5)")
    parser.add_argument("--rows", type=int, help="training rows, and test rows, at most (default 2500)")
    parser.add_argument("--jobs", type=int, default=cores, help=f"processes (default {cores}, the cores there are)")
    parser.add_argument("--out", type=Path, help="results file (default results/arena.csv); the page goes beside it")
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then show the verdict."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if min(options.seeds, options.jobs) < 1 or options.rows < 20:
        parser.error("--seeds and --jobs must be at least 1, --rows at least 20")
    there = names(options.data)
    if options.sets is None:
        options.sets = there
    elif options.sets is QUICK["sets"]:
        options.sets = [name for name in options.sets if name in there]
    methods = options.methods or list(METHODS)
    for what, chosen, known in [
        ("data set", options.sets, there),
        ("twist", options.twists, TWISTS),
        ("method", methods + options.again, METHODS),
    ]:
        for name in chosen:
            if name not in known:
                parser.error(f"unknown {what} {name!r}: choose from {', '.join(known)}")
    if not (options.data or os.environ.get(FOLDER)):
        print(f"No data folder (--data, {FOLDER}): only the sets that come with scikit-learn.", file=sys.stderr)
    installed = [name for name in methods if METHODS[name].version]
    for name in methods:
        if name not in installed:
            print(f'{METHODS[name].words} is left out: pip install "untwist[arena]" brings it.', file=sys.stderr)
    wanted = keys(options.sets, options.twists, installed, options.seeds, options.rows, options.data)
    if not wanted:
        raise ValueError("none of these data sets has the labels that these twists need")
    judge = partial(judged, folder=options.data)
    again = set(options.again)
    jobs = {key: key for key in wanted}
    rows = measure(jobs, judge, options.out, Row, jobs=options.jobs, again=lambda row: row.method in again)
    setting, verdict = described(rows), Verdict(rows)
    if verdict.incomplete:
        setting += f" {verdict.incomplete} runs that not every method has finished are left out."
    print(setting + "\n", *sections(verdict), sep="\n")
    options.out.with_suffix(".html").write_text(page(verdict, setting), encoding="utf-8")
    print(f"Rows: {options.out}\nPage: {options.out.with_suffix('.html')}")


def described(rows: list[Row]) -> str:
    """What was run, in words."""
    counts = {what: len({getattr(row, what) for row in rows}) for what in ("data", "twist", "method", "seed")}
    rows_at_most = ", ".join(str(size) for size in sorted({row.max_rows for row in rows}))
    versions = ", ".join(sorted({row.version for row in rows if row.version}))
    words = "{data} data sets, {twist} twists, {method} methods, {seed} splits".format(**counts)
    return f"{words}, at most {rows_at_most} training rows; judged on clean test rows. {versions}."


if __name__ == "__main__":
    main()
