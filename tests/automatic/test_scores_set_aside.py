"""Scores of rows that folds set aside: forests that are formulas, row by row."""

import numpy as np
import pytest
from scipy import sparse

from untwist.automatic.out_of_fold import score_held_out_rows
from untwist.boosting.engines.engine import Rows
from untwist.data.groups import OwnFolds


class Formula:
    """A forest whose score is a factor times the first column; a column per output."""

    def __init__(self, factor, n_outputs=1):
        self.factor, self.n_outputs = factor, n_outputs

    def scores(self, rows, n_jobs=None):
        rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
        scores = self.factor * rows[:, 0]
        return scores if self.n_outputs == 1 else scores[:, None] * np.arange(1, self.n_outputs + 1)


class InBlocks:
    """A table that comes in blocks of three rows."""

    def __init__(self, X):
        self.X, self.shape = X, X.shape

    def blocks(self):
        return (self.X[first : first + 3] for first in range(0, len(self.X), 3))


X = np.arange(1.0, 9.0)[:, None] * [1.0, 10.0]
LABELS = np.array([0, 1, 0, 1, 1, 0, 1, 0], dtype=np.uint32)
#: Row 2 is in both folds, rows 4 and 7 in none.
HELD_OUT = np.array([[1.0, 0, 0.5, 0, 0, 2.0, 0, 0], [0, 3.0, 1.5, 1.0, 0, 0, 1.0, 0]])
FACTORS = [[2.0, 3.0], [5.0, -1.0]]  # By class, then by fold.


def score(table=X, n_training=8, factors=FACTORS, **options):
    forests = [[Formula(one) for one in of_class] for of_class in factors]
    return score_held_out_rows(forests, Rows(table, LABELS, np.ones(8), {}), HELD_OUT, n_training, **options)


@pytest.mark.parametrize("table", [X, sparse.csr_array(X), sparse.csc_array(X), InBlocks(X)], ids=lambda one: type(one))
def test_a_row_is_scored_by_the_folds_that_set_it_aside_and_by_all_where_none_did(table):
    found = score(table)
    assert found.rows.tolist() == [0, 2, 5, 1, 2, 3, 6, 4, 7]
    assert found.weight.tolist() == [1.0, 0.5, 2.0, 3.0, 1.5, 1.0, 1.0, 0.0, 0.0]
    assert found.labels.tolist() == LABELS[found.rows].tolist()
    scorers = [(2.0, 5.0)] * 3 + [(3.0, -1.0)] * 4 + [(2.5, 2.0)] * 2
    expected = [[factor * X[row, 0] for factor in own] for row, own in zip(found.rows, scorers, strict=True)]
    np.testing.assert_array_equal(found.scores, expected)


def test_rows_after_those_of_the_training_are_scored_where_they_were_set_aside_only():
    assert score(n_training=0).rows.tolist() == [0, 2, 5, 1, 2, 3, 6]
    assert score(n_training=5).rows.tolist() == [0, 2, 5, 1, 2, 3, 6, 4]


def test_rows_that_no_fold_of_ones_own_judges_are_not_scored():
    held_out = HELD_OUT > 0
    held_out[0, 7] = True  # It is judged, and yet without weight.
    found = score(own_folds=OwnFolds(~held_out, held_out))
    assert found.rows.tolist() == [0, 2, 5, 1, 2, 3, 6, 7]


def test_each_fold_sees_rows_in_its_own_way_and_the_mean_of_all_as_they_are():
    found = score(
        factors=[[1.0, 1.0]], show_to_fold=lambda fold, rows, numbers: numbers * 100 * (fold + 1) + rows[:, None]
    )
    expected = (
        [100 * X[row, 0] + row for row in (0, 2, 5)] + [200 * X[row, 0] + row for row in (1, 2, 3, 6)] + [5.0, 8.0]
    )
    assert found.scores[:, 0].tolist() == expected


def test_a_forest_of_several_outputs_has_a_column_for_each():
    forests = [[Formula(2.0, 3), Formula(4.0, 3)]]
    found = score_held_out_rows(forests, Rows(X, LABELS, np.ones(8), {}), HELD_OUT, 8)
    factors = np.array([2.0] * 3 + [4.0] * 4 + [3.0] * 2)
    np.testing.assert_array_equal(found.scores, (factors * X[found.rows, 0])[:, None] * [1, 2, 3])
