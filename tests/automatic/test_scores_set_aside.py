"""Scores of rows that folds set aside: forests that are formulas, row by row."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from helpers.quick import make_classifier, resolve
from untwist.automatic.out_of_fold import HeldOutScores, find_posteriors, score_held_out_rows
from untwist.boosting.engines.engine import Rows
from untwist.data.groups import OwnFolds
from untwist.data.workers import Workers
from untwist.fit_arguments import SourceColumns
from untwist.training_data import TrainingData


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


# ---- from scores to posteriors ----

MODEL = SimpleNamespace(
    classes=np.array([0, 1]),
    posterior=SimpleNamespace(twisted=lambda scores: np.column_stack([1.0 - scores, scores])),
    unweigh=lambda posterior: posterior / 2.0,  # So that it shows.
    find_posterior_of_labels=lambda scores: np.column_stack([scores[:, 0], scores[:, 0]]),
)


def collect(n_rows=60, weight=None, sources=None, **settings):
    table = np.random.default_rng(0).normal(size=(n_rows, 3))
    labels = (table[:, 0] > 0).astype(int)
    parameters = make_classifier(random_state=0, **settings).get_params(deep=False)
    return TrainingData.collect(resolve(parameters), table, labels, weight, sources=sources)


def test_the_score_of_a_row_is_the_mean_of_its_parts_and_that_of_one_part_to_the_last_bit():
    rows = np.array([0, 2, 1, 2, 4])
    scores = np.array([[0.1, 1.0], [0.2, 1.5], [0.7, 0.1], [0.8, 2.5], [0.3, 0.9]])
    held = HeldOutScores(rows, np.array([3.3, 1.0, 0.0, 3.0, 0.7]), scores, rows)
    found = held.average(6)
    np.testing.assert_array_equal(found[[0, 1, 4]], scores[[0, 2, 4]])
    np.testing.assert_allclose(found[2], 0.25 * scores[1] + 0.75 * scores[3])
    assert np.isnan(found[[3, 5]]).all()
    np.testing.assert_array_equal(HeldOutScores(rows, held.weight, scores[:, :1], rows).average(6), found[:, 0])


@pytest.mark.parametrize(("n_folds", "size", "is_complete"), [(5, 1, True), (4, 1, False), (5, 2, False)])
def test_only_rows_that_are_all_here_and_judged_have_a_fingerprint(n_folds, size, is_complete):
    weight = np.where(np.arange(60) < 3, 0.0, 1.0)
    groups = np.arange(60) // 2
    data = collect(weight=weight, sources=SourceColumns(groups=groups), class_weight={0: 1.0, 1: 3.0})
    data = replace(data, workers=Workers(0, size))
    held = HeldOutScores(np.arange(60), np.ones(60), np.linspace(0.1, 0.9, 60)[:, None], data.rows.labels)
    unseen = find_posteriors(MODEL, data, held, data.folds[:n_folds])
    assert unseen.context.fingerprint == (data.fingerprint if is_complete else None)
    assert unseen.context.groups is data.groups is not None
    assert unseen.context.own_folds is None
    np.testing.assert_allclose(unseen.weight[3:] / unseen.weight[3], 1.0)
    assert unseen.weight[:3].tolist() == [0.0] * 3
    np.testing.assert_allclose(unseen.posterior[:, 1], np.linspace(0.05, 0.45, 60))
    np.testing.assert_array_equal(unseen.by_fold.posterior[:, 0], held.scores[:, 0])
    np.testing.assert_array_equal(unseen.labels, data.rows.labels)
    np.testing.assert_array_equal(unseen.held_out[:, :3], 1.0 / n_folds)
    np.testing.assert_array_equal(unseen.held_out[:, 3:], data.folds[:n_folds, 3:] > 0)
    assert unseen.judged.all() == (n_folds == 5)


def test_folds_of_ones_own_say_who_judges_whom():
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(20), np.arange(20, 40))]
    data = collect(weight=np.where(np.arange(60) == 1, 0.0, 2.0), cv=folds)
    held = HeldOutScores(np.arange(40), np.ones(40), np.full((40, 1), 0.5), data.rows.labels[:40])
    unseen = find_posteriors(MODEL, data, held, data.folds)
    assert unseen.context.own_folds is data.own_folds
    np.testing.assert_array_equal(unseen.held_out, data.own_folds.held_out)
    assert unseen.judged.tolist() == [True] * 40 + [False] * 20
    assert np.isnan(unseen.posterior).any(axis=1).tolist() == (~unseen.judged).tolist()
    np.testing.assert_array_equal(unseen.weight, data.unweigh_classes())
    assert unseen.context.fingerprint == data.fingerprint
