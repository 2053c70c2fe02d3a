"""Learn the truth from data that lies: twist-proper losses and PILBoost.

`UntwistClassifier` is for a table with noisy labels, `PILBoostClassifier` the algorithm of the paper; `save` and `load`
keep fitted models. The modules below are the public ones, and docs/architecture.md says where everything is.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"
__all__ = ["Growth", "PILBoostClassifier", "UntwistClassifier", "__version__", "load", "save"]

#: Where the public names live. They are imported when asked for, so that the command line is there at once.
_HOMES = {
    "Growth": "untwist.growth",
    "PILBoostClassifier": "untwist.pilboost",
    "UntwistClassifier": "untwist.classifier",
    "load": "untwist.files",
    "save": "untwist.files",
}

#: The public modules, which need no import of their own after ``import untwist``.
_MODULES = [
    "audit",
    "batches",
    "certificate",
    "checkpoints",
    "distributed",
    "explain",
    "explorer",
    "export",
    "files",
    "links",
    "losses",
    "noise",
    "objectives",
    "plot",
    "properties",
    "report",
    "twisters",
    "twists",
]

if TYPE_CHECKING:
    from untwist.classifier import UntwistClassifier
    from untwist.files import load, save
    from untwist.growth import Growth
    from untwist.pilboost import PILBoostClassifier
else:

    def __getattr__(name):
        """Import a public name or module when it is asked for."""
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return import_module(f"untwist.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"untwist.{name}":
                raise
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None

    def __dir__():
        """List the public names, imported or not."""
        return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})
