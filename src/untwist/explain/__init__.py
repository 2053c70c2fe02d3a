"""Which columns make a score: exact Shapley values of the trees.

- `explain(model, X)`: values[row, column] that add up to the score, beyond base_values;
- `explain(model, X).to_shap()`: a shap.Explanation, for the plots of shap;
- `tree_explainer(model, X)`: a shap.TreeExplainer, for interactions.
"""

from untwist.explain.shap_trees import tree_explainer
from untwist.explain.shapley import Contributions, explain, shap_values

__all__ = ["Contributions", "explain", "shap_values", "tree_explainer"]
