"""How a model gets better while its labels are reviewed: the order of review decides how soon.

Labels of training rows are made wrong. An oracle reviews them in rounds, some rows at a time, and after each round the
model is fitted again and judged on clean test rows. The orders differ in which rows come next: those that are most
likely wrong (`suspects(aim="labels")`), those that teach a model most (`aim="model"`), those whose labels have the
lowest quality by cleanlab, or any. All of these fit the same classifier, with `reviewed=`, and cleanlab gets the
out-of-fold posteriors of that very classifier, anew in each round. A last line is cleanlab with XGBoost, both as they
come: the order is by XGBoost's out-of-fold posteriors, and XGBoost is fitted to the labels as they are after each
round.

How much is gained is measured from no review to a classifier that was fitted to the true labels of all rows. Rows go to
results/review_curve.csv; the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from experiments.datasets import Table, drop_rare_classes, list_names, list_several, load, load_several
from experiments.halves import DESIGN, JUDGING, OF_THE_PAPER, find_half
from experiments.peers import compute_log_loss, spread_columns
from experiments.protocol import Split, applies, apply_twist, make_rng, split
from experiments.runner import measure, summarise_error, work_alone
from experiments.tables import TextTable
from untwist import UntwistClassifier
from untwist.arguments import Array
from untwist.audit import Decisions, LabelAudit, audit_labels
from untwist.audit.peers import fit_xgboost
from untwist.data.decisions import KEEP, RELABEL
from untwist.data.fingerprints import fingerprint

#: The shares of the rows that have been reviewed after each round.
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.6, 0.8)
#: The orders of review, and the model that knows the truth of every row.
LABELS, MODEL, CLEANLAB, RANDOM, XGBOOST, ALL = "labels", "model", "cleanlab", "random", "cleanlab, XGBoost", "all"
ORDERS = (MODEL, LABELS, CLEANLAB, RANDOM, XGBOOST)
#: The shares of the gain whose reviews are counted.
GAINS = (0.5, 0.8, 0.9)
#: What is done to the labels, of two classes and of more.
TWISTS = ["symmetric-0.1", "symmetric-0.3", "class-0.1-0.4"]
SEVERAL_TWISTS = ["symmetric-0.2", "symmetric-0.4", "pair-0.3"]
#: Classes with fewer rows than this are dropped.
LEAST_ROWS = 8
#: The folds of XGBoost's posteriors.
N_FOLDS = 5


class Job(NamedTuple):
    """A split of a data set, what is done to its labels, and the order in which they are reviewed."""

    data: str
    twist: str
    seed: int
    order: str
    several: bool


@dataclass(frozen=True)
class CurveRow:
    """A model after a round of review."""

    data: str
    twist: str
    seed: int
    order: str
    share: float
    rows: int
    reviewed: int
    wrong: int
    found: int
    accuracy: float
    log_loss: float
    error: str = ""

    @property
    def key(self) -> tuple[str, str, int, str, float]:
        """What was run."""
        return self.data, self.twist, self.seed, self.order, self.share


@dataclass(frozen=True, eq=False)
class Reviewing:
    """The rows of a job, what their labels say, what is true, and which of them have been reviewed."""

    X: Any
    given: NDArray[Any]
    truth: NDArray[Any]
    is_reviewed: NDArray[np.bool_]

    @property
    def labels(self) -> NDArray[Any]:
        """The labels as they are after the reviews so far."""
        return np.where(self.is_reviewed, self.truth, self.given)

    def decide(self) -> Decisions:
        """Return what the oracle has decided so far."""
        rows = np.flatnonzero(self.is_reviewed)
        given, truth = self.given[rows], self.truth[rows]
        decision = np.where(given == truth, KEEP, RELABEL)
        return Decisions(rows, given, decision, truth, np.full(len(rows), ""), fingerprint(self.X, self.given))

    def review(self, rows: NDArray[np.intp]) -> Reviewing:
        """Return the same after a review of more rows."""
        is_reviewed = self.is_reviewed.copy()
        is_reviewed[rows] = True
        return Reviewing(self.X, self.given, self.truth, is_reviewed)


class Round(NamedTuple):
    """What a round leaves behind: how likely test rows are of each class, and the rows to review next, best first."""

    posterior: Array
    order: NDArray[np.intp]


def follow_ours(state: Reviewing, X_test: Any, seed: int, choose: Callable[[LabelAudit, Reviewing], Any]) -> Round:
    """Fit our classifier with the reviews so far, and order the rows that are left."""
    audit = audit_labels(state.X, state.given, reviewed=state.decide(), n_jobs=1, random_state=seed)
    assert audit.model is not None  # One was fitted.
    return Round(audit.model.predict_proba(X_test), choose(audit, state))


def order_by_cleanlab(labels: NDArray[Any], posterior: Array, is_reviewed: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Order rows that nobody has reviewed by cleanlab's quality of their labels, the lowest first."""
    from cleanlab.rank import get_label_quality_scores

    quality = get_label_quality_scores(labels, posterior)
    order = np.argsort(quality, kind="stable")
    return order[~is_reviewed[order]]


