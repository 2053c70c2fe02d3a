"""The alpha-loss as an objective of XGBoost, LightGBM and CatBoost and as a PyTorch module, for any number of classes.

A row has one margin (two classes: p = sigmoid(margin) is the probability of class 1) or one per class (p =
softmax(margin)). It costs ``(1 - p_y**r) / r``, r = 1 - 1/alpha, p_y the probability of its label: the log-loss at
alpha = 1, 1 - p_y at infinity. Of a model learned from twisted labels, p is the clean posterior, and that of margin /
alpha the twisted one (Lemma "lemPointwise"; for several classes p is proportional to the twisted posterior to the
power alpha). A negative alpha undoes a twist across 1/2, of two classes only.

- `alpha_loss`: the loss of margins, its derivatives, and the posteriors that margins stand for.
- `boosters`: objectives and metrics for XGBoost, LightGBM and CatBoost.
- `torch_module`: the loss as a PyTorch module.

Nothing here imports a library of boosting: the objects are what it calls. Only `torch_loss` imports PyTorch.
"""

from untwist.objectives.alpha_loss import (
    clean_proba,
    gradient,
    hessian,
    loss,
    safe_hessian,
    twisted_log_loss,
    twisted_proba,
)
from untwist.objectives.boosters import (
    CatBoostMetric,
    CatBoostObjective,
    LightGBMMetric,
    LightGBMObjective,
    XGBoostMetric,
    XGBoostObjective,
)
from untwist.objectives.torch_module import torch_loss

__all__ = [
    "CatBoostMetric",
    "CatBoostObjective",
    "LightGBMMetric",
    "LightGBMObjective",
    "XGBoostMetric",
    "XGBoostObjective",
    "clean_proba",
    "gradient",
    "hessian",
    "loss",
    "safe_hessian",
    "torch_loss",
    "twisted_log_loss",
    "twisted_proba",
]
