"""The public name of `untwist.theory.explorer`: whether a family of losses is twist-proper."""

from untwist.theory.explorer import *
from untwist.theory.explorer import __all__ as __all__
