"""Learn the truth from data that lies: twist-proper losses and PILBoost."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = ["PILBoostClassifier", "__version__", "load", "save"]

if TYPE_CHECKING:
    from untwist.classifier import PILBoostClassifier
    from untwist.files import load, save
else:

    def __getattr__(name):
        """What is public, and the modules: imported when asked for, so that the command line is there at once."""
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = {"PILBoostClassifier": "classifier", "load": "files", "save": "files"}.get(name)
        try:
            found = import_module(f"untwist.{home or name}")
        except ModuleNotFoundError as error:
            if error.name != f"untwist.{name}":
                raise
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
        return found if home is None else getattr(found, name)
