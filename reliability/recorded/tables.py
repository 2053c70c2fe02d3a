"""Small tables with wrong labels, the same on every machine: what cases fit to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_wine, make_classification

from untwist.audit import Decisions
from untwist.data.fingerprints import fingerprint

__all__ = ["Table", "cut_folds", "decide", "draw_branches", "draw_classes", "draw_groups", "draw_mixed_columns",
           "draw_sourced", "draw_two", "draw_votes", "draw_weights", "load_cancer", "load_wines"]  # fmt: skip

CLASS_NAMES = np.array(["ash", "beech", "elm", "fir", "oak", "pine", "yew", "alder", "birch", "cedar", "lime", "rowan"])
CITIES = np.array(["Bonn", "Leipzig", "Trier", "Ulm"])


class Table(NamedTuple):
    """Rows, their labels, and what these would be if none was wrong."""

    X: Any
    y: NDArray[Any]
    truth: NDArray[Any]


def draw_two(rows: int = 500, rates: tuple[float, float] = (0.05, 0.3), seed: int = 0) -> Table:
    """Two classes, 0 and 1; a share of each bears the label of the other."""
    X, truth = make_classification(rows, 6, n_informative=4, class_sep=1.5, flip_y=0.0, random_state=seed)
    is_wrong = np.random.default_rng(seed).random(rows) < np.take(rates, truth)
    return Table(X, np.where(is_wrong, 1 - truth, truth), truth)


def draw_classes(
    rows: int = 500, classes: int = 3, share: float = 0.2, *, by_pairs: bool = False, seed: int = 0
) -> Table:
    """Several named classes; a share of the labels is another one: any, or by pairs the next one."""
    X, truth = make_classification(
        rows,
        8,
        n_informative=6,
        n_classes=classes,
        n_clusters_per_class=1,
        class_sep=2.0,
        flip_y=0.0,
        random_state=seed,
    )
    rng = np.random.default_rng(seed)
    away = np.ones(rows, dtype=int) if by_pairs else rng.integers(1, classes, rows)
    codes = np.where(rng.random(rows) < share, (truth + away) % classes, truth)
    return Table(X, CLASS_NAMES[codes], CLASS_NAMES[truth])


def load_cancer(rows: int = 400) -> Table:
    """Two classes that nobody has mislabelled, of scikit-learn's data."""
    X, y = load_breast_cancer(return_X_y=True)
    return Table(X[:rows], y[:rows], y[:rows])


def load_wines() -> Table:
    """Three classes that nobody has mislabelled, of scikit-learn's data."""
    X, y = load_wine(return_X_y=True)
    return Table(X, y, y)


def draw_mixed_columns(rows: int = 500, seed: int = 0) -> Table:
    """A data frame with numbers, gaps, a column of few and one of many categories."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "amount": np.where(rng.random(rows) < 0.15, np.nan, rng.normal(size=rows)),
            "kind": pd.Categorical(rng.choice(["new", "old", "used", "worn"], rows)),
            "town": pd.Categorical([f"town {number}" for number in rng.integers(0, 40, rows)]),
        }
    )
    of_town = np.cos(1.7 * X["town"].cat.codes)
    score = X["age"] / 40.0 - 1.3 + X["amount"].fillna(0.5) + (X["kind"] == "old") + 1.5 * of_town
    truth = np.where(score > 0, "yes", "no")
    is_wrong = rng.random(rows) < 0.12
    return Table(X, np.where(is_wrong, np.where(truth == "yes", "no", "yes"), truth), truth)


def draw_sourced(rows: int = 600, classes: int = 2, bad: float = 0.45, seed: int = 0) -> tuple[Table, NDArray[Any]]:
    """Labels from four cities, and the city of each; one of them is often wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    score = X[:, 0] + 0.5 * X[:, 1]
    truth = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    source = CITIES[rng.integers(0, len(CITIES), rows)]
    is_wrong = rng.random(rows) < np.where(source == "Leipzig", bad, 0.03)
    codes = np.where(is_wrong, (truth + rng.integers(1, classes, rows)) % classes, truth)
    return Table(X, CLASS_NAMES[codes], CLASS_NAMES[truth]), source


def draw_votes(things: int = 180, votes: int = 3, seed: int = 0) -> tuple[Table, NDArray[Any], NDArray[Any]]:
    """Several labels of each of some things; who gave each label, and what it is a label of."""
    rng = np.random.default_rng(seed)
    skill = np.array([0.55, 0.75, 0.85, 0.95])
    X = rng.normal(size=(things, 4))
    item = np.repeat(np.arange(things), votes)
    truth = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)[item]
    source = np.concatenate([rng.permutation(len(skill))[:votes] for _ in range(things)])
    is_right = rng.random(len(item)) < skill[source]
    return Table(X[item], np.where(is_right, truth, 1 - truth), truth), CITIES[source], item


def draw_groups(groups: int = 100, size: int = 5, seed: int = 0) -> tuple[Table, NDArray[Any]]:
    """Rows of the same patients, and the patient of each; errors of a patient go together."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(groups), size)
    X = rng.normal(size=(groups, 4))[patient] + 0.4 * rng.normal(size=(len(patient), 4))
    truth = (X[:, 0] + 0.7 * X[:, 1] > 0).astype(int)
    is_wrong = (rng.random(groups) < 0.1)[patient] | (rng.random(len(patient)) < 0.08)
    return Table(X, np.where(is_wrong, 1 - truth, truth), truth), patient


def draw_branches(rows: int = 600, seed: int = 0) -> Table:
    """A data frame whose column of branches is no feature: one branch gives wrong labels."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["first", "second", "third"])
    X["branch"] = pd.Categorical(rng.choice(CITIES, rows))
    truth = np.where(X["first"] + 0.6 * X["second"] > 0, "yes", "no")
    is_wrong = rng.random(rows) < np.where(X["branch"] == "Leipzig", 0.45, 0.02)
    return Table(X, np.where(is_wrong, np.where(truth == "yes", "no", "yes"), truth), truth)


def draw_weights(rows: int, seed: int = 0) -> NDArray[np.float64]:
    """Sample weights of which some are 0."""
    return np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], rows)


def decide(table: Table, rows: NDArray[np.intp]) -> Decisions:
    """Decide on some rows by the truth, and skip every tenth of them."""
    given, right = table.y[rows], table.truth[rows].copy()
    is_skipped = np.arange(len(rows)) % 10 == 9
    right[is_skipped] = given[is_skipped]
    decision = np.where(is_skipped, "skip", np.where(given == right, "keep", "relabel"))
    return Decisions(rows, given, decision, right, np.full(len(rows), ""), fingerprint(table.X, table.y))


def cut_folds(rows: int, folds: int = 4) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Pairs of rows to train on and to judge; the last rows are never judged, as in time."""
    ends = np.linspace(0, rows - rows // 10, folds + 1).astype(int)
    for first, last in pairwise(ends):
        judged = np.arange(first, last)
        yield np.setdiff1d(np.arange(rows), judged), judged
