"""Frozen dataclasses can be compared and hashed, also those that hold arrays, lists or dicts."""

import dataclasses
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pytest

import untwist


def is_made_frozen(kind):
    return dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen and not inspect.isabstract(kind)


def frozen_dataclasses():
    for info in pkgutil.walk_packages(untwist.__path__, "untwist."):
        module = importlib.import_module(info.name)
        classes = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == info.name]
        yield from (one for one in classes if is_made_frozen(one))


def example(annotation):
    """A value of an annotation, as far as arrays and what has no hash go."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", repr(annotation))
    if text.startswith("Callable"):
        return print
    array = np.arange(3.0) if re.search(r"\b(Array|NDArray|ndarray)\b", text) else None
    if re.match(r"(dict|Mapping)\b", text):
        return {"key": array}
    if re.match(r"list\b", text):
        return [array]
    return (array, array) if text.startswith("tuple") else array


def is_hard_to_hash(annotation):
    value = example(annotation)
    return isinstance(value, (np.ndarray, dict, list)) or (isinstance(value, tuple) and value[0] is not None)


def make(kind):
    """An instance that no constructor has checked."""
    made = object.__new__(kind)
    for field in dataclasses.fields(kind):
        object.__setattr__(made, field.name, example(field.type))
    return made


HARD = [one for one in frozen_dataclasses() if any(is_hard_to_hash(field.type) for field in dataclasses.fields(one))]


def test_some_hold_arrays():
    assert {"Certificate", "TwoClassNoise", "Exploration", "Schema"} <= {one.__name__ for one in HARD}


@pytest.mark.parametrize("kind", HARD, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_equality_and_hash_do_not_raise(kind):
    one, other = make(kind), make(kind)
    assert (one == one) is True
    assert isinstance(one == other, bool)
    assert isinstance(one != other, bool)
    assert one in {one, other}
    if one == other:
        assert hash(one) == hash(other)