def order_at_random(audit: LabelAudit, state: Reviewing, seed: int) -> NDArray[np.intp]:
    """Order rows that nobody has reviewed in a way that is the same in each round."""
    order = make_rng("review", seed).permutation(len(audit.given))
    return order[~state.is_reviewed[order]]


def follow_xgboost(state: Reviewing, X_test: Any, seed: int) -> Round:
    """Fit XGBoost to the labels after the reviews so far, and order the rows that are left by cleanlab."""
    labels, n_classes = state.labels, int(state.truth.max()) + 1
    unseen = np.zeros((len(labels), n_classes))
    for train, test in StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(state.X, labels):
        unseen[test] = predict_by_xgboost(state.X.iloc[train], labels[train], state.X.iloc[test], n_classes, seed)
    posterior = predict_by_xgboost(state.X, labels, X_test, n_classes, seed)
    return Round(posterior, order_by_cleanlab(labels, unseen, state.is_reviewed))


def predict_by_xgboost(X: Any, y: NDArray[Any], X_new: Any, n_classes: int, seed: int) -> Array:
    """Predict the posterior of every class; labels that XGBoost has not seen have none."""
    classes, labels = np.unique(y, return_inverse=True)
    model = fit_xgboost(X, labels, n_jobs=1, random_state=seed)
    return spread_columns(model.predict_proba(X_new), classes, n_classes)


def find_follower(order: str, seed: int) -> Callable[[Reviewing, Any], Round]:
    """Return what fits and orders."""
    if order == XGBOOST:
        return partial(follow_xgboost, seed=seed)
    choose: dict[str, Callable[[LabelAudit, Reviewing], Any]] = {
        LABELS: lambda audit, _: audit.suspects(budget=len(audit.given)),
        MODEL: lambda audit, _: audit.suspects(budget=len(audit.given), aim="model"),
        CLEANLAB: lambda audit, state: order_by_cleanlab(state.labels, audit.posterior, state.is_reviewed),
        RANDOM: lambda audit, state: order_at_random(audit, state, seed),
    }
    return partial(follow_ours, seed=seed, choose=choose[order])


@lru_cache(maxsize=2)
def load_table(name: str, folder: str | None, several: bool) -> Table:
    """Load a data set without classes that are too rare."""
    return drop_rare_classes(load_several(name, folder), LEAST_ROWS)[0] if several else load(name, folder)


def split_and_twist(job: Job, folder: str | None, max_rows: int) -> tuple[Split, NDArray[Any]]:
    """Return a split with the true labels, and the wrong ones beside."""
    clean = split(load_table(job.data, folder, job.several), "none", job.seed, max_rows)
    rng = make_rng("review", job.data, job.twist, job.seed)
    return clean, np.asarray(apply_twist(job.twist, clean.X, clean.y, rng)[1])


def judge(job: Job, folder: str | None, max_rows: int) -> list[CurveRow]:
    """Follow a job on one thread; what fails becomes rows that say why."""
    try:
        with work_alone():
            return follow(job, folder, max_rows)
    except Exception as error:  # A data set that one order cannot take must not end the program.
        shares = (1.0,) if job.order == ALL else SHARES
        return [CurveRow(*job[:4], share, 0, 0, 0, 0, np.nan, np.nan, summarise_error(error)) for share in shares]


