"""Models as treelite: the boosted scores. What follows them, links and untwisting, treelite has no words for."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from untwist.classifier import PILBoostClassifier
from untwist.export.scoring import Scoring, members, needed

__all__ = ["to_treelite"]


def to_treelite(model: PILBoostClassifier) -> Any:
    """A model as a treelite.Model that gives the boosted score of rows of `numbers`, one per class beyond two.

    That is `decision_function` unless noise rates untwist the posterior; a positive score speaks for the class. None of
    treelite's postprocessors is the link of the alpha-loss or keeps posteriors within limits, so that probabilities are
    made outside: `probabilities(model, scores)`.
    """
    builder = needed("treelite.model_builder", "to_treelite")
    scoring = Scoring.of(model)
    several = len(scoring.forests) > 1
    label = [index for index, forest in enumerate(scoring.forests) for _ in range(len(forest))]
    made = builder.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=builder.Metadata(
            num_feature=scoring.forests[0].n_features,
            task_type="kMultiClf" if several else "kBinaryClf",
            average_tree_output=False,
            num_target=1,
            num_class=[len(scoring.forests)],
            leaf_vector_shape=(1, 1),
        ),
        tree_annotation=builder.TreeAnnotation(num_tree=len(label), target_id=[0] * len(label), class_id=label),
        postprocessor=builder.PostProcessorFunc("identity_multiclass" if several else "identity"),
        base_scores=[0.0] * len(scoring.forests),
        attributes={"untwist": scoring.description()},
    )
    for forest in scoring.forests:
        value = scoring.sign * forest.value
        threshold = np.minimum(forest.threshold, sys.float_info.max)  # infinite where all that is not missing goes left
        for tree in range(len(forest)):
            made.start_tree()
            first, end = forest.offset[tree : tree + 2].tolist()
            for node in range(first, end):
                made.start_node(node - first)
                inside = members(forest, node) if forest.feature[node] >= 0 and forest.set[node] >= 0 else []
                left = int(forest.left[node])
                children = {"left_child_key": left, "right_child_key": left + 1}
                split = {"feature_id": int(forest.feature[node]), "default_left": bool(forest.missing_left[node])}
                if forest.feature[node] < 0:
                    made.leaf(float(value[node]))
                elif inside:
                    made.categorical_test(**split, category_list=inside, category_list_right_child=False, **children)
                else:
                    at = -1.0 if forest.set[node] >= 0 else float(threshold[node])  # no category is below 0
                    made.numerical_test(**split, threshold=at, opname="<=", **children)
                made.end_node()
            made.end_tree()
    return made.commit()
