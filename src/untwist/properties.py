"""The properties M, D, S, E of partial losses and properness (Section 3, Lemma "proptilt"), as checks that can fail."""

from untwist.theory.properties import (
    PropertyCheck,
    differentiable,
    extremes,
    monotone,
    proper,
    properties,
    strictly_proper,
    symmetric,
    well_formed,
)

__all__ = [
    "PropertyCheck",
    "differentiable",
    "extremes",
    "monotone",
    "proper",
    "properties",
    "strictly_proper",
    "symmetric",
    "well_formed",
]
