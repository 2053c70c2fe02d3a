"""Models for other places: ONNX, treelite, XGBoost, and source text of C and Python that needs nothing.

- `numbers(model, X)`: the rows that every exported model takes, with categories as numbers and NaN for missing values;
- `to_onnx(model)`: labels, clean probabilities and decision scores;
- `to_treelite(model)`: the boosted scores, of which `probabilities` makes clean ones;
- `to_xgboost(model)`: the boosted scores, as a plain XGBoost model;
- `to_code(model, "c")`: a function that gives the clean probabilities of a row.

Only forests can be exported, of whichever engine: what another weak learner computes is not known here.
"""

from untwist.export.code import to_code
from untwist.export.onnx import to_onnx
from untwist.export.scoring import numbers, probabilities
from untwist.export.treelite import to_treelite
from untwist.export.xgboost import to_xgboost

__all__ = ["numbers", "probabilities", "to_code", "to_onnx", "to_treelite", "to_xgboost"]
