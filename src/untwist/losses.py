"""The public name of `untwist.theory.losses`: losses for class probability estimation."""

from untwist.theory.losses import *
from untwist.theory.losses import __all__ as __all__
