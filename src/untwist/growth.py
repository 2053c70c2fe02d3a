"""What few need to say of how trees grow: one object beside the parameters of `PILBoostClassifier`."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

__all__ = ["Growth"]


class Growth(BaseEstimator):
    """How trees grow, beyond what most need to say: ``PILBoostClassifier(growth=Growth(subsample=0.5))``.

    The defaults are the paper's: nothing is shrunken or drawn, and rounds begin at 0. `clone` copies it, and
    ``set_params(growth__l2=1)`` of the classifier sets one of its parameters.

    Parameters
    ----------
    init : "zero" or "prior", default "zero"
        The score that boosting begins at: 0 as in the paper, or that of the base rate, with sample and class weights,
        as in other boosters (within 1 to 999 and the clip of the link). `start_` has it.
    l2 : float >= 0, default 0
        Shrinks a leaf with few rows: its value is G / (W + l2), in units of one row.
    subsample : float in (0, 1], default 1
        Share of the rows drawn for every tree, by their contents: copies of a row are drawn together.
    max_features : float in (0, 1], default 1
        Share of the columns drawn for every tree.
    feature_weights : array-like or None, default None
        The chance of each column to be drawn where `max_features` is below 1, up to a factor, as in XGBoost; a column
        of weight 0 is not drawn.
    min_weight_fraction_leaf : float in [0, 0.5], default 0
        Share of the round's total boosting weight in a leaf, at least.
    extra_trees : bool, default False
        Of each column one split is drawn at random at every node, and only these are compared, which makes trees that
        differ more. Splits are drawn among the bins that the node's rows span, those of categories in the order of
        their mean label. The compiled engine has it.
    tree_method : "hist", "approx" or "exact", default "hist"
        How XGBoost looks for splits where it is the engine. "hist" splits the bins of the compiled engine, "approx" and
        "exact" the numbers in single precision.
    device : "cpu", "cuda" or "cuda:N", default "cpu"
        Where XGBoost works where it is the engine; a GPU needs CuPy too.
    """

    def __init__(
        self,
        *,
        init: str = "zero",
        l2: float = 0.0,
        subsample: float = 1.0,
        max_features: float = 1.0,
        feature_weights: Any = None,
        min_weight_fraction_leaf: float = 0.0,
        extra_trees: bool = False,
        tree_method: str = "hist",
        device: str = "cpu",
    ) -> None:
        self.init = init
        self.l2 = l2
        self.subsample = subsample
        self.max_features = max_features
        self.feature_weights = feature_weights
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.extra_trees = extra_trees
        self.tree_method = tree_method
        self.device = device
