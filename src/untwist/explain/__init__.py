"""Which columns make a score: exact Shapley values of the trees."""

from untwist.explain.shapley import (
    Contributions,
    explain,
    shap_values,
    tree_explainer,
)

__all__ = ["Contributions", "explain", "shap_values", "tree_explainer"]
