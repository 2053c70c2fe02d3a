"""The public name of `untwist.data.batches`: tables too large for memory."""

from untwist.data.batches import *
from untwist.data.batches import __all__ as __all__
