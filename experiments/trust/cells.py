"""The cells by which it is judged what is said of labels: a table, a kind of errors, and the labels that come of them.

A cell is arrays alone, so that it can be measured where neither pandas nor the tables are. All that is drawn depends on
names, so that the same cells are made today and tomorrow.
"""

from __future__ import annotations

import lzma
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs, make_classification, make_friedman1, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from experiments.datasets import Labels
from experiments.protocol import make_rng
from experiments.trust.real_tables import RealTable, list_tables, load_noisy_tables
from experiments.trust.worlds import flip, spread_evenly
from untwist.arguments import Array

__all__ = [
    "CLEAN",
    "FAR",
    "FOLLOWING",
    "PLANTED",
    "REAL",
    "TOLD",
    "Cell",
    "list_cells",
    "load_cells",
    "predict_unseen",
    "save_cells",
]

#: What errors a cell has: none, by the class alone, moved far in an order, by the features, and errors nobody planted.
CLEAN, PLANTED, FAR, FOLLOWING, REAL = "clean", "by class", "far", "by features", "real"
#: No errors, and the audit is told that labels are outcomes of chance.
TOLD = "told"
#: Rows of a table with classes, and of one whose column is cut, at most.
MOST_ROWS, MOST_CUT_ROWS = 3_000, 2_000
#: A class has so many rows, at least; others are dropped.
LEAST_OF_A_CLASS = 8
#: Errors are planted in tables of so many rows, at least, and whose smallest class has so many.
LEAST_ROWS, LEAST_PLANTED = 250, 20
#: A level of a column that is cut has so many rows, at least.
LEAST_OF_A_LEVEL = 15
#: Levels that a column is cut into, at least and at most.
LEVELS = (3, 7)
#: Columns of a table that are cut, at most: of one with classes, and of one without.
MOST_COLUMNS = {True: 4, False: 3}
#: A class is rare that has less than this part of an equal share: of two classes, a tenth of the rows.
RARE = 0.2
#: The share of columns whose levels are moved as well.
MOVED = 0.4
#: How many labels are moved by half of the levels or more, and how many bear another label by the features.
FAR_RATE, FOLLOWING_RATE = 0.1, 0.1
#: A label of a row near another class is that of this class, at most, so many times as often as a forest takes the row
#: for it, and with this probability. Where classes are clear, fewer labels are wrong than elsewhere.
MOST_TIMES, MOST_AT_BOUNDARY = 2.0, 0.75
#: Audits with different seeds of cells that are asked whether they agree; of what is moved far, and of all others.
SEEDS_AGREEING, SEEDS_FAR = 8, 4
#: Cells of either number of classes that are audited with so many seeds, and their rows at most.
CELLS_AGREEING, ROWS_AGREEING = 8, 2_500
#: Two classes: by name the rates of the first and the second.
TWO_RATES = {
    "symmetric .1": (0.1, 0.1),
    "symmetric .2": (0.2, 0.2),
    "symmetric .4": (0.4, 0.4),
    "by class .1/.4": (0.1, 0.4),
    "first class .2": (0.2, 0.0),
    "second class .2": (0.0, 0.2),
}


@dataclass(frozen=True, eq=False)
class Cell:
    """Rows with labels, and what is true of them.

    Attributes
    ----------
    name, kind : str
        The table, and what was done to it.
    source : str
        Cells of one source are no independent evidence.
    group : str
        `CLEAN`, `PLANTED`, `FAR`, `FOLLOWING`, `REAL` or `TOLD`.
    X : array of float32
        The rows, categories as codes.
    y : array of int
        The labels, from 0 to `n_classes` - 1.
    true : array of int or None
        The classes; None where nobody knows them.
    n_classes : int
        How many classes there are.
    rate : float
        The share of wrong labels that was planted, on average; NaN where no rate was.
    in_order : bool
        Whether labels are whole numbers, so that their order is known; else they are names.
    n_seeds : int
        With how many seeds it is audited.
    """

    name: str
    kind: str
    source: str
    group: str
    X: Any
    y: Labels
    true: Labels | None
    n_classes: int
    rate: float = 0.0
    in_order: bool = False
    n_seeds: int = 1

    @property
    def key(self) -> tuple[str, str]:
        """What it is called in a file of rows."""
        return self.name, self.kind


