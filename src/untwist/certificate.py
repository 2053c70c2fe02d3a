"""The public name of `untwist.theory.certificate`: the convergence certificate of a fit."""

from untwist.theory.certificate import *
from untwist.theory.certificate import __all__ as __all__
