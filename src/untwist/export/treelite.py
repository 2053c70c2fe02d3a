"""Models as treelite: the boosted scores. What follows them, links and untwisting, treelite has no words for."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from untwist.arguments import Array
from untwist.boosting.forest import Forest
from untwist.export.scoring import BELOW_CATEGORIES, Scoring
from untwist.optional import import_optional


def to_treelite(model: Any) -> Any:
    """Return a model as treelite, which gives the boosted score of rows of `numbers`, one per class beyond two.

    That is `decision_function` unless noise rates or a transition matrix untwist the posterior; a positive score speaks
    for the class, and of classes that were boosted together the largest one. None of treelite's postprocessors is the
    link of the alpha-loss or keeps posteriors within limits, so that probabilities are made outside:
    `probabilities(model, scores)`.

    Parameters
    ----------
    model : UntwistClassifier, PILBoostClassifier or FittedModel
        A fitted model.

    Returns
    -------
    treelite.Model
        The model, ready to be saved or to predict.
    """
    model_builder = import_optional("treelite.model_builder", "to_treelite", extra="export")
    scoring = Scoring.from_model(model)
    n_scores = scoring.n_scores
    every_class = -1
    class_of_tree = [
        every_class if scoring.has_vectors else index
        for index, forest in enumerate(scoring.forests)
        for _ in range(len(forest))
    ]
    n_trees = len(class_of_tree)
    builder = model_builder.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=model_builder.Metadata(
            num_feature=scoring.forests[0].n_features,
            task_type="kMultiClf" if n_scores > 1 else "kBinaryClf",
            average_tree_output=False,
            num_target=1,
            num_class=[n_scores],
            leaf_vector_shape=(1, n_scores if scoring.has_vectors else 1),
        ),
        tree_annotation=model_builder.TreeAnnotation(num_tree=n_trees, target_id=[0] * n_trees, class_id=class_of_tree),
        postprocessor=model_builder.PostProcessorFunc("identity_multiclass" if n_scores > 1 else "identity"),
        base_scores=[0.0] * n_scores,
        attributes={"untwist": scoring.describe()},
    )
    for forest in scoring.forests:
        value = scoring.sign * forest.value
        # A threshold is infinite where all that is not missing goes to one side.
        threshold = np.clip(forest.threshold, -sys.float_info.max, sys.float_info.max)
        for tree in range(len(forest)):
            _build_tree(builder, forest, tree, value, threshold)
    return builder.commit()


def _build_tree(builder: Any, forest: Forest, tree: int, value: Array, threshold: Array) -> None:
    nodes = forest.nodes_of(tree)
    builder.start_tree()
    for node in range(nodes.start, nodes.stop):
        builder.start_node(node - nodes.start)
        if forest.feature[node] < 0:
            builder.leaf(value[node].tolist())
        else:
            _build_split(builder, forest, node, float(threshold[node]))
        builder.end_node()
    builder.end_tree()


def _build_split(builder: Any, forest: Forest, node: int, threshold: float) -> None:
    left = int(forest.left[node])
    split = {
        "feature_id": int(forest.feature[node]),
        "default_left": bool(forest.missing_left[node]),
        "left_child_key": left,
        "right_child_key": left + 1,
    }
    is_categorical = forest.set[node] >= 0
    going_left = forest.categories_going_left(node) if is_categorical else []
    if going_left:
        builder.categorical_test(**split, category_list=going_left, category_list_right_child=False)
        return
    builder.numerical_test(**split, threshold=BELOW_CATEGORIES if is_categorical else threshold, opname="<=")
