"""The public name of `untwist.theory.twists`: maps of posteriors, and the alpha that undoes them."""

from untwist.theory.twists import *
from untwist.theory.twists import __all__ as __all__