def follow(job: Job, folder: str | None, max_rows: int) -> list[CurveRow]:
    """Review a data set in rounds, and judge the model after each."""
    clean, given = split_and_twist(job, folder, max_rows)
    truth, test = np.asarray(clean.y), np.asarray(clean.y_test)
    state = Reviewing(clean.X, given, truth, np.zeros(len(truth), dtype=np.bool_))
    wrong = given != truth
    rows: list[CurveRow] = []

    def record(share: float, posterior: Array) -> None:
        rows.append(
            CurveRow(
                *job[:4],
                share=share,
                rows=len(truth),
                reviewed=int(state.is_reviewed.sum()),
                wrong=int(wrong.sum()),
                found=int((wrong & state.is_reviewed).sum()),
                accuracy=float(np.mean(posterior.argmax(axis=1) == test)),
                log_loss=compute_log_loss(test, posterior),
            )
        )

    if job.order == ALL:
        model = UntwistClassifier(n_jobs=1, random_state=job.seed).fit(clean.X, truth)
        state = state.review(np.arange(len(truth)))
        record(1.0, model.predict_proba(clean.X_test))
        return rows
    run = find_follower(job.order, job.seed)
    for share, next_share in zip(SHARES, (*SHARES[1:], None), strict=True):
        done = run(state, clean.X_test)
        record(share, done.posterior)
        if next_share is not None:
            state = state.review(done.order[: round(next_share * len(truth)) - int(state.is_reviewed.sum())])
    return rows


# ---- what it comes to ----


class Curve(NamedTuple):
    """The mean accuracy and log-loss after each round, and the share of the wrong labels that were found."""

    accuracy: Array
    log_loss: Array
    found: Array


def draw_curves(rows: Sequence[CurveRow]) -> tuple[dict[str, Curve], Curve, int]:
    """Average over the splits that every order has finished; return the curves, the goal and the number of splits."""
    by_split: dict[tuple[str, str, int], dict[tuple[str, float], CurveRow]] = defaultdict(dict)
    for row in rows:
        if not row.error:
            by_split[row.data, row.twist, row.seed][row.order, row.share] = row
    orders = [order for order in ORDERS if any(row.order == order for row in rows)]
    needed = [*((order, share) for order in orders for share in SHARES), (ALL, 1.0)]
    whole = [one for one in by_split.values() if all(key in one for key in needed)]

    def average(keys: list[tuple[str, float]]) -> Curve:
        cells = [[one[key] for key in keys] for one in whole]
        return Curve(
            np.mean([[row.accuracy for row in line] for line in cells], axis=0),
            np.mean([[row.log_loss for row in line] for line in cells], axis=0),
            np.mean([[row.found / max(row.wrong, 1) for row in line] for line in cells], axis=0),
        )

    if not whole:
        raise ValueError("no split has been finished by every order")
    return {order: average([(order, share) for share in SHARES]) for order in orders}, average([(ALL, 1.0)]), len(whole)


def count_reviews(values: Array, start: float, goal: float, gain: float) -> float:
    """Return the share of the rows after whose review a share of the gain is there for the first time.

    Parameters
    ----------
    values : array
        What is measured after each share of `SHARES`.
    start, goal : float
        What is measured without any review, and with all labels right.
    gain : float
        The share of the way between.

    Returns
    -------
    float
        Between two rounds along a straight line; infinite where it is not reached.
    """
    progress = (values - start) / (goal - start)
    reached = np.flatnonzero(progress >= gain)
    if not len(reached):
        return np.inf
    here = int(reached[0])
    if here == 0:
        return 0.0
    part = (gain - progress[here - 1]) / (progress[here] - progress[here - 1])
    return float(SHARES[here - 1] + part * (SHARES[here] - SHARES[here - 1]))


