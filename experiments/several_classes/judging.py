"""Fits a group of methods to the twisted part of a split, and judges it by what is clean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score

from experiments.datasets import Labels
from experiments.peers import compute_log_loss, find_version, spread_columns
from experiments.runner import summarise_error, work_alone
from experiments.several_classes.methods import GROUPS, Labelling, Outcome
from experiments.several_classes.rows import Key, Row
from experiments.several_classes.sets import load_set, split_twisted
from untwist.arguments import Array

__all__ = ["Job", "judge", "list_jobs"]


class Job(NamedTuple):
    """What one process does at a time: all methods of a group in one run."""

    data: str
    kind: str
    split: int
    max_rows: int
    group: str

    @property
    def keys(self) -> list[Key]:
        """The keys of the rows that it gives."""
        return [Key(*self[:4], method) for method in GROUPS[self.group].installed]


def list_jobs(sets: Mapping[str, Iterable[str]], groups: Iterable[str], splits: int, max_rows: int) -> list[Job]:
    """List all that is to be run, split by split, so that what is there early covers everything once.

    Parameters
    ----------
    sets : mapping
        By data set its kinds of noise.
    groups : iterable of str
        Names of `GROUPS`.
    splits, max_rows : int
        How many splits there are, and the most training rows.

    Returns
    -------
    list of Job
    """
    groups = list(groups)
    return [
        Job(data, kind, seed, max_rows, group)
        for seed in range(splits)
        for data, kinds in sets.items()
        for kind in kinds
        for group in groups
    ]


def judge(job: Job, folder: str | None = None) -> list[Row]:
    """Run a job. An error is a result too.

    Parameters
    ----------
    job : Job
        The job.
    folder : str, optional
        The folder of the data sets.

    Returns
    -------
    list of Row
    """
    group = GROUPS[job.group]
    rows: list[Row] = []
    try:
        table, _ = load_set(job.data, folder)
        (X, y, X_test, y_test), y_true = split_twisted(table, job.kind, job.split, job.max_rows)
        # A class may have lost all of its labels; those that are left are numbered without gaps.
        classes, labels = np.unique(y, return_inverse=True)
        base = Row(*job[:4], method="", n_classes=len(table.classes), n_rows=len(y))
        _warm_up(job.group)
        with work_alone():
            for outcome in group.judge(X.copy(), labels.astype(np.int64), X_test, job.split):
                row = replace(base, method=outcome.method, version=find_version(group.packages[outcome.method]))
                row = _judge_test_rows(row, outcome, classes, y_test)
                if outcome.labelling is not None:
                    row = _judge_labelling(row, outcome.labelling, None if y_true is None else y_true != y)
                rows.append(row)
    except Exception as error:  # Whatever a method fails of belongs in its row.
        there = {row.key for row in rows}
        rows += [Row(*key, error=summarise_error(error)) for key in job.keys if key not in there]
    return rows


_warm: set[str] = set()


def _warm_up(group: str) -> None:
    """Make a first tiny run, so that no time of importing is counted."""
    if group in _warm:
        return
    import pandas as pd

    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = pd.DataFrame(rng.normal(size=(90, 2)) + y[:, None], columns=["c0", "c1"])
    with work_alone():
        for _ in GROUPS[group].judge(X, y.astype(np.int64), X, 0):
            pass
    _warm.add(group)


def _judge_test_rows(row: Row, outcome: Outcome, classes: Labels, y_test: Labels) -> Row:
    row = replace(row, seconds=outcome.seconds, noise_seconds=outcome.noise_seconds)
    if outcome.posterior is None:
        return row
    posterior: Array = np.asarray(outcome.posterior, dtype=float)
    if not (np.all(posterior >= 0) and np.allclose(posterior.sum(axis=1), 1.0, atol=1e-3)):
        raise ValueError("predict_proba gave something that is no probability")
    posterior = spread_columns(posterior, classes, row.n_classes)
    predicted = posterior.argmax(axis=1) if outcome.predicted is None else classes[outcome.predicted]
    accuracy = float(np.mean(predicted == y_test))
    return replace(row, accuracy=accuracy, log_loss=compute_log_loss(y_test, posterior))


def _judge_labelling(row: Row, labelling: Labelling, wrong: Any) -> Row:
    """Return the row with what a method says of the labels; `wrong` says which ones are, where that is known."""
    share, low, high = map(float, labelling.share)
    flagged = np.asarray(labelling.flagged, dtype=bool)
    row = replace(
        row, share_said=share, share_low=low, share_high=high, found=labelling.found, flagged=float(flagged.mean())
    )
    if wrong is None:
        return row
    row = replace(row, share_true=float(wrong.mean()))
    if not wrong.any():
        return row
    hits = float(np.sum(flagged & wrong))
    by_margin = labelling.by_margin
    return replace(
        row,
        average_precision=float(average_precision_score(wrong, labelling.suspicion)),
        by_margin=np.nan if by_margin is None else float(average_precision_score(wrong, by_margin)),
        # What flags nothing is never wrong in it, and finds nothing.
        precision=hits / flagged.sum() if flagged.any() else np.nan,
        recall=hits / float(wrong.sum()),
        f1=2.0 * hits / float(flagged.sum() + wrong.sum()),
    )
