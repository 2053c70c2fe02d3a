"""A process that fuzzes one target of targets.py by the coverage of untwist's own Python code: fuzz.py starts it."""

import gc
import sys
from types import FunctionType

import atheris

from reliability import targets

for function in [one for one in gc.get_objects() if isinstance(one, FunctionType)]:
    # Modules of an editable install come through a finder that atheris cannot follow.
    if function.__module__ == targets.__name__ or str(function.__module__).startswith("untwist"):
        atheris.instrument_func(function)
atheris.Setup([sys.argv[0], *sys.argv[2:]], targets.TARGETS[sys.argv[1]])
atheris.Fuzz()
