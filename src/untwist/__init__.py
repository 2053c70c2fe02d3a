"""Learn the truth from data that lies: twist-proper losses and PILBoost."""

from untwist.classifier import PILBoostClassifier

__version__ = "0.1.0"
__all__ = ["PILBoostClassifier", "__version__"]
