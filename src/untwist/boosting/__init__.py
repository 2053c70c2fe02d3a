"""Boosting: the algorithm as one loop, runs of it side by side, engines that make it fast, and what they leave behind.

- `algorithm`: the loop over any weak learner, which is the definition.
- `engines`: what makes rounds fast. `engines.engine` is the protocol, `engines.registry` knows them by name.
- `runs`: boosters driven side by side, with callbacks, progress and Ctrl-C.
- `ensemble`, `forest`: weak hypotheses with their coefficients, and trees as flat arrays.

The room may import `theory` and `data`; nothing here knows the classifier or settings that are left open.
"""

from untwist.boosting.algorithm import (
    Hypothesis,
    Round,
    ValidationLoss,
    WeakLearner,
    adaboost,
    boost,
    pilboost,
    staged_scores,
)

__all__ = [
    "Hypothesis",
    "Round",
    "ValidationLoss",
    "WeakLearner",
    "adaboost",
    "boost",
    "pilboost",
    "staged_scores",
]
