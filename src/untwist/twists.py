"""Twists of the posterior and how to undo them (Section 4 of the paper: Lemma "lemPointwise", both theorems)."""

from untwist.theory.twists import (
    ClassConditionalNoise,
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
    "ClassConditionalNoise",
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
