"""The public name of `untwist.theory.links`: links between scores and posteriors."""

from untwist.theory.links import *
from untwist.theory.links import __all__ as __all__
