"""Randomised trees beside the boosted ones.

They are grown on the folds of the search. How many rows a leaf has is chosen by the log-loss of rows that were set
aside, on the folds that candidates are compared on; how much boosted and randomised trees count, on all folds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from untwist.arguments import Array
from untwist.automatic.mixture import find_log_loss, find_mixture_weights
from untwist.automatic.out_of_fold import HeldOutScores
from untwist.boosting.forest import Forest
from untwist.model import Mixture
from untwist.sums import add_up
from untwist.training_data import TrainingData

__all__ = ["grow_mixture", "mix_in_randomised_trees", "plan_randomised_trees"]


@dataclass(frozen=True)
class Plan:
    """How many randomised trees there are, and of which sizes.

    Parameters
    ----------
    n_trees : (int, int)
        The trees of each fold; the second number where the first would leave no choice but large leaves.
    leaf_sizes : tuple of int
        The rows per leaf that are tried.
    most_values : int
        How many values the trees of a fold hold at most; leaves are made larger where they would hold more.
    """

    n_trees: tuple[int, int]
    leaf_sizes: tuple[int, ...]
    most_values: int


#: Boosted trees of two classes take little time to predict, and with so few values randomised ones take about as much.
TWO_CLASSES = Plan(n_trees=(20, 10), leaf_sizes=(2, 5, 15, 40), most_values=15_000)

#: Several classes gain more by randomised trees; their number is bounded by the memory that they take.
SEVERAL_CLASSES = Plan(n_trees=(40, 20), leaf_sizes=(2, 5, 15), most_values=4_000_000)

#: Where leaves have at least k rows, n rows make about this times n / k leaves, and nearly as many splits.
NODES_PER_LEAF_SIZE = 1.4

#: The share of the columns that a node of a randomised tree draws, and how many it draws at most.
RANDOMISED_FEATURES = 0.5
MOST_DRAWN_COLUMNS = 2_500


def mix_in_randomised_trees(
    data: TrainingData,
    boosted: Sequence[Forest],
    unseen: HeldOutScores,
    *,
    training_weights: Sequence[Array],
    n_first_folds: int,
    score_held_out_rows: Callable[[list[Forest]], HeldOutScores],
    tell: Callable[[float], None],
) -> tuple[list[Forest], HeldOutScores, Mixture]:
    """Return the forest of each fold with randomised trees mixed in.

    Parameters
    ----------
    data : TrainingData
        The rows.
    boosted : sequence of Forest
        The boosted trees of each fold, whose scores are logarithms of the twisted posterior up to a constant.
    unseen : HeldOutScores
        What they say of the rows set aside.
    training_weights : sequence of arrays
        The weight of each row that each fold trains on.
    n_first_folds : int
        How many folds the number of rows per leaf is chosen on.
    score_held_out_rows : callable
        Takes the forests of the first folds, and returns what each says of the rows that it has not seen.
    tell : callable
        Is told which share of the trees is grown.

    Returns
    -------
    mixed : list of Forest
        One per fold.
    unseen : HeldOutScores
        What they say of the rows set aside.
    mixture : Mixture
        By how much each kind of trees counts, and what that is worth.
    """
    n_trees, planned_sizes = plan_randomised_trees(data.n_effective_rows, len(data.classes))
    least = data.growth.min_samples_leaf
    if data.growth.min_weight_fraction_leaf > 0:
        # Folds train on about as many rows each.
        least = max(least, math.ceil(data.growth.min_weight_fraction_leaf * add_up(training_weights[0])))
    leaf_sizes = sorted({max(size, least) for size in planned_sizes})
    first_folds = range(min(n_first_folds, len(training_weights)) if len(leaf_sizes) > 1 else 0)
    other_folds = range(len(first_folds), len(training_weights))
    n_forests = len(leaf_sizes) * len(first_folds) + len(other_folds)
    n_grown = count(1)

    def grow(folds: range, leaf_size: int) -> list[Forest]:
        """Return randomised trees for each of these folds."""
        forests = []
        for fold in folds:
            forests.append(_grow(data, training_weights, fold, n_trees, leaf_size))
            tell(next(n_grown) / n_forests)
        return forests

    grown = {size: grow(first_folds, size) for size in leaf_sizes}

    def find_loss(leaf_size: int) -> float:
        """Return the log-loss of randomised trees alone, on the first folds."""
        tried = score_held_out_rows(grown[leaf_size])
        slope = find_mixture_weights([tried.scores], tried.labels, tried.weight)[0]
        return find_log_loss(slope * tried.scores, tried.labels, tried.weight)

    leaf_size = min(leaf_sizes, key=find_loss) if first_folds else leaf_sizes[0]
    randomised = grown[leaf_size] + grow(other_folds, leaf_size)
    members = [unseen.scores, score_held_out_rows(randomised).scores]
    weights = find_mixture_weights(members, unseen.labels, unseen.weight)
    scores = weights[0] * members[0] + weights[1] * members[1]
    losses = [find_log_loss(each, unseen.labels, unseen.weight) for each in (*members, scores)]
    mixed = [
        first.scale(weights[0]).append(second.scale(weights[1]))
        for first, second in zip(boosted, randomised, strict=True)
    ]
    boosted_weight, randomised_weight = weights.tolist()
    boosted_loss, randomised_loss, loss = losses
    mixture = Mixture(
        boosted_weight=boosted_weight,
        randomised_weight=randomised_weight,
        n_trees=n_trees,
        min_samples_leaf=leaf_size,
        boosted_loss=boosted_loss,
        randomised_loss=randomised_loss,
        loss=loss,
    )
    return mixed, replace(unseen, scores=scores), mixture


def grow_mixture(data: TrainingData, boosted: Forest, mixture: Mixture, *, n_folds: int) -> Forest:
    """Return boosted trees of all rows with as many randomised ones as the folds have together, mixed as folds chose.

    Parameters
    ----------
    data : TrainingData
        The rows, without folds.
    boosted : Forest
        The boosted trees.
    mixture : Mixture
        By how much each kind of trees counts.
    n_folds : int
        How many folds there were.

    Returns
    -------
    Forest
    """
    randomised = _grow(data, [data.weight], 0, n_folds * mixture.n_trees, mixture.min_samples_leaf)
    return boosted.scale(mixture.boosted_weight).append(randomised.scale(mixture.randomised_weight))


def plan_randomised_trees(n_rows: float, n_classes: int) -> tuple[int, list[int]]:
    """Return how many randomised trees to grow for each fold, and the numbers of rows per leaf to try.

    Parameters
    ----------
    n_rows : float
        The rows of the table: their number or total weight, whichever is larger.
    n_classes : int
        The number of classes.

    Returns
    -------
    n_trees : int
        The fewer trees, where more of them would leave no choice but large leaves.
    leaf_sizes : list of int
        Increasing; trees with leaves of any of these sizes hold no more than `most_values`.
    """
    plan = TWO_CLASSES if n_classes == 2 else SEVERAL_CLASSES
    n_outputs = 1 if n_classes == 2 else n_classes
    for n_trees in plan.n_trees:
        n_values = NODES_PER_LEAF_SIZE * n_rows * n_outputs * n_trees
        smallest = math.ceil(n_values / plan.most_values)
        if smallest <= plan.leaf_sizes[1]:
            break
    return n_trees, sorted({max(size, smallest) for size in plan.leaf_sizes})


def _grow(data: TrainingData, training_weights: Sequence[Array], fold: int, n_trees: int, leaf_size: int) -> Forest:
    """Return randomised trees for a fold. They are the same whatever other folds there are."""
    settings = data.settings
    # Neither link nor step matter to trees that are not boosted.
    task = data.make_task(settings.make_link(1.0), 1.0, 0)
    return settings.engine.grow_randomised(
        data.dataset_of(fold),
        replace(task, weight=training_weights[fold]),
        n_trees,
        leaf_size,
        min(RANDOMISED_FEATURES, MOST_DRAWN_COLUMNS / data.encoder.n_features),
        first_tree=fold * n_trees,
    )