def save_cells(cells: list[Cell], file: Path) -> None:
    """Write cells to a file. An array that several of them share is there once.

    Parameters
    ----------
    cells : list of Cell
        The cells.
    file : Path
        Where they go.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(file, "wb", preset=3) as out:
        pickle.dump([vars(cell) for cell in cells], out, protocol=4)


def load_cells(file: Path) -> list[Cell]:
    """Read cells from a file that `save_cells` has written. It is a pickle: read none of others.

    Parameters
    ----------
    file : Path
        The file.

    Returns
    -------
    list of Cell
    """
    with lzma.open(file) as content:
        return [Cell(**one) for one in pickle.load(content)]


def list_cells(folder: str | None, quick: bool = False) -> list[Cell]:
    """Make all cells.

    Parameters
    ----------
    folder : str, optional
        The folder of CSV files, by default that of the environment.
    quick : bool
        Whether to make a few small ones alone, of each group.

    Returns
    -------
    list of Cell
    """
    if quick:
        return _list_quick()
    cells: list[Cell] = []
    cut_sources: set[str] = set()
    for table in list_tables(folder):
        cells += _list_of_classes(table)
        # Tables that group the classes of one table in different ways have the same columns.
        if table.source not in cut_sources:
            cut_sources.add(table.source)
            cells += _cut_columns(table)
    cells += [*_simulate_few(), *_simulate_hard(), *_simulate_chance(), *_simulate_order(), *_simulate_moons()]
    cells += _simulate_planted()
    for noisy, given in load_noisy_tables(folder):
        rows = make_rng(noisy.name, "rows").permutation(len(given))[:MOST_ROWS]
        true = None if noisy.y is None else noisy.y[rows]
        X = noisy.X[rows].astype(np.float32)
        cells.append(Cell(noisy.name, "real", noisy.source, REAL, X, given[rows], true, int(given.max()) + 1, np.nan))
    cells = [replace(cell, n_seeds=SEEDS_FAR) if cell.group == FAR else cell for cell in cells]
    return _ask_for_agreement(cells)


def _list_quick() -> list[Cell]:
    cells = [*islice(_simulate_few(12), 1), *islice(_simulate_chance(300), 2), *islice(_simulate_moons(300), 1)]
    order = list(islice(_simulate_order(400), 2))
    X, y = make_blobs(360, centers=3, n_features=3, cluster_std=1.5, random_state=0)
    blobs = RealTable("blobs", "blobs", X, y, np.ones(3, dtype=bool))
    planted = [
        cell
        for cell in _plant(blobs.name, blobs.source, X.astype(np.float32), y)
        if cell.kind in ("classes", "even .2")
    ]
    return [*cells, *order, *(replace(cell, n_seeds=1 + (cell.group == PLANTED)) for cell in planted)]


def _ask_for_agreement(cells: list[Cell]) -> list[Cell]:
    """Let some cells of two and of several classes be audited with several seeds: the first of small tables."""
    left = {True: CELLS_AGREEING, False: CELLS_AGREEING}
    changed = []
    for cell in cells:
        are_two = cell.n_classes == 2
        if cell.kind in ("symmetric .2", "even .2") and len(cell.y) <= ROWS_AGREEING and left[are_two]:
            left[are_two] -= 1
            cell = replace(cell, n_seeds=SEEDS_AGREEING)
        changed.append(cell)
    return changed


# ---- errors by the class alone ----


def mix_up_pairs(n_classes: int, rate: float, rng: np.random.Generator, n_pairs: int | None = None) -> Array:
    """Return the matrix by which each class bears the label of one other, or only the first of them do."""
    matrix = np.eye(n_classes)
    order = rng.permutation(n_classes)
    for i in range(n_classes if n_pairs is None else n_pairs):
        matrix[order[i], order[i]] -= rate
        matrix[order[i], order[(i + 1) % n_classes]] += rate
    return matrix


def draw_matrix(n_classes: int, rate: float, rng: np.random.Generator) -> Array:
    """Return a matrix whose classes are wrong unequally often, and rather as some classes than as others."""
    matrix = np.eye(n_classes)
    for true in range(n_classes):
        others = rng.random(n_classes) ** 3
        others[true] = 0.0
        wrong = rate * rng.uniform(0.3, 1.7)
        matrix[true] = others / others.sum() * wrong
        matrix[true, true] = 1.0 - wrong
    return matrix


def move_far(n_classes: int, rate: float) -> Array:
    """Return the matrix by which labels move by half of the levels or more, wherever there is such a level."""
    matrix = np.eye(n_classes)
    half = -(-n_classes // 2)
    for true in range(n_classes):
        far = [label for label in range(n_classes) if abs(true - label) >= half]
        for label in far:
            matrix[true, true] -= rate / len(far)
            matrix[true, label] += rate / len(far)
    return matrix


def _list_of_classes(table: RealTable) -> list[Cell]:
    """Make the cells of a table with classes: as it is, and with errors where it is large enough to tell them."""
    if table.y is None:
        return []
    rows = make_rng(table.name, "rows").permutation(len(table.y))[:MOST_ROWS]
    X, y = table.X[rows].astype(np.float32), table.y[rows]
    kept = np.bincount(y)[y] >= LEAST_OF_A_CLASS
    X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    if y.max() == 0:
        return []
    few = len(y) < LEAST_ROWS or np.bincount(y).min() < LEAST_PLANTED
    return list(islice(_plant(table.name, table.source, X, y), 1 if few else None))


def _plant(name: str, source: str, X: Any, y: Labels) -> Iterator[Cell]:
    """Make the cells of a table: clean labels first, then each kind of errors."""
    n_classes = int(y.max()) + 1
    counts = np.bincount(y)
    kind = "imbalanced" if counts.min() * n_classes < RARE * len(y) else "classes"
    clean = Cell(name, kind, source, CLEAN, X, y, y, n_classes)
    yield clean
    matrices: dict[str, Array] = {}
    if n_classes == 2:
        matrices = {kind: np.array([[1 - a, a], [b, 1 - b]]) for kind, (a, b) in TWO_RATES.items()}
    else:
        matrices = {
            f"even .{int(10 * rate)}": spread_evenly(np.array([rate]), n_classes)[0] for rate in (0.1, 0.2, 0.4)
        }
        matrices |= {
            f"pairs {text}": mix_up_pairs(n_classes, rate, make_rng(name, "pairs", text))
            for text, rate in ((".2", 0.2), (".35", 0.35))
        }
        matrices["one pair .35"] = mix_up_pairs(n_classes, 0.35, make_rng(name, "one pair"), 1)
        matrices["random .25"] = draw_matrix(n_classes, 0.25, make_rng(name, "random"))
    for kind, matrix in matrices.items():
        labels = flip(y, matrix, make_rng(name, kind, "labels"))
        rate = float(counts @ (1.0 - np.diag(matrix)) / counts.sum())
        if len(np.unique(labels)) == n_classes:
            yield replace(clean, kind=kind, group=PLANTED, y=labels, rate=rate)
    for kind, labels in _follow_features(name, X, y):
        if len(np.unique(labels)) == n_classes:
            yield replace(clean, kind=kind, group=FOLLOWING, y=labels, rate=np.nan)


# ---- errors that follow the features ----


def predict_unseen(X: Any, y: Labels) -> Array:
    """Predict posteriors by a forest that has not seen the row, in three folds; missing values are a number far off."""
    values = np.nan_to_num(np.asarray(X, dtype=np.float64), nan=-999.0)
    forest = RandomForestClassifier(60, random_state=0, n_jobs=1)
    return np.asarray(cross_val_predict(forest, values, y, cv=3, method="predict_proba"))


def _follow_features(name: str, X: Any, y: Labels) -> Iterator[tuple[str, Labels]]:
    """Yield labels of which up to a tenth are wrong, and the features say which."""
    wanted = FOLLOWING_RATE * len(y)
    rng = make_rng(name, "following")
    # A corner: the rows of the largest class whose value of a column is highest get the next label.
    spread = [j for j in range(X.shape[1]) if len(np.unique(X[:, j])) > 2]
    if spread:
        column = np.nan_to_num(X[:, rng.choice(spread)], nan=-np.inf)
        largest = int(np.bincount(y).argmax())
        other = (largest + 1) % (int(y.max()) + 1)
        rows = np.flatnonzero(y == largest)
        rows = rows[np.argsort(-column[rows], kind="stable")][: int(min(wanted, len(rows) / 2))]
        corner = y.copy()
        corner[rows] = other
        yield "corner .1", corner
    # The boundary: rows are taken for the class that is likeliest beside their own, the oftener the likelier it is.
    posterior = predict_unseen(X, y)
    beside = posterior.copy()
    beside[np.arange(len(y)), y] = -1.0
    nearness = beside.max(axis=1)
    chance = np.minimum(nearness * min(wanted / nearness.sum(), MOST_TIMES), MOST_AT_BOUNDARY)
    yield "boundary", np.where(rng.random(len(y)) < chance, beside.argmax(axis=1), y)


# ---- classes in an order ----


def cut(values: Array, n_levels: int) -> Labels:
    """Cut numbers into levels by their quantiles; a missing one is taken for the median."""
    known = np.where(np.isfinite(values), values, np.nanmedian(values))
    edges = np.unique(np.quantile(known, np.arange(1, n_levels) / n_levels))
    return np.unique(np.searchsorted(edges, known, side="right"), return_inverse=True)[1]


def _cut_columns(table: RealTable) -> Iterator[Cell]:
    """Make a target of some columns, which the others predict: anybody can make such a table of any other."""
    rng = make_rng(table.name, "levels")
    columns = rng.permutation(np.flatnonzero(table.is_numeric))[: MOST_COLUMNS[table.y is not None]]
    for column in columns.tolist():
        rows = rng.permutation(len(table.X))[:MOST_CUT_ROWS]
        levels = cut(table.X[rows, column], int(rng.integers(LEVELS[0], LEVELS[1] + 1)))
        others = np.delete(table.X[rows], column, axis=1)
        if table.y is not None and rng.random() < 0.5:
            others = np.column_stack([others, table.y[rows]])
        is_moved, in_order = rng.random() < MOVED, bool(rng.random() < 0.5)
        if levels.max() >= LEVELS[0] - 1 and np.bincount(levels).min() >= LEAST_OF_A_LEVEL:
            yield from _list_ordinal(f"{table.name}, column {column}", table.source, others, levels, is_moved, in_order)


def _list_ordinal(name: str, source: str, X: Array, levels: Labels, is_moved: bool, in_order: bool) -> Iterator[Cell]:
    n_classes = int(levels.max()) + 1
    name = f"{name} in {n_classes}"
    clean = Cell(name, "ordinal", source, CLEAN, X.astype(np.float32), levels, levels, n_classes, in_order=in_order)
    yield clean
    if is_moved:
        matrix = move_far(n_classes, FAR_RATE)
        counts = np.bincount(levels)
        rate = float(counts @ (1.0 - np.diag(matrix)) / counts.sum())
        labels = flip(levels, matrix, make_rng(name, "far"))
        yield replace(clean, kind="far .1", group=FAR, y=labels, rate=rate)


# ---- simulated tables ----


def _draw_seed(*parts: object) -> int:
    return int(make_rng("judging", *parts).integers(1 << 30))


def _simulate_few(n_classes: int = 30) -> Iterator[Cell]:
    """Simulate 60 tables of few rows a class, from far apart to overlapping."""
    shapes = [*[(n_classes, 10, 1.0)] * 20, *[(n_classes, 10, 3.0)] * 15, *[(15, 12, 2.0)] * 15, *[(100, 10, 1.0)] * 10]
    for number, (classes, rows, spread) in enumerate(shapes):
        seed = _draw_seed("few", number)
        X, y = make_blobs(classes * rows, centers=classes, n_features=10, cluster_std=spread, random_state=seed)
        name = f"{classes} blobs of {rows}, spread {spread:g}, {number}"
        yield Cell(name, "few rows", "blobs", CLEAN, X.astype(np.float32), y, y, classes)


def _simulate_hard() -> Iterator[Cell]:
    """Simulate classes that overlap, none of whose labels is wrong, and classes of which some are rare."""
    settings: list[tuple[str, int, float, list[float] | None]]
    settings = [("hard", 2, 1.0, None), ("hard", 3, 0.6, None), ("hard", 5, 0.8, None), ("hard", 10, 1.0, None)]
    settings += [("imbalanced", 2, 0.8, [0.95, 0.05]), ("imbalanced", 4, 1.0, [0.7, 0.2, 0.07, 0.03])]
    for kind, n_classes, apart, weights in settings:
        for number in range(6):
            X, y = make_classification(
                2_000,
                n_features=12,
                n_informative=8,
                n_classes=n_classes,
                n_clusters_per_class=1,
                class_sep=apart * (0.5 if n_classes == 2 and weights is None else 1.0),
                flip_y=0.0,
                weights=weights,
                random_state=_draw_seed(kind, n_classes, number),
            )
            name = f"{n_classes} classes, {number}"
            yield Cell(f"{kind}, {name}", kind, f"{kind} of {n_classes}", CLEAN, X.astype(np.float32), y, y, n_classes)


def _simulate_planted() -> Iterator[Cell]:
    """Simulate tables of several classes that can be told apart, without and with errors."""
    for number in range(8):
        n_classes = 3 + number % 6
        X, y = make_classification(
            3_000,
            n_features=15,
            n_informative=8,
            n_classes=n_classes,
            n_clusters_per_class=1 + number % 2,
            class_sep=2.5,
            flip_y=0.0,
            random_state=_draw_seed("planted", number),
        )
        yield from _plant(f"{n_classes} clear classes, {number}", f"clear classes, {number}", X.astype(np.float32), y)


def _simulate_chance(n_rows: int = 3_000) -> Iterator[Cell]:
    """Simulate outcomes that are what is likeliest in three of four cases, and chance in the fourth: none is wrong."""
    for number in range(12):
        n_classes = 2 + number % 4
        rng = make_rng("judging", "chance", number)
        X = rng.normal(size=(n_rows, 8))
        edges = [(0.0,), (-0.4, 0.4), (-0.7, 0.0, 0.7), (-0.8, -0.25, 0.25, 0.8)][n_classes - 2]
        likeliest = np.searchsorted(edges, X[:, 0] if number < 8 else 0.7 * (X[:, 0] + X[:, 1]))
        y = flip(likeliest, spread_evenly(np.array([0.25]), n_classes)[0], rng)
        untold = Cell(f"chance, {number}", "chance", "chance", CLEAN, X.astype(np.float32), y, y, n_classes)
        yield untold
        yield replace(untold, kind="chance, told", group=TOLD)


def _simulate_order(n_rows: int = 3_000) -> Iterator[Cell]:
    """Simulate levels of a number that other columns predict, more or less well."""
    for number in range(12):
        X, value = make_friedman1(n_rows, noise=(1.0, 3.0)[number % 2], random_state=_draw_seed("friedman", number))
        n_levels = (6, 5, 4, 7, 3, 6)[number % 6]
        yield from _list_ordinal(f"friedman, {number}", "friedman", X, cut(value, n_levels), True, number % 4 < 2)


def _simulate_moons(n_rows: int = 2_000) -> Iterator[Cell]:
    """Simulate two moons, one end of one of which bears the label of the other: no data can tell."""
    for number in range(8):
        X, y = make_moons(n_rows, noise=0.2, random_state=_draw_seed("moons", number))
        # All rows of the upper moon that lie left of this, which are a fifth of the rows or a tenth.
        end = np.quantile(X[y == 0, 0], (0.4, 0.2)[number % 2])
        labels = np.where((y == 0) & (X[:, 0] < end), 1, y)
        yield Cell(f"moons, {number}", "moons", "moons", FOLLOWING, X.astype(np.float32), labels, y, 2, np.nan)
