"""The public name of `untwist.theory.explorer`: is a family of losses twist-proper?"""

from untwist.theory.explorer import *
from untwist.theory.explorer import __all__ as __all__
