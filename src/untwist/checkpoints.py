"""The public name of `untwist.files.checkpoints`: long fits that can be stopped and go on."""

from untwist.files.checkpoints import *
from untwist.files.checkpoints import __all__ as __all__
