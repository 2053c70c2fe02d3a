"""Twisters: agents that corrupt a sample. A twister turns (X, y) into twisted copies and says what it changed.

Labels of any kind, of two classes or more, are changed by `ClassNoise` and `BernoulliNoise` (all classes alike),
`PairFlips` (each class is taken for one other), `OneBadClass`, `RandomTransitions` and `TransitionNoise` (by a matrix);
those of two classes also by `ClassConditionalNoise`. Each knows its matrix, see `transition_matrix`. Noise that is not
the same everywhere is `SourceNoise` (by who gave the label) and `InstanceNoise` (rising towards the boundary between
classes, or along a column); these know the matrix of each row, see `transition_matrices`. `FeatureNoise` and `Insider`
change cells of an array or a pandas frame; what is missing stays missing. The inputs are left alone; `rng` is a
generator, a seed, or None.
"""

from untwist.twisters.features import FeatureNoise, Insider
from untwist.twisters.labels import (
    BernoulliNoise,
    ClassConditionalNoise,
    ClassNoise,
    InstanceNoise,
    OneBadClass,
    PairFlips,
    RandomTransitions,
    SourceNoise,
    TransitionNoise,
)

__all__ = [
    "BernoulliNoise",
    "ClassConditionalNoise",
    "ClassNoise",
    "FeatureNoise",
    "Insider",
    "InstanceNoise",
    "OneBadClass",
    "PairFlips",
    "RandomTransitions",
    "SourceNoise",
    "TransitionNoise",
]
