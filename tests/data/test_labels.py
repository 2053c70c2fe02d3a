"""Labels of any kind: classes of one worker and of several, what is missing, weights of classes."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest

from untwist.data.labels import (
    MOST_COUNTED,
    _count_labels,
    encode_labels,
    find_classes,
    refuse_missing,
    scale_weights,
    settle_objects,
    weigh_classes,
)
from untwist.data.workers import Workers


class Two(Workers):
    """A worker of two that knows what the other one has."""

    def __init__(self, other):
        super().__init__(0, 2)
        self.other = np.asarray(other)

    def gather(self, item):
        return [item, self.other]


def test_labels_are_indices_of_sorted_classes():
    classes, numbers = find_classes(np.array(["no", "yes", "no", "maybe"]))
    assert classes.tolist() == ["maybe", "no", "yes"]
    assert numbers.tolist() == [1, 2, 1, 0]
    assert numbers.dtype == np.uint32


def test_the_classes_of_several_workers_are_those_of_all():
    classes, numbers = find_classes(np.array([5, 1, 5]), Two([3, 9]))
    assert classes.tolist() == [1, 3, 5, 9]
    assert numbers.tolist() == [2, 0, 2]
    assert find_classes(np.array([5, 5]), Two([3]))[1].tolist() == [1, 1]  # This worker has one class of two.


WHOLE_NUMBERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, ">i4", ">u8"]


def assert_numbered_as_by_sorting(y):
    """Values, types and places are those that NumPy finds by sorting, where labels are counted."""
    expected_classes, expected_places = np.unique(y, return_inverse=True)
    counted = _count_labels(y)
    close = y.dtype.kind in "biu" and len(y) > 0 and int(y.max()) - int(y.min()) < MOST_COUNTED
    assert (counted is not None) == (close and int(y.max()) < 2**63 - 1)
    if counted is None:
        return
    classes, places = counted
    assert classes.dtype == expected_classes.dtype
    np.testing.assert_array_equal(classes, expected_classes)
    np.testing.assert_array_equal(places, expected_places)
    assert places.dtype == expected_places.dtype
    np.testing.assert_array_equal(classes[places], y)


@pytest.mark.parametrize("dtype", WHOLE_NUMBERS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_whole_numbers_anywhere_in_their_range_are_numbered_as_by_sorting(dtype, seed):
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    lowest, highest = int(limits.min), int(limits.max)
    for spread in (0, 1, 2, 100, MOST_COUNTED - 1, MOST_COUNTED, highest - lowest):
        width = min(spread, highest - lowest)
        for first in {lowest, highest - width, max(lowest, -width // 2), lowest + (highest - lowest - width) // 2}:
            drawn = [first + int(step) for step in rng.integers(0, width, 50, endpoint=True, dtype=np.uint64)]
            y = np.array([*drawn, first, first + width], dtype=dtype)
            assert_numbered_as_by_sorting(rng.permutation(y))


@pytest.mark.parametrize(
    "y",
    [
        np.array([True, False, True]),
        np.array([True, True]),
        np.array([False]),
        np.array([-128, 127, -128, 0], dtype=np.int8),
        np.array([2**63, 2**63 + 1, 2**64 - 1, 2**63], dtype=np.uint64),
        np.array([2**63 - 1, 2**63, 2**63 - 2], dtype=np.uint64),
        np.array([2**63 - 1, 2**63 - 2]),
        np.array([-(2**63), -(2**63) + 5, -(2**63)]),
        np.array([-(2**63), 2**63 - 1]),
        np.array([-7, -3, -7, -900]),
        np.array([0, MOST_COUNTED - 1, 0]),
        np.array([-1, MOST_COUNTED - 1, 0]),
        np.array([5, 3, 9, 3, 5])[::-2],
        np.array([0.0, 2.0, -1.0, 2.0]),
        np.array(["b", "a", "b"]),
        *(np.array([], dtype=dtype) for dtype in (bool, np.int8, np.uint64, float, "<U3")),
    ],
    ids=lambda y: f"{y.dtype}-{y.tolist()}"[:40],
)
def test_odd_labels_are_numbered_as_by_sorting(y):
    assert_numbered_as_by_sorting(y)


def test_labels_that_are_counted_are_not_written_to():
    y = np.array([3, -1, 3], dtype=np.int64)
    y.flags.writeable = False
    assert_numbered_as_by_sorting(y)
    assert y.tolist() == [3, -1, 3]


def test_labels_that_are_nearly_all_different_are_warned_of_and_others_are_not():
    """scikit-learn warns of them, and looks through all labels for that."""
    with pytest.warns(UserWarning, match="number of unique classes is greater than 50%"):
        find_classes(np.arange(30))
    classes, numbers = find_classes(np.arange(30) // 2)  # Here a warning would be an error.
    assert classes[numbers].tolist() == (np.arange(30) // 2).tolist()


def test_one_class_or_labels_of_several_kinds_are_refused():
    with pytest.raises(ValueError, match="y must have two classes, got one class only: 'no'"):
        find_classes(np.array(["no", "no"]))
    with pytest.raises(ValueError, match="Unknown label type"):
        find_classes(np.array([0.1, 0.25, 0.7]))
    with pytest.raises(ValueError, match="y must hold labels of one kind, none missing"):
        find_classes(np.array(["no", 1], dtype=object))


@pytest.mark.parametrize(
    "y",
    [
        [0.0, math.nan, 1.0, math.nan],
        np.array(["2020-01-01", "NaT", "2021-01-01", "NaT"], dtype="datetime64[D]"),
        np.ma.array([0, 1, 1, 0], mask=[0, 1, 0, 1]),
        np.ma.array([0.5, 1.0, 1.0, 0.5], mask=[0, 1, 0, 1]),
        np.ma.array(["a", "b", "c", "d"], mask=[0, 1, 0, 1]),
        pd.Series([0, None, 1, None], dtype="Int64"),
        pd.Series(["a", None, "b", None], dtype="category"),
        polars.Series([0, None, 1, None]),
        pyarrow.array(["a", None, "b", None]),
        pyarrow.chunked_array([[True, None], [False, None]]),
    ],
    ids=lambda y: f"{type(y).__module__}-{getattr(y, 'dtype', getattr(y, 'type', 'list'))}",
)
def test_no_kind_of_label_hides_missing_ones(y):
    with pytest.raises(ValueError, match="y_val must have no missing labels, got 2, the first in row 1: leave"):
        refuse_missing(y, "y_val")


@pytest.mark.parametrize("nothing", [None, math.nan, pd.NA, pd.NaT])
def test_missing_labels_are_counted_and_the_first_is_named(nothing):
    with pytest.raises(ValueError, match="y must have no missing labels, got 2, the first in row 1"):
        refuse_missing(np.array(["no", nothing, "yes", nothing], dtype=object))


def test_labels_of_another_kind_than_the_classes_are_refused():
    classes = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    for y in ([0, 1], [0.5, 1.5], ["a", "b"]):
        with pytest.raises(ValueError, match=r"^y (must hold labels of one kind|has labels that the training labels)"):
            encode_labels("y", y, classes)


def test_labels_that_are_there_pass():
    assert refuse_missing(None) is None
    assert refuse_missing([0.0, 1.0]) is None
    assert refuse_missing(np.ma.array([0, 1])) is None
    assert refuse_missing(np.array(["no", 1, "NAType"], dtype=object)) is None


def test_balanced_classes_weigh_the_same():
    weights = weigh_classes("balanced", np.array([0, 1, 2]), np.array([1.0, 3.0, 0.0]))
    np.testing.assert_allclose(weights, [4 / 3, 4 / 9, 0.0])


def test_weights_by_class_are_1_where_none_is_given():
    assert weigh_classes({"b": 2.5}, np.array(["a", "b"]), np.ones(2)).tolist() == [1.0, 2.5]
    assert weigh_classes({}, np.array([0, 1]), np.ones(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("even", "class_weight must be a dict"),
        ([1.0, 2.0], "class_weight must be a dict"),
        ({2: 1.0}, r"class_weight has labels that y has not: \[2\]"),
        ({1: -1.0}, "class_weight of 1 must be a number >= 0"),
    ],
)
def test_bad_weights_of_classes_are_named(setting, message):
    with pytest.raises(ValueError, match=message):
        weigh_classes(setting, np.array([0, 1]), np.ones(2))


def test_labels_as_objects_have_the_type_that_all_of_them_have():
    for labels, kind in (
        ([True, False, True], bool),
        ([np.True_, False, np.False_], bool),
        ([3, np.int8(1), 3], int),
        ([0.0, 1, np.float32(2)], float),
    ):
        found = settle_objects(np.array(labels, dtype=object))
        assert found.dtype == kind
        assert found.tolist() == labels
    for labels in (None, np.array(["a", "b"], dtype=object), np.array([1, 0]), np.array([1, "a"], dtype=object)):
        assert settle_objects(labels) is labels
    with pytest.raises(ValueError, match="labels of one kind, got Booleans beside numbers"):
        settle_objects(np.array([True, 0], dtype=object))


def test_weights_are_scaled_where_float64_cannot_hold_their_sum():
    rng = np.random.default_rng(0)
    for size in (1, 2, 50):
        for scale in (5e-324, 1e-300, 1e-10, 1.0, 1e12, 1e17, 1e300, 1.7e308):
            for weight in (np.full(size, scale), rng.random(size) * scale, np.r_[scale, np.ones(size)]):
                scaled = scale_weights(weight)
                exact = [Fraction(one) for one in weight.tolist()]
                shares = [one / sum(exact) for one in exact]
                total = sum(Fraction(one) for one in scaled.tolist())
                assert total <= 2**53
                if weight.max() >= 2.0**-500 and sum(exact) <= 2**53:
                    assert scaled is weight
                for one, share in zip(scaled.tolist(), shares, strict=True):
                    assert abs(Fraction(one) - share * total) <= total * Fraction(5e-324)  # The rest has underflown.
    zeros = np.zeros(3)
    assert scale_weights(zeros) is zeros
    with pytest.raises(ValueError, match="class_weight times sample_weight must be finite"):
        scale_weights(np.array([1.0, np.inf]))


class Threads(Workers):
    """A worker of two, each in a thread of its own."""

    def __init__(self, rank, board, barrier):
        super().__init__(rank, 2)
        self.board, self.barrier = board, barrier

    def gather(self, item):
        self.board[self.rank] = item
        self.barrier.wait()
        found = list(self.board)
        self.barrier.wait()
        return found

    def sum(self, values):
        return np.sum(self.gather(values), axis=0)


def test_workers_scale_their_weights_alike():
    parts = [np.array([1e300, 1.0]), np.array([3e299])]
    together = scale_weights(np.concatenate(parts))
    board, barrier = [None, None], threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        apart = list(pool.map(lambda rank: scale_weights(parts[rank], Threads(rank, board, barrier)), range(2)))
    np.testing.assert_array_equal(np.concatenate(apart), together)
