"""The public name of `untwist.theory.twists`: maps of posteriors, and the alpha that undoes them."""

import warnings
from typing import Any

from untwist.theory.twists import *
from untwist.theory.twists import __all__ as __all__


def __getattr__(name: str) -> Any:
    """Return the twist under its old name, which now means the twister of `untwist.twisters` only."""
    if name != "ClassConditionalNoise":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = "untwist.twists.ClassConditionalNoise is now ClassConditionalTwist, with its rates given by name"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return globals()["ClassConditionalTwist"]
