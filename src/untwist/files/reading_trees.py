"""Trees from the bytes of files, checked against the columns that they are for.

What passes is safe wherever it goes: to the compiled core, to explanations and to every export.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.engines.engine import DEEPEST
from untwist.boosting.ensemble import Ensemble
from untwist.boosting.forest import WORDS_PER_SET, Forest
from untwist.data.tables import Schema
from untwist.files.layout import FOREST_ARRAYS
from untwist.files.values import ArrayReader, check_finite, read_number, require

#: Scores, leverages and gains stay below this, so that their sums are finite, in single precision too.
LARGEST_SCORE = 1e30

#: The types of those arrays of a forest that are not float64.
FOREST_TYPES: dict[str, type[np.generic]] = {
    "offset": np.int64,
    "feature": np.int32,
    "left": np.int32,
    "set": np.int32,
    "missing_left": np.uint8,
    "codes": np.uint64,
}


def read_ensemble(about: Any, arrays: ArrayReader, n_features: int, schema: Schema) -> Ensemble:
    """Return the trees of a class, or of all classes together.

    Parameters
    ----------
    about : dict
        What the header says of the ensemble.
    arrays : ArrayReader
        The arrays of the file.
    n_features : int
        The number of columns.
    schema : Schema
        Which of them hold categories.

    Returns
    -------
    Ensemble
        A ValueError where the trees make no sense.
    """
    by_name = {name: arrays.read(about[name], FOREST_TYPES.get(name, np.float64)) for name in FOREST_ARRAYS}
    for name in ("edge", "leverage", "value", "gain"):
        check_finite(by_name[name], low=0.0 if name == "gain" else -np.inf)
    if about["outputs"] > 1:
        n_trees = len(by_name["edge"])
        by_name["value"] = _spread_leaves(by_name["value"], by_name["feature"], n_trees, about["outputs"])
    forest = Forest(**by_name, n_features=n_features)
    _check_lengths(forest)
    _check_numbers(forest)
    # The core refuses what it could not walk. What it makes ready grows with the columns: where there are more of them
    # than nodes, those that no split asks for are left out, so that a small file does not ask for much memory.
    (forest if n_features <= len(forest.feature) else forest.narrow).prepared  # noqa: B018
    _check_splits(forest, schema)
    require(_find_depth(forest) <= DEEPEST, f"trees are no deeper than {DEEPEST}")
    start = read_number(about["start"], low=-LARGEST_SCORE, high=LARGEST_SCORE)
    require(start == 0.0 or forest.n_outputs == 1, "classes that share trees have their start in the first one")
    ensemble = Ensemble.from_forest(forest, arrays.read(about["losses"]), arrays.read(about["errors"]), start)
    _check_steps(forest)
    return ensemble


def _check_lengths(forest: Forest) -> None:
    n_nodes = len(forest.feature)
    n_trees = len(forest.edge)
    of_nodes = (forest.left, forest.threshold, forest.missing_left, forest.value, forest.gain, forest.set)
    require(all(len(one) == n_nodes for one in of_nodes), "arrays of nodes are of one length")
    of_trees = len(forest.leverage) == n_trees == len(forest.offset) - 1
    require(of_trees and n_trees > 0, "arrays of trees are of one length")
    require(len(forest.codes) % WORDS_PER_SET == 0, f"a set is {WORDS_PER_SET} words")


def _check_numbers(forest: Forest) -> None:
    """Refuse numbers that some reader of a forest would take for others, or that add up to none."""
    require(float(np.abs(forest.value).max(initial=0.0)) < LARGEST_SCORE, "scores are finite")
    require(float(forest.gain.max(initial=0.0)) < LARGEST_SCORE, "gains are finite")
    require(float(np.abs(forest.leverage).max(initial=0.0)) < LARGEST_SCORE, "leverages are finite")
    require(not np.isnan(forest.threshold).any(), "thresholds are numbers")
    require(bool((forest.missing_left <= 1).all()), "missing_left is 0 or 1")
    # The core is shown some forests without columns that no split asks for, and does not see these numbers then.
    is_there = (forest.feature >= -1) & (forest.feature < forest.n_features)
    require(bool(is_there.all()), "the feature of a split must exist")


def _check_splits(forest: Forest, schema: Schema) -> None:
    """Refuse splits of another kind than their column: only categories have sets, and they have nothing else."""
    split = forest.feature >= 0
    of_sets = [column for column, count in schema.n_sets.items() if count]
    by_set = np.isin(forest.feature[split], of_sets)
    require(bool(np.all((forest.set[split] >= 0) == by_set)), "columns of categories, and no others, are split by sets")


def _check_steps(forest: Forest) -> None:
    """Refuse trees whose weak hypotheses, which are leaves over leverages, are not finite."""
    leverage = np.repeat(forest.leverage, np.diff(forest.offset))
    sizes = np.abs(forest.value).reshape(len(leverage), -1).max(axis=1, initial=0.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        hypothesis = np.where(leverage == 0.0, 0.0, sizes / leverage)
    require(bool(np.isfinite(hypothesis).all()), "leaves over leverages are finite")


def _spread_leaves(of_leaves: Array, feature: NDArray[np.int32], n_trees: int, n_outputs: int) -> Array:
    """Return the values of leaves as a row per node, zeros at splits."""
    is_leaf = feature < 0
    n_leaves = int(is_leaf.sum())
    # With as many leaves as trees must have, the rows of all nodes take about twice the memory of those in the file.
    require(n_leaves == len(feature) - n_leaves + n_trees, "a tree has one leaf more than splits")
    require(len(of_leaves) == n_leaves * n_outputs, "a leaf has a value for each class")
    value = np.zeros((len(feature), n_outputs))
    value[is_leaf] = of_leaves.reshape(n_leaves, n_outputs)
    return value


def _find_depth(forest: Forest) -> int:
    """Return the splits on the longest way down. Children come after parents: `prepared` has made sure of that."""
    depth = np.zeros(len(forest.feature), dtype=np.int64)
    first = np.repeat(forest.offset[:-1], np.diff(forest.offset))
    for node in np.flatnonzero(forest.feature >= 0).tolist():
        left = int(first[node] + forest.left[node])
        depth[left] = depth[node] + 1
        depth[left + 1] = depth[node] + 1
    return int(depth.max(initial=0))
