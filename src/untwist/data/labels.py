"""Labels of any kind: their classes, what is missing among them, how much each class weighs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from untwist.arguments import Array, check_non_negative, is_missing
from untwist.data.cells import find_spellings, list_some
from untwist.data.tables import bring_to_host
from untwist.data.whole_numbers import count_merged
from untwist.data.workers import Workers, solo
from untwist.sums import shorten_broadcast

#: Sums of weights are kept below this, up to which float64 holds all whole numbers.
MOST_WEIGHT = 2.0**53
#: Labels that are whole numbers are counted, not sorted, where they are less than this apart.
MOST_COUNTED = 1 << 16
#: Where no weight is larger than this, the smallest of them could vanish.
LEAST_WEIGHT = 2.0**-500


def find_classes(y: NDArray[Any], workers: Workers = solo) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """Find the classes among labels, those of all workers, and each label's index among them.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        The labels of this worker.
    workers : Workers, default solo
        Who shares the rows.

    Returns
    -------
    classes : ndarray
        The classes in order, at least two.
    class_index : ndarray of uint32 of shape (n_rows,)
        The index of each label's class.

    Examples
    --------
    >>> find_classes(np.array(["no", "yes", "no"]))
    (array(['no', 'yes'], dtype='<U3'), array([0, 1, 0], dtype=uint32))
    """
    try:
        counted = _count_labels(y)
        if counted is None or 2 * len(counted[0]) > len(y):
            check_classification_targets(y)  # It warns of labels that are nearly all different, too.
        classes, class_index = counted or np.unique(y, return_inverse=True)
        if workers.size > 1:
            local = classes
            classes = np.unique(np.concatenate(workers.gather(local)))
            class_index = np.searchsorted(classes, local)[class_index]
    except TypeError as error:
        raise ValueError(f"y must hold labels of one kind, none missing ({error})") from error
    except ValueError as error:
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        if len(kinds) == 1:
            raise
        raise ValueError(f"y must hold labels of one kind, got {' and '.join(kinds)}") from error
    if spellings := find_spellings(map(str, classes)) if classes.dtype.kind in "UO" else {}:
        warnings.warn(
            f"labels {list_some(next(iter(spellings.values())))} differ by case or blanks alone, and are learned as "
            "different classes: make them one before, if they are",
            UserWarning,
            stacklevel=2,
        )
    if classes.size < 2:
        raise ValueError(f"y must have two classes, got one class only: {classes.tolist()[0]!r}")
    return classes, class_index.astype(np.uint32)


def refuse_missing(y: Any, name: str = "y") -> None:
    """Raise a ValueError if None, NaN or the like is among labels.

    Parameters
    ----------
    y : array_like or None
        The labels.
    name : str, default "y"
        What to call them in an error.
    """
    values = np.asarray(bring_to_host(y))
    if y is None:
        return
    if values.ndim == 0:
        raise ValueError(f"{name} must be labels, one for each row, got {y!r:.60}")
    values = values.ravel()
    # NaN, and a date that is none, differ from themselves.
    is_lost = [is_missing(label) for label in values] if values.dtype == object else values != values
    missing = np.flatnonzero(is_lost)
    if missing.size:
        raise ValueError(
            f"{name} must have no missing labels, got {missing.size}, the first in row {missing[0]}: leave them out"
        )


def settle_objects(y: Any) -> Any:
    """Give labels that come as objects the type that all of them have: Booleans, whole numbers or numbers.

    scikit-learn takes text as objects, and nothing else.

    Parameters
    ----------
    y : array_like or None
        The labels, none of them missing.

    Returns
    -------
    array_like or None
        Labels that are no objects, and text, as they are. A ValueError where Booleans stand beside numbers.

    Examples
    --------
    >>> settle_objects(np.array([True, False], dtype=object))
    array([ True, False])
    """
    values = np.asarray(y)
    if values.dtype == bool:
        return values  # Booleans of pandas that may be missing would become numbers.
    if y is None or values.dtype != object:
        return y
    kinds = {type(label) for label in values.ravel().tolist()}
    are_truths = {issubclass(kind, (bool, np.bool_)) for kind in kinds}
    if not all(issubclass(kind, (bool, np.bool_, int, float, np.integer, np.floating)) for kind in kinds):
        return y
    if len(are_truths) > 1:
        raise ValueError("y must hold labels of one kind, got Booleans beside numbers: make them one")
    settled = np.array(values.tolist())
    if settled.dtype.kind not in "biu":
        _refuse_merged_labels("y", values.ravel().tolist())
    return settled


def _refuse_merged_labels(name: str, labels: Iterable[Any]) -> None:
    """Raise a ValueError where labels that have to become float64 are whole numbers that it may not hold."""
    before, _ = count_merged(labels)
    if before:
        raise ValueError(
            f"{name} holds whole numbers beyond 2**53 beside others that have no type of whole numbers in common with "
            "them, and would not all be told apart: give all labels as text, such as numpy.asarray(y).astype(str)"
        )


def weigh_classes(setting: Any, classes: NDArray[Any], mass: Array) -> Array:
    """Return the weight of each class.

    Parameters
    ----------
    setting : dict or "balanced"
        Weights by label, 1 for a label that is left out; "balanced" gives all classes the same weight in all.
    classes : ndarray
        The classes.
    mass : ndarray
        The sum of the sample weights of each class.

    Returns
    -------
    ndarray
        One weight per class.

    Examples
    --------
    >>> weigh_classes("balanced", np.array(["no", "yes"]), np.array([30.0, 10.0])).round(3)
    array([0.667, 2.   ])
    """
    if isinstance(setting, str) and setting == "balanced":
        return np.where(mass > 0, mass.sum() / (len(classes) * np.maximum(mass, np.finfo(float).tiny)), 0.0)
    if not isinstance(setting, dict):
        raise ValueError(f'class_weight must be a dict, "balanced" or None, got {setting!r}')
    unknown = [label for label in setting if label not in classes]
    if unknown:
        raise ValueError(f"class_weight has labels that y has not: {unknown[:5]}")
    return np.array(
        [check_non_negative(f"class_weight of {label!r}", setting.get(label, 1.0)) for label in classes.tolist()]
    )


def scale_weights(weight: Array, workers: Workers = solo) -> Array:
    """Scale weights of which float64 cannot hold the sum, or the shares, by a power of two.

    Weights count rows: beyond 2**53 in all, float64 cannot tell one row more or less.

    Parameters
    ----------
    weight : ndarray of shape (n_rows,)
        Not negative.
    workers : Workers, default solo
        Who shares the rows; all weights are scaled alike.

    Returns
    -------
    ndarray of shape (n_rows,)
        The same weights where nothing is to be done.
    """
    heaviest = max(workers.gather(float(np.max(shorten_broadcast(weight), initial=0.0))))
    if not np.isfinite(heaviest):
        raise ValueError(
            "class_weight times sample_weight must be finite, got a product that is not: divide one of them"
        )
    n_rows = sum(workers.gather(len(weight)))
    if heaviest == 0.0 or (heaviest >= LEAST_WEIGHT and heaviest <= MOST_WEIGHT / n_rows):
        return weight
    exponent = int(np.frexp(heaviest)[1])
    if heaviest < LEAST_WEIGHT:
        return np.ldexp(weight, -exponent)
    in_units = np.sort(np.ldexp(weight, -exponent))  # In this order the sum does not depend on that of the rows.
    total_exponent = exponent + int(np.frexp(float(workers.sum(np.array([in_units.sum()]))[0]))[1])
    return weight if total_exponent <= 53 else np.ldexp(weight, 53 - total_exponent)


def encode_labels(name: str, y: Any, classes: NDArray[Any]) -> NDArray[np.uint32]:
    """Return labels as indices of known classes.

    Parameters
    ----------
    name : str
        What to call the labels in an error.
    y : array_like of shape (n_rows,)
        The labels.
    classes : ndarray
        The known classes in order.

    Returns
    -------
    ndarray of uint32 of shape (n_rows,)
        The index of each label's class. A ValueError if a label is none of them.
    """
    refuse_missing(y, name)
    y = column_or_1d(bring_to_host(y))
    if {y.dtype.kind, classes.dtype.kind} <= set("iuf") and np.result_type(y, classes).kind == "f":
        _refuse_merged_labels(name, {*y.tolist(), *classes.tolist()})
    try:
        unknown = np.setdiff1d(y, classes)
    except TypeError as error:
        raise ValueError(f"{name} must hold labels of one kind, none missing ({error})") from error
    if unknown.size:
        raise ValueError(f"{name} has labels that the training labels have not: {unknown[:5]}")
    return np.asarray(np.searchsorted(classes, y), dtype=np.uint32)


def list_positive_classes(n_classes: int) -> list[int]:
    """Return the class that each booster tells from the others: of two the second, of more each against the rest."""
    return [1] if n_classes == 2 else list(range(n_classes))


def _count_labels(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]] | None:
    """Return the distinct labels in order, and the place of each label among them, where that takes no sorting.

    Labels that are whole numbers close together are counted; for any others there is None.
    """
    if y.dtype.kind not in "biu" or not len(y):
        return None
    lowest, highest = int(y.min()), int(y.max())
    if highest - lowest >= MOST_COUNTED or highest >= np.iinfo(np.int64).max:
        return None
    place = y.astype(np.int64) - lowest
    is_there = np.bincount(place) > 0
    classes = (np.flatnonzero(is_there) + lowest).astype(y.dtype)
    return classes, place if is_there.all() else (np.cumsum(is_there) - 1)[place]
