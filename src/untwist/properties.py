"""The public name of `untwist.theory.properties`: the properties of losses and links, as checks."""

from untwist.theory.properties import *
from untwist.theory.properties import __all__ as __all__
