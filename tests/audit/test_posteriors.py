"""Posteriors that are given: every form of the same numbers is read alike, and others are refused."""

import numpy as np
import pandas as pd
import pytest

from untwist.audit.posteriors import read_posteriors

CLASSES = np.array(["a", "b", "c"])
TABLE = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.1, 0.1, 0.8]])
TWO = np.array(["no", "yes"])


@pytest.mark.parametrize("pattern", ["{}", "proba_{}", "prob_{}", "probability_{}", "p_{}", "P({})"])
def test_columns_are_found_by_the_names_of_classes(pattern):
    frame = pd.DataFrame(TABLE, columns=[pattern.format(one) for one in CLASSES])
    turned = frame[frame.columns[::-1]].assign(other=7.0)
    np.testing.assert_array_equal(read_posteriors(turned, CLASSES, 3), TABLE)
    np.testing.assert_array_equal(read_posteriors(TABLE.tolist(), CLASSES, 3), TABLE)
    with pytest.raises(ValueError, match="must be of class 'b' where it is one column, got that of 'a' only"):
        read_posteriors(frame.iloc[:, :1], CLASSES, 3)
    with pytest.raises(ValueError, match=r"a column for each class: 'a', 'b', 'c' \(or all as in proba_a or prob_a or"):
        read_posteriors(frame.iloc[:, :2], CLASSES, 3)


def test_columns_that_are_numbered_come_in_order():
    frame = pd.DataFrame(TABLE)
    np.testing.assert_array_equal(read_posteriors(frame, CLASSES, 3), TABLE)
    with pytest.raises(ValueError, match="a column for each class"):
        read_posteriors(frame[[1, 0, 2]], CLASSES, 3)
    twice = pd.DataFrame(np.column_stack([TABLE, TABLE[:, 0]]), columns=["a", "b", "c", "a"])
    with pytest.raises(ValueError, match="a column for each class"):
        read_posteriors(twice, CLASSES, 3)


def test_of_two_classes_one_column_is_that_of_the_second():
    expected = [[0.75, 0.25], [0.0, 1.0], [1.0, 0.0]]
    for given in (
        [0.25, 1.0, 0.0],
        [[0.25], [1.0], [0.0]],
        pd.DataFrame({"any": [0.25, 1.0, 0.0]}),
        pd.DataFrame({"yes": [0.25, 1.0, 0.0]}),
        [0.25, 1.005, 0.0],
    ):
        assert read_posteriors(given, TWO, 3).tolist() == expected
    for given, shape in (([0.25, 1.0, 0.0], r"\(3,\)"), (TABLE[:, :2], r"\(3, 2\)")):
        with pytest.raises(ValueError, match=f"each of the 3 classes 'a', 'b', 'c', in this order, got shape {shape}"):
            read_posteriors(given, CLASSES, 3)


def test_rows_sum_to_1_after_a_little_rounding():
    given = np.array([[0.3, 0.705], [0.5, 0.4901]])
    found = read_posteriors(given, TWO, 2)
    np.testing.assert_allclose(found, given / given.sum(axis=1, keepdims=True))
    for row, total in (([0.5, 0.51001], "1.01"), ([0.4, 0.5899], "0.9899")):
        with pytest.raises(ValueError, match=rf"sum to 1 in each row, got {total} in row 1 \(2 of 4 rows do not\)"):
            read_posteriors([[0.5, 0.5], row, [1.0, 0.0], row], TWO, 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [[0.5, 0.5], [np.nan, 1.0]],
            "scores must hold finite numbers, got nan in row 1, class 'no'",
        ),
        ([0.5, np.inf], "scores must hold finite numbers, got inf in row 1$"),
        (
            [[0.5, 0.5], [1.0, -0.001]],
            "probabilities, from 0 to 1, got -0.001 in row 1, class 'yes'",
        ),
        ([0.5, 1.011], "probabilities, from 0 to 1, got 1.011 in row 1$"),
        ([["x", "y"], ["x", "y"]], "scores must hold numbers, a row per label and a column per class"),
        ([[0.5, 0.5]], "scores must have a row for each of the 2 labels, got 1"),
        (np.full((2, 2, 1), 0.5), r"got shape \(2, 2, 1\)"),
    ],
)
def test_what_is_no_probability_is_refused_by_its_place(given, message):
    with pytest.raises(ValueError, match=message):
        read_posteriors(given, TWO, 2, name="scores")


@pytest.mark.parametrize(("n", "words"), [(8, "'7', in"), (9, "'7' and 1 more, in"), (12, "'7' and 4 more, in")])
def test_of_many_classes_some_are_named(n, words):
    with pytest.raises(ValueError, match=words):
        read_posteriors(TABLE, np.array([str(one) for one in range(n)]), 3)
