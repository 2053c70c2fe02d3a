"""Models as plain XGBoost boosters, for those who serve XGBoost: the boosted scores, each leaf times its leverage."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.forest import Forest
from untwist.export.scoring import Scoring
from untwist.optional import import_optional
from untwist.predicting import find_model

#: What XGBoost has for the parent of a root.
NO_PARENT = 2**31 - 1

#: Characters that XGBoost does not take in names of columns.
REFUSED_IN_NAMES = set("[]<")


def to_xgboost(model: Any) -> Any:
    """Return a model as XGBoost, whose margin is the boosted score of rows of `numbers`, one per class beyond two.

    That is `decision_function` unless noise rates or a transition matrix untwist the posterior; a positive score speaks
    for the class, and of classes that were boosted together the largest one: a tree that they share becomes one for
    each class. `probabilities(model, margins)` makes clean probabilities of it. XGBoost keeps values, thresholds and
    leaves in single precision: a value within its rounding of a threshold may go to the other side.

    Parameters
    ----------
    model : UntwistClassifier, PILBoostClassifier or FittedModel
        A fitted model.

    Returns
    -------
    xgboost.Booster
        The model, ready to be saved or to predict.
    """
    xgboost = import_optional("xgboost", "to_xgboost", extra="xgboost")
    scoring = Scoring.from_model(model)
    fitted = find_model(model)
    encoder = fitted.encoder
    forests = fitted.forests
    n_categories = encoder.schema.n_sets
    n_scores = len(forests)
    n_rounds = max(map(len, forests))
    content = _make_small_model(xgboost, encoder.n_features, n_categories, n_scores)
    trees = content["learner"]["gradient_booster"]["model"]
    trees["trees"] = _list_trees(forests, scoring.sign, n_rounds, n_categories)
    trees["tree_info"] = list(range(n_scores)) * n_rounds
    trees["iteration_indptr"] = list(range(0, n_rounds * n_scores + 1, n_scores))
    trees["gbtree_model_param"] |= {"num_trees": str(n_rounds * n_scores)}
    names = [] if encoder.feature_names is None else [str(name) for name in encoder.feature_names]
    is_refused = any(REFUSED_IN_NAMES & set(name) for name in names)
    content["learner"]["feature_names"] = [] if is_refused else names
    content["learner"]["attributes"]["untwist"] = "\n".join(scoring.describe())
    return xgboost.Booster(model_file=bytearray(json.dumps(content).encode()))


def _make_small_model(xgboost: Any, n_features: int, n_categories: dict[int, int], n_scores: int) -> dict[str, Any]:
    """Return a model of one round as XGBoost itself writes it, to put trees into."""
    settings: dict[str, Any] = {"base_score": 0.0, "objective": "binary:logitraw"}
    if n_scores > 1:
        settings |= {"objective": "multi:softprob", "num_class": n_scores}
    kinds = ["c" if column in n_categories else "q" for column in range(n_features)]
    rows = xgboost.DMatrix(np.zeros((2, n_features)), label=[0, 1], feature_types=kinds, enable_categorical=True)
    booster = xgboost.Booster(settings, [rows])
    booster.boost(rows, iteration=0, grad=np.zeros((2, n_scores)), hess=np.ones((2, n_scores)))
    content: dict[str, Any] = json.loads(booster.save_raw("json"))
    return content


def _list_trees(
    forests: tuple[Forest, ...], sign: float, n_rounds: int, n_categories: dict[int, int]
) -> list[dict[str, Any]]:
    """Return a tree of every class in turn; where the rounds of a class have ended, one that adds 0."""
    trees: list[dict[str, Any]] = []
    for index in range(n_rounds):
        for forest in forests:
            has_ended = index >= len(forest)
            value = 0.0 * forest.value if has_ended else sign * forest.value
            trees.append(_describe_tree(forest, 0 if has_ended else index, value, n_categories, len(trees)))
    return trees


def _describe_tree(
    forest: Forest, index: int, value: Array, n_categories: dict[int, int], number: int
) -> dict[str, Any]:
    """Return a tree in XGBoost's words."""
    nodes = forest.nodes_of(index)
    feature = forest.feature[nodes]
    value = value[nodes]
    left = forest.left[nodes].astype(int)
    is_split = feature >= 0
    splits = np.flatnonzero(is_split)
    parents = np.full(len(feature), NO_PARENT)
    parents[left[splits]] = splits
    parents[left[splits] + 1] = splits
    going_right = _list_categories_going_right(forest, nodes, n_categories)
    threshold = forest.threshold[nodes].copy()
    # XGBoost has no empty sets: where all known categories go left, so does whatever is not missing.
    threshold[[node for node, categories in going_right.items() if not categories]] = np.inf
    going_right = {node: categories for node, categories in going_right.items() if categories}
    condition = np.where(is_split, _find_first_above(threshold), value)
    sizes = [len(categories) for categories in going_right.values()]
    return {
        "base_weights": np.where(is_split, 0.0, value).tolist(),
        "categories": [one for categories in going_right.values() for one in categories],
        "categories_nodes": list(going_right),
        "categories_segments": np.cumsum([0, *sizes])[:-1].tolist(),
        "categories_sizes": sizes,
        "default_left": forest.missing_left[nodes].astype(int).tolist(),
        "id": number,
        "left_children": np.where(is_split, left, -1).tolist(),
        "loss_changes": forest.gain[nodes].tolist(),
        "parents": parents.tolist(),
        "right_children": np.where(is_split, left + 1, -1).tolist(),
        "split_conditions": condition.astype(np.float32).astype(float).tolist(),
        "split_indices": np.where(is_split, feature, 0).tolist(),
        "split_type": [int(node in going_right) for node in range(len(feature))],
        "sum_hessian": _count_leaves(splits, left, len(feature)).tolist(),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(forest.n_features),
            "num_nodes": str(len(feature)),
            "size_leaf_vector": "1",
        },
    }


def _list_categories_going_right(forest: Forest, nodes: slice, n_categories: dict[int, int]) -> dict[int, list[int]]:
    """Return, for each node of a tree that splits by a set, the known categories that are not in it."""
    going_right = {}
    for node in range(nodes.start, nodes.stop):
        if forest.feature[node] >= 0 and forest.set[node] >= 0:
            going_left = set(forest.categories_going_left(node))
            known = range(n_categories[int(forest.feature[node])])
            going_right[node - nodes.start] = [one for one in known if one not in going_left]
    return going_right


def _count_leaves(splits: NDArray[np.intp], left: NDArray[np.int_], n_nodes: int) -> Array:
    """Return the leaves below each node, in place of its rows, of which nothing is known any more."""
    n_leaves = np.ones(n_nodes)
    for node in splits[::-1]:
        n_leaves[node] = n_leaves[left[node]] + n_leaves[left[node] + 1]
    return n_leaves


def _find_first_above(threshold: Array) -> NDArray[np.float32]:
    """Return the smallest single above what a threshold rounds to: infinity where all numbers go left."""
    with np.errstate(over="ignore"):
        return np.nextafter(threshold.astype(np.float32), np.float32(np.inf))
