"""Twists of the posterior and how to undo them (Section 4 of the paper: Lemma "lemPointwise", both theorems)."""

import warnings
from typing import Any

from untwist.theory.twists import (
    ClassConditionalTwist,
    ConstructiveAlpha,
    SymmetricNoise,
    alpha_star,
    best_fixed_alpha,
    binary_entropy,
    constructive_alpha,
    cross_entropy,
    cross_entropy_gain,
    cross_entropy_slope,
    entropy,
    is_bayes_blunting,
    kl_divergence,
)

__all__ = [
    "ClassConditionalTwist",
    "ConstructiveAlpha",
    "SymmetricNoise",
    "alpha_star",
    "best_fixed_alpha",
    "binary_entropy",
    "constructive_alpha",
    "cross_entropy",
    "cross_entropy_gain",
    "cross_entropy_slope",
    "entropy",
    "is_bayes_blunting",
    "kl_divergence",
]


def __getattr__(name: str) -> Any:
    """The twist under its old name, which now means the twister of `untwist.twisters` only."""
    if name != "ClassConditionalNoise":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = "untwist.twists.ClassConditionalNoise is now ClassConditionalTwist, with its rates given by name"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return ClassConditionalTwist
