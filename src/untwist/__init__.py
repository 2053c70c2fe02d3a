"""Learn the truth from data that lies: twist-proper losses and PILBoost."""

from untwist.classifier import PILBoostClassifier
from untwist.files import load, save

__version__ = "0.1.0"
__all__ = ["PILBoostClassifier", "__version__", "load", "save"]