def make_tables(rows: Sequence[CurveRow]) -> list[TextTable]:
    """Return the curves, and how many reviews each order needs."""
    curves, goal, n_splits = draw_curves(rows)
    tables = []
    for name, words in (("log_loss", "Log-loss"), ("accuracy", "Accuracy"), ("found", "Share of wrong labels found")):
        lines = [[order, *(f"{value:.3f}" for value in getattr(curve, name))] for order, curve in curves.items()]
        note = f"Mean of {n_splits} splits on clean test rows; all labels right: {getattr(goal, name)[0]:.3f}."
        tables.append(TextTable(words, note, ["reviewed", *(f"{share:.0%}" for share in SHARES)], lines))
    lines = []
    ours = next(order for order in ORDERS if order in curves and order != XGBOOST)
    for order, curve in curves.items():
        cells = []
        for name in ("log_loss", "accuracy"):
            start, end = getattr(curves[ours], name)[0], getattr(goal, name)[0]
            needed = (count_reviews(getattr(curve, name), start, end, gain) for gain in GAINS)
            cells += [f"{share:.1%}" if np.isfinite(share) else f"> {SHARES[-1]:.0%}" for share in needed]
        lines.append([order, *cells])
    header = ["order", *(f"{what} {gain:.0%}" for what in ("log-loss", "accuracy") for gain in GAINS)]
    note = "Share of the rows reviewed until so much of the gain is there that all labels right would bring."
    return [*tables, TextTable("Reviews needed", note, header, lines)]


def plot(rows: Sequence[CurveRow], path: Path) -> bool:
    """Draw the curves, if matplotlib is there; return whether it is."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    curves, goal, n_splits = draw_curves(rows)
    figure = Figure(figsize=(10.0, 4.0), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), ("accuracy", "log_loss"), strict=True):
        for order, curve in curves.items():
            axes.plot(100.0 * np.array(SHARES), getattr(curve, name), marker="o", markersize=3, label=order)
        axes.axhline(getattr(goal, name)[0], color="grey", linestyle="--", label="all labels right")
        axes.set_xlabel("rows reviewed, %")
        axes.set_ylabel(f"{name.replace('_', '-')} on clean test rows, mean of {n_splits} splits")
    axes.legend()
    figure.savefig(path)
    return True


def list_jobs(options: argparse.Namespace) -> list[Job]:
    """List what is to be done."""
    names = list_several(options.data) if options.several else list_names(options.data)
    tables = {name: load_table(name, options.data, options.several) for name in names}
    tables = {name: table for name, table in tables.items() if table.y is not None}
    halves = find_half(tables, looked_at=OF_THE_PAPER)
    sets = sorted(halves) if options.sets is None else options.sets
    if unknown := [name for name in sets if name not in halves]:
        raise SystemExit(f"no data set of this kind is called {unknown[0]}: {', '.join(sorted(halves))}")
    chosen = [name for name in sets if options.half in (None, halves[name])]
    twists = options.twists or (SEVERAL_TWISTS if options.several else TWISTS)
    return [
        Job(name, twist, seed, order, options.several)
        for name in chosen
        for twist in twists
        if applies(twist, tables[name])
        for seed in range(options.seeds)
        for order in (*options.orders, ALL)
    ]


def main(arguments: list[str] | None = None) -> None:
    """Follow all orders on all data sets, and print how many reviews each needs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help="folder of CSV files (default: that of UNTWIST_DATA)")
    parser.add_argument("--several", action="store_true", help="data sets of several classes")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="these data sets (default: all)")
    parser.add_argument("--half", choices=[DESIGN, JUDGING], help="one half of the data sets (default: both)")
    parser.add_argument("--twists", nargs="+", metavar="NAME", help="what is done to the labels")
    parser.add_argument("--orders", nargs="+", choices=ORDERS, default=ORDERS, help="orders of review (default: all)")
    parser.add_argument("--seeds", type=int, default=1, help="splits of each data set (default 1)")
    parser.add_argument("--rows", type=int, default=2500, help="training rows at most (default 2500)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--out", type=Path, default=Path("results/review_curve.csv"))
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    wanted = {
        (*job[:4], share): job for job in list_jobs(options) for share in ((1.0,) if job.order == ALL else SHARES)
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    work = partial(judge, folder=options.data, max_rows=options.rows)
    rows = measure(wanted, work, options.out, CurveRow, processes=options.jobs)
    for table in make_tables(rows):
        print(table)
    figure = options.out.with_suffix(".svg")
    print(f"Rows: {options.out}" + (f", figure: {figure}" if plot(rows, figure) else ""))


if __name__ == "__main__":
    main()
