"""A process that fuzzes one target of targets.py by the coverage of untwist's own Python code: fuzz.py starts it."""

import gc
import sys
from types import FunctionType

import atheris

from reliability import fuzz_models, targets

for function in [one for one in gc.get_objects() if isinstance(one, FunctionType)]:
    # Modules of an editable install come through a finder that atheris cannot follow.
    own = function.__module__ in (targets.__name__, fuzz_models.__name__)
    if own or str(function.__module__).startswith("untwist"):
        atheris.instrument_func(function)
atheris.Setup([sys.argv[0], *sys.argv[2:]], targets.TARGETS[sys.argv[1]])
atheris.Fuzz()
