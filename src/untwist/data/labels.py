"""Labels of any kind: their classes, what is missing among them, how much each class weighs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from untwist.arguments import Array, non_negative
from untwist.data.tables import on_host
from untwist.data.workers import ALONE, Workers

__all__ = ["class_weights", "classes_of", "encode_labels", "refuse_missing"]


def classes_of(y: NDArray[Any], workers: Workers = ALONE) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """The classes of all workers, and the labels as their indices."""
    try:
        check_classification_targets(y)
        classes, numbers = np.unique(y, return_inverse=True)
        if workers.size > 1:
            own, classes = classes, np.unique(np.concatenate(workers.all_of(classes)))
            numbers = np.searchsorted(classes, own)[numbers]
    except TypeError as error:
        raise ValueError(f"y must hold labels of one kind, none missing ({error})") from error
    if classes.size < 2:
        raise ValueError(f"y must have two classes, got one class only: {classes.tolist()[0]!r}")
    return classes, numbers.astype(np.uint32)


def refuse_missing(y: Any) -> None:
    """None, NaN and the like among labels that are not numbers, which scikit-learn has no good words for."""
    values = np.asarray(y)
    if y is None or values.dtype != object:
        return
    missing = [
        i
        for i, label in enumerate(values.ravel())
        if label is None or type(label).__name__ == "NAType" or label != label
    ]
    if missing:
        raise ValueError(f"y must have no missing labels, got {len(missing)}, the first in row {missing[0]}")


def class_weights(setting: Any, classes: NDArray[Any], mass: Array) -> Array:
    """The weight of each class; "balanced" gives all classes, which have these sample weights, the same."""
    if isinstance(setting, str) and setting == "balanced":
        return np.where(mass > 0, mass.sum() / (len(classes) * np.maximum(mass, np.finfo(float).tiny)), 0.0)
    if not isinstance(setting, dict):
        raise ValueError(f'class_weight must be a dict, "balanced" or None, got {setting!r}')
    unknown = [label for label in setting if label not in classes]
    if unknown:
        raise ValueError(f"class_weight has labels that y has not: {unknown[:5]}")
    return np.array([non_negative(f"class_weight of {label!r}", setting.get(label, 1.0)) for label in classes.tolist()])


def encode_labels(name: str, y: Any, classes: NDArray[Any]) -> NDArray[np.uint32]:
    """Return labels as indices of `classes`; `name` is what errors call them."""
    y = column_or_1d(on_host(y))
    try:
        unknown = np.setdiff1d(y, classes)
    except TypeError as error:
        raise ValueError(f"{name} must hold labels of one kind, none missing ({error})") from error
    if unknown.size:
        raise ValueError(f"{name} has labels that the training labels have not: {unknown[:5]}")
    return np.asarray(np.searchsorted(classes, y), dtype=np.uint32)
