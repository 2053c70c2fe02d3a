"""The estimators that a model file may hold, by the name that its header gives them."""

from __future__ import annotations

from untwist.classifier import UntwistClassifier
from untwist.pilboost import PILBoostClassifier

ESTIMATORS: dict[str, type[UntwistClassifier | PILBoostClassifier]] = {
    "UntwistClassifier": UntwistClassifier,
    "PILBoostClassifier": PILBoostClassifier,
}
