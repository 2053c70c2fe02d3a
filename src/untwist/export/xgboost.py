"""Models as plain XGBoost boosters, for those who serve XGBoost: the boosted scores, each leaf times its leverage."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from untwist.arguments import Array
from untwist.boosting.forest import Forest
from untwist.classifier import PILBoostClassifier
from untwist.export.scoring import Scoring, members, needed

__all__ = ["to_xgboost"]


def to_xgboost(model: PILBoostClassifier) -> Any:
    """A model as an xgboost.Booster whose margin is the boosted score of rows of `numbers`, one per class beyond two.

    That is `decision_function` unless noise rates untwist the posterior; a positive score speaks for the class.
    `probabilities(model, margins)` makes clean probabilities of it. XGBoost keeps values, thresholds and leaves in
    single precision: a value within its rounding of a threshold may go to the other side.
    """
    xgboost = needed("xgboost", "to_xgboost")
    scoring = Scoring.of(model)
    n_features, n_scores = scoring.forests[0].n_features, len(scoring.forests)
    known = {column: len(categories) for column, categories in model._schema.categories.items()}
    settings: dict[str, Any] = {"base_score": 0.0, "objective": "binary:logitraw"}
    if n_scores > 1:
        settings |= {"objective": "multi:softprob", "num_class": n_scores}
    kinds = ["c" if column in known else "q" for column in range(n_features)]
    rows = xgboost.DMatrix(np.zeros((2, n_features)), label=[0, 1], feature_types=kinds, enable_categorical=True)
    booster = xgboost.Booster(settings, [rows])
    booster.boost(rows, iteration=0, grad=np.zeros((2, n_scores)), hess=np.ones((2, n_scores)))  # a model of one round
    content = json.loads(booster.save_raw("json"))
    trees = content["learner"]["gradient_booster"]["model"]
    n_rounds = max(map(len, scoring.forests))
    trees["trees"] = []
    for index in range(n_rounds):
        for forest in scoring.forests:
            value, at = (scoring.sign * forest.value, index) if index < len(forest) else (0.0 * forest.value, 0)
            trees["trees"].append(_tree(forest, at, value, known, len(trees["trees"])))  # a class that ended adds 0
    trees["tree_info"] = list(range(n_scores)) * n_rounds
    trees["iteration_indptr"] = list(range(0, n_rounds * n_scores + 1, n_scores))
    trees["gbtree_model_param"] |= {"num_trees": str(n_rounds * n_scores)}
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    content["learner"]["feature_names"] = [] if any(set("[]<") & set(name) for name in names) else names  # it has rules
    content["learner"]["attributes"]["untwist"] = "\n".join(scoring.description())
    return xgboost.Booster(model_file=bytearray(json.dumps(content).encode()))


def _tree(forest: Forest, index: int, value: Array, known: dict[int, int], number: int) -> dict[str, Any]:
    """A tree in XGBoost's words."""
    nodes = slice(*forest.offset[index : index + 2].tolist())
    feature, left, value = forest.feature[nodes], forest.left[nodes].astype(int), value[nodes]
    inner = feature >= 0
    children = np.where(inner, left, -1)
    parents = np.full(len(feature), 2**31 - 1)
    parents[left[inner]] = parents[left[inner] + 1] = np.flatnonzero(inner)
    condition = np.where(inner, _first_above(forest.threshold[nodes]), value)
    sets: dict[int, list[int]] = {}
    for node in np.flatnonzero(inner):
        at = nodes.start + int(node)
        if forest.set[at] >= 0:
            inside = set(members(forest, at))
            sets[int(node)] = [one for one in range(known[int(feature[node])]) if one not in inside]
    cover = np.ones(len(feature))  # not known any more: each leaf counts alike
    for node in np.flatnonzero(inner)[::-1]:
        cover[node] = cover[left[node]] + cover[left[node] + 1]
    sizes = [len(right) for right in sets.values()]
    return {
        "base_weights": np.where(inner, 0.0, value).tolist(),
        "categories": [one for right in sets.values() for one in right],
        "categories_nodes": list(sets),
        "categories_segments": np.cumsum([0, *sizes])[:-1].tolist(),
        "categories_sizes": sizes,
        "default_left": forest.missing_left[nodes].astype(int).tolist(),
        "id": number,
        "left_children": children.tolist(),
        "loss_changes": forest.gain[nodes].tolist(),
        "parents": parents.tolist(),
        "right_children": np.where(inner, left + 1, -1).tolist(),
        "split_conditions": condition.astype(np.float32).astype(float).tolist(),
        "split_indices": np.where(inner, feature, 0).tolist(),
        "split_type": [int(node in sets) for node in range(len(feature))],
        "sum_hessian": cover.tolist(),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(forest.n_features),
            "num_nodes": str(len(feature)),
            "size_leaf_vector": "1",
        },
    }


def _first_above(threshold: Array) -> NDArray[np.float32]:
    """The smallest single above what a threshold rounds to, within what singles there are."""
    most = np.finfo(np.float32).max
    return np.nextafter(np.clip(threshold, -most, most).astype(np.float32), np.float32(most))
